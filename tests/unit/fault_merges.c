/* Groups that are merged: which one stands for which, the cell that says so, and what reports add
 * up to by it, compared with sums that are worked out by hand. */
#include "fault_harness.h"

#include <stdio.h>

#include "fault/groups.h"
#include "fault/said.h"

#define DAY0    (T0_US / FAULT_DAY_US)
#define HOUR_US INT64_C(3600000000)

struct made {
	struct arena arena;
	struct fault_merges merges;
	struct errbuf e;
};

static void begin(struct made *made)
{
	*made = (struct made){.merges = {.list = NULL}};
	arena_init(&made->arena, 8 << 20);
}

static int change(struct made *made, const char *group, const char *into)
{
	const struct fault_merge_change wanted = {slice_of(group), slice_of(into)};
	return fault_merges_change(&made->merges, &wanted, &made->arena, &made->e);
}

static void merge(struct made *made, const char *group, const char *into)
{
	assert_int_equal(change(made, group, into), 0);
}

static void assert_root(const struct made *made, const char *group, const char *root)
{
	struct slice found = fault_merges_root(&made->merges, slice_of(group));
	assert_int_equal(found.len, strlen(root));
	assert_memory_equal(found.data, root, found.len);
}

/* `names` with blanks between them: all that a group stands for. */
static void assert_tree(const struct made *made, const char *group, const char *names)
{
	struct slice tree[20];
	char text[200];
	size_t count = fault_merges_tree(&made->merges, slice_of(group), tree), len = 0;
	assert_true(fault_merges_room(&made->merges) <= 20 && count <= 20);
	assert_true(slice_equal(tree[0], slice_of(group)));
	text[0] = 0;
	for (size_t i = 1; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", i > 1 ? " " : "",
					(int)tree[i].len, tree[i].data);
	assert_string_equal(text, names);
}

/* ---- Which group stands for which ------------------------------------------------------------ */

static void a_group_stands_for_those_that_are_merged_into_it(UNUSED void **state)
{
	struct made made;
	begin(&made);
	assert_root(&made, "b", "b");
	assert_tree(&made, "b", "");
	merge(&made, "c", "b");
	merge(&made, "a", "b");
	merge(&made, "e", "d");
	assert_root(&made, "a", "b");
	assert_root(&made, "b", "b");
	assert_root(&made, "e", "d");
	assert_root(&made, "x", "x");
	assert_root(&made, "", "");
	assert_tree(&made, "b", "a c");
	assert_tree(&made, "a", "");
	assert_true(fault_merges_find(&made.merges, TEXT("a")) != NULL);
	assert_null(fault_merges_find(&made.merges, TEXT("b")));
	assert_true(slice_equal(fault_merges_root(NULL, TEXT("a")), TEXT("a")));
	arena_release(&made.arena);
}

/* And whatever order: also into a group that is merged itself. */
static void what_is_merged_further_takes_its_own_along(UNUSED void **state)
{
	struct made made;
	begin(&made);
	merge(&made, "a", "b");
	merge(&made, "b", "c");
	merge(&made, "d", "a"); /* which is into c */
	merge(&made, "c", "e");
	assert_tree(&made, "e", "a b c d");
	assert_root(&made, "a", "e");
	assert_int_equal(change(&made, "b", ""), 0);
	assert_tree(&made, "b", "a");
	assert_tree(&made, "e", "c d");
	assert_int_equal(change(&made, "a", ""), 0);
	assert_int_equal(change(&made, "c", ""), 0);
	assert_tree(&made, "c", "d");
	assert_int_equal(change(&made, "d", ""), 0);
	assert_int_equal(made.merges.count, 0);
	arena_release(&made.arena);
}

