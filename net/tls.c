#include "base/str.h"
#include "net/tlsimpl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- trust ---- */

void tls_trust_free(struct tls_trust *t)
{
	if (t == NULL)
		return;
	mbedtls_ssl_config_free(&t->conf);
	mbedtls_x509_crt_free(&t->ca);
	mbedtls_ctr_drbg_free(&t->rng);
	mbedtls_entropy_free(&t->entropy);
	free(t);
}

static int library_error(struct err *e, int rc, const char *what)
{
	char text[128];

	mbedtls_strerror(rc, text, sizeof text);
	return err_set(e, XC_SYSTEM, 0, "%s: %s (-0x%04x)", what, text, (unsigned)-rc);
}

static int configure(struct tls_trust *t, struct err *e)
{
	int rc;

	rc = mbedtls_ctr_drbg_seed(&t->rng, mbedtls_entropy_func, &t->entropy, NULL, 0);
	if (rc == 0)
		rc = mbedtls_ssl_config_defaults(&t->conf, MBEDTLS_SSL_IS_CLIENT,
						 MBEDTLS_SSL_TRANSPORT_STREAM,
						 MBEDTLS_SSL_PRESET_DEFAULT);
	if (rc == 0 && psa_crypto_init() != PSA_SUCCESS)
		rc = MBEDTLS_ERR_SSL_HW_ACCEL_FAILED;
	if (rc != 0)
		return library_error(e, rc, "cannot set up TLS");
	mbedtls_ssl_conf_rng(&t->conf, mbedtls_ctr_drbg_random, &t->rng);
	mbedtls_ssl_conf_authmode(&t->conf, MBEDTLS_SSL_VERIFY_REQUIRED);
	mbedtls_ssl_conf_ca_chain(&t->conf, &t->ca, NULL);
	mbedtls_ssl_conf_min_tls_version(&t->conf, MBEDTLS_SSL_VERSION_TLS1_2);
	mbedtls_ssl_conf_max_tls_version(&t->conf, MBEDTLS_SSL_VERSION_TLS1_3);
	mbedtls_ssl_conf_session_tickets(&t->conf, MBEDTLS_SSL_SESSION_TICKETS_ENABLED);
	mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
		&t->conf, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
	return 0;
}

struct tls_trust *tls_trust_open(const char *ca_file, const char *ca_dir, struct err *e)
{
	struct tls_trust *t = calloc(1, sizeof *t);

	if (t == NULL) {
		(void)err_set(e, XC_SYSTEM, ENOMEM, "cannot set up TLS");
		return NULL;
	}
	mbedtls_entropy_init(&t->entropy);
	mbedtls_ctr_drbg_init(&t->rng);
	mbedtls_x509_crt_init(&t->ca);
	mbedtls_ssl_config_init(&t->conf);
	if (configure(t, e) < 0 || tls_trust_load(t, ca_file, ca_dir, e) < 0) {
		tls_trust_free(t);
		return NULL;
	}
	return t;
}

unsigned tls_trust_count(const struct tls_trust *t)
{
	return t->count;
}

const char *tls_trust_source(const struct tls_trust *t)
{
	return t->source;
}

/* ---- sessions to resume ---- */

struct tls_session *tls_session_new(void)
{
	struct tls_session *s = calloc(1, sizeof *s);

	if (s != NULL)
		mbedtls_ssl_session_init(&s->s);
	return s;
}

void tls_session_free(struct tls_session *s)
{
	if (s == NULL)
		return;
	mbedtls_ssl_session_free(&s->s);
	free(s);
}

static void forget(struct tls_session *k)
{
	if (k == NULL || !k->have)
		return;
	mbedtls_ssl_session_free(&k->s);
	mbedtls_ssl_session_init(&k->s);
	k->have = false;
}

/* Best effort: without a session the next handshake is a full one. */
static void remember(struct tls *s)
{
	if (s->keep == NULL)
		return;
	forget(s->keep);
	s->keep->have = mbedtls_ssl_get_session(&s->ssl, &s->keep->s) == 0;
	if (!s->keep->have) {
		mbedtls_ssl_session_free(&s->keep->s);
		mbedtls_ssl_session_init(&s->keep->s);
	}
}

/* ---- one connection ---- */

static int below_write(void *arg, const unsigned char *p, size_t n)
{
	struct tls *s = arg;
	ssize_t r = s->below.write(s->below.arg, p, n);

	if (r == TLS_AGAIN)
		return MBEDTLS_ERR_SSL_WANT_WRITE;
	if (r < 0) {
		s->sys = errno;
		return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
	}
	return (int)r;
}

static int below_read(void *arg, unsigned char *p, size_t n)
{
	struct tls *s = arg;
	ssize_t r = s->below.read(s->below.arg, p, n);

	if (r == TLS_AGAIN)
		return MBEDTLS_ERR_SSL_WANT_READ;
	if (r < 0) {
		s->sys = errno;
		return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
	}
	for (ssize_t i = 0; i < r && s->n_first < sizeof s->first; i++)
		s->first[s->n_first++] = p[i];
	return (int)r;
}

static int64_t seconds_of(const mbedtls_x509_time *t)
{
	struct tm tm = {.tm_year = t->year - 1900,
			.tm_mon = t->mon - 1,
			.tm_mday = t->day,
			.tm_hour = t->hour,
			.tm_min = t->min,
			.tm_sec = t->sec};

	return (int64_t)timegm(&tm);
}

