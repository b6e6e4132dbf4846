"""The gate, the watch while idle, and the look at the card at the end; through the functions that init/ calls."""
import os
import time

import node as nodes


def test_a_healthy_node_passes_with_labels_and_setup_info(node):
    v = node.verdict("gate", "fast", INIT_IMAGE="cu129-torch2.10-tl-65dbc98")
    assert (v["code"], v["gpu_ok"], v["gpu_seen"], v["fail"]) == (0, 1, 1, 0)
    assert v["labels"] == ["h200", "sm_90", "vram-141g", "driver-580", "cuda-13.0", "gpus-1"]
    import json
    info = json.loads(v["setup_info"])
    assert [i["group"] for i in info] == ["GPU", "Runner image", "Self-test"]
    assert info[0]["detail"] == "1 x NVIDIA H200, 143771 MiB\nDriver: 580.159.04\nCUDA of the driver: 13.0"
    assert info[1]["detail"] == "cu129-torch2.10-tl-65dbc98"
    assert v["stderr"] == ""  # nothing failed: no table


def test_a_mig_instance_is_a_label(node):
    node.smi("mig.xml")
    assert "mig-1g.18gb" in node.verdict("gate", "fast")["labels"]


def test_a_capability_that_is_not_readable_gives_no_label(node):
    node.smi("healthy.xml", capability="'[N/A]'")
    assert not [x for x in node.verdict("gate", "fast")["labels"] if x.startswith("sm")]


def test_81_82_a_sick_card_ends_the_gate_with_80_and_the_table(node):
    node.smi("ecc.xml")
    v = node.verdict("gate", "fast")
    assert (v["code"], v["gpu_ok"]) == (80, 0)
    assert "gpu.recovery" in v["summary"] and "[reset_gpu]" in v["summary"] and "and other checks" in v["summary"]
    assert "fail    gpu.ecc" in v["stderr"] and "-> " in v["stderr"]


def test_the_class_of_the_worst_check_counts(node):
    os.rmdir(node.cache)
    node.smi("ecc.xml")
    assert node.verdict("gate", "fast")["code"] == 73


def test_network_trouble_only_warns_in_the_gate(node):
    v = node.verdict("gate", "fast", PROBECLI_NET="no connection")
    assert (v["code"], v["fail"]) == (0, 0)
    assert v["warn"] >= 1


def test_the_table_of_a_failed_gate_shows_network_trouble_as_the_warning_that_it_is(node):
    node.smi("ecc.xml")
    v = node.verdict("gate", "fast", PROBECLI_NET="no connection")
    line = next(x for x in v["stderr"].splitlines() if " net.api " in x)
    assert line.startswith("warn "), line


def test_a_wrong_clock_is_82(node):
    assert node.verdict("gate", "fast", PROBECLI_NET="ok -900")["code"] == 82


def test_a_stack_that_does_not_import_is_81_in_the_deep_gate(node):
    v = node.verdict("gate", "deep", PYTHONPATH=node.tmp + "/none", INIT_GPU="off")
    assert v["code"] == 81


def test_a_node_without_a_gpu_passes_where_none_is_expected(node):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])
    v = node.verdict("gate", "fast", INIT_GPU="off")
    assert (v["code"], v["gpu_seen"], v["labels"]) == (0, 0, [])


# ---- waiting ----

def test_76_the_gate_waits_for_a_gpu_that_comes_late(node):
    """The tool is not ready for its first three calls."""
    node.smi(body="n=$(cat %s/n 2>/dev/null || echo 0); echo $((n+1)) >%s/n; [ $n -ge 3 ] || { echo 'No devices were found'; exit 6; }; "
             "cat %s/healthy.xml" % (node.tmp, node.tmp, nodes.DATA))
    v = node.verdict("gate", "fast", INIT_GPU_WAIT="60s")
    assert v["code"] == 0
    assert int(open(node.tmp + "/n").read()) == 5  # three refusals, one success while waiting, one in the gate itself


def test_76_the_gate_does_not_wait_for_ever(node):
    node.smi("fabric.xml")
    start = time.monotonic()
    v = node.verdict("gate", "fast", INIT_GPU_WAIT="3s")
    assert v["code"] == 80 and "fabric" in v["summary"]
    assert 2.5 < time.monotonic() - start < 30


def test_without_a_wait_the_gate_fails_at_once(node):
    node.smi("no-devices.txt", 6)
    assert node.verdict("gate", "fast")["code"] == 80


# ---- the watch ----

def test_the_cheap_watch_does_not_call_the_tool(node):
    node.smi(body="touch %s/called; cat %s/healthy.xml" % (node.tmp, nodes.DATA))
    assert node.verdict("watch")["code"] == 0
    assert not os.path.exists(node.tmp + "/called")
    assert node.verdict("watch", "heavy")["code"] == 0
    assert os.path.exists(node.tmp + "/called")


def test_the_cheap_watch_sees_lost_devices(node):
    node.order["open"] = "EPERM"
    v = node.verdict("watch")
    assert (v["code"], v["gpu_ok"]) == (80, 0)
    assert "[restart_container]" in v["summary"]


def test_the_heavy_watch_sees_a_card_that_fell_ill(node):
    node.smi("lost.txt", 15)
    assert node.verdict("watch")["code"] == 0
    v = node.verdict("watch", "heavy")
    assert v["code"] == 80 and "[reboot]" in v["summary"]


# ---- the end ----

def test_a_clean_card(node):
    v = node.verdict("clean")
    assert v["code"] == 0
    assert v["summary"].startswith("the GPU is clean: 00000000:01:00.0: 0 of 143771 MiB used")


def test_83_memory_that_is_still_in_use_is_named(node):
    node.smi("left-over.xml")
    v = node.verdict("clean")
    assert v["code"] == 80
    for words in ("not clean", "41123", "python <train>", "64211 MiB"):
        assert words in v["summary"], v


def test_83_a_process_that_holds_the_device_is_named(node, tmp_path):
    """A shell keeps /dev/nvidia0 open (in these namespaces) while the card is looked at."""
    script = "exec 9</dev/nvidia0; %s clean" % nodes.CLI
    # the nodes are /dev/null in truth, and /proc shows what was opened: the path in this mount namespace
    p = node.run("/bin/sh", "-c", script)
    text = p.stdout.decode()
    assert "code 80" in text, (text, p.stderr)
    assert "held by sh (pid " in text


def test_no_gpu_is_clean(node):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])
    v = node.verdict("clean", INIT_GPU="off")
    assert (v["code"], v["summary"]) == (0, "no GPU")
