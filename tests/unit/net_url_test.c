#include "net/url.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct url parsed(const char *text)
{
	struct url u;
	struct err e = ERR_INIT;

	memset(&u, 0xee, sizeof u);
	if (url_parse(text, &u, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return u;
}

static void append(char *to, size_t size, const char *what)
{
	size_t n = strlen(to);

	assert_int_equal(str_copy(to + n, size - n, what), 0);
}

static void refused(const char *text, const char *why)
{
	struct url u, before;
	struct err e = ERR_INIT;

	memset(&u, 0x5a, sizeof u);
	before = u;
	if (url_parse(text, &u, &e) == 0)
		fail_msg("%s was accepted", text);
	assert_int_equal(e.code, XC_CONFIG);
	if (strstr(e.text, why) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", text, e.text, why);
	assert_memory_equal(&u, &before, sizeof u); /* written only on success */
}

static void a_url_is_taken_apart(void **state)
{
	struct url u = parsed("https://GitHub.Example.COM:8443/o/r?x=1#frag");

	(void)state;
	assert_true(u.tls);
	assert_string_equal(u.host, "github.example.com");
	assert_true(u.port_given);
	assert_int_equal(u.port, 8443);
	assert_string_equal(u.path, "/o/r?x=1");
}

static void defaults_are_filled_in(void **state)
{
	struct url u = parsed("HTTP://a");

	(void)state;
	assert_false(u.tls);
	assert_false(u.port_given);
	assert_int_equal(u.port, 80);
	assert_string_equal(u.path, "/");
	assert_int_equal(parsed("https://a?q").port, 443);
	assert_string_equal(parsed("https://a?q").path, "/?q");
	assert_string_equal(parsed("https://a#f").path, "/");
}

static void the_dot_of_a_whole_name_goes(void **state)
{
	(void)state;
	assert_string_equal(parsed("https://a.b./x").host, "a.b");
}

static void ipv6_literals_are_unwrapped_and_made_canonical(void **state)
{
	struct url u = parsed("https://[2001:DB8:0:0::1]:444/x");
	char text[URL_TEXT_MAX];

	(void)state;
	assert_true(u.host_is_v6);
	assert_string_equal(u.host, "2001:db8::1");
	assert_int_equal(u.port, 444);
	assert_int_equal(url_text(&u, text, sizeof text), 0);
	assert_string_equal(text, "https://[2001:db8::1]:444/x");
}

static void what_is_no_http_url_is_refused(void **state)
{
	(void)state;
	refused("", "begin with");
	refused("ftp://a/", "begin with");
	refused("https:/a", "begin with");
	refused("//a", "begin with");
	refused("https://", "host name");
	refused("https:///x", "host name");
	refused("https://.", "host name");
	refused("https://a..b/", "host name");
	refused("https://a b/", "blank");
	refused("https://a/\t", "blank");
	refused("https://a/\\x", "backslash");
	refused("https://a/\x7f", "control");
	refused("https://a/\xc3\xa9", "non-ASCII");
	refused("https://a%41/", "host name");
	refused("https://a:/", "port");
	refused("https://a:0/", "port");
	refused("https://a:65536/", "port");
	refused("https://a:123456/", "port");
	refused("https://a:8o/", "port");
	refused("https://a:80:80/", "port");
	refused("https://user@a/", "user names");
	refused("https://user:secret@a/", "user names");
	refused("https://[::1/", "brackets");
	refused("https://[1.2.3.4]/", "brackets");
	refused("https://[::1]x/", "bracket");
	refused("https://[]/", "brackets");
	refused("https://[fe80::1%25eth0]/", "brackets");
}

static void numbers_that_are_addresses_to_some_and_names_to_others_are_refused(void **state)
{
	(void)state;
	refused("https://127.1/", "host name");
	refused("https://1/", "host name");
	refused("https://256.1.1.1/", "host name");
	assert_string_equal(parsed("https://127.0.0.1/").host, "127.0.0.1");
	assert_string_equal(parsed("https://1a/").host, "1a");
}

static void parts_that_are_too_long_are_refused(void **state)
{
	char text[4096] = "https://", label[65];

	(void)state;
	memset(label, 'a', 64);
	label[64] = 0;
	append(text, sizeof text, label);
	refused(text, "host name");
	text[8 + 63] = 0;
	(void)parsed(text);
	text[8] = 0;
	for (int i = 0; i < 130; i++)
		append(text, sizeof text, "a.");
	refused(text, "host name");
	memcpy(text, "https://a/", 11);
	memset(text + 10, 'x', URL_PATH_MAX - 2);
	text[10 + URL_PATH_MAX - 2] = 0;
	(void)parsed(text);
	text[10 + URL_PATH_MAX - 2] = 'x';
	text[10 + URL_PATH_MAX - 1] = 0;
	refused(text, "path is too long");
}

static void the_error_does_not_repeat_the_url(void **state)
{
	struct url u;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(url_parse("https://user:hunter2@a/", &u, &e), -1);
	assert_null(strstr(e.text, "hunter2"));
}

static void the_port_is_written_only_when_it_is_not_the_schemes_own(void **state)
{
	struct url a = parsed("https://a:443/"), b = parsed("http://a:443/");
	char text[64];

	(void)state;
	assert_int_equal(url_origin(&a, text, sizeof text), 0);
	assert_string_equal(text, "https://a");
	assert_int_equal(url_origin(&b, text, sizeof text), 0);
	assert_string_equal(text, "http://a:443");
	assert_int_equal(url_authority(&b, text, sizeof text), 0);
	assert_string_equal(text, "a:443");
}

static void what_does_not_fit_is_a_failure(void **state)
{
	struct url u = parsed("https://abc.example:99/x");
	char small[8];

	(void)state;
	assert_int_equal(url_origin(&u, small, sizeof small), -1);
	assert_int_equal(url_authority(&u, small, sizeof small), -1);
	assert_int_equal(url_text(&u, small, sizeof small), -1);
	assert_int_equal(url_escape(small, sizeof small, "a/b/c"), -1);
	assert_int_equal(url_escape(small, sizeof small, "12345678"), -1);
	assert_int_equal(url_escape(small, 0, ""), -1);
}

static void origins_compare_scheme_host_and_port(void **state)
{
	struct url a = parsed("https://a/x"), b = parsed("https://A:443/y"),
		   c = parsed("https://a:444/"), d = parsed("http://a:443/"),
		   f = parsed("https://b/");

	(void)state;
	assert_true(url_same_origin(&a, &b));
	assert_false(url_same_origin(&a, &c));
	assert_false(url_same_origin(&a, &d));
	assert_false(url_same_origin(&a, &f));
}

static void joining_puts_exactly_one_slash(void **state)
{
	static const char *const bases[] = {"https://a", "https://a/", "https://a//"};
	struct url u, out;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		u = parsed(bases[i]);
		assert_int_equal(url_join(&u, "//x/y?z=1", &out), 0);
		assert_string_equal(out.path, "/x/y?z=1");
	}
	u = parsed("https://a/b/c/");
	assert_int_equal(url_join(&u, "x", &out), 0);
	assert_string_equal(out.path, "/b/c/x");
	assert_int_equal(url_join(&u, "", &out), 0);
	assert_string_equal(out.path, "/b/c/");
}

static void joining_refuses_what_would_change_the_meaning(void **state)
{
	struct url u = parsed("https://a/b?q=1"), v = parsed("https://a/b"), out;
	char big[URL_PATH_MAX + 1];

	(void)state;
	assert_int_equal(url_join(&u, "x", &out), -1);
	assert_int_equal(url_join(&v, "x y", &out), -1);
	assert_int_equal(url_join(&v, "x#y", &out), -1);
	assert_int_equal(url_join(&v, "x\r\ny", &out), -1);
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	assert_int_equal(url_join(&v, big, &out), -1);
}

static void escaping_keeps_the_unreserved_characters(void **state)
{
	char out[64];

	(void)state;
	assert_int_equal(url_escape(out, sizeof out, "Az09-._~ /?&=%\xc3\xa9"), 0);
	assert_string_equal(out, "Az09-._~%20%2F%3F%26%3D%25%C3%A9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_is_taken_apart),
		cmocka_unit_test(defaults_are_filled_in),
		cmocka_unit_test(the_dot_of_a_whole_name_goes),
		cmocka_unit_test(ipv6_literals_are_unwrapped_and_made_canonical),
		cmocka_unit_test(what_is_no_http_url_is_refused),
		cmocka_unit_test(
			numbers_that_are_addresses_to_some_and_names_to_others_are_refused),
		cmocka_unit_test(parts_that_are_too_long_are_refused),
		cmocka_unit_test(the_error_does_not_repeat_the_url),
		cmocka_unit_test(the_port_is_written_only_when_it_is_not_the_schemes_own),
		cmocka_unit_test(what_does_not_fit_is_a_failure),
		cmocka_unit_test(origins_compare_scheme_host_and_port),
		cmocka_unit_test(joining_puts_exactly_one_slash),
		cmocka_unit_test(joining_refuses_what_would_change_the_meaning),
		cmocka_unit_test(escaping_keeps_the_unreserved_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
