/* One process with faults on the naive store, on a virtual clock: reports are taken and passes run
 * by calls that wait. */
#ifndef TESTS_UNIT_FAULT_HARNESS_H
#define TESTS_UNIT_FAULT_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "contract/naive.h"
#include "fault/book.h"
#include "fault/intake.h"
#include "fault/merges.h"
#include "fault/tables.h"
#include "store/wait.h"

#define TEXT(t) ((struct slice){(t), sizeof(t) - 1})
/* 2023-11-14 22:13:20 UTC. */
#define T0_US INT64_C(1700000000000000)

struct harness {
	struct clock_virtual clock;
	struct store *store;
	struct task_queue queue;
	struct fault_site site;
	struct fault_intake *intake;
	struct fault_book *book;
};

static inline void harness_start(struct harness *h)
{
	h->site = (struct fault_site){
		.store = h->store,
		.clock = &h->clock.clock,
		.holder = TEXT("h1"),
		.started_us = store_stamp(h->store),
		.limits = {.list_max = 3, .names_max = 4, .groups_max = 4},
		.skew_max_ms = 1000,
		.write_max_ms = 2000,
		.messages_max = 3,
		.messages_keep_ms = INT64_C(30) * 86400000,
	};
	h->intake = fault_intake_new(&(struct fault_intake_options){
		.site = &h->site,
		.executor = &h->queue.executor,
		.seed = (uint64_t)h->site.started_us,
	});
	h->book = fault_book_new(&h->site, TEXT("t"));
}

static inline void harness_end(struct harness *h)
{
	fault_book_free(h->book);
	fault_intake_free(h->intake);
}

static inline void harness_open(struct harness *h)
{
	clock_virtual_init(&h->clock, T0_US);
	h->store = naive_open(&h->clock.clock);
	task_queue_init(&h->queue);
	harness_start(h);
}

static inline void harness_close(struct harness *h)
{
	harness_end(h);
	store_close(h->store);
	task_queue_release(&h->queue);
}

/* As if the process had ended and begun again. */
static inline void harness_restart(struct harness *h)
{
	harness_end(h);
	clock_virtual_advance(&h->clock, 1000);
	harness_start(h);
}

static inline void harness_done(struct fault_submission *s)
{
	*(bool *)s->owner = true;
}

static inline struct fault_item harness_item(const char *id, const char *content)
{
	return (struct fault_item){
		.id = slice_of(id),
		.digest = hash128(content, strlen(content), 7),
		.facts = {.duration_us = -1, .statements = -1},
		.body_bytes = strlen(content),
		.packed = slice_of(content),
	};
}

static inline void harness_submit(struct harness *h, struct fault_item *items, size_t count)
{
	bool done = false;
	struct fault_submission s = {.tenant = TEXT("t"),
				     .items = items,
				     .count = count,
				     .done = harness_done,
				     .owner = &done};
	assert_int_equal(fault_intake_submit(h->intake, &s), 0);
	while (!done)
		task_queue_wait(&h->queue);
}

/* A report of a context and exception; 0: without duration and statements. Returns its date. */
static inline int64_t harness_report(struct harness *h, const char *id, const char *context,
				     const char *exception, int64_t duration_us, int64_t statements)
{
	struct fault_item item = harness_item(id, id);
	item.facts.texts[FAULT_CONTEXT] = slice_of(context);
	item.facts.texts[FAULT_EXCEPTION] = slice_of(exception);
	item.facts.duration_us = duration_us ? duration_us : -1;
	item.facts.statements = statements ? statements : -1;
	harness_submit(h, &item, 1);
	assert_int_equal(item.outcome, FAULT_TAKEN);
	return item.date_us;
}

static inline bool harness_nobody_is_dead(void *owner, struct slice holder)
{
	(void)owner, (void)holder;
	return false;
}

static inline int harness_pass_until(struct harness *h, int64_t until_ms)
{
	struct errbuf e = {""};
	const struct fault_owner_view view = {.until_ms = until_ms,
					      .is_dead = harness_nobody_is_dead};
	return fault_book_pass(h->book, &h->queue, &view, &e);
}

static inline void harness_pass(struct harness *h)
{
	assert_int_equal(harness_pass_until(h, INT64_MAX), 0);
}

/* As somebody has it who knows nothing but what is stored, or, with `own`, as the owner has it. */
static inline struct fault_day_view *harness_day(struct harness *h, int64_t day, bool own)
{
	struct errbuf e = {""};
	struct fault_day_view *view;
	struct fault_book *book = own ? h->book : fault_book_new(&h->site, TEXT("t"));
	assert_int_equal(fault_book_read_day(book, &h->queue, day, &view, &e), 0);
	if (!own)
		fault_book_free(book);
	return view;
}

static inline void assert_top(const struct fault_list *list, size_t at, uint64_t value,
			      const char *id)
{
	assert_true(at < list->count);
	assert_int_equal(list->list[at].value, value);
	assert_int_equal(list->list[at].id.len, strlen(id));
	assert_memory_equal(list->list[at].id.data, id, strlen(id));
}

/* Merges a group into another one; `into` empty: splits it off. */
static inline void harness_merge(struct harness *h, const char *group, const char *into)
{
	const struct fault_merge_change change = {slice_of(group), slice_of(into)};
	struct fault_merges merges;
	struct arena arena;
	struct errbuf e = {""};
	arena_init(&arena, FAULT_MERGES_MEMORY_BYTES);
	assert_int_equal(
		fault_merges_write(&h->site, &h->queue, TEXT("t"), &change, &arena, &merges, &e),
		0);
	arena_release(&arena);
}

static inline void put_cell(struct harness *h, enum table table, const struct fault_parts *key,
			    const struct fault_parts *column, struct slice value)
{
	struct store_write *write = store_write_new(h->store, 1 << 20);
	assert_int_equal(store_cell_put(write, table, &key->parts, &column->parts, value,
					store_stamp(h->store), 0),
			 0);
	assert_int_equal(store_write_wait(write, &h->queue), 0);
	store_write_free(write);
}

#endif
