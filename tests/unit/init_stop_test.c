#include "init/stop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000

static struct stop_plan p;

static int fresh(void **state)
{
	(void)state;
	memset(&p, 0, sizeof p);
	return 0;
}

static void in_order(void)
{
	assert_true(p.made);
	assert_true(p.cancel.at_ms <= p.kill.at_ms);
	assert_true(p.kill.at_ms <= p.tree.at_ms);
	assert_true(p.tree.at_ms <= p.remove.at_ms);
	assert_true(p.remove.at_ms <= p.end.at_ms);
}

static void the_default_budget_keeps_three_seconds_for_the_removal(void **state)
{
	(void)state;
	stop_plan_make(&p, NOW, 9000, 0);
	in_order();
	assert_int_equal(p.end.at_ms, NOW + 9000);
	assert_int_equal(p.remove.at_ms - p.tree.at_ms, 3000);
	assert_true(p.kill.at_ms - NOW >= 4500);
}

static void any_budget_has_its_steps_in_order(void **state)
{
	(void)state;
	for (int64_t budget = 0; budget < 60000; budget += 50) {
		stop_plan_make(&p, NOW, budget, 0);
		in_order();
		assert_int_equal(p.end.at_ms, NOW + budget);
		if (budget >= 4000)
			assert_int_equal(p.remove.at_ms - p.tree.at_ms, 3000);
		else
			assert_true(p.remove.at_ms - p.tree.at_ms >= budget / 3);
	}
}

static void a_drain_comes_before_the_budget(void **state)
{
	(void)state;
	stop_plan_make(&p, NOW, 9000, 60000);
	in_order();
	assert_int_equal(p.cancel.at_ms, NOW + 60000);
	assert_int_equal(p.end.at_ms, NOW + 69000);
}

static void a_drain_that_ends_early_gives_its_time_back(void **state)
{
	(void)state;
	stop_plan_make(&p, NOW, 9000, 60000);
	stop_plan_cancel(&p, NOW + 5000);
	in_order();
	assert_int_equal(p.end.at_ms, NOW + 5000 + 9000);
	stop_plan_cancel(&p, NOW + 8000); /* a cancel that is under way gains no time */
	assert_int_equal(p.end.at_ms, NOW + 5000 + 9000);
}

static void a_third_signal_kills_now(void **state)
{
	(void)state;
	stop_plan_make(&p, NOW, 9000, 60000);
	stop_plan_cancel(&p, NOW + 2000);
	stop_plan_kill(&p, NOW + 4000);
	assert_int_equal(p.kill.at_ms, NOW + 4000);
	assert_int_equal(p.end.at_ms, NOW + 2000 + 9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_default_budget_keeps_three_seconds_for_the_removal,
				       fresh),
		cmocka_unit_test_setup(any_budget_has_its_steps_in_order, fresh),
		cmocka_unit_test_setup(a_drain_comes_before_the_budget, fresh),
		cmocka_unit_test_setup(a_drain_that_ends_early_gives_its_time_back, fresh),
		cmocka_unit_test_setup(a_third_signal_kills_now, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
