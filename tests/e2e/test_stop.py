"""Stopping at any moment, by any signal: the exit status says that it was asked for, and the service knows no runner."""
import os
import signal
import time

import pytest

import harness
import lives

BUDGET = 9.0
ENDING = ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", signal.SIGRTMIN, signal.SIGRTMIN + 3,
          signal.SIGRTMAX, 32, 33]
IDLE = ["WINCH", "URG", "CONT", "TSTP", "TTIN", "TTOU", "PIPE", "XFSZ", "CHLD"]


@pytest.mark.parametrize("sig", ENDING, ids=str)
def test_a_terminating_signal_ends_an_idle_runner(run, make_world, sig):
    world = make_world(flow="v2")
    pod = lives.listening(run, world)
    t = time.monotonic()
    pod.signal(sig)
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < BUDGET + 1
    lives.deregistered(pod)


def test_an_idle_runner_stops_in_both_flows_and_says_where_the_signal_came_from(run, world):
    pod = lives.listening(run, world)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    lives.deregistered(pod)
    assert any("TERM" in line and "from outside the container" in line for line in pod.log), pod.text
    assert "Exiting..." in pod.text


def test_other_signals_do_not_end_it(run, make_world):
    world = make_world(flow="v2")
    pod = lives.listening(run, world, RUNNER_EPHEMERAL="no")
    for sig in IDLE:
        pod.signal(sig)
        world.job(name="after %s" % sig)
        assert world.wait_for("jobs_done"), (sig, pod.text)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert [j["result"] for j in world.snapshot()["jobs"]] == ["Succeeded"] * len(IDLE)


def test_a_signal_from_a_job_is_said_to_claim_its_pid(run, make_world):
    world = make_world(flow="v2")
    world.job(name="kill init", steps=[{"kill": "init", "signal": 15}, {"sleep": 30}])
    pod = lives.start(run, world)
    lives.ended(pod, world, 0)
    assert any("claims pid" in line for line in pod.log), pod.text


def test_a_stop_cancels_the_running_job_in_order(run, world):
    world.job(name="long", steps=[{"sleep": 60}, {"always": True, "dump": "cleanup.json"}])
    pod = lives.start(run, world)
    assert world.wait_for("running")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Canceled"
    assert pod.report("cleanup.json")
    assert "completed with result: Canceled" in pod.text


def test_a_job_that_ignores_everything_is_killed_within_the_budget(run, make_world):
    world = make_world(flow="v1")
    world.job(name="deaf", steps=[{"mark": "begun", "sleep": 60, "ignore": ["SIGINT", "SIGTERM"]}])
    pod = lives.start(run, world)
    pod.report("begun")
    t = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < BUDGET + 1


def test_a_killed_job_that_github_still_holds_is_85_with_id_and_url(run, make_world):
    world = make_world(flow="v2")
    world.job(name="deaf", steps=[{"mark": "begun", "sleep": 60, "ignore": ["SIGINT", "SIGTERM"]}])
    pod = lives.start(run, world)
    pod.report("begun")
    t = time.monotonic()
    pod.signal("TERM")
    assert pod.wait() == 85, pod.text
    assert time.monotonic() - t < BUDGET + 1
    (ghost,) = world.runners()
    lives.names_the_ghost(pod, ghost)


def test_an_agent_that_ignores_sigint_is_killed_and_its_registration_removed(run, world):
    pod = lives.listening(run, world, scenario={"ignore": ["SIGINT", "SIGTERM", "SIGQUIT"]}, INIT_STOP_TIMEOUT="5s")
    t = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < 6


def test_an_agent_that_is_stopped_is_killed_and_its_registration_removed(run, world):
    pod = lives.listening(run, world, scenario={"stop": True}, INIT_STOP_TIMEOUT="5s")
    t = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < 6


def test_a_second_signal_cancels_a_drain_and_a_third_kills(run, make_world):
    world = make_world(flow="v1")
    world.job(name="long", steps=[{"mark": "begun", "sleep": 60, "ignore": ["SIGINT", "SIGTERM"]}])
    pod = lives.start(run, world, INIT_DRAIN="50s")
    pod.report("begun")
    pod.signal("TERM")
    pod.wait_text("for the running job")
    assert pod.alive()
    time.sleep(1.1)  # signals within one second count as one: this is the time that must pass
    pod.signal("TERM")
    pod.wait_text("Exiting...")
    time.sleep(1.1)
    pod.signal("TERM")
    t = time.monotonic()
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < 5


