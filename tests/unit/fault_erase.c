/* Erasure of the reports of a user, by one process on the naive store, with runs of four reports:
 * what becomes of days that were collected, of struck reports, and of erasures that are cut off. */
#include "fault_sealed_harness.h"

#include "fault/book_private.h"
#include "fault/erase.h"
#include "fault/groups.h"

#define DAY0   (T0_US / FAULT_DAY_US)
#define DAY_US INT64_C(86400000000)

static const struct fault_collect_rules old = {.keep_us = DAY_US, .newest = 1};
static const struct fault_collect_rules none = {.newest = 1};

struct written {
	char id[8], body[100], packed[200], tags[40];
};

static struct fault_item item_of(struct written *w, unsigned number, const char *user,
				 const char *group, int64_t duration_us)
{
	snprintf(w->id, sizeof(w->id), "%02u", number);
	snprintf(w->body, sizeof(w->body), "{\"username\":\"%s\"}", user);
	struct fault_item item = harness_item(w->id, w->body);
	struct buf packed;
	buf_init(&packed, sizeof(w->packed));
	item.dictionary = fault_pack(slice_of(w->body), &packed);
	assert_false(packed.failed);
	memcpy(w->packed, packed.data, packed.len);
	item.packed = (struct slice){w->packed, packed.len};
	buf_release(&packed);
	item.facts.texts[FAULT_GROUP] = slice_of(group);
	item.facts.texts[FAULT_USER] = slice_of(user);
	snprintf(w->tags, sizeof(w->tags), "who\xff%s", user);
	item.facts.texts[FAULT_TAGS] = slice_of(w->tags);
	item.facts.texts[FAULT_TITLE] = slice_of(user);
	item.facts.duration_us = duration_us;
	return item;
}

static void send(struct harness *h, unsigned number, const char *user, int64_t duration_us)
{
	struct written w;
	struct fault_item item = item_of(&w, number, user, "a", duration_us);
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
	clock_virtual_advance(&h->clock, 1000);
}

/* Reports from `first` on; a longer one for each. */
static void send_others(struct harness *h, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		send(h, i, "bob", 10 + i);
}

static void age(struct harness *h)
{
	seal(h);
	clock_virtual_advance(&h->clock, MINUTES_5_US);
	seal(h);
	clock_virtual_advance(&h->clock, 3 * DAY_US);
	seal(h);
}

static void collect(struct harness *h, const struct fault_collect_rules *rules)
{
	struct fault_plan *plan;
	struct errbuf e = {""};
	assert_int_equal(fault_plan_new(h->book, &h->queue, rules, 0, &plan, &e), 0);
	if (!fault_plan_view(plan).runs) {
		fault_plan_free(plan);
		return;
	}
	assert_int_equal(fault_book_collect(h->book, plan, &e), 0);
	for (int i = 0; i < 4; i++) {
		seal(h);
		clock_virtual_advance(&h->clock, MINUTES_5_US);
	}
}

static uint64_t begin(struct harness *h, const char *user, uint64_t reports)
{
	struct fault_erasure *erasure;
	struct errbuf e = {""};
	uint64_t ticket;
	assert_int_equal(fault_erasure_new(h->book, &h->queue, slice_of(user), &erasure, &e), 0);
	assert_int_equal(fault_erasure_view(erasure).reports, reports);
	assert_int_equal(fault_book_erase(h->book, erasure, &ticket, &e), 0);
	return ticket;
}

static void erase(struct harness *h, const char *user, uint64_t reports)
{
	uint64_t ticket = begin(h, user, reports);
	for (int i = 0; i < 10; i++)
		seal(h);
	assert_int_equal(fault_book_erasure_state(h->book, ticket), FAULT_ERASURE_DONE);
}

static bool is_in_longest(struct harness *h, const char *id)
{
	struct fault_day_view *view = harness_day(h, DAY0, false);
	bool found = false;
	for (size_t i = 0; i < view->longest.count; i++)
		found = found || slice_equal(view->longest.list[i].id, slice_of(id));
	fault_day_view_free(view);
	return found;
}

