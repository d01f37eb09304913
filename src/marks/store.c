#include "marks/store.h"

#include "base/buf.h"
#include "marks/cell.h"
#include "marks/set.h"
#include "marks/driver.h"
#include "store/wait.h"

enum {
	CELL_MAX_BYTES = 32 << 10,
	WRITE_MAX_BYTES = 48 << 20,
	LISTING_ROWS = 20000,
	LISTING_MAX_BYTES = 16 << 20,
	READING_CELLS = 20000,
	READING_MAX_BYTES = 4 << 20, /* in memory a mark is some times what it is in its cell */
};

struct marks_store_store_track {
	struct marks base;
	struct marks_store_options options;
};

static const struct marks_store_store_track *marks_store_of_track(const struct marks *marks)
{
	return CONTAINER_OF(marks, struct marks_store_store_track, base);
}

static struct store_write *marks_store_track_write_new(const struct marks *marks)
{
	const struct marks_store_options *options = &marks_store_of_track(marks)->options;
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

static uint64_t marks_store_number_of(struct slice part)
{
	return part.len == 8 ? be64_get((const uint8_t *)part.data) : 0;
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

static int marks_store_touches_add(struct marks *marks, struct store_write *write, int64_t now_ms,
				   const struct mark_touch *touches, size_t count, size_t *added)
{
	struct buf value;
	int err = 0;
	buf_init(&value, CELL_MAX_BYTES + UINT16_MAX);
	while (*added < count && !err) {
		struct marks_store_place place;
		const struct mark_touch *first = &touches[*added];
		size_t n = marks_store_fill_cell(&value, now_ms, first, count - *added);
		marks_store_place_of(&place, first->slot, store_stamp(write->store),
				     marks_store_of_track(marks)->options.writer);
		err = store_log_put(write, TABLE_MARKS, &place.row, &place.column,
				    buf_slice(&value));
		if (!err)
			*added += n;
	}
	buf_release(&value);
	return err;
}

struct marks_store_store_marking {
	struct marks_marking base;
	struct store_write *write;
	struct task nothing;
	const struct mark_touch *touches;
	size_t count, added;
	int64_t now_ms;
};

/* As many as one write has room for. */
static int marks_store_mark_some(struct marks_store_store_marking *m)
{
	store_write_reset(m->write);
	int err = marks_store_touches_add(m->base.marks, m->write, m->now_ms, m->touches, m->count,
					  &m->added);
	if (err == ERR_LIMIT && m->write->cells)
		err = 0;
	return err ? err : store_write_submit(m->write);
}

static void marks_store_on_marked(struct store_write *write, int err)
{
	struct marks_store_store_marking *m = write->owner;
	bool over = m->added == m->count;
	if (!err && !over)
		err = marks_store_mark_some(m);
	if (err || over)
		m->base.done(m->base.owner, err);
}

static void marks_store_run_nothing(struct task *task)
{
	struct marks_store_store_marking *m =
		CONTAINER_OF(task, struct marks_store_store_marking, nothing);
	m->base.done(m->base.owner, 0);
}

static struct marks_marking *marks_store_marking_new(const struct marks_marking *begun)
{
	struct marks_store_store_marking *m = mem_zalloc(sizeof(*m));
	m->base = *begun;
	m->write = marks_store_track_write_new(begun->marks);
	m->write->executor = begun->executor;
	m->write->done = marks_store_on_marked;
	m->write->owner = m;
	m->nothing.run = marks_store_run_nothing;
	return &m->base;
}

static void marks_store_marking_free(struct marks_marking *marking)
{
	struct marks_store_store_marking *m =
		CONTAINER_OF(marking, struct marks_store_store_marking, base);
	store_write_free(m->write);
	mem_free(m);
}

static int marks_store_marking_begin(struct marks_marking *marking, int64_t now_ms,
				     const struct mark_touch *touches, size_t count)
{
	struct marks_store_store_marking *m =
		CONTAINER_OF(marking, struct marks_store_store_marking, base);
	m->touches = touches;
	m->count = count;
	m->added = 0;
	m->now_ms = now_ms;
	if (count)
		return marks_store_mark_some(m);
	marking->executor->post(marking->executor, &m->nothing);
	return 0;
}

/* ---- Listing --------------------------------------------------------------------------------- */

struct marks_store_store_listing {
	struct marks_listing base;
	struct store_read *read;
	struct store_token token; /* where the next page begins */
};

static struct marks_store_store_listing *marks_store_of_listing(struct marks_listing *listing)
{
	return CONTAINER_OF(listing, struct marks_store_store_listing, base);
}

static struct marks_listing *marks_store_listing_new(struct marks *marks)
{
	struct marks_store_store_listing *l = mem_zalloc(sizeof(*l));
	l->read = store_read_new(marks_store_of_track(marks)->options.store, LISTING_MAX_BYTES);
	return &l->base;
}

static void marks_store_listing_free(struct marks_listing *listing)
{
	struct marks_store_store_listing *l = marks_store_of_listing(listing);
	store_read_free(l->read);
	mem_free(l->base.slots);
	mem_free(l);
}

static int marks_store_listing_next(struct marks_listing *page, struct task_queue *queue,
				    int64_t now_ms)
{
	struct marks_store_store_listing *l = marks_store_of_listing(page);
	store_read_reset(l->read);
	l->read->now_ms = now_ms;
	struct store_request *request = store_read_add(l->read, STORE_ENUMERATE);
	ASSERT(request); /* the first of an empty arena */
	request->enumerate.table = TABLE_MARKS;
	request->enumerate.limit = LISTING_ROWS;
	request->token = l->token;
	int err = store_read_wait(l->read, queue);
	page->count = 0;
	if (err)
		return err;
	const struct store_enumerate *rows = &request->enumerate;
	page->more = request->more;
	l->token = request->token;
	page->slots = mem_resize_array(page->slots, rows->count + 1, sizeof(*page->slots));
	for (size_t i = 0; i < rows->count; i++) {
		const struct store_parts *key = &rows->rows[i].key;
		page->slots[page->count++] = (struct mark_slot){
			.slot_s = (int64_t)marks_store_number_of(key->part[1]),
			.partition = (uint32_t)marks_store_number_of(key->part[0])};
	}
	return 0;
}

static int marks_store_listing_begin(struct marks_listing *listing, struct task_queue *queue,
				     int64_t now_ms)
{
	marks_store_of_listing(listing)->token = (struct store_token){0};
	return marks_store_listing_next(listing, queue, now_ms);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A row that is being read. */
struct marks_store_mark_row {
	struct mark_slot slot;
	struct store_token token; /* where the next part begins */
	bool more;
	struct store_request *request; /* of this part, or NULL */
};

/* A cell that was read, and which marks stand in it: refs[first] and on. */
struct marks_store_mark_cell {
	struct mark_slot slot;
	int64_t stamp_us, touched_ms;
	bool deleted;
	struct slice writer;
	size_t first, count;
};

struct marks_store_store_reading {
	struct marks_reading base;
	struct store_read *read;
	struct store_write *write;
	struct marks_store_mark_row rows[MARKS_READING_MAX];
	size_t row_count;
	struct marks_store_mark_cell *cells;
	size_t cell_count, finished; /* finished: up to where cells are */
	uint32_t *refs;              /* indexes of marks */
	size_t ref_count, ref_room;
	struct mark_set set;
};

static struct marks_store_store_reading *marks_store_of_reading(struct marks_reading *reading)
{
	return CONTAINER_OF(reading, struct marks_store_store_reading, base);
}

static void marks_store_add_ref(struct marks_store_store_reading *r, uint32_t mark)
{
	if (r->ref_count == r->ref_room) {
		r->ref_room = r->ref_room ? r->ref_room * 2 : 256;
		r->refs = mem_resize_array(r->refs, r->ref_room, sizeof(*r->refs));
	}
	r->refs[r->ref_count++] = mark;
}

static void marks_store_take_mark(struct marks_store_store_reading *r,
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

static void marks_store_take_cell(struct marks_store_store_reading *r, struct mark_slot slot,
				  const struct store_cell *stored)
{
	struct mark_cell_reader reader;
	struct slice tenant;
	struct series_set series_set;
	if (!mark_cell_open(&reader, stored->value)) {
		marks_reading_skip(&r->base,
				   "a cell of the store (table marks, partition %u, slot %lld, "
				   "writer " SHOWN ", %zu bytes)",
				   slot.partition, (long long)slot.slot_s,
				   SHOWN_OF(stored->column.part[1]), stored->value.len);
		return;
	}
	struct marks_store_mark_cell *cell = &r->cells[r->cell_count++];
	*cell = (struct marks_store_mark_cell){
		.slot = slot,
		.stamp_us = (int64_t)marks_store_number_of(stored->column.part[0]),
		.touched_ms = reader.touched_ms,
		.deleted = reader.deleted,
		.writer = stored->column.part[1],
		.first = r->ref_count};
	while (mark_cell_next(&reader, &tenant, &series_set))
		marks_store_take_mark(r, cell, tenant, series_set);
	cell->count = r->ref_count - cell->first;
}

static void marks_store_forget_part(struct marks_store_store_reading *r)
{
	r->cell_count = r->ref_count = r->base.count = r->base.unread = 0;
	mark_set_clear(&r->set);
}

static void marks_store_take_row(struct marks_store_store_reading *r,
				 struct marks_store_mark_row *row)
{
	const struct store_cell_scan *scan = &row->request->cell_scan;
	row->more = row->request->more;
	row->token = row->request->token;
	r->cells = mem_resize_array(r->cells, r->cell_count + scan->count + 1, sizeof(*r->cells));
	for (size_t i = 0; i < scan->count; i++)
		marks_store_take_cell(r, row->slot, &scan->cells[i]);
}

/* Rows that the others have left no room for come with the next part. */
static int marks_store_take_rows(struct marks_store_store_reading *r)
{
	size_t taken = 0, left = 0;
	for (size_t i = 0; i < r->row_count; i++) {
		struct marks_store_mark_row *row = &r->rows[i];
		if (!row->request)
			continue;
		if (row->request->err && row->request->err != ERR_LIMIT)
			return row->request->err;
		if (row->request->err) {
			left++;
			continue;
		}
		marks_store_take_row(r, row);
		taken++;
	}
	return left && !taken ? ERR_LIMIT : 0;
}

static void marks_store_show_part(struct marks_store_store_reading *r)
{
	r->base.list = r->set.marks;
	r->base.count = r->set.count;
	r->base.more = false;
	for (size_t i = 0; i < r->row_count; i++)
		r->base.more |= r->rows[i].more;
}

static struct marks_reading *marks_store_reading_new(struct marks *marks)
{
	struct marks_store_store_reading *r = mem_zalloc(sizeof(*r));
	r->read = store_read_new(marks_store_of_track(marks)->options.store, READING_MAX_BYTES);
	r->read->points_max = READING_CELLS;
	r->write = marks_store_track_write_new(marks);
	return &r->base;
}

static void marks_store_reading_free(struct marks_reading *reading)
{
	struct marks_store_store_reading *r = marks_store_of_reading(reading);
	store_read_free(r->read);
	store_write_free(r->write);
	mem_free(r->cells);
	mem_free(r->refs);
	mark_set_release(&r->set);
	mem_free(r);
}

/* The arena is empty but for requests such as this. */
static void marks_store_add_scan(struct marks_store_store_reading *r,
				 struct marks_store_mark_row *row)
{
	struct marks_store_place place;
	marks_store_place_of(&place, row->slot, 0, (struct slice){0});
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

static int marks_store_reading_next(struct marks_reading *reading, struct task_queue *queue,
				    int64_t now_ms)
{
	struct marks_store_store_reading *r = marks_store_of_reading(reading);
	marks_store_forget_part(r);
	store_read_reset(r->read);
	r->read->now_ms = now_ms;
	for (size_t i = 0; i < r->row_count; i++) {
		r->rows[i].request = NULL;
		if (r->rows[i].more)
			marks_store_add_scan(r, &r->rows[i]);
	}
	int err = store_read_wait(r->read, queue);
	if (!err || err == ERR_LIMIT)
		err = marks_store_take_rows(r);
	if (err)
		marks_store_forget_part(r);
	marks_store_show_part(r);
	return err;
}

static int marks_store_reading_begin(struct marks_reading *reading, struct task_queue *queue,
				     const struct mark_slot *slots, size_t count, int64_t now_ms)
{
	struct marks_store_store_reading *r = marks_store_of_reading(reading);
	r->row_count = count;
	for (size_t i = 0; i < count; i++)
		r->rows[i] = (struct marks_store_mark_row){.slot = slots[i], .more = true};
	return marks_store_reading_next(reading, queue, now_ms);
}

/* ---- Finishing ------------------------------------------------------------------------------- */

/* What has to stay of a cell: not what is finished, nor what a later cell says as well. (A later
 * one need not say that samples were deleted, nor when the first touch was.) */
static bool marks_store_stays(const struct marks_store_store_reading *r,
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

static int marks_store_finish_cell(const struct marks_store_store_reading *r,
				   const struct marks_store_mark_cell *cell, struct buf *value)
{
	struct mark_cell_writer writer;
	struct marks_store_place place;
	size_t left = 0;
	for (size_t i = 0; i < cell->count; i++)
		left += marks_store_stays(r, cell, i);
	if (left == cell->count && left)
		return 0;
	marks_store_place_of(&place, cell->slot, cell->stamp_us, cell->writer);
	if (!left)
		return marks_store_remove_cell(r->write, &place, value);
	mark_cell_begin(&writer, value, cell->deleted, cell->touched_ms);
	for (size_t i = 0; i < cell->count; i++) {
		const struct mark *mark = &r->set.marks[r->refs[cell->first + i]];
		if (marks_store_stays(r, cell, i))
			mark_cell_put(&writer, mark->tenant, mark->series_set);
	}
	return store_log_put(r->write, TABLE_MARKS, &place.row, &place.column, buf_slice(value));
}

/* As many as one write has room for. */
static int marks_store_finish_some(struct marks_store_store_reading *r, struct task_queue *queue)
{
	struct buf value;
	int err = 0;
	store_write_reset(r->write);
	buf_init(&value, CELL_MAX_BYTES + UINT16_MAX);
	while (r->finished < r->cell_count && !err) {
		err = marks_store_finish_cell(r, &r->cells[r->finished], &value);
		r->finished += !err;
	}
	buf_release(&value);
	if (err == ERR_LIMIT && r->write->cells)
		err = 0;
	return err || !r->write->cells ? err : store_write_wait(r->write, queue);
}

static int marks_store_reading_finish(struct marks_reading *reading, struct task_queue *queue)
{
	struct marks_store_store_reading *r = marks_store_of_reading(reading);
	int err = 0;
	r->finished = 0;
	while (r->finished < r->cell_count && !err)
		err = marks_store_finish_some(r, queue);
	return err;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void marks_store_track_close(struct marks *marks)
{
	marks_release(marks);
	mem_free(CONTAINER_OF(marks, struct marks_store_store_track, base));
}

/* The store does not lose marks. */
static void marks_store_track_restored(struct marks *marks, uint64_t losses)
{
	(void)marks_regain(marks, losses);
}

static const struct marks_driver ops = {
	.close = marks_store_track_close,
	.restored = marks_store_track_restored,
	.in_writes = true,
	.touches_add = marks_store_touches_add,
	.marking_new = marks_store_marking_new,
	.marking_free = marks_store_marking_free,
	.marking_begin = marks_store_marking_begin,
	.listing_new = marks_store_listing_new,
	.listing_free = marks_store_listing_free,
	.listing_begin = marks_store_listing_begin,
	.listing_next = marks_store_listing_next,
	.reading_new = marks_store_reading_new,
	.reading_free = marks_store_reading_free,
	.reading_begin = marks_store_reading_begin,
	.reading_next = marks_store_reading_next,
	.reading_finish = marks_store_reading_finish,
};

struct marks *marks_store_open(const struct marks_store_options *options)
{
	struct marks_store_store_track *t = mem_zalloc(sizeof(*t));
	marks_init(&t->base, &ops);
	t->options = *options;
	return &t->base;
}
