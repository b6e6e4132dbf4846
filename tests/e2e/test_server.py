"""The test GitHub and the stand-in agent themselves, driven by the independent client: they accept what is right and refuse what is not."""
import os
import socket
import time

import pytest

import harness
import selfcheck


@pytest.fixture
def direct(make_world):
    """``direct(**settings)``: (world, client factory) with the server on a port of this network namespace."""
    def make(**settings):
        world = make_world(**settings)
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        world.listen([sock.fileno()])
        sock.close()

        def client(url, entity, **kwargs):
            return selfcheck.Client(url, world.mint(entity), world.ca, address="127.0.0.1", port=port, **kwargs)
        return world, client
    return make


@pytest.mark.parametrize("flow", ["v1", "v2"])
@pytest.mark.parametrize("url, entity", [
    ("https://github.com/acme", "orgs/acme"), ("https://github.com/acme/widget", "repos/acme/widget"),
    ("https://github.com/enterprises/big", "enterprises/big"), ("https://octo.ghe.com/acme/widget", "repos/acme/widget"),
    ("https://ghes.corp.test:8443/acme", "orgs/acme"), ("https://ghes.corp.test/acme/widget", "repos/acme/widget")])
def test_the_independent_client_registers_and_removes(direct, flow, url, entity):
    world, client = direct(flow=flow)
    c = client(url, entity)
    c.register("r1", ["gpu", "big"])
    shown = world.runners()
    assert [(r["name"], r["entity"], r["flow"]) for r in shown] == [("r1", entity, flow)]
    assert shown[0]["labels"][:2] == ["self-hosted", "Linux"] and shown[0]["labels"][3:] == ["gpu", "big"]
    assert c.remove() is True
    assert c.remove() is False
    assert world.runners() == []


@pytest.mark.parametrize("flow", ["v1", "v2"])
def test_replace_keeps_the_id_and_a_name_taken_is_a_conflict(direct, flow):
    world, client = direct(flow=flow)
    first, second = client("https://github.com/acme", "orgs/acme"), client("https://github.com/acme", "orgs/acme")
    first.register("r1")
    second.register("R1")
    assert second.id == first.id and world.runners()[0]["replaced"]
    third = client("https://github.com/acme", "orgs/acme")
    third.find = lambda name: None
    with pytest.raises(selfcheck.Refused) as why:
        third.register("r1")
    assert why.value.status == 409


@pytest.mark.parametrize("flow", ["v1", "v2"])
def test_foreign_expired_and_unknown_tokens_get_404(direct, flow):
    world, client = direct(flow=flow)
    for c in (client("https://github.com/acme", "orgs/other"), client("https://github.com/nobody", "orgs/nobody")):
        with pytest.raises(selfcheck.Refused) as why:
            c.register("r1")
        assert why.value.status == 404
    late = client("https://github.com/acme", "orgs/acme")
    world.advance(seconds=3601)
    with pytest.raises(selfcheck.Refused) as why:
        late.register("r1")
    assert why.value.status == 404


def test_a_version_below_the_floor_gets_404_with_the_floor(direct):
    world, client = direct(expected_version=None)
    with pytest.raises(selfcheck.Refused) as why:
        client("https://github.com/acme", "orgs/acme", version="2.300.0").register("r1")
    assert why.value.status == 404 and "2.329.0" in why.value.obj["message"]


MUTANTS = {
    "accept": (lambda c: c.api("POST", "/actions/runner-registration", selfcheck.registration_body(c.url, "register"), Accept="*/*"), "Accept"),
    "bearer": (lambda c: c.api("POST", "/actions/runner-registration", selfcheck.registration_body(c.url, "register"),
                               Authorization="Bearer x"), "RemoteAuth"),
    "agent": (lambda c: c.api("POST", "/actions/runner-registration", selfcheck.registration_body(c.url, "register"),
                              **{"User-Agent": "curl/7.88"}), "User-Agent"),
    "event": (lambda c: c.event("delete"), "runner_event"),
    "key": (lambda c: c.api("POST", "/actions/runner-registration", dict(selfcheck.registration_body(c.url, "register"), extra=1)), "extra"),
    "host": (lambda c: c.api("POST", "/actions/runner-registration", {"url": "https://octo.ghe.com/acme", "runner_event": "register"}),
             "does not belong"),
    "type": (lambda c: c.api("POST", "/actions/runner-registration", selfcheck.registration_body(c.url, "register"),
                             **{"Content-Type": "text/json"}), "Content-Type"),
}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_deviating_registration_is_refused_and_recorded(direct, name):
    world, client = direct()
    act, text = MUTANTS[name]
    world.expected = text
    with pytest.raises(selfcheck.Refused) as why:
        act(client("https://github.com/acme", "orgs/acme"))
    assert why.value.status == 400
    assert any(text in v["text"] for v in world.snapshot()["violations"])


def spoil(obj, path, value):
    *front, last = path
    for key in front:
        obj = obj[key]
    if value is KeyError:
        del obj[last]
    else:
        obj[last] = value


