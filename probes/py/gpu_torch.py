# Tier deep, each card through torch: right numbers, speed, kernels compiled here and now, all-reduce.
import importlib.util

ids = ("gpu.cublas", "gpu.gemm", "gpu.triton", "gpu.tilelang", "gpu.nccl")

try:
    import torch
except BaseException as e:
    for i in ids:
        found(i, "skip", "torch does not import (image.torch): %s: %s" % (type(e).__name__, e))
    raise SystemExit(0)


def cards():
    if not torch.cuda.is_available():
        raise Verdict("fail", "torch %s sees no card" % torch.__version__, "restart_container", "look at gpu.context, and whether torch is a CUDA build (image.torch)")
    return [torch.device("cuda", i) for i in range(torch.cuda.device_count())]


def near(what, got, want):
    """got (fp16, on a card) against want (float64, on the CPU)."""
    got = got.double().cpu()
    if not bool(got.isfinite().all()):
        raise Verdict("fail", "%s is not finite" % what)
    # half a unit in the last place of the largest sums, and what split sums in fp16 may add
    off = (got - want).abs() - 0.01 * want.abs()
    worst = float(off.max())
    if worst > 0.25:
        raise Verdict("fail", "%s is wrong: off by %.3g where %.3g was due" % (what, worst, float(want.flatten()[off.argmax()])))


def cublas():
    gen = torch.Generator().manual_seed(20260701)
    a = torch.randn(512, 512, generator=gen).half()
    b = torch.randn(512, 512, generator=gen).half()
    ab = torch.randn(8, 128, 128, generator=gen).half()
    ab2 = torch.randn(8, 128, 128, generator=gen).half()
    want = (a.double() @ b.double(), torch.bmm(ab.double(), ab2.double()))
    for dev in cards():
        name = "card %d " % dev.index
        x, y = ab.to(dev), ab2.to(dev)
        near(name + "matmul", torch.matmul(a.to(dev), b.to(dev)), want[0])
        near(name + "bmm", torch.bmm(x, y), want[1])
        near(name + "einsum", torch.einsum("bik,bkj->bij", x, y), want[1])
    return "matmul, bmm and einsum agree with float64 on %d card(s)" % len(cards())


def gemm():
    asked = float(setting("FLOOR_TFLOPS") or -1)
    seen, slow = [], False
    for dev in cards():
        props = torch.cuda.get_device_properties(dev)
        n = 8192 if torch.cuda.mem_get_info(dev)[0] > (4 << 30) else 2048
        a = torch.randn(n, n, device=dev, dtype=torch.float16)
        b = torch.randn(n, n, device=dev, dtype=torch.float16)
        for _ in range(3):
            torch.matmul(a, b)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        rounds = 20
        with torch.cuda.device(dev):
            torch.cuda.synchronize()
            start.record()
            for _ in range(rounds):
                torch.matmul(a, b)
            end.record()
            torch.cuda.synchronize()
        rate = 2.0 * n**3 * rounds / (start.elapsed_time(end) / 1000) / 1e12
        floor = asked
        if floor < 0:  # about half of what a healthy whole card does; slices of one have no floor
            whole = props.multi_processor_count >= 100
            floor = {9: 300.0, 8: 100.0}.get(props.major, 0.0) if whole else 0.0
        seen.append("card %d %.0f TFLOPS%s" % (dev.index, rate, " (floor %.0f)" % floor if floor else ""))
        slow = slow or rate < floor
        del a, b
    if slow:
        raise Verdict("fail", "; ".join(seen))
    return "; ".join(seen)


def from_file(name, source):
    """Compilers of kernels read their source from a file: a script given by -c has none."""
    path = os.path.join(os.environ["TRITON_CACHE_DIR"], name + ".py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRITON = """
import triton
import triton.language as tl


@triton.jit
def axpy(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    tl.store(out + i, 2.0 * tl.load(x + i, mask=keep) + tl.load(y + i, mask=keep), mask=keep)
"""

TILELANG = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def add(rows, columns, block, threads=128):
    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "float32"),
        B: T.Tensor((rows, columns), "float32"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(columns, block), T.ceildiv(rows, block), threads=threads) as (bx, by):
            for y, x in T.Parallel(block, block):
                C[by * block + y, bx * block + x] = A[by * block + y, bx * block + x] + B[by * block + y, bx * block + x]

    return main
"""


def triton():
    if importlib.util.find_spec("triton") is None:
        raise Verdict("fail", "triton is not installed")
    module = from_file("init_probe_triton", TRITON)
    for dev in cards():
        n = 100003
        with torch.cuda.device(dev):
            x, y = torch.randn(n, device=dev), torch.randn(n, device=dev)
            out = torch.empty_like(x)
            module.axpy[((n + 1023) // 1024,)](x, y, out, n, BLOCK=1024)
            if not torch.allclose(out, 2.0 * x + y):
                raise Verdict("fail", "card %d: the kernel's numbers are wrong" % dev.index, "replace", "drain the node and look at the card")
    import triton as t

    return "triton %s" % t.__version__


def tilelang():
    if importlib.util.find_spec("tilelang") is None:
        raise Verdict("fail", "tilelang is not installed")
    module = from_file("init_probe_tilelang", TILELANG)
    dev = cards()[0]
    a, b = torch.randn(256, 512, device=dev), torch.randn(256, 512, device=dev)
    c = module.add(256, 512, 64)(a, b)
    if not torch.allclose(c, a + b):
        raise Verdict("fail", "card 0: the kernel's numbers are wrong", "replace", "drain the node and look at the card")
    import tilelang as t

    return "tilelang %s" % getattr(t, "__version__", "?")


def nccl():
    devs = cards()
    if len(devs) < 2:
        raise Verdict("skip", "one card: nothing to reduce over")
    import torch.cuda.nccl as n

    parts = [torch.full((1 << 22,), float(i + 1), device=d) for i, d in enumerate(devs)]
    n.all_reduce(parts)
    due = len(devs) * (len(devs) + 1) / 2
    for p in parts:
        torch.cuda.synchronize(p.device)
        if not bool((p == due).all()):
            raise Verdict("fail", "card %d got a wrong sum" % p.device.index)
    return "all-reduce over %d cards, NCCL %s" % (len(devs), ".".join(map(str, n.version())))


run({"gpu.cublas": cublas, "gpu.gemm": gemm, "gpu.triton": triton, "gpu.tilelang": tilelang, "gpu.nccl": nccl})
