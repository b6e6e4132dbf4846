#include "init/oom.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static int slurp(const char *path, char *dst, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;

	if (fd < 0)
		return -1;
	while (len + 1 < size) {
		ssize_t n = read(fd, dst + len, size - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	dst[len] = '\0';
	return 0;
}

int64_t oom_field(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p != NULL && *p != '\0'; p = strchr(p, '\n')) {
		char digits[24];
		uint64_t v;
		size_t len;

		if (*p == '\n')
			p++;
		if (strncmp(p, key, n) != 0 || p[n] != ' ')
			continue;
		p += n + 1;
		len = strspn(p, "0123456789");
		if (str_copyn(digits, sizeof digits, p, len) != 0 ||
		    str_u64(digits, 0, INT64_MAX, &v) != 0)
			return -1;
		return (int64_t)v;
	}
	return -1;
}

/* The path of our cgroup in one hierarchy: the text after `mark` in /proc/self/cgroup. */
static int own_path(const char *table, const char *mark, char *dst, size_t size)
{
	const char *p = strstr(table, mark);
	size_t len;

	if (p == NULL)
		return -1;
	p += strlen(mark);
	len = strcspn(p, "\n");
	if (len == 1)
		len = 0; /* "/" */
	return str_copyn(dst, size, p, len);
}

static int64_t counter(const char *base, const char *own, const char *file)
{
	char path[1400], text[4096];

	/* Inside a cgroup namespace the path is "/"; without one it is the host's, which a
	 * container does not see: its own group is then the root of the mount. */
	if (str_fmt(path, sizeof path, "%s%s/%s", base, own, file) == 0 &&
	    slurp(path, text, sizeof text) == 0)
		return oom_field(text, "oom_kill");
	if (str_fmt(path, sizeof path, "%s/%s", base, file) == 0 &&
	    slurp(path, text, sizeof text) == 0)
		return oom_field(text, "oom_kill");
	return -1;
}

int64_t oom_kills(void)
{
	char table[8192], own[1024] = "";
	int64_t n;

	if (slurp("/proc/self/cgroup", table, sizeof table) != 0)
		table[0] = '\0';
	if (own_path(table, "0::", own, sizeof own) != 0)
		own[0] = '\0';
	n = counter("/sys/fs/cgroup", own, "memory.events");
	if (n >= 0)
		return n;
	if (own_path(table, ":memory:", own, sizeof own) != 0)
		own[0] = '\0';
	return counter("/sys/fs/cgroup/memory", own, "memory.oom_control");
}
