/*
 * Where the pipelines service keeps its resources. On github.com and GHES the direct routes are
 * stable, so they are used at once; a server that answers 404 to them (ChristopherHX/runner.server
 * has others) is asked with connectionData. Resource ids and template rules: actions/runner,
 * src/Sdk/WebApi/WebApi/Location and src/Sdk/DTGenerated/Generated/TaskAgentHttpClientBase.cs.
 */
#include "gh/flow.h"

#include "base/str.h"
#include "gh/json.h"

#include <string.h>
#include <strings.h>

#define POOLS_GUID  "a8c47e17-4d56-4a56-92bb-de7ea7dc65be"
#define AGENTS_GUID "e298ef32-5878-4cab-993c-043836571f42"

#define DIRECT_POOLS  "/_apis/distributedtask/pools"
#define DIRECT_AGENTS "/_apis/distributedtask/pools/{poolId}/agents/{agentId}"

void v1_direct_routes(struct flow *f)
{
	f->routed = false;
	(void)str_copy(f->pools, sizeof f->pools, DIRECT_POOLS);
	(void)str_copy(f->agents, sizeof f->agents, DIRECT_AGENTS);
}

struct filler {
	char *dst;
	size_t size, len;
};

static int append(struct filler *w, const char *s, size_t n)
{
	if (n >= w->size - w->len)
		return -1;
	memcpy(w->dst + w->len, s, n);
	w->len += n;
	w->dst[w->len] = 0;
	return 0;
}

struct value {
	const char *name;
	const char *text; /* NULL: absent, the segment is dropped */
};

/* Copies the template segment by segment; parameters not among `values` stay as they are when
 * `keep`, else their segment is dropped. */
static int fill(const char *template, const struct value *values, size_t n, bool keep, char *dst,
		size_t size)
{
	struct filler w = {dst, size, 0};

	dst[0] = 0;
	while (*template != 0) {
		size_t len, name;
		const struct value *v = NULL;
		while (*template == '/')
			template ++;
		len = strcspn(template, "/");
		if (len == 0)
			break;
		name = len >= 2 && template[0] == '{' && template[len - 1] == '}' ? len - 2 : 0;
		for (size_t i = 0; i < n && name > 0; i++)
			if (strlen(values[i].name) == name &&
			    strncasecmp(values[i].name, template + 1, name) == 0)
				v = &values[i];
		if (name == 0 || (v == NULL && keep)) {
			if (append(&w, "/", 1) < 0 || append(&w, template, len) < 0)
				return -1;
		} else if (v != NULL && v->text != NULL) {
			if (append(&w, "/", 1) < 0 || append(&w, v->text, strlen(v->text)) < 0)
				return -1;
		}
		template += len;
	}
	return 0;
}

int v1_url(const struct flow *f, const char *template, int64_t pool, uint64_t agent,
	   const char *query, struct url *out, struct err *e)
{
	char pool_text[24], agent_text[24], path[ROUTE_MAX + 64], rest[URL_PATH_MAX];
	struct value v[2] = {{"poolId", pool >= 0 ? pool_text : NULL},
			     {"agentId", agent != 0 ? agent_text : NULL}};

	(void)str_fmt(pool_text, sizeof pool_text, "%lld", (long long)pool);
	(void)str_fmt(agent_text, sizeof agent_text, "%llu", (unsigned long long)agent);
	if (fill(template, v, 2, false, path, sizeof path) < 0 ||
	    str_fmt(rest, sizeof rest, "%s%s", path, query) < 0 ||
	    url_join(&f->base, rest, out) < 0)
		return err_set(e, XC_PROTOCOL, 0, "the tenant URL is too long");
	return 0;
}

static int read_definition(const struct json_at *def, const char *guid, char *dst, size_t size,
			   struct err *e)
{
	char id[64] = "", area[64] = "", resource[64] = "", template[ROUTE_MAX] = "";
	struct value v[2] = {{"area", area}, {"resource", resource}};

	if (json_str(def, "identifier", JSON_OPTIONAL, id, sizeof id, e) < 0)
		return -1;
	if (!str_eq_nocase(id, guid))
		return 0;
	if (json_str(def, "serviceType", JSON_OPTIONAL, area, sizeof area, e) < 0 ||
	    json_str(def, "displayName", JSON_OPTIONAL, resource, sizeof resource, e) < 0 ||
	    json_str(def, "relativePath", JSON_REQUIRED, template, sizeof template, e) < 0)
		return -1;
	if (strpbrk(template, "?#\\%") != NULL || strstr(template, "..") != NULL ||
	    fill(template, v, 2, true, dst, size) < 0)
		return err_set(e, XC_PROTOCOL, 0, "connectionData: relativePath of %s is unusable",
			       guid);
	return 1;
}

int v1_read_route(const void *text, size_t len, const char *guid, char *dst, size_t size,
		  struct err *e)
{
	struct json_cursor c = {0};
	struct json_at at, loc, defs, def;
	struct json j = {NULL};
	int rc = -1;

	if (json_parse(&j, text, len, JSON_LOOSE, "connectionData", &at, e) < 0)
		return -1;
	if (json_obj(&at, "locationServiceData", JSON_REQUIRED, &loc, e) == 1 &&
	    json_arr(&loc, "serviceDefinitions", JSON_REQUIRED, &defs, e) == 1) {
		rc = 0;
		while (rc == 0 && (rc = json_each(&defs, &c, &def, e)) == 1)
			rc = read_definition(&def, guid, dst, size, e);
		if (rc == 0)
			rc = err_set(e, XC_PROTOCOL, 0, "connectionData: no resource %s", guid);
	}
	json_free(&j);
	return rc < 0 ? -1 : 0;
}

int v1_find_routes(struct flow *f, struct deadline d, struct err *e)
{
	struct wire_call c = {.step = STEP_ROUTES,
			      .style = WIRE_V1,
			      .method = "GET",
			      .cred = &f->cred,
			      .cred_kind = f->cred_kind,
			      .cred_age_ms = f->cred_age_ms,
			      .retry = NET_IDEMPOTENT};
	char pools[ROUTE_MAX], agents[ROUTE_MAX];
	struct net_response r;
	int rc;

	/* A cached change id would be answered without definitions: -1 always. */
	if (url_join(&f->base,
		     "/_apis/connectionData?connectOptions=1&lastChangeId=-1&lastChangeId64=-1",
		     &c.url) < 0)
		return err_set(e, XC_PROTOCOL, 0, "the tenant URL is too long");
	if (wire_ask(f->g, &c, d, &r, NULL, e) < 0)
		return -1;
	rc = v1_read_route(r.body.data, r.body.len, POOLS_GUID, pools, sizeof pools, e);
	if (rc == 0)
		rc = v1_read_route(r.body.data, r.body.len, AGENTS_GUID, agents, sizeof agents, e);
	net_response_free(&r);
	if (rc < 0)
		return -1;
	f->routed = true;
	if (strcmp(pools, f->pools) == 0 && strcmp(agents, f->agents) == 0)
		return 0;
	(void)str_copy(f->pools, sizeof f->pools, pools);
	(void)str_copy(f->agents, sizeof f->agents, agents);
	return 1;
}
