/* What is wrong with rows and boards is found. Keys, sigs and hashes are those of the examples in
 * doc/format-rows.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "board/verify.h"
#include "contract/naive.h"
#include "store/wait.h"

/* Of SystemMetrics.LoadAverage.1 at host1 on 2016-01-01, the day 16,801; 1 ms later, and the hash
 * of the note `abc`. */
#define KEY    "\x41\xa1\xf4\x76\x8a\x0d\x6f\xe0\x81\x5a\xd1\xc0\x58\xdf"
#define TIME   "\x00\x00\x01\x51\xfa\x7b\xdc\x01"
#define NOTE   TIME "\x90\x01\x50\x98\x3c\xd2\x4f\xb0"
#define METRIC "{\"type\":\"metric\",\"sig\":\"f4768a0d6fe0\",\"unit\":\"tasks\"}"
#define SOURCE "{\"type\":\"source\",\"sig\":\"815ad1c058df\"}"
#define LOAD   "SystemMetrics.LoadAverage.1"

struct put {
	enum table table;
	struct slice key, family, column, value;
	const char *told; /* NULL: it is right */
};

static const struct put cells[] = {
	{TABLE_CHUKWA, SLICE(KEY), SLICE("t"), SLICE(TIME), SLICE("down"), NULL},
	{TABLE_CHUKWA, SLICE(KEY), SLICE("a"), SLICE(NOTE), SLICE("abc"), NULL},
	{TABLE_CHUKWA, SLICE(KEY "x"), SLICE("t"), SLICE(TIME), SLICE("down"),
	 "chukwa: tenant t day_metric_source 41a1f4768a0d6fe0815ad1c058df78, family t qualifier "
	 "00000151fa7bdc01: the key has not 14 bytes\n"},
	{TABLE_CHUKWA, SLICE(KEY), SLICE("b"), SLICE(TIME), SLICE("x"), "there is no such family"},
	{TABLE_CHUKWA, SLICE(KEY), SLICE("t"), SLICE(TIME "0"), SLICE("x"),
	 "the qualifier has another length"},
	{TABLE_CHUKWA, SLICE(KEY), SLICE("a"), SLICE(TIME), SLICE("abc"),
	 "the qualifier has another length"},
	/* A day later than the key. */
	{TABLE_CHUKWA,
	 SLICE("\x41\xa0"
	       "0123456789ab"),
	 SLICE("t"), SLICE(TIME), SLICE("x"), "the time is of another day"},
	{TABLE_CHUKWA, SLICE(KEY), SLICE("a"), SLICE(NOTE), SLICE("abd"),
	 "the hash of another note"},
	{TABLE_CHUKWA_METADATA, SLICE("SystemMetrics"), SLICE("k"), SLICE(LOAD), SLICE(METRIC),
	 NULL},
	{TABLE_CHUKWA_METADATA, SLICE("SystemMetrics"), SLICE("ks"), SLICE("host1"), SLICE(SOURCE),
	 NULL},
	{TABLE_CHUKWA_METADATA, SLICE("SystemMetrics"), SLICE("k"), SLICE("other"), SLICE(METRIC),
	 "chukwa_metadata: tenant t group SystemMetrics, family k name other: the sig is that of "
	 "another name\n"},
	{TABLE_CHUKWA_METADATA, SLICE("SystemMetrics"), SLICE("ks"), SLICE(LOAD), SLICE(METRIC),
	 "the type is not that of the family"},
	{TABLE_CHUKWA_METADATA, SLICE("SystemMetrics"), SLICE("k"), SLICE(LOAD), SLICE("{"),
	 "it cannot be read"},
	{TABLE_CHUKWA_METADATA, SLICE(""), SLICE("metric"), SLICE("f4768a0d6fe0"), SLICE(LOAD),
	 NULL},
	{TABLE_CHUKWA_METADATA, SLICE(""), SLICE("group"), SLICE("SystemMetrics"), SLICE(""), NULL},
	{TABLE_CHUKWA_METADATA, SLICE(""), SLICE("source"), SLICE("f4768a0d6fe1"), SLICE(LOAD),
	 "the sig is that of another name"},
	{TABLE_CHUKWA_METADATA, SLICE("widget_meta"), SLICE("c"), SLICE("W"),
	 SLICE("{\"title\":\"W\",\"src\":\"/hicc/v1/chart/draw/1\"}"), NULL},
	{TABLE_CHUKWA_METADATA, SLICE("widget_meta"), SLICE("c"), SLICE("V"),
	 SLICE("{\"title\":\"W\",\"src\":\"/hicc/v1/chart/draw/1\"}"), "its id is another one"},
	{TABLE_CHUKWA_METADATA, SLICE("chart_meta"), SLICE("c"), SLICE("1"), SLICE("[]"),
	 "it is no board"},
};

static void board_tell(void *owner, const char *sentence)
{
	buf_append_text(owner, sentence);
	buf_append_text(owner, "\n");
}

static void each_fault_of_a_cell_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		const struct put *put = &cells[i];
		struct clock_virtual clock;
		struct task_queue queue;
		struct buf told;
		clock_virtual_init(&clock, INT64_C(1451606400000000));
		task_queue_init(&queue);
		buf_init(&told, 1 << 16);
		struct store *store = naive_open(&clock.clock);
		struct store_write *write = store_write_new(store, 1 << 16);
		const struct store_parts key = {{SLICE("t"), put->key}},
					 column = {{put->family, put->column}};
		assert_int_equal(store_cell_put(write, put->table, &key, &column, put->value, 1, 0),
				 0);
		assert_int_equal(store_write_wait(write, &queue), 0);
		struct tables_verify v = {.store = store,
					  .clock = &clock.clock,
					  .queue = &queue,
					  .tell = board_tell,
					  .owner = &told};
		assert_int_equal(board_verify(&v), 0);
		buf_append_char(&told, 0);
		if (put->told ? !strstr(told.data, put->told) : told.len > 1)
			fail_msg("cell %zu: %s", i, told.data);
		assert_int_equal(v.problems, put->told != NULL);
		assert_int_equal(v.checked, 1);
		store_write_free(write);
		store_close(store);
		task_queue_release(&queue);
		buf_release(&told);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault_of_a_cell_is_told)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
