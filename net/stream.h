/*
 * A connection as HTTP sees it: a socket with none, one or two TLS sessions on it (to a proxy, and
 * through the tunnel to the target). Non-blocking; the waiting functions end with the op's deadline
 * or cancellation.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include "net/io.h"
#include "net/tls.h"

#define STREAM_LAYERS 2

struct stream {
	int fd;	    /* owned; -1: none */
	short want; /* POLLIN or POLLOUT: what the last TLS_AGAIN waits for */
	unsigned n_tls;
	struct tls *tls[STREAM_LAYERS]; /* owned, the one next to the socket first */
};

void stream_init(struct stream *s);
void stream_close(struct stream *s); /* close_notify where TLS is up, then close; repeatable */

/* Puts TLS on top and shakes hands: 0, or -1 with op->f (stage NET_HANDSHAKE) and op->e. `peer`:
 * "host:port" for messages; `name`: what the certificate must be for. */
int stream_start_tls(struct stream *s, const struct net_op *op, struct tls_trust *trust,
		     const char *name, const char *peer, struct tls_session *keep);

/* Without waiting: > 0 bytes, 0 end of stream, TLS_AGAIN, TLS_BROKEN. */
ssize_t stream_try_read(struct stream *s, void *p, size_t n);

/* The peer ended TLS with an alert: it says why, which the broken pipe that follows does not. */
bool stream_alerted(const struct stream *s);

/* Waits for bytes: > 0; 0 end of stream; -1 with op->f and op->e. `peer`: for messages. */
ssize_t stream_read(struct stream *s, const struct net_op *op, void *p, size_t n, const char *peer);

/* Writes all: 0, or -1 with op->f and op->e; f->sent is set as soon as a byte was taken. */
int stream_write(struct stream *s, const struct net_op *op, const void *p, size_t n,
		 const char *peer);

#endif
