"""A fault after every byte of an answer over plain TCP, and after a sample of the bytes of a TLS exchange in both directions."""
import pytest

import everybyte


@pytest.mark.parametrize("fault", ["reset", "close", "garbage", "flip"])
def test_every_byte_of_a_plain_answer(ca, fault):
    n = everybyte.length(ca, False)
    assert n == len(everybyte.ANSWER)
    results = everybyte.run(ca, list(range(n)), fault, False)
    if fault in ("reset", "close"):
        assert not any(r["ok"] for r in results), "an answer that misses its last byte is not one"


def test_a_stall_at_some_bytes_of_a_plain_answer(ca):
    results = everybyte.run(ca, list(range(0, len(everybyte.ANSWER), 24)), "stall", False)
    assert all(r["timeout"] for r in results)


@pytest.mark.parametrize("toward", ["client", "server"])
@pytest.mark.parametrize("fault", ["reset", "close", "garbage", "flip"])
def test_a_sample_of_the_bytes_of_a_tls_exchange(ca, fault, toward):
    n = everybyte.length(ca, True, toward)
    everybyte.run(ca, list(range(0, n, 41)), fault, True, toward)


def test_a_stall_at_some_bytes_of_a_tls_exchange(ca):
    n = everybyte.length(ca, True)
    for r in everybyte.run(ca, list(range(0, n - 40, 150)), "stall", True):
        assert r["ok"] or r["timeout"]
