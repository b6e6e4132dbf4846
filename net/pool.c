/* Connections, addresses and sessions that are kept from one exchange to the next. */
#include "net/client.h"

#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct proxy *pool_proxy(const struct net *n, const struct url *u)
{
	const struct proxy *p = u->tls ? &n->https_proxy : &n->http_proxy;

	return p->use && !proxy_bypassed(n->c.no_proxy, u) ? p : NULL;
}

static void free_conn(struct pool_conn *c)
{
	if (c == NULL)
		return;
	stream_close(&c->s);
	free(c);
}

static void close_kept(struct net *n)
{
	for (size_t i = 0; i < POOL_CONNS; i++) {
		free_conn(n->conns[i]);
		n->conns[i] = NULL;
	}
}

/* The memory of a host, the least recently used one when there is none yet. */
static struct pool_host *host_slot(struct net *n, const char *host, uint16_t port)
{
	struct pool_host *oldest = &n->hosts[0];

	for (size_t i = 0; i < POOL_HOSTS; i++) {
		struct pool_host *h = &n->hosts[i];
		if (h->port == port && strcmp(h->host, host) == 0) {
			h->used_ms = clock_mono_ms();
			return h;
		}
		if (h->used_ms < oldest->used_ms)
			oldest = h;
	}
	if (oldest->session != NULL)
		close_kept(n); /* one of them may point to the session that goes */
	tls_session_free(oldest->session);
	memset(oldest, 0, sizeof *oldest);
	(void)str_copy(oldest->host, sizeof oldest->host, host);
	oldest->port = port;
	oldest->used_ms = clock_mono_ms();
	oldest->session = tls_session_new(); /* NULL: full handshakes only */
	return oldest;
}

static void forget_address(struct pool_host *h, const struct net_addr *a)
{
	for (size_t i = 0; i < h->n_addr; i++) {
		if (!addr_same(&h->addr[i], a))
			continue;
		h->n_addr--;
		memmove(&h->addr[i], &h->addr[i + 1], (h->n_addr - i) * sizeof h->addr[0]);
		return;
	}
}

static void remember_address(struct pool_host *h, const struct net_addr *a)
{
	forget_address(h, a);
	if (h->n_addr == DIAL_KNOWN)
		h->n_addr--;
	memmove(&h->addr[1], &h->addr[0], h->n_addr * sizeof h->addr[0]);
	h->addr[0] = *a;
	h->n_addr++;
}

/* Where to connect, and what to do on the way to the target. */
struct route {
	const struct proxy *proxy; /* NULL: none */
	const struct url *u;
	const char *host;
	uint16_t port;
	char peer[URL_HOST_MAX + 32], target[URL_HOST_MAX + 32];
};

static void route(const struct net *n, const struct url *u, struct route *r)
{
	const char *open = u->host_is_v6 ? "[" : "", *close = u->host_is_v6 ? "]" : "";

	memset(r, 0, sizeof *r);
	r->proxy = pool_proxy(n, u);
	r->u = u;
	r->host = r->proxy != NULL ? r->proxy->host : u->host;
	r->port = r->proxy != NULL ? r->proxy->port : u->port;
	if (str_fmt(r->target, sizeof r->target, "%s%s%s:%u", open, u->host, close,
		    (unsigned)u->port) < 0)
		(void)str_copy(r->target, sizeof r->target, u->host);
	if (r->proxy == NULL) {
		memcpy(r->peer, r->target, sizeof r->peer);
		return;
	}
	memcpy(r->peer, "the proxy ", 11);
	proxy_name(r->proxy, r->peer + 10, sizeof r->peer - 10);
}

/* TLS to the proxy, the tunnel, TLS to the target: whichever there are. */
static int build_up(struct net *n, const struct net_op *op, const struct route *r, struct stream *s)
{
	struct pool_host *h;

	if (r->proxy != NULL && r->proxy->tls) {
		h = host_slot(n, r->host, r->port);
		if (stream_start_tls(s, op, n->trust, r->host, r->peer, h->session) < 0)
			return -1;
	}
	if (!r->u->tls)
		return 0;
	if (r->proxy != NULL && proxy_connect(r->proxy, s, op, r->u, n->c.user_agent) < 0)
		return -1;
	h = host_slot(n, r->u->host, r->u->port);
	return stream_start_tls(s, op, n->trust, r->u->host, r->target, h->session);
}

/* One connection. `avoid` (NULL none): an address to leave out. *used and *more: which address it
 * was, and whether there may be others to try. */
