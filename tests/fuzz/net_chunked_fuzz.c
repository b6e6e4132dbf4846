/* Chunked bodies: whole or in pieces of the size that the first byte says, the same bytes come out.
 */
#include "net/httpparse.h"

#include <stdlib.h>
#include <string.h>

static enum http_parsed decode(const uint8_t *in, size_t n, size_t piece, unsigned char *out,
			       size_t *out_len, size_t *taken)
{
	struct http_chunked c;
	enum http_parsed p = HP_MORE;
	size_t at = 0;

	memset(&c, 0, sizeof c);
	*out_len = 0;
	while (p == HP_MORE && at < n) {
		size_t k = n - at < piece ? n - at : piece, used = 0, len = 0;
		const unsigned char *data = NULL;
		unsigned char *copy = malloc(k);
		if (copy == NULL)
			abort();
		memcpy(copy, in + at, k);
		p = http_chunked_parse(&c, copy, k, &used, &data, &len);
		if (used > k || len > used || *out_len + len > n)
			abort();
		if (p == HP_MORE && used == 0)
			abort(); /* would never end */
		if (len > 0)
			memcpy(out + *out_len, data, len);
		*out_len += len;
		at += used;
		free(copy);
	}
	if (p == HP_REFUSE && c.why == NULL)
		abort();
	*taken = at;
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *a, *b;
	size_t na, nb, ta, tb;

	if (size < 2 || size > 1 << 16)
		return 0;
	a = malloc(size);
	b = malloc(size);
	if (a == NULL || b == NULL)
		abort();
	if (decode(data + 1, size - 1, size, a, &na, &ta) !=
		    decode(data + 1, size - 1, data[0] + 1u, b, &nb, &tb) ||
	    na != nb || ta != tb || memcmp(a, b, na) != 0)
		abort();
	free(a);
	free(b);
	return 0;
}
