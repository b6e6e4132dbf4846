/*
 * JIT configurations: base64 of a JSON object of file names and base64 contents (actions/runner,
 * src/Runner.Listener/Runner.cs). Decoded here, so that the secret is in nobody's argv or environ.
 */
#include "base/log.h"
#include "base/str.h"
#include "gh/b64.h"
#include "gh/files.h"
#include "gh/internal.h"
#include "gh/json.h"

#include <string.h>

#define JIT_TRIES 3

static const char *const known[] = {".runner", ".credentials", ".credentials_rsaparams"};

/* Only the names that the agent reads: anything else could be a path, a script, a library. */
static bool is_known(const char *name)
{
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return false;
}

static int take_file(struct gh_runner *r, const char *name, const char *text, struct err *e)
{
	cleanup_buf struct buf raw = {0};
	struct gh_file *f = &r->files[r->n_files];
	char shown[80];

	str_show(shown, sizeof shown, name, strlen(name));
	if (!is_known(name))
		return err_set(e, XC_CONFIG, 0,
			       "it holds a file \"%s\": known are .runner, "
			       ".credentials and .credentials_rsaparams",
			       shown);
	if (files_find(r, name) != NULL)
		return err_set(e, XC_CONFIG, 0, "it holds %s twice", name);
	buf_init(&raw, GH_FILE_MAX);
	if (text == NULL || b64_decode(&raw, text, strlen(text)) < 0 || raw.len == 0)
		return err_set(e, XC_CONFIG, 0, "its %s is not base64 of 1 to %d bytes", name,
			       GH_FILE_MAX);
	(void)str_copy(f->name, sizeof f->name, name);
	memcpy(f->data, raw.data, raw.len);
	f->len = (uint32_t)raw.len;
	r->n_files++;
	return 0;
}

static int take_files(const struct buf *text, struct gh_runner *r, struct err *e)
{
	struct json_cursor c = {0};
	struct json j = {NULL};
	struct json_at at;
	const char *name;
	int rc = 0;

	if (json_parse(&j, text->data, text->len, JSON_STRICT, "it", &at, e) < 0)
		return -1;
	if (json_is_array(&at))
		rc = err_set(e, XC_CONFIG, 0, "it is a JSON array, not an object of files");
	while (rc == 0 && (name = json_next_name(&at, &c)) != NULL)
		rc = take_file(r, name, json_cursor_str(&at, &c), e);
	json_free(&j);
	for (size_t i = 0; i < sizeof known / sizeof known[0] && rc == 0; i++)
		if (files_find(r, known[i]) == NULL)
			rc = err_set(e, XC_CONFIG, 0, "it holds no %s", known[i]);
	return rc;
}

int jit_decode(const char *text, size_t len, struct gh_runner *r, struct err *e)
{
	cleanup_buf struct buf raw = {0};
	struct key_parts key;
	int rc;

	r->n_files = 0;
	buf_init(&raw, SECRET_MAX);
	if (b64_decode(&raw, text, len) < 0 || raw.len == 0)
		rc = err_set(e, XC_CONFIG, 0, "it is not base64: was it cut off?");
	else
		rc = take_files(&raw, r, e);
	if (rc == 0)
		rc = files_read_jit(r, e);
	if (rc == 0)
		rc = files_key(r, &key, e);
	explicit_bzero(&key, sizeof key);
	if (rc == 0)
		return 0;
	explicit_bzero(r->files, sizeof r->files);
	r->n_files = 0;
	if (e != NULL)
		e->code = XC_CONFIG;
	return err_prefix(e, "the JIT configuration cannot be used");
}

static int complete(const struct gh_settings *s, const struct secret *config, struct gh_runner *out,
		    struct err *e)
{
	if (jit_decode(secret_reveal(config), config->len, out, e) < 0)
		return -1;
	out->flow = GH_JIT;
	out->registered_at_ms = clock_real_ms();
	if (s->have_scope)
		gh_settings_page(&s->scope, out->id, out->settings_url, sizeof out->settings_url);
	return 0;
}

