#include "init/state.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "build/version.h"
#include "gh/json.h"
#include "init/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_MAX 8192

static struct {
	int dir;
	uint64_t start; /* of this process, clock ticks since boot */
	bool told;	/* that it cannot be written */
} self = {-1, 0, false};

/* ---- the directory -----------------------------------------------------------------------------
 */

/* Start time of a process: field 22 of /proc/PID/stat. The second field is its name in brackets,
 * which may hold blanks and brackets itself, so counting begins after the last one. 0, or -1. */
static int start_time(long pid, uint64_t *out)
{
	cleanup_fd int fd = -1;
	char path[64], text[1024], *p, *end;
	ssize_t n;

	if (str_fmt(path, sizeof path, "/proc/%ld/stat", pid) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return -1;
	text[n] = 0;
	p = strrchr(text, ')');
	for (int field = 2; p != NULL && field < 22; field++) {
		p = strchr(p, ' ');
		p = p != NULL ? p + 1 : NULL;
	}
	if (p == NULL)
		return -1;
	end = p + strcspn(p, " \n");
	*end = 0;
	return str_u64(p, 0, UINT64_MAX, out);
}

/* -1 with errno: not usable. `own`: nobody else's, and closed to others. */
static int open_dir(const char *path, bool own)
{
	cleanup_fd int fd = -1;
	struct stat st;

	if (mkdir(path, own ? 0700 : 0755) < 0 && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_uid != geteuid() && (own || geteuid() == 0 || st.st_uid != 0)) {
		errno = EPERM;
		return -1;
	}
	/* Ours, so nobody else has any business writing in it; but a sticky one, as /tmp, is meant
	 * for all, and keeps the others from what is ours by itself. */
	if (st.st_uid == geteuid() && (st.st_mode & (own ? 077 : 022)) != 0 &&
	    (own || (st.st_mode & S_ISVTX) == 0) &&
	    fchmod(fd, st.st_mode & (own ? 0700 : 0755)) < 0)
		return -1;
	if (faccessat(fd, ".", W_OK | X_OK, 0) < 0)
		return -1;
	return take_fd(&fd);
}

/* Nobody else's links on the way to a given one either. */
static int open_given(const char *dir)
{
	char parent[1024], *slash;
	struct err e = ERR_INIT;
	int fd;

	if (str_copy(parent, sizeof parent, dir) < 0 || (slash = strrchr(parent, '/')) == NULL) {
		errno = EINVAL;
		return -1;
	}
	*slash = 0;
	fd = dirs_walk(parent[0] != 0 ? parent : "/", false, "INIT_STATE_DIR", &e);
	if (fd < 0) {
		errno = e.sys != 0 ? e.sys : ELOOP;
		return -1;
	}
	(void)close(fd);
	return open_dir(dir, false);
}

void state_open(const char *dir, bool given)
{
	char tmp[64];

	fd_close(&self.dir);
	self.told = false;
	if (start_time((long)getpid(), &self.start) < 0)
		self.start = 0;
	if (given) {
		self.dir = open_given(dir);
		if (self.dir < 0)
			log_warn("state_none",
				 "no state is written: INIT_STATE_DIR %s: %s (it must be no link, "
				 "and belong to uid %ld%s)",
				 dir, strerror(errno), (long)geteuid(),
				 geteuid() == 0 ? "" : " or, writable, to root");
		return;
	}
	self.dir = open_dir("/run/init", false);
	if (self.dir < 0 && str_fmt(tmp, sizeof tmp, "/tmp/init-%ld", (long)geteuid()) == 0)
		self.dir = open_dir(tmp, true);
	if (self.dir < 0)
		log_warn("state_none",
			 "no state is written, so --health fails: neither /run/init nor %s can be "
			 "used by uid %ld: %s; set INIT_STATE_DIR",
			 tmp, (long)geteuid(), strerror(errno));
}

int state_dirfd(void)
{
	return self.dir;
}

int state_put(const char *name, mode_t mode, const char *data, size_t len)
{
	cleanup_fd int fd = -1;
	char tmp[64];
	int saved;

	if (self.dir < 0 || str_fmt(tmp, sizeof tmp, "%s.new", name) < 0) {
		errno = ENOENT;
		return -1;
	}
	(void)unlinkat(self.dir, tmp, 0);
	fd = openat(self.dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	errno = EIO; /* of a short write */
	if (write(fd, data, len) == (ssize_t)len && fchmod(fd, mode) == 0 &&
	    renameat(self.dir, tmp, self.dir, name) == 0)
		return 0;
	saved = errno;
	(void)unlinkat(self.dir, tmp, 0);
	errno = saved;
	return -1;
}

ssize_t state_get(const char *name, char *dst, size_t size)
{
	cleanup_fd int fd = -1;
	struct stat st;
	ssize_t n;

	if (self.dir < 0)
		return -1;
	fd = openat(self.dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -1;
	n = read(fd, dst, size - 1);
	if (n >= 0)
		dst[n] = 0;
	return n;
}

/* ---- state.json --------------------------------------------------------------------------------
 */

/* Written without heap, which PID 1 does not use once it runs. */
struct text {
	char *to;
	size_t len, size;
	bool cut;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->to + t->len, t->size - t->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->size - t->len)
		t->cut = true;
	else
		t->len += (size_t)n;
}

static void add_string(struct text *t, const char *s)
{
	char shown[1024];

	str_show(shown, sizeof shown, s, strlen(s)); /* no control characters, valid UTF-8 */
	add(t, "\"");
	for (const char *p = shown; *p != 0; p++)
		add(t, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
	add(t, "\"");
}

static void add_time(struct text *t, int64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char day[32];

	if (gmtime_r(&s, &tm) == NULL || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		add(t, "null");
	else
		add(t, "\"%s.%03dZ\"", day, (int)(ms % 1000));
}

static void render(struct text *t, const struct state_view *v)
{
	add(t, "{\"schema\":1,\"state\":");
	add_string(t, v->state);
	add(t, ",\"since\":");
	add_time(t, v->since_ms);
	add(t, ",\"pid\":%ld,\"start\":%llu,\"version\":", (long)getpid(),
	    (unsigned long long)self.start);
	add_string(t, INIT_VERSION);
	if (v->runner == NULL) {
		add(t, ",\"runner\":null");
	} else {
		add(t, ",\"runner\":{\"id\":%llu,\"name\":", (unsigned long long)v->runner->id);
		add_string(t, v->runner->name);
		add(t, ",\"url\":");
		add_string(t, v->url != NULL ? v->url : "");
		add(t, ",\"ephemeral\":%s}", v->runner->ephemeral ? "true" : "false");
	}
	if (v->job) {
		add(t, ",\"job\":{\"since\":");
		add_time(t, v->job_since_ms);
		add(t, "}");
	} else {
		add(t, ",\"job\":null");
	}
	add(t, ",\"gpu\":");
	add_string(t, v->gpu != NULL ? v->gpu : "unknown");
	if (v->error_code != 0) {
		add(t, ",\"last_error\":{\"code\":%d,\"msg\":", v->error_code);
		add_string(t, v->error_msg != NULL ? v->error_msg : "");
		add(t, "}}\n");
	} else {
		add(t, ",\"last_error\":null}\n");
	}
}

void state_write(const struct state_view *v)
{
	static char room[STATE_MAX];
	struct text t = {room, 0, sizeof room, false};

	if (self.dir < 0)
		return;
	render(&t, v);
	if (!t.cut && state_put("state.json", 0644, room, t.len) == 0)
		return;
	if (!self.told)
		log_debug("state_unwritten", "cannot write state.json: %s",
			  t.cut ? "it is too long" : strerror(errno));
	self.told = true;
}

/* ---- health ------------------------------------------------------------------------------------
 */

/* Uid that PID 1 runs as: its state may be in that user's directory. */
static long uid_of_init(void)
{
	struct err e = ERR_INIT;
	cleanup_buf struct buf b;
	const char *p;
	uint64_t uid;
	char digits[16];

	buf_init(&b, 16384);
	if (fs_read(AT_FDCWD, "/proc/1/status", &b, &e) < 0 ||
	    (p = strstr(buf_str(&b), "\nUid:\t")) == NULL)
		return (long)geteuid();
	p += strlen("\nUid:\t");
	if (str_copyn(digits, sizeof digits, p, strspn(p, "0123456789")) < 0 ||
	    str_u64(digits, 0, UINT32_MAX, &uid) < 0)
		return (long)geteuid();
	return (long)uid;
}

static int read_state(const char *dir, struct buf *b, char *path, size_t size)
{
	const char *places[3] = {dir, NULL, NULL};
	char tmp[64], own[64];
	struct err e = ERR_INIT;

	if (dir == NULL || dir[0] == 0) {
		places[0] = "/run/init";
		if (str_fmt(tmp, sizeof tmp, "/tmp/init-%ld", uid_of_init()) == 0)
			places[1] = tmp;
		if (str_fmt(own, sizeof own, "/tmp/init-%ld", (long)geteuid()) == 0)
			places[2] = own;
	}
	for (size_t i = 0; i < 3; i++) {
		if (places[i] == NULL || str_fmt(path, size, "%s/state.json", places[i]) < 0)
			continue;
		buf_reset(b);
		if (fs_read(AT_FDCWD, path, b, &e) == 0 && b->len > 0)
			return 0;
	}
	return -1;
}

struct seen {
	char state[32], since[40];
	uint64_t pid, start;
};

static int parse_state(const struct buf *b, struct seen *s, struct err *e)
{
	struct json j;
	struct json_at root;
	uint64_t schema;
	int r = json_parse(&j, b->data, b->len, JSON_STRICT, "state.json", &root, e);

	if (r < 0 || json_u64(&root, "schema", JSON_REQUIRED, 1, 1, &schema, e) < 0 ||
	    json_str(&root, "state", JSON_REQUIRED, s->state, sizeof s->state, e) < 0 ||
	    json_str(&root, "since", JSON_REQUIRED, s->since, sizeof s->since, e) < 0 ||
	    json_u64(&root, "pid", JSON_REQUIRED, 1, INT32_MAX, &s->pid, e) < 0 ||
	    json_u64(&root, "start", JSON_REQUIRED, 0, UINT64_MAX, &s->start, e) < 0)
		r = -1;
	json_free(&j);
	return r < 0 ? -1 : 0;
}

int state_health(const char *dir, bool json, FILE *out)
{
	cleanup_buf struct buf b;
	struct seen s = {0};
	struct err e = ERR_INIT;
	char path[1200];
	uint64_t start;

	buf_init(&b, STATE_MAX);
	if (read_state(dir, &b, path, sizeof path) < 0) {
		(void)fprintf(out, "%s\n",
			      json ? "null"
				   : "unhealthy: there is no state.json; is init running?");
		return XC_FAILED;
	}
	if (parse_state(&b, &s, &e) < 0) {
		(void)fprintf(out, "%s\n", json ? "null" : "unhealthy: state.json cannot be read");
		(void)fprintf(stderr, "init: error: %s: %s\n", path, e.text);
		return XC_FAILED;
	}
	if (start_time((long)s.pid, &start) < 0 || start != s.start) {
		(void)fprintf(out, "%s\n",
			      json ? "null" : "unhealthy: the init that wrote state.json is gone");
		return XC_FAILED;
	}
	if (json)
		(void)fputs(buf_str(&b), out);
	else
		(void)fprintf(out, "%s since %s\n", s.state, s.since);
	return strcmp(s.state, "listening") == 0 || strcmp(s.state, "busy") == 0 ? XC_OK
										 : XC_FAILED;
}
