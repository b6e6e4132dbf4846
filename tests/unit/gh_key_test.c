#include "gh/key.h"

#include "base/deadline.h"
#include "base/str.h"
#include "gh/b64.h"
#include "gh/keygen.h"
#include "tests/unit/gh_key_vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define N_VECTORS (sizeof key_vectors / sizeof key_vectors[0])

static void text_secret(struct secret *s, const char *text)
{
	assert_int_equal(secret_set(s, text, strlen(text)), 0);
}

static void same_as(const unsigned char *p, size_t n, const char *want)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, 1000);
	assert_int_equal(b64_encode(&b, B64_STD, p, n), 0);
	assert_string_equal(buf_str(&b), want);
}

static void check_parts(const struct key_parts *k, const struct key_vector *v)
{
	same_as(k->d, sizeof k->d, v->parts[0]);
	same_as(k->dp, sizeof k->dp, v->parts[1]);
	same_as(k->dq, sizeof k->dq, v->parts[2]);
	same_as(k->exponent, sizeof k->exponent, v->parts[3]);
	same_as(k->inverse_q, sizeof k->inverse_q, v->parts[4]);
	same_as(k->modulus, sizeof k->modulus, v->parts[5]);
	same_as(k->p, sizeof k->p, v->parts[6]);
	same_as(k->q, sizeof k->q, v->parts[7]);
}

static void parts_that_begin_with_a_zero_byte_keep_their_width(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_VECTORS; i++) {
		const struct key_vector *v = &key_vectors[i];
		struct err e = ERR_INIT;
		struct key_parts parts;
		struct secret pem;
		struct key *k;
		text_secret(&pem, v->pkcs1);
		k = key_from_pem(&pem, &e);
		assert_non_null(k);
		assert_int_equal(key_export(k, &parts, &e), 0);
		check_parts(&parts, v);
		key_free(k);
		k = key_from_parts(&parts, &e);
		assert_non_null(k);
		memset(&parts, 0xff, sizeof parts);
		assert_int_equal(key_export(k, &parts, &e), 0);
		check_parts(&parts, v);
		key_free(k);
	}
}

static void an_app_key_may_be_pkcs1_or_pkcs8_with_real_or_written_line_breaks(void **state)
{
	(void)state;
	for (int form = 0; form < 4; form++) {
		const char *pem = form % 2 == 0 ? key_vectors[0].pkcs1 : key_vectors[0].pkcs8;
		cleanup_buf struct buf text = {0};
		struct err e = ERR_INIT;
		struct secret s;
		struct key *k;
		buf_init(&text, 10000);
		for (const char *p = pem; *p != 0; p++)
			assert_int_equal(*p == '\n' && form >= 2 ? buf_puts(&text, "\\n")
								 : buf_putc(&text, *p),
					 0);
		text_secret(&s, buf_str(&text));
		k = key_from_pem(&s, &e);
		if (k == NULL)
			fail_msg("form %d: %s", form, e.text);
		key_free(k);
	}
}

static void a_last_line_without_line_break_and_windows_breaks_are_accepted(void **state)
{
	cleanup_buf struct buf text = {0};
	struct err e = ERR_INIT;
	struct secret s;
	struct key *k;

	(void)state;
	buf_init(&text, 10000);
	for (const char *p = key_vectors[0].pkcs1; *p != 0; p++) {
		if (*p == '\n' && p[1] == 0)
			break;
		assert_int_equal(*p == '\n' ? buf_puts(&text, "\r\n") : buf_putc(&text, *p), 0);
	}
	text_secret(&s, buf_str(&text));
	k = key_from_pem(&s, &e);
	assert_non_null(k);
	key_free(k);
}

