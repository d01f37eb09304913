#include "store/lmdb/codec/extent.h"

#include "base/cursor.h"
#include "base/hash.h"

/* offset 0: version, 1: CRC-32C, 5: blocks, 7: bytes of the index, 9: index, then the bodies. */
enum { AT_CRC = 1, AT_BLOCKS = 5, AT_INDEX_BYTES = 7, HEADER_BYTES = 9 };

/* The flags of an index entry. */
enum {
	NEXT_BAND = 0x01,
	SAME_COLUMNS = 0x02,
	SAME_TIMES = 0x04,
	SAME_SEQUENCE = 0x08,
	REGULAR = 0x10,
	ALL_FLAGS = 0x1f,
	/* Flags, ordinal, columns, rows, two times, sequence, two lengths. */
	ENTRY_MAX_BYTES = 1 + 5 + 2 + 1 + 3 + 10 + 10 + 10 + 2 + 2,
};

/* What stands before the first entry: the next band is band 0. */
static const struct block_meta before_first = {.ordinal = UINT32_MAX};

static uint32_t checksum(struct slice key, const uint8_t *extent, size_t len)
{
	uint32_t crc = crc32c(0, key.data, key.len);
	crc = crc32c(crc, extent, AT_CRC);
	return crc32c(crc, extent + AT_BLOCKS, len - AT_BLOCKS);
}

/* ---- Writing -------------------------------------------------------------------------------- */

void extent_builder_init(struct extent_builder *builder)
{
	memset(builder, 0, offsetof(struct extent_builder, index));
	builder->previous = before_first;
}

size_t extent_room(const struct extent_builder *builder)
{
	return EXTENT_MAX_BYTES - HEADER_BYTES - builder->index_bytes - builder->body_bytes;
}

static bool same_times(const struct extent_builder *builder, const struct block *block)
{
	const struct block_meta *previous = &builder->previous, *meta = &block->meta;
	struct slice times = {(const char *)builder->bodies + builder->previous_times,
			      builder->previous_times_bytes};
	return builder->blocks && previous->rows == meta->rows &&
	       previous->first_ts_ms == meta->first_ts_ms &&
	       previous->last_ts_ms == meta->last_ts_ms &&
	       builder->previous_regular == block->regular && slice_equal(times, block->times);
}

static uint8_t entry_flags(const struct extent_builder *builder, const struct block *block)
{
	const struct block_meta *previous = &builder->previous, *meta = &block->meta;
	unsigned flags = 0;
	if (meta->ordinal == (uint32_t)(previous->ordinal + 1))
		flags |= NEXT_BAND;
	if (meta->first_column == previous->first_column && meta->columns == previous->columns)
		flags |= SAME_COLUMNS;
	if (meta->sequence == previous->sequence)
		flags |= SAME_SEQUENCE;
	if (same_times(builder, block))
		flags |= SAME_TIMES;
	else if (block->regular)
		flags |= REGULAR;
	return (uint8_t)flags;
}

static uint64_t extent_zigzag_between(uint64_t from, uint64_t to)
{
	return zigzag_encode((int64_t)(to - from));
}

static size_t entry_put_times(uint8_t *to, const struct block_meta *previous,
			      const struct block_meta *meta)
{
	size_t n = varint_put(to, meta->rows);
	n += varint_put(to + n, extent_zigzag_between((uint64_t)previous->first_ts_ms,
						      (uint64_t)meta->first_ts_ms));
	if (meta->rows > 1)
		n += varint_put(to + n, (uint64_t)meta->last_ts_ms - (uint64_t)meta->first_ts_ms);
	return n;
}

/* At most ENTRY_MAX_BYTES. */
static size_t entry_put(uint8_t *to, uint8_t flags, const struct block_meta *previous,
			const struct block *block)
{
	const struct block_meta *meta = &block->meta;
	size_t n = 0;
	to[n++] = flags;
	if (!(flags & NEXT_BAND))
		n += varint_put(to + n,
				zigzag_encode((int32_t)(meta->ordinal - previous->ordinal)));
	if (!(flags & SAME_COLUMNS)) {
		n += varint_put(to + n, meta->first_column);
		n += varint_put(to + n, meta->columns);
	}
	if (!(flags & SAME_TIMES))
		n += entry_put_times(to + n, previous, meta);
	if (!(flags & SAME_SEQUENCE))
		n += varint_put(to + n, extent_zigzag_between(previous->sequence, meta->sequence));
	if (!(flags & (SAME_TIMES | REGULAR)))
		n += varint_put(to + n, block->times.len);
	return n + varint_put(to + n, block->body.len);
}

