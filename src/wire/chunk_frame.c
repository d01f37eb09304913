/* A chunk of version 2. Numbers are little endian; a varint is LEB128.
 *
 *     4       the bytes "Gch2"
 *     u32     length of what stands behind the checksum
 *     u32     CRC-32C of the length and of what stands behind the checksum
 *     u8      flags: 1 records are lines, 2 the first goes on from the chunk before, 4 the last one
 *             goes on in a later chunk
 *     u64     incarnation
 *     varint  sequence id
 *     varint  bytes of the data
 *     varint  bytes of the ends of records
 *     varint  clock of the sender, in ms, zigzag
 *     texts   tenant, source, cluster, datatype, name, zone, tags, debug: varint length, UTF-8
 *             a zstd frame of the data and, behind it, of the ends: for each record a varint, the
 *             bytes since the end of the one before
 *
 * The zstd frame says its content size, which is the sum of both, and ends where the chunk does. */
#include "base/hash.h"
#include "base/put.h"
#include "wire/chunk.h"
#include "wire/zstd_thread.h"

enum {
	CHUNK_HEAD_BYTES = 12,
	CHUNK_FLAG_LINES = 1,
	CHUNK_FLAG_CONTINUES = 2,
	CHUNK_FLAG_GOES_ON = 4,
	CHUNK_FLAGS = 7,
};

static const char chunk_magic[4] = {'G', 'c', 'h', '2'};

/* ---- Reading --------------------------------------------------------------------------------- */

bool chunk_is_frame(struct slice bytes)
{
	return bytes.len >= sizeof(chunk_magic) &&
	       memcmp(bytes.data, chunk_magic, sizeof(chunk_magic)) == 0;
}

static void chunk_frame_texts(struct cursor *c, struct chunk_fields *fields)
{
	fields->tenant = cursor_text(c, CHUNK_TEXT_MAX_BYTES);
	fields->names.source = cursor_text(c, CHUNK_TEXT_MAX_BYTES);
	fields->names.cluster = cursor_text(c, CHUNK_TEXT_MAX_BYTES);
	fields->names.datatype = cursor_text(c, CHUNK_TEXT_MAX_BYTES);
	fields->names.name = cursor_text(c, CHUNK_TEXT_MAX_BYTES);
	fields->zone = cursor_text(c, CHUNK_ZONE_MAX_BYTES);
	fields->tags = cursor_text(c, CHUNK_TAGS_MAX_BYTES);
	fields->debug = cursor_text(c, CHUNK_TAGS_MAX_BYTES);
}

/* What the zstd frame says of itself, without unpacking it. */
static bool chunk_packed_fits(struct slice packed, uint64_t content_bytes)
{
	return ZSTD_getFrameContentSize(packed.data, packed.len) == content_bytes &&
	       ZSTD_findFrameCompressedSize(packed.data, packed.len) == packed.len;
}

static const char *chunk_frame_fields(struct slice body, struct chunk_frame *frame)
{
	struct chunk_fields *fields = &frame->fields;
	struct cursor c = cursor_of(body.data, body.len);
	unsigned flags = cursor_u8(&c);
	fields->incarnation = cursor_u64(&c);
	fields->sequence_id = cursor_varint(&c);
	uint64_t data_bytes = cursor_varint(&c), ends_bytes = cursor_varint(&c);
	fields->clock_ms = zigzag_decode(cursor_varint(&c));
	chunk_frame_texts(&c, fields);
	frame->packed = (struct slice){(const char *)c.at, cursor_left(&c)};
	fields->lines = flags & CHUNK_FLAG_LINES;
	fields->continues = flags & CHUNK_FLAG_CONTINUES;
	fields->goes_on = flags & CHUNK_FLAG_GOES_ON;
	if (c.bad || flags > CHUNK_FLAGS)
		return "its fields cannot be read";
	if (!data_bytes || data_bytes > CHUNK_DATA_MAX_BYTES || ends_bytes > CHUNK_ENDS_MAX_BYTES)
		return "it has no bytes, or more than a chunk may have";
	fields->data_bytes = (uint32_t)data_bytes;
	frame->ends_bytes = (uint32_t)ends_bytes;
	if (fields->sequence_id > STREAM_OFFSET_MAX || fields->sequence_id < data_bytes)
		return "its sequence id is below its length, or beyond 2^63";
	if (!chunk_packed_fits(frame->packed, data_bytes + ends_bytes))
		return "what is packed in it has another length than it says";
	return NULL;
}

