"""The control API: one JSON object a line over a unix socket, listening sockets travel beside it. ``Hub`` is the client."""
import array
import json
import os
import socket
import subprocess
import sys
import threading
import time

from . import rest, routes
from .certs import CA
from .wire import Listener, tls_context
from .world import World


class Server:
    """All worlds of one process. ``route`` and ``answer`` are what ``wire`` asks."""

    def __init__(self, folder):
        self.ca = CA(folder)
        self.tls = tls_context(*self.ca.leaf("server"))
        self.worlds = {}
        self.count = 0
        self.lock = threading.Lock()
        self.route = routes.route
        self.answer = routes.answer

    def make_spares(self, n):
        while len(rest.SPARE) < n:
            rest.SPARE.append(rest.rsa.generate_private_key(public_exponent=65537, key_size=2048))

    # operations; each takes the world and the message's arguments
    def do(self, msg, fds):
        op = msg.pop("op")
        if op == "new":
            with self.lock:
                self.count += 1
                world = World(self.count)
                self.worlds[self.count] = world
            world.set.update(msg.get("set", {}))
            return {"world": world.ident, "ca": self.ca.path}
        if op == "spares":
            self.make_spares(msg["n"])
            return {}
        world = self.worlds[msg.pop("world")]
        return getattr(self, "op_" + op)(world, fds=fds, **msg) if op == "listen" else getattr(self, "op_" + op)(world, **msg)

    def op_listen(self, world, fds):
        for fd in fds:
            Listener(self, world, socket.socket(fileno=fd)).start()
        return {"listening": len(fds)}

    def op_set(self, world, **values):
        with world.lock:
            for key, value in values.items():
                if key not in world.set:
                    raise KeyError("no setting %s" % key)
                world.set[key] = value
        return {}

    def op_attr(self, world, name, value):
        with world.lock:
            getattr(world, name)
            setattr(world, name, set(value) if name in ("entities", "ghes") else value)
        return {}

    def op_snapshot(self, world, log_from=0):
        return world.snapshot(log_from)

    def op_wait(self, world, what, timeout, **args):
        """Blocks until the condition holds; returns whether it did, with a snapshot."""
        conditions = {"online": lambda: any(world.online(r) for r in world.runners.values()),
                      "registered": lambda: bool(world.runners),
                      "none": lambda: not world.runners,
                      "step": lambda: sum(1 for x in world.log if x["step"] == args["step"]) >= args.get("count", 1),
                      "processed": lambda: sum(1 for x in world.log if x["step"] == args["step"] and x["processed"]) >= args.get("count", 1),
                      "running": lambda: any(j["state"] == "running" for j in world.jobs),
                      "jobs_done": lambda: all(j["state"] == "completed" for j in world.jobs)}
        test = conditions[what]
        end = time.monotonic() + timeout
        with world.lock:
            while not test():
                left = end - time.monotonic()
                if left <= 0 or world.closed:
                    return {"ok": False}
                world.changed.wait(min(left, 0.05))
        return {"ok": True}

    def op_token(self, world, entity, kind="registration", ttl=3600):
        return {"token": world.mint(entity, kind, ttl)}

    def op_pat(self, world, token, scopes, entities=None, ttl=None):
        with world.lock:
            world.pats[token] = {"scopes": scopes, "entities": entities, "expires": None if ttl is None else world.now() + ttl}
        return {}

    def op_app(self, world, id, client_id, public_pem, installations):
        with world.lock:
            world.apps[str(id)] = {"id": id, "client_id": client_id, "public": rest.load_public(public_pem), "installations": installations}
        return {}

    def op_job(self, world, **spec):
        return {"id": world.add_job(spec)["id"]}

    def op_order(self, world, type, body, runner=None):
        with world.lock:
            world.orders.append({"type": type, "body": body, "runner": runner})
            world.changed.notify_all()
        return {}

    def op_fault(self, world, **rule):
        with world.lock:
            world.faults.add(rule)
        return {}

    def op_chaos(self, world, **args):
        with world.lock:
            world.faults.chaos(**args)
        return {}

    def op_no_faults(self, world):
        with world.lock:
            world.faults.clear()
        return {}

    def op_advance(self, world, seconds):
        world.advance(seconds)
        return {}

    def op_expire_registration_tokens(self, world):
        """Registration and removal tokens and tenant bearers end now; the agents' own tokens live on."""
        with world.lock:
            for record in list(world.tokens.values()) + list(world.bearers.values()):
                record["expires"] = 0
        return {}

    def op_runner(self, world, entity, name, online=False, busy=False, **args):
        with world.lock:
            runner = world.add_runner(entity, name, **args)
            if online:
                runner["session"] = {"id": "held", "owner": "somebody else", "seen": world.now(), "polling": True, "acked": 0, "sent": 0}
            if busy:
                job = world.add_job({"name": "held", "runner": name})
                job.update(state="running", runner=runner["id"], locked_until=world.now() + 600)
                runner["job"] = job
            return {"id": runner["id"]}

    def op_jit(self, world, entity, name, web="github.com", group_id=1, labels=("self-hosted",), work="_work"):
        place = routes.hosted() if web == "github.com" else routes.residency(web[:-8]) if web.endswith(".ghe.com") else routes.ghes(web)
        with world.lock:
            runner, encoded = rest.make_jit(world, place, entity, name, group_id, list(labels), work)
        return {"id": runner["id"], "config": encoded}

    def op_remove(self, world, id, how="operator"):
        with world.lock:
            world.remove_runner(world.runners[id], how)
        return {}

    def op_close(self, world):
        with world.lock:
            world.closed = True
            world.changed.notify_all()
        self.worlds.pop(world.ident, None)
        return {}

    # transport
    def serve_client(self, sock):
        buf, fds = b"", []
        try:
            while True:
                data, anc, _, _ = sock.recvmsg(65536, socket.CMSG_SPACE(16 * 4))
                for level, kind, payload in anc:
                    if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                        a = array.array("i")
                        a.frombytes(payload[:len(payload) - len(payload) % a.itemsize])
                        fds.extend(a)
                if not data:
                    return
                buf += data
                while b"\n" in buf:
                    line, _, buf = buf.partition(b"\n")
                    try:
                        answer = {"ok": True}
                        answer.update(self.do(json.loads(line), fds))
                    except Exception as why:  # the caller learns what went wrong
                        answer = {"ok": False, "error": "%s: %s" % (type(why).__name__, why)}
                    fds = []
                    sock.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass
        finally:
            sock.close()

    def serve(self, sock):
        while True:
            conn, _ = sock.accept()
            threading.Thread(target=self.serve_client, args=(conn,), daemon=True).start()


