#include "gh/answer.h"

#include "base/str.h"
#include "gh/json.h"

#include <string.h>
#include <time.h>

#define ID_MAX UINT64_MAX

static void cleanup_json_fn(struct json *j)
{
	json_free(j);
}
#define cleanup_json __attribute__((cleanup(cleanup_json_fn)))

int answer_auth(const void *text, size_t len, struct answer_auth *out, struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct json_at at;
	char schema[64] = "";
	struct answer_auth a = {.v2 = false};

	if (json_parse(&j, text, len, JSON_STRICT, "answer to runner-registration", &at, e) < 0 ||
	    json_bool(&at, "use_v2_flow", JSON_OPTIONAL, &a.v2, e) < 0 ||
	    json_str(&at, "url", a.v2 ? JSON_OPTIONAL : JSON_REQUIRED, a.url, sizeof a.url, e) < 0)
		return -1;
	/* The runner-admin flow goes on with the token that it began with. */
	if (!a.v2 && (json_secret(&at, "token", JSON_REQUIRED, &a.token, e) < 0 ||
		      json_str(&at, "token_schema", JSON_REQUIRED, schema, sizeof schema, e) < 0))
		return -1;
	if (!a.v2 && !str_eq_nocase(schema, "OAuthAccessToken")) {
		secret_wipe(&a.token);
		return err_set(e, XC_PROTOCOL, 0,
			       "answer to runner-registration: token_schema \"%.40s\" is not known",
			       schema);
	}
	*out = a;
	secret_wipe(&a.token);
	return 0;
}

/* ---- groups --------------------------------------------------------------------------------- */

static const struct {
	const char *list, *is_default, *hosted;
} group_keys[DIALECT__MAX] = {
	[DIALECT_V1] = {"value", "isInternal", "isHosted"},
	[DIALECT_V2] = {"runner_groups", "default", "is_hosted"},
	[DIALECT_REST] = {"runner_groups", "default", "is_hosted"},
};

static void list_name(char *seen, size_t size, const char *name)
{
	size_t n = strlen(seen);
	char shown[80];

	str_show(shown, sizeof shown, name, strlen(name));
	(void)str_fmt(seen + n, size - n, "%s\"%s\"", n > 0 ? ", " : "", shown);
}

static int no_group(const char *want, const char *seen, bool repo, struct err *e)
{
	if (seen[0] == 0)
		return err_set(e, XC_CONFIG, 0,
			       "the token sees no runner group at all: RUNNER_URL and the "
			       "credential must be of the same owner");
	if (want[0] == 0)
		return err_set(e, XC_CONFIG, 0,
			       "no group is marked as the default one: set RUNNER_GROUP to one of "
			       "%s",
			       seen);
	if (repo)
		return err_set(e, XC_CONFIG, 0,
			       "runner group \"%.80s\" cannot be used with a repository URL: "
			       "repositories only have %s. Unset RUNNER_GROUP, or give the "
			       "organisation's URL",
			       want, seen);
	return err_set(e, XC_CONFIG, 0,
		       "no runner group \"%.80s\": the token sees %s. Set RUNNER_GROUP to one of "
		       "these, or unset it",
		       want, seen);
}

int answer_groups(const void *text, size_t len, enum dialect how, const char *want, bool repo,
		  struct answer_group *out, struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct json_cursor c = {0};
	struct json_at at, arr, g;
	char seen[600] = "";
	int rc;

	if (json_parse(&j, text, len, how == DIALECT_V1 ? JSON_LOOSE : JSON_STRICT,
		       "list of runner groups", &at, e) < 0 ||
	    json_arr(&at, group_keys[how].list, JSON_REQUIRED, &arr, e) < 0)
		return -1;
	while ((rc = json_each(&arr, &c, &g, e)) == 1) {
		struct answer_group one = {0};
		bool hosted = false;
		if (json_u64(&g, "id", JSON_REQUIRED, 0, INT64_MAX, &one.id, e) < 0 ||
		    json_str(&g, "name", JSON_REQUIRED, one.name, sizeof one.name, e) < 0 ||
		    json_bool(&g, group_keys[how].hosted, JSON_OPTIONAL, &hosted, e) < 0 ||
		    json_bool(&g, group_keys[how].is_default, JSON_OPTIONAL, &one.is_default, e) <
			    0)
			return -1;
		if (hosted)
			continue;
		list_name(seen, sizeof seen, one.name);
		if (want[0] == 0 ? one.is_default : str_eq_nocase(one.name, want)) {
			*out = one;
			return 0;
		}
	}
	return rc < 0 ? -1 : no_group(want, seen, repo, e);
}

/* ---- look-up -------------------------------------------------------------------------------- */