static void what_cannot_be_merged_is_refused(UNUSED void **state)
{
	struct made made;
	begin(&made);
	merge(&made, "a", "b");
	assert_int_equal(change(&made, "c", "c"), ERR_INVALID);
	assert_string_equal(made.e.text, "group c cannot be merged into itself");
	assert_int_equal(change(&made, "b", "a"), ERR_EXISTS);
	assert_string_equal(made.e.text,
			    "group b cannot be merged into a group that is merged into it");
	assert_int_equal(change(&made, "a", "c"), ERR_EXISTS);
	assert_string_equal(made.e.text, "group a is merged into b; it is to be split off first");
	assert_int_equal(change(&made, "b", ""), ERR_EXISTS);
	assert_string_equal(made.e.text, "group b is not merged into another one");
	assert_int_equal(change(&made, "a", "b"), 0); /* it is so already */
	assert_int_equal(made.merges.count, 1);
	assert_tree(&made, "b", "a");
	arena_release(&made.arena);
}

static void so_many_groups_can_be_merged(UNUSED void **state)
{
	static char names[FAULT_MERGES_MAX + 1][8];
	struct made made;
	begin(&made);
	arena_release(&made.arena);
	arena_init(&made.arena, 64 << 20); /* a list for each change */
	for (int i = 0; i <= FAULT_MERGES_MAX; i++)
		snprintf(names[i], sizeof(names[i]), "g%04d", i);
	/* Each into the next: one long way. */
	for (int i = 0; i < FAULT_MERGES_MAX; i++)
		merge(&made, names[i], names[i + 1]);
	assert_root(&made, names[0], names[FAULT_MERGES_MAX]);
	assert_int_equal(change(&made, names[FAULT_MERGES_MAX], "z"), ERR_LIMIT);
	assert_non_null(strstr(made.e.text, "1000 groups are merged"));
	assert_int_equal(change(&made, names[500], ""), 0);
	assert_root(&made, names[0], names[500]);
	assert_root(&made, names[501], names[FAULT_MERGES_MAX]);
	merge(&made, names[FAULT_MERGES_MAX], "z");
	arena_release(&made.arena);
}

/* Groups fit if the same group stands for both. Other texts fit if they are equal. */
static void texts_fit_by_the_group_that_stands_for_them(UNUSED void **state)
{
	struct made made;
	struct slice wanted[FAULT_TEXTS] = {{NULL, 0}}, texts[FAULT_TEXTS];
	begin(&made);
	merge(&made, "a", "b");
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		texts[i] = TEXT("");
	texts[FAULT_GROUP] = TEXT("a");
	texts[FAULT_GROUP_ALL] = TEXT("a");
	assert_true(fault_merges_fit(&made.merges, wanted, texts));
	wanted[FAULT_GROUP] = TEXT("b");
	assert_true(fault_merges_fit(&made.merges, wanted, texts));
	assert_false(fault_merges_fit(NULL, wanted, texts));
	texts[FAULT_GROUP] = TEXT("b");
	wanted[FAULT_GROUP] = TEXT("a");
	assert_true(fault_merges_fit(&made.merges, wanted, texts));
	wanted[FAULT_GROUP] = TEXT("");
	assert_false(fault_merges_fit(&made.merges, wanted, texts));
	wanted[FAULT_GROUP] = TEXT("a");
	wanted[FAULT_GROUP_ALL] = TEXT("b");
	assert_false(fault_merges_fit(&made.merges, wanted, texts));
	arena_release(&made.arena);
}

/* ---- The cell -------------------------------------------------------------------------------- */

static int decode(struct made *made, const char *bytes, size_t len)
{
	return fault_merges_decode((struct slice){bytes, len}, &made->arena, &made->merges);
}
#define DECODE(made, bytes) decode(made, bytes, sizeof(bytes) - 1)

static void a_cell_is_as_the_page_has_it(UNUSED void **state)
{
	static const char bytes[] = "\1\2"
				    "\1a\2bb"
				    "\2bb\1c";
	struct made made;
	struct buf out;
	begin(&made);
	assert_int_equal(DECODE(&made, bytes), 0);
	assert_tree(&made, "c", "a bb");
	buf_init(&out, 100);
	fault_merges_encode(&made.merges, &out);
	assert_int_equal(out.len, sizeof(bytes) - 1);
	assert_memory_equal(out.data, bytes, out.len);
	buf_release(&out);
	for (size_t len = 0; len < sizeof(bytes) - 1; len++)
		assert_int_equal(decode(&made, bytes, len), ERR_DAMAGED);
	assert_int_equal(DECODE(&made, "\2"), ERR_VERSION);
	arena_release(&made.arena);
}

