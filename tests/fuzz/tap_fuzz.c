/* Lines of the agent: any bytes are classified without a fault, the same each time, and what comes
 * back is printable and terminated. */
#include "init/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tap_report a, b;
	int r;

	memset(&a, 0xa5, sizeof a);
	memset(&b, 0x5a, sizeof b);
	r = tap_classify((const char *)data, size, &a);
	if (r != tap_classify((const char *)data, size, &b) || (r != 0 && r != 1))
		abort();
	if (r == 0)
		return 0;
	if (memcmp(&a, &b, sizeof a) != 0 || a.line >= TAP_EOF)
		abort();
	if (memchr(a.text, 0, sizeof a.text) == NULL ||
	    memchr(a.result, 0, sizeof a.result) == NULL)
		abort();
	for (const char *p = a.text; *p != 0; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			abort();
	if ((a.line == TAP_JOB_DONE) != (a.result[0] != 0))
		abort();
	return 0;
}
