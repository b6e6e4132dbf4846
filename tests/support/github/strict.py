"""What a request of each kind must look like. Every function records violations on the request and returns nothing useful; a request
with a violation is answered 400 by ``wire`` and changes nothing."""
import base64
import binascii
import json
import re
import urllib.parse

AGENT = re.compile(r"GitHubActionsRunner-linux-(x64|arm64|arm)/(\d+\.\d+\.\d+)")
PRODUCT = re.compile(r"[A-Za-z][A-Za-z0-9._-]*/[^\s()]+")
COMMENT = re.compile(r"\([^()]*\)")
HOP = {"host", "user-agent", "authorization", "content-type", "content-length", "accept", "connection", "x-github-api-version",
       "x-tfs-fedauthredirect", "x-tfs-session", "x-vss-e2eid", "accept-language"}
SYSTEM_LABELS = ["self-hosted", "Linux"]
ARCH_LABELS = {"x64": "X64", "arm64": "ARM64", "arm": "ARM"}


def no_duplicates(pairs):
    out = {}
    for key, value in pairs:
        if key in out:
            raise ValueError("duplicate key %r" % key)
        out[key] = value
    return out


def load(data):
    def no_constant(text):
        raise ValueError("%s is not JSON" % text)
    return json.loads(data.decode("utf-8"), object_pairs_hook=no_duplicates, parse_constant=no_constant)


def common(world, req):
    """Headers that hold for every request of the client."""
    seen = set()
    for name, value in req.headers:
        low = name.lower()
        if low in seen:
            world.violation(req, "header %s occurs twice" % name)
        seen.add(low)
        if low not in HOP:
            world.violation(req, "header %s is not part of the protocol" % name)
        if value != value.strip() or not value.isprintable():
            world.violation(req, "value of header %s is padded or not printable" % name)
    if req.get("host") is None:
        world.violation(req, "no Host header")
    if req.method in ("POST", "PUT") and req.get("content-length") is None:
        world.violation(req, "no Content-Length")
    if req.method in ("GET", "DELETE") and (req.get("content-length") or "0") != "0":
        world.violation(req, "%s with a body" % req.method)
    connection = req.get("connection")
    if connection is not None and connection.lower() not in ("keep-alive", "close"):
        world.violation(req, "Connection: %s" % connection)


def user_agent(world, req):
    """The runner's own User-Agent; returns (package, version) or None."""
    value = req.get("user-agent")
    if value is None:
        world.violation(req, "no User-Agent")
        return None
    rest = COMMENT.sub(" ", value).split()
    first = AGENT.fullmatch(rest[0]) if rest else None
    if first is None:
        world.violation(req, "User-Agent %r does not begin with GitHubActionsRunner-linux-ARCH/VERSION" % value)
        return None
    for piece in rest[1:]:
        if not PRODUCT.fullmatch(piece):
            world.violation(req, "User-Agent has a piece %r that is no product" % piece)
    want = world.set["expected_version"]
    if want is not None and first.group(2) != want:
        world.violation(req, "User-Agent says version %s, the installed runner is %s" % (first.group(2), want))
    return first.group(1), first.group(2)


def accept_none(world, req):
    if req.get("accept") is not None:
        world.violation(req, "Accept: %s, the runner sends none here" % req.get("accept"))
    if req.get("x-github-api-version") is not None:
        world.violation(req, "X-GitHub-Api-Version does not belong here")


def json_type(world, req, media="application/json"):
    value = req.get("content-type")
    if value is None:
        world.violation(req, "no Content-Type")
        return
    parts = [p.strip().lower() for p in value.split(";")]
    if parts[0] != media or any(p != "charset=utf-8" for p in parts[1:]):
        world.violation(req, "Content-Type: %s" % value)


def versioned(world, req, version, body):
    """Media types of the pipelines service carry the API version."""
    want = "application/json; api-version=%s" % version
    got = req.get("accept")
    if got is None or re.sub(r"\s*;\s*", "; ", got) != want:
        world.violation(req, "Accept: %s instead of %s" % (got, want))
    ctype = req.get("content-type")
    if body:
        parts = [p.strip() for p in (ctype or "").split(";")]
        if parts[0] != "application/json" or "api-version=%s" % version not in parts or \
           any(p not in ("charset=utf-8", "api-version=%s" % version) for p in parts[1:]):
            world.violation(req, "Content-Type: %s instead of application/json; charset=utf-8; api-version=%s" % (ctype, version))
    if (req.get("x-tfs-fedauthredirect") or "") != "Suppress":
        world.violation(req, "X-TFS-FedAuthRedirect: Suppress is missing")


