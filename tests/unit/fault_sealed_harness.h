/* Reports of one process in runs of four, sealed and listed. */
#ifndef TESTS_UNIT_FAULT_SEALED_HARNESS_H
#define TESTS_UNIT_FAULT_SEALED_HARNESS_H

#include "fault_harness.h"

#include <stdio.h>

#include "fault/pack.h"
#include "fault/tables.h"

enum { MINUTES_5_US = 300000000, IDS_BYTES = 400 };

static const struct fault_list_filter all = {
	.from_us = INT64_MIN, .to_us = INT64_MAX, .after = {.date_us = INT64_MAX}};

/* One report; its text is "words", `w` and its id, and what there is more. Returns its date. */
static inline int64_t report_one(struct harness *h, unsigned number, const char *group,
				 const char *more, int64_t duration_us)
{
	char id[8], body[200];
	struct buf packed;
	snprintf(id, sizeof(id), "%02u", number);
	snprintf(body, sizeof(body), "{\"value\":\"words w%02u\"%s}", number, more);
	buf_init(&packed, 1000);
	struct fault_item item = harness_item(id, body);
	item.dictionary = fault_pack(slice_of(body), &packed);
	item.packed = buf_slice(&packed);
	item.facts.texts[FAULT_GROUP] = slice_of(group);
	item.facts.duration_us = duration_us;
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
	buf_release(&packed);
	return item.date_us;
}

/* Reports 00, 01 ... of three groups in turn. Returns the date of the last. */
static inline int64_t report(struct harness *h, unsigned first, unsigned count)
{
	static const char *const groups[] = {"b", "a", "c"};
	int64_t date_us = 0;
	for (unsigned i = first; i < first + count; i++)
		date_us = report_one(h, i, groups[i % 3], "", -1);
	return date_us;
}

/* As doc/format-faults.md has it: which bug of the tracker `lp` a report is, as was said later. */
static inline void say_report_bug(struct harness *h, const char *id, const char *bug)
{
	const struct store_parts column = {{slice_of(id), TEXT("bug.lp"), TEXT("")}};
	struct fault_parts key;
	struct store_write *write = store_write_new(h->store, 1 << 10);
	fault_oops_key(&key, TEXT("t"), slice_of(id));
	assert_int_equal(store_cell_put(write, TABLE_OOPS, &key.parts, &column, slice_of(bug),
					store_stamp(h->store), 0),
			 0);
	assert_int_equal(store_write_wait(write, &h->queue), 0);
	store_write_free(write);
}

/* Whether there is a cell that says so. */
static inline bool has_report_bug(struct harness *h, const char *id)
{
	struct fault_parts key;
	struct store_read *read = store_read_new(h->store, 1 << 16);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	fault_oops_key(&key, TEXT("t"), slice_of(id));
	request->cell_get =
		(struct store_cell_get){.table = TABLE_OOPS,
					.key = key.parts,
					.column = {{slice_of(id), TEXT("bug.lp"), TEXT("")}}};
	assert_int_equal(store_read_wait(read, &h->queue), 0);
	bool found = request->cell_get.found;
	store_read_free(read);
	return found;
}

static inline void seal(struct harness *h)
{
	struct errbuf e = {""};
	harness_pass(h);
	assert_int_equal(fault_book_seal(h->book, &h->queue, INT64_MAX, &e), 0);
}

static inline int count_row(UNUSED const struct store_row *row, void *owner)
{
	(*(size_t *)owner)++;
	return 0;
}

static inline size_t rows(struct harness *h, enum table table)
{
	struct errbuf e;
	size_t count = 0;
	assert_int_equal(store_rows_wait(h->store, &h->queue, clock_wall_ms(&h->clock.clock), table,
					 count_row, &count, &e),
			 0);
	return count;
}

struct listed {
	char ids[IDS_BYTES];
};

static inline bool list_one(void *owner, const struct fault_listed *listed)
{
	struct listed *l = owner;
	size_t at = strlen(l->ids);
	snprintf(l->ids + at, sizeof(l->ids) - at, "%.*s ", (int)listed->id.len, listed->id.data);
	return true;
}

/* By whoever knows nothing but what is stored. */
static inline void check_list(struct harness *h, struct fault_list_filter filter,
			      const char *search, const char *ids)
{
	struct errbuf e = {""};
	struct arena arena;
	struct words_query query;
	struct listed listed = {""};
	struct fault_order reached;
	struct fault_book *book = fault_book_new(&h->site, TEXT("t"));
	arena_init(&arena, 1 << 20);
	if (search) {
		assert_int_equal(words_query_parse(slice_of(search), &arena, &query, &e), 0);
		filter.search = &query;
	}
	assert_int_equal(fault_book_list(book, &h->queue, &filter, list_one, &listed, &reached, &e),
			 0);
	assert_string_equal(listed.ids, ids);
	arena_release(&arena);
	fault_book_free(book);
}

#endif
