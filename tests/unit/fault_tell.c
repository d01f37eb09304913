/* Messages of what reports bring about, by one process on the naive store. */
#include "fault_harness.h"

#include "base/log.h"
#include "fault/message.h"
#include "fault/rise.h"
#include "fault/said.h"

enum { TOLD_MAX = 16, TEXT_BYTES = 64 };

/* All messages there are, in the order of their dates. */
struct told {
	struct one {
		struct fault_message message; /* its texts are not to be looked at */
		char id[FAULT_MESSAGE_ID_BYTES + 1], group[TEXT_BYTES], report[TEXT_BYTES];
		char title[TEXT_BYTES], environment[TEXT_BYTES];
	} list[TOLD_MAX];
	size_t count;
};

static void keep(struct slice text, char *to)
{
	assert_true(text.len < TEXT_BYTES);
	memcpy(to, text.data, text.len);
	to[text.len] = 0;
}

static int take_message(void *owner, const struct fault_message *message)
{
	struct told *told = owner;
	size_t at = told->count++;
	assert_true(at < TOLD_MAX);
	for (; at && told->list[at - 1].message.date_us > message->date_us; at--)
		told->list[at] = told->list[at - 1];
	struct one *one = &told->list[at];
	one->message = *message;
	keep(message->id, one->id);
	keep(message->group, one->group);
	keep(message->report, one->report);
	keep(message->title, one->title);
	keep(message->environment, one->environment);
	return 0;
}

static struct told told_of(struct harness *h)
{
	struct told told = {.count = 0};
	struct errbuf e = {""};
	assert_int_equal(
		fault_messages_read(&h->site, &h->queue, TEXT("t"), take_message, &told, &e), 0);
	for (size_t i = 1; i < told.count; i++)
		assert_true(told.list[i - 1].message.date_us < told.list[i].message.date_us);
	return told;
}

static size_t tell(struct harness *h)
{
	struct errbuf e = {""};
	size_t made;
	assert_int_equal(fault_book_tell(h->book, &h->queue, INT64_MAX, &made, &e), 0);
	return made;
}

/* A pass, and what follows from it. */
static size_t pass(struct harness *h)
{
	harness_pass(h);
	return tell(h);
}

static void report_of(struct harness *h, const char *id, const char *group, const char *release)
{
	struct fault_item item = harness_item(id, id);
	item.facts.texts[FAULT_GROUP] = slice_of(group);
	item.facts.texts[FAULT_TITLE] = slice_of(id);
	item.facts.texts[FAULT_RELEASE] = slice_of(release);
	item.facts.texts[FAULT_ENVIRONMENT] = TEXT("live");
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
}

static void check_told(const struct one *one, enum fault_message_kind kind, const char *group,
		       const char *report, uint64_t count)
{
	assert_int_equal(one->message.kind, kind);
	assert_string_equal(one->group, group);
	assert_string_equal(one->report, report);
	assert_int_equal(one->message.count, count);
}

static void advance(struct harness *h, int64_t by_us)
{
	clock_virtual_advance(&h->clock, by_us);
}

#define HOUR_US INT64_C(3600000000)

/* ---- New groups ------------------------------------------------------------------------------ */

static void a_group_is_new_once(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	report_of(&h, "b", "1-x", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 1);
	check_told(&told.list[0], FAULT_NEW_GROUP, "1-x", "a", 2);
	assert_string_equal(told.list[0].title, "a");
	assert_string_equal(told.list[0].environment, "live");
	assert_int_equal(told.list[0].message.of_us, 0);
	assert_int_equal(pass(&h), 0);
	report_of(&h, "c", "1-x", "");
	report_of(&h, "d", "1-y", "");
	assert_int_equal(pass(&h), 1);
	harness_restart(&h);
	assert_int_equal(pass(&h), 0);
	advance(&h, 24 * HOUR_US);
	report_of(&h, "e", "1-x", "");
	assert_int_equal(pass(&h), 1); /* the day that is over */
	told = told_of(&h);
	assert_int_equal(told.count, 3);
	check_told(&told.list[1], FAULT_NEW_GROUP, "1-y", "d", 1);
	check_told(&told.list[2], FAULT_DAY_OVER, "", "", 4);
	harness_close(&h);
}

