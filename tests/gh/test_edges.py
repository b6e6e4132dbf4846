"""Names, groups, replacement, lost answers, cancellation, busy runners: what happens at the edges."""
import os
import time

import pytest

import credentials

ORG = "https://github.com/acme"
REPO = "https://github.com/acme/widget"


@pytest.fixture
def v2_world(make_world):
    """For what does not hang on the flow."""
    w = make_world(flow="v2")
    w.call_flow = "v2"
    return w


def add_step(world, kind="add"):
    return "%s.%s" % (world.call_flow, kind)


# ---- names and replacement ----

def test_a_name_that_is_taken_is_replaced_and_keeps_its_id(world, ask):
    old = world.runner(entity="orgs/acme", name="R1")["id"]
    made, gone = ask(world, ORG, "register", "remove")
    assert made["ok"] and made["runner"]["id"] == old and made["runner"]["replaced"] is True
    assert made["about"] == "%d!" % old
    assert gone["ok"] and world.runners() == []


def test_a_name_that_is_taken_is_an_error_without_replace(world, ask):
    old = world.runner(entity="orgs/acme", name="r1")["id"]
    made, = ask(world, ORG, "register", RUNNER_REPLACE="no")
    assert not made["ok"] and made["code"] == 78 and made["about"] == ""
    assert "(id %d): set RUNNER_REPLACE=yes, or another RUNNER_NAME" % old in made["text"]
    assert made["runner"]["id"] == 0 and not made["unsettled"]
    assert [r["id"] for r in world.runners()] == [old]


def test_a_runner_whose_name_merely_begins_so_is_left_alone(world, ask):
    world.set(loose_lookup=True)
    other = world.runner(entity="orgs/acme", name="r1-other")["id"]
    made, gone = ask(world, ORG, "register", "remove")
    assert made["ok"] and made["runner"]["id"] != other and not made["runner"]["replaced"]
    assert gone["ok"] and [r["id"] for r in world.runners()] == [other]


@pytest.mark.parametrize("credential", ["pat", "app"])
def test_a_runner_that_runs_a_job_is_not_stolen_by_default(v2_world, ask, credential):
    env = getattr(credentials, credential)(v2_world, "orgs/acme")
    old = v2_world.runner(entity="orgs/acme", name="r1", online=True, busy=True)["id"]
    made, = ask(v2_world, ORG, "register", **env)
    assert made["code"] == 78 and "is online and runs a job" in made["text"] and "RUNNER_REPLACE=yes" in made["text"]
    made, = ask(v2_world, ORG, "register", RUNNER_REPLACE="yes", **env)
    assert made["ok"] and made["runner"]["id"] == old


def test_a_name_taken_between_look_up_and_add_is_looked_up_once_more(world, drive):
    world.fault(step=add_step(world), delay=1.0)
    d = drive(world, ORG, "register", "remove")
    world.wait_for("step", step=add_step(world))
    old = world.runner(entity="orgs/acme", name="r1")["id"]
    made = d.next()
    assert made["ok"] and made["runner"]["id"] == old and made["about"] == "0,%d!" % old
    assert d.next()["what"] == "removed"


def test_a_name_taken_between_look_up_and_add_is_an_error_without_replace(world, drive):
    world.fault(step=add_step(world), delay=1.0)
    d = drive(world, ORG, "register", RUNNER_REPLACE="no")
    world.wait_for("step", step=add_step(world))
    world.runner(entity="orgs/acme", name="r1")
    made = d.next()
    assert made["code"] == 78 and "exists (id" in made["text"] and made["runner"]["id"] == 0 and not made["unsettled"]


# ---- groups ----

def test_a_group_is_found_by_its_name_in_any_case(world, ask):
    made, = ask(world, ORG, "register", RUNNER_GROUP="GPU")
    assert made["ok"] and (made["runner"]["pool"], made["runner"]["pool_name"]) == (7, "gpu")
    assert world.runners()[0]["group_id"] == 7


