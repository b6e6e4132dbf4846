/*
 * The command line. Pure: nothing is read but argv.
 */
#ifndef INIT_CLI_H
#define INIT_CLI_H

#include "base/err.h"
#include "probes/probes.h"

#include <stdbool.h>
#include <stdio.h>

enum cli_form {
	CLI_LIFE,     /* init */
	CLI_CMD,      /* init [--] CMD [ARG...] */
	CLI_SELFTEST, /* --selftest[=TIER] [--json] [--only IDS] [--skip IDS] [--list] */
	CLI_CHECK,    /* --check-config [--json] */
	CLI_HEALTH,   /* --health [--json] */
	CLI_VERSION,  /* --version [--json] */
	CLI_HELP,     /* --help */
	CLI__MAX
};

struct cli {
	enum cli_form form;
	char *const *cmd; /* CLI_CMD: NULL-terminated, inside argv */
	enum probe_tier tier;
	bool json, list;
	const char *only, *skip; /* inside argv; NULL: not given */
};

/* 0, or -1 with XC_USAGE and, where one fits, a hint for those who come from another init. */
int cli_parse(char *const *argv, struct cli *out, struct err *e);

void cli_help(FILE *out);

#endif
