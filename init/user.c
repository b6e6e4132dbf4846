/* passwd and group are read by hand: the C library's functions would allocate, and ask a name
 * service over a socket that may not answer. */
#include "init/user.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- lines of a file ---------------------------------------------------------------------------
 */

static struct {
	int fd;
	size_t len, at;
	char text[65536]; /* a group with thousands of members is one line */
} in; /* zeroed, so that its 64 KiB are not part of the file; lines_open comes first */

static void lines_open(const char *path)
{
	in.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	in.len = 0;
	in.at = 0;
}

/* The next line without its end, NULL after the last. Overlong lines are cut at the buffer's size.
 */
static char *lines_next(void)
{
	char *nl;
	ssize_t n;

	for (;;) {
		char *line = in.text + in.at;
		nl = memchr(line, '\n', in.len - in.at);
		if (nl != NULL) {
			*nl = 0;
			in.at = (size_t)(nl - in.text) + 1;
			return line;
		}
		memmove(in.text, line, in.len - in.at);
		in.len -= in.at;
		in.at = 0;
		n = in.fd < 0 || in.len >= sizeof in.text - 1
			    ? 0
			    : read(in.fd, in.text + in.len, sizeof in.text - 1 - in.len);
		if (n > 0) {
			in.len += (size_t)n;
			continue;
		}
		fd_close(&in.fd);
		if (in.len == 0)
			return NULL;
		in.text[in.len] = 0;
		in.at = in.len;
		return in.text;
	}
}

/* Cuts `line` at its colons into at most `n` fields; returns how many there are. */
static unsigned split(char *line, char **fields, unsigned n)
{
	unsigned k = 0;

	while (k < n) {
		fields[k++] = line;
		line = strchr(line, ':');
		if (line == NULL)
			break;
		*line++ = 0;
	}
	return k;
}

static int parse_id(const char *s, uint32_t *out)
{
	uint64_t v;

	if (str_u64(s, 0, UINT32_MAX - 1, &v) < 0) /* -1 means "unchanged" to the kernel */
		return -1;
	*out = (uint32_t)v;
	return 0;
}

/* ---- looking up --------------------------------------------------------------------------------
 */

/* By name, or by uid when name is NULL. 1 found (uid, gid, name, home of *u set), 0 not. */
static int passwd_find(const char *name, uid_t uid, struct user *u)
{
	char *f[7], *line;
	int found = 0;

	lines_open("/etc/passwd");
	while ((line = lines_next()) != NULL) {
		uint32_t id, gid;
		if (found || split(line, f, 7) < 6 || parse_id(f[2], &id) < 0 ||
		    parse_id(f[3], &gid) < 0)
			continue;
		if (name != NULL ? strcmp(f[0], name) != 0 : id != uid)
			continue;
		u->uid = id;
		u->gid = gid;
		if (str_copy(u->name, sizeof u->name, f[0]) < 0 ||
		    str_copy(u->home, sizeof u->home, f[5]) < 0)
			continue;
		found = 1;
	}
	return found;
}

static int group_find(const char *name, gid_t *gid)
{
	char *f[4], *line;
	int found = 0;

	lines_open("/etc/group");
	while ((line = lines_next()) != NULL) {
		uint32_t id;
		if (!found && split(line, f, 4) >= 3 && strcmp(f[0], name) == 0 &&
		    parse_id(f[2], &id) == 0) {
			*gid = id;
			found = 1;
		}
	}
	return found;
}

static void add_group(struct user *u, gid_t gid)
{
	for (int i = 0; i < u->n_groups; i++)
		if (u->groups[i] == gid)
			return;
	if (u->n_groups < USER_GROUPS_MAX)
		u->groups[u->n_groups++] = gid;
}

static bool has_member(const char *members, const char *name)
{
	size_t n = strlen(name);

	while (*members != 0) {
		size_t k = strcspn(members, ",");
		if (k == n && strncmp(members, name, n) == 0)
			return true;
		members += k + (members[k] == ',' ? 1 : 0);
	}
	return false;
}

static void supplementary(struct user *u)
{
	char *f[4], *line;
	uint32_t id;

	add_group(u, u->gid);
	if (u->name[0] == 0)
		return;
	lines_open("/etc/group");
	while ((line = lines_next()) != NULL)
		if (split(line, f, 4) == 4 && has_member(f[3], u->name) && parse_id(f[2], &id) == 0)
			add_group(u, id);
}

