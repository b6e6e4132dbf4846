/*
 * Formats: actions/runner, src/Runner.Common/ConfigurationStore.cs, CredentialData.cs,
 * src/Runner.Listener/Configuration/IRSAKeyManager.cs. It writes a byte order mark and reads files
 * with and without; shells and jq read only those without, so none is written.
 */
#include "gh/files.h"

#include "base/str.h"
#include "gh/b64.h"
#include "gh/json.h"

#include <string.h>

static int add_file(struct gh_runner *r, const char *name, const struct buf *b, struct err *e)
{
	struct gh_file *f;

	if (r->n_files >= GH_FILES_MAX || b->len > GH_FILE_MAX)
		return err_set(e, XC_BUG, 0, "%s does not fit (%zu bytes)", name, b->len);
	f = &r->files[r->n_files];
	if (str_copy(f->name, sizeof f->name, name) < 0)
		return err_set(e, XC_BUG, 0, "file name too long");
	memcpy(f->data, b->data, b->len);
	f->len = (uint32_t)b->len;
	r->n_files++;
	return 0;
}

/* The members in the order that the official client writes them. */
struct part {
	const char *name;
	size_t at, bytes;
};
#define PART(json, field)                                                                          \
	{                                                                                          \
		json, offsetof(struct key_parts, field), sizeof(((struct key_parts *)0)->field)    \
	}
static const struct part parts[] = {
	PART("d", d),
	PART("dp", dp),
	PART("dq", dq),
	PART("exponent", exponent),
	PART("inverseQ", inverse_q),
	PART("modulus", modulus),
	PART("p", p),
	PART("q", q),
};
#define N_PARTS (sizeof parts / sizeof parts[0])

static int rsaparams(struct gh_runner *r, const struct key_parts *key, struct err *e)
{
	cleanup_buf struct buf b = {0}, one = {0};
	struct json_out o;

	buf_init(&b, GH_FILE_MAX);
	buf_init(&one, 512);
	jo_begin(&o, &b, true);
	jo_open(&o, NULL, '{');
	for (size_t i = 0; i < N_PARTS; i++) {
		buf_reset(&one);
		if (b64_encode(&one, B64_STD, (const unsigned char *)key + parts[i].at,
			       parts[i].bytes) < 0)
			return err_set(e, XC_SYSTEM, 0, ".credentials_rsaparams: no memory");
		jo_str(&o, parts[i].name, buf_str(&one));
	}
	jo_close(&o, '}');
	if (jo_end(&o) < 0)
		return err_set(e, XC_SYSTEM, 0, ".credentials_rsaparams: no memory");
	return add_file(r, ".credentials_rsaparams", &b, e);
}

static int credentials(struct gh_runner *r, const struct answer_agent *a, struct err *e)
{
	cleanup_buf struct buf b = {0};
	struct json_out o;

	buf_init(&b, GH_FILE_MAX);
	jo_begin(&o, &b, true);
	jo_open(&o, NULL, '{');
	jo_str(&o, "scheme", "OAuth");
	jo_open(&o, "data", '{');
	jo_str(&o, "clientId", a->client_id);
	jo_str(&o, "authorizationUrl", a->auth_url);
	/* The values are strings; absent would mean false, that is RS256. */
	jo_str(&o, "requireFipsCryptography", a->fips ? "True" : "False");
	if (a->migrate) {
		jo_str(&o, "enableAuthMigrationByDefault", "true");
		jo_str(&o, "authorizationUrlV2", a->auth_url_v2);
	}
	jo_close(&o, '}');
	jo_close(&o, '}');
	if (jo_end(&o) < 0)
		return err_set(e, XC_SYSTEM, 0, ".credentials: no memory");
	return add_file(r, ".credentials", &b, e);
}

static int settings(struct gh_runner *r, const struct gh_settings *s, const struct answer_agent *a,
		    struct err *e)
{
	cleanup_buf struct buf b = {0};
	struct json_out o;

	buf_init(&b, GH_FILE_MAX);
	jo_begin(&o, &b, true);
	jo_open(&o, NULL, '{');
	if (!s->scope.hosted)
		jo_bool(&o, "isHostedServer", false);
	jo_u64(&o, "agentId", r->id);
	jo_str(&o, "agentName", r->name);
	jo_u64(&o, "poolId", r->pool);
	jo_str(&o, "poolName", r->pool_name);
	if (s->disable_update)
		jo_bool(&o, "disableUpdate", true);
	if (s->ephemeral)
		jo_bool(&o, "ephemeral", true);
	if (r->tenant[0] != 0)
		jo_str(&o, "serverUrl", r->tenant);
	jo_str(&o, "gitHubUrl", s->scope.url);
	jo_str(&o, "workFolder", s->work);
	if (a->broker)
		jo_bool(&o, "useV2Flow", true);
	if (r->flow == GH_V2)
		jo_bool(&o, "useRunnerAdminFlow", true);
	if (a->server_v2[0] != 0)
		jo_str(&o, "serverUrlV2", a->server_v2);
	jo_close(&o, '}');
	if (jo_end(&o) < 0)
		return err_set(e, XC_SYSTEM, 0, ".runner: no memory");
	return add_file(r, ".runner", &b, e);
}

