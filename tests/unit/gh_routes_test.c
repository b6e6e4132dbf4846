#include "gh/flow.h"
#include "gh/version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define AGENTS "e298ef32-5878-4cab-993c-043836571f42"

static struct flow flow;

static void url_is(const char *template, int64_t pool, uint64_t agent, const char *query,
		   const char *want)
{
	struct err e = ERR_INIT;
	char text[URL_TEXT_MAX];
	struct url u;

	assert_int_equal(url_parse("https://p.example/tenant/", &flow.base, &e), 0);
	assert_int_equal(v1_url(&flow, template, pool, agent, query, &u, &e), 0);
	assert_int_equal(url_text(&u, text, sizeof text), 0);
	assert_string_equal(text, want);
}

static void a_segment_without_value_goes_with_its_slash(void **state)
{
	(void)state;
	v1_direct_routes(&flow);
	url_is(flow.agents, 0, 0, "?agentName=x",
	       "https://p.example/tenant/_apis/distributedtask/"
	       "pools/0/agents?agentName=x");
	url_is(flow.agents, 7, UINT64_MAX, "",
	       "https://p.example/tenant/_apis/distributedtask/pools/7/agents/"
	       "18446744073709551615");
	url_is(flow.pools, -1, 0, "?poolType=Automation",
	       "https://p.example/tenant/_apis/distributedtask/pools?poolType=Automation");
	url_is("//a///{poolId}/{other}/{AGENTID}/b/", -1, 3, "", "https://p.example/tenant/a/3/b");
}

static void route(const char *relative, const char *want)
{
	struct err e = ERR_INIT;
	cleanup_buf struct buf b = {0};
	char got[ROUTE_MAX] = "";

	buf_init(&b, 4096);
	assert_int_equal(buf_putf(&b,
				  "{\"locationServiceData\":{\"serviceDefinitions\":["
				  "{\"identifier\":\"other\",\"relativePath\":\"/x\"},"
				  "{\"serviceType\":\"distributedtask\",\"identifier\":"
				  "\"E298EF32-5878-4CAB-993C-043836571F42\",\"displayName\":"
				  "\"agents\",\"relativePath\":\"%s\"}]}}",
				  relative),
			 0);
	if (want == NULL) {
		assert_int_equal(v1_read_route(b.data, b.len, AGENTS, got, sizeof got, &e), -1);
		assert_int_equal(e.code, XC_PROTOCOL);
		return;
	}
	if (v1_read_route(b.data, b.len, AGENTS, got, sizeof got, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(got, want);
}

static void routes_are_read_by_their_id_with_area_and_resource_filled_in(void **state)
{
	(void)state;
	route("/_apis/{area}/pools/{poolId}/{resource}/{agentId}",
	      "/_apis/distributedtask/pools/{poolId}/agents/{agentId}");
	route("_apis/v1/Agent/{poolId}/{agentId}", "/_apis/v1/Agent/{poolId}/{agentId}");
}

static void a_route_that_leads_elsewhere_is_refused(void **state)
{
	(void)state;
	route("/../other/{agentId}", NULL);
	route("/a?x={agentId}", NULL);
	route("/a%2f..", NULL);
	route("/a#b", NULL);
}

static void connection_data_without_the_resource_is_named(void **state)
{
	static const char text[] = "{\"locationServiceData\":{\"serviceDefinitions\":[]}}";
	struct err e = ERR_INIT;
	char got[ROUTE_MAX];

	(void)state;
	assert_int_equal(v1_read_route(text, strlen(text), AGENTS, got, sizeof got, &e), -1);
	assert_non_null(strstr(e.text, AGENTS));
	assert_int_equal(v1_read_route("{}", 2, AGENTS, got, sizeof got, &e), -1);
	assert_non_null(strstr(e.text, "locationServiceData"));
}

static void the_version_is_the_listeners_in_the_list_of_libraries(void **state)
{
	static const struct {
		const char *text, *version;
	} rows[] = {
		{"{\"libraries\":{\"Runner.Sdk/1.0.0\":{},\"Runner.Listener/2.336.0\":{}}}",
		 "2.336.0"},
		{"{\"libraries\":{\"Runner.Listener/x\":{}}}", NULL},
		{"{\"libraries\":{\"Runner.Listener.Tests/2.0.0\":{}}}", NULL},
		{"{\"libraries\":{}}", NULL},
		{"{\"libraries\":[]}", NULL},
		{"{}", NULL},
		{"nonsense", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		char v[64] = "";
		int rc = version_from_deps(rows[i].text, strlen(rows[i].text), v, sizeof v, &e);
		assert_int_equal(rc, rows[i].version != NULL ? 0 : -1);
		if (rows[i].version != NULL)
			assert_string_equal(v, rows[i].version);
	}
}

static void what_the_listener_prints_must_be_a_version(void **state)
{
	static const struct {
		const char *text, *version;
	} rows[] = {
		{"2.336.0\n", "2.336.0"},
		{" 2.336.0 \r\nmore\n", "2.336.0"},
		{"2.336\n", "2.336"},
		{"", NULL},
		{"2\n", NULL},
		{"2..3\n", NULL},
		{"2.336.0-x\n", NULL},
		{"error\n", NULL},
		{"1.2.3.4.5", NULL},
		{".1.2", NULL},
		{"1.2.", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		char v[64] = "";
		int rc = version_from_output(rows[i].text, v, sizeof v, &e);
		if ((rc == 0) != (rows[i].version != NULL))
			fail_msg("\"%s\"", rows[i].text);
		if (rc == 0)
			assert_string_equal(v, rows[i].version);
		else
			assert_int_equal(e.code, XC_FILES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_without_value_goes_with_its_slash),
		cmocka_unit_test(routes_are_read_by_their_id_with_area_and_resource_filled_in),
		cmocka_unit_test(a_route_that_leads_elsewhere_is_refused),
		cmocka_unit_test(connection_data_without_the_resource_is_named),
		cmocka_unit_test(the_version_is_the_listeners_in_the_list_of_libraries),
		cmocka_unit_test(what_the_listener_prints_must_be_a_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