/* Nobody wrote these: it is found out, and nothing runs in a circle. */
static void what_nobody_wrote_is_damaged(UNUSED void **state)
{
	struct made made;
	begin(&made);
	assert_int_equal(DECODE(&made, "\1\1\1a\1a"), ERR_DAMAGED);       /* itself */
	assert_int_equal(DECODE(&made, "\1\2\1a\1b\1b\1a"), ERR_DAMAGED); /* a circle */
	assert_int_equal(DECODE(&made, "\1\4\1a\1b\1b\1c\1c\1d\1d\1b"),
			 ERR_DAMAGED);                                    /* and a way */
	assert_int_equal(DECODE(&made, "\1\2\1b\1c\1a\1c"), ERR_DAMAGED); /* order */
	assert_int_equal(DECODE(&made, "\1\2\1a\1b\1a\1c"), ERR_DAMAGED); /* twice */
	assert_int_equal(DECODE(&made, "\1\1\0\1c"), ERR_DAMAGED);        /* no name */
	assert_int_equal(DECODE(&made, "\1\xe9\7"), ERR_DAMAGED);         /* 1,001 */
	assert_int_equal(DECODE(&made, "\1\0"), 0);
	arena_release(&made.arena);
}

/* ---- In the store ---------------------------------------------------------------------------- */

static int write_change(struct harness *h, struct made *made, const char *group, const char *into)
{
	const struct fault_merge_change wanted = {slice_of(group), slice_of(into)};
	return fault_merges_write(&h->site, &h->queue, TEXT("t"), &wanted, &made->arena,
				  &made->merges, &made->e);
}

static void read_merges(struct harness *h, struct made *made)
{
	assert_int_equal(fault_merges_read(&h->site, &h->queue, TEXT("t"), &made->arena,
					   &made->merges, &made->e),
			 0);
}

static void what_is_merged_is_stored(UNUSED void **state)
{
	struct harness h;
	struct made made;
	harness_open(&h);
	begin(&made);
	read_merges(&h, &made);
	assert_int_equal(made.merges.count, 0);
	assert_int_equal(write_change(&h, &made, "a", "b"), 0);
	assert_int_equal(write_change(&h, &made, "b", "c"), 0);
	assert_int_equal(write_change(&h, &made, "c", "a"), ERR_EXISTS);
	harness_restart(&h);
	read_merges(&h, &made);
	assert_tree(&made, "c", "a b");
	assert_int_equal(write_change(&h, &made, "b", ""), 0);
	read_merges(&h, &made);
	assert_tree(&made, "b", "a");
	assert_int_equal(made.merges.count, 1);
	naive_fail_writes(h.store, ERR_FULL, 1);
	assert_int_equal(write_change(&h, &made, "x", "b"), ERR_FULL);
	read_merges(&h, &made);
	assert_int_equal(made.merges.count, 1);
	naive_lose_outcomes(h.store, 0, 1);
	assert_int_equal(write_change(&h, &made, "x", "b"), ERR_UNKNOWN);
	assert_int_equal(write_change(&h, &made, "x", "b"), 0); /* sent once more */
	assert_tree(&made, "b", "a x");
	arena_release(&made.arena);
	harness_close(&h);
}

static void put_value(struct harness *h, uint64_t version, struct slice value)
{
	const struct store_parts key = {{TEXT("t")}}, column = {{TEXT("merges")}};
	assert_int_equal(store_put_if_wait(h->store, &h->queue, TABLE_FAULT_MERGES, &key, &column,
					   version, value),
			 0);
}

/* Groups stand for themselves then. What a newer program wrote is not written over. */
static void a_cell_that_cannot_be_read_merges_nothing(UNUSED void **state)
{
	struct harness h;
	struct made made;
	harness_open(&h);
	begin(&made);
	put_value(&h, 0, TEXT("\2later"));
	read_merges(&h, &made);
	assert_int_equal(made.merges.unreadable, ERR_VERSION);
	assert_int_equal(made.merges.count, 0);
	assert_int_equal(write_change(&h, &made, "a", "b"), ERR_VERSION);
	assert_non_null(strstr(made.e.text, "newer program"));
	harness_close(&h);
	harness_open(&h);
	put_value(&h, 0, TEXT("\1\1"));
	read_merges(&h, &made);
	assert_int_equal(made.merges.unreadable, ERR_DAMAGED);
	assert_int_equal(write_change(&h, &made, "a", "b"), 0);
	read_merges(&h, &made);
	assert_int_equal(made.merges.unreadable, 0);
	assert_tree(&made, "b", "a");
	arena_release(&made.arena);
	harness_close(&h);
}

