/*
 * The forms that have no life cycle: --selftest, --check-config, --health, --version, --help.
 */
#ifndef INIT_FORMS_H
#define INIT_FORMS_H

#include "init/cli.h"
#include "init/config.h"

/* Runs the form (not CLI_LIFE or CLI_CMD) and returns the exit status. `c`: zeroed static memory.
 * `argv`: the whole command line, for a self-test that has to run below a PID 1. */
int forms_run(const struct cli *cli, struct config *c, char *const *argv, char **envp);

/* What stderr gets for a command line that is none. Exit status. */
int forms_usage(const struct err *e);

#endif
