"""Every credential, scope, host and flow registers, and leaves no runner behind."""
import json

import pytest

import credentials
import ghpaths


@pytest.mark.parametrize("credential,scope", ghpaths.SHORT)
def test_it_registers_and_is_removed(world, ask, credential, scope):
    ghpaths.registers_and_is_removed(world, ask, credential, scope)


@pytest.mark.parametrize("credential", ["pat", "app", "jit_generated"])
def test_a_stop_after_every_token_expired_still_removes_it(world, drive, credential):
    ghpaths.is_removed_after_every_token_expired(world, drive, credential, "org")


def test_a_bare_token_that_expired_cannot_remove_and_says_so_before_it_tries(world, drive):
    d = drive(world, "https://github.com/acme", "register", "wait", "remove", GHCLI_TOKEN_AGE_MS="3700000")
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


def test_the_key_is_made_while_the_first_request_is_under_way(make_world, drive):
    world = make_world(flow="v2")
    world.fault(step="registration", delay=3)
    d = drive(world, "https://github.com/acme", "register")
    world.wait_for("step", step="registration")
    helpers = [p for p in d.pod.processes().values() if p["host_pid"] != d.pod.pid]
    assert [p["host_ppid"] for p in helpers] == [d.pod.pid]  # at work, or done and not yet collected
    assert d.next()["ok"]
    d.done()
