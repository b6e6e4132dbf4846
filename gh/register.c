/*
 * Registering with a runner token: authenticate, choose the group, look the name up, add or
 * replace, and settle an add whose answer was lost. Order of calls: actions/runner,
 * src/Runner.Listener/Configuration/ConfigurationManager.cs.
 */
#include "base/log.h"
#include "base/str.h"
#include "gh/files.h"
#include "gh/flow.h"
#include "gh/internal.h"
#include "gh/keygen.h"

#include <poll.h>
#include <string.h>

#define ADD_TRIES 4 /* add, conflict or settled, replace, group made right */

struct job {
	struct gh *g;
	const struct gh_settings *s;
	struct deadline work, all;
	gh_about_to_add *about;
	void *arg;
	struct gh_runner *out;
	struct flow flow;
	struct answer_group group;
	struct keygen keygen;
	struct key_parts key;
	uint64_t replace_id; /* the runner to be replaced, 0: add */
	bool ours;	     /* ... which is ours: an add of this life */
	bool regrouped;	     /* the old one was deleted for the group's sake */
	bool *unsettled;
};

void gh_settings_page(const struct gh_scope *scope, uint64_t id, char *dst, size_t size)
{
	char origin[URL_HOST_MAX + 32], tail[24] = "";
	const char *owner = strrchr(scope->entity, '/');
	int rc;

	dst[0] = 0;
	if (owner == NULL || url_origin(&scope->web, origin, sizeof origin) < 0)
		return;
	if (id != 0)
		(void)str_fmt(tail, sizeof tail, "/%llu", (unsigned long long)id);
	if (scope->kind == GH_ORG)
		rc = str_fmt(dst, size, "%s/organizations%s/settings/actions/runners%s", origin,
			     owner, tail);
	else
		rc = str_fmt(dst, size, "%s/settings/actions/runners%s", scope->url, tail);
	if (rc < 0)
		dst[0] = 0;
}

/* ---- settling ------------------------------------------------------------------------------- */

bool settle_pause(unsigned attempt, struct deadline d)
{
	static const int pause_ms[SETTLE_TRIES] = {0, 250, 500, 750};
	int ms = pause_ms[attempt < SETTLE_TRIES ? attempt : SETTLE_TRIES - 1];

	if (deadline_left_ms(d) <= ms)
		return false;
	if (ms > 0)
		(void)poll(NULL, 0, ms);
	return true;
}

int settle(settle_lookup *how, void *arg, struct deadline d, struct answer_found *found,
	   struct err *e)
{
	int rc = -1;

	memset(found, 0, sizeof *found);
	for (unsigned i = 0; i < SETTLE_TRIES && (i == 0 || settle_pause(i, d)); i++) {
		int got = how(arg, d, found, e);
		if (got == 0 && found->id != 0)
			return 1;
		if (got == 0)
			rc = 0;
	}
	return rc;
}

static int look(void *arg, struct deadline d, struct answer_found *found, struct err *e)
{
	struct job *j = arg;

	if (flow_lookup(&j->flow, j->s->name, d, found, e) == 0)
		return 0;
	return tokens_have_rest(j->s) ? rest_lookup(j->g, j->s->name, d, found, e) : -1;
}

/* An add whose answer was lost, or told to finish while one was under way: nothing else matters
 * now, so the look-up cannot be cancelled. Absent before and present now is ours; the one that we
 * asked to replace is ours. 1: it exists (j->replace_id), 0: it does not, -1: unknown. */
