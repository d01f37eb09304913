#include "marks/store.h"

#include <stdatomic.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "marks/cell.h"
#include "marks/driver.h"
#include "marks/set.h"
#include "marks/watermark_cells.h"
#include "store/wait.h"

enum {
	CELL_MAX_BYTES = 32 << 10,
	WRITE_MAX_BYTES = 48 << 20,
	LISTING_ROWS = 20000,
	LISTING_MAX_BYTES = 16 << 20,
	READING_CELLS = 20000,
	ENUMERATE_EVERY_MS = 86400000,
	READING_MAX_BYTES = 4 << 20, /* in memory a mark is some times what it is in its cell */
};

static struct store_write *marks_store_make_write(const struct marks *marks)
{
	const struct marks_store_options *options = &marks->of_store;
	return store_write_new(options->store, options->write_max_bytes ? options->write_max_bytes
									: WRITE_MAX_BYTES);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

struct marks_store_place {
	uint8_t numbers[3][8]; /* partition, slot, stamp */
	struct store_parts row, column;
};

static struct slice marks_store_number_part(uint8_t bytes[8], uint64_t number)
{
	be64_put(bytes, number);
	return (struct slice){(const char *)bytes, 8};
}

static void marks_store_place_of(struct marks_store_place *place, struct mark_slot slot,
				 int64_t stamp_us, struct slice writer)
{
	*place = (struct marks_store_place){0};
	place->row.part[0] = marks_store_number_part(place->numbers[0], slot.partition);
	place->row.part[1] = marks_store_number_part(place->numbers[1], (uint64_t)slot.slot_s);
	place->column.part[0] = marks_store_number_part(place->numbers[2], (uint64_t)stamp_us);
	place->column.part[1] = writer;
}

/* The row and the column of mark_slots that belong to the place of a mark. */
static struct store_parts marks_store_slots_row(const struct marks_store_place *place)
{
	return (struct store_parts){{place->row.part[0]}};
}

static struct store_parts marks_store_slots_column(const struct marks_store_place *place)
{
	return (struct store_parts){{place->row.part[1], place->column.part[1]}};
}

static uint64_t marks_store_number_of(struct slice part)
{
	return be64_get((const uint8_t *)part.data);
}

/* ---- Marking --------------------------------------------------------------------------------- */

static bool marks_store_is_of_one_cell(const struct mark_touch *a, const struct mark_touch *b)
{
	return mark_slot_compare(&a->slot, &b->slot) == 0 && a->deleted == b->deleted;
}

/* Fills a cell with touches of one slot, as many as have room. Returns how many. */
static size_t marks_store_fill_cell(struct buf *value, int64_t now_ms,
				    const struct mark_touch *touches, size_t count)
{
	struct mark_cell_writer writer;
	size_t n = 0;
	mark_cell_begin(&writer, value, touches->deleted, now_ms);
	while (n < count && marks_store_is_of_one_cell(&touches[n], touches)) {
		const struct mark_touch *touch = &touches[n];
		size_t bytes = mark_cell_bytes(touch->tenant, touch->series_set);
		if (n && value->len + bytes > CELL_MAX_BYTES)
			break;
		mark_cell_put(&writer, touch->tenant, touch->series_set);
		n++;
	}
	return n;
}

static int marks_store_put_cell(const struct marks *marks, struct store_write *write,
				struct mark_slot slot, struct slice value)
{
	struct marks_store_place place;
	int64_t stamp_us = store_stamp(write->store);
	marks_store_place_of(&place, slot, stamp_us, marks->of_store.writer);
	if (store_is_shared(marks->of_store.store)) {
		struct store_parts row = marks_store_slots_row(&place);
		struct store_parts column = marks_store_slots_column(&place);
		int err = store_cell_put(write, TABLE_MARK_SLOTS, &row, &column, SLICE(""),
					 stamp_us, 0);
		if (err)
			return err;
	}
	return store_log_put(write, TABLE_MARKS, &place.row, &place.column, value);
}

/* Before their marks, in the same write. */
static int marks_store_put_late(const struct marks *marks, struct store_write *write,
				int64_t now_ms, const struct mark_touch *touches, size_t count)
{
	if (!marks->watermark || !store_is_shared(marks->of_store.store))
		return 0;
	return watermark_cells_put_late(marks->watermark, write, marks->of_store.writer, now_ms,
					touches, count);
}

static int marks_store_put_touches(const struct marks *marks, struct store_write *write,
				   int64_t now_ms, const struct mark_touch *touches, size_t count,
				   size_t *added)
{
	struct buf value;
	int err = 0;
	buf_init(&value, CELL_MAX_BYTES + UINT16_MAX);
	while (*added < count && !err) {
		const struct mark_touch *first = &touches[*added];
		size_t n = marks_store_fill_cell(&value, now_ms, first, count - *added);
		err = marks_store_put_late(marks, write, now_ms, first, n);
		err = err ? err
			  : marks_store_put_cell(marks, write, first->slot, buf_slice(&value));
		if (!err)
			*added += n;
	}
	buf_release(&value);
	return err;
}

int marks_touches_add(struct marks *marks, struct store_write *write, int64_t now_ms,
		      const struct mark_touch *touches, size_t count, size_t *added)
{
	size_t before = *added;
	int err = marks_store_put_touches(marks, write, now_ms, touches, count, added);
	if (marks->watermark && !store_is_shared(marks->of_store.store) && *added > before)
		watermark_touch(marks->watermark, now_ms, touches + before, *added - before);
	return err;
}

/* A marking that is under way, and the write that has some of its touches. */
struct marks_store_marking {
	struct marks *marks;
	struct marks_marking of;
	struct store_write *write;
	size_t added;
};

/* As many as one write has room for. */
static int marks_store_mark_some(struct marks_store_marking *m)
{
	store_write_reset(m->write);
	int err = marks_store_put_touches(m->marks, m->write, m->of.now_ms, m->of.touches,
					  m->of.count, &m->added);
	if (err == ERR_LIMIT && m->write->cells)
		err = 0;
	return err ? err : store_write_submit(m->write);
}

static void marks_store_end_marking(struct marks_store_marking *m)
{
	store_write_free(m->write);
	mem_free(m);
}

static bool marks_store_is_late(const struct marks_store_marking *m)
{
	const struct marks_store_options *options = &m->marks->of_store;
	return !(options->store->engine->can & STORE_SERIAL_WRITES) &&
	       clock_wall_ms(options->clock) - m->of.now_ms >= options->late_ms;
}

static void marks_store_on_marked(struct store_write *write, int err)
{
	struct marks_store_marking *m = write->owner;
	struct marks_marking of = m->of;
	bool over = m->added == of.count;
	if (!err && !over)
		err = marks_store_mark_some(m);
	if (!err && !over)
		return;
	if (!err && marks_store_is_late(m))
		err = ERR_UNKNOWN;
	marks_store_end_marking(m);
	of.done(of.owner, err);
}

int marks_store_mark(struct marks *marks, const struct marks_marking *marking)
{
	struct marks_store_marking *m = mem_zalloc(sizeof(*m));
	*m = (struct marks_store_marking){marks, *marking, marks_store_make_write(marks), 0};
	m->write->executor = marking->executor;
	m->write->done = marks_store_on_marked;
	m->write->owner = m;
	int err = marks_store_mark_some(m);
	if (err)
		marks_store_end_marking(m);
	return err;
}

/* ---- Listing --------------------------------------------------------------------------------- */

static int marks_store_enumerate(struct marks_listing *listing, struct task_queue *queue,
				 int64_t now_ms)
{
	struct store_read *read = store_read_new(listing->marks->of_store.store, LISTING_MAX_BYTES);
	struct store_request *request = store_read_add(read, STORE_ENUMERATE);
	ASSERT(request); /* the first of an empty arena */
	request->enumerate.table = TABLE_MARKS;
	request->enumerate.limit = LISTING_ROWS;
	request->token = listing->token;
	read->now_ms = now_ms;
	int err = store_read_wait(read, queue);
	for (size_t i = 0; !err && i < request->enumerate.count; i++) {
		const struct store_parts *key = &request->enumerate.rows[i].key;
		marks_listing_add(
			listing, (struct mark_slot){(int64_t)marks_store_number_of(key->part[1]),
						    (uint32_t)marks_store_number_of(key->part[0])});
	}
	if (!err) {
		listing->token = request->token;
		listing->over = !request->more;
	}
	store_read_free(read);
	return err;
}

/* Those of the partition, which mark_slots has once for each writer. */
static void marks_store_add_slots(struct marks_listing *listing, uint32_t partition,
				  const struct store_cell_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct mark_slot slot = {
			(int64_t)marks_store_number_of(scan->cells[i].column.part[0]), partition};
		if (!listing->count ||
		    mark_slot_compare(&listing->slots[listing->count - 1], &slot) != 0)
			marks_listing_add(listing, slot);
	}
}

