/* Samples and rows that lie in classes of the store, for tests of what is done with them: the doors
 * of ingest_harness.h, one granularity of an hour that is kept for 365 days, and rules. */
#ifndef TESTS_UNIT_RETENTION_HARNESS_H
#define TESTS_UNIT_RETENTION_HARNESS_H

#include "ingest_harness.h"

#include "retention/usage_walk.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

struct classed {
	struct harness h;
	struct granularities granularities;
	struct retention_rules rules;
	struct store_write *write;
	int err; /* what the last call ended with */
};

static inline void classed_open(struct classed *c, const char *const *items, size_t count)
{
	struct errbuf e;
	*c = (struct classed){.err = 0};
	c->granularities = (struct granularities){
		.slot_ms = HOUR_MS, .count = 1, .list = {{HOUR_MS, 365 * DAY_MS}}};
	assert_int_equal(retention_parse(items, count, &c->granularities, 0, &c->rules, &e), 0);
	harness_open(&c->h, NULL);
	c->write = store_write_new(c->h.store, 16 << 20);
}

static inline void classed_close(struct classed *c)
{
	store_write_free(c->write);
	harness_close(&c->h);
}

static inline uint64_t classed_series(struct classed *c, const char *tenant, const char *metric,
				      int host)
{
	char name[16];
	struct slice metrics = slice_of(metric);
	snprintf(name, sizeof(name), "%d", host);
	struct tag tag = {SLICE("h"), slice_of(name)};
	struct store_read *read = store_read_new(c->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open = (struct store_series_open){
		.tenant = slice_of(tenant), .tags = {&tag, 1}, .metrics = &metrics, .count = 1};
	harness_read(&c->h, read);
	uint64_t handle = request->series_open.handles[0];
	store_read_free(read);
	return handle;
}

/* A raw sample, in the next write. */
static inline void classed_put(struct classed *c, uint64_t handle, enum retention_class retention,
			       int64_t ts_ms)
{
	struct value one = value_i64(1);
	assert_int_equal(store_append(c->write, &(struct store_target){TABLE_DATA_RAW, retention},
				      ts_ms, &handle, 1, &one),
			 0);
}

/* What was put is stored. */
static inline void classed_write(struct classed *c)
{
	harness_write(&c->h, c->write);
	store_write_reset(c->write);
}

static inline struct retention_scope classed_scope(struct classed *c, const char *tenant,
						   const char *metric)
{
	return (struct retention_scope){.store = c->h.store,
					.clock = &c->h.clock.clock,
					.queue = &c->h.queue,
					.granularities = &c->granularities,
					.late_retention_ms = 365 * DAY_MS,
					.rules = &c->rules,
					.tenant = slice_of(tenant),
					.metric = slice_of(metric)};
}

#endif
