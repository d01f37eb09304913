#include "rollup/track.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "base/hash.h"

enum {
	VERSION = 1,
	VERSION_DELETED = 2, /* the same, of touches of a deletion */
	LISTING_ROWS = 20000,
	LISTING_MAX_BYTES = 16 << 20,
	READING_CELLS = 20000,
	READING_MAX_BYTES = 16 << 20,
	RECORD_FIXED_BYTES = 3, /* of a series, beside its texts */
};

/* Twice the quiet time: once until the mark is ready, once for the work. */
int64_t rollup_open_from_ms(int64_t now_ms, int64_t raw_ms, int64_t slot_ms, int64_t quiet_ms)
{
	int64_t kept_ms = now_ms - raw_ms + 2 * quiet_ms;
	if (!raw_ms || kept_ms <= 0)
		return 0;
	return (kept_ms + slot_ms - 1) / slot_ms * slot_ms;
}

int64_t rollup_ready_ms(int64_t slot_s, int64_t touched_ms, int64_t slot_ms, int64_t quiet_ms,
			int64_t now_ms)
{
	int64_t since_ms = slot_s * 1000 + slot_ms;
	if (touched_ms > since_ms && touched_ms - quiet_ms <= now_ms)
		since_ms = touched_ms;
	return since_ms + quiet_ms;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

struct place {
	uint8_t numbers[3][8]; /* partition, slot, stamp */
	struct store_parts row, column;
};

static struct slice number_part(uint8_t bytes[8], uint64_t number)
{
	be64_put(bytes, number);
	return (struct slice){(const char *)bytes, 8};
}

static void place_of(struct place *place, struct rollup_slot slot, int64_t stamp_us,
		     struct slice writer)
{
	*place = (struct place){0};
	place->row.part[0] = number_part(place->numbers[0], slot.partition);
	place->row.part[1] = number_part(place->numbers[1], (uint64_t)slot.slot_s);
	place->column.part[0] = number_part(place->numbers[2], (uint64_t)stamp_us);
	place->column.part[1] = writer;
}

static uint64_t number_of(struct slice part)
{
	return part.len == 8 ? be64_get((const uint8_t *)part.data) : 0;
}

/* ---- Marking --------------------------------------------------------------------------------- */

static int compare_touches(const void *a, const void *b)
{
	const struct rollup_touch *x = a, *y = b;
	int order = rollup_slot_compare(&x->slot, &y->slot);
	return order ? order : (int)x->deleted - (int)y->deleted;
}

void rollup_touches_sort(struct rollup_touch *touches, size_t count)
{
	qsort(touches, count, sizeof(*touches), compare_touches);
}

static void put_record(struct buf *value, struct slice tenant, struct slice series_set)
{
	uint16_t len = (uint16_t)series_set.len;
	buf_append_char(value, (char)(uint8_t)tenant.len);
	buf_append(value, tenant.data, tenant.len);
	buf_append(value, &len, sizeof(len));
	buf_append(value, series_set.data, series_set.len);
}

static void begin_value(struct buf *value, bool deleted, int64_t touched_ms)
{
	buf_clear(value);
	buf_append_char(value, deleted ? VERSION_DELETED : VERSION);
	buf_append(value, &touched_ms, sizeof(touched_ms));
}

/* What one cell holds: touches of one slot, as many as have room. Returns how many. */
static size_t fill_cell(struct buf *value, int64_t now_ms, const struct rollup_touch *touches,
			size_t count)
{
	size_t n = 0;
	begin_value(value, touches->deleted, now_ms);
	while (n < count && compare_touches(&touches[n], &touches[0]) == 0) {
		const struct rollup_touch *touch = &touches[n];
		ASSERT(touch->tenant.len <= UINT8_MAX && touch->series_set.len <= UINT16_MAX);
		size_t bytes = RECORD_FIXED_BYTES + touch->tenant.len + touch->series_set.len;
		if (n && value->len + bytes > ROLLUP_CELL_MAX_BYTES)
			break;
		put_record(value, touch->tenant, touch->series_set);
		n++;
	}
	return n;
}

int rollup_touches_add(struct store_write *write, struct slice writer, int64_t now_ms,
		       const struct rollup_touch *touches, size_t count, size_t *added)
{
	struct buf value;
	int err = 0;
	buf_init(&value, ROLLUP_CELL_MAX_BYTES + UINT16_MAX);
	while (*added < count && !err) {
		struct place place;
		const struct rollup_touch *first = &touches[*added];
		size_t n = fill_cell(&value, now_ms, first, count - *added);
		place_of(&place, first->slot, store_stamp(write->store), writer);
		err = store_log_put(write, TABLE_MARKS, &place.row, &place.column,
				    buf_slice(&value));
		if (!err)
			*added += n;
	}
	buf_release(&value);
	return err;
}

/* ---- Listing --------------------------------------------------------------------------------- */

struct rollup_listing {
	struct store_read *read;
	struct store_request *request;
	rollup_listing_done *done;
	void *owner;
	struct rollup_slot *slots;
	size_t count;
};

static void on_listed(struct store_read *read, int err)
{
	struct rollup_listing *listing = read->owner;
	const struct store_enumerate *rows = &listing->request->enumerate;
	listing->count = 0;
	listing->slots = mem_resize_array(listing->slots, rows->count + 1, sizeof(*listing->slots));
	for (size_t i = 0; !err && i < rows->count; i++) {
		const struct store_parts *key = &rows->rows[i].key;
		listing->slots[listing->count++] =
			(struct rollup_slot){.slot_s = (int64_t)number_of(key->part[1]),
					     .partition = (uint32_t)number_of(key->part[0])};
	}
	listing->done(listing->owner, err);
}

struct rollup_listing *rollup_listing_new(struct store *store, struct executor *executor,
					  rollup_listing_done *done, void *owner)
{
	struct rollup_listing *listing = mem_zalloc(sizeof(*listing));
	listing->read = store_read_new(store, LISTING_MAX_BYTES);
	listing->read->executor = executor;
	listing->read->done = on_listed;
	listing->read->owner = listing;
	listing->done = done;
	listing->owner = owner;
	return listing;
}

void rollup_listing_free(struct rollup_listing *listing)
{
	store_read_free(listing->read);
	mem_free(listing->slots);
	mem_free(listing);
}

static int list_from(struct rollup_listing *listing, const struct store_token *token,
		     int64_t now_ms)
{
	store_read_reset(listing->read);
	listing->read->now_ms = now_ms;
	struct store_request *request = store_read_add(listing->read, STORE_ENUMERATE);
	ASSERT(request); /* the first of an empty arena */
	request->enumerate.table = TABLE_MARKS;
	request->enumerate.limit = LISTING_ROWS;
	request->token = *token;
	listing->request = request;
	return store_read_submit(listing->read);
}

int rollup_listing_begin(struct rollup_listing *listing, int64_t now_ms)
{
	return list_from(listing, &(struct store_token){0}, now_ms);
}

int rollup_listing_next(struct rollup_listing *listing, int64_t now_ms)
{
	struct store_token token = listing->request->token;
	return list_from(listing, &token, now_ms);
}

const struct rollup_slot *rollup_listing_page(const struct rollup_listing *listing, size_t *count,
					      bool *more)
{
	*count = listing->count;
	*more = listing->request->more;
	return listing->slots;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A row that is being read. */
struct mark_row {
	struct rollup_slot slot;
	struct store_token token; /* where the next part begins */
	bool more;
	struct store_request *request; /* of this part, or NULL */
};

/* A cell that was read, and which marks stand in it: refs[first] and on. */
struct mark_cell {
	struct rollup_slot slot;
	int64_t stamp_us, touched_ms;
	bool deleted;
	struct slice writer;
	size_t first, count;
};

struct rollup_reading {
	struct store_read *read;
	rollup_reading_done *done;
	void *owner;
	struct mark_row rows[ROLLUP_READING_MAX];
	size_t row_count;
	struct mark_cell *cells;
	size_t cell_count, unread;
	uint32_t *refs; /* indexes of marks */
	size_t ref_count, ref_room;
	struct rollup_mark *marks;
	size_t mark_count, mark_room;
	uint32_t *table; /* of marks, by their record: index + 1; a power of two */
	size_t table_size;
};

static bool is_mark_of(const struct rollup_mark *mark, struct slice tenant, struct slice series_set)
{
	return slice_equal(mark->tenant, tenant) && slice_equal(mark->series_set, series_set);
}

static uint64_t hash_of(struct slice tenant, struct slice series_set)
{
	return hash64(series_set.data, series_set.len, hash64(tenant.data, tenant.len, 0));
}

/* Where the mark stands in the table, or the empty place where it would. */
static uint32_t *table_place(struct rollup_reading *r, struct slice tenant, struct slice series_set)
{
	size_t at = hash_of(tenant, series_set) & (r->table_size - 1);
	while (r->table[at] && !is_mark_of(&r->marks[r->table[at] - 1], tenant, series_set))
		at = (at + 1) & (r->table_size - 1);
	return &r->table[at];
}

static void grow_table(struct rollup_reading *r)
{
	mem_free(r->table);
	r->table_size = r->table_size ? r->table_size * 2 : 1024;
	r->table = mem_zalloc(r->table_size * sizeof(*r->table));
	for (size_t i = 0; i < r->mark_count; i++)
		*table_place(r, r->marks[i].tenant, r->marks[i].series_set) = (uint32_t)i + 1;
}

/* The index of the mark, entered if it is new. */
static uint32_t enter_mark(struct rollup_reading *r, struct slice tenant, struct slice series_set)
{
	if (r->mark_count * 2 >= r->table_size)
		grow_table(r);
	uint32_t *place = table_place(r, tenant, series_set);
	if (*place)
		return *place - 1;
	if (r->mark_count == r->mark_room) {
		r->mark_room = r->mark_room ? r->mark_room * 2 : 256;
		r->marks = mem_resize_array(r->marks, r->mark_room, sizeof(*r->marks));
	}
	r->marks[r->mark_count++] =
		(struct rollup_mark){.tenant = tenant, .series_set = series_set};
	*place = (uint32_t)r->mark_count;
	return *place - 1;
}

static void add_ref(struct rollup_reading *r, uint32_t mark)
{
	if (r->ref_count == r->ref_room) {
		r->ref_room = r->ref_room ? r->ref_room * 2 : 256;
		r->refs = mem_resize_array(r->refs, r->ref_room, sizeof(*r->refs));
	}
	r->refs[r->ref_count++] = mark;
}

static void take_record(struct cursor *c, struct slice *tenant, struct slice *series_set)
{
	tenant->len = cursor_u8(c);
	tenant->data = (const char *)cursor_take(c, tenant->len);
	series_set->len = cursor_u16(c);
	series_set->data = (const char *)cursor_take(c, series_set->len);
}

/* Whether it is to its end what a program of this version writes. */
static bool is_whole(struct slice value)
{
	struct cursor c = cursor_of(value.data, value.len);
	struct slice tenant, series_set;
	uint8_t version = cursor_u8(&c);
	bool known = version == VERSION || version == VERSION_DELETED;
	(void)cursor_u64(&c);
	while (known && !c.bad && cursor_left(&c))
		take_record(&c, &tenant, &series_set);
	return known && !c.bad;
}

static void take_mark(struct rollup_reading *r, const struct mark_cell *cell, struct cursor *c)
{
	struct slice tenant, series_set;
	take_record(c, &tenant, &series_set);
	uint32_t at = enter_mark(r, tenant, series_set);
	struct rollup_mark *mark = &r->marks[at];
	if (mark->stamp_us <= cell->stamp_us)
		mark->stamp_us = cell->stamp_us;
	/* The later stamp need not be that of the later touch: clocks differ. */
	if (mark->touched_ms < cell->touched_ms)
		mark->touched_ms = cell->touched_ms;
	mark->deleted |= cell->deleted;
	add_ref(r, at);
}

static void take_cell(struct rollup_reading *r, struct rollup_slot slot,
		      const struct store_cell *stored, struct mark_cell *cell)
{
	struct cursor c = cursor_of(stored->value.data, stored->value.len);
	*cell = (struct mark_cell){.slot = slot,
				   .stamp_us = (int64_t)number_of(stored->column.part[0]),
				   .writer = stored->column.part[1],
				   .first = r->ref_count};
	cell->deleted = cursor_u8(&c) == VERSION_DELETED;
	cell->touched_ms = (int64_t)cursor_u64(&c);
	while (cursor_left(&c))
		take_mark(r, cell, &c);
	cell->count = r->ref_count - cell->first;
}

static void forget_part(struct rollup_reading *r)
{
	r->cell_count = r->ref_count = r->mark_count = r->unread = 0;
	if (r->table_size)
		memset(r->table, 0, r->table_size * sizeof(*r->table));
}

static void take_row(struct rollup_reading *r, struct mark_row *row)
{
	const struct store_cell_scan *scan = &row->request->cell_scan;
	row->more = row->request->more;
	row->token = row->request->token;
	r->cells = mem_resize_array(r->cells, r->cell_count + scan->count + 1, sizeof(*r->cells));
	for (size_t i = 0; i < scan->count; i++) {
		if (is_whole(scan->cells[i].value))
			take_cell(r, row->slot, &scan->cells[i], &r->cells[r->cell_count++]);
		else
			r->unread++;
	}
}

/* Rows that the others have left no room for come with the next part. */
static int take_rows(struct rollup_reading *r)
{
	size_t taken = 0, left = 0;
	for (size_t i = 0; i < r->row_count; i++) {
		struct mark_row *row = &r->rows[i];
		if (!row->request)
			continue;
		if (row->request->err && row->request->err != ERR_LIMIT)
			return row->request->err;
		if (row->request->err) {
			left++;
			continue;
		}
		take_row(r, row);
		taken++;
	}
	return left && !taken ? ERR_LIMIT : 0;
}

static void on_read(struct store_read *read, int err)
{
	struct rollup_reading *r = read->owner;
	forget_part(r);
	if (!err || err == ERR_LIMIT)
		err = take_rows(r);
	if (err)
		forget_part(r);
	r->done(r->owner, err);
}

struct rollup_reading *rollup_reading_new(struct store *store, struct executor *executor,
					  rollup_reading_done *done, void *owner)
{
	struct rollup_reading *r = mem_zalloc(sizeof(*r));
	r->read = store_read_new(store, READING_MAX_BYTES);
	r->read->executor = executor;
	r->read->done = on_read;
	r->read->owner = r;
	r->read->points_max = READING_CELLS;
	r->done = done;
	r->owner = owner;
	return r;
}

void rollup_reading_free(struct rollup_reading *r)
{
	store_read_free(r->read);
	mem_free(r->cells);
	mem_free(r->refs);
	mem_free(r->marks);
	mem_free(r->table);
	mem_free(r);
}

/* The arena is empty but for requests such as this. */
static void add_scan(struct rollup_reading *r, struct mark_row *row)
{
	struct place place;
	place_of(&place, row->slot, 0, (struct slice){0});
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

int rollup_reading_next(struct rollup_reading *r, int64_t now_ms)
{
	forget_part(r);
	store_read_reset(r->read);
	r->read->now_ms = now_ms;
	for (size_t i = 0; i < r->row_count; i++) {
		r->rows[i].request = NULL;
		if (r->rows[i].more)
			add_scan(r, &r->rows[i]);
	}
	return store_read_submit(r->read);
}

int rollup_reading_begin(struct rollup_reading *r, const struct rollup_slot *slots, size_t count,
			 int64_t now_ms)
{
	ASSERT(count && count <= ROLLUP_READING_MAX);
	r->row_count = count;
	for (size_t i = 0; i < count; i++)
		r->rows[i] = (struct mark_row){.slot = slots[i], .more = true};
	return rollup_reading_next(r, now_ms);
}

struct rollup_mark *rollup_reading_marks(struct rollup_reading *r, size_t *count, bool *more)
{
	*count = r->mark_count;
	*more = false;
	for (size_t i = 0; i < r->row_count; i++)
		*more |= r->rows[i].more;
	return r->marks;
}

size_t rollup_reading_unread(const struct rollup_reading *r)
{
	return r->unread;
}

/* What has to stay of a cell: not what is finished, nor what a later cell says as well. (A later
 * one need not say that samples were deleted.) */
static bool stays(const struct rollup_reading *r, const struct mark_cell *cell, size_t i)
{
	const struct rollup_mark *mark = &r->marks[r->refs[cell->first + i]];
	return !mark->finished && (mark->stamp_us == cell->stamp_us || cell->deleted);
}

static int remove_cell(struct store_write *write, const struct place *place, struct buf *end)
{
	/* Just behind the column: its last part and a zero byte. */
	struct store_parts to = place->column;
	buf_clear(end);
	buf_append(end, to.part[1].data, to.part[1].len);
	buf_append_char(end, 0);
	to.part[1] = buf_slice(end);
	return store_log_remove(write, TABLE_MARKS, &place->row, &place->column, &to);
}

static int finish_cell(const struct rollup_reading *r, const struct mark_cell *cell,
		       struct store_write *write, struct buf *value)
{
	struct place place;
	size_t left = 0;
	for (size_t i = 0; i < cell->count; i++)
		left += stays(r, cell, i);
	if (left == cell->count && left)
		return 0;
	place_of(&place, cell->slot, cell->stamp_us, cell->writer);
	if (!left)
		return remove_cell(write, &place, value);
	begin_value(value, cell->deleted, cell->touched_ms);
	for (size_t i = 0; i < cell->count; i++) {
		const struct rollup_mark *mark = &r->marks[r->refs[cell->first + i]];
		if (stays(r, cell, i))
			put_record(value, mark->tenant, mark->series_set);
	}
	return store_log_put(write, TABLE_MARKS, &place.row, &place.column, buf_slice(value));
}

int rollup_reading_finish(struct rollup_reading *r, struct store_write *write, size_t *from)
{
	struct buf value;
	int err = 0;
	buf_init(&value, ROLLUP_CELL_MAX_BYTES + UINT16_MAX);
	while (*from < r->cell_count && !err) {
		err = finish_cell(r, &r->cells[*from], write, &value);
		*from += !err;
	}
	buf_release(&value);
	return err;
}
