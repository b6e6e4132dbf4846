/* The tap as a process: what goes in comes out, whatever happens to it. */
#include "init/tap.h"

#include "base/deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_MS 30000
#define AT	 "2026-03-01 12:34:56Z: "

/* A tap between two pipes of ours: agent -> tap -> container. */
struct bench {
	struct tap tap;
	int agent_out, agent_err; /* the agent's ends */
	int log_out, log_err;	  /* what the container's log reads */
	int saved[2];
};

/* Descriptors 1 and 2 of this process are the container's only while the tap is forked. */
static void swap_in(struct bench *b, int out, int err)
{
	(void)fflush(stdout);
	b->saved[0] = fcntl(1, F_DUPFD_CLOEXEC, 10);
	b->saved[1] = fcntl(2, F_DUPFD_CLOEXEC, 10);
	assert_true(dup2(out, 1) == 1 && dup2(err, 2) == 2);
}

static void swap_back(struct bench *b)
{
	assert_true(dup2(b->saved[0], 1) == 1 && dup2(b->saved[1], 2) == 2);
	(void)close(b->saved[0]);
	(void)close(b->saved[1]);
}

static void begin(struct bench *b, int out, int err)
{
	struct err e = ERR_INIT;
	int rc;

	b->tap = (struct tap)TAP_INIT;
	swap_in(b, out, err);
	rc = tap_start(&b->tap, &b->agent_out, &b->agent_err, &e);
	swap_back(b);
	assert_int_equal(rc, 0);
}

