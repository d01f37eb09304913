#include "fault/groups.h"

#include <stdlib.h>

#include "base/log.h"
#include "fault/book_private.h"
#include "store/wait.h"

enum { RETRIES_MAX = 10, LOOK_EVERY = 256 /* cells, at the clock */ };

/* ---- What is put together -------------------------------------------------------------------- */

void fault_groups_release(struct fault_groups *groups)
{
	for (size_t at = 0; at < groups->table.slot_count; at++) {
		struct fault_group_sum *sum = fault_groups_at(groups, at);
		if (!sum)
			continue;
		mem_free_slice(sum->name);
		fault_tally_release(sum->tally);
		mem_free(sum->tally);
	}
	hash_table_release(&groups->table);
	*groups = (struct fault_groups){0};
}

void fault_group_history_release(struct fault_group_history *history)
{
	fault_tally_release(&history->tally);
	mem_free(history->days);
	*history = (struct fault_group_history){0};
}

/* NULL: there are too many. */
static struct fault_group_sum *book_groups_sum(struct fault_groups *groups, struct slice name)
{
	bool added = false;
	struct hash128 hash = hash128(name.data, name.len, 0);
	struct fault_group_sum *sum = hash_table_find(&groups->table, hash);
	if (!sum && groups->table.count >= FAULT_GROUPS_READ_MAX) {
		groups->left_out++;
		return NULL;
	}
	if (!sum)
		sum = hash_table_add(&groups->table, hash, sizeof(*sum), &added);
	if (added)
		*sum = (struct fault_group_sum){.hash = hash,
						.name = mem_copy_slice(name),
						.tally = mem_zalloc(sizeof(*sum->tally))};
	return sum;
}

static void book_groups_add_history(struct fault_group_history *history, int64_t day,
				    const struct fault_tally *tally)
{
	if (!tally->count)
		return;
	GROW(history->days, history->room, history->count + 1);
	struct fault_group_day *added = &history->days[history->count++];
	*added = (struct fault_group_day){.day = day, .count = tally->count};
	memcpy(added->hours, tally->hours, sizeof(added->hours));
	fault_tally_merge(&history->tally, tally, FAULT_TALLY_ALL);
}

/* ---- Of one day ------------------------------------------------------------------------------ */

/* A question: about all groups, or about one. */
struct book_groups_reading {
	struct fault_book *book;
	struct task_queue *queue;
	const struct fault_tenures *tenures; /* by which cells are read */
	int64_t day;
	struct fault_groups *groups;
	struct fault_group_history *history;
	struct slice group;
	unsigned facts;
	int64_t deadline_us;
	size_t looked_at, damaged;
	struct errbuf *e;
};

static int book_groups_check_time(struct book_groups_reading *r)
{
	struct clock *clock = r->book->site->clock;
	if (!r->deadline_us || r->looked_at++ % LOOK_EVERY ||
	    clock->mono_us(clock) < r->deadline_us)
		return 0;
	return errbuf_set(r->e, ERR_TIMEOUT, "the groups could not be looked through in time");
}

/* The groups of a day that is in memory. */
static int book_groups_take_names(struct book_groups_reading *r, const struct fault_names *names)
{
	int err = 0;
	if (r->history) {
		const struct fault_name *name = fault_names_find(names, r->group);
		struct fault_tally tally = {0};
		err = name ? fault_names_tally(names, name, r->facts, &tally) : 0;
		book_groups_add_history(r->history, r->day, &tally);
		fault_tally_release(&tally);
		return err;
	}
	for (size_t at = 0; at < names->table.slot_count && !err; at++) {
		const struct fault_name *name = fault_names_at(names, at);
		struct fault_group_sum *sum = name ? book_groups_sum(r->groups, name->name) : NULL;
		err = book_groups_check_time(r);
		if (!err && sum)
			err = fault_names_tally(names, name, r->facts, sum->tally);
	}
	return err;
}

/* A cell of a row of groups. */
static int book_groups_take_cell(const struct store_cell *cell, void *owner)
{
	struct book_groups_reading *r = owner;
	static const struct slice prefix = SLICE("group.");
	struct slice column = cell->column.part[0], value;
	struct fault_versioned versioned;
	struct fault_version version;
	struct fault_tally tally = {0};
	if (column.len < prefix.len || memcmp(column.data, prefix.data, prefix.len) != 0)
		return 0;
	int err = fault_versioned_decode(cell->value, &versioned);
	err = err ? err : fault_versioned_choose(&versioned, r->tenures, &value, &version);
	if (err == ERR_RETRY)
		return err;
	err = err ? err : fault_tally_take(&tally, r->day * FAULT_DAY_US, value);
	r->damaged += err != 0;
	if (!err && r->history) {
		book_groups_add_history(r->history, r->day, &tally);
	} else if (!err && tally.count) {
		struct fault_group_sum *sum =
			book_groups_sum(r->groups, (struct slice){column.data + prefix.len,
								  column.len - prefix.len});
		if (sum)
			fault_tally_merge(sum->tally, &tally, r->facts);
	}
	fault_tally_release(&tally);
	return book_groups_check_time(r);
}

