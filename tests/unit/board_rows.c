/* Texts and notes in rows, and how they lie in the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/stats.h"
#include "board/rows.h"
#include "contract/naive.h"
#include "store/wait.h"

#define DAY_MS INT64_C(86400000)
/* 2016-01-01, the day 16,801. */
#define T0_MS (16801 * DAY_MS)

struct rig {
	struct clock_virtual clock;
	struct store *store;
	struct task_queue queue;
	struct retention_rules rules;
	struct granularities granularities;
	struct row_site site;
};

static void rig_open(struct rig *rig)
{
	clock_virtual_init(&rig->clock, T0_MS * 1000);
	rig->store = naive_open(&rig->clock.clock);
	task_queue_init(&rig->queue);
	rig->rules = retention_for_ever;
	rig->granularities = (struct granularities){.count = 0};
	rig->site = (struct row_site){.store = rig->store,
				      .clock = &rig->clock.clock,
				      .retention = &rig->rules,
				      .granularities = &rig->granularities};
}

static void rig_close(struct rig *rig)
{
	store_close(rig->store);
	task_queue_release(&rig->queue);
}

static const struct row load = {{"t", 1}, {"SystemMetrics.LoadAverage.1", 27}, {"host1", 5}};

static int put_text(struct rig *rig, int64_t ts_ms, const char *text, struct errbuf *e)
{
	struct store_write *write = store_write_new(rig->store, 1 << 20);
	int err = row_text_put(&rig->site, write, &load, ts_ms, slice_of(text),
			       store_stamp(rig->store), e);
	if (!err)
		assert_int_equal(store_write_wait(write, &rig->queue), 0);
	store_write_free(write);
	return err;
}

static int add_note(struct rig *rig, int64_t ts_ms, const char *text, struct row_note_id *id,
		    struct errbuf *e)
{
	return row_note_add(&rig->site, &rig->queue, &load, ts_ms, slice_of(text), ROW_NOTES_MAX,
			    id, e);
}

static int print_cell(const struct row_cell *cell, void *owner)
{
	return buf_printf(owner, "%lld %.*s %s\n", (long long)(cell->ts_ms - T0_MS),
			  (int)cell->text.len, cell->text.data, cell->id.text);
}

static void expect(struct rig *rig, enum row_family family, int64_t start_ms, int64_t end_ms,
		   const char *expected)
{
	struct buf out;
	struct errbuf e;
	buf_init(&out, 64 << 10);
	const struct row_span span = {start_ms, end_ms, NULL};
	assert_int_equal(
		row_each(&rig->site, &rig->queue, &load, family, &span, print_cell, &out, &e), 0);
	buf_append_char(&out, '\0');
	assert_string_equal(out.data, expected);
	buf_release(&out);
}

/* As doc/format-rows.md has it, byte by byte. */
static void cells_lie_where_the_format_says(void **state)
{
	static const char key[] = "\x41\xa1\xf4\x76\x8a\x0d\x6f\xe0\x81\x5a\xd1\xc0\x58\xdf";
	/* T0_MS + 1 is 1451606400001: 0x151fa7bdc01. */
	static const char at[] = "\x00\x00\x01\x51\xfa\x7b\xdc\x01\x90\x01\x50\x98\x3c\xd2\x4f\xb0";
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	assert_int_equal(put_text(&rig, T0_MS + 1, "down", &e), 0);
	assert_int_equal(add_note(&rig, T0_MS + 1, "abc", &id, &e), 0);
	assert_string_equal(id.text, "1451606400001-900150983cd24fb0");
	struct store_read *read = store_read_new(rig.store, 64 << 10);
	read->now_ms = T0_MS;
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan =
		(struct store_cell_scan){.table = TABLE_CHUKWA, .key = {{SLICE("t"), {key, 14}}}};
	assert_int_equal(store_read_wait(read, &rig.queue), 0);
	assert_int_equal(request->cell_scan.count, 2);
	const struct store_cell *cells = request->cell_scan.cells;
	assert_true(slice_equal(cells[0].column.part[0], SLICE("a")));
	assert_true(slice_equal(cells[0].column.part[1], (struct slice){at, 16}));
	assert_true(slice_equal(cells[0].value, SLICE("abc")));
	assert_true(slice_equal(cells[1].column.part[0], SLICE("t")));
	assert_true(slice_equal(cells[1].column.part[1], (struct slice){at, 8}));
	assert_true(slice_equal(cells[1].value, SLICE("down")));
	store_read_free(read);
	rig_close(&rig);
}

