/* Proxy settings: accepted or refused, and a refusal never repeats the value. */
#include "net/proxy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[4096], name[URL_HOST_MAX + 16];
	struct proxy p;
	struct err e = ERR_INIT;

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (proxy_parse(text, "https_proxy", &p, &e) < 0) {
		if (e.code != XC_CONFIG ||
		    (size > 12 && strlen(text) == size && strstr(e.text, text) != NULL))
			abort();
		return 0;
	}
	if (p.use) {
		if (p.host[0] == 0 || p.port == 0)
			abort();
		proxy_name(&p, name, sizeof name);
		if (p.auth[0] != 0 && strncmp(p.auth, "Basic ", 6) != 0)
			abort();
	}
	proxy_wipe(&p);
	return 0;
}
