/* The setters: one value, trimmed and not empty, becomes a typed field or a reason. */
#include "base/str.h"
#include "gh/scope.h"
#include "init/setting.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void *field(const struct setting *s, struct config *c)
{
	return (unsigned char *)c + s->at;
}

static bool has_control(const char *v)
{
	for (; *v != 0; v++)
		if ((unsigned char)*v < 0x20 || *v == 0x7f)
			return true;
	return false;
}

/* Printable: no control character and valid UTF-8, which is what JSON can carry. */
static int printable(const char *v, struct err *e)
{
	char copy[4096];

	if (str_copy(copy, sizeof copy, v) < 0)
		return err_set(e, XC_CONFIG, 0, "is longer than %zu bytes", sizeof copy - 1);
	str_printable(copy);
	if (strcmp(copy, v) != 0)
		return err_set(e, XC_CONFIG, 0, "holds control characters or is not UTF-8");
	return 0;
}

static int copy_text(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	if (printable(v, e) < 0)
		return -1;
	if (strlen(v) >= s->size)
		return err_set(e, XC_CONFIG, 0, "is longer than %zu bytes (it has %zu)",
			       s->size - 1, strlen(v));
	return str_copy(field(s, c), s->size, v);
}

/* What several settings make together, or what the reader takes apart itself. */
int set_nothing(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	(void)v;
	(void)c;
	(void)e;
	return 0;
}

int set_bool(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	if (str_bool(v, field(s, c)) < 0)
		return err_set(e, XC_CONFIG, 0, "is neither yes nor no");
	return 0;
}

int set_duration(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	int64_t ms;

	if (str_duration_ms(v, &ms) < 0)
		return err_set(e, XC_CONFIG, 0, "is not a duration of at most 30 days");
	if (ms < s->min || ms > s->max)
		return err_set(e, XC_CONFIG, 0, "is out of range");
	memcpy(field(s, c), &ms, sizeof ms);
	return 0;
}

int set_bytes(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	uint64_t n;

	if (str_bytes(v, &n) < 0)
		return err_set(e, XC_CONFIG, 0, "is not a size");
	memcpy(field(s, c), &n, sizeof n);
	return 0;
}

int set_count(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	uint64_t n;
	unsigned u;

	if (str_u64(v, (uint64_t)s->min, (uint64_t)s->max, &n) < 0)
		return err_set(e, XC_CONFIG, 0, "is not such a number");
	u = (unsigned)n;
	memcpy(field(s, c), &u, sizeof u);
	return 0;
}

/* "auto" is -1: the check knows what the model does. */
int set_floor(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	size_t whole = strspn(v, "0123456789"),
	       part = v[whole] == '.' ? strspn(v + whole + 1, "0123456789") + 1 : 0;
	double d = -1;

	if (strcasecmp(v, "auto") != 0) {
		if (whole == 0 || whole > 9 || part == 1 || v[whole + part] != 0)
			return err_set(e, XC_CONFIG, 0, "is not such a number");
		d = strtod(v, NULL);
	}
	memcpy(field(s, c), &d, sizeof d);
	return 0;
}

int set_text(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	if (c->labels_prefix == (char *)field(s, c) && strchr(v, ',') != NULL)
		return err_set(e, XC_CONFIG, 0, "holds a comma");
	return copy_text(s, v, c, e);
}

int set_path(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	if (v[0] != '/')
		return err_set(e, XC_CONFIG, 0, "is not an absolute path");
	return copy_text(s, v, c, e);
}

size_t config_unfold_pem(char *text, size_t len)
{
	size_t o = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\' && i + 1 < len && text[i + 1] == 'n') {
			text[o++] = '\n';
			i++;
		} else if (text[i] == '\\' && i + 1 < len && text[i + 1] == 'r') {
			i++;
		} else if (text[i] != '\r') {
			text[o++] = text[i];
		}
	}
	text[o] = 0;
	return o;
}

