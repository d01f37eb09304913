/* Private to collection: a plan. */
#ifndef FAULT_COLLECT_PLAN_H
#define FAULT_COLLECT_PLAN_H

#include "base/hash_table.h"
#include "fault/book_private.h"
#include "fault/collect.h"

enum { COLLECT_LEAST_PART = 8 }; /* an eighth */

/* A sealed run. */
struct collect_plan_run {
	struct fault_place place;
	uint64_t name, reports; /* of its segment */
	bool may_go;            /* its arrivals are gone, and so are its earlier segments */
	uint64_t count, weight; /* of its reports that go */
	int64_t newest_day;     /* of these */
	uint8_t *gone;          /* a bit of each sequence number; NULL: none goes */
	/* Likewise those that are erased (erase.h), which go in any case. */
	uint8_t *erased;
	uint64_t erased_count;
};

/* Whether so many of the reports of a run are enough to seal it again. */
static inline bool collect_plan_is_enough(uint64_t count, uint64_t reports)
{
	return count && count * COLLECT_LEAST_PART >= reports;
}

struct fault_plan {
	struct collect_plan_run *runs; /* by writer and run, ascending */
	size_t run_count, run_room;
	int64_t day_end; /* reports of days before it may go */
	struct fault_plan_view view;
	uint64_t tenure;   /* in which it was made; 0: it is stale */
	uint64_t recounts; /* of the book, when it was begun */
	/* The owner's. */
	int64_t due_ms;  /* monotonic; BOOK_NOT_DUE: no checkpoint says yet from which days */
	size_t at;       /* the run that is next */
	uint64_t done;   /* reports that are gone */
	uint64_t erased; /* and so many that were removed for their user */
};

/* The run of a place; NULL: it is not among them. */
struct collect_plan_run *collect_plan_find_run(const struct fault_plan *plan,
					       struct fault_place place);
static inline bool collect_plan_has(const uint8_t *bits, uint64_t sequence)
{
	size_t bit = sequence & (FAULT_RUN_REPORTS - 1);
	return bits && bits[bit / 8] >> bit % 8 & 1;
}

/* Groups that have a bug, as slots of nothing but the hash (collect_group_hash). */
int collect_read_bugs(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		      struct hash_table *groups, struct errbuf *e) MUST_CHECK;
static inline struct hash128 collect_group_hash(struct slice group)
{
	return hash128(group.data, group.len, 0x67726f7570); /* of no group it is zero */
}

#endif
