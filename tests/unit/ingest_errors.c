/* What the push doors do when the store refuses or fails. */
#include "ingest_points.h"

#include "base/stats.h"

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
							  .partitions = 1,
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_of_the_store_become_statuses),
		cmocka_unit_test(a_failed_request_takes_nothing_more),
		cmocka_unit_test(a_handle_that_the_store_does_not_know_empties_the_cache),
		cmocka_unit_test(names_that_fill_many_writes_are_all_stored),
		cmocka_unit_test(samples_are_not_written_when_the_write_that_marks_them_failed),
		cmocka_unit_test(names_of_a_write_that_failed_are_not_taken_for_stored),
		cmocka_unit_test(handles_that_died_are_asked_for_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
