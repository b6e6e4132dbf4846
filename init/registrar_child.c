/*
 * Inside the registrar process: reads orders, works on them, reports. Everything may block here up
 * to the order's deadline; while registering, the socket itself is the cancel descriptor, so that
 * an order to finish (or PID 1's death) ends every wait at once.
 */
#include "base/log.h"
#include "base/str.h"
#include "init/registrar.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* PID 1 is gone or faulty: nobody enforces a budget, so the removal has one of its own. */
#define ALONE_MS      5000
/* Between two tries at a runner that GitHub still counts as busy. */
#define BUSY_PAUSE_MS 500
/* Ending a killed agent's session is a favour to the next start: it may cost this much at most. */
#define SESSION_MS    1500

struct worker {
	int sock;
	struct gh_settings settings; /* a copy: labels and version are added */
	struct gh *gh;		     /* NULL: could not be opened yet */
	struct reg_order order;
	struct reg_report report;
	struct gh_runner ours; /* what a panic must remove */
	bool owns;	       /* `ours` may be registered */
};

static int say(struct worker *w, enum reg_report_kind kind, size_t len)
{
	ssize_t n;

	w->report.kind = kind;
	w->report.seq = w->order.seq;
	do
		n = send(w->sock, &w->report, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -1;
}

#define SHORT	   offsetof(struct reg_report, runner)
#define KNOWN_ONLY (SHORT + offsetof(struct gh_runner, files))

static bool told_something(struct worker *w)
{
	struct pollfd p = {w->sock, POLLIN, 0};

	return poll(&p, 1, 0) > 0;
}

/* A failure is not final: the next order tries again. */
static int client(struct worker *w, struct err *e)
{
	if (w->gh == NULL)
		w->gh = gh_open(&w->settings, -1, e);
	return w->gh == NULL ? -1 : 0;
}

/* The client names the agent's version in every request: one that was opened without it is opened
 * again. */
static void take_wish(struct worker *w)
{
	struct reg_wish *wish = &w->order.wish;
	struct gh_settings *s = &w->settings;

	wish->agent_version[sizeof wish->agent_version - 1] = '\0';
	if (wish->agent_version[0] != '\0' && strcmp(wish->agent_version, s->agent_version) != 0) {
		(void)str_copy(s->agent_version, sizeof s->agent_version, wish->agent_version);
		gh_close(w->gh);
		w->gh = NULL;
	}
	for (unsigned i = 0; i < wish->n_labels && i < PROBE_LABELS_MAX; i++) {
		bool known = false;

		wish->labels[i][GH_LABEL_MAX - 1] = '\0';
		for (unsigned k = 0; k < s->n_labels; k++)
			known = known || str_eq_nocase(s->labels[k], wish->labels[i]);
		if (!known && s->n_labels < GH_LABELS_MAX &&
		    str_copy(s->labels[s->n_labels], GH_LABEL_MAX, wish->labels[i]) == 0)
			s->n_labels++;
	}
}

static int about_to_add(void *arg, const struct gh_runner *partial)
{
	struct worker *w = arg;

	if (told_something(w))
		return -1; /* a stop came first: nothing was sent, so nothing need be undone */
	memcpy(&w->report.runner, partial, offsetof(struct gh_runner, files));
	w->report.runner.n_files = 0;
	memcpy(&w->ours, &w->report.runner, offsetof(struct gh_runner, files));
	w->ours.n_files = 0;
	w->owns = true;
	return say(w, REG_ABOUT_TO_ADD, KNOWN_ONLY);
}

static void do_register(struct worker *w)
{
	struct gh_runner *out = &w->report.runner;
	bool unsettled = false;

	take_wish(w);
	memset(&w->report.err, 0, sizeof w->report.err);
	if (client(w, &w->report.err) != 0) {
		w->report.unsettled = false;
		(void)say(w, REG_FAILED, SHORT);
		return;
	}
	gh_set_cancel(w->gh, w->sock);
	if (gh_register(w->gh, w->order.deadline, about_to_add, w, out, &unsettled,
			&w->report.err) == 0) {
		w->ours = *out;
		w->owns = true;
		(void)say(w, REG_REGISTERED, sizeof w->report);
	} else {
		w->report.unsettled = unsettled || out->id != 0;
		w->owns = w->owns && w->report.unsettled;
		if (w->owns && out->id != 0)
			w->ours.id = out->id;
		if (w->owns)
			memcpy(out, &w->ours, offsetof(struct gh_runner, files));
		(void)say(w, REG_FAILED, KNOWN_ONLY);
	}
	gh_set_cancel(w->gh, -1);
}

/* gh_remove repeats what may be repeated, also a refusal because of a job, until its deadline. When
 * the agent was killed within a job, GitHub may hold the runner for ten minutes: a part of the time
 * is then kept to end at least the agent's session, with the agent's own key, so that the next
 * start under this name meets no conflict. The key is in the files of the registration that this
 * very process made; a replacement has none. */
static int remove_within(struct worker *w, const struct gh_runner *r, bool if_idle, bool killed,
			 struct deadline d)
{
	bool session = killed && w->ours.id == r->id && w->ours.n_files > 0;
	struct gh_removal *m = &w->report.removal;
	struct err e = ERR_INIT, ignored = ERR_INIT;
	int rc;

	memset(m, 0, sizeof *m);
	m->what = GH_NOT_REMOVED;
	rc = client(w, &e);
	if (rc == 0)
		rc = gh_remove(w->gh, r, if_idle, session ? deadline_minus(d, SESSION_MS) : d, m,
			       &e);
	if (rc != 0 && m->what == GH_BUSY && session)
		(void)gh_end_session(w->gh, &w->ours, d, &ignored);
	w->report.err = e;
	if (rc == 0 && m->what != GH_BUSY)
		w->owns = false;
	return rc;
}

static void do_remove(struct worker *w, bool if_idle)
{
	int rc;

	rc = remove_within(w, &w->order.runner, if_idle, w->order.killed, w->order.deadline);
	(void)say(w, rc == 0 ? REG_REMOVED : REG_NOT_REMOVED, SHORT);
}

static void do_predecessor(struct worker *w)
{
	take_wish(w);
	w->order.name[sizeof w->order.name - 1] = '\0';
	memset(&w->report.err, 0, sizeof w->report.err);
	w->report.value = -1;
	if (client(w, &w->report.err) == 0) {
		gh_set_cancel(w->gh, w->sock);
		w->report.value = gh_remove_predecessor(w->gh, w->order.id, w->order.name,
							w->order.deadline, &w->report.err);
		gh_set_cancel(w->gh, -1);
	}
	(void)say(w, REG_DONE, SHORT);
}

/* PID 1 is gone, or on its way and waiting for this with a bound of its own. */
static bool alone(struct worker *w)
{
	if (!w->owns)
		return true;
	log_warn("registrar_alone", "init itself failed: removing runner \"%s\"", w->ours.name);
	if (remove_within(w, &w->ours, false, false, deadline_in(ALONE_MS)) != 0) {
		log_error("ghost",
			  "runner \"%s\" (id %llu) may still be registered (%s): remove it at %s",
			  w->ours.name, (unsigned long long)w->ours.id, w->report.err.text,
			  w->ours.settings_url);
		return false;
	}
	log_info("deregistered", "runner \"%s\" (id %llu) deregistered after init failed",
		 w->ours.name, (unsigned long long)w->ours.id);
	return true;
}

/* 1: go on, 0: the end. */
static int serve(struct worker *w, ssize_t n)
{
	if (n < 1 || w->order.command == REG_PANIC) {
		(void)say(w, alone(w) ? REG_REMOVED : REG_NOT_REMOVED, SHORT);
		return 0;
	}
	if (w->order.command == REG_FINISH)
		return 1;	     /* came when there was nothing left to finish */
	w->order.runner.n_files = 0; /* never sent */
	if (w->order.command == REG_KNOW) {
		memcpy(&w->ours, &w->order.runner, offsetof(struct gh_runner, files));
		w->ours.n_files = 0;
		w->owns = true;
		return 1;
	}
	if (say(w, REG_STARTED, SHORT) != 0)
		return 1; /* the parent is gone: the next receive says so */
	switch (w->order.command) {
	case REG_REGISTER:
		do_register(w);
		break;
	case REG_REMOVE:
		do_remove(w, false);
		break;
	case REG_REMOVE_IF_IDLE:
		do_remove(w, true);
		break;
	case REG_PREDECESSOR:
		do_predecessor(w);
		break;
	default:
		break;
	}
	return 1;
}

int registrar_work(int sock, const struct gh_settings *s, bool drop)
{
	static struct worker w; /* too large for a stack; its pages exist in this process only */
	struct err e = ERR_INIT;
	ssize_t n;

	(void)prctl(PR_SET_NAME, "init-registrar", 0, 0, 0);
	if (drop && user_drop_caps(&e) != 0)
		log_warn("registrar_caps", "%s", e.text);
	/* A change of ids makes the kernel reset this; the credential is in this memory. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	w.sock = sock;
	w.settings = *s;
	if (w.settings.agent_version[0] != '\0')
		(void)client(&w, &e);
	do {
		do
			n = recv(sock, &w.order, sizeof w.order, 0);
		while (n < 0 && errno == EINTR);
	} while (serve(&w, n) != 0);
	gh_close(w.gh);
	return 0;
}
