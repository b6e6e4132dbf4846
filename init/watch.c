/*
 * The agent: started with its tap, followed by its lines, judged by what is known at its end.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "init/killtree.h"
#include "init/oom.h"
#include "init/run.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* An agent that says that its registration is gone and does not end has this long. */
#define LOST_MS	      30000
/* From the end of a job to the look at what it left on the card. */
#define AFTER_JOB_MS  1000
/* Its last words: looked for at this pace, and for this long at most. */
#define JUDGE_PACE_MS 200
#define JUDGE_MAX_MS  3000

#define WORKER "Runner.Worker"

bool run_job_running(const struct run *r)
{
	return r->agent.pid > 0 && (r->job || killtree_has(r->agent.pid, WORKER));
}

static int start(struct run *r, int out_w, int err_w, struct err *e)
{
	char path[sizeof r->c->root + 32];
	const char *argv[] = {path, "run", NULL};
	struct spawn_spec s;

	if (str_fmt(path, sizeof path, "%s/bin/Runner.Listener", r->c->root) != 0)
		return err_set(e, XC_FILES, 0, "the runner root's path is too long");
	memset(&s, 0, sizeof s);
	s.argv = argv;
	s.envp = r->agent_env;
	s.cwd = r->c->root; /* an update leaves its mark in the working directory */
	s.in = -1;
	s.out = out_w;
	s.err = err_w;
	s.null_in = true;
	s.group = SPAWN_SESSION;
	s.user = r->c->user.switching ? &r->c->user : NULL;
	return spawn_exec(&s, &r->agent, e);
}

void run_agent_start(struct run *r)
{
	cleanup_fd int out_w = -1;
	cleanup_fd int err_w = -1;
	struct err e = ERR_INIT;
	int rc;

	r->tap_ended = false;
	r->tap_deaf = false;
	r->looked = false;
	r->job = false;
	r->lost_ms = 0;
	r->facts.listened = false;
	r->facts.last = TAP_LINE__MAX;
	r->oom_before = oom_kills();
	tap_stop(&r->tap); /* of an earlier start */
	rc = tap_start(&r->tap, &out_w, &err_w, &e);
	if (rc == 0)
		rc = start(r, out_w, err_w, &e);
	if (rc != 0) {
		log_error("agent_start", "%s", e.text);
		run_cause(r, e.code, e.text);
		run_post(r, EV_NOT_UP);
		return;
	}
	log_info("agent_started", "agent started (pid %d)", (int)r->agent.pid);
}

/* ---- lines ---- */

static void listening(struct run *r)
{
	r->facts.listened = true;
	r->retries = 0;
	r->updates = 0;
	r->lost_ms = 0;
	run_disarm(r, TIMER_LOST);
	log_info("listening", "listening for jobs");
	if (r->c->idle_ms > 0)
		run_arm(r, TIMER_IDLE, deadline_in(r->c->idle_ms));
	if (r->c->gate != TIER_OFF && r->gate.gpu_seen && r->c->gpu_watch_ms > 0)
		run_arm(r, TIMER_WATCH, deadline_in(r->c->gpu_watch_ms));
	run_post(r, EV_LISTENING);
}

static void job_started(struct run *r)
{
	r->job = true;
	r->job_since_ms = clock_real_ms();
	r->ever_job = true;
	r->facts.job_started = true;
	r->facts.job_done = false;
	r->lost_ms = 0;
	run_disarm(r, TIMER_IDLE);
	run_disarm(r, TIMER_LOST);
	log_info("job_started", "a job started");
	run_post(r, EV_JOB);
}

static void job_done(struct run *r, const char *result)
{
	r->job = false;
	r->facts.job_done = true;
	log_event(LL_INFO, "job_completed", LOG_FIELDS(LOG_STR("result", result)),
		  "the job completed: %s", result);
	if (r->c->idle_ms > 0)
		run_arm(r, TIMER_IDLE, deadline_in(r->c->idle_ms));
	/* What the job left on the card is named before the next one finds it. */
	if (!r->facts.ephemeral && r->timer[TIMER_WATCH].at_ms != INT64_MAX) {
		r->after_job = true;
		run_arm(r, TIMER_WATCH, deadline_in(AFTER_JOB_MS));
	}
	run_post(r, r->facts.ephemeral ? EV_LAST_DONE : EV_JOB_DONE);
}

static void line(struct run *r, const struct tap_report *t)
{
	switch (t->line) {
	case TAP_LISTENING:
		listening(r);
		break;
	case TAP_JOB_STARTED:
		job_started(r);
		break;
	case TAP_JOB_DONE:
		job_done(r, t->result);
		break;
	case TAP_DELETED:
		r->facts.last = t->line;
		if (r->lost_ms == 0 && !r->job) {
			r->lost_ms = clock_mono_ms();
			run_arm(r, TIMER_LOST, deadline_in(LOST_MS));
		}
		break;
	case TAP_CONFLICT:
	case TAP_VERSION:
	case TAP_NO_PERMISSION:
	case TAP_NOT_CONFIGURED:
		r->facts.last = t->line;
		break;
	case TAP_ERROR: /* the generic line may follow the one that explains it */
		if (r->facts.last == TAP_LINE__MAX)
			r->facts.last = t->line;
		break;
	case TAP_RECONNECTED:
		r->lost_ms = 0;
		run_disarm(r, TIMER_LOST);
		break;
	case TAP_EOF:
		r->tap_ended = true;
		run_judge(r);
		break;
	case TAP_CONNECTED:
	case TAP_CONNECT_ERROR:
	case TAP_UPDATING:
	case TAP_UPDATED:
	case TAP_EXITING:
	case TAP_LINE__MAX:
		break;
	}
}

