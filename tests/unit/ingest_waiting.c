/* How requests of the push doors end, pause and go on. */
#include "ingest_points.h"

#include "base/stats.h"

/* ---- Ends ----------------------------------------------------------------------------------- */

static void abandoned_requests_free_themselves(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 512});
	assert_int_equal(status_after(&h), 204);
	for (int stage = 0; stage < 8; stage++) {
		struct ingest_request *r = harness_request(&h);
		if (stage >= 1)
			add(r, "k=v", "m", 1, 1);
		if (stage >= 2)
			add(r, stage & 1 ? "k=odd" : "k=even", "m", stage, 1);
		if (stage >= 3)
			ingest_piece_end(r);
		if (stage >= 4) {
			for (int i = 0; i < 500; i++)
				add(r, "k=v", "m", 1, 2 + i);
		}
		if (stage >= 5)
			ingest_request_end(r);
		if (stage >= 6)
			task_queue_run(&h.queue);
		if (stage >= 7)
			task_queue_run(&h.queue);
		if (h.done)
			ingest_request_free(r);
		else
			ingest_request_abandon(r);
		bool done = h.done;
		harness_pump(&h);
		assert_true(h.done == done);
		assert_true(ingest_idle(h.ingest));
		assert_int_equal(stat_get(STAT_ingest_in_flight_bytes), 0);
	}
	harness_close(&h);
}

static void done_is_never_called_from_within(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *r = harness_request(&h);
	ingest_request_end(r);
	assert_false(h.done);
	harness_pump(&h);
	assert_true(h.done);
	assert_int_equal(ingest_status(r), 204);
	ingest_request_free(r);
	r = harness_request(&h);
	ingest_request_end(r);
	ingest_request_abandon(r);
	h.done = false;
	harness_pump(&h);
	assert_false(h.done);
	harness_close(&h);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

static void points_behind_an_opening_keep_their_order(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *r = harness_request(&h);
	ingest_piece_begin(r);
	add(r, "k=new", "m", 1, 1);
	ingest_piece_end(r); /* in flight from here on */
	add(r, "k=new", "m", 2, 1);
	add(r, "k=v", "m", 2, 1);
	add(r, "k=new", "m", 3, 1);
	add(r, "k=v", "m", 3, 1);
	ingest_piece_end(r);
	add(r, "k=v", "m", 4, 1);
	harness_finish(&h, r);
	assert_int_equal(r->accepted, 6);
	ingest_request_free(r);
	harness_expect(&h, "t:m,k=new 1=3.0f\nt:m,k=v 1=4.0f\n");
	harness_close(&h);
}

static void what_an_opening_brings_is_not_asked_for_again(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	int64_t unknown = stat_get(STAT_ingest_unknown);
	struct ingest_request *r = harness_request(&h);
	ingest_piece_begin(r);
	add(r, "k=a", "m", 1, 1);
	ingest_piece_end(r); /* in flight from here on */
	add(r, "k=a", "m", 2, 2);
	add(r, "k=b", "m", 2, 2);
	harness_finish(&h, r);
	ingest_request_free(r);
	assert_int_equal(stat_get(STAT_ingest_unknown) - unknown, 2);
	harness_expect(&h, "t:m,k=a 1=1.0f 2=2.0f\nt:m,k=b 2=2.0f\n");
	harness_close(&h);
}

static void two_requests_may_want_the_same_new_series(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, NULL);
	struct ingest_request *a = harness_request(&h), *b = harness_request(&h);
	add(a, "k=v", "m", 1, 1);
	add(b, "k=v", "m", 2, 2);
	ingest_piece_end(a);
	ingest_piece_end(b);
	ingest_request_end(a);
	ingest_request_end(b);
	harness_pump(&h);
	assert_int_equal(ingest_status(a), 204);
	assert_int_equal(ingest_status(b), 204);
	ingest_request_free(a);
	ingest_request_free(b);
	harness_expect(&h, "t:m,k=v 1=1.0f 2=2.0f\n");
	harness_close(&h);
}