static int read_found(const struct json_at *r, enum dialect how, struct answer_found *one,
		      struct err *e)
{
	const char *group = how == DIALECT_V1 ? "runnerGroupId" : "runner_group_id";
	char status[32] = "";

	if (json_u64(r, "id", JSON_REQUIRED, 1, ID_MAX, &one->id, e) < 0 ||
	    json_u64(r, group, JSON_OPTIONAL, 0, INT64_MAX, &one->group, e) < 0)
		return -1;
	if (how != DIALECT_REST)
		return 0;
	if (json_str(r, "status", JSON_REQUIRED, status, sizeof status, e) < 0 ||
	    json_bool(r, "busy", JSON_REQUIRED, &one->busy, e) < 0)
		return -1;
	one->online = strcmp(status, "online") == 0;
	return 0;
}

int answer_lookup(const void *text, size_t len, enum dialect how, const char *name,
		  struct answer_found *out, struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct json_cursor c = {0};
	struct json_at at, arr, r;
	int rc;

	if (json_parse(&j, text, len, how == DIALECT_V1 ? JSON_LOOSE : JSON_STRICT,
		       "look-up of the runner's name", &at, e) < 0 ||
	    json_arr(&at, how == DIALECT_V1 ? "value" : "runners", JSON_REQUIRED, &arr, e) < 0)
		return -1;
	while ((rc = json_each(&arr, &c, &r, e)) == 1) {
		struct answer_found one = {0};
		char spelled[512] = "";
		if (json_str(&r, "name", JSON_REQUIRED, spelled, sizeof spelled, e) < 0)
			return -1;
		if (!str_eq_nocase(spelled, name))
			continue;
		if (read_found(&r, how, &one, e) < 0)
			return -1;
		(void)str_copy(one.name, sizeof one.name, spelled);
		*out = one;
		return 0;
	}
	if (rc == 0)
		memset(out, 0, sizeof *out);
	return rc;
}

int answer_runner(const void *text, size_t len, struct answer_found *out, struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct answer_found one = {0};
	struct json_at at;

	if (json_parse(&j, text, len, JSON_STRICT, "answer about a runner", &at, e) < 0 ||
	    json_str(&at, "name", JSON_REQUIRED, one.name, sizeof one.name, e) < 0 ||
	    read_found(&at, DIALECT_REST, &one, e) < 0)
		return -1;
	*out = one;
	return 0;
}

/* ---- the agent ------------------------------------------------------------------------------ */

/* To the lower-case form with dashes that .credentials holds. -1: no GUID, or the zero one. */
static int normal_guid(char *s)
{
	bool zero = true;

	if (strlen(s) != 36)
		return -1;
	for (size_t i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (s[i] != '-')
				return -1;
			continue;
		}
		if (s[i] >= 'A' && s[i] <= 'F')
			s[i] = (char)(s[i] - 'A' + 'a');
		if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
			return -1;
		zero = zero && s[i] == '0';
	}
	return zero ? -1 : 0;
}

static int need_https(const char *field, const char *text, struct err *e)
{
	struct err why = ERR_INIT;
	struct url u;

	if (url_parse(text, &u, &why) < 0)
		return err_set(e, XC_PROTOCOL, 0, "answer to register: field \"%s\" is no URL: %s",
			       field, why.text);
	if (!u.tls)
		return err_set(e, XC_PROTOCOL, 0,
			       "answer to register: field \"%s\" is not https (host %s)", field,
			       u.host);
	return 0;
}

static int check_agent(struct answer_agent *a, enum dialect how, struct err *e)
{
	if (normal_guid(a->client_id) < 0)
		return err_set(
			e, XC_PROTOCOL, 0, "answer to register: field \"%s\" is no client id",
			how == DIALECT_V1 ? "authorization.clientId" : "authorization.client_id");
	if (need_https("authorization URL", a->auth_url, e) < 0)
		return -1;
	if (a->auth_url_v2[0] != 0 && need_https("authorization URL V2", a->auth_url_v2, e) < 0)
		return -1;
	if (a->server_v2[0] != 0 && need_https("server URL V2", a->server_v2, e) < 0)
		return -1;
	if (a->broker && a->server_v2[0] == 0)
		return err_set(e, XC_PROTOCOL, 0,
			       "answer to register: UseV2Flow without ServerUrlV2");
	return 0;
}

