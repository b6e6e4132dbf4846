"""Tier fast on a fake node: one thing broken, and what an operator is told. The numbers are those of the symptoms in the issue tracker's
collection of field reports (71 to 85)."""
import re
import time

import pytest

GPU_CHECKS = ["gpu.nodes", "gpu.driver", "gpu.count", "gpu.smi", "gpu.recovery", "gpu.ecc", "gpu.remap", "gpu.fabric", "gpu.throttle",
              "gpu.mig", "gpu.memory", "gpu.processes", "gpu.cuda"]


def expect(found, check, result, action, *words):
    c = found[check]
    assert (c["result"], c["action"]) == (result, action), c
    for word in words:
        assert word in c["detail"] + " -> " + c["remedy"], c
    if result in ("warn", "fail"):
        assert c["remedy"], c
    return c


def test_a_healthy_h200_passes_every_gpu_check(node):
    found = node.selftest(CUDA_VERSION="12.9.1")
    for check in GPU_CHECKS:
        expect(found, check, "pass", "none")
    assert "1 x NVIDIA H200, driver 580.159.04, CUDA 13.0" in found["gpu.smi"]["detail"]
    assert found[""]["result"] in ("pass", "warn")


def test_two_healthy_cards_pass(pair):
    found = pair.selftest()
    for check in GPU_CHECKS[:-1]:
        expect(found, check, "pass", "none")
    assert "2 x NVIDIA H200" in found["gpu.smi"]["detail"]


def test_a_virtual_machine_without_fabric_fields_passes(node):
    node.smi("virtual.xml")
    expect(node.selftest(), "gpu.fabric", "pass", "none", "no fabric")


# ---- 71, 85: the cgroup lost the devices, which missing /dev/char links cause ----

def test_71_85_devices_that_the_cgroup_has_lost(node):
    node.order["open"] = "EPERM"
    node.smi("nvml-unknown.txt", 255)
    found = node.selftest()
    expect(found, "gpu.nodes", "fail", "restart_container", "cgroup has lost the device", "daemon-reload", "create-dev-char-symlinks")
    expect(found, "gpu.smi", "fail", "restart_container", "cgroup has lost", "create-dev-char-symlinks")
    expect(found, "gpu.ecc", "unknown", "none", "gpu.smi")


# ---- 72: another driver version ----

@pytest.mark.parametrize("library,action,words", [("575.57.08", "restart_container", "upgraded under this container"),
                                                  ("590.44.01", "reboot", "still the old module")])
def test_72_kernel_module_and_library_differ(node, library, action, words):
    node.libraries(library)
    node.smi("mismatch.txt", 255)
    found = node.selftest()
    expect(found, "gpu.driver", "fail", action, "Driver/library version mismatch", "580.159.04", library, words)
    expect(found, "gpu.smi", "fail", "restart_container", "Driver/library version mismatch")


def test_72_the_version_is_found_through_ld_so_conf(node):
    node.env.pop("LD_LIBRARY_PATH")
    node.libraries("575.57.08")
    node.order["files"]["/etc/ld.so.conf"] = "# loader\n%s\ninclude /etc/ld.so.conf.d/*.conf\n" % node.lib
    expect(node.selftest(only="gpu.driver"), "gpu.driver", "fail", "restart_container", "575.57.08")


def test_libraries_that_are_not_mounted(node):
    node.libraries("580.159.04")
    import os
    for f in os.listdir(node.lib):
        os.unlink(node.lib + "/" + f)
    expect(node.selftest(only="gpu.driver"), "gpu.driver", "fail", "restart_container", "not mounted", "NVIDIA_DRIVER_CAPABILITIES")


# ---- 73: fabric ----

def test_73_a_fabric_that_is_not_ready(node):
    node.smi("fabric.xml")
    expect(node.selftest(), "gpu.fabric", "fail", "restart_container", "fabric not ready: In Progress", "nvidia-fabricmanager", "802")


def test_73_a_fabric_that_failed(node):
    node.smi("fabric-failed.xml")
    expect(node.selftest(), "gpu.fabric", "fail", "reset_gpu", "Failure")


# ---- 74: forward compatibility ----

