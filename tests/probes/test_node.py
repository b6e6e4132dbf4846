"""Tier fast beside the GPU: caches, runner, system, network, and the three forms of the report."""
import json
import os
import pty
import re
import subprocess

import jsonschema
import pytest

import node as nodes

SCHEMA = json.load(open(os.path.join(nodes.TOP, "probes/selftest.schema.json")))


def is_(found, check, result, *words):
    c = found[check]
    assert c["result"] == result, c
    for w in words:
        assert w in c["detail"] + " -> " + c["remedy"], c
    return c


# ---- caches ----

def test_a_cache_that_can_be_written_passes(node):
    found = node.selftest()
    is_(found, "cache.write", "pass", "TRITON_CACHE_DIR")
    is_(found, "cache.space", "pass", "MiB")
    assert os.listdir(node.cache) == []


def test_a_cache_of_somebody_else_names_owner_and_mode(node):
    node.env["TRITON_CACHE_DIR"] = "/proc"  # not even root may create a file there
    c = is_(node.selftest(), "cache.write", "fail", "TRITON_CACHE_DIR=/proc", "cannot write", "owner 0:0", "mode 0555")
    assert "chgrp" in c["remedy"]


def test_a_cache_that_is_not_there(node):
    os.rmdir(node.cache)
    is_(node.selftest(), "cache.write", "fail", node.cache, "No such file", "mount the cache")


def test_too_little_space_warns(node):
    is_(node.selftest(INIT_CACHE_MIN_FREE="1000T"), "cache.space", "warn", "MiB free")


def test_a_cache_in_memory_is_told_by_kind(node):
    node.env["TRITON_CACHE_DIR"] = "/sys"  # a tmpfs in these namespaces
    is_(node.selftest(), "cache.kind", "pass", "tmpfs")


# ---- runner ----

def test_the_runner_says_its_version(node):
    found = node.selftest()
    is_(found, "runner.agent", "pass", "2.334.0")
    is_(found, "runner.root", "pass", node.root)
    is_(found, "runner.icu", "pass", "ICU")


@pytest.mark.parametrize("body,words", [
    ("echo \"Couldn't find a valid ICU package installed on the system.\" >&2; kill -ABRT $$", "signal 6"),
    ("echo no version here", "ended with 0: no version here"), ("exit 134", "ended with 134"),
    ("trap '' TERM; while :; do sleep 60; done", "gave no version")])
def test_a_runner_that_does_not_start(node, body, words):
    node.runner(body=body)
    is_(node.selftest(only="runner.agent"), "runner.agent", "fail", words)


def test_a_runner_that_may_not_be_executed(node):
    os.chmod(node.root + "/bin/Runner.Listener", 0o644)
    is_(node.selftest(only="runner.agent"), "runner.agent", "fail", "Permission denied")


