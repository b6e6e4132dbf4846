/* The JSON getters: any text, read by every type; numbers keep the digits that the text has. */
#include "gh/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void read_all(const struct json_at *at, unsigned depth)
{
	static const char *const names[] = {"id", "name", "value", "a", "properties", "token"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct json_cursor c = {0};
		struct json_at sub, one;
		struct secret secret;
		struct err e = ERR_INIT;
		char text[64];
		uint64_t n;
		bool b;
		(void)json_str(at, names[i], JSON_OPTIONAL, text, sizeof text, &e);
		(void)json_secret(at, names[i], JSON_REQUIRED, &secret, &e);
		(void)json_u64(at, names[i], JSON_OPTIONAL, 1, UINT64_MAX, &n, &e);
		(void)json_bool(at, names[i], JSON_REQUIRED, &b, &e);
		if (json_obj(at, names[i], JSON_OPTIONAL, &sub, &e) == 1 && depth < 4) {
			sub.wrapped = depth % 2 == 0;
			read_all(&sub, depth + 1);
		}
		if (json_arr(at, names[i], JSON_OPTIONAL, &sub, &e) == 1 && depth < 4)
			while (json_each(&sub, &c, &one, &e) == 1)
				read_all(&one, depth + 1);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	for (int rules = 0; rules < JSON__MAX; rules++) {
		struct json_cursor c = {0};
		struct err e = ERR_INIT;
		struct json_at at;
		struct json j;
		const char *name;
		if (json_parse(&j, data, size, (enum json_rules)rules, "fuzz", &at, &e) < 0) {
			if (e.text[0] == 0 || j.root != NULL)
				abort();
			continue;
		}
		if (!json_is_array(&at))
			read_all(&at, 0);
		while (!json_is_array(&at) && (name = json_next_name(&at, &c)) != NULL)
			if (strlen(name) > size)
				abort();
		json_free(&j);
	}
	return 0;
}
