/* Since when roll-ups are made of what is written. */
#include "rollup_harness.h"

#include "rollup/since.h"

#define NOON_MS INT64_C(1700049600000) /* 2023-11-15T12:00:00Z */

static const char *const two[] = {"5m:14d", "1h:365d"}, *const three[] = {"5m", "15m", "1h"};

static struct rollup_grains grains_of(const char *const *items, size_t count)
{
	struct rollup_grains grains;
	struct errbuf e;
	assert_int_equal(rollup_grains_parse(items, count, HOUR_MS, &grains, &e), 0);
	return grains;
}

static void open_at(struct harness *h, const char *const *items, size_t count, int64_t now_ms,
		    int64_t since_ms[ROLLUP_GRAINS_MAX])
{
	struct rollup_grains grains = grains_of(items, count);
	struct errbuf e;
	assert_int_equal(rollup_since_open(h->store, &grains, now_ms, since_ms, &e), 0);
}

/* Nothing was ever written: all that ever will be is marked. */
static void an_empty_store_has_always_had_them(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[ROLLUP_GRAINS_MAX] = {1, 1};
	rolled_open(&r, two, 2);
	open_at(&r.h, two, 2, NOON_MS + 1, since_ms);
	assert_true(since_ms[0] == 0 && since_ms[1] == 0);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r.h, two, 2, NOON_MS + 1, since_ms);
	assert_true(since_ms[0] == 0 && since_ms[1] == 0);
	rolled_close(&r);
}

/* The slot in which it begins has data that nobody marked. */
static void a_new_granularity_begins_with_the_next_slot(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[ROLLUP_GRAINS_MAX];
	rolled_open(&r, two, 2);
	open_at(&r.h, two, 2, NOON_MS, since_ms);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r.h, three, 3, NOON_MS + 1, since_ms);
	assert_true(since_ms[0] == 0);
	assert_true(since_ms[1] == NOON_MS + HOUR_MS);
	assert_true(since_ms[2] == 0);
	open_at(&r.h, three, 3, NOON_MS + 5 * HOUR_MS, since_ms);
	assert_true(since_ms[1] == NOON_MS + HOUR_MS);
	rolled_close(&r);
}

static void what_was_not_configured_for_a_while_begins_anew(void **state)
{
	(void)state;
	struct rolled r;
	int64_t since_ms[ROLLUP_GRAINS_MAX];
	rolled_open(&r, two, 2);
	open_at(&r.h, two, 2, NOON_MS, since_ms);
	rolled_write(&r, "m value=1 1700000000000\n");
	open_at(&r.h, two, 1, NOON_MS, since_ms);
	assert_true(since_ms[0] == 0);
	open_at(&r.h, two, 2, NOON_MS, since_ms);
	assert_true(since_ms[0] == 0);
	assert_true(since_ms[1] == NOON_MS + HOUR_MS);
	open_at(&r.h, NULL, 0, NOON_MS, since_ms);
	open_at(&r.h, two, 2, NOON_MS + 2 * HOUR_MS, since_ms);
	assert_true(since_ms[0] == NOON_MS + 3 * HOUR_MS);
	assert_true(since_ms[1] == NOON_MS + 3 * HOUR_MS);
	rolled_close(&r);
}

static void a_store_that_refuses_says_so(void **state)
{
	(void)state;
	struct rolled r;
	struct errbuf e = {""};
	int64_t since_ms[ROLLUP_GRAINS_MAX];
	struct rollup_grains grains = grains_of(two, 2);
	rolled_open(&r, two, 2);
	naive_refuse_writes(r.h.store, ERR_FULL, 1);
	assert_int_equal(rollup_since_open(r.h.store, &grains, NOON_MS, since_ms, &e), ERR_FULL);
	assert_non_null(strstr(e.text, "since when roll-ups are made cannot be told: "));
	rolled_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_store_has_always_had_them),
		cmocka_unit_test(a_new_granularity_begins_with_the_next_slot),
		cmocka_unit_test(what_was_not_configured_for_a_while_begins_anew),
		cmocka_unit_test(a_store_that_refuses_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
