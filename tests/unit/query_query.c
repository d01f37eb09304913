/* Queries over the naive engine: points worked out by hand, slices, limits, deadlines, places,
 * cancelling. */
#include "base/stats.h"
#include "query_harness.h"

static void test_raw(void **state)
{
	(void)state;
	uint64_t a = open_series("t", "m", "h=a"), b = open_series("t", "m", "h=b");
	uint64_t c = open_series("t", "m", "");
	put(b, T0_MS + 10, 2);
	put(b, T0_MS + 20, 3);
	put(a, T0_MS + 20, 1);
	put_value(c, T0_MS + 30, value_u64(7));
	put(open_series("other", "m", "h=a"), T0_MS + 20, 99);
	open_series("t", "m", "h=empty");
	expect(NULL, 0, 100, ": 30=7i; h=a: 20=1; h=b: 10=2 20=3; ");
	expect(NULL, 10, 20, "h=b: 10=2; "); /* start counts, end does not */
	expect("h=*", 11, 21, "h=a: 20=1; h=b: 20=3; ");
	expect("h=b", 0, 100, "h=b: 10=2 20=3; ");
	expect("h=c", 0, 100, "");
	expect("h=empty", 0, 100, "");
	expect(NULL, 20, 20, "");
	expect(NULL, 40, 100, "");
	expect(NULL, INT64_MIN / 2, INT64_MAX / 2, ": 30=7i; h=a: 20=1; h=b: 10=2 20=3; ");
}

/* Whatever the slices of the store and the pieces taken are, the same points come in one order. */
static void test_slices(void **state)
{
	(void)state;
	fill(3, 5);
	for (size_t slice = 1; slice < 18; slice++) {
		options.slice_points = slice;
		engine_again();
		for (size_t take = 1; take < 8; take++) {
			struct asked a;
			struct query_chunk chunk;
			ask(&a, take_all, NULL, 0, 100);
			a.take_max = take;
			assert_int_equal(query_start(a.query), 0);
			pump();
			assert_true(a.query->ended && !a.query->err && !a.query->cut);
			assert_int_equal(a.query->points, 15);
			char plain[512], *to = plain;
			for (char *p = a.text; *p; p++) /* join what was cut */
				if (strncmp(p, "; +h=", 5) == 0)
					p += 6;
				else
					*to++ = *p;
			*to = 0;
			assert_string_equal(plain, "h=a: 0=0 1=10 2=20 3=30 4=40; "
						   "h=b: 0=1 1=11 2=21 3=31 4=41; "
						   "h=c: 0=2 1=12 2=22 3=32 4=42; ");
			assert_false(query_next(a.query, 1, &chunk));
			query_free(a.query);
		}
	}
}

/* More series than one read takes. */
static void test_batches(void **state)
{
	(void)state;
	for (int i = 0; i < 1030; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "n=%04d", i);
		uint64_t handle = open_series("t", "m", tags);
		if (i == 3 || i == 511 || i == 512 || i == 1029)
			put(handle, T0_MS, i);
	}
	expect(NULL, 0, 1, "n=0003: 0=3; n=0511: 0=511; n=0512: 0=512; n=1029: 0=1029; ");
	for (enum query_fn fn = FN_MIN; fn <= FN_LAST; fn++) {
		struct asked a;
		struct query_spec *spec = ask(&a, take_all, NULL, 0, 1);
		spec->fn = fn;
		spec->window_ms = 1;
		finish(&a, fn == FN_COUNT
				   ? "n=0003: 0=1i; n=0511: 0=1i; n=0512: 0=1i; n=1029: 0=1i; "
				   : "n=0003: 0=3; n=0511: 0=511; n=0512: 0=512; n=1029: "
				     "0=1029; ");
	}
}

/* ---- Many at once ---------------------------------------------------------------------------- */

