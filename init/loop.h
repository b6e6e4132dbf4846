/*
 * The one place where PID 1 waits: ppoll on the signalfd, a handful of descriptors, and the nearest
 * deadline.
 */
#ifndef INIT_LOOP_H
#define INIT_LOOP_H

#include "base/deadline.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#define LOOP_FDS_MAX	8
#define LOOP_REAP_BATCH 256
#define LOOP_QUEUE_MAX	8

struct loop {
	int sigfd;		  /* -1: none, see loop_init */
	int fds[LOOP_FDS_MAX];	  /* watched for reading; -1: unused slot */
	bool ready[LOOP_FDS_MAX]; /* after loop_wait */

	struct signalfd_siginfo queue[LOOP_QUEUE_MAX]; /* read, not yet given out */
	unsigned queued, next;
	bool drained;	 /* nothing was left behind the queue when it was read */
	unsigned reaped; /* in this batch */
	bool more;	 /* the batch ended before the children did */
	bool told;	 /* an error of ppoll was logged */
};

/* All slots unused. Without a signalfd (no descriptor to be had) -1 with XC_SYSTEM; the loop then
 * still works as long as no descriptor is watched: it waits in rt_sigtimedwait. */
int loop_init(struct loop *l, struct err *e);

/* Waits until a signal is there, a watched descriptor is readable or ended, or `d` passes. Never
 * fails: an error of ppoll is logged once and answered by a bounded pause of its own deadline. */
void loop_wait(struct loop *l, struct deadline d);

/* Next pending signal: true with *si. Call until false. Repeated SIGCHLDs are one. */
bool loop_signal(struct loop *l, struct signalfd_siginfo *si);

/* Next ended child (WNOHANG), whichever it is: true with pid and wait status. At most
 * `LOOP_REAP_BATCH` are given between two looks at the signals; call until false. When the batch
 * ended before the children did, the next loop_wait comes back at once and loop_reap_more is true.
 */
bool loop_reap(struct loop *l, pid_t *pid, int *status);
bool loop_reap_more(const struct loop *l);
bool loop_has_children(void); /* false on ECHILD */

/* The exit status of a wait status: 0-255, or 128 + signal. */
int loop_status_code(int wait_status);

#endif
