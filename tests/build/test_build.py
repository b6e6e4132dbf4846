"""The pinned sources, the proof that the binary is static, and the sum of all tests: each refuses what it is there to refuse."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINS = [line.split() for line in (ROOT / "deps/pins").read_text().splitlines() if line and not line.startswith("#")]


def run(*argv, cwd=ROOT, **env):
    return subprocess.run([str(a) for a in argv], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, check=False)


@pytest.fixture
def tarballs(tmp_path):
    """A folder with a file under every pinned name, none of them the right one."""
    folder = tmp_path / "given"
    folder.mkdir()
    for _, _, name, _ in PINS:
        (folder / name).write_bytes(b"not the tarball")
    return folder


def test_every_pin_has_an_upstream_and_a_debian_tarball():
    assert {p[0] for p in PINS} == {"musl", "cjson", "mbedtls"}
    for package in {p[0] for p in PINS}:
        names = [p[2] for p in PINS if p[0] == package]
        assert len(names) == 2 and ".orig.tar." in names[0] and ".debian.tar." in names[1]
    assert all(len(p[3]) == 64 for p in PINS)


def test_a_tarball_with_a_wrong_hash_is_refused_and_not_kept(tarballs, tmp_path):
    done = run("deps/fetch", tmp_path / "out", DEPS_DIR=str(tarballs))
    assert done.returncode == 1
    assert PINS[0][2] in done.stderr and PINS[0][3] in done.stderr and "nothing was unpacked" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_tarball_that_deps_dir_lacks_is_named(tmp_path):
    done = run("deps/fetch", tmp_path / "out", DEPS_DIR=str(tmp_path))
    assert done.returncode == 1 and PINS[0][2] in done.stderr and "DEPS_DIR" in done.stderr


def test_the_folder_given_as_deps_dir_is_only_read(tarballs, tmp_path):
    before = sorted((f.name, f.stat().st_mtime_ns) for f in tarballs.iterdir())
    run("deps/fetch", tmp_path / "out", DEPS_DIR=str(tarballs))
    assert sorted((f.name, f.stat().st_mtime_ns) for f in tarballs.iterdir()) == before


def test_the_build_of_the_libraries_says_what_to_do_when_nothing_was_fetched(tmp_path):
    done = run("deps/build", "musl", tmp_path / "none", tmp_path / "out")
    assert done.returncode == 1 and "make fetch" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_build_of_the_libraries_checks_the_hash_itself(tarballs, tmp_path):
    done = run("deps/build", "native", tarballs, tmp_path / "out")
    assert done.returncode == 1 and "wrong SHA-256, nothing was unpacked" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_version_that_the_archive_does_not_have_is_named_with_what_to_bump(tmp_path):
    """apt is asked for real; a source package that no archive ever had stands for one that is gone."""
    copy = tmp_path / "deps"
    copy.mkdir()
    shutil.copy(ROOT / "deps/fetch", copy / "fetch")
    (copy / "pins").write_text(f"musl 0.0.1-1 musl_0.0.1.orig.tar.gz {'0' * 64}\n")
    done = run(copy / "fetch", tmp_path / "out", DEPS_DIR="")
    assert done.returncode == 1
    assert "musl 0.0.1-1" in done.stderr and "bump" in done.stderr and "it has: 1." in done.stderr, done.stderr


def test_the_shipped_binary_is_static_and_stripped_with_its_symbols_beside_it():
    assert run("tests/prove-static", "build/init").returncode == 0
    sections = run("readelf", "-SW", "build/init.debug").stdout
    assert ".symtab" in sections and ".debug_info" in sections
    assert ".gnu_debuglink" in run("readelf", "-SW", "build/init").stdout


def test_a_dynamic_program_and_one_with_symbols_are_not_taken_for_it():
    dynamic = run("tests/prove-static", "/bin/ls")
    assert dynamic.returncode == 1
    unstripped = run("tests/prove-static", "build/init.full")
    assert unstripped.returncode == 1 and "not stripped" in unstripped.stderr


def fake_make(tmp_path, body):
    """A tree in which `make STEP` is a script, with the real counting tools."""
    (tmp_path / "tests").mkdir()
    for tool in ("count", "run-all"):
        shutil.copy(ROOT / "tests" / tool, tmp_path / "tests" / tool)
    make = tmp_path / "make"
    make.write_text("#!/bin/sh\n" + body)
    make.chmod(0o755)
    return lambda *steps: run("tests/run-all", make, *steps, cwd=tmp_path)


def test_the_last_line_is_the_sum_of_what_the_steps_counted(tmp_path):
    done = fake_make(tmp_path, 'exec tests/count "$2" 3 0\n')("unit", "lint")
    assert done.stdout.splitlines()[-1] == "6 passed, 0 failed" and done.returncode == 0


def test_a_failed_test_in_the_first_step_fails_the_whole_and_the_others_still_run(tmp_path):
    done = fake_make(tmp_path, 'case $2 in unit) exec tests/count unit 2 1;; esac; exec tests/count "$2" 4 0\n')("unit", "lint")
    assert done.stdout.splitlines()[-1] == "6 passed, 1 failed" and done.returncode == 1


def test_a_step_that_breaks_before_it_counts_is_a_failure(tmp_path):
    done = fake_make(tmp_path, 'case $2 in build) exit 2;; esac; exec tests/count "$2" 4 0\n')("build", "lint")
    assert done.stdout.splitlines()[-1] == "4 passed, 1 failed" and done.returncode == 1


def test_a_step_that_ran_nothing_is_a_failure(tmp_path):
    done = fake_make(tmp_path, 'exec tests/count "$2" 0 0\n')("unit")
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed" and done.returncode == 1
