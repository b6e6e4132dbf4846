"""Every way to be a runner: registration token, PAT, GitHub App, JIT configuration given and generated; each scope, each flow."""
import base64
import json
import os

import pytest

import credentials
import harness
import lives

SCOPES = [("org", "https://github.com/acme", "orgs/acme"), ("repo", "https://github.com/acme/widget", "repos/acme/widget"),
          ("enterprise", "https://github.com/enterprises/big", "enterprises/big"),
          ("residency", "https://octo.ghe.com/acme", "orgs/acme"), ("ghes", "https://ghes.corp.test:8443/acme/widget", "repos/acme/widget")]
WAYS = {"token": credentials.token, "pat": credentials.pat, "app": credentials.app, "jit-generated": credentials.jit_generated}
CASES = [(way, scope, flow) for way in WAYS for scope in range(len(SCOPES)) for flow in ("v1", "v2")
         if not (way == "app" and SCOPES[scope][0] == "enterprise") and not (way == "jit-generated" and flow == "v2")]
NAMES = ["%s-%s-%s" % (w, SCOPES[s][0], f) for w, s, f in CASES]


@pytest.mark.parametrize("way, scope, flow", CASES, ids=NAMES)
def test_a_runner_does_its_job_and_is_removed_when_it_is_idle_and_every_token_expired(run, make_world, way, scope, flow):
    _, url, entity = SCOPES[scope]
    world = make_world(flow=flow)
    pod = lives.listening(run, world, url, RUNNER_EPHEMERAL="no", **WAYS[way](world, entity))
    assert world.runners()[0]["entity"] == entity
    if way != "jit-generated":  # those take one job and are gone: the next test
        world.job(name="j")
        assert world.wait_for("jobs_done")
        pod.wait_text("Job j completed")
        assert world.snapshot()["jobs"][0]["result"] == "Succeeded"
    world.advance(seconds=3700)
    pod.signal("TERM")
    if way == "token":
        assert pod.wait() == 85, pod.text
        (ghost,) = world.runners()
        lives.names_the_ghost(pod, ghost, url)
        assert any("ACCESS_TOKEN" in line or "APP_ID" in line for line in pod.log), pod.text
    else:
        lives.ended(pod, world, 0)
        lives.deregistered(pod)


@pytest.mark.parametrize("way, scope, flow", [c for c in CASES if c[0] == "jit-generated" or c[1] == 0],
                         ids=[n for n, c in zip(NAMES, CASES) if c[0] == "jit-generated" or c[1] == 0])
def test_an_ephemeral_runner_does_its_job_and_is_gone(run, make_world, way, scope, flow):
    _, url, entity = SCOPES[scope]
    world = make_world(flow=flow)
    pod = lives.listening(run, world, url, **WAYS[way](world, entity))
    world.job(name="j")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"


def test_a_pat_beside_a_token_is_used_for_the_removal(run, world):
    env = dict(credentials.pat(world, "repos/acme/widget"))
    del env["RUNNER_TOKEN"]
    pod = lives.listening(run, world, **env)
    world.advance(seconds=3700)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert "rest.delete" in world.steps()


def test_a_pat_without_the_right_is_refused_with_the_right_named(run, make_world):
    world = make_world(flow="v1")
    world.pat(token=credentials.PAT, scopes=["gist"])
    pod = lives.start(run, world, RUNNER_TOKEN=None, ACCESS_TOKEN=credentials.PAT)
    lives.refused(pod, world, 77, "403")
    assert credentials.PAT not in pod.text


def test_an_unknown_pat_is_refused(run, make_world):
    world = make_world(flow="v1")
    pod = lives.start(run, world, RUNNER_TOKEN=None, ACCESS_TOKEN="ghp_wrongwrongwrongwrongwrongwrong")
    lives.refused(pod, world, 77, "401")


