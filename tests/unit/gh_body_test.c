#include "gh/body.h"

#include "base/str.h"
#include "gh/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct gh_settings settings;
static struct gh_runner runner;
static struct key_parts key;

static int fresh(void **state)
{
	struct gh_settings *s = &settings;

	(void)state;
	memset(s, 0, sizeof *s);
	memset(&runner, 0, sizeof runner);
	memset(&key, 1, sizeof key);
	key.modulus[0] = 0;
	memcpy(key.exponent, "\1\0\1", 3);
	s->have_scope = true;
	s->scope.hosted = true;
	(void)str_copy(s->scope.url, sizeof s->scope.url, "https://github.com/acme");
	(void)str_copy(s->name, sizeof s->name, "r\"1");
	(void)str_copy(s->labels[0], sizeof s->labels[0], "gpu");
	(void)str_copy(s->labels[1], sizeof s->labels[1], "LINUX");
	s->n_labels = 2;
	s->ephemeral = true;
	(void)str_copy(s->agent_version, sizeof s->agent_version, "2.336.0");
	(void)str_copy(s->os_description, sizeof s->os_description, "Debian");
	(void)str_copy(s->work, sizeof s->work, "_work");
	return 0;
}

static void equal(const struct buf *b, const char *want)
{
	assert_string_equal(buf_str(b), want);
}

/* The modulus' base64 put where the fixture says MOD. */
static void equal_with_modulus(const struct buf *b, const char *want)
{
	cleanup_buf struct buf full = {0};
	const char *at = strstr(want, "MOD");

	/* a zero byte and 255 ones, in groups of three */
	buf_init(&full, 10000);
	assert_int_equal(buf_put(&full, want, (size_t)(at - want)), 0);
	assert_int_equal(buf_puts(&full, "AAEB"), 0);
	for (int i = 0; i < 84; i++)
		assert_int_equal(buf_puts(&full, "AQEB"), 0);
	assert_int_equal(buf_puts(&full, "AQ=="), 0);
	assert_int_equal(buf_puts(&full, at + 3), 0);
	equal(b, buf_str(&full));
}

static void the_registration_is_asked_for_by_url_and_event(void **state)
{
	cleanup_buf struct buf b = {0};

	(void)state;
	buf_init(&b, BODY_MAX);
	assert_int_equal(body_auth(&b, "https://github.com/acme", "register"), 0);
	equal(&b, "{\"url\":\"https://github.com/acme\",\"runner_event\":\"register\"}");
}

#ifdef __x86_64__
#define ARCH "X64"
#else
#define ARCH "ARM64"
#endif
#define SYSTEM_LABELS                                                                              \
	"{\"id\":0,\"name\":\"self-hosted\",\"type\":\"system\"},"                                 \
	"{\"id\":0,\"name\":\"Linux\",\"type\":\"system\"},"                                       \
	"{\"id\":0,\"name\":\"" ARCH "\",\"type\":\"system\"}"

static void a_v1_agent_is_written_as_the_runner_writes_it(void **state)
{
	cleanup_buf struct buf b = {0};

	(void)state;
	buf_init(&b, BODY_MAX);
	assert_int_equal(body_v1(&b, &settings, &key, 0), 0);
	equal_with_modulus(
		&b, "{\"maxParallelism\":1,\"createdOn\":\"0001-01-01T00:00:00\","
		    "\"authorization\":{\"publicKey\":{\"exponent\":\"AQAB\",\"modulus\":\"MOD\"}},"
		    "\"labels\":[" SYSTEM_LABELS
		    ",{\"id\":0,\"name\":\"gpu\",\"type\":\"user\"}],\"id\":0,\"name\":\"r\\\"1\","
		    "\"version\":\"2.336.0\",\"osDescription\":\"Debian\",\"ephemeral\":true,"
		    "\"disableUpdate\":false,\"status\":0,\"provisioningState\":\"Provisioned\"}");
}

static void a_v2_replacement_names_the_runner_and_has_its_key_as_xml(void **state)
{
	cleanup_buf struct buf b = {0};

	(void)state;
	buf_init(&b, BODY_MAX);
	assert_int_equal(body_v2(&b, &settings, &key, 7, UINT64_MAX), 0);
	equal_with_modulus(
		&b, "{\"url\":\"https://github.com/acme\",\"group_id\":7,\"name\":\"r\\\"1\","
		    "\"version\":\"2.336.0\",\"updates_disabled\":false,\"ephemeral\":true,"
		    "\"labels\":[" SYSTEM_LABELS
		    ",{\"id\":0,\"name\":\"gpu\",\"type\":\"user\"}],\"public_key\":"
		    "\"<RSAKeyValue><Modulus>MOD</Modulus><Exponent>AQAB</Exponent></RSAKeyValue>"
		    "\",\"runner_id\":18446744073709551615,\"replace\":true}");
}

static void without_default_labels_only_the_given_ones_are_sent(void **state)
{
	cleanup_buf struct buf b = {0};

	(void)state;
	buf_init(&b, BODY_MAX);
	settings.no_default_labels = true;
	assert_int_equal(body_jit(&b, &settings, 1), 0);
	equal(&b, "{\"name\":\"r\\\"1\",\"runner_group_id\":1,\"labels\":[\"gpu\",\"LINUX\"],"
		  "\"work_folder\":\"_work\"}");
}

static void a_body_that_does_not_fit_is_an_error(void **state)
{
	cleanup_buf struct buf b = {0};

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(body_v1(&b, &settings, &key, 0), -1);
}

