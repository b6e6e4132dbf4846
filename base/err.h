/*
 * The error object: what went wrong, told once, in words an operator can act on.
 *
 * Contract of the whole tree: a fallible function returns 0 (or a non-negative number) on success
 * and leaves the error untouched; on failure it returns -1 and has set it. The function that fails
 * sets it (attempt, object, cause, cure); callers on the way up may prefix it. A `struct err` needs
 * no constructor beyond ERR_INIT, owns nothing and may be copied.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/exitcode.h"

#define ERR_TEXT_MAX 1024 /* bytes, terminating NUL included; longer text is cut */

struct err {
	int code;		 /* enum exit_code: how the process would end on this error */
	int sys;		 /* errno of the failing call, 0 if no call failed */
	char text[ERR_TEXT_MAX]; /* printable, one line, never a secret */
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		0, 0,                                                                              \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* Sets `e`. `sys` (an errno, or 0) is kept, and its text appended after ": " when not 0. Always
 * returns -1, so that `return err_set(...)` reads well. `e` may be NULL: then only the -1 is given.
 */
int err_set(struct err *e, int code, int sys, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Puts "prefix: " before the text that is already there. Always returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
