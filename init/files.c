/* What the agent finds in its root. Names, order and meaning: actions/runner,
 * src/Runner.Common/ConfigurationStore.cs and src/Misc/layoutroot/env.sh. */
#include "init/files.h"

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "init/dirs.h"
#include "init/user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_root(const struct config *c, struct err *e)
{
	int fd;

	if (user_become(&c->user, e) < 0)
		return -1;
	fd = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		(void)err_set(e, XC_FILES, errno, "RUNNER_ROOT: cannot open %s as uid %ld", c->root,
			      (long)geteuid());
	return fd;
}

static int in_root(const struct config *c, const char *name, char *dst, size_t size, struct err *e)
{
	int r = name[0] == '/' ? str_copy(dst, size, name)
			       : str_fmt(dst, size, "%s/%s", c->root, name);

	return r == 0 ? 0
		      : err_set(e, XC_FILES, ENAMETOOLONG, "cannot use %s below %s", name, c->root);
}

/* The agent makes the work folder itself, so its parent must be writable; one that is there must be
 * so itself. */
static int prove_work(const struct config *c, struct err *e)
{
	char path[2100], *slash;
	struct stat st;

	if (in_root(c, c->gh.work, path, sizeof path, e) < 0)
		return -1;
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = 0;
	if (lstat(path, &st) == 0)
		return dirs_prove(path, false, "RUNNER_WORKDIR", e);
	slash = strrchr(path, '/');
	if (slash == NULL)
		return err_set(e, XC_FILES, 0, "RUNNER_WORKDIR: %s has no parent", path);
	slash[slash == path ? 1 : 0] = 0;
	if (dirs_prove(path, true, "RUNNER_WORKDIR", e) == 0)
		return 0;
	return err_prefix(e, "the work folder %s has no usable parent", c->gh.work);
}

int files_dirs(const struct config *c, struct err *e)
{
	char diag[1100];
	struct stat st;

	if (user_become(&c->user, e) < 0)
		return -1;
	if (dirs_listable(c->root, "RUNNER_ROOT", e) < 0 ||
	    dirs_prove(c->root, false, "RUNNER_ROOT", e) < 0)
		return -1;
	if (in_root(c, "_diag", diag, sizeof diag, e) < 0)
		return -1;
	if (lstat(diag, &st) == 0 && dirs_prove(diag, false, "RUNNER_ROOT", e) < 0)
		return -1;
	if (prove_work(c, e) < 0) /* before the caches: the tool cache may be in it */
		return -1;
	for (unsigned i = 0; i < c->n_caches; i++)
		if (dirs_prove(c->caches[i].path, true, c->caches[i].var, e) < 0)
			return -1;
	return 0;
}

static int remove_names(int root, const char *const *names, size_t n, const char *where,
			struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (unlinkat(root, names[i], 0) < 0 && errno != ENOENT)
			return err_set(e, XC_FILES, errno,
				       "cannot remove the stale %s/%s as uid %ld", where, names[i],
				       (long)geteuid());
	return 0;
}

int files_clean(const struct config *c, struct err *e)
{
	/* .runner first: without it the agent counts as not configured, whatever else is there. */
	static const char *const names[] = {
		".runner",
		".runner_migrated",
		".credentials",
		".credentials_migrated",
		".credentials_rsaparams",
		".service",
	};
	cleanup_fd int root = open_root(c, e);

	if (root < 0)
		return -1;
	return remove_names(root, names, sizeof names / sizeof names[0], c->root, e);
}

static int put(int root, const char *name, mode_t mode, const void *data, size_t len,
	       const char *where, struct err *e)
{
	if (fs_write(root, name, mode, data, len, e) == 0)
		return 0;
	return err_prefix(e, "in the runner root %s as uid %ld", where, (long)geteuid());
}

/* A name from a JIT configuration must not leave the root, nor hide the agent's own files. */
static bool good_name(const char *name)
{
	return name[0] == '.' && strlen(name) > 2 && strchr(name, '/') == NULL &&
	       strncmp(name, "..", 2) != 0;
}