static void a_request_that_brings_too_much_pauses(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.write_bytes = 4096,
						  .in_flight_max_bytes = 256 << 10});
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *r = harness_request(&h);
	int64_t ts = 0;
	while (!ingest_request_must_pause(r)) {
		ingest_piece_begin(r);
		for (int i = 0; i < 10; i++)
			add(r, "k=v", "m", 1, ts++);
		ingest_piece_end(r);
		assert_true(ts < 1000000);
	}
	/* A quarter of the whole is one request's share. */
	assert_in_range(stat_get(STAT_ingest_in_flight_bytes), 64 << 10, 72 << 10);
	assert_int_equal(stat_get(STAT_ingest_paused), 1);
	assert_true(ingest_request_must_pause(r));
	assert_false(h.resumed);
	harness_pump(&h);
	assert_true(h.resumed);
	assert_int_equal(stat_get(STAT_ingest_paused), 0);
	assert_false(ingest_request_must_pause(r));
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 204);
	assert_int_equal(r->accepted, ts);
	ingest_request_free(r);
	harness_close(&h);
}

/* Many requests that have gathered a little each, and then stay silent, must not stop others. */
static void what_others_have_gathered_is_written_when_memory_is_short(void **state)
{
	(void)state;
	enum { REQUESTS = 64 };
	struct harness h = {0};
	harness_open(&h, &(struct ingest_options){.in_flight_max_bytes = 64 << 10});
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *silent[REQUESTS], *last = harness_request(&h);
	for (int i = 0; i < REQUESTS; i++) {
		silent[i] = harness_request(&h);
		for (int64_t n = 0; n < 60; n++)
			add(silent[i], "k=v", "m", 1, n);
		ingest_piece_end(silent[i]);
	}
	add(last, "k=v", "m", 1, 1);
	ingest_piece_end(last);
	assert_true(ingest_request_must_pause(last));
	harness_pump(&h);
	assert_true(h.resumed);
	assert_int_equal(stat_get(STAT_ingest_in_flight_bytes), 0);
	for (int i = 0; i < REQUESTS; i++)
		ingest_request_end(silent[i]);
	ingest_request_end(last);
	harness_pump(&h);
	for (int i = 0; i < REQUESTS; i++)
		ingest_request_free(silent[i]);
	ingest_request_free(last);
	harness_close(&h);
}

/* Pauses `first`, and then itself. */
static struct ingest_request *fill_up(struct harness *h, struct ingest_request *first)
{
	struct ingest_request *full = harness_request(h);
	for (int64_t n = 0; stat_get(STAT_ingest_in_flight_bytes) <= 64 << 10; n++) {
		ingest_piece_begin(full);
		add(full, "k=v", "m", 1, n);
		ingest_piece_end(full);
	}
	assert_true(ingest_request_must_pause(first));
	assert_true(ingest_request_must_pause(full));
	return full;
}

/* What has cost nothing yet is told first; what is under way waits four times as long; and who has
 * no answer to wait for, for ever. Nothing is written meanwhile, since nobody pumps. */
