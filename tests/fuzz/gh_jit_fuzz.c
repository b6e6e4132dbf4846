/* JIT configurations: the input is the JSON inside (packed here), and also taken as it is. */
#include "gh/b64.h"
#include "gh/internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct gh_runner runner;

static void decode(const char *text, size_t len)
{
	struct err e = ERR_INIT;

	if (jit_decode(text, len, &runner, &e) < 0) {
		if (e.code != XC_CONFIG || runner.n_files != 0)
			abort();
		return;
	}
	if (runner.n_files != 3 || runner.id == 0)
		abort();
	for (unsigned i = 0; i < runner.n_files; i++)
		if (strchr(runner.files[i].name, '/') != NULL || runner.files[i].len > GH_FILE_MAX)
			abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct buf b;

	decode((const char *)data, size);
	buf_init(&b, 100000);
	if (b64_encode(&b, B64_STD, data, size) == 0)
		decode(buf_str(&b), b.len);
	buf_free(&b);
	return 0;
}
