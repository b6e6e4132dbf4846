"""Real containers: podman with runc, images built from the repository's own Dockerfile on a small base.

``base_image``     Debian made with debootstrap, with what the Dockerfile's apt steps install, cached in podman's storage
``init_image``     target ``init``: scratch and the binary
``final_image``    target ``final`` of the real Dockerfile on the stand-in stack
``container``      container(image, *argv, world=None, env=..., options=[...]) -> Container, removed at the end of the test
"""
import hashlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import uuid

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import harness  # noqa: E402
import standin  # noqa: E402  (beside this file)
from github.certs import HOSTS  # noqa: E402

LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
BASE_PACKAGES = ["ca-certificates", "curl", "gnupg", "git", "build-essential", "cmake", "ninja-build", "unzip", "xz-utils", "sudo",
                 "python3", "python3-dev", "python3-pip", "python3-setuptools", "python3-wheel", "python3-cryptography"]


def podman(*argv, timeout=120, check=True, stdin=None):
    done = subprocess.run(["podman", "--runtime", "runc", *map(str, argv)], capture_output=True, text=True, timeout=timeout,
                          input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"podman {' '.join(map(str, argv))}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-5000:]}")
    return done


def build_packages():
    """What the build stage installs (deps/install build), so that it finds it there."""
    lines = [line.split() for line in (ROOT / "deps" / "packages").read_text().splitlines()]
    return [line[1] for line in lines if line and line[0] == "build"]


def apt_mirror():
    """The machine's own mirror and suite, from apt's own configuration."""
    out = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)"], capture_output=True, text=True,
                         timeout=60, check=True).stdout
    for line in out.splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[1] == "bookworm" and parts[2] == "main":
            return parts[0]
    raise AssertionError("apt knows no bookworm main archive here")


def logged(argv):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


def bootstrap(work, packages, image):
    """debootstrap into memory (its thousands of synced writes are what takes the time elsewhere), then into podman."""
    mount = work / "memory"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4g,mode=0755", "tmpfs", mount], check=True, timeout=20)
    try:
        root = mount / "root"
        # The plain system first: debootstrap's own resolving of a long list takes minutes, apt's takes none.
        logged(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root, apt_mirror()])
        apt = ["chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends"]
        logged([*apt, "update"])
        logged([*apt, "install", *packages])
        logged([*apt, "clean"])
        tar = subprocess.Popen(["tar", "-C", root, "--exclude=./proc/*", "--exclude=./sys/*", "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "-", image], stdin=tar.stdout, check=True, capture_output=True, timeout=600)
        assert tar.wait(60) == 0
    finally:
        subprocess.run(["umount", "-R", mount], check=False, timeout=60)


@pytest.fixture(scope="session")
def base_image(tmp_path_factory):
    """(image, build arguments). The slow part, debootstrap, is kept in podman's storage under a name made of its inputs."""
    packages = sorted(set(BASE_PACKAGES + build_packages()))
    key = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:12]
    plain = f"localhost/init-test-debian:{key}"
    work = tmp_path_factory.mktemp("base")
    if podman("image", "exists", plain, check=False).returncode != 0:
        bootstrap(work, packages, plain)
    args = standin.build(work / "standin")
    name = f"localhost/init-test-base:{uuid.uuid4().hex[:12]}"
    made = podman("create", "--network", "none", *LIMITS, plain, "true").stdout.strip()
    for part in ("opt", "etc"):
        podman("cp", f"{work}/standin/{part}/.", f"{made}:/{part}/")
    podman("commit", "-q", "-c", "ENV PIP_NO_INDEX=1", "-c", "ENV PIP_FIND_LINKS=/opt/standin/wheels", made, name, timeout=300)
    podman("rm", "-f", made)
    yield name, args
    podman("rmi", "-f", name, check=False)


def build(target, tag, base, args, extra=(), check=True):
    pairs = {"BUILD_IMAGE": base, "BASE_IMAGE": base, "INIT_COMMIT": "containertest", **args}
    argv = [x for k, v in pairs.items() if v is not None for x in ("--build-arg", f"{k}={v}")]
    return podman("build", "--format", "docker", "--isolation", "chroot", *LIMITS, "--target", target, "-t", tag, *argv, *extra, "-f",
                  ROOT / "Dockerfile", ROOT, timeout=1200, check=check)


@pytest.fixture(scope="session")
def init_image(base_image):
    """Target ``init``: built by the real Dockerfile, from nothing."""
    build("init", "localhost/init-test-init:now", *base_image)
    return "localhost/init-test-init:now"


@pytest.fixture(scope="session")
def final_build(base_image, init_image):
    """(image, the build's output)."""
    done = build("final", "localhost/init-test-final:now", *base_image)
    return "localhost/init-test-final:now", done.stdout + done.stderr


@pytest.fixture(scope="session")
def final_image(final_build):
    return final_build[0]


class Netns:
    """A network namespace with loopback up, and a listening socket in it for the test GitHub."""

    def __init__(self):
        self.name = "init-test-" + uuid.uuid4().hex[:8]
        subprocess.run(["ip", "netns", "add", self.name], check=True, timeout=20)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True, timeout=20)
        self.path = f"/run/netns/{self.name}"

    def listener(self, port=443):
        box = []

        def inside():
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                setns(fd)
                sock = socket.socket()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(("127.0.0.1", port))
                sock.listen(64)
                box.append(sock)
            finally:
                os.close(fd)

        t = threading.Thread(target=inside)  # a thread of its own: the namespace is the thread's
        t.start()
        t.join(20)
        return box[0]

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False, timeout=20)


