/* One simulated run: a store with everything on it, its clients, and what they may expect.
 *
 * The machine's own fiber is the server's loop and all of its clients; the store's writer and
 * readers are fibers of their own (machine.h). A run is a row of steps; what a step does follows
 * from the seed. A life lasts from an opening of the store to its closing or crash; after each the
 * whole store is read and compared with the model (model.h). */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "catalog/catalog.h"
#include "disk.h"
#include "ingest/ingest.h"
#include "machine.h"
#include "model.h"
#include "query/query.h"
#include "retention/retention.h"

enum {
	GROUPS = 4, /* series opened together, written straight to the store */
	DIRECT_SERIES = 28,
	DOORS = 4,       /* clients of ingest */
	DOOR_SERIES = 6, /* of each */
	SERIES = DIRECT_SERIES + DOORS * DOOR_SERIES,
	ROWS = 2 * DIRECT_SERIES + DOORS * DOOR_SERIES,
	CELLS = 12,    /* stamped */
	ROW_CELLS = 4, /* of which a row has so many */
	LEASES = 3,    /* conditional */
	LEASE_VERSIONS = 64,
	WRITES_MAX = 12, /* in flight */
	READS_MAX = 6,
	QUERIES_MAX = 3,
	GRID_MS = 10000,
};

struct series_name {
	const char *tenant, *metric;
	char tags[64];
};

/* Series that share tags, as a poll brings them. */
struct group {
	const char *tags;
	const char *const *metrics;
	size_t first, count;
	int64_t next_ms; /* where live data goes on */
};

struct lease {
	struct reg reg;
	uint32_t id; /* of the version known last; 0: it is not there */
	uint64_t version;
	uint64_t given[LEASE_VERSIONS]; /* versions seen, and whose they were */
	uint32_t given_to[LEASE_VERSIONS];
	size_t given_count;
};

struct world;

struct door {
	unsigned number;
	struct world *world;
	struct ingest_request *request; /* NULL: idle */
	struct line_feed *line;         /* one of the two */
	struct put_feed *put;
	struct buf body;
	size_t fed, points;
	bool ended, done, paused, again; /* `again`: the body is to be sent once more */
	struct batch *batch;
	int64_t next_ms;
	/* What the body holds. */
	struct sent {
		size_t row;
		int64_t ts_ms;
		uint32_t id;
	} * sent;
	size_t sent_count, sent_cap;
};

struct world {
	uint64_t seed;
	size_t step;
	bool trace, failed, ghost; /* ghost: the crash has come, nobody hears answers any more */
	char failure[1024];
	uint64_t hash; /* of all that happened */
	struct random random;
	uint64_t tick;

	char path[256];
	uint64_t journal_max_bytes, head_max_bytes, map_bytes, queue_max_bytes;
	int64_t journal_max_age_ms, settle_delay_ms;
	struct retention_rules retention;
	unsigned read_threads;
	size_t in_flight_max_bytes, write_bytes, slice_points;
	struct files files;
	bool disk_low; /* fewer bytes free than the store wants to leave */
	/* In this life: batches may have been refused, and nobody heard of it. */
	bool was_full;
	bool dead; /* the store has said so */

	struct executor executor;
	struct task *tasks, **tasks_last, *late, **late_last; /* late: posted after the crash */
	struct store *store;
	struct catalog *catalog;
	struct ingest *ingest;
	struct query_engine *queries;
	bool catalog_closed;

	/* The latest by which anything may have expired: what the clock has shown, but for times
	 * at which it was wrong (is_clock_wrong). */
	int64_t wall_most_ms;
	int64_t wrong_ms;    /* by how much it has been set wrong */
	int64_t wrong_at_us; /* monotonic: since when, or since it was set last */
	struct series_name names[SERIES];
	uint64_t handles[SERIES];
	struct group groups[GROUPS];
	struct row rows[ROWS];
	struct reg cells[CELLS];
	struct lease leases[LEASES];
	uint32_t next_id, next_batch;
	/* The one that comes late; the highest given in this life; the highest known to be stored.
	 */
	int64_t held_stamp_us, stamp_most_us, stamp_stored_us;
	struct arena batches;

