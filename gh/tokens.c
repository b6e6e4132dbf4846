/*
 * From the credentials of the configuration to the token of a request. Endpoints: GitHub's REST
 * documentation; the App's way as actions/scaleset (client.go) and actions-runner-controller
 * (github/github.go) go it.
 */
#include "gh/wire.h"

#include "base/log.h"
#include "base/str.h"
#include "gh/key.h"
#include "gh/rest.h"

#include <string.h>

#define HOUR_MS	      3600000
#define EARLY_MS      300000 /* a token is renewed this long before it expires */
#define JWT_BACK_S    60     /* clocks differ */
#define JWT_LIFE_S    540    /* GitHub allows 600 from iat */
#define INSTALL_PAGES 100    /* of 100 installations */
#define JWT_MAX	      4096

bool tokens_have_rest(const struct gh_settings *s)
{
	return secret_present(&s->cred.pat) || secret_present(&s->cred.app_key);
}

bool gh_can_remove(const struct gh_settings *s)
{
	if (s->have_scope && tokens_have_rest(s))
		return true;
	return secret_present(&s->cred.token) && clock_real_ms() - s->cred.token_at_ms < HOUR_MS;
}

/* An App cannot manage an enterprise's runners, so there the PAT goes first. */
static bool use_app(const struct gh_settings *s)
{
	return secret_present(&s->cred.app_key) &&
	       !(s->scope.kind == GH_ENTERPRISE && secret_present(&s->cred.pat));
}

/* ---- the App -------------------------------------------------------------------------------- */

static int app_jwt(const struct gh_settings *s, struct secret *out, struct err *e)
{
	int64_t now = clock_real_ms() / 1000;
	cleanup_buf struct buf jwt = {0};
	struct key *k = key_from_pem(&s->cred.app_key, e);
	char claims[256];
	int rc;

	if (k == NULL)
		return -1;
	buf_init(&jwt, JWT_MAX);
	rc = str_fmt(claims, sizeof claims, "{\"iat\":%lld,\"exp\":%lld,\"iss\":\"%s\"}",
		     (long long)(now - JWT_BACK_S), (long long)(now - JWT_BACK_S + JWT_LIFE_S),
		     s->cred.app_id);
	if (rc < 0 || strpbrk(s->cred.app_id, "\"\\") != NULL)
		rc = err_set(e, XC_CONFIG, 0, "APP_ID is neither an App id nor a client id");
	else
		rc = key_sign_jwt(k, KEY_RS256, claims, &jwt, e);
	key_free(k);
	if (rc == 0 && secret_set(out, buf_str(&jwt), jwt.len) < 0)
		rc = err_set(e, XC_BUG, 0, "JWT too long");
	return rc;
}

static struct wire_call app_call(const struct secret *jwt, enum gh_step step, const char *method)
{
	return (struct wire_call){.step = step,
				  .style = WIRE_REST,
				  .method = method,
				  .cred = jwt,
				  .cred_kind = CRED_APP_JWT,
				  .cred_age_ms = 0,
				  .retry = NET_IDEMPOTENT};
}

/* The owner of the scope: the part after /orgs/ or /repos/. */
static void owner_of(const struct gh_scope *scope, char *dst, size_t size)
{
	const char *p = strchr(scope->entity + 1, '/');
	size_t n = p != NULL ? strcspn(p + 1, "/") : 0;

	if (p == NULL || str_copyn(dst, size, p + 1, n) < 0)
		dst[0] = 0;
}

/* All installations, page by page. The next page is counted, never taken from the Link header, so
 * that the credential stays with its origin. */
