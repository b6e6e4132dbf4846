#include "base/exitcode.h"
#include "init/agent.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define EXITED(n)   ((n) << 8)
#define KILLED(sig) (sig)

static struct agent_facts f;
static struct agent_verdict v;

static int fresh(void **state)
{
	(void)state;
	memset(&f, 0, sizeof f);
	memset(&v, 0, sizeof v);
	f.ephemeral = true;
	f.looked = true;
	f.runner_file = true;
	f.binary = true;
	f.last = TAP_LINE__MAX;
	f.since_registered_ms = 600000;
	return 0;
}

static void expect(int wait_status, enum agent_what what, int code)
{
	f.wait_status = wait_status;
	agent_judge(&f, &v);
	assert_int_equal(v.what, what);
	assert_int_equal(v.code, code);
	assert_true(v.why[0] != '\0');
}

static void a_job_that_is_done_is_0(void **state)
{
	(void)state;
	f.job_started = f.job_done = true;
	f.runner_file = false;
	expect(EXITED(0), AGENT_OVER, XC_OK);
	for (int n = 100; n <= 105; n++)
		expect(EXITED(n), AGENT_OVER, XC_OK);
	expect(EXITED(2), AGENT_OVER, XC_OK);
	expect(EXITED(3), AGENT_OVER, XC_OK);
	expect(KILLED(SIGKILL), AGENT_OVER, XC_OK);
}

static void an_ephemeral_agent_that_had_its_job_is_never_started_again(void **state)
{
	(void)state;
	f.job_started = true;
	expect(EXITED(2), AGENT_OVER, XC_AGAIN);
	expect(EXITED(4), AGENT_OVER, XC_AGAIN);
	f.can_renew = true;
	expect(EXITED(5), AGENT_OVER, XC_AGAIN);
}

static void a_registration_that_was_deleted_is_75(void **state)
{
	(void)state;
	f.last = TAP_DELETED;
	expect(EXITED(0), AGENT_OVER, XC_AGAIN);
	expect(EXITED(1), AGENT_OVER, XC_AGAIN);
}

static void a_withdrawn_job_is_75_but_an_end_with_files_is_0(void **state)
{
	(void)state;
	f.runner_file = false;
	expect(EXITED(0), AGENT_OVER, XC_AGAIN);
	f.looked = false; /* nobody knows: then the agent's word counts */
	expect(EXITED(0), AGENT_OVER, XC_OK);
	f.looked = f.runner_file = true;
	expect(EXITED(0), AGENT_OVER, XC_OK);
}

static void status_1_is_told_apart_by_its_last_error(void **state)
{
	(void)state;
	expect(EXITED(1), AGENT_OVER, XC_AGAIN);
	f.last = TAP_ERROR;
	expect(EXITED(1), AGENT_OVER, XC_AGAIN);
	f.last = TAP_NO_PERMISSION;
	expect(EXITED(1), AGENT_OVER, XC_FILES);
	f.last = TAP_NOT_CONFIGURED;
	expect(EXITED(1), AGENT_OVER, XC_BUG);
	f.last = TAP_VERSION;
	expect(EXITED(1), AGENT_OVER, XC_VERSION);
}

static void a_lost_replacement_registers_once_more(void **state)
{
	(void)state;
	f.last = TAP_DELETED;
	f.replaced = f.can_renew = true;
	f.since_registered_ms = 2000;
	expect(EXITED(1), AGENT_FRESH, XC_AGAIN);
	f.can_renew = false;
	expect(EXITED(1), AGENT_OVER, XC_AGAIN);
	f.can_renew = true;
	f.since_registered_ms = 120000;
	expect(EXITED(1), AGENT_OVER, XC_AGAIN);
}

static void a_conflict_registers_once_more_if_the_credential_allows(void **state)
{
	(void)state;
	expect(EXITED(5), AGENT_OVER, XC_AGAIN);
	f.can_renew = true;
	expect(EXITED(5), AGENT_FRESH, XC_AGAIN);
}

