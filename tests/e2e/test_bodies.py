"""Random valid settings give the very request bodies that an independent writer builds from the protocol."""
import base64
import json
import os
import random
import re

import lives
import selfcheck

SEED = int(os.environ.get("SEED", "20260801"))
CASES = int(os.environ.get("BODIES", "12"))


def pretty_name():
    with open("/etc/os-release") as f:
        return re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', f.read(), re.M).group(1)


def random_settings(rnd):
    alphabet = "abcXYZ019-_. äß√"
    name = "".join(rnd.choice(alphabet) for _ in range(rnd.randrange(1, 40))).strip() or "n"
    labels = ["".join(rnd.choice(alphabet + "/:+") for _ in range(rnd.randrange(0, 12))) for _ in range(rnd.randrange(0, 6))]
    labels += rnd.choice([[], ["GPU", "gpu"], ["Self-Hosted"], ["l" * 256]])
    return {"name": name, "labels": labels, "ephemeral": rnd.random() < 0.5, "no_update": rnd.random() < 0.5,
            "defaults": rnd.random() < 0.7 or not any(x.strip() for x in labels), "url": rnd.choice(lives.URLS), "group": rnd.random() < 0.4,
            "replace": rnd.random() < 0.3}


def other_case(name):
    """ASCII letters only: which other letters GitHub holds for the same is not known."""
    return "".join(c.swapcase() if c.isascii() else c for c in name)


def bodies(world, *steps):
    return [json.loads(x["body"]) for x in world.log() if x["step"] in steps]


def one(run, make_world, flow, rnd):
    s = random_settings(rnd)
    _, url, entity = s["url"]
    grouped = s["group"] and not entity.startswith("repos/")
    world = make_world(flow=flow)
    ident = world.runner(entity=entity, name=other_case(s["name"]), group_id=7 if grouped else 1)["id"] if s["replace"] else None
    env = {"RUNNER_NAME": s["name"], "RUNNER_LABELS": ",".join(s["labels"]),
           "RUNNER_EPHEMERAL": rnd.choice(["1", "TRUE", "y"]) if s["ephemeral"] else "off",
           "RUNNER_DISABLE_UPDATE": "yes" if s["no_update"] else "N", "RUNNER_NO_DEFAULT_LABELS": "no" if s["defaults"] else "on"}
    if grouped:
        env["RUNNER_GROUP"] = "gPu"
    pod = lives.start(run, world, url, entity=entity, scenario={"exit": 0, "at": "start"}, **env)
    assert pod.wait() == 0, "%s\n%s" % (s, pod.text)
    sent = bodies(world, "registration")
    for body, event in zip(sent, ["register", "remove"]):
        want = selfcheck.registration_body(url, event)
        assert body["runner_event"] == event and body["url"].lower().replace("//www.", "//") == want["url"].lower().replace("//www.", "//"), (body, s)
    (body,) = bodies(world, "v1.add", "v2.add", "v1.replace", "v2.replace")
    items = selfcheck.labels(s["labels"], s["defaults"])
    if flow == "v1":
        n = int.from_bytes(base64.b64decode(body["authorization"]["publicKey"]["modulus"]), "big")
        want = selfcheck.v1_body(s["name"], "2.336.0", s["ephemeral"], s["no_update"], items, n, pretty_name(), ident or 0)
        for key in ("createdOn", "status", "provisioningState"):
            if key not in body:
                del want[key]
        if ident is not None:
            for key in ("createdOn", "status", "provisioningState", "enabled", "runnerGroupId"):
                want.pop(key, None)
                body.pop(key, None)
    else:
        modulus = re.search("<Modulus>(.*)</Modulus>", body["public_key"]).group(1)
        n = int.from_bytes(base64.b64decode(modulus), "big")
        want = selfcheck.v2_body(body["url"], 7 if grouped else 1, s["name"], "2.336.0", s["ephemeral"], s["no_update"], items, n, ident)
        want["url"] = body["url"]
    assert body == want, s
    assert world.runners() == []


def test_the_bodies_of_random_settings_equal_those_of_the_independent_writer(run, make_world):
    print("SEED=%d" % SEED)
    rnd = random.Random(SEED)
    for n in range(CASES):
        one(run, make_world, ("v1", "v2")[n % 2], rnd)
