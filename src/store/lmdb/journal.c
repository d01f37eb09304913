#include "store/lmdb/journal.h"

#include "base/cursor.h"

enum {
	CHUNK_MIN_BYTES = 1024,
	CHUNK_MAX_BYTES = 64 << 10,
	PAGE_VERSION = 4, /* 1 had no packed rows, 2 none by field, 3 no clearing */
};

/* Room for one record of at most RECORD_MAX_BYTES after what is there. */
static uint8_t *room_for_record(struct arena *arena, struct record_chunk **last)
{
	struct record_chunk *chunk = *last;
	if (chunk && chunk->cap - chunk->used >= RECORD_MAX_BYTES)
		return chunk->bytes + chunk->used;
	uint32_t cap = chunk ? chunk->cap * 4 : CHUNK_MIN_BYTES + RECORD_MAX_BYTES;
	if (cap > CHUNK_MAX_BYTES)
		cap = CHUNK_MAX_BYTES;
	struct record_chunk *fresh = arena_alloc(arena, sizeof(*fresh) + cap);
	if (!fresh)
		return NULL;
	*fresh = (struct record_chunk){.cap = cap};
	if (chunk)
		chunk->next = fresh;
	*last = fresh;
	return fresh->bytes;
}

static void close_record(struct record_chunk *chunk, uint8_t *start, uint8_t *end)
{
	uint16_t len = (uint16_t)(end - start - 2);
	memcpy(start, &len, 2);
	chunk->used += (uint32_t)(end - start);
}

/* What a row begins with, and columns. */
static uint8_t *put_front(uint8_t *p, enum record_kind kind, const struct store_target *sheet,
			  uint64_t first, unsigned count, int64_t ts_ms)
{
	unsigned all = (unsigned)schema[sheet->table].field_count;
	ASSERT(count >= 1 && count * all <= RECORD_VALUES_MAX);
	*p++ = (uint8_t)kind;
	*p++ = (uint8_t)(sheet->table | (unsigned)sheet->retention << 5);
	if (schema[sheet->table].has_period)
		p += varint_put(p, (uint64_t)sheet->period_ms);
	p += varint_put(p, handle_shape(first));
	p += varint_put(p, handle_ordinal(first));
	p += varint_put(p, handle_column(first) * all);
	p += varint_put(p, count * all);
	return p + varint_put(p, zigzag_encode(ts_ms));
}

int record_put_row(struct arena *arena, struct record_chunk **last,
		   const struct store_target *sheet, uint64_t first, unsigned count,
		   unsigned fields, int64_t ts_ms, const struct value *values)
{
	unsigned all = (unsigned)schema[sheet->table].field_count;
	uint8_t *start = room_for_record(arena, last);
	if (!start)
		return ERR_LIMIT;
	uint8_t *p = put_front(start + 2, RECORD_ROW, sheet, first, count, ts_ms);
	p = row_put_fields(p, values, count, all, fields);
	close_record(*last, start, p);
	return 0;
}

/* times u16 | fields u8 | type u8 | the times, i64 each | of each series and field the values, u64
 * each. Never on disk. */
enum { COLUMNS_FRONT_BYTES = 4 };

size_t record_columns_max(unsigned series, unsigned fields)
{
	return (ROW_MAX_BYTES - COLUMNS_FRONT_BYTES) / (8 * (1 + series * fields_count(fields)));
}

int record_put_columns(struct arena *arena, struct record_chunk **last,
		       const struct store_target *sheet, uint64_t first,
		       const struct record_columns *columns, size_t step)
{
	unsigned given = columns->series * fields_count(columns->fields);
	size_t bytes = columns->count * 8;
	uint16_t count = (uint16_t)columns->count;
	int64_t ts_ms;
	ASSERT(count >= 1 && count <= record_columns_max(columns->series, columns->fields));
	uint8_t *start = room_for_record(arena, last);
	if (!start)
		return ERR_LIMIT;
	memcpy(&ts_ms, columns->ts_ms, sizeof(ts_ms));
	uint8_t *p = put_front(start + 2, RECORD_COLUMNS, sheet, first, columns->series, ts_ms);
	memcpy(p, &count, sizeof(count));
	p[2] = (uint8_t)columns->fields;
	p[3] = columns->type;
	p += COLUMNS_FRONT_BYTES;
	memcpy(p, columns->ts_ms, bytes);
	p += bytes;
	for (unsigned c = 0; c < given; c++, p += bytes)
		memcpy(p, columns->bits + c * step * 8, bytes);
	close_record(*last, start, p);
	return 0;
}

struct record_columns record_columns(const struct record *record)
{
	unsigned all = (unsigned)schema[record->sheet.table].field_count;
	const uint8_t *p = record->values;
	uint16_t count;
	ASSERT(record->kind == RECORD_COLUMNS);
	memcpy(&count, p, sizeof(count));
	return (struct record_columns){
		.series = record->columns / all,
		.fields = p[2],
		.type = p[3],
		.count = count,
		.ts_ms = p + COLUMNS_FRONT_BYTES,
		.bits = p + COLUMNS_FRONT_BYTES + (size_t)count * 8,
	};
}

int record_put_copy(struct arena *arena, struct record_chunk **last, const uint8_t *record,
		    size_t len)
{
	uint8_t *start = room_for_record(arena, last);
	if (!start)
		return ERR_LIMIT;
	memcpy(start + 2, record, len);
	close_record(*last, start, start + 2 + len);
	return 0;
}

