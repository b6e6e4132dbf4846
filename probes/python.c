/*
 * Checks written in Python: one interpreter for a group, since an import of torch takes seconds.
 *The script says what it begins and what it found, one line each, on a descriptor of its own:
 *
 *	begin TAB id
 *	found TAB id TAB verdict TAB ms TAB action TAB detail TAB remedy
 *
 * An interpreter that dies (an import can abort the process) has failed the check that it had
 *begun; a new one goes on with the rest.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "probes/internal.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELDS 7

struct todo {
	struct ctx *c;
	enum group_id group;
	bool open[CHECK__MAX];
	unsigned n;
	int begun; /* -1 none */
};

static int check_by_id(const char *id)
{
	for (int i = 0; i < CHECK__MAX; i++)
		if (strcmp(probe_checks[i].id, id) == 0)
			return i;
	return -1;
}

static int by_name(const char *name, const char *(*name_of)(int), int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(name_of(i), name) == 0)
			return i;
	return -1;
}

static const char *verdict_at(int i)
{
	return verdict_name((enum verdict)i);
}

static const char *action_at(int i)
{
	return action_name((enum action)i);
}

static void close_check(struct todo *t, int id)
{
	if (!t->open[id])
		return;
	t->open[id] = false;
	t->n--;
	if (t->begun == id)
		t->begun = -1;
}

static void found(struct todo *t, char *const f[FIELDS])
{
	int id = check_by_id(f[1]), v = by_name(f[2], verdict_at, V__MAX),
	    a = by_name(f[4], action_at, ACT__MAX);
	uint64_t ms;

	if (id < 0 || v < 0 || !t->open[id] || str_u64(f[3], 0, 1U << 30, &ms) < 0)
		return;
	t->c->start_ms = clock_mono_ms() - (int64_t)ms;
	if (a < 0) /* it did not say */
		a = (int)probe_checks[id].action;
	say(t->c, (enum check_id)id, (enum verdict)v, (enum action)a, f[6][0] != 0 ? f[6] : NULL,
	    "%s", f[5]);
	close_check(t, id);
}

/* One line; the field pointers point into it. */
static void take_line(struct todo *t, char *line)
{
	char none[] = "", *f[FIELDS] = {none, none, none, none, none, none, none};

	for (int i = 0; i < FIELDS; i++) {
		char *tab = strchr(line, '\t');
		f[i] = line;
		if (tab == NULL)
			break;
		*tab = 0;
		line = tab + 1;
	}
	if (strcmp(f[0], "begin") == 0) {
		int id = check_by_id(f[1]);
		if (id >= 0 && t->open[id])
			t->begun = id;
	} else if (strcmp(f[0], "found") == 0) {
		found(t, f);
	}
}

static void take_lines(struct todo *t, const struct buf *out)
{
	const char *p = buf_str(out);
	char line[4096];

	t->begun = -1;
	for (size_t n; *p != 0; p += n + (p[n] != 0 ? 1 : 0)) {
		n = strcspn(p, "\n");
		if (p[n] == '\n' && str_copyn(line, sizeof line, p, n) == 0)
			take_line(t, line);
	}
}

static void say_all(struct todo *t, enum verdict v, const char *text)
{
	for (int i = 0; i < CHECK__MAX; i++)
		if (t->open[i]) {
			say(t->c, (enum check_id)i, v, probe_checks[i].action, NULL, "%s", text);
			close_check(t, i);
		}
}

/* The interpreter ended before it had answered for everything. true: go on with the rest. */
static bool judge_end(struct todo *t, const struct child_result *r, const char *python)
{
	char line[300], text[DETAIL_MAX];
	int id = t->begun;

	last_line(line, sizeof line, &r->err_);
	if (r->end == CHILD_NOEXEC)
		(void)str_fmt(text, sizeof text, "%s cannot be run: %s", python, strerror(r->code));
	else if (r->end == CHILD_TIMEOUT)
		(void)str_fmt(text, sizeof text, "no answer in %lld ms", (long long)r->ms);
	else if (r->end == CHILD_HUNG)
		(void)str_copy(text, sizeof text, "hangs in the kernel and cannot be killed");
	else if (r->end == CHILD_SIGNALED)
		(void)str_fmt(text, sizeof text, "Python died of signal %d (%s)%s%s", r->code,
			      strsignal(r->code), line[0] != 0 ? ": " : "", line);
	else
		(void)str_fmt(text, sizeof text, "Python ended with %d%s%s", r->code,
			      line[0] != 0 ? ": " : "", line);
	if (r->end == CHILD_NOEXEC || id < 0) {
		say_all(t, r->end == CHILD_NOEXEC ? V_FAIL : V_UNKNOWN, text);
		return false;
	}
	t->c->start_ms = clock_mono_ms() - r->ms;
	say(t->c, (enum check_id)id, V_FAIL, probe_checks[id].action, NULL, "%s", text);
	close_check(t, id);
	if (r->end == CHILD_TIMEOUT || r->end == CHILD_HUNG) {
		(void)str_fmt(text, sizeof text, "not reached: %s used up the time",
			      probe_checks[id].id);
		say_all(t, V_UNKNOWN, text);
		return false;
	}
	return true;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	(void)remove(path);
	return 0;
}

