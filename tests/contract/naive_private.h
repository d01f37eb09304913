/* What naive.c (life, writing) and those that read (naive_read.h) share. */
#ifndef TESTS_CONTRACT_NAIVE_PRIVATE_H
#define TESTS_CONTRACT_NAIVE_PRIVATE_H

#include <pthread.h>

#include "naive.h"

struct naive_point {
	int64_t ts_ms;
	struct value values[TABLE_FIELDS_MAX];
	enum retention_class retention[TABLE_FIELDS_MAX]; /* by field: that of its last write */
};

/* The samples of one series in one table and period, ascending by time. A row stays when its last
 * point goes, so that its place among its series' rows holds for ever. */
struct naive_row {
	enum table table;
	int64_t period_ms;
	struct naive_point *points;
	size_t count, cap;
};

/* A series keeps its place in the registry when it is forgotten. */
struct naive_series {
	bool alive;
	struct slice tenant, metric, tags_text; /* owned */
	int64_t first_seen_ms;
	struct naive_row *rows;
	size_t row_count;
};

/* A cell stays when it is deleted: as tombstone, and for its version. */
struct naive_cell {
	struct slice column, value; /* owned; of a set: as store_cell says */
	bool deleted;
	int64_t stamp_us, expires_ms;
	uint64_t version;
};

struct naive_cells {
	struct slice key;         /* owned */
	struct naive_cell *cells; /* ascending by column */
	size_t count;
};

struct naive_table {
	struct naive_cells *rows; /* in order of arrival; never removed */
	size_t count;
};

struct naive {
	struct store store;
	struct clock *clock;
	pthread_mutex_t lock; /* guards everything below */
	struct naive_series *series;
	size_t series_count;
	uint64_t epoch, generation;
	struct naive_table tables[TABLE_COUNT];
	int64_t last_stamp_us;
	int refuse_writes_err, fail_writes_err, refuse_reads_err;
	unsigned refuse_writes, fail_writes, refuse_reads;
	uint64_t endless_reads;
	uint64_t damaged; /* handle, 0: none */
	enum naive_bug bug;
};

static inline struct naive *naive_of(struct store *store)
{
	return CONTAINER_OF(store, struct naive, store);
}

uint64_t naive_handle(const struct naive *naive, size_t index);
/* NULL for a handle that is unknown or dead. */
struct naive_series *naive_series_of(struct naive *naive, uint64_t handle);
struct naive_row *naive_row_of(struct naive_series *series, enum table table, int64_t period_ms);
struct slice naive_copy(struct slice bytes);
bool naive_sample_visible(const struct naive *naive, const struct naive_point *point, size_t field,
			  int64_t now_ms);
bool naive_cell_visible(const struct naive_cell *cell, int64_t now_ms);

int naive_read_submit(struct store_read *read);

#endif
