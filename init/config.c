/* Reading the environment as a whole. The only file that walks it. */
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/str.h"
#include "init/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[SECRET_MAX + 1024]; /* the value under work; wiped after each secret */

const char *config_env(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp != NULL; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

const char *config_value(char *const *envp, const char *name, size_t *len)
{
	const char *v = config_env(envp, name);

	if (v == NULL)
		return NULL;
	v = str_trim(v, len);
	return *len > 0 ? v : NULL;
}

void config_problem(struct config_reading *r, bool warning, const char *var, const char *fmt, ...)
{
	struct config_problem *p;
	va_list ap;

	if (!warning)
		r->n_errors++;
	if (r->n_problems >= CONFIG_PROBLEMS_MAX)
		return;
	p = &r->problems[r->n_problems++];
	p->warning = warning;
	(void)str_copy(p->var, sizeof p->var, var);
	va_start(ap, fmt);
	(void)!vsnprintf(p->text, sizeof p->text, fmt, ap); /* a cut message is still a message */
	va_end(ap);
	str_printable(p->text);
}

void config_shown(char *dst, size_t size, const char *value)
{
	const char *host = strstr(value, "//"), *at;
	char *end;

	str_show(dst, size, value, strlen(value));
	host = host != NULL ? host + 2 : value;
	at = strrchr(host, '@');
	if (at == NULL)
		return;
	/* Whoever writes a password into a URL does not want to read it in a log. */
	end = dst + (host - value < (ptrdiff_t)size ? (size_t)(host - value) : size - 1);
	str_show(end, size - (size_t)(end - dst), "***", 3);
	end += strlen(end);
	str_show(end, size - (size_t)(end - dst), at, strlen(at));
}

/* ---- one setting ------------------------------------------------------------------------------
 */

ssize_t config_read_file(const char *path, const struct user *reader, char *dst, size_t size)
{
	struct stat st;

	cleanup_fd int fd = reader != NULL
				    ? user_open(reader, path)
				    : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n = 0;

	if (fd < 0)
		return -1;
	if (reader != NULL && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
			       !config_user_may(reader, st.st_uid, st.st_gid, st.st_mode, 4))) {
		errno = EACCES;
		return -1;
	}
	while (n < size) {
		ssize_t k = read(fd, dst + n, size - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0) {
			dst[n] = 0;
			return (ssize_t)n;
		}
		n += (size_t)k;
	}
	errno = EFBIG;
	return -1;
}

/* The file's text, trimmed, in scratch. 0, or -1 after it was told. */
static int load_secret(const struct setting *s, const char *path, struct config_reading *r)
{
	ssize_t n = config_read_file(path, NULL, scratch, sizeof scratch);
	const char *v;
	size_t len;

	if (n < 0) {
		config_problem(r, false, s->name, "cannot read the file %s that %s_FILE names: %s",
			       path, s->name, errno == EFBIG ? "too large" : strerror(errno));
		return -1;
	}
	if (memchr(scratch, 0, (size_t)n) != NULL) {
		config_problem(r, false, s->name, "the file %s that %s_FILE names holds a NUL byte",
			       path, s->name);
		return -1;
	}
	v = str_trim(scratch, &len);
	memmove(scratch, v, len);
	scratch[len] = 0;
	if (len > 0)
		return 0;
	config_problem(r, false, s->name, "the file %s that %s_FILE names is empty", path, s->name);
	return -1;
}

static void apply(const struct setting *s, unsigned i, struct config *c, struct config_reading *r)
{
	struct err e = ERR_INIT;
	char shown[256];

	if (s->set(s, scratch, c, &e) == 0)
		return;
	config_shown(shown, sizeof shown, scratch);
	if (r->source[i] == FROM_FILE)
		config_problem(r, false, s->name, "the text in %s %s; accepted: %s", r->file[i],
			       e.text, s->accepts);
	else if (s->secret)
		config_problem(r, false, s->name, "the value (not shown) %s; accepted: %s", e.text,
			       s->accepts);
	else
		config_problem(r, false, s->name, "\"%s\" %s; accepted: %s", shown, e.text,
			       s->accepts);
}

static int from_file(const struct setting *s, unsigned i, char *const *envp, bool both,
		     struct config_reading *r)
{
	char var[128];
	const char *path;
	size_t len;

