/*
 * The job's user: RUNNER_USER (name or uid[:gid]) looked up in /etc/passwd and /etc/group, or the
 * caller's own.
 */
#ifndef INIT_USER_H
#define INIT_USER_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define USER_GROUPS_MAX 64

struct user {
	bool switching; /* init is root and the job is not: setgroups, setgid, setuid before exec */
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_GROUPS_MAX]; /* supplementary, gid included */
	int n_groups;
	char name[64]; /* "" when passwd does not know the uid */
	char home[1024];
};

/* spec: RUNNER_USER, NULL or "" for the current ids. 0, or -1 with XC_CONFIG (no such user). */
int user_find(const char *spec, struct user *out, struct err *e);

/* In a child: becomes that user for good (groups, gid, uid; verified). Nothing to do when it is
 * that user already, or u->switching is false. 0, or -1 with XC_SYSTEM. */
int user_become(const struct user *u, struct err *e);

/* Opens for reading what that user may read, modes of the directories on the way included, for an
 * init that is root; does not wait for a FIFO's writer. The caller is itself again afterwards.
 * Descriptor, or -1 with errno. */
int user_open(const struct user *u, const char *path);

/* In the registrar of a root init: keeps uid 0, drops every capability and the supplementary
 * groups, so that the job's uid cannot touch it and it can do nothing but talk. 0 or -1. */
int user_drop_caps(struct err *e);

#endif
