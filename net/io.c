#include "net/io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum op_wait op_wait(const struct net_op *op, struct pollfd *fds, size_t n, struct deadline until)
{
	struct pollfd all[OP_FDS_MAX + 1];
	struct deadline d = deadline_min(op->d, until);
	int r;

	if (n > OP_FDS_MAX)
		n = OP_FDS_MAX;
	if (n > 0)
		memcpy(all, fds, n * sizeof fds[0]);
	all[n] = (struct pollfd){op->cancel_fd, POLLIN, 0}; /* poll skips a negative one */
	do {
		r = poll(all, (nfds_t)(n + 1), deadline_poll_ms(d));
	} while (r < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOMEM) &&
		 !deadline_passed(d));
	if (r < 0)
		return OP_TIMEOUT;
	if (all[n].revents != 0)
		return OP_CANCELLED;
	for (size_t i = 0; i < n; i++)
		fds[i].revents = all[i].revents;
	return r > 0 ? OP_READY : OP_TIMEOUT;
}

int op_timed_out(const struct net_op *op, const char *what, const char *why)
{
	op->f->timeout = true;
	return err_set(
		op->e, XC_UNAVAILABLE, 0, "%s did not end within %lld ms: %s", what,
		(long long)(clock_mono_ms() - op->began_ms),
		why != NULL ? why : "check the network's egress rules, or raise INIT_HTTP_TIMEOUT");
}

int op_cancelled(const struct net_op *op)
{
	op->f->cancelled = true;
	return err_set(op->e, XC_UNAVAILABLE, 0, "told to finish");
}

int op_wait_fd(const struct net_op *op, int fd, short events, const char *what)
{
	struct pollfd p = {fd, events, 0};

	switch (op_wait(op, &p, 1, DEADLINE_NEVER)) {
	case OP_CANCELLED:
		return op_cancelled(op);
	case OP_TIMEOUT:
		return op_timed_out(op, what, NULL);
	case OP_READY:
	default:
		return 0;
	}
}

int io_socket(int family, int type)
{
	int one = 1, fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* requests are written whole: waiting to fill a segment only adds a round trip */
	if (fd >= 0 && type == SOCK_STREAM)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

uint32_t io_random(void)
{
	uint32_t v;

	if (getrandom(&v, sizeof v, GRND_NONBLOCK) != (ssize_t)sizeof v)
		v = (uint32_t)clock_mono_ms() * 2654435761u;
	return v;
}
