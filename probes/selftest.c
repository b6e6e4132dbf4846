/* `init --selftest`: which checks are wanted, run, told. */
#include "base/str.h"
#include "probes/internal.h"

#include <stdio.h>
#include <string.h>

static bool in_tier(const struct check *k, enum probe_tier tier)
{
	/* deep is what a card must stand in the end: it holds fast */
	return k->tier == tier || (tier == TIER_DEEP && k->tier == TIER_FAST);
}

/* Marks the ids of a comma list. 0, or -1 after saying on `out` which id is unknown. */
static int mark(const char *list, bool marked[CHECK__MAX], FILE *out)
{
	while (*list != 0) {
		size_t n = strcspn(list, ","), k;
		char id[64];
		const char *p;
		int hit = -1;
		if (str_copyn(id, sizeof id, list, n) < 0)
			(void)str_copyn(id, sizeof id, list, sizeof id - 1);
		p = str_trim(id, &k);
		for (int i = 0; i < CHECK__MAX; i++)
			if (strlen(probe_checks[i].id) == k &&
			    strncmp(probe_checks[i].id, p, k) == 0)
				hit = i;
		if (hit >= 0) {
			marked[hit] = true;
		} else if (k > 0) {
			str_printable(id);
			(void)fprintf(out, "there is no check \"%s\": --list shows them\n", id);
			return -1;
		}
		list += n;
		list += *list == ',' ? 1 : 0;
	}
	return 0;
}

int probes_selftest(const struct probe_settings *s, enum probe_tier tier, bool json,
		    const char *only, const char *skip, FILE *out)
{
	static struct run r;
	bool chosen[CHECK__MAX] = {false}, left[CHECK__MAX] = {false};
	int budget = tier_budget_ms(tier);
	struct err e = ERR_INIT;

	if ((only != NULL && mark(only, chosen, stderr) < 0) ||
	    (skip != NULL && mark(skip, left, stderr) < 0))
		return XC_USAGE;
	memset(&r, 0, sizeof r);
	r.s = s;
	for (int i = 0; i < CHECK__MAX; i++) {
		/* a check asked for by name runs whatever its tier, with that tier's time */
		r.wanted[i] =
			(only != NULL ? chosen[i] : in_tier(&probe_checks[i], tier)) && !left[i];
		if (r.wanted[i] && only != NULL && tier_budget_ms(probe_checks[i].tier) > budget)
			budget = tier_budget_ms(probe_checks[i].tier);
	}
	if (run_checks(&r, budget, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.text);
		return XC_FAILED;
	}
	report_print(&r, json, out);
	return run_result(&r) == V_FAIL ? XC_FAILED : XC_OK;
}
