"""Runs ``build/init`` (or any program) as PID 1 of a container of our own making, and looks at it from outside and from inside.

    from harness import run_init, life_env

    pod = run_init(argv=["--", "sh", "-c", "exit 7"])                 # supervises a command; no GitHub
    assert pod.wait() == 7

    pod = run_init(env=life_env(world, "https://github.com/acme/widget"), world=world)      # the life cycle
    world.wait_for("online"); pod.signal("TERM"); assert pod.wait() == 0

In a test use the fixtures of ``tests/conftest.py`` instead: ``run`` (run_init that tears down), ``world`` (a GitHub of the test's own
that fails the test on any recorded violation), ``make_world(**settings)``.

``run_init`` keywords (all optional)
    argv            arguments behind the program                 program         default: build/init, seen inside as /opt/init/init
    env             the whole environment of PID 1               world           a ``WorldClient``: it listens on ``listen`` in there
    user            1000 (default), 0, or (uid, gid)             groups          supplementary groups
    scenario        dict for the stand-in's scenario.json        agent           False: no stand-in in the runner root
    root_mode       mode and owner of the runner root            root_owner
    root            an existing runner root (second life)        cache           True: /ci-cache exists, group-writable, of the job's user
    hostname        default "pod-1"                              hosts           {name: [addresses]} in place of the standard /etc/hosts
    resolv          text of /etc/resolv.conf                     listen          [(address, port)], default 127.0.0.1 443 and 8443
    files           {path: text or (text, mode, uid)}            folders         {path: (mode, uid)}
    binds           {inside: outside} or (outside, readonly)     readonly        root file system read-only, tmpfs on /tmp and /run
    run_mode        mode of /run, default 0755 (root's)          umask           default 022
    pty             True: a terminal; ``pod.master`` is its other end
    stdin/stdout/stderr   descriptors to use instead of /dev/null and collecting pipes
    ignored_signals ["SIGINT"] set to SIG_IGN before exec        no_new_privs    keep_caps [numbers]     cwd

``Pod``
    pid             PID of PID 1 seen from here                  signal(sig)     from outside the container ("TERM", number or Signals)
    wait_exec()     until PID 1 is the program itself
    wait(timeout)   exit status: 0..255, or -N for signal N      alive()
    out, err        bytes so far                                 text            both, decoded, in order of arrival a stream
    wait_text(s, timeout)   until ``s`` is in stdout or stderr   log             lines of stderr that begin with "init: "
    run(argv, uid=1000)     a program inside, as that uid: CompletedProcess
    processes()     {pid inside: {"cmdline", "uid", "ppid", "state", "host_pid"}}    host_pid(pattern)
    look(uid)       all that this uid can read of processes and files in there (``standin.look``)
    agents()        what each start of the stand-in reported      report(name)    one report file of a job
    root            the runner root, from outside                close()         kills everything that is left

Everything is polled with limits; a limit that passes raises ``Late`` with the logs. Nothing outlives ``close`` (the kernel ends
whatever is in the pid namespace), and nothing outlives the test process (parent-death signal).
"""
import atexit
import json
import os
import py_compile
import shutil
import signal as signals
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from github.certs import HOSTS  # noqa: E402
from github.control import Hub  # noqa: E402,F401

BINARY = os.environ.get("INIT_BINARY", os.path.join(REPO, "build", "init"))
AGENT = os.path.join(HERE, "agent")
AGENT_BIN = {}
VERSION = "2.336.0"
ROOT = "/home/ci-runner/runner"
CA_PATH = "/etc/ssl/test-ca.pem"
LIMIT = 60


class Late(AssertionError):
    """Something did not happen within its limit."""


