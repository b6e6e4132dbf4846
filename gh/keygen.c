#include "gh/keygen.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int generate(struct key_parts *out, struct err *e)
{
	struct key *k = key_generate(e);
	int rc;

	if (k == NULL)
		return -1;
	rc = key_export(k, out, e);
	key_free(k);
	return rc;
}

/* The child: one write of less than PIPE_BUF bytes, so the parts arrive whole or not at all. */
static _Noreturn void child(int fd, pid_t parent)
{
	struct key_parts parts;
	struct err e = ERR_INIT;
	bool ok;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	ok = generate(&parts, &e) == 0 && write(fd, &parts, sizeof parts) == (ssize_t)sizeof parts;
	explicit_bzero(&parts, sizeof parts);
	_exit(ok ? 0 : 1);
}

void keygen_start(struct keygen *k)
{
	pid_t parent = getpid();
	int p[2];

	k->pid = -1;
	k->fd = -1;
	if (pipe2(p, O_CLOEXEC) < 0)
		return;
	k->pid = fork();
	if (k->pid == 0)
		child(p[1], parent);
	(void)close(p[1]);
	if (k->pid > 0) {
		k->fd = p[0];
		return;
	}
	log_debug("key_in_place", "cannot fork for the key, generating it in place: %s",
		  strerror(errno));
	(void)close(p[0]);
}

/* 1: there is something to read, 0: cancelled or too late, -1: poll failed. */
static int wait_readable(int fd, int cancel_fd, struct deadline d)
{
	struct pollfd p[2] = {{fd, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
	int rc;

	do
		rc = poll(p, 2, deadline_poll_ms(d));
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -1;
	return p[0].revents != 0 ? 1 : 0;
}

int keygen_take(struct keygen *k, int cancel_fd, struct deadline d, struct key_parts *out,
		struct err *e)
{
	ssize_t n = -1;

	if (k->fd >= 0) {
		int ready = wait_readable(k->fd, cancel_fd, d);
		if (ready == 0) {
			keygen_stop(k);
			return err_set(e, XC_UNAVAILABLE, 0,
				       "no RSA key yet when the time to register was over");
		}
		if (ready > 0)
			do
				n = read(k->fd, out, sizeof *out);
			while (n < 0 && errno == EINTR);
	}
	keygen_stop(k);
	if (n == (ssize_t)sizeof *out)
		return 0;
	return generate(out, e);
}

void keygen_stop(struct keygen *k)
{
	fd_close(&k->fd);
	if (k->pid <= 0)
		return;
	(void)kill(k->pid, SIGKILL);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	k->pid = -1;
}
