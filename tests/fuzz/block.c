/* Rows made of any bytes come back bit for bit from however many blocks they fill. The first bytes
 * choose columns, room and how the rest becomes values and times. */
#include "base/mem.h"
#include "store/lmdb/codec/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 300, COLUMNS = 3, ROOM = 3000 };

static int64_t ts_ms[ROWS], ts_out[ROWS];
static uint64_t bits[COLUMNS][ROWS], bits_out[ROWS];
static uint8_t types[COLUMNS][ROWS], types_out[ROWS], bytes[ROOM];

struct choice {
	uint8_t columns, width, spread, types, times, repeat;
	uint16_t room, rows;
};

static uint64_t take(const uint8_t *data, size_t size, size_t *at, size_t width)
{
	uint64_t value = 0;
	for (size_t i = 0; size && i < width; i++)
		value |= (uint64_t)data[(*at)++ % size] << 8 * i;
	return value;
}

static void fill_column(uint32_t c, const struct choice *choice, const uint8_t *data, size_t size)
{
	size_t at = c * 97;
	uint64_t value = 0;
	for (uint32_t i = 0; i < choice->rows; i++) {
		uint64_t next = take(data, size, &at, 1 + choice->width % 8);
		next <<= choice->spread % 64;
		value = choice->repeat >> c & 1 ? value + next : next;
		bits[c][i] = value;
		types[c][i] = choice->types >> 2 * c & 3;
		if (choice->repeat & 0x80)
			types[c][i] = (uint8_t)(next >> 3 & 3);
		if (types[c][i] == VALUE_F64 && choice->repeat & 0x40) {
			double decimal = (double)(int64_t)value / 1000;
			memcpy(&bits[c][i], &decimal, 8);
		}
	}
}

static void fill(const struct choice *choice, const uint8_t *data, size_t size)
{
	size_t at = 31;
	int64_t ts = INT64_MIN + 1;
	for (uint32_t c = 0; c < choice->columns; c++)
		fill_column(c, choice, data, size);
	for (uint32_t i = 0; i < choice->rows; i++) {
		uint64_t step = take(data, size, &at, 1 + choice->times % 6);
		ts_ms[i] = ts;
		ts += (int64_t)(choice->times & 0x80 ? 10000 : 1 + step);
	}
}

static void compare(const struct block *block, uint32_t from)
{
	uint32_t rows = block->meta.rows;
	ASSERT(block_decode_times(block, ts_out) == 0);
	ASSERT(memcmp(ts_out, ts_ms + from, rows * 8) == 0);
	for (uint32_t c = 0; c < block->meta.columns; c++) {
		struct block_summary summary;
		uint64_t count = 0;
		ASSERT(block_decode_column(block, c, bits_out, types_out) == 0);
		ASSERT(memcmp(types_out, types[c] + from, rows) == 0);
		for (uint32_t i = 0; i < rows; i++) {
			count += types_out[i] != VALUE_NONE;
			ASSERT(bits_out[i] == (types_out[i] ? bits[c][from + i] : 0));
		}
		ASSERT(block_read_summary(block, c, &summary) == 0 && summary.count == count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct choice choice;
	if (size < sizeof(choice))
		return 0;
	memcpy(&choice, data, sizeof(choice));
	choice.columns = (uint8_t)(1 + choice.columns % COLUMNS);
	choice.rows = (uint16_t)(1 + choice.rows % ROWS);
	choice.room = (uint16_t)(300 + choice.room % (ROOM - 300));
	fill(&choice, data + sizeof(choice), size - sizeof(choice));
	for (uint32_t from = 0; from < choice.rows;) {
		struct block_column column[COLUMNS];
		struct block block = {.regular = false};
		for (uint32_t c = 0; c < choice.columns; c++)
			column[c] =
				(struct block_column){bits[c] + from, types[c] + from, VALUE_NONE};
		struct block_rows rows = {choice.rows - from, choice.columns, ts_ms + from, column,
					  choice.times & 0x40};
		uint32_t taken = block_encode(&rows, bytes, choice.room, 1, &block);
		ASSERT(taken);
		compare(&block, from);
		from += taken;
	}
	return 0;
}
