"""Every refusal gets its verdict, its remedy and its exit code, and names step, status and request id; docs/faults.md has them all."""
import os

import pytest

import credentials
import refusals
import harness


@pytest.mark.parametrize("case", refusals.CASES, ids=lambda c: c.name)
def test_a_refusal_is_explained(make_world, ask, case):
    world = make_world(flow=case.flow, expected_version=case.env.get("GHCLI_VERSION", harness.VERSION))
    if case.rule:
        world.fault(**case.rule)
    env = dict(getattr(credentials, case.credential)(world, "orgs/acme"), **case.env)
    answer = ask(world, case.url, *case.commands, **env)[-1]
    text = refusals.texts()[case.fault]
    codes = case.code if isinstance(case.code, tuple) else (case.code or text["code"],)
    assert not answer["ok"] and answer["code"] in codes, answer
    if case.code is None:
        assert "verdict: " + text["verdict"] in answer["log"], answer["log"]
        assert "remedy: " + text["remedy"] in answer["log"]
        assert "evidence: " in answer["log"] and "request id " in answer["log"]
        assert text["verdict"] in answer["text"]
    for words in case.says:
        assert words in answer["log"] + answer["text"]
    for value in env.values():
        assert not value or len(value) < 20 or value not in answer["log"]


def test_the_documentation_has_every_refusal():
    with open(os.path.join(harness.REPO, "docs", "faults.md")) as f:
        page = f.read()
    assert refusals.table() in page, "docs/faults.md is out of date: put the output of tests/gh/refusals.py there"


def test_a_wrong_clock_is_named(make_world, ask):
    world = make_world(flow="v1", date_offset=3600)
    answer, = ask(world, refusals.ORG, "register")
    assert answer["code"] == 82 and "clock" in answer["text"]


def test_an_app_cannot_serve_an_enterprise(make_world, ask):
    world = make_world(flow="v1")
    answer, = ask(world, "https://github.com/enterprises/big", "register", **credentials.app(world, "enterprises/big"))
    assert answer["code"] == 78 and "cannot manage an enterprise's runners" in answer["text"] and world.steps() == []


def test_an_app_beside_a_pat_lets_the_pat_serve_an_enterprise(make_world, ask):
    world = make_world(flow="v1")
    env = dict(credentials.app(world, "enterprises/big"), **credentials.pat(world, "enterprises/big"))
    made, gone = ask(world, "https://github.com/enterprises/big", "register", "remove", **env)
    assert made["ok"] and gone["ok"]


def test_an_agent_that_is_gone_is_told(make_world, drive):
    world = make_world(flow="v2")
    d = drive(world, refusals.ORG, "register", "wait", "end-session")
    world.remove(id=d.next()["runner"]["id"])
    d.go()
    answer = d.next()
    assert not answer["ok"] and answer["code"] == 75 and "not known any more" in answer["text"]
