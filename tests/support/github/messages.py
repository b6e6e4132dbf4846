"""What the listener itself talks to: OAuth, sessions and messages (broker and V1), the run service. As much as a job needs."""
import base64
import json
import secrets
import time
import urllib.parse
import uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from . import strict
from .pipelines import error
from .wire import Gone, Reply
from .world import JOB_LOCK


def unb64url(text):
    if not text or any(c in text for c in "=+/"):
        raise ValueError("not base64url without padding")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verify_jwt(token, public, algorithms):
    """(header, claims) of a JWT signed by ``public`` = (n, e); ValueError otherwise."""
    head64, body64, sig64 = token.split(".")
    head = strict.load(unb64url(head64))
    claims = strict.load(unb64url(body64))
    alg = head.get("alg")
    if alg not in algorithms:
        raise ValueError("alg is %r, expected %s" % (alg, "/".join(algorithms)))
    if alg == "PS256":
        pad = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)
    else:
        pad = padding.PKCS1v15()
    key = rsa.RSAPublicNumbers(public[1], public[0]).public_key()
    try:
        key.verify(unb64url(sig64), ("%s.%s" % (head64, body64)).encode(), pad, hashes.SHA256())
    except InvalidSignature:
        raise ValueError("the signature does not verify")
    return head, claims


def oauth_error(kind, text):
    return Reply(400, {"error": kind, "error_description": text})


