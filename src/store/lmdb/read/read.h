/* What the files of the read path share: one read while it runs on the pool. Private. */
#ifndef STORE_LMDB_READ_READ_H
#define STORE_LMDB_READ_READ_H

#include "store/lmdb/codec/column_sums.h"
#include "store/lmdb/codec/entropy.h"
#include "store/lmdb/engine.h"

enum {
	SEGMENTS_MAX = 65536, /* 50 years of days in each of some classes */
	LOOKUPS_MAX = 64,     /* series of one group that are looked up at once */
};

/* What is asked of one series, or of neighbours in one strip: columns first_column .. + fields of
 * its band. */
struct target {
	uint64_t handle;
	unsigned first_column, fields;
	int64_t start_ms, end_ms;
};

/* One series in one segment of one class: what its head and its blocks hold of the target. The
 * blocks lie in the snapshot until it is renewed. */
struct lookup {
	struct target target;
	size_t index;           /* the caller's: which of the handles, or the first after them */
	uint32_t ordinal;       /* of its band in the group */
	struct samples head;    /* sorted */
	struct block_refs refs; /* by time */
};

/* Memory that a reader keeps from one read to the next. */
struct scratch {
	struct segment_id *segments;
	size_t segments_cap;
	/* For an aggregate: windows, all empty between two groups of series, and a bit for each
	 * that is not. */
	struct block_summary *windows;
	uint64_t *touched;
	size_t windows_cap;
	struct lookup lookups[LOOKUPS_MAX]; /* of one group */
	struct lookup one;                  /* of a series that is read alone */
	struct samples blocks;              /* decoded, for one lookup */
	struct samples range; /* what a range has of a series, or of several side by side */
	uint64_t bits[BLOCK_ROWS_MAX];
	uint8_t types[BLOCK_ROWS_MAX]; /* or pairs of symbols */
	int64_t ts_ms[BLOCK_ROWS_MAX];
	struct column column; /* of a block that windows cut, and */
	struct fold fold;
};

struct reading {
	struct engine *engine;
	struct store_read *read;
	struct reader *reader;
	struct scratch *scratch; /* the reader's */
	MDB_cursor *extents;
	size_t budget; /* points that may still be given */
	int64_t opened_us, deadline_us;
	struct segment_id *segments; /* of the request, by time; the scratch's */
	/* Where it looked last, to say what is damaged. */
	bool looked;
	struct group_id group;
	uint64_t handle;
};

/* read.c: a new snapshot with its cursor; whether the read must end (ERR_TIMEOUT, ERR_CANCELLED).
 */
int reading_renew(struct reading *r) MUST_CHECK;
int reading_check_time(struct reading *r) MUST_CHECK;

/* damage.c: the request has met damage. Says where in read->error, and logs what is wrong there. */
void reading_damaged(struct reading *r, const struct store_request *request);

/* read_lookup.c */
void scratch_free(struct scratch *scratch);
/* The segments of the range, by time, into r->segments. */
int reading_list_segments(struct reading *r, enum table table, int64_t period_ms, int64_t start_ms,
			  int64_t end_ms, size_t *count) MUST_CHECK;
/* How many of list[at ..] are of one time, in several classes. */
size_t reading_same_segment(const struct segment_id *list, size_t at, size_t count);
/* The time from which data of a class is visible. */
int64_t reading_visible_from(struct reading *r, enum retention_class retention, int64_t start_ms);
/* Makes a lookup empty, of this target. False: the store has no such series. */
bool lookup_begin(struct reading *r, struct lookup *lookup, const struct target *target);
/* Whether both lie in one group. */
bool reading_same_group(struct reading *r, uint64_t handle, uint64_t other);
/* Heads and blocks of all these lookups, whose targets lie in one group and share their times, from
 * start_ms on: the group's extents are walked once. The snapshot may be renewed: what earlier
 * lookups point to is gone. */
int reading_lookup(struct reading *r, const struct segment_id *segment, struct lookup *lookups,
		   size_t count, int64_t start_ms) MUST_CHECK;
/* Whether the snapshot is to be renewed before more is looked up. */
bool reading_is_old(const struct reading *r);
bool lookup_blocks_disjoint(const struct lookup *lookup);

/* read_segment.c */
/* The samples of a lookup, sorted; `newest`: at most that many are wanted, from the end (0: all).
 */
int lookup_read(struct reading *r, struct lookup *lookup, int64_t start_ms, size_t newest,
		struct samples *out) MUST_CHECK;
/* All samples of one series in the segments of one time, list[0 .. count). */
int reading_classes(struct reading *r, const struct segment_id *list, size_t count,
		    const struct target *t, size_t newest, struct samples *out) MUST_CHECK;
/* Samples of one series, in the order asked for, until there are `enough` (or somewhat more). The
 * segments are in r->segments. */
int reading_series(struct reading *r, const struct target *t, size_t segment_count, bool backward,
		   size_t enough, struct samples *out) MUST_CHECK;

/* read_range.c, read_last.c, read_aggregate.c, read_enumerate.c, read_shares.c */
int reading_range(struct reading *r, struct store_request *request) MUST_CHECK;
int reading_last_before(struct reading *r, struct store_request *request) MUST_CHECK;
int reading_aggregate(struct reading *r, struct store_request *request) MUST_CHECK;
int reading_enumerate_samples(struct reading *r, struct store_request *request) MUST_CHECK;
void scratch_free_windows(struct scratch *scratch);
int reading_periods(struct reading *r, struct store_periods *out) MUST_CHECK;
int reading_shares(struct reading *r, struct store_request *request) MUST_CHECK;

/* read_range.c: the first `count` rows of `samples` into the arena, as fields `first` and
 * following. */
int reading_answer_points(struct arena *arena, const struct samples *samples, size_t count,
			  unsigned first, struct store_points *points) MUST_CHECK;
/* read_last.c: the caller's handles first .. first + count in order of handle. */
void reading_order(const uint64_t *handles, size_t first, size_t count, uint32_t *order);

#endif