static void retries_wait_longer_and_longer_and_end(void **state)
{
	int64_t before = 0;

	(void)state;
	for (f.retries = 0; f.retries < AGENT_RETRIES_MAX; f.retries++) {
		expect(EXITED(2), AGENT_AGAIN, XC_AGAIN);
		assert_true(v.delay_ms >= before);
		assert_in_range(v.delay_ms, 1, 60000);
		before = v.delay_ms;
	}
	expect(EXITED(2), AGENT_OVER, XC_AGAIN);
	f.listened = true; /* it worked in between: the count starts anew */
	expect(EXITED(2), AGENT_AGAIN, XC_AGAIN);
	assert_true(v.delay_ms < before);
}

static void updates_are_waited_for_unless_forbidden_or_endless(void **state)
{
	(void)state;
	expect(EXITED(3), AGENT_UPDATE, XC_AGAIN);
	expect(EXITED(4), AGENT_UPDATE, XC_AGAIN);
	f.disable_update = true;
	expect(EXITED(3), AGENT_OVER, XC_AGAIN);
	assert_non_null(strstr(v.why, "RUNNER_DISABLE_UPDATE"));
	f.disable_update = false;
	f.updates = AGENT_UPDATES_MAX;
	expect(EXITED(3), AGENT_OVER, XC_AGAIN);
	f.listened = true;
	expect(EXITED(3), AGENT_UPDATE, XC_AGAIN);
}

static void a_version_that_is_refused_is_83_with_the_remedy(void **state)
{
	(void)state;
	expect(EXITED(7), AGENT_OVER, XC_VERSION);
	assert_non_null(strstr(v.why, "RUNNER_VERSION"));
}

static void a_killed_agent_is_75_and_memory_is_named(void **state)
{
	(void)state;
	expect(KILLED(SIGKILL), AGENT_OVER, XC_AGAIN);
	assert_null(strstr(v.why, "memory"));
	f.oom = true;
	expect(KILLED(SIGKILL), AGENT_OVER, XC_AGAIN);
	assert_non_null(strstr(v.why, "out of memory"));
	expect(EXITED(128 + SIGKILL), AGENT_OVER, XC_AGAIN);
	assert_non_null(strstr(v.why, "signal 9"));
}

static void an_unheard_of_status_is_75_and_named(void **state)
{
	(void)state;
	expect(EXITED(42), AGENT_OVER, XC_AGAIN);
	assert_non_null(strstr(v.why, "42"));
	expect(EXITED(6), AGENT_OVER, XC_AGAIN);
	expect(EXITED(255), AGENT_OVER, XC_AGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_job_that_is_done_is_0, fresh),
		cmocka_unit_test_setup(an_ephemeral_agent_that_had_its_job_is_never_started_again,
				       fresh),
		cmocka_unit_test_setup(a_registration_that_was_deleted_is_75, fresh),
		cmocka_unit_test_setup(a_withdrawn_job_is_75_but_an_end_with_files_is_0, fresh),
		cmocka_unit_test_setup(status_1_is_told_apart_by_its_last_error, fresh),
		cmocka_unit_test_setup(a_lost_replacement_registers_once_more, fresh),
		cmocka_unit_test_setup(a_conflict_registers_once_more_if_the_credential_allows,
				       fresh),
		cmocka_unit_test_setup(retries_wait_longer_and_longer_and_end, fresh),
		cmocka_unit_test_setup(updates_are_waited_for_unless_forbidden_or_endless, fresh),
		cmocka_unit_test_setup(a_version_that_is_refused_is_83_with_the_remedy, fresh),
		cmocka_unit_test_setup(a_killed_agent_is_75_and_memory_is_named, fresh),
		cmocka_unit_test_setup(an_unheard_of_status_is_75_and_named, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
