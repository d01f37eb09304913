/* The catalog over the naive engine, for its tests. Two queues stand for two threads: `loop` is the
 * catalog's, `door` that of openings; each is pumped by hand, so that every interleaving can be
 * had. */
#ifndef TESTS_UNIT_CATALOG_HARNESS_H
#define TESTS_UNIT_CATALOG_HARNESS_H

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
/* For a store that gets on only when it is told to; false: it could do nothing. */
static bool (*pump_store)(void);

static inline void pump(void)
{
	while (task_queue_run(&door) + task_queue_run(&loop) + (pump_store && pump_store()))
		;
}

/* The sweep runs on a thread of its own. */
static inline void sweep_to_end(void)
{
	while (catalog_sweeping(catalog))
		task_queue_wait(&loop);
}

static inline void on_closed(void *owner)
{
	(void)owner;
	closed = true;
}

static inline void catalog_begin(void)
{
	catalog = catalog_new(store, &clock_.clock, &loop.executor, &options);
}

static inline void catalog_end(void)
{
	closed = false;
	catalog_close(catalog, on_closed, NULL);
	while (!closed) {
		pump();
		if (!closed)
			task_queue_wait(&loop); /* for the thread of a sweep */
	}
}

static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void opened(struct catalog_open *open)
{
	((struct opening *)open->owner)->done = true;
}

/* `metrics`: names with commas between; `tags`: `k=v,k=v` in order. */
static inline void add_group(struct opening *o, const char *tenant, const char *metrics,
			     const char *tags)
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

static inline void opening_init(struct opening *o)
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

static inline void run_opening(struct opening *o)
{
	assert_int_equal(catalog_open_start(&o->open), 0);
	assert_false(o->done);
	pump();
	assert_true(o->done);
}

/* Opens one group, which must succeed; gives the first handle. */
static inline uint64_t open_one(const char *tenant, const char *metrics, const char *tags)
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

static inline void refused(const char *tenant, const char *metrics, const char *tags, int err,
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

static inline void restart_catalog(void)
{
	catalog_end();
	catalog_begin();
}

/* ---- Writes -------------------------------------------------------------------------------- */

static int write_err;

static inline void written(struct store_write *write, int err)
{
	(void)write;
	write_err = err;
}

static inline struct store_write *write_new(void)
{
	struct store_write *write = store_write_new(store, 1 << 20);
	write->executor = &door.executor;
	write->done = written;
	return write;
}

static inline void write_out(struct store_write *write)
{
	write_err = 1;
	assert_int_equal(store_write_submit(write), 0);
	pump();
	assert_int_equal(write_err, 0);
	store_write_free(write);
}

/* ---- Finds --------------------------------------------------------------------------------- */

struct finding {
	struct catalog_find find;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	bool done;
	int err;
};

static inline void found(struct catalog_find *find, int err)
{
	struct finding *f = find->owner;
	f->done = true;
	f->err = err;
}

static inline void find_begin(struct finding *f, const char *tenant, const char *metric,
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

static inline void check_found(const struct finding *f, const char *wanted)
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

static inline void find_now(const char *tenant, const char *metric, const char *selectors,
			    const char *wanted)
{
	struct finding f;
	find_begin(&f, tenant, metric, selectors);
	pump();
	check_found(&f, wanted);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
