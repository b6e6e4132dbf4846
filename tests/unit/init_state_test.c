#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/str.h"
#include "init/state.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64]; /* a fresh directory for the whole file */

static int enter(void **state)
{
	(void)state;
	assert_int_equal(str_copy(dir, sizeof dir, "/tmp/init-unit-XXXXXX"), 0);
	(void)umask(002);
	return mkdtemp(dir) == NULL ? -1 : chdir(dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int leave(void **state)
{
	(void)state;
	return chdir("/") < 0 ? -1 : nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in(const char *name)
{
	static char path[4][256];
	static unsigned next;
	char *p = path[next++ % 4];

	assert_int_equal(str_fmt(p, sizeof path[0], "%s/%s", dir, name), 0);
	return p;
}

static const char *shown(const char *where, bool json, int *status)
{
	static char text[8192];
	FILE *f = tmpfile();
	size_t n;

	assert_non_null(f);
	*status = state_health(where, json, f);
	rewind(f);
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = 0;
	assert_int_equal(fclose(f), 0);
	return text;
}

static struct gh_runner runner;

static struct state_view view(const char *name)
{
	struct state_view v = {.state = name, .since_ms = 1700000000123, .gpu = "ok"};

	return v;
}

static void a_listening_runner_is_healthy(void **state)
{
	struct state_view v = view("listening");
	int status;

	(void)state;
	state_open(dir, true);
	assert_true(state_dirfd() >= 0);
	runner.id = UINT64_C(9007199254740993);
	runner.ephemeral = true;
	assert_int_equal(str_copy(runner.name, sizeof runner.name, "a \"quoted\\ name"), 0);
	v.runner = &runner;
	v.url = "https://github.com/a/b";
	state_write(&v);
	assert_string_equal(shown(dir, false, &status),
			    "listening since 2023-11-14T22:13:20.123Z\n");
	assert_int_equal(status, XC_OK);
	assert_non_null(strstr(shown(dir, true, &status),
			       "\"runner\":{\"id\":9007199254740993,\"name\":\"a \\\"quoted\\\\ "
			       "name\",\"url\":\"https://github.com/a/b\",\"ephemeral\":true},"
			       "\"job\":null,\"gpu\":\"ok\",\"last_error\":null}"));
}

static void busy_is_healthy_and_every_other_state_is_not(void **state)
{
	static const char *const sick[] = {"starting", "gate",		"registering", "draining",
					   "stopping", "deregistering", "exited"};
	struct state_view v = view("busy");
	int status;

	(void)state;
	v.job = true;
	v.job_since_ms = 1700000000000;
	state_open(dir, true);
	state_write(&v);
	assert_non_null(strstr(shown(dir, true, &status), "\"job\":{\"since\":\"2023-11-14T22:13:20"
							  ".000Z\"}"));
	assert_int_equal(status, XC_OK);
	for (size_t i = 0; i < sizeof sick / sizeof sick[0]; i++) {
		v = view(sick[i]);
		v.error_code = 77;
		v.error_msg = "no";
		state_write(&v);
		(void)shown(dir, true, &status);
		assert_int_equal(status, XC_FAILED);
	}
	assert_non_null(
		strstr(shown(dir, true, &status), "\"last_error\":{\"code\":77,\"msg\":\"no\"}}"));
}

static void put(const char *text)
{
	int fd = open("state.json", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static void a_state_of_a_process_that_is_gone_is_not_healthy(void **state)
{
	int status;
	char text[256];

	(void)state;
	put("{\"schema\":1,\"state\":\"listening\",\"since\":\"x\",\"pid\":2147483647,\"start\":"
	    "1}");
	assert_non_null(strstr(shown(dir, false, &status), "gone"));
	assert_int_equal(status, XC_FAILED);
	/* A reused pid has another start time. */
	assert_int_equal(
		str_fmt(text, sizeof text,
			"{\"schema\":1,\"state\":\"listening\",\"since\":\"x\",\"pid\":%ld,"
			"\"start\":1}",
			(long)getpid()),
		0);
	put(text);
	(void)shown(dir, false, &status);
	assert_int_equal(status, XC_FAILED);
}

static void a_state_that_is_none_is_not_healthy(void **state)
{
	static const char *const bad[] = {"",
					  "{",
					  "[]",
					  "{\"schema\":2}",
					  "{\"schema\":1,\"state\":5,\"since\":\"\",\"pid\":1,"
					  "\"start\":1}",
					  "{\"schema\":1,\"state\":\"listening\",\"since\":\"\","
					  "\"pid\":-1,\"start\":1}"};
	int status;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		put(bad[i]);
		(void)shown(dir, true, &status);
		assert_int_equal(status, XC_FAILED);
	}
	assert_int_equal(unlink("state.json"), 0);
	assert_non_null(strstr(shown(dir, false, &status), "no state.json"));
	assert_int_equal(status, XC_FAILED);
}

static void the_directory_is_no_link(void **state)
{
	(void)state;
	assert_int_equal(mkdir("real", 0755), 0);
	assert_int_equal(symlink("real", "link"), 0);
	state_open(in("link"), true);
	assert_int_equal(state_dirfd(), -1);
	assert_int_equal(state_put("x", 0600, "y", 1), -1);
	state_open(in("made"), true); /* one that is missing is made */
	assert_true(state_dirfd() >= 0);
}

static void a_file_that_is_a_link_is_not_read(void **state)
{
	char text[16];

	(void)state;
	state_open(dir, true);
	assert_int_equal(state_put("file", 0600, "hello", 5), 0);
	assert_int_equal(state_get("file", text, sizeof text), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(symlink("file", "alias"), 0);
	assert_int_equal(state_get("alias", text, sizeof text), -1);
}

/* ---- journal ---- */

static struct gh_credentials cred, other;

static struct journal_entry entry(uint64_t id, const char *name)
{
	struct journal_entry en = {.id = id, .at_ms = 5};

	assert_int_equal(str_copy(en.name, sizeof en.name, name), 0);
	assert_int_equal(str_copy(en.scope, sizeof en.scope, "github.com /repos/a/b%"), 0);
	return en;
}

static void journal_fresh(void)
{
	state_open(dir, true);
	(void)unlink("journal");
	assert_int_equal(secret_set(&cred.pat, "one", 3), 0);
	assert_int_equal(secret_set(&other.pat, "two", 3), 0);
}

static void the_newest_registration_that_was_not_removed_is_found(void **state)
{
	struct journal_entry a = entry(UINT64_MAX, "n a%me"), b = entry(2, "b"), out;
	struct err e = ERR_INIT;

	(void)state;
	journal_fresh();
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 0);
	assert_int_equal(journal_add(&cred, &a, &e), 0);
	assert_int_equal(journal_add(&cred, &b, &e), 0);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 1);
	assert_int_equal(out.id, 2);
	assert_int_equal(journal_removed(&cred, 2, &e), 0);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 1);
	assert_true(out.id == UINT64_MAX);
	assert_string_equal(out.name, "n a%me");
	assert_string_equal(out.scope, a.scope);
	assert_int_equal(journal_open_entry(&cred, "github.com /orgs/x", &out), 0);
	assert_int_equal(journal_removed(&cred, UINT64_MAX, &e), 0);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 0);
}

static void a_record_of_another_credential_does_not_count(void **state)
{
	struct journal_entry a = entry(1, "a"), out;
	struct err e = ERR_INIT;

	(void)state;
	journal_fresh();
	assert_int_equal(journal_add(&other, &a, &e), 0);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 0);
	assert_int_equal(journal_open_entry(&other, a.scope, &out), 1);
}

