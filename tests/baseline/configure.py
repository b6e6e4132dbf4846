#!/usr/bin/python3
"""What config.sh does at GitHub: configure (register, write the files) and remove (look the runner up in the files, delete it)."""
import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, "/opt/test")

import selfcheck  # noqa: E402

TRIES = 3


def again(act):
    """Three tries with pauses, as the agent's HTTP layer makes them; a refusal is final."""
    for n in range(TRIES):
        try:
            return act()
        except selfcheck.Refused as why:
            if why.status < 500 or n == TRIES - 1:
                raise
        except OSError:
            if n == TRIES - 1:
                raise
        time.sleep(1 + n)
    raise AssertionError("not reached")


def configure(args):
    if os.path.exists(os.path.join(HERE, ".runner")):
        print("Cannot configure the runner because it is already configured.", file=sys.stderr)
        return 1
    me = selfcheck.Client(args.url, args.token)
    files = again(lambda: me.register(args.name, [x for x in args.labels.split(",") if x], replace=args.replace, ephemeral=args.ephemeral,
                                      disable_update=args.disableupdate))
    selfcheck.write_files(HERE, files)
    print("√ Runner successfully added")
    return 0


def remove(args):
    try:
        with open(os.path.join(HERE, ".runner")) as f:
            settings = json.load(f)
    except OSError:
        print("Does not exist. Skipping Removing runner from the server")
        return 0
    me = selfcheck.Client(settings["gitHubUrl"], args.token)
    me.id = settings["agentId"]
    me.v2 = settings.get("useRunnerAdminFlow", False)
    again(me.remove)
    for name in files_of(HERE):
        os.unlink(os.path.join(HERE, name))
    print("√ Runner removed successfully")
    return 0


def files_of(root):
    return [n for n in os.listdir(root) if n.startswith((".runner", ".credentials"))]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("command", nargs="?", default="configure")
    for name in ("url", "token", "name", "labels", "work"):
        p.add_argument("--" + name, default="")
    for name in ("ephemeral", "replace", "unattended", "disableupdate"):
        p.add_argument("--" + name, action="store_true")
    args = p.parse_args()
    try:
        return remove(args) if args.command == "remove" else configure(args)
    except (selfcheck.Refused, OSError) as why:
        print("Failed: %s" % why, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
