/*
 * A command line for the checks alone, for tests of what `init` reaches through its life cycle
 *only: the gate, the watch, the look at the card. Settings come from the environment under
 *PROBECLI_*.
 *
 *	probecli selftest build|fast|deep [json] [only=IDS] [skip=IDS]
 *	probecli list [json] | gate fast|deep | watch [heavy] | clean
 */
#include "base/str.h"
#include "init/config.h"
#include "probes/probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void net(const struct probe_settings *s, struct deadline d, struct probe_net *out)
{
	const char *v = getenv("PROBECLI_NET");

	(void)s;
	(void)d;
	while (strcmp(v, "hang") == 0)
		(void)pause();
	out->ok = out->have_skew = str_starts(v, "ok ");
	if (out->ok)
		(void)str_i64(v + 3, -1000000, 1000000, &out->skew_s);
	(void)str_copy(out->detail, sizeof out->detail, v);
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
	static struct config c;
	struct probe_settings s;
	struct err e = ERR_INIT;
	const char *what = argc > 1 ? argv[1] : "";
	int bad = config_read_for(&c, environ, CONFIG_SELFTEST);

	if (bad != XC_OK)
		return bad;
	s = c.probe;
	if (getenv("PROBECLI_NET") != NULL) {
		s.net = net;
		s.api_url = "https://api.example";
	}
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