void run_tap_reports(struct run *r)
{
	struct tap_report t;
	int n;

	if (r->tap.report_r < 0 || r->tap_deaf)
		return;
	while ((n = tap_next(&r->tap, &t)) == 1) {
		t.text[sizeof t.text - 1] = '\0';
		t.result[sizeof t.result - 1] = '\0';
		line(r, &t);
	}
	/* The tap is gone. An ended pipe is readable for ever: watching it would be a busy loop. */
	if (n < 0)
		r->tap_deaf = true;
}

/* PID 1 holds the read ends, so what the agent wrote meanwhile waits in the pipes. */
void run_tap_lost(struct run *r)
{
	struct err e = ERR_INIT;

	if (r->tap_ended || r->tap.out_r < 0)
		return;
	log_warn("tap", "the tap ended unexpectedly: starting it again");
	r->tap_deaf = false;
	if (tap_restart(&r->tap, &e) != 0)
		log_error("tap", "%s", e.text);
	/* Lines may have been lost with it: the tree says whether a job runs. */
	if (r->agent.pid > 0 && !r->job && killtree_has(r->agent.pid, WORKER))
		job_started(r);
}

/* ---- idle, or lost ---- */

void run_idle_over(struct run *r)
{
	bool lost = r->lost_ms != 0 && clock_mono_ms() - r->lost_ms >= LOST_MS;
	char why[128];

	if (r->state != LIFE_LISTENING && r->state != LIFE_CONNECTING)
		return;
	if (run_job_running(r)) { /* the tree knows of a job that no line told of */
		job_started(r);
		return;
	}
	if (lost) {
		run_cause(r, XC_AGAIN,
			  "GitHub no longer knows this registration, and the agent does "
			  "not end: start again");
	} else {
		(void)str_fmt(why, sizeof why, "no job for %lld s",
			      (long long)(r->c->idle_ms / 1000));
		run_cause(r, XC_OK, why);
	}
	log_info("ending", "%s", r->why);
	run_post(r, EV_END);
}

/* ---- the end ---- */

static void say_end(const struct run *r, int status)
{
	if (WIFSIGNALED(status))
		log_warn("agent_ended", "the agent was killed by signal %d%s", WTERMSIG(status),
			 r->facts.oom ? ": out of memory" : "");
	else
		log_info("agent_ended", "the agent ended with status %d", WEXITSTATUS(status));
}

void run_agent_ended(struct run *r, int status)
{
	r->facts.wait_status = status;
	r->facts.oom = r->oom_before >= 0 && oom_kills() > r->oom_before;
	r->ended_ms = clock_mono_ms();
	run_disarm(r, TIMER_KILL);
	run_disarm(r, TIMER_CANCEL);
	run_disarm(r, TIMER_IDLE);
	run_disarm(r, TIMER_LOST);
	run_disarm(r, TIMER_WATCH);
	/* A job of our own uid may have stopped it; its reports decide what the end meant. */
	(void)proc_kill(&r->tap.proc, SIGCONT);
	run_tap_reports(r);
	say_end(r, status);
	run_post(r, EV_AGENT_END);
}

/* Everything that the agent wrote has been looked at: the streams ended, or, where something else
 * keeps them open, the pipes are empty. */
static bool words_read(const struct run *r)
{
	int out = 0, err = 0;
	int64_t passed = clock_mono_ms() - r->ended_ms;

	if (r->tap_ended || r->tap.out_r < 0 || passed >= JUDGE_MAX_MS)
		return true;
	if (passed < JUDGE_PACE_MS)
		return false;
	if (ioctl(r->tap.out_r, FIONREAD, &out) != 0 || ioctl(r->tap.err_r, FIONREAD, &err) != 0)
		return true;
	return out == 0 && err == 0;
}

static void log_verdict(const struct run *r)
{
	enum log_level level = r->verdict.code == XC_OK ? LL_INFO : LL_WARN;

	log_event(level, "agent_verdict", NULL, 0, "%s", r->verdict.why);
}

void run_judge(struct run *r)
{
	bool late = clock_mono_ms() - r->ended_ms >= JUDGE_MAX_MS;

	if (r->state != LIFE_JUDGING)
		return;
	if ((!r->looked && !late) || !words_read(r)) {
		run_arm(r, TIMER_JUDGE, deadline_in(JUDGE_PACE_MS));
		return;
	}
	run_disarm(r, TIMER_JUDGE);
	run_tap_reports(r);
	r->job = false;
	r->facts.disable_update = r->c->gh.disable_update;
	r->facts.since_registered_ms = clock_mono_ms() - r->registered_ms;
	r->facts.can_renew =
		r->renewals == 0 && r->runner.flow != GH_JIT && gh_can_remove(&r->c->gh);
	r->facts.retries = r->retries;
	r->facts.updates = r->updates;
	agent_judge(&r->facts, &r->verdict);
	log_verdict(r);
	switch (r->verdict.what) {
	case AGENT_AGAIN:
		r->retries++;
		run_post(r, EV_AGAIN);
		break;
	case AGENT_UPDATE:
		r->updates++;
		run_post(r, EV_AGAIN);
		break;
	case AGENT_FRESH:
		r->renewals++;
		r->register_due = deadline_in(r->c->gh.register_ms);
		run_post(r, EV_FRESH);
		break;
	case AGENT_OVER:
	case AGENT_WHAT__MAX:
		run_cause(r, r->verdict.code, r->verdict.why);
		run_post(r, EV_OVER);
		break;
	}
}
