/* What several settings, and this machine, make together: name, user, root, cache directories; and
 * what must not be missing. */
#include "base/deadline.h"
#include "base/str.h"
#include "build/version.h"
#include "init/netcheck.h"
#include "init/setting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

bool config_user_may(const struct user *u, uid_t owner, gid_t group, unsigned mode, unsigned want)
{
	unsigned shift = 0;

	if (u->uid == 0)
		return true;
	if (u->uid == owner)
		shift = 6;
	else if (u->gid == group)
		shift = 3;
	for (int i = 0; shift == 0 && i < u->n_groups; i++)
		if (u->groups[i] == group)
			shift = 3;
	return ((mode >> shift) & want) == want;
}

static void find_name(struct config *c, struct config_reading *r)
{
	char host[256] = "";

	if (r->source[setting_index("RUNNER_NAME")] == FROM_ENV)
		return;
	r->source[setting_index("RUNNER_NAME")] = FROM_SEARCH;
	if (gethostname(host, sizeof host - 1) < 0 ||
	    config_default_name(host, c->gh.name, sizeof c->gh.name) < 0)
		config_problem(r, false, "RUNNER_NAME", "is not set, and this host has no name");
}

static void find_user(struct config *c, struct config_reading *r)
{
	struct err e = ERR_INIT;
	bool given = r->source[setting_index("RUNNER_USER")] == FROM_ENV;

	c->as_root = geteuid() == 0;
	if (!given && user_find(NULL, &c->user, &e) < 0)
		config_problem(r, false, "RUNNER_USER", "%s", e.text);
	if (given && !c->as_root && c->user.n_groups > 0 && c->user.uid != geteuid())
		config_problem(
			r, false, "RUNNER_USER",
			"init runs as uid %ld and cannot become uid %ld; start the container as "
			"root, or leave RUNNER_USER out",
			(long)geteuid(), (long)c->user.uid);
}

static bool agent_in(const char *root)
{
	char path[1200];
	struct stat st;

	return str_fmt(path, sizeof path, "%s/bin/Runner.Listener", root) == 0 &&
	       stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void search_root(struct config *c)
{
	static const char *const places[] = {"/home/ci-runner/runner", "/home/runner",
					     "/actions-runner", "/runner", "/opt/actions-runner"};

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		if (agent_in(places[i])) {
			(void)str_copy(c->root, sizeof c->root, places[i]);
			return;
		}
	}
	if (getcwd(c->root, sizeof c->root) == NULL || !agent_in(c->root))
		c->root[0] = 0;
}

static void find_root(struct config *c, enum config_use use, struct config_reading *r)
{
	int i = setting_index("RUNNER_ROOT");
	char path[1200];
	ssize_t n;

	if (r->source[i] != FROM_ENV) {
		search_root(c);
		r->source[i] = c->root[0] != 0 ? FROM_SEARCH : FROM_NOWHERE;
	}
	if (use != CONFIG_LIFE)
		return;
	if (c->root[0] == 0 && r->source[i] != FROM_ENV)
		config_problem(r, false, "RUNNER_ROOT",
			       "no unpacked runner was found: none of /home/ci-runner/runner, "
			       "/home/runner, /actions-runner, /runner, /opt/actions-runner and "
			       "the working directory has bin/Runner.Listener; set RUNNER_ROOT");
	if (c->root[0] == 0)
		return;
	if (!agent_in(c->root)) {
		config_problem(
			r, false, "RUNNER_ROOT",
			"\"%s\" has no file bin/Runner.Listener that uid %ld can see; unpack "
			"the runner there, and mount no volume over it",
			c->root, (long)geteuid());
		return;
	}
	if (str_fmt(path, sizeof path, "%s/.env", c->root) < 0)
		return;
	n = config_read_file(path, &c->user, c->dotenv, sizeof c->dotenv);
	if (n < 0 && errno != ENOENT)
		config_problem(r, false, "RUNNER_ROOT", "cannot read %s: %s", path,
			       strerror(errno));
	if (n < 0)
		c->dotenv[0] = 0;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Default of a known cache variable into dst; -1: none. */
static int cache_default(const struct config *c, const char *var, char *dst, size_t size)
{
	static const struct {
		const char *var, *path;
	} known[] = {{"TILELANG_CACHE_DIR", "/ci-cache/tilelang"},
		     {"TILELANG_TMP_DIR", "/ci-cache/tilelang/tmp"},
		     {"TRITON_CACHE_DIR", "/ci-cache/triton"},
		     {"PIP_CACHE_DIR", "/ci-cache/pip"}};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(var, known[i].var) == 0)
			return is_directory("/ci-cache") ? str_copy(dst, size, known[i].path) : -1;
	if (strcmp(var, "AGENT_TOOLSDIRECTORY") != 0 || c->root[0] == 0)
		return -1;
	if (c->gh.work[0] == '/')
		return str_fmt(dst, size, "%s/_tool", c->gh.work);
	return str_fmt(dst, size, "%s/%s/_tool", c->root, c->gh.work);
}

