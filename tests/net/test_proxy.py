"""Through proxies: our own, tinyproxy and squid; http and https; with and without credentials; and around them."""
import base64
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from peer import Peer, answers, read_request, response, server_context


class Proxy(Peer):
    """A small forward proxy that remembers what it was asked for."""

    def __init__(self, tls=None, auth=None):
        self.asked, self.auth = [], auth
        super().__init__(self._serve, tls=tls)

    def _serve(self, s, _n):
        while True:
            q = read_request(s)
            if q is None:
                return
            line, headers, body = q
            self.asked.append((line, headers))
            if self.auth and headers.get("proxy-authorization") != "Basic " + base64.b64encode(self.auth.encode()).decode():
                s.sendall(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n")
                continue
            if line.startswith("CONNECT "):
                self._tunnel(s, line.split()[1])
                return
            s.sendall(response(b'{"through":1}'))

    @staticmethod
    def _tunnel(s, where):
        host, port = where.rsplit(":", 1)
        up = socket.create_connection((host.strip("[]") if host != "service.example" else "127.0.0.1", int(port)))
        s.sendall(b"HTTP/1.1 200 Connection established\r\nX-Proxy: ours\r\n\r\n")

        def copy(a, b):
            try:
                while True:
                    data = a.recv(65536)
                    if not data:
                        break
                    b.sendall(data)
            except OSError:
                pass
            for x in (a, b):
                try:
                    x.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        t = threading.Thread(target=copy, args=(up, s), daemon=True)
        t.start()
        copy(s, up)
        t.join(5)
        up.close()


@pytest.fixture
def site(ca, made):
    return made(Peer(answers(response()), tls=server_context(ca.issue("site", names=["service.example", "localhost", "127.0.0.1"]))))


def through(cli, url, proxy, no_proxy="", **kw):
    return cli("GET", url, env={"https_proxy": proxy, "http_proxy": proxy, "no_proxy": no_proxy}, **kw).last


def test_https_goes_through_a_tunnel(cli, made, site):
    p = made(Proxy())
    r = cli("-H", "Authorization: Bearer topsecret", *["GET", site.url(host="service.example")] * 2,
            env={"https_proxy": "http://127.0.0.1:%d" % p.port})
    assert all(x["ok"] and x["via_proxy"] for x in r)
    line, headers = p.asked[0]
    assert line == "CONNECT service.example:%d HTTP/1.1" % site.port
    assert headers == {"host": "service.example:%d" % site.port, "user-agent": "netcli/1"}, "no credential of the origin"
    assert len(p.asked) == 1, "the tunnel is kept"


def test_the_proxys_credential_reaches_the_proxy_alone(cli, ca, made):
    s = answers(response())
    site = made(Peer(s, tls=server_context(ca.issue("site", names=["service.example"]))))
    p = made(Proxy(auth="me:s%cret"))
    r = through(cli, site.url(host="service.example"), "me:s%%25cret@127.0.0.1:%d" % p.port)
    assert r["ok"]
    assert "proxy-authorization" in p.asked[0][1] and "proxy-authorization" not in s.requests[0][1]


def test_a_wrong_credential_is_the_proxys_refusal(cli, made, site):
    p = made(Proxy(auth="me:right"))
    r = through(cli, site.url(host="service.example"), "me:wrong@127.0.0.1:%d" % p.port)
    assert r["code"] == 77 and r["permanent"] and "wrong" not in r["text"] and "127.0.0.1:%d" % p.port in r["text"]
    assert not r["sent"]


@pytest.mark.parametrize("proxy_version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("site_version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_to_the_proxy_and_tls_to_the_target_inside(cli, ca, made, proxy_version, site_version):
    body = b"y" * 200000
    site = made(Peer(answers(response(body)), tls=server_context(ca.issue("site", names=["service.example"]), minimum_version=site_version,
                                                                 maximum_version=site_version)))
    p = made(Proxy(tls=server_context(ca.issue("proxy", names=["localhost"]), minimum_version=proxy_version,
                                      maximum_version=proxy_version), auth="a:b"))
    r = cli("-B", "-d", "z" * 50000, *["POST", site.url(host="service.example")] * 2, env={"https_proxy": "https://a:b@localhost:%d" % p.port})
    assert all(x["ok"] and bytes.fromhex(x["hex"]) == body for x in r)
    assert len(p.asked) == 1


def test_the_certificate_of_an_https_proxy_is_checked(cli, ca, made, site):
    p = made(Proxy(tls=server_context(ca.issue("proxy", names=["other"])), auth="me:topsecret"))
    r = through(cli, site.url(host="service.example"), "https://me:topsecret@localhost:%d" % p.port)
    assert r["code"] == 69 and "certificate of the proxy localhost:%d" % p.port in r["text"] and not p.asked


def test_the_certificate_of_the_target_is_checked_inside_a_tunnel(cli, ca, made):
    s = answers(response())
    bad = made(Peer(s, tls=server_context(ca.issue("bad", names=["other"]))))
    p = made(Proxy())
    r = through(cli, bad.url(host="service.example"), "127.0.0.1:%d" % p.port)
    assert r["code"] == 69 and "certificate of service.example" in r["text"] and not s.requests


def test_plain_http_is_asked_of_the_proxy_by_whole_url(cli, made):
    p = made(Proxy(auth="a:b"))
    r = through(cli, "http://service.example/x?y=z", "a:b@127.0.0.1:%d" % p.port)
    assert r["ok"] and r["body"] == '{"through":1}' and r["via_proxy"]
    line, headers = p.asked[0]
    assert line == "GET http://service.example/x?y=z HTTP/1.1" and headers["host"] == "service.example"


def test_the_two_schemes_have_two_settings(cli, made, site):
    p = made(Proxy())
    at = "127.0.0.1:%d" % p.port
    r = cli("-R", "/dev/null", "-x", 3000, "GET", "http://service.example/", env={"https_proxy": at}).last
    assert not r["ok"] and r["stage"] == "resolve" and not p.asked, "https_proxy is not for http"


@pytest.mark.parametrize("entry", ["service.example", ".example", "example:{port}", "x, *", "SERVICE.example"])
def test_what_no_proxy_names_is_reached_directly(cli, made, site, tmp_path, entry):
    p = made(Proxy())
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 service.example\n")
    r = cli("-T", str(hosts), "GET", site.url(host="service.example"), env={"https_proxy": "127.0.0.1:%d" % p.port,
                                                                            "no_proxy": entry.format(port=site.port)}).last
    assert r["ok"] and not r["via_proxy"] and not p.asked


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_loopback_is_reached_directly(cli, made, site, host):
    p = made(Proxy())
    assert through(cli, site.url(host=host), "127.0.0.1:%d" % p.port)["ok"] and not p.asked


def test_the_name_of_the_target_is_looked_up_by_the_proxy(cli, made, site):
    """A container behind a proxy often has no DNS for the outside at all."""
    p = made(Proxy())
    r = cli("-R", "/dev/null", "-T", "/dev/null", "GET", site.url(host="service.example"), env={"https_proxy": "127.0.0.1:%d" % p.port}).last
    assert r["ok"]


def test_interim_refusals_are_repeated_and_final_ones_are_not(cli, made):
    codes = []
    p = made(Peer(lambda s, n: (read_request(s), s.sendall(b"HTTP/1.1 %d x\r\n\r\n" % codes[min(n, len(codes) - 1)]))))
    env = {"https_proxy": "127.0.0.1:%d" % p.port}
    codes[:] = [503]
    r = cli("-r", "idempotent", "-t", 4000, "GET", "https://service.example/", env=env).last
    assert p.count >= 2 and "status 503" in r["text"]
    before, codes[:] = p.count, [403]
    r = cli("-r", "idempotent", "-t", 4000, "GET", "https://service.example/", env=env).last
    assert p.count == before + 1 and r["permanent"]


def test_a_proxy_that_breaks_off_is_told_apart_at_every_byte(cli, made):
    text = b"HTTP/1.1 200 Connection established\r\nA: b\r\n\r\n"
    p = made(Peer(lambda s, n: (read_request(s), s.sendall(text[:n]))))
    r = cli(*["GET", "https://service.example/"] * len(text), env={"https_proxy": "127.0.0.1:%d" % p.port})
    assert len(r) == len(text)
    for x in r:
        assert (x["ok"], x["code"], x["stage"], x["sent"]) == (False, 69, "proxy", False) and "instead of answering CONNECT" in x["text"]


# ---- proxies that we did not write ----

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def wait_port(port, process):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        assert process.poll() is None, process.stdout.read()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("it does not listen")


@pytest.fixture
def tinyproxy(tmp_path):
    port = free_port()
    conf = tmp_path / "tinyproxy.conf"
    conf.write_text("Port %d\nListen 127.0.0.1\nTimeout 20\nMaxClients 9\nLogLevel Critical\nBasicAuth me s3cret\nAllow 127.0.0.1\n" % port)
    p = subprocess.Popen([shutil.which("tinyproxy", path="/usr/bin:/usr/sbin"), "-d", "-c", str(conf)], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    wait_port(port, p)
    yield port
    p.terminate()
    p.wait(20)


@pytest.fixture
def squid():
    port = free_port()
    d = tempfile.mkdtemp(prefix="squid-")  # squid gives up root: pytest's folders are closed to it
    os.chmod(d, 0o777)
    conf = os.path.join(d, "squid.conf")
    with open(os.path.join(d, "hosts"), "w") as f:
        f.write("127.0.0.1 service.example\n")
    with open(conf, "w") as f:
        f.write("http_port 127.0.0.1:%d\npid_filename none\naccess_log none\ncache_log /dev/null\ncache deny all\ncoredump_dir %s\n"
                "acl all_ports port 1-65535\nhttp_access allow CONNECT all_ports\nhttp_access allow all\nshutdown_lifetime 0 seconds\n"
                "hosts_file %s/hosts\nnetdb_filename none\npinger_enable off\n" % (port, d, d))
    p = subprocess.Popen(["/usr/sbin/squid", "-N", "-f", conf], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_port(port, p)
    yield port
    p.terminate()
    p.wait(30)
    shutil.rmtree(d)


def test_through_tinyproxy(cli, ca, tinyproxy, made):
    # 127.0.0.1 is never proxied; 0.0.0.0 leads to the same place and is nobody's loopback
    site = made(Peer(answers(response()), tls=server_context(ca.issue("zero", names=["0.0.0.0"]))))
    r = cli(*["GET", site.url(host="0.0.0.0")] * 2, env={"https_proxy": "http://me:s3cret@127.0.0.1:%d" % tinyproxy})
    assert all(x["ok"] and x["via_proxy"] for x in r), r
    assert site.count == 1
    r = through(cli, "https://service.invalid/", "http://127.0.0.1:%d" % tinyproxy)
    assert r["code"] == 77 and "407" in r["text"]
    r = through(cli, "http://service.invalid/", "http://127.0.0.1:%d" % tinyproxy)
    assert r["code"] == 77 and "407" in r["text"]
    r = cli("-x", 30000, "GET", "https://service.invalid/", env={"https_proxy": "http://me:s3cret@127.0.0.1:%d" % tinyproxy}).last
    assert r["code"] == 69 and "refused CONNECT service.invalid:443" in r["text"]


def test_through_squid(cli, ca, squid, made):
    body = b"q" * 300000
    site = made(Peer(answers(response(body)), tls=server_context(ca.issue("site", names=["service.example"]))))
    plain = made(Peer(answers(response(b"plain"))))
    env = {"https_proxy": "http://127.0.0.1:%d" % squid, "http_proxy": "http://127.0.0.1:%d" % squid}
    r = cli("-B", *["GET", site.url(host="service.example")] * 2, "GET", plain.url(host="service.example"), env=env)
    assert all(x["ok"] for x in r), [x.get("text") for x in r]
    assert [bytes.fromhex(x["hex"]) for x in r] == [body, body, b"plain"], r
    assert all(x["via_proxy"] for x in r)
    r = cli("GET", "https://service.example:%d/" % free_port(), env=env).last
    assert r["code"] == 69 and "status 503" in r["text"], "squid cannot connect"
