/* What the catalog tells: finds and their races with openings, lists, descriptions; the sweep. */
#include "catalog_harness.h"

/* ---- Finds --------------------------------------------------------------------------------- */

static void test_find(void **state)
{
	(void)state;
	uint64_t handle = open_one("t", "cpu", "host=a,os=linux");
	open_one("t", "cpu,mem", "host=b,os=linux");
	open_one("t", "cpu", "");
	open_one("u", "cpu", "host=secret");
	find_now("t", "cpu", NULL, " host=a,os=linux host=b,os=linux");
	find_now("t", "cpu", "os=linux,host=a", "host=a,os=linux");
	find_now("t", "mem", NULL, "host=b,os=linux");
	find_now("t", "disk", NULL, "");
	find_now("v", "cpu", NULL, "");
	struct finding f;
	find_begin(&f, "t", "cpu", "host=a");
	pump();
	assert_int_equal(f.find.series[0].handle, handle);
	find_begin(&f, "t", "cpu", NULL);
	f.find.series_max = 2;
	pump();
	assert_int_equal(f.err, ERR_LIMIT);
	assert_string_equal(f.find.error.text, "3 series match; at most 2 are read at once");
}

static void find_from(const char *selectors, const char *from, size_t max, const char *wanted)
{
	struct finding f;
	find_begin(&f, "t", "cpu", selectors);
	f.find.from = slice_of(from);
	f.find.series_max = max;
	pump();
	check_found(&f, wanted);
	assert_int_equal(f.find.metric_series, 9);
}

/* The first ones from a place on, in whichever order they came. */
static void test_find_from(void **state)
{
	(void)state;
	static const char *const tags[] = {"k=8", "k=3", "k=6", "k=1", "k=7,os=a",
					   "k=2", "k=9", "k=5", "k=4"};
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		open_one("t", "cpu", tags[i]);
	find_from(NULL, "", 1, "k=1");
	find_from(NULL, "", 2, "k=1 k=2");
	find_from(NULL, "k=2", 2, "k=2 k=3");
	find_from(NULL, "k=2\x01", 3, "k=3 k=4 k=5");
	find_from(NULL, "k=7", 100, "k=7,os=a k=8 k=9");
	find_from(NULL, "k=8", 2, "k=8 k=9");
	find_from(NULL, "l", 2, "");
	find_from("k=9|8|1|3", "", 2, "k=1 k=3");
	find_from("k=9|8|1|3", "k=2", 2, "k=3 k=8");
	find_from("os=*", "", 2, "k=7,os=a");
	find_from("os=b", "", 2, "");
}

static void test_find_after_build(void **state)
{
	(void)state;
	open_one("t", "cpu", "host=a");
	find_now("t", "cpu", NULL, "host=a");
	int64_t builds = stat_get(STAT_catalog_index_builds);
	open_one("t", "cpu,mem", "host=b");
	open_one("t", "cpu", "host=a"); /* known: not to come twice */
	find_now("t", "cpu", NULL, "host=a host=b");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds);
	assert_int_equal(catalog_usage(catalog).indexed_series, 2);
}

/* Nobody else has this store: once there is an index, a find asks the store for nothing. */
static void test_find_reads_nothing(void **state)
{
	(void)state;
	open_one("t", "cpu", "host=a");
	find_now("t", "cpu", NULL, "host=a");
	open_one("t", "cpu", "host=b");
	naive_refuse_reads(store, ERR_BUSY, 1000);
	find_now("t", "cpu", NULL, "host=a host=b");
	naive_refuse_reads(store, 0, 0);
}

/* A series is registered while the index of its metric is being built, at each step of building. */
static void test_find_race(void **state)
{
	(void)state;
	for (int steps = 0; steps < 6; steps++) {
		char metric[16], wanted[64];
		struct finding first, second;
		snprintf(metric, sizeof(metric), "m%d", steps);
		open_one("t", metric, "host=a");
		find_begin(&first, "t", metric, NULL);
		for (int i = 0; i < steps; i++)
			task_queue_run(&loop);
		struct opening o;
		opening_init(&o);
		add_group(&o, "t", metric, "host=b");
		assert_int_equal(catalog_open_start(&o.open), 0);
		while (!o.done)
			task_queue_run(&door);
		catalog_open_finish(&o.open, ERR_CANCELLED);
		find_begin(&second, "t", metric, NULL);
		pump();
		check_found(&second, "host=a host=b");
		assert_true(first.done); /* it may have seen the second or not */
		snprintf(wanted, sizeof(wanted), "host=%s", "a");
		assert_true(first.find.count >= 1);
		assert_string_equal(first.find.series[0].tags_text.data, wanted);
	}
}

