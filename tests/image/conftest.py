"""Fixtures for the image and fleet checks: what node's libraries read out of a file.

The libraries are installed once into build/npm from tests/image/package.json and its lock.
"""

import fcntl
import json
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
NPM = ROOT / "build" / "npm"


def _install():
    NPM.mkdir(parents=True, exist_ok=True)
    lock = HERE / "package-lock.json"
    with open(NPM / ".lock", "w", encoding="utf-8") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        stamp = NPM / "installed.lock"
        if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
            return
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, NPM / name)
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"],
                       cwd=NPM, check=True, timeout=300)
        shutil.copy(lock, stamp)


@pytest.fixture(scope="session")
def inspect():
    """inspect(what, path=None, stdin=None): the answer of inspect.mjs."""
    _install()
    shutil.copy(HERE / "inspect.mjs", NPM / "inspect.mjs")

    def run(what, path=None, stdin=None):
        argv = ["node", str(NPM / "inspect.mjs"), what] + ([str(path)] if path else [])
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def root():
    return ROOT
