"""The state of one test GitHub. Everything here is guarded by ``World.lock``; handlers run with it held, long polls let go of it."""
import re
import secrets
import string
import threading
import time
import uuid

from .faults import Faults

HOUR = 3600
JOB_LOCK = 600  # GitHub keeps a job's lock this long after the last renewal

DEFAULTS = {
    "flow": "v1",                # what runner-registration selects: v1 (pipelines) or v2 (runner-admin)
    "messaging": "v2",           # V1 only: does the agent's properties send the listener to the broker
    "fips": True,                # RequireFipsCryptography: the listener must sign with PS256
    "property_style": "wrapped",  # wrapped ($type/$value), bare or strings
    "legacy_url": False,         # V2: answer with legacy_authorization_url as well
    "auth_migration": False,     # V1: EnableAuthMigrationByDefault and AuthorizationUrlV2
    "bom": False,                # service answers begin with a byte order mark
    "chunked": False,            # answers are sent in chunks
    "close": False,              # every answer says Connection: close
    "loose_lookup": False,       # look-ups by name also return runners whose name merely begins so
    "min_version": "2.329.0",
    "expected_version": None,    # the version that User-Agent and bodies must carry
    "poll_seconds": 20,
    "session_ttl": 60,           # a session whose holder no longer polls is kept this long
    "busy_delete": {"rest": 422, "v2": 422, "v1": 204},  # what a delete of a busy runner gets
    "keep_ephemeral": False,     # the service does not remove the runner after its job
    "tenant_url": None,          # replaces the tenant URL of runner-registration
    "date_offset": 0,            # seconds added to the Date header
    "page_size": 30,             # ceiling of REST pages
    "refuse_labels": False,
    "session_refusals": 0,       # so many session requests get 409 first
    "direct_routes": True,       # V1 direct routes exist; False: only what connectionData names
    "update_echo": True,         # echo disableUpdate and ephemeral
}


def token_text(prefix="A", n=29):
    return prefix + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(n - len(prefix)))


