/* HTTP-date, RFC 9110 section 5.6.7: one form to send, three to accept. */
#include "net/httpparse.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct day {
	int year, month, mday, hour, min, sec;
};

static int month_of(const char *m)
{
	static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";

	for (int i = 0; i < 12; i++)
		if (strncasecmp(m, names + i * 3, 3) == 0)
			return i + 1;
	return 0;
}

/* Exactly `n` digits (a leading blank counts as 0 where asctime pads with one): value, or -1. */
static int number(const char *s, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (i == 0 && n == 2 && s[i] == ' ')
			continue;
		if (s[i] < '0' || s[i] > '9')
			return -1;
		v = v * 10 + (s[i] - '0');
	}
	return v;
}

static bool clock_of(const char *s, struct day *d)
{
	d->hour = number(s, 2);
	d->min = number(s + 3, 2);
	d->sec = number(s + 6, 2);
	return s[2] == ':' && s[5] == ':' && d->hour >= 0 && d->hour < 24 && d->min >= 0 &&
	       d->min < 60 && d->sec >= 0 && d->sec <= 60;
}

/* Days since 1970-01-01 of a Gregorian date, by Howard Hinnant's arithmetic of 400-year eras. */
static int64_t days_from(const struct day *d)
{
	int64_t y = d->month <= 2 ? d->year - 1 : d->year;
	int64_t era = y / 400, yoe = y - era * 400;
	int64_t doy = (153 * (d->month + (d->month > 2 ? -3 : 9)) + 2) / 5 + d->mday - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool imf(const char *s, struct day *d)
{
	if (strlen(s) != 29 || s[3] != ',' || s[4] != ' ' || s[7] != ' ' || s[11] != ' ' ||
	    s[16] != ' ' || strcmp(s + 25, " GMT") != 0)
		return false;
	d->mday = number(s + 5, 2);
	d->month = month_of(s + 8);
	d->year = number(s + 12, 4);
	return clock_of(s + 17, d);
}

/* "Sunday, 06-Nov-94 08:49:37 GMT": two digits of a year, taken as 1970 to 2069 */
static bool rfc850(const char *s, struct day *d)
{
	const char *p = strchr(s, ',');

	if (p == NULL || strlen(p) != 24 || p[1] != ' ' || p[4] != '-' || p[8] != '-' ||
	    p[11] != ' ' || strcmp(p + 20, " GMT") != 0)
		return false;
	d->mday = number(p + 2, 2);
	d->month = month_of(p + 5);
	d->year = number(p + 9, 2);
	if (d->year < 0)
		return false;
	d->year += d->year < 70 ? 2000 : 1900;
	return clock_of(p + 12, d);
}

/* "Sun Nov  6 08:49:37 1994" */
static bool asctime_form(const char *s, struct day *d)
{
	if (strlen(s) != 24 || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ')
		return false;
	d->month = month_of(s + 4);
	d->mday = number(s + 8, 2);
	d->year = number(s + 20, 4);
	return clock_of(s + 11, d);
}

int http_date_parse(const char *s, int64_t *ms)
{
	struct day d = {0, 0, 0, 0, 0, 0};

	if (!imf(s, &d) && !rfc850(s, &d) && !asctime_form(s, &d))
		return -1;
	if (d.month == 0 || d.mday < 1 || d.mday > 31 || d.year < 1970)
		return -1;
	*ms = (days_from(&d) * 86400 + d.hour * 3600 + d.min * 60 + d.sec) * 1000;
	return 0;
}
