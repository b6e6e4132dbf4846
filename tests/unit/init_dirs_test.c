#include "base/cleanup.h"
#include "base/str.h"
#include "init/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void what_is_missing_is_made_and_proved(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(dirs_prove(in("a/b//c/"), true, "X", &e), 0);
	assert_int_equal(mode_of(in("a/b/c")), 0775);
	assert_int_equal(rmdir(in("a/b/c")), 0); /* empty: the proof was removed */
}

static void without_leave_nothing_is_made(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(dirs_prove(in("absent/x"), false, "PIP_CACHE_DIR", &e), -1);
	assert_int_equal(e.code, XC_FILES);
	assert_int_equal(e.sys, ENOENT);
	assert_non_null(strstr(e.text, "PIP_CACHE_DIR"));
	assert_int_equal(access(in("absent"), F_OK), -1);
}

static void an_existing_directory_keeps_its_mode_and_hands_on_setgid(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(mkdir("shared", 0755), 0);
	assert_int_equal(chmod("shared", 02750), 0);
	assert_int_equal(dirs_prove(in("shared/new"), true, "X", &e), 0);
	assert_int_equal(mode_of(in("shared")), 02750);
	assert_int_equal(mode_of(in("shared/new")), 02775);
}

static void our_own_links_are_followed(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(mkdir("real", 0755), 0);
	assert_int_equal(symlink("real", "relative"), 0);
	assert_int_equal(symlink(in("real/../real"), "absolute"), 0);
	assert_int_equal(dirs_prove(in("relative/one"), true, "X", &e), 0);
	assert_int_equal(dirs_prove(in("absolute/two"), true, "X", &e), 0);
	assert_int_equal(access(in("real/one"), F_OK), 0);
	assert_int_equal(access(in("real/two"), F_OK), 0);
}

static void links_in_a_circle_end(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(symlink("round", "round"), 0);
	assert_int_equal(dirs_prove(in("round/x"), true, "X", &e), -1);
	assert_int_equal(e.sys, ELOOP);
}

static void a_file_in_the_way_is_named(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
	assert_int_equal(dirs_prove(in("file"), true, "X", &e), -1);
	assert_int_equal(e.sys, ENOTDIR);
	assert_non_null(strstr(e.text, in("file")));
	assert_non_null(strstr(e.text, "a file is in the way"));
	assert_int_equal(dirs_prove(in("file/below"), true, "X", &e), -1);
}

static void a_message_names_owner_mode_user_and_remedy(void **state)
{
	struct err e = ERR_INIT;
	char want[64];

	(void)state;
	/* /proc refuses to create files, for everybody. */
	assert_int_equal(dirs_prove("/proc/sys", true, "TRITON_CACHE_DIR", &e), -1);
	assert_non_null(strstr(e.text, "/proc/sys"));
	assert_non_null(strstr(e.text, "owner 0:0, mode 0555"));
	assert_int_equal(
		str_fmt(want, sizeof want, "as uid %ld, gid %ld", (long)geteuid(), (long)getegid()),
		0);
	assert_non_null(strstr(e.text, want));
	assert_non_null(strstr(e.text, "set TRITON_CACHE_DIR to another place"));
}

static void names_without_room_for_a_byte_are_no_proof(void **state)
{
	struct err e = ERR_INIT;
	struct rlimit was, none;
	int r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	r = dirs_prove(in("full"), true, "X", &e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(r, -1);
	assert_int_equal(e.sys, EFBIG);
	assert_int_equal(rmdir(in("full")), 0); /* and the name is gone again */
}

static void a_relative_path_is_refused(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(dirs_prove("a/b", true, "X", &e), -1);
	assert_int_equal(dirs_prove("", true, "X", &e), -1);
}

static void names_that_are_too_long_are_refused(void **state)
{
	struct err e = ERR_INIT;
	static char path[6000];

	(void)state;
	memset(path, 'a', 300);
	path[0] = '/';
	assert_int_equal(dirs_prove(path, true, "X", &e), -1);
	for (size_t i = 0; i + 1 < sizeof path; i++)
		path[i] = i % 2 == 0 ? '/' : 'a';
	assert_int_equal(dirs_prove(path, true, "X", &e), -1);
	assert_int_equal(e.sys, ENAMETOOLONG);
}

static void listing_goes_up_to_the_root(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(mkdir("list", 0755), 0);
	assert_int_equal(dirs_listable(in("list"), "RUNNER_ROOT", &e), 0);
	assert_int_equal(dirs_listable("/", "RUNNER_ROOT", &e), 0);
	assert_int_equal(dirs_listable(in("nolist/x"), "RUNNER_ROOT", &e), -1);
	assert_non_null(strstr(e.text, in("nolist")));
}

static void no_descriptor_is_lost(void **state)
{
	struct err e = ERR_INIT;
	int before = open("/", O_RDONLY | O_CLOEXEC), after;

	(void)state;
	assert_int_equal(close(before), 0);
	for (int i = 0; i < 50; i++) {
		(void)dirs_prove(in("fd/ok"), true, "X", &e);
		(void)dirs_prove(in("fd/ok/missing"), false, "X", &e);
		(void)dirs_prove(in("round/x"), true, "X", &e);
		(void)dirs_listable(in("fd/none"), "X", &e);
	}
	after = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before);
	assert_int_equal(close(after), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_is_made_and_proved),
		cmocka_unit_test(without_leave_nothing_is_made),
		cmocka_unit_test(an_existing_directory_keeps_its_mode_and_hands_on_setgid),
		cmocka_unit_test(our_own_links_are_followed),
		cmocka_unit_test(links_in_a_circle_end),
		cmocka_unit_test(a_file_in_the_way_is_named),
		cmocka_unit_test(a_message_names_owner_mode_user_and_remedy),
		cmocka_unit_test(names_without_room_for_a_byte_are_no_proof),
		cmocka_unit_test(a_relative_path_is_refused),
		cmocka_unit_test(names_that_are_too_long_are_refused),
		cmocka_unit_test(listing_goes_up_to_the_root),
		cmocka_unit_test(no_descriptor_is_lost),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