static int settle_add(struct job *j, struct err *e)
{
	struct err why = ERR_INIT;
	struct answer_found f;
	int rc;

	log_event(LL_WARN, "settle", NULL, 0,
		  "the answer to the add was lost (%s): looking \"%s\" up", e->text, j->s->name);
	net_set_cancel(j->g->net, -1);
	rc = settle(look, j, j->all, &f, &why);
	net_set_cancel(j->g->net, j->g->cancel_fd);
	if (rc < 0) {
		*j->unsettled = true;
		j->out->id = j->replace_id;
		return err_prefix(e, "a registration of \"%s\" may exist (look-up failed: %s)",
				  j->s->name, why.text);
	}
	if (rc == 0) {
		j->replace_id = 0;
		j->out->id = 0;
		return 0;
	}
	j->replace_id = f.id;
	j->ours = true;
	j->out->id = f.id;
	log_event(LL_INFO, "settled", LOG_FIELDS(LOG_NUM("id", f.id)),
		  "\"%s\" exists and is ours (id %llu)", j->s->name, (unsigned long long)f.id);
	return 1;
}

/* ---- the name ------------------------------------------------------------------------------- */

int register_check_holder(struct gh *g, struct deadline d, struct answer_found *held, struct err *e)
{
	const struct gh_settings *s = g->s;

	if (rest_lookup(g, s->name, d, held, e) < 0)
		return -1;
	if (held->id != 0 && s->replace && !s->replace_given && held->online && held->busy)
		return err_set(e, XC_CONFIG, 0,
			       "a runner named \"%s\" (id %llu) is online and runs a job: it is "
			       "not replaced by default. Set another RUNNER_NAME, or "
			       "RUNNER_REPLACE=yes to take the name all the same",
			       s->name, (unsigned long long)held->id);
	return 0;
}

static int name_taken(const struct gh_settings *s, uint64_t id, struct err *e)
{
	return err_set(e, XC_CONFIG, 0,
		       "a runner named \"%s\" exists (id %llu): set RUNNER_REPLACE=yes, or another "
		       "RUNNER_NAME",
		       s->name, (unsigned long long)id);
}

/* A replacement keeps what it replaces; where the old group is another one, or may be and a group
 * was asked for, the old runner is deleted and a new one added. */
static bool must_regroup(const struct job *j, const struct answer_found *f)
{
	if (j->regrouped || j->ours)
		return false;
	if (f->group != 0)
		return f->group != j->group.id;
	return j->s->group[0] != 0;
}

static int delete_holder(struct job *j, uint64_t id, struct err *e)
{
	int status;
	int64_t ms = 0;
	bool gone;

	log_event(LL_INFO, "regroup", LOG_FIELDS(LOG_NUM("id", id)),
		  "deleting the runner of that name (id %llu): replacing it would keep its group, "
		  "\"%s\" is wanted",
		  (unsigned long long)id, j->group.name);
	j->regrouped = true;
	if (flow_delete(&j->flow, id, j->work, &status, &gone, &ms, e) == 0)
		return 0;
	if (e->code == XC_GHOST)
		e->code = XC_CONFIG;
	return err_prefix(e,
			  "the runner \"%s\" (id %llu) is in another group than \"%s\" and cannot "
			  "be deleted",
			  j->s->name, (unsigned long long)id, j->group.name);
}

/* What is to be done about the name: j->replace_id. */
static int look_up_name(struct job *j, struct err *e)
{
	struct answer_found f, seen;

	if (flow_lookup(&j->flow, j->s->name, j->work, &f, e) < 0)
		return -1;
	j->replace_id = 0;
	if (f.id == 0)
		return 0;
	if (j->ours) {
		j->replace_id = f.id;
		return 0;
	}
	if (!j->s->replace)
		return name_taken(j->s, f.id, e);
	if (tokens_have_rest(j->s)) {
		if (register_check_holder(j->g, j->work, &seen, e) < 0)
			return -1;
		if (seen.id == f.id && seen.group != 0)
			f.group = seen.group;
	}
	if (must_regroup(j, &f))
		return delete_holder(j, f.id, e);
	j->replace_id = f.id;
	return 0;
}

/* ---- add ------------------------------------------------------------------------------------ */

