#include "net/dns.h"

#include "guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t answer_for(unsigned char *m, const char *name, uint16_t type, unsigned flags)
{
	size_t n = dns_query(m, name, type, 0x1234);

	m[2] = (unsigned char)(flags >> 8);
	m[3] = (unsigned char)flags;
	return n;
}

/* Appends one record with a compressed name. */
static size_t record(unsigned char *m, size_t n, uint16_t type, const char *data, size_t len)
{
	const unsigned char fixed[] = {
		0xc0, 12, (unsigned char)(type >> 8), (unsigned char)type, 0, 1, 0, 0, 0,
		60,   0,  (unsigned char)len};

	memcpy(m + n, fixed, sizeof fixed);
	memcpy(m + n + sizeof fixed, data, len);
	m[7]++;
	return n + sizeof fixed + len;
}

static enum dns_parsed parse(const unsigned char *m, size_t n, const char *name, uint16_t type,
			     struct dns_answer *a)
{
	struct guarded g = guard(m, n);
	enum dns_parsed p = dns_answer_parse(g.p, n, name, type, 0x1234, a);

	unguard(&g);
	return p;
}

static void a_question_is_written(void **state)
{
	unsigned char q[DNS_QUERY_MAX];
	static const unsigned char want[] = {0x12, 0x34, 1,   0, 0,   1,   0, 0, 0,  0, 0,
					     0,	   1,	 'a', 2, 'b', 'c', 0, 0, 28, 0, 1};

	(void)state;
	assert_int_equal(dns_query(q, "a.bc", DNS_AAAA, 0x1234), sizeof want);
	assert_memory_equal(q, want, sizeof want);
	assert_int_equal(dns_query(q, "a.bc.", DNS_AAAA, 0x1234), sizeof want);
}

static void what_is_no_name_gives_no_question(void **state)
{
	unsigned char q[DNS_QUERY_MAX];
	char big[300], label[66];

	(void)state;
	assert_int_equal(dns_query(q, "", DNS_A, 1), 0);
	assert_int_equal(dns_query(q, ".", DNS_A, 1), 0);
	assert_int_equal(dns_query(q, "a..b", DNS_A, 1), 0);
	memset(label, 'x', 64);
	label[64] = 0;
	assert_int_equal(dns_query(q, label, DNS_A, 1), 0);
	label[63] = 0;
	assert_true(dns_query(q, label, DNS_A, 1) > 0);
	memset(big, 'x', sizeof big);
	for (size_t i = 1; i < sizeof big; i += 2)
		big[i] = '.';
	big[253] = 0; /* the longest name: 253 characters, 255 bytes on the wire */
	assert_int_equal(dns_query(q, big, DNS_A, 1), 12 + 255 + 4);
	big[253] = '.';
	big[255] = 0;
	assert_int_equal(dns_query(q, big, DNS_A, 1), 0);
}

static void addresses_are_taken_from_an_answer(void **state)
{
	unsigned char m[512];
	struct dns_answer a;
	size_t n = answer_for(m, "a.b", DNS_A, 0x8180);
	char text[ADDR_TEXT_MAX];

	(void)state;
	n = record(m, n, 5, "\1x\300\14", 4); /* a CNAME before them */
	n = record(m, n, DNS_A, "\12\0\0\1", 4);
	n = record(m, n, DNS_A, "\12\0\0\2", 4);
	n = record(m, n, DNS_AAAA, "0123456789abcdef", 16); /* not asked for */
	assert_int_equal(parse(m, n, "A.B", DNS_A, &a), DNS_ANSWER);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.rcode, 0);
	assert_false(a.truncated);
	addr_text(&a.addr[1], text);
	assert_string_equal(text, "10.0.0.2");
}

