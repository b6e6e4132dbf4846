#!/usr/bin/python3
"""Kills runners at random moments and counts what stays behind.

    chaos.py --lives 1000 --seed 7 [--jobs 4] [--subject init|shell] [--only 17,42] [--json FILE]

One life: a GitHub of its own (V1 or V2), a credential (token, PAT, App), latency of 0 to 300 ms for every request, 5 % of init's requests
reset before or after they were processed, stalled, or answered 502; a runner that takes a job or stays idle; and one terminating signal
at a uniformly random moment of that life, sometimes followed by more. Everything about life N follows from the seed and N, so that a
failure can be played again: ``--only N``.

Counted, per subject:
    ghosts          lives after which GitHub still lists the runner
    wrong status    exits that the contract does not explain (for the shell: anything but 0 after a signal or a job)
    late            stops that took longer than the budget and 0.2 s
    deviations      requests that the strict server refused
"""
import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(REPO, "tests", "support"))

from cryptography.hazmat.primitives import serialization as pem  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: E402

import harness  # noqa: E402

URL = "https://github.com/acme/widget"
ENTITY = "repos/acme/widget"
BASELINE = os.path.join(REPO, "tests", "baseline")
RUNTIME_PATIENCE = 30  # seconds after the signal at which a container runtime would have killed long ago
WHOLE = {"init": 6.0, "shell": 10.0}  # seconds: a whole life, the shell's registration takes that much longer
ROOM = 0.2             # beyond the budget, for the kernel and a busy machine

AGENT = ["broker", "oauth", "job", "v1.session", "v1.message"]  # steps of the agent: they are slow, but they work

NAMED = ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR"]
REALTIME = [34, 37, 50, 64]


class Plan:
    """What happens in life ``n`` of ``seed``."""

    def __init__(self, seed, n, subject):
        r = random.Random("%s/%d" % (seed, n))
        self.n = n
        self.flow = r.choice(["v1", "v2"])
        self.credential = r.choice(["token", "token", "pat", "app"])
        self.server_seed = r.randrange(1 << 30)
        self.latency = 0.3
        self.rate = 0.05
        self.job = r.random() < 0.6
        self.job_seconds = r.uniform(0.1, 2.0)
        self.ephemeral = r.random() < 0.8
        self.drain = r.choice([0, 0, 0, 3])
        self.stop = r.choice([6, 9, 9])
        self.at = r.uniform(0.0, WHOLE[subject])
        self.signal = r.choice(NAMED + REALTIME)
        self.more = [r.uniform(0.05, 2.5) for _ in range(r.choice([0, 0, 0, 1, 2]))]

    def number(self):
        return getattr(signal, "SIG" + self.signal) if isinstance(self.signal, str) else self.signal

    def line(self):
        return "life %d: %s, %s, %s, %s at %.3f s%s, stop %d s, drain %d s" % (
            self.n, self.flow, self.credential, "job of %.1f s" % self.job_seconds if self.job else "idle", self.signal, self.at,
            " and %d more" % len(self.more) if self.more else "", self.stop, self.drain)


