"""The V1 (pipelines) service: pools, agents, connectionData."""
import base64

from . import strict
from .register import too_old
from .wire import Reply

AGENTS = "6.0-preview.2"
POOLS = "5.1-preview.1"

DEFINITIONS = [
    # identifier, displayName, template on the real service, template on a server with routes of its own, version numbers
    ("a8c47e17-4d56-4a56-92bb-de7ea7dc65be", "pools", "/_apis/{area}/{resource}/{poolId}", "/_apis/v1/AgentPools", "5.1", 1),
    ("e298ef32-5878-4cab-993c-043836571f42", "agents", "/_apis/{area}/pools/{poolId}/{resource}/{agentId}",
     "/_apis/v1/Agent/{poolId}/{agentId}", "6.0", 2),
    ("134e239e-2df3-4794-a6f6-24f1f19ec8dc", "sessions", "/_apis/{area}/pools/{poolId}/{resource}/{sessionId}",
     "/_apis/{area}/pools/{poolId}/{resource}/{sessionId}", "5.1", 1),
    ("c3a054f6-7a8a-49c0-944e-3a8e5d7adfd7", "messages", "/_apis/{area}/pools/{poolId}/{resource}/{messageId}",
     "/_apis/{area}/pools/{poolId}/{resource}/{messageId}", "5.1", 1),
]


def error(status, key, message):
    return Reply(status, {"$id": "1", "innerException": None, "message": message,
                          "typeName": "GitHub.DistributedTask.WebApi.%s, GitHub.DistributedTask.WebApi" % key, "typeKey": key,
                          "errorCode": 0, "eventId": 3000})


def denied():
    return Reply(401, raw=b"", ctype="text/plain")


def tenant_entity(world, req):
    """The entity that this bearer and this tenant path agree on, or None."""
    token = strict.auth(world, req, "Bearer")
    record = world.bearers.get(token) if token else None
    if record is None:
        if token in world.oauth:
            runner = world.runners.get(world.oauth[token]["runner"])
            return runner["entity"] if runner else None
        return None
    if record["expires"] <= world.now() or world.tenants.get(record["entity"]) != req.detail["tenant"]:
        return None
    req.detail["kind"] = record["kind"]
    return record["entity"]


def registering(world, req):
    if req.detail.get("kind") == "remove":
        world.violation(req, "the bearer of a remove event was used to register")


def connection_data(world, req):
    strict.percent_query(world, req, ("connectOptions", "lastChangeId", "lastChangeId64"))
    if req.query != "connectOptions=1&lastChangeId=-1&lastChangeId64=-1":
        world.violation(req, "connectionData asked with %r" % req.query)
    if (req.get("accept") or "") != "application/json":
        world.violation(req, "Accept: %s on connectionData" % req.get("accept"))
    with world.lock:
        if tenant_entity(world, req) is None:
            return denied()
        column = 2 if world.set["direct_routes"] else 3
        defs = [{"serviceType": "distributedtask", "identifier": d[0].upper() if d[1] == "agents" else d[0], "displayName": d[1],
                 "relativeToSetting": "context", "relativePath": d[column], "resourceVersion": d[5], "minVersion": "1.0",
                 "maxVersion": d[4], "releasedVersion": "0.0"} for d in DEFINITIONS]
        return Reply(200, {"instanceId": "bb9e3d61-4d55-4d62-a4f7-6b9f3c3c9a10", "deploymentId": "bb9e3d61-4d55-4d62-a4f7-6b9f3c3c9a10",
                           "deploymentType": "hosted", "authenticatedUser": {}, "authorizedUser": {},
                           "locationServiceData": {"serviceOwner": "0000005a-0000-8888-8000-000000000000",
                                                   "defaultAccessMappingMoniker": "HostGuidAccessMapping", "lastChangeId": 1,
                                                   "lastChangeId64": 1, "accessMappings": [], "serviceDefinitions": defs}})


