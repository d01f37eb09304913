/* Groups that are found by a hash that is known, on the naive store. What is expected follows from
 * one rule: the first hash of a report that an earlier report had has its group; where none is
 * known the hash of the application's frames is a new group. */
#include "fault_harness.h"

#include "base/stats.h"

#define DAY_US INT64_C(86400000000)

/* The group of a report with these hashes; `all` NULL: it has one only. */
static struct fault_item report(const char *application, const char *all)
{
	static char ids[1000][8];
	static unsigned number;
	char *id = ids[number % 1000];
	snprintf(id, sizeof(ids[0]), "r%u", number++);
	struct fault_item item = harness_item(id, id);
	item.facts.texts[FAULT_GROUP] = slice_of(application);
	if (all)
		item.facts.texts[FAULT_GROUP_ALL] = slice_of(all);
	return item;
}

static void assert_fact(struct slice found, const char *expected)
{
	assert_int_equal(found.len, strlen(expected));
	assert_memory_equal(found.data, expected, found.len);
}

/* As the report is stored. */
static struct fault_facts stored(const struct fault_item *item)
{
	struct fault_facts facts = item->facts;
	assert_int_equal(item->outcome, FAULT_TAKEN);
	fault_lookup_apply(&item->lookup, &facts);
	return facts;
}

static void assert_group(const struct fault_item *item, const char *group)
{
	assert_fact(stored(item).texts[FAULT_GROUP], group);
}

static void comes_to(struct harness *h, const char *application, const char *all, const char *group)
{
	struct fault_item item = report(application, all);
	harness_submit(h, &item, 1);
	assert_group(&item, group);
}

static void begin_submit(struct fault_intake *intake, struct fault_submission *s,
			 struct fault_item *item, const char *tenant, bool *done)
{
	*done = false;
	*s = (struct fault_submission){.tenant = slice_of(tenant),
				       .items = item,
				       .count = 1,
				       .done = harness_done,
				       .owner = done};
	assert_int_equal(fault_intake_submit(intake, s), 0);
}

static void comes_to_of(struct harness *h, const char *tenant, const char *application,
			const char *all, const char *group)
{
	struct fault_item item = report(application, all);
	struct fault_submission s;
	bool done;
	begin_submit(h->intake, &s, &item, tenant, &done);
	while (!done)
		task_queue_wait(&h->queue);
	assert_group(&item, group);
}

static void known_by_either(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-a", "1-x", "1-a");
	comes_to(&h, "1-a", "1-y", "1-a");
	comes_to(&h, "1-b", "1-y", "1-a"); /* by the hash of all frames */
	comes_to(&h, "1-b", "1-z", "1-a"); /* b is known by now */
	comes_to(&h, "1-c", "1-z", "1-a"); /* and so is z */
	comes_to(&h, "1-d", "1-w", "1-d");
	comes_to_of(&h, "other", "1-b", "1-y", "1-b");
	harness_close(&h);
}

/* What a later process, or one beside this, finds is what is stored. */
static void known_after_a_restart(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-a", "1-x", "1-a");
	comes_to(&h, "1-b", "1-x", "1-a");
	harness_restart(&h);
	comes_to(&h, "1-c", "1-x", "1-a");
	comes_to(&h, "1-b", "1-y", "1-a");
	harness_restart(&h);
	comes_to(&h, "1-e", "1-y", "1-a");
	comes_to(&h, "1-c", "1-w", "1-a");
	harness_close(&h);
}

/* No frame is the application's, or all are: the two hashes are one. */
static void one_hash(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-a", "1-x", "1-a");
	struct fault_item item = report("1-x", NULL);
	harness_submit(&h, &item, 1);
	assert_group(&item, "1-a");
	assert_fact(stored(&item).texts[FAULT_GROUP_ALL], "1-x");
	comes_to(&h, "1-y", NULL, "1-y");
	item = report("1-b", "1-y");
	harness_submit(&h, &item, 1);
	assert_group(&item, "1-y");
	assert_fact(stored(&item).texts[FAULT_GROUP_ALL], "");
	item = report("1-c", "1-z");
	harness_submit(&h, &item, 1);
	assert_group(&item, "1-c");
	assert_fact(stored(&item).texts[FAULT_GROUP_ALL], "1-z");
	harness_close(&h);
}

