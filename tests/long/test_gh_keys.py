"""A thousand generated keys: each part at its full width, and all of them one key, as an independent reader sees it."""
import base64
import json
import subprocess

WIDTHS = [("d", 256), ("dp", 128), ("dq", 128), ("e", 3), ("iq", 128), ("n", 256), ("p", 128), ("q", 128)]


def check(raw):
    parts, at = {}, 0
    for name, width in WIDTHS:
        parts[name] = int.from_bytes(raw[at:at + width], "big")
        at += width
    assert at == len(raw)
    n, e, d, p, q = (parts[k] for k in "nedpq")
    assert e == 65537 and p * q == n and n.bit_length() == 2048 and p != q
    assert e * d % (p - 1) == 1 and e * d % (q - 1) == 1
    assert parts["dp"] == d % (p - 1) and parts["dq"] == d % (q - 1) and parts["iq"] * q % p == 1
    assert pow(pow(12345678901234567890, e, n), d, n) == 12345678901234567890
    return n, [name for (name, width) in WIDTHS if parts[name].bit_length() <= 8 * (width - 1)]


def test_a_thousand_keys_fit_together_at_full_width(ghcli):
    seen, short = set(), []
    for _ in range(20):
        done = subprocess.run([ghcli] + ["key"] * 50, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        for line in done.stdout.decode().splitlines():
            n, names = check(base64.b64decode(json.loads(line)["parts"]))
            seen.add(n)
            short += names
    assert len(seen) == 1000
    assert short  # about 16 parts of a thousand keys begin with a zero byte
