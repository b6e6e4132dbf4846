"""The other side of the network tests: certificates of our own, servers that misbehave on purpose, and the driver binary."""
import datetime
import ipaddress
import json
import os
import select
import socket
import ssl
import struct
import subprocess
import threading
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETCLI = os.environ.get("NETCLI", os.path.join(ROOT, "build", "check", "netcli"))
SLACK_MS = 1000  # "no case hangs past its deadline + 1 s"


# ---- certificates ------------------------------------------------------------------------------------------------

def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0, tzinfo=None)


def days(n):
    return datetime.timedelta(days=n)


class Authority:
    """A CA. ``issue`` writes NAME.pem (chain) and NAME.key and gives their paths."""

    def __init__(self, folder, name="Test Root", parent=None, key=None):
        self.folder, self.name, self.parent = folder, name, parent
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.cert = self._sign(self.key.public_key(), [], ca=True, subject=name)
        self.file = os.path.join(folder, name.replace(" ", "-") + ".pem")
        with open(self.file, "wb") as f:
            f.write(self.cert.public_bytes(serialization.Encoding.PEM))

    def _sign(self, public, names, ca=False, subject=None, start=None, end=None, digest=None, self_signed=None, usage=None):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject or names[0])])
        if self_signed:
            issuer, key = subject, self_signed
        elif ca:
            issuer = self.parent.cert.subject if self.parent else subject
            key = self.parent.key if self.parent else self.key
        else:
            issuer, key = self.cert.subject, self.key
        b = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
             .serial_number(x509.random_serial_number()).not_valid_before(start or now() - days(2))
             .not_valid_after(end or now() + days(30)).add_extension(x509.BasicConstraints(ca, None), True))
        if names:
            b = b.add_extension(x509.SubjectAlternativeName([self._san(n) for n in names]), False)
        if usage:
            b = b.add_extension(x509.ExtendedKeyUsage(usage), False)
        return b.sign(key, digest or hashes.SHA256())

    @staticmethod
    def _san(name):
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    def issue(self, file, names=("localhost", "127.0.0.1", "::1"), bits=None, alone=False, chain=(), **how):
        key = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
        cert = self._sign(key.public_key(), list(names), self_signed=key if alone else None, **how)
        pem, private = os.path.join(self.folder, file + ".pem"), os.path.join(self.folder, file + ".key")
        with open(pem, "wb") as f:
            for c in [cert, *chain]:
                f.write(c.public_bytes(serialization.Encoding.PEM))
        with open(private, "wb") as f:
            f.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
                                      serialization.NoEncryption()))
        return pem, private


def server_context(pair, weak=False, **versions):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if weak:
        c.set_ciphers("DEFAULT:@SECLEVEL=0")
    c.load_cert_chain(*pair)
    for name, value in versions.items():
        setattr(c, name, value)
    return c


# ---- servers -----------------------------------------------------------------------------------------------------

