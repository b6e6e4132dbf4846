/* A command line, arguments divided by NUL. Refusals are usage errors with one printable line; what
 * is accepted points into the arguments. */
#include "base/str.h"
#include "init/cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[4096], *argv[64];
	struct err e = ERR_INIT;
	struct cli c;
	size_t n = 1, at = 0;

	size = size < sizeof text ? size : sizeof text - 1;
	memcpy(text, data, size);
	text[size] = 0;
	argv[0] = text + size; /* "" */
	while (at < size && n < 60) {
		argv[n++] = text + at;
		at += strlen(text + at) + 1;
	}
	argv[n] = NULL;
	if (cli_parse(argv, &c, &e) < 0) {
		char copy[ERR_TEXT_MAX];
		(void)str_copy(copy, sizeof copy, e.text);
		str_printable(copy);
		if (e.code != XC_USAGE || e.text[0] == 0 || strcmp(copy, e.text) != 0)
			abort();
		return 0;
	}
	if ((c.form == CLI_LIFE) != (n == 1) || (c.form == CLI_CMD && c.cmd[0] == NULL) ||
	    c.form >= CLI__MAX)
		abort();
	return 0;
}
