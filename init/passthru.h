/*
 * `init CMD`: supervises CMD as PID 1 would, and nothing else.
 */
#ifndef INIT_PASSTHRU_H
#define INIT_PASSTHRU_H

/* Runs argv (NULL-terminated) with the environment untouched; umask is already 002. Returns the
 * exit status of init: CMD's own, 128+n, 126, 127 or XC_SYSTEM. Everything that is left is ended
 * before it returns. */
int passthru_run(char *const *argv, char *const *envp);

#endif
