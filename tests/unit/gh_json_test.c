#include "gh/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct json doc;

static struct json_at parse(const char *text, enum json_rules rules)
{
	struct err e = ERR_INIT;
	struct json_at at;

	json_free(&doc);
	if (json_parse(&doc, text, strlen(text), rules, "answer", &at, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return at;
}

static int done(void **state)
{
	(void)state;
	json_free(&doc);
	return 0;
}

static void ids_beyond_53_bits_keep_every_digit(void **state)
{
	static const struct {
		const char *text;
		uint64_t id;
	} rows[] = {
		{"{\"a\":[1,2.5,{\"b\":-3}],\"id\":9007199254740993}", 9007199254740993u},
		{"{\"id\":18446744073709551615}", UINT64_MAX},
		{"{\"x\":\"7, 8: 9\",\"y\":\"\\\"1\\\\\",\"id\":9223372036854775807}", INT64_MAX},
		{"{\"id\":0}", 0},
		{" {\n\"n\" : 1e5 ,\t\"id\" : 42 } ", 42},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct json_at at = parse(rows[i].text, JSON_STRICT);
		struct err e = ERR_INIT;
		uint64_t v = 1;
		assert_int_equal(json_u64(&at, "id", JSON_REQUIRED, 0, UINT64_MAX, &v, &e), 1);
		assert_true(v == rows[i].id);
	}
}

static void what_is_no_whole_number_in_range_is_refused(void **state)
{
	static const char *const bad[] = {
		"{\"id\":1.5}", "{\"id\":1e3}",	   "{\"id\":-1}",   "{\"id\":18446744073709551616}",
		"{\"id\":0}",	"{\"id\":\"42\"}", "{\"id\":[42]}", "{\"id\":true}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct json_at at = parse(bad[i], JSON_STRICT);
		struct err e = ERR_INIT;
		uint64_t v = 7;
		assert_int_equal(json_u64(&at, "id", JSON_REQUIRED, 1, UINT64_MAX, &v, &e), -1);
		assert_true(v == 7);
		assert_int_equal(e.code, XC_PROTOCOL);
		assert_non_null(strstr(e.text, "\"id\""));
	}
}

static void the_error_names_the_field_and_where_it_is(void **state)
{
	struct json_at at = parse("{\"authorization\":{\"client_id\":7}}", JSON_STRICT), au;
	struct err e = ERR_INIT;
	char text[8] = "kept";

	(void)state;
	assert_int_equal(json_obj(&at, "authorization", JSON_REQUIRED, &au, &e), 1);
	assert_int_equal(json_str(&au, "client_id", JSON_REQUIRED, text, sizeof text, &e), -1);
	assert_string_equal(e.text, "answer: field \"authorization.client_id\" is not a string");
	assert_string_equal(text, "kept");
	assert_int_equal(json_str(&au, "url", JSON_REQUIRED, text, sizeof text, &e), -1);
	assert_string_equal(e.text, "answer: field \"authorization.url\" is missing");
	assert_int_equal(json_str(&au, "url", JSON_OPTIONAL, text, sizeof text, &e), 0);
}

static void every_wrong_type_is_refused(void **state)
{
	struct json_at at =
		parse("{\"s\":\"x\",\"n\":1,\"b\":true,\"o\":{},\"a\":[],\"z\":null}", JSON_STRICT);
	static const char *const names[] = {"s", "n", "b", "o", "a", "z"};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct err e = ERR_INIT;
		struct secret secret;
		struct json_at sub;
		uint64_t n;
		char s[8];
		bool b;
		assert_int_equal(json_str(&at, names[i], JSON_REQUIRED, s, sizeof s, &e),
				 names[i][0] == 's' ? 1 : -1);
		assert_int_equal(json_secret(&at, names[i], JSON_REQUIRED, &secret, &e),
				 names[i][0] == 's' ? 1 : -1);
		assert_int_equal(json_u64(&at, names[i], JSON_REQUIRED, 0, 9, &n, &e),
				 names[i][0] == 'n' ? 1 : -1);
		assert_int_equal(json_bool(&at, names[i], JSON_REQUIRED, &b, &e),
				 names[i][0] == 'b' ? 1 : -1);
		assert_int_equal(json_obj(&at, names[i], JSON_REQUIRED, &sub, &e),
				 names[i][0] == 'o' ? 1 : -1);
		assert_int_equal(json_arr(&at, names[i], JSON_REQUIRED, &sub, &e),
				 names[i][0] == 'a' ? 1 : -1);
	}
}

static void null_counts_as_absent(void **state)
{
	struct json_at at = parse("{\"z\":null}", JSON_STRICT);
	struct err e = ERR_INIT;
	uint64_t n = 3;

	(void)state;
	assert_int_equal(json_u64(&at, "z", JSON_OPTIONAL, 0, 9, &n, &e), 0);
	assert_true(n == 3);
}

static void strict_names_are_exact_and_loose_ones_are_not(void **state)
{
	struct json_at at = parse("{\"AgentId\":\"42\",\"Ephemeral\":\"True\"}", JSON_STRICT);
	struct err e = ERR_INIT;
	uint64_t n = 0;
	bool b = false;

	(void)state;
	assert_int_equal(json_u64(&at, "agentId", JSON_REQUIRED, 1, 99, &n, &e), -1);
	assert_int_equal(json_u64(&at, "AgentId", JSON_REQUIRED, 1, 99, &n, &e), -1);
	at = parse("{\"AgentId\":\"42\",\"Ephemeral\":\"True\"}", JSON_LOOSE);
	assert_int_equal(json_u64(&at, "agentId", JSON_REQUIRED, 1, 99, &n, &e), 1);
	assert_true(n == 42);
	assert_int_equal(json_bool(&at, "ephemeral", JSON_REQUIRED, &b, &e), 1);
	assert_true(b);
}

static void a_field_that_is_there_twice_is_refused(void **state)
{
	struct json_at at = parse("{\"id\":1,\"ID\":2}", JSON_LOOSE);
	struct err e = ERR_INIT;
	uint64_t n;

	(void)state;
	assert_int_equal(json_u64(&at, "id", JSON_REQUIRED, 0, 9, &n, &e), -1);
	assert_non_null(strstr(e.text, "twice"));
	at = parse("{\"id\":1,\"ID\":2}", JSON_STRICT);
	assert_int_equal(json_u64(&at, "id", JSON_REQUIRED, 0, 9, &n, &e), 1);
}

static void properties_are_unwrapped_or_bare(void **state)
{
	struct json_at at = parse("{\"properties\":{\"UseV2Flow\":{\"$type\":\"System.Boolean\","
				  "\"$value\":true},\"fips\":\"false\",\"Url\":{\"$type\":\"x\"}}}",
				  JSON_LOOSE);
	struct err e = ERR_INIT;
	struct json_at props;
	bool v2 = false, fips = true;
	char url[16] = "";

	(void)state;
	assert_int_equal(json_obj(&at, "properties", JSON_REQUIRED, &props, &e), 1);
	props.wrapped = true;
	assert_int_equal(json_bool(&props, "useV2Flow", JSON_REQUIRED, &v2, &e), 1);
	assert_true(v2);
	assert_int_equal(json_bool(&props, "Fips", JSON_REQUIRED, &fips, &e), 1);
	assert_false(fips);
	assert_int_equal(json_str(&props, "url", JSON_OPTIONAL, url, sizeof url, &e), 0);
}

static void what_is_not_json_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"{\"a\":1",
		"{\"a\":1}x",
		"{\"a\":1}{}",
		"42",
		"\"text\"",
		"null",
		"{'a':1}",
		"{\"a\":01x}",
		"{\"a\":1,}",
		"[1 2]",
		"<html>",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"x\ny\"}",
		"{\"a\":tru}",
		"{\"a\":+1}",
		"{\"a\":--1}",
		"{\"a\":\"b}",
		"{\"a\\",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = ERR_INIT;
		struct json_at at;
		struct json j;
		if (json_parse(&j, bad[i], strlen(bad[i]), JSON_STRICT, "answer", &at, &e) != -1)
			fail_msg("%s was accepted", bad[i]);
		assert_int_equal(e.code, XC_PROTOCOL);
		assert_null(j.root);
	}
}

