#include "gh/diagnose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/exitcode.h"

static struct gh_evidence seen(enum gh_step step, int status, enum gh_cred cred,
			       const char *message)
{
	return (struct gh_evidence){.step = step,
				    .status = status,
				    .message = message,
				    .type_key = "",
				    .json = true,
				    .retry_after_ms = -1,
				    .cred = cred,
				    .cred_age_ms = 60000,
				    .hosted = true,
				    .agent_version = "2.336.0"};
}

static void every_fault_and_step_and_credential_has_its_words(void **state)
{
	(void)state;
	for (int f = 0; f < FAULT__MAX; f++) {
		const struct gh_fault_text *t = gh_fault_text((enum gh_fault)f);
		assert_non_null(t->id);
		assert_true(t->code >= XC_UNAVAILABLE && t->code <= XC_GHOST);
		assert_true(strlen(t->verdict) > 10 && strlen(t->remedy) > 5);
		for (int g = 0; g < f; g++)
			assert_string_not_equal(t->id, gh_fault_text((enum gh_fault)g)->id);
	}
	for (int s = 0; s < STEP__MAX; s++) {
		assert_non_null(gh_step_name((enum gh_step)s));
		assert_non_null(gh_step_event((enum gh_step)s));
	}
	for (int c = 0; c < CRED__MAX; c++)
		assert_non_null(gh_cred_name((enum gh_cred)c));
}

static void the_same_404_means_what_the_evidence_says(void **state)
{
	struct gh_evidence v = seen(STEP_AUTH, 404, CRED_TOKEN, "Not Found");

	(void)state;
	assert_int_equal(gh_diagnose(&v), FAULT_TOKEN_OTHER);
	v.cred_age_ms = 3600000;
	assert_int_equal(gh_diagnose(&v), FAULT_TOKEN_EXPIRED);
	v.cred_age_ms = -1;
	v.agent_version = "2.328.9";
	assert_int_equal(gh_diagnose(&v), FAULT_VERSION_LIKELY);
	v.hosted = false; /* the floor is github.com's */
	assert_int_equal(gh_diagnose(&v), FAULT_TOKEN_OTHER);
	v.json = false;
	assert_int_equal(gh_diagnose(&v), FAULT_WRONG_HOST);
	v.html = true;
	assert_int_equal(gh_diagnose(&v), FAULT_PROXY_PAGE);
	v = seen(STEP_AUTH, 404, CRED_TOKEN, "Runner version is out of date, minimum is 2.329.0");
	assert_int_equal(gh_diagnose(&v), FAULT_VERSION);
	v = seen(STEP_AUTH, 404, CRED_MINTED, "Not Found");
	assert_int_equal(gh_diagnose(&v), FAULT_MINTED_REFUSED);
	v = seen(STEP_TOKEN, 404, CRED_PAT, "Not Found");
	assert_int_equal(gh_diagnose(&v), FAULT_PAT_RIGHT);
	v = seen(STEP_JIT, 404, CRED_PAT, "Not Found");
	assert_int_equal(gh_diagnose(&v), FAULT_GROUP);
	v = seen(STEP_APP_FIND, 404, CRED_APP_JWT, "Not Found");
	assert_int_equal(gh_diagnose(&v), FAULT_APP_NOT_INSTALLED);
}

static void a_403_that_limits_the_rate_is_no_missing_right(void **state)
{
	struct gh_evidence v = seen(STEP_TOKEN, 403, CRED_PAT, "Forbidden");

	(void)state;
	assert_int_equal(gh_diagnose(&v), FAULT_PAT_RIGHT);
	v.rate_limited = true;
	assert_int_equal(gh_diagnose(&v), FAULT_RATE);
	v.rate_limited = false;
	v.retry_after_ms = 1000;
	assert_int_equal(gh_diagnose(&v), FAULT_RATE);
	v = seen(STEP_TOKEN, 403, CRED_PAT, "You have exceeded a secondary rate limit");
	assert_int_equal(gh_diagnose(&v), FAULT_RATE);
}

static void a_clock_that_is_off_explains_a_refused_signature(void **state)
{
	struct gh_evidence v = seen(STEP_APP_TOKEN, 401, CRED_APP_JWT, "'exp' is too far");

	(void)state;
	assert_int_equal(gh_diagnose(&v), FAULT_APP_KEY);
	v.skew_ms = -400000;
	assert_int_equal(gh_diagnose(&v), FAULT_CLOCK);
	v = seen(STEP_OAUTH, 400, CRED_AGENT, "Current server time is x");
	assert_int_equal(gh_diagnose(&v), FAULT_CLOCK);
	v.message = "invalid_client";
	assert_int_equal(gh_diagnose(&v), FAULT_AGENT_GONE);
}

static void versions_compare_by_their_numbers(void **state)
{
	static const struct {
		const char *a, *b;
		bool less;
	} rows[] = {
		{"2.328.9", "2.329.0", true},	{"2.329.0", "2.329.0", false},
		{"2.1000.0", "2.329.0", false}, {"3.0", "2.329.0", false},
		{"2.329", "2.329.0", false},	{"2", "2.0.1", true},
		{"", "2.329.0", true},		{"x", "2.329.0", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(gh_version_less(rows[i].a, rows[i].b), rows[i].less);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_and_step_and_credential_has_its_words),
		cmocka_unit_test(the_same_404_means_what_the_evidence_says),
		cmocka_unit_test(a_403_that_limits_the_rate_is_no_missing_right),
		cmocka_unit_test(a_clock_that_is_off_explains_a_refused_signature),
		cmocka_unit_test(versions_compare_by_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
