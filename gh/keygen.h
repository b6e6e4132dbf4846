/*
 * Making the agent's key while the first request is under way.
 *
 * A forked child does the arithmetic and sends the parts through a pipe. Neither a thread (the
 * program has none, and fork and threads do not mix) nor a split of the exchange into "send" and
 * "receive" would do: of a first request most of the time goes into look-up, connect and handshake,
 * which a split would leave idle, and the library cannot pause inside a prime search.
 */
#ifndef GH_KEYGEN_H
#define GH_KEYGEN_H

#include "base/deadline.h"
#include "base/err.h"
#include "gh/key.h"

#include <sys/types.h>

struct keygen {
	pid_t pid; /* the child, or -1 */
	int fd;	   /* its pipe, or -1 */
};

#define KEYGEN_INIT                                                                                \
	{                                                                                          \
		-1, -1                                                                             \
	}

/* Starts the child. A failure is no error: keygen_take then generates in place. */
void keygen_start(struct keygen *k);

/* The parts; waits for the child until `d`, or until cancel_fd (-1: none) is readable. A child that
 * died is made up for in place. 0, or -1 with XC_UNAVAILABLE (too late, cancelled) or XC_SYSTEM. */
int keygen_take(struct keygen *k, int cancel_fd, struct deadline d, struct key_parts *out,
		struct err *e);

void keygen_stop(struct keygen *k); /* kills and reaps what is left; safe at any time */

#endif
