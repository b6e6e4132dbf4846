#include "gh/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_form_of_url_gets_its_entity_and_its_api(void **state)
{
	static const struct {
		const char *in, *url, *api, *entity;
		enum gh_scope_kind kind;
		bool hosted;
	} rows[] = {
		{"https://github.com/acme", "https://github.com/acme", "https://api.github.com/",
		 "/orgs/acme", GH_ORG, true},
		{"https://github.com/acme/", "https://github.com/acme", "https://api.github.com/",
		 "/orgs/acme", GH_ORG, true},
		{"https://github.com/acme/widget", "https://github.com/acme/widget",
		 "https://api.github.com/", "/repos/acme/widget", GH_REPO, true},
		{"https://github.com//acme//widget.git/", "https://github.com/acme/widget",
		 "https://api.github.com/", "/repos/acme/widget", GH_REPO, true},
		{"https://github.com/acme/widget.git.git/", "https://github.com/acme/widget",
		 "https://api.github.com/", "/repos/acme/widget", GH_REPO, true},
		{"https://github.com/acme/widget.GIT", "https://github.com/acme/widget",
		 "https://api.github.com/", "/repos/acme/widget", GH_REPO, true},
		{"https://github.com/acme/.git", "https://github.com/acme/.git",
		 "https://api.github.com/", "/repos/acme/.git", GH_REPO, true},
		{"https://GitHub.com/acme/widget?tab=readme#top", "https://github.com/acme/widget",
		 "https://api.github.com/", "/repos/acme/widget", GH_REPO, true},
		{"https://www.github.com/acme", "https://github.com/acme",
		 "https://api.github.com/", "/orgs/acme", GH_ORG, true},
		{"https://github.com/Enterprises/big", "https://github.com/enterprises/big",
		 "https://api.github.com/", "/enterprises/big", GH_ENTERPRISE, true},
		{"https://octo.ghe.com/acme", "https://octo.ghe.com/acme",
		 "https://api.octo.ghe.com/", "/orgs/acme", GH_ORG, true},
		{"https://ghes.corp/acme/widget", "https://ghes.corp/acme/widget",
		 "https://ghes.corp/api/v3", "/repos/acme/widget", GH_REPO, false},
		{"https://ghes.corp:8443/enterprises/big", "https://ghes.corp:8443/enterprises/big",
		 "https://ghes.corp:8443/api/v3", "/enterprises/big", GH_ENTERPRISE, false},
		{"https://ghe.com/acme", "https://ghe.com/acme", "https://ghe.com/api/v3",
		 "/orgs/acme", GH_ORG, false},
		{"https://localhost/acme", "https://localhost/acme", "https://localhost/api/v3",
		 "/orgs/acme", GH_ORG, false},
		{"https://github.localhost/acme", "https://github.localhost/acme",
		 "https://api.github.localhost/", "/orgs/acme", GH_ORG, true},
		{"https://notgithub.com/acme", "https://notgithub.com/acme",
		 "https://notgithub.com/api/v3", "/orgs/acme", GH_ORG, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		char api[URL_TEXT_MAX];
		struct gh_scope s;
		if (gh_scope_parse(rows[i].in, false, &s, &e) < 0)
			fail_msg("%s: %s", rows[i].in, e.text);
		assert_string_equal(s.url, rows[i].url);
		assert_int_equal(url_text(&s.api, api, sizeof api), 0);
		assert_string_equal(api, rows[i].api);
		assert_string_equal(s.entity, rows[i].entity);
		assert_int_equal(s.kind, rows[i].kind);
		assert_int_equal(s.hosted, rows[i].hosted);
	}
}

static void a_hosted_name_can_be_forced_to_be_ghes(void **state)
{
	struct err e = ERR_INIT;
	struct gh_scope s;

	(void)state;
	assert_int_equal(gh_scope_parse("https://octo.ghe.com/acme", true, &s, &e), 0);
	assert_false(s.hosted);
	assert_string_equal(s.api.host, "octo.ghe.com");
	assert_string_equal(s.api.path, "/api/v3");
}

static void what_is_no_place_for_a_runner_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *in, *says;
	} rows[] = {
		{"https://github.com", "no part"},
		{"https://github.com/", "no part"},
		{"https://github.com/a/b/c", "more than two parts"},
		{"https://github.com/acme/widget/settings/actions/runners", "more than two parts"},
		{"http://github.com/acme", "use https"},
		{"https://github.com/enterprises", "enterprise's name is missing"},
		{"https://api.github.com/repos", "api.github.com is the API"},
		{"https://github.com/acme/../x", "more than two parts"},
		{"https://github.com/../x", "\"..\""},
		{"https://github.com/acme/...git", "\"..\""},
		{"https://github.com/acme/...git.git/", "\"..\""},
		{"https://github.com/acme%2fx", "'%'"},
		{"https://github.com/a@b", "'@'"},
		{"github.com/acme", ""},
		{"ftp://github.com/acme", ""},
		{"https://user:pw@github.com/acme", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		struct gh_scope s = {.hosted = true};
		if (gh_scope_parse(rows[i].in, false, &s, &e) != -1)
			fail_msg("%s was accepted", rows[i].in);
		assert_int_equal(e.code, XC_CONFIG);
		if (strstr(e.text, rows[i].says) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].in, e.text,
				 rows[i].says);
		assert_string_equal(s.url, ""); /* outputs are written on success only */
	}
}

