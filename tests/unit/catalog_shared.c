/* The catalog of one of several processes that share a far store: what the others do lands in it
 * directly. By seeds, with several catalogs: catalog_model.c. */
#include "catalog_harness.h"

#include "contract/far.h"

static struct far *far;

static bool step_far(void)
{
	return far_step(far);
}

static int setup_shared(void **state)
{
	static const struct far_faults none;
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&loop);
	task_queue_init(&door);
	arena_init(&arena, 64 << 20);
	far = far_new(&clock_.clock, 1, &none);
	store = far_open(far, &clock_.clock, 0);
	pump_store = step_far;
	options = catalog_options_default();
	catalog_begin();
	return 0;
}

static int teardown_shared(void **state)
{
	int err = teardown(state);
	far_free(far);
	pump_store = NULL;
	return err;
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, setup_shared, teardown_shared)

/* ---- The others ------------------------------------------------------------------------------ */

static void other_read(struct store_read *read, int err)
{
	assert_int_equal(err, 0);
	*(bool *)read->owner = true;
}

/* Another process registers a series of t's cpu. */
static uint64_t other_opens(const char *tags)
{
	static const struct slice metric = SLICE("cpu");
	struct task_queue queue;
	bool over = false;
	task_queue_init(&queue);
	struct store_read *read = store_read_new(far_landed(far), 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	request->series_open =
		(struct store_series_open){.tenant = SLICE("t"), .metrics = &metric, .count = 1};
	assert_int_equal(tags_decode(slice_of(tags), &arena, &request->series_open.tags), 0);
	read->executor = &queue.executor;
	read->done = other_read;
	read->owner = &over;
	read->now_ms = T0_MS;
	assert_int_equal(store_read_submit(read), 0);
	task_queue_run(&queue);
	assert_true(over);
	uint64_t handle = request->series_open.handles[0];
	store_read_free(read);
	task_queue_release(&queue);
	return handle;
}

static void other_wrote(struct store_write *write, int err)
{
	(void)write;
	assert_int_equal(err, 0);
}

static void other_forgets(uint64_t handle)
{
	struct task_queue queue;
	task_queue_init(&queue);
	struct store_write *write = store_write_new(far_landed(far), 1 << 20);
	write->executor = &queue.executor;
	write->done = other_wrote;
	assert_int_equal(store_series_forget(write, &handle, 1), 0);
	assert_int_equal(store_write_submit(write), 0);
	assert_int_equal(task_queue_run(&queue), 1);
	store_write_free(write);
	task_queue_release(&queue);
}

/* ---- Finds ----------------------------------------------------------------------------------- */

static void test_find_others(void **state)
{
	(void)state;
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	int64_t builds = stat_get(STAT_catalog_index_builds);
	uint64_t handle = other_opens("host=b");
	find_now("t", "cpu", NULL, "host=a host=b");
	assert_int_equal(open_one("t", "cpu", "host=b"), handle); /* known: not to come twice */
	open_one("t", "cpu", "host=c");
	other_opens("host=d");
	find_now("t", "cpu", "host=b|d", "host=b host=d");
	find_now("t", "cpu", NULL, "host=a host=b host=c host=d");
	find_now("t", "mem", NULL, "");
	open_one("t", "mem", "host=e");
	find_now("t", "mem", NULL, "host=e");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds + 1); /* that of mem */
	assert_int_equal(catalog_usage(catalog).indexed_series, 5);
}

/* Forgotten elsewhere: it may stay a while. Registered again: it is there, once. */
static void test_find_forgotten_by_others(void **state)
{
	(void)state;
	uint64_t handle = other_opens("host=a");
	other_opens("host=b");
	other_forgets(handle);
	find_now("t", "cpu", NULL, "host=b");
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a host=b");
	other_forgets(handle);
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a host=b");
}

/* While the news for one find are under way a series is registered, and another find begins: it may
 * not do with these news. */
static void test_find_joins_later_news(void **state)
{
	(void)state;
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	struct finding first, second, third;
	find_begin(&first, "t", "cpu", NULL);
	task_queue_run(&loop);
	assert_true(far_step(far)); /* answered, but not told yet */
	other_opens("host=b");
	find_begin(&second, "t", "cpu", NULL);
	find_begin(&third, "t", "cpu", "host=b");
	pump();
	check_found(&first, "host=a");
	check_found(&second, "host=a host=b");
	check_found(&third, "host=b");
}

static void test_find_cancel_news(void **state)
{
	(void)state;
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	struct finding first, second, third;
	find_begin(&first, "t", "cpu", NULL);
	find_begin(&second, "t", "cpu", NULL);
	task_queue_run(&loop);
	find_begin(&third, "t", "cpu", NULL);
	task_queue_run(&loop);
	catalog_find_cancel(&first.find); /* that the news are for */
	catalog_find_cancel(&third.find); /* that waits for the next */
	pump();
	assert_false(first.done || third.done);
	check_found(&second, "host=a");
	find_now("t", "cpu", NULL, "host=a");
}

