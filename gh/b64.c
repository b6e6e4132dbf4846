#include "gh/b64.h"

#include <errno.h>
#include <stdint.h>

static const char std_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int b64_encode(struct buf *out, enum b64_kind kind, const void *p, size_t n)
{
	const char *abc = kind == B64_URL ? url_alphabet : std_alphabet;
	const unsigned char *s = p;

	for (size_t i = 0; i < n; i += 3) {
		size_t have = n - i < 3 ? n - i : 3;
		uint32_t v = (uint32_t)s[i] << 16 | (have > 1 ? (uint32_t)s[i + 1] << 8 : 0) |
			     (have > 2 ? (uint32_t)s[i + 2] : 0);
		char q[4] = {abc[v >> 18], abc[v >> 12 & 63], abc[v >> 6 & 63], abc[v & 63]};
		size_t chars = have + 1;
		if (kind == B64_STD)
			for (; chars < 4; chars++)
				q[chars] = '=';
		if (buf_put(out, q, chars) < 0)
			return -1;
	}
	return 0;
}

static int value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* The last, incomplete group: `have` characters of 6 bits each in `v`. */
static int finish(struct buf *out, uint32_t v, unsigned have)
{
	unsigned char b[2];

	if (have == 0)
		return 0;
	if (have == 1 || (have == 2 && (v & 15) != 0) || (have == 3 && (v & 3) != 0)) {
		errno = EINVAL;
		return -1;
	}
	if (have == 2) {
		b[0] = (unsigned char)(v >> 4);
		return buf_put(out, b, 1);
	}
	b[0] = (unsigned char)(v >> 10);
	b[1] = (unsigned char)(v >> 2);
	return buf_put(out, b, 2);
}

int b64_decode(struct buf *out, const char *s, size_t n)
{
	uint32_t v = 0;
	unsigned have = 0, pads = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];
		int x = value(c);
		if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
			continue;
		if (c == '=' && have >= 2 && have + pads < 4) {
			pads++;
			continue;
		}
		if (x < 0 || pads > 0) {
			errno = EINVAL;
			return -1;
		}
		v = v << 6 | (uint32_t)x;
		if (++have < 4)
			continue;
		unsigned char b[3] = {(unsigned char)(v >> 16), (unsigned char)(v >> 8),
				      (unsigned char)v};
		if (buf_put(out, b, 3) < 0)
			return -1;
		v = 0;
		have = 0;
	}
	if (pads > 0 && have + pads != 4) {
		errno = EINVAL;
		return -1;
	}
	return finish(out, v, have);
}
