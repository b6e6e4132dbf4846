"""``init --check-config``: every setting with its source and meaning, every problem, and no side effect."""
import json
import os
import subprocess

import pytest

import harness


@pytest.fixture
def root(tmp_path):
    (tmp_path / "runner" / "bin").mkdir(parents=True)
    (tmp_path / "runner" / "bin" / "Runner.Listener").write_text("#!/bin/sh\n")
    return str(tmp_path / "runner")


def check(*more, **env):
    return subprocess.run([harness.BINARY, "--check-config"] + list(more), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=20, text=True)


def good(root, **more):
    env = {"RUNNER_URL": "https://github.com/acme/widget", "RUNNER_TOKEN": "ATOKENATOKEN", "RUNNER_ROOT": root, "RUNNER_ALLOW_RUNASROOT": "1",
           "HOME": "/tmp"}
    env.update(more)
    return env


def settings(done):
    return {s["name"]: s for s in json.loads(done.stdout)["settings"]}


def test_a_good_configuration_is_0_and_silent_on_stderr(root):
    done = check(**good(root))
    assert (done.returncode, done.stderr) == (0, "")
    assert "RUNNER_URL = https://github.com/acme/widget  [environment]" in done.stdout
    assert "RUNNER_TOKEN = set  [environment]" in done.stdout
    assert "INIT_STOP_TIMEOUT = 9s  [default]" in done.stdout
    assert "ATOKENATOKEN" not in done.stdout


def test_sources_are_told_apart(root, tmp_path):
    secret = tmp_path / "pat"
    secret.write_text("APATAPAT\n")
    secret.chmod(0o600)
    env = good(root, ACCESS_TOKEN_FILE=str(secret), HTTPS_PROXY="proxy:1")
    del env["RUNNER_TOKEN"]
    done = check("--json", **env)
    s = settings(done)
    assert done.returncode == 0, done.stderr
    assert (s["ACCESS_TOKEN"]["value"], s["ACCESS_TOKEN"]["source"], s["ACCESS_TOKEN"]["file"]) == ("set", "file", str(secret))
    assert (s["RUNNER_TOKEN"]["value"], s["RUNNER_TOKEN"]["source"]) == ("", "not set")
    assert (s["RUNNER_NAME"]["value"], s["RUNNER_NAME"]["source"]) == (os.uname().nodename, "found")
    assert (s["https_proxy"]["value"], s["https_proxy"]["source"]) == ("proxy:1", "environment")
    assert (s["INIT_GPU"]["value"], s["INIT_GPU"]["source"]) == ("auto", "default")
    assert "APATAPAT" not in done.stdout + done.stderr


def test_all_problems_come_with_the_same_words_on_stderr_and_in_json(root):
    env = good(root, RUNNER_URL="https://github.com/a/b/c", RUNNER_EPHEMERAL="maybe", INIT_DRAIN="soon", RUNNER_LABELS="x" * 300)
    done = check("--json", **env)
    problems = json.loads(done.stdout)["problems"]
    assert done.returncode == 78 and json.loads(done.stdout)["exit"] == 78
    assert [p["variable"] for p in problems if p["level"] == "error"] == ["RUNNER_URL", "RUNNER_LABELS", "RUNNER_EPHEMERAL", "INIT_DRAIN"]
    for p in problems:
        assert "%s: %s" % (p["variable"], p["text"]) in done.stderr
        assert p["level"] != "error" or "accepted: " in p["text"]


def test_passwords_in_proxies_are_not_shown(root):
    done = check(**good(root, https_proxy="http://me:sesame@proxy.corp:3128"))
    assert done.returncode == 0 and "sesame" not in done.stdout + done.stderr
    assert "http://***@proxy.corp:3128" in done.stdout


def test_nothing_is_touched(root, tmp_path):
    before = sorted((p, os.stat(p).st_mtime_ns) for p, _, _ in os.walk(str(tmp_path)))
    state = str(tmp_path / "state")
    done = check(**good(root, INIT_STATE_DIR=state, TRITON_CACHE_DIR=str(tmp_path / "cache")))
    assert done.returncode == 0, done.stderr
    assert sorted((p, os.stat(p).st_mtime_ns) for p, _, _ in os.walk(str(tmp_path))) == before


def test_the_log_form_counts_for_its_own_problems(root):
    done = check(**good(root, INIT_LOG="json", RUNNER_NAME="n" * 65))
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 78
    assert [(x["event"], x.get("variable")) for x in lines] == [("config_problem", "RUNNER_NAME"), ("config_refused", None)]