def test_a_missing_group_lists_those_that_the_token_sees(world, ask):
    made, = ask(world, ORG, "register", RUNNER_GROUP="nope")
    assert made["code"] == 78 and 'no runner group "nope"' in made["text"] and '"Default", "gpu"' in made["text"]
    assert "GitHub Actions" not in made["text"] and world.runners() == []


def test_a_group_on_a_repository_is_one_clear_error(world, ask):
    made, = ask(world, REPO, "register", RUNNER_GROUP="gpu")
    assert made["code"] == 78 and "cannot be used with a repository URL" in made["text"] and '"Default"' in made["text"]
    made, = ask(world, REPO, "register", RUNNER_GROUP="default")
    assert made["ok"]


@pytest.mark.parametrize("credential", ["token", "pat"])
def test_replacing_never_keeps_the_old_group(world, ask, credential):
    old = world.runner(entity="orgs/acme", name="r1", group_id=1)["id"]
    made, = ask(world, ORG, "register", RUNNER_GROUP="gpu", **getattr(credentials, credential)(world, "orgs/acme"))
    assert made["ok"] and made["runner"]["id"] != old and not made["runner"]["replaced"]
    assert [(r["name"], r["group_id"]) for r in world.runners()] == [("r1", 7)]


def test_the_same_group_is_replaced_in_place(make_world, ask):
    world = make_world(flow="v1")
    old = world.runner(entity="orgs/acme", name="r1", group_id=7)["id"]
    made, = ask(world, ORG, "register", RUNNER_GROUP="gpu")
    assert made["ok"] and made["runner"]["id"] == old


# ---- lost answers ----

@pytest.mark.parametrize("how", [{"reset": "after"}, {"reset": "before"}, {"status": 502, "process": True}, {"status": 502},
                                 {"status": 500, "body": "<html>"}, {"garbage": "nonsense\r\n\r\n"}, {"truncate": 40, "process": True}],
                         ids=str)
def test_an_add_whose_answer_was_lost_is_settled_and_done_again(world, ask, how):
    world.fault(step=add_step(world), **how)
    made, gone = ask(world, ORG, "register", "remove")
    assert made["ok"] and not made["unsettled"], made
    assert len(world.snapshot()["runners"]) == 0 and gone["what"] == "removed"
    assert "the answer to the add was lost" in made["log"]


def test_a_lost_replacement_is_ours_and_done_again(world, ask):
    old = world.runner(entity="orgs/acme", name="r1")["id"]
    world.fault(step=add_step(world, "replace"), reset="after")
    made, gone = ask(world, ORG, "register", "remove")
    assert made["ok"] and made["runner"]["id"] == old and gone["ok"] and world.runners() == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_stop_during_an_add_settles_it(world, drive, when):
    world.fault(step=add_step(world), stall="after") if when == "after" else world.fault(step=add_step(world), delay=0.6)
    d = drive(world, ORG, "register", "remove", GHCLI_CANCEL="yes")
    world.wait_for("processed" if when == "after" else "step", step=add_step(world))
    begin = time.monotonic()
    os.write(d.stdin, b"x")
    made = d.next()
    assert time.monotonic() - begin < 8  # never the 15 s of an exchange
    assert not made["ok"] and not made["unsettled"] and made["runner"]["id"] != 0, made
    assert d.next()["what"] == "removed"
    assert world.runners() == []


def test_a_stop_before_an_add_creates_nothing(world, drive):
    world.fault(step=r"v2\.groups|v1\.pools", stall="before")
    d = drive(world, ORG, "register", GHCLI_CANCEL="yes")
    world.wait_for("step", step="v2.groups" if world.call_flow == "v2" else "v1.pools")
    os.write(d.stdin, b"x")
    made = d.next()
    assert not made["ok"] and made["about"] == "" and made["runner"]["id"] == 0 and not made["unsettled"]
    assert world.runners() == []


