/* `--check-config`, in words and as JSON; the README's table of settings is made from the latter.
 */
#include "base/buf.h"
#include "base/str.h"
#include "gh/json.h"
#include "init/setting.h"

#include <stdio.h>
#include <string.h>

static const char *source_name(enum config_source s)
{
	static const char *const names[] = {"default", "environment", "file", "found", "not set"};

	return names[s];
}

/* The setting's value in force, for people. "" when there is none. */
static void value_of(unsigned i, const struct config *c, const struct config_reading *r,
		     char *const *envp, char *dst, size_t size)
{
	const struct setting *s = &settings[i];
	char raw[4200];
	const char *v, *text = "";
	size_t len = 0;

	if (s->secret) {
		v = r->source[i] == FROM_ENV || r->source[i] == FROM_FILE ? "set" : "";
		str_show(dst, size, v, strlen(v));
		return;
	}
	v = config_value(envp, s->name, &len);
	if (v == NULL && s->alias != NULL)
		v = config_value(envp, s->alias, &len);
	if (v != NULL) {
		(void)str_copyn(raw, sizeof raw, v, len < sizeof raw ? len : sizeof raw - 1);
		text = raw;
	} else if (s->deflt != NULL) {
		text = s->deflt;
	} else if (strcmp(s->name, "RUNNER_NAME") == 0) {
		text = c->gh.name;
	} else if (strcmp(s->name, "RUNNER_ROOT") == 0) {
		text = c->root;
	} else if (strcmp(s->name, "INIT_CONSTRAINTS") == 0) {
		text = c->constraints;
	}
	config_shown(dst, size, text);
}

static void show_text(const struct config *c, const struct config_reading *r, char *const *envp,
		      FILE *out)
{
	char value[512];

	for (unsigned i = 0; i < settings_n; i++) {
		const struct setting *s = &settings[i];
		const char *d = s->deflt_text != NULL ? s->deflt_text : s->deflt;

		value_of(i, c, r, envp, value, sizeof value);
		(void)fprintf(out, "%s%s%s  [%s%s%s]\n", s->name, value[0] != 0 ? " = " : "", value,
			      source_name(r->source[i]), r->source[i] == FROM_FILE ? " " : "",
			      r->file[i]);
		(void)fprintf(out, "    %s\n    accepted: %s%s%s%s\n", s->meaning, s->accepts,
			      d != NULL ? "; default: " : "", d != NULL ? d : "",
			      s->secret ? "; or a file's path in the same name with _FILE" : "");
	}
	for (unsigned i = 0; i < c->n_caches; i++)
		(void)fprintf(out, "cache %s = %s  [%s]\n", c->caches[i].var, c->caches[i].path,
			      source_name(c->caches[i].defaulted ? FROM_DEFAULT : FROM_ENV));
}

static void show_setting(struct json_out *o, unsigned i, const struct config *c,
			 const struct config_reading *r, char *const *envp)
{
	const struct setting *s = &settings[i];
	char value[2048];

	value_of(i, c, r, envp, value, sizeof value);
	jo_open(o, NULL, '{');
	jo_str(o, "name", s->name);
	if (s->alias != NULL)
		jo_str(o, "alias", s->alias);
	jo_bool(o, "secret", s->secret);
	jo_str(o, "value", value);
	jo_str(o, "source", source_name(r->source[i]));
	if (r->source[i] == FROM_FILE)
		jo_str(o, "file", r->file[i]);
	jo_str(o, "default",
	       s->deflt_text != NULL ? s->deflt_text
	       : s->deflt != NULL    ? s->deflt
				     : "");
	jo_str(o, "accepts", s->accepts);
	jo_str(o, "meaning", s->meaning);
	jo_close(o, '}');
}

static int show_json(const struct config *c, const struct config_reading *r, char *const *envp,
		     FILE *out)
{
	cleanup_buf struct buf b;
	struct json_out o;

	buf_init(&b, 1u << 20);
	jo_begin(&o, &b, true);
	jo_open(&o, NULL, '{');
	jo_u64(&o, "schema", 1);
	jo_open(&o, "settings", '[');
	for (unsigned i = 0; i < settings_n; i++)
		show_setting(&o, i, c, r, envp);
	jo_close(&o, ']');
	jo_open(&o, "caches", '[');
	for (unsigned i = 0; i < c->n_caches; i++) {
		jo_open(&o, NULL, '{');
		jo_str(&o, "name", c->caches[i].var);
		jo_str(&o, "value", c->caches[i].path);
		jo_str(&o, "source", source_name(c->caches[i].defaulted ? FROM_DEFAULT : FROM_ENV));
		jo_close(&o, '}');
	}
	jo_close(&o, ']');
	jo_open(&o, "problems", '[');
	for (unsigned i = 0; i < r->n_problems; i++) {
		jo_open(&o, NULL, '{');
		jo_str(&o, "variable", r->problems[i].var);
		jo_str(&o, "level", r->problems[i].warning ? "warn" : "error");
		jo_str(&o, "text", r->problems[i].text);
		jo_close(&o, '}');
	}
	jo_close(&o, ']');
	jo_u64(&o, "exit", (uint64_t)config_status(r));
	jo_close(&o, '}');
	if (jo_end(&o) < 0)
		return XC_SYSTEM;
	(void)fprintf(out, "%s\n", buf_str(&b));
	return config_status(r);
}

int config_show(struct config *c, char *const *envp, bool json, FILE *out)
{
	static struct config_reading reading;
	int status;

	(void)config_collect(c, envp, CONFIG_LIFE, &reading);
	log_setup(c->log_level, c->log_json);
	status = config_status(&reading);
	if (json)
		status = show_json(c, &reading, envp, out);
	else
		show_text(c, &reading, envp, out);
	(void)fflush(out);
	config_tell(&reading);
	return status;
}
