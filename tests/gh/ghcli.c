/*
 * Test binary: the calls of gh/gh.h from the environment, told as JSON lines on stdout. Never
 * shipped.
 *
 *	ghcli COMMAND...
 *
 * register | remove | remove-if-idle | end-session | predecessor (of the runner registered) |
 * can-remove | fresh (a new client, as after the registrar was replaced) | forget (id 0, as after
 * an add whose answer was lost) | wait (for a line on stdin) | settings (the parsed scope) |
 * faults (the table of diagnoses) | keys N (N generated keys, for the checks of test-long)
 *
 * Environment: the names of init, and GHCLI_BUDGET_MS, GHCLI_REMOVE_MS, GHCLI_TOKEN_AGE_MS,
 * GHCLI_CANCEL=yes (stdin readable: told to finish), GHCLI_GONE=yes (the parent is gone).
 */
#include "base/log.h"
#include "base/str.h"
#include "gh/b64.h"
#include "gh/diagnose.h"
#include "gh/gh.h"
#include "gh/json.h"
#include "gh/key.h"
#include "gh/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_MAX (1u << 20)

static struct gh_settings settings;
static struct gh_runner runner;
static struct gh *client;
static char about_text[512]; /* ids of the announcements */

static const char *env(const char *name, const char *otherwise)
{
	const char *v = getenv(name);

	return v != NULL ? v : otherwise;
}

static int64_t env_ms(const char *name, int64_t otherwise)
{
	int64_t v = otherwise;
	const char *s = getenv(name);

	return s != NULL && str_i64(s, 0, INT64_MAX, &v) == 0 ? v : otherwise;
}

static bool yes(const char *name, bool otherwise)
{
	bool b = otherwise;
	const char *s = getenv(name);

	return s != NULL && str_bool(s, &b) == 0 ? b : otherwise;
}

static void secret(struct secret *dst, const char *name)
{
	const char *s = env(name, "");

	(void)secret_set(dst, s, strlen(s));
}

static void take_labels(const char *s)
{
	while (*s != 0 && settings.n_labels < GH_LABELS_MAX) {
		size_t n = strcspn(s, ",");
		(void)str_copyn(settings.labels[settings.n_labels++], GH_LABEL_MAX, s, n);
		s += n;
		if (*s == ',')
			s++;
	}
}

static int take_settings(struct err *e)
{
	struct gh_settings *s = &settings;
	const char *url = env("RUNNER_URL", "");

	s->have_scope = url[0] != 0;
	if (s->have_scope && gh_scope_parse(url, false, &s->scope, e) < 0)
		return -1;
	secret(&s->cred.token, "RUNNER_TOKEN");
	secret(&s->cred.pat, "ACCESS_TOKEN");
	secret(&s->cred.app_key, "APP_PRIVATE_KEY");
	secret(&s->cred.jit, "ACTIONS_RUNNER_INPUT_JITCONFIG");
	s->cred.token_at_ms = clock_real_ms() - env_ms("GHCLI_TOKEN_AGE_MS", 0);
	s->cred.app_installation = (uint64_t)env_ms("APP_INSTALLATION_ID", 0);
	(void)str_copy(s->cred.app_id, sizeof s->cred.app_id, env("APP_ID", ""));
	(void)str_copy(s->name, sizeof s->name, env("RUNNER_NAME", "r1"));
	(void)str_copy(s->group, sizeof s->group, env("RUNNER_GROUP", ""));
	(void)str_copy(s->work, sizeof s->work, env("RUNNER_WORKDIR", "_work"));
	(void)str_copy(s->agent_version, sizeof s->agent_version, env("GHCLI_VERSION", "2.336.0"));
	(void)str_copy(s->os_description, sizeof s->os_description, "Debian GNU/Linux 12");
	(void)str_copy(s->ca_file, sizeof s->ca_file, env("SSL_CERT_FILE", ""));
	take_labels(env("RUNNER_LABELS", ""));
	s->no_default_labels = yes("RUNNER_NO_DEFAULT_LABELS", false);
	s->ephemeral = yes("RUNNER_EPHEMERAL", true);
	s->replace = yes("RUNNER_REPLACE", true);
	s->replace_given = getenv("RUNNER_REPLACE") != NULL;
	s->disable_update = yes("RUNNER_DISABLE_UPDATE", true);
	s->jit_generate = yes("RUNNER_JIT", false);
	s->http_ms = env_ms("GHCLI_HTTP_MS", 15000);
	s->register_ms = env_ms("GHCLI_BUDGET_MS", 20000);
	return 0;
}

