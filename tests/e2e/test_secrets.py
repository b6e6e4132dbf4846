"""No secret is anywhere where a job could find it: not in an environ, an argument, a log or a file, searched as the job's user."""
import base64

import pytest

import harness
import lives


def forms(secret):
    """The secret, and the encodings in which it might travel."""
    raw = secret.encode()
    return [secret, base64.b64encode(raw).decode().rstrip("="), secret[::-1], raw.hex()]


def search(pod, words, uid):
    seen = pod.look(uid)
    assert len(seen["neighbours"]) >= 3, seen["neighbours"].keys()
    assert seen["files"], "the search saw no file"
    return harness.secrets_in(seen, words)


@pytest.mark.parametrize("user", [1000, 0])
def test_the_token_is_nowhere_while_listening_and_within_a_job(run, world, user):
    token = world.mint("repos/acme/widget")
    env = {"RUNNER_USER": "ci-runner"} if user == 0 else {}
    pod = lives.listening(run, world, token=token, user=user, INIT_LOG_LEVEL="debug", **env)
    assert search(pod, forms(token), 1000) == []
    world.job(name="thief", steps=[{"dump": "loot.json"}])
    lives.ended(pod, world, 0)
    loot = pod.report("loot.json")
    assert harness.secrets_in(loot, forms(token)) == []
    assert loot["neighbours"]["1"]["environ"] in (None, "") or "RUNNER_TOKEN" not in loot["neighbours"]["1"]["environ"]
    assert loot["neighbours"]["1"]["mem"] is False
    for word in forms(token):
        assert word not in pod.text
        assert word not in str(pod.agents())


def test_the_control_search_finds_a_planted_token(run, world):
    # the search itself must be able to fail
    pod = lives.listening(run, world, CUSTOM="planted-SECRET-1234")
    hits = search(pod, ["planted-SECRET-1234"], 1000)
    assert any(h.endswith("/environ") for h in hits), hits
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("user", [1000, 0])
def test_no_process_of_init_can_be_read_by_the_job(run, world, user):
    env = {"RUNNER_USER": "ci-runner"} if user == 0 else {}
    pod = lives.listening(run, world, user=user, **env)
    seen = pod.look(1000)["neighbours"]
    ours = [n for n, p in pod.processes().items() if p["cmdline"][:1] == pod.processes()[1]["cmdline"][:1]]
    assert 1 in ours and len(ours) >= 2, pod.processes()
    for pid in ours:
        assert seen[str(pid)]["environ"] in (None, ""), pid
        assert seen[str(pid)]["mem"] is False, pid
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_even_root_outside_finds_no_token_in_an_environ(run, world):
    token = world.mint("repos/acme/widget")
    pod = lives.listening(run, world, token=token)
    for p in pod.processes().values():
        for name in ("environ", "cmdline"):
            with open("/proc/%d/%s" % (p["host_pid"], name), "rb") as f:
                assert token.encode() not in f.read(), (p["cmdline"], name)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("names", [["RUNNER_TOKEN"], ["ACCESS_TOKEN"], ["ACTIONS_RUNNER_INPUT_TOKEN", "RUNNER_TOKEN"]], ids="-".join)
def test_secret_variables_do_not_reach_the_agent(run, make_world, names):
    world = make_world(flow="v2")
    world.pat(token="ghp_SECRETSECRETSECRET", scopes=["repo"])
    env = {n: "ghp_SECRETSECRETSECRET" if n == "ACCESS_TOKEN" else "AOTHERSECRETSECRET" for n in names if n != "RUNNER_TOKEN"}
    pod = lives.listening(run, world, **env)
    got = lives.agent(pod)["environ"]
    assert not [k for k in got if k in names or k.startswith("ACTIONS_RUNNER_INPUT_")]
    assert "SECRETSECRET" not in str(got)
    assert harness.secrets_in(pod.look(1000), ["ghp_SECRETSECRETSECRET", "AOTHERSECRETSECRET"]) == []
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_the_name_of_a_secret_file_does_not_reach_the_agent(run, world):
    token = world.mint("repos/acme/widget")
    pod = lives.listening(run, world, token="x", RUNNER_TOKEN=None, RUNNER_TOKEN_FILE="/run/secrets/token", user=0, RUNNER_USER="1000",
                          folders={"/run/secrets": (0o700, 0)}, files={"/run/secrets/token": (token, 0o400, 0)})
    assert "RUNNER_TOKEN_FILE" not in lives.agent(pod)["environ"]
    assert search(pod, forms(token), 1000) == []
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_the_agents_key_is_readable_by_nobody_but_the_jobs_user(run, world):
    pod = lives.listening(run, world)
    for name in (".runner", ".credentials", ".credentials_rsaparams"):
        assert pod.run(["cat", harness.ROOT + "/" + name], uid=1001).returncode != 0
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_refused_token_is_not_in_the_log(run, world):
    token = world.mint("repos/acme/widget", ttl=-1)
    pod = lives.start(run, world, token=token, INIT_LOG_LEVEL="debug")
    lives.refused(pod, world, 77)
    assert token not in pod.text


def test_a_server_that_echoes_the_token_does_not_get_it_into_the_log(run, world):
    token = world.mint("repos/acme/widget")
    for text in ("bad token %s" % token, "x" * 380 + token, token * 30):
        world.no_faults()
        world.fault(step="registration", times=-1, status=404, body={"message": text})
        pod = lives.start(run, world, token=token, INIT_LOG_LEVEL="debug")
        lives.refused(pod, world, 77)
        assert token[:8] not in pod.text, pod.text


def test_a_passed_through_command_keeps_its_environment(run):
    pod = run(["--", "/bin/sh", "-c", "echo $RUNNER_TOKEN-$INIT_X"], {"PATH": "/usr/bin:/bin", "RUNNER_TOKEN": "t", "INIT_X": "x"})
    assert pod.wait() == 0
    assert pod.out == b"t-x\n"
