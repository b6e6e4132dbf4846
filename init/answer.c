/*
 * PID 1's side of the registrar: orders, answers, and what to do when answers stay out.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "init/fault.h"
#include "init/run.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#define ACK_MS	       1000  /* a living registrar says "started" within a millisecond */
#define GRACE_MS       1500  /* beyond an order's own deadline, before it counts as unanswered */
#define RESPAWN_MS     200   /* between two tries to replace a registrar */
#define RESPAWNS_MAX   5     /* in a row, while registering */
#define RENEW_MS       30000 /* a removal that nobody waits for */
#define PREDECESSOR_MS 20000
#define HINT_MS	       1000 /* from a job's assignment to the agent's line about it */

/* ---- orders ---- */

static void ordered(struct run *r, bool asking, struct deadline due)
{
	r->order_seq = r->reg.seq;
	r->asking = asking;
	run_arm(r, TIMER_ACK, deadline_in(ACK_MS));
	run_arm(r, TIMER_ORDER, due);
}

static void answered(struct run *r)
{
	r->order_seq = 0;
	r->respawns = 0;
	run_disarm(r, TIMER_ACK);
	run_disarm(r, TIMER_ORDER);
	run_disarm(r, TIMER_RESPAWN);
}

/* Its reports are read, and its end acted on, once the reaper has it: only then is it certain that
 * nothing more was sent. */
void run_registrar_lost(struct run *r, const char *why)
{
	run_disarm(r, TIMER_ACK);
	if (r->reg.proc.pid < 0) {
		run_post(r, EV_LOST);
		return;
	}
	log_warn("registrar", "the registrar %s: replacing it", why);
	(void)proc_kill(&r->reg.proc, SIGKILL);
}

void run_registrar_ended(struct run *r)
{
	bool ours = r->reg.sock >= 0;

	proc_gone(&r->reg.proc);
	fault_registrar(-1);
	fd_close(&r->reg.sock);
	if (!ours)
		return; /* stopped on purpose */
	r->order_seq = 0;
	log_warn("registrar", "the registrar ended unexpectedly");
	run_post(r, EV_LOST);
}

void run_respawn(struct run *r)
{
	struct err e = ERR_INIT;

	if (r->reg.proc.pid > 0)
		return;
	r->respawns++;
	/* The first one learned the version from an order; this one may be asked to remove at once.
	 */
	if (r->wish.agent_version[0] != '\0')
		(void)str_copy(r->c->gh.agent_version, sizeof r->c->gh.agent_version,
			       r->wish.agent_version);
	if (registrar_start(&r->reg, &r->c->gh, r->c->as_root && r->c->user.switching, &e) != 0) {
		log_error("registrar", "%s", e.text);
		run_arm(r, TIMER_RESPAWN, deadline_in(RESPAWN_MS));
		return;
	}
	fault_registrar(r->reg.sock);
	if (r->known)
		(void)registrar_know(&r->reg, &r->runner);
}

/* What a fault of init would have to say, should nobody be there to remove the runner. */
static void arm_last_words(const struct run *r)
{
	char text[512];

	if (str_fmt(text, sizeof text,
		    "init: error: runner \"%s\" (id %llu) may still be registered: remove it at "
		    "%.300s",
		    r->runner.name, (unsigned long long)r->runner.id,
		    r->runner.settings_url[0] != '\0' ? r->runner.settings_url
						      : r->c->gh.scope.url) != 0)
		text[sizeof text - 1] = '\0';
	fault_last_words(text);
}

