#include "init/passthru.h"

#include "base/deadline.h"
#include "base/log.h"
#include "base/str.h"
#include "init/killtree.h"
#include "init/loop.h"
#include "init/sig.h"
#include "init/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_MS_DEFAULT 9000 /* as in the life cycle: fits the 10 s of `docker stop` */
#define KILL_MS		500  /* of those, kept for SIGKILL and the reaping after it */
#define LEFT_MS		2000 /* what outlives a CMD that ended by itself gets this long */
#define KILL_WAIT_MS	1000 /* longest wait for what was killed; uninterruptible sleep */
#define KILL_PACE_MS	20   /* between two kills of a tree that goes on forking */

enum phase {
	RUNNING, /* CMD lives */
	ENDING,	 /* CMD ended; what it left behind was asked to end */
	KILLING, /* everything is being killed */
	OVER
};

struct supervisor {
	struct loop loop;
	struct proc cmd;
	pid_t group; /* CMD's process group: valid while CMD is not reaped */
	bool first;  /* we are PID 1 */
	enum phase phase;
	int64_t stop_ms; /* the budget from SIGTERM to the exit; 0: none */
	struct deadline stop, phase_end;
	int code;
};

/* The settings that `init CMD` looks at; it must not fail over their values. */
static void settings(struct supervisor *s, char *const *envp)
{
	enum log_level level;
	int64_t ms;

	for (; *envp != NULL; envp++) {
		if (!str_starts(*envp, "INIT_"))
			continue;
		if (str_starts(*envp, "INIT_LOG_LEVEL=") &&
		    log_level_parse(*envp + 15, &level) == 0)
			log_setup(level, false);
		if (str_starts(*envp, "INIT_STOP_TIMEOUT=") &&
		    str_duration_ms(*envp + 18, &ms) == 0)
			s->stop_ms = ms;
	}
}

