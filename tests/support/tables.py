#!/usr/bin/python3
"""The tables of the documentation that the binary itself knows: settings, checks.

    tables.py --write      puts them into README.md and docs/checks.md (what `make docs` does)
    tables.py              says what is out of date, exit status 1
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
BINARY = os.environ.get("INIT_BINARY", os.path.join(REPO, "build", "init"))


def ask(*argv):
    """The binary's answer as JSON, in an empty environment, so that nothing of this machine gets into it."""
    done = subprocess.run([BINARY] + list(argv), env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return json.loads(done.stdout)


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def settings():
    rows = ["| Variable | Default | Meaning | Accepted |", "| --- | --- | --- | --- |"]
    for s in ask("--check-config", "--json")["settings"]:
        name = "`%s`" % s["name"]
        if "alias" in s:
            name += ", `%s`" % s["alias"]
        if s["secret"]:
            name += ", `%s_FILE`" % s["name"]
        rows.append("| %s | %s | %s | %s |" % (name, cell(s["default"]), cell(s["meaning"]), cell(s["accepts"])))
    return "\n".join(rows)


def checks():
    rows = ["| Check | Tier | GPU | Deadline | What it looks at | Remedy |", "| --- | --- | --- | --- | --- | --- |"]
    listed = ask("--selftest", "--list", "--json")
    for c in listed if isinstance(listed, list) else listed["checks"]:
        rows.append("| `%s` | %s | %s | %g s | %s | %s |" % (c["id"], c["tier"], "yes" if c["gpu"] else "", c["deadline_ms"] / 1000,
                                                         cell(c["about"]), cell(c["remedy"])))
    return "\n".join(rows)


def places():
    return [("README.md", "settings", settings), (os.path.join("docs", "checks.md"), "checks", checks)]


def put(text, name, table):
    """``text`` with ``table`` between the marks of that name."""
    begin, end = "<!-- %s: from the binary, by make docs -->" % name, "<!-- end of %s -->" % name
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if len(pattern.findall(text)) != 1:
        raise SystemExit("the marks of %s are not there exactly once" % name)
    return pattern.sub(lambda m: begin + "\n" + table + "\n" + end, text)


def stale(write=False):
    """Files whose table differs from what the binary says; with ``write`` they are put right."""
    out = []
    for path, name, table in places():
        full = os.path.join(REPO, path)
        with open(full, encoding="utf-8") as f:
            old = f.read()
        new = put(old, name, table())
        if new == old:
            continue
        out.append(path)
        if write:
            with open(full, "w", encoding="utf-8") as f:
                f.write(new)
    return out


def main():
    write = sys.argv[1:] == ["--write"]
    found = stale(write)
    for path in found:
        print("%s: %s" % (path, "written" if write else "its table is not what the binary says; make docs"))
    return 1 if found and not write else 0


if __name__ == "__main__":
    sys.exit(main())
