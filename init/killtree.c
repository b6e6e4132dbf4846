#include "init/killtree.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NR_PIDFD_SEND_SIGNAL 424
#define NR_PIDFD_OPEN	     434

#define TREE_MAX   8192 /* processes one pass can hold; more are taken pass by pass */
#define SLOTS	   (2 * TREE_MAX)
#define ROUNDS_MAX 32 /* looks for newly forked processes before a tree is called a bomb */
#define DIR_BYTES  8192

struct node {
	pid_t pid, parent;
};

/* Everything below us, breadth first, with an index by pid. Static, so that a stop needs no memory;
 * its pages are only touched when there is something to kill. */
static struct {
	size_t n;
	bool full; /* more than TREE_MAX */
	struct node nodes[TREE_MAX];
	uint16_t slots[SLOTS]; /* 1 + index into nodes, 0: free; hashed by pid, linear probing */
} tree;

struct stat_line {
	pid_t parent;
	char state;
	long threads;
	char comm[16];
};

/* ---- reading /proc without an allocation ---- */

static ssize_t slurp(const char *path, char *dst, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -1;
	while (len < size - 1) {
		ssize_t r = read(fd, dst + len, size - 1 - len);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		len += (size_t)r;
	}
	dst[len] = 0;
	return (ssize_t)len;
}

/* The next decimal number at *s, blanks before it skipped: -1 when there is none. */
static int64_t number(const char **s)
{
	int64_t v = 0;

	while (**s == ' ')
		(*s)++;
	if (**s < '0' || **s > '9')
		return -1;
	for (; **s >= '0' && **s <= '9'; (*s)++)
		if (v <= INT32_MAX)
			v = v * 10 + (**s - '0');
	return v <= INT32_MAX ? v : -1;
}

/* `17 (a name) S 1 ...`: the name may hold blanks and parentheses, so its end is the last ')'. */
static int parse_stat(const char *line, struct stat_line *out)
{
	const char *open = strchr(line, '('), *end = strrchr(line, ')');
	struct stat_line l;
	int64_t v;
	size_t n;

	if (open == NULL || end == NULL || end < open || end[1] != ' ' || end[2] == 0)
		return -1;
	n = (size_t)(end - open - 1);
	if (str_copyn(l.comm, sizeof l.comm, open + 1, n < sizeof l.comm ? n : sizeof l.comm - 1))
		return -1;
	l.state = end[2];
	line = end + 3;
	v = number(&line);
	if (v < 0)
		return -1;
	l.parent = (pid_t)v;
	/* From field 5, the process group, to field 20, the threads; some may be negative. */
	for (int field = 5; field <= 20; field++) {
		while (*line == ' ')
			line++;
		if (field == 20)
			break;
		while (*line != 0 && *line != ' ')
			line++;
	}
	v = number(&line);
	l.threads = v < 0 ? 1 : (long)v;
	*out = l;
	return 0;
}

static int read_stat(pid_t pid, struct stat_line *out)
{
	char path[32], line[512];

	if (str_fmt(path, sizeof path, "/proc/%d/stat", (int)pid) < 0 ||
	    slurp(path, line, sizeof line) <= 0)
		return -1;
	return parse_stat(line, out);
}

/* Calls fn with each entry of a directory of /proc whose name is a number. 0, or -1. */
static int each_number(const char *path, void (*fn)(pid_t n, void *arg), void *arg)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(8) char buf[DIR_BYTES];

	if (fd < 0)
		return -1;
	for (;;) {
		long got = syscall(SYS_getdents64, fd, buf, sizeof buf);

		if (got <= 0)
			return got == 0 ? 0 : -1;
		for (long at = 0; at < got;) {
			/* struct linux_dirent64: ino, off, reclen (2 bytes at 16), type, name. */
			uint16_t reclen;
			const char *name = buf + at + 19, *s = name;
			int64_t v;

			memcpy(&reclen, buf + at + 16, sizeof reclen);
			v = number(&s);
			if (v > 0 && s > name && *s == 0)
				fn((pid_t)v, arg);
			at += reclen;
		}
	}
}

/* ---- collecting the tree ---- */

/* The slot that holds pid, or the free one where it belongs. */
static uint16_t *slot_of(pid_t pid)
{
	size_t i = (size_t)pid % SLOTS; /* pids come in runs, so neighbours do not collide */

	while (tree.slots[i] != 0 && tree.nodes[tree.slots[i] - 1].pid != pid)
		i = (i + 1) % SLOTS;
	return &tree.slots[i];
}

