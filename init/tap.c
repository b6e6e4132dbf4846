#include "init/tap.h"

#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/exitcode.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024	 /* of a line that are looked at */
#define PIECE	   4096	 /* a pipe that polls writable takes this much without blocking */
#define TEE_BYTES  65536 /* looked at and moved at a time */

/* Reports travel through one pipe from taps to PID 1, each whole. */
_Static_assert(sizeof(struct tap_report) <= PIPE_BUF, "a report must be one atomic write");

/* The line being assembled, of one stream. */
struct scan {
	char line[LINE_BYTES];
	size_t len;
	bool long_;	/* the rest of the line is not kept */
	bool unaligned; /* began in the middle of a line: nothing counts before its end */
};

struct stream {
	int src, dst;
	size_t pending; /* bytes looked at, still to be moved */
	bool eof;
	bool drop;  /* nobody reads dst any more: what comes is thrown away */
	bool plain; /* the kernel does not splice here: through `buf` */
	char buf[PIECE];
	size_t at; /* in buf, with `plain` */
	struct scan scan;
};

/* Of the tap's process; static, as everything else that PID 1 forks with. */
static struct {
	struct stream s[2];
	int look_r, look_w; /* what tee copies, to be read */
	int report_w;
} tap_child;

/* ---- in the tap ---- */

static void report(const struct tap_report *r)
{
	struct tap_report now = *r;

	now.at_ms = clock_mono_ms();
	/* Blocks when PID 1 does not read, which stalls the agent and nobody else. */
	while (write(tap_child.report_w, &now, sizeof now) < 0 && errno == EINTR)
		;
}

static void scan_bytes(struct scan *s, const char *p, size_t n)
{
	struct tap_report r;

	while (n > 0) {
		const char *nl = memchr(p, '\n', n);
		size_t k = nl != NULL ? (size_t)(nl - p) : n;
		size_t room = sizeof s->line - s->len;
		size_t kept = k < room ? k : room;

		memcpy(s->line + s->len, p, kept);
		s->len += kept;
		s->long_ |= kept < k;
		if (nl == NULL)
			return;
		if (!s->unaligned && tap_classify(s->line, s->len, &r))
			report(&r);
		s->len = 0;
		s->long_ = s->unaligned = false;
		n -= k + 1;
		p = nl + 1;
	}
}

static void look(struct stream *s, size_t n)
{
	char piece[PIECE];

	while (n > 0) {
		ssize_t r = read(tap_child.look_r, piece, n < sizeof piece ? n : sizeof piece);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return;
		scan_bytes(&s->scan, piece, (size_t)r);
		n -= (size_t)r;
	}
}

/* Reads up to a piece for the plain way: true when something is pending. */
static bool take(struct stream *s)
{
	ssize_t r = read(s->src, s->buf, sizeof s->buf);

	if (r == 0)
		s->eof = true;
	if (r <= 0)
		return false;
	scan_bytes(&s->scan, s->buf, (size_t)r);
	s->pending = (size_t)r;
	s->at = 0;
	return true;
}

/* New bytes at the source: looked at through a copy, so that they stay in the pipe until they are
 * moved, and a tap that is killed in between loses none. */
static void pull(struct stream *s)
{
	ssize_t n;

	if (s->plain || s->drop) {
		if (take(s) && s->drop)
			s->pending = 0;
		return;
	}
	n = tee(s->src, tap_child.look_w, TEE_BYTES, SPLICE_F_NONBLOCK);
	if (n > 0) {
		look(s, (size_t)n);
		s->pending = (size_t)n;
	} else if (n == 0) {
		s->eof = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		s->plain = true;
		(void)take(s);
	}
}

/* The reader of the container's stream is gone. The agent must not suffer from that. */
static void nobody_reads(struct stream *s)
{
	s->drop = true;
	s->pending = 0;
}

static void push_plain(struct stream *s)
{
	ssize_t r = write(s->dst, s->buf + s->at, s->pending);

	if (r >= 0) {
		s->at += (size_t)r;
		s->pending -= (size_t)r;
	} else if (errno != EINTR && errno != EAGAIN) {
		nobody_reads(s);
	}
}

/* What was looked at but cannot be spliced is read after all, a piece at a time. */
static void go_plain(struct stream *s)
{
	size_t todo = s->pending;

	s->plain = true;
	s->pending = 0;
	while (todo > 0 && !s->drop) {
		ssize_t r = read(s->src, s->buf, todo < sizeof s->buf ? todo : sizeof s->buf);
		if (r <= 0)
			return;
		todo -= (size_t)r;
		s->at = 0;
		s->pending = (size_t)r;
		while (s->pending > 0) {
			struct pollfd p = {s->dst, POLLOUT, 0};
			if (poll(&p, 1, -1) == 1)
				push_plain(s);
		}
	}
}

