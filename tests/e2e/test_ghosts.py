"""No ghosts: what a registrar's death, a refused delete, a job that comes at the wrong moment leave behind, which is nothing or a receipt."""
import os
import signal
import time

import pytest

import credentials
import harness
import lives

ENTITY = "repos/acme/widget"


def registrar(pod):
    """Host pid of the registrar."""
    end = time.monotonic() + harness.LIMIT
    while True:
        for p in pod.processes().values():
            if p["comm"] == "init-registrar":
                return p["host_pid"]
        assert time.monotonic() < end, pod.text
        time.sleep(0.005)


@pytest.mark.parametrize("flow", ["v1", "v2"])
@pytest.mark.parametrize("when", ["delay", "delay_after"])
def test_a_registrar_killed_within_the_add_is_replaced_and_the_add_is_settled(run, make_world, flow, when):
    world = make_world(flow=flow)
    world.fault(step="%s.add" % flow, **{when: 1.0})
    pod = lives.start(run, world, INIT_LOG_LEVEL="debug")
    pod.wait_text("registering + about -> adding")
    if when == "delay_after":
        assert world.wait_for("registered")
    os.kill(registrar(pod), signal.SIGKILL)
    world.job(name="after")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded", pod.text


@pytest.mark.parametrize("flow", ["v1", "v2"])
def test_a_stop_right_after_the_registrar_died_within_the_add_leaves_nothing(run, make_world, flow):
    world = make_world(flow=flow)
    world.fault(step="%s.add" % flow, delay_after=2.0)
    pod = lives.start(run, world)
    assert world.wait_for("registered")
    os.kill(registrar(pod), signal.SIGKILL)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_stopped_registrar_is_woken_or_replaced(run, world):
    pod = lives.listening(run, world)
    os.kill(registrar(pod), signal.SIGSTOP)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    lives.deregistered(pod)


def test_a_registrar_killed_within_the_removal_is_replaced(run, world):
    pod = lives.listening(run, world)
    world.fault(step="v[12].delete", delay=1.0)
    pod.signal("TERM")
    pod.wait_text("the agent ended")
    time.sleep(0.3)  # the delete is under way, or about to be: either must do
    os.kill(registrar(pod), signal.SIGKILL)
    lives.ended(pod, world, 0)


def test_a_drain_deletes_an_idle_runner_before_it_stops_the_agent(run, world):
    pod = lives.listening(run, world, INIT_DRAIN="30s", INIT_LOG_LEVEL="debug", **credentials.pat(world, ENTITY))
    pod.wait_text("init: info: listening for jobs")  # init itself must have read it: before, there is nothing to drain
    pod.signal("TERM")
    lives.ended(pod, world, 0, timeout=15)
    # The service's own order: the agent still had its session when its runner was deleted.
    steps = [x["step"] for x in world.log() if x["step"]]
    assert "rest.delete" in steps
    assert not [x for x in steps[:steps.index("rest.delete")] if x.startswith("broker.") and "delete" in x], pod.text
    lives.deregistered(pod)


def test_a_drain_that_meets_a_job_waits_for_it(run, world):
    world.job(name="short", seconds=2)
    pod = lives.start(run, world, INIT_DRAIN="30s", **credentials.pat(world, ENTITY))
    assert world.wait_for("running")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"


def test_an_idle_limit_does_not_end_a_runner_that_github_has_just_given_a_job(run, make_world):
    world = make_world(flow="v2")
    pod = lives.listening(run, world, INIT_IDLE_TIMEOUT="2s", **credentials.pat(world, ENTITY))
    world.job(name="late", seconds=4)
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded", pod.text


def test_an_idle_limit_counts_anew_after_each_job(run, make_world):
    world = make_world(flow="v1")
    pod = lives.listening(run, world, INIT_IDLE_TIMEOUT="3s", RUNNER_EPHEMERAL="no")
    world.job(name="first", seconds=2)
    assert world.wait_for("jobs_done")
    began = time.monotonic()
    lives.ended(pod, world, 0)
    assert time.monotonic() - began > 2


