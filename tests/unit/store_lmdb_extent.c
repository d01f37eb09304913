#include "store/lmdb/codec/extent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "store/store.h"

#define KEY SLICE("some key")

/* ---- Bytes worked by hand from doc/format-store.md ------------------------------------------ */

/* Header, index and bodies put together, with the checksum that RFC 3720's polynomial gives. */
struct hand_extent {
	uint8_t bytes[EXTENT_MAX_BYTES + 1];
	size_t len;
};

static void seal_by_hand(struct hand_extent *h)
{
	uint32_t crc = crc32c(0, KEY.data, KEY.len);
	crc = crc32c(crc, h->bytes, 1);
	crc = crc32c(crc, h->bytes + 5, h->len - 5);
	memcpy(h->bytes + 1, &crc, 4);
}

static struct slice by_hand(struct hand_extent *h, uint16_t blocks, struct slice index,
			    struct slice bodies)
{
	uint16_t index_bytes = (uint16_t)index.len;
	h->bytes[0] = 1;
	memcpy(h->bytes + 5, &blocks, 2);
	memcpy(h->bytes + 7, &index_bytes, 2);
	memcpy(h->bytes + 9, index.data, index.len);
	memcpy(h->bytes + 9 + index.len, bodies.data, bodies.len);
	h->len = 9 + index.len + bodies.len;
	seal_by_hand(h);
	return (struct slice){(const char *)h->bytes, h->len};
}

static struct slice with_index(struct hand_extent *h, uint16_t blocks, struct slice index)
{
	return by_hand(h, blocks, index, SLICE("\x02\x20\x0a\x02\x20\x0c"));
}

/* Two blocks of one row, band 0 and 1: NEXT_BAND | REGULAR, columns 0 and 1, row 1, ts 1000 (zigzag
 * 2000), sequence 7 (zigzag 14), 3 bytes; then NEXT_BAND | SAME_COLUMNS | SAME_TIMES |
 * SAME_SEQUENCE, 3 bytes. The bodies: i64 constants 5 and 6. */
#define TWO_BLOCKS SLICE("\x11\x00\x01\x01\xd0\x0f\x0e\x03\x0f\x03")

static void two_small_blocks_by_hand(void **state)
{
	struct hand_extent h;
	struct extent extent;
	struct block block;
	uint64_t bits;
	uint8_t type;
	int64_t ts;
	(void)state;
	assert_int_equal(extent_open(&extent, KEY, with_index(&h, 2, TWO_BLOCKS)), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(extent_next(&extent, &block));
		assert_int_equal(block.meta.ordinal, i);
		assert_int_equal(block.meta.first_column, 0);
		assert_int_equal(block.meta.columns, 1);
		assert_int_equal(block.meta.rows, 1);
		assert_int_equal(block.meta.first_ts_ms, 1000);
		assert_int_equal(block.meta.last_ts_ms, 1000);
		assert_int_equal(block.meta.sequence, 7);
		assert_int_equal(block_decode_times(&block, &ts), 0);
		assert_int_equal(ts, 1000);
		assert_int_equal(block_decode_column(&block, 0, &bits, &type), 0);
		assert_int_equal(bits, 5 + i);
		assert_int_equal(type, VALUE_I64);
	}
	assert_false(extent_next(&extent, &block));
}

static void the_builder_writes_those_bytes(void **state)
{
	struct hand_extent h;
	struct extent_builder builder;
	uint8_t got[EXTENT_MAX_BYTES];
	(void)state;
	struct slice expected = with_index(&h, 2, TWO_BLOCKS);
	extent_builder_init(&builder);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t bits = 5 + i;
		int64_t ts = 1000;
		struct block_column column = {&bits, NULL, VALUE_I64};
		struct block_rows rows = {1, 1, &ts, &column};
		struct block_meta meta = {.ordinal = i, .sequence = 7};
		assert_int_equal(extent_add(&builder, &meta, &rows, 1), 1);
	}
	assert_int_equal(extent_finish(&builder, KEY, got), expected.len);
	assert_memory_equal(got, expected.data, expected.len);
	assert_int_equal(extent_room(&builder), EXTENT_MAX_BYTES - 9);
}

