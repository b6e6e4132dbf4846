"""The terminal is CMD's, as under `docker run -it`."""
import fcntl
import os
import pty
import struct
import termios

import pytest

from inits import PAYLOAD, Reader, poll


class Terminal:
    def __init__(self):
        self.master, self.slave = pty.openpty()

    def own(self):
        """In the child: a session of its own whose terminal this is, as a container runtime makes it."""
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def start(self, start, program, cmd, raw=False, **more):
        run = start(program, cmd, raw=raw, stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec=self.own, **more)
        os.close(self.slave)
        run.readers["out"] = Reader(os.dup(self.master))
        run.readers["err"] = run.readers["out"]
        return run

    def type(self, text):
        os.write(self.master, text)


@pytest.fixture
def terminal():
    t = Terminal()
    yield t
    os.close(t.master)


BOTH = pytest.mark.parametrize("pid1", [True, False], ids=["pid1", "ordinary"])


@BOTH
def test_cmd_is_in_the_foreground_and_may_set_the_terminal(program, start, terminal, pid1):
    run = terminal.start(start, program, ["tty"], pid1=pid1)
    assert run.wait(5) == 0
    assert "isatty 1 foreground 1 leader 1 set 0" in run.out


@BOTH
def test_ctrl_c_reaches_cmd(program, start, terminal, pid1):
    run = terminal.start(start, program, ["park"], pid1=pid1)
    run.wait_line("ready")
    terminal.type(b"\x03")
    assert run.wait(5) == 130


def test_a_shell_has_job_control(program, start, terminal):
    env = dict(os.environ, PS1="$ ", HISTFILE="/dev/null", TERM="dumb")
    run = terminal.start(start, program, ["bash", "--norc", "--noprofile", "-i"], raw=True, env=env)
    terminal.type(b"echo flags-$-\r")
    poll(lambda: [w for w in run.out.split("\n") if w.startswith("flags-") and "m" in w], 5, "job control in $-")
    assert "no job control" not in run.out and "cannot set terminal" not in run.out
    terminal.type(b"sleep 1000\r")
    job = poll(lambda: run.tree()[1:], 5, "a job")[0]
    poll(lambda: run.status(job)["Name"] == "sleep" and os.tcgetpgrp(terminal.master) == job, 5, "a job in the foreground")
    terminal.type(b"\x1a")
    poll(lambda: "Stopped" in run.out, 5, "a stopped job")
    terminal.type(b"fg\r")
    poll(lambda: os.tcgetpgrp(terminal.master) == job, 5, "the job in the foreground again")
    terminal.type(b"\x03")
    poll(lambda: not run.tree()[1:], 5, "the end of the job")
    terminal.type(b"exit 9\r")
    assert run.wait(6) == 9


def test_a_new_window_size_is_passed_on(program, start, terminal):
    run = terminal.start(start, program, ["signals", 15])
    run.wait_line("ready")
    run.signal("WINCH")
    assert run.wait_line("sig", 1, 3) == 28


@pytest.mark.promise("tini", "tini -g", "catatonit")
def test_the_window_size_of_the_terminal_reaches_cmd_by_itself(program, start, terminal):
    run = terminal.start(start, program, ["signals", 15])
    run.wait_line("ready")
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))
    assert run.wait_line("sig", 1, 3) == 28


@pytest.mark.promise()
def test_the_terminal_goes_back_to_the_shell_that_started_init(program, start, terminal):
    # A script without job control: init and the script share a group, and the script reads afterwards.
    shell = '"$@" true; echo ready 0; read x; exit "$x"'
    outer = type(program)("sh", ["bash", "-c", shell, "sh"] + program.argv, None)
    run = terminal.start(start, outer, [], raw=True, pid1=False)
    run.wait_line("ready")
    terminal.type(b"7\r")
    assert run.wait(5) == 7


@pytest.mark.promise()
def test_an_init_in_the_background_does_not_take_the_terminal(program, start, terminal):
    shell = 'set -m; "$@" & wait $!; echo ready 0; read x; exit "$x"'
    outer = type(program)("sh", ["bash", "-c", shell, "sh"] + program.argv + [PAYLOAD, "front"], None)
    run = terminal.start(start, outer, [], raw=True, pid1=False)
    run.wait_line("ready")
    assert "foreground 0" in run.out
    terminal.type(b"7\r")
    assert run.wait(5) == 7
