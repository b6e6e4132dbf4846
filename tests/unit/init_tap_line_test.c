#include "init/tap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define AT "2026-03-01 12:34:56Z: "

static int kind(const char *line, struct tap_report *r)
{
	memset(r, 0x5a, sizeof *r);
	return tap_classify(line, strlen(line), r);
}

static void means(const char *line, enum tap_line want)
{
	struct tap_report r;

	if (kind(line, &r) != 1 || r.line != want)
		fail_msg("%s: not %d", line, (int)want);
	assert_string_equal(r.result, "");
}

static void means_nothing(const char *line)
{
	struct tap_report r;

	if (kind(line, &r) != 0)
		fail_msg("%s: taken for %d", line, (int)r.line);
}

static void each_state_line_of_the_agent_is_recognised(void **state)
{
	(void)state;
	means("\xe2\x88\x9a Connected to GitHub", TAP_CONNECTED);
	means(AT "Listening for Jobs", TAP_LISTENING);
	means(AT "Running job: build", TAP_JOB_STARTED);
	means("A session for this runner already exists.", TAP_CONFLICT);
	means(AT "Runner connect error: Name or service not known. Retrying until reconnected.",
	      TAP_CONNECT_ERROR);
	means(AT "Runner reconnected.", TAP_RECONNECTED);
	means("The runner no longer exists on the server. Please reconfigure the runner.",
	      TAP_DELETED);
	means("Failed to create a session. The runner registration has been deleted from the "
	      "server, please re-configure.",
	      TAP_DELETED);
	means("Runner update in progress, do not shutdown runner.", TAP_UPDATING);
	means("Runner update process finished.", TAP_UPDATED);
	means("Runner is not configured.", TAP_NOT_CONFIGURED);
	means("Exiting...", TAP_EXITING);
}

static void errors_are_told_apart_by_what_the_agent_says(void **state)
{
	(void)state;
	means("An error occurred: Something broke", TAP_ERROR);
	means("An error occurred: Access to the path '/x/_diag' is denied.", TAP_NO_PERMISSION);
	means("An error occurred: Not configured. Run config.(sh/cmd) to configure the runner.",
	      TAP_NOT_CONFIGURED);
	means("An error occured: Runner version v2.300.0 is deprecated and cannot receive "
	      "messages.",
	      TAP_VERSION);
	means("An error occurred: Runner version v2.3.0 is deprecated", TAP_VERSION);
	means("Failed to create session. invalid_client", TAP_DELETED);
}

static void every_result_of_a_job_is_recognised(void **state)
{
	static const char *const results[] = {
		"Succeeded", "SucceededWithIssues", "Failed", "Canceled", "Skipped", "Abandoned"};
	char line[200];
	struct tap_report r;

	(void)state;
	for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
		assert_true(snprintf(line, sizeof line, AT "Job a b completed with result: %s",
				     results[i]) < (int)sizeof line);
		assert_int_equal(kind(line, &r), 1);
		assert_int_equal(r.line, TAP_JOB_DONE);
		assert_string_equal(r.result, results[i]);
	}
	means_nothing(AT "Job a completed with result: Splendid");
	means_nothing(AT "Job a completed with result: Failed ");
}

static void the_name_of_a_job_cannot_pretend(void **state)
{
	struct tap_report r;

	(void)state;
	means(AT "Running job: x completed with result: Succeeded", TAP_JOB_STARTED);
	means(AT "Running job: " AT "Listening for Jobs", TAP_JOB_STARTED);
	assert_int_equal(kind(AT "Job x completed with result: Succeeded completed with result: "
				 "Failed",
			      &r),
			 1);
	assert_string_equal(r.result, "Failed");
}

static void without_the_time_stamp_nothing_of_a_job_counts(void **state)
{
	(void)state;
	means_nothing("Listening for Jobs");
	means_nothing("Running job: build");
	means_nothing("Job build completed with result: Succeeded");
	means_nothing(" " AT "Listening for Jobs");
	means_nothing("2026-03-01T12:34:56Z: Listening for Jobs");
	means_nothing("2026-03-01 12:34:56 : Listening for Jobs");
	means_nothing("x026-03-01 12:34:56Z: Listening for Jobs");
	means_nothing(AT AT "Listening for Jobs");
	means_nothing(AT " Listening for Jobs");
}

static void what_is_whole_must_be_the_whole_line(void **state)
{
	(void)state;
	means_nothing(AT "Listening for Jobs!");
	means_nothing(AT "Listening for Job");
	means_nothing("Exiting... now");
	means_nothing(AT "Exiting...");
	means_nothing("");
	means_nothing(AT);
	means_nothing("2026-03-01 12:34:56Z:");
	means(AT "Listening for Jobs\r", TAP_LISTENING);
}

static void the_text_is_printable_and_cut(void **state)
{
	char line[4096] = AT "Running job: \033[31m";
	size_t n = strlen(line);
	struct tap_report r;

	(void)state;
	memset(line + n, 'x', sizeof line - n - 1);
	line[sizeof line - 1] = 0;
	assert_int_equal(kind(line, &r), 1);
	assert_int_equal(strlen(r.text), sizeof r.text - 1);
	assert_null(strchr(r.text, '\033'));
	assert_string_equal(r.text + sizeof r.text - 4, "...");
}

static void a_line_with_nul_bytes_does_no_harm(void **state)
{
	static const char line[] = AT "Running job: a\0b";
	struct tap_report r;

	(void)state;
	assert_int_equal(tap_classify(line, sizeof line - 1, &r), 1);
	assert_int_equal(r.line, TAP_JOB_STARTED);
	assert_string_equal(r.text, AT "Running job: a?b");
}

static void a_refused_line_leaves_the_output_alone(void **state)
{
	struct tap_report r, before;

	(void)state;
	memset(&before, 0x5a, sizeof before);
	assert_int_equal(kind("hello", &r), 0);
	assert_memory_equal(&r, &before, sizeof r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state_line_of_the_agent_is_recognised),
		cmocka_unit_test(errors_are_told_apart_by_what_the_agent_says),
		cmocka_unit_test(every_result_of_a_job_is_recognised),
		cmocka_unit_test(the_name_of_a_job_cannot_pretend),
		cmocka_unit_test(without_the_time_stamp_nothing_of_a_job_counts),
		cmocka_unit_test(what_is_whole_must_be_the_whole_line),
		cmocka_unit_test(the_text_is_printable_and_cut),
		cmocka_unit_test(a_line_with_nul_bytes_does_no_harm),
		cmocka_unit_test(a_refused_line_leaves_the_output_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
