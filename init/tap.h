/*
 * The tap: a child that copies the agent's stdout and stderr to the container's, byte for byte, and
 * reports the lines that mark its state. PID 1 holds the read ends, so that a tap that dies is
 * started again without loss where the kernel can splice (tee to look, splice to move), else with
 * at most one buffer.
 */
#ifndef INIT_TAP_H
#define INIT_TAP_H

#include "base/err.h"
#include "init/spawn.h"

#include <stdbool.h>

/* State lines of Runner.Listener, recognised only where the time stamp anchors them
 * (listener.md 8; actions/runner src/Runner.Listener/Runner.cs, MessageListener.cs). */
enum tap_line {
	TAP_CONNECTED,	   /* Connected to GitHub: not yet a session */
	TAP_LISTENING,	   /* <time>: Listening for Jobs */
	TAP_JOB_STARTED,   /* <time>: Running job: ... */
	TAP_JOB_DONE,	   /* <time>: Job ... completed with result: ... */
	TAP_CONFLICT,	   /* A session for this runner already exists. */
	TAP_CONNECT_ERROR, /* <time>: Runner connect error: ... */
	TAP_RECONNECTED,
	TAP_DELETED,  /* registration deleted, not found, invalid_client */
	TAP_UPDATING, /* Runner update in progress */
	TAP_UPDATED,
	TAP_VERSION,	   /* version deprecated / refused */
	TAP_NO_PERMISSION, /* directory or permission error */
	TAP_NOT_CONFIGURED,
	TAP_EXITING,
	TAP_ERROR, /* An error occurred: ... */
	TAP_EOF,   /* both streams ended: everything was copied */
	TAP_LINE__MAX
};

/* Fixed-size report, one write each (below PIPE_BUF). */
struct tap_report {
	enum tap_line line;
	int64_t at_ms;	 /* CLOCK_MONOTONIC */
	char result[32]; /* TAP_JOB_DONE: Succeeded, Failed, Canceled ...; else "" */
	char text[200];	 /* the line, printable and cut, for messages */
};

/* Pure: what one line (without its newline, `n` bytes) means. 1 with *out, 0 when nothing. */
int tap_classify(const char *line, size_t n, struct tap_report *out);

struct tap {
	struct proc proc;
	int out_r, err_r; /* read ends of the agent's streams, kept by PID 1 */
	int report_r;	  /* reports come here, non-blocking */
};
#define TAP_INIT                                                                                   \
	{                                                                                          \
		PROC_NONE, -1, -1, -1                                                              \
	}

/* Makes the pipes (the write ends, for the agent, go to *out_w and *err_w, which the caller closes
 * after the spawn) and starts the child. 0 or -1 (XC_SYSTEM). */
int tap_start(struct tap *t, int *out_w, int *err_w, struct err *e);
/* After the tap died: a new one on the same pipes. 0 or -1. */
int tap_restart(struct tap *t, struct err *e);
/* Next report: 1, 0 when there is none now, -1 when the report pipe ended (the tap died). Never
 * blocks. */
int tap_next(struct tap *t, struct tap_report *out);
void tap_stop(struct tap *t); /* closes everything; the child ends by itself on EOF */

#endif
