/* Response heads: whole or in pieces, the outcome is the same; a complete one can be searched. The
 * first byte says how large the pieces are. */
#include "net/httpparse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_head whole, step;
	enum http_parsed a, b = HP_MORE;
	size_t piece, n = 0, len = 0;
	int64_t ms;

	if (size < 1)
		return 0;
	piece = data[0] + 1u;
	data++;
	size--;
	memset(&whole, 0, sizeof whole);
	memset(&step, 0, sizeof step);
	a = http_head_parse(&whole, data, size, 4096);
	while (b == HP_MORE && n < size) {
		unsigned char *copy;
		n = n + piece < size ? n + piece : size;
		copy = malloc(n); /* exactly so large: one byte too far is seen */
		if (copy == NULL)
			abort();
		memcpy(copy, data, n);
		b = http_head_parse(&step, copy, n, 4096);
		free(copy);
	}
	if (size > 0 && a != b)
		abort();
	if (a == HP_REFUSE && whole.why == NULL)
		abort();
	if (a != HP_DONE)
		return 0;
	if (whole.size != step.size || whole.size > size || whole.size > 4096 ||
	    whole.status < 100 || whole.status > 599)
		abort();
	(void)http_head_persists(&whole, http_head_framing(&whole, false));
	if (whole.has_length && http_header_find(data, whole.size, "content-length", &len) == NULL)
		abort();
	if (http_header_find(data, whole.size, "date", &len) != NULL && len < 64) {
		char text[64];
		memcpy(text, http_header_find(data, whole.size, "date", &len), len);
		text[len] = 0;
		(void)http_date_parse(text, &ms);
	}
	return 0;
}
