/* The book of a tenant in one process: what is counted, over checkpoints, restarts and days. */
#include "fault_harness.h"

#include "base/log.h"
#include "base/stats.h"
#include "fault/groups.h"
#include "fault/tables.h"

#define DAY0 (T0_US / FAULT_DAY_US)

static void check_both(struct harness *h, int64_t day,
		       void (*check)(const struct fault_day_view *view))
{
	for (int own = 0; own < 2; own++) {
		struct fault_day_view *view = harness_day(h, day, own);
		check(view);
		fault_day_view_free(view);
	}
}

static void check_empty(const struct fault_day_view *view)
{
	assert_int_equal(view->total, 0);
	assert_int_equal(view->longest.count, 0);
	assert_int_equal(view->largest.count, 0);
}

/* Four of view:Oops, and so on; the three longest of five, of equal ones by id. */
static void check_some(const struct fault_day_view *view)
{
	assert_int_equal(view->total, 6);
	assert_int_equal(view->hours[22], 6);
	assert_int_equal(view->longest.count, 3);
	assert_top(&view->longest, 0, 900, "e");
	assert_top(&view->longest, 1, 500, "b");
	assert_top(&view->longest, 2, 500, "c");
	assert_int_equal(view->most.count, 2);
	assert_top(&view->most, 0, 12, "a");
	assert_top(&view->most, 1, 3, "d");
	assert_int_equal(view->largest.count, 3);
	assert_top(&view->largest, 0, 4, "view:Oops");
	assert_top(&view->largest, 1, 1, ":");
	assert_top(&view->largest, 2, 1, "a\\:b:c\\\\d");
	assert_int_equal(view->rest, 0);
}

static void report_some(struct harness *h)
{
	harness_report(h, "a", "view", "Oops", 100, 12);
	harness_report(h, "c", "view", "Oops", 500, 0);
	harness_report(h, "b", "view", "Oops", 500, 0);
	harness_report(h, "d", "view", "Oops", 400, 3);
	harness_report(h, "e", "a:b", "c\\d", 900, 0);
	harness_report(h, "f", "", "", 0, 0);
}

static void a_day_is_counted(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	check_both(&h, DAY0, check_empty);
	report_some(&h);
	check_both(&h, DAY0, check_some); /* nobody has done a pass */
	harness_pass(&h);
	check_both(&h, DAY0, check_some);
	harness_pass(&h);
	check_both(&h, DAY0, check_some);
	check_both(&h, DAY0 + 1, check_empty);
	harness_close(&h);
}

static void a_start_goes_on_with_the_checkpoint(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	harness_report(&h, "a", "view", "Oops", 100, 12);
	harness_report(&h, "c", "view", "Oops", 500, 0);
	harness_pass(&h);
	harness_report(&h, "b", "view", "Oops", 500, 0);
	harness_restart(&h);
	harness_report(&h, "d", "view", "Oops", 400, 3);
	harness_pass(&h);
	harness_restart(&h);
	harness_report(&h, "e", "a:b", "c\\d", 900, 0);
	harness_report(&h, "f", "", "", 0, 0);
	check_both(&h, DAY0, check_some);
	harness_pass(&h);
	check_both(&h, DAY0, check_some);
	harness_close(&h);
}

static void what_is_sent_again_counts_once(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	struct fault_item items[] = {harness_item("x", "one"), harness_item("x", "one"),
				     harness_item("x", "two"), harness_item("y", "three")};
	harness_submit(&h, items, 4);
	assert_int_equal(items[0].outcome, FAULT_TAKEN);
	assert_int_equal(items[1].outcome, FAULT_REPEATED);
	assert_int_equal(items[1].date_us, items[0].date_us);
	assert_int_equal(items[2].outcome, FAULT_CONFLICT);
	assert_int_equal(items[3].outcome, FAULT_TAKEN);
	clock_virtual_advance(&h.clock, 1000000);
	struct fault_item again = harness_item("x", "one"), other = harness_item("x", "two");
	harness_submit(&h, &again, 1);
	harness_submit(&h, &other, 1);
	assert_int_equal(again.outcome, FAULT_REPEATED);
	assert_int_equal(again.date_us, items[0].date_us);
	assert_int_equal(other.outcome, FAULT_CONFLICT);
	assert_int_equal(other.date_us, items[0].date_us);
	struct fault_day_view *view = harness_day(&h, DAY0, true);
	assert_int_equal(view->total, 2);
	fault_day_view_free(view);
	harness_close(&h);
}

