/* Openings of series: their limits, their names, many threads at once. */
#include "catalog_harness.h"

/* ---- Openings ------------------------------------------------------------------------------ */

static void test_open(void **state)
{
	(void)state;
	struct opening o, again;
	opening_init(&o);
	add_group(&o, "t-1", "cpu,mem", "host=a");
	add_group(&o, "t-1", "cpu,mem", "host=b");
	add_group(&o, "t-2", "cpu,mem", "host=a");
	add_group(&o, "t-1", "cpu", "");
	run_opening(&o);
	assert_int_equal(o.open.created, 7);
	for (size_t g = 0; g < 4; g++) {
		assert_int_equal(o.groups[g].err, 0);
		for (size_t m = 0; m < o.groups[g].count; m++)
			assert_int_not_equal(o.handles[g][m], 0);
	}
	assert_int_not_equal(o.handles[0][0], o.handles[2][0]); /* tenants share nothing */
	opening_init(&again);
	add_group(&again, "t-1", "mem,disk,cpu", "host=a");
	run_opening(&again);
	assert_int_equal(again.open.created, 1);
	assert_int_equal(again.handles[0][0], o.handles[0][1]);
	assert_int_equal(again.handles[0][2], o.handles[0][0]);
	catalog_open_finish(&o.open, ERR_CANCELLED);
	catalog_open_finish(&again.open, ERR_CANCELLED);
}

static void test_find_only(void **state)
{
	(void)state;
	uint64_t handle = open_one("t", "cpu", "host=a");
	struct opening o;
	opening_init(&o);
	o.open.find_only = true;
	add_group(&o, "t", "cpu", "host=a");
	add_group(&o, "t", "cpu,mem", "host=a");
	add_group(&o, "t", "cpu", "host=b");
	run_opening(&o);
	assert_int_equal(o.open.created, 0);
	assert_int_equal(o.groups[0].err, 0);
	assert_int_equal(o.handles[0][0], handle);
	assert_int_equal(o.groups[1].err, ERR_NOT_FOUND);
	assert_int_equal(o.handles[1][0], handle);
	assert_int_equal(o.handles[1][1], 0);
	assert_int_equal(o.groups[2].err, ERR_NOT_FOUND);
	catalog_open_finish(&o.open, ERR_CANCELLED);
}

static void test_sizes(void **state)
{
	(void)state;
	options.tags_max = 2;
	options.name_max_bytes = 4;
	options.value_max_bytes = 5;
	restart_catalog();
	open_one("t", "abcd", "abcd=12345,k=v");
	refused("t", "m", "a=1,b=2,c=3", ERR_LIMIT, "there are more than 2 tags");
	refused("t", "abcde", "a=1", ERR_LIMIT, "metric abcde has more than 4 bytes");
	refused("t", "m", "abcde=1", ERR_LIMIT, "tag key abcde has more than 4 bytes");
	refused("t", "m", "a=123456", ERR_LIMIT, "the value of tag a has more than 5 bytes");
	/* A bad group leaves its neighbours alone. */
	struct opening o;
	opening_init(&o);
	add_group(&o, "t", "m", "abcde=1");
	add_group(&o, "t", "m", "a=1");
	run_opening(&o);
	assert_int_equal(o.groups[0].err, ERR_LIMIT);
	assert_int_equal(o.handles[0][0], 0);
	assert_int_equal(o.groups[1].err, 0);
	catalog_open_finish(&o.open, ERR_CANCELLED);
}

#define T_IS_FULL "tenant t has all the 5 series it may have"

static void check_full(void)
{
	refused("t", "new", "host=a", ERR_LIMIT, T_IS_FULL);
	open_one("t", "cpu,mem", "host=a"); /* what exists goes on */
	open_one("u", "new", "host=a");     /* and so do others */
}

static void test_series_limit(void **state)
{
	(void)state;
	options.series_per_tenant_max = 5;
	restart_catalog();
	int64_t counted = stat_get(STAT_catalog_refused_series);
	open_one("t", "cpu,mem,disk", "host=a");
	refused("t", "cpu,mem,disk", "host=b", ERR_LIMIT, T_IS_FULL); /* 2 left, 3 wanted */
	assert_int_equal(stat_get(STAT_catalog_refused_series) - counted, 3);
	/* Two exist, two are new: that fits exactly, though not if all four were new. */
	struct opening o;
	opening_init(&o);
	add_group(&o, "t", "cpu,mem,net,load", "host=a");
	run_opening(&o);
	assert_int_equal(o.groups[0].err, 0);
	assert_int_equal(o.open.created, 2);
	catalog_open_finish(&o.open, ERR_CANCELLED);
	check_full();
	restart_catalog(); /* the count comes from the registry */
	check_full();
}

