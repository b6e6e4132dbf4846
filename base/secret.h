/*
 * Credentials have a type: they cannot be formatted by accident and are wiped when their life ends.
 * A secret is a fixed-size value without pointers, so that it can live in static memory of PID 1
 * (which allocates nothing after start-up) and travel over a private socket to the registrar.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define SECRET_MAX 16384 /* bytes; a PEM key of 4096 bits or a JIT configuration fits */

struct secret {
	size_t len;
	char bytes[SECRET_MAX]; /* NUL follows the last byte; may hold line breaks (PEM) */
};

/* 0, or -1 with errno EMSGSIZE when longer than SECRET_MAX - 1 (the secret is then empty). */
int secret_set(struct secret *s, const char *p, size_t n);
void secret_wipe(struct secret *s);
static inline bool secret_present(const struct secret *s)
{
	return s->len > 0;
}
/* The text, for the one place that sends it. The pointer lives as long as the secret. */
static inline const char *secret_reveal(const struct secret *s)
{
	return s->bytes;
}

#endif
