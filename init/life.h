/*
 * The life cycle of a runner as a table: state x event -> next state and actions, in init/life.def.
 * Pure: init/run.c carries the actions out, and tests/model explores the very same table.
 *
 *	dirs > gate > preparing > registering > adding > writing > connecting > listening/busy
 *	     > asking/yielding/draining > cancelling > killing > deregistering > sweeping > exited
 *
 * The rule that everything serves: from "about to add" on, the only ways to an end lead through
 * `deregistering`, and only a confirmed removal leads to `sweeping` and `exited`; whatever could
 * not be removed ends in `ghost` and `exited_ghost`, which is exit status 85.
 */
#ifndef INIT_LIFE_H
#define INIT_LIFE_H

#include <stdbool.h>
#include <stdint.h>

enum life_state {
	LIFE_STARTING,	  /* nothing runs but the registrar */
	LIFE_DIRS,	  /* child: directories, leftovers of a predecessor, the agent's version */
	LIFE_GATE,	  /* child: checks of the node */
	LIFE_PREPARING,	  /* pause after short lives; the predecessor's registration */
	LIFE_REGISTERING, /* the registrar works; nothing that adds was sent */
	LIFE_ADDING,	  /* the adding request may have left: counted as registered from here */
	LIFE_FINISHING,	  /* asked to stop while registering: the registrar drops everything */
	LIFE_SETTLING,	  /* asked to stop while adding: the registrar settles the add */
	LIFE_WRITING,	  /* child: identity files */
	LIFE_CONNECTING,  /* the agent runs, without a session as yet */
	LIFE_LISTENING,	  /* idle */
	LIFE_BUSY,	  /* a job runs */
	LIFE_LEAVING,	  /* an ephemeral agent after its job: it ends by itself */
	LIFE_ASKING,	  /* init wants to end an idle runner: delete it if GitHub agrees */
	LIFE_YIELDING,	  /* the same, because somebody asked to drain */
	LIFE_DRAINING,	  /* waiting for the running job */
	LIFE_CANCELLING,  /* the agent was interrupted: it cancels the job and ends */
	LIFE_KILLING,	  /* everything below is being ended, registrar and tap spared */
	LIFE_JUDGING,	  /* the agent ended by itself: child looks at the files, then a decision */
	LIFE_WAITING,	  /* before the agent is started again: a delay, or an update */
	LIFE_RENEWING,	  /* removal before one fresh registration */
	LIFE_DEREGISTERING, /* removal before the end */
	LIFE_SWEEPING,	    /* nothing is registered; what is left is ended */
	LIFE_GHOST,	    /* the same, with a registration that could not be removed */
	LIFE_EXITED,	    /* the end */
	LIFE_EXITED_GHOST,  /* the end, status 85 */
	LIFE__MAX
};

enum life_event {
	EV_BEGIN,
	EV_STEP_OK,	/* the child of this state (dirs, gate, files, look) did its work */
	EV_STEP_FAILED, /* it failed, died or took too long */
	EV_READY,	/* pause over, predecessor dealt with */
	EV_ABOUT,	/* registrar: the adding request leaves now */
	EV_REGISTERED,
	EV_REFUSED,    /* not registered, and certainly nothing exists */
	EV_UNSETTLED,  /* not registered, but something may exist */
	EV_LOST,       /* the registrar died or does not answer; its reports were read before */
	EV_NOT_UP,     /* the agent could not be started */
	EV_LISTENING,  /* "Listening for Jobs" */
	EV_JOB,	       /* a job started */
	EV_JOB_DONE,   /* it is over, the agent goes on */
	EV_LAST_DONE,  /* it is over, and it was the only one */
	EV_AGENT_END,  /* the agent was reaped */
	EV_OVER,       /* decision: this life ends */
	EV_AGAIN,      /* decision: start the agent again on the same registration */
	EV_FRESH,      /* decision: one fresh registration */
	EV_DRAIN,      /* asked to stop, the job may go on for a while */
	EV_STOP,       /* asked to stop, cancel now */
	EV_KILL,       /* asked to kill now */
	EV_END,	       /* init's own wish: idle too long, registration lost, GPU sick */
	EV_FREE,       /* delete-if-idle: deleted, or gone */
	EV_HELD,       /* delete-if-idle: busy */
	EV_UNSURE,     /* delete-if-idle: no credential for it, or no answer */
	EV_CANCEL_DUE, /* drain, or the time to leave, is over */
	EV_KILL_DUE,   /* the agent's time is over */
	EV_TREE_GONE,  /* nothing but the spared is left */
	EV_TREE_LEFT,  /* time for killing is over, something is left */
	EV_REMOVED,    /* removed, or not there any more */
	EV_KEPT,       /* could not be removed */
	EV_RESTART,    /* the delay before a restart is over */
	EV_SWEPT,
	EV__MAX
};

/* What to do on the way; carried out in this order. */
enum life_action {
	ACT_DROP = 1 << 0,     /* end the step child, its answer no longer matters */
	ACT_RESPAWN = 1 << 1,  /* replace the registrar */
	ACT_DIRS = 1 << 2,     /* start the step child of that name */
	ACT_GATE = 1 << 3,     /* " */
	ACT_PREPARE = 1 << 4,  /* pause, predecessor */
	ACT_REGISTER = 1 << 5, /* tell the registrar */
	ACT_FINISH = 1 << 6,   /* tell the registrar to drop everything and settle */
	ACT_WRITE = 1 << 7,    /* step child: identity files */
	ACT_START = 1 << 8,    /* tap and agent */
	ACT_LOOK = 1 << 9,     /* step child: what is left in the root */
	ACT_WAIT = 1 << 10,    /* arm the restart */
	ACT_ASK = 1 << 11,     /* tell the registrar: delete if idle */
	ACT_DRAIN = 1 << 12,   /* arm the end of the drain */
	ACT_LEAVE = 1 << 13,   /* arm the time an agent has to end after its last job */
	ACT_INT = 1 << 14,     /* SIGINT and SIGCONT to the agent, arm its kill */
	ACT_KILL = 1 << 15,    /* end the tree at once */
	ACT_CLEAR = 1 << 16,   /* the agent is gone: end what it left, gently first */
	ACT_REMOVE = 1 << 17,  /* tell the registrar to remove */
	ACT_SWEEP = 1 << 18,   /* end everything, registrar and tap last */
	ACT_EXIT = 1 << 19     /* leave the loop */
};

struct life_move {
	bool present; /* every pair is written in life.def; tests/model checks it */
	enum life_state next;
	uint32_t actions; /* of enum life_action */
};

/* The move for this pair; an ignored event answers the same state and no action. */
struct life_move life_next(enum life_state state, enum life_event event);

/* Whether GitHub may know a runner of ours in this state. */
bool life_registered(enum life_state state);

/* "listening": what state.json calls it. Several states share a name. */
const char *life_public_name(enum life_state state);
/* "yielding", "agent_end": the table's own names, for the log at debug and the model. */
const char *life_state_name(enum life_state state);
const char *life_event_name(enum life_event event);

/* The exit status: `code`, except that a registration left behind replaces 0 and 75 by 85. */
int life_exit_code(int code, bool ghost);

#endif
