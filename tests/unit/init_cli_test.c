#include "init/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ARGS(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		"init", __VA_ARGS__                                                                \
	}

static struct cli c;
static struct err e;

static int parse(const char *const *argv)
{
	static char text[1024], *args[16];
	size_t n = 0, o = 0;

	memset(&c, 0, sizeof c);
	memset(&e, 0, sizeof e);
	for (; argv[n] != NULL; n++) {
		size_t len = strlen(argv[n]) + 1;
		memcpy(text + o, argv[n], len);
		args[n] = text + o;
		o += len;
	}
	args[n] = NULL;
	return cli_parse(args, &c, &e);
}

static void assert_usage(const char *const *argv, const char *words)
{
	assert_int_equal(parse(argv), -1);
	assert_int_equal(e.code, XC_USAGE);
	if (strstr(e.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void no_argument_is_the_life_cycle(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS(NULL)), 0);
	assert_int_equal(c.form, CLI_LIFE);
}

static void a_word_is_a_command_with_all_that_follows(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("bash", "--health", NULL)), 0);
	assert_int_equal(c.form, CLI_CMD);
	assert_string_equal(c.cmd[0], "bash");
	assert_string_equal(c.cmd[1], "--health");
	assert_null(c.cmd[2]);
	assert_int_equal(parse(ARGS("--", "--version", NULL)), 0);
	assert_int_equal(c.form, CLI_CMD);
	assert_string_equal(c.cmd[0], "--version");
	assert_int_equal(parse(ARGS("", NULL)), 0);
	assert_int_equal(c.form, CLI_CMD);
}

static void two_dashes_need_a_command(void **state)
{
	(void)state;
	assert_usage(ARGS("--", NULL), "needs a command");
}

static void the_self_test_has_three_tiers(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("--selftest", NULL)), 0);
	assert_int_equal(c.form, CLI_SELFTEST);
	assert_int_equal(c.tier, TIER_FAST);
	assert_int_equal(parse(ARGS("--selftest=build", "--json", NULL)), 0);
	assert_int_equal(c.tier, TIER_BUILD);
	assert_true(c.json);
	assert_int_equal(parse(ARGS("--selftest=deep", "--list", NULL)), 0);
	assert_int_equal(c.tier, TIER_DEEP);
	assert_true(c.list);
	assert_usage(ARGS("--selftest=off", NULL), "build, fast and deep");
	assert_usage(ARGS("--selftest=", NULL), "build, fast and deep");
	assert_usage(ARGS("--selftest", "deep", NULL), "does not take deep");
	assert_usage(ARGS("--selftests", NULL), "no option");
}

static void lists_of_checks_come_in_both_spellings(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("--selftest", "--only", "a,b", "--skip=c", NULL)), 0);
	assert_string_equal(c.only, "a,b");
	assert_string_equal(c.skip, "c");
	assert_usage(ARGS("--selftest", "--only", NULL), "comma list");
	assert_usage(ARGS("--selftest", "--skip=", NULL), "comma list");
	assert_usage(ARGS("--selftest", "--only", "--json", NULL), "comma list");
	assert_usage(ARGS("--selftest", "--onlyx", NULL), "does not take");
}

static void the_short_forms_take_json_and_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("--health", NULL)), 0);
	assert_int_equal(c.form, CLI_HEALTH);
	assert_false(c.json);
	assert_int_equal(parse(ARGS("--check-config", "--json", NULL)), 0);
	assert_int_equal(c.form, CLI_CHECK);
	assert_true(c.json);
	assert_int_equal(parse(ARGS("--version", "--json", NULL)), 0);
	assert_int_equal(c.form, CLI_VERSION);
	assert_int_equal(parse(ARGS("--help", NULL)), 0);
	assert_int_equal(c.form, CLI_HELP);
	assert_usage(ARGS("--help", "--json", NULL), "no other argument");
	assert_usage(ARGS("--health", "--json", "x", NULL), "nothing else");
	assert_usage(ARGS("--version", "-v", NULL), "nothing else");
}

static void options_of_other_inits_get_a_hint(void **state)
{
	(void)state;
	assert_usage(ARGS("-g", "--", "bash", NULL), "whole group");
	assert_usage(ARGS("-s", NULL), "subreaper");
	assert_usage(ARGS("-vvv", NULL), "INIT_LOG_LEVEL=debug");
	assert_usage(ARGS("-h", NULL), "--help");
	assert_usage(ARGS("-V", NULL), "--version");
	assert_usage(ARGS("-p", "SIGTERM", NULL), "parent-death");
	assert_usage(ARGS("-e", "143", NULL), "exit status");
	assert_usage(ARGS("--rewrite", "15:3", NULL), "rewrite");
	assert_usage(ARGS("--single-child", NULL), "group");
	assert_usage(ARGS("--url", "x", NULL), "RUNNER_URL");
	assert_usage(ARGS("--json", NULL), "follows");
	assert_usage(ARGS("--nonsense", NULL), "--help lists");
	assert_usage(ARGS("-", NULL), "--help lists");
}

static void a_value_that_may_be_a_secret_is_not_repeated(void **state)
{
	(void)state;
	assert_usage(ARGS("--token=sesame", NULL), "RUNNER_TOKEN_FILE");
	assert_null(strstr(e.text, "sesame"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_argument_is_the_life_cycle),
		cmocka_unit_test(a_word_is_a_command_with_all_that_follows),
		cmocka_unit_test(two_dashes_need_a_command),
		cmocka_unit_test(the_self_test_has_three_tiers),
		cmocka_unit_test(lists_of_checks_come_in_both_spellings),
		cmocka_unit_test(the_short_forms_take_json_and_nothing_else),
		cmocka_unit_test(options_of_other_inits_get_a_hint),
		cmocka_unit_test(a_value_that_may_be_a_secret_is_not_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
