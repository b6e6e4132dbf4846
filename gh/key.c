#include "gh/key.h"

#include "gh/b64.h"
#include "gh/hmac.h"

#include <errno.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/rsa.h>
#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <stdlib.h>
#include <string.h>

#if MBEDTLS_VERSION_NUMBER < 0x03060000
#error "Mbed TLS 3.6 or later"
#endif

#define KEY_BITS     2048
#define KEY_EXPONENT 65537
#define SIG_MAX	     1024 /* bytes: a key of 8192 bits */
#define PEM_MAX	     SECRET_MAX

struct key {
	mbedtls_pk_context pk; /* an RSA key once set up */
	mbedtls_entropy_context entropy;
	mbedtls_ctr_drbg_context drbg;
};

static int lib_error(struct err *e, int code, const char *what, int rc)
{
	char text[128];

	mbedtls_strerror(rc, text, sizeof text);
	return err_set(e, code, 0, "%s: %s", what, text);
}

void key_free(struct key *k)
{
	if (k == NULL)
		return;
	mbedtls_pk_free(&k->pk);
	mbedtls_ctr_drbg_free(&k->drbg);
	mbedtls_entropy_free(&k->entropy);
	explicit_bzero(k, sizeof *k);
	free(k);
}

static void cleanup_key_fn(struct key **k)
{
	key_free(*k);
}
#define cleanup_key __attribute__((cleanup(cleanup_key_fn)))

static struct key *take_key(struct key **k)
{
	struct key *v = *k;

	*k = NULL;
	return v;
}

/* A random generator of its own for each key: after a fork no two processes share a state. */
static struct key *key_new(struct err *e)
{
	cleanup_key struct key *k = calloc(1, sizeof *k);
	int rc;

	if (k == NULL) {
		err_set(e, XC_SYSTEM, errno, "RSA key");
		return NULL;
	}
	mbedtls_pk_init(&k->pk);
	mbedtls_entropy_init(&k->entropy);
	mbedtls_ctr_drbg_init(&k->drbg);
	rc = mbedtls_ctr_drbg_seed(&k->drbg, mbedtls_entropy_func, &k->entropy, NULL, 0);
	if (rc != 0) {
		lib_error(e, XC_SYSTEM, "cannot seed the random generator", rc);
		return NULL;
	}
	return take_key(&k);
}

static struct key *key_new_rsa(struct err *e)
{
	cleanup_key struct key *k = key_new(e);
	int rc;

	if (k == NULL)
		return NULL;
	rc = mbedtls_pk_setup(&k->pk, mbedtls_pk_info_from_type(MBEDTLS_PK_RSA));
	if (rc != 0) {
		lib_error(e, XC_SYSTEM, "RSA key", rc);
		return NULL;
	}
	return take_key(&k);
}

struct key *key_generate(struct err *e)
{
	cleanup_key struct key *k = key_new_rsa(e);
	int rc;

	if (k == NULL)
		return NULL;
	rc = mbedtls_rsa_gen_key(mbedtls_pk_rsa(k->pk), mbedtls_ctr_drbg_random, &k->drbg, KEY_BITS,
				 KEY_EXPONENT);
	if (rc != 0) {
		lib_error(e, XC_SYSTEM, "cannot generate an RSA key", rc);
		return NULL;
	}
	return take_key(&k);
}

/* ---- the App's PEM -------------------------------------------------------------------------- */

/* What somebody pasted instead of an RSA private key. */
static const struct {
	const char *mark, *is;
} not_a_key[] = {
	{"BEGIN ENCRYPTED PRIVATE KEY", "an encrypted key: decrypt it (openssl pkey -in KEY)"},
	{"Proc-Type: 4,ENCRYPTED", "an encrypted key: decrypt it (openssl rsa -in KEY)"},
	{"BEGIN OPENSSH PRIVATE KEY", "an OpenSSH key: take the .pem that GitHub gave for the App"},
	{"BEGIN EC PRIVATE KEY", "an EC key: GitHub Apps have RSA keys"},
	{"BEGIN PUBLIC KEY", "a public key: take the private one"},
	{"BEGIN RSA PUBLIC KEY", "a public key: take the private one"},
	{"BEGIN CERTIFICATE", "a certificate: take the App's private key"},
};

static int name_what_it_is(const char *pem, int rc, struct err *e)
{
	for (size_t i = 0; i < sizeof not_a_key / sizeof not_a_key[0]; i++)
		if (strstr(pem, not_a_key[i].mark) != NULL)
			return err_set(e, XC_CONFIG, 0, "APP_PRIVATE_KEY is %s", not_a_key[i].is);
	if (strstr(pem, "-----BEGIN ") == NULL)
		return err_set(e, XC_CONFIG, 0,
			       "APP_PRIVATE_KEY is no PEM key: it must begin with \"-----BEGIN RSA "
			       "PRIVATE KEY-----\" (a path belongs in APP_PRIVATE_KEY_FILE)");
	return lib_error(e, XC_CONFIG,
			 "APP_PRIVATE_KEY is a damaged PEM key (line breaks lost, or cut off?)",
			 rc);
}

