#include "gh/wire.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

#define AUTH_MAX    (SECRET_MAX + 32)
#define HEADERS_MAX 6

struct headers {
	struct net_header h[HEADERS_MAX];
	size_t n;
	struct secret auth_value; /* scheme and credential */
	char accept[96], content_type[96];
};

static void put(struct headers *h, const char *name, const char *value)
{
	if (h->n < HEADERS_MAX)
		h->h[h->n++] = (struct net_header){name, value};
}

static int authorize(struct headers *h, const char *scheme, const struct secret *cred,
		     struct err *e)
{
	size_t k = strlen(scheme);

	if (k + cred->len >= sizeof h->auth_value.bytes)
		return err_set(e, XC_CONFIG, 0, "the credential is too long");
	memcpy(h->auth_value.bytes, scheme, k);
	memcpy(h->auth_value.bytes + k, secret_reveal(cred), cred->len + 1);
	h->auth_value.len = k + cred->len;
	put(h, "Authorization", h->auth_value.bytes);
	return 0;
}

/* Media types: registration.md names actions/runner, RunnerDotcomServer.cs (admin: no Accept),
 * VssHttpClientBase.cs (version inside the media type), and GitHub's REST documentation. */
static int dress(struct headers *h, const struct wire_call *c, struct err *e)
{
	bool body = c->body != NULL;

	if (c->cred != NULL &&
	    authorize(h, c->style == WIRE_ADMIN ? "RemoteAuth " : "Bearer ", c->cred, e) < 0)
		return -1;
	switch (c->style) {
	case WIRE_ADMIN:
		if (body)
			put(h, "Content-Type", "application/json; charset=utf-8");
		break;
	case WIRE_V1:
		if (c->api_version == NULL) {
			put(h, "Accept", "application/json");
		} else {
			(void)str_fmt(h->accept, sizeof h->accept,
				      "application/json; api-version=%s", c->api_version);
			put(h, "Accept", h->accept);
		}
		/* A failure is then a 401 rather than a redirect to a login page. */
		put(h, "X-TFS-FedAuthRedirect", "Suppress");
		if (!body)
			break;
		(void)str_fmt(h->content_type, sizeof h->content_type,
			      "application/json; charset=utf-8; api-version=%s", c->api_version);
		put(h, "Content-Type", h->content_type);
		break;
	case WIRE_REST:
		put(h, "Accept", "application/vnd.github+json");
		put(h, "X-GitHub-Api-Version", "2022-11-28");
		if (body)
			put(h, "Content-Type", "application/json");
		break;
	case WIRE_FORM:
		put(h, "Accept", "application/json");
		put(h, "Content-Type", "application/x-www-form-urlencoded");
		break;
	case WIRE_BEARER:
	case WIRE__MAX:
		break;
	}
	return 0;
}

static void note_retry(void *arg, const char *what, int attempt, int64_t wait_ms)
{
	const struct wire_call *c = arg;
	const char *step = gh_step_event(c->step);

	log_event(LL_WARN, "retry",
		  LOG_FIELDS(LOG_STR("step", step), LOG_NUM("attempt", attempt),
			     LOG_NUM("wait_ms", wait_ms)),
		  "%s: %s; try %d comes in %lld.%03lld s", gh_step_name(c->step), what, attempt + 1,
		  (long long)(wait_ms / 1000), (long long)(wait_ms % 1000));
}

static int64_t skew_ms(const struct net_response *r)
{
	return r->date_ms < 0 ? 0 : clock_real_ms() - r->date_ms;
}

static void tell_step(const struct wire_call *c, const struct net_response *r)
{
	log_event(LL_DEBUG, gh_step_event(c->step),
		  LOG_FIELDS(LOG_NUM("status", r->status), LOG_NUM("ms", r->ms),
			     LOG_STR("host", c->url.host), LOG_STR("request_id", r->request_id)),
		  "%s: %s on %s: %d in %lld ms", gh_step_name(c->step), c->method, c->url.host,
		  r->status, (long long)r->ms);
}

int wire_send(struct gh *g, const struct wire_call *c, struct deadline d, struct net_response *r,
	      struct net_failure *f, struct err *e)
{
	struct headers h;
	struct net_request q = {0};
	struct wire_call copy = *c;
	int rc;

	memset(&h, 0, sizeof h);
	if (f != NULL)
		memset(f, 0, sizeof *f);
	rc = dress(&h, c, e);
	if (rc == 0) {
		q.method = c->method;
		q.url = &c->url;
		q.headers = h.h;
		q.n_headers = h.n;
		q.body = c->body != NULL ? c->body->data : NULL;
		q.body_len = c->body != NULL ? c->body->len : 0;
		/* A wrong clock ends a registration before it begins; whatever was added or has to
		 * be removed is dealt with all the same. */
		q.any_clock = c->step != STEP_TOKEN && c->step != STEP_AUTH;
		rc = net_call(g->net, &q, c->retry, d, note_retry, &copy, r, f, e);
		if (rc < 0)
			err_prefix(e, "%s", gh_step_name(c->step));
	}
	explicit_bzero(&h, sizeof h);
	if (rc == 0)
		tell_step(c, r);
	return rc;
}

