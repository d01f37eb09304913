/* Who exists: shapes and bands. Private to store/lmdb.
 *
 * A shape is a tenant and a list of metrics that were registered together (the fields of one
 * measurement, the counters of an OIDSet); a band is one tag set of a shape. A series is a column
 * of a band, its handle (shape, ordinal of the band in the shape, column). So the tags of ten
 * series that arrive together are stored once, and bands of one shape are neighbours on disk.
 *
 * A registration is used at once and becomes durable with the next commit: until then it is
 * `pending`. Everything pending is written in the transaction of the first batch that comes after
 * it, so no sample is ever durable before its series.
 *
 * Threads: `lock` guards all that is pending and the counters; reads of columns need no lock. */
#ifndef STORE_LMDB_REGISTRY_H
#define STORE_LMDB_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/lmdb/env.h"
#include "store/lmdb/ranges.h"
#include "store/lmdb/tenant_shapes.h"

enum {
	SHAPE_COLUMNS_MAX = 64,
	SHAPES_MAX = (1 << 24) - 1,
	SHAPE_CHUNK = 4096,
	PENDING_BUCKETS = 1 << 14,
	MULTI_CHAIN_MAX = 32, /* bands of several columns for one tag set, before single ones */
};

static inline uint64_t handle_of(uint32_t shape, uint32_t ordinal, unsigned column)
{
	return (uint64_t)shape << 40 | (uint64_t)ordinal << 8 | column;
}

static inline uint32_t handle_shape(uint64_t handle)
{
	return (uint32_t)(handle >> 40);
}

static inline uint32_t handle_ordinal(uint64_t handle)
{
	return (uint32_t)(handle >> 8);
}

static inline unsigned handle_column(uint64_t handle)
{
	return (unsigned)(handle & 0xff);
}

/* How many neighbouring bands lie in one row group: enough that a page is filled. */
static inline uint32_t group_bands(unsigned columns)
{
	return columns >= 8 ? 8 : 64 / columns;
}

struct pending_band {
	struct pending_band *next_in_bucket, *next;
	uint64_t hash; /* of its index entry */
	uint32_t shape, ordinal;
	uint16_t tags_len;
	int64_t first_seen_ms;
	char tags[];
};

struct pending_shape {
	struct pending_shape *next;
	uint64_t hash;
	uint32_t id;
	uint16_t len; /* of the payload as stored in DB_SHAPES */
	uint8_t payload[];
};

struct registry {
	struct env *env;
	pthread_mutex_t lock;
	/* By shape, in chunks that never move, so that readers need no lock. */
	_Atomic(_Atomic uint16_t *) columns[(SHAPES_MAX + 1) / SHAPE_CHUNK];
	/* Above all that were given since the start or have a band, so that the handles of what was
	 * forgotten since then are not given again. Read without the lock, too. */
	_Atomic(_Atomic uint32_t *) next_ordinal[(SHAPES_MAX + 1) / SHAPE_CHUNK];
	_Atomic uint32_t next_shape;
	struct tenant_shapes tenants; /* pending shapes, too; guarded by lock */
	struct pending_band *buckets[PENDING_BUCKETS];
	struct pending_band *first_band, **last_band;
	struct pending_shape *first_shape, **last_shape;
	_Atomic size_t pending_count; /* changed under the lock, read without it, too */
	size_t pending_bytes;
	uint64_t committed_count; /* bands ever committed by this process */
	pthread_cond_t committed;
	/* Numbers of the handles that were forgotten since the start; guarded by lock. There are at
	 * most as many ranges as there are shapes and series that lived at the start or live now.
	 */
	struct ranges dead;
	_Atomic bool any_dead; /* set under the lock, read without it, too */
	_Atomic uint64_t generation;
	_Atomic bool full; /* the store has no room: nothing new is registered */
};

int registry_open(struct registry *registry, struct env *env) MUST_CHECK;
void registry_release(struct registry *registry);
/* Takes the lock. */
size_t registry_memory_bytes(struct registry *registry);

