/*
 * A command line for the checks alone, for tests of what `init` reaches through its life cycle
 *only: the gate, the watch, the look at the card. Settings come from the environment under
 *PROBECLI_*.
 *
 *	probecli selftest build|fast|deep [json] [only=IDS] [skip=IDS]
 *	probecli list [json] | gate fast|deep | watch [heavy] | clean
 */
#include "base/str.h"
#include "probes/probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text(const char *name, const char *other)
{
	char full[64];
	const char *v;

	if (str_fmt(full, sizeof full, "PROBECLI_%s", name) < 0)
		return other;
	v = getenv(full);
	return v != NULL ? v : other;
}

/* PROBECLI_NET: "ok 3", "ok -400", "no reason ...", "hang". */
static void net(const struct probe_settings *s, struct deadline d, struct probe_net *out)
{
	const char *v = text("NET", "");

	(void)s;
	(void)d;
	while (strcmp(v, "hang") == 0)
		(void)pause();
	out->ok = out->have_skew = str_starts(v, "ok ");
	if (out->ok)
		(void)str_i64(v + 3, -1000000, 1000000, &out->skew_s);
	(void)str_copy(out->detail, sizeof out->detail, v);
}

static void settings(struct probe_settings *s)
{
	static char dirs[4096];

	memset(s, 0, sizeof *s);
	s->root = text("ROOT", "");
	s->constraints = text("CONSTRAINTS", "");
	s->gpu = strcmp(text("GPU", "auto"), "off") == 0	? PROBE_GPU_OFF
		 : strcmp(text("GPU", "auto"), "required") == 0 ? PROBE_GPU_REQUIRED
								: PROBE_GPU_AUTO;
	s->gpu_wait_ms = atoll(text("GPU_WAIT_MS", "0"));
	s->api_url = text("API", "");
	s->ca_file = text("CA_FILE", "");
	s->ca_dir = text("CA_DIR", "");
	s->build_epoch = atoll(text("BUILD_EPOCH", "1700000000"));
	s->envp = (const char *const *)(uintptr_t)environ;
	s->uid = (uid_t)-1;
	s->gid = (gid_t)-1;
	s->net = net;
	s->version = "0.0.0";
	s->image = text("IMAGE", "");
	s->python = text("PYTHON", "/usr/bin/python3");
	s->expect_cuda = text("CUDA", "12.9");
	s->expect_suffix = text("SUFFIX", "cu129");
	s->expect_gpus = (unsigned)atoll(text("GPUS", "0"));
	s->floor_gemm_tflops = atof(text("TFLOPS", "-1"));
	s->floor_copy_gbs = atof(text("GBS", "-1"));
	s->gpu_max_used = (uint64_t)atoll(text("GPU_MAX_USED", "2147483648"));
	s->cache_min_free = (uint64_t)atoll(text("CACHE_MIN_FREE", "1048576"));
	(void)str_copy(dirs, sizeof dirs, text("CACHES", ""));
	for (char *p = dirs, *bar; *p != 0 && s->n_cache_dirs < 16; p = bar) {
		s->cache_dirs[s->n_cache_dirs++] = p;
		bar = p + strcspn(p, "|");
		if (*bar != 0)
			*bar++ = 0;
	}
}

static int selftest(const struct probe_settings *s, int argc, char **argv)
{
	enum probe_tier tier = argc > 2 && strcmp(argv[2], "build") == 0  ? TIER_BUILD
			       : argc > 2 && strcmp(argv[2], "deep") == 0 ? TIER_DEEP
									  : TIER_FAST;
	const char *only = NULL, *skip = NULL;
	bool json = false;

	for (int i = 3; i < argc; i++) {
		json = json || strcmp(argv[i], "json") == 0;
		only = str_starts(argv[i], "only=") ? argv[i] + 5 : only;
		skip = str_starts(argv[i], "skip=") ? argv[i] + 5 : skip;
	}
	return probes_selftest(s, tier, json, only, skip, stdout);
}

static int verdict(int rc, const struct probe_verdict *v, const struct err *e)
{
	if (rc < 0) {
		(void)printf("error %d %s\n", e->code, e->text);
		return 1;
	}
	(void)printf("code %d\ngpu_ok %d\ngpu_seen %d\nfail %u\nwarn %u\nunknown %u\nsummary %s\n",
		     v->code, v->gpu_ok, v->gpu_seen, v->n_fail, v->n_warn, v->n_unknown,
		     v->summary);
	for (unsigned i = 0; i < v->n_labels; i++)
		(void)printf("label %s\n", v->labels[i]);
	(void)printf("setup_info %s\n", v->setup_info);
	return 0;
}

int main(int argc, char **argv)
{
	static struct probe_verdict v;
	struct probe_settings s;
	struct err e = ERR_INIT;
	const char *what = argc > 1 ? argv[1] : "";

	settings(&s);
	if (strcmp(what, "selftest") == 0)
		return selftest(&s, argc, argv);
	if (strcmp(what, "list") == 0) {
		probes_list(argc > 2 && strcmp(argv[2], "json") == 0, stdout);
		return 0;
	}
	if (strcmp(what, "gate") == 0)
		return verdict(probes_gate(&s,
					   argc > 2 && strcmp(argv[2], "deep") == 0 ? TIER_DEEP
										    : TIER_FAST,
					   &v, &e),
			       &v, &e);
	if (strcmp(what, "watch") == 0)
		return verdict(probes_watch(&s, argc > 2, &v, &e), &v, &e);
	if (strcmp(what, "clean") == 0)
		return verdict(probes_card_clean(&s, &v, &e), &v, &e);
	return 64;
}