static bool seen(pid_t pid)
{
	return pid > 0 && *slot_of(pid) != 0;
}

static bool among(pid_t pid, const pid_t *spare, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (spare[i] == pid)
			return true;
	return false;
}

static void add(pid_t pid, pid_t parent)
{
	uint16_t *slot = slot_of(pid);

	if (*slot != 0)
		return;
	if (tree.n == TREE_MAX) {
		tree.full = true;
		return;
	}
	tree.nodes[tree.n++] = (struct node){pid, parent};
	*slot = (uint16_t)tree.n;
}

static void wipe(void)
{
	if (tree.n > 0)
		memset(tree.slots, 0, sizeof tree.slots);
	tree.n = 0;
	tree.full = false;
}

struct family {
	pid_t parent;
	const pid_t *spare;
	size_t n_spare;
	size_t added;
	bool known; /* a children file could be read */
};

static void take(struct family *f, pid_t pid)
{
	size_t before = tree.n;

	if (among(pid, f->spare, f->n_spare))
		return;
	add(pid, f->parent);
	f->added += tree.n - before;
}

/* The children of one thread: pids with blanks between, read in pieces of any size. */
static void children_of_thread(pid_t tid, void *arg)
{
	struct family *f = arg;
	char path[64], buf[4096];
	cleanup_fd int fd = -1;
	int64_t v = -1;

	if (str_fmt(path, sizeof path, "/proc/%d/task/%d/children", (int)f->parent, (int)tid) < 0)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	f->known = true;
	for (;;) {
		ssize_t r = read(fd, buf, sizeof buf);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		for (ssize_t i = 0; i < r; i++) {
			if (buf[i] >= '0' && buf[i] <= '9') {
				v = (v < 0 ? 0 : v) * 10 + (buf[i] - '0');
				continue;
			}
			if (v > 0)
				take(f, (pid_t)v);
			v = -1;
		}
	}
	if (v > 0)
		take(f, (pid_t)v);
}

/* Where the kernel has no children files: everybody in /proc whose parent is in the tree. */
static void child_by_stat(pid_t pid, void *arg)
{
	struct family *f = arg;
	struct stat_line l;

	if (seen(pid) || among(pid, f->spare, f->n_spare) || read_stat(pid, &l) < 0)
		return;
	if (l.parent == f->parent || seen(l.parent)) {
		f->parent = l.parent;
		take(f, pid);
		f->parent = getpid();
	}
}

static int scan(struct family *f)
{
	size_t before;

	do { /* a child may be listed before its parent */
		before = f->added;
		if (each_number("/proc", child_by_stat, f) < 0)
			return -1;
	} while (f->added > before);
	return 0;
}

typedef void visit_fn(const struct node *n);

/* Adds everything below `root` to the tree, `visit` (may be NULL) being called on each newcomer
 * before its children are read, so that a stopped process cannot fork behind our back. 0, or -1
 * when /proc cannot be read. */
static int collect(pid_t root, const pid_t *spare, size_t n_spare, visit_fn *visit)
{
	struct family f = {root, spare, n_spare, 0, false};
	char path[32];

	for (size_t i = 0; i <= tree.n; i++) {
		if (i > 0)
			f.parent = tree.nodes[i - 1].pid;
		if (str_fmt(path, sizeof path, "/proc/%d/task", (int)f.parent) < 0)
			return -1;
		size_t from = tree.n;
		if (each_number(path, children_of_thread, &f) < 0 && i == 0)
			return -1;
		if (i == 0 && !f.known) {
			if (scan(&f) < 0)
				return -1;
			for (; visit != NULL && from < tree.n; from++)
				visit(&tree.nodes[from]);
			return 0;
		}
		for (; visit != NULL && from < tree.n; from++)
			visit(&tree.nodes[from]);
	}
	return 0;
}

/* ---- signalling ---- */

/* Signals pid only while it still is the process that was found: through a pidfd taken before its
 * parent is looked at again. True when sent. */
