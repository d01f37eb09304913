#include "stream/tables.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/put.h"

enum {
	/* A column has few bytes (store.h): names that are longer are cut, and closed by a hash of
	 * all of them, so that they are longer still than any that is not cut. The cell has them
	 * whole. */
	NAMES_MAX_BYTES = 320,
	NAMES_UNCUT_MAX_BYTES = 300,
	NAMES_HASH_BYTES = 17,
	MADE_VERSION = 1,
	MADE_HERE = 1,
	MADE_APPENDED = 2,
	SEALED_VERSION = 1,
	KEPT_VERSION = 2, /* 1 does not say when what is below was received */
	DELETED_VERSION = 1,
	TAIL_VERSION = 1,
	RECEIVED_VERSION = 1,
	LINES_VERSION = 1,
	WORDS_VERSION = 1,
	RANGES_MAX = 1 << 16,
};

static const char *const stream_properties[STREAM_PROPERTIES] = {[STREAM_MADE] = "made",
								 [STREAM_SEALED] = "sealed",
								 [STREAM_KEPT] = "kept",
								 [STREAM_DELETED] = "deleted"};

int stream_id_keep(struct stream_id *id, struct arena *arena)
{
	struct slice *texts[] = {&id->tenant, &id->names.source, &id->names.cluster,
				 &id->names.datatype, &id->names.name};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		*texts[i] = arena_copy(arena, *texts[i]);
		if (!texts[i]->data)
			return ERR_LIMIT;
	}
	return 0;
}

static struct slice stream_part_number(uint8_t to[8], uint64_t number)
{
	be64_put(to, number);
	return (struct slice){(char *)to, 8};
}

/* ---- streams --------------------------------------------------------------------------------- */

void streams_key(struct stream_parts *to, struct slice tenant)
{
	to->parts = (struct store_parts){{tenant}};
}

