/*
 * The only source of randomness that Mbed TLS gets: getrandom(2). Called with no flags it waits
 * until the kernel's pool is seeded and then never blocks; at most 256 bytes are asked for, which
 * it gives without being interrupted.
 */
#include <mbedtls/build_info.h>

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

#include <mbedtls/entropy.h>

int mbedtls_hardware_poll(void *data, unsigned char *output, size_t len, size_t *olen);

int mbedtls_hardware_poll(void *data, unsigned char *output, size_t len, size_t *olen)
{
	ssize_t n;

	(void)data;
	*olen = 0;
	if (len > 256)
		len = 256;
	do {
		n = getrandom(output, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return MBEDTLS_ERR_ENTROPY_SOURCE_FAILED;
	*olen = (size_t)n;
	return 0;
}
