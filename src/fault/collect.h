/* Collection: reports that are old, or for which there is no room any more, go.
 *
 *     plan: two walks over all reports -> the checkpoint says from which days -> a query deadline
 *     -> by run: a segment without them -> their entries by id go -> the run has that segment
 *     -> a query deadline -> the segment before it goes, and their files
 *
 * These stay, however old they are: the first report of each group and its newest ones; what is in
 * a list of a day that is over; reports with a bug, of their own or said later, and those of a
 * group that has one; and reports of an id that has several arrivals. So does whatever is not in a
 * sealed run yet, and what is of a day that is not over. What days and groups add up to stays as it
 * is, so a day of which some reports are gone is never recounted.
 *
 * Planning only reads, on any thread that may wait; it looks at the bodies of none. Carrying it out
 * is the owner's, run by run, after its passes (collect.c). What is half done when a process ends
 * is done by the next plan. */
#ifndef FAULT_COLLECT_H
#define FAULT_COLLECT_H

#include "fault/book.h"

struct fault_collect_rules {
	int64_t keep_us;    /* what was received longer ago goes; 0: none does */
	uint64_t bytes_max; /* of sealed runs: fullest groups go down first; 0: any number */
	size_t newest;      /* so many of a group stay */
	bool counts;        /* reports are counted though none can go */
};

struct fault_plan;

/* What a plan says. Bytes are those on disk; of a report they are what its part of all is. */
struct fault_plan_view {
	uint64_t reports, bytes; /* that go */
	uint64_t all_reports;    /* that are there */
	uint64_t sealed_bytes;   /* of all sealed runs */
	size_t runs;             /* of which some go, also of a user whose reports were removed */
	int64_t newest_day;      /* of those that go; without any: 0 */
};

/* ERR_RETRY: nothing goes, since the clock is doubted. ERR_TIMEOUT; ERR_CANCELLED; the
 * store's error; with a sentence. */
int fault_plan_new(struct fault_book *book, struct task_queue *queue,
		   const struct fault_collect_rules *rules, int64_t deadline_us,
		   struct fault_plan **plan, struct errbuf *e) MUST_CHECK;
struct fault_plan_view fault_plan_view(const struct fault_plan *plan);
void fault_plan_free(struct fault_plan *plan);

/* The owner carries the plan out, and frees it. ERR_INVALID: this process does not own the tenant;
 * ERR_EXISTS: an earlier one is not done yet; ERR_RETRY: something was recounted since it was
 * begun, or another owner may have been between; with a sentence. The plan stays the caller's then.
 */
int fault_book_collect(struct fault_book *book, struct fault_plan *plan,
		       struct errbuf *e) MUST_CHECK;
/* Whether a plan is at work. */
bool fault_book_collects(struct fault_book *book);

#endif
