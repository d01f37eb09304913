/* Names of metrics and sources, by group; sigs are those of md5sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/stats.h"
#include "board/keys.h"
#include "board/row_name.h"
#include "contract/naive.h"
#include "store/wait.h"

#define DAY_MS INT64_C(86400000)
/* 2023-11-14 22:13:20 UTC. */
#define T0_US INT64_C(1700000000000000)

struct rig {
	struct clock_virtual clock;
	struct store *store;
	struct task_queue queue;
	struct board_keys *keys;
};

static void rig_start(struct rig *rig, int64_t keep_ms)
{
	rig->keys = board_keys_new(&(struct board_keys_options){.store = rig->store,
								.clock = &rig->clock.clock,
								.executor = &rig->queue.executor,
								.keep_ms = keep_ms});
}

static void rig_open(struct rig *rig, int64_t keep_ms)
{
	clock_virtual_init(&rig->clock, T0_US);
	rig->store = naive_open(&rig->clock.clock);
	task_queue_init(&rig->queue);
	rig_start(rig, keep_ms);
}

static void rig_close(struct rig *rig)
{
	board_keys_free(rig->keys);
	store_close(rig->store);
	task_queue_release(&rig->queue);
}

static void note(struct rig *rig, const char *group, enum board_key_type type, const char *name)
{
	board_keys_note(rig->keys, SLICE("t"), slice_of(group),
			&(struct board_key){.type = type, .name = slice_of(name)});
}

static void write_all(struct rig *rig)
{
	board_keys_write(rig->keys, &rig->queue);
}

static int print_key(const struct board_key *key, struct slice sig, void *owner)
{
	buf_printf(owner, "%c %.*s %.*s", key->type == BOARD_METRIC ? 'm' : 's', (int)key->name.len,
		   key->name.data, (int)sig.len, sig.data);
	if (key->kind.len)
		buf_printf(owner, " %.*s", (int)key->kind.len, key->kind.data);
	if (key->unit.len)
		buf_printf(owner, " %.*s", (int)key->unit.len, key->unit.data);
	return buf_append_text(owner, "\n");
}

static int print_group(struct slice group, void *owner)
{
	return buf_printf(owner, "%.*s\n", (int)group.len, group.data);
}

static void expect_keys(struct rig *rig, const char *tenant, const char *group,
			const char *expected)
{
	struct buf out;
	struct errbuf e;
	buf_init(&out, 64 << 10);
	assert_int_equal(board_keys_each(rig->store, &rig->queue, clock_wall_ms(&rig->clock.clock),
					 slice_of(tenant), slice_of(group), print_key, &out, &e),
			 0);
	buf_append_char(&out, '\0');
	assert_string_equal(out.data, expected);
	buf_release(&out);
}

static void expect_groups(struct rig *rig, const char *expected)
{
	struct buf out;
	struct errbuf e;
	buf_init(&out, 64 << 10);
	assert_int_equal(board_groups_each(rig->store, &rig->queue,
					   clock_wall_ms(&rig->clock.clock), SLICE("t"),
					   print_group, &out, &e),
			 0);
	buf_append_char(&out, '\0');
	assert_string_equal(out.data, expected);
	buf_release(&out);
}

/* The stamp of a metric's cell; 0: there is none. */
static int64_t stamp_of(struct rig *rig, const char *group, const char *metric)
{
	struct store_read *read = store_read_new(rig->store, 64 << 10);
	read->now_ms = clock_wall_ms(&rig->clock.clock);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	request->cell_get = (struct store_cell_get){.table = TABLE_CHUKWA_METADATA,
						    .key = {{SLICE("t"), slice_of(group)}},
						    .column = {{SLICE("k"), slice_of(metric)}}};
	assert_int_equal(store_read_wait(read, &rig->queue), 0);
	int64_t stamp_us = request->cell_get.found ? request->cell_get.cell.stamp_us : 0;
	store_read_free(read);
	return stamp_us;
}

/* ---- Names of series ------------------------------------------------------------------------- */

