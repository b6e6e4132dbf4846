/*
 * The resolver: A and AAAA at once, over UDP with TCP for what does not fit, /etc/hosts and
 * resolv.conf. Our own rather than getaddrinfo's, because that blocks for 5 s and more on a dead
 * server and cannot be interrupted; a helper process for it would have to be killed, and its memory
 * is not there when a container is full. This one is a state machine in the caller's event loop:
 * give its descriptors to poll, step it, read what it found.
 *
 *	resolve_start ──► literal, hosts file, localhost ──► done
 *	      └► name 1 ─► A, AAAA ─► addresses ──► done
 *	             │         └► no such name, no data ─► name 2 (search list) … ─► done, fault
 *	             └► servers fail or are silent: asked again, 1, 2, 4 s apart; every server
 *	                having failed twice ends it, silence only the caller's deadline
 *
 * A name with a dot is asked as it is first and with the search list after that; a name without,
 * the other way round. (ndots is not honoured: it would put up to five useless questions before
 * every name in a Kubernetes pod.)
 */
#ifndef NET_RESOLVE_H
#define NET_RESOLVE_H

#include "base/deadline.h"
#include "net/dns.h"

#include <poll.h>

#define RESOLVE_ADDRS 32 /* addresses kept */
#define RESOLVE_FDS   8	 /* most descriptors it waits for */

enum resolve_fault {
	RF_NONE,
	RF_NO_NAME,   /* NXDOMAIN */
	RF_NO_DATA,   /* the name exists, without addresses */
	RF_NO_SERVER, /* no server can be reached: refused, unreachable */
	RF_SERVER,    /* they answer, with a failure or a refusal */
	RF_SILENT,    /* no answer */
	RF__MAX
};

struct resolve_lookup {
	uint16_t type, id;
	bool done;
	enum resolve_fault fault; /* when done without addresses */
	int udp[DNS_SERVERS_MAX]; /* connected; kept open, so that a late answer still counts */
	bool failed[DNS_SERVERS_MAX];
	enum resolve_fault why[DNS_SERVERS_MAX];
	unsigned sends;
	int64_t next_ms; /* when the next question goes out */
	int tcp;	 /* -1 none */
	size_t tcp_server, tcp_sent, tcp_got;
	unsigned char tcp_out[DNS_QUERY_MAX + 2], tcp_in[DNS_MESSAGE_MAX + 2];
	struct dns_answer partial; /* of the truncated answer, should TCP fail */
};

struct resolve {
	char host[DNS_NAME_TEXT_MAX];
	struct dns_conf conf;
	size_t tries, n_tries; /* index and number of the names to ask for */
	char name[DNS_NAME_TEXT_MAX];
	bool done;
	enum resolve_fault fault;
	int64_t began_ms, first_ms; /* first_ms: when the first address came; 0 not yet */
	struct resolve_lookup l[2]; /* AAAA, A */
	size_t n;
	struct net_addr addr[RESOLVE_ADDRS]; /* ports 0 */
};

/* `resolv_conf`, `hosts`: paths; they are read now. Never fails: what is wrong shows as a fault. */
void resolve_start(struct resolve *r, const char *host, const char *resolv_conf, const char *hosts);
void resolve_end(struct resolve *r); /* closes; the addresses stay */

/* Descriptors to wait for (at most RESOLVE_FDS), and until when at most. */
size_t resolve_fds(const struct resolve *r, struct pollfd *fds);
struct deadline resolve_when(const struct resolve *r);
void resolve_step(struct resolve *r); /* takes what came, sends what is due; never blocks */

/* The answers for IPv6 are in (or will not come). */
bool resolve_v6_settled(const struct resolve *r);

/* What went wrong, for a person: "there is no such name (NXDOMAIN) (asked: SERVERS)". */
void resolve_explain(const struct resolve *r, char *dst, size_t size);

#endif