def life_env(world, url, entity=None, token=None, **more):
    """Environment of a life that registers at ``url`` with a token of the world; values of None are left out."""
    if entity is None:
        pieces = [p for p in url.split("://")[1].split("/")[1:] if p]
        if pieces and pieces[-1].endswith(".git"):
            pieces[-1] = pieces[-1][:-4]
        entity = "orgs/" + pieces[0] if len(pieces) == 1 else "/".join(pieces) if pieces[0] == "enterprises" else "repos/" + "/".join(pieces)
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home/ci-runner", "LANG": "C.UTF-8",
           "SSL_CERT_FILE": CA_PATH, "RUNNER_URL": url, "RUNNER_TOKEN": token or world.mint(entity), "RUNNER_NAME": "r1",
           "INIT_SELFTEST": "off", "INIT_GPU": "off", "RUNNER_ROOT": ROOT}
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def agent_bin():
    """The stand-in's ``bin`` with its modules compiled, once a process: it is started hundreds of times."""
    if AGENT_BIN.get("pid") != os.getpid():
        folder = tempfile.mkdtemp(prefix="agent-")
        atexit.register(shutil.rmtree, folder, True)
        shutil.copytree(os.path.join(AGENT, "bin"), os.path.join(folder, "bin"), symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        modules = os.path.join(folder, "bin", "standin")
        for name in os.listdir(modules):
            # never checked against the source, so a copy's time stamps do not matter
            py_compile.compile(os.path.join(modules, name), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        AGENT_BIN.update(pid=os.getpid(), path=os.path.join(folder, "bin"))
    return AGENT_BIN["path"]


def make_runner_root(path, scenario=None, owner=1000, mode=0o755, agent=True, version=VERSION):
    """A runner root as the image has it, owned by the job's user, with the stand-in agent in ``bin``."""
    os.makedirs(path, exist_ok=True)
    if agent:
        shutil.copytree(agent_bin(), os.path.join(path, "bin"), symlinks=True)
        if version != VERSION:
            deps = os.path.join(path, "bin", "Runner.Listener.deps.json")
            with open(deps) as f:
                text = f.read()
            with open(deps, "w") as f:
                f.write(text.replace("/" + VERSION + '"', "/" + version + '"'))
        os.makedirs(os.path.join(path, "externals"))
    if scenario is not None:
        with open(os.path.join(path, "scenario.json"), "w") as f:
            json.dump(scenario, f)
    for folder, dirs, names in os.walk(path):
        for name in dirs + names:
            os.lchown(os.path.join(folder, name), owner, owner)
    os.chown(path, owner, owner)
    os.chmod(path, mode)


def hosts_text(hosts):
    lines = ["127.0.0.1 localhost"]
    for name, addresses in hosts.items():
        lines += ["%s %s" % (a, name) for a in addresses]
    return "\n".join(lines) + "\n"


class Collector(threading.Thread):
    """Reads one stream to its end."""

    def __init__(self, fd, changed):
        super().__init__(daemon=True)
        self.fd = fd
        self.data = bytearray()
        self.changed = changed
        self.start()

    def run(self):
        while True:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                piece = b""
            with self.changed:
                self.data += piece
                self.changed.notify_all()
            if not piece:
                os.close(self.fd)
                return


class Pod:
    def __init__(self, order, fds, world, base, keep_base):
        self.base = base
        self.keep_base = keep_base
        self.world = world
        self.status = None
        self.pid = None
        self.master = fds.get("master")
        self.changed = threading.Condition()
        self.collectors = {}
        self.root = order["runner_root"]
        self.reports = order["reports"]
        self.uid = order["uid"]
        self.started = time.monotonic()
        ours, theirs = socket.socketpair()
        try:
            SERVER.ask(theirs.fileno(), fds)
        finally:
            theirs.close()
            for fd in fds["close"]:
                os.close(fd)
        self.link = ours
        self.link.settimeout(LIMIT)
        self.buf = b""
        self.helper = None
        for name in ("out", "err"):
            if fds.get(name + "_read") is not None:
                self.collectors[name] = Collector(fds[name + "_read"], self.changed)
        try:
            self.begin(order)
        except BaseException:
            self.close()
            raise

    def begin(self, order):
        self.link.sendall(json.dumps(order).encode() + b"\n")
        data, socks, _, _ = socket.recv_fds(self.link, 100, 16)
        if not data.startswith(b"ready"):
            raise RuntimeError("pod: %s" % data.decode())
        self.helper = int(data.split()[1])
        if self.world is not None:
            self.world.listen(socks)
        for fd in socks:
            os.close(fd)
        self.started = time.monotonic()
        self.link.sendall(b"go\n")
        self.pid = int(self.line())
        self.wait_exec()

    def line(self, timeout=LIMIT):
        end = time.monotonic() + timeout
        while b"\n" not in self.buf:
            left = end - time.monotonic()
            if left <= 0:
                raise Late("no word from the pod\n" + self.text)
            self.link.settimeout(left)
            try:
                piece = self.link.recv(4096)
            except socket.timeout:
                continue
            if not piece:
                raise RuntimeError("the pod's helper died\n" + self.text)
            self.buf += piece
        line, _, self.buf = self.buf.partition(b"\n")
        return line

    # state
    @property
    def out(self):
        return bytes(self.collectors["out"].data) if "out" in self.collectors else b""

    @property
    def err(self):
        return bytes(self.collectors["err"].data) if "err" in self.collectors else b""

    @property
    def text(self):
        return self.err.decode("utf-8", "replace") + self.out.decode("utf-8", "replace")

    @property
    def log(self):
        return [x for x in self.err.decode("utf-8", "replace").splitlines() if x.startswith("init: ")]

    def alive(self):
        return self.status is None and os.path.exists("/proc/%d" % self.pid) and not self._zombie()

    def _zombie(self):
        try:
            with open("/proc/%d/stat" % self.pid) as f:
                return f.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    def wait_exec(self, timeout=10):
        """Until the program itself runs: a signal to what comes before it in that process would be lost."""
        end = time.monotonic() + timeout
        while True:
            try:
                with open("/proc/%d/comm" % self.pid) as f:
                    if f.read().strip() == "init":
                        return
            except OSError:
                return
            if time.monotonic() > end:
                raise Late("the program was not executed\n" + self.text)
            time.sleep(0.0005)

    # acts
    def signal(self, sig):
        if isinstance(sig, str):
            sig = getattr(signals, sig if sig.startswith("SIG") else "SIG" + sig)
        os.kill(self.pid, sig)

    def wait(self, timeout=LIMIT):
        """Exit status; every byte of output has been read when it returns."""
        if self.status is None:
            line = self.line(timeout)
            if not line.startswith(b"exit "):
                raise RuntimeError(line.decode())
            self.took = time.monotonic() - self.started
            raw = int(line.split()[1])
            self.status = os.waitstatus_to_exitcode(raw)
            for c in self.collectors.values():
                c.join(5)
        return self.status

    def wait_text(self, what, timeout=LIMIT, count=1):
        want = what.encode()
        end = time.monotonic() + timeout
        with self.changed:
            while self.out.count(want) + self.err.count(want) < count:
                left = end - time.monotonic()
                if left <= 0:
                    raise Late("%r did not appear within %g s\n%s" % (what, timeout, self.text))
                self.changed.wait(min(left, 0.5))
                if not self.collectors or all(not c.is_alive() for c in self.collectors.values()):
                    if self.out.count(want) + self.err.count(want) < count:
                        raise Late("%r did not appear before the end\n%s" % (what, self.text))

    def run(self, argv, uid=1000, timeout=LIMIT, stdin=None):
        cmd = ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-u", "-i", "--setgid", str(uid), "--setuid", str(uid), "--"] + argv
        return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=stdin, timeout=timeout,
                              stdin=subprocess.DEVNULL if stdin is None else None,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def python(self, code, uid=1000):
        """Runs Python inside with the stand-in's modules importable."""
        head = "import sys; sys.path.insert(0, '%s/bin')\n" % ROOT
        done = self.run(["/usr/bin/python3", "-IS", "-c", head + code], uid)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())
        return done.stdout

    def look(self, uid=1000):
        return json.loads(self.python("import json\nfrom standin import look\n"
                                      "print(json.dumps({'neighbours': look.neighbours(), 'files': look.files()}))", uid))

    def processes(self):
        """Every process of the pod, by its pid inside."""
        try:
            mine = os.readlink("/proc/%d/ns/pid" % self.pid)
        except OSError:
            return {}
        out = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                if os.readlink("/proc/%s/ns/pid" % name) != mine:
                    continue
                with open("/proc/%s/status" % name) as f:
                    s = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
                with open("/proc/%s/cmdline" % name, "rb") as f:
                    cmdline = [x.decode("utf-8", "replace") for x in f.read().split(b"\0")[:-1]]
            except (OSError, ValueError):
                continue
            inner = int(s["NSpid"].split()[-1])
            out[inner] = {"cmdline": cmdline, "comm": s["Name"], "uid": int(s["Uid"].split()[0]), "state": s["State"][0],
                          "host_pid": int(name), "host_ppid": int(s["PPid"]), "status": s}
        return out

    def host_pid(self, pattern, timeout=10):
        """Host pid of the first process whose command line holds ``pattern``."""
        end = time.monotonic() + timeout
        while True:
            for p in self.processes().values():
                if pattern in " ".join(p["cmdline"]):
                    return p["host_pid"]
            if time.monotonic() > end:
                raise Late("no process like %r\n%s" % (pattern, self.text))
            time.sleep(0.01)

    def agents(self):
        out = []
        for name in sorted(os.listdir(self.reports), key=lambda n: os.path.getmtime(os.path.join(self.reports, n))):
            if name.startswith("agent-"):
                with open(os.path.join(self.reports, name)) as f:
                    out.append(json.load(f))
        return out

    def report(self, name, timeout=LIMIT):
        path = os.path.join(self.reports, name)
        end = time.monotonic() + timeout
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise Late("no report %s\n%s" % (name, self.text))
            time.sleep(0.01)
        with open(path) as f:
            return json.load(f)

    def identity_files(self):
        return sorted(n for n in os.listdir(self.root) if n.startswith((".runner", ".credentials")))

    def close(self):
        """PID 1 dies, and with it the namespace; the helper ends when it has said so."""
        if self.pid is not None and self.status is None:
            try:
                os.kill(self.pid, signals.SIGKILL)
            except OSError:
                pass
        elif self.pid is None and self.helper is not None:
            try:
                os.kill(self.helper, signals.SIGKILL)
            except OSError:
                pass
        self.link.settimeout(20)
        try:
            while self.link.recv(4096):
                pass
        except OSError:
            pass
        for c in self.collectors.values():
            c.join(5)
        self.link.close()
        if self.master is not None:
            os.close(self.master)
            self.master = None
        if not self.keep_base:
            shutil.rmtree(self.base, ignore_errors=True)


class PodServer:
    """The process that makes pods, started with the first one; it ends with this process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sock = None
        self.owner = None

    def ask(self, link, fds):
        with self.lock:
            if self.owner != os.getpid():
                self.start()
            socket.send_fds(self.sock, [b"pod"], [link, self.fileno(fds["stdin"]), self.fileno(fds["stdout"]), self.fileno(fds["stderr"])])

    @staticmethod
    def fileno(stream):
        return stream if isinstance(stream, int) else stream.fileno()

    def start(self):
        # datagrams, so that two requests cannot run together
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def place():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)
        subprocess.Popen([os.path.join(HERE, "pod.py")], stdin=subprocess.DEVNULL, preexec_fn=place, pass_fds=(3,), close_fds=True, env={})
        theirs.close()
        self.sock = ours
        self.owner = os.getpid()


SERVER = PodServer()


def open_streams(pty, stdin, stdout, stderr):
    fds = {"close": []}
    if pty:
        master, slave = os.openpty()
        fds.update(master=master, stdin=slave, stdout=slave, stderr=slave)
        fds["close"].append(slave)
        return fds
    if stdin is None:
        stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        fds["close"].append(stdin)
    fds["stdin"] = stdin
    for name, given in (("out", stdout), ("err", stderr)):
        if given is None:
            r, given = os.pipe()
            fds[name + "_read"] = r
            fds["close"].append(given)
        fds["std" + name] = given
    return fds


def normal_file(path, value):
    text, mode, uid = value if isinstance(value, tuple) else (value, 0o644, 0)
    return {"path": path, "text": text, "mode": mode, "uid": uid, "gid": uid}


PASSWD = ("root:x:0:0:root:/root:/bin/bash\nci-runner:x:1000:1000::/home/ci-runner:/bin/bash\n"
          "other:x:1001:1001::/home/other:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
GROUP = "root:x:0:\nci-runner:x:1000:\nvideo:x:44:ci-runner\nother:x:1001:\nnogroup:x:65534:\n"


def run_init(argv=(), env=None, *, program=None, world=None, user=1000, groups=(), scenario=None, agent=True, root=None, root_mode=0o755,
             root_owner=1000, cache=False, hostname="pod-1", hosts=None, resolv="nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
             listen=(("127.0.0.1", 443), ("127.0.0.1", 8443)), files=None, folders=None, binds=None, readonly=False, run_mode=0o755,
             umask=0o022, pty=False, stdin=None, stdout=None, stderr=None, ignored_signals=(), no_new_privs=False, keep_caps=(),
             cwd="/", version=VERSION, keep_base=False):
    base = tempfile.mkdtemp(prefix="pod-")
    os.chmod(base, 0o755)
    uid, gid = user if isinstance(user, tuple) else (user, user)
    if root is None:
        root = os.path.join(base, "runner")
        make_runner_root(root, scenario, root_owner, root_mode, agent, version)
    elif scenario is not None:
        with open(os.path.join(root, "scenario.json"), "w") as f:
            json.dump(scenario, f)
    reports = os.path.join(base, "reports")
    os.mkdir(reports)
    os.chmod(reports, 0o1777)
    mountpoint = os.path.join(base, "root")
    os.mkdir(mountpoint)
    all_files = {"/etc/passwd": PASSWD, "/etc/group": GROUP, "/etc/resolv.conf": resolv, "/etc/hostname": hostname + "\n",
                 "/etc/nsswitch.conf": "hosts: files dns\npasswd: files\ngroup: files\n",
                 "/etc/hosts": hosts_text(hosts if hosts is not None else {n: ["127.0.0.1"] for n in HOSTS})}
    all_binds = {ROOT: root, "/var/test": reports, "/opt/init/init": (program or BINARY, True)}
    if world is not None:
        all_binds[CA_PATH] = (world.ca, True)
    all_folders = {"/home/ci-runner": (0o755, 1000)}
    if cache:
        all_folders["/ci-cache"] = (0o2775, 1000)
    all_files.update(files or {})
    all_folders.update(folders or {})
    all_binds.update(binds or {})
    order = {"hostname": hostname, "root": mountpoint, "runner_root": root, "reports": reports, "uid": uid, "gid": gid,
             "groups": list(groups), "program": "/opt/init/init", "argv": ["init"] + list(argv), "env": dict(env or {}), "cwd": cwd,
             "umask": umask, "pty": pty, "readonly": readonly, "run_mode": run_mode, "no_new_privs": no_new_privs,
             "keep_caps": list(keep_caps), "ignored_signals": list(ignored_signals), "listen": [list(x) for x in listen] if world else [],
             "files": [normal_file(p, v) for p, v in all_files.items()],
             "folders": [{"path": p, "mode": v[0], "uid": v[1], "gid": v[1]} for p, v in all_folders.items()],
             "binds": [{"to": p, "from": v[0] if isinstance(v, tuple) else v, "readonly": isinstance(v, tuple) and v[1]}
                       for p, v in all_binds.items()],
             "symlinks": []}
    return Pod(order, open_streams(pty, stdin, stdout, stderr), world, base, keep_base)


def secrets_in(seen, words):
    """Where one of ``words`` shows up in what ``look`` returned: a list of places, empty when nowhere."""
    hits = []
    for pid, entry in seen["neighbours"].items():
        for name in ("cmdline", "environ", "status", "stack", "auxv", "maps"):
            if any(w in (entry[name] or "") for w in words):
                hits.append("/proc/%s/%s" % (pid, name))
        for fd, (link, text) in entry["fds"].items():
            if any(w in link or w in (text or "") for w in words):
                hits.append("/proc/%s/fd/%s (%s)" % (pid, fd, link))
    for path, text in seen["files"].items():
        if any(w in text for w in words):
            hits.append(path)
    return hits
