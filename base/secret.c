#include "base/secret.h"

#include <errno.h>
#include <string.h>

int secret_set(struct secret *s, const char *p, size_t n)
{
	secret_wipe(s);
	if (n >= sizeof s->bytes) {
		errno = EMSGSIZE;
		return -1;
	}
	memcpy(s->bytes, p, n);
	s->bytes[n] = 0;
	s->len = n;
	return 0;
}

void secret_wipe(struct secret *s)
{
	explicit_bzero(s->bytes, s->len < sizeof s->bytes ? s->len : sizeof s->bytes);
	s->len = 0;
	s->bytes[0] = 0;
}