class Hub:
    """Client of the control API; ``Hub.start`` also runs the server process and ends it in ``stop``."""

    def __init__(self, path, process=None):
        self.path = path
        self.process = process
        self.local = threading.local()

    @classmethod
    def start(cls, folder):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "control")
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        log = open(os.path.join(folder, "server.log"), "wb")
        process = subprocess.Popen([sys.executable, "-m", "github", "--folder", folder, "--control", path], cwd=here, stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        end = time.monotonic() + 20
        while True:
            try:
                probe = socket.socket(socket.AF_UNIX)
                probe.connect(path)
                probe.close()
                return cls(path, process)
            except OSError:
                probe.close()
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("the test GitHub did not start: " + open(os.path.join(folder, "server.log")).read())
                time.sleep(0.01)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)

    def call(self, op, fds=(), **args):
        # one connection a thread: a blocking wait in one must not hold up another
        sock = getattr(self.local, "sock", None)
        if sock is None:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(self.path)
            self.local.sock = sock
            self.local.file = sock.makefile("rb")
        data = json.dumps(dict(args, op=op)).encode() + b"\n"
        if fds:
            socket.send_fds(sock, [data], list(fds))
        else:
            sock.sendall(data)
        answer = json.loads(self.local.file.readline())
        if "error" in answer:
            raise RuntimeError("test GitHub, %s: %s" % (op, answer["error"]))
        return answer

    def world(self, **settings):
        return WorldClient(self, self.call("new", set=settings))


class WorldClient:
    """One world, by its operations: every ``op_NAME`` of ``Server`` is a method here."""

    def __init__(self, hub, made):
        self.hub = hub
        self.ident = made["world"]
        self.ca = made["ca"]

    def __getattr__(self, op):
        if op.startswith("_"):
            raise AttributeError(op)

        def call(**args):
            return self.hub.call(op, world=self.ident, **args)
        return call

    def listen(self, fds):
        return self.hub.call("listen", fds=fds, world=self.ident)

    def mint(self, entity, kind="registration", ttl=3600):
        return self.hub.call("token", world=self.ident, entity=entity, kind=kind, ttl=ttl)["token"]

    def wait_for(self, what, timeout=45, **args):
        return self.hub.call("wait", world=self.ident, what=what, timeout=timeout, **args)["ok"]

    def runners(self):
        return self.snapshot()["runners"]

    def log(self):
        return self.snapshot()["log"]

    def steps(self):
        """Steps of the log without the listener's own calls."""
        own = ("broker", "oauth", "job", "v1.session", "v1.message")
        return [x["step"] for x in self.log() if x["step"] is None or not x["step"].startswith(own)]
