/* How series that are known come to be marked: without the catalog, once a request, in order. */
#include "rollup_harness.h"

#include <limits.h>

#include "base/stats.h"
#include "marks/recent.h"

static const char *const hours[] = {"1h:0"};

struct counts {
	int64_t unknown, touches;
};

static struct counts counts(void)
{
	return (struct counts){stat_get(STAT_ingest_unknown), stat_get(STAT_rollup_marks_added)};
}

static void expect_since(struct counts before, int64_t unknown, int64_t touches)
{
	assert_int_equal(stat_get(STAT_ingest_unknown) - before.unknown, unknown);
	assert_int_equal(stat_get(STAT_rollup_marks_added) - before.touches, touches);
}

/* One piece of a request that goes on. */
static void send_piece(struct ingest_request *request, const char *series, int value, int64_t ts_ms)
{
	struct line_feed feed;
	char line[100];
	snprintf(line, sizeof(line), "%s value=%d %lld\n", series, value, (long long)ts_ms);
	line_feed_init(&feed, request, (struct slice){NULL, 0}, LINE_MS);
	line_feed_piece(&feed, slice_of(line));
	line_feed_end(&feed);
	line_feed_release(&feed);
}

static void a_known_series_is_marked_without_the_catalog(void **state)
{
	(void)state;
	struct rolled r;
	rolled_open(&r, hours, 1);
	struct counts before = counts();
	rolled_put(&r, "m,h=a", "1", AT(0, 0));
	expect_since(before, 1, 1);
	rolled_put(&r, "m,h=a", "2", AT(1, 0));
	expect_since(before, 1, 1);
	rolled_put(&r, "m,h=a", "3", AT(60, 0));
	expect_since(before, 1, 2);
	assert_int_equal(rolled_pass_at(&r, rolled_now_ms(&r) + r.site.quiet_ms).rolled_up, 2);
	rolled_expect(&r, "m,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=2.0,sum=3.0,count=2,first=1.0,last=2.0 "
		      "60:min=3.0,max=3.0,sum=3.0,count=1,first=3.0,last=3.0");
	rolled_close(&r);
}

/* Each piece marked it again until the first mark was durable. */
static void a_request_marks_a_known_series_once(void **state)
{
	(void)state;
	struct rolled r;
	rolled_open(&r, hours, 1);
	rolled_put(&r, "m,h=a", "1", AT(0, 0));
	rolled_put(&r, "m,h=b", "1", AT(0, 0));
	struct counts before = counts();
	struct ingest_request *request = harness_request(&r.h);
	for (int i = 0; i < 5; i++) {
		send_piece(request, "m,h=a", i, AT(60, i));
		send_piece(request, "m,h=b", i, AT(60, i));
	}
	harness_finish(&r.h, request);
	assert_int_equal(request->accepted, 10);
	ingest_request_free(request);
	expect_since(before, 0, 2);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m,h=b"), 6);
	rolled_close(&r);
}

/* Of what comes between, some is marked already, and some is unknown. */
static void the_order_of_a_request_is_kept(void **state)
{
	(void)state;
	struct rolled r;
	rolled_open(&r, hours, 1);
	rolled_put(&r, "m", "1", AT(0, 0));
	struct ingest_request *request = harness_request(&r.h);
	send_piece(request, "m", 2, AT(0, 0));
	send_piece(request, "m", 7, AT(60, 0));
	send_piece(request, "m", 3, AT(0, 0));
	send_piece(request, "n", 1, AT(60, 0));
	send_piece(request, "m", 8, AT(60, 0));
	send_piece(request, "m", 4, AT(0, 0));
	harness_finish(&r.h, request);
	assert_int_equal(ingest_status(request), 204);
	ingest_request_free(request);
	harness_expect(&r.h, "default:m 1598263200000=4.0f 1598266800000=8.0f\n"
			     "default:n 1598266800000=1.0f\n");
	rolled_close(&r);
}

/* Somebody sends little at a time, of a slot that is not marked yet. */
static void what_waits_to_be_marked_does_not_wait_for_ever(void **state)
{
	(void)state;
	struct rolled r;
	rolled_open(&r, hours, 1);
	rolled_put(&r, "m", "1", AT(0, 0));
	struct ingest_request *request = harness_request(&r.h);
	send_piece(request, "m", 2, AT(60, 0));
	harness_pump(&r.h);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m"), 1);
	rolled_set_ms(&r, rolled_now_ms(&r) + recent_touches_write_max_ms(r.site.quiet_ms, 0) / 2);
	ingest_tick(r.h.ingest);
	harness_pump(&r.h);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m"), 2);
	harness_finish(&r.h, request);
	assert_int_equal(ingest_status(request), 204);
	ingest_request_free(request);
	rolled_close(&r);
}

