#include "model/poll.h"

#include "base/cursor.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/mem.h"

/* The layout is drawn in doc/format-poll.md. */
enum {
	VERSION = 1,
	FLAG_LAST = 1,
	HEADER_BYTES = 12,
	CHECKSUM_AT = 4, /* it covers what lies before it and after it */
	CHECKED_FROM = 8,
	/* Types of a value beyond those of enum value_type, which keep their numbers. */
	TYPE_TEXT = 4,
	TYPE_JSON = 5,
	TYPE_MIXED = 255,
	VARINT_BYTES_MAX = 10,
};

/* A value while it is in a builder. Of a text, `bits` is where it begins in builder->texts. */
struct poll_cell {
	uint64_t bits;
	uint32_t len;
	uint8_t type;
};

/* ---- Reading ------------------------------------------------------------------------------- */

static struct slice poll_decode_text(struct cursor *c, size_t max_bytes)
{
	uint64_t len = cursor_varint(c);
	if (len > max_bytes)
		c->bad = true;
	const uint8_t *bytes = cursor_take(c, (size_t)len);
	return bytes ? (struct slice){(const char *)bytes, (size_t)len} : (struct slice){"", 0};
}

static size_t poll_decode_count(struct cursor *c, size_t max)
{
	uint64_t count = cursor_varint(c);
	if (count > max)
		c->bad = true;
	return c->bad ? 0 : (size_t)count;
}

static struct slice rest_of(const struct cursor *c)
{
	return (struct slice){(const char *)c->at, cursor_left(c)};
}

static uint32_t checksum_of(const char *message, size_t bytes)
{
	return crc32c(crc32c(0, message, CHECKSUM_AT), message + CHECKED_FROM,
		      bytes - CHECKED_FROM);
}

static int open_header(struct slice message, struct cursor *c, struct poll *poll, struct errbuf *e)
{
	if (message.len < HEADER_BYTES || message.len > POLL_BYTES_MAX ||
	    memcmp(message.data, "GP", 2) != 0)
		return errbuf_set(e, ERR_INVALID, "%zu bytes that are no poll", message.len);
	cursor_take(c, 2);
	uint8_t version = cursor_u8(c), flags = cursor_u8(c);
	if (version != VERSION)
		return errbuf_set(e, ERR_VERSION, "a poll of format %u; this program knows %d",
				  version, VERSION);
	uint32_t crc = cursor_u32(c);
	if (checksum_of(message.data, message.len) != crc)
		return errbuf_set(e, ERR_INVALID, "a poll whose checksum is wrong");
	uint32_t names_bytes = cursor_u32(c);
	if (flags & ~FLAG_LAST || names_bytes > cursor_left(c))
		return errbuf_set(e, ERR_INVALID, "a poll whose header is wrong");
	poll->last = flags & FLAG_LAST;
	poll->names = (struct slice){(const char *)cursor_take(c, names_bytes), names_bytes};
	return 0;
}

static struct cursor open_names(struct poll *poll)
{
	struct cursor c = cursor_of(poll->names.data, poll->names.len);
	poll->row_count = poll_decode_count(&c, POLL_ROWS_MAX);
	poll->column_count = poll_decode_count(&c, POLL_COLUMNS_MAX);
	poll->device = poll_decode_text(&c, POLL_NAME_MAX_BYTES);
	poll->oidset = poll_decode_text(&c, POLL_NAME_MAX_BYTES);
	if (poll->row_count * poll->column_count > POLL_CELLS_MAX || poll->device.len == 0 ||
	    poll->oidset.len == 0)
		c.bad = true;
	return c;
}

static void open_values(struct poll *poll, struct cursor *c)
{
	poll->ts_ms = (int64_t)cursor_u64(c);
	poll->part = (uint32_t)poll_decode_count(c, UINT32_MAX);
	poll->text_count = poll_decode_count(c, POLL_CELLS_MAX);
	/* Each takes a byte at least: so no message makes a reader take memory without limit. */
	if (poll->text_count > cursor_left(c))
		c->bad = true;
	poll->values = rest_of(c);
}