/* A series of 1030 is read in parts; what is small and came later is answered between them. */
static void test_small_before_large(void **state)
{
	(void)state;
	struct asked large, small;
	for (int i = 0; i < 1030; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "n=%04d", i);
		put(open_series("t", "m", tags), T0_MS + i, i);
	}
	expect("n=0000", 0, 1, "n=0000: 0=0; "); /* the index is built */
	options.parallel_max = 2;
	engine_again();
	struct query_spec *spec = ask(&large, take_in_order, NULL, 0, 1030);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	ask(&small, take_all, "n=0007", 0, 100);
	assert_int_equal(query_start(large.query), 0);
	for (int i = 0; i < 3; i++)
		task_queue_run(&loop);
	assert_int_equal(query_start(small.query), 0);
	while (!small.query->ended)
		assert_true(task_queue_run(&loop));
	assert_false(large.query->ended);
	assert_string_equal(small.text, "n=0007: 7=7; ");
	pump();
	assert_true(large.query->ended);
	assert_int_equal(large.query->points, 1030);
	assert_true(large.query->reads > 10);
	query_free(large.query);
	query_free(small.query);
}

/* What was read first is given before the rest is asked for. */
static void test_given_while_reading(void **state)
{
	(void)state;
	struct asked a;
	struct query_chunk chunk;
	fill(3, 5);
	options.slice_points = 4;
	engine_again();
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_int_equal(a.query->reads, 1);
	assert_true(query_next(a.query, 10, &chunk));
	assert_int_equal(chunk.count, 4);
	assert_int_equal(a.query->reads, 1);
	while (!a.query->ended) {
		while (query_next(a.query, 10, &chunk))
			continue;
		pump();
	}
	assert_int_equal(a.query->points, 15);
	assert_true(a.query->reads >= 4);
	query_free(a.query);
}

/* ---- Limits -------------------------------------------------------------------------------- */

static void refused(struct asked *a, int err, const char *sentence)
{
	int started = query_start(a->query);
	if (!started) {
		pump();
		assert_true(a->query->ended);
		assert_int_equal(a->query->err, err);
	} else {
		assert_int_equal(started, err);
	}
	assert_string_equal(a->query->error.text, sentence);
	assert_string_equal(a->text, "");
	query_free(a->query);
}

static void test_limits(void **state)
{
	(void)state;
	struct asked a;
	struct query_spec *spec;
	fill(3, 5);
	options.series_max = 2;
	options.range_max_ms = 7200000;
	options.points_max = 12;
	engine_again();
	ask(&a, take_all, NULL, 0, 100);
	refused(&a, ERR_LIMIT, "3 series match; at most 2 are read at once (query.series_max)");
	/* Two hours from the first millisecond to the last are read, one more is not. */
	ask(&a, take_all, "h=a", 0, 7200002);
	refused(&a, ERR_LIMIT,
		"the time from start to end is longer than 2 hours (query.range_max)");
	ask(&a, take_all, "h=a", 5, 4);
	refused(&a, ERR_INVALID, "start lies after end");
	spec = ask(&a, take_all, "h=a|b", 0, 7);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	refused(&a, ERR_LIMIT,
		"2 series in 7 windows are more than the 12 points of an answer "
		"(query.points_max); take a wider "
		"window, less time or fewer series");
	spec = ask(&a, take_all, "h=a|b", 0, 6);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	finish(&a, "h=a: 0=0 1=10 2=20 3=30 4=40; h=b: 0=1 1=11 2=21 3=31 4=41; ");
	spec = ask(&a, take_all, "h=a", 0, 6);
	spec->fn = FN_MAX;
	refused(&a, ERR_INVALID, "a window is at least one millisecond long");
	spec = ask(&a, take_all, "h=a", 0, 6);
	spec->fn = FN_MAX;
	spec->window_ms = INT64_MAX;
	refused(&a, ERR_INVALID, "a window is at least one millisecond long");
}

