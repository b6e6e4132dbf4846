/*
 * The end: the agent's tree is killed, and after the removal everything else; then the receipt.
 */
#include "base/log.h"
#include "base/str.h"
#include "init/killtree.h"
#include "init/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PASS_MS	     10	    /* between two looks at the tree */
#define GENTLE_MS    500    /* what an agent left behind may clean up */
#define SWEEP_MAX_MS 3000   /* an end that nobody counts the seconds of */
#define TAP_MS	     400    /* the rest of the output, when nothing can write any more */
#define LOCK_MS	     600000 /* GitHub holds a killed job's lock for about ten minutes */

static void name_the_left(const struct run *r, const char *when)
{
	char who[512];
	pid_t spare[2];
	size_t n = run_spare(r, spare);
	int left = killtree_left(spare, n, who, sizeof who);

	if (left > 0)
		log_warn("left", "%d process(es) %s: %s", left, when, who);
}

void run_kill(struct run *r, bool gently)
{
	pid_t spare[2];
	size_t n = run_spare(r, spare);
	int64_t now = clock_mono_ms();
	int64_t tree;

	run_plan(r);
	run_disarm(r, TIMER_KILL);
	run_disarm(r, TIMER_CANCEL);
	if (r->agent.pid > 0) {
		log_warn("agent_kill", "killing the agent and everything below it");
		r->agent_killed = true;
		if (run_job_running(r))
			r->killed_at_ms = clock_real_ms();
	}
	r->gentle = gently;
	/* An end that came early leaves the kill more time, but not for ever. */
	tree = r->plan.tree.at_ms < now + 2000 ? r->plan.tree.at_ms : now + 2000;
	run_arm(r, TIMER_TREE, (struct deadline){tree});
	if (gently) {
		(void)killtree_signal(spare, n, SIGTERM);
		(void)killtree_signal(spare, n, SIGCONT);
		run_arm(r, TIMER_GENTLE,
			deadline_min(deadline_in(GENTLE_MS), (struct deadline){tree - 200}));
	}
	run_kill_pass(r);
}

void run_kill_pass(struct run *r)
{
	pid_t spare[2];
	size_t n = run_spare(r, spare);
	int found;

	if (r->gentle && !deadline_passed(r->timer[TIMER_GENTLE]) &&
	    r->timer[TIMER_GENTLE].at_ms != INT64_MAX) {
		found = killtree_signal(spare, n, 0);
	} else {
		r->gentle = false;
		found = killtree_pass(spare, n);
	}
	if (found == 0) {
		run_disarm(r, TIMER_PASS);
		run_disarm(r, TIMER_GENTLE);
		run_disarm(r, TIMER_TREE);
		run_post(r, EV_TREE_GONE);
		return;
	}
	if (found < 0 && killtree_all())
		log_warn("kill_all", "the tree grows faster than it dies: everything was killed");
	if (deadline_passed(r->timer[TIMER_TREE]) || r->timer[TIMER_TREE].at_ms == INT64_MAX) {
		name_the_left(r, "could not be ended before the removal");
		run_disarm(r, TIMER_PASS);
		run_disarm(r, TIMER_GENTLE);
		run_post(r, EV_TREE_LEFT);
		return;
	}
	run_arm(r, TIMER_PASS, deadline_in(PASS_MS));
}

/* ---- sweep ---- */

void run_sweep(struct run *r)
{
	run_plan(r);
	step_drop(&r->step);
	if (!r->cleaning)
		step_drop(&r->watch);
	registrar_stop(&r->reg);
	for (int t = 0; t < TIMER__MAX; t++)
		run_disarm(r, (enum run_timer)t);
	run_arm(r, TIMER_SWEEP, deadline_min(r->plan.end, deadline_in(SWEEP_MAX_MS)));
	run_arm(r, TIMER_GENTLE, deadline_min(r->plan.end, deadline_in(TAP_MS)));
	run_sweep_pass(r);
}

