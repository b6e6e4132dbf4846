/*
 * The model of the life cycle: explores the table that init itself compiles (init/life.def).
 *
 * Beside the table's state the model keeps what is true at GitHub, from the events alone: after
 * "about to add" a runner may exist, after a confirmed removal it does not. Any event may come at
 *any time, also those that no order explains. Shown, for every sequence of up to 8 events from the
 * start, from every state that a life can be in, and then for sequences of any length:
 *
 *	- whenever a runner may exist, the table's state says so;
 *	- `exited` is never reached with a runner that may exist: that is `exited_ghost`, status 85;
 *	- after a stop signal nothing is registered, written, started or waited for anew;
 *	- no wish of init's own interrupts a job;
 *	- the agent is only started with a registration;
 *	- whoever enters a state that waits for something has ordered it, so that none waits for
 *ever;
 *	- an end can be reached from everywhere.
 */
#include "base/exitcode.h"
#include "init/life.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 8

struct world {
	enum life_state state;
	bool exists;  /* a runner of ours may exist at GitHub */
	bool stopped; /* a stop signal came */
};

#define WORLDS (LIFE__MAX * 4)

static unsigned index_of(struct world w)
{
	return (unsigned)w.state * 4 + (w.exists ? 2 : 0) + (w.stopped ? 1 : 0);
}

static struct world world_of(unsigned i)
{
	return (struct world){(enum life_state)(i / 4), (i & 2) != 0, (i & 1) != 0};
}

static unsigned faults;

static void fault(struct world w, enum life_event ev, struct world next, const char *what)
{
	faults++;
	(void)printf("FAULT: %s (runner %s%s) + %s -> %s: %s\n", life_state_name(w.state),
		     w.exists ? "may exist" : "absent", w.stopped ? ", stopped" : "",
		     life_event_name(ev), life_state_name(next.state), what);
}

static bool final(enum life_state s)
{
	return s == LIFE_EXITED || s == LIFE_EXITED_GHOST;
}

static bool truth(bool exists, enum life_event ev)
{
	if (ev == EV_ABOUT || ev == EV_REGISTERED || ev == EV_UNSETTLED)
		return true;
	if (ev == EV_REFUSED || ev == EV_REMOVED || ev == EV_FREE)
		return false;
	return exists;
}

/* States in which a life goes on: none is entered once a stop signal came. */
static bool goes_on(enum life_state s)
{
	static const bool on[LIFE__MAX] = {
		[LIFE_DIRS] = true,	   [LIFE_GATE] = true,	    [LIFE_PREPARING] = true,
		[LIFE_REGISTERING] = true, [LIFE_ADDING] = true,    [LIFE_WRITING] = true,
		[LIFE_CONNECTING] = true,  [LIFE_LISTENING] = true, [LIFE_BUSY] = true,
		[LIFE_LEAVING] = true,	   [LIFE_ASKING] = true,    [LIFE_JUDGING] = true,
		[LIFE_WAITING] = true,	   [LIFE_RENEWING] = true,
	};

	return on[s];
}

/* What must have been ordered on the way into a state, so that it does not wait for ever. */
static uint32_t needs(enum life_state s)
{
	static const uint32_t need[LIFE__MAX] = {
		[LIFE_DIRS] = ACT_DIRS,
		[LIFE_GATE] = ACT_GATE,
		[LIFE_PREPARING] = ACT_PREPARE,
		[LIFE_REGISTERING] = ACT_REGISTER,
		[LIFE_FINISHING] = ACT_FINISH,
		[LIFE_WRITING] = ACT_WRITE,
		[LIFE_CONNECTING] = ACT_START,
		[LIFE_JUDGING] = ACT_LOOK,
		[LIFE_WAITING] = ACT_WAIT,
		[LIFE_LEAVING] = ACT_LEAVE,
		[LIFE_DRAINING] = ACT_DRAIN,
		[LIFE_CANCELLING] = ACT_INT,
		[LIFE_KILLING] = ACT_KILL | ACT_CLEAR,
		[LIFE_RENEWING] = ACT_REMOVE,
		[LIFE_DEREGISTERING] = ACT_REMOVE,
		[LIFE_SWEEPING] = ACT_SWEEP,
		[LIFE_GHOST] = ACT_SWEEP,
		[LIFE_EXITED] = ACT_EXIT,
		[LIFE_EXITED_GHOST] = ACT_EXIT,
	};

	return need[s];
}

