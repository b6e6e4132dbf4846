#include "tests/unit/init_config.h"

static void each_kind_of_value_has_its_own_reason(void **state)
{
	static const struct {
		const char *entry, *var, *words;
	} bad[] = {{"INIT_CACHE_MIN_FREE=much", "INIT_CACHE_MIN_FREE", "not a size"},
		   {"INIT_EXPECT_GPUS=65", "INIT_EXPECT_GPUS", "not such a number"},
		   {"INIT_FLOOR_COPY_GBS=1.", "INIT_FLOOR_COPY_GBS", "not such a number"},
		   {"INIT_LABELS_PREFIX=a,b", "INIT_LABELS_PREFIX", "comma"},
		   {"INIT_STATE_DIR=state", "INIT_STATE_DIR", "absolute"},
		   {"INIT_PYTHON=python3", "INIT_PYTHON", "absolute"},
		   {"APP_INSTALLATION_ID=0", "APP_INSTALLATION_ID", "positive"},
		   {"INIT_SELFTEST=build", "INIT_SELFTEST", "tier"},
		   {"INIT_LOG_LEVEL=loud", "INIT_LOG_LEVEL", "level"},
		   {"RUNNER_USER=no-such-user", "RUNNER_USER", "no user"},
		   {"SSL_CERT_FILE=a.pem", "SSL_CERT_FILE", "absolute"}};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_refused(ENV(URL, TOKEN, bad[i].entry), bad[i].var, bad[i].words);
}

static void each_choice_is_understood_in_any_case(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "INIT_SELFTEST=OFF", "INIT_GPU=Required",
				      "INIT_LOG=JSON", "INIT_LOG_LEVEL=Debug",
				      "INIT_CACHE_MIN_FREE=2g", "INIT_FLOOR_COPY_GBS=12.5")),
			 0);
	assert_int_equal(c.gate, TIER_OFF);
	assert_int_equal(c.gpu, PROBE_GPU_REQUIRED);
	assert_true(c.log_json);
	assert_int_equal(c.log_level, LL_DEBUG);
	assert_true(c.cache_min_free == 2ULL << 30);
	assert_true(c.expect.copy_gbs > 12.4 && c.expect.copy_gbs < 12.6);
	assert_int_equal(read_env(ENV(URL, TOKEN, "INIT_SELFTEST=Deep")), 0);
	assert_int_equal(c.gate, TIER_DEEP);
}

static void a_value_that_is_too_long_is_refused(void **state)
{
	static const char *const names[] = {"RUNNER_TOKEN",  "ACCESS_TOKEN",	 "RUNNER_GROUP",
					    "RUNNER_ROOT",   "RUNNER_WORKDIR",	 "no_proxy",
					    "INIT_IMAGE",    "INIT_CONSTRAINTS", "INIT_PYTHON",
					    "SSL_CERT_FILE", "TRITON_CACHE_DIR", "APP_PRIVATE_KEY"};
	static char entry[20000];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		size_t n,
			size = strstr(names[i], "TOKEN") != NULL || strstr(names[i], "KEY") != NULL
				       ? 17000
				       : 5000;
		assert_int_equal(str_fmt(entry, sizeof entry, "%s=/", names[i]), 0);
		n = strlen(entry);
		memset(entry + n, 'x', size - n);
		entry[size] = 0;
		assert_refused(ENV(entry), names[i], "long");
	}
	memset(entry + 5000, 'x', 18000 - 5000);
	entry[18000] = 0;
	memcpy(entry, "RUNNER_TOKEN", 12);
	entry[12] = '=';
	assert_refused(ENV(entry), "RUNNER_TOKEN", "longer than");
}

static void at_most_sixteen_cache_directories(void **state)
{
	static char text[17][16], list[512] = "INIT_CACHE_DIRS=";
	const char *env[20] = {URL, TOKEN};

	(void)state;
	for (int i = 0; i < 17; i++) {
		assert_int_equal(str_fmt(text[i], sizeof text[i], "D%d=/d", i), 0);
		assert_int_equal(str_fmt(list + strlen(list), 8, "D%d:", i), 0);
		env[2 + i] = text[i];
	}
	env[2] = list;
	assert_int_equal(read_env(env), 0); /* D0 is not set: sixteen are */
	assert_int_equal(c.n_caches, 16);
	env[19] = NULL;
	env[1] = text[0];
	assert_refused(env, "INIT_CACHE_DIRS", "more than 16");
}

static void a_relative_root_is_one_of_the_working_directory(void **state)
{
	(void)state;
	assert_int_equal(chdir("/tmp"), 0);
	assert_int_equal(read_env(ENV(URL, TOKEN)), 0);
	assert_refused(ENV(URL, TOKEN, "RUNNER_ROOT=no/where"), "RUNNER_ROOT", "/tmp/no/where");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_value_has_its_own_reason),
		cmocka_unit_test(each_choice_is_understood_in_any_case),
		cmocka_unit_test(a_value_that_is_too_long_is_refused),
		cmocka_unit_test(at_most_sixteen_cache_directories),
		cmocka_unit_test(a_relative_root_is_one_of_the_working_directory),
	};

	return cmocka_run_group_tests(tests, make_root, drop_root);
}