static void a_record_with_one_byte_changed_does_not_count(void **state)
{
	struct journal_entry a = entry(1, "a"), out;
	struct err e = ERR_INIT;
	char text[4096];
	ssize_t n;

	(void)state;
	journal_fresh();
	assert_int_equal(journal_add(&cred, &a, &e), 0);
	n = state_get("journal", text, sizeof text);
	assert_true(n > 80);
	assert_null(memmem(text, (size_t)n, "one", 3));
	for (ssize_t i = 0; i + 1 < n; i++) {
		text[i] ^= 1;
		assert_int_equal(state_put("journal", 0600, text, (size_t)n), 0);
		assert_int_equal(journal_open_entry(&cred, a.scope, &out), 0);
		text[i] ^= 1;
	}
	assert_int_equal(state_put("journal", 0600, text, (size_t)n), 0);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 1);
}

static void the_journal_keeps_the_newest_eight(void **state)
{
	struct journal_entry out;
	struct err e = ERR_INIT;

	(void)state;
	journal_fresh();
	for (uint64_t i = 1; i <= 20; i++) {
		struct journal_entry en = entry(i, "n");
		assert_int_equal(journal_add(&cred, &en, &e), 0);
	}
	for (uint64_t i = 20; i > 12; i--) {
		assert_int_equal(journal_open_entry(&cred, entry(1, "n").scope, &out), 1);
		assert_int_equal(out.id, i);
		assert_int_equal(journal_removed(&cred, i, &e), 0);
	}
	assert_int_equal(journal_open_entry(&cred, entry(1, "n").scope, &out), 0);
}

static void the_longest_names_fit(void **state)
{
	struct journal_entry a = entry(UINT64_MAX, ""), out;
	struct err e = ERR_INIT;

	(void)state;
	journal_fresh();
	memset(a.name, ' ', sizeof a.name - 1);
	memset(a.scope, '%', sizeof a.scope - 1);
	a.at_ms = INT64_MAX;
	for (int i = 0; i < 9; i++)
		assert_int_equal(journal_add(&cred, &a, &e), 0);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 1);
	assert_string_equal(out.name, a.name);
}