static void ipv6_addresses_too(void **state)
{
	unsigned char m[512];
	struct dns_answer a;
	size_t n = answer_for(m, "a", DNS_AAAA, 0x8180);
	char text[ADDR_TEXT_MAX];

	(void)state;
	n = record(m, n, DNS_AAAA, " \1\r\270\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	assert_int_equal(parse(m, n, "a", DNS_AAAA, &a), DNS_ANSWER);
	addr_text(&a.addr[0], text);
	assert_string_equal(text, "2001:db8::1");
}

static void answers_to_other_questions_are_foreign(void **state)
{
	unsigned char m[512], q[DNS_QUERY_MAX];
	struct dns_answer a;
	size_t n = answer_for(m, "a.b", DNS_A, 0x8180);

	(void)state;
	assert_int_equal(parse(m, n, "a.b", DNS_A, &a), DNS_ANSWER);
	assert_int_equal(dns_answer_parse(m, n, "a.b", DNS_A, 0x1235, &a), DNS_FOREIGN);
	assert_int_equal(parse(m, n, "a.c", DNS_A, &a), DNS_FOREIGN);
	assert_int_equal(parse(m, n, "a.bb", DNS_A, &a), DNS_FOREIGN);
	assert_int_equal(parse(m, n, "", DNS_A, &a), DNS_FOREIGN);
	assert_int_equal(parse(m, n, "a.b", DNS_AAAA, &a), DNS_FOREIGN);
	m[n - 1] = 3; /* another class */
	assert_int_equal(parse(m, n, "a.b", DNS_A, &a), DNS_FOREIGN);
	m[n - 1] = 1;
	m[5] = 2; /* two questions */
	assert_int_equal(parse(m, n, "a.b", DNS_A, &a), DNS_FOREIGN);
	n = dns_query(q, "a.b", DNS_A, 0x1234); /* a question, not an answer */
	assert_int_equal(parse(q, n, "a.b", DNS_A, &a), DNS_FOREIGN);
	n = answer_for(m, "a.b", DNS_A, 0xa980); /* another opcode */
	assert_int_equal(parse(m, n, "a.b", DNS_A, &a), DNS_FOREIGN);
}

static void every_cut_of_an_answer_is_foreign_unless_it_says_so(void **state)
{
	unsigned char m[512];
	struct dns_answer a;
	size_t head = answer_for(m, "a.b", DNS_A, 0x8180),
	       n = record(m, head, DNS_A, "\12\0\0\1", 4);

	(void)state;
	n = record(m, n, DNS_A, "\12\0\0\2", 4);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(parse(m, k, "a.b", DNS_A, &a), DNS_FOREIGN);
	m[2] |= 2;
	for (size_t k = head; k < n; k++) {
		assert_int_equal(parse(m, k, "a.b", DNS_A, &a), DNS_ANSWER);
		assert_true(a.truncated);
		assert_int_equal(a.n, k < head + 16 ? 0 : 1);
	}
}

static void names_in_records_may_be_of_every_form_or_broken(void **state)
{
	unsigned char m[512];
	struct dns_answer a;
	size_t n = answer_for(m, "a", DNS_A, 0x8180);
	static const unsigned char plain[] = {1, 'x', 1, 'y', 0, 0,  1, 0, 1, 0,
					      0, 0,   9, 0,   4, 10, 0, 0, 7};

	(void)state;
	m[7] = 1;
	memcpy(m + n, plain, sizeof plain);
	assert_int_equal(parse(m, n + sizeof plain, "a", DNS_A, &a), DNS_ANSWER);
	assert_int_equal(a.n, 1);
	m[n] = 0x80; /* neither a label nor a pointer */
	assert_int_equal(parse(m, n + sizeof plain, "a", DNS_A, &a), DNS_FOREIGN);
	m[n] = 0x3f; /* a label that goes past the end */
	assert_int_equal(parse(m, n + sizeof plain, "a", DNS_A, &a), DNS_FOREIGN);
	m[n] = 0xc0;
	assert_int_equal(parse(m, n + 1, "a", DNS_A, &a), DNS_FOREIGN);
}

static void no_more_addresses_than_there_is_room_for(void **state)
{
	unsigned char m[1024];
	struct dns_answer a;
	size_t n = answer_for(m, "a", DNS_A, 0x8180);

	(void)state;
	for (int i = 0; i < 40; i++)
		n = record(m, n, DNS_A, "\12\0\0\1", 4);
	assert_int_equal(parse(m, n, "a", DNS_A, &a), DNS_ANSWER);
	assert_int_equal(a.n, DNS_ANSWER_ADDRS);
}

static void resolv_conf_is_read(void **state)
{
	static const char text[] =
		"# comment\n\nnameserver 10.0.0.1 # x\r\nnameserver ::1\n"
		"nameserver [127.0.0.1]:5353\nnameserver 10.0.0.4\noptions ndots:5\n"
		"domain old\nsearch a.example b.example ; c\nnameserver\nsearchx y\n";
	struct dns_conf c;
	char one[ADDR_TEXT_MAX];
	struct guarded g = guard(text, sizeof text - 1);

	(void)state;
	dns_conf_parse((const char *)g.p, sizeof text - 1, &c);
	unguard(&g);
	assert_int_equal(c.n_servers, 3);
	addr_text(&c.server[0], one);
	assert_string_equal(one, "10.0.0.1:53");
	addr_text(&c.server[1], one);
	assert_string_equal(one, "[::1]:53");
	addr_text(&c.server[2], one);
	assert_string_equal(one, "127.0.0.1:5353");
	assert_int_equal(c.n_search, 2);
	assert_string_equal(c.search[0], "a.example");
	assert_string_equal(c.search[1], "b.example");
}

static void without_a_server_the_local_one_is_asked(void **state)
{
	static const char *const texts[] = {
		"",
		"nameserver x",
		"nameserver [::1]",
		"nameserver [::1]:",
		"nameserver [::1]:0",
		"nameserver [::1",
		"nameserver [x]:53",
		"nameserver "
		"1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6"};
	struct dns_conf c;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		dns_conf_parse(texts[i], strlen(texts[i]), &c);
		assert_int_equal(c.n_servers, 1);
		assert_int_equal(c.server[0].b[0], 127);
		assert_int_equal(c.server[0].port, 53);
	}
}

