/* How small and how fast the block codec is, by shape of data: bytes per sample all-in (a full
 * extent's bytes over its samples), ns per value to encode and to decode.
 *
 *   codec_bench [seconds per measurement, default 0.2 [part of a shape's name [encode|decode]]]
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/random.h"
#include "store/lmdb/codec/extent.h"

enum { ROWS_MAX = 8640, COLUMNS_MAX = 10, EXTENTS_MAX = 4096, STEP_MS = 10000 };

struct shape {
	const char *name;
	uint32_t columns;
	uint32_t rows_per_block; /* 0: as many as an extent takes */
	uint32_t bands;          /* that are packed into extents one behind the other */
	enum value_type type;
	void (*fill)(struct random *random, uint64_t *bits, size_t rows);
	bool jitter;
};

static double gauss(struct random *random)
{
	double u = 1 - random_unit(random), v = random_unit(random);
	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static uint64_t bits_of(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, 8);
	return bits;
}

/* TSBS cpu-only: steps of N(0,1), clamped to [0,100], printed as integers. */
static void fill_cpu(struct random *random, uint64_t *bits, size_t rows)
{
	double value = 100 * random_unit(random);
	for (size_t i = 0; i < rows; i++) {
		bits[i] = (uint64_t)value;
		value = fmin(100, fmax(0, value + gauss(random)));
	}
}

static void fill_cpu_doubles(struct random *random, uint64_t *bits, size_t rows)
{
	fill_cpu(random, bits, rows);
	for (size_t i = 0; i < rows; i++)
		bits[i] = bits_of((double)bits[i]);
}

/* An interface's octets: 1e4 to 1e8 a poll, a smooth load with noise. */
static void fill_octets(struct random *random, uint64_t *bits, size_t rows)
{
	uint64_t value = random_below(random, UINT64_C(1) << 40);
	double level = pow(10, 4 + 4 * random_unit(random));
	for (size_t i = 0; i < rows; i++) {
		bits[i] = value;
		value += (uint64_t)(level * exp(gauss(random) * 0.3));
	}
}

static void fill_errors(struct random *random, uint64_t *bits, size_t rows)
{
	uint64_t value = random_below(random, 1000);
	for (size_t i = 0; i < rows; i++) {
		bits[i] = value;
		if (random_below(random, 200) == 0)
			value += 1 + random_below(random, 5);
	}
}

static void fill_two_decimals(struct random *random, uint64_t *bits, size_t rows)
{
	double value = 50;
	for (size_t i = 0; i < rows; i++) {
		bits[i] = bits_of(round(value * 100) / 100);
		value += gauss(random) * 0.5;
	}
}

/* Kilobytes in use, as /proc/meminfo has them, in bytes: multiples of 4096. */
static void fill_memory(struct random *random, uint64_t *bits, size_t rows)
{
	double pages = 1e6;
	for (size_t i = 0; i < rows; i++) {
		bits[i] = (uint64_t)pages * 4096;
		pages += gauss(random) * 200;
	}
}

static void fill_doubles(struct random *random, uint64_t *bits, size_t rows)
{
	double value = 100;
	for (size_t i = 0; i < rows; i++) {
		bits[i] = bits_of(value);
		value += gauss(random);
	}
}

static void fill_noise(struct random *random, uint64_t *bits, size_t rows)
{
	for (size_t i = 0; i < rows; i++)
		bits[i] = bits_of(gauss(random));
}

static void fill_floats(struct random *random, uint64_t *bits, size_t rows)
{
	fill_doubles(random, bits, rows);
	for (size_t i = 0; i < rows; i++) {
		double d;
		memcpy(&d, &bits[i], 8);
		bits[i] = bits_of((double)(float)d);
	}
}

static void fill_constant(struct random *random, uint64_t *bits, size_t rows)
{
	uint64_t value = random_below(random, 100);
	for (size_t i = 0; i < rows; i++)
		bits[i] = value;
}

