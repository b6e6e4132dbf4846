/*
 * A stop, scheduled backwards from its budget. Pure.
 *
 *	signal ---drain---> cancel ---the agent's time---> kill --tree--> remove --------> sweep -->
 *end
 *	                                                                  |<- 3 s or more ->|
 */
#ifndef INIT_STOP_H
#define INIT_STOP_H

#include "base/deadline.h"

#include <stdbool.h>

struct stop_plan {
	bool made;
	int64_t budget_ms;	/* INIT_STOP_TIMEOUT */
	struct deadline cancel; /* the running job is interrupted */
	struct deadline kill;	/* the agent, if it still lives */
	struct deadline tree;	/* what the kill did not end by now is left */
	struct deadline remove; /* the removal's own deadline, always 3 s or more after `tree` */
	struct deadline end;	/* the exit */
};

/* From `now_ms` (monotonic): drain, then the budget. */
void stop_plan_make(struct stop_plan *p, int64_t now_ms, int64_t budget_ms, int64_t drain_ms);
/* The drain is over, by itself or by a second signal: the budget runs from now. Never later than
 * planned before. */
void stop_plan_cancel(struct stop_plan *p, int64_t now_ms);
/* A third signal: kill now. */
void stop_plan_kill(struct stop_plan *p, int64_t now_ms);

/* Stop signals that arrive within this of the one before count as one. */
#define STOP_SAME_MS 1000

#endif
