/* What the book reads: its checkpoint, writers and their arrivals, which arrivals an id has. */
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/book_private.h"
#include "fault/sealed.h"
#include "store/wait.h"

enum {
	RESTORES_MAX = 20, /* while the owner goes on writing checkpoints */
	ARRIVALS_PRESET = 1000,
	IDS_MAX = 1000, /* of one read */
	WRITERS_MAX = 200,
	HOLES_MAX = 1000, /* looked at in a round; more where one writer has more */
};

/* ---- Lists of days --------------------------------------------------------------------------- */

bool book_days_have(const struct book_days *days, int64_t day)
{
	for (size_t i = 0; i < days->count; i++)
		if (days->list[i].day == day)
			return true;
	return false;
}

void book_days_add(struct book_days *days, int64_t day, int64_t due_ms)
{
	if (book_days_have(days, day))
		return;
	GROW(days->list, days->room, days->count + 1);
	days->list[days->count++] = (struct book_day){day, due_ms};
}

void book_days_remove(struct book_days *days, int64_t day)
{
	for (size_t i = 0; i < days->count; i++) {
		if (days->list[i].day != day)
			continue;
		days->list[i] = days->list[--days->count];
		return;
	}
}

void book_recount_later(struct fault_book *book, int64_t day)
{
	if (day >= book->collected_day)
		book_days_add(&book->recount, day, 0);
}

/* ---- Reading --------------------------------------------------------------------------------- */

void book_begin_read(struct fault_book *book)
{
	store_read_reset(book->read);
	book->read->now_ms = clock_wall_ms(book->site->clock);
}

struct store_request *book_add_request(struct fault_book *book, enum store_op op)
{
	struct store_request *request = store_read_add(book->read, op);
	ASSERT(request); /* rounds are small beside the read's memory */
	return request;
}

int book_read_wait(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	int err = store_read_wait(book->read, queue);
	return err ? errbuf_set(e, err, "%s", store_read_sentence(book->read, err)) : 0;
}

/* ---- Days ------------------------------------------------------------------------------------ */

struct fault_day *book_find_day(const struct fault_book *book, int64_t day)
{
	for (size_t i = 0; i < book->day_count; i++)
		if (book->days[i]->day == day)
			return book->days[i];
	return NULL;
}

void book_forget_day(struct fault_book *book, int64_t day)
{
	for (size_t i = 0; i < book->day_count; i++) {
		if (book->days[i]->day != day)
			continue;
		fault_day_free(book->days[i]);
		book->days[i] = book->days[--book->day_count];
		return;
	}
}

struct book_day_reading {
	struct fault_book *book;
	struct fault_day *day;
	enum fault_row row;
	size_t damaged;
	struct buf unpacked; /* the cell that is being read */
};

static int book_take_summary(const struct store_cell *cell, void *owner)
{
	struct book_day_reading *reading = owner;
	struct fault_versioned versioned;
	struct fault_version version;
	struct slice value;
	if (fault_versioned_decode(cell->value, &reading->unpacked, &versioned)) {
		reading->damaged++;
		return 0;
	}
	int err = fault_versioned_choose(&versioned, &reading->book->tenures, &value, &version);
	if (!err &&
	    fault_day_load(reading->day, reading->row, cell->column.part[0], value, version))
		reading->damaged++;
	return err;
}

static int book_read_summaries(struct book_day_reading *reading, enum fault_row row,
			       struct task_queue *queue, struct errbuf *e)
{
	const struct fault_book *book = reading->book;
	struct fault_parts key;
	reading->row = row;
	buf_init(&reading->unpacked, FAULT_VERSIONED_MAX_BYTES);
	fault_summaries_key(&key, book->tenant, reading->day->day, row);
	int err = store_row_wait(book->site->store, queue, clock_wall_ms(book->site->clock),
				 TABLE_SUMMARIES, &key.parts, book_take_summary, reading, e);
	buf_release(&reading->unpacked);
	return err;
}