def test_an_add_that_cannot_be_settled_is_told_and_settled_by_the_removal(world, drive):
    world.fault(step=add_step(world), reset="after")
    world.fault(step=add_step(world, "lookup"), skip=1, times=-1, status=503)
    d = drive(world, ORG, "register", "wait", "forget", "remove", GHCLI_BUDGET_MS="6000")
    made = d.next()
    assert not made["ok"] and made["unsettled"] and "may exist" in made["text"]
    world.no_faults()
    d.go()
    gone = d.next()
    assert gone["ok"] and gone["what"] == "removed" and world.runners() == []


def test_a_removal_of_an_add_that_never_happened_is_success(world, ask):
    world.fault(step=add_step(world), reset="before", times=-1)
    made, gone = ask(world, ORG, "register", "forget", "remove")
    assert not made["ok"] and not made["unsettled"] and gone["ok"] and gone["what"] == "gone"


def test_a_parent_that_is_gone_keeps_the_add_from_being_sent(v2_world, ask):
    made, = ask(v2_world, ORG, "register", GHCLI_GONE="yes")
    assert not made["ok"] and v2_world.runners() == [] and add_step(v2_world) not in v2_world.steps()


# ---- answers that cannot be used ----

def test_a_server_without_ephemeral_runners_is_named_and_the_runner_deleted_again(make_world, ask):
    world = make_world(flow="v1", update_echo=False)
    made, = ask(world, ORG, "register", RUNNER_DISABLE_UPDATE="no")
    assert made["code"] == 78 and "Ephemeral" in made["text"] and "RUNNER_EPHEMERAL=no" in made["text"]
    assert world.runners() == [] and made["runner"]["id"] == 0
    made, = ask(world, ORG, "register", RUNNER_EPHEMERAL="no")
    assert "DisableUpdate" in made["text"] and "RUNNER_DISABLE_UPDATE=no" in made["text"] and world.runners() == []
    made, = ask(world, ORG, "register", RUNNER_EPHEMERAL="no", RUNNER_DISABLE_UPDATE="no")
    assert made["ok"]


@pytest.mark.parametrize("flow,field", [("v1", "authorization.clientId"), ("v1", "authorization.authorizationUrl"), ("v1", "authorization"),
                                        ("v2", "authorization.client_id"), ("v2", "authorization.server_url"), ("v2", "authorization")])
def test_an_answer_without_a_field_is_named_and_the_runner_deleted_again(make_world, ask, flow, field):
    world = make_world(flow=flow)
    world.fault(step=flow + ".add", patch={field: "__delete__"})
    made, = ask(world, ORG, "register")
    assert made["code"] == 76 and '"%s" is missing' % field in made["text"], made
    assert world.runners() == [] and made["runner"]["id"] == 0 and not made["unsettled"]


@pytest.mark.parametrize("value", [None, "x", 1.5, -1, 0, []], ids=str)
def test_an_answer_without_a_usable_id_is_settled_and_the_runner_deleted_again(world, ask, value):
    world.fault(step=add_step(world), patch={"id": value})
    made, = ask(world, ORG, "register")
    assert made["code"] == 76 and '"id"' in made["text"] and world.runners() == []


def test_a_tenant_that_is_not_https_gets_no_bearer(world, ask):
    world.set(tenant_url="http://pipelinesghubeus12.actions.githubusercontent.com/x/")
    made, = ask(world, ORG, "register")
    assert made["code"] == 76 and "not https" in made["text"] and world.steps() == ["registration"]


def test_a_ghes_tenant_on_a_foreign_host_gets_no_bearer(world, ask):
    world.set(tenant_url="https://pipelinesghubeus12.actions.githubusercontent.com/x/")
    made, = ask(world, "https://ghes.corp.test/acme", "register")
    assert made["code"] == 76 and "ghes.corp.test" in made["text"] and world.steps() == ["registration"]


def test_an_unknown_token_schema_is_refused(make_world, ask):
    world = make_world(flow="v1")
    world.fault(step="registration", patch={"token_schema": "Basic"})
    made, = ask(world, ORG, "register")
    assert made["code"] == 76 and "token_schema" in made["text"]


