#!/usr/bin/python3
"""Writes the seed corpora of the network fuzz targets, from the cases that the tests name. They lie in the tree; this is how they were
made: tests/fuzz/make_net_corpus.py"""
import hashlib
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "net"))

import test_http  # noqa: E402


def write(target, seeds):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    for s in seeds:
        with open(os.path.join(folder, hashlib.sha256(s).hexdigest()[:16]), "wb") as f:
            f.write(s)


def split(data):
    head, _, body = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body


responses = [d for d, _ in test_http.BODIES] + list(test_http.AMBIGUOUS.values()) + [
    b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", b"HTTP/1.1 200 OK\r\ndate: Sunday, 06-Nov-94 08:49:37 GMT\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nDate: Sun Nov  6 08:49:37 1994\r\nConnection: keep-alive, x\r\n\r\n"]
write("net_response", [bytes([p]) + split(d)[0] for d in responses for p in (0, 255)])
write("net_chunked", [bytes([p]) + split(d)[1] for d in responses if b"hunked" in d for p in (0, 6)])
write("net_url", [s.encode() for s in (
    "https://github.com/o/r", "http://a:80/", "https://A.b.:8443/x?y#z", "https://[::1]:443/", "https://[2001:db8::1]", "https://1.2.3.4:1/",
    "https://127.1/", "https://user:pw@a/", "https://a/%41?b=c&d", "ftp://a", "https://a:99999/", "https://", "HTTPS://x_y-z.example/")])
write("net_proxy", [s.encode() for s in (
    "", "proxy:3128", "http://user:pass@proxy:3128/", "https://u%40x:p%3a@[::1]:443", " 10.0.0.1:3128\r\n", "socks5://x", "http://u:%zz@p",
    "user@proxy", "http://:@p", "http://proxy:x")])
write("net_noproxy", [("%s\n%s" % p).encode() for p in (
    ("https://a.example/", "example"), ("https://a.example:444/", ".example:444, *.x, 10.0.0.0/8"), ("https://10.1.2.3/", "10.0.0.0/8"),
    ("https://[fd00::1]/", "fd00::/8 [fd00::1]:443"), ("http://localhost/", ""), ("https://a.example/", "*"), ("https://10.1.2.3/", "10.1.2.3:443"),
    ("https://a/", "a:443,b:x,:443,."))])
write("net_resolvconf", [s.encode() for s in (
    "nameserver 10.0.0.1\nsearch a b.c\noptions ndots:5\n", "nameserver fe80::1%1\nnameserver [::1]:53 # x\ndomain d\n", "; x\n\n\r\n",
    "127.0.0.1 localhost host\n::1\thost ip6-host # c\n10.0.0.1 HOST", "nameserver [::1]:", "nameserver")])


def dns(qtype, flags, *records, name=b"\2ab\1c\0"):
    q = b"\x12\x34" + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + name + struct.pack(">HH", qtype, 1)
    return bytes([qtype == 1]) + q + b"".join(records)


def record(qtype, data, name=b"\xc0\x0c"):
    return name + struct.pack(">HHIH", qtype, 1, 60, len(data)) + data


write("net_dns", [
    dns(1, 0x8180, record(1, b"\x0a\0\0\1")), dns(28, 0x8180, record(28, b"\x20\1" + b"\0" * 14)), dns(1, 0x8183), dns(1, 0x8380),
    dns(1, 0x8180, record(5, b"\1x\xc0\x0c"), record(1, b"\x0a\0\0\1", b"\1x\2ab\1c\0"), record(1, b"\x0a\0\0\2")),
    dns(1, 0x8180, record(1, b"\x0a\0\0\1"))[:-3], dns(1, 0x0100), dns(1, 0x8180, name=b"\2AB\1C\0")])


def bundles():
    import tempfile
    import peer
    with tempfile.TemporaryDirectory() as d:
        a = peer.Authority(d)
        pem = open(a.file, "rb").read()
        rsa = open(a.issue("r", bits=2048)[0], "rb").read()
        return [pem, pem + rsa, b"# c\n" + pem.replace(b"\n", b"\r\n") + pem, pem[:-30],
                a.cert.public_bytes(peer.serialization.Encoding.DER), b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]


if not os.path.isdir(os.path.join(HERE, "corpus", "net_ca")):  # they differ each time
    write("net_ca", bundles())