/* The checkpoint is there, and the process dies before it tells. */
static void what_a_dead_process_did_not_tell_the_next_one_tells(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	harness_pass(&h);
	harness_restart(&h);
	harness_pass(&h); /* which counts nothing more */
	assert_int_equal(told_of(&h).count, 0);
	assert_int_equal(tell(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 1);
	check_told(&told.list[0], FAULT_NEW_GROUP, "1-x", "a", 1);
	harness_close(&h);
}

/* The message is there, and nobody learns it: it is not made another time. */
static void a_message_whose_outcome_is_not_known_is_there_once(UNUSED void **state)
{
	struct harness h;
	struct errbuf e;
	size_t made;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	harness_pass(&h);
	naive_lose_outcomes(h.store, 0, 1);
	assert_int_equal(fault_book_tell(h.book, &h.queue, INT64_MAX, &made, &e), ERR_UNKNOWN);
	struct told before = told_of(&h);
	assert_int_equal(before.count, 1);
	advance(&h, HOUR_US);
	report_of(&h, "b", "1-y", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.list[0].message.date_us, before.list[0].message.date_us);
	harness_close(&h);
}

/* Nothing of it is there: it is tried again. */
static void a_message_that_is_refused_is_made_later(UNUSED void **state)
{
	struct harness h;
	struct errbuf e;
	size_t made;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	harness_pass(&h);
	naive_fail_writes(h.store, ERR_FULL, 1);
	assert_int_equal(fault_book_tell(h.book, &h.queue, INT64_MAX, &made, &e), ERR_FULL);
	assert_int_equal(told_of(&h).count, 0);
	assert_true(fault_book_is_touched(h.book));
	assert_int_equal(pass(&h), 1);
	assert_int_equal(told_of(&h).count, 1);
	harness_close(&h);
}

/* The one whose time is over writes nothing. */
static void an_owner_whose_time_is_over_tells_nothing(UNUSED void **state)
{
	struct harness h;
	struct errbuf e;
	size_t made;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	harness_pass(&h);
	assert_int_equal(fault_book_tell(h.book, &h.queue, T0_US / 1000 - 1, &made, &e),
			 ERR_TIMEOUT);
	assert_int_equal(told_of(&h).count, 0);
	fault_book_disown(h.book);
	assert_int_equal(tell(&h), 0);
	assert_int_equal(told_of(&h).count, 0);
	harness_close(&h);
}

/* By a process whose clock was behind: the day before has a report of the group, too. */
static void a_group_that_turns_up_in_an_earlier_day_is_new_once(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	h.clock.wall_us -= 24 * HOUR_US;
	report_of(&h, "b", "1-x", "");
	assert_int_equal(pass(&h), 0);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 1);
	check_told(&told.list[0], FAULT_NEW_GROUP, "1-x", "a", 1);
	harness_close(&h);
}

static void messages_go_after_their_time(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	advance(&h, 30 * 24 * HOUR_US - 1000000);
	assert_int_equal(told_of(&h).count, 1);
	advance(&h, 1000000);
	assert_int_equal(told_of(&h).count, 0);
	harness_close(&h);
}

/* ---- Groups of which something was said ------------------------------------------------------ */

static int say(void *owner, struct fault_said *said, UNUSED struct errbuf *e)
{
	*said = *(struct fault_said *)owner;
	return 0;
}

static void say_of(struct harness *h, const char *group, struct fault_said said)
{
	struct fault_said stored;
	struct arena arena;
	struct errbuf e = {""};
	said.said_us = h->clock.wall_us;
	said.release = said.assignee = SLICE("");
	arena_init(&arena, 1 << 20);
	assert_int_equal(fault_said_write(&h->site, &h->queue, TEXT("t"), slice_of(group), say,
					  &said, &arena, &stored, &e),
			 0);
	arena_release(&arena);
}