	if (str_fmt(var, sizeof var, "%s_FILE", s->name) < 0 ||
	    (path = config_value(envp, var, &len)) == NULL)
		return 0;
	if (both) {
		config_problem(r, false, s->name, "%s and %s_FILE are both set; keep one of them",
			       s->name, s->name);
		return -1;
	}
	r->source[i] = FROM_FILE;
	if (str_copyn(r->file[i], sizeof r->file[i], path, len) < 0) {
		config_problem(r, false, s->name, "the path in %s_FILE is too long", s->name);
		return -1;
	}
	return load_secret(s, r->file[i], r) < 0 ? -1 : 1;
}

static void read_one(unsigned i, struct config *c, char *const *envp, struct config_reading *r)
{
	const struct setting *s = &settings[i];
	size_t len = 0;
	const char *v = config_value(envp, s->name, &len);
	int file = 0;

	if (v == NULL && s->alias != NULL)
		v = config_value(envp, s->alias, &len);
	if (s->secret)
		file = from_file(s, i, envp, v != NULL, r);
	if (file < 0)
		return;
	if (v != NULL) {
		r->source[i] = FROM_ENV;
		if (str_copyn(scratch, sizeof scratch, v, len) < 0) {
			config_problem(r, false, s->name, "is longer than %zu bytes",
				       sizeof scratch - 1);
			return;
		}
	} else if (file == 0) {
		r->source[i] = s->deflt != NULL ? FROM_DEFAULT : FROM_NOWHERE;
		if (s->deflt == NULL || str_copy(scratch, sizeof scratch, s->deflt) < 0)
			return;
	}
	apply(s, i, c, r);
	if (s->secret)
		explicit_bzero(scratch, sizeof scratch);
}

/* ---- all of them ------------------------------------------------------------------------------
 */

static void warn_unknown(char *const *envp, struct config_reading *r)
{
	char name[64];

	for (; *envp != NULL; envp++) {
		size_t n = strcspn(*envp, "=");
		if (!str_starts(*envp, "INIT_") || str_copyn(name, sizeof name, *envp, n) < 0)
			continue;
		if (setting_index(name) < 0)
			config_problem(r, true, name,
				       "is no setting of init and has no effect; a typing error?");
	}
}

unsigned config_collect(struct config *c, char *const *envp, enum config_use use,
			struct config_reading *r)
{
	int first = setting_index("GITHUB_ACTIONS_RUNNER_FORCE_GHES"); /* the URL depends on it */

	read_one((unsigned)first, c, envp, r);
	for (unsigned i = 0; i < settings_n; i++) {
		if (settings[i].need == NEED_LIFE && use != CONFIG_LIFE)
			continue;
		if ((int)i != first)
			read_one(i, c, envp, r);
	}
	config_find(c, envp, use, r);
	if (use == CONFIG_LIFE)
		config_demand(c, envp, r);
	warn_unknown(envp, r);
	return r->n_errors;
}

int config_status(const struct config_reading *r)
{
	return r->n_errors == 0 ? XC_OK : XC_CONFIG;
}

void config_tell(const struct config_reading *r)
{
	for (unsigned i = 0; i < r->n_problems; i++) {
		const struct config_problem *p = &r->problems[i];
		log_event(p->warning ? LL_WARN : LL_ERROR,
			  p->warning ? "config_warning" : "config_problem",
			  LOG_FIELDS(LOG_STR("variable", p->var)), "%s: %s", p->var, p->text);
	}
	if (r->n_errors > 0)
		log_event(LL_ERROR, "config_refused", LOG_FIELDS(LOG_NUM("problems", r->n_errors)),
			  "%u problem%s in the configuration; nothing was started", r->n_errors,
			  r->n_errors == 1 ? "" : "s");
}

int config_read_for(struct config *c, char *const *envp, enum config_use use)
{
	static struct config_reading reading;

	(void)config_collect(c, envp, use, &reading);
	log_setup(c->log_level, c->log_json);
	config_tell(&reading);
	return config_status(&reading);
}

int config_read(struct config *c, char *const *envp)
{
	return config_read_for(c, envp, CONFIG_LIFE);
}
