"""The life cycle on a node with a GPU: no healthy card, no registration; a card that falls ill takes the runner with it; and what a job
leaves on the card is named. The card is a fake one: nodes, driver files and a tool that prints what the test puts before it."""
import json
import os
import shutil
import time

import pytest

import harness
import lives

DATA = os.path.join(harness.REPO, "tests/probes/data")
TOOL = """#!/bin/sh
echo "$*" >>/var/gpu/calls
case "$*" in
*compute_cap*) echo 9.0 ;;
*) if [ -e /var/gpu/once ]; then rm /var/gpu/once; echo "GPU is lost" >&2; exit 15; fi
   [ ! -e /var/gpu/hang ] || { trap '' TERM; while :; do sleep 60; done; }
   cat /var/gpu/report.xml; exit $(cat /var/gpu/code) ;;
esac
"""


class Card:
    def __init__(self, tmp):
        self.folder = str(tmp / "gpu")
        os.makedirs(self.folder + "/lib")
        for name in ("libnvidia-ml.so", "libcuda.so"):
            open("%s/lib/%s.580.159.04" % (self.folder, name), "w").close()
            os.symlink(name + ".580.159.04", "%s/lib/%s.1" % (self.folder, name))
        with open(self.folder + "/nvidia-smi", "w") as f:
            f.write(TOOL)
        os.chmod(self.folder + "/nvidia-smi", 0o755)
        self.driver = str(tmp / "driver")
        os.makedirs(self.driver + "/nvidia/gpus/0000:01:00.0")
        with open(self.driver + "/nvidia/version", "w") as f:
            f.write("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n")
        os.chmod(self.folder, 0o777)
        self.shows("healthy.xml")

    def shows(self, data, code=0):
        with open(self.folder + "/code.new", "w") as f:
            f.write(str(code))
        os.rename(self.folder + "/code.new", self.folder + "/code")
        shutil.copy(os.path.join(DATA, data), self.folder + "/report.new")
        os.rename(self.folder + "/report.new", self.folder + "/report.xml")

    def calls(self):
        with open(self.folder + "/calls") as f:
            return len(f.read().splitlines())

    def wait_calls(self, n):
        limit = time.monotonic() + harness.LIMIT
        while self.calls() < n:
            assert time.monotonic() < limit, "the tool was asked %d times, not %d" % (self.calls(), n)
            time.sleep(0.05)

    def mark(self, name):
        open(self.folder + "/" + name, "w").close()

    def options(self, **env):
        binds = {"/var/gpu": self.folder, "/proc/driver": self.driver}
        for name, text in (("vendor", "0x10de"), ("class", "0x030200")):
            path = self.folder + "/pci/0000:01:00.0/" + name
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text + "\n")
        binds["/sys/bus/pci/devices"] = self.folder + "/pci"
        binds.update({"/dev/" + n: "/dev/null" for n in ("nvidia0", "nvidiactl", "nvidia-uvm")})
        settings = {"INIT_SELFTEST": "fast", "INIT_GPU": "required", "LD_LIBRARY_PATH": "/var/gpu/lib", "NVIDIA_VISIBLE_DEVICES": "all",
                    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "PATH": "/var/gpu:/usr/sbin:/usr/bin:/sbin:/bin"}
        settings.update(env)
        return dict(settings, binds=binds)


@pytest.fixture
def card(tmp_path):
    return Card(tmp_path)


def test_a_healthy_card_registers_with_labels_and_setup_info(run, world, card):
    pod = lives.listening(run, world, **card.options(INIT_LABELS_FROM_FACTS="yes", INIT_LABELS_PREFIX="gpu-", INIT_IMAGE="cu129:65dbc98"))
    (runner,) = world.runners()
    assert {"gpu-h200", "gpu-sm_90", "gpu-vram-141g", "gpu-driver-580", "gpu-cuda-13.0", "gpu-gpus-1"} <= set(runner["labels"])
    with open(pod.root + "/.setup_info") as f:
        info = {i["group"]: i["detail"] for i in json.load(f)}
    assert "1 x NVIDIA H200" in info["GPU"] and info["Runner image"] == "cu129:65dbc98" and "passed" in info["Self-test"]
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    assert "not clean" not in lives.receipt(pod)


def test_a_sick_card_is_not_registered(run, world, card):
    card.shows("ecc.xml")
    pod = lives.start(run, world, **card.options())
    lives.refused(pod, world, 80, "gpu.recovery", "[reset_gpu]")
    assert set(world.steps()) <= {"rest.root"}  # the checks asked whether the API is there
    assert "fail    gpu.ecc" in pod.text and "pass    net.api" in pod.text and "api.github.com answered 200" in pod.text


def test_one_bad_reading_is_looked_at_again_and_forgiven(run, world, card):
    pod = lives.listening(run, world, **card.options(INIT_GPU_WATCH="1s"))
    card.mark("once")
    pod.wait_text("looking once more")
    assert len(world.runners()) == 1
    card.wait_calls(card.calls() + 3)
    assert pod.alive() and len(world.runners()) == 1
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_a_card_that_falls_ill_while_idle_takes_the_runner_out_with_80(run, world, card):
    pod = lives.listening(run, world, **card.options(INIT_GPU_WATCH="1s"))
    card.shows("lost.txt", 15)
    lives.ended(pod, world, 80)
    assert "no more jobs for this node" in pod.text and "[reboot]" in pod.text


def test_the_tool_is_asked_at_most_every_fifth_time(run, world, card):
    pod = lives.listening(run, world, **card.options(INIT_GPU_WATCH="1s", INIT_LOG_LEVEL="debug"))
    asked, start = card.calls(), time.monotonic()
    card.wait_calls(asked + 1)
    assert time.monotonic() - start > 3  # five rounds of a second, the first of which may have been under way
    assert pod.alive()
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_what_a_job_left_on_the_card_is_named_and_the_card_taken_out(run, world, card):
    pod = lives.listening(run, world, **card.options(INIT_GPU_WATCH="1h", RUNNER_EPHEMERAL="no"))
    card.shows("left-over.xml")
    world.job(name="one", seconds=0.05)
    lives.ended(pod, world, 80)
    assert "64211 MiB in use on an idle card" in pod.text


def test_the_receipt_names_what_still_holds_the_card(run, world, card):
    pod = lives.listening(run, world, **card.options())
    card.shows("left-over.xml")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    line = lives.receipt(pod)
    assert "deregistered: 20" in line and "not clean" in line and "41123" in line and "python <train>" in line


def test_a_tool_that_hangs_does_not_hold_the_end(run, world, card):
    pod = lives.listening(run, world, **card.options(INIT_STOP_TIMEOUT="9s"))
    card.mark("hang")
    pod.signal("TERM")
    lives.ended(pod, world, 0, timeout=20)
    lives.deregistered(pod)