/* The slots of one partition, all in one page: listing->cursor is the next partition. */
static int marks_store_list_own(struct marks_listing *listing, struct task_queue *queue,
				int64_t now_ms)
{
	uint32_t partition = (uint32_t)listing->cursor;
	struct store_token token = {0};
	int err = 0;
	while (partition < PARTITIONS_MAX && !partitions_has(listing->own, partition))
		partition++;
	for (bool more = partition < PARTITIONS_MAX; more && !err;) {
		struct marks_store_place place;
		struct store_read *read =
			store_read_new(listing->marks->of_store.store, LISTING_MAX_BYTES);
		struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
		ASSERT(request); /* the first of an empty arena */
		marks_store_place_of(&place, (struct mark_slot){0, partition}, 0,
				     (struct slice){0});
		request->cell_scan.table = TABLE_MARK_SLOTS;
		request->cell_scan.key = marks_store_slots_row(&place);
		request->token = token;
		read->now_ms = now_ms;
		err = store_read_wait(read, queue);
		if (!err)
			marks_store_add_slots(listing, partition, &request->cell_scan);
		more = request->more;
		token = request->token;
		store_read_free(read);
	}
	listing->cursor = partition + 1;
	listing->over = !err && partition + 1 >= PARTITIONS_MAX;
	return err;
}

