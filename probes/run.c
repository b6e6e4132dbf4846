/*
 * Runs groups of checks side by side and always comes back.
 *
 * Every group is a forked child that answers in fixed-size records, each written whole (they are
 * smaller than PIPE_BUF). What a group starts ends by the group's deadline (child_run); the group
 * itself, which may hang in an open() or a statfs() that the kernel never finishes, is killed
 * GRACE_MS later and, if it does not die, left to its fate: nobody waits for it.
 */
#include "base/cleanup.h"
#include "base/str.h"
#include "probes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 800 /* over the 500 ms that child_run takes for killing */

enum record_kind { REC_FINDING, REC_BEGIN, REC_FACTS };

struct record {
	int kind; /* enum record_kind */
	int check;
	union {
		struct finding finding;
		struct facts facts;
	} u;
};
_Static_assert(sizeof(struct record) <= PIPE_BUF, "a record is written whole or not at all");

enum phase { PH_WAITING, PH_RUNNING, PH_DONE };

struct work {
	enum phase phase;
	bool any; /* a wanted check is in it */
	pid_t pid;
	int fd;
	struct deadline inner, outer;
	int begun; /* check that was announced and not yet answered for; -1 none */
};

struct pool {
	struct run *r;
	struct work w[GROUP__MAX];
	bool done[CHECK__MAX];
	struct deadline budget;
};

/* ---- the group's side ---- */

void text_cut(char *dst, size_t size, const char *src)
{
	str_show(dst, size, src, strlen(src));
}

static void send_record(struct ctx *c, const struct record *rec)
{
	while (write(c->fd, rec, sizeof *rec) < 0 && errno == EINTR)
		;
}

void say_begin(struct ctx *c, enum check_id id)
{
	struct record rec;

	memset(&rec, 0, sizeof rec);
	rec.kind = REC_BEGIN;
	rec.check = id;
	c->start_ms = clock_mono_ms();
	send_record(c, &rec);
}

void say_facts(struct ctx *c)
{
	struct record rec;

	memset(&rec, 0, sizeof rec);
	rec.kind = REC_FACTS;
	rec.u.facts = c->facts;
	send_record(c, &rec);
}

static void fill(struct finding *f, enum check_id id, enum verdict v, enum action a,
		 const char *remedy, const char *detail)
{
	bool bad = v == V_FAIL || v == V_WARN;

	f->verdict = v;
	f->action = v == V_FAIL ? a : ACT_NONE;
	text_cut(f->detail, sizeof f->detail, detail);
	text_cut(f->remedy, sizeof f->remedy,
		 remedy != NULL ? remedy : (bad ? probe_checks[id].remedy : ""));
}

void say(struct ctx *c, enum check_id id, enum verdict v, enum action a, const char *remedy,
	 const char *fmt, ...)
{
	char text[2 * DETAIL_MAX];
	struct record rec;
	va_list ap;

	if (!c->wanted[id])
		return;
	memset(&rec, 0, sizeof rec);
	va_start(ap, fmt);
	(void)!vsnprintf(text, sizeof text, fmt, ap); /* cut again below, with dots */
	va_end(ap);
	rec.kind = REC_FINDING;
	rec.check = id;
	rec.u.finding.ms = clock_mono_ms() - c->start_ms;
	fill(&rec.u.finding, id, v, a, remedy, text);
	send_record(c, &rec);
}

static int weight(enum verdict v)
{
	static const int w[V__MAX] = {
		[V_PASS] = 1, [V_WARN] = 3, [V_FAIL] = 4, [V_SKIP] = 0, [V_UNKNOWN] = 2};

	return w[v];
}

void tally_add(struct tally *t, enum verdict v, enum action a, const char *remedy, const char *fmt,
	       ...)
{
	size_t used;
	va_list ap;

	if (weight(v) < weight(t->verdict))
		return;
	if (weight(v) > weight(t->verdict)) {
		*t = (struct tally)TALLY_INIT;
		t->verdict = v;
		t->action = a;
		t->remedy = remedy;
	}
	used = strlen(t->text);
	if (used > 0 && used + 3 < sizeof t->text) {
		memcpy(t->text + used, "; ", 3);
		used += 2;
	}
	va_start(ap, fmt);
	(void)!vsnprintf(t->text + used, sizeof t->text - used, fmt, ap);
	va_end(ap);
}

void tally_say(struct ctx *c, enum check_id id, const struct tally *t)
{
	say(c, id, t->verdict, t->action == ACT_NONE ? probe_checks[id].action : t->action,
	    t->remedy, "%s", t->text);
}

