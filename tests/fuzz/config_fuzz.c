/*
 * An environment, entries divided by NUL: read as the life cycle would. Whatever it holds, the
 * typed values keep their limits, every message is one printable line without the secret, and the
 * agent gets none of what it must not have.
 */
#include "base/str.h"
#include "init/files.h"
#include "init/setting.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config c;
static struct config_reading r;
static char text[32768], *envp[256];

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* Entries of the input, less those that name files to be read: the fuzzer must not choose these. */
static void split(const uint8_t *data, size_t size)
{
	size_t n = 0, at = 0;

	size = size < sizeof text ? size : sizeof text - 1;
	memcpy(text, data, size);
	text[size] = 0;
	while (at < size && n < 250) {
		char *entry = text + at;
		at += strlen(entry) + 1;
		if (strstr(entry, "_FILE=") == NULL)
			envp[n++] = entry;
	}
	envp[n] = NULL;
}

static void check_messages(void)
{
	size_t len;
	const char *token = config_value(envp, "RUNNER_TOKEN", &len);
	static char secret[4096], copy[sizeof r.problems[0].text];

	for (unsigned i = 0; i < r.n_problems; i++) {
		check(str_copy(copy, sizeof copy, r.problems[i].text) == 0);
		str_printable(copy);
		check(strcmp(copy, r.problems[i].text) == 0);
		if (token == NULL || len < 8 || str_copyn(secret, sizeof secret, token, len) < 0 ||
		    strcmp(r.problems[i].var, "RUNNER_TOKEN") != 0)
			continue;
		check(strstr("the value (not shown) holds a blank, a line break or a character "
			     "beyond ASCII; accepted: one word without blanks",
			     secret) != NULL ||
		      strstr(copy, secret) == NULL);
	}
}

static void check_values(void)
{
	check(strlen(c.gh.name) < GH_NAME_MAX);
	check(c.gh.n_labels <= GH_LABELS_MAX);
	for (unsigned i = 0; i < c.gh.n_labels; i++)
		check(c.gh.labels[i][0] != 0 && strlen(c.gh.labels[i]) < GH_LABEL_MAX);
	check(c.stop_ms >= 3000 || c.stop_ms == 0);
	check(c.gate >= TIER_OFF && c.gate < TIER__MAX);
	for (unsigned i = 0; i < c.n_caches; i++)
		check(c.caches[i].path[0] == '/' && c.caches[i].var[0] != 0);
	for (const char *const *e = c.probe.envp; *e != NULL; e++)
		check(!str_starts(*e, "INIT_") && !str_starts(*e, "RUNNER_TOKEN=") &&
		      !str_starts(*e, "ACCESS_TOKEN=") && !str_starts(*e, "APP_PRIVATE_KEY="));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char dotenv[65536];

	memset(&c, 0, sizeof c);
	memset(&r, 0, sizeof r);
	split(data, size);
	(void)config_collect(&c, envp, CONFIG_LIFE, &r);
	check_messages();
	check_values();
	(void)files_dotenv(text, c.probe.envp, dotenv, sizeof dotenv);
	config_wipe_environ(envp);
	for (char **e = envp; *e != NULL; e++)
		check(!str_starts(*e, "RUNNER_TOKEN=") && !str_starts(*e, "ACCESS_TOKEN="));
	return 0;
}
