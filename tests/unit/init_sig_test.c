#include "init/sig.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t mask_now(void)
{
	uint64_t mask = 0;

	(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
	return mask;
}

static bool blocked(int signo)
{
	return (mask_now() >> (signo - 1) & 1) != 0;
}

static int in_child(int (*fn)(void))
{
	int status;
	pid_t p = fork();

	if (p == 0)
		_exit(fn());
	assert_int_equal(waitpid(p, &status, 0), p);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void what_would_end_an_ordinary_process_is_a_stop(void **state)
{
	static const int stops[] = {SIGTERM, SIGINT, SIGQUIT,	SIGHUP,	 SIGUSR1, SIGUSR2,
				    SIGALRM, SIGIO,  SIGVTALRM, SIGPROF, SIGPWR,  SIGSTKFLT};
	static const int others[] = {SIGWINCH, SIGURG,	SIGCONT, SIGCHLD, SIGTSTP, SIGTTIN,
				     SIGTTOU,  SIGPIPE, SIGXFSZ, SIGSEGV, SIGKILL, SIGSTOP};

	(void)state;
	for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
		assert_true(sig_is_stop(stops[i]));
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_false(sig_is_stop(others[i]));
	for (int s = 32; s <= 64; s++)
		assert_true(sig_is_stop(s));
	assert_false(sig_is_stop(0));
	assert_false(sig_is_stop(65));
	assert_false(sig_is_stop(-1));
}

static void all_is_forwarded_but_what_is_our_own(void **state)
{
	static const int ours[] = {SIGCHLD, SIGPIPE, SIGXFSZ, SIGKILL, SIGSTOP, SIGSEGV,
				   SIGBUS,  SIGILL,  SIGFPE,  SIGTRAP, SIGSYS,	SIGABRT};
	int n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		assert_false(sig_is_forwarded(ours[i]));
	for (int s = -1; s < 70; s++)
		n += sig_is_forwarded(s);
	assert_int_equal(n, 64 - (int)(sizeof ours / sizeof ours[0]));
}

static void names_are_those_that_runtimes_use(void **state)
{
	char room[24];

	(void)state;
	assert_string_equal(sig_name(SIGTERM, room, sizeof room), "SIGTERM");
	assert_string_equal(sig_name(SIGSTKFLT, room, sizeof room), "SIGSTKFLT");
	assert_string_equal(sig_name(34, room, sizeof room), "SIGRTMIN");
	assert_string_equal(sig_name(37, room, sizeof room), "SIGRTMIN+3");
	assert_string_equal(sig_name(64, room, sizeof room), "SIGRTMIN+30");
	assert_string_equal(sig_name(32, room, sizeof room), "signal 32");
	assert_string_equal(sig_name(0, room, sizeof room), "signal 0");
	assert_string_equal(sig_name(-2147483647 - 1, room, sizeof room), "signal -2147483648");
	for (int s = 1; s < 65; s++)
		assert_true(strlen(sig_name(s, room, sizeof room)) > 0);
}

static void the_sender_is_told_as_far_as_it_is_known(void **state)
{
	struct signalfd_siginfo si;
	char text[128];

	(void)state;
	memset(&si, 0, sizeof si);
	si.ssi_code = SI_KERNEL;
	sig_origin(&si, text, sizeof text);
	assert_string_equal(text, "from the kernel or terminal");
	si.ssi_code = SI_USER;
	sig_origin(&si, text, sizeof text);
	assert_string_equal(text, "from outside the container");
	si.ssi_pid = (uint32_t)getpid();
	sig_origin(&si, text, sizeof text);
	assert_non_null(strstr(text, "claims pid "));
	assert_non_null(strstr(text, "(init_sig_test)"));
	si.ssi_pid = 0x7ffffff0;
	sig_origin(&si, text, sizeof text);
	assert_string_equal(text, "claims pid 2147483632 (gone)");
}

static int block_all_blocks(void)
{
	struct sigaction a;

	sig_block_all();
	for (int s = 1; s <= 64; s++) {
		bool fault = s == SIGSEGV || s == SIGBUS || s == SIGILL || s == SIGFPE ||
			     s == SIGTRAP || s == SIGSYS || s == SIGABRT;
		if (s != SIGKILL && s != SIGSTOP && blocked(s) == fault)
			return s;
	}
	(void)sigaction(SIGCHLD, NULL, &a);
	if (a.sa_handler != SIG_DFL)
		return 101;
	(void)sigaction(SIGPIPE, NULL, &a);
	return a.sa_handler == SIG_IGN ? 0 : 102;
}

static int child_is_clean(void)
{
	struct sigaction a;

	sig_block_all();
	sig_reset_child();
	for (int s = 1; s <= 31; s++) {
		(void)sigaction(s, NULL, &a);
		if (a.sa_handler != SIG_DFL)
			return s;
	}
	return mask_now() == 0 ? 0 : 103;
}

static int deaf_child_blocks_stops_alone(void)
{
	sig_block_all();
	sig_reset_deaf();
	for (int s = 1; s <= 64; s++)
		if (blocked(s) != sig_is_stop(s))
			return s;
	return 0;
}

static void everything_but_faults_is_blocked_32_to_34_too(void **state)
{
	(void)state;
	assert_int_equal(in_child(block_all_blocks), 0);
}

static void a_child_starts_with_nothing_blocked_and_nothing_ignored(void **state)
{
	(void)state;
	assert_int_equal(in_child(child_is_clean), 0);
}

static void a_deaf_child_has_the_stop_signals_blocked_and_no_others(void **state)
{
	(void)state;
	assert_int_equal(in_child(deaf_child_blocks_stops_alone), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_would_end_an_ordinary_process_is_a_stop),
		cmocka_unit_test(all_is_forwarded_but_what_is_our_own),
		cmocka_unit_test(names_are_those_that_runtimes_use),
		cmocka_unit_test(the_sender_is_told_as_far_as_it_is_known),
		cmocka_unit_test(everything_but_faults_is_blocked_32_to_34_too),
		cmocka_unit_test(a_child_starts_with_nothing_blocked_and_nothing_ignored),
		cmocka_unit_test(a_deaf_child_has_the_stop_signals_blocked_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