/* One cell of a day that is not in memory. */
static int book_groups_read_cell(struct book_groups_reading *r)
{
	struct fault_parts key;
	struct buf column;
	struct store_request *request;
	buf_init(&column, FAULT_COLUMN_MAX_BYTES);
	buf_printf(&column, "group.%.*s", (int)r->group.len, r->group.data);
	fault_summaries_key(&key, r->book->tenant, r->day, FAULT_ROW_GROUPS);
	book_begin_read(r->book);
	request = book_add_request(r->book, STORE_CELL_GET);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_SUMMARIES, .key = key.parts, .column = {{buf_slice(&column)}}};
	int err = book_read_wait(r->book, r->queue, r->e);
	if (!err && request->cell_get.found)
		err = book_groups_take_cell(&request->cell_get.cell, r);
	buf_release(&column);
	return err;
}

/* Takes a day that is in the store only. Without the lock, since a question may be about many days.
 */
static int book_groups_read_row(struct book_groups_reading *r)
{
	const struct fault_book *book = r->book;
	struct fault_parts key;
	fault_summaries_key(&key, book->tenant, r->day, FAULT_ROW_GROUPS);
	return store_row_wait(book->site->store, r->queue, clock_wall_ms(book->site->clock),
			      TABLE_SUMMARIES, &key.parts, book_groups_take_cell, r, r->e);
}

/* With the lock. The next pass counts a day anew of which a cell cannot be read. The question
 * begins again, and counts that day itself. */
static int book_groups_look_at_damage(struct book_groups_reading *r)
{
	if (!r->damaged)
		return 0;
	book_warn_damaged(r->book, r->day, r->damaged);
	fault_book_touch(r->book);
	return errbuf_set(r->e, ERR_RETRY,
			  "the counts of groups of a day cannot be read; the server makes them "
			  "again from the reports");
}

/* With the lock. Takes a day that is in memory, or that waits to be counted anew. *here false: the
 * day is in the store only, and nothing was taken. */
static int book_groups_read_here(struct book_groups_reading *r, int64_t number, bool *here)
{
	const struct fault_day *day = book_find_day(r->book, number);
	struct fault_day *fresh = NULL;
	r->day = number;
	r->damaged = 0;
	*here = true;
	if (book_days_have(&r->book->recount, number)) {
		int err = book_count_day(r->book, r->queue, number, &fresh, r->e);
		err = err ? err : book_groups_take_names(r, &fresh->groups);
		fault_day_free(fresh);
		return err;
	}
	*here = day && day->has_groups;
	return *here ? book_groups_take_names(r, &day->groups) : 0;
}

/* ---- Of several days ------------------------------------------------------------------------- */

struct book_groups_days {
	int64_t *list;
	size_t count, room;
};

static void book_groups_add_day(struct book_groups_days *days, int64_t day)
{
	GROW(days->list, days->room, days->count + 1);
	days->list[days->count++] = day;
}

static int book_groups_take_day(const struct store_cell *cell, void *owner)
{
	int64_t day;
	if (!fault_day_parse(cell->column.part[0], &day))
		book_groups_add_day(owner, day);
	return 0;
}

static int book_groups_compare_days(const void *one, const void *other)
{
	int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
	return (a > b) - (a < b);
}

/* Lists the days on which a group may have reports: those that checkpoints have noted, and those of
 * which the book knows more than the last checkpoint. */
static int book_groups_list_days(struct book_groups_reading *r, struct book_groups_days *days)
{
	const struct fault_book *book = r->book;
	struct fault_parts key;
	fault_groups_key(&key, book->tenant, r->group);
	int err = store_row_wait(book->site->store, r->queue, clock_wall_ms(book->site->clock),
				 TABLE_FAULT_GROUPS, &key.parts, book_groups_take_day, days, r->e);
	for (size_t i = 0; i < book->day_count && !err; i++)
		book_groups_add_day(days, book->days[i]->day);
	for (size_t i = 0; i < book->recount.count && !err; i++)
		book_groups_add_day(days, book->recount.list[i].day);
	if (days->count)
		qsort(days->list, days->count, sizeof(*days->list), book_groups_compare_days);
	return err;
}

