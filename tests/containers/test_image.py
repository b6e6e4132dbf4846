"""The real Dockerfile, built on a small stack, run by podman and runc."""

import json
import os
import subprocess

import pytest
from boxes import build, podman, runner_env


def test_the_binary_image_is_nothing_but_the_binary(init_image, container):
    made = podman("create", "--network", "none", init_image).stdout.strip()
    try:
        names = subprocess.run(f"podman export {made} | tar -t", shell=True, capture_output=True, text=True, check=True,
                               timeout=60).stdout.split()
    finally:
        podman("rm", "-f", made)
    files = [n for n in names if not n.endswith("/") and not n.startswith(("dev/", "etc/", "proc/", "run/", "sys/"))]
    assert files == ["init"]
    c = container(init_image, "--version")
    assert c.wait() == 0
    assert "containertest" in container(init_image, "--version", "--json").logs or "init" in c.logs


@pytest.mark.parametrize("args,words", [
    ({"TILELANG_GIT_SHA": None}, ["no tilelang source", "TILELANG_VERSION"]),
    ({"TILELANG_VERSION": "0.1.9"}, ["both set"]),
])
def test_a_wrong_choice_of_tilelang_source_ends_the_build(base_image, args, words):
    base, given = base_image
    done = build("final", "localhost/init-test-refused:now", base, {**given, **args}, check=False)
    assert done.returncode != 0
    for word in words:
        assert word in done.stdout + done.stderr


def test_a_release_is_installed_instead_of_a_commit(base_image, final_image):
    base, given = base_image
    build("tilelang", "localhost/init-test-release:now", base, {**given, "TILELANG_GIT_SHA": None, "TILELANG_VERSION": "0.1.9"})
    podman("rmi", "-f", "localhost/init-test-release:now")


def test_a_wrong_sum_of_the_runner_archive_ends_the_build(base_image, final_image):
    base, given = base_image
    done = build("final", "localhost/init-test-refused:now", base, {**given, "RUNNER_SHA256": "0" * 64}, check=False)
    assert done.returncode != 0 and "FAILED" in done.stdout + done.stderr


def test_a_baseline_that_does_not_build_warns_and_is_left_out(final_build):
    _, output = final_build
    assert "FlashAttention-3 did not build" in output
    assert "vllm 0.19.1 was not installed" in output


def test_the_image_is_configured_as_the_recipe_says(final_image):
    config = json.loads(podman("inspect", final_image).stdout)[0]["Config"]
    assert config["Entrypoint"] == ["/usr/local/bin/init"]
    assert config["User"] == "ci-runner" and config["StopSignal"] == "SIGTERM"
    assert not config.get("Healthcheck")
    assert "RUNNER_LABELS=self-hosted,tile-ops,venv" in config["Env"]
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"


def test_a_shell_command_runs_in_the_mounted_checkout(final_image, container, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "hello").write_text("from the checkout\n")
    c = container(final_image, "bash", "-c", "cat hello && umask && exit 5", options=["-v", f"{tmp_path}/src:/src", "-w", "/src"])
    assert c.wait() == 5
    assert "from the checkout" in c.logs and "0002" in c.logs


def test_python_reads_a_script_from_standard_input(final_image):
    done = podman("run", "-i", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", final_image,
                  "python", "-", stdin="import torch\nprint('torch', torch.__version__, torch.version.cuda)\n")
    assert done.stdout.strip() == "torch 2.10.0+cu129 12.9"


def test_the_guard_can_be_run_again_in_the_finished_image(final_image, container):
    c = container(final_image, "--selftest=build", "--json")
    assert c.wait() == 0, c.logs
    assert '"result"' in c.logs


def test_the_entry_point_works_from_any_working_directory(final_image, container):
    assert container(final_image, "true", options=["-w", "/tmp"]).wait() == 0


def test_a_runner_registers_does_its_job_and_leaves_nothing(final_image, container, make_world):
    world = make_world(flow="v2")
    c = container(final_image, world=world, env=runner_env(world))
    world.wait_for("online", timeout=60)
    world.job(name="build", seconds=0.1)
    assert c.wait() == 0, c.logs
    assert world.runners() == []


def test_a_stop_deregisters_well_inside_the_grace(final_image, container, make_world):
    world = make_world(flow="v1")
    c = container(final_image, world=world, env=runner_env(world))
    world.wait_for("online", timeout=60)
    c.stop(10)
    assert not c.killed
    assert c.wait() == 0 and world.runners() == []


