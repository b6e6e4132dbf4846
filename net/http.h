/* One HTTP/1.1 exchange on an open stream: the request written, the response read and checked. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "net/net.h"
#include "net/stream.h"

struct http_request {
	const struct net_request *q;
	const char *user_agent;
	bool absolute;		/* through a plain proxy: the target is a whole URL */
	const char *proxy_auth; /* with `absolute`; "" none */
	const char *peer;	/* "host:port", for messages */
};

/* The request as it goes out. 0, or -1 with *e: XC_BUG for a method, header name or value that
 * cannot be sent (line breaks), XC_SYSTEM. The bytes hold credentials: the buffer wipes itself. */
int http_write_request(struct buf *out, const struct http_request *h, struct err *e);

/* Sends and receives. 0 with r->status, head and body (framing undone, BOM stripped), and
 * *persists: the stream may carry another exchange. -1 with op->f and op->e; r is then freed.
 * *silent: nothing at all came back, as on a connection that the peer had closed while idle. */
int http_exchange(struct stream *s, const struct net_op *op, const struct http_request *h,
		  struct net_response *r, bool *persists, bool *silent);

#endif
