/*
 * A keyed tag, for the journal: HMAC-SHA256 (RFC 2104) with the credential as the key. CPU work of
 * microseconds, without heap: PID 1 itself may call it.
 */
#ifndef GH_HMAC_H
#define GH_HMAC_H

#include "base/secret.h"

#include <stddef.h>

#define GH_HMAC_BYTES 32

/* In gh/key.c, the one file of gh/ that includes the library. 0, or -1 (the library refused). */
int gh_hmac(const struct secret *key, const void *data, size_t n, unsigned char out[GH_HMAC_BYTES]);

#endif
