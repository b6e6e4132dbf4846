#include "tests/unit/init_config.h"

static void the_least_that_works_is_a_url_and_a_token(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN)), 0);
	assert_string_equal(c.gh.scope.url, "https://github.com/owner/repo");
	assert_string_equal(secret_reveal(&c.gh.cred.token), "AABBCC");
	assert_true(c.gh.cred.token_at_ms > 0);
	assert_true(c.gh.ephemeral && c.gh.replace && c.gh.disable_update);
	assert_false(c.gh.replace_given || c.gh.no_default_labels || c.gh.jit_generate);
	assert_string_equal(c.gh.work, "_work");
	assert_string_equal(c.gh.root, root);
	assert_int_equal(c.stop_ms, 9000);
	assert_int_equal(c.drain_ms, 0);
	assert_int_equal(c.idle_ms, 0);
	assert_int_equal(c.gh.register_ms, 120000);
	assert_int_equal(c.gh.http_ms, 15000);
	assert_int_equal(c.gpu_watch_ms, 60000);
	assert_int_equal(c.gate, TIER_FAST);
	assert_int_equal(c.gpu, PROBE_GPU_AUTO);
	assert_int_equal(c.cache_min_free, 1u << 30);
	assert_true(strlen(c.gh.name) > 0);
	assert_true(strlen(c.gh.os_description) > 0);
	assert_string_equal(c.api_url, "https://api.github.com/");
}

static void everything_wrong_is_told_at_once(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV("RUNNER_URL=http://github.com/a/b", "RUNNER_EPHEMERAL=maybe",
				      "INIT_STOP_TIMEOUT=soon", "RUNNER_LABELS=a\tb",
				      "INIT_GPU=perhaps", "INIT_LOG=xml")),
			 7);
	assert_non_null(about("RUNNER_URL", false));
	assert_non_null(about("RUNNER_EPHEMERAL", false));
	assert_non_null(about("INIT_STOP_TIMEOUT", false));
	assert_non_null(about("RUNNER_LABELS", false));
	assert_non_null(about("INIT_GPU", false));
	assert_non_null(about("INIT_LOG", false));
	assert_non_null(about("RUNNER_TOKEN", false));
	assert_int_equal(config_status(&r), XC_CONFIG);
}

static void a_problem_names_value_reason_and_what_is_accepted(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "RUNNER_EPHEMERAL=ja"), "RUNNER_EPHEMERAL",
		       "\"ja\" is neither yes nor no; accepted: 1 true yes y on, or 0 false no n "
		       "off");
}

static void a_secret_is_never_in_a_message(void **state)
{
	(void)state;
	assert_true(read_env(ENV(URL, "RUNNER_TOKEN=sesame open", "ACCESS_TOKEN=sesame\nopen",
				 "APP_ID=1", "APP_PRIVATE_KEY=sesame",
				 "ACTIONS_RUNNER_INPUT_JITCONFIG=sesame !")) >= 4);
	for (unsigned i = 0; i < r.n_problems; i++)
		assert_null(strstr(r.problems[i].text, "sesame"));
	assert_non_null(strstr(about("RUNNER_TOKEN", false)->text, "(not shown)"));
}

static void a_password_in_a_url_is_never_in_a_message(void **state)
{
	(void)state;
	assert_true(read_env(ENV("RUNNER_URL=https://user:sesame@github.com/a/b", TOKEN,
				 "https_proxy=ftp://me:sesame@proxy:1")) >= 2);
	for (unsigned i = 0; i < r.n_problems; i++)
		assert_null(strstr(r.problems[i].text, "sesame"));
}

static void white_space_and_line_ends_around_a_value_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV("RUNNER_URL= https://github.com/owner/repo\r\n",
				      "RUNNER_TOKEN=\tAABBCC\n", "RUNNER_NAME= gpu-7 \r\n",
				      "RUNNER_EPHEMERAL= NO\n", "INIT_DRAIN= 15m\r")),
			 0);
	assert_string_equal(secret_reveal(&c.gh.cred.token), "AABBCC");
	assert_string_equal(c.gh.name, "gpu-7");
	assert_false(c.gh.ephemeral);
	assert_int_equal(c.drain_ms, 900000);
}