@functools.cache
def app_key():
    """One key for all lives of a worker: making it takes longer than a life."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return (key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.TraditionalOpenSSL, pem.NoEncryption()).decode(),
            key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo).decode())


def credentials(world, plan, subject):
    if subject == "shell" or plan.credential == "token":
        return {}
    if plan.credential == "pat":
        world.pat(token="ghp_" + "c" * 36, scopes=["repo"])
        return {"RUNNER_TOKEN": None, "ACCESS_TOKEN": "ghp_" + "c" * 36}
    private, public = app_key()
    world.app(id=77, client_id="Iv1.chaos", public_pem=public,
              installations=[{"id": 5, "account": "acme", "runners": "org", "type": "Organization"}])
    return {"RUNNER_TOKEN": None, "APP_ID": "77", "APP_PRIVATE_KEY": private}


def start(world, plan, subject):
    env = harness.life_env(world, URL, RUNNER_EPHEMERAL="yes" if plan.ephemeral else "no", INIT_STOP_TIMEOUT="%ds" % plan.stop,
                           INIT_DRAIN="%ds" % plan.drain, INIT_HTTP_TIMEOUT="5s", INIT_LOG_LEVEL="debug")
    env.update(credentials(world, plan, subject))
    env = {k: v for k, v in env.items() if v is not None}
    if subject == "init":
        return harness.run_init(env=env, world=world, scenario={}), None
    root = tempfile.mkdtemp(prefix="shell-")
    harness.make_runner_root(root, {})
    for name in ("config.sh", "run.sh", "configure.py"):
        shutil.copy(os.path.join(BASELINE, name), root)
        os.chown(os.path.join(root, name), 1000, 1000)
    pod = harness.run_init(env=env, world=world, root=root, program=os.path.join(BASELINE, "entrypoint.sh"),
                           binds={"/opt/test": (os.path.join(REPO, "tests", "support"), True)}, folders={"/opt/test": (0o755, 0)})
    return pod, root


def feed(world, plan, over):
    """Queues the job once the runner is there."""
    if plan.job and world.wait_for("online", timeout=20) and not over.is_set():
        world.job(name="chaos", seconds=plan.job_seconds)


def explained(plan, code, log, signalled):
    """Whether the contract allows this status. ``signalled``: a signal reached a living init."""
    text = "\n".join(log)
    if code == 0:
        return True
    if code == 75:  # the faults hit the agent's requests too
        return "agent ended with status" in text or "the agent was killed" in text
    if code in (69, 76):
        return "not registered" in text and not signalled
    return code == 85 and "may still be registered" in text


def occupy():
    """Descriptors 3 to 9 are taken in each worker, so that the harness may place its own at 3."""
    for fd in range(3, 10):
        try:
            os.fstat(fd)
        except OSError:
            os.dup2(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), fd, inheritable=False)


def live(path, seed, n, subject):
    hub = harness.Hub(path)
    plan = Plan(seed, n, subject)
    world = hub.world(flow=plan.flow, expected_version=harness.VERSION if subject == "init" else None)
    world.chaos(seed=plan.server_seed, latency=[0.0, plan.latency], rate=plan.rate, spare=AGENT)
    pod, root = start(world, plan, subject)
    over = threading.Event()
    feeder = threading.Thread(target=feed, args=(world, plan, over), daemon=True)
    feeder.start()
    result = {"n": n, "plan": plan.line(), "ghost": False, "wrong": False, "late": False, "killed": False, "deviations": []}
    try:
        result.update(drive(pod, plan, subject))
        snap = world.snapshot()
        result["ghost"] = bool(snap["runners"])
        result["deviations"] = [v["text"] for v in snap["violations"]]
        result["log"] = pod.text
    finally:
        over.set()
        pod.close()
        world.close()
        if root:
            shutil.rmtree(root, ignore_errors=True)
    return result


def armed(pod):
    """PID 1 has blocked its signals. Before that (its first 0.3 ms, or the time until it runs at all on a busy machine) the kernel
    drops whatever it is sent."""
    try:
        with open("/proc/%d/status" % pod.pid, encoding="ascii", errors="replace") as f:
            return any(line.startswith("SigBlk:") and int(line.split()[1], 16) != 0 for line in f)
    except OSError:
        return True


def heard(pod):
    """A signal that came before PID 1 was armed is lost, as a runtime's stop would be. It is said here, not hidden: the signal is
    sent once more."""
    end = time.monotonic() + 2
    while time.monotonic() < end and pod.alive():
        if b": SIG" in pod.err or b" SIG" in pod.err:
            return True
        time.sleep(0.01)
    return not pod.alive()


def drive(pod, plan, subject):
    """Sends the signals and waits for the end."""
    r = {}
    end = time.monotonic() + plan.at
    while time.monotonic() < end and pod.alive():
        time.sleep(min(0.002, max(0.0, end - time.monotonic())))
    signalled = pod.alive()
    first = time.monotonic()
    if signalled:
        ready = armed(pod)
        pod.signal(plan.number())
        if subject == "init" and not ready and not heard(pod):
            r["unheard"] = True
            first = time.monotonic()
            pod.signal(plan.number())
    for gap in plan.more if signalled else []:
        until = time.monotonic() + gap
        while time.monotonic() < until and pod.alive():
            time.sleep(0.005)
        if pod.alive():
            pod.signal("TERM")
    try:
        code = pod.wait(RUNTIME_PATIENCE if signalled else 90)
    except harness.Late:
        os.kill(pod.pid, signal.SIGKILL)  # what a runtime does
        code = pod.wait(20)
        r["killed"] = True
    r["code"] = code
    r["took"] = time.monotonic() - first if signalled else None
    budget = plan.stop + plan.drain
    if subject == "init":
        r["wrong"] = not explained(plan, code, pod.log, signalled) or r.get("killed", False)
        r["late"] = signalled and r["took"] > budget + ROOM
    else:
        r["wrong"] = code != 0
        r["late"] = signalled and r["took"] > budget + ROOM
    return r


def report(subject, seed, results, seconds):
    stops = sorted(r["took"] for r in results if r.get("took") is not None)
    bad = [r for r in results if r["ghost"] or r["wrong"] or r["late"] or r["deviations"]]
    out = {"subject": subject, "seed": seed, "lives": len(results), "ghosts": sum(r["ghost"] for r in results),
           "wrong": sum(r["wrong"] for r in results), "late": sum(r["late"] for r in results),
           "killed": sum(r["killed"] for r in results), "deviations": sum(bool(r["deviations"]) for r in results),
           "stops": len(stops), "longest": round(stops[-1], 2) if stops else None,
           "median": round(stops[len(stops) // 2], 2) if stops else None, "seconds": round(seconds)}
    print("chaos: %(subject)s, seed %(seed)s: ghosts %(ghosts)d/%(lives)d, wrong status %(wrong)d/%(lives)d, late %(late)d/%(stops)d, "
          "killed by the runtime %(killed)d, deviating requests %(deviations)d; stop: median %(median)s s, longest %(longest)s s; "
          "%(seconds)d s" % out)
    return out, bad


def show(bad, seed, subject, full):
    for r in bad[:20]:
        why = [w for w in ("ghost", "wrong", "late") if r[w]] + ["%d deviation(s)" % len(r["deviations"])] * bool(r["deviations"])
        print("  %s: %s (exit %s%s)\n    again: tests/chaos/chaos.py --subject %s --seed %s --only %d" % (
            ", ".join(why), r["plan"], r.get("code"), ", %.2f s" % r["took"] if r.get("took") is not None else "", subject, seed, r["n"]))
        for d in r["deviations"][:3]:
            print("    " + d)
        if full:
            print("    | " + "\n    | ".join(r.get("log", "").splitlines()))


def keep(r, subject, seed):
    """The log of a failure, for whoever looks into it: timing never comes back exactly."""
    folder = os.path.join(REPO, "build", "chaos")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "%s-%s-%d.log" % (subject, seed, r["n"])), "w") as f:
        f.write(r["plan"] + "\n" + r.get("log", ""))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lives", type=int, default=100)
    p.add_argument("--seed", default=None)
    p.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 2)))
    p.add_argument("--subject", choices=["init", "shell"], default="init")
    p.add_argument("--only", default="")
    p.add_argument("--json", default="")
    p.add_argument("--logs", action="store_true", help="print the whole log of each failure")
    args = p.parse_args()
    seed = args.seed if args.seed not in (None, "") else str(random.SystemRandom().randrange(1 << 31))
    which = [int(x) for x in args.only.split(",") if x] or range(args.lives)
    folder = tempfile.mkdtemp(prefix="chaos-")
    hub = harness.Hub.start(folder)
    began = time.monotonic()
    try:
        with concurrent.futures.ProcessPoolExecutor(args.jobs, initializer=occupy) as pool:
            results = list(pool.map(live, itertools.repeat(hub.path), itertools.repeat(seed), which, itertools.repeat(args.subject)))
    finally:
        hub.stop()
        shutil.rmtree(folder, ignore_errors=True)
    out, bad = report(args.subject, seed, results, time.monotonic() - began)
    if args.only:
        bad = results if args.logs else bad
    show(bad, seed, args.subject, args.logs)
    for r in bad if not args.only else []:
        keep(r, args.subject, seed)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(out, f, indent=1)
    if args.subject == "shell":
        return 0
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
