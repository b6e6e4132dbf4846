#include "init/run.h"

#include "base/log.h"
#include "base/str.h"
#include "init/fault.h"
#include "init/sig.h"

#include <string.h>

/* When nobody asked to stop, the end may take longer: GitHub may be away for a moment, and no
 * orchestrator is counting. */
#define OWN_END_MS 20000

void run_post(struct run *r, enum life_event ev)
{
	if (r->queued == RUN_QUEUE_MAX) { /* a loop among the handlers: a bug */
		log_error("bug", "event %s lost: queue full", life_event_name(ev));
		return;
	}
	r->queue[r->queued++] = ev;
}

void run_arm(struct run *r, enum run_timer t, struct deadline d)
{
	r->timer[t] = d;
}

void run_disarm(struct run *r, enum run_timer t)
{
	r->timer[t] = DEADLINE_NEVER;
}

void run_cause(struct run *r, int code, const char *why)
{
	if (r->code >= 0)
		return;
	r->code = code;
	(void)str_copyn(r->why, sizeof r->why, why, strnlen(why, sizeof r->why - 1));
}

void run_plan(struct run *r)
{
	int64_t own = r->c->stop_ms > OWN_END_MS ? r->c->stop_ms : OWN_END_MS;

	if (!r->plan.made)
		stop_plan_make(&r->plan, clock_mono_ms(), own, 0);
}

void run_publish(struct run *r)
{
	struct state_view v = {0};

	v.state = life_public_name(r->state);
	v.since_ms = r->since_ms;
	v.runner = r->known && life_registered(r->state) ? &r->runner : NULL;
	v.url = r->c->gh.have_scope ? r->c->gh.scope.url : "";
	v.job = r->job;
	v.job_since_ms = r->job_since_ms;
	v.gpu = "unknown";
	if (r->c->gpu == PROBE_GPU_OFF)
		v.gpu = "off";
	else if (r->gate.gpu_seen)
		v.gpu = r->gate.gpu_ok ? "ok" : "failed";
	v.error_code = r->code > 0 ? r->code : 0;
	v.error_msg = r->why;
	state_write(&v);
}

static void handle(struct run *r, enum life_event ev)
{
	struct life_move m = life_next(r->state, ev);
	bool shown = strcmp(life_public_name(r->state), life_public_name(m.next)) != 0;

	log_debug("life", "%s + %s -> %s", life_state_name(r->state), life_event_name(ev),
		  life_state_name(m.next));
	if (r->state == LIFE_ASKING && (m.next == LIFE_LISTENING || m.next == LIFE_BUSY)) {
		r->code = -1; /* there is a job after all: the reason to end is void */
		r->why[0] = '\0';
	}
	r->state = m.next;
	if (shown)
		r->since_ms = clock_real_ms();
	run_act(r, m.actions);
	if (shown)
		run_publish(r);
}

static void handle_all(struct run *r)
{
	while (r->queued > 0 && !r->done) {
		enum life_event ev = r->queue[0];

		r->queued--;
		memmove(r->queue, r->queue + 1, r->queued * sizeof r->queue[0]);
		handle(r, ev);
	}
}

/* ---- what happens ---- */

static void stop_signal(struct run *r, const struct signalfd_siginfo *si)
{
	char name[24], origin[128];
	int64_t now = clock_mono_ms();
	bool same = r->stops > 0 && now - r->last_stop_ms < STOP_SAME_MS;

	sig_origin(si, origin, sizeof origin);
	log_info("signal", "%s %s%s", sig_name((int)si->ssi_signo, name, sizeof name), origin,
		 same ? ", counted as one with the last" : "");
	if (same)
		return;
	r->last_stop_ms = now;
	r->stops++;
	if (r->stops == 1) {
		bool busy = run_job_running(r) || r->state == LIFE_LISTENING;
		int64_t drain = busy ? r->c->drain_ms : 0;
		struct stop_plan old = r->plan;

		run_cause(r, XC_OK, "asked to stop");
		stop_plan_make(&r->plan, now, r->c->stop_ms, drain);
		if (old.made && old.end.at_ms < r->plan.end.at_ms)
			r->plan = old;
		/* Nothing begins anew, but from now on somebody counts the seconds. */
		if (r->state == LIFE_DEREGISTERING)
			run_arm(r, TIMER_ORDER, r->plan.remove);
		run_post(r, drain > 0 ? EV_DRAIN : EV_STOP);
		return;
	}
	if (r->stops == 2) {
		stop_plan_cancel(&r->plan, now);
		run_post(r, EV_STOP);
		return;
	}
	stop_plan_kill(&r->plan, now);
	run_post(r, EV_KILL);
}

static void signals(struct run *r)
{
	struct signalfd_siginfo si;

	while (loop_signal(&r->loop, &si))
		if (sig_is_stop((int)si.ssi_signo))
			stop_signal(r, &si);
}

