#!/usr/bin/python3
"""Two network namespaces with a bad line between them: TUN devices, and a relay of ours that drops, delays and reorders packets.

    lab.py SCENARIO FOLDER

runs one scenario as root of a namespace (test_lab.py starts it so) and prints its results as JSON. The client's side has 198.51.100.1 and
2001:db8::1, the server's 198.51.100.2 and 2001:db8::2; DNS is answered on the server's side."""
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peer  # noqa: E402
from peer import Dns, Peer, answers, read_request, response, server_context  # noqa: E402

CLONE_NEWNET = 0x40000000
V4, V6 = "198.51.100.2", "2001:db8::2"


def unshare_net():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def tun(last):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"t0", 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
    for args in ("link set lo up", "link set t0 up", "addr add 198.51.100.%d/24 dev t0" % last,
                 "addr add 2001:db8::%d/64 dev t0 nodad" % last):
        subprocess.run(["ip", *args.split()], check=True)
    return fd


class Lab:
    """``policy(packet, to_server)`` gives the seconds after which a packet arrives, or None when it is lost."""

    def __init__(self, folder):
        self.folder, self.policy = folder, lambda packet, up: 0
        self.client_ns = unshare_net()
        self.a = tun(1)
        unshare_net()
        self.b = tun(2)
        threading.Thread(target=self._relay, daemon=True).start()
        self.ca = peer.Authority(folder)
        self.pair = self.ca.issue("server", names=["service.example", V4, V6])
        self.names = {1: [V4], 28: [V6]}
        self.dns = Dns(lambda name, qtype, tcp: self.names.get(qtype, []), host=V4)

    def _relay(self):
        queue, n = [], 0
        while True:
            wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
            for fd in select.select([self.a, self.b], [], [], wait)[0]:
                try:
                    packet = os.read(fd, 65536)
                except BlockingIOError:
                    continue
                delay = self.policy(packet, fd == self.a)
                if delay is not None:
                    n += 1
                    heapq.heappush(queue, (time.monotonic() + delay, n, self.b if fd == self.a else self.a, packet))
            while queue and queue[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(queue)
                try:
                    os.write(to, packet)
                except OSError:
                    pass

    def serve(self, serve, v4=True, v6=True, port=8443):
        """The same service on both addresses; the peers, v4 first."""
        out = []
        for host in [V4] * v4 + [V6] * v6:
            p = Peer.__new__(Peer)
            p.serve, p.tls, p.host = serve, server_context(self.pair), host
            p.count, p.errors, p.requests, p.reused, p.open, p.lock = 0, [], [], [], set(), threading.Lock()
            p.listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
            p.port = port
            threading.Thread(target=p._accept, daemon=True).start()
            out.append(p)
        return out

    def cli(self, *args, ms=8000, env=None):
        conf = self.dns.conf(self.folder)
        return peer.netcli("-R", conf, "-T", "/dev/null", "-x", ms, *args, env={"SSL_CERT_FILE": self.ca.file, **(env or {})},
                           limit_ms=ms, prefix=["nsenter", "--net=/proc/self/fd/%d" % self.client_ns], pass_fds=(self.client_ns,))

    def get(self, n=1, **kw):
        return self.cli(*["GET", "https://service.example:8443/"] * n, **kw)


def is_v6(packet):
    return packet[0] >> 4 == 6


SCENARIOS = {}


def scenario(f):
    SCENARIOS[f.__name__] = f
    return f


def counted(results, peers):
    return {"results": list(results), "v4": peers[0].count, "v6": peers[1].count if len(peers) > 1 else 0}


@scenario
def both_families_work(lab):
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def v6_is_dropped(lab):
    lab.policy = lambda p, up: None if is_v6(p) else 0
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def v4_is_dropped(lab):
    lab.policy = lambda p, up: None if not is_v6(p) and p[9] == 6 else 0  # TCP only: DNS goes over IPv4
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def v6_has_no_route(lab):
    lab.names[28] = ["2001:db8:9::9"]
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def v6_swallows_large_packets(lab):
    lab.policy = lambda p, up: None if is_v6(p) and len(p) > 300 and not up else 0
    peers = lab.serve(answers(response()))
    return counted(lab.get(2), peers)


@scenario
def ten_dead_addresses_and_a_good_one(lab):
    lab.names = {1: ["198.51.100.%d" % n for n in range(10, 20)] + [V4], 28: []}
    lab.policy = lambda p, up: None if not is_v6(p) and p[16:20] != bytes([198, 51, 100, 2]) and up else 0
    peers = lab.serve(answers(response()), v6=False)
    return counted(lab.get(), peers)


@scenario
def everything_is_dropped(lab):
    lab.policy = lambda p, up: None
    return {"results": list(lab.get(ms=2000))}


@scenario
def connections_are_dropped(lab):
    lab.policy = lambda p, up: 0 if not is_v6(p) and p[9] == 17 else None
    return {"results": list(lab.get(ms=2000))}


@scenario
def aaaa_is_never_answered(lab):
    lab.dns.answer = lambda name, qtype, tcp: "silent" if qtype == 28 else [V4]
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def aaaa_fails(lab):
    lab.dns.answer = lambda name, qtype, tcp: "servfail" if qtype == 28 else [V4]
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def a_comes_long_after_aaaa_and_v6_is_dropped(lab):
    lab.policy = lambda p, up: None if is_v6(p) else 0
    lab.dns.answer = lambda name, qtype, tcp: [V6] if qtype == 28 else ("after", 0.6, [V4])
    peers = lab.serve(answers(response()))
    return counted(lab.get(), peers)


@scenario
def truncated_answers_come_over_tcp(lab):
    lab.policy = lambda p, up: 0.05
    lab.dns.answer = lambda name, qtype, tcp: (lab.names[qtype] if tcp else "truncated")
    peers = lab.serve(answers(response()))
    return {**counted(lab.get(), peers), "asked": lab.dns.asked}


@scenario
def half_a_second_round_trip(lab):
    lab.policy = lambda p, up: 0.15 if up else 0.15
    peers = lab.serve(answers(response(b"x" * 20000)))
    return counted(lab.get(3), peers)


@scenario
def loss_and_reordering(lab):
    rng = random.Random(5)
    lab.policy = lambda p, up: None if rng.random() < 0.05 else rng.random() * 0.03
    peers = lab.serve(answers(response(b"x" * 40000)))
    return counted(lab.cli(*["-r", "idempotent", "-t", 30000], *["GET", "https://service.example:8443/"] * 8, ms=15000), peers)


@scenario
def addresses_are_kept_when_dns_dies(lab):
    """The second request needs a new connection, and by then no DNS server answers."""
    def serve(s, _n):
        read_request(s)
        s.sendall(response(headers=["Connection: close"]))
        lab.dns.answer = lambda *_: "silent"
    peers = lab.serve(serve)
    return {**counted(lab.get(2), peers), "asked": lab.dns.asked}


@scenario
def kept_addresses_that_died_are_looked_up_again(lab):
    """The service moves from its IPv6 address to the other one."""
    def move():
        lab.names[28] = []
        lab.policy = lambda p, up: None if is_v6(p) else 0
    peers = lab.serve(answers(response(headers=["Connection: close"]), then="close"))
    threading.Timer(3, move).start()
    return {**counted(lab.cli("-w", 5000, *["GET", "https://service.example:8443/"] * 2), peers), "asked": lab.dns.asked}


if __name__ == "__main__":
    lab_ = Lab(sys.argv[2])
    result = SCENARIOS[sys.argv[1]](lab_)
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)