static void test_find_cancel(void **state)
{
	(void)state;
	open_one("t", "cpu", "host=a");
	for (int steps = 0; steps < 3; steps++) {
		struct finding *f = mem_alloc(sizeof(*f)), other;
		find_begin(f, "t", "cpu", NULL);
		find_begin(&other, "t", "cpu", NULL);
		for (int i = 0; i < steps && !f->done; i++)
			task_queue_run(&loop);
		if (!f->done)
			catalog_find_cancel(&f->find);
		mem_free(f);
		pump();
		check_found(&other, "host=a");
		restart_catalog();
	}
}

static void test_find_close(void **state)
{
	(void)state;
	struct finding f;
	open_one("t", "cpu", "host=a");
	for (int steps = 0; steps < 3; steps++) {
		find_begin(&f, "t", "cpu", NULL);
		for (int i = 0; i < steps; i++)
			task_queue_run(&loop);
		restart_catalog();
		assert_true(f.done);
		assert_true(f.err == ERR_CANCELLED || f.err == 0);
	}
}

static void test_find_errors(void **state)
{
	(void)state;
	struct finding f;
	open_one("t", "cpu", "host=a");
	naive_refuse_reads(store, ERR_BUSY, 1);
	find_begin(&f, "t", "cpu", NULL);
	pump();
	assert_int_equal(f.err, ERR_BUSY);
	assert_true(strstr(f.find.error.text, "looking up cpu: ") == f.find.error.text);
	find_now("t", "cpu", NULL, "host=a");
}

static void test_find_evicts(void **state)
{
	(void)state;
	options.index_max_bytes = 4000; /* an index of one series takes about a kilobyte */
	restart_catalog();
	char metric[16];
	for (int i = 0; i < 40; i++) {
		snprintf(metric, sizeof(metric), "m%d", i);
		open_one("t", metric, "host=a");
		find_now("t", metric, NULL, "host=a");
		find_now("t", "m0", NULL, "host=a"); /* in use: stays */
		assert_true(catalog_usage(catalog).index_bytes <= 4000);
	}
	int64_t builds = stat_get(STAT_catalog_index_builds);
	find_now("t", "m0", NULL, "host=a");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds);
	find_now("t", "m1", NULL, "host=a");
	assert_int_equal(stat_get(STAT_catalog_index_builds), builds + 1);
	/* One that is too large by itself is refused, not kept. */
	for (int i = 0; i < 100; i++) {
		char tags[32];
		snprintf(tags, sizeof(tags), "host=h%d", i);
		open_one("t", "large", tags);
	}
	struct finding f;
	find_begin(&f, "t", "large", NULL);
	pump();
	assert_int_equal(f.err, ERR_LIMIT);
	assert_string_equal(f.find.error.text,
			    "large has more series than the index may hold (catalog.index_max)");
	assert_true(catalog_usage(catalog).index_bytes <= 4000);
}

/* ---- Lists --------------------------------------------------------------------------------- */

struct listing {
	struct catalog_list list;
	bool done;
	int err;
};

static void listed(struct catalog_list *list, int err)
{
	struct listing *l = list->owner;
	l->done = true;
	l->err = err;
}

static void list_begin(struct listing *l, enum catalog_listing what, const char *prefix,
		       size_t limit)
{
	memset(l, 0, sizeof(*l));
	l->list = (struct catalog_list){
		.catalog = catalog,
		.what = what,
		.tenant = SLICE("t"),
		.metric = SLICE("cpu"),
		.tag_key = SLICE("host"),
		.prefix = slice_of(prefix),
		.limit = limit,
		.done = listed,
		.owner = l,
		.arena = &arena,
	};
	catalog_list_start(&l->list);
	assert_false(l->done);
}

/* `wanted` ends with ` ...` if more is there than the limit lets through. */
static void list_now(enum catalog_listing what, const char *prefix, size_t limit,
		     const char *wanted)
{
	struct listing l;
	char is[1024] = "";
	size_t n = 0;
	list_begin(&l, what, prefix, limit);
	pump();
	assert_true(l.done);
	assert_int_equal(l.err, 0);
	for (size_t i = 0; i < l.list.count; i++)
		n += (size_t)snprintf(is + n, sizeof(is) - n, "%s%s", i ? " " : "",
				      l.list.names[i].data);
	snprintf(is + n, sizeof(is) - n, "%s", l.list.cut ? " ..." : "");
	assert_string_equal(is, wanted);
}