/* Raw is the truth: what cannot be read is counted from the reports, if they are all there. */
bool book_warn_damaged(struct fault_book *book, int64_t day, size_t cells)
{
	char text[FAULT_DAY_TEXT_BYTES + 1];
	bool recounts = day >= book->collected_day;
	fault_day_text(day, text);
	log_warn("faults: %zu cells of the summary of %s (table summaries, tenant " SHOWN
		 ") cannot be read; %s",
		 cells, text, SHOWN_OF(book->tenant),
		 recounts ? "the server recounts the day from its reports"
			  : "they are left out, since reports of the day may have been collected");
	book_recount_later(book, day);
	return recounts;
}

int book_load_day(struct fault_book *book, struct task_queue *queue, int64_t day,
		  struct fault_day **to, struct errbuf *e)
{
	*to = book_find_day(book, day);
	if (*to)
		return 0;
	struct book_day_reading reading = {.book = book,
					   .day = fault_day_new(day, &book->site->limits)};
	int err = book_read_summaries(&reading, FAULT_ROW_DAY, queue, e);
	if (!err && !reading.day->closed)
		err = book_read_summaries(&reading, FAULT_ROW_VOLUMES, queue, e);
	reading.day->has_groups = !reading.day->closed;
	if (!err && !reading.day->closed)
		err = book_read_summaries(&reading, FAULT_ROW_GROUPS, queue, e);
	if (err) {
		fault_day_free(reading.day);
		return err;
	}
	if (reading.damaged)
		reading.day->unreadable = !book_warn_damaged(book, day, reading.damaged);
	else if (!reading.day->closed && fault_day_lacks_groups(reading.day))
		book_recount_later(book, day);
	GROW(book->days, book->day_room, book->day_count + 1);
	book->days[book->day_count++] = *to = reading.day;
	return 0;
}

int book_load_groups(struct fault_book *book, struct task_queue *queue, struct fault_day *day,
		     struct errbuf *e)
{
	struct book_day_reading reading = {.book = book, .day = day};
	if (day->has_groups)
		return 0;
	int err = book_read_summaries(&reading, FAULT_ROW_GROUPS, queue, e);
	day->has_groups = !err;
	if (!err && reading.damaged)
		day->unreadable |= !book_warn_damaged(book, day->day, reading.damaged);
	return err;
}

/* ---- Writers --------------------------------------------------------------------------------- */

/* Writer 0 is none: its cell says when reports were erased last (erase.h). A book that was begun
 * before that has them in its counts; the checkpoint has not. */
static int book_take_erasure(struct fault_book *book, int64_t stamp_us)
{
	bool others = !book->owned && stamp_us != book->erased_us;
	bool begins = others && book->restored;
	book->erased_us = stamp_us;
	if (others)
		book_news_erase(book, NULL);
	return begins ? ERR_RETRY : 0;
}

/* One that had ended before the checkpoint was read, and is not in it, was in an earlier one as a
 * whole. Of one that has ended since nobody knows whether the checkpoint was before or after. */
static int book_take_writer(const struct store_cell *cell, void *owner)
{
	struct fault_book *book = owner;
	struct fault_writer_cell read;
	uint64_t number = fault_part_number(cell->column.part[0]);
	struct book_writer *writer = book_find_writer(&book->positions, number);
	if (!number)
		return book_take_erasure(book, cell->stamp_us);
	int err = fault_writer_cell_decode(cell->value, &read);
	if (err)
		return err;
	bool known = writer && (writer->kept || writer->ended);
	bool ended = read.state == FAULT_WRITER_ENDED;
	if (book->restored && ended && !known)
		return ERR_RETRY;
	if (!writer) {
		writer = book_add_writer(&book->positions, number);
		writer->next = ended ? read.next : 0;
		writer->last_us = ended ? read.last_us : INT64_MIN;
	}
	if (!writer->holder)
		writer->holder = mem_copy_text(read.holder);
	writer->began_us = read.began_us;
	writer->ended = ended;
	writer->closed = read.state == FAULT_WRITER_CLOSED;
	writer->closed_us = cell->stamp_us;
	writer->end = read.next;
	return 0;
}

