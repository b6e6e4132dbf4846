#include "base/cleanup.h"
#include "base/str.h"
#include "init/files.h"

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

static struct config c;
static struct gh_runner r;
static struct err e;

static void fresh(void)
{
	memset(&c, 0, sizeof c);
	memset(&r, 0, sizeof r);
	memset(&e, 0, sizeof e);
	assert_int_equal(str_copy(c.root, sizeof c.root, dir), 0);
	assert_int_equal(str_copy(c.gh.work, sizeof c.gh.work, "_work"), 0);
}

static void add(const char *name, const char *text)
{
	struct gh_file *f = &r.files[r.n_files++];

	assert_int_equal(str_copy(f->name, sizeof f->name, name), 0);
	f->len = (uint32_t)strlen(text);
	memcpy(f->data, text, f->len);
}

static void put(const char *name, const char *text)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0664);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static const char *text_of(const char *name)
{
	static char text[8192];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof text - 1);
	assert_true(n >= 0);
	text[n] = 0;
	assert_int_equal(close(fd), 0);
	return text;
}

static const char *const env[] = {"PATH=/opt/bin:/bin",
				  "LANG=C.UTF-8",
				  "JAVA_HOME=",
				  "M2_HOME=a\nb",
				  "LD_LIBRARY_PATH=/usr/local/nvidia/lib64",
				  "OTHER=1",
				  NULL};