static void the_application_comes_first(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-a", "1-x", "1-a");
	comes_to(&h, "1-b", "1-y", "1-b");
	comes_to(&h, "1-a", "1-y", "1-a");
	harness_restart(&h);
	comes_to(&h, "1-b", "1-x", "1-b");
	comes_to(&h, "1-c", "1-x", "1-a");
	comes_to(&h, "1-d", "1-y", "1-b");
	harness_close(&h);
}

/* Of one submission, and of two that are on their way at once. */
static void known_before_it_is_stored(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	struct fault_item two[2] = {report("1-a", "1-x"), report("1-b", "1-x")};
	harness_submit(&h, two, 2);
	assert_group(&two[0], "1-a");
	assert_group(&two[1], "1-a");
	struct fault_item items[2] = {report("1-c", "1-z"), report("1-d", "1-z")};
	struct fault_submission s[2];
	bool done[2];
	for (int i = 0; i < 2; i++)
		begin_submit(h.intake, &s[i], &items[i], "t", &done[i]);
	while (!done[0] || !done[1])
		task_queue_wait(&h.queue);
	assert_group(&items[0], "1-c");
	assert_group(&items[1], "1-c");
	harness_restart(&h);
	comes_to(&h, "1-d", "1-w", "1-c");
	harness_close(&h);
}

/* The hashes of a report that was refused are stored with the next one that has them. */
static void stored_with_a_later_report(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-q", NULL, "1-q");
	naive_fail_writes(h.store, ERR_FULL, 1);
	struct fault_item item = report("1-a", "1-x");
	harness_submit(&h, &item, 1);
	assert_int_equal(item.outcome, FAULT_FAILED);
	comes_to(&h, "1-b", "1-x", "1-a");
	harness_submit(&h, &item, 1); /* as a door does that tries the same again */
	assert_group(&item, "1-a");
	assert_fact(item.facts.texts[FAULT_GROUP], "1-a");
	comes_to(&h, "1-a", NULL, "1-a");
	harness_restart(&h);
	comes_to(&h, "1-c", "1-x", "1-a");
	harness_close(&h);
}

/* 100 days after the last report that a hash had; one in the meantime keeps it. */
static void forgotten_in_the_end(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-a", "1-x", "1-a");
	comes_to(&h, "1-b", "1-y", "1-b");
	clock_virtual_advance(&h.clock, 20 * DAY_US);
	comes_to(&h, "1-c", "1-y", "1-b");
	clock_virtual_advance(&h.clock, 79 * DAY_US);
	comes_to(&h, "1-d", "1-y", "1-b");
	clock_virtual_advance(&h.clock, 2 * DAY_US);
	harness_restart(&h);
	comes_to(&h, "1-e", "1-x", "1-e");
	comes_to(&h, "1-e", "1-y", "1-e");
	comes_to(&h, "1-f", "1-y", "1-b");
	harness_close(&h);
}

/* What two processes have made of one hash at once is the same for both a day later. */
static void found_when_another_has_stored_it(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	struct fault_site site = h.site;
	site.holder = TEXT("another");
	struct fault_intake *other = fault_intake_new(&(struct fault_intake_options){
		.site = &site, .executor = &h.queue.executor, .seed = 99});
	struct fault_item items[2] = {report("1-a", "1-x"), report("1-b", "1-x")};
	struct fault_submission s[2];
	bool done[2];
	for (int i = 0; i < 2; i++)
		begin_submit(i ? other : h.intake, &s[i], &items[i], "t", &done[i]);
	while (!done[0] || !done[1])
		task_queue_wait(&h.queue);
	clock_virtual_advance(&h.clock, DAY_US);
	for (int i = 0; i < 2; i++)
		items[i] = report(i ? "1-c" : "1-d", "1-x");
	for (int i = 0; i < 2; i++) {
		begin_submit(i ? other : h.intake, &s[i], &items[i], "t", &done[i]);
		while (!done[i])
			task_queue_wait(&h.queue);
	}
	/* The second one was written later. */
	assert_group(&items[0], "1-b");
	assert_group(&items[1], "1-b");
	comes_to(&h, "1-a", NULL, "1-a");
	comes_to(&h, "1-b", NULL, "1-b");
	fault_intake_free(other);
	harness_close(&h);
}

