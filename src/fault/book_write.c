/* Checkpoints of the book (doc/format-faults.md, **The book**). */
#include "base/stats.h"
#include "fault/book_private.h"
#include "base/put.h"
#include "store/wait.h"

enum {
	CELL_VERSION = 1,
	CELL_MAX_BYTES = 1 << 20,
	WRITERS_MAX = 100000,
	DAYS_MAX = 4000, /* of a list */
};

/* ---- The cell -------------------------------------------------------------------------------- */

static void book_put_writer(const struct book_writer *writer, struct buf *out)
{
	uint64_t before = 0;
	buf_append(out, &writer->writer, 8);
	buf_put_varint(out, writer->next);
	buf_put_varint(out, writer->hole_count);
	for (size_t i = 0; i < writer->hole_count; i++) {
		buf_put_varint(out, writer->holes[i] - before);
		before = writer->holes[i];
	}
}

/* A writer that has ended is kept until all of it is counted: that it has may be known of a
 * checkpoint that did not become whole. */
static bool book_is_kept(const struct book_writer *writer)
{
	return !writer->ending && !book_writer_is_over(writer);
}

static void book_put_days(const struct book_days *days, struct buf *out)
{
	buf_put_varint(out, days->count);
	for (size_t i = 0; i < days->count; i++) {
		char text[FAULT_DAY_TEXT_BYTES + 1];
		fault_day_text(days->list[i].day, text);
		buf_put_text(out, slice_of(text));
	}
}

static void book_put_minutes(const struct fault_book *book, struct buf *out)
{
	buf_put_varint(out, (uint64_t)book->minutes);
	buf_put_varint(out, book->late_count);
	for (size_t i = 0; i < book->late_count; i++)
		buf_put_varint(out, (uint64_t)book->late[i].minute);
}

static void book_cell_put(const struct fault_book *book, uint64_t checkpoint, struct buf *out)
{
	size_t count = 0;
	const struct book_positions *positions = &book->positions;
	for (size_t i = 0; i < positions->writer_count; i++)
		count += book_is_kept(&positions->writers[i]);
	buf_append_char(out, CELL_VERSION);
	buf_put_varint(out, checkpoint);
	buf_append_char(out, 1);
	buf_put_varint(out, count);
	for (size_t i = 0; i < positions->writer_count; i++)
		if (book_is_kept(&positions->writers[i]))
			book_put_writer(&positions->writers[i], out);
	book_put_days(&book->open, out);
	book_put_days(&book->recount, out);
	book_put_days(&book->clear, out);
	buf_put_varint(out, (uint64_t)book->collected_day);
	book_put_minutes(book, out);
}

int book_cell_begin(struct slice value, struct book_cell *cell)
{
	cell->rest = cursor_of(value.data, value.len);
	uint8_t version = cursor_u8(&cell->rest);
	if (!cell->rest.bad && version != CELL_VERSION)
		return ERR_VERSION;
	cell->checkpoint = cursor_varint(&cell->rest);
	cell->whole = cursor_u8(&cell->rest) != 0;
	return cell->rest.bad ? ERR_DAMAGED : 0;
}

static void book_take_holes_of(struct book_writer *writer, struct cursor *c)
{
	uint64_t count = cursor_varint(c), hole = 0;
	/* A writer stands once; where it stands twice the cell is damaged. */
	if (count > BOOK_HOLES_MAX || writer->hole_count)
		c->bad = true;
	if (c->bad)
		return;
	GROW(writer->holes, writer->hole_room, (size_t)count);
	for (uint64_t i = 0; i < count; i++) {
		hole += cursor_varint(c);
		writer->holes[writer->hole_count++] = hole;
	}
}

static void book_take_days(struct book_days *days, struct cursor *c)
{
	uint64_t count = cursor_varint(c);
	if (count > DAYS_MAX)
		c->bad = true;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		int64_t day;
		if (fault_day_parse(cursor_text(c, FAULT_DAY_TEXT_BYTES), &day))
			c->bad = true;
		else
			book_days_add(days, day, BOOK_NOT_DUE);
	}
}