static void the_identity_is_private_and_complete(void **state)
{
	struct stat st;

	(void)state;
	fresh();
	add(".runner", "{}");
	add(".credentials", "cred");
	add(".credentials_rsaparams", "key");
	put(".credentials", "old");
	assert_int_equal(chmod(".credentials", 0666), 0);
	assert_int_equal(files_identity(&c, &r, "[]", env, &e), 0);
	assert_string_equal(text_of(".runner"), "{}");
	assert_string_equal(text_of(".credentials"), "cred");
	assert_string_equal(text_of(".credentials_rsaparams"), "key");
	assert_string_equal(text_of(".setup_info"), "[]");
	assert_string_equal(text_of(".path"), "/opt/bin:/bin\n");
	for (unsigned i = 0; i < r.n_files; i++) {
		assert_int_equal(stat(r.files[i].name, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
}

static void stale_files_of_a_predecessor_go(void **state)
{
	static const char *const names[] = {".runner",
					    ".runner_migrated",
					    ".credentials",
					    ".credentials_migrated",
					    ".credentials_rsaparams",
					    ".service"};

	(void)state;
	fresh();
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		put(names[i], "stale");
	assert_int_equal(files_clean(&c, &e), 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_int_equal(access(names[i], F_OK), -1);
	assert_int_equal(files_clean(&c, &e), 0); /* nothing there is fine too */
	put(".runner_migrated", "stale");
	put(".credentials_migrated", "stale");
	add(".runner", "{}");
	assert_int_equal(files_identity(&c, &r, "", env, &e), 0);
	assert_int_equal(access(".runner_migrated", F_OK), -1);
	assert_int_equal(access(".credentials_migrated", F_OK), -1);
}

static void a_failure_leaves_no_runner_file(void **state)
{
	(void)state;
	fresh();
	put(".runner", "old");
	(void)unlink(".credentials");
	assert_int_equal(mkdir(".credentials", 0755), 0); /* cannot be replaced by a file */
	add(".runner", "{}");
	add(".credentials", "cred");
	assert_int_equal(files_identity(&c, &r, "", env, &e), -1);
	assert_int_equal(e.code, XC_FILES);
	assert_int_equal(access(".runner", F_OK), -1);
	assert_int_equal(access(".credentials.new", F_OK), -1);
	assert_int_equal(rmdir(".credentials"), 0);
}

static void a_link_in_place_of_an_identity_file_is_replaced_not_followed(void **state)
{
	struct stat st;

	(void)state;
	fresh();
	put("victim", "keep");
	assert_int_equal(symlink("victim", ".credentials"), 0);
	assert_int_equal(symlink("victim", ".credentials.new"), 0);
	add(".credentials", "cred");
	assert_int_equal(files_identity(&c, &r, "", env, &e), 0);
	assert_string_equal(text_of("victim"), "keep");
	assert_int_equal(lstat(".credentials", &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void a_name_that_leaves_the_root_is_refused(void **state)
{
	static const char *const bad[] = {"../x", "..", "./x", ".a/b", "bin", "."};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		fresh();
		add(bad[i], "x");
		assert_int_equal(files_identity(&c, &r, "", env, &e), -1);
		assert_int_equal(e.code, XC_PROTOCOL);
	}
}

static void dotenv_gets_what_env_sh_would_add(void **state)
{
	char text[512];

	(void)state;
	assert_int_equal(files_dotenv("", env, text, sizeof text), 0);
	assert_string_equal(text, "LANG=C.UTF-8\nLD_LIBRARY_PATH=/usr/local/nvidia/lib64\n");
}

static void what_the_image_baked_into_dotenv_stays(void **state)
{
	char text[512];

	(void)state;
	assert_int_equal(files_dotenv("MY_LANG=x\nLANG=de_DE", env, text, sizeof text), 0);
	assert_string_equal(text, "MY_LANG=x\nLANG=de_DE\n"
				  "LD_LIBRARY_PATH=/usr/local/nvidia/lib64\n");
	assert_int_equal(files_dotenv("MY_LANG=x\n", env, text, sizeof text), 0);
	assert_string_equal(text, "MY_LANG=x\nLANG=C.UTF-8\n"
				  "LD_LIBRARY_PATH=/usr/local/nvidia/lib64\n");
}

static void a_dotenv_that_does_not_fit_is_refused(void **state)
{
	char text[20];

	(void)state;
	assert_int_equal(files_dotenv("", env, text, sizeof text), -1);
	assert_int_equal(files_dotenv("1234567890123456789", env, text, sizeof text), -1);
}

static void directories_are_proved_in_one_go(void **state)
{
	struct config_cache *k = &c.caches[0];

	(void)state;
	fresh();
	c.n_caches = 1;
	assert_int_equal(str_copy(k->var, sizeof k->var, "PIP_CACHE_DIR"), 0);
	assert_int_equal(str_copy(k->path, sizeof k->path, in("cache/pip")), 0);
	assert_int_equal(files_dirs(&c, &e), 0);
	assert_int_equal(access(in("cache/pip"), W_OK), 0);
	put("_work", "a file");
	assert_int_equal(files_dirs(&c, &e), -1);
	assert_non_null(strstr(e.text, "RUNNER_WORKDIR"));
	assert_int_equal(unlink("_work"), 0);
	put("_diag", "a file");
	assert_int_equal(files_dirs(&c, &e), -1);
	assert_non_null(strstr(e.text, "_diag"));
	assert_int_equal(unlink("_diag"), 0);
	assert_int_equal(str_copy(c.gh.work, sizeof c.gh.work, in("deep/er/work/")), 0);
	assert_int_equal(files_dirs(&c, &e), 0);
	assert_int_equal(access(in("deep/er"), W_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_identity_is_private_and_complete),
		cmocka_unit_test(stale_files_of_a_predecessor_go),
		cmocka_unit_test(a_failure_leaves_no_runner_file),
		cmocka_unit_test(a_link_in_place_of_an_identity_file_is_replaced_not_followed),
		cmocka_unit_test(a_name_that_leaves_the_root_is_refused),
		cmocka_unit_test(dotenv_gets_what_env_sh_would_add),
		cmocka_unit_test(what_the_image_baked_into_dotenv_stays),
		cmocka_unit_test(a_dotenv_that_does_not_fit_is_refused),
		cmocka_unit_test(directories_are_proved_in_one_go),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