/* Three series of five samples; what is asked for is known from all of them. */
static void test_estimate(void **state)
{
	(void)state;
	struct asked a;
	struct query_spec *spec;
	fill(3, 5);
	options.samples_max = 14;
	engine_again();
	ask(&a, take_all, NULL, 0, 10000);
	refused(&a, ERR_LIMIT,
		"the query would look at about 15 samples (3 series of about 5 each); at most 14 "
		"(query.samples_max): "
		"ask for fewer series, less time or wider windows");
	ask(&a, take_all, "h=a|b", 0, 10000);
	finish(&a, "h=a: 0=0 1=10 2=20 3=30 4=40; h=b: 0=1 1=11 2=21 3=31 4=41; ");
	spec = ask(&a, take_all, NULL, 0, 10000);
	spec->fn = FN_COUNT;
	spec->window_ms = 1000;
	/* Whole windows are tried: eight of the ten seconds, in which all 15 are. */
	refused(&a, ERR_LIMIT,
		"the query would look at about 18 samples (3 series of about 6 each); at most 14 "
		"(query.samples_max): "
		"ask for fewer series, less time or wider windows");
	spec = ask(&a, take_all, NULL, 0, 10000);
	spec->fn = FN_LAST; /* the newest is not looked for */
	finish(&a, "h=a: 4=40; h=b: 4=41; h=c: 4=42; ");
	options.samples_max = 15;
	engine_again();
	ask(&a, take_all, NULL, 0, 10000);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(a.query->ended && !a.query->err);
	assert_int_equal(a.query->estimate, 15);
	assert_int_equal(a.query->points, 15);
	query_free(a.query);
}

/* Sixteen series, of which the one that has samples is not among the eight that are tried. */
static void test_estimate_is_a_bound(void **state)
{
	(void)state;
	struct asked a;
	struct query_spec *spec;
	fill(16, 0);
	uint64_t handle = open_series("t", "m", "h=b");
	for (int i = 0; i < 30; i++)
		put(handle, T0_MS + i, i);
	options.samples_max = 14;
	engine_again();
	spec = ask(&a, take_all, NULL, 0, 10000);
	spec->fn = FN_MAX;
	spec->window_ms = 7;
	refused(&a, ERR_LIMIT,
		"the query has looked at more than 14 samples (query.samples_max; about 0 were "
		"expected, from some of "
		"its "
		"series and time): ask for fewer series, less time or wider windows");
	options.slice_points = 10; /* the second ten are over it */
	engine_again();
	ask(&a, take_all, NULL, 0, 10000);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(a.query->ended && !a.query->err && a.query->cut);
	assert_string_equal(a.query->cut_why, "samples");
	assert_int_equal(a.query->points, 10);
	query_free(a.query);
}

static void test_cut(void **state)
{
	(void)state;
	fill(3, 5);
	for (size_t slice = 1; slice < 18; slice++) {
		for (uint64_t max = 1; max < 18; max++) {
			struct asked a;
			options.points_max = max;
			options.slice_points = slice;
			engine_again();
			ask(&a, take_all, NULL, 0, 100);
			assert_int_equal(query_start(a.query), 0);
			pump();
			assert_true(a.query->ended && !a.query->err);
			assert_int_equal(a.query->points, max < 15 ? max : 15);
			assert_int_equal(a.query->cut, max < 15);
			if (max < 15)
				assert_string_equal(a.query->cut_why, "points");
			query_free(a.query);
		}
	}
}

static void test_retention(void **state)
{
	(void)state;
	fill(1, 5);
	retention.levels_ms[0] = 1000;
	engine_again();
	clock_virtual_advance(&clock_, 1003 * 1000); /* now is T0 + 1003: 3 and 4 are left */
	expect(NULL, 0, 100, "h=a: 3=30 4=40; ");
	expect(NULL, 0, 2, "");
}

/* ---- Deadlines, places, freeing ------------------------------------------------------------ */

