#include "init/loop.h"

#include "init/sig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Everything here blocks signals, so each test is a child whose status tells: 0, or the line that
 * did not hold. */
#define HOLDS(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			return __LINE__ % 251 + 1;                                                 \
	} while (0)

static int in_child(int (*fn)(void))
{
	int status;
	pid_t p = fork();

	if (p == 0) {
		sig_block_all();
		_exit(fn());
	}
	assert_int_equal(waitpid(p, &status, 0), p);
	return loop_status_code(status);
}

static int many_signals(struct loop *l)
{
	struct signalfd_siginfo si;
	int seen = 0;

	for (int s = 40; s < 60; s++)
		HOLDS(kill(getpid(), s) == 0);
	loop_wait(l, deadline_in(20000));
	for (int s = 40; s < 60; s++) {
		HOLDS(loop_signal(l, &si));
		HOLDS(si.ssi_signo == (uint32_t)s);
		HOLDS(si.ssi_pid == (uint32_t)getpid());
		seen++;
	}
	HOLDS(!loop_signal(l, &si));
	HOLDS(seen == 20);
	return 0;
}

static int through_a_signalfd(void)
{
	struct loop l;
	struct err e = ERR_INIT;

	HOLDS(loop_init(&l, &e) == 0);
	return many_signals(&l);
}

static int without_a_descriptor(void)
{
	struct rlimit none = {3, 3};
	struct loop l;
	struct err e = ERR_INIT;

	(void)close(3);
	HOLDS(setrlimit(RLIMIT_NOFILE, &none) == 0);
	HOLDS(loop_init(&l, &e) == -1);
	HOLDS(e.code == XC_SYSTEM);
	HOLDS(l.sigfd == -1);
	return many_signals(&l);
}

static int deadlines_pass(void)
{
	struct loop l;
	struct err e = ERR_INIT;
	int64_t began = clock_mono_ms();
	struct signalfd_siginfo si;

	HOLDS(loop_init(&l, &e) == 0);
	loop_wait(&l, deadline_in(50));
	HOLDS(clock_mono_ms() - began >= 50);
	HOLDS(!loop_signal(&l, &si));
	loop_wait(&l, deadline_in(-5)); /* passed: at once */
	return 0;
}

static int descriptors_are_told_apart(void)
{
	struct loop l;
	struct err e = ERR_INIT;
	int a[2], b[2];

	HOLDS(loop_init(&l, &e) == 0);
	HOLDS(pipe(a) == 0 && pipe(b) == 0);
	l.fds[1] = a[0];
	l.fds[7] = b[0];
	HOLDS(write(b[1], "x", 1) == 1);
	loop_wait(&l, DEADLINE_NEVER);
	HOLDS(l.ready[7] && !l.ready[1] && !l.ready[0]);
	(void)close(a[1]); /* an end counts as readable */
	loop_wait(&l, DEADLINE_NEVER);
	HOLDS(l.ready[7] && l.ready[1]);
	l.fds[7] = -1;
	loop_wait(&l, DEADLINE_NEVER);
	HOLDS(!l.ready[7] && l.ready[1]);
	return 0;
}

static int batches(void)
{
	enum { CHILDREN = LOOP_REAP_BATCH + 20 };
	struct loop l;
	struct err e = ERR_INIT;
	int status, n = 0;
	siginfo_t si;
	pid_t pid;

	HOLDS(loop_init(&l, &e) == 0);
	HOLDS(!loop_has_children());
	for (int i = 0; i < CHILDREN; i++) {
		pid_t p = fork();
		HOLDS(p >= 0);
		if (p == 0)
			_exit(i % 200);
		HOLDS(waitid(P_PID, (id_t)p, &si, WEXITED | WNOWAIT) == 0);
	}
	HOLDS(loop_has_children());
	while (loop_reap(&l, &pid, &status))
		n++;
	HOLDS(n == LOOP_REAP_BATCH && loop_reap_more(&l));
	loop_wait(&l, DEADLINE_NEVER); /* comes back at once */
	while (loop_reap(&l, &pid, &status))
		n++;
	HOLDS(n == CHILDREN && !loop_reap_more(&l) && !loop_has_children());
	return 0;
}

static int one_sigchld_for_many(void)
{
	struct signalfd_siginfo si;
	struct loop l;
	struct err e = ERR_INIT;
	siginfo_t end;
	int n = 0;

	HOLDS(loop_init(&l, &e) == 0);
	for (int i = 0; i < 5; i++) {
		pid_t p = fork();
		if (p == 0)
			_exit(0);
		HOLDS(waitid(P_PID, (id_t)p, &end, WEXITED | WNOWAIT) == 0);
	}
	loop_wait(&l, deadline_in(20000));
	while (loop_signal(&l, &si))
		n += si.ssi_signo == SIGCHLD;
	HOLDS(n == 1);
	return 0;
}

static void pending_signals_come_one_by_one_and_then_none(void **state)
{
	(void)state;
	assert_int_equal(in_child(through_a_signalfd), 0);
}

static void without_a_free_descriptor_signals_come_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(in_child(without_a_descriptor), 0);
}

static void a_deadline_ends_the_wait(void **state)
{
	(void)state;
	assert_int_equal(in_child(deadlines_pass), 0);
}

static void each_watched_descriptor_has_its_own_answer(void **state)
{
	(void)state;
	assert_int_equal(in_child(descriptors_are_told_apart), 0);
}

static void children_are_reaped_in_batches_until_none_is_left(void **state)
{
	(void)state;
	assert_int_equal(in_child(batches), 0);
}

static void the_ends_of_many_children_are_one_signal(void **state)
{
	(void)state;
	assert_int_equal(in_child(one_sigchld_for_many), 0);
}

static void a_wait_status_becomes_an_exit_status(void **state)
{
	(void)state;
	assert_int_equal(loop_status_code(0), 0);
	assert_int_equal(loop_status_code(255 << 8), 255);
	assert_int_equal(loop_status_code(SIGKILL), 137);
	assert_int_equal(loop_status_code(SIGSEGV | 0x80), 139);
	assert_int_equal(loop_status_code(64), 192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pending_signals_come_one_by_one_and_then_none),
		cmocka_unit_test(without_a_free_descriptor_signals_come_all_the_same),
		cmocka_unit_test(a_deadline_ends_the_wait),
		cmocka_unit_test(each_watched_descriptor_has_its_own_answer),
		cmocka_unit_test(children_are_reaped_in_batches_until_none_is_left),
		cmocka_unit_test(the_ends_of_many_children_are_one_signal),
		cmocka_unit_test(a_wait_status_becomes_an_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
