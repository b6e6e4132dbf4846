/* The gate before registering, the watch while idle, and the look at the card when all is over. */
#include "base/buf.h"
#include "base/str.h"
#include "probes/internal.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CLEAN_MS 2000 /* at the end nobody waits long for a tool that hangs */

static struct run r; /* large, and this is always a process of its own */

/* ---- facts as labels and as .setup_info ---- */

static void label(struct probe_verdict *v, const char *fmt, const char *value)
{
	char *dst;

	if (value[0] == 0 || v->n_labels >= PROBE_LABELS_MAX)
		return;
	dst = v->labels[v->n_labels];
	if (str_fmt(dst, PROBE_LABEL_MAX, "%s%s", fmt, value) < 0) {
		dst[0] = 0;
		return;
	}
	for (char *p = dst; *p != 0; p++) { /* a comma would end it, the rest is habit */
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
		else if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '.' ||
			   *p == '_' || *p == '-'))
			*p = '-';
	}
	v->n_labels++;
}

static void number_label(struct probe_verdict *v, const char *name, uint64_t n, const char *unit)
{
	char text[32];

	if (n > 0 && str_fmt(text, sizeof text, "%llu%s", (unsigned long long)n, unit) == 0)
		label(v, name, text);
}

static void make_labels(const struct facts *f, struct probe_verdict *v)
{
	const char *model = f->model;
	char text[32];

	v->n_labels = 0;
	if (f->n_gpus == 0)
		return;
	if (str_starts(model, "NVIDIA "))
		model += strlen("NVIDIA ");
	label(v, "", model);
	if (str_copyn(text, sizeof text, f->cc, strcspn(f->cc, ".")) == 0 && text[0] != 0 &&
	    strchr(f->cc, '.') != NULL) {
		char both[48];
		if (str_fmt(both, sizeof both, "%s%s", text, strchr(f->cc, '.') + 1) == 0)
			label(v, "sm_", both);
	}
	number_label(v, "vram-", (f->mem_mib + 1023) / 1024, "g");
	if (str_copyn(text, sizeof text, f->driver, strcspn(f->driver, ".")) == 0)
		label(v, "driver-", text);
	label(v, "cuda-", f->cuda);
	number_label(v, "gpus-", f->n_gpus, "");
	label(v, "mig-", f->mig);
}

static void put_json(struct buf *b, const char *s)
{
	(void)buf_putc(b, '"');
	for (; *s != 0; s++) {
		if (*s == '"' || *s == '\\')
			(void)buf_putc(b, '\\');
		if (*s == '\n')
			(void)buf_puts(b, "\\n");
		else
			(void)buf_putc(b, *s);
	}
	(void)buf_putc(b, '"');
}

/* [{"group": ..., "detail": ...}]: what the agent prints under "Set up job" (SetupInfo in
 * actions/runner, src/Runner.Common and JobRunner). */
static void make_setup_info(const struct probe_verdict *v, struct probe_verdict *to)
{
	const struct facts *f = &r.facts;
	cleanup_buf struct buf b;
	char text[1024];

	buf_init(&b, PROBE_SETUP_INFO_MAX - 1);
	(void)buf_puts(&b, "[");
	if (f->n_gpus > 0 &&
	    str_fmt(text, sizeof text, "%u x %s, %llu MiB%s%s\nDriver: %s\nCUDA of the driver: %s",
		    f->n_gpus, f->model, (unsigned long long)f->mem_mib,
		    f->mig[0] != 0 ? ", MIG " : "", f->mig, f->driver, f->cuda) == 0) {
		(void)buf_puts(&b, "{\"group\":\"GPU\",\"detail\":");
		put_json(&b, text);
		(void)buf_puts(&b, "},");
	}
	if (r.s->image != NULL && r.s->image[0] != 0) {
		text_cut(text, 512, r.s->image);
		(void)buf_puts(&b, "{\"group\":\"Runner image\",\"detail\":");
		put_json(&b, text);
		(void)buf_puts(&b, "},");
	}
	(void)buf_puts(&b, "{\"group\":\"Self-test\",\"detail\":");
	put_json(&b, v->summary);
	if (buf_puts(&b, "}]") < 0 ||
	    str_copy(to->setup_info, sizeof to->setup_info, buf_str(&b)) < 0)
		to->setup_info[0] = 0;
}

/* ---- the verdict ---- */

/* The class that counts when several failed: what makes all else moot comes first. */
static const int order[] = {XC_CONFIG, XC_FILES, XC_GPU, XC_STACK, XC_CLOCK, XC_VERSION};

static int rank(int code)
{
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
		if (order[i] == code)
			return (int)i;
	return (int)(sizeof order / sizeof order[0]);
}

/* Nothing failed; the first warning is told with it. */
static void tell_fit(struct probe_verdict *v, int warned)
{
	char text[DETAIL_MAX + 256];

	(void)str_fmt(text, sizeof text, "%s in %lld ms (%u warnings, %u unknown)%s%s%s%s",
		      v->gpu_seen ? "GPU and node passed the self-test"
				  : "the node passed the self-test, without a GPU",
		      (long long)r.ms, v->n_warn, v->n_unknown, warned >= 0 ? ": " : "",
		      warned >= 0 ? probe_checks[warned].id : "", warned >= 0 ? ": " : "",
		      warned >= 0 ? r.found[warned].detail : "");
	text_cut(v->summary, sizeof v->summary, text);
}