static int book_read_writers(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct fault_parts key;
	fault_writers_key(&key, book->tenant);
	int err = store_row_wait(book->site->store, queue, clock_wall_ms(book->site->clock),
				 TABLE_REPORT_WRITERS, &key.parts, book_take_writer, book, e);
	if (err == ERR_DAMAGED || err == ERR_VERSION)
		errbuf_set(e, err,
			   "a writer of tenant " SHOWN " (table report_writers) cannot be read: %s",
			   SHOWN_OF(book->tenant), err_text(err));
	return err;
}

/* ---- The checkpoint -------------------------------------------------------------------------- */

void book_forget(struct fault_book *book)
{
	book_news_forget(book);
	book_positions_clear(&book->positions);
	while (book->day_count)
		fault_day_free(book->days[--book->day_count]);
	book->arrived_count = 0;
	book->open.count = book->recount.count = book->clear.count = 0;
	book->late_count = 0;
	book->minutes = book->minutes_closing = 0;
	book->collected_day = 0;
	fault_tenures_release(&book->tenures);
	book->version = (struct fault_version){0, 0};
	book->owned = book->restored = book->changed = false;
}

struct book_checkpoint_reading {
	struct fault_book *book;
	struct buf last; /* the value of the last tenure that says where it is */
};

static int book_take_tenure(const struct store_cell *cell, struct book_checkpoint_reading *reading)
{
	struct fault_book *book = reading->book;
	uint64_t tenure = fault_part_number(cell->column.part[0]);
	struct book_cell read;
	int err = book_cell_begin(cell->value, &read);
	if (err)
		return err;
	fault_tenures_put(&book->tenures, (struct fault_version){tenure, read.checkpoint});
	if (!read.whole || book->version.tenure)
		return 0;
	book->version = (struct fault_version){tenure, read.checkpoint};
	buf_append(&reading->last, cell->value.data, cell->value.len);
	return 0;
}

/* The newest tenure first, since the read may take several slices: those before it are over then,
 * and their last checkpoints stay as they are. */
static int book_read_tenures(struct book_checkpoint_reading *reading, struct task_queue *queue,
			     struct errbuf *e)
{
	struct fault_book *book = reading->book;
	struct fault_parts key;
	struct store_request *request;
	int err;
	fault_books_key(&key, book->tenant);
	book_begin_read(book);
	request = book_add_request(book, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_FAULT_BOOKS, .key = key.parts, .backward = true};
	do {
		err = book_read_wait(book, queue, e);
		for (size_t i = 0; i < request->cell_scan.count && !err; i++)
			err = book_take_tenure(&request->cell_scan.cells[i], reading);
	} while (!err && request->more);
	return err;
}

static int book_read_checkpoint(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	struct book_checkpoint_reading reading = {.book = book};
	struct book_cell cell;
	buf_init(&reading.last, STORE_VALUE_MAX_BYTES);
	int err = book_read_tenures(&reading, queue, e);
	if (!err && reading.last.len) {
		err = book_cell_begin(buf_slice(&reading.last), &cell);
		err = err ? err : book_cell_take(book, &cell);
	}
	if (err == ERR_DAMAGED || err == ERR_VERSION)
		errbuf_set(e, err,
			   "the book of tenant " SHOWN " (table fault_books) cannot be read: %s",
			   SHOWN_OF(book->tenant), err_text(err));
	buf_release(&reading.last);
	return err;
}

static int book_restore_once(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	int64_t begun_ms = clock_mono_ms(book->site->clock);
	book_forget(book);
	int err = book_read_writers(book, queue, e);
	err = err ? err : book_read_checkpoint(book, queue, e);
	for (size_t i = 0; i < book->open.count && !err; i++) {
		struct fault_day *day;
		err = book_load_day(book, queue, book->open.list[i].day, &day, e);
	}
	/* Volumes of days that have been closed since may be gone. */
	if (!err && clock_mono_ms(book->site->clock) - begun_ms >= STORE_QUERY_DEADLINE_MAX_MS)
		err = ERR_RETRY;
	for (size_t i = 0; i < book->positions.writer_count; i++)
		book->positions.writers[i].whole_runs =
			book_whole_runs(&book->positions.writers[i]);
	book->restored = !err;
	return err;
}