static void test_deadline(void **state)
{
	(void)state;
	struct asked a;
	struct query_chunk chunk;
	fill(2, 5);
	options.slice_points = 2;
	options.timeout_ms = 500;
	engine_again();
	/* Between two slices, after some points were given. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(query_next(a.query, 10, &chunk));
	assert_int_equal(chunk.count, 2);
	clock_virtual_advance(&clock_, 500000);
	assert_false(query_next(a.query, 10, &chunk));
	assert_true(a.query->ended && a.query->cut && !a.query->err);
	assert_string_equal(a.query->cut_why, "time");
	query_free(a.query);
	/* While nobody takes: the tick frees its place. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_true(query_next(a.query, 1, &chunk));
	query_engine_tick(engine);
	assert_false(a.query->ended);
	clock_virtual_advance(&clock_, 500000);
	query_engine_tick(engine);
	assert_true(a.query->ended && a.query->cut);
	assert_false(query_next(a.query, 1, &chunk));
	query_free(a.query);
	/* Before the first point it is an error. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	clock_virtual_advance(&clock_, 500000);
	pump();
	assert_int_equal(a.readies, 1);
	assert_int_equal(a.query->err, ERR_TIMEOUT);
	assert_string_equal(a.query->error.text,
			    "the query took longer than 500 ms (query.timeout); ask for less: "
			    "less time, or fewer series");
	query_free(a.query);
}

/* Several queries of one answer share its time and its points. */
static void test_one_of_several(void **state)
{
	(void)state;
	struct asked a;
	struct query_chunk chunk;
	fill(1, 5);
	options.timeout_ms = 500;
	options.points_max = 5;
	engine_again();
	int64_t now_us = clock_.clock.mono_us(&clock_.clock);
	ask(&a, take_nothing, NULL, 0, 100)->deadline_us = now_us + 200000;
	assert_int_equal(query_start(a.query), 0);
	clock_virtual_advance(&clock_, 200000);
	pump();
	assert_int_equal(a.query->err, ERR_TIMEOUT);
	query_free(a.query);
	/* A later one than its own is none. */
	ask(&a, take_nothing, NULL, 0, 100)->deadline_us = now_us + 3600000000;
	assert_int_equal(query_start(a.query), 0);
	clock_virtual_advance(&clock_, 500000);
	pump();
	assert_int_equal(a.query->err, ERR_TIMEOUT);
	query_free(a.query);
	/* Two are left of five. */
	ask(&a, take_all, NULL, 0, 100)->points_spent = 3;
	finish(&a, "h=a: 0=0 1=10; ");
	ask(&a, take_nothing, NULL, 0, 100)->points_spent = 1000;
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_false(query_next(a.query, 10, &chunk));
	assert_true(a.query->cut && !a.query->points);
	query_free(a.query);
	struct query_spec *spec = ask(&a, take_nothing, NULL, 0, 4);
	spec->fn = FN_SUM;
	spec->window_ms = 1;
	spec->points_spent = 2;
	assert_int_equal(query_start(a.query), 0);
	pump();
	assert_int_equal(a.query->err, ERR_LIMIT);
	assert_string_equal(a.query->error.text, "1 series in 4 windows are more than the 3 points "
						 "of an answer (query.points_max); take a "
						 "wider window, less time or fewer series");
	query_free(a.query);
}

/* Series of a group lie together, also over many slices; they stay series. */
static void test_groups_in_order(void **state)
{
	(void)state;
	static const char *const tags[] = {"h=a,z=2", "h=b,z=1", "h=c,z=2", "h=d", "h=e,z=1"};
	static const size_t slices[] = {1, 3, 1000};
	for (int s = 0; s < 5; s++) {
		uint64_t handle = open_series("t", "m", tags[s]);
		put(handle, T0_MS, s);
		put(handle, T0_MS + 1, 10 + s);
	}
	for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
		struct asked a;
		struct slice by = SLICE("z");
		options.slice_points = slices[i];
		engine_again();
		struct query_spec *spec = ask(&a, take_all, NULL, 0, 100);
		spec->by = &by;
		spec->by_count = 1;
		spec->by_order = true;
		a.take_max = 2;
		assert_int_equal(query_start(a.query), 0);
		pump();
		assert_true(a.query->ended && !a.query->err);
		const char *order = a.text;
		for (const char *want = "dbeac"; *want; want++) {
			char name[8];
			snprintf(name, sizeof(name), "h=%c", *want);
			order = strstr(order, name); /* each behind the one before */
			assert_non_null(order);
		}
		assert_int_equal(query_group_of(a.query, 0), 0);
		assert_int_equal(query_group_of(a.query, 1), 1);
		assert_int_equal(query_group_of(a.query, 2), 1);
		assert_int_equal(query_group_of(a.query, 4), 2);
		size_t next = 0;
		assert_string_equal(query_group_next(a.query, 1, &next)->tags_text.data, "h=b,z=1");
		assert_string_equal(query_group_next(a.query, 1, &next)->tags_text.data, "h=e,z=1");
		assert_null(query_group_next(a.query, 1, &next));
		next = 0;
		assert_string_equal(query_group_next(a.query, 2, &next)->tags_text.data, "h=a,z=2");
		query_free(a.query);
	}
}

