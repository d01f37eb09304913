/* The same tests over each driver of tracking (marks/marks.h): the store, and a real Redis that
 * the test starts. */
#ifndef TESTS_UNIT_ROLLUP_DRIVERS_H
#define TESTS_UNIT_ROLLUP_DRIVERS_H

#include "redis_server.h"

#include "marks/redis/redis.h"
#include "marks/store.h"

struct driver {
	struct redis_server redis;
	bool in_redis;
	int64_t late_after_ms;
};

static struct driver driver;

static inline struct marks *driver_open_redis(struct store *store, struct clock *clock,
					      int64_t slot_ms, int64_t quiet_ms)
{
	struct marks *marks;
	struct errbuf e;
	struct marks_redis_options options = {.store = store,
					      .clock = clock,
					      .url = {.port = (int)driver.redis.port},
					      .separator = ':',
					      .writer = SLICE("w"),
					      .slot_ms = slot_ms,
					      .quiet_ms = quiet_ms,
					      .late_after_ms = driver.late_after_ms};
	snprintf(options.url.host, sizeof(options.url.host), "127.0.0.1");
	ASSERT(marks_redis_open(&options, &marks, &e) == 0);
	ASSERT(!marks_state(marks).degraded);
	return marks;
}

/* A track with nothing in it. */
static inline struct marks *driver_open(struct store *store, struct clock *clock, int64_t slot_ms,
					int64_t quiet_ms)
{
	if (!driver.in_redis)
		return marks_store_open(
			&(struct marks_store_options){.store = store, .writer = SLICE("w")});
	redis_say(&driver.redis, "FLUSHALL");
	return driver_open_redis(store, clock, slot_ms, quiet_ms);
}

/* Runs the tests with the store, then with Redis; returns how many failed. */
#define driver_run(tests)                                                                          \
	(driver_run_store(cmocka_run_group_tests_name("store", tests, NULL, NULL)) +               \
	 driver_stop(cmocka_run_group_tests_name("Redis", tests, NULL, NULL)))

/* From here on it is Redis. */
static inline int driver_run_store(int failed)
{
	driver.in_redis = true;
	redis_start(&driver.redis);
	return failed;
}

static inline int driver_stop(int failed)
{
	redis_kill(&driver.redis);
	return failed;
}

#endif