static void file_is(const char *name, const char *want)
{
	const struct gh_file *f = files_find(&runner, name);
	char text[GH_FILE_MAX + 1];

	assert_non_null(f);
	memcpy(text, f->data, f->len);
	text[f->len] = 0;
	assert_string_equal(text, want);
}

static void the_files_are_written_in_order_and_defaults_left_out(void **state)
{
	struct answer_agent a = {.fips = true, .broker = true};
	struct err e = ERR_INIT;

	(void)state;
	(void)str_copy(a.client_id, sizeof a.client_id, "11111111-2222-3333-4444-555555555555");
	(void)str_copy(a.auth_url, sizeof a.auth_url, "https://t.example/o");
	(void)str_copy(a.server_v2, sizeof a.server_v2, "https://b.example/");
	runner.id = 9007199254740993u;
	runner.pool = 1;
	runner.flow = GH_V2;
	(void)str_copy(runner.name, sizeof runner.name, "r1");
	(void)str_copy(runner.pool_name, sizeof runner.pool_name, "Default");
	(void)str_copy(runner.tenant, sizeof runner.tenant, "https://p.example/x/");
	assert_int_equal(files_build(&runner, &settings, &a, &key, &e), 0);
	assert_int_equal(runner.n_files, 3);
	assert_string_equal(runner.files[2].name, ".runner");
	file_is(".runner",
		"{\n  \"agentId\": 9007199254740993,\n  \"agentName\": \"r1\",\n  \"poolId\": 1,\n"
		"  \"poolName\": \"Default\",\n  \"ephemeral\": true,\n"
		"  \"serverUrl\": \"https://p.example/x/\",\n"
		"  \"gitHubUrl\": \"https://github.com/acme\",\n  \"workFolder\": \"_work\",\n"
		"  \"useV2Flow\": true,\n  \"useRunnerAdminFlow\": true,\n"
		"  \"serverUrlV2\": \"https://b.example/\"\n}");
	file_is(".credentials", "{\n  \"scheme\": \"OAuth\",\n  \"data\": {\n"
				"    \"clientId\": \"11111111-2222-3333-4444-555555555555\",\n"
				"    \"authorizationUrl\": \"https://t.example/o\",\n"
				"    \"requireFipsCryptography\": \"True\"\n  }\n}");
}

static void on_ghes_the_file_says_that_it_is_not_hosted(void **state)
{
	struct answer_agent a = {.migrate = true};
	struct err e = ERR_INIT;

	(void)state;
	settings.scope.hosted = false;
	settings.ephemeral = false;
	settings.disable_update = true;
	(void)str_copy(a.auth_url_v2, sizeof a.auth_url_v2, "https://n.example/");
	runner.id = 1;
	assert_int_equal(files_build(&runner, &settings, &a, &key, &e), 0);
	file_is(".runner", "{\n  \"isHostedServer\": false,\n  \"agentId\": 1,\n"
			   "  \"agentName\": \"\",\n  \"poolId\": 0,\n  \"poolName\": \"\",\n"
			   "  \"disableUpdate\": true,\n"
			   "  \"gitHubUrl\": \"https://github.com/acme\",\n"
			   "  \"workFolder\": \"_work\"\n}");
	assert_non_null(strstr((const char *)files_find(&runner, ".credentials")->data,
			       "\"enableAuthMigrationByDefault\": \"true\""));
	assert_non_null(strstr((const char *)files_find(&runner, ".credentials")->data,
			       "\"requireFipsCryptography\": \"False\""));
}

static void the_key_is_read_back_as_it_was_written(void **state)
{
	struct answer_agent a = {.fips = true};
	struct err e = ERR_INIT;
	struct key_parts back;

	(void)state;
	for (size_t i = 0; i < sizeof key.d; i++)
		key.d[i] = (unsigned char)i;
	key.p[0] = 0;
	assert_int_equal(files_build(&runner, &settings, &a, &key, &e), 0);
	assert_int_equal(files_key(&runner, &back, &e), 0);
	assert_memory_equal(&back, &key, sizeof key);
}

static void a_key_file_with_a_part_of_another_width_is_refused(void **state)
{
	static const char text[] = "{\"d\":\"AQAB\"}";
	struct err e = ERR_INIT;
	struct key_parts back;

	(void)state;
	(void)str_copy(runner.files[0].name, sizeof runner.files[0].name, ".credentials_rsaparams");
	memcpy(runner.files[0].data, text, sizeof text - 1);
	runner.files[0].len = sizeof text - 1;
	runner.n_files = 1;
	assert_int_equal(files_key(&runner, &back, &e), -1);
	assert_non_null(strstr(e.text, "\"d\" is not 256 bytes"));
	runner.n_files = 0;
	assert_int_equal(files_key(&runner, &back, &e), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_registration_is_asked_for_by_url_and_event, fresh),
		cmocka_unit_test_setup(a_v1_agent_is_written_as_the_runner_writes_it, fresh),
		cmocka_unit_test_setup(a_v2_replacement_names_the_runner_and_has_its_key_as_xml,
				       fresh),
		cmocka_unit_test_setup(without_default_labels_only_the_given_ones_are_sent, fresh),
		cmocka_unit_test_setup(a_body_that_does_not_fit_is_an_error, fresh),
		cmocka_unit_test_setup(the_files_are_written_in_order_and_defaults_left_out, fresh),
		cmocka_unit_test_setup(on_ghes_the_file_says_that_it_is_not_hosted, fresh),
		cmocka_unit_test_setup(the_key_is_read_back_as_it_was_written, fresh),
		cmocka_unit_test_setup(a_key_file_with_a_part_of_another_width_is_refused, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