int book_restore(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	int err = ERR_RETRY;
	for (int i = 0; i < RESTORES_MAX && err == ERR_RETRY; i++)
		err = book_restore_once(book, queue, e);
	if (err == ERR_RETRY)
		errbuf_set(e, err,
			   "the owner of tenant " SHOWN " writes checkpoints faster than "
			   "they can be read",
			   SHOWN_OF(book->tenant));
	return err;
}

/* ---- Arrivals -------------------------------------------------------------------------------- */

/* What is asked of a writer in one round. */
struct book_round {
	struct book_writer *writer;
	struct store_request *runs[2]; /* the row of `next`, and the one after it */
	struct store_request **holes;
	size_t hole_count;
	struct fault_parts keys[2], from;
	/* Whether the run of `next` is sealed, and of each hole its run. */
	struct fault_run_question sealed, **holes_sealed;
};

static size_t book_slice(const struct fault_book *book)
{
	return book->site->slice_arrivals ? book->site->slice_arrivals : ARRIVALS_PRESET;
}

static struct store_request *book_ask_run(struct fault_book *book, struct book_round *round,
					  size_t which)
{
	struct fault_place place = {round->writer->writer, round->writer->next};
	place.sequence = ((place.sequence >> FAULT_RUN_BITS) + which) << FAULT_RUN_BITS;
	fault_arrivals_key(&round->keys[which], book->tenant, place);
	struct store_request *request = book_add_request(book, STORE_CELL_SCAN);
	request->cell_scan = (struct store_cell_scan){.table = TABLE_REPORT_ARRIVALS,
						      .key = round->keys[which].parts,
						      .limit = book_slice(book)};
	if (which == 0) {
		fault_arrivals_column(&round->from, round->writer->next);
		request->cell_scan.from = round->from.parts;
	}
	return request;
}

/* The arrivals of a sealed run may be gone. */
static void book_ask_sealed(struct fault_book *book, const struct book_writer *writer,
			    uint64_t sequence, struct fault_run_question *question)
{
	struct fault_place place = {writer->writer, sequence};
	fault_run_ask(question, book->read, book->tenant, place);
}

static bool book_is_sealed(const struct fault_run_question *question)
{
	struct fault_run_cell cell;
	return fault_run_answer(question, &cell) != ERR_NOT_FOUND;
}

static struct fault_run_question *book_ask_hole_sealed(struct fault_book *book,
						       struct book_round *round, size_t i)
{
	const uint64_t *holes = round->writer->holes;
	if (i && holes[i] >> FAULT_RUN_BITS == holes[i - 1] >> FAULT_RUN_BITS)
		return round->holes_sealed[i - 1];
	struct fault_run_question *question = arena_alloc(&book->arena, sizeof(*question));
	ASSERT(question);
	book_ask_sealed(book, round->writer, holes[i], question);
	return question;
}

static void book_ask_holes(struct fault_book *book, struct book_round *round)
{
	size_t count = round->writer->hole_count;
	round->hole_count = count;
	round->holes = arena_alloc(&book->arena, (count + 1) * sizeof(*round->holes));
	round->holes_sealed = arena_alloc(&book->arena, (count + 1) * sizeof(*round->holes_sealed));
	ASSERT(round->holes && round->holes_sealed);
	for (size_t i = 0; i < count; i++) {
		struct fault_parts *parts = arena_alloc(&book->arena, 2 * sizeof(*parts));
		ASSERT(parts);
		struct fault_place place = {round->writer->writer, round->writer->holes[i]};
		fault_arrivals_key(&parts[0], book->tenant, place);
		fault_arrivals_column(&parts[1], place.sequence);
		round->holes_sealed[i] = book_ask_hole_sealed(book, round, i);
		round->holes[i] = book_add_request(book, STORE_CELL_GET);
		round->holes[i]->cell_get = (struct store_cell_get){.table = TABLE_REPORT_ARRIVALS,
								    .key = parts[0].parts,
								    .column = parts[1].parts};
	}
}

