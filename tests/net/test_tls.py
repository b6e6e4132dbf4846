"""TLS: versions, names, chains, where the CA comes from, resumption, and that nothing is sent to a peer that was not verified."""
import os
import shutil
import ssl

import pytest

import peer
from peer import Peer, answers, days, now, read_request, response, server_context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_work_and_sessions_are_resumed(cli, ca, made, version):
    s = answers(response(headers=["Connection: close"]), then="close")
    p = made(Peer(s, tls=server_context(ca.pair, minimum_version=version, maximum_version=version)))
    assert all(x["ok"] for x in cli(*["GET", p.url()] * 3))
    assert p.reused == [False, True, True]


def test_a_server_that_forgot_the_session_gets_a_full_handshake(cli, ca, made):
    contexts = [server_context(ca.pair), server_context(ca.pair)]

    class Forgetful(Peer):
        def _one(self, s, number):
            self.tls = contexts[number]
            super()._one(s, number)
    p = made(Forgetful(answers(response(headers=["Connection: close"]), then="close"), tls=contexts[0]))
    assert all(x["ok"] for x in cli(*["GET", p.url()] * 2))
    assert p.reused == [False, False]


def test_the_server_name_is_sent(cli, ca, made):
    names = []
    c = server_context(ca.pair)
    c.sni_callback = lambda sock, name, ctx: names.append(name)
    assert cli("GET", made(Peer(answers(response()), tls=c)).url()).last["ok"]
    assert names == ["localhost"]


@pytest.mark.parametrize("names,url,ok", [
    (["localhost"], "localhost", True),
    (["*.localhost"], "x.localhost", True),
    (["*.localhost"], "a.b.localhost", False),
    (["*.localhost"], "localhost", False),
    (["LOCALHOST"], "localhost", True),
    (["127.0.0.1"], "127.0.0.1", True),
    (["127.0.0.2"], "127.0.0.1", False),
    (["localhost"], "127.0.0.1", False),
    (["localhost.evil.example"], "localhost", False),
    (["other", "localhost"], "localhost", True),
])
def test_the_certificate_must_be_for_the_name(cli, ca, made, names, url, ok):
    s = answers(response())
    p = made(Peer(s, tls=server_context(ca.issue("names", names=names, subject="somebody"))))
    r = cli("GET", p.url(host=url)).last
    assert r["ok"] is ok
    assert ok or (r["code"] == 69 and "another name" in r["text"] and not s.requests)


def test_an_intermediate_must_be_sent_along(cli, ca, made):
    middle = peer.Authority(ca.folder, "Middle CA", parent=ca)
    with_, without = middle.issue("with", chain=[middle.cert]), middle.issue("without")
    a, b = made(Peer(answers(response()), tls=server_context(with_))), made(Peer(answers(response()), tls=server_context(without)))
    r = cli("GET", a.url(), "GET", b.url())
    assert r[0]["ok"] and not r[1]["ok"]
    assert 'issuer "CN=Middle CA"' in r[1]["text"]


def test_a_leaf_cannot_issue(cli, ca, made):
    """A certificate that is no CA signs another one for any name it likes."""
    fake = peer.Authority(ca.folder, "Not A CA", parent=ca)
    fake.cert = ca._sign(fake.key.public_key(), ["evil.example"], subject="Not A CA")
    p = made(Peer(answers(response()), tls=server_context(fake.issue("forged", chain=[fake.cert]))))
    r = cli("GET", p.url()).last
    assert (r["ok"], r["code"], r["sent"]) == (False, 69, False)


def test_an_expired_intermediate_is_named(cli, ca, made):
    old = peer.Authority(ca.folder, "Old CA", parent=ca)
    old.cert = ca._sign(old.key.public_key(), [], ca=True, subject="Old CA", start=now() - days(9), end=now() - days(1), self_signed=None)
    p = made(Peer(answers(response()), tls=server_context(old.issue("fresh", chain=[old.cert]))))
    r = cli("GET", p.url()).last
    assert not r["ok"] and "has expired" in r["text"] and 'subject "CN=Old CA"' in r["text"]


@pytest.mark.parametrize("how", [dict(start=now() - days(30), end=now() - days(1)), dict(start=now() + days(1)), dict(names=["other"]),
                                 dict(alone=True)])
def test_nothing_is_sent_to_and_nothing_read_from_an_unverified_peer(cli, ca, made, how):
    """The server writes an answer with a Date of long ago as soon as it can; it must not count."""
    got = []

    def serve(s, _n):
        s.sendall(response(headers=["Date: Sun, 06 Nov 1994 08:49:37 GMT"]))
        got.append(s.recv(100))
    p = made(Peer(serve, tls=server_context(ca.issue("bad", **how))))
    r = cli("-H", "Authorization: Bearer topsecret", "GET", p.url()).last
    assert not r["ok"] and not r["sent"] and r["stage"] == "handshake"
    assert "1994" not in r["text"] and not any(got)
    assert (r["code"] == 82) is (how.get("start", now()) > now())


