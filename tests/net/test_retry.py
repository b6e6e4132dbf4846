"""Repetition as the table in net/retry.c has it, and leaving at once when told to finish."""
import os
import re
import threading
import time

import pytest

from peer import NETCLI, Dns, Peer, answers, netcli, read_request, reset, response, server_context

import json
import subprocess


def script(*steps):
    """serve() that takes one step per request over all connections: bytes to answer with, or a callable."""
    todo = list(steps)

    def serve(s, _n):
        while True:
            q = read_request(s)
            if q is None:
                return
            serve.requests.append((time.monotonic(), q[0]))
            step = todo.pop(0) if len(todo) > 1 else todo[0]
            if callable(step):
                step(s)
                return
            s.sendall(step)
    serve.requests = []
    return serve


def status(code, *headers):
    return response(b"{}", "%d x" % code, headers)


def close(s):
    pass


OK = response()


def name_of(step):
    """The same in every worker: a function's name, or the first line of an answer and its last header."""
    return step.__name__ if callable(step) else " ".join(step.decode().split("\r\n")[0::4])


@pytest.fixture
def run(cli, ca, made):
    def go(policy, *steps, method="POST", budget=9000):
        s = script(*steps)
        p = made(Peer(s, tls=server_context(ca.pair)))
        r = cli("-r", policy, "-t", budget, method, p.url(), limit_ms=budget)
        return r, s.requests
    return go


@pytest.mark.parametrize("step", [status(500), status(502), status(503), status(504), status(429), status(408), status(403, "Retry-After: 1"),
                                  status(403, "X-RateLimit-Remaining: 0"), close, reset], ids=name_of)
def test_an_idempotent_request_is_repeated_after(run, step):
    r, requests = run("idempotent", step, OK)
    assert r.last["ok"] and len(requests) == 2 and "retry 1 in" in r.log


@pytest.mark.parametrize("step", [status(400), status(404), status(409), status(410), status(422), status(501), status(505), status(301)],
                         ids=name_of)
def test_an_answer_is_an_answer(run, step):
    r, requests = run("idempotent", step, OK)
    assert r.last["ok"] and r.last["status"] != 200 and len(requests) == 1


@pytest.mark.parametrize("code", [401, 403])
def test_a_denial_is_tried_twice_more(run, code):
    r, requests = run("idempotent", status(code))
    assert r.last["ok"] and r.last["status"] == code and len(requests) == 3


@pytest.mark.parametrize("step", [status(503), status(429), status(403, "Retry-After: 1")], ids=name_of)
def test_an_add_is_repeated_when_the_server_says_that_it_did_nothing(run, step):
    r, requests = run("unsent", step, OK)
    assert r.last["ok"] and r.last["status"] == 200 and len(requests) == 2


@pytest.mark.parametrize("step", [status(500), status(502), status(504), status(408), status(401), close, reset, b"garbage\r\n"], ids=name_of)
def test_an_add_is_never_repeated_when_it_may_have_worked(run, step):
    r, requests = run("unsent", step, OK)
    assert len(requests) == 1
    assert r.last.get("status") in (500, 502, 504, 408, 401) or r.last["sent"]


@pytest.mark.parametrize("step", [status(503), status(500), close], ids=name_of)
def test_once_is_once(run, step):
    r, requests = run("once", step, OK)
    assert len(requests) == 1


def test_an_add_is_repeated_while_nothing_was_sent(cli, ca, made):
    """The first connections break in the handshake."""
    s = answers(OK)

    class Shaky(Peer):
        def _one(self, sock, number):
            if number < 2:
                reset(sock)
            else:
                super()._one(sock, number)
    p = made(Shaky(s, tls=server_context(ca.pair)))
    r = cli("-r", "unsent", "-t", 15000, "POST", p.url(), limit_ms=15000)
    assert r.last["ok"] and len(s.requests) == 1 and r.log.count("retry") == 2


def test_pauses_grow_and_vary(run):
    r, requests = run("idempotent", status(502), budget=12000)
    gaps = [b[0] - a[0] for a, b in zip(requests, requests[1:])]
    assert r.last["ok"] and r.last["status"] == 502, "the last answer is the caller's"
    assert 3 <= len(requests) <= 6
    for k, gap in enumerate(gaps):
        assert gap >= 0.5 * 2 ** k
    told = [int(x) for x in re.findall(r"in (\d+) ms", r.log)]
    assert len(told) == len(gaps) and all(500 * 2 ** k <= ms <= 1000 * 2 ** k for k, ms in enumerate(told))


