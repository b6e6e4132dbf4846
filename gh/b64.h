/*
 * Base64, standard (with padding) and URL-safe (without). Pure; no allocation but the buffer's.
 */
#ifndef GH_B64_H
#define GH_B64_H

#include "base/buf.h"

#include <stddef.h>

enum b64_kind { B64_STD, B64_URL, B64__MAX };

/* Appends the encoding of `n` bytes to `out`. 0, or -1 with errno (EMSGSIZE, ENOMEM). */
int b64_encode(struct buf *out, enum b64_kind kind, const void *p, size_t n);

/* Appends the bytes that `n` characters of standard base64 stand for. Line breaks and blanks are
 * skipped; missing padding is accepted, anything after it or non-zero spare bits are not. 0, or -1:
 * not base64 (EINVAL), or EMSGSIZE, ENOMEM; what was appended until then is for the caller to drop.
 */
int b64_decode(struct buf *out, const char *s, size_t n);

#endif
