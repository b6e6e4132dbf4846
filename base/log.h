/*
 * The log: one line an event on stderr, one write(2) a line, never blocking.
 *
 * Text: `init: LEVEL: text`. JSON: an object with ts, level, event, msg and the event's fields. A
 * line that cannot be written at once (nobody drains the pipe) is dropped and counted; the count is
 * told with the next line that gets through. The flags of the shared descriptor 2 are never
 * touched. errno is kept.
 *
 * `event` is a stable snake_case name that operators match on; `fmt` is for people. Callers must
 * make foreign bytes short and printable first (str_show); what slips through is made printable
 * here.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4096 /* bytes a line, newline included; longer text is cut */

enum log_level { LL_ERROR, LL_WARN, LL_INFO, LL_DEBUG, LL__MAX };

struct log_field {
	const char *key; /* snake_case, borrowed for the call */
	const char *str; /* text value, or NULL: then num is the value */
	int64_t num;
};

#define LOG_STR(k, v) ((struct log_field){(k), (v), 0})
#define LOG_NUM(k, v) ((struct log_field){(k), NULL, (int64_t)(v)})
#define LOG_FIELDS(...)                                                                            \
	(const struct log_field[]){__VA_ARGS__},                                                   \
		sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field)

/* Once, early. Until then: text, info. */
void log_setup(enum log_level max, bool json);
enum log_level log_level(void);

/* After a fork that keeps the log: nothing is shared that needs care; the lost-line count starts at
 * 0. */
void log_event(enum log_level level, const char *event, const struct log_field *fields, size_t n,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#define log_error(event, ...) log_event(LL_ERROR, (event), NULL, 0, __VA_ARGS__)
#define log_warn(event, ...)  log_event(LL_WARN, (event), NULL, 0, __VA_ARGS__)
#define log_info(event, ...)  log_event(LL_INFO, (event), NULL, 0, __VA_ARGS__)
#define log_debug(event, ...) log_event(LL_DEBUG, (event), NULL, 0, __VA_ARGS__)

/* 0, or -1 when `name` is none of error, warn, info, debug (any case). */
int log_level_parse(const char *name, enum log_level *out);

#endif
