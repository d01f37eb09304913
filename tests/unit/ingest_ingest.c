/* The machinery of the push doors: what is known and what waits, what is refused, how requests end,
 * pause and go on. */
#include "ingest_harness.h"

#include <math.h>

#include "base/stats.h"
#include "rollup/retention.h"

/* `k=v k=v` to tags. */
static size_t tags_of(const char *text, struct tag *tags)
{
	size_t n = 0;
	while (*text) {
		size_t key = strcspn(text, "="), value = strcspn(text + key + 1, " ");
		tags[n++] = (struct tag){{text, key}, {text + key + 1, value}};
		text += key + 1 + value;
		text += *text == ' ';
	}
	return n;
}

static void add_at(struct ingest_request *r, uint64_t index, const char *tenant, const char *tags,
		   const char *metric, struct value value, int64_t ts_ms)
{
	struct tag list[80];
	struct slice name = slice_of(metric);
	struct ingest_points points = {.tenant = slice_of(tenant),
				       .tags = list,
				       .tag_count = tags_of(tags, list),
				       .metrics = &name,
				       .values = &value,
				       .count = 1,
				       .ts_ms = ts_ms,
				       .place = {.index = index},
				       .source = slice_of(tags)};
	ingest_points(r, &points);
}

static void add(struct ingest_request *r, const char *tags, const char *metric, double number,
		int64_t ts_ms)
{
	add_at(r, 0, "t", tags, metric, value_f64(number), ts_ms);
}

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

static void old_points_are_refused_by_retention(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.retention_ms = 3600000, .ahead_ms = -1});
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "m", 1, HARNESS_NOW_MS - 3600001);
	add(r, "k=v", "m", 2, HARNESS_NOW_MS - 3600000);
	add(r, "k=v", "m", 3, HARNESS_NOW_MS);
	add(r, "k=v", "m", 4, HARNESS_NOW_MS + 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->errors[0].reason, INGEST_TOO_OLD);
	assert_string_equal(r->errors[0].sentence, "the time 1699996399999 ms is older than the "
						   "retention of 3600 s");
	assert_int_equal(r->errors[1].reason, INGEST_TOO_NEW);
	ingest_request_free(r);
	harness_close(&h);
}

/* It is 22:13:20; three hours are kept. The slot from 19:00 closes at 21:50, ten minutes before its
 * first samples go. */
static void points_of_a_closed_slot_are_refused(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.retention_ms = 3 * 3600000,
						  .rollup_partitions = 1,
						  .rollup_slot_ms = 3600000,
						  .rollup_quiet_ms = 300000});
	int64_t eight_ms = HARNESS_NOW_MS - 2 * 3600000 - 13 * 60000 - 20 * 1000;
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "m", 1, eight_ms - 1);
	add(r, "k=v", "m", 2, eight_ms);
	add(r, "k=v", "m", 3, HARNESS_NOW_MS - 3 * 3600000 - 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 1);
	assert_int_equal(r->errors[0].reason, INGEST_TOO_OLD);
	assert_string_equal(r->errors[0].sentence,
			    "the time 1699991999999 ms is too old to be rolled up: samples of its "
			    "slot go after the retention of 10800 s, those before 1699992000000 ms "
			    "are refused");
	assert_string_equal(r->errors[1].sentence, "the time 1699989199999 ms is older than the "
						   "retention of 10800 s");
	ingest_request_free(r);
	harness_close(&h);
}

/* debug is kept for 2 h, all else for 20 days. */
static void read_debug_rule(struct retention_rules *rules)
{
	static const char *const items[] = {"t/debug*/raw:2h"};
	struct rollup_grains none = {0};
	struct errbuf e;
	assert_int_equal(retention_parse(items, 1, &none, 0, rules, &e), 0);
}

static void add_pair(struct ingest_request *r, bool one_by_one, int64_t number, int64_t ts_ms)
{
	struct tag tag = {SLICE("h"), SLICE("x")};
	struct slice metrics[] = {SLICE("cpu"), SLICE("debug"), SLICE("net")};
	struct value values[] = {value_i64(number), value_i64(number + 1), value_i64(number + 2)};
	ingest_points(r, &(struct ingest_points){.tenant = SLICE("t"),
						 .tags = &tag,
						 .tag_count = 1,
						 .metrics = metrics,
						 .values = values,
						 .count = 3,
						 .ts_ms = ts_ms,
						 .place = {.index = 7},
						 .one_by_one = one_by_one});
}

