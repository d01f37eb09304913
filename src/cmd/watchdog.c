#include "cmd/watchdog.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/supervisor.h"
#include "loop/loop.h"

enum { FEEDS_A_TIME = 4 }; /* one that comes late is not missed */

struct watchdog {
	struct clock *clock;
	const struct watched *watched;
	size_t count;
	int64_t bound_ms, interval_ms;
	int64_t looked_ms, awake_ms;
	const struct watched *stands; /* as it was seen the last time; NULL: all move */
	struct loop_timer *timer;
};

/* A process that was stopped, or a machine that slept, has nothing that hangs. */
static void watchdog_note_sleep(struct watchdog *w, int64_t now_ms)
{
	if (now_ms - w->looked_ms > 2 * w->interval_ms)
		w->awake_ms = now_ms;
	w->looked_ms = now_ms;
}

static const struct watched *watchdog_find_standing(const struct watchdog *w, int64_t now_ms)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct watched *one = &w->watched[i];
		int64_t moved_ms = larger_of(one->moved_ms(one->owner), w->awake_ms);
		if (now_ms - moved_ms > w->bound_ms + one->more_ms)
			return one;
	}
	return NULL;
}

static void watchdog_look(void *owner)
{
	struct watchdog *w = owner;
	int64_t now_ms = clock_mono_ms(w->clock);
	watchdog_note_sleep(w, now_ms);
	const struct watched *stands = watchdog_find_standing(w, now_ms), *before = w->stands;
	w->stands = stands;
	if (stands && stands != before) {
		log_error("%s has not moved for more than %lld s: the supervisor's watchdog is not "
			  "fed until it does, so the supervisor will restart this process",
			  stands->name, (long long)(w->bound_ms + stands->more_ms) / 1000);
		supervisor_tell("STATUS=%s does not move", stands->name);
	}
	if (stands) {
		stat_add(STAT_watchdog_unfed, 1);
		return;
	}
	if (before) {
		log_info("%s moves again", before->name);
		supervisor_tell("STATUS=ready");
	}
	supervisor_tell("WATCHDOG=1");
}

struct watchdog *watchdog_new(struct loop *loop, struct clock *clock, const struct watched *watched,
			      size_t count)
{
	int64_t bound_ms = supervisor_watchdog_ms();
	if (bound_ms <= 0)
		return NULL;
	struct watchdog *w = mem_zalloc(sizeof(*w));
	*w = (struct watchdog){
		.clock = clock,
		.watched = watched,
		.count = count,
		.bound_ms = bound_ms,
		.interval_ms = larger_of(bound_ms / FEEDS_A_TIME, 1),
		.looked_ms = clock_mono_ms(clock),
	};
	w->timer = loop_timer_new(loop, watchdog_look, w);
	loop_timer_start(w->timer, 0, (uint64_t)w->interval_ms);
	return w;
}

void watchdog_free(struct watchdog *watchdog)
{
	if (!watchdog)
		return;
	loop_timer_close(watchdog->timer);
	mem_free(watchdog);
}
