/* Events of a stream added up by bins of their time and by their labels: how many there were, and
 * of each of their numbers the sum, the least and the greatest.
 *
 * A bin is BIN_MS long, and begins at a multiple of that since 1970. Which bin an event is in, and
 * what it adds there, is a function of the event alone: so events may come in any order.
 *
 * One thread. */
#ifndef STREAM_BINS_H
#define STREAM_BINS_H

#include "base/hash_table.h"
#include "base/mem.h"
#include "model/value.h"

enum { BIN_MS = 10000 };

/* When the bin begins that has a time. */
static inline int64_t bin_start_ms(int64_t ms)
{
	int64_t into = ms % BIN_MS;
	return ms - (into < 0 ? into + BIN_MS : into);
}

struct bin_number {
	struct value sum, least, greatest; /* VALUE_NONE: no event had this number */
};

struct bin {
	uint64_t count;
	bool changed; /* since it was written */
	struct bin_number numbers[];
};

/* Events with the same labels. */
struct bin_series {
	struct hash128 hash;  /* of the labels */
	struct slice *labels; /* NULL: they are those of which there are too many */
};

/* All bins of one time, by series. */
struct bins_slot {
	int64_t ms;
	struct bin **list; /* by the index of the series; NULL: there is none */
	size_t room;
};

struct bins {
	size_t label_count, number_count;
	struct bin_series *series; /* the caller's order: by when they came first */
	size_t series_count, series_room;
	struct hash_table by_labels;
	struct bins_slot *slots; /* by time */
	size_t slot_count, slot_room;
	size_t last; /* the slot that was used last */
	size_t used_bytes;
};

/* So many labels and numbers an event has. */
void bins_init(struct bins *bins, size_t label_count, size_t number_count);
void bins_release(struct bins *bins);

struct hash128 bins_hash(const struct slice *labels, size_t count);
/* The series with these labels, as an index; SIZE_MAX: there is none. */
size_t bins_find(const struct bins *bins, struct hash128 hash);
/* Makes it; the labels are copied, NULL: none. */
size_t bins_add_series(struct bins *bins, struct hash128 hash, const struct slice *labels);

/* Adds an event to the bin that begins at `ms`. A number that is VALUE_NONE, or not finite, counts
 * for nothing. */
void bins_add(struct bins *bins, int64_t ms, size_t series, const struct value *numbers);

/* Gives each bin that has changed to `each`, by time and series, until it returns an error. Those
 * that were given have not changed from then on. */
int bins_each_changed(struct bins *bins,
		      int (*each)(int64_t ms, const struct bin_series *series,
				  const struct bin *bin, void *owner),
		      void *owner) MUST_CHECK;

/* Bins that begin before a time go. None of them may have changed. */
void bins_drop_before(struct bins *bins, int64_t ms);
/* When the first bin begins; INT64_MAX: there is none. */
int64_t bins_first_ms(const struct bins *bins);

#endif