static void book_take_minutes(struct fault_book *book, struct cursor *c)
{
	uint64_t minutes = cursor_varint(c), count = cursor_varint(c);
	if (minutes > BOOK_MINUTE_MAX || count > BOOK_LATE_MAX)
		c->bad = true;
	book->minutes = book->minutes_closing = c->bad ? 0 : (int64_t)minutes;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		uint64_t minute = cursor_varint(c);
		if (minute > BOOK_MINUTE_MAX)
			c->bad = true;
		else
			book_add_late(book, (int64_t)minute);
	}
}

int book_cell_take(struct fault_book *book, struct book_cell *cell)
{
	struct cursor *c = &cell->rest;
	uint64_t count = cursor_varint(c);
	if (count > WRITERS_MAX)
		return ERR_DAMAGED;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		uint64_t number = cursor_u64(c);
		struct book_writer *writer = book_find_writer(&book->positions, number);
		writer = writer ? writer : book_add_writer(&book->positions, number);
		writer->kept = true;
		writer->next = cursor_varint(c);
		book_take_holes_of(writer, c);
	}
	book_take_days(&book->open, c);
	book_take_days(&book->recount, c);
	book_take_days(&book->clear, c);
	/* A cell of an earlier version ends here, or after the next. */
	book->collected_day = cursor_left(c) ? (int64_t)cursor_varint(c) : 0;
	if (cursor_left(c))
		book_take_minutes(book, c);
	return c->bad ? ERR_DAMAGED : 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct book_writing {
	struct fault_book *book;
	struct task_queue *queue;
	struct errbuf *e;
	int64_t stamp_us;
	int64_t until_ms; /* by the wall clock: nothing is written later; INT64_MAX: whenever */
	int64_t day;
	bool any;  /* the write has a cell */
	bool many; /* the cells are too many for one write */
};

/* What could not be added, or what the write ended with. */
static int book_wait(struct fault_book *book, struct task_queue *queue, int err, struct errbuf *e)
{
	if (!err)
		err = store_write_wait(book->write, queue);
	if (!err)
		return 0;
	const char *why = book->write->error.text[0] ? book->write->error.text : err_text(err);
	return errbuf_set(e, err, "%s", why);
}

static int book_send(struct book_writing *w)
{
	if (clock_wall_ms(w->book->site->clock) >= w->until_ms)
		return errbuf_set(w->e, ERR_TIMEOUT, "the time of this owner is over");
	return book_wait(w->book, w->queue, 0, w->e);
}

/* Adds a cell to the write. A write that is full is sent first: the cells of a checkpoint count
 * only when its last cell is there, the cell of the book. */
static int book_put(struct book_writing *w, enum table table, const struct store_parts *key,
		    const struct store_parts *column, struct slice value)
{
	struct store_write *write = w->book->write;
	int err = store_cell_put(write, table, key, column, value, w->stamp_us, 0);
	if (err == ERR_LIMIT && w->any) {
		err = book_send(w);
		if (err)
			return err;
		store_write_reset(write);
		w->any = false;
		w->many = true;
		err = store_cell_put(write, table, key, column, value, w->stamp_us, 0);
	}
	w->any |= !err;
	return err ? errbuf_set(w->e, err, "%s",
				write->error.text[0] ? write->error.text : err_text(err))
		   : 0;
}

static int book_put_book(struct book_writing *w, uint64_t tenure, struct slice value)
{
	struct fault_parts key, column;
	fault_books_key(&key, w->book->tenant);
	fault_books_column(&column, tenure);
	return book_put(w, TABLE_FAULT_BOOKS, &key.parts, &column.parts, value);
}

/* The cell of the tenure and checkpoint that the book is at. */
static int book_put_cell(struct book_writing *w, struct fault_version version)
{
	struct buf value;
	buf_init(&value, CELL_MAX_BYTES);
	book_cell_put(w->book, version.checkpoint, &value);
	int err = value.failed ? ERR_LIMIT : book_put_book(w, version.tenure, buf_slice(&value));
	buf_release(&value);
	return err;
}

static int book_put_cut(struct book_writing *w, struct fault_version version)
{
	char bytes[16] = {CELL_VERSION};
	size_t len = 1 + varint_put((uint8_t *)bytes + 1, version.checkpoint);
	bytes[len++] = 0;
	return book_put_book(w, version.tenure, (struct slice){bytes, len});
}

