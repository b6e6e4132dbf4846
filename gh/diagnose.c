#include "gh/diagnose.h"

#include "base/exitcode.h"
#include "base/str.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define HOUR_MS	 3600000
#define SKEW_MAX 300000 /* contract: 5 minutes */

static const struct gh_fault_text texts[FAULT__MAX] = {
	[FAULT_CLOCK] = {"clock", XC_CLOCK,
			 "this machine's clock is more than 5 minutes off GitHub's",
			 "set the clock of the host (NTP); signatures made with it are refused"},
	[FAULT_SERVER] = {"server", XC_UNAVAILABLE, "GitHub has a problem of its own",
			  "try again later; see https://www.githubstatus.com"},
	[FAULT_RATE] = {"rate_limit", XC_UNAVAILABLE, "GitHub limits the rate of requests",
			"start fewer runners at once with this credential, or wait"},
	[FAULT_VERSION] = {"version_too_old", XC_VERSION,
			   "GitHub refuses this version of the runner as too old",
			   "rebuild the image with a newer runner (build argument RUNNER_VERSION)"},
	[FAULT_PROXY_PAGE] = {"proxy_page", XC_PROTOCOL,
			      "a web page came instead of GitHub's API: a proxy or portal answered",
			      "let this host through, or set https_proxy and no_proxy"},
	[FAULT_WRONG_HOST] = {"wrong_host", XC_CONFIG,
			      "the host in RUNNER_URL does not speak GitHub's API",
			      "check the host name and port of RUNNER_URL"},
	[FAULT_MOVED] = {"moved", XC_CONFIG, "GitHub says that what RUNNER_URL names has moved",
			 "set RUNNER_URL to the new name (renamed or transferred?)"},
	[FAULT_SSO] = {"sso", XC_DENIED, "the organisation demands single sign-on for this token",
		       "authorise the PAT for the organisation (Configure SSO)"},
	[FAULT_IP_LIST] = {"ip_allow_list", XC_DENIED,
			   "the organisation's IP allow list does not have this address",
			   "add this machine's public address to the list"},
	[FAULT_LIMIT] = {"runner_limit", XC_CONFIG, "GitHub has too many runners of this owner",
			 "delete runners that are offline, then start again"},
	[FAULT_BUSY] = {"busy", XC_GHOST, "the runner is still running a job for GitHub",
			"GitHub releases the lock of a killed job about 10 minutes later; "
			"delete the runner then"},
	[FAULT_NAME_TAKEN] = {"name_taken", XC_CONFIG, "a runner of this name exists",
			      "set RUNNER_REPLACE=yes, or another RUNNER_NAME"},
	[FAULT_GROUP] = {"group", XC_CONFIG,
			 "the runner group does not exist, or this credential may not use it",
			 "set RUNNER_GROUP to a group of this owner, or unset it"},
	[FAULT_LABELS] = {"labels", XC_CONFIG, "GitHub refuses the labels", "check RUNNER_LABELS"},
	[FAULT_APP_KEY] =
		{"app_key", XC_DENIED, "GitHub does not accept the App's signature",
		 "APP_ID and APP_PRIVATE_KEY must be of the same App; was the key revoked?"},
	[FAULT_APP_SUSPENDED] = {"app_suspended", XC_DENIED, "the App's installation is suspended",
				 "lift the suspension in the owner's settings"},
	[FAULT_APP_NOT_INSTALLED] = {"app_not_installed", XC_DENIED,
				     "the App is not installed where RUNNER_URL points",
				     "install the App there, or correct RUNNER_URL"},
	[FAULT_APP_INSTALLATION] = {"app_installation", XC_CONFIG,
				    "the App has no such installation",
				    "correct APP_INSTALLATION_ID, or unset it: it is found"},
	[FAULT_APP_ENTERPRISE] = {"app_enterprise", XC_CONFIG,
				  "a GitHub App cannot manage an enterprise's runners",
				  "use ACCESS_TOKEN with manage_runners:enterprise, or an "
				  "organisation's URL"},
	[FAULT_APP_RIGHT] = {"app_right", XC_DENIED, "the App has no right to manage runners here",
			     "give it \"Self-hosted runners: write\" (organisation) or "
			     "\"Administration: write\" (repository), and accept the change"},
	[FAULT_PAT_BAD] = {"pat_invalid", XC_DENIED, "GitHub does not know ACCESS_TOKEN",
			   "it is mistyped, revoked or expired: make a new one"},
	[FAULT_PAT_RIGHT] = {"pat_right", XC_DENIED,
			     "ACCESS_TOKEN has no right to manage runners here, or RUNNER_URL "
			     "does not exist",
			     "it needs repo (repository), admin:org (organisation) or "
			     "manage_runners:enterprise; check RUNNER_URL too"},
	[FAULT_TOKEN_EXPIRED] = {"token_expired", XC_DENIED,
				 "RUNNER_TOKEN is older than the hour that it lives",
				 "make a new one, or use ACCESS_TOKEN or a GitHub App"},
	[FAULT_VERSION_LIKELY] = {"version_likely", XC_VERSION,
				  "this runner is below " GH_VERSION_FLOOR
				  ", which GitHub refuses with 404",
				  "rebuild the image with a newer runner (build argument "
				  "RUNNER_VERSION)"},
	[FAULT_TOKEN_OTHER] =
		{"token_refused", XC_DENIED,
		 "RUNNER_TOKEN is not valid for RUNNER_URL: expired (1 hour), used for "
		 "another repository, organisation or host than it was made for, or "
		 "RUNNER_URL is mistyped",
		 "make a token on the page of exactly this URL, or use ACCESS_TOKEN or a "
		 "GitHub App"},
	[FAULT_MINTED_REFUSED] =
		{"minted_refused", XC_DENIED,
		 "GitHub refused a token that it had just given for this very URL",
		 "the runner may be too old (build argument RUNNER_VERSION), or the "
		 "owner's policy forbids self-hosted runners"},
	[FAULT_TENANT_DENIED] = {"tenant_denied", XC_DENIED,
				 "the Actions service does not accept the bearer that it was given",
				 "make a new token; on GHES check that Actions is set up"},
	[FAULT_AGENT_GONE] = {"registration_gone", XC_AGAIN,
			      "the runner's own credential is not known any more",
			      "nothing: the registration is gone"},
	[FAULT_INVALID] = {"invalid", XC_CONFIG, "GitHub refuses the values that were sent",
			   "check RUNNER_NAME, RUNNER_LABELS and RUNNER_GROUP against the answer"},
	[FAULT_GONE] = {"not_found", XC_PROTOCOL, "GitHub does not find it",
			"check RUNNER_URL and the credential"},
	[FAULT_OTHER] = {"unexpected", XC_PROTOCOL, "an answer that is not the protocol",
			 "see the answer; report it if init should know it"},
};

