/* The timestamps of a block whose step is not constant. The byte layout is doc/format-store.md,
 * "Times". */
#ifndef STORE_LMDB_CODEC_TIMES_H
#define STORE_LMDB_CODEC_TIMES_H

#include "store/lmdb/codec/block.h"
#include "store/lmdb/codec/pattern.h"
#include "store/lmdb/codec/stream.h"

enum { TIMES_STEPS = 0, TIMES_LINE = 1 };

/* How the times are to be encoded, and what that costs, for the rows added so far. Copyable. */
struct times_cost {
	uint32_t rows;
	bool irregular; /* a step differs, so that what follows is set */
	int64_t first_ms;
	bool any_ms; /* the unit is 1 ms whatever the first rows look like */
	uint8_t kind;
	uint64_t unit, slope;
	struct pattern_codec codec;
	struct pattern_carry carry;
	struct stream_cost stream;
};

/* entropy: NULL, or the caller's, for denser times. */
void times_cost_init(struct times_cost *cost, bool any_ms, struct entropy_cost *entropy);
/* Rows from .. from+count-1, one mini-block. false: begin again with any_ms. */
bool times_cost_add(struct times_cost *cost, const int64_t *ts_ms, uint32_t from,
		    uint32_t count) MUST_CHECK;
size_t times_cost_bytes(const struct times_cost *cost);
uint8_t *times_write(const struct times_cost *cost, const int64_t *ts_ms, uint8_t *to);

int times_read(const struct block *block, int64_t *ts_ms) MUST_CHECK;

#endif