static void who_waits_too_long_is_told_to_come_again(void **state)
{
	(void)state;
	struct harness h = {0};
	const char *sentence = NULL;
	harness_open(
		&h, &(struct ingest_options){.in_flight_max_bytes = 64 << 10, .wait_max_ms = 1000});
	assert_int_equal(status_after(&h), 204);
	int64_t waited = stat_get(STAT_ingest_overload_waited);
	int64_t at_once = stat_get(STAT_ingest_overload_at_once);
	struct ingest_request *fresh = harness_request(&h), *patient = harness_request(&h);
	patient->door.patient = true;
	struct ingest_request *full = fill_up(&h, patient);
	assert_true(ingest_request_must_pause(fresh));

	clock_virtual_advance(&h.clock, 499000);
	ingest_tick(h.ingest);
	assert_false(ingest_turns_away(h.ingest, &sentence));
	clock_virtual_advance(&h.clock, 1000);
	assert_true(ingest_turns_away(h.ingest, &sentence));
	assert_non_null(strstr(sentence, "no more for now"));
	clock_virtual_advance(&h.clock, 499000);
	ingest_tick(h.ingest);
	assert_int_equal(fresh->err, 0);

	clock_virtual_advance(&h.clock, 1000);
	ingest_tick(h.ingest);
	assert_int_equal(fresh->err, ERR_BUSY);
	assert_int_equal(ingest_status(fresh), 503);
	assert_true(h.resumed);
	assert_int_equal(full->err, 0);
	clock_virtual_advance(&h.clock, 2999000);
	ingest_tick(h.ingest);
	assert_int_equal(full->err, 0);
	clock_virtual_advance(&h.clock, 1000);
	ingest_tick(h.ingest);
	assert_int_equal(ingest_status(full), 503);
	clock_virtual_advance(&h.clock, INT64_C(1000000000));
	ingest_tick(h.ingest);
	assert_int_equal(patient->err, 0);
	assert_int_equal(stat_get(STAT_ingest_overload_waited) - waited, 2);
	assert_int_equal(stat_get(STAT_ingest_overload_at_once) - at_once, 1);

	harness_pump(&h);
	assert_int_equal(stat_get(STAT_ingest_paused), 0);
	assert_false(ingest_turns_away(h.ingest, &sentence));
	ingest_request_end(fresh);
	ingest_request_end(full);
	ingest_request_end(patient);
	harness_pump(&h);
	ingest_request_free(fresh);
	ingest_request_free(full);
	ingest_request_free(patient);
	assert_int_equal(status_after(&h), 204);
	harness_close(&h);
}

/* New series of more requests than may be opened at once: all get their turn, in whatever state
 * they are by then. */
static void many_rounds_wait_for_each_other(void **state)
{
	(void)state;
	enum { REQUESTS = 100 };
	struct harness h = {0};
	struct ingest_request *r[REQUESTS];
	harness_open(&h, NULL);
	for (int i = 0; i < REQUESTS; i++) {
		char tags[20];
		snprintf(tags, sizeof(tags), "k=%d", i);
		r[i] = harness_request(&h);
		ingest_piece_begin(r[i]);
		add(r[i], tags, "m", i, 1);
		add(r[i], tags, "n", i, 1);
		ingest_piece_end(r[i]);
		if (i % 3 == 1)
			ingest_request_end(r[i]);
		else if (i % 3 == 2)
			ingest_request_abandon(r[i]);
	}
	harness_pump(&h);
	for (int i = 0; i < REQUESTS; i += 3)
		ingest_request_end(r[i]);
	harness_pump(&h);
	for (int i = 0; i < REQUESTS; i++) {
		if (i % 3 == 2)
			continue;
		assert_int_equal(ingest_status(r[i]), 204);
		assert_int_equal(r[i]->accepted, 2);
		ingest_request_free(r[i]);
	}
	harness_close(&h);
}

static void who_does_not_pause_is_stopped(void **state)
{
	(void)state;
	struct harness h = {0};
	harness_open(
		&h, &(struct ingest_options){.write_bytes = 4096, .in_flight_max_bytes = 64 << 10});
	assert_int_equal(status_after(&h), 204);
	struct ingest_request *r = harness_request(&h);
	int64_t ts = 0;
	for (; !r->err && ts < 1000000; ts++) {
		add(r, "k=v", "m", 1, ts);
		ingest_piece_end(r);
	}
	assert_int_equal(r->err, ERR_BUSY);
	assert_true(stat_get(STAT_ingest_in_flight_bytes) < 136 << 10);
	harness_finish(&h, r);
	assert_int_equal(ingest_status(r), 503);
	ingest_request_free(r);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(abandoned_requests_free_themselves),
		cmocka_unit_test(done_is_never_called_from_within),
		cmocka_unit_test(points_behind_an_opening_keep_their_order),
		cmocka_unit_test(what_an_opening_brings_is_not_asked_for_again),
		cmocka_unit_test(two_requests_may_want_the_same_new_series),
		cmocka_unit_test(a_request_that_brings_too_much_pauses),
		cmocka_unit_test(what_others_have_gathered_is_written_when_memory_is_short),
		cmocka_unit_test(who_waits_too_long_is_told_to_come_again),
		cmocka_unit_test(many_rounds_wait_for_each_other),
		cmocka_unit_test(who_does_not_pause_is_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
