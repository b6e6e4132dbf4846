#include "base/deadline.h"

#include <limits.h>
#include <time.h>

static int64_t now_ms(clockid_t clock)
{
	struct timespec t = {0, 0};

	(void)clock_gettime(clock, &t); /* cannot fail for the two clocks that are asked for */
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_mono_ms(void)
{
	return now_ms(CLOCK_MONOTONIC);
}

int64_t clock_real_ms(void)
{
	return now_ms(CLOCK_REALTIME);
}

struct deadline deadline_in(int64_t ms)
{
	int64_t now = clock_mono_ms();

	if (ms > INT64_MAX - 1 - now)
		return DEADLINE_NEVER;
	return (struct deadline){now + ms};
}

struct deadline deadline_min(struct deadline a, struct deadline b)
{
	return a.at_ms < b.at_ms ? a : b;
}

struct deadline deadline_minus(struct deadline d, int64_t ms)
{
	return d.at_ms == INT64_MAX ? d : (struct deadline){d.at_ms - ms};
}

int64_t deadline_left_ms(struct deadline d)
{
	int64_t left;

	if (d.at_ms == INT64_MAX)
		return INT64_MAX;
	left = d.at_ms - clock_mono_ms();
	return left > 0 ? left : 0;
}

bool deadline_passed(struct deadline d)
{
	return deadline_left_ms(d) == 0;
}

int deadline_poll_ms(struct deadline d)
{
	int64_t left = deadline_left_ms(d);

	if (left == INT64_MAX)
		return -1;
	return left > INT_MAX ? INT_MAX : (int)left;
}