/* Environment variables often carry a PEM with "\n" written as two characters. */
static int with_line_breaks(const struct secret *pem, struct buf *out)
{
	const char *s = secret_reveal(pem);

	for (size_t i = 0; i < pem->len; i++) {
		char c = s[i];
		if (c == '\\' && i + 1 < pem->len && (s[i + 1] == 'n' || s[i + 1] == 'r')) {
			c = s[i + 1] == 'n' ? '\n' : '\r';
			i++;
		}
		if (c != '\r' && buf_putc(out, c) < 0)
			return -1;
	}
	return buf_putc(out, '\n');
}

struct key *key_from_pem(const struct secret *pem, struct err *e)
{
	cleanup_key struct key *k = key_new(e);
	cleanup_buf struct buf text = {0};
	int rc;

	buf_init(&text, PEM_MAX + 2);
	if (k == NULL)
		return NULL;
	if (with_line_breaks(pem, &text) < 0) {
		err_set(e, XC_SYSTEM, errno, "APP_PRIVATE_KEY");
		return NULL;
	}
	if (strlen(buf_str(&text)) != text.len) {
		err_set(e, XC_CONFIG, 0, "APP_PRIVATE_KEY has a NUL byte: it must be PEM, not DER");
		return NULL;
	}
	rc = mbedtls_pk_parse_key(&k->pk, text.data, text.len + 1, NULL, 0, mbedtls_ctr_drbg_random,
				  &k->drbg);
	if (rc != 0) {
		name_what_it_is(buf_str(&text), rc, e);
		return NULL;
	}
	if (mbedtls_pk_get_type(&k->pk) != MBEDTLS_PK_RSA) {
		err_set(e, XC_CONFIG, 0,
			"APP_PRIVATE_KEY is no RSA key: GitHub Apps have RSA keys");
		return NULL;
	}
	if (mbedtls_pk_get_bitlen(&k->pk) < KEY_BITS || mbedtls_pk_get_len(&k->pk) > SIG_MAX) {
		err_set(e, XC_CONFIG, 0,
			"APP_PRIVATE_KEY has %zu bits: accepted are RSA keys of 2048 to 8192 bits",
			mbedtls_pk_get_bitlen(&k->pk));
		return NULL;
	}
	return take_key(&k);
}

/* ---- parts ---------------------------------------------------------------------------------- */

struct key *key_from_parts(const struct key_parts *s, struct err *e)
{
	cleanup_key struct key *k = key_new_rsa(e);
	mbedtls_rsa_context *rsa;
	int rc;

	if (k == NULL)
		return NULL;
	rsa = mbedtls_pk_rsa(k->pk);
	rc = mbedtls_rsa_import_raw(rsa, s->modulus, sizeof s->modulus, s->p, sizeof s->p, s->q,
				    sizeof s->q, s->d, sizeof s->d, s->exponent,
				    sizeof s->exponent);
	if (rc == 0)
		rc = mbedtls_rsa_complete(rsa);
	if (rc == 0)
		rc = mbedtls_rsa_check_privkey(rsa);
	if (rc != 0) {
		lib_error(e, XC_CONFIG, "the agent's RSA key does not fit together", rc);
		return NULL;
	}
	return take_key(&k);
}

static int export_crt(const mbedtls_rsa_context *rsa, struct key_parts *out)
{
	mbedtls_mpi dp, dq, qp;
	int rc;

	mbedtls_mpi_init(&dp);
	mbedtls_mpi_init(&dq);
	mbedtls_mpi_init(&qp);
	rc = mbedtls_rsa_export_crt(rsa, &dp, &dq, &qp);
	if (rc == 0)
		rc = mbedtls_mpi_write_binary(&dp, out->dp, sizeof out->dp);
	if (rc == 0)
		rc = mbedtls_mpi_write_binary(&dq, out->dq, sizeof out->dq);
	if (rc == 0)
		rc = mbedtls_mpi_write_binary(&qp, out->inverse_q, sizeof out->inverse_q);
	mbedtls_mpi_free(&dp);
	mbedtls_mpi_free(&dq);
	mbedtls_mpi_free(&qp);
	return rc;
}

