/*
 * Strings at the border: numbers, durations, booleans, trimming, making foreign bytes printable.
 * Parsers take the whole text or refuse; outputs are written only on success. None allocates or
 * blocks.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `src` into `dst` of `size` (> 0) bytes. 0, or -1 when it does not fit (dst is then ""). */
int str_copy(char *dst, size_t size, const char *src);
int str_copyn(char *dst, size_t size, const char *src, size_t n);

/* snprintf that treats a cut as a failure: 0, or -1 (dst is then cut but terminated). */
int str_fmt(char *dst, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Decimal without sign or blanks, min <= value <= max: 0, else -1. */
int str_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out);
int str_i64(const char *s, int64_t min, int64_t max, int64_t *out); /* a leading '-' is allowed */

/* `90`, `90s`, `15m`, `2h`, also `250ms`; 0 to 30 days. 0 with milliseconds in *out, else -1. */
int str_duration_ms(const char *s, int64_t *out);

/* `1 true yes y on` / `0 false no n off`, any case. 0, else -1. */
int str_bool(const char *s, bool *out);

/* Byte sizes: `1048576`, `512K`, `100M`, `1G`, `2T` (powers of 1024, any case). 0, else -1. */
int str_bytes(const char *s, uint64_t *out);

/* Start and length without ASCII white space, CR and LF at both ends. */
const char *str_trim(const char *s, size_t *len);

/* Replaces control characters and invalid UTF-8 by '?', in place. */
void str_printable(char *s);

/* As above into `dst`, from `n` bytes that may hold NUL, cut with "..." to fit. Always terminates.
 */
void str_show(char *dst, size_t size, const void *src, size_t n);

bool str_eq_nocase(const char *a, const char *b); /* ASCII only */
bool str_starts(const char *s, const char *prefix);

#endif
