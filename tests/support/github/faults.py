"""Faults on order. One fault is a dict:

    {"step": "v1.add"} or {"path": regex} / {"method": ..} / {"host": ..}   which requests (all given keys must hold; none: every one)
    "times": 1 (default; -1 for ever), "skip": 0                            let so many matching requests pass first
    "delay": seconds before processing, "delay_after": seconds before answering
    "reset": "before" | "after"      connection reset before the request is processed, or after it was
    "stall": "before" | "after"      as reset, but the connection stays open and silent until the client gives up
    "status": 502, "body": text or JSON, "headers": {..}, "process": true   answer this; process the request first if asked to
    "garbage": text                  these raw bytes instead of an answer
    "truncate": N                    only N bytes of the answer, then the end
    "patch": {"key": value, "gone": "__delete__"}                           changes in the JSON answer, dotted keys go deeper

``chaos`` is a fault with a probability for every request: see ``Faults.chaos``.
"""
import random
import re


class Faults:
    def __init__(self):
        self.rules = []
        self.fired = 0
        self._chaos = None
        self._random = None

    def add(self, rule):
        rule = dict(rule)
        rule.setdefault("times", 1)
        rule.setdefault("skip", 0)
        self.rules.append(rule)

    def clear(self):
        self.rules = []
        self._chaos = None

    def chaos(self, seed, latency=(0.0, 0.0), rate=0.0, kinds=("reset-before", "reset-after", "stall-after", "502"), spare=()):
        """Every request waits a uniform time of ``latency`` and meets one of ``kinds`` with probability ``rate``; reproducible by seed.
        Steps that begin with one of ``spare`` only wait: the agent's own requests, when its robustness is not the question."""
        self._random = random.Random(seed)
        self._chaos = {"latency": tuple(latency), "rate": rate, "kinds": list(kinds), "spare": tuple(spare)}

    @staticmethod
    def _matches(rule, req):
        if "step" in rule and not re.fullmatch(rule["step"], req.step or ""):
            return False
        if "path" in rule and not re.search(rule["path"], req.target):
            return False
        if "method" in rule and rule["method"] != req.method:
            return False
        if "host" in rule and rule["host"] != req.host:
            return False
        return True

    def pick(self, req):
        for rule in self.rules:
            if rule["times"] == 0 or not self._matches(rule, req):
                continue
            if rule["skip"] > 0:
                rule["skip"] -= 1
                continue
            if rule["times"] > 0:
                rule["times"] -= 1
            self.fired += 1
            return rule
        if self._chaos and not (req.step or "").startswith(("broker.message", "v1.message")):
            rule = {"delay": self._random.uniform(*self._chaos["latency"])}
            if self._random.random() < self._chaos["rate"] and not (req.step or "").startswith(self._chaos["spare"]):
                kind = self._random.choice(self._chaos["kinds"])
                self.fired += 1
                if kind == "502":
                    rule.update(status=502, body="<html>bad gateway</html>")
                elif kind == "502-after":
                    rule.update(status=502, body="<html>bad gateway</html>", process=True)
                else:
                    verb, when = kind.split("-")
                    rule[verb] = when
            return rule
        return None


def patch(obj, changes):
    for key, value in changes.items():
        node = obj
        parts = key.split(".")
        for part in parts[:-1]:
            node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
        last = int(parts[-1]) if isinstance(node, list) else parts[-1]
        if value == "__delete__":
            if isinstance(node, list) or last in node:
                del node[last]
        else:
            node[last] = value
    return obj
