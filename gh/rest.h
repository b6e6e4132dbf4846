/*
 * The public REST calls on runners, with a PAT or an App. Shared by the files of gh/.
 */
#ifndef GH_REST_H
#define GH_REST_H

#include "gh/wire.h"

/* wire_ask with the PAT or the App's installation token (fetched, renewed, tried afresh once when a
 * cached one is refused). c->step, method, url, body, retry are given. */
int rest_ask(struct gh *g, struct wire_call *c, struct deadline d, struct net_response *r,
	     int *status, struct err *e);

/* The runner of exactly that name: out->id 0 when there is none. 0 or -1. */
int rest_lookup(struct gh *g, const char *name, struct deadline d, struct answer_found *out,
		struct err *e);

/* The runner of that id: out->id 0 when there is none. 0 or -1. */
int rest_get(struct gh *g, uint64_t id, struct deadline d, struct answer_found *out, struct err *e);

/* Delete by id. 0: 204; -1 with *e and *status (404: not there, 422: busy). `how` names the
 * credential. */
int rest_delete(struct gh *g, uint64_t id, struct deadline d, int *status, int64_t *ms,
		enum gh_cred *how, struct err *e);

/* The group by name among those that the credential sees ("": the default one). */
int rest_group(struct gh *g, const char *want, struct deadline d, struct answer_group *out,
	       struct err *e);

#endif