/* The second request finds what the first has made known. */
static void rules_say_what_is_too_old_and_how_long_it_stays(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules;
	read_debug_rule(&rules);
	harness_open(&h, &(struct ingest_options){.retention_ms = 20 * 86400000L,
						  .retention_rules = &rules});
	const int64_t old_ms = HARNESS_NOW_MS - 3 * 3600000;
	for (int i = 0; i < 2; i++) {
		struct ingest_request *r = harness_request(&h);
		add_pair(r, false, 1, old_ms);
		add_pair(r, true, 1, old_ms);
		add_pair(r, false, 4, HARNESS_NOW_MS);
		harness_finish(&h, r);
		assert_int_equal(r->accepted, 7);
		assert_int_equal(r->refused, 2);
		assert_int_equal(r->errors[0].place.index, 7);
		assert_int_equal(r->errors[1].place.index, 8);
		assert_string_equal(r->errors[1].sentence, "the time 1699989200000 ms is older "
							   "than the retention of 7200 s");
		ingest_request_free(r);
	}
	harness_expect(&h, "t:cpu,h=x 1699989200000=1i 1700000000000=4i\n"
			   "t:debug,h=x 1700000000000=5i\n"
			   "t:net,h=x 1699989200000=3i 1700000000000=6i\n");
	/* Two hours lie in the class of two days, twenty days in that of 35. */
	clock_virtual_advance(&h.clock, 3 * INT64_C(86400000000));
	harness_expect(&h, "t:cpu,h=x 1699989200000=1i 1700000000000=4i\nt:debug,h=x\n"
			   "t:net,h=x 1699989200000=3i 1700000000000=6i\n");
	harness_close(&h);
}

static void what_a_rule_refuses_makes_no_series(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules;
	read_debug_rule(&rules);
	harness_open(&h, &(struct ingest_options){.retention_rules = &rules});
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "debug.a", 1, HARNESS_NOW_MS - 7200001);
	add(r, "k=v", "debug.b", 1, HARNESS_NOW_MS - 7200000);
	add(r, "k=v", "cpu", 1, 0);
	/* The longest is for ever, so what lies before 1970 is told as that. */
	add(r, "k=v", "cpu", 1, -1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 2);
	assert_int_equal(r->refused, 2);
	assert_string_equal(r->errors[0].sentence, "the time 1699992799999 ms is older than the "
						   "retention of 7200 s");
	assert_string_equal(r->errors[1].sentence, "the time -1 ms is before 1970");
	ingest_request_free(r);
	harness_expect(&h, "t:cpu,k=v 0=1.0f\nt:debug.b,k=v 1699992800000=1.0f\n");
	harness_close(&h);
}

/* It is 22:13:20. Of two hours 20:13:20 is the first that is kept; with ten minutes for the roll-up
 * the first slot that is open begins at 21:00. */
static void a_slot_closes_by_the_rule_of_its_series(void **state)
{
	(void)state;
	struct harness h = {0};
	struct retention_rules rules;
	read_debug_rule(&rules);
	harness_open(&h, &(struct ingest_options){.retention_rules = &rules,
						  .rollup_partitions = 1,
						  .rollup_slot_ms = 3600000,
						  .rollup_quiet_ms = 300000});
	int64_t nine_ms = HARNESS_NOW_MS - 3600000 - 13 * 60000 - 20 * 1000;
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "debug", 1, nine_ms - 1);
	add(r, "k=v", "debug", 2, nine_ms);
	add(r, "k=v", "cpu", 3, nine_ms - 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 2);
	assert_string_equal(r->errors[0].sentence,
			    "the time 1699995599999 ms is too old to be rolled up: samples of its "
			    "slot go after the retention of 7200 s, those before 1699995600000 ms "
			    "are refused");
	ingest_request_free(r);
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

/* ---- Errors of the store -------------------------------------------------------------------- */

static int status_after(struct harness *h)
{
	struct ingest_request *r = harness_request(h);
	add(r, "k=v", "m", 1, 1);
	harness_finish(h, r);
	int status = ingest_status(r);
	if (r->err)
		assert_true(strlen(r->error.text) > 0);
	ingest_request_free(r);
	assert_true(ingest_idle(h->ingest));
	return status;
}

