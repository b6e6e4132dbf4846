"""From nothing to a registered runner, one job, and nothing left: every form of URL, both flows, every setting of a registration."""
import os

import pytest

import harness
import lives
import selfcheck

FLOWS = pytest.mark.parametrize("flow", ["v1", "v2"])


@FLOWS
@pytest.mark.parametrize("url, entity", [u[1:] for u in lives.URLS], ids=[u[0] for u in lives.URLS])
def test_a_runner_registers_takes_one_job_and_is_gone(run, make_world, flow, url, entity):
    world = make_world(flow=flow)
    pod = lives.listening(run, world, url, entity=entity)
    (runner,) = world.runners()
    assert (runner["entity"], runner["name"], runner["flow"], runner["version"]) == (entity, "r1", flow, harness.VERSION)
    assert (runner["ephemeral"], runner["disable_update"], runner["group_id"]) == (True, True, 1)
    assert runner["labels"] == ["self-hosted", "Linux", selfcheck.ARCH[1]]
    world.job(name="hello", seconds=0.05)
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"
    assert [r["how"] for r in world.snapshot()["removed"]] == ["ephemeral"]
    lives.removed_by_service(pod)
    settings = lives.agent(pod)["settings"]
    assert settings["agentid"] == runner["id"] and settings["agentname"] == "r1" and settings["poolname"] == "Default"
    plain = selfcheck.split_url(url)[0].lower()
    assert settings["githuburl"].rstrip("/").lower() in (url.lower().rstrip("/"), plain, plain.replace("//www.", "//"))
    assert settings.get("userunneradminflow", False) == (flow == "v2")


@FLOWS
def test_registering_takes_four_requests_and_opens_no_more_connections_than_hosts(run, make_world, flow):
    world = make_world(flow=flow)
    pod = lives.listening(run, world)
    steps = world.steps()
    assert steps == {"v1": ["registration", "v1.pools", "v1.lookup", "v1.add"],
                     "v2": ["registration", "v2.groups", "v2.lookup", "v2.add"]}[flow]
    conns = {x["conn"] for x in world.log() if x["step"] in steps}
    assert len(conns) == (2 if flow == "v1" else 1)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.steps()[4:] == {"v1": ["registration", "v1.delete"], "v2": ["v2.delete"]}[flow]
    lives.deregistered(pod)


