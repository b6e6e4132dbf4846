"""Public REST: PAT, GitHub App, JIT configurations, and the runner calls that a PAT or an App may make."""
import base64
import json
import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from . import strict
from .messages import verify_jwt
from .register import not_found, path_entity
from .wire import Reply
from .world import HOUR, token_text

RIGHTS = {"orgs": "admin:org", "repos": "repo", "enterprises": "manage_runners:enterprise"}


def stamp(t):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))


def headers(world, req):
    if req.get("accept") != "application/vnd.github+json":
        world.violation(req, "Accept: %s instead of application/vnd.github+json" % req.get("accept"))
    if req.get("x-github-api-version") != "2022-11-28":
        world.violation(req, "X-GitHub-Api-Version: %s" % req.get("x-github-api-version"))


def empty_body(world, req):
    if req.body:
        world.violation(req, "a body where none belongs")
    if req.get("content-type") is not None and not req.body:
        world.violation(req, "Content-Type without a body")


def permit(world, req, entity):
    """None when the credential may manage the runners of ``entity``; else the reply that refuses."""
    headers(world, req)
    token = strict.auth(world, req, "Bearer")
    if token is None:
        return Reply(401, {"message": "Requires authentication", "status": "401"})
    record = world.pats.get(token)
    if record is not None:
        if record["expires"] is not None and record["expires"] <= world.now():
            return Reply(401, {"message": "Bad credentials", "status": "401"})
        if entity not in world.entities:
            return not_found()
        if RIGHTS[entity.split("/")[0]] not in record["scopes"]:
            return Reply(403, {"message": "Resource not accessible by personal access token", "status": "403"})
        if record["entities"] is not None and entity not in record["entities"]:
            return not_found()
        return None
    record = world.installs.get(token)
    if record is None or record["expires"] <= world.now():
        return Reply(401, {"message": "Bad credentials", "status": "401"})
    if entity.startswith("enterprises/"):
        return Reply(403, {"message": "Resource not accessible by integration", "status": "403"})
    if not covers(record["installation"], entity):
        return Reply(403, {"message": "Resource not accessible by integration", "status": "403"})
    return None


def covers(installation, entity):
    parts = entity.split("/")
    if parts[1] != installation["account"].lower():
        return False
    if parts[0] == "orgs":
        return installation["runners"] == "org"
    only = installation.get("repositories")
    return only is None or parts[2] in [r.lower() for r in only]


def token_answer(world, req, kind):
    empty_body(world, req)
    with world.lock:
        entity = path_entity(req)
        refusal = permit(world, req, entity)
        if refusal is not None or req.violations:
            return refusal or not_found()
        token = world.mint(entity, kind, web=req.detail["place"].web)
        return Reply(201, {"token": token, "expires_at": stamp(world.tokens[token]["expires"])})


def root(world, req):
    """What anybody may ask; the self-test does."""
    return Reply(200, {"current_user_url": "https://%s/user" % req.host})


def registration_token(world, req):
    return token_answer(world, req, "registration")


def remove_token(world, req):
    return token_answer(world, req, "removal")


def show(world, r):
    return {"id": r["id"], "name": r["name"], "os": "linux", "status": "online" if world.online(r) else "offline",
            "busy": world.busy(r), "ephemeral": r["ephemeral"], "runner_group_id": r["group_id"],
            "labels": [{"id": n + 1, "name": name, "type": "read-only" if name in strict.SYSTEM_LABELS else "custom"}
                       for n, name in enumerate(r["labels"])]}


def page_of(world, req, query, items, wrap):
    per = min(int(query.get("per_page", "30")), 100, world.set["page_size"])
    page = int(query.get("page", "1"))
    part = items[(page - 1) * per:page * per]
    head = {}
    if page * per < len(items):
        place = req.detail["place"]
        base = "https://%s%s%s" % (place.api, "/api/v3" if place.authority else "", req.path.partition("/api/v3")[2] or req.path)
        keep = "".join("&%s=%s" % (k, v) for k, v in query.items() if k != "page")
        head["Link"] = '<%s?page=%d%s>; rel="next"' % (base, page + 1, keep)
    return Reply(200, wrap(part), headers=head)


