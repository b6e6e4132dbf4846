/*
 * Exit statuses of init: the one code space of the program.
 *
 * Every error carries the status that the process would end with if that error ended it, so there
 * is nothing to translate on the way up. The meaning of each, and what an orchestrator should do,
 * is the table "Exit status" of the README.
 */
#ifndef BASE_EXITCODE_H
#define BASE_EXITCODE_H

enum exit_code {
	XC_OK = 0,	     /* job done, or asked to stop; the registration is gone */
	XC_FAILED = 1,	     /* --selftest, --health: failed */
	XC_USAGE = 64,	     /* command line */
	XC_UNAVAILABLE = 69, /* GitHub not reachable in time: DNS, connect, TLS, 5xx, rate limit */
	XC_BUG = 70,	     /* a bug in init */
	XC_SYSTEM = 71,	     /* the system refused: fork, memory, pipe */
	XC_FILES = 73,	     /* runner root, work or cache directory not usable */
	XC_AGAIN = 75,	     /* a fresh start cures it */
	XC_PROTOCOL = 76,    /* an answer that is not the protocol */
	XC_DENIED = 77,	     /* credential refused */
	XC_CONFIG = 78,	     /* configuration */
	XC_GPU = 80,	     /* GPU not healthy */
	XC_STACK = 81,	     /* software stack not as pinned */
	XC_CLOCK = 82,	     /* clock wrong */
	XC_VERSION = 83,     /* runner version refused as too old */
	XC_GHOST = 85,	     /* the registration could not be removed */
	XC_NOEXEC = 126,     /* command cannot be executed */
	XC_NOTFOUND = 127,   /* command not found */
	XC_SIGNAL = 128	     /* plus the number of the signal that ended CMD */
};

#endif
