/* Collection, by one process on the naive store, with runs of four reports. */
#include "fault_sealed_harness.h"

#include "base/log.h"
#include "base/stats.h"
#include "fault/book_private.h"
#include "fault/collect.h"
#include "fault/groups.h"
#include "fault/said.h"

#define DAY0   (T0_US / FAULT_DAY_US)
#define DAY_US INT64_C(86400000000)

/* What is sealed lies nowhere else, and the days are over. */
static void age(struct harness *h)
{
	seal(h);
	clock_virtual_advance(&h->clock, MINUTES_5_US);
	seal(h);
	clock_virtual_advance(&h->clock, 3 * DAY_US);
	seal(h);
}

/* Ten reports of groups b, a, c, b ..., of which two runs are sealed and alone there; the last two
 * are in no sealed run. Their day is over. */
static void open_ten(struct harness *h)
{
	harness_open(h);
	report(h, 0, 10);
	age(h);
}

static struct fault_plan *plan(struct harness *h, const struct fault_collect_rules *rules,
			       uint64_t reports)
{
	struct fault_plan *made;
	struct errbuf e = {""};
	assert_int_equal(fault_plan_new(h->book, &h->queue, rules, 0, &made, &e), 0);
	assert_int_equal(fault_plan_view(made).reports, reports);
	return made;
}

/* Passes until a query deadline after the plan was handed over. */
static void carry_out(struct harness *h, struct fault_plan *made)
{
	struct errbuf e = {""};
	assert_int_equal(fault_book_collect(h->book, made, &e), 0);
	seal(h);
	clock_virtual_advance(&h->clock, MINUTES_5_US);
	seal(h);
}

static void collect(struct harness *h, const struct fault_collect_rules *rules, uint64_t reports)
{
	carry_out(h, plan(h, rules, reports));
}

static void assert_total(struct harness *h, int64_t day, uint64_t total, uint64_t rest)
{
	for (int own = 0; own < 2; own++) {
		struct fault_day_view *view = harness_day(h, day, own);
		assert_int_equal(view->total, total);
		assert_int_equal(view->rest, rest);
		fault_day_view_free(view);
	}
}

/* Whether a report with this id is there, by its entry: then it is none that is new. */
static bool is_entered(struct harness *h, const char *id)
{
	struct fault_item item = harness_item(id, "another");
	harness_submit(h, &item, 1);
	return item.outcome == FAULT_CONFLICT;
}

static int count_segments(const struct store_cell *cell, void *owner)
{
	uint64_t *names = owner, name = fault_part_number(cell->column.part[0]);
	size_t i = 1;
	while (i <= names[0] && names[i] != name)
		i++;
	names[i] = name;
	names[0] = i > names[0] ? i : names[0];
	return 0;
}

static int count_of_run(const struct store_row *row, void *owner)
{
	struct fault_parts *key = owner;
	if (fault_part_number(row->key.part[2]) == 0)
		fault_arrivals_key(key, TEXT("t"),
				   (struct fault_place){fault_part_number(row->key.part[1]), 0});
	return 0;
}

/* How many segments of the first run are there. */
static size_t segments(struct harness *h)
{
	struct errbuf e;
	struct fault_parts key;
	uint64_t names[8] = {0};
	int64_t now_ms = clock_wall_ms(&h->clock.clock);
	assert_int_equal(store_rows_wait(h->store, &h->queue, now_ms, TABLE_REPORT_SEGMENTS,
					 count_of_run, &key, &e),
			 0);
	assert_int_equal(store_row_wait(h->store, &h->queue, now_ms, TABLE_REPORT_SEGMENTS,
					&key.parts, count_segments, names, &e),
			 0);
	return names[0];
}

static const struct fault_collect_rules one_day = {.keep_us = DAY_US, .newest = 1};

static void report_with_file(struct harness *h, unsigned number)
{
	char id[8];
	struct buf packed;
	struct fault_attachment file = {.kept = true, .bytes = 4, .packed = TEXT("\0file")};
	snprintf(id, sizeof(id), "%02u", number);
	buf_init(&packed, 1000);
	struct fault_item item = harness_item(id, "{}");
	item.dictionary = fault_pack(TEXT("{}"), &packed);
	item.packed = buf_slice(&packed);
	item.facts.attachments = 1;
	item.attachments = &file;
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
	buf_release(&packed);
}

static int count_cell(UNUSED const struct store_cell *cell, void *owner)
{
	(*(size_t *)owner)++;
	return 0;
}