int poll_open(struct slice message, struct poll *poll, struct errbuf *e)
{
	*poll = (struct poll){0};
	struct cursor c = cursor_of(message.data, message.len);
	int err = open_header(message, &c, poll, e);
	if (err)
		return err;
	struct cursor names = open_names(poll);
	if (names.bad)
		return errbuf_set(e, ERR_INVALID, "a poll whose names are wrong");
	open_values(poll, &c);
	if (c.bad)
		return errbuf_set(e, ERR_INVALID, "a poll whose values are wrong");
	return 0;
}

static void poll_decode_row(struct cursor *c, struct poll_row *row)
{
	*row = (struct poll_row){.part_count = poll_decode_count(c, POLL_PARTS_MAX)};
	for (size_t i = 0; i < row->part_count; i++)
		row->parts[i] = poll_decode_text(c, POLL_PART_MAX_BYTES);
}

int poll_decode_names(const struct poll *poll, struct arena *arena, struct poll_names *names,
		      struct errbuf *e)
{
	struct poll again = *poll;
	struct cursor c = open_names(&again);
	/* A row takes a byte at least, a column two. */
	if (c.bad || poll->row_count + 2 * poll->column_count > cursor_left(&c))
		return errbuf_set(e, ERR_INVALID, "a poll whose names are wrong");
	struct slice *columns = arena_alloc(arena, (poll->column_count + 1) * sizeof(*columns));
	struct poll_row *rows = arena_alloc(arena, (poll->row_count + 1) * sizeof(*rows));
	if (!columns || !rows)
		return errbuf_set(e, ERR_LIMIT, "a poll of %zu rows, more than memory was given",
				  poll->row_count);
	for (size_t i = 0; i < poll->column_count; i++) {
		columns[i] = poll_decode_text(&c, POLL_COLUMN_MAX_BYTES);
		c.bad = c.bad || columns[i].len == 0;
	}
	for (size_t i = 0; i < poll->row_count; i++)
		poll_decode_row(&c, &rows[i]);
	if (c.bad || cursor_left(&c))
		return errbuf_set(e, ERR_INVALID, "a poll whose names are wrong");
	*names = (struct poll_names){columns, rows};
	return 0;
}

struct decoder {
	struct cursor c;
	size_t rows, columns;
	struct value *values;
	struct poll_text *texts;
	size_t text_count, text_max;
};

static void poll_decode_text_value(struct decoder *d, size_t row, size_t column, bool json)
{
	struct slice text = poll_decode_text(&d->c, POLL_TEXT_MAX_BYTES);
	if (d->text_count == d->text_max)
		d->c.bad = true;
	if (d->c.bad)
		return;
	d->texts[d->text_count++] = (struct poll_text){
		.row = (uint32_t)row,
		.column = (uint32_t)column,
		.json = json,
		.text = text,
	};
}

static void poll_decode_value(struct decoder *d, size_t row, size_t column, uint8_t type)
{
	struct value *value = &d->values[row * d->columns + column];
	*value = (struct value){0};
	switch (type) {
	case VALUE_NONE:
		break;
	case VALUE_F64:
		*value = (struct value){cursor_u64(&d->c), VALUE_F64};
		break;
	case VALUE_I64:
		*value = value_i64(zigzag_decode(cursor_varint(&d->c)));
		break;
	case VALUE_U64:
		*value = value_u64(cursor_varint(&d->c));
		break;
	case TYPE_TEXT:
	case TYPE_JSON:
		poll_decode_text_value(d, row, column, type == TYPE_JSON);
		break;
	default:
		d->c.bad = true;
	}
}

/* Counters, nearly always: worth a loop of its own, with the cursor in registers. */
static void poll_decode_unsigned(struct decoder *d, size_t column)
{
	struct cursor c = d->c;
	struct value *value = d->values + column;
	for (size_t row = 0; row < d->rows; row++, value += d->columns)
		*value = value_u64(cursor_varint(&c));
	d->c = c;
}

