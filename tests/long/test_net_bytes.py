"""A fault after every single byte of a TLS exchange, in both directions (every fourth where each costs a second); the short suite takes
a sample."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "net"))

import everybyte  # noqa: E402
import peer  # noqa: E402


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    a = peer.Authority(str(tmp_path_factory.mktemp("ca")))
    a.pair = a.issue("server")
    return a


@pytest.mark.parametrize("toward", ["client", "server"])
@pytest.mark.parametrize("fault", ["reset", "close", "garbage", "flip"])
def test_every_byte_of_a_tls_exchange(ca, fault, toward):
    # a server that got garbage may wait for the rest of it, and so does the client then: a second each
    waits = toward == "server" and fault in ("garbage", "flip")
    everybyte.run(ca, list(range(0, everybyte.length(ca, True, toward), 4 if waits else 1)), fault, True, toward, 1000 if waits else None)


@pytest.mark.parametrize("tls", [False, True])
def test_a_stall_at_every_eighth_byte(ca, tls):
    everybyte.run(ca, list(range(0, everybyte.length(ca, tls), 8)), "stall", tls)