int jit_given(struct gh *g, struct gh_runner *out, struct err *e)
{
	const struct gh_settings *s = g->s;

	if (complete(s, &s->cred.jit, out, e) < 0)
		return err_prefix(e, "ACTIONS_RUNNER_INPUT_JITCONFIG");
	log_event(LL_INFO, "jit_given",
		  LOG_FIELDS(LOG_NUM("id", out->id), LOG_STR("name", out->name)),
		  "JIT configuration of runner \"%s\" (id %llu): %s", out->name,
		  (unsigned long long)out->id,
		  s->have_scope && tokens_have_rest(s)
			  ? "removed by its id at the end"
			  : "the service removes it after its job, or after a day offline");
	return 0;
}

/* ---- generated ------------------------------------------------------------------------------ */

struct job {
	struct gh *g;
	struct deadline work, all;
	gh_about_to_add *about;
	void *arg;
	struct gh_runner *out;
	struct answer_group group;
	bool lost; /* an answer was lost: who holds the name from then on is ours */
	bool *unsettled;
};

static int choose_group(struct job *j, struct err *e)
{
	const struct gh_settings *s = j->g->s;

	if (s->scope.kind != GH_REPO)
		return rest_group(j->g, s->group, j->work, &j->group, e);
	/* A repository has only the default group, whose id is 1 in this call. */
	if (s->group[0] != 0 && !str_eq_nocase(s->group, "default"))
		return err_set(e, XC_CONFIG, 0,
			       "runner group \"%.80s\" cannot be used with a repository URL: unset "
			       "RUNNER_GROUP, or give the organisation's URL",
			       s->group);
	j->group.id = 1;
	return str_copy(j->group.name, sizeof j->group.name, "Default");
}

static int look(void *arg, struct deadline d, struct answer_found *found, struct err *e)
{
	struct job *j = arg;

	return rest_lookup(j->g, j->g->s->name, d, found, e);
}

static int delete_runner(struct job *j, uint64_t id, struct deadline d, struct err *e)
{
	enum gh_cred how;
	int64_t ms;
	int status;

	if (rest_delete(j->g, id, d, &status, &ms, &how, e) == 0 || status == 404)
		return 0;
	return -1;
}

/* generate-jitconfig knows no replacement: who holds the name is deleted, or it is an error. */
static int free_name(struct job *j, struct err *e)
{
	const struct gh_settings *s = j->g->s;
	struct answer_found held;

	if (j->lost ? look(j, j->work, &held, e) < 0
		    : register_check_holder(j->g, j->work, &held, e) < 0)
		return -1;
	if (held.id == 0)
		return 0;
	if (!s->replace && !j->lost)
		return err_set(e, XC_CONFIG, 0,
			       "a runner named \"%s\" exists (id %llu): set RUNNER_REPLACE=yes, or "
			       "another RUNNER_NAME",
			       s->name, (unsigned long long)held.id);
	log_event(LL_INFO, "jit_replace", LOG_FIELDS(LOG_NUM("id", held.id)),
		  "deleting the runner of that name (id %llu)", (unsigned long long)held.id);
	if (delete_runner(j, held.id, j->work, e) == 0)
		return 0;
	if (e->code == XC_GHOST)
		e->code = XC_CONFIG;
	return err_prefix(e, "the runner \"%s\" (id %llu) holds the name", s->name,
			  (unsigned long long)held.id);
}

/* The configuration of an add whose answer was lost cannot be had again: what it made is deleted.
 * 0: nothing of ours is there; -1: it is, or may be (*j->unsettled). */
static int settle_lost(struct job *j, struct err *e)
{
	struct err why = ERR_INIT;
	struct answer_found f;
	int rc;

	log_event(LL_WARN, "settle", NULL, 0,
		  "the answer to generate-jitconfig was lost (%s): looking \"%s\" up", e->text,
		  j->g->s->name);
	j->lost = true;
	net_set_cancel(j->g->net, -1);
	rc = settle(look, j, j->all, &f, &why);
	if (rc == 1 && delete_runner(j, f.id, j->all, &why) < 0)
		j->out->id = f.id;
	net_set_cancel(j->g->net, j->g->cancel_fd);
	*j->unsettled = rc < 0;
	if (rc < 0 || j->out->id != 0)
		return err_prefix(e, "a registration of \"%s\" may exist (%s)", j->g->s->name,
				  why.text);
	return 0;
}

