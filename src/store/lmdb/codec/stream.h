/* Streams: unsigned 64-bit integers, bit-packed in mini-blocks of 128 rows with patched exceptions,
 * or entropy-coded. Times and columns are made of them. The byte layout is doc/format-store.md,
 * "Streams". */
#ifndef STORE_LMDB_CODEC_STREAM_H
#define STORE_LMDB_CODEC_STREAM_H

#include "base/base.h"
#include "base/cursor.h"
#include "store/lmdb/codec/block.h"
#include "store/lmdb/codec/entropy.h"
#include "store/lmdb/codec/kernels.h"

enum {
	MINI_ROWS = 128,
	MINIS_MAX = BLOCK_ROWS_MAX / MINI_ROWS,
	STREAM_FORM_EXCEPTIONS = 65, /* added to a uniform width */
	STREAM_FORM_VARIED = 130,
	STREAM_FORM_VARIED_EXCEPTIONS = 131,
	STREAM_FORM_ENTROPY = 132, /* + table */
	STREAM_FORM_ENTROPY_DETAILS = STREAM_FORM_ENTROPY + ENTROPY_TABLES,
	STREAM_FORMS = STREAM_FORM_ENTROPY_DETAILS + ENTROPY_TABLES,
};

/* Bytes that varint_put takes. */
static inline size_t varint_bytes(uint64_t value)
{
	return (bit_width(value | 1) + 6) / 7;
}

/* What the values of a stream will cost. Copyable: the encoder goes back to an earlier state when
 * the next mini-block did not fit whole. */
struct stream_cost {
	struct entropy_cost *entropy; /* NULL: bit-packed only */
	uint32_t count, minis;
	uint32_t varied_bytes; /* widths, packed values and exceptions, each at its best width */
	uint32_t varied_exceptions; /* how many */
	bool ragged;                /* a mini-block before the last is not full */
	uint8_t top;                /* greatest width seen */
	uint16_t histogram[65];     /* of bit widths */
	uint8_t widths[MINIS_MAX];  /* the best of each mini-block */
	uint8_t counts[MINIS_MAX];  /* and how many values it has */
};

/* entropy: NULL, or the caller's, initialised. A copy of the cost shares it. */
void stream_cost_init(struct stream_cost *cost, struct entropy_cost *entropy);
/* One more mini-block of `count` values, at most MINI_ROWS. */
void stream_cost_add(struct stream_cost *cost, const uint64_t *values, size_t count);

/* How a stream is best written. `bytes` is exact, but an exception with a small gap before it takes
 * one fewer. */
struct stream_form {
	bool varied, entropy;
	uint8_t width; /* or the table */
	uint32_t exceptions;
	size_t bytes;
};

struct stream_form stream_cost_form(const struct stream_cost *cost);

/* Writes a stream whose form and mini-blocks are known from its cost. */
struct stream_writer {
	const struct stream_cost *cost;
	struct stream_form form;
	uint8_t *packed, *patches;
	uint32_t mini, index, patch_next; /* patch_next: one after the last exception */
	uint64_t values[BLOCK_ROWS_MAX];  /* all of them, where they are entropy-coded */
};

/* At most form.bytes are written from `to` on. */
void stream_write_begin(struct stream_writer *writer, const struct stream_cost *cost, uint8_t *to);
/* The same mini-blocks in the same order as they were added to the cost. */
void stream_write(struct stream_writer *writer, const uint64_t *values, size_t count);
/* Where the stream ends. */
uint8_t *stream_write_end(struct stream_writer *writer);

/* A stream is the last thing in its slice: the reader takes all that is left of a cursor. */
struct stream_reader {
	uint8_t form;
	const uint8_t *packed;
	const uint8_t *readable_end; /* loads may pass the packed bytes, not this */
	const uint8_t *widths;       /* NULL: all of `width` */
	uint8_t width;
	uint32_t mini, index, count;
	uint32_t patches;     /* that are still to come, with the next one: */
	uint32_t patch_at;    /* its index in the stream */
	uint64_t patch_high;  /* what lies above the packed bits */
	struct cursor cursor; /* over what is left of the exceptions */
};

/* `rows` rows of which `count` are present; `presence` their bits, or NULL when all are. */
int stream_read_begin(struct stream_reader *reader, struct cursor c, uint32_t rows,
		      const uint8_t *presence, uint32_t count) MUST_CHECK;
/* All values, made patterns. `rows` and `presence` as above. ERR_DAMAGED also when bytes or
 * exceptions are left over. */
int stream_read_all(struct stream_reader *reader, const struct pattern_codec *codec, uint32_t rows,
		    const uint8_t *presence, uint64_t *values) MUST_CHECK;
/* Whether the values are plain symbols of an entropy code, below 16; then they, two to a byte, with
 * room for ENTROPY_SLACK bytes more. */
bool stream_is_symbols(const struct stream_reader *reader);
int stream_read_pairs(const struct stream_reader *reader, uint8_t *pairs) MUST_CHECK;
/* How many rows of mini-block `mini` are present. */
size_t mini_count(const uint8_t *presence, uint32_t rows, uint32_t mini);

#endif
