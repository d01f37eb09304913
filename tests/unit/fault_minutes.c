/* Counts by minute, from the book of an owner: when a minute is given, and given again. */
#include "fault_harness.h"

#include "fault/minutes.h"

#define MINUTE(us) ((us) / FAULT_MINUTE_US * FAULT_MINUTE_US)

enum { GIVEN_MAX = 20 };

/* What was taken: of names with one exception each, by minute, the last time. */
struct taken {
	struct given {
		int64_t start_us;
		char exception[8];
		uint64_t reports;
		size_t times;
	} list[GIVEN_MAX];
	size_t count;
	int err; /* instead of taking */
};

static struct given *given_of(struct taken *taken, int64_t start_us, const char *exception)
{
	for (size_t i = 0; i < taken->count; i++)
		if (taken->list[i].start_us == start_us &&
		    strcmp(taken->list[i].exception, exception) == 0)
			return &taken->list[i];
	assert_true(taken->count < GIVEN_MAX);
	struct given *given = &taken->list[taken->count++];
	given->start_us = start_us;
	snprintf(given->exception, sizeof(given->exception), "%s", exception);
	return given;
}

static int take(void *owner, const struct fault_minute *minute, struct errbuf *e)
{
	struct taken *taken = owner;
	if (taken->err)
		return errbuf_set(e, taken->err, "not now");
	for (size_t at = 0; at < minute->counts.slot_count; at++) {
		const struct fault_minute_count *count = hash_table_at(&minute->counts, at);
		char exception[8];
		if (!count || count->group)
			continue;
		snprintf(exception, sizeof(exception), SHOWN, SHOWN_OF(count->texts[1]));
		struct given *given = given_of(taken, minute->start_us, exception);
		given->reports = count->reports;
		given->times++;
	}
	return 0;
}

/* All minutes that are over by the harness' clock. The first error. */
static int count(struct harness *h, struct taken *taken)
{
	const struct fault_minute_taker taker = {take, taken};
	struct errbuf e = {""};
	bool more = true;
	int err = 0;
	while (more && !err)
		err = fault_book_count_minutes(h->book, &h->queue, h->clock.wall_us, &taker, &more,
					       &e);
	return err;
}

static void assert_given(struct taken *taken, int64_t date_us, const char *exception,
			 uint64_t reports, size_t times)
{
	const struct given *given = given_of(taken, MINUTE(date_us), exception);
	assert_int_equal(given->reports, reports);
	assert_int_equal(given->times, times);
}

static void a_minute_is_given_when_it_is_over(UNUSED void **state)
{
	struct harness h;
	struct taken taken = {.count = 0};
	harness_open(&h);
	int64_t date_us = harness_report(&h, "a", "", "X", 0, 0);
	harness_report(&h, "b", "", "X", 0, 0);
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), 0);
	assert_int_equal(taken.count, 0);
	clock_virtual_advance(&h.clock, FAULT_MINUTE_US);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, date_us, "X", 2, 1);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, date_us, "X", 2, 1); /* not once more */
	harness_pass(&h);
	harness_restart(&h);
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, date_us, "X", 2, 1);
	harness_close(&h);
}

static void what_was_not_taken_is_given_again(UNUSED void **state)
{
	struct harness h;
	struct taken taken = {.err = ERR_FULL};
	harness_open(&h);
	int64_t date_us = harness_report(&h, "a", "", "X", 0, 0);
	clock_virtual_advance(&h.clock, FAULT_MINUTE_US);
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), ERR_FULL);
	harness_pass(&h);
	harness_restart(&h);
	harness_pass(&h);
	taken.err = 0;
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, date_us, "X", 1, 1);
	harness_close(&h);
}

/* A report that comes for a minute that was given, by a clock that was set back: it is given again
 * when it is over for the second time, also by a process that begins meanwhile. */
static void a_late_report_is_given(UNUSED void **state)
{
	struct harness h;
	struct taken taken = {.count = 0};
	harness_open(&h);
	int64_t date_us = harness_report(&h, "a", "", "X", 0, 0);
	clock_virtual_advance(&h.clock, FAULT_MINUTE_US);
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), 0);
	harness_pass(&h);
	h.clock.wall_us -= FAULT_MINUTE_US;
	harness_restart(&h);
	harness_pass(&h);
	assert_int_equal(MINUTE(harness_report(&h, "b", "", "X", 0, 0)), MINUTE(date_us));
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, date_us, "X", 1, 1);
	harness_restart(&h);
	harness_pass(&h);
	clock_virtual_advance(&h.clock, FAULT_MINUTE_US);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, date_us, "X", 2, 2);
	harness_close(&h);
}

/* Two intakes have looked for an id before either has written it; the one whose clock is behind
 * writes last, and is the first by date. */
static void a_report_that_is_struck_is_none_of_its_minute(UNUSED void **state)
{
	struct harness h;
	struct taken taken = {.count = 0};
	struct task_queue queue;
	bool done = false;
	harness_open(&h);
	clock_virtual_advance(&h.clock, 10 * FAULT_MINUTE_US);
	struct clock_virtual behind;
	clock_virtual_init(&behind, T0_US);
	task_queue_init(&queue);
	struct fault_site site = h.site;
	site.clock = &behind.clock;
	site.holder = TEXT("h2");
	struct fault_intake *intake = fault_intake_new(&(struct fault_intake_options){
		.site = &site, .executor = &queue.executor, .seed = 7});
	struct fault_item first = harness_item("x", "one");
	first.facts.texts[FAULT_EXCEPTION] = TEXT("X");
	struct fault_submission submission = {.tenant = TEXT("t"),
					      .items = &first,
					      .count = 1,
					      .done = harness_done,
					      .owner = &done};
	assert_int_equal(fault_intake_submit(intake, &submission), 0);
	struct fault_item second = harness_item("x", "one");
	second.facts.texts[FAULT_EXCEPTION] = TEXT("X");
	harness_submit(&h, &second, 1);
	assert_int_equal(second.outcome, FAULT_TAKEN);
	clock_virtual_advance(&h.clock, FAULT_MINUTE_US);
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, second.date_us, "X", 1, 1);
	while (!done)
		task_queue_wait(&queue);
	assert_int_equal(first.outcome, FAULT_TAKEN);
	assert_true(first.date_us < second.date_us - FAULT_MINUTE_US);
	harness_pass(&h);
	assert_int_equal(count(&h, &taken), 0);
	assert_given(&taken, first.date_us, "X", 1, 1);
	assert_given(&taken, second.date_us, "X", 0, 2);
	fault_intake_free(intake);
	task_queue_release(&queue);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_minute_is_given_when_it_is_over),
		cmocka_unit_test(what_was_not_taken_is_given_again),
		cmocka_unit_test(a_late_report_is_given),
		cmocka_unit_test(a_report_that_is_struck_is_none_of_its_minute),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
