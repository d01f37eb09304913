/* What the push doors store and what they refuse: names, tenants, limits. */
#include "ingest_points.h"

#include <math.h>

#include "base/stats.h"

static void points_are_stored_whatever_the_order_of_tags(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = harness_request(&h);
	ingest_piece_begin(r);
	add(r, "host=a os=linux", "m", 1, 1);
	add(r, "os=linux host=a", "m", 2, 2);
	add(r, "", "m", 3, 3);
	/* Keys and values swapped are another series. */
	add(r, "a=host linux=os", "m", 4, 4);
	ingest_piece_end(r);
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 204);
	assert_int_equal(r->accepted, 4);
	ingest_request_free(r);
	int64_t unknown = stat_get(STAT_ingest_unknown);
	r = harness_request(&h);
	add(r, "os=linux host=a", "m", 5, 5);
	add(r, "host=a os=linux", "m", 6, 6);
	harness_finish(&h, r);
	ingest_request_free(r);
	assert_int_equal(stat_get(STAT_ingest_unknown), unknown);
	harness_expect(&h, "t:m 3=3.0f\nt:m,a=host,linux=os 4=4.0f\n"
			   "t:m,host=a,os=linux 1=1.0f 2=2.0f 5=5.0f 6=6.0f\n");
	harness_close(&h);
}

/* The writes of the first request are so small that each has one value. */
static void the_higher_stamp_stays_whoever_writes_last(void **state)
{
	static const int64_t stamps_us[] = {1000, 900, 1001, 1002};
	static const double values[] = {1, 2, 3, 4};
	(void)state;
	struct harness h = {0};
	const struct ingest_options options = {.write_bytes = 1};
	harness_open(&h, &options);
	for (size_t i = 0; i < ARRAY_LEN(stamps_us); i++) {
		const struct ingest_door door = {
			.done = harness_done, .owner = &h, .stamp_us = stamps_us[i]};
		struct ingest_request *r = ingest_request_new(h.ingest, &door);
		h.done = false;
		add(r, "k=v", "m", values[i], 1);
		if (!i) { /* of one sample the later value wins; its stamp is 1,002 */
			add(r, "k=v", "m", 7, 1);
			add(r, "k=v", "m", 5, 1);
		}
		harness_finish(&h, r);
		ingest_request_free(r);
		/* 4 has the stamp of 5, and is less. */
		harness_expect(&h, "t:m,k=v 1=5.0f\n");
	}
	harness_close(&h);
}

static void tenants_do_not_share_series(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	for (int i = 0; i < 2; i++) {
		struct ingest_request *r = harness_request(&h);
		add_at(r, 0, "a", "k=v", "m", value_i64(1), 1 + i);
		add_at(r, 0, "b", "k=v", "m", value_i64(2), 1 + i);
		harness_finish(&h, r);
		ingest_request_free(r);
	}
	harness_expect(&h, "a:m,k=v 1=1i 2=1i\nb:m,k=v 1=2i 2=2i\n");
	harness_close(&h);
}

static void what_may_not_be_stored_is_refused_with_its_place(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = harness_request(&h);
	ingest_piece_begin(r);
	add_at(r, 9, "t", "k=v", "", value_i64(1), 1);
	add_at(r, 8, "t", "k=", "m", value_i64(1), 1);
	add_at(r, 7, "t", "=v", "m", value_i64(1), 1);
	add_at(r, 6, "t", "k=v k=w", "m", value_i64(1), 1);
	add_at(r, 5, "t", "k=v", "m", value_f64(NAN), 1);
	add_at(r, 4, "t", "k=v", "m", value_f64(-INFINITY), 1);
	add_at(r, 3, "t", "k=v", "m", value_i64(1), -1);
	add_at(r, 2, "t", "k=v", "m", value_i64(1), HARNESS_NOW_MS + 86400001);
	add_at(r, 1, "t", "k=v", "m", value_i64(1), HARNESS_NOW_MS + 86400000);
	add_at(r, 0, "t", "k=v", "m", value_i64(2), 0);
	ingest_piece_end(r);
	harness_finish(&h, r);
	static const enum ingest_reason want[] = {
		INGEST_TOO_NEW, INGEST_TOO_OLD, INGEST_NOT_FINITE, INGEST_NOT_FINITE,
		INGEST_NAME,    INGEST_NAME,    INGEST_NAME,       INGEST_NAME};
	assert_int_equal(ingest_status(r), 400);
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->refused, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(r->errors[i].place.index, i + 2);
		assert_int_equal(r->errors[i].reason, want[i]);
	}
	assert_true(slice_equal(r->errors[6].source, SLICE("k=")));
	assert_string_equal(r->errors[4].sentence, "tag \"k\" stands twice");
	ingest_request_free(r);
	harness_expect(&h, "t:m,k=v 0=2i 1700086400000=1i\n");
	harness_close(&h);
}

