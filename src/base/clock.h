/* The only thing that knows the time. Everything above takes a struct clock, so that a test can put
 * it on a virtual one. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

struct clock {
	int64_t (*wall_us)(struct clock *clock); /* since the epoch, UTC; may jump */
	int64_t (*mono_us)(struct clock *clock); /* never goes back; for intervals and deadlines */
};

struct clock *clock_real(void);

struct clock_virtual {
	struct clock clock;
	_Atomic int64_t wall_us, mono_us;
};

void clock_virtual_init(struct clock_virtual *clock, int64_t wall_us);
void clock_virtual_advance(struct clock_virtual *clock, int64_t by_us);

static inline int64_t clock_wall_ms(struct clock *clock)
{
	return floor_div(clock->wall_us(clock), 1000);
}

static inline int64_t clock_mono_ms(struct clock *clock)
{
	return clock->mono_us(clock) / 1000;
}

#endif
