/* Input that ends where memory ends: the byte after it cannot be read without a crash. */
#ifndef TESTS_UNIT_GUARD_H
#define TESTS_UNIT_GUARD_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guarded {
	unsigned char *map;
	size_t size;
	unsigned char *p; /* the copy */
};

static inline struct guarded guard(const void *data, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (len / page + 1) * page;
	struct guarded g = {NULL, room + page, NULL};

	g.map = mmap(NULL, g.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g.map == MAP_FAILED || mprotect(g.map + room, page, PROT_NONE) < 0)
		abort();
	g.p = g.map + room - len;
	if (len > 0)
		memcpy(g.p, data, len);
	return g;
}

static inline void unguard(struct guarded *g)
{
	(void)munmap(g->map, g->size);
}

#endif
