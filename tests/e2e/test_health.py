"""``init --health`` and the state file: what an orchestrator sees of a life."""
import json
import os
import time

import pytest

import lives

INIT = "/opt/init/init"


def health(pod, *more, uid=1000, want=None):
    """(exit status, text); with ``want``, as soon as the text holds it."""
    end = time.monotonic() + 15
    while True:
        done = pod.run([INIT, "--health"] + list(more), uid=uid)
        text = done.stdout.decode() + done.stderr.decode()
        if want is None or want in text:
            return done.returncode, text
        assert time.monotonic() < end, "%r did not come: %r\n%s" % (want, text, pod.text)
        time.sleep(0.05)


def test_the_state_tells_the_runner_and_its_job(run, world):
    pod = lives.listening(run, world, scenario={"hold": True})
    code, text = health(pod, "--json", want='"listening"')
    seen = json.loads(text)
    assert code == 0
    assert sorted(seen) == ["gpu", "job", "last_error", "pid", "runner", "schema", "since", "start", "state", "version"]
    with open("/proc/%d/stat" % pod.pid) as f:
        start = int(f.read().rsplit(")", 1)[1].split()[19])
    assert (seen["schema"], seen["pid"], seen["start"], seen["job"], seen["last_error"]) == (1, 1, start, None, None)
    runner = world.runners()[0]
    assert seen["runner"] == {"id": runner["id"], "name": "r1", "url": lives.REPO_URL, "ephemeral": True}
    assert time.strptime(seen["since"][:19], "%Y-%m-%dT%H:%M:%S") and seen["since"].endswith("Z")
    world.job(name="j", seconds=4)
    code, text = health(pod, "--json", want='"busy"')
    assert code == 0 and json.loads(text)["job"]["since"].endswith("Z")
    code, text = health(pod)
    assert code == 0 and text.startswith("busy since ")
    lives.ended(pod, world, 0)


def test_while_it_registers_it_is_not_ready(run, make_world):
    world = make_world()
    world.fault(step="registration", stall="before", seconds=30)
    pod = lives.start(run, world)
    code, text = health(pod, want="registering")
    assert code == 1
    pod.signal("TERM")
    pod.wait()


def test_without_a_state_it_is_unhealthy_and_says_why(run):
    pod = run(["--", "sleep", "60"], {"PATH": "/usr/bin:/bin"})
    code, text = health(pod)
    assert code == 1 and "no state.json" in text
    pod.signal("KILL")


def test_the_state_directory_of_an_unprivileged_init_is_private(run, world):
    pod = lives.listening(run, world)
    health(pod, want="listening")
    done = pod.run(["stat", "-c", "%a %u", "/tmp/init-1000"])
    assert done.stdout.decode().split() == ["700", "1000"]
    assert health(pod, uid=0)[0] == 0  # root looks where the user of PID 1 would write
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_root_uses_run_init_and_everybody_may_ask(run, world):
    pod = lives.listening(run, world, user=0, RUNNER_USER="ci-runner")
    health(pod, want="listening")
    assert pod.run(["stat", "-c", "%a %u", "/run/init"]).stdout.decode().split() == ["755", "0"]
    assert health(pod, uid=1000)[0] == 0
    assert pod.run(["sh", "-c", "echo x > /run/init/state.json"], uid=1000).returncode != 0
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_root_does_not_write_into_a_directory_of_the_jobs_user(run, world):
    pod = lives.listening(run, world, user=0, RUNNER_USER="ci-runner", INIT_STATE_DIR="/run/theirs", folders={"/run/theirs": (0o777, 1000)})
    assert any("INIT_STATE_DIR" in line and "warn" in line for line in pod.log), pod.text
    assert pod.run(["ls", "/run/theirs"]).stdout == b""
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_state_directory_that_is_there_for_all_stays_so(run, world):
    pod = lives.listening(run, world, user=0, RUNNER_USER="ci-runner", INIT_STATE_DIR="/var/all", folders={"/var/all": (0o1777, 0)})
    assert pod.run(["stat", "-c", "%a", "/var/all"]).stdout.decode().split() == ["1777"]
    assert pod.run(["sh", "-c", "echo x > /var/all/state.json || rm -f /var/all/state.json"], uid=1000).returncode != 0
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_planted_link_is_no_state_directory(run, world, tmp_path):
    tmp, target = tmp_path / "tmp", tmp_path / "target"
    for path in (tmp, target):
        path.mkdir()
        os.chmod(str(path), 0o777)
    os.chmod(str(tmp_path), 0o755)
    os.chmod(str(tmp_path.parent), 0o755)
    os.symlink("/target", str(tmp / "init-1000"))
    pod = lives.listening(run, world, binds={"/tmp": str(tmp), "/target": str(target)})
    assert any("no state is written" in line for line in pod.log), pod.text
    assert os.listdir(str(target)) == []
    assert health(pod)[0] == 1
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("name, code", [("/var/state", 0), ("/var/link", 1)])
def test_a_given_state_directory_is_used_but_no_link(run, world, name, code):
    pod = lives.listening(run, world, INIT_STATE_DIR=name, folders={"/var/state": (0o755, 1000)}, files={"/var/link": "a file"})
    end = time.monotonic() + 10
    while True:
        done = pod.run(["/usr/bin/env", "INIT_STATE_DIR=" + name, INIT, "--health"])
        if done.returncode == code or time.monotonic() > end:
            break
        time.sleep(0.05)
    assert done.returncode == code, done
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_the_state_of_an_earlier_container_does_not_count(run):
    old = '{"schema":1,"state":"listening","since":"2026-01-01T00:00:00.000Z","pid":1,"start":1}'
    pod = run(["--", "sleep", "60"], {"PATH": "/usr/bin:/bin"}, folders={"/run/init": (0o755, 0)}, files={"/run/init/state.json": old})
    code, text = health(pod)
    assert code == 1 and "gone" in text
    assert health(pod, "--json") == (1, "null\n")
    pod.signal("KILL")


def test_a_refused_credential_is_the_last_error(run, make_world, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    os.chown(str(state), 1000, 1000)
    for path in (tmp_path, tmp_path.parent):
        os.chmod(str(path), 0o755)
    world = make_world()
    pod = lives.start(run, world, token="NOSUCHTOKENNOSUCHTOKENNOSUCHT", binds={"/run/init": str(state)})
    assert pod.wait() == 77
    seen = json.loads((state / "state.json").read_text())
    assert (seen["state"], seen["last_error"]["code"], seen["runner"]) == ("exited", 77, None)
    assert "NOSUCHTOKEN" not in (state / "state.json").read_text()
    world.expected = "token"