static int about(void *arg, const struct gh_runner *r)
{
	size_t n = strlen(about_text);

	(void)arg;
	(void)str_fmt(about_text + n, sizeof about_text - n, "%s%llu%s", n > 0 ? "," : "",
		      (unsigned long long)r->id, r->replaced ? "!" : "");
	return yes("GHCLI_GONE", false) ? -1 : 0;
}

static void finish(struct json_out *o, struct buf *b, int rc, const struct err *e)
{
	jo_bool(o, "ok", rc >= 0);
	jo_u64(o, "rc", rc < 0 ? 0 : (uint64_t)rc);
	jo_u64(o, "code", rc < 0 ? (uint64_t)e->code : 0);
	jo_str(o, "text", rc < 0 ? e->text : "");
	jo_close(o, '}');
	if (jo_end(o) < 0)
		exit(3);
	puts(buf_str(b));
	(void)fflush(stdout);
}

static void put_runner(struct json_out *o, const struct gh_runner *r)
{
	static const char *const flows[] = {"v1", "v2", "jit"};

	jo_open(o, "runner", '{');
	jo_str(o, "flow", flows[r->flow]);
	jo_u64(o, "id", r->id);
	jo_u64(o, "pool", r->pool);
	jo_str(o, "name", r->name);
	jo_str(o, "pool_name", r->pool_name);
	jo_bool(o, "ephemeral", r->ephemeral);
	jo_bool(o, "replaced", r->replaced);
	jo_str(o, "tenant", r->tenant);
	jo_str(o, "server_v2", r->server_v2);
	jo_str(o, "client_id", r->client_id);
	jo_str(o, "auth_url", r->auth_url);
	jo_bool(o, "fips", r->fips);
	jo_str(o, "page", r->settings_url);
	jo_open(o, "files", '{');
	for (unsigned i = 0; i < r->n_files; i++)
		jo_strn(o, r->files[i].name, (const char *)r->files[i].data, r->files[i].len);
	jo_close(o, '}');
	jo_close(o, '}');
}

static void do_register(struct json_out *o, struct buf *b)
{
	struct err e = ERR_INIT;
	bool unsettled = false;
	int rc;

	about_text[0] = 0;
	rc = gh_register(client, deadline_in(settings.register_ms), about, NULL, &runner,
			 &unsettled, &e);
	jo_bool(o, "unsettled", unsettled);
	jo_str(o, "about", about_text);
	put_runner(o, &runner);
	finish(o, b, rc, &e);
}

static void do_remove(struct json_out *o, struct buf *b, bool if_idle)
{
	static const char *const what[] = {"removed", "gone", "busy", "not_removed"};
	struct gh_removal removal;
	struct err e = ERR_INIT;
	int rc;

	gh_set_cancel(client, -1);
	rc = gh_remove(client, &runner, if_idle, deadline_in(env_ms("GHCLI_REMOVE_MS", 5000)),
		       &removal, &e);
	jo_str(o, "what", what[removal.what]);
	jo_bool(o, "verified", removal.verified);
	jo_u64(o, "status", (uint64_t)removal.status);
	jo_str(o, "how", removal.how);
	finish(o, b, rc, &e);
}