static int accept(struct job *j, const struct net_response *r, struct err *e)
{
	struct answer_jit a = {.id = 0};
	int rc;

	rc = answer_jit(r->body.data, r->body.len, &a, e);
	if (rc == 0)
		rc = complete(j->g->s, &a.config, j->out, e);
	secret_wipe(&a.config);
	if (rc < 0) {
		struct err why = ERR_INIT;
		j->out->id = 0;
		if (a.id == 0)
			(void)settle_lost(j, e);
		else if (delete_runner(j, a.id, j->all, &why) < 0)
			j->out->id = a.id;
		return -1;
	}
	if (j->out->pool_name[0] == 0)
		(void)str_copy(j->out->pool_name, sizeof j->out->pool_name, j->group.name);
	return 1;
}

/* 1 complete, 0 try again, -1 failed. */
static int generate_once(struct job *j, struct err *e)
{
	struct wire_call c = {.step = STEP_JIT, .method = "POST", .retry = NET_UNSENT};
	struct net_failure why = {.sent = false};
	cleanup_buf struct buf body = {0};
	struct net_response r;
	int rc;

	buf_init(&body, BODY_MAX);
	c.body = &body;
	if (body_jit(&body, j->g->s, j->group.id) < 0)
		return err_set(e, XC_SYSTEM, 0, "no memory for a request");
	if (wire_entity(j->g, "/actions/runners/generate-jitconfig", &c.url, e) < 0 ||
	    tokens_rest(j->g, j->work, &c, e) < 0)
		return -1;
	if (wire_send(j->g, &c, j->work, &r, &why, e) < 0) {
		if (!why.sent)
			return -1;
		rc = settle_lost(j, e);
		return rc < 0 || why.cancelled || deadline_passed(j->work) ? -1 : 0;
	}
	if (wire_ok(&r)) {
		rc = accept(j, &r, e);
	} else if (r.status == 409) {
		rc = free_name(j, e);
	} else {
		wire_refused(j->g, &c, &r, e);
		rc = -1;
		if ((r.status >= 500 || r.status == 408 || r.status < 400) &&
		    settle_lost(j, e) == 0)
			rc = 0;
	}
	net_response_free(&r);
	return rc;
}

static int announce(struct job *j, struct err *e)
{
	struct gh_runner *r = j->out;

	r->flow = GH_JIT;
	r->id = 0;
	r->pool = j->group.id;
	r->ephemeral = true;
	(void)str_copy(r->name, sizeof r->name, j->g->s->name);
	(void)str_copy(r->pool_name, sizeof r->pool_name, j->group.name);
	if (j->about(j->arg, r) < 0)
		return err_set(e, XC_SYSTEM, 0, "told not to add the runner: init is gone");
	return 0;
}

int jit_generated(struct gh *g, struct deadline d, gh_about_to_add *about, void *arg,
		  struct gh_runner *out, bool *unsettled, struct err *e)
{
	struct job j = {.g = g,
			.work = deadline_minus(d, SETTLE_MS),
			.all = d,
			.about = about,
			.arg = arg,
			.out = out,
			.unsettled = unsettled};
	struct err first = ERR_INIT;
	int rc;

	if (!tokens_have_rest(g->s))
		return err_set(e, XC_CONFIG, 0,
			       "RUNNER_JIT=yes needs ACCESS_TOKEN, or APP_ID and APP_PRIVATE_KEY");
	rc = choose_group(&j, &first) < 0 || free_name(&j, &first) < 0 ? -1 : 0;
	for (unsigned i = 0; i < JIT_TRIES && rc == 0; i++) {
		rc = announce(&j, &first);
		if (rc == 0)
			rc = generate_once(&j, &first);
	}
	if (rc == 1) {
		log_event(LL_INFO, "registered",
			  LOG_FIELDS(LOG_NUM("id", out->id), LOG_STR("name", out->name)),
			  "JIT configuration generated: runner \"%s\" (id %llu)", out->name,
			  (unsigned long long)out->id);
		return 0;
	}
	if (e != NULL)
		*e = first;
	if (rc == 0)
		return err_set(e, XC_UNAVAILABLE, 0, "generate JIT configuration: %s",
			       first.text[0] != 0 ? first.text : "no clear answer");
	return -1;
}