#define EV(e) (UINT64_C(1) << EV_##e)

/* The answers that a state waits for: each of them must lead out of it. */
static uint64_t answers(enum life_state s)
{
	static const uint64_t all[LIFE__MAX] = {
		[LIFE_STARTING] = EV(BEGIN),
		[LIFE_DIRS] = EV(STEP_OK) | EV(STEP_FAILED),
		[LIFE_GATE] = EV(STEP_OK) | EV(STEP_FAILED),
		[LIFE_PREPARING] = EV(READY) | EV(LOST),
		[LIFE_REGISTERING] = EV(ABOUT) | EV(REGISTERED) | EV(REFUSED) | EV(UNSETTLED),
		[LIFE_ADDING] = EV(REGISTERED) | EV(REFUSED) | EV(UNSETTLED) | EV(LOST),
		[LIFE_FINISHING] =
			EV(ABOUT) | EV(REGISTERED) | EV(REFUSED) | EV(UNSETTLED) | EV(LOST),
		[LIFE_SETTLING] = EV(REGISTERED) | EV(REFUSED) | EV(UNSETTLED) | EV(LOST),
		[LIFE_WRITING] = EV(STEP_OK) | EV(STEP_FAILED),
		[LIFE_CONNECTING] = EV(LISTENING) | EV(AGENT_END) | EV(NOT_UP) | EV(END),
		[LIFE_LISTENING] = EV(JOB) | EV(AGENT_END) | EV(END),
		[LIFE_BUSY] = EV(JOB_DONE) | EV(LAST_DONE) | EV(AGENT_END),
		[LIFE_LEAVING] = EV(AGENT_END) | EV(CANCEL_DUE),
		[LIFE_ASKING] = EV(FREE) | EV(HELD) | EV(UNSURE) | EV(LOST) | EV(AGENT_END),
		[LIFE_YIELDING] = EV(FREE) | EV(HELD) | EV(UNSURE) | EV(LOST) | EV(AGENT_END),
		[LIFE_DRAINING] = EV(JOB_DONE) | EV(LAST_DONE) | EV(AGENT_END) | EV(CANCEL_DUE),
		[LIFE_CANCELLING] = EV(AGENT_END) | EV(KILL_DUE) | EV(KILL),
		[LIFE_KILLING] = EV(TREE_GONE) | EV(TREE_LEFT),
		[LIFE_JUDGING] = EV(OVER) | EV(AGAIN) | EV(FRESH),
		[LIFE_WAITING] = EV(STEP_OK) | EV(STEP_FAILED) | EV(RESTART),
		[LIFE_RENEWING] = EV(REMOVED) | EV(KEPT),
		[LIFE_DEREGISTERING] = EV(REMOVED) | EV(KEPT),
		[LIFE_SWEEPING] = EV(SWEPT),
		[LIFE_GHOST] = EV(SWEPT),
	};

	return all[s];
}

static void check(struct world w, enum life_event ev, struct world n, struct life_move m)
{
	bool entered = n.state != w.state;
	bool swept = w.state == LIFE_GHOST && n.state == LIFE_SWEEPING; /* is being swept already */

	if (!m.present)
		fault(w, ev, n, "this pair is not in the table");
	if (n.exists && !life_registered(n.state))
		fault(w, ev, n, "a runner may exist, and the state does not know");
	if (n.state == LIFE_EXITED && n.exists)
		fault(w, ev, n, "a ghost without status 85");
	if (w.stopped && entered && goes_on(n.state))
		fault(w, ev, n, "the life goes on after a stop signal");
	if (ev == EV_END && (w.state == LIFE_BUSY || w.state == LIFE_DRAINING) && entered)
		fault(w, ev, n, "init's own wish interrupts a job");
	if ((m.actions & ACT_START) && !life_registered(n.state))
		fault(w, ev, n, "the agent is started without a registration");
	if (!entered && (answers(w.state) >> ev & 1) != 0)
		fault(w, ev, n, "the answer that this state waits for is ignored");
	if (entered && !swept && needs(n.state) != 0 && !(m.actions & needs(n.state)))
		fault(w, ev, n, "nothing was ordered that this state waits for");
}

