/* Taking reports, on the naive store: what is refused, what is not known, what has to wait, and
 * which writer a report is of. Several processes at once are in fault_model. */
#include "fault_harness.h"

#include "fault/tables.h"
#include "store/wait.h"

enum { PLACES_MAX = 64 };

/* What lies in `report_arrivals`. */
struct places {
	struct harness *h;
	const struct store_row *row;
	struct place {
		uint64_t writer, sequence;
		int64_t date_us;
		bool is_void;
	} list[PLACES_MAX];
	size_t count;
};

static int see_cell(const struct store_cell *cell, void *owner)
{
	struct places *places = owner;
	struct fault_arrival arrival;
	assert_int_equal(fault_arrival_decode(cell->value, &arrival), 0);
	assert_true(places->count < PLACES_MAX);
	places->list[places->count++] = (struct place){fault_part_number(places->row->key.part[1]),
						       fault_part_number(cell->column.part[0]),
						       arrival.date_us, arrival.is_void};
	return 0;
}

static int see_row(const struct store_row *row, void *owner)
{
	struct places *places = owner;
	struct errbuf e;
	places->row = row;
	return store_row_wait(places->h->store, &places->h->queue, 0, TABLE_REPORT_ARRIVALS,
			      &row->key, see_cell, places, &e);
}

static struct places places_of(struct harness *h)
{
	struct places places = {.h = h};
	struct errbuf e;
	assert_int_equal(store_rows_wait(h->store, &h->queue, 0, TABLE_REPORT_ARRIVALS, see_row,
					 &places, &e),
			 0);
	return places;
}

static void tick(struct harness *h)
{
	fault_intake_tick(h->intake);
	while (task_queue_run(&h->queue))
		;
}

static enum fault_outcome outcome_of(struct harness *h, const char *id)
{
	struct fault_item item = harness_item(id, id);
	harness_submit(h, &item, 1);
	return item.outcome;
}