/* Partly known metrics of a refused group keep the handles that they have. */
static void test_series_limit_in_part(void **state)
{
	(void)state;
	options.series_per_tenant_max = 1;
	restart_catalog();
	uint64_t handle = open_one("t", "cpu", "host=a");
	struct opening o;
	opening_init(&o);
	add_group(&o, "t", "mem,cpu", "host=a");
	run_opening(&o);
	assert_int_equal(o.groups[0].err, ERR_LIMIT);
	assert_int_equal(o.handles[0][0], 0);
	assert_int_equal(o.handles[0][1], handle);
	catalog_open_finish(&o.open, ERR_CANCELLED);
}

static void test_rate_limit(void **state)
{
	(void)state;
	const char *sentence = "tenant t has used up its 10 new series a minute; try again later";
	options.new_series_per_minute_max = 10;
	restart_catalog();
	open_one("t", "a,b,c,d,e", "host=a");
	open_one("t", "a,b,c,d,e", "host=b");
	open_one("t", "a,b,c,d,e", "host=a"); /* known ones cost nothing */
	refused("t", "a", "host=c", ERR_LIMIT, sentence);
	clock_virtual_advance(&clock_, 5999999);
	refused("t", "a", "host=c", ERR_LIMIT, sentence);
	clock_virtual_advance(&clock_, 2); /* 10 a minute: one in 6 s */
	open_one("t", "a", "host=c");
	refused("t", "b", "host=c", ERR_LIMIT, sentence);
	clock_virtual_advance(&clock_, INT64_C(3600) * 1000000);
	struct opening o; /* an hour of silence allows one minute's worth */
	opening_init(&o);
	add_group(&o, "t", "a,b,c,d,e,f", "host=d");
	add_group(&o, "t", "a,b,c,d", "host=e");
	add_group(&o, "t", "a", "host=f");
	run_opening(&o);
	assert_int_equal(o.groups[0].err, 0);
	assert_int_equal(o.groups[1].err, 0);
	assert_int_equal(o.groups[2].err, ERR_LIMIT);
	catalog_open_finish(&o.open, ERR_CANCELLED);
}

static void test_many_groups(void **state)
{
	(void)state;
	enum { MANY = 1500 }; /* three reads of the store */
	struct catalog_group *groups = mem_zalloc(MANY * sizeof(*groups));
	struct tag *tags = mem_zalloc(MANY * sizeof(*tags));
	uint64_t *handles = mem_zalloc(MANY * sizeof(*handles));
	struct slice metric = SLICE("m");
	struct opening o;
	opening_init(&o);
	for (size_t i = 0; i < MANY; i++) {
		tags[i].key = SLICE("n");
		tags[i].value = slice_of(arena_printf(&arena, "%zu", i / 2)); /* each twice */
		groups[i] = (struct catalog_group){
			.tenant = SLICE("t"),
			.tags = {&tags[i], 1},
			.metrics = &metric,
			.count = 1,
			.handles = &handles[i],
		};
	}
	o.open.groups = groups;
	o.open.count = MANY;
	run_opening(&o);
	assert_int_equal(o.open.created, MANY / 2);
	for (size_t i = 0; i < MANY; i += 2) {
		assert_int_not_equal(handles[i], 0);
		assert_int_equal(handles[i], handles[i + 1]);
	}
	catalog_open_finish(&o.open, ERR_CANCELLED);
	mem_free(groups);
	mem_free(tags);
	mem_free(handles);
}

static void test_busy_store(void **state)
{
	(void)state;
	struct opening o;
	options.series_per_tenant_max = 3;
	restart_catalog();
	opening_init(&o);
	add_group(&o, "t", "a,b", "host=a");
	naive_refuse_reads(store, ERR_BUSY, 1);
	assert_int_equal(catalog_open_start(&o.open), ERR_BUSY);
	pump();
	assert_false(o.done);
	/* The tenant is not counted yet: the first read only looks, the second counts. */
	opening_init(&o);
	add_group(&o, "t", "a,b", "host=a");
	assert_int_equal(catalog_open_start(&o.open), 0);
	naive_refuse_reads(store, ERR_BUSY, 1);
	pump();
	assert_true(o.done);
	assert_int_equal(o.groups[0].err, ERR_BUSY);
	catalog_open_finish(&o.open, ERR_CANCELLED);
	open_one("t", "a,b", "host=a"); /* nothing was left reserved */
	open_one("t", "c", "host=a");
	/* A start that is refused gives back what it had reserved. */
	restart_catalog();
	options.series_per_tenant_max = 4;
	restart_catalog();
	refused("t", "x,y", "host=b", ERR_LIMIT, "tenant t has all the 4 series it may have");
	opening_init(&o);
	add_group(&o, "t", "x", "host=b");
	naive_refuse_reads(store, ERR_BUSY, 1);
	assert_int_equal(catalog_open_start(&o.open), ERR_BUSY);
	open_one("t", "x", "host=b");
}

