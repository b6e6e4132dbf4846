"""The driver of the protocol (``ghcli``) inside a pod, against a test GitHub of the test's own: fixtures for tests/gh and tests/long."""
import fcntl
import json
import os
import subprocess
import time

import pytest

import harness

PROGRAM = os.path.join(harness.REPO, "build", "ghcli")


@pytest.fixture(scope="session")
def ghcli():
    # one worker builds, the others wait: a program that is being linked cannot be run
    os.makedirs(os.path.join(harness.REPO, "build"), exist_ok=True)
    with open(os.path.join(harness.REPO, "build", "ghcli.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", harness.REPO, "build/ghcli"], check=True, stdout=subprocess.DEVNULL)
    return PROGRAM


class Driver:
    """A run of ``ghcli``: its answers, one a command, in order."""

    def __init__(self, pod, stdin):
        self.pod, self.stdin, self.seen = pod, stdin, 0

    def answers(self):
        return [json.loads(x) for x in self.pod.out.decode().splitlines(keepends=True) if x.endswith("\n")]

    def next(self, timeout=harness.LIMIT):
        end = time.monotonic() + timeout
        while len(self.answers()) <= self.seen:
            if not self.pod.alive():
                self.pod.wait()  # its last output has been read then
                assert len(self.answers()) > self.seen, "the driver ended without an answer\n" + self.pod.text
            if time.monotonic() > end:
                raise harness.Late("no answer\n" + self.pod.text)
            time.sleep(0.005)
        self.seen += 1
        return self.answers()[self.seen - 1]

    def go(self):
        os.write(self.stdin, b"\n")

    def done(self):
        status = self.pod.wait()
        assert status == 0, "ghcli ended with %d\n%s" % (status, self.pod.text)
        return self.answers()


@pytest.fixture
def drive(run, ghcli):
    """``drive(world, url, "register", "remove", NAME="value")``: starts the driver; ``RUNNER_TOKEN`` is minted unless given (None: no
    token)."""
    pipes = []

    def start(world, url, *commands, **env):
        full = harness.life_env(world, url or "https://github.com/acme")
        full.update(env, RUNNER_URL=url)
        full = {k: v for k, v in full.items() if v is not None}
        r, w = os.pipe()
        pipes.append(w)
        pod = run(argv=list(commands), env=full, program=ghcli, world=world, stdin=r)
        os.close(r)
        return Driver(pod, w)
    yield start
    for fd in pipes:
        os.close(fd)


@pytest.fixture
def ask(drive):
    """As ``drive``, waits for the end and returns the answers."""
    def go(world, url, *commands, **env):
        d = drive(world, url, *commands, **env)
        answers = d.done()
        for a in answers:
            a["log"] = d.pod.text
        return answers
    return go


@pytest.fixture(params=["v1", "v2"])
def each_world(request, make_world):
    """A GitHub in each registration flow, which it tells as ``call_flow``."""
    w = make_world(flow=request.param)
    w.call_flow = request.param
    return w