/* Counters too, beside a row that has none. */
static void poll_decode_mixed(struct decoder *d, size_t column)
{
	struct cursor c = d->c;
	struct value *value = d->values + column;
	for (size_t row = 0; row < d->rows; row++, value += d->columns) {
		uint8_t type = cursor_u8(&c);
		if (type == VALUE_U64) {
			*value = value_u64(cursor_varint(&c));
			continue;
		}
		d->c = c;
		poll_decode_value(d, row, column, type);
		c = d->c;
	}
	d->c = c;
}

static void poll_decode_column(struct decoder *d, size_t column)
{
	uint8_t type = cursor_u8(&d->c);
	if (type == VALUE_U64)
		poll_decode_unsigned(d, column);
	else if (type == TYPE_MIXED)
		poll_decode_mixed(d, column);
	else
		for (size_t row = 0; row < d->rows; row++)
			poll_decode_value(d, row, column, type);
}

static bool poll_decode_alloc(struct decoder *d, struct arena *arena, int64_t **row_ts_ms)
{
	*row_ts_ms = arena_alloc(arena, (d->rows + 1) * sizeof(**row_ts_ms));
	d->values = arena_alloc(arena, (d->rows * d->columns + 1) * sizeof(*d->values));
	d->texts = arena_alloc(arena, (d->text_max + 1) * sizeof(*d->texts));
	return *row_ts_ms && d->values && d->texts;
}

static int64_t poll_decode_row_time(struct cursor *c, const struct poll *poll)
{
	return (int64_t)((uint64_t)poll->ts_ms + (uint64_t)zigzag_decode(cursor_varint(c)));
}

int poll_latest_ms(const struct poll *poll, int64_t *latest_ms, struct errbuf *e)
{
	struct cursor c = cursor_of(poll->values.data, poll->values.len);
	*latest_ms = poll->ts_ms;
	for (size_t i = 0; i < poll->row_count && !c.bad; i++) {
		int64_t ts_ms = poll_decode_row_time(&c, poll);
		*latest_ms = ts_ms > *latest_ms ? ts_ms : *latest_ms;
	}
	return c.bad ? errbuf_set(e, ERR_INVALID, "a poll whose values are wrong") : 0;
}

int poll_decode_values(const struct poll *poll, struct arena *arena, struct poll_values *values,
		       struct errbuf *e)
{
	struct decoder d = {
		.c = cursor_of(poll->values.data, poll->values.len),
		.rows = poll->row_count,
		.columns = poll->column_count,
		.text_max = poll->text_count,
	};
	int64_t *row_ts_ms = NULL;
	if (d.rows + d.columns > cursor_left(&d.c))
		return errbuf_set(e, ERR_INVALID, "a poll whose values are wrong");
	if (!poll_decode_alloc(&d, arena, &row_ts_ms))
		return errbuf_set(e, ERR_LIMIT, "a poll of %zu rows, more than memory was given",
				  d.rows);
	for (size_t i = 0; i < d.rows; i++)
		row_ts_ms[i] = poll_decode_row_time(&d.c, poll);
	for (size_t i = 0; i < d.columns && !d.c.bad; i++)
		poll_decode_column(&d, i);
	if (d.c.bad || cursor_left(&d.c) || d.text_count != d.text_max)
		return errbuf_set(e, ERR_INVALID, "a poll whose values are wrong");
	*values = (struct poll_values){row_ts_ms, d.values, d.texts, d.text_count};
	return 0;
}

/* ---- Writing ------------------------------------------------------------------------------- */

void poll_builder_init(struct poll_builder *b)
{
	*b = (struct poll_builder){0};
	buf_init(&b->device, POLL_NAME_MAX_BYTES);
	buf_init(&b->oidset, POLL_NAME_MAX_BYTES);
	buf_init(&b->columns, POLL_BYTES_MAX);
	buf_init(&b->rows, POLL_BYTES_MAX);
	buf_init(&b->texts, POLL_BYTES_MAX);
}

void poll_builder_release(struct poll_builder *b)
{
	buf_release(&b->device);
	buf_release(&b->oidset);
	buf_release(&b->columns);
	buf_release(&b->rows);
	buf_release(&b->texts);
	mem_free(b->row_ts_ms);
	mem_free(b->cells);
	*b = (struct poll_builder){0};
}

