#include "init/stop.h"

/* What the removal is always left with; a budget too small for it is shared half and half. */
#define REMOVE_KEEP_MS 3000
#define SWEEP_MAX_MS   500
#define TREE_MAX_MS    500

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void schedule(struct stop_plan *p, int64_t cancel_ms)
{
	int64_t budget = p->budget_ms;
	int64_t end = cancel_ms + budget;
	int64_t sweep = at_most(budget / 18, SWEEP_MAX_MS);
	int64_t tree = at_most(budget / 18, TREE_MAX_MS);
	int64_t keep = REMOVE_KEEP_MS;

	if (keep > budget - sweep - tree)
		keep = (budget - sweep - tree) / 2;
	p->cancel = (struct deadline){cancel_ms};
	p->end = (struct deadline){end};
	p->remove = (struct deadline){end - sweep};
	p->tree = (struct deadline){end - sweep - keep};
	p->kill = (struct deadline){end - sweep - keep - tree};
}

void stop_plan_make(struct stop_plan *p, int64_t now_ms, int64_t budget_ms, int64_t drain_ms)
{
	p->made = true;
	p->budget_ms = budget_ms;
	schedule(p, now_ms + drain_ms);
}

void stop_plan_cancel(struct stop_plan *p, int64_t now_ms)
{
	if (now_ms < p->cancel.at_ms)
		schedule(p, now_ms);
}

void stop_plan_kill(struct stop_plan *p, int64_t now_ms)
{
	stop_plan_cancel(p, now_ms);
	p->kill = deadline_min(p->kill, (struct deadline){now_ms});
}
