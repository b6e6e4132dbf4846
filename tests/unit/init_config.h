/* Helpers of the tests of the configuration: an environment read with a runner root of its own. */
#ifndef TESTS_UNIT_INIT_CONFIG_H
#define TESTS_UNIT_INIT_CONFIG_H

#include "base/str.h"
#include "init/setting.h"

#include <fcntl.h>
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

static struct config c;
static struct config_reading r;
static char root[64]; /* a runner root that satisfies the reader */

#define URL   "RUNNER_URL=https://github.com/owner/repo"
#define TOKEN "RUNNER_TOKEN=AABBCC"
#define ENV(...)                                                                                   \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

/* Reads with a root and, for those who run the tests as root, leave to do so. */
static unsigned read_as(const char *const *given, enum config_use use)
{
	static char text[65536], *envp[64];
	size_t n = 0, o = 0;

	memset(&c, 0, sizeof c);
	memset(&r, 0, sizeof r);
	for (; given[n] != NULL; n++) {
		assert_true(n < 60);
		assert_int_equal(str_copy(text + o, sizeof text - o, given[n]), 0);
		envp[n] = text + o;
		o += strlen(given[n]) + 1;
	}
	assert_int_equal(str_fmt(text + o, sizeof text - o, "RUNNER_ROOT=%s", root), 0);
	envp[n++] = text + o;
	o += strlen(text + o) + 1;
	assert_int_equal(str_copy(text + o, sizeof text - o, "RUNNER_ALLOW_RUNASROOT=1"), 0);
	envp[n++] = text + o;
	envp[n] = NULL;
	return config_collect(&c, envp, use, &r);
}

static unsigned read_env(const char *const *given)
{
	return read_as(given, CONFIG_LIFE);
}

static const struct config_problem *about(const char *var, bool warning)
{
	for (unsigned i = 0; i < r.n_problems; i++)
		if (strcmp(r.problems[i].var, var) == 0 && r.problems[i].warning == warning)
			return &r.problems[i];
	return NULL;
}

static void assert_refused(const char *const *env, const char *var, const char *words)
{
	const struct config_problem *p;

	if (read_env(env) == 0)
		fail_msg("%s was not refused", env[0]);
	p = about(var, false);
	if (p == NULL)
		fail_msg("no problem of %s after %s; the first is %s: %s", var, env[0],
			 r.problems[0].var, r.problems[0].text);
	if (p != NULL && strstr(p->text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", p->text, words);
}

static int make_root(void **state)
{
	char path[128];

	(void)state;
	assert_int_equal(str_copy(root, sizeof root, "/tmp/init-config-XXXXXX"), 0);
	if (mkdtemp(root) == NULL)
		return -1;
	assert_true(snprintf(path, sizeof path, "%s/bin", root) > 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(snprintf(path, sizeof path, "%s/bin/Runner.Listener", root) > 0);
	return close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755));
}

static int drop_root(void **state)
{
	char path[128];

	(void)state;
	assert_true(snprintf(path, sizeof path, "%s/bin/Runner.Listener", root) > 0);
	(void)unlink(path);
	assert_true(snprintf(path, sizeof path, "%s/.env", root) > 0);
	(void)unlink(path);
	assert_true(snprintf(path, sizeof path, "%s/secret", root) > 0);
	(void)unlink(path);
	assert_true(snprintf(path, sizeof path, "%s/bin", root) > 0);
	(void)rmdir(path);
	return rmdir(root);
}

#endif
