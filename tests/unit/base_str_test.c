#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_copy_that_does_not_fit_leaves_an_empty_string(void **state)
{
	char d[4] = "old";

	(void)state;
	assert_int_equal(str_copy(d, sizeof d, "abc"), 0);
	assert_string_equal(d, "abc");
	assert_int_equal(str_copy(d, sizeof d, "abcd"), -1);
	assert_string_equal(d, "");
}

static void a_cut_format_is_a_failure(void **state)
{
	char d[4];

	(void)state;
	assert_int_equal(str_fmt(d, sizeof d, "%d", 123), 0);
	assert_int_equal(str_fmt(d, sizeof d, "%d", 1234), -1);
}

static void numbers_take_the_whole_text_or_refuse(void **state)
{
	static const char *const bad[] = {"",
					  " 1",
					  "1 ",
					  "+1",
					  "-1",
					  "0x1",
					  "1.0",
					  "1a",
					  "18446744073709551616",
					  "99999999999999999999999"};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(str_u64(bad[i], 0, UINT64_MAX, &v), -1);
		assert_int_equal(v, 7);
	}
	assert_int_equal(str_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(str_u64("11", 0, 10, &v), -1);
	assert_int_equal(str_u64("4", 5, 10, &v), -1);
	assert_int_equal(str_u64("007", 0, 10, &v), 0);
	assert_int_equal(v, 7);
}

static void a_maximum_below_ten_is_kept(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(str_u64("9", 0, 5, &v), -1);
	assert_int_equal(str_u64("5", 0, 5, &v), 0);
	assert_int_equal(v, 5);
}

static void signed_numbers_know_their_range(void **state)
{
	int64_t v = 0;

	(void)state;
	assert_int_equal(str_i64("-12", -20, 20, &v), 0);
	assert_int_equal(v, -12);
	assert_int_equal(str_i64("-21", -20, 20, &v), -1);
	assert_int_equal(str_i64("--1", -20, 20, &v), -1);
	assert_int_equal(str_i64("-", -20, 20, &v), -1);
}

static void durations_know_their_units(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {{"90", 90000},  {"90s", 90000}, {"15m", 900000}, {"2h", 7200000},
		    {"250ms", 250}, {"0", 0},	    {"2H", 7200000}, {"720h", 2592000000}};
	static const char *const bad[] = {"",	  "s",	  "1d",	  "1 s", "-1s",
					  "1.5h", "721h", "90ss", "ms"};
	int64_t v = -1;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(str_duration_ms(good[i].text, &v), 0);
		assert_true(v == good[i].ms);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(str_duration_ms(bad[i], &v), -1);
}

static void sizes_are_powers_of_1024(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(str_bytes("1G", &v), 0);
	assert_true(v == 1073741824);
	assert_int_equal(str_bytes("512k", &v), 0);
	assert_true(v == 524288);
	assert_int_equal(str_bytes("7", &v), 0);
	assert_true(v == 7);
	assert_int_equal(str_bytes("1GB", &v), -1);
	assert_int_equal(str_bytes("9999999T", &v), -1);
}

static void booleans_are_the_ten_words_in_any_case(void **state)
{
	bool b = false;

	(void)state;
	assert_int_equal(str_bool("YES", &b), 0);
	assert_true(b);
	assert_int_equal(str_bool("Off", &b), 0);
	assert_false(b);
	assert_int_equal(str_bool("yep", &b), -1);
	assert_int_equal(str_bool("", &b), -1);
	assert_int_equal(str_bool("2", &b), -1);
}

static void trimming_takes_cr_lf_and_blanks_from_both_ends(void **state)
{
	size_t n = 0;
	const char *p = str_trim(" \t a b\r\n", &n);

	(void)state;
	assert_int_equal(n, 3);
	assert_memory_equal(p, "a b", 3);
	(void)str_trim(" \r\n", &n);
	assert_int_equal(n, 0);
}

static void control_bytes_and_broken_utf8_become_question_marks(void **state)
{
	char s[] = "a\033[31mb\xc3\xa9\xc3(\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf\xc2\x9bz\x7f";

	(void)state;
	str_printable(s);
	assert_string_equal(s, "a?[31mb\xc3\xa9?(??"
			       "?????"
			       "???"
			       "?z?");
}

static void shown_bytes_are_cut_with_dots_and_never_inside_a_character(void **state)
{
	char d[8];

	(void)state;
	str_show(d, sizeof d, "abcdefghij", 10);
	assert_string_equal(d, "abcd...");
	str_show(d, sizeof d, "abcdefg", 7);
	assert_string_equal(d, "abcdefg");
	str_show(d, sizeof d, "abc\xc3\xa9\xc3\xa9\xc3\xa9", 9);
	assert_string_equal(d, "abc...");
	str_show(d, sizeof d, "a\0b", 3);
	assert_string_equal(d, "a?b");
	str_show(d, 1, "abc", 3);
	assert_string_equal(d, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_that_does_not_fit_leaves_an_empty_string),
		cmocka_unit_test(a_cut_format_is_a_failure),
		cmocka_unit_test(numbers_take_the_whole_text_or_refuse),
		cmocka_unit_test(a_maximum_below_ten_is_kept),
		cmocka_unit_test(signed_numbers_know_their_range),
		cmocka_unit_test(durations_know_their_units),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(booleans_are_the_ten_words_in_any_case),
		cmocka_unit_test(trimming_takes_cr_lf_and_blanks_from_both_ends),
		cmocka_unit_test(control_bytes_and_broken_utf8_become_question_marks),
		cmocka_unit_test(shown_bytes_are_cut_with_dots_and_never_inside_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