int wire_ask(struct gh *g, const struct wire_call *c, struct deadline d, struct net_response *r,
	     int *status, struct err *e)
{
	if (status != NULL)
		*status = 0;
	if (wire_send(g, c, d, r, NULL, e) < 0)
		return -1;
	if (status != NULL)
		*status = r->status;
	if (wire_ok(r))
		return 0;
	wire_refused(g, c, r, e);
	net_response_free(r);
	return -1;
}

static void gather(const struct gh *g, const struct wire_call *c, const struct net_response *r,
		   const char *message, const char *type_key, struct gh_evidence *v)
{
	size_t i = 0;

	while (i < r->body.len && strchr(" \t\r\n", r->body.data[i]) != NULL)
		i++;
	*v = (struct gh_evidence){
		.step = c->step,
		.status = r->status,
		.message = message,
		.type_key = type_key,
		.html = strcasestr(r->content_type, "html") != NULL ||
			(i < r->body.len && r->body.data[i] == '<'),
		.json = i < r->body.len && (r->body.data[i] == '{' || r->body.data[i] == '['),
		.rate_limited = r->rate_limited,
		.retry_after_ms = r->retry_after_ms,
		.skew_ms = skew_ms(r),
		.cred = c->cred_kind,
		.cred_age_ms = c->cred_age_ms,
		.hosted = g->s->scope.hosted,
		.repo = g->s->scope.kind == GH_REPO,
		.agent_version = g->s->agent_version,
	};
}

/* Age of the token in words; "" when not known. */
static void age_text(const struct wire_call *c, char *dst, size_t size)
{
	if (c->cred_age_ms < 0)
		dst[0] = 0;
	else
		(void)str_fmt(dst, size, ", known for %lld min",
			      (long long)(c->cred_age_ms / 60000));
}

/* An answer that repeats the credential must not carry it into the log, nor its first half where
 * the text was cut. */
static void hide(char *text, const struct secret *cred)
{
	size_t n = cred == NULL ? 0 : cred->len, len;
	const char *word = n == 0 ? "" : secret_reveal(cred);
	char *at;

	if (n < 8)
		return;
	while ((at = strstr(text, word)) != NULL) {
		memmove(at + 3, at + n, strlen(at + n) + 1);
		memcpy(at, "***", 3);
	}
	len = strlen(text);
	for (size_t k = n - 1; k >= 4; k--) {
		/* str_show ends a cut text with dots */
		size_t dots = len >= 3 && memcmp(text + len - 3, "...", 3) == 0 ? 3 : 0;
		if (k + dots > len || memcmp(text + len - dots - k, word, k) != 0)
			continue;
		memcpy(text + len - dots - k, "***", 4);
		return;
	}
}

int wire_refused(struct gh *g, const struct wire_call *c, const struct net_response *r,
		 struct err *e)
{
	char message[400], type_key[96], age[48] = "";
	const struct gh_fault_text *t;
	struct gh_evidence v;
	bool quiet = c->quiet || c->quiet_for == r->status;
	enum log_level level = quiet ? LL_DEBUG : LL_WARN;

	answer_message(r->body.data != NULL ? r->body.data : (const unsigned char *)"", r->body.len,
		       message, sizeof message, type_key, sizeof type_key);
	hide(message, c->cred);
	gather(g, c, r, message, type_key, &v);
	t = gh_fault_text(gh_diagnose(&v));
	age_text(c, age, sizeof age);
	log_event(level, "refused",
		  LOG_FIELDS(LOG_STR("fault", t->id), LOG_NUM("status", r->status)), "verdict: %s",
		  t->verdict);
	log_event(level, "remedy", LOG_FIELDS(LOG_STR("fault", t->id)), "remedy: %s", t->remedy);
	log_event(
		level, "evidence",
		LOG_FIELDS(LOG_STR("step", gh_step_event(c->step)), LOG_NUM("status", r->status),
			   LOG_STR("request_id", r->request_id), LOG_STR("host", c->url.host)),
		"evidence: %s (%s on %s, with %s%s, runner %s): HTTP %d, request id %s, answer: %s",
		gh_step_name(c->step), c->method, c->url.host, gh_cred_name(c->cred_kind), age,
		g->s->agent_version, r->status, r->request_id[0] != 0 ? r->request_id : "none",
		message[0] != 0 ? message : "(empty)");
	return err_set(e, t->code, 0, "%s: %s (HTTP %d, request id %s): %s", gh_step_name(c->step),
		       t->verdict, r->status, r->request_id[0] != 0 ? r->request_id : "none",
		       t->remedy);
}

int wire_api(const struct gh *g, const char *path, struct url *out, struct err *e)
{
	if (url_join(&g->s->scope.api, path, out) < 0)
		return err_set(e, XC_CONFIG, 0, "RUNNER_URL is too long");
	return 0;
}

int wire_entity(const struct gh *g, const char *path, struct url *out, struct err *e)
{
	char rest[1024];

	if (str_fmt(rest, sizeof rest, "%s%s", g->s->scope.entity, path) < 0)
		return err_set(e, XC_CONFIG, 0, "RUNNER_URL is too long");
	return wire_api(g, rest, out, e);
}
