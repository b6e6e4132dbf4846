"""Nothing that ends stays a zombie, however much ends at once."""
import os
import time

import pytest

from inits import OURS, PAYLOAD, poll


def zombies(run):
    n = 0
    for pid in run.children():
        try:
            n += run.status(pid)["State"][0] == "Z"
        except OSError:
            pass
    return n


def test_a_hundred_orphans_are_adopted_and_reaped(program, start):
    run = start(program, ["sh", "-c", "%s orphans 100; exec %s park" % (PAYLOAD, PAYLOAD)], raw=True)
    run.wait_line("ready")
    poll(lambda: len(run.children()) == 1, 5, "no child but CMD")


def test_the_status_of_an_orphan_is_not_taken_for_cmds(program, start):
    shell = "(sh -c 'sleep 0.05; exit 9' &) ; (exit 8) & sleep 0.2; exit 3"
    assert start(program, ["sh", "-c", shell], raw=True).wait(4) == 3


def test_cmd_and_its_child_ending_together_never_hang(program, start):
    for _ in range(60):
        assert start(program, ["twins"]).wait(3) == 137


def parked(run_start, program, n):
    r, w = os.pipe()
    run = run_start(program, ["parked", n], stdin=r)
    os.close(r)
    run.wait_line("ready", limit=60)
    poll(lambda: len(run.children()) == n + 1, 10, "%d orphans" % n)
    return run, w


def test_thousands_of_zombies_behind_one_sigchld_are_drained_at_once(program, start):
    n = 2000  # the benchmark drains 10,000
    run, w = parked(start, program, n)
    memory = int(run.status()["VmRSS"].split()[0])
    run.signal("STOP")
    os.close(w)
    poll(lambda: zombies(run) == n, 20, "%d zombies" % n)
    assert int(run.status()["ShdPnd"], 16) & 1 << 16
    run.signal("CONT")
    poll(lambda: len(run.children()) == 1, 3, "an end of the zombies")
    if program is OURS:
        assert int(run.status()["VmRSS"].split()[0]) <= memory + 16


def test_a_storm_of_orphans_does_not_delay_a_stop(program, start):
    run = start(program, ["sh", "-c", "%s orphans 1000000 & exec %s park" % (PAYLOAD, PAYLOAD)], raw=True)
    run.wait_line("ready")
    began = time.monotonic()
    run.signal("TERM")
    assert run.wait(5) == 143
    assert time.monotonic() - began < 4


def test_a_child_that_ended_before_init_looked_is_seen(program, start):
    for _ in range(40):
        assert start(program, ["exit", 2]).wait(2) == 2


@pytest.mark.promise("dumb-init", "catatonit")
def test_an_idle_init_does_not_wake_up(program, start):
    run = start(program, ["park"])
    run.wait_line("ready")
    poll(lambda: run.status()["State"][0] == "S", what="an idle init")
    before = run.status()["voluntary_ctxt_switches"]
    end = time.monotonic() + 2.5  # the time is what is measured
    while time.monotonic() < end:
        time.sleep(0.1)
    assert run.status()["voluntary_ctxt_switches"] == before


@pytest.mark.promise()
def test_an_idle_init_is_small(program, start):
    run = start(program, ["park"])
    run.wait_line("ready")
    with open("/proc/%d/smaps_rollup" % run.pid) as f:
        kb = dict((w.split()[0], int(w.split()[1])) for w in f.read().split("\n")[1:] if w)
    assert kb["Rss:"] <= 250 and kb["Private_Dirty:"] <= 64
