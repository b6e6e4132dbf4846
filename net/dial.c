#include "net/dial.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "net/resolve.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define HEAD_START_MS 250 /* RFC 8305 section 5: Connection Attempt Delay */
#define V6_WAIT_MS    50  /* section 3: Resolution Delay, how long A waits for AAAA */
#define TRIES_MAX     (RESOLVE_ADDRS + DIAL_KNOWN)

enum try_state { TRY_NEW, TRY_OPEN, TRY_FAILED };

struct
try {
	struct net_addr addr;
	enum try_state state;
	int fd;	 /* while TRY_OPEN */
	int sys; /* errno when TRY_FAILED */
};

struct race {
	const struct net_op *op;
	const struct dial *t;
	struct resolve dns;
	bool asking;	 /* dns was started */
	size_t taken;	 /* of dns.addr */
	int64_t ask_ms;	 /* when to start it */
	int64_t next_ms; /* when the next address may be tried */
	bool last_v6;
	size_t n;
	struct try tries[TRIES_MAX];
};

static void add(struct race *r, const struct net_addr *a)
{
	if (r->t->avoid != NULL && addr_same(r->t->avoid, a))
		return;
	for (size_t i = 0; i < r->n; i++)
		if (addr_same(&r->tries[i].addr, a))
			return;
	if (r->n == TRIES_MAX)
		return;
	r->tries[r->n] = (struct try){*a, TRY_NEW, -1, 0};
	r->tries[r->n].addr.port = r->t->port;
	r->n++;
}

static size_t count(const struct race *r, enum try_state s)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->tries[i].state == s ? 1 : 0;
	return n;
}

static void end_race(struct race *r)
{
	for (size_t i = 0; i < r->n; i++)
		fd_close(&r->tries[i].fd);
	if (r->asking)
		resolve_end(&r->dns);
}

/* The next address: families take turns, so that a dead one costs one head start and not ten. */
static struct try *next_try(struct race *r)
{
	struct try *any = NULL;

	for (size_t i = 0; i < r->n; i++) {
		struct try *t = &r->tries[i];
		if (t->state != TRY_NEW)
			continue;
		if (t->addr.v6 != r->last_v6)
			return t;
		if (any == NULL)
			any = t;
	}
	return any;
}

static void fail(struct race *r, struct try *t, int sys)
{
	fd_close(&t->fd);
	t->state = TRY_FAILED;
	t->sys = sys;
	r->next_ms = clock_mono_ms(); /* the next one need not wait */
}

static void open_try(struct race *r, struct try *t)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_sockaddr(&t->addr, &sa);

	r->op->f->stage = NET_CONNECT;
	r->last_v6 = t->addr.v6;
	r->next_ms = clock_mono_ms() + HEAD_START_MS;
	t->state = TRY_OPEN;
	t->fd = io_socket(sa.ss_family, SOCK_STREAM);
	if (t->fd < 0 || (connect(t->fd, (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS))
		fail(r, t, errno);
}

/* The winner's descriptor once one is connected, else -1. */
static int harvest(struct race *r, struct net_addr *used)
{
	for (size_t i = 0; i < r->n; i++) {
		struct try *t = &r->tries[i];
		struct pollfd p = {t->fd, POLLOUT, 0};
		int sys = 0;
		socklen_t len = sizeof sys;
		if (t->state != TRY_OPEN || poll(&p, 1, 0) <= 0)
			continue;
		if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0)
			sys = errno;
		if (sys == 0) {
			*used = t->addr;
			return take_fd(&t->fd);
		}
		fail(r, t, sys);
	}
	return -1;
}

static void ask(struct race *r)
{
	if (!r->asking && (clock_mono_ms() >= r->ask_ms || count(r, TRY_FAILED) == r->n)) {
		resolve_start(&r->dns, r->t->host, r->t->resolv_conf, r->t->hosts);
		r->asking = true;
	}
	if (!r->asking)
		return;
	resolve_step(&r->dns);
	/* IPv4 answers wait a moment for those of IPv6, which go first */
	if (!resolve_v6_settled(&r->dns) && r->taken == 0 && r->dns.n > 0 && !r->dns.addr[0].v6 &&
	    clock_mono_ms() < r->dns.first_ms + V6_WAIT_MS)
		return;
	for (; r->taken < r->dns.n; r->taken++)
		add(r, &r->dns.addr[r->taken]);
}