static bool is_identifier(const char *s)
{
	if (*s >= '0' && *s <= '9')
		return false;
	for (const char *p = s; *p != 0; p++)
		if (!((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
		      (*p >= 'A' && *p <= 'Z') || *p == '_'))
			return false;
	return *s != 0;
}

static void add_cache(struct config *c, const char *var, char *const *envp,
		      struct config_reading *r)
{
	struct config_cache *k = &c->caches[c->n_caches];
	size_t len;
	const char *v = config_value(envp, var, &len);
	char shown[256];

	if (!is_identifier(var) || str_copy(k->var, sizeof k->var, var) < 0) {
		str_show(shown, sizeof shown, var, strlen(var));
		config_problem(r, false, "INIT_CACHE_DIRS", "\"%s\" is not the name of a variable",
			       shown);
		return;
	}
	if (config_is_secret(var, strlen(var))) { /* its value would be shown, and handed on */
		config_problem(r, false, "INIT_CACHE_DIRS", "\"%s\" is a secret, no directory",
			       var);
		return;
	}
	k->defaulted = v == NULL;
	if (v == NULL) {
		c->n_caches += cache_default(c, var, k->path, sizeof k->path) == 0 ? 1 : 0;
		return;
	}
	str_show(shown, sizeof shown, v, len);
	if (str_copyn(k->path, sizeof k->path, v, len) < 0)
		config_problem(r, false, var, "\"%s\" is too long for a path", shown);
	else if (v[0] != '/')
		config_problem(r, false, var,
			       "\"%s\" is a cache directory and must be an absolute path; "
			       "change it, or take %s out of INIT_CACHE_DIRS",
			       shown, var);
	else
		c->n_caches++;
}

static void find_caches(struct config *c, char *const *envp, struct config_reading *r)
{
	int i = setting_index("INIT_CACHE_DIRS");
	size_t len = strlen(settings[i].deflt);
	const char *list = settings[i].deflt;
	char var[128];

	if (r->source[i] == FROM_ENV)
		list = config_value(envp, settings[i].name, &len);
	while (list != NULL && len > 0) {
		size_t n = strcspn(list, ":") < len ? strcspn(list, ":") : len;
		const char *from = list;

		list += n < len ? n + 1 : n;
		len -= n < len ? n + 1 : n;
		if (n == 0)
			continue;
		if (c->n_caches >= CONFIG_CACHES_MAX)
			config_problem(r, false, "INIT_CACHE_DIRS", "names more than %d variables",
				       CONFIG_CACHES_MAX);
		if (c->n_caches >= CONFIG_CACHES_MAX)
			return;
		(void)str_copyn(var, sizeof var, from, n < sizeof var ? n : sizeof var - 1);
		add_cache(c, var, envp, r);
	}
}

/* PRETTY_NAME of os-release: "Ubuntu 22.04.5 LTS". GitHub shows it in the list of runners. */
static void find_os(struct config *c)
{
	char text[4096], *p, *end;
	struct utsname u;

	if (config_read_file("/etc/os-release", NULL, text, sizeof text) > 0 &&
	    (p = strstr(text, "PRETTY_NAME=")) != NULL) {
		p += strlen("PRETTY_NAME=");
		p += *p == '"' || *p == '\'' ? 1 : 0;
		end = p + strcspn(p, "\"'\n");
		str_show(c->gh.os_description, sizeof c->gh.os_description, p, (size_t)(end - p));
	}
	if (c->gh.os_description[0] == 0 && uname(&u) == 0)
		(void)str_fmt(c->gh.os_description, sizeof c->gh.os_description, "%s %s", u.sysname,
			      u.release);
}

static void find_constraints(struct config *c, struct config_reading *r)
{
	int i = setting_index("INIT_CONSTRAINTS");
	char self[900];
	ssize_t n;
	char *slash;

	if (r->source[i] == FROM_ENV)
		return;
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0)
		return;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash == NULL)
		return;
	*slash = 0;
	if (str_fmt(c->constraints, sizeof c->constraints, "%s/constraints.txt", self) == 0)
		r->source[i] = FROM_SEARCH;
}