/* actions/runner, src/Sdk/DTWebApi/WebApi/Runner.cs. */
static int read_v2(const struct json_at *at, struct answer_agent *a, struct err *e)
{
	char legacy[URL_TEXT_MAX] = "";
	struct json_at au;

	if (json_obj(at, "authorization", JSON_REQUIRED, &au, e) < 0 ||
	    json_str(&au, "client_id", JSON_REQUIRED, a->client_id, sizeof a->client_id, e) < 0 ||
	    json_str(&au, "authorization_url", JSON_REQUIRED, a->auth_url, sizeof a->auth_url, e) <
		    0 ||
	    json_str(&au, "server_url", JSON_REQUIRED, a->server_v2, sizeof a->server_v2, e) < 0 ||
	    json_str(&au, "legacy_authorization_url", JSON_OPTIONAL, legacy, sizeof legacy, e) < 0)
		return -1;
	if (legacy[0] != 0) {
		(void)str_copy(a->auth_url_v2, sizeof a->auth_url_v2, a->auth_url);
		(void)str_copy(a->auth_url, sizeof a->auth_url, legacy);
		a->migrate = true;
	}
	a->fips = true;
	a->broker = true;
	a->ephemeral = true;
	a->disable_update = true;
	return 0;
}

/* actions/runner, ConfigurationManager.cs; the properties' wrapping is seen in captures only. */
static int read_v1(const struct json_at *at, struct answer_agent *a, struct err *e)
{
	struct json_at au, props;
	int rc;

	a->fips = true;
	if (json_obj(at, "authorization", JSON_REQUIRED, &au, e) < 0 ||
	    json_str(&au, "clientId", JSON_REQUIRED, a->client_id, sizeof a->client_id, e) < 0 ||
	    json_str(&au, "authorizationUrl", JSON_REQUIRED, a->auth_url, sizeof a->auth_url, e) <
		    0 ||
	    json_u64(at, "runnerGroupId", JSON_OPTIONAL, 0, INT64_MAX, &a->group, e) < 0 ||
	    json_bool(at, "ephemeral", JSON_OPTIONAL, &a->ephemeral, e) < 0 ||
	    json_bool(at, "disableUpdate", JSON_OPTIONAL, &a->disable_update, e) < 0)
		return -1;
	rc = json_obj(at, "properties", JSON_OPTIONAL, &props, e);
	if (rc != 1)
		return rc;
	props.wrapped = true;
	if (json_bool(&props, "RequireFipsCryptography", JSON_OPTIONAL, &a->fips, e) < 0 ||
	    json_bool(&props, "UseV2Flow", JSON_OPTIONAL, &a->broker, e) < 0 ||
	    json_str(&props, "ServerUrlV2", JSON_OPTIONAL, a->server_v2, sizeof a->server_v2, e) <
		    0 ||
	    json_bool(&props, "EnableAuthMigrationByDefault", JSON_OPTIONAL, &a->migrate, e) < 0 ||
	    json_str(&props, "AuthorizationUrlV2", JSON_OPTIONAL, a->auth_url_v2,
		     sizeof a->auth_url_v2, e) < 0)
		return -1;
	a->migrate = a->migrate && a->auth_url_v2[0] != 0;
	return 0;
}

int answer_agent(const void *text, size_t len, enum dialect how, struct answer_agent *out,
		 struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct answer_agent a = {0};
	struct json_at at;
	int rc;

	if (json_parse(&j, text, len, how == DIALECT_V1 ? JSON_LOOSE : JSON_STRICT,
		       "answer to register", &at, e) < 0 ||
	    json_u64(&at, "id", JSON_REQUIRED, 1, ID_MAX, &a.id, e) < 0)
		return -1;
	rc = how == DIALECT_V1 ? read_v1(&at, &a, e) : read_v2(&at, &a, e);
	/* The id is told even when the rest is unusable: the runner exists and must be removed. */
	out->id = a.id;
	if (rc < 0 || check_agent(&a, how, e) < 0)
		return -1;
	*out = a;
	return 0;
}

/* ---- REST ----------------------------------------------------------------------------------- */

