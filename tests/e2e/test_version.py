"""The forms that only talk: --version, --help, and what a wrong command line gets."""
import json
import os
import re
import subprocess

import pytest

import harness


def init(*argv, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([harness.BINARY] + list(argv), env={}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20, text=True,
                          **options)


def test_the_version_names_the_commit():
    done = init("--version")
    assert done.returncode == 0 and re.fullmatch(r"init \d+\.\d+\.\d+ \([0-9a-z-]+\)\n", done.stdout), done.stdout


def test_the_version_as_json_names_the_libraries():
    done = init("--version", "--json")
    seen = json.loads(done.stdout)
    assert sorted(seen) == ["built", "cjson", "commit", "mbedtls", "musl", "name", "version"]
    pins = {}
    with open(os.path.join(harness.REPO, "deps", "pins")) as f:
        for line in f:
            words = line.split()
            if len(words) > 1 and words[0] in ("musl", "mbedtls", "cjson"):
                pins.setdefault(words[0], words[1])
    assert {k: seen[k] for k in pins} == pins and len(pins) == 3
    assert seen["built"] > 1700000000


def test_help_names_every_form_and_exit_status():
    done = init("--help")
    assert done.returncode == 0 and done.stderr == ""
    for form in ("--selftest", "--check-config", "--health", "--version", "--help", "CMD"):
        assert form in done.stdout
    for code in (0, 1, 64, 69, 70, 71, 73, 75, 76, 77, 78, 80, 81, 82, 83, 85, 126, 127):
        assert re.search(r"\b%d\b" % code, done.stdout), code


@pytest.mark.parametrize("argv, word", [
    (["-g", "--", "true"], "whole group"), (["-s", "true"], "subreaper"), (["-vvv"], "INIT_LOG_LEVEL=debug"), (["-h"], "--help"),
    (["--rewrite", "15:3", "true"], "rewrite"), (["-c", "true"], "group"), (["--token=sesame"], "RUNNER_TOKEN_FILE"),
    (["--ephemeral"], "RUNNER_EPHEMERAL"), (["--"], "command"), (["--health", "now"], "--json"), (["--nonsense"], "--help"),
])
def test_a_wrong_command_line_gets_a_hint_and_64(argv, word):
    done = init(*argv)
    assert done.returncode == 64 and done.stdout == "" and word in done.stderr, done
    assert done.stderr.startswith("init: error: ") and done.stderr.count("\n") == 1
    assert "sesame" not in done.stderr


def test_output_that_nobody_takes_is_a_failure():
    with open("/dev/full", "w") as full:
        assert init("--version", stdout=full).returncode == 71


def test_the_list_of_checks_is_json_too():
    text, data = init("--selftest", "--list"), init("--selftest", "--list", "--json")
    assert text.returncode == 0 and data.returncode == 0
    assert len(json.loads(data.stdout)) > 0 and len(text.stdout.splitlines()) > 10


def test_the_self_test_runs_as_pid_1_too(run):
    pod = run(["--selftest", "--only", "sys.clock"], {"PATH": "/usr/bin:/bin"})
    assert pod.wait() in (0, 1), pod.text
    assert "sys.clock" in pod.text


def test_a_self_test_as_pid_1_can_be_interrupted(run):
    nvidia_smi = "#!/bin/sh\nexec sleep 600\n"
    pod = run(["--selftest"], {"PATH": "/opt/fake:/usr/bin:/bin", "INIT_GPU": "required"}, files={"/opt/fake/nvidia-smi": (nvidia_smi, 0o755, 0)})
    pod.host_pid("sleep 600")
    pod.signal("TERM")
    assert pod.wait(30) == 143, pod.text
