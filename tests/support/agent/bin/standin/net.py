"""As much HTTPS as the agent needs: one request a connection, interruptible by a wake-up pipe; and the signed client assertion."""
import base64
import json
import os
import select
import socket
import ssl
import time

BOM = b"\xef\xbb\xbf"


class Interrupted(Exception):
    pass


class NetError(Exception):
    pass


CONTEXT = None


def context():
    global CONTEXT
    if CONTEXT is None:
        CONTEXT = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
    return CONTEXT


def split(url):
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    host, _, port = authority.partition(":")
    if scheme != "https":
        raise NetError("%s is not https" % url)
    return host, int(port or 443), authority, "/" + path


def request(method, url, headers, body=None, wake=None, timeout=100):
    """Returns (status, parsed JSON or None). ``wake``: a descriptor that interrupts the wait when it becomes readable."""
    host, port, authority, path = split(url)
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + authority, "Connection: close"]
    lines += ["%s: %s" % kv for kv in headers.items()]
    if method in ("POST", "PUT"):
        lines.append("Content-Length: %d" % len(data))
    end = time.monotonic() + timeout
    try:
        with socket.create_connection((host, port), 10) as raw, context().wrap_socket(raw, server_hostname=host) as sock:
            sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + data)
            sock.setblocking(False)  # readable may mean a session ticket, no answer yet
            answer = b""
            while True:
                if not sock.pending():
                    ready = select.select([sock] + ([wake] if wake is not None else []), [], [], max(0, end - time.monotonic()))[0]
                    if wake is not None and wake in ready:
                        raise Interrupted()
                    if not ready:
                        raise NetError("no answer from %s within %d s" % (host, timeout))
                try:
                    piece = sock.recv(65536)
                except ssl.SSLWantReadError:
                    continue
                if not piece:
                    break
                answer += piece
    except OSError as why:
        raise NetError("%s: %s" % (host, why))
    return parse(answer, host)


def parse(answer, host):
    head, sep, data = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split(b" ")
    if not sep or len(words) < 2 or not words[1].isdigit():
        raise NetError("%s did not answer HTTP" % host)
    if b"\r\ntransfer-encoding: chunked" in head.lower():
        out = b""
        while data:
            size, _, data = data.partition(b"\r\n")
            n = int(size, 16)
            if n == 0:
                break
            out, data = out + data[:n], data[n + 2:]
        data = out
    if data.startswith(BOM):
        data = data[3:]
    try:
        return int(words[1]), json.loads(data) if data else None
    except ValueError:
        return int(words[1]), None


def sha256(data):
    from _sha256 import sha256 as digest  # hashlib loads all of OpenSSL's for it
    return digest(data).digest()


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def mgf1(seed, size):
    out = b""
    for i in range(-(-size // 32)):
        out += sha256(seed + i.to_bytes(4, "big"))
    return out[:size]


def pss(message):
    """EMSA-PSS of RFC 8017 for 2048 bits, SHA-256, salt of 32 bytes."""
    salt = os.urandom(32)
    h = sha256(b"\0" * 8 + sha256(message) + salt)
    db = b"\0" * (256 - 32 - 32 - 2) + b"\1" + salt
    masked = bytearray(a ^ b for a, b in zip(db, mgf1(h, len(db))))
    masked[0] &= 0x7f
    return bytes(masked) + h + b"\xbc"


def pkcs1(message):
    info = bytes.fromhex("3031300d060960864801650304020105000420") + sha256(message)
    return b"\0\1" + b"\xff" * (256 - 3 - len(info)) + b"\0" + info


def private(key, data):
    m = int.from_bytes(data, "big")
    a, b = pow(m, key["dp"], key["p"]), pow(m, key["dq"], key["q"])
    return (b + (a - b) * key["inverseQ"] % key["p"] * key["q"]).to_bytes(256, "big")


def assertion(key, client, audience, fips):
    now = int(time.time())
    jti = os.urandom(16).hex()
    jti = "-".join([jti[:8], jti[8:12], jti[12:16], jti[16:20], jti[20:]])
    head = {"typ": "JWT", "alg": "PS256" if fips else "RS256"}
    claims = {"sub": client, "jti": jti, "iss": client, "aud": audience, "nbf": now, "exp": now + 300}
    text = b64url(json.dumps(head).encode()) + "." + b64url(json.dumps(claims).encode())
    signed = private(key, (pss if fips else pkcs1)(text.encode()))
    return text + "." + b64url(signed)


FORM = ("grant_type=client_credentials&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
        "&client_assertion=")


def token(key, credentials, agent):
    """(access token, None) or (None, error kind)."""
    url = credentials["authorizationurl"]
    fips = credentials.get("requirefipscryptography", "False") == "True"
    text = assertion(key, credentials["clientid"], url, fips)
    status, obj = request("POST", url, {"User-Agent": agent, "Accept": "application/json",
                                        "Content-Type": "application/x-www-form-urlencoded"}, (FORM + text).encode())
    if status == 200:
        return obj["access_token"], None
    if status == 400 and obj and "error" in obj:
        return None, obj["error"]
    raise NetError("the token request was answered %d" % status)
