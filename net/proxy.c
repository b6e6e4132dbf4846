#include "net/proxy.h"

#include "base/buf.h"
#include "base/str.h"
#include "net/addr.h"
#include "net/httpparse.h"

#include <mbedtls/base64.h>
#include <string.h>
#include <strings.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Percent-decoding of `n` bytes; the length, or -1 (a broken escape, NUL, too long). */
static int unescape(const char *s, size_t n, char *dst, size_t size)
{
	size_t o = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)s[i];
		if (c == '%') {
			if (i + 2 >= n || hex(s[i + 1]) < 0 || hex(s[i + 2]) < 0)
				return -1;
			c = hex(s[i + 1]) * 16 + hex(s[i + 2]);
			i += 2;
		}
		if (c == 0 || o + 1 >= size)
			return -1;
		dst[o++] = (char)c;
	}
	dst[o] = 0;
	return (int)o;
}

/* "Basic base64(user:password)". The split comes first, so that %3A in a user name stays there. */
static const char *credential(const char *s, size_t n, char *auth)
{
	char plain[1024];
	const char *colon = memchr(s, ':', n);
	size_t user = colon == NULL ? n : (size_t)(colon - s), out = 0;
	const char *why = "the user name or password is too long, or an escape in it is broken";
	int a, b = 0;

	a = unescape(s, user, plain, sizeof plain - 1);
	if (a >= 0) {
		plain[a++] = ':';
		if (colon != NULL)
			b = unescape(colon + 1, n - user - 1, plain + a, sizeof plain - (size_t)a);
		memcpy(auth, "Basic ", 6);
		if (b >= 0 &&
		    mbedtls_base64_encode((unsigned char *)auth + 6, PROXY_AUTH_MAX - 6, &out,
					  (unsigned char *)plain, (size_t)(a + b)) == 0)
			why = NULL;
	}
	explicit_bzero(plain, sizeof plain);
	return why;
}

static const char *parse(const char *s, size_t n, struct proxy *p)
{
	char text[URL_TEXT_MAX];
	const char *at = NULL, *sep = memmem(s, n, "://", 3), *why;
	size_t scheme = sep == NULL ? 0 : (size_t)(sep - s), skip = sep == NULL ? 0 : scheme + 3,
	       host;
	struct url u;

	if (sep != NULL && !(scheme == 4 && strncasecmp(s, "http", 4) == 0) &&
	    !(scheme == 5 && strncasecmp(s, "https", 5) == 0))
		return "only http:// and https:// proxies are supported";
	p->tls = scheme == 5;
	s += skip;
	n -= skip;
	host = 0;
	while (host < n && strchr("/?#", s[host]) == NULL)
		host++;
	for (size_t i = 0; i < host; i++)
		at = s[i] == '@' ? s + i : at;
	if (at != NULL) {
		why = credential(s, (size_t)(at - s), p->auth);
		if (why != NULL)
			return why;
		host -= (size_t)(at + 1 - s);
		s = at + 1;
	}
	if (host > URL_HOST_MAX + 16 ||
	    str_fmt(text, sizeof text, "%s://%.*s", p->tls ? "https" : "http", (int)host, s) < 0 ||
	    url_parse(text, &u, NULL) < 0)
		return "the host or port is not one";
	memcpy(p->host, u.host, sizeof p->host);
	p->host_is_v6 = u.host_is_v6;
	p->port = u.port;
	p->use = true;
	return NULL;
}

int proxy_parse(const char *text, const char *variable, struct proxy *out, struct err *e)
{
	struct proxy p;
	const char *why = NULL;
	size_t n = 0;

	memset(&p, 0, sizeof p);
	p.variable = variable;
	if (text != NULL)
		text = str_trim(text, &n);
	if (n > 0)
		why = parse(text, n, &p);
	if (why != NULL) {
		explicit_bzero(&p, sizeof p);
		return err_set(
			e, XC_CONFIG, 0,
			"%s is not a proxy: %s (accepted: [http[s]://][user:password@]host[:port])",
			variable, why);
	}
	*out = p;
	explicit_bzero(&p, sizeof p);
	return 0;
}