static bool hit(const struct node *n, int signo)
{
	long pidfd = syscall(NR_PIDFD_OPEN, n->pid, 0);
	struct stat_line l;
	bool sent;

	if (pidfd < 0 && errno == ESRCH)
		return false;
	if (read_stat(n->pid, &l) == 0 && l.parent != n->parent && l.parent != getpid() &&
	    !seen(l.parent)) {
		if (pidfd >= 0)
			(void)close((int)pidfd);
		return false;
	}
	if (pidfd < 0)
		return kill(n->pid, signo) == 0;
	sent = syscall(NR_PIDFD_SEND_SIGNAL, pidfd, signo, NULL, 0) == 0;
	if (!sent && (errno == ENOSYS || errno == EPERM))
		sent = kill(n->pid, signo) == 0;
	(void)close((int)pidfd);
	return sent;
}

static void stop_one(const struct node *n)
{
	(void)hit(n, SIGSTOP);
}

/* A process that only waits to be reaped: nothing to kill. A leader that ended before its threads
 * looks the same, but still has them. */
static bool ended(pid_t pid)
{
	struct stat_line l;

	return read_stat(pid, &l) < 0 || ((l.state == 'Z' || l.state == 'X') && l.threads <= 1);
}

int killtree_pass(const pid_t *spare, size_t n_spare)
{
	int found = 0;
	size_t last;
	int round = 0;

	wipe();
	do {
		last = tree.n;
		if (collect(getpid(), spare, n_spare, stop_one) < 0)
			return -1;
	} while (tree.n > last && !tree.full && ++round < ROUNDS_MAX);
	for (size_t i = 0; i < tree.n; i++) {
		if (ended(tree.nodes[i].pid))
			continue;
		(void)hit(&tree.nodes[i], SIGKILL);
		found++;
	}
	return tree.full || round == ROUNDS_MAX ? -1 : found;
}

int killtree_signal(const pid_t *spare, size_t n_spare, int signo)
{
	int sent = 0;

	wipe();
	if (collect(getpid(), spare, n_spare, NULL) < 0) {
		/* No /proc: everybody else in the namespace, unless somebody is to be spared. */
		return n_spare == 0 && getpid() == 1 && kill(-1, signo) == 0 ? 1 : 0;
	}
	for (size_t i = 0; i < tree.n; i++)
		if (!ended(tree.nodes[i].pid) && hit(&tree.nodes[i], signo))
			sent++;
	return sent;
}

bool killtree_all(void)
{
	char self[16];
	ssize_t n;

	if (getpid() != 1)
		return false;
	/* A /proc of another pid namespace would mean that what we know of processes is wrong. */
	n = readlink("/proc/self", self, sizeof self - 1);
	if (n >= 0) {
		self[n] = 0;
		if (strcmp(self, "1") != 0)
			return false;
	}
	return kill(-1, SIGKILL) == 0;
}

int killtree_left(const pid_t *spare, size_t n_spare, char *dst, size_t size)
{
	size_t used = 0;
	int left = 0;

	dst[0] = 0;
	wipe();
	if (collect(getpid(), spare, n_spare, NULL) < 0)
		return 0;
	for (size_t i = 0; i < tree.n; i++) {
		struct stat_line l;
		struct stat st;
		char path[32], name[64], one[128];

		if (ended(tree.nodes[i].pid) || read_stat(tree.nodes[i].pid, &l) < 0 ||
		    str_fmt(path, sizeof path, "/proc/%d", (int)tree.nodes[i].pid) < 0 ||
		    stat(path, &st) < 0)
			continue;
		left++;
		str_show(name, sizeof name, l.comm, strlen(l.comm));
		if (str_fmt(one, sizeof one, "%spid %d (%s, uid %u, %c)", left > 1 ? ", " : "",
			    (int)tree.nodes[i].pid, name, (unsigned)st.st_uid, l.state) < 0)
			continue;
		if (used + strlen(one) < size) { /* a list that is full is cut at a whole entry */
			memcpy(dst + used, one, strlen(one) + 1);
			used += strlen(one);
		}
	}
	return left;
}

bool killtree_has(pid_t root, const char *name)
{
	struct stat_line l;

	wipe();
	if (collect(root, NULL, 0, NULL) < 0)
		return false;
	for (size_t i = 0; i < tree.n; i++)
		if (read_stat(tree.nodes[i].pid, &l) == 0 && l.state != 'Z' &&
		    strncmp(l.comm, name, sizeof l.comm - 1) == 0)
			return true;
	return false;
}
