/*
 * The program that tests of PID 1 run below it: one static binary, many small behaviours. So no
 * test depends on what shells or Python of an image do with signals.
 *
 *	payload ns FD CMD...        CMD as PID 1 of a namespace of its own; tells on descriptor FD
 *	payload exit N | die SIG    ends that way
 *	payload park                waits for ever, default dispositions
 *	payload ignore              waits for ever, ignores all that can be ignored
 *	payload signals LAST        prints "sig N" for each signal, exits 0 after LAST
 *	payload stopped             stops itself
 *	payload status | fds | tty | front | ids | env | args A...   tells what it was given
 *	payload slow FILE           its child needs 0.5 s after SIGTERM to write CLEANED to FILE
 *	payload escapee FILE        its grandchild left the session and ignores SIGTERM; pid in FILE
 *	payload orphans N           N double forks one after the other
 *	payload parked N            N orphans that end when standard input does
 *	payload rabbit              forks and ends, for ever: never twice under one pid
 *	payload twins               two children end together, one of them the parent of the other
 *	payload regroup             moves to a group of its own, then waits
 *	payload stopped-child       has a stopped child of its own
 *	payload rooted              becomes root (a set-uid copy), then as `ignore`
 *	payload refuse CMD...       CMD where pwritev2 fails as on an old kernel
 *	payload preset I B CMD...   CMD with the signals I ignored and B blocked (comma lists, or -)
 *	payload weird CMD...        CMD with an environment that no shell would make
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, int n)
{
	char line[64];
	int k = snprintf(line, sizeof line, "%s %d\n", what, n);

	if (k > 0 && (size_t)k < sizeof line)
		(void)!write(STDOUT_FILENO, line, (size_t)k);
}

static void doze(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void dispose(int signo, void (*how)(int))
{
	struct sigaction a;

	memset(&a, 0, sizeof a);
	a.sa_handler = how;
	(void)sigaction(signo, &a, NULL);
}

static int number(const char *s)
{
	return (int)strtol(s, NULL, 10);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	(void)close(fd);
}

_Noreturn static int park(void)
{
	for (;;)
		(void)pause();
}

/* ---- ns ---- */

struct in_ns {
	char **argv;
	int go;	  /* read end: the parent mapped the ids and told the pid */
	int tell; /* not for CMD */
};

static int enter_ns(void *arg)
{
	struct in_ns *in = arg;
	char c;

	(void)!read(in->go, &c, 1);
	(void)mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	(void)mount("proc", "/proc", "proc", 0, NULL);
	if (getenv("PAYLOAD_NO_PROC") != NULL)
		(void)mount("none", "/proc", "tmpfs", 0, NULL);
	(void)close(in->tell);
	(void)close(in->go);
	(void)execvp(in->argv[0], in->argv);
	return 126;
}

