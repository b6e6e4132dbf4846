#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){NULL, 0, 0, max};
}

void buf_free(struct buf *b)
{
	if (b->data != NULL) {
		explicit_bzero(b->data, b->cap);
		free(b->data);
	}
	b->data = NULL;
	b->len = 0;
	b->cap = 0;
}

void buf_reset(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->cap);
	b->len = 0;
}

/* realloc would leave a copy of the old bytes behind; allocate, copy, wipe. */
static int grow(struct buf *b, size_t need)
{
	size_t cap = b->cap < 64 ? 64 : b->cap;
	unsigned char *p;

	while (cap < need)
		cap = cap > b->max / 2 ? b->max + 1 : cap * 2;
	p = calloc(1, cap);
	if (p == NULL)
		return -1;
	if (b->data != NULL) {
		memcpy(p, b->data, b->len);
		explicit_bzero(b->data, b->cap);
		free(b->data);
	}
	b->data = p;
	b->cap = cap;
	return 0;
}

unsigned char *buf_room(struct buf *b, size_t n)
{
	if (n > b->max - b->len) {
		errno = EMSGSIZE;
		return NULL;
	}
	if (b->len + n + 1 > b->cap && grow(b, b->len + n + 1) < 0)
		return NULL;
	return b->data + b->len;
}

void buf_grew(struct buf *b, size_t n)
{
	b->len += n;
	b->data[b->len] = 0;
}

int buf_put(struct buf *b, const void *p, size_t n)
{
	unsigned char *to = buf_room(b, n);

	if (to == NULL)
		return -1;
	if (n > 0)
		memcpy(to, p, n);
	buf_grew(b, n);
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_put(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
	return buf_put(b, &c, 1);
}

int buf_putf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	unsigned char *to;
	int n, m;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	to = buf_room(b, (size_t)n);
	if (to == NULL)
		return -1;
	va_start(ap, fmt);
	m = vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	if (m != n)
		return -1;
	buf_grew(b, (size_t)n);
	return 0;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n == 0 || b->data == NULL)
		return;
	memmove(b->data, b->data + n, b->len - n);
	explicit_bzero(b->data + b->len - n, n);
	b->len -= n;
	b->data[b->len] = 0;
}

const char *buf_str(const struct buf *b)
{
	return b->data == NULL ? "" : (const char *)b->data;
}