@pytest.mark.parametrize("header", ["Retry-After: 2", None])
def test_the_servers_pause_is_kept(run, header):
    header = header or time.strftime("Retry-After: %a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3))
    r, requests = run("idempotent", status(429, header), OK)
    assert r.last["ok"] and requests[1][0] - requests[0][0] >= 1.9
    assert "status 429 (rate limited)" in r.log


def test_the_rate_limits_reset_is_waited_for(run):
    r, requests = run("idempotent", status(403, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: %d" % (time.time() + 3)), OK)
    assert r.last["ok"] and r.last["status"] == 200 and requests[1][0] - requests[0][0] >= 1


@pytest.mark.parametrize("headers", [["Retry-After: soon"], ["Retry-After: -1"], ["X-RateLimit-Reset: x", "X-RateLimit-Remaining: 0"],
                                     ["Retry-After: Thu, 01 Jan 1970 00:00:00 GMT"]])
def test_a_pause_that_is_none_is_not_one(run, headers):
    r, requests = run("idempotent", status(429, *headers), OK)
    assert r.last["ok"] and len(requests) == 2 and r.last["took_ms"] < 8000


def test_a_pause_longer_than_what_is_left_ends_at_once(run):
    r, requests = run("idempotent", status(429, "Retry-After: 3600", "X-GitHub-Request-Id: AB:CD"), budget=60000)
    assert r.last["code"] == 69 and r.last["took_ms"] < 10000 and len(requests) == 1
    assert re.search(r"request AB:CD: it would work at \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, in 3[67]\d\d s, and only \d+ s are left", r.last["text"])


def test_the_log_names_status_request_and_pause(run):
    r, _ = run("idempotent", status(502, "X-GitHub-Request-Id: 8C61:1E"), OK)
    assert re.search(r"retry 1 in \d+ ms: status 502 \(server error\), request 8C61:1E", r.log)


def test_a_missing_name_is_not_waited_for_through_the_whole_budget(cli, made, tmp_path):
    dns = made(Dns(lambda *_: "nxdomain"))
    r = cli("-r", "idempotent", "-t", 60000, "-R", dns.conf(tmp_path), "-T", "/dev/null", "GET", "https://service.example/")
    assert r.last["no_name"] and r.log.count("retry") == 4 and r.last["took_ms"] < 40000


def test_a_service_that_comes_up_late_is_reached(cli, ca):
    """Nothing listens for the first three seconds."""
    import socket
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    late = []

    def begin():
        p = Peer.__new__(Peer)
        p.serve, p.tls, p.host, p.count, p.errors, p.reused, p.open = answers(OK), server_context(ca.pair), "127.0.0.1", 0, [], [], set()
        p.lock = threading.Lock()
        p.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=p._accept, daemon=True).start()
        late.append(p)
    threading.Timer(3, begin).start()
    r = cli("-r", "unsent", "-t", 20000, "POST", "https://localhost:%d/" % port, limit_ms=20000)
    for p in late:
        p.close()
    assert r.last["ok"] and "Connection refused" in r.log


def test_the_deadline_holds_over_all_attempts(run):
    def stall(s):
        time.sleep(20)
    r, _ = run("idempotent", stall, budget=3000)
    assert r.last["code"] == 69 and r.last["timeout"]


# ---- stop ----

def cancelled_during(ca, args, env=None, wait=None):
    """Starts the driver with a cancel pipe, waits until ``wait`` says so, cancels; the result and how long it took to leave (s)."""
    r, w = os.pipe()
    p = subprocess.Popen([NETCLI, "-c", str(r), *[str(a) for a in args]], env={"SSL_CERT_FILE": ca.file, **(env or {})},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(r,))
    end = time.monotonic() + 30
    while not wait() and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.1)
    began = time.monotonic()
    os.write(w, b"x")
    out, err = p.communicate(timeout=30)
    took = time.monotonic() - began
    os.close(r)
    os.close(w)
    assert b"Sanitizer" not in err, err
    return json.loads(out.splitlines()[-1]), took


def hang(s, _n=0):
    time.sleep(20)


def test_told_to_finish_it_leaves_every_state_at_once(ca, made, tmp_path):
    dns = made(Dns(lambda *_: "silent"))
    deaf = made(Peer(hang))
    mute = made(Peer(hang, tls=server_context(ca.pair)))

    def half(s, _n):
        read_request(s)
        s.sendall(OK[:-3])
        hang(s)
    halfway = made(Peer(half, tls=server_context(ca.pair)))
    busy = made(Peer(answers(status(503, "Retry-After: 20")), tls=server_context(ca.pair)))
    full = made(Peer(lambda s, n: hang(s)))
    cases = {
        "resolve": (["-R", dns.conf(tmp_path), "-T", "/dev/null", "GET", "https://service.example/"], None, lambda: dns.asked),
        "proxy": (["GET", "https://service.example/"], {"https_proxy": "127.0.0.1:%d" % deaf.port}, lambda: deaf.count),
        "handshake": (["GET", full.url().replace("http:", "https:")], None, lambda: full.count),
        "receive": (["POST", mute.url()], None, lambda: mute.reused),
        "receive, half": (["POST", halfway.url()], None, lambda: halfway.reused),
        "pause": (["-r", "idempotent", "-t", 60000, "GET", busy.url()], None, lambda: busy.reused),
    }
    for name, (args, env, wait) in cases.items():
        r, took = cancelled_during(ca, args, env, wait)
        assert r["cancelled"] and "told to finish" in r["text"], (name, r)
        assert took < 5, (name, took)
        if name.split(",")[0] in ("resolve", "proxy", "handshake", "receive"):
            assert r["stage"] == name.split(",")[0], (name, r)
        assert r["sent"] is name.startswith("receive"), (name, r)


def test_told_before_it_begins_it_does_not_begin(ca, made):
    p = made(Peer(answers(OK), tls=server_context(ca.pair)))
    r, w = os.pipe()
    os.close(w)
    out = netcli("-c", r, "GET", p.url(), env={"SSL_CERT_FILE": ca.file}, pass_fds=(r,)).last
    os.close(r)
    assert out["cancelled"] and not out["sent"]
