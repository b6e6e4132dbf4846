/* The messages between PID 1 and the registrar: both ends in this process, no registrar. */
#include "base/cleanup.h"
#include "base/str.h"
#include "init/registrar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static struct registrar r;
static struct reg_report report, sent;
static struct reg_order order;
static struct gh_runner runner;
static struct reg_wish wish;
static int peer;

static int linked(void **state)
{
	int pair[2];

	(void)state;
	registrar_init(&r);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	r.sock = pair[0];
	peer = pair[1];
	memset(&sent, 0, sizeof sent);
	memset(&runner, 0, sizeof runner);
	runner.id = UINT64_C(1) << 60;
	assert_int_equal(str_copy(runner.name, sizeof runner.name, "r1"), 0);
	return 0;
}

static int unlinked(void **state)
{
	(void)state;
	fd_close(&r.sock);
	fd_close(&peer);
	return 0;
}

static void the_order_to_remove_is_small_and_names_the_runner(void **state)
{
	ssize_t n;

	(void)state;
	runner.n_files = 3;
	assert_int_equal(registrar_remove(&r, &runner, false, true, deadline_in(1000)), 0);
	n = recv(peer, &order, sizeof order, MSG_DONTWAIT);
	assert_in_range(n, 1, 24576);
	assert_int_equal(order.command, REG_REMOVE);
	assert_true(order.killed);
	assert_int_equal(order.runner.id, runner.id);
	assert_int_equal(order.runner.n_files, 0);
	assert_string_equal(order.runner.name, "r1");
	assert_int_equal(order.seq, r.seq);
}

static void every_order_has_its_own_number(void **state)
{
	uint32_t before;

	(void)state;
	assert_int_equal(registrar_predecessor(&r, &wish, 17, "old", deadline_in(1000)), 0);
	before = r.seq;
	assert_int_equal(registrar_finish(&r), 0);
	assert_true(r.seq != before);
	assert_true(recv(peer, &order, sizeof order, MSG_DONTWAIT) > 0);
	assert_int_equal(order.command, REG_PREDECESSOR);
	assert_int_equal(order.id, 17);
	assert_string_equal(order.name, "old");
	assert_true(recv(peer, &order, sizeof order, MSG_DONTWAIT) > 0);
	assert_int_equal(order.command, REG_FINISH);
}

static void the_largest_report_arrives_whole(void **state)
{
	(void)state;
	sent.kind = REG_REGISTERED;
	sent.runner.n_files = GH_FILES_MAX;
	memset(sent.runner.files, 0x5a, sizeof sent.runner.files);
	assert_int_equal(send(peer, &sent, sizeof sent, MSG_DONTWAIT), sizeof sent);
	assert_int_equal(registrar_next(&r, &report), 1);
	assert_memory_equal(report.runner.files, sent.runner.files, sizeof sent.runner.files);
	assert_int_equal(registrar_next(&r, &report), 0);
}

static void a_short_report_has_no_files_and_ended_texts(void **state)
{
	(void)state;
	sent.kind = REG_FAILED;
	sent.runner.n_files = 99;
	memset(sent.err.text, 'x', sizeof sent.err.text);
	memset(sent.runner.name, 'y', sizeof sent.runner.name);
	assert_true(send(peer, &sent, offsetof(struct reg_report, runner.files), MSG_DONTWAIT) > 0);
	assert_int_equal(registrar_next(&r, &report), 1);
	assert_int_equal(report.runner.n_files, 0);
	assert_int_equal(strlen(report.err.text), sizeof report.err.text - 1);
	assert_int_equal(strlen(report.runner.name), sizeof report.runner.name - 1);
}

static void a_registrar_that_is_gone_or_talks_nonsense_is_told(void **state)
{
	(void)state;
	assert_int_equal(send(peer, "?", 1, MSG_DONTWAIT), 1);
	assert_int_equal(registrar_next(&r, &report), -1);
	fd_close(&peer);
	assert_int_equal(registrar_next(&r, &report), -1);
	assert_int_equal(registrar_finish(&r), -1);
	fd_close(&r.sock);
	assert_int_equal(registrar_next(&r, &report), -1);
	assert_int_equal(registrar_remove(&r, &runner, false, false, deadline_in(1)), -1);
}

static void an_order_that_nobody_takes_does_not_block(void **state)
{
	int rc = 0;

	(void)state;
	for (int i = 0; i < 10000 && rc == 0; i++)
		rc = registrar_finish(&r);
	assert_int_equal(rc, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_order_to_remove_is_small_and_names_the_runner,
						linked, unlinked),
		cmocka_unit_test_setup_teardown(every_order_has_its_own_number, linked, unlinked),
		cmocka_unit_test_setup_teardown(the_largest_report_arrives_whole, linked, unlinked),
		cmocka_unit_test_setup_teardown(a_short_report_has_no_files_and_ended_texts, linked,
						unlinked),
		cmocka_unit_test_setup_teardown(a_registrar_that_is_gone_or_talks_nonsense_is_told,
						linked, unlinked),
		cmocka_unit_test_setup_teardown(an_order_that_nobody_takes_does_not_block, linked,
						unlinked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