void run_order_register(struct run *r)
{
	if (r->register_due.at_ms == 0)
		r->register_due = deadline_in(r->c->gh.register_ms);
	r->known = false;
	r->removed = false;
	r->kept = false;
	if (r->respawns > RESPAWNS_MAX || deadline_passed(r->register_due)) {
		run_cause(r, XC_SYSTEM, "the registrar cannot be kept alive");
		run_post(r, EV_REFUSED);
		return;
	}
	if (r->reg.sock < 0) {
		run_arm(r, TIMER_RESPAWN, deadline_in(RESPAWN_MS));
		return;
	}
	if (registrar_register(&r->reg, &r->wish, r->register_due) != 0) {
		run_registrar_lost(r, "takes no orders");
		return;
	}
	ordered(r, false, (struct deadline){r->register_due.at_ms + GRACE_MS});
}

static struct deadline removal_due(struct run *r)
{
	if (r->state == LIFE_RENEWING)
		return r->order_due;
	run_plan(r);
	return r->plan.remove;
}

static void kept(struct run *r)
{
	answered(r);
	r->kept = true;
	run_post(r, EV_KEPT);
}

/* A job was seen to complete, so the service removes the runner by itself; with a token that is too
 * old for a removal, asking would only be refused. */
static bool taken_on_trust(const struct run *r)
{
	return r->facts.ephemeral && r->facts.job_done && !gh_can_remove(&r->c->gh);
}

static void removed(struct run *r)
{
	struct err e = ERR_INIT;

	answered(r);
	r->removed = true;
	fault_last_words("");
	r->order_due.at_ms = 0;
	if (r->journalled && journal_removed(&r->c->gh.cred, r->runner.id, &e) != 0)
		log_debug("journal", "%s", e.text);
	run_post(r, EV_REMOVED);
}

void run_order_remove(struct run *r)
{
	struct deadline due;

	run_disarm(r, TIMER_RESPAWN);
	if (r->order_due.at_ms == 0)
		r->order_due = deadline_in(RENEW_MS);
	due = removal_due(r);
	if (r->removed) {
		run_post(r, EV_REMOVED);
	} else if (taken_on_trust(r)) {
		r->removal.what = GH_GONE;
		r->removal.verified = false;
		removed(r);
	} else if (!r->known || deadline_passed(due)) {
		(void)err_set(&r->removal_err, XC_UNAVAILABLE, 0, "no answer in time");
		kept(r);
	} else if (r->reg.sock < 0 || r->respawns > RESPAWNS_MAX) {
		r->respawns = 0; /* one that dies over and over is given air in between */
		run_arm(r, TIMER_RESPAWN, deadline_in(RESPAWN_MS));
	} else if (registrar_remove(&r->reg, &r->runner, false, r->agent_killed, due) != 0) {
		run_registrar_lost(r, "takes no orders");
	} else {
		ordered(r, false, (struct deadline){due.at_ms + 100});
	}
}

/* Only a PAT or an App can delete a runner on the condition that it is idle. Without one, the
 * process tree is the best witness. */
void run_order_ask(struct run *r)
{
	const struct gh_credentials *k = &r->c->gh.cred;
	struct deadline due = deadline_in(r->c->stop_ms / 3);

	if (run_job_running(r)) {
		run_post(r, EV_HELD);
		return;
	}
	if (!r->known || (!secret_present(&k->pat) && !secret_present(&k->app_key))) {
		/* A job may have been handed out this very moment: the agent says so shortly. */
		if (r->state == LIFE_YIELDING)
			run_arm(r, TIMER_ORDER, deadline_min(r->plan.cancel, deadline_in(HINT_MS)));
		else
			run_post(r, EV_UNSURE);
		return;
	}
	if (registrar_remove(&r->reg, &r->runner, true, false, due) != 0) {
		run_registrar_lost(r, "takes no orders");
		return;
	}
	ordered(r, true, (struct deadline){due.at_ms + 100});
}

/* ---- before registering ---- */

static void scope_text(const struct run *r, char *dst, size_t size)
{
	const struct gh_scope *s = &r->c->gh.scope;

	if (str_fmt(dst, size, "%s%s", s->web.host, s->entity) != 0)
		dst[0] = '\0';
}

