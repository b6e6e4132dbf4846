/* What a complete response means beyond its status: ids, waiting times, clocks, portals. */
#ifndef NET_ANSWER_H
#define NET_ANSWER_H

#include "net/io.h"
#include "net/net.h"

#define CLOCK_SLACK_MS 300000 /* contract: more than 5 minutes off is a wrong clock */

/* Fills the fields of `r` that come from header lines. `verified`: over TLS. */
void answer_read_headers(struct net_response *r, bool verified);

/* 0, or -1 with XC_PROTOCOL when the answer cannot be the origin's: a redirect to somewhere else, a
 * page where data was asked for, a coding nobody asked for. `via` names the proxy, "" none. */
int answer_check_origin(const struct net_response *r, const struct net_request *q, const char *via,
			const struct net_op *op);

/* 0, or -1 with XC_CLOCK when the verified Date and the clock are too far apart. */
int answer_check_clock(const struct net_response *r, const char *peer, const struct net_op *op);

/* The target of a redirect, resolved against `base`: 0 when it is one and can be parsed. */
int answer_redirect(const struct net_response *r, const struct url *base, struct url *out);

#endif
