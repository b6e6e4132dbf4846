#include "init/agent.h"

#include "base/exitcode.h"
#include "base/str.h"

#include <stdio.h>
#include <sys/wait.h>

#define RETRY_FIRST_MS	500
#define RETRY_CAP_MS	30000
/* A replaced registration whose session ends this soon lost a race against the old holder. */
#define LOST_AT_ONCE_MS 60000

enum agent_exit {
	EXIT_OK = 0,
	EXIT_TERMINATED = 1,
	EXIT_RETRYABLE = 2,
	EXIT_UPDATING = 3,
	EXIT_ONCE_UPDATING = 4,
	EXIT_CONFLICT = 5,
	EXIT_DEPRECATED = 7,
	EXIT_JOB_FIRST = 100,
	EXIT_JOB_LAST = 105
};

static void over(struct agent_verdict *v, int code, const char *why)
{
	v->what = AGENT_OVER;
	v->code = code;
	v->delay_ms = 0;
	(void)str_fmt(v->why, sizeof v->why, "%s", why);
}

/* Names the fact first; the text of a line is the agent's and stays in the log where it was. */
static void lost(const struct agent_facts *f, struct agent_verdict *v)
{
	bool soon = f->replaced && f->since_registered_ms < LOST_AT_ONCE_MS && !f->job_started;

	if (soon && f->can_renew) {
		over(v, XC_AGAIN, "the registration was lost right after it replaced another");
		v->what = AGENT_FRESH;
		return;
	}
	over(v, XC_AGAIN, "GitHub no longer knows this registration: start again");
}

static void ended_well(const struct agent_facts *f, struct agent_verdict *v)
{
	if (f->job_done)
		over(v, XC_OK, "job done");
	else if (f->last == TAP_DELETED)
		lost(f, v);
	else if (f->ephemeral && !f->job_started && f->looked && !f->runner_file)
		over(v, XC_AGAIN,
		     "the agent gave its registration up without a job (withdrawn): "
		     "start again");
	else
		over(v, XC_OK, "the agent ended by itself");
}

static void terminated(const struct agent_facts *f, struct agent_verdict *v)
{
	switch (f->last) {
	case TAP_DELETED:
		lost(f, v);
		return;
	case TAP_VERSION:
		over(v, XC_VERSION,
		     "GitHub refuses this runner version as too old: rebuild the "
		     "image with a newer RUNNER_VERSION");
		return;
	case TAP_NO_PERMISSION:
		over(v, XC_FILES, "the agent cannot use its directories: its last line names one");
		return;
	case TAP_NOT_CONFIGURED:
		over(v, XC_BUG, "the agent does not accept the files that init wrote");
		return;
	case TAP_CONNECTED:
	case TAP_LISTENING:
	case TAP_JOB_STARTED:
	case TAP_JOB_DONE:
	case TAP_CONFLICT:
	case TAP_CONNECT_ERROR:
	case TAP_RECONNECTED:
	case TAP_UPDATING:
	case TAP_UPDATED:
	case TAP_EXITING:
	case TAP_ERROR:
	case TAP_EOF:
	case TAP_LINE__MAX:
		break;
	}
	over(v, XC_AGAIN, "the agent gave up (status 1): its last line says why");
}

/* Whether the registration has been used up: an ephemeral agent that took its job is never started
 * again, since GitHub drops the runner with the job. */
static bool used_up(const struct agent_facts *f, struct agent_verdict *v)
{
	if (!f->ephemeral || !f->job_started)
		return false;
	if (f->job_done)
		over(v, XC_OK, "job done");
	else
		over(v, XC_AGAIN, "the agent failed while its only job ran: start again");
	return true;
}

static void retry(const struct agent_facts *f, struct agent_verdict *v)
{
	unsigned n = f->listened ? 0 : f->retries;
	int64_t delay = RETRY_FIRST_MS;

	if (used_up(f, v))
		return;
	if (n >= AGENT_RETRIES_MAX) {
		over(v, XC_AGAIN, "the agent failed again and again without ever listening");
		return;
	}
	while (n-- > 0 && delay < RETRY_CAP_MS)
		delay *= 2;
	v->what = AGENT_AGAIN;
	v->code = XC_AGAIN;
	v->delay_ms = delay < RETRY_CAP_MS ? delay : RETRY_CAP_MS;
	(void)str_copy(v->why, sizeof v->why, "the agent asked to be started again (status 2)");
}

static void update(const struct agent_facts *f, struct agent_verdict *v)
{
	if (used_up(f, v))
		return;
	if (f->disable_update) {
		over(v, XC_AGAIN,
		     "the agent wants to update itself although RUNNER_DISABLE_UPDATE "
		     "forbids it: rebuild the image with a newer RUNNER_VERSION, or allow it");
		return;
	}
	if (!f->listened && f->updates >= AGENT_UPDATES_MAX) {
		over(v, XC_AGAIN,
		     "the agent updates itself again and again without ever listening");
		return;
	}
	v->what = AGENT_UPDATE;
	v->code = XC_AGAIN;
	v->delay_ms = 0;
	(void)str_copy(v->why, sizeof v->why, "the agent updates itself");
}

static void killed(const struct agent_facts *f, struct agent_verdict *v, int signo)
{
	if (f->job_done && f->ephemeral) {
		over(v, XC_OK, "job done (the agent was killed on its way out)");
		return;
	}
	v->what = AGENT_OVER;
	v->code = XC_AGAIN;
	v->delay_ms = 0;
	if (f->oom)
		(void)str_fmt(v->why, sizeof v->why,
			      "the agent was killed by signal %d: out of memory (the container's "
			      "limit): raise it",
			      signo);
	else
		(void)str_fmt(v->why, sizeof v->why, "the agent was killed by signal %d", signo);
}

static void conflict(const struct agent_facts *f, struct agent_verdict *v)
{
	over(v, XC_AGAIN, "another agent holds the session of this registration");
	if (f->can_renew && !f->job_started)
		v->what = AGENT_FRESH;
}

void agent_judge(const struct agent_facts *f, struct agent_verdict *v)
{
	int code = WIFEXITED(f->wait_status) ? WEXITSTATUS(f->wait_status) : -1;

	if (WIFSIGNALED(f->wait_status)) {
		killed(f, v, WTERMSIG(f->wait_status));
		return;
	}
	if (code >= EXIT_JOB_FIRST && code <= EXIT_JOB_LAST)
		code = EXIT_OK;
	switch (code) {
	case EXIT_OK:
		ended_well(f, v);
		break;
	case EXIT_TERMINATED:
		terminated(f, v);
		break;
	case EXIT_RETRYABLE:
		retry(f, v);
		break;
	case EXIT_UPDATING:
	case EXIT_ONCE_UPDATING:
		update(f, v);
		break;
	case EXIT_CONFLICT:
		conflict(f, v);
		break;
	case EXIT_DEPRECATED:
		over(v, XC_VERSION,
		     "GitHub refuses this runner version as too old: rebuild the "
		     "image with a newer RUNNER_VERSION");
		break;
	default:
		if (code > XC_SIGNAL && code <= XC_SIGNAL + 64) {
			killed(f, v, code - XC_SIGNAL);
			break;
		}
		over(v, XC_AGAIN, "the agent ended in a way that it does not document");
		(void)str_fmt(v->why, sizeof v->why, "the agent ended with status %d", code);
		break;
	}
}