@pytest.mark.parametrize("style", ["wrapped", "bare", "strings"])
@pytest.mark.parametrize("fips", [True, False])
def test_properties_are_understood_in_every_style(make_world, ask, style, fips):
    world = make_world(flow="v1", property_style=style, fips=fips, auth_migration=True, bom=True, chunked=True)
    made, ended = ask(world, ORG, "register", "end-session")
    assert made["ok"] and made["runner"]["fips"] is fips and made["runner"]["server_v2"].startswith("https://broker.")
    assert '"requireFipsCryptography": "%s"' % fips in made["runner"]["files"][".credentials"]
    assert '"enableAuthMigrationByDefault": "true"' in made["runner"]["files"][".credentials"]
    assert ended["ok"], ended


def test_a_legacy_authorization_url_goes_first(make_world, ask):
    world = make_world(flow="v2", legacy_url=True)
    made, ended = ask(world, ORG, "register", "end-session")
    credential = made["runner"]["files"][".credentials"]
    assert made["ok"] and "?v2" not in made["runner"]["auth_url"] and '"authorizationUrlV2"' in credential
    assert made["runner"]["client_id"] == made["runner"]["client_id"].lower()
    assert ended["ok"], ended


def test_a_server_with_routes_of_its_own_is_served_too(make_world, ask):
    world = make_world(flow="v1", direct_routes=False)
    made, gone = ask(world, ORG, "register", "remove")
    assert made["ok"] and gone["ok"] and gone["what"] == "removed" and world.runners() == []
    made, gone = ask(world, ORG, "register", "fresh", "remove")
    assert made["ok"] and gone["what"] == "removed" and world.runners() == []


# ---- removal ----

def test_a_runner_that_the_service_removed_is_gone(world, drive):
    for env in ({}, credentials.pat(world, "orgs/acme")):
        d = drive(world, ORG, "register", "wait", "remove", **env)
        world.remove(id=d.next()["runner"]["id"])
        d.go()
        gone = d.next()
        assert gone["ok"] and gone["what"] == "gone" and gone["verified"], gone
        d.done()


def make_busy(world, ident):
    name = "r1"
    world.runner(entity="orgs/acme", name=name, reuse=ident, online=True, busy=True, flow=world.call_flow)


def test_a_busy_runner_is_told_without_a_race(v2_world, drive):
    d = drive(v2_world, ORG, "register", "wait", "remove-if-idle", **credentials.pat(v2_world, "orgs/acme"))
    make_busy(v2_world, d.next()["runner"]["id"])
    d.go()
    answer = d.next()
    assert answer["ok"] and answer["what"] == "busy" and answer["status"] == 422
    assert len(v2_world.runners()) == 1


def test_an_idle_runner_is_deleted_by_the_same_call(v2_world, ask):
    made, gone = ask(v2_world, ORG, "register", "remove-if-idle", **credentials.pat(v2_world, "orgs/acme"))
    assert gone["ok"] and gone["what"] == "removed" and v2_world.runners() == []


def test_the_lock_of_a_killed_job_is_worked_around_with_v1_and_told_with_v2(world, drive):
    d = drive(world, ORG, "register", "wait", "remove", GHCLI_REMOVE_MS="3000", **credentials.pat(world, "orgs/acme"))
    make_busy(world, d.next()["runner"]["id"])
    d.go()
    answer = d.next()
    if world.call_flow == "v1":
        assert answer["ok"] and answer["what"] == "removed" and world.runners() == []
    else:
        assert not answer["ok"] and answer["what"] == "busy" and answer["code"] == 85
        assert "about 10 minutes later" in answer["text"]


def test_a_runner_that_becomes_idle_within_the_budget_is_removed(make_world, drive):
    world = make_world(flow="v2")
    world.call_flow = "v2"
    d = drive(world, ORG, "register", "wait", "remove", GHCLI_REMOVE_MS="20000", **credentials.pat(world, "orgs/acme"))
    make_busy(world, d.next()["runner"]["id"])
    d.go()
    world.wait_for("step", step="v2.delete")
    world.advance(seconds=700)
    assert d.next()["what"] == "removed"


