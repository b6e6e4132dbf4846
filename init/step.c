#include "init/step.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct task {
	step_work *work;
	void *arg, *report;
	size_t size;
	int fd;
};

static int run_task(void *arg)
{
	struct task *t = arg;
	const unsigned char *p = t->report;
	size_t left = t->size;

	t->work(t->arg, t->report);
	while (left > 0) {
		ssize_t n = write(t->fd, p, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return XC_SYSTEM;
		p += n;
		left -= (size_t)n;
	}
	return 0;
}

int step_start(struct step *s, step_work *work, void *arg, void *report, size_t size,
	       struct deadline due, struct err *e)
{
	int ends[2];
	struct task t = {work, arg, report, size, -1};

	step_drop(s);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set(e, XC_SYSTEM, errno, "cannot make a pipe");
	t.fd = ends[1];
	/* Ours alone: the child writes to its own end, blocking. */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
	    spawn_fn(run_task, &t, &t.fd, 1, false, &s->proc, e) != 0) {
		int saved = errno;

		fd_close(&ends[0]);
		fd_close(&ends[1]);
		return e->code != 0 ? -1 : err_set(e, XC_SYSTEM, saved, "cannot start a child");
	}
	fd_close(&ends[1]);
	s->fd = ends[0];
	s->report = report;
	s->size = size;
	s->got = 0;
	s->due = due;
	s->state = STEP_RUNNING;
	return 0;
}

/* The child is on its way out, or killed: from here it is an orphan like any other to the reaper.
 */
static enum step_state over(struct step *s, enum step_state how)
{
	fd_close(&s->fd);
	proc_gone(&s->proc);
	s->state = STEP_NONE;
	s->due = DEADLINE_NEVER;
	return how;
}

enum step_state step_poll(struct step *s)
{
	if (s->state != STEP_RUNNING)
		return STEP_NONE;
	for (;;) {
		ssize_t n = read(s->fd, (unsigned char *)s->report + s->got, s->size - s->got);

		if (n > 0)
			s->got += (size_t)n;
		if (s->got == s->size)
			return over(s, STEP_DONE);
		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		return over(s, STEP_BROKEN);
	}
	if (!deadline_passed(s->due))
		return STEP_RUNNING;
	step_drop(s);
	return STEP_BROKEN;
}

void step_drop(struct step *s)
{
	if (s->state == STEP_RUNNING)
		(void)proc_kill(&s->proc, SIGKILL);
	(void)over(s, STEP_NONE);
}