static void errors_of_the_store_become_statuses(void **state)
{
	(void)state;
	static const struct {
		int err, status;
	} cases[] = {{ERR_BUSY, 503},    {ERR_FULL, 507},    {ERR_READ_ONLY, 507},
		     {ERR_UNKNOWN, 503}, {ERR_DAMAGED, 500}, {-5, 500}};
	struct harness h = {0};
	harness_open(&h, NULL);
	naive_refuse_reads(h.store, ERR_BUSY, 1);
	assert_int_equal(status_after(&h), 503);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (i < 3) {
			naive_refuse_writes(h.store, cases[i].err, 1);
			assert_int_equal(status_after(&h), cases[i].status);
		}
		naive_fail_writes(h.store, cases[i].err, 1);
		assert_int_equal(status_after(&h), cases[i].status);
	}
	assert_int_equal(status_after(&h), 204);
	harness_expect(&h, "t:m,k=v 1=1.0f\n");
	harness_close(&h);
}

static void a_failed_request_takes_nothing_more(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 4096});
	struct ingest_request *r = harness_request(&h);
	add(r, "k=v", "m", 1, 1);
	ingest_piece_end(r);
	harness_pump(&h);
	naive_refuse_writes(h.store, ERR_FULL, 1);
	for (int i = 0; i < 2000; i++)
		add(r, "k=v", "m", 1, 2 + i);
	assert_int_equal(r->err, ERR_FULL);
	uint64_t accepted = r->accepted;
	add(r, "k=v", "m", 1, 5000);
	add(r, "k=new", "m", 1, 5000);
	assert_int_equal(r->accepted, accepted);
	assert_false(ingest_request_must_pause(r));
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 507);
	ingest_request_free(r);
	harness_close(&h);
}

/* The samples of a round fill many writes; its marks are in the first of them. */
static void samples_are_not_written_when_the_write_that_marks_them_failed(void **state)
{
	(void)state;
	enum { METRICS = 100, SAMPLES = 3000 };
	static const int errs[] = {ERR_UNKNOWN, ERR_NOT_FOUND, 0};
	for (size_t e = 0; e < ARRAY_LEN(errs); e++) {
		struct harness h = {0};
		harness_open(&h, &(struct ingest_options){.write_bytes = 4096,
							  .rollup_partitions = 1,
							  .rollup_slot_ms = 3600000,
							  .rollup_quiet_ms = 300000});
		struct ingest_request *r = harness_request(&h);
		for (int i = 0; i < SAMPLES; i++) {
			char metric[16];
			snprintf(metric, sizeof(metric), "m%d", i % METRICS);
			add(r, "k=v", metric, 1, i);
		}
		naive_fail_writes(h.store, errs[e], errs[e] != 0);
		harness_finish(&h, r);
		assert_int_equal(ingest_status(r), errs[e] ? 503 : 204);
		ingest_request_free(r);
		char *stored = harness_stored(&h);
		size_t samples = 0;
		for (const char *at = stored; (at = strchr(at, ' ')); at++)
			samples++;
		assert_int_equal(samples, errs[e] ? 0 : SAMPLES);
		mem_free(stored);
		harness_close(&h);
	}
}

static void a_handle_that_the_store_does_not_know_empties_the_cache(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	assert_int_equal(status_after(&h), 204);
	int64_t unknown = stat_get(STAT_ingest_unknown);
	naive_fail_writes(h.store, ERR_NOT_FOUND, 1);
	assert_int_equal(status_after(&h), 503);
	assert_int_equal(stat_get(STAT_ingest_unknown), unknown);
	assert_int_equal(status_after(&h), 204);
	assert_int_equal(stat_get(STAT_ingest_unknown), unknown + 1);
	harness_close(&h);
}

static size_t count_names(struct harness *h)
{
	struct store_read *read = store_read_new(h->store, 16 << 20);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){.table = TABLE_METRIC_NAMES,
						      .key = {.part = {SLICE("t")}}};
	harness_read(h, read);
	assert_false(request->more);
	size_t count = request->cell_scan.count;
	store_read_free(read);
	return count;
}

static struct ingest_request *add_metrics(struct harness *h, int count)
{
	struct ingest_request *r = harness_request(h);
	for (int i = 0; i < count; i++) {
		char metric[256];
		snprintf(metric, sizeof(metric), "%0200d", i);
		add(r, "k=v", metric, 1, 1);
	}
	return r;
}

/* 2,500 names of 200 bytes; a write here takes about 260 KB. */
static void names_that_fill_many_writes_are_all_stored(void **state)
{
	(void)state;
	enum { METRICS = 2500 };
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 4096});
	struct ingest_request *r = add_metrics(&h, METRICS);
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 204);
	assert_int_equal(r->accepted, METRICS);
	ingest_request_free(r);
	assert_int_equal(count_names(&h), METRICS);
	harness_close(&h);
}

