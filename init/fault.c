#include "init/fault.h"

#include "base/exitcode.h"
#include "init/registrar.h"
#include "init/sig.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 32768

/* Read by the handler, written only by the thread it interrupts: a lock-free exchange of one word
 * (the socket) and a text that is complete before `armed_words` says so. */
static struct {
	volatile sig_atomic_t sock;
	volatile sig_atomic_t armed_words;
	char words[512];
} last = {.sock = -1};

static _Alignas(16) unsigned char stack[STACK_BYTES];

static size_t append(char *dst, size_t at, size_t size, const char *s)
{
	while (*s != 0 && at + 1 < size)
		dst[at++] = *s++;
	dst[at] = 0;
	return at;
}

static size_t append_number(char *dst, size_t at, size_t size, uint64_t v, unsigned base)
{
	char digits[24];
	size_t n = sizeof digits;

	digits[--n] = 0;
	do {
		digits[--n] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v > 0);
	return append(dst, at, size, digits + n);
}

/* The log's formatter is out of bounds here: it may be what faulted. Never blocks on a pipe. */
static void say(const char *text, size_t n)
{
	union {
		const char *in;
		void *out;
	} p = {text}; /* writev does not write to it */
	struct iovec v = {p.out, n};

	if (pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT) < 0) {
		struct pollfd f = {STDERR_FILENO, POLLOUT, 0};
		if ((errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) &&
		    poll(&f, 1, 0) == 1)
			(void)!write(STDERR_FILENO, text, n);
	}
}

static void tell(int signo, const siginfo_t *si)
{
	char line[192];
	size_t n = append(line, 0, sizeof line, "init: error: ");

	if (si->si_code > 0) {
		n = append(line, n, sizeof line, "a bug in init: signal ");
		n = append_number(line, n, sizeof line, (uint64_t)signo, 10);
		n = append(line, n, sizeof line, " at address 0x");
		n = append_number(line, n, sizeof line, (uint64_t)(uintptr_t)si->si_addr, 16);
	} else {
		n = append(line, n, sizeof line, "fault signal ");
		n = append_number(line, n, sizeof line, (uint64_t)signo, 10);
		n = append(line, n, sizeof line, " was sent to init, it claims by pid ");
		n = append_number(line, n, sizeof line, (uint64_t)si->si_pid, 10);
	}
	n = append(line, n, sizeof line, last.armed_words ? ": removing the registration\n" : "\n");
	say(line, n);
}

static int64_t now_ms(void)
{
	struct timespec t = {0, 0};

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True when the registrar said that the registration is gone. */
static bool removed(void)
{
	static const char command = REG_PANIC;
	int sock = (int)last.sock;
	int64_t end = now_ms() + FAULT_WAIT_MS, left;

	if (sock < 0 || send(sock, &command, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		return false;
	while ((left = end - now_ms()) > 0) {
		struct pollfd p = {sock, POLLIN, 0};
		enum reg_report_kind kind; /* each report begins with it; the rest is cut off */
		ssize_t r;

		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return false;
		r = recv(sock, &kind, sizeof kind, MSG_DONTWAIT);
		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (r < (ssize_t)sizeof kind)
			return false; /* the registrar is gone */
		if (kind == REG_REMOVED)
			return true;
		if (kind == REG_NOT_REMOVED)
			return false;
	}
	return false;
}

static void on_fault(int signo, siginfo_t *si, void *context)
{
	(void)context;
	tell(signo, si);
	if (last.armed_words) {
		if (removed())
			say("init: warn: deregistered after a fault of init\n", 47);
		else
			say(last.words, strlen(last.words));
	}
	_exit(XC_SIGNAL + signo);
}

void fault_arm(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
	stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction a;

	(void)sigaltstack(&own, NULL);
	memset(&a, 0, sizeof a);
	a.sa_sigaction = on_fault;
	/* A second fault inside the handler is left to the kernel: the process then just dies. */
	a.sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND;
	(void)sigfillset(&a.sa_mask);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)sigdelset(&a.sa_mask, faults[i]);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)sigaction(faults[i], &a, NULL);
	/* musl's sigaction unblocks 33 and 34 before the first handler, and PID 1 would be deaf to
	 * them: a default disposition is nothing to it. */
	sig_block_all();
}

void fault_registrar(int sock)
{
	last.sock = sock;
}

void fault_last_words(const char *text)
{
	size_t n;

	last.armed_words = 0;
	if (text == NULL || text[0] == 0)
		return;
	n = append(last.words, 0, sizeof last.words - 1, text);
	last.words[n] = '\n';
	last.words[n + 1] = 0;
	last.armed_words = 1;
}