static _Noreturn void group_main(struct pool *p, enum group_id g, int fd)
{
	struct ctx c;

	memset(&c, 0, sizeof c);
	c.s = p->r->s;
	c.wanted = p->r->wanted;
	c.deadline = p->w[g].inner;
	c.start_ms = clock_mono_ms();
	c.fd = fd;
	for (int i = 0; i < GROUP__MAX; i++)
		if (i != (int)g && p->w[i].fd >= 0)
			(void)close(p->w[i].fd);
	(void)setpgid(0, 0); /* a signal to the caller's group is the caller's matter */
	if (child_become(c.s->uid, c.s->gid) < 0) {
		int why = errno;
		for (int i = 0; i < CHECK__MAX; i++)
			if (probe_checks[i].group == g)
				say(&c, (enum check_id)i, V_UNKNOWN, ACT_NONE,
				    "look at RUNNER_USER", "cannot become uid %u: %s",
				    (unsigned)c.s->uid, strerror(why));
		_exit(0);
	}
	probe_groups[g].run(&c);
	_exit(0);
}

/* ---- the caller's side ---- */

static void settle(struct pool *p, int id, const struct finding *f)
{
	if (p->done[id] || !p->r->wanted[id])
		return;
	p->done[id] = true;
	p->r->found[id] = *f;
}

static void settle_text(struct pool *p, int id, enum verdict v, enum action a, int64_t ms,
			const char *text)
{
	struct finding f;

	memset(&f, 0, sizeof f);
	fill(&f, (enum check_id)id, v, a, NULL, text);
	f.ms = ms;
	settle(p, id, &f);
}

/* It never ran, which says nothing about what it would have found. */
static void settle_unrun(struct pool *p, enum group_id g, const char *why)
{
	for (int i = 0; i < CHECK__MAX; i++)
		if (probe_checks[i].group == g)
			settle_text(p, i, V_UNKNOWN, ACT_NONE, 0, why);
	p->w[g].phase = PH_DONE;
}

/* The child is gone or given up: whatever it did not answer for is judged here. The check under way
 * (else the first one open) failed; the rest was not reached and stays unknown. */
static void settle_rest(struct pool *p, enum group_id g, const char *how, int64_t ms)
{
	struct work *w = &p->w[g];
	int guilty = w->begun;
	char text[DETAIL_MAX];

	for (int i = 0; i < CHECK__MAX && guilty < 0; i++)
		if (probe_checks[i].group == g && p->r->wanted[i] && !p->done[i])
			guilty = i;
	for (int i = 0; i < CHECK__MAX; i++) {
		const struct check *k = &probe_checks[i];
		if (k->group != g || !p->r->wanted[i] || p->done[i])
			continue;
		if (i == guilty) {
			settle_text(p, i, V_FAIL, k->gpu ? ACT_REBOOT : k->action, ms, how);
			continue;
		}
		if (str_fmt(text, sizeof text, "not reached: %s %s", probe_checks[guilty].id, how) <
		    0)
			text_cut(text, sizeof text, "not reached");
		settle_text(p, i, V_UNKNOWN, ACT_NONE, 0, text);
	}
	fd_close(&w->fd);
	w->phase = PH_DONE;
}

static int start(struct pool *p, enum group_id g)
{
	struct work *w = &p->w[g];
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	w->inner = deadline_min(deadline_in(probe_groups[g].budget_ms), p->budget);
	w->outer = (struct deadline){w->inner.at_ms + GRACE_MS};
	w->begun = -1;
	w->pid = fork();
	if (w->pid < 0) {
		int saved = errno;
		(void)close(fds[0]);
		(void)close(fds[1]);
		errno = saved;
		return -1;
	}
	if (w->pid == 0) {
		(void)close(fds[0]);
		group_main(p, g, fds[1]);
	}
	(void)close(fds[1]);
	w->fd = fds[0];
	(void)fcntl(w->fd, F_SETFL, O_NONBLOCK);
	w->phase = PH_RUNNING;
	return 0;
}

static void ended(struct pool *p, enum group_id g)
{
	struct work *w = &p->w[g];
	char how[128];
	int st = 0;
	pid_t got;

	/* The pipe closed: the child is exiting. It has nothing left to hang in, but a bound is
	 * kept. */
	for (int i = 0; (got = waitpid(w->pid, &st, WNOHANG)) == 0 && i < 200; i++)
		(void)poll(NULL, 0, 1);
	if (got == w->pid && WIFSIGNALED(st))
		(void)str_fmt(how, sizeof how, "its process died of signal %d (%s)", WTERMSIG(st),
			      strsignal(WTERMSIG(st)));
	else
		(void)str_copy(how, sizeof how, "its process ended without an answer");
	settle_rest(p, g, how, clock_mono_ms() - (w->inner.at_ms - probe_groups[g].budget_ms));
}

