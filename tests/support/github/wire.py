"""HTTP/1.1 over TLS, one thread a connection; strict about what comes in, and able to break what goes out."""
import json
import os
import re
import secrets
import select
import socket
import ssl
import struct
import threading
import time
from email.utils import formatdate

from .faults import patch

HEAD_MAX = 64 * 1024
BODY_MAX = 1024 * 1024
BOM = b"\xef\xbb\xbf"


class Gone(Exception):
    """The peer went away, or a fault says that it did."""


class Request:
    def __init__(self, method, target, headers, conn):
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.headers = headers
        self.body = b""
        self.conn = conn
        self.host = (self.get("host") or "").lower()
        self.step = None
        self.violations = []
        self.detail = {}

    def get(self, name):
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    @property
    def scheme(self):
        return (self.get("authorization") or "").partition(" ")[0]


class Reply:
    def __init__(self, status, obj=None, headers=None, raw=None, ctype="application/json; charset=utf-8"):
        self.status = status
        self.obj = obj
        self.raw = raw
        self.ctype = ctype
        self.headers = dict(headers or {})
        self.service = False

    def data(self):
        if self.raw is not None:
            return self.raw
        return b"" if self.obj is None else json.dumps(self.obj).encode()


REASONS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 302: "Found", 400: "Bad Request", 401: "Unauthorized",
           403: "Forbidden", 404: "Not Found", 409: "Conflict", 422: "Unprocessable Entity", 429: "Too Many Requests",
           500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}


