/*
 * RSA keys: making one for the agent, reading the App's, signing JWTs. gh/key.c is the only file of
 * gh/ that includes Mbed TLS. Everything here is CPU work: no file, no network; generating takes 50
 * to 500 ms on one core.
 */
#ifndef GH_KEY_H
#define GH_KEY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"

#include <stddef.h>
#include <stdint.h>

struct key; /* opaque; wiped by key_free */

/*
 * A 2048-bit key, each part big-endian at its full width, left-padded with zero bytes, without a
 * sign byte: what .NET's RSAParameters demand (actions/runner, IRSAKeyManager.cs,
 * RSAParametersSerializable; dotnet/runtime RSA import). A value without pointers, so that it can
 * cross a pipe as it is. Secret: wipe it.
 */
struct key_parts {
	unsigned char d[256], dp[128], dq[128], exponent[3], inverse_q[128], modulus[256], p[128],
		q[128];
};

enum key_alg { KEY_RS256, KEY_PS256, KEY_ALG__MAX };

/* A new 2048-bit key with public exponent 65537. NULL with XC_SYSTEM. */
struct key *key_generate(struct err *e);

/* A GitHub App's private key: PEM, PKCS#1 or PKCS#8, line breaks real or as the two characters
 * "\n"; at least 2048 bits. NULL with XC_CONFIG, the text naming what the bytes are instead. */
struct key *key_from_pem(const struct secret *pem, struct err *e);

/* NULL with XC_CONFIG when the parts do not belong together. */
struct key *key_from_parts(const struct key_parts *parts, struct err *e);

void key_free(struct key *k); /* NULL is fine */

/* 0, or -1 (XC_CONFIG) when the key is not one of 2048 bits with exponent 65537. */
int key_export(const struct key *k, struct key_parts *out, struct err *e);

/* Appends the compact JWT of `claims` (a JSON object) to `out`. PS256: SHA-256, MGF1 with SHA-256,
 * salt of 32 bytes. 0 or -1 (XC_SYSTEM). */
int key_sign_jwt(struct key *k, enum key_alg alg, const char *claims, struct buf *out,
		 struct err *e);

#endif