static void an_empty_value_counts_as_unset(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "RUNNER_WORKDIR=", "INIT_SELFTEST= \r\n",
				      "RUNNER_NAME=", "ACCESS_TOKEN=")),
			 0);
	assert_string_equal(c.gh.work, "_work");
	assert_int_equal(c.gate, TIER_FAST);
	assert_true(strlen(c.gh.name) > 0);
	assert_refused(ENV("RUNNER_URL=", TOKEN), "RUNNER_URL", "is not set");
	assert_refused(ENV(URL, "RUNNER_TOKEN="), "RUNNER_TOKEN", "no other credential");
}

static void the_first_of_two_variables_of_one_name_counts(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "RUNNER_NAME=one", "RUNNER_NAME=two")), 0);
	assert_string_equal(c.gh.name, "one");
}

static void a_name_has_at_most_64_bytes(void **state)
{
	char name[128] = "RUNNER_NAME=";

	(void)state;
	memset(name + 12, 'n', 64);
	assert_int_equal(read_env(ENV(URL, TOKEN, name)), 0);
	assert_int_equal(strlen(c.gh.name), 64);
	name[12 + 64] = 'n';
	assert_refused(ENV(URL, TOKEN, name), "RUNNER_NAME", "longer than 64 bytes (it has 65)");
	assert_refused(ENV(URL, TOKEN, "RUNNER_NAME=a\x01"), "RUNNER_NAME", "control characters");
	assert_refused(ENV(URL, TOKEN, "RUNNER_NAME=a\xff"), "RUNNER_NAME", "UTF-8");
}

static void a_long_host_name_is_shortened_with_a_hash(void **state)
{
	char long_a[101], long_b[101], a[GH_NAME_MAX], b[GH_NAME_MAX], again[GH_NAME_MAX];

	(void)state;
	memset(long_a, 'h', 100);
	long_a[100] = 0;
	memcpy(long_b, long_a, sizeof long_b);
	long_b[99] = 'i';
	assert_int_equal(config_default_name(long_a, a, sizeof a), 0);
	assert_int_equal(config_default_name(long_b, b, sizeof b), 0);
	assert_int_equal(config_default_name(long_a, again, sizeof again), 0);
	assert_int_equal(strlen(a), 64);
	assert_string_equal(a, again);
	assert_string_not_equal(a, b);
	assert_int_equal(strncmp(a, b, 55), 0);
	assert_int_equal(config_default_name("node-1.example", a, sizeof a), 0);
	assert_string_equal(a, "node-1.example");
	assert_int_equal(config_default_name("odd name\"", a, sizeof a), 0);
	assert_string_equal(a, "odd-name-");
	assert_int_equal(config_default_name("", a, sizeof a), -1);
	assert_int_equal(config_default_name("(none)", a, sizeof a), -1);
}

static void labels_are_trimmed_and_unique_in_any_case(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "RUNNER_LABELS= gpu , ,GPU,H200 ,, h200x,")), 0);
	assert_int_equal(c.gh.n_labels, 3);
	assert_string_equal(c.gh.labels[0], "gpu");
	assert_string_equal(c.gh.labels[1], "H200");
	assert_string_equal(c.gh.labels[2], "h200x");
}

static void a_label_over_256_bytes_is_refused(void **state)
{
	char labels[400] = "RUNNER_LABELS=ok,";
	size_t n = strlen(labels);

	(void)state;
	memset(labels + n, 'l', 256);
	assert_int_equal(read_env(ENV(URL, TOKEN, labels)), 0);
	assert_int_equal(strlen(c.gh.labels[1]), 256);
	labels[n + 256] = 'l';
	assert_refused(ENV(URL, TOKEN, labels), "RUNNER_LABELS", "longer than 256 bytes (257)");
	assert_int_equal(c.gh.n_labels, 0);
}

