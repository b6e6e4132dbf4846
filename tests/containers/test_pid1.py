"""`init CMD` as the ENTRYPOINT of a FROM scratch image and in a Debian image, run by podman and runc."""

import io
import os
import pty
import shutil
import subprocess
import tarfile
import time

import pytest
from boxes import LIMITS, ROOT, podman

SCRATCH = "localhost/init-test-pid1:now"


def poll(condition, limit=20):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("not within %s s" % limit)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory):
    """Two static files and nothing else: init, and the payload of tests/pid1."""
    subprocess.run(["make", "-s", "build/init", "build/check/payload"], cwd=ROOT, check=True, timeout=900)
    path = tmp_path_factory.mktemp("scratch") / "root.tar"
    with tarfile.open(path, "w") as tar:
        for name, source in (("init", "build/init"), ("payload", "build/check/payload")):
            data = (ROOT / source).read_bytes()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    podman("import", "--change", 'ENTRYPOINT ["/init","--"]', path, SCRATCH)
    return SCRATCH


@pytest.fixture(scope="session")
def debian(base_image, scratch, tmp_path_factory):
    """(image, options): a Debian image with both files mounted into it."""
    folder = tmp_path_factory.mktemp("bin")
    for source in ("build/init", "build/check/payload"):
        shutil.copy(ROOT / source, folder)
    folder.chmod(0o755)
    return base_image[0], ["-v", "%s:/opt/pid1:ro" % folder, "--entrypoint", "/opt/pid1/init"]


@pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
def test_the_status_of_cmd_is_the_status_of_the_container(scratch, container, code):
    assert container(scratch, "/payload", "exit", code).wait() == code


def test_a_cmd_that_is_not_there_gives_127(scratch, container):
    c = container(scratch, "/nonexistent")
    assert c.wait() == 127
    assert "cannot execute /nonexistent" in c.logs


def test_podman_stop_ends_a_normal_cmd_at_once(scratch, container):
    c = container(scratch, "/payload", "park")
    c.wait_text("ready")
    began = time.monotonic()
    c.stop(10)
    assert not c.killed and time.monotonic() - began < 9
    assert c.wait() == 143


def test_a_cmd_that_ignores_everything_ends_before_podman_loses_patience(scratch, container):
    c = container(scratch, "/payload", "ignore", env={"INIT_STOP_TIMEOUT": "3s"})
    c.wait_text("ready")
    c.stop(30)
    assert not c.killed
    assert c.wait() == 137


def test_podman_kill_reaches_cmd_with_any_signal(scratch, container):
    c = container(scratch, "/payload", "signals", 12)
    c.wait_text("ready")
    for name, number in (("USR1", 10), ("HUP", 1), ("WINCH", 28), ("RTMIN+3", 37), ("PWR", 30)):
        podman("kill", "-s", name, c.name)
        c.wait_text("sig %d\n" % number)
    podman("kill", "-s", "USR2", c.name)
    assert c.wait() == 0


def test_what_an_exec_leaves_behind_is_reaped(scratch, container):
    c = container(scratch, "/payload", "park")
    c.wait_text("ready")
    assert "ppid 0" in c.exec("/payload", "ids").stdout
    c.exec("/payload", "orphans", 30)

    def alone():
        with open("/proc/%d/task/%d/children" % (c.pid, c.pid)) as f:
            return len(f.read().split()) == 1
    poll(alone)
    c.stop(10)
    assert c.wait() == 143


@pytest.mark.parametrize("options", [["--read-only"], ["--user", "12345"], ["--read-only", "--user", "12345", "--cap-drop", "all"]], ids=str)
def test_neither_a_read_only_root_nor_a_foreign_user_matters(scratch, container, options):
    c = container(scratch, "/payload", "park", options=options)
    c.wait_text("ready")
    c.stop(10)
    assert not c.killed
    assert c.wait() == 143


def test_behind_podmans_own_init_it_is_a_reaper_that_says_nothing(scratch, container):
    c = container(scratch, "/payload", "park", options=["--init"])
    c.wait_text("ready")
    c.stop(10)
    assert not c.killed
    assert c.wait() == 143
    assert "init:" not in c.logs


def test_an_interactive_terminal_is_cmds(scratch):
    master, slave = pty.openpty()
    run = subprocess.Popen(["podman", "--runtime", "runc", "run", "--rm", "-it", "--network", "none", *LIMITS, scratch,
                            "/payload", "tty"],
                           stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    text = b""
    try:
        while b"isatty" not in text or not text.endswith(b"\n"):
            text += os.read(master, 4096)
    except OSError:
        pass
    assert run.wait(60) == 0
    os.close(master)
    assert b"isatty 1 foreground 1 leader 1 set 0" in text


def test_debian_grandchildren_get_their_time_on_podman_stop(debian, container):
    image, options = debian
    c = container(image, "sh", "-c", "/opt/pid1/payload slow /tmp/mark & wait", options=options)
    c.wait_text("ready")
    c.stop(10)
    assert not c.killed
    assert c.wait() == 143
    assert podman("cp", "%s:/tmp/mark" % c.name, "-").stdout.find("CLEANED") >= 0


def test_debian_a_shell_that_traps_ends_with_its_own_status(debian, container):
    image, options = debian
    c = container(image, "bash", "-c", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.1; done", options=options)
    c.wait_text("ready")
    c.stop(10)
    assert c.wait() == 42
