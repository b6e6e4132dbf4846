/*
 * The two sources of the installed runner's version. Pure; for gh/version.c and its tests.
 */
#ifndef GH_VERSION_H
#define GH_VERSION_H

#include "base/err.h"

#include <stddef.h>

/* From the text of bin/Runner.Listener.deps.json. 0 or -1. */
int version_from_deps(const void *text, size_t len, char *dst, size_t size, struct err *e);

/* From what `Runner.Listener --version` printed. 0 or -1 (XC_FILES). */
int version_from_output(const char *text, char *dst, size_t size, struct err *e);

#endif
