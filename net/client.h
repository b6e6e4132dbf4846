/* The inside of the client. Included by net/net.c, net/pool.c and net/retry.c only. */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

#include "net/dial.h"
#include "net/net.h"
#include "net/proxy.h"
#include "net/stream.h"

#define POOL_CONNS 4 /* kept connections */
#define POOL_HOSTS 8 /* hosts whose addresses and session are kept */

/* On the heap, because TLS sessions point to their stream. */
struct pool_conn {
	struct stream s;
	bool tls, via_proxy;
	char host[URL_HOST_MAX];
	uint16_t port;
	int64_t idle_ms; /* CLOCK_MONOTONIC when it was put back */
};

struct pool_host {
	char host[URL_HOST_MAX]; /* "" free */
	uint16_t port;
	int64_t used_ms;
	struct net_addr addr[DIAL_KNOWN]; /* the one that worked last first */
	size_t n_addr;
	struct tls_session *session; /* owned; NULL until the first use */
};

struct net {
	struct net_config c;
	struct tls_trust *trust;
	struct proxy https_proxy, http_proxy;
	struct pool_conn *conns[POOL_CONNS]; /* owned; NULL: free */
	struct pool_host hosts[POOL_HOSTS];
	bool clock_checked; /* a verified answer's Date was compared */
};

/* The proxy for that URL, or NULL. */
const struct proxy *pool_proxy(const struct net *n, const struct url *u);

/* A connection to the origin of `u`: a kept one that is still alive and was idle for at most
 * `idle_max_ms` (*reused), else a new one, through the proxy where one is set, TLS up where the
 * scheme says so. The caller owns it until pool_put; NULL with op->f and op->e on failure. */
struct pool_conn *pool_get(struct net *n, const struct net_op *op, const struct url *u,
			   int64_t idle_max_ms, bool *reused);

/* Keeps it (the oldest makes room), or closes and frees it. */
void pool_put(struct net *n, struct pool_conn *c, bool keep);
void pool_close(struct net *n);

#endif