static int poll_check_length(const char *what, struct slice name, size_t min, size_t max,
			     struct errbuf *e)
{
	if (name.len >= min && name.len <= max)
		return 0;
	return errbuf_set(e, ERR_INVALID, "%s of %zu bytes; %zu to %zu are taken", what, name.len,
			  min, max);
}

int poll_begin_again(struct poll_builder *b, struct slice device, int64_t ts_ms, struct errbuf *e)
{
	int err = poll_check_length("the name of a device", device, 1, POLL_NAME_MAX_BYTES, e);
	if (err)
		return err;
	buf_clear(&b->device);
	buf_clear(&b->rows);
	buf_clear(&b->texts);
	b->row_count = 0;
	b->has_texts = false;
	b->ts_ms = ts_ms;
	buf_append(&b->device, device.data, device.len);
	return 0;
}

int poll_begin(struct poll_builder *b, struct slice device, struct slice oidset, int64_t ts_ms,
	       struct errbuf *e)
{
	int err = poll_check_length("the name of an OIDSet", oidset, 1, POLL_NAME_MAX_BYTES, e);
	err = err ? err : poll_begin_again(b, device, ts_ms, e);
	if (err)
		return err;
	buf_clear(&b->oidset);
	buf_clear(&b->columns);
	b->column_count = 0;
	buf_append(&b->oidset, oidset.data, oidset.len);
	return 0;
}

static void poll_append_varint(struct buf *out, uint64_t value)
{
	char *room = buf_reserve(out, VARINT_BYTES_MAX);
	if (room)
		out->len += varint_put((uint8_t *)room, value);
}

static void append_text(struct buf *out, struct slice text)
{
	poll_append_varint(out, text.len);
	buf_append(out, text.data, text.len);
}

int poll_add_column(struct poll_builder *b, struct slice name, struct errbuf *e)
{
	ASSERT(b->row_count == 0);
	int err = poll_check_length("the name of an OID", name, 1, POLL_COLUMN_MAX_BYTES, e);
	if (err)
		return err;
	if (b->column_count == POLL_COLUMNS_MAX)
		return errbuf_set(e, ERR_LIMIT, "more than %d OIDs", POLL_COLUMNS_MAX);
	append_text(&b->columns, name);
	b->column_count++;
	return 0;
}

static int check_row(const struct poll_builder *b, const struct slice *parts, size_t part_count,
		     struct errbuf *e)
{
	if (part_count > POLL_PARTS_MAX)
		return errbuf_set(e, ERR_INVALID, "a path of %zu parts; at most %d", part_count,
				  POLL_PARTS_MAX);
	for (size_t i = 0; i < part_count; i++) {
		int err =
			poll_check_length("a part of a path", parts[i], 0, POLL_PART_MAX_BYTES, e);
		if (err)
			return err;
	}
	if (b->row_count == POLL_ROWS_MAX || (b->row_count + 1) * b->column_count > POLL_CELLS_MAX)
		return errbuf_set(e, ERR_LIMIT, "a poll of more than %zu rows", b->row_count);
	return 0;
}

/* ERR_LIMIT: nothing was appended. */
static int append_path(struct buf *out, const struct slice *parts, size_t part_count)
{
	size_t bytes = VARINT_BYTES_MAX;
	for (size_t i = 0; i < part_count; i++)
		bytes += VARINT_BYTES_MAX + parts[i].len;
	uint8_t *room = (uint8_t *)buf_reserve(out, bytes), *at = room;
	if (!room)
		return ERR_LIMIT;
	at += varint_put(at, part_count);
	for (size_t i = 0; i < part_count; i++) {
		at += varint_put(at, parts[i].len);
		if (parts[i].len)
			memcpy(at, parts[i].data, parts[i].len);
		at += parts[i].len;
	}
	out->len += (size_t)(at - room);
	return 0;
}

static void poll_make_room(struct poll_builder *b)
{
	GROW(b->row_ts_ms, b->row_cap, b->row_count + 1);
	GROW(b->cells, b->cell_cap, (b->row_count + 1) * b->column_count);
}