/* Five names where four may be: the fifth is the rest, in the order of receipt. */
static void check_rest(const struct fault_day_view *view)
{
	assert_int_equal(view->total, 8);
	assert_int_equal(view->rest, 3);
	assert_int_equal(view->largest.count, 4); /* all names of an open day */
	assert_top(&view->largest, 0, 2, "c1:");
}

static void names_beyond_the_bound_are_the_rest(UNUSED void **state)
{
	static const char *const contexts[] = {"c1", "c2", "c3", "c4", "c5", "c1", "c6", "c5"};
	struct harness h;
	harness_open(&h);
	for (size_t i = 0; i < 8; i++) {
		char id[8];
		snprintf(id, sizeof(id), "r%zu", i);
		harness_report(&h, id, contexts[i], "", 0, 0);
		if (i == 4)
			harness_pass(&h);
	}
	check_both(&h, DAY0, check_rest);
	harness_pass(&h);
	check_both(&h, DAY0, check_rest);
	harness_close(&h);
}

static void check_closed(const struct fault_day_view *view)
{
	assert_true(view->closed);
	check_some(view);
}

static size_t volumes_stored(struct harness *h)
{
	struct fault_parts key;
	fault_summaries_key(&key, TEXT("t"), DAY0, FAULT_ROW_VOLUMES);
	struct store_read *read = store_read_new(h->store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){.table = TABLE_SUMMARIES, .key = key.parts};
	read->now_ms = clock_wall_ms(&h->clock.clock);
	assert_int_equal(store_read_wait(read, &h->queue), 0);
	size_t count = request->cell_scan.count;
	store_read_free(read);
	return count;
}

/* Not before the last write of the day can have come; then its volumes are one list, and later the
 * row that they were in goes. */
static void a_day_is_closed(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_some(&h);
	harness_pass(&h);
	int64_t end_us = (DAY0 + 1) * FAULT_DAY_US;
	clock_virtual_advance(&h.clock, end_us + 2999999 - h.clock.wall_us);
	harness_pass(&h);
	struct fault_day_view *view = harness_day(&h, DAY0, true);
	assert_false(view->closed);
	fault_day_view_free(view);
	assert_int_equal(volumes_stored(&h), 3);
	clock_virtual_advance(&h.clock, 1);
	harness_pass(&h);
	check_both(&h, DAY0, check_closed);
	assert_int_equal(volumes_stored(&h), 3);
	clock_virtual_advance(&h.clock, STORE_QUERY_DEADLINE_MAX_MS * INT64_C(1000));
	harness_pass(&h);
	assert_int_equal(volumes_stored(&h), 0);
	harness_pass(&h);
	check_both(&h, DAY0, check_closed);
	harness_restart(&h);
	harness_pass(&h);
	check_both(&h, DAY0, check_closed);
	harness_close(&h);
}

/* A clock that is set back into a day that is closed: its counts are made anew. */
static void a_closed_day_that_gets_more_is_counted_anew(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	harness_report(&h, "a", "view", "Oops", 100, 12);
	harness_report(&h, "c", "view", "Oops", 500, 0);
	harness_report(&h, "b", "view", "Oops", 500, 0);
	int64_t day_us = FAULT_DAY_US;
	clock_virtual_advance(&h.clock, day_us);
	harness_report(&h, "later", "", "", 0, 0);
	harness_pass(&h);
	h.clock.wall_us -= day_us;
	harness_report(&h, "d", "view", "Oops", 400, 3);
	harness_report(&h, "e", "a:b", "c\\d", 900, 0);
	harness_report(&h, "f", "", "", 0, 0);
	h.clock.wall_us += day_us;
	check_both(&h, DAY0, check_closed);
	harness_pass(&h);
	check_both(&h, DAY0, check_closed);
	harness_close(&h);
}

static void report_of_group(struct harness *h, const char *id)
{
	struct fault_item item = harness_item(id, id);
	item.facts.texts[FAULT_GROUP] = TEXT("1-g");
	harness_submit(h, &item, 1);
}