static void test_places(void **state)
{
	(void)state;
	struct asked a, b, c, d;
	struct query_chunk chunk;
	fill(1, 2);
	options.concurrent_max = 1;
	options.waiting_max = 2;
	engine_again();
	ask(&a, take_nothing, NULL, 0, 100);
	ask(&b, take_all, NULL, 0, 100);
	ask(&c, take_all, NULL, 0, 100);
	ask(&d, take_all, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	assert_int_equal(query_start(b.query), 0);
	assert_int_equal(query_start(c.query), 0);
	assert_int_equal(query_start(d.query), ERR_BUSY);
	assert_string_equal(d.query->error.text, "1 queries run and 2 wait; try again later");
	query_free(d.query);
	assert_int_equal(stat_get(STAT_queries_running), 1); /* the place there is */
	pump();
	assert_int_equal(a.readies, 1);
	assert_int_equal(b.readies, 0);
	query_free(b.query); /* while it waits */
	while (query_next(a.query, 10, &chunk))
		;
	pump();
	assert_true(a.query->ended);
	assert_string_equal(c.text, "h=a: 0=0 1=10; ");
	assert_int_equal(stat_get(STAT_queries_running), 0);
	query_free(a.query);
	query_free(c.query);
	/* The deadline of one that waits. */
	ask(&a, take_nothing, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	pump();
	clock_virtual_advance(&clock_, 30000000);
	ask(&b, take_all, NULL, 0, 100);
	assert_int_equal(query_start(b.query), 0);
	clock_virtual_advance(&clock_, 30000000);
	query_engine_tick(engine); /* ends the first, which makes room for the second */
	pump();
	assert_true(a.query->ended);
	assert_string_equal(b.text, "h=a: 0=0 1=10; ");
	query_free(a.query);
	query_free(b.query);
}

static void tick(int times)
{
	while (times--)
		query_engine_tick(engine);
	pump();
}

/* A client that does not read: the next has his place from the second tick on, but no more rest
 * than there are places. */
static void test_who_takes_nothing_keeps_no_place(void **state)
{
	(void)state;
	struct asked a, b, c;
	fill(1, 2);
	options.concurrent_max = 1;
	engine_again();
	ask(&a, take_nothing, NULL, 0, 100);
	ask(&b, take_nothing, NULL, 0, 100);
	ask(&c, take_all, NULL, 0, 100);
	assert_int_equal(query_start(a.query), 0);
	assert_int_equal(query_start(b.query), 0);
	assert_int_equal(query_start(c.query), 0);
	pump();
	assert_int_equal(a.readies, 1);
	tick(1);
	assert_int_equal(b.readies, 0);
	tick(1);
	assert_int_equal(b.readies, 1);
	assert_int_equal(stat_get(STAT_queries_running), 1);
	tick(5);
	assert_false(c.query->ended); /* one rests already */
	take_all(&a);                 /* which reads on, beside the second */
	pump();
	assert_true(a.query->ended);
	assert_string_equal(a.text, "h=a: 0=0 1=10; ");
	tick(2);
	assert_string_equal(c.text, "h=a: 0=0 1=10; ");
	query_free(b.query); /* while it rests */
	assert_int_equal(stat_get(STAT_queries_running), 0);
	query_free(a.query);
	query_free(c.query);
}

static void test_free_at_any_time(void **state)
{
	(void)state;
	fill(2, 5);
	options.slice_points = 2;
	engine_again();
	for (int steps = 0; steps < 12; steps++) {
		struct asked a;
		ask(&a, take_all, NULL, 0, 100);
		assert_int_equal(query_start(a.query), 0);
		for (int i = 0; i < steps; i++)
			task_queue_run(&loop);
		query_free(a.query);
		pump();
		assert_true(query_engine_idle(engine));
	}
	struct asked a;
	ask(&a, take_all, NULL, 0, 100);
	query_free(a.query); /* never started */
}

static void test_busy_store(void **state)
{
	(void)state;
	struct asked a;
	fill(1, 2);
	expect(NULL, 0, 100, "h=a: 0=0 1=10; "); /* the index is built now */
	ask(&a, take_all, NULL, 0, 100);
	naive_refuse_reads(store, ERR_BUSY, 1);
	refused(&a, ERR_BUSY, err_text(ERR_BUSY));
	expect(NULL, 0, 100, "h=a: 0=0 1=10; ");
}

/* `h=polled..` lies in raw_data under 30 s, what begins with `h=slow` under 60 s. */
static void home_by_tag(void *owner, struct slice tenant, struct slice tags_text,
			struct query_home *home)
{
	*(int *)owner += 1;
	assert_true(slice_equal(tenant, SLICE("t")));
	assert_int_equal(home->table, TABLE_DATA_RAW);
	if (memcmp(tags_text.data, "h=polled", 8) == 0)
		*home = (struct query_home){TABLE_RAW_DATA, 30000};
	if (memcmp(tags_text.data, "h=slow", 6) == 0)
		*home = (struct query_home){TABLE_RAW_DATA, 60000};
}

static void test_homes(void **state)
{
	(void)state;
	int asked = 0;
	struct asked a;
	put_into(TABLE_RAW_DATA, 30000, open_series("t", "m", "h=polled1"), T0_MS, value_u64(1));
	put_into(TABLE_RAW_DATA, 60000, open_series("t", "m", "h=slow234"), T0_MS, value_u64(2));
	put(open_series("t", "m", "h=ordinary"), T0_MS, 3);
	options.home_of = home_by_tag;
	options.home_owner = &asked;
	engine_again();
	expect("h=polled1", 0, 1, "h=polled1: 0=1i; ");
	expect("h=slow234", 0, 1, "h=slow234: 0=2i; ");
	expect("h=ordinary", 0, 1, "h=ordinary: 0=3; ");
	assert_int_equal(asked, 3);
	ask(&a, take_all, "h=slow234", 0, 1)->fn = FN_LAST;
	finish(&a, "h=slow234: 0=2i; ");
	struct query_spec *spec = ask(&a, take_all, "h=slow234", 0, 1);
	spec->fn = FN_MAX;
	spec->window_ms = 1;
	finish(&a, "h=slow234: 0=2i; ");
	ask(&a, take_all, "h=polled*,slow*", 0, 1);
	refused(&a, ERR_INVALID,
		"some of these series are polled every 30 s, some every 60 s: name the tags of "
		"those that are meant");
	ask(&a, take_all, "h=o*,slow*", 0, 1);
	refused(&a, ERR_INVALID,
		"some of these series are in data_raw, some in raw_data: name the tags of those "
		"that are meant");
}

static void test_fn_names(void **state)
{
	(void)state;
	enum query_fn fn = FN_NONE;
	assert_int_equal(query_fn_parse(SLICE("min"), &fn), 0);
	assert_int_equal(fn, FN_MIN);
	assert_int_equal(query_fn_parse(SLICE("last"), &fn), 0);
	assert_int_equal(fn, FN_LAST);
	assert_int_equal(query_fn_parse(SLICE("count"), &fn), 0);
	assert_int_equal(fn, FN_COUNT);
	assert_int_equal(query_fn_parse(SLICE("median"), &fn), ERR_INVALID);
	assert_int_equal(query_fn_parse(SLICE(""), &fn), ERR_INVALID);
	assert_int_equal(query_fn_parse(SLICE("mi"), &fn), ERR_INVALID);
	enum query_agg agg = AGG_NONE;
	assert_int_equal(query_agg_parse(SLICE("min"), &agg), 0);
	assert_int_equal(agg, AGG_MIN);
	assert_int_equal(query_agg_parse(SLICE("count"), &agg), 0);
	assert_int_equal(agg, AGG_COUNT);
	assert_int_equal(query_agg_parse(SLICE("last"), &agg), ERR_INVALID);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_raw),
		TEST(test_slices),
		TEST(test_batches),
		TEST(test_limits),
		TEST(test_cut),
		TEST(test_retention),
		TEST(test_deadline),
		TEST(test_one_of_several),
		TEST(test_groups_in_order),
		TEST(test_places),
		TEST(test_who_takes_nothing_keeps_no_place),
		TEST(test_free_at_any_time),
		TEST(test_busy_store),
		TEST(test_small_before_large),
		TEST(test_given_while_reading),
		TEST(test_homes),
		TEST(test_estimate),
		TEST(test_estimate_is_a_bound),
		cmocka_unit_test(test_fn_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
