#include "base/exitcode.h"
#include "base/log.h"
#include "init/passthru.h"
#include "init/sig.h"
#include "init/spawn.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv, char **envp)
{
	sig_block_all(); /* from here on no signal is lost */
	(void)umask(002);
	spawn_std_fds();
	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	} else if (argc > 1 && argv[1][0] == '-') {
		argc = 0;
	}
	if (argc < 2) {
		log_error("usage", "usage: init [--] CMD [ARG...]");
		_exit(XC_USAGE);
	}
	_exit(passthru_run(argv + 1, envp));
}
