/*
 * The children that do what may block: directories, the gate, identity files, looking at what the
 * agent left. Each works on its own copy of this memory and first wipes the credential from it.
 */
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "init/files.h"
#include "init/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRS_MS	  60000 /* slow network mounts included */
#define FILES_MS  30000
#define LOOK_MS	  2000
#define UPDATE_MS 31000	 /* run.sh waits 31 times one second */
#define GATE_MS	  180000 /* above the sum of the checks' own deadlines; the GPU wait is added */
#define WATCH_MS  60000
#define AGAIN_MS  5000 /* from a first failure of the watch to the look that decides */
#define CLEAN_MS  4000
#define TOOL_EACH 5 /* rounds of the watch to one that asks the vendor's tool */

static void wipe(struct run *r)
{
	struct gh_credentials *k = &r->c->gh.cred;

	secret_wipe(&k->token);
	secret_wipe(&k->pat);
	secret_wipe(&k->app_key);
	secret_wipe(&k->jit);
}

static int become(struct run *r, struct err *e)
{
	int rc = 0;

	wipe(r);
	if (r->c->user.switching)
		rc = user_become(&r->c->user, e);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a change of ids resets it */
	return rc;
}

/* ---- in the child ---- */

static void work_dirs(void *arg, void *report)
{
	struct run *r = arg;
	struct dirs_report *d = report;
	struct deadline due = deadline_in(DIRS_MS - 2000);

	(void)prctl(PR_SET_NAME, "init-dirs", 0, 0, 0);
	d->err.code = 0;
	d->version[0] = '\0';
	if (become(r, &d->err) != 0 || files_dirs(r->c, &d->err) != 0 ||
	    files_clean(r->c, &d->err) != 0)
		return;
	if (r->c->gh.agent_version[0] == '\0')
		(void)gh_agent_version(r->c->root, r->agent_env, (uid_t)-1, (gid_t)-1, due,
				       d->version, sizeof d->version, &d->err);
}

/* The checks switch to the job's user by themselves, in their own children. */
static void work_gate(void *arg, void *report)
{
	struct run *r = arg;
	struct probe_verdict *v = report;
	struct err e = ERR_INIT;

	(void)prctl(PR_SET_NAME, "init-gate", 0, 0, 0);
	wipe(r);
	if (probes_gate(&r->c->probe, r->c->gate, v, &e) != 0) {
		v->code = e.code;
		(void)str_copyn(v->summary, sizeof v->summary, e.text,
				strnlen(e.text, sizeof v->summary - 1));
	}
}

static void work_watch(void *arg, void *report)
{
	struct run *r = arg;
	struct probe_verdict *v = report;
	struct err e = ERR_INIT;

	(void)prctl(PR_SET_NAME, "init-watch", 0, 0, 0);
	wipe(r);
	if (probes_watch(&r->c->probe, r->heavy, v, &e) != 0) {
		log_warn("watch", "%s", e.text);
		v->code = XC_OK; /* a watch that cannot look has seen nothing wrong */
	}
}

static void work_clean(void *arg, void *report)
{
	struct run *r = arg;
	struct probe_verdict *v = report;
	struct err e = ERR_INIT;

	(void)prctl(PR_SET_NAME, "init-clean", 0, 0, 0);
	wipe(r);
	if (probes_card_clean(&r->c->probe, v, &e) != 0)
		v->code = XC_OK; /* nothing could be started: nothing is known */
}

static void work_files(void *arg, void *report)
{
	struct run *r = arg;
	struct err *e = report;

	(void)prctl(PR_SET_NAME, "init-files", 0, 0, 0);
	e->code = 0;
	if (become(r, e) == 0)
		(void)files_identity(r->c, &r->runner, r->gate.setup_info, r->agent_env, e);
}