def test_74_a_compat_library_on_a_card_that_does_not_support_it(node):
    import os
    compat = node.tmp + "/cuda/compat"
    os.makedirs(compat)
    open(compat + "/libcuda.so.575.57.08", "w").close()
    os.symlink("libcuda.so.575.57.08", compat + "/libcuda.so.1")
    node.env["LD_LIBRARY_PATH"] = compat + ":" + node.lib
    node.smi("geforce.xml")
    found = node.selftest(CUDA_VERSION="13.2.1")
    expect(found, "gpu.cuda", "fail", "none", "804", "compat")
    expect(found, "gpu.driver", "pass", "none")


def test_74_an_image_for_a_newer_cuda_than_the_driver_knows(node):
    node.smi("old-driver.xml")
    expect(node.selftest(CUDA_VERSION="12.9.1"), "gpu.cuda", "fail", "none", "driver does CUDA 11.4", "12.9.1")


def test_74_a_newer_minor_only_warns(node):
    node.smi("healthy.xml")
    expect(node.selftest(CUDA_VERSION="13.2.1"), "gpu.cuda", "warn", "none", "13.2.1", "PTX")


# ---- 75: uvm ----

def test_75_a_missing_uvm_node(node):
    node.order["nodes"].remove("/dev/nvidia-uvm")
    expect(node.selftest(), "gpu.nodes", "fail", "restart_container", "/dev/nvidia-uvm is missing", "999", "nvidia-modprobe")


# ---- 76, 77: no GPU where one is expected ----

def test_76_77_a_container_that_got_no_device(node):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])
    node.script("nvidia-smi", "#!/bin/sh\nexit 127\n")
    import os
    os.unlink(node.bin + "/nvidia-smi")
    found = node.selftest()
    expect(found, "gpu.nodes", "fail", "restart_container", "not injected", "--gpus all")
    expect(found, "gpu.driver", "fail", "reboot", "kernel module is not loaded", "INIT_GPU_WAIT")
    expect(found, "gpu.smi", "fail", "restart_container", "cannot be run")


def test_77_no_variable_and_no_device_means_no_gpu_unless_required(node):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])
    node.env.pop("NVIDIA_VISIBLE_DEVICES")
    found = node.selftest()
    expect(found, "gpu.nodes", "skip", "none", "INIT_GPU=required")
    found = node.selftest(INIT_GPU="required")
    expect(found, "gpu.nodes", "fail", "restart_container")


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_a_runtime_that_was_asked_for_nothing_expects_nothing(node, value):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])
    expect(node.selftest(NVIDIA_VISIBLE_DEVICES=value), "gpu.nodes", "skip", "none")


def test_a_cuda_image_on_a_cpu_host_is_told_about_init_gpu_off(node):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])
    found = node.selftest(INIT_GPU="off")
    for check in GPU_CHECKS:
        expect(found, check, "skip", "none", "INIT_GPU=off")


# ---- 78, 80: lost cards ----

def test_78_80_a_card_that_has_fallen_off_the_bus(node):
    node.order["nodes"].remove("/dev/nvidia0")
    node.order["lost"] = ["/dev/nvidia0"]  # opening it gives ENXIO
    node.smi("lost.txt", 15)
    found = node.selftest()
    expect(found, "gpu.nodes", "fail", "reboot", "/dev/nvidia0", "lost", "Xid 79")
    expect(found, "gpu.smi", "fail", "reboot", "GPU is lost", "Xid 79")


@pytest.mark.parametrize("error,action,words", [("EIO", "reboot", "lost"), ("ENODEV", "reboot", "not loaded"),
                                                ("EACCES", "restart_container", "permission denied")])
def test_what_opening_a_node_says(node, error, action, words):
    node.order["open"] = error
    expect(node.selftest(only="gpu.nodes"), "gpu.nodes", "fail", action, words)


def test_78_exit_15_without_a_known_text(node):
    node.smi(body="echo something new >&2; exit 15")
    expect(node.selftest(), "gpu.smi", "fail", "reboot", "ended with 15", "lost", "something new")


def test_80_a_lost_card_inside_a_report_that_ended_with_0(node):
    node.smi("lost-field.xml")
    expect(node.selftest(), "gpu.smi", "fail", "reboot", "does not answer", "GPU is lost")


# ---- 79: counts ----

def test_79_a_card_on_the_bus_that_the_driver_does_not_know(pair):
    pair.order["proc_gpus"].pop()
    pair.order["nodes"].remove("/dev/nvidia1")
    pair.smi("healthy.xml")
    expect(pair.selftest(), "gpu.count", "fail", "reboot", "not known to the driver", "1 nodes, 1 in /proc, 2 on PCI")


