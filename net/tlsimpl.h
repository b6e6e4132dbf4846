/* What net/tls.c, net/tlswhy.c and net/trust.c share. Nothing else includes it. */
#ifndef NET_TLSIMPL_H
#define NET_TLSIMPL_H

#include "base/buf.h"
#include "net/tls.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <psa/crypto.h>

/* 3.6.0 to 3.6.2 let a client that set no host name pass, and lack the switch for tickets. */
#if MBEDTLS_VERSION_NUMBER < 0x03060300
#error "Mbed TLS 3.6.3 or later is needed"
#endif

struct tls_trust {
	mbedtls_entropy_context entropy;
	mbedtls_ctr_drbg_context rng;
	mbedtls_x509_crt ca;
	mbedtls_ssl_config conf;
	unsigned count;
	char source[160];
};

struct tls_session {
	bool have;
	mbedtls_ssl_session s;
};

struct tls {
	mbedtls_ssl_context ssl;
	struct tls_trust *trust;
	struct tls_session *keep; /* borrowed, may be NULL */
	struct tls_below below;
	int rc;		     /* last failure of the library */
	int sys;	     /* errno of the transport's last failure, 0 none */
	bool done;	     /* handshake complete */
	bool offered, certs; /* a session was offered; certificates came */
	bool said_bye;
	size_t n_first;
	unsigned char first[8]; /* of what the peer sent: names a peer that does not speak TLS */
	struct tls_cert_note notes[TLS_CHAIN_MAX];
};

/* Adds every certificate of a PEM bundle, or one DER certificate; those that cannot be parsed are
 * left out, like elsewhere. How many were added. `text` is changed during the call only. */
unsigned tls_ca_parse(mbedtls_x509_crt *to, struct buf *text);

/* 0, or -1 with *e. */
int tls_trust_load(struct tls_trust *t, const char *file, const char *dir, struct err *e);

#endif