def setns(fd):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Container:
    def __init__(self, image, argv, world, env, options, pins):
        self.name = "init-test-" + uuid.uuid4().hex[:10]
        self.netns = Netns()
        self.world = world
        opts = ["--network", f"ns:{self.netns.path}", "--hostname", "pod-1"]
        for host in HOSTS:
            opts += ["--add-host", f"{host}:127.0.0.1"]
        if world is not None:
            sock = self.netns.listener()
            world.listen([sock.fileno()])
            sock.close()
            ca = pathlib.Path(pins) / "ca.pem"
            ca.write_text(world.ca if world.ca.startswith("-----") else pathlib.Path(world.ca).read_text())
            ca.chmod(0o644)
            opts += ["-v", f"{ca}:{harness.CA_PATH}:ro"]
        for key, value in (env or {}).items():
            opts += ["-e", f"{key}={value}"]
        podman("create", "--name", self.name, *LIMITS, *opts, *options, image, *argv)

    def start(self):
        podman("start", self.name)
        return self

    @property
    def logs(self):
        done = podman("logs", self.name, check=False)
        return done.stdout + done.stderr

    @property
    def pid(self):
        return int(podman("inspect", "-f", "{{.State.Pid}}", self.name).stdout)

    def state(self):
        return podman("inspect", "-f", "{{.State.Status}}", self.name).stdout.strip()

    def wait(self, timeout=60):
        """Exit status as podman sees it."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.state() in ("exited", "stopped"):
                return int(podman("inspect", "-f", "{{.State.ExitCode}}", self.name).stdout)
            time.sleep(0.1)
        raise AssertionError(f"the container did not end within {timeout} s\n{self.logs}")

    def wait_text(self, text, timeout=60):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if text in self.logs:
                return
            if self.state() in ("exited", "stopped") and text not in self.logs:
                break
            time.sleep(0.1)
        raise AssertionError(f"{text!r} did not appear\n{self.logs}")

    def exec(self, *argv, options=(), check=True):
        return podman("exec", *options, self.name, *argv, check=check)

    def stop(self, seconds=10):
        done = podman("stop", "-t", str(seconds), self.name, timeout=seconds + 60)
        self.killed = bool(re.search(r"resorting to SIGKILL|StopSignal .* failed", done.stderr))
        return done

    def close(self):
        podman("rm", "-f", "-t", "0", self.name, check=False)
        self.netns.close()


@pytest.fixture
def container(tmp_path):
    made = []

    def make(image, *argv, world=None, env=None, options=(), start=True):
        pins = tmp_path / f"c{len(made)}"
        pins.mkdir()
        made.append(Container(image, argv, world, env, list(options), pins))
        return made[-1].start() if start else made[-1]

    yield make
    for c in made:
        c.close()


def runner_env(world, **more):
    """Settings of a life in the final image, which has no GPU here."""
    env = harness.life_env(world, "https://github.com/acme/widget", RUNNER_ROOT=None, PATH=None, HOME=None, LANG=None, **more)
    return env