static void check_name(const char *metric, struct tags tags, const char *expected)
{
	struct row_name_split splits[ROW_NAME_SPLITS_MAX];
	struct buf name;
	buf_init(&name, 4096);
	row_name_put(slice_of(metric), tags, &name);
	buf_append_char(&name, '\0');
	assert_string_equal(name.data, expected);
	/* One split of the name is the series. */
	size_t count = row_name_split(slice_of(expected), splits), found = 0;
	for (size_t i = 0; i < count; i++)
		if (slice_equal(splits[i].metric, slice_of(metric)))
			found += row_name_rest_is(splits[i].rest, tags);
	assert_int_equal(found, 1);
	buf_release(&name);
}

#define TAGS(...)                                                                                  \
	((struct tags){(const struct tag[]){__VA_ARGS__},                                          \
		       sizeof((const struct tag[]){__VA_ARGS__}) / sizeof(struct tag)})
#define TAG(k, v)                                                                                  \
	{                                                                                          \
		SLICE(k), SLICE(v)                                                                 \
	}

static void series_have_names(void **state)
{
	(void)state;
	check_name("SystemMetrics.cpu.user", TAGS(TAG("host", "h1")), "SystemMetrics.cpu.user");
	check_name("SystemMetrics.cpu.user", TAGS(TAG("core", "0"), TAG("host", "h1")),
		   "SystemMetrics.cpu.user.0");
	check_name("m",
		   TAGS(TAG("a", "1.5"), TAG("cluster", "c"), TAG("host", "h"), TAG("z", "/x")),
		   "m.1.5./x");
	check_name("m", TAGS(TAG("b", "2"), TAG("host", "h"), TAG("i", "eth0.100")),
		   "m.2.eth0.100");
	assert_false(row_name_rest_is(SLICE(".0"), TAGS(TAG("host", "h"))));
	assert_false(row_name_rest_is(SLICE(".01"), TAGS(TAG("core", "0"))));
	assert_false(row_name_rest_is(SLICE(""), TAGS(TAG("core", "0"))));
	assert_false(row_name_rest_is(SLICE(".0-1"), TAGS(TAG("a", "0"), TAG("b", "1"))));
	assert_false(row_name_rest_is(SLICE("0"), TAGS(TAG("core", "0"))));
	assert_null(row_name_source(TAGS(TAG("core", "0"))).data);
}

static void names_are_split_at_dots(void **state)
{
	(void)state;
	struct row_name_split list[ROW_NAME_SPLITS_MAX];
	char longer[300];
	assert_int_equal(row_name_split(SLICE("a.b.c"), list), 3);
	assert_true(slice_equal(list[0].metric, SLICE("a.b.c")) && !list[0].rest.len);
	assert_true(slice_equal(list[1].metric, SLICE("a.b")) &&
		    slice_equal(list[1].rest, SLICE(".c")));
	assert_true(slice_equal(list[2].metric, SLICE("a")) &&
		    slice_equal(list[2].rest, SLICE(".b.c")));
	assert_int_equal(row_name_split(SLICE(""), list), 0);
	/* No metric has so many bytes. */
	memset(longer, 'x', sizeof(longer));
	longer[256] = '.';
	assert_int_equal(row_name_split((struct slice){longer, sizeof(longer)}, list), 1);
	assert_int_equal(list[0].metric.len, 256);
	memset(longer, '.', 40);
	assert_int_equal(row_name_split((struct slice){longer, 40}, list), ROW_NAME_SPLITS_MAX);
}

/* ---- Writing and reading --------------------------------------------------------------------- */