static const struct {
	const char *name, *event;
} steps[STEP__MAX] = {
	[STEP_APP_FIND] = {"finding the App's installation", "app_installation"},
	[STEP_APP_TOKEN] = {"installation token", "app_token"},
	[STEP_TOKEN] = {"registration token", "registration_token"},
	[STEP_REMOVE_TOKEN] = {"remove token", "remove_token"},
	[STEP_AUTH] = {"authentication", "auth"},
	[STEP_AUTH_REMOVE] = {"authentication to remove", "auth_remove"},
	[STEP_ROUTES] = {"routes", "routes"},
	[STEP_GROUPS] = {"groups", "groups"},
	[STEP_LOOKUP] = {"look-up", "lookup"},
	[STEP_ADD] = {"register", "register"},
	[STEP_JIT] = {"generate JIT configuration", "jit"},
	[STEP_DELETE] = {"delete", "delete"},
	[STEP_OAUTH] = {"the agent's token", "agent_token"},
	[STEP_SESSION] = {"end of the session", "end_session"},
};

static const char *const creds[CRED__MAX] = {
	[CRED_NONE] = "no credential",
	[CRED_TOKEN] = "RUNNER_TOKEN",
	[CRED_MINTED] = "a token minted just now",
	[CRED_PAT] = "the PAT",
	[CRED_APP_JWT] = "the App",
	[CRED_APP] = "the App's installation",
	[CRED_TENANT] = "the tenant's bearer",
	[CRED_AGENT] = "the agent's own key",
};

const struct gh_fault_text *gh_fault_text(enum gh_fault f)
{
	return &texts[f];
}

const char *gh_step_name(enum gh_step s)
{
	return steps[s].name;
}

const char *gh_step_event(enum gh_step s)
{
	return steps[s].event;
}

