#include "gh/b64.h"
#include "gh/files.h"
#include "gh/internal.h"
#include "gh/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct gh_runner runner;

static const char settings[] =
	"{\"AgentId\":\"9007199254740993\",\"AgentName\":\"jit-1\",\"PoolId\":\"7\","
	"\"PoolName\":\"gpu\",\"Ephemeral\":\"True\",\"ServerUrl\":\"https://p.example/x/\","
	"\"ServerUrlV2\":\"https://b.example/\",\"UseV2Flow\":\"True\",\"WorkFolder\":\"_work\"}";
static const char credential[] =
	"{\"Scheme\":\"OAuth\",\"Data\":{\"ClientId\":\"11111111-2222-3333-4444-555555555555\","
	"\"AuthorizationUrl\":\"https://t.example/o\",\"RequireFipsCryptography\":\"True\"}}";

static void put(struct json_out *o, const char *name, const void *data, size_t n)
{
	cleanup_buf struct buf b = {0};

	buf_init(&b, 20000);
	assert_int_equal(b64_encode(&b, B64_STD, data, n), 0);
	jo_str(o, name, buf_str(&b));
}

static void rsaparams(struct buf *b)
{
	struct gh_runner *r = &runner;
	struct answer_agent a = {.fips = true};
	struct gh_settings s = {.ephemeral = true};
	struct key_parts key;
	struct err e = ERR_INIT;
	const struct gh_file *f;

	memset(&key, 1, sizeof key);
	assert_int_equal(files_build(r, &s, &a, &key, &e), 0);
	f = files_find(r, ".credentials_rsaparams");
	assert_int_equal(buf_put(b, f->data, f->len), 0);
}

/* The whole configuration; `extra` is a further file, NULL none; `without` leaves one out. */
static void build(struct buf *out, const char *runner_text, const char *extra, const char *without)
{
	cleanup_buf struct buf json = {0}, params = {0};
	struct json_out o;

	buf_init(&json, 60000);
	buf_init(&params, 20000);
	rsaparams(&params);
	jo_begin(&o, &json, false);
	jo_open(&o, NULL, '{');
	if (strcmp(without, ".runner") != 0)
		put(&o, ".runner", runner_text, strlen(runner_text));
	if (strcmp(without, ".credentials") != 0)
		put(&o, ".credentials", credential, strlen(credential));
	if (strcmp(without, ".credentials_rsaparams") != 0)
		put(&o, ".credentials_rsaparams", params.data, params.len);
	if (extra != NULL)
		put(&o, extra, "x", 1);
	jo_close(&o, '}');
	assert_int_equal(jo_end(&o), 0);
	assert_int_equal(b64_encode(out, B64_STD, json.data, json.len), 0);
}

