/*
 * Removing a runner by its id, by every way that the credentials allow: the public REST delete (422
 * is GitHub's atomic "busy"; actions-runner-controller, runner_graceful_stop.go), then the flow
 * that registered it, with a removal token or the registration token while it lives.
 */
#include "base/log.h"
#include "base/str.h"
#include "gh/flow.h"
#include "gh/internal.h"

#include <poll.h>
#include <string.h>

#define HOUR_MS		3600000
#define ROUND_MIN_MS	200 /* what a further round must have left */
#define PAUSE_MAX_MS	2000
#define LAST_SESSION_MS 2000 /* of an expired token's stop: ending the agent's session */

struct job {
	struct gh *g;
	const struct gh_runner *r;
	uint64_t id;
	struct gh_removal *out;
	struct err err; /* of the last way that failed */
	bool again;	/* another round may help */
};

static void how(struct job *j, enum gh_cred cred, const char *way)
{
	(void)str_fmt(j->out->how, sizeof j->out->how, "%s %llu with %s", way,
		      (unsigned long long)j->id, gh_cred_name(cred));
}

static int done(struct job *j, enum gh_removed what, int status, int64_t ms)
{
	j->out->what = what;
	j->out->verified = true;
	j->out->status = status;
	j->out->ms = ms;
	return 0;
}

static int busy(struct job *j, int status, int64_t ms)
{
	j->out->what = GH_BUSY;
	j->out->verified = true;
	j->out->status = status;
	j->out->ms = ms;
	j->again = true;
	return -1;
}

/* A way failed for `e`: worth another round when GitHub was out of reach. */
static int failed(struct job *j, int status, const struct err *e)
{
	if (j->out->what != GH_BUSY) {
		j->out->what = GH_NOT_REMOVED;
		j->out->status = status;
	}
	if (e->code == XC_UNAVAILABLE)
		j->again = true;
	j->err = *e;
	return -1;
}

/* ---- REST ----------------------------------------------------------------------------------- */

/* 404 is said to who may not see the runner, too: the list tells the two apart. */
static int rest_gone(struct job *j, int64_t ms, struct deadline d)
{
	struct err e = ERR_INIT;
	struct answer_found f;

	if (rest_lookup(j->g, j->r->name, d, &f, &e) < 0)
		return failed(j, 404, &e);
	if (f.id == j->id) {
		err_set(&e, XC_PROTOCOL, 0, "delete: 404, though the runner is listed");
		return failed(j, 404, &e);
	}
	return done(j, GH_GONE, 404, ms);
}

static int by_rest(struct job *j, struct deadline d)
{
	enum gh_cred cred = CRED_PAT;
	struct err e = ERR_INIT;
	int64_t ms = 0;
	int status = 0, rc;

	rc = rest_delete(j->g, j->id, d, &status, &ms, &cred, &e);
	how(j, cred, "DELETE runners");
	if (rc == 0)
		return done(j, GH_REMOVED, 204, ms);
	if (status == 404)
		return rest_gone(j, ms, d);
	if (status == 422) {
		j->err = e;
		return busy(j, status, ms);
	}
	return failed(j, status, &e);
}

/* ---- the flow that registered --------------------------------------------------------------- */

/* A flow to remove in. V2 needs no request for it, V1 a tenant bearer; of a JIT runner the server
 * says which it is. */
static int open_flow(struct job *j, const struct secret *token, enum gh_cred kind, int64_t age,
		     struct deadline d, struct flow *f, struct err *e)
{
	struct url stored;
	int status;

	if (j->r->flow == GH_V2) {
		memset(f, 0, sizeof *f);
		f->g = j->g;
		f->kind = GH_V2;
		f->cred = *token;
		f->cred_kind = kind;
		f->cred_age_ms = age;
		return 0;
	}
	if (flow_begin(j->g, "remove", token, kind, age, d, f, &status, e) < 0) {
		j->out->status = status;
		return -1;
	}
	/* The stored tenant is the one that knows the id; the bearer stays with its origin. */
	if (f->kind == GH_V1 && j->r->tenant[0] != 0 &&
	    url_parse(j->r->tenant, &stored, NULL) == 0 && url_same_origin(&stored, &f->base))
		f->base = stored;
	return 0;
}

/* V2 answers 404 to a foreign token as well; its list of names tells the two apart. V1's bearer was
 * accepted a moment ago. */
static int flow_gone(struct job *j, struct flow *f, int64_t ms, struct deadline d)
{
	struct err e = ERR_INIT;
	struct answer_found found;

	if (f->kind == GH_V1)
		return done(j, GH_GONE, 404, ms);
	if (flow_lookup(f, j->r->name, d, &found, &e) < 0)
		return failed(j, 404, &e);
	if (found.id == j->id) {
		err_set(&e, XC_PROTOCOL, 0, "delete: 404, though the runner is listed");
		return failed(j, 404, &e);
	}
	return done(j, GH_GONE, 404, ms);
}

