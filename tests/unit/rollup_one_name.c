/* Processes of one name on one host: two that share a far store, at the same time, whose clock
 * stands still; and one after the other on a store of their own, which wait for nothing. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "contract/far.h"
#include "contract/naive.h"
#include "lease/job_claim.h"
#include "lease/lease.h"
#include "rollup/site.h"
#include "store/wait.h"

#define NOON_MS  INT64_C(1700049600000) /* 2023-11-15T12:00:00Z */
#define LEASE_MS INT64_C(120000)
#define QUIET_MS INT64_C(300000)
#define SKEW_MS  INT64_C(10000)

enum { PARTITIONS = 4 };

struct world {
	struct clock_virtual clock;
	struct task_queue queue;
	struct far *far;
	pthread_t thread;
};

static void world_open(struct world *w, bool far)
{
	static const struct far_faults none;
	*w = (struct world){0};
	clock_virtual_init(&w->clock, NOON_MS * 1000);
	task_queue_init(&w->queue);
	if (!far)
		return;
	w->far = far_new(&w->clock.clock, 1, &none);
	assert_int_equal(pthread_create(&w->thread, NULL, far_run, w->far), 0);
}

static void world_close(struct world *w)
{
	if (w->far) {
		far_stop(w->far);
		pthread_join(w->thread, NULL);
		far_free(w->far);
	}
	task_queue_release(&w->queue);
}

/* As the start of a server whose name is "h". */
static void site_begin(struct world *w, struct rollup_site *site, struct store *store)
{
	static const char *const granularities[] = {"5m", "1h"};
	struct errbuf e = {""};
	*site = (struct rollup_site){.partitions = PARTITIONS,
				     .quiet_ms = QUIET_MS,
				     .skew_max_ms = SKEW_MS,
				     .retention = retention_for_ever,
				     .name = "h",
				     .name_given_len = 1,
				     .address = "10.0.0.1:8470",
				     .share = true,
				     .lease_ms = LEASE_MS};
	assert_int_equal(granularities_parse(granularities, ARRAY_LEN(granularities), 3600000,
					     &site->granularities, &e),
			 0);
	assert_int_equal(partitions_parse(SLICE("0-3"), PARTITIONS, &site->own, &e), 0);
	assert_int_equal(rollup_site_open(site, store, &w->clock.clock, &e), 0);
}

static int count_cell(const struct store_cell *cell, void *owner)
{
	(void)cell;
	++*(size_t *)owner;
	return 0;
}

static size_t count_row(struct world *w, struct store *store, enum table table,
			const struct store_parts *row)
{
	size_t count = 0;
	struct errbuf e;
	assert_int_equal(
		store_row_wait(store, &w->queue, NOON_MS, table, row, count_cell, &count, &e), 0);
	return count;
}

static size_t count_sessions(struct world *w, struct store *store)
{
	return count_row(w, store, TABLE_LEASES, &(struct store_parts){{SLICE("session")}});
}

static void touch(struct world *w, struct rollup_site *site)
{
	const struct mark_touch one = {.slot = {(NOON_MS - 3600000) / 1000, 0},
				       .tenant = SLICE("t"),
				       .series_set = {.metric = SLICE("m")}};
	assert_int_equal(marks_mark_wait(site->marks, &w->queue, NOON_MS, &one, 1), 0);
}

static int take_deletion(struct world *w, struct rollup_site *site, struct errbuf *e)
{
	*e = (struct errbuf){""};
	return job_claims_take(site->claims, &w->queue, JOB_CLAIM_DELETION, e);
}

static size_t take_partitions(struct world *w, struct rollup_site *site, struct leases *leases)
{
	struct partitions held;
	int64_t until_ms;
	assert_int_equal(leases_take(leases, &w->queue, &site->own, &held, &until_ms), 0);
	return held.count;
}

static struct leases *leases_of(struct rollup_site *site)
{
	return leases_new(&(struct leases_options){
		.session = site->session, .kind = "rollup", .share = true});
}

/* Marks of one name at one moment were one cell, and both had all partitions. */
static void two_at_once_are_two(void **state)
{
	struct world w;
	struct rollup_site a, b;
	struct errbuf e;
	uint8_t row[2][8];
	(void)state;
	world_open(&w, true);
	struct store *stores[] = {far_open(w.far, &w.clock.clock, 0),
				  far_open(w.far, &w.clock.clock, 0)};
	site_begin(&w, &a, stores[0]);
	site_begin(&w, &b, stores[1]);
	assert_string_not_equal(a.name, b.name);
	assert_memory_equal(a.name, "h-", 2);
	assert_memory_equal(b.name, "h-", 2);
	assert_int_equal(count_sessions(&w, stores[0]), 2);

	/* Their clock stands still, so both have the same stamps. */
	touch(&w, &a);
	touch(&w, &b);
	be64_put(row[0], 0);
	be64_put(row[1], (NOON_MS - 3600000) / 1000);
	const struct store_parts marks = {{{(const char *)row[0], 8}, {(const char *)row[1], 8}}};
	assert_int_equal(count_row(&w, stores[0], TABLE_MARKS, &marks), 2);

	struct leases *of_a = leases_of(&a), *of_b = leases_of(&b);
	/* The session of the other was there before. */
	assert_int_equal(take_partitions(&w, &a, of_a), PARTITIONS / 2);
	assert_int_equal(take_partitions(&w, &b, of_b), PARTITIONS / 2);

	/* A stop gives back what it has, also a job's right that it was still at. */
	assert_int_equal(take_deletion(&w, &a, &e), 0);
	assert_int_equal(take_deletion(&w, &b, &e), ERR_BUSY);
	assert_non_null(strstr(e.text, a.name));
	assert_int_equal(leases_give(of_a, &w.queue), 0);
	rollup_site_close(&a);
	assert_int_equal(take_deletion(&w, &b, &e), 0);
	assert_int_equal(take_partitions(&w, &b, of_b), PARTITIONS);
	job_claims_give(b.claims, JOB_CLAIM_DELETION);
	leases_free(of_a);
	leases_free(of_b);
	rollup_site_close(&b);
	assert_int_equal(count_sessions(&w, stores[0]), 0);
	store_close(stores[0]);
	store_close(stores[1]);
	world_close(&w);
}

/* Where one process has the store its name is all, and what it had before a kill is its own at
 * once: no time passes here. */
static void one_after_the_other_waits_for_nothing(void **state)
{
	struct world w;
	struct rollup_site a, b;
	struct errbuf e;
	(void)state;
	world_open(&w, false);
	struct store *store = naive_open(&w.clock.clock);
	site_begin(&w, &a, store);
	assert_string_equal(a.name, "h");
	struct leases *of_a = leases_of(&a);
	assert_int_equal(take_partitions(&w, &a, of_a), PARTITIONS);
	int64_t last_us = store_stamp(store);
	/* It is killed: what it had stays as it is, and the next one of its name begins. */
	site_begin(&w, &b, store);
	struct leases *of_b = leases_of(&b);
	assert_int_equal(take_partitions(&w, &b, of_b), PARTITIONS);
	assert_int_equal(take_deletion(&w, &b, &e), 0);
	assert_true(store_stamp(store) > last_us);
	assert_int_equal(clock_wall_ms(&w.clock.clock), NOON_MS);
	job_claims_give(b.claims, JOB_CLAIM_DELETION);
	leases_free(of_a);
	leases_free(of_b);
	rollup_site_close(&b);
	rollup_site_close(&a);
	store_close(store);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_at_once_are_two),
		cmocka_unit_test(one_after_the_other_waits_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
