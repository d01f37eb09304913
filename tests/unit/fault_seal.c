/* Sealing, by one process on the naive store, with runs of four reports. */
#include "fault_sealed_harness.h"

#include "base/log.h"
#include "base/stats.h"
#include "fault/sealed.h"

static void check_ten(struct harness *h, int64_t sixth_us)
{
	struct fault_list_filter filter = all;
	check_list(h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	check_list(h, all, "words", "09 08 07 06 05 04 03 02 01 00 ");
	check_list(h, all, "w03", "03 ");
	check_list(h, all, "w09", "09 ");
	check_list(h, all, "words -w08 -w00", "09 07 06 05 04 03 02 01 ");
	filter.texts[FAULT_GROUP] = TEXT("a");
	check_list(h, filter, NULL, "07 04 01 ");
	check_list(h, filter, "-w04", "07 01 ");
	filter = all;
	filter.to_us = sixth_us;
	check_list(h, filter, NULL, "04 03 02 01 00 ");
	filter.from_us = sixth_us;
	filter.to_us = INT64_MAX;
	check_list(h, filter, NULL, "09 08 07 06 05 ");
	struct fault_day_view *view = harness_day(h, T0_US / FAULT_DAY_US, false);
	assert_int_equal(view->total, 10);
	fault_day_view_free(view);
}

static void a_search_counts_bodies_that_cannot_be_unpacked(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report(&h, 0, 2);
	struct fault_item broken = harness_item("02", "these words are packed by nothing");
	harness_submit(&h, &broken, 1);
	int64_t damaged = stat_get(STAT_fault_arrivals_damaged);
	check_list(&h, all, "words", "01 00 ");
	assert_int_equal(stat_get(STAT_fault_arrivals_damaged), damaged + 1);
	harness_close(&h);
}

static void full_runs_are_sealed_and_then_their_arrivals_go(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report(&h, 0, 5);
	int64_t sixth_us = report(&h, 5, 1);
	report(&h, 6, 4);
	check_ten(&h, sixth_us);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 3);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 2);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 3);
	check_ten(&h, sixth_us);
	clock_virtual_advance(&h.clock, MINUTES_5_US - 1000000);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 3);
	clock_virtual_advance(&h.clock, 1000000);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 1);
	check_ten(&h, sixth_us);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 2);
	harness_close(&h);
}

/* Another owner goes on: it clears what the first has sealed, and seals what comes. */
static void a_start_goes_on_sealing(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report(&h, 0, 5);
	int64_t sixth_us = report(&h, 5, 1);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 1);
	harness_restart(&h);
	report(&h, 6, 4);
	seal(&h);
	/* The first writer has ended with its process, so its last run, of two, is sealed, too. */
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 3);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 3);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 0);
	check_ten(&h, sixth_us);
	harness_close(&h);
}

/* What writer a row of arrivals is of: of the only one there is. */
static int take_writer(const struct store_row *row, void *owner)
{
	*(uint64_t *)owner = fault_part_number(row->key.part[1]);
	return 0;
}

static struct fault_place place_of(struct harness *h, uint64_t sequence)
{
	struct errbuf e;
	struct fault_place place = {0, sequence};
	assert_int_equal(store_rows_wait(h->store, &h->queue, clock_wall_ms(&h->clock.clock),
					 TABLE_REPORT_ARRIVALS, take_writer, &place.writer, &e),
			 0);
	return place;
}

static uint64_t total_of(struct harness *h)
{
	struct fault_day_view *view = harness_day(h, T0_US / FAULT_DAY_US, false);
	uint64_t total = view->total;
	fault_day_view_free(view);
	return total;
}

static void close_writers(struct harness *h)
{
	clock_virtual_advance(&h->clock, INT64_C(7) * 3600 * 1000000);
	fault_intake_tick(h->intake);
	while (task_queue_run(&h->queue))
		;
}

/* A run that will not be full any more. Reports that come go to another writer. */
static void the_last_run_of_a_closed_writer_is_sealed(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report(&h, 0, 6);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 1);
	close_writers(&h);
	report(&h, 6, 1);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 2);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 1);
	check_list(&h, all, NULL, "06 05 04 03 02 01 00 ");
	assert_int_equal(total_of(&h), 6);
	harness_restart(&h);
	seal(&h);
	check_list(&h, all, "words", "06 05 04 03 02 01 00 ");
	assert_int_equal(total_of(&h), 6);
	harness_close(&h);
}

/* A writer that no checkpoint has yet: whoever begins with one takes it for counted once it has
 * ended. */
static void a_writer_that_is_closed_before_it_is_counted_is_counted(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	harness_pass(&h);
	report(&h, 0, 3);
	close_writers(&h);
	assert_int_equal(total_of(&h), 3);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 0);
	assert_int_equal(total_of(&h), 3);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 1);
	assert_int_equal(total_of(&h), 3);
	harness_close(&h);
}

/* What was told to have failed since nobody knew its outcome for too long may come yet. */
static void a_closed_writer_ends_when_all_of_it_is_there(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	struct buf value;
	harness_open(&h);
	report(&h, 0, 2);
	seal(&h);
	const struct fault_writer_cell cell = {.state = FAULT_WRITER_CLOSED,
					       .next = 3,
					       .began_us = h.site.started_us,
					       .holder = TEXT("h1")};
	buf_init(&value, 1000);
	fault_writer_cell_encode(&cell, &value);
	fault_writers_key(&key, TEXT("t"));
	fault_writers_column(&column, place_of(&h, 0).writer);
	put_cell(&h, TABLE_REPORT_WRITERS, &key, &column, buf_slice(&value));
	seal(&h);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 0);
	report(&h, 2, 1);
	seal(&h);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 1);
	check_list(&h, all, NULL, "02 01 00 ");
	assert_int_equal(total_of(&h), 3);
	buf_release(&value);
	harness_close(&h);
}