static struct slice stream_address(struct stream_parts *to, const struct stream_names *names,
				   uint64_t incarnation)
{
	struct buf text;
	buf_init(&text, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(names, incarnation, &text);
	ASSERT(!text.failed); /* names are checked where they come in */
	memcpy(to->text, text.data, text.len);
	struct slice address = {to->text, text.len};
	buf_release(&text);
	return address;
}

static struct slice stream_names_part(struct stream_parts *to, const struct stream_names *names)
{
	struct slice text = stream_address(to, names, 0);
	text.len -= STREAM_INCARNATION_DIGITS + 1;
	if (text.len <= NAMES_UNCUT_MAX_BYTES)
		return text;
	uint64_t hash = hash64(text.data, text.len, 0);
	size_t len = NAMES_MAX_BYTES - NAMES_HASH_BYTES;
	if (len >= text.len)
		len = text.len;
	while (len < text.len && ((uint8_t)text.data[len] & 0xc0) == 0x80) /* none is cut */
		len--;
	to->text[len++] = '~';
	for (int shift = 60; shift >= 0; shift -= 4)
		to->text[len++] = "0123456789abcdef"[hash >> shift & 15];
	return (struct slice){to->text, len};
}

void streams_column(struct stream_parts *to, const struct stream_id *id,
		    enum stream_property property)
{
	to->parts = (struct store_parts){{stream_names_part(to, &id->names),
					  stream_part_number(to->numbers[0], id->incarnation),
					  slice_of(stream_properties[property])}};
}

void streams_deleted_column(struct stream_parts *to, const struct stream_id *id, uint64_t offset)
{
	streams_column(to, id, STREAM_DELETED);
	snprintf(to->property, sizeof(to->property), "%s.%016" PRIx64,
		 stream_properties[STREAM_DELETED], offset);
	to->parts.part[2] = slice_of(to->property);
}

void streams_bound(struct stream_parts *to, const struct stream_id *id, bool after)
{
	to->parts = (struct store_parts){{stream_names_part(to, &id->names),
					  stream_part_number(to->numbers[0], id->incarnation),
					  SLICE("")}};
	if (after) /* the least text that is above all properties */
		to->parts.part[2] = SLICE("~");
}

void streams_names_bound(struct stream_parts *to, const struct stream_names *names, bool after)
{
	to->parts = (struct store_parts){{stream_names_part(to, names)}};
	if (after)
		to->parts = (struct store_parts){{stream_names_part(to, names),
						  stream_part_number(to->numbers[0], UINT64_MAX),
						  SLICE("~")}};
}

void demux_key(struct stream_parts *to, struct slice tenant)
{
	streams_key(to, tenant);
}

void demux_column(struct stream_parts *to, const struct stream_names *names)
{
	streams_names_bound(to, names, false);
}

bool streams_read_property(const struct store_cell *cell, enum stream_property *property)
{
	struct slice text = cell->column.part[2];
	const char *dot = text.len ? memchr(text.data, '.', text.len) : NULL;
	if (dot)
		text.len = (size_t)(dot - text.data);
	for (int i = 0; i < STREAM_PROPERTIES; i++) {
		*property = (enum stream_property)i;
		if (slice_equal(text, slice_of(stream_properties[i])))
			return !dot || i == STREAM_DELETED;
	}
	return false;
}

void stream_made_encode(const struct stream_made *made, struct buf *out)
{
	buf_append_char(out, MADE_VERSION);
	buf_append_char(
		out, (char)((made->here ? MADE_HERE : 0) | (made->appended ? MADE_APPENDED : 0)));
	buf_put_varint(out, zigzag_encode(made->made_ms));
	buf_put_text(out, made->id.names.source);
	buf_put_text(out, made->id.names.cluster);
	buf_put_text(out, made->id.names.datatype);
	buf_put_text(out, made->id.names.name);
}

int stream_made_decode(const struct store_cell *cell, struct stream_made *made)
{
	struct cursor c = cursor_of(cell->value.data, cell->value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != MADE_VERSION)
		return ERR_VERSION;
	unsigned flags = cursor_u8(&c);
	*made = (struct stream_made){.here = flags & MADE_HERE, .appended = flags & MADE_APPENDED};
	made->made_ms = zigzag_decode(cursor_varint(&c));
	made->id.incarnation = be64_get((const uint8_t *)cell->column.part[1].data);
	made->id.names.source = cursor_text(&c, STREAM_SOURCE_MAX_BYTES);
	made->id.names.cluster = cursor_text(&c, STREAM_CLUSTER_MAX_BYTES);
	made->id.names.datatype = cursor_text(&c, STREAM_DATATYPE_MAX_BYTES);
	made->id.names.name = cursor_text(&c, STREAM_NAME_MAX_BYTES);
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

void stream_put_offsets(const struct offsets *offsets, struct buf *out)
{
	uint64_t at = 0;
	buf_put_varint(out, offsets->count);
	for (size_t i = 0; i < offsets->count; i++) {
		buf_put_varint(out, offsets->list[i].begin - at);
		buf_put_varint(out, offsets->list[i].end - offsets->list[i].begin);
		at = offsets->list[i].end;
	}
}

void stream_take_offsets(struct cursor *c, struct offsets *offsets)
{
	uint64_t at = 0, count = cursor_varint(c);
	c->bad = c->bad || count > RANGES_MAX;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		uint64_t skip = cursor_varint(c), len = cursor_varint(c);
		if (c->bad || !len || skip > STREAM_OFFSET_MAX - at ||
		    len > STREAM_OFFSET_MAX - at - skip) {
			c->bad = true;
			return;
		}
		offsets_add(offsets, at + skip, at + skip + len);
		at += skip + len;
	}
}

void stream_sealed_encode(const struct offsets *sealed, struct buf *out)
{
	buf_append_char(out, SEALED_VERSION);
	stream_put_offsets(sealed, out);
}

int stream_sealed_decode(struct slice value, struct offsets *sealed)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != SEALED_VERSION)
		return ERR_VERSION;
	stream_take_offsets(&c, sealed);
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

void stream_kept_encode(const struct stream_kept *kept, struct buf *out)
{
	buf_append_char(out, KEPT_VERSION);
	buf_put_varint(out, kept->from);
	buf_put_varint(out, zigzag_encode(kept->empty_ms));
	buf_put_varint(out, zigzag_encode(kept->before_ms));
	stream_put_offsets(&kept->going, out);
}

int stream_kept_decode(struct slice value, struct stream_kept *kept)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != 1 && version != KEPT_VERSION)
		return ERR_VERSION;
	kept->from = cursor_varint(&c);
	kept->empty_ms = zigzag_decode(cursor_varint(&c));
	kept->before_ms = version == 1 ? 0 : zigzag_decode(cursor_varint(&c));
	stream_take_offsets(&c, &kept->going);
	return c.bad || cursor_left(&c) || kept->from > STREAM_OFFSET_MAX ? ERR_DAMAGED : 0;
}

