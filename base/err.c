#include "base/err.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t used(int n, size_t max)
{
	if (n < 0)
		return 0;
	return (size_t)n < max ? (size_t)n : max - 1;
}

int err_set(struct err *e, int code, int sys, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (e == NULL)
		return -1;
	e->code = code;
	e->sys = sys;
	va_start(ap, fmt);
	n = used(vsnprintf(e->text, sizeof e->text, fmt, ap), sizeof e->text);
	va_end(ap);
	if (sys != 0)
		(void)used(snprintf(e->text + n, sizeof e->text - n, ": %s", strerror(sys)),
			   sizeof e->text - n);
	str_printable(e->text);
	return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	char head[ERR_TEXT_MAX], tail[ERR_TEXT_MAX];
	va_list ap;

	if (e == NULL)
		return -1;
	va_start(ap, fmt);
	(void)used(vsnprintf(head, sizeof head, fmt, ap), sizeof head);
	va_end(ap);
	memcpy(tail, e->text, sizeof tail);
	(void)str_fmt(e->text, sizeof e->text, "%s: %s", head, tail); /* cut when too long */
	str_printable(e->text);
	return -1;
}
