#include "base/log.h"

#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct {
	enum log_level max;
	bool json;
	unsigned long lost;
} state = {LL_INFO, false, 0};

static const char *const names[LL__MAX] = {"error", "warn", "info", "debug"};

void log_setup(enum log_level max, bool json)
{
	state.max = max;
	state.json = json;
}

enum log_level log_level(void)
{
	return state.max;
}

int log_level_parse(const char *name, enum log_level *out)
{
	for (int i = 0; i < LL__MAX; i++) {
		if (str_eq_nocase(name, names[i])) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -1;
}

#define JSON_TAIL     16   /* bytes kept for what closes the object */
#define JSON_MSG_ROOM 1024 /* bytes kept for the message */

struct line {
	size_t len;
	char text[LOG_LINE_MAX];
};

static void put(struct line *l, const char *s, size_t n)
{
	size_t room = sizeof l->text - 1 - l->len; /* the newline always fits */

	if (n > room)
		n = room;
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void puts_(struct line *l, const char *s)
{
	put(l, s, strlen(s));
}

/* Escaped; cut at a whole character when the line has no room. str_show and str_printable left no
 * control character in it. */
static void put_json_string(struct line *l, const char *s)
{
	puts_(l, "\"");
	while (*s != 0) {
		size_t k = 1;

		while ((s[k] & 0xc0) == 0x80) /* the rest of a UTF-8 character */
			k++;
		if (l->len + k > sizeof l->text - JSON_TAIL)
			break;
		if (*s == '"' || *s == '\\')
			puts_(l, "\\");
		put(l, s, k);
		s += k;
	}
	puts_(l, "\"");
}

static void put_json_pair(struct line *l, const char *key, const char *value)
{
	puts_(l, l->len == 1 ? "" : ",");
	put_json_string(l, key);
	puts_(l, ":");
	put_json_string(l, value);
}

/* Whether a field leaves room for the message, which is the last of the object. */
static bool fits(const struct line *l, const char *key, size_t value_len)
{
	return l->len + strlen(key) + 2 * value_len + 8 < sizeof l->text - JSON_MSG_ROOM;
}

static void put_number(struct line *l, const char *key, int64_t n)
{
	char num[32];

	if (str_fmt(num, sizeof num, "%lld", (long long)n) < 0)
		return;
	puts_(l, ",");
	put_json_string(l, key);
	puts_(l, ":");
	puts_(l, num);
}

static void stamp(char *out, size_t size)
{
	int64_t now = clock_real_ms();
	time_t s = (time_t)(now / 1000);
	struct tm tm;
	char day[32];

	if (gmtime_r(&s, &tm) == NULL || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0 ||
	    str_fmt(out, size, "%s.%03dZ", day, (int)(now % 1000)) < 0)
		(void)str_copy(out, size, "1970-01-01T00:00:00.000Z");
}

static void render(struct line *l, enum log_level level, const char *event,
		   const struct log_field *f, size_t n, const char *msg)
{
	char ts[48], value[512];

	l->len = 0;
	if (!state.json) {
		puts_(l, "init: ");
		puts_(l, names[level]);
		puts_(l, ": ");
		puts_(l, msg);
		return;
	}
	stamp(ts, sizeof ts);
	puts_(l, "{");
	put_json_pair(l, "ts", ts);
	put_json_pair(l, "level", names[level]);
	put_json_pair(l, "event", event);
	for (size_t i = 0; i < n; i++) {
		if (f[i].str == NULL) {
			if (fits(l, f[i].key, 20))
				put_number(l, f[i].key, f[i].num);
			continue;
		}
		str_show(value, sizeof value, f[i].str, strlen(f[i].str));
		if (fits(l, f[i].key, strlen(value)))
			put_json_pair(l, f[i].key, value);
	}
	put_json_pair(l, "msg", msg);
	puts_(l, "}");
}

/* Lines go through one of these where the kernel refuses RWF_NOWAIT. None leaves a trace on the
 * description that descriptor 2 shares with the agent, and none keeps a descriptor for later, which
 * a child that closes everything would find pointing somewhere else. */

/* Pipes and FIFOs of older kernels: a pipe of our own in between, whose one page the kernel moves
 * over whole or not at all. */
static ssize_t through_pipe(const char *p, size_t n)
{
	cleanup_fd int r = -1, w = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	r = fds[0];
	w = fds[1];
	if (write(w, p, n) != (ssize_t)n)
		return -1;
	return splice(r, NULL, STDERR_FILENO, NULL, n, SPLICE_F_NONBLOCK);
}

/* Terminals and other devices: a description of our own, non-blocking. Where it cannot be had (no
 * /proc), only what polls writable is written to. */
static ssize_t through_own(const char *p, size_t n)
{
	cleanup_fd int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct pollfd room = {STDERR_FILENO, POLLOUT, 0};

	if (fd >= 0)
		return write(fd, p, n);
	if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0)
		return write(STDERR_FILENO, p, n);
	return -1;
}

static ssize_t without_nowait(const char *p, size_t n)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0)
		return -1;
	if (S_ISFIFO(st.st_mode))
		return through_pipe(p, n);
	if (S_ISSOCK(st.st_mode))
		return send(STDERR_FILENO, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (S_ISREG(st.st_mode))
		return write(STDERR_FILENO, p, n); /* has no reader to wait for */
	return through_own(p, n);
}

/* One write, or none: 0 when the line is out, -1 when it would have blocked or failed. */
static int emit(struct line *l)
{
	struct iovec v = {l->text, 0};
	ssize_t r;

	l->text[l->len++] = '\n';
	v.iov_len = l->len;
	r = pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT);
	if (r < 0 && errno != EAGAIN && errno != EPIPE && errno != EBADF)
		r = without_nowait(l->text, l->len);
	return r == (ssize_t)l->len ? 0 : -1;
}

void log_event(enum log_level level, const char *event, const struct log_field *fields, size_t n,
	       const char *fmt, ...)
{
	int saved = errno;
	struct line l;
	char msg[LOG_LINE_MAX - 512];
	va_list ap;

	if (level > state.max)
		return;
	if (state.lost > 0) {
		struct log_field lost = LOG_NUM("lost", state.lost);
		if (str_fmt(msg, sizeof msg, "%lu log lines were lost: nobody drained the log",
			    state.lost) == 0) {
			render(&l, LL_WARN, "log_lost", &lost, 1, msg);
			if (emit(&l) == 0)
				state.lost = 0;
		}
	}
	va_start(ap, fmt);
	(void)!vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	str_printable(msg);
	render(&l, level, event, fields, n, msg);
	if (emit(&l) < 0)
		state.lost++;
	errno = saved;
}
