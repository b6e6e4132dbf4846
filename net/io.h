/*
 * One exchange in progress: its deadline, its cancel descriptor, and where its failure is told. All
 * waiting of net/ happens in op_wait, so that nothing can outlast the deadline or a cancellation.
 */
#ifndef NET_IO_H
#define NET_IO_H

#include "base/deadline.h"
#include "base/err.h"
#include "net/net.h"

#include <poll.h>
#include <stddef.h>

#define OP_FDS_MAX 64 /* most descriptors of one wait */

struct net_op {
	int cancel_fd; /* -1: none */
	struct deadline d;
	int64_t began_ms;      /* CLOCK_MONOTONIC, for "within N ms" */
	struct net_failure *f; /* never NULL here */
	struct err *e;	       /* may be NULL */
};

enum op_wait { OP_READY, OP_TIMEOUT, OP_CANCELLED };

/* Waits for the events, until the earlier of `until` and the op's deadline. OP_TIMEOUT says that
 * one of the two passed (op->f untouched); OP_CANCELLED that the cancel descriptor is readable. */
enum op_wait op_wait(const struct net_op *op, struct pollfd *fds, size_t n, struct deadline until);

/* The same for one descriptor and the op's own deadline, with the failure told: 0, or -1 with
 * op->f and op->e set; `what` is what did not happen in time ("the TLS handshake with HOST"). */
int op_wait_fd(const struct net_op *op, int fd, short events, const char *what);

/* Set op->f and op->e; always -1. `why`: what is known of the reason, NULL for the general advice.
 */
int op_timed_out(const struct net_op *op, const char *what, const char *why);
int op_cancelled(const struct net_op *op);

/* Non-blocking, close-on-exec; 0, or -1 with errno. */
int io_socket(int family, int type);

/* Random bytes of the kernel; for DNS ids and jitter. Never fails after boot; falls back to the
 * clock when the system call is refused, because neither use guards a secret. */
uint32_t io_random(void);

#endif