static void search_lists_have_limits(void **state)
{
	char text[600] = "search a b c d e f g h ";
	struct dns_conf c;

	(void)state;
	dns_conf_parse(text, strlen(text), &c);
	assert_int_equal(c.n_search, DNS_SEARCH_MAX);
	memset(text + 7, 'x', 300);
	memcpy(text + 307, " short", 7);
	dns_conf_parse(text, strlen(text), &c);
	assert_int_equal(c.n_search, 1);
	assert_string_equal(c.search[0], "short");
}

static void the_hosts_file_is_searched(void **state)
{
	static const char text[] =
		"127.0.0.1\tlocalhost\n10.0.0.1 other Git.Example git\n#10.0.0.9 git\n"
		"::5 git.example # git.example\nx git\n10.0.0.2 gi\n10.0.0.3 git";
	struct net_addr a[4];
	struct guarded g = guard(text, sizeof text - 1);

	(void)state;
	assert_int_equal(dns_hosts_find((const char *)g.p, sizeof text - 1, "git.example", a, 4),
			 2);
	assert_int_equal(a[0].b[0], 10);
	assert_true(a[1].v6);
	assert_int_equal(dns_hosts_find((const char *)g.p, sizeof text - 1, "GIT", a, 4), 2);
	assert_int_equal(a[1].b[3], 3);
	assert_int_equal(dns_hosts_find((const char *)g.p, sizeof text - 1, "git", a, 1), 1);
	assert_int_equal(dns_hosts_find((const char *)g.p, sizeof text - 1, "g", a, 4), 0);
	unguard(&g);
}

