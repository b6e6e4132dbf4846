/*
 * Growable byte buffer that is born with its limit. Everything that comes from outside goes through
 * one.
 *
 * The memory is wiped whenever it is given back or shrinks, so a buffer may hold secrets. A buffer
 * made with buf_init owns nothing until the first byte; buf_free is safe at any time after, and
 * repeatedly.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	unsigned char
		*data; /* owned; NUL follows the last byte; NULL while empty and never grown */
	size_t len;    /* bytes in use */
	size_t cap;    /* bytes allocated, the NUL included */
	size_t max;    /* ceiling for len */
};

/* `max` > 0: the most bytes it may ever hold. */
void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);  /* wipes and releases; the buffer can be used again */
void buf_reset(struct buf *b); /* wipes and empties, keeps the allocation */

/* Append. 0, or -1 with errno EMSGSIZE (over `max`; nothing appended) or ENOMEM. */
int buf_put(struct buf *b, const void *p, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_putf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Room for `n` more bytes at the end: a pointer to write to (then buf_grew), or NULL with errno. */
unsigned char *buf_room(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n); /* `n` bytes were written at buf_room's pointer */

void buf_consume(struct buf *b, size_t n); /* drops the first n (<= len) bytes */

/* NUL-terminated view; "" when empty. Valid until the next change. A NUL inside is the caller's
 * matter. */
const char *buf_str(const struct buf *b);

static inline void cleanup_buf_fn(struct buf *b)
{
	buf_free(b);
}
#define cleanup_buf __attribute__((cleanup(cleanup_buf_fn)))

#endif