/* What the entry takes at most, before it is known how many of the rows go in. */
static size_t entry_bytes_most(const struct extent_builder *builder, const struct block_meta *meta,
			       const struct block_rows *rows)
{
	uint8_t scratch[ENTRY_MAX_BYTES];
	struct block block = {
		.meta = *meta, .times.len = EXTENT_MAX_BYTES, .body.len = EXTENT_MAX_BYTES};
	block.meta.columns = (uint16_t)rows->columns;
	block.meta.rows = rows->rows < BLOCK_ROWS_MAX ? rows->rows : BLOCK_ROWS_MAX;
	block.meta.first_ts_ms = rows->ts_ms[0];
	block.meta.last_ts_ms = rows->ts_ms[block.meta.rows - 1];
	uint8_t flags = entry_flags(builder, &block) & (uint8_t) ~(SAME_TIMES | REGULAR);
	return entry_put(scratch, flags, &builder->previous, &block);
}

/* Takes the encoded block, which lies after the bodies, into the extent. */
static void extent_append_block(struct extent_builder *builder, const struct block *block)
{
	uint8_t flags = entry_flags(builder, block);
	uint8_t *at = builder->bodies + builder->body_bytes;
	builder->index_bytes =
		(uint16_t)(builder->index_bytes + entry_put(builder->index + builder->index_bytes,
							    flags, &builder->previous, block));
	if (flags & SAME_TIMES) {
		memmove(at, block->body.data, block->body.len);
	} else {
		builder->previous_times = builder->body_bytes;
		builder->previous_times_bytes = (uint16_t)block->times.len;
		at += block->times.len;
	}
	at += block->body.len;
	builder->body_bytes = (uint16_t)(at - builder->bodies);
	builder->previous = block->meta;
	builder->previous_regular = block->regular;
	builder->blocks++;
}

uint32_t extent_add(struct extent_builder *builder, const struct block_meta *meta,
		    const struct block_rows *rows, uint32_t rows_least)
{
	struct block block = {.meta = *meta};
	size_t room = extent_room(builder), entry = entry_bytes_most(builder, meta, rows);
	ASSERT(meta->first_column + rows->columns <= BAND_COLUMNS_MAX);
	if (builder->blocks == EXTENT_BLOCKS_MAX || room < entry)
		return 0;
	if (!builder->blocks)
		rows_least = 1;
	struct block_rows wanted = *rows;
	wanted.dense = builder->dense;
	uint32_t taken = block_encode(&wanted, builder->bodies + builder->body_bytes, room - entry,
				      rows_least, &block);
	if (taken)
		extent_append_block(builder, &block);
	return taken;
}

