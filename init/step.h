/*
 * A step: a short-lived child of PID 1 that stays in this image, does one thing that may block
 * (directories, checks, files), and answers with one report of fixed size over a pipe.
 */
#ifndef INIT_STEP_H
#define INIT_STEP_H

#include "base/deadline.h"
#include "base/err.h"
#include "init/spawn.h"

#include <stddef.h>

enum step_state { STEP_NONE, STEP_RUNNING, STEP_DONE, STEP_BROKEN, STEP__MAX };

struct step {
	struct proc proc;
	int fd;	      /* PID 1's end, non-blocking; -1: none */
	void *report; /* borrowed from step_start until the step is over */
	size_t size, got;
	struct deadline due;
	enum step_state state;
};
#define STEP_INIT                                                                                  \
	{                                                                                          \
		PROC_NONE, -1, NULL, 0, 0, {0}, STEP_NONE                                          \
	}

/* What the child does: fills `report` (its own copy of the `size` bytes given to step_start). */
typedef void step_work(void *arg, void *report);

/* 0 or -1 (XC_SYSTEM). `report` receives the answer; `arg` is what the child sees at the fork. */
int step_start(struct step *s, step_work *work, void *arg, void *report, size_t size,
	       struct deadline due, struct err *e);

/* Reads what there is. STEP_DONE once the whole report is there, STEP_BROKEN when the child ended
 * without one or its deadline passed; each is answered once, then STEP_NONE. Never blocks. */
enum step_state step_poll(struct step *s);

/* Ends it: its answer no longer matters. */
void step_drop(struct step *s);

#endif
