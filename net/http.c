#include "net/http.h"

#include "base/str.h"
#include "net/httpparse.h"

#include <errno.h>
#include <string.h>

#define REQUEST_MAX (NET_BODY_MAX + 65536)
#define INTERIM_MAX 8 /* 1xx answers before the final one */
#define READ_CHUNK  16384

static bool sendable(const char *s, const char *refused)
{
	for (; *s != 0; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f || strchr(refused, *s) != NULL)
			return false;
	return true;
}

static bool needs_length(const char *method)
{
	return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
	       strcmp(method, "PATCH") == 0;
}

static int put_headers(struct buf *out, const struct net_request *q, struct err *e)
{
	for (size_t i = 0; i < q->n_headers; i++) {
		const struct net_header *h = &q->headers[i];
		if (h->name[0] == 0 || !sendable(h->name, " :") || !sendable(h->value, ""))
			return err_set(e, XC_BUG, 0, "a request header that cannot be sent (%zu)",
				       i);
		if (buf_putf(out, "%s: %s\r\n", h->name, h->value) < 0)
			return err_set(e, XC_SYSTEM, errno, "cannot write the request");
	}
	return 0;
}

int http_write_request(struct buf *out, const struct http_request *h, struct err *e)
{
	const struct net_request *q = h->q;
	char authority[URL_HOST_MAX + 16], target[URL_TEXT_MAX];

	if (q->method[0] == 0 || !sendable(q->method, " ") || !sendable(h->user_agent, "") ||
	    url_authority(q->url, authority, sizeof authority) < 0 ||
	    (h->absolute ? url_text(q->url, target, sizeof target)
			 : str_copy(target, sizeof target, q->url->path)) < 0)
		return err_set(e, XC_BUG, 0, "a request that cannot be sent");
	if (buf_putf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", q->method, target,
		     authority, h->user_agent) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot write the request");
	if (put_headers(out, q, e) < 0)
		return -1;
	if ((h->absolute && h->proxy_auth[0] != 0 &&
	     buf_putf(out, "Proxy-Authorization: %s\r\n", h->proxy_auth) < 0) ||
	    ((q->body_len > 0 || needs_length(q->method)) &&
	     buf_putf(out, "Content-Length: %zu\r\n", q->body_len) < 0) ||
	    buf_puts(out, "Connection: keep-alive\r\n\r\n") < 0 ||
	    buf_put(out, q->body, q->body_len) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot write the request");
	return 0;
}

/* The response in the making. `raw` holds what was received and not yet taken. */
struct reading {
	struct stream *s;
	const struct net_op *op;
	const struct http_request *h;
	struct net_response *r;
	struct http_head head;
	struct buf raw;
	bool any; /* a byte came */
};

static int refuse(const struct reading *g, const char *why)
{
	return err_set(g->op->e, XC_PROTOCOL, 0, "%s did not answer in proper HTTP: %s", g->h->peer,
		       why);
}

/* Receives more into raw: 1, 0 at the end of the stream, -1. */
static int more(struct reading *g)
{
	unsigned char *to = buf_room(&g->raw, READ_CHUNK);
	ssize_t n;

	if (to == NULL)
		return err_set(g->op->e, XC_SYSTEM, errno, "cannot hold the answer of %s",
			       g->h->peer);
	n = stream_read(g->s, g->op, to, READ_CHUNK, g->h->peer);
	if (n <= 0)
		return n < 0 ? -1 : 0;
	buf_grew(&g->raw, (size_t)n);
	g->any = true;
	return 1;
}

static int cut_short(const struct reading *g, const char *what)
{
	return err_set(g->op->e, XC_UNAVAILABLE, 0, "%s closed the connection %s", g->h->peer,
		       what);
}

/* One head, perhaps of an interim answer, is moved from raw to r->head. */
static int read_head(struct reading *g)
{
	enum http_parsed p = HP_MORE;

	memset(&g->head, 0, sizeof g->head);
	for (;;) {
		int n;
		if (g->raw.len > 0)
			p = http_head_parse(&g->head, g->raw.data, g->raw.len, NET_HEADERS_MAX);
		if (p != HP_MORE)
			break;
		n = more(g);
		if (n < 0)
			return -1;
		if (n == 0)
			return cut_short(g, g->any ? "in the middle of the answer's head"
						   : "without an answer");
	}
	if (p == HP_REFUSE)
		return refuse(g, g->head.why);
	buf_reset(&g->r->head);
	if (buf_put(&g->r->head, g->raw.data, g->head.size) < 0)
		return err_set(g->op->e, XC_SYSTEM, errno, "cannot hold the answer of %s",
			       g->h->peer);
	buf_consume(&g->raw, g->head.size);
	g->r->status = g->head.status;
	return 0;
}

static int read_final_head(struct reading *g)
{
	for (int i = 0; i <= INTERIM_MAX; i++) {
		if (read_head(g) < 0)
			return -1;
		if (g->head.status == 101)
			return refuse(g, "it changed to a protocol nobody asked for (101)");
		if (g->head.status >= 200)
			return 0;
	}
	return refuse(g, "interim answers without end");
}

static int keep(struct reading *g, const void *p, size_t n)
{
	if (buf_put(&g->r->body, p, n) == 0)
		return 0;
	if (errno == EMSGSIZE)
		return err_set(g->op->e, XC_PROTOCOL, 0, "the answer of %s is larger than %u bytes",
			       g->h->peer, NET_BODY_MAX);
	return err_set(g->op->e, XC_SYSTEM, errno, "cannot hold the answer of %s", g->h->peer);
}

static int read_length(struct reading *g)
{
	uint64_t left = g->head.length;

	if (left > NET_BODY_MAX)
		return err_set(g->op->e, XC_PROTOCOL, 0, "the answer of %s is larger than %u bytes",
			       g->h->peer, NET_BODY_MAX);
	for (;;) {
		size_t k = g->raw.len < left ? g->raw.len : (size_t)left;
		int n;
		if (keep(g, g->raw.data, k) < 0)
			return -1;
		buf_consume(&g->raw, k);
		left -= k;
		if (left == 0)
			return 0;
		n = more(g);
		if (n < 0)
			return -1;
		if (n == 0)
			return cut_short(g, "before the end of the answer");
	}
}

static int read_chunked(struct reading *g)
{
	struct http_chunked c;

	memset(&c, 0, sizeof c);
	for (;;) {
		size_t at = 0;
		enum http_parsed p = HP_MORE;
		int n;
		while (p == HP_MORE && at < g->raw.len) {
			const unsigned char *data;
			size_t used, len;
			p = http_chunked_parse(&c, g->raw.data + at, g->raw.len - at, &used, &data,
					       &len);
			if (len > 0 && keep(g, data, len) < 0)
				return -1;
			at += used;
		}
		buf_consume(&g->raw, at);
		if (p == HP_REFUSE)
			return refuse(g, c.why);
		if (p == HP_DONE)
			return 0;
		n = more(g);
		if (n < 0)
			return -1;
		if (n == 0)
			return cut_short(g, "before the end of the answer");
	}
}

static int read_to_close(struct reading *g)
{
	for (;;) {
		int n;
		if (keep(g, g->raw.data, g->raw.len) < 0)
			return -1;
		buf_reset(&g->raw);
		n = more(g);
		if (n <= 0)
			return n;
	}
}

static int read_body(struct reading *g, bool *persists)
{
	enum http_framing f = http_head_framing(&g->head, strcmp(g->h->q->method, "HEAD") == 0);
	int r = 0;

	*persists = http_head_persists(&g->head, f);
	if (f == HF_LENGTH)
		r = read_length(g);
	else if (f == HF_CHUNKED)
		r = read_chunked(g);
	else if (f == HF_CLOSE)
		r = read_to_close(g);
	if (r < 0)
		return -1;
	/* what follows would be taken for the next answer */
	*persists = *persists && g->raw.len == 0;
	if (g->r->body.len >= 3 && memcmp(g->r->body.data, "\xef\xbb\xbf", 3) == 0)
		buf_consume(&g->r->body, 3);
	return 0;
}

int http_exchange(struct stream *s, const struct net_op *op, const struct http_request *h,
		  struct net_response *r, bool *persists, bool *silent)
{
	struct reading g = {.s = s, .op = op, .h = h, .r = r};
	cleanup_buf struct buf request;
	struct err send_error = ERR_INIT;
	struct net_op sending = *op;
	int sent, got;

	buf_init(&request, REQUEST_MAX);
	buf_init(&g.raw, NET_HEADERS_MAX + 2 * READ_CHUNK);
	op->f->stage = NET_SEND;
	*silent = false;
	if (http_write_request(&request, h, op->e) < 0)
		return -1;
	sending.e = &send_error;
	sent = stream_write(s, &sending, request.data, request.len, h->peer);
	if (sent < 0 && (op->f->cancelled || op->f->timeout)) {
		if (op->e != NULL)
			*op->e = send_error;
		return -1;
	}
	/* A server may refuse early and close: its answer explains what the broken pipe does not.
	 */
	if (sent == 0)
		op->f->stage = NET_RECEIVE;
	got = read_final_head(&g) < 0 || read_body(&g, persists) < 0 ? -1 : 0;
	*silent = got < 0 && !g.any && !op->f->cancelled && !op->f->timeout;
	if (sent < 0) {
		*persists = false;
		if (got < 0 && !g.any && !stream_alerted(s) && op->e != NULL)
			*op->e = send_error;
	}
	buf_free(&g.raw);
	if (got < 0)
		net_response_free(r);
	return got;
}
