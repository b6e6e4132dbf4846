"""runner-registration and the runner-admin (V2) calls."""
import urllib.parse

from . import strict
from .wire import Reply
from .world import version_tuple

NOT_FOUND = {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}


def not_found(message="Not Found"):
    return Reply(404, dict(NOT_FOUND, message=message))


def entity_of_url(world, req, url):
    """Entity of an input URL as the service sees it; a violation when no client should have sent it, None when unknown."""
    place = req.detail["place"]
    u = urllib.parse.urlsplit(url)
    if u.scheme != "https" or u.query or u.fragment or u.username:
        world.violation(req, "url %r is not a plain https URL" % url)
        return None
    web = u.netloc.lower()
    if web == "www.github.com":
        web = "github.com"
    if web != place.web:
        world.violation(req, "url %r does not belong to host %s" % (url, req.host))
        return None
    pieces = [p for p in u.path.split("/") if p]
    if len(pieces) not in (1, 2):
        world.violation(req, "url %r has %d path pieces" % (url, len(pieces)))
        return None
    if len(pieces) == 1:
        return ("orgs/" + pieces[0]).lower()
    if pieces[0].lower() == "enterprises":
        return ("enterprises/" + pieces[1]).lower()
    return ("repos/" + "/".join(pieces)).lower()


def remote_auth(world, req, entity, removal=False):
    """The token record of a RemoteAuth call on ``entity``, or None (answer 404)."""
    token = strict.auth(world, req, "RemoteAuth")
    record = world.token_ok(token, entity) if token else None
    if record is not None and record["kind"] == "removal" and not removal:
        world.violation(req, "a removal token was used to register")
        return None
    return record


def too_old(world, version):
    return version_tuple(version) < version_tuple(world.set["min_version"])


def registration(world, req):
    strict.accept_none(world, req)
    strict.json_type(world, req)
    obj = strict.body(world, req, {"url": "str", "runner_event": "str"})
    if obj is None:
        return not_found()
    event = obj["runner_event"]
    if event not in ("register", "remove"):
        world.violation(req, "runner_event is %r" % event)
    req.detail["event"] = event
    entity = entity_of_url(world, req, obj["url"])
    with world.lock:
        record = remote_auth(world, req, entity, removal=event == "remove")
        if req.violations or record is None or entity not in world.entities:
            return not_found()
        if too_old(world, req.detail["agent"][1]):
            return not_found("Runner version v%s is deprecated and cannot register. Minimum required version is v%s." %
                             (req.detail["agent"][1], world.set["min_version"]))
        place = req.detail["place"]
        tenant = world.set["tenant_url"] or "%s/%s/" % (place.tenant_prefix, world.tenant_id(entity))
        answer = {"url": tenant, "token": world.bearer(entity, event), "token_schema": "OAuthAccessToken"}
        if world.set["flow"] == "v2":
            answer["use_v2_flow"] = True
        return Reply(200, answer)


def path_entity(req):
    return urllib.parse.unquote(req.detail["args"]["entity"]).lower()


def groups(world, req):
    strict.accept_none(world, req)
    strict.percent_query(world, req, ())
    with world.lock:
        entity = path_entity(req)
        if remote_auth(world, req, entity) is None or entity not in world.entities:
            return not_found()
        out = [{"id": g["id"], "name": g["name"], "default": g["default"], "is_hosted": g["hosted"], "visibility": "all",
                "runners_url": "https://api.github.com/"} for g in world.visible_groups(entity)]
        return Reply(200, {"total_count": len(out), "runner_groups": out})


def lookup(world, req):
    strict.accept_none(world, req)
    query = strict.percent_query(world, req, ("name",))
    if "name" not in query:
        world.violation(req, "look-up without a name")
        return not_found()
    with world.lock:
        entity = path_entity(req)
        if remote_auth(world, req, entity, removal=True) is None or entity not in world.entities:
            return not_found()
        found = [{"id": r["id"], "name": r["name"], "os": "linux", "status": "online" if world.online(r) else "offline"}
                 for r in world.find(entity, query["name"])]
        return Reply(200, {"total_count": len(found), "runners": found})


ADD = {"url": "str", "group_id": "int", "name": "str", "version": "str", "updates_disabled": "bool", "ephemeral": "bool",
       "labels": "list", "public_key": "str"}


def add(world, req):
    strict.accept_none(world, req)
    strict.json_type(world, req)
    obj = strict.body(world, req, ADD, {"runner_id": "int", "replace": "bool"})
    if obj is None or req.detail["agent"] is None:
        return not_found()
    replacing = "runner_id" in obj or "replace" in obj
    if replacing:
        req.step = "v2.replace"
        if "runner_id" not in obj or obj.get("replace") is not True:
            world.violation(req, "replace wants both runner_id and replace: true")
    arch, version = req.detail["agent"]
    if obj["version"] != version:
        world.violation(req, "body says version %s, User-Agent %s" % (obj["version"], version))
    strict.runner_name(world, req, obj["name"])
    names = strict.labels(world, req, obj["labels"], arch)
    key = strict.xml_key(world, req, obj["public_key"])
    entity = entity_of_url(world, req, obj["url"])
    with world.lock:
        if remote_auth(world, req, entity) is None or entity not in world.entities:
            return not_found()
        group = world.group(obj["group_id"])
        if group is None or group["hosted"] or group not in world.visible_groups(entity):
            world.violation(req, "group_id %s was not offered" % obj["group_id"])
        if req.violations:
            return not_found()
        return add_or_replace(world, req, obj, entity, names, key, replacing)


def add_or_replace(world, req, obj, entity, names, key, replacing):
    reuse = None
    same = [r for r in world.find(entity, obj["name"]) if r["name"].lower() == obj["name"].lower()]
    if replacing:
        old = world.runners.get(obj["runner_id"])
        if old is None or old["entity"] != entity:
            return not_found()
        if same and same[0]["id"] != old["id"]:
            return Reply(409, {"message": "Already exists - A runner with the name *** already exists."})
        reuse = old["id"]
    elif same:
        return Reply(409, {"message": "Already exists - A runner with the name *** already exists.", "status": "409"})
    runner = world.add_runner(entity, obj["name"], obj["group_id"], "v2", key, obj["version"], obj["ephemeral"], obj["updates_disabled"],
                              names, reuse=reuse, web=req.detail["place"].web)
    place = req.detail["place"]
    auth = {"authorization_url": "%s/_apis/oauth2/token/%s" % (place.oauth, runner["client_id"]),
            "server_url": place.broker, "client_id": runner["client_id"].upper() if world.set["legacy_url"] else runner["client_id"]}
    if world.set["legacy_url"]:
        auth["legacy_authorization_url"] = auth["authorization_url"]
        auth["authorization_url"] = auth["authorization_url"] + "?v2"
    return Reply(201, {"id": runner["id"], "name": runner["name"], "authorization": auth})


def delete(world, req):
    strict.accept_none(world, req)
    with world.lock:
        entity = path_entity(req)
        if remote_auth(world, req, entity, removal=True) is None or entity not in world.entities:
            return not_found()
        runner = world.runners.get(int(req.detail["args"]["id"]))
        if runner is None or runner["entity"] != entity:
            return not_found()
        if world.busy(runner) and world.set["busy_delete"]["v2"] == 422:
            return Reply(422, {"message": "Bad request - Runner \"%s\" is still running a job" % runner["name"], "status": "422"})
        world.remove_runner(runner, "v2")
        return Reply(204)