static bool stopped(const struct supervisor *s)
{
	siginfo_t si;

	memset(&si, 0, sizeof si);
	return waitid(P_PID, (id_t)s->cmd.pid, &si, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
	       si.si_pid == s->cmd.pid;
}

/* To CMD's group, and to CMD itself when it moved out of that group. */
static void forward(const struct supervisor *s, int signo)
{
	bool sent = kill(-s->group, signo) == 0;

	if (!sent || getpgid(s->cmd.pid) != s->group)
		(void)proc_kill(&s->cmd, signo);
}

/* From the kernel, only what a terminal or the power supply causes is meant for CMD; the rest
 * (a limit on our own processor time, say) is about init itself. */
static bool from_terminal(int signo)
{
	return signo == SIGHUP || signo == SIGINT || signo == SIGQUIT || signo == SIGTSTP ||
	       signo == SIGTTIN || signo == SIGTTOU || signo == SIGCONT || signo == SIGWINCH ||
	       signo == SIGPWR;
}

static void enter(struct supervisor *s, enum phase p, int64_t ms)
{
	s->phase = p;
	s->phase_end = deadline_in(ms);
}

static void on_signal(struct supervisor *s, const struct signalfd_siginfo *si)
{
	int signo = (int)si->ssi_signo;

	if (!sig_is_forwarded(signo) || (si->ssi_code == SI_KERNEL && !from_terminal(signo)))
		return;
	if (s->phase != RUNNING) {
		/* CMD is gone already: whoever asks again does not want to wait for the rest. */
		if (signo == SIGTERM || signo == SIGINT || signo == SIGQUIT)
			s->phase_end = deadline_in(0);
		return;
	}
	forward(s, signo);
	if (signo != SIGTERM)
		return;
	if (stopped(s)) /* a stopped process dies of SIGTERM only when it goes on */
		forward(s, SIGCONT);
	if (s->stop_ms > 0 && s->stop.at_ms == INT64_MAX) {
		s->stop = deadline_in(s->stop_ms);
		s->phase_end = deadline_minus(s->stop, KILL_MS);
	}
}

static void on_end(struct supervisor *s, int status)
{
	s->code = loop_status_code(status);
	proc_gone(&s->cmd);
	if (s->phase != RUNNING)
		return;
	s->phase = ENDING;
	if (!loop_has_children()) {
		s->phase = OVER;
		return;
	}
	(void)killtree_signal(NULL, 0, SIGTERM);
	(void)killtree_signal(NULL, 0, SIGCONT);
	s->phase_end = deadline_min(deadline_in(LEFT_MS), deadline_minus(s->stop, KILL_MS));
}

static void reap(struct supervisor *s)
{
	pid_t pid;
	int status;

	while (loop_reap(&s->loop, &pid, &status))
		if (pid == s->cmd.pid)
			on_end(s, status);
	if (s->phase != RUNNING && !loop_reap_more(&s->loop) && !loop_has_children())
		s->phase = OVER;
}

static void name_the_left(const struct supervisor *s)
{
	char list[1024];
	int n = killtree_left(NULL, 0, list, sizeof list);

	if (n > 0)
		log_warn("left_behind", "%d processes could not be ended%s: %s", n,
			 s->first ? " and may hold up the container's exit" : "", list);
}

static void on_deadline(struct supervisor *s)
{
	if (s->phase != KILLING) {
		enter(s, KILLING, KILL_WAIT_MS);
	} else if (deadline_passed(s->phase_end)) {
		name_the_left(s);
		s->phase = OVER;
		return;
	}
	if (killtree_pass(NULL, 0) < 0)
		(void)killtree_all();
}

static void supervise(struct supervisor *s)
{
	struct signalfd_siginfo si;

	reap(s); /* a child that ended before we looked has no signal of its own to come */
	while (s->phase != OVER) {
		loop_wait(&s->loop, s->phase == KILLING
					    ? deadline_min(s->phase_end, deadline_in(KILL_PACE_MS))
					    : s->phase_end);
		while (loop_signal(&s->loop, &si))
			on_signal(s, &si);
		reap(s);
		if (s->phase != OVER && (s->phase == KILLING || deadline_passed(s->phase_end)))
			on_deadline(s);
	}
}

static void be_reaper(struct supervisor *s)
{
	s->first = getpid() == 1;
	if (s->first)
		return;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
		log_debug("not_pid1", "not PID 1 but %d: orphans come here as to a subreaper",
			  (int)getpid());
	else
		log_debug("not_pid1", "not PID 1 but %d, and no subreaper (errno %d)",
			  (int)getpid(), errno);
}

int passthru_run(char *const *argv, char *const *envp)
{
	static struct supervisor s; /* zero pages, off the stack */
	union {
		char *const *in;
		const char *const *out;
	} a = {argv}, v = {envp};
	int terminal = spawn_terminal();
	struct spawn_spec spec = {.argv = a.out,
				  .envp = v.out,
				  .in = -1,
				  .out = -1,
				  .err = -1,
				  .group = SPAWN_GROUP,
				  .terminal = &terminal};
	struct err e = ERR_INIT;

	s = (struct supervisor){.cmd = PROC_NONE, .stop_ms = STOP_MS_DEFAULT};
	s.stop = s.phase_end = DEADLINE_NEVER;
	settings(&s, envp);
	spawn_close_from(3, &terminal, 1); /* what CMD does not get is not kept open here either */
	be_reaper(&s);
	if (loop_init(&s.loop, &e) < 0)
		log_debug("no_signalfd", "%s; waiting without it", e.text);
	if (spawn_exec(&spec, &s.cmd, &e) < 0) {
		log_error("cmd_failed", "%s", e.text);
		s.code = e.code;
	} else {
		s.group = s.cmd.pid;
		(void)!chdir("/"); /* hold no mount busy */
		supervise(&s);
	}
	if (terminal >= 0) /* back to whoever waits for us there */
		spawn_foreground(terminal, getpgrp());
	return s.code;
}
