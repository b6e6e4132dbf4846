"""Fixtures of every Python test: the test GitHub, and ``init`` as PID 1. See ``support/harness.py`` and ``support/github``."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))

import harness  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--cases", type=int, default=0, metavar="N",
                     help="of the cases of one test, run N: the first, the last, and ones evenly between (0: all of them)")


def pytest_collection_modifyitems(config, items):
    """`make test` runs a few cases of every test, `make test-long` all. The choice is the same in every run."""
    most = config.getoption("--cases")
    if not most:
        return
    cases = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept = set()
    for same in cases.values():
        count = min(most, len(same))
        kept.update(same[i * (len(same) - 1) // max(count - 1, 1)].nodeid for i in range(count))
    left = [item for item in items if item.nodeid not in kept]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item.nodeid in kept]


@pytest.fixture(scope="session")
def hub(tmp_path_factory):
    """The process of the test GitHub; worlds are made in it."""
    h = harness.Hub.start(str(tmp_path_factory.mktemp("github")))
    yield h
    h.stop()


@pytest.fixture
def make_world(hub):
    """``make_world(flow="v2", ...)``: a GitHub of the test's own. Any violation that it recorded fails the test, unless the test sets
    ``world.expected`` to a text that every violation must hold."""
    made = []

    def make(**settings):
        settings.setdefault("expected_version", harness.VERSION)
        w = hub.world(**settings)
        w.expected = None
        made.append(w)
        return w
    yield make
    bad = []
    for w in made:
        for v in w.snapshot()["violations"]:
            if w.expected is None or w.expected not in v["text"]:
                bad.append(v)
        w.close()
    assert not bad, "requests that deviate from the protocol: %s" % bad


@pytest.fixture(params=["v1", "v2"])
def world(request, make_world):
    """A GitHub in each registration flow."""
    return make_world(flow=request.param)


@pytest.fixture
def run():
    """``run_init`` whose pods end with the test; the stand-in must have found nothing wrong with its files, unless the test sets
    ``pod.problems_expected``."""
    pods = []

    def start(*args, **kwargs):
        pod = harness.run_init(*args, **kwargs)
        pod.problems_expected = False
        pods.append(pod)
        return pod
    yield start
    bad = []
    for pod in pods:
        if not pod.problems_expected:
            bad += [p for a in pod.agents() for p in a["problems"]]
        pod.close()
    assert not bad, "the agent found wrong: %s" % bad