static void what_is_noted_is_listed(void **state)
{
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	board_keys_note_series(
		rig.keys, SLICE("t"), SLICE("SystemMetrics"), SLICE("SystemMetrics.cpu.user"),
		TAGS(TAG("core", "0"), TAG("host", "h1")), SLICE("gauge"), SLICE("%"));
	board_keys_note_series(rig.keys, SLICE("t"), SLICE("SystemMetrics"),
			       SLICE("SystemMetrics.LoadAverage.1"), TAGS(TAG("host", "h1")),
			       SLICE("gauge"), SLICE(""));
	board_keys_note_series(rig.keys, SLICE("t"), SLICE("SystemMetrics"), SLICE("nowhere"),
			       TAGS(TAG("core", "0")), SLICE(""), SLICE(""));
	note(&rig, "access", BOARD_METRIC, "access.bytes");
	expect_keys(&rig, "t", "SystemMetrics", "");
	write_all(&rig);
	expect_keys(&rig, "t", "SystemMetrics",
		    "m SystemMetrics.LoadAverage.1 f4768a0d6fe0 gauge\n"
		    "m SystemMetrics.cpu.user.0 72a4f802ab23 gauge %\n"
		    "s h1 346b81a32e70\n");
	expect_groups(&rig, "SystemMetrics\naccess\n");
	expect_keys(&rig, "u", "SystemMetrics", "");
	expect_keys(&rig, "t", "", "");
	rig_close(&rig);
}

static void what_is_known_is_not_written_again(void **state)
{
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	note(&rig, "g", BOARD_METRIC, "m");
	write_all(&rig);
	int64_t stamp_us = stamp_of(&rig, "g", "m");
	assert_true(stamp_us > 0);
	clock_virtual_advance(&rig.clock, 3 * DAY_MS * 1000);
	note(&rig, "g", BOARD_METRIC, "m");
	write_all(&rig);
	assert_int_equal(stamp_of(&rig, "g", "m"), stamp_us);
	/* Nor by a process that has just begun. */
	board_keys_free(rig.keys);
	rig_start(&rig, 0);
	note(&rig, "g", BOARD_METRIC, "m");
	write_all(&rig);
	assert_int_equal(stamp_of(&rig, "g", "m"), stamp_us);
	/* But with another unit. */
	board_keys_note(rig.keys, SLICE("t"), SLICE("g"),
			&(struct board_key){
				.type = BOARD_METRIC, .name = SLICE("m"), .unit = SLICE("bytes")});
	write_all(&rig);
	assert_true(stamp_of(&rig, "g", "m") > stamp_us);
	expect_keys(&rig, "t", "g", "m m 6f8f57715090 bytes\n");
	rig_close(&rig);
}

/* Found by a search among 30 million names. */
#define ONE  "app.m1649948"
#define TWIN "app.m17280009"
#define SIG  "ec860a7ca5c7"

static void equal_sigs_are_noticed(void **state)
{
	bool together = *(const bool *)*state;
	int64_t clashes = stat_get(STAT_row_keys_clashes);
	struct rig rig;
	rig_open(&rig, 0);
	note(&rig, "g", BOARD_METRIC, ONE);
	/* The sigs of metrics and those of sources stand in different places of a key. */
	note(&rig, "g", BOARD_SOURCE, TWIN);
	if (!together)
		write_all(&rig);
	note(&rig, "another", BOARD_METRIC, TWIN);
	write_all(&rig);
	assert_int_equal(stat_get(STAT_row_keys_clashes), clashes + 1);
	/* Both are kept, and the first one holds the sig also when the second one comes again. */
	expect_keys(&rig, "t", "g", "m " ONE " " SIG "\ns " TWIN " " SIG "\n");
	expect_keys(&rig, "t", "another", "m " TWIN " " SIG "\n");
	note(&rig, "third", BOARD_METRIC, TWIN);
	write_all(&rig);
	assert_int_equal(stat_get(STAT_row_keys_clashes), clashes + 2);
	note(&rig, "third", BOARD_METRIC, ONE);
	/* Another tenant has other rows. */
	board_keys_note(rig.keys, SLICE("u"), SLICE("g"),
			&(struct board_key){.type = BOARD_METRIC, .name = SLICE(TWIN)});
	write_all(&rig);
	assert_int_equal(stat_get(STAT_row_keys_clashes), clashes + 2);
	rig_close(&rig);
}

static void a_metric_and_a_source_of_one_name_are_both_there(void **state)
{
	int64_t both = stat_get(STAT_row_keys_both);
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	note(&rig, "g", BOARD_SOURCE, "both");
	write_all(&rig);
	note(&rig, "g", BOARD_METRIC, "both");
	note(&rig, "other", BOARD_METRIC, "both");
	write_all(&rig);
	assert_int_equal(stat_get(STAT_row_keys_both), both + 1);
	expect_keys(&rig, "t", "g", "m both f6cb3e816496\ns both f6cb3e816496\n");
	rig_close(&rig);
}