static void fill_probe(struct config *c)
{
	struct probe_settings *p = &c->probe;
	unsigned n = 0;

	p->root = c->root;
	p->constraints = c->constraints;
	p->cache_min_free = c->cache_min_free;
	p->gpu = c->gpu;
	p->gpu_wait_ms = c->gpu_wait_ms;
	p->api_url = c->api_url;
	p->https_proxy = c->gh.https_proxy;
	p->http_proxy = c->gh.http_proxy;
	p->no_proxy = c->gh.no_proxy;
	p->ca_file = c->gh.ca_file;
	p->ca_dir = c->gh.ca_dir;
	p->http_ms = c->gh.http_ms;
	p->build_epoch = INIT_BUILD_EPOCH;
	p->net = netcheck_run;
	p->version = INIT_VERSION;
	p->image = c->expect.image;
	p->python = c->expect.python;
	p->expect_cuda = c->expect.cuda;
	p->expect_suffix = c->expect.suffix;
	p->expect_gpus = c->expect.gpus;
	p->floor_gemm_tflops = c->expect.gemm_tflops;
	p->floor_copy_gbs = c->expect.copy_gbs;
	p->gpu_max_used = c->expect.gpu_max_used;
	p->uid = c->user.switching ? c->user.uid : (uid_t)-1;
	p->gid = c->user.switching ? c->user.gid : (gid_t)-1;
	for (const char *const *e = p->envp; *e != NULL && n < c->n_caches; e++)
		for (unsigned i = 0; i < c->n_caches && n < 16; i++)
			if (str_starts(*e, c->caches[i].var) &&
			    (*e)[strlen(c->caches[i].var)] == '=')
				p->cache_dirs[n++] = *e;
	p->n_cache_dirs = n;
}

void config_find(struct config *c, char *const *envp, enum config_use use, struct config_reading *r)
{
	find_user(c, r);
	find_root(c, use, r);
	(void)str_copy(c->gh.root, sizeof c->gh.root, c->root);
	find_caches(c, envp, r);
	find_constraints(c, r);
	c->state_dir_given = c->state_dir[0] != 0;
	if (use == CONFIG_LIFE) {
		find_name(c, r);
		find_os(c);
	}
	if (c->gh.have_scope)
		(void)url_text(&c->gh.scope.api, c->api_url, sizeof c->api_url);
	c->probe.envp = config_agent_env(c, envp);
	if (c->probe.envp[0] == NULL)
		config_problem(r, false, "environ", "holds too many variables or too long ones");
	if (config_home_is_root(c, envp))
		config_problem(
			r, true, "HOME",
			"is unset or not writable for uid %ld, and passwd has no better one: "
			"jobs get the runner root %s",
			(long)c->user.uid, c->root);
	fill_probe(c);
}

