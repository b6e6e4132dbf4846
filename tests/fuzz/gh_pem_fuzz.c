/* The App's key: any bytes, PEM or not; what is taken can sign. */
#include "gh/key.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct err e = ERR_INIT;
	struct secret s;
	struct buf jwt;
	struct key *k;

	if (secret_set(&s, (const char *)data, size) < 0)
		return 0;
	k = key_from_pem(&s, &e);
	if (k == NULL) {
		if (e.code != XC_CONFIG || e.text[0] == 0)
			abort();
		return 0;
	}
	buf_init(&jwt, 8192);
	(void)key_sign_jwt(k, KEY_RS256, "{\"iss\":\"1\"}", &jwt, &e);
	buf_free(&jwt);
	key_free(k);
	return 0;
}
