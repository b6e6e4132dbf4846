#include "gh/json.h"

#include "base/str.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory that is wiped ------------------------------------------------------------------- */

/* A block of cJSON's with its size in front, so that releasing it can wipe it. */
union block {
	size_t size;
	max_align_t align;
};

static void *wiped_malloc(size_t n)
{
	union block *b;

	if (n > SIZE_MAX - sizeof *b)
		return NULL;
	b = malloc(sizeof *b + n);
	if (b == NULL)
		return NULL;
	b->size = n;
	return b + 1;
}

static void wiped_free(void *p)
{
	union block *b;

	if (p == NULL)
		return;
	b = (union block *)p - 1;
	explicit_bzero(p, b->size);
	free(b);
}

/* ---- the text, token by token -------------------------------------------------------------- */

struct scan {
	const char *p, *end;
	unsigned depth, values;
};

static bool number_char(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* Past a string whose opening quote was taken. cJSON turns \u0000 into a NUL, where C then sees the
 * end of a shorter string, and takes raw control characters: both are refused here. */
static int scan_string(struct scan *s, const char *what, struct err *e)
{
	while (s->p < s->end && *s->p != '"') {
		unsigned char c = (unsigned char)*s->p;
		if (c < 0x20)
			return err_set(e, XC_PROTOCOL, 0, "%s: control character in a JSON string",
				       what);
		if (c == '\\' && s->end - s->p > 1) {
			if (s->end - s->p > 5 && memcmp(s->p, "\\u0000", 6) == 0)
				return err_set(e, XC_PROTOCOL, 0, "%s: \\u0000 in a JSON string",
					       what);
			s->p++;
		}
		s->p++;
	}
	if (s->p >= s->end)
		return err_set(e, XC_PROTOCOL, 0, "%s: JSON ends inside a string", what);
	s->p++;
	return 0;
}

/* To the next number: 1 with its characters in *num and *len, 0 at the end, -1 with *e. */
static int scan_next(struct scan *s, const char **num, size_t *len, const char *what, struct err *e)
{
	while (s->p < s->end) {
		char c = *s->p;
		if (c == '-' || (c >= '0' && c <= '9')) {
			*num = s->p;
			while (s->p < s->end && number_char(*s->p))
				s->p++;
			*len = (size_t)(s->p - *num);
			return ++s->values > JSON_VALUES_MAX
				       ? err_set(e, XC_PROTOCOL, 0, "%s: too many JSON values",
						 what)
				       : 1;
		}
		s->p++;
		if (c == 0)
			return err_set(e, XC_PROTOCOL, 0, "%s: NUL in JSON", what);
		if (c == '"' && scan_string(s, what, e) < 0)
			return -1;
		if ((c == '{' || c == '[') && ++s->depth > JSON_DEPTH_MAX)
			return err_set(e, XC_PROTOCOL, 0, "%s: JSON nested too deeply", what);
		if ((c == '}' || c == ']') && s->depth > 0)
			s->depth--;
		if ((c == '"' || c == '{' || c == '[' || c == 't' || c == 'f' || c == 'n') &&
		    ++s->values > JSON_VALUES_MAX)
			return err_set(e, XC_PROTOCOL, 0, "%s: too many JSON values", what);
	}
	return 0;
}

/* Before cJSON sees it: bounds on depth and count, and what it would take but must not. */
static int scan_all(const char *text, size_t len, const char *what, struct err *e)
{
	struct scan s = {text, text + len, 0, 0};
	const char *num;
	size_t n;
	int rc;

	do
		rc = scan_next(&s, &num, &n, what, e);
	while (rc == 1);
	return rc;
}

/*
 * Gives each number its digits. cJSON has parsed the text, so it is JSON, so the numbers of the
 * tree in document order are the number tokens of the text in order. The digits go to the node's
 * valuestring, which cJSON leaves NULL for numbers and releases with the node.
 */
static int attach(cJSON *node, struct scan *s, const char *what, struct err *e)
{
	for (; node != NULL; node = node->next) {
		const char *num;
		size_t len;
		if (node->child != NULL && attach(node->child, s, what, e) < 0)
			return -1;
		if (!cJSON_IsNumber(node))
			continue;
		if (scan_next(s, &num, &len, what, e) != 1)
			return err_set(e, XC_BUG, 0, "%s: lost count of the JSON numbers", what);
		node->valuestring = cJSON_malloc(len + 1);
		if (node->valuestring == NULL)
			return err_set(e, XC_SYSTEM, ENOMEM, "%s", what);
		memcpy(node->valuestring, num, len);
		node->valuestring[len] = 0;
	}
	return 0;
}

int json_parse(struct json *j, const void *text, size_t len, enum json_rules rules,
	       const char *what, struct json_at *root, struct err *e)
{
	cJSON_Hooks hooks = {wiped_malloc, wiped_free};
	struct scan s = {text, (const char *)text + len, 0, 0};
	cleanup_buf struct buf copy = {0};

	j->root = NULL;
	if (scan_all(text, len, what, e) < 0)
		return -1;
	cJSON_InitHooks(&hooks);
	/* The terminating NUL is what lets cJSON prove that nothing follows. */
	buf_init(&copy, len + 1);
	if (buf_put(&copy, text, len) < 0 || buf_putc(&copy, 0) < 0)
		return err_set(e, XC_SYSTEM, errno, "%s", what);
	j->root = cJSON_ParseWithLengthOpts((const char *)copy.data, copy.len, NULL, 1);
	if (j->root == NULL)
		return err_set(e, XC_PROTOCOL, 0, "%s: not JSON", what);
	if (!cJSON_IsObject(j->root) && !cJSON_IsArray(j->root)) {
		json_free(j);
		return err_set(e, XC_PROTOCOL, 0, "%s: JSON, but no object", what);
	}
	if (attach(j->root, &s, what, e) < 0) {
		json_free(j);
		return -1;
	}
	memset(root, 0, sizeof *root);
	root->node = j->root;
	root->rules = rules;
	root->what = what;
	return 0;
}

void json_free(struct json *j)
{
	cJSON_Delete(j->root);
	j->root = NULL;
}

bool json_is_array(const struct json_at *at)
{
	return cJSON_IsArray(at->node);
}

/* ---- getters -------------------------------------------------------------------------------- */

static int bad(const struct json_at *at, const char *name, const char *why, struct err *e)
{
	return err_set(e, XC_PROTOCOL, 0, "%s: field \"%s%s%s\" %s", at->what, at->path,
		       at->path[0] != 0 ? "." : "", name, why);
}

static bool same_name(const struct json_at *at, const cJSON *item, const char *name)
{
	if (item->string == NULL)
		return false;
	return at->rules == JSON_LOOSE ? str_eq_nocase(item->string, name)
				       : strcmp(item->string, name) == 0;
}

/* 1 with *out, 0 absent, -1 with *e. */
static int find(const struct json_at *at, const char *name, enum json_need need, const cJSON **out,
		struct err *e)
{
	const cJSON *hit = NULL;

	if (!cJSON_IsObject(at->node))
		return err_set(e, XC_PROTOCOL, 0, "%s: %s%s is no object", at->what,
			       at->path[0] != 0 ? "" : "the root", at->path);
	for (const cJSON *i = at->node->child; i != NULL; i = i->next) {
		if (!same_name(at, i, name))
			continue;
		if (hit != NULL)
			return bad(at, name, "is there twice", e);
		hit = i;
	}
	if (hit != NULL && at->wrapped && cJSON_IsObject(hit))
		hit = cJSON_GetObjectItemCaseSensitive(hit, "$value");
	if (hit == NULL || cJSON_IsNull(hit))
		return need == JSON_REQUIRED ? bad(at, name, "is missing", e) : 0;
	*out = hit;
	return 1;
}

int json_str(const struct json_at *at, const char *name, enum json_need need, char *dst,
	     size_t size, struct err *e)
{
	const cJSON *i = NULL;
	int rc = find(at, name, need, &i, e);

	if (rc != 1)
		return rc;
	if (!cJSON_IsString(i))
		return bad(at, name, "is not a string", e);
	if (need == JSON_REQUIRED && i->valuestring[0] == 0)
		return bad(at, name, "is empty", e);
	if (strlen(i->valuestring) >= size)
		return bad(at, name, "is too long", e);
	for (const char *p = i->valuestring; *p != 0; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return bad(at, name, "has control characters", e);
	(void)str_copy(dst, size, i->valuestring);
	return 1;
}

int json_secret(const struct json_at *at, const char *name, enum json_need need, struct secret *dst,
		struct err *e)
{
	const cJSON *i = NULL;
	int rc = find(at, name, need, &i, e);

	if (rc != 1)
		return rc;
	if (!cJSON_IsString(i))
		return bad(at, name, "is not a string", e);
	if (i->valuestring[0] == 0)
		return bad(at, name, "is empty", e);
	for (const char *p = i->valuestring; *p != 0; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return bad(at, name, "has characters that no credential has", e);
	if (secret_set(dst, i->valuestring, strlen(i->valuestring)) < 0)
		return bad(at, name, "is too long", e);
	return 1;
}

int json_u64(const struct json_at *at, const char *name, enum json_need need, uint64_t min,
	     uint64_t max, uint64_t *out, struct err *e)
{
	const cJSON *i = NULL;
	int rc = find(at, name, need, &i, e);

	if (rc != 1)
		return rc;
	if (!cJSON_IsNumber(i) && !(at->rules == JSON_LOOSE && cJSON_IsString(i)))
		return bad(at, name, "is not a number", e);
	if (str_u64(i->valuestring, min, max, out) < 0)
		return bad(at, name, "is no whole number in range", e);
	return 1;
}

int json_bool(const struct json_at *at, const char *name, enum json_need need, bool *out,
	      struct err *e)
{
	const cJSON *i = NULL;
	int rc = find(at, name, need, &i, e);

	if (rc != 1)
		return rc;
	if (cJSON_IsBool(i)) {
		*out = cJSON_IsTrue(i) != 0;
		return 1;
	}
	if (at->rules == JSON_LOOSE && cJSON_IsString(i)) {
		bool yes = str_eq_nocase(i->valuestring, "true");
		if (yes || str_eq_nocase(i->valuestring, "false")) {
			*out = yes;
			return 1;
		}
	}
	return bad(at, name, "is neither true nor false", e);
}

static int step_into(const struct json_at *at, const char *name, const cJSON *i,
		     struct json_at *out, struct err *e)
{
	struct json_at next = *at;

	next.node = i;
	next.wrapped = false;
	if (str_fmt(next.path, sizeof next.path, "%s%s%s", at->path, at->path[0] != 0 ? "." : "",
		    name) < 0)
		return bad(at, name, "is nested too deeply", e);
	*out = next;
	return 1;
}

int json_obj(const struct json_at *at, const char *name, enum json_need need, struct json_at *out,
	     struct err *e)
{
	const cJSON *i = NULL;
	int rc = find(at, name, need, &i, e);

	if (rc != 1)
		return rc;
	if (!cJSON_IsObject(i))
		return bad(at, name, "is not an object", e);
	return step_into(at, name, i, out, e);
}

int json_arr(const struct json_at *at, const char *name, enum json_need need, struct json_at *out,
	     struct err *e)
{
	const cJSON *i = NULL;
	int rc = find(at, name, need, &i, e);

	if (rc != 1)
		return rc;
	if (!cJSON_IsArray(i))
		return bad(at, name, "is not an array", e);
	return step_into(at, name, i, out, e);
}

static const cJSON *advance(const struct json_at *at, struct json_cursor *c)
{
	if (c->started)
		c->index++;
	c->next = c->started ? (c->next != NULL ? c->next->next : NULL) : at->node->child;
	c->started = true;
	return c->next;
}

int json_each(const struct json_at *arr, struct json_cursor *c, struct json_at *out, struct err *e)
{
	const cJSON *i = advance(arr, c);
	char index[32];

	if (i == NULL)
		return 0;
	(void)str_fmt(index, sizeof index, "%u", c->index);
	if (!cJSON_IsObject(i))
		return bad(arr, index, "is not an object", e);
	return step_into(arr, index, i, out, e);
}

const char *json_next_name(const struct json_at *obj, struct json_cursor *c)
{
	const cJSON *i = advance(obj, c);

	return i != NULL ? i->string : NULL;
}

const char *json_cursor_str(const struct json_at *obj, const struct json_cursor *c)
{
	(void)obj;
	return c->next != NULL && cJSON_IsString(c->next) ? c->next->valuestring : NULL;
}

/* ---- writer --------------------------------------------------------------------------------- */

static void put(struct json_out *o, const void *p, size_t n)
{
	if (!o->failed && buf_put(o->b, p, n) < 0)
		o->failed = true;
}

static void puts_(struct json_out *o, const char *s)
{
	put(o, s, strlen(s));
}

static void newline(struct json_out *o)
{
	if (!o->pretty)
		return;
	puts_(o, "\n");
	for (unsigned i = 0; i < o->depth; i++)
		puts_(o, "  ");
}

static void quoted(struct json_out *o, const char *s, size_t n)
{
	static const char hex[] = "0123456789abcdef";

	puts_(o, "\"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '"' || c == '\\') {
			char esc[2] = {'\\', (char)c};
			put(o, esc, 2);
		} else if (c < 0x20 || c == 0x7f) {
			char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
			put(o, esc, 6);
		} else {
			put(o, &s[i], 1);
		}
	}
	puts_(o, "\"");
}

static void begin_value(struct json_out *o, const char *key)
{
	if (o->comma)
		puts_(o, ",");
	if (o->depth > 0)
		newline(o);
	if (key != NULL) {
		quoted(o, key, strlen(key));
		puts_(o, o->pretty ? ": " : ":");
	}
	o->comma = true;
}

void jo_begin(struct json_out *o, struct buf *b, bool pretty)
{
	memset(o, 0, sizeof *o);
	o->b = b;
	o->pretty = pretty;
}

void jo_open(struct json_out *o, const char *key, char bracket)
{
	begin_value(o, key);
	put(o, &bracket, 1);
	o->depth++;
	o->comma = false;
}

void jo_close(struct json_out *o, char bracket)
{
	bool empty = !o->comma;

	o->depth--;
	if (!empty)
		newline(o);
	put(o, &bracket, 1);
	o->comma = true;
}

void jo_str(struct json_out *o, const char *key, const char *value)
{
	jo_strn(o, key, value, strlen(value));
}

void jo_strn(struct json_out *o, const char *key, const char *value, size_t n)
{
	begin_value(o, key);
	quoted(o, value, n);
}

void jo_u64(struct json_out *o, const char *key, uint64_t value)
{
	char text[24];

	begin_value(o, key);
	if (str_fmt(text, sizeof text, "%llu", (unsigned long long)value) < 0)
		o->failed = true;
	puts_(o, text);
}

void jo_bool(struct json_out *o, const char *key, bool value)
{
	begin_value(o, key);
	puts_(o, value ? "true" : "false");
}

int jo_end(struct json_out *o)
{
	return o->failed ? -1 : 0;
}
