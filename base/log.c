#include "base/log.h"

#include "base/deadline.h"
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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

static void put_json_string(struct line *l, const char *s)
{
	puts_(l, "\"");
	for (; *s != 0; s++) {
		if (l->len > sizeof l->text - 64) /* keep room for the closing of the object */
			break;
		if (*s == '"' || *s == '\\')
			puts_(l, "\\");
		put(l, s, 1);
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
			put_number(l, f[i].key, f[i].num);
			continue;
		}
		str_show(value, sizeof value, f[i].str, strlen(f[i].str));
		put_json_pair(l, f[i].key, value);
	}
	put_json_pair(l, "msg", msg);
	puts_(l, "}");
}

/* One write, or none: 0 when the line is out, -1 when it would have blocked or failed. */
static int emit(struct line *l)
{
	struct iovec v = {l->text, 0};
	ssize_t r;

	l->text[l->len++] = '\n';
	v.iov_len = l->len;
	r = pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT);
	if (r < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
		r = write(STDERR_FILENO, l->text, l->len);
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