static void note_names(struct tls_cert_note *n, const mbedtls_x509_crt *crt)
{
	size_t used = 0;

	for (const mbedtls_x509_sequence *s = &crt->subject_alt_names; s != NULL; s = s->next) {
		/* context tag 2: a DNS name (RFC 5280 section 4.2.1.6) */
		char name[256];
		if (s->buf.p == NULL || (s->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) != 2)
			continue;
		str_show(name, sizeof name, s->buf.p, s->buf.len);
		if (str_fmt(n->names + used, sizeof n->names - used, "%s%s", used > 0 ? ", " : "",
			    name) < 0) {
			n->names[used] = 0;
			break;
		}
		used = strlen(n->names);
	}
}

/* Called for every certificate of the chain, the server's own (depth 0) last. Only watches. */
static int watch(void *arg, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
	struct tls *s = arg;
	struct tls_cert_note *n;
	char dn[400];
	const char *alg = NULL;

	s->certs = true;
	if (depth < 0 || depth >= TLS_CHAIN_MAX)
		return 0;
	n = &s->notes[depth];
	memset(n, 0, sizeof *n);
	n->seen = true;
	n->flags = *flags;
	if (mbedtls_x509_dn_gets(dn, sizeof dn, &crt->subject) > 0)
		str_show(n->subject, sizeof n->subject, dn, strlen(dn));
	if (mbedtls_x509_dn_gets(dn, sizeof dn, &crt->issuer) > 0)
		str_show(n->issuer, sizeof n->issuer, dn, strlen(dn));
	if (mbedtls_oid_get_sig_alg_desc(&crt->sig_oid, &alg) != 0)
		alg = "an unknown signature";
	(void)str_fmt(n->key, sizeof n->key, "%s, %s key of %u bits", alg,
		      mbedtls_pk_get_name(&crt->pk), (unsigned)mbedtls_pk_get_bitlen(&crt->pk));
	n->from_s = seconds_of(&crt->valid_from);
	n->to_s = seconds_of(&crt->valid_to);
	note_names(n, crt);
	return 0;
}

struct tls *tls_new(struct tls_trust *t, const struct tls_below *below, const char *name,
		    struct tls_session *keep, struct err *e)
{
	struct tls *s = calloc(1, sizeof *s);
	int rc;

	if (s == NULL) {
		(void)err_set(e, XC_SYSTEM, ENOMEM, "cannot begin TLS");
		return NULL;
	}
	s->trust = t;
	s->below = *below;
	s->keep = keep;
	mbedtls_ssl_init(&s->ssl);
	rc = mbedtls_ssl_setup(&s->ssl, &t->conf);
	if (rc == 0)
		rc = mbedtls_ssl_set_hostname(&s->ssl, name);
	if (rc != 0) {
		(void)library_error(e, rc, "cannot begin TLS");
		tls_free(s);
		return NULL;
	}
	mbedtls_ssl_set_verify(&s->ssl, watch, s);
	mbedtls_ssl_set_bio(&s->ssl, s, below_write, below_read, NULL);
	if (keep != NULL && keep->have)
		s->offered = mbedtls_ssl_set_session(&s->ssl, &keep->s) == 0;
	return s;
}

void tls_free(struct tls *s)
{
	if (s == NULL)
		return;
	mbedtls_ssl_free(&s->ssl);
	free(s);
}

static bool again(int rc)
{
	return rc == MBEDTLS_ERR_SSL_WANT_READ || rc == MBEDTLS_ERR_SSL_WANT_WRITE;
}

int tls_handshake(struct tls *s)
{
	int rc;

	while ((rc = mbedtls_ssl_handshake(&s->ssl)) == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
		remember(s);
	if (again(rc))
		return TLS_AGAIN;
	if (rc == 0 && mbedtls_ssl_get_verify_result(&s->ssl) != 0)
		rc = MBEDTLS_ERR_X509_CERT_VERIFY_FAILED; /* cannot happen with REQUIRED; belt and
							     braces */
	if (rc != 0) {
		s->rc = rc;
		forget(s->keep); /* perhaps the old session is what the server choked on */
		return TLS_BROKEN;
	}
	s->done = true;
	if (mbedtls_ssl_get_version_number(&s->ssl) == MBEDTLS_SSL_VERSION_TLS1_2)
		remember(s);
	return 0;
}

ssize_t tls_read(struct tls *s, void *p, size_t n)
{
	int rc;

	while ((rc = mbedtls_ssl_read(&s->ssl, p, n)) ==
	       MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
		remember(s);
	if (rc > 0)
		return rc;
	if (again(rc))
		return TLS_AGAIN;
	if (rc == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
		return 0;
	s->rc = rc == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : rc; /* 0: cut off without close_notify */
	return TLS_BROKEN;
}

ssize_t tls_write(struct tls *s, const void *p, size_t n)
{
	int rc = mbedtls_ssl_write(&s->ssl, p, n);

	if (rc >= 0)
		return rc;
	if (again(rc))
		return TLS_AGAIN;
	s->rc = rc;
	return TLS_BROKEN;
}

bool tls_alerted(const struct tls *s)
{
	return s->rc == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE;
}

void tls_bye(struct tls *s)
{
	if (s->done && !s->said_bye)
		(void)mbedtls_ssl_close_notify(&s->ssl);
	s->said_bye = true;
}

bool tls_resumed(const struct tls *s)
{
	return s->done && s->offered && !s->certs;
}

const char *tls_version(const struct tls *s)
{
	return mbedtls_ssl_get_version(&s->ssl);
}
