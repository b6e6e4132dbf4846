/*
 * The out-of-memory counter of init's own cgroup, so that "killed" can be told from "killed for
 * memory". Reads files of the kernel's own making, which never block.
 */
#ifndef INIT_OOM_H
#define INIT_OOM_H

#include <stdint.h>

/* oom_kill of memory.events (v2) or memory.oom_control (v1); -1 when neither can be read. */
int64_t oom_kills(void);

/* Pure, for the tests: the number after `key` at the start of a line of `text`; -1: none. */
int64_t oom_field(const char *text, const char *key);

#endif