/* NULL: a frame is at the front. */
static const char *chunk_frame_read(struct slice bytes, struct chunk_frame *frame)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	if (!chunk_is_frame(bytes))
		return "it does not begin with the magic number of a chunk";
	cursor_u32(&c);
	uint32_t len = cursor_u32(&c), crc = cursor_u32(&c);
	const char *body = (const char *)cursor_take(&c, len);
	if (c.bad)
		return "it is cut off, or its length is false";
	if (CHUNK_HEAD_BYTES + (size_t)len > CHUNK_FRAME_MAX_BYTES)
		return "it is longer than a chunk may be";
	if (crc32c(crc32c(0, bytes.data + 4, 4), body, len) != crc)
		return "its checksum is wrong";
	frame->bytes = (struct slice){bytes.data, CHUNK_HEAD_BYTES + (size_t)len};
	frame->checksum = crc;
	return chunk_frame_fields((struct slice){body, len}, frame);
}

enum chunk_found chunk_frame_next(struct slice *bytes, struct chunk_frame *frame, const char **why)
{
	if (!bytes->len)
		return CHUNK_NONE;
	*frame = (struct chunk_frame){.ends_bytes = 0};
	*why = chunk_frame_read(*bytes, frame);
	if (!*why) {
		bytes->data += frame->bytes.len;
		bytes->len -= frame->bytes.len;
		return CHUNK_FOUND;
	}
	/* A frame whose checksum is right is passed over whole. */
	size_t passed = frame->bytes.len ? frame->bytes.len : 1;
	const char *from = bytes->data + passed, *end = bytes->data + bytes->len;
	const char *next = memmem(from, (size_t)(end - from), chunk_magic, sizeof(chunk_magic));
	*bytes = (struct slice){next ? next : end, next ? (size_t)(end - next) : 0};
	return CHUNK_DAMAGED;
}

static bool chunk_ends_read(struct slice packed, struct chunk_data *data, uint32_t *ends)
{
	struct cursor c = cursor_of(packed.data, packed.len);
	uint64_t end = 0;
	while (cursor_left(&c)) {
		uint64_t len = cursor_varint(&c);
		if (c.bad || !len || len > data->data.len - end)
			return false;
		end += len;
		ends[data->end_count++] = (uint32_t)end;
	}
	data->ends = ends;
	return true;
}