int files_build(struct gh_runner *r, const struct gh_settings *s, const struct answer_agent *a,
		const struct key_parts *key, struct err *e)
{
	r->n_files = 0;
	if (rsaparams(r, key, e) < 0 || credentials(r, a, e) < 0)
		return -1;
	return settings(r, s, a, e);
}

const struct gh_file *files_find(const struct gh_runner *r, const char *name)
{
	for (unsigned i = 0; i < r->n_files && i < GH_FILES_MAX; i++)
		if (strcmp(r->files[i].name, name) == 0)
			return &r->files[i];
	return NULL;
}

static int read_part(const struct json_at *at, const struct part *p, struct key_parts *out,
		     struct err *e)
{
	cleanup_buf struct buf raw = {0};
	char text[400] = "";

	buf_init(&raw, 300);
	if (json_str(at, p->name, JSON_REQUIRED, text, sizeof text, e) < 0)
		return -1;
	if (b64_decode(&raw, text, strlen(text)) < 0 || raw.len != p->bytes) {
		explicit_bzero(text, sizeof text);
		return err_set(e, XC_PROTOCOL, 0, ".credentials_rsaparams: \"%s\" is not %zu bytes",
			       p->name, p->bytes);
	}
	explicit_bzero(text, sizeof text);
	memcpy((unsigned char *)out + p->at, raw.data, p->bytes);
	return 0;
}

int files_key(const struct gh_runner *r, struct key_parts *out, struct err *e)
{
	const struct gh_file *f = files_find(r, ".credentials_rsaparams");
	struct json j = {NULL};
	struct json_at at;
	int rc = 0;

	if (f == NULL)
		return err_set(e, XC_PROTOCOL, 0, "no .credentials_rsaparams");
	if (json_parse(&j, f->data, f->len, JSON_STRICT, ".credentials_rsaparams", &at, e) < 0)
		return -1;
	for (size_t i = 0; i < N_PARTS && rc == 0; i++)
		rc = read_part(&at, &parts[i], out, e);
	json_free(&j);
	return rc;
}

static int jit_runner(struct gh_runner *r, struct err *e)
{
	const struct gh_file *f = files_find(r, ".runner");
	struct json j = {NULL};
	struct json_at at;
	int rc = -1;

	if (f == NULL)
		return err_set(e, XC_CONFIG, 0, "it holds no .runner");
	if (json_parse(&j, f->data, f->len, JSON_LOOSE, ".runner", &at, e) < 0)
		return -1;
	r->ephemeral = true; /* JIT runners always are */
	if (json_u64(&at, "agentId", JSON_REQUIRED, 1, UINT64_MAX, &r->id, e) >= 0 &&
	    json_str(&at, "agentName", JSON_REQUIRED, r->name, sizeof r->name, e) >= 0 &&
	    json_u64(&at, "poolId", JSON_OPTIONAL, 0, INT64_MAX, &r->pool, e) >= 0 &&
	    json_str(&at, "poolName", JSON_OPTIONAL, r->pool_name, sizeof r->pool_name, e) >= 0 &&
	    json_str(&at, "serverUrl", JSON_OPTIONAL, r->tenant, sizeof r->tenant, e) >= 0 &&
	    json_str(&at, "serverUrlV2", JSON_OPTIONAL, r->server_v2, sizeof r->server_v2, e) >=
		    0 &&
	    json_bool(&at, "ephemeral", JSON_OPTIONAL, &r->ephemeral, e) >= 0)
		rc = 0;
	json_free(&j);
	return rc;
}

static int jit_credentials(struct gh_runner *r, struct err *e)
{
	const struct gh_file *f = files_find(r, ".credentials");
	struct json_at at, data;
	struct json j = {NULL};
	char scheme[32] = "";
	int rc = -1;

	if (f == NULL)
		return err_set(e, XC_CONFIG, 0, "it holds no .credentials");
	if (json_parse(&j, f->data, f->len, JSON_LOOSE, ".credentials", &at, e) < 0)
		return -1;
	r->fips = false; /* absent means RS256 */
	if (json_str(&at, "scheme", JSON_REQUIRED, scheme, sizeof scheme, e) >= 0 &&
	    json_obj(&at, "data", JSON_REQUIRED, &data, e) >= 0 &&
	    json_str(&data, "clientId", JSON_REQUIRED, r->client_id, sizeof r->client_id, e) >= 0 &&
	    json_str(&data, "authorizationUrl", JSON_REQUIRED, r->auth_url, sizeof r->auth_url,
		     e) >= 0 &&
	    json_bool(&data, "requireFipsCryptography", JSON_OPTIONAL, &r->fips, e) >= 0)
		rc = 0;
	json_free(&j);
	return rc;
}

int files_read_jit(struct gh_runner *r, struct err *e)
{
	if (jit_runner(r, e) < 0 || jit_credentials(r, e) < 0) {
		if (e != NULL)
			e->code = XC_CONFIG; /* the configuration was given to us */
		return -1;
	}
	return 0;
}