static void what_is_no_app_key_is_named(void **state)
{
	static const struct {
		const char *pem, *says;
	} rows[] = {
		{"/run/secrets/app.pem", "APP_PRIVATE_KEY_FILE"},
		{"", "no PEM key"},
		{"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "public key"},
		{"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
		 "OpenSSH"},
		{"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE "
		 "KEY-----\n",
		 "encrypted"},
		{"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", "EC key"},
		{"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
		 "damaged"},
		{"-----BEGIN RSA PRIVATE KEY----- MIIEow", "damaged"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		struct secret s;
		text_secret(&s, rows[i].pem);
		assert_null(key_from_pem(&s, &e));
		assert_int_equal(e.code, XC_CONFIG);
		if (strstr(e.text, rows[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.text, rows[i].says);
	}
}

static void a_key_with_a_nul_byte_is_refused(void **state)
{
	struct err e = ERR_INIT;
	struct secret s;

	(void)state;
	assert_int_equal(secret_set(&s, "-----BEGIN\0", 11), 0);
	assert_null(key_from_pem(&s, &e));
	assert_non_null(strstr(e.text, "NUL"));
}

static void parts_of_two_keys_do_not_make_one(void **state)
{
	struct err e = ERR_INIT;
	struct key_parts a, b;
	struct secret pem;
	struct key *k;

	(void)state;
	text_secret(&pem, key_vectors[0].pkcs1);
	k = key_from_pem(&pem, &e);
	assert_int_equal(key_export(k, &a, &e), 0);
	key_free(k);
	text_secret(&pem, key_vectors[1].pkcs1);
	k = key_from_pem(&pem, &e);
	assert_int_equal(key_export(k, &b, &e), 0);
	key_free(k);
	memcpy(a.p, b.p, sizeof a.p);
	assert_null(key_from_parts(&a, &e));
	assert_int_equal(e.code, XC_CONFIG);
}

static void a_jwt_has_three_parts_and_names_its_algorithm(void **state)
{
	static const struct {
		enum key_alg alg;
		const char *head;
	} rows[] = {
		{KEY_RS256, "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiIxIn0."},
		{KEY_PS256, "eyJhbGciOiJQUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiIxIn0."},
	};
	struct err e = ERR_INIT;
	struct secret pem;
	struct key *k;

	(void)state;
	text_secret(&pem, key_vectors[0].pkcs1);
	k = key_from_pem(&pem, &e);
	for (size_t i = 0; i < 2; i++) {
		cleanup_buf struct buf jwt = {0};
		buf_init(&jwt, 4096);
		assert_int_equal(key_sign_jwt(k, rows[i].alg, "{\"iss\":\"1\"}", &jwt, &e), 0);
		assert_true(str_starts(buf_str(&jwt), rows[i].head));
		/* 256 bytes, without padding */
		assert_int_equal(jwt.len - strlen(rows[i].head), 342);
		assert_null(strpbrk(buf_str(&jwt), "+/="));
	}
	key_free(k);
}

static void a_jwt_that_does_not_fit_is_an_error(void **state)
{
	cleanup_buf struct buf jwt = {0};
	struct err e = ERR_INIT;
	struct secret pem;
	struct key *k;

	(void)state;
	text_secret(&pem, key_vectors[0].pkcs1);
	k = key_from_pem(&pem, &e);
	buf_init(&jwt, 100);
	assert_int_equal(key_sign_jwt(k, KEY_RS256, "{\"iss\":\"1\"}", &jwt, &e), -1);
	key_free(k);
}

static void the_helper_makes_a_key_that_fits_together(void **state)
{
	struct keygen g = KEYGEN_INIT;
	struct err e = ERR_INIT;
	struct key_parts parts;
	struct key *k;

	(void)state;
	keygen_start(&g);
	assert_true(g.pid > 0);
	if (keygen_take(&g, -1, deadline_in(60000), &parts, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(g.pid, -1);
	assert_int_equal(g.fd, -1);
	k = key_from_parts(&parts, &e);
	assert_non_null(k);
	key_free(k);
	assert_true(parts.modulus[0] & 0x80);
}

static void a_key_that_comes_too_late_is_an_error_and_leaves_no_child(void **state)
{
	struct keygen g = KEYGEN_INIT;
	struct err e = ERR_INIT;
	struct key_parts parts;

	(void)state;
	keygen_start(&g);
	assert_int_equal(keygen_take(&g, -1, deadline_in(-1), &parts, &e), -1);
	assert_int_equal(e.code, XC_UNAVAILABLE);
	assert_int_equal(g.pid, -1);
}

static void without_a_helper_the_key_is_made_in_place(void **state)
{
	struct keygen g = KEYGEN_INIT;
	struct err e = ERR_INIT;
	struct key_parts parts;

	(void)state;
	assert_int_equal(keygen_take(&g, -1, deadline_in(60000), &parts, &e), 0);
	assert_int_equal(parts.exponent[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_that_begin_with_a_zero_byte_keep_their_width),
		cmocka_unit_test(an_app_key_may_be_pkcs1_or_pkcs8_with_real_or_written_line_breaks),
		cmocka_unit_test(a_last_line_without_line_break_and_windows_breaks_are_accepted),
		cmocka_unit_test(what_is_no_app_key_is_named),
		cmocka_unit_test(a_key_with_a_nul_byte_is_refused),
		cmocka_unit_test(parts_of_two_keys_do_not_make_one),
		cmocka_unit_test(a_jwt_has_three_parts_and_names_its_algorithm),
		cmocka_unit_test(a_jwt_that_does_not_fit_is_an_error),
		cmocka_unit_test(the_helper_makes_a_key_that_fits_together),
		cmocka_unit_test(a_key_that_comes_too_late_is_an_error_and_leaves_no_child),
		cmocka_unit_test(without_a_helper_the_key_is_made_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