const char *gh_cred_name(enum gh_cred c)
{
	return creds[c];
}

/* ---- evidence ------------------------------------------------------------------------------- */

static bool says(const struct gh_evidence *v, const char *word)
{
	return strcasestr(v->message, word) != NULL;
}

static bool next_number(const char **s, uint64_t *out)
{
	*out = 0;
	if (**s < '0' || **s > '9')
		return false;
	while (**s >= '0' && **s <= '9' && *out < 1000000000)
		*out = *out * 10 + (uint64_t)(*(*s)++ - '0');
	if (**s == '.')
		(*s)++;
	return true;
}

bool gh_version_less(const char *a, const char *b)
{
	uint64_t x, y;
	bool more_a, more_b;

	do {
		more_a = next_number(&a, &x);
		more_b = next_number(&b, &y);
		if (x != y)
			return x < y;
	} while (more_a || more_b);
	return false;
}

static bool clock_off(const struct gh_evidence *v)
{
	return v->skew_ms > SKEW_MAX || v->skew_ms < -SKEW_MAX || says(v, "Current server time is");
}

static bool rate(const struct gh_evidence *v)
{
	return v->status == 429 || v->rate_limited || says(v, "rate limit") ||
	       says(v, "abuse detection") || (v->json && v->retry_after_ms >= 0);
}

static bool old_version(const struct gh_evidence *v)
{
	return says(v, "version") && says(v, "runner") &&
	       (says(v, "deprecated") || says(v, "out of date") || says(v, "minimum") ||
		says(v, "too old") || says(v, "outdated") || says(v, "no longer supported"));
}

static bool page(const struct gh_evidence *v)
{
	return v->html && !v->json;
}

static bool not_github(const struct gh_evidence *v)
{
	return !v->hosted && !v->json &&
	       (v->step == STEP_AUTH || v->step == STEP_TOKEN || v->step == STEP_APP_FIND);
}

static bool sso(const struct gh_evidence *v)
{
	return says(v, "SAML") || says(v, "single sign-on");
}

static bool ip_list(const struct gh_evidence *v)
{
	return says(v, "IP allow list");
}

static bool limit(const struct gh_evidence *v)
{
	return says(v, "limit") && says(v, "runner") && !says(v, "rate");
}

static bool busy(const struct gh_evidence *v)
{
	return v->status == 422 || says(v, "running a job");
}

static bool taken(const struct gh_evidence *v)
{
	return v->status == 409 || strcmp(v->type_key, "TaskAgentExistsException") == 0;
}

static bool pool(const struct gh_evidence *v)
{
	return v->step == STEP_JIT || strcmp(v->type_key, "TaskAgentPoolNotFoundException") == 0 ||
	       (v->status == 422 && says(v, "group"));
}

static bool labels(const struct gh_evidence *v)
{
	return says(v, "label");
}

static bool suspended(const struct gh_evidence *v)
{
	return says(v, "suspended");
}

static bool expired(const struct gh_evidence *v)
{
	return v->cred_age_ms >= HOUR_MS;
}

static bool below_floor(const struct gh_evidence *v)
{
	return v->hosted && gh_version_less(v->agent_version, GH_VERSION_FLOOR);
}

static bool enterprise(const struct gh_evidence *v)
{
	return says(v, "enterprise");
}

/* ---- the rules ------------------------------------------------------------------------------ */

#define S(step) (1u << (step))
#define ANY	(~0u)
#define MINTING                                                                                    \
	(S(STEP_TOKEN) | S(STEP_REMOVE_TOKEN) | S(STEP_JIT) | S(STEP_DELETE) | S(STEP_LOOKUP) |    \
	 S(STEP_GROUPS))
#define ADDING (S(STEP_ADD) | S(STEP_JIT))
#define APP    (S(STEP_APP_FIND) | S(STEP_APP_TOKEN))

/* The first rule whose every part holds decides. Status 0: any; 400 to 500 in hundreds stand for
 * themselves, 5 and 3 for the class. */
