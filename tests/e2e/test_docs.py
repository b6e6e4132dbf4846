"""The documentation says what the binary says."""
import os
import re
import subprocess

import harness
import tables


def text(*path):
    with open(os.path.join(harness.REPO, *path), encoding="utf-8") as f:
        return f.read()


def codes():
    out = set()
    for line in text("base", "exitcode.h").splitlines():
        m = re.match(r"\s*XC_\w+ = (\d+)", line)
        if m:
            out.add(int(m.group(1)))
    return out


def test_the_tables_are_those_of_the_binary():
    assert tables.stale() == []


def test_the_readme_has_every_exit_status_and_no_other():
    section = text("README.md").split("## Exit status")[1].split("## ")[0]
    rows = {int(n) for first in re.findall(r"^\| ([0-9, ]+) \|", section, re.M) for n in first.split(",")}
    assert rows | {128} == codes()


def test_help_has_every_exit_status():
    shown = subprocess.run([harness.BINARY, "--help"], stdout=subprocess.PIPE, text=True, timeout=20).stdout
    assert {c for c in codes() if not re.search(r"\b%d\b" % c, shown)} <= {128}


def test_every_setting_of_the_examples_is_one():
    known = {s["name"] for s in tables.ask("--check-config", "--json")["settings"]}
    known |= {s["alias"] for s in tables.ask("--check-config", "--json")["settings"] if "alias" in s}
    used = set()
    for folder in ("examples", "deploy", "docs"):
        for where, _, names in os.walk(os.path.join(harness.REPO, folder)):
            for name in names:
                used |= set(re.findall(r"\bINIT_[A-Z_]*[A-Z]\b", text(os.path.join(where, name))))
    used |= set(re.findall(r"\bINIT_[A-Z_]*[A-Z]\b", text("README.md")))
    assert used - known - {"INIT_BINARY", "INIT_COMMIT"} == set()


def test_every_file_that_the_pages_link_to_exists():
    for page in ["README.md", "ARCHITECTURE.md"] + [os.path.join("docs", n) for n in os.listdir(os.path.join(harness.REPO, "docs"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", text(page)):
            assert os.path.exists(os.path.join(harness.REPO, os.path.dirname(page), target)), "%s links to %s" % (page, target)


def test_every_file_that_the_map_names_exists():
    page = text("ARCHITECTURE.md")
    init = page.split("In `init/`:")[1].split("## ")[0]
    for name in re.findall(r"`([a-z_]+\.(?:c|h|def))`", init):
        assert os.path.exists(os.path.join(harness.REPO, "init", name)), name
    for name in re.findall(r"`((?:base|net|gh|probes|init|tests|docs|deps)/[\w./-]*)`", page):
        assert os.path.exists(os.path.join(harness.REPO, name)), name
    listed = set(re.findall(r"`([a-z_]+)\.(?:c|def)`", init))
    missing = {n[:-2] for n in os.listdir(os.path.join(harness.REPO, "init")) if n.endswith(".c")} - listed
    assert {n for n in missing if not n.startswith("step")} == set()