static uint64_t total_of(struct harness *h)
{
	struct fault_day_view *view = harness_day(h, fault_day_of(T0_US), false);
	uint64_t total = view->total;
	fault_day_view_free(view);
	return total;
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void what_finds_no_room_leaves_a_void(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	assert_int_equal(outcome_of(&h, "a"), FAULT_TAKEN);
	naive_fail_writes(h.store, ERR_FULL, 1);
	struct fault_item item = harness_item("b", "b");
	harness_submit(&h, &item, 1);
	assert_int_equal(item.outcome, FAULT_FAILED);
	assert_int_equal(item.err, ERR_FULL);
	assert_int_equal(outcome_of(&h, "c"), FAULT_TAKEN);
	tick(&h);
	struct places places = places_of(&h);
	assert_int_equal(places.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(places.list[i].sequence, i);
		assert_int_equal(places.list[i].is_void, i == 1);
	}
	assert_int_equal(total_of(&h), 2);
	assert_int_equal(outcome_of(&h, "b"), FAULT_TAKEN);
	assert_int_equal(total_of(&h), 3);
	harness_close(&h);
}

/* Voids that find no room either are written when there is some. */
static void voids_are_written_again(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	assert_int_equal(outcome_of(&h, "a"), FAULT_TAKEN);
	naive_fail_writes(h.store, ERR_FULL, 3);
	assert_int_equal(outcome_of(&h, "b"), FAULT_FAILED);
	assert_int_equal(outcome_of(&h, "c"), FAULT_FAILED);
	tick(&h);
	assert_int_equal(places_of(&h).count, 1);
	tick(&h);
	assert_int_equal(places_of(&h).count, 3);
	tick(&h);
	assert_true(fault_intake_is_idle(h.intake));
	harness_close(&h);
}

/* What was never sent has no number. */
static void what_the_store_does_not_take_leaves_nothing(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	naive_refuse_writes(h.store, ERR_READ_ONLY, 1);
	struct fault_item item = harness_item("a", "a");
	harness_submit(&h, &item, 1);
	assert_int_equal(item.outcome, FAULT_FAILED);
	assert_int_equal(item.err, ERR_READ_ONLY);
	assert_int_equal(outcome_of(&h, "b"), FAULT_TAKEN);
	struct places places = places_of(&h);
	assert_int_equal(places.count, 1);
	assert_int_equal(places.list[0].sequence, 0);
	harness_close(&h);
}

static void what_cannot_be_looked_up_fails(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	naive_refuse_reads(h.store, ERR_BUSY, 1);
	assert_int_equal(outcome_of(&h, "a"), FAULT_FAILED);
	assert_int_equal(outcome_of(&h, "a"), FAULT_TAKEN);
	assert_int_equal(total_of(&h), 1);
	harness_close(&h);
}

/* ---- What is not known ----------------------------------------------------------------------- */

/* A refusal afterwards decides nothing: the first sending may have stored it. */
static void an_unknown_outcome_is_asked_for_until_it_is_known(UNUSED void **state)
{
	struct harness h;
	bool done = false;
	struct fault_item item = harness_item("a", "a");
	struct fault_submission s = {.tenant = TEXT("t"),
				     .items = &item,
				     .count = 1,
				     .done = harness_done,
				     .owner = &done};
	harness_open(&h);
	naive_fail_writes(h.store, ERR_UNKNOWN, 1);
	assert_int_equal(fault_intake_submit(h.intake, &s), 0);
	while (task_queue_run(&h.queue))
		;
	assert_false(done);
	naive_fail_writes(h.store, ERR_FULL, 1);
	tick(&h);
	assert_false(done);
	naive_refuse_writes(h.store, ERR_BUSY, 1);
	tick(&h);
	assert_false(done);
	tick(&h);
	assert_true(done);
	assert_int_equal(item.outcome, FAULT_TAKEN);
	struct places places = places_of(&h);
	assert_int_equal(places.count, 1);
	assert_false(places.list[0].is_void);
	assert_int_equal(places.list[0].date_us, item.date_us);
	harness_close(&h);
}

/* ---- What waits ------------------------------------------------------------------------------ */

struct waiting {
	struct fault_item items[2];
	struct fault_submission s;
	bool done;
};

static void submit(struct harness *h, struct waiting *w, const char *tenant, const char *first,
		   const char *second)
{
	*w = (struct waiting){{harness_item(first, first)}};
	if (second)
		w->items[1] = harness_item(second, second);
	w->s = (struct fault_submission){.tenant = slice_of(tenant),
					 .items = w->items,
					 .count = second ? 2 : 1,
					 .done = harness_done,
					 .owner = &w->done};
	assert_int_equal(fault_intake_submit(h->intake, &w->s), 0);
}

/* b waits for a, which is under way, and c for b; d, e and what another tenant sends do not. */
static void one_id_is_taken_by_one_submission_at_a_time(UNUSED void **state)
{
	struct harness h;
	struct waiting a, b, c, d, other;
	harness_open(&h);
	naive_fail_writes(h.store, ERR_UNKNOWN, 1);
	submit(&h, &a, "t", "id1", NULL);
	while (task_queue_run(&h.queue))
		;
	submit(&h, &b, "t", "id2", "id1");
	submit(&h, &c, "t", "id2", NULL);
	submit(&h, &d, "t", "id3", NULL);
	submit(&h, &other, "u", "id1", NULL);
	while (task_queue_run(&h.queue))
		;
	assert_true(d.done && other.done);
	assert_int_equal(other.items[0].outcome, FAULT_TAKEN);
	assert_false(a.done || b.done || c.done);
	tick(&h);
	assert_true(a.done && b.done && c.done);
	assert_int_equal(a.items[0].outcome, FAULT_TAKEN);
	assert_int_equal(b.items[0].outcome, FAULT_TAKEN);
	assert_int_equal(b.items[1].outcome, FAULT_REPEATED);
	assert_int_equal(b.items[1].date_us, a.items[0].date_us);
	assert_int_equal(c.items[0].outcome, FAULT_REPEATED);
	assert_int_equal(c.items[0].date_us, b.items[0].date_us);
	assert_int_equal(total_of(&h), 3);
	harness_close(&h);
}

static void too_much_is_refused(UNUSED void **state)
{
	/* At most 4,096 at a time, as a row of arrivals has. */
	enum { FULL = 4, ITEMS = FAULT_ITEMS_MAX, LAST = 4096 - FULL * ITEMS + 1 };
	struct harness h;
	struct fault_item *items = mem_alloc_array(FULL * ITEMS + LAST, sizeof(*items));
	char(*ids)[16] = mem_alloc_array(FULL * ITEMS + LAST, sizeof(*ids));
	struct fault_submission s[FULL + 1];
	bool done[FULL + 1] = {false};
	harness_open(&h);
	for (size_t i = 0; i < FULL * ITEMS + LAST; i++) {
		snprintf(ids[i], sizeof(ids[i]), "id%zu", i);
		items[i] = harness_item(ids[i], "x");
	}
	for (size_t i = 0; i < FULL + 1; i++) {
		s[i] = (struct fault_submission){.tenant = TEXT("t"),
						 .items = items + i * ITEMS,
						 .count = i < FULL ? ITEMS : LAST,
						 .done = harness_done,
						 .owner = &done[i]};
		assert_int_equal(fault_intake_submit(h.intake, &s[i]), i < FULL ? 0 : ERR_BUSY);
	}
	while (task_queue_run(&h.queue))
		;
	for (size_t i = 0; i < FULL; i++)
		assert_true(done[i]);
	assert_int_equal(fault_intake_submit(h.intake, &s[FULL]), 0);
	while (task_queue_run(&h.queue))
		;
	assert_true(done[FULL]);
	assert_int_equal(total_of(&h), FULL * ITEMS + LAST);
	s[0].count = ITEMS + 1;
	assert_int_equal(fault_intake_submit(h.intake, &s[0]), ERR_LIMIT);
	harness_close(&h);
	mem_free(items);
	mem_free(ids);
}

/* ---- Writers --------------------------------------------------------------------------------- */

static void move_clock(struct harness *h, int64_t by_us)
{
	h->clock.wall_us += by_us;
}

/* The dates of a writer rise: a little by themselves, where the clock was set back by more than a
 * second with another writer. */
static void a_clock_that_is_set_back_begins_a_writer(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	int64_t first_us = harness_report(&h, "a", "c", "E", 0, 0);
	move_clock(&h, -900000);
	assert_int_equal(harness_report(&h, "b", "c", "E", 0, 0), first_us + 1);
	move_clock(&h, -900000);
	assert_int_equal(harness_report(&h, "c", "c", "E", 0, 0), first_us - 1800000);
	struct places places = places_of(&h);
	assert_int_equal(places.count, 3);
	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 3; j++) {
			bool early_i = places.list[i].date_us < first_us;
			bool early_j = places.list[j].date_us < first_us;
			assert_int_equal(places.list[i].writer == places.list[j].writer,
					 early_i == early_j);
		}
	}
	assert_int_equal(total_of(&h), 3);
	harness_close(&h);
}

