/*
 * Ending everything below PID 1, sparing a few: see the contract, "Kill".
 */
#ifndef INIT_KILLTREE_H
#define INIT_KILLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* One pass over the tree below this process (children, theirs, ...), leaving out the pids in
 * `spare` and what is below them: SIGSTOP to everything until nothing new appears (bounded rounds),
 * then SIGKILL. Never blocks; the reaper collects. Returns the number of processes found, 0 when
 * none but the spared are left, -1 when it did not converge (a fork bomb): the caller then uses
 * killtree_all. Works through /proc/PID/task/TID/children, falls back to a scan of /proc by parent
 * pid where that file is missing. */
int killtree_pass(const pid_t *spare, size_t n_spare);

/* Sends signo to the processes below without the stop phase: TERM to what outlived the agent.
 * Number sent. */
int killtree_signal(const pid_t *spare, size_t n_spare, int signo);

/* kill(-1, SIGKILL): only when getpid() is 1 and /proc/1 is us; else does nothing. True when sent.
 * Hits the spared too: the caller starts a fresh registrar afterwards. */
bool killtree_all(void);

/* Writes "pid 17 (python3, uid 1000, D)" of up to `max` processes that are left into dst, for the
 * log. Returns how many are left. */
int killtree_left(const pid_t *spare, size_t n_spare, char *dst, size_t size);

/* True when a process whose comm is `name` (15 bytes at most are compared) lives below `root`. */
bool killtree_has(pid_t root, const char *name);

#endif