static void a_hundred_labels_fit_and_one_more_does_not(void **state)
{
	char labels[1000] = "RUNNER_LABELS=";

	(void)state;
	for (int i = 0; i < GH_LABELS_MAX; i++)
		assert_true(snprintf(labels + strlen(labels), 8, "l%d,", i) > 0);
	assert_int_equal(read_env(ENV(URL, TOKEN, labels)), 0);
	assert_int_equal(c.gh.n_labels, GH_LABELS_MAX);
	assert_true(snprintf(labels + strlen(labels), 8, "more") > 0);
	assert_refused(ENV(URL, TOKEN, labels), "RUNNER_LABELS", "more than 100 labels");
}

static void a_label_with_a_blank_is_a_warning(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "RUNNER_LABELS=big gpu")), 0);
	assert_non_null(about("RUNNER_LABELS", true));
}

static void a_runner_without_any_label_is_refused(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "RUNNER_NO_DEFAULT_LABELS=yes"), "RUNNER_NO_DEFAULT_LABELS",
		       "set RUNNER_LABELS too");
	assert_int_equal(
		read_env(ENV(URL, TOKEN, "RUNNER_NO_DEFAULT_LABELS=yes", "RUNNER_LABELS=x")), 0);
}

static void a_group_needs_an_organisation(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "RUNNER_GROUP=gpu"), "RUNNER_GROUP", "repository URL");
	assert_int_equal(read_env(ENV(URL, TOKEN, "RUNNER_GROUP=Default")), 0);
	assert_int_equal(
		read_env(ENV("RUNNER_URL=https://github.com/org", TOKEN, "RUNNER_GROUP=gpu")), 0);
	assert_string_equal(c.gh.group, "gpu");
}

static void durations_have_a_floor(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "INIT_STOP_TIMEOUT=2"), "INIT_STOP_TIMEOUT", "out of range");
	assert_refused(ENV(URL, TOKEN, "INIT_REGISTER_TIMEOUT=4s"), "INIT_REGISTER_TIMEOUT",
		       "out of range");
	assert_refused(ENV(URL, TOKEN, "INIT_HTTP_TIMEOUT=99ms"), "INIT_HTTP_TIMEOUT",
		       "out of range");
	assert_refused(ENV(URL, TOKEN, "INIT_DRAIN=1d"), "INIT_DRAIN", "not a duration");
	assert_refused(ENV(URL, TOKEN, "INIT_IDLE_TIMEOUT=-1"), "INIT_IDLE_TIMEOUT",
		       "not a duration");
}

static void a_jit_configuration_needs_no_url(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV("ACTIONS_RUNNER_INPUT_JITCONFIG=ZXlK")), 0);
	assert_false(c.gh.have_scope);
	assert_string_equal(c.api_url, "");
}

static void a_generated_jit_configuration_needs_a_pat_or_an_app(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "RUNNER_JIT=1"), "RUNNER_JIT", "ACCESS_TOKEN");
	assert_int_equal(read_env(ENV(URL, "ACCESS_TOKEN=p", "RUNNER_JIT=1")), 0);
}

#define PEM "-----BEGIN PRIVATE KEY-----\\nAAAA\\r\\nBB==\\n-----END PRIVATE KEY-----\\n"

static void a_key_with_literal_line_breaks_becomes_real(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, "APP_ID=Iv1.abc", "APP_PRIVATE_KEY=" PEM,
				      "APP_INSTALLATION_ID=77")),
			 0);
	assert_string_equal(secret_reveal(&c.gh.cred.app_key),
			    "-----BEGIN PRIVATE KEY-----\nAAAA\nBB==\n-----END PRIVATE KEY-----\n");
	assert_int_equal(c.gh.cred.app_key.len, strlen(secret_reveal(&c.gh.cred.app_key)));
	assert_int_equal(c.gh.cred.app_installation, 77);
}

