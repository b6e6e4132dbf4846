# Tier deep, the image: what the jobs import is there, and its versions are told. Needs no GPU itself.
def _version(module, distribution):
    return getattr(module, "__version__", None) or version_of(distribution) or "of no known version"


def torch_build():
    return expect_cuda_build()


def tilelang():
    import tilelang

    return "tilelang %s" % _version(tilelang, "tilelang")


def flashinfer():
    import shutil
    from pathlib import Path

    import flashinfer
    import flashinfer_cubin

    # a folder of the depth at which flashinfer itself writes; nothing that was there is touched
    folder = Path(flashinfer_cubin.get_cubin_dir()) / "flashinfer" / "trtllm" / "gemm" / ("init-selftest-%d" % os.getpid())
    made = folder
    while not made.parent.exists():
        made = made.parent
    try:
        folder.mkdir(parents=True)
        (folder / "probe").write_text("ok")
        if (folder / "probe").read_text() != "ok":
            raise Verdict("fail", "%s does not keep what is written" % folder)
    except OSError as e:
        raise Verdict("fail", "flashinfer %s: %s: %s" % (_version(flashinfer, "flashinfer-python"), folder, e.strerror))
    finally:
        shutil.rmtree(made, ignore_errors=True)
    if made.exists():
        raise Verdict("fail", "%s was written and cannot be removed" % made)
    return "flashinfer %s, cubin directory can be written" % _version(flashinfer, "flashinfer-python")


def mamba():
    import importlib

    import mamba_ssm
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    importlib.import_module("selective_scan_cuda")  # that it loads is the check
    if mamba_chunk_scan_combined is None:
        raise Verdict("fail", "mamba_chunk_scan_combined is None")
    return "mamba_ssm %s with selective_scan_cuda" % _version(mamba_ssm, "mamba-ssm")


def deep_gemm():
    import deep_gemm

    return "deep_gemm %s" % _version(deep_gemm, "deep-gemm")


run(
    {
        "image.torch": torch_build,
        "image.tilelang": tilelang,
        "image.flashinfer": flashinfer,
        "image.mamba": mamba,
        "image.deep_gemm": deep_gemm,
    }
)
