#include "gh/flow.h"

#include "base/log.h"
#include "base/str.h"
#include "gh/scope.h"

#include <string.h>

#define NO_POOL (-1)

void flow_wipe(struct flow *f)
{
	explicit_bzero(f, sizeof *f);
}

/* A client whose User-Agent github.com does not know is sent to the broker without a word about the
 * flow (ChristopherHX/github-act-runner, issues 219 and 220): no pipelines tenant is there. */
static int not_the_broker(const struct url *tenant, const struct gh_settings *s, struct err *e)
{
	if (str_starts(tenant->host, "broker."))
		return err_set(e, XC_VERSION, 0,
			       "GitHub did not take us for a runner it knows (it named %s as "
			       "tenant): is %s the version of a real runner?",
			       tenant->host, s->agent_version);
	return 0;
}

static int enter(struct flow *f, struct answer_auth *a, const struct secret *token,
		 enum gh_cred kind, struct err *e)
{
	const struct gh_settings *s = f->g->s;

	f->kind = a->v2 ? GH_V2 : GH_V1;
	if (a->url[0] != 0 && gh_scope_check_tenant(&s->scope, a->url, e) < 0)
		return -1;
	(void)str_copy(f->tenant, sizeof f->tenant, a->url);
	if (a->v2) {
		f->cred = *token;
		f->cred_kind = kind;
		return 0;
	}
	if (url_parse(a->url, &f->base, e) < 0)
		return -1;
	f->cred = a->token;
	f->cred_kind = CRED_TENANT;
	f->cred_age_ms = 0;
	v1_direct_routes(f);
	return not_the_broker(&f->base, s, e);
}

int flow_begin(struct gh *g, const char *event, const struct secret *token, enum gh_cred kind,
	       int64_t age_ms, struct deadline d, struct flow *out, int *status, struct err *e)
{
	bool remove = strcmp(event, "remove") == 0;
	struct wire_call c = {.step = remove ? STEP_AUTH_REMOVE : STEP_AUTH,
			      .style = WIRE_ADMIN,
			      .method = "POST",
			      .cred = token,
			      .cred_kind = kind,
			      .cred_age_ms = age_ms,
			      .retry = NET_IDEMPOTENT};
	struct answer_auth a = {.v2 = false};
	cleanup_buf struct buf body = {0};
	struct net_response r;
	int rc;

	memset(out, 0, sizeof *out);
	out->g = g;
	out->cred_age_ms = age_ms;
	buf_init(&body, BODY_MAX);
	c.body = &body;
	if (wire_api(g, "/actions/runner-registration", &c.url, e) < 0)
		return -1;
	if (body_auth(&body, g->s->scope.url, event) < 0)
		return err_set(e, XC_SYSTEM, 0, "no memory for a request");
	if (wire_ask(g, &c, d, &r, status, e) < 0)
		return -1;
	rc = answer_auth(r.body.data, r.body.len, &a, e);
	net_response_free(&r);
	if (rc == 0)
		rc = enter(out, &a, token, kind, e);
	secret_wipe(&a.token);
	if (rc < 0)
		flow_wipe(out);
	return rc;
}

/* The call of a flow's step, style and credential filled in. */
static struct wire_call call(const struct flow *f, enum gh_step step, const char *method,
			     enum net_retry retry)
{
	return (struct wire_call){.step = step,
				  .style = f->kind == GH_V2 ? WIRE_ADMIN : WIRE_V1,
				  .method = method,
				  .api_version = V1_AGENTS_VERSION,
				  .cred = &f->cred,
				  .cred_kind = f->cred_kind,
				  .cred_age_ms = f->cred_age_ms,
				  .retry = retry};
}

static int groups_url(struct flow *f, struct wire_call *c, struct err *e)
{
	if (f->kind == GH_V2)
		return wire_entity(f->g, "/actions/runner-groups", &c->url, e);
	c->api_version = V1_POOLS_VERSION;
	return v1_url(f, f->pools, NO_POOL, 0, "?poolType=Automation", &c->url, e);
}

int flow_groups(struct flow *f, const char *want, struct deadline d, struct answer_group *out,
		struct err *e)
{
	struct wire_call c = call(f, STEP_GROUPS, "GET", NET_IDEMPOTENT);
	struct net_response r;
	int rc, status = 0;

	if (groups_url(f, &c, e) < 0)
		return -1;
	c.quiet_for = f->kind == GH_V1 ? 404 : 0; /* it may only mean other routes */
	rc = wire_ask(f->g, &c, d, &r, &status, e);
	if (rc < 0 && status == 404 && f->kind == GH_V1 && !f->routed) {
		if (v1_find_routes(f, d, e) < 0 || groups_url(f, &c, e) < 0)
			return -1;
		c.quiet_for = 0;
		rc = wire_ask(f->g, &c, d, &r, NULL, e);
	}
	if (rc < 0)
		return -1;
	rc = answer_groups(r.body.data, r.body.len, flow_dialect(f), want,
			   f->g->s->scope.kind == GH_REPO, out, e);
	net_response_free(&r);
	return rc;
}

int flow_lookup(struct flow *f, const char *name, struct deadline d, struct answer_found *out,
		struct err *e)
{
	struct wire_call c = call(f, STEP_LOOKUP, "GET", NET_IDEMPOTENT);
	char escaped[GH_NAME_MAX * 3 + 1], query[GH_NAME_MAX * 3 + 96];
	struct net_response r;
	int rc;