/* Once the pause is over: what an earlier life in this container could not remove. */
void run_predecessor(struct run *r)
{
	const struct gh_credentials *k = &r->c->gh.cred;
	struct journal_entry en;
	char scope[512];

	memset(&en, 0, sizeof en);
	scope_text(r, scope, sizeof scope);
	if (r->state != LIFE_PREPARING)
		return;
	if (!r->c->gh.have_scope || (!secret_present(&k->pat) && !secret_present(&k->app_key)) ||
	    journal_open_entry(k, scope, &en) != 1) {
		run_post(r, EV_READY);
		return;
	}
	en.name[sizeof en.name - 1] = '\0';
	log_info("predecessor",
		 "an earlier life left runner \"%s\" (id %llu): removing it if it is "
		 "offline",
		 en.name, (unsigned long long)en.id);
	r->runner.id = en.id; /* for the journal; nothing of ours is registered yet */
	if (registrar_predecessor(&r->reg, &r->wish, en.id, en.name, deadline_in(PREDECESSOR_MS)) !=
	    0) {
		run_registrar_lost(r, "takes no orders");
		return;
	}
	ordered(r, false, deadline_in(PREDECESSOR_MS + GRACE_MS));
}

void run_prepare(struct run *r)
{
	int64_t pause = journal_start_pause_ms();

	if (pause > 0) {
		log_warn("backoff",
			 "earlier lives in this container were short: waiting %lld s before "
			 "registering",
			 (long long)((pause + 999) / 1000));
		run_arm(r, TIMER_PAUSE, deadline_in(pause));
		return;
	}
	run_predecessor(r);
}

/* ---- answers ---- */

static void about(struct run *r)
{
	memcpy(&r->runner, &r->report.runner, offsetof(struct gh_runner, files));
	r->runner.n_files = 0;
	r->known = true;
	arm_last_words(r);
	run_post(r, EV_ABOUT);
}

static void registered(struct run *r)
{
	struct journal_entry en;
	struct err e = ERR_INIT;

	answered(r);
	r->runner = r->report.runner;
	r->known = true;
	arm_last_words(r);
	r->registered_ms = clock_mono_ms();
	r->facts.ephemeral = r->runner.ephemeral;
	r->facts.replaced = r->runner.replaced;
	r->facts.job_started = false;
	r->facts.job_done = false;
	memset(&en, 0, sizeof en);
	en.id = r->runner.id;
	(void)str_copy(en.name, sizeof en.name, r->runner.name);
	scope_text(r, en.scope, sizeof en.scope);
	en.at_ms = clock_real_ms();
	r->journalled = r->c->gh.have_scope && journal_add(&r->c->gh.cred, &en, &e) == 0;
	run_post(r, EV_REGISTERED);
}

static void failed(struct run *r)
{
	const struct reg_report *p = &r->report;
	enum log_level level = r->stops > 0 ? LL_INFO : LL_ERROR;

	answered(r);
	log_event(level, "not_registered", NULL, 0, "not registered: %s", p->err.text);
	run_cause(r, p->err.code > 0 ? p->err.code : XC_BUG, p->err.text);
	if (p->unsettled) {
		memcpy(&r->runner, &p->runner, offsetof(struct gh_runner, files));
		r->runner.n_files = 0;
		r->known = true;
		arm_last_words(r);
		run_post(r, EV_UNSETTLED);
		return;
	}
	r->known = false;
	fault_last_words("");
	run_post(r, EV_REFUSED);
}

static void asked(struct run *r, bool ok)
{
	answered(r);
	if (ok && r->report.removal.what == GH_BUSY) {
		if (r->c->idle_ms > 0)
			run_arm(r, TIMER_IDLE, deadline_in(r->c->idle_ms));
		run_post(r, EV_HELD);
		return;
	}
	if (!ok) {
		run_post(r, EV_UNSURE);
		return;
	}
	r->removal = r->report.removal;
	r->removed = true;
	run_post(r, EV_FREE);
}