void run_sweep_pass(struct run *r)
{
	bool tap_time = r->tap.proc.pid > 0 && r->timer[TIMER_GENTLE].at_ms != INT64_MAX;
	bool look_time = r->cleaning && r->timer[TIMER_SWEEP].at_ms != INT64_MAX &&
			 !deadline_passed(r->timer[TIMER_SWEEP]);
	pid_t spare[2];
	size_t n = 0;
	int found;

	if (!look_time) {
		r->cleaning = false;
		step_drop(&r->watch);
	}
	if (tap_time)
		spare[n++] = r->tap.proc.pid;
	if (look_time)
		spare[n++] = r->watch.proc.pid;
	found = killtree_pass(spare, n);
	if (found < 0)
		(void)killtree_all();
	if (!loop_has_children()) {
		run_post(r, EV_SWEPT);
		return;
	}
	if (r->timer[TIMER_SWEEP].at_ms == INT64_MAX || deadline_passed(r->timer[TIMER_SWEEP])) {
		name_the_left(r, "could not be ended and are left");
		run_post(r, EV_SWEPT);
		return;
	}
	run_arm(r, TIMER_PASS, deadline_in(PASS_MS));
}

/* ---- the last line ---- */

static void removed_text(const struct run *r, char *dst, size_t size)
{
	const struct gh_removal *m = &r->removal;
	unsigned long long id = (unsigned long long)r->runner.id;
	const char *name = r->runner.name;

	if (m->what == GH_GONE && r->facts.job_done && r->facts.ephemeral)
		(void)str_fmt(dst, size,
			      "runner \"%s\" (id %llu) removed by the service after its job%s",
			      name, id, m->verified ? "" : " (not verified: token expired)");
	else if (m->what == GH_GONE)
		(void)str_fmt(dst, size,
			      "runner \"%s\" (id %llu) deregistered: it was gone already (%d in "
			      "%lld.%02lld s)",
			      name, id, m->status, (long long)(m->ms / 1000),
			      (long long)(m->ms % 1000 / 10));
	else
		(void)str_fmt(dst, size,
			      "runner \"%s\" (id %llu) deregistered: %d in %lld.%02lld s", name, id,
			      m->status, (long long)(m->ms / 1000), (long long)(m->ms % 1000 / 10));
}

static void ghost_text(const struct run *r, char *dst, size_t size)
{
	char when[64] = "";
	struct tm t;
	time_t at = (time_t)((r->killed_at_ms + LOCK_MS) / 1000);

	if (r->removal.what == GH_BUSY && r->killed_at_ms > 0 && gmtime_r(&at, &t) != NULL &&
	    strftime(when, sizeof when, "; GitHub releases it at about %H:%M:%S UTC", &t) == 0)
		when[0] = '\0';
	(void)str_fmt(dst, size,
		      "runner \"%s\" (id %llu) may still be registered (%s)%s: remove it at %s",
		      r->runner.name, (unsigned long long)r->runner.id, r->removal_err.text, when,
		      r->runner.settings_url[0] ? r->runner.settings_url : r->c->gh.scope.url);
}

/* What still holds the card belongs to the last line: the next container will run into it. */
static void card_text(const struct run *r, char *text, size_t size)
{
	size_t used = strlen(text);

	if (r->looked_clean && r->round.code != XC_OK)
		(void)str_fmt(text + used, size - used, "; %s", r->round.summary);
}

int run_receipt(struct run *r)
{
	bool ghost = r->state == LIFE_EXITED_GHOST;
	int code = life_exit_code(r->code < 0 ? XC_BUG : r->code, ghost);
	char text[2800];

	journal_life_ended(r->ever_job || r->stops > 0);
	if (!r->known)
		return code;
	if (ghost) {
		ghost_text(r, text, sizeof text);
		card_text(r, text, sizeof text);
		log_event(LL_ERROR, "ghost",
			  LOG_FIELDS(LOG_STR("name", r->runner.name), LOG_NUM("id", r->runner.id),
				     LOG_NUM("code", code)),
			  "%s", text);
	} else {
		removed_text(r, text, sizeof text);
		card_text(r, text, sizeof text);
		log_event(LL_INFO, "deregistered",
			  LOG_FIELDS(LOG_STR("name", r->runner.name), LOG_NUM("id", r->runner.id),
				     LOG_NUM("status", r->removal.status),
				     LOG_NUM("ms", r->removal.ms)),
			  "%s", text);
	}
	return code;
}