def test_the_default_name_is_the_host_name(run, world):
    pod = lives.listening(run, world, RUNNER_NAME=None, hostname="gpu-node-17")
    assert [r["name"] for r in world.runners()] == ["gpu-node-17"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("name", ["a b", "x" * 64, "gpu_node-1.rack-7", "läufer", "50%+1&x=y"])
def test_a_given_name_arrives_as_given(run, world, name):
    pod = lives.listening(run, world, RUNNER_NAME=name)
    assert [r["name"] for r in world.runners()] == [name]
    assert lives.agent(pod)["settings"]["agentname"] == name
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_labels_are_trimmed_and_doubles_are_dropped(run, world):
    pod = lives.listening(run, world, RUNNER_LABELS=" gpu ,self-hosted,,GPU, h100 big ,linux")
    assert world.runners()[0]["labels"] == ["self-hosted", "Linux", selfcheck.ARCH[1], "gpu", "h100 big"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_default_labels_can_be_left_out(run, world):
    pod = lives.listening(run, world, RUNNER_LABELS="only", RUNNER_NO_DEFAULT_LABELS="Yes")
    assert world.runners()[0]["labels"] == ["only"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_group_is_found_by_name_in_any_case(run, world):
    pod = lives.listening(run, world, lives.ORG_URL, RUNNER_GROUP="GPU")
    assert world.runners()[0]["group_id"] == 7
    assert lives.agent(pod)["settings"]["poolname"] == "gpu" and lives.agent(pod)["settings"]["poolid"] == 7
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_missing_group_is_named_with_those_that_exist(run, world):
    pod = lives.start(run, world, lives.ORG_URL, RUNNER_GROUP="fast")
    lives.refused(pod, world, 78, "fast", "Default", "gpu")


def test_a_hosted_group_is_not_chosen(run, world):
    pod = lives.start(run, world, lives.ORG_URL, RUNNER_GROUP="GitHub Actions")
    lives.refused(pod, world, 78, "GitHub Actions")


def test_a_runner_of_the_same_name_is_replaced_and_keeps_its_id(run, world):
    old = world.runner(entity="repos/acme/widget", name="R1", labels=["old"])["id"]
    pod = lives.listening(run, world)
    (runner,) = world.runners()
    assert runner["id"] == old and runner["replaced"] and "old" not in runner["labels"]
    assert lives.agent(pod)["settings"]["agentid"] == old
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_without_replace_a_taken_name_ends_the_start_and_nothing_is_touched(run, world):
    old = world.runner(entity="repos/acme/widget", name="r1")["id"]
    pod = lives.start(run, world, RUNNER_REPLACE="no")
    assert pod.wait() == 78, pod.text
    assert any("r1" in line and "RUNNER_REPLACE" in line for line in pod.log), pod.text
    assert [r["id"] for r in world.runners()] == [old] and not world.runners()[0]["replaced"]
    assert not {"v1.add", "v2.add", "v1.replace", "v2.replace", "v1.delete", "v2.delete"} & set(world.steps())


def test_a_runner_whose_name_only_begins_alike_is_left_alone(run, make_world):
    for flow in ("v1", "v2"):
        world = make_world(flow=flow, loose_lookup=True)
        other = world.runner(entity="repos/acme/widget", name="r1-other")["id"]
        pod = lives.listening(run, world)
        assert sorted(r["name"] for r in world.runners()) == ["r1", "r1-other"]
        pod.signal("TERM")
        assert pod.wait() == 0, pod.text
        assert [r["id"] for r in world.runners()] == [other]


def test_a_name_taken_between_look_up_and_add_is_looked_up_once_more(run, world):
    # the first look-up is answered with an empty list although the name is held
    old = world.runner(entity="repos/acme/widget", name="r1")["id"]
    world.fault(step="v1.lookup", status=200, body={"count": 0, "value": []})
    world.fault(step="v2.lookup", status=200, body={"total_count": 0, "runners": []})
    pod = lives.listening(run, world)
    assert [(r["id"], r["replaced"]) for r in world.runners()] == [(old, True)]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_persistent_runner_takes_job_after_job(run, world):
    pod = lives.listening(run, world, RUNNER_EPHEMERAL="no", RUNNER_DISABLE_UPDATE="false")
    assert (world.runners()[0]["ephemeral"], world.runners()[0]["disable_update"]) == (False, False)
    for n in range(3):
        world.job(name="job-%d" % n)
    assert world.wait_for("jobs_done")
    assert [j["result"] for j in world.snapshot()["jobs"]] == ["Succeeded"] * 3
    settings = lives.agent(pod)["settings"]
    assert "ephemeral" not in settings and "disableupdate" not in settings
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    lives.deregistered(pod)


@pytest.mark.parametrize("where, seen", [("work here", harness.ROOT + "/work here"), ("/data/w", "/data/w")])
def test_the_work_folder_may_be_relative_or_absolute(run, world, where, seen):
    pod = lives.listening(run, world, RUNNER_WORKDIR=where, folders={"/data": (0o755, 1000)})
    assert lives.agent(pod)["settings"]["workfolder"] == where
    assert pod.run(["test", "-d", seen]).returncode == 0
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("ident", [2 ** 31, 2 ** 53 + 1, 2 ** 63 - 1])
def test_an_id_of_any_width_survives(run, world, ident):
    world.attr(name="next_id", value=ident)
    pod = lives.listening(run, world)
    assert lives.agent(pod)["settings"]["agentid"] == ident
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert str(ident) in lives.receipt(pod)


@pytest.mark.parametrize("settings", [
    {"property_style": "bare"}, {"property_style": "strings"}, {"fips": False}, {"fips": False, "property_style": "strings"},
    {"messaging": "v1"}, {"auth_migration": True}, {"bom": True}, {"chunked": True}, {"close": True},
    {"bom": True, "chunked": True, "close": True}, {"direct_routes": False}], ids=lambda s: "-".join("%s=%s" % kv for kv in s.items()))
def test_every_form_of_the_v1_answer_is_understood(run, make_world, settings):
    world = make_world(flow="v1", **settings)
    pod = lives.listening(run, world)
    (runner,) = world.runners()
    seen = lives.agent(pod)["settings"]
    assert seen.get("usev2flow", False) == (settings.get("messaging") != "v1")
    assert runner["online"]
    world.job(name="j")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("settings", [{"legacy_url": True}, {"chunked": True}, {"close": True}], ids=str)
def test_every_form_of_the_v2_answer_is_understood(run, make_world, settings):
    world = make_world(flow="v2", **settings)
    pod = lives.listening(run, world)
    world.job(name="j")
    lives.ended(pod, world, 0)


def test_the_version_is_that_of_the_installed_runner(run, make_world):
    world = make_world(flow="v2", expected_version="2.341.7")
    pod = lives.listening(run, world, version="2.341.7")
    assert world.runners()[0]["version"] == "2.341.7"
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_without_deps_json_the_listener_is_asked_for_its_version(run, world, tmp_path):
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.unlink(os.path.join(root, "bin", "Runner.Listener.deps.json"))
    # the stand-in then takes its version from a file of its own
    with open(os.path.join(root, "bin", "version"), "w") as f:
        f.write(harness.VERSION)
    os.chmod(str(tmp_path), 0o755)
    pod = lives.listening(run, world, root=root)
    assert world.runners()[0]["version"] == harness.VERSION
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_the_agent_gets_a_clean_process_and_the_promised_environment(run, world):
    pod = lives.listening(run, world, INIT_LOG_LEVEL="debug", CUSTOM="kept", ACTIONS_RUNNER_INPUT_NAME="r1", umask=0o077)
    me = lives.agent(pod)
    assert me["argv"] == [harness.ROOT + "/bin/Runner.Listener", "run"] or me["argv"][1:] == ["run"]
    assert me["cwd"] == harness.ROOT and me["umask"] == 0o002
    assert me["sid"] == me["pid"] and me["pgid"] == me["pid"]
    assert int(me["blocked"], 16) == 0
    # Python itself ignores PIPE (13) and XFSZ (25)
    assert int(me["ignored"], 16) & ~((1 << 12) | (1 << 24)) == 0
    assert me["fds"].get("0") == "/dev/null"
    extra = {n: link for n, link in me["fds"].items() if n not in ("0", "1", "2") and not link.startswith("/proc")
             and "/bin/" not in link}
    assert len(extra) <= 2 and all(link.startswith("pipe:") for link in extra.values()), extra  # the stand-in's own wake-up pipe
    env = me["environ"]
    assert env["CUSTOM"] == "kept" and env["HOME"] == "/home/ci-runner"
    assert env["ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE"] == "1" and env["RUNNER_MANUALLY_TRAP_SIG"] == "1"
    gone = [k for k in env if k.startswith(("INIT_", "ACTIONS_RUNNER_INPUT_")) or k in ("RUNNER_TOKEN", "ACCESS_TOKEN", "APP_PRIVATE_KEY")]
    assert gone == []
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_env_and_path_files_are_written_as_the_agents_script_does(run, world):
    pod = lives.listening(run, world, LANG="C.UTF-8", JAVA_HOME="/opt/java", PERL5LIB="/p")
    with open(os.path.join(pod.root, ".env")) as f:
        lines = f.read().splitlines()
    assert lines == ["LANG=C.UTF-8", "JAVA_HOME=/opt/java", "PERL5LIB=/p"]
    with open(os.path.join(pod.root, ".path")) as f:
        assert f.read().strip() == lives.agent(pod)["environ"]["PATH"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_stale_identity_files_are_removed_before_registering(run, world, tmp_path):
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.chmod(str(tmp_path), 0o755)
    for name in (".runner", ".credentials", ".credentials_rsaparams", ".runner_migrated", ".credentials_migrated"):
        with open(os.path.join(root, name), "w") as f:
            f.write('{"agentId": 7, "agentName": "stale"}')
        os.chown(os.path.join(root, name), 1000, 1000)
    pod = lives.listening(run, world, root=root)
    assert lives.agent(pod)["settings"]["agentname"] == "r1"
    assert pod.identity_files() == [".credentials", ".credentials_rsaparams", ".runner"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_second_life_in_the_same_root_registers_anew(run, world, tmp_path):
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.chmod(str(tmp_path), 0o755)
    for n in range(2):
        pod = lives.listening(run, world, root=root)
        pod.signal("TERM")
        lives.ended(pod, world, 0)
    assert len(world.snapshot()["removed"]) == 2


def test_cache_folders_are_made_and_given_to_the_agent(run, world):
    pod = lives.listening(run, world, cache=True)
    env = lives.agent(pod)["environ"]
    assert env["TILELANG_CACHE_DIR"] == "/ci-cache/tilelang" and env["TILELANG_TMP_DIR"] == "/ci-cache/tilelang/tmp"
    assert env["TRITON_CACHE_DIR"] == "/ci-cache/triton" and env["PIP_CACHE_DIR"] == "/ci-cache/pip"
    assert env["AGENT_TOOLSDIRECTORY"] == harness.ROOT + "/_work/_tool"
    for key in ("TILELANG_CACHE_DIR", "TILELANG_TMP_DIR", "TRITON_CACHE_DIR", "PIP_CACHE_DIR", "AGENT_TOOLSDIRECTORY"):
        assert pod.run(["touch", env[key] + "/probe"]).returncode == 0
    mode = pod.run(["stat", "-c", "%a", "/ci-cache/tilelang/tmp"]).stdout.decode().strip()
    assert int(mode, 8) & 0o2020 == 0o2020, mode
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_without_a_cache_volume_the_cache_variables_stay_unset(run, world):
    pod = lives.listening(run, world)
    env = lives.agent(pod)["environ"]
    assert not {"TILELANG_CACHE_DIR", "TILELANG_TMP_DIR", "TRITON_CACHE_DIR", "PIP_CACHE_DIR"} & set(env)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_root_with_runner_user_runs_the_agent_as_that_user(run, world):
    pod = lives.listening(run, world, user=0, RUNNER_USER="ci-runner", HOME=None)
    me = lives.agent(pod)
    assert (me["uid"], me["gid"], me["groups"]) == (1000, 1000, [44, 1000]) or sorted(me["groups"]) == [44, 1000] or me["groups"] == [44]
    assert me["environ"]["HOME"] == "/home/ci-runner" and int(me["cap_eff"], 16) == 0
    assert pod.processes()[1]["uid"] == 0
    world.job(name="j")
    lives.ended(pod, world, 0)


def test_root_without_runner_user_is_refused(run, world):
    pod = lives.start(run, world, user=0)
    lives.refused(pod, world, 78, "RUNNER_USER", "RUNNER_ALLOW_RUNASROOT")
    assert world.log() == []


def test_root_is_allowed_when_asked_for(run, world):
    pod = lives.listening(run, world, user=0, RUNNER_ALLOW_RUNASROOT="1", root_owner=0)
    assert lives.agent(pod)["uid"] == 0
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_read_only_image_works_when_root_and_tmp_are_writable(run, world):
    pod = lives.listening(run, world, readonly=True)
    world.job(name="j")
    lives.ended(pod, world, 0)


def test_another_uid_than_the_image_knows_works(run, world):
    pod = lives.listening(run, world, user=12345, root_owner=12345, HOME=None)
    assert lives.agent(pod)["uid"] == 12345
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_health_follows_the_life(run, world):
    pod = lives.listening(run, world, RUNNER_EPHEMERAL="no")
    pod.run(["/opt/init/init", "--health"])
    done = harness_poll(pod)
    assert done.returncode == 0, done
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def harness_poll(pod):
    """The state file follows the agent's line by a moment."""
    import time
    end = time.monotonic() + 10
    while True:
        done = pod.run(["/opt/init/init", "--health"])
        if done.returncode == 0 or time.monotonic() > end:
            return done
        time.sleep(0.02)
