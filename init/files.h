/*
 * What init writes for the agent, as the job's user. Each runs in a short-lived child (spawn_fn),
 * since a file system may block, and becomes the job's user there for good (user_become); the
 * outcome comes back as a fixed-size report.
 */
#ifndef INIT_FILES_H
#define INIT_FILES_H

#include "base/err.h"
#include "init/config.h"

/* Makes the cache directories (parents too, without following links that somebody else could plant;
 * group-writable, setgid kept), the work folder's parent, and proves each writable by creating and
 * removing a file; proves the runner root listable up to / and writable. Runs as the job's user. 0,
 * or -1 with XC_FILES naming path, owner, mode, uid, gid and the remedy. */
int files_dirs(const struct config *c, struct err *e);

/* Removes what a predecessor left in the root: .runner .credentials .credentials_rsaparams, their
 * _migrated forms, .service. 0 or -1 (XC_FILES). */
int files_clean(const struct config *c, struct err *e);

/* Writes the identity files of `r` (0600, exclusive, synced, renamed; .runner last), .env and .path
 * as config.sh's env.sh does, .setup_info when setup_info is not "". Removes stale *_migrated. 0 or
 * -1 (XC_FILES). */
int files_identity(const struct config *c, const struct gh_runner *r, const char *setup_info,
		   const char *const *agent_env, struct err *e);

/* The text of .env: what was found there (baked into the image), then those of env.sh's variables
 * that `env` has and the found text has not. 0, or -1 when it does not fit. Pure. */
int files_dotenv(const char *found, const char *const *env, char *dst, size_t size);

/* The variables that env.sh saves; NULL-terminated. */
extern const char *const files_env_names[];

#endif