static struct world step(struct world w, enum life_event ev)
{
	struct life_move m = life_next(w.state, ev);
	struct world n = {m.next, truth(w.exists, ev),
			  w.stopped || ev == EV_DRAIN || ev == EV_STOP || ev == EV_KILL};

	check(w, ev, n, m);
	return n;
}

/* Number of sequences of each length from `start`, all of them checked on the way: those that have
 * led to the same world are carried on together. */
static uint64_t explore(struct world start)
{
	static uint64_t count[WORLDS], next[WORLDS];
	uint64_t total = 0;

	memset(count, 0, sizeof count);
	count[index_of(start)] = 1;
	for (int d = 0; d < DEPTH; d++) {
		memset(next, 0, sizeof next);
		for (unsigned i = 0; i < WORLDS; i++) {
			struct world w = world_of(i);

			if (count[i] == 0 || final(w.state))
				continue;
			for (int ev = 0; ev < EV__MAX; ev++) {
				next[index_of(step(w, (enum life_event)ev))] += count[i];
				total += count[i];
			}
		}
		memcpy(count, next, sizeof count);
	}
	return total;
}

/* All worlds that any sequence, of whatever length, leads to. */
static unsigned reachable(bool *seen)
{
	unsigned n = 1, before;

	memset(seen, 0, WORLDS * sizeof *seen);
	seen[index_of((struct world){LIFE_STARTING, false, false})] = true;
	do {
		before = n;
		for (unsigned i = 0; i < WORLDS; i++) {
			struct world w = world_of(i);

			if (!seen[i] || final(w.state))
				continue;
			for (int ev = 0; ev < EV__MAX; ev++) {
				unsigned k = index_of(step(w, (enum life_event)ev));

				n += seen[k] ? 0 : 1;
				seen[k] = true;
			}
		}
	} while (n != before);
	return n;
}

/* Worlds from which an end cannot be reached, and those that a stop signal leaves as they are. */
static void ends(const bool *seen)
{
	bool good[WORLDS];
	bool more = true;

	for (unsigned i = 0; i < WORLDS; i++)
		good[i] = final(world_of(i).state);
	while (more) {
		more = false;
		for (unsigned i = 0; i < WORLDS; i++)
			for (int ev = 0; seen[i] && !good[i] && ev < EV__MAX; ev++) {
				good[i] = good[index_of(step(world_of(i), (enum life_event)ev))];
				more = more || good[i];
			}
	}
	for (unsigned i = 0; i < WORLDS; i++) {
		struct world w = world_of(i);

		if (seen[i] && !good[i])
			fault(w, EV_BEGIN, w, "no end can be reached from here");
		if (!seen[i] || w.stopped || !goes_on(w.state))
			continue;
		for (int ev = EV_DRAIN; ev <= EV_KILL; ev++)
			if (life_next(w.state, (enum life_event)ev).next == w.state)
				fault(w, (enum life_event)ev, w, "a stop signal is ignored");
	}
}

static void statuses(void)
{
	for (int code = 0; code < 256; code++) {
		int ghost = life_exit_code(code, true);
		bool replaced = code == XC_OK || code == XC_AGAIN;

		if (life_exit_code(code, false) != code || ghost != (replaced ? XC_GHOST : code)) {
			faults++;
			(void)printf("FAULT: status %d becomes %d\n", code, ghost);
		}
	}
}

int main(void)
{
	bool seen[WORLDS];
	uint64_t from_start, total = 0;
	unsigned n;

	from_start = explore((struct world){LIFE_STARTING, false, false});
	n = reachable(seen);
	for (unsigned i = 0; i < WORLDS; i++)
		if (seen[i])
			total += explore(world_of(i));
	ends(seen);
	statuses();
	(void)printf("model: %d states x %d events = %d pairs\n", LIFE__MAX, EV__MAX,
		     LIFE__MAX * EV__MAX);
	(void)printf("model: %" PRIu64 " sequences of up to %d events from the start, %" PRIu64
		     " from all %u situations a life can be in (and these are closed: so for any "
		     "length)\n",
		     from_start, DEPTH, total, n);
	(void)printf("model: %u faults\n", faults);
	return faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
