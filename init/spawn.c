#include "init/spawn.h"

#include "base/cleanup.h"
#include "init/sig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Kernel numbers that older headers lack; the same on every architecture. */
#define NR_PIDFD_SEND_SIGNAL 424
#define NR_CLOSE_RANGE	     436

#define CHILD_STACK_BYTES (PATH_MAX + 24576) /* path search, looking up a user, the calls below */

/* Not zeroed by the compiler: the pages that nobody touches stay unmapped in a PID 1 for life. */
#define UNTOUCHED __attribute__((uninitialized))

/* The address sanitizer keeps its notes in memory too, and a child that execs in the middle of a
 * function leaves them wrong for a parent that shares it. */
#if defined(__SANITIZE_ADDRESS__)
#define SHARES_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARES_MEMORY 0
#endif
#endif
#ifndef SHARES_MEMORY
#define SHARES_MEMORY 1
#endif

enum stage { STAGE_NONE, STAGE_FILES, STAGE_CWD, STAGE_USER, STAGE_EXEC };

/* What the child leaves for the parent when it cannot exec. */
struct report {
	enum stage stage;
	int sys;
};

struct start {
	const struct spawn_spec *spec;
	struct report *report;
};

void spawn_std_fds(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is `fd`. Without a /dev any directory keeps the place. */
		if (open("/dev/null", O_RDWR) < 0)
			(void)open("/", O_RDONLY | O_DIRECTORY);
	}
}

static bool close_range_from(unsigned first, unsigned last)
{
	return syscall(NR_CLOSE_RANGE, first, last, 0) == 0;
}

/* Kernels before 5.9 and strict seccomp profiles: one by one up to the limit. */
static void close_each(int first, int last)
{
	long max = sysconf(_SC_OPEN_MAX);

	if (max < 0 || max > 65536)
		max = 65536;
	for (int fd = first; fd < max && fd <= last; fd++)
		(void)close(fd);
}

void spawn_close_from(int first, const int *keep, size_t n)
{
	while (first >= 0) {
		int next = INT_MAX;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= first && keep[i] < next)
				next = keep[i];
		if (next > first) {
			int last = next == INT_MAX ? INT_MAX : next - 1;
			if (!close_range_from((unsigned)first, (unsigned)last))
				close_each(first, last);
		}
		first = next == INT_MAX ? -1 : next + 1;
	}
}

int spawn_terminal(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		pid_t front = tcgetpgrp(fd);
		if (front >= 0)
			return front == getpgrp() ? fd : -1;
	}
	fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (tcgetpgrp(fd) != getpgrp()) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

void spawn_foreground(int terminal, pid_t group)
{
	/* ENOTTY, EPERM, EIO: the terminal went away or belongs to another session by now. */
	(void)!tcsetpgrp(terminal, group);
}

/* ---- in the child, which may share our memory: system calls and the stack only ---- */

static int put_at(int fd, int target)
{
	if (fd < 0)
		return 0;
	if (fd == target)
		return fcntl(fd, F_SETFD, 0);
	return dup2(fd, target) < 0 ? -1 : 0;
}

