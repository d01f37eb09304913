/* The raw data of one counter, a piece at a time in the order of time: numbers, which the store has
 * as samples, and beside them what was polled and is no number (texts, states), which it has as
 * cells under document E's row key. A counter may have either or both; of one time the number comes
 * first.
 *
 * Both are read by one batch. A piece ends where what is known of either ends, and the next begins
 * there by time. Embedded in its owner, which submits the batch. */
#ifndef API_ESMOND_SAMPLES_H
#define API_ESMOND_SAMPLES_H

#include "base/base.h"
#include "model/value.h"

struct store_read;
struct store_request;

enum {
	SAMPLES_NUMBERS_MAX = 16384, /* of a piece */
	SAMPLES_TEXTS_MAX = 1024,
	/* A text that was polled has at most 64 KB: one at least always has room. */
	SAMPLES_READ_BYTES = 4 << 20,
};

struct v2_sample {
	int64_t ts_ms;
	struct value value;
	struct slice json; /* instead of the value, unless NULL */
};

struct v2_samples {
	/* The caller fills these in. */
	uint64_t handle;      /* 0: there are no numbers */
	struct slice row_key; /* empty: there are no texts */
	int64_t period_ms;
	int64_t at_ms, to_ms; /* at_ms <= time < to_ms; the first moves on to the next piece */

	/* Results of a piece; json points into the read's arena. */
	struct v2_sample *list;
	size_t count;
	bool any_text; /* at any time */
	bool more;

	/* private */
	size_t room;
	struct store_request *numbers, *texts, *first_text;
	uint8_t from[8], to[8];
};

/* Asks for the next piece: adds to an empty read. False: there is nothing to ask for. */
bool v2_samples_ask(struct v2_samples *samples, struct store_read *read) MUST_CHECK;
/* After the read has succeeded. ERR_LIMIT: it had no room for a single one, which cannot be. */
int v2_samples_take(struct v2_samples *samples) MUST_CHECK;
void v2_samples_release(struct v2_samples *samples);

#endif