static const struct rule {
	unsigned steps;
	int status;
	int cred;				   /* enum gh_cred, -1: any */
	bool (*when)(const struct gh_evidence *v); /* NULL: always */
	enum gh_fault fault;
} rules[] = {
	{ANY, 400, -1, clock_off, FAULT_CLOCK},
	{ANY, 401, -1, clock_off, FAULT_CLOCK},
	{ANY, 5, -1, NULL, FAULT_SERVER},
	{ANY, 3, -1, NULL, FAULT_MOVED},
	{ANY, 429, -1, NULL, FAULT_RATE},
	{ANY, 403, -1, rate, FAULT_RATE},
	{ANY, 0, -1, old_version, FAULT_VERSION},
	{ANY, 0, -1, page, FAULT_PROXY_PAGE},
	{ANY, 404, -1, not_github, FAULT_WRONG_HOST},
	{ANY, 405, -1, not_github, FAULT_WRONG_HOST},
	{ANY, 403, -1, sso, FAULT_SSO},
	{ANY, 403, -1, ip_list, FAULT_IP_LIST},
	{ADDING, 0, -1, limit, FAULT_LIMIT},
	{S(STEP_DELETE), 0, -1, busy, FAULT_BUSY},
	{ADDING, 0, -1, taken, FAULT_NAME_TAKEN},
	{ADDING, 422, -1, labels, FAULT_LABELS},
	{ADDING, 404, -1, pool, FAULT_GROUP},
	{ADDING, 422, -1, pool, FAULT_GROUP},
	{ANY, 0, CRED_APP_JWT, suspended, FAULT_APP_SUSPENDED},
	{ANY, 401, CRED_APP_JWT, NULL, FAULT_APP_KEY},
	{S(STEP_APP_FIND), 404, -1, NULL, FAULT_APP_NOT_INSTALLED},
	{S(STEP_APP_TOKEN), 404, -1, NULL, FAULT_APP_INSTALLATION},
	{APP, 403, -1, NULL, FAULT_APP_RIGHT},
	{MINTING, 0, CRED_APP, enterprise, FAULT_APP_ENTERPRISE},
	{MINTING, 403, CRED_APP, NULL, FAULT_APP_RIGHT},
	{MINTING, 404, CRED_APP, NULL, FAULT_APP_RIGHT},
	{ANY, 401, CRED_PAT, NULL, FAULT_PAT_BAD},
	{MINTING, 403, CRED_PAT, NULL, FAULT_PAT_RIGHT},
	{MINTING, 404, CRED_PAT, NULL, FAULT_PAT_RIGHT},
	{ANY, 401, CRED_TOKEN, expired, FAULT_TOKEN_EXPIRED},
	{ANY, 403, CRED_TOKEN, expired, FAULT_TOKEN_EXPIRED},
	{ANY, 404, CRED_TOKEN, expired, FAULT_TOKEN_EXPIRED},
	{S(STEP_AUTH), 404, -1, below_floor, FAULT_VERSION_LIKELY},
	{ANY, 401, CRED_TOKEN, NULL, FAULT_TOKEN_OTHER},
	{ANY, 403, CRED_TOKEN, NULL, FAULT_TOKEN_OTHER},
	{ANY, 404, CRED_TOKEN, NULL, FAULT_TOKEN_OTHER},
	{ANY, 401, CRED_MINTED, NULL, FAULT_MINTED_REFUSED},
	{ANY, 403, CRED_MINTED, NULL, FAULT_MINTED_REFUSED},
	{ANY, 404, CRED_MINTED, NULL, FAULT_MINTED_REFUSED},
	{ANY, 401, CRED_TENANT, NULL, FAULT_TENANT_DENIED},
	{ANY, 403, CRED_TENANT, NULL, FAULT_TENANT_DENIED},
	{S(STEP_OAUTH), 400, -1, NULL, FAULT_AGENT_GONE},
	{ANY, 401, CRED_AGENT, NULL, FAULT_AGENT_GONE},
	{ANY, 422, -1, NULL, FAULT_INVALID},
	{ADDING, 400, -1, NULL, FAULT_INVALID},
	{ANY, 404, -1, NULL, FAULT_GONE},
};

static bool status_fits(int rule, int status)
{
	return rule == 0 || (rule < 10 ? status / 100 == rule : status == rule);
}

enum gh_fault gh_diagnose(const struct gh_evidence *v)
{
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		const struct rule *r = &rules[i];
		if ((r->steps & S(v->step)) != 0 && status_fits(r->status, v->status) &&
		    (r->cred < 0 || r->cred == (int)v->cred) && (r->when == NULL || r->when(v)))
			return r->fault;
	}
	return FAULT_OTHER;
}
