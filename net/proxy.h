/*
 * Proxies from the environment, as GitHub's agent reads them (actions/runner,
 * src/Runner.Sdk/RunnerWebProxy.cs) with what its users expect besides: addresses, ranges and
 * [v6]:port in no_proxy.
 */
#ifndef NET_PROXY_H
#define NET_PROXY_H

#include "base/err.h"
#include "net/stream.h"
#include "net/url.h"

#include <stdbool.h>

#define PROXY_AUTH_MAX 1400 /* "Basic …" with NUL */

struct proxy {
	bool use;
	bool tls; /* https://: TLS to the proxy itself */
	char host[URL_HOST_MAX];
	bool host_is_v6;
	uint16_t port;		   /* 80, or 443 with https */
	char auth[PROXY_AUTH_MAX]; /* Proxy-Authorization's value, "" none: a secret, never logged
				    */
	const char *variable;	   /* "https_proxy": for messages */
};

/* `[scheme://][user[:password]@]host[:port][/]`; http when no scheme is given. An empty or NULL
 * text gives use == false. 0, or -1 with XC_CONFIG; the text names the variable, never the value.
 */
int proxy_parse(const char *text, const char *variable, struct proxy *out, struct err *e);
void proxy_wipe(struct proxy *p);

/* True when `u` must be reached without a proxy: a loopback address or localhost, or matched by the
 * no_proxy list (NULL: none). Entries are separated by commas or blanks:
 *	*              everything (the whole entry only; "*.x" never matches)
 *	.example.com   hosts below it
 *	example.com    it and hosts below it
 *	10.1.2.3  ::1  that address            10.0.0.0/8  fd00::/8   that range
 * each host or address with an optional :port ([v6]:port), which then must be the target's. */
bool proxy_bypassed(const char *no_proxy, const struct url *u);

/* "host:port" for messages. */
void proxy_name(const struct proxy *p, char *dst, size_t size);

/* CONNECT through a connected stream: 0, or -1 with op->f (stage NET_PROXY) and op->e: 407 is
 * XC_DENIED, a page or redirect XC_PROTOCOL, other refusals XC_UNAVAILABLE. */
int proxy_connect(const struct proxy *p, struct stream *s, const struct net_op *op,
		  const struct url *target, const char *user_agent);

/* The words for a 407 answer with that Proxy-Authenticate value ("" unknown); always -1. */
int proxy_denied(const struct proxy *p, const char *wants, const struct net_op *op);

#endif
