#include "net/url.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <string.h>

static bool alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* A name of letters, digits, '-', '_' in labels of 1 to 63, or a dotted quad. In lower case,
 * without the trailing dot of a fully qualified name: certificates and Host headers do not carry
 * it. */
static int host_name(const char *s, size_t n, char *dst)
{
	size_t label = 0;
	bool digits_only = true;
	struct in_addr v4;

	if (n > 0 && s[n - 1] == '.')
		n--;
	if (n == 0 || n >= URL_HOST_MAX)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '.') {
			if (label == 0)
				return -1;
			label = 0;
		} else if (alnum(s[i]) || s[i] == '-' || s[i] == '_') {
			if (++label > 63)
				return -1;
			digits_only = digits_only && s[i] >= '0' && s[i] <= '9';
		} else {
			return -1;
		}
		dst[i] = lower(s[i]);
	}
	dst[n] = 0;
	/* "127.1" and "1" are addresses to some resolvers and names to others: refuse both readings
	 */
	return label > 0 && (!digits_only || inet_pton(AF_INET, dst, &v4) == 1) ? 0 : -1;
}

static int host_v6(const char *s, size_t n, char *dst)
{
	struct in6_addr a;
	char text[INET6_ADDRSTRLEN + 1];

	if (str_copyn(text, sizeof text, s, n) < 0 || inet_pton(AF_INET6, text, &a) != 1 ||
	    inet_ntop(AF_INET6, &a, dst, URL_HOST_MAX) == NULL)
		return -1;
	return 0;
}

/* host[:port] of `n` bytes. NULL, or what is wrong with it. */
static const char *parse_authority(const char *s, size_t n, struct url *u)
{
	const char *end = s + n, *host_end, *colon;
	char port[6];
	uint64_t v;

	if (memchr(s, '@', n) != NULL)
		return "user names and passwords in it are not accepted";
	u->host_is_v6 = n > 0 && s[0] == '[';
	if (u->host_is_v6) {
		host_end = memchr(s, ']', n);
		if (host_end == NULL || host_v6(s + 1, (size_t)(host_end - s - 1), u->host) < 0)
			return "the IPv6 address in brackets is not one";
		colon = host_end + 1;
		if (colon < end && *colon != ':')
			return "something follows the bracket of the IPv6 address";
	} else {
		colon = memchr(s, ':', n);
		if (colon == NULL)
			colon = end;
		if (host_name(s, (size_t)(colon - s), u->host) < 0)
			return "the host name is empty, too long or has characters that host names "
			       "cannot have";
	}
	u->port = u->tls ? 443 : 80;
	u->port_given = colon < end;
	if (!u->port_given)
		return NULL;
	colon++;
	if (str_copyn(port, sizeof port, colon, (size_t)(end - colon)) < 0 ||
	    str_u64(port, 1, 65535, &v) < 0)
		return "the port is not a number from 1 to 65535";
	u->port = (uint16_t)v;
	return NULL;
}

static const char *parse_path(const char *s, struct url *u)
{
	size_t n = strcspn(s, "#"), lead = s[0] == '/' ? 0 : 1;

	u->path[0] = '/';
	if (str_copyn(u->path + lead, sizeof u->path - lead, s, n) < 0)
		return "the path is too long";
	return NULL;
}

static const char *parse(const char *text, struct url *u)
{
	size_t n;
	const char *why;

	for (const char *p = text; *p != 0; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '\\')
			return "it has a blank, a backslash, a control or a non-ASCII character";
	if (strncasecmp(text, "https://", 8) == 0) {
		u->tls = true;
		text += 8;
	} else if (strncasecmp(text, "http://", 7) == 0) {
		u->tls = false;
		text += 7;
	} else {
		return "it does not begin with https:// or http://";
	}
	n = strcspn(text, "/?#");
	why = parse_authority(text, n, u);
	return why != NULL ? why : parse_path(text + n, u);
}

int url_parse(const char *text, struct url *out, struct err *e)
{
	struct url u;
	const char *why;

	memset(&u, 0, sizeof u);
	why = parse(text, &u);
	if (why != NULL)
		return err_set(e, XC_CONFIG, 0, "not a usable URL: %s", why);
	*out = u;
	return 0;
}

int url_authority(const struct url *u, char *dst, size_t size)
{
	const char *open = u->host_is_v6 ? "[" : "", *close = u->host_is_v6 ? "]" : "";

	if (u->port == (u->tls ? 443 : 80))
		return str_fmt(dst, size, "%s%s%s", open, u->host, close);
	return str_fmt(dst, size, "%s%s%s:%u", open, u->host, close, (unsigned)u->port);
}

int url_origin(const struct url *u, char *dst, size_t size)
{
	char authority[URL_HOST_MAX + 16];

	if (url_authority(u, authority, sizeof authority) < 0)
		return -1;
	return str_fmt(dst, size, "%s://%s", u->tls ? "https" : "http", authority);
}

int url_text(const struct url *u, char *dst, size_t size)
{
	char origin[URL_HOST_MAX + 32];

	if (url_origin(u, origin, sizeof origin) < 0)
		return -1;
	return str_fmt(dst, size, "%s%s", origin, u->path);
}

bool url_same_origin(const struct url *a, const struct url *b)
{
	return a->tls == b->tls && a->port == b->port && strcmp(a->host, b->host) == 0;
}

int url_join(const struct url *base, const char *rest, struct url *out)
{
	struct url u = *base;
	size_t n = strlen(u.path);

	if (strchr(u.path, '?') != NULL)
		return -1; /* where the path of such a base ends, nobody can say */
	for (const char *p = rest; *p != 0; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '\\' ||
		    *p == '#')
			return -1;
	while (n > 0 && u.path[n - 1] == '/')
		n--;
	while (*rest == '/')
		rest++;
	u.path[n] = '/';
	if (str_copy(u.path + n + 1, sizeof u.path - n - 1, rest) < 0)
		return -1;
	*out = u;
	return 0;
}

int url_escape(char *dst, size_t size, const char *src)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t o = 0;

	for (; *src != 0; src++) {
		unsigned char c = (unsigned char)*src;
		bool plain = alnum(*src) || strchr("-._~", c) != NULL;
		if (o + (plain ? 1 : 3) >= size)
			return -1;
		if (plain) {
			dst[o++] = *src;
		} else {
			dst[o++] = '%';
			dst[o++] = hex[c >> 4];
			dst[o++] = hex[c & 15];
		}
	}
	if (o >= size)
		return -1;
	dst[o] = 0;
	return 0;
}
