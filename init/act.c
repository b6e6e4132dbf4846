/*
 * The actions of the table. Each is a few lines; what needs more lives in the file named in run.h.
 */
#include "base/log.h"
#include "init/run.h"

#include <signal.h>

/* An ephemeral agent ends by itself after its job: it deletes its session and its files first. */
#define LEAVE_MS 60000

size_t run_spare(const struct run *r, pid_t *dst)
{
	size_t n = 0;

	if (r->reg.proc.pid > 0)
		dst[n++] = r->reg.proc.pid;
	if (r->tap.proc.pid > 0)
		dst[n++] = r->tap.proc.pid;
	return n;
}

/* A step that cannot even be started has failed: fork is refused. */
static void start(struct run *r, int rc, const struct err *e)
{
	if (rc == 0)
		return;
	log_error("step", "%s", e->text);
	run_cause(r, e->code, e->text);
	run_post(r, EV_STEP_FAILED);
}

static void steps(struct run *r, uint32_t a)
{
	struct err e = ERR_INIT;

	if (a & ACT_DIRS)
		start(r, run_step_dirs(r, &e), &e);
	if (a & ACT_GATE) {
		if (r->c->gate == TIER_OFF)
			run_post(r, EV_STEP_OK);
		else
			start(r, run_step_gate(r, &e), &e);
	}
	if (a & ACT_WRITE)
		start(r, run_step_files(r, &e), &e);
	if (a & ACT_LOOK) {
		run_arm(r, TIMER_JUDGE, deadline_in(3000));
		if (run_step_look(r, false, &e) != 0)
			run_judge(r);
	}
}

static void wait_restart(struct run *r)
{
	struct err e = ERR_INIT;
	int64_t delay = r->verdict.delay_ms;

	if (r->verdict.what == AGENT_UPDATE) {
		log_info("agent_update", "the agent updates itself: waiting for it");
		start(r, run_step_look(r, true, &e), &e);
		return;
	}
	/* Full jitter on the upper half: agents that failed together do not return together. */
	delay = delay / 2 +
		(int64_t)((uint64_t)clock_real_ms() * 2654435761U % (uint64_t)(delay / 2 + 1));
	log_warn("agent_restart", "%s: starting it again in %lld ms", r->verdict.why,
		 (long long)delay);
	run_arm(r, TIMER_RESTART, deadline_in(delay));
}

static void interrupt(struct run *r)
{
	run_plan(r);
	run_disarm(r, TIMER_CANCEL);
	run_disarm(r, TIMER_IDLE);
	run_disarm(r, TIMER_LOST);
	stop_plan_cancel(&r->plan, clock_mono_ms());
	/* The listener alone: a signal to its group would hit the job's steps before the listener
	 * cancels them in order. CONT, since a stopped process keeps a signal pending. */
	if (r->agent.pid < 0) {
		run_post(r, EV_AGENT_END);
		return;
	}
	(void)proc_kill(&r->agent, SIGINT);
	(void)proc_kill(&r->agent, SIGCONT);
	run_arm(r, TIMER_KILL, r->plan.kill);
}

static void late_actions(struct run *r, uint32_t a)
{
	if (a & ACT_DRAIN) {
		log_info("drain", "draining: waiting up to %lld s for the running job",
			 (long long)(deadline_left_ms(r->plan.cancel) / 1000));
		run_arm(r, TIMER_CANCEL, r->plan.cancel);
	}
	if (a & ACT_LEAVE)
		run_arm(r, TIMER_CANCEL, deadline_in(LEAVE_MS));
	if (a & ACT_INT)
		interrupt(r);
	if (a & ACT_KILL)
		run_kill(r, false);
	if (a & ACT_CLEAR)
		run_kill(r, true);
	if (a & ACT_REMOVE) {
		run_step_clean(r);
		run_order_remove(r);
	}
	if (a & ACT_SWEEP)
		run_sweep(r);
	if (a & ACT_EXIT)
		r->done = true;
}

void run_act(struct run *r, uint32_t a)
{
	if (a & ACT_DROP)
		step_drop(&r->step);
	if (a & ACT_RESPAWN)
		run_respawn(r);
	steps(r, a);
	if (a & ACT_PREPARE)
		run_prepare(r);
	if (a & ACT_REGISTER)
		run_order_register(r);
	if (a & ACT_FINISH) {
		run_arm(r, TIMER_ORDER, r->plan.tree);
		if (registrar_finish(&r->reg) != 0)
			run_registrar_lost(r, "does not take orders");
	}
	if (a & ACT_START)
		run_agent_start(r);
	if (a & ACT_WAIT)
		wait_restart(r);
	if (a & ACT_ASK)
		run_order_ask(r);
	late_actions(r, a);
}
