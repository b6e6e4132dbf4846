/*
 * Starting children of PID 1. Never blocks beyond fork and the exec report.
 */
#ifndef INIT_SPAWN_H
#define INIT_SPAWN_H

#include "base/err.h"
#include "init/user.h"

#include <stdbool.h>
#include <sys/types.h>

enum spawn_group {
	SPAWN_SESSION, /* setsid: the agent, helpers */
	SPAWN_GROUP, /* a process group of its own, in the foreground of the terminal given: CMD */
	SPAWN_GROUP__MAX
};

struct proc {
	pid_t pid; /* -1: none */
	int pidfd; /* -1: none; signals go through it, so that a reused pid is never hit */
};
#define PROC_NONE                                                                                  \
	{                                                                                          \
		-1, -1                                                                             \
	}

struct spawn_spec {
	const char *const
		*argv; /* searched in PATH of envp as execvp does, but never handed to a shell */
	const char *const *envp;
	const char *cwd; /* NULL: kept */
	int in, out,
		err;  /* descriptors for 0, 1, 2; -1: kept for CMD, /dev/null for in of others */
	bool null_in; /* standard input from /dev/null */
	enum spawn_group group;
	const int *terminal;	 /* SPAWN_GROUP: handed over to the child's group; NULL: none */
	const struct user *user; /* NULL: unchanged */
};

/* Starts a program. The child is made with everything blocked and gets an empty mask, default
 * dispositions, its group, the rlimits and OOM score that init found (init changes neither), no
 * descriptor but 0-2, and execs. The caller is held in the kernel until the exec (as vfork does),
 * so the group exists and the exec's outcome is known on return, and no signal can fall between
 * fork and exec. -1 with XC_NOTFOUND (ENOENT), XC_NOEXEC (any other) or XC_SYSTEM (clone); the
 * child is then already reaped. A child that becomes another user never shares memory with us. */
int spawn_exec(const struct spawn_spec *s, struct proc *out, struct err *e);

/* Forks a child that stays in this image and runs fn(arg): registrar, tap, gate, files. Its status
 * is what fn returns. It keeps only the descriptors in `keep` (n of them) and 0-2; signals default
 * and unblocked, except that SIGPIPE and SIGXFSZ stay ignored (a log without a reader must not kill
 * it) and with `deaf` the stop signals stay blocked (registrar and tap must outlive a group-wide
 * signal). In a session of its own. 0 or -1 (XC_SYSTEM). */
int spawn_fn(int (*fn)(void *arg), void *arg, const int *keep, size_t n, bool deaf,
	     struct proc *out, struct err *e);

/* The terminal to hand over: a descriptor (among 0-2, or /dev/tty, newly opened and the caller's)
 * whose foreground group is ours; else -1. */
int spawn_terminal(void);
/* Makes `group` the foreground group of the terminal; a terminal that refuses is left as it is.
 * SIGTTOU must be blocked. */
void spawn_foreground(int terminal, pid_t group);

/* Opens /dev/null on those of 0-2 that are closed, so that nothing of ours lands there. */
void spawn_std_fds(void);
/* Closes every descriptor from `first` on, except the n in `keep` (ascending not required). */
void spawn_close_from(int first, const int *keep, size_t n);

/* Signal through the pidfd. 0, or -1 with errno (ESRCH: ended). */
int proc_kill(const struct proc *p, int signo);
/* After the reaper saw its end: closes the pidfd, pid becomes -1. */
void proc_gone(struct proc *p);

#endif