static int search_installations(struct gh *g, const struct secret *jwt, struct deadline d,
				uint64_t *id, struct err *e)
{
	char owner[256], path[96], link[2048];
	struct net_response r;
	bool more = true;

	owner_of(&g->s->scope, owner, sizeof owner);
	for (unsigned page = 1; more && page <= INSTALL_PAGES; page++) {
		struct wire_call c = app_call(jwt, STEP_APP_FIND, "GET");
		int rc;
		(void)str_fmt(path, sizeof path, "/app/installations?per_page=100&page=%u", page);
		if (wire_api(g, path, &c.url, e) < 0 || wire_ask(g, &c, d, &r, NULL, e) < 0)
			return -1;
		rc = answer_installation(r.body.data, r.body.len, owner, id, e);
		more = net_header_get(&r, "Link", link, sizeof link) == 0 &&
		       strstr(link, "rel=\"next\"") != NULL;
		net_response_free(&r);
		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	return err_set(
		e, XC_DENIED, 0,
		"the App is not installed on \"%s\": install it there, or correct RUNNER_URL",
		owner);
}

static int find_installation(struct gh *g, const struct secret *jwt, struct deadline d,
			     uint64_t *id, struct err *e)
{
	struct wire_call c = app_call(jwt, STEP_APP_FIND, "GET");
	struct net_response r;
	int rc, status = 0;

	*id = g->s->cred.app_installation;
	if (*id != 0)
		return 0;
	if (g->s->scope.kind == GH_ENTERPRISE)
		return err_set(e, XC_CONFIG, 0, "%s: %s",
			       gh_fault_text(FAULT_APP_ENTERPRISE)->verdict,
			       gh_fault_text(FAULT_APP_ENTERPRISE)->remedy);
	if (wire_entity(g, "/installation", &c.url, e) < 0)
		return -1;
	c.quiet_for = 404;
	if (wire_ask(g, &c, d, &r, &status, e) < 0)
		return status == 404 ? search_installations(g, jwt, d, id, e) : -1;
	rc = answer_installation(r.body.data, r.body.len, "", id, e);
	net_response_free(&r);
	return rc < 0 ? -1 : 0;
}

static int fetch_app_token(struct gh *g, struct deadline d, struct err *e)
{
	struct answer_token t = {.expires_ms = 0};
	struct secret jwt = {.len = 0};
	struct wire_call c = app_call(&jwt, STEP_APP_TOKEN, "POST");
	struct net_response r;
	uint64_t id = 0;
	char path[96];
	int rc;

	rc = app_jwt(g->s, &jwt, e);
	if (rc == 0)
		rc = find_installation(g, &jwt, d, &id, e);
	(void)str_fmt(path, sizeof path, "/app/installations/%llu/access_tokens",
		      (unsigned long long)id);
	if (rc == 0)
		rc = wire_api(g, path, &c.url, e);
	if (rc == 0)
		rc = wire_ask(g, &c, d, &r, NULL, e);
	secret_wipe(&jwt);
	if (rc != 0)
		return -1;
	rc = answer_token(r.body.data, r.body.len, &t, e);
	net_response_free(&r);
	if (rc == 0) {
		g->rest = t.token;
		g->rest_until_ms = t.expires_ms;
		log_event(LL_INFO, "app_token",
			  LOG_FIELDS(LOG_NUM("installation", id),
				     LOG_NUM("expires_ms", t.expires_ms)),
			  "the App's installation %llu gave a token", (unsigned long long)id);
	}
	secret_wipe(&t.token);
	return rc;
}

/* ---- REST ----------------------------------------------------------------------------------- */

int tokens_rest(struct gh *g, struct deadline d, struct wire_call *c, struct err *e)
{
	c->style = WIRE_REST;
	c->cred_age_ms = -1;
	if (!use_app(g->s)) {
		c->cred = &g->s->cred.pat;
		c->cred_kind = CRED_PAT;
		return 0;
	}
	if (!secret_present(&g->rest) || clock_real_ms() + EARLY_MS >= g->rest_until_ms) {
		secret_wipe(&g->rest);
		if (fetch_app_token(g, d, e) < 0)
			return -1;
	}
	c->cred = &g->rest;
	c->cred_kind = CRED_APP;
	return 0;
}

/* A cached installation token may be refused before its time (revoked, clock). So it is tried once,
 * without the repetitions that a refusal otherwise gets, which a stop has no time for; then comes a
 * fresh token, or for other failures the same one, with the policy asked for. */
int rest_ask(struct gh *g, struct wire_call *c, struct deadline d, struct net_response *r,
	     int *status, struct err *e)
{
	bool cached = use_app(g->s) && secret_present(&g->rest), quiet = c->quiet;
	enum net_retry retry = c->retry;
	int got = 0, rc;

	if (cached) {
		c->quiet = true;
		c->retry = NET_ONCE;
	}
	rc = tokens_rest(g, d, c, e);
	if (rc == 0)
		rc = wire_ask(g, c, d, r, &got, e);
	c->quiet = quiet;
	c->retry = retry;
	if (rc < 0 && cached && (got == 401 || got == 0 || got == 429 || got >= 500)) {
		if (got == 401)
			secret_wipe(&g->rest);
		rc = tokens_rest(g, d, c, e);
		if (rc == 0)
			rc = wire_ask(g, c, d, r, &got, e);
	}
	if (status != NULL)
		*status = got;
	return rc;
}

/* ---- runner tokens -------------------------------------------------------------------------- */

static int mint(struct gh *g, bool removal, struct deadline d, struct err *e)
{
	struct wire_call c = {.step = removal ? STEP_REMOVE_TOKEN : STEP_TOKEN,
			      .method = "POST",
			      .retry = NET_IDEMPOTENT};
	struct answer_token t = {.expires_ms = 0};
	struct net_response r;
	int rc;

	if (wire_entity(g,
			removal ? "/actions/runners/remove-token"
				: "/actions/runners/registration-token",
			&c.url, e) < 0 ||
	    rest_ask(g, &c, d, &r, NULL, e) < 0)
		return -1;
	rc = answer_token(r.body.data, r.body.len, &t, e);
	net_response_free(&r);
	if (rc == 0) {
		g->minted = t.token;
		g->minted_until_ms = t.expires_ms;
		log_event(LL_INFO, gh_step_event(c.step),
			  LOG_FIELDS(LOG_NUM("expires_ms", t.expires_ms)), "%s minted with %s",
			  gh_step_name(c.step), gh_cred_name(c.cred_kind));
	}
	secret_wipe(&t.token);
	return rc;
}

const struct secret *tokens_runner(struct gh *g, bool removal, struct deadline d,
				   enum gh_cred *kind, int64_t *age_ms, struct err *e)
{
	const struct gh_credentials *c = &g->s->cred;

	if (tokens_have_rest(g->s)) {
		*kind = CRED_MINTED;
		*age_ms = 0;
		return mint(g, removal, d, e) < 0 ? NULL : &g->minted;
	}
	if (!secret_present(&c->token)) {
		err_set(e, XC_CONFIG, 0,
			"no credential: set RUNNER_TOKEN, ACCESS_TOKEN, or APP_ID and "
			"APP_PRIVATE_KEY");
		return NULL;
	}
	*kind = CRED_TOKEN;
	*age_ms = clock_real_ms() - c->token_at_ms;
	return &c->token;
}
