"""Starts an init program, ours or a peer's, as PID 1 of a pid namespace (or as an ordinary process), and looks at it from outside.

    run = Run(program, ["park"])             # the payload's behaviour as CMD
    run.wait_line("ready"); run.signal("TERM"); assert run.wait() == 143

Every wait has a limit; a limit that passes raises ``Late``. ``close`` ends whatever is left: with PID 1 the kernel ends its namespace.
"""
import os
import shutil
import signal as signals
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
PAYLOAD = os.environ.get("INIT_PAYLOAD", os.path.join(REPO, "build", "check", "payload"))
LIMIT = 10
WAITING = {"x86_64": "128", "aarch64": "137"}  # rt_sigtimedwait


class Late(AssertionError):
    """Something did not happen within its limit."""


class Program:
    """An init: how it is called, and what a test may expect of its exits."""

    def __init__(self, name, argv, package):
        self.name = name
        self.argv = argv
        self.package = package

    def __repr__(self):
        return self.name

    @property
    def path(self):
        return shutil.which(self.argv[0])

    @property
    def version(self):
        if self.package is None:
            return "this tree"
        r = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", self.package], capture_output=True, text=True)
        return r.stdout or "?"


OURS = Program("init", [os.environ.get("INIT_BINARY", os.path.join(REPO, "build", "init")), "--"], None)
PEERS = [Program("tini", ["tini", "--"], "tini"), Program("tini -g", ["tini", "-g", "--"], "tini"),
         Program("dumb-init", ["dumb-init", "--"], "dumb-init"), Program("catatonit", ["catatonit", "--"], "catatonit")]


def poll(condition, limit=LIMIT, what="the condition"):
    """Until it returns something true, which is returned."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Late("%s: not within %s s" % (what, limit))
        time.sleep(0.002)


def number(sig):
    return sig if isinstance(sig, int) else getattr(signals, "SIG" + sig)


class Reader(threading.Thread):
    def __init__(self, fd):
        super().__init__(daemon=True)
        self.fd = fd
        self.data = b""
        self.ended = False
        self.start()

    def run(self):
        while True:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                piece = b""
            if not piece:
                os.close(self.fd)
                self.ended = True
                return
            self.data += piece


class Run:
    """``cmd``: arguments of the payload, or a whole command with ``raw``. Keywords: ``pid1`` (False: an ordinary process), ``before``
    (a command in front of the init, behind the namespace), ``env``, ``cwd``, ``stdin``/``stdout``/``stderr`` (descriptors; by
    default /dev/null and pipes that are read), ``preexec``."""

    def __init__(self, program, cmd, pid1=True, raw=False, before=(), env=None, cwd=None, stdin=None, stdout=None, stderr=None,
                 preexec=None, pass_fds=()):
        self.program = program
        tell_r, tell_w = os.pipe()
        self.readers = {}
        given = []
        for name, fd in (("out", stdout), ("err", stderr)):
            if fd is None:
                r, fd = os.pipe()
                self.readers[name] = Reader(r)
                given.append(fd)
            setattr(self, name + "_fd", fd)
        full = list(before) + list(program.argv) + (list(cmd) if raw else [PAYLOAD] + [str(c) for c in cmd])
        if pid1:
            full = [PAYLOAD, "ns", str(tell_w)] + full
        self.process = subprocess.Popen(full, stdin=subprocess.DEVNULL if stdin is None else stdin, stdout=self.out_fd, stderr=self.err_fd,
                                        env=env, cwd=cwd, preexec_fn=preexec, pass_fds=tuple(pass_fds) + ((tell_w,) if pid1 else ()))
        os.close(tell_w)
        for fd in given:
            os.close(fd)
        self.tell = Reader(tell_r)
        self.pid1 = pid1
        if pid1:
            poll(lambda: b"\n" in self.tell.data or self.tell.ended, what="a namespace")
            assert self.tell.data, "no namespace: %s" % self.err
            self.pid = int(self.tell.data.split()[1])
        else:
            self.pid = self.process.pid

    @property
    def out(self):
        return self.readers["out"].data.decode(errors="replace")

    @property
    def err(self):
        return self.readers["err"].data.decode(errors="replace")

    def signal(self, sig):
        os.kill(self.pid, number(sig))

    def wait(self, limit=LIMIT):
        """Exit status, or -N when signal N ended it."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Late("still there after %s s; stderr: %s" % (limit, self.err if "err" in self.readers else "")) from None
        for r in self.readers.values():
            r.join(LIMIT)
        if not self.pid1:
            return self.process.returncode
        self.tell.join(LIMIT)
        word, n = self.tell.data.split(b"\n")[1].split()
        return int(n) if word == b"exit" else -int(n)

    def alive(self):
        return self.process.poll() is None

    def lines(self, word="", stream="out"):
        return [w for w in getattr(self, stream).split("\n") if w.startswith(word)]

    def wait_line(self, word, count=1, limit=LIMIT):
        """The (last) number behind the word, as the payload writes it."""
        found = poll(lambda: self.out.count("\n") and (lambda v: v if len(v) >= count else None)(
            [w for w in self.out.split("\n")[:-1] if w.startswith(word)]), limit, "line %r" % word)
        return int(found[-1].split()[-1])

    def children(self, pid=None):
        pid = pid or self.pid
        pids = []
        try:
            for tid in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/children" % (pid, tid)) as f:
                    pids += [int(p) for p in f.read().split()]
        except OSError:
            pass
        return pids

    def tree(self, pid=None):
        pids = self.children(pid)
        return pids + [q for p in pids for q in self.tree(p)]

    def child(self):
        """CMD, seen from outside."""
        return poll(lambda: self.children(), what="a child")[0]

    def status(self, pid=None):
        with open("/proc/%d/status" % (pid or self.pid)) as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)

    def waits_for_signals(self, pid):
        with open("/proc/%d/syscall" % pid) as f:
            return f.read().split()[0] == WAITING.get(os.uname().machine)

    def armed(self):
        """Waits until TERM is blocked or caught, as an impatient `docker stop` would find it."""
        bit = 1 << (signals.SIGTERM - 1)
        path = os.path.realpath(self.program.path)

        def is_armed():
            try:
                s = self.status()
                if os.readlink("/proc/%d/exe" % self.pid) != path:
                    return False
                waits = self.waits_for_signals(self.pid)
            except OSError:
                return not self.alive()
            # While rt_sigtimedwait waits, the kernel shows its signals as not blocked.
            return (int(s["SigBlk"], 16) | int(s["SigCgt"], 16)) & bit or waits
        poll(is_armed, what="an armed PID 1")

    def close(self):
        if self.alive():
            for pid in [self.pid] if self.pid1 else [self.pid] + self.tree():
                try:
                    os.kill(pid, signals.SIGKILL)
                except OSError:
                    pass
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