static size_t wait_for(const struct race *r, struct pollfd *fds, struct deadline *until)
{
	size_t n = r->asking ? resolve_fds(&r->dns, fds) : 0;

	*until = r->asking ? resolve_when(&r->dns) : (struct deadline){r->ask_ms};
	if (count(r, TRY_NEW) > 0)
		*until = deadline_min(*until, (struct deadline){r->next_ms});
	if (r->asking && r->taken < r->dns.n)
		*until = deadline_min(*until, (struct deadline){r->dns.first_ms + V6_WAIT_MS});
	for (size_t i = 0; i < r->n && n < OP_FDS_MAX; i++)
		if (r->tries[i].state == TRY_OPEN)
			fds[n++] = (struct pollfd){r->tries[i].fd, POLLOUT, 0};
	return n;
}

static int none_connects(const struct race *r)
{
	char list[600] = "", one[ADDR_TEXT_MAX], line[160], why[500];

	if (r->n == 0) {
		r->op->f->stage = NET_RESOLVE;
		r->op->f->no_name = r->dns.fault == RF_NO_NAME;
		resolve_explain(&r->dns, why, sizeof why);
		return err_set(
			r->op->e, XC_UNAVAILABLE, 0,
			"cannot resolve %s: %s; check the container's DNS (/etc/resolv.conf)",
			r->t->host, why);
	}
	for (size_t i = 0; i < r->n; i++) {
		size_t n = strlen(list);
		addr_text(&r->tries[i].addr, one);
		if (str_fmt(line, sizeof line, "%s%s: %s", n > 0 ? "; " : "", one,
			    strerror(r->tries[i].sys)) < 0 ||
		    str_copy(list + n, sizeof list - n, line) < 0) {
			list[n] = 0;
			break;
		}
	}
	return err_set(r->op->e, XC_UNAVAILABLE, 0,
		       "cannot connect to %s:%u (%s): check the network's egress rules and proxy",
		       r->t->host, (unsigned)r->t->port, list);
}

static int out_of_time(const struct race *r)
{
	char what[400], why[500], reason[420];
	bool named = r->n == 0;
	int n;

	if (named) {
		r->op->f->stage = NET_RESOLVE;
		resolve_explain(&r->dns, reason, sizeof reason);
		if (str_fmt(why, sizeof why,
			    "%s; check the container's DNS (/etc/resolv.conf) and the network",
			    reason) < 0)
			named = false;
		n = str_fmt(what, sizeof what, "the look-up of %s", r->t->host);
	} else {
		n = str_fmt(what, sizeof what, "connecting to %s:%u (%zu addresses tried)",
			    r->t->host, (unsigned)r->t->port, r->n - count(r, TRY_NEW));
	}
	return op_timed_out(r->op, n < 0 ? "connecting" : what, named ? why : NULL);
}

static int run(struct race *r, struct net_addr *used)
{
	struct pollfd fds[OP_FDS_MAX];
	struct deadline until;
	struct try *next;
	size_t n;
	int fd;

	for (;;) {
		ask(r);
		fd = harvest(r, used);
		if (fd >= 0)
			return fd;
		while ((next = next_try(r)) != NULL &&
		       (clock_mono_ms() >= r->next_ms || count(r, TRY_OPEN) == 0))
			open_try(r, next);
		if (r->asking && r->dns.done && r->taken == r->dns.n &&
		    count(r, TRY_FAILED) == r->n)
			return none_connects(r);
		n = wait_for(r, fds, &until);
		if (op_wait(r->op, fds, n, until) == OP_CANCELLED)
			return op_cancelled(r->op);
		if (deadline_passed(r->op->d))
			return out_of_time(r);
	}
}

int dial(const struct net_op *op, const struct dial *t, struct net_addr *used, bool *more)
{
	struct net_addr literal;
	struct race r;
	int fd;

	memset(&r, 0, sizeof r);
	r.op = op;
	r.t = t;
	r.next_ms = clock_mono_ms();
	r.ask_ms = t->n_known > 0 ? r.next_ms + HEAD_START_MS : r.next_ms;
	op->f->stage = t->n_known > 0 ? NET_CONNECT : NET_RESOLVE;
	for (size_t i = 0; i < t->n_known; i++)
		add(&r, &t->known[i]);
	fd = run(&r, used);
	*more = !addr_parse(t->host, strlen(t->host), &literal) &&
		(r.n > 1 || !r.asking || !r.dns.done);
	end_race(&r);
	return fd;
}
