#include "init/registrar.h"

#include "base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* Room for two of the largest messages; the kernel doubles the figure for its own bookkeeping. */
#define SOCKET_BYTES (2 * (int)sizeof(struct reg_report))

struct birth {
	int sock;
	const struct gh_settings *settings;
	bool drop;
};

static int born(void *arg)
{
	struct birth *b = arg;

	return registrar_work(b->sock, b->settings, b->drop);
}

void registrar_init(struct registrar *r)
{
	r->proc = (struct proc)PROC_NONE;
	r->sock = -1;
	r->seq = 0;
}

/* A kernel tuned to tiny socket buffers would refuse the report of success, the one that must not
 * be lost: found out now rather than then. */
static int widen(int sock, struct err *e)
{
	int want = SOCKET_BYTES, have = 0;
	socklen_t n = sizeof have;

	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &want, sizeof want);
	if (getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &have, &n) != 0)
		return err_set(e, XC_SYSTEM, errno, "cannot size the registrar's socket");
	if (have < (int)sizeof(struct reg_report) + 4096)
		return err_set(e, XC_SYSTEM, 0,
			       "socket buffers of %d bytes are too small for a message of %zu: "
			       "raise net.core.wmem_max",
			       have, sizeof(struct reg_report));
	return 0;
}

int registrar_start(struct registrar *r, const struct gh_settings *s, bool drop, struct err *e)
{
	int pair[2] = {-1, -1};
	struct birth b = {-1, s, drop};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_set(e, XC_SYSTEM, errno, "cannot make the registrar's socket");
	b.sock = pair[1];
	if (widen(pair[0], e) != 0 || widen(pair[1], e) != 0 ||
	    spawn_fn(born, &b, &b.sock, 1, true, &r->proc, e) != 0) {
		fd_close(&pair[0]);
		fd_close(&pair[1]);
		return -1;
	}
	fd_close(&pair[1]);
	r->sock = pair[0];
	return 0;
}

static int order(struct registrar *r, char command, struct deadline d, size_t len)
{
	ssize_t n;

	if (r->sock < 0)
		return -1;
	r->order.command = command;
	r->order.deadline = d;
	r->order.seq = ++r->seq;
	/* A stopped process cannot work: whoever stopped it, and why, does not matter. */
	(void)proc_kill(&r->proc, SIGCONT);
	do
		n = send(r->sock, &r->order, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -1;
}

#define UP_TO(member) offsetof(struct reg_order, member)
#define WITHOUT_FILES (UP_TO(runner) + offsetof(struct gh_runner, files))

int registrar_register(struct registrar *r, const struct reg_wish *w, struct deadline d)
{
	r->order.wish = *w;
	return order(r, REG_REGISTER, d, UP_TO(runner));
}

int registrar_remove(struct registrar *r, const struct gh_runner *runner, bool if_idle, bool killed,
		     struct deadline d)
{
	memcpy(&r->order.runner, runner, offsetof(struct gh_runner, files));
	r->order.runner.n_files = 0;
	r->order.killed = killed;
	return order(r, if_idle ? REG_REMOVE_IF_IDLE : REG_REMOVE, d, WITHOUT_FILES);
}

int registrar_know(struct registrar *r, const struct gh_runner *runner)
{
	memcpy(&r->order.runner, runner, offsetof(struct gh_runner, files));
	return order(r, REG_KNOW, DEADLINE_NEVER, WITHOUT_FILES);
}

int registrar_predecessor(struct registrar *r, const struct reg_wish *w, uint64_t id,
			  const char *name, struct deadline d)
{
	size_t n = strnlen(name, GH_NAME_MAX - 1);

	r->order.id = id;
	memcpy(r->order.name, name, n);
	r->order.name[n] = '\0';
	r->order.wish = *w; /* no request can be made without the agent's version */
	return order(r, REG_PREDECESSOR, d, UP_TO(runner));
}

int registrar_finish(struct registrar *r)
{
	return order(r, REG_FINISH, DEADLINE_NEVER, UP_TO(name));
}

static void terminate(struct reg_report *p)
{
	struct gh_runner *r = &p->runner;

	p->err.text[sizeof p->err.text - 1] = '\0';
	p->removal.how[sizeof p->removal.how - 1] = '\0';
	r->name[sizeof r->name - 1] = '\0';
	r->pool_name[sizeof r->pool_name - 1] = '\0';
	r->tenant[sizeof r->tenant - 1] = '\0';
	r->server_v2[sizeof r->server_v2 - 1] = '\0';
	r->client_id[sizeof r->client_id - 1] = '\0';
	r->auth_url[sizeof r->auth_url - 1] = '\0';
	r->settings_url[sizeof r->settings_url - 1] = '\0';
	if (r->n_files > GH_FILES_MAX)
		r->n_files = 0;
}

int registrar_next(struct registrar *r, struct reg_report *out)
{
	ssize_t n;

	if (r->sock < 0)
		return -1;
	do
		n = recv(r->sock, out, sizeof *out, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < (ssize_t)offsetof(struct reg_report, runner))
		return -1; /* its end, or something that no registrar sends */
	if ((size_t)n < sizeof *out)
		out->runner.n_files = 0;
	terminate(out);
	return 1;
}

void registrar_stop(struct registrar *r)
{
	(void)proc_kill(&r->proc, SIGKILL);
	fd_close(&r->sock);
}