/* By a question about all groups, and by one about this. */
static void check_group(struct harness *h, uint64_t count)
{
	const struct fault_groups_question question = {DAY0, DAY0, FAULT_TALLY_ALL, 0};
	struct fault_groups groups;
	struct fault_group_history history;
	struct errbuf e = {""};
	assert_int_equal(fault_book_read_groups(h->book, &h->queue, &question, &groups, &e), 0);
	assert_int_equal(groups.table.count, 1);
	for (size_t at = 0; at < groups.table.slot_count; at++)
		if (fault_groups_at(&groups, at))
			assert_int_equal(fault_groups_at(&groups, at)->tally->count, count);
	fault_groups_release(&groups);
	const struct fault_group_question one = {TEXT("1-g"), FAULT_TALLY_ALL, 0};
	assert_int_equal(fault_book_read_group(h->book, &h->queue, &one, &history, &e), 0);
	assert_int_equal(history.tally.count, count);
	assert_int_equal(history.count, 1);
	fault_group_history_release(&history);
}

static void spoil_group(struct harness *h, int64_t day)
{
	const struct store_parts column = {{TEXT("group.1-g")}};
	struct store_write *write = store_write_new(h->store, 1 << 20);
	struct fault_parts key;
	fault_summaries_key(&key, TEXT("t"), day, FAULT_ROW_GROUPS);
	assert_int_equal(store_cell_put(write, TABLE_SUMMARIES, &key.parts, &column, TEXT("noise"),
					store_stamp(h->store), 0),
			 0);
	assert_int_equal(store_write_wait(write, &h->queue), 0);
	store_write_free(write);
}