def test_a_drain_lets_the_job_finish(run, world):
    world.job(name="long", steps=[{"sleep": 2.5}])
    pod = lives.start(run, world, INIT_DRAIN="30s")
    assert world.wait_for("running")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"


def test_two_signals_within_a_second_count_as_one(run, make_world):
    world = make_world(flow="v2")
    world.job(name="long", steps=[{"sleep": 60}])
    pod = lives.start(run, world)
    assert world.wait_for("running")
    pod.signal("TERM")
    pod.signal("INT")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Canceled"


STEPS = {"v1": ["registration", "v1.pools", "v1.lookup", "v1.add"], "v2": ["registration", "v2.groups", "v2.lookup", "v2.add"]}
MOMENTS = [(flow, step) for flow in STEPS for step in STEPS[flow]]


@pytest.mark.parametrize("flow, step", MOMENTS)
def test_a_stop_while_a_request_is_being_processed(run, make_world, flow, step):
    world = make_world(flow=flow)
    world.fault(step=step, delay=0.6)
    pod = lives.start(run, world)
    assert world.wait_for("step", step=step)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert "Listening" not in pod.text


@pytest.mark.parametrize("flow, step", MOMENTS)
def test_a_stop_while_an_answer_is_awaited(run, make_world, flow, step):
    world = make_world(flow=flow)
    world.fault(step=step, delay_after=0.6)
    pod = lives.start(run, world)
    assert world.wait_for("processed", step=step)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert "Listening" not in pod.text


@pytest.mark.parametrize("flow", ["v1", "v2"])
@pytest.mark.parametrize("how", [{"stall": "after"}, {"stall": "before"}, {"reset": "after", "delay_after": 0.4}], ids=str)
def test_a_stop_while_an_add_never_gets_its_answer(run, make_world, flow, how):
    world = make_world(flow=flow)
    world.fault(step=flow + ".add", **how)
    pod = lives.start(run, world)
    assert world.wait_for("step", step=flow + ".add")
    t = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < BUDGET + 1


@pytest.mark.parametrize("flow", ["v1", "v2"])
@pytest.mark.parametrize("how", [{"reset": "after"}, {"reset": "before"}, {"status": 502, "process": True, "body": "bad gateway"},
                                 {"status": 502, "body": "bad gateway"}, {"truncate": 30}, {"truncate": 300},
                                 {"garbage": "nonsense\r\n\r\n"}], ids=str)
def test_an_add_whose_answer_is_lost_is_settled_and_the_life_goes_on(run, make_world, flow, how):
    world = make_world(flow=flow)
    world.fault(step=flow + ".add", **how)
    pod = lives.start(run, world)
    code = None
    if world.wait_for("online", timeout=25):
        assert len(world.runners()) == 1
        pod.signal("TERM")
    code = pod.wait()
    # garbage is not the protocol: it may also end the start, but never with a registration left
    assert code == 0 or (code == 76 and "garbage" in how), pod.text
    assert world.runners() == []


def blocks_term(pod):
    """Whether PID 1 has reached its first system call, which blocks the signals that it then reads."""
    with open("/proc/%d/status" % pod.pid) as f:
        blocked = next(line.split()[1] for line in f if line.startswith("SigBlk:"))
    return int(blocked, 16) >> 14 & 1 == 1


def test_a_stop_in_the_first_instants_leaves_nothing(run, make_world):
    world = make_world(flow="v2")
    for n in range(12):
        pod = lives.start(run, world, RUNNER_NAME="early-%d" % n)
        time.sleep(n * 0.004)  # a different instant each time; any of them must do
        armed = blocks_term(pod)
        pod.signal("TERM")
        end = time.monotonic() + 2
        while "SIGTERM" not in pod.text and pod.alive() and time.monotonic() < end:
            time.sleep(0.005)
        if "SIGTERM" not in pod.text and pod.alive():
            # before its first system call a PID 1 has no handler, and the kernel drops the signal: nobody can do better
            assert not armed, (n, pod.text)
            pod.signal("TERM")
        assert pod.wait() == 0, (n, pod.text)
    assert world.runners() == []


def test_a_stop_while_the_agent_starts(run, world):
    pod = lives.start(run, world, scenario={"start_delay": 30})
    assert world.wait_for("registered")
    pod.host_pid("Runner.Listener")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    lives.deregistered(pod)