static int count_files(const struct store_row *row, void *owner)
{
	struct fault_parts *key = owner;
	fault_arrivals_key(key, TEXT("t"),
			   (struct fault_place){fault_part_number(row->key.part[1]), 0});
	return 0;
}

/* Of the only run. */
static size_t file_cells(struct harness *h)
{
	struct errbuf e;
	struct fault_parts key;
	size_t count = 0;
	int64_t now_ms = clock_wall_ms(&h->clock.clock);
	assert_int_equal(store_rows_wait(h->store, &h->queue, now_ms, TABLE_REPORT_ATTACHMENTS,
					 count_files, &key, &e),
			 0);
	assert_int_equal(store_row_wait(h->store, &h->queue, now_ms, TABLE_REPORT_ATTACHMENTS,
					&key.parts, count_cell, &count, &e),
			 0);
	return count;
}

/* 00, 01 and 02 are the first of their groups, 07, 08 and 09 the newest. */
static void what_is_old_goes_but_the_first_and_the_newest(UNUSED void **state)
{
	struct harness h;
	open_ten(&h);
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	assert_total(&h, DAY0, 10, 0);
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	check_list(&h, all, "words", "09 08 07 02 01 00 ");
	check_list(&h, all, "w02", "02 ");
	check_list(&h, all, "w03", "");
	assert_total(&h, DAY0, 10, 0);
	assert_true(is_entered(&h, "00") && is_entered(&h, "07"));
	/* For longer than any query the segment that was is there, too. */
	assert_int_equal(segments(&h), 2);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(segments(&h), 1);
	check_list(&h, all, "words", "09 08 07 02 01 00 ");
	assert_false(is_entered(&h, "03"));
	fault_plan_free(plan(&h, &one_day, 0));
	harness_close(&h);
}

/* Nothing is gone before the longest query that began with the checkpoint before is over. */
static void nothing_goes_at_once(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	open_ten(&h);
	assert_int_equal(fault_book_collect(h.book, plan(&h, &one_day, 4), &e), 0);
	seal(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US - 1000000);
	seal(&h);
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	clock_virtual_advance(&h.clock, 1000000);
	seal(&h);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	harness_close(&h);
}

