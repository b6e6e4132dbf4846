# Tier deep, each card through the driver's own interface: context, memory, copies. No torch: this must
# tell a broken driver from a broken image, with CUDA's own error numbers.
import ctypes
import time

MIB = 1 << 20
CHUNK = 64 * MIB
TOTAL = 1024 * MIB

# CUresult values, from cuda.h: what they mean here and what cures them
MEANING = {
    2: ("the card has no memory left", "reset_gpu", "end what holds the card, or reset it"),
    34: ("libcuda is the stub of the toolkit", "none", "take the stubs folder off LD_LIBRARY_PATH"),
    46: ("the card is in use exclusively or not available", "restart_container", "look at its compute mode and MIG instances"),
    100: ("no device", "restart_container", "recreate the container with --gpus all; if the host shows none either, reboot it"),
    214: ("uncorrectable memory error", "reset_gpu", "drain the node and reset the GPU"),
    802: (
        "system not yet initialized: the NVLink fabric is not ready",
        "restart_container",
        "start nvidia-fabricmanager on the host and wait for it (INIT_GPU_WAIT)",
    ),
    803: ("driver and library do not match", "restart_container", "recreate the container, so that it gets the host's libraries"),
    804: (
        "the image's compat libcuda does not work on this card",
        "none",
        "take the compat folder off LD_LIBRARY_PATH, or use a newer driver on the host",
    ),
    999: (
        "unknown error, usually /dev/nvidia-uvm missing or closed to the container",
        "restart_container",
        "load nvidia-uvm on the host (nvidia-modprobe -u), then recreate the container",
    ),
}

u64 = ctypes.c_uint64
_cuda = None
_cards = None
_no_context = False


class Card:
    """One device with a context of its own."""

    def __init__(self, index, name):
        self.index, self.name, self.copy = index, name, None


def _load():
    global _cuda
    if _cuda is None:
        try:
            _cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            raise Verdict("fail", "libcuda.so.1 cannot be loaded: %s" % e, "restart_container", "start the container with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility")
    return _cuda


def call(name, *args):
    code = getattr(_load(), name)(*args)
    if code:
        text = ctypes.c_char_p()
        if _cuda.cuGetErrorName(code, ctypes.byref(text)) or not text.value:
            text.value = b"?"
        meaning, action, remedy = MEANING.get(code, ("", "", ""))
        said = "%s: CUDA error %d (%s)" % (name, code, text.value.decode("ascii", "replace"))
        raise Verdict("fail", said + (": " + meaning if meaning else ""), action, remedy)


def cards():
    """The devices, initialised once. A context is made and left for each measurement."""
    global _cards
    if _cards is None:
        call("cuInit", 0)
        n = ctypes.c_int()
        call("cuDeviceGetCount", ctypes.byref(n))
        if n.value == 0:
            raise Verdict("fail", "CUDA sees no device", "restart_container")
        _cards = []
        for i in range(n.value):
            dev, name = ctypes.c_int(), ctypes.create_string_buffer(96)
            call("cuDeviceGet", ctypes.byref(dev), i)
            call("cuDeviceGetName", name, len(name), dev)
            card = Card(i, name.value.decode("utf-8", "replace"))
            card.dev = dev
            _cards.append(card)
    return _cards


class Context:
    def __init__(self, card):
        self.card, self.handle = card, ctypes.c_void_p()

    def __enter__(self):
        try:
            call("cuCtxCreate_v2", ctypes.byref(self.handle), 0, self.card.dev)
        except Verdict as v:
            raise Verdict(v.answer[0], "card %d: %s" % (self.card.index, v.answer[1]), *v.answer[2:])
        return self

    def __exit__(self, *_):
        _cuda.cuCtxDestroy_v2(self.handle)  # takes memory and host buffers with it


def allocate(name, size):
    p = u64() if name == "cuMemAlloc_v2" else ctypes.c_void_p()
    call(name, ctypes.byref(p), ctypes.c_size_t(size))
    return p


def context():
    global _no_context
    _no_context = True  # until proved
    seen = []
    for card in cards():
        start = time.perf_counter()
        with Context(card):
            p = allocate("cuMemAlloc_v2", 64 * MIB)
            call("cuMemsetD32_v2", p, ctypes.c_uint(0xA5A5A5A5), ctypes.c_size_t(16 * MIB))
            call("cuCtxSynchronize")
            call("cuMemFree_v2", p)
        seen.append("card %d %s %.0f ms" % (card.index, card.name, 1000 * (time.perf_counter() - start)))
    _no_context = False
    return "; ".join(seen)


def write_and_read(card):
    """Fills up to 1 GiB with bytes that differ from place to place, reads them back, compares; notes the best rates."""
    libc = ctypes.CDLL(None)
    libc.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    chunks = max(1, min(TOTAL, free.value // 2) // CHUNK)
    device = allocate("cuMemAlloc_v2", chunks * CHUNK)
    source = allocate("cuMemAllocHost_v2", CHUNK + MIB)
    back = allocate("cuMemAllocHost_v2", CHUNK)
    tile = os.urandom(MIB)
    for at in range(0, CHUNK + MIB, MIB):
        ctypes.memmove(source.value + at, tile, MIB)
    rates = {"to": 0.0, "from": 0.0}
    shift = [k * 65544 % MIB for k in range(chunks)]
    for k in range(chunks):
        start = time.perf_counter()
        call("cuMemcpyHtoD_v2", u64(device.value + k * CHUNK), ctypes.c_void_p(source.value + shift[k]), ctypes.c_size_t(CHUNK))
        call("cuCtxSynchronize")
        rates["to"] = max(rates["to"], CHUNK / (time.perf_counter() - start) / 1e9)
    for k in range(chunks):
        ctypes.memset(back.value, 0, CHUNK)
        start = time.perf_counter()
        call("cuMemcpyDtoH_v2", back, u64(device.value + k * CHUNK), ctypes.c_size_t(CHUNK))
        rates["from"] = max(rates["from"], CHUNK / (time.perf_counter() - start) / 1e9)
        if libc.memcmp(back.value, source.value + shift[k], CHUNK):
            raise Verdict("fail", "card %d: what was written to MiB %d to %d is not what was read" % (card.index, k * CHUNK // MIB, (k + 1) * CHUNK // MIB))
    card.copy = rates
    return chunks * CHUNK // MIB


def need_context():
    if _no_context:
        raise Verdict("unknown", "not reached: gpu.context failed")


def pattern():
    need_context()
    seen = []
    for card in cards():
        with Context(card):
            seen.append("card %d %d MiB" % (card.index, write_and_read(card)))
    return "; ".join(seen)


def copy():
    need_context()
    floor = float(setting("FLOOR_GBS") or -1)
    if floor < 0:
        floor = 10.0  # half of what a PCIe 4.0 x16 card does
    seen, slow = [], False
    for card in cards():
        if card.copy is None:
            with Context(card):
                write_and_read(card)
        seen.append("card %d %.1f GB/s to it, %.1f from it" % (card.index, card.copy["to"], card.copy["from"]))
        slow = slow or min(card.copy.values()) < floor
    if slow:
        raise Verdict("fail", "%s; the floor is %.1f" % ("; ".join(seen), floor))
    return "; ".join(seen)


run({"gpu.context": context, "gpu.pattern": pattern, "gpu.copy": copy})
