"""Every way in which the agent can end, and what init makes of it."""
import os
import signal
import time

import pytest

import lives


def ends(run, world, code, scenario, **env):
    pod = lives.start(run, world, scenario=scenario, **env)
    lives.ended(pod, world, code)
    return pod


def test_exit_0_while_idle_deregisters_and_is_0(run, world):
    pod = ends(run, world, 0, {"exit": 0, "at": "listening"})
    lives.deregistered(pod)


@pytest.mark.parametrize("lines, code", [
    ([], 75),
    (["An error occurred: something unheard of"], 75),
    (["Failed to create a session. The runner registration has been deleted from the server, please re-configure."], 75),
    (["An error occurred: invalid_client"], 75),
    (["An error occurred: Access to the path '/home/ci-runner/runner/_work' is denied."], 73),
    (["Permission to read the directory contents is required for '/home/ci-runner/runner' and each directory up the hierarchy."], 73),
    (["An error occurred: Runner is not configured."], 70),
])
def test_exit_1_is_told_apart_by_its_last_error(run, make_world, lines, code):
    world = make_world(flow="v2")
    ends(run, world, code, {"exit": 1, "at": "listening", "stderr": lines})


def test_exit_2_is_started_again_with_the_same_registration(run, world):
    world.job(name="j")
    pod = lives.start(run, world, scenario={"starts": [{"exit": 2, "at": "connected"}, {}]})
    lives.ended(pod, world, 0)
    assert len(pod.agents()) == 2
    assert pod.agents()[0]["settings"] == pod.agents()[1]["settings"]
    assert [s for s in world.steps() if s.endswith(".add")] != [] and len([s for s in world.steps() if s.endswith(".add")]) == 1


def test_waiting_for_the_next_start_costs_no_processor_time(run, make_world):
    """The tap's closed report pipe stayed among the watched descriptors: PID 1 spun until the next start."""
    world = make_world(flow="v2")
    pod = lives.start(run, world, scenario={"exit": 2, "at": "start"})
    end = time.monotonic() + 60
    while len(pod.agents()) < 4:
        assert time.monotonic() < end, pod.text
        time.sleep(0.05)
    with open("/proc/%d/stat" % pod.pid) as f:
        used = sum(int(x) for x in f.read().rpartition(")")[2].split()[11:13]) / os.sysconf("SC_CLK_TCK")
    pod.signal("TERM")
    pod.wait()
    assert used < 0.5, "PID 1 used %g s" % used


@pytest.mark.parametrize("ephemeral", ["yes", "no"])
def test_an_update_is_waited_for_and_the_new_version_is_started(run, make_world, ephemeral):
    world = make_world(flow="v2", expected_version=None)
    pod = lives.listening(run, world, RUNNER_DISABLE_UPDATE="no", RUNNER_EPHEMERAL=ephemeral)
    world.order(type="AgentRefresh", body={"targetVersion": "2.337.0"})
    pod.wait_text("Current runner version: '2.337.0'")
    assert not os.path.exists(os.path.join(pod.root, "update.finished"))
    world.job(name="j")
    assert world.wait_for("jobs_done")
    if ephemeral == "no":
        pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_an_update_that_never_finishes_does_not_loop(run, make_world):
    world = make_world(flow="v2", expected_version=None)
    pod = lives.listening(run, world, RUNNER_DISABLE_UPDATE="no", RUNNER_EPHEMERAL="no")
    world.order(type="AgentRefresh", body={"targetVersion": "2.337.0", "broken": True})
    assert pod.wait(90) in (75, 126, 127), pod.text
    assert world.runners() == []


def test_exit_5_registers_anew_once_and_then_gives_up(run, world):
    pod = lives.start(run, world, scenario={"exit": 5, "at": "start"})
    assert pod.wait(120) == 75, pod.text
    assert world.runners() == []
    assert 1 <= len(pod.agents()) <= 2