static void judge(struct probe_verdict *v)
{
	int worst = -1, warned = -1;
	char why[256];

	memset(v, 0, sizeof *v);
	v->gpu_ok = true;
	v->gpu_seen = gpu_expected(r.s, why, sizeof why);
	for (int i = 0; i < CHECK__MAX; i++) {
		const struct check *k = &probe_checks[i];
		enum verdict found;
		if (!r.wanted[i])
			continue;
		if (r.found[i].verdict == V_FAIL && k->net)
			r.found[i].verdict =
				V_WARN; /* registering has its own budget and retries */
		found = r.found[i].verdict;
		v->n_warn += found == V_WARN ? 1U : 0U;
		if (found == V_WARN && warned < 0)
			warned = i;
		v->n_unknown += found == V_UNKNOWN ? 1U : 0U;
		if (found != V_FAIL)
			continue;
		v->n_fail++;
		if (k->code == XC_GPU)
			v->gpu_ok = false;
		if (worst < 0 || rank(k->code) < rank(probe_checks[worst].code))
			worst = i;
	}
	if (worst < 0) {
		tell_fit(v, warned);
		return;
	}
	v->code = probe_checks[worst].code;
	{
		const struct finding *f = &r.found[worst];
		char text[DETAIL_MAX + REMEDY_MAX + 128];
		(void)str_fmt(text, sizeof text, "%s: %s: %s [%s]%s", probe_checks[worst].id,
			      f->detail, f->remedy, action_name(f->action),
			      v->n_fail > 1 ? " (and other checks)" : "");
		text_cut(v->summary, sizeof v->summary, text);
	}
}

static void want_watch(bool heavy)
{
	for (int i = 0; i < CHECK__MAX; i++) {
		enum group_watch w = probe_groups[probe_checks[i].group].watch;
		r.wanted[i] = w == WATCH_CHEAP || (heavy && w == WATCH_HEAVY);
	}
}

static int run_now(const struct probe_settings *s, int64_t budget_ms, struct probe_verdict *v,
		   struct err *e)
{
	r.s = s;
	if (run_checks(&r, budget_ms, e) < 0)
		return -1;
	judge(v);
	make_labels(&r.facts, v);
	return 0;
}

/* Until the cards are there and ready, or INIT_GPU_WAIT is over: nodes boot their containers before
 * the driver, the uvm node or the fabric manager is up. */
static int wait_for_gpu(const struct probe_settings *s, struct probe_verdict *v, struct err *e)
{
	struct deadline d = deadline_in(s->gpu_wait_ms);
	char why[256];

	memset(&r, 0, sizeof r);
	if (s->gpu_wait_ms <= 0 || s->gpu == PROBE_GPU_OFF)
		return 0;
	for (;;) {
		int64_t left;
		want_watch(true);
		if (gpu_expected(s, why, sizeof why)) {
			if (run_now(s, tier_budget_ms(TIER_FAST), v, e) < 0)
				return -1;
			if (v->gpu_ok)
				return 0;
		}
		left = deadline_left_ms(d);
		if (left == 0)
			return 0;
		(void)poll(NULL, 0, left < 1000 ? (int)left : 1000);
	}
}

int probes_gate(const struct probe_settings *s, enum probe_tier tier, struct probe_verdict *v,
		struct err *e)
{
	memset(v, 0, sizeof *v);
	if (wait_for_gpu(s, v, e) < 0)
		return -1;
	memset(&r, 0, sizeof r);
	for (int i = 0; i < CHECK__MAX; i++)
		r.wanted[i] = probe_checks[i].tier == tier ||
			      (tier == TIER_DEEP && probe_checks[i].tier == TIER_FAST);
	if (run_now(s, tier_budget_ms(tier), v, e) < 0)
		return -1;
	make_setup_info(v, v);
	if (v->n_fail > 0)
		report_print(&r, false, stderr);
	return 0;
}

int probes_watch(const struct probe_settings *s, bool heavy, struct probe_verdict *v, struct err *e)
{
	memset(v, 0, sizeof *v);
	memset(&r, 0, sizeof r);
	want_watch(heavy);
	return run_now(s, tier_budget_ms(TIER_FAST), v, e);
}

int probes_card_clean(const struct probe_settings *s, struct probe_verdict *v, struct err *e)
{
	char who[256], why[256];
	unsigned n;

	memset(v, 0, sizeof *v);
	memset(&r, 0, sizeof r);
	v->gpu_ok = true;
	v->gpu_seen = gpu_expected(s, why, sizeof why);
	if (!v->gpu_seen) {
		(void)str_copy(v->summary, sizeof v->summary, "no GPU");
		return 0;
	}
	n = holders(vendor_here(s), who, sizeof who);
	r.wanted[C_GPU_SMI] = r.wanted[C_GPU_MEMORY] = r.wanted[C_GPU_PROCESSES] = true;
	if (run_now(s, CLEAN_MS, v, e) < 0)
		return -1;
	if (n > 0 || v->code != XC_OK || r.found[C_GPU_PROCESSES].verdict == V_WARN) {
		char text[2 * DETAIL_MAX];
		(void)str_fmt(text, sizeof text, "the GPU is not clean:%s%s%s%s%s%s",
			      n > 0 ? " held by " : "", n > 0 ? who : "",
			      r.found[C_GPU_PROCESSES].verdict == V_WARN ? " in use by " : "",
			      r.found[C_GPU_PROCESSES].verdict == V_WARN
				      ? r.found[C_GPU_PROCESSES].detail
				      : "",
			      v->code != XC_OK ? " " : "", v->code != XC_OK ? v->summary : "");
		text_cut(v->summary, sizeof v->summary, text);
		v->code = XC_GPU;
		v->gpu_ok = false;
		v->n_fail += v->n_fail == 0 ? 1U : 0U;
		return 0;
	}
	(void)str_fmt(v->summary, sizeof v->summary, "the GPU is clean: %s",
		      r.found[C_GPU_MEMORY].detail);
	return 0;
}
