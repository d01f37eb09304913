/* Which metrics and sources a tenant has, by group: families `k` and `ks` of `chukwa_metadata`
 * (document K; doc/format-rows.md). A group is the datatype of the stream that the metrics are made
 * of.
 *
 * Whoever stores samples notes their names with each. What was noted lately is known, and costs a
 * look into a hash set; the rest waits in a bounded list, from which a job writes it. Names that
 * the set has no room for take turns of a minute, so that each is written within a day. A name that
 * the store did not take, or that found no room in the list, is noted again with the next sample.
 * Where series leave, cells expire some days after the longest retention, and are written again
 * once a day as long as their names are noted.
 *
 * Two names with the same sig would share rows of `chukwa`. The first one has a cell that says so;
 * the second one is counted and logged with both names, and is kept all the same.
 *
 * Threads: notes may be made on any thread; the rest belongs to the thread of the executor. */
#ifndef BOARD_KEYS_H
#define BOARD_KEYS_H

#include "base/clock.h"
#include "base/exec.h"
#include "model/series.h"
#include "store/store.h"
#include "wire/chukwa_key.h"

enum {
	BOARD_GROUP_MAX_BYTES = 64,
	BOARD_NAME_MAX_BYTES = 390, /* so that it always fits a column */
	BOARD_UNIT_MAX_BYTES = 64,
	BOARD_KIND_MAX_BYTES = 16,
};

enum board_key_type { BOARD_METRIC, BOARD_SOURCE };

struct board_key {
	enum board_key_type type;
	struct slice name;
	struct slice unit, kind; /* of a metric; empty: not known */
};

struct board_keys_options {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	int64_t keep_ms;          /* the longest that samples are kept; 0: for ever */
	size_t waiting_max_bytes; /* of names that wait; 0 = 4 MB */
	size_t known_max;         /* names that are known; 0 = 131,072 */
};

struct board_keys;

struct board_keys *board_keys_new(const struct board_keys_options *options);
/* When its job is over. NULL is allowed. */
void board_keys_free(struct board_keys *keys);

/* The job. What waits when it is stopped is not written: it is noted again by the next process. */
void board_keys_start(struct board_keys *keys);
void board_keys_stop(struct board_keys *keys);
bool board_keys_is_over(const struct board_keys *keys);
/* Samples are kept for keep_ms from now on; 0: for ever. All names are written again when they are
 * seen next, since their cells expire with the samples. */
void board_keys_set_keep(struct board_keys *keys, int64_t keep_ms);
/* What the job does again and again: writes what waits. For a thread that may wait. */
void board_keys_write(struct board_keys *keys, struct task_queue *queue);

/* A name that cannot be one is counted: one that is empty, too long, no UTF-8 or has control
 * characters; a group likewise, or one that is a row of boards. NULL keys are allowed. */
void board_keys_note(struct board_keys *keys, struct slice tenant, struct slice group,
		     const struct board_key *key);
/* Notes the metric and the source of a series (row_name.h); kind and unit are the metric's. A
 * series without a source is in no row. */
void board_keys_note_series(struct board_keys *keys, struct slice tenant, struct slice group,
			    struct slice metric, struct tags tags, struct slice kind,
			    struct slice unit);

/* ---- Reading, for threads that may wait ------------------------------------------------------ */

/* Gives each key of a group to `each`, metrics before sources, each by name; stops at the first
 * error of `each`. One that cannot be read is passed over, and counted. The store's error has a
 * sentence. */
int board_keys_each(struct store *store, struct task_queue *queue, int64_t now_ms,
		    struct slice tenant, struct slice group,
		    int (*each)(const struct board_key *key, struct slice sig, void *owner),
		    void *owner, struct errbuf *e) MUST_CHECK;
/* The same of the groups of a tenant. */
int board_groups_each(struct store *store, struct task_queue *queue, int64_t now_ms,
		      struct slice tenant, int (*each)(struct slice group, void *owner),
		      void *owner, struct errbuf *e) MUST_CHECK;

#endif
