/* A walk over series: which of them it gives, how it ends; and how a group is parted where
 * something of it is damaged. */
#include "ingest_harness.h"

#include "store/series_walk.h"

struct walked {
	struct harness h;
	struct task_queue queue; /* the walk's */
	struct buf seen;         /* `tenant:metric` of each series, a bar behind a group */
	size_t series, groups, most;
	size_t stop_at; /* after so many groups; 0: never */
	int err;
};

static void begin(struct walked *w)
{
	*w = (struct walked){0};
	harness_open(&w->h, NULL);
	task_queue_init(&w->queue);
	buf_init(&w->seen, 1 << 20);
}

static void end(struct walked *w)
{
	buf_release(&w->seen);
	task_queue_release(&w->queue);
	harness_close(&w->h);
}

/* The handle of the last. */
static uint64_t add_series(struct walked *w, const char *tenant, const char *metric, size_t count)
{
	struct store_read *read = store_read_new(w->h.store, 1 << 20);
	uint64_t handle = 0;
	for (size_t i = 0; i < count; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%zu", i);
		struct tag tag = {SLICE("h"), slice_of(text)};
		struct slice metrics = slice_of(metric);
		store_read_reset(read);
		struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
		request->series_open = (struct store_series_open){.tenant = slice_of(tenant),
								  .tags = {&tag, 1},
								  .metrics = &metrics,
								  .count = 1};
		harness_read(&w->h, read);
		handle = request->series_open.handles[0];
	}
	store_read_free(read);
	return handle;
}

static struct series_walk *walk_of(struct walked *w, const char *tenant, const char *metric)
{
	return series_walk_new(&(struct series_walk_options){.store = w->h.store,
							     .clock = &w->h.clock.clock,
							     .queue = &w->queue,
							     .tenant = slice_of(tenant),
							     .metric = slice_of(metric),
							     .group_max = 4,
							     .list_max_bytes = 1 << 20});
}

static void see(struct walked *w, const struct series_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct store_series *series = &group->series[i];
		assert_true(group->handles[i] == series->handle);
		buf_append(&w->seen, series->tenant.data, series->tenant.len);
		buf_append_char(&w->seen, ':');
		buf_append(&w->seen, series->metric.data, series->metric.len);
		buf_append_char(&w->seen, ' ');
	}
	buf_append_char(&w->seen, '|');
	w->series += group->count;
	w->groups++;
	w->most = group->count > w->most ? group->count : w->most;
}

static void run(struct walked *w, const char *tenant, const char *metric)
{
	struct series_walk *walk = walk_of(w, tenant, metric);
	struct series_group group;
	buf_clear(&w->seen);
	w->series = w->groups = w->most = 0;
	while ((w->err = series_walk_next(walk, &group)) == 0 && group.count) {
		see(w, &group);
		if (w->groups == w->stop_at)
			task_queue_stop(&w->queue);
	}
	series_walk_free(walk);
}

/* Nine and one in groups of four at most are three groups at least. */
static void each_series_comes_once_in_groups_that_are_not_too_large(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	add_series(&w, "t", "m", 9);
	add_series(&w, "u", "n", 1);
	run(&w, "", "");
	assert_int_equal(w.err, 0);
	assert_int_equal(w.series, 10);
	assert_true(w.most <= 4 && w.groups >= 3);
	run(&w, "t", "");
	assert_int_equal(w.series, 9);
	run(&w, "u", "n");
	buf_append_char(&w.seen, 0);
	assert_string_equal(w.seen.data, "u:n |");
	end(&w);
}

static struct store_engine generous;
static int (*read_as_asked)(struct store_read *read);

static int give_all_series(struct store_read *read)
{
	for (struct store_request *r = read->requests; r; r = r->next) {
		if (r->op == STORE_SERIES_LIST)
			r->series_list.limit = 0;
	}
	return read_as_asked(read);
}

/* A store gives more series than it was asked for while they are being registered: nine of a list
 * of four at most are three groups. */
static void a_list_that_is_too_long_is_given_in_groups(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	add_series(&w, "t", "m", 9);
	const struct store_engine *engine = w.h.store->engine;
	generous = *engine;
	read_as_asked = generous.read_submit;
	generous.read_submit = give_all_series;
	w.h.store->engine = &generous;
	run(&w, "", "");
	assert_int_equal(w.err, 0);
	assert_int_equal(w.series, 9);
	assert_int_equal(w.most, 4);
	assert_int_equal(w.groups, 3);
	w.h.store->engine = engine;
	end(&w);
}

