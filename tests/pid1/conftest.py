"""Each scenario runs against our binary and against Debian's inits where they make the same promise. Ours must pass; for the peers the
outcome is recorded, and the table at the end says who passes what."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import inits  # noqa: E402

# INITS="init tini" narrows a run down.
CHOSEN = os.environ.get("INITS")
ALL = {p.name: p for p in [inits.OURS] + inits.PEERS if p.path and (not CHOSEN or p.name in CHOSEN.split())}
table = {}


def pytest_configure(config):
    config.addinivalue_line("markers", "promise(names): the peers that promise what the scenario asks; default all")


def pytest_generate_tests(metafunc):
    if "program" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("promise")
    peers = list(mark.args) if mark else [p.name for p in inits.PEERS]
    metafunc.parametrize("program", [ALL[n] for n in ["init"] + peers if n in ALL], ids=repr)


@pytest.fixture
def start(request):
    """``start(program, cmd, ...)``: a ``Run`` that ends with the test."""
    runs = []

    def go(*args, **kwargs):
        runs.append(inits.Run(*args, **kwargs))
        return runs[-1]
    yield go
    for r in runs:
        r.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    program = getattr(item, "callspec", None) and item.callspec.params.get("program")
    if program is None or report.when != "call":
        return
    report.user_properties.append(("scenario", [item.originalname, program.name, report.passed]))
    if report.failed and program is not inits.OURS:
        report.outcome = "passed"  # what a peer does is told, not judged


def pytest_runtest_logreport(report):
    for name, value in report.user_properties:
        if name == "scenario" and report.when == "call":
            row = table.setdefault(value[0], {})
            row[value[1]] = row.get(value[1], True) and value[2]


def pytest_terminal_summary(terminalreporter):
    if not table:
        return
    names = [n for n in ALL]
    say = terminalreporter.write_line
    say("")
    say("Who passes what: " + ", ".join("%s %s" % (n, ALL[n].version) for n in names if n != "tini -g"))
    width = max(len(t) for t in table) - 5
    say("%-*s  %s" % (width, "", "  ".join(names)))
    for test, row in table.items():
        say("%-*s  %s" % (width, test[5:].replace("_", " "),
                          "  ".join(("-" if n not in row else "yes" if row[n] else "NO").ljust(len(n)) for n in names)))