/* While the day is open, and when it is closed; the owner mends the cell. */
static void a_group_that_cannot_be_read_is_counted_anew(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	log_set_level(LOG_ERROR);
	report_of_group(&h, "a");
	report_of_group(&h, "b");
	harness_pass(&h);
	spoil_group(&h, DAY0);
	harness_restart(&h);
	check_group(&h, 2);
	harness_pass(&h);
	harness_restart(&h);
	check_group(&h, 2);
	clock_virtual_advance(&h.clock, 2 * FAULT_DAY_US);
	harness_pass(&h);
	spoil_group(&h, DAY0);
	check_group(&h, 2);
	harness_restart(&h);
	check_group(&h, 2);
	harness_pass(&h);
	check_group(&h, 2);
	harness_restart(&h);
	int64_t recounts = stat_values[STAT_fault_recounts];
	check_group(&h, 2);
	harness_pass(&h);
	assert_int_equal(stat_values[STAT_fault_recounts], recounts);
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* More days than a question that finds nothing but changes begins again; until its deadline. */
static void many_days_that_cannot_be_read_are_counted_anew(UNUSED void **state)
{
	enum { DAYS = 12 };
	struct harness h;
	struct errbuf e = {""};
	harness_open(&h);
	log_set_level(LOG_ERROR);
	for (int i = 0; i < DAYS; i++) {
		char id[8];
		snprintf(id, sizeof(id), "id%d", i);
		report_of_group(&h, id);
		harness_pass(&h);
		clock_virtual_advance(&h.clock, FAULT_DAY_US);
	}
	harness_pass(&h);
	for (int i = 0; i < DAYS; i++)
		spoil_group(&h, DAY0 + i);
	for (int64_t late = 1; late >= 0; late--) {
		int64_t deadline_us = late ? h.clock.clock.mono_us(&h.clock.clock) : 0;
		const struct fault_groups_question question = {DAY0, DAY0 + DAYS - 1,
							       FAULT_TALLY_ALL, deadline_us};
		const struct fault_group_question one = {TEXT("1-g"), FAULT_TALLY_ALL, deadline_us};
		struct fault_groups groups;
		struct fault_group_history history;
		int err = late ? ERR_TIMEOUT : 0;
		assert_int_equal(fault_book_read_groups(h.book, &h.queue, &question, &groups, &e),
				 err);
		assert_int_equal(fault_book_read_group(h.book, &h.queue, &one, &history, &e), err);
		for (size_t at = 0; at < groups.table.slot_count && !late; at++)
			if (fault_groups_at(&groups, at))
				assert_int_equal(fault_groups_at(&groups, at)->tally->count, DAYS);
		if (!late)
			assert_int_equal(history.count, DAYS);
		fault_groups_release(&groups);
		fault_group_history_release(&history);
	}
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* The owner's time ends between two passes: the one of after begins another tenure, and what the
 * first wrote stays. */
static void an_owner_whose_time_is_over_writes_nothing(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_some(&h);
	assert_int_equal(harness_pass_until(&h, T0_US / 1000), ERR_TIMEOUT);
	check_both(&h, DAY0, check_some);
	assert_int_equal(harness_pass_until(&h, T0_US / 1000 + 1000), 0);
	check_both(&h, DAY0, check_some);
	harness_close(&h);
}

struct listed {
	char ids[64];
	size_t count, max;
};

static bool list_one(void *owner, const struct fault_listed *report)
{
	struct listed *listed = owner;
	size_t at = strlen(listed->ids);
	snprintf(listed->ids + at, sizeof(listed->ids) - at, "%.*s ", (int)report->id.len,
		 report->id.data);
	return ++listed->count < listed->max;
}

static void assert_listed(struct harness *h, struct fault_list_filter filter, const char *ids)
{
	struct errbuf e;
	struct listed listed = {.max = 100};
	struct fault_order reached;
	assert_int_equal(
		fault_book_list(h->book, &h->queue, &filter, list_one, &listed, &reached, &e), 0);
	assert_string_equal(listed.ids, ids);
}

static void reports_are_listed_newest_first(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	const struct fault_list_filter all = {
		.from_us = INT64_MIN, .to_us = INT64_MAX, .after = {.date_us = INT64_MAX}};
	assert_listed(&h, all, "");
	int64_t first_us = harness_report(&h, "a", "view", "Oops", 0, 0);
	clock_virtual_advance(&h.clock, 1000000);
	harness_report(&h, "b", "view", "Other", 0, 0);
	harness_restart(&h);
	clock_virtual_advance(&h.clock, 1000000);
	int64_t third_us = harness_report(&h, "c", "list", "Oops", 0, 0);
	harness_report(&h, "d", "view", "Oops", 0, 0);
	assert_listed(&h, all, "d c b a ");
	struct fault_list_filter filter = all;
	filter.texts[FAULT_CONTEXT] = TEXT("view");
	assert_listed(&h, filter, "d b a ");
	filter.texts[FAULT_EXCEPTION] = TEXT("Oops");
	assert_listed(&h, filter, "d a ");
	filter = all;
	filter.to_us = third_us;
	assert_listed(&h, filter, "b a ");
	filter.from_us = first_us + 1;
	assert_listed(&h, filter, "b ");
	filter.from_us = first_us;
	assert_listed(&h, filter, "b a ");
	harness_close(&h);
}

struct news {
	struct listed told;
	uint64_t from;
};

static void tell_one(void *owner, uint64_t number, const struct fault_listed *report)
{
	struct news *news = owner;
	assert_true(number < news->from + FAULT_NEWS_MAX);
	(void)list_one(&news->told, report);
}

static void assert_news(struct harness *h, struct news *news, const char *ids, uint64_t missed)
{
	struct errbuf e;
	uint64_t really;
	news->told = (struct listed){.max = 2 * FAULT_NEWS_MAX};
	assert_int_equal(
		fault_book_news(h->book, &h->queue, &news->from, tell_one, news, &really, &e), 0);
	assert_int_equal(really, missed);
	if (ids)
		assert_string_equal(news->told.ids, ids);
}

static void begin_news(struct harness *h, struct news *news, const char *ids)
{
	*news = (struct news){.from = 0};
	fault_book_watch(h->book, true);
	assert_listed(h,
		      (struct fault_list_filter){.from_us = INT64_MIN,
						 .to_us = INT64_MAX,
						 .after = {.date_us = INT64_MAX},
						 .news = &news->from},
		      ids);
}

static void news_are_given_once(UNUSED void **state)
{
	struct harness h;
	struct news one, two;
	harness_open(&h);
	harness_report(&h, "a", "view", "Oops", 0, 0);
	begin_news(&h, &one, "a ");
	assert_news(&h, &one, "", 0);
	harness_report(&h, "b", "view", "Oops", 0, 0);
	begin_news(&h, &two, "b a ");
	harness_report(&h, "c", "view", "Oops", 0, 0);
	assert_news(&h, &one, "b c ", 0);
	assert_news(&h, &two, "c ", 0);
	fault_book_watch(h.book, false);
	harness_pass(&h);
	harness_report(&h, "d", "view", "Oops", 0, 0);
	assert_news(&h, &one, "d ", 0);
	assert_news(&h, &one, "", 0);
	for (int i = 0; i < FAULT_NEWS_MAX + 6; i++) {
		char id[8];
		snprintf(id, sizeof(id), "%d", i);
		harness_report(&h, id, "view", "Oops", 0, 0);
	}
	assert_news(&h, &one, NULL, 6);
	assert_int_equal(one.told.count, FAULT_NEWS_MAX);
	fault_book_watch(h.book, false);
	harness_close(&h);
}

/* As after a write of the book whose outcome is not known, and where another process owns the
 * tenant. */
static void news_go_on_where_the_book_is_read_anew(UNUSED void **state)
{
	struct harness h;
	struct news news;
	harness_open(&h);
	harness_report(&h, "a", "view", "Oops", 0, 0);
	harness_pass(&h);
	begin_news(&h, &news, "a ");
	harness_report(&h, "b", "view", "Oops", 0, 0);
	assert_news(&h, &news, "b ", 0);
	fault_book_disown(h.book);
	assert_news(&h, &news, "", 0);
	harness_report(&h, "c", "view", "Oops", 0, 0);
	fault_book_disown(h.book);
	assert_news(&h, &news, "c ", 0);
	struct fault_book *watched = h.book;
	h.book = fault_book_new(&h.site, TEXT("t"));
	harness_report(&h, "d", "view", "Oops", 0, 0);
	harness_report(&h, "e", "view", "Oops", 0, 0);
	harness_pass(&h);
	fault_book_free(h.book);
	h.book = watched;
	harness_report(&h, "f", "view", "Oops", 0, 0);
	fault_book_disown(h.book);
	assert_news(&h, &news, "d e f ", 0); /* d and e it has from the checkpoint of the other */
	fault_book_watch(h.book, false);
	harness_close(&h);
}

/* Between the first request of a read and the others something is written. */
static struct {
	const struct store_engine *inner;
	struct store_engine engine;
	struct harness *h; /* NULL: no longer */
} split;

static void post_nowhere(UNUSED struct executor *executor, UNUSED struct task *task)
{
}

static void write_between(struct store_read *read, struct harness *h)
{
	struct executor nowhere = {post_nowhere}, *executor = read->executor;
	struct store_request *rest = read->requests->next;
	read->requests->next = NULL;
	read->executor = &nowhere;
	assert_int_equal(split.inner->read_submit(read), 0);
	harness_report(h, "x", "view", "Oops", 0, 0);
	harness_report(h, "y", "view", "Oops", 0, 0);
	read->requests->next = rest;
	read->requests = rest;
	read->executor = executor;
}

static int submit_split(struct store_read *read)
{
	struct store_request *first = read->requests;
	struct harness *h = split.h;
	if (h && first->op == STORE_CELL_SCAN && first->next &&
	    first->cell_scan.table == TABLE_REPORT_ARRIVALS) {
		split.h = NULL;
		write_between(read, h);
	}
	int err = split.inner->read_submit(read);
	read->requests = first;
	return err;
}

/* x is the last of its row, and y the first of the next. */
static void news_come_in_the_order_of_receipt(UNUSED void **state)
{
	struct harness h;
	struct news news;
	harness_open(&h);
	begin_news(&h, &news, "");
	for (int i = 0; i < FAULT_RUN_REPORTS - 1; i++) {
		char id[8];
		snprintf(id, sizeof(id), "%d", i);
		harness_report(&h, id, "view", "Oops", 0, 0);
	}
	assert_news(&h, &news, NULL, FAULT_RUN_REPORTS - 1 - FAULT_NEWS_MAX);
	split.inner = h.store->engine;
	split.engine = *split.inner;
	split.engine.read_submit = submit_split;
	split.h = &h;
	h.store->engine = &split.engine;
	assert_news(&h, &news, "x y ", 0);
	assert_null(split.h);
	fault_book_watch(h.book, false);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_is_counted),
		cmocka_unit_test(a_start_goes_on_with_the_checkpoint),
		cmocka_unit_test(what_is_sent_again_counts_once),
		cmocka_unit_test(names_beyond_the_bound_are_the_rest),
		cmocka_unit_test(a_day_is_closed),
		cmocka_unit_test(a_closed_day_that_gets_more_is_counted_anew),
		cmocka_unit_test(a_group_that_cannot_be_read_is_counted_anew),
		cmocka_unit_test(many_days_that_cannot_be_read_are_counted_anew),
		cmocka_unit_test(an_owner_whose_time_is_over_writes_nothing),
		cmocka_unit_test(reports_are_listed_newest_first),
		cmocka_unit_test(news_are_given_once),
		cmocka_unit_test(news_go_on_where_the_book_is_read_anew),
		cmocka_unit_test(news_come_in_the_order_of_receipt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