/* Band 0 twice: 4 irregular rows from ts 1000 to 1025, the second with the same times. */
static void times_are_shared_by_hand(void **state)
{
	struct hand_extent h;
	struct extent extent;
	struct block block;
	int64_t ts[4];
	(void)state;
	struct slice value = by_hand(&h, 2,
				     SLICE("\x01\x00\x01\x04\xd0\x0f\x19\x0e\x05\x03"
					   "\x0c\x00\x20\x01\x03"),
				     SLICE("\x00\x01\x0e\x02\xd0\x02\x20\x0a\x02\x20\x0c"));
	assert_int_equal(extent_open(&extent, KEY, value), 0);
	for (uint16_t i = 0; i < 2; i++) {
		assert_true(extent_next(&extent, &block));
		assert_int_equal(block.meta.ordinal, 0);
		assert_int_equal(block.meta.first_column, 32 * i);
		assert_int_equal(block_decode_times(&block, ts), 0);
		assert_true(ts[0] == 1000 && ts[1] == 1007 && ts[2] == 1015 && ts[3] == 1025);
	}
}

static void assert_refused(uint16_t blocks, struct slice index)
{
	struct hand_extent h;
	struct extent extent;
	assert_int_equal(extent_open(&extent, KEY, with_index(&h, blocks, index)), ERR_DAMAGED);
}

static void what_the_format_forbids_is_damage(void **state)
{
	(void)state;
	/* no block; more than the index has; fewer */
	assert_refused(0, SLICE(""));
	assert_refused(3, TWO_BLOCKS);
	assert_refused(1, TWO_BLOCKS);
	assert_refused(1025, TWO_BLOCKS);
	/* an unknown flag */
	assert_refused(2, SLICE("\x31\x00\x01\x01\xd0\x0f\x0e\x03\x0f\x03"));
	/* the first with SAME_TIMES; with SAME_COLUMNS */
	assert_refused(2, SLICE("\x05\x00\x01\x0e\x03\x0f\x03"));
	assert_refused(2, SLICE("\x13\x01\xd0\x0f\x0e\x03\x0f\x03"));
	/* SAME_TIMES with REGULAR */
	assert_refused(2, SLICE("\x11\x00\x01\x01\xd0\x0f\x0e\x03\x1f\x03"));
	/* bodies that are too long, too short, and wrap round */
	assert_refused(2, SLICE("\x11\x00\x01\x01\xd0\x0f\x0e\x03\x0f\x04"));
	assert_refused(2, SLICE("\x11\x00\x01\x01\xd0\x0f\x0e\x03\x0f\x02"));
	assert_refused(2, SLICE("\x11\x00\x01\x01\xd0\x0f\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff"
				"\x01\x0f\x04"));
	/* columns: none, 33, up to 513 */
	assert_refused(2, SLICE("\x11\x00\x00\x01\xd0\x0f\x0e\x03\x0f\x03"));
	assert_refused(2, SLICE("\x11\x00\x21\x01\xd0\x0f\x0e\x03\x0f\x03"));
	assert_refused(2, SLICE("\x11\x80\x04\x01\x01\xd0\x0f\x0e\x03\x0f\x03"));
	/* rows: none, 16385 */
	assert_refused(2, SLICE("\x11\x00\x01\x00\xd0\x0f\x0e\x03\x0f\x03"));
	assert_refused(2, SLICE("\x11\x00\x01\x81\x80\x01\xd0\x0f\x80\x80\x01\x0e\x03\x0f\x03"));
	/* three rows: in a span of 1; regular in a span of 3; from the last ms but one to beyond */
	assert_refused(2, SLICE("\x11\x00\x01\x03\xd0\x0f\x01\x0e\x03\x0f\x03"));
	assert_refused(2, SLICE("\x11\x00\x01\x03\xd0\x0f\x03\x0e\x03\x0f\x03"));
	assert_refused(2, SLICE("\x11\x00\x01\x03\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x0e"
				"\x03\x0f\x03"));
	/* a single row that is not regular */
	assert_refused(2, SLICE("\x01\x00\x01\x01\xd0\x0f\x0e\x00\x03\x0f\x03"));
}

