/* Which library the dynamic loader would take, without a dynamic loader: a static binary cannot
 * dlopen. */
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "probes/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DIRS_MAX 64

struct dirs {
	unsigned n;
	char path[DIRS_MAX][256];
};

static void add(struct dirs *d, const char *p, size_t n)
{
	if (n == 0 || p[0] != '/' || d->n == DIRS_MAX)
		return;
	if (str_copyn(d->path[d->n], sizeof d->path[0], p, n) == 0)
		d->n++;
}

static void add_list(struct dirs *d, const char *p, const char *separators)
{
	while (p != NULL && *p != 0) {
		size_t n = strcspn(p, separators);
		add(d, p, n);
		p += n;
		p += strspn(p, separators);
	}
}

/* ld.so.conf: one folder a line, comments, and `include PATTERN`. */
static void add_conf(struct dirs *d, const char *file, int depth)
{
	cleanup_buf struct buf b;
	const char *p;

	buf_init(&b, 65536);
	if (depth > 3 || fs_read(AT_FDCWD, file, &b, NULL) < 0)
		return;
	for (p = buf_str(&b); *p != 0;) {
		size_t line = strcspn(p, "\n"), n = strcspn(p, "\n#");
		while (n > 0 && (*p == ' ' || *p == '\t')) {
			p++;
			n--;
			line--;
		}
		if (n > 8 && strncmp(p, "include", 7) == 0 && (p[7] == ' ' || p[7] == '\t')) {
			char pattern[512];
			glob_t g;
			size_t skip = 7 + strspn(p + 7, " \t");
			if (str_copyn(pattern, sizeof pattern, p + skip, n - skip) == 0 &&
			    glob(pattern, 0, NULL, &g) == 0) {
				for (size_t i = 0; i < g.gl_pathc; i++)
					add_conf(d, g.gl_pathv[i], depth + 1);
				globfree(&g);
			}
		} else {
			while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t' || p[n - 1] == '\r'))
				n--;
			add(d, p, n);
		}
		p += line;
		p += *p == '\n' ? 1 : 0;
	}
}

static void loader_dirs(struct dirs *d, const char *const *envp)
{
	static const char usual[] =
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
		"/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:"
		"/usr/local/nvidia/lib64:/usr/local/nvidia/lib";

	d->n = 0;
	add_list(d, env_value(envp, "LD_LIBRARY_PATH"), ":;");
	add_conf(d, "/etc/ld.so.conf", 0);
	add_list(d, usual, ":");
}

/* A file in `dir` whose name is `soname`, or `soname`'s stem followed by a version. */
static int find_in(const char *dir, const char *soname, char *path, size_t size)
{
	const char *dot = strstr(soname, ".so");
	size_t stem = dot == NULL ? strlen(soname) : (size_t)(dot - soname) + 3;
	char text[512], real[PATH_MAX];
	struct dirent *d;
	int found = -1;
	DIR *dp;

	if (str_fmt(text, sizeof text, "%s/%s", dir, soname) == 0 && realpath(text, real) != NULL)
		return str_copy(path, size, real);
	dp = opendir(dir); /* mounted, but ldconfig has not run: only the full name is there */
	while (dp != NULL && found < 0 && (d = readdir(dp)) != NULL) {
		char version[64];
		if (strncmp(d->d_name, soname, stem) == 0 && d->d_name[stem] == '.' &&
		    lib_version(d->d_name, version, sizeof version) == 0 &&
		    str_fmt(text, sizeof text, "%s/%s", dir, d->d_name) == 0 &&
		    realpath(text, real) != NULL)
			found = str_copy(path, size, real);
	}
	if (dp != NULL)
		(void)closedir(dp);
	return found;
}

int lib_find(const char *const *envp, const char *soname, char *path, size_t size)
{
	struct dirs d;

	loader_dirs(&d, envp);
	for (unsigned i = 0; i < d.n; i++)
		if (find_in(d.path[i], soname, path, size) == 0)
			return 0;
	return -1;
}

bool lib_any(const char *const *envp, const char *prefix)
{
	struct dirs d;
	bool found = false;

	loader_dirs(&d, envp);
	for (unsigned i = 0; i < d.n && !found; i++) {
		struct dirent *f;
		DIR *dp = opendir(d.path[i]);
		while (dp != NULL && !found && (f = readdir(dp)) != NULL)
			found = str_starts(f->d_name, prefix);
		if (dp != NULL)
			(void)closedir(dp);
	}
	return found;
}

/* At p: digits, dot, digits, and more of that. Length, 0 when it is none. */
static size_t dotted(const char *p)
{
	size_t n = strspn(p, "0123456789.");

	while (n > 0 && p[n - 1] == '.')
		n--;
	return n > 2 && p[0] != '.' && memchr(p, '.', n) != NULL ? n : 0;
}

int lib_version(const char *path, char *out, size_t size)
{
	const char *base = strrchr(path, '/');
	const char *so = strstr(base == NULL ? path : base, ".so.");
	size_t n = so == NULL ? 0 : dotted(so + 4);

	return n == 0 ? -1 : str_copyn(out, size, so + 4, n);
}

int version_cmp(const char *a, const char *b)
{
	while (*a != 0 || *b != 0) {
		char *ea, *eb;
		unsigned long x = strtoul(a, &ea, 10), y = strtoul(b, &eb, 10);
		if (x != y)
			return x < y ? -1 : 1;
		if ((ea == a && *a != 0) || (eb == b && *b != 0))
			return 0; /* no number where one should be: not comparable further */
		a = *ea == '.' ? ea + 1 : ea;
		b = *eb == '.' ? eb + 1 : eb;
	}
	return 0;
}

int kernel_module_version(char *out, size_t size)
{
	cleanup_buf struct buf b;
	const char *p;
	size_t n;

	/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build" */
	buf_init(&b, 4096);
	if (fs_read(AT_FDCWD, "/proc/driver/nvidia/version", &b, NULL) == 0) {
		const char *end = strchr(buf_str(&b), '\n');
		for (p = buf_str(&b); *p != 0 && (end == NULL || p < end); p++)
			if (p > buf_str(&b) && p[-1] == ' ' && (n = dotted(p)) > 0)
				return str_copyn(out, size, p, n);
	}
	buf_reset(&b);
	if (fs_read(AT_FDCWD, "/sys/module/nvidia/version", &b, NULL) < 0)
		return -1;
	p = buf_str(&b);
	n = dotted(p);
	return n == 0 ? -1 : str_copyn(out, size, p, n);
}
