"""What CMD is started with, and what becomes of a CMD that cannot be."""
import os
import resource
import stat
import subprocess

import pytest

from inits import OURS, PAYLOAD, Run

STATUSES = [0, 1, 2, 32, 64, 100, 125, 126, 127, 128, 137, 143, 254, 255]


def test_the_exit_status_of_cmd_is_the_exit_status_of_init(program, start):
    for code in STATUSES:
        assert start(program, ["exit", code]).wait(3) == code


def test_every_exit_status_from_0_to_255_comes_back_exactly():
    for code in range(256):
        assert subprocess.run(OURS.argv + [PAYLOAD, "exit", str(code)], timeout=20).returncode == code


def test_a_cmd_ended_by_signal_n_gives_128_plus_n(program, start):
    for sig in (1, 3, 4, 6, 8, 9, 11, 13, 15, 31, 34, 64):
        assert start(program, ["die", sig]).wait(3) == 128 + sig


@pytest.mark.promise("tini", "tini -g")
def test_a_cmd_that_is_not_there_gives_127_and_one_that_may_not_run_126(program, start, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    plain.chmod(0o644)
    lost = tmp_path / "lost"
    lost.write_text("#!/nonexistent/interpreter\n")
    lost.chmod(0o755)
    for cmd, code in (("/nonexistent", 127), ("nonesuch-in-path", 127), (str(plain), 126), (str(tmp_path), 126), (str(lost), 127)):
        run = start(program, [cmd], raw=True)
        assert (cmd, run.wait(3)) == (cmd, code)
        assert cmd in run.err


@pytest.mark.promise()
def test_no_other_failure_of_exec_is_taken_for_a_missing_file(program, start, tmp_path):
    text = tmp_path / "text"
    text.write_text("exit 0\n")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF" + b"\0" * 60)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for f in (text, garbage):
        f.chmod(0o755)
    for cmd in (str(text), str(garbage), str(loop), "/" + "x" * 300, "y" * 300):
        assert start(program, [cmd], raw=True).wait(3) == 126


def test_path_is_searched_past_directories_and_what_may_not_run(program, start, tmp_path):
    for name, mode in (("a", 0o644), ("b", 0o755)):
        d = tmp_path / name
        d.mkdir()
        f = d / "tool"
        f.write_text("#!/bin/sh\nexit 9\n")
        f.chmod(mode)
    path = "/nonexistent:%s:%s/tool:%s:/bin" % (tmp_path / "a", tmp_path / "a", tmp_path / "b")
    # The init itself is started by its path, since PATH is the subject.
    before = [program.path] if program is not OURS else []
    argv = type(program)(program.name, (before or program.argv[:1]) + program.argv[1:], program.package)
    assert start(argv, ["tool"], raw=True, env={"PATH": path}).wait(3) == 9


@pytest.mark.promise("dumb-init", "catatonit")
def test_without_path_the_usual_places_are_searched(program, start):
    argv = type(program)(program.name, [program.path] + program.argv[1:], program.package)
    assert start(argv, ["true"], raw=True, env={}).wait(3) == 0


def test_argv_comes_through_verbatim(program, start):
    args = ["", "a b", "--", "-x", "--version", "$HOME", "\\", "\u00e4\u20ac", "x" * 100000]
    run = start(program, ["args"] + args)
    assert run.wait(3) == 0
    assert run.out == "".join("<%s>\n" % a for a in args)


def test_the_environment_comes_through_verbatim_even_an_odd_one(program, start):
    run = start(program, ["env"], before=[PAYLOAD, "weird"])
    assert run.wait(3) == 0
    assert run.out.split("\n")[:-1] == ["<PATH=/usr/bin:/bin>", "<NOEQUALS>", "<A=1>", "<A=2>", "<EMPTY=>", "<=odd>", "<RUNNER_TOKEN=x>"]


def test_a_large_environment_comes_through(program, start):
    env = dict(os.environ, **{"BIG%d" % i: "x" * 100000 for i in range(12)})
    run = start(program, ["env"], env=env)
    assert run.wait(5) == 0
    assert run.out.count("x" * 100000) == 12


def test_standard_input_reaches_cmd(program, start):
    r, w = os.pipe()
    os.write(w, b"exit 3\n")
    os.close(w)
    assert start(program, ["sh"], raw=True, stdin=r).wait(3) == 3
    os.close(r)


def test_cmd_keeps_the_working_directory_and_init_pins_none(program, start, tmp_path):
    run = start(program, ["sh", "-c", "pwd; exec %s park" % PAYLOAD], raw=True, cwd=tmp_path)
    run.wait_line("ready")
    assert run.out.split("\n")[0] == str(tmp_path)
    assert os.readlink("/proc/%d/cwd" % run.pid) == "/"


@pytest.mark.promise()
def test_umask_002_is_all_that_changes_for_cmd(program, start):
    run = start(program, ["ids"], preexec=lambda: os.umask(0o077))
    assert run.wait(3) == 0
    assert "umask 002" in run.out


def test_an_ignored_sigchld_is_undone(program, start):
    assert start(program, ["exit", 7], before=[PAYLOAD, "preset", "17", "-"]).wait(2) == 7


@pytest.mark.promise()
def test_cmd_starts_with_an_empty_mask_and_default_dispositions(program, start):
    ignored = ",".join(str(s) for s in range(1, 65) if s not in (9, 17, 19))
    run = start(program, ["status"], before=[PAYLOAD, "preset", ignored, "10,15,32,33,34,64"])
    assert run.wait(3) == 0
    for line in ("SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "SigCgt:\t0000000000000000"):
        assert line in run.out


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_closed_standard_descriptors_do_no_harm(program, start, closed):
    shell = "exec " + " ".join("%d%s&-" % (fd, "<" if fd == 0 else ">") for fd in closed)
    assert start(program, ["exit", 4], before=["sh", "-c", shell + '; exec "$@"', "sh"]).wait(3) == 4


@pytest.mark.promise("catatonit")
def test_what_stood_open_reaches_neither_cmd_nor_stays_in_init(program, start):
    shell = "".join("exec %d</dev/null; " % n for n in range(3, 10)) + 'exec "$@"'
    run = start(program, ["sh", "-c", "%s fds; exec %s park" % (PAYLOAD, PAYLOAD)], raw=True, before=["sh", "-c", shell, "sh"])
    run.wait_line("ready")
    if program is OURS:
        assert run.out.split("\n")[0] == "0 1 2 "
    held = [os.readlink("/proc/%d/fd/%s" % (run.pid, fd)) for fd in os.listdir("/proc/%d/fd" % run.pid) if int(fd) > 2]
    assert "/dev/null" not in held


@pytest.mark.parametrize("limit", ["--nofile=3:3", "--nofile=4:4", "--nofile=5:5", "--as=4000000:4000000", "--fsize=0:0", "--core=0:0"])
def test_low_limits_do_not_keep_cmd_from_running(program, start, limit):
    assert start(program, ["exit", 4], before=["prlimit", limit]).wait(3) == 4


@pytest.mark.promise()
def test_limits_and_oom_score_reach_cmd_unchanged(program, start):
    shell = "ulimit -n; ulimit -c; cat /proc/self/oom_score_adj"
    run = start(program, ["sh", "-c", shell], raw=True, before=["prlimit", "--nofile=123:123", "--core=77:77", "choom", "-n", "321", "--"])
    assert run.wait(3) == 0
    assert run.out.split()[0] == "123" and run.out.split()[-1] == "321"


def one_process():
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


def test_a_fork_that_fails_ends_in_a_message_not_a_hang(program, start):
    folder = subprocess.run(["mktemp", "-d", "/tmp/pid1.XXXXXX"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        os.chmod(folder, 0o755)
        subprocess.run(["cp", program.path, PAYLOAD, folder], check=True)
        local = type(program)(program.name, [os.path.join(folder, os.path.basename(program.path))] + program.argv[1:], program.package)
        run = start(local, [os.path.join(folder, os.path.basename(PAYLOAD)), "exit", "0"], raw=True, preexec=one_process,
                    before=["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"])
        code = run.wait(3)
        assert code not in (0, 127)
        assert run.err
        if program is OURS:
            assert code == 71 and "limit on processes" in run.err
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)


def test_a_signal_that_comes_once_init_is_armed_is_never_lost(program, start):
    for _ in range(60):
        run = Run(program, ["park"])
        try:
            run.armed()
            run.signal("TERM")
            assert run.wait(2) == 143
        finally:
            run.close()


@pytest.mark.promise()
def test_signals_are_blocked_before_anything_else_is_done(program, start, tmp_path):
    # Until then the kernel drops what reaches a PID 1; how long that is, the benchmark tells.
    log = tmp_path / "calls"
    run = start(program, ["exit", 0], pid1=False, before=["strace", "-qq", "-o", str(log)])
    assert run.wait(5) == 0
    calls = log.read_text().split("\n")
    first = [n for n, c in enumerate(calls) if c.startswith("rt_sigprocmask")][0]
    assert [c.split("(")[0] for c in calls[:first]] == ["execve", "arch_prctl", "set_tid_address"][:first]
    assert "SIG_SETMASK, ~[ILL TRAP ABRT BUS FPE SEGV SYS], NULL, 8" in calls[first]


@pytest.mark.promise("tini", "dumb-init", "catatonit")
def test_a_cmd_whose_name_is_an_option_runs_behind_two_dashes(program, start, tmp_path):
    for name in ("-h", "--version"):
        f = tmp_path / name
        f.write_text("#!/bin/sh\nexit 8\n")
        f.chmod(0o755)
        argv = type(program)(program.name, [program.path] + program.argv[1:], program.package)
        assert start(argv, [name], raw=True, env={"PATH": str(tmp_path) + ":/bin:/usr/bin"}).wait(3) == 8


@pytest.mark.promise()
def test_a_cmd_that_becomes_another_program_keeps_what_init_gave_it(program, start):
    run = start(program, ["sh", "-c", "exec %s ids" % PAYLOAD], raw=True)
    assert run.wait(3) == 0
    pid, ppid, group = [int(run.out.split()[i]) for i in (1, 3, 5)]
    assert (ppid, group) == (1, pid)


def test_the_binary_needs_no_shared_library_and_no_writable_code():
    assert stat.S_IMODE(os.stat(OURS.path).st_mode) & 0o111
    heads = subprocess.run(["readelf", "-lW", OURS.path], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in heads
    assert not [line for line in heads.split("\n") if "RWE" in line]