static int book_groups_read_history(struct book_groups_reading *r)
{
	struct book_groups_days days = {NULL, 0, 0};
	r->damaged = 0;
	int err = book_catch_up(r->book, r->queue, r->e);
	r->tenures = &r->book->tenures;
	err = err ? err : book_groups_list_days(r, &days);
	for (size_t i = 0; i < days.count && !err; i++) {
		bool here;
		if (i > 0 && days.list[i] == days.list[i - 1])
			continue;
		err = book_groups_read_here(r, days.list[i], &here);
		err = err || here ? err : book_groups_read_cell(r);
		err = err ? err : book_groups_look_at_damage(r);
	}
	mem_free(days.list);
	return err;
}

/* With the lock. Takes the days that the book has, and lists the others, which are to be read by
 * these tenures. */
static int book_groups_begin_all(struct book_groups_reading *r,
				 const struct fault_groups_question *question,
				 struct book_groups_days *others, struct fault_tenures *tenures)
{
	r->damaged = 0;
	int err = book_catch_up(r->book, r->queue, r->e);
	for (int64_t day = question->first_day; day <= question->last_day && !err; day++) {
		bool here;
		err = book_groups_read_here(r, day, &here);
		if (!err && !here)
			book_groups_add_day(others, day);
	}
	for (size_t i = 0; i < r->book->tenures.count && !err; i++)
		fault_tenures_put(tenures, r->book->tenures.list[i]);
	return err;
}

static int book_groups_read_all(struct book_groups_reading *r,
				const struct fault_groups_question *question)
{
	struct book_groups_days others = {NULL, 0, 0};
	struct fault_tenures tenures = {NULL, 0, 0};
	pthread_mutex_lock(&r->book->lock);
	int err = book_groups_begin_all(r, question, &others, &tenures);
	pthread_mutex_unlock(&r->book->lock);
	r->tenures = &tenures;
	for (size_t i = 0; i < others.count && !err; i++) {
		r->looked_at = 0; /* once a day at least */
		r->day = others.list[i];
		err = book_groups_check_time(r);
		err = err ? err : book_groups_read_row(r);
		if (err || !r->damaged)
			continue;
		pthread_mutex_lock(&r->book->lock);
		err = book_groups_look_at_damage(r);
		pthread_mutex_unlock(&r->book->lock);
	}
	mem_free(others.list);
	fault_tenures_release(&tenures);
	return err;
}

/* With the lock. The cells that were read are of checkpoints that the book does not know, so it is
 * to begin with the last checkpoint. Damage alone is no reason for that. */
static void book_groups_forget(struct book_groups_reading *r)
{
	if (!r->damaged)
		r->book->owned = r->book->restored = false;
}

int fault_book_read_groups(struct fault_book *book, struct task_queue *queue,
			   const struct fault_groups_question *question,
			   struct fault_groups *groups, struct errbuf *e)
{
	struct book_groups_reading r = {.book = book,
					.queue = queue,
					.groups = groups,
					.facts = question->facts,
					.deadline_us = question->deadline_us,
					.e = e};
	ASSERT(question->last_day - question->first_day < FAULT_GROUPS_DAYS_MAX);
	*groups = (struct fault_groups){0};
	int err = book_groups_read_all(&r, question);
	for (int i = 0; i < RETRIES_MAX && err == ERR_RETRY; i++) {
		fault_groups_release(groups);
		pthread_mutex_lock(&book->lock);
		book_groups_forget(&r);
		pthread_mutex_unlock(&book->lock);
		err = book_groups_read_all(&r, question);
	}
	return err;
}

int fault_book_read_group(struct fault_book *book, struct task_queue *queue, struct slice group,
			  struct fault_group_history *history, struct errbuf *e)
{
	struct book_groups_reading r = {.book = book,
					.queue = queue,
					.history = history,
					.group = group,
					.facts = FAULT_TALLY_ALL,
					.e = e};
	*history = (struct fault_group_history){0};
	pthread_mutex_lock(&book->lock);
	int err = book_groups_read_history(&r);
	for (int i = 0; i < RETRIES_MAX && err == ERR_RETRY; i++) {
		fault_group_history_release(history);
		book_groups_forget(&r);
		err = book_groups_read_history(&r);
	}
	pthread_mutex_unlock(&book->lock);
	return err;
}