class World:
    def __init__(self, ident, ports=None):
        self.ident = ident
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.set = dict(DEFAULTS)
        self.clock_offset = 0.0
        self.entities = {"orgs/acme", "repos/acme/widget", "enterprises/big"}
        self.groups = [
            {"id": 3, "name": "GitHub Actions", "default": False, "hosted": True},
            {"id": 1, "name": "Default", "default": True, "hosted": False},
            {"id": 7, "name": "gpu", "default": False, "hosted": False},
        ]
        self.ghes = {"ghes.corp.test"}
        self.tokens = {}       # registration and removal tokens
        self.bearers = {}      # tenant bearers of the V1 flow
        self.oauth = {}        # access tokens of runners
        self.pats = {}
        self.installs = {}     # installation tokens
        self.apps = {}
        self.runners = {}      # by id
        self.removed = []
        self.jobs = []
        self.orders = []       # refresh and other messages for runners
        self.jtis = set()
        self.next_id = 42
        self.log = []
        self.violations = []
        self.tls_errors = []
        self.notes = []
        self.faults = Faults()
        self.tenants = {}
        self.connections = 0
        self.closed = False

    # clock
    def now(self):
        return time.time() + self.clock_offset

    def advance(self, seconds):
        with self.lock:
            self.clock_offset += seconds
            self.changed.notify_all()

    # violations
    def violation(self, req, text):
        entry = {"text": text, "step": req.step if req else None, "request": "%s %s" % (req.method, req.target) if req else None}
        with self.lock:
            self.violations.append(entry)
        if req:
            req.violations.append(text)

    # tokens
    def mint(self, entity, kind="registration", ttl=HOUR, web=None):
        with self.lock:
            token = token_text("A")
            self.tokens[token] = {"entity": entity.lower(), "kind": kind, "expires": self.now() + ttl, "web": web}
            return token

    def token_ok(self, token, entity=None):
        t = self.tokens.get(token)
        if t is None or t["expires"] <= self.now():
            return None
        if entity is not None and t["entity"] != entity.lower():
            return None
        return t

    def tenant_id(self, entity):
        if entity not in self.tenants:
            self.tenants[entity] = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(40))
        return self.tenants[entity]

    def bearer(self, entity, kind):
        # shaped like a JWT because clients may look at exp; nobody verifies it
        import base64
        import json

        def b64(obj):
            return base64.urlsafe_b64encode(json.dumps(obj).encode()).rstrip(b"=").decode()
        token = "%s.%s.%s" % (b64({"typ": "JWT", "alg": "RS256"}), b64({"exp": int(self.now() + HOUR), "nonce": secrets.token_hex(8)}),
                              secrets.token_urlsafe(32))
        self.bearers[token] = {"entity": entity, "kind": kind, "expires": self.now() + HOUR}
        return token

    # groups
    def visible_groups(self, entity):
        if entity.startswith("repos/"):
            return [g for g in self.groups if g["default"] or g["hosted"]]
        return list(self.groups)

    def group(self, gid):
        return next((g for g in self.groups if g["id"] == gid), None)

    # runners
    def find(self, entity, name):
        name = name.lower()
        found = [r for r in self.runners.values() if r["entity"] == entity and r["name"].lower() == name]
        if self.set["loose_lookup"]:
            loose = [r for r in self.runners.values() if r["entity"] == entity and r["name"].lower().startswith(name) and r not in found]
            return loose + found
        return found

    def add_runner(self, entity, name, group_id=1, flow="v1", public=None, version="2.336.0", ephemeral=True, disable_update=True,
                   labels=(), os_name="Linux", reuse=None, work_folder="_work", web=None):
        rid = reuse
        if rid is None:
            rid = self.next_id
            self.next_id += 1
        old = self.runners.get(rid)
        if old is not None:
            self.end_session(old)
        runner = {"id": rid, "name": name, "entity": entity, "group_id": group_id, "flow": flow, "public": public, "version": version,
                  "ephemeral": ephemeral, "disable_update": disable_update, "labels": list(labels), "os": os_name,
                  "client_id": str(uuid.uuid4()), "session": None, "job": None, "created": self.now(), "last_poll": 0.0,
                  "fips": self.set["fips"], "web": web, "replaced": old is not None}
        self.runners[rid] = runner
        self.changed.notify_all()
        return runner

    def remove_runner(self, runner, how):
        self.runners.pop(runner["id"], None)
        self.removed.append({"id": runner["id"], "name": runner["name"], "how": how, "t": time.time()})
        self.changed.notify_all()

    def online(self, runner):
        return self.session_alive(runner)

    def busy(self, runner):
        job = runner["job"]
        return job is not None and job["result"] is None and self.now() < job["locked_until"]

    # sessions
    def session_alive(self, runner):
        s = runner["session"]
        if s is None:
            return False
        if not s["polling"] and self.now() - s["seen"] > self.set["session_ttl"]:
            runner["session"] = None
            return False
        return True

    def end_session(self, runner):
        runner["session"] = None
        job = runner["job"]
        if job is not None and job["state"] == "assigned":  # handed out but never acquired: the next runner may have it
            job.update(state="queued", runner=None, locked_until=0.0)
            runner["job"] = None
        self.changed.notify_all()

    # jobs
    def add_job(self, spec):
        with self.lock:
            job = {"id": str(uuid.uuid4()), "spec": dict(spec), "name": spec.get("name", "build"), "state": "queued", "result": None,
                   "runner": None, "locked_until": 0.0, "started": None, "finished": None}
            self.jobs.append(job)
            self.changed.notify_all()
            return job

    def take_job(self, runner):
        for job in self.jobs:
            if job["state"] != "queued":
                continue
            want = job["spec"].get("runner")
            if want is not None and want != runner["name"]:
                continue
            labels = {n.lower() for n in job["spec"].get("labels", [])}
            if not labels <= {n.lower() for n in runner["labels"]}:
                continue
            job["state"] = "assigned"
            job["runner"] = runner["id"]
            job["runner_name"] = runner["name"]
            job["locked_until"] = self.now() + JOB_LOCK
            runner["job"] = job
            self.changed.notify_all()
            return job
        return None

    def finish_job(self, job, result):
        job["state"] = "completed"
        job["result"] = result
        job["finished"] = time.time()
        runner = self.runners.get(job["runner"])
        if runner is not None and runner["job"] is job:
            runner["job"] = None
            if runner["ephemeral"] and not self.set["keep_ephemeral"]:
                self.remove_runner(runner, "ephemeral")
        self.changed.notify_all()

    # what the control API shows
    def show_runner(self, r):
        out = {k: r[k] for k in ("id", "name", "entity", "group_id", "flow", "version", "ephemeral", "disable_update", "labels", "os",
                                 "client_id", "replaced")}
        out["online"] = self.online(r)
        out["busy"] = self.busy(r)
        out["session"] = r["session"]["id"] if r["session"] else None
        return out

    def snapshot(self, log_from=0):
        with self.lock:
            return {"runners": [self.show_runner(r) for r in self.runners.values()], "removed": list(self.removed),
                    "jobs": [dict(j) for j in self.jobs], "violations": list(self.violations), "log": [dict(x) for x in self.log[log_from:]],
                    "tls_errors": list(self.tls_errors), "connections": self.connections, "fired": self.faults.fired}


def version_tuple(text):
    return tuple(int(x) for x in text.split(".")) if re.fullmatch(r"\d+\.\d+\.\d+", text) else (0,)
