/* A walk over series: which of them it gives, how it ends; and how a group is parted where
 * something of it is damaged. */
#include "ingest_harness.h"

#include "rollup/next_sample.h"
#include "rollup/series_walk.h"

struct walked {
	struct harness h;
	struct series_walk *walk;
	struct buf seen; /* `tenant:metric` of each series, a bar behind a group */
	size_t series, groups, most;
	bool cancels, done;
	int err;
};

static void on_group(void *owner)
{
	struct walked *w = owner;
	struct series_group group = series_walk_group(w->walk);
	assert_true(group.count > 0);
	for (size_t i = 0; i < group.count; i++) {
		const struct store_series *series = &group.series[i];
		assert_true(group.handles[i] == series->handle);
		buf_append(&w->seen, series->tenant.data, series->tenant.len);
		buf_append_char(&w->seen, ':');
		buf_append(&w->seen, series->metric.data, series->metric.len);
		buf_append_char(&w->seen, ' ');
	}
	buf_append_char(&w->seen, '|');
	w->series += group.count;
	w->groups++;
	w->most = group.count > w->most ? group.count : w->most;
	if (w->cancels)
		series_walk_cancel(w->walk);
	series_walk_next(w->walk);
}

static void on_done(void *owner, int err)
{
	struct walked *w = owner;
	assert_false(w->done);
	w->done = true;
	w->err = err;
}

static void begin(struct walked *w)
{
	*w = (struct walked){0};
	harness_open(&w->h, NULL);
	buf_init(&w->seen, 1 << 20);
}

static void end(struct walked *w)
{
	buf_release(&w->seen);
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

static struct series_walk *start(struct walked *w, const char *tenant, const char *metric)
{
	buf_clear(&w->seen);
	w->series = w->groups = w->most = 0;
	w->done = false;
	w->walk = series_walk_start(&(struct series_walk_options){.store = w->h.store,
								  .clock = &w->h.clock.clock,
								  .executor = &w->h.queue.executor,
								  .tenant = slice_of(tenant),
								  .metric = slice_of(metric),
								  .group_max = 4,
								  .read_max_bytes = 1 << 20,
								  .group = on_group,
								  .done = on_done,
								  .owner = w});
	assert_true(!w->done && !w->groups);
	return w->walk;
}

static void run(struct walked *w, const char *tenant, const char *metric)
{
	start(w, tenant, metric);
	harness_pump(&w->h);
	assert_true(w->done);
	series_walk_free(w->walk);
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
	w.cancels = true;
	run(&w, "", "");
	assert_int_equal(w.err, ERR_CANCELLED);
	assert_int_equal(w.groups, 1);
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

static void names_are_its_own_once_it_has_begun(void **state)
{
	(void)state;
	struct walked w;
	char tenant[] = "t", metric[] = "m";
	begin(&w);
	add_series(&w, "t", "m", 1);
	add_series(&w, "x", "x", 1);
	start(&w, tenant, metric);
	tenant[0] = metric[0] = 'x';
	harness_pump(&w.h);
	series_walk_free(w.walk);
	buf_append_char(&w.seen, 0);
	assert_string_equal(w.seen.data, "t:m |");
	end(&w);
}

static void a_walk_that_is_cancelled_lists_nothing_further(void **state)
{
	(void)state;
	struct walked w;
	begin(&w);
	add_series(&w, "t", "m", 9);
	series_walk_cancel(start(&w, "", ""));
	harness_pump(&w.h);
	assert_int_equal(w.err, ERR_CANCELLED);
	assert_int_equal(w.groups, 0);
	series_walk_free(w.walk);
	w.cancels = true;
	run(&w, "", "");
	assert_int_equal(w.err, ERR_CANCELLED);
	assert_int_equal(w.groups, 1);
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

struct found {
	struct walked w;
	struct next_sample *next;
	int64_t from_ms, ts_ms;
	int err;
};

static void on_found(void *owner, int err, int64_t ts_ms)
{
	struct found *f = owner;
	f->err = err;
	f->ts_ms = ts_ms;
}

static void look_in_group(void *owner)
{
	struct found *f = owner;
	struct series_group group = series_walk_group(f->w.walk);
	next_sample_find(f->next, &(struct store_range){.table = TABLE_DATA_RAW,
							.handles = group.handles,
							.handle_count = group.count,
							.start_ms = f->from_ms,
							.end_ms = 300});
}

static int64_t look_from(struct found *f, int64_t from_ms)
{
	f->from_ms = from_ms;
	f->w.walk =
		series_walk_start(&(struct series_walk_options){.store = f->w.h.store,
								.clock = &f->w.h.clock.clock,
								.executor = &f->w.h.queue.executor,
								.group_max = 4,
								.read_max_bytes = 1 << 20,
								.group = look_in_group,
								.done = on_done,
								.owner = f});
	f->next = next_sample_new(f->w.walk, on_found, f);
	harness_pump(&f->w.h);
	next_sample_free(f->next);
	series_walk_free(f->w.walk);
	return f->ts_ms;
}

/* One has samples at 200 and 300, the other at 100 and 250: the end, 300, is not in the time. */
static void the_next_sample_is_the_first_of_any_series(void **state)
{
	(void)state;
	struct found f = {.err = 1};
	begin(&f.w);
	uint64_t one = add_series(&f.w, "t", "m", 1), other = add_series(&f.w, "t", "n", 1);
	struct store_write *write = store_write_new(f.w.h.store, 1 << 20);
	const struct {
		uint64_t handle;
		int64_t ts_ms;
	} samples[] = {{one, 200}, {one, 300}, {other, 100}, {other, 250}};
	for (size_t i = 0; i < 4; i++) {
		struct value value = value_i64(1);
		assert_int_equal(store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER,
					      samples[i].ts_ms, &samples[i].handle, 1, &value),
				 0);
	}
	harness_write(&f.w.h, write);
	assert_int_equal(look_from(&f, 0), 100);
	assert_int_equal(look_from(&f, 101), 200);
	assert_int_equal(look_from(&f, 201), 250);
	assert_true(look_from(&f, 251) == INT64_MAX);
	assert_int_equal(f.err, 0);
	store_write_free(write);
	end(&f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_series_comes_once_in_groups_that_are_not_too_large),
		cmocka_unit_test(a_list_that_is_too_long_is_given_in_groups),
		cmocka_unit_test(without_series_it_is_done_without_a_group),
		cmocka_unit_test(names_are_its_own_once_it_has_begun),
		cmocka_unit_test(a_walk_that_is_cancelled_lists_nothing_further),
		cmocka_unit_test(a_list_that_the_store_refuses_ends_it),
		cmocka_unit_test(a_part_that_is_damaged_is_read_again_one_by_one),
		cmocka_unit_test(a_group_of_one_that_is_damaged_is_not_read_again),
		cmocka_unit_test(the_next_sample_is_the_first_of_any_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