int poll_add_row(struct poll_builder *b, const struct slice *parts, size_t part_count,
		 int64_t ts_ms, struct errbuf *e)
{
	int err = check_row(b, parts, part_count, e);
	if (err)
		return err;
	if (append_path(&b->rows, parts, part_count)) {
		b->rows.failed = false;
		return errbuf_set(e, ERR_LIMIT, "a poll of more than %zu rows", b->row_count);
	}
	poll_make_room(b);
	b->row_ts_ms[b->row_count] = ts_ms;
	if (b->column_count)
		memset(b->cells + b->row_count * b->column_count, 0,
		       b->column_count * sizeof(*b->cells));
	b->row_count++;
	return 0;
}

void poll_set(struct poll_builder *b, size_t row, size_t column, struct value value)
{
	ASSERT(row < b->row_count && column < b->column_count);
	b->cells[row * b->column_count + column] = (struct poll_cell){
		.bits = value.bits,
		.type = (uint8_t)value.type,
	};
}

void poll_set_row(struct poll_builder *b, size_t row, const struct value *values)
{
	ASSERT(row < b->row_count);
	struct poll_cell *cells = b->cells + row * b->column_count;
	for (size_t i = 0; i < b->column_count; i++) {
		cells[i].bits = values[i].bits;
		cells[i].len = 0;
		cells[i].type = (uint8_t)values[i].type;
	}
}

int poll_set_text(struct poll_builder *b, size_t row, size_t column, struct slice text, bool json,
		  struct errbuf *e)
{
	ASSERT(row < b->row_count && column < b->column_count);
	int err = poll_check_length("a text", text, 0, POLL_TEXT_MAX_BYTES, e);
	if (err)
		return err;
	struct poll_cell cell = {
		.bits = b->texts.len,
		.len = (uint32_t)text.len,
		.type = json ? TYPE_JSON : TYPE_TEXT,
	};
	if (buf_append(&b->texts, text.data, text.len)) {
		b->texts.failed = false;
		return errbuf_set(e, ERR_LIMIT, "texts of more than %d bytes in one poll",
				  POLL_BYTES_MAX);
	}
	b->cells[row * b->column_count + column] = cell;
	b->has_texts = true;
	return 0;
}

static void append_value(const struct poll_builder *b, const struct poll_cell *cell,
			 struct buf *out)
{
	switch (cell->type) {
	case VALUE_F64:
		buf_append(out, &cell->bits, sizeof(cell->bits));
		break;
	case VALUE_I64:
		poll_append_varint(out, zigzag_encode((int64_t)cell->bits));
		break;
	case VALUE_U64:
		poll_append_varint(out, cell->bits);
		break;
	case TYPE_TEXT:
	case TYPE_JSON:
		append_text(out, (struct slice){b->texts.data + cell->bits, cell->len});
		break;
	}
}

/* The type that all values of a column have, or TYPE_MIXED. */
static uint8_t column_type(const struct poll_builder *b, size_t column)
{
	uint8_t type = b->row_count ? b->cells[column].type : VALUE_NONE;
	for (size_t row = 1; row < b->row_count; row++)
		if (b->cells[row * b->column_count + column].type != type)
			return TYPE_MIXED;
	return type;
}

/* Nearly all columns are of this kind. False: this one is not, or there is no room, and nothing was
 * appended. */
static bool append_counters(const struct poll_builder *b, size_t column, struct buf *out)
{
	if (!b->row_count || b->cells[column].type != VALUE_U64)
		return false;
	const struct poll_cell *cell = b->cells + column;
	const struct poll_cell *end = cell + b->row_count * b->column_count;
	uint8_t *room = (uint8_t *)buf_reserve(out, 1 + b->row_count * VARINT_BYTES_MAX);
	uint8_t *at = room;
	if (!room)
		return false;
	*at++ = VALUE_U64;
	for (; cell < end; cell += b->column_count) {
		if (cell->type != VALUE_U64)
			return false;
		at += varint_put(at, cell->bits);
	}
	out->len += (size_t)(at - room);
	return true;
}

/* Numbers, here and there none: as the row of scalars has it beside those of interfaces. False:
 * there is a text, or no room, and nothing was appended. */
