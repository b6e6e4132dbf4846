/* Each way of writing a line: with the kernel's help, and where RWF_NOWAIT is refused. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 3000 /* lines of about 100 bytes: more than any pipe, socket or terminal holds */

static const char filler[] =
	"012345678901234567890123456789012345678901234567890123456789012345678901234567890123";

static void refuse_nowait(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof f / sizeof f[0], f};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0)
		_exit(99);
}

/* In a child whose standard error is `sink`: many lines, then a byte at `done`, and after a byte
 * from `go` one line more. The parent drains in between. Its status: 0, or 1 when the flags of the
 * shared description changed. */
static pid_t writer(int sink, int done, int go, bool refused)
{
	pid_t p = fork();
	int before = fcntl(sink, F_GETFL);
	char c;

	if (p != 0)
		return p;
	if (dup2(sink, STDERR_FILENO) < 0)
		_exit(98);
	if (refused)
		refuse_nowait();
	for (int i = 0; i < MANY; i++)
		log_info("line", "line %d %s", i, filler);
	(void)!write(done, "d", 1);
	(void)!read(go, &c, 1);
	log_info("line", "last");
	_exit(fcntl(sink, F_GETFL) == before ? 0 : 1);
}

static size_t drain(int fd, char *dst, size_t size)
{
	struct pollfd p = {fd, POLLIN, 0};
	size_t n = 0;

	while (n < size - 1 && poll(&p, 1, 100) == 1) {
		ssize_t r = read(fd, dst + n, size - 1 - n);
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	dst[n] = 0;
	return n;
}

static void check_sink(int sink, int source, bool refused)
{
	static char text[4 << 20];
	struct pollfd p;
	int done[2], go[2], status;
	pid_t child;
	const char *lost;
	size_t n;

	assert_int_equal(pipe(done), 0);
	assert_int_equal(pipe(go), 0);
	child = writer(sink, done[1], go[0], refused);
	p = (struct pollfd){done[0], POLLIN, 0};
	if (poll(&p, 1, 60000) != 1) {
		(void)kill(child, SIGKILL);
		fail_msg("the log blocked its writer");
	}
	n = drain(source, text, sizeof text);
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)drain(source, text + n, sizeof text - n);
	assert_non_null(strstr(text, "init: info: line 0 0123"));
	assert_non_null(strstr(text, "init: info: last"));
	lost = strstr(text, " log lines were lost");
	assert_non_null(lost);
	while (lost[-1] >= '0' && lost[-1] <= '9')
		lost--;
	assert_true(strtol(lost, NULL, 10) > 0 && strtol(lost, NULL, 10) < MANY);
	for (int i = 0; i < 2; i++) {
		(void)close(done[i]);
		(void)close(go[i]);
	}
	(void)close(sink);
	(void)close(source);
}

static void check_pipe(bool refused)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	check_sink(fds[1], fds[0], refused);
}

static void check_fifo(bool refused)
{
	char path[] = "/tmp/init-log-XXXXXX";
	int r, w;

	assert_non_null(mkdtemp(path));
	char fifo[64];
	assert_true(snprintf(fifo, sizeof fifo, "%s/f", path) < (int)sizeof fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	r = open(fifo, O_RDONLY | O_NONBLOCK);
	w = open(fifo, O_WRONLY);
	assert_true(r >= 0 && w >= 0);
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(rmdir(path), 0);
	check_sink(w, r, refused);
}

static void check_socket(bool refused)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	check_sink(fds[1], fds[0], refused);
}

static void check_terminal(bool refused)
{
	struct termios t;
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_int_equal(tcgetattr(slave, &t), 0);
	t.c_oflag &= ~(tcflag_t)OPOST;
	assert_int_equal(tcsetattr(slave, TCSANOW, &t), 0);
	check_sink(slave, master, refused);
}

static void a_full_pipe_never_blocks_and_lost_lines_are_counted(void **state)
{
	(void)state;
	check_pipe(false);
}

static void a_full_pipe_never_blocks_where_nowait_is_refused(void **state)
{
	(void)state;
	check_pipe(true);
}

static void a_full_fifo_never_blocks(void **state)
{
	(void)state;
	check_fifo(false);
	check_fifo(true);
}

static void a_full_socket_never_blocks(void **state)
{
	(void)state;
	check_socket(false);
	check_socket(true);
}

static void a_terminal_that_nobody_reads_never_blocks(void **state)
{
	(void)state;
	check_terminal(false);
	check_terminal(true);
}