/* The App's key. What is inside is checked where the keys are; here it must look like one. */
int set_secret(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	struct secret *to = field(s, c);
	size_t n;

	if (secret_set(to, v, strlen(v)) < 0)
		return err_set(e, XC_CONFIG, 0, "is longer than %d bytes", SECRET_MAX - 1);
	n = config_unfold_pem(to->bytes, to->len);
	explicit_bzero(to->bytes + n, to->len - n);
	to->len = n;
	if (strstr(to->bytes, "-----BEGIN ") == NULL || strstr(to->bytes, "-----END ") == NULL)
		err_set(e, XC_CONFIG, 0, "is not a PEM text (-----BEGIN ... PRIVATE KEY-----)");
	else if (strstr(to->bytes, "ENCRYPTED") != NULL)
		err_set(e, XC_CONFIG, 0, "is encrypted with a passphrase; give it without one");
	else if (strstr(to->bytes, "PRIVATE KEY-----") == NULL)
		err_set(e, XC_CONFIG, 0, "is a PEM text, but no private key");
	else
		return 0;
	secret_wipe(to);
	return -1;
}

/* Goes into an HTTP header or is base64: a blank or a line break inside is a paste gone wrong. */
int set_token(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	for (const char *p = v; *p != 0; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return err_set(e, XC_CONFIG, 0,
				       "holds a blank, a line break or a character beyond ASCII");
	if (secret_set(field(s, c), v, strlen(v)) < 0)
		return err_set(e, XC_CONFIG, 0, "is longer than %d bytes", SECRET_MAX - 1);
	return 0;
}

int set_url(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (gh_scope_parse(v, c->force_ghes, &c->gh.scope, e) < 0)
		return -1;
	c->gh.have_scope = true;
	return 0;
}

static uint32_t hash32(const char *s)
{
	uint64_t h = 1469598103934665603ULL; /* FNV-1a */

	for (; *s != 0; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211ULL;
	return (uint32_t)(h ^ (h >> 32));
}

int config_default_name(const char *host, char *dst, size_t size)
{
	size_t n = strlen(host), keep = size - 10; /* "-" and eight digits */
	char hash[16];

	if (n == 0 || strcmp(host, "(none)") == 0 ||
	    str_fmt(hash, sizeof hash, "-%08x", hash32(host)))
		return -1;
	(void)str_copyn(dst, size, host, n < size ? n : keep);
	if (n >= size)
		memcpy(dst + keep, hash, strlen(hash) + 1);
	for (char *p = dst; *p != 0; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f || strchr("\"\\/,", *p))
			*p = '-';
	return 0;
}

int set_name(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (printable(v, e) < 0)
		return -1;
	if (strlen(v) >= sizeof c->gh.name)
		return err_set(e, XC_CONFIG, 0, "is longer than 64 bytes (it has %zu)", strlen(v));
	return str_copy(c->gh.name, sizeof c->gh.name, v);
}

static int add_label(struct gh_settings *g, const char *p, size_t n, struct err *e)
{
	char one[GH_LABEL_MAX], shown[64];

	str_show(shown, sizeof shown, p, n);
	if (str_copyn(one, sizeof one, p, n) < 0)
		return err_set(e, XC_CONFIG, 0,
			       "holds a label that is longer than 256 bytes (%zu): %s", n, shown);
	for (unsigned i = 0; i < g->n_labels; i++)
		if (str_eq_nocase(g->labels[i], one))
			return 0;
	if (g->n_labels >= GH_LABELS_MAX)
		return err_set(e, XC_CONFIG, 0, "holds more than %d labels", GH_LABELS_MAX);
	return str_copy(g->labels[g->n_labels++], GH_LABEL_MAX, one);
}

int set_labels(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (has_control(v))
		return err_set(e, XC_CONFIG, 0, "holds control characters");
	c->gh.n_labels = 0;
	while (*v != 0) {
		size_t piece = strcspn(v, ","), n = piece;
		const char *p = v;

		while (n > 0 && *p == ' ') {
			p++;
			n--;
		}
		while (n > 0 && p[n - 1] == ' ')
			n--;
		if (n > 0 && add_label(&c->gh, p, n, e) < 0) {
			c->gh.n_labels = 0;
			return -1;
		}
		v += piece + (v[piece] == ',' ? 1 : 0);
	}
	return 0;
}

int set_group(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	return copy_text(s, v, c, e);
}

/* True when `..` is one of the path's parts. */
static bool goes_up(const char *path)
{
	for (const char *p = path; *p != 0; p += strcspn(p, "/")) {
		p += strspn(p, "/");
		if (strcspn(p, "/") == 2 && p[0] == '.' && p[1] == '.')
			return true;
	}
	return false;
}

int set_work(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	if (goes_up(v))
		return err_set(e, XC_CONFIG, 0, "has .. among its parts");
	return copy_text(s, v, c, e);
}

/* Made absolute; whether the agent is in it is looked at by the reader, which has the user by then.
 */
int set_root(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	char cwd[1024];

	if (v[0] == '/')
		return copy_text(s, v, c, e);
	if (getcwd(cwd, sizeof cwd) == NULL)
		return err_set(e, XC_CONFIG, 0,
			       "is relative, and the working directory has no name");
	if (printable(v, e) < 0)
		return -1;
	if (str_fmt(c->root, sizeof c->root, "%s/%s", cwd, v) < 0) {
		c->root[0] = 0;
		return err_set(e, XC_CONFIG, 0, "is too long");
	}
	return 0;
}

int set_user(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	return user_find(v, &c->user, e);
}

int set_app_id(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	for (const char *p = v; *p != 0; p++)
		if (!((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
		      (*p >= 'A' && *p <= 'Z') || *p == '.' || *p == '_' || *p == '-'))
			return err_set(e, XC_CONFIG, 0,
				       "is neither an App's id (a number) nor a client id (Iv...)");
	return copy_text(s, v, c, e);
}

int set_installation(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (str_u64(v, 1, INT64_MAX, &c->gh.cred.app_installation) < 0)
		return err_set(e, XC_CONFIG, 0, "is not a positive number");
	return 0;
}

int set_gate(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (str_eq_nocase(v, "off"))
		c->gate = TIER_OFF;
	else if (str_eq_nocase(v, "fast"))
		c->gate = TIER_FAST;
	else if (str_eq_nocase(v, "deep"))
		c->gate = TIER_DEEP;
	else
		return err_set(e, XC_CONFIG, 0, "is no tier of the gate");
	return 0;
}

int set_gpu(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (str_eq_nocase(v, "auto"))
		c->gpu = PROBE_GPU_AUTO;
	else if (str_eq_nocase(v, "required"))
		c->gpu = PROBE_GPU_REQUIRED;
	else if (str_eq_nocase(v, "off"))
		c->gpu = PROBE_GPU_OFF;
	else
		return err_set(e, XC_CONFIG, 0, "is none of the three");
	return 0;
}

int set_log_form(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (!str_eq_nocase(v, "text") && !str_eq_nocase(v, "json"))
		return err_set(e, XC_CONFIG, 0, "is neither text nor json");
	c->log_json = str_eq_nocase(v, "json");
	return 0;
}

int set_log_level(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	(void)s;
	if (log_level_parse(v, &c->log_level) < 0)
		return err_set(e, XC_CONFIG, 0, "is no level");
	return 0;
}

/* The agent ignores a proxy that it cannot parse and then goes out directly; better to be told. */
int set_proxy(const struct setting *s, const char *v, struct config *c, struct err *e)
{
	const char *host = strstr(v, "://");

	if (host != NULL && strncasecmp(v, "http://", 7) != 0 && strncasecmp(v, "https://", 8) != 0)
		return err_set(e, XC_CONFIG, 0, "is neither an http nor an https proxy");
	host = host != NULL ? host + 3 : v;
	if (*host == 0 || *host == '/' || strpbrk(v, " \t\"<>") != NULL)
		return err_set(e, XC_CONFIG, 0, "names no host");
	return copy_text(s, v, c, e);
}
