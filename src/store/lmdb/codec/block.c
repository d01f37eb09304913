/* How a block is filled.
 *
 * The rows are taken 128 at a time, which is one mini-block of every column, and each column keeps
 * what the rows so far cost: how wide its values are, its summary. When a mini-block no longer
 * fits, the state before it is taken up again and a part of it is tried. Only then is anything
 * written. A column chooses its codec at its first mini-block with values. When later rows show
 * that it cannot hold (another type, a difference that is no multiple of the shift), the limit is
 * noted and the block begun again: at most three times a column, in practice never. */
#include "store/lmdb/codec/block.h"

#include "base/cursor.h"
#include "store/lmdb/codec/block_small.h"
#include "store/lmdb/codec/column.h"
#include "store/lmdb/codec/times.h"

/* Fewer rows gain nothing that would be worth the effort. */
enum { DENSE_ROWS_LEAST = 48 };

struct block_cost {
	uint32_t rows;
	struct times_cost times;
	struct column_cost column[BLOCK_COLUMNS_MAX];
};

/* What a dense block needs beside: of the times, then of each column. */
struct block_entropy {
	struct entropy_cost cost[1 + BLOCK_COLUMNS_MAX];
};

struct block_encoder {
	const struct block_rows *rows;
	size_t room;
	bool any_ms, dense;
	struct column_limits limits[BLOCK_COLUMNS_MAX];
	struct block_cost now, before;
	struct block_entropy now_entropy, before_entropy; /* unless dense: not even initialised */
};

static void cost_copy(struct block_cost *to, const struct block_cost *from, uint32_t columns)
{
	memcpy(to, from, offsetof(struct block_cost, column) + columns * sizeof(to->column[0]));
}

/* A copied cost points to the other's entropy. */
static void entropy_copy(struct block_encoder *e, struct block_cost *cost, struct block_entropy *to,
			 const struct block_entropy *from)
{
	if (!e->dense)
		return;
	memcpy(to, from, (1 + e->rows->columns) * sizeof(to->cost[0]));
	cost->times.stream.entropy = &to->cost[0];
	for (uint32_t c = 0; c < e->rows->columns; c++)
		cost->column[c].stream.entropy = &to->cost[1 + c];
}

static void block_save_cost(struct block_encoder *e)
{
	cost_copy(&e->before, &e->now, e->rows->columns);
	entropy_copy(e, &e->before, &e->before_entropy, &e->now_entropy);
}

static void go_back(struct block_encoder *e)
{
	cost_copy(&e->now, &e->before, e->rows->columns);
	entropy_copy(e, &e->now, &e->now_entropy, &e->before_entropy);
}

static void cost_init(struct block_encoder *e)
{
	struct entropy_cost *entropy = e->dense ? e->now_entropy.cost : NULL;
	e->now.rows = 0;
	times_cost_init(&e->now.times, e->any_ms, entropy);
	for (uint32_t c = 0; c < e->rows->columns; c++)
		column_cost_init(&e->now.column[c], e->limits[c], entropy ? entropy + 1 + c : NULL);
}

static bool cost_add(struct block_encoder *e, uint32_t count)
{
	uint32_t from = e->now.rows;
	if (!times_cost_add(&e->now.times, e->rows->ts_ms, from, count)) {
		e->any_ms = true;
		return false;
	}
	for (uint32_t c = 0; c < e->rows->columns; c++) {
		if (!column_cost_add(&e->now.column[c], &e->rows->column[c], from, count,
				     &e->limits[c]))
			return false;
	}
	e->now.rows += count;
	return true;
}

static size_t cost_bytes(const struct block_encoder *e)
{
	size_t bytes = times_cost_bytes(&e->now.times);
	for (uint32_t c = 0; c < e->rows->columns; c++) {
		size_t column = column_cost_bytes(&e->now.column[c]);
		bytes += varint_bytes(column) + column;
	}
	return bytes;
}

enum outcome { FILLED, AGAIN };

/* Where the bytes of `fits` and `too_many` more rows say that the room ends; after a few times the
 * middle, so that rows of unlike size cannot lead it on for long. */
static uint32_t guess_rows(const struct block_encoder *e, uint32_t fits, size_t fits_bytes,
			   uint32_t too_many, size_t too_many_bytes, unsigned attempt)
{
	uint32_t between = too_many - fits;
	size_t share = between * (e->room - fits_bytes) / (too_many_bytes - fits_bytes);
	if (attempt >= 4)
		share = between / 2;
	if (share < 1)
		share = 1;
	return fits + (uint32_t)(share < between ? share : between - 1);
}

