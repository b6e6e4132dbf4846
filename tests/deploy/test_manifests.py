"""Every example manifest is valid, and its numbers keep the promises of docs/fleet.md."""

import json
import re
import subprocess

import pytest
import yaml

UNIT = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)([smh]?)", str(text)).groups()
    return int(number) * UNIT[unit]


def objects(root):
    for path in sorted((root / "deploy" / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield path, document


def pod_specs(root):
    for path, document in objects(root):
        if document["kind"] in ("Deployment", "Job"):
            yield path.name, document["spec"]["template"]["spec"]
    values = yaml.safe_load((root / "deploy" / "arc" / "values.yaml").read_text())
    yield "arc", values["template"]["spec"]


def env_of(spec):
    return {e["name"]: e["value"] for e in spec["containers"][0]["env"]}


def statuses_not_cured_by_a_restart(root):
    """From the page's own table: the rows that say FailJob."""
    page = (root / "docs" / "fleet.md").read_text()
    found = set()
    for line in page.splitlines():
        if "`FailJob`" in line and line.startswith("|"):
            found |= {int(n) for n in re.findall(r"\d+", line.split("|")[1])}
    assert found
    return found


def test_every_kubernetes_object_fits_the_published_schema(inspect, root):
    found = [document for _, document in objects(root)]
    assert {d["kind"] for d in found} == {"Secret", "Deployment", "Job", "PersistentVolumeClaim"}
    assert inspect("manifest", stdin=json.dumps(found)) == [None] * len(found)


def test_the_pod_of_the_arc_values_fits_the_published_schema(inspect, root):
    values = yaml.safe_load((root / "deploy" / "arc" / "values.yaml").read_text())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": values["template"]["spec"]}
    assert inspect("manifest", stdin=json.dumps([pod])) == [None]


def test_the_schema_check_would_find_a_fault(inspect):
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "x", "image": 5}]}}
    assert inspect("manifest", stdin=json.dumps([pod])) != [None]


def test_each_grace_holds_drain_and_stop_budget(root):
    checked = 0
    for name, spec in pod_specs(root):
        env = env_of(spec)
        need = seconds(env["INIT_DRAIN"]) + seconds(env["INIT_STOP_TIMEOUT"])
        assert spec["terminationGracePeriodSeconds"] > need, name
        checked += 1
    compose = yaml.safe_load((root / "deploy" / "compose.yaml").read_text())["services"]["runner"]
    env = compose["environment"]
    assert seconds(compose["stop_grace_period"]) > seconds(env["INIT_DRAIN"]) + seconds(env["INIT_STOP_TIMEOUT"])
    assert checked == 3


def test_the_systemd_unit_waits_longer_than_podman_and_podman_longer_than_init(root):
    unit = (root / "deploy" / "systemd" / "tileops-runner@.service").read_text()
    podman = int(re.search(r"--stop-timeout (\d+)", unit).group(1))
    need = sum(seconds(re.search(rf"--env {n}=(\S+)", unit).group(1)) for n in ("INIT_DRAIN", "INIT_STOP_TIMEOUT"))
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit).group(1)) > podman > need
    assert int(re.search(r"podman stop --time (\d+)", unit).group(1)) == podman


def test_no_secret_is_in_an_environment_and_each_file_is_for_root_alone(root):
    for name, spec in pod_specs(root):
        for e in spec["containers"][0]["env"]:
            assert not re.fullmatch(r"RUNNER_TOKEN|ACCESS_TOKEN|APP_PRIVATE_KEY", e["name"]), name
        for volume in spec["volumes"]:
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] == 0o400, name
    compose = yaml.safe_load((root / "deploy" / "compose.yaml").read_text())
    assert compose["services"]["runner"]["secrets"][0]["mode"] == 0o400
    assert "ACCESS_TOKEN" not in compose["services"]["runner"]["environment"]
    unit = (root / "deploy" / "systemd" / "tileops-runner@.service").read_text()
    assert "mode=0400" in unit and not re.search(r"--env (RUNNER_TOKEN|ACCESS_TOKEN)=", unit)


def test_where_a_credential_is_mounted_init_is_root_and_the_job_is_not(root):
    for name, spec in pod_specs(root):
        if any("secret" in v for v in spec["volumes"]):
            assert spec["containers"][0]["securityContext"]["runAsUser"] == 0, name
            assert env_of(spec)["RUNNER_USER"] == "ci-runner", name
    compose = yaml.safe_load((root / "deploy" / "compose.yaml").read_text())["services"]["runner"]
    assert compose["user"] == "root" and compose["environment"]["RUNNER_USER"] == "ci-runner"


def test_health_is_a_readiness_and_nowhere_a_liveness(root):
    probed = 0
    for _, spec in pod_specs(root):
        container = spec["containers"][0]
        assert "livenessProbe" not in container
        if "readinessProbe" in container:
            assert container["readinessProbe"]["exec"]["command"] == ["/usr/local/bin/init", "--health"]
            probed += 1
    assert probed == 2


def test_the_lists_of_exit_statuses_equal_the_table(root):
    want = statuses_not_cured_by_a_restart(root)
    job = next(d for _, d in objects(root) if d["kind"] == "Job")
    assert set(job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"]) == want
    unit = (root / "deploy" / "systemd" / "tileops-runner@.service").read_text()
    listed = re.search(r"RestartPreventExitStatus=(.*)", unit).group(1)
    assert {int(n) for n in listed.split()} == want


def test_the_state_directory_is_in_memory_where_the_pod_runs_as_root(root):
    for name, spec in pod_specs(root):
        if name == "arc":
            continue
        state = next(v for v in spec["volumes"] if v["name"] == "state")
        assert state["emptyDir"]["medium"] == "Memory"


def test_compose_itself_accepts_the_compose_file(root, tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "access_token").write_text("x")
    (tmp_path / "compose.yaml").write_text((root / "deploy" / "compose.yaml").read_text())
    done = subprocess.run(["/usr/bin/docker-compose", "-f", "compose.yaml", "config", "-q"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_systemd_accepts_the_unit(root, tmp_path):
    source = (root / "deploy" / "systemd" / "tileops-runner@.service").read_text()
    # The program need not be installed where the unit is checked; everything else is as it stands.
    unit = tmp_path / "tileops-runner@.service"
    unit.write_text(source.replace("/usr/bin/podman", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
                          capture_output=True, text=True, timeout=60, check=False)
    text = done.stdout + done.stderr
    assert "tileops-runner" not in text or done.returncode == 0, text


@pytest.mark.parametrize("broken", ["TimeoutStopSec=sometimes", "RestartPreventExitStatus=300x"])
def test_the_systemd_check_would_find_a_fault(root, tmp_path, broken):
    source = (root / "deploy" / "systemd" / "tileops-runner@.service").read_text()
    unit = tmp_path / "tileops-runner@.service"
    unit.write_text(source.replace("/usr/bin/podman", "/bin/true").replace("Restart=always", broken))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert "tileops-runner" in done.stdout + done.stderr
