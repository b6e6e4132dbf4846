/* URLs: what is accepted is canonical, so that writing it down and reading it again changes
 * nothing. */
#include "net/url.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[URL_TEXT_MAX + 64], again[URL_TEXT_MAX];
	struct url u, v;
	struct err e = ERR_INIT;

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (url_parse(text, &u, &e) < 0) {
		if (e.code != XC_CONFIG || e.text[0] == 0)
			abort();
		return 0;
	}
	if (url_text(&u, again, sizeof again) < 0)
		return 0;
	if (url_parse(again, &v, NULL) < 0 || !url_same_origin(&u, &v) ||
	    strcmp(u.path, v.path) != 0)
		abort();
	if (url_join(&u, "a/b", &v) == 0 &&
	    (!url_same_origin(&u, &v) || strstr(v.path, "/a/b") == NULL))
		abort();
	return 0;
}
