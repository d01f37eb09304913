/* Any bytes as an extent, without the checksum: nothing is read outside, what opens can be
 * iterated, and what decodes has times in order. */
#include "base/mem.h"
#include "store/lmdb/codec/extent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t ts_ms[BLOCK_ROWS_MAX];
static uint64_t bits[BLOCK_ROWS_MAX];
static uint8_t types[BLOCK_ROWS_MAX];

static void decode(const struct block *block)
{
	struct block_summary summary;
	if (block_decode_times(block, ts_ms) == 0) {
		ASSERT(ts_ms[0] == block->meta.first_ts_ms);
		ASSERT(ts_ms[block->meta.rows - 1] == block->meta.last_ts_ms);
	}
	for (unsigned c = 0; c < block->meta.columns; c++) {
		int err = block_decode_column(block, c, bits, types);
		ASSERT(err == 0 || err == ERR_DAMAGED || err == ERR_VERSION);
		if (block_read_summary(block, c, &summary) == 0)
			ASSERT(summary.count <= block->meta.rows);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct extent extent;
	struct block block;
	struct slice value = {(const char *)data, size};
	int err = extent_open_unchecked(&extent, value);
	ASSERT(err == 0 || err == ERR_DAMAGED || err == ERR_VERSION);
	while (err == 0 && extent_next(&extent, &block))
		decode(&block);
	return 0;
}
