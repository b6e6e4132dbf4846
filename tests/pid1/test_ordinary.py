"""Not PID 1: behind `docker run --init`, in a shared pid namespace, under a shell."""
import os
import signal
import subprocess

import pytest

from inits import OURS, PAYLOAD, poll


@pytest.mark.promise("catatonit")
def test_orphans_come_to_init_as_to_a_reaper(program, start):
    run = start(program, ["sh", "-c", "(sleep 1000 &) ; exec %s park" % PAYLOAD], raw=True, pid1=False)
    run.wait_line("ready")
    poll(lambda: len(run.children()) == 2, 5, "the orphan below init")
    run.signal("TERM")
    assert run.wait(5) == 143


@pytest.mark.promise()
def test_a_stop_ends_nothing_outside_the_own_tree(program, start):
    sentinel = subprocess.Popen(["sleep", "1000"])
    try:
        run = start(program, ["rabbit"], pid1=False, env=dict(os.environ, INIT_STOP_TIMEOUT="1s"))
        run.wait_line("ready")
        run.signal("TERM")
        assert run.wait(6) == 137
        assert sentinel.poll() is None
    finally:
        sentinel.kill()
        sentinel.wait()


def test_behind_another_init_signals_and_status_come_through(program, start):
    run = start(OURS, program.argv + [PAYLOAD, "park"], raw=True)
    run.wait_line("ready")
    run.signal("TERM")
    assert run.wait(5) == 143


def test_an_ordinary_process_ends_with_the_status_of_cmd(program, start):
    for code in (0, 1, 7, 255):
        assert start(program, ["exit", code], pid1=False).wait(3) == code


@pytest.mark.promise()
def test_a_fatal_signal_never_leaves_cmd_alone(program, start):
    # kill -9 of an ordinary init cannot be helped; TERM and INT are CMD's own matter.
    run = start(program, ["park"], pid1=False)
    run.wait_line("ready")
    child = run.child()
    os.kill(run.pid, signal.SIGINT)
    assert run.wait(4) == 130
    assert not os.path.exists("/proc/%d" % child)
