/* Counts by minute on their way into samples. HARNESS_NOW_MS is 20 s into a minute. */
#include "ingest_harness.h"

#include "base/random.h"
#include "base/stats.h"
#include "ingest/minute_sums.h"

#define MINUTE_0_MS (HARNESS_NOW_MS - 20000)

enum { SEED = 5, OTHER_SEED = 6, SUMS_MAX = 2 };

static struct harness h;
static struct minute_sums *sums;
static struct arena arena;

static int setup(void **state)
{
	(void)state;
	h = (struct harness){0};
	harness_open(&h, NULL);
	arena_init(&arena, 1 << 20);
	sums = minute_sums_new(&(struct minute_sums_options){
		.ingest = h.ingest, .clock = &h.clock.clock, .seed = SEED, .sums_max = SUMS_MAX});
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	minute_sums_free(sums);
	arena_release(&arena);
	harness_close(&h);
	return 0;
}

static int64_t offset_of(uint64_t seed)
{
	struct random random;
	random_init(&random, seed);
	return (int64_t)random_below(&random, 10000);
}

static void add_to(struct minute_sums *to, const char *name, int64_t ms, uint64_t count)
{
	struct minute_counts counts = {0};
	const struct minute_count one = {.metric = SLICE("m"),
					 .tags = {{SLICE("k"), slice_of(name)}},
					 .tag_count = 1,
					 .ms = ms,
					 .count = count};
	minute_counts_add(&counts, &one, &arena);
	minute_sums_add(to, SLICE("t"), &counts);
	arena_reset(&arena); /* what it points to is its own */
}

static void add(const char *name, int64_t ms, uint64_t count)
{
	add_to(sums, name, ms, count);
}

static void write_due(void)
{
	clock_virtual_advance(&h.clock, 1000000);
	minute_sums_tick(sums);
	harness_pump(&h);
	assert_true(minute_sums_idle(sums));
}

#define EXPECT(...)                                                                                \
	do {                                                                                       \
		char *want_ = arena_printf(&arena, __VA_ARGS__);                                   \
		harness_expect(&h, want_);                                                         \
	} while (0)

static void a_minute_is_one_sample(void **state)
{
	long long at_ms = MINUTE_0_MS + offset_of(SEED);
	(void)state;
	add("a", MINUTE_0_MS, 2);
	add("a", MINUTE_0_MS + 59999, 3);
	write_due();
	EXPECT("t:m,k=a %lld=5i\n", at_ms);
	add("a", MINUTE_0_MS + 60000, 1);
	add("a", MINUTE_0_MS + 1, 4);
	write_due();
	EXPECT("t:m,k=a %lld=9i %lld=1i\n", at_ms, at_ms + 60000);
}

static void what_has_no_time_is_of_now(void **state)
{
	(void)state;
	add("a", MINUTE_UNKNOWN, 2);
	write_due();
	EXPECT("t:m,k=a %lld=2i\n", (long long)(MINUTE_0_MS + offset_of(SEED)));
}

static void nothing_is_written_before_its_time(void **state)
{
	(void)state;
	add("a", MINUTE_0_MS, 2);
	write_due();
	add("a", MINUTE_0_MS, 2);
	clock_virtual_advance(&h.clock, 999999);
	minute_sums_tick(sums);
	harness_pump(&h);
	EXPECT("t:m,k=a %lld=2i\n", (long long)(MINUTE_0_MS + offset_of(SEED)));
}

/* As after a restart, and as of two processes. */
static void others_that_count_the_same_replace_nothing(void **state)
{
	long long first_ms = MINUTE_0_MS + offset_of(SEED);
	long long second_ms = MINUTE_0_MS + offset_of(OTHER_SEED);
	(void)state;
	assert_true(first_ms < second_ms);
	add("a", MINUTE_0_MS, 2);
	write_due();
	minute_sums_free(sums);
	sums = minute_sums_new(&(struct minute_sums_options){
		.ingest = h.ingest, .clock = &h.clock.clock, .seed = OTHER_SEED});
	add("a", MINUTE_0_MS, 3);
	write_due();
	EXPECT("t:m,k=a %lld=2i %lld=3i\n", first_ms, second_ms);
}

static void when_there_are_too_many_all_begin_anew(void **state)
{
	long long at_ms = MINUTE_0_MS + offset_of(SEED);
	(void)state;
	add("a", MINUTE_0_MS, 1);
	add("b", MINUTE_0_MS, 2);
	write_due();
	add("c", MINUTE_0_MS, 3);
	add("a", MINUTE_0_MS, 4);
	write_due();
	EXPECT("t:m,k=a %lld=1i %lld=4i\nt:m,k=b %lld=2i\nt:m,k=c %lld=3i\n", at_ms, at_ms + 1,
	       at_ms, at_ms + 1);
}

static void what_finds_no_room_is_counted(void **state)
{
	int64_t lost = stat_get(STAT_minute_sums_lost);
	(void)state;
	add("a", MINUTE_0_MS, 1);
	add("b", MINUTE_0_MS, 2);
	add("c", MINUTE_0_MS, 3);
	add("a", MINUTE_0_MS, MINUTE_COUNT_MAX);
	assert_int_equal(stat_get(STAT_minute_sums_lost), lost + 1);
	add("a", MINUTE_0_MS, MINUTE_COUNT_MAX + UINT64_C(1));
	assert_int_equal(stat_get(STAT_minute_sums_lost), lost + 2);
	add("a", MINUTE_0_MS, 0);
	assert_int_equal(stat_get(STAT_minute_sums_lost), lost + 2);
	write_due();
	long long at_ms = MINUTE_0_MS + offset_of(SEED);
	EXPECT("t:m,k=a %lld=1000000001i\nt:m,k=b %lld=2i\n", at_ms, at_ms);
}

static void a_write_that_fails_is_made_again(void **state)
{
	(void)state;
	naive_fail_writes(h.store, ERR_FULL, 1);
	add("a", MINUTE_0_MS, 2);
	write_due();
	EXPECT("t:m,k=a\n");
	write_due();
	EXPECT("t:m,k=a %lld=2i\n", (long long)(MINUTE_0_MS + offset_of(SEED)));
}

static void what_is_refused_is_not_tried_again(void **state)
{
	int64_t refused = stat_get(STAT_ingest_refused_name);
	(void)state;
	add("a\nb", MINUTE_0_MS, 2);
	write_due();
	write_due();
	assert_int_equal(stat_get(STAT_ingest_refused_name), refused + 1);
	EXPECT("%s", "");
}

static void the_end_writes_what_is_left(void **state)
{
	(void)state;
	add("a", MINUTE_0_MS, 2);
	clock_virtual_advance(&h.clock, 1000000);
	minute_sums_tick(sums);
	add("a", MINUTE_0_MS, 3); /* while the first write is under way */
	minute_sums_stop(sums);
	assert_false(minute_sums_idle(sums));
	harness_pump(&h);
	assert_true(minute_sums_idle(sums));
	EXPECT("t:m,k=a %lld=5i\n", (long long)(MINUTE_0_MS + offset_of(SEED)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_minute_is_one_sample),
		TEST(what_has_no_time_is_of_now),
		TEST(nothing_is_written_before_its_time),
		TEST(others_that_count_the_same_replace_nothing),
		TEST(when_there_are_too_many_all_begin_anew),
		TEST(what_finds_no_room_is_counted),
		TEST(a_write_that_fails_is_made_again),
		TEST(what_is_refused_is_not_tried_again),
		TEST(the_end_writes_what_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