static void read_records(struct pool *p, enum group_id g)
{
	struct work *w = &p->w[g];
	struct record rec;

	for (;;) {
		ssize_t n = read(w->fd, &rec, sizeof rec);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n != (ssize_t)sizeof rec) {
			ended(p, g);
			return;
		}
		if (rec.kind == REC_FACTS) {
			p->r->facts = rec.u.facts;
			continue;
		}
		if (rec.check < 0 || rec.check >= CHECK__MAX)
			continue;
		if (rec.kind == REC_BEGIN) {
			w->begun = rec.check;
			continue;
		}
		if (w->begun == rec.check)
			w->begun = -1;
		settle(p, rec.check, &rec.u.finding);
	}
}

static void give_up(struct pool *p, enum group_id g)
{
	struct work *w = &p->w[g];
	char how[160];
	int64_t ms = probe_groups[g].budget_ms + GRACE_MS;
	int st;
	bool died;

	(void)kill(w->pid, SIGKILL);
	for (int i = 0; i < 20 && waitpid(w->pid, &st, WNOHANG) == 0; i++)
		(void)poll(NULL, 0, 5);
	died = kill(w->pid, 0) < 0;
	(void)str_fmt(how, sizeof how,
		      died ? "gave no answer in time and was killed"
			   : "hangs in the kernel and cannot be killed (pid %d left behind)",
		      (int)w->pid);
	settle_rest(p, g, how, ms);
}

static bool heavy_busy(const struct pool *p)
{
	for (int g = 0; g < GROUP__MAX; g++)
		if (probe_groups[g].heavy && p->w[g].phase == PH_RUNNING)
			return true;
	return false;
}

static void start_more(struct pool *p, struct err *e, unsigned *started)
{
	for (int g = 0; g < GROUP__MAX; g++) {
		struct work *w = &p->w[g];
		if (w->phase != PH_WAITING || !w->any || (probe_groups[g].heavy && heavy_busy(p)))
			continue;
		if (deadline_passed(p->budget)) {
			settle_unrun(p, (enum group_id)g, "not run: the time was used up");
		} else if (start(p, (enum group_id)g) < 0) {
			char how[128];
			(void)err_set(e, XC_SYSTEM, errno,
				      "cannot start the checks: look at the pids and memory limits "
				      "of the container");
			(void)str_fmt(how, sizeof how, "could not be started: %s",
				      strerror(e->sys));
			settle_unrun(p, (enum group_id)g, how);
		} else {
			(*started)++;
		}
	}
}

static bool wait_some(struct pool *p)
{
	struct pollfd f[GROUP__MAX];
	struct deadline next = DEADLINE_NEVER;
	bool running = false;

	for (int g = 0; g < GROUP__MAX; g++) {
		bool on = p->w[g].phase == PH_RUNNING;
		f[g] = (struct pollfd){on ? p->w[g].fd : -1, POLLIN, 0};
		running = running || on;
		if (on)
			next = deadline_min(next, p->w[g].outer);
	}
	if (!running)
		return false;
	(void)poll(f, GROUP__MAX, deadline_poll_ms(next));
	for (int g = 0; g < GROUP__MAX; g++) {
		if (p->w[g].phase == PH_RUNNING && f[g].revents != 0)
			read_records(p, (enum group_id)g);
		if (p->w[g].phase == PH_RUNNING && deadline_passed(p->w[g].outer))
			give_up(p, (enum group_id)g);
	}
	return true;
}

/* Where no GPU is expected its checks are answered here, with the reason. */
static void skip_gpu(struct pool *p)
{
	char why[256], text[DETAIL_MAX];

	if (gpu_expected(p->r->s, why, sizeof why))
		return;
	if (str_fmt(text, sizeof text, "no GPU is expected: %s", why) < 0)
		text_cut(text, sizeof text, why);
	for (int i = 0; i < CHECK__MAX; i++)
		if (probe_checks[i].gpu || probe_checks[i].group == G_TORCH)
			settle_text(p, i, V_SKIP, ACT_NONE, 0, text);
}

int run_checks(struct run *r, int64_t budget_ms, struct err *e)
{
	struct pool p;
	struct err first = ERR_INIT;
	int64_t t0 = clock_mono_ms();
	unsigned started = 0, asked = 0;

	memset(&p, 0, sizeof p);
	memset(&r->facts, 0, sizeof r->facts);
	memset(r->found, 0, sizeof r->found);
	r->started_ms = clock_real_ms();
	p.r = r;
	p.budget = deadline_in(budget_ms);
	for (int g = 0; g < GROUP__MAX; g++)
		p.w[g].fd = p.w[g].begun = -1;
	skip_gpu(&p);
	for (int i = 0; i < CHECK__MAX; i++)
		if (r->wanted[i] && !p.done[i]) {
			p.w[probe_checks[i].group].any = true;
			asked++;
		}
	do
		start_more(&p, &first, &started);
	while (wait_some(&p));
	r->ms = clock_mono_ms() - t0;
	if (asked > 0 && started == 0)
		return err_set(e, XC_SYSTEM, 0, "%s",
			       first.code == 0 ? "there was no time to run a check" : first.text);
	return 0;
}