static void names_that_cannot_be_are_counted_once(void **state)
{
	int64_t refused = stat_get(STAT_row_keys_refused);
	char longest[BOARD_NAME_MAX_BYTES + 2] = "";
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	memset(longest, 'x', BOARD_NAME_MAX_BYTES);
	note(&rig, "g", BOARD_METRIC, longest);
	assert_int_equal(stat_get(STAT_row_keys_refused), refused);
	longest[BOARD_NAME_MAX_BYTES] = 'x';
	for (int i = 0; i < 2; i++) {
		note(&rig, "g", BOARD_METRIC, longest);
		note(&rig, "g", BOARD_METRIC, "");
		note(&rig, "g", BOARD_METRIC, "a\nb");
		note(&rig, "g", BOARD_SOURCE, "\xff");
		note(&rig, "", BOARD_METRIC, "m");
		note(&rig, "chart_meta", BOARD_METRIC, "m");
		note(&rig, "widget_meta", BOARD_METRIC, "m");
	}
	assert_int_equal(stat_get(STAT_row_keys_refused), refused + 7);
	write_all(&rig);
	expect_groups(&rig, "g\n");
	rig_close(&rig);
}

/* A name of two bytes takes ten: its type, t, g, itself, no unit and no kind; each text with its
 * length. */
static void what_finds_no_room_is_noted_again(void **state)
{
	int64_t left_out = stat_get(STAT_row_keys_left_out);
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	board_keys_free(rig.keys);
	rig.keys = board_keys_new(&(struct board_keys_options){.store = rig.store,
							       .clock = &rig.clock.clock,
							       .executor = &rig.queue.executor,
							       .waiting_max_bytes = 29});
	note(&rig, "g", BOARD_METRIC, "m1");
	note(&rig, "g", BOARD_METRIC, "m2");
	note(&rig, "g", BOARD_METRIC, "m3");
	note(&rig, "g", BOARD_METRIC, "m2");
	assert_int_equal(stat_get(STAT_row_keys_left_out), left_out + 1);
	write_all(&rig);
	assert_true(stamp_of(&rig, "g", "m2") > 0);
	assert_int_equal(stamp_of(&rig, "g", "m3"), 0);
	note(&rig, "g", BOARD_METRIC, "m3");
	write_all(&rig);
	assert_true(stamp_of(&rig, "g", "m3") > 0);
	assert_int_equal(stat_get(STAT_row_keys_left_out), left_out + 1);
	rig_close(&rig);
}

static void what_is_not_stored_is_noted_again(void **state)
{
	int64_t left_out = stat_get(STAT_row_keys_left_out);
	struct task_queue stopped;
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	task_queue_init(&stopped);
	task_queue_stop(&stopped);
	note(&rig, "g", BOARD_METRIC, "m");
	board_keys_write(rig.keys, &stopped);
	assert_int_equal(stat_get(STAT_row_keys_left_out), left_out + 1);
	expect_keys(&rig, "t", "g", "");
	note(&rig, "g", BOARD_METRIC, "m");
	write_all(&rig);
	expect_keys(&rig, "t", "g", "m m 6f8f57715090\n");
	task_queue_run(&stopped);
	task_queue_release(&stopped);
	rig_close(&rig);
}

/* Of twenty names two are known; of the others some are written in each minute, all in an hour. */
static void names_that_are_too_many_have_their_turns(void **state)
{
	enum { NAMES = 20 };
	unsigned stored = 0, minutes = 0;
	char name[8];
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	board_keys_free(rig.keys);
	rig.keys = board_keys_new(&(struct board_keys_options){.store = rig.store,
							       .clock = &rig.clock.clock,
							       .executor = &rig.queue.executor,
							       .known_max = 2});
	for (; stored < NAMES; minutes++) {
		unsigned before = stored;
		assert_true(minutes < 60);
		for (unsigned i = 0; i < NAMES; i++) {
			snprintf(name, sizeof(name), "n%02u", i);
			note(&rig, "g", BOARD_METRIC, name);
		}
		write_all(&rig);
		stored = 0;
		for (unsigned i = 0; i < NAMES; i++) {
			snprintf(name, sizeof(name), "n%02u", i);
			stored += stamp_of(&rig, "g", name) > 0;
		}
		assert_true(stored >= 2 && stored < before + 12);
		clock_virtual_advance(&rig.clock, INT64_C(60000000));
	}
	assert_true(minutes > 5);
	rig_close(&rig);
}

