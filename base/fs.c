#include "base/fs.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int fs_read(int dirfd, const char *path, struct buf *out, struct err *e)
{
	cleanup_fd int fd = -1;

	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_set(e, XC_FILES, errno, "cannot open %s", path);
	for (;;) {
		size_t want = out->max - out->len < 4096 ? out->max - out->len + 1 : 4096;
		unsigned char chunk[4097];
		ssize_t r = read(fd, chunk, want);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			return 0;
		if (r < 0)
			return err_set(e, XC_FILES, errno, "cannot read %s", path);
		if (r == 0)
			return 0;
		if (buf_put(out, chunk, (size_t)r) < 0)
			return err_set(e, XC_FILES, errno, "%s is larger than %zu bytes", path,
				       out->max);
	}
}

static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t r = write(fd, p, len);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		p += r;
		len -= (size_t)r;
	}
	return 0;
}

int fs_write(int dirfd, const char *name, mode_t mode, const void *data, size_t len, struct err *e)
{
	cleanup_fd int fd = -1;
	char tmp[256];

	if (str_fmt(tmp, sizeof tmp, "%s.new", name) < 0)
		return err_set(e, XC_FILES, ENAMETOOLONG, "cannot write %s", name);
	if (unlinkat(dirfd, tmp, 0) < 0 && errno != ENOENT)
		return err_set(e, XC_FILES, errno, "cannot remove the left-over %s", tmp);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, XC_FILES, errno, "cannot create %s", tmp);
	if (write_all(fd, data, len) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
	    renameat(dirfd, tmp, dirfd, name) < 0) {
		int saved = errno;
		(void)unlinkat(dirfd, tmp, 0);
		return err_set(e, XC_FILES, saved, "cannot write %s", name);
	}
	return 0;
}