static bool is_addr(const char *s, struct net_addr *a)
{
	return addr_parse(s, strlen(s), a);
}

static void addresses_are_parsed_whole_or_not(void **state)
{
	struct net_addr a, b;
	char text[ADDR_TEXT_MAX];

	(void)state;
	assert_true(is_addr("1.2.3.4", &a));
	assert_false(a.v6);
	assert_true(is_addr("fe80::1%1", &a));
	assert_int_equal(a.scope, 1);
	a.port = 53;
	addr_text(&a, text);
	assert_string_equal(text, "[fe80::1%1]:53");
	assert_true(is_addr("fe80::1%lo", &b));
	assert_true(addr_same(&a, &b));
	assert_true(is_addr("fe80::1", &b));
	assert_false(addr_same(&a, &b));
	assert_false(is_addr("fe80::1%nosuchif0", &b));
	assert_false(is_addr("fe80::1%0", &b));
	assert_false(is_addr("1.2.3", &b));
	assert_false(is_addr("", &b));
	assert_false(is_addr("::g", &b));
	assert_false(is_addr("1.2.3.4%1", &b));
	assert_false(addr_parse("1.2.3.4\0x", 9, &b));
}

static void socket_addresses_are_filled(void **state)
{
	struct net_addr a;
	struct sockaddr_storage sa;

	(void)state;
	assert_true(is_addr("1.2.3.4", &a));
	assert_true(addr_sockaddr(&a, &sa) > 0);
	assert_int_equal(sa.ss_family, AF_INET);
	assert_true(is_addr("::1", &a));
	assert_true(addr_sockaddr(&a, &sa) > 0);
	assert_int_equal(sa.ss_family, AF_INET6);
}

static void ranges_and_loopback_are_known(void **state)
{
	struct net_addr a, net, six;

	(void)state;
	assert_true(is_addr("10.1.2.3", &a) && is_addr("10.0.0.0", &net) && is_addr("::", &six));
	assert_true(addr_in(&a, &net, 8));
	assert_true(addr_in(&a, &net, 15));
	assert_false(addr_in(&a, &net, 16));
	assert_true(addr_in(&a, &a, 32));
	assert_false(addr_in(&a, &a, 33));
	assert_true(addr_in(&a, &net, 0));
	assert_false(addr_in(&a, &six, 0));
	assert_false(addr_is_loopback(&a));
	assert_true(is_addr("127.9.9.9", &a) && addr_is_loopback(&a));
	assert_true(is_addr("::1", &a) && addr_is_loopback(&a));
	assert_true(is_addr("::ffff:127.0.0.1", &a) && addr_is_loopback(&a));
	assert_true(is_addr("::2", &a) && !addr_is_loopback(&a));
	assert_true(is_addr("fd00::1", &a) && is_addr("fd00::", &net) && addr_in(&a, &net, 127) &&
		    !addr_in(&a, &net, 128));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_written),
		cmocka_unit_test(what_is_no_name_gives_no_question),
		cmocka_unit_test(addresses_are_taken_from_an_answer),
		cmocka_unit_test(ipv6_addresses_too),
		cmocka_unit_test(answers_to_other_questions_are_foreign),
		cmocka_unit_test(every_cut_of_an_answer_is_foreign_unless_it_says_so),
		cmocka_unit_test(names_in_records_may_be_of_every_form_or_broken),
		cmocka_unit_test(no_more_addresses_than_there_is_room_for),
		cmocka_unit_test(resolv_conf_is_read),
		cmocka_unit_test(without_a_server_the_local_one_is_asked),
		cmocka_unit_test(search_lists_have_limits),
		cmocka_unit_test(the_hosts_file_is_searched),
		cmocka_unit_test(addresses_are_parsed_whole_or_not),
		cmocka_unit_test(socket_addresses_are_filled),
		cmocka_unit_test(ranges_and_loopback_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
