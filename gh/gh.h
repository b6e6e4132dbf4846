/*
 * Registering and removing a runner. All calls block until their deadline and belong in the
 * registrar process; they log their steps. Protocol facts: see the .c files, which name the public
 * source of each.
 */
#ifndef GH_GH_H
#define GH_GH_H

#include "base/deadline.h"
#include "base/err.h"
#include "gh/runner.h"
#include "net/net.h"

#include <sys/types.h>

struct gh; /* opaque: settings (borrowed), network client, tokens minted in this life, RSA key */

/* `s` is borrowed until gh_close. cancel_fd: see net_config (-1: none). NULL with *e on failure. */
struct gh *gh_open(const struct gh_settings *s, int cancel_fd, struct err *e);
void gh_close(struct gh *g);
void gh_set_cancel(struct gh *g, int cancel_fd);

/* Told before the request that may add the runner leaves, with what is known: name, flow, tenant,
 * whether the name was absent (id 0) or is held by `id` that is to be replaced. From then on it may
 * exist. 0: go on; -1: do not send (the parent is gone). */
typedef int gh_about_to_add(void *arg, const struct gh_runner *partial);

/* Registers (or decodes / generates the JIT configuration). `d`: the whole budget, of which the
 * last 3 s are kept to settle an add in flight. On success *out is complete. On failure -1 with *e;
 * then `out->id` != 0 (or *unsettled true) says that a registration exists or may exist and must be
 * removed: an add whose answer was lost is settled before returning (looked up by exact name)
 * whenever that is possible. */
int gh_register(struct gh *g, struct deadline d, gh_about_to_add *about, void *arg,
		struct gh_runner *out, bool *unsettled, struct err *e);

enum gh_removed {
	GH_REMOVED,	/* the server confirmed it now */
	GH_GONE,	/* it was not there any more (job done, removed by the service) */
	GH_BUSY,	/* 422: still running a job; the error says when GitHub releases it */
	GH_NOT_REMOVED, /* refused, unreachable, or no credential that could: see err */
	GH_REMOVED__MAX
};

struct gh_removal {
	enum gh_removed what;
	bool verified; /* the server said so with a credential that can see it */
	int status;    /* last HTTP status, 0: none */
	int64_t ms;    /* time of the deciding exchange */
	char how[96];  /* "DELETE runners/42 with the PAT", for the log */
};

/* Removes by the id in memory, trying every way that the credentials allow, in this order: REST
 * delete with PAT or App (422 is the atomic "busy"), remove-token or registration token by the
 * runner's flow. A name whose add is unsettled (id 0) is settled first. With `if_idle` only the
 * REST delete is tried, and GH_BUSY is an answer. 0 with *out for GH_REMOVED and GH_GONE, and
 * GH_BUSY when if_idle; else -1 with *e and *out. A JIT runner without PAT or App has no way: -1
 * with XC_GHOST, the text saying that the service removes it. */
int gh_remove(struct gh *g, const struct gh_runner *r, bool if_idle, struct deadline d,
	      struct gh_removal *out, struct err *e);

/* Ends the broker session of an agent that had to be killed, with the agent's own key (from
 * r->files), so that the next start under the name meets no conflict. Best effort: 0 or -1. V1 has
 * no such way: -1. */
int gh_end_session(struct gh *g, const struct gh_runner *r, struct deadline d, struct err *e);

/* True when a removal at this moment has a credential that still works by its age: a PAT, an App,
 * or a registration token younger than an hour. */
bool gh_can_remove(const struct gh_settings *s);

/* Version of the runner installed under `root`: from bin/Runner.Listener.deps.json, else
 * `--version` run as a child (env and uid given) with the deadline. 0 or -1 (XC_FILES). */
int gh_agent_version(const char *root, const char *const *envp, uid_t uid, gid_t gid,
		     struct deadline d, char *dst, size_t size, struct err *e);

/* The predecessor's registration in the same container, known from the journal: deleted only when
 * GitHub shows it under `name`, offline and not busy. Needs PAT or App. 1 deleted, 0 left (says why
 * in the log), -1 error. */
int gh_remove_predecessor(struct gh *g, uint64_t id, const char *name, struct deadline d,
			  struct err *e);

#endif
