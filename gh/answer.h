/*
 * What GitHub answers, as typed values. Pure: text in, value out; every missing, mistyped or
 * out-of-range field is an error (XC_PROTOCOL) that names it. Outputs are written on success only.
 */
#ifndef GH_ANSWER_H
#define GH_ANSWER_H

#include "base/err.h"
#include "base/secret.h"
#include "gh/runner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The three dialects: pipelines (V1), runner-admin (V2), public REST. */
enum dialect { DIALECT_V1, DIALECT_V2, DIALECT_REST, DIALECT__MAX };

/* POST runner-registration (actions/runner, ConfigurationManager.cs, GitHubAuthResult). */
struct answer_auth {
	char url[URL_TEXT_MAX]; /* tenant, as received */
	struct secret token;	/* bearer of the tenant; V1 only */
	bool v2;		/* use_v2_flow */
};
int answer_auth(const void *text, size_t len, struct answer_auth *out, struct err *e);

/* The group to register in. */
struct answer_group {
	uint64_t id;
	char name[GH_GROUP_MAX]; /* as the server spells it */
	bool is_default;
};
/* `want` "": the default group, else by name in any case. 0; -1 with XC_CONFIG when there is none,
 * the error listing those that the token can see (`repo`: and that a repository has no choice). */
int answer_groups(const void *text, size_t len, enum dialect how, const char *want, bool repo,
		  struct answer_group *out, struct err *e);

/* A runner found by name. */
struct answer_found {
	uint64_t id;	/* 0: no such runner */
	uint64_t group; /* 0: not said */
	char name[GH_NAME_MAX];
	bool online, busy; /* REST only */
};
/* The runner of exactly that name, in any case: the server may match loosely. 0 or -1. */
int answer_lookup(const void *text, size_t len, enum dialect how, const char *name,
		  struct answer_found *out, struct err *e);

/* One runner, as GET ../runners/{id} of the public REST gives it. 0 or -1. */
int answer_runner(const void *text, size_t len, struct answer_found *out, struct err *e);

/* Add or replace. */
struct answer_agent {
	uint64_t id;
	uint64_t group;	    /* V1: where it is now; 0 not said */
	char client_id[40]; /* lower-case GUID with dashes */
	char auth_url[URL_TEXT_MAX];
	char auth_url_v2[URL_TEXT_MAX]; /* with `migrate` */
	char server_v2[URL_TEXT_MAX];	/* broker, trailing slash kept; "" none */
	bool fips, broker, migrate;
	bool ephemeral, disable_update; /* echoed as true; V2 does not echo: true */
};
int answer_agent(const void *text, size_t len, enum dialect how, struct answer_agent *out,
		 struct err *e);

/* registration-token, remove-token, access_tokens. */
struct answer_token {
	struct secret token;
	int64_t expires_ms; /* since 1970 */
};
int answer_token(const void *text, size_t len, struct answer_token *out, struct err *e);

/* An installation of the App: the one object, or among a page's the one of `login`. 1 found, 0 not
 * on this page, -1. */
int answer_installation(const void *text, size_t len, const char *login, uint64_t *id,
			struct err *e);

/* Answer to generate-jitconfig. */
struct answer_jit {
	uint64_t id, group;
	struct secret config;
};
int answer_jit(const void *text, size_t len, struct answer_jit *out, struct err *e);

/* RFC 3339 in UTC ("2026-01-02T03:04:05Z", fractions allowed) or with an offset. 0 or -1. */
int answer_time(const char *s, int64_t *ms);

/* What an error answer says, printable and cut: its JSON "message" when there is one, else its
 * first bytes. `type_key`: pipelines' exception name, "" when none. */
void answer_message(const void *text, size_t len, char *dst, size_t size, char *type_key,
		    size_t key_size);

#endif
