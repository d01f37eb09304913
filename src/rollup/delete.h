/* Deleting what is stored of series over a time: their samples, and the roll-ups of these.
 *
 * Its spans are of each granularity the rows of the buckets that lie in the time as a whole, also
 * of granularities that are configured no more; then the raw samples and the late ones. Of some
 * series at a time one span is gone through after the other, and of each span some of its time, in
 * writes that are so small that others are not held up. So memory is bounded, and whatever breaks
 * off is done by doing all of it once more.
 *
 * Slots of which raw samples go are marked first, in the write that deletes them: so a bucket that
 * the time cuts is made again of what is left, and what a job writes that had read the samples
 * before they went is corrected by the next one (marks.h: `deleted`). Nothing is deleted of a slot
 * that is not marked so, since a sample may come between the count and the write. Of some empty
 * slots between others both is done, so that the store has few ranges to delete; what comes to the
 * other empty ones stays. Where a slot is closed, its
 * rows are of more than the raw data that there still is. Then nothing can make a cut bucket again:
 * its row stays as it is, and is counted as kept. (Rows of late points are made of these, which are
 * there for as long.) Nothing corrects rows of closed slots either: where rows have stamps, those
 * of buckets that lie in the time as a whole are deleted once more when the samples have gone, with
 * a stamp above all that may have been made of these.
 *
 * What is written to that time while it is being deleted goes or stays.
 *
 * Series whose data is damaged are tried one by one, left as they are from where the damage was
 * met, and counted.
 *
 * It waits for the store, on the thread of its queue. */
#ifndef ROLLUP_DELETE_H
#define ROLLUP_DELETE_H

#include "catalog/selector.h"
#include "rollup/site.h"

/* Times of samples, with room to add and subtract. */
#define ROLLUP_DELETE_EARLIEST_MS (-(INT64_C(1) << 61))
#define ROLLUP_DELETE_LATEST_MS   (INT64_C(1) << 61)

struct rollup_delete_options {
	const struct rollup_site *site; /* the caller's */
	struct task_queue *queue;       /* of the thread, which waits */
	/* Which series. */
	struct slice tenant, metric; /* metric empty: all */
	const struct catalog_selector *selectors;
	size_t selector_count;
	/* Samples of from <= time < to, within those; or all there is, and the series leave the
	 * catalog, too. */
	int64_t from_ms, to_ms;
	bool whole;
	bool only_count; /* change nothing */
	/* When it was asked for (store_stamp), where samples have stamps: what was written later
	 * stays. 0: now. */
	int64_t stamp_us;
	/* It was begun before, by somebody who is dead: some of what he handed to the store may
	 * come yet, or may have come after the job that was to correct his rows. */
	bool again;
	/* Is told of series that have left the store, by their metrics; NULL: nobody. */
	void (*forgotten)(void *owner, const struct slice *metrics, size_t count);
	void *owner;
};

struct rollup_delete_result {
	uint64_t series;                  /* that match */
	uint64_t forgotten;               /* of these: left the catalog */
	uint64_t failed;                  /* of these: their data is damaged */
	uint64_t samples, late;           /* deleted, or to be deleted */
	uint64_t rows[GRANULARITIES_MAX]; /* likewise, by granularity */
	uint64_t
		kept[GRANULARITIES_MAX]; /* rows of buckets that are cut and cannot be made again */
	uint64_t other_rows, other_kept; /* both, of granularities that are configured no more */
	uint64_t marks;                  /* slots of series that are made again, or looked at */
};

/* The store's error, or ERR_CANCELLED, with a sentence; *result is what was deleted by then. */
int rollup_delete(const struct rollup_delete_options *options, struct rollup_delete_result *result,
		  struct errbuf *e) MUST_CHECK;

#endif
