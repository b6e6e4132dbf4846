#!/usr/bin/python3
"""Every fault of the network with the message and the exit code that it gets. As a module: the list that test_faults.py runs. As a
program: prints the table "fault -> message -> exit code" for docs/faults.md, from the messages that the driver really gave."""
import os
import re
import shutil
import sys
import tempfile
import time

from cryptography.x509.oid import ExtendedKeyUsageOID

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peer  # noqa: E402
from peer import Dns, Peer, answers, days, netcli, now, read_request, reset, response, server_context  # noqa: E402

FAULTS = []


class Fault:
    def __init__(self, group, name, code, says, run):
        self.group, self.name, self.code, self.says, self.run = group, name, code, says, run


def fault(group, name, code, *says):
    """Registers a fault: its run(bench) gives the driver's result; the last exchange must fail with ``code`` and say every one of
    ``says``."""
    def wrap(run):
        FAULTS.append(Fault(group, name, code, says, run))
        return run
    return wrap


class Bench:
    """What a fault needs: a CA, servers that are closed at the end, a folder."""

    def __init__(self, folder):
        self.folder, self.servers = folder, []
        self.ca = peer.Authority(folder)
        self.pair = self.ca.issue("server")

    def keep(self, server):
        self.servers.append(server)
        return server

    def tls(self, serve, pair=None, **how):
        return self.keep(Peer(serve, tls=server_context(pair or self.pair, **how)))

    def plain(self, serve):
        return self.keep(Peer(serve))

    def cli(self, *args, env=None, ms=4000):
        return netcli("-x", ms, *args, env={"SSL_CERT_FILE": self.ca.file, **(env or {})}, limit_ms=ms)

    def get(self, server, **kw):
        return self.cli("GET", server.url(), **kw)

    def resolve(self, answer, ms=4000, host="service.example"):
        dns = self.keep(Dns(answer))
        return self.cli("-R", dns.conf(self.folder), "-T", "/dev/null", "GET", "https://%s/" % host, ms=ms)

    def close(self):
        for s in self.servers:
            s.close()
        self.servers = []


# ---- names ----

fault("DNS", "no such name", 69, "cannot resolve service.example: there is no such name (NXDOMAIN)",
      "resolv.conf")(lambda b: b.resolve(lambda *_: "nxdomain"))
fault("DNS", "a name without addresses", 69, "has no addresses")(lambda b: b.resolve(lambda *_: []))
fault("DNS", "the servers fail", 69, "answer with a failure")(lambda b: b.resolve(lambda *_: "servfail"))
fault("DNS", "the servers refuse", 69, "answer with a failure")(lambda b: b.resolve(lambda *_: "refused"))
fault("DNS", "the servers are silent", 69, "look-up of service.example", "do not answer", "within")(
    lambda b: b.resolve(lambda *_: "silent", ms=1500))
fault("DNS", "only answers to other questions come", 69, "do not answer")(lambda b: b.resolve(lambda *_: "lie", ms=1500))


@fault("DNS", "no server listens", 69, "no DNS server can be reached")
def _(b):
    path = os.path.join(b.folder, "dead.conf")
    with open(path, "w") as f:
        f.write("nameserver [127.0.0.1]:1\n")
    return b.cli("-R", path, "-T", "/dev/null", "GET", "https://service.example/")


# ---- connections ----

@fault("Connection", "nobody listens", 69, "cannot connect to 127.0.0.1:1", "Connection refused")
def _(b):
    return b.cli("GET", "https://127.0.0.1:1/")


@fault("Connection", "several addresses, none listens", 69, "127.0.0.2:1: Connection refused", "127.0.0.3:1: Connection refused")
def _(b):
    dns = b.keep(Dns(lambda n, t, tcp: ["127.0.0.2", "127.0.0.3"]))
    return b.cli("-R", dns.conf(b.folder), "-T", "/dev/null", "GET", "https://service.example:1/")


@fault("Connection", "closed at once", 69, "TLS with localhost", "closed the connection")
def _(b):
    return b.cli("GET", b.plain(lambda s, n: None).url().replace("http:", "https:"))


@fault("Connection", "reset during the handshake", 69, "TLS with localhost", "reset")
def _(b):
    def serve(s, _n):
        s.recv(10)
        reset(s)
    return b.cli("GET", b.plain(serve).url().replace("http:", "https:"))


