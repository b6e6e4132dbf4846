#include "gh/answer.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GUID "11111111-2222-3333-4444-555555555555"

static void the_tenant_is_read_with_its_flow(void **state)
{
	static const char v1[] = "{\"url\":\"https://t.example/x/\",\"token\":\"abc\","
				 "\"token_schema\":\"oauthaccesstoken\",\"other\":[1]}";
	static const char v2[] = "{\"url\":\"https://t.example/x/\",\"token\":\"abc\","
				 "\"token_schema\":\"OAuthAccessToken\",\"use_v2_flow\":true}";
	struct err e = ERR_INIT;
	struct answer_auth a;

	(void)state;
	assert_int_equal(answer_auth(v1, strlen(v1), &a, &e), 0);
	assert_false(a.v2);
	assert_string_equal(secret_reveal(&a.token), "abc");
	assert_string_equal(a.url, "https://t.example/x/");
	assert_int_equal(answer_auth(v2, strlen(v2), &a, &e), 0);
	assert_true(a.v2);
	assert_false(secret_present(&a.token)); /* the runner-admin flow has no use for it */
}

static void every_field_of_the_tenant_is_named_when_it_is_wrong(void **state)
{
	static const struct {
		const char *text, *field;
	} rows[] = {
		{"{\"token\":\"a\",\"token_schema\":\"OAuthAccessToken\"}", "url"},
		{"{\"url\":7,\"token\":\"a\",\"token_schema\":\"OAuthAccessToken\"}", "url"},
		{"{\"url\":\"u\",\"token_schema\":\"OAuthAccessToken\"}", "token"},
		{"{\"url\":\"u\",\"token\":[],\"token_schema\":\"OAuthAccessToken\"}", "token"},
		{"{\"url\":\"u\",\"token\":\"a\"}", "token_schema"},
		{"{\"url\":\"u\",\"token\":\"a\",\"token_schema\":null}", "token_schema"},
		{"{\"url\":\"u\",\"token\":\"a\",\"token_schema\":\"x\",\"use_v2_flow\":1}",
		 "use_v2_flow"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		struct answer_auth a = {.v2 = true};
		char want[64];
		assert_int_equal(answer_auth(rows[i].text, strlen(rows[i].text), &a, &e), -1);
		assert_int_equal(str_fmt(want, sizeof want, "\"%s\"", rows[i].field), 0);
		if (strstr(e.text, want) == NULL)
			fail_msg("\"%s\" does not name %s", e.text, want);
		assert_true(a.v2); /* untouched */
	}
}

static const char v1_agent[] =
	"{\"id\":9007199254740993,\"name\":\"r1\",\"ephemeral\":true,\"disableUpdate\":true,"
	"\"runnerGroupId\":7,\"status\":\"offline\",\"authorization\":{\"clientId\":"
	"\"ABCDEF01-2222-3333-4444-555555555555\",\"authorizationUrl\":\"https://t.example/o\","
	"\"publicKey\":{}},\"properties\":{\"RequireFipsCryptography\":{\"$type\":"
	"\"System.Boolean\",\"$value\":false},\"ServerUrlV2\":\"https://b.example/\","
	"\"useV2flow\":\"True\"}}";

static void a_v1_agent_is_read_with_wrapped_and_bare_properties(void **state)
{
	struct err e = ERR_INIT;
	struct answer_agent a;

	(void)state;
	if (answer_agent(v1_agent, strlen(v1_agent), DIALECT_V1, &a, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(a.id == 9007199254740993u);
	assert_true(a.group == 7);
	assert_string_equal(a.client_id, "abcdef01-2222-3333-4444-555555555555");
	assert_string_equal(a.server_v2, "https://b.example/");
	assert_true(a.broker && a.ephemeral && a.disable_update);
	assert_false(a.fips);
	assert_false(a.migrate);
}

static void without_properties_the_key_signs_pss_and_no_broker_is_used(void **state)
{
	static const char text[] = "{\"id\":1,\"authorization\":{\"clientId\":\"" GUID
				   "\",\"authorizationUrl\":\"https://t.example/o\"}}";
	struct err e = ERR_INIT;
	struct answer_agent a;

	(void)state;
	assert_int_equal(answer_agent(text, strlen(text), DIALECT_V1, &a, &e), 0);
	assert_true(a.fips);
	assert_false(a.broker);
	assert_false(a.ephemeral);
	assert_string_equal(a.server_v2, "");
}

static void a_v2_agent_puts_a_legacy_url_first(void **state)
{
	static const char text[] =
		"{\"id\":1,\"name\":\"x\",\"authorization\":{\"client_id\":\"" GUID
		"\",\"authorization_url\":\"https://n.example/\","
		"\"legacy_authorization_url\":\"https://l.example/\","
		"\"server_url\":\"https://b.example/\"}}";
	struct err e = ERR_INIT;
	struct answer_agent a;

	(void)state;
	assert_int_equal(answer_agent(text, strlen(text), DIALECT_V2, &a, &e), 0);
	assert_string_equal(a.auth_url, "https://l.example/");
	assert_string_equal(a.auth_url_v2, "https://n.example/");
	assert_true(a.migrate && a.fips && a.broker);
}

static void an_agent_that_cannot_be_used_still_tells_its_id(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"{\"id\":5}", "\"authorization\" is missing"},
		{"{\"id\":5,\"authorization\":{\"clientId\":\"00000000-0000-0000-0000-"
		 "000000000000\",\"authorizationUrl\":\"https://t.example/\"}}",
		 "no client id"},
		{"{\"id\":5,\"authorization\":{\"clientId\":\"x\",\"authorizationUrl\":"
		 "\"https://t.example/\"}}",
		 "no client id"},
		{"{\"id\":5,\"authorization\":{\"clientId\":\"" GUID
		 "\",\"authorizationUrl\":\"http://t.example/\"}}",
		 "not https"},
		{"{\"id\":5,\"authorization\":{\"clientId\":\"" GUID
		 "\",\"authorizationUrl\":\"nonsense\"}}",
		 "is no URL"},
		{"{\"id\":5,\"authorization\":{\"clientId\":\"" GUID
		 "\",\"authorizationUrl\":\"https://t.example/\"},\"properties\":{\"UseV2Flow\":"
		 "true}}",
		 "UseV2Flow without ServerUrlV2"},
		{"{\"id\":5,\"authorization\":{\"clientId\":\"" GUID
		 "\",\"authorizationUrl\":\"https://t.example/\"},\"properties\":{\"UseV2Flow\":"
		 "\"maybe\"}}",
		 "properties.UseV2Flow"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		struct answer_agent a = {.id = 0};
		assert_int_equal(
			answer_agent(rows[i].text, strlen(rows[i].text), DIALECT_V1, &a, &e), -1);
		assert_int_equal(e.code, XC_PROTOCOL);
		if (strstr(e.text, rows[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.text, rows[i].says);
		assert_true(a.id == 5);
	}
}

static void a_look_up_compares_the_whole_name_in_any_case(void **state)
{
	static const char text[] =
		"{\"count\":3,\"value\":[{\"id\":1,\"name\":\"r1-x\"},"
		"{\"id\":18446744073709551615,\"name\":\"R1\",\"runnerGroupId\":7},"
		"{\"id\":3,\"name\":\"r1\"}]}";
	static const char rest[] = "{\"total_count\":1,\"runners\":[{\"id\":8,\"name\":\"r1\","
				   "\"status\":\"online\",\"busy\":true,\"runner_group_id\":2}]}";
	struct answer_found f;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(answer_lookup(text, strlen(text), DIALECT_V1, "r1", &f, &e), 0);
	assert_true(f.id == UINT64_MAX);
	assert_true(f.group == 7);
	assert_int_equal(answer_lookup(text, strlen(text), DIALECT_V1, "r2", &f, &e), 0);
	assert_true(f.id == 0);
	assert_int_equal(answer_lookup(rest, strlen(rest), DIALECT_REST, "R1", &f, &e), 0);
	assert_true(f.id == 8 && f.online && f.busy && f.group == 2);
	assert_int_equal(answer_lookup("{}", 2, DIALECT_V2, "r1", &f, &e), -1);
	assert_non_null(strstr(e.text, "\"runners\" is missing"));
}

static void a_group_is_chosen_and_hosted_ones_are_not_seen(void **state)
{
	static const char text[] =
		"{\"total_count\":3,\"runner_groups\":[{\"id\":3,\"name\":\"Hosted\",\"default\":"
		"true,\"is_hosted\":true},{\"id\":1,\"name\":\"Default\",\"default\":true},"
		"{\"id\":7,\"name\":\"Big\",\"default\":false,\"is_hosted\":false}]}";
	struct answer_group g;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(answer_groups(text, strlen(text), DIALECT_V2, "", false, &g, &e), 0);
	assert_true(g.id == 1);
	assert_int_equal(answer_groups(text, strlen(text), DIALECT_V2, "BIG", false, &g, &e), 0);
	assert_string_equal(g.name, "Big");
	assert_int_equal(answer_groups(text, strlen(text), DIALECT_V2, "hosted", false, &g, &e),
			 -1);
	assert_int_equal(e.code, XC_CONFIG);
	assert_non_null(strstr(e.text, "\"Default\", \"Big\""));
	assert_int_equal(answer_groups(text, strlen(text), DIALECT_V2, "x", true, &g, &e), -1);
	assert_non_null(strstr(e.text, "repository"));
	assert_int_equal(
		answer_groups("{\"count\":0,\"value\":[]}", 22, DIALECT_V1, "", false, &g, &e), -1);
	assert_non_null(strstr(e.text, "no runner group at all"));
}

static void times_are_read_with_zone_and_fraction(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-01-02T03:04:05Z", 1767323045000},
		{"2026-01-02T03:04:05.678Z", 1767323045000},
		{"2026-01-02T03:04:05.000+02:00", 1767315845000},
		{"2026-01-02T03:04:05-01:30", 1767328445000},
	};
	static const char *const bad[] = {"",
					  "2026-01-02",
					  "2026-13-02T03:04:05Z",
					  "2026-01-02T03:04:05",
					  "2026-01-02T03:04:05+2",
					  "2026-01-02T03:04:05Zx",
					  "2026-01-0aT03:04:05Z",
					  "99999-01-01T00:00:00Z"};
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(answer_time(rows[i].text, &ms), 0);
		assert_int_equal(ms, rows[i].ms);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(answer_time(bad[i], &ms), -1);
}

static void tokens_and_installations_are_read(void **state)
{
	static const char page[] =
		"[{\"id\":1,\"account\":{\"login\":\"other\"}},{\"id\":2,\"account\":{\"login\":"
		"\"Acme\"},\"suspended_at\":null}]";
	static const char suspended[] = "{\"id\":2,\"account\":{\"login\":\"Acme\"},"
					"\"suspended_at\":\"2026-01-01T00:00:00Z\"}";
	static const char good[] = "{\"token\":\"A\",\"expires_at\":\"1970-01-01T00:00:01Z\"}";
	static const char late[] = "{\"token\":\"A\",\"expires_at\":\"soon\"}";
	struct err e = ERR_INIT;
	struct answer_token t = {.expires_ms = 0};
	uint64_t id = 0;

	(void)state;
	assert_int_equal(answer_token(good, strlen(good), &t, &e), 0);
	assert_int_equal(t.expires_ms, 1000);
	assert_int_equal(answer_token(late, strlen(late), &t, &e), -1);
	assert_non_null(strstr(e.text, "expires_at"));
	assert_int_equal(answer_installation(page, strlen(page), "acme", &id, &e), 1);
	assert_true(id == 2);
	assert_int_equal(answer_installation(page, strlen(page), "nobody", &id, &e), 0);
	assert_int_equal(answer_installation(suspended, strlen(suspended), "", &id, &e), -1);
	assert_int_equal(e.code, XC_DENIED);
}

static void what_an_error_says_is_taken_from_json_or_from_the_bytes(void **state)
{
	static const char json[] = "{\"Message\":\"It\\u00e9 is\",\"typeKey\":\"XException\"}";
	char text[64], key[32];

	(void)state;
	answer_message(json, strlen(json), text, sizeof text, key, sizeof key);
	assert_string_equal(text, "It\xc3\xa9 is");
	assert_string_equal(key, "XException");
	answer_message("<html>\n\x01", 8, text, sizeof text, key, sizeof key);
	assert_string_equal(text, "<html>??");
	assert_string_equal(key, "");
	answer_message("", 0, text, sizeof text, key, sizeof key);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tenant_is_read_with_its_flow),
		cmocka_unit_test(every_field_of_the_tenant_is_named_when_it_is_wrong),
		cmocka_unit_test(a_v1_agent_is_read_with_wrapped_and_bare_properties),
		cmocka_unit_test(without_properties_the_key_signs_pss_and_no_broker_is_used),
		cmocka_unit_test(a_v2_agent_puts_a_legacy_url_first),
		cmocka_unit_test(an_agent_that_cannot_be_used_still_tells_its_id),
		cmocka_unit_test(a_look_up_compares_the_whole_name_in_any_case),
		cmocka_unit_test(a_group_is_chosen_and_hosted_ones_are_not_seen),
		cmocka_unit_test(times_are_read_with_zone_and_fraction),
		cmocka_unit_test(tokens_and_installations_are_read),
		cmocka_unit_test(what_an_error_says_is_taken_from_json_or_from_the_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