/* The asker may go away at any step. */
static void list_left_after(int steps, enum catalog_listing what)
{
	struct listing *l = mem_alloc(sizeof(*l));
	list_begin(l, what, "", 10);
	for (int i = 0; i < steps && !l->done; i++)
		task_queue_run(&loop);
	if (!l->done)
		catalog_list_cancel(&l->list);
	mem_free(l);
	pump();
}

static void open_and_store(const char *tenant, const char *metrics, const char *tags)
{
	struct opening o;
	struct store_write *write = write_new();
	opening_init(&o);
	add_group(&o, tenant, metrics, tags);
	run_opening(&o);
	assert_int_equal(catalog_open_add_names(&o.open, write), 0);
	write_out(write);
	catalog_open_finish(&o.open, 0);
}

static void test_lists(void **state)
{
	(void)state;
	list_now(CATALOG_TENANTS, "", 10, "");
	list_now(CATALOG_METRIC_NAMES, "", 10, "");
	list_now(CATALOG_TAG_KEYS, "", 10, "");
	open_and_store("t", "cpu,cpu_idle,mem,net", "host=b,os=linux");
	open_and_store("t", "cpu", "host=a,region=eu\\,west");
	open_and_store("s", "secret", "host=s");
	open_and_store("tt", "cpu", "host=z");
	list_now(CATALOG_TENANTS, "", 10, "s t tt");
	list_now(CATALOG_TENANTS, "t", 10, "t tt");
	list_now(CATALOG_TENANTS, "", 2, "s t ...");
	list_now(CATALOG_METRIC_NAMES, "", 10, "cpu cpu_idle mem net");
	list_now(CATALOG_METRIC_NAMES, "cpu", 10, "cpu cpu_idle");
	list_now(CATALOG_METRIC_NAMES, "cpu_", 10, "cpu_idle");
	list_now(CATALOG_METRIC_NAMES, "x", 10, "");
	list_now(CATALOG_METRIC_NAMES, "", 2, "cpu cpu_idle ...");
	list_now(CATALOG_METRIC_NAMES, "", 4, "cpu cpu_idle mem net");
	list_now(CATALOG_TAG_KEYS, "", 10, "host os region");
	list_now(CATALOG_TAG_KEYS, "o", 10, "os");
	list_now(CATALOG_TAG_VALUES, "", 10, "a b");
	list_now(CATALOG_TAG_VALUES, "b", 10, "b");
	list_now(CATALOG_TAG_VALUES, "", 1, "a ...");
	list_now(CATALOG_TAG_KEYS, "", 0, " ...");
	struct listing l;
	list_begin(&l, CATALOG_TAG_VALUES, "", 10);
	l.list.tag_key = SLICE("region");
	pump();
	assert_int_equal(l.list.count, 1);
	assert_string_equal(l.list.names[0].data, "eu,west"); /* without its backslash */
}

/* Where series may leave, the names of metrics are checked: to the same effect while they have
 * some.
 */
static void test_lists_while_series_may_leave(void **state)
{
	options.longest_retention_ms = 7 * DAY_MS;
	restart_catalog();
	test_lists(state);
}

/* A name leaves the list with the last series of its metric, and comes back with the next. */
static void test_names_without_series_are_not_listed(void **state)
{
	enum { GONE = 600 }; /* more than are checked at once */
	char name[20];
	(void)state;
	options.longest_retention_ms = 7 * DAY_MS;
	options.new_series_per_minute_max = 100000;
	restart_catalog();
	for (int i = 0; i < GONE; i++) {
		snprintf(name, sizeof(name), "gone%03d", i);
		open_and_store("t", name, "host=a");
	}
	open_and_store("t", "a", "host=a");
	clock_virtual_advance(&clock_, 8 * DAY_MS * 1000);
	open_and_store("t", "gone300", "host=b");
	open_and_store("t", "h", "host=a");
	open_and_store("t", "i", "host=a");
	catalog_sweep(catalog);
	sweep_to_end();
	list_now(CATALOG_METRIC_NAMES, "", 10, "gone300 h i");
	list_now(CATALOG_METRIC_NAMES, "", 3, "gone300 h i");
	list_now(CATALOG_METRIC_NAMES, "", 2, "gone300 h ...");
	list_now(CATALOG_METRIC_NAMES, "", 0, " ...");
	list_now(CATALOG_METRIC_NAMES, "gone", 10, "gone300");
	list_now(CATALOG_METRIC_NAMES, "gone4", 10, "");
	open_and_store("t", "gone599", "host=c");
	list_now(CATALOG_METRIC_NAMES, "gone", 10, "gone300 gone599");
	for (int steps = 0; steps < 12; steps++)
		list_left_after(steps, CATALOG_METRIC_NAMES);
}

