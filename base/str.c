#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int str_copyn(char *dst, size_t size, const char *src, size_t n)
{
	if (n >= size) {
		dst[0] = 0;
		return -1;
	}
	memcpy(dst, src, n);
	dst[n] = 0;
	return 0;
}

int str_copy(char *dst, size_t size, const char *src)
{
	return str_copyn(dst, size, src, strlen(src));
}

int str_fmt(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(dst, size, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < size ? 0 : -1;
}

/* Digits up to the first other character; -1 if none, or over `max`. */
static int digits(const char **s, uint64_t max, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t d = (uint64_t)(*p - '0');
		if (v > (max - d) / 10 || d > max)
			return -1;
		v = v * 10 + d;
	}
	*s = p;
	*out = v;
	return 0;
}

int str_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (digits(&s, max, &v) < 0 || *s != 0 || v < min)
		return -1;
	*out = v;
	return 0;
}

int str_i64(const char *s, int64_t min, int64_t max, int64_t *out)
{
	bool neg = *s == '-';
	uint64_t v;
	int64_t w;

	s += neg ? 1 : 0;
	if (digits(&s, INT64_MAX, &v) < 0 || *s != 0)
		return -1;
	w = neg ? -(int64_t)v : (int64_t)v;
	if (w < min || w > max)
		return -1;
	*out = w;
	return 0;
}

struct unit {
	const char *suffix;
	uint64_t factor;
};

static int scaled(const char *s, const struct unit *units, size_t n, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (digits(&s, max, &v) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(s, units[i].suffix) != 0)
			continue;
		if (v > max / units[i].factor)
			return -1;
		*out = v * units[i].factor;
		return 0;
	}
	return -1;
}

int str_duration_ms(const char *s, int64_t *out)
{
	static const struct unit units[] = {
		{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}};
	uint64_t v;

	if (scaled(s, units, sizeof units / sizeof units[0], 30ULL * 24 * 3600000, &v) < 0)
		return -1;
	*out = (int64_t)v;
	return 0;
}

int str_bytes(const char *s, uint64_t *out)
{
	static const struct unit units[] = {{"", 1},
					    {"K", 1ULL << 10},
					    {"M", 1ULL << 20},
					    {"G", 1ULL << 30},
					    {"T", 1ULL << 40}};

	return scaled(s, units, sizeof units / sizeof units[0], 1ULL << 60, out);
}

int str_bool(const char *s, bool *out)
{
	static const char *const yes[] = {"1", "true", "yes", "y", "on"};
	static const char *const no[] = {"0", "false", "no", "n", "off"};

	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		if (strcasecmp(s, yes[i]) == 0) {
			*out = true;
			return 0;
		}
		if (strcasecmp(s, no[i]) == 0) {
			*out = false;
			return 0;
		}
	}
	return -1;
}

static bool blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *str_trim(const char *s, size_t *len)
{
	size_t n;

	while (blank(*s))
		s++;
	n = strlen(s);
	while (n > 0 && blank(s[n - 1]))
		n--;
	*len = n;
	return s;
}

/* Length of the UTF-8 sequence at p (n > 0 bytes left), 0 if it is none or a control character. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	static const unsigned char floor3 = 0xa0, floor4 = 0x90;
	size_t want;

	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
	want = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
	       : p[0] >= 0xe0 && p[0] <= 0xef ? 3
	       : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
					      : 0;
	if (want == 0 || want > n)
		return 0;
	for (size_t i = 1; i < want; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < floor3) || (p[0] == 0xf0 && p[1] < floor4) ||
	    (p[0] == 0xed && p[1] >= floor3) || (p[0] == 0xf4 && p[1] >= floor4))
		return 0; /* overlong, surrogate, beyond U+10FFFF */
	if (p[0] == 0xc2 && p[1] < 0xa0)
		return 0; /* C1 control characters: some terminals obey them */
	return want;
}

void str_printable(char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n;) {
		size_t k = utf8_len((const unsigned char *)s + i, n - i);
		if (k == 0)
			s[i++] = '?';
		else
			i += k;
	}
}

void str_show(char *dst, size_t size, const void *src, size_t n)
{
	const unsigned char *p = src;
	size_t room, i = 0;

	if (size == 0)
		return;
	/* A bad byte becomes one '?', so the whole text takes n bytes. */
	room = n < size ? n : size > 4 ? size - 4 : 0;
	while (i < n) {
		size_t k = utf8_len(p + i, n - i), w = k == 0 ? 1 : k;
		if (i + w > room)
			break;
		if (k == 0)
			dst[i] = '?';
		else
			memcpy(dst + i, p + i, k);
		i += w;
	}
	for (size_t dots = 0; n >= size && dots < 3 && i + 1 < size; dots++)
		dst[i++] = '.';
	dst[i] = 0;
}

bool str_eq_nocase(const char *a, const char *b)
{
	return strcasecmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}