/* ---- What reports add up to ------------------------------------------------------------------ */

static void report_of(struct harness *h, const char *id, const char *group, const char *user)
{
	struct fault_item item = harness_item(id, id);
	item.facts.texts[FAULT_GROUP] = slice_of(group);
	item.facts.texts[FAULT_TITLE] = slice_of(id);
	item.facts.texts[FAULT_USER] = slice_of(user);
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
}

static struct fault_group_history history_of(struct harness *h, const struct made *made,
					     const char *group)
{
	struct fault_group_history history;
	struct errbuf e = {""};
	const struct fault_group_question question = {slice_of(group), FAULT_TALLY_ALL, 0,
						      &made->merges};
	struct fault_book *book = fault_book_new(&h->site, TEXT("t"));
	assert_int_equal(fault_book_read_group(book, &h->queue, &question, &history, &e), 0);
	fault_book_free(book);
	return history;
}

static void check_history(struct harness *h, const struct made *made, const char *group,
			  uint64_t count, uint64_t users, const char *first, const char *last)
{
	bool about;
	struct fault_group_history history = history_of(h, made, group);
	assert_int_equal(history.tally.count, count);
	assert_int_equal(fault_tally_distinct(&history.tally, FAULT_TALLY_USER, &about), users);
	assert_true(slice_equal(history.tally.first.id, slice_of(first)));
	assert_true(slice_equal(history.tally.last.id, slice_of(last)));
	fault_group_history_release(&history);
}

/* Day 0: a1 of anna, b1 of anna, c1 of cleo. Day 1: a2 of bob, a3 of bob. Day 2: b2 of dora. */
static void fill(struct harness *h, bool passes)
{
	report_of(h, "a1", "1-a", "anna");
	report_of(h, "b1", "1-b", "anna");
	report_of(h, "c1", "1-c", "cleo");
	if (passes)
		harness_pass(h);
	clock_virtual_advance(&h->clock, FAULT_DAY_US);
	report_of(h, "a2", "1-a", "bob");
	report_of(h, "a3", "1-a", "bob");
	if (passes)
		harness_pass(h);
	clock_virtual_advance(&h->clock, FAULT_DAY_US);
	report_of(h, "b2", "1-b", "dora");
	if (passes)
		harness_pass(h);
}

static void check_days(struct harness *h, const struct made *made)
{
	struct fault_group_history history = history_of(h, made, "1-b");
	static const uint64_t counts[] = {2, 2, 1};
	assert_int_equal(history.count, 3);
	for (size_t i = 0; i < 3; i++) {
		uint64_t sum = 0;
		assert_int_equal(history.days[i].day, DAY0 + (int64_t)i);
		assert_int_equal(history.days[i].count, counts[i]);
		for (size_t hour = 0; hour < FAULT_HOURS; hour++)
			sum += history.days[i].hours[hour];
		assert_int_equal(sum, counts[i]);
	}
	fault_group_history_release(&history);
}

static void check_sum(const struct fault_groups *groups, const char *name, uint64_t count,
		      const char *first, const char *last)
{
	const struct fault_group_sum *sum =
		hash_table_find(&groups->table, hash128(name, strlen(name), 0));
	assert_non_null(sum);
	assert_int_equal(sum->tally->count, count);
	assert_true(slice_equal(sum->tally->first.id, slice_of(first)));
	assert_true(slice_equal(sum->tally->last.id, slice_of(last)));
}

static void check_groups(struct harness *h, const struct made *made)
{
	struct fault_groups groups;
	struct errbuf e = {""};
	const struct fault_groups_question question = {DAY0, DAY0 + 2, FAULT_TALLY_ALL, 0,
						       &made->merges};
	assert_int_equal(fault_book_read_groups(h->book, &h->queue, &question, &groups, &e), 0);
	assert_int_equal(groups.table.count, 2);
	check_sum(&groups, "1-b", 5, "a1", "b2");
	check_sum(&groups, "1-c", 1, "c1", "c1");
	fault_groups_release(&groups);
}