@pytest.mark.parametrize("form", ["pkcs1", "pkcs8", "literal", "crlf", "file"])
def test_an_app_key_is_accepted_in_every_usual_form(run, make_world, form):
    world = make_world(flow="v2")
    pem = credentials.private_pem(credentials.app_key(), "pkcs8" if form == "pkcs8" else "pkcs1")
    files = {}
    if form == "literal":
        pem = pem.replace("\n", "\\n")
    if form == "crlf":
        pem = pem.replace("\n", "\r\n")
    env = credentials.app(world, "repos/acme/widget", pem)
    if form == "file":
        del env["APP_PRIVATE_KEY"]
        env["APP_PRIVATE_KEY_FILE"] = "/run/app.pem"
        files = {"/run/app.pem": (pem, 0o400, 1000)}
    pod = lives.listening(run, world, files=files, **env)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_an_app_may_be_named_by_its_client_id(run, make_world):
    world = make_world(flow="v2")
    pod = lives.listening(run, world, **credentials.app(world, "repos/acme/widget", APP_ID="Iv23liABCDEFGHIJKLMN"))
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_given_installation_is_not_looked_for(run, make_world):
    world = make_world(flow="v2")
    pod = lives.listening(run, world, **credentials.app(world, "repos/acme/widget", APP_INSTALLATION_ID="777"))
    assert not {"app.installation", "app.installations"} & set(world.steps())
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_an_installation_is_found_on_the_third_page(run, make_world):
    world = make_world(flow="v2")
    world.fault(step="app.installation", times=-1, status=404, body={"message": "Not Found"})
    pod = lives.listening(run, world, **credentials.app(world, "repos/acme/widget"))
    assert world.steps().count("app.installations") == 3
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_an_app_that_is_not_installed_there_is_named(run, make_world):
    world = make_world(flow="v2")
    world.attr(name="entities", value=["orgs/elsewhere"])
    pod = lives.start(run, world, "https://github.com/elsewhere", **credentials.app(world, "orgs/elsewhere"))
    lives.refused(pod, world, 77, "elsewhere")


@pytest.mark.parametrize("pem, word", [("nonsense", "APP_PRIVATE_KEY"), ("public", "APP_PRIVATE_KEY"), ("short", "APP_PRIVATE_KEY")])
def test_an_app_key_that_is_none_is_named_before_any_request(run, make_world, pem, word):
    world = make_world(flow="v2")
    text = {"nonsense": "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
            "public": credentials.public_pem(credentials.app_key()),
            "short": credentials.private_pem(credentials.app_key())[:300]}[pem]
    pod = lives.start(run, world, **credentials.app(world, "repos/acme/widget", text))
    lives.refused(pod, world, 78, word)
    assert world.log() == []
    assert "AAAA" not in pod.text


def test_the_wrong_app_key_is_a_refused_credential(run, make_world):
    world = make_world(flow="v2")
    pem = credentials.private_pem(credentials.app_key("other"))
    pod = lives.start(run, world, **credentials.app(world, "repos/acme/widget", pem))
    lives.refused(pod, world, 77, "401")


@pytest.mark.parametrize("web", ["github.com", "octo.ghe.com", "ghes.corp.test:8443"])
def test_a_given_jit_configuration_registers_nothing_and_runs_the_job(run, make_world, web):
    world = make_world(flow="v1")
    pod = lives.listening(run, world, entity="orgs/acme", **credentials.jit(world, "orgs/acme", web))
    assert world.steps() == []
    me = lives.agent(pod)
    assert me["argv"][1:] == ["run"] and me["settings"]["agentname"] == "jit-1"
    assert pod.identity_files() == [".credentials", ".credentials_rsaparams", ".runner"]
    world.job(name="j")
    lives.ended(pod, world, 0)


def test_a_given_jit_configuration_with_a_pat_is_deregistered_by_id(run, make_world):
    world = make_world(flow="v1")
    env = credentials.jit(world, "orgs/acme")
    world.pat(token=credentials.PAT, scopes=["admin:org"])
    env.update(RUNNER_URL="https://github.com/acme", ACCESS_TOKEN=credentials.PAT)
    pod = lives.listening(run, world, entity="orgs/acme", **env)
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.steps()[-1] == "rest.delete"


