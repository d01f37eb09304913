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

static int64_t real_steady_us(UNUSED struct clock *clock)
{
	return read_us(CLOCK_BOOTTIME);
}

struct clock *clock_real(void)
{
	static struct clock real = {
		.wall_us = real_wall_us,
		.mono_us = real_mono_us,
		.steady_us = real_steady_us,
	};
	return &real;
}

int64_t clock_thread_us(void)
{
	return read_us(CLOCK_THREAD_CPUTIME_ID);
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
	clock->clock = (struct clock){.wall_us = virtual_wall_us, .mono_us = virtual_mono_us};
	clock->wall_us = wall_us;
	clock->mono_us = 0;
}

void clock_virtual_advance(struct clock_virtual *clock, int64_t by_us)
{
	clock->wall_us += by_us;
	clock->mono_us += by_us;
}

/* ---- What is thought of it ------------------------------------------------------------------- */

void clock_judge(struct clock *clock, struct clock_judgement *judgement)
{
	int64_t wall_us;
	if (clock->judge) {
		clock->judge(clock, judgement);
		return;
	}
	wall_us = clock->wall_us(clock);
	*judgement = (struct clock_judgement){.wall_us = wall_us, .sure_us = wall_us};
}

void clock_accept(struct clock *clock)
{
	if (clock->accept)
		clock->accept(clock);
}

bool clock_is_doubted(struct clock *clock)
{
	struct clock_judgement judgement;
	clock_judge(clock, &judgement);
	return judgement.doubted;
}

int64_t clock_age_ms(struct clock *clock)
{
	struct clock_judgement judgement;
	clock_judge(clock, &judgement);
	bool is_ahead = judgement.wall_us > judgement.sure_us;
	return floor_div(is_ahead ? judgement.sure_us : judgement.wall_us, 1000);
}

int64_t clock_sure_ms(struct clock *clock)
{
	struct clock_judgement judgement;
	clock_judge(clock, &judgement);
	return floor_div(judgement.sure_us, 1000);
}
