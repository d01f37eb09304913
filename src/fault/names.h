/* What is counted by name on one day: pairs of context and exception, and groups. Each name is a
 * cell of a row of the day. At most so many names are counted, in the order of receipt; reports of
 * further ones are the rest.
 *
 * Reports are added in any order. If a report was received before the first report of a name that
 * was counted in its place, the names are `disordered`. Then somebody who has the reports has to
 * count them once more, in the order of receipt.
 *
 * Each group has a tally, too. In memory it lies as the bytes of its cell, which the next
 * checkpoint needs anyway. The reports that came since that cell was written have a tally of their
 * own, which is small. It is unpacked when a report is added, until the next checkpoint is written,
 * or until too many are.
 *
 * Pure; one thread at a time. */
#ifndef FAULT_NAMES_H
#define FAULT_NAMES_H

#include "base/hash_table.h"
#include "fault/tally.h"
#include "fault/versioned.h"

enum { FAULT_COLUMN_MAX_BYTES = 400 };
#define FAULT_GROUP_PREFIX  SLICE("group.") /* of the column of a group's cell */
#define FAULT_VOLUME_PREFIX SLICE("volume.")

/* A slot of a hash table. */
struct fault_name {
	struct hash128 hash; /* of the name */
	struct slice name;   /* the slot's */
	uint64_t count;
	int64_t first_us;             /* when the first was received; of count 0 it means nothing */
	struct slice written;         /* the cell's value as it is stored; the slot's */
	struct fault_version version; /* of that */
	/* Of a group: the tally of the reports that `written` has not. NULL: `packed` has it. */
	struct fault_tally *tally;
	struct slice packed; /* the slot's; empty: there are none */
	bool replaced;       /* `tally` or `packed` has all reports, and `written` none of them */
	bool dirty;
	bool entered; /* of a group: a checkpoint has written that it has reports on this day */
};

struct fault_names {
	int64_t day_us; /* when the day begins */
	size_t max;
	bool tallies; /* they are groups */
	struct hash_table table;
	size_t unpacked;         /* tallies */
	size_t count;            /* names with a count above 0 */
	bool latest_known;       /* what follows is right, or too late: first reports get earlier */
	int64_t latest_first_us; /* of the names */
	uint64_t rest;
	bool disordered;
};

void fault_names_init(struct fault_names *names, int64_t day_us, size_t max, bool tallies);
/* It is empty then. */
void fault_names_release(struct fault_names *names);

/* False: the report is of the rest. */
bool fault_names_add(struct fault_names *names, struct slice name,
		     const struct fault_arrival *arrival);
/* The names of `fresh` take the place of all names; `fresh` is empty then. */
void fault_names_replace(struct fault_names *names, struct fault_names *fresh);

const struct fault_name *fault_names_find(const struct fault_names *names, struct slice name);
/* The name at a place of the table below its slot_count; NULL: no name with reports is there. */
const struct fault_name *fault_names_at(const struct fault_names *names, size_t at);
/* The tally of a group, some facts of it (tally.h), is added to `to`. ERR_DAMAGED: no program wrote
 * its cell. */
int fault_names_tally(const struct fault_names *names, const struct fault_name *name,
		      unsigned facts, struct fault_tally *to) MUST_CHECK;

/* In the tallies of all groups (fault_tally_erase). False: all are as they were. */
bool fault_names_erase(struct fault_names *names, struct slice user, const struct hash_table *ids);
/* The next checkpoint writes all cells. */
void fault_names_write_again(struct fault_names *names);

/* ---- Cells ----------------------------------------------------------------------------------- */

/* A cell's value. ERR_DAMAGED, ERR_VERSION. */
int fault_names_load(struct fault_names *names, struct slice column, struct slice value,
		     struct fault_version version) MUST_CHECK;

/* A cell that has changed. */
struct fault_name_cell {
	struct slice column;
	struct slice value; /* versioned.h */
	struct slice
		enters; /* the name of a group whose first cell of this day it is; len 0: none */
};
typedef int fault_names_put(void *owner, const struct fault_name_cell *cell);
/* Gives each cell that has changed to `put`; stops at its first error. */
int fault_names_write(const struct fault_names *names, struct fault_version version,
		      fault_names_put *put, void *owner) MUST_CHECK;
/* All that was given is written now. */
void fault_names_written(struct fault_names *names, struct fault_version version);

#endif