/* The longest of a day that is over, what has a bug, and a group that has one. */
static void what_is_referred_to_stays(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_one(&h, 0, "a", "", -1);
	report_one(&h, 1, "a", "", 900);
	report_one(&h, 2, "a", ",\"bug.launchpad\":\"1234\"", -1);
	report_one(&h, 3, "a", "", -1);
	report_one(&h, 4, "a", "", 700);
	report_one(&h, 5, "a", "", 800);
	report_one(&h, 6, "a", "", 600); /* the lists have three */
	report_one(&h, 7, "a", "", -1);
	seal(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	clock_virtual_advance(&h.clock, 3 * DAY_US);
	seal(&h);
	/* Bodies are looked at when it is carried out. */
	collect(&h, &one_day, 3);
	check_list(&h, all, NULL, "07 05 04 02 01 00 ");
	struct fault_day_view *view = harness_day(&h, DAY0, false);
	assert_top(&view->longest, 0, 900, "01");
	fault_day_view_free(view);
	harness_close(&h);
}

static int say_bug(UNUSED void *owner, struct fault_said *said, UNUSED struct errbuf *e)
{
	said->bugs[0] = (struct fault_bug){TEXT("launchpad"), TEXT("1234")};
	said->bug_count = 1;
	return 0;
}

static void give_bug(struct harness *h, const char *group)
{
	struct arena arena;
	struct fault_said said;
	struct errbuf e = {""};
	arena_init(&arena, 1 << 20);
	assert_int_equal(fault_said_write(&h->site, &h->queue, TEXT("t"), slice_of(group), say_bug,
					  NULL, &arena, &said, &e),
			 0);
	arena_release(&arena);
}

/* Of group b are 00, 03, 06 and 09, of group c 02, 05 and 08. */
static void what_is_of_a_group_with_a_bug_stays(UNUSED void **state)
{
	struct harness h;
	open_ten(&h);
	give_bug(&h, "b");
	struct fault_plan *made = plan(&h, &one_day, 2);
	give_bug(&h, "c"); /* after it was planned */
	carry_out(&h, made);
	check_list(&h, all, NULL, "09 08 07 06 05 03 02 01 00 ");
	harness_close(&h);
}

/* 03, 04, 05 and 06 would go. An empty text says that it is no bug. */
static void a_report_that_was_given_a_bug_stays(UNUSED void **state)
{
	struct harness h;
	open_ten(&h);
	say_report_bug(&h, "03", "1234");
	say_report_bug(&h, "05", "");
	struct fault_plan *made = plan(&h, &one_day, 3);
	say_report_bug(&h, "04", "1234"); /* after it was planned */
	carry_out(&h, made);
	check_list(&h, all, NULL, "09 08 07 04 03 02 01 00 ");
	assert_true(has_report_bug(&h, "03") && has_report_bug(&h, "04"));
	assert_false(has_report_bug(&h, "05"));
	assert_true(is_entered(&h, "03") && is_entered(&h, "04"));
	assert_false(is_entered(&h, "05"));
	harness_close(&h);
}

/* What is merged into b, and when, does not matter: a bug of b is one of it. */
static void what_is_merged_into_a_group_with_a_bug_stays(UNUSED void **state)
{
	struct harness h;
	open_ten(&h);
	give_bug(&h, "b");
	fault_plan_free(plan(&h, &one_day, 2));
	harness_merge(&h, "a", "c");
	harness_merge(&h, "c", "b");
	fault_plan_free(plan(&h, &one_day, 0));
	harness_merge(&h, "c", "");
	struct fault_plan *made = plan(&h, &one_day, 2);
	harness_merge(&h, "c", "b"); /* after it was planned */
	carry_out(&h, made);
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	harness_close(&h);
}

/* Group b may then be merged into a group that has a bug. */
static void what_is_merged_and_cannot_be_read_stays(UNUSED void **state)
{
	struct harness h;
	struct fault_plan *made;
	struct errbuf e = {""};
	const struct store_parts key = {{TEXT("t")}}, column = {{TEXT("merges")}};
	open_ten(&h);
	log_set_level(LOG_ERROR);
	assert_int_equal(store_put_if_wait(h.store, &h.queue, TABLE_FAULT_MERGES, &key, &column, 0,
					   TEXT("\x01")),
			 0);
	assert_int_equal(fault_plan_new(h.book, &h.queue, &one_day, 0, &made, &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, "fault_merges"));
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* Of a day that is not over, however short reports are to be kept, or not by their arrivals alone.
 */
static void what_is_still_at_work_stays(UNUSED void **state)
{
	struct harness h;
	const struct fault_collect_rules at_once = {.keep_us = 1, .newest = 1};
	harness_open(&h);
	report(&h, 0, 10);
	seal(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	fault_plan_free(plan(&h, &at_once, 0));
	harness_close(&h);
	harness_open(&h);
	for (unsigned i = 0; i < 8; i++)
		report_one(&h, i, "a", "", -1);
	clock_virtual_advance(&h.clock, 3 * DAY_US);
	seal(&h);
	fault_plan_free(plan(&h, &at_once, 0));
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	/* 01 goes of the first run. Of that nothing more goes until the segment that was has gone.
	 */
	const struct fault_collect_rules six = {.keep_us = 1, .newest = 6};
	struct fault_plan *old = plan(&h, &at_once, 6);
	collect(&h, &six, 1);
	check_list(&h, all, NULL, "07 06 05 04 03 02 00 ");
	fault_plan_free(plan(&h, &at_once, 3));
	carry_out(&h, old);
	check_list(&h, all, NULL, "07 03 02 00 ");
	collect(&h, &at_once, 2);
	check_list(&h, all, NULL, "07 00 ");
	check_list(&h, all, "words", "07 00 ");
	harness_close(&h);
}

static void files_go_with_their_reports(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	for (unsigned i = 0; i < 4; i++)
		report_with_file(&h, i);
	seal(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	clock_virtual_advance(&h.clock, 3 * DAY_US);
	seal(&h);
	assert_int_equal(file_cells(&h), 8); /* a head and a content each */
	collect(&h, &one_day, 2);
	check_list(&h, all, NULL, "03 00 ");
	assert_int_equal(file_cells(&h), 8); /* who asks for one may have begun before */
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(file_cells(&h), 4);
	harness_close(&h);
}

/* Of bodies of one length each report weighs the same. Of eight sealed ones half are to go. Groups
 * a and b have three of these, and c two: each may keep one and a third. The first of each stays,
 * so 03 and 04 go. */
static void the_fullest_groups_go_down_first(UNUSED void **state)
{
	struct harness h;
	struct fault_collect_rules rules = {.newest = 1};
	open_ten(&h);
	struct fault_plan *made = plan(&h, &rules, 0);
	uint64_t bytes = fault_plan_view(made).sealed_bytes;
	fault_plan_free(made);
	rules.bytes_max = bytes;
	fault_plan_free(plan(&h, &rules, 0));
	rules.bytes_max = bytes / 2;
	collect(&h, &rules, 2);
	check_list(&h, all, NULL, "09 08 07 06 05 02 01 00 ");
	harness_close(&h);
}

/* Its day cannot be counted from its reports any more. */
static void a_day_of_which_some_are_gone_is_not_counted_anew(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	open_ten(&h);
	assert_int_equal(fault_book_recount(h.book, DAY0, &e), 0);
	fault_plan_free(plan(&h, &one_day, 0));
	harness_pass(&h);
	collect(&h, &one_day, 4);
	assert_int_equal(fault_book_recount(h.book, DAY0, &e), ERR_EXISTS);
	assert_total(&h, DAY0, 10, 0);
	/* What turns up in it all the same is added. */
	h.clock.wall_us = T0_US + 1000000;
	report_one(&h, 10, "a", "", -1);
	harness_pass(&h);
	h.clock.wall_us = T0_US + 4 * DAY_US;
	harness_pass(&h);
	assert_total(&h, DAY0, 11, 1);
	harness_restart(&h);
	harness_pass(&h);
	assert_total(&h, DAY0, 11, 1);
	h.clock.wall_us = T0_US + 2000000;
	report_one(&h, 11, "a", "", -1);
	harness_pass(&h);
	h.clock.wall_us = T0_US + 4 * DAY_US;
	harness_pass(&h);
	assert_total(&h, DAY0, 12, 2);
	check_list(&h, all, NULL, "11 10 09 08 07 02 01 00 ");
	harness_close(&h);
}

/* Two processes may have taken one id at the same time. */
static void what_has_several_arrivals_stays(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	uint8_t value[FAULT_LISTING_BYTES];
	const struct fault_listing other = {.order = {T0_US + 500, {7, 0}}};
	open_ten(&h);
	fault_listing_encode(&other, value);
	fault_oops_key(&key, TEXT("t"), TEXT("03"));
	fault_oops_column(&column, TEXT("03"), other.order.place);
	put_cell(&h, TABLE_OOPS, &key, &column, (struct slice){(const char *)value, sizeof(value)});
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 03 02 01 00 ");
	harness_close(&h);
}

static void an_owner_that_is_none_collects_nothing(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	open_ten(&h);
	struct fault_plan *first = plan(&h, &one_day, 4), *second = plan(&h, &one_day, 4);
	assert_int_equal(fault_book_collect(h.book, first, &e), 0);
	assert_int_equal(fault_book_collect(h.book, second, &e), ERR_EXISTS);
	seal(&h);
	fault_book_disown(h.book);
	assert_int_equal(fault_book_collect(h.book, second, &e), ERR_INVALID);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h); /* in another tenure: what was planned before it is forgotten */
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	assert_int_equal(fault_book_collect(h.book, second, &e), ERR_RETRY);
	fault_plan_free(second);
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	harness_close(&h);
}

static void judge_doubted(UNUSED struct clock *clock, struct clock_judgement *judgement)
{
	*judgement = (struct clock_judgement){.doubted = true};
}

static void nothing_goes_while_the_clock_is_doubted(UNUSED void **state)
{
	struct harness h;
	struct fault_plan *made;
	struct errbuf e = {""};
	open_ten(&h);
	struct fault_plan *before = plan(&h, &one_day, 4);
	h.clock.clock.judge = judge_doubted;
	assert_int_equal(fault_plan_new(h.book, &h.queue, &one_day, 0, &made, &e), ERR_RETRY);
	assert_null(made);
	carry_out(&h, before);
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	h.clock.clock.judge = NULL;
	seal(&h);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	harness_close(&h);
}

/* As if the process had died before the write with this number. Another goes on: each report that
 * is listed is whole, and in the end all is as if nothing had happened. */
static bool dies_before(unsigned number)
{
	struct harness h;
	struct errbuf e = {""};
	unsigned step = 0;
	bool died = false;
	open_ten(&h);
	assert_int_equal(fault_book_collect(h.book, plan(&h, &one_day, 4), &e), 0);
	harness_pass(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	naive_fail_writes_after(h.store, number, ERR_FULL, 1000);
	for (; step < 3 && !died; step++) {
		died = fault_book_seal(h.book, &h.queue, INT64_MAX, &e) != 0;
		clock_virtual_advance(&h.clock, MINUTES_5_US);
	}
	naive_fail_writes(h.store, 0, 0);
	harness_restart(&h);
	seal(&h);
	check_list(&h, all, "words -w03 -w04 -w05 -w06", "09 08 07 02 01 00 ");
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	struct fault_plan *made;
	assert_int_equal(fault_plan_new(h.book, &h.queue, &one_day, 0, &made, &e), 0);
	carry_out(&h, made);
	check_list(&h, all, "words", "09 08 07 02 01 00 ");
	assert_total(&h, DAY0, 10, 0);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(segments(&h), 1);
	assert_true(is_entered(&h, "00") && is_entered(&h, "07"));
	assert_false(is_entered(&h, "03"));
	harness_close(&h);
	return died;
}

static void a_collection_that_ends_anywhere_is_done_by_the_next(UNUSED void **state)
{
	unsigned number = 0;
	log_set_level(LOG_ERROR);
	while (dies_before(number))
		number++;
	log_set_level(LOG_INFO);
	assert_true(number >= 6); /* of two runs: entries, segment, cell */
}

/* The write with this number is kept, but its owner does not come to know. */
static bool goes_on_after(unsigned number)
{
	struct harness h;
	struct errbuf e = {""};
	open_ten(&h);
	assert_int_equal(fault_book_collect(h.book, plan(&h, &one_day, 4), &e), 0);
	harness_pass(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	naive_lose_outcomes(h.store, number, 1);
	bool lost = fault_book_seal(h.book, &h.queue, INT64_MAX, &e) != 0;
	naive_fail_writes(h.store, 0, 0);
	for (int i = 0; i < 3; i++) {
		seal(&h);
		clock_virtual_advance(&h.clock, MINUTES_5_US);
	}
	seal(&h);
	check_list(&h, all, "words", "09 08 07 02 01 00 ");
	assert_int_equal(segments(&h), 1);
	assert_true(is_entered(&h, "00") && is_entered(&h, "07"));
	assert_false(is_entered(&h, "03"));
	fault_plan_free(plan(&h, &one_day, 0));
	harness_close(&h);
	return lost;
}

static void a_write_whose_outcome_is_not_known_is_sent_again(UNUSED void **state)
{
	unsigned number = 0;
	log_set_level(LOG_ERROR);
	while (goes_on_after(number))
		number++;
	log_set_level(LOG_INFO);
	assert_true(number >= 4); /* of two runs: the segment; the entries and the cell */
}

static bool is_listed(struct harness *h, const char *id)
{
	struct errbuf e = {""};
	struct listed listed = {""};
	struct fault_order reached;
	assert_int_equal(fault_book_list(h->book, &h->queue, &all, list_one, &listed, &reached, &e),
			 0);
	return strstr(listed.ids, id) != NULL;
}

/* The owner dies before the write with this number; then the group of 03 and 06 is given a bug, so
 * that the next plan chooses otherwise. */
static bool chooses_again_before(unsigned number, size_t *stayed)
{
	static const char *const ids[] = {"03", "04", "05", "06"};
	struct harness h;
	struct fault_plan *made;
	struct errbuf e = {""};
	open_ten(&h);
	assert_int_equal(fault_book_collect(h.book, plan(&h, &one_day, 4), &e), 0);
	harness_pass(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	naive_fail_writes_after(h.store, number, ERR_FULL, 1000);
	bool died = fault_book_seal(h.book, &h.queue, INT64_MAX, &e) != 0;
	naive_fail_writes(h.store, 0, 0);
	harness_restart(&h);
	seal(&h);
	give_bug(&h, "b");
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	assert_int_equal(fault_plan_new(h.book, &h.queue, &one_day, 0, &made, &e), 0);
	carry_out(&h, made);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		bool listed = is_listed(&h, ids[i]);
		*stayed += listed;
		assert_int_equal(listed, is_entered(&h, ids[i]));
	}
	harness_close(&h);
	return died;
}

/* Whatever stays in the end is whole. */
static void a_choice_that_changes_after_a_death_loses_nothing(UNUSED void **state)
{
	unsigned number = 0;
	size_t stayed = 0;
	log_set_level(LOG_ERROR);
	while (chooses_again_before(number, &stayed))
		number++;
	log_set_level(LOG_INFO);
	assert_true(number >= 4 && stayed >= 3);
}

/* An entry that another program, or an earlier one of ours, has left out. */
static void what_stays_and_has_no_entry_is_listed_again(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key;
	open_ten(&h);
	struct store_write *write = store_write_new(h.store, 1 << 20);
	fault_oops_key(&key, TEXT("t"), TEXT("00"));
	assert_int_equal(store_row_delete(write, TABLE_OOPS, &key.parts, store_stamp(h.store)), 0);
	assert_int_equal(store_write_wait(write, &h.queue), 0);
	store_write_free(write);
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	assert_true(is_entered(&h, "00"));
	harness_close(&h);
}

/* Its lists may be others. */
static void what_was_recounted_while_it_was_planned_is_planned_again(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	open_ten(&h);
	struct fault_plan *made = plan(&h, &one_day, 4);
	assert_int_equal(fault_book_recount(h.book, DAY0, &e), 0);
	harness_pass(&h);
	assert_int_equal(fault_book_collect(h.book, made, &e), ERR_RETRY);
	fault_plan_free(made);
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	harness_close(&h);
}

static void a_plan_keeps_no_days_in_memory(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	for (unsigned day = 0; day < 10; day++) {
		report(&h, 4 * day, 4);
		harness_pass(&h);
		clock_virtual_advance(&h.clock, DAY_US);
	}
	age(&h);
	size_t before = h.book->day_count;
	fault_plan_free(plan(&h, &one_day, 34)); /* the first and the last of three groups stay */
	assert_int_equal(h.book->day_count, before);
	harness_close(&h);
}

/* Of a run of which a block is damaged that would stay nothing goes. */
static void a_run_that_cannot_be_read_stays_whole(UNUSED void **state)
{
	struct harness h;
	struct fault_parts key, column;
	struct errbuf e;
	uint64_t names[8] = {0};
	open_ten(&h);
	log_set_level(LOG_ERROR);
	int64_t now_ms = clock_wall_ms(&h.clock.clock);
	assert_int_equal(store_rows_wait(h.store, &h.queue, now_ms, TABLE_REPORT_SEGMENTS,
					 count_of_run, &key, &e),
			 0);
	assert_int_equal(store_row_wait(h.store, &h.queue, now_ms, TABLE_REPORT_SEGMENTS,
					&key.parts, count_segments, names, &e),
			 0);
	fault_segments_column(&column, names[1], FAULT_SEGMENT_BLOCK, 0); /* of 00 and 01 */
	put_cell(&h, TABLE_REPORT_SEGMENTS, &key, &column, TEXT("junk"));
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 03 02 01 00 ");
	assert_true(is_entered(&h, "03"));
	assert_false(is_entered(&h, "04"));
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* ---- What cannot be read --------------------------------------------------------------------- */

static void damage_summary(struct harness *h, enum fault_row row, const char *column)
{
	struct fault_parts key;
	const struct fault_parts at = {.parts = {{slice_of(column)}}};
	fault_summaries_key(&key, TEXT("t"), DAY0, row);
	put_cell(h, TABLE_SUMMARIES, &key, &at, TEXT("junk"));
	harness_restart(h);
	harness_pass(h);
}

static void report_late(struct harness *h, unsigned number)
{
	h->clock.wall_us = T0_US + 1000000;
	report_one(h, number, "a", "", -1);
	harness_pass(h);
	h->clock.wall_us = T0_US + 4 * DAY_US;
	harness_pass(h);
}

/* Of the groups of the day; of a group that is not there 0. */
static uint64_t count_of_group(struct harness *h, const char *group)
{
	struct fault_groups groups;
	struct errbuf e = {""};
	const struct fault_groups_question question = {DAY0, DAY0, FAULT_TALLY_ALL, 0};
	assert_int_equal(fault_book_read_groups(h->book, &h->queue, &question, &groups, &e), 0);
	const struct fault_group_sum *sum =
		hash_table_find(&groups.table, hash128(group, strlen(group), 0));
	uint64_t count = sum ? sum->tally->count : 0;
	fault_groups_release(&groups);
	return count;
}

/* Counts of a day that are damaged, and cannot be made anew, are left out; nothing is added to them
 * as if they had been none. */
static void damaged_counts_of_a_collected_day_stay_damaged(UNUSED void **state)
{
	struct harness h;
	log_set_level(LOG_ERROR);
	open_ten(&h);
	collect(&h, &one_day, 4);
	assert_int_equal(count_of_group(&h, "a"), 3);
	damage_summary(&h, FAULT_ROW_GROUPS, "group.a");
	assert_int_equal(count_of_group(&h, "a"), 0);
	assert_int_equal(count_of_group(&h, "b"), 4);
	report_late(&h, 10);
	assert_int_equal(count_of_group(&h, "a"), 0);
	assert_total(&h, DAY0, 10, 0);
	harness_close(&h);
	open_ten(&h);
	collect(&h, &one_day, 4);
	damage_summary(&h, FAULT_ROW_DAY, "total");
	assert_total(&h, DAY0, 0, 0);
	int64_t before = stat_get(STAT_fault_uncounted);
	report_late(&h, 10);
	assert_total(&h, DAY0, 0, 0);
	assert_int_equal(stat_get(STAT_fault_uncounted), before + 1);
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* Nothing goes of a day before it has been counted anew. */
static void a_day_with_damaged_counts_is_counted_first(UNUSED void **state)
{
	struct harness h;
	log_set_level(LOG_ERROR);
	open_ten(&h);
	damage_summary(&h, FAULT_ROW_GROUPS, "group.a");
	fault_plan_free(plan(&h, &one_day, 0));
	harness_pass(&h);
	assert_int_equal(count_of_group(&h, "a"), 3);
	collect(&h, &one_day, 4);
	log_set_level(LOG_INFO);
	harness_close(&h);
}

/* As a later program wrote it: perhaps it says that the group has a bug. */
static void what_is_said_and_cannot_be_read_may_be_a_bug(UNUSED void **state)
{
	struct harness h;
	const struct store_parts key = {{TEXT("t")}}, column = {{TEXT("a")}};
	open_ten(&h);
	assert_int_equal(store_put_if_wait(h.store, &h.queue, TABLE_FAULT_SAID, &key, &column, 0,
					   TEXT("\x02later")),
			 0);
	collect(&h, &one_day, 3);
	check_list(&h, all, NULL, "09 08 07 04 02 01 00 ");
	harness_close(&h);
}

/* ---- What counts ----------------------------------------------------------------------------- */

/* The entries of an id. */
static struct store_read *read_entries(struct harness *h, const char *id)
{
	struct store_read *read = store_read_new(h->store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	struct fault_parts key, from, to;
	fault_oops_key(&key, TEXT("t"), slice_of(id));
	fault_oops_bound(&from, slice_of(id), false);
	fault_oops_bound(&to, slice_of(id), true);
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_OOPS, .key = key.parts, .from = from.parts, .to = to.parts};
	assert_int_equal(store_read_wait(read, &h->queue), 0);
	return read;
}

/* A second process takes the id, of which it has not seen that it is there. */
static void report_again(struct harness *h, const char *id, const char *group)
{
	struct fault_parts key, column;
	struct fault_listing listing;
	uint8_t value[FAULT_LISTING_BYTES];
	struct store_read *read = read_entries(h, id);
	assert_true(fault_listing_decode(&read->requests->cell_scan.cells[0], &listing));
	store_read_free(read);
	fault_oops_key(&key, TEXT("t"), slice_of(id));
	fault_oops_column(&column, slice_of(id), listing.order.place);
	struct store_write *write = store_write_new(h->store, 1 << 20);
	assert_int_equal(store_cell_delete(write, TABLE_OOPS, &key.parts, &column.parts,
					   store_stamp(h->store)),
			 0);
	assert_int_equal(store_write_wait(write, &h->queue), 0);
	store_write_free(write);
	struct fault_intake *own = h->intake;
	h->intake = fault_intake_new(&(struct fault_intake_options){
		.site = &h->site, .executor = &h->queue.executor, .seed = 99});
	clock_virtual_advance(&h->clock, 1000);
	struct fault_item item = harness_item(id, "{\"value\":\"another\"}");
	item.facts.texts[FAULT_GROUP] = slice_of(group);
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
	fault_intake_free(h->intake);
	h->intake = own;
	clock_virtual_advance(&h->clock, 1000);
	fault_listing_encode(&listing, value);
	put_cell(h, TABLE_OOPS, &key, &column, (struct slice){(const char *)value, sizeof(value)});
}

/* An arrival that is not the report of its id is neither the first nor the newest of a group. */
static void what_is_struck_is_none_of_a_group(UNUSED void **state)
{
	struct harness h;
	const struct fault_collect_rules two = {.keep_us = DAY_US, .newest = 2};
	harness_open(&h);
	for (unsigned i = 0; i < 4; i++)
		report_one(&h, i, "a", "", -1);
	report_again(&h, "03", "a");
	age(&h);
	collect(&h, &two, 1);
	check_list(&h, all, NULL, "03 02 00 ");
	harness_close(&h);
	harness_open(&h);
	report_one(&h, 0, "b", "", -1);
	report_again(&h, "00", "a");
	for (unsigned i = 1; i < 8; i++)
		report_one(&h, i, "a", "", -1);
	age(&h);
	collect(&h, &one_day, 5);
	check_list(&h, all, NULL, "07 01 00 ");
	harness_close(&h);
}

/* Whether there are some that are not sealed, or were sealed again a moment ago, does not matter.
 */
static void bytes_are_those_of_all_sealed_runs(UNUSED void **state)
{
	struct fault_collect_rules rules = {.newest = 1};
	for (unsigned more = 0; more < 4; more++) {
		struct harness h;
		harness_open(&h);
		for (unsigned i = 0; i < 24 + more; i++)
			report_one(&h, i, "a", "", -1);
		age(&h);
		rules.bytes_max = 0;
		struct fault_plan *made = plan(&h, &rules, 0);
		/* Of 24 reports of one weight 21 have room. */
		rules.bytes_max = fault_plan_view(made).sealed_bytes * 89 / 100;
		fault_plan_free(made);
		collect(&h, &rules, 2);
		fault_plan_free(plan(&h, &rules, 0));
		clock_virtual_advance(&h.clock, MINUTES_5_US);
		seal(&h);
		harness_close(&h);
	}
}

/* Its lists are others then. */
static void a_plan_is_dropped_when_a_day_is_counted_anew(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	open_ten(&h);
	struct fault_plan *made = plan(&h, &one_day, 4);
	assert_int_equal(fault_book_collect(h.book, made, &e), 0);
	assert_int_equal(fault_book_recount(h.book, DAY0, &e), 0);
	seal(&h);
	clock_virtual_advance(&h.clock, MINUTES_5_US);
	seal(&h);
	check_list(&h, all, NULL, "09 08 07 06 05 04 03 02 01 00 ");
	collect(&h, &one_day, 4);
	check_list(&h, all, NULL, "09 08 07 02 01 00 ");
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_old_goes_but_the_first_and_the_newest),
		cmocka_unit_test(nothing_goes_at_once),
		cmocka_unit_test(what_is_referred_to_stays),
		cmocka_unit_test(what_is_of_a_group_with_a_bug_stays),
		cmocka_unit_test(a_report_that_was_given_a_bug_stays),
		cmocka_unit_test(what_is_merged_into_a_group_with_a_bug_stays),
		cmocka_unit_test(what_is_merged_and_cannot_be_read_stays),
		cmocka_unit_test(what_is_still_at_work_stays),
		cmocka_unit_test(files_go_with_their_reports),
		cmocka_unit_test(the_fullest_groups_go_down_first),
		cmocka_unit_test(a_day_of_which_some_are_gone_is_not_counted_anew),
		cmocka_unit_test(what_has_several_arrivals_stays),
		cmocka_unit_test(an_owner_that_is_none_collects_nothing),
		cmocka_unit_test(damaged_counts_of_a_collected_day_stay_damaged),
		cmocka_unit_test(a_day_with_damaged_counts_is_counted_first),
		cmocka_unit_test(what_is_said_and_cannot_be_read_may_be_a_bug),
		cmocka_unit_test(what_is_struck_is_none_of_a_group),
		cmocka_unit_test(bytes_are_those_of_all_sealed_runs),
		cmocka_unit_test(a_plan_is_dropped_when_a_day_is_counted_anew),
		cmocka_unit_test(nothing_goes_while_the_clock_is_doubted),
		cmocka_unit_test(a_write_whose_outcome_is_not_known_is_sent_again),
		cmocka_unit_test(a_collection_that_ends_anywhere_is_done_by_the_next),
		cmocka_unit_test(a_choice_that_changes_after_a_death_loses_nothing),
		cmocka_unit_test(what_stays_and_has_no_entry_is_listed_again),
		cmocka_unit_test(what_was_recounted_while_it_was_planned_is_planned_again),
		cmocka_unit_test(a_plan_keeps_no_days_in_memory),
		cmocka_unit_test(a_run_that_cannot_be_read_stays_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
