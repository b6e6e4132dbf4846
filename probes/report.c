/* The same results three ways: a table on a terminal, plain lines, JSON (selftest.schema.json). */
#include "base/str.h"
#include "probes/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SCHEMA 1

enum verdict run_result(const struct run *r)
{
	bool warn = false, unknown = false;

	for (int i = 0; i < CHECK__MAX; i++) {
		if (!r->wanted[i])
			continue;
		if (r->found[i].verdict == V_FAIL)
			return V_FAIL;
		warn = warn || r->found[i].verdict == V_WARN;
		unknown = unknown || r->found[i].verdict == V_UNKNOWN;
	}
	return warn ? V_WARN : unknown ? V_UNKNOWN : V_PASS;
}

void json_string(FILE *out, const char *s)
{
	(void)fputc('"', out);
	for (; *s != 0; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			(void)fprintf(out, "\\%c", c);
		else if (c < 0x20)
			(void)fprintf(out, "\\u%04x", c);
		else
			(void)fputc(c, out);
	}
	(void)fputc('"', out);
}

static void pair(FILE *out, const char *key, const char *value, const char *after)
{
	json_string(out, key);
	(void)fputs(":", out);
	json_string(out, value);
	(void)fputs(after, out);
}

static void host_name(char *dst, size_t size)
{
	char raw[256] = "";

	(void)gethostname(raw, sizeof raw - 1);
	text_cut(dst, size, raw);
}

static void stamp(int64_t ms, char *dst, size_t size)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm) == 0 ||
	    str_fmt(dst, size, "%s.%03dZ", text, (int)(ms % 1000)) < 0)
		(void)str_copy(dst, size, "1970-01-01T00:00:00.000Z");
}

static void print_json(const struct run *r, FILE *out)
{
	char host[256], started[48], image[256];
	bool first = true;

	host_name(host, sizeof host);
	stamp(r->started_ms, started, sizeof started);
	text_cut(image, sizeof image, r->s->image != NULL ? r->s->image : "");
	(void)fprintf(out, "{\"schema\":%d,", SCHEMA);
	pair(out, "version", r->s->version != NULL ? r->s->version : "", ",");
	pair(out, "host", host, ",");
	pair(out, "image", image, ",");
	pair(out, "started", started, ",");
	(void)fprintf(out, "\"duration_ms\":%lld,", (long long)r->ms);
	pair(out, "result", verdict_name(run_result(r)), ",");
	(void)fputs("\"checks\":[", out);
	for (int i = 0; i < CHECK__MAX; i++) {
		const struct finding *f = &r->found[i];
		if (!r->wanted[i])
			continue;
		(void)fputs(first ? "{" : ",{", out);
		first = false;
		pair(out, "id", probe_checks[i].id, ",");
		pair(out, "tier", tier_name(probe_checks[i].tier), ",");
		pair(out, "result", verdict_name(f->verdict), ",");
		(void)fprintf(out, "\"ms\":%lld,", (long long)f->ms);
		pair(out, "detail", f->detail, ",");
		pair(out, "remedy", f->remedy, ",");
		pair(out, "action", action_name(f->action), "}");
	}
	(void)fputs("]}\n", out);
}

/* How many checks from `i` on were skipped for the same reason: they share a line. */
static int same_skips(const struct run *r, int i)
{
	int n = 0;

	for (int k = i; k < CHECK__MAX; k++) {
		if (!r->wanted[k])
			continue;
		if (r->found[k].verdict != V_SKIP ||
		    strcmp(r->found[k].detail, r->found[i].detail) != 0)
			break;
		n++;
	}
	return n;
}

static void print_skips(const struct run *r, int i, int n, FILE *out, const char *on,
			const char *off)
{
	(void)fprintf(out, "%sskip   %s %s", on, off, probe_checks[i].id);
	for (int k = i + 1; n > 1 && k < CHECK__MAX; k++)
		if (r->wanted[k]) {
			(void)fprintf(out, " %s", probe_checks[k].id);
			n--;
		}
	(void)fprintf(out, ": %s\n", r->found[i].detail);
}

static void print_lines(const struct run *r, FILE *out, bool colour)
{
	static const char *const paint[V__MAX] = {"\033[32m", "\033[33m", "\033[31m", "\033[2m",
						  "\033[35m"};
	unsigned count[V__MAX] = {0};
	int shown = 0;

	for (int i = 0; i < CHECK__MAX; i++) {
		const struct finding *f = &r->found[i];
		if (!r->wanted[i])
			continue;
		count[f->verdict]++;
		if (f->verdict == V_SKIP) {
			if (shown == 0) {
				shown = same_skips(r, i);
				print_skips(r, i, shown, out, colour ? paint[V_SKIP] : "",
					    colour ? "\033[0m" : "");
			}
			shown--;
			continue;
		}
		(void)fprintf(out, "%s%-7s%s %-17s %6lld ms  %s\n", colour ? paint[f->verdict] : "",
			      verdict_name(f->verdict), colour ? "\033[0m" : "", probe_checks[i].id,
			      (long long)f->ms, f->detail);
		if (f->remedy[0] != 0 && f->verdict != V_PASS && f->verdict != V_SKIP)
			(void)fprintf(out, "%-38s -> %s%s%s%s\n", "", f->remedy,
				      f->action != ACT_NONE ? " [" : "",
				      f->action != ACT_NONE ? action_name(f->action) : "",
				      f->action != ACT_NONE ? "]" : "");
	}
	(void)fprintf(out,
		      "%s: %u passed, %u warned, %u failed, %u unknown, %u skipped in %lld ms\n",
		      verdict_name(run_result(r)), count[V_PASS], count[V_WARN], count[V_FAIL],
		      count[V_UNKNOWN], count[V_SKIP], (long long)r->ms);
}

void report_print(const struct run *r, bool json, FILE *out)
{
	if (json)
		print_json(r, out);
	else
		print_lines(r, out, isatty(fileno(out)) == 1);
	(void)fflush(out);
}

void probes_list(bool json, FILE *out)
{
	for (int i = 0; i < CHECK__MAX; i++) {
		const struct check *k = &probe_checks[i];
		int ms = probe_groups[k->group].budget_ms;
		if (!json) {
			(void)fprintf(out, "%-17s %-5s %-3s %6d ms  %s -> %s%s%s%s\n", k->id,
				      tier_name(k->tier), k->gpu ? "GPU" : "-", ms, k->about,
				      k->remedy, k->action != ACT_NONE ? " [" : "",
				      k->action != ACT_NONE ? action_name(k->action) : "",
				      k->action != ACT_NONE ? "]" : "");
			continue;
		}
		(void)fputs(i == 0 ? "[{" : ",{", out);
		pair(out, "id", k->id, ",");
		pair(out, "tier", tier_name(k->tier), ",");
		(void)fprintf(out, "\"gpu\":%s,\"deadline_ms\":%d,\"exit\":%d,",
			      k->gpu ? "true" : "false", ms, k->code);
		pair(out, "about", k->about, ",");
		pair(out, "remedy", k->remedy, ",");
		pair(out, "action", action_name(k->action), "}");
	}
	if (json)
		(void)fputs("]\n", out);
	(void)fflush(out);
}
