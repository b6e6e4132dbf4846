/*
 * The XML of `nvidia-smi -q -x`, read by a scanner that knows tags and text and nothing more: no
 * entity but the five, no allocation, depth and sizes bounded. Names of elements come and go with
 * driver versions; what is not there stays unread. Element names: NVIDIA's nvsmi_device_v12.dtd and
 * the outputs in tests/probes/data.
 */
#include "base/str.h"
#include "probes/internal.h"

#include <string.h>

#define DEPTH_MAX 24
#define NAME_MAX_ 64

struct scan {
	const char *p, *end;
	unsigned depth;
	char stack[DEPTH_MAX][NAME_MAX_];
	char text[256]; /* of the innermost element, until its end tag */
	struct smi *out;
	struct smi_gpu *gpu; /* inside <gpu>, when there is room for it */
	struct smi_proc proc;
	bool root_closed;
};

static void decode(char *dst, size_t size, const char *p, size_t n)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = {
		{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	size_t o = 0;

	for (size_t i = 0; i < n && o + 1 < size; o++) {
		char c = p[i];
		size_t step = 1;
		for (size_t k = 0; c == '&' && k < sizeof entities / sizeof entities[0]; k++) {
			size_t len = strlen(entities[k].name);
			if (len <= n - i && strncmp(p + i, entities[k].name, len) == 0) {
				c = entities[k].c;
				step = len;
				break;
			}
		}
		dst[o] = c;
		i += step;
	}
	dst[o] = 0;
	str_printable(dst);
}

static bool at(const struct scan *s, unsigned up, const char *name)
{
	return s->depth > up && strcmp(s->stack[s->depth - 1 - up], name) == 0;
}

/* Values that say "not here" rather than anything about health. */
static bool absent(const char *v)
{
	static const char *const none[] = {"N/A",
					   "[N/A]",
					   "Not Supported",
					   "[Not Supported]",
					   "Insufficient Permissions",
					   "[Insufficient Permissions]",
					   ""};

	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		if (str_eq_nocase(v, none[i]))
			return true;
	return false;
}

static void keep(char *dst, size_t size, const char *v)
{
	if (!absent(v))
		text_cut(dst, size, v);
}

/* "143771 MiB" */
static bool number(const char *v, uint64_t *out)
{
	char digits[32];
	size_t n = strspn(v, "0123456789");

	return n > 0 && (v[n] == 0 || v[n] == ' ') && str_copyn(digits, sizeof digits, v, n) == 0 &&
	       str_u64(digits, 0, UINT64_MAX / 2, out) == 0;
}

static void ecc_value(struct scan *s, const char *name, const char *v)
{
	uint64_t n;

	if (!at(s, 1, "volatile") && !at(s, 2, "volatile"))
		return;
	/* sram_uncorrectable(_parity, _secded), dram_uncorrectable; before 2020: double_bit/total
	 */
	if (strstr(name, "uncorrectable") == NULL &&
	    !(strcmp(name, "total") == 0 && at(s, 1, "double_bit")))
		return;
	if (number(v, &n)) {
		s->gpu->ecc_read = true;
		s->gpu->ecc_uncorrected += n;
	}
}

static void throttle_value(struct scan *s, const char *name, const char *v)
{
	const char *what = strstr(name, "_hw_");
	size_t used = strlen(s->gpu->throttle);

	if (what == NULL || strcmp(v, "Active") != 0 ||
	    used + strlen(what) + 2 >= sizeof s->gpu->throttle)
		return;
	(void)str_fmt(s->gpu->throttle + used, sizeof s->gpu->throttle - used, "%s%s",
		      used > 0 ? ", " : "", what + 1);
}

static void mark_bad(struct scan *s, const char *name, const char *v)
{
	static const char *const errors[] = {
		"ERR!",		 "Unknown Error",	 "[Unknown Error]",    "GPU is lost",
		"[GPU is lost]", "[GPU requires reset]", "GPU requires reset", "Reset Required"};

	if (s->gpu->bad_field[0] != 0)
		return;
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
		if (str_eq_nocase(v, errors[i])) {
			char line[256];
			if (str_fmt(line, sizeof line, "%s: %s", name, v) == 0)
				text_cut(s->gpu->bad_field, sizeof s->gpu->bad_field, line);
		}
}

static void gpu_value(struct scan *s, const char *name, const char *v)
{
	struct smi_gpu *g = s->gpu;
	const struct {
		const char *parent, *name;
		char *dst;
		size_t size;
	} plain[] = {
		{"gpu", "product_name", g->name, sizeof g->name},
		{"gpu", "product_brand", g->brand, sizeof g->brand},
		{"gpu", "uuid", g->uuid, sizeof g->uuid},
		{"gpu", "gpu_recovery_action", g->recovery, sizeof g->recovery},
		{"mig_mode", "current_mig", g->mig_mode, sizeof g->mig_mode},
		{"fabric", "state", g->fabric_state, sizeof g->fabric_state},
		{"fabric", "status", g->fabric_status, sizeof g->fabric_status},
		{"remapped_rows", "remapped_row_pending", g->remap_pending,
		 sizeof g->remap_pending},
		{"remapped_rows", "remapped_row_failure", g->remap_failure,
		 sizeof g->remap_failure},
		{"retired_pages", "pending_retirement", g->retire_pending,
		 sizeof g->retire_pending},
		{"ecc_errors", "channel_repair_pending", g->repair_pending,
		 sizeof g->repair_pending},
		{"aggregate", "sram_threshold_exceeded", g->sram_threshold,
		 sizeof g->sram_threshold},
	};

	mark_bad(s, name, v);
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		if (strcmp(name, plain[i].name) == 0 && at(s, 1, plain[i].parent))
			keep(plain[i].dst, plain[i].size, v);
	ecc_value(s, name, v);
	throttle_value(s, name, v);
	if (at(s, 1, "fb_memory_usage") && at(s, 2, "gpu")) {
		if (strcmp(name, "total") == 0)
			(void)number(v, &g->mem_total_mib);
		else if (strcmp(name, "used") == 0)
			g->mem_read = number(v, &g->mem_used_mib);
	}
	if (strcmp(name, "mig_device") == 0)
		g->mig_devices++;
}

static void proc_value(struct scan *s, const char *name, const char *v)
{
	if (strcmp(name, "pid") == 0)
		(void)number(v, &s->proc.pid);
	else if (strcmp(name, "process_name") == 0)
		text_cut(s->proc.name, sizeof s->proc.name, v);
	else if (strcmp(name, "used_memory") == 0)
		text_cut(s->proc.memory, sizeof s->proc.memory, v);
}

/* An element ended; its name is on top of the stack, its text in s->text. */
static void element(struct scan *s)
{
	const char *name = s->stack[s->depth - 1], *v = s->text;
	uint64_t n;

	if (at(s, 1, "process_info"))
		proc_value(s, name, v);
	if (strcmp(name, "process_info") == 0 && s->proc.pid > 0) {
		if (s->out->n_procs < SMI_PROCS_MAX)
			s->out->proc[s->out->n_procs++] = s->proc;
		s->out->n_procs_all++;
	}
	if (s->depth == 2 && strcmp(name, "driver_version") == 0)
		keep(s->out->driver, sizeof s->out->driver, v);
	if (s->depth == 2 && strcmp(name, "cuda_version") == 0)
		keep(s->out->cuda, sizeof s->out->cuda, v);
	if (s->depth == 2 && strcmp(name, "attached_gpus") == 0 && number(v, &n) && n < 4096)
		s->out->attached = (int)n;
	if (s->gpu != NULL && !at(s, 1, "process_info"))
		gpu_value(s, name, v);
	if (s->depth == 2 && strcmp(name, "gpu") == 0)
		s->gpu = NULL;
	if (s->depth == 1)
		s->root_closed = strcmp(name, "nvidia_smi_log") == 0;
}

static void opened(struct scan *s, const char *attrs, size_t n)
{
	const char *name = s->stack[s->depth - 1];

	if (s->depth == 2 && strcmp(name, "gpu") == 0) {
		s->gpu = s->out->n_gpus < SMI_GPUS_MAX ? &s->out->gpu[s->out->n_gpus] : NULL;
		s->out->n_gpus += s->gpu != NULL ? 1 : 0;
		for (size_t i = 0; s->gpu != NULL && i + 4 < n; i++)
			if (strncmp(attrs + i, "id=\"", 4) == 0) {
				const char *q = memchr(attrs + i + 4, '"', n - i - 4);
				if (q != NULL)
					decode(s->gpu->bus, sizeof s->gpu->bus, attrs + i + 4,
					       (size_t)(q - (attrs + i + 4)));
			}
	}
	if (strcmp(name, "process_info") == 0) {
		memset(&s->proc, 0, sizeof s->proc);
		s->proc.gpu = s->out->n_gpus > 0 ? s->out->n_gpus - 1 : 0;
	}
}

/* One tag without its angle brackets. 0, or -1 when the document is not well-formed. */
static int tag(struct scan *s, const char *p, size_t n)
{
	size_t name_n;
	bool empty;

	if (n == 0)
		return -1;
	if (*p == '?' || *p == '!')
		return 0; /* declaration, DOCTYPE, comment without '>' inside */
	if (*p == '/') {
		if (s->depth == 0 || strlen(s->stack[s->depth - 1]) != n - 1 ||
		    strncmp(s->stack[s->depth - 1], p + 1, n - 1) != 0)
			return -1;
		element(s);
		s->depth--;
		s->text[0] = 0;
		return 0;
	}
	empty = p[n - 1] == '/';
	n -= empty ? 1 : 0;
	name_n = 0;
	while (name_n < n && strchr(" \t\r\n", p[name_n]) == NULL)
		name_n++;
	if (s->depth == DEPTH_MAX || s->root_closed ||
	    str_copyn(s->stack[s->depth], NAME_MAX_, p, name_n) < 0)
		return -1;
	s->depth++;
	s->text[0] = 0;
	opened(s, p + name_n, n - name_n);
	if (empty) {
		element(s);
		s->depth--;
	}
	return 0;
}

int smi_parse(const char *xml, size_t len, struct smi *out)
{
	struct scan s;

	memset(&s, 0, sizeof s);
	memset(out, 0, sizeof *out);
	out->attached = -1;
	s.out = out;
	s.p = xml;
	s.end = xml + len;
	while (s.p < s.end) {
		const char *lt = memchr(s.p, '<', (size_t)(s.end - s.p)), *gt;
		size_t n;
		if (lt == NULL)
			break;
		n = (size_t)(lt - s.p);
		while (n > 0 && strchr(" \t\r\n", *s.p) != NULL && *s.p != 0) {
			s.p++;
			n--;
		}
		while (n > 0 && s.p[n - 1] != 0 && strchr(" \t\r\n", s.p[n - 1]) != NULL)
			n--;
		if (n > 0)
			decode(s.text, sizeof s.text, s.p, n);
		gt = memchr(lt, '>', (size_t)(s.end - lt));
		if (gt == NULL || tag(&s, lt + 1, (size_t)(gt - lt) - 1) < 0)
			return -1;
		s.p = gt + 1;
	}
	return s.root_closed && s.depth == 0 ? 0 : -1;
}