/* No room for another row like these, or full to a hundredth: more is not worth another look. */
static bool block_builder_is_full(const struct block_encoder *e, size_t bytes)
{
	size_t left = e->room - bytes;
	return left < e->room / 128 || left < bytes / e->now.rows;
}

/* `before` fits (with `fits_bytes`) and `count` more rows do not: finds how many do. Ends with
 * `now` at the most that fit, or a little less. */
static enum outcome fill_part(struct block_encoder *e, uint32_t count, size_t fits_bytes,
			      size_t count_bytes)
{
	uint32_t fits = 0, too_many = count, columns = e->rows->columns;
	size_t too_many_bytes = count_bytes;
	for (uint32_t c = 0; c < columns; c++)
		column_cost_adopt(&e->before.column[c], &e->now.column[c]);
	for (unsigned attempt = 0; fits + 1 < too_many; attempt++) {
		uint32_t guess = guess_rows(e, fits, fits_bytes, too_many, too_many_bytes, attempt);
		go_back(e);
		if (!cost_add(e, guess))
			return AGAIN;
		size_t bytes = cost_bytes(e);
		if (bytes > e->room) {
			too_many = guess;
			too_many_bytes = bytes;
			continue;
		}
		if (block_builder_is_full(e, bytes))
			return FILLED;
		fits = guess;
		fits_bytes = bytes;
	}
	go_back(e);
	return fits && !cost_add(e, fits) ? AGAIN : FILLED;
}

static enum outcome block_fill(struct block_encoder *e)
{
	uint32_t rows = e->rows->rows < BLOCK_ROWS_MAX ? e->rows->rows : BLOCK_ROWS_MAX;
	size_t bytes = 0;
	cost_init(e);
	while (e->now.rows < rows) {
		uint32_t left = rows - e->now.rows, count = left < MINI_ROWS ? left : MINI_ROWS;
		size_t bytes_before = bytes;
		block_save_cost(e);
		if (!cost_add(e, count))
			return AGAIN;
		bytes = cost_bytes(e);
		if (bytes > e->room)
			return fill_part(e, count, bytes_before, bytes);
	}
	return FILLED;
}

static void finish_entropy(struct block_encoder *e)
{
	for (uint32_t i = 0; e->dense && i < 1 + e->rows->columns; i++)
		entropy_cost_finish(&e->now_entropy.cost[i]);
}

static uint8_t *block_write_body(const struct block_encoder *e, uint8_t *to)
{
	uint32_t columns = e->rows->columns;
	size_t bytes[BLOCK_COLUMNS_MAX];
	/* The directory's size depends on what stands after it: written at the farthest it can
	 * begin, then moved up. */
	uint8_t *at = to, *end;
	for (uint32_t c = 0; c < columns; c++)
		at += varint_bytes(column_cost_bytes(&e->now.column[c]));
	uint8_t *farthest = at;
	for (uint32_t c = 0; c < columns; c++) {
		end = column_write(&e->now.column[c], &e->rows->column[c], at);
		bytes[c] = (size_t)(end - at);
		at = end;
	}
	for (uint32_t c = 0; c < columns; c++)
		to += varint_put(to, bytes[c]);
	memmove(to, farthest, (size_t)(at - farthest));
	return to + (at - farthest);
}

static uint32_t encode_any(const struct block_rows *rows, uint8_t *to, size_t room,
			   uint32_t rows_least, struct block *out)
{
	struct block_encoder e;
	e.rows = rows;
	e.room = room;
	e.any_ms = false;
	e.dense = rows->dense && rows->rows >= DENSE_ROWS_LEAST;
	memset(e.limits, 0, sizeof(e.limits));
	ASSERT(rows->rows >= 1 && rows->columns >= 1 && rows->columns <= BLOCK_COLUMNS_MAX);
	while (block_fill(&e) == AGAIN)
		continue;
	finish_entropy(&e);
	if (!e.now.rows || (e.now.rows < rows_least && e.now.rows < rows->rows))
		return 0;
	uint8_t *times_end = times_write(&e.now.times, rows->ts_ms, to);
	uint8_t *end = block_write_body(&e, times_end);
	ASSERT((size_t)(end - to) <= room);
	out->meta.rows = e.now.rows;
	out->meta.columns = (uint16_t)rows->columns;
	out->meta.first_ts_ms = rows->ts_ms[0];
	out->meta.last_ts_ms = rows->ts_ms[e.now.rows - 1];
	out->regular = !e.now.times.irregular;
	out->times = (struct slice){(const char *)to, (size_t)(times_end - to)};
	out->body = (struct slice){(const char *)times_end, (size_t)(end - times_end)};
	return e.now.rows;
}

