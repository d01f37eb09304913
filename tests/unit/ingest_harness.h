/* A push door's surroundings for tests: the naive store, the real catalog, a virtual clock and a
 * queue that is pumped by hand; and what was stored, as text. */
#ifndef TESTS_UNIT_INGEST_HARNESS_H
#define TESTS_UNIT_INGEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "catalog/catalog.h"
#include "ingest/ingest.h"
#include "naive.h"
#include "marks/store.h"
#include "store/store.h"
#include "wire/number.h"

/* How tracks are opened, where it is not by the store; then whoever keeps marks has a thread of its
 * own, which is waited for. */
typedef struct marks *harness_track_fn(struct store *store, struct clock *clock, int64_t slot_ms,
				       int64_t quiet_ms);
static harness_track_fn *harness_track;

#define HARNESS_NOW_MS INT64_C(1700000000000)

struct harness {
	struct clock_virtual clock;
	struct task_queue queue;
	struct store *store;
	struct marks *marks;
	struct catalog_options catalog_options;
	struct catalog *catalog;
	struct ingest *ingest;
	bool done, resumed, catalog_closed;
};

static inline void harness_done(struct ingest_request *r)
{
	((struct harness *)ingest_owner(r))->done = true;
}

static inline void harness_resume(struct ingest_request *r)
{
	((struct harness *)ingest_owner(r))->resumed = true;
}

static inline struct marks *harness_open_track(struct harness *h,
					       const struct ingest_options *options)
{
	if (harness_track && options)
		return harness_track(h->store, &h->clock.clock, options->rollup_slot_ms,
				     options->rollup_quiet_ms);
	return marks_store_open(
		&(struct marks_store_options){.store = h->store, .writer = SLICE("test")});
}

static inline void harness_open(struct harness *h, const struct ingest_options *options)
{
	clock_virtual_init(&h->clock, HARNESS_NOW_MS * 1000);
	task_queue_init(&h->queue);
	h->store = naive_open(&h->clock.clock);
	if (!h->catalog_options.tags_max)
		h->catalog_options = catalog_options_default();
	h->catalog =
		catalog_new(h->store, &h->clock.clock, &h->queue.executor, &h->catalog_options);
	struct ingest_options all = options ? *options : (struct ingest_options){0};
	h->marks = harness_open_track(h, options);
	all.store = h->store;
	all.marks = h->marks;
	all.catalog = h->catalog;
	all.clock = &h->clock.clock;
	all.executor = &h->queue.executor;
	h->ingest = ingest_new(&all);
}

static inline void harness_catalog_closed(void *owner)
{
	((struct harness *)owner)->catalog_closed = true;
}

static inline void harness_pump(struct harness *h)
{
	while (task_queue_run(&h->queue))
		;
}

static inline void harness_pump_until(struct harness *h, const bool *done)
{
	harness_pump(h);
	while (harness_track && !*done)
		task_queue_wait(&h->queue);
	assert_true(*done);
}

static inline void harness_close(struct harness *h)
{
	harness_pump(h);
	assert_true(ingest_idle(h->ingest));
	ingest_free(h->ingest);
	catalog_close(h->catalog, harness_catalog_closed, h);
	harness_pump(h);
	assert_true(h->catalog_closed);
	marks_close(h->marks);
	store_close(h->store);
	task_queue_release(&h->queue);
}

static inline struct ingest_request *harness_request(struct harness *h)
{
	h->done = h->resumed = false;
	return ingest_request_new(h->ingest, &(struct ingest_door){.done = harness_done,
								   .resume = harness_resume,
								   .owner = h,
								   .keep_source = true});
}

/* Ends the request and pumps until it is done. */
static inline void harness_finish(struct harness *h, struct ingest_request *r)
{
	ingest_request_end(r);
	assert_false(h->done);
	harness_pump_until(h, &h->done);
}

/* ---- What is stored ------------------------------------------------------------------------- */

static inline void harness_write_done(struct store_write *write, int err)
{
	*(int *)write->owner = err;
}

static inline void harness_write(struct harness *h, struct store_write *write)
{
	int result = 1;
	write->executor = &h->queue.executor;
	write->done = harness_write_done;
	write->owner = &result;
	assert_int_equal(store_write_submit(write), 0);
	while (result > 0)
		task_queue_wait(&h->queue);
	assert_int_equal(result, 0);
}

static inline void harness_read_done(struct store_read *read, int err)
{
	*(int *)read->owner = err;
}

static inline void harness_read(struct harness *h, struct store_read *read)
{
	int err = 1;
	read->executor = &h->queue.executor;
	read->done = harness_read_done;
	read->owner = &err;
	read->now_ms = clock_wall_ms(&h->clock.clock);
	assert_int_equal(store_read_submit(read), 0);
	while (err == 1)
		task_queue_wait(&h->queue);
	assert_int_equal(err, 0);
}

struct harness_series {
	char *name;
	uint64_t handle;
};

static inline int harness_by_name(const void *a, const void *b)
{
	return strcmp(((const struct harness_series *)a)->name,
		      ((const struct harness_series *)b)->name);
}

static inline void harness_put_points(const struct store_points *points, struct buf *out)
{
	static const char types[] = "?fiu";
	for (size_t i = 0; i < points->count; i++) {
		char text[NUMBER_PRINT_MAX_BYTES + 1];
		struct value value = {points->bits[0][i], points->types[0][i]};
		text[number_print(text, value)] = 0;
		buf_printf(out, " %lld=%s%c", (long long)points->ts_ms[i], text, types[value.type]);
	}
}

/* `tenant:metric,k=v ts=value<type> ...`, a line per series, in order. To be freed by mem_free. */
static inline char *harness_stored(struct harness *h)
{
	struct store_read *read = store_read_new(h->store, 64 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_LIST);
	harness_read(h, read);
	assert_false(request->more);
	size_t count = request->series_list.count;
	struct harness_series *list = mem_alloc_array(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		const struct store_series *s = &request->series_list.series[i];
		struct buf name;
		buf_init(&name, 65536);
		buf_append(&name, s->tenant.data, s->tenant.len);
		buf_append_char(&name, ':');
		buf_append(&name, s->metric.data, s->metric.len);
		buf_append_text(&name, s->tags_text.len ? "," : "");
		buf_append(&name, s->tags_text.data, s->tags_text.len);
		list[i] = (struct harness_series){mem_copy_text(buf_slice(&name)), s->handle};
		buf_release(&name);
	}
	qsort(list, count, sizeof(*list), harness_by_name);
	struct buf out;
	buf_init(&out, 64 << 20);
	for (size_t i = 0; i < count; i++) {
		store_read_reset(read);
		request = store_read_add(read, STORE_RANGE);
		request->range = (struct store_range){.table = TABLE_DATA_RAW,
						      .handles = &list[i].handle,
						      .handle_count = 1,
						      .start_ms = STORE_TS_MIN,
						      .end_ms = STORE_TS_MAX};
		harness_read(h, read);
		buf_append_text(&out, list[i].name);
		harness_put_points(&request->range.points[0], &out);
		buf_append_char(&out, '\n');
		mem_free(list[i].name);
	}
	buf_append_char(&out, 0);
	char *text = mem_copy_text((struct slice){out.data, out.len - 1});
	buf_release(&out);
	mem_free(list);
	store_read_free(read);
	return text;
}

static inline void harness_expect(struct harness *h, const char *want)
{
	char *got = harness_stored(h);
	assert_string_equal(got, want);
	mem_free(got);
}

#endif