/* argv: python -B -c SCRIPT id... */
static bool run_once(struct todo *t, const char *script, const char *const *envp)
{
	const char *python = t->c->s->python;
	const char *argv[CHECK__MAX + 8];
	struct child_spec spec;
	struct child_result r;
	struct err e = ERR_INIT;
	unsigned n = 0;
	bool more;

	if (python == NULL || *python == 0)
		python = "python3";
	argv[n++] = python;
	argv[n++] = "-B";
	argv[n++] = "-c";
	argv[n++] = script;
	for (int i = 0; i < CHECK__MAX; i++)
		if (t->open[i])
			argv[n++] = probe_checks[i].id;
	argv[n] = NULL;
	memset(&spec, 0, sizeof spec);
	spec.argv = argv;
	spec.envp = envp;
	spec.cwd = "/";
	spec.out_max = 256U << 10;
	spec.uid = (uid_t)-1;
	spec.gid = (gid_t)-1;
	spec.deadline = t->c->deadline;
	t->c->start_ms = clock_mono_ms();
	if (child_run(&spec, &r, &e) < 0) {
		say_all(t, V_UNKNOWN, e.text);
		return false;
	}
	take_lines(t, &r.out);
	more = t->n > 0 && judge_end(t, &r, python);
	child_result_free(&r);
	return more && t->n > 0;
}

static void run_script(struct ctx *c, enum group_id group, const char *body)
{
	const struct probe_settings *s = c->s;
	char scratch[] = "/tmp/init-selftest.XXXXXX";
	char v[9][1200], tflops[32], gbs[32];
	const char *more[10];
	cleanup_free const char **envp = NULL;
	cleanup_buf struct buf text;
	struct todo t;
	unsigned n = 0;

	buf_init(&text, 100U << 10); /* an argument of exec may have 128 KiB */
	memset(&t, 0, sizeof t);
	t.c = c;
	t.group = group;
	for (int i = 0; i < CHECK__MAX; i++)
		if (probe_checks[i].group == group && c->wanted[i]) {
			t.open[i] = true;
			t.n++;
		}
	if (buf_puts(&text, py_common) < 0 || buf_puts(&text, body) < 0 ||
	    mkdtemp(scratch) == NULL) {
		say_all(&t, V_UNKNOWN, "no scratch directory can be made in /tmp");
		return;
	}
	(void)str_fmt(tflops, sizeof tflops, "%.3f", s->floor_gemm_tflops);
	(void)str_fmt(gbs, sizeof gbs, "%.3f", s->floor_copy_gbs);
	const char *const pairs[][2] = {
		{"TRITON_CACHE_DIR", scratch},
		{"TILELANG_CACHE_DIR", scratch},
		{"TILELANG_TMP_DIR", scratch},
		{"CUDA_CACHE_PATH", scratch},
		{"PROBE_CUDA", s->expect_cuda != NULL ? s->expect_cuda : ""},
		{"PROBE_SUFFIX", s->expect_suffix != NULL ? s->expect_suffix : ""},
		{"PROBE_CONSTRAINTS", s->constraints != NULL ? s->constraints : ""},
		{"PROBE_FLOOR_TFLOPS", tflops},
		{"PROBE_FLOOR_GBS", gbs},
	};
	for (; n < sizeof pairs / sizeof pairs[0]; n++) {
		if (str_fmt(v[n], sizeof v[n], "%s=%s", pairs[n][0], pairs[n][1]) < 0)
			v[n][0] = 0;
		more[n] = v[n];
	}
	more[n] = NULL;
	envp = env_with(s->envp, more);
	if (envp == NULL)
		say_all(&t, V_UNKNOWN, "no memory");
	while (envp != NULL && t.n > 0 && run_once(&t, buf_str(&text), envp))
		;
	(void)nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void group_build(struct ctx *c)
{
	run_script(c, G_BUILD, py_build);
}

void group_image(struct ctx *c)
{
	run_script(c, G_IMAGE, py_image);
}

/* These two speak CUDA; another vendor's cards are judged by what PyTorch says alone. */
void group_cuda(struct ctx *c)
{
	const struct vendor *v = vendor_here(c->s);

	if (!v->experimental) {
		run_script(c, G_CUDA, py_cuda);
		return;
	}
	for (int i = 0; i < CHECK__MAX; i++)
		if (probe_checks[i].group == G_CUDA)
			say(c, (enum check_id)i, V_SKIP, ACT_NONE, NULL,
			    "not known for %s (experimental)", v->name);
}

void group_torch(struct ctx *c)
{
	run_script(c, G_TORCH, py_torch);
}