def test_an_unknown_setting_and_names_of_other_images_are_pointed_out(root):
    env = good(root, INIT_DRIAN="5m", REPO_URL="https://github.com/a/b")
    del env["RUNNER_URL"]
    done = check(**env)
    assert done.returncode == 78
    assert "warn: INIT_DRIAN: " in done.stderr and "warn: REPO_URL: " in done.stderr and "init reads RUNNER_URL" in done.stderr


def test_cache_directories_in_force_are_listed(root):
    done = check("--json", **good(root, TRITON_CACHE_DIR="/x/triton"))
    caches = {c["name"]: (c["value"], c["source"]) for c in json.loads(done.stdout)["caches"]}
    assert caches["TRITON_CACHE_DIR"] == ("/x/triton", "environment")
    assert caches["AGENT_TOOLSDIRECTORY"] == (root + "/_work/_tool", "default")


def test_a_secret_that_only_root_reads_is_no_warning(run):
    env = {"RUNNER_URL": "https://github.com/a/b", "RUNNER_TOKEN_FILE": "/run/secrets/token", "RUNNER_USER": "ci-runner", "RUNNER_ROOT": harness.ROOT}
    pod = run(["--check-config"], env, user=0, files={"/run/secrets/token": ("ATOKEN\n", 0o400, 0)})
    assert pod.wait() == 0 and "can be read by jobs" not in pod.text, pod.text
    pod = run(["--check-config"], env, user=0, files={"/run/secrets/token": ("ATOKEN\n", 0o444, 0)})
    assert pod.wait() == 0 and "can be read by jobs (uid 1000)" in pod.text, pod.text


def test_another_user_cannot_be_had_without_root(run):
    env = {"RUNNER_URL": "https://github.com/a/b", "RUNNER_TOKEN": "A", "RUNNER_ROOT": harness.ROOT, "RUNNER_USER": "other"}
    pod = run(["--check-config"], env)
    assert pod.wait() == 78 and "init runs as uid 1000 and cannot become uid 1001" in pod.text, pod.text
    pod = run(["--check-config"], dict(env, RUNNER_USER="ci-runner"))
    assert pod.wait() == 0, pod.text


@pytest.mark.parametrize("user, word", [("ghost", "is no user"), ("4711", "uid:gid"), ("ci-runner:nogrp", "no group"), (":1000", "names no user")])
def test_a_user_that_does_not_exist_is_named(run, user, word):
    env = {"RUNNER_URL": "https://github.com/a/b", "RUNNER_TOKEN": "A", "RUNNER_ROOT": harness.ROOT, "RUNNER_USER": user}
    pod = run(["--check-config"], env, user=0)
    assert pod.wait() == 78 and word in pod.text and user in pod.text, pod.text


@pytest.mark.parametrize("place", ["/home/runner", "/actions-runner", "/runner", "/opt/actions-runner"])
def test_the_usual_places_are_searched_for_the_runner(run, place):
    env = {"RUNNER_URL": "https://github.com/a/b", "RUNNER_TOKEN": "A", "HOME": "/tmp"}
    pod = run(["--check-config"], env, agent=False, files={place + "/bin/Runner.Listener": ("#!/bin/sh\n", 0o755, 1000)})
    assert pod.wait() == 0 and "RUNNER_ROOT = %s  [found]" % place in pod.text, pod.text


def test_the_working_directory_is_the_last_place(run):
    env = {"RUNNER_URL": "https://github.com/a/b", "RUNNER_TOKEN": "A", "HOME": "/tmp"}
    pod = run(["--check-config"], env, agent=False, files={"/srv/r/bin/Runner.Listener": ("#!/bin/sh\n", 0o755, 1000)}, cwd="/srv/r")
    assert pod.wait() == 0 and "RUNNER_ROOT = /srv/r  [found]" in pod.text, pod.text


def test_a_home_that_cannot_be_written_is_replaced_by_the_runner_root_with_a_warning(run):
    env = {"RUNNER_URL": "https://github.com/a/b", "RUNNER_TOKEN": "A", "RUNNER_ROOT": harness.ROOT, "HOME": "/"}
    pod = run(["--check-config"], env, user=(12345, 12345), root_owner=12345)
    assert pod.wait() == 0 and "warn: HOME: " in pod.text and harness.ROOT in pod.text, pod.text
