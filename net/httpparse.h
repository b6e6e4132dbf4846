/*
 * The response parser: strict, incremental, no allocation. Three outcomes, as picohttpparser has
 * them: done, need more, refuse. It parses what came from the network and trusts none of it.
 *
 * Refused, each with its own text: a bare LF or CR, NUL and other control characters, bytes over
 * 0x7f, folded header lines, a blank before a colon, conflicting or malformed Content-Length,
 * Content-Length beside Transfer-Encoding, a transfer coding other than chunked, versions other
 * than HTTP/1.0 and 1.1, over-long lines, heads, chunk extensions and trailers (RFC 9112 leaves
 * each of these to the recipient or demands it; request smuggling lives in the differences).
 */
#ifndef NET_HTTPPARSE_H
#define NET_HTTPPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_parsed {
	HP_MORE,  /* everything given is fine so far */
	HP_DONE,  /* complete */
	HP_REFUSE /* malformed: see `why` */
};

enum http_framing {
	HF_NONE,   /* no body: 1xx, 204, 304, HEAD, a successful CONNECT */
	HF_LENGTH, /* exactly `length` bytes */
	HF_CHUNKED,
	HF_CLOSE /* until the peer closes */
};

#define HTTP_LINES_MAX 256 /* header lines of one head */

/* Zeroed before the first call. */
struct http_head {
	size_t scan; /* bytes already looked at */
	size_t line; /* where the current line begins */
	unsigned lines;
	int status;
	unsigned minor; /* of the version: 0 or 1 */
	bool has_length, has_coding, chunked;
	bool keep_alive, close; /* Connection said so */
	uint64_t length;
	size_t size;	 /* when done: bytes of the head, the empty line included */
	const char *why; /* when refused: static text */
};

/* `data`, `len`: everything received since the head began; the same bytes and more at the next
 * call (they may have moved). `max`: most bytes of a head. */
enum http_parsed http_head_parse(struct http_head *h, const unsigned char *data, size_t len,
				 size_t max);

/* How the body of a complete head is framed. `head_only`: the request was HEAD. */
enum http_framing http_head_framing(const struct http_head *h, bool head_only);

/* The connection may carry another exchange after this response. */
bool http_head_persists(const struct http_head *h, enum http_framing f);

/* Chunked body. Zeroed before the first call. */
struct http_chunked {
	int state;
	uint64_t left;	 /* bytes of the current chunk still to come */
	unsigned digits; /* of the current size */
	size_t overhead; /* bytes of extensions and trailers so far */
	size_t column;	 /* within a trailer line */
	bool named;	 /* this trailer line has its colon */
	const char *why;
};

/* Takes up to `n` bytes from `in`; *used says how many. *data, *len: body bytes found, inside `in`;
 * HP_MORE with *used == n means that all was taken, with *used < n: call again with the rest. */
enum http_parsed http_chunked_parse(struct http_chunked *c, const unsigned char *in, size_t n,
				    size_t *used, const unsigned char **data, size_t *len);

/* The value of the last header line of that name (any case) in a complete head: start and length
 * without blanks around it, or NULL. */
const unsigned char *http_header_find(const unsigned char *head, size_t size, const char *name,
				      size_t *len);

/* IMF-fixdate, RFC 850 and asctime dates (RFC 9110 §5.6.7): 0 with ms since 1970, or -1. */
int http_date_parse(const char *s, int64_t *ms);

#endif
