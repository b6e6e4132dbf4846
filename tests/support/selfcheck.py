#!/usr/bin/python3
"""An independent client of the registration protocol, in Python: what the requests and files must look like, written once more.

As a module it gives the bodies that a property test compares with (``v1_body``, ``v2_body``, ``registration_body``, ``agent_files``).
As a program it is a plain life: registers, writes the files, runs the listener, removes the registration; so the test GitHub and the
stand-in agent can be tested without the binary.
"""
import base64
import http.client
import json
import os
import platform
import re
import signal
import ssl
import subprocess
import sys
import urllib.parse

from cryptography.hazmat.primitives.asymmetric import rsa

ARCH = {"x86_64": ("x64", "X64"), "aarch64": ("arm64", "ARM64")}[platform.machine()]


def b64(number, size):
    return base64.b64encode(number.to_bytes(size, "big")).decode()


def split_url(url):
    """(url as sent, API base, entity path) of an input URL."""
    u = urllib.parse.urlsplit(url)
    host = u.netloc.lower()
    pieces = [p for p in re.split(r"[/\\]", u.path) if p]
    if len(pieces) == 2 and pieces[0].lower() != "enterprises" and pieces[1].endswith(".git"):
        pieces[1] = pieces[1][:-4]
    if host in ("github.com", "www.github.com"):
        base = "https://api.github.com"
    elif host.endswith(".ghe.com"):
        base = "https://api." + host
    else:
        base = "https://" + host + "/api/v3"
    if len(pieces) == 1:
        entity = "/orgs/" + pieces[0]
    elif pieces[0].lower() == "enterprises":
        entity = "/enterprises/" + pieces[1]
    else:
        entity = "/repos/" + "/".join(pieces)
    return "https://" + u.netloc + "/" + "/".join(pieces), base, entity


def labels(user, defaults=True):
    out, seen = [], set()
    system = ["self-hosted", "Linux", ARCH[1]] if defaults else []
    for kind, names in (("system", system), ("user", user)):
        for name in names:
            name = name.strip()
            if name and name.lower() not in seen:
                seen.add(name.lower())
                out.append({"id": 0, "name": name, "type": kind})
    return out


def registration_body(url, event):
    return {"url": split_url(url)[0], "runner_event": event}


def v2_body(url, group_id, name, version, ephemeral, disable_update, label_list, n, replace_id=None):
    body = {"url": split_url(url)[0], "group_id": group_id, "name": name, "version": version, "updates_disabled": disable_update,
            "ephemeral": ephemeral, "labels": label_list,
            "public_key": "<RSAKeyValue><Modulus>%s</Modulus><Exponent>AQAB</Exponent></RSAKeyValue>" % b64(n, 256)}
    if replace_id is not None:
        body.update(runner_id=replace_id, replace=True)
    return body


def v1_body(name, version, ephemeral, disable_update, label_list, n, os_description, ident=0):
    return {"maxParallelism": 1, "createdOn": "0001-01-01T00:00:00",
            "authorization": {"publicKey": {"exponent": "AQAB", "modulus": b64(n, 256)}}, "labels": label_list, "id": ident, "name": name,
            "version": version, "osDescription": os_description, "ephemeral": ephemeral, "disableUpdate": disable_update, "status": 0,
            "provisioningState": "Provisioned"}


def rsa_file(key):
    p = key.private_numbers()
    return {"d": b64(p.d, 256), "dp": b64(p.dmp1, 128), "dq": b64(p.dmq1, 128), "exponent": "AQAB", "inverseQ": b64(p.iqmp, 128),
            "modulus": b64(p.public_numbers.n, 256), "p": b64(p.p, 128), "q": b64(p.q, 128)}


KEYS = []


def one_key():
    """One key a process: making it is the slow part, and nothing here depends on its being fresh."""
    if not KEYS:
        KEYS.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    return KEYS[0]


class Refused(Exception):
    def __init__(self, status, obj):
        super().__init__("%d %s" % (status, obj))
        self.status = status
        self.obj = obj