static void a_resolved_group_that_has_a_report_is_regressed(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	say_of(&h, "1-x", (struct fault_said){.status = FAULT_RESOLVED, .before = 1});
	int64_t said_us = h.clock.wall_us;
	assert_int_equal(pass(&h), 0);
	advance(&h, 1000000);
	report_of(&h, "b", "1-x", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 2);
	check_told(&told.list[1], FAULT_REGRESSED, "1-x", "b", 2);
	assert_int_equal(told.list[1].message.of_us, said_us);
	report_of(&h, "c", "1-x", "");
	assert_int_equal(pass(&h), 0); /* it is told already */
	harness_restart(&h);
	assert_int_equal(pass(&h), 0);
	say_of(&h, "1-x", (struct fault_said){.status = FAULT_RESOLVED, .before = 3});
	assert_int_equal(pass(&h), 0);
	advance(&h, 1000000);
	report_of(&h, "d", "1-x", "");
	assert_int_equal(pass(&h), 1);
	told = told_of(&h);
	assert_int_equal(told.count, 3);
	check_told(&told.list[2], FAULT_REGRESSED, "1-x", "d", 4);
	assert_string_not_equal(told.list[1].id, told.list[2].id);
	harness_close(&h);
}

/* Its message has expired, and the group is as open as it was. */
static void a_regression_is_told_of_once_however_old_it_is(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	say_of(&h, "1-x", (struct fault_said){.status = FAULT_RESOLVED, .before = 1});
	advance(&h, 1000000);
	report_of(&h, "b", "1-x", "");
	assert_int_equal(pass(&h), 1);
	advance(&h, 31 * 24 * HOUR_US);
	assert_int_equal(pass(&h), 1); /* the day is over */
	assert_int_equal(told_of(&h).count, 1);
	harness_restart(&h);
	assert_int_equal(pass(&h), 0);
	report_of(&h, "c", "1-x", "");
	assert_int_equal(pass(&h), 0);
	harness_close(&h);
}

static void a_muted_group_is_told_of_when_it_has_so_many(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	report_of(&h, "b", "1-y", "");
	assert_int_equal(pass(&h), 2);
	say_of(&h, "1-x", (struct fault_said){.status = FAULT_MUTED, .until = 2, .before = 1});
	say_of(&h, "1-y", (struct fault_said){.status = FAULT_MUTED}); /* for ever */
	report_of(&h, "c", "1-x", "");
	report_of(&h, "d", "1-y", "");
	assert_int_equal(pass(&h), 0);
	report_of(&h, "e", "1-x", "");
	report_of(&h, "f", "1-y", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 3);
	check_told(&told.list[2], FAULT_UNMUTED, "1-x", "e", 3);
	harness_close(&h);
}

/* 1-y is merged into 1-x, and had been resolved itself. Its old reports open nothing. */
static void a_report_of_a_merged_group_regresses_the_one_that_stands_for_it(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	report_of(&h, "b", "1-y", "");
	report_of(&h, "c", "1-y", "");
	assert_int_equal(pass(&h), 2);
	advance(&h, 1000000);
	say_of(&h, "1-y", (struct fault_said){.status = FAULT_RESOLVED, .before = 2});
	say_of(&h, "1-x", (struct fault_said){.status = FAULT_RESOLVED, .before = 1});
	harness_merge(&h, "1-y", "1-x");
	advance(&h, 600000000);
	assert_int_equal(pass(&h), 0);
	report_of(&h, "d", "1-y", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 3);
	check_told(&told.list[2], FAULT_REGRESSED, "1-x", "d", 4);
	/* By itself it is one that was resolved, and has a report. */
	harness_merge(&h, "1-y", "");
	assert_int_equal(pass(&h), 1);
	told = told_of(&h);
	check_told(&told.list[3], FAULT_REGRESSED, "1-y", "d", 3);
	harness_close(&h);
}

/* 1-y had its first report before. Of 1-z nothing was told when it was merged. And 1-v has an
 * older one when it is looked at. */