def test_a_killed_agents_session_is_ended_with_its_own_key(run, make_world):
    world = make_world(flow="v2")
    world.job(name="deaf", steps=[{"mark": "begun", "sleep": 60, "ignore": ["SIGINT", "SIGTERM"]}])
    pod = lives.start(run, world)
    pod.report("begun")
    pod.signal("TERM")
    assert pod.wait() == 85, pod.text
    (ghost,) = world.runners()
    assert not ghost.get("online"), ghost
    assert "GitHub releases it at about" in lives.receipt(pod) or "10 minutes" in lives.receipt(pod), pod.text


def test_a_bare_jit_runner_that_is_stopped_says_what_is_left(run, make_world):
    world = make_world(flow="v1")
    pod = lives.listening(run, world, **credentials.jit(world, ENTITY))
    pod.signal("TERM")
    assert pod.wait() == 85, pod.text
    assert "jit-1" in lives.receipt(pod), pod.text


def test_a_jit_runner_beside_a_pat_is_removed(run, make_world):
    world = make_world(flow="v1")
    env = credentials.jit(world, ENTITY)
    env.update(ACCESS_TOKEN=credentials.pat(world, ENTITY)["ACCESS_TOKEN"], RUNNER_URL=lives.REPO_URL)
    pod = lives.listening(run, world, **env)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_the_agent_dies_in_the_very_moment_of_the_stop(run, make_world):
    world = make_world(flow="v2")
    for n in range(6):
        pod = lives.listening(run, world, RUNNER_NAME="twin-%d" % n)
        victim = pod.host_pid("Runner.Listener run")
        if n % 2:
            pod.signal("TERM")
        os.kill(victim, signal.SIGKILL)
        if n % 2 == 0:
            pod.signal("TERM")
        assert pod.wait() in (0, 75), pod.text
        assert world.runners() == [], pod.text


def test_five_signals_in_a_row_deregister_exactly_once(run, world):
    pod = lives.listening(run, world)
    for _ in range(5):
        if pod.alive():
            pod.signal("TERM")
        time.sleep(0.02)
    lives.ended(pod, world, 0)
    assert len([s for s in world.steps() if s in ("v1.delete", "v2.delete")]) == 1, world.steps()


def test_nothing_is_registered_on_a_node_whose_gate_failed(run, world):
    world.expected = "nobody serves HEAD /"  # the network check
    pod = lives.start(run, world, INIT_SELFTEST="fast", INIT_GPU="required")
    lives.refused(pod, world, 80)
    assert set(world.steps()) <= {None, "rest.root"}, world.steps()


def test_a_stop_within_the_gate_sends_nothing(run, make_world):
    world = make_world(flow="v2")
    world.expected = "nobody serves HEAD /"
    pod = lives.start(run, world, INIT_SELFTEST="fast", INIT_GPU="required", INIT_GPU_WAIT="60s")
    end = time.monotonic() + harness.LIMIT
    while not any(p["comm"] == "init-gate" for p in pod.processes().values()):
        assert time.monotonic() < end, pod.text
        time.sleep(0.01)
    pod.signal("TERM")
    assert pod.wait(15) == 0, pod.text
    assert set(world.steps()) <= {None, "rest.root"}, world.steps()


def tap(pod):
    """The tap: the one child of our image that is not the registrar."""
    known = (pod.pid, registrar(pod))
    found = [p["host_pid"] for p in pod.processes().values() if p["comm"].startswith("init") and p["host_pid"] not in known]
    assert len(found) == 1, pod.processes()
    return found[0]


def test_a_tap_that_was_stopped_does_not_cost_a_job_its_success(run, make_world):
    """The end of the agent was judged before the tap had told of the job: the life ended with 75, as if no job had come."""
    world = make_world(flow="v2")
    pod = lives.listening(run, world)
    os.kill(tap(pod), signal.SIGSTOP)
    world.job(name="x", seconds=0.5)
    lives.ended(pod, world, 0)
