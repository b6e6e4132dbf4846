"""What reaches CMD, and what does not."""
import os
import signal


import pytest

from inits import OURS, PAYLOAD, poll

# KILL and STOP cannot be had, CHLD is init's own, PIPE and XFSZ come from its own writes, the rest is raised by faults.
PLAIN = [s for s in range(1, 32) if s not in (9, 19, 17, 13, 25, 11, 7, 4, 8, 5, 31, 6)]
TERMINAL = (20, 21, 22)


def test_every_signal_that_is_not_inits_own_reaches_cmd_in_order(program, start):
    run = start(program, ["signals", 15])
    run.wait_line("ready")
    sent = [s for s in PLAIN if s not in TERMINAL + (15,)]
    for n, s in enumerate(sent):
        run.signal(s)
        assert run.wait_line("sig", n + 1, 3) == s
    run.signal("TERM")
    assert run.wait(3) == 0


@pytest.mark.promise("tini")
def test_stop_signals_of_a_terminal_reach_cmd(program, start):
    run = start(program, ["signals", 15])
    run.wait_line("ready")
    run.signal("TSTP")
    assert run.wait_line("sig", 1, 3) == signal.SIGTSTP


def test_real_time_signals_reach_cmd_the_first_three_too(program, start):
    run = start(program, ["signals", 15])
    run.wait_line("ready")
    for n, s in enumerate(list(range(34, 65)) + ([32, 33] if program is OURS else [])):
        run.signal(s)
        assert run.wait_line("sig", n + 1, 3) == s


def test_two_terms_in_a_row_both_reach_cmd(program, start):
    run = start(program, ["signals", 10])
    run.wait_line("ready")
    for n in (1, 2):
        run.signal("TERM")
        assert run.wait_line("sig 15", n, 3) == 15


@pytest.mark.promise("tini -g", "dumb-init")
def test_a_signal_reaches_the_whole_group_of_cmd(program, start):
    run = start(program, ["sh", "-c", "trap '' USR1; %s signals 10 & wait; exit 5" % PAYLOAD], raw=True)
    run.wait_line("ready")
    run.signal("USR1")
    assert run.wait_line("sig", 1, 3) == 10
    assert run.wait(3) == 5


@pytest.mark.promise("tini", "catatonit")
def test_a_cmd_that_left_its_group_is_reached_all_the_same(program, start):
    run = start(program, ["regroup"])
    run.wait_line("ready")
    run.signal("TERM")
    assert run.wait(4) == 143


def test_a_signal_from_inside_the_container_is_passed_on(program, start):
    run = start(program, ["sh", "-c", "trap 'exit 6' USR1; kill -USR1 1; while :; do sleep 0.01; done"], raw=True)
    assert run.wait(4) == 6


def test_a_stopped_cmd_is_not_an_ended_one(program, start):
    run = start(program, ["signals", 15])
    run.wait_line("ready")
    child = run.child()
    for sig, state in ((signal.SIGSTOP, "T"), (signal.SIGCONT, "S")) * 3:
        os.kill(child, sig)
        poll(lambda: run.status(child)["State"][0] == state, what="state " + state)
    assert run.alive()
    run.signal("TERM")
    assert run.wait(3) == 0


def test_init_stopped_and_continued_from_outside_goes_on(program, start):
    run = start(program, ["signals", 15])
    run.wait_line("ready")
    run.signal("STOP")
    poll(lambda: run.status()["State"][0] == "T", what="a stopped init")
    run.signal("USR2")
    run.signal("CONT")
    assert run.wait_line("sig 12", 1, 3) == 12
    run.signal("TERM")
    assert run.wait(3) == 0


@pytest.mark.promise()
def test_interrupted_system_calls_are_tried_again(program, start):
    inject = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=ppoll,read,wait4,waitid:error=EINTR:when=1+3"]
    run = start(program, ["signals", 15], pid1=False, before=inject)
    run.wait_line("ready")
    tracee = poll(lambda: run.children(), what="the traced init")[0]
    for n in range(4):
        os.kill(tracee, signal.SIGUSR1)
        run.wait_line("sig 10", n + 1, 5)
    os.kill(tracee, signal.SIGTERM)
    assert run.wait(5) == 0


@pytest.mark.promise()
def test_a_wait_that_fails_is_survived_and_told_once(program, start):
    inject = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=ppoll:error=ENOMEM:when=1+2"]
    run = start(program, ["signals", 15], pid1=False, before=inject)
    run.wait_line("ready")
    tracee = poll(lambda: run.children(), what="the traced init")[0]
    for n in range(3):
        os.kill(tracee, signal.SIGUSR1)
        run.wait_line("sig 10", n + 1, 5)
    os.kill(tracee, signal.SIGTERM)
    assert run.wait(5) == 0
    assert run.err.count("cannot wait") == 1


@pytest.mark.promise()
def test_a_limit_on_inits_own_processor_time_is_not_cmds_signal(program, start):
    # SIGXCPU from the kernel is about whoever used the time.
    run = start(program, ["signals", 15])
    run.wait_line("ready")
    run.signal("XCPU")  # sent by somebody: passed on
    assert run.wait_line("sig", 1, 3) == signal.SIGXCPU