/* The cells of the writers, in the order of their beginning. */
struct writers {
	struct fault_writer_cell list[4];
	uint64_t numbers[4];
	size_t count;
};

static int take_writer(const struct store_cell *cell, void *owner)
{
	struct writers *writers = owner;
	struct fault_writer_cell read;
	size_t at = writers->count++;
	assert_true(at < 4);
	assert_int_equal(fault_writer_cell_decode(cell->value, &read), 0);
	for (; at && writers->list[at - 1].began_us > read.began_us; at--) {
		writers->list[at] = writers->list[at - 1];
		writers->numbers[at] = writers->numbers[at - 1];
	}
	writers->list[at] = read;
	writers->numbers[at] = fault_part_number(cell->column.part[0]);
	return 0;
}

static struct writers writers_of(struct harness *h)
{
	struct writers writers = {.count = 0};
	struct fault_parts key;
	struct errbuf e;
	fault_writers_key(&key, TEXT("t"));
	assert_int_equal(store_row_wait(h->store, &h->queue, 0, TABLE_REPORT_WRITERS, &key.parts,
					take_writer, &writers, &e),
			 0);
	return writers;
}

#define HOURS_US(n) ((n)*INT64_C(3600000000))

static void check_closed(struct harness *h, uint64_t next, int64_t last_us)
{
	struct writers writers = writers_of(h);
	assert_int_equal(writers.count, 1);
	assert_int_equal(writers.list[0].state, FAULT_WRITER_CLOSED);
	assert_int_equal(writers.list[0].next, next);
	assert_int_equal(writers.list[0].last_us, last_us);
}

static void check_open(struct harness *h, size_t at, size_t count)
{
	struct writers writers = writers_of(h);
	assert_int_equal(writers.count, count);
	assert_int_equal(writers.list[at].state, FAULT_WRITER_WRITES);
}