def list_runners(world, req):
    query = strict.percent_query(world, req, ("name", "per_page", "page"))
    with world.lock:
        entity = path_entity(req)
        refusal = permit(world, req, entity)
        if refusal is not None:
            return refusal
        found = [r for r in world.runners.values() if r["entity"] == entity]
        if "name" in query:
            found = world.find(entity, query["name"])
        return page_of(world, req, query, found, lambda part: {"total_count": len(found), "runners": [show(world, r) for r in part]})


def list_groups(world, req):
    query = strict.percent_query(world, req, ("per_page", "page", "visible_to_repository"))
    with world.lock:
        entity = path_entity(req)
        refusal = permit(world, req, entity)
        if refusal is not None:
            return refusal
        if entity.startswith("repos/"):
            return not_found()
        found = [{"id": g["id"], "name": g["name"], "default": g["default"]} for g in world.groups if not g["hosted"]]
        return page_of(world, req, query, found, lambda part: {"total_count": len(found), "runner_groups": part})


def one_runner(world, req):
    entity = path_entity(req)
    refusal = permit(world, req, entity)
    if refusal is not None:
        return refusal, None
    runner = world.runners.get(int(req.detail["args"]["id"]))
    if runner is None or runner["entity"] != entity:
        return not_found(), None
    return None, runner


def get_runner(world, req):
    with world.lock:
        refusal, runner = one_runner(world, req)
        return refusal or Reply(200, show(world, runner))


def delete_runner(world, req):
    with world.lock:
        refusal, runner = one_runner(world, req)
        if refusal is not None or req.violations:
            return refusal or not_found()
        if world.busy(runner) and world.set["busy_delete"]["rest"] == 422:
            return Reply(422, {"message": "Bad request - Runner \"%s\" is still running a job" % runner["name"], "status": "422"})
        world.remove_runner(runner, "rest")
        return Reply(204)


# JIT

SPARE = []


def spare_key():
    return SPARE.pop() if SPARE else rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pad64(value, size):
    return base64.b64encode(value.to_bytes(size, "big")).decode()


def jit_files(world, place, runner, key, work):
    n = key.private_numbers()
    params = {"d": pad64(n.d, 256), "dp": pad64(n.dmp1, 128), "dq": pad64(n.dmq1, 128), "exponent": "AQAB",
              "inverseQ": pad64(n.iqmp, 128), "modulus": pad64(n.public_numbers.n, 256), "p": pad64(n.p, 128), "q": pad64(n.q, 128)}
    settings = {"AgentId": str(runner["id"]), "AgentName": runner["name"], "DisableUpdate": "True", "Ephemeral": "True",
                "PoolId": str(runner["group_id"]), "PoolName": world.group(runner["group_id"])["name"], "ServerUrlV2": place.broker,
                "UseV2Flow": "True", "WorkFolder": work,
                "ServerUrl": "%s/%s/" % (place.tenant_prefix, world.tenant_id(runner["entity"]))}
    credentials = {"Scheme": "OAuth", "Data": {"ClientId": runner["client_id"], "RequireFipsCryptography": "True",
                                               "AuthorizationUrl": "%s/_apis/oauth2/token/%s" % (place.oauth, runner["client_id"])}}
    return {".runner": json.dumps(settings), ".credentials": json.dumps(credentials), ".credentials_rsaparams": json.dumps(params)}


def encode_jit(files):
    inner = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    return base64.b64encode(json.dumps(inner).encode()).decode()


def make_jit(world, place, entity, name, group_id, labels, work="_work"):
    key = spare_key()
    numbers = key.public_key().public_numbers()
    runner = world.add_runner(entity, name, group_id, "jit", (numbers.n, numbers.e), ephemeral=True, labels=labels, web=place.web)
    runner["fips"] = True
    return runner, encode_jit(jit_files(world, place, runner, key, work))


