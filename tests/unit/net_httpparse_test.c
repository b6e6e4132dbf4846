#include "base/str.h"
#include "net/httpparse.h"

#include "guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Parses it whole, then grown byte by byte in guarded memory: both ways must agree. */
static enum http_parsed head(const char *text, size_t len, struct http_head *out)
{
	struct http_head whole, step;
	enum http_parsed a, b = HP_MORE;
	size_t n;

	memset(&whole, 0, sizeof whole);
	memset(&step, 0, sizeof step);
	a = http_head_parse(&whole, (const unsigned char *)text, len, 65536);
	for (n = 0; n <= len && b == HP_MORE; n++) {
		struct guarded g = guard(text, n);
		b = http_head_parse(&step, g.p, n, 65536);
		unguard(&g);
	}
	assert_int_equal(a, b);
	if (a == HP_DONE) {
		assert_int_equal(whole.size, step.size);
		assert_int_equal(whole.status, step.status);
		assert_int_equal(whole.length, step.length);
	}
	if (a == HP_REFUSE)
		assert_string_equal(whole.why, step.why);
	*out = whole;
	return a;
}

static struct http_head good(const char *text)
{
	struct http_head h;

	if (head(text, strlen(text), &h) != HP_DONE)
		fail_msg("refused or incomplete: %s (%s)", text, h.why);
	assert_int_equal(h.size, strlen(text));
	return h;
}

static void append(char *to, size_t size, const char *what)
{
	size_t n = strlen(to);

	assert_int_equal(str_copy(to + n, size - n, what), 0);
}

