/* Queries over the naive engine, for their tests: a store, its catalog, and what came of a query as
 * text. One queue stands for the loop and is pumped by hand. */
#ifndef TESTS_UNIT_QUERY_HARNESS_H
#define TESTS_UNIT_QUERY_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "naive.h"
#include "query/query.h"
#include "retention/retention.h"

#define T0_MS INT64_C(1600000000000) /* 2020-09-13T12:26:40Z */

static struct clock_virtual clock_;
static struct task_queue loop;
static struct store *store;
static struct catalog *catalog;
static struct query_engine *engine;
static struct query_options options;
static struct retention_rules retention; /* of these */

static inline void pump(void)
{
	while (task_queue_run(&loop))
		;
}

static inline void engine_begin(void)
{
	engine = query_engine_new(&options);
}

static inline void engine_end(void)
{
	pump();
	assert_true(query_engine_idle(engine));
	query_engine_free(engine);
}

static inline void engine_again(void)
{
	engine_end();
	engine_begin();
}

static inline int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&loop);
	store = naive_open(&clock_.clock);
	struct catalog_options catalog_options = catalog_options_default();
	catalog = catalog_new(store, &clock_.clock, &loop.executor, &catalog_options);
	retention = retention_for_ever;
	options = (struct query_options){
		.retention = &retention,
		.store = store,
		.catalog = catalog,
		.clock = &clock_.clock,
		.executor = &loop.executor,
	};
	engine_begin();
	return 0;
}

static inline void closed(void *owner)
{
	*(bool *)owner = true;
}

static inline int teardown(void **state)
{
	(void)state;
	bool is_closed = false;
	engine_end();
	catalog_close(catalog, closed, &is_closed);
	pump();
	assert_true(is_closed);
	store_close(store);
	task_queue_release(&loop);
	return 0;
}

/* ---- Data ---------------------------------------------------------------------------------- */

static inline void opened(struct catalog_open *open)
{
	(void)open;
}

static inline void written(struct store_write *write, int err)
{
	(void)write;
	assert_int_equal(err, 0);
}

static inline uint64_t open_series(const char *tenant, const char *metric, const char *tags)
{
	struct arena arena;
	struct slice name = slice_of(metric);
	uint64_t handle = 0;
	arena_init(&arena, 1 << 20);
	struct catalog_group group = {
		.tenant = slice_of(tenant),
		.metrics = &name,
		.count = 1,
		.handles = &handle,
	};
	assert_int_equal(tags_decode(slice_of(tags), &arena, &group.tags), 0);
	struct catalog_open open = {
		.catalog = catalog,
		.executor = &loop.executor,
		.done = opened,
		.groups = &group,
		.count = 1,
	};
	assert_int_equal(catalog_open_start(&open), 0);
	pump();
	catalog_open_finish(&open, ERR_CANCELLED);
	assert_int_equal(group.err, 0);
	arena_release(&arena);
	return handle;
}

static inline void put_into(enum table table, int64_t period_ms, uint64_t handle, int64_t ts_ms,
			    struct value value)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = &loop.executor;
	write->done = written;
	assert_int_equal(store_append(write,
				      &(struct store_target){table, RETENTION_EVER, period_ms},
				      ts_ms, &handle, 1, &value),
			 0);
	assert_int_equal(store_write_submit(write), 0);
	pump();
	store_write_free(write);
}

static inline void put_value(uint64_t handle, int64_t ts_ms, struct value value)
{
	put_into(TABLE_DATA_RAW, 0, handle, ts_ms, value);
}

static inline void put(uint64_t handle, int64_t ts_ms, double value)
{
	put_value(handle, ts_ms, value_f64(value));
}

/* ---- Queries ------------------------------------------------------------------------------- */

struct asked {
	struct query *query;
	int readies;
	char text[4096]; /* `tags: time=value ...; ` by chunk; a later one of a series has + */
	size_t len;
	size_t take_max;
	struct value value; /* summaries_fold_one */
};

static inline void append_chunk(struct asked *a, const struct query_chunk *chunk)
{
	size_t count;
	const struct catalog_series *series = query_series(a->query, &count);
	assert_true(chunk->series_index < count && chunk->count > 0);
	a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len,
				   "%s%s:", chunk->first ? "" : "+",
				   series[chunk->series_index].tags_text.data);
	for (size_t i = 0; i < chunk->count; i++) {
		struct value v = {chunk->bits[i], (enum value_type)chunk->types[i]};
		a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len, " %lld=%g%s",
					   (long long)(chunk->ts_ms[i] - T0_MS), value_as_f64(v),
					   v.type == VALUE_F64 ? "" : "i");
	}
	a->len += (size_t)snprintf(a->text + a->len, sizeof(a->text) - a->len, "; ");
}

static inline void take_all(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	a->readies++;
	while (query_next(a->query, a->take_max, &chunk))
		append_chunk(a, &chunk);
}

static inline struct query_spec *ask(struct asked *a, query_ready *ready, const char *selectors,
				     int64_t start_ms, int64_t end_ms)
{
	struct errbuf e;
	struct catalog_selector *list;
	memset(a, 0, sizeof(*a));
	a->take_max = 1000;
	a->query = query_new(engine, ready, a);
	list = arena_alloc(&a->query->arena, CATALOG_SELECTORS_MAX * sizeof(*list));
	assert_non_null(list);
	struct query_spec *spec = &a->query->spec;
	*spec = (struct query_spec){
		.tenant = SLICE("t"),
		.metric = SLICE("m"),
		.selectors = list,
		.start_ms = T0_MS + start_ms,
		.end_ms = T0_MS + end_ms,
	};
	if (selectors)
		assert_int_equal(catalog_selectors_parse(slice_of(selectors), &a->query->arena,
							 list, &spec->selector_count, &e),
				 0);
	return spec;
}

static inline void finish(struct asked *a, const char *wanted)
{
	assert_int_equal(query_start(a->query), 0);
	assert_int_equal(a->readies, 0);
	pump();
	assert_true(a->query->ended);
	if (a->query->err)
		fail_msg("%s", a->query->error.text);
	assert_string_equal(a->text, wanted);
	query_free(a->query);
}

static inline void expect(const char *selectors, int64_t start_ms, int64_t end_ms,
			  const char *wanted)
{
	struct asked a;
	ask(&a, take_all, selectors, start_ms, end_ms);
	finish(&a, wanted);
}

static inline void fill(int series, int points)
{
	for (int s = 0; s < series; s++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "h=%c", 'a' + s);
		uint64_t handle = open_series("t", "m", tags);
		for (int i = 0; i < points; i++)
			put(handle, T0_MS + i, i * 10 + s);
	}
}

/* Times ascend by one, and values are the times'. */
static inline void take_in_order(void *owner)
{
	struct asked *a = owner;
	struct query_chunk chunk;
	while (query_next(a->query, 1000, &chunk)) {
		for (size_t i = 0; i < chunk.count; i++, a->len++) {
			struct value v = {chunk.bits[i], (enum value_type)chunk.types[i]};
			assert_int_equal(chunk.ts_ms[i] - T0_MS, a->len);
			assert_int_equal((size_t)value_as_f64(v), a->len);
		}
	}
}

static inline void take_nothing(void *owner)
{
	((struct asked *)owner)->readies++;
}

#endif
