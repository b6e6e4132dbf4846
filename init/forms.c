#include "init/forms.h"

#include "base/log.h"
#include "base/str.h"
#include "build/version.h"
#include "init/passthru.h"
#include "init/setting.h"
#include "init/sig.h"
#include "init/state.h"
#include "probes/probes.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int version(bool json)
{
	if (json)
		(void)printf(
			"{\"name\":\"init\",\"version\":\"%s\",\"commit\":\"%s\","
			"\"built\":%lld,\"musl\":\"%s\",\"mbedtls\":\"%s\",\"cjson\":\"%s\"}\n",
			INIT_VERSION, INIT_COMMIT, INIT_BUILD_EPOCH, INIT_MUSL_VERSION,
			INIT_MBEDTLS_VERSION, INIT_CJSON_VERSION);
	else
		(void)printf("init %s (%s)\n", INIT_VERSION, INIT_COMMIT);
	return XC_OK;
}

static int health(bool json, char *const *envp)
{
	char dir[1024] = "";
	size_t len;
	const char *v = config_value(envp, "INIT_STATE_DIR", &len);

	if (v != NULL && str_copyn(dir, sizeof dir, v, len) < 0) {
		log_error("health", "INIT_STATE_DIR is longer than %zu bytes", sizeof dir - 1);
		return XC_FAILED;
	}
	return state_health(dir, json, stdout);
}

/* The checks start children and may be interrupted: PID 1 cannot do both, since the kernel keeps
 * from it every signal that it has no handler for. So there it supervises itself. */
static int selftest(const struct cli *cli, struct config *c, char *const *argv, char **envp)
{
	const char *again[16];
	size_t n = 0;
	int status;

	if (cli->list) {
		probes_list(cli->json, stdout);
		return XC_OK;
	}
	config_wipe_environ(envp);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (getpid() == 1) {
		again[n++] = "/proc/self/exe";
		for (size_t i = 1; argv[i] != NULL && n < 15; i++)
			again[n++] = argv[i];
		again[n] = NULL;
		sig_block_all();
		return passthru_run((char *const *)(void *)again, envp);
	}
	status = config_read_for(c, envp, CONFIG_SELFTEST);
	if (status != XC_OK)
		return status;
	return probes_selftest(&c->probe, cli->tier, cli->json, cli->only, cli->skip, stdout);
}

int forms_run(const struct cli *cli, struct config *c, char *const *argv, char **envp)
{
	int status = XC_BUG;

	sig_reset_child(); /* these end like any program when somebody interrupts them */
	switch (cli->form) {
	case CLI_SELFTEST:
		status = selftest(cli, c, argv, envp);
		break;
	case CLI_CHECK:
		status = config_show(c, envp, cli->json, stdout);
		break;
	case CLI_HEALTH:
		status = health(cli->json, envp);
		break;
	case CLI_VERSION:
		status = version(cli->json);
		break;
	case CLI_HELP:
		cli_help(stdout);
		status = XC_OK;
		break;
	case CLI_LIFE:
	case CLI_CMD:
	case CLI__MAX:
		break;
	}
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == XC_OK)
		status = XC_SYSTEM; /* nobody has read the answer */
	return status;
}

int forms_usage(const struct err *e)
{
	log_error("usage", "%s", e->text);
	return XC_USAGE;
}
