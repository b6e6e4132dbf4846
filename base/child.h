/*
 * A short-lived helper process with a deadline: runs a program, collects its output up to a limit,
 * and always comes back. Blocks the caller until then, so it is never called by PID 1 itself, only
 * by its children (probes, registrar).
 *
 * The program gets: an argv array (no shell), exactly the environment given, stdin from /dev/null
 * or the text given, default signal dispositions, an empty mask, a session of its own, no other
 * descriptor. When the deadline passes it is killed together with everything it started, also what
 * left its session; what does not die within 500 ms (uninterruptible sleep) is abandoned and
 * reported as CHILD_HUNG.
 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/buf.h"
#include "base/deadline.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_spec {
	const char *const *argv; /* argv[0] is searched in PATH of envp when it has no '/' */
	const char *const *envp; /* whole environment; NULL: the caller's */
	const char *cwd;	 /* NULL: the caller's */
	const void *input;	 /* bytes for standard input, NULL: /dev/null */
	size_t input_len;
	size_t out_max; /* bytes of stdout and of stderr kept, each; the rest is read and dropped */
	uid_t uid;	/* (uid_t)-1: unchanged; else switched with groups, before exec */
	gid_t gid;
	struct deadline deadline;
};

enum child_end {
	CHILD_EXITED,	/* code: exit status */
	CHILD_SIGNALED, /* code: signal */
	CHILD_TIMEOUT,	/* killed at the deadline */
	CHILD_HUNG,	/* killed at the deadline, and did not die */
	CHILD_NOEXEC,	/* code: errno of the exec */
	CHILD__MAX
};

struct child_result {
	enum child_end end;
	int code;
	bool cut;	      /* output went over out_max */
	int64_t ms;	      /* how long it took */
	struct buf out, err_; /* owned by the result: child_result_free */
};

/* 0 with *r filled (whatever the program did), or -1 (fork, pipe: XC_SYSTEM) with nothing to free.
 */
int child_run(const struct child_spec *spec, struct child_result *r, struct err *e);
void child_result_free(struct child_result *r);

/* In a forked child: takes on user, group and that user's supplementary groups, for good. Nothing
 * when uid is (uid_t)-1 or both are already in force. 0, or -1 with errno. */
int child_become(uid_t uid, gid_t gid);

#endif