static void versions_and_lengths(void **state)
{
	struct hand_extent h;
	struct extent extent;
	(void)state;
	struct slice value = with_index(&h, 2, TWO_BLOCKS);
	h.bytes[0] = 3; /* by damage */
	assert_int_equal(extent_open(&extent, KEY, value), ERR_DAMAGED);
	seal_by_hand(&h);
	assert_int_equal(extent_open(&extent, KEY, value), ERR_VERSION);
	h.bytes[0] = 0;
	assert_int_equal(extent_open(&extent, KEY, value), ERR_DAMAGED);
	seal_by_hand(&h);
	assert_int_equal(extent_open(&extent, KEY, value), ERR_DAMAGED);
	h.bytes[0] = 1;
	seal_by_hand(&h);
	assert_int_equal(extent_open(&extent, SLICE("other key"), value), ERR_DAMAGED);
	assert_int_equal(extent_open(&extent, SLICE(""), value), ERR_DAMAGED);
	assert_int_equal(extent_open(&extent, KEY, value), 0);
	value.len = EXTENT_MAX_BYTES + 1;
	assert_int_equal(extent_open(&extent, KEY, value), ERR_DAMAGED);
	assert_int_equal(extent_open_unchecked(&extent, value), ERR_DAMAGED);
}

/* ---- Many blocks ---------------------------------------------------------------------------- */

enum { ROWS = 400, COLUMNS = 40 };

/* A band: its rows, and how far it has been written and read back. */
struct band {
	uint32_t rows, columns;
	int64_t ts_ms[ROWS];
	uint64_t bits[COLUMNS][ROWS];
	uint8_t types[COLUMNS][ROWS];
};

static struct band *band_new(struct random *random)
{
	struct band *b = mem_zalloc(sizeof(*b));
	uint64_t ts = 1451606400000, jitter = random_below(random, 2) * 40;
	b->rows = 1 + (uint32_t)random_below(random, ROWS);
	b->columns = 1 + (uint32_t)random_below(random, COLUMNS);
	for (uint32_t i = 0; i < b->rows; i++) {
		b->ts_ms[i] = (int64_t)(ts + random_below(random, jitter + 1));
		ts += 10000;
	}
	for (uint32_t c = 0; c < b->columns; c++) {
		uint64_t bits = random_below(random, 100), step = 1 + random_below(random, 30);
		for (uint32_t i = 0; i < b->rows; i++) {
			bits += random_below(random, step);
			b->types[c][i] = random_below(random, 100) ? VALUE_U64 : VALUE_NONE;
			b->bits[c][i] = b->types[c][i] ? bits : 0;
		}
	}
	return b;
}

/* Written extents, one behind the other. */
struct file {
	uint8_t bytes[512][EXTENT_MAX_BYTES];
	size_t len[512], count;
};

static void write_slice(struct file *file, struct extent_builder *builder, const struct band *band,
			uint32_t ordinal, uint16_t first_column)
{
	struct block_meta meta = {ordinal, .first_column = first_column, .sequence = ordinal / 3};
	uint32_t columns = band->columns - first_column < BLOCK_COLUMNS_MAX
				   ? band->columns - first_column
				   : BLOCK_COLUMNS_MAX;
	for (uint32_t from = 0; from < band->rows;) {
		struct block_column column[BLOCK_COLUMNS_MAX];
		for (uint32_t c = 0; c < columns; c++)
			column[c] = (struct block_column){band->bits[first_column + c] + from,
							  band->types[first_column + c] + from,
							  VALUE_NONE};
		struct block_rows rows = {band->rows - from, columns, band->ts_ms + from, column};
		uint32_t taken = extent_add(builder, &meta, &rows, 32);
		from += taken;
		if (from < band->rows) {
			assert_true(builder->blocks);
			file->len[file->count] =
				extent_finish(builder, KEY, file->bytes[file->count]);
			file->count++;
		}
	}
}

