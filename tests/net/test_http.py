"""HTTP/1.1 as it is spoken: framing, keep-alive, redirects, limits, and agreement with Python's own parser."""
import http.client
import io
import random
import time

import pytest

from peer import Peer, answers, read_request, reset, response, server_context


def serve_tls(made, ca, serve):
    return made(Peer(serve, tls=server_context(ca.pair)))


def test_the_request_is_written_as_it_should_be(cli, ca, made):
    s = answers(response())
    p = serve_tls(made, ca, s)
    r = cli("-H", "Authorization: Bearer x", "-d", "hello", "POST", p.url("/a?b=c"), "GET", p.url("/"), "DELETE", p.url("/x"))
    assert [x["ok"] for x in r] == [True] * 3
    line, headers, body = s.requests[0]
    assert line == "POST /a?b=c HTTP/1.1" and body == b"hello"
    assert headers == {"host": "localhost:%d" % p.port, "user-agent": "netcli/1", "authorization": "Bearer x",
                       "content-length": "5", "connection": "keep-alive"}
    assert p.count == 1, "one connection serves all of them"


def test_a_post_without_a_body_says_so(cli, ca, made):
    s = answers(response())
    p = serve_tls(made, ca, s)
    cli("POST", p.url(), "GET", p.url())
    assert s.requests[0][1]["content-length"] == "0"
    assert "content-length" not in s.requests[1][1]


@pytest.mark.parametrize("header", ["A b: c", "A:b: c", ": c", "A\r\nB: c", "A: c\r\nInjected: d", "A: c\nd"])
def test_a_header_that_cannot_be_sent_is_a_bug_and_not_an_injection(cli, ca, made, header):
    s = answers(response())
    p = serve_tls(made, ca, s)
    r = cli("-H", header, "GET", p.url()).last
    if r["ok"]:
        assert header == "A:b: c", "everything behind the first colon is the value"
    else:
        assert r["code"] == 70 and not r["sent"]
        assert not s.requests


def chunked(*parts, trailer=b"", ext=b""):
    return b"".join(b"%x%s\r\n%s\r\n" % (len(p), ext, p) for p in parts) + b"0\r\n" + trailer + b"\r\n"


BODIES = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"hel", b"lo"), b"hello"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"hel", b"lo", trailer=b"A: b\r\nC: d\r\n", ext=b";q=1"), b"hello"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(), b""),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", b""),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n\xef\xbb\xbfhello", b"hello"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xef\xbb", b"\xef\xbb"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b", b"a\0b"),
]


@pytest.mark.parametrize("pieces", [1, 3, 100000])
def test_every_framing_is_undone_whatever_the_pieces_it_comes_in(cli, ca, made, pieces):
    todo = iter(BODIES * 2)

    def serve(s, _n):
        while read_request(s):
            data = next(todo)[0]
            for i in range(0, len(data), pieces):
                s.sendall(data[i:i + pieces])
    p = serve_tls(made, ca, serve)
    r = cli("-B", *["GET", p.url()] * len(BODIES))
    assert [bytes.fromhex(x["hex"]) for x in r] == [b for _, b in BODIES]
    assert p.count == 1


def test_a_body_without_a_length_ends_with_the_connection(cli, ca, made):
    def serve(s, _n):
        read_request(s)
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
        s.unwrap()
    p = serve_tls(made, ca, serve)
    r = cli("GET", p.url(), "GET", p.url())
    assert [x["body"] for x in r] == ["hello", "hello"]
    assert p.count == 2, "such a connection is not used again"