SHORT = "A" * 340
ADD_MUTANTS = {
    "v1": [(["id"], "0", "id"), (["maxParallelism"], 2, "maxParallelism"), (["authorization", "publicKey", "exponent"], "AAEAAQ==", "exponent"),
           (["authorization", "publicKey", "modulus"], SHORT, "modulus"), (["labels", 0, "type"], "System", "label"),
           (["labels", 3, "name"], " gpu", "padded"), (["labels", 3, "name"], "x" * 257, "256"), (["labels", 3, "name"], "LINUX", "twice"),
           (["name"], "n" * 65, "65"), (["ephemeral"], "true", "ephemeral"), (["disableUpdate"], KeyError, "disableUpdate"),
           (["version"], "2.335.0", "version"), (["enabled"], None, "enabled"), (["labels", 2, "name"], "X86", "default")],
    "v2": [(["group_id"], "1", "group_id"), (["group_id"], 99, "group_id"), (["public_key"], "<RSAKeyValue/>", "XML"),
           (["updates_disabled"], 1, "updates_disabled"), (["labels", 0, "id"], "0", "label"), (["url"], "http://github.com/acme", "https"),
           (["replace"], True, "replace"), (["version"], "2.335.0", "version"), (["name"], "", "name")],
}


@pytest.mark.parametrize("flow, index", [(f, i) for f in sorted(ADD_MUTANTS) for i in range(len(ADD_MUTANTS[f]))])
def test_a_deviating_add_is_refused_recorded_and_changes_nothing(direct, monkeypatch, flow, index):
    path, value, text = ADD_MUTANTS[flow][index]
    world, client = direct(flow=flow)
    world.expected = text
    name = "v1_body" if flow == "v1" else "v2_body"
    good = getattr(selfcheck, name)

    def bad(*args, **kwargs):
        body = good(*args, **kwargs)
        spoil(body, path, value)
        return body
    monkeypatch.setattr(selfcheck, name, bad)
    with pytest.raises(selfcheck.Refused) as why:
        client("https://github.com/acme", "orgs/acme").register("r1", ["gpu"])
    assert why.value.status == 400
    shown = world.snapshot()
    assert shown["violations"] and shown["runners"] == []


def selfcheck_life(run, world, url="https://github.com/acme/widget", **kwargs):
    return run(["https://github.com/acme/widget", world.mint("repos/acme/widget"), harness.ROOT, "r1"],
               {"PATH": "/usr/bin:/bin", "SSL_CERT_FILE": harness.CA_PATH}, world=world,
               program=os.path.join(harness.HERE, "selfcheck.py"), **kwargs)


@pytest.mark.parametrize("messaging", ["v1", "v2"])
def test_the_stand_in_takes_one_job_and_the_service_forgets_the_runner(run, make_world, messaging):
    world = make_world(messaging=messaging)
    world.job(name="hello", steps=[{"sleep": 0.05}, {"dump": "job.json"}])
    pod = selfcheck_life(run, world)
    assert pod.wait() == 0, pod.text
    assert "Running job: hello" in pod.text and "Job hello completed with result: Succeeded" in pod.text and "gone" in pod.text
    shown = world.snapshot()
    assert shown["runners"] == [] and shown["removed"][0]["how"] == "ephemeral"
    assert shown["jobs"][0]["result"] == "Succeeded"
    assert pod.identity_files() == []
    assert pod.report("job.json")["me"]["environ"]["GITHUB_ACTIONS"] == "true"


def test_the_stand_in_ends_at_sigint_and_leaves_files_and_registration(run, world):
    pod = selfcheck_life(run, world)
    assert world.wait_for("online")
    pod.signal("TERM")
    assert pod.wait() == 0, pod.text
    assert "Exiting..." in pod.text and "removed" in pod.text
    assert pod.identity_files() == [".credentials", ".credentials_rsaparams", ".runner"]
    assert world.runners() == []


def test_the_stand_in_cancels_a_running_job_at_sigint(run, world):
    world.job(name="long", steps=[{"sleep": 60}, {"always": True, "dump": "after.json"}])
    pod = selfcheck_life(run, world)
    assert world.wait_for("running")
    pod.signal("TERM")
    assert pod.wait() == 0, pod.text
    assert "completed with result: Canceled" in pod.text
    assert pod.report("after.json")
    assert world.snapshot()["jobs"][0]["result"] == "Canceled"


def test_a_killed_job_keeps_its_lock_for_ten_minutes(run, make_world):
    world = make_world(flow="v2")
    world.job(name="long", steps=[{"sleep": 60}])
    pod = selfcheck_life(run, world)
    assert world.wait_for("running")
    os.kill(pod.host_pid("Runner.Listener"), 9)
    assert pod.wait() != 0
    assert "still running a job" in pod.text
    assert [r["busy"] for r in world.runners()] == [True]
    world.advance(seconds=601)
    assert [r["busy"] for r in world.runners()] == [False]


@pytest.mark.parametrize("fault, text", [({"status": 502, "body": "<html>"}, "502"), ({"reset": "before"}, "Conn"), ({"reset": "after"}, "Conn"),
                                         ({"garbage": "SSH-2.0-x\r\n\r\n"}, "BadStatus"), ({"truncate": 20}, "")])
def test_faults_come_as_ordered_and_as_often_as_ordered(direct, fault, text):
    world, client = direct(flow="v2")
    world.fault(step="v2.add", **fault)
    c = client("https://github.com/acme", "orgs/acme")
    with pytest.raises(Exception) as why:
        c.register("r1")
    assert text in repr(why.value) or isinstance(why.value, OSError) and text == "Conn"
    assert len(world.runners()) == (1 if fault.get("reset") == "after" or "truncate" in fault else 0)
    c.register("r1")
    assert len(world.runners()) == 1


def test_a_delay_delays_and_a_stall_holds(direct):
    world, client = direct(flow="v2")
    world.fault(step="registration", delay=0.3)
    t = time.monotonic()
    client("https://github.com/acme", "orgs/acme").register("r1")
    assert time.monotonic() - t >= 0.3