/* ---- what must be there, and what does not go together ----------------------------------------
 */

static bool is_set(char *const *envp, const char *name)
{
	size_t n;

	return config_value(envp, name, &n) != NULL;
}

/* Names that other runner images read. Their users should learn ours from the first log. */
static void hint_foreign(char *const *envp, struct config_reading *r)
{
	static const struct {
		const char *theirs, *ours;
	} names[] = {{"REPO_URL", "RUNNER_URL"},
		     {"GITHUB_RUNNER_URL", "RUNNER_URL"},
		     {"RUNNER_REPOSITORY_URL", "RUNNER_URL"},
		     {"RUNNER_ORGANIZATION_URL", "RUNNER_URL"},
		     {"ORG_NAME", "RUNNER_URL"},
		     {"ENTERPRISE_NAME", "RUNNER_URL"},
		     {"ACTIONS_RUNNER_INPUT_URL", "RUNNER_URL"},
		     {"ACTIONS_RUNNER_INPUT_TOKEN", "RUNNER_TOKEN"},
		     {"GITHUB_RUNNER_TOKEN", "RUNNER_TOKEN"},
		     {"ACTIONS_RUNNER_INPUT_PAT", "ACCESS_TOKEN"},
		     {"GITHUB_PAT", "ACCESS_TOKEN"},
		     {"GITHUB_ACCESS_TOKEN", "ACCESS_TOKEN"},
		     {"GH_ACCESS_TOKEN", "ACCESS_TOKEN"},
		     {"GITHUB_RUNNER_PAT", "ACCESS_TOKEN"},
		     {"GITHUB_APP_ID", "APP_ID"},
		     {"GITHUB_APP_PEM", "APP_PRIVATE_KEY"},
		     {"GITHUB_APP_INSTALL_ID", "APP_INSTALLATION_ID"},
		     {"ACTIONS_RUNNER_INPUT_NAME", "RUNNER_NAME"},
		     {"LABELS", "RUNNER_LABELS"},
		     {"GITHUB_RUNNER_LABELS", "RUNNER_LABELS"},
		     {"GH_RUNNER_LABELS", "RUNNER_LABELS"},
		     {"ACTIONS_RUNNER_INPUT_LABELS", "RUNNER_LABELS"},
		     {"NO_DEFAULT_LABELS", "RUNNER_NO_DEFAULT_LABELS"},
		     {"RUNNER_GROUPS", "RUNNER_GROUP"},
		     {"RUNNER_WORK_DIRECTORY", "RUNNER_WORKDIR"},
		     {"GITHUB_RUNNER_WORKDIR", "RUNNER_WORKDIR"},
		     {"EPHEMERAL", "RUNNER_EPHEMERAL"},
		     {"DISABLE_AUTO_UPDATE", "RUNNER_DISABLE_UPDATE"},
		     {"DISABLE_RUNNER_UPDATE", "RUNNER_DISABLE_UPDATE"},
		     {"RUNNER_GRACEFUL_STOP_TIMEOUT", "INIT_DRAIN"},
		     {"RUN_AS_ROOT", "RUNNER_ALLOW_RUNASROOT"}};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char file[96];
		if (!is_set(envp, names[i].theirs) || is_set(envp, names[i].ours) ||
		    str_fmt(file, sizeof file, "%s_FILE", names[i].ours) < 0 || is_set(envp, file))
			continue;
		config_problem(r, true, names[i].theirs,
			       "is set, as for other runner images; init reads %s instead",
			       names[i].ours);
	}
}

