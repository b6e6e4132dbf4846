"""A node as the checks see it: device nodes, driver, PCI, tools, runner, caches. A healthy one H200 unless told otherwise; each test
breaks one thing."""
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(HERE, "data")
CLI = os.path.join(TOP, "build/test/probecli")
INIT = os.path.join(TOP, "build/init")
LIBCUDA = os.path.join(TOP, "build/test/fake_libcuda.so")
DRIVER = "580.159.04"
MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (dvs-builder@U22)\nGCC version:  gcc version 12.3.0\n"
ROOT = os.geteuid() == 0


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)
    os.chmod(path, mode)


class Node:
    def __init__(self, tmp, cards=1):
        self.tmp = str(tmp)
        self.bin = self.tmp + "/bin"
        self.lib = self.tmp + "/lib"
        self.order = {
            "top": self.tmp + "/top",
            "nodes": ["/dev/nvidiactl", "/dev/nvidia-uvm"] + ["/dev/nvidia%d" % i for i in range(cards)],
            "pci": [["0x10de", "0x030200"]] * cards + [["0x10de", "0x040300"], ["0x8086", "0x030000"]],
            "proc_gpus": ["0000:%02x:00.0" % (i + 1) for i in range(cards)],
            "files": {"/proc/driver/nvidia/version": MODULE % DRIVER},
        }
        os.makedirs(self.bin)
        os.makedirs(self.order["top"])
        self.libraries(DRIVER)
        self.smi("healthy.xml" if cards == 1 else "healthy-%d.xml" % cards)
        self.env = {
            "PATH": self.bin + ":/usr/local/bin:/usr/bin:/bin",
            "LD_LIBRARY_PATH": self.lib,
            "HOME": self.tmp,
            "NVIDIA_VISIBLE_DEVICES": "all",
            "INIT_STATE_DIR": self.tmp + "/state",
            "INIT_PYTHON": "/usr/bin/python3",
        }
        self.runner()
        self.caches()

    # -- what a test may change --

    def libraries(self, version):
        shutil.rmtree(self.lib, ignore_errors=True)
        os.makedirs(self.lib)
        for name in ("libnvidia-ml.so", "libcuda.so"):
            write("%s/%s.%s" % (self.lib, name, version), "")
            os.symlink("%s.%s" % (name, version), "%s/%s.1" % (self.lib, name))
        for name in ("libicuuc.so.72", "libssl.so.3"):
            write("%s/%s" % (self.lib, name), "")

    def script(self, name, text):
        write("%s/%s" % (self.bin, name), text, 0o755)

    def smi(self, data=None, code=0, stream=1, body=None, capability="9.0"):
        """nvidia-smi that prints a file of data/ for -q, or runs `body`."""
        query = body or "cat %s >&%d; exit %d" % (os.path.join(DATA, data), stream, code)
        self.script("nvidia-smi", "#!/bin/sh\ncase \"$*\" in\n*compute_cap*) echo %s;;\n-L) cat %s/list-mig.txt;;\n*) %s;;\nesac\n"
                    % (capability, DATA, query))

    def runner(self, version="2.334.0", body=None):
        root = self.tmp + "/runner"
        write(root + "/bin/Runner.Listener", "#!/bin/sh\n%s\n" % (body or "echo " + version), 0o755)
        self.env["RUNNER_ROOT"] = root
        self.root = root

    def caches(self):
        self.cache = self.tmp + "/cache/triton"
        os.makedirs(self.cache)
        self.env["TRITON_CACHE_DIR"] = self.cache
        self.env["INIT_CACHE_DIRS"] = "TRITON_CACHE_DIR"
        self.env["INIT_CACHE_MIN_FREE"] = "1M"

    # -- running --

    def command(self, argv, **env):
        order = dict(self.order, argv=argv, env=dict(self.env, **env))
        order["top"] = self.order["top"]
        unshare = ["unshare", "-m"] if ROOT else ["unshare", "-rm"]
        return unshare + ["/usr/bin/python3", "-IS", os.path.join(HERE, "enter.py"), json.dumps(order)]

    def run(self, *argv, timeout=120, **env):
        shutil.rmtree(self.order["top"], ignore_errors=True)
        os.makedirs(self.order["top"])
        return subprocess.run(self.command(list(argv), **env), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)

    def selftest(self, tier="fast", only=None, skip=None, status=None, **env):
        """The checks as {id: result}, and the whole report under ""."""
        argv = [INIT, "--selftest=" + tier, "--json"]
        argv += ["--only", only] if only else []
        argv += ["--skip", skip] if skip else []
        p = self.run(*argv, **env)
        assert p.stdout.startswith(b"{"), (p.returncode, p.stdout, p.stderr)
        report = json.loads(p.stdout)
        assert p.returncode == (1 if report["result"] == "fail" else 0)
        found = {c["id"]: c for c in report["checks"]}
        found[""] = report
        return found

    def verdict(self, *argv, **env):
        """gate, watch or clean through the test's own command line, as {name: value}; labels as a list."""
        p = self.run(CLI, *argv, **env)
        assert p.returncode == 0, (p.returncode, p.stdout, p.stderr)
        out = {"labels": [], "stderr": p.stderr.decode()}
        for line in p.stdout.decode().splitlines():
            name, _, value = line.partition(" ")
            if name == "label":
                out["labels"].append(value)
            else:
                out[name] = int(value) if value.isdigit() else value
        return out