@pytest.mark.parametrize("how", [{"status": 502}, {"reset": "before"}, {"reset": "after"}, {"stall": "before", "seconds": 3}, {"status": 500},
                                 {"delay": 1}], ids=str)
def test_a_removal_that_fails_once_is_tried_again(run, world, how):
    pod = lives.listening(run, world)
    world.fault(step="v1.delete|v2.delete", **how)
    t = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < BUDGET + 1


def test_a_removal_that_finds_nothing_is_success(run, world):
    pod = lives.listening(run, world, scenario={"ignore": ["SIGINT"]}, INIT_STOP_TIMEOUT="4s")
    # the operator removes it by hand while the agent is being stopped
    pod.signal("TERM")
    world.remove(id=world.runners()[0]["id"])
    lives.ended(pod, world, 0)


def test_a_removal_that_cannot_be_done_is_85_and_names_the_ghost(run, world):
    pod = lives.listening(run, world)
    world.fault(path="/actions/", times=-1, status=503, body="down")
    world.fault(path="_apis/distributedtask/pools", times=-1, status=503, body="down")
    t = time.monotonic()
    pod.signal("TERM")
    assert pod.wait() == 85, pod.text
    assert time.monotonic() - t < BUDGET + 1
    (ghost,) = world.runners()
    lives.names_the_ghost(pod, ghost)


def test_an_expired_token_at_the_stop_is_said_and_is_85(run, world):
    pod = lives.listening(run, world)
    world.advance(seconds=3700)
    pod.signal("TERM")
    assert pod.wait() == 85, pod.text
    (ghost,) = world.runners()
    lives.names_the_ghost(pod, ghost)


def test_an_expired_token_after_a_job_that_was_seen_to_complete_is_0(run, world):
    world.job(name="j", seconds=1)
    pod = lives.start(run, world)
    assert world.wait_for("running")
    world.expire_registration_tokens()
    lives.ended(pod, world, 0)
    assert "not verified" in lives.receipt(pod) and "removed by the service after its job" in lives.receipt(pod), pod.text


def test_a_registrar_that_was_killed_is_replaced_and_the_removal_still_happens(run, world):
    pod = lives.listening(run, world, RUNNER_EPHEMERAL="no")
    victims = [p["host_pid"] for n, p in pod.processes().items() if n != 1 and p["cmdline"][:1] == pod.processes()[1]["cmdline"][:1]]
    assert victims
    for v in victims:
        os.kill(v, signal.SIGKILL)
    world.job(name="after", seconds=0.05)
    assert world.wait_for("jobs_done")
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_everything_that_a_job_left_is_swept(run, world):
    world.job(name="messy", steps=[{"orphans": 200, "seconds": 600, "ignore": True, "own_session": True}])
    pod = lives.start(run, world)
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"


def test_orphans_that_end_are_reaped_while_the_runner_listens(run, make_world):
    world = make_world(flow="v2")
    world.job(name="orphans", steps=[{"orphans": 200, "seconds": 0.3}])
    pod = lives.start(run, world, RUNNER_EPHEMERAL="no")
    assert world.wait_for("jobs_done")
    end = time.monotonic() + 15
    while any(p["state"] == "Z" for p in pod.processes().values()) or len(pod.processes()) > 8:
        assert time.monotonic() < end, pod.processes()
        time.sleep(0.05)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_fork_storm_does_not_outlive_the_stop(run, make_world):
    world = make_world(flow="v2")
    world.job(name="storm", steps=[{"orphans": 5, "seconds": 60, "fork_on": True, "own_session": True, "ignore": True}])
    pod = lives.start(run, world, RUNNER_EPHEMERAL="no")
    assert world.wait_for("jobs_done")
    t = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < BUDGET + 1


@pytest.mark.parametrize("flow, sig", [("v1", "SEGV")] + [("v2", s) for s in ("SEGV", "ABRT", "BUS", "ILL", "FPE", "TRAP", "SYS")])
def test_a_fault_in_pid_1_still_deregisters(run, make_world, flow, sig):
    world = make_world(flow=flow)
    pod = lives.listening(run, world)
    pod.signal(sig)
    code = pod.wait()
    assert code not in (0,), pod.text
    # the removal is the registrar's; the namespace ends with PID 1, so it must have happened by now
    assert world.runners() == [], pod.text


assert harness.LIMIT > BUDGET