void proxy_wipe(struct proxy *p)
{
	explicit_bzero(p, sizeof *p);
}

void proxy_name(const struct proxy *p, char *dst, size_t size)
{
	if (str_fmt(dst, size, p->host_is_v6 ? "[%s]:%u" : "%s:%u", p->host, (unsigned)p->port) < 0)
		(void)str_copy(dst, size, "the proxy");
}

/* ---- no_proxy ---- */

/* Splits ":port" off; false when what follows the colon is none. */
static bool split_port(const char *s, size_t *n, uint64_t *port)
{
	const char *colon = memrchr(s, ':', *n);
	char text[8];

	*port = 0;
	if (colon == NULL)
		return true;
	if (str_copyn(text, sizeof text, colon + 1, *n - (size_t)(colon + 1 - s)) < 0 ||
	    str_u64(text, 1, 65535, port) < 0)
		return false;
	*n = (size_t)(colon - s);
	return true;
}

static bool match_range(const char *s, size_t n, const struct net_addr *a)
{
	const char *slash = memchr(s, '/', n);
	struct net_addr net;
	uint64_t bits;
	char text[8];

	if (slash == NULL || !addr_parse(s, (size_t)(slash - s), &net) ||
	    str_copyn(text, sizeof text, slash + 1, n - (size_t)(slash + 1 - s)) < 0 ||
	    str_u64(text, 0, 128, &bits) < 0)
		return false;
	return addr_in(a, &net, (unsigned)bits);
}

/* The target is an address: only addresses and ranges can match. */
static bool match_address(const char *s, size_t n, const struct net_addr *a, uint16_t target_port)
{
	struct net_addr entry;
	uint64_t port = 0;

	if (match_range(s, n, a))
		return true;
	if (addr_parse(s, n, &entry)) /* a bare IPv6 address has colons of its own */
		return addr_same(a, &entry);
	if ((n == 0 || s[n - 1] != ']') &&
	    (!split_port(s, &n, &port) || (port != 0 && port != target_port)))
		return false;
	if (n > 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
	}
	return addr_parse(s, n, &entry) && addr_same(a, &entry);
}

static bool match_name(const char *s, size_t n, const char *host, uint16_t target_port)
{
	size_t len = strlen(host);
	uint64_t port;
	bool below;

	if (!split_port(s, &n, &port) || (port != 0 && port != target_port) || n == 0)
		return false;
	below = s[0] == '.';
	if (below) {
		s++;
		n--;
	}
	if (n == 0 || len < n || strncasecmp(host + len - n, s, n) != 0)
		return false;
	return len == n ? !below : host[len - n - 1] == '.';
}

bool proxy_bypassed(const char *no_proxy, const struct url *u)
{
	struct net_addr a;
	bool is_addr = addr_parse(u->host, strlen(u->host), &a);
	static const char gaps[] = ", \t\r\n";

	if (strcmp(u->host, "localhost") == 0 || (is_addr && addr_is_loopback(&a)))
		return true;
	if (no_proxy == NULL)
		return false;
	while (*no_proxy != 0) {
		size_t n = strcspn(no_proxy, gaps);
		if (n == 1 && *no_proxy == '*')
			return true;
		if (n > 0 && (is_addr ? match_address(no_proxy, n, &a, u->port)
				      : match_name(no_proxy, n, u->host, u->port)))
			return true;
		no_proxy += n;
		no_proxy += strspn(no_proxy, gaps);
	}
	return false;
}

/* ---- CONNECT ---- */

int proxy_denied(const struct proxy *p, const char *wants, const struct net_op *op)
{
	char name[URL_HOST_MAX + 16];

	proxy_name(p, name, sizeof name);
	op->f->permanent = true;
	if (p->auth[0] == 0)
		return err_set(op->e, XC_DENIED, 0,
			       "the proxy %s wants a credential (407%s%s): give it in %s as "
			       "user:password@",
			       name, wants[0] != 0 ? ", " : "", wants, p->variable);
	return err_set(
		op->e, XC_DENIED, 0,
		"the proxy %s refused the user name and password of %s (407%s%s); only Basic is "
		"supported",
		name, p->variable, wants[0] != 0 ? ", " : "", wants);
}

