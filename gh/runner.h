/*
 * What is known of one runner: the wish (settings) and the fact (registration). Values without
 * pointers, so that they live in PID 1's static memory and cross the registrar's socket as they
 * are.
 */
#ifndef GH_RUNNER_H
#define GH_RUNNER_H

#include "base/secret.h"
#include "net/url.h"

#include <stdbool.h>
#include <stdint.h>

#define GH_NAME_MAX   65  /* 64 characters, server's limit, in bytes here; with NUL */
#define GH_LABELS_MAX 100 /* most labels of one runner */
#define GH_LABEL_MAX  257 /* 256 bytes, with NUL */
#define GH_GROUP_MAX  257
#define GH_WORK_MAX   1024
#define GH_FILE_MAX   12288 /* one identity file */
#define GH_FILES_MAX                                                                               \
	6 /* .runner .credentials .credentials_rsaparams and room for what JIT may add */

enum gh_scope_kind { GH_REPO, GH_ORG, GH_ENTERPRISE, GH_SCOPE__MAX };

/* Where the runner belongs, from RUNNER_URL (gh/scope.h parses it). */
struct gh_scope {
	enum gh_scope_kind kind;
	bool hosted;		/* github.com or *.ghe.com; else GHES */
	char url[URL_TEXT_MAX]; /* as sent and stored: no trailing slash, no .git */
	struct url web;		/* the same, parsed */
	struct url api;	  /* API base: https://api.github.com, https://HOST[:PORT]/api/v3 ... */
	char entity[512]; /* /orgs/O, /repos/O/R, /enterprises/E: percent-encoded as needed */
};

/* Which credentials there are; several may be. */
struct gh_credentials {
	struct secret token;	   /* registration token, 1 h */
	struct secret pat;	   /* personal access token */
	struct secret app_key;	   /* PEM of the App, line breaks real */
	char app_id[128];	   /* App id or client id; "" none */
	uint64_t app_installation; /* 0: find it */
	struct secret jit;	   /* JIT configuration, base64 */
	int64_t token_at_ms;	   /* CLOCK_REALTIME when init first saw the token */
};

struct gh_settings {
	bool have_scope; /* false only with a bare JIT configuration */
	struct gh_scope scope;
	struct gh_credentials cred;
	char name[GH_NAME_MAX];
	char labels[GH_LABELS_MAX][GH_LABEL_MAX]; /* user labels, trimmed, unique */
	unsigned n_labels;
	bool no_default_labels;
	char group[GH_GROUP_MAX]; /* "": the default group */
	char work[GH_WORK_MAX];
	bool ephemeral, replace, disable_update;
	bool replace_given;	  /* RUNNER_REPLACE appears in the environment */
	bool jit_generate;	  /* RUNNER_JIT=yes: generate-jitconfig with the PAT or App */
	char agent_version[64];	  /* of the installed runner, e.g. 2.336.0 */
	char os_description[256]; /* PRETTY_NAME of /etc/os-release, else uname */
	char root[1024];	  /* runner root: deps.json is read there for the version */
	/* network */
	char https_proxy[1024], http_proxy[1024], no_proxy[4096], ca_file[1024], ca_dir[1024];
	int64_t http_ms;     /* INIT_HTTP_TIMEOUT */
	int64_t register_ms; /* INIT_REGISTER_TIMEOUT; its last 3 s settle an add in flight */
};

enum gh_flow { GH_V1, GH_V2, GH_JIT, GH_FLOW__MAX };

struct gh_file {
	char name[64]; /* no '/', one of the known names */
	uint32_t len;
	unsigned char data[GH_FILE_MAX];
};

/* A runner that GitHub knows, or may know. */
struct gh_runner {
	enum gh_flow flow;
	uint64_t id;   /* 0: not known (an add whose answer was lost) */
	uint64_t pool; /* group id */
	char name[GH_NAME_MAX];
	char pool_name[GH_GROUP_MAX];
	bool ephemeral;
	bool replaced;		      /* it took the place of one of that name */
	char tenant[URL_TEXT_MAX];    /* V1: tenant URL */
	char server_v2[URL_TEXT_MAX]; /* broker URL, trailing slash kept; "" none */
	char client_id[64];
	char auth_url[URL_TEXT_MAX];
	bool fips;			    /* PS256 rather than RS256 */
	char settings_url[URL_TEXT_MAX];    /* page where a person can remove it */
	int64_t registered_at_ms;	    /* CLOCK_REALTIME */
	struct gh_file files[GH_FILES_MAX]; /* what the agent needs, whole */
	unsigned n_files;
};

#endif
