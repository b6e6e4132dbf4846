#include "init/spawn.h"

#include "init/loop.h"
#include "init/sig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const path_env[] = {"PATH=/usr/bin:/bin", NULL};

static struct spawn_spec spec(const char *const *argv)
{
	return (struct spawn_spec){.argv = argv, .envp = path_env, .in = -1, .out = -1, .err = -1};
}

static int status_of(struct proc *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	proc_gone(p);
	assert_int_equal(p->pid, -1);
	assert_int_equal(p->pidfd, -1);
	return loop_status_code(status);
}

static int fails(const char *const *argv, int *sys)
{
	struct spawn_spec s = spec(argv);
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;

	assert_int_equal(spawn_exec(&s, &p, &e), -1);
	assert_int_equal(p.pid, -1);
	assert_non_null(strstr(e.text, argv[0]));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped already */
	assert_int_equal(errno, ECHILD);
	*sys = e.sys;
	return e.code;
}

static void a_program_runs_with_what_it_was_given(void **state)
{
	static const char *const argv[] = {"sh", "-c", "pwd; echo \"$PATH\"; cat; echo e >&2",
					   NULL};
	struct spawn_spec s = spec(argv);
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;
	int in[2], out[2];
	char text[128];
	ssize_t n, at = 0;

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "in\n", 3), 3);
	(void)close(in[1]);
	s.in = in[0];
	s.out = s.err = out[1];
	s.cwd = "/usr";
	assert_int_equal(spawn_exec(&s, &p, &e), 0);
	assert_true(p.pid > 0 && p.pidfd >= 0);
	assert_true((fcntl(p.pidfd, F_GETFD) & FD_CLOEXEC) != 0);
	(void)close(in[0]);
	(void)close(out[1]);
	while ((n = read(out[0], text + at, sizeof text - 1 - (size_t)at)) > 0)
		at += n;
	text[at] = 0;
	(void)close(out[0]);
	assert_string_equal(text, "/usr\n/usr/bin:/bin\nin\ne\n");
	assert_int_equal(status_of(&p), 0);
}

static void descriptors_may_be_swapped(void **state)
{
	static const char *const argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
	struct spawn_spec s = spec(argv);
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;
	int out[2], err[2], saved[2];
	char text[16];
	int rc;

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	saved[0] = fcntl(1, F_DUPFD_CLOEXEC, 10);
	saved[1] = fcntl(2, F_DUPFD_CLOEXEC, 10);
	(void)fflush(stdout);
	assert_true(dup2(out[1], 1) == 1 && dup2(err[1], 2) == 2);
	s.out = 2;
	s.err = 1;
	rc = spawn_exec(&s, &p, &e);
	assert_true(dup2(saved[0], 1) == 1 && dup2(saved[1], 2) == 2);
	assert_int_equal(rc, 0);
	assert_int_equal(status_of(&p), 0);
	assert_int_equal(read(out[0], text, sizeof text), 4);
	assert_memory_equal(text, "err\n", 4);
	assert_int_equal(read(err[0], text, sizeof text), 4);
	assert_memory_equal(text, "out\n", 4);
	for (int i = 0; i < 2; i++) {
		(void)close(out[i]);
		(void)close(err[i]);
		(void)close(saved[i]);
	}
}

static void exec_failures_come_back_at_once_and_leave_no_child(void **state)
{
	char huge[2 * 4096 + 1];
	int sys;

	(void)state;
	assert_int_equal(fails((const char *const[]){"/nonexistent", NULL}, &sys), XC_NOTFOUND);
	assert_int_equal(fails((const char *const[]){"nonesuch", NULL}, &sys), XC_NOTFOUND);
	assert_int_equal(fails((const char *const[]){"", NULL}, &sys), XC_NOTFOUND);
	assert_int_equal(fails((const char *const[]){"/usr", NULL}, &sys), XC_NOEXEC);
	assert_int_equal(sys, EACCES);
	assert_int_equal(fails((const char *const[]){"/etc/passwd/x", NULL}, &sys), XC_NOEXEC);
	assert_int_equal(sys, ENOTDIR);
	memset(huge, 'x', sizeof huge - 1);
	huge[sizeof huge - 1] = 0;
	struct spawn_spec s = spec((const char *const[]){huge, NULL});
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;
	assert_int_equal(spawn_exec(&s, &p, &e), -1);
	assert_int_equal(e.sys, ENAMETOOLONG);
}

static void a_directory_that_is_not_there_is_named(void **state)
{
	static const char *const argv[] = {"true", NULL};
	struct spawn_spec s = spec(argv);
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;

	(void)state;
	s.cwd = "/nonexistent";
	assert_int_equal(spawn_exec(&s, &p, &e), -1);
	assert_non_null(strstr(e.text, "/nonexistent"));
	assert_int_equal(e.sys, ENOENT);
}

static void too_large_an_argument_is_a_failure_to_execute(void **state)
{
	size_t n = 3 << 20;
	char *big = malloc(n);
	int sys;

	(void)state;
	assert_non_null(big);
	memset(big, 'x', n - 1);
	big[n - 1] = 0;
	assert_int_equal(fails((const char *const[]){"true", big, NULL}, &sys), XC_NOEXEC);
	assert_int_equal(sys, E2BIG);
	free(big);
}

static void without_a_free_descriptor_a_program_still_starts(void **state)
{
	static const char *const argv[] = {"true", NULL};
	struct spawn_spec s = spec(argv);
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;
	struct rlimit before, low;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	int rc = spawn_exec(&s, &p, &e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, 0);
	assert_int_equal(p.pidfd, -1);
	assert_int_equal(proc_kill(&p, 0), 0);
	/* The limit of 3 reached the program too; whatever it made of that, it ended. */
	assert_true(status_of(&p) >= 0);
}

