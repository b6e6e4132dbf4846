"""Every credential × every kind of scope and host × both flows registers, and leaves no runner behind."""
import json

import pytest

import credentials

SCOPES = {
    "org": ("https://github.com/acme", "orgs/acme", "github.com"),
    "repo": ("https://github.com/acme/widget", "repos/acme/widget", "github.com"),
    "enterprise": ("https://github.com/enterprises/big", "enterprises/big", "github.com"),
    "ghes-org": ("https://ghes.corp.test/acme", "orgs/acme", "ghes.corp.test"),
    "ghes-port": ("https://ghes.corp.test:8443/acme/widget", "repos/acme/widget", "ghes.corp.test:8443"),
    "ghes-enterprise": ("https://ghes.corp.test/enterprises/big", "enterprises/big", "ghes.corp.test"),
    "ghe.com-org": ("https://octo.ghe.com/acme", "orgs/acme", "octo.ghe.com"),
    "ghe.com-repo": ("https://octo.ghe.com/acme/widget", "repos/acme/widget", "octo.ghe.com"),
}
NO_APP = ("enterprise", "ghes-enterprise")  # an App cannot manage an enterprise's runners
COMBINATIONS = [(c, s) for c in ("token", "pat", "app", "jit", "jit_generated") for s in SCOPES if not (c == "app" and s in NO_APP)]


def given(credential, world, scope):
    url, entity, web = SCOPES[scope]
    if credential != "jit":
        return getattr(credentials, credential)(world, entity)
    env = credentials.jit(world, entity, web)
    del env["RUNNER_URL"]  # known here, so that the PAT can delete it by id
    return dict(credentials.pat(world, entity), **env)


@pytest.mark.parametrize("credential,scope", COMBINATIONS)
def test_it_registers_and_is_removed(world, ask, credential, scope):
    url, entity, web = SCOPES[scope]
    env = given(credential, world, scope)
    made, gone = ask(world, url, "register", "remove", **env)
    assert made["ok"], made
    runner = made["runner"]
    assert runner["flow"] == ("jit" if credential.startswith("jit") else world.call_flow)
    assert not made["unsettled"] and runner["id"] != 0
    assert runner["page"].startswith("https://" + web + "/") and runner["page"].endswith("/settings/actions/runners/%d" % runner["id"])
    assert list(runner["files"]) == [".credentials_rsaparams", ".credentials", ".runner"] or credential.startswith("jit")
    assert gone["ok"] and gone["what"] == "removed" and gone["verified"], gone
    assert world.runners() == []


@pytest.mark.parametrize("credential", ["pat", "app", "jit", "jit_generated"])
@pytest.mark.parametrize("scope", ["org", "repo", "ghes-port", "ghe.com-org"])
def test_a_stop_after_every_token_expired_still_removes_it(world, drive, credential, scope):
    url, entity, web = SCOPES[scope]
    d = drive(world, url, "register", "wait", "remove", **given(credential, world, scope))
    assert d.next()["ok"]
    world.advance(seconds=7200)
    d.go()
    gone = d.next()
    assert gone["ok"] and gone["what"] == "removed", d.pod.text
    assert world.runners() == []


@pytest.mark.parametrize("scope", ["org", "ghes-port"])
def test_a_bare_token_that_expired_cannot_remove_and_says_so_before_it_tries(world, drive, scope):
    d = drive(world, SCOPES[scope][0], "register", "wait", "remove", GHCLI_TOKEN_AGE_MS="3700000")
    assert d.next()["ok"]
    world.advance(seconds=7200)
    d.go()
    gone = d.next()
    assert not gone["ok"] and gone["what"] == "not_removed" and gone["code"] == 77, gone
    assert "RUNNER_TOKEN is older than the hour" in gone["text"]
    assert d.pod.text.index("will very likely fail and leave the registration") < d.pod.text.index("verdict: RUNNER_TOKEN is older")
    assert len(world.runners()) == 1


def test_a_jit_runner_without_other_credential_is_left_to_the_service(world, ask):
    made, gone = ask(world, None, "register", "remove", **credentials.jit(world, "orgs/acme"))
    assert made["ok"] and made["runner"]["id"] == world.runners()[0]["id"]
    assert "the service removes it after its job" in made["log"]
    assert not gone["ok"] and gone["what"] == "not_removed" and gone["code"] == 85
    assert "the service removes a JIT runner after its job" in gone["text"]


def test_removal_by_a_fresh_registrar_needs_only_what_is_in_memory(world, ask):
    made, gone = ask(world, "https://github.com/acme", "register", "fresh", "remove")
    assert made["ok"] and gone["ok"] and gone["what"] == "removed"


def test_the_files_are_what_dotnet_reads(world, ask):
    made, = ask(world, "https://ghes.corp.test:8443/acme", "register", RUNNER_GROUP="GPU", RUNNER_WORKDIR="/data/work")
    files = made["runner"]["files"]
    runner, credential = json.loads(files[".runner"]), json.loads(files[".credentials"])
    assert runner["isHostedServer"] is False
    assert runner["gitHubUrl"] == "https://ghes.corp.test:8443/acme" and runner["workFolder"] == "/data/work"
    assert (runner["poolId"], runner["poolName"]) == (7, "gpu") and runner["agentId"] == made["runner"]["id"]
    assert runner["useV2Flow"] is True and runner["serverUrlV2"].endswith("/")
    assert runner.get("useRunnerAdminFlow", False) is (world.call_flow == "v2")
    assert credential["scheme"] == "OAuth" and credential["data"]["requireFipsCryptography"] == "True"
    assert not any(text.startswith("\ufeff") for text in files.values())


def test_ids_beyond_53_bits_arrive_whole(world, ask):
    world.attr(name="next_id", value=18446744073709551557)
    made, gone = ask(world, "https://github.com/acme", "register", "remove")
    assert made["runner"]["id"] == 18446744073709551557
    assert '"agentId": 18446744073709551557' in made["runner"]["files"][".runner"]
    assert gone["ok"] and world.runners() == []
