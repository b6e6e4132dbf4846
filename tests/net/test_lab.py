"""On a bad line: broken IPv6, dead DNS, delay, loss and reordering, between two namespaces with a relay of ours between them."""
import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture
def lab(tmp_path):
    def run(name):
        become = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
        p = subprocess.run([*become, "/usr/bin/python3", os.path.join(HERE, "lab.py"), name, str(tmp_path)], capture_output=True, timeout=150)
        assert p.returncode == 0, p.stderr.decode()
        sys.stderr.write(p.stderr.decode())
        return json.loads(p.stdout)
    return run


def took(r):
    return r["results"][0]["took_ms"]


def good(r, **counts):
    assert all(x["ok"] for x in r["results"]), r
    for family, n in counts.items():
        assert r[family] == n, r
    return r


def test_ipv6_goes_first_where_both_work(lab):
    good(lab("both_families_work"), v6=1, v4=0)


def test_a_dropped_ipv6_costs_one_head_start(lab):
    r = good(lab("v6_is_dropped"), v6=0, v4=1)
    assert 250 <= took(r) < 5000


def test_a_dropped_ipv4_costs_nothing(lab):
    good(lab("v4_is_dropped"), v6=1, v4=0)


def test_an_ipv6_address_without_a_route_is_passed_over(lab):
    good(lab("v6_has_no_route"), v6=0, v4=1)


def test_an_ipv6_path_that_swallows_large_packets_is_left(lab):
    r = good(lab("v6_swallows_large_packets"), v4=1)
    assert took(r) >= 3500, "half of the time goes to the first address"
    assert r["results"][1]["took_ms"] < 3000, "and the second request does not pay again"


def test_a_good_address_behind_ten_dead_ones_is_reached(lab):
    r = good(lab("ten_dead_addresses_and_a_good_one"), v4=1)
    assert took(r) >= 2500


def test_a_network_that_drops_everything_ends_with_the_look_up_named(lab):
    r = lab("everything_is_dropped")["results"][0]
    assert (r["ok"], r["code"], r["stage"], r["timeout"]) == (False, 69, "resolve", True)
    assert "look-up of service.example" in r["text"] and "198.51.100.2" in r["text"]


def test_a_network_that_drops_connections_ends_with_the_connection_named(lab):
    r = lab("connections_are_dropped")["results"][0]
    assert (r["ok"], r["code"], r["stage"], r["timeout"]) == (False, 69, "connect", True)
    assert "connecting to service.example:8443 (2 addresses tried)" in r["text"]


@pytest.mark.parametrize("name", ["aaaa_is_never_answered", "aaaa_fails"])
def test_an_ipv4_answer_does_not_wait_for_ipv6(lab, name):
    r = good(lab(name), v4=1, v6=0)
    assert took(r) < 5000


def test_a_late_ipv4_answer_joins_the_race(lab):
    r = good(lab("a_comes_long_after_aaaa_and_v6_is_dropped"), v4=1, v6=0)
    assert took(r) >= 600


def test_an_answer_too_big_for_a_datagram_comes_over_tcp(lab):
    r = good(lab("truncated_answers_come_over_tcp"), v6=1)
    assert {(q[1], q[2]) for q in r["asked"]} == {("A", "udp"), ("AAAA", "udp"), ("A", "tcp"), ("AAAA", "tcp")}


def test_a_long_line_is_only_slow(lab):
    r = good(lab("half_a_second_round_trip"), v6=1)
    assert took(r) >= 900, "look-up, connect, handshake and answer are a round trip each"
    assert r["results"][1]["took_ms"] < took(r), "the connection is kept"


def test_loss_and_reordering_are_survived(lab):
    good(lab("loss_and_reordering"))


def test_addresses_outlive_the_dns_server(lab):
    r = good(lab("addresses_are_kept_when_dns_dies"), v6=2)
    assert len(r["asked"]) == 2


def test_an_address_that_died_is_looked_up_again(lab):
    r = good(lab("kept_addresses_that_died_are_looked_up_again"), v6=1, v4=1)
    assert len(r["asked"]) == 4
