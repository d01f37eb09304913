/* The catalog over the naive engine: openings and their limits, finds and their races with
 * openings, lists, descriptions, the sweep. Two queues stand for two threads: `loop` is the
 * catalog's, `door` that of openings; each is pumped by hand, so that every interleaving can be
 * had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "naive.h"

#define DAY_MS INT64_C(86400000)
#define T0_MS  INT64_C(1600000000000)

static struct clock_virtual clock_;
static struct task_queue loop, door;
static struct store *store;
static struct catalog *catalog;
static struct catalog_options options;
static struct arena arena;
static bool closed;

static void pump(void)
{
	while (task_queue_run(&door) + task_queue_run(&loop))
		;
}

static void on_closed(void *owner)
{
	(void)owner;
	closed = true;
}

static void catalog_begin(void)
{
	catalog = catalog_new(store, &clock_.clock, &loop.executor, &options);
}

static void catalog_end(void)
{
	closed = false;
	catalog_close(catalog, on_closed, NULL);
	pump();
	assert_true(closed);
}

static int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&loop);
	task_queue_init(&door);
	arena_init(&arena, 64 << 20);
	store = naive_open(&clock_.clock);
	options = catalog_options_default();
	catalog_begin();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	catalog_end();
	store_close(store);
	arena_release(&arena);
	task_queue_release(&loop);
	task_queue_release(&door);
	return 0;
}

/* ---- Openings ------------------------------------------------------------------------------ */

enum { METRICS_MAX = 8, GROUPS_MAX = 8 };

struct opening {
	struct catalog_open open;
	struct catalog_group groups[GROUPS_MAX];
	struct slice metrics[GROUPS_MAX][METRICS_MAX];
	uint64_t handles[GROUPS_MAX][METRICS_MAX];
	struct tag tags[GROUPS_MAX][METRICS_MAX];
	bool done;
};

static void opened(struct catalog_open *open)
{
	((struct opening *)open->owner)->done = true;
}

/* `metrics`: names with commas between; `tags`: `k=v,k=v` in order. */
static void add_group(struct opening *o, const char *tenant, const char *metrics, const char *tags)
{
	size_t g = o->open.count++;
	struct catalog_group *group = &o->groups[g];
	struct tags decoded;
	assert_int_equal(tags_decode(slice_of(tags), &arena, &decoded), 0);
	*group = (struct catalog_group){
		.tenant = slice_of(tenant),
		.tags = decoded,
		.metrics = o->metrics[g],
		.handles = o->handles[g],
	};
	for (const char *p = metrics; *p;) {
		size_t len = strcspn(p, ",");
		o->metrics[g][group->count++] = (struct slice){p, len};
		p += len + (p[len] == ',');
	}
}

static void opening_init(struct opening *o)
{
	memset(o, 0, sizeof(*o));
	memset(o->handles, 0xee, sizeof(o->handles));
	o->open = (struct catalog_open){
		.catalog = catalog,
		.executor = &door.executor,
		.done = opened,
		.owner = o,
		.groups = o->groups,
	};
}

static void run_opening(struct opening *o)
{
	assert_int_equal(catalog_open_start(&o->open), 0);
	assert_false(o->done);
	pump();
	assert_true(o->done);
}

/* Opens one group, which must succeed; gives the first handle. */
static uint64_t open_one(const char *tenant, const char *metrics, const char *tags)
{
	struct opening o;
	opening_init(&o);
	add_group(&o, tenant, metrics, tags);
	run_opening(&o);
	assert_int_equal(o.groups[0].err, 0);
	assert_null(o.groups[0].sentence);
	catalog_open_finish(&o.open, ERR_CANCELLED);
	return o.handles[0][0];
}

static void refused(const char *tenant, const char *metrics, const char *tags, int err,
		    const char *sentence)
{
	struct opening o;
	opening_init(&o);
	add_group(&o, tenant, metrics, tags);
	run_opening(&o);
	assert_int_equal(o.groups[0].err, err);
	assert_string_equal(o.groups[0].sentence, sentence);
	catalog_open_finish(&o.open, ERR_CANCELLED);
}

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

