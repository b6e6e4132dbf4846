/* F7, F8, F12: cache directories, the runner's folders, the libraries of its .NET. Runs as the
 * job's user, since it is that user's permissions that count. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "probes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define INODES_MIN 10000

/* Creates a file in dir and removes it. 0, or -1 with errno. */
static int try_write(const char *dir)
{
	char path[4200];
	cleanup_fd int fd = -1;

	if (str_fmt(path, sizeof path, "%s/.init-selftest.%ld", dir, (long)getpid()) < 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (write(fd, "x", 1) != 1) { /* a full disk creates names and refuses bytes */
		int saved = errno == 0 ? ENOSPC : errno;
		(void)unlink(path);
		errno = saved;
		return -1;
	}
	return unlink(path);
}

static void tell_unwritable(struct tally *t, const char *name, const char *path)
{
	struct stat st;
	int why = errno;

	if (stat(path, &st) < 0)
		tally_add(t, V_FAIL, ACT_NONE,
			  "mount the cache or create the directory for the runner's user",
			  "%s=%s: %s", name, path, strerror(errno));
	else
		tally_add(t, V_FAIL, ACT_NONE, NULL,
			  "%s=%s: uid %u gid %u cannot write: %s (owner %u:%u, mode %04o)", name,
			  path, (unsigned)geteuid(), (unsigned)getegid(), strerror(why),
			  (unsigned)st.st_uid, (unsigned)st.st_gid, (unsigned)st.st_mode & 07777U);
}

/* Kinds of file system that have bitten: magic numbers from linux/magic.h and the file systems' own
 * sources. */
static const char *kind_of(const char *path, bool *bad)
{
	static const struct {
		unsigned long magic;
		const char *name;
		bool bad;
	} kinds[] = {
		{0x6969UL, "nfs", true},	{0x0BD00BD0UL, "lustre", true},
		{0xFF534D42UL, "cifs", true},	{0xFE534D42UL, "smb2", true},
		{0x00C36400UL, "ceph", true},	{0x47504653UL, "gpfs", true},
		{0x19830326UL, "beegfs", true}, {0x01021997UL, "9p", true},
		{0x65735546UL, "fuse", true},	{0x794C7630UL, "overlay", true},
		{0xEF53UL, "ext4", false},	{0x58465342UL, "xfs", false},
		{0x9123683EUL, "btrfs", false}, {0x2FC12FC1UL, "zfs", false},
		{0x01021994UL, "tmpfs", false},
	};
	struct statfs fs;

	*bad = false;
	if (statfs(path, &fs) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (((unsigned long)fs.f_type & 0xFFFFFFFFUL) == kinds[i].magic) {
			*bad = kinds[i].bad;
			return kinds[i].name;
		}
	return "another kind";
}

static void judge_space(struct ctx *c, struct tally *t, const char *name, const char *path)
{
	struct statvfs vfs;
	uint64_t bytes;

	if (statvfs(path, &vfs) < 0) {
		tally_add(t, V_UNKNOWN, ACT_NONE, NULL, "%s: %s", name, strerror(errno));
		return;
	}
	bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (bytes < c->s->cache_min_free)
		tally_add(t, V_WARN, ACT_NONE, NULL, "%s=%s: %llu MiB free, less than %llu", name,
			  path, (unsigned long long)(bytes >> 20),
			  (unsigned long long)(c->s->cache_min_free >> 20));
	else if (vfs.f_files > 0 && vfs.f_favail < INODES_MIN)
		tally_add(t, V_WARN, ACT_NONE, "remove files, or use a larger file system",
			  "%s=%s: %llu inodes free", name, path, (unsigned long long)vfs.f_favail);
	else
		tally_add(t, V_PASS, ACT_NONE, NULL, "%s: %llu MiB", name,
			  (unsigned long long)(bytes >> 20));
}

void group_cache(struct ctx *c)
{
	struct tally w = TALLY_INIT, space = TALLY_INIT, kind = TALLY_INIT;

	if (c->s->n_cache_dirs == 0) {
		for (int i = C_CACHE_WRITE; i <= C_CACHE_KIND; i++)
			say(c, (enum check_id)i, V_SKIP, ACT_NONE, NULL,
			    "no cache directory is set (INIT_CACHE_DIRS)");
		return;
	}
	for (unsigned i = 0; i < c->s->n_cache_dirs; i++) {
		const char *item = c->s->cache_dirs[i], *eq = strchr(item, '='), *k;
		char name[64];
		bool bad;
		if (eq == NULL || str_copyn(name, sizeof name, item, (size_t)(eq - item)) < 0)
			continue;
		if (try_write(eq + 1) < 0) {
			tell_unwritable(&w, name, eq + 1);
			continue;
		}
		tally_add(&w, V_PASS, ACT_NONE, NULL, "%s", name);
		judge_space(c, &space, name, eq + 1);
		k = kind_of(eq + 1, &bad);
		tally_add(&kind, bad ? V_WARN : V_PASS, ACT_NONE, NULL, "%s=%s: %s", name, eq + 1,
			  k == NULL ? strerror(errno) : k);
	}
	tally_say(c, C_CACHE_WRITE, &w);
	tally_say(c, C_CACHE_SPACE, &space);
	tally_say(c, C_CACHE_KIND, &kind);
}

static void judge_folder(struct tally *t, const char *path, bool must)
{
	struct statvfs vfs;
	struct stat st;

	if (stat(path, &st) < 0 && errno == ENOENT && !must)
		return; /* the agent makes it */
	if (try_write(path) < 0)
		tell_unwritable(t, "directory", path);
	else if (statvfs(path, &vfs) == 0 && (vfs.f_flag & ST_NOEXEC) != 0)
		tally_add(t, V_FAIL, ACT_NONE, NULL,
			  "%s is mounted noexec: actions cannot run there", path);
	else
		tally_add(t, V_PASS, ACT_NONE, NULL, "%s", path);
}

static bool invariant(struct ctx *c)
{
	const char *value = env_value(c->s->envp, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT");
	char path[4200];
	cleanup_buf struct buf b;
	const char *p;

	buf_init(&b, 65536);
	if (value != NULL && (strcmp(value, "1") == 0 || str_eq_nocase(value, "true")))
		return true;
	if (str_fmt(path, sizeof path, "%s/bin/Runner.Listener.runtimeconfig.json", c->s->root) <
		    0 ||
	    fs_read(AT_FDCWD, path, &b, NULL) < 0)
		return false;
	p = strstr(buf_str(&b), "\"System.Globalization.Invariant\"");
	return p != NULL && strstr(p, "true") != NULL && strstr(p, "true") < p + 48;
}

static void judge_icu(struct ctx *c)
{
	static const char *const needed[] = {"libstdc++.so.6", "libgcc_s.so.1", "libssl.so"};
	struct tally t = TALLY_INIT;

	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
		if (!lib_any(c->s->envp, needed[i]))
			tally_add(&t, strcmp(needed[i], "libssl.so") == 0 ? V_WARN : V_FAIL,
				  ACT_NONE, NULL, "%s is nowhere on the loader's path", needed[i]);
	if (invariant(c))
		tally_add(&t, V_PASS, ACT_NONE, NULL,
			  "ICU is not needed (invariant globalization)");
	else if (lib_any(c->s->envp, "libicuuc.so."))
		tally_add(&t, V_PASS, ACT_NONE, NULL, "ICU is there");
	else
		tally_add(&t, V_FAIL, ACT_NONE, NULL,
			  "libicuuc is nowhere on the loader's path: the agent would abort with "
			  "\"Couldn't find a valid ICU package\"");
	tally_say(c, C_RUNNER_ICU, &t);
}

void group_runner(struct ctx *c)
{
	static const char *const below[] = {"_work", "_work/_temp", "_diag"};
	struct tally t = TALLY_INIT;
	char path[4200];

	if (c->s->root == NULL || c->s->root[0] == 0) {
		say(c, C_RUNNER_ROOT, V_SKIP, ACT_NONE, NULL,
		    "no runner was found (RUNNER_ROOT says where it is)");
		say(c, C_RUNNER_ICU, V_SKIP, ACT_NONE, NULL, "no runner was found");
		return;
	}
	say_begin(c, C_RUNNER_ROOT);
	judge_folder(&t, c->s->root, true);
	for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
		if (str_fmt(path, sizeof path, "%s/%s", c->s->root, below[i]) == 0)
			judge_folder(&t, path, false);
	tally_say(c, C_RUNNER_ROOT, &t);
	say_begin(c, C_RUNNER_ICU);
	judge_icu(c);
}

/* F9: the agent itself starts; that proves what no look at files does. */
void group_agent(struct ctx *c)
{
	char path[4200], line[256];
	const char *argv[] = {path, "--version", NULL};
	struct child_spec spec;
	struct child_result r;
	struct err e = ERR_INIT;

	if (c->s->root == NULL || c->s->root[0] == 0 ||
	    str_fmt(path, sizeof path, "%s/bin/Runner.Listener", c->s->root) < 0) {
		say(c, C_RUNNER_AGENT, V_SKIP, ACT_NONE, NULL,
		    "no runner was found (RUNNER_ROOT says where it is)");
		return;
	}
	memset(&spec, 0, sizeof spec);
	spec.argv = argv;
	spec.envp = c->s->envp;
	spec.cwd = c->s->root;
	spec.out_max = 65536;
	spec.uid = (uid_t)-1;
	spec.gid = (gid_t)-1;
	spec.deadline = c->deadline;
	if (child_run(&spec, &r, &e) < 0) {
		say(c, C_RUNNER_AGENT, V_UNKNOWN, ACT_NONE, NULL, "%s", e.text);
		return;
	}
	last_line(line, sizeof line, r.out.len > 0 ? &r.out : &r.err_);
	if (r.end == CHILD_NOEXEC)
		say(c, C_RUNNER_AGENT, V_FAIL, ACT_NONE, NULL, "%s cannot be run: %s", path,
		    strerror(r.code));
	else if (r.end == CHILD_TIMEOUT || r.end == CHILD_HUNG)
		say(c, C_RUNNER_AGENT, V_FAIL, ACT_NONE, NULL, "%s gave no version in %lld ms",
		    path, (long long)r.ms);
	else if (r.end == CHILD_SIGNALED)
		say(c, C_RUNNER_AGENT, V_FAIL, ACT_NONE, NULL, "%s died of signal %d: %s", path,
		    r.code, line);
	else if (r.code != 0 || strspn(line, "0123456789.") < 5)
		say(c, C_RUNNER_AGENT, V_FAIL, ACT_NONE, NULL, "%s ended with %d: %s", path, r.code,
		    line);
	else
		say(c, C_RUNNER_AGENT, V_PASS, ACT_NONE, NULL, "%s", line);
	child_result_free(&r);
}
