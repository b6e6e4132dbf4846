/*
 * What a refusal means. GitHub says "404" to five different mistakes; which one it was is read from
 * the evidence: step, status, body, headers, credential and its age, scope, agent version, host.
 * Pure: a table of rules, tried in order.
 */
#ifndef GH_DIAGNOSE_H
#define GH_DIAGNOSE_H

#include "gh/runner.h"

#include <stdbool.h>
#include <stdint.h>

enum gh_step {
	STEP_APP_FIND,	   /* finding the App's installation */
	STEP_APP_TOKEN,	   /* its token */
	STEP_TOKEN,	   /* registration-token */
	STEP_REMOVE_TOKEN, /* remove-token */
	STEP_AUTH,	   /* runner-registration, register */
	STEP_AUTH_REMOVE,  /* runner-registration, remove */
	STEP_ROUTES,	   /* connectionData */
	STEP_GROUPS,
	STEP_LOOKUP,
	STEP_ADD, /* add or replace */
	STEP_JIT, /* generate-jitconfig */
	STEP_DELETE,
	STEP_OAUTH,   /* the agent's own token */
	STEP_SESSION, /* end of the agent's session */
	STEP__MAX
};

enum gh_cred {
	CRED_NONE,
	CRED_TOKEN,  /* registration token from the configuration */
	CRED_MINTED, /* registration or removal token that we minted just now */
	CRED_PAT,
	CRED_APP_JWT, /* the App itself */
	CRED_APP,     /* its installation */
	CRED_TENANT,  /* bearer of the pipelines tenant */
	CRED_AGENT,   /* the agent's own */
	CRED__MAX
};

struct gh_evidence {
	enum gh_step step;
	int status;
	const char *message;  /* answer_message */
	const char *type_key; /* of pipelines, or "" */
	bool html;	      /* the answer is a page */
	bool json;	      /* ... or JSON, as GitHub's are */
	bool rate_limited;
	int64_t retry_after_ms; /* -1: none */
	int64_t skew_ms;	/* our clock minus the server's; 0 when not known */
	enum gh_cred cred;
	int64_t cred_age_ms; /* -1: not known */
	bool hosted, repo;
	const char *agent_version;
};

enum gh_fault {
	FAULT_CLOCK,
	FAULT_SERVER,
	FAULT_RATE,
	FAULT_VERSION,
	FAULT_PROXY_PAGE,
	FAULT_WRONG_HOST,
	FAULT_MOVED,
	FAULT_SSO,
	FAULT_IP_LIST,
	FAULT_LIMIT,
	FAULT_BUSY,
	FAULT_NAME_TAKEN,
	FAULT_GROUP,
	FAULT_LABELS,
	FAULT_APP_KEY,
	FAULT_APP_SUSPENDED,
	FAULT_APP_NOT_INSTALLED,
	FAULT_APP_INSTALLATION,
	FAULT_APP_ENTERPRISE,
	FAULT_APP_RIGHT,
	FAULT_PAT_BAD,
	FAULT_PAT_RIGHT,
	FAULT_TOKEN_EXPIRED,
	FAULT_VERSION_LIKELY,
	FAULT_TOKEN_OTHER,
	FAULT_MINTED_REFUSED,
	FAULT_TENANT_DENIED,
	FAULT_AGENT_GONE,
	FAULT_INVALID,
	FAULT_GONE,
	FAULT_OTHER,
	FAULT__MAX
};

/* The version below which github.com is known to refuse registration (seen in public issue threads:
 * man-group/ArcticDB 3404, cert-manager/aws-privateca-issuer 478). */
#define GH_VERSION_FLOOR "2.329.0"

struct gh_fault_text {
	const char *id;	     /* stable, snake_case: the log's field "fault" */
	int code;	     /* enum exit_code */
	const char *verdict; /* what is wrong */
	const char *remedy;  /* what to do */
};

enum gh_fault gh_diagnose(const struct gh_evidence *v);
const struct gh_fault_text *gh_fault_text(enum gh_fault f);
const char *gh_step_name(enum gh_step s);  /* "look-up", for people */
const char *gh_step_event(enum gh_step s); /* "lookup", the log's event */
const char *gh_cred_name(enum gh_cred c);  /* "the PAT" */

/* a < b, of dotted versions; text that is none counts as 0. */
bool gh_version_less(const char *a, const char *b);

#endif
