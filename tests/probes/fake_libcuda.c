/*
 * A libcuda.so.1 of one card, in host memory, for the checks that speak CUDA's driver interface.
 * FAKE_CUDA: "init=CODE", "context=CODE", "flip" (one bit of what is written is wrong when read),
 * "slow" (copies crawl), "abort", "hang"; unset: healthy.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *mode(void)
{
	const char *m = getenv("FAKE_CUDA");

	return m == NULL ? "" : m;
}

static int code_of(const char *what)
{
	size_t n = strlen(what);

	return strncmp(mode(), what, n) == 0 ? atoi(mode() + n) : 0;
}

int cuInit(unsigned flags);
int cuDeviceGetCount(int *n);
int cuDeviceGet(int *dev, int i);
int cuDeviceGetName(char *name, int size, int dev);
int cuGetErrorName(int code, const char **text);
int cuCtxCreate_v2(void **ctx, unsigned flags, int dev);
int cuCtxDestroy_v2(void *ctx);
int cuCtxSynchronize(void);
int cuMemGetInfo_v2(size_t *free_, size_t *total);
int cuMemAlloc_v2(uint64_t *p, size_t n);
int cuMemFree_v2(uint64_t p);
int cuMemAllocHost_v2(void **p, size_t n);
int cuMemsetD32_v2(uint64_t p, unsigned v, size_t n);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n);

int cuInit(unsigned flags)
{
	if (strcmp(mode(), "abort") == 0)
		abort();
	while (strcmp(mode(), "hang") == 0)
		pause();
	return flags != 0 ? 1 : code_of("init=");
}

int cuDeviceGetCount(int *n)
{
	*n = strcmp(mode(), "none") == 0 ? 0 : 1;
	return 0;
}

int cuDeviceGet(int *dev, int i)
{
	*dev = i;
	return 0;
}

int cuDeviceGetName(char *name, int size, int dev)
{
	(void)dev;
	snprintf(name, (size_t)size, "Fake H200");
	return 0;
}

int cuGetErrorName(int code, const char **text)
{
	*text = code == 802   ? "CUDA_ERROR_SYSTEM_NOT_READY"
		: code == 804 ? "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
		: code == 999 ? "CUDA_ERROR_UNKNOWN"
			      : "CUDA_ERROR_OTHER";
	return 0;
}

int cuCtxCreate_v2(void **ctx, unsigned flags, int dev)
{
	(void)flags;
	(void)dev;
	*ctx = (void *)1;
	return code_of("context=");
}

int cuCtxDestroy_v2(void *ctx)
{
	(void)ctx;
	return 0;
}

int cuCtxSynchronize(void)
{
	return 0;
}

int cuMemGetInfo_v2(size_t *free_, size_t *total)
{
	*free_ = *total = 260UL << 20; /* the check takes at most half: keep the test small */
	return 0;
}

int cuMemAlloc_v2(uint64_t *p, size_t n)
{
	void *q = malloc(n);

	*p = (uint64_t)(uintptr_t)q;
	return q == NULL ? 2 : 0;
}

int cuMemFree_v2(uint64_t p)
{
	free((void *)(uintptr_t)p);
	return 0;
}

int cuMemAllocHost_v2(void **p, size_t n)
{
	*p = malloc(n);
	return *p == NULL ? 2 : 0;
}

int cuMemsetD32_v2(uint64_t p, unsigned v, size_t n)
{
	uint32_t *q = (uint32_t *)(uintptr_t)p;

	for (size_t i = 0; i < n; i++)
		q[i] = v;
	return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n)
{
	memcpy((void *)(uintptr_t)to, from, n);
	if (strcmp(mode(), "flip") == 0)
		((unsigned char *)(uintptr_t)to)[n / 3] ^= 4;
	if (strcmp(mode(), "slow") == 0)
		(void)poll(NULL, 0, 200);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n)
{
	memcpy(to, (const void *)(uintptr_t)from, n);
	return 0;
}
