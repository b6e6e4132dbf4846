"""The resolver: files, search lists, several servers, answers that come late, twice, in pieces or from a liar."""
import socket
import struct
import threading
import time

import pytest

from peer import Dns, Peer, answers, response


@pytest.fixture
def site(made):
    """A plain server on 127.0.0.1 and ::1 of the same port."""
    p = made(Peer(answers(response())))
    return p


def ask(cli, conf, site, host="service.example", hosts="/dev/null", ms=4000):
    return cli("-x", ms, "-R", conf, "-T", hosts, "GET", "http://%s:%d/" % (host, site.port), limit_ms=ms).last


def zone(**names):
    """Answers from {"name_with_underscores": [addresses]}; the rest does not exist."""
    table = {k.replace("_", "."): v for k, v in names.items()}
    return lambda name, qtype, tcp: [a for a in table[name.lower()] if (":" in a) == (qtype == 28)] if name.lower() in table else "nxdomain"


def test_literals_need_no_resolver(cli, site):
    r = cli("-R", "/nonexistent", "-T", "/nonexistent", "GET", "http://127.0.0.1:%d/" % site.port).last
    assert r["ok"]


def test_an_ipv6_literal_is_reached(cli, made):
    p = made(Peer(answers(response()), host="::1"))
    assert cli("GET", p.url()).last["ok"]


def test_localhost_needs_no_resolver(cli, site):
    for name in ("localhost", "x.localhost"):
        assert cli("-R", "/nonexistent", "-T", "/dev/null", "GET", "http://%s:%d/" % (name, site.port)).last["ok"]


def test_the_hosts_file_comes_first(cli, site, made, tmp_path):
    dns = made(Dns(zone()))
    hosts = tmp_path / "hosts"
    hosts.write_text("# x\n127.0.0.1 other Service.Example\n")
    assert ask(cli, dns.conf(tmp_path), site, hosts=str(hosts))["ok"]
    assert dns.asked == []


def test_both_families_are_asked_at_once(cli, site, made, tmp_path):
    dns = made(Dns(zone(service_example=["127.0.0.1"])))
    assert ask(cli, dns.conf(tmp_path), site)["ok"]
    assert sorted(dns.asked) == [("service.example", "A", "udp"), ("service.example", "AAAA", "udp")]


def test_a_name_with_a_dot_is_asked_as_it_is_and_then_with_the_search_list(cli, site, made, tmp_path):
    dns = made(Dns(zone(git_internal_svc_cluster=["127.0.0.1"])))
    assert ask(cli, dns.conf(tmp_path, "search ns.svc.cluster svc.cluster\noptions ndots:5\n"), site, host="git.internal")["ok"]
    order = list(dict.fromkeys(q[0] for q in dns.asked))
    assert order == ["git.internal", "git.internal.ns.svc.cluster", "git.internal.svc.cluster"]


def test_a_name_without_a_dot_is_asked_with_the_search_list_first(cli, site, made, tmp_path):
    dns = made(Dns(zone(ghes=["127.0.0.1"])))
    assert ask(cli, dns.conf(tmp_path, "search corp.example\n"), site, host="ghes")["ok"]
    assert list(dict.fromkeys(q[0] for q in dns.asked)) == ["ghes.corp.example", "ghes"]


def test_search_domains_that_make_the_name_too_long_are_left_out(cli, site, made, tmp_path):
    dns = made(Dns(zone()))
    r = ask(cli, dns.conf(tmp_path, "search %s\n" % ".".join(["x" * 60] * 4)), site, host="a" * 60)
    assert r["no_name"] and {q[0] for q in dns.asked} == {"a" * 60}


def test_a_dead_first_server_costs_a_moment_only(cli, site, made, tmp_path):
    dns = made(Dns(zone(service_example=["127.0.0.1"])))
    silent = made(Dns(lambda *_: "silent"))
    conf = tmp_path / "two.conf"
    conf.write_text("nameserver [127.0.0.1]:%d\nnameserver [127.0.0.1]:1\nnameserver [127.0.0.1]:%d\n" % (silent.port, dns.port))
    r = ask(cli, str(conf), site)
    assert r["ok"] and r["took_ms"] >= 500


def test_a_failing_first_server_hands_over_at_once(cli, site, made, tmp_path):
    good, bad = made(Dns(zone(service_example=["127.0.0.1"]))), made(Dns(lambda *_: "servfail"))
    conf = tmp_path / "two.conf"
    conf.write_text("nameserver [127.0.0.1]:%d\nnameserver [127.0.0.1]:%d\n" % (bad.port, good.port))
    assert ask(cli, str(conf), site)["ok"]
    assert len(good.asked) == 2