static void do_settings(struct json_out *o, struct buf *b)
{
	static const char *const kinds[] = {"repo", "org", "enterprise"};
	struct err e = ERR_INIT;
	char api[URL_TEXT_MAX] = "";

	(void)url_text(&settings.scope.api, api, sizeof api);
	jo_str(o, "url", settings.scope.url);
	jo_str(o, "api", api);
	jo_str(o, "entity", settings.scope.entity);
	jo_str(o, "kind", kinds[settings.scope.kind]);
	finish(o, b, 0, &e);
}

static void do_faults(struct json_out *o, struct buf *b)
{
	struct err e = ERR_INIT;

	jo_open(o, "faults", '[');
	for (int f = 0; f < FAULT__MAX; f++) {
		const struct gh_fault_text *t = gh_fault_text((enum gh_fault)f);
		jo_open(o, NULL, '{');
		jo_str(o, "id", t->id);
		jo_u64(o, "code", (uint64_t)t->code);
		jo_str(o, "verdict", t->verdict);
		jo_str(o, "remedy", t->remedy);
		jo_close(o, '}');
	}
	jo_close(o, ']');
	finish(o, b, 0, &e);
}

static void do_key(struct json_out *o, struct buf *b)
{
	struct err e = ERR_INIT;
	struct key_parts p;
	struct key *k = key_generate(&e);
	cleanup_buf struct buf text = {0};

	buf_init(&text, 4096);
	if (k == NULL || key_export(k, &p, &e) < 0 || b64_encode(&text, B64_STD, &p, sizeof p) < 0)
		exit(3);
	key_free(k);
	jo_str(o, "parts", buf_str(&text));
	finish(o, b, 0, &e);
}

static bool reopen(struct err *e)
{
	gh_close(client);
	client = gh_open(&settings, yes("GHCLI_CANCEL", false) ? 0 : -1, e);
	return client != NULL;
}

static void command(const char *name)
{
	struct err e = ERR_INIT;
	struct deadline d = deadline_in(env_ms("GHCLI_REMOVE_MS", 5000));
	cleanup_buf struct buf b = {0};
	struct json_out o;

	buf_init(&b, OUT_MAX);
	jo_begin(&o, &b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "command", name);
	if (strcmp(name, "register") == 0) {
		do_register(&o, &b);
	} else if (strcmp(name, "remove") == 0) {
		do_remove(&o, &b, false);
	} else if (strcmp(name, "remove-if-idle") == 0) {
		do_remove(&o, &b, true);
	} else if (strcmp(name, "end-session") == 0) {
		finish(&o, &b, gh_end_session(client, &runner, d, &e), &e);
	} else if (strcmp(name, "predecessor") == 0) {
		finish(&o, &b, gh_remove_predecessor(client, runner.id, settings.name, d, &e), &e);
	} else if (strcmp(name, "can-remove") == 0) {
		finish(&o, &b, gh_can_remove(&settings), &e);
	} else if (strcmp(name, "settings") == 0) {
		do_settings(&o, &b);
	} else if (strcmp(name, "faults") == 0) {
		do_faults(&o, &b);
	} else if (strcmp(name, "key") == 0) {
		do_key(&o, &b);
	} else if (strcmp(name, "forget") == 0) {
		runner.id = 0;
	} else if (strcmp(name, "fresh") == 0) {
		if (!reopen(&e))
			exit(3);
	} else if (strcmp(name, "wait") == 0) {
		char line[64];
		if (fgets(line, sizeof line, stdin) == NULL)
			exit(3);
	} else {
		exit(64);
	}
}

static bool offline(const char *name)
{
	return strcmp(name, "faults") == 0 || strcmp(name, "key") == 0;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;

	log_setup(LL_DEBUG, false);
	if (take_settings(&e) < 0 || (argc > 1 && !offline(argv[1]) && !reopen(&e))) {
		fprintf(stderr, "ghcli: %d: %s\n", e.code, e.text);
		return e.code;
	}
	for (int i = 1; i < argc; i++)
		command(argv[i]);
	gh_close(client);
	return 0;
}
