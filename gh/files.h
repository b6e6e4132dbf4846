/*
 * The agent's three identity files, as bytes. Writing them to disk is init's matter.
 */
#ifndef GH_FILES_H
#define GH_FILES_H

#include "base/err.h"
#include "gh/answer.h"
#include "gh/key.h"
#include "gh/runner.h"

/* Fills r->files (.credentials_rsaparams, .credentials, .runner: in the order to write them) from
 * what registration gave. r->id, name, pool, pool_name, flow, tenant, ephemeral are set already. 0,
 * or -1 (XC_BUG: too long). */
int files_build(struct gh_runner *r, const struct gh_settings *s, const struct answer_agent *a,
		const struct key_parts *key, struct err *e);

/* A file by name, or NULL. */
const struct gh_file *files_find(const struct gh_runner *r, const char *name);

/* The agent's key from r's .credentials_rsaparams. 0 or -1 (XC_PROTOCOL: what is wrong). */
int files_key(const struct gh_runner *r, struct key_parts *out, struct err *e);

/* Reads what a JIT configuration's .runner and .credentials say into r: id, name, pool, URLs,
 * client id. 0 or -1 (XC_CONFIG). */
int files_read_jit(struct gh_runner *r, struct err *e);

#endif