def test_a_lost_question_is_asked_again(cli, site, made, tmp_path):
    seen = []

    def answer(name, qtype, tcp):
        seen.append(qtype)
        return "silent" if len(seen) <= 2 else [] if qtype == 28 else ["127.0.0.1"]
    dns = made(Dns(answer))
    r = ask(cli, dns.conf(tmp_path), site)
    assert r["ok"] and r["took_ms"] >= 1000 and len(seen) == 4


def test_a_server_that_recovers_within_the_budget_is_enough(cli, site, made, tmp_path):
    began = time.monotonic()
    dns = made(Dns(lambda name, qtype, tcp: "silent" if time.monotonic() - began < 2 else [] if qtype == 28 else ["127.0.0.1"]))
    assert ask(cli, dns.conf(tmp_path), site, ms=9000)["ok"]


def test_a_liars_answer_is_waited_out(cli, site, made, tmp_path):
    """A forged answer with a wrong id comes first, the real one after it."""
    dns = made(Dns(zone(service_example=["127.0.0.1"])))
    proper = dns._reply

    def both(q, tcp):
        forged = bytes([q[0] ^ 0xFF]) + proper(q, tcp)[1:]
        with dns.lock_for_test:
            dns.udp.sendto(forged, dns.who)
        time.sleep(0.1)
        return proper(q, tcp)
    dns.lock_for_test = threading.Lock()
    one = dns._udp_one

    def udp_one(q, who):
        dns.who = who
        one(q, who)
    dns._udp_one, dns._reply = udp_one, both
    assert ask(cli, dns.conf(tmp_path), site)["ok"]


def test_sixty_addresses_over_tcp_are_enough(cli, site, made, tmp_path):
    many = ["127.0.0.%d" % n for n in range(1, 61)]
    dns = made(Dns(lambda name, qtype, tcp: (many if qtype == 1 else []) if tcp else "truncated"))
    assert ask(cli, dns.conf(tmp_path), site)["ok"]
    assert {q[2] for q in dns.asked} == {"udp", "tcp"}


class HalfDns(Dns):
    """Cuts its UDP answers after one record and does not serve TCP."""

    def __init__(self):
        super().__init__(lambda name, qtype, tcp: ["127.0.0.1", "127.0.0.2"] if qtype == 1 else [])
        self.tcp.close()

    def _reply(self, q, tcp):
        r = super()._reply(q, tcp)
        ident, flags = r[:2], struct.unpack(">H", r[2:4])[0] | 0x0200
        return ident + struct.pack(">H", flags) + r[4:-9]


def test_the_part_that_fitted_is_used_when_tcp_fails(cli, site, made, tmp_path):
    dns = made(HalfDns())
    assert ask(cli, dns.conf(tmp_path), site)["ok"]


@pytest.mark.parametrize("reply", [b"", b"\0", b"\0\5hello", b"\xff\xff" + b"x" * 100, b"\0\x0c" + b"\0" * 12])
def test_broken_answers_over_tcp_are_a_failing_server(cli, site, made, tmp_path, reply):
    dns = made(Dns(lambda name, qtype, tcp: "truncated"))
    dns._tcp_one = lambda s: (s.recv(999), s.sendall(reply), s.close())
    r = ask(cli, dns.conf(tmp_path), site, ms=6000)
    assert (r["ok"], r["code"], r["stage"]) == (False, 69, "resolve")
    assert "answer with a failure" in r["text"], r


def test_without_resolv_conf_the_local_server_is_asked(cli, tmp_path):
    r = cli("-x", 4000, "-R", str(tmp_path / "none"), "-T", "/dev/null", "GET", "http://service.example/").last
    assert (r["ok"], r["stage"]) == (False, "resolve") and "(asked: 127.0.0.1)" in r["text"]


def test_an_ipv6_server_is_asked_too(cli, site, made, tmp_path):
    dns = made(Dns(zone(service_example=["127.0.0.1"])))
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    v6.bind(("::1", 0))

    def forward():
        while True:
            try:
                q, who = v6.recvfrom(4096)
            except OSError:
                return
            v6.sendto(dns._reply(q, False), who)
    threading.Thread(target=forward, daemon=True).start()
    conf = tmp_path / "v6.conf"
    conf.write_text("nameserver [::1]:%d\n" % v6.getsockname()[1])
    r = ask(cli, str(conf), site)
    v6.close()
    assert r["ok"]


def test_names_are_told_apart_from_outages_for_the_retry_table(cli, made, tmp_path, site):
    nx, down = made(Dns(lambda *_: "nxdomain")), made(Dns(lambda *_: "servfail"))
    assert ask(cli, nx.conf(tmp_path), site)["no_name"] is True
    assert ask(cli, down.conf(tmp_path), site)["no_name"] is False