/* From one year to the next, over days without any. */
static void ranges_go_over_days(void **state)
{
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	assert_int_equal(put_text(&rig, T0_MS, "c", &e), 0);
	assert_int_equal(put_text(&rig, T0_MS - 1, "b", &e), 0);
	assert_int_equal(put_text(&rig, T0_MS - 40 * DAY_MS, "a", &e), 0);
	assert_int_equal(put_text(&rig, T0_MS + 3 * DAY_MS, "d", &e), 0);
	assert_int_equal(add_note(&rig, T0_MS, "x", &id, &e), 0);
	assert_int_equal(add_note(&rig, T0_MS - 1, "w", &id, &e), 0);
	expect(&rig, ROW_TEXTS, T0_MS - 40 * DAY_MS, T0_MS + 3 * DAY_MS,
	       "-3456000000 a \n-1 b \n0 c \n");
	expect(&rig, ROW_TEXTS, T0_MS - 40 * DAY_MS + 1, T0_MS + 3 * DAY_MS + 1,
	       "-1 b \n0 c \n259200000 d \n");
	expect(&rig, ROW_TEXTS, T0_MS - 1, T0_MS, "-1 b \n");
	expect(&rig, ROW_TEXTS, T0_MS, T0_MS, "");
	/* The MD5 of w is f1290186..., of x 9dd4e461.... */
	expect(&rig, ROW_NOTES, T0_MS - 1, T0_MS + 1,
	       "-1 w 1451606399999-f1290186a5d0b1ce\n0 x 1451606400000-9dd4e461268c8034\n");
	rig_close(&rig);
}

static void what_is_written_twice_is_there_once(void **state)
{
	int64_t added = stat_get(STAT_row_notes_added);
	struct row_note_id id, again;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(put_text(&rig, T0_MS, "c", &e), 0);
		assert_int_equal(add_note(&rig, T0_MS, "x", &id, &e), 0);
	}
	assert_int_equal(add_note(&rig, T0_MS, "y", &again, &e), 0);
	assert_int_equal(stat_get(STAT_row_notes_added), added + 2);
	expect(&rig, ROW_TEXTS, T0_MS, T0_MS + 1, "0 c \n");
	expect(&rig, ROW_NOTES, T0_MS, T0_MS + 1,
	       "0 y 1451606400000-415290769594460e\n0 x 1451606400000-9dd4e461268c8034\n");
	rig_close(&rig);
}