static bool poll_append_numbers(const struct poll_builder *b, size_t column, struct buf *out)
{
	const struct poll_cell *cell = b->cells + column,
			       *end = cell + b->row_count * b->column_count;
	uint8_t *room = (uint8_t *)buf_reserve(out, 1 + b->row_count * (1 + VARINT_BYTES_MAX));
	uint8_t *at = room;
	if (!room)
		return false;
	*at++ = TYPE_MIXED;
	for (; cell < end; cell += b->column_count) {
		*at++ = cell->type;
		if (cell->type == VALUE_U64)
			at += varint_put(at, cell->bits);
		else if (cell->type == VALUE_I64)
			at += varint_put(at, zigzag_encode((int64_t)cell->bits));
		else if (cell->type != VALUE_NONE)
			return false;
	}
	out->len += (size_t)(at - room);
	return true;
}

static void append_column(const struct poll_builder *b, size_t column, struct buf *out)
{
	if (append_counters(b, column, out))
		return;
	uint8_t type = column_type(b, column);
	if (type == TYPE_MIXED && poll_append_numbers(b, column, out))
		return;
	buf_append(out, &type, 1);
	for (size_t row = 0; row < b->row_count; row++) {
		const struct poll_cell *cell = &b->cells[row * b->column_count + column];
		if (type == TYPE_MIXED)
			buf_append(out, &cell->type, 1);
		append_value(b, cell, out);
	}
}

static size_t count_texts(const struct poll_builder *b)
{
	size_t count = 0;
	for (size_t i = 0; b->has_texts && i < b->row_count * b->column_count; i++)
		count += b->cells[i].type >= TYPE_TEXT;
	return count;
}

static void poll_append_names(const struct poll_builder *b, struct buf *out)
{
	poll_append_varint(out, b->row_count);
	poll_append_varint(out, b->column_count);
	append_text(out, buf_slice(&b->device));
	append_text(out, buf_slice(&b->oidset));
	buf_append(out, b->columns.data, b->columns.len);
	buf_append(out, b->rows.data, b->rows.len);
}

static void append_times(const struct poll_builder *b, struct buf *out)
{
	uint8_t *room = (uint8_t *)buf_reserve(out, b->row_count * VARINT_BYTES_MAX), *at = room;
	if (!room)
		return;
	for (size_t i = 0; i < b->row_count; i++) {
		uint64_t after_ms = (uint64_t)b->row_ts_ms[i] - (uint64_t)b->ts_ms;
		at += varint_put(at, zigzag_encode((int64_t)after_ms));
	}
	out->len += (size_t)(at - room);
}

static void append_values(const struct poll_builder *b, uint32_t part, struct buf *out)
{
	buf_append(out, &b->ts_ms, sizeof(b->ts_ms));
	poll_append_varint(out, part);
	poll_append_varint(out, count_texts(b));
	append_times(b, out);
	for (size_t i = 0; i < b->column_count; i++)
		append_column(b, i, out);
}

/* What could not be known before the rest was written. */
static void finish_header(char *message, size_t bytes, size_t names_bytes)
{
	uint32_t names = (uint32_t)names_bytes;
	memcpy(message + CHECKED_FROM, &names, sizeof(names));
	uint32_t crc = checksum_of((const char *)message, bytes);
	memcpy(message + CHECKSUM_AT, &crc, sizeof(crc));
}

int poll_encode(const struct poll_builder *b, uint32_t part, bool last, struct buf *out,
		struct errbuf *e)
{
	ASSERT(b->device.len && !out->failed);
	size_t before = out->len;
	const char header[HEADER_BYTES] = {'G', 'P', VERSION, last ? FLAG_LAST : 0};
	buf_append(out, header, sizeof(header));
	poll_append_names(b, out);
	size_t names_bytes = out->len - before - HEADER_BYTES;
	append_values(b, part, out);
	if (out->failed || out->len - before > POLL_BYTES_MAX) {
		out->len = before;
		out->failed = false;
		return errbuf_set(e, ERR_LIMIT, "a poll of %zu rows in more than %zu bytes",
				  b->row_count,
				  out->max < POLL_BYTES_MAX ? out->max : POLL_BYTES_MAX);
	}
	finish_header(out->data + before, out->len - before, names_bytes);
	return 0;
}