/* Descriptors 0-2. Sources among 0-2 are first moved out of the way. */
static int files(const struct spawn_spec *s)
{
	int src[3] = {s->in, s->out, s->err};

	for (int i = 0; i < 3; i++) {
		if (src[i] < 0 || src[i] > 2 || src[i] == i)
			continue;
		src[i] = fcntl(src[i], F_DUPFD, 3);
		if (src[i] < 0)
			return -1;
	}
	if (s->null_in) {
		src[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (src[0] < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++)
		if (put_at(src[i], i) < 0)
			return -1;
	spawn_close_from(3, NULL, 0);
	return 0;
}

static void group(const struct spawn_spec *s)
{
	if (s->group == SPAWN_SESSION) {
		(void)setsid();
		return;
	}
	(void)setpgid(0, 0);
	if (s->terminal != NULL && *s->terminal >= 0)
		spawn_foreground(*s->terminal, getpgrp());
}

static const char *path_of(const char *const *envp)
{
	for (; *envp != NULL; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return "/usr/local/bin:/bin:/usr/bin";
}

/* Tries argv[0] in each directory of PATH, as execvp does: what is missing is passed over, what may
 * not be executed is remembered. Returns the errno. Unlike execvp it never falls back to a shell.
 */
static int exec_search(char *const *argv, char *const *envp)
{
	const char *name = argv[0], *dir = path_of((const char *const *)envp);
	size_t len = strlen(name);
	UNTOUCHED char full[PATH_MAX + NAME_MAX + 2];
	bool denied = false;

	if (name[0] == 0)
		return ENOENT;
	if (strchr(name, '/') != NULL) {
		(void)execve(name, argv, envp);
		return errno;
	}
	if (len > NAME_MAX)
		return ENAMETOOLONG;
	for (;;) {
		const char *end = strchr(dir, ':');
		size_t n = end != NULL ? (size_t)(end - dir) : strlen(dir);

		if (n < PATH_MAX) {
			memcpy(full, dir, n);
			if (n > 0)
				full[n++] = '/'; /* an empty entry is the working directory */
			memcpy(full + n, name, len + 1);
			(void)execve(full, argv, envp);
			if (errno == EACCES)
				denied = true;
			else if (errno != ENOENT && errno != ENOTDIR)
				return errno;
		}
		if (end == NULL)
			return denied ? EACCES : ENOENT;
		dir = end + 1;
	}
}

static int child_main(void *arg)
{
	struct start *st = arg;
	const struct spawn_spec *s = st->spec;
	struct report *r = st->report;
	union {
		const char *const *in;
		char *const *out;
	} argv = {s->argv}, envp = {s->envp}; /* execve promises not to write to either */

	group(s);
	r->stage = STAGE_FILES;
	r->sys = 0;
	if (files(s) < 0) {
		r->sys = errno;
		return XC_SYSTEM;
	}
	if (s->user != NULL && s->user->switching && user_become(s->user, NULL) < 0) {
		r->stage = STAGE_USER;
		r->sys = errno;
		return XC_SYSTEM;
	}
	if (s->cwd != NULL && chdir(s->cwd) < 0) {
		r->stage = STAGE_CWD;
		r->sys = errno;
		return XC_SYSTEM;
	}
	sig_reset_child();
	r->stage = STAGE_EXEC;
	r->sys = exec_search(argv.out, envp.out);
	return XC_NOEXEC;
}

/* ---- in the parent ---- */

static void collect(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
}

static int failed(const struct spawn_spec *s, const struct report *r, struct err *e)
{
	switch (r->stage) {
	case STAGE_USER:
		return err_set(e, XC_SYSTEM, r->sys, "cannot become user %s (uid %u) for %s",
			       s->user->name, (unsigned)s->user->uid, s->argv[0]);
	case STAGE_CWD:
		return err_set(e, XC_NOEXEC, r->sys, "cannot change to %s for %s", s->cwd,
			       s->argv[0]);
	case STAGE_EXEC:
		return err_set(e, r->sys == ENOENT ? XC_NOTFOUND : XC_NOEXEC, r->sys,
			       "cannot execute %s", s->argv[0]);
	case STAGE_NONE:
	case STAGE_FILES:
	default:
		return err_set(e, XC_SYSTEM, r->sys, "cannot set up the descriptors of %s",
			       s->argv[0]);
	}
}

/* clone, with the memory shared or not; tries again without a pidfd when no descriptor is free. */
static pid_t start(struct start *st, int flags, int *pidfd)
{
	UNTOUCHED _Alignas(16) char stack[CHILD_STACK_BYTES];
	pid_t pid;

	*pidfd = -1;
	pid = clone(child_main, stack + sizeof stack, flags | CLONE_PIDFD, st, pidfd);
	if (pid < 0 && (errno == EMFILE || errno == ENFILE || errno == EINVAL)) {
		*pidfd = -1;
		pid = clone(child_main, stack + sizeof stack, flags, st);
	}
	return pid;
}

int spawn_exec(const struct spawn_spec *s, struct proc *out, struct err *e)
{
	bool apart = !SHARES_MEMORY || (s->user != NULL && s->user->switching);
	struct report here = {STAGE_NONE, 0}, *r = &here;
	struct start st = {s, &here};
	cleanup_fd int pidfd = -1;
	pid_t pid;
	int rc = 0;

	if (apart) {
		/* A process of another uid must not look at our memory: only this page is shared.
		 */
		r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			 0);
		if (r == MAP_FAILED)
			return err_set(e, XC_SYSTEM, errno, "cannot start %s: no memory",
				       s->argv[0]);
		st.report = r;
	}
	pid = start(&st, (apart ? 0 : CLONE_VM) | CLONE_VFORK | SIGCHLD, &pidfd);
	if (pid < 0) {
		rc = err_set(e, XC_SYSTEM, errno,
			     "cannot start %s: raise the limit on processes or memory", s->argv[0]);
	} else if (r->sys != 0) {
		collect(pid);
		rc = failed(s, r, e);
	} else {
		*out = (struct proc){pid, take_fd(&pidfd)};
	}
	if (apart)
		(void)munmap(r, sizeof *r);
	return rc;
}

int spawn_fn(int (*fn)(void *arg), void *arg, const int *keep, size_t n, bool deaf,
	     struct proc *out, struct err *e)
{
	int pidfd = -1;
	long pid;

	/* The C library's fork, so that its own idea of the thread is right in the child. */
	pid = fork();
	if (pid < 0)
		return err_set(e, XC_SYSTEM, errno,
			       "cannot fork: raise the limit on processes or memory");
	if (pid == 0) {
		(void)setsid();
		if (deaf)
			sig_reset_deaf();
		else
			sig_reset_child();
		sig_ignore_writes();
		spawn_close_from(3, keep, n);
		_exit(fn(arg));
	}
	/* It cannot be reaped before we do it, so its pid is its own until then. */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0)
		(void)fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	*out = (struct proc){(pid_t)pid, pidfd};
	return 0;
}

int proc_kill(const struct proc *p, int signo)
{
	if (p->pid <= 0) {
		errno = ESRCH;
		return -1;
	}
	if (p->pidfd >= 0) {
		if (syscall(NR_PIDFD_SEND_SIGNAL, p->pidfd, signo, NULL, 0) == 0)
			return 0;
		if (errno != ENOSYS && errno != EPERM)
			return -1;
	}
	/* Not reaped yet, so the number is still this process's own. */
	return kill(p->pid, signo);
}

void proc_gone(struct proc *p)
{
	fd_close(&p->pidfd);
	p->pid = -1;
}