@fault("Connection", "silent during the handshake", 69, "the TLS handshake with localhost", "did not end within", "INIT_HTTP_TIMEOUT")
def _(b):
    return b.cli("GET", b.plain(lambda s, n: time.sleep(8)).url().replace("http:", "https:"), ms=1000)


@fault("Connection", "silent instead of an answer", 69, "the answer of localhost", "did not end within")
def _(b):
    return b.get(b.tls(lambda s, n: time.sleep(8)), ms=1000)


@fault("Connection", "closed without an answer", 69, "closed the connection without an answer")
def _(b):
    def serve(s, _n):
        read_request(s)
        s.unwrap()
    return b.get(b.tls(serve))


@fault("Connection", "reset instead of an answer", 69, "the connection broke while waiting", "reset")
def _(b):
    def serve(s, _n):
        read_request(s)
        reset(s)
    return b.get(b.tls(serve))


@fault("Connection", "closed in the middle of the answer", 69, "before the end of the answer")
def _(b):
    def serve(s, _n):
        read_request(s)
        s.sendall(response(b"x" * 100)[:-50])
        s.unwrap()
    return b.get(b.tls(serve))


@fault("Connection", "cut off without the end of TLS", 69, "without ending TLS")
def _(b):
    def serve(s, _n):
        read_request(s)
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf")
    return b.get(b.tls(serve))


# ---- certificates ----

def certificate(name, code, *says, **how):
    versions = how.pop("server", {})
    bench = how.pop("bench", None)

    def run(b):
        kw = bench(b) if bench else {}
        return b.get(b.tls(answers(response()), b.ca.issue("odd", **{**how, **kw}), **versions))
    fault("Certificate", name, code, *says)(run)


DATES = ('subject "CN=', 'issuer "CN=', "valid 20")
certificate("expired", 69, "it has expired", "s after its end", *DATES, start=now() - days(30), end=now() - days(1))
certificate("not valid yet", 82, "not valid yet", "s before its first day", "set the clock", *DATES,
            start=now() + days(2), end=now() + days(30))
certificate("for another name", 69, "it is for another name: other.example, www.other.example", *DATES,
            names=("other.example", "www.other.example"))
certificate("self-signed", 69, "it is self-signed", "SSL_CERT_FILE", *DATES, alone=True)
certificate("weak key", 69, "too weak", "RSA key of 1024 bits", *DATES, bits=1024, server={"weak": True})
certificate("not for servers", 69, "not meant for servers", *DATES, usage=[ExtendedKeyUsageOID.CLIENT_AUTH])


@fault("Certificate", "of an unknown issuer", 69, "its issuer is unknown", "SSL_CERT_FILE", *DATES)
def _(b):
    other = peer.Authority(b.folder, "Other Root")
    return b.get(b.tls(answers(response()), other.issue("foreign")))


@fault("Certificate", "of an unknown root that is sent along", 69, "its chain ends in a root that is not among", *DATES)
def _(b):
    other = peer.Authority(b.folder, "Other Root")
    return b.get(b.tls(answers(response()), other.issue("foreign", chain=[other.cert])))


@fault("Certificate", "weak signature", 69, "too weak", *DATES)
def _(b):
    pair = openssl_sha1(b)
    return b.get(b.tls(answers(response()), pair, weak=True))


def openssl_sha1(b):
    """The cryptography package refuses to sign with SHA-1; the openssl program does it when asked to."""
    import subprocess
    key, csr, pem = (os.path.join(b.folder, "sha1." + x) for x in ("key", "csr", "pem"))
    ca_key = os.path.join(b.folder, "ca.key")
    with open(ca_key, "wb") as f:
        f.write(b.ca.key.private_bytes(peer.serialization.Encoding.PEM, peer.serialization.PrivateFormat.PKCS8,
                                       peer.serialization.NoEncryption()))
    run = dict(check=True, capture_output=True)
    subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", csr, "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], **run)
    subprocess.run(["openssl", "x509", "-req", "-in", csr, "-CA", b.ca.file, "-CAkey", ca_key, "-CAcreateserial", "-out", pem, "-days",
                    "9", "-sha1", "-copy_extensions", "copy"], **run)
    return pem, key