static void test_list_cancel(void **state)
{
	(void)state;
	open_and_store("t", "cpu", "host=a");
	for (int what = CATALOG_TENANTS; what <= CATALOG_TAG_VALUES; what++) {
		for (int steps = 0; steps < 3; steps++) {
			list_left_after(steps, (enum catalog_listing)what);
			restart_catalog();
		}
	}
}

/* ---- Descriptions -------------------------------------------------------------------------- */

static void described(struct catalog_describe *describe, int err)
{
	*(int *)describe->owner = err;
}

static void describe_now(struct catalog_describe *d, const struct finding *f)
{
	int err = 1;
	*d = (struct catalog_describe){
		.catalog = catalog,
		.tenant = f->find.tenant,
		.metric = f->find.metric,
		.series = f->find.series,
		.count = f->find.count,
		.done = described,
		.owner = &err,
		.arena = &arena,
	};
	catalog_describe_start(d);
	pump();
	assert_int_equal(err, 0);
}

static void append_at(uint64_t handle, int64_t ts_ms)
{
	struct store_write *write = write_new();
	struct value value = value_f64(1);
	assert_int_equal(store_append(write, &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
				      ts_ms, &handle, 1, &value),
			 0);
	write_out(write);
}

static void test_describe(void **state)
{
	(void)state;
	struct finding f;
	struct catalog_describe d;
	uint64_t first = open_one("t", "cpu", "host=a");
	append_at(first, T0_MS - 5);
	clock_virtual_advance(&clock_, 1000000);
	open_one("t", "cpu", "host=b");
	/* Its only sample is newer than itself. */
	append_at(open_one("t", "cpu", "host=c"), T0_MS + 5000);
	/* Late samples, newest first. */
	append_at(first, T0_MS - 400);
	append_at(first, T0_MS - 90000000);
	find_begin(&f, "t", "cpu", NULL);
	pump();
	describe_now(&d, &f);
	assert_int_equal(d.info.kind, KIND_UNKNOWN);
	assert_int_equal(d.info.unit.len, 0);
	assert_int_equal(d.info.home, TABLE_DATA_RAW);
	assert_string_equal(d.entries[0].series.tags_text.data, "host=a");
	assert_true(d.entries[0].first_seen_ms == T0_MS - 90000000);
	assert_true(d.entries[0].last_seen_ms == T0_MS - 5);
	assert_true(d.entries[1].first_seen_ms == T0_MS + 1000);
	assert_true(d.entries[1].last_seen_ms == STORE_TS_MIN);
	assert_true(d.entries[2].first_seen_ms == T0_MS + 1000);
	assert_true(d.entries[2].last_seen_ms == T0_MS + 5000);

	struct store_write *write = write_new();
	struct catalog_info info = {KIND_RATE, SLICE("bytes/s"), TABLE_DATA_RAW, 10000};
	assert_int_equal(catalog_info_put(store, write, SLICE("t"), SLICE("cpu"), &info), 0);
	info = (struct catalog_info){KIND_GAUGE, SLICE("%"), TABLE_DATA_RAW, 0};
	assert_int_equal(catalog_info_put(store, write, SLICE("t"), SLICE("cpu1"), &info), 0);
	assert_int_equal(catalog_info_put(store, write, SLICE("t"), SLICE("cp"), &info), 0);
	info.unit = SLICE("a\nb");
	assert_int_equal(catalog_info_put(store, write, SLICE("t"), SLICE("cpu"), &info),
			 ERR_INVALID);
	write_out(write);
	describe_now(&d, &f);
	assert_string_equal(catalog_kind_text(d.info.kind), "rate");
	assert_true(slice_equal(d.info.unit, SLICE("bytes/s")));
	assert_int_equal(d.info.base_frequency_ms, 10000);
}

static void say(enum catalog_saying saying, const char *text)
{
	struct store_write *write = write_new();
	assert_int_equal(
		catalog_say(store, write, SLICE("t"), SLICE("cpu"), saying, slice_of(text), NULL),
		0);
	write_out(write);
}

