/*
 * Files: bounded reads, and writes that are whole or absent. May block on slow file systems, so PID
 * 1 itself uses these only before it supervises anything and on its own state directory.
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* Reads a whole file (regular, pipe or /proc) into `out`, whose limit is the file's. A FIFO that
 * nobody writes gives an empty file rather than a hang (O_NONBLOCK). 0, or -1 with XC_FILES and
 * errno in e->sys. */
int fs_read(int dirfd, const char *path, struct buf *out, struct err *e);

/* Creates or replaces dirfd/name with these bytes: a new file of that exact mode (whatever the
 * umask), created exclusively without following links, synced, renamed over the old one. 0 or -1
 * (XC_FILES); on failure the old file is untouched and nothing is left behind. `name` has no '/'.
 */
int fs_write(int dirfd, const char *name, mode_t mode, const void *data, size_t len, struct err *e);

#endif
