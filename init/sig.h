/*
 * Signals of PID 1: blocked before anything else, read from a signalfd, forwarded by an allow-list.
 */
#ifndef INIT_SIG_H
#define INIT_SIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>

/* The first call of main: blocks all of 1..64 but the fault signals (SEGV BUS ILL FPE TRAP SYS
 * ABRT) with a raw system call, since musl's sigfillset leaves out 32 to 34. Resets an inherited
 * ignored SIGCHLD (the kernel would reap behind our back); SIGPIPE and SIGXFSZ are ignored in
 * PID 1. */
void sig_block_all(void);

/* Non-blocking, close-on-exec signalfd over everything that is blocked. fd, or -1 (XC_SYSTEM). */
int sig_open(struct err *e);

/* In a child, before exec or before a child's own work: default dispositions for all, empty mask.
 */
void sig_reset_child(void);
/* The same, but the signals of sig_is_stop stay blocked: registrar and tap, which must outlive a
 * signal to everybody. */
void sig_reset_deaf(void);

/* PID 1, and the children that stay in its image: a log without a reader is an error of write, not
 * a death. Never inherited by a program: sig_reset_child comes before every exec. */
void sig_ignore_writes(void);

/* Would end an ordinary process: TERM INT QUIT HUP USR1 USR2 ALRM VTALRM PROF IO PWR (STKFLT) and
 * real-time. */
bool sig_is_stop(int signo);
/* Sent on to CMD by `init CMD`: everything but CHLD, PIPE and what our own writes and timers cause.
 */
bool sig_is_forwarded(int signo);

/* "SIGTERM", "SIGRTMIN+3"; static text for the named ones, else written to dst (24 bytes suffice).
 */
const char *sig_name(int signo, char *dst, size_t size);

/* "from outside the container", "from the kernel or terminal", "claims pid 17 (bash)": printable.
 */
void sig_origin(const struct signalfd_siginfo *si, char *dst, size_t size);

#endif