static int put_identity(int root, const struct gh_runner *r, bool last, const char *where,
			struct err *e)
{
	for (unsigned i = 0; i < r->n_files && i < GH_FILES_MAX; i++) {
		const struct gh_file *f = &r->files[i];
		if ((strcmp(f->name, ".runner") == 0) != last)
			continue;
		if (!good_name(f->name) || f->len > sizeof f->data)
			return err_set(e, XC_PROTOCOL, 0,
				       "a file of the registration has a name or size that is not "
				       "allowed");
		if (put(root, f->name, 0600, f->data, f->len, where, e) < 0)
			return -1;
	}
	return 0;
}

const char *const files_env_names[] = {"LANG",	       "JAVA_HOME",	   "ANT_HOME",	  "M2_HOME",
				       "ANDROID_HOME", "ANDROID_SDK_ROOT", "GRADLE_HOME", "NVM_BIN",
				       "NVM_PATH",     "LD_LIBRARY_PATH",  "PERL5LIB",	  NULL};

static const char *lookup(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static bool has_line(const char *text, const char *key)
{
	const char *p = text;

	while ((p = strstr(p, key)) != NULL) {
		if (p == text || p[-1] == '\n')
			return true;
		p++;
	}
	return false;
}

int files_dotenv(const char *found, const char *const *env, char *dst, size_t size)
{
	size_t n = strlen(found);

	if (str_copy(dst, size, found) < 0)
		return -1;
	if (n > 0 && dst[n - 1] != '\n') {
		if (n + 1 >= size)
			return -1;
		dst[n++] = '\n';
		dst[n] = 0;
	}
	for (const char *const *name = files_env_names; *name != NULL; name++) {
		const char *v = lookup(env, *name);
		char key[32];
		if (v == NULL || *v == 0 || strpbrk(v, "\r\n") != NULL)
			continue; /* a line break would start a line of its own */
		if (str_fmt(key, sizeof key, "%s=", *name) < 0 || has_line(found, key))
			continue;
		if (str_fmt(dst + n, size - n, "%s%s\n", key, v) < 0)
			return -1;
		n += strlen(dst + n);
	}
	return 0;
}

static int put_environment(int root, const struct config *c, const char *const *env, struct err *e)
{
	static char text[CONFIG_DOTENV_MAX + 16384];
	const char *path = lookup(env, "PATH");
	size_t n;

	if (files_dotenv(c->dotenv, env, text, sizeof text) < 0)
		return err_set(e, XC_FILES, E2BIG, "cannot write %s/.env", c->root);
	if (put(root, ".env", 0644, text, strlen(text), c->root, e) < 0)
		return -1;
	if (str_fmt(text, sizeof text, "%s\n", path != NULL ? path : "") < 0)
		return err_set(e, XC_FILES, E2BIG, "cannot write %s/.path", c->root);
	n = strlen(text);
	return put(root, ".path", 0644, text, n, c->root, e);
}

int files_identity(const struct config *c, const struct gh_runner *r, const char *setup_info,
		   const char *const *agent_env, struct err *e)
{
	static const char *const stale[] = {".runner", ".runner_migrated", ".credentials_migrated",
					    ".service"};
	cleanup_fd int root = open_root(c, e);

	/* Without .runner the agent would not start on half of a new identity and half of an old.
	 */
	if (root < 0 || remove_names(root, stale, sizeof stale / sizeof stale[0], c->root, e) < 0 ||
	    put_identity(root, r, false, c->root, e) < 0 ||
	    put_environment(root, c, agent_env, e) < 0)
		return -1;
	if (setup_info != NULL && setup_info[0] != 0 &&
	    put(root, ".setup_info", 0644, setup_info, strlen(setup_info), c->root, e) < 0)
		return -1;
	return put_identity(root, r, true, c->root, e);
}
