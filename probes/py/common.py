# What the checks share. Standard output belongs to the protocol; what packages print goes to stderr.
import os
import sys
import time

_wire = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace", newline="\n")
os.dup2(2, 1)
_answered = set()
_began = time.monotonic()


def _clean(text, limit):
    return " ".join(str(text).split())[:limit]


def begin(check):
    global _began
    _began = time.monotonic()
    _wire.write("begin\t%s\n" % check)
    _wire.flush()


def found(check, verdict, detail, action="", remedy=""):
    if check in _answered:
        return
    _answered.add(check)
    _wire.write("found\t%s\t%s\t%d\t%s\t%s\t%s\n" % (check, verdict, 1000 * (time.monotonic() - _began), action, _clean(detail, 900), _clean(remedy, 390)))
    _wire.flush()


class Verdict(Exception):
    """Ends a check with something other than "pass"."""

    def __init__(self, verdict, detail, action="", remedy=""):
        super().__init__(detail)
        self.answer = (verdict, detail, action, remedy)


def run(checks):
    """checks: {id: function that returns the detail of a pass, or raises}. Only those asked for run."""
    for check in sys.argv[1:]:
        if check not in checks:
            found(check, "unknown", "this script does not know it")
            continue
        begin(check)
        try:
            found(check, "pass", checks[check]())
        except Verdict as v:
            found(check, *v.answer)
        except BaseException as e:  # an import may raise anything, SystemExit included
            text = _clean(str(e), 500)
            found(check, "fail", "%s: %s" % (type(e).__name__, text) if text else type(e).__name__)


def setting(name):
    return os.environ.get("PROBE_" + name, "")


def version_of(distribution):
    """The installed version, None when it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def expect_cuda_build():
    """torch was built for the CUDA that this image is for, and its companions too."""
    import torch

    wrong = []
    cuda, suffix = setting("CUDA"), setting("SUFFIX")
    built = torch.version.cuda
    if cuda not in ("", "any") and built != cuda:
        wrong.append("torch.version.cuda is %s, expected %s" % (built, cuda))
    seen = []
    for name in ("torch", "torchvision", "torchaudio"):
        version = version_of(name)
        seen.append("%s %s" % (name, version))
        local = version.partition("+")[2] if version else ""
        if version is None:
            wrong.append("%s is not installed" % name)
        elif suffix not in ("", "any") and local != suffix:
            wrong.append("%s is %s, expected +%s" % (name, version, suffix))
    if wrong:
        raise Verdict("fail", "; ".join(wrong))
    return "%s, CUDA %s" % (", ".join(seen), built)