int key_export(const struct key *k, struct key_parts *out, struct err *e)
{
	static const unsigned char f4[3] = {1, 0, 1};
	const mbedtls_rsa_context *rsa = mbedtls_pk_rsa(k->pk);
	int rc;

	if (mbedtls_rsa_get_len(rsa) != sizeof out->modulus)
		return err_set(e, XC_CONFIG, 0, "not an RSA key of 2048 bits");
	/* Explicit lengths: the library pads on the left with zero bytes. */
	rc = mbedtls_rsa_export_raw(rsa, out->modulus, sizeof out->modulus, out->p, sizeof out->p,
				    out->q, sizeof out->q, out->d, sizeof out->d, out->exponent,
				    sizeof out->exponent);
	if (rc == 0)
		rc = export_crt(rsa, out);
	if (rc == 0 && memcmp(out->exponent, f4, sizeof f4) != 0)
		rc = MBEDTLS_ERR_RSA_BAD_INPUT_DATA;
	if (rc == 0)
		return 0;
	explicit_bzero(out, sizeof *out);
	return lib_error(e, XC_CONFIG, "cannot export the RSA key", rc);
}

/* ---- JWT ------------------------------------------------------------------------------------ */

static int sign(struct key *k, enum key_alg alg, const unsigned char hash[32], unsigned char *sig)
{
	mbedtls_rsa_context *rsa = mbedtls_pk_rsa(k->pk);
	int rc;

	if (alg == KEY_PS256) {
		rc = mbedtls_rsa_set_padding(rsa, MBEDTLS_RSA_PKCS_V21, MBEDTLS_MD_SHA256);
		return rc != 0 ? rc
			       : mbedtls_rsa_rsassa_pss_sign_ext(rsa, mbedtls_ctr_drbg_random,
								 &k->drbg, MBEDTLS_MD_SHA256, 32,
								 hash, 32, sig);
	}
	rc = mbedtls_rsa_set_padding(rsa, MBEDTLS_RSA_PKCS_V15, MBEDTLS_MD_NONE);
	return rc != 0 ? rc
		       : mbedtls_rsa_rsassa_pkcs1_v15_sign(rsa, mbedtls_ctr_drbg_random, &k->drbg,
							   MBEDTLS_MD_SHA256, 32, hash, sig);
}

int key_sign_jwt(struct key *k, enum key_alg alg, const char *claims, struct buf *out,
		 struct err *e)
{
	static const char *const header[KEY_ALG__MAX] = {
		[KEY_RS256] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}",
		[KEY_PS256] = "{\"alg\":\"PS256\",\"typ\":\"JWT\"}",
	};
	unsigned char hash[32], sig[SIG_MAX];
	size_t start = out->len;
	int rc;

	if (b64_encode(out, B64_URL, header[alg], strlen(header[alg])) < 0 ||
	    buf_putc(out, '.') < 0 || b64_encode(out, B64_URL, claims, strlen(claims)) < 0)
		return err_set(e, XC_SYSTEM, errno, "JWT");
	rc = mbedtls_sha256(out->data + start, out->len - start, hash, 0);
	if (rc == 0)
		rc = sign(k, alg, hash, sig);
	if (rc != 0)
		return lib_error(e, XC_SYSTEM, "cannot sign a JWT", rc);
	if (buf_putc(out, '.') < 0 ||
	    b64_encode(out, B64_URL, sig, mbedtls_rsa_get_len(mbedtls_pk_rsa(k->pk))) < 0)
		return err_set(e, XC_SYSTEM, errno, "JWT");
	return 0;
}

/* RFC 2104 by hand: mbedtls_md_hmac allocates, and PID 1 must not. */
int gh_hmac(const struct secret *key, const void *data, size_t n, unsigned char out[GH_HMAC_BYTES])
{
	unsigned char pad[64] = {0}, inner[GH_HMAC_BYTES];
	mbedtls_sha256_context ctx;
	int rc = 0;

	if (key->len > sizeof pad)
		rc = mbedtls_sha256((const unsigned char *)key->bytes, key->len, pad, 0);
	else
		memcpy(pad, key->bytes, key->len);
	for (size_t i = 0; i < sizeof pad; i++)
		pad[i] ^= 0x36;
	mbedtls_sha256_init(&ctx);
	if (rc != 0 || mbedtls_sha256_starts(&ctx, 0) != 0 ||
	    mbedtls_sha256_update(&ctx, pad, sizeof pad) != 0 ||
	    mbedtls_sha256_update(&ctx, data, n) != 0 || mbedtls_sha256_finish(&ctx, inner) != 0)
		rc = -1;
	for (size_t i = 0; i < sizeof pad; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	if (rc != 0 || mbedtls_sha256_starts(&ctx, 0) != 0 ||
	    mbedtls_sha256_update(&ctx, pad, sizeof pad) != 0 ||
	    mbedtls_sha256_update(&ctx, inner, sizeof inner) != 0 ||
	    mbedtls_sha256_finish(&ctx, out) != 0)
		rc = -1;
	mbedtls_sha256_free(&ctx);
	explicit_bzero(pad, sizeof pad);
	explicit_bzero(inner, sizeof inner);
	return rc == 0 ? 0 : -1;
}