@pytest.mark.parametrize("step", ["rest.delete", "rest.delete|rest.remove_token"])
@pytest.mark.parametrize("how", [{"stall": "after"}, {"stall": "before"}, {"reset": "after"}, {"status": 502}], ids=str)
def test_a_way_that_fails_leaves_time_for_the_others(v2_world, ask, step, how):
    v2_world.fault(step=step, times=2, **how)
    made, gone = ask(v2_world, ORG, "register", "remove", GHCLI_REMOVE_MS="6000", **credentials.pat(v2_world, "orgs/acme"))
    assert gone["ok"] and gone["what"] in ("removed", "gone") and v2_world.runners() == []


def test_a_removal_whose_only_way_stalls_once_is_done_again_within_its_budget(world, ask):
    world.fault(step=r"v[12]\.delete", stall="after")
    made, gone = ask(world, ORG, "register", "remove", GHCLI_REMOVE_MS="3000")
    assert gone["ok"] and world.runners() == []


def test_a_predecessor_is_deleted_only_when_idle_offline_and_of_our_name(v2_world, ask):
    env = credentials.pat(v2_world, "orgs/acme")
    made, done = ask(v2_world, ORG, "register", "predecessor", **env)
    assert done["rc"] == 1 and v2_world.runners() == []
    made, done = ask(v2_world, ORG, "register", "predecessor", RUNNER_NAME="other", **env)
    assert done["rc"] == 1
    held = v2_world.runner(entity="orgs/acme", name="r1", online=True)["id"]
    assert held
    made, left = ask(v2_world, ORG, "register", "predecessor")
    assert left["rc"] == 0 and "only a PAT or an App can see it" in left["log"]


def test_a_predecessor_that_is_online_is_left(v2_world, drive):
    d = drive(v2_world, ORG, "register", "wait", "predecessor", **credentials.pat(v2_world, "orgs/acme"))
    v2_world.runner(entity="orgs/acme", name="r1", reuse=d.next()["runner"]["id"], online=True)
    d.go()
    assert d.next()["rc"] == 0 and len(v2_world.runners()) == 1


def test_ending_the_session_lets_the_next_agent_in(v2_world, drive):
    d = drive(v2_world, ORG, "register", "wait", "end-session")
    made = d.next()["runner"]
    assert made["server_v2"]
    d.go()
    assert d.next()["ok"] and "broker.session_delete" in [x["step"] for x in v2_world.log()]


# ---- JIT ----

def test_a_generated_jit_name_that_is_taken_is_freed(v2_world, ask):
    old = v2_world.runner(entity="orgs/acme", name="R1")["id"]
    made, gone = ask(v2_world, ORG, "register", "remove", **credentials.jit_generated(v2_world, "orgs/acme"))
    assert made["ok"] and made["runner"]["id"] != old and gone["what"] == "removed" and v2_world.runners() == []


def test_a_generated_jit_name_that_is_taken_is_an_error_without_replace(v2_world, ask):
    v2_world.runner(entity="orgs/acme", name="r1")
    made, = ask(v2_world, ORG, "register", RUNNER_REPLACE="no", **credentials.jit_generated(v2_world, "orgs/acme"))
    assert made["code"] == 78 and "RUNNER_REPLACE=yes" in made["text"] and len(v2_world.runners()) == 1


@pytest.mark.parametrize("how", [{"reset": "after"}, {"status": 502, "process": True}, {"reset": "before"}], ids=str)
def test_a_lost_jit_configuration_is_deleted_and_generated_anew(v2_world, ask, how):
    v2_world.fault(step="rest.jit", **how)
    made, gone = ask(v2_world, ORG, "register", "remove", **credentials.jit_generated(v2_world, "orgs/acme"))
    assert made["ok"], made
    assert gone["what"] == "removed" and v2_world.runners() == []


def test_a_jit_group_is_found_by_name_over_several_pages(v2_world, ask):
    v2_world.set(page_size=1)
    made, = ask(v2_world, ORG, "register", RUNNER_GROUP="gpu", **credentials.jit_generated(v2_world, "orgs/acme"))
    assert made["ok"] and v2_world.runners()[0]["group_id"] == 7 and made["runner"]["pool_name"] == "gpu"
