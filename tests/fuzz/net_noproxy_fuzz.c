/* no_proxy: the first line is the URL, the rest the list. A lone star always matches; an empty list
 * never does. */
#include "net/proxy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[4096], list[4200];
	char *eol;
	struct url u;

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	eol = strchr(text, '\n');
	if (eol == NULL)
		return 0;
	*eol = 0;
	if (url_parse(text, &u, NULL) < 0)
		return 0;
	(void)proxy_bypassed(eol + 1, &u);
	if (proxy_bypassed("", &u) != proxy_bypassed(NULL, &u))
		abort();
	if (!proxy_bypassed("x.invalid,*", &u))
		abort();
	/* adding an entry can only add matches */
	memcpy(list, "added.invalid,", 14);
	memcpy(list + 14, eol + 1, strlen(eol + 1) + 1);
	if (proxy_bypassed(eol + 1, &u) && !proxy_bypassed(list, &u))
		abort();
	return 0;
}
