"""The worker: runs the steps of one job, each in a child; is told to shut down over its pipe; exits 100 + result.

A step is one of:
    {"sleep": S}                      {"sleep": S, "ignore": ["SIGINT", "SIGTERM"]}   {"sleep": S, "own_session": true}
    {"orphans": N, "seconds": S, "ignore": true, "own_session": true, "fork_on": true}
    {"mark": NAME}                    an empty report: the step has begun, with its signals set as asked
    {"dump": NAME}                    what the job sees, as NAME in the report folder
    {"kill": "listener"|"worker"|"init"|"parent-of-listener"|"NAME", "signal": 9}
    {"exec": [argv]}                  {"write": {path: text}}        {"delete": [path]}     {"exit": N}
    {"say": text}                     text to the worker's own standard output
A step with ``"always": true`` also runs after a cancellation.
"""
import json
import os
import select
import signal
import sys
import time

from . import look

RESULTS = {"Succeeded": 100, "Failed": 102, "Canceled": 103}


def sleep_until(end):
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, 3600))


def orphan_body(step):
    if step.get("own_session"):
        os.setsid()
    if step.get("ignore"):
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
    end = time.monotonic() + step.get("seconds", 60)
    if step.get("fork_on"):
        while time.monotonic() < end:
            if os.fork():
                time.sleep(0.01)
                os._exit(0)
    sleep_until(end)


def orphans(count, step):
    """Leaves so many processes behind whose parent is gone."""
    pid = os.fork()
    if pid == 0:
        for _ in range(count):
            if os.fork() == 0:
                orphan_body(step)
                os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)


def find(name, listener):
    if name == "listener":
        return [listener]
    if name == "worker":
        return [os.getppid()]
    if name == "init":
        return [1]
    out = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != 1:
            comm = (look.grab("/proc/%s/comm" % pid) or "").strip()
            line = (look.grab("/proc/%s/cmdline" % pid) or "").replace("\0", " ")
            if name == comm or name in line:
                out.append(int(pid))
    return [p for p in out if p != os.getpid()]


def do(step, listener):
    """One step, in its own process; returns its exit status."""
    for name in step.get("ignore", []) if isinstance(step.get("ignore"), list) else []:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if step.get("own_session") and "orphans" not in step:
        os.setsid()
    if "mark" in step:
        look.write(step["mark"], {"pid": os.getpid()})
    if "orphans" in step:
        orphans(step["orphans"], step)
    if "dump" in step:
        look.write(step["dump"], {"me": look.myself(sys.argv), "neighbours": look.neighbours(), "files": look.files()})
    if "kill" in step:
        hits = []
        for pid in find(step["kill"], listener):
            try:
                os.kill(pid, step.get("signal", 9))
                hits.append(pid)
            except OSError as why:
                hits.append("%d: %s" % (pid, why.strerror))
        look.write("kill-%s.json" % step["kill"].replace("/", "_"), hits)
    if "write" in step:
        for path, text in step["write"].items():
            with open(path, "w") as f:
                f.write(text)
    for path in step.get("delete", []):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    if "say" in step:
        print(step["say"], flush=True)
    if "exec" in step:
        os.execvp(step["exec"][0], step["exec"])
    if "sleep" in step:
        sleep_until(time.monotonic() + step["sleep"])
    return step.get("exit", 0)


def start(step, listener, env):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update(env)
        code = do(step, listener)
    finally:
        os._exit(code)


class Job:
    def __init__(self, request, pipe):
        self.request = request
        self.pipe = pipe
        self.cancelled = False
        self.failed = False

    def wait(self, pid):
        """Waits for a step; on cancellation INT, 7.5 s later TERM, 2.5 s later KILL, as the agent does."""
        ladder = []
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status == 0
            if not self.cancelled:
                ready = select.select([self.pipe], [], [], 0.01)[0]
                if ready:
                    os.read(self.pipe, 100)
                    self.cancelled = True
                    now = time.monotonic()
                    ladder = [(now, signal.SIGINT), (now + 7.5, signal.SIGTERM), (now + 10, signal.SIGKILL)]
            else:
                time.sleep(0.01)
            if ladder and time.monotonic() >= ladder[0][0]:
                os.kill(pid, ladder.pop(0)[1])

    def run(self):
        env = {"GITHUB_ACTIONS": "true", "CI": "true", "RUNNER_TRACKING_ID": "github_" + self.request["id"]}
        for step in self.request["spec"].get("steps", [{"sleep": self.request["spec"].get("seconds", 0)}]):
            if (self.cancelled or self.failed) and not step.get("always"):
                continue
            if not self.wait(start(step, self.request["listener"], env)) and not self.cancelled:
                self.failed = True
        return "Canceled" if self.cancelled else "Failed" if self.failed else self.request["spec"].get("result", "Succeeded")


def main(path, argv):
    if len(argv) != 4 or argv[1] != "spawnclient":
        sys.exit("usage: Runner.Worker spawnclient PIPE PIPE")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = int(argv[3])
    data = b""
    while b"\n" not in data:
        piece = os.read(pipe, 65536)
        if not piece:
            sys.exit(1)
        data += piece
    first, _, rest = data.partition(b"\n")
    job = Job(json.loads(first), pipe)
    job.cancelled = bool(rest)  # told to shut down before the first step
    os._exit(RESULTS.get(job.run(), 102))
