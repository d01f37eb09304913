/* What the files of the read path share: one read while it runs on the pool. Private. */
#ifndef STORE_LMDB_READ_H
#define STORE_LMDB_READ_H

#include "store/lmdb/engine.h"

struct reading {
	struct engine *engine;
	struct store_read *read;
	struct reader *reader;
	MDB_cursor *extents;
	size_t budget; /* points that may still be given */
	int64_t opened_us, deadline_us;
	struct segment_id *segments;
};

/* What is asked of one series: columns first_column .. + fields of its band. */
struct target {
	uint64_t handle;
	unsigned first_column, fields;
	int64_t start_ms, end_ms;
};

/* read.c: a new snapshot with its cursor; whether the read must end (ERR_TIMEOUT, ERR_CANCELLED).
 */
int reading_renew(struct reading *r) MUST_CHECK;
int reading_check_time(struct reading *r) MUST_CHECK;

/* read_segment.c */
int reading_list_segments(struct reading *r, enum table table, int64_t period_ms, int64_t start_ms,
			  int64_t end_ms, size_t *count) MUST_CHECK;
/* How many of list[at ..] are of one time, in several classes. */
size_t reading_same_segment(const struct segment_id *list, size_t at, size_t count);
/* The time from which data of a class is visible. */
int64_t reading_visible_from(struct reading *r, enum retention_class retention, int64_t start_ms);
/* The head's part, unsorted, and a snapshot that is no older. */
int reading_copy_head(struct reading *r, const struct segment_id *segment, const struct target *t,
		      int64_t start_ms, struct run *run) MUST_CHECK;
int reading_find_blocks(struct reading *r, const struct segment_id *segment, const struct target *t,
			int64_t start_ms, struct block_refs *refs) MUST_CHECK;
bool reading_disjoint(const struct block_refs *refs);
int reading_classes(struct reading *r, const struct segment_id *list, size_t count,
		    const struct target *t, size_t newest, struct run *out) MUST_CHECK;
/* Samples of one series, in the order asked for, until there are `enough` (or somewhat more). The
 * segments are in r->segments. */
int reading_series(struct reading *r, const struct target *t, size_t segment_count, bool backward,
		   size_t enough, struct run *out) MUST_CHECK;

/* read_range.c, read_aggregate.c, read_enumerate.c */
int reading_range(struct reading *r, struct store_request *request) MUST_CHECK;
int reading_last_before(struct reading *r, struct store_request *request) MUST_CHECK;
int reading_aggregate(struct reading *r, struct store_request *request) MUST_CHECK;
int reading_enumerate_samples(struct reading *r, struct store_request *request) MUST_CHECK;

#endif