@fault("Certificate", "no CA bundle at the place that is named", 78, "SSL_CERT_FILE", "cannot open /nonexistent")
def _(b):
    return b.cli("GET", "https://localhost/", env={"SSL_CERT_FILE": "/nonexistent"})


@fault("Certificate", "a CA bundle without certificates", 78, "SSL_CERT_FILE", "holds no certificate")
def _(b):
    return b.cli("GET", "https://localhost/", env={"SSL_CERT_FILE": "/etc/hostname"})


# ---- TLS ----

@fault("TLS", "the server is older than TLS 1.2", 69, "TLS 1.2")
def _(b):
    return b.get(b.tls(answers(response()), weak=True, minimum_version=peer.ssl.TLSVersion.TLSv1,
                       maximum_version=peer.ssl.TLSVersion.TLSv1_1))


@fault("TLS", "the server wants a client certificate", 69, "it wants a client certificate")
def _(b):
    s = b.tls(answers(response()), verify_mode=peer.ssl.CERT_REQUIRED)
    s.tls.load_verify_locations(b.ca.file)
    return b.get(s)


@fault("TLS", "plain HTTP where TLS should be", 76, "with plain HTTP", "wrong port")
def _(b):
    return b.cli("GET", b.plain(lambda s, n: s.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")).url().replace("http:", "https:"))


@fault("TLS", "something else than TLS", 76, "does not speak TLS")
def _(b):
    return b.cli("GET", b.plain(lambda s, n: s.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 4)).url().replace("http:", "https:"))


# ---- answers ----

def answer(name, code, data, *says, **kw):
    fault("Answer", name, code, *says)(lambda b: b.get(b.tls(answers(data, then="close")), **kw))


def refused(name, head, *says):
    answer(name, 76, head, "did not answer in proper HTTP", *says)


refused("not HTTP", b"SSH-2.0-x\r\n\r\n", "the answer is not HTTP")
refused("HTTP/2", b"HTTP/2.0 200 OK\r\n\r\n", "version")
refused("bare line feeds", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bare line feed")
refused("folded header line", b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "folded")
refused("NUL in a header", b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", "NUL")
refused("bytes over 0x7f in a header", b"HTTP/1.1 200 OK\r\nA: \xe9\r\n\r\n", "over 0x7f")
refused("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "conflicting Content-Length")
refused("a length and a coding", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "beside")
refused("an unknown coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer coding")
refused("a broken chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed chunk size")
refused("a head without end", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 40000, "head")
refused("an upgrade", b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "protocol nobody asked for")
answer("a body over the limit", 76, b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", "larger than 4194304 bytes")
answer("a compressed body", 76, response(b"\x1f\x8b", headers=["Content-Encoding: gzip"]), "coding gzip")
answer("a redirect to another host", 76, response(b"", "302 Found", ["Location: https://portal.example/login"]),
       "redirects (302) to https://portal.example/login", "captive portal", "credentials are not sent there")
answer("a web page instead of data", 76,
       response(b"<html><head><title>Sign in to WiFi</title></head></html>", headers=["Server: portal/1", "Via: 1.1 gate"])
       .replace(b"application/json", b"text/html"), "a web page titled \"Sign in to WiFi\", server portal/1, via 1.1 gate",
       "captive portal")
answer("the clocks differ", 82, response(headers=["Date: Sun, 06 Nov 1994 08:49:37 GMT"]), "s ahead", "set one of the two")


@fault("Answer", "the clock is before the build's date", 82, "before this program was built", "set it")
def _(b):
    return b.cli("-b", int(time.time()) + 86400, "GET", "https://localhost/")


# ---- proxies ----

def through(b, serve, user="", target="https://service.example/", ms=4000):
    p = b.plain(serve)
    proxy = "http://%s127.0.0.1:%d" % (user, p.port)
    return b.cli("GET", target, env={"https_proxy": proxy, "http_proxy": proxy}, ms=ms)


def proxy(name, code, data, *says, **kw):
    fault("Proxy", name, code, *says)(lambda b: through(b, answers(data, then="close"), **kw))


AUTH = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n"
proxy("wants a credential", 77, AUTH, "the proxy 127.0.0.1:", "wants a credential (407, Negotiate)", "https_proxy")
proxy("refuses the credential", 77, AUTH, "refused the user name and password of https_proxy", user="me:secret@")
proxy("wants a credential, plain http", 77, AUTH, "wants a credential", "http_proxy", target="http://service.example/")
proxy("forbids the target", 69, b"HTTP/1.1 403 Forbidden\r\n\r\n", "refused CONNECT service.example:443 with status 403")
proxy("cannot reach the target", 69, b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "refused CONNECT service.example:443 with status 502")
proxy("is a portal", 76, b"HTTP/1.1 302 Found\r\nLocation: http://portal/\r\n\r\n", "redirect (302 to http://portal/)", "portal")
proxy("does not speak HTTP", 76, b"\x05\x00\r\n", "the proxy 127.0.0.1:", "did not answer in HTTP")
proxy("writes into the tunnel", 76, b"HTTP/1.1 200 OK\r\n\r\nhello", "bytes of its own")
proxy("closes", 69, b"", "closed the connection instead of answering CONNECT")
fault("Proxy", "is silent", 69, "the answer of the proxy 127.0.0.1", "did not end within")(
    lambda b: through(b, lambda s, n: time.sleep(8), ms=1000))
fault("Proxy", "cannot be connected to", 69, "cannot connect to 127.0.0.1:1")(
    lambda b: b.cli("GET", "https://service.example/", env={"https_proxy": "127.0.0.1:1"}))
fault("Proxy", "is not one", 78, "https_proxy is not a proxy", "only http:// and https://")(
    lambda b: b.cli("GET", "https://service.example/", env={"https_proxy": "socks5://127.0.0.1:1080"}))
fault("Proxy", "has a broken port", 78, "https_proxy is not a proxy", "host or port")(
    lambda b: b.cli("GET", "https://service.example/", env={"https_proxy": "http://me:secret@proxy:x"}))


# ---- repetition ----

@fault("Repetition", "a pause longer than what is left", 69, "status 429", "request AB:12", "it would work at 20", "are left")
def _(b):
    s = b.tls(answers(response(b"{}", "429 Too Many Requests", ["Retry-After: 300", "X-GitHub-Request-Id: AB:12"])))
    return b.cli("-r", "idempotent", "-t", 3000, "GET", s.url())


@fault("Repetition", "the rate limit is used up", 69, "status 403 (rate limited)", "it would work at 20")
def _(b):
    s = b.tls(answers(response(b"{}", "403 Forbidden", ["X-RateLimit-Remaining: 0", "X-RateLimit-Reset: %d" % (time.time() + 600)])))
    return b.cli("-r", "idempotent", "-t", 3000, "GET", s.url())


# ---- the table ----

DOCUMENT = os.path.join(peer.ROOT, "docs", "faults.md")
BEGIN, END = "<!-- network: from the tests, by tests/net/faults.py --write -->", "<!-- end of network -->"


def steady(text):
    """Without what differs from run to run."""
    for pattern, with_ in ((r"\b(localhost|127\.0\.0\.\d|\[::1\]):\d\d+", r"\1:PORT"), (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "DATE"),
                           (r"\b\d+ (m?s)\b", r"N \1"), (r"among the \d+", "among the N")):
        text = re.sub(pattern, with_, text)
    return text


def row(fault, result):
    message = steady(result["text"]).replace("|", "\\|").replace("<", "&lt;")
    return "| %s | %s | %d |" % (fault.name, message, result["code"])


def table():
    folder = tempfile.mkdtemp(prefix="faults-")
    lines, group = [], None
    try:
        for f in FAULTS:
            b = Bench(folder)
            r = f.run(b).last
            b.close()
            if f.group != group:
                group = f.group
                lines += ["", "### " + group, "", "| Fault | Message | Exit |", "| --- | --- | --- |"]
            lines.append(row(f, r))
    finally:
        shutil.rmtree(folder)
    return "\n".join(lines) + "\n"


def main():
    text = table()
    if sys.argv[1:] != ["--write"]:
        print(text)
        return
    with open(DOCUMENT, encoding="utf-8") as f:
        old = f.read()
    head, rest = old.split(BEGIN)
    with open(DOCUMENT, "w", encoding="utf-8") as f:
        f.write(head + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
