#include "init/dirs.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 40
#define PATH_ROOM 4096

struct walk {
	int fd;		      /* where we are, O_PATH */
	char done[PATH_ROOM]; /* its name, for messages; "" is / */
	char rest[PATH_ROOM]; /* what is still to be walked */
	unsigned links;
	const char *what, *asked; /* setting and path, for messages */
};

/* What cures a failing call on a directory, besides pointing the setting elsewhere. */
static const char *remedy(int sys)
{
	switch (sys) {
	case EROFS:
		return "the file system is read-only: mount a writable volume there";
	case ENOSPC:
	case EDQUOT:
		return "the file system is full: free space or inodes, or raise the quota";
	case ENOTDIR:
		return "a file is in the way: remove it";
	case EACCES:
	case EPERM:
		return "give it to that user on the host (chown), or make it writable for a group "
		       "of the user (chgrp, chmod g+rwxs)";
	case ENOENT:
		return "the mount went away: mount it again";
	default:
		return "check the volume that is mounted there";
	}
}

/* One message for every failure: the setting and its path, what was tried where, who owns that with
 * which mode, as whom, why, and the remedies. `at`: a descriptor of the directory that refused. */
static int refuse(const char *what, const char *asked, const char *tried, const char *where, int at,
		  int sys, struct err *e)
{
	struct stat st;
	char owner[96] = "owner unknown";

	if (at >= 0 && fstat(at, &st) == 0)
		(void)str_fmt(owner, sizeof owner, "owner %ld:%ld, mode %04o", (long)st.st_uid,
			      (long)st.st_gid, (unsigned)(st.st_mode & 07777));
	(void)err_set(e, XC_FILES, 0,
		      "%s: cannot use %s: cannot %s %s (%s) as uid %ld, gid %ld: %s; %s, or set %s "
		      "to another place",
		      what, asked, tried, where[0] != 0 ? where : "/", owner, (long)geteuid(),
		      (long)getegid(), strerror(sys), remedy(sys), what);
	if (e != NULL)
		e->sys = sys;
	return -1;
}

/* Puts a link's target before the rest of the way. */
static int follow(struct walk *w, const char *part, const struct stat *st, struct err *e)
{
	char target[PATH_ROOM], whole[2 * PATH_ROOM];
	ssize_t n;

	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(e, XC_FILES, 0,
			       "%s: %s/%s on the way to %s is a link that uid %ld made, and is not "
			       "followed by uid %ld; remove it, or set %s to where it points",
			       w->what, w->done, part, w->asked, (long)st->st_uid, (long)geteuid(),
			       w->what);
	n = readlinkat(w->fd, part, target, sizeof target - 1);
	if (n < 0 || ++w->links > LINKS_MAX)
		return refuse(w->what, w->asked, "follow the links in", w->done, w->fd,
			      n < 0 ? errno : ELOOP, e);
	target[n] = 0;
	if (str_fmt(whole, sizeof whole, "%s/%s", target, w->rest) < 0 ||
	    str_copy(w->rest, sizeof w->rest, whole) < 0)
		return refuse(w->what, w->asked, "follow the links in", w->done, w->fd,
			      ENAMETOOLONG, e);
	if (target[0] != '/')
		return 0;
	fd_close(&w->fd);
	w->done[0] = 0;
	w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return w->fd >= 0 ? 0 : refuse(w->what, w->asked, "enter", "/", -1, errno, e);
}

static int entered(struct walk *w, int fd, const char *part)
{
	size_t n = strlen(w->done);

	fd_close(&w->fd);
	w->fd = fd;
	return str_fmt(w->done + n, sizeof w->done - n, "/%s", part);
}