static int with_runner_token(struct job *j, const struct secret *token, enum gh_cred kind,
			     int64_t age, struct deadline d)
{
	struct err e = ERR_INIT;
	struct flow f;
	int64_t ms = 0;
	int status = 0, rc;
	bool gone = false;

	if (open_flow(j, token, kind, age, d, &f, &e) < 0) {
		how(j, kind, "removing");
		return failed(j, j->out->status, &e);
	}
	rc = flow_delete(&f, j->id, d, &status, &gone, &ms, &e);
	how(j, kind, f.kind == GH_V2 ? "DELETE runners (V2)" : "DELETE agents (V1)");
	if (rc == 0)
		rc = gone ? flow_gone(j, &f, ms, d) : done(j, GH_REMOVED, status, ms);
	else if (status == 422) {
		j->err = e;
		rc = busy(j, status, ms);
	} else {
		rc = failed(j, status, &e);
	}
	flow_wipe(&f);
	return rc;
}

/* Says before it is tried that an expired token leaves the registration behind, and at least ends
 * the agent's session with the agent's own key. */
static void warn_expired(struct job *j, int64_t age, struct deadline d)
{
	struct err e = ERR_INIT;

	log_event(LL_WARN, "token_expired", LOG_FIELDS(LOG_NUM("age_ms", age)),
		  "RUNNER_TOKEN is %lld min old and lives 60: removing runner %llu with it will "
		  "very likely fail and leave the registration. ACCESS_TOKEN or a GitHub App would "
		  "not expire",
		  (long long)(age / 60000), (unsigned long long)j->id);
	if (gh_end_session(j->g, j->r, deadline_min(d, deadline_in(LAST_SESSION_MS)), &e) < 0)
		log_event(LL_DEBUG, "end_session", NULL, 0, "the agent's session was not ended: %s",
			  e.text);
}

static int by_flow(struct job *j, bool first, struct deadline d)
{
	const struct gh_settings *s = j->g->s;
	const struct secret *given = &s->cred.token;
	int64_t age = clock_real_ms() - s->cred.token_at_ms;
	const struct secret *token;
	struct err e = ERR_INIT;
	enum gh_cred kind;
	int64_t minted_age;

	if (tokens_have_rest(s)) {
		token = tokens_runner(j->g, true, d, &kind, &minted_age, &e);
		if (token == NULL)
			failed(j, 0, &e);
		else if (with_runner_token(j, token, kind, minted_age, d) == 0)
			return 0;
	}
	if (!secret_present(given) || (tokens_have_rest(s) && age >= HOUR_MS))
		return -1;
	if (age >= HOUR_MS && first)
		warn_expired(j, age, d);
	return with_runner_token(j, given, CRED_TOKEN, age, d);
}

/* ---- an add of unknown fate ----------------------------------------------------------------- */

static int look_rest(void *arg, struct deadline d, struct answer_found *found, struct err *e)
{
	struct job *j = arg;

	return rest_lookup(j->g, j->r->name, d, found, e);
}

struct flow_look {
	struct job *j;
	struct flow *f;
};

static int look_flow(void *arg, struct deadline d, struct answer_found *found, struct err *e)
{
	struct flow_look *l = arg;

	return flow_lookup(l->f, l->j->r->name, d, found, e);
}

static int settle_by_flow(struct job *j, struct deadline d, struct answer_found *found,
			  struct err *e)
{
	struct flow f;
	struct flow_look l = {j, &f};
	const struct secret *token;
	enum gh_cred kind;
	int64_t age;
	int rc;

	token = tokens_runner(j->g, false, d, &kind, &age, e);
	if (token == NULL || open_flow(j, token, kind, age, d, &f, e) < 0)
		return -1;
	rc = settle(look_flow, &l, d, found, e);
	flow_wipe(&f);
	return rc;
}

