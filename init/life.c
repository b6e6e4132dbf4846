#include "init/life.h"

#include "base/exitcode.h"

/* Reading life.def three times keeps names, table and model from ever drifting apart. */
#define STATE(s)	    [LIFE_##s] = {
#define ON(ev, to, actions) [EV_##ev] = {true, LIFE_##to, (actions)},
#define IGNORE(ev)	    [EV_##ev] = {true, LIFE__MAX, 0},
#define END                                                                                        \
	}                                                                                          \
	,

static const struct life_move table[LIFE__MAX][EV__MAX] = {
#include "init/life.def"
};

struct life_move life_next(enum life_state state, enum life_event event)
{
	struct life_move m = {false, state, 0};

	if ((unsigned)state >= LIFE__MAX || (unsigned)event >= EV__MAX)
		return m;
	m = table[state][event];
	if (m.next == LIFE__MAX)
		m.next = state;
	return m;
}

struct state_facts {
	const char *name, *shown;
	bool registered;
};

static const struct state_facts facts[LIFE__MAX] = {
	[LIFE_STARTING] = {"starting", "starting", false},
	[LIFE_DIRS] = {"dirs", "starting", false},
	[LIFE_GATE] = {"gate", "gate", false},
	[LIFE_PREPARING] = {"preparing", "registering", false},
	[LIFE_REGISTERING] = {"registering", "registering", false},
	[LIFE_ADDING] = {"adding", "registering", true},
	[LIFE_FINISHING] = {"finishing", "stopping", false},
	[LIFE_SETTLING] = {"settling", "stopping", true},
	[LIFE_WRITING] = {"writing", "registering", true},
	[LIFE_CONNECTING] = {"connecting", "registering", true},
	[LIFE_LISTENING] = {"listening", "listening", true},
	[LIFE_BUSY] = {"busy", "busy", true},
	[LIFE_LEAVING] = {"leaving", "stopping", true},
	[LIFE_ASKING] = {"asking", "listening", true},
	[LIFE_YIELDING] = {"yielding", "draining", true},
	[LIFE_DRAINING] = {"draining", "draining", true},
	[LIFE_CANCELLING] = {"cancelling", "stopping", true},
	[LIFE_KILLING] = {"killing", "stopping", true},
	[LIFE_JUDGING] = {"judging", "stopping", true},
	[LIFE_WAITING] = {"waiting", "registering", true},
	[LIFE_RENEWING] = {"renewing", "registering", true},
	[LIFE_DEREGISTERING] = {"deregistering", "deregistering", true},
	[LIFE_SWEEPING] = {"sweeping", "stopping", false},
	[LIFE_GHOST] = {"ghost", "stopping", true},
	[LIFE_EXITED] = {"exited", "exited", false},
	[LIFE_EXITED_GHOST] = {"exited_ghost", "exited", true},
};

static const char *const events[EV__MAX] = {
	[EV_BEGIN] = "begin",
	[EV_STEP_OK] = "step_ok",
	[EV_STEP_FAILED] = "step_failed",
	[EV_READY] = "ready",
	[EV_ABOUT] = "about",
	[EV_REGISTERED] = "registered",
	[EV_REFUSED] = "refused",
	[EV_UNSETTLED] = "unsettled",
	[EV_LOST] = "lost",
	[EV_NOT_UP] = "not_up",
	[EV_LISTENING] = "listening",
	[EV_JOB] = "job",
	[EV_JOB_DONE] = "job_done",
	[EV_LAST_DONE] = "last_done",
	[EV_AGENT_END] = "agent_end",
	[EV_OVER] = "over",
	[EV_AGAIN] = "again",
	[EV_FRESH] = "fresh",
	[EV_DRAIN] = "drain",
	[EV_STOP] = "stop",
	[EV_KILL] = "kill",
	[EV_END] = "end",
	[EV_FREE] = "free",
	[EV_HELD] = "held",
	[EV_UNSURE] = "unsure",
	[EV_CANCEL_DUE] = "cancel_due",
	[EV_KILL_DUE] = "kill_due",
	[EV_TREE_GONE] = "tree_gone",
	[EV_TREE_LEFT] = "tree_left",
	[EV_REMOVED] = "removed",
	[EV_KEPT] = "kept",
	[EV_RESTART] = "restart",
	[EV_SWEPT] = "swept",
};

bool life_registered(enum life_state state)
{
	return (unsigned)state < LIFE__MAX && facts[state].registered;
}

const char *life_public_name(enum life_state state)
{
	return (unsigned)state < LIFE__MAX ? facts[state].shown : "unknown";
}

const char *life_state_name(enum life_state state)
{
	return (unsigned)state < LIFE__MAX ? facts[state].name : "unknown";
}

const char *life_event_name(enum life_event event)
{
	return (unsigned)event < EV__MAX ? events[event] : "unknown";
}

int life_exit_code(int code, bool ghost)
{
	if (ghost && (code == XC_OK || code == XC_AGAIN))
		return XC_GHOST;
	return code;
}