void stream_deleted_encode(uint64_t offset, struct buf *out)
{
	buf_append_char(out, DELETED_VERSION);
	buf_put_varint(out, offset);
}

int stream_deleted_decode(struct slice value, uint64_t *offset)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != DELETED_VERSION)
		return ERR_VERSION;
	*offset = cursor_varint(&c);
	return c.bad || cursor_left(&c) || *offset > STREAM_OFFSET_MAX ? ERR_DAMAGED : 0;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

void chunk_tail_key(struct stream_parts *to, const struct stream_id *id)
{
	to->parts =
		(struct store_parts){{id->tenant, stream_address(to, &id->names, id->incarnation)}};
}

void chunk_sink_key(struct stream_parts *to, const struct stream_id *id, uint64_t part)
{
	to->parts =
		(struct store_parts){{id->tenant, stream_address(to, &id->names, id->incarnation),
				      stream_part_number(to->numbers[0], part)}};
}

struct chunk_place chunk_place_of(const struct chunk_frame *frame)
{
	return (struct chunk_place){frame->fields.sequence_id, frame->fields.data_bytes,
				    frame->checksum};
}

void chunk_column(struct stream_parts *to, const struct chunk_place *place)
{
	to->parts = (struct store_parts){{stream_part_number(to->numbers[0], place->sequence_id),
					  stream_part_number(to->numbers[1], place->length),
					  stream_part_number(to->numbers[2], place->checksum)}};
}

void chunk_bound(struct stream_parts *to, uint64_t offset)
{
	to->parts = (struct store_parts){{stream_part_number(to->numbers[0], offset + 1)}};
}

static int chunk_parts_read(const struct slice parts[3], struct chunk_place *place)
{
	place->sequence_id = be64_get((const uint8_t *)parts[0].data);
	place->length = be64_get((const uint8_t *)parts[1].data);
	place->checksum = be64_get((const uint8_t *)parts[2].data);
	bool good = place->length && place->length <= CHUNK_DATA_MAX_BYTES &&
		    place->length <= place->sequence_id && place->sequence_id <= STREAM_OFFSET_MAX;
	return good ? 0 : ERR_DAMAGED;
}

int chunk_column_read(const struct store_cell *cell, struct chunk_place *place)
{
	return chunk_parts_read(cell->column.part, place);
}

int chunk_cell_encode(int64_t received_ms, struct slice frame, struct buf *out)
{
	buf_clear(out);
	buf_append_char(out, TAIL_VERSION);
	buf_put_varint(out, zigzag_encode(received_ms));
	buf_append(out, frame.data, frame.len);
	return out->failed ? ERR_LIMIT : 0;
}

int chunk_cell_peek(const struct store_cell *cell, int64_t *received_ms, size_t *frame_bytes)
{
	struct cursor c = cursor_of(cell->value.data, cell->value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != TAIL_VERSION)
		return ERR_VERSION;
	*received_ms = zigzag_decode(cursor_varint(&c));
	*frame_bytes = cursor_left(&c);
	return c.bad ? ERR_DAMAGED : 0;
}

int chunk_cell_decode(const struct store_cell *cell, int64_t *received_ms,
		      struct chunk_frame *frame)
{
	struct chunk_place place;
	const char *why;
	size_t frame_bytes;
	int err = chunk_cell_peek(cell, received_ms, &frame_bytes);
	if (err)
		return err;
	struct slice rest = {cell->value.data + cell->value.len - frame_bytes, frame_bytes};
	if (chunk_column_read(cell, &place) ||
	    chunk_frame_next(&rest, frame, &why) != CHUNK_FOUND || rest.len)
		return ERR_DAMAGED;
	const struct chunk_place inside = chunk_place_of(frame);
	return memcmp(&inside, &place, sizeof(place)) == 0 ? 0 : ERR_DAMAGED;
}

/* ---- Heads ----------------------------------------------------------------------------------- */

void chunk_head_column(struct stream_parts *to, enum chunk_head_kind kind,
		       const struct chunk_place *place)
{
	chunk_column(to, place);
	for (size_t i = 3; i > 0; i--)
		to->parts.part[i] = to->parts.part[i - 1];
	to->parts.part[0] = stream_part_number(to->numbers[3], (uint64_t)kind);
}

void chunk_head_bound(struct stream_parts *to, enum chunk_head_kind kind, uint64_t offset)
{
	to->parts = (struct store_parts){{stream_part_number(to->numbers[3], (uint64_t)kind),
					  stream_part_number(to->numbers[0], offset + 1)}};
}

