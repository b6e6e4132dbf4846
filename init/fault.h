/*
 * What PID 1 does when it faults itself (SEGV BUS ILL FPE TRAP SYS ABRT, by its own bug or sent):
 * one command byte to the parked registrar, a bounded wait, exit. It forks nothing, allocates
 * nothing, and runs on a stack of its own. Only the life cycle arms it; `init CMD` has nothing to
 * remove.
 */
#ifndef INIT_FAULT_H
#define INIT_FAULT_H

#define FAULT_WAIT_MS 8000 /* longest wait for the registrar: below the 10 s of `docker stop` */

/* Installs the handlers. The process then ends with 128 + the signal's number. */
void fault_arm(void);

/* The registrar's socket from now on; -1: none. */
void fault_registrar(int sock);

/* What is said, as the last line, when no removal was confirmed: id, name, URL and the remedy.
 * Copied (cut to 511 bytes); "" or NULL: nothing is registered, and nobody is asked to remove it.
 */
void fault_last_words(const char *text);

#endif
