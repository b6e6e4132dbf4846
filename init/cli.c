#include "init/cli.h"

#include "base/str.h"

#include <string.h>

/* What people type who come from tini (krallin/tini, src/tini.c), dumb-init (Yelp/dumb-init,
 * dumb-init.c) or catatonit (openSUSE/catatonit, catatonit.c), and what they want by it. */
static const struct {
	const char *option, *hint;
} habits[] = {
	{"-s", "init is a subreaper by itself when it is not PID 1; leave it out"},
	{"-p", "init needs no parent-death signal: it ends all that it started; leave it out"},
	{"-g", "init signals the whole group of CMD by itself; leave it out"},
	{"-e", "init passes on CMD's own exit status; map it where the container is started"},
	{"-w", "init reaps without words; leave it out"},
	{"-l", "the licence is in the file LICENSE; leave it out"},
	{"-v", "set INIT_LOG_LEVEL=debug for more words, or use --version"},
	{"-V", "use --version"},
	{"-h", "use --help"},
	{"-c",
	 "init signals the whole group of CMD; a single child is not an option; leave it out"},
	{"-r", "init does not rewrite signals; let CMD trap the one it gets"},
	{"-P", "init has no pause; run CMD"},
	{"-L", "the licence is in the file LICENSE; leave it out"},
	{"--single-child", "init signals the whole group of CMD; leave it out"},
	{"--rewrite", "init does not rewrite signals; let CMD trap the one it gets"},
	{"--verbose", "set INIT_LOG_LEVEL=debug"},
	{"--license", "the licence is in the file LICENSE"},
	{"--audit", "this build has none"},
	{"--doctor", "use --check-config and --selftest=deep"},
	{"--list", "use --selftest --list"},
	{"--only", "it belongs to --selftest"},
	{"--skip", "it belongs to --selftest"},
	{"--json", "it follows --selftest, --check-config, --health or --version"},
	{"--url", "init takes no flags of config.sh; set RUNNER_URL"},
	{"--token",
	 "a secret on the command line can be read by every process; set RUNNER_TOKEN_FILE"},
	{"--pat",
	 "a secret on the command line can be read by every process; set ACCESS_TOKEN_FILE"},
	{"--jitconfig", "a secret on the command line can be read by every process; set "
			"ACTIONS_RUNNER_INPUT_JITCONFIG_FILE"},
	{"--name", "init takes no flags of config.sh; set RUNNER_NAME"},
	{"--labels", "init takes no flags of config.sh; set RUNNER_LABELS"},
	{"--runnergroup", "init takes no flags of config.sh; set RUNNER_GROUP"},
	{"--work", "init takes no flags of config.sh; set RUNNER_WORKDIR"},
	{"--ephemeral", "init takes no flags of config.sh; it is the default (RUNNER_EPHEMERAL)"},
	{"--replace", "init takes no flags of config.sh; it is the default (RUNNER_REPLACE)"},
	{"--unattended", "init never asks anybody; leave it out"},
};

/* The option's name without "=value"; a bundle of short ones (-vvv, -gs) counts by its first. */
static const char *hint_for(const char *arg)
{
	for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
		size_t n = strlen(habits[i].option);
		if (strncmp(arg, habits[i].option, n) != 0)
			continue;
		if (n == 2 || arg[n] == 0 || arg[n] == '=')
			return habits[i].hint;
	}
	return "--help lists what there is";
}

static int unknown(const char *arg, struct err *e)
{
	char shown[64];

	if (str_starts(arg, "--") && strchr(arg, '=') != NULL) /* its value may be a secret */
		str_show(shown, sizeof shown, arg, strcspn(arg, "="));
	else
		str_show(shown, sizeof shown, arg, strlen(arg));
	return err_set(e, XC_USAGE, 0, "%s is no option of init: %s", shown, hint_for(arg));
}

/* `--only IDS` or `--only=IDS`. 1 taken (*argv moved on), 0 another option, -1 the value is
 * missing.
 */
static int list_option(char *const **argv, const char *name, const char **out, struct err *e)
{
	const char *arg = **argv;
	size_t n = strlen(name);

	if (strncmp(arg, name, n) != 0 || (arg[n] != 0 && arg[n] != '='))
		return 0;
	if (arg[n] == '=') {
		*out = arg + n + 1;
	} else {
		*out = (*argv)[1];
		*argv += *out != NULL ? 1 : 0;
	}
	if (*out == NULL || **out == 0 || **out == '-')
		return err_set(e, XC_USAGE, 0,
			       "%s needs a comma list of checks; --selftest --list "
			       "shows them",
			       name);
	return 1;
}

