/*
 * The network client: DNS, dialling, proxies, TLS, HTTP/1.1. It has never heard of GitHub.
 *
 * Lives in one process (the registrar or a probe), never in PID 1: every call may block until its
 * deadline. A `struct net` owns its connections (one per origin and proxy, kept alive), its TLS
 * sessions, the addresses that worked, and the parsed CA bundle; all are used first the next time,
 * so a removal at stop time needs neither DNS nor the file system.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "net/url.h"

#include <stdbool.h>
#include <stdint.h>

#define NET_BODY_MAX	(4u << 20) /* bytes of a response body */
#define NET_HEADERS_MAX 65536	   /* bytes of a response head */

struct net_config {
	/* As curl and the agent read them; NULL or "" when unset. Borrowed for the life of the
	 * client. */
	const char *https_proxy, *http_proxy, *no_proxy;
	const char *ca_file, *ca_dir; /* SSL_CERT_FILE, SSL_CERT_DIR */
	const char *user_agent;	      /* without line breaks */
	int64_t exchange_ms; /* ceiling of one exchange: look-up, connect and handshake included */
	int64_t build_epoch; /* seconds: a clock before this is wrong (XC_CLOCK) */
	/* When >= 0 and readable, every wait ends at once with net_failure.cancelled ("told to
	 * finish"). Borrowed. */
	int cancel_fd;
	/* Tests of the resolver only: instead of /etc/resolv.conf and /etc/hosts. NULL: those. */
	const char *resolv_conf, *hosts;
};

struct net; /* opaque */

/* Reads the CA bundle (counted; none found is an error that names the places looked at). NULL on
 * failure. */
struct net *net_open(const struct net_config *c, struct err *e);
void net_close(struct net *n);			   /* closes connections, wipes; NULL is fine */
void net_set_cancel(struct net *n, int cancel_fd); /* replaces net_config.cancel_fd; -1: none */

/* For the preflight's log: how many CA certificates are in use, and where they came from. */
unsigned net_ca_count(const struct net *n);
const char *net_ca_source(const struct net *n);

struct net_header {
	const char *name,
		*value; /* no line breaks; a credential among them goes to this origin alone */
};

struct net_request {
	const char *method;
	const struct url *url;
	const struct net_header
		*headers; /* Host, User-Agent, Content-Length, Connection are added */
	size_t n_headers;
	const void *body; /* NULL with body_len 0; POST and PUT then send Content-Length: 0 */
	size_t body_len;
	bool follow; /* follow redirects of GET and HEAD within the same origin (3 at most) */
	/* A wrong clock does not fail this exchange (it still fails a certificate that is not valid
	 * at that time): for removals, where an answer is worth more than a right clock. */
	bool any_clock;
};

/* How far an exchange that failed had come: decides what may be repeated. */
enum net_stage {
	NET_RESOLVE,
	NET_CONNECT,
	NET_PROXY,     /* talking to the proxy */
	NET_HANDSHAKE, /* TLS */
	NET_SEND,      /* the request may have reached the server in part or whole */
	NET_RECEIVE, /* the request was sent; the answer did not come, or not whole, or is not HTTP
		      */
	NET_STAGE__MAX
};

struct net_failure {
	enum net_stage stage;
	bool sent;	/* bytes of the request went out: it may have been processed */
	bool cancelled; /* the cancel descriptor became readable */
	bool timeout;	/* the exchange's ceiling or the deadline passed */
	bool permanent; /* trying again cannot help: certificate, credential of the proxy... */
	bool no_name;	/* DNS says that there is no such host */
};

struct net_response {
	int status;	      /* 100..599, final */
	struct buf head;      /* raw header lines, owned */
	struct buf body;      /* BOM stripped, owned; wiped when freed */
	char request_id[128]; /* x-github-request-id or x-vss-e2eid..., printable; "" when none */
	char content_type[128];
	int64_t retry_after_ms; /* from Retry-After (seconds or date) or x-ratelimit-reset; -1: none
				 */
	bool rate_limited;	/* x-ratelimit-remaining: 0 */
	int64_t date_ms;	/* the verified server's Date, ms since 1970; -1: none */
	int64_t ms;		/* how long the exchange took */
	bool via_proxy;
};

/* One exchange, no repetition (but for one fresh connection when a kept one turns out to be closed,
 * the request is GET, HEAD or DELETE and nothing came back). 0 with *r filled, whatever the status;
 * or -1 with *e and *f (f may be NULL) set and nothing in *r to free. Error codes: XC_UNAVAILABLE
 * (not reachable), XC_PROTOCOL (not HTTP, foreign redirect, HTML of a portal), XC_CLOCK, XC_DENIED
 * (407 of the proxy), XC_CONFIG (CA), XC_SYSTEM. XC_CLOCK is raised before anything is sent when
 * the clock is before the build's date, by a certificate that is not valid yet, and by the Date of
 * the client's first verified answer: later ones only fill r->date_ms, since what they answer was
 * done. */
int net_exchange(struct net *n, const struct net_request *q, struct deadline d,
		 struct net_response *r, struct net_failure *f, struct err *e);

void net_response_free(struct net_response *r);

/* A header's value (last one wins; any case), copied and printable. 0, or -1 when absent or too
 * long. */
int net_header_get(const struct net_response *r, const char *name, char *dst, size_t size);

/* The body is a web page: a portal's, a proxy's, a load balancer's. */
bool net_is_html(const struct net_response *r);
/* What answered, for messages: `a web page titled "…", server NAME, via NAME`. */
void net_describe(const struct net_response *r, char *dst, size_t size);

/* ---- repetition: one layer, one table
 * ------------------------------------------------------------- */

/* What may be repeated. A caller picks one; the table of net/retry.c says which failures and
 * statuses. */
enum net_retry {
	NET_ONCE,	/* never */
	NET_IDEMPOTENT, /* GET, DELETE, token minting: connect failures, lost answers, 429, 5xx;
			   401/403 twice */
	NET_UNSENT, /* adding requests: only when nothing was sent, or 429/503 said "not processed"
		     */
	NET_RETRY__MAX
};

/* Called before each pause, so that the log says the step, the failure, and when the next try
 * comes. */
typedef void net_retry_note(void *arg, const char *what, int attempt, int64_t wait_ms);

/* net_exchange with repetition inside `d`; jittered, Retry-After honoured. A wait longer than what
 * is left ends at once and says when it would work. Same results as net_exchange, of the last
 * attempt. */
int net_call(struct net *n, const struct net_request *q, enum net_retry policy, struct deadline d,
	     net_retry_note *note, void *arg, struct net_response *r, struct net_failure *f,
	     struct err *e);

#endif
