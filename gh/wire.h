/*
 * One request of the protocol: its headers by dialect, its credential, its retry policy; the log of
 * the step; the diagnosis of a refusal. Shared by the files of gh/, nobody else's.
 */
#ifndef GH_WIRE_H
#define GH_WIRE_H

#include "gh/answer.h"
#include "gh/body.h"
#include "gh/diagnose.h"
#include "gh/gh.h"

struct gh {
	const struct gh_settings *s; /* borrowed */
	struct net *net;
	int cancel_fd; /* -1: none */
	char user_agent[128];
	struct secret rest; /* installation token, "" none yet */
	int64_t rest_until_ms;
	struct secret minted; /* registration or removal token of this life */
	int64_t minted_until_ms;
};

enum wire_style {
	WIRE_ADMIN,  /* runner-registration and runner-admin: RemoteAuth, no Accept */
	WIRE_V1,     /* pipelines: Bearer, version in the media type */
	WIRE_REST,   /* public REST: Bearer, GitHub's media type and API version */
	WIRE_BEARER, /* Bearer, nothing else */
	WIRE_FORM,   /* the OAuth form, no credential in a header */
	WIRE__MAX
};

struct wire_call {
	enum gh_step step;
	enum wire_style style;
	const char *method;
	struct url url;
	const char *api_version;   /* WIRE_V1: "6.0-preview.2" */
	const struct secret *cred; /* NULL: none */
	enum gh_cred cred_kind;
	int64_t cred_age_ms;	/* -1: not known */
	const struct buf *body; /* NULL: none */
	enum net_retry retry;
	bool quiet;    /* a refusal is an answer here: logged at debug */
	int quiet_for; /* ... only when it has this status; 0: none */
};

/* net_call with the headers of the style. Whatever the status, 0 with *r (to be freed); -1 with *e
 * and *f. `f` may be NULL. */
int wire_send(struct gh *g, const struct wire_call *c, struct deadline d, struct net_response *r,
	      struct net_failure *f, struct err *e);

/* As wire_send, and a status outside 2xx is a failure that was diagnosed (nothing to free then);
 * *status (may be NULL) is set all the same, 0 when no answer came. */
int wire_ask(struct gh *g, const struct wire_call *c, struct deadline d, struct net_response *r,
	     int *status, struct err *e);

/* Says in the log what a refusal means (verdict, remedy, evidence), and sets *e. Always -1. */
int wire_refused(struct gh *g, const struct wire_call *c, const struct net_response *r,
		 struct err *e);

static inline bool wire_ok(const struct net_response *r)
{
	return r->status >= 200 && r->status <= 299;
}

/* API base of the scope plus a path. 0, or -1 (XC_CONFIG: too long). */
int wire_api(const struct gh *g, const char *path, struct url *out, struct err *e);
/* ... plus entity path plus a path. */
int wire_entity(const struct gh *g, const char *path, struct url *out, struct err *e);

/* ---- credentials (tokens.c) ----------------------------------------------------------------- */

bool tokens_have_rest(const struct gh_settings *s); /* a PAT or an App */

/* A call of the REST dialect, credential filled in: the PAT, or the App's installation token, which
 * is fetched when there is none or it is about to expire. 0 or -1. */
int tokens_rest(struct gh *g, struct deadline d, struct wire_call *c, struct err *e);

/* The registration token to use now: minted with App or PAT, else the one given. *kind and *age for
 * the evidence. `removal`: mint a removal token instead. The pointer lives until the next call. */
const struct secret *tokens_runner(struct gh *g, bool removal, struct deadline d,
				   enum gh_cred *kind, int64_t *age_ms, struct err *e);

#endif
