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

/* Opens INIT_STATE_DIR, else /run/init, else /tmp/init-UID (0700): once, without following links,
 * owned by us (as root only if root owns it). When none can be made: one warning, and everything
 * below does nothing. */
void state_open(const char *dir, bool given);
void state_write(const struct state_view *v); /* by rename; failures are logged once at debug */
/* The directory's descriptor, -1: none. For the journal. */
int state_dirfd(void);

/* `init --health`. Exit status. */
int state_health(const char *dir, bool given, bool json, FILE *out);

/* ---- journal: id and name of the registration of this container's earlier lives, start times
 * -------------- */

struct journal_entry {
	uint64_t id;
	char name[GH_NAME_MAX];
	char scope[512]; /* entity path and host */
	int64_t at_ms;	 /* CLOCK_REALTIME of the registration */
	bool removed;	 /* a confirmed removal followed */
};

/* Each record carries an HMAC-like tag keyed by the credential; a record whose tag does not fit is
 * ignored. Writes go through rename. 0, or -1 (no directory, XC_FILES). */
int journal_add(const struct gh_credentials *key, const struct journal_entry *en, struct err *e);
int journal_removed(const struct gh_credentials *key, uint64_t id, struct err *e);
/* The newest entry that was not removed: 1 with *out, 0 none. */
int journal_open_entry(const struct gh_credentials *key, const char *scope,
		       struct journal_entry *out);
/* Notes this start and says how long it should wait, from how quickly the last lives ended (capped
 * back-off). ms. */
int64_t journal_start_pause_ms(void);
void journal_life_ended(bool had_job);

#endif
