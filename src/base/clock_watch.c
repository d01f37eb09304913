#include "base/clock_watch.h"

enum { FOLLOWS_PART = 100, READS_MAX = 3, READ_MAX_US = 100000 };

static int64_t clock_watch_steady_us(struct clock_watch *watch)
{
	struct clock *under = watch->under;
	return under->steady_us ? under->steady_us(under) : under->mono_us(under);
}

/* Both at one moment: a process that is stopped between the two has not seen the clock jump. */
static int64_t clock_watch_read(struct clock_watch *watch, int64_t *wall_us)
{
	int64_t before_us, after_us = clock_watch_steady_us(watch);
	for (int i = 0; i < READS_MAX; i++) {
		before_us = after_us;
		*wall_us = watch->under->wall_us(watch->under);
		after_us = clock_watch_steady_us(watch);
		if (after_us - before_us < READ_MAX_US)
			break;
	}
	return after_us;
}

static int64_t clock_watch_bound(int64_t us, int64_t most_us)
{
	return us > most_us ? most_us : us < -most_us ? -most_us : us;
}

/* Whether the wall clock is where it is expected; the expectation then follows it. */
static bool clock_watch_stands(struct clock_watch *watch, int64_t *expected_us, int64_t wall_us,
			       int64_t passed_us)
{
	int64_t off_us = wall_us - *expected_us;
	if (off_us > 0 && off_us <= watch->gap_us) {
		watch->gap_us -= off_us;
		*expected_us = wall_us;
		return true;
	}
	if (off_us > CLOCK_TOLERANCE_US || off_us < -CLOCK_TOLERANCE_US)
		return false;
	*expected_us += clock_watch_bound(off_us, passed_us / FOLLOWS_PART);
	return true;
}

static void clock_watch_believe(struct clock_watch *watch, int64_t sure_us)
{
	watch->mark = (struct clock_mark){.sure_us = sure_us};
}

static void clock_watch_doubt(struct clock_watch *watch, int64_t wall_us)
{
	watch->mark.doubted = true;
	watch->mark.shown_us = wall_us;
	watch->mark.stood_us = 0;
}

static void clock_watch_step(struct clock_watch *watch, int64_t wall_us, int64_t passed_us)
{
	struct clock_mark *mark = &watch->mark;
	mark->sure_us += passed_us;
	mark->shown_us += passed_us;
	if (clock_watch_stands(watch, &mark->sure_us, wall_us, mark->doubted ? 0 : passed_us)) {
		clock_watch_believe(watch, mark->sure_us);
		return;
	}
	if (!mark->doubted || !clock_watch_stands(watch, &mark->shown_us, wall_us, passed_us)) {
		clock_watch_doubt(watch, wall_us);
		return;
	}
	mark->stood_us += passed_us;
	if (mark->stood_us >= CLOCK_STANDS_US)
		clock_watch_believe(watch, wall_us);
}

/* Under the lock; gives what the wall clock shows. */
static int64_t clock_watch_look(struct clock_watch *watch)
{
	int64_t wall_us, steady_us = clock_watch_read(watch, &wall_us);
	int64_t passed_us = steady_us - watch->looked_us;
	if (steady_us - watch->opened_us > CLOCK_SETTLES_US)
		watch->gap_us = 0;
	watch->looked_us = steady_us;
	clock_watch_step(watch, wall_us, passed_us > 0 ? passed_us : 0);
	return wall_us;
}

static struct clock_watch *clock_watch_of(struct clock *clock)
{
	return CONTAINER_OF(clock, struct clock_watch, clock);
}

static int64_t watched_wall_us(struct clock *clock)
{
	struct clock *under = clock_watch_of(clock)->under;
	return under->wall_us(under);
}

static int64_t watched_mono_us(struct clock *clock)
{
	struct clock *under = clock_watch_of(clock)->under;
	return under->mono_us(under);
}

static int64_t watched_steady_us(struct clock *clock)
{
	return clock_watch_steady_us(clock_watch_of(clock));
}

static void watched_judge(struct clock *clock, struct clock_judgement *judgement)
{
	struct clock_watch *watch = clock_watch_of(clock);
	pthread_mutex_lock(&watch->lock);
	int64_t wall_us = clock_watch_look(watch);
	const struct clock_mark *mark = &watch->mark;
	*judgement = (struct clock_judgement){
		.wall_us = wall_us,
		.sure_us = mark->doubted ? mark->sure_us : wall_us,
		.stood_us = mark->stood_us,
		.doubted = mark->doubted,
	};
	pthread_mutex_unlock(&watch->lock);
}

static void watched_accept(struct clock *clock)
{
	struct clock_watch *watch = clock_watch_of(clock);
	pthread_mutex_lock(&watch->lock);
	clock_watch_believe(watch, clock_watch_look(watch));
	pthread_mutex_unlock(&watch->lock);
}

void clock_watch_init(struct clock_watch *watch, struct clock *under)
{
	int64_t wall_us;
	*watch = (struct clock_watch){
		.clock = {watched_wall_us, watched_mono_us, watched_steady_us, watched_judge,
			  watched_accept},
		.under = under,
	};
	pthread_mutex_init(&watch->lock, NULL);
	watch->opened_us = watch->looked_us = clock_watch_read(watch, &wall_us);
	clock_watch_believe(watch, wall_us);
}

void clock_watch_resume(struct clock_watch *watch, const struct clock_mark *known)
{
	pthread_mutex_lock(&watch->lock);
	watch->mark = *known;
	watch->gap_us = CLOCK_GAP_US;
	clock_watch_look(watch);
	pthread_mutex_unlock(&watch->lock);
}

void clock_watch_release(struct clock_watch *watch)
{
	pthread_mutex_destroy(&watch->lock);
}

void clock_watch_mark(struct clock_watch *watch, struct clock_mark *mark)
{
	pthread_mutex_lock(&watch->lock);
	clock_watch_look(watch);
	*mark = watch->mark;
	pthread_mutex_unlock(&watch->lock);
}
