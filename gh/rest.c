#include "gh/rest.h"

#include "base/str.h"

#include <string.h>

#define GROUP_PAGES 20

static struct wire_call call(enum gh_step step, const char *method)
{
	return (struct wire_call){.step = step, .method = method, .retry = NET_IDEMPOTENT};
}

static int runner_url(const struct gh *g, uint64_t id, struct wire_call *c, struct err *e)
{
	char path[64];

	(void)str_fmt(path, sizeof path, "/actions/runners/%llu", (unsigned long long)id);
	return wire_entity(g, path, &c->url, e);
}

int rest_lookup(struct gh *g, const char *name, struct deadline d, struct answer_found *out,
		struct err *e)
{
	struct wire_call c = call(STEP_LOOKUP, "GET");
	char escaped[GH_NAME_MAX * 3 + 1], path[GH_NAME_MAX * 3 + 96];
	struct net_response r;
	int rc;

	if (url_escape(escaped, sizeof escaped, name) < 0 ||
	    str_fmt(path, sizeof path, "/actions/runners?name=%s&per_page=100", escaped) < 0)
		return err_set(e, XC_BUG, 0, "the runner's name does not fit a query");
	if (wire_entity(g, path, &c.url, e) < 0 || rest_ask(g, &c, d, &r, NULL, e) < 0)
		return -1;
	rc = answer_lookup(r.body.data, r.body.len, DIALECT_REST, name, out, e);
	net_response_free(&r);
	return rc;
}

int rest_get(struct gh *g, uint64_t id, struct deadline d, struct answer_found *out, struct err *e)
{
	struct wire_call c = call(STEP_LOOKUP, "GET");
	struct net_response r;
	int rc, status = 0;

	memset(out, 0, sizeof *out);
	c.quiet_for = 404;
	if (runner_url(g, id, &c, e) < 0)
		return -1;
	if (rest_ask(g, &c, d, &r, &status, e) < 0)
		return status == 404 ? 0 : -1;
	rc = answer_runner(r.body.data, r.body.len, out, e);
	net_response_free(&r);
	return rc;
}

int rest_delete(struct gh *g, uint64_t id, struct deadline d, int *status, int64_t *ms,
		enum gh_cred *how, struct err *e)
{
	struct wire_call c = call(STEP_DELETE, "DELETE");
	int64_t start = clock_mono_ms();
	struct net_response r;
	int rc;

	*status = 0;
	if (runner_url(g, id, &c, e) < 0)
		return -1;
	rc = rest_ask(g, &c, d, &r, status, e);
	*ms = clock_mono_ms() - start;
	*how = c.cred_kind;
	if (rc < 0)
		return -1;
	*ms = r.ms;
	net_response_free(&r);
	return 0;
}

int rest_group(struct gh *g, const char *want, struct deadline d, struct answer_group *out,
	       struct err *e)
{
	char path[96], link[2048];
	struct net_response r;
	bool more = true;
	int rc = -1;

	for (unsigned page = 1; more && page <= GROUP_PAGES; page++) {
		struct wire_call c = call(STEP_GROUPS, "GET");
		(void)str_fmt(path, sizeof path, "/actions/runner-groups?per_page=100&page=%u",
			      page);
		if (wire_entity(g, path, &c.url, e) < 0 || rest_ask(g, &c, d, &r, NULL, e) < 0)
			return -1;
		rc = answer_groups(r.body.data, r.body.len, DIALECT_REST, want, false, out, e);
		more = net_header_get(&r, "Link", link, sizeof link) == 0 &&
		       strstr(link, "rel=\"next\"") != NULL;
		net_response_free(&r);
		if (rc == 0)
			return 0;
	}
	return rc;
}
