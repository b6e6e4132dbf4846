/*
 * init, PID 1 of a container that runs one GitHub Actions runner. This file is the table of
 * contents; it is also the only one that ends the process.
 */
#include "base/exitcode.h"
#include "base/log.h"
#include "init/cli.h"
#include "init/config.h"
#include "init/forms.h"
#include "init/passthru.h"
#include "init/run.h"
#include "init/sig.h"
#include "init/spawn.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct config config; /* zeroed; 200 kB that the other forms never touch */

static int life(char **envp)
{
	int status;

	/* Everything that is wrong is said at once, before anything was done. */
	status = config_read(&config, envp);
	/* From here the credential is in this memory alone: not in what /proc shows, not in a core
	 * file, not open to a tracer of the same user. (The limit on core files is left as it was:
	 * the agent inherits it.) */
	config_wipe_environ(envp);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (status != XC_OK)
		return status;
	/* Not PID 1 (behind another init, in a shared pid namespace): orphans still come to us. */
	if (getpid() != 1)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return run_life(&config, envp);
}

int main(int argc, char **argv, char **envp)
{
	struct err e = ERR_INIT;
	struct cli cli;
	int status;

	sig_block_all(); /* first of all: from here on no signal is lost */
	(void)argc;
	(void)umask(002); /* what jobs share through caches stays writable for the group */
	spawn_std_fds();  /* so that nothing of ours ever becomes descriptor 0, 1 or 2 */
	if (cli_parse(argv, &cli, &e) != 0)
		_exit(forms_usage(&e));
	if (cli.form == CLI_CMD)
		status = passthru_run(cli.cmd, envp);
	else if (cli.form == CLI_LIFE)
		status = life(envp);
	else
		status = forms_run(&cli, &config, argv, envp);
	_exit(status);
}
