/*
 * state.json, the journal, and `init --health`: what init tells about itself, without secrets.
 */
#ifndef INIT_STATE_H
#define INIT_STATE_H

#include "base/err.h"
#include "gh/runner.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* starting gate registering listening busy draining stopping deregistering exited */
struct state_view {
	const char *state;
	int64_t since_ms;		/* CLOCK_REALTIME */
	const struct gh_runner *runner; /* NULL: none */
	const char *url;
	bool job;
	int64_t job_since_ms;
	const char *gpu; /* ok failed off unknown */
	int error_code;	 /* 0: last_error null */
	const char *error_msg;
};

/* Opens INIT_STATE_DIR, else /run/init, else /tmp/init-UID (0700): once, without following links.
 * As root only if root owns it; as another user also one of root's that is writable, such as a
 * mounted volume; in /tmp only our own. When none can be made: one warning, and everything below
 * does nothing. */
void state_open(const char *dir, bool given);
void state_write(const struct state_view *v); /* by rename; failures are logged once at debug */
/* The directory's descriptor, -1: none. */
int state_dirfd(void);

/* A small file of the directory, replaced by rename. Not synced: what is told here concerns the
 * lives of this container, and PID 1 must not wait for a disk. 0, or -1 with errno. */
int state_put(const char *name, mode_t mode, const char *data, size_t len);
/* Reads one, NUL-terminated; only a regular file of ours. Its length, or -1. */
ssize_t state_get(const char *name, char *dst, size_t size);

/* `init --health`: XC_OK while the state is listening or busy and its process is the one that wrote
 * it (start time as in /proc), else XC_FAILED; one line, or the state itself as JSON, on `out`. A
 * job of the same uid can forge the file. dir: INIT_STATE_DIR, "" or NULL for the default search.
 */
int state_health(const char *dir, bool json, FILE *out);

/* ---- journal: id and name of the registration of this container's earlier lives, start times
 * -------------- */

struct journal_entry {
	uint64_t id;
	char name[GH_NAME_MAX];
	char scope[512]; /* entity path and host */
	int64_t at_ms;	 /* CLOCK_REALTIME of the registration */
	bool removed;	 /* a confirmed removal followed */
};

/* Each record carries an HMAC keyed by the credential (App key, else PAT, else token, else JIT); a
 * record whose tag does not fit is ignored and dropped by the next write. The newest 8 are kept. 0,
 * or -1 (no directory, XC_FILES). */
int journal_add(const struct gh_credentials *key, const struct journal_entry *en, struct err *e);
int journal_removed(const struct gh_credentials *key, uint64_t id, struct err *e);
/* The newest entry of that scope that was not removed: 1 with *out, 0 none. */
int journal_open_entry(const struct gh_credentials *key, const char *scope,
		       struct journal_entry *out);

/* Notes this start and says how long it should wait, in ms: nothing after a life that had its job,
 * that lasted JOURNAL_QUICK_MS or that was the first or second quick one; then 1 s, doubling, up to
 * JOURNAL_PAUSE_MAX_MS, with some jitter. */
#define JOURNAL_QUICK_MS     30000
#define JOURNAL_PAUSE_MAX_MS 300000
int64_t journal_start_pause_ms(void);
/* `served`: it had a job, or was asked to stop: the next start need not wait. */
void journal_life_ended(bool served);

#endif