static void map_ids(pid_t pid)
{
	char path[64], line[64];

	(void)snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
	put(path, "deny");
	(void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
	(void)snprintf(line, sizeof line, "0 %u 1", (unsigned)geteuid());
	put(path, line);
	(void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
	(void)snprintf(line, sizeof line, "0 %u 1", (unsigned)getegid());
	put(path, line);
}

/* Tells "pid N" (as seen from outside) at once and "exit N" or "signal N" at the end. */
static int ns(int tell, char **argv)
{
	static _Alignas(16) char stack[65536];
	int pipe_fds[2], status, flags = CLONE_NEWPID | CLONE_NEWNS | SIGCHLD;
	struct in_ns in = {argv, -1, tell};
	pid_t pid;

	if (pipe2(pipe_fds, 0) < 0)
		return 125;
	in.go = pipe_fds[0];
	if (geteuid() != 0)
		flags |= CLONE_NEWUSER;
	(void)fcntl(pipe_fds[1], F_SETFD, FD_CLOEXEC);
	pid = clone(enter_ns, stack + sizeof stack, flags, &in);
	if (pid < 0) {
		(void)fprintf(stderr, "payload: no namespace (%s)\n", strerror(errno));
		return 125;
	}
	if (geteuid() != 0)
		map_ids(pid);
	(void)dprintf(tell, "pid %d\n", (int)pid);
	(void)!write(pipe_fds[1], "", 1);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status)) {
		(void)dprintf(tell, "signal %d\n", WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	(void)dprintf(tell, "exit %d\n", WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

/* ---- signals ---- */

static int die(int signo)
{
	sigset_t none;

	if (signo > 0 && signo < 32)
		dispose(signo, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)syscall(SYS_kill, getpid(), signo);
	return park();
}

static int ignore(void)
{
	for (int s = 1; s < 65; s++)
		if (s != SIGKILL && s != SIGSTOP && s != SIGCHLD && s != SIGCONT)
			dispose(s, SIG_IGN);
	say("ready", getpid());
	return park();
}

static int signals(int last)
{
	uint64_t all = UINT64_MAX;

	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
	say("ready", getpid());
	for (;;) {
		siginfo_t si;
		long s = syscall(SYS_rt_sigtimedwait, &all, &si, NULL, sizeof all);
		if (s <= 0)
			continue;
		say("sig", (int)s);
		if (s == last)
			return 0;
	}
}

static int preset(char **argv)
{
	uint64_t mask = 0;
	char *rest = NULL;

	for (char *p = strtok_r(argv[0], ",", &rest); p != NULL; p = strtok_r(NULL, ",", &rest))
		if (*p != '-')
			dispose(number(p), SIG_IGN);
	for (char *p = strtok_r(argv[1], ",", &rest); p != NULL; p = strtok_r(NULL, ",", &rest))
		if (*p != '-')
			mask |= UINT64_C(1) << (number(p) - 1);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
	(void)execvp(argv[2], argv + 2);
	return 126;
}

/* ---- what it was given ---- */

static int status(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	if (f == NULL)
		return 1;
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "Sig", 3) == 0 || strncmp(line, "ShdPnd", 6) == 0)
			(void)fputs(line, stdout);
	(void)fclose(f);
	return 0;
}

static int fds(void)
{
	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			(void)printf("%d ", fd);
	(void)printf("\n");
	return 0;
}

static int tty(void)
{
	struct termios t;
	int set = -1;

	if (tcgetattr(0, &t) == 0)
		set = tcsetattr(0, TCSADRAIN, &t);
	(void)printf("isatty %d foreground %d leader %d set %d\n", isatty(0),
		     tcgetpgrp(0) == getpgrp(), getpgrp() == getpid(), set);
	return 0;
}

/* Asks only: a background process that set the terminal would be stopped. */
static int front(void)
{
	(void)printf("foreground %d\n", tcgetpgrp(0) == getpgrp());
	return 0;
}

static int ids(void)
{
	char cwd[1024];
	mode_t mask = umask(0);

	(void)printf("pid %d ppid %d group %d cwd %s umask %03o\n", (int)getpid(), (int)getppid(),
		     (int)getpgrp(), getcwd(cwd, sizeof cwd) != NULL ? cwd : "?", (unsigned)mask);
	return 0;
}

static int list(char **v)
{
	for (; *v != NULL; v++)
		(void)printf("<%s>\n", *v);
	return 0;
}

/* ---- families ---- */

static int slow(const char *file)
{
	if (fork() == 0) {
		uint64_t term = UINT64_C(1) << (SIGTERM - 1);
		siginfo_t si;

		(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &term, NULL, sizeof term);
		say("ready", getpid());
		while (syscall(SYS_rt_sigtimedwait, &term, &si, NULL, sizeof term) != SIGTERM)
			;
		doze(500);
		put(file, "CLEANED");
		_exit(0);
	}
	return park();
}

static int escapee(const char *file)
{
	char pid[32];

	if (fork() == 0) {
		(void)setsid();
		if (fork() > 0)
			_exit(0);
		dispose(SIGTERM, SIG_IGN);
		(void)snprintf(pid, sizeof pid, "%d", (int)getpid());
		put(file, pid);
		say("ready", getpid());
		_exit(park());
	}
	return park();
}

static int orphans(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t p = fork();
		if (p == 0)
			_exit(fork() < 0);
		if (p < 0 || waitpid(p, NULL, 0) != p)
			doze(1);
	}
	say("done", n);
	return 0;
}

static int parked(int n)
{
	pid_t maker = fork();

	if (maker == 0) {
		for (int i = 0; i < n; i++) {
			pid_t p = fork();
			if (p == 0) {
				char c;
				(void)!read(STDIN_FILENO, &c, 1);
				_exit(0);
			}
			if (p < 0)
				_exit(1);
		}
		_exit(0);
	}
	if (waitpid(maker, NULL, 0) != maker)
		return 1;
	(void)close(STDIN_FILENO);
	say("ready", n);
	return park();
}

static int rabbit(void)
{
	dispose(SIGTERM, SIG_IGN);
	if (fork() == 0) {
		say("ready", getpid());
		for (;;)
			if (fork() != 0)
				_exit(0);
	}
	return park();
}

static int twins(void)
{
	if (fork() == 0) {
		doze(2);
		_exit(0);
	}
	doze(1);
	(void)kill(getpid(), SIGKILL);
	return 0;
}

static int regroup(void)
{
	/* A session's second group: its leader stays behind as a zombie for a moment. */
	pid_t other = fork();

	if (other == 0) {
		(void)setpgid(0, 0);
		_exit(park());
	}
	while (setpgid(0, other) < 0)
		doze(1);
	say("ready", getpid());
	return park();
}

static int stopped_child(void)
{
	pid_t p = fork();

	if (p == 0) {
		(void)kill(getpid(), SIGSTOP);
		_exit(park());
	}
	(void)waitpid(p, NULL, WUNTRACED);
	say("ready", getpid());
	return park();
}

static int weird(char **argv)
{
	static char text[][24] = {"PATH=/usr/bin:/bin", "NOEQUALS", "A=1", "A=2", "EMPTY=", "=odd",
				  "RUNNER_TOKEN=x"};
	char *env[sizeof text / sizeof text[0] + 1] = {NULL};

	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
		env[i] = text[i];
	(void)execvpe(argv[0], argv, env);
	return 126;
}

static int rooted(void)
{
	if (setgid(0) < 0 || setuid(0) < 0)
		return 1;
	return ignore();
}

/* ---- refusal ---- */

/* pwritev2 fails as on a kernel, or a file, that does not know RWF_NOWAIT. */
static int refuse(char **argv)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof f / sizeof f[0], f};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0)
		return 125;
	(void)execvp(argv[0], argv);
	return 126;
}