static const struct shape shapes[] = {
	{"cpu-only, 10 columns i64", 10, 0, 1, VALUE_I64, fill_cpu, false},
	{"cpu-only, as doubles", 10, 0, 1, VALUE_F64, fill_cpu_doubles, false},
	{"cpu-only, 64-row blocks", 10, 64, 135, VALUE_I64, fill_cpu, false},
	{"cpu-only, 360-row blocks", 10, 360, 24, VALUE_I64, fill_cpu, false},
	{"cpu-only, 1 column", 1, 0, 1, VALUE_I64, fill_cpu, false},
	{"cpu-only, jittered times", 10, 0, 1, VALUE_I64, fill_cpu, true},
	{"cpu-only, 10-row blocks", 10, 10, 864, VALUE_I64, fill_cpu, false},
	{"1 column, 1 row", 1, 1, 8640, VALUE_I64, fill_cpu, false},
	{"octets, u64", 10, 0, 1, VALUE_U64, fill_octets, true},
	{"errors, u64", 10, 0, 1, VALUE_U64, fill_errors, false},
	{"memory in pages, i64", 10, 0, 1, VALUE_I64, fill_memory, false},
	{"gauge, 2 decimals", 10, 0, 1, VALUE_F64, fill_two_decimals, false},
	{"floats walking", 10, 0, 1, VALUE_F64, fill_floats, false},
	{"doubles walking", 10, 0, 1, VALUE_F64, fill_doubles, false},
	{"doubles, noise", 10, 0, 1, VALUE_F64, fill_noise, false},
	{"constant", 10, 0, 1, VALUE_I64, fill_constant, false},
};

