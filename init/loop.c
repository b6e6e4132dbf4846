#include "init/loop.h"

#include "base/log.h"
#include "init/sig.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* When ppoll itself fails (out of kernel memory) the loop goes on looking at this pace. */
#define TROUBLE_PAUSE_MS 50

int loop_init(struct loop *l, struct err *e)
{
	memset(l, 0, sizeof *l);
	for (int i = 0; i < LOOP_FDS_MAX; i++)
		l->fds[i] = -1;
	l->sigfd = sig_open(e);
	return l->sigfd < 0 ? -1 : 0;
}

/* NULL for "never", else *t filled. */
static const struct timespec *timeout(struct deadline d, struct timespec *t)
{
	int64_t ms = deadline_left_ms(d);

	if (ms == INT64_MAX)
		return NULL;
	t->tv_sec = (time_t)(ms / 1000);
	t->tv_nsec = (long)(ms % 1000) * 1000000;
	return t;
}

/* Without a signalfd: takes the next signal straight from the kernel. */
static void wait_signal(struct loop *l, const struct timespec *t)
{
	uint64_t all = UINT64_MAX; /* what is not blocked is not waited for either */
	siginfo_t si;
	long signo = syscall(SYS_rt_sigtimedwait, &all, &si, t, sizeof all);

	if (signo <= 0)
		return;
	l->queue[0] = (struct signalfd_siginfo){
		.ssi_signo = (uint32_t)signo,
		.ssi_code = si.si_code,
		.ssi_pid = (uint32_t)si.si_pid,
		.ssi_uid = si.si_uid,
	};
	l->queued = 1;
	l->next = 0;
	l->drained = false;
}

static void trouble(struct loop *l, struct deadline d)
{
	struct timespec t;

	if (!l->told)
		log_error("wait_failed",
			  "cannot wait for signals and children (errno %d): "
			  "looking every %d ms instead",
			  errno, TROUBLE_PAUSE_MS);
	l->told = true;
	if (timeout(deadline_min(d, deadline_in(TROUBLE_PAUSE_MS)), &t) != NULL)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	for (int i = 0; i < LOOP_FDS_MAX; i++)
		l->ready[i] = l->fds[i] >= 0;
}

void loop_wait(struct loop *l, struct deadline d)
{
	struct pollfd p[1 + LOOP_FDS_MAX];
	struct timespec t;
	const struct timespec *to;
	nfds_t n = 1;

	if (l->more || l->next < l->queued)
		d = deadline_in(0);
	to = timeout(d, &t);
	if (l->sigfd < 0) {
		if (l->next == l->queued)
			wait_signal(l, to);
		return;
	}
	p[0] = (struct pollfd){l->sigfd, POLLIN, 0};
	for (int i = 0; i < LOOP_FDS_MAX; i++) {
		p[1 + i] = (struct pollfd){l->fds[i], POLLIN, 0};
		l->ready[i] = false;
		if (l->fds[i] >= 0)
			n = (nfds_t)i + 2;
	}
	if (ppoll(p, n, to, NULL) < 0) {
		if (errno != EINTR)
			trouble(l, d);
		return;
	}
	for (nfds_t i = 1; i < n; i++)
		l->ready[i - 1] = l->fds[i - 1] >= 0 && p[i].revents != 0;
}

bool loop_signal(struct loop *l, struct signalfd_siginfo *si)
{
	if (l->next == l->queued) {
		ssize_t r = 0;

		if (!l->drained && l->sigfd >= 0)
			r = read(l->sigfd, l->queue, sizeof l->queue);
		else if (!l->drained)
			wait_signal(l, &(struct timespec){0, 0});
		if (l->sigfd >= 0) {
			l->queued = r > 0 ? (unsigned)((size_t)r / sizeof l->queue[0]) : 0;
			l->next = 0;
			l->drained = l->queued < LOOP_QUEUE_MAX;
		}
		if (l->next == l->queued) {
			l->drained = false; /* the next round looks again */
			return false;
		}
	}
	*si = l->queue[l->next++];
	return true;
}

bool loop_reap(struct loop *l, pid_t *pid, int *status)
{
	pid_t r;

	if (l->reaped == LOOP_REAP_BATCH) {
		l->reaped = 0;
		l->more = true;
		return false;
	}
	do
		r = waitpid(-1, status, WNOHANG | __WALL);
	while (r < 0 && errno == EINTR);
	if (r <= 0) {
		l->reaped = 0;
		l->more = false;
		return false;
	}
	l->reaped++;
	*pid = r;
	return true;
}

bool loop_reap_more(const struct loop *l)
{
	return l->more;
}

bool loop_has_children(void)
{
	siginfo_t si;
	int r;

	memset(&si, 0, sizeof si);
	do
		r = waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL);
	while (r < 0 && errno == EINTR);
	return r == 0;
}

int loop_status_code(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return XC_SIGNAL + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}