static int announce(struct job *j, struct err *e)
{
	struct gh_runner *r = j->out;

	r->flow = j->flow.kind;
	r->id = j->replace_id;
	r->replaced = j->replace_id != 0;
	r->pool = j->group.id;
	r->ephemeral = j->s->ephemeral;
	(void)str_copy(r->name, sizeof r->name, j->s->name);
	(void)str_copy(r->pool_name, sizeof r->pool_name, j->group.name);
	(void)str_copy(r->tenant, sizeof r->tenant, j->flow.tenant);
	gh_settings_page(&j->s->scope, r->id, r->settings_url, sizeof r->settings_url);
	if (j->about(j->arg, r) < 0)
		return err_set(e, XC_SYSTEM, 0, "told not to add the runner: init is gone");
	return 0;
}

/* Takes back what the server has and we cannot use; j->out->id says whether it is still there. */
static int roll_back(struct job *j, uint64_t id, struct err *e)
{
	struct err why = ERR_INIT;
	int status;
	int64_t ms = 0;
	bool gone;

	net_set_cancel(j->g->net, -1);
	j->out->id = id;
	if (flow_delete(&j->flow, id, j->all, &status, &gone, &ms, &why) == 0) {
		j->out->id = 0;
		*j->unsettled = false;
		log_event(LL_INFO, "rolled_back", LOG_FIELDS(LOG_NUM("id", id)),
			  "runner %llu was deleted again", (unsigned long long)id);
	} else {
		err_prefix(e, "runner %llu could not be deleted again (%s)", (unsigned long long)id,
			   why.text);
	}
	net_set_cancel(j->g->net, j->g->cancel_fd);
	return -1;
}

static int check_echo(struct job *j, const struct answer_agent *a, struct err *e)
{
	const char *flag = NULL, *setting = NULL;

	if (j->s->disable_update && !a->disable_update) {
		flag = "DisableUpdate";
		setting = "RUNNER_DISABLE_UPDATE=no";
	}
	if (j->s->ephemeral && !a->ephemeral) {
		flag = "Ephemeral";
		setting = "RUNNER_EPHEMERAL=no";
	}
	if (flag == NULL)
		return 0;
	err_set(e, XC_CONFIG, 0,
		"this GitHub server does not support runners with the flag %s: upgrade it, or set "
		"%s",
		flag, setting);
	return roll_back(j, a->id, e);
}

/* The answer of an add: 1 complete, 2 it is in the wrong group and was deleted, -1. */
static int accept(struct job *j, const struct net_response *r, struct err *e)
{
	struct answer_agent a = {.id = 0};
	struct gh_runner *out = j->out;

	if (answer_agent(r->body.data, r->body.len, flow_dialect(&j->flow), &a, e) < 0) {
		if (a.id != 0)
			return roll_back(j, a.id, e);
		return settle_add(j, e) == 1 ? roll_back(j, j->replace_id, e) : -1;
	}
	out->id = a.id;
	if (check_echo(j, &a, e) < 0)
		return -1;
	if (out->replaced && !j->ours && !j->regrouped && a.group != 0 && a.group != j->group.id) {
		j->replace_id = 0;
		return delete_holder(j, a.id, e) < 0 ? -1 : 2;
	}
	out->fips = a.fips;
	out->registered_at_ms = clock_real_ms();
	(void)str_copy(out->client_id, sizeof out->client_id, a.client_id);
	(void)str_copy(out->auth_url, sizeof out->auth_url, a.auth_url);
	(void)str_copy(out->server_v2, sizeof out->server_v2, a.server_v2);
	gh_settings_page(&j->s->scope, out->id, out->settings_url, sizeof out->settings_url);
	if (files_build(out, j->s, &a, &j->key, e) < 0)
		return roll_back(j, a.id, e);
	return 1;
}

