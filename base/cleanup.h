/*
 * Scope cleanup: one owner for each resource, released when its scope ends.
 *
 *	cleanup_fd int fd = -1;        closed when >= 0, errno kept
 *	cleanup_free char *p = NULL;   freed
 *	return take_fd(&fd);           hands the value to the caller
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_fd_fn(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		(void)close(*fd);
		errno = saved;
		*fd = -1;
	}
}

static inline void cleanup_free_fn(void *pp)
{
	void **p = pp;

	free(*p);
	*p = NULL;
}

static inline int take_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

#define cleanup_fd   __attribute__((cleanup(cleanup_fd_fn)))
#define cleanup_free __attribute__((cleanup(cleanup_free_fn)))

/* Closes *fd when it is open and sets it to -1; errno is kept. */
#define fd_close(fdp) cleanup_fd_fn(fdp)

#endif