/* init knows when it first saw the token, not when it was made: one that registered and is refused
 * now has expired, which says nothing about a runner whose job was seen to complete. */
static bool died_early(const struct run *r, const struct err *e)
{
	const struct gh_credentials *k = &r->c->gh.cred;

	return r->facts.ephemeral && r->facts.job_done && e->code == XC_DENIED &&
	       !secret_present(&k->pat) && !secret_present(&k->app_key);
}

/* The answer to a removal. Answers to earlier orders have another number and are passed over. */
static void removal(struct run *r, bool ok)
{
	const struct reg_report *p = &r->report;
	bool waiting = r->state == LIFE_DEREGISTERING || r->state == LIFE_RENEWING;

	if (p->seq != r->order_seq)
		return;
	if (r->asking) {
		asked(r, ok);
		return;
	}
	r->removal = p->removal;
	if (ok && p->removal.what != GH_BUSY) {
		removed(r);
		return;
	}
	if (died_early(r, &p->err)) {
		r->removal.what = GH_GONE;
		r->removal.verified = false;
		removed(r);
		return;
	}
	r->removal_err = p->err;
	log_warn("not_removed", "%s", p->err.text);
	/* A registrar that is out of memory or descriptors may be luckier as a new process. */
	if (waiting && p->err.code == XC_SYSTEM && r->respawns < RESPAWNS_MAX &&
	    deadline_left_ms(removal_due(r)) > 1000) {
		run_registrar_lost(r, "cannot work");
		return;
	}
	kept(r);
}

static void done(struct run *r)
{
	const struct reg_report *p = &r->report;
	struct err e = ERR_INIT;

	if (p->seq != r->order_seq || r->state != LIFE_PREPARING)
		return;
	answered(r);
	if (p->value == 1 && journal_removed(&r->c->gh.cred, r->runner.id, &e) != 0)
		log_debug("journal", "%s", e.text);
	if (p->value < 0)
		log_warn("predecessor", "%s", p->err.text);
	r->runner.id = 0;
	run_post(r, EV_READY);
}

static void report(struct run *r)
{
	switch (r->report.kind) {
	case REG_STARTED:
		if (r->report.seq == r->order_seq)
			run_disarm(r, TIMER_ACK);
		break;
	case REG_ABOUT_TO_ADD:
		about(r);
		break;
	case REG_REGISTERED:
		registered(r);
		break;
	case REG_FAILED:
		failed(r);
		break;
	case REG_REMOVED:
		removal(r, true);
		break;
	case REG_NOT_REMOVED:
		removal(r, false);
		break;
	case REG_DONE:
		done(r);
		break;
	case REG_REPORT__MAX:
	default:
		break;
	}
}

void run_reports(struct run *r)
{
	int n;

	if (r->reg.sock < 0)
		return;
	while ((n = registrar_next(&r->reg, &r->report)) == 1)
		report(r);
	if (n < 0 && r->reg.proc.pid > 0)
		(void)proc_kill(&r->reg.proc, SIGKILL); /* deaf: the reaper goes on from here */
}

/* ---- answers that stay out ---- */

void run_order_late(struct run *r, enum run_timer t)
{
	if (t == TIMER_ACK) {
		run_registrar_lost(r, "does not answer");
		return;
	}
	if (t == TIMER_RESPAWN) {
		run_respawn(r);
		if (r->state == LIFE_DEREGISTERING || r->state == LIFE_RENEWING)
			run_order_remove(r);
		else if (r->state == LIFE_REGISTERING)
			run_order_register(r);
		return;
	}
	if (r->state == LIFE_ASKING || r->state == LIFE_YIELDING) {
		answered(r);
		run_post(r, EV_UNSURE);
	} else if (r->state == LIFE_DEREGISTERING || r->state == LIFE_RENEWING) {
		(void)err_set(&r->removal_err, XC_UNAVAILABLE, 0, "no answer in time");
		kept(r);
	} else {
		run_registrar_lost(r, "is over its time");
	}
}
