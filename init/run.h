/*
 * Carrying the life out. run.c waits and turns what happens into events of the table; act.c carries
 * the table's actions out; watch.c follows the agent; answer.c follows the registrar. All work on
 * the one static `struct run`, and none of them blocks or allocates.
 */
#ifndef INIT_RUN_H
#define INIT_RUN_H

#include "init/agent.h"
#include "init/config.h"
#include "init/life.h"
#include "init/loop.h"
#include "init/registrar.h"
#include "init/spawn.h"
#include "init/state.h"
#include "init/step.h"
#include "init/stop.h"
#include "init/tap.h"

/* Deadlines that are armed from time to time; the nearest one bounds the wait. */
enum run_timer {
	TIMER_PAUSE,   /* before registering: after lives that were too short */
	TIMER_ORDER,   /* the registrar's answer to the order at hand */
	TIMER_ACK,     /* the registrar's word that it read the order */
	TIMER_RESPAWN, /* next try to replace a registrar, or to give an order again */
	TIMER_CANCEL,  /* drain, or the time to leave after the last job */
	TIMER_KILL,    /* the agent's time */
	TIMER_PASS,    /* next look at the tree */
	TIMER_GENTLE,  /* leftovers got SIGTERM; SIGKILL after this */
	TIMER_TREE,    /* killing ends */
	TIMER_SWEEP,   /* sweeping ends */
	TIMER_JUDGE,   /* the agent's last words are waited for no longer */
	TIMER_RESTART, /* the agent is started again */
	TIMER_IDLE,    /* idle for too long */
	TIMER_LOST,    /* the agent said that its registration is gone, and goes on */
	TIMER_WATCH,   /* next round of the health watch */
	TIMER__MAX
};

/* Descriptors of the loop. */
enum run_slot { SLOT_REGISTRAR, SLOT_TAP, SLOT_STEP, SLOT_WATCH, SLOT__MAX };

#define RUN_QUEUE_MAX 32

struct dirs_report {
	struct err err; /* code 0: fine */
	char version[64];
};

struct look_report {
	bool runner_file, binary;
	struct err err; /* of an update */
};

struct run {
	struct config *c;
	char **envp;
	const char *const *agent_env;
	struct loop loop;
	struct deadline timer[TIMER__MAX];
	enum life_state state;
	int64_t since_ms; /* of the public state, CLOCK_REALTIME */
	enum life_event queue[RUN_QUEUE_MAX];
	unsigned queued;
	bool done;

	/* the end */
	int code;      /* exit status so far; -1: none yet */
	char why[512]; /* what last_error says */
	struct stop_plan plan;
	unsigned stops; /* stop signals, those within a second of each other counted once */
	int64_t last_stop_ms;

	/* the registrar and what it told */
	struct registrar reg;
	struct reg_wish wish;
	struct reg_report report;
	struct gh_runner runner; /* what a removal needs; never read back from a file */
	bool known;		 /* `runner` says something */
	uint32_t order_seq;	 /* the answer that is waited for; 0: none */
	struct deadline order_due;
	struct deadline register_due;
	unsigned respawns;     /* in a row without an answer */
	bool asking;	       /* the order at hand is a delete-if-idle */
	unsigned renewals;     /* fresh registrations after the first */
	int64_t registered_ms; /* monotonic */
	bool removed;	       /* confirmed */
	bool kept;	       /* an attempt to remove failed for good */
	bool journalled;
	struct gh_removal removal;
	struct err removal_err;

	/* steps */
	struct step step, watch;
	struct dirs_report dirs;
	struct err files;
	struct look_report look;
	struct probe_verdict gate, round;
	unsigned rounds, sick; /* of the watch; failures in a row */
	bool heavy;	       /* this round asks the vendor's tool too */
	bool after_job;	       /* the next one does: a job ended */
	bool cleaning;	       /* `watch` looks at the card for the receipt */
	bool looked_clean;     /* and has answered in `round` */

	/* the agent */
	struct proc agent;
	struct tap tap;
	bool tap_ended; /* both streams were copied to their end */
	bool tap_deaf;	/* its report pipe ended */
	bool looked;
	bool agent_killed; /* by init */
	int64_t ended_ms;  /* monotonic, of the agent's end */
	int64_t oom_before;
	struct agent_facts facts;
	struct agent_verdict verdict;
	bool job;	      /* one runs, by the agent's word */
	int64_t job_since_ms; /* CLOCK_REALTIME */
	int64_t killed_at_ms; /* CLOCK_REALTIME; 0: no job was killed */
	unsigned retries, updates;
	bool ever_job;	 /* in this life: for the journal */
	int64_t lost_ms; /* monotonic: the agent said that its registration is gone; 0: no */
	bool gentle;	 /* leftovers have had their SIGTERM and still have time */
};

/* The whole life, after the configuration was read and the environment wiped. Never returns before
 * the registration is gone or its loss was said. Exit status. */
int run_life(struct config *c, char **envp);

/* run.c */
void run_post(struct run *r, enum life_event ev); /* handled once the current event is done */
void run_arm(struct run *r, enum run_timer t, struct deadline d);
void run_disarm(struct run *r, enum run_timer t);
/* Notes why the life ends; the first cause stays. */
void run_cause(struct run *r, int code, const char *why);
void run_publish(struct run *r); /* state.json */
/* The plan of the end: made by the first who asks; init's own ends have a roomier budget. */
void run_plan(struct run *r);

/* act.c */
void run_act(struct run *r, uint32_t actions);
/* Registrar, tap and the health watch stay; returns how many pids were written. */
size_t run_spare(const struct run *r, pid_t *dst);

/* steps.c: the children */
int run_step_dirs(struct run *r, struct err *e);
int run_step_gate(struct run *r, struct err *e);
int run_step_files(struct run *r, struct err *e);
int run_step_look(struct run *r, bool update, struct err *e);
int run_step_watch(struct run *r, struct err *e);
void run_step_clean(struct run *r); /* beside the removal: does anything hold the card? */
void run_step_over(struct run *r, enum step_state how); /* of the step of the current state */
void run_watch_over(struct run *r, enum step_state how);

/* answer.c: the registrar */
void run_reports(struct run *r);
void run_registrar_lost(struct run *r, const char *why);
void run_order_register(struct run *r);
void run_order_remove(struct run *r);
void run_order_ask(struct run *r);
void run_prepare(struct run *r);
void run_predecessor(struct run *r);
void run_registrar_ended(struct run *r);
void run_respawn(struct run *r);
void run_order_late(struct run *r, enum run_timer t);

/* watch.c: the agent */
void run_agent_start(struct run *r);
void run_agent_ended(struct run *r, int wait_status);
void run_tap_reports(struct run *r);
void run_tap_lost(struct run *r);
void run_judge(struct run *r); /* once all facts are in */
bool run_job_running(const struct run *r);
void run_idle_over(struct run *r);

/* end.c: killing, sweeping, the receipt */
void run_kill(struct run *r, bool gently);
void run_kill_pass(struct run *r);
void run_sweep(struct run *r);
void run_sweep_pass(struct run *r);
int run_receipt(struct run *r); /* says the last line; exit status */

#endif
