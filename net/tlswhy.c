/* The words for a TLS failure: which certificate, its subject, issuer and dates; which alert. */
#include "base/deadline.h"
#include "base/str.h"
#include "net/tlsimpl.h"

#include <string.h>
#include <time.h>

#define HOW_WHEN 24

static void date(int64_t s, char dst[HOW_WHEN])
{
	time_t t = (time_t)s;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || strftime(dst, HOW_WHEN, "%Y-%m-%d %H:%M:%SZ", &tm) == 0)
		dst[0] = 0;
}

/* Descriptions of RFC 8446 section 6.2, those that a client can be sent. */
static const char *alert_name(unsigned char n)
{
	static const struct {
		unsigned char n;
		const char *name;
	} names[] = {
		{10, "unexpected message"},
		{20, "bad record"},
		{40, "handshake failure: nothing in common, or a client certificate is wanted"},
		{42, "bad certificate"},
		{46, "certificate unknown"},
		{47, "illegal parameter"},
		{48, "unknown CA"},
		{49, "access denied"},
		{50, "decode error"},
		{51, "decrypt error"},
		{70, "protocol version: it speaks none of TLS 1.2 and 1.3"},
		{71, "insufficient security"},
		{80, "internal error"},
		{86, "inappropriate fallback"},
		{112, "unrecognized name: it serves no such host"},
		{116, "certificate required: it wants a client certificate"},
		{120, "no application protocol"}};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].n == n)
			return names[i].name;
	return "an alert without a name here";
}

void tls_reason(const struct tls *s, char *dst, size_t size)
{
	char text[128];
	int r;

	if (s->sys != 0) {
		r = str_copy(dst, size, strerror(s->sys));
	} else if (s->rc == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE) {
		/* the library keeps the number nowhere else than in the message itself */
		unsigned char n = s->ssl.MBEDTLS_PRIVATE(in_msg)[1];
		r = str_fmt(dst, size, "the peer refused with alert %u (%s)", n, alert_name(n));
	} else if (s->rc == MBEDTLS_ERR_SSL_CONN_EOF) {
		r = str_copy(dst, size, "the peer closed the connection without ending TLS");
	} else {
		mbedtls_strerror(s->rc, text, sizeof text);
		r = str_fmt(dst, size, "%s (-0x%04x)", text, (unsigned)-s->rc);
	}
	if (r < 0)
		dst[0] = 0;
}

static int say(struct err *e, int code, const char *peer, const struct tls_cert_note *n,
	       const char *what)
{
	char from[HOW_WHEN], to[HOW_WHEN];

	date(n->from_s, from);
	date(n->to_s, to);
	return err_set(e, code, 0,
		       "the certificate of %s was not accepted: %s (subject \"%s\", issuer \"%s\", "
		       "valid %s to %s)",
		       peer, what, n->subject, n->issuer, from, to);
}

static const struct tls_cert_note *with_flag(const struct tls *s, uint32_t flags, int *depth)
{
	for (int i = 0; i < TLS_CHAIN_MAX; i++) {
		if (s->notes[i].seen && (s->notes[i].flags & flags) != 0) {
			*depth = i;
			return &s->notes[i];
		}
	}
	return NULL;
}

static int untrusted(const struct tls *s, const char *peer, const struct tls_cert_note *n,
		     int depth, struct err *e)
{
	const char *source = s->trust->source;
	unsigned count = s->trust->count;
	char what[512];
	int r;

	if (strcmp(n->subject, n->issuer) == 0)
		r = str_fmt(what, sizeof what,
			    depth == 0 ? "it is self-signed, and not among the %u of %s"
				       : "its chain ends in a root that is not among the %u of %s",
			    count, source);
	else
		r = str_fmt(
			what, sizeof what,
			"its issuer is unknown: not among the %u certificates of %s; a private CA "
			"is given with SSL_CERT_FILE",
			count, source);
	return say(e, XC_UNAVAILABLE, peer, n, r < 0 ? "its issuer is unknown" : what);
}