static void book_add_arrived(struct fault_book *book, struct book_writer *writer, uint64_t sequence,
			     struct slice value)
{
	struct book_arrived arrived = {.place = {writer->writer, sequence}};
	book->changed = true;
	if (fault_arrival_decode(value, &arrived.arrival)) {
		stat_add(STAT_fault_arrivals_damaged, 1);
		log_warn("faults: report %llu of writer %016llx of tenant " SHOWN
			 " (table report_arrivals) cannot be read; it is left out",
			 (unsigned long long)sequence, (unsigned long long)writer->writer,
			 SHOWN_OF(book->tenant));
		return;
	}
	if (arrived.arrival.is_void)
		return;
	writer->last_us = larger_of(writer->last_us, arrived.arrival.date_us);
	GROW(book->arrived, book->arrived_room, book->arrived_count + 1);
	book->arrived[book->arrived_count++] = arrived;
}

static int book_add_holes(struct fault_book *book, struct book_writer *writer, uint64_t to,
			  struct errbuf *e)
{
	if (to - writer->next + writer->hole_count > BOOK_HOLES_MAX)
		return errbuf_set(e, ERR_DAMAGED,
				  "of writer %016llx of tenant " SHOWN " (table report_arrivals) "
				  "too many reports before number %llu are not there",
				  (unsigned long long)writer->writer, SHOWN_OF(book->tenant),
				  (unsigned long long)to);
	GROW(writer->holes, writer->hole_room, writer->hole_count + (size_t)(to - writer->next));
	while (writer->next < to)
		writer->holes[writer->hole_count++] = writer->next++;
	return 0;
}

/* *cut: there may be more in this row. */
static int book_take_run(struct fault_book *book, struct book_writer *writer,
			 const struct store_request *request, bool *cut, struct errbuf *e)
{
	const struct store_cell_scan *scan = &request->cell_scan;
	int err = 0;
	for (size_t i = 0; i < scan->count && !err; i++) {
		uint64_t sequence = fault_part_number(scan->cells[i].column.part[0]);
		if (sequence < writer->next)
			continue;
		err = book_add_holes(book, writer, sequence, e);
		if (!err) {
			writer->next = sequence + 1;
			book_add_arrived(book, writer, sequence, scan->cells[i].value);
		}
	}
	*cut = request->more || scan->count >= scan->limit;
	return err;
}

/* *gone: what the book lacks went with the arrivals of a sealed run. */
static void book_take_holes(struct fault_book *book, struct book_round *round, bool *more,
			    bool *gone)
{
	struct book_writer *writer = round->writer;
	size_t left = 0;
	for (size_t i = 0; i < writer->hole_count; i++) {
		const struct store_request *request =
			i < round->hole_count ? round->holes[i] : NULL;
		*more = *more || (request && request->more);
		if (request && request->cell_get.found) {
			book_add_arrived(book, writer, writer->holes[i],
					 request->cell_get.cell.value);
			continue;
		}
		*gone = *gone || (request && book_is_sealed(round->holes_sealed[i]));
		writer->holes[left++] = writer->holes[i];
	}
	writer->hole_count = left;
}

