"""Reads ``.runner``, ``.credentials`` and ``.credentials_rsaparams`` by the rules of the real agent, and checks more than it does."""
import base64
import json
import os
import stat

SIZES = {"d": 256, "dp": 128, "dq": 128, "exponent": 3, "inverseQ": 128, "modulus": 256, "p": 128, "q": 128}
RUNNER_KEYS = {"ishostedserver": bool, "agentid": int, "agentname": str, "skipsessionrecover": bool, "poolid": int, "poolname": str,
               "disableupdate": bool, "ephemeral": bool, "serverurl": str, "githuburl": str, "workfolder": str,
               "monitorsocketaddress": str, "usev2flow": bool, "userunneradminflow": bool, "serverurlv2": str}
IDENTITY = [".credentials", ".credentials_migrated", ".credentials_rsaparams", ".runner", ".runner_migrated"]


class Bad(Exception):
    pass


def load(root, name, problems):
    path = os.path.join(root, name)
    try:
        st = os.lstat(path)
        with open(path, "rb") as f:
            data = f.read()
    except OSError as why:
        raise Bad("%s: %s" % (name, why.strerror))
    if not stat.S_ISREG(st.st_mode):
        problems.append("%s is no regular file" % name)
    if stat.S_IMODE(st.st_mode) != 0o600:
        problems.append("%s has mode %04o" % (name, stat.S_IMODE(st.st_mode)))
    if st.st_uid != os.geteuid():
        problems.append("%s belongs to uid %d" % (name, st.st_uid))
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]

    def once(pairs):
        out = dict(pairs)
        if len(out) != len(pairs):
            raise ValueError("duplicate key")
        return out
    try:
        obj = json.loads(data.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, UnicodeDecodeError) as why:
        raise Bad("%s: %s" % (name, why))
    if not isinstance(obj, dict):
        raise Bad("%s is no JSON object" % name)
    return obj


def convert(key, value, kind):
    """A value by Newtonsoft's leniency: numbers and booleans may be strings."""
    if kind is bool and isinstance(value, bool):
        return value
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kind is int and type(value) is int and 0 <= value < 1 << 64:
        return value
    if kind is int and isinstance(value, str) and value.isascii() and value.isdigit() and int(value) < 1 << 64:
        return int(value)
    if kind is str and isinstance(value, str):
        return value
    raise Bad(".runner: %s is %r" % (key, value))


def runner(root, problems):
    raw = load(root, ".runner", problems)
    jit = "AgentId" in raw
    out = {}
    for key, value in raw.items():
        kind = RUNNER_KEYS.get(key.lower())
        if kind is None:
            problems.append(".runner has an unknown key %s" % key)
            continue
        if not jit and type(value) is not kind:
            problems.append(".runner: %s is written as %s" % (key, type(value).__name__))
        if not jit and kind is bool and value is False and key != "isHostedServer":
            problems.append(".runner: %s is written though false" % key)
        out[key.lower()] = convert(key, value, kind)
    if not jit:
        for key in ("agentId", "agentName", "poolId", "poolName", "serverUrl", "gitHubUrl", "workFolder"):
            if key not in raw:
                problems.append(".runner: %s is missing" % key)
    if not out.get("workfolder"):
        raise Bad(".runner: no workFolder")
    if out.get("usev2flow") and not out.get("serverurlv2"):
        raise Bad("ServerUrlV2 is not set")
    if not out.get("usev2flow") and not out.get("serverurl"):
        raise Bad(".runner: no serverUrl")
    return out


def credentials(root, problems):
    raw = {k.lower(): v for k, v in load(root, ".credentials", problems).items()}
    if raw.get("scheme") != "OAuth":
        raise Bad(".credentials: scheme is %r" % raw.get("scheme"))
    data = raw.get("data")
    if not isinstance(data, dict) or any(not isinstance(v, str) for v in data.values()):
        raise Bad(".credentials: data holds something that is no string")
    data = {k.lower(): v for k, v in data.items()}
    known = {"clientid", "authorizationurl", "requirefipscryptography", "oauthendpointurl", "enableauthmigrationbydefault",
             "authorizationurlv2"}
    for key in set(data) - known:
        problems.append(".credentials: unknown key %s" % key)
    client = data.get("clientid", "")
    parts = client.split("-")
    if [len(p) for p in parts] != [8, 4, 4, 4, 12] or client != client.lower() or any(c not in "0123456789abcdef-" for c in client):
        problems.append(".credentials: clientId %r is no lower-case GUID" % client)
    if not data.get("authorizationurl", "").startswith("https://"):
        raise Bad(".credentials: authorizationUrl is %r" % data.get("authorizationurl"))
    if data.get("requirefipscryptography", "False") not in ("True", "False"):
        problems.append(".credentials: requireFipsCryptography is %r" % data["requirefipscryptography"])
    return data


def rsa(root, problems):
    raw = load(root, ".credentials_rsaparams", problems)
    if set(raw) != set(SIZES):
        raise Bad(".credentials_rsaparams has the keys %s" % ", ".join(raw))
    if list(raw) != list(SIZES):
        problems.append(".credentials_rsaparams: the keys are in another order")
    num = {}
    for key, size in SIZES.items():
        try:
            data = base64.b64decode(raw[key], validate=True)
        except (ValueError, TypeError):
            raise Bad(".credentials_rsaparams: %s is no base64" % key)
        if len(data) != size or base64.b64encode(data).decode() != raw[key]:
            raise Bad(".credentials_rsaparams: %s has %d bytes instead of %d" % (key, len(data), size))
        num[key] = int.from_bytes(data, "big")
    n, e, d, p, q = num["modulus"], num["exponent"], num["d"], num["p"], num["q"]
    good = (p * q == n and n.bit_length() == 2048 and e == 65537 and num["dp"] == d % (p - 1) and num["dq"] == d % (q - 1)
            and num["inverseQ"] * q % p == 1 and e * d % (p - 1) == 1 and e * d % (q - 1) == 1)
    if not good:
        raise Bad(".credentials_rsaparams: the numbers do not belong together")
    return num


def read_all(root, problems):
    for name in (".runner_migrated", ".credentials_migrated"):
        if os.path.lexists(os.path.join(root, name)):
            problems.append("a stale %s is there" % name)
    return runner(root, problems), credentials(root, problems), rsa(root, problems)


def remove_identity(root):
    for name in IDENTITY:
        try:
            os.unlink(os.path.join(root, name))
        except FileNotFoundError:
            pass


def dotenv(root):
    """``.env`` as every start of the listener reads it."""
    try:
        with open(os.path.join(root, ".env"), encoding="utf-8") as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        key, eq, value = line.partition("=")
        if not eq or not key:
            continue
        if value:
            os.environ[key] = value
        else:
            os.environ.pop(key, None)