def test_a_head_request_has_no_body(cli, ca, made):
    p = serve_tls(made, ca, answers(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"))
    r = cli("HEAD", p.url(), "HEAD", p.url())
    assert [x["body_len"] for x in r] == [0, 0] and p.count == 1


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK\r\nConnection: close", "HTTP/1.0 200 OK"])
def test_a_connection_that_is_to_be_closed_is_not_used_again(cli, ca, made, head):
    p = serve_tls(made, ca, answers((head + "\r\nContent-Length: 2\r\n\r\nok").encode()))
    assert all(x["ok"] for x in cli("GET", p.url(), "GET", p.url()))
    assert p.count == 2


def test_bytes_behind_an_answer_end_the_connection(cli, ca, made):
    p = serve_tls(made, ca, answers(response() + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"))
    r = cli("GET", p.url(), "GET", p.url())
    assert [x["body"] for x in r] == ['{"a":1}'] * 2 and p.count == 2


def test_bytes_that_come_while_idle_end_the_connection(cli, ca, made):
    def serve(s, _n):
        while read_request(s):
            s.sendall(response())
            time.sleep(0.2)
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
    p = serve_tls(made, ca, serve)
    r = cli("-w", 600, "GET", p.url(), "GET", p.url())
    assert [x["body"] for x in r] == ['{"a":1}'] * 2 and p.count == 2


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_kept_connection_that_the_server_closed_is_replaced(cli, ca, made, how):
    def serve(s, _n):
        read_request(s)
        s.sendall(response())
        if how == "reset":
            reset(s)
    p = serve_tls(made, ca, serve)
    assert all(x["ok"] for x in cli("-w", 300, "GET", p.url(), "POST", p.url()))
    assert p.count == 2


def test_a_get_on_a_kept_connection_that_dies_silently_is_sent_once_more(cli, ca, made):
    def serve(s, number):
        read_request(s)
        s.sendall(response())
        if number == 0:
            read_request(s)  # and no answer
    p = serve_tls(made, ca, serve)
    assert all(x["ok"] for x in cli("GET", p.url(), "GET", p.url()))
    assert p.count == 2


def test_a_post_on_a_kept_connection_that_dies_is_reported_as_sent(cli, ca, made):
    def serve(s, _n):
        read_request(s)
        s.sendall(response())
        read_request(s)
    p = serve_tls(made, ca, serve)
    r = cli("GET", p.url(), "POST", p.url()).last
    assert (r["ok"], r["sent"], r["code"], r["stage"]) == (False, True, 69, "receive")
    assert p.count == 1


def test_an_early_refusal_of_a_large_body_is_read(cli, ca, made):
    def serve(s, _n):
        s.recv(100)
        s.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        s.shutdown(1)
        time.sleep(0.3)
    p = made(Peer(serve))
    r = cli("-d", "x" * 100000, "POST", p.url()).last
    assert r["ok"] and r["status"] == 413 and r["body"] == "no"


# ---- redirects ----

def test_a_redirect_within_the_origin_is_followed_when_asked_for(cli, ca, made):
    s = answers(response(b"", "301 Moved", ["Location: /repositories/7"]), response(b"", "302 F", ["Location: https://localhost:x/"]),
                response())
    p = serve_tls(made, ca, s)
    r = cli("-f", "GET", p.url("/repos/a/b")).last
    assert s.requests[1][0] == "GET /repositories/7 HTTP/1.1"
    assert r["ok"] is False and "redirects (302)" in r["text"], "a broken target is foreign"


def test_a_whole_url_of_the_same_origin_is_followed(cli, ca, made):
    def serve(s, _n):
        line = read_request(s)[0]
        where = "Location: %s" % p.url("/b?x=1").replace("localhost", "LOCALHOST")
        s.sendall(response(b"", "307 T", [where]) if " /a " in line else response())
        while read_request(s):
            s.sendall(response(b"there"))
    p = serve_tls(made, ca, serve)
    assert cli("-f", "GET", p.url("/a")).last["body"] == "there"


def test_not_more_than_three_redirects_are_followed(cli, ca, made):
    s = answers(response(b"", "302 F", ["Location: /again"]))
    p = serve_tls(made, ca, s)
    assert cli("-f", "GET", p.url()).last["status"] == 302
    assert len(s.requests) == 4


@pytest.mark.parametrize("method,flag", [("POST", "-f"), ("DELETE", "-f"), ("GET", "-k")])
def test_other_redirects_are_the_callers_matter(cli, ca, made, method, flag):
    s = answers(response(b"", "307 T", ["Location: /x"]))
    p = serve_tls(made, ca, s)
    assert cli(flag, method, p.url()).last["status"] == 307
    assert len(s.requests) == 1


@pytest.mark.parametrize("where", ["https://evil.example/", "http://localhost/", "//evil.example/", "https://localhost:1/", "ftp://x/", "x",
                                   "https://user@localhost/"])
def test_no_redirect_carries_a_credential_to_another_origin(cli, ca, made, where):
    s = answers(response(b"", "302 F", ["Location: " + where]))
    p = serve_tls(made, ca, s)
    r = cli("-f", "-H", "Authorization: Bearer topsecret", "GET", p.url()).last
    assert (r["ok"], r["code"]) == (False, 76) and "credentials are not sent there" in r["text"]
    assert len(s.requests) == 1 and "topsecret" not in r["text"]


# ---- what answers mean ----

def test_ids_types_and_pages_are_told(cli, ca, made):
    p = serve_tls(made, ca, answers(
        response(headers=["X-GitHub-Request-Id: AB:1", "X-Vss-E2eid: no"]), response(headers=["X-VSS-E2EID: e2e"]),
        response(b" <!DOCTYPE html><title>Unicorn</title>", "502 Bad Gateway", ["Server: GitHub.com"]),
        response(headers=["X-GitHub-Request-Id: " + "x" * 500])))
    r = cli(*["GET", p.url()] * 4)
    assert [x["request_id"] for x in r] == ["AB:1", "e2e", "", ""]
    assert r[2]["status"] == 502 and r[2]["html"] and r[2]["page"] == 'a web page titled "Unicorn", server GitHub.com'


def test_an_error_page_is_the_servers_and_a_page_with_200_is_not(cli, ca, made):
    page = response(b"<html>no</html>").replace(b"application/json", b"text/html")
    p = serve_tls(made, ca, answers(page.replace(b"200 OK", b"503 Busy"), page))
    r = cli("GET", p.url(), "GET", p.url())
    assert r[0]["status"] == 503 and r[1]["code"] == 76


def test_the_date_counts_only_when_it_was_verified(cli, ca, made):
    old = response(headers=["Date: Sun, 06 Nov 1994 08:49:37 GMT"])
    plain, tls = made(Peer(answers(old))), serve_tls(made, ca, answers(old))
    r = cli("GET", plain.url(), "GET", tls.url())
    assert r[0]["ok"] and r[0]["date_ms"] == -1
    assert r[1]["code"] == 82


def test_only_the_first_verified_answer_fails_for_the_clock(cli, ca, made):
    good = time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    p = serve_tls(made, ca, answers(response(headers=[good]), response(headers=["Date: Sun, 06 Nov 1994 08:49:37 GMT"])))
    r = cli("GET", p.url(), "GET", p.url())
    assert r[0]["ok"] and r[1]["ok"] and r[1]["date_ms"] == 784111777000


@pytest.mark.parametrize("off", [-310, -290, 290, 310])
def test_five_minutes_are_the_limit(cli, ca, made, off):
    date = time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + off))
    r = cli("GET", serve_tls(made, ca, answers(response(headers=[date]))).url()).last
    assert r["ok"] == (abs(off) < 300)
    if not r["ok"]:
        assert r["code"] == 82 and ("ahead" if off < 0 else "behind") in r["text"]


def test_a_removal_does_not_fail_for_the_clock(cli, ca, made):
    p = serve_tls(made, ca, answers(response(headers=["Date: Sun, 06 Nov 1994 08:49:37 GMT"])))
    r = cli("-k", "-b", int(time.time()) + 9999, "DELETE", p.url()).last
    assert r["ok"] and r["date_ms"] == 784111777000


# ---- agreement with another parser ----

def some_response(rng):
    """A valid response in one of the many ways there are to write it, and its length or None."""
    body = bytes(rng.choice(b"\0\r\n{}\"ab\xff<") for _ in range(rng.choice([0, 1, 5, 300, 5000])))
    if body.startswith(b"\xef\xbb\xbf") or body.lstrip().startswith(b"<"):
        body = b"[" + body
    lines = []
    for _ in range(rng.randrange(6)):
        name = "X-" + "".join(rng.choice("abcXYZ019!#$%&'*+-.^_`|~") for _ in range(rng.randrange(1, 12)))
        lines.append(name + ":" + rng.choice(["", " ", "\t", "  "]) + rng.choice(["", "v", "a b", "x\ty", '"q";p=1', "," * 5])
                     + rng.choice(["", " ", " \t"]))
    framing = rng.choice(["length", "length", "chunked", "close"])
    if framing == "length":
        lines.append(rng.choice(["Content-Length", "content-length", "CONTENT-LENGTH"]) + ":" + " " * rng.randrange(3) +
                     "0" * rng.randrange(3) + str(len(body)))
        data = body
    elif framing == "chunked":
        lines.append(rng.choice(["Transfer-Encoding: chunked", "transfer-encoding:CHUNKED"]))
        data, at = b"", 0
        while at < len(body):
            n = rng.randrange(1, len(body) - at + 1)
            size = rng.choice(["%x", "%X", "00%x"]) % n
            data += size.encode() + rng.choice([b"", b";a=b", b" ;x"]) + b"\r\n" + body[at:at + n] + b"\r\n"
            at += n
        data += rng.choice([b"0", b"000"]) + b"\r\n" + rng.choice([b"", b"T: x\r\n", b"A:\r\nB: y\r\n"]) + b"\r\n"
    else:
        lines.append("Connection: close")
        data = body
    rng.shuffle(lines)
    first = rng.choice(["HTTP/1.1 200 OK", "HTTP/1.1 201 Created", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 ", "HTTP/1.1 500 a b c"])
    return ("\r\n".join([first, *lines]) + "\r\n\r\n").encode() + data


class OneAnswer(io.BytesIO):
    def makefile(self, *_):
        return self


def pythons_view(data):
    r = http.client.HTTPResponse(OneAnswer(data))
    r.begin()
    return r.status, r.read()


@pytest.mark.parametrize("seed", range(4))
def test_valid_answers_are_read_as_pythons_parser_reads_them(cli, ca, made, seed):
    rng = random.Random(seed)
    many = [some_response(rng) for _ in range(150)]
    todo = iter(many)

    def serve(s, _n):
        while read_request(s):
            data = next(todo)
            s.sendall(data)
            if b"Connection: close" in data.split(b"\r\n\r\n")[0]:
                return
    p = made(Peer(serve))
    r = cli("-B", *["POST", p.url()] * len(many))
    for data, mine in zip(many, r, strict=True):
        assert mine["ok"], (data, mine)
        assert (mine["status"], bytes.fromhex(mine["hex"])) == pythons_view(data), data


# What two parsers could read differently. Each must be refused, by name.
AMBIGUOUS = {
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
    "a signed length": b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na",
    "a hexadecimal length": b"HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\na",
    "an empty length": b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\na",
    "a length with a blank": b"HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\na",
    "a length beyond 64 bits": b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\na",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two codings": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked not last": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "chunked twice": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "identity": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nx",
    "a coding with a vertical tab": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a quoted coding": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na",
    "a name with a blank": b"HTTP/1.1 200 OK\r\nContent Length: 1\r\n\r\na",
    "a folded line": b"HTTP/1.1 200 OK\r\nX: a\r\n Content-Length: 1\r\n\r\na",
    "a line folded at the start": b"HTTP/1.1 200 OK\r\n Content-Length: 1\r\n\r\na",
    "a line without a colon": b"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
    "an empty name": b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 1\n\na",
    "one bare line feed": b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 1\r\n\r\na",
    "a bare carriage return": b"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 1\r\n\r\na",
    "a doubled carriage return": b"HTTP/1.1 200 OK\r\nX: a\r\r\n\r\n",
    "a NUL": b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
    "a NUL in a name": b"HTTP/1.1 200 OK\r\nX\0: a\r\n\r\n",
    "obs-text": b"HTTP/1.1 200 OK\r\nX: \xe4\r\n\r\n",
    "a non-breaking space": b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\xa0chunked\r\n\r\n0\r\n\r\n",
    "lower-case http": b"http/1.1 200 OK\r\n\r\n",
    "HTTP/1.10": b"HTTP/1.10 200 OK\r\n\r\n",
    "HTTP/01.1": b"HTTP/01.1 200 OK\r\n\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "a tab in the status line": b"HTTP/1.1\t200 OK\r\n\r\n",
    "two blanks in the status line": b"HTTP/1.1  200 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a blank before the version": b" HTTP/1.1 200 OK\r\n\r\n",
    "an empty line before the head": b"\r\nHTTP/1.1 200 OK\r\n\r\n",
    "HTTP/0.9": b"hello",
    "a chunk size with a prefix": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    "a signed chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n",
    "a chunk size with an underscore": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n",
    "a blank before the chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n",
    "a chunk size beyond 32 bits": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000001\r\na",
    "a chunk line of a bare line feed": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
    "a chunk longer than it says": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "a bare line feed after a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
    "a bare line feed in an extension": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x\na\r\n0\r\n\r\n",
    "a folded trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n X: y\r\n\r\n",
    "a trailer without a colon": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX\r\n\r\n",
    "a bare line feed as the end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n",
}


def test_every_ambiguous_answer_is_refused(cli, ca, made):
    todo = iter(AMBIGUOUS.values())

    def serve(s, _n):
        read_request(s)
        s.sendall(next(todo))
        s.recv(1)  # until the client has had enough
    p = made(Peer(serve))
    r = cli("-x", 3000, *["POST", p.url()] * len(AMBIGUOUS))
    for name, mine in zip(AMBIGUOUS, r, strict=True):
        assert (mine["ok"], mine.get("code")) == (False, 76) and "proper HTTP" in mine["text"], (name, mine)