struct bench {
	const struct shape *shape;
	bool dense; /* as settled segments are */
	double seconds;
	const char *only; /* for a profiler */
	int64_t ts_ms[ROWS_MAX];
	uint64_t bits[COLUMNS_MAX][ROWS_MAX];
	uint8_t extents[EXTENTS_MAX][EXTENT_MAX_BYTES];
	size_t lengths[EXTENTS_MAX];
	size_t count, bytes;
	/* decoded */
	int64_t ts_out[BLOCK_ROWS_MAX];
	uint64_t bits_out[BLOCK_ROWS_MAX];
	uint8_t types_out[BLOCK_ROWS_MAX];
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void finish(struct bench *b, struct extent_builder *builder)
{
	size_t len = extent_finish(builder, SLICE("key"), b->extents[b->count]);
	b->lengths[b->count++] = len;
	b->bytes += len;
}

static void encode_rows(struct bench *b, struct extent_builder *builder, uint32_t ordinal,
			uint32_t from, uint32_t rows)
{
	struct block_column columns[COLUMNS_MAX];
	struct block_meta meta = {.ordinal = ordinal, .sequence = 12345};
	while (rows && b->count < EXTENTS_MAX) {
		for (uint32_t c = 0; c < b->shape->columns; c++)
			columns[c] = (struct block_column){b->bits[c] + from, NULL, b->shape->type};
		struct block_rows r = {rows, b->shape->columns, b->ts_ms + from, columns};
		uint32_t taken = extent_add(builder, &meta, &r, 64);
		if (taken < rows)
			finish(b, builder);
		from += taken;
		rows -= taken;
	}
}

static void encode(struct bench *b)
{
	struct extent_builder builder;
	extent_builder_init(&builder);
	builder.dense = b->dense;
	b->count = b->bytes = 0;
	uint32_t rows = b->shape->rows_per_block ? b->shape->rows_per_block : ROWS_MAX;
	for (uint32_t band = 0; band < b->shape->bands; band++)
		encode_rows(b, &builder, band, band * rows, rows);
	if (builder.blocks)
		finish(b, &builder);
}

static bool block_is_right(const struct bench *b, const struct block *block, uint32_t from,
			   uint32_t column)
{
	return memcmp(b->bits_out, b->bits[column] + from, block->meta.rows * 8) == 0 &&
	       b->types_out[block->meta.rows - 1] == b->shape->type;
}

static void check(int err)
{
	if (err) {
		fprintf(stderr, "codec_bench: %s\n", err_text(err));
		exit(1);
	}
}

static size_t decode(struct bench *b, bool compare)
{
	size_t rows = 0;
	for (size_t i = 0; i < b->count; i++) {
		struct extent extent;
		struct block block;
		struct slice value = {(const char *)b->extents[i], b->lengths[i]};
		check(extent_open(&extent, SLICE("key"), value));
		while (extent_next(&extent, &block)) {
			check(block_decode_times(&block, b->ts_out));
			for (unsigned c = 0; c < block.meta.columns; c++) {
				check(block_decode_column(&block, c, b->bits_out, b->types_out));
				if (compare && !block_is_right(b, &block, (uint32_t)rows, c))
					check(ERR_DAMAGED);
			}
			rows += block.meta.rows;
		}
	}
	return rows;
}

static double summaries(struct bench *b)
{
	double sum = 0;
	for (size_t i = 0; i < b->count; i++) {
		struct extent extent;
		struct block block;
		struct block_summary summary;
		struct slice value = {(const char *)b->extents[i], b->lengths[i]};
		check(extent_open_unchecked(&extent, value));
		while (extent_next(&extent, &block)) {
			for (unsigned c = 0; c < block.meta.columns; c++) {
				check(block_read_summary(&block, c, &summary));
				sum += summary.sum;
			}
		}
	}
	return sum;
}

enum what { ENCODE, DECODE, SUMMARISE };

/* ns per value of the fastest round: the others tell what else the machine was doing. */
static double measure(struct bench *b, enum what what, size_t values)
{
	static const char *const names[] = {"encode", "decode", "summarise"};
	double end = now() + b->seconds, fastest = INFINITY;
	if (b->only && strcmp(b->only, names[what]) != 0)
		return 0;
	volatile double sink = 0;
	while (now() < end) {
		double start = now();
		if (what == ENCODE)
			encode(b);
		else if (what == DECODE)
			decode(b, false);
		else
			sink = sink + summaries(b);
		fastest = fmin(fastest, now() - start);
	}
	return fastest * 1e9 / (double)values;
}

static void fill(struct bench *b)
{
	struct random random;
	random_init(&random, 123);
	for (size_t i = 0; i < ROWS_MAX; i++) {
		b->ts_ms[i] = INT64_C(1451606400000) + (int64_t)i * STEP_MS;
		if (b->shape->jitter)
			b->ts_ms[i] += (int64_t)random_below(&random, 50);
	}
	for (uint32_t c = 0; c < b->shape->columns; c++)
		b->shape->fill(&random, b->bits[c], ROWS_MAX);
}

static void run(struct bench *b, const struct shape *shape, bool dense)
{
	b->shape = shape;
	b->dense = dense;
	fill(b);
	encode(b);
	size_t rows = decode(b, true), values = rows * shape->columns;
	size_t expected =
		shape->rows_per_block ? (size_t)shape->rows_per_block * shape->bands : ROWS_MAX;
	if (rows != expected)
		check(ERR_DAMAGED);
	printf("%-26s %-6s %8.3f %8.2f %8.3f %8.3f %6zu %6.1f%%\n", shape->name,
	       dense ? "dense" : "", (double)b->bytes / (double)values, measure(b, ENCODE, values),
	       measure(b, DECODE, values), measure(b, SUMMARISE, values), b->count,
	       (double)b->bytes * 100 / (double)(b->count * EXTENT_MAX_BYTES));
}

int main(int argc, char **argv)
{
	struct bench *b = mem_zalloc(sizeof(*b));
	b->seconds = argc > 1 ? strtod(argv[1], NULL) : 0.2;
	b->only = argc > 3 ? argv[3] : NULL;
	printf("%-26s %-6s %8s %8s %8s %8s %6s %6s\n", "shape", "", "B/sample", "ns in", "ns out",
	       "ns sum", "extents", "full");
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		if (argc < 3 || strstr(shapes[i].name, argv[2]))
			for (int dense = 0; dense < 2; dense++)
				run(b, &shapes[i], dense);
	}
	mem_free(b);
	return 0;
}
