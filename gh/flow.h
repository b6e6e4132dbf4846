/*
 * The two registration flows behind one face: V1 (pipelines service) and V2 (runner-admin). Which
 * one it is, the server says in its answer to runner-registration. Shared by the files of gh/.
 */
#ifndef GH_FLOW_H
#define GH_FLOW_H

#include "gh/wire.h"

#define ROUTE_MAX 256

struct flow {
	struct gh *g;
	enum gh_flow kind;	   /* GH_V1 or GH_V2 */
	char tenant[URL_TEXT_MAX]; /* as received; V2: "" possible */
	struct url base;	   /* V1: the tenant */
	struct secret cred;	   /* V1: the tenant's bearer; V2: the runner token itself */
	enum gh_cred cred_kind;
	int64_t cred_age_ms;
	bool routed;				  /* V1: routes came from connectionData */
	char pools[ROUTE_MAX], agents[ROUTE_MAX]; /* V1: path templates below the tenant */
};

static inline enum dialect flow_dialect(const struct flow *f)
{
	return f->kind == GH_V2 ? DIALECT_V2 : DIALECT_V1;
}

/* POST runner-registration with `token`; `event` is "register" or "remove". The tenant's URL is
 * checked against the scope. 0 or -1; *status as wire_ask's. */
int flow_begin(struct gh *g, const char *event, const struct secret *token, enum gh_cred kind,
	       int64_t age_ms, struct deadline d, struct flow *out, int *status, struct err *e);
void flow_wipe(struct flow *f);

int flow_groups(struct flow *f, const char *want, struct deadline d, struct answer_group *out,
		struct err *e);
int flow_lookup(struct flow *f, const char *name, struct deadline d, struct answer_found *out,
		struct err *e);

enum flow_outcome {
	FLOW_ADDED,    /* *r is the answer */
	FLOW_CONFLICT, /* the name is taken */
	FLOW_REFUSED,  /* *e says why; nothing was created */
	FLOW_UNKNOWN,  /* it may have been created */
	FLOW__MAX
};
/* Add (replace_id 0) or replace. *e is set unless FLOW_ADDED; *cancelled when told to finish. */
enum flow_outcome flow_add(struct flow *f, const struct answer_group *group, uint64_t replace_id,
			   const struct key_parts *key, struct deadline d, struct net_response *r,
			   bool *cancelled, struct err *e);

/* Delete by id. 0: 2xx, or with *gone: it was not there. -1 with *e; *status is the answer's. */
int flow_delete(struct flow *f, uint64_t id, struct deadline d, int *status, bool *gone,
		int64_t *ms, struct err *e);

/* ---- V1's routes (v1.c) --------------------------------------------------------------------- */

void v1_direct_routes(struct flow *f);
/* Asks connectionData. 1: the routes changed, 0: they are the direct ones, -1. */
int v1_find_routes(struct flow *f, struct deadline d, struct err *e);
/* Template to URL: {poolId} and {agentId} filled in; a segment whose parameter is absent (negative)
 * goes with its slash. `query` "" or "?...". 0 or -1. */
int v1_url(const struct flow *f, const char *template, int64_t pool, uint64_t agent,
	   const char *query, struct url *out, struct err *e);
/* Pure: the path template of `guid` in connectionData's answer, area and resource filled in. */
int v1_read_route(const void *text, size_t len, const char *guid, char *dst, size_t size,
		  struct err *e);

#define V1_POOLS_VERSION  "5.1-preview.1"
#define V1_AGENTS_VERSION "6.0-preview.2"

#endif
