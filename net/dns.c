#include "net/dns.h"

#include "base/str.h"

#include <string.h>
#include <strings.h>

static void put16(unsigned char *p, unsigned v)
{
	p[0] = (unsigned char)(v >> 8);
	p[1] = (unsigned char)v;
}

static unsigned get16(const unsigned char *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Labels of 1 to 63 bytes; bytes written, 0 when it is no name or longer than 255 on the wire. */
static size_t put_name(unsigned char *dst, const char *name)
{
	size_t o = 0;

	while (*name != 0) {
		size_t n = strcspn(name, ".");
		if (n == 0 || n > 63 || o + n + 2 > 255)
			return 0;
		dst[o++] = (unsigned char)n;
		memcpy(dst + o, name, n);
		o += n;
		name += n;
		if (*name == '.')
			name++;
	}
	if (o == 0)
		return 0;
	dst[o++] = 0;
	return o;
}

size_t dns_query(unsigned char dst[DNS_QUERY_MAX], const char *name, uint16_t type, uint16_t id)
{
	size_t n;

	memset(dst, 0, 12);
	put16(dst, id);
	dst[2] = 0x01; /* recursion desired */
	put16(dst + 4, 1);
	n = put_name(dst + 12, name);
	if (n == 0)
		return 0;
	put16(dst + 12 + n, type);
	put16(dst + 14 + n, 1); /* IN */
	return 16 + n;
}

/* Position after the (perhaps compressed) name at `at`, 0 when it runs out of the message. Names in
 * answers are only skipped, so pointers are never followed and cannot loop. */
static size_t skip_name(const unsigned char *m, size_t len, size_t at)
{
	while (at < len) {
		unsigned n = m[at];
		if (n == 0)
			return at + 1;
		if ((n & 0xc0) == 0xc0)
			return at + 2 <= len ? at + 2 : 0;
		if ((n & 0xc0) != 0)
			return 0;
		at += 1 + n;
	}
	return 0;
}

/* The question is ours: servers repeat it, in any case of letters. */
static size_t same_question(const unsigned char *m, size_t len, const char *name, uint16_t type)
{
	unsigned char want[DNS_QUERY_MAX];
	size_t n = put_name(want, name);

	if (n == 0 || 12 + n + 4 > len || get16(m + 12 + n) != type || get16(m + 14 + n) != 1)
		return 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char a = m[12 + i], b = want[i];
		if (a >= 'A' && a <= 'Z')
			a = (unsigned char)(a + 32);
		if (b >= 'A' && b <= 'Z')
			b = (unsigned char)(b + 32);
		if (a != b)
			return 0;
	}
	return 16 + n;
}

static bool take_record(const unsigned char *m, size_t len, size_t *at, uint16_t type,
			struct dns_answer *out)
{
	size_t p = skip_name(m, len, *at), want = type == DNS_A ? 4 : 16, data;

	if (p == 0 || p + 10 > len)
		return false;
	data = get16(m + p + 8);
	if (p + 10 + data > len)
		return false;
	if (get16(m + p) == type && get16(m + p + 2) == 1 && data == want &&
	    out->n < DNS_ANSWER_ADDRS) {
		struct net_addr *a = &out->addr[out->n++];
		memset(a, 0, sizeof *a);
		a->v6 = type == DNS_AAAA;
		memcpy(a->b, m + p + 10, want);
	}
	*at = p + 10 + data;
	return true;
}