static int attempt(struct net *n, const struct net_op *op, const struct route *r,
		   const struct net_addr *avoid, struct stream *s, struct net_addr *used,
		   bool *more)
{
	struct pool_host *h = host_slot(n, r->host, r->port);
	struct dial t = {.host = r->host,
			 .port = r->port,
			 .resolv_conf = n->c.resolv_conf,
			 .hosts = n->c.hosts,
			 .known = h->addr,
			 .n_known = h->n_addr,
			 .avoid = avoid};
	struct net_op first = *op;

	*more = false;
	s->fd = dial(op, &t, used, more);
	if (s->fd < 0)
		return -1;
	/* An address that connects and then swallows what is sent (a path that drops large packets,
	 * the usual broken IPv6) must leave time for the next one. */
	if (*more)
		first.d = deadline_min(op->d, deadline_in(deadline_left_ms(op->d) / 2));
	if (build_up(n, &first, r, s) == 0) {
		remember_address(host_slot(n, r->host, r->port), used);
		return 0;
	}
	forget_address(host_slot(n, r->host, r->port), used);
	stream_close(s);
	return -1;
}

static int connect_new(struct net *n, const struct net_op *op, const struct url *u,
		       struct stream *s)
{
	struct net_failure again = *op->f;
	struct err why = ERR_INIT;
	struct net_op second = *op;
	struct net_addr used, ignored;
	struct route r;
	bool more = false, none;

	route(n, u, &r);
	memset(&used, 0, sizeof used);
	if (attempt(n, op, &r, NULL, s, &used, &more) == 0)
		return 0;
	if (!more || op->f->permanent || op->f->cancelled || op->f->stage < NET_PROXY ||
	    deadline_passed(op->d))
		return -1;
	second.f = &again;
	second.e = &why;
	if (attempt(n, &second, &r, &used, s, &ignored, &none) == 0) {
		memset(op->f, 0, sizeof *op->f);
		if (op->e != NULL)
			*op->e = (struct err)ERR_INIT;
		return 0;
	}
	if (again.stage < NET_PROXY && !again.cancelled)
		return -1; /* the others do not even connect: the first failure tells more */
	*op->f = again;
	if (op->e != NULL)
		*op->e = why;
	return -1;
}

/* Nothing to read is life; an end, an error or bytes that nobody asked for are not. */
static bool alive(struct stream *s)
{
	unsigned char c;

	return stream_try_read(s, &c, 1) == TLS_AGAIN;
}

struct pool_conn *pool_get(struct net *n, const struct net_op *op, const struct url *u,
			   int64_t idle_max_ms, bool *reused)
{
	bool via = pool_proxy(n, u) != NULL;
	struct pool_conn *c;

	for (size_t i = 0; i < POOL_CONNS; i++) {
		c = n->conns[i];
		if (c == NULL || c->tls != u->tls || c->via_proxy != via || c->port != u->port ||
		    strcmp(c->host, u->host) != 0)
			continue;
		n->conns[i] = NULL;
		*reused = clock_mono_ms() - c->idle_ms <= idle_max_ms && alive(&c->s);
		if (*reused)
			return c;
		free_conn(c);
	}
	*reused = false;
	c = calloc(1, sizeof *c);
	if (c == NULL) {
		(void)err_set(op->e, XC_SYSTEM, ENOMEM, "cannot connect to %s", u->host);
		return NULL;
	}
	stream_init(&c->s);
	c->tls = u->tls;
	c->via_proxy = via;
	c->port = u->port;
	memcpy(c->host, u->host, sizeof c->host);
	if (connect_new(n, op, u, &c->s) == 0)
		return c;
	free_conn(c);
	return NULL;
}

void pool_put(struct net *n, struct pool_conn *c, bool keep)
{
	size_t slot = 0;

	if (!keep) {
		free_conn(c);
		return;
	}
	for (size_t i = 0; i < POOL_CONNS && n->conns[slot] != NULL; i++)
		if (n->conns[i] == NULL || n->conns[i]->idle_ms < n->conns[slot]->idle_ms)
			slot = i;
	free_conn(n->conns[slot]);
	c->idle_ms = clock_mono_ms();
	n->conns[slot] = c;
}

void pool_close(struct net *n)
{
	close_kept(n);
	for (size_t i = 0; i < POOL_HOSTS; i++) {
		tls_session_free(n->hosts[i].session);
		n->hosts[i].session = NULL;
	}
}