static void bad_n(const char *text, size_t n, const char *why)
{
	struct http_head h;

	if (head(text, n, &h) != HP_REFUSE)
		fail_msg("accepted: %s", text);
	if (strstr(h.why, why) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", text, h.why, why);
}

static void bad(const char *text, const char *why)
{
	bad_n(text, strlen(text), why);
}

static void a_response_head_is_read(void **state)
{
	struct http_head h = good("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX: y\r\n\r\n");

	(void)state;
	assert_int_equal(h.status, 200);
	assert_int_equal(h.minor, 1);
	assert_true(h.has_length);
	assert_int_equal(h.length, 12);
	assert_int_equal(http_head_framing(&h, false), HF_LENGTH);
	assert_true(http_head_persists(&h, HF_LENGTH));
}

static void the_reason_may_be_empty_or_absent(void **state)
{
	(void)state;
	assert_int_equal(good("HTTP/1.1 204 \r\n\r\n").status, 204);
	assert_int_equal(good("HTTP/1.1 204\r\n\r\n").status, 204);
	assert_int_equal(good("HTTP/1.1 299 a b c\r\n\r\n").status, 299);
}

static void an_unfinished_head_needs_more(void **state)
{
	static const char *const texts[] = {"",
					    "H",
					    "HTTP/1.1 200",
					    "HTTP/1.1 200 OK\r\n",
					    "HTTP/1.1 200 OK\r\nA: b\r\n",
					    "HTTP/1.1 200 OK\r\nA: b\r\n\r"};
	struct http_head h;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_int_equal(head(texts[i], strlen(texts[i]), &h), HP_MORE);
}

static void what_follows_the_head_is_left_alone(void **state)
{
	struct http_head h;
	static const char text[] = "HTTP/1.1 200 OK\r\n\r\nbody\n\0";

	(void)state;
	memset(&h, 0, sizeof h);
	assert_int_equal(http_head_parse(&h, (const unsigned char *)text, sizeof text, 999),
			 HP_DONE);
	assert_int_equal(h.size, 19);
}

static void what_is_not_http_is_refused_at_its_first_byte(void **state)
{
	struct http_head h;

	(void)state;
	bad("SSH-2.0-OpenSSH\r\n", "not HTTP");
	bad("<html>", "not HTTP");
	bad("\r\n", "not HTTP");
	memset(&h, 0, sizeof h);
	assert_int_equal(http_head_parse(&h, (const unsigned char *)"X", 1, 999), HP_REFUSE);
}

static void malformed_status_lines_are_refused(void **state)
{
	(void)state;
	bad("HTTP/2.0 200 OK\r\n\r\n", "version");
	bad("HTTP/1.2 200 OK\r\n\r\n", "version");
	bad("HTTP/1.1\r\n\r\n", "version");
	bad("HTTP/1.1  200 OK\r\n\r\n", "status line");
	bad("HTTP/1.1 20 OK\r\n\r\n", "status line");
	bad("HTTP/1.1 2000\r\n\r\n", "status line");
	bad("HTTP/1.1 abc\r\n\r\n", "status line");
	bad("HTTP/1.1 099 x\r\n\r\n", "100 to 599");
	bad("HTTP/1.1 600 x\r\n\r\n", "100 to 599");
}

#define OK "HTTP/1.1 200 OK\r\n"

static void bytes_that_cannot_stand_in_a_head_are_refused(void **state)
{
	static const char nul[] = OK "A: b\0c\r\n\r\n";

	(void)state;
	bad_n(nul, sizeof nul - 1, "NUL");
	bad("HTTP/1.1 200 OK\nA: b\n\n", "bare line feed");
	bad(OK "A: b\n\r\n", "bare line feed");
	bad(OK "A: b\rC: d\r\n\r\n", "bare carriage return");
	bad(OK "\r\r\n", "bare carriage return");
	bad(OK "A: \xe9\r\n\r\n", "over 0x7f");
	bad("HTTP/1.1 200 \xff\r\n\r\n", "over 0x7f");
	bad(OK "A: \x01\r\n\r\n", "control");
	bad(OK "A: \x7f\r\n\r\n", "control");
	(void)good(OK "A: \tb\t \r\n\r\n");
}

static void malformed_header_lines_are_refused(void **state)
{
	(void)state;
	bad(OK "A: b\r\n c\r\n\r\n", "folded");
	bad(OK "A: b\r\n\tc\r\n\r\n", "folded");
	bad(OK "A : b\r\n\r\n", "blank before the colon");
	bad(OK "A\t: b\r\n\r\n", "blank before the colon");
	bad(OK ": b\r\n\r\n", "without a name");
	bad(OK "A\r\n\r\n", "without a name and a colon");
	bad(OK "A(b): c\r\n\r\n", "character");
	bad(OK "A\"b: c\r\n\r\n", "character");
	(void)good(OK "A:\r\n\r\n");
	(void)good(OK "!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n");
}

static void lengths_must_be_clear(void **state)
{
	(void)state;
	assert_int_equal(good(OK "content-length:7\r\nCONTENT-LENGTH: 7 \r\n\r\n").length, 7);
	bad(OK "Content-Length: 7\r\nContent-Length: 8\r\n\r\n", "conflicting");
	bad(OK "Content-Length: 7, 7\r\n\r\n", "malformed Content-Length");
	bad(OK "Content-Length: -1\r\n\r\n", "malformed Content-Length");
	bad(OK "Content-Length: +1\r\n\r\n", "malformed Content-Length");
	bad(OK "Content-Length: 0x10\r\n\r\n", "malformed Content-Length");
	bad(OK "Content-Length:\r\n\r\n", "malformed Content-Length");
	bad(OK "Content-Length: 9999999999999999999\r\n\r\n", "malformed Content-Length");
	bad(OK "Content-Length: 1 2\r\n\r\n", "malformed Content-Length");
}

static void codings_must_be_clear(void **state)
{
	struct http_head h = good(OK "Transfer-Encoding: Chunked\r\n\r\n");

	(void)state;
	assert_int_equal(http_head_framing(&h, false), HF_CHUNKED);
	bad(OK "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "beside");
	bad(OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "beside");
	bad(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked");
	bad(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "other than chunked");
	bad(OK "Transfer-Encoding: identity\r\n\r\n", "other than chunked");
	bad(OK "Transfer-Encoding: xchunked\r\n\r\n", "other than chunked");
	bad("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0");
}

static void heads_have_a_limit(void **state)
{
	char many[HTTP_LINES_MAX * 8 + 64] = OK;
	struct http_head h;
	static const char text[] = OK "A: 123456789\r\n\r\n";

	(void)state;
	for (size_t max = 1; max < sizeof text - 1; max++) {
		memset(&h, 0, sizeof h);
		assert_int_equal(
			http_head_parse(&h, (const unsigned char *)text, sizeof text - 1, max),
			HP_REFUSE);
		assert_non_null(strstr(h.why, "larger than allowed"));
	}
	for (int i = 0; i < HTTP_LINES_MAX; i++)
		append(many, sizeof many, "A: b\r\n");
	append(many, sizeof many, "\r\n");
	(void)good(many);
	many[strlen(many) - 2] = 0;
	append(many, sizeof many, "A: b\r\n\r\n");
	bad(many, "too many header lines");
}

static void some_answers_have_no_body_whatever_they_say(void **state)
{
	struct http_head a = good("HTTP/1.1 204 x\r\nContent-Length: 9\r\n\r\n"),
			 b = good("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n"),
			 c = good("HTTP/1.1 100 x\r\n\r\n"),
			 d = good(OK "Content-Length: 9\r\n\r\n"), e = good(OK "\r\n");

	(void)state;
	assert_int_equal(http_head_framing(&a, false), HF_NONE);
	assert_int_equal(http_head_framing(&b, false), HF_NONE);
	assert_int_equal(http_head_framing(&c, false), HF_NONE);
	assert_int_equal(http_head_framing(&d, true), HF_NONE);
	assert_int_equal(http_head_framing(&d, false), HF_LENGTH);
	assert_int_equal(http_head_framing(&e, false), HF_CLOSE);
}

static void connections_persist_only_when_both_sides_can_tell(void **state)
{
	struct http_head
		a = good(OK "Connection: close\r\nContent-Length: 0\r\n\r\n"),
		b = good(OK "Connection: x , CLOSE\r\nContent-Length: 0\r\n\r\n"),
		c = good("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
		d = good("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n"),
		e = good(OK "Connection: closed\r\nContent-Length: 0\r\n\r\n");

	(void)state;
	assert_false(http_head_persists(&a, HF_LENGTH));
	assert_false(http_head_persists(&b, HF_LENGTH));
	assert_false(http_head_persists(&c, HF_LENGTH));
	assert_true(http_head_persists(&d, HF_LENGTH));
	assert_true(http_head_persists(&e, HF_LENGTH));
	assert_false(http_head_persists(&e, HF_CLOSE));
}

/* Decodes in pieces of `step`: the body, or the reason after '!'. */
static const char *chunks(const char *in, size_t n, size_t step, size_t *rest)
{
	static char out[70000];
	struct http_chunked c;
	enum http_parsed p = HP_MORE;
	size_t at = 0, o = 0;

	memset(&c, 0, sizeof c);
	while (p == HP_MORE && at < n) {
		size_t k = n - at < step ? n - at : step, used, len;
		struct guarded g = guard(in + at, k);
		const unsigned char *data;
		p = http_chunked_parse(&c, g.p, k, &used, &data, &len);
		if (len > 0)
			memcpy(out + o, data, len);
		o += len;
		at += used;
		unguard(&g);
	}
	out[o] = 0;
	*rest = n - at;
	if (p == HP_REFUSE)
		return c.why;
	return p == HP_DONE ? out : "more";
}

static void decodes(const char *in, const char *body)
{
	size_t rest;

	for (size_t step = 1; step <= strlen(in); step++) {
		assert_string_equal(chunks(in, strlen(in), step, &rest), body);
		assert_int_equal(rest, 0);
	}
}

static void fails(const char *in, const char *why)
{
	size_t rest;

	for (size_t step = 1; step <= strlen(in); step++) {
		const char *got = chunks(in, strlen(in), step, &rest);
		if (strstr(got, why) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", in, got, why);
	}
}

static void chunked_bodies_are_put_together(void **state)
{
	size_t rest;

	(void)state;
	decodes("0\r\n\r\n", "");
	decodes("3\r\nabc\r\n0\r\n\r\n", "abc");
	decodes("1\r\na\r\n0A\r\n0123456789\r\n000\r\n\r\n", "a0123456789");
	decodes("3;ext=1;q=\"x\"\r\nabc\r\n0;last\r\nTrailer: x\r\nB:\r\n\r\n", "abc");
	decodes("3 \r\nabc\r\n0\r\n\r\n", "abc");
	(void)chunks("0\r\n\r\nHTTP/1.1", 13, 13, &rest);
	assert_int_equal(rest, 8);
}

static void broken_chunks_are_refused(void **state)
{
	(void)state;
	fails("\r\n", "malformed chunk size");
	fails("x\r\n", "malformed chunk size");
	fails("-1\r\n", "malformed chunk size");
	fails("0x3\r\nabc\r\n", "malformed chunk size");
	fails("123456789\r\n", "chunk larger than allowed");
	fails("3\nabc", "malformed chunk size");
	fails("3\rabc", "bare carriage return after a chunk size");
	fails("3\r\nabcd\r\n", "longer than its size");
	fails("3\r\nabc\rx", "bare carriage return after a chunk");
	fails("0\r\n\rx", "bare carriage return after the last chunk");
	fails("0\r\nA: b\rx", "bare carriage return in a trailer");
	fails("0\r\n A: b\r\n", "folded trailer");
	fails("0\r\nA b\r\n", "trailer name");
	fails("0\r\n: b\r\n", "trailer name");
	fails("0\r\nAb\r\n", "without a name and a colon");
	fails("0\r\nA: \xff\r\n", "over 0x7f");
	fails("0\r\nA: b\nC", "bare line feed");
	fails("3;a\nb\r\n", "bare line feed");
}

static void the_overhead_of_chunks_has_a_limit(void **state)
{
	static char ext[9000] = "1;", trailer[9000] = "0\r\nA: ";
	size_t rest;

	(void)state;
	memset(ext + 2, 'x', sizeof ext - 2);
	assert_non_null(strstr(chunks(ext, sizeof ext, 999, &rest), "extensions larger"));
	memset(trailer + 6, 'x', sizeof trailer - 6);
	assert_non_null(strstr(chunks(trailer, sizeof trailer, 999, &rest), "trailers larger"));
}

static void bytes_after_the_end_are_not_taken(void **state)
{
	struct http_chunked c;
	const unsigned char *data;
	size_t used = 9, len;

	(void)state;
	memset(&c, 0, sizeof c);
	assert_int_equal(
		http_chunked_parse(&c, (const unsigned char *)"0\r\n\r\n", 5, &used, &data, &len),
		HP_DONE);
	assert_int_equal(http_chunked_parse(&c, (const unsigned char *)"x", 1, &used, &data, &len),
			 HP_DONE);
	assert_int_equal(used, 0);
}

static void the_last_header_of_a_name_is_found(void **state)
{
	static const char text[] = OK "A: one\r\nB:two\r\na:  three \r\nEmpty:\r\n\r\n";
	const unsigned char *p = (const unsigned char *)text, *v;
	size_t n = 99;

	(void)state;
	v = http_header_find(p, strlen(text), "A", &n);
	assert_non_null(v);
	assert_int_equal(n, 5);
	assert_memory_equal(v, "three", 5);
	assert_non_null(http_header_find(p, strlen(text), "empty", &n));
	assert_int_equal(n, 0);
	assert_null(http_header_find(p, strlen(text), "c", &n));
	assert_null(http_header_find(p, strlen(text), "HTTP/1.1 200 OK", &n));
	assert_null(http_header_find(p, 0, "a", &n));
}

static void the_three_forms_of_a_date_mean_the_same(void **state)
{
	static const char *const forms[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
					    "Sunday, 06-Nov-94 08:49:37 GMT",
					    "Sun Nov  6 08:49:37 1994"};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		ms = 0;
		assert_int_equal(http_date_parse(forms[i], &ms), 0);
		assert_int_equal(ms, 784111777000);
	}
	assert_int_equal(http_date_parse("Thu, 29 Feb 2024 00:00:00 GMT", &ms), 0);
	assert_int_equal(ms, 1709164800000);
	assert_int_equal(http_date_parse("Thu, 01-Jan-26 00:00:60 GMT", &ms), 0);
	assert_int_equal(ms, 1767225660000);
	assert_int_equal(http_date_parse("Thu, 01 Jan 1970 00:00:00 GMT", &ms), 0);
	assert_int_equal(ms, 0);
}

static void what_is_no_date_is_refused(void **state)
{
	static const char *const bad_dates[] = {"",
						"now",
						"Sun, 06 Nov 1994 08:49:37 CET",
						"Sun, 06 Nov 1994 8:49:37 GMT",
						"Sun, 06 Nov 1994 24:49:37 GMT",
						"Sun, 06 Nov 1994 08:60:37 GMT",
						"Sun, 06 Nov 1994 08-49-37 GMT",
						"Sun, 06 Nix 1994 08:49:37 GMT",
						"Sun, 00 Nov 1994 08:49:37 GMT",
						"Sun, 32 Nov 1994 08:49:37 GMT",
						"Sun, 06 Nov 1969 08:49:37 GMT",
						"Sun, 06 Nov 19x4 08:49:37 GMT",
						"Sunday, 06-Nov-x4 08:49:37 GMT",
						"Sunday, 06-Nov-1994 08:49:37 GMT",
						"Sun Nov 06 08:49:37 1994 ",
						"Sun Nov  6 08:49:37 19 4"};
	int64_t ms = 42;

	(void)state;
	for (size_t i = 0; i < sizeof bad_dates / sizeof bad_dates[0]; i++)
		if (http_date_parse(bad_dates[i], &ms) == 0)
			fail_msg("accepted: %s", bad_dates[i]);
	assert_int_equal(ms, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_response_head_is_read),
		cmocka_unit_test(the_reason_may_be_empty_or_absent),
		cmocka_unit_test(an_unfinished_head_needs_more),
		cmocka_unit_test(what_follows_the_head_is_left_alone),
		cmocka_unit_test(what_is_not_http_is_refused_at_its_first_byte),
		cmocka_unit_test(malformed_status_lines_are_refused),
		cmocka_unit_test(bytes_that_cannot_stand_in_a_head_are_refused),
		cmocka_unit_test(malformed_header_lines_are_refused),
		cmocka_unit_test(lengths_must_be_clear),
		cmocka_unit_test(codings_must_be_clear),
		cmocka_unit_test(heads_have_a_limit),
		cmocka_unit_test(some_answers_have_no_body_whatever_they_say),
		cmocka_unit_test(connections_persist_only_when_both_sides_can_tell),
		cmocka_unit_test(chunked_bodies_are_put_together),
		cmocka_unit_test(broken_chunks_are_refused),
		cmocka_unit_test(the_overhead_of_chunks_has_a_limit),
		cmocka_unit_test(bytes_after_the_end_are_not_taken),
		cmocka_unit_test(the_last_header_of_a_name_is_found),
		cmocka_unit_test(the_three_forms_of_a_date_mean_the_same),
		cmocka_unit_test(what_is_no_date_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
