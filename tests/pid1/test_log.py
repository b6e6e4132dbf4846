"""A log that nobody drains or reads stops neither reaping nor signals, and harms no CMD."""
import fcntl
import os

import pytest

from inits import PAYLOAD, poll

# Each init as talkative as it can be: that is when a log can block it.
LOUD = dict(os.environ, INIT_LOG_LEVEL="debug", TINI_VERBOSITY="3", DUMB_INIT_DEBUG="1", CATATONIT_DEBUG="1")


def full_pipe():
    r, w = os.pipe()
    flags = fcntl.fcntl(w, fcntl.F_GETFL)
    fcntl.fcntl(w, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(w, b"x" * 4096)
    except BlockingIOError:
        pass
    fcntl.fcntl(w, fcntl.F_SETFL, flags)
    return r, w


@pytest.mark.parametrize("before", [[], [PAYLOAD, "refuse"]], ids=["nowait", "refused"])
@pytest.mark.parametrize("pid1", [True, False], ids=["pid1", "ordinary"])
def test_a_full_log_delays_neither_reaping_nor_a_stop(program, start, before, pid1):
    r, w = full_pipe()
    try:
        shell = "%s orphans 20 >/dev/null; exec %s park >/dev/null" % (PAYLOAD, PAYLOAD)
        run = start(program, ["sh", "-c", shell], raw=True, stdout=w, stderr=w, env=LOUD, before=before, pid1=pid1)
        os.close(w)
        child = run.child()
        poll(lambda: not [c for c in run.children() if run.status(c)["State"][0] == "Z"], 3, "no zombie")
        poll(lambda: run.status(child)["Name"] == "payload", 3, "a CMD that runs")
        run.signal("TERM")
        assert run.wait(3) == 143 if pid1 else run.wait(3) in (143, -15)
        assert not fcntl.fcntl(r, fcntl.F_GETFL) & os.O_NONBLOCK
    finally:
        os.close(r)


def test_a_log_whose_reader_is_gone_does_not_change_the_status(program, start):
    r, w = os.pipe()
    os.close(r)
    run = start(program, ["exit", 5], stdout=w, stderr=w, env=LOUD)
    os.close(w)
    assert run.wait(3) == 5


def test_a_log_whose_reader_goes_away_does_not_harm_cmd(program, start):
    r, w = os.pipe()
    run = start(program, ["sh", "-c", "%s orphans 5; exec %s signals 15 >/dev/null" % (PAYLOAD, PAYLOAD)], raw=True, stdout=w, stderr=w,
                env=LOUD)
    os.close(w)
    os.close(r)
    child = run.child()
    poll(lambda: run.status(child)["Name"] == "payload", 3, "a CMD that runs")
    poll(lambda: run.waits_for_signals(child), 3, "a CMD that waits")
    run.signal("USR1")
    run.signal("TERM")
    assert run.wait(3) == 0


@pytest.mark.promise()
def test_init_says_nothing_that_was_not_asked_for(program, start):
    run = start(program, ["exit", 0])
    assert run.wait(3) == 0
    assert run.err == ""


@pytest.mark.promise()
def test_not_being_pid_1_is_told_at_debug_level_only(program, start):
    quiet = start(program, ["exit", 0], pid1=False)
    loud = start(program, ["exit", 0], pid1=False, env=LOUD)
    assert (quiet.wait(3), loud.wait(3)) == (0, 0)
    assert quiet.err == "" and "not PID 1" in loud.err
