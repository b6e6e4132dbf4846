/*
 * What the end of the agent means: decided from facts, not from its exit code alone. Pure.
 * Codes: actions/runner src/Runner.Common/Constants.cs (ReturnCode); what each hides:
 * src/Runner.Listener/Runner.cs, MessageListener.cs, src/Misc/layoutroot/run.sh.
 */
#ifndef INIT_AGENT_H
#define INIT_AGENT_H

#include "init/tap.h"

#include <stdbool.h>
#include <stdint.h>

#define AGENT_RETRIES_MAX 7 /* exits with "retryable" in a row: about a minute of trying */
#define AGENT_UPDATES_MAX 3 /* updates in a row without ever listening */

struct agent_facts {
	int wait_status;     /* as waitpid gave it */
	bool ephemeral;	     /* one job, then GitHub drops the registration */
	bool job_started;    /* in this registration */
	bool job_done;	     /* the last job was seen to complete */
	bool listened;	     /* this start reached "Listening for Jobs" */
	bool looked;	     /* the two below are known */
	bool runner_file;    /* .runner is still there */
	bool binary;	     /* bin/Runner.Listener is there and executable */
	bool disable_update; /* RUNNER_DISABLE_UPDATE */
	bool oom;	     /* the cgroup's oom_kill counter rose while it ran */
	enum tap_line last;  /* last line that explains an end (DELETED, CONFLICT, VERSION,
				NO_PERMISSION, NOT_CONFIGURED, ERROR); TAP_LINE__MAX: none */
	bool can_renew; /* a credential that registers again, and no renewal in this life yet */
	bool replaced;	/* the registration took the place of another */
	int64_t since_registered_ms;
	unsigned retries; /* restarts in a row, this one not counted */
	unsigned updates; /* updates in a row, this one not counted */
};

enum agent_what {
	AGENT_OVER,   /* the life ends with `code` */
	AGENT_AGAIN,  /* start it again after delay_ms */
	AGENT_UPDATE, /* start it again once its update is in place */
	AGENT_FRESH,  /* register once more */
	AGENT_WHAT__MAX
};

struct agent_verdict {
	enum agent_what what;
	int code;	  /* exit status of init for AGENT_OVER */
	int64_t delay_ms; /* AGENT_AGAIN, before jitter */
	char why[200];	  /* for the log and last_error: the fact, and what to do */
};

void agent_judge(const struct agent_facts *f, struct agent_verdict *v);

#endif