static void notes_are_deleted_by_their_ids(void **state)
{
	static const char *const none[] = {"",
					   "-",
					   "x",
					   "1451606400000",
					   "1451606400000-",
					   "1451606400000-9dd4e461268c803",
					   "1451606400000-9dd4e461268c80345",
					   "1451606400000-9dd4e461268c803g",
					   "1451606400001-9dd4e461268c8034",
					   "1451606400000-9dd4e461268c8035",
					   "99999999999999999-9dd4e461268c8034",
					   "99999999999999999999999-9dd4e461268c8034"};
	int64_t deleted = stat_get(STAT_row_notes_deleted);
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	assert_int_equal(add_note(&rig, T0_MS, "x", &id, &e), 0);
	assert_int_equal(add_note(&rig, T0_MS, "y", &id, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(
			row_note_delete(&rig.site, &rig.queue, &load, slice_of(none[i]), &e),
			ERR_NOT_FOUND);
	assert_int_equal(row_note_delete(&rig.site, &rig.queue, &load,
					 SLICE("1451606400000-9dd4e461268c8034"), &e),
			 0);
	assert_int_equal(row_note_delete(&rig.site, &rig.queue, &load,
					 SLICE("1451606400000-9dd4e461268c8034"), &e),
			 ERR_NOT_FOUND);
	assert_int_equal(stat_get(STAT_row_notes_deleted), deleted + 1);
	expect(&rig, ROW_NOTES, T0_MS, T0_MS + 1, "0 y 1451606400000-415290769594460e\n");
	rig_close(&rig);
}

static void a_row_has_so_many_notes(void **state)
{
	int64_t refused = stat_get(STAT_row_notes_refused);
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	for (int i = 0; i < ROW_NOTES_MAX; i++)
		assert_int_equal(add_note(&rig, T0_MS + i, "x", &id, &e), 0);
	assert_int_equal(add_note(&rig, T0_MS + DAY_MS - 1, "x", &id, &e), ERR_LIMIT);
	assert_string_equal(e.text, "the metric and the source have 1000 notes on that day, which "
				    "is the most");
	assert_int_equal(stat_get(STAT_row_notes_refused), refused + 1);
	/* One that is there, and one of the next day. */
	assert_int_equal(add_note(&rig, T0_MS, "x", &id, &e), 0);
	assert_int_equal(add_note(&rig, T0_MS + DAY_MS, "x", &id, &e), 0);
	rig_close(&rig);
}

static void what_cannot_be_is_refused(void **state)
{
	char longer[ROW_TEXT_MAX_BYTES + 2] = "";
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	memset(longer, 'x', ROW_TEXT_MAX_BYTES);
	assert_int_equal(put_text(&rig, T0_MS, longer, &e), 0);
	assert_int_equal(add_note(&rig, T0_MS, longer, &id, &e), 0);
	longer[ROW_TEXT_MAX_BYTES] = 'x';
	assert_int_equal(put_text(&rig, T0_MS, longer, &e), ERR_LIMIT);
	assert_int_equal(add_note(&rig, T0_MS, longer, &id, &e), ERR_LIMIT);
	assert_string_equal(e.text, "the text has 4097 bytes; at most 4096 are taken");
	assert_int_equal(add_note(&rig, T0_MS, "", &id, &e), ERR_INVALID);
	assert_int_equal(add_note(&rig, -1, "x", &id, &e), ERR_INVALID);
	assert_int_equal(add_note(&rig, 65536 * DAY_MS, "x", &id, &e), ERR_INVALID);
	assert_int_equal(add_note(&rig, 65536 * DAY_MS - 1, "x", &id, &e), 0);
	const struct row nowhere = {SLICE("t"), SLICE("m"), SLICE("")};
	assert_int_equal(row_note_add(&rig.site, &rig.queue, &nowhere, T0_MS, SLICE("x"),
				      ROW_NOTES_MAX, &id, &e),
			 ERR_INVALID);
	/* Times without bounds end. */
	expect(&rig, ROW_NOTES, 65535 * DAY_MS, INT64_MAX,
	       "4210703999999 x "
	       "5662310399999-9dd4e461268c8034\n");
	rig_close(&rig);
}

/* Raw samples are kept for 2 days, and hours of the metric for 10. */
static void cells_leave_with_their_samples(void **state)
{
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	rig.rules.levels_ms[0] = 2 * DAY_MS;
	rig.granularities = (struct granularities){
		.slot_ms = 3600000, .count = 1, .list = {{3600000, 10 * DAY_MS}}};
	assert_int_equal(put_text(&rig, T0_MS - DAY_MS, "c", &e), 0);
	assert_int_equal(add_note(&rig, T0_MS - DAY_MS, "x", &id, &e), 0);
	assert_int_equal(put_text(&rig, T0_MS - 2 * DAY_MS, "c", &e), ERR_INVALID);
	assert_int_equal(add_note(&rig, T0_MS - 10 * DAY_MS, "x", &id, &e), ERR_INVALID);
	assert_string_equal(e.text, "it is too old: what has its time is not kept any more");
	clock_virtual_advance(&rig.clock, (DAY_MS - 1) * 1000);
	expect(&rig, ROW_TEXTS, 0, INT64_MAX, "-86400000 c \n");
	clock_virtual_advance(&rig.clock, 1000);
	expect(&rig, ROW_TEXTS, 0, INT64_MAX, "");
	clock_virtual_advance(&rig.clock, (8 * DAY_MS - 1) * 1000);
	expect(&rig, ROW_NOTES, T0_MS - 5 * DAY_MS, T0_MS,
	       "-86400000 x 1451520000000-9dd4e461268c8034\n");
	clock_virtual_advance(&rig.clock, 1000);
	expect(&rig, ROW_NOTES, T0_MS - 5 * DAY_MS, T0_MS, "");
	rig_close(&rig);
}

/* The row is of metric m.b, whose series have a tag with one value, or of m with two: it stays as
 * long as the longest of their samples. */
static void retention_is_that_of_the_metric(void **state)
{
	static const struct row row = {{"t", 1}, {"m.b.c", 5}, {"h", 1}};
	struct row_note_id id;
	struct errbuf e;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	rig.rules.levels_ms[0] = 2 * DAY_MS;
	rig.rules.list[0] = (struct retention_rule){.tenant = SLICE("*"),
						    .metric = SLICE("m.b"),
						    .granularity = RETENTION_RAW,
						    .keep_ms = 5 * DAY_MS};
	rig.rules.list[1] = rig.rules.list[0];
	rig.rules.list[1].metric = SLICE("m");
	rig.rules.list[1].keep_ms = 3 * DAY_MS;
	rig.rules.count = 2;
	assert_int_equal(row_note_add(&rig.site, &rig.queue, &row, T0_MS - 5 * DAY_MS + 1,
				      SLICE("x"), ROW_NOTES_MAX, &id, &e),
			 0);
	assert_int_equal(row_note_add(&rig.site, &rig.queue, &row, T0_MS - 5 * DAY_MS, SLICE("x"),
				      ROW_NOTES_MAX, &id, &e),
			 ERR_INVALID);
	assert_int_equal(add_note(&rig, T0_MS - 2 * DAY_MS, "x", &id, &e), ERR_INVALID);
	rig_close(&rig);
}

static int stop_at_third_day(void *owner, struct errbuf *e)
{
	return ++*(unsigned *)owner == 3 ? errbuf_set(e, ERR_TIMEOUT, "late") : 0;
}

static int see_nothing(const struct row_cell *cell, void *owner)
{
	(void)cell;
	(void)owner;
	return 0;
}

/* Ten years are 3,660 reads. */
static void reading_ends_when_its_time_is_over(void **state)
{
	const struct row_span span = {T0_MS - 3660 * DAY_MS, T0_MS, stop_at_third_day};
	struct errbuf e = {""};
	unsigned asked = 0;
	struct rig rig;
	(void)state;
	rig_open(&rig);
	assert_int_equal(
		row_each(&rig.site, &rig.queue, &load, ROW_NOTES, &span, see_nothing, &asked, &e),
		ERR_TIMEOUT);
	assert_int_equal(asked, 3);
	assert_string_equal(e.text, "late");
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_lie_where_the_format_says),
		cmocka_unit_test(ranges_go_over_days),
		cmocka_unit_test(what_is_written_twice_is_there_once),
		cmocka_unit_test(notes_are_deleted_by_their_ids),
		cmocka_unit_test(a_row_has_so_many_notes),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(cells_leave_with_their_samples),
		cmocka_unit_test(retention_is_that_of_the_metric),
		cmocka_unit_test(reading_ends_when_its_time_is_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
