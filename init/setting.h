/*
 * The one table of settings: reading, `--check-config` and the README's table come from it. Inside
 * config*.c only; everybody else takes a const struct config.
 */
#ifndef INIT_SETTING_H
#define INIT_SETTING_H

#include "base/err.h"
#include "init/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct setting;

/* Turns a trimmed, non-empty value into its typed field. 0, or -1 with the reason in *e ("is not
 * ..."), without the value: the caller names it unless it is a secret. Outputs on success only. */
typedef int setting_set(const struct setting *s, const char *value, struct config *c,
			struct err *e);

enum setting_need {
	NEED_LIFE, /* only the life cycle reads it: credentials and what belongs to registering */
	NEED_ALL,  /* the self-test too */
	NEED_ELSEWHERE /* the agent or another file reads it; here it is only shown */
};

struct setting {
	const char *name;
	const char *alias; /* second spelling, looked at when the first is unset; NULL none */
	bool secret;	   /* may come as NAME_FILE, is never shown, is wiped and not handed on */
	enum setting_need need;
	const char *deflt;	/* set as if it were given; NULL: the field stays as it is */
	const char *deflt_text; /* what people read in place of deflt */
	const char *accepts;	/* for messages: "accepted: ..." */
	const char *meaning;	/* one sentence without a full stop */
	setting_set *set;
	size_t at, size;  /* of the field in struct config, for the generic setters */
	int64_t min, max; /* of durations, ms */
};

extern const struct setting settings[];
extern const unsigned settings_n;
#define SETTINGS_MAX 64

/* Index of the setting of that name; -1: none. */
int setting_index(const char *name);

/* Setters, config_set.c. */
setting_set set_bool, set_duration, set_bytes, set_text, set_path, set_secret, set_token, set_url,
	set_name, set_labels, set_group, set_work, set_root, set_user, set_app_id, set_installation,
	set_gate, set_gpu, set_count, set_floor, set_log_form, set_log_level, set_proxy,
	set_nothing;

/* A host name as a runner's name: what JSON and people dislike becomes '-', more than 64 bytes are
 * cut and end in a hash of the whole, so that two long names stay two. 0, or -1 when nothing usable
 * is left. Pure. */
int config_default_name(const char *host, char *dst, size_t size);

/* A PEM text as it comes out of an environment: literal \n becomes a line break, CR goes. In place;
 * returns the new length. Pure. */
size_t config_unfold_pem(char *text, size_t len);

/* A copy for people: printable, cut, and what stands between "//" and "@" replaced by "***". */
void config_shown(char *dst, size_t size, const char *value);

/* True when `u` may do `want` (4 read, 2 write, 1 search) to a file of that owner and mode. */
bool config_user_may(const struct user *u, uid_t owner, gid_t group, unsigned mode, unsigned want);

/* ---- one reading, config.c --------------------------------------------------------------------
 */

enum config_source { FROM_DEFAULT, FROM_ENV, FROM_FILE, FROM_SEARCH, FROM_NOWHERE };

struct config_problem {
	char var[80];
	char text[640]; /* value, reason, what is accepted */
	bool warning;
};

#define CONFIG_PROBLEMS_MAX 64

struct config_reading {
	enum config_source source[SETTINGS_MAX];
	char file[SETTINGS_MAX][256]; /* FROM_FILE: the path */
	struct config_problem problems[CONFIG_PROBLEMS_MAX];
	unsigned n_problems; /* warnings included */
	unsigned n_errors;
};

/* Reads into *c, which must be zeroed (static memory), and *r, zeroed too. Logs nothing. Returns
 * n_errors. */
unsigned config_collect(struct config *c, char *const *envp, enum config_use use,
			struct config_reading *r);

/* Notes a problem; `warning`: the life may go on. */
void config_problem(struct config_reading *r, bool warning, const char *var, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

int config_status(const struct config_reading *r); /* XC_OK or XC_CONFIG */
void config_tell(const struct config_reading *r);  /* logs all of them, one line each */

/* The value of a variable in envp, NULL when it is absent; the first one counts. */
const char *config_env(char *const *envp, const char *name);

/* The value as a setting sees it: trimmed, NULL when unset or empty. *len gives its length. */
const char *config_value(char *const *envp, const char *name, size_t *len);

/* Up to `size` - 1 bytes of a small file, NUL-terminated. The length, or -1 with errno (EFBIG: it
 * has more). Does not wait for a FIFO's writer. With `reader` only a regular file that this user
 * may reach and read (else EACCES), whoever asks: root must not carry a file's text to a user who
 * may not see it. */
ssize_t config_read_file(const char *path, const struct user *reader, char *dst, size_t size);

/* ---- config_find.c, config_env.c --------------------------------------------------------------
 */

/* Derives name, user, root, cache directories, probe settings. */
void config_find(struct config *c, char *const *envp, enum config_use use,
		 struct config_reading *r);
/* What the life cycle cannot do without, and what does not go together. */
void config_demand(struct config *c, char *const *envp, struct config_reading *r);

/* NAME or NAME_FILE of a secret, or anything that config.sh would take as an input. `n` is the
 * length of the name at the beginning of `entry`. */
bool config_is_secret(const char *entry, size_t n);

/* HOME had to fall back to the runner root. */
bool config_home_is_root(const struct config *c, char *const *envp);

#endif