class Peer:
    """Listens on a port of loopback and gives every connection, numbered from 0, to ``serve(sock, number)`` in a thread. ``tls``: an
    SSLContext; the handshake is made before ``serve`` is called, and a failing one is only recorded."""

    def __init__(self, serve, tls=None, host="127.0.0.1"):
        self.serve, self.tls, self.host = serve, tls, host
        self.count, self.errors, self.requests, self.reused = 0, [], [], []
        self.listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
        self.port = self.listener.getsockname()[1]
        self.open = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                number, self.count = self.count, self.count + 1
                self.open.add(s)
            threading.Thread(target=self._one, args=(s, number), daemon=True).start()

    def _one(self, s, number):
        raw = s
        try:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                s.settimeout(20)
                s = self.tls.wrap_socket(s, server_side=True, do_handshake_on_connect=False)
                try:
                    s.do_handshake()
                except OSError:
                    self.drain(s)
                    raise
                self.reused.append(s.session_reused)
            self.serve(s, number)
        except (OSError, ValueError) as e:
            self.errors.append(e)
        finally:
            with self.lock:
                self.open.discard(raw)
            for each in (s, raw):
                try:
                    each.close()
                except OSError:
                    pass

    @staticmethod
    def drain(s):
        """Reads until the client is gone, so that the alert reaches it and not a reset."""
        with socket.socket(fileno=os.dup(s.fileno())) as plain:
            plain.settimeout(5)
            while plain.recv(65536):
                pass

    def url(self, path="/", host=None):
        host = host or ("[%s]" % self.host if ":" in self.host else "localhost")
        return "%s://%s:%d%s" % ("https" if self.tls else "http", host, self.port, path)

    def close(self):
        self.listener.close()
        with self.lock:
            for s in list(self.open):
                try:
                    s.close()
                except OSError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def read_request(s):
    """(line, headers as a dict of lower-case names, body) or None at the end of the stream."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines[1:])}
    while len(body) < int(headers.get("content-length", 0)):
        body += s.recv(65536)
    return lines[0], headers, body


def answers(*texts, then="keep"):
    """serve() that answers the k-th request of a connection with the k-th text (the last one again after that)."""
    def serve(s, _number):
        k = 0
        while True:
            q = read_request(s)
            if q is None:
                return
            serve.requests.append(q)
            s.sendall(texts[min(k, len(texts) - 1)])
            k += 1
            if then == "close":
                return
    serve.requests = []
    return serve


def response(body=b'{"a":1}', status="200 OK", headers=()):
    lines = ["HTTP/1.1 " + status, "Content-Type: application/json", "Content-Length: %d" % len(body), *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def reset(s):
    """Closes with RST rather than FIN."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


class Relay(Peer):
    """Passes bytes to another port. ``cut(number)`` gives (bytes towards the client before the fault, fault), fault one of reset, close,
    stall, garbage, flip, or None for a faithful copy."""

    def __init__(self, port, cut, host="127.0.0.1", toward="client"):
        self.target, self.cut, self.toward = port, cut, toward
        super().__init__(self._relay, host=host)

    def _relay(self, client, number):
        # one thread for both directions: a socket that another thread reads from is not really closed by close()
        server = socket.create_connection(("127.0.0.1", self.target))
        budget, fault = self.cut(number)
        source = server if self.toward == "client" else client
        try:
            while True:
                for a in select.select([client, server], [], [], 60)[0]:
                    b = server if a is client else client
                    data = a.recv(65536)
                    if not data:
                        return
                    self.passed(data, a is source)
                    if a is source and fault:
                        if len(data) > budget:
                            if not self._break(fault, client, b, data, budget):
                                return
                            fault = None
                            continue
                        budget -= len(data)
                    b.sendall(data)
        finally:
            server.close()

    def passed(self, data, counted):
        """Sees every piece; for tests that count."""

    def _break(self, fault, client, to, data, keep):
        """The fault, after ``keep`` bytes of ``data``; true when the connection goes on."""
        to.sendall(data[:keep])
        if fault == "flip":
            to.sendall(bytes([data[keep] ^ 0x55]) + data[keep + 1:])
            return True
        if fault == "reset":
            reset(client)
        elif fault == "stall":
            self.wait_closed(client)
        elif fault == "garbage":
            to.sendall(os.urandom(max(64, len(data) - keep)))
            self.wait_closed(client)
        return False

    @staticmethod
    def wait_closed(s):
        """Until the client gives up, 30 s at most."""
        s.settimeout(30)
        try:
            while s.recv(65536):
                pass
        except OSError:
            pass


