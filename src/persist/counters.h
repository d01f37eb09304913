/* Private: the persister of counters, divided by its steps: counters.c takes a batch on,
 * counters_open.c opens and restores what is not known, counters_texts.c does so for texts and puts
 * them into the write, counters_fill.c all else. */
#ifndef PERSIST_COUNTERS_H
#define PERSIST_COUNTERS_H

#include "persist/layouts.h"
#include "persist/persister.h"

struct deriver;
struct looking_up;
struct restoring;

/* A poll of the batch at work. */
struct item {
	struct layout *layout;
	struct poll_names names; /* `columns` NULL: not decoded */
	struct poll_values values;
	size_t first_group, group_count; /* of its rows that are opened */
};

/* A row whose series are being opened. */
struct opened_row {
	struct item *item;
	size_t row;
	const uint16_t *columns; /* by metric of the group */
};

struct counters {
	struct persister persister;
	struct layouts layouts;
	struct persist_batch *batch; /* NULL: none is at work */
	struct item *items;
	size_t count; /* items of this batch that are taken on */
	/* Rows to open, and the groups that ask for them. */
	struct opened_row *rows;
	struct catalog_group *groups;
	size_t group_count;
	struct catalog_open open;
	bool open_begun; /* and not finished */
	struct store_read *restore;
	struct restoring *restorings;
	struct looking_up *looking_up; /* newest texts; NULL: none are */
	struct deriver *deriver;
	uint64_t generation; /* of the store's series, when it was last looked at */
	/* OIDs whose kind and home the catalog was told of by this process. */
	const struct oid_def **told;
	size_t told_count;
};

/* The batch ends here: its owner is told. */
void counters_finish(struct counters *counters, int err);
/* What is remembered of all devices is dropped; it comes back from the store, by and by. */
void counters_forget(struct counters *counters);

/* Whether a value of the row waits for its series to be opened. */
bool counters_row_is_closed(const struct layout *layout, const struct poll_values *values,
			    size_t row);

/* Opens the series of so many rows and reads their newest values; goes on with
 * counters_look_up_texts. */
void counters_open_series(struct counters *counters, size_t rows);

/* Reads the newest texts of places that have one now and did not before; goes on with
 * counters_fill.
 */
void counters_look_up_texts(struct counters *counters);

/* Puts what the items hold into the batch's write, and finishes. */
void counters_fill(struct counters *counters);

/* What has become of a batch's values. */
struct tally {
	int64_t stored, repeated, refused_order, refused_value, refused_series, refused_name,
		refused_time;
};

/* ERR_LIMIT: the write is full. */
int counters_fill_texts(struct counters *counters, const struct item *item, int64_t now_ms,
			struct tally *tally) MUST_CHECK;

/* Of a row at an impossible time nothing is taken. */
bool counters_is_time(const struct counters *counters, int64_t ts_ms, int64_t now_ms);
/* How long its raw data are kept; 0: for ever. */
int64_t counters_ttl_ms(const struct counters *counters, const struct layout *layout);

#endif
