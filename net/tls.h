/*
 * TLS through Mbed TLS, client side. There is no unsafe mode: the chain and the name are always
 * checked, TLS 1.2 is the floor, and nothing is read from a peer that failed the check.
 *
 * The transport below a session is a pair of functions, so that a session can run inside another
 * (TLS to a proxy, TLS to the target inside). Nothing here waits: a call that cannot go on says
 * TLS_AGAIN, and the owner of the descriptor polls.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/err.h"
#include "net/net.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TLS_AGAIN  (-2) /* poll, then call again with the same arguments */
#define TLS_BROKEN (-1) /* the connection is of no more use */

/* The trust anchors and settings shared by all sessions of a client. */
struct tls_trust;

/* Reads the CA certificates: ca_file (SSL_CERT_FILE) and ca_dir (SSL_CERT_DIR, a colon list) when
 * either is set, else the first of the usual bundles. NULL with XC_CONFIG when none is usable (the
 * text names the places looked at), XC_SYSTEM. Reads files; may block as they do. */
struct tls_trust *tls_trust_open(const char *ca_file, const char *ca_dir, struct err *e);
void tls_trust_free(struct tls_trust *t);
unsigned tls_trust_count(const struct tls_trust *t);	 /* certificates in use */
const char *tls_trust_source(const struct tls_trust *t); /* where they came from, for messages */

/* A session to resume, kept by the client per origin. */
struct tls_session;
struct tls_session *tls_session_new(void);    /* NULL: no memory */
void tls_session_free(struct tls_session *s); /* NULL is fine */

/* Bytes taken or given, 0 at the end of the stream (read only), TLS_AGAIN or TLS_BROKEN. */
struct tls_below {
	void *arg;
	ssize_t (*read)(void *arg, void *p, size_t n);
	ssize_t (*write)(void *arg, const void *p, size_t n);
};

struct tls;

/* `name`: the host the certificate must be for (DNS name or address). `keep` (may be NULL): tried
 * for resumption, and updated; borrowed for the session's life, like `t`. NULL with XC_SYSTEM. */
struct tls *tls_new(struct tls_trust *t, const struct tls_below *below, const char *name,
		    struct tls_session *keep, struct err *e);
void tls_free(struct tls *s); /* NULL is fine; sends nothing */

/* 0 done, TLS_AGAIN, TLS_BROKEN (then tls_explain). */
int tls_handshake(struct tls *s);

/* Sets *e and f->permanent to what went wrong in the handshake: which certificate, its subject,
 * issuer and dates, the alert, the protocol. `peer` as the operator knows it ("api.example:443").
 * XC_CLOCK when the clock is before the certificate's first day. Always -1. */
int tls_explain(const struct tls *s, const char *peer, struct net_failure *f, struct err *e);

/* > 0 bytes; 0 the peer ended the stream properly; TLS_AGAIN; TLS_BROKEN (also an end without
 * close_notify: truncation is not an end). */
ssize_t tls_read(struct tls *s, void *p, size_t n);
ssize_t tls_write(struct tls *s, const void *p, size_t n);
bool tls_alerted(const struct tls *s); /* the last TLS_BROKEN was an alert of the peer */
/* Why the last call gave TLS_BROKEN: the transport's error, the peer's alert or the library's
 * words. */
void tls_reason(const struct tls *s, char *dst, size_t size);

void tls_bye(struct tls *s); /* close_notify, once, without waiting */

bool tls_resumed(const struct tls *s);	      /* after the handshake: no certificate was sent */
const char *tls_version(const struct tls *s); /* "TLSv1.3" */

/* ---- inside net/tls*.c ---- */

#define TLS_CHAIN_MAX 10

/* What the verification saw of one certificate of the chain. */
struct tls_cert_note {
	bool seen;
	uint32_t flags; /* MBEDTLS_X509_BADCERT_* */
	char subject[200], issuer[200], names[200];
	char key[48]; /* algorithm and size of the key, digest of the signature */
	int64_t from_s, to_s;
};

#endif