static void push(struct stream *s)
{
	ssize_t r;

	if (s->plain) {
		push_plain(s);
		return;
	}
	r = splice(s->src, NULL, s->dst, NULL, s->pending, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (r > 0)
		s->pending -= (size_t)r;
	else if (r == 0)
		s->pending = 0;
	else if (errno == EPIPE)
		nobody_reads(s);
	else if (errno != EAGAIN && errno != EINTR)
		go_plain(s);
}

/* A terminal or socket polls writable with little room; then the write itself waits, here. */
static void turn(void)
{
	struct pollfd p[2];

	for (int i = 0; i < 2; i++) {
		struct stream *s = &tap_child.s[i];
		bool out = s->pending > 0;
		p[i] = (struct pollfd){s->eof ? -1
				       : out  ? s->dst
					      : s->src,
				       (short)(out ? POLLOUT : POLLIN), 0};
	}
	if (poll(p, 2, -1) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		struct stream *s = &tap_child.s[i];
		if (p[i].revents == 0)
			continue;
		if (s->pending > 0 && (p[i].revents & POLLERR) != 0 && !s->plain)
			nobody_reads(s); /* a pipe without readers */
		else if (s->pending > 0)
			push(s);
		else
			pull(s);
	}
}

static int tap_main(void *arg)
{
	int look_fds[2];
	struct tap_report end = {.line = TAP_EOF};

	(void)arg;
	if (pipe2(look_fds, O_CLOEXEC | O_NONBLOCK) == 0) {
		tap_child.look_r = look_fds[0];
		tap_child.look_w = look_fds[1];
	} else {
		tap_child.s[0].plain = tap_child.s[1].plain = true;
	}
	while (!tap_child.s[0].eof || !tap_child.s[1].eof)
		turn();
	report(&end);
	return XC_OK;
}

/* ---- in PID 1 ---- */

static int fork_tap(struct tap *t, bool again, struct err *e)
{
	cleanup_fd int report_r = -1, report_w = -1;
	int report_fds[2], keep[3];

	if (pipe2(report_fds, O_CLOEXEC) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot make a pipe for the tap's reports");
	report_r = report_fds[0];
	report_w = report_fds[1];
	/* Our ends are descriptions of our own; the agent's ends keep their flags. */
	if (fcntl(report_r, F_SETFL, O_NONBLOCK) < 0 || fcntl(t->out_r, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(t->err_r, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot set up the tap's reports");
	memset(&tap_child, 0, sizeof tap_child);
	tap_child.report_w = report_w;
	for (int i = 0; i < 2; i++) {
		tap_child.s[i].src = i == 0 ? t->out_r : t->err_r;
		tap_child.s[i].dst = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
		tap_child.s[i].scan.unaligned = again;
	}
	keep[0] = t->out_r;
	keep[1] = t->err_r;
	keep[2] = report_w;
	if (spawn_fn(tap_main, NULL, keep, 3, true, &t->proc, e) < 0)
		return -1;
	t->report_r = take_fd(&report_r);
	return 0;
}

int tap_start(struct tap *t, int *out_w, int *err_w, struct err *e)
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot make a pipe for the agent's output");
	if (pipe2(err, O_CLOEXEC) < 0) {
		int saved = errno;
		(void)close(out[0]);
		(void)close(out[1]);
		return err_set(e, XC_SYSTEM, saved, "cannot make a pipe for the agent's errors");
	}
	t->out_r = out[0];
	t->err_r = err[0];
	if (fork_tap(t, false, e) < 0) {
		(void)close(out[1]);
		(void)close(err[1]);
		fd_close(&t->out_r);
		fd_close(&t->err_r);
		return -1;
	}
	*out_w = out[1];
	*err_w = err[1];
	return 0;
}

int tap_restart(struct tap *t, struct err *e)
{
	fd_close(&t->report_r);
	return fork_tap(t, true, e);
}

int tap_next(struct tap *t, struct tap_report *out)
{
	struct tap_report r;
	ssize_t n;

	if (t->report_r < 0)
		return 0;
	do
		n = read(t->report_r, &r, sizeof r);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n != (ssize_t)sizeof r || r.line >= TAP_LINE__MAX)
		return -1;
	r.result[sizeof r.result - 1] = 0;
	r.text[sizeof r.text - 1] = 0;
	*out = r;
	return 1;
}

void tap_stop(struct tap *t)
{
	fd_close(&t->out_r);
	fd_close(&t->err_r);
	fd_close(&t->report_r);
	fd_close(&t->proc.pidfd);
}
