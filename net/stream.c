#include "net/stream.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void stream_init(struct stream *s)
{
	memset(s, 0, sizeof *s);
	s->fd = -1;
}

void stream_close(struct stream *s)
{
	while (s->n_tls > 0) {
		struct tls *t = s->tls[--s->n_tls];
		if (s->fd >= 0)
			tls_bye(t);
		tls_free(t);
		s->tls[s->n_tls] = NULL;
	}
	fd_close(&s->fd);
}

/* The socket itself. MSG_NOSIGNAL: SIGPIPE is never ignored in this tree, and never wanted. */
static ssize_t raw_read(void *arg, void *p, size_t n)
{
	struct stream *s = arg;
	ssize_t r;

	do {
		r = recv(s->fd, p, n, 0);
	} while (r < 0 && errno == EINTR);
	if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		s->want = POLLIN;
		return TLS_AGAIN;
	}
	return r < 0 ? TLS_BROKEN : r;
}

static ssize_t raw_write(void *arg, const void *p, size_t n)
{
	struct stream *s = arg;
	ssize_t r;

	do {
		r = send(s->fd, p, n, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		s->want = POLLOUT;
		return TLS_AGAIN;
	}
	return r < 0 ? TLS_BROKEN : r;
}

static ssize_t layer_read(void *arg, void *p, size_t n)
{
	return tls_read(arg, p, n);
}

static ssize_t layer_write(void *arg, const void *p, size_t n)
{
	return tls_write(arg, p, n);
}

/* The library also asks to be called again when it has only digested something (a session ticket):
 * then the transport was not touched, there is nothing to poll for, and what it holds or what the
 * kernel holds must be looked at first. Polling there is how a close_notify behind a ticket was
 * once waited for in vain. */
static bool digested(const struct stream *s, ssize_t r)
{
	return r == TLS_AGAIN && s->want == 0;
}

static int try_handshake(struct stream *s, struct tls *t)
{
	int r;

	do {
		s->want = 0;
		r = tls_handshake(t);
	} while (digested(s, r));
	return r;
}

int stream_start_tls(struct stream *s, const struct net_op *op, struct tls_trust *trust,
		     const char *name, const char *peer, struct tls_session *keep)
{
	struct tls_below below = {s, raw_read, raw_write};
	char what[320];
	struct tls *t;
	int r;

	op->f->stage = NET_HANDSHAKE;
	if (s->n_tls == STREAM_LAYERS)
		return err_set(op->e, XC_BUG, 0, "a third TLS layer");
	if (s->n_tls > 0)
		below = (struct tls_below){s->tls[s->n_tls - 1], layer_read, layer_write};
	t = tls_new(trust, &below, name, keep, op->e);
	if (t == NULL)
		return -1;
	s->tls[s->n_tls++] = t;
	if (str_fmt(what, sizeof what, "the TLS handshake with %s", peer) < 0)
		what[0] = 0;
	while ((r = try_handshake(s, t)) == TLS_AGAIN)
		if (op_wait_fd(op, s->fd, s->want, what) < 0)
			return -1;
	return r == 0 ? 0 : tls_explain(t, peer, op->f, op->e);
}

ssize_t stream_try_read(struct stream *s, void *p, size_t n)
{
	ssize_t r;

	do {
		s->want = 0;
		r = s->n_tls > 0 ? tls_read(s->tls[s->n_tls - 1], p, n) : raw_read(s, p, n);
	} while (digested(s, r));
	return r;
}

bool stream_alerted(const struct stream *s)
{
	return s->n_tls > 0 && tls_alerted(s->tls[s->n_tls - 1]);
}

static ssize_t try_write(struct stream *s, const void *p, size_t n)
{
	ssize_t r;

	do {
		s->want = 0;
		r = s->n_tls > 0 ? tls_write(s->tls[s->n_tls - 1], p, n) : raw_write(s, p, n);
	} while (digested(s, r));
	return r;
}

static int broken(const struct stream *s, const struct net_op *op, int sys, const char *peer,
		  const char *what)
{
	char why[256];

	if (s->n_tls == 0)
		return err_set(op->e, XC_UNAVAILABLE, sys, "%s %s", what, peer);
	tls_reason(s->tls[s->n_tls - 1], why, sizeof why);
	return err_set(op->e, XC_UNAVAILABLE, 0, "%s %s: %s", what, peer, why);
}

ssize_t stream_read(struct stream *s, const struct net_op *op, void *p, size_t n, const char *peer)
{
	char what[320];
	ssize_t r;

	while ((r = stream_try_read(s, p, n)) == TLS_AGAIN) {
		if (str_fmt(what, sizeof what, "the answer of %s", peer) < 0)
			what[0] = 0;
		if (op_wait_fd(op, s->fd, s->want, what) < 0)
			return -1;
	}
	return r >= 0 ? r
		      : broken(s, op, errno, peer,
			       "the connection broke while waiting for the answer of");
}

int stream_write(struct stream *s, const struct net_op *op, const void *p, size_t n,
		 const char *peer)
{
	const unsigned char *b = p;
	char what[320];

	while (n > 0) {
		ssize_t r = try_write(s, b, n);
		if (r == TLS_AGAIN) {
			if (str_fmt(what, sizeof what, "sending the request to %s", peer) < 0)
				what[0] = 0;
			/* part of a record may be on its way already */
			op->f->sent = true;
			if (op_wait_fd(op, s->fd, s->want, what) < 0)
				return -1;
			continue;
		}
		if (r < 0)
			return broken(s, op, errno, peer, "the connection broke while sending to");
		op->f->sent = op->f->sent || r > 0;
		b += r;
		n -= (size_t)r;
	}
	return 0;
}