static void write_infos(void)
{
	const struct catalog_info info = {KIND_RATE, SLICE("bytes/s"), TABLE_DATA_RAW, 10000};
	struct store_write *write = write_new();
	assert_int_equal(catalog_info_put(store, write, SLICE("t"), SLICE("cpu"), &info), 0);
	write_out(write);
}

/* What writers say again, as they do at each start, does not take its place. */
static void test_people_say(void **state)
{
	(void)state;
	struct finding f;
	struct catalog_describe d;
	open_and_store("t", "cpu", "host=a");
	write_infos();
	say(SAYING_KIND, "counter");
	say(SAYING_UNIT, "octets");
	say(SAYING_DESCRIPTION, "what comes in");
	write_infos();
	find_begin(&f, "t", "cpu", NULL);
	pump();
	f.find.count = 0;
	describe_now(&d, &f);
	assert_true(d.exists);
	assert_int_equal(d.info.kind, KIND_COUNTER);
	assert_true(slice_equal(d.info.unit, SLICE("octets")));
	assert_true(slice_equal(d.description, SLICE("what comes in")));
	assert_int_equal(d.info.base_frequency_ms, 10000);
	assert_int_equal(d.aggregator_count, 1);
	assert_true(slice_equal(d.aggregators[0], SLICE("raw")));
	say(SAYING_KIND, "");
	say(SAYING_UNIT, "");
	say(SAYING_DESCRIPTION, "");
	describe_now(&d, &f);
	assert_int_equal(d.info.kind, KIND_RATE);
	assert_true(slice_equal(d.info.unit, SLICE("bytes/s")));
	assert_int_equal(d.description.len, 0);
	f.find.metric = SLICE("cp");
	describe_now(&d, &f);
	assert_false(d.exists);
	assert_int_equal(d.aggregator_count, 0);
}

/* ---- The sweep ----------------------------------------------------------------------------- */

static void test_sweep(void **state)
{
	(void)state;
	catalog_sweep(catalog);
	assert_false(catalog_sweeping(catalog)); /* for ever: nothing to do */
	options.longest_retention_ms = 7 * DAY_MS;
	options.series_per_tenant_max = 3;
	restart_catalog();
	uint64_t alive = open_one("t", "cpu", "host=alive");
	open_one("t", "cpu", "host=silent");
	clock_virtual_advance(&clock_, 6 * DAY_MS * 1000);
	open_one("t", "cpu", "host=young");
	find_now("t", "cpu", NULL, "host=alive host=silent host=young");
	catalog_sweep(catalog);
	sweep_to_end();
	find_now("t", "cpu", NULL, "host=alive host=silent host=young"); /* nobody is old enough */
	clock_virtual_advance(&clock_, 2 * DAY_MS * 1000);
	append_at(alive, T0_MS + 2 * DAY_MS);
	refused("t", "cpu", "host=new", ERR_LIMIT, "tenant t has all the 3 series it may have");
	int64_t sweeps = stat_get(STAT_catalog_sweeps);
	catalog_sweep(catalog);
	assert_true(catalog_sweeping(catalog));
	catalog_sweep(catalog); /* one at a time */
	assert_int_equal(stat_get(STAT_catalog_sweeps), sweeps + 1);
	sweep_to_end();
	find_now("t", "cpu", NULL, "host=alive host=young");
	open_one("t", "cpu", "host=new"); /* its place is free */
	find_now("t", "cpu", NULL, "host=alive host=new host=young");
	refused("t", "cpu", "host=newer", ERR_LIMIT, "tenant t has all the 3 series it may have");
	open_one("t", "cpu", "host=alive");
}

static void test_sweep_close(void **state)
{
	(void)state;
	options.longest_retention_ms = 7 * DAY_MS;
	restart_catalog();
	for (int steps = 0; steps < 6; steps++) {
		open_one("t", "cpu", "host=silent");
		clock_virtual_advance(&clock_, 8 * DAY_MS * 1000);
		catalog_sweep(catalog);
		for (int i = 0; i < steps; i++)
			task_queue_run(&loop);
		restart_catalog();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_find),
		TEST(test_find_from),
		TEST(test_find_after_build),
		TEST(test_find_reads_nothing),
		TEST(test_find_race),
		TEST(test_find_cancel),
		TEST(test_find_close),
		TEST(test_find_errors),
		TEST(test_find_evicts),
		TEST(test_lists),
		TEST(test_lists_while_series_may_leave),
		TEST(test_names_without_series_are_not_listed),
		TEST(test_list_cancel),
		TEST(test_describe),
		TEST(test_people_say),
		TEST(test_sweep),
		TEST(test_sweep_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
