#include "fault/groups.h"

#include <stdlib.h>

#include "base/hash_set.h"
#include "base/log.h"
#include "fault/book_private.h"
#include "store/wait.h"

enum {
	RETRIES_MAX = 10,
	LOOK_EVERY = 256, /* cells, at the clock */
	CELL_READ_MAX_BYTES = 4 << 20,
	OLDER_MAX = 500, /* groups that are asked for in one read */
};

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

struct book_groups_days {
	int64_t *list;
	size_t count, room;
};

static void book_groups_add_day(struct book_groups_days *days, int64_t day)
{
	GROW(days->list, days->room, days->count + 1);
	days->list[days->count++] = day;
}

/* A question: about all groups, or about one with those that it stands for. */
struct book_groups_reading {
	struct fault_book *book;
	struct task_queue *queue;
	struct fault_groups *groups;
	struct fault_group_history *history;
	const struct fault_merges *merges;
	struct slice *names; /* of the history: the one, and those that it stands for */
	size_t name_count;
	int64_t first_day, last_day;
	unsigned facts;
	int64_t deadline_us;
	struct errbuf *e;
	/* As the book was when the question began. */
	struct fault_version version;
	struct fault_tenures tenures;    /* by which cells are read */
	struct book_positions positions; /* by which `recounts` are counted; else empty */
	struct book_groups_days taken, recounts, stored;
	/* The day that is being read. */
	int64_t day;
	size_t looked_at, damaged;
	struct buf unpacked; /* the cell that is being read */
};

static int book_groups_look_at_clock(const struct fault_book *book, int64_t deadline_us,
				     struct errbuf *e)
{
	struct clock *clock = book->site->clock;
	if (!deadline_us || clock->mono_us(clock) < deadline_us)
		return 0;
	return errbuf_set(e, ERR_TIMEOUT, "the groups could not be looked through in time");
}

static int book_groups_check_time(struct book_groups_reading *r)
{
	if (r->looked_at++ % LOOK_EVERY)
		return 0;
	return book_groups_look_at_clock(r->book, r->deadline_us, r->e);
}

/* That of the group which stands for this one. */
static struct fault_group_sum *book_groups_sum_of(struct book_groups_reading *r, struct slice name)
{
	return book_groups_sum(r->groups, fault_merges_root(r->merges, name));
}