/* One add or replace. 1 complete, 0 try again (j->replace_id says how), -1 failed. */
static int add_once(struct job *j, struct err *e)
{
	struct net_response r;
	bool cancelled;
	int rc;

	switch (flow_add(&j->flow, &j->group, j->replace_id, &j->key, j->work, &r, &cancelled, e)) {
	case FLOW_ADDED:
		rc = accept(j, &r, e);
		net_response_free(&r);
		return rc == 2 ? 0 : rc;
	case FLOW_CONFLICT:
		log_event(LL_INFO, "name_conflict", NULL, 0,
			  "somebody took the name \"%s\" meanwhile: looking it up once more",
			  j->s->name);
		return look_up_name(j, e) < 0 ? -1 : 0;
	case FLOW_UNKNOWN:
		rc = settle_add(j, e);
		if (rc < 0 || cancelled || deadline_passed(j->work))
			return -1;
		return 0;
	case FLOW_REFUSED:
	case FLOW__MAX:
		break;
	}
	/* Nothing came of this request; what an earlier one made is still there. */
	j->out->id = j->ours ? j->replace_id : 0;
	return -1;
}

static int add(struct job *j, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; i < ADD_TRIES && rc == 0; i++) {
		if (announce(j, e) < 0) {
			if (!j->ours)
				j->out->id = 0;
			return -1;
		}
		rc = add_once(j, e);
		if (rc == 0 && e->text[0] == 0)
			err_set(e, XC_UNAVAILABLE, 0, "register: no clear answer");
	}
	return rc == 1 ? 0 : -1;
}

static int prepare(struct job *j, struct err *e)
{
	const struct secret *token;
	enum gh_cred kind;
	int64_t age;

	token = tokens_runner(j->g, false, j->work, &kind, &age, e);
	if (token == NULL)
		return -1;
	if (flow_begin(j->g, "register", token, kind, age, j->work, &j->flow, NULL, e) < 0)
		return -1;
	log_event(LL_INFO, "flow", LOG_FIELDS(LOG_STR("flow", j->flow.kind == GH_V2 ? "v2" : "v1")),
		  "authenticated: GitHub wants the %s flow",
		  j->flow.kind == GH_V2 ? "runner-admin (V2)" : "pipelines (V1)");
	if (flow_groups(&j->flow, j->s->group, j->work, &j->group, e) < 0 || look_up_name(j, e) < 0)
		return -1;
	return keygen_take(&j->keygen, j->g->cancel_fd, j->work, &j->key, e);
}

static int with_token(struct gh *g, struct deadline d, gh_about_to_add *about, void *arg,
		      struct gh_runner *out, bool *unsettled, struct err *e)
{
	struct job j = {.g = g,
			.s = g->s,
			.work = deadline_minus(d, SETTLE_MS),
			.all = d,
			.about = about,
			.arg = arg,
			.out = out,
			.keygen = KEYGEN_INIT,
			.unsettled = unsettled};
	struct err first = ERR_INIT;
	int rc;

	keygen_start(&j.keygen);
	rc = prepare(&j, &first);
	if (rc == 0) {
		memset(&first, 0, sizeof first);
		rc = add(&j, &first);
	}
	keygen_stop(&j.keygen);
	explicit_bzero(&j, sizeof j);
	if (rc < 0 && e != NULL)
		*e = first;
	if (rc == 0)
		log_event(LL_INFO, "registered",
			  LOG_FIELDS(LOG_NUM("id", out->id), LOG_STR("name", out->name),
				     LOG_STR("group", out->pool_name)),
			  "runner \"%s\" registered: id %llu, group \"%s\"%s", out->name,
			  (unsigned long long)out->id, out->pool_name,
			  out->replaced ? ", replacing the one of that name" : "");
	return rc;
}

int gh_register(struct gh *g, struct deadline d, gh_about_to_add *about, void *arg,
		struct gh_runner *out, bool *unsettled, struct err *e)
{
	const struct gh_settings *s = g->s;

	memset(out, 0, sizeof *out);
	*unsettled = false;
	if (secret_present(&s->cred.jit))
		return jit_given(g, out, e);
	if (!s->have_scope)
		return err_set(e, XC_CONFIG, 0, "RUNNER_URL is not set");
	if (s->jit_generate)
		return jit_generated(g, d, about, arg, out, unsettled, e);
	return with_token(g, d, about, arg, out, unsettled, e);
}