def test_without_icu_the_agent_would_abort(node):
    os.unlink(node.lib + "/libicuuc.so.72")
    node.order["files"]["/etc/ld.so.conf"] = "\n"
    node.order["hide"] = [p for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu") if os.path.isdir(p)]
    found = node.selftest(only="runner.icu")
    is_(found, "runner.icu", "fail", "libicuuc", "libstdc++.so.6", "installdependencies")
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        nodes.write("%s/%s" % (node.lib, name), "")
    is_(node.selftest(only="runner.icu"), "runner.icu", "fail", "Couldn't find a valid ICU package")
    is_(node.selftest(only="runner.icu", DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1"), "runner.icu", "pass", "not needed")
    nodes.write(node.root + "/bin/Runner.Listener.runtimeconfig.json", '{"configProperties": {"System.Globalization.Invariant": true}}')
    is_(node.selftest(only="runner.icu"), "runner.icu", "pass", "not needed")


# ---- system ----

def test_limits_of_the_cgroup(node):
    node.order["files"].update({"/sys/fs/cgroup/pids.max": "100\n", "/sys/fs/cgroup/memory.max": "max\n"})
    is_(node.selftest(), "sys.limits", "warn", "pids.max 100", "--pids-limit")
    node.order["files"]["/sys/fs/cgroup/pids.max"] = "max\n"
    is_(node.selftest(), "sys.limits", "pass")


def test_the_bundle_of_certificates(node):
    nodes.write(node.tmp + "/ca.pem", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n" * 3)
    nodes.write(node.tmp + "/empty.pem", "")
    is_(node.selftest(SSL_CERT_FILE=node.tmp + "/ca.pem"), "net.ca", "pass", "3 certificates")
    is_(node.selftest(SSL_CERT_FILE=node.tmp + "/empty.pem"), "net.ca", "fail", "SSL_CERT_FILE")


def test_without_a_url_the_network_is_not_asked(node):
    found = node.selftest()
    is_(found, "net.api", "skip", "RUNNER_URL")
    is_(found, "net.clock", "skip", "RUNNER_URL")


def test_an_api_host_that_refuses_is_named(node):
    found = node.selftest(RUNNER_URL="https://127.0.0.1:1/o/r")
    is_(found, "net.api", "fail", "127.0.0.1")
    is_(found, "net.clock", "unknown")


def cli(node, *argv, **env):
    p = node.run(nodes.CLI, *argv, **env)
    report = json.loads(p.stdout)
    return {c["id"]: c for c in report["checks"]}


@pytest.mark.parametrize("net,api,clock", [("ok 3", "pass", "pass"), ("ok 301", "pass", "fail"), ("ok -4000", "pass", "fail"),
                                           ("no DNS: NXDOMAIN", "fail", "unknown"), ("hang", "fail", "unknown")])
def test_what_the_network_says(node, net, api, clock):
    found = cli(node, "selftest", "fast", "json", "only=net.api,net.clock", PROBECLI_NET=net)
    is_(found, "net.api", api)
    is_(found, "net.clock", clock)


# ---- the report ----

def test_json_follows_the_schema_healthy_and_not(node):
    report = node.selftest(INIT_IMAGE="cu129-torch2.10-tl-65dbc98 \"quoted\" \\ caf\u00e9")[""]
    jsonschema.validate(report, SCHEMA)
    assert report["image"].startswith('cu129-torch2.10-tl-65dbc98 "quoted"')
    node.order.update(open="EPERM")
    node.smi(body="printf '\\001\\\\\"\\377' >&2; exit 1")
    jsonschema.validate(node.selftest()[""], SCHEMA)
    jsonschema.validate(node.selftest("build")[""], SCHEMA)


def test_the_schema_refuses_what_is_not_a_report(node):
    report = node.selftest(only="sys.clock")[""]
    for change in ({"result": "good"}, {"schema": 2}, {"extra": 1}, {"started": "yesterday"}, {"checks": [{"id": "a.b"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(dict(report, **change), SCHEMA)


def test_plain_lines_hold_no_colour_and_say_remedy_and_action(node):
    node.smi("ecc.xml")
    p = node.run(nodes.INIT, "--selftest")
    text = p.stdout.decode()
    assert p.returncode == 1
    assert "\x1b" not in text
    assert re.search(r"^fail +gpu\.ecc +\d+ ms +.*3 uncorrected", text, re.M)
    assert re.search(r"^ +-> drain the node and reset the GPU.*\[reset_gpu\]$", text, re.M)
    assert re.search(r"^fail: \d+ passed, \d+ warned, 2 failed", text, re.M)


def test_a_terminal_gets_colour(node):
    os.makedirs(node.order["top"], exist_ok=True)
    ours, theirs = pty.openpty()
    p = subprocess.Popen(node.command([nodes.INIT, "--selftest", "--only", "sys.clock"]), stdin=subprocess.DEVNULL, stdout=theirs)
    os.close(theirs)
    text = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:
            break
        if not more:
            break
        text += more
    assert p.wait(60) == 0
    assert b"\x1b[32mpass" in text


def test_the_list_holds_every_check_once_with_a_remedy(node):
    listed = json.loads(node.run(nodes.INIT, "--selftest", "--list", "--json").stdout)
    ids = [c["id"] for c in listed]
    assert len(ids) == len(set(ids)) == 43
    assert all(c["remedy"] and c["about"] and c["deadline_ms"] > 0 for c in listed)
    assert {c["tier"] for c in listed} == {"build", "fast", "deep"}
    assert all(c["exit"] in (69, 73, 78, 80, 81, 82) for c in listed)
    text = node.run(nodes.INIT, "--selftest", "--list").stdout.decode()
    assert [line.split()[0] for line in text.splitlines()] == ids


def test_only_and_skip(node):
    found = node.selftest(only="gpu.smi, sys.clock")
    assert set(found) == {"gpu.smi", "sys.clock", ""}
    found = node.selftest(skip="gpu.smi,sys.clock")
    assert "gpu.smi" not in found and "gpu.nodes" in found
    p = node.run(nodes.INIT, "--selftest", "--only", "gpu.smy")
    assert p.returncode == 64
    assert b'"gpu.smy"' in p.stderr and b"--list" in p.stderr


def test_secrets_do_not_reach_the_tools(node):
    node.smi(body="env >%s/seen; tr '\\0' '\\n' </proc/self/environ >>%s/seen; cat %s/healthy.xml" % (node.tmp, node.tmp, nodes.DATA))
    node.selftest(ACCESS_TOKEN="ghp_secret0123456789", RUNNER_TOKEN="AAAASECRET", INIT_EXPECT_GPUS="1")
    seen = open(node.tmp + "/seen").read()
    assert "PATH=" in seen
    assert "ghp_secret" not in seen and "AAAASECRET" not in seen and "INIT_EXPECT" not in seen


def test_the_checks_run_as_the_job_s_user(node):
    """init as root with RUNNER_USER: it is that user's permissions that count."""
    seen = node.tmp + "/seen"
    nodes.write(seen, "")
    os.chmod(seen, 0o666)
    path = node.tmp
    while path != "/tmp" and path != "/":
        os.chmod(path, 0o755)
        path = os.path.dirname(path)
    node.smi(body="id -u >%s; id -G >>%s; cat %s/healthy.xml" % (seen, seen, nodes.DATA))
    found = node.selftest(RUNNER_USER="65534:65534")
    assert open(seen).read() == "65534\n65534\n"
    is_(found, "cache.write", "fail", "uid 65534 gid 65534 cannot write", "owner 0:0", "mode 0755")
    is_(found, "runner.root", "fail", "uid 65534")
