/* Extents as the encoder writes them, with what they hold, for a decoder that was written from
 * doc/format-store.md alone (tests/e2e/test_format.py). One line each:
 *
 *   extent KEY BYTES                 in hex
 *   block ORDINAL FIRST_COLUMN SEQUENCE TS,TS,...
 *   column TYPE:BITS,...             for each column of the block above; - for an absent value
 *
 *   block_dump [extents, default 200]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "store/lmdb/codec/extent.h"

enum { ROWS = 600, COLUMNS = 5 };

static int64_t ts_ms[ROWS];
static uint64_t bits[COLUMNS][ROWS];
static uint8_t types[COLUMNS][ROWS];

static uint64_t f64_bits(double d)
{
	return value_f64(d).bits;
}

static const uint64_t odd[] = {
	0,
	UINT64_MAX,
	UINT64_C(1) << 63,
	(UINT64_C(1) << 53) + 1,
	0x7ff0000000000000,
	0xfff0000000000000,
	0x7ff8000000000123,
	0x8000000000000000,
};

static void fill_column(struct random *random, uint32_t c)
{
	unsigned kind = (unsigned)random_below(random, 12);
	uint8_t type = (uint8_t)(1 + random_below(random, 3));
	unsigned gaps = random_below(random, 3) ? 0 : (unsigned)random_below(random, 100);
	unsigned width = (unsigned)random_below(random, 64);
	bool mixed = random_below(random, 8) == 0;
	uint64_t value = random_next(random) >> random_below(random, 64);
	double walk = 100;
	for (uint32_t i = 0; i < ROWS; i++) {
		uint64_t r = random_next(random), v = value;
		if (kind == 1)
			v = r >> width;
		else if (kind == 2)
			v = value += r >> width;
		else if (kind == 3)
			v = value + (uint64_t)i * i * 7 + (r >> 62);
		else if (kind == 4)
			v = r % 50 ? value += r % 7 - 3 : r;
		else if (kind == 5)
			v = odd[r % ARRAY_LEN(odd)];
		else if (kind == 6)
			v = value + (r >> 56 << 12) + (i < 128 ? 0 : r >> 40 << 12);
		else if (kind == 9) /* small steps */
			v = value += (uint64_t)__builtin_popcountll(r & 0xfff) - 6;
		else if (kind == 10) /* mostly none */
			v = value += r % 20 ? 0 : r >> 60 & 3;
		else if (kind == 11) /* about one rate, and a reset */
			v = value =
				r % 300 ? value + 5000 +
						  (uint64_t)__builtin_popcountll(r & 0xffffff) * 20
					: r >> 40;
		if (kind == 7 || kind == 8)
			walk += (double)(r % 2001) / 1000 - 1;
		if (kind == 7)
			v = r % 50 ? f64_bits(round(walk * 100) / 100) : odd[r % 8];
		else if (kind == 8)
			v = f64_bits(walk);
		types[c][i] = kind == 7 || kind == 8 ? VALUE_F64 : type;
		if (mixed && r % 5 == 0)
			types[c][i] = (uint8_t)(1 + r / 5 % 3);
		if (random_below(random, 100) < gaps)
			types[c][i] = VALUE_NONE;
		bits[c][i] = v;
	}
}

static void fill_times(struct random *random)
{
	uint64_t ts = random_next(random) >> 2, step = 1 + random_below(random, 60000);
	unsigned kind = (unsigned)random_below(random, 4);
	for (uint32_t i = 0; i < ROWS; i++) {
		ts_ms[i] = (int64_t)ts;
		if (kind == 1)
			ts_ms[i] += (int64_t)random_below(random, step);
		ts += step;
		if (kind == 2)
			ts += random_below(random, 3000);
		if (kind == 3)
			ts += 1000 * random_below(random, 30) + 1000 - (ts + step) % 1000;
	}
}

static void print_block(const struct block_meta *meta, uint32_t columns, uint32_t from,
			uint32_t taken)
{
	printf("block %u %u %llu ", meta->ordinal, meta->first_column,
	       (unsigned long long)meta->sequence);
	for (uint32_t i = from; i < from + taken; i++)
		printf("%s%lld", i > from ? "," : "", (long long)ts_ms[i]);
	for (uint32_t c = 0; c < columns; c++) {
		printf("\ncolumn ");
		for (uint32_t i = from; i < from + taken; i++) {
			printf(i > from ? "," : "");
			if (types[c][i] == VALUE_NONE)
				printf("-");
			else
				printf("%u:%llx", types[c][i], (unsigned long long)bits[c][i]);
		}
	}
	printf("\n");
}

static void print_extent(struct extent_builder *builder)
{
	uint8_t bytes[EXTENT_MAX_BYTES];
	size_t len = extent_finish(builder, SLICE("key"), bytes);
	printf("extent 6b6579 ");
	for (size_t i = 0; i < len; i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

static void dump(uint64_t seed)
{
	struct random random;
	struct extent_builder builder;
	random_init(&random, seed);
	extent_builder_init(&builder);
	builder.dense = random_below(&random, 2);
	uint32_t blocks = 1 + (uint32_t)random_below(&random, 6);
	struct block_meta meta = {.ordinal = (uint32_t)random_below(&random, 5)};
	for (uint32_t b = 0; b < blocks; b++) {
		struct block_column column[COLUMNS];
		uint32_t columns = 1 + (uint32_t)random_below(&random, COLUMNS);
		uint32_t rows =
			1 + (uint32_t)random_below(&random, ROWS >> random_below(&random, 8));
		if (b == 0 || random_below(&random, 2))
			fill_times(&random);
		for (uint32_t c = 0; c < columns; c++) {
			fill_column(&random, c);
			column[c] = (struct block_column){bits[c], types[c], VALUE_NONE};
		}
		struct block_rows r = {rows, columns, ts_ms, column};
		uint32_t taken = extent_add(&builder, &meta, &r, 1);
		if (!taken)
			break;
		print_block(&meta, columns, 0, taken);
		meta.ordinal += (uint32_t)random_below(&random, 3);
		if (random_below(&random, 2))
			meta.first_column = (uint16_t)random_below(&random, 400);
		meta.sequence += random_below(&random, 3) * 1000;
	}
	print_extent(&builder);
}

int main(int argc, char **argv)
{
	uint64_t extents = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
	for (uint64_t seed = 0; seed < extents; seed++)
		dump(seed);
	return 0;
}
