#include "init/oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_counter_of_both_versions_is_found(void **state)
{
	(void)state;
	assert_int_equal(oom_field("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
				   "oom_kill"),
			 2);
	assert_int_equal(oom_field("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill"), 7);
	assert_int_equal(oom_field("oom_kill 5", "oom_kill"), 5);
}

static void what_is_no_counter_is_none(void **state)
{
	(void)state;
	assert_int_equal(oom_field("", "oom_kill"), -1);
	assert_int_equal(oom_field("\n\n", "oom_kill"), -1);
	assert_int_equal(oom_field("oom 4\n", "oom_kill"), -1);
	assert_int_equal(oom_field("oom_kill\n", "oom_kill"), -1);
	assert_int_equal(oom_field("oom_kill -1\n", "oom_kill"), -1);
	assert_int_equal(oom_field("oom_kill 99999999999999999999999999\n", "oom_kill"), -1);
	assert_int_equal(oom_field("x oom_kill 3\n", "oom_kill"), -1);
}

static void reading_the_machines_own_never_fails_badly(void **state)
{
	(void)state;
	assert_true(oom_kills() >= -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_counter_of_both_versions_is_found),
		cmocka_unit_test(what_is_no_counter_is_none),
		cmocka_unit_test(reading_the_machines_own_never_fails_badly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