class Dns:
    """A DNS server on one loopback port, UDP and TCP. ``answer(name, qtype, tcp)`` gives a list of addresses, or one of "nxdomain",
    "servfail", "refused", "silent", "truncated", "lie" (wrong id), or ("after", seconds, answer)."""

    def __init__(self, answer, host="127.0.0.1"):
        self.answer, self.asked = answer, []
        for _ in range(20):
            self.tcp = socket.create_server((host, 0))
            self.port = self.tcp.getsockname()[1]
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self.udp.bind((host, self.port))
                break
            except OSError:
                self.tcp.close()
                self.udp.close()
        self.host = host
        threading.Thread(target=self._udp, daemon=True).start()
        threading.Thread(target=self._tcp, daemon=True).start()

    def conf(self, folder, extra="", name="resolv.conf"):
        path = os.path.join(str(folder), name)
        with open(path, "w") as f:
            f.write("# ours\nnameserver [%s]:%d\n%s" % (self.host, self.port, extra))
        return path

    def _reply(self, q, tcp):
        ident, at, labels = q[:2], 12, []
        while q[at]:
            labels.append(q[at + 1:at + 1 + q[at]].decode())
            at += 1 + q[at]
        qtype = struct.unpack(">H", q[at + 1:at + 3])[0]
        question = q[12:at + 5]
        name = ".".join(labels)
        self.asked.append((name, "AAAA" if qtype == 28 else "A", "tcp" if tcp else "udp"))
        a = self.answer(name, qtype, tcp)
        if isinstance(a, tuple):
            time.sleep(a[1])
            a = a[2]
        flags = {"nxdomain": 0x8183, "servfail": 0x8182, "refused": 0x8185, "truncated": 0x8380}.get(a, 0x8180) \
            if isinstance(a, str) else 0x8180
        if a == "silent":
            return None
        if a == "lie":
            ident = bytes([ident[0] ^ 1, ident[1]])
            a = ["203.0.113.9"]
        records = b""
        n = 0
        for ip in a if isinstance(a, list) else []:
            raw = ipaddress.ip_address(ip).packed
            if (len(raw) == 16) == (qtype == 28):
                records += b"\xc0\x0c" + struct.pack(">HHIH", qtype, 1, 60, len(raw)) + raw
                n += 1
        return ident + struct.pack(">HHHHH", flags, 1, n, 0, 0) + question + records

    def _udp(self):
        while True:
            try:
                q, who = self.udp.recvfrom(4096)
            except OSError:
                return
            threading.Thread(target=self._udp_one, args=(q, who), daemon=True).start()

    def _udp_one(self, q, who):
        r = self._reply(q, False)
        if r is not None:
            try:
                self.udp.sendto(r, who)
            except OSError:
                pass

    def _tcp(self):
        while True:
            try:
                s, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._tcp_one, args=(s,), daemon=True).start()

    def _tcp_one(self, s):
        try:
            data = s.recv(4096)
            while len(data) < 2 or len(data) < 2 + struct.unpack(">H", data[:2])[0]:
                data += s.recv(4096)
            r = self._reply(data[2:], True)
            if r is None:
                time.sleep(20)
            else:
                for i in range(0, len(r) + 2, 7):  # in pieces
                    s.sendall((struct.pack(">H", len(r)) + r)[i:i + 7])
        except OSError:
            pass
        finally:
            s.close()

    def close(self):
        self.udp.close()
        self.tcp.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ---- the driver --------------------------------------------------------------------------------------------------

class Result(list):
    """One dict per exchange; ``log``: what was written to stderr."""
    log = ""
    rc = 0

    @property
    def last(self):
        return self[-1]


def netcli(*args, env=None, limit_ms=None, prefix=(), pass_fds=(), binary=None):
    """Runs the driver. ``limit_ms``: fails when an exchange takes longer than that and a second."""
    e = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    for keep in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE", "GCOV_PREFIX", "GCOV_PREFIX_STRIP"):
        if keep in os.environ:
            e[keep] = os.environ[keep]
    e.update(env or {})
    p = subprocess.run([*prefix, binary or NETCLI, *[str(a) for a in args]], env=e, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=120, pass_fds=pass_fds)
    out = Result(json.loads(line) for line in p.stdout.decode().splitlines())
    out.log, out.rc = p.stderr.decode("utf-8", "replace"), p.returncode
    assert "Sanitizer" not in out.log and "runtime error" not in out.log, out.log
    assert p.returncode in (0, 1), (p.returncode, out, out.log)
    if limit_ms is not None:
        for r in out:
            assert r["took_ms"] <= limit_ms + SLACK_MS, r
    return out