/* More new ones than are stored in a day are known to this process only. */
static void no_room_for_more(UNUSED void **state)
{
	struct harness h;
	struct fault_hashes hashes = {.young = {NULL}};
	struct fault_lookup lookup;
	struct fault_item item = report("1-a", "1-x");
	size_t room = 1;
	harness_open(&h);
	struct store_read *read = store_read_new(h.store, 1 << 20);
	fault_hashes_ask(&hashes, TEXT("t"), &item.facts, 0, read, &lookup);
	assert_int_equal(store_read_wait(read, &h.queue), 0);
	uint64_t before = stat_get(STAT_fault_hashes_left_out);
	fault_hashes_choose(&hashes, &lookup, 0, 0, &room);
	assert_int_equal(room, 0);
	assert_int_equal(stat_get(STAT_fault_hashes_left_out), before + 1);
	store_read_reset(read);
	item = report("1-b", "1-x");
	fault_hashes_ask(&hashes, TEXT("t"), &item.facts, 0, read, &lookup);
	assert_int_equal(store_read_wait(read, &h.queue), 0);
	fault_hashes_choose(&hashes, &lookup, 0, 0, &room);
	assert_fact((struct slice){lookup.group, lookup.group_bytes}, "1-a");
	assert_int_equal(stat_get(STAT_fault_hashes_left_out), before + 2); /* for b */
	fault_hashes_ask(&hashes, TEXT("t"), &item.facts, 0, read, &lookup);
	fault_hashes_choose(&hashes, &lookup, 0, 0, &room);
	assert_int_equal(stat_get(STAT_fault_hashes_left_out), before + 2);
	store_read_free(read);
	fault_hashes_release(&hashes);
	harness_close(&h);
}

/* Each hash takes room once, however many reports have it before it is stored, and however often
 * that fails. */
static void room_is_of_hashes(UNUSED void **state)
{
	struct harness h;
	struct fault_hashes hashes = {.young = {NULL}};
	struct fault_lookup lookups[3];
	struct fault_item item = report("1-a", NULL);
	size_t room = 10;
	harness_open(&h);
	struct store_read *read = store_read_new(h.store, 1 << 20);
	for (int turn = 0; turn < 4; turn++) {
		store_read_reset(read);
		for (int i = 0; i < 3; i++)
			fault_hashes_ask(&hashes, TEXT("t"), &item.facts, 0, read, &lookups[i]);
		if (!turn)
			assert_int_equal(store_read_wait(read, &h.queue), 0);
		for (int i = 0; i < 3; i++) {
			fault_hashes_choose(&hashes, &lookups[i], 0, 0, &room);
			assert_int_equal(lookups[i].hashes[0].enters, i == 0);
		}
		for (int i = 0; i < 3; i++)
			fault_hashes_note_written(&hashes, &lookups[i], true);
	}
	assert_int_equal(room, 9);
	store_read_free(read);
	fault_hashes_release(&hashes);
	harness_close(&h);
}

/* One way of a report, as the intake goes it; whether it needs the store. */
struct way {
	bool reads, writes;
};

static struct way go(struct harness *h, struct fault_hashes *hashes, struct store_read *read,
		     const char *hash)
{
	struct fault_item item = report(hash, NULL);
	struct fault_lookup lookup;
	size_t room = 1;
	store_read_reset(read);
	fault_hashes_ask(hashes, TEXT("t"), &item.facts, 0, read, &lookup);
	struct way way = {.reads = lookup.hashes[0].request != NULL};
	if (way.reads)
		assert_int_equal(store_read_wait(read, &h->queue), 0);
	fault_hashes_choose(hashes, &lookup, 0, 0, &room);
	way.writes = lookup.hashes[0].enters;
	fault_hashes_note_written(hashes, &lookup, false);
	return way;
}

