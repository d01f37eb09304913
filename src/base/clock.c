#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
	struct timespec now;
	ASSERT(clock_gettime(id, &now) == 0);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t real_wall_us(UNUSED struct clock *clock)
{
	return read_us(CLOCK_REALTIME);
}

static int64_t real_mono_us(UNUSED struct clock *clock)
{
	return read_us(CLOCK_MONOTONIC);
}

struct clock *clock_real(void)
{
	static struct clock real = {real_wall_us, real_mono_us};
	return &real;
}

static int64_t virtual_wall_us(struct clock *clock)
{
	return CONTAINER_OF(clock, struct clock_virtual, clock)->wall_us;
}

static int64_t virtual_mono_us(struct clock *clock)
{
	return CONTAINER_OF(clock, struct clock_virtual, clock)->mono_us;
}

void clock_virtual_init(struct clock_virtual *clock, int64_t wall_us)
{
	clock->clock = (struct clock){virtual_wall_us, virtual_mono_us};
	clock->wall_us = wall_us;
	clock->mono_us = 0;
}

void clock_virtual_advance(struct clock_virtual *clock, int64_t by_us)
{
	clock->wall_us += by_us;
	clock->mono_us += by_us;
}