static void look(const struct run *r, int root, struct look_report *l)
{
	struct stat st;

	l->err.code = 0;
	l->runner_file = fstatat(root, ".runner", &st, AT_SYMLINK_NOFOLLOW) == 0;
	l->binary = faccessat(root, "bin/Runner.Listener", X_OK, AT_EACCESS) == 0;
	if (!l->binary)
		(void)err_set(
			&l->err, XC_AGAIN, 0,
			"%s/bin/Runner.Listener is not there or cannot be executed: an update "
			"of the agent failed, see _diag/SelfUpdate*.log; start again",
			r->c->root);
}

static int open_root(struct run *r, struct look_report *l)
{
	int root;

	if (become(r, &l->err) != 0)
		return -1;
	root = open(r->c->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		(void)err_set(&l->err, XC_FILES, errno, "cannot open the runner root %s",
			      r->c->root);
	return root;
}

static void work_look(void *arg, void *report)
{
	int root = open_root(arg, report);

	(void)prctl(PR_SET_NAME, "init-look", 0, 0, 0);
	if (root >= 0)
		look(arg, root, report);
}

/* The update's script writes update.finished when bin is in place; it may also fail and never do
 * so. Either way what counts is whether there is an agent to start. */
static void work_update(void *arg, void *report)
{
	struct deadline due = deadline_in(UPDATE_MS);
	int root = open_root(arg, report);

	(void)prctl(PR_SET_NAME, "init-update", 0, 0, 0);
	if (root < 0)
		return;
	while (faccessat(root, "update.finished", F_OK, AT_EACCESS) != 0 && !deadline_passed(due))
		(void)poll(NULL, 0, 100);
	(void)unlinkat(root, "update.finished", 0);
	look(arg, root, report);
}

/* ---- in PID 1 ---- */

int run_step_dirs(struct run *r, struct err *e)
{
	return step_start(&r->step, work_dirs, r, &r->dirs, sizeof r->dirs, deadline_in(DIRS_MS),
			  e);
}

int run_step_gate(struct run *r, struct err *e)
{
	return step_start(&r->step, work_gate, r, &r->gate, sizeof r->gate,
			  deadline_in(GATE_MS + r->c->gpu_wait_ms), e);
}

int run_step_watch(struct run *r, struct err *e)
{
	r->rounds++;
	r->heavy = r->rounds % TOOL_EACH == 0 || r->sick > 0 || r->after_job;
	r->after_job = false;
	return step_start(&r->watch, work_watch, r, &r->round, sizeof r->round,
			  deadline_in(WATCH_MS), e);
}

void run_step_clean(struct run *r)
{
	struct err e = ERR_INIT;

	if (r->c->gate == TIER_OFF || !r->gate.gpu_seen || !r->facts.listened || r->cleaning)
		return;
	r->looked_clean = false;
	step_drop(&r->watch);
	r->cleaning = step_start(&r->watch, work_clean, r, &r->round, sizeof r->round,
				 deadline_in(CLEAN_MS), &e) == 0;
}

int run_step_files(struct run *r, struct err *e)
{
	return step_start(&r->step, work_files, r, &r->files, sizeof r->files,
			  deadline_in(FILES_MS), e);
}

int run_step_look(struct run *r, bool update, struct err *e)
{
	return step_start(&r->step, update ? work_update : work_look, r, &r->look, sizeof r->look,
			  deadline_in(update ? UPDATE_MS + LOOK_MS : LOOK_MS), e);
}

static void failed(struct run *r, int code, const char *event, const char *text)
{
	log_error(event, "%s", text);
	run_cause(r, code, text);
	run_post(r, EV_STEP_FAILED);
}

static void dirs_over(struct run *r)
{
	if (r->dirs.err.code != 0) {
		failed(r, r->dirs.err.code, "dirs", r->dirs.err.text);
		return;
	}
	r->dirs.version[sizeof r->dirs.version - 1] = '\0';
	(void)str_copy(r->wish.agent_version, sizeof r->wish.agent_version, r->dirs.version);
	run_post(r, EV_STEP_OK);
}

/* Labels for what the checks saw, on top of those that were asked for. */
static void labels(struct run *r)
{
	unsigned n = 0;

	if (!r->c->labels_from_facts)
		return;
	for (unsigned i = 0; i < r->gate.n_labels && i < PROBE_LABELS_MAX; i++)
		if (str_fmt(r->wish.labels[n], GH_LABEL_MAX, "%s%s", r->c->labels_prefix,
			    r->gate.labels[i]) == 0)
			n++;
	r->wish.n_labels = n;
}

static void gate_over(struct run *r)
{
	struct probe_verdict *v = &r->gate;

	v->summary[sizeof v->summary - 1] = '\0';
	v->setup_info[sizeof v->setup_info - 1] = '\0';
	if (v->n_labels > PROBE_LABELS_MAX)
		v->n_labels = 0;
	for (unsigned i = 0; i < v->n_labels; i++)
		v->labels[i][PROBE_LABEL_MAX - 1] = '\0';
	if (v->code != XC_OK) {
		failed(r, v->code, "gate_failed", v->summary);
		return;
	}
	labels(r);
	log_info("gate_passed", "the node is fit: %s",
		 v->summary[0] ? v->summary : "all checks passed");
	run_post(r, EV_STEP_OK);
}

static void update_over(struct run *r)
{
	if (r->look.err.code != 0) {
		failed(r, r->look.err.code, "agent_update", r->look.err.text);
		return;
	}
	run_post(r, EV_STEP_OK);
}

static void broken(struct run *r)
{
	if (r->state == LIFE_DIRS)
		failed(r, XC_FILES, "dirs",
		       "preparing the directories took too long or crashed: a mount that does not "
		       "answer?");
	else if (r->state == LIFE_GATE)
		failed(r, XC_SYSTEM, "gate_failed",
		       "the checks of the node took too long or crashed");
	else if (r->state == LIFE_WRITING)
		failed(r, XC_FILES, "files", "writing the agent's files took too long or crashed");
	else
		failed(r, XC_AGAIN, "agent_update", "waiting for the agent's update failed");
}

void run_step_over(struct run *r, enum step_state how)
{
	if (r->state == LIFE_JUDGING) {
		r->facts.looked = how == STEP_DONE && r->look.err.code != XC_FILES;
		r->facts.runner_file = r->look.runner_file;
		r->facts.binary = r->look.binary;
		r->looked = true;
		run_judge(r);
		return;
	}
	if (how == STEP_BROKEN) {
		broken(r);
		return;
	}
	if (r->state == LIFE_DIRS)
		dirs_over(r);
	else if (r->state == LIFE_GATE)
		gate_over(r);
	else if (r->state == LIFE_WRITING && r->files.code != 0)
		failed(r, r->files.code, "files", r->files.text);
	else if (r->state == LIFE_WRITING)
		run_post(r, EV_STEP_OK);
	else if (r->state == LIFE_WAITING)
		update_over(r);
}

void run_watch_over(struct run *r, enum step_state how)
{
	r->round.summary[sizeof r->round.summary - 1] = '\0';
	if (r->cleaning) {
		r->cleaning = false;
		r->looked_clean = how == STEP_DONE;
		return;
	}
	if (how != STEP_DONE)
		return;
	if (r->round.code == XC_OK) {
		r->sick = 0;
		if (r->heavy && r->round.n_warn > 0)
			log_warn("watch_warned", "%s", r->round.summary);
		return;
	}
	if (r->state != LIFE_LISTENING && r->state != LIFE_ASKING)
		return;	     /* a job runs: it finds out by itself */
	if (++r->sick < 2) { /* one bad reading may be a hiccup of the tool or of the machine */
		log_warn("watch_suspect", "%s: looking once more", r->round.summary);
		run_arm(r, TIMER_WATCH,
			deadline_in(r->c->gpu_watch_ms < AGAIN_MS ? r->c->gpu_watch_ms : AGAIN_MS));
		return;
	}
	log_error("watch_failed", "%s: no more jobs for this node", r->round.summary);
	r->gate.gpu_ok = r->gate.gpu_ok && r->round.gpu_ok;
	run_cause(r, r->round.code, r->round.summary);
	run_post(r, EV_END);
}
