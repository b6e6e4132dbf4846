"""The image recipe keeps every stage, argument and rule of the recipe it replaces."""

import re
import subprocess

import pytest

STAGES = ["source-check", "init-build", "init", "runtime", "post-fa3", "fa2", "fullstack", "tilelang", "final"]
PARENTS = {"post-fa3": "runtime", "fa2": "post-fa3", "fullstack": "fa2", "tilelang": "fullstack", "final": "tilelang",
           "init": "scratch"}
ARGS = {
    "TILELANG_GIT_SHA": None,
    "TILELANG_VERSION": None,
    "BASE_IMAGE": "nvidia/cuda:12.9.1-devel-ubuntu22.04",
    "MAX_JOBS": "64",
    "NVCC_THREADS": "4",
    "DEEPGEMM_GIT_SHA": "c9f8b34dcdacc20aa746b786f983492c51072870",
    "RUNNER_VERSION": "2.334.0",
}
PINS = {
    "torch": "2.10.0", "torchvision": "0.25.0", "torchaudio": "2.10.0", "triton": "3.6.0", "apache-tvm-ffi": "0.1.11",
    "cloudpickle": "3.1.2", "ml_dtypes": "0.5.4", "numpy": "2.2.6", "psutil": "7.2.2", "tqdm": "4.67.3",
    "typing_extensions": "4.15.0", "Cython": "3.2.4", "z3-solver": "4.15.4.0", "torch_c_dlpack_ext": "0.1.5",
    "pytest-timeout": "2.3.1",
}
ENV = {
    "AGENT_TOOLSDIRECTORY": "/home/ci-runner/runner/_work/_tool",
    "TILELANG_CACHE_DIR": "/ci-cache/tilelang",
    "TILELANG_TMP_DIR": "/ci-cache/tilelang/tmp",
    "TRITON_CACHE_DIR": "/ci-cache/triton",
    "PIP_CACHE_DIR": "/ci-cache/pip",
    "PIP_NO_CACHE_DIR": "0",
    "RUNNER_LABELS": "self-hosted,tile-ops,venv",
}


@pytest.fixture(scope="module")
def recipe(inspect, root):
    return inspect("dockerfile", root / "Dockerfile")


def stage(recipe, name):
    return next(s for s in recipe["stages"] if s["name"] == name)


def words(recipe, name, keyword):
    return [rest for word, rest in stage(recipe, name)["instructions"] if word == keyword]


def joined(text):
    return re.sub(r"\s+", " ", text.replace("\\\n", " "))


def dockerfiles(root):
    return sorted([root / "Dockerfile", *root.glob("examples/*/Dockerfile")])


def test_the_linter_finds_nothing_in_any_dockerfile(inspect, root):
    assert len(dockerfiles(root)) >= 5
    for path in dockerfiles(root):
        assert inspect("dockerfile", path)["problems"] == [], path