/* When the first of these writes fails, its names must be tried again another time. */
static void names_of_a_write_that_failed_are_not_taken_for_stored(void **state)
{
	(void)state;
	enum { METRICS = 2500 };
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 4096});
	naive_fail_writes(h.store, ERR_UNKNOWN, 1);
	struct ingest_request *r = add_metrics(&h, METRICS);
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 503);
	ingest_request_free(r);
	assert_true(count_names(&h) < METRICS);
	naive_reopen(h.store); /* the cache is emptied */
	r = add_metrics(&h, METRICS);
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
	assert_int_equal(count_names(&h), METRICS);
	harness_close(&h);
}

static void handles_that_died_are_asked_for_again(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	assert_int_equal(status_after(&h), 204);
	naive_reopen(h.store);
	/* Whether the generation tells or the write does: the second attempt succeeds. */
	int status = status_after(&h);
	assert_true(status == 204 || status == 503);
	assert_int_equal(status_after(&h), 204);
	harness_expect(&h, "t:m,k=v 1=1.0f\n");
	harness_close(&h);
}

/* ---- Ends ----------------------------------------------------------------------------------- */

static void abandoned_requests_free_themselves(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 512});
	assert_int_equal(status_after(&h), 204);
	for (int stage = 0; stage < 8; stage++) {
		struct ingest_request *r = harness_request(&h);
		if (stage >= 1)
			add(r, "k=v", "m", 1, 1);
		if (stage >= 2)
			add(r, stage & 1 ? "k=odd" : "k=even", "m", stage, 1);
		if (stage >= 3)
			ingest_piece_end(r);
		if (stage >= 4) {
			for (int i = 0; i < 500; i++)
				add(r, "k=v", "m", 1, 2 + i);
		}
		if (stage >= 5)
			ingest_request_end(r);
		if (stage >= 6)
			task_queue_run(&h.queue);
		if (stage >= 7)
			task_queue_run(&h.queue);
		if (h.done)
			ingest_request_free(r);
		else
			ingest_request_abandon(r);
		bool done = h.done;
		harness_pump(&h);
		assert_true(h.done == done);
		assert_true(ingest_idle(h.ingest));
		assert_int_equal(stat_get(STAT_ingest_in_flight_bytes), 0);
	}
	harness_close(&h);
}

static void done_is_never_called_from_within(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = harness_request(&h);
	ingest_request_end(r);
	assert_false(h.done);
	harness_pump(&h);
	assert_true(h.done);
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
	r = harness_request(&h);
	ingest_request_end(r);
	ingest_request_abandon(r);
	h.done = false;
	harness_pump(&h);
	assert_false(h.done);
	harness_close(&h);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

static void points_behind_an_opening_keep_their_order(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *r = harness_request(&h);
	ingest_piece_begin(r);
	add(r, "k=new", "m", 1, 1);
	ingest_piece_end(r); /* in flight from here on */
	add(r, "k=new", "m", 2, 1);
	add(r, "k=v", "m", 2, 1);
	add(r, "k=new", "m", 3, 1);
	add(r, "k=v", "m", 3, 1);
	ingest_piece_end(r);
	add(r, "k=v", "m", 4, 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 6);
	ingest_request_free(r);
	harness_expect(&h, "t:m,k=new 1=3.0f\nt:m,k=v 1=4.0f\n");
	harness_close(&h);
}

static void two_requests_may_want_the_same_new_series(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *a = harness_request(&h), *b = harness_request(&h);
	add(a, "k=v", "m", 1, 1);
	add(b, "k=v", "m", 2, 2);
	ingest_piece_end(a);
	ingest_piece_end(b);
	ingest_request_end(a);
	ingest_request_end(b);
	harness_pump(&h);
	assert_int_equal(ingest_status(a), 204);
	assert_int_equal(ingest_status(b), 204);
	ingest_request_free(a);
	ingest_request_free(b);
	harness_expect(&h, "t:m,k=v 1=1.0f 2=2.0f\n");
	harness_close(&h);
}

static void a_request_that_brings_too_much_pauses(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 4096,
						  .in_flight_max_bytes = 256 << 10});
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *r = harness_request(&h);
	int64_t ts = 0;
	while (!ingest_request_must_pause(r)) {
		ingest_piece_begin(r);
		for (int i = 0; i < 10; i++)
			add(r, "k=v", "m", 1, ts++);
		ingest_piece_end(r);
		assert_true(ts < 1000000);
	}
	/* A quarter of the whole is one request's share. */
	assert_in_range(stat_get(STAT_ingest_in_flight_bytes), 64 << 10, 72 << 10);
	assert_int_equal(stat_get(STAT_ingest_paused), 1);
	assert_true(ingest_request_must_pause(r));
	assert_false(h.resumed);
	harness_pump(&h);
	assert_true(h.resumed);
	assert_int_equal(stat_get(STAT_ingest_paused), 0);
	assert_false(ingest_request_must_pause(r));
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 204);
	assert_int_equal(r->accepted, ts);
	ingest_request_free(r);
	harness_close(&h);
}

