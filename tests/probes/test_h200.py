"""What a real H200 answered (tests/data/h200/DATE, made by tests/h200/run) stays readable and keeps its verdicts."""
import glob
import json
import os

import jsonschema
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
RUNS = sorted(glob.glob(os.path.join(TOP, "tests/data/h200/*")))
GPU_FAST = ["gpu.nodes", "gpu.driver", "gpu.count", "gpu.smi", "gpu.recovery", "gpu.ecc", "gpu.remap", "gpu.fabric", "gpu.throttle", "gpu.mig",
            "gpu.memory", "gpu.processes"]
FROM_SMI = [c for c in GPU_FAST if c not in ("gpu.nodes", "gpu.driver", "gpu.count")]


def report(run, name):
    with open(os.path.join(run, name), encoding="utf-8") as f:
        return json.load(f)


def by_id(found):
    return {c["id"]: c for c in found["checks"]}


def test_there_is_a_run():
    assert RUNS


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ["fast.json", "deep.json"])
def test_the_report_fits_the_schema(run, name):
    with open(os.path.join(TOP, "probes/selftest.schema.json"), encoding="utf-8") as f:
        jsonschema.validate(report(run, name), json.load(f))


@pytest.mark.parametrize("run", RUNS)
def test_the_healthy_card_passed_every_check_that_looks_at_it(run):
    fast, deep = by_id(report(run, "fast.json")), by_id(report(run, "deep.json"))
    for check in GPU_FAST:
        assert fast[check]["result"] == "pass", fast[check]
    for check in ("gpu.context", "gpu.pattern", "gpu.copy", "gpu.cublas", "gpu.gemm", "gpu.triton"):
        assert deep[check]["result"] == "pass", deep[check]


@pytest.mark.parametrize("run", RUNS)
def test_a_stack_that_is_not_the_pinned_one_failed_there(run):
    deep = by_id(report(run, "deep.json"))
    assert report(run, "deep.json")["result"] == "fail"
    assert deep["image.tilelang"]["result"] == "fail" and "tilelang" in deep["image.tilelang"]["detail"]


@pytest.mark.parametrize("run", RUNS)
def test_the_tiers_kept_their_budgets_on_the_real_card(run):
    assert report(run, "fast.json")["duration_ms"] < 500
    assert report(run, "deep.json")["duration_ms"] < 30000


@pytest.mark.parametrize("run", RUNS)
def test_the_driver_s_own_answer_gives_the_same_verdicts_here(node, run):
    node.script("nvidia-smi", "#!/bin/sh\ncase \"$*\" in\n*compute_cap*) echo 9.0;;\n*) cat %s/smi.xml;;\nesac\n" % run)
    found, there = node.selftest(), by_id(report(run, "fast.json"))
    for check in FROM_SMI:
        assert (found[check]["result"], found[check]["action"]) == (there[check]["result"], there[check]["action"]), found[check]
    assert "NVIDIA H200" in found["gpu.smi"]["detail"]
