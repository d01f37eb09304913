/* The groups of a tenant, by its book: what the reports of each add up to over some days, with
 * every report that was acknowledged before.
 *
 * Threads: any that may wait, as book.h has it. The lock of the book is held while days in memory
 * are read. It is not held while days are read from the store, or counted from their reports. */
#ifndef FAULT_GROUPS_H
#define FAULT_GROUPS_H

#include "fault/book.h"
#include "fault/merges.h"

enum {
	FAULT_GROUPS_DAYS_MAX = 400,    /* of one question about all groups */
	FAULT_GROUPS_READ_MAX = 200000, /* groups of one answer; further ones are left out */
};

/* A group. A slot of a hash table. */
struct fault_group_sum {
	struct hash128 hash; /* of the name */
	struct slice name;   /* the slot's */
	struct fault_tally *tally;
};

struct fault_groups {
	struct hash_table table;
	uint64_t left_out; /* groups of days, beyond FAULT_GROUPS_READ_MAX */
};

struct fault_groups_question {
	int64_t first_day, last_day;       /* both included */
	unsigned facts;                    /* whose values are put together: bits (tally.h) */
	int64_t deadline_us;               /* monotonic; 0: there is none */
	const struct fault_merges *merges; /* reports count for the root of their group; or NULL */
};

/* All groups with reports on these days. ERR_TIMEOUT: the deadline passed; the store's error; with
 * a sentence. It is to be released also after an error. */
int fault_book_read_groups(struct fault_book *book, struct task_queue *queue,
			   const struct fault_groups_question *question,
			   struct fault_groups *groups, struct errbuf *e) MUST_CHECK;
void fault_groups_release(struct fault_groups *groups);
/* The group at a place of the table below its slot_count; NULL: there is none. */
static inline struct fault_group_sum *fault_groups_at(const struct fault_groups *groups, size_t at)
{
	return hash_table_at(&groups->table, at);
}

/* Whether a group has reports of days before another one. A report that counts no more, as one that
 * was struck later, may stand for one that does. */
struct fault_group_age {
	struct slice group;
	bool older;
};
/* Looks up such days, as above, for groups whose `older` is not set yet. A group is as old as the
 * oldest that it stands for. */
int fault_book_read_older(struct fault_book *book, struct task_queue *queue, int64_t day,
			  const struct fault_merges *merges, struct fault_group_age *groups,
			  size_t count, int64_t deadline_us, struct errbuf *e) MUST_CHECK;

struct fault_group_day {
	int64_t day; /* since the epoch */
	uint64_t count, hours[FAULT_HOURS];
};

/* One group, of all days. */
struct fault_group_history {
	struct fault_tally tally;
	struct fault_group_day *days; /* those with reports, ascending */
	size_t count, room;
	uint64_t merged; /* fault_merges_hash of the groups that it stands for */
};

struct fault_group_question {
	struct slice group; /* with all that it stands for by `merges` */
	unsigned facts;
	int64_t deadline_us;               /* as above */
	const struct fault_merges *merges; /* or NULL */
};

/* A group that has no report is empty. As above. */
int fault_book_read_group(struct fault_book *book, struct task_queue *queue,
			  const struct fault_group_question *question,
			  struct fault_group_history *history, struct errbuf *e) MUST_CHECK;
void fault_group_history_release(struct fault_group_history *history);

#endif