/* Its run stays as it is; the others are sealed. */
static void a_run_with_an_arrival_that_cannot_be_read_stays(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	harness_open(&h);
	log_set_level(LOG_ERROR);
	report(&h, 0, 10);
	harness_pass(&h);
	const struct fault_place place = place_of(&h, 2);
	fault_arrivals_key(&key, TEXT("t"), place);
	fault_arrivals_column(&column, place.sequence);
	put_cell(&h, TABLE_REPORT_ARRIVALS, &key, &column, TEXT("x"));
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_SEGMENTS), 1);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 2);
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 01 00 ");
	log_set_level(LOG_INFO);
	harness_close(&h);
}

static int count_part(const struct store_cell *cell, void *owner)
{
	size_t *others = owner;
	*others += fault_part_number(cell->column.part[0]) <= 1;
	return 0;
}

/* As an owner leaves it that dies while it seals. */
static void a_segment_that_was_not_finished_goes_with_the_arrivals(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	struct errbuf e;
	size_t others = 0;
	harness_open(&h);
	report(&h, 0, 5);
	int64_t sixth_us = report(&h, 5, 1);
	report(&h, 6, 4);
	seal(&h);
	fault_arrivals_key(&key, TEXT("t"), place_of(&h, 0));
	for (uint64_t number = 0; number < 5; number++) {
		fault_segments_column(&column, number % 2, FAULT_SEGMENT_BLOCK, number);
		put_cell(&h, TABLE_REPORT_SEGMENTS, &key, &column, TEXT("left"));
	}
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(store_row_wait(h.store, &h.queue, clock_wall_ms(&h.clock.clock),
					TABLE_REPORT_SEGMENTS, &key.parts, count_part, &others, &e),
			 0);
	assert_int_equal(others, 0);
	check_ten(&h, sixth_us);
	harness_close(&h);
}

static int take_run(const struct store_cell *cell, void *owner)
{
	struct fault_run_cell *run = owner;
	return run->name ? 0 : fault_run_cell_decode(cell->value, run);
}

static void damage(struct harness *h, enum fault_segment_part part)
{
	struct fault_parts key, column;
	struct fault_run_cell run = {.name = 0};
	struct errbuf e;
	fault_runs_key(&key, TEXT("t"));
	assert_int_equal(store_row_wait(h->store, &h->queue, clock_wall_ms(&h->clock.clock),
					TABLE_REPORT_RUNS, &key.parts, take_run, &run, &e),
			 0);
	fault_arrivals_key(&key, TEXT("t"), place_of(h, 0));
	fault_segments_column(&column, run.name, part, 0);
	put_cell(h, TABLE_REPORT_SEGMENTS, &key, &column, TEXT("\x01\x01\x10noise"));
}

/* The first run is damaged. Its first block has reports 01 and 00, its second 03 and 02. A search
 * for a word of another run does not meet the damage, since the filters exclude this run. */
static void check_damaged(struct harness *h, const char *found)
{
	int64_t before = stat_values[STAT_fault_arrivals_damaged];
	check_list(h, all, "w09", "09 ");
	assert_int_equal(stat_values[STAT_fault_arrivals_damaged], before);
	check_list(h, all, "words", found);
	assert_true(stat_values[STAT_fault_arrivals_damaged] > before);
}

/* Lists go on without what cannot be read, and count it. The arrivals do not go before the segment
 * has been read: so they count again. */
static void what_is_damaged_of_a_run_is_left_out(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	harness_open(&h);
	log_set_level(LOG_ERROR);
	report(&h, 0, 5);
	int64_t sixth_us = report(&h, 5, 1);
	report(&h, 6, 4);
	seal(&h);
	damage(&h, FAULT_SEGMENT_BLOCK);
	check_damaged(&h, "09 08 07 06 05 04 03 02 ");
	damage(&h, FAULT_SEGMENT_DIRECTORY);
	check_damaged(&h, "09 08 07 06 05 04 ");
	check_list(&h, all, NULL, "09 08 07 06 05 04 ");
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(rows(&h, TABLE_REPORT_ARRIVALS), 2);
	check_ten(&h, sixth_us);
	fault_runs_key(&key, TEXT("t"));
	fault_runs_column(&column, place_of(&h, 0));
	put_cell(&h, TABLE_REPORT_RUNS, &key, &column, TEXT("\x01"));
	check_ten(&h, sixth_us);
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* Filters only help: without them the bodies are read. */
static void a_search_does_without_filters(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report(&h, 0, 5);
	int64_t sixth_us = report(&h, 5, 1);
	report(&h, 6, 4);
	seal(&h);
	damage(&h, FAULT_SEGMENT_FILTERS);
	check_ten(&h, sixth_us);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_counts_bodies_that_cannot_be_unpacked),
		cmocka_unit_test(full_runs_are_sealed_and_then_their_arrivals_go),
		cmocka_unit_test(a_start_goes_on_sealing),
		cmocka_unit_test(the_last_run_of_a_closed_writer_is_sealed),
		cmocka_unit_test(a_writer_that_is_closed_before_it_is_counted_is_counted),
		cmocka_unit_test(a_closed_writer_ends_when_all_of_it_is_there),
		cmocka_unit_test(a_run_with_an_arrival_that_cannot_be_read_stays),
		cmocka_unit_test(what_is_damaged_of_a_run_is_left_out),
		cmocka_unit_test(a_search_does_without_filters),
		cmocka_unit_test(a_segment_that_was_not_finished_goes_with_the_arrivals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