uint32_t block_encode(const struct block_rows *rows, uint8_t *to, size_t room, uint32_t rows_least,
		      struct block *out)
{
	enum small_outcome outcome = small_encode(rows, to, room, out);
	if (outcome == SMALL_TAKEN)
		return rows->rows;
	if (outcome == SMALL_NO_ROOM && rows_least >= rows->rows)
		return 0;
	return encode_any(rows, to, room, rows_least, out);
}

/* ---- Reading -------------------------------------------------------------------------------- */

int block_decode_times(const struct block *block, int64_t *ts_ms)
{
	return times_read(block, ts_ms);
}

/* The bytes of one column, by the directory, which must fill the body exactly. */
static int block_find_column(const struct block *block, unsigned column, struct slice *bytes)
{
	struct cursor c = cursor_of(block->body.data, block->body.len);
	uint64_t before = 0, total = 0;
	for (unsigned i = 0; i < block->meta.columns; i++) {
		/* Most columns are short, and there may be many. */
		bool is_short = c.at < c.end && *c.at < 0x80;
		uint64_t length = is_short ? *c.at++ : cursor_varint(&c);
		if (c.bad || length > block->body.len)
			return ERR_DAMAGED;
		if (i < column)
			before += length;
		if (i == column)
			bytes->len = length;
		total += length;
	}
	if (total != cursor_left(&c))
		return ERR_DAMAGED;
	bytes->data = (const char *)c.at + before;
	return 0;
}

int block_open_column(const struct block *block, unsigned number, struct column *column)
{
	struct slice bytes;
	ASSERT(number < block->meta.columns);
	if (block_find_column(block, number, &bytes))
		return ERR_DAMAGED;
	return column_open(column, bytes, block->meta.rows);
}

int block_decode_column(const struct block *block, unsigned number, uint64_t *bits, uint8_t *types)
{
	struct column column;
	int err = block_open_column(block, number, &column);
	return err ? err : column_read(&column, bits, types);
}

/* The time of one row. Irregular times have to be decoded for it, which only a column with gaps at
 * an end ever asks for. */
static int time_of_row(const struct block *block, uint32_t row, int64_t *ts_ms)
{
	int64_t times[BLOCK_ROWS_MAX];
	if (row == 0)
		*ts_ms = block->meta.first_ts_ms;
	else if (row == block->meta.rows - 1)
		*ts_ms = block->meta.last_ts_ms;
	else if (block_decode_times(block, times))
		return ERR_DAMAGED;
	else
		*ts_ms = times[row];
	return 0;
}

static bool is_present(const struct column *column, uint32_t row)
{
	return !column->presence || (column->presence[row / 8] >> row % 8 & 1);
}

static int block_set_times(const struct block *block, const struct column *column,
			   struct block_summary *summary)
{
	uint32_t first = 0, last = column->rows - 1;
	while (!is_present(column, first))
		first++;
	while (!is_present(column, last))
		last--;
	int err = time_of_row(block, first, &summary->first_ts_ms);
	return err ? err : time_of_row(block, last, &summary->last_ts_ms);
}

/* A block of few rows: from the values. */
static int summarise_rows(const struct block *block, struct column *column,
			  struct block_summary *summary)
{
	int64_t ts_ms[BLOCK_NO_SUMMARY_ROWS];
	uint64_t bits[BLOCK_NO_SUMMARY_ROWS];
	uint8_t types[BLOCK_NO_SUMMARY_ROWS];
	int err = column_read(column, bits, types);
	if (err == 0)
		err = block_decode_times(block, ts_ms);
	if (err)
		return err;
	block_summarise(ts_ms, bits, column->presence ? types : NULL, (enum value_type)column->type,
			column->rows, summary);
	return 0;
}

int block_read_summary(const struct block *block, unsigned number, struct block_summary *summary)
{
	struct column column;
	int err = block_open_column(block, number, &column);
	*summary = (struct block_summary){.count = 0};
	if (err || !column.present)
		return err;
	if (column_summary(&column, summary))
		return block_set_times(block, &column, summary);
	return summarise_rows(block, &column, summary);
}