static void half_an_app_is_refused(void **state)
{
	(void)state;
	assert_refused(ENV(URL, "APP_ID=1"), "APP_PRIVATE_KEY", "APP_ID is");
	assert_refused(ENV(URL, "APP_PRIVATE_KEY=" PEM), "APP_ID", "APP_PRIVATE_KEY is");
	assert_refused(ENV(URL, "APP_ID=1", "APP_PRIVATE_KEY=AAAA"), "APP_PRIVATE_KEY",
		       "not a PEM");
	assert_refused(ENV(URL, "APP_ID=a b", "APP_PRIVATE_KEY=" PEM), "APP_ID", "client id");
	assert_refused(ENV(URL, "APP_ID=1",
			   "APP_PRIVATE_KEY=-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END X"),
		       "APP_PRIVATE_KEY", "passphrase");
	assert_refused(ENV(URL, "APP_ID=1",
			   "APP_PRIVATE_KEY=-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"),
		       "APP_PRIVATE_KEY", "no private key");
}

static const char *secret_file(const char *text, size_t n)
{
	static char var[160];
	char path[128];
	int fd;

	assert_true(snprintf(path, sizeof path, "%s/secret", root) > 0);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	assert_int_equal(close(fd), 0);
	assert_true(snprintf(var, sizeof var, "RUNNER_TOKEN_FILE=%s", path) > 0);
	return var;
}

static void a_secret_comes_from_a_file_without_its_line_end(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, secret_file("FROMFILE\r\n", 10))), 0);
	assert_string_equal(secret_reveal(&c.gh.cred.token), "FROMFILE");
	assert_non_null(
		about("RUNNER_TOKEN_FILE", true)); /* the job's user, which is ours, can read it */
}

static void a_secret_and_its_file_exclude_each_other(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, secret_file("X", 1)), "RUNNER_TOKEN", "both set");
}

static void a_bad_secret_file_is_named(void **state)
{
	(void)state;
	assert_refused(ENV(URL, "RUNNER_TOKEN_FILE=/nonexistent/token"), "RUNNER_TOKEN",
		       "/nonexistent/token");
	assert_refused(ENV(URL, secret_file(" \n", 2)), "RUNNER_TOKEN", "is empty");
	assert_refused(ENV(URL, secret_file("A\0B", 3)), "RUNNER_TOKEN", "NUL");
	assert_refused(ENV(URL, secret_file("A B", 3)), "RUNNER_TOKEN", "blank");
	assert_refused(ENV(URL, "RUNNER_TOKEN_FILE=/"), "RUNNER_TOKEN", "directory");
	assert_refused(ENV(URL, "RUNNER_TOKEN_FILE=/dev/zero"), "RUNNER_TOKEN", "too large");
}

static void a_root_without_the_agent_is_named(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "RUNNER_ROOT=/nonexistent"), "RUNNER_ROOT",
		       "bin/Runner.Listener");
	assert_int_equal(config_status(&r), XC_CONFIG);
}

static void cache_directories_are_absolute(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "TRITON_CACHE_DIR=cache"), "TRITON_CACHE_DIR", "absolute");
	assert_refused(ENV(URL, TOKEN, "INIT_CACHE_DIRS=A-B"), "INIT_CACHE_DIRS", "\"A-B\"");
	assert_int_equal(read_env(ENV(URL, TOKEN, "INIT_CACHE_DIRS=MINE::OTHER:", "MINE= /m\r",
				      "TRITON_CACHE_DIR=cache")),
			 0);
	assert_int_equal(c.n_caches, 1); /* OTHER is unset and has no default */
	assert_string_equal(c.caches[0].path, "/m");
	assert_int_equal(c.probe.n_cache_dirs, 1);
	assert_string_equal(c.probe.cache_dirs[0], "MINE=/m");
}