static void many_metrics_of_one_time(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	for (int i = 0; i < 2; i++) {
		struct ingest_request *r = harness_request(&h);
		struct tag tag = {SLICE("h"), SLICE("x")};
		struct slice metrics[] = {SLICE("a"), SLICE("b"), SLICE("c"), SLICE("d")};
		struct value values[] = {
			value_i64(1), {0, VALUE_NONE}, value_f64(NAN), value_u64(4)};
		ingest_points(r, &(struct ingest_points){.tenant = SLICE("t"),
							 .tags = &tag,
							 .tag_count = 1,
							 .metrics = metrics,
							 .values = values,
							 .count = 4,
							 .ts_ms = i});
		harness_finish(&h, r);
		assert_int_equal(r->accepted, 2);
		assert_int_equal(r->refused, 1);
		ingest_request_free(r);
	}
	harness_expect(&h, "t:a,h=x 0=1i 1=1i\nt:d,h=x 0=4u 1=4u\n");
	harness_close(&h);
}

static void a_limit_refuses_new_series_and_keeps_the_others(void **state)
{
	(void)state;
	struct harness h = {0};
	h.catalog_options = catalog_options_default();
	h.catalog_options.series_per_tenant_max = 2;
	harness_open(&h, NULL);
	struct ingest_request *r = harness_request(&h);
	add_at(r, 0, "t", "k=1", "m", value_i64(1), 1);
	add_at(r, 1, "t", "k=2", "m", value_i64(2), 1);
	add_at(r, 2, "t", "k=3", "m", value_i64(3), 1);
	add_at(r, 3, "t", "k=1", "m", value_i64(4), 2);
	add_at(r, 4, "u", "k=1", "m", value_i64(5), 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 4);
	assert_int_equal(r->refused, 1);
	assert_int_equal(r->errors[0].place.index, 2);
	assert_int_equal(r->errors[0].reason, INGEST_LIMIT);
	assert_string_equal(r->errors[0].sentence, "tenant t has all the 2 series it may have");
	assert_true(slice_equal(r->errors[0].source, SLICE("k=3")));
	ingest_request_free(r);
	harness_expect(&h, "t:m,k=1 1=1i 2=4i\nt:m,k=2 1=2i\nu:m,k=1 1=5i\n");
	harness_close(&h);
}

/* Of metrics that come together, those that exist take their values though others are refused. */
static void a_limit_hides_nothing_that_exists(void **state)
{
	(void)state;
	struct harness h = {0};
	h.catalog_options = catalog_options_default();
	h.catalog_options.series_per_tenant_max = 2;
	harness_open(&h, NULL);
	struct slice metrics[] = {SLICE("a"), SLICE("b"), SLICE("c")};
	struct value values[] = {value_i64(1), value_i64(2), value_i64(3)};
	for (size_t count = 2; count <= 3; count++) {
		struct ingest_request *r = harness_request(&h);
		ingest_points(r, &(struct ingest_points){.tenant = SLICE("t"),
							 .metrics = metrics,
							 .values = values,
							 .count = count,
							 .ts_ms = (int64_t)count});
		harness_finish(&h, r);
		assert_int_equal(r->accepted, 2);
		assert_int_equal(r->refused, count - 2);
		ingest_request_free(r);
	}
	harness_expect(&h, "t:a 2=1i 3=1i\nt:b 2=2i 3=2i\n");
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_higher_stamp_stays_whoever_writes_last),
		cmocka_unit_test(points_are_stored_whatever_the_order_of_tags),
		cmocka_unit_test(tenants_do_not_share_series),
		cmocka_unit_test(what_may_not_be_stored_is_refused_with_its_place),
		cmocka_unit_test(many_metrics_of_one_time),
		cmocka_unit_test(a_limit_refuses_new_series_and_keeps_the_others),
		cmocka_unit_test(a_limit_hides_nothing_that_exists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
