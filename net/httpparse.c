#include "net/httpparse.h"

#include <string.h>
#include <strings.h>

#define TRAILERS_MAX 8192 /* bytes of chunk extensions and trailers of one body */

static bool is_token(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static enum http_parsed refuse(struct http_head *h, const char *why)
{
	h->why = why;
	return HP_REFUSE;
}

/* NULL when the byte may stand in a line, else the reason why not. */
static const char *bad_byte(unsigned char c)
{
	if (c == 0)
		return "a NUL byte in a header line";
	if (c == '\n')
		return "a bare line feed in the head";
	if (c >= 0x80)
		return "a byte over 0x7f in a header line";
	if ((c < 0x20 && c != '\t') || c == 0x7f)
		return "a control character in a header line";
	return NULL;
}

static bool word_is(const unsigned char *v, size_t n, const char *word)
{
	return n == strlen(word) && strncasecmp((const char *)v, word, n) == 0;
}

/* HTTP/1.x SP 3DIGIT [SP reason] */
static const char *status_line(struct http_head *h, const unsigned char *s, size_t n)
{
	if (n < 5 || memcmp(s, "HTTP/", 5) != 0)
		return "the answer is not HTTP";
	if (n < 12 || s[5] != '1' || s[6] != '.' || (s[7] != '0' && s[7] != '1') || s[8] != ' ')
		return "an HTTP version other than 1.0 and 1.1";
	if (!digit(s[9]) || !digit(s[10]) || !digit(s[11]) || (n > 12 && s[12] != ' '))
		return "a malformed status line";
	h->minor = (unsigned)(s[7] - '0');
	h->status = (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
	if (h->status < 100 || h->status > 599)
		return "a status outside 100 to 599";
	return NULL;
}

static const char *content_length(struct http_head *h, const unsigned char *v, size_t n)
{
	uint64_t len = 0;

	if (n == 0 || n > 18)
		return "a malformed Content-Length";
	for (size_t i = 0; i < n; i++) {
		if (!digit(v[i]))
			return "a malformed Content-Length";
		len = len * 10 + (uint64_t)(v[i] - '0');
	}
	if (h->has_length && h->length != len)
		return "conflicting Content-Length lines";
	h->has_length = true;
	h->length = len;
	return NULL;
}

/* Comma list; only the two words matter. */
static void connection(struct http_head *h, const unsigned char *v, size_t n)
{
	while (n > 0) {
		const unsigned char *comma = memchr(v, ',', n);
		size_t w = comma == NULL ? n : (size_t)(comma - v),
		       step = comma == NULL ? n : w + 1;
		const unsigned char *p = v;
		while (w > 0 && (*p == ' ' || *p == '\t')) {
			p++;
			w--;
		}
		while (w > 0 && (p[w - 1] == ' ' || p[w - 1] == '\t'))
			w--;
		h->close = h->close || word_is(p, w, "close");
		h->keep_alive = h->keep_alive || word_is(p, w, "keep-alive");
		v += step;
		n -= step;
	}
}

/* Splits name and value. NULL, or why not. */
static const char *split(const unsigned char *s, size_t n, size_t *name_len,
			 const unsigned char **value, size_t *value_len)
{
	size_t k = 0;

	if (s[0] == ' ' || s[0] == '\t')
		return "a folded header line";
	while (k < n && is_token(s[k]))
		k++;
	if (k == 0 || k == n)
		return "a header line without a name and a colon";
	if (s[k] != ':')
		return s[k] == ' ' || s[k] == '\t'
			       ? "a blank before the colon of a header line"
			       : "a header name with a character it cannot have";
	*name_len = k++;
	while (k < n && (s[k] == ' ' || s[k] == '\t'))
		k++;
	while (n > k && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	*value = s + k;
	*value_len = n - k;
	return NULL;
}

static const char *header_line(struct http_head *h, const unsigned char *s, size_t n)
{
	const unsigned char *v;
	size_t name, len;
	const char *why = split(s, n, &name, &v, &len);

	if (why != NULL)
		return why;
	if (h->lines > HTTP_LINES_MAX)
		return "too many header lines";
	if (word_is(s, name, "content-length"))
		return content_length(h, v, len);
	if (word_is(s, name, "transfer-encoding")) {
		if (h->has_coding || !word_is(v, len, "chunked"))
			return "a transfer coding other than chunked";
		h->has_coding = h->chunked = true;
	}
	if (word_is(s, name, "connection"))
		connection(h, v, len);
	return NULL;
}

static enum http_parsed head_end(struct http_head *h)
{
	if (h->has_coding && h->has_length)
		return refuse(h, "Content-Length beside Transfer-Encoding");
	if (h->has_coding && h->minor == 0)
		return refuse(h, "Transfer-Encoding in an HTTP/1.0 answer");
	h->size = h->scan;
	return HP_DONE;
}

/* A first line that cannot become a status line is refused before its end is seen. */
static bool hopeless(const unsigned char *data, size_t len)
{
	return memcmp(data, "HTTP/", len < 5 ? len : 5) != 0;
}

enum http_parsed http_head_parse(struct http_head *h, const unsigned char *data, size_t len,
				 size_t max)
{
	if (h->lines == 0 && len > 0 && hopeless(data, len))
		return refuse(h, "the answer is not HTTP");
	while (h->scan < len) {
		unsigned char c = data[h->scan];
		const char *why;
		if (h->scan >= max)
			return refuse(h, "a head larger than allowed");
		if (c != '\r') {
			why = bad_byte(c);
			if (why != NULL)
				return refuse(h, why);
			h->scan++;
			continue;
		}
		if (h->scan + 2 > max)
			return refuse(h, "a head larger than allowed");
		if (h->scan + 1 >= len)
			return HP_MORE;
		if (data[h->scan + 1] != '\n')
			return refuse(h, "a bare carriage return in the head");
		size_t at = h->line, n = h->scan - h->line;
		h->scan += 2;
		h->line = h->scan;
		if (n == 0 && h->lines > 0)
			return head_end(h);
		why = h->lines == 0 ? status_line(h, data + at, n) : header_line(h, data + at, n);
		h->lines++;
		if (why != NULL)
			return refuse(h, why);
	}
	return h->scan >= max ? refuse(h, "a head larger than allowed") : HP_MORE;
}

enum http_framing http_head_framing(const struct http_head *h, bool head_only)
{
	if (head_only || h->status < 200 || h->status == 204 || h->status == 304)
		return HF_NONE;
	if (h->chunked)
		return HF_CHUNKED;
	return h->has_length ? HF_LENGTH : HF_CLOSE;
}

bool http_head_persists(const struct http_head *h, enum http_framing f)
{
	if (h->close || f == HF_CLOSE)
		return false;
	return h->minor == 1 || h->keep_alive;
}

enum {
	CH_SIZE, /* hexadecimal digits */
	CH_EXT,	 /* after them, up to CR */
	CH_SIZE_LF,
	CH_DATA,
	CH_DATA_CR,
	CH_DATA_LF,
	CH_TRAILER, /* a trailer line, or the empty one */
	CH_TRAILER_LF,
	CH_END_LF,
	CH_DONE
};

static int hex(unsigned char c)
{
	if (digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static const char *chunk_size(struct http_chunked *c, unsigned char b)
{
	int v = hex(b);

	if (v >= 0) {
		if (++c->digits > 8)
			return "a chunk larger than allowed";
		c->left = c->left * 16 + (uint64_t)v;
		return NULL;
	}
	if (c->digits == 0)
		return "a malformed chunk size";
	if (b == '\r')
		c->state = CH_SIZE_LF;
	else if (b == ';' || b == ' ' || b == '\t')
		c->state = CH_EXT;
	else
		return "a malformed chunk size";
	return NULL;
}

static const char *chunk_ext(struct http_chunked *c, unsigned char b)
{
	if (b == '\r') {
		c->state = CH_SIZE_LF;
		return NULL;
	}
	if (++c->overhead > TRAILERS_MAX)
		return "chunk extensions larger than allowed";
	return bad_byte(b);
}

/* One byte of a trailer line. Names are checked; values are dropped. */
static const char *trailer(struct http_chunked *c, unsigned char b)
{
	if (b == '\r') {
		if (c->column > 0 && !c->named)
			return "a trailer line without a name and a colon";
		c->state = c->column == 0 ? CH_END_LF : CH_TRAILER_LF;
		return NULL;
	}
	if (++c->overhead > TRAILERS_MAX)
		return "trailers larger than allowed";
	if (!c->named && b == ':' && c->column > 0)
		c->named = true;
	else if (!c->named && !is_token(b))
		return c->column == 0 && (b == ' ' || b == '\t') ? "a folded trailer line"
								 : "a malformed trailer name";
	c->column++;
	return bad_byte(b);
}

/* Every state but CH_DATA takes one byte. NULL, or why not. */
static const char *chunk_step(struct http_chunked *c, unsigned char b)
{
	switch (c->state) {
	case CH_SIZE:
		return chunk_size(c, b);
	case CH_EXT:
		return chunk_ext(c, b);
	case CH_SIZE_LF:
		c->state = c->left > 0 ? CH_DATA : CH_TRAILER;
		return b == '\n' ? NULL : "a bare carriage return after a chunk size";
	case CH_DATA_CR:
		c->state = CH_DATA_LF;
		return b == '\r' ? NULL : "a chunk longer than its size";
	case CH_DATA_LF:
		c->state = CH_SIZE;
		c->digits = 0;
		return b == '\n' ? NULL : "a bare carriage return after a chunk";
	case CH_TRAILER:
		return trailer(c, b);
	case CH_TRAILER_LF:
		c->state = CH_TRAILER;
		c->column = 0;
		c->named = false;
		return b == '\n' ? NULL : "a bare carriage return in a trailer";
	case CH_END_LF:
		c->state = CH_DONE;
		return b == '\n' ? NULL : "a bare carriage return after the last chunk";
	default:
		return "bytes after the last chunk";
	}
}

enum http_parsed http_chunked_parse(struct http_chunked *c, const unsigned char *in, size_t n,
				    size_t *used, const unsigned char **data, size_t *len)
{
	size_t i = 0;

	*data = NULL;
	*len = 0;
	while (i < n && c->state != CH_DONE) {
		if (c->state == CH_DATA) {
			size_t k = n - i < c->left ? n - i : (size_t)c->left;
			*data = in + i;
			*len = k;
			c->left -= k;
			if (c->left == 0)
				c->state = CH_DATA_CR;
			*used = i + k;
			return HP_MORE;
		}
		c->why = chunk_step(c, in[i]);
		if (c->why != NULL) {
			*used = i;
			return HP_REFUSE;
		}
		i++;
	}
	*used = i;
	return c->state == CH_DONE ? HP_DONE : HP_MORE;
}

const unsigned char *http_header_find(const unsigned char *head, size_t size, const char *name,
				      size_t *len)
{
	const unsigned char *found = NULL, *p = head, *end = head + size, *v, *eol;
	size_t k, n;

	while (p < end && (eol = memchr(p, '\r', (size_t)(end - p))) != NULL) {
		if (p > head && eol > p && split(p, (size_t)(eol - p), &k, &v, &n) == NULL &&
		    word_is(p, k, name)) {
			found = v;
			*len = n;
		}
		p = eol + 2;
	}
	return found;
}