static void without_a_credential_or_a_directory_there_is_no_journal(void **state)
{
	static struct gh_credentials none;
	struct journal_entry a = entry(1, "a"), out;
	struct err e = ERR_INIT;

	(void)state;
	journal_fresh();
	assert_int_equal(journal_add(&none, &a, &e), -1);
	state_open("/nonexistent/x", true);
	assert_int_equal(journal_add(&cred, &a, &e), -1);
	assert_int_equal(e.code, XC_FILES);
	assert_int_equal(journal_open_entry(&cred, a.scope, &out), 0);
	assert_int_equal(journal_start_pause_ms(), 0);
}

/* ---- pauses ---- */

static void lives(uint64_t quick, int64_t began_ago_ms, int64_t ended_ago_ms)
{
	char text[128];
	int64_t now = clock_real_ms();

	state_open(dir, true);
	assert_int_equal(str_fmt(text, sizeof text, "v1 %llu %lld %lld\n",
				 (unsigned long long)quick, (long long)(now - began_ago_ms),
				 (long long)(ended_ago_ms < 0 ? 0 : now - ended_ago_ms)),
			 0);
	assert_int_equal(state_put("lives", 0600, text, strlen(text)), 0);
}

static void quick_lives_make_the_next_start_wait_longer_and_longer(void **state)
{
	int64_t last = 0, pause = 0;

	(void)state;
	state_open(dir, true);
	(void)unlink("lives");
	assert_int_equal(journal_start_pause_ms(), 0);
	journal_life_ended(false);
	assert_int_equal(journal_start_pause_ms(), 0); /* the first quick life */
	journal_life_ended(false);
	assert_int_equal(journal_start_pause_ms(), 0); /* the second */
	for (int i = 0; i < 20; i++) {
		pause = journal_start_pause_ms(); /* killed each time, nothing noted */
		assert_true(pause >= 750);
		assert_true(pause > last || pause >= JOURNAL_PAUSE_MAX_MS * 3 / 4);
		assert_true(pause <= JOURNAL_PAUSE_MAX_MS);
		last = pause;
	}
	assert_true(pause >= JOURNAL_PAUSE_MAX_MS * 3 / 4);
}

static void a_life_that_served_ends_the_waiting(void **state)
{
	(void)state;
	lives(9, 1000, -1);
	assert_true(journal_start_pause_ms() > 0);
	journal_life_ended(true);
	assert_int_equal(journal_start_pause_ms(), 0);
}

static void a_long_life_ends_the_waiting(void **state)
{
	(void)state;
	lives(9, JOURNAL_QUICK_MS + 1000, 500); /* lived for 30.5 s */
	assert_int_equal(journal_start_pause_ms(), 0);
	lives(9, JOURNAL_QUICK_MS + 1000, -1); /* killed, at the latest now */
	assert_int_equal(journal_start_pause_ms(), 0);
	lives(9, 3600000, 3595000); /* lived for 5 s, an hour ago */
	assert_true(journal_start_pause_ms() > 0);
}

static void a_clock_that_was_set_back_does_not_make_it_wait(void **state)
{
	(void)state;
	lives(9, -86400000, -1);
	assert_int_equal(journal_start_pause_ms(), 0);
}

static void a_broken_record_of_lives_counts_as_none(void **state)
{
	static const char *const bad[] = {
		"",	 "v2 9 1 1\n", "v1 x\n", "v1 9 -1 0\n", "v1 99999999999999999999 1 1\n",
		"v1  \n"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		state_open(dir, true);
		assert_int_equal(state_put("lives", 0600, bad[i], strlen(bad[i])), 0);
		assert_int_equal(journal_start_pause_ms(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listening_runner_is_healthy),
		cmocka_unit_test(busy_is_healthy_and_every_other_state_is_not),
		cmocka_unit_test(a_state_of_a_process_that_is_gone_is_not_healthy),
		cmocka_unit_test(a_state_that_is_none_is_not_healthy),
		cmocka_unit_test(the_directory_is_no_link),
		cmocka_unit_test(a_file_that_is_a_link_is_not_read),
		cmocka_unit_test(the_newest_registration_that_was_not_removed_is_found),
		cmocka_unit_test(a_record_of_another_credential_does_not_count),
		cmocka_unit_test(a_record_with_one_byte_changed_does_not_count),
		cmocka_unit_test(the_journal_keeps_the_newest_eight),
		cmocka_unit_test(the_longest_names_fit),
		cmocka_unit_test(without_a_credential_or_a_directory_there_is_no_journal),
		cmocka_unit_test(quick_lives_make_the_next_start_wait_longer_and_longer),
		cmocka_unit_test(a_life_that_served_ends_the_waiting),
		cmocka_unit_test(a_long_life_ends_the_waiting),
		cmocka_unit_test(a_clock_that_was_set_back_does_not_make_it_wait),
		cmocka_unit_test(a_broken_record_of_lives_counts_as_none),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
