/* The summary of a day of a tenant (document O, Summaries): the longest reports, those with most
 * statements, how many there were of each context and exception, and by hour; and what the reports
 * of each group add up to. In memory, with what is known of its cells (doc/format-faults.md,
 * **Summaries**).
 *
 * Reports are added in any order, each once. Two counts depend on the order: which names and groups
 * are kept where there are too many, and the lists of a closed day. A report that came out of order
 * for one of these makes the day disordered. Then the owner counts the reports of the day once
 * more, in the order of receipt.
 *
 * Pure; one thread at a time. */
#ifndef FAULT_DAY_H
#define FAULT_DAY_H

#include "fault/names.h"

enum {
	FAULT_DAY_TEXT_BYTES = 8, /* YYYYMMDD */
	FAULT_ROW_TEXT_BYTES = FAULT_DAY_TEXT_BYTES + 8,
	FAULT_LIST_MAX = 1000,
};

struct fault_day_limits {
	size_t list_max;   /* reports in a list, and names in the list of a closed day */
	size_t names_max;  /* of one day; what is of further names is counted as the rest */
	size_t groups_max; /* likewise */
};

/* The rows of a day in `summaries`. */
enum fault_row { FAULT_ROW_DAY, FAULT_ROW_VOLUMES, FAULT_ROW_GROUPS };

struct fault_top {
	uint64_t value;  /* microseconds, or statements */
	struct slice id; /* the day's */
};

struct fault_list {
	struct fault_top *list; /* descending, of equal ones by id ascending */
	size_t count, room;
};

/* Cells of the day's own row. */
enum fault_column {
	FAULT_COLUMN_DURATION,
	FAULT_COLUMN_STATEMENTS,
	FAULT_COLUMN_TOTAL,
	FAULT_COLUMN_HOURS,
	FAULT_COLUMN_STATE,
	FAULT_COLUMN_VOLUME,
	FAULT_COLUMN_REST,
	FAULT_COLUMN_GROUPS_REST,
	FAULT_COLUMNS
};

struct fault_day {
	int64_t day; /* since the epoch */
	struct fault_day_limits limits;
	struct fault_list longest, most;
	uint64_t total, hours[FAULT_HOURS];
	bool closed;
	bool late; /* a report was added to the closed day */
	struct fault_names
		volumes;           /* `context:exception`, escaped; of a closed day the rest only */
	struct fault_list largest; /* of a closed day: `id` is a name */
	struct fault_names groups;
	bool has_groups; /* `groups` has all that is stored */
	/* Its stored counts are damaged and cannot be made again: nothing is added to them. */
	bool unreadable;
	bool lacks; /* some of its reports could not be read when they were counted */
	struct {
		struct buf written; /* as it is stored */
		struct fault_version version;
		bool dirty;
	} columns[FAULT_COLUMNS];
};

struct fault_day *fault_day_new(int64_t day, const struct fault_day_limits *limits);
void fault_day_free(struct fault_day *day);

/* `YYYYMMDD`; of the row of volumes `YYYYMMDD/volumes`, and so on. Both close with a zero. */
void fault_day_text(int64_t day, char to[FAULT_DAY_TEXT_BYTES + 1]);
void fault_day_row_text(int64_t day, enum fault_row row, char to[FAULT_ROW_TEXT_BYTES + 1]);
/* ERR_INVALID: it is none. */
int fault_day_parse(struct slice text, int64_t *day) MUST_CHECK;
static inline int64_t fault_day_of(int64_t date_us)
{
	return floor_div(date_us, FAULT_DAY_US);
}

/* A report that was received on this day. Of a closed day, or one whose groups are not there: it is
 * disordered from then on. */
void fault_day_add(struct fault_day *day, const struct fault_arrival *arrival);
/* Whether it has reports that were counted before there were groups. */
bool fault_day_lacks_groups(const struct fault_day *day);
bool fault_day_is_disordered(const struct fault_day *day);
/* The day cannot be recounted: what was added last stays as it was added, and of a closed day it
 * counts as the rest. The day has its groups. */
void fault_day_settle(struct fault_day *day);
/* The list of the largest volumes takes the place of all of them. */
void fault_day_close(struct fault_day *day);
/* The counts are those of `fresh`, which is freed; cells that changed by that are to be written.
 * The day has its groups. */
void fault_day_replace(struct fault_day *day, struct fault_day **fresh);

/* For a day that cannot be recounted. Reports whose ids are in the table (fault_id_hash) go from
 * its lists and groups. The name of their user goes from its groups. False: nothing of that was
 * there. The day has its groups. */
bool fault_day_erase(struct fault_day *day, struct slice user, const struct hash_table *ids);
/* The next checkpoint writes its lists and groups: what they were before goes. */
void fault_day_write_again(struct fault_day *day);

/* What a day says to those who ask: a copy. */
struct fault_day_view {
	int64_t day;
	uint64_t total, hours[FAULT_HOURS], rest;
	uint64_t groups_rest; /* reports of groups that are not counted */
	bool closed;
	struct fault_list longest, most;
	struct fault_list largest; /* volumes, FAULT_LIST_MAX at most */
	size_t names;              /* volumes there are, or were kept */
};
struct fault_day_view *fault_day_view_new(const struct fault_day *day);
void fault_day_view_free(struct fault_day_view *view);

/* The name of a context and exception, escaped, cut to what a column may have behind `volume.`. */
void fault_volume_name(const struct fault_facts *facts, struct buf *name);

/* ---- Cells ----------------------------------------------------------------------------------- */

/* What is stored of it; of cells that are not known to this program: nothing. ERR_DAMAGED: no
 * program wrote that. */
int fault_day_load(struct fault_day *day, enum fault_row row, struct slice column,
		   struct slice value, struct fault_version version) MUST_CHECK;

/* Gives each cell that has changed since it was written, of checkpoint `version`, to `put`; stops
 * at its first error. */
typedef int fault_day_put(void *owner, enum fault_row row, const struct fault_name_cell *cell);
int fault_day_write(struct fault_day *day, struct fault_version version, fault_day_put *put,
		    void *owner) MUST_CHECK;
/* All that was given is written now. */
void fault_day_written(struct fault_day *day, struct fault_version version);
bool fault_day_is_dirty(const struct fault_day *day);

#endif
