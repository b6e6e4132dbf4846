#include "net/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct proxy good(const char *text)
{
	struct proxy p;
	struct err e = ERR_INIT;

	memset(&p, 0xee, sizeof p);
	if (proxy_parse(text, "https_proxy", &p, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return p;
}

static void is(const char *text, bool tls, const char *host, unsigned port, const char *auth)
{
	struct proxy p = good(text);

	assert_true(p.use);
	assert_int_equal(p.tls, tls);
	assert_string_equal(p.host, host);
	assert_int_equal(p.port, port);
	assert_string_equal(p.auth, auth);
}

static void bad(const char *text, const char *why)
{
	struct proxy p;
	struct err e = ERR_INIT;

	if (proxy_parse(text, "https_proxy", &p, &e) == 0)
		fail_msg("accepted: %s", text);
	assert_int_equal(e.code, XC_CONFIG);
	assert_non_null(strstr(e.text, "https_proxy"));
	assert_null(strstr(e.text, "hunter2"));
	if (strstr(e.text, why) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", text, e.text, why);
}

static void an_unset_or_empty_setting_means_no_proxy(void **state)
{
	(void)state;
	assert_false(good(NULL).use);
	assert_false(good("").use);
	assert_false(good(" \r\n").use);
}

static void the_scheme_may_be_missing(void **state)
{
	(void)state;
	is("10.0.0.1:3128", false, "10.0.0.1", 3128, "");
	is("proxy:3128", false, "proxy", 3128, "");
	is("proxy", false, "proxy", 80, "");
	is(" http://Proxy.Example:8080/ \n", false, "proxy.example", 8080, "");
	is("HTTPS://proxy", true, "proxy", 443, "");
	is("http://[::1]:3128", false, "::1", 3128, "");
	is("http://proxy:1/path?x#y", false, "proxy", 1, "");
}

static void the_credential_is_decoded_and_sent_as_basic(void **state)
{
	(void)state;
	is("http://user:pass@proxy:1", false, "proxy", 1, "Basic dXNlcjpwYXNz");
	is("user:pass@proxy:1", false, "proxy", 1, "Basic dXNlcjpwYXNz");
	is("http://user@proxy:1", false, "proxy", 1, "Basic dXNlcjo=");
	is("http://us%40er:p%3Aa%25%2f@proxy:1", false, "proxy", 1, "Basic dXNAZXI6cDphJS8=");
	is("http://a%3ab:c@proxy:1", false, "proxy", 1, "Basic YTpiOmM=");
	is("http://u:p@ss@proxy:1", false, "proxy", 1, "Basic dTpwQHNz");
	is("http://:@proxy:1", false, "proxy", 1, "Basic Og==");
}

static void what_is_no_proxy_is_refused_without_repeating_it(void **state)
{
	char big[3000] = "http://";

	(void)state;
	bad("socks5://hunter2:1080", "only http:// and https://");
	bad("ftp://hunter2", "only http:// and https://");
	bad("://x", "only http:// and https://");
	bad("http://", "host or port");
	bad("http://u:hunter2@", "host or port");
	bad("http://u:hunter2@proxy:x", "host or port");
	bad("http://u:hunter2@pro xy", "host or port");
	bad("http://u:hunter2%4@proxy", "escape");
	bad("http://u:hunter2%zz@proxy", "escape");
	bad("http://u%00:hunter2@proxy", "escape");
	memset(big + 7, 'x', 1500);
	memcpy(big + 1507, ":hunter2@proxy", 15);
	bad(big, "too long");
	memset(big + 7, 'x', 1200);
	big[1207] = 0;
	bad(big, "host or port");
	memcpy(big + 7, "u:", 2);
	memset(big + 9, 'x', 1100);
	memcpy(big + 1109, "@proxy", 7);
	bad(big, "too long");
}

static void names_for_messages_have_brackets_where_needed(void **state)
{
	struct proxy p = good("http://u:p@[::1]:3128");
	char name[64], small[4];

	(void)state;
	proxy_name(&p, name, sizeof name);
	assert_string_equal(name, "[::1]:3128");
	proxy_name(&p, small, sizeof small);
	proxy_wipe(&p);
	assert_int_equal(p.auth[0], 0);
}

static bool bypass(const char *list, const char *text)
{
	struct url u;

	assert_int_equal(url_parse(text, &u, NULL), 0);
	return proxy_bypassed(list, &u);
}

#define DIRECT(list, url)  assert_true(bypass((list), (url)))
#define PROXIED(list, url) assert_false(bypass((list), (url)))

static void loopback_is_never_proxied(void **state)
{
	(void)state;
	DIRECT(NULL, "https://localhost/");
	DIRECT("", "https://LocalHost:99/");
	DIRECT(NULL, "http://127.0.0.1/");
	DIRECT(NULL, "http://127.255.0.9/");
	DIRECT(NULL, "http://[::1]/");
	PROXIED(NULL, "http://128.0.0.1/");
	PROXIED(NULL, "http://localhost.example/");
	PROXIED(NULL, "http://[::2]/");
}

static void a_name_matches_itself_and_what_is_below_it(void **state)
{
	(void)state;
	DIRECT("example.com", "https://example.com/");
	DIRECT("example.com", "https://a.b.example.com/");
	DIRECT("EXAMPLE.com", "https://a.Example.COM/");
	PROXIED("example.com", "https://badexample.com/");
	PROXIED("example.com", "https://example.com.evil/");
	PROXIED("example.com", "https://example.org/");
	PROXIED("a.example.com", "https://example.com/");
}

static void a_leading_dot_means_only_below(void **state)
{
	(void)state;
	DIRECT(".example.com", "https://a.example.com/");
	PROXIED(".example.com", "https://example.com/");
	PROXIED(".", "https://example.com/");
}

static void lists_are_split_at_commas_and_blanks(void **state)
{
	(void)state;
	DIRECT(" a.com , b.com ,", "https://b.com/");
	DIRECT("a.com b.com\tc.com", "https://c.com/");
	PROXIED(",, ,", "https://b.com/");
}

static void a_star_alone_means_everything_and_elsewhere_nothing(void **state)
{
	(void)state;
	DIRECT("x, *", "https://b.com/");
	DIRECT("*", "https://10.0.0.1/");
	PROXIED("*.b.com", "https://a.b.com/");
	PROXIED("*.com", "https://b.com/");
}

static void a_port_must_be_the_targets(void **state)
{
	(void)state;
	DIRECT("b.com:443", "https://b.com/");
	PROXIED("b.com:443", "http://b.com/");
	DIRECT("b.com:8443", "https://a.b.com:8443/");
	PROXIED("b.com:8443", "https://b.com/");
	PROXIED("b.com:x", "https://b.com/");
	PROXIED("b.com:", "https://b.com/");
	PROXIED("b.com:123456", "https://b.com/");
	PROXIED(":443", "https://b.com/");
	DIRECT("10.0.0.1:443", "https://10.0.0.1/");
	PROXIED("10.0.0.1:444", "https://10.0.0.1/");
	DIRECT("[fd00::1]:443", "https://[fd00::1]/");
	PROXIED("[fd00::1]:444", "https://[fd00::1]/");
}

static void addresses_and_ranges_match(void **state)
{
	(void)state;
	DIRECT("10.1.2.3", "https://10.1.2.3/");
	PROXIED("10.1.2.3", "https://10.1.2.4/");
	DIRECT("10.0.0.0/8", "https://10.1.2.4/");
	PROXIED("10.0.0.0/8", "https://11.1.2.4/");
	DIRECT("fd00::1", "https://[fd00::1]/");
	DIRECT("[fd00::1]", "https://[fd00::1]/");
	DIRECT("fd00::/8", "https://[fdab::1]/");
	PROXIED("fd00::/8", "https://[fe00::1]/");
	PROXIED("10.0.0.0/33", "https://10.1.2.4/");
	PROXIED("10.0.0.0/x", "https://10.1.2.4/");
	PROXIED("10.0.0.0/", "https://10.1.2.4/");
	PROXIED("x/8", "https://10.1.2.4/");
	PROXIED("2.3", "https://10.1.2.3/");
	PROXIED(".2.3", "https://10.1.2.3/");
	PROXIED("10.0.0.0/8", "https://example.com/");
	PROXIED("[]", "https://10.1.2.3/");
	PROXIED("[x]:443", "https://10.1.2.3/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unset_or_empty_setting_means_no_proxy),
		cmocka_unit_test(the_scheme_may_be_missing),
		cmocka_unit_test(the_credential_is_decoded_and_sent_as_basic),
		cmocka_unit_test(what_is_no_proxy_is_refused_without_repeating_it),
		cmocka_unit_test(names_for_messages_have_brackets_where_needed),
		cmocka_unit_test(loopback_is_never_proxied),
		cmocka_unit_test(a_name_matches_itself_and_what_is_below_it),
		cmocka_unit_test(a_leading_dot_means_only_below),
		cmocka_unit_test(lists_are_split_at_commas_and_blanks),
		cmocka_unit_test(a_star_alone_means_everything_and_elsewhere_nothing),
		cmocka_unit_test(a_port_must_be_the_targets),
		cmocka_unit_test(addresses_and_ranges_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
