"""A stop always comes to its end, and gives everything below CMD its chance before that."""
import os
import shutil
import subprocess
import time

import pytest

from inits import OURS, PAYLOAD, Late, poll

QUICK = dict(os.environ, INIT_STOP_TIMEOUT="1500ms")


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def test_a_normal_cmd_ends_at_once_on_term(program, start):
    run = start(program, ["park"])
    run.wait_line("ready")
    run.signal("TERM")
    assert run.wait(3) == 143


def test_a_cmd_that_ignores_everything_is_killed_within_the_budget(program, start):
    run = start(program, ["ignore"], env=QUICK)
    run.wait_line("ready")
    began = time.monotonic()
    run.signal("TERM")
    assert run.wait(4) == 137
    if program is OURS:
        assert time.monotonic() - began >= 0.9  # it had its time


def test_a_stopped_cmd_ends_on_term(program, start):
    run = start(program, ["stopped"])
    run.wait_line("ready")
    child = run.child()
    poll(lambda: run.status(child)["State"][0] == "T", what="a stopped CMD")
    run.signal("TERM")
    assert run.wait(3) == 143


def test_a_cmd_with_a_stopped_child_ends_and_takes_it_along(program, start):
    run = start(program, ["stopped-child"])
    run.wait_line("ready")
    below = run.tree()
    run.signal("TERM")
    assert run.wait(4) == 143
    assert all(gone(p) for p in below)


def test_grandchildren_get_time_to_clean_up(program, start, tmp_path):
    mark = tmp_path / "mark"
    run = start(program, ["slow", mark])
    run.wait_line("ready")
    run.signal("TERM")
    assert run.wait(5) == 143
    assert mark.exists() and mark.read_text() == "CLEANED"


def test_what_a_cmd_leaves_behind_when_it_ends_by_itself_gets_time_too(program, start, tmp_path):
    mark = tmp_path / "mark"
    run = start(program, ["sh", "-c", "%s slow %s & sleep 0.2; exit 4" % (PAYLOAD, mark)], raw=True)
    assert run.wait(6) == 4
    assert mark.exists() and mark.read_text() == "CLEANED"


@pytest.mark.parametrize("pid1", [True, False], ids=["pid1", "ordinary"])
def test_a_grandchild_that_left_the_session_and_ignores_term_dies_too(program, start, tmp_path, pid1):
    run = start(program, ["escapee", tmp_path / "pid"], pid1=pid1, env=QUICK)
    run.wait_line("ready")
    below = poll(lambda: (lambda t: t if len(t) >= 2 else None)(run.tree()), 5, "the escapee below init")
    run.signal("TERM")
    assert run.wait(6) == (143 if pid1 or program is not OURS else 143)
    if not pid1:
        poll(lambda: all(gone(p) for p in below), 1, "the escapee's end")


@pytest.mark.parametrize("pid1", [True, False], ids=["pid1", "ordinary"])
def test_a_process_that_forks_faster_than_it_is_killed_ends(program, start, pid1):
    run = start(program, ["rabbit"], pid1=pid1, env=QUICK)
    run.wait_line("ready")
    run.signal("TERM")
    code = run.wait(6)
    assert code in (137, -9)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.count("payload rabbit")
    assert left == 0


@pytest.mark.promise()
def test_a_second_term_while_the_rest_is_ending_does_not_wait_for_it(program, start, tmp_path):
    shell = "trap 'exit 7' TERM; %s ignore & while :; do sleep 0.01; done" % PAYLOAD
    run = start(program, ["sh", "-c", shell], raw=True, env=dict(os.environ, INIT_STOP_TIMEOUT="60s"))
    run.wait_line("ready")
    cmd = run.child()
    run.signal("TERM")
    # Reaped, not only dead: a signal that init reads before it sees the end is still CMD's.
    poll(lambda: not os.path.exists("/proc/%d" % cmd), 3, "the end of CMD")
    began = time.monotonic()
    run.signal("TERM")
    assert run.wait(5) == 7
    assert time.monotonic() - began < 1.8  # below the time that the rest would have had


@pytest.mark.promise()
def test_five_terms_are_passed_on_and_change_nothing_else(program, start):
    run = start(program, ["signals", 10], env=dict(os.environ, INIT_STOP_TIMEOUT="60s"))
    run.wait_line("ready")
    for n in range(5):
        run.signal("TERM")
        run.wait_line("sig 15", n + 1, 3)
    run.signal("USR1")
    assert run.wait(3) == 0


@pytest.mark.promise()
def test_a_cmd_that_takes_its_time_is_left_alone_without_a_budget(program, start):
    run = start(program, ["signals", 10], env=dict(os.environ, INIT_STOP_TIMEOUT="0"))
    run.wait_line("ready")
    run.signal("TERM")
    run.wait_line("sig 15", 1, 3)
    with pytest.raises(Late):
        run.wait(1.5)
    run.signal("USR1")
    assert run.wait(3) == 0


def test_a_cmd_that_ends_as_the_signal_comes_gives_its_own_status_or_the_signals(program, start):
    for n in range(40):
        run = start(program, ["sh", "-c", "sleep 0.01; exit 0"], raw=True)
        end = time.monotonic() + 0.008 + n * 0.0001
        while time.monotonic() < end:
            pass
        if run.alive():
            try:
                run.signal("TERM")
            except ProcessLookupError:
                pass
        assert run.wait(3) in (0, 143)


@pytest.mark.promise()
def test_without_proc_everything_ends_all_the_same(program, start):
    # Nothing below is known then; PID 1 of its own namespace may send to all.
    run = start(program, ["rabbit"], env=dict(QUICK, PAYLOAD_NO_PROC="1"))
    run.wait_line("ready")
    run.signal("TERM")
    assert run.wait(6) == 137


@pytest.mark.promise()
def test_what_init_may_not_signal_is_named_and_left(program, start):
    folder = subprocess.run(["mktemp", "-d", "/tmp/pid1.XXXXXX"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        os.chmod(folder, 0o755)
        shutil.copy(OURS.path, folder + "/init")
        shutil.copy(PAYLOAD, folder + "/payload")
        shutil.copy(PAYLOAD, folder + "/rooted")
        os.chmod(folder + "/rooted", 0o4755)
        local = type(program)("init", [folder + "/init"], None)
        run = start(local, ["sh", "-c", "%s/rooted rooted & wait" % folder], raw=True, env=dict(os.environ, INIT_STOP_TIMEOUT="1s"),
                    before=["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"])
        run.wait_line("ready")
        run.signal("TERM")
        run.wait(6)
        assert "could not be ended" in run.err and "rooted, uid 0" in run.err
    finally:
        shutil.rmtree(folder)
