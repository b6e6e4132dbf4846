/*
 * What a line of the agent means. The texts are those of actions/runner, src/Runner.Listener:
 * Runner.cs, MessageListener.cs, BrokerMessageListener.cs, SelfUpdater.cs, Program.cs,
 * JobDispatcher.cs. A job's name is chosen by strangers, so nothing is looked for inside a line: a
 * text counts at its start, or right behind the time stamp that the agent itself puts there.
 */
#include "init/tap.h"

#include "base/str.h"

#include <string.h>

#define STAMP_BYTES 22 /* "2026-01-31 23:59:59Z: " */

struct text {
	const char *s;
	enum tap_line line;
	bool whole;   /* the line is exactly this; else it begins with it */
	bool stamped; /* behind a time stamp; else at the start of the line */
};

static const struct text texts[] = {
	{"\xe2\x88\x9a Connected to GitHub", TAP_CONNECTED, true, false},
	{"Listening for Jobs", TAP_LISTENING, true, true},
	{"Running job: ", TAP_JOB_STARTED, false, true},
	{"A session for this runner already exists.", TAP_CONFLICT, true, false},
	{"Runner connect error: ", TAP_CONNECT_ERROR, false, true},
	{"Runner reconnected.", TAP_RECONNECTED, true, true},
	{"Failed to create a session. The runner registration has been deleted from the server",
	 TAP_DELETED, false, false},
	{"The runner registration has been deleted from the server", TAP_DELETED, false, false},
	{"The runner no longer exists on the server.", TAP_DELETED, false, false},
	{"Runner update in progress, do not shutdown runner.", TAP_UPDATING, true, false},
	{"Runner update process finished.", TAP_UPDATED, true, false},
	{"Permission to read the directory contents is required for ", TAP_NO_PERMISSION, false,
	 false},
	{"Runner is not configured.", TAP_NOT_CONFIGURED, true, false},
	{"Permission to read the directory contents is required for ", TAP_NO_PERMISSION, false,
	 false},
	{"Exiting...", TAP_EXITING, true, false},
	{"An error occured: ", TAP_VERSION, false,
	 false}, /* so spelled where the version is refused */
};

/* "2026-01-31 23:59:59Z: " */
static bool stamped(const char *line, size_t n)
{
	static const char shape[] = "0000-00-00 00:00:00Z: ";

	if (n < STAMP_BYTES)
		return false;
	for (size_t i = 0; i < STAMP_BYTES; i++) {
		if (shape[i] == '0' ? line[i] < '0' || line[i] > '9' : line[i] != shape[i])
			return false;
	}
	return true;
}

static bool begins(const char *s, size_t n, const char *with)
{
	size_t k = strlen(with);

	return n >= k && memcmp(s, with, k) == 0;
}

static bool holds(const char *s, size_t n, const char *what)
{
	return memmem(s, n, what, strlen(what)) != NULL;
}

/* The words that follow the agent's own prefix of an error; its text comes from .NET or from
 * GitHub, never from a job. */
static enum tap_line error_kind(const char *s, size_t n)
{
	if (holds(s, n, "invalid_client") || holds(s, n, "registration has been deleted") ||
	    holds(s, n, "has been deleted from the server"))
		return TAP_DELETED;
	if (holds(s, n, "deprecated") || holds(s, n, "runner version"))
		return TAP_VERSION;
	if (holds(s, n, "ermission") || holds(s, n, "Access to the path") ||
	    holds(s, n, "denied") || holds(s, n, "Read-only file system"))
		return TAP_NO_PERMISSION;
	if (holds(s, n, "Not configured") || holds(s, n, "not configured"))
		return TAP_NOT_CONFIGURED;
	return TAP_ERROR;
}

/* "Job <name> completed with result: Succeeded": the name may hold anything, so the result is what
 * stands behind the last such phrase, and must be one of the agent's own words. */
static bool job_done(const char *s, size_t n, struct tap_report *out)
{
	static const char phrase[] = " completed with result: ";
	static const char *const results[] = {
		"Succeeded", "SucceededWithIssues", "Failed", "Canceled", "Skipped", "Abandoned"};

	if (!begins(s, n, "Job "))
		return false;
	for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
		size_t k = strlen(results[i]), p = sizeof phrase - 1;

		if (n < 4 + p + k || memcmp(s + n - k, results[i], k) != 0 ||
		    memcmp(s + n - k - p, phrase, p) != 0)
			continue;
		out->line = TAP_JOB_DONE;
		(void)str_copy(out->result, sizeof out->result, results[i]);
		return true;
	}
	return false;
}

static bool known(const char *line, size_t n, bool stamp, struct tap_report *out)
{
	const char *s = stamp ? line + STAMP_BYTES : line;
	size_t k = stamp ? n - STAMP_BYTES : n;

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		const struct text *t = &texts[i];

		if (t->stamped != stamp || !begins(s, k, t->s) || (t->whole && k != strlen(t->s)))
			continue;
		out->line = t->line;
		return true;
	}
	if (stamp)
		return job_done(s, k, out);
	if (begins(s, k, "An error occurred: ") || begins(s, k, "Failed to create session. ")) {
		out->line = error_kind(s, k);
		return true;
	}
	return false;
}

int tap_classify(const char *line, size_t n, struct tap_report *out)
{
	struct tap_report r;

	memset(&r, 0, sizeof r);
	while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == '\n'))
		n--;
	if (!known(line, n, stamped(line, n), &r))
		return 0;
	str_show(r.text, sizeof r.text, line, n);
	*out = r;
	return 1;
}