static int with_argument(const char *what, char **v)
{
	if (strcmp(what, "ns") == 0)
		return ns(number(v[0]), v + 1);
	if (strcmp(what, "exit") == 0)
		return number(v[0]);
	if (strcmp(what, "die") == 0)
		return die(number(v[0]));
	if (strcmp(what, "signals") == 0)
		return signals(number(v[0]));
	if (strcmp(what, "preset") == 0)
		return preset(v);
	if (strcmp(what, "args") == 0)
		return list(v);
	if (strcmp(what, "slow") == 0)
		return slow(v[0]);
	if (strcmp(what, "escapee") == 0)
		return escapee(v[0]);
	if (strcmp(what, "orphans") == 0)
		return orphans(number(v[0]));
	if (strcmp(what, "parked") == 0)
		return parked(number(v[0]));
	if (strcmp(what, "refuse") == 0)
		return refuse(v);
	if (strcmp(what, "weird") == 0)
		return weird(v);
	return 64;
}

int main(int argc, char **argv, char **envp)
{
	static const struct {
		const char *name;
		int (*fn)(void);
	} plain[] = {{"ignore", ignore},   {"status", status},
		     {"fds", fds},	   {"tty", tty},
		     {"front", front},	   {"ids", ids},
		     {"rabbit", rabbit},   {"twins", twins},
		     {"regroup", regroup}, {"stopped-child", stopped_child},
		     {"rooted", rooted}};
	const char *what = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		if (strcmp(what, plain[i].name) == 0)
			return plain[i].fn();
	if (strcmp(what, "env") == 0)
		return list(envp);
	if (strcmp(what, "park") == 0 || strcmp(what, "stopped") == 0) {
		say("ready", getpid());
		if (what[0] == 's')
			(void)kill(getpid(), SIGSTOP);
		return park();
	}
	return argc > 2 ? with_argument(what, argv + 2) : 64;
}