static void book_note_written_of(struct book_writer *writer)
{
	writer->kept = book_is_kept(writer);
	if (writer->ending) {
		stat_add(STAT_fault_holes, writer->hole_count);
		writer->ending = false;
		writer->ended = true;
		writer->end = writer->next;
		writer->hole_count = 0;
	}
	writer->whole_runs = book_whole_runs(writer);
}

/* The cell of this checkpoint is there. Whoever read the one before may still be reading volumes of
 * a day that this one has closed. */
static void book_note_written(struct fault_book *book, struct fault_version version)
{
	int64_t due_ms = clock_mono_ms(book->site->clock) + STORE_QUERY_DEADLINE_MAX_MS;
	for (size_t i = 0; i < book->positions.writer_count; i++)
		book_note_written_of(&book->positions.writers[i]);
	for (size_t i = 0; i < book->clear.count; i++)
		if (book->clear.list[i].due_ms == BOOK_NOT_DUE)
			book->clear.list[i].due_ms = due_ms;
	fault_tenures_put(&book->tenures, version);
	book->version = version;
	book_note_collection(book, due_ms);
	book_erasure_noted(book);
}

int book_begin_tenure(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
		      struct errbuf *e)
{
	struct book_writing w = {
		.book = book, .queue = queue, .e = e, .stamp_us = stamp_us, .until_ms = INT64_MAX};
	struct fault_version version = {(uint64_t)stamp_us, 0}, before;
	int err = book_restore(book, queue, e);
	if (err)
		return err;
	before = book->version;
	if (before.tenure >= version.tenure)
		return errbuf_set(e, ERR_RETRY,
				  "an owner of the tenant had a clock that was ahead of this one");
	store_write_reset(book->write);
	/* First the last tenure's cell is fixed as it was read; then what follows may come one
	 * after the other, as it does where the row is long. */
	if (before.tenure)
		err = book_put_cell(&w, before);
	store_write_next_stage(book->write);
	err = err ? err : book_put_cell(&w, version);
	w.stamp_us++; /* of two values with one stamp the greater would stay */
	if (!err && before.tenure)
		err = book_put_cut(&w, before);
	err = book_wait(book, queue, err, e);
	if (err) {
		book->restored = false;
		return err;
	}
	book_note_written(book, version);
	book->owned = true;
	return 0;
}

/* It is looked at when the checkpoint is whole (tell.c). */
static int book_put_cause(struct book_writing *w, int64_t day, struct slice group)
{
	const struct store_parts key = {{w->book->tenant}};
	struct fault_parts column;
	fault_causes_column(&column, day, group);
	w->book->causes = true;
	return book_put(w, TABLE_FAULT_CAUSES, &key, &column.parts, SLICE("\1"));
}

/* Notes that a group has reports on this day. If a recount takes them away the note stays, and the
 * group's cell of the day says that there are none. */
static int book_put_group_day(struct book_writing *w, struct slice group)
{
	struct fault_parts key, column;
	fault_groups_key(&key, w->book->tenant, group);
	fault_groups_column(&column, w->day);
	int err = book_put(w, TABLE_FAULT_GROUPS, &key.parts, &column.parts, SLICE("\1"));
	return err ? err : book_put_cause(w, w->day, group);
}

static int book_put_summary(void *owner, enum fault_row row, const struct fault_name_cell *cell)
{
	struct book_writing *w = owner;
	struct fault_parts key;
	const struct store_parts column = {{cell->column}};
	fault_summaries_key(&key, w->book->tenant, w->day, row);
	int err = book_put(w, TABLE_SUMMARIES, &key.parts, &column, cell->value);
	return err || !cell->enters.len ? err : book_put_group_day(w, cell->enters);
}

static int book_put_ended(struct book_writing *w, const struct book_writer *writer)
{
	struct fault_parts key, column;
	struct buf value;
	const struct fault_writer_cell cell = {
		.state = FAULT_WRITER_ENDED,
		.next = writer->next,
		.began_us = writer->began_us,
		.last_us = writer->last_us,
		.holder = slice_of(writer->holder ? writer->holder : ""),
	};
	buf_init(&value, CELL_MAX_BYTES);
	fault_writer_cell_encode(&cell, &value);
	fault_writers_key(&key, w->book->tenant);
	fault_writers_column(&column, writer->writer);
	int err = book_put(w, TABLE_REPORT_WRITERS, &key.parts, &column.parts, buf_slice(&value));
	buf_release(&value);
	return err;
}