def auth(world, req, scheme):
    """Returns the credential behind ``scheme`` (compared exactly), or None after a violation."""
    value = req.get("authorization")
    if value is None:
        world.violation(req, "no Authorization")
        return None
    kind, _, credential = value.partition(" ")
    if kind != scheme:
        world.violation(req, "Authorization %s instead of %s" % (kind, scheme))
        return None
    if not credential or credential != credential.strip() or " " in credential:
        world.violation(req, "the credential of Authorization is malformed")
        return None
    return credential


def body(world, req, types, optional=None, extra=False):
    """The JSON object of the request with exactly the keys of ``types`` (and ``optional``); None after a violation."""
    try:
        obj = load(req.body)
    except (ValueError, UnicodeDecodeError) as why:
        world.violation(req, "the body is not JSON: %s" % why)
        return None
    if not isinstance(obj, dict):
        world.violation(req, "the body is no JSON object")
        return None
    optional = optional or {}
    good = True
    for key, kind in types.items():
        if key not in obj:
            world.violation(req, "body key %s is missing" % key)
            good = False
        elif not is_type(obj[key], kind):
            world.violation(req, "body key %s is no %s" % (key, kind))
            good = False
    for key, value in obj.items():
        if key in types:
            continue
        if key in optional:
            if not is_type(value, optional[key]):
                world.violation(req, "body key %s is no %s" % (key, optional[key]))
                good = False
        elif not extra:
            world.violation(req, "body key %s is not part of the protocol" % key)
            good = False
    return obj if good else None


def is_type(value, kind):
    if kind == "str":
        return isinstance(value, str)
    if kind == "int":
        return type(value) is int
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "list":
        return isinstance(value, list)
    if kind == "dict":
        return isinstance(value, dict)
    if kind == "any":
        return True
    raise AssertionError(kind)


def base64_exact(text, size):
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != size or base64.b64encode(raw).decode() != text:
        return None
    return raw


def public_key(world, req, modulus, exponent):
    raw = base64_exact(modulus, 256) if isinstance(modulus, str) else None
    if raw is None:
        world.violation(req, "the modulus is not 256 bytes of canonical base64")
        return None
    n = int.from_bytes(raw, "big")
    if n.bit_length() != 2048 or n % 2 == 0:
        world.violation(req, "the modulus is no 2048-bit RSA modulus")
        return None
    if exponent != "AQAB":
        world.violation(req, "the exponent is %r instead of AQAB" % (exponent,))
        return None
    return (n, 65537)


XML = re.compile(r"<RSAKeyValue><Modulus>([A-Za-z0-9+/=]+)</Modulus><Exponent>([A-Za-z0-9+/=]+)</Exponent></RSAKeyValue>")


def xml_key(world, req, text):
    m = XML.fullmatch(text)
    if m is None:
        world.violation(req, "public_key is not the XML form without white space")
        return None
    return public_key(world, req, m.group(1), m.group(2))


def labels(world, req, items, arch):
    """The label list of add and replace; returns the names."""
    names = []
    user_seen = False
    for item in items:
        if not isinstance(item, dict) or set(item) != {"id", "name", "type"} or type(item["id"]) is not int or item["id"] != 0 \
           or not isinstance(item["name"], str) or item["type"] not in ("system", "user"):
            world.violation(req, "label %r is not {id: 0, name, type}" % (item,))
            return None
        name = item["name"]
        if not 1 <= len(name) <= 256 or name != name.strip():
            world.violation(req, "label %r is padded, empty or longer than 256 characters" % name)
        if "," in name:
            world.violation(req, "label %r holds a comma" % name)
        if name.lower() in [n.lower() for n in names]:
            world.violation(req, "label %r occurs twice" % name)
        if item["type"] == "system":
            if user_seen:
                world.violation(req, "system label %r stands behind a user label" % name)
            if name not in SYSTEM_LABELS + [ARCH_LABELS.get(arch)]:
                world.violation(req, "%r is no default label of this platform" % name)
        else:
            user_seen = True
        names.append(name)
    system = [i["name"] for i in items if i["type"] == "system"]
    if system and system != SYSTEM_LABELS + [ARCH_LABELS.get(arch)]:
        world.violation(req, "default labels are %r" % (system,))
    return names


def runner_name(world, req, name):
    if not 1 <= len(name) <= 64:
        world.violation(req, "name of %d characters" % len(name))


def percent_query(world, req, allowed):
    """Query of the request as a dict; only RFC 3986 unreserved characters may stand unencoded."""
    out = {}
    if not req.query:
        return out
    for piece in req.query.split("&"):
        key, eq, value = piece.partition("=")
        if not eq or key in out:
            world.violation(req, "query %r is malformed" % req.query)
            return out
        if key not in allowed:
            world.violation(req, "query key %r is not part of the protocol" % key)
        if not re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*", value):
            world.violation(req, "query value %r is not percent-encoded" % value)
        try:
            out[key] = urllib.parse.unquote(value, errors="strict")
        except UnicodeDecodeError:
            world.violation(req, "query value %r is not UTF-8" % value)
            out[key] = ""
    return out
