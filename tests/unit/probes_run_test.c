#include "probes/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct run r;

static void no_time_at_all_means_unknown_and_never_failed(void **state)
{
	static const struct probe_settings s = {
		.gpu = PROBE_GPU_OFF, .uid = (uid_t)-1, .gid = (gid_t)-1};
	struct err e = ERR_INIT;

	(void)state;
	memset(&r, 0, sizeof r);
	r.s = &s;
	r.wanted[C_SYS_CLOCK] = r.wanted[C_NET_CA] = true;
	assert_int_equal(run_checks(&r, -1, &e), -1);
	assert_int_equal(r.found[C_SYS_CLOCK].verdict, V_UNKNOWN);
	assert_int_equal(r.found[C_NET_CA].verdict, V_UNKNOWN);
	assert_int_equal(run_result(&r), V_UNKNOWN);
}

static void checks_that_cannot_be_started_are_an_error_and_not_a_sick_node(void **state)
{
	int st = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) { /* root is not bound by the limit of processes: become nobody first */
		static struct probe_settings s = {
			.gpu = PROBE_GPU_OFF, .uid = (uid_t)-1, .gid = (gid_t)-1};
		struct rlimit none = {0, 0};
		struct err e = ERR_INIT;
		memset(&r, 0, sizeof r);
		r.s = &s;
		r.wanted[C_SYS_CLOCK] = true;
		if (geteuid() == 0 && child_become(65534, 65534) < 0)
			_exit(2);
		if (setrlimit(RLIMIT_NPROC, &none) < 0)
			_exit(3);
		if (run_checks(&r, 1000, &e) != -1 || e.code != XC_SYSTEM)
			_exit(4);
		_exit(r.found[C_SYS_CLOCK].verdict == V_UNKNOWN ? 0 : 5);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFEXITED(st));
	assert_int_equal(WEXITSTATUS(st), 0);
}

static void the_worst_observation_speaks_for_a_check(void **state)
{
	struct tally t = TALLY_INIT;

	(void)state;
	tally_add(&t, V_PASS, ACT_NONE, NULL, "card 0 fine");
	tally_add(&t, V_FAIL, ACT_RESET_GPU, "reset it", "card 1 %s", "ill");
	tally_add(&t, V_WARN, ACT_NONE, NULL, "card 2 warm");
	tally_add(&t, V_FAIL, ACT_REBOOT, "reboot", "card 3 ill");
	assert_int_equal(t.verdict, V_FAIL);
	assert_int_equal(t.action, ACT_RESET_GPU);
	assert_string_equal(t.remedy, "reset it");
	assert_string_equal(t.text, "card 1 ill; card 3 ill");
}

static void a_tally_of_many_cards_is_cut_and_stays_text(void **state)
{
	struct tally t = TALLY_INIT;

	(void)state;
	for (int i = 0; i < 500; i++)
		tally_add(&t, V_FAIL, ACT_NONE, NULL, "card %d is ill", i);
	assert_true(strlen(t.text) < sizeof t.text);
	assert_int_equal(strncmp(t.text, "card 0 is ill; card 1", 21), 0);
}

static void every_check_is_described_and_every_group_runs(void **state)
{
	bool used[GROUP__MAX] = {false};

	(void)state;
	for (int i = 0; i < CHECK__MAX; i++) {
		const struct check *k = &probe_checks[i];
		assert_non_null(k->id);
		assert_non_null(k->about);
		assert_non_null(k->remedy);
		assert_true(strlen(k->remedy) < REMEDY_MAX);
		assert_true(k->tier > TIER_OFF && k->tier < TIER__MAX);
		assert_true(probe_groups[k->group].budget_ms < tier_budget_ms(k->tier));
		used[k->group] = true;
	}
	for (int g = 0; g < GROUP__MAX; g++) {
		assert_true(used[g]);
		assert_non_null(probe_groups[g].run);
	}
}

static void an_environment_is_changed_by_name_and_not_by_prefix(void **state)
{
	static const char *const old[] = {"A=1", "LC_ALL=de", "LC_ALLX=2", NULL};
	static const char *const more[] = {"LC_ALL=C", NULL};
	const char **env = env_with(old, more);

	(void)state;
	assert_non_null(env);
	assert_string_equal(env[0], "LC_ALL=C");
	assert_string_equal(env[1], "A=1");
	assert_string_equal(env[2], "LC_ALLX=2");
	assert_null(env[3]);
	assert_string_equal(env_value(env, "LC_ALL"), "C");
	assert_null(env_value(env, "LC"));
	free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_time_at_all_means_unknown_and_never_failed),
		cmocka_unit_test(checks_that_cannot_be_started_are_an_error_and_not_a_sick_node),
		cmocka_unit_test(the_worst_observation_speaks_for_a_check),
		cmocka_unit_test(a_tally_of_many_cards_is_cut_and_stays_text),
		cmocka_unit_test(every_check_is_described_and_every_group_runs),
		cmocka_unit_test(an_environment_is_changed_by_name_and_not_by_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