/* So that what it wrote is sealed, though its run is not full. */
static void a_writer_is_closed_after_six_quiet_hours(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	int64_t last_us = harness_report(&h, "a", "c", "E", 0, 0);
	move_clock(&h, HOURS_US(6));
	tick(&h);
	check_open(&h, 0, 1);
	move_clock(&h, 1);
	tick(&h);
	check_closed(&h, 1, last_us);
	tick(&h);
	harness_report(&h, "b", "c", "E", 0, 0);
	check_open(&h, 1, 2);
	assert_int_equal(total_of(&h), 1); /* the second is of the next day */
	harness_close(&h);
}

static void a_writer_is_closed_when_its_run_is_a_day_old(UNUSED void **state)
{
	static const char *const ids[] = {"a", "b", "c", "d"};
	struct harness h;
	int64_t last_us = 0;
	harness_open(&h);
	for (size_t i = 0; i < 4; i++) {
		last_us = harness_report(&h, ids[i], "c", "E", 0, 0);
		move_clock(&h, HOURS_US(6));
		tick(&h);
	}
	check_open(&h, 0, 1);
	move_clock(&h, 1);
	tick(&h);
	check_closed(&h, 4, last_us);
	harness_close(&h);
}

/* One that waits for others to be sent after it is given no more: what comes goes to another. */
static void a_writer_is_closed_when_all_of_it_is_written(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	int64_t last_us = harness_report(&h, "a", "c", "E", 0, 0);
	naive_fail_writes(h.store, ERR_FULL, 2);
	assert_int_equal(outcome_of(&h, "b"), FAULT_FAILED);
	move_clock(&h, HOURS_US(6) + 2);
	tick(&h); /* its void is refused */
	check_open(&h, 0, 1);
	tick(&h); /* its void is written */
	tick(&h);
	check_closed(&h, 2, last_us + 1);
	harness_close(&h);
}

/* Its process may have been frozen, and whoever owns the tenant may have said that it has ended. */
static void a_writer_that_was_not_looked_at_for_half_a_day_is_left(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	harness_report(&h, "a", "c", "E", 0, 0);
	move_clock(&h, HOURS_US(12) + 1);
	tick(&h);
	check_open(&h, 0, 1);
	harness_report(&h, "b", "c", "E", 0, 0);
	check_open(&h, 0, 2);
	check_open(&h, 1, 2);
	assert_int_equal(total_of(&h), 1); /* the second is of the next day */
	harness_close(&h);
}

/* The first is stored, and the owner ends the writer, before it is known. */
static void a_writer_that_was_ended_is_not_closed_again(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	struct buf value;
	harness_open(&h);
	harness_report(&h, "a", "c", "E", 0, 0);
	move_clock(&h, HOURS_US(6) + 1);
	naive_lose_outcomes(h.store, 0, 1);
	tick(&h);
	struct writers writers = writers_of(&h);
	assert_int_equal(writers.list[0].state, FAULT_WRITER_CLOSED);
	assert_int_equal(fault_intake_is_idle(h.intake), true);
	writers.list[0].state = FAULT_WRITER_ENDED;
	writers.list[0].holder = TEXT("h1");
	buf_init(&value, 1000);
	fault_writer_cell_encode(&writers.list[0], &value);
	fault_writers_key(&key, TEXT("t"));
	fault_writers_column(&column, writers.numbers[0]);
	move_clock(&h, 1000);
	put_cell(&h, TABLE_REPORT_WRITERS, &key, &column, buf_slice(&value));
	move_clock(&h, 1000);
	tick(&h);
	assert_int_equal(writers_of(&h).list[0].state, FAULT_WRITER_ENDED);
	tick(&h);
	buf_release(&value);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_finds_no_room_leaves_a_void),
		cmocka_unit_test(voids_are_written_again),
		cmocka_unit_test(what_the_store_does_not_take_leaves_nothing),
		cmocka_unit_test(what_cannot_be_looked_up_fails),
		cmocka_unit_test(an_unknown_outcome_is_asked_for_until_it_is_known),
		cmocka_unit_test(one_id_is_taken_by_one_submission_at_a_time),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(a_clock_that_is_set_back_begins_a_writer),
		cmocka_unit_test(a_writer_is_closed_after_six_quiet_hours),
		cmocka_unit_test(a_writer_is_closed_when_its_run_is_a_day_old),
		cmocka_unit_test(a_writer_is_closed_when_all_of_it_is_written),
		cmocka_unit_test(a_writer_that_was_not_looked_at_for_half_a_day_is_left),
		cmocka_unit_test(a_writer_that_was_ended_is_not_closed_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