/* ---- Names --------------------------------------------------------------------------------- */

/* Opens, stores the names, and says how many were not known to be stored. */
static size_t store_names(const char *metrics, const char *tags, int outcome)
{
	struct opening o;
	struct store_write *write = write_new();
	opening_init(&o);
	add_group(&o, "t", metrics, tags);
	add_group(&o, "t", metrics, tags);
	run_opening(&o);
	assert_int_equal(catalog_open_add_names(&o.open, write), 0);
	size_t cells = write->cells;
	write_out(write);
	catalog_open_finish(&o.open, outcome);
	return cells;
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(store_names("cpu,mem", "host=a", ERR_FULL), 2);
	assert_int_equal(store_names("cpu,mem", "host=a", 0), 2); /* the first write had failed */
	assert_int_equal(store_names("cpu,mem", "host=a", 0), 0);
	assert_int_equal(store_names("mem,disk", "host=b", 0), 1);
	restart_catalog();
	assert_int_equal(store_names("cpu", "host=a", 0), 1); /* an upsert of what is there */
}

static void test_names_write_full(void **state)
{
	(void)state;
	struct opening o;
	struct store_write *write = store_write_new(store, 1);
	opening_init(&o);
	add_group(&o, "t", "cpu,mem", "host=a");
	run_opening(&o);
	assert_int_equal(catalog_open_add_names(&o.open, write), ERR_LIMIT);
	store_write_free(write);
	write = write_new(); /* the rest goes into the next write */
	assert_int_equal(catalog_open_add_names(&o.open, write), 0);
	assert_int_equal(write->cells, 2);
	write_out(write);
	catalog_open_finish(&o.open, 0);
}

/* ---- Threads ------------------------------------------------------------------------------- */

enum { THREADS = 2, ROUNDS = 150 };

struct worker {
	pthread_t thread;
	struct task_queue queue;
	size_t created;
	bool refused;
};

static void worker_opened(struct catalog_open *open)
{
	*(bool *)open->owner = true;
}

/* Opens m{h=0} .. m{h=149}, as the other thread does at the same time. */
static void *open_many(void *context)
{
	struct worker *w = context;
	for (int i = 0; i < ROUNDS; i++) {
		char text[16];
		uint64_t handle = 0;
		bool done = false;
		snprintf(text, sizeof(text), "%d", i);
		struct slice metric = SLICE("m");
		struct tag tag = {SLICE("h"), slice_of(text)};
		struct catalog_group group = {SLICE("t"), {&tag, 1}, &metric, 1, &handle};
		struct catalog_open open = {
			.catalog = catalog,
			.executor = &w->queue.executor,
			.done = worker_opened,
			.owner = &done,
			.groups = &group,
			.count = 1,
		};
		if (catalog_open_start(&open))
			return NULL;
		while (!done)
			task_queue_wait(&w->queue);
		w->created += open.created;
		w->refused |= group.err != 0 || handle == 0;
		catalog_open_finish(&open, ERR_CANCELLED);
	}
	return NULL;
}

/* Two threads register the same series while the catalog's own looks them up: each is registered
 * once, and counted once, and what a find has seen the next one sees too. */
static void test_threads(void **state)
{
	(void)state;
	struct worker workers[THREADS] = {0};
	struct finding f;
	options.series_per_tenant_max = ROUNDS + THREADS;
	restart_catalog();
	find_begin(&f, "t", "m", NULL);
	for (int i = 0; i < THREADS; i++) {
		task_queue_init(&workers[i].queue);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, open_many, &workers[i]),
				 0);
	}
	size_t last = 0;
	while (last < ROUNDS) {
		task_queue_run(&loop);
		if (!f.done)
			continue;
		assert_int_equal(f.err, 0);
		assert_true(f.find.count >= last);
		last = f.find.count;
		arena_reset(&arena);
		find_begin(&f, "t", "m", NULL);
	}
	size_t created = 0;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		task_queue_release(&workers[i].queue);
		assert_false(workers[i].refused);
		created += workers[i].created;
	}
	pump();
	assert_int_equal(f.find.count, ROUNDS);
	assert_int_equal(created, ROUNDS);
	for (int i = 0; i < THREADS; i++)
		open_one("t", i ? "x" : "y", "");
	refused("t", "z", "", ERR_LIMIT, "tenant t has all the 152 series it may have");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_open),
		TEST(test_find_only),
		TEST(test_sizes),
		TEST(test_series_limit),
		TEST(test_series_limit_in_part),
		TEST(test_rate_limit),
		TEST(test_many_groups),
		TEST(test_busy_store),
		TEST(test_names),
		TEST(test_names_write_full),
		TEST(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
