# Tier build: the installed stack is the one that was pinned. Needs no GPU.
import re


def _key(version):
    """A version as something that sorts as PEP 440 says; the local part (+cu129) is left out."""
    v = version.strip().lower().partition("+")[0]
    m = re.match(
        r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)"
        r"(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?"
        r"(?:(?:[-_.]?(post|rev|r)[-_.]?(\d*))|-(\d+))?"
        r"(?:[-_.]?(dev)[-_.]?(\d*))?$",
        v,
    )
    if not m:
        raise ValueError("%r is no version" % version)
    release = [int(x) for x in m.group(2).split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    names = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
    post = int(m.group(6) or m.group(7) or 0) if m.group(5) or m.group(7) else -1
    dev = int(m.group(9) or 0) if m.group(8) else float("inf")
    if m.group(3):
        pre = (names.get(m.group(3), m.group(3)), int(m.group(4) or 0))
    elif m.group(8) and post < 0:
        pre = ("", 0)  # a development release of the final comes before its alphas
    else:
        pre = ("z", 0)
    return (int(m.group(1) or 0), release, pre, post, dev)


def _satisfies(version, clause):
    m = re.match(r"\s*(===|==|!=|~=|<=|>=|<|>)\s*([^\s,;]+)\s*$", clause)
    if not m:
        raise ValueError("%r is no version clause" % clause)
    op, want = m.groups()
    if op == "===":
        return version == want
    if want.endswith(".*"):
        prefix = [int(x) for x in want[:-2].split(".")]
        have = (_key(version)[1] + [0] * len(prefix))[: len(prefix)]
        return (have == prefix) == (op == "==")
    if op in ("==", "!=") and "+" in want:
        return (version.lower() == want.lower()) == (op == "==")
    have, key = _key(version), _key(want)
    if op == "~=":
        prefix = [int(x) for x in re.match(r"\d+(?:\.\d+)*", want).group(0).split(".")][:-1]
        return have >= key and (have[1] + [0] * len(prefix))[: len(prefix)] == prefix
    return {
        "==": have == key,
        "!=": have != key,
        "<=": have <= key,
        ">=": have >= key,
        "<": have < key,
        ">": have > key,
    }[op]


def _requirement(line):
    """(normalised name, [clauses]) of a requirement; None for what is none or is an extra's."""
    text, _, marker = line.partition(";")
    text = text.split(" #")[0].strip()
    if not text or text.startswith(("#", "-")) or "extra" in marker:
        return None
    m = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^()]*)\)?$", text)
    if not m:
        raise ValueError("%r is no requirement" % line)
    name = re.sub(r"[-_.]+", "-", m.group(1)).lower()
    return name, [c for c in m.group(2).split(",") if c.strip()]


def tilelang():
    import tilelang

    return "tilelang %s imports" % getattr(tilelang, "__version__", version_of("tilelang"))


def tvm_ffi():
    from importlib import metadata

    installed = version_of("apache-tvm-ffi")
    if version_of("tilelang") is None:
        raise Verdict("fail", "tilelang is not installed")
    if installed is None:
        raise Verdict("fail", "apache-tvm-ffi is not installed")
    clauses = None
    for line in metadata.requires("tilelang") or []:
        r = _requirement(line)
        if r and r[0] == "apache-tvm-ffi":
            clauses = (clauses or []) + r[1]
    if clauses is None:
        raise Verdict("unknown", "tilelang's metadata does not mention apache-tvm-ffi")
    text = ",".join(c.strip() for c in clauses) or "any"
    bad = [c for c in clauses if not _satisfies(installed, c)]
    if bad:
        raise Verdict("fail", "apache-tvm-ffi %s is outside of what tilelang asks for: %s" % (installed, text))
    return "apache-tvm-ffi %s is inside %s" % (installed, text)


def pins():
    path = setting("CONSTRAINTS")
    if not path:
        raise Verdict("skip", "no constraints file (INIT_CONSTRAINTS)")
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError as e:
        raise Verdict("fail", "%s: %s" % (path, e.strerror), remedy="correct INIT_CONSTRAINTS")
    wrong, right = [], 0
    for line in lines:
        r = _requirement(line)
        if r is None or not r[1]:
            continue
        have = version_of(r[0])
        want = ",".join(c.strip() for c in r[1])
        if have is None:
            wrong.append("%s is not installed, pinned %s" % (r[0], want))
        elif not all(_satisfies(have, c) for c in r[1]):
            wrong.append("%s is %s, pinned %s" % (r[0], have, want))
        else:
            right += 1
    if wrong:
        raise Verdict("fail", "; ".join(wrong))
    if right == 0:
        raise Verdict("fail", "%s pins nothing" % path, remedy="correct INIT_CONSTRAINTS")
    return "%d pins of %s" % (right, path)


def baselines():
    present, absent = [], []
    for label, names in (
        ("flash-attn", ("flash-attn",)),
        ("flash-attn-3", ("flash-attn-3", "flashattn-hopper")),
        ("flash-linear-attention", ("flash-linear-attention",)),
        ("vllm", ("vllm",)),
        ("mamba-ssm", ("mamba-ssm",)),
        ("deep-gemm", ("deep-gemm",)),
        ("flashinfer-python", ("flashinfer-python",)),
        ("flashinfer-cubin", ("flashinfer-cubin",)),
    ):
        version = next((v for v in map(version_of, names) if v), None)
        if version:
            present.append("%s %s" % (label, version))
        else:
            absent.append(label)
    text = "present: %s; absent: %s" % (", ".join(present) or "none", ", ".join(absent) or "none")
    if absent:
        raise Verdict("warn", text)
    return text


run(
    {
        "stack.tilelang": tilelang,
        "stack.tvm_ffi": tvm_ffi,
        "stack.cuda": expect_cuda_build,
        "stack.pins": pins,
        "stack.baselines": baselines,
    }
)
