/*
 * The life cycle of a runner as a table: state x event -> next state and actions. Pure; init/run.c
 *carries the actions out, and the model in tests/model explores the same table exhaustively.
 *
 *	config > dirs > gate > registering > writing > listening/busy > stopping > deregistering >
 *sweeping > exited
 */
#ifndef INIT_LIFE_H
#define INIT_LIFE_H

#include "init/config.h"

/* Runs the whole life. Never returns before the registration is gone or its loss was said. Exit
 * status. */
int life_run(struct config *c, char **envp);

#endif
