"""A fault at every byte of an exchange. test_bytes.py takes a sample of them, tests/long all."""
from peer import Peer, Relay, answers, netcli, server_context

BODY = b'{"id": 42, "name": "a runner"}'
ANSWER = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-GitHub-Request-Id: A:B\r\nTransfer-Encoding: chunked\r\n\r\n"
          b"10\r\n" + BODY[:16] + b"\r\n" + b"%x;x=y\r\n" % len(BODY[16:]) + BODY[16:] + b"\r\n0\r\nTrailer: x\r\n\r\n")
FAULTS = ["reset", "close", "stall", "garbage", "flip"]
BATCH = 60


def check(results, what, tls):
    """Whatever breaks, and where: the whole answer or a named failure with the right code, never half an answer."""
    for k, r in enumerate(results):
        where = (what, k, r)
        if r["ok"]:
            # over TLS no byte can change; over plain TCP a flipped one may be part of a name, a value, the body
            assert r["body"].encode() == BODY or (not tls and "flip" in what), where
        else:
            assert r["code"] in (69, 76), where
            assert r["text"] and r["stage"] in ("handshake", "send", "receive"), where
            assert not tls or r["sent"] == (r["stage"] in ("send", "receive")) or r["stage"] == "send", where


def run(ca, offsets, fault, tls, toward="client", ms=None):
    """One connection per offset; the fault comes after that many bytes."""
    # What can make one side wait for more (a stall, a length that became another) is waited out, so it gets a short ceiling.
    ms = ms or {"stall": 700, "garbage": 2500, "flip": 2500}.get(fault, 20000)
    server = Peer(answers(ANSWER), tls=server_context(ca.pair) if tls else None)
    out = []
    for at in range(0, len(offsets), BATCH):
        part = offsets[at:at + BATCH]
        relay = Relay(server.port, lambda n, part=part: (part[min(n, len(part) - 1)], fault), toward=toward)
        url = "%s://localhost:%d/" % ("https" if tls else "http", relay.port)
        # POST: sent once, so one connection each
        results = netcli("-x", ms, "-t", ms, *["POST", url] * len(part), env={"SSL_CERT_FILE": ca.file}, limit_ms=ms)
        relay.close()
        check(results, (fault, "tls" if tls else "plain", toward, part[0]), tls)
        assert len(results) == len(part)
        out += results
    server.close()
    return out


def length(ca, tls, toward="client"):
    """Bytes that flow in one faithful exchange."""
    total = [0]
    server = Peer(answers(ANSWER), tls=server_context(ca.pair) if tls else None)

    class Counting(Relay):
        def passed(self, data, counted):
            total[0] += len(data) if counted else 0
    relay = Counting(server.port, lambda n: (0, None), toward=toward)
    r = netcli("POST", "%s://localhost:%d/" % ("https" if tls else "http", relay.port), env={"SSL_CERT_FILE": ca.file})
    assert r.last["ok"], r
    relay.close()
    server.close()
    return total[0]