static void a_nul_byte_is_refused(void **state)
{
	struct err e = ERR_INIT;
	struct json_at at;
	struct json j;

	(void)state;
	assert_int_equal(json_parse(&j, "{\"a\":1}\0", 8, JSON_STRICT, "answer", &at, &e), -1);
	assert_int_equal(json_parse(&j, "{\"a\0b\":1}", 9, JSON_STRICT, "answer", &at, &e), -1);
}

static void depth_and_count_have_ceilings(void **state)
{
	struct err e = ERR_INIT;
	struct json_at at;
	struct json j;
	char deep[400];
	char *many = malloc(1000000);
	size_t n = 0;

	(void)state;
	assert_non_null(many);
	memset(deep, '[', sizeof deep);
	assert_int_equal(json_parse(&j, deep, sizeof deep, JSON_STRICT, "answer", &at, &e), -1);
	assert_non_null(strstr(e.text, "deeply"));
	many[n++] = '[';
	for (int i = 0; i < 210000; i++) {
		many[n++] = '1';
		many[n++] = ',';
	}
	many[n++] = '1';
	many[n++] = ']';
	assert_int_equal(json_parse(&j, many, n, JSON_STRICT, "answer", &at, &e), -1);
	assert_non_null(strstr(e.text, "too many"));
	free(many);
}

