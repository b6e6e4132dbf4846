"""Who answers what: from host and path to a handler, by the rules of the input URL (hosted, data residency, GHES)."""
import re

from . import messages, pipelines, register, rest, strict
from .wire import Reply

ENTITY = r"(?P<entity>orgs/[^/]+|repos/[^/]+/[^/]+|enterprises/[^/]+)"
DIRECT = r"/_apis/distributedtask/"
OTHER = r"/_apis/v1/"

API = [
    ("GET", r"/", None, "rest.root", rest.root),
    ("POST", r"/actions/runner-registration", None, "registration", register.registration),
    ("POST", r"/actions/runners/register", None, "v2.add", register.add),
    ("GET", "/" + ENTITY + r"/actions/runner-groups", "RemoteAuth", "v2.groups", register.groups),
    ("GET", "/" + ENTITY + r"/actions/runners", "RemoteAuth", "v2.lookup", register.lookup),
    ("DELETE", "/" + ENTITY + r"/actions/runners/(?P<id>\d+)", "RemoteAuth", "v2.delete", register.delete),
    ("POST", "/" + ENTITY + r"/actions/runners/registration-token", None, "rest.registration_token", rest.registration_token),
    ("POST", "/" + ENTITY + r"/actions/runners/remove-token", None, "rest.remove_token", rest.remove_token),
    ("POST", "/" + ENTITY + r"/actions/runners/generate-jitconfig", None, "rest.jit", rest.generate_jit),
    ("GET", "/" + ENTITY + r"/actions/runners", None, "rest.list", rest.list_runners),
    ("GET", "/" + ENTITY + r"/actions/runners/(?P<id>\d+)", None, "rest.get", rest.get_runner),
    ("DELETE", "/" + ENTITY + r"/actions/runners/(?P<id>\d+)", None, "rest.delete", rest.delete_runner),
    ("GET", "/" + ENTITY + r"/actions/runner-groups", None, "rest.groups", rest.list_groups),
    ("GET", "/" + ENTITY + r"/installation", None, "app.installation", rest.installation),
    ("GET", r"/app/installations", None, "app.installations", rest.installations),
    ("POST", r"/app/installations/(?P<id>\d+)/access_tokens", None, "app.token", rest.access_token),
]

TENANT = [
    ("GET", r"/_apis/connectionData", None, "v1.connectiondata", pipelines.connection_data),
    ("GET", DIRECT + r"pools", None, "v1.pools", pipelines.pools),
    ("GET", DIRECT + r"pools/(?P<pool>\d+)/agents", None, "v1.lookup", pipelines.lookup),
    ("POST", DIRECT + r"pools/(?P<pool>\d+)/agents", None, "v1.add", pipelines.add),
    ("PUT", DIRECT + r"pools/(?P<pool>\d+)/agents/(?P<id>\d+)", None, "v1.replace", pipelines.replace),
    ("DELETE", DIRECT + r"pools/(?P<pool>\d+)/agents/(?P<id>\d+)", None, "v1.delete", pipelines.delete),
    ("POST", DIRECT + r"pools/(?P<pool>\d+)/sessions", None, "v1.session", messages.v1_session),
    ("DELETE", DIRECT + r"pools/(?P<pool>\d+)/sessions/(?P<sid>[0-9a-f-]+)", None, "v1.session_delete", messages.v1_session_delete),
    ("GET", DIRECT + r"pools/(?P<pool>\d+)/messages", None, "v1.message", messages.v1_message),
    ("DELETE", DIRECT + r"pools/(?P<pool>\d+)/messages/(?P<mid>\d+)", None, "v1.message_delete", messages.v1_message_delete),
]

OTHER_TENANT = [
    ("GET", OTHER + r"AgentPools", None, "v1.pools", pipelines.pools),
    ("GET", OTHER + r"Agent/(?P<pool>\d+)", None, "v1.lookup", pipelines.lookup),
    ("POST", OTHER + r"Agent/(?P<pool>\d+)", None, "v1.add", pipelines.add),
    ("PUT", OTHER + r"Agent/(?P<pool>\d+)/(?P<id>\d+)", None, "v1.replace", pipelines.replace),
    ("DELETE", OTHER + r"Agent/(?P<pool>\d+)/(?P<id>\d+)", None, "v1.delete", pipelines.delete),
]

OAUTH = [("POST", r"/_apis/oauth2/token/(?P<client>[0-9a-f-]+)", None, "oauth", messages.oauth)]

BROKER = [
    ("POST", r"/session", None, "broker.session", messages.session),
    ("DELETE", r"/session", None, "broker.session_delete", messages.session_delete),
    ("GET", r"/message", None, "broker.message", messages.message),
    ("DELETE", r"/message", None, "broker.message_delete", messages.message_delete),
]