/* Of days in memory, of stored ones, and of both. */
static void reports_count_for_the_group_that_stands_for_theirs(UNUSED void **state)
{
	for (int passes = 0; passes < 2; passes++) {
		struct harness h;
		struct made made;
		harness_open(&h);
		begin(&made);
		fill(&h, passes);
		check_history(&h, &made, "1-a", 3, 2, "a1", "a3");
		merge(&made, "1-a", "1-b");
		check_history(&h, &made, "1-b", 5, 3, "a1", "b2");
		check_history(&h, &made, "1-c", 1, 1, "c1", "c1");
		check_days(&h, &made);
		check_groups(&h, &made);
		arena_release(&made.arena);
		harness_close(&h);
	}
}

static void check_older(struct harness *h, const struct made *made, int64_t day, bool b, bool c)
{
	struct fault_group_age ages[] = {{TEXT("1-b"), false}, {TEXT("1-c"), false}};
	struct errbuf e = {""};
	assert_int_equal(
		fault_book_read_older(h->book, &h->queue, day, &made->merges, ages, 2, 0, &e), 0);
	assert_int_equal(ages[0].older, b);
	assert_int_equal(ages[1].older, c);
}

/* 1-a has its first report a day before 1-b. */
static void a_group_is_as_old_as_the_oldest_that_it_stands_for(UNUSED void **state)
{
	for (int passes = 0; passes < 2; passes++) {
		struct harness h;
		struct made made;
		harness_open(&h);
		begin(&made);
		report_of(&h, "a1", "1-a", "");
		if (passes)
			harness_pass(&h);
		clock_virtual_advance(&h.clock, FAULT_DAY_US);
		report_of(&h, "b1", "1-b", "");
		report_of(&h, "c1", "1-c", "");
		check_older(&h, &made, DAY0 + 1, false, false);
		merge(&made, "1-a", "1-b");
		check_older(&h, &made, DAY0 + 1, true, false);
		check_older(&h, &made, DAY0, false, false);
		arena_release(&made.arena);
		harness_close(&h);
	}
}

/* ---- What was said, of other groups than there are now --------------------------------------- */

static void add(struct fault_group_history *history, int64_t hour, unsigned count,
		struct fault_group_day *days)
{
	struct fault_arrival arrival = {.date_us = hour * HOUR_US + 1, .id = TEXT("x")};
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		arrival.facts.texts[i] = TEXT("");
	history->days = days;
	if (!history->count || days[history->count - 1].day != hour / 24)
		days[history->count++] = (struct fault_group_day){.day = hour / 24};
	days[history->count - 1].hours[hour % 24] += count;
	days[history->count - 1].count += count;
	for (unsigned i = 0; i < count; i++)
		fault_tally_add(&history->tally, &arrival);
}

struct union_case {
	enum fault_status status;
	uint64_t until, hours;
	int64_t hour; /* of the reports that are merged into it */
	unsigned count;
	enum fault_status then;
};

/* It was said in hour 1000, when the group had 10 reports, and 5 of them in that hour. Then others
 * come to it. */
static void check_union(const struct union_case *one)
{
	struct fault_group_day days[2];
	struct fault_group_history history = {0};
	struct fault_said said = {.status = one->status,
				  .said_us = 1000 * HOUR_US + 1000,
				  .release = TEXT(""),
				  .until = one->until,
				  .hours = one->hours,
				  .before = 10,
				  .before_of_hour = 5};
	bool again;
	add(&history, 990, 5, days);
	add(&history, 1000, 5, days);
	assert_int_equal(fault_said_status(&said, &history, &again), one->status);
	history.merged = 4711;
	assert_int_equal(fault_said_status(&said, &history, &again), one->status);
	fault_tally_release(&history.tally);
	history = (struct fault_group_history){.merged = 4711};
	add(&history, 990, 5, days);
	add(&history, smaller_of(1000, one->hour), one->hour < 1000 ? one->count : 5, days);
	add(&history, larger_of(1000, one->hour), one->hour < 1000 ? 5 : one->count, days);
	assert_int_equal(fault_said_status(&said, &history, &again), one->then);
	assert_int_equal(again, one->then == FAULT_OPEN);
	fault_tally_release(&history.tally);
}

