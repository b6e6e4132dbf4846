"""Servers that we did not write: nginx, haproxy, openssl's and Python's own."""
import os
import ssl
import subprocess

import pytest

import peer
from test_proxy import free_port, wait_port


@pytest.fixture
def start(tmp_path):
    running = []

    def run(argv, port, **kw):
        p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw)
        running.append(p)
        wait_port(port, p)
        return p
    yield run
    for p in running:
        p.terminate()
        try:
            p.wait(10)
        except subprocess.TimeoutExpired:
            p.kill()


NGINX = """
daemon off; master_process off; pid {d}/pid; error_log {d}/error.log;
events {{ }}
http {{
  client_body_temp_path {d}/body; proxy_temp_path {d}/p; fastcgi_temp_path {d}/f; uwsgi_temp_path {d}/u; scgi_temp_path {d}/s;
  access_log {d}/access.log; keepalive_requests 3; client_max_body_size 10m;
  ssl_session_cache shared:s:1m; ssl_protocols {protocols};
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {pem}; ssl_certificate_key {key};
    root {d}/www; default_type application/json;
    location /chunked {{ ssi on; ssi_types application/json; }}
    location /old {{ return 301 /small; }}
    location /away {{ return 302 https://elsewhere.example/; }}
    location /limited {{ add_header Retry-After 7 always; return 429 '{{}}'; }}
    location /upload {{ return 200 '{{"ok":1}}'; }}
  }}
}}
"""


@pytest.mark.parametrize("protocols", ["TLSv1.2", "TLSv1.3"])
def test_nginx(cli, ca, start, tmp_path, protocols):
    www = tmp_path / "www"
    www.mkdir()
    (www / "small").write_text('{"a":1}')
    (www / "large").write_bytes(b"L" * 3_000_000)
    (www / "huge").write_bytes(b"H" * 5_000_000)
    (www / "chunked").write_text("<!--# echo var=\"request_method\" -->" + "c" * 100_000)
    port, (pem, key) = free_port(), ca.pair
    (tmp_path / "nginx.conf").write_text(NGINX.format(d=tmp_path, port=port, pem=pem, key=key, protocols=protocols))
    if os.geteuid() == 0:
        (tmp_path / "nginx.conf").write_text("user root;" + (tmp_path / "nginx.conf").read_text())
    start(["/usr/sbin/nginx", "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")], port)
    at = "https://localhost:%d" % port
    r = cli("-f", *sum([["GET", at + p] for p in ("/small", "/small", "/large", "/chunked", "/old", "/huge", "/away", "/limited", "/none")], []))
    small, again, large, chunked, old, huge, away, limited, none = r
    assert small["body"] == again["body"] == old["body"] == '{"a":1}'
    assert large["body_len"] == 3_000_000
    assert chunked["body_len"] == 100_003 and chunked["body"].startswith("GETccc")
    assert huge["code"] == 76 and "larger than" in huge["text"]
    assert away["code"] == 76 and "https://elsewhere.example/" in away["text"]
    assert limited["status"] == 429 and limited["retry_after_ms"] == 7000
    assert none["status"] == 404 and none["html"] and "nginx" in none["page"]
    r = cli("-d", "u" * 100_000, *["POST", at + "/upload"] * 3)
    assert all(x["ok"] and x["status"] == 200 for x in r)
    assert len(open(tmp_path / "access.log").readlines()) == 13


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssls_server(cli, ca, start, tmp_path, version):
    (tmp_path / "page").write_bytes(b"p" * 70_000)
    port, (pem, key) = free_port(), ca.pair
    start(["openssl", "s_server", "-accept", "127.0.0.1:%d" % port, "-cert", pem, "-key", key, version, "-WWW", "-quiet"], port,
          cwd=str(tmp_path))
    r = cli("-x", 10000, *["GET", "https://localhost:%d/page" % port] * 2)
    for x in r:
        # -WWW writes HTTP/1.0 without a length and closes; whether it ends TLS properly first differs between versions of openssl
        assert (x["ok"] and x["body_len"] == 70_000) or (x["code"] == 69 and "without ending TLS" in x["text"]), x


@pytest.mark.parametrize("suite", ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"])
def test_the_usual_suites_of_tls_1_2(cli, ca, made, suite):
    c = peer.server_context(ca.pair, maximum_version=ssl.TLSVersion.TLSv1_2)
    c.set_ciphers(suite)
    assert cli("GET", made(peer.Peer(peer.answers(peer.response()), tls=c)).url()).last["ok"]


@pytest.mark.parametrize("bits", [2048, 3072])
def test_rsa_certificates(cli, ca, made, bits):
    c = peer.server_context(ca.issue("rsa", bits=bits))
    assert cli("GET", made(peer.Peer(peer.answers(peer.response()), tls=c)).url()).last["ok"]


HAPROXY = """
global
    maxconn 50
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend f
    bind 127.0.0.1:{port} ssl crt {bundle}
    http-response set-header Via "1.1 haproxy"
    use_backend dead if {{ path /dead }}
    default_backend b
backend b
    server s 127.0.0.1:{back}
backend dead
    server s 127.0.0.1:1
"""


def test_haproxy_in_front(cli, ca, start, made, tmp_path):
    back = made(peer.Peer(peer.answers(peer.response(b"h" * 50_000), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")))
    port = free_port()
    (tmp_path / "bundle.pem").write_text(open(ca.pair[0]).read() + open(ca.pair[1]).read())
    (tmp_path / "haproxy.cfg").write_text(HAPROXY.format(port=port, bundle=tmp_path / "bundle.pem", back=back.port))
    start(["/usr/sbin/haproxy", "-db", "-f", str(tmp_path / "haproxy.cfg")], port)
    at = "https://localhost:%d" % port
    r = cli("GET", at + "/", "GET", at + "/", "GET", at + "/dead", "POST", at + "/")
    assert r[0]["body_len"] == 50_000 and r[1]["body"] == "abc" and r[3]["ok"]
    assert "via 1.1 haproxy" in r[0]["page"]
    assert r[2]["status"] == 503 and r[2]["html"]