static int fds_of_child(void *arg)
{
	int keep = *(int *)arg, bad = 0;

	for (int fd = 0; fd < 64; fd++)
		if ((fcntl(fd, F_GETFD) >= 0) != (fd <= 2 || fd == keep))
			bad++;
	return bad == 0 && getsid(0) == getpid() ? 44 : 1;
}

static void a_forked_child_keeps_what_it_was_told_to_and_returns_a_status(void **state)
{
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;
	int keep = fcntl(0, F_DUPFD, 20), other = fcntl(0, F_DUPFD, 30);

	(void)state;
	assert_int_equal(spawn_fn(fds_of_child, &keep, &keep, 1, false, &p, &e), 0);
	assert_true(p.pidfd >= 0);
	assert_int_equal(status_of(&p), 44);
	(void)close(keep);
	(void)close(other);
}

static int wait_for_all(void *arg)
{
	(void)arg;
	while (pause() < 0)
		;
	return 0;
}

static void a_deaf_child_ignores_stops_but_not_a_kill(void **state)
{
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(spawn_fn(wait_for_all, NULL, NULL, 0, true, &p, &e), 0);
	/* Before the child ran a line it has this test's mask; both mean the same here. */
	struct pollfd f = {p.pidfd, POLLIN, 0};
	char path[64], line[256];
	uint64_t mask = 0;
	while ((mask & 1ULL << (SIGTERM - 1)) == 0) {
		assert_true(snprintf(path, sizeof path, "/proc/%d/status", (int)p.pid) > 0);
		FILE *status = fopen(path, "re");
		assert_non_null(status);
		while (fgets(line, sizeof line, status) != NULL)
			if (strncmp(line, "SigBlk:", 7) == 0)
				mask = strtoull(line + 7, NULL, 16);
		(void)fclose(status);
	}
	assert_int_equal(proc_kill(&p, SIGTERM), 0);
	assert_int_equal(poll(&f, 1, 200), 0);
	assert_int_equal(proc_kill(&p, SIGKILL), 0);
	assert_int_equal(poll(&f, 1, 20000), 1);
	assert_int_equal(status_of(&p), 128 + SIGKILL);
}

static void a_process_that_is_gone_is_not_signalled(void **state)
{
	struct proc p = PROC_NONE;

	(void)state;
	assert_int_equal(proc_kill(&p, SIGKILL), -1);
	assert_int_equal(errno, ESRCH);
}

/* In a pid namespace of its own: the pid of an ended, reaped process is given to another, which
 * must not be hit by a signal meant for the first. 0: as promised. */
static int reuse(void *arg)
{
	static const char *const argv[] = {"true", NULL};
	struct spawn_spec s = spec(argv);
	struct proc p = PROC_NONE;
	struct err e = ERR_INIT;
	char text[16];
	pid_t impostor = -1;
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	(void)arg;
	if (fd < 0 || spawn_exec(&s, &p, &e) < 0)
		return 10;
	if (waitpid(p.pid, NULL, 0) != p.pid)
		return 11;
	int n = snprintf(text, sizeof text, "%d", (int)p.pid - 1);
	if (write(fd, text, (size_t)n) != n)
		return 12;
	impostor = fork();
	if (impostor == 0)
		for (;;)
			(void)pause();
	if (impostor != p.pid)
		return 13;
	if (proc_kill(&p, SIGKILL) == 0 || errno != ESRCH)
		return 14;
	return kill(impostor, 0) == 0 && waitpid(impostor, NULL, WNOHANG) == 0 ? 0 : 15;
}

static void a_reused_pid_is_never_hit(void **state)
{
	static _Alignas(16) char stack[1 << 18];
	int status;
	pid_t p = clone(reuse, stack + sizeof stack, CLONE_NEWPID | SIGCHLD, NULL);

	(void)state;
	if (p < 0)
		p = clone(reuse, stack + sizeof stack, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD,
			  NULL);
	assert_true(p > 0);
	assert_int_equal(waitpid(p, &status, 0), p);
	assert_int_equal(loop_status_code(status), 0);
}

static void closing_from_a_number_on_spares_the_kept(void **state)
{
	int a, b, c, keep[2];

	(void)state;
	a = fcntl(0, F_DUPFD, 40);
	b = fcntl(0, F_DUPFD, 41);
	c = fcntl(0, F_DUPFD, 42);
	keep[0] = c;
	keep[1] = a;
	spawn_close_from(40, keep, 2);
	assert_true(fcntl(a, F_GETFD) >= 0 && fcntl(c, F_GETFD) >= 0);
	assert_true(fcntl(b, F_GETFD) < 0);
	spawn_close_from(40, NULL, 0);
	assert_true(fcntl(a, F_GETFD) < 0 && fcntl(c, F_GETFD) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_runs_with_what_it_was_given),
		cmocka_unit_test(descriptors_may_be_swapped),
		cmocka_unit_test(exec_failures_come_back_at_once_and_leave_no_child),
		cmocka_unit_test(a_directory_that_is_not_there_is_named),
		cmocka_unit_test(too_large_an_argument_is_a_failure_to_execute),
		cmocka_unit_test(without_a_free_descriptor_a_program_still_starts),
		cmocka_unit_test(a_forked_child_keeps_what_it_was_told_to_and_returns_a_status),
		cmocka_unit_test(a_deaf_child_ignores_stops_but_not_a_kill),
		cmocka_unit_test(a_process_that_is_gone_is_not_signalled),
		cmocka_unit_test(a_reused_pid_is_never_hit),
		cmocka_unit_test(closing_from_a_number_on_spares_the_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