def pools(world, req):
    strict.versioned(world, req, POOLS, False)
    query = strict.percent_query(world, req, ("poolType",))
    if query.get("poolType", "Automation") != "Automation":
        world.violation(req, "poolType is %r" % query["poolType"])
    with world.lock:
        entity = tenant_entity(world, req)
        if entity is None:
            return denied()
        out = []
        for g in world.visible_groups(entity):
            pool = {"id": g["id"], "name": g["name"], "poolType": "automation", "size": 0, "scope": "bb9e3d61-4d55-4d62-a4f7-6b9f3c3c9a10"}
            if g["hosted"]:
                pool["isHosted"] = True
            if g["default"]:
                pool["isInternal"] = True
            out.append(pool)
        return Reply(200, {"count": len(out), "value": out})


def show(world, r, place):
    out = {"id": r["id"], "name": r["name"], "version": r["version"], "osDescription": r["os"], "enabled": True,
           "status": "online" if world.online(r) else "offline", "provisioningState": "Provisioned", "maxParallelism": 1,
           "createdOn": "2026-01-01T00:00:00Z", "runnerGroupId": r["group_id"],
           "labels": [{"id": n + 1, "name": name, "type": "system" if name in strict.SYSTEM_LABELS else "user"}
                      for n, name in enumerate(r["labels"])],
           "authorization": {"authorizationUrl": "%s/_apis/oauth2/token/%s" % (place.oauth, r["client_id"]), "clientId": r["client_id"]}}
    if world.set["update_echo"]:
        out["ephemeral"] = r["ephemeral"]
        out["disableUpdate"] = r["disable_update"]
    return out


def lookup(world, req):
    strict.versioned(world, req, AGENTS, False)
    query = strict.percent_query(world, req, ("agentName", "includeCapabilities"))
    if req.detail["args"]["pool"] != "0":
        world.violation(req, "look-up in pool %s, the runner asks pool 0" % req.detail["args"]["pool"])
    if "agentName" not in query or query.get("includeCapabilities", "False") != "False":
        world.violation(req, "look-up with %r" % req.query)
        return denied()
    with world.lock:
        entity = tenant_entity(world, req)
        if entity is None:
            return denied()
        out = [show(world, r, req.detail["place"]) for r in world.find(entity, query["agentName"])]
        return Reply(200, {"count": len(out), "value": out})


BODY = {"authorization": "dict", "labels": "list", "id": "int", "name": "str", "version": "str", "osDescription": "str",
        "ephemeral": "bool", "disableUpdate": "bool", "maxParallelism": "int"}
OPTIONAL = {"createdOn": "str", "status": "int", "provisioningState": "str"}
REPLACE_OPTIONAL = {"createdOn": "str", "status": "any", "provisioningState": "str", "enabled": "bool", "runnerGroupId": "int"}


def agent_body(world, req, ident, optional):
    """Checks the agent of add and replace; returns (object, label names, key) or None."""
    obj = strict.body(world, req, BODY, optional)
    if obj is None or req.detail["agent"] is None:
        return None
    arch, version = req.detail["agent"]
    auth = obj["authorization"]
    key = None
    if set(auth) != {"publicKey"} or not isinstance(auth["publicKey"], dict) or set(auth["publicKey"]) != {"exponent", "modulus"}:
        world.violation(req, "authorization is not {publicKey: {exponent, modulus}}")
    else:
        key = strict.public_key(world, req, auth["publicKey"]["modulus"], auth["publicKey"]["exponent"])
    if obj["id"] != ident:
        world.violation(req, "id is %d instead of %d" % (obj["id"], ident))
    if obj["maxParallelism"] != 1:
        world.violation(req, "maxParallelism is %d" % obj["maxParallelism"])
    if obj["version"] != version:
        world.violation(req, "body says version %s, User-Agent %s" % (obj["version"], version))
    if not obj["osDescription"].strip():
        world.violation(req, "osDescription is empty")
    strict.runner_name(world, req, obj["name"])
    names = strict.labels(world, req, obj["labels"], arch)
    return None if req.violations else (obj, names, key)


