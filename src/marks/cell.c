#include "marks/cell.h"

enum {
	WHOLE_TEXTS = 1,
	WHOLE_TEXTS_DELETED = 2,
	GROUPS = 3,
	GROUPS_DELETED = 4,
	GROUP_FIXED_BYTES = 5, /* lengths and count */
	LENGTH_BYTES = 2,
};

/* ---- Writing --------------------------------------------------------------------------------- */

void mark_cell_begin(struct mark_cell_writer *writer, struct buf *value, bool deleted,
		     int64_t touched_ms)
{
	*writer = (struct mark_cell_writer){.value = value};
	buf_clear(value);
	buf_append_char(value, deleted ? GROUPS_DELETED : GROUPS);
	buf_append(value, &touched_ms, sizeof(touched_ms));
}

size_t mark_cell_bytes(struct slice tenant, struct series_set series_set)
{
	return GROUP_FIXED_BYTES + tenant.len + series_set.tags.len + LENGTH_BYTES +
	       series_set.metric.len;
}

static void mark_cell_put_text(struct buf *value, struct slice text)
{
	ASSERT(text.len <= UINT16_MAX);
	uint16_t len = (uint16_t)text.len;
	buf_append(value, &len, LENGTH_BYTES);
	buf_append(value, text.data, text.len);
}

/* Mostly it is in one place. */
static bool mark_cell_is_same_text(struct slice a, struct slice b)
{
	return a.len == b.len && (a.data == b.data || memcmp(a.data, b.data, a.len) == 0);
}

static bool mark_cell_continues_group(const struct mark_cell_writer *writer, struct slice tenant,
				      struct slice tags)
{
	return writer->count_at && writer->count < UINT16_MAX &&
	       mark_cell_is_same_text(writer->tags, tags) &&
	       mark_cell_is_same_text(writer->tenant, tenant);
}

static void mark_cell_begin_group(struct mark_cell_writer *writer, struct slice tenant,
				  struct slice tags)
{
	ASSERT(tenant.len <= UINT8_MAX);
	buf_append_char(writer->value, (char)(uint8_t)tenant.len);
	buf_append(writer->value, tenant.data, tenant.len);
	mark_cell_put_text(writer->value, tags);
	writer->tenant = tenant;
	writer->tags = tags;
	writer->count = 0;
	writer->count_at = writer->value->len;
	buf_append(writer->value, &writer->count, sizeof(writer->count));
}

void mark_cell_put(struct mark_cell_writer *writer, struct slice tenant,
		   struct series_set series_set)
{
	if (!mark_cell_continues_group(writer, tenant, series_set.tags))
		mark_cell_begin_group(writer, tenant, series_set.tags);
	mark_cell_put_text(writer->value, series_set.metric);
	writer->count++;
	memcpy(writer->value->data + writer->count_at, &writer->count, sizeof(writer->count));
}

/* ---- Reading --------------------------------------------------------------------------------- */

static struct slice mark_cell_take_text(struct cursor *c, size_t len)
{
	return (struct slice){(const char *)cursor_take(c, len), len};
}

static void mark_cell_take_group(struct mark_cell_reader *reader)
{
	struct cursor *c = &reader->rest;
	reader->tenant = mark_cell_take_text(c, cursor_u8(c));
	reader->tags =
		reader->whole_texts ? (struct slice){0} : mark_cell_take_text(c, cursor_u16(c));
	reader->left = reader->whole_texts ? 1 : cursor_u16(c);
	c->bad |= reader->left == 0;
}

bool mark_cell_next(struct mark_cell_reader *reader, struct slice *tenant,
		    struct series_set *series_set)
{
	if (!reader->left && cursor_left(&reader->rest))
		mark_cell_take_group(reader);
	if (!reader->left || reader->rest.bad)
		return false;
	struct slice text = mark_cell_take_text(&reader->rest, cursor_u16(&reader->rest));
	if (reader->rest.bad)
		return false;
	reader->left--;
	*tenant = reader->tenant;
	*series_set = reader->whole_texts ? series_set_split(text)
					  : (struct series_set){text, reader->tags};
	return true;
}

static bool mark_cell_begin_reading(struct mark_cell_reader *reader, struct slice value)
{
	*reader = (struct mark_cell_reader){.rest = cursor_of(value.data, value.len)};
	uint8_t version = cursor_u8(&reader->rest);
	reader->touched_ms = (int64_t)cursor_u64(&reader->rest);
	reader->whole_texts = version == WHOLE_TEXTS || version == WHOLE_TEXTS_DELETED;
	reader->deleted = version == WHOLE_TEXTS_DELETED || version == GROUPS_DELETED;
	return !reader->rest.bad && version >= WHOLE_TEXTS && version <= GROUPS_DELETED;
}

bool mark_cell_open(struct mark_cell_reader *reader, struct slice value)
{
	struct slice tenant;
	struct series_set series_set;
	if (!mark_cell_begin_reading(reader, value))
		return false;
	while (mark_cell_next(reader, &tenant, &series_set))
		;
	return !reader->left && !reader->rest.bad && mark_cell_begin_reading(reader, value);
}
