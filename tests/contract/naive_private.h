/* What naive.c (life, writing) and those that read (naive_read.h) share. */
#ifndef TESTS_CONTRACT_NAIVE_PRIVATE_H
#define TESTS_CONTRACT_NAIVE_PRIVATE_H

#include <pthread.h>

#include "naive.h"

enum { NAIVE_POINTS_PRESET = 1000000 }; /* of a read that says nothing */

struct naive_point {
	int64_t ts_ms;
	struct value values[TABLE_FIELDS_MAX];
	/* By field: those of its last write. */
	enum retention_class retention[TABLE_FIELDS_MAX];
	int64_t stamps_us[TABLE_FIELDS_MAX];
};

/* Samples of start <= ts < end with this stamp, or a lower one, are deleted. */
struct naive_deletion {
	int64_t start_ms, end_ms, stamp_us;
};

/* The samples of one series in one table and period, ascending by time. A row stays when its last
 * point goes, so that its place among its series' rows holds for ever. */
struct naive_row {
	enum table table;
	int64_t period_ms;
	struct naive_point *points;
	size_t count, cap;
	struct naive_deletion *deletions; /* for ever */
	size_t deletion_count;
	/* How many requests of the batch that came last have met on the row. */
	uint64_t batch;
	unsigned meetings;
};

/* A series keeps its place in the registry when it is forgotten. */
struct naive_series {
	bool alive;
	struct slice tenant, metric, tags_text; /* owned */
	int64_t first_seen_ms;
	uint64_t registration; /* its number, the newest */
	int64_t registered_ms; /* likewise, by the store's clock */
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
	int64_t gone_us;          /* the highest stamp with which the row was deleted, for ever */
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
	uint64_t epoch, generation, batch;
	uint64_t registrations; /* the number of the last */
	uint64_t news_gone;     /* news up to that number have gone, however young they are */
	bool news_gone_untold;  /* a mistake to plant: nobody is told so */
	struct naive_table tables[TABLE_COUNT];
	int64_t last_stamp_us;
	int refuse_writes_err, fail_writes_err, refuse_reads_err;
	unsigned refuse_writes, good_writes, fail_writes, refuse_reads;
	bool keep_failed;
	uint64_t endless_reads;
	uint64_t damaged; /* handle, 0: none */
	/* Handles live on when their series is forgotten, and what is appended brings it back. */
	bool handles_revive;
	enum naive_bug bug;
};

static inline struct naive *naive_of(struct store *store)
{
	return CONTAINER_OF(store, struct naive, store);
}

/* ---- Batches: their requests by stage, in the write's arena */
enum naive_request_kind {
	REQUEST_APPEND,
	REQUEST_DELETE_RANGE,
	REQUEST_CELL,
	REQUEST_FORGET,
	REQUEST_REKEY,
};

struct naive_request {
	struct naive_request *next;
	enum naive_request_kind kind;
	struct store_target target;
	int64_t start_ms, end_ms; /* an append's time is start_ms */
	const uint64_t *handles;
	size_t n;
	const struct value *values;
	struct store_cell_write cell;
	struct store_rekeying rekeying;
};

struct store_stage {
	struct store_stage *next;
	struct naive_request *first, *last;
};

/* The row that a request of samples meets on with handle i; made where there is none, NULL for a
 * series that is unknown. */
struct naive_row *naive_request_row(struct naive *naive, const struct naive_request *request,
				    size_t i);
/* The stamp with which the next request of the batch `naive->batch` meets on the row. */
int64_t naive_next_stamp_us(struct naive *naive, struct naive_row *row, int64_t stamp_us);
/* Does what the request says of handle i, or its cell. ERR_LIMIT: a set is full. */
int naive_apply(struct naive *naive, const struct naive_request *request, size_t i,
		int64_t stamp_us, struct arena *arena);
/* ERR_NOT_FOUND: an append to a series that is unknown. */
int naive_check_appends(struct naive *naive, const struct store_stage *stage);
extern const struct store_engine naive_engine;

uint64_t naive_handle(const struct naive *naive, size_t index);
/* NULL for a handle that is unknown or dead. */
struct naive_series *naive_series_of(struct naive *naive, uint64_t handle);
/* It is there, registered for the first time or again. */
void naive_register(struct naive *naive, struct naive_series *series);
struct naive_row *naive_row_of(struct naive_series *series, enum table table, int64_t period_ms);
struct slice naive_copy(struct slice bytes);
bool naive_sample_visible(const struct naive *naive, const struct naive_point *point, size_t field,
			  int64_t now_ms);
bool naive_cell_visible(const struct naive_cell *cell, int64_t now_ms);

int naive_read_submit(struct store_read *read);
/* One request of a read, which gives at most *points, counted down. */
int naive_read_request(struct naive *naive, struct store_read *read, struct store_request *request,
		       size_t *points);

#endif
