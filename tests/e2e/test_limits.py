"""A container at its limits: no pids, no memory, a process that cannot die. The removal happens all the same."""
import contextlib
import os
import time

import pytest

import lives


@contextlib.contextmanager
def cgroup(controller, **values):
    """A cgroup (v1) of the test's own; yields its folder."""
    path = "/sys/fs/cgroup/%s/init-test-%d-%d" % (controller, os.getpid(), int(time.monotonic() * 1000))
    os.mkdir(path)
    try:
        for key, value in values.items():
            put(path, controller + "." + key, value)
        yield path
    finally:
        end = time.monotonic() + 10
        while True:
            try:
                os.rmdir(path)
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)


def put(path, name, value):
    with open(os.path.join(path, name), "w") as f:
        f.write(str(value))


def get(path, name):
    with open(os.path.join(path, name)) as f:
        return f.read().strip()


def join(path, pod):
    """PID 1 and all that it has started so far."""
    for p in pod.processes().values():
        put(path, "tasks", p["host_pid"])


def test_a_full_pids_cgroup_does_not_prevent_the_removal(run, world):
    with cgroup("pids") as group:
        pod = lives.listening(run, world)
        join(group, pod)
        put(group, "pids.max", get(group, "pids.current"))
        pod.signal("TERM")
        lives.ended(pod, world, 0)
        lives.deregistered(pod)


def test_a_job_that_fills_the_pids_cgroup_does_not_prevent_the_removal(run, make_world):
    world = make_world(flow="v1")
    with cgroup("pids", max=40) as group:
        pod = lives.listening(run, world)
        join(group, pod)
        world.job(name="bomb", steps=[{"orphans": 100, "seconds": 60, "ignore": True, "own_session": True}, {"sleep": 60}])
        end = time.monotonic() + 20
        while int(get(group, "pids.current")) < 38 and time.monotonic() < end:
            time.sleep(0.05)
        pod.signal("TERM")
        assert pod.wait() == 0, pod.text
        assert world.runners() == [], pod.text


def test_an_agent_killed_for_memory_is_75_and_says_so(run, make_world):
    world = make_world(flow="v2")
    with cgroup("memory", limit_in_bytes=120 << 20) as group:
        pod = lives.start(run, world, scenario={"start_delay": 0.5})
        join(group, pod)
        pod.wait_text("listening for jobs")
        put("/proc/%d" % pod.host_pid("Runner.Listener run"), "oom_score_adj", 1000)
        hog = "import time\nx = []\nwhile True: x.append(b'x' * (4 << 20)); time.sleep(0.01)"
        world.job(name="hog", steps=[{"exec": ["/usr/bin/python3", "-c", hog]}])
        assert pod.wait() in (75, 85), pod.text
        assert "out of memory" in pod.text


def test_a_process_that_cannot_die_is_named_and_left_after_the_removal(run, make_world):
    world = make_world(flow="v2")
    with cgroup("freezer") as group:
        pod = lives.listening(run, world, scenario={"orphans": 1}, INIT_STOP_TIMEOUT="5s")
        stuck = next(p for p in pod.processes().values() if "Runner.Listener" in " ".join(p["cmdline"]) and p["host_ppid"] == pod.pid
                     and p["host_pid"] != pod.host_pid("Runner.Listener run") or p["status"]["SigIgn"] != "0" * 16 and p["comm"] != "init"
                     and int(p["status"]["SigIgn"], 16) >> 14 & 1)
        put(group, "tasks", stuck["host_pid"])
        put(group, "freezer.state", "FROZEN")
        try:
            pod.signal("TERM")
            pod.wait_text("deregistered: 20", timeout=15)
            assert world.runners() == []
            assert "could not be ended" in pod.text
            # PID 1 is gone as far as it can be: the kernel holds its exit until the last process of the container is dead
            assert os.path.exists("/proc/%d" % pod.pid)
        finally:
            put(group, "freezer.state", "THAWED")
        assert pod.wait() == 0, pod.text


@pytest.mark.parametrize("limit", ["128M"])
def test_a_registrar_survives_a_container_without_memory(run, make_world, limit):
    world = make_world(flow="v1")
    with cgroup("memory", limit_in_bytes=limit) as group:
        pod = lives.listening(run, world)
        join(group, pod)
        world.job(name="hog", steps=[{"exec": ["/usr/bin/python3", "-c", "import time\nx = bytearray(90 << 20)\ntime.sleep(60)"]}])
        assert world.wait_for("running")
        time.sleep(1)
        pod.signal("TERM")
        assert pod.wait() == 0, pod.text
        assert world.runners() == []