static int selftest_options(char *const *argv, struct cli *c, struct err *e)
{
	for (; *argv != NULL; argv++) {
		int r = 0;
		if (strcmp(*argv, "--json") == 0) {
			c->json = true;
			continue;
		}
		if (strcmp(*argv, "--list") == 0) {
			c->list = true;
			continue;
		}
		r = list_option(&argv, "--only", &c->only, e);
		if (r == 0)
			r = list_option(&argv, "--skip", &c->skip, e);
		if (r < 0)
			return -1;
		if (r == 0)
			return err_set(e, XC_USAGE, 0,
				       "--selftest does not take %.60s; it takes =build, =fast or "
				       "=deep, --json, --only IDS, --skip IDS, --list",
				       *argv);
	}
	return 0;
}

static int selftest(char *const *argv, const char *tier, struct cli *c, struct err *e)
{
	c->form = CLI_SELFTEST;
	c->tier = TIER_FAST;
	if (tier != NULL && strcmp(tier, "build") == 0)
		c->tier = TIER_BUILD;
	else if (tier != NULL && strcmp(tier, "deep") == 0)
		c->tier = TIER_DEEP;
	else if (tier != NULL && strcmp(tier, "fast") != 0)
		return err_set(e, XC_USAGE, 0,
			       "--selftest has the tiers build, fast and deep, not %.60s", tier);
	return selftest_options(argv + 1, c, e);
}

int cli_parse(char *const *argv, struct cli *out, struct err *e)
{
	static const struct {
		const char *name;
		enum cli_form form;
		bool json;
	} forms[] = {{"--check-config", CLI_CHECK, true},
		     {"--health", CLI_HEALTH, true},
		     {"--version", CLI_VERSION, true},
		     {"--help", CLI_HELP, false}};
	struct cli c = {.form = CLI_LIFE};
	const char *first = argv[0] != NULL ? argv[1] : NULL;
	int r = 0;

	if (first == NULL) {
		*out = c;
		return 0;
	}
	if (first[0] != '-' || strcmp(first, "--") == 0) {
		c.form = CLI_CMD;
		c.cmd = argv + (first[0] == '-' ? 2 : 1);
		if (c.cmd[0] == NULL)
			return err_set(e, XC_USAGE, 0, "-- needs a command after it");
		*out = c;
		return 0;
	}
	if (strcmp(first, "--selftest") == 0 || str_starts(first, "--selftest=")) {
		r = selftest(argv + 1, first[10] == '=' ? first + 11 : NULL, &c, e);
		if (r == 0)
			*out = c;
		return r;
	}
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if (strcmp(first, forms[i].name) != 0)
			continue;
		c.form = forms[i].form;
		c.json = forms[i].json && argv[2] != NULL && strcmp(argv[2], "--json") == 0;
		if (argv[2] != NULL && (!c.json || argv[3] != NULL))
			return err_set(e, XC_USAGE, 0, "%s takes %s", forms[i].name,
				       forms[i].json ? "--json and nothing else"
						     : "no other argument");
		*out = c;
		return 0;
	}
	return unknown(first, e);
}

void cli_help(FILE *out)
{
	static const char text[] =
		"init                     register a GitHub Actions runner, run its jobs, "
		"deregister\n"
		"init [--] CMD [ARG...]   run CMD as PID 1 would: signals, zombies, exit status\n"
		"init --selftest[=build|fast|deep] [--json] [--only IDS] [--skip IDS] [--list]\n"
		"                         check GPU, software stack, files and network\n"
		"init --check-config [--json]\n"
		"                         show every setting, where it comes from, and what is "
		"wrong\n"
		"init --health [--json]   exit 0 while the runner is listening or busy\n"
		"init --version [--json]\n"
		"init --help\n"
		"\n"
		"Settings are environment variables; --check-config lists them with their "
		"meaning.\n"
		"Least of them: RUNNER_URL, and RUNNER_TOKEN_FILE or another credential.\n"
		"\n"
		"Exit status: 0 done  1 check failed  64 usage  69 GitHub not reachable  70 bug\n"
		"71 system  73 directory  75 start again  76 not the protocol  77 credential "
		"refused\n"
		"78 configuration  80 GPU  81 software stack  82 clock  83 runner too old\n"
		"85 the registration could not be removed  126 127 128+n as a shell's\n";

	(void)fputs(text, out);
}