def oauth(world, req):
    if (req.get("content-type") or "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        world.violation(req, "Content-Type: %s on the token request" % req.get("content-type"))
    if req.get("accept") != "application/json":
        world.violation(req, "Accept: %s on the token request" % req.get("accept"))
    if req.get("authorization") is not None:
        world.violation(req, "Authorization on the token request")
    form = dict(urllib.parse.parse_qsl(req.body.decode("ascii", "replace"), strict_parsing=True)) if req.body else {}
    if set(form) != {"grant_type", "client_assertion_type", "client_assertion"} or form["grant_type"] != "client_credentials" \
       or form["client_assertion_type"] != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
        world.violation(req, "the token request is not a client assertion")
        return oauth_error("invalid_request", "bad form")
    with world.lock:
        client = req.detail["args"]["client"]
        runner = next((r for r in world.runners.values() if r["client_id"] == client), None)
        if runner is None:
            return oauth_error("invalid_client", "The client %s is not registered" % client)
        place = req.detail["place"]
        try:
            head, claims = verify_jwt(form["client_assertion"], runner["public"], ["PS256"] if runner["fips"] else ["RS256"])
            audience = "%s/_apis/oauth2/token/%s" % (place.oauth, client)
            if set(claims) - {"iat"} != {"iss", "sub", "aud", "jti", "nbf", "exp"}:
                raise ValueError("claims are %s" % sorted(claims))
            if claims["iss"] != client or claims["sub"] != client or claims["aud"] not in (audience, audience + "?v2"):
                raise ValueError("iss, sub or aud is wrong")
            if type(claims["nbf"]) is not int or type(claims["exp"]) is not int:
                raise ValueError("nbf or exp is no integer")
            if claims["jti"] in world.jtis:
                raise ValueError("jti was used before")
            now = time.time() + world.set["date_offset"]
            if claims["nbf"] > now + 300 or claims["exp"] < now - 300 or claims["exp"] - claims["nbf"] > 600:
                return oauth_error("invalid_request", "The token is not valid now. Current server time is %s" % time.ctime(now))
        except (ValueError, KeyError) as why:
            world.violation(req, "the client assertion is wrong: %s" % why)
            return oauth_error("invalid_client", str(why))
        world.jtis.add(claims["jti"])
        token = "ey" + secrets.token_urlsafe(48)
        world.oauth[token] = {"runner": runner["id"], "client": client, "expires": world.now() + 3000}
        return Reply(200, {"access_token": token, "expires_in": 3000, "token_type": "access_token"})


def runner_of(world, req):
    token = strict.auth(world, req, "Bearer")
    record = world.oauth.get(token) if token else None
    if record is None or record["expires"] <= world.now():
        return None
    runner = world.runners.get(record["runner"])
    if runner is None or runner["client_id"] != record["client"]:
        return None
    return runner


def lost():
    return Reply(401, {"message": "runner not found", "errorCode": 0})


def open_session(world, req, runner, obj):
    if world.set["session_refusals"] > 0:
        world.set["session_refusals"] -= 1
        return None
    if world.session_alive(runner):
        return None
    runner["session"] = {"id": str(uuid.uuid4()), "owner": obj.get("ownerName"), "seen": world.now(), "polling": False, "acked": 0,
                         "sent": 0}
    world.changed.notify_all()
    return runner["session"]


def session(world, req):
    obj = strict.body(world, req, {}, extra=True)
    with world.lock:
        runner = runner_of(world, req)
        if runner is None or obj is None:
            return lost()
        made = open_session(world, req, runner, obj)
        if made is None:
            return error(409, "TaskAgentSessionConflictException", "A session for this runner already exists.")
        return Reply(200, {"sessionId": made["id"], "ownerName": made["owner"], "agent": {"id": runner["id"], "name": runner["name"]}})


def session_delete(world, req):
    with world.lock:
        runner = runner_of(world, req)
        if runner is None:
            return lost()
        world.end_session(runner)
        return Reply(204)


def poll(world, req, runner, session_id):
    """Waits for an order or a job; returns the message, None when there was none, or raises Gone when the listener left."""
    end = time.monotonic() + world.set["poll_seconds"]
    with world.lock:
        s = runner["session"]
        if s is None or s["id"] != session_id:
            return "conflict"
        s["polling"] = True
        try:
            while True:
                if not req.conn.alive():
                    # noticed late on a busy machine: it was last seen when it was last there
                    raise Gone("the listener left its poll")
                s["seen"] = world.now()
                if world.runners.get(runner["id"]) is not runner:
                    return "lost"
                if runner["session"] is not s:
                    return "conflict"
                order = next((o for o in world.orders if o["runner"] in (None, runner["name"])), None)
                if order is not None:
                    world.orders.remove(order)
                    return {"messageType": order["type"], "body": json.dumps(order["body"])}
                if runner["job"] is None:
                    job = world.take_job(runner)
                    if job is not None:
                        place = req.detail["place"]
                        return {"messageType": "RunnerJobRequest",
                                "body": json.dumps({"runner_request_id": job["id"], "run_service_url": place.run})}
                if time.monotonic() >= end or world.closed:
                    return None
                world.changed.wait(0.03)
        finally:
            s["polling"] = False


def deliver(world, runner, found):
    if found == "conflict":
        return error(404, "TaskAgentSessionExpiredException", "The session has expired")
    if found == "lost":
        return error(404, "RunnerNotFoundException", "Runner not found")
    if found is None:
        return None
    s = runner["session"]
    s["sent"] += 1
    return Reply(200, dict(found, messageId=s["sent"]))


def message(world, req):
    query = strict.percent_query(world, req, ("sessionId", "status", "runnerVersion", "os", "architecture", "disableUpdate"))
    with world.lock:
        runner = runner_of(world, req)
        if runner is None:
            return lost()
        if query.get("disableUpdate", "false") != ("true" if runner["disable_update"] else "false"):
            world.violation(req, "disableUpdate in the poll differs from the registration")
    found = poll(world, req, runner, query.get("sessionId"))
    with world.lock:
        return deliver(world, runner, found) or Reply(202, raw=b"")


def message_delete(world, req):
    return Reply(204)


def v1_session(world, req):
    obj = strict.body(world, req, {"sessionId": "str", "ownerName": "str", "agent": "dict"}, extra=True)
    with world.lock:
        runner = runner_of(world, req)
        if runner is None or obj is None:
            return lost()
        if int(req.detail["args"]["pool"]) != runner["group_id"]:
            world.violation(req, "the session is opened in pool %s, the runner is in %d" % (req.detail["args"]["pool"], runner["group_id"]))
        made = open_session(world, req, runner, obj)
        if made is None:
            return error(409, "TaskAgentSessionConflictException", "A session for this runner already exists.")
        return Reply(200, {"sessionId": made["id"], "ownerName": made["owner"], "agent": obj["agent"]})


def v1_session_delete(world, req):
    with world.lock:
        runner = runner_of(world, req)
        if runner is None:
            return lost()
        s = runner["session"]
        if s is None or s["id"] != req.detail["args"]["sid"]:
            return error(404, "TaskAgentSessionExpiredException", "no such session")
        world.end_session(runner)
        return Reply(200)


def v1_message(world, req):
    query = strict.percent_query(world, req, ("sessionId", "lastMessageId", "status", "runnerVersion", "os", "architecture", "disableUpdate"))
    with world.lock:
        runner = runner_of(world, req)
        if runner is None:
            return lost()
    found = poll(world, req, runner, query.get("sessionId"))
    with world.lock:
        return deliver(world, runner, found) or Reply(200)


def v1_message_delete(world, req):
    return Reply(200)


def job_of(world, req, types, removed_ok=False):
    obj = strict.body(world, req, types, extra=True)
    if obj is None:
        return None
    job = next((j for j in world.jobs if j["id"] == obj["jobMessageId"]), None)
    runner = runner_of(world, req)
    if job is None or runner is None or job["runner"] != runner["id"]:
        return None
    return job, obj


def acquire(world, req):
    with world.lock:
        found = job_of(world, req, {"jobMessageId": "str"})
        if found is None or found[0]["state"] != "assigned":
            return error(404, "TaskOrchestrationJobNotFoundException", "job not found")
        job = found[0]
        if job["spec"].get("withdrawn"):
            # cancelled before the runner asked for it
            job.update(state="completed", result="Canceled")
            runner_of(world, req)["job"] = None
            world.changed.notify_all()
            return error(404, "TaskOrchestrationJobNotFoundException", "job not found")
        job["state"] = "running"
        job["started"] = time.time()
        job["locked_until"] = world.now() + JOB_LOCK
        world.changed.notify_all()
        return Reply(200, {"jobId": job["id"], "jobDisplayName": job["name"], "spec": job["spec"]})


def renew(world, req):
    with world.lock:
        found = job_of(world, req, {"jobMessageId": "str"})
        if found is None or found[0]["state"] != "running":
            return error(404, "TaskOrchestrationJobNotFoundException", "job not found")
        found[0]["locked_until"] = world.now() + JOB_LOCK
        return Reply(200, {"lockedUntil": found[0]["locked_until"]})


def complete(world, req):
    with world.lock:
        found = job_of(world, req, {"jobMessageId": "str", "conclusion": "str"})
        if found is None:
            return error(404, "TaskOrchestrationJobNotFoundException", "job not found")
        job, obj = found
        job["outputs"] = obj.get("outputs")
        world.finish_job(job, obj["conclusion"])
        return Reply(204)