static int64_t stamp_of(struct harness *h, const char *hash)
{
	struct store_read *read = store_read_new(h->store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	request->cell_get = (struct store_cell_get){.table = TABLE_FAULT_HASHES,
						    .key = {{TEXT("t"), slice_of(hash)}},
						    .column = {{slice_of(hash)}}};
	assert_int_equal(store_read_wait(read, &h->queue), 0);
	assert_true(request->cell_get.found);
	int64_t stamp_us = request->cell_get.cell.stamp_us;
	store_read_free(read);
	return stamp_us;
}

static void stored_once(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "1-a", NULL, "1-a");
	int64_t stamp_us = stamp_of(&h, "1-a");
	comes_to(&h, "1-a", NULL, "1-a");
	assert_int_equal(stamp_of(&h, "1-a"), stamp_us);
	harness_close(&h);
}

/* What is stored is neither read nor stored again, as long as it is needed now and then. */
static void kept_here(UNUSED void **state)
{
	struct harness h;
	struct fault_hashes hashes = {.young = {NULL}};
	char text[16];
	harness_open(&h);
	struct store_read *read = store_read_new(h.store, 1 << 20);
	struct way first = go(&h, &hashes, read, "1-a"), later = go(&h, &hashes, read, "1-a");
	assert_true(first.reads && first.writes);
	assert_false(later.reads || later.writes);
	for (unsigned n = 0; n < 200000; n++) {
		snprintf(text, sizeof(text), "1-%u", n);
		struct way way = go(&h, &hashes, read, text);
		assert_true(way.reads && way.writes);
		if (n % 50000 == 0) {
			later = go(&h, &hashes, read, "1-a");
			assert_false(later.reads || later.writes);
		}
	}
	assert_true(hashes.young.count <= 1 << 16 && hashes.old.count <= 1 << 16);
	assert_true(go(&h, &hashes, read, "1-0").reads);
	store_read_free(read);
	fault_hashes_release(&hashes);
	harness_close(&h);
}

/* No program writes such values; they are as none. */
static void damaged(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	const struct fault_parts key = {.parts = {{TEXT("t"), TEXT("1-a")}}},
				 column = {.parts = {{TEXT("1-a")}}};
	put_cell(&h, TABLE_FAULT_HASHES, &key, &column, SLICE(""));
	comes_to(&h, "1-a", "1-x", "1-a");
	harness_restart(&h);
	put_cell(&h, TABLE_FAULT_HASHES, &key, &column, SLICE("12345678901234567890123"));
	comes_to(&h, "1-a", "1-y", "1-a");
	static const struct slice others[] = {SLICE("1-\0"), SLICE("\xff\xfe"), SLICE("a/b"),
					      SLICE("1 a")};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		put_cell(&h, TABLE_FAULT_HASHES, &key, &column, others[i]);
		harness_restart(&h);
		comes_to(&h, "1-a", NULL, "1-a");
	}
	harness_close(&h);
}

static void no_group(UNUSED void **state)
{
	struct harness h;
	harness_open(&h);
	comes_to(&h, "", NULL, "");
	comes_to(&h, "1-a", "1-x", "1-a");
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_by_either),
		cmocka_unit_test(known_after_a_restart),
		cmocka_unit_test(one_hash),
		cmocka_unit_test(the_application_comes_first),
		cmocka_unit_test(known_before_it_is_stored),
		cmocka_unit_test(stored_with_a_later_report),
		cmocka_unit_test(forgotten_in_the_end),
		cmocka_unit_test(found_when_another_has_stored_it),
		cmocka_unit_test(no_room_for_more),
		cmocka_unit_test(room_is_of_hashes),
		cmocka_unit_test(stored_once),
		cmocka_unit_test(kept_here),
		cmocka_unit_test(damaged),
		cmocka_unit_test(no_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