def test_a_given_jit_configuration_alone_is_left_to_the_service_and_that_is_said(run, make_world):
    world = make_world(flow="v1")
    pod = lives.listening(run, world, entity="orgs/acme", **credentials.jit(world, "orgs/acme"))
    pod.signal("TERM")
    assert pod.wait() in (0, 85), pod.text
    assert any("the service removes it" in line for line in pod.log), pod.text
    assert not {"v1.delete", "v2.delete", "rest.delete"} & set(world.steps())


@pytest.mark.parametrize("what", ["base64", "json", "slash", "dots", "unknown", "missing", "inner"])
def test_a_damaged_jit_configuration_is_named_and_nothing_is_written(run, make_world, what):
    world = make_world(flow="v1")
    env = credentials.jit(world, "orgs/acme")
    good = env["ACTIONS_RUNNER_INPUT_JITCONFIG"]
    files = credentials.jit_files(good)

    def pack(obj):
        return base64.b64encode(json.dumps({n: base64.b64encode(t).decode() for n, t in obj.items()}).encode()).decode()
    bad = {"base64": good[:-7] + "!!!", "json": base64.b64encode(b"{nonsense").decode(),
           "slash": pack(dict(files, **{"../evil": b"x"})), "dots": pack(dict(files, **{"..": b"x"})),
           "unknown": pack(dict(files, **{"run.sh": b"x"})), "missing": pack({".runner": files[".runner"]}),
           "inner": pack(dict(files, **{".runner": b"no json"}))}[what]
    env["ACTIONS_RUNNER_INPUT_JITCONFIG"] = bad
    pod = lives.start(run, world, entity="orgs/acme", **env)
    assert pod.wait() in (76, 78), pod.text
    assert any("JITCONFIG" in line for line in pod.log), pod.text
    assert pod.identity_files() == [] and "Listening" not in pod.text
    assert not os.path.exists(os.path.join(pod.root, "..", "evil"))
    assert world.log() == []


def test_a_generated_jit_configuration_has_the_default_labels_and_the_asked_ones(run, make_world):
    world = make_world(flow="v1")
    pod = lives.listening(run, world, "https://github.com/acme", RUNNER_LABELS="gpu", RUNNER_GROUP="gpu", RUNNER_WORKDIR="w",
                          **credentials.jit_generated(world, "orgs/acme"))
    (runner,) = world.runners()
    assert runner["flow"] == "jit" and runner["group_id"] == 7
    assert [n.lower() for n in runner["labels"]] == ["self-hosted", "linux", "x64", "gpu"]
    assert lives.agent(pod)["settings"]["workfolder"] == "w"
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_taken_name_of_a_generated_jit_runner_is_cleared_first(run, make_world):
    world = make_world(flow="v1")
    old = world.runner(entity="orgs/acme", name="r1")["id"]
    pod = lives.listening(run, world, "https://github.com/acme", **credentials.jit_generated(world, "orgs/acme"))
    assert [r["id"] for r in world.runners()] != [old] and len(world.runners()) == 1
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("way", ["pat", "jit-generated"])
def test_a_busy_runner_of_that_name_is_not_stolen_unless_asked_for(run, make_world, way):
    world = make_world(flow="v2")
    old = world.runner(entity="orgs/acme", name="r1", online=True, busy=True)["id"]
    pod = lives.start(run, world, "https://github.com/acme", **WAYS[way](world, "orgs/acme"))
    assert pod.wait() == 78, pod.text
    assert [(r["id"], r["replaced"]) for r in world.runners()] == [(old, False)]
    assert any("RUNNER_REPLACE" in line for line in pod.log), pod.text


def test_a_replaced_runner_ends_in_the_group_that_was_asked_for(run, make_world):
    for flow in ("v1", "v2"):
        world = make_world(flow=flow)
        world.runner(entity="orgs/acme", name="r1", group_id=1)
        pod = lives.listening(run, world, "https://github.com/acme", RUNNER_GROUP="gpu")
        assert [(r["name"], r["group_id"]) for r in world.runners()] == [("r1", 7)]
        pod.signal("TERM")
        lives.ended(pod, world, 0)