/* What `fn` writes to standard error, as a text; in a child, so that settings do not stay. */
static char *logged(void (*fn)(void))
{
	static char text[65536];
	int fds[2];
	pid_t p;

	assert_int_equal(pipe(fds), 0);
	p = fork();
	if (p == 0) {
		if (dup2(fds[1], STDERR_FILENO) < 0)
			_exit(98);
		fn();
		_exit(0);
	}
	(void)close(fds[1]);
	(void)drain(fds[0], text, sizeof text);
	assert_int_equal(waitpid(p, NULL, 0), p);
	(void)close(fds[0]);
	return text;
}

static void write_levels(void)
{
	log_debug("a", "quiet");
	log_warn("a", "loud");
	log_setup(LL_DEBUG, false);
	errno = 77;
	log_debug("a", "now");
	if (errno != 77)
		log_error("a", "errno changed");
}

static void the_level_is_obeyed_and_errno_kept(void **state)
{
	(void)state;
	assert_string_equal(logged(write_levels), "init: warn: loud\ninit: debug: now\n");
}

static void write_json(void)
{
	char big[9000];

	log_setup(LL_INFO, true);
	log_event(LL_WARN, "odd_text",
		  LOG_FIELDS(LOG_STR("name", "a\"b\\c\n\xff"), LOG_NUM("n", -5)), "say \"%s\"",
		  "\033[31m");
	memset(big, '"', sizeof big - 1);
	big[sizeof big - 1] = 0;
	log_info("long_text", "%s", big);
	for (size_t i = 0; i + 2 < sizeof big - 1; i += 3)
		memcpy(big + i, "\xe2\x82\xac", 3);
	log_event(LL_INFO, "long_field",
		  LOG_FIELDS(LOG_STR("a", big), LOG_STR("b", big), LOG_STR("c", big),
			     LOG_STR("d", big), LOG_STR("e", big), LOG_STR("f", big),
			     LOG_STR("g", big), LOG_NUM("h", 1)),
		  "%s", big);
}

static void json_lines_are_whole_whatever_is_in_them(void **state)
{
	char *text = logged(write_json), *line;
	int lines = 0;

	(void)state;
	assert_non_null(strstr(
		text, "\"event\":\"odd_text\",\"name\":\"a\\\"b\\\\c??\",\"n\":-5,\"msg\":\"say "
		      "\\\"?[31m\\\"\"}\n"));
	for (line = strtok_r(text, "\n", &text); line != NULL; line = strtok_r(NULL, "\n", &text)) {
		size_t n = strlen(line), quotes = 0;

		assert_true(n < LOG_LINE_MAX);
		assert_int_equal(line[0], '{');
		assert_string_equal(line + n - 2, "\"}");
		for (size_t i = 0; i < n; i++) {
			if (line[i] == '\\')
				i++;
			else
				quotes += line[i] == '"';
		}
		assert_int_equal(quotes % 2, 0);
		assert_non_null(strstr(line, "\"msg\":\""));
		lines++;
	}
	assert_int_equal(lines, 3);
}

static void write_long(void)
{
	char big[2 * LOG_LINE_MAX];

	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = 0;
	log_info("long", "%s", big);
	log_info("short", "next");
}

static void a_long_line_is_cut_and_still_a_line(void **state)
{
	char *text = logged(write_long), *end = strchr(text, '\n');

	(void)state;
	assert_non_null(end);
	assert_true(end - text < LOG_LINE_MAX);
	assert_string_equal(end + 1, "init: info: next\n");
}

static void levels_have_four_names(void **state)
{
	enum log_level l = LL__MAX;

	(void)state;
	assert_int_equal(log_level_parse("WARN", &l), 0);
	assert_int_equal(l, LL_WARN);
	assert_int_equal(log_level_parse("debug", &l), 0);
	assert_int_equal(log_level_parse("verbose", &l), -1);
	assert_int_equal(l, LL_DEBUG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_pipe_never_blocks_and_lost_lines_are_counted),
		cmocka_unit_test(a_full_pipe_never_blocks_where_nowait_is_refused),
		cmocka_unit_test(a_full_fifo_never_blocks),
		cmocka_unit_test(a_full_socket_never_blocks),
		cmocka_unit_test(a_terminal_that_nobody_reads_never_blocks),
		cmocka_unit_test(the_level_is_obeyed_and_errno_kept),
		cmocka_unit_test(json_lines_are_whole_whatever_is_in_them),
		cmocka_unit_test(a_long_line_is_cut_and_still_a_line),
		cmocka_unit_test(levels_have_four_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