static uint64_t total(struct harness *h)
{
	struct fault_day_view *view = harness_day(h, DAY0, false);
	uint64_t count = view->total;
	fault_day_view_free(view);
	return count;
}

/* What group `a` has; to be released. */
static struct fault_group_history history(struct harness *h)
{
	struct fault_group_history read;
	struct errbuf e = {""};
	const struct fault_group_question question = {SLICE("a"), FAULT_TALLY_ALL, 0, NULL};
	assert_int_equal(fault_book_read_group(h->book, &h->queue, &question, &read, &e), 0);
	return read;
}

static bool group_has(struct harness *h, const char *user)
{
	struct fault_group_history read = history(h);
	char tag[40];
	snprintf(tag, sizeof(tag), "who\xff%s", user);
	bool has = fault_tally_find(&read.tally, FAULT_TALLY_USER, slice_of(user)) ||
		   fault_tally_find(&read.tally, FAULT_TALLY_TAG, slice_of(tag));
	fault_group_history_release(&read);
	return has;
}

/* ---- What another report loses ----------------------------------------------------------------
 */

/* Two processes take an id at once: the report is bob's, and anna's is struck. */
static void send_at_once(struct harness *h)
{
	struct written w[2];
	struct fault_site site = h->site;
	site.holder = TEXT("another");
	struct fault_intake *other = fault_intake_new(&(struct fault_intake_options){
		.site = &site, .executor = &h->queue.executor, .seed = 99});
	bool done[2] = {false, false};
	struct fault_item items[2] = {item_of(&w[0], 5, "anna", "a", 5),
				      item_of(&w[1], 5, "bob", "a", 900)};
	struct fault_submission submissions[2];
	for (int i = 0; i < 2; i++) {
		submissions[i] = (struct fault_submission){.tenant = TEXT("t"),
							   .items = &items[i],
							   .count = 1,
							   .done = harness_done,
							   .owner = &done[i]};
		assert_int_equal(fault_intake_submit(i ? other : h->intake, &submissions[i]), 0);
	}
	while (!done[0] || !done[1])
		task_queue_wait(&h->queue);
	fault_intake_free(other);
}

static void test_the_report_of_a_struck_one_stays(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	send_others(&h, 0, 5);
	send_at_once(&h);
	send_others(&h, 6, 8);
	age(&h);
	collect(&h, &old);
	assert_true(is_in_longest(&h, "05"));
	erase(&h, "anna", 0);
	assert_true(is_in_longest(&h, "05"));
	harness_close(&h);
}

/* A bug keeps no report of hers, and what was said of bob's, which has the id, stays. */
static void test_bugs_go_with_the_reports(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	send_others(&h, 0, 5);
	send_at_once(&h);
	send(&h, 6, "anna", 10);
	send_others(&h, 7, 8);
	age(&h);
	say_report_bug(&h, "05", "1234");
	say_report_bug(&h, "06", "1234");
	erase(&h, "anna", 1);
	age(&h);
	collect(&h, &none);
	assert_int_equal(rows(&h, TABLE_FAULT_ERASED), 0);
	assert_false(has_report_bug(&h, "06"));
	assert_true(has_report_bug(&h, "05"));
	assert_true(is_in_longest(&h, "05"));
	harness_close(&h);
}

/* Neither if an erasure is cut off, and another one finds what it has entered. */
static void test_nor_does_it_go_after_a_cut(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	send_others(&h, 0, 5);
	send_at_once(&h);
	send(&h, 6, "anna", 10);
	age(&h);
	begin(&h, "anna", 1);
	seal(&h);
	harness_restart(&h); /* all is entered */
	seal(&h);
	erase(&h, "anna", 1);
	assert_true(is_in_longest(&h, "05"));
	assert_int_equal(total(&h), 6);
	harness_close(&h);
}