static int ask_tunnel(const struct proxy *p, struct stream *s, const struct net_op *op,
		      const struct url *target, const char *user_agent, const char *name)
{
	cleanup_buf struct buf q;
	const char *open = target->host_is_v6 ? "[" : "", *close = target->host_is_v6 ? "]" : "";
	char at[URL_HOST_MAX + 16];

	buf_init(&q, 8192);
	if (str_fmt(at, sizeof at, "%s%s%s:%u", open, target->host, close, (unsigned)target->port) <
		    0 ||
	    buf_putf(&q, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", at, at,
		     user_agent) < 0 ||
	    (p->auth[0] != 0 && buf_putf(&q, "Proxy-Authorization: %s\r\n", p->auth) < 0) ||
	    buf_puts(&q, "\r\n") < 0)
		return err_set(op->e, XC_SYSTEM, 0, "cannot write the request to the proxy %s",
			       name);
	return stream_write(s, op, q.data, q.len, name);
}

static int judge(const struct proxy *p, const struct net_op *op, const struct http_head *h,
		 const struct buf *head, const char *name, const struct url *target)
{
	char value[256] = "";
	const unsigned char *v;
	size_t n = 0;

	if (h->status >= 200 && h->status < 300) {
		if (head->len == h->size)
			return 0;
		return err_set(op->e, XC_PROTOCOL, 0,
			       "the proxy %s sent bytes of its own into the tunnel", name);
	}
	v = http_header_find(head->data, h->size,
			     h->status == 407 ? "proxy-authenticate" : "location", &n);
	if (v != NULL)
		str_show(value, sizeof value, v, n);
	if (h->status == 407)
		return proxy_denied(p, value, op);
	if (h->status >= 300 && h->status < 400)
		return err_set(
			op->e, XC_PROTOCOL, 0,
			"the proxy %s answered CONNECT %s:%u with a redirect (%d to %s): a portal "
			"wants a person",
			name, target->host, (unsigned)target->port, h->status, value);
	op->f->permanent = h->status < 500 && h->status != 408 && h->status != 429;
	return err_set(op->e, XC_UNAVAILABLE, 0,
		       "the proxy %s refused CONNECT %s:%u with status %d", name, target->host,
		       (unsigned)target->port, h->status);
}

int proxy_connect(const struct proxy *p, struct stream *s, const struct net_op *op,
		  const struct url *target, const char *user_agent)
{
	cleanup_buf struct buf head;
	struct http_head h;
	enum http_parsed done = HP_MORE;
	char name[URL_HOST_MAX + 32] = "the proxy ";
	int r;

	proxy_name(p, name + 10, sizeof name - 10);
	op->f->stage = NET_PROXY;
	memset(&h, 0, sizeof h);
	buf_init(&head, NET_HEADERS_MAX + 4096);
	r = ask_tunnel(p, s, op, target, user_agent, name);
	op->f->sent = false; /* the request itself has not left */
	if (r < 0)
		return -1;
	while (done == HP_MORE) {
		unsigned char *to = buf_room(&head, 2048);
		ssize_t n;
		if (to == NULL)
			return err_set(op->e, XC_SYSTEM, 0, "no memory for the answer of %s", name);
		n = stream_read(s, op, to, 2048, name);
		if (n < 0)
			return -1;
		if (n == 0)
			return err_set(op->e, XC_UNAVAILABLE, 0,
				       "%s closed the connection instead of answering CONNECT",
				       name);
		buf_grew(&head, (size_t)n);
		done = http_head_parse(&h, head.data, head.len, NET_HEADERS_MAX);
	}
	if (done == HP_REFUSE)
		return err_set(op->e, XC_PROTOCOL, 0, "%s did not answer in HTTP: %s", name, h.why);
	return judge(p, op, &h, &head, name + 10, target);
}