static void a_secret_is_no_cache_directory(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "INIT_CACHE_DIRS=RUNNER_TOKEN"), "INIT_CACHE_DIRS",
		       "is a secret");
	for (unsigned i = 0; i < r.n_problems; i++)
		assert_null(strstr(r.problems[i].text, "AABBCC"));
	assert_refused(ENV(URL, TOKEN, "INIT_CACHE_DIRS=ACCESS_TOKEN_FILE"), "INIT_CACHE_DIRS",
		       "is a secret");
}

static void put_dotenv(mode_t mode)
{
	char path[128];
	int fd;

	assert_int_equal(str_fmt(path, sizeof path, "%s/.env", root), 0);
	(void)unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, "A=1\n", 4) == 4 && fchmod(fd, mode) == 0);
	assert_int_equal(close(fd), 0);
}

static void the_dotenv_of_the_image_is_kept(void **state)
{
	(void)state;
	put_dotenv(0644);
	assert_int_equal(read_env(ENV(URL, TOKEN)), 0);
	assert_string_equal(c.dotenv, "A=1\n");
}

static void a_dotenv_that_the_jobs_user_may_not_read_is_not_carried_to_him(void **state)
{
	char path[128];

	(void)state;
	put_dotenv(0600);
	assert_int_equal(str_fmt(path, sizeof path, "%s/.env", root), 0);
	memset(&c, 0, sizeof c);
	c.user.uid = geteuid() + 1;
	assert_int_equal(config_read_file(path, &c.user, c.dotenv, sizeof c.dotenv), -1);
	assert_string_equal(c.dotenv, "");
	assert_int_equal(config_read_file("/dev/null", &c.user, c.dotenv, sizeof c.dotenv), -1);
	assert_int_equal(unlink(path), 0);
}

static void the_tool_cache_defaults_to_the_work_folder(void **state)
{
	char want[128];

	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "INIT_CACHE_DIRS=AGENT_TOOLSDIRECTORY")), 0);
	assert_true(snprintf(want, sizeof want, "%s/_work/_tool", root) > 0);
	assert_string_equal(c.caches[0].path, want);
	assert_true(c.caches[0].defaulted);
	assert_int_equal(read_env(ENV(URL, TOKEN, "INIT_CACHE_DIRS=AGENT_TOOLSDIRECTORY",
				      "RUNNER_WORKDIR=/data/w")),
			 0);
	assert_string_equal(c.caches[0].path, "/data/w/_tool");
}

static void the_work_folder_does_not_go_up(void **state)
{
	(void)state;
	assert_refused(ENV(URL, TOKEN, "RUNNER_WORKDIR=../x"), "RUNNER_WORKDIR", "..");
	assert_refused(ENV(URL, TOKEN, "RUNNER_WORKDIR=a/.."), "RUNNER_WORKDIR", "..");
	assert_int_equal(read_env(ENV(URL, TOKEN, "RUNNER_WORKDIR=a..b/...")), 0);
}

static void proxies_are_http_and_the_lower_case_name_wins(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "https_proxy=proxy:3128",
				      "HTTPS_PROXY=http://other:1", "NO_PROXY=.corp")),
			 0);
	assert_string_equal(c.gh.https_proxy, "proxy:3128");
	assert_string_equal(c.gh.no_proxy, ".corp");
	assert_refused(ENV(URL, TOKEN, "https_proxy=socks5://p:1"), "https_proxy", "neither");
	assert_refused(ENV(URL, TOKEN, "https_proxy=http://"), "https_proxy", "no host");
}

static void names_of_other_images_are_pointed_out(void **state)
{
	(void)state;
	assert_true(read_env(ENV("REPO_URL=https://github.com/a/b", "GITHUB_PAT=x")) > 0);
	assert_non_null(strstr(about("REPO_URL", true)->text, "RUNNER_URL"));
	assert_non_null(strstr(about("GITHUB_PAT", true)->text, "ACCESS_TOKEN"));
	assert_int_equal(read_env(ENV(URL, TOKEN, "REPO_URL=x")), 0);
	assert_null(about("REPO_URL", true));
}