/* ---- Days that were collected ---------------------------------------------------------------- */

/* The counts stay. The title is that of the first report, which is anna's. */
static void test_the_first_of_a_group(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	send(&h, 0, "anna", 900);
	send_others(&h, 1, 8);
	age(&h);
	collect(&h, &old);
	struct fault_group_history read = history(&h);
	assert_true(slice_equal(read.tally.first.id, SLICE("00")));
	fault_group_history_release(&read);
	erase(&h, "anna", 1);
	read = history(&h);
	assert_int_equal(read.tally.count, 8);
	assert_int_equal(read.tally.first.id.len + read.tally.title.len, 0);
	assert_true(slice_equal(read.tally.last.id, SLICE("07")));
	assert_int_equal(read.tally.values[FAULT_TALLY_USER].none.count, 1);
	fault_group_history_release(&read);
	assert_false(group_has(&h, "anna"));
	assert_false(is_in_longest(&h, "00"));
	assert_int_equal(total(&h), 8);
	harness_close(&h);
}

static void test_the_total_is_damaged(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column = {.parts = {{SLICE("total")}}};
	harness_open(&h);
	send(&h, 0, "anna", 900);
	send_others(&h, 1, 8);
	age(&h);
	collect(&h, &old);
	fault_summaries_key(&key, TEXT("t"), DAY0, FAULT_ROW_DAY);
	put_cell(&h, TABLE_SUMMARIES, &key, &column, TEXT("\377\377"));
	harness_restart(&h);
	seal(&h);
	erase(&h, "anna", 1);
	assert_false(group_has(&h, "anna"));
	harness_close(&h);
}

static bool see_place(void *owner, const struct fault_listed *report)
{
	if (slice_equal(report->facts.texts[FAULT_USER], SLICE("anna")))
		*(struct fault_place *)owner = report->order.place;
	return true;
}

static struct fault_place place_of_anna(struct harness *h)
{
	struct fault_place place = {0, 0};
	struct fault_order reached;
	struct errbuf e = {""};
	assert_int_equal(fault_book_list(h->book, &h->queue, &all, see_place, &place, &reached, &e),
			 0);
	return place;
}

/* A recount would lose the four reports of another run. */
static void test_a_run_of_the_day_is_damaged(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	harness_open(&h);
	send(&h, 0, "anna", 10);
	send_others(&h, 1, 12);
	age(&h);
	fault_runs_key(&key, TEXT("t"));
	fault_runs_column(&column, (struct fault_place){place_of_anna(&h).writer, 4});
	put_cell(&h, TABLE_REPORT_RUNS, &key, &column, TEXT("\377\377"));
	erase(&h, "anna", 1);
	assert_int_equal(total(&h), 12);
	assert_false(group_has(&h, "anna"));
	harness_close(&h);
}

/* ---- What is cut off ------------------------------------------------------------------------- */

static void test_collection_waits_for_the_end(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	harness_open(&h);
	send(&h, 0, "bob", 10);
	send(&h, 1, "anna", 900);
	send_others(&h, 2, 8);
	age(&h);
	collect(&h, &old);
	assert_true(is_in_longest(&h, "01"));
	begin(&h, "anna", 1);
	harness_pass(&h);
	assert_int_equal(fault_book_seal(h.book, &h.queue, INT64_MAX, &e), 0);
	harness_restart(&h); /* all is entered */
	seal(&h);
	collect(&h, &none);
	erase(&h, "anna", 1);
	assert_false(is_in_longest(&h, "01"));
	assert_int_equal(rows(&h, TABLE_FAULT_ERASED), 1);
	collect(&h, &none);
	assert_int_equal(rows(&h, TABLE_FAULT_ERASED), 0);
	erase(&h, "anna", 0);
	harness_close(&h);
}