	struct direct_write *writes[WRITES_MAX];
	struct direct_read *reads[READS_MAX];
	struct asked *asked[QUERIES_MAX];
	struct door doors[DOORS];
	int64_t door_samples; /* that answers of ingest have promised in this life */
	int64_t samples_before;

	/* What the run was about: printed, and asserted of all seeds together. */
	struct world_counts {
		uint64_t writes, answered, refused, requests, reads, points, queries, crashes,
			closes, settles, full, deaths, resent, checked;
	} counts;
};

/* ---- world.c */

/* All of a run; false: something was wrong, and world->failure says what. */
bool world_run(struct world *world, uint64_t seed, size_t steps, bool trace);

bool violate(struct world *world, const char *fmt, ...) PRINTF_LIKE(2, 3);
void say(struct world *world, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline uint64_t pick(struct world *world, uint64_t bound)
{
	return random_below(&world->random, bound);
}

static inline bool chance(struct world *world, unsigned percent)
{
	return pick(world, 100) < percent;
}

static inline int64_t now_ms(void)
{
	return floor_div(machine_wall_us(), 1000);
}

/* Whether a sample may be shown at a query's now; *must: it must, if it is there. */
bool in_sight(const struct world *world, const struct row *row, int64_t ts_ms, int64_t at_ms,
	      bool *must);
static inline struct value row_value(const struct world *world, const struct row *row,
				     int64_t ts_ms, unsigned field, uint32_t id)
{
	unsigned series = row->decimals ? row->series * 4 + 2 : row->series;
	return version_value(world->seed, series, ts_ms, field, row->table == TABLE_BASE_RATES, id);
}
struct batch *new_batch(struct world *world, bool ordered);
/* Runs tasks that were posted, at most `most`. */
size_t pump(struct world *world, size_t most);
/* Pumps until *done; false (and a failure) if it does not come. */
bool pump_until(struct world *world, const bool *done, const char *what);

/* ---- direct.c: batches for the store itself */

enum { CELL_VALUE_MAX = 10000 };

#define LEASE_KEY ((struct store_parts){{SLICE("sim")}})

struct store_parts sim_cell_key(size_t cell, char text[8]);
struct store_parts sim_cell_column(size_t cell, char text[8]);
struct store_parts sim_lease_column(size_t lease, char text[8]);
/* Some are so long that they lie in parts. */
struct slice sim_cell_value(uint32_t id, char text[CELL_VALUE_MAX]);
/* What a version number says belongs to one version for ever. */
bool learn_lease(struct world *world, size_t number, uint32_t id, uint64_t version);

/* A cell with a late stamp is under way: it has to come within a day of what was deleted. */
bool direct_is_late(const struct world *world);
void direct_write_step(struct world *world);

/* ---- reads.c: reads of the store itself */

void direct_read_step(struct world *world);
bool direct_idle(const struct world *world);
/* Opens all series; those that must be there must be found. */
bool direct_open_series(struct world *world);
/* Reads everything. With `resolve` after a crash, else as any reader. */
bool direct_read_all(struct world *world, bool resolve);
bool direct_verify(struct world *world);
/* The other rows, of ingest's clients. */
static inline struct row *door_row(struct world *world, size_t i)
{
	return &world->rows[2 * DIRECT_SERIES + i];
}
struct row *direct_row(struct world *world, unsigned series, bool rates);

/* Samples of one series as a reader got them, over all slices. */
struct got {
	unsigned fields;
	size_t count, cap;
	int64_t *ts_ms;
	struct value *values; /* by sample, then by field */
};
void got_add(struct got *got, int64_t ts_ms, const struct value *values);
void got_reverse(struct got *got);
void got_release(struct got *got);
/* Compares what a read gave of from <= time < to, which began at `tick` with the now `at_ms`:
 * ascending, every value one that may be there, and nothing missing. */
bool check_got(struct world *world, struct row *row, const struct got *got, int64_t from_ms,
	       int64_t to_ms, int64_t at_ms, uint64_t tick);

/* ---- doors.c: line protocol, /api/put and queries */

void doors_init(struct world *world);
void doors_release(struct world *world);
void door_step(struct world *world);
void query_step(struct world *world);
bool doors_idle(const struct world *world);
/* Before the store goes: requests are abandoned, queries freed. */
void doors_abandon(struct world *world);
/* After a crash: what was not answered will be sent again, or not. */
void doors_after_crash(struct world *world);

#endif
