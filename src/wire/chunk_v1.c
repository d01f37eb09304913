/* A chunk of version 1, as Chukwa's ChunkImpl writes it (Hadoop's Writable, numbers big endian):
 *
 *     i32  version, 1
 *     i64  sequence id
 *     text source, tags, name of the stream, datatype, debug    u16 length, modified UTF-8
 *     i32  number of records
 *     i32  for each record the offset of its last byte
 *          the data, up to the last byte of the last record
 *
 * A post is an i32, the number of chunks, and the chunks. */
#include "base/utf8.h"
#include "wire/chunk.h"

static const struct slice chunk_v1_no_cluster = SLICE("unknown_cluster");

static uint32_t chunk_v1_u16(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 2);
	return p ? (uint32_t)p[0] << 8 | p[1] : 0;
}

static uint32_t chunk_v1_u32(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 4);
	return p ? be32_get(p) : 0;
}

static uint64_t chunk_v1_u64(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 8);
	return p ? be64_get(p) : 0;
}

/* ---- Modified UTF-8 (java.io.DataInput) ------------------------------------------------------ */

/* One UTF-16 unit in one to three bytes; 0 bytes: there is none. */
static size_t chunk_v1_unit(const uint8_t *p, size_t left, uint32_t *unit)
{
	*unit = p[0];
	if (p[0] < 0x80)
		return 1;
	if ((p[0] & 0xe0) == 0xc0 && left >= 2 && (p[1] & 0xc0) == 0x80) {
		*unit = (p[0] & 0x1fU) << 6 | (p[1] & 0x3fU);
		return 2;
	}
	if ((p[0] & 0xf0) == 0xe0 && left >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80) {
		*unit = (p[0] & 0xfU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
		return 3;
	}
	return 0;
}

/* A character beyond the first 65,536 is two units; half of one becomes U+FFFD. */
static size_t chunk_v1_character(const uint8_t *p, size_t left, uint32_t *code)
{
	uint32_t low;
	size_t n = chunk_v1_unit(p, left, code);
	if (!n || *code < 0xd800 || *code > 0xdfff)
		return n;
	size_t m = *code < 0xdc00 && n < left ? chunk_v1_unit(p + n, left - n, &low) : 0;
	if (!m || low < 0xdc00 || low > 0xdfff) {
		*code = 0xfffd;
		return n;
	}
	*code = 0x10000 + ((*code - 0xd800) << 10 | (low - 0xdc00));
	return n + m;
}

static int chunk_v1_text(struct cursor *c, struct arena *arena, const char *what,
			 struct slice *text, struct errbuf *e)
{
	size_t len = chunk_v1_u16(c);
	const uint8_t *from = cursor_take(c, len);
	char *to = arena_alloc(arena, len + 1); /* no character becomes longer */
	*text = (struct slice){to, 0};
	if (!to)
		return errbuf_set(e, ERR_LIMIT, "its texts take too much memory");
	for (size_t at = 0, n; from && at < len; at += n) {
		uint32_t code;
		n = chunk_v1_character(from + at, len - at, &code);
		if (!n)
			return errbuf_set(e, ERR_INVALID,
					  "its %s is not modified UTF-8 at byte %zu", what, at);
		text->len += utf8_put(to + text->len, code);
	}
	return 0;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static bool chunk_is_tag_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Where a tag stands: from its name to the quote behind its value; NULL data: nowhere. */
static struct slice chunk_tag_place(struct slice tags, const char *name, struct slice *value)
{
	size_t len = strlen(name);
	for (size_t at = 0; at + len + 3 <= tags.len; at++) {
		const char *p = tags.data + at;
		if ((at && chunk_is_tag_name(p[-1])) || memcmp(p, name, len) != 0 ||
		    p[len] != '=' || p[len + 1] != '"')
			continue;
		*value = (struct slice){p + len + 2, 0};
		const char *quote = memchr(value->data, '"', tags.len - at - len - 2);
		if (!quote)
			continue;
		value->len = (size_t)(quote - value->data);
		return (struct slice){p, (size_t)(quote + 1 - p)};
	}
	return (struct slice){NULL, 0};
}

struct slice chunk_tag(struct slice tags, const char *name)
{
	struct slice value;
	return chunk_tag_place(tags, name, &value).data ? value : (struct slice){NULL, 0};
}

struct slice chunk_tags_cluster(struct slice tags)
{
	struct slice cluster = chunk_tag(tags, "cluster");
	return cluster.len ? cluster : chunk_v1_no_cluster;
}

/* Takes a tag out of tags that lie in the arena, and the blanks before it. */
static int chunk_v1_take_tag(struct slice *tags, struct arena *arena, const char *name,
			     struct slice *to)
{
	struct slice value;
	struct slice place = chunk_tag_place(*tags, name, &value);
	*to = (struct slice){NULL, 0};
	if (!place.data)
		return 0;
	*to = arena_copy(arena, value);
	if (!to->data)
		return ERR_LIMIT;
	size_t from = (size_t)(place.data - tags->data), behind = from + place.len;
	while (from && tags->data[from - 1] == ' ')
		from--;
	char *text = (char *)(uintptr_t)tags->data; /* the arena's, so ours */
	memmove(text + from, text + behind, tags->len - behind);
	tags->len -= behind - from;
	return 0;
}

static bool chunk_v1_number(struct slice text, unsigned base, uint64_t most, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: 16;
		if (digit >= base || *number > (most - digit) / base)
			return false;
		*number = *number * base + digit;
	}
	return text.len > 0;
}

static int chunk_v1_take_tags(struct chunk_fields *fields, struct arena *arena, struct errbuf *e)
{
	struct slice *tags = &fields->tags;
	struct slice incarnation, clock;
	uint64_t clock_ms = 0;
	int err = chunk_v1_take_tag(tags, arena, "incarnation", &incarnation);
	err = err ? err : chunk_v1_take_tag(tags, arena, "clock", &clock);
	err = err ? err : chunk_v1_take_tag(tags, arena, "cluster", &fields->names.cluster);
	err = err ? err : chunk_v1_take_tag(tags, arena, "tenant", &fields->tenant);
	err = err ? err : chunk_v1_take_tag(tags, arena, "zone", &fields->zone);
	if (err)
		return errbuf_set(e, err, "its tags take too much memory");
	if (!fields->names.cluster.len)
		fields->names.cluster = chunk_v1_no_cluster;
	if (incarnation.data && !chunk_v1_number(incarnation, 16, UINT64_MAX, &fields->incarnation))
		return errbuf_set(e, ERR_INVALID,
				  "its tag incarnation is no hexadecimal number of 64 bits");
	if (clock.data && !chunk_v1_number(clock, 10, INT64_MAX, &clock_ms))
		return errbuf_set(e, ERR_INVALID, "its tag clock is no number of milliseconds");
	fields->clock_ms = (int64_t)clock_ms;
	return 0;
}

/* ---- Records and data ------------------------------------------------------------------------ */

static int chunk_v1_records(struct cursor *c, struct arena *arena, struct chunk_data *data,
			    struct errbuf *e)
{
	uint32_t count = chunk_v1_u32(c);
	if (c->bad || count > cursor_left(c) / 4)
		return errbuf_set(e, ERR_INVALID,
				  "it is cut off, or has a false number of records");
	uint32_t *ends = arena_alloc(arena, (size_t)count * sizeof(*ends) + 1);
	if (!ends)
		return errbuf_set(e, ERR_LIMIT, "its records take too much memory");
	uint32_t end = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t next = chunk_v1_u32(c) + 1; /* an empty record at the front is -1 */
		if (next < end || next > INT32_MAX)
			return errbuf_set(e, ERR_INVALID,
					  "record %u ends before the one in front of it", i);
		if (next > end)
			ends[data->end_count++] = next;
		end = next;
	}
	data->ends = ends;
	data->data = (struct slice){(const char *)cursor_take(c, end), end};
	return c->bad ? errbuf_set(e, ERR_INVALID,
				   "it is cut off: its records have more bytes than follow")
		      : 0;
}