size_t extent_finish(struct extent_builder *builder, struct slice key, uint8_t *to)
{
	size_t len = HEADER_BYTES + builder->index_bytes + (size_t)builder->body_bytes;
	ASSERT(builder->blocks && len <= EXTENT_MAX_BYTES);
	to[0] = builder->dense ? EXTENT_VERSION : EXTENT_VERSION_PACKED;
	memcpy(to + AT_BLOCKS, &builder->blocks, 2);
	memcpy(to + AT_INDEX_BYTES, &builder->index_bytes, 2);
	memcpy(to + HEADER_BYTES, builder->index, builder->index_bytes);
	memcpy(to + HEADER_BYTES + builder->index_bytes, builder->bodies, builder->body_bytes);
	uint32_t crc = checksum(key, to, len);
	memcpy(to + AT_CRC, &crc, 4);
	bool dense = builder->dense;
	extent_builder_init(builder);
	builder->dense = dense;
	return len;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void read_band(struct cursor *c, uint8_t flags, struct block_meta *meta)
{
	if (flags & NEXT_BAND)
		meta->ordinal++;
	else
		meta->ordinal += (uint32_t)zigzag_decode(cursor_varint(c));
	if (flags & SAME_COLUMNS)
		return;
	uint64_t first = cursor_varint(c), columns = cursor_varint(c);
	if (columns < 1 || columns > BLOCK_COLUMNS_MAX || first > BAND_COLUMNS_MAX - columns)
		c->bad = true;
	meta->first_column = c->bad ? 0 : (uint16_t)first;
	meta->columns = c->bad ? 0 : (uint16_t)columns;
}

/* The last time must be one, and the rows between must find distinct ones. */
static void extent_read_span(struct cursor *c, uint8_t flags, struct block_meta *meta)
{
	uint64_t span = meta->rows > 1 ? cursor_varint(c) : 0, steps = meta->rows - 1;
	uint64_t last = (uint64_t)meta->first_ts_ms + span;
	if (span < steps || span > (uint64_t)INT64_MAX - (uint64_t)meta->first_ts_ms)
		c->bad = true;
	if (flags & REGULAR ? steps && span % steps : !steps)
		c->bad = true;
	meta->last_ts_ms = (int64_t)last;
}

static void extent_read_times(struct cursor *c, uint8_t flags, struct block *block)
{
	struct block_meta *meta = &block->meta;
	if (flags & SAME_TIMES) {
		c->bad = c->bad || !meta->rows || flags & REGULAR;
		return;
	}
	uint64_t rows = cursor_varint(c);
	if (rows < 1 || rows > BLOCK_ROWS_MAX) {
		c->bad = true;
		return;
	}
	meta->rows = (uint32_t)rows;
	meta->first_ts_ms =
		(int64_t)((uint64_t)meta->first_ts_ms + (uint64_t)zigzag_decode(cursor_varint(c)));
	extent_read_span(c, flags, meta);
	block->regular = flags & REGULAR;
}

/* The next `len` bytes of the bodies; what does not lie inside is bad. */
static struct slice extent_next_bytes(struct extent *extent, struct cursor *c, uint64_t len)
{
	if (c->bad || len > extent->bodies.len - extent->body_at) {
		c->bad = true;
		return (struct slice){NULL, 0};
	}
	struct slice bytes = {extent->bodies.data + extent->body_at, len};
	extent->body_at += len;
	return bytes;
}

/* One entry, on top of the one before; false when it is not sound. */
static bool read_entry(struct extent *extent, struct block *block)
{
	struct cursor c = cursor_of(extent->index.data, extent->index.len);
	uint8_t flags = cursor_u8(&c);
	if (flags & ~ALL_FLAGS)
		return false;
	read_band(&c, flags, &block->meta);
	extent_read_times(&c, flags, block);
	if (!(flags & SAME_SEQUENCE))
		block->meta.sequence += (uint64_t)zigzag_decode(cursor_varint(&c));
	if (!(flags & SAME_TIMES))
		block->times =
			extent_next_bytes(extent, &c, flags & REGULAR ? 0 : cursor_varint(&c));
	block->body = extent_next_bytes(extent, &c, cursor_varint(&c));
	extent->index = (struct slice){(const char *)c.at, cursor_left(&c)};
	return !c.bad && block->meta.columns;
}

static void rewind_extent(struct extent *extent, struct slice index)
{
	extent->index = index;
	extent->body_at = 0;
	extent->next = 0;
	extent->previous = (struct block){.meta = before_first};
}

static int check_index(struct extent *extent)
{
	struct slice index = extent->index;
	for (; extent->next < extent->blocks; extent->next++) {
		if (!read_entry(extent, &extent->previous))
			return ERR_DAMAGED;
	}
	if (extent->index.len || extent->body_at != extent->bodies.len)
		return ERR_DAMAGED;
	rewind_extent(extent, index);
	return 0;
}

int extent_open_unchecked(struct extent *extent, struct slice value)
{
	const uint8_t *bytes = (const uint8_t *)value.data;
	uint16_t index_bytes;
	if (value.len < HEADER_BYTES || value.len > EXTENT_MAX_BYTES || bytes[0] == 0)
		return ERR_DAMAGED;
	if (bytes[0] > EXTENT_VERSION)
		return ERR_VERSION;
	memcpy(&extent->blocks, bytes + AT_BLOCKS, 2);
	memcpy(&index_bytes, bytes + AT_INDEX_BYTES, 2);
	if (index_bytes > value.len - HEADER_BYTES || extent->blocks < 1 ||
	    extent->blocks > EXTENT_BLOCKS_MAX)
		return ERR_DAMAGED;
	size_t front = HEADER_BYTES + index_bytes;
	extent->bodies = (struct slice){value.data + front, value.len - front};
	rewind_extent(extent, (struct slice){value.data + HEADER_BYTES, index_bytes});
	return check_index(extent);
}

int extent_open(struct extent *extent, struct slice key, struct slice value)
{
	const uint8_t *bytes = (const uint8_t *)value.data;
	uint32_t crc;
	if (value.len < HEADER_BYTES || value.len > EXTENT_MAX_BYTES)
		return ERR_DAMAGED;
	/* First: until it holds, the version is a byte like any other. */
	memcpy(&crc, bytes + AT_CRC, 4);
	if (crc != checksum(key, bytes, value.len))
		return ERR_DAMAGED;
	return extent_open_unchecked(extent, value);
}

bool extent_next(struct extent *extent, struct block *block)
{
	if (extent->next == extent->blocks)
		return false;
	ASSERT(read_entry(extent, &extent->previous));
	extent->next++;
	*block = extent->previous;
	return true;
}