int chunk_frame_unpack(const struct chunk_frame *frame, struct buf *out, struct arena *arena,
		       struct chunk_data *data)
{
	size_t bytes = frame->fields.data_bytes + (size_t)frame->ends_bytes;
	*data = (struct chunk_data){.ends = NULL};
	buf_clear(out);
	char *to = buf_reserve(out, bytes);
	/* A record of the list takes a byte at least. */
	uint32_t *ends = arena_alloc(arena, frame->ends_bytes * sizeof(*ends) + 1);
	if (!to || !ends)
		return ERR_LIMIT;
	size_t len = ZSTD_decompressDCtx(zstd_of_thread()->unpacking, to, bytes, frame->packed.data,
					 frame->packed.len);
	if (ZSTD_isError(len) || len != bytes)
		return ERR_DAMAGED;
	out->len = bytes;
	data->data = (struct slice){to, frame->fields.data_bytes};
	struct slice packed_ends = {to + data->data.len, frame->ends_bytes};
	return chunk_ends_read(packed_ends, data, ends) ? 0 : ERR_DAMAGED;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void chunk_put_fields(const struct chunk_fields *fields, size_t data_bytes,
			     size_t ends_bytes, struct buf *out)
{
	buf_append_char(out, (char)((fields->lines ? CHUNK_FLAG_LINES : 0) |
				    (fields->continues ? CHUNK_FLAG_CONTINUES : 0) |
				    (fields->goes_on ? CHUNK_FLAG_GOES_ON : 0)));
	buf_append(out, &fields->incarnation, 8);
	buf_put_varint(out, fields->sequence_id);
	buf_put_varint(out, data_bytes);
	buf_put_varint(out, ends_bytes);
	buf_put_varint(out, zigzag_encode(fields->clock_ms));
	buf_put_text(out, fields->tenant);
	buf_put_text(out, fields->names.source);
	buf_put_text(out, fields->names.cluster);
	buf_put_text(out, fields->names.datatype);
	buf_put_text(out, fields->names.name);
	buf_put_text(out, fields->zone);
	buf_put_text(out, fields->tags);
	buf_put_text(out, fields->debug);
}

static void chunk_put_ends(const struct chunk_data *data, struct buf *out)
{
	uint32_t before = 0;
	for (size_t i = 0; i < data->end_count; i++) {
		buf_put_varint(out, data->ends[i] - before);
		before = data->ends[i];
	}
}

static void chunk_pack(struct slice content, int level, struct buf *out)
{
	size_t bound = ZSTD_compressBound(content.len);
	char *to = buf_reserve(out, bound);
	if (!to)
		return;
	ZSTD_CCtx **packing = &zstd_of_thread()->packing[PACKING_CHUNKS];
	if (!*packing)
		*packing = ZSTD_createCCtx();
	ASSERT(*packing);
	size_t err = ZSTD_CCtx_setParameter(*packing, ZSTD_c_compressionLevel, level);
	ASSERT(!ZSTD_isError(err));
	size_t len = ZSTD_compress2(*packing, to, bound, content.data, content.len);
	ASSERT(!ZSTD_isError(len)); /* there is room for the worst */
	out->len += len;
}

static void chunk_pack_data(const struct chunk_data *data, struct slice ends, int level,
			    struct buf *out)
{
	struct buf both;
	if (!ends.len) {
		chunk_pack(data->data, level, out);
		return;
	}
	buf_init(&both, data->data.len + ends.len);
	buf_append(&both, data->data.data, data->data.len);
	buf_append(&both, ends.data, ends.len);
	chunk_pack(buf_slice(&both), level, out);
	buf_release(&both);
}

/* Fills in the length and the checksum of a frame. */
static void chunk_finish(char *frame, size_t bytes)
{
	uint32_t len = (uint32_t)(bytes - CHUNK_HEAD_BYTES);
	memcpy(frame + 4, &len, 4);
	uint32_t crc = crc32c(crc32c(0, frame + 4, 4), frame + CHUNK_HEAD_BYTES, len);
	memcpy(frame + 8, &crc, 4);
}

static void chunk_put_head(const struct chunk_fields *fields, size_t data_bytes, size_t ends_bytes,
			   struct buf *out)
{
	buf_append(out, chunk_magic, sizeof(chunk_magic));
	buf_append(out, "\0\0\0\0\0\0\0\0", 8);
	chunk_put_fields(fields, data_bytes, ends_bytes, out);
}

int chunk_frame_put(const struct chunk_fields *fields, const struct chunk_data *data, int level,
		    struct buf *out)
{
	size_t begin = out->len;
	struct buf ends;
	ASSERT(data->data.len && data->data.len <= CHUNK_DATA_MAX_BYTES);
	buf_init(&ends, CHUNK_ENDS_MAX_BYTES);
	chunk_put_ends(data, &ends);
	chunk_put_head(fields, data->data.len, ends.len, out);
	chunk_pack_data(data, buf_slice(&ends), level, out);
	bool fits = !ends.failed && !out->failed && out->len - begin <= CHUNK_FRAME_MAX_BYTES;
	buf_release(&ends);
	if (!fits) {
		out->len = begin;
		return ERR_LIMIT;
	}
	chunk_finish(out->data + begin, out->len - begin);
	return 0;
}

/* ---- Writing before the place is known --------------------------------------------------------
 */

static bool chunk_texts_fit(const struct chunk_fields *fields)
{
	const struct stream_names *names = &fields->names;
	return fields->tags.len <= CHUNK_TAGS_MAX_BYTES &&
	       fields->debug.len <= CHUNK_TAGS_MAX_BYTES &&
	       fields->zone.len <= CHUNK_ZONE_MAX_BYTES &&
	       names->source.len <= CHUNK_TEXT_MAX_BYTES &&
	       names->cluster.len <= CHUNK_TEXT_MAX_BYTES &&
	       names->datatype.len <= CHUNK_TEXT_MAX_BYTES &&
	       names->name.len <= CHUNK_TEXT_MAX_BYTES;
}

/* What is packed, behind the room for the longest head. */
static int chunk_unplaced_keep(struct chunk_unplaced *chunk, struct slice packed,
			       struct arena *arena)
{
	struct chunk_fields longest = chunk->fields;
	struct buf head;
	longest.sequence_id = STREAM_OFFSET_MAX;
	buf_init(&head, CHUNK_FRAME_MAX_BYTES);
	chunk_put_head(&longest, longest.data_bytes, chunk->ends_bytes, &head);
	chunk->room_bytes = head.len;
	bool fits = !head.failed && head.len + packed.len <= CHUNK_FRAME_MAX_BYTES;
	buf_release(&head);
	chunk->room = fits ? arena_alloc(arena, chunk->room_bytes + packed.len) : NULL;
	if (!chunk->room)
		return ERR_LIMIT;
	memcpy(chunk->room + chunk->room_bytes, packed.data, packed.len);
	chunk->packed = (struct slice){chunk->room + chunk->room_bytes, packed.len};
	return 0;
}

int chunk_unplaced_make(const struct chunk_fields *fields, const struct chunk_data *data, int level,
			struct arena *arena, struct chunk_unplaced *made)
{
	struct buf ends, packed;
	ASSERT(data->data.len && data->data.len <= CHUNK_DATA_MAX_BYTES);
	if (!chunk_texts_fit(fields))
		return ERR_LIMIT;
	buf_init(&ends, CHUNK_ENDS_MAX_BYTES);
	buf_init(&packed, 2 * CHUNK_DATA_MAX_BYTES);
	chunk_put_ends(data, &ends);
	chunk_pack_data(data, buf_slice(&ends), level, &packed);
	*made = (struct chunk_unplaced){.fields = *fields, .ends_bytes = (uint32_t)ends.len};
	made->fields.sequence_id = 0;
	made->fields.data_bytes = (uint32_t)data->data.len;
	int err = ends.failed || packed.failed
			  ? ERR_LIMIT
			  : chunk_unplaced_keep(made, buf_slice(&packed), arena);
	buf_release(&packed);
	buf_release(&ends);
	return err;
}

struct chunk_frame chunk_unplaced_frame(const struct chunk_unplaced *chunk)
{
	return (struct chunk_frame){.fields = chunk->fields,
				    .ends_bytes = chunk->ends_bytes,
				    .packed = chunk->packed,
				    .bytes = chunk->packed};
}

void chunk_unplaced_place(const struct chunk_unplaced *chunk, uint64_t sequence_id,
			  struct chunk_frame *frame)
{
	struct buf head;
	*frame = chunk_unplaced_frame(chunk);
	frame->fields.sequence_id = sequence_id;
	buf_init(&head, CHUNK_FRAME_MAX_BYTES);
	chunk_put_head(&frame->fields, frame->fields.data_bytes, chunk->ends_bytes, &head);
	ASSERT(!head.failed && head.len <= chunk->room_bytes);
	char *begin = chunk->room + chunk->room_bytes - head.len;
	memcpy(begin, head.data, head.len);
	frame->bytes = (struct slice){begin, head.len + chunk->packed.len};
	buf_release(&head);
	chunk_finish(begin, frame->bytes.len);
	memcpy(&frame->checksum, begin + 8, sizeof(frame->checksum));
}
