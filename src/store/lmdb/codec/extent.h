/* An extent: one LMDB value of at most one page that packs blocks of neighbouring bands. A small
 * index in front holds each block's meta, so that looking for one band touches nothing else. The
 * byte layout is doc/format-store.md, "Extents".
 *
 * Pure functions, as in block.h. */
#ifndef STORE_LMDB_CODEC_EXTENT_H
#define STORE_LMDB_CODEC_EXTENT_H

#include "store/lmdb/codec/block.h"

enum {
	EXTENT_MAX_BYTES = 4080, /* what one page of LMDB takes without an overflow page */
	EXTENT_KEY_MAX_BYTES = 64,
	EXTENT_BLOCKS_MAX = 1024,
	EXTENT_VERSION_PACKED = 1,
	EXTENT_VERSION = 2, /* may have entropy-coded streams */
};

/* Collects blocks; about 8 KB, no memory of its own. */
struct extent_builder {
	bool dense; /* the caller's choice, after extent_builder_init: see struct block_rows */
	struct block_meta previous; /* what the next index entry is relative to */
	bool previous_regular;
	uint16_t previous_times; /* where its times lie in bodies */
	uint16_t previous_times_bytes;
	uint16_t blocks;
	uint16_t index_bytes, body_bytes;
	uint8_t index[EXTENT_MAX_BYTES];
	uint8_t bodies[EXTENT_MAX_BYTES];
};

void extent_builder_init(struct extent_builder *builder);

/* Encodes as many leading rows as fit into what is left of the extent. Of `meta` ordinal,
 * first_column and sequence are used. Returns the rows taken; 0: fewer than min(rows, rows_least)
 * fit, so finish this extent and add the same rows to the next. An empty extent takes at least one
 * row, whatever rows_least. Blocks may be added in any order; in order of ordinal, first_column and
 * time they take the fewest bytes. */
uint32_t extent_add(struct extent_builder *builder, const struct block_meta *meta,
		    const struct block_rows *rows, uint32_t rows_least);

/* Bytes left for a block and its index entry. */
size_t extent_room(const struct extent_builder *builder);

/* Writes the extent, at most EXTENT_MAX_BYTES, and empties the builder. At least one block. The
 * checksum covers `key` too: the bytes under which the extent will be stored. */
size_t extent_finish(struct extent_builder *builder, struct slice key, uint8_t *to);

/* An opened extent, and where the iteration stands. Points into the value. */
struct extent {
	struct slice bodies;
	uint16_t blocks; /* in all */
	/* of extent_next */
	struct slice index; /* what is still to be read */
	size_t body_at;
	uint16_t next;
	struct block previous;
};

/* Checks version, length and checksum and that the index is sound: every block lies inside, in
 * bounds of rows and columns. ERR_DAMAGED, or ERR_VERSION for a later format whose checksum holds:
 * it stays where it is. */
int extent_open(struct extent *extent, struct slice key, struct slice value) MUST_CHECK;
/* As above without the checksum: for values checked before (a cache), and for tests. */
int extent_open_unchecked(struct extent *extent, struct slice value) MUST_CHECK;

/* The next block in the order of addition; false at the end. Cannot fail after extent_open. */
bool extent_next(struct extent *extent, struct block *block);

#endif
