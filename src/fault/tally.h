/* What the reports of a group add up to: how many, when, the first and the last, and which values
 * their facts have, with how many reports of each. Of a day, as a cell has it
 * (doc/format-faults.md, **Summaries**), or of many.
 *
 * It does not depend on the order in which reports are added, nor on how they are divided among
 * the tallies that are put together. Where a fact has more values than may be kept, those are kept
 * that come first in an order of their texts: so each that is kept has been counted from its first
 * report on. Of releases names that are no versions come first, since nobody knows their order,
 * then versions, the highest first. Of other facts it is the order of hashes: those that are kept
 * are chosen by chance, and how many there are follows from the greatest of their hashes.
 *
 * Tags are kept in turns: of each name the value with the least hash, then of each name the next
 * one, and so on. So a name that has another value in each report leaves room for other names. A
 * value that is kept after two tallies were put together was kept in each of them that had it, so
 * it has been counted from its first report on, too.
 *
 * Pure; one thread at a time. */
#ifndef FAULT_TALLY_H
#define FAULT_TALLY_H

#include "base/cursor.h"
#include "base/hash_table.h"
#include "fault/arrival.h"

enum {
	FAULT_VALUE_MAX_BYTES = FAULT_TAG_MAX_BYTES, /* of any fact; of most fewer */
	FAULT_VALUES_MAX = 1000,                     /* likewise */
};

/* The facts whose values are counted. The numbers are on disk: never renumber, only append. */
enum fault_tally_fact {
	FAULT_TALLY_RELEASE = 0,
	FAULT_TALLY_ENVIRONMENT = 1,
	FAULT_TALLY_HOST = 2,
	FAULT_TALLY_USER = 3,
	FAULT_TALLY_LEVEL = 4,
	FAULT_TALLY_CONTEXT = 5,
	FAULT_TALLY_EXCEPTION = 6,
	FAULT_TALLY_TAG = 7, /* a report has many; a text of it is one tag (tags.h) */
	FAULT_TALLY_FACTS
};
#define FAULT_TALLY_ALL ((1u << FAULT_TALLY_FACTS) - 1)

/* Where reports have a fact. */
enum fault_text fault_tally_fact_text(enum fault_tally_fact fact);

struct fault_value {
	uint64_t hash;
	struct slice text; /* the tally's */
	uint64_t count;
	int64_t first_us, last_us; /* when the first and the last of them were received */
};

struct fault_values {
	struct fault_value *list; /* in the order of the fact; tags by name, then by hash */
	size_t count, room;
	struct fault_value none; /* reports without the fact */
	struct fault_value rest; /* reports of values that are not kept */
};

struct fault_tally_end {
	int64_t date_us;
	struct slice id; /* the tally's; of two of one time the lesser text is the earlier */
};

struct fault_tally {
	uint64_t count;              /* 0: nothing else is set */
	uint64_t hours[FAULT_HOURS]; /* of the day in UTC, of all days */
	struct fault_tally_end first, last;
	struct slice title; /* the first's; the tally's */
	struct fault_values values[FAULT_TALLY_FACTS];
	struct slice taken; /* the cell that it was read of: texts of its values lie in it */
};

/* Zeroed: empty. */
void fault_tally_release(struct fault_tally *tally);
void fault_tally_add(struct fault_tally *tally, const struct fault_arrival *arrival);
/* Of the facts only those whose bits are set: 1 << fact. */
void fault_tally_merge(struct fault_tally *tally, const struct fault_tally *other, unsigned facts);

/* In a table of ids. */
static inline struct hash128 fault_id_hash(struct slice id)
{
	return hash128(id.data, id.len, 0x6964);
}
/* Reports of this user are counted as reports without a user. A tag whose value is the user's name
 * is counted as one that is not kept. If the first or the last report has an id of the table, the
 * tally has that id no more; with the first report's id its title goes. False: it is as it was. */
bool fault_tally_erase(struct fault_tally *tally, struct slice user, const struct hash_table *ids);

/* How many values a fact has. *about: more than are kept, so it is an estimate; of releases it is
 * how many are kept. */
uint64_t fault_tally_distinct(const struct fault_tally *tally, enum fault_tally_fact fact,
			      bool *about);
/* Those of reports that have this value; of an empty one those that have none. NULL: no report has
 * it, or it is not kept. */
const struct fault_value *fault_tally_find(const struct fault_tally *tally,
					   enum fault_tally_fact fact, struct slice text);
/* The values with most reports, of equal ones by text; `to` has room for all that are kept. */
size_t fault_tally_largest(const struct fault_tally *tally, enum fault_tally_fact fact,
			   const struct fault_value **to);
/* The latest release: the highest version; where there is none that whose first report came last.
 * NULL: no report has one. */
const struct fault_value *fault_tally_latest_release(const struct fault_tally *tally);

/* A tally of one day, and its cell's value; an empty one has none. */
void fault_tally_put(const struct fault_tally *tally, int64_t day_us, struct buf *out);
/* Of the facts as fault_tally_merge; what is behind the last of them is not looked at, unless
 * `facts` is 0: then all is. ERR_DAMAGED, ERR_VERSION. It is to be released also after an
 * error. */
int fault_tally_take(struct fault_tally *tally, int64_t day_us, unsigned facts,
		     struct slice value) MUST_CHECK;

#endif
