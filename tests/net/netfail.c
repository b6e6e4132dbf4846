/*
 * Failing calls for the network driver: NETFAIL=CALL:N[:ERRNO[:COUNT[:STEP]]] makes the N-th call
 * of that name fail (COUNT times in a row, 1 when not given). With STEP the count begins anew
 * whenever the driver opens a new client (its option -n), and N grows by STEP each time. The linker
 * puts these in front of the real ones (--wrap), in the checking build only. NETFAIL_TELL=1: how
 * many calls there were, on stderr at the end.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum call {
	C_CALLOC,
	C_SOCKET,
	C_CONNECT,
	C_SEND,
	C_RECV,
	C_POLL,
	C_GETSOCKOPT,
	C_GETRANDOM,
	C__MAX
};

static const char *const names[C__MAX] = {"calloc", "socket", "connect",    "send",
					  "recv",   "poll",   "getsockopt", "getrandom"};

static struct {
	int set; /* 0 not yet read, 1 read */
	int call, error;
	long first, count, step, seen[C__MAX];
} plan;

static void tell(void)
{
	for (int i = 0; i < C__MAX; i++)
		fprintf(stderr, "%s %ld\n", names[i], plan.seen[i]);
}

static void read_plan(void)
{
	const char *s = getenv("NETFAIL");
	size_t n;

	plan.set = 1;
	plan.call = -1;
	if (getenv("NETFAIL_TELL") != NULL)
		(void)atexit(tell);
	if (s == NULL)
		return;
	n = strcspn(s, ":");
	for (int i = 0; i < C__MAX; i++)
		if (strlen(names[i]) == n && strncmp(s, names[i], n) == 0)
			plan.call = i;
	plan.error = ENOMEM;
	plan.count = 1;
	(void)!sscanf(s + n, ":%ld:%d:%ld:%ld", &plan.first, &plan.error, &plan.count, &plan.step);
}

void netfail_begin(void);
void netfail_begin(void)
{
	static int later;

	if (plan.set == 0)
		read_plan();
	if (plan.step == 0)
		return;
	if (later)
		plan.first += plan.step;
	later = 1;
	memset(plan.seen, 0, sizeof plan.seen);
}

/* 1 when this call is to fail; errno is set then. */
static int fails(enum call c)
{
	if (plan.set == 0)
		read_plan();
	plan.seen[c]++;
	if ((int)c != plan.call || plan.seen[c] < plan.first ||
	    plan.seen[c] >= plan.first + plan.count)
		return 0;
	errno = plan.error;
	return 1;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return fails(C_CALLOC) ? NULL : __real_calloc(n, size);
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	return fails(C_SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

int __real_connect(int fd, const struct sockaddr *a, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t len)
{
	return fails(C_CONNECT) ? -1 : __real_connect(fd, a, len);
}

ssize_t __real_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	return fails(C_SEND) ? -1 : __real_send(fd, p, n, flags);
}

ssize_t __real_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags)
{
	return fails(C_RECV) ? -1 : __real_recv(fd, p, n, flags);
}

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	return fails(C_POLL) ? -1 : __real_poll(p, n, ms);
}

int __real_getsockopt(int fd, int level, int name, void *p, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *p, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *p, socklen_t *len)
{
	return fails(C_GETSOCKOPT) ? -1 : __real_getsockopt(fd, level, name, p, len);
}

ssize_t __real_getrandom(void *p, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *p, size_t n, unsigned flags)
{
	return fails(C_GETRANDOM) ? -1 : __real_getrandom(p, n, flags);
}