static void restart_catalog(void)
{
	catalog_end();
	catalog_begin();
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

static int write_err;

static void written(struct store_write *write, int err)
{
	(void)write;
	write_err = err;
}

static struct store_write *write_new(void)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = &door.executor;
	write->done = written;
	return write;
}

static void write_out(struct store_write *write)
{
	write_err = 1;
	assert_int_equal(store_write_submit(write), 0);
	pump();
	assert_int_equal(write_err, 0);
	store_write_free(write);
}

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

/* ---- Finds --------------------------------------------------------------------------------- */

struct finding {
	struct catalog_find find;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	bool done;
	int err;
};

static void found(struct catalog_find *find, int err)
{
	struct finding *f = find->owner;
	f->done = true;
	f->err = err;
}

static void find_begin(struct finding *f, const char *tenant, const char *metric,
		       const char *selectors)
{
	struct errbuf e;
	memset(f, 0, sizeof(*f));
	f->find = (struct catalog_find){
		.catalog = catalog,
		.tenant = slice_of(tenant),
		.metric = slice_of(metric),
		.selectors = f->selectors,
		.series_max = 1000,
		.done = found,
		.owner = f,
		.arena = &arena,
	};
	if (selectors)
		assert_int_equal(catalog_selectors_parse(slice_of(selectors), &arena, f->selectors,
							 &f->find.selector_count, &e),
				 0);
	catalog_find_start(&f->find);
	assert_false(f->done);
}

static void check_found(const struct finding *f, const char *wanted)
{
	char is[4096] = "";
	size_t n = 0;
	assert_true(f->done);
	if (f->err)
		fail_msg("%s", f->find.error.text);
	for (size_t i = 0; i < f->find.count; i++)
		n += (size_t)snprintf(is + n, sizeof(is) - n, "%s%s", i ? " " : "",
				      f->find.series[i].tags_text.data);
	assert_string_equal(is, wanted);
}

static void find_now(const char *tenant, const char *metric, const char *selectors,
		     const char *wanted)
{
	struct finding f;
	find_begin(&f, tenant, metric, selectors);
	pump();
	check_found(&f, wanted);
}

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
	assert_string_equal(f.find.error.text, "large has more series than the index may hold");
	assert_true(catalog_usage(catalog).index_bytes <= 4000);
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

static void test_list_cancel(void **state)
{
	(void)state;
	open_and_store("t", "cpu", "host=a");
	for (int what = CATALOG_TENANTS; what <= CATALOG_TAG_VALUES; what++) {
		for (int steps = 0; steps < 3; steps++) {
			struct listing *l = mem_alloc(sizeof(*l));
			list_begin(l, (enum catalog_listing)what, "", 10);
			for (int i = 0; i < steps && !l->done; i++)
				task_queue_run(&loop);
			if (!l->done)
				catalog_list_cancel(&l->list);
			mem_free(l);
			pump();
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
	assert_int_equal(
		store_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER, ts_ms, &handle, 1, &value),
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
	pump();
	find_now("t", "cpu", NULL, "host=alive host=silent host=young"); /* nobody is old enough */
	clock_virtual_advance(&clock_, 2 * DAY_MS * 1000);
	append_at(alive, T0_MS + 2 * DAY_MS);
	refused("t", "cpu", "host=new", ERR_LIMIT, "tenant t has all the 3 series it may have");
	catalog_sweep(catalog);
	assert_true(catalog_sweeping(catalog));
	catalog_sweep(catalog); /* one at a time */
	pump();
	assert_false(catalog_sweeping(catalog));
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
		TEST(test_find),
		TEST(test_find_after_build),
		TEST(test_find_race),
		TEST(test_find_cancel),
		TEST(test_find_close),
		TEST(test_find_errors),
		TEST(test_find_evicts),
		TEST(test_threads),
		TEST(test_lists),
		TEST(test_list_cancel),
		TEST(test_describe),
		TEST(test_sweep),
		TEST(test_sweep_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