static void an_over_long_part_is_refused(void **state)
{
	struct err e = ERR_INIT;
	char url[600] = "https://github.com/";
	struct gh_scope s;

	(void)state;
	memset(url + strlen(url), 'a', 400);
	assert_int_equal(gh_scope_parse(url, false, &s, &e), -1);
	assert_non_null(strstr(e.text, "too long"));
}

static void the_tenant_must_be_https_and_on_a_ghes_below_its_own_host(void **state)
{
	static const struct {
		const char *scope, *tenant;
		bool ok;
	} rows[] = {
		{"https://github.com/acme", "https://pipelines.actions.githubusercontent.com/x/",
		 true},
		{"https://github.com/acme", "http://pipelines.actions.githubusercontent.com/x/",
		 false},
		{"https://github.com/acme", "not a url", false},
		{"https://ghes.corp/acme", "https://ghes.corp/_services/pipelines/x/", true},
		{"https://ghes.corp/acme", "https://ghes.corp:443/_services/pipelines/x/", true},
		{"https://ghes.corp:443/acme", "https://ghes.corp/_services/pipelines/x/", true},
		{"https://ghes.corp/acme", "https://pipelines.GHES.corp/x/", true},
		{"https://ghes.corp:8443/acme", "https://ghes.corp:8443/x/", true},
		{"https://ghes.corp:8443/acme", "https://ghes.corp/x/", false},
		{"https://ghes.corp/acme", "https://evilghes.corp/x/", false},
		{"https://ghes.corp/acme", "https://ghes.corp.evil.example/x/", false},
		{"https://ghes.corp/acme", "https://corp/x/", false},
		{"https://ghes.corp/acme", "http://ghes.corp/x/", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = ERR_INIT;
		struct gh_scope s;
		assert_int_equal(gh_scope_parse(rows[i].scope, false, &s, &e), 0);
		if ((gh_scope_check_tenant(&s, rows[i].tenant, &e) == 0) != rows[i].ok)
			fail_msg("%s with %s", rows[i].scope, rows[i].tenant);
		if (!rows[i].ok)
			assert_int_equal(e.code, XC_PROTOCOL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_url_gets_its_entity_and_its_api),
		cmocka_unit_test(a_hosted_name_can_be_forced_to_be_ghes),
		cmocka_unit_test(what_is_no_place_for_a_runner_is_refused_with_a_reason),
		cmocka_unit_test(an_over_long_part_is_refused),
		cmocka_unit_test(the_tenant_must_be_https_and_on_a_ghes_below_its_own_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