/* The entry by id of an arrival whose writer did not come to write it yet. Whoever begins with this
 * checkpoint finds by it that the arrival is there. It is a function of the arrival, so it does not
 * matter who writes it, nor how often. */
static int book_put_listing(struct book_writing *w, const struct book_unlisted *unlisted)
{
	struct fault_parts key, column;
	uint8_t value[FAULT_LISTING_BYTES];
	struct slice id = {unlisted->id, unlisted->id_len};
	const struct fault_listing listing = {unlisted->order, unlisted->digest};
	fault_oops_key(&key, w->book->tenant, id);
	fault_oops_column(&column, id, unlisted->order.place);
	fault_listing_encode(&listing, value);
	return book_put(w, TABLE_OOPS, &key.parts, &column.parts,
			(struct slice){(char *)value, sizeof(value)});
}

static int book_put_all(struct book_writing *w, struct fault_version version)
{
	struct fault_book *book = w->book;
	const struct book_positions *positions = &book->positions;
	int err = 0;
	store_write_reset(book->write);
	for (size_t i = 0; i < book->day_count && !err; i++) {
		w->day = book->days[i]->day;
		err = fault_day_write(book->days[i], version, book_put_summary, w);
	}
	for (size_t i = 0; i < book->clear.count && !err; i++)
		if (book->clear.list[i].due_ms == BOOK_NOT_DUE)
			err = book_put_cause(w, book->clear.list[i].day, SLICE(""));
	for (size_t i = 0; i < positions->writer_count && !err; i++)
		if (positions->writers[i].ending)
			err = book_put_ended(w, &positions->writers[i]);
	for (size_t i = 0; i < positions->unlisted_count && !err; i++)
		err = book_put_listing(w, &positions->unlisted[i]);
	store_write_next_stage(book->write);
	return err ? err : book_put_cell(w, version);
}

/* Until this is whole a checkpoint with the same number may be tried again with other values; once
 * the outcome is not known it may not, and the tenure is over. */
int book_write_checkpoint(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
			  const struct fault_owner_view *view, struct errbuf *e)
{
	struct book_writing w = {.book = book,
				 .queue = queue,
				 .e = e,
				 .stamp_us = stamp_us,
				 .until_ms = view->until_ms};
	struct fault_version version = {book->version.tenure, book->version.checkpoint + 1};
	int err = book_put_all(&w, version);
	err = err ? err : book_send(&w);
	if (err == ERR_UNKNOWN || err == ERR_CANCELLED)
		book->owned = book->restored = false;
	if (err)
		return err;
	for (size_t i = 0; i < book->day_count; i++)
		fault_day_written(book->days[i], version);
	book_note_written(book, version);
	book->changed = false;
	stat_add(STAT_fault_checkpoints, 1);
	/* Among the tallies, which stay, lay those of the reports that came since the last one. */
	if (w.many)
		mem_give_back();
	return 0;
}

/* ---- Rows of volumes ------------------------------------------------------------------------- */

int book_clear_days(struct fault_book *book, struct task_queue *queue, int64_t stamp_us,
		    struct errbuf *e)
{
	int64_t now_ms = clock_mono_ms(book->site->clock);
	for (size_t i = 0; i < book->clear.count; i++) {
		const struct book_day *day = &book->clear.list[i];
		struct fault_parts key;
		if (day->due_ms > now_ms)
			continue;
		fault_summaries_key(&key, book->tenant, day->day, FAULT_ROW_VOLUMES);
		store_write_reset(book->write);
		int err = store_row_delete(book->write, TABLE_SUMMARIES, &key.parts, stamp_us);
		err = book_wait(book, queue, err, e);
		if (err)
			return err;
		book_days_remove(&book->clear, day->day);
		book->changed = true;
		break; /* one in a pass: nobody waits for it */
	}
	return 0;
}
