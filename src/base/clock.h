/* The only thing that knows the time. Everything above takes a struct clock, so that a test can put
 * it on a virtual one. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

/* The judgement of the wall clock (clock_watch.h). */
struct clock_judgement {
	int64_t wall_us;
	int64_t sure_us;  /* where the clock would be without the jump; undoubted: wall_us */
	int64_t stood_us; /* how long it has stood where it is, while it is doubted */
	bool doubted;
};

struct clock {
	int64_t (*wall_us)(struct clock *clock); /* since the epoch, UTC; may jump */
	int64_t (*mono_us)(struct clock *clock); /* never goes back; for intervals and deadlines */
	/* As mono_us, but it goes on while the machine sleeps. NULL: mono_us. */
	int64_t (*steady_us)(struct clock *clock);
	/* NULL: nobody watches this clock, so it is believed. */
	void (*judge)(struct clock *clock, struct clock_judgement *judgement);
	/* Somebody says that what the clock shows is right. NULL: it is believed anyway. */
	void (*accept)(struct clock *clock);
};

struct clock *clock_real(void);

/* CPU time of the calling thread: what it waited, and what others did meanwhile, is not in it. */
int64_t clock_thread_us(void);

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

void clock_judge(struct clock *clock, struct clock_judgement *judgement);

/* An operator says that the clock shows the right time. */
void clock_accept(struct clock *clock);

/* Whether nothing may be removed for its age. */
bool clock_is_doubted(struct clock *clock);

/* The time by which ages are judged wherever the outcome is for good: what is too old to be taken,
 * what has expired before it was used. The wall clock; while that is doubted the earlier of it and
 * of where it would be without its jump, so that nothing is older than it may be. */
int64_t clock_age_ms(struct clock *clock);

/* Where the wall clock would be without a jump that is doubted. */
int64_t clock_sure_ms(struct clock *clock);

#endif