def test_79_a_node_without_its_card(pair):
    pair.order["proc_gpus"].pop()
    pair.order["pci"].pop(0)
    pair.smi("healthy.xml")
    found = pair.selftest()
    expect(found, "gpu.count", "fail", "reboot", "does not know it any more")
    expect(found, "gpu.smi", "fail", "reboot", "sees 1 of 2 cards")


def test_79_fewer_cards_than_said(node):
    found = node.selftest(INIT_EXPECT_GPUS="2")
    expect(found, "gpu.count", "fail", "reboot", "INIT_EXPECT_GPUS says 2")
    expect(found, "gpu.smi", "fail", "reboot", "INIT_EXPECT_GPUS says 2")


def test_a_container_that_asked_for_one_card_of_two_is_fine(pair):
    pair.order["nodes"].remove("/dev/nvidia1")
    pair.smi("healthy.xml")
    expect(pair.selftest(NVIDIA_VISIBLE_DEVICES="0"), "gpu.count", "pass", "none")


def test_more_cards_asked_for_than_injected(node):
    expect(node.selftest(NVIDIA_VISIBLE_DEVICES="0,1"), "gpu.count", "fail", "reboot", "asks for 2 cards")


def test_without_a_word_from_the_runtime_a_missing_card_only_warns(pair):
    pair.env.pop("NVIDIA_VISIBLE_DEVICES")
    pair.order["proc_gpus"].pop()
    pair.order["nodes"].remove("/dev/nvidia1")
    pair.smi("healthy.xml")
    expect(pair.selftest(), "gpu.count", "warn", "none", "INIT_EXPECT_GPUS")


# ---- 83: left-overs ----

def test_83_memory_and_processes_of_an_earlier_job(node):
    node.smi("left-over.xml")
    found = node.selftest()
    expect(found, "gpu.memory", "fail", "reset_gpu", "64211 MiB in use")
    expect(found, "gpu.processes", "warn", "none", "41123", "python <train>", "64200 MiB")
    expect(node.selftest(INIT_GPU_MAX_USED="0"), "gpu.memory", "pass", "none")


# ---- memory errors, throttling, MIG ----

def test_uncorrected_errors_and_the_recovery_that_the_driver_asks_for(node):
    node.smi("ecc.xml")
    found = node.selftest()
    expect(found, "gpu.ecc", "fail", "reset_gpu", "3 uncorrected errors")
    expect(found, "gpu.recovery", "fail", "reset_gpu", "asks for: Reset")


@pytest.mark.parametrize("data,action,words", [("remap-pending.xml", "reset_gpu", "pending until a reset"),
                                               ("remap-failed.xml", "replace", "row remapping failed")])
def test_row_remapping(node, data, action, words):
    node.smi(data)
    expect(node.selftest(), "gpu.remap", "fail", action, words)


def test_a_hot_card_warns_and_does_not_fail(node):
    node.smi("throttle.xml")
    found = node.selftest()
    expect(found, "gpu.throttle", "warn", "none", "hw_thermal_slowdown")
    assert found[""]["result"] == "warn"


def test_mig_with_fields_that_are_not_available(node):
    node.smi("mig.xml")
    found = node.selftest()
    expect(found, "gpu.mig", "pass", "none", "1 of 1g.18gb")
    expect(found, "gpu.ecc", "pass", "none", "no ECC counters")
    expect(found, "gpu.remap", "pass", "none", "not supported")
    expect(found, "gpu.recovery", "pass", "none", "not told")
    expect(found, "gpu.memory", "unknown", "none", "not readable")


def test_mig_without_an_instance(node):
    node.smi("mig-none.xml")
    expect(node.selftest(), "gpu.mig", "fail", "none", "no instance")


def test_an_old_driver_with_other_names_is_read_too(node):
    node.smi("old-driver.xml")
    found = node.selftest()
    expect(found, "gpu.smi", "pass", "none", "470.256.02")
    expect(found, "gpu.recovery", "pass", "none", "not told")


# ---- nvidia-smi that misbehaves ----

@pytest.mark.parametrize("code,action,words", [
    (2, "none", "query"), (3, "none", "not supported"), (4, "restart_container", "permission"), (6, "restart_container", "no device"),
    (8, "replace", "power"), (9, "reboot", "not loaded"), (10, "reboot", "interrupt"), (12, "restart_container", "libnvidia-ml"),
    (13, "restart_container", "function"), (14, "replace", "infoROM"), (15, "reboot", "lost"), (77, "reboot", "ended with 77")])