static void a_configuration_gives_the_files_and_what_they_say(void **state)
{
	cleanup_buf struct buf text = {0};
	struct err e = ERR_INIT;

	(void)state;
	buf_init(&text, 60000);
	build(&text, settings, NULL, "");
	memset(&runner, 0, sizeof runner);
	if (jit_decode(buf_str(&text), text.len, &runner, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(runner.n_files, 3);
	assert_true(runner.id == 9007199254740993u);
	assert_string_equal(runner.name, "jit-1");
	assert_true(runner.pool == 7 && runner.ephemeral && runner.fips);
	assert_string_equal(runner.server_v2, "https://b.example/");
	assert_string_equal(runner.client_id, "11111111-2222-3333-4444-555555555555");
	assert_memory_equal(files_find(&runner, ".runner")->data, settings, strlen(settings));
}

static void refused(const char *text, size_t len, const char *says)
{
	struct err e = ERR_INIT;

	memset(&runner, 0, sizeof runner);
	assert_int_equal(jit_decode(text, len, &runner, &e), -1);
	assert_int_equal(e.code, XC_CONFIG);
	if (strstr(e.text, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, says);
	assert_int_equal(runner.n_files, 0);
	for (size_t i = 0; i < sizeof runner.files; i++)
		assert_int_equal(((const unsigned char *)runner.files)[i], 0);
}

static void a_name_that_is_no_identity_file_is_refused(void **state)
{
	static const char *const names[] = {"../evil", "..",	".env",	     "bin/x",
					    "run.sh",  ".path", ".runner/x", ".Runner"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		cleanup_buf struct buf text = {0};
		buf_init(&text, 60000);
		build(&text, settings, names[i], "");
		refused(buf_str(&text), text.len, names[i]);
	}
}

static void a_missing_file_is_named(void **state)
{
	static const char *const names[] = {".runner", ".credentials", ".credentials_rsaparams"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		cleanup_buf struct buf text = {0};
		buf_init(&text, 60000);
		build(&text, settings, NULL, names[i]);
		refused(buf_str(&text), text.len, names[i]);
	}
}

static void a_file_that_is_there_twice_is_refused(void **state)
{
	cleanup_buf struct buf text = {0};

	(void)state;
	buf_init(&text, 60000);
	build(&text, settings, ".credentials", "");
	refused(buf_str(&text), text.len, "twice");
}

static void what_is_no_configuration_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "not base64"},
		{"!!!!", "not base64"},
		{"AAA", "JSON"},
		{"e30=", "holds no"},
		{"W10=", "array"},
		{"eyJhIjoxfQ==", "\"a\""},
		{"eyIucnVubmVyIjo3fQ==", ".runner is not base64"},
		{"eyIucnVubmVyIjoiISJ9", ".runner is not base64"},
		{"eyIucnVubmVyIjoiIn0=", ".runner is not base64"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		refused(rows[i].text, strlen(rows[i].text), rows[i].says);
}

static void a_mistyped_id_is_named(void **state)
{
	cleanup_buf struct buf text = {0};

	(void)state;
	buf_init(&text, 60000);
	build(&text, "{\"AgentId\":\"x\",\"AgentName\":\"n\"}", NULL, "");
	refused(buf_str(&text), text.len, "agentId");
}

static void base64_is_read_with_breaks_and_without_padding(void **state)
{
	static const struct {
		const char *text, *bytes;
		int rc;
	} rows[] = {
		{"", "", 0},	   {"YQ==", "a", 0},
		{"YQ", "a", 0},	   {"YW J\r\nj", "abc", 0},
		{"YWI=", "ab", 0}, {"YWJjZA==", "abcd", 0},
		{"Y", "", -1},	   {"YQ=", "", -1},
		{"YQ===", "", -1}, {"YQ==YQ==", "", -1},
		{"=", "", -1},	   {"YR==", "", -1},
		{"YWJ=", "", -1},  {"Y-Q=", "", -1},
		{"YQ=a", "", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cleanup_buf struct buf b = {0};
		buf_init(&b, 100);
		if (b64_decode(&b, rows[i].text, strlen(rows[i].text)) != rows[i].rc)
			fail_msg("\"%s\"", rows[i].text);
		if (rows[i].rc == 0)
			assert_string_equal(buf_str(&b), rows[i].bytes);
	}
}

static void base64_for_urls_has_its_own_letters_and_no_padding(void **state)
{
	cleanup_buf struct buf b = {0};

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(b64_encode(&b, B64_URL, "\xfb\xff\xbe\xff", 4), 0);
	assert_string_equal(buf_str(&b), "-_--_w");
	buf_reset(&b);
	assert_int_equal(b64_encode(&b, B64_STD, "\xfb\xff\xbe\xff", 4), 0);
	assert_string_equal(buf_str(&b), "+/++/w==");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_gives_the_files_and_what_they_say),
		cmocka_unit_test(a_name_that_is_no_identity_file_is_refused),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(a_file_that_is_there_twice_is_refused),
		cmocka_unit_test(what_is_no_configuration_is_refused),
		cmocka_unit_test(a_mistyped_id_is_named),
		cmocka_unit_test(base64_is_read_with_breaks_and_without_padding),
		cmocka_unit_test(base64_for_urls_has_its_own_letters_and_no_padding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