static uint64_t series_generation;

static uint64_t told_series_generation(struct store *store)
{
	(void)store;
	return series_generation;
}

/* The handles 2 and 1 were taken for a run of one that begins with 2, which was marked. The line
 * came to have them when some series were deleted and the handles of all lines were forgotten. */
static void a_list_of_series_is_no_run_of_another(void **state)
{
	(void)state;
	struct store_engine engine;
	struct rolled r;
	rolled_open(&r, hours, 1);
	engine = *r.h.store->engine;
	engine.series_generation = told_series_generation;
	r.h.store->engine = &engine;
	rolled_set_ms(&r, AT(121, 0));
	rolled_write(&r, "m,h=a first=1 1598263200000\n");
	assert_int_equal(rolled_pass_at(&r, AT(130, 0)).rolled_up, 1);
	series_generation++;
	rolled_write(&r, "m,h=a second=1 1598263200000\n");
	series_generation++;
	rolled_write(&r, "m,h=a second=1,first=1 1598266800000\n");
	struct counts before = counts();
	rolled_write(&r, "m,h=a second=2,first=2 1598263201000\n");
	expect_since(before, 0, 2);
	assert_int_equal(rolled_pass_at(&r, AT(140, 0)).rolled_up, 4);
	rolled_expect(&r, "m_first,h=a", HOUR_MS, TEN_MS,
		      "0:min=1.0,max=2.0,sum=3.0,count=2,first=1.0,last=2.0 "
		      "60:min=1.0,max=1.0,sum=1.0,count=1,first=1.0,last=1.0");
	rolled_close(&r);
}

/* A store of which several processes write, as far as ingest can see. */
static void rolled_open_unserial(struct rolled *r, struct store_engine *engine)
{
	rolled_open(r, hours, 1);
	*engine = *r->h.store->engine;
	engine->can &= ~(unsigned)STORE_SERIAL_WRITES;
	r->h.store->engine = engine;
}

/* The sender had to repeat it, with another stamp. */
static void what_ended_unknown_is_sent_again_until_it_is_known(void **state)
{
	(void)state;
	struct store_engine engine;
	struct rolled r;
	rolled_open_unserial(&r, &engine);
	rolled_put(&r, "m", "1", AT(0, 0));
	int64_t failed = stat_get(STAT_ingest_failed);
	naive_fail_writes(r.h.store, ERR_UNKNOWN, 5);
	rolled_put(&r, "m", "2", AT(60, 0));
	assert_int_equal(stat_get(STAT_ingest_failed), failed);
	assert_int_equal(rolled_samples(&r, TABLE_DATA_RAW, "m"), 2);
	rolled_close(&r);
}

static int64_t stepped_us; /* what the stepped clock says */

static int64_t step_wall_us(struct clock *clock)
{
	(void)clock;
	return stepped_us += 1000000;
}

/* Its marks may be gone by then, so it has to come again with new ones. */
static void what_stays_unknown_is_told_when_its_marks_may_be_gone(void **state)
{
	(void)state;
	struct store_engine engine;
	struct rolled r;
	rolled_open_unserial(&r, &engine);
	rolled_put(&r, "m", "1", AT(0, 0));
	int64_t begun_ms = rolled_now_ms(&r);
	stepped_us = begun_ms * 1000;
	r.h.clock.clock.wall_us = step_wall_us; /* a second passes with each look */
	naive_fail_writes(r.h.store, ERR_UNKNOWN, UINT_MAX);
	struct ingest_request *request = rolled_send(&r, "m value=2 1598266800000\n");
	assert_int_equal(request->err, ERR_UNKNOWN);
	int64_t max_ms = recent_touches_write_max_ms(r.site.quiet_ms, 0);
	assert_true(stepped_us / 1000 >= begun_ms + max_ms);
	ingest_request_free(request);
	naive_fail_writes(r.h.store, 0, 0);
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_series_is_marked_without_the_catalog),
		cmocka_unit_test(a_request_marks_a_known_series_once),
		cmocka_unit_test(the_order_of_a_request_is_kept),
		cmocka_unit_test(what_waits_to_be_marked_does_not_wait_for_ever),
		cmocka_unit_test(a_list_of_series_is_no_run_of_another),
		cmocka_unit_test(what_ended_unknown_is_sent_again_until_it_is_known),
		cmocka_unit_test(what_stays_unknown_is_told_when_its_marks_may_be_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
