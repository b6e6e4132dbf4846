/*
 * Absolute http(s) URLs: parsed once at the border, typed ever after. Never allocates, never
 * blocks.
 */
#ifndef NET_URL_H
#define NET_URL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define URL_HOST_MAX                                                                               \
	254 /* 253 characters of a DNS name, or an IPv6 literal without brackets; with NUL */
#define URL_PATH_MAX 2048 /* path and query, with NUL */
#define URL_TEXT_MAX 2400 /* a whole URL, with NUL */

struct url {
	bool tls;		 /* https */
	char host[URL_HOST_MAX]; /* lower case, no brackets, no trailing dot */
	bool host_is_v6;	 /* the host was written in brackets */
	bool port_given;	 /* a port was written */
	uint16_t port;		 /* 443 or 80 when none was written */
	char path[URL_PATH_MAX]; /* begins with '/', holds the query, no fragment */
};

/* Refuses: other schemes, user info, empty host, bad port, control characters, blanks, '\',
 * over-long parts, trailing input. 0, or -1 with XC_CONFIG (the text names what is wrong, not the
 * URL). */
int url_parse(const char *text, struct url *out, struct err *e);

/* scheme://host[:port], brackets put back, the port only when given and not the scheme's own. 0 or
 * -1. */
int url_origin(const struct url *u, char *dst, size_t size);
/* host[:port] as a Host header wants it. 0 or -1. */
int url_authority(const struct url *u, char *dst, size_t size);
/* Origin and path. 0 or -1. */
int url_text(const struct url *u, char *dst, size_t size);

/* Same scheme, host and port. */
bool url_same_origin(const struct url *a, const struct url *b);

/* `base` with its path extended by `rest` (joined with exactly one '/'; `rest` may hold a query). 0
 * or -1. */
int url_join(const struct url *base, const char *rest, struct url *out);

/* RFC 3986 percent-encoding of one component: unreserved characters stay. 0, or -1 when it does not
 * fit. */
int url_escape(char *dst, size_t size, const char *src);

#endif