class Client:
    def __init__(self, url, token, ca=None, version="2.336.0", address=None, port=None):
        self.url, self.base, self.entity = split_url(url)
        self.token = token
        self.version = version
        self.context = ssl.create_default_context(cafile=ca)
        self.to = (address, port)
        self.agent = "GitHubActionsRunner-linux-%s/%s" % (ARCH[0], version)
        self.key = one_key()
        self.n = self.key.public_key().public_numbers().n

    def send(self, method, url, headers, data=None):
        u = urllib.parse.urlsplit(url)
        conn = http.client.HTTPSConnection(u.hostname, u.port or 443, context=self.context, timeout=20)
        if self.to[0]:
            # tests of the server alone reach it on another port than the name says
            import socket
            raw = socket.create_connection(self.to, 20)
            conn.sock = self.context.wrap_socket(raw, server_hostname=u.hostname)
        conn.putrequest(method, u.path + ("?" + u.query if u.query else ""), skip_host=True, skip_accept_encoding=True)
        conn.putheader("Host", u.netloc)
        for key, value in headers.items():
            conn.putheader(key, value)
        if data is not None:
            conn.putheader("Content-Length", str(len(data)))
        conn.endheaders(data)
        answer = conn.getresponse()
        body = answer.read()
        conn.close()
        if body.startswith(b"\xef\xbb\xbf"):
            body = body[3:]
        try:
            obj = json.loads(body) if body else None
        except ValueError:
            obj = body.decode("latin-1")
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, obj)
        return obj

    def api(self, method, path, body=None, **extra):
        headers = {"Authorization": "RemoteAuth " + self.token, "User-Agent": self.agent}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json; charset=utf-8"
            data = json.dumps(body).encode()
        headers.update(extra)
        return self.send(method, self.base + path, headers, data)

    def v1(self, method, path, version, body=None, **extra):
        kind = "application/json; api-version=" + version
        headers = {"Authorization": "Bearer " + self.bearer, "User-Agent": self.agent, "Accept": kind, "X-TFS-FedAuthRedirect": "Suppress"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json; charset=utf-8; api-version=" + version
            data = json.dumps(body).encode()
        headers.update(extra)
        return self.send(method, self.tenant + "/_apis/distributedtask/" + path, headers, data)

    def event(self, event):
        got = self.api("POST", "/actions/runner-registration", registration_body(self.url, event))
        self.tenant_url = got["url"]
        self.tenant = got["url"].rstrip("/")
        self.bearer = got["token"]
        self.v2 = got.get("use_v2_flow", False)
        return got

    def groups(self):
        if self.v2:
            return [(g["id"], g["name"], g["default"]) for g in self.api("GET", self.entity + "/actions/runner-groups")["runner_groups"]
                    if not g["is_hosted"]]
        return [(g["id"], g["name"], g.get("isInternal", False)) for g in self.v1("GET", "pools?poolType=Automation", "5.1-preview.1")["value"]
                if not g.get("isHosted", False)]

    def find(self, name):
        quoted = urllib.parse.quote(name, safe="-._~")
        if self.v2:
            found = self.api("GET", self.entity + "/actions/runners?name=" + quoted)["runners"]
        else:
            found = self.v1("GET", "pools/0/agents?agentName=%s&includeCapabilities=False" % quoted, "6.0-preview.2")["value"]
        return next((r["id"] for r in found if r["name"].lower() == name.lower()), None)

    def register(self, name, user_labels=(), group=None, replace=True, ephemeral=True, disable_update=True):
        self.event("register")
        gid, gname = next((g[0], g[1]) for g in self.groups() if (g[1].lower() == group.lower() if group else g[2]))
        found = self.find(name)
        if found is not None and not replace:
            raise Refused(0, "A runner exists with the same name")
        items = labels(user_labels)
        settings = {"agentName": name, "poolId": gid, "poolName": gname, "serverUrl": self.tenant_url, "gitHubUrl": self.url,
                    "workFolder": "_work"}
        if ephemeral:
            settings["ephemeral"] = True
        if disable_update:
            settings["disableUpdate"] = True
        if self.v2:
            got = self.api("POST", "/actions/runners/register",
                           v2_body(self.url, gid, name, self.version, ephemeral, disable_update, items, self.n, found))
            auth = got["authorization"]
            data = {"clientId": auth["client_id"].lower(), "authorizationUrl": auth.get("legacy_authorization_url") or auth["authorization_url"],
                    "requireFipsCryptography": "True"}
            if auth.get("legacy_authorization_url"):
                data.update(authorizationUrlV2=auth["authorization_url"], enableAuthMigrationByDefault="true")
            settings.update(useV2Flow=True, useRunnerAdminFlow=True, serverUrlV2=auth["server_url"])
        else:
            body = v1_body(name, self.version, ephemeral, disable_update, items, self.n, "selfcheck", found or 0)
            path = "pools/%d/agents" % gid + ("/%d" % found if found is not None else "")
            got = self.v1("PUT" if found is not None else "POST", path, "6.0-preview.2", body)
            props = {k.lower(): v["$value"] if isinstance(v, dict) else v for k, v in got.get("properties", {}).items()}
            data = {"clientId": got["authorization"]["clientId"].lower(), "authorizationUrl": got["authorization"]["authorizationUrl"],
                    "requireFipsCryptography": "True" if str(props.get("requirefipscryptography", True)).lower() == "true" else "False"}
            if str(props.get("usev2flow", False)).lower() == "true":
                settings["useV2Flow"] = True
            if props.get("serverurlv2"):
                settings["serverUrlV2"] = props["serverurlv2"]
        settings["agentId"] = self.id = got["id"]
        if self.base.endswith("/api/v3"):
            settings["isHostedServer"] = False
        return {".runner": settings, ".credentials": {"scheme": "OAuth", "data": data}, ".credentials_rsaparams": rsa_file(self.key)}

    def remove(self):
        """True when there was something to remove."""
        try:
            if self.v2:
                self.api("DELETE", "%s/actions/runners/%d" % (self.entity, self.id))
            else:
                self.event("remove")
                self.v1("DELETE", "pools/0/agents/%d" % self.id, "6.0-preview.2")
            return True
        except Refused as why:
            if why.status == 404:
                return False
            raise


def write_files(root, files):
    for name, obj in files.items():
        path = os.path.join(root, name)
        if os.path.lexists(path):
            os.unlink(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as f:
            json.dump(obj, f)


def life(url, token, root, name):
    me = Client(url, token)
    write_files(root, me.register(name))
    print("registered", me.id, flush=True)
    listener = subprocess.Popen([root + "/bin/Runner.Listener", "run"], cwd=root, stdin=subprocess.DEVNULL, preexec_fn=os.setsid)
    signal.signal(signal.SIGTERM, lambda n, f: listener.send_signal(signal.SIGINT))
    code = listener.wait()
    print("removed" if me.remove() else "gone", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(life(*sys.argv[1:5]))
