"""Every call that can fail, failing: memory and the system's calls, one after the other, in a whole exchange. Nothing may crash, leak, hang
or report success wrongly (the driver runs under the sanitizers)."""
import errno
import re

import pytest

from peer import Dns, Peer, answers, netcli, response, server_context


@pytest.fixture
def site(ca, made, tmp_path):
    """Everything at once: DNS, a proxy-less TLS service, two exchanges of which the second needs a new connection."""
    service = made(Peer(answers(response(b"x" * 3000, headers=["Connection: close"]), then="close"),
                        tls=server_context(ca.issue("s", names=["service.example"]))))
    dns = made(Dns(lambda name, qtype, tcp: (["127.0.0.1"] if qtype == 1 else []) if tcp else "truncated"))
    url = "https://service.example:%d/" % service.port
    return ["-x", 5000, "-R", dns.conf(tmp_path), "-T", "/dev/null", "-d", "hello", "POST", url, "POST", url]


def count(site, ca, call):
    r = netcli(*site, env={"SSL_CERT_FILE": ca.file, "NETFAIL_TELL": "1"})
    assert all(x["ok"] for x in r), r
    return int(re.search(r"^%s (\d+)$" % call, r.log, re.M).group(1))


def failing(site, ca, call, n, error, times=1):
    return netcli(*site, env={"SSL_CERT_FILE": ca.file, "NETFAIL": "%s:%d:%d:%d" % (call, n, error, times)}, limit_ms=5000)


def each(site, ca, call, first, step, many, error, times=1):
    """A client of its own for every moment of failure: [two results, ...]."""
    r = netcli("-n", 2, *site[:-4], *(site[-4:] * many),
               env={"SSL_CERT_FILE": ca.file, "NETFAIL": "%s:%d:%d:%d:%d" % (call, first, error, times, step)}, limit_ms=5000)
    assert len(r) == 2 * many
    return [(first + k // 2 * step, r[k:k + 2]) for k in range(0, 2 * many, 2)]


def test_memory_that_runs_out_at_any_moment(site, ca):
    total = count(site, ca, "calloc")
    assert total > 200
    outcomes = set()
    for n, results in each(site, ca, "calloc", 1, 1, 80, errno.ENOMEM) + each(site, ca, "calloc", 81, total // 120, 120, errno.ENOMEM):
        for r in results:
            outcomes.add("ok" if r["ok"] else r["code"])
            assert r["ok"] or (r["code"] in (69, 71, 78) and r["text"]), (n, r)
    assert {"ok", 69, 71} <= outcomes


def test_memory_that_runs_out_before_the_first_byte(site, ca):
    """What only happens once in a process: setting up the library."""
    for n in range(1, 9):
        r = failing(site, ca, "calloc", n, errno.ENOMEM)
        assert all(x["ok"] or x["code"] in (71, 78) for x in r), (n, r)


def test_memory_that_stays_out(site, ca):
    total = count(site, ca, "calloc")
    for n, results in each(site, ca, "calloc", 1, total // 50, 40, errno.ENOMEM, 10 ** 9):
        assert not results[1]["ok"] and results[1]["code"] in (69, 71, 78), (n, results)


@pytest.mark.parametrize("call,error,survives", [
    ("socket", errno.EMFILE, False), ("socket", errno.EAFNOSUPPORT, False), ("connect", errno.ENETUNREACH, False),
    ("connect", errno.EACCES, False), ("send", errno.EINTR, True), ("send", errno.EPIPE, False), ("send", errno.EAGAIN, True),
    ("recv", errno.EINTR, True), ("recv", errno.ECONNRESET, False), ("recv", errno.EAGAIN, True), ("poll", errno.EINTR, True),
    ("poll", errno.ENOMEM, True), ("getsockopt", errno.ENOBUFS, False)])
def test_a_call_that_fails_once_at_any_moment(site, ca, call, error, survives):
    total = count(site, ca, call)
    assert total > 0
    for n, results in each(site, ca, call, 1, 1, min(total, 70), error):
        for r in results:
            assert r["ok"] or (not survives and r["code"] in (69, 71)), (n, r)


def test_sockets_that_cannot_be_had_at_all(site, ca):
    r = failing(site, ca, "socket", 1, errno.EMFILE, 10 ** 9)
    assert all(not x["ok"] and x["code"] == 69 and x["stage"] == "resolve" for x in r)


def test_a_poll_that_keeps_failing_ends_with_the_deadline(site, ca):
    r = failing(site, ca, "poll", 1, errno.EINVAL, 10 ** 9)
    assert not r.last["ok"]


def test_without_the_kernels_random_bytes_there_is_no_tls(site, ca):
    r = failing(site, ca, "getrandom", 1, errno.ENOSYS, 10 ** 9)
    assert not r.last["ok"] and r.last["code"] == 71