static void without_series_it_is_done_without_a_group(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	add_series(&w, "t", "m", 1);
	run(&w, "t", "other");
	assert_int_equal(w.err, 0);
	assert_int_equal(w.groups, 0);
	end(&w);
}

/* Of nine, four have been given. */
static void a_walk_that_is_stopped_lists_nothing_further(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	add_series(&w, "t", "m", 9);
	w.stop_at = 1;
	run(&w, "", "");
	assert_int_equal(w.err, ERR_CANCELLED);
	assert_int_equal(w.groups, 1);
	run(&w, "", "");
	assert_int_equal(w.err, ERR_CANCELLED);
	assert_int_equal(w.groups, 0);
	end(&w);
}

static void a_list_that_the_store_refuses_ends_it(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	add_series(&w, "t", "m", 9);
	naive_refuse_reads(w.h.store, ERR_BUSY, 1);
	run(&w, "", "");
	assert_int_equal(w.err, ERR_BUSY);
	assert_int_equal(w.groups, 0);
	end(&w);
}

/* Three of which something is damaged are read again, each alone: the first, the second, which it
 * is, and the third. */
static void a_part_that_is_damaged_is_read_again_one_by_one(void **state)
{
	(void)state;
	struct series_part part = {0};
	assert_true(series_part_next(&part, 3));
	assert_int_equal(series_part_count(&part), 3);
	assert_true(series_part_again(&part));
	for (size_t i = 0; i < 3; i++) {
		assert_true(series_part_next(&part, 3));
		assert_int_equal(part.from, i);
		assert_int_equal(series_part_count(&part), 1);
		if (i == 1)
			assert_false(series_part_again(&part));
	}
	assert_false(series_part_next(&part, 3));
}

static void a_group_of_one_that_is_damaged_is_not_read_again(void **state)
{
	(void)state;
	struct series_part part = {0};
	assert_true(series_part_next(&part, 1));
	assert_false(series_part_again(&part));
	assert_false(series_part_next(&part, 1));
}

/* ---- The next sample ------------------------------------------------------------------------- */

static int64_t look_from(struct walked *w, int64_t from_ms)
{
	struct series_walk *walk = walk_of(w, "", "");
	struct store_read *read = store_read_new(w->h.store, 1 << 20);
	struct series_group group;
	int64_t ts_ms;
	assert_int_equal(series_walk_next(walk, &group), 0);
	assert_int_equal(series_walk_next_sample(walk, read,
						 &(struct store_range){.table = TABLE_DATA_RAW,
								       .handles = group.handles,
								       .handle_count = group.count,
								       .start_ms = from_ms,
								       .end_ms = 300},
						 &ts_ms),
			 0);
	store_read_free(read);
	series_walk_free(walk);
	return ts_ms;
}

/* One has samples at 200 and 300, the other at 100 and 250: the end, 300, is not in the time. */
static void the_next_sample_is_the_first_of_any_series(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	uint64_t one = add_series(&w, "t", "m", 1), other = add_series(&w, "t", "n", 1);
	struct store_write *write = store_write_new(w.h.store, 1 << 20);
	const struct {
		uint64_t handle;
		int64_t ts_ms;
	} samples[] = {{one, 200}, {one, 300}, {other, 100}, {other, 250}};
	for (size_t i = 0; i < 4; i++) {
		struct value value = value_i64(1);
		assert_int_equal(
			store_append(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				     samples[i].ts_ms, &samples[i].handle, 1, &value),
			0);
	}
	harness_write(&w.h, write);
	assert_int_equal(look_from(&w, 0), 100);
	assert_int_equal(look_from(&w, 101), 200);
	assert_int_equal(look_from(&w, 201), 250);
	assert_true(look_from(&w, 251) == INT64_MAX);
	store_write_free(write);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_series_comes_once_in_groups_that_are_not_too_large),
		cmocka_unit_test(a_list_that_is_too_long_is_given_in_groups),
		cmocka_unit_test(without_series_it_is_done_without_a_group),
		cmocka_unit_test(a_walk_that_is_stopped_lists_nothing_further),
		cmocka_unit_test(a_list_that_the_store_refuses_ends_it),
		cmocka_unit_test(a_part_that_is_damaged_is_read_again_one_by_one),
		cmocka_unit_test(a_group_of_one_that_is_damaged_is_not_read_again),
		cmocka_unit_test(the_next_sample_is_the_first_of_any_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