static void test_find_news_fail(void **state)
{
	(void)state;
	static const struct {
		struct far_faults faults;
		int err;
	} wrong[] = {{{.failed = 1000}, ERR_UNKNOWN}, {{.refused = 1000}, ERR_BUSY}};
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	int64_t builds = stat_get(STAT_catalog_index_builds);
	other_opens("host=b");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct finding f;
		far_set_faults(far, &wrong[i].faults);
		find_begin(&f, "t", "cpu", NULL);
		pump();
		assert_true(f.done);
		assert_int_equal(f.err, wrong[i].err);
		assert_true(strstr(f.find.error.text, "looking up cpu: ") == f.find.error.text);
		far_set_faults(far, &(struct far_faults){0});
	}
	find_now("t", "cpu", NULL, "host=a host=b");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds);
}

/* An index that was not asked for so long that its news have gone is built again, for all who wait
 * for it; then it is kept by news as before. */
static void test_find_news_gone(void **state)
{
	(void)state;
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	int64_t builds = stat_get(STAT_catalog_index_builds);
	other_opens("host=b");
	far_forget_news(far);
	other_opens("host=c");
	struct finding first, second, third;
	find_begin(&first, "t", "cpu", NULL);
	task_queue_run(&loop);
	find_begin(&second, "t", "cpu", "host=b");
	find_begin(&third, "t", "cpu", "host=c");
	pump();
	check_found(&first, "host=a host=b host=c");
	check_found(&second, "host=b");
	check_found(&third, "host=c");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds + 1);
	other_opens("host=d");
	find_now("t", "cpu", NULL, "host=a host=b host=c host=d");
	clock_virtual_advance(&clock_, 30 * INT64_C(86400000000));
	find_now("t", "cpu", NULL, "host=a host=b host=c host=d");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds + 1); /* there were none */
	other_opens("host=e");
	clock_virtual_advance(&clock_, 30 * INT64_C(86400000000));
	find_now("t", "cpu", NULL, "host=a host=b host=c host=d host=e");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds + 2);
	assert_int_equal(catalog_usage(catalog).indexed_series, 5);
}

/* The store stands still; whoever waits is told at once. */
static void test_close_during_news(void **state)
{
	(void)state;
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	struct finding first, second;
	find_begin(&first, "t", "cpu", NULL);
	task_queue_run(&loop);
	find_begin(&second, "t", "cpu", NULL);
	task_queue_run(&loop);
	closed = false;
	catalog_close(catalog, on_closed, NULL);
	task_queue_run(&loop);
	assert_true(first.done && second.done);
	assert_int_equal(first.err, ERR_CANCELLED);
	assert_int_equal(second.err, ERR_CANCELLED);
	assert_false(closed);
	pump();
	assert_true(closed);
	catalog_begin();
}

/* Of a metric that has become too large nothing is kept, and each find says so. */
static void test_find_news_too_large(void **state)
{
	(void)state;
	options.index_max_bytes = 4000;
	restart_catalog();
	other_opens("host=a");
	find_now("t", "cpu", NULL, "host=a");
	for (int i = 0; i < 100; i++) {
		char tags[32];
		snprintf(tags, sizeof(tags), "host=h%d", i);
		other_opens(tags);
	}
	for (int i = 0; i < 2; i++) {
		struct finding f;
		find_begin(&f, "t", "cpu", NULL);
		pump();
		assert_int_equal(f.err, ERR_LIMIT);
		assert_string_equal(
			f.find.error.text,
			"cpu has more series than the index may hold (catalog.index_max)");
		assert_true(catalog_usage(catalog).index_bytes <= 4000);
	}
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* A tenant that is full is counted again after a minute: others may have forgotten series. */
static void test_room_that_others_made(void **state)
{
	(void)state;
	static const char *const full = "tenant t has all the 2 series it may have";
	options.series_per_tenant_max = 2;
	restart_catalog();
	other_opens("host=a");
	uint64_t handle = other_opens("host=b");
	refused("t", "cpu", "host=c", ERR_LIMIT, full);
	other_forgets(handle);
	refused("t", "cpu", "host=c", ERR_LIMIT, full);
	clock_virtual_advance(&clock_, 60000000);
	open_one("t", "cpu", "host=c");
	refused("t", "cpu", "host=d", ERR_LIMIT, full);
	open_one("t", "cpu", "host=a"); /* what exists is never refused */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARED_TEST(test_find_others),           SHARED_TEST(test_find_forgotten_by_others),
		SHARED_TEST(test_find_joins_later_news), SHARED_TEST(test_find_cancel_news),
		SHARED_TEST(test_find_news_fail),        SHARED_TEST(test_find_news_gone),
		SHARED_TEST(test_close_during_news),     SHARED_TEST(test_find_news_too_large),
		SHARED_TEST(test_room_that_others_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