def generate_jit(world, req):
    strict.json_type(world, req)
    with world.lock:
        entity = path_entity(req)
        refusal = permit(world, req, entity)
        if refusal is not None:
            return refusal
        obj = strict.body(world, req, {"name": "str", "runner_group_id": "int", "labels": "list"}, {"work_folder": "str"})
        if obj is None or req.violations:
            return Reply(422, {"message": "Invalid request", "status": "422"})
        names = obj["labels"]
        if not 1 <= len(names) <= 100 or any(not isinstance(n, str) or not n.strip() or len(n) > 256 for n in names):
            world.violation(req, "labels are %r" % (names,))
            return not_found()
        strict.runner_name(world, req, obj["name"])
        group = world.group(obj["runner_group_id"])
        if group is None or group["hosted"] or group not in world.visible_groups(entity):
            return not_found()
        if any(r["name"].lower() == obj["name"].lower() for r in world.find(entity, obj["name"])):
            return Reply(409, {"message": "Already exists - A runner with the name *** already exists.", "status": "409"})
        runner, encoded = make_jit(world, req.detail["place"], entity, obj["name"], group["id"], [n.lower() for n in names],
                                   obj.get("work_folder", "_work"))
        return Reply(201, {"runner": show(world, runner), "encoded_jit_config": encoded})


# GitHub App

def app_jwt(world, req):
    """The App that signed the request's JWT, or None (answer 401)."""
    headers(world, req)
    token = strict.auth(world, req, "Bearer")
    if token is None:
        return None
    for app in world.apps.values():
        try:
            head, claims = verify_jwt(token, app["public"], ["RS256"])
        except (ValueError, KeyError):
            continue
        now = time.time() + world.set["date_offset"]
        if set(claims) != {"iat", "exp", "iss"} or head.get("typ", "JWT") != "JWT":
            world.violation(req, "JWT with header %s and claims %s" % (sorted(head), sorted(claims)))
            return None
        if type(claims["iat"]) is not int or type(claims["exp"]) is not int:
            world.violation(req, "iat or exp is no integer")
            return None
        if not now - 120 <= claims["iat"] <= now + 5 or claims["exp"] <= now:
            world.violation(req, "iat %d or exp %d does not fit the time %d" % (claims["iat"], claims["exp"], now))
            return None
        if claims["exp"] - claims["iat"] > 600:
            world.violation(req, "the JWT lives %d s" % (claims["exp"] - claims["iat"]))
            return None
        if str(claims["iss"]) not in (str(app["id"]), app["client_id"]):
            return None
        return app
    return None


def bad_jwt():
    return Reply(401, {"message": "A JSON web token could not be decoded", "status": "401"})


def show_installation(app, i):
    return {"id": i["id"], "account": {"login": i["account"], "id": 1000 + i["id"], "type": i["type"]}, "app_id": app["id"],
            "target_type": i["type"], "permissions": {"organization_self_hosted_runners": "write"}, "events": []}


def installations(world, req):
    query = strict.percent_query(world, req, ("per_page", "page"))
    with world.lock:
        app = app_jwt(world, req)
        if app is None:
            return bad_jwt()
        return page_of(world, req, query, app["installations"], lambda part: [show_installation(app, i) for i in part])


def installation(world, req):
    with world.lock:
        app = app_jwt(world, req)
        if app is None:
            return bad_jwt()
        entity = path_entity(req)
        if entity.startswith("enterprises/"):
            return not_found()
        for i in app["installations"]:
            if entity.split("/")[1] == i["account"].lower() and (entity.startswith("orgs/") or covers(i, entity)):
                return Reply(200, show_installation(app, i))
        return not_found()


def access_token(world, req):
    if req.body:
        strict.json_type(world, req)
        strict.body(world, req, {}, {"repositories": "list", "permissions": "dict"})
    with world.lock:
        app = app_jwt(world, req)
        if app is None:
            return bad_jwt()
        found = next((i for i in app["installations"] if i["id"] == int(req.detail["args"]["id"])), None)
        if found is None:
            return not_found()
        token = token_text("ghs_", 40)
        world.installs[token] = {"installation": found, "expires": world.now() + HOUR}
        return Reply(201, {"token": token, "expires_at": stamp(world.installs[token]["expires"]), "permissions": {}})


def load_public(pem):
    numbers = serialization.load_pem_public_key(pem.encode()).public_numbers()
    return (numbers.n, numbers.e)