/* The holes first: what was read of the runs makes new ones. */
static int book_take_round(struct fault_book *book, struct book_round *round, bool *more,
			   struct errbuf *e)
{
	struct book_writer *writer = round->writer;
	bool cut[2] = {false, false}, gone = false, left_of_holes = false;
	uint64_t run = writer->next >> FAULT_RUN_BITS;
	book_take_holes(book, round, &left_of_holes, &gone);
	int err = book_take_run(book, writer, round->runs[0], &cut[0], e);
	if (!err && !cut[0] && writer->next >> FAULT_RUN_BITS == run &&
	    !book_writer_is_over(writer))
		gone = gone || book_is_sealed(&round->sealed);
	if (!err && gone)
		return ERR_RETRY; /* a checkpoint has it */
	if (!err && !cut[0])
		err = book_take_run(book, writer, round->runs[1], &cut[1], e);
	/* It has come to another row: the one after that was not asked for. */
	bool entered = writer->next >> FAULT_RUN_BITS != run;
	bool left = left_of_holes || cut[0] || cut[1] || entered;
	/* Nothing comes any more of what was not there. */
	if (!err && !left && writer->ended && writer->next >= writer->end)
		writer->hole_count = 0;
	*more = *more || left;
	return err;
}

/* What the rounds bring is added as a whole, or, after an error, not at all. */
static int book_take_rounds(struct fault_book *book, struct task_queue *queue,
			    struct book_round *rounds, size_t count, bool *more, struct errbuf *e)
{
	struct book_positions before;
	bool changed = book->changed;
	int err = book_read_wait(book, queue, e);
	if (err)
		return err;
	book_positions_copy(&before, &book->positions);
	for (size_t i = 0; i < count && !err; i++)
		err = book_take_round(book, &rounds[i], more, e);
	err = err ? err : book_count(book, queue, e);
	book->arrived_count = 0;
	if (err) {
		book_positions_release(&book->positions);
		book->positions = before;
		book->changed = changed;
		return err;
	}
	book_positions_release(&before);
	return 0;
}

/* One round of some of the writers. *more: there may be more of them. */
static int book_read_some(struct fault_book *book, struct task_queue *queue, size_t *at, bool *more,
			  struct errbuf *e)
{
	size_t count = 0, holes = 0;
	struct book_round *rounds = arena_alloc(&book->arena, WRITERS_MAX * sizeof(*rounds));
	ASSERT(rounds);
	book_begin_read(book);
	for (; *at < book->positions.writer_count && count < WRITERS_MAX && holes < HOLES_MAX;
	     ++*at) {
		if (book_writer_is_over(&book->positions.writers[*at]))
			continue;
		struct book_round *round = &rounds[count++];
		*round = (struct book_round){.writer = &book->positions.writers[*at]};
		/* Requests are answered one after the other: whatever is seen of the second has
		 * all before it in the first, where the store writes in order. */
		round->runs[1] = book_ask_run(book, round, 1);
		round->runs[0] = book_ask_run(book, round, 0);
		book_ask_sealed(book, round->writer, round->writer->next, &round->sealed);
		book_ask_holes(book, round);
		holes += round->hole_count;
	}
	return count ? book_take_rounds(book, queue, rounds, count, more, e) : 0;
}

static int book_catch_up_once(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	int err = book->restored ? 0 : book_restore(book, queue, e);
	err = err ? err : book_read_writers(book, queue, e);
	for (bool more = true; more && !err;) {
		more = false;
		for (size_t at = 0; at < book->positions.writer_count && !err;) {
			arena_reset(&book->arena);
			err = book_read_some(book, queue, &at, &more, e);
		}
	}
	return err;
}

int book_catch_up(struct fault_book *book, struct task_queue *queue, struct errbuf *e)
{
	int err = ERR_RETRY;
	for (int i = 0; i < RESTORES_MAX && err == ERR_RETRY; i++) {
		err = book_catch_up_once(book, queue, e);
		if (err == ERR_RETRY)
			book->owned = book->restored = false;
	}
	if (!err)
		book_news_caught_up(book, queue);
	return err;
}

/* ---- Ids ------------------------------------------------------------------------------------- */

struct book_id_request {
	struct store_request *request;
	struct fault_parts key, from, to;
	bool over; /* all of it has come */
};

