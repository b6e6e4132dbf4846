/*
 * Ending the broker session of an agent that had to be killed, with the agent's own key: token
 * exchange as actions/runner, src/Sdk/WebApi/WebApi/OAuth does it, then DELETE session as
 * BrokerHttpClient.cs.
 */
#include "base/log.h"
#include "base/str.h"
#include "gh/files.h"
#include "gh/json.h"
#include "gh/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define FORM_MAX 8192

static int random_uuid(char *dst, size_t size, struct err *e)
{
	unsigned char r[16];

	if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
		return err_set(e, XC_SYSTEM, errno, "getrandom");
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	return str_fmt(dst, size,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0],
		       r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12],
		       r[13], r[14], r[15]);
}

static int claims(struct buf *b, const struct gh_runner *r, struct err *e)
{
	int64_t now = clock_real_ms() / 1000;
	struct json_out o;
	char jti[40];

	if (random_uuid(jti, sizeof jti, e) < 0)
		return -1;
	jo_begin(&o, b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "iss", r->client_id);
	jo_str(&o, "sub", r->client_id);
	jo_str(&o, "aud", r->auth_url);
	jo_str(&o, "jti", jti);
	jo_u64(&o, "nbf", (uint64_t)now);
	jo_u64(&o, "exp", (uint64_t)now + 300);
	jo_close(&o, '}');
	return jo_end(&o) < 0 ? err_set(e, XC_SYSTEM, 0, "no memory for a JWT") : 0;
}

static int form(struct buf *b, const struct gh_runner *r, struct err *e)
{
	cleanup_buf struct buf text = {0};
	struct key_parts parts;
	struct key *k = NULL;
	int rc;

	buf_init(&text, FORM_MAX);
	memset(&parts, 0, sizeof parts);
	rc = claims(&text, r, e);
	if (rc == 0)
		rc = files_key(r, &parts, e);
	if (rc == 0)
		k = key_from_parts(&parts, e);
	explicit_bzero(&parts, sizeof parts);
	if (k == NULL)
		return -1;
	if (buf_puts(b, "grant_type=client_credentials&client_assertion_type="
			"urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
			"&client_assertion=") < 0)
		rc = err_set(e, XC_SYSTEM, errno, "no memory for a request");
	else
		rc = key_sign_jwt(k, r->fips ? KEY_PS256 : KEY_RS256, buf_str(&text), b, e);
	key_free(k);
	return rc;
}

static int agent_token(struct gh *g, const struct gh_runner *r, struct deadline d,
		       struct secret *out, struct err *e)
{
	struct wire_call c = {.step = STEP_OAUTH,
			      .style = WIRE_FORM,
			      .method = "POST",
			      .cred_kind = CRED_AGENT,
			      .cred_age_ms = -1,
			      .retry = NET_IDEMPOTENT,
			      .quiet = true};
	cleanup_buf struct buf body = {0};
	struct net_response resp;
	struct json_at at;
	struct json j;
	int rc;

	buf_init(&body, FORM_MAX);
	if (url_parse(r->auth_url, &c.url, e) < 0)
		return -1;
	if (!c.url.tls)
		return err_set(e, XC_PROTOCOL, 0, "the agent's authorization URL is not https");
	c.body = &body;
	if (form(&body, r, e) < 0 || wire_ask(g, &c, d, &resp, NULL, e) < 0)
		return -1;
	rc = json_parse(&j, resp.body.data, resp.body.len, JSON_STRICT, "the agent's token", &at,
			e);
	if (rc == 0 && json_secret(&at, "access_token", JSON_REQUIRED, out, e) < 0)
		rc = -1;
	json_free(&j);
	net_response_free(&resp);
	return rc;
}

/* Relative resolution, as .NET does it: what follows the last slash of the base is replaced. */
static int session_url(const char *base, struct url *out, struct err *e)
{
	char *query, *last;

	if (url_parse(base, out, e) < 0)
		return -1;
	if (!out->tls)
		return err_set(e, XC_PROTOCOL, 0, "the broker's URL is not https");
	query = strchr(out->path, '?');
	if (query != NULL)
		*query = 0;
	last = strrchr(out->path, '/');
	if (last == NULL ||
	    str_copy(last + 1, sizeof out->path - (size_t)(last + 1 - out->path), "session") < 0)
		return err_set(e, XC_PROTOCOL, 0, "the broker's URL is too long");
	return 0;
}

int gh_end_session(struct gh *g, const struct gh_runner *r, struct deadline d, struct err *e)
{
	struct wire_call c = {.step = STEP_SESSION,
			      .style = WIRE_BEARER,
			      .method = "DELETE",
			      .cred_kind = CRED_AGENT,
			      .cred_age_ms = -1,
			      .retry = NET_IDEMPOTENT,
			      .quiet = true};
	struct secret token = {.len = 0};
	struct net_response resp;
	int rc;

	if (r->server_v2[0] == 0)
		return err_set(e, XC_CONFIG, 0,
			       "this runner has no broker: its session ends by itself");
	if (session_url(r->server_v2, &c.url, e) < 0)
		return -1;
	rc = agent_token(g, r, d, &token, e);
	c.cred = &token;
	if (rc == 0)
		rc = wire_ask(g, &c, d, &resp, NULL, e);
	secret_wipe(&token);
	if (rc < 0)
		return -1;
	net_response_free(&resp);
	log_event(LL_INFO, "session_ended", LOG_FIELDS(LOG_NUM("id", r->id)),
		  "the session of runner %llu was ended with its own key",
		  (unsigned long long)r->id);
	return 0;
}