static void demand_credential(const struct config *c, struct config_reading *r)
{
	const struct gh_credentials *k = &c->gh.cred;
	bool app_id = k->app_id[0] != 0, app_key = secret_present(&k->app_key);
	bool told = false; /* what is wrong with one that is there was said already */

	for (unsigned i = 0; i < settings_n; i++)
		told = told || (settings[i].secret && r->source[i] != FROM_NOWHERE);
	if (app_key && !app_id)
		config_problem(r, false, "APP_ID", "is not set, but APP_PRIVATE_KEY is");
	if (app_id && !app_key && r->source[setting_index("APP_PRIVATE_KEY")] == FROM_NOWHERE)
		config_problem(r, false, "APP_PRIVATE_KEY", "is not set, but APP_ID is");
	if (c->gh.jit_generate && !secret_present(&k->pat) && !app_key)
		config_problem(r, false, "RUNNER_JIT",
			       "needs a PAT (ACCESS_TOKEN) or an App (APP_ID, APP_PRIVATE_KEY)");
	if (!secret_present(&k->token) && !secret_present(&k->pat) && !secret_present(&k->jit) &&
	    !app_id && !told)
		config_problem(r, false, "RUNNER_TOKEN",
			       "is not set, and no other credential is; give one of RUNNER_TOKEN, "
			       "ACCESS_TOKEN, APP_ID with APP_PRIVATE_KEY, "
			       "ACTIONS_RUNNER_INPUT_JITCONFIG, or the same name with _FILE");
}

/* A job that can read the credential's file needs no other way to it. */
static void warn_readable(const struct config *c, struct config_reading *r)
{
	struct stat st;
	char var[80];

	for (unsigned i = 0; i < settings_n; i++) {
		if (r->source[i] != FROM_FILE || stat(r->file[i], &st) < 0)
			continue;
		if (!S_ISREG(st.st_mode) ||
		    !config_user_may(&c->user, st.st_uid, st.st_gid, st.st_mode, 4))
			continue;
		if (str_fmt(var, sizeof var, "%s_FILE", settings[i].name) < 0)
			continue;
		config_problem(r, true, var,
			       "the file %s can be read by jobs (uid %ld); start the container as "
			       "root with RUNNER_USER, and let only root read the file",
			       r->file[i], (long)c->user.uid);
	}
}

static void warn_blanks(const struct config *c, struct config_reading *r)
{
	for (unsigned i = 0; i < c->gh.n_labels; i++)
		if (strchr(c->gh.labels[i], ' ') != NULL)
			config_problem(r, true, "RUNNER_LABELS",
				       "\"%s\" holds a blank; runs-on rarely names such a label",
				       c->gh.labels[i]);
}

void config_demand(struct config *c, char *const *envp, struct config_reading *r)
{
	const struct gh_settings *g = &c->gh;

	if (!g->have_scope && r->source[setting_index("RUNNER_URL")] == FROM_NOWHERE &&
	    !secret_present(&g->cred.jit))
		config_problem(r, false, "RUNNER_URL", "is not set; accepted: %s",
			       settings[setting_index("RUNNER_URL")].accepts);
	demand_credential(c, r);
	if (g->no_default_labels && g->n_labels == 0)
		config_problem(r, false, "RUNNER_NO_DEFAULT_LABELS",
			       "leaves the runner without any label; set RUNNER_LABELS too");
	if (g->have_scope && g->scope.kind == GH_REPO && g->group[0] != 0 &&
	    !str_eq_nocase(g->group, "default"))
		config_problem(r, false, "RUNNER_GROUP",
			       "\"%s\" cannot be used with the repository URL %s: groups belong "
			       "to organisations and enterprises; leave it out, or give RUNNER_URL "
			       "of the organisation",
			       g->group, g->scope.url);
	if (c->as_root && c->user.uid == 0 && !c->allow_root)
		config_problem(r, false, "RUNNER_USER",
			       "is not set, and init runs as root: so would every job; set "
			       "RUNNER_USER to the jobs' user, or RUNNER_ALLOW_RUNASROOT=1");
	warn_blanks(c, r);
	warn_readable(c, r);
	hint_foreign(envp, r);
	if (secret_present(&g->cred.token))
		c->gh.cred.token_at_ms = clock_real_ms();
	c->gh.replace_given = r->source[setting_index("RUNNER_REPLACE")] == FROM_ENV;
}
