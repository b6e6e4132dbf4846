/*
 * What we send: the bodies of the requests, and the agent's identity files. Pure; each appends to a
 * buffer and returns 0, or -1 with errno (EMSGSIZE, ENOMEM).
 */
#ifndef GH_BODY_H
#define GH_BODY_H

#include "base/buf.h"
#include "gh/answer.h"
#include "gh/key.h"
#include "gh/runner.h"

#define BODY_MAX 262144 /* 100 labels of 256 bytes, escaped */

/* POST runner-registration: `event` is register or remove. */
int body_auth(struct buf *b, const char *url, const char *event);

/* Add (replace_id 0) or replace, V1 and V2. */
int body_v1(struct buf *b, const struct gh_settings *s, const struct key_parts *key,
	    uint64_t replace_id);
int body_v2(struct buf *b, const struct gh_settings *s, const struct key_parts *key, uint64_t group,
	    uint64_t replace_id);

/* POST generate-jitconfig. */
int body_jit(struct buf *b, const struct gh_settings *s, uint64_t group);

/* The default labels of this platform, "self-hosted", "Linux" and the architecture's. */
extern const char *const body_default_labels[3];

/* "linux-x64", "linux-arm64", "linux-arm": the package's name in the User-Agent. */
extern const char *const body_package;

#endif
