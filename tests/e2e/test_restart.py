"""A container that is started again with its file system kept: what the life before left is cleaned, and storms wait."""
import os
import signal
import time

import pytest

import credentials
import harness
import lives

ENTITY = "repos/acme/widget"


@pytest.fixture
def kept(tmp_path):
    """A runner root and a state directory that outlive their container."""
    os.chmod(str(tmp_path), 0o755)
    root, state = str(tmp_path / "runner"), str(tmp_path / "state")
    harness.make_runner_root(root)
    os.mkdir(state)
    os.chown(state, 1000, 1000)
    return {"root": root, "binds": {"/var/state": state}}


def again(run, world, kept, **env):
    return lives.start(run, world, INIT_STATE_DIR="/var/state", **dict(kept, **env))


def killed(pod):
    """PID 1 and with it everything is gone, without a chance to do anything. (The registrar sees its socket end a moment before the
    kernel kills it, and is often fast enough to remove the runner: here it is stopped, so that there is something left.)"""
    for p in pod.processes().values():
        if p["comm"] == "init-registrar":
            os.kill(p["host_pid"], signal.SIGSTOP)
    os.kill(pod.pid, signal.SIGKILL)
    assert pod.wait() == -9


def up(run, world, kept, **env):
    pod = again(run, world, kept, **env)
    pod.wait_text("listening for jobs")
    return pod


def test_what_a_killed_life_left_is_removed_before_the_next_registers(run, world, kept):
    env = credentials.pat(world, ENTITY)
    killed(up(run, world, kept, RUNNER_NAME="first", **env))
    assert [r["name"] for r in world.runners()] == ["first"]
    world.advance(seconds=120)  # its session has run out: GitHub shows it offline
    pod = up(run, world, kept, RUNNER_NAME="second", **env)
    assert [r["name"] for r in world.runners()] == ["second"], pod.text
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_predecessor_that_is_online_is_left_alone(run, make_world, kept):
    world = make_world(flow="v2")
    env = credentials.pat(world, ENTITY)
    killed(up(run, world, kept, RUNNER_NAME="first", **env))
    pod = up(run, world, kept, RUNNER_NAME="second", **env)
    assert sorted(r["name"] for r in world.runners()) == ["first", "second"], pod.text
    pod.signal("TERM")
    assert pod.wait() == 0


def test_a_killed_life_of_the_same_name_is_replaced(run, world, kept):
    killed(up(run, world, kept))
    world.advance(seconds=120)
    pod = up(run, world, kept)
    assert len(world.runners()) == 1
    world.job(name="j")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"


def test_a_journal_that_somebody_else_wrote_deletes_nothing(run, make_world, kept):
    world = make_world(flow="v2")
    stranger = world.runner(entity=ENTITY, name="stranger")["id"]
    with open(os.path.join(kept["binds"]["/var/state"], "journal"), "w") as f:
        f.write("v1 %d 1 0 github.com/repos/acme/widget stranger %s\n" % (stranger, "0" * 64))
    pod = up(run, world, kept, **credentials.pat(world, ENTITY))
    pod.signal("TERM")
    assert pod.wait() == 0
    assert [r["name"] for r in world.runners()] == ["stranger"]


def test_the_journal_holds_no_secret(run, make_world, kept):
    world = make_world(flow="v2")
    env = credentials.pat(world, ENTITY)
    pod = up(run, world, kept, **env)
    with open(os.path.join(kept["binds"]["/var/state"], "journal")) as f:
        text = f.read()
    assert "r1" in text and credentials.PAT not in text
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_short_lives_wait_longer_and_longer_and_a_stop_ends_the_wait(run, make_world, kept):
    world = make_world(flow="v2")
    quick = {"exit": 1, "at": "start"}
    waits = 0
    for n in range(5):
        pod = again(run, world, kept, scenario=quick, RUNNER_NAME="storm-%d" % n)
        assert pod.wait() == 75, pod.text
        waits += "before registering" in pod.text
    assert 1 <= waits <= 3
    pod = again(run, world, kept, scenario=quick, RUNNER_NAME="storm-last")
    pod.wait_text("before registering")
    steps = len(world.steps())
    began = time.monotonic()
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert time.monotonic() - began < 5
    assert len(world.steps()) == steps


def test_a_life_that_had_its_job_does_not_make_the_next_wait(run, make_world, kept):
    world = make_world(flow="v2")
    for n in range(4):
        world.job(name="j%d" % n)
        pod = again(run, world, kept)
        lives.ended(pod, world, 0)
        assert "before registering" not in pod.text


def test_lives_that_somebody_stopped_do_not_make_the_next_wait(run, make_world, kept):
    world = make_world(flow="v2")
    for n in range(4):
        pod = again(run, world, kept)
        pod.wait_text("Listening for Jobs")
        assert "before registering" not in pod.text
        pod.signal("TERM")
        lives.ended(pod, world, 0)