/* One part: entered, made and entered, or followed. */
static int step(struct walk *w, const char *part, bool make, struct err *e)
{
	struct stat st;

	for (int tries = 0; tries < 3; tries++) { /* somebody may make or remove it meanwhile */
		int fd = openat(w->fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0) {
			if (entered(w, fd, part) == 0)
				return 0;
			return refuse(w->what, w->asked, "go on from", w->done, w->fd, ENAMETOOLONG,
				      e);
		}
		if (errno == ENOENT && make) {
			if (mkdirat(w->fd, part, 0775) < 0 && errno != EEXIST)
				return refuse(w->what, w->asked, "make a directory in", w->done,
					      w->fd, errno, e);
			continue;
		}
		if (errno != ENOTDIR && errno != ELOOP)
			return refuse(w->what, w->asked, "enter a directory of", w->done, w->fd,
				      errno, e);
		if (fstatat(w->fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			return follow(w, part, &st, e);
		return refuse(w->what, w->asked, "go on from", w->done, w->fd, ENOTDIR, e);
	}
	return refuse(w->what, w->asked, "go on from", w->done, w->fd, ENOENT, e);
}

int dirs_walk(const char *path, bool make, const char *what, struct err *e)
{
	struct walk w = {.fd = -1, .what = what, .asked = path};
	char part[256];

	if (path[0] != '/' || str_copy(w.rest, sizeof w.rest, path) < 0)
		return refuse(what, path, "walk", path, -1, path[0] != '/' ? EINVAL : ENAMETOOLONG,
			      e);
	w.fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.fd < 0)
		return refuse(what, path, "enter", "/", -1, errno, e);
	for (;;) {
		size_t skip = strspn(w.rest, "/"), n = strcspn(w.rest + skip, "/");
		int r;

		if (n == 0)
			return w.fd;
		if (str_copyn(part, sizeof part, w.rest + skip, n) < 0) {
			(void)refuse(what, path, "enter a directory of", w.done, w.fd, ENAMETOOLONG,
				     e);
			break;
		}
		memmove(w.rest, w.rest + skip + n, strlen(w.rest + skip + n) + 1);
		r = strcmp(part, ".") == 0 ? 0 : step(&w, part, make, e);
		if (r < 0)
			break;
	}
	fd_close(&w.fd);
	return -1;
}

int dirs_prove(const char *path, bool make, const char *what, struct err *e)
{
	cleanup_fd int dir = dirs_walk(path, make, what, e);
	cleanup_fd int fd = -1;
	struct timespec now = {0, 0};
	char name[64];
	int sys = 0;

	if (dir < 0)
		return -1;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (str_fmt(name, sizeof name, ".init-proof-%ld-%ld", (long)getpid(), now.tv_nsec) < 0)
		return refuse(what, path, "name a file in", path, dir, ENAMETOOLONG, e);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return refuse(what, path, "create a file in", path, dir, errno, e);
	if (write(fd, "x", 1) != 1) /* a full file system still creates names */
		sys = errno != 0 ? errno : EIO;
	if (unlinkat(dir, name, 0) < 0)
		return refuse(what, path, "remove a file in", path, dir, errno, e);
	return sys == 0 ? 0 : refuse(what, path, "write in", path, dir, sys, e);
}

int dirs_listable(const char *path, const char *what, struct err *e)
{
	char prefix[PATH_ROOM];
	size_t n = 0, len = strlen(path);

	if (str_copy(prefix, sizeof prefix, path) < 0)
		return refuse(what, path, "walk", path, -1, ENAMETOOLONG, e);
	for (;;) {
		char kept;
		int fd;

		n = n == 0 ? 1 : n + strcspn(path + n, "/"); /* "/", "/a", "/a/b" ... */
		kept = prefix[n];
		prefix[n] = 0;
		fd = open(prefix, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0) {
			int sys = errno;
			cleanup_fd int at = open(prefix, O_PATH | O_CLOEXEC);
			return refuse(what, path, "list (as the agent must)", prefix, at, sys, e);
		}
		(void)close(fd);
		prefix[n] = kept;
		if (n >= len)
			return 0;
		n += n > 1 ? 1 : 0;
	}
}