def test_a_container_that_is_started_again_registers_again(final_image, container, make_world):
    world = make_world(flow="v2")
    c = container(final_image, world=world, env=runner_env(world))
    world.wait_for("online", timeout=60)
    c.stop(10)
    c.start()
    world.wait_for("online", timeout=60)
    c.stop(10)
    assert c.wait() == 0 and world.runners() == []


def test_a_read_only_root_works_when_runner_root_and_caches_are_volumes(final_image, container, make_world):
    world = make_world(flow="v2")
    # A new named volume starts as a copy of what the image has there.
    volumes = [podman("volume", "create").stdout.strip() for _ in range(2)]
    try:
        c = container(final_image, world=world, env=runner_env(world),
                      options=["--read-only", "--tmpfs", "/tmp", "-v", f"{volumes[0]}:/home/ci-runner/runner",
                               "-v", f"{volumes[1]}:/ci-cache"])
        world.wait_for("online", timeout=60)
        c.stop(10)
        assert c.wait() == 0 and world.runners() == [], c.logs
        c.close()
    finally:
        podman("volume", "rm", "-f", *volumes)


def test_a_read_only_root_without_one_is_refused_before_anything_is_registered(final_image, container, make_world):
    world = make_world(flow="v2")
    c = container(final_image, world=world, env=runner_env(world), options=["--read-only", "--tmpfs", "/tmp"])
    assert c.wait() == 73, c.logs
    assert "/home/ci-runner/runner" in c.logs and world.steps() == []


def test_a_foreign_user_without_rights_on_the_runner_root_is_told_so(final_image, container, make_world):
    world = make_world(flow="v2")
    c = container(final_image, world=world, env=runner_env(world), options=["--user", "12345"])
    assert c.wait() == 73, c.logs
    assert "12345" in c.logs and world.runners() == [] and world.steps() == []


def test_a_cache_of_a_foreign_owner_stops_before_anything_is_registered(final_image, container, make_world, tmp_path):
    world = make_world(flow="v2")
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o755)
    os.chown(cache, 5000, 5000)
    c = container(final_image, world=world, env=runner_env(world), options=["-v", f"{cache}:/ci-cache"])
    assert c.wait() == 73, c.logs
    assert "/ci-cache" in c.logs and "5000" in c.logs and world.steps() == []


def test_init_in_front_of_init_still_deregisters(final_image, container, make_world):
    world = make_world(flow="v2")
    c = container(final_image, world=world, env=runner_env(world), options=["--init"])
    world.wait_for("online", timeout=60)
    c.stop(10)
    assert not c.killed and world.runners() == []


def test_the_root_variant_hides_the_credential_and_answers_its_health_check(final_image, container, make_world):
    world = make_world(flow="v2")
    c = container(final_image, world=world, env=runner_env(world, RUNNER_USER="ci-runner"),
                  options=["--user", "root", "--health-cmd", '["/usr/local/bin/init", "--health"]', "--health-interval", "disable"])
    world.wait_for("online", timeout=60)
    c.wait_text("Listening for Jobs")
    assert podman("healthcheck", "run", c.name, check=False).returncode == 0
    denied = c.exec("cat", "/proc/1/environ", options=["--user", "ci-runner"], check=False)
    assert denied.returncode != 0
    c.stop(10)
    assert world.runners() == []


@pytest.mark.parametrize("argv,status", [(("sh", "-c", "exit 42"), 42), (("sh", "-c", "kill -KILL $$"), 137), (("/nonexistent",), 127),
                                         (("/etc",), 126), (("--no-such-option",), 64)])
def test_podman_sees_the_exit_status(final_image, container, argv, status):
    assert container(final_image, *argv).wait() == status


@pytest.mark.parametrize("example", ["actions-runner", "myoung34", "arc-scale-set"])
def test_the_drop_in_examples_build_on_any_base_and_answer(example, base_image, init_image, container):
    tag = f"localhost/init-test-{example}:now"
    podman("build", "--format", "docker", "--isolation", "chroot", "--build-arg", f"INIT_IMAGE={init_image}", "--build-arg",
           f"BASE_IMAGE={base_image[0]}", "-t", tag, "-f", f"examples/{example}/Dockerfile", "examples", timeout=300)
    assert container(tag, "--version").wait() == 0
    podman("rmi", "-f", tag)
