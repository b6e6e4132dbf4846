/*
 * Directories that jobs write to: made and proved in the job's own rights. Runs in a child; may
 * block on the file system.
 */
#ifndef INIT_DIRS_H
#define INIT_DIRS_H

#include "base/err.h"

#include <stdbool.h>

/* Walks the absolute `path` part by part from /, and with `make` creates what is missing (0775 less
 * umask; a setgid bit is inherited from the parent, as the kernel does it). A link is followed only
 * if root or this process's user owns it: anybody else could have planted it. Existing directories
 * are never changed. Returns an O_PATH descriptor of the directory, owned by the caller, or -1 with
 * XC_FILES; `what` (a setting's name) and the remedy are in the text. */
int dirs_walk(const char *path, bool make, const char *what, struct err *e);

/* dirs_walk, then creates, writes and removes a file in it. 0 or -1 (XC_FILES). */
int dirs_prove(const char *path, bool make, const char *what, struct err *e);

/* That this directory and every one above it can be listed, which the agent insists on. 0 or -1. */
int dirs_listable(const char *path, const char *what, struct err *e);

#endif