static void begin_on_pipes(struct bench *b)
{
	int out[2], err[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	begin(b, out[1], err[1]);
	(void)close(out[1]);
	(void)close(err[1]);
	b->log_out = out[0];
	b->log_err = err[0];
}

/* The next report; fails the test when none comes. */
static struct tap_report next(struct bench *b)
{
	struct deadline d = deadline_in(LIMIT_MS);
	struct tap_report r;

	for (;;) {
		struct pollfd p = {b->tap.report_r, POLLIN, 0};
		int got;

		assert_int_equal(poll(&p, 1, deadline_poll_ms(d)), 1);
		got = tap_next(&b->tap, &r);
		assert_true(got >= 0);
		if (got == 1)
			return r;
	}
}

static void ended(struct bench *b)
{
	int status;

	assert_int_equal(waitpid(b->tap.proc.pid, &status, 0), b->tap.proc.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(tap_next(&b->tap, &(struct tap_report){0}), -1);
	proc_gone(&b->tap.proc);
	tap_stop(&b->tap);
}

static void read_exactly(int fd, char *dst, size_t n)
{
	size_t at = 0;

	while (at < n) {
		struct pollfd p = {fd, POLLIN, 0};
		ssize_t r;

		assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
		r = read(fd, dst + at, n - at);
		assert_true(r > 0);
		at += (size_t)r;
	}
}

static void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void both_streams_arrive_byte_for_byte_and_lines_are_reported(void **state)
{
	struct bench b;
	char text[256];
	static const char out[] =
		AT "Listening for Jobs\nbytes \0\xff\n" AT "Running job: a\nno end";

	(void)state;
	begin_on_pipes(&b);
	assert_int_equal(write(b.agent_out, out, sizeof out - 1), sizeof out - 1);
	put(b.agent_err, "A session for this runner already exists.\n");
	read_exactly(b.log_out, text, sizeof out - 1);
	assert_memory_equal(text, out, sizeof out - 1);
	read_exactly(b.log_err, text, 42);
	assert_memory_equal(text, "A session for this runner already exists.\n", 42);
	int seen = 0;
	for (int i = 0; i < 3; i++) {
		struct tap_report r = next(&b);
		assert_true(r.at_ms > 0 && r.at_ms <= clock_mono_ms());
		seen |= 1 << r.line;
	}
	assert_int_equal(seen, 1 << TAP_LISTENING | 1 << TAP_JOB_STARTED | 1 << TAP_CONFLICT);
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	assert_int_equal(next(&b).line, TAP_EOF);
	assert_int_equal(read(b.log_out, text, 1), 0);
	ended(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
}

static void a_line_that_comes_in_pieces_is_one_line(void **state)
{
	struct bench b;
	static const char line[] = AT "Job build completed with result: Failed\n";
	char text[sizeof line];

	(void)state;
	begin_on_pipes(&b);
	for (size_t i = 0; i < sizeof line - 1; i++) {
		assert_int_equal(write(b.agent_out, line + i, 1), 1);
		read_exactly(b.log_out, text, 1);
		assert_int_equal(text[0], line[i]);
	}
	assert_string_equal(next(&b).result, "Failed");
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	assert_int_equal(next(&b).line, TAP_EOF);
	ended(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
}

/* An agent that writes numbered lines to the end of `fd`. */
static pid_t agent(int fd, int lines)
{
	pid_t p = fork();
	char line[64];

	if (p != 0)
		return p;
	for (int i = 0; i < lines; i++) {
		int n = snprintf(line, sizeof line, "%08d " AT "Listening for Jobs\n", i);
		for (int at = 0; at < n;) {
			ssize_t r = write(fd, line + at, (size_t)(n - at));
			if (r < 0)
				_exit(1);
			at += (int)r;
		}
	}
	_exit(0);
}

static void kill_tap(struct bench *b)
{
	struct err e = ERR_INIT;
	int status, out, err;

	/* The tap's own descriptors 1 and 2 are borrowed from its successor's predecessor. */
	char path[64];
	assert_true(snprintf(path, sizeof path, "/proc/%d/fd/1", (int)b->tap.proc.pid) <
		    (int)sizeof path);
	out = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(snprintf(path, sizeof path, "/proc/%d/fd/2", (int)b->tap.proc.pid) <
		    (int)sizeof path);
	err = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(out >= 0 && err >= 0);
	assert_int_equal(proc_kill(&b->tap.proc, SIGKILL), 0);
	assert_int_equal(waitpid(b->tap.proc.pid, &status, 0), b->tap.proc.pid);
	proc_gone(&b->tap.proc);
	swap_in(b, out, err);
	status = tap_restart(&b->tap, &e);
	swap_back(b);
	assert_int_equal(status, 0);
	(void)close(out);
	(void)close(err);
}

static void a_tap_killed_again_and_again_loses_and_doubles_nothing(void **state)
{
	enum { LINES = 20000, LINE = 50 };
	struct bench b;
	char line[64], want[64];
	pid_t p;

	(void)state;
	begin_on_pipes(&b);
	p = agent(b.agent_out, LINES);
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	for (int i = 0; i < LINES; i++) {
		int n = snprintf(want, sizeof want, "%08d " AT "Listening for Jobs\n", i);
		read_exactly(b.log_out, line, (size_t)n);
		line[n] = 0;
		assert_string_equal(line, want);
		if (i % 500 == 250 && i < LINES - 6000) /* while the agent still writes */
			kill_tap(&b);
	}
	assert_int_equal(waitpid(p, NULL, 0), p);
	while (next(&b).line != TAP_EOF)
		;
	assert_int_equal(read(b.log_out, line, 1), 0);
	ended(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
}

static void a_log_that_blocks_stalls_the_agent_alone(void **state)
{
	struct bench b;
	char block[4096];
	struct pollfd p;
	int flags;
	size_t sent = 0;

	(void)state;
	memset(block, 'x', sizeof block);
	begin_on_pipes(&b);
	flags = fcntl(b.agent_out, F_GETFL);
	assert_int_equal(fcntl(b.agent_out, F_SETFL, flags | O_NONBLOCK), 0);
	p = (struct pollfd){b.agent_out, POLLOUT, 0};
	/* Until nothing moves any more: log full, pipe full. */
	while (poll(&p, 1, 300) == 1) {
		ssize_t r = write(b.agent_out, block, sizeof block);
		if (r > 0)
			sent += (size_t)r;
	}
	assert_true(sent >= 100000);
	/* The other stream still goes through. */
	put(b.agent_err, AT "Listening for Jobs\n");
	read_exactly(b.log_err, block, 41);
	assert_int_equal(next(&b).line, TAP_LISTENING);
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	for (size_t got = 0; got < sent;) {
		ssize_t r = read(b.log_out, block, sizeof block);
		assert_true(r > 0);
		got += (size_t)r;
	}
	assert_int_equal(next(&b).line, TAP_EOF);
	ended(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
}

static void a_log_without_a_reader_does_not_hold_up_the_agent(void **state)
{
	struct bench b;

	(void)state;
	begin_on_pipes(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
	assert_int_equal(waitpid(agent(b.agent_out, 20000), NULL, 0) > 0, 1);
	put(b.agent_out, AT "Running job: x\n");
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	bool job = false;
	struct tap_report r;
	while ((r = next(&b)).line != TAP_EOF)
		job = job || r.line == TAP_JOB_STARTED;
	assert_true(job);
	ended(&b);
}

static void an_appended_file_gets_every_byte(void **state)
{
	char path[] = "/tmp/init-tap-XXXXXX";
	int fd = mkstemp(path);
	struct bench b;
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0); /* where splice is refused */
	begin(&b, fd, fd);
	assert_int_equal(waitpid(agent(b.agent_out, 3000), NULL, 0) > 0, 1);
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	while (next(&b).line != TAP_EOF)
		;
	ended(&b);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 3000 * (9 + 22 + 19));
	(void)close(fd);
}

static void the_tap_outlives_stop_signals(void **state)
{
	static const int stops[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1};
	struct bench b;
	char c;

	(void)state;
	begin_on_pipes(&b);
	put(b.agent_out, "a");
	read_exactly(b.log_out, &c, 1); /* it is up */
	for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
		assert_int_equal(proc_kill(&b.tap.proc, stops[i]), 0);
	put(b.agent_out, "b");
	read_exactly(b.log_out, &c, 1);
	assert_int_equal(c, 'b');
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	assert_int_equal(next(&b).line, TAP_EOF);
	ended(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
}

static void after_a_restart_half_a_line_counts_for_nothing(void **state)
{
	struct bench b;
	char text[64];

	(void)state;
	begin_on_pipes(&b);
	put(b.agent_out, "a job called ");
	read_exactly(b.log_out, text, 13);
	kill_tap(&b);
	put(b.agent_out, AT "Listening for Jobs\n" AT "Runner reconnected.\n");
	assert_int_equal(next(&b).line, TAP_RECONNECTED);
	(void)close(b.agent_out);
	(void)close(b.agent_err);
	assert_int_equal(next(&b).line, TAP_EOF);
	ended(&b);
	(void)close(b.log_out);
	(void)close(b.log_err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_streams_arrive_byte_for_byte_and_lines_are_reported),
		cmocka_unit_test(a_line_that_comes_in_pieces_is_one_line),
		cmocka_unit_test(a_tap_killed_again_and_again_loses_and_doubles_nothing),
		cmocka_unit_test(a_log_that_blocks_stalls_the_agent_alone),
		cmocka_unit_test(a_log_without_a_reader_does_not_hold_up_the_agent),
		cmocka_unit_test(an_appended_file_gets_every_byte),
		cmocka_unit_test(the_tap_outlives_stop_signals),
		cmocka_unit_test(after_a_restart_half_a_line_counts_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
