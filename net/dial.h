/*
 * Connecting to a host: every address, both families, within one deadline (RFC 8305, "happy
 * eyeballs"). IPv6 goes first with a head start of 250 ms; each further address joins 250 ms after
 * the one before, or at once when that one failed; the first that connects wins.
 */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include "net/addr.h"
#include "net/io.h"

#define DIAL_KNOWN 4 /* addresses remembered per host */

struct dial {
	const char *host;
	uint16_t port;
	const char *resolv_conf, *hosts; /* paths */
	/* Addresses that worked before, the best first: tried first, and DNS is asked only when
	 * none of them connects within the head start. May be none. */
	const struct net_addr *known;
	size_t n_known;
	const struct net_addr *avoid; /* NULL, or an address to leave out */
};

/* A connected socket (non-blocking), in *used its address and in *more whether there may be others
 * to try; or -1 with op->f (stage NET_RESOLVE
 * or NET_CONNECT) and op->e. */
int dial(const struct net_op *op, const struct dial *t, struct net_addr *used, bool *more);

#endif