def registered(world, req, runner):
    place = req.detail["place"]
    out = show(world, runner, place)
    n, e = runner["public"]
    out["authorization"]["publicKey"] = {"exponent": base64.b64encode(e.to_bytes(3, "big")).decode(),
                                         "modulus": base64.b64encode(n.to_bytes(256, "big")).decode()}
    props = {"RequireFipsCryptography": world.set["fips"]}
    if world.set["messaging"] == "v2":
        props["ServerUrlV2"] = place.broker
        props["UseV2Flow"] = True
    if world.set["auth_migration"]:
        props["EnableAuthMigrationByDefault"] = True
        props["AuthorizationUrlV2"] = out["authorization"]["authorizationUrl"]
    style = world.set["property_style"]
    if style == "wrapped":
        props = {k: {"$type": "System.Boolean" if isinstance(v, bool) else "System.String", "$value": v} for k, v in props.items()}
    elif style == "strings":
        props = {k[0].lower() + k[1:]: str(v).lower() if isinstance(v, bool) else v for k, v in props.items()}
    out["properties"] = props
    return Reply(200, out)


def pool_of(world, req, entity):
    group = world.group(int(req.detail["args"]["pool"]))
    if group is None or group["hosted"] or group not in world.visible_groups(entity):
        return None
    return group


def add(world, req):
    strict.versioned(world, req, AGENTS, True)
    parsed = agent_body(world, req, 0, OPTIONAL)
    with world.lock:
        entity = tenant_entity(world, req)
        registering(world, req)
        if parsed is None or req.violations:
            return denied()
        if entity is None:
            return denied()
        obj, names, key = parsed
        group = pool_of(world, req, entity)
        if group is None:
            return error(404, "TaskAgentPoolNotFoundException", "Pool %s not found" % req.detail["args"]["pool"])
        if any(r["name"].lower() == obj["name"].lower() for r in world.find(entity, obj["name"])):
            return error(409, "TaskAgentExistsException", "Runner %s already exists in pool %s" % (obj["name"], group["name"]))
        if too_old(world, obj["version"]):
            return error(403, "AccessDeniedException", "Runner version v%s is deprecated" % obj["version"])
        runner = world.add_runner(entity, obj["name"], group["id"], "v1", key, obj["version"], obj["ephemeral"], obj["disableUpdate"],
                                  names, obj["osDescription"], web=req.detail["place"].web)
        return registered(world, req, runner)


def replace(world, req):
    strict.versioned(world, req, AGENTS, True)
    ident = int(req.detail["args"]["id"])
    parsed = agent_body(world, req, ident, REPLACE_OPTIONAL)
    with world.lock:
        entity = tenant_entity(world, req)
        registering(world, req)
        if parsed is None or req.violations or entity is None:
            return denied()
        obj, names, key = parsed
        group = pool_of(world, req, entity)
        if group is None:
            return error(404, "TaskAgentPoolNotFoundException", "Pool %s not found" % req.detail["args"]["pool"])
        old = world.runners.get(ident)
        if old is None or old["entity"] != entity:
            return error(404, "TaskAgentNotFoundException", "Runner %d not found" % ident)
        if old["name"].lower() != obj["name"].lower():
            world.violation(req, "replace of runner %r under the name %r" % (old["name"], obj["name"]))
            return denied()
        runner = world.add_runner(entity, obj["name"], group["id"], "v1", key, obj["version"], obj["ephemeral"], obj["disableUpdate"],
                                  names, obj["osDescription"], reuse=ident, web=req.detail["place"].web)
        return registered(world, req, runner)


def delete(world, req):
    strict.versioned(world, req, AGENTS, False)
    if req.detail["args"]["pool"] != "0":
        world.violation(req, "delete in pool %s, the runner uses pool 0" % req.detail["args"]["pool"])
    with world.lock:
        entity = tenant_entity(world, req)
        if entity is None or req.violations:
            return denied()
        runner = world.runners.get(int(req.detail["args"]["id"]))
        if runner is None or runner["entity"] != entity:
            return error(404, "TaskAgentNotFoundException", "Runner %s not found" % req.detail["args"]["id"])
        if world.busy(runner) and world.set["busy_delete"]["v1"] == 422:
            return error(422, "TaskAgentJobStillRunningException", "Runner \"%s\" is still running a job" % runner["name"])
        world.remove_runner(runner, "v1")
        return Reply(204)