def test_the_linter_would_find_a_fault(inspect, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM scratch\nRUNN true\n")
    assert inspect("dockerfile", tmp_path / "Dockerfile")["problems"]


def test_every_stage_is_there_in_order_and_stands_on_the_right_one(recipe):
    assert [s["name"] for s in recipe["stages"]] == STAGES
    for name, parent in PARENTS.items():
        assert stage(recipe, name)["from"] == parent


def test_every_argument_of_the_old_recipe_is_there_with_its_default(recipe):
    seen = dict(recipe["globals"])
    for s in recipe["stages"]:
        for name, value in s["args"].items():
            assert seen.get(name, value) == value, f"{name} has two defaults"
            seen[name] = value
    for name, value in ARGS.items():
        assert name in seen and seen[name] == value, name


def test_no_argument_or_environment_variable_holds_a_secret(recipe):
    for s in recipe["stages"]:
        names = list(s["args"]) + [pair.split("=")[0] for text in
                                   [rest for word, rest in s["instructions"] if word == "ENV"]
                                   for pair in joined(text).split()]
        for name in names:
            assert not re.search(r"TOKEN|SECRET|PASSWORD|PRIVATE_KEY|_PAT$", name), name


def test_the_tilelang_arguments_are_declared_last_so_that_a_bump_builds_one_layer(recipe):
    users = [s["name"] for s in recipe["stages"] if "TILELANG_GIT_SHA" in s["args"] or "TILELANG_VERSION" in s["args"]]
    assert users == ["source-check", "tilelang"]
    # Nothing before the tilelang stage stands on the check, so its result cannot spoil their cache.
    for name in ("runtime", "post-fa3", "fa2", "fullstack"):
        assert "source-check" not in " ".join(words(recipe, name, "COPY"))
    assert words(recipe, "tilelang", "COPY")[0].startswith("--from=source-check")


def run_source_check(recipe, **values):
    script = joined(stage(recipe, "source-check")["runs"][0]).replace("/source-checked", "/dev/null")
    return subprocess.run(["sh", "-c", script], env={"PATH": "/usr/bin:/bin", **values}, capture_output=True, text=True,
                          timeout=10, check=False)


def test_no_tilelang_source_fails_at_once_and_says_what_to_pass(recipe):
    done = run_source_check(recipe)
    assert done.returncode == 1
    assert "TILELANG_GIT_SHA" in done.stderr and "TILELANG_VERSION" in done.stderr


def test_two_tilelang_sources_fail_at_once_and_name_both(recipe):
    done = run_source_check(recipe, TILELANG_GIT_SHA="abc", TILELANG_VERSION="1")
    assert done.returncode == 1
    assert "both set" in done.stderr


@pytest.mark.parametrize("name", ["TILELANG_GIT_SHA", "TILELANG_VERSION"])
def test_one_tilelang_source_passes(recipe, name):
    assert run_source_check(recipe, **{name: "abc"}).returncode == 0


def test_the_entry_point_is_init_by_absolute_path_in_exec_form_outside_the_home(recipe):
    assert words(recipe, "final", "ENTRYPOINT") == ['["/usr/local/bin/init"]']
    assert words(recipe, "final", "USER") == ["ci-runner"]
    assert words(recipe, "final", "STOPSIGNAL") == ["SIGTERM"]


def test_the_image_has_no_health_check_while_it_runs_as_one_user(recipe, inspect, root):
    assert words(recipe, "final", "HEALTHCHECK") == []
    for path in root.glob("examples/*/Dockerfile"):
        last = inspect("dockerfile", path)["stages"][-1]
        has = [word for word, _ in last["instructions"]].count("HEALTHCHECK")
        as_root = "RUNNER_USER=" in " ".join(rest for word, rest in last["instructions"] if word == "ENV")
        assert has == (1 if as_root else 0), path


def test_the_environment_of_the_image_is_what_jobs_expect(recipe):
    pairs = dict(p.split("=", 1) for text in words(recipe, "final", "ENV") for p in joined(text).split())
    assert pairs == ENV


def test_no_run_uses_a_here_document(recipe):
    for s in recipe["stages"]:
        for run in s["runs"]:
            assert "<<" not in run, s["name"]


def test_the_guard_is_the_selftest_and_ends_the_tilelang_stage(recipe):
    word, rest = stage(recipe, "tilelang")["instructions"][-1]
    assert word == "RUN" and "/usr/local/bin/init --selftest=build" in rest


def test_only_the_binary_leaves_the_build_stage(recipe):
    copies = [c for s in recipe["stages"] for c in
              [rest for word, rest in s["instructions"] if word == "COPY"] if "--from=init-build" in c]
    assert len(copies) == 2
    for c in copies:
        assert c.split()[1] == "/src/init/build/init"


def test_sources_fetched_by_git_are_pinned_by_commit(recipe):
    for s in recipe["stages"]:
        for run in s["runs"]:
            for ref in re.findall(r'git fetch -q --depth 1 "\$\{\w+\}" "\$\{(\w+)\}"', run):
                assert ref.endswith("_GIT_SHA")
                value = s["args"].get(ref)
                assert value is None or re.fullmatch(r"[0-9a-f]{40}", value), ref
            assert "git clone" not in run


def test_the_runner_archive_is_checked_when_its_sum_is_given_and_else_said(recipe):
    text = joined(" ".join(stage(recipe, "final")["runs"]))
    assert "sha256sum -c" in text and "was not checked" in text


def test_nothing_of_tileops_itself_is_in_the_image(recipe):
    for s in recipe["stages"]:
        for run in s["runs"]:
            assert "TileOPs" not in run and "tileops" not in run


def test_baselines_are_best_effort_and_torch_is_not(recipe):
    for name in ("post-fa3", "fa2", "fullstack"):
        for run in stage(recipe, name)["runs"]:
            if re.search(r"flash-attn|vllm|mamba|DeepGEMM|deepgemm|flashinfer|linear-attention|hopper", run):
                assert "WARNING" in run, run
    torch = next(r for r in stage(recipe, "runtime")["runs"] if "torchvision==" in r and "pip install" in r)
    assert "||" not in torch
    for package in ("vllm", "flash-attn", "flash-linear-attention"):
        run = next(r for n in ("fa2", "fullstack") for r in stage(recipe, n)["runs"] if f"{package}==" in r)
        assert "torch-frozen.txt" in run, package


def test_the_pins_are_the_known_ones_and_each_stands_under_a_reason(root):
    lines = (root / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pins == PINS
    above = False
    for line in lines:
        if line.startswith("#"):
            above = True
        elif not line:
            above = False
        else:
            assert above, f"{line}: no reason above it"


def test_the_shell_of_every_run_passes_shellcheck(recipe, tmp_path):
    for s in recipe["stages"]:
        shell = "bash" if s["name"] not in ("source-check", "init-build") else "sh"
        for n, run in enumerate(s["runs"]):
            path = tmp_path / f"{s['name']}-{n}.sh"
            # Arguments and ENV are variables that the builder sets: 2154 says so of each, 2164 of cd inside &&.
            path.write_text(f"#!/bin/{shell}\n{run}\n")
            done = subprocess.run(["shellcheck", "-e", "SC2154", str(path)], capture_output=True, text=True,
                                  timeout=60, check=False)
            assert done.returncode == 0, done.stdout


def test_the_bake_file_has_the_stages_as_targets_and_tags_by_commit(inspect, root):
    bake = inspect("bake", root / "docker-bake.hcl")
    targets = {name: body[0] for name, body in bake["target"].items()}
    for name in ("init", "runtime", "post-fa3", "fa2", "fullstack", "tilelang", "final"):
        assert targets[name]["target"] == name
    assert bake["group"]["default"][0]["targets"] == ["final"]
    assert "source_tag" in targets["final"]["tags"][0] and "SUFFIX" in targets["final"]["tags"][0]


def test_the_image_page_has_a_row_for_every_argument_and_every_stage(recipe, root):
    page = (root / "docs" / "image.md").read_text()
    for name in {n for s in recipe["stages"] for n in s["args"]} | set(recipe["globals"]):
        if name != "RUNNER_ARCH":
            assert f"`{name}`" in page, name
    for name in STAGES:
        assert f"| `{name}` |" in page, name