class Connection(threading.Thread):
    def __init__(self, server, world, sock, number):
        super().__init__(daemon=True)
        self.server = server
        self.world = world
        self.raw = sock
        self.sock = None
        self.number = number
        self.buf = b""

    # reading
    def fill(self, what):
        data = self.sock.recv(65536)
        if not data:
            if what == "idle" and not self.buf:
                raise Gone("closed")
            raise Gone("closed within a request")
        self.buf += data

    def read_request(self):
        while b"\r\n\r\n" not in self.buf:
            if len(self.buf) > HEAD_MAX:
                raise Gone("head too long")
            self.fill("idle")
        head, _, self.buf = self.buf.partition(b"\r\n\r\n")
        if b"\n" in head.replace(b"\r\n", b"") or b"\r" in head.replace(b"\r\n", b"") or b"\0" in head:
            raise ValueError("bare CR, LF or NUL in the head")
        lines = head.decode("latin-1").split("\r\n")
        m = re.fullmatch(r"([A-Z]+) (/[\x21-\x7e]*) HTTP/1\.1", lines[0])
        if m is None:
            raise ValueError("request line %r" % lines[0])
        headers = []
        for line in lines[1:]:
            h = re.fullmatch(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*(.*?)[ \t]*", line)
            if h is None:
                raise ValueError("header line %r" % line)
            headers.append((h.group(1), h.group(2)))
        req = Request(m.group(1), m.group(2), headers, self)
        length = req.get("content-length")
        if length is not None:
            if not re.fullmatch(r"\d{1,7}", length) or int(length) > BODY_MAX:
                raise ValueError("Content-Length %r" % length)
            while len(self.buf) < int(length):
                self.fill("body")
            req.body, self.buf = self.buf[:int(length)], self.buf[int(length):]
        return req

    def alive(self):
        """Is the client still there? It sends nothing while it waits, so anything readable is its farewell."""
        try:
            if self.buf or self.sock.pending():
                return False
            return not select.select([self.sock], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    # writing
    def reset(self):
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.sock.detach())
        except OSError:
            pass
        raise Gone("reset on order")

    def stall(self, seconds):
        end = time.monotonic() + (seconds if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) else 600)
        while time.monotonic() < end and not self.world.closed and self.alive():
            time.sleep(0.02)
        raise Gone("stalled on order")

    def send(self, req, reply, rule):
        data = reply.data()
        w = self.world
        if rule and "patch" in rule and reply.obj is not None:
            data = json.dumps(patch(json.loads(data), rule["patch"])).encode()
        if w.set["bom"] and data and reply.service and reply.raw is None:
            data = BOM + data
        headers = {"Date": formatdate(time.time() + w.set["date_offset"], usegmt=True), "Server": "github.com"}
        if data or reply.status not in (204, 304):
            headers["Content-Type"] = reply.ctype
        if reply.service:
            headers["ActivityId"] = req.detail["request_id"]
        else:
            headers["X-GitHub-Request-Id"] = req.detail["request_id"]
        headers.update(reply.headers)
        chunked = w.set["chunked"] and data and "truncate" not in (rule or {})
        if reply.status not in (204, 304):
            if chunked:
                headers["Transfer-Encoding"] = "chunked"
            else:
                headers["Content-Length"] = str(len(data))
        if w.set["close"] or (req.get("connection") or "").lower() == "close":
            headers["Connection"] = "close"
        head = "HTTP/1.1 %d %s\r\n" % (reply.status, REASONS.get(reply.status, "Unknown"))
        head += "".join("%s: %s\r\n" % kv for kv in headers.items()) + "\r\n"
        if reply.status in (204, 304):
            data = b""
        if chunked and data:
            pieces = [data[i:i + 61] for i in range(0, len(data), 61)]
            data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
        out = head.encode("latin-1") + data
        if rule and "truncate" in rule:
            self.sock.sendall(out[:rule["truncate"]])
            raise Gone("truncated on order")
        self.sock.sendall(out)
        if headers.get("Connection") == "close":
            raise Gone("closing")

    # one exchange
    def exchange(self, req):
        w = self.world
        entry = {"t": time.time(), "conn": self.number, "method": req.method, "host": req.host, "path": req.target,
                 "auth": req.scheme or None, "agent": req.get("user-agent"), "status": None, "step": None, "t_end": None,
                 "body": None, "fault": None, "processed": False}
        req.detail["request_id"] = ":".join(secrets.token_hex(2).upper() for _ in range(4)) + ":" + secrets.token_hex(4).upper()
        entry["request_id"] = req.detail["request_id"]
        target = self.server.route(w, req)
        entry["step"] = req.step
        if req.step not in (None, "oauth") and len(req.body) < 20000:
            entry["body"] = req.body.decode("utf-8", "replace")
        with w.lock:
            entry["n"] = len(w.log)
            w.log.append(entry)
            rule = w.faults.pick(req)
            w.changed.notify_all()
        try:
            self.obey(req, rule, target, entry)
        finally:
            entry["t_end"] = time.time()
            entry["violations"] = list(req.violations)
            with w.lock:
                w.changed.notify_all()

    def obey(self, req, rule, target, entry):
        rule = rule or {}
        entry["fault"] = {k: v for k, v in rule.items() if k not in ("times", "skip")} or None
        if rule.get("delay"):
            time.sleep(rule["delay"])
        if rule.get("reset") == "before":
            self.reset()
        if rule.get("stall") == "before":
            self.stall(rule.get("seconds"))
        lie = "status" in rule or "garbage" in rule
        reply = None
        if not lie or rule.get("process"):
            reply = self.server.answer(self.world, req, target)
            entry["processed"] = True
            entry["status"] = reply.status
            entry["step"] = req.step  # a handler may know better: an add that replaces
        if rule.get("delay_after"):
            time.sleep(rule["delay_after"])
        if rule.get("reset") == "after":
            self.reset()
        if rule.get("stall") == "after":
            self.stall(rule.get("seconds"))
        if "garbage" in rule:
            entry["status"] = "garbage"
            self.sock.sendall(rule["garbage"].encode("latin-1"))
            raise Gone("garbage on order")
        if "status" in rule:
            text = rule.get("body", "")
            if isinstance(text, (dict, list)):
                reply = Reply(rule["status"], obj=text, headers=rule.get("headers"))
            else:
                ctype = "text/html" if text.lstrip().startswith("<") else "application/json; charset=utf-8"
                reply = Reply(rule["status"], raw=text.encode(), headers=rule.get("headers"), ctype=ctype)
        entry["status"] = reply.status
        self.send(req, reply, rule)

    def run(self):
        w = self.world
        try:
            self.raw.settimeout(15)
            self.sock = self.server.tls.wrap_socket(self.raw, server_side=True)
        except (OSError, ssl.SSLError) as why:
            with w.lock:
                w.tls_errors.append(str(why))
                w.changed.notify_all()
            self.raw.close()
            return
        self.sock.settimeout(180)
        try:
            while not w.closed:
                try:
                    req = self.read_request()
                except ValueError as why:
                    with w.lock:
                        w.violations.append({"text": str(why), "step": None, "request": None})
                    self.sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    break
                self.exchange(req)
        except (Gone, OSError, ssl.SSLError):
            pass
        finally:
            try:
                self.sock.close()
            except OSError:
                pass


class Listener(threading.Thread):
    """Accepts on one socket for one world, until the world closes."""

    def __init__(self, server, world, sock):
        super().__init__(daemon=True)
        self.server = server
        self.world = world
        self.sock = sock

    def run(self):
        self.sock.settimeout(0.5)
        while not self.world.closed:
            try:
                conn, _ = self.sock.accept()
            except socket.timeout:
                continue
            except OSError:
                break
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.world.lock:
                self.world.connections += 1
                number = self.world.connections
            Connection(self.server, self.world, conn, number).start()
        self.sock.close()


def tls_context(cert, key):
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.minimum_version = ssl.TLSVersion.TLSv1_2
    ctx.load_cert_chain(cert, key)
    return ctx