static int two(const char *s, int *out)
{
	if (s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9')
		return -1;
	*out = (s[0] - '0') * 10 + (s[1] - '0');
	return 0;
}

/* "Z", "+hh:mm" or "-hh:mm" to seconds east of UTC. */
static int zone(const char *s, int *east)
{
	int h, m;

	*east = 0;
	if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
		return 0;
	if ((s[0] != '+' && s[0] != '-') || strlen(s) != 6 || s[3] != ':' || two(s + 1, &h) < 0 ||
	    two(s + 4, &m) < 0 || h > 23 || m > 59)
		return -1;
	*east = (h * 60 + m) * 60 * (s[0] == '-' ? -1 : 1);
	return 0;
}

int answer_time(const char *s, int64_t *ms)
{
	struct tm t = {0};
	int hi, lo, east;
	time_t sec;

	if (strlen(s) < 20 || two(s, &hi) < 0 || two(s + 2, &lo) < 0 || s[4] != '-' ||
	    two(s + 5, &t.tm_mon) < 0 || s[7] != '-' || two(s + 8, &t.tm_mday) < 0 ||
	    (s[10] != 'T' && s[10] != 't' && s[10] != ' ') || two(s + 11, &t.tm_hour) < 0 ||
	    s[13] != ':' || two(s + 14, &t.tm_min) < 0 || s[16] != ':' ||
	    two(s + 17, &t.tm_sec) < 0)
		return -1;
	if (t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 || t.tm_hour > 23 ||
	    t.tm_min > 59 || t.tm_sec > 60)
		return -1;
	s += 19;
	if (*s == '.')
		do
			s++;
		while (*s >= '0' && *s <= '9');
	if (zone(s, &east) < 0)
		return -1;
	t.tm_year = hi * 100 + lo - 1900;
	t.tm_mon--;
	sec = timegm(&t);
	*ms = ((int64_t)sec - east) * 1000;
	return 0;
}

int answer_token(const void *text, size_t len, struct answer_token *out, struct err *e)
{
	cleanup_json struct json j = {NULL};
	char expires[64] = "";
	struct json_at at;

	if (json_parse(&j, text, len, JSON_STRICT, "answer with a token", &at, e) < 0 ||
	    json_str(&at, "expires_at", JSON_REQUIRED, expires, sizeof expires, e) < 0)
		return -1;
	if (answer_time(expires, &out->expires_ms) < 0)
		return err_set(e, XC_PROTOCOL, 0,
			       "answer with a token: field \"expires_at\" is no time");
	return json_secret(&at, "token", JSON_REQUIRED, &out->token, e) < 0 ? -1 : 0;
}

/* 1 when `at` is an installation on `login` ("": any) that is in force; 0 other; -1. */
static int installation(const struct json_at *at, const char *login, uint64_t *id, struct err *e)
{
	char name[256] = "", suspended[64] = "";
	struct json_at account;

	if (json_obj(at, "account", JSON_REQUIRED, &account, e) < 0 ||
	    json_str(&account, "login", JSON_OPTIONAL, name, sizeof name, e) < 0 ||
	    json_str(at, "suspended_at", JSON_OPTIONAL, suspended, sizeof suspended, e) < 0)
		return -1;
	if (login[0] != 0 && !str_eq_nocase(name, login))
		return 0;
	if (suspended[0] != 0)
		return err_set(e, XC_DENIED, 0,
			       "the App's installation on %s is suspended (since %s): lift that in "
			       "the organisation's settings",
			       name, suspended);
	return json_u64(at, "id", JSON_REQUIRED, 1, ID_MAX, id, e);
}

int answer_installation(const void *text, size_t len, const char *login, uint64_t *id,
			struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct json_cursor c = {0};
	struct json_at at, one;
	int rc;

	if (json_parse(&j, text, len, JSON_STRICT, "answer about the App's installation", &at, e) <
	    0)
		return -1;
	if (!json_is_array(&at))
		return installation(&at, "", id, e);
	while ((rc = json_each(&at, &c, &one, e)) == 1) {
		rc = installation(&one, login, id, e);
		if (rc != 0)
			return rc;
	}
	return rc;
}

int answer_jit(const void *text, size_t len, struct answer_jit *out, struct err *e)
{
	cleanup_json struct json j = {NULL};
	struct json_at at, r;

	if (json_parse(&j, text, len, JSON_STRICT, "answer to generate-jitconfig", &at, e) < 0 ||
	    json_obj(&at, "runner", JSON_REQUIRED, &r, e) < 0 ||
	    json_u64(&r, "id", JSON_REQUIRED, 1, ID_MAX, &out->id, e) < 0)
		return -1;
	out->group = 0;
	if (json_u64(&r, "runner_group_id", JSON_OPTIONAL, 0, INT64_MAX, &out->group, e) < 0)
		return -1;
	return json_secret(&at, "encoded_jit_config", JSON_REQUIRED, &out->config, e) < 0 ? -1 : 0;
}

void answer_message(const void *text, size_t len, char *dst, size_t size, char *type_key,
		    size_t key_size)
{
	cleanup_json struct json j = {NULL};
	char message[ERR_TEXT_MAX] = "";
	struct json_at at;

	type_key[0] = 0;
	if (json_parse(&j, text, len, JSON_LOOSE, "error", &at, NULL) == 0 && !json_is_array(&at)) {
		if (json_str(&at, "message", JSON_OPTIONAL, message, sizeof message, NULL) < 0)
			message[0] = 0;
		if (json_str(&at, "typeKey", JSON_OPTIONAL, type_key, key_size, NULL) < 0)
			type_key[0] = 0;
		if (message[0] == 0)
			(void)json_str(&at, "error_description", JSON_OPTIONAL, message,
				       sizeof message, NULL);
	}
	if (message[0] != 0)
		str_show(dst, size, message, strlen(message));
	else
		str_show(dst, size, text, len);
}
