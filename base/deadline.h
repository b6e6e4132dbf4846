/*
 * Absolute deadlines on the monotonic clock. One per operation, passed down; never one per call.
 * A `struct deadline` is a value: copy it freely. Resolution: one millisecond.
 */
#ifndef BASE_DEADLINE_H
#define BASE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline {
	int64_t at_ms; /* CLOCK_MONOTONIC, milliseconds; INT64_MAX: never */
};

#define DEADLINE_NEVER ((struct deadline){INT64_MAX})

int64_t clock_mono_ms(void); /* CLOCK_MONOTONIC now, ms */
int64_t clock_real_ms(
	void); /* CLOCK_REALTIME now, ms since 1970: log stamps, certificates, tokens */

struct deadline deadline_in(int64_t ms); /* ms from now; negative: already passed */
struct deadline deadline_min(struct deadline a, struct deadline b);
struct deadline deadline_minus(struct deadline d,
			       int64_t ms); /* that much earlier; NEVER stays NEVER */
bool deadline_passed(struct deadline d);
int64_t deadline_left_ms(struct deadline d); /* 0 when passed, INT64_MAX when never */

/* Time left as poll(2) takes it: -1 never, 0 passed, else ms rounded up and clamped to INT_MAX. */
int deadline_poll_ms(struct deadline d);

#endif