static void a_key_that_cannot_be_read_is_passed_over(void **state)
{
	static const char *const values[] = {"no JSON", "{\"type\":\"metric\"}", "[]"};
	int64_t unread = stat_get(STAT_row_cells_unread);
	char name[8];
	struct rig rig;
	(void)state;
	rig_open(&rig, 0);
	note(&rig, "g", BOARD_METRIC, "m");
	note(&rig, "g", BOARD_METRIC, "z");
	write_all(&rig);
	struct store_write *write = store_write_new(rig.store, 64 << 10);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		const struct store_parts key = {{SLICE("t"), SLICE("g")}};
		const struct store_parts column = {{SLICE("k"), slice_of(name)}};
		assert_int_equal(store_cell_put(write, TABLE_CHUKWA_METADATA, &key, &column,
						slice_of(values[i]), store_stamp(rig.store), 0),
				 0);
	}
	assert_int_equal(store_write_wait(write, &rig.queue), 0);
	store_write_free(write);
	/* By md5sum. */
	expect_keys(&rig, "t", "g", "m m 6f8f57715090\nm z fbade9e36a3f\n");
	assert_int_equal(stat_get(STAT_row_cells_unread), unread + 3);
	rig_close(&rig);
}

/* Samples are kept for ten days: names that nobody notes stay for twelve. */
static void names_leave_with_their_samples(void **state)
{
	struct rig rig;
	(void)state;
	rig_open(&rig, 10 * DAY_MS);
	note(&rig, "g", BOARD_METRIC, "m");
	note(&rig, "g", BOARD_METRIC, "n");
	write_all(&rig);
	for (int day = 0; day < 5; day++) {
		clock_virtual_advance(&rig.clock, DAY_MS * 1000);
		write_all(&rig);
		note(&rig, "g", BOARD_METRIC, "m");
		write_all(&rig);
	}
	clock_virtual_advance(&rig.clock, 7 * DAY_MS * 1000 - 1000);
	expect_keys(&rig, "t", "g", "m m 6f8f57715090\nm n 7b8b965ad4bc\n");
	clock_virtual_advance(&rig.clock, 1000);
	expect_keys(&rig, "t", "g", "m m 6f8f57715090\n");
	clock_virtual_advance(&rig.clock, 5 * DAY_MS * 1000 - 1000);
	expect_keys(&rig, "t", "g", "m m 6f8f57715090\n");
	expect_groups(&rig, "g\n");
	clock_virtual_advance(&rig.clock, 1000);
	expect_keys(&rig, "t", "g", "");
	expect_groups(&rig, "");
	rig_close(&rig);
}

int main(void)
{
	static const bool apart = false, together = true;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_have_names),
		cmocka_unit_test(names_are_split_at_dots),
		cmocka_unit_test(what_is_noted_is_listed),
		cmocka_unit_test(what_is_known_is_not_written_again),
		cmocka_unit_test_prestate(equal_sigs_are_noticed, (void *)(uintptr_t)&apart),
		cmocka_unit_test_prestate(equal_sigs_are_noticed, (void *)(uintptr_t)&together),
		cmocka_unit_test(a_metric_and_a_source_of_one_name_are_both_there),
		cmocka_unit_test(names_that_cannot_be_are_counted_once),
		cmocka_unit_test(what_finds_no_room_is_noted_again),
		cmocka_unit_test(what_is_not_stored_is_noted_again),
		cmocka_unit_test(names_leave_with_their_samples),
		cmocka_unit_test(names_that_are_too_many_have_their_turns),
		cmocka_unit_test(a_key_that_cannot_be_read_is_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
