#include "base/str.h"
#include "init/setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct config c;

/* A block of strings such as the kernel hands over, and pointers into it. */
static char block[4096], *envp[32];
static size_t used;

static void given(const char *const *entries)
{
	size_t n = 0;

	memset(&c, 0, sizeof c);
	memset(block, 0, sizeof block);
	used = 0;
	for (; entries[n] != NULL; n++) {
		envp[n] = block + used;
		assert_int_equal(str_copy(envp[n], sizeof block - used, entries[n]), 0);
		used += strlen(entries[n]) + 1;
	}
	envp[n] = NULL;
	(void)str_copy(c.user.home, sizeof c.user.home, "/tmp");
}

#define ENV(...)                                                                                   \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static bool in_block(const char *word)
{
	return memmem(block, sizeof block, word, strlen(word)) != NULL;
}

static const char *value(const char *const *env, const char *name)
{
	size_t n = strlen(name);
	const char *found = NULL;

	for (; *env != NULL; env++) {
		if (strncmp(*env, name, n) != 0 || (*env)[n] != '=')
			continue;
		assert_null(found); /* no name twice */
		found = *env + n + 1;
	}
	return found;
}

static void wiping_leaves_no_byte_of_a_secret_and_no_duplicate(void **state)
{
	(void)state;
	given(ENV("A=1", "RUNNER_TOKEN=sesame", "ACCESS_TOKEN=sesame", "RUNNER_TOKEN=sesame2",
		  "APP_PRIVATE_KEY_FILE=/run/sesame", "actions_runner_INPUT_token=sesame",
		  "ACTIONS_RUNNER_INPUT_JITCONFIG=sesame", "B=2", "APP_PRIVATE_KEY=sesame"));
	config_wipe_environ(envp);
	assert_false(in_block("sesame"));
	assert_false(in_block("RUNNER_TOKEN"));
	assert_string_equal(envp[0], "A=1");
	assert_string_equal(envp[1], "B=2");
	assert_null(envp[2]);
	for (size_t i = 3; i < 9; i++)
		assert_null(envp[i]);
}

static void wiping_keeps_what_only_looks_alike(void **state)
{
	(void)state;
	given(ENV("RUNNER_TOKENS=a", "MY_RUNNER_TOKEN=b", "RUNNER_TOKEN_FILES=c",
		  "ACTIONS_RUNNER_HOOK_JOB_STARTED=d", "RUNNER_TOKEN"));
	config_wipe_environ(envp);
	assert_string_equal(envp[3], "ACTIONS_RUNNER_HOOK_JOB_STARTED=d");
	assert_null(envp[4]); /* the last one has the name and no value; it goes all the same */
}

static void the_agent_gets_no_secret_and_no_setting_of_init(void **state)
{
	const char *const *env;

	(void)state;
	given(ENV("PATH=/bin", "RUNNER_TOKEN=s", "RUNNER_TOKEN_FILE=/f", "INIT_DRAIN=5",
		  "ACTIONS_RUNNER_INPUT_URL=u", "RUNNER_URL=https://github.com/a/b", "HOME=/tmp"));
	env = config_agent_env(&c, envp);
	assert_null(value(env, "RUNNER_TOKEN"));
	assert_null(value(env, "RUNNER_TOKEN_FILE"));
	assert_null(value(env, "INIT_DRAIN"));
	assert_null(value(env, "ACTIONS_RUNNER_INPUT_URL"));
	assert_string_equal(value(env, "PATH"), "/bin");
	assert_string_equal(value(env, "RUNNER_URL"), "https://github.com/a/b");
	assert_string_equal(value(env, "HOME"), "/tmp");
}

static void the_agents_switches_are_set_unless_given(void **state)
{
	const char *const *env;

	(void)state;
	given(ENV("RUNNER_MANUALLY_TRAP_SIG=0"));
	env = config_agent_env(&c, envp);
	assert_string_equal(value(env, "RUNNER_MANUALLY_TRAP_SIG"), "0");
	assert_string_equal(value(env, "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE"), "1");
}

static void cache_directories_are_handed_on_as_they_were_proved(void **state)
{
	const char *const *env;

	(void)state;
	given(ENV("TRITON_CACHE_DIR= /t\r", "TRITON_CACHE_DIR=/again"));
	c.n_caches = 2;
	(void)str_copy(c.caches[0].var, sizeof c.caches[0].var, "TRITON_CACHE_DIR");
	(void)str_copy(c.caches[0].path, sizeof c.caches[0].path, "/t");
	(void)str_copy(c.caches[1].var, sizeof c.caches[1].var, "PIP_CACHE_DIR");
	(void)str_copy(c.caches[1].path, sizeof c.caches[1].path, "/p");
	env = config_agent_env(&c, envp);
	assert_string_equal(value(env, "TRITON_CACHE_DIR"), "/t");
	assert_string_equal(value(env, "PIP_CACHE_DIR"), "/p");
}

static void an_unusable_home_is_replaced(void **state)
{
	const char *const *env;

	(void)state;
	given(ENV("HOME=/nonexistent"));
	env = config_agent_env(&c, envp);
	assert_string_equal(value(env, "HOME"), "/tmp");
	(void)str_copy(c.user.home, sizeof c.user.home, "/nonexistent");
	(void)str_copy(c.root, sizeof c.root, "/opt/r");
	env = config_agent_env(&c, envp);
	assert_string_equal(value(env, "HOME"), "/opt/r");
	assert_true(config_home_is_root(&c, envp));
}

static void another_user_gets_his_own_names(void **state)
{
	const char *const *env;

	(void)state;
	given(ENV("HOME=/root", "USER=root", "LOGNAME=root"));
	c.user.switching = true;
	c.user.uid = 12345;
	c.user.gid = 12345;
	(void)str_copy(c.user.name, sizeof c.user.name, "ci");
	env = config_agent_env(&c, envp);
	assert_string_equal(value(env, "USER"), "ci");
	assert_string_equal(value(env, "LOGNAME"), "ci");
	assert_string_equal(value(env, "HOME"), "/tmp");
}

static void an_environment_that_is_too_large_is_not_handed_on_in_part(void **state)
{
	static char *many[9001], entry[] = "A=1";

	(void)state;
	memset(&c, 0, sizeof c);
	for (size_t i = 0; i < 9000; i++)
		many[i] = entry;
	assert_null(config_agent_env(&c, many)[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wiping_leaves_no_byte_of_a_secret_and_no_duplicate),
		cmocka_unit_test(wiping_keeps_what_only_looks_alike),
		cmocka_unit_test(the_agent_gets_no_secret_and_no_setting_of_init),
		cmocka_unit_test(the_agents_switches_are_set_unless_given),
		cmocka_unit_test(cache_directories_are_handed_on_as_they_were_proved),
		cmocka_unit_test(an_unusable_home_is_replaced),
		cmocka_unit_test(another_user_gets_his_own_names),
		cmocka_unit_test(an_environment_that_is_too_large_is_not_handed_on_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