/* There are some few. */
static int book_take_bug(struct arena *arena, const struct fault_oops_bug *bug,
			 struct book_listings *to)
{
	struct fault_oops_bug *bugs = arena_alloc(arena, (to->bug_count + 1) * sizeof(*bugs));
	if (!bugs)
		return ERR_LIMIT;
	memcpy(bugs, to->bugs ? to->bugs : bugs, to->bug_count * sizeof(*bugs));
	to->bugs = bugs;
	bugs[to->bug_count] = *bug;
	return fault_oops_bug_keep(&bugs[to->bug_count++], arena);
}

/* What a slice gives comes behind what those before it gave. */
static int book_take_listings(struct arena *arena, const struct store_request *request,
			      struct book_listings *to)
{
	const struct store_cell_scan *scan = &request->cell_scan;
	struct fault_listing *list =
		arena_alloc(arena, (to->count + scan->count + 1) * sizeof(*list));
	if (!list)
		return ERR_LIMIT;
	memcpy(list, to->list ? to->list : list, to->count * sizeof(*list));
	to->list = list;
	for (size_t i = 0; i < scan->count; i++) {
		struct fault_oops_bug bug;
		int err = 0;
		if (fault_oops_bug_decode(&scan->cells[i], &bug))
			err = book_take_bug(arena, &bug, to);
		else
			to->count += fault_listing_decode(&scan->cells[i], &list[to->count]);
		if (err)
			return err;
	}
	return 0;
}

/* Slice by slice, until each id has all of its own. */
static int book_wait_for_listings(struct task_queue *queue, struct store_read *read,
				  struct book_id_request *asked, size_t count, struct arena *arena,
				  struct book_listings *to, struct errbuf *e)
{
	for (bool more = true; more;) {
		int err = store_read_wait(read, queue);
		if (err)
			return errbuf_set(e, err, "%s", store_read_sentence(read, err));
		more = false;
		for (size_t i = 0; i < count && !err; i++) {
			if (asked[i].over)
				continue;
			err = book_take_listings(arena, asked[i].request, &to[i]);
			asked[i].over = !asked[i].request->more;
			more = more || !asked[i].over;
		}
		if (err)
			return err;
	}
	return 0;
}

static int book_read_some_listings(const struct fault_book *book, struct task_queue *queue,
				   const struct slice *ids, size_t count, struct arena *arena,
				   struct book_listings *to, struct errbuf *e)
{
	struct store_read *read = store_read_new(book->site->store, BOOK_READ_MAX_BYTES);
	struct book_id_request *asked = mem_alloc_array(count, sizeof(*asked));
	read->now_ms = clock_wall_ms(book->site->clock);
	for (size_t i = 0; i < count; i++) {
		asked[i].over = false;
		to[i] = (struct book_listings){.list = NULL};
		fault_oops_key(&asked[i].key, book->tenant, ids[i]);
		fault_oops_begin(&asked[i].from, ids[i]);
		fault_oops_bound(&asked[i].to, ids[i], true);
		asked[i].request = store_read_add(read, STORE_CELL_SCAN);
		ASSERT(asked[i].request);
		asked[i].request->cell_scan = (struct store_cell_scan){
			.table = TABLE_OOPS,
			.key = asked[i].key.parts,
			.from = asked[i].from.parts,
			.to = asked[i].to.parts,
			.limit = FAULT_LISTINGS_MAX + FAULT_BUG_ENTRIES_MAX,
		};
	}
	int err = book_wait_for_listings(queue, read, asked, count, arena, to, e);
	mem_free(asked);
	store_read_free(read);
	return err;
}

int book_read_listings(const struct fault_book *book, struct task_queue *queue,
		       const struct slice *ids, size_t count, struct arena *arena,
		       struct book_listings *to, struct errbuf *e)
{
	int err = 0;
	for (size_t at = 0; at < count && !err; at += IDS_MAX) {
		size_t some = count - at < IDS_MAX ? count - at : IDS_MAX;
		err = book_read_some_listings(book, queue, ids + at, some, arena, to + at, e);
	}
	return err;
}