/* 0 for a shape that does not exist. Any thread. */
static inline unsigned registry_columns(struct registry *registry, uint32_t shape)
{
	if (shape == 0 || shape > SHAPES_MAX)
		return 0;
	_Atomic uint16_t *chunk = registry->columns[shape / SHAPE_CHUNK];
	return chunk ? chunk[shape % SHAPE_CHUNK] : 0;
}

/* Whether a handle may have been given: since the start, or to a series that is there. Any thread.
 */
bool registry_issued(struct registry *registry, uint64_t handle);

/* The requests, on a reader's thread. `txn` is reset, renewed under the lock and left open. */
int registry_series_open(struct registry *registry, MDB_txn *txn, struct store_series_open *open,
			 struct arena *arena, int64_t now_ms) MUST_CHECK;
int registry_series_list(struct registry *registry, MDB_txn *txn, struct store_request *request,
			 struct arena *arena) MUST_CHECK;
/* Whether a series of the tenant may be there, committed or not. Takes the lock. */
bool registry_has_tenant(struct registry *registry, struct slice tenant);
int registry_series_describe(struct registry *registry, MDB_txn *txn,
			     struct store_series_describe *describe,
			     struct arena *arena) MUST_CHECK;
/* The token from which a list goes on with this very series. */
void registry_list_token(uint64_t handle, struct store_token *token);
int registry_series_set_rows(struct registry *registry, MDB_txn *txn, struct store_request *request,
			     struct arena *arena, size_t *budget) MUST_CHECK;
/* Waits until the writer, woken by the caller, has committed what is pending now; at most about a
 * second, in case it cannot. */
void registry_flush(struct registry *registry);
/* All cells of a row of series_sets, in the order of the encoded columns, from the registry. */
struct series_set_cell {
	struct slice column; /* encoded: tag key, tag value, series-set */
};
int registry_series_sets(struct registry *registry, MDB_txn *txn, struct slice tenant,
			 struct slice metric, struct arena *arena, struct series_set_cell **cells,
			 size_t *count) MUST_CHECK;

/* The writer's. Take: puts everything pending into the transaction and remembers how much;
 * committed: drops that much from pending. After an abort nothing has changed. */
struct registry_written {
	size_t bands, shapes;
};
int registry_write(struct registry *registry, MDB_txn *txn,
		   struct registry_written *written) MUST_CHECK;
void registry_committed(struct registry *registry, const struct registry_written *written);

/* In the writer's transaction: the series leaves. The handle is dead after registry_forgotten(). */
int registry_forget(struct registry *registry, MDB_txn *txn, uint64_t handle) MUST_CHECK;
void registry_forgotten(struct registry *registry, uint64_t handle);
bool registry_find_dead(struct registry *registry, uint64_t handle);
static inline bool registry_is_dead(struct registry *registry, uint64_t handle)
{
	return atomic_load_explicit(&registry->any_dead, memory_order_relaxed) &&
	       registry_find_dead(registry, handle);
}

/* Every band of every shape, in order of key: `step` is called with each; stops on its error. */
struct band_view {
	uint32_t shape, ordinal;
	struct slice tags_text;
	int64_t first_seen_ms;
	const uint8_t *dead_columns;
	size_t dead_count;
};
int band_parse(struct slice key, struct slice value, struct band_view *band) MUST_CHECK;

struct shape_view {
	uint32_t id;
	struct slice tenant;
	unsigned count;
	struct slice metric[SHAPE_COLUMNS_MAX];
};
int shape_parse(struct slice key, struct slice value, struct shape_view *shape) MUST_CHECK;

/* The entries of the indexes, as registering makes them: for who copies shapes and bands. */
int registry_index_shape(struct env *env, MDB_txn *txn, const struct shape_view *shape,
			 struct slice payload) MUST_CHECK;
void registry_band_index_key(const struct shape_view *shape, const struct band_view *band,
			     uint8_t to[16]);
int registry_index_band(struct env *env, MDB_txn *txn, const struct shape_view *shape,
			const struct band_view *band) MUST_CHECK;

#endif
