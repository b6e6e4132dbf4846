/* The environment that others see: wiped in place for those who look at ours, made anew for the
 * agent. */
#include "base/str.h"
#include "init/setting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGENT_ENV_MAX 8192

static struct {
	const char *list[AGENT_ENV_MAX];
	size_t n;
	char text[CONFIG_CACHES_MAX * 1100 + 8192];
	size_t used;
	bool full;
} made;

bool config_is_secret(const char *entry, size_t n)
{
	static const char input[] = "ACTIONS_RUNNER_INPUT_"; /* the agent compares in any case */

	if (n >= sizeof input - 1 && strncasecmp(entry, input, sizeof input - 1) == 0)
		return true;
	for (unsigned i = 0; i < settings_n; i++) {
		size_t k = strlen(settings[i].name);
		if (!settings[i].secret || n < k || strncmp(entry, settings[i].name, k) != 0)
			continue;
		if (n == k || (n == k + 5 && strncmp(entry + k, "_FILE", 5) == 0))
			return true;
	}
	return false;
}

void config_wipe_environ(char **envp)
{
	char **to = envp;

	for (char **from = envp; *from != NULL; from++) {
		if (config_is_secret(*from, strcspn(*from, "=")))
			explicit_bzero(*from, strlen(*from));
		else
			*to++ = *from;
	}
	while (*to != NULL)
		*to++ = NULL;
}

static void push(const char *entry)
{
	if (made.n + 1 >= AGENT_ENV_MAX)
		made.full = true;
	else
		made.list[made.n++] = entry;
}

static void put(const char *name, const char *value)
{
	char *at = made.text + made.used;

	if (str_fmt(at, sizeof made.text - made.used, "%s=%s", name, value) < 0) {
		made.full = true;
		return;
	}
	made.used += strlen(at) + 1;
	push(at);
}

static bool can_live_in(const struct user *u, const char *path)
{
	struct stat st;

	if (path[0] != '/' || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (!u->switching)
		return access(path, W_OK | X_OK) == 0;
	/* For root access() says yes to all but a read-only file system. */
	return config_user_may(u, st.st_uid, st.st_gid, st.st_mode, 3) && access(path, W_OK) == 0;
}

/* NULL: the one that is there is good, or there is none to give. */
static const char *better_home(const struct config *c, char *const *envp)
{
	const char *home = config_env(envp, "HOME");

	if (home != NULL && can_live_in(&c->user, home))
		return NULL;
	if (can_live_in(&c->user, c->user.home))
		return c->user.home;
	return c->root[0] != 0 ? c->root : NULL;
}

bool config_home_is_root(const struct config *c, char *const *envp)
{
	return better_home(c, envp) == c->root;
}

static bool named(const char *entry, size_t n, const char *name)
{
	return strlen(name) == n && strncmp(entry, name, n) == 0;
}

static bool handed_on(const struct config *c, const char *entry, const char *home)
{
	size_t n = strcspn(entry, "=");

	if (config_is_secret(entry, n) || str_starts(entry, "INIT_"))
		return false;
	if (home != NULL && named(entry, n, "HOME"))
		return false;
	if (c->user.switching && c->user.name[0] != 0 &&
	    (named(entry, n, "USER") || named(entry, n, "LOGNAME")))
		return false;
	for (unsigned i = 0; i < c->n_caches; i++)
		if (named(entry, n, c->caches[i].var))
			return false; /* given again below, trimmed */
	return true;
}

const char *const *config_agent_env(const struct config *c, char *const *envp)
{
	static const char *const switches[] = {"ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE",
					       "RUNNER_MANUALLY_TRAP_SIG"};
	const char *home = better_home(c, envp);

	made.n = 0;
	made.used = 0;
	made.full = false;
	for (char *const *p = envp; *p != NULL; p++)
		if (handed_on(c, *p, home))
			push(*p);
	for (unsigned i = 0; i < c->n_caches; i++)
		put(c->caches[i].var, c->caches[i].path);
	for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
		if (config_env(envp, switches[i]) == NULL)
			put(switches[i], "1");
	if (home != NULL)
		put("HOME", home);
	if (c->user.switching && c->user.name[0] != 0) {
		put("USER", c->user.name);
		put("LOGNAME", c->user.name);
	}
	if (made.full)
		made.n = 0; /* the reader refuses an environment that cannot be handed on whole */
	made.list[made.n] = NULL;
	return made.list;
}