int chunk_head_column_read(const struct store_cell *cell, struct chunk_place *place)
{
	return chunk_parts_read(cell->column.part + 1, place);
}

void chunk_received_encode(const struct chunk_received *received, struct buf *out)
{
	buf_append_char(out, RECEIVED_VERSION);
	buf_put_varint(out, zigzag_encode(received->first_ms));
	buf_put_varint(out, zigzag_encode(received->last_ms));
}

int chunk_received_decode(struct slice value, struct chunk_received *received)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != RECEIVED_VERSION)
		return ERR_VERSION;
	received->first_ms = zigzag_decode(cursor_varint(&c));
	received->last_ms = zigzag_decode(cursor_varint(&c));
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

static void lines_put_carry(const struct line_carry *carry, struct buf *out)
{
	buf_put_varint(out, carry->left);
	if (carry->left)
		buf_put_varint(out, zigzag_encode(carry->ms));
}

static struct line_carry lines_take_carry(struct cursor *c)
{
	struct line_carry carry = {0, 0};
	uint64_t left = cursor_varint(c);
	c->bad = c->bad || left > LINE_CARRY_MAX;
	carry.left = c->bad ? 0 : (uint32_t)left;
	if (carry.left)
		carry.ms = zigzag_decode(cursor_varint(c));
	return carry;
}

void chunk_lines_encode(const struct chunk_lines *lines, struct buf *out)
{
	struct chunk_receipt before = {0, 0};
	buf_append_char(out, LINES_VERSION);
	buf_put_varint(out, lines->count);
	buf_put_varint(out, zigzag_encode(lines->first_ms));
	buf_put_varint(out, zigzag_encode(lines->last_ms));
	lines_put_carry(&lines->before, out);
	lines_put_carry(&lines->behind, out);
	buf_put_varint(out, lines->receipt_count);
	for (size_t i = 0; i < lines->receipt_count; i++) {
		const struct chunk_receipt *receipt = &lines->receipts[i];
		buf_put_varint(out, receipt->offset - before.offset);
		buf_put_varint(out, zigzag_encode((int64_t)((uint64_t)receipt->received_ms -
							    (uint64_t)before.received_ms)));
		before = *receipt;
	}
}

static void lines_take_receipts(struct cursor *c, struct chunk_lines *lines)
{
	struct chunk_receipt at = {0, 0};
	for (size_t i = 0; i < lines->receipt_count && !c->bad; i++) {
		uint64_t skip = cursor_varint(c);
		c->bad = c->bad || skip > CHUNK_DATA_MAX_BYTES - at.offset;
		at.offset += (uint32_t)skip;
		at.received_ms = (int64_t)((uint64_t)at.received_ms +
					   (uint64_t)zigzag_decode(cursor_varint(c)));
		lines->receipts[i] = at;
	}
}

int chunk_lines_decode(struct slice value, struct arena *arena, struct chunk_lines *lines)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != LINES_VERSION)
		return ERR_VERSION;
	*lines = (struct chunk_lines){.count = cursor_varint(&c)};
	lines->first_ms = zigzag_decode(cursor_varint(&c));
	lines->last_ms = zigzag_decode(cursor_varint(&c));
	lines->before = lines_take_carry(&c);
	lines->behind = lines_take_carry(&c);
	lines->receipt_count = (size_t)cursor_varint(&c);
	if (c.bad || lines->receipt_count > CHUNK_RECEIPTS_MAX)
		return ERR_DAMAGED;
	lines->receipts = arena_alloc(arena, lines->receipt_count * sizeof(*lines->receipts));
	if (!lines->receipts)
		return ERR_LIMIT;
	lines_take_receipts(&c, lines);
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

void chunk_words_encode(struct words_set *words, struct buf *out)
{
	const uint64_t rules = words_rules();
	buf_append_char(out, WORDS_VERSION);
	buf_append(out, &rules, sizeof(rules));
	words_filter_put_alone(words, out);
}

int chunk_words_decode(struct slice value, struct slice *filter)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	if (!c.bad && version != WORDS_VERSION)
		return ERR_VERSION;
	uint64_t rules = cursor_u64(&c);
	size_t len = cursor_left(&c);
	*filter = (struct slice){(const char *)cursor_take(&c, len),
				 rules == words_rules() ? len : 0};
	return c.bad ? ERR_DAMAGED : 0;
}