	if (url_escape(escaped, sizeof escaped, name) < 0 ||
	    str_fmt(query, sizeof query,
		    f->kind == GH_V2 ? "/actions/runners?name=%s"
				     : "?agentName=%s&includeCapabilities=False",
		    escaped) < 0)
		return err_set(e, XC_BUG, 0, "the runner's name does not fit a query");
	/* Pool 0 stands for every pool that the token can see. */
	rc = f->kind == GH_V2 ? wire_entity(f->g, query, &c.url, e)
			      : v1_url(f, f->agents, 0, 0, query, &c.url, e);
	if (rc < 0 || wire_ask(f->g, &c, d, &r, NULL, e) < 0)
		return -1;
	rc = answer_lookup(r.body.data, r.body.len, flow_dialect(f), name, out, e);
	net_response_free(&r);
	return rc;
}

/* Only an answer that is the service's own "no" proves that nothing was created. */
static enum flow_outcome judge(struct flow *f, const struct wire_call *c,
			       const struct net_response *r, struct err *e)
{
	char message[200], type_key[96];
	bool conflict;

	answer_message(r->body.data != NULL ? r->body.data : (const unsigned char *)"", r->body.len,
		       message, sizeof message, type_key, sizeof type_key);
	conflict = r->status == 409 || strcmp(type_key, "TaskAgentExistsException") == 0;
	if (!conflict || !c->quiet)
		wire_refused(f->g, c, r, e);
	else
		err_set(e, XC_CONFIG, 0, "a runner of this name exists");
	if (conflict)
		return FLOW_CONFLICT;
	return r->status >= 500 || r->status == 408 || r->status < 400 ? FLOW_UNKNOWN
								       : FLOW_REFUSED;
}

enum flow_outcome flow_add(struct flow *f, const struct answer_group *group, uint64_t replace_id,
			   const struct key_parts *key, struct deadline d, struct net_response *r,
			   bool *cancelled, struct err *e)
{
	bool v2 = f->kind == GH_V2;
	struct wire_call c = call(f, STEP_ADD, !v2 && replace_id != 0 ? "PUT" : "POST", NET_UNSENT);
	struct net_failure why = {.sent = false};
	cleanup_buf struct buf body = {0};
	enum flow_outcome out;
	int rc;

	*cancelled = false;
	buf_init(&body, BODY_MAX);
	c.body = &body;
	c.quiet = true; /* a conflict is looked into first */
	rc = v2 ? body_v2(&body, f->g->s, key, group->id, replace_id)
		: body_v1(&body, f->g->s, key, replace_id);
	if (rc < 0) {
		err_set(e, XC_SYSTEM, 0, "no memory for a request");
		return FLOW_REFUSED;
	}
	rc = v2 ? wire_api(f->g, "/actions/runners/register", &c.url, e)
		: v1_url(f, f->agents, (int64_t)group->id, replace_id, "", &c.url, e);
	if (rc < 0)
		return FLOW_REFUSED;
	if (wire_send(f->g, &c, d, r, &why, e) < 0) {
		*cancelled = why.cancelled;
		return why.sent ? FLOW_UNKNOWN : FLOW_REFUSED;
	}
	if (wire_ok(r))
		return FLOW_ADDED;
	c.quiet = r->status == 409;
	out = judge(f, &c, r, e);
	net_response_free(r);
	return out;
}

static int delete_url(struct flow *f, uint64_t id, struct wire_call *c, struct err *e)
{
	char rest[64];

	if (f->kind == GH_V1)
		return v1_url(f, f->agents, 0, id, "", &c->url, e);
	(void)str_fmt(rest, sizeof rest, "/actions/runners/%llu", (unsigned long long)id);
	return wire_entity(f->g, rest, &c->url, e);
}

/* 404 from a path that this server may not have at all: only its own exception proves "gone". */
static bool maybe_other_routes(const struct flow *f, const struct net_response *r)
{
	char message[64], type_key[96];

	if (f->kind != GH_V1 || f->routed || r->status != 404)
		return false;
	answer_message(r->body.data != NULL ? r->body.data : (const unsigned char *)"", r->body.len,
		       message, sizeof message, type_key, sizeof type_key);
	return type_key[0] == 0;
}

int flow_delete(struct flow *f, uint64_t id, struct deadline d, int *status, bool *gone,
		int64_t *ms, struct err *e)
{
	struct wire_call c = call(f, STEP_DELETE, "DELETE", NET_IDEMPOTENT);
	struct net_response r;
	int rc;

	*status = 0;
	*gone = false;
	if (delete_url(f, id, &c, e) < 0 || wire_send(f->g, &c, d, &r, NULL, e) < 0)
		return -1;
	if (maybe_other_routes(f, &r)) {
		int changed = v1_find_routes(f, d, e);
		if (changed != 0) {
			net_response_free(&r);
			if (changed < 0)
				return -1;
			return flow_delete(f, id, d, status, gone, ms, e);
		}
	}
	*status = r.status;
	*ms = r.ms;
	*gone = r.status == 404;
	rc = wire_ok(&r) || *gone ? 0 : wire_refused(f->g, &c, &r, e);
	net_response_free(&r);
	return rc;
}