static void what_is_merged_is_not_new(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	report_of(&h, "b", "1-y", "");
	assert_int_equal(pass(&h), 2);
	report_of(&h, "c", "1-z", "");
	harness_merge(&h, "1-y", "1-x");
	harness_merge(&h, "1-z", "1-x");
	assert_int_equal(pass(&h), 0);
	advance(&h, 24 * HOUR_US);
	report_of(&h, "d", "1-y", "");
	report_of(&h, "e", "1-w", "");
	assert_int_equal(pass(&h), 2); /* 1-w, and the day that is over */
	struct told told = told_of(&h);
	assert_int_equal(told.count, 4);
	assert_string_equal(told.list[3].group, "1-w");
	assert_int_equal(told.list[3].message.kind, FAULT_NEW_GROUP);
	report_of(&h, "f", "1-v", "");
	harness_merge(&h, "1-x", "1-v");
	assert_int_equal(pass(&h), 0);
	harness_close(&h);
}

/* A day that is in no memory any more gets a report that opens the group. */
static void a_late_report_regresses_a_group_within_ten_minutes(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	advance(&h, 24 * HOUR_US);
	assert_int_equal(pass(&h), 1); /* the day is over */
	say_of(&h, "1-x", (struct fault_said){.status = FAULT_RESOLVED, .before = 1});
	assert_int_equal(pass(&h), 0);
	h.clock.wall_us -= 24 * HOUR_US;
	report_of(&h, "b", "1-x", "");
	h.clock.wall_us += 24 * HOUR_US;
	size_t made = pass(&h);
	advance(&h, 600000000);
	made += pass(&h);
	assert_int_equal(made, 1);
	struct told told = told_of(&h);
	check_told(&told.list[2], FAULT_REGRESSED, "1-x", "b", 2);
	harness_close(&h);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void check_held_back(struct harness *h, size_t count, size_t held_back)
{
	struct told told = told_of(h);
	size_t held = 0;
	for (size_t i = 0; i < told.count; i++)
		held += told.list[i].message.held_back;
	assert_int_equal(told.count, count);
	assert_int_equal(held, held_back);
}

/* Three of an hour; the others are told of in one when it is over. */
static void more_than_so_many_are_told_of_in_one(UNUSED void **state)
{
	static const char *const groups[] = {"1-a", "1-b", "1-c", "1-d", "1-e", "1-f"};
	struct harness h;
	harness_open(&h); /* at 22:13:20 */
	h.site.limits.groups_max = 6;
	for (size_t i = 0; i < 4; i++)
		report_of(&h, groups[i], groups[i], "");
	assert_int_equal(pass(&h), 4);
	check_held_back(&h, 4, 1);
	harness_restart(&h);
	h.site.limits.groups_max = 6;
	report_of(&h, "e", "1-e", "");
	assert_int_equal(pass(&h), 1);
	check_held_back(&h, 5, 2);
	advance(&h, 46 * 60 * INT64_C(1000000)); /* 22:59:20 */
	assert_int_equal(pass(&h), 0);
	advance(&h, 40 * INT64_C(1000000));
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 6);
	check_told(&told.list[5], FAULT_HELD_BACK, "", "", 2);
	assert_int_equal(told.list[5].message.of_us, T0_US - (13 * 60 + 20) * INT64_C(1000000));
	assert_int_equal(pass(&h), 0);
	harness_restart(&h);
	h.site.limits.groups_max = 6;
	report_of(&h, "f", "1-f", "");
	assert_int_equal(pass(&h), 1);
	check_held_back(&h, 7, 2);
	harness_close(&h);
}

/* Dates rise whatever the clock does, so whoever reads on behind one misses none. */
static void dates_rise_when_the_clock_is_set_back(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	h.clock.wall_us -= HOUR_US;
	harness_restart(&h);
	report_of(&h, "b", "1-y", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 2);
	assert_string_equal(told.list[1].group, "1-y");
	harness_close(&h);
}

static void let_share(struct harness *h, struct store_engine *engine)
{
	*engine = *h->store->engine;
	engine->can |= STORE_SHARED;
	h->store->engine = engine;
}

/* What an owner before this one wrote lands now. */
static void lands_message(struct harness *h, const struct fault_message *message)
{
	struct fault_parts key = {.parts = {{TEXT("t")}}}, column;
	char id[FAULT_MESSAGE_ID_BYTES + 1];
	struct buf value;
	fault_message_id(message->kind, message->group, message->of_us, id);
	column.parts = (struct store_parts){{slice_of(id)}};
	buf_init(&value, 1000);
	fault_message_encode(message, &value);
	put_cell(h, TABLE_FAULT_MESSAGES, &key, &column, buf_slice(&value));
	buf_release(&value);
}