enum dns_parsed dns_answer_parse(const unsigned char *msg, size_t len, const char *name,
				 uint16_t type, uint16_t id, struct dns_answer *out)
{
	struct dns_answer a;
	size_t at;
	unsigned records;

	memset(&a, 0, sizeof a);
	/* id, a response, opcode 0, exactly one question */
	if (len < 12 || get16(msg) != id || (msg[2] & 0xf8) != 0x80 || get16(msg + 4) != 1)
		return DNS_FOREIGN;
	at = same_question(msg, len, name, type);
	if (at == 0)
		return DNS_FOREIGN;
	a.rcode = msg[3] & 0x0f;
	a.truncated = (msg[2] & 0x02) != 0;
	records = get16(msg + 6);
	for (unsigned i = 0; i < records; i++) {
		if (take_record(msg, len, &at, type, &a))
			continue;
		if (!a.truncated) /* a cut answer may end anywhere */
			return DNS_FOREIGN;
		break;
	}
	*out = a;
	return DNS_ANSWER;
}

/* ---- files ---- */

struct words {
	const char *p, *end; /* of the line */
};

/* The next word of the line: length, 0 at its end. */
static size_t next_word(struct words *w, const char **word)
{
	const char *s;

	while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\r'))
		w->p++;
	s = w->p;
	while (w->p < w->end && *w->p != ' ' && *w->p != '\t' && *w->p != '\r')
		w->p++;
	*word = s;
	return (size_t)(w->p - s);
}

/* Cuts the next line, without its comment, off the text. */
static bool next_line(const char **p, const char *end, const char *comment, struct words *w)
{
	const char *eol;

	if (*p >= end)
		return false;
	eol = memchr(*p, '\n', (size_t)(end - *p));
	w->p = *p;
	w->end = eol == NULL ? end : eol;
	*p = eol == NULL ? end : eol + 1;
	for (const char *c = w->p; c < w->end; c++) {
		if (*c != 0 && strchr(comment, *c) != NULL) {
			w->end = c;
			break;
		}
	}
	return true;
}

static bool word_is(const char *s, size_t n, const char *word)
{
	return n == strlen(word) && strncasecmp(s, word, n) == 0;
}

static void add_server(struct dns_conf *c, const char *s, size_t n)
{
	const char *close;
	uint64_t port = 53;
	char text[8];
	struct net_addr a;

	if (n == 0 || c->n_servers == DNS_SERVERS_MAX)
		return;
	if (s[0] == '[') {
		close = memchr(s, ']', n);
		if (close == NULL || close + 1 == s + n || close[1] != ':' ||
		    str_copyn(text, sizeof text, close + 2, (size_t)(s + n - close - 2)) < 0 ||
		    str_u64(text, 1, 65535, &port) < 0)
			return;
		n = (size_t)(close - s - 1);
		s++;
	}
	if (!addr_parse(s, n, &a))
		return;
	a.port = (uint16_t)port;
	c->server[c->n_servers++] = a;
}

void dns_conf_parse(const char *text, size_t len, struct dns_conf *out)
{
	const char *p = text, *word;
	struct words w;
	size_t n;

	memset(out, 0, sizeof *out);
	while (next_line(&p, text + len, "#;", &w)) {
		n = next_word(&w, &word);
		if (word_is(word, n, "nameserver")) {
			n = next_word(&w, &word);
			add_server(out, word, n);
		} else if (word_is(word, n, "search") || word_is(word, n, "domain")) {
			out->n_search = 0; /* the last one counts */
			while (out->n_search < DNS_SEARCH_MAX && (n = next_word(&w, &word)) > 0)
				if (str_copyn(out->search[out->n_search], DNS_NAME_TEXT_MAX, word,
					      n) == 0)
					out->n_search++;
		}
	}
	if (out->n_servers == 0)
		add_server(out, "127.0.0.1", 9);
}

size_t dns_hosts_find(const char *text, size_t len, const char *name, struct net_addr *out,
		      size_t max)
{
	const char *p = text, *word;
	struct words w;
	size_t n, found = 0;

	while (found < max && next_line(&p, text + len, "#", &w)) {
		struct net_addr a;
		n = next_word(&w, &word);
		if (!addr_parse(word, n, &a))
			continue;
		while ((n = next_word(&w, &word)) > 0) {
			if (word_is(word, n, name)) {
				out[found++] = a;
				break;
			}
		}
	}
	return found;
}