static int chunk_v1_parts(struct cursor *c, struct arena *arena, struct chunk_fields *fields,
			  struct chunk_data *data, struct errbuf *e)
{
	uint32_t version = chunk_v1_u32(c);
	if (!c->bad && version != 1)
		return errbuf_set(e, ERR_INVALID, "it is of version %u, not 1", version);
	fields->sequence_id = chunk_v1_u64(c);
	int err = chunk_v1_text(c, arena, "source", &fields->names.source, e);
	if (!err)
		err = chunk_v1_text(c, arena, "tags", &fields->tags, e);
	if (!err)
		err = chunk_v1_text(c, arena, "name", &fields->names.name, e);
	if (!err)
		err = chunk_v1_text(c, arena, "datatype", &fields->names.datatype, e);
	if (!err)
		err = chunk_v1_text(c, arena, "debug", &fields->debug, e);
	return err ? err : chunk_v1_records(c, arena, data, e);
}

int chunk_v1_read(struct cursor *c, struct arena *arena, struct chunk_fields *fields,
		  struct chunk_data *data, struct errbuf *e)
{
	*fields = (struct chunk_fields){.incarnation = 0};
	*data = (struct chunk_data){.ends = NULL};
	int err = chunk_v1_parts(c, arena, fields, data, e);
	if (err) {
		c->bad = true;
		return err;
	}
	err = chunk_v1_take_tags(fields, arena, e);
	if (err)
		return err;
	fields->data_bytes = (uint32_t)data->data.len;
	if (fields->sequence_id > STREAM_OFFSET_MAX || fields->sequence_id < fields->data_bytes)
		return errbuf_set(e, ERR_INVALID, "its sequence id %lld is below its length %u",
				  (long long)fields->sequence_id, fields->data_bytes);
	chunk_note_lines(fields, data);
	return 0;
}

void chunk_note_lines(struct chunk_fields *fields, struct chunk_data *data)
{
	size_t at = 0;
	struct slice rest = data->data;
	while (rest.len) {
		const char *newline = memchr(rest.data, '\n', rest.len);
		if (!newline)
			break;
		if (at == data->end_count ||
		    data->ends[at] != (size_t)(newline + 1 - data->data.data))
			return;
		rest.len -= (size_t)(newline + 1 - rest.data);
		rest.data = newline + 1;
		at++;
	}
	fields->lines = at == data->end_count;
	if (!fields->lines)
		return;
	data->ends = NULL;
	data->end_count = 0;
}