int record_put_delete(struct arena *arena, struct record_chunk **last, enum record_kind kind,
		      const struct store_target *sheet, uint64_t handle, int64_t start_ms,
		      int64_t end_ms)
{
	uint8_t *start = room_for_record(arena, last);
	if (!start)
		return ERR_LIMIT;
	unsigned fields = (unsigned)schema[sheet->table].field_count;
	uint8_t *p = start + 2;
	*p++ = (uint8_t)kind;
	*p++ = (uint8_t)(sheet->table | (unsigned)sheet->retention << 5);
	if (schema[sheet->table].has_period)
		p += varint_put(p, (uint64_t)sheet->period_ms);
	p += varint_put(p, handle_shape(handle));
	p += varint_put(p, handle_ordinal(handle));
	p += varint_put(p, handle_column(handle) * fields);
	p += varint_put(p, fields);
	p += varint_put(p, zigzag_encode(start_ms));
	p += varint_put(p, zigzag_encode(end_ms));
	close_record(*last, start, p);
	return 0;
}

const uint8_t *record_next(const uint8_t **at, size_t *left, size_t *len)
{
	uint16_t n;
	if (*left < sizeof(n))
		return NULL;
	memcpy(&n, *at, sizeof(n));
	if (n > *left - sizeof(n))
		return NULL;
	const uint8_t *record = *at + sizeof(n);
	*at += sizeof(n) + n;
	*left -= sizeof(n) + n;
	*len = n;
	return record;
}

int record_view(const uint8_t *bytes, size_t len, struct record *record)
{
	struct cursor c = cursor_of(bytes, len);
	record->kind = cursor_u8(&c);
	uint8_t sheet = cursor_u8(&c);
	record->sheet = (struct store_target){.table = sheet & 0x1f, .retention = sheet >> 5};
	if (c.bad || record->sheet.table >= TABLE_COUNT ||
	    record->sheet.retention >= RETENTION_CLASSES ||
	    schema[record->sheet.table].kind != TABLE_SAMPLES)
		return ERR_DAMAGED;
	if (schema[record->sheet.table].has_period)
		record->sheet.period_ms = (int64_t)cursor_varint(&c);
	record->shape = (uint32_t)cursor_varint(&c);
	record->ordinal = (uint32_t)cursor_varint(&c);
	uint64_t first = cursor_varint(&c), columns = cursor_varint(&c);
	record->ts_ms = zigzag_decode(cursor_varint(&c));
	if (c.bad || first > SHAPE_COLUMNS_MAX * TABLE_FIELDS_MAX || columns == 0 ||
	    columns > RECORD_VALUES_MAX)
		return ERR_DAMAGED;
	record->first_column = (unsigned)first;
	record->columns = (unsigned)columns;
	record->values = NULL;
	record->values_bytes = 0;
	if (record->kind == RECORD_ROW || record->kind == RECORD_COLUMNS) {
		record->values = c.at;
		record->values_bytes = (unsigned)cursor_left(&c);
		return 0;
	}
	if (record->kind != RECORD_DELETE && record->kind != RECORD_CLEAR)
		return ERR_DAMAGED;
	record->end_ms = zigzag_decode(cursor_varint(&c));
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

int record_parse(const uint8_t *bytes, size_t len, struct record *record)
{
	int err = record_view(bytes, len, record);
	if (!err && record->kind == RECORD_COLUMNS)
		return ERR_DAMAGED;
	if (!err && record->kind == RECORD_ROW)
		err = row_check(record->values, record->values_bytes, record->columns);
	return err;
}

/* crc u32 | version u8, 0 u8 | records u16 | written ms i64 | records, each after its length u16 */
void journal_page_init(struct journal_page *page, uint64_t first_sequence, int64_t now_ms)
{
	page->first_sequence = first_sequence;
	page->records = 0;
	page->used = JOURNAL_PAGE_HEADER_BYTES;
	page->bytes[RECORD_HEADER_BYTES] = PAGE_VERSION;
	page->bytes[RECORD_HEADER_BYTES + 1] = 0;
	memcpy(page->bytes + RECORD_HEADER_BYTES + 4, &now_ms, 8);
}

bool journal_page_add(struct journal_page *page, const uint8_t *record, size_t len)
{
	uint16_t len16 = (uint16_t)len;
	if (len + 2 > journal_page_room(page))
		return false;
	memcpy(page->bytes + page->used, &len16, 2);
	memcpy(page->bytes + page->used + 2, record, len);
	page->used += len + 2;
	page->records++;
	return true;
}

void journal_page_add_many(struct journal_page *page, const uint8_t *records, size_t bytes,
			   unsigned count)
{
	ASSERT(bytes <= journal_page_room(page));
	memcpy(page->bytes + page->used, records, bytes);
	page->used += bytes;
	page->records = (uint16_t)(page->records + count);
}

void journal_page_finish(struct journal_page *page, uint8_t key[8])
{
	be64_put(key, page->first_sequence);
	memcpy(page->bytes + RECORD_HEADER_BYTES + 2, &page->records, 2);
	record_seal((struct slice){(const char *)key, 8}, page->bytes, page->used);
}

int journal_page_open(struct slice key, struct slice value, struct journal_view *view)
{
	struct slice payload;
	int err = key.len == 8 ? record_open(key, value, &payload) : ERR_DAMAGED;
	if (err)
		return err;
	struct cursor c = cursor_of(payload.data, payload.len);
	uint8_t version = cursor_u8(&c);
	cursor_u8(&c);
	view->first_sequence = be64_get((const uint8_t *)key.data);
	view->records = cursor_u16(&c);
	view->written_ms = (int64_t)cursor_u64(&c);
	if (c.bad)
		return ERR_DAMAGED;
	if (version == 0 || version > PAGE_VERSION)
		return ERR_VERSION;
	view->at = c.at;
	view->left = cursor_left(&c);
	return 0;
}