/* Many requests that have gathered a little each, and then stay silent, must not stop others. */
static void what_others_have_gathered_is_written_when_memory_is_short(void **state)
{
	(void)state;
	enum { REQUESTS = 64 };
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.in_flight_max_bytes = 64 << 10});
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *silent[REQUESTS], *last = harness_request(&h);
	for (int i = 0; i < REQUESTS; i++) {
		silent[i] = harness_request(&h);
		for (int64_t n = 0; n < 60; n++)
			add(silent[i], "k=v", "m", 1, n);
		ingest_piece_end(silent[i]);
	}
	add(last, "k=v", "m", 1, 1);
	ingest_piece_end(last);
	assert_true(ingest_request_must_pause(last));
	harness_pump(&h);
	assert_true(h.resumed);
	assert_int_equal(stat_get(STAT_ingest_in_flight_bytes), 0);
	for (int i = 0; i < REQUESTS; i++)
		ingest_request_end(silent[i]);
	ingest_request_end(last);
	harness_pump(&h);
	for (int i = 0; i < REQUESTS; i++)
		ingest_request_free(silent[i]);
	ingest_request_free(last);
	harness_close(&h);
}

/* Pauses `first`, and then itself. */
static struct ingest_request *fill_up(struct harness *h, struct ingest_request *first)
{
	struct ingest_request *full = harness_request(h);
	for (int64_t n = 0; stat_get(STAT_ingest_in_flight_bytes) <= 64 << 10; n++) {
		ingest_piece_begin(full);
		add(full, "k=v", "m", 1, n);
		ingest_piece_end(full);
	}
	assert_true(ingest_request_must_pause(first));
	assert_true(ingest_request_must_pause(full));
	return full;
}

/* What has cost nothing yet is told first; what is under way waits four times as long; and who has
 * no answer to wait for, for ever. Nothing is written meanwhile, since nobody pumps. */
static void who_waits_too_long_is_told_to_come_again(void **state)
{
	(void)state;
	struct harness h = {0};
	const char *sentence = NULL;
	harness_open(
		&h, &(struct ingest_options){.in_flight_max_bytes = 64 << 10, .wait_max_ms = 1000});
	assert_int_equal(status_after(&h), 204);
	int64_t waited = stat_get(STAT_ingest_overload_waited);
	int64_t at_once = stat_get(STAT_ingest_overload_at_once);
	struct ingest_request *fresh = harness_request(&h), *patient = harness_request(&h);
	patient->door.patient = true;
	struct ingest_request *full = fill_up(&h, patient);
	assert_true(ingest_request_must_pause(fresh));

	clock_virtual_advance(&h.clock, 499000);
	ingest_tick(h.ingest);
	assert_false(ingest_turns_away(h.ingest, &sentence));
	clock_virtual_advance(&h.clock, 1000);
	assert_true(ingest_turns_away(h.ingest, &sentence));
	assert_non_null(strstr(sentence, "no more for now"));
	clock_virtual_advance(&h.clock, 499000);
	ingest_tick(h.ingest);
	assert_int_equal(fresh->err, 0);

	clock_virtual_advance(&h.clock, 1000);
	ingest_tick(h.ingest);
	assert_int_equal(fresh->err, ERR_BUSY);
	assert_int_equal(ingest_status(fresh), 503);
	assert_true(h.resumed);
	assert_int_equal(full->err, 0);
	clock_virtual_advance(&h.clock, 2999000);
	ingest_tick(h.ingest);
	assert_int_equal(full->err, 0);
	clock_virtual_advance(&h.clock, 1000);
	ingest_tick(h.ingest);
	assert_int_equal(ingest_status(full), 503);
	clock_virtual_advance(&h.clock, INT64_C(1000000000));
	ingest_tick(h.ingest);
	assert_int_equal(patient->err, 0);
	assert_int_equal(stat_get(STAT_ingest_overload_waited) - waited, 2);
	assert_int_equal(stat_get(STAT_ingest_overload_at_once) - at_once, 1);

	harness_pump(&h);
	assert_int_equal(stat_get(STAT_ingest_paused), 0);
	assert_false(ingest_turns_away(h.ingest, &sentence));
	ingest_request_end(fresh);
	ingest_request_end(full);
	ingest_request_end(patient);
	harness_pump(&h);
	ingest_request_free(fresh);
	ingest_request_free(full);
	ingest_request_free(patient);
	assert_int_equal(status_after(&h), 204);
	harness_close(&h);
}

