"""Tier deep through a libcuda of our own, and the deep tier with everything in it hanging. The real thing is in tests/data/h200."""
import os

import pytest

import node as nodes

CUDA = "gpu.context,gpu.pattern,gpu.copy"


@pytest.fixture
def card(node):
    os.symlink(nodes.LIBCUDA, node.tmp + "/fake.so")
    os.unlink(node.lib + "/libcuda.so.1")
    os.unlink(node.lib + "/libcuda.so." + nodes.DRIVER)
    import shutil
    shutil.copy(nodes.LIBCUDA, node.lib + "/libcuda.so." + nodes.DRIVER)
    os.symlink("libcuda.so." + nodes.DRIVER, node.lib + "/libcuda.so.1")
    return node


def is_(found, check, result, action, *words):
    c = found[check]
    assert (c["result"], c["action"]) == (result, action), c
    for w in words:
        assert w in c["detail"] + " -> " + c["remedy"], c


def test_a_healthy_card(card):
    found = card.selftest("deep", only=CUDA, INIT_FLOOR_COPY_GBS="0.01")
    is_(found, "gpu.context", "pass", "none", "Fake H200")
    is_(found, "gpu.pattern", "pass", "none", "128 MiB")
    is_(found, "gpu.copy", "pass", "none", "GB/s to it")


@pytest.mark.parametrize("mode,action,words", [
    ("init=802", "restart_container", ("error 802", "fabric is not ready", "nvidia-fabricmanager")),  # 73
    ("init=804", "none", ("error 804", "compat", "newer driver")),  # 74
    ("init=999", "restart_container", ("error 999", "/dev/nvidia-uvm")),  # 75
    ("init=803", "restart_container", ("error 803", "do not match")),
    ("context=46", "restart_container", ("card 0", "error 46")),
    ("context=214", "reset_gpu", ("card 0", "error 214")),
    ("init=12345", "reboot", ("error 12345",)),
    ("none", "restart_container", ("sees no device",))])
def test_what_cuda_says(card, mode, action, words):
    found = card.selftest("deep", only=CUDA, FAKE_CUDA=mode)
    is_(found, "gpu.context", "fail", action, *words)
    is_(found, "gpu.copy", "unknown", "none", "gpu.context failed")


def test_memory_that_does_not_keep_what_was_written(card):
    found = card.selftest("deep", only=CUDA, FAKE_CUDA="flip", INIT_FLOOR_COPY_GBS="0.01")
    is_(found, "gpu.context", "pass", "none")
    is_(found, "gpu.pattern", "fail", "replace", "not what was read")


def test_copies_below_the_floor(card):
    is_(card.selftest("deep", only="gpu.copy", FAKE_CUDA="slow", INIT_FLOOR_COPY_GBS="5"), "gpu.copy", "fail", "replace", "the floor is 5.0")
    is_(card.selftest("deep", only="gpu.copy", FAKE_CUDA="slow", INIT_FLOOR_COPY_GBS="0"), "gpu.copy", "pass", "none")


def test_a_driver_that_aborts_the_process(card):
    found = card.selftest("deep", only=CUDA, FAKE_CUDA="abort")
    for check in CUDA.split(","):
        is_(found, check, "fail", found[check]["action"], "signal 6")


def test_no_libcuda(node):
    is_(node.selftest("deep", only="gpu.context"), "gpu.context", "fail", "restart_container", "libcuda.so.1 cannot be loaded")


def test_without_torch_its_checks_are_skipped_and_say_so(node):
    found = node.selftest("deep", only="gpu.cublas,gpu.gemm,gpu.triton,gpu.tilelang,gpu.nccl", PYTHONPATH=node.tmp + "/none")
    for check in ("gpu.cublas", "gpu.gemm", "gpu.triton", "gpu.tilelang", "gpu.nccl"):
        is_(found, check, "skip", "none", "torch does not import")


def test_a_torch_without_cards(node):
    nodes.write(node.tmp + "/site/torch.py", "__version__ = '2.10.0+cpu'\nclass cuda:\n    is_available = staticmethod(lambda: False)\n"
                "def _bad(*a, **k):\n    raise RuntimeError('no card was asked for')\nGenerator = _bad\n")
    found = node.selftest("deep", only="gpu.gemm", PYTHONPATH=node.tmp + "/site")
    is_(found, "gpu.gemm", "fail", "restart_container", "2.10.0+cpu sees no card")


def test_deep_holds_fast_and_build_does_not(node):
    argv = [nodes.INIT, "--selftest=deep", "--json", "--skip", "net.api"]
    import json
    report = json.loads(node.run(*argv, PYTHONPATH=node.tmp + "/none").stdout)
    tiers = {c["tier"] for c in report["checks"]}
    assert tiers == {"fast", "deep"}


def test_84_everything_in_the_deep_tier_hangs_and_it_still_ends_in_time(card):
    for name in ("torch", "tilelang", "flashinfer", "mamba_ssm", "deep_gemm"):
        nodes.write(card.tmp + "/site/%s.py" % name, "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)\n")
    card.order.update(open="hang", hang_statfs=True)
    card.smi(body="trap '' TERM; while :; do sleep 60; done")
    card.runner(body="trap '' TERM; while :; do sleep 60; done")
    found = card.selftest("deep", PYTHONPATH=card.tmp + "/site", FAKE_CUDA="hang")
    assert found[""]["duration_ms"] <= 61000  # budget and a second
    is_(found, "gpu.nodes", "fail", "reboot")
    is_(found, "gpu.context", "fail", "reboot", "no answer in")
    is_(found, "gpu.pattern", "unknown", "none", "gpu.context used up the time")
    is_(found, "image.torch", "fail", "none", "no answer in")
    is_(found, "image.mamba", "unknown", "none")
    assert found["gpu.cublas"]["result"] == "unknown"


def test_the_tool_is_asked_before_the_card_is_loaded(card):
    """The report must not show our own process as one that an earlier job left behind."""
    card.smi(body="date +%%s%%N >%s/asked; sleep 1; cat %s/healthy.xml" % (card.tmp, nodes.DATA))
    card.script("python-of-ours", "#!/bin/sh\n[ -e %s/cuda ] || date +%%s%%N >%s/cuda\nexec /usr/bin/python3 \"$@\"\n" % (card.tmp, card.tmp))
    card.selftest("deep", only="gpu.smi,gpu.context", INIT_PYTHON=card.bin + "/python-of-ours")
    assert int(open(card.tmp + "/cuda").read()) - int(open(card.tmp + "/asked").read()) >= 1_000_000_000


def test_the_scratch_directory_of_compiled_kernels_is_gone_afterwards(card):
    card.script("python-of-ours", "#!/bin/sh\necho $TRITON_CACHE_DIR >%s/scratch\nmkdir -p $TRITON_CACHE_DIR/a/b && echo x >$TRITON_CACHE_DIR/a/b/c\n"
                "exec /usr/bin/python3 \"$@\"\n" % card.tmp)
    card.selftest("deep", only="gpu.context", INIT_PYTHON=card.bin + "/python-of-ours", TRITON_CACHE_DIR=card.cache)
    scratch = open(card.tmp + "/scratch").read().strip()
    assert scratch.startswith("/tmp/init-selftest.") and not os.path.exists(scratch)
    assert os.listdir(card.cache) == []