/* The arrival is entered, and its id is not. */
static void test_half_is_entered(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key = {.parts = {{TEXT("t")}}}, column;
	harness_open(&h);
	send(&h, 0, "bob", 10);
	send(&h, 1, "anna", 900);
	send_others(&h, 2, 8);
	age(&h);
	fault_erased_column(&column, place_of_anna(&h));
	begin(&h, "anna", 1);
	harness_pass(&h);
	put_cell(&h, TABLE_FAULT_ERASED, &key, &column, TEXT("\1"));
	harness_restart(&h);
	seal(&h);
	collect(&h, &none);
	erase(&h, "anna", 1);
	assert_int_equal(total(&h), 7);
	assert_false(group_has(&h, "anna"));
	struct written w;
	struct fault_item item = item_of(&w, 1, "anna", "a", 900);
	harness_submit(&h, &item, 1);
	assert_int_equal(item.outcome, FAULT_ERASED);
	harness_close(&h);
}

struct grep {
	struct harness *h;
	size_t found;
};

static int grep_cell(const struct store_cell *cell, void *owner)
{
	static const char name[] = "anna-zoe";
	struct grep *g = owner;
	g->found += memmem(cell->value.data, cell->value.len, name, strlen(name)) != NULL;
	return 0;
}

static int grep_row(const struct store_row *row, void *owner)
{
	struct grep *g = owner;
	struct errbuf e;
	return store_row_wait(g->h->store, &g->h->queue, clock_wall_ms(&g->h->clock.clock),
			      TABLE_SUMMARIES, &row->key, grep_cell, g, &e);
}

static size_t cells_with_name(struct harness *h)
{
	struct grep g = {h, 0};
	struct errbuf e;
	assert_int_equal(store_rows_wait(h->store, &h->queue, clock_wall_ms(&h->clock.clock),
					 TABLE_SUMMARIES, grep_row, &g, &e),
			 0);
	return g.found;
}

/* Between the two checkpoints; of a day that is recounted, and of one that cannot be. */
static void test_no_cell_keeps_what_it_was(UNUSED void **state)
{
	for (int collected = 0; collected < 2; collected++) {
		struct harness h;
		struct errbuf e = {""};
		harness_open(&h);
		send(&h, 0, "anna-zoe", 10);
		send_others(&h, 1, 8);
		age(&h);
		if (collected)
			collect(&h, &old);
		assert_int_equal(cells_with_name(&h), 1);
		begin(&h, "anna-zoe", 1);
		harness_pass(&h);
		assert_int_equal(fault_book_seal(h.book, &h.queue, INT64_MAX, &e), 0);
		naive_fail_writes_after(h.store, 1, ERR_FULL, 1);
		assert_int_not_equal(harness_pass_until(&h, INT64_MAX), 0);
		harness_restart(&h);
		seal(&h);
		erase(&h, "anna-zoe", 1);
		assert_int_equal(cells_with_name(&h), 0);
		harness_close(&h);
	}
}

static void test_another_owner_begins(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	send(&h, 1, "anna", 900);
	seal(&h);
	uint64_t ticket = begin(&h, "anna", 1);
	assert_int_equal(fault_book_erasure_state(h.book, ticket), FAULT_ERASURE_WORKS);
	fault_book_disown(h.book);
	assert_int_equal(fault_book_erasure_state(h.book, ticket), FAULT_ERASURE_LOST);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_report_of_a_struck_one_stays),
		cmocka_unit_test(test_nor_does_it_go_after_a_cut),
		cmocka_unit_test(test_bugs_go_with_the_reports),
		cmocka_unit_test(test_the_first_of_a_group),
		cmocka_unit_test(test_the_total_is_damaged),
		cmocka_unit_test(test_a_run_of_the_day_is_damaged),
		cmocka_unit_test(test_collection_waits_for_the_end),
		cmocka_unit_test(test_half_is_entered),
		cmocka_unit_test(test_no_cell_keeps_what_it_was),
		cmocka_unit_test(test_another_owner_begins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