def test_certificate_faults_are_not_repeated_and_a_young_certificate_is(cli, ca, made):
    bad = made(Peer(answers(response()), tls=server_context(ca.issue("bad2", names=["other"]))))
    young = made(Peer(answers(response()), tls=server_context(ca.issue("young", start=now() + days(1)))))
    r = cli("-r", "idempotent", "-t", 8000, "GET", bad.url())
    assert r.last["permanent"] and bad.count == 1 and "retry" not in r.log
    r = cli("-r", "idempotent", "-t", 15000, "GET", young.url())
    assert r.last["code"] == 82 and young.count == 4


# ---- where the CA comes from ----

def env(**kw):
    return {"SSL_CERT_FILE": "", **kw}


def test_a_directory_of_certificates_is_read(cli, ca, made, tmp_path):
    d = tmp_path / "certs"
    d.mkdir()
    shutil.copy(ca.file, d / "0a1b2c3d.0")
    (d / "link.pem").symlink_to(d / "0a1b2c3d.0")
    (d / "README").write_text("not a certificate")
    (d / "sub").mkdir()
    p = made(Peer(answers(response()), tls=server_context(ca.pair)))
    assert cli("GET", p.url(), env=env(SSL_CERT_DIR=str(d))).last["ok"]
    assert cli("GET", p.url(), env=env(SSL_CERT_DIR="/nonexistent:%s" % d)).last["code"] == 78
    assert cli("GET", p.url(), env=env(SSL_CERT_DIR=":%s:" % d)).last["ok"]
    r = cli("GET", p.url(), env=env(SSL_CERT_DIR=str(d / "sub"))).last
    assert r["code"] == 78 and "SSL_CERT_DIR" in r["text"]


def test_file_and_directory_count_together(cli, ca, made, tmp_path):
    other = peer.Authority(str(tmp_path), "Other Root")
    d = tmp_path / "dir"
    d.mkdir()
    shutil.copy(ca.file, d / "x.pem")
    a = made(Peer(answers(response()), tls=server_context(ca.pair)))
    b = made(Peer(answers(response()), tls=server_context(other.issue("o"))))
    r = cli("GET", a.url(), "GET", b.url(), env={"SSL_CERT_FILE": other.file, "SSL_CERT_DIR": str(d)})
    assert all(x["ok"] for x in r)


def test_a_bundle_with_odd_entries_is_read_as_far_as_it_goes(cli, ca, made, tmp_path):
    good = open(ca.file).read()
    odd = tmp_path / "odd.pem"
    odd.write_text("# Comment\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN TRUSTED CERTIFICATE-----\nAAAA\n"
                   "-----END TRUSTED CERTIFICATE-----\n" + good + good.replace("\n", "\r\n") + "-----BEGIN CERTIFICATE-----\nMIIB")
    p = made(Peer(answers(response()), tls=server_context(ca.pair)))
    assert cli("GET", p.url(), env={"SSL_CERT_FILE": str(odd)}).last["ok"]
    bad = made(Peer(answers(response()), tls=server_context(peer.Authority(str(tmp_path), "Nobody").issue("n"))))
    r = cli("GET", bad.url(), env={"SSL_CERT_FILE": str(odd)}).last
    assert "not among the 1 certificates of SSL_CERT_FILE" in r["text"], "twice the same counts once"


def test_a_certificate_in_der_is_read(cli, ca, made, tmp_path):
    der = tmp_path / "ca.der"
    der.write_bytes(ca.cert.public_bytes(peer.serialization.Encoding.DER))
    p = made(Peer(answers(response()), tls=server_context(ca.pair)))
    assert cli("GET", p.url(), env={"SSL_CERT_FILE": str(der)}).last["ok"]


def test_a_bundle_larger_than_allowed_is_an_error_and_not_cut(cli, tmp_path):
    big = tmp_path / "big.pem"
    big.write_bytes(b"#" * (9 << 20))
    r = cli("GET", "https://localhost/", env={"SSL_CERT_FILE": str(big)}).last
    assert r["code"] == 78 and "larger than" in r["text"]


def test_the_usual_bundles_are_used_when_nothing_is_said(cli, ca, made):
    p = made(Peer(answers(response()), tls=server_context(ca.pair)))
    r = cli("GET", p.url(), env=env()).last
    assert r["code"] == 69 and "/etc/ssl/certs/ca-certificates.crt" in r["text"], "ours is not among them"


def test_the_places_looked_at_are_named_when_there_is_no_bundle(ca, tmp_path):
    """In a mount namespace with an empty /etc/ssl and /etc/pki."""
    hide = "mount -t tmpfs none /etc/ssl; [ ! -d /etc/pki ] || mount -t tmpfs none /etc/pki; exec \"$@\""
    become = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    r = peer.netcli("GET", "https://localhost/", prefix=[*become, "sh", "-c", hide, "sh"]).last
    assert r["code"] == 78
    for words in ("ca-certificates.crt", "ca-bundle.crt", "Install ca-certificates", "SSL_CERT_FILE"):
        assert words in r["text"]


def test_a_large_body_goes_both_ways(cli, ca, made):
    def serve(s, _n):
        while True:
            q = read_request(s)
            if not q:
                return
            s.sendall(response(q[2] * 30))
    p = made(Peer(serve, tls=server_context(ca.pair)))
    body = "0123456789abcdef" * 6000  # 96 kB up, 2.9 MB down, several records each way
    r = cli("-B", "-d", body, "POST", p.url(), "POST", p.url())
    assert [bytes.fromhex(x["hex"]) == body.encode() * 30 for x in r] == [True, True]
