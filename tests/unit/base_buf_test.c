#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void a_buffer_takes_its_limit_and_not_one_byte_more(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 5);
	assert_int_equal(buf_puts(&b, "abcd"), 0);
	assert_int_equal(buf_putf(&b, "%d", 12), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_string_equal(buf_str(&b), "abcd");
	assert_int_equal(buf_putc(&b, 'e'), 0);
	assert_int_equal(buf_putc(&b, 'f'), -1);
	assert_string_equal(buf_str(&b), "abcde");
	buf_free(&b);
	assert_string_equal(buf_str(&b), "");
}

static void growth_keeps_the_bytes(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100000);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(buf_putf(&b, "%05d", i), 0);
	assert_int_equal(b.len, 100000);
	assert_memory_equal(b.data + 99995, "19999", 5);
	assert_int_equal(buf_putc(&b, 'x'), -1);
	buf_free(&b);
}

static void consumed_bytes_are_gone_from_memory(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 64);
	assert_int_equal(buf_puts(&b, "headTOKEN"), 0);
	buf_consume(&b, 4);
	assert_string_equal(buf_str(&b), "TOKEN");
	for (size_t i = b.len; i < b.cap; i++)
		assert_int_equal(b.data[i], 0);
	buf_reset(&b);
	for (size_t i = 0; i < b.cap; i++)
		assert_int_equal(b.data[i], 0);
	assert_string_equal(buf_str(&b), "");
	buf_free(&b);
}

static void an_over_long_secret_is_refused_and_leaves_none(void **state)
{
	static struct secret s;
	static char big[SECRET_MAX];

	(void)state;
	memset(big, 'x', sizeof big);
	assert_int_equal(secret_set(&s, "abc", 3), 0);
	assert_true(secret_present(&s));
	assert_string_equal(secret_reveal(&s), "abc");
	assert_int_equal(secret_set(&s, big, sizeof big), -1);
	assert_false(secret_present(&s));
	assert_int_equal(secret_set(&s, big, sizeof big - 1), 0);
	secret_wipe(&s);
	for (size_t i = 0; i < sizeof s.bytes; i++)
		assert_int_equal(s.bytes[i], 0);
}

static void an_error_names_errno_and_stays_one_printable_line(void **state)
{
	struct err e = ERR_INIT;
	char long_text[3000];

	(void)state;
	assert_int_equal(err_set(&e, XC_FILES, ENOENT, "cannot open %s", "a\nb"), -1);
	assert_string_equal(e.text, "cannot open a?b: No such file or directory");
	assert_int_equal(e.code, XC_FILES);
	assert_int_equal(err_prefix(&e, "reading the %s", "thing"), -1);
	assert_string_equal(e.text,
			    "reading the thing: cannot open a?b: No such file or directory");
	memset(long_text, 'y', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	assert_int_equal(err_set(&e, XC_BUG, EIO, "%s", long_text), -1);
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	assert_int_equal(err_set(NULL, XC_BUG, 0, "x"), -1);
}

static void deadlines_saturate(void **state)
{
	struct deadline never = DEADLINE_NEVER, past = deadline_in(-5),
			far = deadline_in(INT64_MAX);

	(void)state;
	assert_int_equal(deadline_poll_ms(never), -1);
	assert_false(deadline_passed(never));
	assert_true(deadline_passed(past));
	assert_int_equal(deadline_poll_ms(past), 0);
	assert_true(far.at_ms == never.at_ms);
	assert_true(deadline_minus(never, 5000).at_ms == never.at_ms);
	assert_int_equal(deadline_poll_ms(deadline_in((int64_t)INT_MAX * 10)), INT_MAX);
	assert_true(deadline_min(past, never).at_ms == past.at_ms);
	assert_true(deadline_left_ms(deadline_in(60000)) > 50000);
}

static int scratch(char *path, size_t size)
{
	strncpy(path, "/tmp/init-unit-XXXXXX", size);
	assert_non_null(mkdtemp(path));
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void a_file_is_replaced_whole_with_its_exact_mode(void **state)
{
	char dir[64];
	int d = scratch(dir, sizeof dir);
	struct err e = ERR_INIT;
	struct stat st;
	struct buf b;

	(void)state;
	umask(077);
	assert_int_equal(fs_write(d, "f", 0644, "one", 3, &e), 0);
	assert_int_equal(fs_write(d, "f", 0644, "second", 6, &e), 0);
	assert_int_equal(fstatat(d, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	buf_init(&b, 6);
	assert_int_equal(fs_read(d, "f", &b, &e), 0);
	assert_string_equal(buf_str(&b), "second");
	buf_free(&b);
	buf_init(&b, 5);
	assert_int_equal(fs_read(d, "f", &b, &e), -1);
	assert_non_null(strstr(e.text, "larger than 5 bytes"));
	buf_free(&b);
	assert_int_equal(unlinkat(d, "f", 0), 0);
	close(d);
	assert_int_equal(rmdir(dir), 0); /* nothing was left beside it */
}

static void a_planted_link_is_replaced_and_never_followed(void **state)
{
	char dir[64];
	int d = scratch(dir, sizeof dir);
	struct err e = ERR_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(symlinkat("/nonexistent/target", d, "f.new"), 0);
	assert_int_equal(fs_write(d, "f", 0600, "x", 1, &e), 0);
	assert_int_equal(fstatat(d, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(unlinkat(d, "f", 0), 0);
	close(d);
	assert_int_equal(rmdir(dir), 0);
}

static void a_missing_file_names_path_and_reason(void **state)
{
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(fs_read(AT_FDCWD, "/nonexistent/x", &b, &e), -1);
	assert_int_equal(e.code, XC_FILES);
	assert_int_equal(e.sys, ENOENT);
	assert_non_null(strstr(e.text, "/nonexistent/x"));
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_takes_its_limit_and_not_one_byte_more),
		cmocka_unit_test(growth_keeps_the_bytes),
		cmocka_unit_test(consumed_bytes_are_gone_from_memory),
		cmocka_unit_test(an_over_long_secret_is_refused_and_leaves_none),
		cmocka_unit_test(an_error_names_errno_and_stays_one_printable_line),
		cmocka_unit_test(deadlines_saturate),
		cmocka_unit_test(a_file_is_replaced_whole_with_its_exact_mode),
		cmocka_unit_test(a_planted_link_is_replaced_and_never_followed),
		cmocka_unit_test(a_missing_file_names_path_and_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