def test_exit_statuses(node, code, action, words):
    node.smi(body="exit %d" % code)
    expect(node.selftest(only="gpu.smi"), "gpu.smi", "fail", action, words)


@pytest.mark.parametrize("data,code,action,words", [("no-devices.txt", 6, "restart_container", "no device was found"),
                                                    ("no-driver.txt", 9, "reboot", "not loaded"),
                                                    ("nvml-unknown.txt", 255, "restart_container", "cgroup")])
@pytest.mark.parametrize("stream", [1, 2])
def test_texts(node, data, code, action, words, stream):
    node.smi(data, code, stream)
    expect(node.selftest(only="gpu.smi"), "gpu.smi", "fail", action, words)


def test_84_a_tool_that_hangs_and_ignores_termination(node):
    node.smi(body="trap '' TERM INT HUP; while :; do sleep 60; done")
    start = time.monotonic()
    found = node.selftest()
    assert time.monotonic() - start < 30
    assert found[""]["duration_ms"] < 6000
    expect(found, "gpu.smi", "fail", "reboot", "gave no answer")
    expect(found, "gpu.nodes", "pass", "none")
    expect(found, "gpu.ecc", "unknown", "none", "gpu.smi")


def test_a_grandchild_that_keeps_the_pipe_open(node):
    node.smi(body="cat %s/healthy.xml; (setsid sleep 600 &) ; exit 0" % __file__.replace("test_gpu.py", "data"))
    found = node.selftest()
    assert found[""]["duration_ms"] < 5000
    expect(found, "gpu.smi", "pass", "none")


def test_ten_megabytes_of_output(node):
    node.smi(body="head -c 10000000 /dev/zero | tr '\\0' x; exit 0")
    expect(node.selftest(), "gpu.smi", "fail", "reboot", "longer than 4 MiB")


def test_a_report_that_is_cut(node):
    node.smi("cut.xml")
    expect(node.selftest(), "gpu.smi", "fail", "reboot", "not the expected XML")


def test_output_that_is_not_utf8(node):
    node.smi(body="printf 'Unexpected \\377\\376\\033[31m \\302\\233 text\\n' >&2; exit 1")
    c = expect(node.selftest(), "gpu.smi", "fail", "reboot", "Unexpected ??", "text")
    assert re.fullmatch(r"[\x20-\x7e]*", c["detail"])


def test_another_locale_changes_nothing(node):
    node.smi(body="[ \"$LC_ALL\" = C ] || { echo Sprache; exit 1; }; cat %s/healthy.xml" % __file__.replace("test_gpu.py", "data"))
    expect(node.selftest(LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8"), "gpu.smi", "pass", "none")


def test_a_tool_that_crashes(node):
    node.smi(body="kill -SEGV $$")
    expect(node.selftest(), "gpu.smi", "fail", "reboot", "signal 11")


# ---- everything hangs ----

def test_84_every_child_hangs_at_once_and_the_tier_still_ends_in_time(node):
    node.order.update(open="hang", hang_statfs=True)
    node.smi(body="trap '' TERM; while :; do sleep 60; done")
    node.runner(body="trap '' TERM; while :; do sleep 60; done")
    found = node.selftest()
    assert found[""]["duration_ms"] <= 6000  # budget and a second
    for check in ("gpu.nodes", "gpu.smi", "runner.agent"):
        assert found[check]["result"] == "fail", found[check]
    expect(found, "gpu.nodes", "fail", "reboot", "no answer in time")
    assert found["sys.shm"]["result"] == "fail"


# ---- another vendor ----

def metax(node):
    node.order.update(nodes=["/dev/mxcd", "/dev/dri/renderD128"], proc_gpus=[], files={}, pci=[])
    node.env.pop("NVIDIA_VISIBLE_DEVICES")


def test_a_metax_card_is_checked_as_far_as_is_known(node):
    metax(node)
    node.script("mx-smi", "#!/bin/sh\necho mx-smi version 2.2\n")
    found = node.selftest()
    expect(found, "gpu.nodes", "pass", "none", "MetaX", "experimental")
    expect(found, "gpu.smi", "pass", "none", "experimental")
    expect(found, "gpu.ecc", "skip", "none", "MetaX")
    assert found[""]["result"] != "fail"


def test_a_metax_card_whose_tool_fails(node):
    metax(node)
    node.script("mx-smi", "#!/bin/sh\necho no device >&2; exit 3\n")
    assert node.selftest()["gpu.smi"]["result"] == "fail"