/* The id of a runner whose add was never answered: 1 found, 0 it does not exist, -1. */
static int find_id(struct job *j, struct deadline d)
{
	struct err e = ERR_INIT;
	struct answer_found f;
	int rc = -1;

	(void)str_fmt(j->out->how, sizeof j->out->how, "look-up of the name");
	if (tokens_have_rest(j->g->s))
		rc = settle(look_rest, j, d, &f, &e);
	if (rc < 0)
		rc = settle_by_flow(j, d, &f, &e);
	if (rc < 0) {
		err_prefix(&e, "whether \"%s\" was registered is not known", j->r->name);
		return failed(j, 0, &e);
	}
	j->id = f.id;
	return rc;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static bool has_way(const struct gh_settings *s)
{
	return s->have_scope && (tokens_have_rest(s) || secret_present(&s->cred.token));
}

static int no_way(struct job *j)
{
	const char *jit = j->r->flow == GH_JIT
				  ? ": the service removes a JIT runner after its job, or after a "
				    "day offline"
				  : "";

	j->out->what = GH_NOT_REMOVED;
	(void)str_fmt(j->out->how, sizeof j->out->how, "no credential");
	return err_set(&j->err, XC_GHOST, 0,
		       "no credential that could remove runner %llu%s. Give ACCESS_TOKEN, or "
		       "APP_ID and APP_PRIVATE_KEY, with RUNNER_URL",
		       (unsigned long long)j->id, jit);
}

/* A part of what is left, so that one silent connection does not eat the time of the next try. */
static struct deadline slice(struct deadline d)
{
	int64_t left = deadline_left_ms(d);

	return left == INT64_MAX || left < 1000 ? d : deadline_min(d, deadline_in(left / 2));
}

static int one_round(struct job *j, bool first, bool if_idle, struct deadline d)
{
	bool rest = tokens_have_rest(j->g->s);

	j->again = false;
	j->out->what = GH_NOT_REMOVED;
	if (j->id == 0) {
		int rc = find_id(j, slice(d));
		if (rc <= 0)
			return rc < 0 ? -1 : done(j, GH_GONE, 0, 0);
	}
	if (rest && by_rest(j, slice(d)) == 0)
		return 0;
	if (if_idle)
		return -1;
	return by_flow(j, first, slice(d));
}

static int rounds(struct job *j, bool if_idle, struct deadline d)
{
	int pause = 200;

	for (unsigned i = 0;; i++) {
		if (one_round(j, i == 0, if_idle, d) == 0)
			return 0;
		if (!j->again || (if_idle && j->out->what == GH_BUSY) ||
		    deadline_left_ms(d) < pause + ROUND_MIN_MS)
			return -1;
		log_event(LL_INFO, "remove_again", LOG_FIELDS(LOG_NUM("wait_ms", pause)),
			  "runner %llu is not removed yet (%s): trying again in %d ms",
			  (unsigned long long)j->id, j->err.text, pause);
		(void)poll(NULL, 0, pause);
		pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
	}
}

int gh_remove(struct gh *g, const struct gh_runner *r, bool if_idle, struct deadline d,
	      struct gh_removal *out, struct err *e)
{
	struct job j = {.g = g, .r = r, .id = r->id, .out = out, .err = ERR_INIT, .again = false};
	int rc;

	memset(out, 0, sizeof *out);
	out->what = GH_NOT_REMOVED;
	if (!has_way(g->s) || (if_idle && !tokens_have_rest(g->s)))
		rc = no_way(&j);
	else
		rc = rounds(&j, if_idle, d);
	if (rc == 0 || (if_idle && out->what == GH_BUSY)) {
		log_event(LL_INFO, "removal",
			  LOG_FIELDS(LOG_NUM("id", j.id), LOG_NUM("status", out->status),
				     LOG_NUM("ms", out->ms), LOG_STR("how", out->how)),
			  "runner %llu: %s (%s)", (unsigned long long)j.id,
			  out->what == GH_REMOVED ? "removed"
			  : out->what == GH_GONE  ? "was gone already"
						  : "runs a job",
			  out->how);
		return 0;
	}
	if (e != NULL)
		*e = j.err;
	return -1;
}

int gh_remove_predecessor(struct gh *g, uint64_t id, const char *name, struct deadline d,
			  struct err *e)
{
	struct answer_found f;
	enum gh_cred cred;
	int64_t ms;
	int status;

	if (!g->s->have_scope || !tokens_have_rest(g->s)) {
		log_event(LL_INFO, "predecessor_left", LOG_FIELDS(LOG_NUM("id", id)),
			  "runner %llu of an earlier start is left: only a PAT or an App can see "
			  "it",
			  (unsigned long long)id);
		return 0;
	}
	if (rest_get(g, id, d, &f, e) < 0)
		return -1;
	if (f.id != id || !str_eq_nocase(f.name, name) || f.online || f.busy) {
		log_event(LL_INFO, "predecessor_left", LOG_FIELDS(LOG_NUM("id", id)),
			  "runner %llu of an earlier start is left: %s", (unsigned long long)id,
			  f.id != id			 ? "GitHub does not know it any more"
			  : !str_eq_nocase(f.name, name) ? "it has another name"
			  : f.busy			 ? "it runs a job"
							 : "it is online");
		return 0;
	}
	if (rest_delete(g, id, d, &status, &ms, &cred, e) < 0)
		return status == 404 ? 0 : -1;
	log_event(LL_INFO, "predecessor_removed", LOG_FIELDS(LOG_NUM("id", id)),
		  "runner %llu (\"%s\"), left by an earlier start, was deleted",
		  (unsigned long long)id, name);
	return 1;
}