/* Now and then all rows are enumerated: of a write that failed there may be marks of slots that
 * mark_slots does not have. A listing is by one of both from its beginning to its end. */
static bool marks_store_is_by_slots(const struct marks_listing *listing, int64_t now_ms)
{
	int64_t enumerated_ms = atomic_load(&listing->marks->enumerated_ms);
	if (!listing->own || !store_is_shared(listing->marks->of_store.store) || listing->token.len)
		return false;
	return listing->only_told || listing->cursor ||
	       (enumerated_ms && now_ms - enumerated_ms < ENUMERATE_EVERY_MS);
}

int marks_store_list(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	if (marks_store_is_by_slots(listing, now_ms))
		return marks_store_list_own(listing, queue, now_ms);
	int err = marks_store_enumerate(listing, queue, now_ms);
	if (!err && listing->over && listing->own)
		atomic_store(&listing->marks->enumerated_ms, now_ms);
	return err;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A row that is being read. */
struct marks_store_mark_row {
	struct store_token token; /* where the next part begins */
	bool over;
	struct store_request *request; /* of this part, or NULL */
};

/* A column of mark_slots, of the reading's slot number `place`. */
struct marks_store_slot_cell {
	size_t place;
	int64_t stamp_us;
	struct slice writer; /* owned */
};

/* A cell that was read, and which marks stand in it: refs[first] and on. */
struct marks_store_mark_cell {
	struct mark_slot slot;
	size_t place; /* of the slot in the reading */
	int64_t stamp_us, touched_ms;
	bool deleted;
	struct slice writer;
	size_t first, count;
};

struct marks_store_reading {
	struct store_read *read;
	struct marks_store_mark_row rows[MARKS_READING_MAX]; /* as the reading's slots */
	struct marks_store_mark_cell *cells;
	size_t cell_count;
	uint32_t *refs; /* indexes of marks */
	size_t ref_count, ref_room;
	struct mark_set set;
	struct marks_store_slot_cell *slot_cells;
	size_t slot_cell_count;
	bool left[MARKS_READING_MAX]; /* by place: some marks of the slot stay */
};

static void marks_store_add_ref(struct marks_store_reading *r, uint32_t mark)
{
	if (r->ref_count == r->ref_room) {
		r->ref_room = r->ref_room ? r->ref_room * 2 : 256;
		r->refs = mem_resize_array(r->refs, r->ref_room, sizeof(*r->refs));
	}
	r->refs[r->ref_count++] = mark;
}

static void marks_store_take_mark(struct marks_store_reading *r,
				  const struct marks_store_mark_cell *cell, struct slice tenant,
				  struct series_set series_set)
{
	uint32_t at = mark_set_enter(&r->set, tenant, series_set);
	struct mark *mark = &r->set.marks[at];
	if (mark->stamp_us <= cell->stamp_us)
		mark->stamp_us = cell->stamp_us;
	/* The later stamp need not be that of the later touch: clocks differ. */
	if (mark->touched_ms < cell->touched_ms)
		mark->touched_ms = cell->touched_ms;
	if (mark->first_ms > cell->touched_ms)
		mark->first_ms = cell->touched_ms;
	mark->deleted |= cell->deleted;
	marks_store_add_ref(r, at);
}

static void marks_store_take_cell(struct marks_reading *reading, size_t place,
				  const struct store_cell *stored)
{
	struct marks_store_reading *r = reading->of_store;
	struct mark_slot slot = reading->slots[place];
	struct mark_cell_reader reader;
	struct slice tenant;
	struct series_set series_set;
	if (!mark_cell_open(&reader, stored->value)) {
		marks_reading_skip(reading,
				   "a cell of the store (table marks, partition %u, slot %lld, "
				   "writer " SHOWN ", %zu bytes)",
				   slot.partition, (long long)slot.slot_s,
				   SHOWN_OF(stored->column.part[1]), stored->value.len);
		r->left[place] = true;
		return;
	}
	struct marks_store_mark_cell *cell = &r->cells[r->cell_count++];
	*cell = (struct marks_store_mark_cell){
		.slot = slot,
		.place = place,
		.stamp_us = (int64_t)marks_store_number_of(stored->column.part[0]),
		.touched_ms = reader.touched_ms,
		.deleted = reader.deleted,
		.writer = stored->column.part[1],
		.first = r->ref_count};
	while (mark_cell_next(&reader, &tenant, &series_set))
		marks_store_take_mark(r, cell, tenant, series_set);
	cell->count = r->ref_count - cell->first;
}

/* Rows that the others have left no room for come with the next part. */
static int marks_store_take_rows(struct marks_reading *reading)
{
	struct marks_store_reading *r = reading->of_store;
	size_t taken = 0, left = 0;
	reading->over = true;
	for (size_t i = 0; i < reading->slot_count; i++) {
		struct marks_store_mark_row *row = &r->rows[i];
		struct store_request *request = row->request;
		if (request && request->err && request->err != ERR_LIMIT)
			return request->err;
		if (request && request->err) {
			left++;
		} else if (request) {
			const struct store_cell_scan *scan = &request->cell_scan;
			row->over = !request->more;
			row->token = request->token;
			r->cells = mem_resize_array(r->cells, r->cell_count + scan->count + 1,
						    sizeof(*r->cells));
			for (size_t at = 0; at < scan->count; at++)
				marks_store_take_cell(reading, i, &scan->cells[at]);
			taken++;
		}
		reading->over &= row->over;
	}
	return left && !taken ? ERR_LIMIT : 0;
}

/* The arena is empty but for requests such as this. */
static void marks_store_add_scan(struct marks_store_reading *r, struct mark_slot slot,
				 struct marks_store_mark_row *row)
{
	struct marks_store_place place;
	marks_store_place_of(&place, slot, 0, (struct slice){0});
	struct store_request *request = store_read_add(r->read, STORE_CELL_SCAN);
	ASSERT(request);
	request->cell_scan.table = TABLE_MARKS;
	for (size_t i = 0; i < 2; i++) {
		request->cell_scan.key.part[i] = arena_copy(&r->read->arena, place.row.part[i]);
		ASSERT(request->cell_scan.key.part[i].data);
	}
	request->token = row->token;
	row->request = request;
}

static struct marks_store_reading *marks_store_begin_reading(const struct marks *marks)
{
	struct marks_store_reading *r = mem_zalloc(sizeof(*r));
	r->read = store_read_new(marks->of_store.store, READING_MAX_BYTES);
	r->read->points_max = READING_CELLS;
	return r;
}

/* ---- Which slots there are, and which are done ----------------------------------------------- */

static void marks_store_take_slot_cells(struct marks_store_reading *r, size_t place,
					const struct store_cell_scan *scan)
{
	r->slot_cells = mem_resize_array(r->slot_cells, r->slot_cell_count + scan->count + 1,
					 sizeof(*r->slot_cells));
	for (size_t i = 0; i < scan->count; i++) {
		struct slice writer = scan->cells[i].column.part[1];
		r->slot_cells[r->slot_cell_count++] = (struct marks_store_slot_cell){
			place, scan->cells[i].stamp_us, {mem_copy_text(writer), writer.len}};
	}
}

/* Reads the columns of mark_slots that stand for one slot of one partition. */
static int marks_store_read_slot_cells(struct marks_reading *reading, size_t place,
				       struct task_queue *queue, int64_t now_ms)
{
	struct marks_store_reading *r = reading->of_store;
	struct marks_store_place at, next;
	struct mark_slot slot = reading->slots[place], after = {slot.slot_s + 1, slot.partition};
	marks_store_place_of(&at, slot, 0, (struct slice){0});
	marks_store_place_of(&next, after, 0, (struct slice){0});
	store_read_reset(r->read);
	struct store_request *request = store_read_add(r->read, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty arena */
	request->cell_scan = (struct store_cell_scan){.table = TABLE_MARK_SLOTS,
						      .key = marks_store_slots_row(&at),
						      .from = marks_store_slots_column(&at),
						      .to = marks_store_slots_column(&next)};
	r->read->now_ms = now_ms;
	int err = store_read_wait(r->read, queue);
	/* There are more of them than a read gives: they stay. */
	if (!err && request->more)
		r->left[place] = true;
	if (!err)
		marks_store_take_slot_cells(r, place, &request->cell_scan);
	return err;
}

/* They are read before the marks are: what is marked since has a higher stamp. */
static int marks_store_read_slots(struct marks_reading *reading, struct task_queue *queue,
				  int64_t now_ms)
{
	int err = 0;
	for (size_t i = 0; i < reading->slot_count && !err; i++)
		err = marks_store_read_slot_cells(reading, i, queue, now_ms);
	return err;
}

/* Removes the slots whose marks are all finished, if all were made before settled_ms. */
static int marks_store_finish_slots(const struct marks_reading *reading, struct task_queue *queue)
{
	const struct marks_store_reading *r = reading->of_store;
	struct store_write *write = marks_store_make_write(reading->marks);
	int err = 0;
	for (size_t i = 0; i < r->slot_cell_count && !err; i++) {
		const struct marks_store_slot_cell *cell = &r->slot_cells[i];
		struct marks_store_place place;
		if (r->left[cell->place] || cell->stamp_us >= reading->settled_ms * 1000)
			continue;
		marks_store_place_of(&place, reading->slots[cell->place], 0, cell->writer);
		struct store_parts row = marks_store_slots_row(&place),
				   column = marks_store_slots_column(&place);
		err = store_cell_delete(write, TABLE_MARK_SLOTS, &row, &column, cell->stamp_us);
	}
	if (!err && write->cells)
		err = store_write_wait(write, queue);
	store_write_free(write);
	return err;
}

/* ---- Reading a part -------------------------------------------------------------------------- */

int marks_store_read(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms)
{
	bool begins = !reading->of_store;
	if (begins)
		reading->of_store = marks_store_begin_reading(reading->marks);
	struct marks_store_reading *r = reading->of_store;
	if (begins && reading->settled_ms && store_is_shared(reading->marks->of_store.store)) {
		int begin_err = marks_store_read_slots(reading, queue, now_ms);
		if (begin_err)
			return begin_err;
	}
	r->cell_count = r->ref_count = 0;
	mark_set_clear(&r->set);
	store_read_reset(r->read);
	r->read->now_ms = now_ms;
	for (size_t i = 0; i < reading->slot_count; i++) {
		r->rows[i].request = NULL;
		if (!r->rows[i].over)
			marks_store_add_scan(r, reading->slots[i], &r->rows[i]);
	}
	int err = store_read_wait(r->read, queue);
	if (!err || err == ERR_LIMIT)
		err = marks_store_take_rows(reading);
	if (err)
		return err;
	reading->part = r->set.marks;
	reading->count = r->set.count;
	return 0;
}

void marks_store_reading_release(struct marks_reading *reading)
{
	struct marks_store_reading *r = reading->of_store;
	store_read_free(r->read);
	mem_free(r->cells);
	mem_free(r->refs);
	mark_set_release(&r->set);
	for (size_t i = 0; i < r->slot_cell_count; i++)
		mem_free((void *)r->slot_cells[i].writer.data);
	mem_free(r->slot_cells);
	mem_free(r);
}

/* ---- Finishing ------------------------------------------------------------------------------- */

/* What has to stay of a cell: not what is finished, nor what a later cell says as well. (A later
 * one need not say that samples were deleted, nor when the first touch was.) */
static bool marks_store_stays(const struct marks_store_reading *r,
			      const struct marks_store_mark_cell *cell, size_t i)
{
	const struct mark *mark = &r->set.marks[r->refs[cell->first + i]];
	return !mark->finished &&
	       (mark->stamp_us == cell->stamp_us || cell->deleted || mark->unseen);
}

static int marks_store_remove_cell(struct store_write *write, const struct marks_store_place *place,
				   struct buf *end)
{
	/* Just behind the column: its last part and a zero byte. */
	struct store_parts to = place->column;
	buf_clear(end);
	buf_append(end, to.part[1].data, to.part[1].len);
	buf_append_char(end, 0);
	to.part[1] = buf_slice(end);
	return store_log_remove(write, TABLE_MARKS, &place->row, &place->column, &to);
}

static int marks_store_finish_cell(struct marks_store_reading *r,
				   const struct marks_store_mark_cell *cell,
				   struct store_write *write, struct buf *value)
{
	struct mark_cell_writer writer;
	struct marks_store_place place;
	size_t left = 0;
	for (size_t i = 0; i < cell->count; i++)
		left += marks_store_stays(r, cell, i);
	r->left[cell->place] |= left > 0;
	/* One whose writer had a name that is not UTF-8 is not written again: it stays whole. */
	if (left && (left == cell->count || !utf8_is_valid(cell->writer)))
		return 0;
	marks_store_place_of(&place, cell->slot, cell->stamp_us, cell->writer);
	if (!left)
		return marks_store_remove_cell(write, &place, value);
	mark_cell_begin(&writer, value, cell->deleted, cell->touched_ms);
	for (size_t i = 0; i < cell->count; i++) {
		const struct mark *mark = &r->set.marks[r->refs[cell->first + i]];
		if (marks_store_stays(r, cell, i))
			mark_cell_put(&writer, mark->tenant, mark->series_set);
	}
	return store_log_put(write, TABLE_MARKS, &place.row, &place.column, buf_slice(value));
}

/* Each write takes as many cells as it has room for. */
int marks_store_finish(struct marks_reading *reading, struct task_queue *queue)
{
	struct marks_store_reading *r = reading->of_store;
	struct store_write *write = marks_store_make_write(reading->marks);
	struct buf value;
	int err = 0;
	buf_init(&value, CELL_MAX_BYTES + UINT16_MAX);
	for (size_t at = 0; at < r->cell_count && !err;) {
		store_write_reset(write);
		while (at < r->cell_count && !err) {
			err = marks_store_finish_cell(r, &r->cells[at], write, &value);
			at += !err;
		}
		if (err == ERR_LIMIT && write->cells)
			err = 0;
		if (!err && write->cells)
			err = store_write_wait(write, queue);
	}
	buf_release(&value);
	store_write_free(write);
	return !err && reading->over && r->slot_cell_count
		       ? marks_store_finish_slots(reading, queue)
		       : err;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static const struct marks_driver ops = {
	.in_writes = true,
	.mark = marks_store_mark,
	.list = marks_store_list,
	.read = marks_store_read,
	.finish = marks_store_finish,
};

struct marks *marks_store_open(const struct marks_store_options *options)
{
	struct marks *marks = mem_alloc(sizeof(*marks));
	marks_init(marks, &ops, options);
	return marks;
}
