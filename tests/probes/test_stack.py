"""Tier build with a real python3 and packages that are a few lines and a dist-info each: every verdict it can give."""
import os

import pytest

PINS = {"torch": "2.10.0", "torchvision": "0.25.0", "torchaudio": "2.10.0", "triton": "3.6.0", "apache-tvm-ffi": "0.1.11", "numpy": "2.2.6",
        "ml_dtypes": "0.5.4", "typing_extensions": "4.15.0"}
BASELINES = ["flash-attn", "flash_attn_3", "flash-linear-attention", "vllm", "mamba-ssm", "deep-gemm", "flashinfer-python", "flashinfer-cubin"]


class Site:
    """A site-packages of its own, first on the path."""

    def __init__(self, node):
        self.path = node.tmp + "/site"
        self.node = node
        node.env["PYTHONPATH"] = self.path
        for name, version in PINS.items():
            self.dist(name, version + ("+cu129" if name in ("torch", "torchvision", "torchaudio") else ""))
        self.dist("tilelang", "0.1.7", ["apache-tvm-ffi<0.2,>=0.1.6", "numpy>=1.23.5", 'pytest; extra == "test"'])
        for name in BASELINES:
            self.dist(name, "1.0")
        self.module("torch/__init__.py", "from . import version\n__version__ = '2.10.0+cu129'\n")
        self.module("torch/version.py", "cuda = '12.9'\n")
        self.module("tilelang.py", "import torch\n__version__ = '0.1.7'\n")
        self.pins(PINS)

    def dist(self, name, version, requires=()):
        folder = "%s/%s-%s.dist-info" % (self.path, name.replace("-", "_"), version)
        for other in os.listdir(self.path) if os.path.isdir(self.path) else []:
            if other.lower().startswith(name.replace("-", "_").lower() + "-") and other.endswith(".dist-info"):
                os.rename("%s/%s" % (self.path, other), folder)
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/METADATA", "w") as f:
            f.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
            for r in requires:
                f.write("Requires-Dist: %s\n" % r)

    def remove(self, name):
        for other in os.listdir(self.path):
            if other.startswith(name.replace("-", "_") + "-"):
                os.unlink("%s/%s/METADATA" % (self.path, other))
                os.rmdir("%s/%s" % (self.path, other))

    def module(self, name, text):
        path = "%s/%s" % (self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def pins(self, pins, more=""):
        path = self.node.tmp + "/constraints.txt"
        with open(path, "w") as f:
            f.write("# what the image is built from\n\n" + "".join("%s==%s\n" % p for p in pins.items()) + more)
        self.node.env["INIT_CONSTRAINTS"] = path


@pytest.fixture
def site(node):
    node.order.update(nodes=[], proc_gpus=[], files={}, pci=[])  # a build machine
    node.env.pop("NVIDIA_VISIBLE_DEVICES")
    return Site(node)


def build(site, **env):
    return site.node.selftest("build", **env)


def is_(found, check, result, *words):
    c = found[check]
    assert c["result"] == result, c
    for w in words:
        assert w in c["detail"] + " -> " + c["remedy"], c
    return c


def test_the_stack_as_pinned_passes_without_a_gpu(site):
    found = build(site)
    assert found[""]["result"] == "pass", found[""]
    is_(found, "stack.tilelang", "pass", "0.1.7")
    is_(found, "stack.tvm_ffi", "pass", "0.1.11 is inside <0.2,>=0.1.6")
    is_(found, "stack.cuda", "pass", "torch 2.10.0+cu129", "CUDA 12.9")
    is_(found, "stack.pins", "pass", "8 pins")
    is_(found, "stack.baselines", "pass", "vllm 1.0", "absent: none")


def test_an_import_that_aborts_is_a_result_and_the_rest_still_runs(site):
    site.module("tilelang.py", "import sys, os\nprint('FFI: wrong ABI', file=sys.stderr)\nsys.stderr.flush()\nos.abort()\n")
    found = build(site)
    is_(found, "stack.tilelang", "fail", "signal 6", "FFI: wrong ABI")
    is_(found, "stack.tvm_ffi", "pass")
    is_(found, "stack.pins", "pass")


@pytest.mark.parametrize("body,words", [("raise ImportError('libz3.so: cannot open')", "ImportError: libz3.so: cannot open"),
                                        ("import sys; sys.exit(3)", "SystemExit: 3"), ("1/0", "ZeroDivisionError"),
                                        ("raise ValueError('caf\\xe9 \\ud800 \\x1b[31m\\n\\ttwo')", "ValueError: caf")])
def test_an_import_that_fails(site, body, words):
    site.module("tilelang.py", body + "\n")
    is_(build(site), "stack.tilelang", "fail", words)


def test_a_package_that_prints_and_closes_its_output(site):
    site.module("tilelang.py", "import os\nprint('found\\tstack.pins\\tfail\\t0\\tnone\\tforged\\t')\nos.close(1)\n__version__ = '0.1.7'\n")
    found = build(site)
    is_(found, "stack.tilelang", "pass")
    is_(found, "stack.pins", "pass")


@pytest.mark.parametrize("version,result", [("0.1.6", "pass"), ("0.1.5", "fail"), ("0.2", "fail"), ("0.2.0rc1", "pass"), ("0.2.0.dev3", "pass"),
                                            ("0.1.6.post2", "pass"), ("0.1.6rc1", "fail")])
def test_apache_tvm_ffi_against_the_range_of_tilelang(site, version, result):
    # 0.2.0rc1 comes before 0.2 in PEP 440's order, and the order is all that is asked
    site.dist("apache-tvm-ffi", version)
    is_(build(site, only="stack.tvm_ffi"), "stack.tvm_ffi", result, version)


def test_apache_tvm_ffi_that_is_not_there_or_not_mentioned(site):
    site.remove("apache-tvm-ffi")
    is_(build(site), "stack.tvm_ffi", "fail", "not installed")
    site.dist("apache-tvm-ffi", "0.1.11")
    site.dist("tilelang", "0.1.7", [])
    is_(build(site), "stack.tvm_ffi", "unknown", "does not mention")


def test_torch_swapped_for_another_cuda_build(site):
    site.module("torch/version.py", "cuda = '13.0'\n")
    site.dist("torch", "2.11.0+cu130")
    found = build(site)
    is_(found, "stack.cuda", "fail", "torch.version.cuda is 13.0, expected 12.9", "torch is 2.11.0+cu130, expected +cu129")
    is_(found, "stack.pins", "fail", "torch is 2.11.0+cu130, pinned ==2.10.0")


def test_a_companion_from_another_index(site):
    site.dist("torchvision", "0.25.0")
    is_(build(site), "stack.cuda", "fail", "torchvision is 0.25.0, expected +cu129")


def test_a_cu132_image_needs_settings_and_no_other_init(site):
    site.module("torch/version.py", "cuda = '13.2'\n")
    for name, version in (("torch", "2.13.0"), ("torchvision", "0.28.0"), ("torchaudio", "2.13.0")):
        site.dist(name, version + "+cu132")
    found = build(site, INIT_EXPECT_CUDA="13.2", INIT_EXPECT_SUFFIX="cu132", only="stack.cuda")
    is_(found, "stack.cuda", "pass", "+cu132", "CUDA 13.2")


def test_wheels_without_a_local_version_need_any(site):
    for name in ("torch", "torchvision", "torchaudio"):
        site.dist(name, PINS[name])
    is_(build(site, only="stack.cuda"), "stack.cuda", "fail", "expected +cu129")
    is_(build(site, only="stack.cuda", INIT_EXPECT_SUFFIX="any"), "stack.cuda", "pass")
    site.module("torch/version.py", "cuda = '13.0'\n")
    is_(build(site, only="stack.cuda", INIT_EXPECT_SUFFIX="any"), "stack.cuda", "fail", "13.0")
    is_(build(site, only="stack.cuda", INIT_EXPECT_SUFFIX="any", INIT_EXPECT_CUDA="any"), "stack.cuda", "pass")


def test_a_pin_that_is_missing_or_moved(site):
    site.remove("numpy")
    site.dist("ml_dtypes", "0.5.3")
    is_(build(site), "stack.pins", "fail", "numpy is not installed, pinned ==2.2.6", "ml-dtypes is 0.5.3, pinned ==0.5.4")


@pytest.mark.parametrize("line,result", [("numpy<2.3", "pass"), ("numpy>=2.2,!=2.2.6", "fail"), ("numpy~=2.2.0", "pass"), ("numpy~=2.1.0", "fail"),
                                         ("NumPy==2.2.*", "pass"), ("numpy==2.1.*", "fail"), ("numpy === 2.2.6", "pass"),
                                         ("numpy==2.2.6.0 # trailing", "pass"), ("numpy>2.2.6", "fail"), ("torch==2.10.0+cu129", "pass"),
                                         ("torch==2.10.0+cu130", "fail"), ("no-such-package", "pass"), ("-c other.txt", "pass")])
def test_forms_of_pins(site, line, result):
    site.pins({"triton": "3.6.0"}, line + "\n")
    is_(build(site, only="stack.pins"), "stack.pins", result)


def test_a_constraints_file_that_is_not_there_or_empty(site):
    site.node.env["INIT_CONSTRAINTS"] = "/nonexistent/constraints.txt"
    is_(build(site), "stack.pins", "fail", "/nonexistent/constraints.txt", "INIT_CONSTRAINTS")
    site.pins({})
    is_(build(site), "stack.pins", "fail", "pins nothing")


def test_an_absent_baseline_warns(site):
    site.remove("vllm")
    site.remove("flash_attn_3")
    found = build(site)
    is_(found, "stack.baselines", "warn", "absent: flash-attn-3, vllm", "deep-gemm 1.0")
    assert found[""]["result"] == "warn"


def test_no_python_at_all(site):
    found = build(site, INIT_PYTHON="/nonexistent/python")
    for check in ("stack.tilelang", "stack.tvm_ffi", "stack.cuda", "stack.pins", "stack.baselines"):
        is_(found, check, "fail", "/nonexistent/python cannot be run")


# ---- tier deep, the part that needs no GPU ----

@pytest.fixture
def image(site):
    cubins = site.node.tmp + "/cubins"
    os.makedirs(cubins)
    site.module("flashinfer.py", "__version__ = '0.6.11.post2'\n")
    site.module("flashinfer_cubin.py", "def get_cubin_dir():\n    return %r\n" % cubins)
    site.module("mamba_ssm/__init__.py", "__version__ = '2.3.1'\n")
    site.module("mamba_ssm/ops/__init__.py", "")
    site.module("mamba_ssm/ops/triton/__init__.py", "")
    site.module("mamba_ssm/ops/triton/ssd_combined.py", "def mamba_chunk_scan_combined():\n    pass\n")
    site.module("selective_scan_cuda.py", "")
    site.module("deep_gemm.py", "")
    site.cubins = cubins
    return site


IMAGE = "image.torch,image.tilelang,image.flashinfer,image.mamba,image.deep_gemm"


def test_the_image_passes_and_says_its_versions(image):
    found = image.node.selftest("deep", only=IMAGE)
    is_(found, "image.torch", "pass", "torch 2.10.0+cu129")
    is_(found, "image.tilelang", "pass", "tilelang 0.1.7")
    is_(found, "image.flashinfer", "pass", "0.6.11.post2")
    is_(found, "image.mamba", "pass", "2.3.1")
    is_(found, "image.deep_gemm", "pass", "deep_gemm 1.0")
    assert os.listdir(image.cubins) == []  # written and cleaned


def test_a_cubin_directory_with_things_in_it_keeps_them(image):
    os.makedirs(image.cubins + "/flashinfer/trtllm")
    open(image.cubins + "/flashinfer/trtllm/kept", "w").close()
    is_(image.node.selftest("deep", only=IMAGE), "image.flashinfer", "pass")
    assert os.listdir(image.cubins + "/flashinfer/trtllm") == ["kept"]


def test_a_cubin_directory_that_cannot_be_written(image):
    image.module("flashinfer_cubin.py", "def get_cubin_dir():\n    return '/proc/cubins'\n")
    is_(image.node.selftest("deep", only=IMAGE), "image.flashinfer", "fail", "/proc/cubins")


def test_mamba_without_its_extension(image):
    os.unlink(image.path + "/selective_scan_cuda.py")
    found = image.node.selftest("deep", only=IMAGE)
    is_(found, "image.mamba", "fail", "selective_scan_cuda", "MAMBA_FORCE_BUILD")
    is_(found, "image.deep_gemm", "pass")


def test_mamba_whose_scan_is_none(image):
    image.module("mamba_ssm/ops/triton/ssd_combined.py", "mamba_chunk_scan_combined = None\n")
    is_(image.node.selftest("deep", only=IMAGE), "image.mamba", "fail", "None")


def test_two_imports_that_abort_are_both_named(image):
    image.module("tilelang.py", "import os\nos.abort()\n")
    image.module("deep_gemm.py", "import os\nos.abort()\n")
    found = image.node.selftest("deep", only=IMAGE)
    is_(found, "image.tilelang", "fail", "signal 6")
    is_(found, "image.deep_gemm", "fail", "signal 6")
    is_(found, "image.mamba", "pass")
