/*
 * What the files behind gh.h share besides requests.
 */
#ifndef GH_INTERNAL_H
#define GH_INTERNAL_H

#include "gh/rest.h"

#define SETTLE_MS 3000 /* of the registration's budget, kept to settle an add in flight */

/* Pauses between look-ups that settle an add: a request that was cut may still be under way inside
 * GitHub when the first look-up is answered. */
#define SETTLE_TRIES 4

/* The page on which a person can remove the runner; id 0: the list of runners. */
void gh_settings_page(const struct gh_scope *scope, uint64_t id, char *dst, size_t size);

/* The JIT configuration given, or (s->jit_generate) generated. As gh_register. */
int jit_given(struct gh *g, struct gh_runner *out, struct err *e);
int jit_generated(struct gh *g, struct deadline d, gh_about_to_add *about, void *arg,
		  struct gh_runner *out, bool *unsettled, struct err *e);

/* Pure: base64 of a JSON object of file names and base64 contents, to r->files. 0, or -1
 * (XC_CONFIG). */
int jit_decode(const char *text, size_t len, struct gh_runner *r, struct err *e);

/* With a PAT or an App, which can see it: the runner that holds the name is not taken from under a
 * job, unless RUNNER_REPLACE appears in the environment. 0 with *held (id 0: nobody); -1 with
 * XC_CONFIG, or the look-up's error. */
int register_check_holder(struct gh *g, struct deadline d, struct answer_found *held,
			  struct err *e);

/* The pause before look-up number `attempt` (0 first: none); false when `d` leaves no room for it.
 */
bool settle_pause(unsigned attempt, struct deadline d);

/* Whether `name` is held: tried again while it is absent, since a cut add may land late. `how`
 * looks up. 1 present (*found), 0 absent, -1 unknown. */
typedef int settle_lookup(void *arg, struct deadline d, struct answer_found *found, struct err *e);
int settle(settle_lookup *how, void *arg, struct deadline d, struct answer_found *found,
	   struct err *e);

#endif