/* What is counted already. */
static int book_groups_take_names(struct book_groups_reading *r, const struct fault_names *names)
{
	int err = 0;
	for (size_t i = 0; i < r->name_count && !err; i++) {
		const struct fault_name *name = fault_names_find(names, r->names[i]);
		struct fault_tally tally = {0};
		err = name ? fault_names_tally(names, name, r->facts, &tally) : 0;
		book_groups_add_history(r->history, r->day, &tally);
		fault_tally_release(&tally);
	}
	if (r->history)
		return err;
	for (size_t at = 0; at < names->table.slot_count && !err; at++) {
		const struct fault_name *name = fault_names_at(names, at);
		struct fault_group_sum *sum = name ? book_groups_sum_of(r, name->name) : NULL;
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
	struct slice column = cell->column.part[0], value;
	struct fault_versioned versioned;
	struct fault_version version;
	struct fault_tally tally = {0};
	static const struct slice prefix = FAULT_GROUP_PREFIX;
	if (!slice_starts_with(column, prefix))
		return 0;
	struct slice name = {column.data + prefix.len, column.len - prefix.len};
	int err = fault_versioned_decode(cell->value, &r->unpacked, &versioned);
	err = err ? err : fault_versioned_choose(&versioned, &r->tenures, &value, &version);
	if (err == ERR_RETRY)
		return errbuf_set(r->e, err, "the counts of groups were written again meanwhile");
	err = err ? err : fault_tally_take(&tally, r->day * FAULT_DAY_US, r->facts, value);
	r->damaged += err != 0;
	if (!err && r->history) {
		book_groups_add_history(r->history, r->day, &tally);
	} else if (!err && tally.count) {
		struct fault_group_sum *sum = book_groups_sum_of(r, name);
		if (sum)
			fault_tally_merge(sum->tally, &tally, r->facts);
	}
	fault_tally_release(&tally);
	return book_groups_check_time(r);
}

/* All groups of a stored day. */
static int book_groups_read_row(struct book_groups_reading *r)
{
	const struct fault_book *book = r->book;
	struct fault_parts key;
	fault_summaries_key(&key, book->tenant, r->day, FAULT_ROW_GROUPS);
	return store_row_wait(book->site->store, r->queue, clock_wall_ms(book->site->clock),
			      TABLE_SUMMARIES, &key.parts, book_groups_take_cell, r, r->e);
}

/* One of a stored day. */
static int book_groups_read_cell(struct book_groups_reading *r, struct slice name)
{
	const struct fault_book *book = r->book;
	struct fault_parts key;
	struct buf column;
	struct store_read *read = store_read_new(book->site->store, CELL_READ_MAX_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	buf_init(&column, FAULT_COLUMN_MAX_BYTES);
	buf_append(&column, FAULT_GROUP_PREFIX.data, FAULT_GROUP_PREFIX.len);
	buf_append(&column, name.data, name.len);
	fault_summaries_key(&key, book->tenant, r->day, FAULT_ROW_GROUPS);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_SUMMARIES, .key = key.parts, .column = {{buf_slice(&column)}}};
	read->now_ms = clock_wall_ms(book->site->clock);
	int err = store_read_wait(read, r->queue);
	if (err)
		errbuf_set(r->e, err, "%s", store_read_sentence(read, err));
	else if (request->cell_get.found)
		err = book_groups_take_cell(&request->cell_get.cell, r);
	buf_release(&column);
	store_read_free(read);
	return err;
}

/* A cell of this day cannot be read. The owner will count the day from its reports, in its next
 * pass. This question begins again, and counts the day itself; unless some of them may be gone:
 * then it goes on without the cell. */
static int book_groups_look_at_damage(struct book_groups_reading *r)
{
	if (!r->damaged)
		return 0;
	pthread_mutex_lock(&r->book->lock);
	bool recounts = book_warn_damaged(r->book, r->day, r->damaged);
	pthread_mutex_unlock(&r->book->lock);
	if (!recounts) {
		r->damaged = 0;
		return 0;
	}
	fault_book_touch(r->book);
	return errbuf_set(r->e, ERR_RETRY,
			  "the counts of groups of a day cannot be read; the server makes them "
			  "again from the reports");
}

/* name: of the group that the history is of */
static int book_groups_read_stored(struct book_groups_reading *r, int64_t day, struct slice name)
{
	r->day = day;
	r->damaged = 0;
	r->looked_at = 0; /* at the clock once a day at least */
	int err = book_groups_check_time(r);
	err = err ? err : r->history ? book_groups_read_cell(r, name) : book_groups_read_row(r);
	return err ? err : book_groups_look_at_damage(r);
}

static int book_groups_count(struct book_groups_reading *r, int64_t day)
{
	struct fault_day *fresh = NULL;
	r->day = day;
	int err =
		book_count_day(r->book, &r->positions, r->queue, day, r->deadline_us, &fresh, r->e);
	err = err ? err : book_groups_take_names(r, &fresh->groups);
	fault_day_free(fresh);
	return err;
}

/* ---- Of several days ------------------------------------------------------------------------- */

static bool book_groups_days_have(const struct book_groups_days *days, int64_t day)
{
	for (size_t i = 0; i < days->count; i++)
		if (days->list[i] == day)
			return true;
	return false;
}

/* With the lock. Takes the days that are in memory, and copies what the others are read by. */
static int book_groups_begin(struct book_groups_reading *r)
{
	struct fault_book *book = r->book;
	int err = book_catch_up(book, r->queue, r->e);
	for (size_t i = 0; i < book->recount.count && !err; i++) {
		int64_t day = book->recount.list[i].day;
		if (day >= r->first_day && day <= r->last_day)
			book_groups_add_day(&r->recounts, day);
	}
	for (size_t i = 0; i < book->day_count && !err; i++) {
		const struct fault_day *day = book->days[i];
		r->day = day->day;
		if (r->day < r->first_day || r->day > r->last_day || !day->has_groups ||
		    book_days_have(&book->recount, r->day))
			continue;
		book_groups_add_day(&r->taken, r->day);
		err = book_groups_take_names(r, &day->groups);
	}
	if (err)
		return err;
	for (size_t i = 0; i < book->tenures.count; i++)
		fault_tenures_put(&r->tenures, book->tenures.list[i]);
	r->version = book->version;
	if (r->recounts.count)
		book_positions_copy(&r->positions, &book->positions);
	return 0;
}

static void book_groups_add_stored(struct book_groups_reading *r, int64_t day)
{
	if (!book_groups_days_have(&r->taken, day) && !book_groups_days_have(&r->recounts, day))
		book_groups_add_day(&r->stored, day);
}

static int book_groups_see_day(const struct store_cell *cell, void *owner)
{
	int64_t day;
	if (!fault_day_parse(cell->column.part[0], &day))
		book_groups_add_stored(owner, day);
	return 0;
}

/* Lists the days that are to be read: of one group those that checkpoints have noted. */
static int book_groups_list_stored(struct book_groups_reading *r, struct slice name)
{
	const struct fault_book *book = r->book;
	struct fault_parts key;
	r->stored.count = 0;
	if (r->history) {
		fault_groups_key(&key, book->tenant, name);
		return store_row_wait(book->site->store, r->queue, clock_wall_ms(book->site->clock),
				      TABLE_FAULT_GROUPS, &key.parts, book_groups_see_day, r, r->e);
	}
	for (int64_t day = r->first_day; day <= r->last_day; day++)
		book_groups_add_stored(r, day);
	return 0;
}

static int book_groups_read_all_stored(struct book_groups_reading *r, struct slice name)
{
	int err = book_groups_list_stored(r, name);
	for (size_t i = 0; i < r->stored.count && !err; i++)
		err = book_groups_read_stored(r, r->stored.list[i], name);
	return err;
}

static int book_groups_read_once(struct book_groups_reading *r)
{
	pthread_mutex_lock(&r->book->lock);
	int err = book_groups_begin(r);
	pthread_mutex_unlock(&r->book->lock);
	for (size_t i = 0; i < r->recounts.count && !err; i++)
		err = book_groups_count(r, r->recounts.list[i]);
	for (size_t i = 0; i < r->name_count && !err; i++)
		err = book_groups_read_all_stored(r, r->names[i]);
	return err || r->history ? err : book_groups_read_all_stored(r, SLICE(""));
}

/* Cells that were read are of checkpoints that were not known when the question began. If the book
 * does not know them by now it is to begin with the last checkpoint. */
static void book_groups_forget(struct book_groups_reading *r)
{
	struct fault_book *book = r->book;
	pthread_mutex_lock(&book->lock);
	if (book->version.tenure == r->version.tenure &&
	    book->version.checkpoint == r->version.checkpoint)
		book->owned = book->restored = false;
	pthread_mutex_unlock(&book->lock);
}

static void book_groups_release(struct book_groups_reading *r)
{
	if (r->history)
		fault_group_history_release(r->history);
	else
		fault_groups_release(r->groups);
	fault_tenures_release(&r->tenures);
	book_positions_release(&r->positions);
	r->taken.count = r->recounts.count = r->stored.count = 0;
}

/* Each damaged day lets the question begin again once, since from then on it is counted. */
static int book_groups_read(struct book_groups_reading *r)
{
	buf_init(&r->unpacked, FAULT_VERSIONED_MAX_BYTES);
	pthread_mutex_lock(&r->book->lock);
	/* Reports of a day that waited for a recount may have been collected since. */
	if (!r->book->owned && r->book->recount.count)
		r->book->restored = false;
	pthread_mutex_unlock(&r->book->lock);
	int err = book_groups_read_once(r);
	for (int i = 0; i < RETRIES_MAX && err == ERR_RETRY;) {
		if (!r->damaged) {
			book_groups_forget(r);
			i++;
		}
		r->damaged = 0;
		book_groups_release(r);
		err = book_groups_read_once(r);
	}
	fault_tenures_release(&r->tenures);
	book_positions_release(&r->positions);
	mem_free(r->taken.list);
	mem_free(r->recounts.list);
	mem_free(r->stored.list);
	buf_release(&r->unpacked);
	return err;
}

int fault_book_read_groups(struct fault_book *book, struct task_queue *queue,
			   const struct fault_groups_question *question,
			   struct fault_groups *groups, struct errbuf *e)
{
	struct book_groups_reading r = {.book = book,
					.queue = queue,
					.groups = groups,
					.first_day = question->first_day,
					.last_day = question->last_day,
					.facts = question->facts,
					.merges = question->merges,
					.deadline_us = question->deadline_us,
					.e = e};
	*groups = (struct fault_groups){0};
	return book_groups_read(&r);
}

static int book_groups_compare_days(const void *one, const void *other)
{
	const struct fault_group_day *a = one, *b = other;
	return (a->day > b->day) - (a->day < b->day);
}

/* Each group had its own entry of a day. */
static void book_groups_join_days(struct fault_group_history *history)
{
	size_t kept = 0;
	if (history->count)
		qsort(history->days, history->count, sizeof(*history->days),
		      book_groups_compare_days);
	for (size_t i = 0; i < history->count; i++) {
		const struct fault_group_day *day = &history->days[i];
		struct fault_group_day *last = kept ? &history->days[kept - 1] : NULL;
		if (!last || last->day != day->day) {
			history->days[kept++] = *day;
			continue;
		}
		last->count += day->count;
		for (size_t h = 0; h < FAULT_HOURS; h++)
			last->hours[h] += day->hours[h];
	}
	history->count = kept;
}

int fault_book_read_group(struct fault_book *book, struct task_queue *queue,
			  const struct fault_group_question *question,
			  struct fault_group_history *history, struct errbuf *e)
{
	struct book_groups_reading r = {.book = book,
					.queue = queue,
					.history = history,
					.first_day = INT64_MIN,
					.last_day = INT64_MAX,
					.facts = question->facts,
					.deadline_us = question->deadline_us,
					.e = e};
	*history = (struct fault_group_history){0};
	r.names = mem_alloc_array(fault_merges_room(question->merges), sizeof(*r.names));
	r.name_count = fault_merges_tree(question->merges, question->group, r.names);
	int err = book_groups_read(&r);
	mem_free(r.names);
	book_groups_join_days(history);
	history->merged = fault_merges_hash(question->merges, question->group);
	return err;
}

/* ---- Whether there are older reports --------------------------------------------------------- */

/* With the lock. No checkpoint may have noted these days yet. */
static void book_older_look_at_days(const struct fault_book *book, int64_t before,
				    struct fault_group_age *groups, size_t count)
{
	for (size_t i = 0; i < book->day_count; i++) {
		const struct fault_day *day = book->days[i];
		if (day->day >= before || !day->has_groups)
			continue;
		for (size_t at = 0; at < count; at++)
			groups[at].older = groups[at].older ||
					   fault_names_find(&day->groups, groups[at].group);
	}
}

/* Some of the groups: in each row of theirs the first day that a checkpoint has noted. */
static int book_older_read_some(struct fault_book *book, struct task_queue *queue, int64_t day,
				struct fault_group_age *groups, size_t count, struct errbuf *e)
{
	struct store_read *read = store_read_new(book->site->store, CELL_READ_MAX_BYTES);
	struct store_request *asked[OLDER_MAX];
	struct fault_parts key, before;
	fault_groups_column(&before, day);
	for (size_t i = 0; i < count; i++) {
		fault_groups_key(&key, book->tenant, groups[i].group);
		asked[i] = store_read_add(read, STORE_CELL_SCAN);
		ASSERT(asked[i]);
		asked[i]->cell_scan = (struct store_cell_scan){.table = TABLE_FAULT_GROUPS,
							       .key = key.parts,
							       .to = before.parts,
							       .limit = 1};
	}
	read->now_ms = clock_wall_ms(book->site->clock);
	int err = store_read_wait(read, queue);
	if (err)
		errbuf_set(e, err, "%s", store_read_sentence(read, err));
	for (size_t i = 0; i < count && !err; i++)
		groups[i].older = groups[i].older || asked[i]->cell_scan.count;
	store_read_free(read);
	return err;
}

static int book_older_read(struct fault_book *book, struct task_queue *queue, int64_t day,
			   struct fault_group_age *groups, size_t count, int64_t deadline_us,
			   struct errbuf *e)
{
	pthread_mutex_lock(&book->lock);
	int err = book_catch_up(book, queue, e);
	if (!err)
		book_older_look_at_days(book, day, groups, count);
	pthread_mutex_unlock(&book->lock);
	for (size_t at = 0; at < count && !err; at += OLDER_MAX) {
		size_t some = count - at < OLDER_MAX ? count - at : OLDER_MAX;
		err = book_groups_look_at_clock(book, deadline_us, e);
		err = err ? err : book_older_read_some(book, queue, day, groups + at, some, e);
	}
	return err;
}

/* Roots of which a group that is merged into them has older reports. */
static int book_older_read_merged(struct fault_book *book, struct task_queue *queue, int64_t day,
				  const struct fault_merges *merges, int64_t deadline_us,
				  struct hash_set *roots, struct errbuf *e)
{
	struct fault_group_age *ages = mem_alloc_array(merges->count, sizeof(*ages));
	for (size_t i = 0; i < merges->count; i++)
		ages[i] = (struct fault_group_age){merges->list[i].group, false};
	int err = book_older_read(book, queue, day, ages, merges->count, deadline_us, e);
	for (size_t i = 0; i < merges->count && !err; i++) {
		struct slice root = merges->list[i].root;
		if (ages[i].older)
			hash_set_add(roots, hash128(root.data, root.len, 0), FAULT_MERGES_MAX);
	}
	mem_free(ages);
	return err;
}

int fault_book_read_older(struct fault_book *book, struct task_queue *queue, int64_t day,
			  const struct fault_merges *merges, struct fault_group_age *groups,
			  size_t count, int64_t deadline_us, struct errbuf *e)
{
	struct hash_set roots = {0};
	int err = book_older_read(book, queue, day, groups, count, deadline_us, e);
	if (!err && merges && merges->count && count)
		err = book_older_read_merged(book, queue, day, merges, deadline_us, &roots, e);
	for (size_t i = 0; i < count && !err; i++)
		groups[i].older =
			groups[i].older ||
			hash_set_has(&roots, hash128(groups[i].group.data, groups[i].group.len, 0));
	hash_set_release(&roots);
	return err;
}