static int too_early(const char *peer, const struct tls_cert_note *n, struct err *e)
{
	int64_t now = clock_real_ms() / 1000;
	char when[HOW_WHEN], what[200];

	date(now, when);
	if (str_fmt(what, sizeof what,
		    "it is not valid yet: the clock here says %s, %lld s before its first day; set "
		    "the "
		    "clock",
		    when, (long long)(n->from_s - now)) < 0)
		what[0] = 0;
	return say(e, XC_CLOCK, peer, n, what);
}

static int too_late(const char *peer, const struct tls_cert_note *n, struct err *e)
{
	int64_t now = clock_real_ms() / 1000;
	char when[HOW_WHEN], what[200];

	date(now, when);
	if (str_fmt(what, sizeof what,
		    "it has expired: the clock here says %s, %lld s after its end", when,
		    (long long)(now - n->to_s)) < 0)
		what[0] = 0;
	return say(e, XC_UNAVAILABLE, peer, n, what);
}

/* One reason is told, the one that has to be cured first: time, trust, strength, name, usage. */
static int chain(const struct tls *s, const char *peer, struct net_failure *f, struct err *e)
{
	const struct tls_cert_note *n;
	char what[400];
	int depth = 0;

	f->permanent = true;
	n = with_flag(s, MBEDTLS_X509_BADCERT_FUTURE, &depth);
	if (n != NULL) {
		f->permanent = false; /* the clock may be set in a moment: boot */
		return too_early(peer, n, e);
	}
	n = with_flag(s, MBEDTLS_X509_BADCERT_EXPIRED, &depth);
	if (n != NULL)
		return too_late(peer, n, e);
	n = with_flag(s,
		      MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK |
			      MBEDTLS_X509_BADCERT_BAD_KEY,
		      &depth);
	if (n != NULL) {
		if (str_fmt(what, sizeof what, "its signature or key is too weak: %s", n->key) < 0)
			what[0] = 0;
		return say(e, XC_UNAVAILABLE, peer, n, what);
	}
	n = with_flag(s, MBEDTLS_X509_BADCERT_NOT_TRUSTED, &depth);
	if (n != NULL)
		return untrusted(s, peer, n, depth, e);
	n = with_flag(s, MBEDTLS_X509_BADCERT_CN_MISMATCH, &depth);
	if (n != NULL) {
		if (str_fmt(what, sizeof what, "it is for another name: %s",
			    n->names[0] != 0 ? n->names : "none that a browser would take") < 0)
			what[0] = 0;
		return say(e, XC_UNAVAILABLE, peer, n, what);
	}
	/* the usage is checked after the chain, where no callback sees it */
	if (s->notes[0].seen && mbedtls_ssl_get_verify_result(&s->ssl) != 0)
		return say(e, XC_UNAVAILABLE, peer, &s->notes[0], "it is not meant for servers");
	return err_set(e, XC_UNAVAILABLE, 0, "the certificate of %s cannot be checked", peer);
}

int tls_explain(const struct tls *s, const char *peer, struct net_failure *f, struct err *e)
{
	char why[256];

	if (s->rc == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED ||
	    (s->rc == MBEDTLS_ERR_SSL_BAD_CERTIFICATE && s->notes[0].seen))
		return chain(s, peer, f, e);
	if (s->n_first >= 5 && (memcmp(s->first, "HTTP/", 5) == 0 || s->first[0] == '<'))
		return err_set(e, XC_PROTOCOL, 0,
			       "%s answered the TLS handshake with plain HTTP: a wrong port, or "
			       "something in between",
			       peer);
	if (s->rc == MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION)
		return err_set(
			e, XC_UNAVAILABLE, 0,
			"%s speaks only a protocol older than TLS 1.2, which is not accepted",
			peer);
	if (s->n_first > 0 && s->sys == 0 && s->rc != MBEDTLS_ERR_SSL_CONN_EOF &&
	    s->rc != MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE && (s->first[0] < 20 || s->first[0] > 23))
		return err_set(e, XC_PROTOCOL, 0,
			       "%s does not speak TLS: a wrong port, or something in "
			       "between",
			       peer);
	tls_reason(s, why, sizeof why);
	return err_set(e, s->rc == MBEDTLS_ERR_SSL_ALLOC_FAILED ? XC_SYSTEM : XC_UNAVAILABLE, 0,
		       "TLS with %s failed: %s", peer, why);
}