/* What follows in the order of writing must be that band's slice, whole. */
static void read_slice(const struct file *file, size_t *at, struct extent *extent,
		       const struct band *band, uint32_t ordinal, uint16_t first_column)
{
	for (uint32_t from = 0; from < band->rows;) {
		struct block block;
		int64_t ts[ROWS];
		uint64_t bits[ROWS];
		uint8_t types[ROWS];
		while (!extent_next(extent, &block)) {
			struct slice value = {(const char *)file->bytes[*at], file->len[*at]};
			assert_true(*at < file->count);
			assert_int_equal(extent_open(extent, KEY, value), 0);
			++*at;
		}
		assert_int_equal(block.meta.ordinal, ordinal);
		assert_int_equal(block.meta.first_column, first_column);
		assert_int_equal(block.meta.sequence, ordinal / 3);
		assert_int_equal(block_decode_times(&block, ts), 0);
		assert_memory_equal(ts, band->ts_ms + from, block.meta.rows * 8);
		assert_int_equal(block.meta.last_ts_ms, ts[block.meta.rows - 1]);
		for (unsigned c = 0; c < block.meta.columns; c++) {
			assert_int_equal(block_decode_column(&block, c, bits, types), 0);
			assert_memory_equal(bits, band->bits[first_column + c] + from,
					    block.meta.rows * 8);
			assert_memory_equal(types, band->types[first_column + c] + from,
					    block.meta.rows);
		}
		from += block.meta.rows;
	}
}

static void write_and_read_bands(bool dense)
{
	enum { BANDS = 60 };
	struct band *bands[BANDS];
	struct file *file = mem_zalloc(sizeof(*file));
	struct extent_builder builder;
	struct extent extent = {.blocks = 0};
	struct random random;
	size_t at = 0, bytes = 0;
	random_init(&random, 5);
	extent_builder_init(&builder);
	builder.dense = dense;
	for (uint32_t i = 0; i < BANDS; i++) {
		bands[i] = band_new(&random);
		for (uint32_t c = 0; c < bands[i]->columns; c += BLOCK_COLUMNS_MAX)
			write_slice(file, &builder, bands[i], 2 * i, (uint16_t)c);
	}
	file->len[file->count] = extent_finish(&builder, KEY, file->bytes[file->count]);
	file->count++;
	for (uint32_t i = 0; i < BANDS; i++) {
		for (uint32_t c = 0; c < bands[i]->columns; c += BLOCK_COLUMNS_MAX)
			read_slice(file, &at, &extent, bands[i], 2 * i, (uint16_t)c);
		mem_free(bands[i]);
	}
	assert_int_equal(at, file->count);
	for (size_t i = 0; i < file->count; i++)
		bytes += file->len[i];
	assert_true(bytes > file->count * EXTENT_MAX_BYTES * 9 / 10);
	mem_free(file);
}

static void many_bands_come_back(void **state)
{
	(void)state;
	write_and_read_bands(false);
	write_and_read_bands(true);
}

static void an_empty_extent_takes_a_row_of_anything(void **state)
{
	struct extent_builder builder;
	struct random random;
	uint64_t bits[COLUMNS][100];
	uint8_t types[100];
	int64_t ts[100];
	struct block_column column[BLOCK_COLUMNS_MAX];
	(void)state;
	random_init(&random, 5);
	ts[0] = STORE_TS_MIN;
	for (size_t i = 1; i < 100; i++)
		ts[i] = ts[i - 1] + (int64_t)(random_next(&random) >> 8);
	for (size_t i = 0; i < 100; i++)
		types[i] = (uint8_t)(1 + i % 3);
	for (uint32_t c = 0; c < BLOCK_COLUMNS_MAX; c++) {
		for (size_t i = 0; i < 100; i++)
			bits[c][i] = random_next(&random);
		column[c] = (struct block_column){bits[c], types, VALUE_NONE};
	}
	struct block_rows rows = {100, BLOCK_COLUMNS_MAX, ts, column};
	struct block_meta meta = {.ordinal = 4000000000u, .first_column = 480, .sequence = ~0ull};
	extent_builder_init(&builder);
	/* 8 bytes of value, 2 bits of type, 32 columns: 15 rows at most */
	uint32_t taken = extent_add(&builder, &meta, &rows, 64);
	assert_in_range(taken, 12, 15);
	/* the rest is refused, not split finely */
	assert_int_equal(extent_add(&builder, &meta, &rows, 64), 0);
}

