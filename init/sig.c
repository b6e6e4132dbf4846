#include "init/sig.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own numbers. The C libraries keep 32 and 33 (glibc) or 32 to 34 (musl) for
 * themselves and silently leave them out of sets and refuse them in sigaction, so everything here
 * talks to the kernel directly. */
#define SIGNALS	   64
#define RT_FIRST   32 /* the kernel's first real-time signal */
#define RT_NAMED   34 /* what docker, podman and the shells call SIGRTMIN */
#define BIT(signo) (UINT64_C(1) << ((signo)-1))

/* Raised by the kernel when PID 1 itself does something wrong. Blocking them would turn the fault
 * into an instant, silent kill. */
#define FAULTS                                                                                     \
	(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS) |     \
	 BIT(SIGABRT))

static void set_mask(uint64_t mask)
{
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

/* struct sigaction as the kernel has it, zeroed: the default disposition, no flags. Its largest
 * layout (x86-64 and arm64) is four words. */
static void set_default(int signo)
{
	static const unsigned long dfl[4] = {0, 0, 0, 0};

	(void)syscall(SYS_rt_sigaction, signo, dfl, NULL, sizeof(uint64_t));
}

void sig_block_all(void)
{
	set_mask(~FAULTS);
	set_default(SIGCHLD);
	sig_ignore_writes();
}

void sig_ignore_writes(void)
{
	struct sigaction ign;

	memset(&ign, 0, sizeof ign);
	ign.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &ign, NULL);
	(void)sigaction(SIGXFSZ, &ign, NULL);
}

int sig_open(struct err *e)
{
	uint64_t mask = ~FAULTS;
	long fd = syscall(SYS_signalfd4, -1, &mask, sizeof mask, SFD_NONBLOCK | SFD_CLOEXEC);

	if (fd < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot make a signalfd (limits on files?)");
	return (int)fd;
}

void sig_reset_child(void)
{
	for (int signo = 1; signo <= SIGNALS; signo++)
		if (signo != SIGKILL && signo != SIGSTOP)
			set_default(signo);
	set_mask(0);
}

void sig_reset_deaf(void)
{
	uint64_t mask = 0;

	sig_reset_child();
	for (int signo = 1; signo <= SIGNALS; signo++)
		if (sig_is_stop(signo))
			mask |= BIT(signo);
	set_mask(mask);
}

bool sig_is_stop(int signo)
{
	static const uint64_t stops = BIT(SIGTERM) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGHUP) |
				      BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGALRM) | BIT(SIGVTALRM) |
				      BIT(SIGPROF) | BIT(SIGIO) | BIT(SIGPWR) | BIT(SIGSTKFLT);

	if (signo < 1 || signo > SIGNALS)
		return false;
	return signo >= RT_FIRST || (stops & BIT(signo)) != 0;
}

bool sig_is_forwarded(int signo)
{
	static const uint64_t ours =
		BIT(SIGCHLD) | BIT(SIGPIPE) | BIT(SIGXFSZ) | BIT(SIGKILL) | BIT(SIGSTOP) | FAULTS;

	return signo >= 1 && signo <= SIGNALS && (ours & BIT(signo)) == 0;
}

static const char *const names[RT_FIRST] = {
	[SIGHUP] = "SIGHUP",	   [SIGINT] = "SIGINT",	      [SIGQUIT] = "SIGQUIT",
	[SIGILL] = "SIGILL",	   [SIGTRAP] = "SIGTRAP",     [SIGABRT] = "SIGABRT",
	[SIGBUS] = "SIGBUS",	   [SIGFPE] = "SIGFPE",	      [SIGKILL] = "SIGKILL",
	[SIGUSR1] = "SIGUSR1",	   [SIGSEGV] = "SIGSEGV",     [SIGUSR2] = "SIGUSR2",
	[SIGPIPE] = "SIGPIPE",	   [SIGALRM] = "SIGALRM",     [SIGTERM] = "SIGTERM",
	[SIGSTKFLT] = "SIGSTKFLT", [SIGCHLD] = "SIGCHLD",     [SIGCONT] = "SIGCONT",
	[SIGSTOP] = "SIGSTOP",	   [SIGTSTP] = "SIGTSTP",     [SIGTTIN] = "SIGTTIN",
	[SIGTTOU] = "SIGTTOU",	   [SIGURG] = "SIGURG",	      [SIGXCPU] = "SIGXCPU",
	[SIGXFSZ] = "SIGXFSZ",	   [SIGVTALRM] = "SIGVTALRM", [SIGPROF] = "SIGPROF",
	[SIGWINCH] = "SIGWINCH",   [SIGIO] = "SIGIO",	      [SIGPWR] = "SIGPWR",
	[SIGSYS] = "SIGSYS",
};

const char *sig_name(int signo, char *dst, size_t size)
{
	if (signo > 0 && signo < RT_FIRST)
		return names[signo];
	if (signo == RT_NAMED)
		return "SIGRTMIN";
	if (signo > RT_NAMED && signo <= SIGNALS)
		(void)str_fmt(dst, size, "SIGRTMIN+%d", signo - RT_NAMED);
	else
		(void)str_fmt(dst, size, "signal %d", signo);
	return dst;
}

/* The command name of a process; false when it cannot be read. */
static bool comm_of(uint32_t pid, char *dst, size_t size)
{
	char path[32];
	ssize_t n;
	int fd;

	if (str_fmt(path, sizeof path, "/proc/%u/comm", (unsigned)pid) < 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, dst, size - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	dst[n] = 0;
	if (dst[n - 1] == '\n')
		dst[n - 1] = 0;
	return true;
}

void sig_origin(const struct signalfd_siginfo *si, char *dst, size_t size)
{
	char raw[32], comm[64];

	if (si->ssi_code == SI_KERNEL) {
		(void)str_copy(dst, size, "from the kernel or terminal");
		return;
	}
	if (si->ssi_pid == 0) {
		(void)str_copy(dst, size, "from outside the container");
		return;
	}
	if (!comm_of(si->ssi_pid, raw, sizeof raw)) {
		(void)str_fmt(dst, size, "claims pid %u (gone)", (unsigned)si->ssi_pid);
		return;
	}
	str_show(comm, sizeof comm, raw, strlen(raw));
	(void)str_fmt(dst, size, "claims pid %u (%s)", (unsigned)si->ssi_pid, comm);
}
