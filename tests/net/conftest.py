import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import peer  # noqa: E402


@pytest.fixture(scope="session")
def ca(tmp_path_factory):
    """The CA that the driver is told to trust, with one certificate for localhost."""
    a = peer.Authority(str(tmp_path_factory.mktemp("ca")))
    a.pair = a.issue("server")
    return a


@pytest.fixture
def cli(ca):
    """The driver, trusting ``ca``."""
    def run(*args, env=None, **kw):
        return peer.netcli(*args, env={"SSL_CERT_FILE": ca.file, **(env or {})}, **kw)
    return run


@pytest.fixture
def made():
    """Servers to close at the end: ``made(Peer(...))``."""
    all_ = []

    def keep(x):
        all_.append(x)
        return x
    yield keep
    for x in all_:
        x.close()