/* Reports are read before an end is acted on: whatever a child had to say, it said before. */
static void ended(struct run *r, pid_t pid, int status)
{
	if (pid == r->agent.pid) {
		proc_gone(&r->agent);
		run_agent_ended(r, status);
	} else if (pid == r->reg.proc.pid) {
		run_reports(r);
		run_registrar_ended(r);
	} else if (pid == r->tap.proc.pid) {
		run_tap_reports(r);
		proc_gone(&r->tap.proc);
		run_tap_lost(r);
	}
}

static void children(struct run *r)
{
	pid_t pid;
	int status;

	while (loop_reap(&r->loop, &pid, &status)) {
		ended(r, pid, status);
		handle_all(r);
	}
}

static void timer_due(struct run *r, enum run_timer t)
{
	static const enum life_event plain[TIMER__MAX] = {
		[TIMER_CANCEL] = EV_CANCEL_DUE,
		[TIMER_KILL] = EV_KILL_DUE,
		[TIMER_RESTART] = EV_RESTART,
	};
	struct err e = ERR_INIT;

	run_disarm(r, t);
	switch (t) {
	case TIMER_PAUSE:
		run_predecessor(r);
		break;
	case TIMER_CANCEL:
	case TIMER_KILL:
	case TIMER_RESTART:
		run_post(r, plain[t]);
		break;
	case TIMER_ORDER:
	case TIMER_ACK:
	case TIMER_RESPAWN:
		run_order_late(r, t);
		break;
	case TIMER_PASS:
	case TIMER_GENTLE:
	case TIMER_TREE:
	case TIMER_SWEEP:
		if (r->state == LIFE_KILLING)
			run_kill_pass(r);
		else
			run_sweep_pass(r);
		break;
	case TIMER_JUDGE:
		run_judge(r);
		break;
	case TIMER_IDLE:
	case TIMER_LOST:
		run_idle_over(r);
		break;
	case TIMER_WATCH:
		if (r->state == LIFE_LISTENING && run_step_watch(r, &e) != 0)
			log_warn("watch", "%s", e.text);
		run_arm(r, TIMER_WATCH, deadline_in(r->c->gpu_watch_ms));
		break;
	case TIMER__MAX:
		break;
	}
}

static struct deadline nearest(const struct run *r)
{
	struct deadline d = DEADLINE_NEVER;

	for (int t = 0; t < TIMER__MAX; t++)
		d = deadline_min(d, r->timer[t]);
	if (r->step.state == STEP_RUNNING)
		d = deadline_min(d, r->step.due);
	if (r->watch.state == STEP_RUNNING)
		d = deadline_min(d, r->watch.due);
	return d;
}

static void reports(struct run *r)
{
	enum step_state s;

	run_reports(r);
	handle_all(r);
	run_tap_reports(r);
	handle_all(r);
	s = step_poll(&r->step);
	if (s == STEP_DONE || s == STEP_BROKEN)
		run_step_over(r, s);
	handle_all(r);
	s = step_poll(&r->watch);
	if (s == STEP_DONE || s == STEP_BROKEN)
		run_watch_over(r, s);
	handle_all(r);
}

static void turn(struct run *r)
{
	r->loop.fds[SLOT_REGISTRAR] = r->reg.sock;
	r->loop.fds[SLOT_TAP] = r->tap_deaf ? -1 : r->tap.report_r;
	r->loop.fds[SLOT_STEP] = r->step.fd;
	r->loop.fds[SLOT_WATCH] = r->watch.fd;
	loop_wait(&r->loop, nearest(r));
	signals(r);
	handle_all(r);
	reports(r);
	children(r);
	for (int t = 0; t < TIMER__MAX; t++)
		if (r->timer[t].at_ms != INT64_MAX && deadline_passed(r->timer[t])) {
			timer_due(r, (enum run_timer)t);
			handle_all(r);
		}
}

static void prepare(struct run *r, struct config *c, char **envp)
{
	r->c = c;
	r->envp = envp;
	r->code = -1;
	r->agent = (struct proc)PROC_NONE;
	r->tap = (struct tap)TAP_INIT;
	r->step = (struct step)STEP_INIT;
	r->watch = (struct step)STEP_INIT;
	r->since_ms = clock_real_ms();
	for (int t = 0; t < TIMER__MAX; t++)
		run_disarm(r, (enum run_timer)t);
	registrar_init(&r->reg);
}

int run_life(struct config *c, char **envp)
{
	static struct run r; /* nothing is allocated after the start */
	struct err e = ERR_INIT;

	prepare(&r, c, envp);
	state_open(c->state_dir, c->state_dir_given);
	/* First of all children, while there are still pids and memory to be had. */
	if (registrar_start(&r.reg, &c->gh, c->as_root && c->user.switching, &e) != 0) {
		log_error("start", "%s", e.text);
		return e.code;
	}
	fault_arm();
	fault_registrar(r.reg.sock);
	if (loop_init(&r.loop, &e) != 0) {
		log_error("start", "%s", e.text);
		registrar_stop(&r.reg);
		return e.code;
	}
	r.agent_env = config_agent_env(c, envp);
	run_publish(&r);
	run_post(&r, EV_BEGIN);
	handle_all(&r);
	while (!r.done)
		turn(&r);
	return run_receipt(&r);
}
