#include "base/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct child_result run(const char *script, int64_t ms, size_t out_max)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	const char *envp[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
	struct child_spec s = {.argv = argv,
			       .envp = envp,
			       .out_max = out_max,
			       .uid = (uid_t)-1,
			       .gid = (gid_t)-1,
			       .deadline = deadline_in(ms)};
	struct child_result r;
	struct err e = ERR_INIT;

	assert_int_equal(child_run(&s, &r, &e), 0);
	return r;
}

/* The process is gone, or will be within two seconds. */
static void assert_dies(pid_t pid)
{
	struct deadline d = deadline_in(2000);

	while (kill(pid, 0) == 0 && !deadline_passed(d))
		(void)poll(NULL, 0, 5);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void the_exit_status_and_both_streams_come_back(void **state)
{
	struct child_result r = run("echo out; echo err >&2; exit 7", 5000, 100);

	(void)state;
	assert_int_equal(r.end, CHILD_EXITED);
	assert_int_equal(r.code, 7);
	assert_string_equal(buf_str(&r.out), "out\n");
	assert_string_equal(buf_str(&r.err_), "err\n");
	assert_false(r.cut);
	child_result_free(&r);
}

static void a_program_killed_by_a_signal_says_which(void **state)
{
	struct child_result r = run("kill -ABRT $$", 5000, 100);

	(void)state;
	assert_int_equal(r.end, CHILD_SIGNALED);
	assert_int_equal(r.code, SIGABRT);
	child_result_free(&r);
}

static void output_over_the_limit_is_cut_and_the_program_is_not_blocked(void **state)
{
	struct child_result r =
		run("head -c 10000000 /dev/zero; echo done >&2; exit 3", 20000, 1000);

	(void)state;
	assert_int_equal(r.end, CHILD_EXITED);
	assert_int_equal(r.code, 3);
	assert_int_equal(r.out.len, 1000);
	assert_true(r.cut);
	assert_string_equal(buf_str(&r.err_), "done\n");
	child_result_free(&r);
}

static void a_program_that_ignores_termination_ends_at_the_deadline(void **state)
{
	struct child_result r =
		run("trap '' TERM INT HUP; echo $$; while :; do sleep 9; done", 300, 100);

	(void)state;
	assert_int_equal(r.end, CHILD_TIMEOUT);
	assert_true(r.ms < 5000);
	assert_dies((pid_t)atoi(buf_str(&r.out)));
	child_result_free(&r);
}

static void a_grandchild_in_its_own_session_that_keeps_the_pipe_open_is_ended_too(void **state)
{
	struct child_result r = run("setsid sleep 600 & echo $!; exit 0", 10000, 100);

	(void)state;
	assert_int_equal(r.end, CHILD_EXITED);
	assert_int_equal(r.code, 0);
	assert_true(r.ms < 8000);
	assert_dies((pid_t)atoi(buf_str(&r.out)));
	child_result_free(&r);
}

static void a_daemon_of_a_program_that_runs_out_of_time_is_ended_too(void **state)
{
	struct child_result r =
		run("(setsid sh -c 'setsid sleep 600 & echo $!; wait' &); sleep 600", 500, 100);

	(void)state;
	assert_int_equal(r.end, CHILD_TIMEOUT);
	assert_dies((pid_t)atoi(buf_str(&r.out)));
	child_result_free(&r);
}

static void the_environment_is_exactly_the_one_given(void **state)
{
	struct child_result r = run("cat /proc/self/environ | tr '\\0' '\\n'", 5000, 1000);

	(void)state;
	assert_non_null(strstr(buf_str(&r.out), "ONLY=this\n"));
	assert_null(strstr(buf_str(&r.out), "HOME="));
	child_result_free(&r);
}

static void no_descriptor_but_the_three_is_inherited(void **state)
{
	int fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, on purpose */
	struct child_result r = run("ls /proc/$$/fd | tr '\\n' ' '", 5000, 1000);

	(void)state;
	assert_true(fd >= 0);
	assert_string_equal(buf_str(&r.out), "0 1 2 ");
	child_result_free(&r);
	(void)close(fd);
}

static void signals_start_unblocked_and_with_default_actions(void **state)
{
	struct child_result r;
	sigset_t all, old;
	struct sigaction ign, was;

	(void)state;
	memset(&ign, 0, sizeof ign);
	ign.sa_handler = SIG_IGN;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	(void)sigaction(SIGUSR1, &ign, &was);
	r = run("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d ' \\t\\n'", 5000, 1000);
	(void)sigaction(SIGUSR1, &was, NULL);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	assert_string_equal(buf_str(&r.out), "SigBlk:0000000000000000SigIgn:0000000000000000");
	child_result_free(&r);
}

static void a_missing_program_is_told_apart_from_one_that_may_not_run(void **state)
{
	const char *none[] = {"surely-not-a-program", NULL};
	const char *dir[] = {"/etc", NULL};
	struct child_spec s = {.argv = none,
			       .out_max = 10,
			       .uid = (uid_t)-1,
			       .gid = (gid_t)-1,
			       .deadline = deadline_in(5000)};
	struct child_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(child_run(&s, &r, &e), 0);
	assert_int_equal(r.end, CHILD_NOEXEC);
	assert_int_equal(r.code, ENOENT);
	child_result_free(&r);
	s.argv = dir;
	assert_int_equal(child_run(&s, &r, &e), 0);
	assert_int_equal(r.end, CHILD_NOEXEC);
	assert_int_equal(r.code, EACCES);
	child_result_free(&r);
}

static void a_bare_name_is_searched_in_the_path_of_its_own_environment(void **state)
{
	const char *argv[] = {"sh", "-c", "echo found", NULL};
	const char *with[] = {"PATH=/nonexistent:/bin", NULL};
	const char *without[] = {"PATH=/nonexistent", NULL};
	struct child_spec s = {.argv = argv,
			       .envp = with,
			       .out_max = 10,
			       .uid = (uid_t)-1,
			       .gid = (gid_t)-1,
			       .deadline = deadline_in(5000)};
	struct child_result r;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(child_run(&s, &r, &e), 0);
	assert_string_equal(buf_str(&r.out), "found\n");
	child_result_free(&r);
	s.envp = without;
	assert_int_equal(child_run(&s, &r, &e), 0);
	assert_int_equal(r.end, CHILD_NOEXEC);
	child_result_free(&r);
}

static void text_given_as_input_is_read_whole(void **state)
{
	static char text[300000];
	const char *argv[] = {"/usr/bin/wc", "-c", NULL};
	struct child_spec s = {.argv = argv,
			       .input = text,
			       .input_len = sizeof text,
			       .out_max = 100,
			       .cwd = "/",
			       .uid = (uid_t)-1,
			       .gid = (gid_t)-1,
			       .deadline = deadline_in(5000)};
	struct child_result r;
	struct err e = ERR_INIT;

	(void)state;
	memset(text, 'x', sizeof text);
	assert_int_equal(child_run(&s, &r, &e), 0);
	assert_string_equal(buf_str(&r.out), "300000\n");
	child_result_free(&r);
}

static void closed_standard_descriptors_of_the_caller_do_no_harm(void **state)
{
	int st = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct child_result r;
		(void)close(0);
		(void)close(1);
		(void)close(2);
		r = run("echo out; echo err >&2", 5000, 100);
		_exit(strcmp(buf_str(&r.out), "out\n") == 0 &&
				      strcmp(buf_str(&r.err_), "err\n") == 0
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFEXITED(st));
	assert_int_equal(WEXITSTATUS(st), 0);
}

static void the_program_ends_when_the_caller_is_killed(void **state)
{
	int p[2];
	char text[32] = "";
	pid_t pid;
	ssize_t n = 0;

	(void)state;
	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		char script[64];
		(void)snprintf(script, sizeof script, "echo $$ >/proc/%d/fd/%d; sleep 600",
			       (int)getpid(), p[1]);
		(void)run(script, 60000, 100);
		_exit(0);
	}
	n = read(p[0], text, sizeof text - 1);
	assert_true(n > 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_dies((pid_t)atoi(text));
	(void)close(p[0]);
	(void)close(p[1]);
}

static void a_stopped_keeper_cannot_hold_the_caller(void **state)
{
	/* The program's parent is the keeper: a job of the same uid could stop it. */
	struct child_result r = run("kill -STOP $PPID; sleep 600", 300, 100);

	(void)state;
	assert_int_equal(r.end, CHILD_HUNG);
	assert_true(r.ms < 10000);
	child_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_exit_status_and_both_streams_come_back),
		cmocka_unit_test(a_program_killed_by_a_signal_says_which),
		cmocka_unit_test(output_over_the_limit_is_cut_and_the_program_is_not_blocked),
		cmocka_unit_test(a_program_that_ignores_termination_ends_at_the_deadline),
		cmocka_unit_test(
			a_grandchild_in_its_own_session_that_keeps_the_pipe_open_is_ended_too),
		cmocka_unit_test(a_daemon_of_a_program_that_runs_out_of_time_is_ended_too),
		cmocka_unit_test(the_environment_is_exactly_the_one_given),
		cmocka_unit_test(no_descriptor_but_the_three_is_inherited),
		cmocka_unit_test(signals_start_unblocked_and_with_default_actions),
		cmocka_unit_test(a_missing_program_is_told_apart_from_one_that_may_not_run),
		cmocka_unit_test(a_bare_name_is_searched_in_the_path_of_its_own_environment),
		cmocka_unit_test(text_given_as_input_is_read_whole),
		cmocka_unit_test(closed_standard_descriptors_of_the_caller_do_no_harm),
		cmocka_unit_test(the_program_ends_when_the_caller_is_killed),
		cmocka_unit_test(a_stopped_keeper_cannot_hold_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
