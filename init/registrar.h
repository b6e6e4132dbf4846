/*
 * The registrar process: the only one that talks to GitHub and the only child that keeps the
 * credential. Forked first, parked on its socket, told what to do by fixed-size commands, answers
 * with fixed-size reports. PID 1 replaces it when it dies, is stopped or does not answer.
 */
#ifndef INIT_REGISTRAR_H
#define INIT_REGISTRAR_H

#include "base/deadline.h"
#include "base/err.h"
#include "gh/gh.h"
#include "init/spawn.h"

enum reg_command {
	REG_REGISTER = 'r',
	REG_REMOVE = 'd', /* with the runner from PID 1's memory */
	REG_REMOVE_IF_IDLE = 'i',
	REG_END_SESSION = 's',
	REG_PREDECESSOR = 'p',
	REG_FINISH = 'f', /* stop what you do at once, settle an add in flight */
	REG_PANIC = 'x',  /* one byte from a fault handler: remove what you registered, wait for
			     nobody */
};

enum reg_report_kind {
	REG_ABOUT_TO_ADD, /* runner: name, flow, tenant, id of the one to be replaced or 0 */
	REG_REGISTERED,	  /* runner: complete */
	REG_FAILED,	  /* err; unsettled says whether a registration may exist */
	REG_REMOVED,	  /* removal (GH_REMOVED, GH_GONE, GH_BUSY) */
	REG_NOT_REMOVED,  /* removal and err */
	REG_DONE,	  /* of REG_END_SESSION, REG_PREDECESSOR; value */
	REG_REPORT__MAX
};

struct reg_report {
	enum reg_report_kind kind;
	bool unsettled;
	int value;
	struct err err;
	struct gh_removal removal;
	struct gh_runner runner;
};

struct registrar {
	struct proc proc;
	int sock; /* SOCK_SEQPACKET, PID 1's end, non-blocking; -1: none */
};
#define REGISTRAR_INIT                                                                             \
	{                                                                                          \
		PROC_NONE, -1                                                                      \
	}

/* Forks a registrar over the (static) settings. `drop`: root init with RUNNER_USER, see
 * user_drop_caps. 0 or -1. */
int registrar_start(struct registrar *r, const struct gh_settings *s, bool drop, struct err *e);

/* Commands never block: 0, or -1 when the registrar is gone or does not take it (then replace it).
 */
int registrar_register(struct registrar *r, struct deadline d);
int registrar_remove(struct registrar *r, const struct gh_runner *runner, bool if_idle,
		     struct deadline d);
int registrar_end_session(struct registrar *r, const struct gh_runner *runner, struct deadline d);
int registrar_predecessor(struct registrar *r, uint64_t id, const char *name, struct deadline d);
int registrar_finish(struct registrar *r);

/* Next report: 1 with *out, 0 none now, -1 the registrar is gone. Never blocks. */
int registrar_next(struct registrar *r, struct reg_report *out);
void registrar_stop(struct registrar *r);

#endif