def test_exit_5_is_cured_by_a_fresh_registration(run, world):
    world.job(name="j")
    pod = lives.start(run, world, scenario={"starts": [{"exit": 5, "at": "start"}, {}]})
    assert pod.wait(120) in (0, 75), pod.text
    assert world.runners() == []


def test_exit_7_is_83_with_the_remedy(run, world):
    pod = ends(run, world, 83, {"exit": 7, "at": "connected"})
    assert any("RUNNER_VERSION" in line for line in pod.log), pod.text


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV])
def test_an_agent_killed_while_idle_is_75_and_nothing_is_left(run, world, sig):
    pod = lives.listening(run, world)
    os.kill(pod.host_pid("Runner.Listener run"), sig)
    lives.ended(pod, world, 75)


def test_an_agent_killed_within_a_job_is_not_started_again(run, make_world):
    world = make_world(flow="v1")
    world.job(name="suicide", steps=[{"kill": "listener"}, {"sleep": 30}])
    pod = lives.start(run, world)
    assert pod.wait() == 75, pod.text
    assert world.runners() == [] and len(pod.agents()) == 1


def test_a_worker_that_is_killed_fails_the_job_and_the_life_ends_well(run, world):
    world.job(name="suicide", steps=[{"kill": "worker"}, {"sleep": 1}])
    pod = lives.start(run, world)
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Failed"


def test_a_failed_job_is_no_failure_of_the_runner(run, world):
    world.job(name="red", steps=[{"exit": 3}])
    pod = lives.start(run, world)
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Failed"


def test_the_hosted_result_codes_count_as_success(run, world):
    world.job(name="red", steps=[{"exit": 3}])
    pod = lives.start(run, world, ACTIONS_RUNNER_RETURN_JOB_RESULT_FOR_HOSTED="true")
    lives.ended(pod, world, 0)


def test_an_agent_that_cannot_be_executed_is_126(run, make_world, tmp_path):
    import harness
    world = make_world(flow="v2")
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.chmod(str(tmp_path), 0o755)
    os.chmod(os.path.join(root, "bin", "Runner.Listener"), 0o644)
    pod = lives.start(run, world, root=root)
    assert pod.wait() in (126, 78), pod.text
    assert world.runners() == []


def test_a_registration_removed_by_an_operator_ends_the_runner(run, world):
    pod = lives.listening(run, world, RUNNER_EPHEMERAL="no")
    world.remove(id=world.runners()[0]["id"])
    assert pod.wait() in (0, 75), pod.text
    assert "no longer exists on the server" in pod.text


def test_a_job_that_was_withdrawn_ends_the_ephemeral_runner(run, world):
    world.job(name="withdrawn", withdrawn=True)
    pod = lives.start(run, world)
    assert pod.wait() == 75, pod.text
    assert world.runners() == []


def test_a_job_cannot_make_init_forget_its_registration(run, world):
    # it deletes and rewrites the files that a shell entrypoint would read at the stop
    world.job(name="liar", steps=[{"write": {harness_root(".runner"): '{"agentId": 1, "agentName": "x"}', harness_root(".env"): "PATH=/nowhere\n"},
                                   "delete": [harness_root(".credentials")]}, {"kill": "listener"}, {"sleep": 10}])
    pod = lives.start(run, world)
    # GitHub holds the lock of the killed job, and an end of init's own may take 45 s over the removal
    assert pod.wait(80) in (75, 85), pod.text
    assert all(x["path"].rsplit("/", 1)[-1] != "1" for x in world.log() if x["step"] in ("v1.delete", "v2.delete"))


def harness_root(name):
    import harness
    return harness.ROOT + "/" + name


def test_session_conflicts_are_waited_out_by_the_agent(run, make_world):
    world = make_world(flow="v2", session_refusals=3)
    pod = lives.listening(run, world)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_an_idle_limit_ends_an_idle_runner_with_0(run, world):
    pod = lives.listening(run, world, INIT_IDLE_TIMEOUT="1s")
    t = time.monotonic()
    lives.ended(pod, world, 0)
    assert time.monotonic() - t < 12
    lives.deregistered(pod)