static int find_current(struct user *out, struct err *e)
{
	struct user u = {.uid = geteuid()};

	(void)passwd_find(NULL, u.uid, &u);
	u.uid = geteuid();
	u.gid = getegid();
	u.n_groups = getgroups(USER_GROUPS_MAX - 1, u.groups);
	if (u.n_groups < 0)
		return err_set(e, XC_CONFIG, errno, "cannot read this process's groups");
	add_group(&u, u.gid);
	*out = u;
	return 0;
}

int user_find(const char *spec, struct user *out, struct err *e)
{
	struct user u = {.uid = 0};
	char who[128];
	const char *colon;
	uint32_t id;
	int known;

	if (spec == NULL || spec[0] == 0)
		return find_current(out, e);
	colon = strchr(spec, ':');
	if (str_copyn(who, sizeof who, spec,
		      colon != NULL ? (size_t)(colon - spec) : strlen(spec)) < 0 ||
	    who[0] == 0)
		return err_set(e, XC_CONFIG, 0, "names no user");
	known = passwd_find(who, 0, &u);
	if (!known && parse_id(who, &id) < 0)
		return err_set(e, XC_CONFIG, 0, "is no user of /etc/passwd");
	if (!known) {
		known = passwd_find(NULL, id, &u);
		u.uid = id;
	}
	if (colon != NULL) {
		if (group_find(colon + 1, &u.gid) == 0) {
			if (parse_id(colon + 1, &id) < 0)
				return err_set(e, XC_CONFIG, 0, "names no group of /etc/group");
			u.gid = id;
		}
		add_group(&u, u.gid);
	} else if (!known) {
		return err_set(e, XC_CONFIG, 0,
			       "is no uid of /etc/passwd, so its group must be given too: uid:gid");
	} else {
		supplementary(&u);
	}
	u.switching = geteuid() == 0 && u.uid != 0;
	*out = u;
	return 0;
}

/* ---- becoming ----------------------------------------------------------------------------------
 */

int user_become(const struct user *u, struct err *e)
{
	uid_t r, f, s;

	if (!u->switching || (getuid() == u->uid && geteuid() == u->uid))
		return 0;
	if (setgroups((size_t)u->n_groups, u->groups) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot take the groups of uid %ld",
			       (long)u->uid);
	if (setresgid(u->gid, u->gid, u->gid) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot become gid %ld", (long)u->gid);
	if (setresuid(u->uid, u->uid, u->uid) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot become uid %ld", (long)u->uid);
	if (getresuid(&r, &f, &s) < 0 || r != u->uid || f != u->uid || s != u->uid ||
	    setresuid(0, 0, 0) == 0)
		return err_set(e, XC_SYSTEM, 0, "became uid %ld, but not for good", (long)u->uid);
	return 0;
}

int user_open(const struct user *u, const char *path)
{
	static const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	gid_t groups[USER_GROUPS_MAX], gid = getegid();
	uid_t uid = geteuid();
	int n, fd, saved;

	if (!u->switching || uid == u->uid)
		return open(path, flags);
	n = getgroups(USER_GROUPS_MAX, groups);
	if (n < 0 || setgroups((size_t)u->n_groups, u->groups) < 0)
		return -1;
	(void)setfsgid(u->gid);
	(void)setfsuid(u->uid); /* with it go the capabilities that pass over modes */
	fd = (uid_t)setfsuid((uid_t)-1) == u->uid ? open(path, flags) : -1;
	saved = errno;
	(void)setfsuid(uid);
	(void)setfsgid(gid);
	if (setgroups((size_t)n, groups) < 0) {
		saved = errno;
		fd_close(&fd);
	}
	errno = saved;
	return fd;
}

int user_drop_caps(struct err *e)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return err_set(e, XC_SYSTEM, errno, "cannot give up the supplementary groups");
	for (int cap = 0; cap < 64; cap++) /* EINVAL: the kernel has no more; EPERM: never had it */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot forgo new privileges");
	if (syscall(SYS_capset, &head, none) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot give up the capabilities");
	return 0;
}
