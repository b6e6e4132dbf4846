"""What bad input gets: one message that names the thing, the contract's exit code, no request that creates anything, nothing half-done."""
import os

import pytest

import harness
import lives


def bad(run, make_world, code, *words, **env):
    world = make_world()
    pod = lives.start(run, world, **env)
    lives.refused(pod, world, code, *words)
    assert world.log() == [], "requests were sent: %s" % world.steps()
    return pod


@pytest.mark.parametrize("env, words", [
    ({"RUNNER_URL": None}, ["RUNNER_URL"]),
    ({"RUNNER_URL": ""}, ["RUNNER_URL"]),
    ({"RUNNER_URL": "   \r\n"}, ["RUNNER_URL"]),
    ({"RUNNER_TOKEN": None}, ["RUNNER_TOKEN", "ACCESS_TOKEN"]),
    ({"RUNNER_TOKEN": ""}, ["RUNNER_TOKEN"]),
    ({"RUNNER_URL": "http://github.com/acme"}, ["RUNNER_URL", "https"]),
    ({"RUNNER_URL": "ftp://github.com/acme"}, ["RUNNER_URL", "https"]),
    ({"RUNNER_URL": "github.com/acme"}, ["RUNNER_URL"]),
    ({"RUNNER_URL": "https://github.com"}, ["RUNNER_URL"]),
    ({"RUNNER_URL": "https://github.com/"}, ["RUNNER_URL"]),
    ({"RUNNER_URL": "https://github.com/a/b/c"}, ["RUNNER_URL", "a/b/c"]),
    ({"RUNNER_URL": "https://github.com/acme/widget/tree/main"}, ["RUNNER_URL"]),
    ({"RUNNER_URL": "https://user:pw@github.com/acme"}, ["RUNNER_URL"]),
    ({"RUNNER_URL": "https://github.com:99999/acme"}, ["RUNNER_URL"]),
    ({"RUNNER_NAME": "x" * 65}, ["RUNNER_NAME", "64"]),
    ({"RUNNER_LABELS": "a," + "y" * 257}, ["RUNNER_LABELS", "256"]),
    ({"RUNNER_NO_DEFAULT_LABELS": "yes"}, ["RUNNER_NO_DEFAULT_LABELS", "RUNNER_LABELS"]),
    ({"RUNNER_EPHEMERAL": "maybe"}, ["RUNNER_EPHEMERAL", "maybe"]),
    ({"RUNNER_REPLACE": "2"}, ["RUNNER_REPLACE"]),
    ({"INIT_STOP_TIMEOUT": "9x"}, ["INIT_STOP_TIMEOUT", "9x"]),
    ({"INIT_STOP_TIMEOUT": "-1"}, ["INIT_STOP_TIMEOUT"]),
    ({"INIT_REGISTER_TIMEOUT": "1.5m"}, ["INIT_REGISTER_TIMEOUT"]),
    ({"INIT_HTTP_TIMEOUT": "99999999999999999999"}, ["INIT_HTTP_TIMEOUT"]),
    ({"INIT_LOG": "xml"}, ["INIT_LOG"]),
    ({"INIT_LOG_LEVEL": "loud"}, ["INIT_LOG_LEVEL"]),
    ({"INIT_SELFTEST": "slow"}, ["INIT_SELFTEST"]),
    ({"RUNNER_TOKEN_FILE": "/etc/hostname"}, ["RUNNER_TOKEN", "RUNNER_TOKEN_FILE"]),
    ({"RUNNER_TOKEN": None, "RUNNER_TOKEN_FILE": "/nowhere/token"}, ["RUNNER_TOKEN_FILE", "/nowhere/token"]),
    ({"RUNNER_ROOT": "/nowhere"}, ["RUNNER_ROOT", "/nowhere"]),
], ids=lambda v: "-".join("%s=%s" % (k, (x or str(x))[:24]) for k, x in v.items()).replace("/", "_") if isinstance(v, dict) else "")
def test_a_bad_setting_is_named_and_no_request_is_sent(run, make_world, env, words):
    env.setdefault("RUNNER_TOKEN", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    bad(run, make_world, 78, *words, **env)


def test_all_problems_are_reported_together(run, make_world):
    bad(run, make_world, 78, "RUNNER_URL", "RUNNER_TOKEN", "RUNNER_NAME", "INIT_STOP_TIMEOUT", "RUNNER_EPHEMERAL",
        RUNNER_URL="https://github.com/a/b/c", RUNNER_TOKEN="", RUNNER_NAME="n" * 70, INIT_STOP_TIMEOUT="soon", RUNNER_EPHEMERAL="perhaps")


def test_a_token_is_never_shown_in_a_complaint(run, make_world):
    pod = bad(run, make_world, 78, "RUNNER_URL", RUNNER_URL="nonsense", RUNNER_TOKEN="ASECRETSECRETSECRET")
    assert "ASECRETSECRETSECRET" not in pod.text


def test_a_secret_file_that_cannot_be_read_is_named(run, make_world):
    bad(run, make_world, 78, "RUNNER_TOKEN_FILE", "/secret", RUNNER_TOKEN=None, RUNNER_TOKEN_FILE="/secret/token",
        token="unused", files={"/secret/token": ("ATOKEN", 0o600, 0)})


def test_a_token_may_come_from_a_file_with_a_trailing_newline(run, world):
    token = world.mint("repos/acme/widget")
    pod = lives.listening(run, world, token="unused", RUNNER_TOKEN=None, RUNNER_TOKEN_FILE="/run/token",
                          files={"/run/token": (token + "\r\n", 0o400, 1000)})
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert any("RUNNER_TOKEN" in line and "/run/token" in line and "warn" in line for line in pod.log), pod.text  # the job's user can read it


def test_values_are_trimmed(run, world):
    pod = lives.listening(run, world, RUNNER_URL="  https://github.com/acme/widget \r\n", RUNNER_NAME="\tr1 ", RUNNER_EPHEMERAL=" NO ",
                          entity="repos/acme/widget")
    assert [(r["name"], r["ephemeral"]) for r in world.runners()] == [("r1", False)]
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_no_agent_in_the_root(run, make_world):
    bad(run, make_world, 78, "Runner.Listener", agent=False)


def test_a_root_that_cannot_be_written(run, make_world):
    bad(run, make_world, 73, harness.ROOT, "1000", "RUNNER_ROOT", root_mode=0o555, root_owner=0)


def test_a_cache_folder_that_cannot_be_written(run, make_world):
    bad(run, make_world, 73, "/cold", "1000", "0755", "TRITON_CACHE_DIR", TRITON_CACHE_DIR="/cold/triton", folders={"/cold": (0o755, 0)})


def test_a_work_folder_that_cannot_be_made(run, make_world):
    bad(run, make_world, 73, "/cold", "RUNNER_WORKDIR", RUNNER_WORKDIR="/cold/work", folders={"/cold": (0o755, 0)})


@pytest.mark.parametrize("argv, code, word", [(["--nonsense"], 64, "--nonsense"), (["-g"], 64, "-g"), (["--selftest=never"], 64, "never")])
def test_a_wrong_command_line_is_usage(run, argv, code, word):
    pod = run(argv, {"PATH": "/usr/bin:/bin"})
    assert pod.wait() == code and word in pod.text


def test_check_config_reports_and_touches_nothing(run, make_world):
    world = make_world()
    env = harness.life_env(world, lives.REPO_URL, RUNNER_LABELS="a,b")
    pod = run(["--check-config"], env, world=world)
    assert pod.wait() == 0, pod.text
    assert "RUNNER_LABELS" in pod.text and env["RUNNER_TOKEN"] not in pod.text
    assert world.log() == [] and pod.identity_files() == []
    env["RUNNER_URL"], env["RUNNER_NAME"] = "https://github.com", "z" * 80
    pod = run(["--check-config"], env, world=world)
    assert pod.wait() == 78 and "RUNNER_URL" in pod.text and "RUNNER_NAME" in pod.text


# What the service says

def refusal(run, world, code, *words, adds=0, **env):
    pod = lives.start(run, world, **env)
    lives.refused(pod, world, code, *words, adds=adds)
    return pod


def ids(world):
    return [x["request_id"] for x in world.log()]


@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize("flow, step", [("v1", "registration"), ("v1", "v1.pools"), ("v1", "v1.lookup"), ("v1", "v1.add"),
                                        ("v2", "v2.groups"), ("v2", "v2.lookup"), ("v2", "v2.add")])
def test_a_refused_credential_prints_body_and_request_id(run, make_world, flow, step, status):
    world = make_world(flow=flow)
    world.fault(step=step, times=-1, status=status, body={"message": "no such luck %d" % status})
    pod = lives.start(run, world, INIT_REGISTER_TIMEOUT="20s")
    # 404 far behind the credential may as well mean a group or a runner that is gone
    assert pod.wait() in ((76, 77, 78) if status == 404 and step != "registration" else (77,)), pod.text
    log = "\n".join(pod.log)
    assert "no such luck %d" % status in log and str(status) in log, pod.text
    assert any(i in log for i in ids(world)), pod.text
    assert world.runners() == []
    calls = [s for s in world.steps() if s == step]
    assert len(calls) <= (1 if status == 404 and step == "registration" else 3) + (1 if step == "v1.pools" else 0)


def test_an_expired_token_is_a_refused_credential(run, world):
    world_token = world.mint("repos/acme/widget", ttl=-1)
    refusal(run, world, 77, "404", token=world_token)


def test_a_token_of_another_scope_is_a_refused_credential(run, world):
    refusal(run, world, 77, "404", token=world.mint("orgs/acme"))


def test_a_version_below_the_floor_is_83(run, make_world):
    world = make_world(min_version="2.400.0")
    refusal(run, world, 83, "2.400.0", harness.VERSION)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_a_server_that_is_briefly_ill_is_tried_again(run, world, status):
    for step in ("registration", "v1.pools", "v1.lookup", "v2.groups", "v2.lookup"):
        world.fault(step=step, status=status, body="<html>ill</html>")
    pod = lives.listening(run, world)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_server_that_stays_ill_is_69_within_the_budget(run, world, status):
    world.fault(step="registration", times=-1, status=status, body="ill")
    pod = refusal(run, world, 69, str(status), INIT_REGISTER_TIMEOUT="6s")
    assert pod.took < 9


def test_nobody_listening_is_69(run, make_world):
    world = make_world()
    pod = refusal(run, world, 69, "api.github.com", INIT_REGISTER_TIMEOUT="5s", listen=())
    assert pod.took < 9


def test_a_host_that_does_not_exist_is_69(run, make_world):
    world = make_world()
    pod = refusal(run, world, 69, "api.github.com", INIT_REGISTER_TIMEOUT="5s", hosts={})
    assert pod.took < 9


GARBAGE = [("html", {"status": 200, "body": "<html>Welcome to the hotel</html>"}), ("not-json", {"status": 200, "body": "{\"url\": "}),
           ("empty", {"status": 200, "body": ""}), ("list", {"status": 200, "body": [1]}), ("number", {"status": 200, "body": "7"}),
           ("not-http", {"garbage": "SSH-2.0-OpenSSH_9.2\r\n\r\n"}), ("trailing", {"status": 200, "body": "{} {}"})]


STEPS = [("v1", "registration"), ("v1", "v1.pools"), ("v1", "v1.lookup"), ("v2", "v2.groups"), ("v2", "v2.lookup")]
# everything at the first step, the two commonest at the others
GARBLED = [(flow, step, name) for flow, step in STEPS for name, _ in GARBAGE if step == "registration" or name in ("html", "not-json")]


@pytest.mark.parametrize("flow, step, name", GARBLED)
def test_garbage_is_76_and_creates_nothing(run, make_world, flow, step, name):
    world = make_world(flow=flow)
    world.fault(step=step, times=-1, **dict(GARBAGE)[name])
    pod = lives.start(run, world, INIT_REGISTER_TIMEOUT="10s")
    lives.refused(pod, world, 76)


MISTYPED = [
    ("v1", "registration", {"url": "__delete__"}, "url"), ("v1", "registration", {"url": 7}, "url"),
    ("v1", "registration", {"token": "__delete__"}, "token"), ("v1", "registration", {"token_schema": "Basic"}, "token_schema"),
    ("v1", "registration", {"url": "http://pipelines.example/x/"}, "https"), ("v1", "registration", {"use_v2_flow": "yes"}, "use_v2_flow"),
    ("v1", "v1.pools", {"value": "__delete__"}, "value"), ("v1", "v1.pools", {"value.1.id": "one"}, "id"),
    ("v1", "v1.pools", {"value.1.id": 1.5}, "id"), ("v1", "v1.pools", {"value.1.name": None}, "name"),
    ("v1", "v1.lookup", {"value": {}}, "value"),
    ("v2", "v2.groups", {"runner_groups": "__delete__"}, "runner_groups"), ("v2", "v2.groups", {"runner_groups.1.id": "1"}, "id"),
    ("v2", "v2.lookup", {"runners": 5}, "runners"),
]


@pytest.mark.parametrize("flow, step, change, word", MISTYPED, ids=["%s-%s" % (m[1], "-".join("%s=%s" % kv for kv in m[2].items()).replace("/", "_"))
                                                                 for m in MISTYPED])
def test_a_missing_or_mistyped_field_is_named(run, make_world, flow, step, change, word):
    world = make_world(flow=flow)
    world.fault(step=step, times=-1, patch=change)
    pod = lives.start(run, world, INIT_REGISTER_TIMEOUT="10s")
    lives.refused(pod, world, 76, word)


ADD_ANSWERS = [
    ("v1", {"id": "__delete__"}), ("v1", {"id": "x"}), ("v1", {"authorization": "__delete__"}), ("v1", {"authorization.clientId": "__delete__"}),
    ("v1", {"authorization.clientId": "00000000-0000-0000-0000-000000000000"}), ("v1", {"authorization.authorizationUrl": "http://x/"}),
    ("v1", {"ephemeral": False}), ("v1", {"disableUpdate": "__delete__"}),
    ("v2", {"id": "__delete__"}), ("v2", {"authorization": 5}), ("v2", {"authorization.server_url": "__delete__"}),
    ("v2", {"authorization.client_id": "nonsense"}), ("v2", {"authorization.authorization_url": "__delete__"}),
]


@pytest.mark.parametrize("flow, change", ADD_ANSWERS, ids=["%s-%s" % (a[0], "-".join("%s=%s" % kv for kv in a[1].items()).replace("/", "_"))
                                                        for a in ADD_ANSWERS])
def test_an_add_whose_answer_is_wrong_is_taken_back(run, make_world, flow, change):
    world = make_world(flow=flow)
    world.fault(step=flow + ".add", times=-1, patch=change)
    pod = lives.start(run, world, INIT_REGISTER_TIMEOUT="20s")
    code = pod.wait()
    assert code == 76 or (code == 78 and ("ephemeral" in change or "disableUpdate" in change)), pod.text
    assert world.runners() == [], "%s\n%s" % (pod.text, world.steps())


def test_an_agent_whose_files_cannot_be_written_is_deleted_again(run, world, tmp_path):
    # the root turns read-only between the checks and the files: while the add is answered
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.chmod(str(tmp_path), 0o755)
    world.fault(step="v1.add", delay_after=1.0)
    world.fault(step="v2.add", delay_after=1.0)
    pod = lives.start(run, world, root=root)
    assert world.wait_for("registered")
    os.chown(root, 0, 0)
    os.chmod(root, 0o555)
    assert pod.wait() == 73, pod.text
    assert world.runners() == []
    assert any(harness.ROOT in line for line in pod.log), pod.text
    assert "Listening" not in pod.text


def test_a_foreign_tenant_gets_no_credential(run, make_world):
    world = make_world(flow="v1", tenant_url="https://other.corp.test/_services/pipelines/%s/" % ("x" * 40))
    pod = lives.start(run, world, "https://ghes.corp.test/acme")
    lives.refused(pod, world, 76, "other.corp.test")
    assert all(x["host"] == "ghes.corp.test" for x in world.log())