RUN = [
    ("POST", r"/acquirejob", None, "job.acquire", messages.acquire),
    ("POST", r"/renewjob", None, "job.renew", messages.renew),
    ("POST", r"/completejob", None, "job.complete", messages.complete),
]

# who checks the User-Agent of the runner: everything but calls with a PAT, an App or the runner's own OAuth
RUNNER_STEPS = re.compile(r"registration|v2\..*|v1\.(connectiondata|pools|lookup|add|replace|delete)")


class Place:
    """Where a request went: kind of host, its public name for URLs, and the entity a tenant path names."""

    def __init__(self, web, api, authority, tenant_prefix, oauth, broker, run):
        self.web = web                    # host[:port] of the input URL
        self.api = api
        self.authority = authority
        self.tenant_prefix = tenant_prefix
        self.oauth = oauth
        self.broker = broker
        self.run = run


def hosted():
    d = "actions.githubusercontent.com"
    return Place("github.com", "api.github.com", None, "https://pipelinesghubeus12." + d, "https://tokenghub." + d,
                 "https://broker." + d + "/", "https://run." + d)


def residency(tenant):
    d = tenant + ".ghe.com"
    return Place(d, "api." + d, None, "https://pipelines." + d, "https://tokens." + d, "https://broker." + d + "/", "https://run." + d)


def ghes(authority):
    s = "https://" + authority + "/_services"
    return Place(authority, authority, authority, s + "/pipelines", s + "/vstoken", s + "/broker/", s + "/run")


def locate(world, host, path):
    """(place, table, rest of the path) or None."""
    name = host.partition(":")[0]
    if host == "api.github.com":
        return hosted(), API, path
    sub = ".actions.githubusercontent.com"
    if host.endswith(sub):
        return service(hosted(), host[:-len(sub)], path, {"pipelinesghubeus12": "pipelines", "tokenghub": "oauth"})
    m = re.fullmatch(r"([a-z]+)\.([a-z0-9-]+)\.ghe\.com", host)
    if m and m.group(1) == "api":
        return residency(m.group(2)), API, path
    if m:
        return service(residency(m.group(2)), m.group(1), path, {"pipelines": "pipelines", "tokens": "oauth"})
    if name in world.ghes:
        place = ghes(host)
        if path == "/api/v3" or path.startswith("/api/v3/"):
            return place, API, path[len("/api/v3"):] or "/"
        m = re.match(r"/_services/(pipelines|vstoken|broker|run)(/.*)", path)
        if m:
            return service(place, m.group(1), m.group(2), {"vstoken": "oauth"})
    return None


def service(place, first, path, names):
    kind = names.get(first, first)
    if kind == "pipelines":
        m = re.match(r"/([A-Za-z0-9]{40})(/.*)", path)
        return (place, ("tenant", m.group(1)), m.group(2)) if m else None
    table = {"oauth": OAUTH, "broker": BROKER, "run": RUN}.get(kind)
    return (place, table, path) if table else None


def route(world, req):
    """Sets ``req.step`` and returns what ``answer`` needs, or None when nobody serves this."""
    found = locate(world, req.host, req.path)
    if found is None:
        return None
    place, table, rest_path = found
    req.detail["place"] = place
    tenant = None
    if isinstance(table, tuple):
        tenant = table[1]
        table = TENANT if world.set["direct_routes"] else [TENANT[0]] + OTHER_TENANT + TENANT[6:]
    for method, pattern, scheme, step, func in table:
        if method != req.method or (scheme is not None and req.scheme != scheme):
            continue
        m = re.fullmatch(pattern, rest_path)
        if m is None:
            continue
        req.step = step
        req.detail["args"] = m.groupdict()
        req.detail["tenant"] = tenant
        return func
    return None


def answer(world, req, func):
    if func is None:
        tenant_404 = not world.set["direct_routes"] and "/_apis/" in req.path
        if not tenant_404:
            world.violation(req, "nobody serves %s %s on %s" % (req.method, req.target, req.host))
        return Reply(404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"})
    with world.lock:
        strict.common(world, req)
        if RUNNER_STEPS.fullmatch(req.step):
            req.detail["agent"] = strict.user_agent(world, req)
        elif req.get("user-agent") is None:
            world.violation(req, "no User-Agent")
    reply = func(world, req)
    if req.violations:
        return Reply(400, {"message": "refused by the strict test server: " + "; ".join(req.violations)})
    if req.step.startswith(("v1.", "broker.", "job.", "oauth")):
        reply.service = True
    return reply
