/* RUNNER_URL and tenant URLs: what is accepted is https and has an entity without dots or escapes.
 */
#include "gh/scope.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct err e = ERR_INIT;
	struct gh_scope s, again;
	char text[4096];

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (gh_scope_parse(text, false, &s, &e) < 0) {
		if (e.code != XC_CONFIG || e.text[0] == 0)
			abort();
		return 0;
	}
	if (!s.web.tls || s.entity[0] != '/' || strstr(s.entity, "..%") != NULL ||
	    strstr(s.entity, "/../") != NULL)
		abort();
	/* what it is stored as means the same */
	if (gh_scope_parse(s.url, false, &again, &e) < 0 || strcmp(again.entity, s.entity) != 0)
		abort();
	(void)gh_scope_check_tenant(&s, text, &e);
	return 0;
}
