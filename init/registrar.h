/*
 * The registrar process: the only one that talks to GitHub and the only child that keeps the
 * credential. Forked first, parked on its socket, told what to do by commands, answers with
 * reports. PID 1 replaces it when it dies, is stopped or does not answer.
 *
 * One message of a SOCK_SEQPACKET pair is one command or one report, cut after what it needs: only
 * the report of success carries the identity files (74 KB). The order to remove is small, so that
 * it fits whatever the machine is short of.
 */
#ifndef INIT_REGISTRAR_H
#define INIT_REGISTRAR_H

#include "base/deadline.h"
#include "base/err.h"
#include "gh/gh.h"
#include "init/spawn.h"
#include "probes/probes.h"

enum reg_command {
	REG_REGISTER = 'r',
	REG_REMOVE = 'd', /* with the runner from PID 1's memory */
	REG_REMOVE_IF_IDLE = 'i',
	REG_PREDECESSOR = 'p',
	REG_KNOW = 'k',	  /* to a replacement: this is ours, should REG_PANIC come */
	REG_FINISH = 'f', /* stop what you do at once, settle an add in flight */
	REG_PANIC = 'x',  /* one byte from a fault handler: remove what you registered, wait for
			     nobody */
};

enum reg_report_kind {
	REG_STARTED,	  /* the command was read: it lives, and works on it */
	REG_ABOUT_TO_ADD, /* runner: name, flow, tenant, id of the one to be replaced or 0 */
	REG_REGISTERED,	  /* runner: complete */
	REG_FAILED,	  /* err; unsettled says whether a registration may exist, runner which */
	REG_REMOVED,	  /* removal (GH_REMOVED, GH_GONE, GH_BUSY) */
	REG_NOT_REMOVED,  /* removal and err */
	REG_DONE,	  /* of REG_PREDECESSOR; value as gh_remove_predecessor, err when -1 */
	REG_REPORT__MAX
};

/* What only becomes known after the registrar was forked. */
struct reg_wish {
	char agent_version[64]; /* "": as in the settings */
	unsigned n_labels;	/* added to those of the settings */
	char labels[PROBE_LABELS_MAX][GH_LABEL_MAX];
};

struct reg_order {
	char command;
	bool killed;  /* REG_REMOVE: the agent was killed, its session may be left */
	uint32_t seq; /* of the order; the answer repeats it */
	uint64_t id;  /* REG_PREDECESSOR */
	struct deadline deadline;
	char name[GH_NAME_MAX]; /* REG_PREDECESSOR */
	struct reg_wish wish;	/* REG_REGISTER, REG_PREDECESSOR */
	struct gh_runner runner;
};

struct reg_report {
	enum reg_report_kind kind;
	uint32_t seq; /* of the order that it answers */
	bool unsettled;
	int value;
	struct err err;
	struct gh_removal removal;
	struct gh_runner runner; /* meaningful for ABOUT_TO_ADD, REGISTERED, FAILED */
};

struct registrar {
	struct proc proc;
	int sock;		/* PID 1's end, non-blocking; -1: none */
	uint32_t seq;		/* of the last order */
	struct reg_order order; /* scratch, so that nothing is allocated */
};

/* Before the first registrar_start. */
void registrar_init(struct registrar *r);

/* Forks a registrar over the (static) settings. `drop`: root init with RUNNER_USER, see
 * user_drop_caps. 0 or -1 (XC_SYSTEM). */
int registrar_start(struct registrar *r, const struct gh_settings *s, bool drop, struct err *e);

/* Orders never block: 0, or -1 when the registrar is gone or does not take it (then replace it).
 * The answer carries r->seq as it is after the call. */
int registrar_register(struct registrar *r, const struct reg_wish *w, struct deadline d);
int registrar_remove(struct registrar *r, const struct gh_runner *runner, bool if_idle, bool killed,
		     struct deadline d);
int registrar_predecessor(struct registrar *r, const struct reg_wish *w, uint64_t id,
			  const char *name, struct deadline d);
int registrar_know(struct registrar *r, const struct gh_runner *runner);
int registrar_finish(struct registrar *r);

/* Next report: 1 with *out, 0 none now, -1 the registrar is gone. Never blocks. Text fields are
 * terminated, whatever came. */
int registrar_next(struct registrar *r, struct reg_report *out);

/* SIGKILL and closed; the reaper collects it. */
void registrar_stop(struct registrar *r);

/* The child's work, in init/registrar_child.c: returns when the parent is gone or PANIC was done.
 */
int registrar_work(int sock, const struct gh_settings *s, bool drop);

#endif