static void an_unknown_setting_of_init_is_a_warning(void **state)
{
	(void)state;
	assert_int_equal(read_env(ENV(URL, TOKEN, "INIT_DRIAN=5m")), 0);
	assert_non_null(about("INIT_DRIAN", true));
}

static void the_self_test_needs_no_credential_and_reads_none(void **state)
{
	(void)state;
	assert_int_equal(read_as(ENV("RUNNER_TOKEN=AA BB", "INIT_GPU=off"), CONFIG_SELFTEST), 0);
	assert_false(secret_present(&c.gh.cred.token));
	assert_int_equal(c.probe.gpu, PROBE_GPU_OFF);
}

static void every_setting_has_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < settings_n; i++) {
		assert_true(strlen(settings[i].meaning) > 10);
		assert_true(strlen(settings[i].accepts) > 3);
		assert_int_equal(setting_index(settings[i].name), i);
	}
	assert_int_equal(setting_index("NO_SUCH"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_that_works_is_a_url_and_a_token),
		cmocka_unit_test(everything_wrong_is_told_at_once),
		cmocka_unit_test(a_problem_names_value_reason_and_what_is_accepted),
		cmocka_unit_test(a_secret_is_never_in_a_message),
		cmocka_unit_test(a_password_in_a_url_is_never_in_a_message),
		cmocka_unit_test(white_space_and_line_ends_around_a_value_do_not_count),
		cmocka_unit_test(an_empty_value_counts_as_unset),
		cmocka_unit_test(the_first_of_two_variables_of_one_name_counts),
		cmocka_unit_test(a_name_has_at_most_64_bytes),
		cmocka_unit_test(a_long_host_name_is_shortened_with_a_hash),
		cmocka_unit_test(labels_are_trimmed_and_unique_in_any_case),
		cmocka_unit_test(a_label_over_256_bytes_is_refused),
		cmocka_unit_test(a_hundred_labels_fit_and_one_more_does_not),
		cmocka_unit_test(a_label_with_a_blank_is_a_warning),
		cmocka_unit_test(a_runner_without_any_label_is_refused),
		cmocka_unit_test(a_group_needs_an_organisation),
		cmocka_unit_test(durations_have_a_floor),
		cmocka_unit_test(a_jit_configuration_needs_no_url),
		cmocka_unit_test(a_generated_jit_configuration_needs_a_pat_or_an_app),
		cmocka_unit_test(a_key_with_literal_line_breaks_becomes_real),
		cmocka_unit_test(half_an_app_is_refused),
		cmocka_unit_test(a_secret_comes_from_a_file_without_its_line_end),
		cmocka_unit_test(a_secret_and_its_file_exclude_each_other),
		cmocka_unit_test(a_bad_secret_file_is_named),
		cmocka_unit_test(a_root_without_the_agent_is_named),
		cmocka_unit_test(cache_directories_are_absolute),
		cmocka_unit_test(a_secret_is_no_cache_directory),
		cmocka_unit_test(the_dotenv_of_the_image_is_kept),
		cmocka_unit_test(a_dotenv_that_the_jobs_user_may_not_read_is_not_carried_to_him),
		cmocka_unit_test(the_tool_cache_defaults_to_the_work_folder),
		cmocka_unit_test(the_work_folder_does_not_go_up),
		cmocka_unit_test(proxies_are_http_and_the_lower_case_name_wins),
		cmocka_unit_test(names_of_other_images_are_pointed_out),
		cmocka_unit_test(an_unknown_setting_of_init_is_a_warning),
		cmocka_unit_test(the_self_test_needs_no_credential_and_reads_none),
		cmocka_unit_test(every_setting_has_words),
	};

	return cmocka_run_group_tests(tests, make_root, drop_root);
}