/* A message that a group is new. */
static void lands(struct harness *h, const char *group, int64_t made_us)
{
	lands_message(h, &(struct fault_message){.kind = FAULT_NEW_GROUP,
						 .made_us = made_us,
						 .date_us = made_us,
						 .count = 3,
						 .group = slice_of(group),
						 .title = TEXT("title"),
						 .report = TEXT("report"),
						 .environment = TEXT("live")});
}

/* Readers may be past its date, so it gets one that is later than all. */
static void a_message_that_lands_late_is_dated_again(UNUSED void **state)
{
	struct harness h;
	struct store_engine engine;
	harness_open(&h);
	let_share(&h, &engine);
	lands(&h, "1-before", T0_US - 2000000);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	int64_t read_us = told.list[told.count - 1].message.date_us;
	lands(&h, "1-late", T0_US - 1000000);
	advance(&h, 9900000);
	assert_int_equal(tell(&h), 0);
	advance(&h, 100000);
	assert_int_equal(tell(&h), 1);
	told = told_of(&h);
	assert_int_equal(told.count, 3);
	check_told(&told.list[0], FAULT_NEW_GROUP, "1-before", "report", 3);
	check_told(&told.list[1], FAULT_NEW_GROUP, "1-x", "a", 1);
	check_told(&told.list[2], FAULT_NEW_GROUP, "1-late", "report", 3);
	assert_string_equal(told.list[2].title, "title");
	assert_string_equal(told.list[2].environment, "live");
	assert_true(told.list[2].message.date_us > read_us);
	assert_int_equal(told.list[2].message.made_us, T0_US - 1000000);
	/* Twenty seconds later it is looked again, then after forty; each is dated again once. */
	lands(&h, "1-later", T0_US - 1000000);
	advance(&h, 19900000);
	assert_int_equal(tell(&h), 0);
	advance(&h, 100000);
	assert_int_equal(tell(&h), 1);
	advance(&h, 40000000);
	assert_int_equal(tell(&h), 0);
	assert_int_equal(told_of(&h).count, 4);
	harness_close(&h);
}