static void no_more_blocks_than_the_limit(void **state)
{
	struct extent_builder builder;
	uint8_t bytes[EXTENT_MAX_BYTES];
	struct extent extent;
	struct block block;
	uint32_t added = 0, seen = 0;
	uint64_t bits = 1;
	int64_t ts = 1;
	struct block_column column = {&bits, NULL, VALUE_NONE};
	struct block_rows rows = {1, 1, &ts, &column};
	(void)state;
	extent_builder_init(&builder);
	for (struct block_meta meta = {.ordinal = 0}; extent_add(&builder, &meta, &rows, 1);
	     meta.ordinal++)
		added++;
	/* two bytes of entry, one of an empty column: the limit comes before the page's end */
	assert_int_equal(added, EXTENT_BLOCKS_MAX);
	size_t len = extent_finish(&builder, KEY, bytes);
	assert_int_equal(extent_open(&extent, KEY, (struct slice){(const char *)bytes, len}), 0);
	while (extent_next(&extent, &block))
		assert_int_equal(block.meta.ordinal, seen++);
	assert_int_equal(seen, added);
}

/* ---- Damage --------------------------------------------------------------------------------- */

static size_t sample_extent(uint8_t *bytes, uint64_t seed)
{
	struct extent_builder builder;
	struct random random;
	random_init(&random, seed);
	extent_builder_init(&builder);
	builder.dense = seed % 2;
	for (uint32_t i = 0; i < 3; i++) {
		struct band *band = band_new(&random);
		struct block_column column[3];
		uint32_t columns = band->columns < 3 ? band->columns : 3;
		for (uint32_t c = 0; c < columns; c++)
			column[c] =
				(struct block_column){band->bits[c], band->types[c], VALUE_NONE};
		struct block_rows rows = {band->rows < 70 ? band->rows : 70, columns, band->ts_ms,
					  column};
		struct block_meta meta = {.ordinal = i, .sequence = 100};
		assert_true(extent_add(&builder, &meta, &rows, 1) > 0);
		mem_free(band);
	}
	return extent_finish(&builder, KEY, bytes);
}

static void decode_all(struct extent *extent)
{
	struct block block;
	static int64_t ts[BLOCK_ROWS_MAX];
	static uint64_t bits[BLOCK_ROWS_MAX];
	static uint8_t types[BLOCK_ROWS_MAX];
	while (extent_next(extent, &block)) {
		struct block_summary summary;
		(void)!block_decode_times(&block, ts);
		for (unsigned c = 0; c < block.meta.columns; c++) {
			(void)!block_decode_column(&block, c, bits, types);
			(void)!block_read_summary(&block, c, &summary);
		}
	}
}

/* In memory of exactly that length, so that a sanitizer sees a read beyond it. */
static void open_damaged(const uint8_t *bytes, size_t len)
{
	struct extent extent;
	char *copy = mem_alloc(len);
	struct slice value = {copy, len};
	memcpy(copy, bytes, len);
	int err = extent_open(&extent, KEY, value);
	assert_true(err == ERR_DAMAGED || err == ERR_VERSION);
	if (extent_open_unchecked(&extent, value) == 0)
		decode_all(&extent);
	mem_free(copy);
}

static void every_bit_and_every_length_is_guarded(void **state)
{
	uint8_t bytes[EXTENT_MAX_BYTES];
	(void)state;
	for (uint64_t seed = 1; seed < 4; seed++) {
		size_t len = sample_extent(bytes, seed);
		for (size_t bit = 0; bit < len * 8; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			open_damaged(bytes, len);
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		for (size_t cut = 0; cut < len; cut++)
			open_damaged(bytes, cut);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_small_blocks_by_hand),
		cmocka_unit_test(the_builder_writes_those_bytes),
		cmocka_unit_test(times_are_shared_by_hand),
		cmocka_unit_test(what_the_format_forbids_is_damage),
		cmocka_unit_test(versions_and_lengths),
		cmocka_unit_test(many_bands_come_back),
		cmocka_unit_test(an_empty_extent_takes_a_row_of_anything),
		cmocka_unit_test(no_more_blocks_than_the_limit),
		cmocka_unit_test(every_bit_and_every_length_is_guarded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
