/*
 * JSON at the border. Reading: fields are fetched by name, type and range, and the error names the
 * field and the answer it is missing from. Writing: into a buffer with a limit, escaping what must
 * be escaped. gh/json.c is the only file that includes cJSON.
 *
 * Numbers. cJSON keeps a number as a double, which has 53 bits; ids of runners may have 64. So the
 * text is walked a second time after parsing, in the same order as the tree, and each number node
 * gets its own digits (json.c says how); integers are read from those and never pass a double.
 *
 * Secrets. Every byte that cJSON allocates is wiped before it is released, on all paths, also those
 * on which parsing fails.
 */
#ifndef GH_JSON_H
#define GH_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX	64     /* nesting of arrays and objects */
#define JSON_VALUES_MAX 200000 /* strings, numbers, containers in one document */

struct cJSON; /* the library's node; nobody else looks inside */

/* What an answer's fields are compared and typed by. */
enum json_rules {
	JSON_STRICT, /* names as written; numbers are numbers, booleans booleans */
	JSON_LOOSE,  /* names in any case; "123" counts as 123 and "True" as true: .NET's reader */
	JSON__MAX
};

enum json_need { JSON_REQUIRED, JSON_OPTIONAL };

/* A parsed document. */
struct json {
	struct cJSON *root; /* owned; NULL: none */
};

/* An object or array inside a document: a view, valid as long as the document. */
struct json_at {
	const struct cJSON *node;
	enum json_rules rules;
	bool wrapped;	  /* members may be {"$type":..,"$value":V}: pipelines' properties */
	const char *what; /* the answer, for errors; borrowed */
	char path[128];	  /* where in it, "" at the root */
};

/* Parses `len` bytes of text and gives the root, which must be an object (or array). `what` names
 * the document in errors ("answer to register"), borrowed. Refused: what is not JSON, trailing
 * text, too deep, too many values, control characters or \u0000 inside a string. 0, or -1 with
 * XC_PROTOCOL. Always initialises *j. */
int json_parse(struct json *j, const void *text, size_t len, enum json_rules rules,
	       const char *what, struct json_at *root, struct err *e);
void json_free(struct json *j); /* wipes; safe on an initialised or zeroed document */

bool json_is_array(const struct json_at *at);

/*
 * Getters. `at` must be an object. 1: found; 0: optional and absent or null (the output is then
 * untouched); -1 with XC_PROTOCOL: required and absent, of another type, out of range, too long, or
 * there twice.
 */
int json_str(const struct json_at *at, const char *name, enum json_need need, char *dst,
	     size_t size, struct err *e);
int json_secret(const struct json_at *at, const char *name, enum json_need need, struct secret *dst,
		struct err *e);
int json_u64(const struct json_at *at, const char *name, enum json_need need, uint64_t min,
	     uint64_t max, uint64_t *out, struct err *e);
int json_bool(const struct json_at *at, const char *name, enum json_need need, bool *out,
	      struct err *e);
int json_obj(const struct json_at *at, const char *name, enum json_need need, struct json_at *out,
	     struct err *e);
int json_arr(const struct json_at *at, const char *name, enum json_need need, struct json_at *out,
	     struct err *e);

/* Elements of an array and members of an object in order. Begin with *cursor NULL. True with the
 * next one. */
struct json_cursor {
	const struct cJSON *next;
	unsigned index;
	bool started;
};
/* Next element, which must be an object: 1, 0 at the end, -1 with *e when it is none. */
int json_each(const struct json_at *arr, struct json_cursor *c, struct json_at *out, struct err *e);
/* Next member of an object: its name (borrowed), 0 at the end. */
const char *json_next_name(const struct json_at *obj, struct json_cursor *c);
/* The string value of the member that json_next_name gave last, or NULL when it is no string. */
const char *json_cursor_str(const struct json_at *obj, const struct json_cursor *c);

/*
 * Writer. Errors stick: json_end says at last whether all went in (0, or -1). Keys are literals.
 */
struct json_out {
	struct buf *b; /* borrowed */
	bool comma, failed;
	unsigned depth;
	bool pretty; /* two blanks a level, as the agent's own files */
};

void jo_begin(struct json_out *o, struct buf *b, bool pretty);
void jo_open(struct json_out *o, const char *key, char bracket); /* '{' or '[' ; key NULL: none */
void jo_close(struct json_out *o, char bracket);		 /* '}' or ']' */
void jo_str(struct json_out *o, const char *key, const char *value);
void jo_strn(struct json_out *o, const char *key, const char *value, size_t n);
void jo_u64(struct json_out *o, const char *key, uint64_t value);
void jo_bool(struct json_out *o, const char *key, bool value);
int jo_end(struct json_out *o);

#endif