/* Its cause is found, too: it is there once, and dated again when it is looked for. */
static void a_message_that_lands_late_is_made_once(UNUSED void **state)
{
	struct harness h;
	struct store_engine engine;
	harness_open(&h);
	let_share(&h, &engine);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	report_of(&h, "b", "1-y", "");
	harness_pass(&h);
	lands(&h, "1-y", T0_US - 1000000);
	assert_int_equal(tell(&h), 0);
	advance(&h, 10000000);
	assert_int_equal(tell(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 2);
	assert_string_equal(told.list[1].group, "1-y");
	harness_close(&h);
}

/* It has its count already, though what was held back is counted in the same turn. */
static void a_sum_that_lands_late_has_its_count(UNUSED void **state)
{
	static const char *const groups[] = {"1-a", "1-b", "1-c", "1-d"};
	struct harness h;
	struct store_engine engine;
	harness_open(&h); /* three are told in an hour */
	let_share(&h, &engine);
	for (size_t i = 0; i < 4; i++)
		report_of(&h, groups[i], groups[i], "");
	assert_int_equal(pass(&h), 4);
	advance(&h, HOUR_US);
	lands_message(&h, &(struct fault_message){.kind = FAULT_HELD_BACK,
						  .made_us = T0_US + 1,
						  .date_us = T0_US + 1,
						  .of_us = T0_US / HOUR_US * HOUR_US,
						  .count = 1});
	assert_int_equal(tell(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 5);
	check_told(&told.list[4], FAULT_HELD_BACK, "", "", 1);
	harness_close(&h);
}

static void many_messages_that_land_late(UNUSED void **state)
{
	struct harness h;
	struct store_engine engine;
	char group[16];
	size_t made = 0;
	harness_open(&h);
	let_share(&h, &engine);
	assert_int_equal(pass(&h), 0);
	for (int i = 0; i < 700; i++) {
		snprintf(group, sizeof(group), "1-%d", i);
		lands(&h, group, T0_US - 1000000 + i);
	}
	advance(&h, 10000000);
	for (int turn = 0; turn < 3; turn++)
		made += tell(&h);
	assert_int_equal(made, 700);
	harness_close(&h);
}

/* Where no other process can have written it is not looked for. */
static void a_store_of_one_process_has_none_that_land_late(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	assert_int_equal(pass(&h), 0);
	lands(&h, "1-late", T0_US - 1000000);
	advance(&h, 100000000);
	assert_int_equal(tell(&h), 0);
	harness_close(&h);
}

/* A day is told of in any case: the daily report is mailed by its message. */
static void a_day_is_not_held_back(UNUSED void **state)
{
	static const char *const groups[] = {"1-a", "1-b", "1-c", "1-d"};
	struct harness h;
	harness_open(&h); /* at 22:13:20 */
	report_of(&h, "x", "1-x", "");
	assert_int_equal(pass(&h), 1);
	advance(&h, (106 * 60 + 40) * INT64_C(1000000)); /* midnight; the day is not closed yet */
	for (size_t i = 0; i < 3; i++)
		report_of(&h, groups[i], groups[i], "");
	assert_int_equal(pass(&h), 3);
	advance(&h, 4000000);
	assert_int_equal(pass(&h), 1);
	report_of(&h, "d", "1-d", "");
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, 6);
	assert_int_equal(told.list[4].message.kind, FAULT_DAY_OVER);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(told.list[i].message.held_back, i == 5);
	harness_close(&h);
}

/* 24 hours ahead for a moment: the three of an hour are those of the clock as it is then. */
static void an_hour_is_that_of_the_clock(UNUSED void **state)
{
	static const char *const groups[] = {"1-a", "1-b", "1-c", "1-d", "1-e"};
	struct harness h;
	harness_open(&h);
	h.clock.wall_us += 24 * HOUR_US;
	report_of(&h, "ahead", "1-x", "");
	assert_int_equal(pass(&h), 1);
	h.clock.wall_us -= 24 * HOUR_US;
	harness_restart(&h);
	h.site.limits.groups_max = 6;
	for (size_t i = 0; i < 4; i++)
		report_of(&h, groups[i], groups[i], "");
	assert_int_equal(pass(&h), 4);
	check_held_back(&h, 5, 1);
	advance(&h, HOUR_US);
	report_of(&h, "e", "1-e", "");
	assert_int_equal(pass(&h), 2); /* and how many were held back */
	struct told told = told_of(&h);
	assert_int_equal(told.count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(told.list[i].message.held_back, i == 4);
	assert_in_range(told.list[6].message.made_us, T0_US + HOUR_US, T0_US + 2 * HOUR_US);
	harness_close(&h);
}

/* ---- Groups that have more than usual -------------------------------------------------------- */

static struct fault_group_history history_of(const struct fault_group_day *days, size_t count)
{
	return (struct fault_group_history){.days = (struct fault_group_day *)days, .count = count};
}

/* Noon of day 100. The mean of 8, 12, 8, 12 is 10, their deviation 2: by noon 5 are usual, and a
 * deviation is sqrt(5) = 2.24, as that is more than 1; so 11.7, but at least 20. With ten times as
 * many 50 are usual, a deviation is the 10 of the days, and 80 is the bound. */
static void a_group_rises_above_what_is_usual_by_this_time(UNUSED void **state)
{
	const int64_t noon_us = 100 * FAULT_DAY_US + FAULT_DAY_US / 2;
	struct fault_group_day few[] = {
		{96, 8, {0}}, {97, 12, {0}}, {98, 8, {0}}, {99, 12, {0}}, {100, 19, {0}}};
	struct fault_group_day many[] = {
		{96, 80, {0}}, {97, 120, {0}}, {98, 80, {0}}, {99, 120, {0}}, {100, 80, {0}}};
	struct fault_group_day gaps[] = {{96, 70, {0}}, {100, 20, {0}}};
	struct fault_group_history history = history_of(few, 5);
	assert_false(fault_rises(&history, noon_us));
	few[4].count = 20;
	assert_true(fault_rises(&history, noon_us));
	history = history_of(many, 5);
	assert_false(fault_rises(&history, noon_us));
	many[4].count = 81;
	assert_true(fault_rises(&history, noon_us));
	/* The whole day: 100 are usual, 160 the bound. */
	assert_false(fault_rises(&history, 101 * FAULT_DAY_US - 1));
	many[4].count = 161;
	assert_true(fault_rises(&history, 101 * FAULT_DAY_US - 1));
	/* Days without reports count: 70, 0, 0, 0 are 17.5 on average, with a deviation of 30.3. */
	history = history_of(gaps, 2);
	assert_false(fault_rises(&history, noon_us));
	gaps[1].count = 54; /* 8.75 + 3 * 15.16 = 54.2 */
	assert_false(fault_rises(&history, noon_us));
	gaps[1].count = 55;
	assert_true(fault_rises(&history, noon_us));
	/* A group that is two days old is a new one; one without a report today is quiet. */
	history = history_of(many + 2, 3);
	many[4].count = 1000;
	assert_false(fault_rises(&history, noon_us));
	history = history_of(many, 4);
	assert_false(fault_rises(&history, noon_us));
}

static void report_many(struct harness *h, const char *group, unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++) {
		char id[20];
		snprintf(id, sizeof(id), "%s-%u", group, i);
		report_of(h, id, group, "");
	}
}

static void a_group_with_more_than_usual_is_told_of_once_a_day(UNUSED void **state)
{
	struct harness h;
	harness_open(&h); /* at 22:13:20 */
	unsigned next = 0;
	for (int day = 0; day < 3; day++, next += 10) {
		report_many(&h, "1-x", next, 10);
		report_many(&h, "1-m", next, 10);
		pass(&h);
		advance(&h, 24 * HOUR_US);
		pass(&h);
	}
	say_of(&h, "1-m", (struct fault_said){.status = FAULT_MUTED});
	size_t before = told_of(&h).count;
	/* 9.26 are usual by then, and a deviation is 3.04: 18.4, but at least 20. */
	report_many(&h, "1-x", next, 19);
	report_many(&h, "1-m", next, 30);
	assert_int_equal(pass(&h), 0);
	report_many(&h, "1-x", next + 19, 3);
	assert_int_equal(pass(&h), 1);
	struct told told = told_of(&h);
	assert_int_equal(told.count, before + 1);
	check_told(&told.list[before], FAULT_RISEN, "1-x", "1-x-51", 22);
	assert_int_equal(told.list[before].message.of_us,
			 (T0_US / FAULT_DAY_US + 3) * FAULT_DAY_US);
	report_many(&h, "1-x", next + 22, 20);
	assert_int_equal(pass(&h), 0);
	harness_restart(&h);
	assert_int_equal(pass(&h), 0);
	assert_int_equal(told_of(&h).count, before + 1);
	harness_close(&h);
}

/* Ten of three groups on each of three days; then 22 of two of them, which none has by itself. */
static void groups_that_are_merged_rise_together(UNUSED void **state)
{
	for (int merged = 0; merged < 2; merged++) {
		struct harness h;
		harness_open(&h); /* at 22:13:20 */
		unsigned next = 0;
		for (int day = 0; day < 3; day++, next += 5) {
			report_many(&h, "1-x", next, 5);
			report_many(&h, "1-y", next, 4);
			report_many(&h, "1-z", next, 1);
			pass(&h);
			advance(&h, 24 * HOUR_US);
			pass(&h);
		}
		if (merged) {
			harness_merge(&h, "1-y", "1-x");
			harness_merge(&h, "1-z", "1-x");
		}
		size_t before = told_of(&h).count;
		report_many(&h, "1-y", next, 9);
		report_many(&h, "1-z", next, 10);
		assert_int_equal(pass(&h), 0); /* 19 */
		report_many(&h, "1-y", next + 9, 3);
		assert_int_equal(pass(&h), merged);
		struct told told = told_of(&h);
		assert_int_equal(told.count, before + (size_t)merged);
		if (merged)
			check_told(&told.list[before], FAULT_RISEN, "1-x", "1-y-26", 22);
		assert_int_equal(pass(&h), 0);
		harness_close(&h);
	}
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void a_damaged_message_is_left_out(UNUSED void **state)
{
	struct harness h;
	const struct fault_parts key = {.parts = {{TEXT("t")}}}, column = {.parts = {{TEXT("x")}}};
	struct fault_message message;
	struct buf out;
	harness_open(&h);
	log_set_level(LOG_ERROR);
	report_of(&h, "a", "1-x", "");
	assert_int_equal(pass(&h), 1);
	put_cell(&h, TABLE_FAULT_MESSAGES, &key, &column, TEXT("\1\7noise"));
	assert_int_equal(told_of(&h).count, 1);
	harness_restart(&h);
	assert_int_equal(pass(&h), 0);
	log_set_level(LOG_INFO);
	harness_close(&h);
	buf_init(&out, 1000);
	fault_message_encode(&(struct fault_message){.kind = FAULT_UNMUTED,
						     .made_us = -5,
						     .date_us = -5,
						     .held_back = true,
						     .of_us = 7,
						     .count = 300,
						     .group = TEXT("g"),
						     .release = TEXT("r")},
			     &out);
	for (size_t len = 0; len < out.len; len++)
		assert_int_equal(fault_message_decode((struct slice){out.data, len}, &message),
				 ERR_DAMAGED);
	assert_int_equal(fault_message_decode(buf_slice(&out), &message), 0);
	assert_int_equal(message.kind, FAULT_UNMUTED);
	assert_int_equal(message.date_us, -5);
	assert_true(message.held_back);
	assert_int_equal(message.of_us, 7);
	assert_int_equal(message.count, 300);
	assert_true(slice_equal(message.group, TEXT("g")));
	assert_true(slice_equal(message.release, TEXT("r")));
	assert_int_equal(message.title.len, 0);
	message.made_us = -9;
	buf_clear(&out);
	fault_message_encode(&message, &out);
	assert_int_equal(fault_message_decode(buf_slice(&out), &message), 0);
	assert_int_equal(message.made_us, -9);
	assert_int_equal(message.date_us, -5);
	assert_int_equal(fault_message_decode(TEXT("\2"), &message), ERR_VERSION);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_new_once),
		cmocka_unit_test(what_a_dead_process_did_not_tell_the_next_one_tells),
		cmocka_unit_test(a_message_whose_outcome_is_not_known_is_there_once),
		cmocka_unit_test(a_message_that_is_refused_is_made_later),
		cmocka_unit_test(an_owner_whose_time_is_over_tells_nothing),
		cmocka_unit_test(a_group_that_turns_up_in_an_earlier_day_is_new_once),
		cmocka_unit_test(messages_go_after_their_time),
		cmocka_unit_test(a_resolved_group_that_has_a_report_is_regressed),
		cmocka_unit_test(a_regression_is_told_of_once_however_old_it_is),
		cmocka_unit_test(a_muted_group_is_told_of_when_it_has_so_many),
		cmocka_unit_test(a_report_of_a_merged_group_regresses_the_one_that_stands_for_it),
		cmocka_unit_test(what_is_merged_is_not_new),
		cmocka_unit_test(a_late_report_regresses_a_group_within_ten_minutes),
		cmocka_unit_test(more_than_so_many_are_told_of_in_one),
		cmocka_unit_test(dates_rise_when_the_clock_is_set_back),
		cmocka_unit_test(a_message_that_lands_late_is_dated_again),
		cmocka_unit_test(a_message_that_lands_late_is_made_once),
		cmocka_unit_test(a_sum_that_lands_late_has_its_count),
		cmocka_unit_test(many_messages_that_land_late),
		cmocka_unit_test(a_store_of_one_process_has_none_that_land_late),
		cmocka_unit_test(a_day_is_not_held_back),
		cmocka_unit_test(an_hour_is_that_of_the_clock),
		cmocka_unit_test(a_group_rises_above_what_is_usual_by_this_time),
		cmocka_unit_test(a_group_with_more_than_usual_is_told_of_once_a_day),
		cmocka_unit_test(groups_that_are_merged_rise_together),
		cmocka_unit_test(a_damaged_message_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