static void reports_from_before_it_was_said_open_no_group_by_a_merge(UNUSED void **state)
{
	static const struct union_case cases[] = {
		{FAULT_RESOLVED, 0, 0, 995, 100, FAULT_RESOLVED},
		{FAULT_RESOLVED, 0, 0, 1001, 1, FAULT_OPEN},
		{FAULT_MUTED, 3, 0, 995, 100, FAULT_MUTED},
		{FAULT_MUTED, 3, 0, 1000, 100, FAULT_MUTED}, /* of the hour nobody knows */
		{FAULT_MUTED, 3, 0, 1001, 2, FAULT_MUTED},
		{FAULT_MUTED, 3, 0, 1001, 3, FAULT_OPEN},
		{FAULT_MUTED, 3, 4, 995, 100, FAULT_MUTED},
		{FAULT_MUTED, 3, 4, 1000, 100, FAULT_MUTED},
		{FAULT_MUTED, 3, 4, 1001, 3, FAULT_OPEN},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_union(&cases[i]);
}

/* And after the groups are the same as when it was said, it is as if nothing had been. The number
 * is in the cell, behind all else, where there is one. */
static void what_was_said_of_merged_groups_says_of_which(UNUSED void **state)
{
	struct made made;
	struct fault_said said = {.status = FAULT_RESOLVED,
				  .release = TEXT(""),
				  .assignee = TEXT("")},
			  read;
	struct fault_group_history history = {0};
	struct buf plain, out;
	begin(&made);
	merge(&made, "a", "b");
	merge(&made, "c", "b");
	uint64_t both = hash64("a", 1, 0) ^ hash64("c", 1, 0);
	assert_int_equal(fault_merges_hash(&made.merges, TEXT("b")), both);
	assert_int_equal(fault_merges_hash(&made.merges, TEXT("a")), 0);
	assert_int_equal(fault_merges_hash(NULL, TEXT("b")), 0);
	buf_init(&plain, 1000);
	buf_init(&out, 1000);
	fault_said_encode(&said, &plain);
	history.merged = both;
	fault_said_count_before(&said, &history, 0);
	fault_said_encode(&said, &out);
	assert_int_equal(out.len, plain.len + 8);
	assert_memory_equal(out.data, plain.data, plain.len);
	assert_memory_equal(out.data + plain.len, &both, 8);
	assert_int_equal(fault_said_decode(buf_slice(&out), &read), 0);
	assert_int_equal(read.merged, both);
	assert_int_equal(fault_said_decode(buf_slice(&plain), &read), 0);
	assert_int_equal(read.merged, 0);
	for (size_t len = plain.len + 1; len < out.len; len++)
		assert_int_equal(fault_said_decode((struct slice){out.data, len}, &read),
				 ERR_DAMAGED);
	buf_release(&plain);
	buf_release(&out);
	arena_release(&made.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_stands_for_those_that_are_merged_into_it),
		cmocka_unit_test(what_is_merged_further_takes_its_own_along),
		cmocka_unit_test(what_cannot_be_merged_is_refused),
		cmocka_unit_test(so_many_groups_can_be_merged),
		cmocka_unit_test(texts_fit_by_the_group_that_stands_for_them),
		cmocka_unit_test(a_cell_is_as_the_page_has_it),
		cmocka_unit_test(what_nobody_wrote_is_damaged),
		cmocka_unit_test(what_is_merged_is_stored),
		cmocka_unit_test(a_cell_that_cannot_be_read_merges_nothing),
		cmocka_unit_test(reports_count_for_the_group_that_stands_for_theirs),
		cmocka_unit_test(a_group_is_as_old_as_the_oldest_that_it_stands_for),
		cmocka_unit_test(reports_from_before_it_was_said_open_no_group_by_a_merge),
		cmocka_unit_test(what_was_said_of_merged_groups_says_of_which),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