/* New series of more requests than may be opened at once: all get their turn, in whatever state
 * they are by then. */
static void many_rounds_wait_for_each_other(void **state)
{
	(void)state;
	enum { REQUESTS = 100 };
	struct harness h = {0};
	struct ingest_request *r[REQUESTS];
	harness_open(&h, NULL);
	for (int i = 0; i < REQUESTS; i++) {
		char tags[20];
		snprintf(tags, sizeof(tags), "k=%d", i);
		r[i] = harness_request(&h);
		ingest_piece_begin(r[i]);
		add(r[i], tags, "m", i, 1);
		add(r[i], tags, "n", i, 1);
		ingest_piece_end(r[i]);
		if (i % 3 == 1)
			ingest_request_end(r[i]);
		else if (i % 3 == 2)
			ingest_request_abandon(r[i]);
	}
	harness_pump(&h);
	for (int i = 0; i < REQUESTS; i += 3)
		ingest_request_end(r[i]);
	harness_pump(&h);
	for (int i = 0; i < REQUESTS; i++) {
		if (i % 3 == 2)
			continue;
		assert_int_equal(ingest_status(r[i]), 204);
		assert_int_equal(r[i]->accepted, 2);
		ingest_request_free(r[i]);
	}
	harness_close(&h);
}

static void who_does_not_pause_is_stopped(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(
		&h, &(struct ingest_options){.write_bytes = 4096, .in_flight_max_bytes = 64 << 10});
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *r = harness_request(&h);
	int64_t ts = 0;
	for (; !r->err && ts < 1000000; ts++) {
		add(r, "k=v", "m", 1, ts);
		ingest_piece_end(r);
	}
	assert_int_equal(r->err, ERR_BUSY);
	assert_true(stat_get(STAT_ingest_in_flight_bytes) < 136 << 10);
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 503);
	ingest_request_free(r);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_stored_whatever_the_order_of_tags),
		cmocka_unit_test(tenants_do_not_share_series),
		cmocka_unit_test(what_may_not_be_stored_is_refused_with_its_place),
		cmocka_unit_test(old_points_are_refused_by_retention),
		cmocka_unit_test(points_of_a_closed_slot_are_refused),
		cmocka_unit_test(rules_say_what_is_too_old_and_how_long_it_stays),
		cmocka_unit_test(what_a_rule_refuses_makes_no_series),
		cmocka_unit_test(a_slot_closes_by_the_rule_of_its_series),
		cmocka_unit_test(many_metrics_of_one_time),
		cmocka_unit_test(a_limit_refuses_new_series_and_keeps_the_others),
		cmocka_unit_test(a_limit_hides_nothing_that_exists),
		cmocka_unit_test(errors_of_the_store_become_statuses),
		cmocka_unit_test(a_failed_request_takes_nothing_more),
		cmocka_unit_test(a_handle_that_the_store_does_not_know_empties_the_cache),
		cmocka_unit_test(names_that_fill_many_writes_are_all_stored),
		cmocka_unit_test(samples_are_not_written_when_the_write_that_marks_them_failed),
		cmocka_unit_test(names_of_a_write_that_failed_are_not_taken_for_stored),
		cmocka_unit_test(handles_that_died_are_asked_for_again),
		cmocka_unit_test(abandoned_requests_free_themselves),
		cmocka_unit_test(done_is_never_called_from_within),
		cmocka_unit_test(points_behind_an_opening_keep_their_order),
		cmocka_unit_test(two_requests_may_want_the_same_new_series),
		cmocka_unit_test(a_request_that_brings_too_much_pauses),
		cmocka_unit_test(what_others_have_gathered_is_written_when_memory_is_short),
		cmocka_unit_test(who_waits_too_long_is_told_to_come_again),
		cmocka_unit_test(many_rounds_wait_for_each_other),
		cmocka_unit_test(who_does_not_pause_is_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
