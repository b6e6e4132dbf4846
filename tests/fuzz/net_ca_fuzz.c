/* CA bundles, in PEM or DER. */
#include "net/tlsimpl.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	mbedtls_x509_crt list;
	struct buf text;
	unsigned n, seen = 0;

	if (size > 1 << 16)
		return 0;
	mbedtls_x509_crt_init(&list);
	buf_init(&text, 1 << 16);
	if (buf_put(&text, data, size) < 0)
		abort();
	n = tls_ca_parse(&list, &text);
	if (text.len != size || memcmp(text.data, data, size) != 0)
		abort();
	for (const mbedtls_x509_crt *c = &list; c != NULL && c->raw.p != NULL; c = c->next)
		seen++;
	if (seen != n)
		abort();
	mbedtls_x509_crt_free(&list);
	buf_free(&text);
	return 0;
}
