/* What a fault of PID 1 does, seen from the registrar's end of the socket. */
#include "init/fault.h"

#include "base/deadline.h"
#include "init/loop.h"
#include "init/registrar.h"
#include "init/sig.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS "runner \"r\" (id 7) may still be registered: remove it by hand"

/* The sanitizers would put their own handlers in the way of the faults that are made here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:use_"
	       "sigaltstack=0:"
	       "allow_user_segv_handler=1";
}

enum answer { REMOVED, NOT_REMOVED, BUSY_FIRST, SILENT_END, NO_REGISTRAR };

struct outcome {
	int code;
	char command;
	char text[1024];
};

static void recurse(volatile char *up, int depth)
{
	volatile char room[65536];

	room[0] = *up;
	if (depth > 0)
		recurse(room, depth - 1);
	*up = room[0];
}

static void fault(int how)
{
	volatile char start = 0;

	if (how == -1)
		recurse(&start, 1 << 20); /* runs out of stack: the handler needs one of its own */
	else if (how == SIGABRT)
		abort();
	else
		(void)syscall(SYS_kill, getpid(), how);
}

static void reply(int sock, enum reg_report_kind kind)
{
	static struct reg_report r;

	r.kind = kind;
	assert_int_equal(send(sock, &r, 600, 0), 600);
}

static struct outcome run(int how, enum answer answer, const char *words)
{
	struct outcome o = {.command = 0};
	int sock[2], err[2], status;
	struct pollfd p;
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	assert_int_equal(pipe(err), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(sock[1]);
		(void)dup2(err[1], 2);
		(void)close(err[0]);
		(void)close(err[1]);
		sig_block_all();
		fault_arm();
		fault_registrar(answer == NO_REGISTRAR ? -1 : sock[0]);
		fault_last_words(words);
		fault(how);
		_exit(99);
	}
	(void)close(sock[0]);
	(void)close(err[1]);
	p = (struct pollfd){sock[1], POLLIN, 0};
	if (poll(&p, 1, 20000) == 1 && recv(sock[1], &o.command, 1, 0) == 1) {
		if (answer == BUSY_FIRST)
			reply(sock[1], REG_STARTED);
		if (answer == REMOVED || answer == BUSY_FIRST)
			reply(sock[1], REG_REMOVED);
		if (answer == NOT_REMOVED)
			reply(sock[1], REG_NOT_REMOVED);
	}
	(void)close(sock[1]);
	while ((r = read(err[0], o.text + n, sizeof o.text - 1 - n)) > 0)
		n += (size_t)r;
	(void)close(err[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status)); /* never dies by the signal itself */
	o.code = WEXITSTATUS(status);
	return o;
}

static void each_fault_signal_removes_the_registration_and_exits(void **state)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};

	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		struct outcome o = run(faults[i], REMOVED, WORDS);
		assert_int_equal(o.code, 128 + faults[i]);
		assert_int_equal(o.command, REG_PANIC);
		assert_non_null(strstr(o.text, "init: error: "));
		assert_non_null(strstr(o.text, "deregistered after a fault of init\n"));
		assert_null(strstr(o.text, "by hand"));
	}
}

static void a_stack_that_is_used_up_is_survived_long_enough(void **state)
{
	struct outcome o = run(-1, REMOVED, WORDS);

	(void)state;
	assert_int_equal(o.code, 128 + SIGSEGV);
	assert_int_equal(o.command, REG_PANIC);
	assert_non_null(strstr(o.text, "a bug in init: signal 11 at address 0x"));
}

static void other_reports_are_passed_over(void **state)
{
	struct outcome o = run(SIGSEGV, BUSY_FIRST, WORDS);

	(void)state;
	assert_non_null(strstr(o.text, "deregistered after a fault"));
}

static void a_removal_that_failed_is_said_with_id_and_remedy_as_the_last_line(void **state)
{
	static const enum answer bad[] = {NOT_REMOVED, SILENT_END, NO_REGISTRAR};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct outcome o = run(SIGSEGV, bad[i], WORDS);
		size_t n = strlen(o.text), k = strlen(WORDS "\n");

		assert_int_equal(o.code, 128 + SIGSEGV);
		assert_true(n > k);
		assert_string_equal(o.text + n - k, WORDS "\n");
	}
}

static void without_a_registration_nobody_is_asked(void **state)
{
	struct outcome o = run(SIGSEGV, REMOVED, "");

	(void)state;
	assert_int_equal(o.code, 128 + SIGSEGV);
	assert_int_equal(o.command, 0);
	assert_null(strstr(o.text, "removing"));
}

static void who_sent_a_fault_signal_is_told(void **state)
{
	struct outcome o = run(SIGBUS, REMOVED, WORDS);

	(void)state;
	assert_non_null(strstr(o.text, "fault signal 7 was sent to init, it claims by pid "));
}

static void last_words_are_cut_not_overrun(void **state)
{
	char big[2000];
	struct outcome o;

	(void)state;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	o = run(SIGSEGV, NOT_REMOVED, big);
	assert_non_null(strstr(o.text, "xxxx\n"));
	assert_true(strlen(o.text) < 800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_signal_removes_the_registration_and_exits),
		cmocka_unit_test(a_stack_that_is_used_up_is_survived_long_enough),
		cmocka_unit_test(other_reports_are_passed_over),
		cmocka_unit_test(a_removal_that_failed_is_said_with_id_and_remedy_as_the_last_line),
		cmocka_unit_test(without_a_registration_nobody_is_asked),
		cmocka_unit_test(who_sent_a_fault_signal_is_told),
		cmocka_unit_test(last_words_are_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