static void strings_that_do_not_fit_or_hold_controls_are_refused(void **state)
{
	struct json_at at =
		parse("{\"a\":\"12345678\",\"b\":\"x\\ny\",\"c\":\"\",\"d\":\"a b\"}", JSON_STRICT);
	struct err e = ERR_INIT;
	struct secret secret;
	char s[8];

	(void)state;
	assert_int_equal(json_str(&at, "a", JSON_REQUIRED, s, sizeof s, &e), -1);
	assert_non_null(strstr(e.text, "too long"));
	assert_int_equal(json_str(&at, "b", JSON_REQUIRED, s, sizeof s, &e), -1);
	assert_non_null(strstr(e.text, "control"));
	assert_int_equal(json_str(&at, "c", JSON_REQUIRED, s, sizeof s, &e), -1);
	assert_int_equal(json_str(&at, "c", JSON_OPTIONAL, s, sizeof s, &e), 1);
	assert_int_equal(json_secret(&at, "d", JSON_REQUIRED, &secret, &e), -1);
	assert_null(strstr(e.text, "a b"));
}

static void elements_of_an_array_are_objects_with_an_index(void **state)
{
	struct json_at at = parse("{\"value\":[{\"id\":1},{\"id\":\"x\"},3]}", JSON_STRICT);
	struct json_cursor c = {0};
	struct err e = ERR_INIT;
	struct json_at arr, one;
	uint64_t n;

	(void)state;
	assert_int_equal(json_arr(&at, "value", JSON_REQUIRED, &arr, &e), 1);
	assert_int_equal(json_each(&arr, &c, &one, &e), 1);
	assert_int_equal(json_u64(&one, "id", JSON_REQUIRED, 0, 9, &n, &e), 1);
	assert_int_equal(json_each(&arr, &c, &one, &e), 1);
	assert_int_equal(json_u64(&one, "id", JSON_REQUIRED, 0, 9, &n, &e), -1);
	assert_string_equal(e.text, "answer: field \"value.1.id\" is not a number");
	assert_int_equal(json_each(&arr, &c, &one, &e), -1);
	assert_string_equal(e.text, "answer: field \"value.2\" is not an object");
}

static void what_is_written_is_escaped_and_can_be_read_back(void **state)
{
	cleanup_buf struct buf b = {0};
	struct err e = ERR_INIT;
	struct json_out o;
	struct json_at at;
	char text[32];

	(void)state;
	buf_init(&b, 1000);
	jo_begin(&o, &b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "name", "a\"b\\c\x7f");
	jo_u64(&o, "id", UINT64_MAX);
	jo_open(&o, "list", '[');
	jo_bool(&o, NULL, true);
	jo_str(&o, NULL, "x\ty");
	jo_close(&o, ']');
	jo_open(&o, "none", '{');
	jo_close(&o, '}');
	jo_close(&o, '}');
	assert_int_equal(jo_end(&o), 0);
	assert_string_equal(buf_str(&b),
			    "{\"name\":\"a\\\"b\\\\c\\u007f\",\"id\":18446744073709551615,"
			    "\"list\":[true,\"x\\u0009y\"],\"none\":{}}");
	assert_int_equal(json_parse(&doc, b.data, b.len, JSON_STRICT, "answer", &at, &e), 0);
	assert_int_equal(json_str(&at, "name", JSON_REQUIRED, text, sizeof text, &e), -1);
}

static void a_full_buffer_is_told_at_the_end(void **state)
{
	cleanup_buf struct buf b = {0};
	struct json_out o;

	(void)state;
	buf_init(&b, 10);
	jo_begin(&o, &b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "name", "longer than ten bytes");
	jo_close(&o, '}');
	assert_int_equal(jo_end(&o), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ids_beyond_53_bits_keep_every_digit, done),
		cmocka_unit_test_teardown(what_is_no_whole_number_in_range_is_refused, done),
		cmocka_unit_test_teardown(the_error_names_the_field_and_where_it_is, done),
		cmocka_unit_test_teardown(every_wrong_type_is_refused, done),
		cmocka_unit_test_teardown(null_counts_as_absent, done),
		cmocka_unit_test_teardown(strict_names_are_exact_and_loose_ones_are_not, done),
		cmocka_unit_test_teardown(a_field_that_is_there_twice_is_refused, done),
		cmocka_unit_test_teardown(properties_are_unwrapped_or_bare, done),
		cmocka_unit_test_teardown(what_is_not_json_is_refused, done),
		cmocka_unit_test_teardown(a_nul_byte_is_refused, done),
		cmocka_unit_test_teardown(depth_and_count_have_ceilings, done),
		cmocka_unit_test_teardown(strings_that_do_not_fit_or_hold_controls_are_refused,
					  done),
		cmocka_unit_test_teardown(elements_of_an_array_are_objects_with_an_index, done),
		cmocka_unit_test_teardown(what_is_written_is_escaped_and_can_be_read_back, done),
		cmocka_unit_test_teardown(a_full_buffer_is_told_at_the_end, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