def test_a_group_at_a_repository_is_one_clear_error(run, world):
    pod = lives.start(run, world, RUNNER_GROUP="gpu")
    lives.refused(pod, world, 78, "RUNNER_GROUP", "repository")


def test_a_running_job_is_waited_for_through_the_422_guard(run, make_world):
    world = make_world(flow="v2")
    world.job(name="long", steps=[{"sleep": 2}])
    pod = lives.start(run, world, INIT_DRAIN="30s", **credentials.pat(world, "repos/acme/widget"))
    assert world.wait_for("running")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert world.snapshot()["jobs"][0]["result"] == "Succeeded"


def test_a_killed_job_held_by_github_is_removed_the_other_way(run, make_world):
    # the REST delete answers 422 for ten minutes; remove-token and the V1 delete do not
    world = make_world(flow="v1")
    world.job(name="deaf", steps=[{"mark": "begun", "sleep": 60, "ignore": ["SIGINT", "SIGTERM"]}])
    pod = lives.start(run, world, **credentials.pat(world, "repos/acme/widget"))
    pod.report("begun")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert "rest.remove_token" in world.steps() and "v1.delete" in world.steps()


def test_no_credential_is_found_by_the_job(run, make_world):
    world = make_world(flow="v2")
    env = credentials.app(world, "repos/acme/widget")
    pem = env["APP_PRIVATE_KEY"]
    words = [line for line in pem.splitlines() if len(line) > 40][:4]
    pod = lives.listening(run, world, **env)
    assert harness.secrets_in(pod.look(1000), words + ["ghs_"]) == []
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_jit_configuration_is_in_no_environ_and_no_argument(run, make_world):
    world = make_world(flow="v1")
    env = credentials.jit(world, "orgs/acme")
    pod = lives.listening(run, world, entity="orgs/acme", **env)
    config = env["ACTIONS_RUNNER_INPUT_JITCONFIG"]
    seen = pod.look(1000)
    assert [h for h in harness.secrets_in(seen, [config, config[200:260]]) if h.startswith("/proc")] == []
    pod.signal("TERM")
    assert pod.wait() in (0, 85)


@pytest.mark.parametrize("way", ["pat", "app"])
def test_a_life_that_was_killed_is_cleaned_up_by_the_next_one_in_the_same_container(run, make_world, tmp_path, way):
    world = make_world(flow="v2", session_ttl=1)
    env = WAYS[way](world, "repos/acme/widget")
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    state = tmp_path / "state"
    state.mkdir()
    for path in (tmp_path, state):
        os.chmod(str(path), 0o755)
    os.chown(str(state), 1000, 1000)
    kept = {"root": root, "binds": {"/run/init": str(state)}}
    pod = lives.listening(run, world, RUNNER_NAME="first", **kept, **env)
    ghost = world.runners()[0]["id"]
    pod.signal("KILL")
    pod.wait()
    world.advance(seconds=5)
    assert [(r["id"], r["online"]) for r in world.runners()] == [(ghost, False)]
    pod = lives.listening(run, world, RUNNER_NAME="second", **kept, **env)
    assert [r["name"] for r in world.runners()] == ["second"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_predecessor_that_is_still_online_is_left_alone(run, make_world, tmp_path):
    world = make_world(flow="v2")
    env = credentials.pat(world, "repos/acme/widget")
    state = tmp_path / "state"
    state.mkdir()
    os.chmod(str(tmp_path), 0o755)
    os.chown(str(state), 1000, 1000)
    pod = lives.listening(run, world, RUNNER_NAME="first", binds={"/run/init": str(state)}, **env)
    pod.signal("KILL")
    pod.wait()
    (first,) = world.runners()
    assert first["online"]  # the service has not noticed yet
    pod = lives.listening(run, world, RUNNER_NAME="second", binds={"/run/init": str(state)}, **env)
    assert sorted(r["name"] for r in world.runners()) == ["first", "second"]
    pod.signal("TERM")
    assert pod.wait() == 0, pod.text
    assert [r["name"] for r in world.runners()] == ["first"]
