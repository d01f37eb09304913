/* Shared by the files of the catalog, which catalog.h describes. */
#ifndef CATALOG_PRIVATE_H
#define CATALOG_PRIVATE_H

#include <pthread.h>

#include "base/hash_set.h"
#include "base/owner.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "catalog/tag_index.h"

enum {
	INDEX_BUCKETS = 4096,
	TENANT_BUCKETS = 1024,
	TENANTS_MAX = 100000,
	READS_SPARE_MAX = 8,
	OPEN_READ_MAX_BYTES = 8 << 20,
	ASK_MAX_BYTES = 16 << 20,
};

/* ---- Hashes of (tenant, metric) ------------------------------------------------------------- */

static inline uint64_t name_seed(struct slice tenant)
{
	return hash64(tenant.data, tenant.len, 0);
}

static inline struct hash128 metric_hash(uint64_t seed, struct slice metric)
{
	return hash128(metric.data, metric.len, seed);
}

/* ---- limits.c: how many series a tenant has and may get ------------------------------------- */

struct tenant {
	struct tenant *chain;
	struct slice name;
	enum { COUNT_UNKNOWN, COUNT_LOADING, COUNT_KNOWN } state;
	/* Registered, and reserved by openings in flight. What other processes register or forget
	 * in a shared store since it was counted is not in it. */
	uint64_t series;
	int64_t counted_us; /* monotonic */
	uint64_t epoch; /* of the count: reservations made before a new one are not given back */
	double budget;  /* of new series now */
	int64_t budget_us;
	struct catalog_open *waiting; /* for the count */
};

enum permit {
	PERMIT_YES,
	PERMIT_WAIT,   /* the count is not known yet */
	PERMIT_SERIES, /* series_per_tenant_max */
	PERMIT_RATE,   /* new_series_per_minute_max */
};

/* All but tenants_load with the lock held. NULL: too many tenants. */
struct tenant *tenant_get(struct catalog *catalog, struct slice name);
enum permit tenant_reserve(struct catalog *catalog, struct tenant *tenant, size_t series);
void tenant_unreserve(struct tenant *tenant, size_t series, uint64_t epoch);
/* The count is to be taken again: series were forgotten. */
void tenant_forget_count(struct catalog *catalog, struct slice name);
/* Counts the series of a tenant in state LOADING (set by the caller under the lock); those in
 * `waiting` go on afterwards. */
void tenant_load(struct catalog *catalog, struct tenant *tenant);
void tenants_free(struct catalog *catalog);

/* open.c: goes on after the count is known, or could not be read. Any thread. */
void open_resume(struct catalog_open *open, int err);

/* ---- find.c: indexes ------------------------------------------------------------------------ */

struct index_entry;

/* With the lock held: the new series of a group, for the indexes that there are. Where the store is
 * shared they come with its news. */
void indexes_note(struct catalog *catalog, const struct catalog_group *group);
/* The index of this metric is out of date. */
void indexes_drop(struct catalog *catalog, struct slice tenant, struct slice metric);
/* Finds that wait get ERR_CANCELLED, what is being built ends. */
void indexes_cancel(struct catalog *catalog);
void indexes_free(struct catalog *catalog);

/* ---- list.c --------------------------------------------------------------------------------- */

static inline bool name_starts(struct slice name, struct slice prefix)
{
	return name.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(name.data, prefix.data, prefix.len) == 0);
}

/* The index has given some names more; if it is over, all, or an error. */
void list_from_index(struct catalog_list *list, bool over, int err);

/* ---- sweep.c -------------------------------------------------------------------------------- */

struct sweep;

void sweep_cancel(struct catalog *catalog);

/* ---- The catalog ---------------------------------------------------------------------------- */

struct catalog {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	struct catalog_options options;

	/* The catalog's thread. */
	struct catalog_later laters;
	struct task kick;
	bool kicked;
	struct index_entry *newest, *oldest; /* by last use */
	size_t index_bytes;
	uint64_t indexed_series;
	struct sweep *sweep;
	bool closing;
	catalog_closed *closed;
	void *closed_owner;

	_Atomic size_t busy; /* entered, not yet left */

	/* Shared, under the lock. The table of indexes is changed by the catalog's thread only,
	 * which therefore reads it without. */
	pthread_mutex_t lock;
	struct index_entry *indexes[INDEX_BUCKETS];
	size_t index_count;
	size_t fresh_bytes; /* of all indexes */
	struct buf note_text;
	struct tenant *tenants[TENANT_BUCKETS];
	size_t tenant_count;
	struct hash_set stored_names;
	struct store_read *spare_reads[READS_SPARE_MAX];
	size_t spare_count;
};

static inline void later_list_init(struct catalog_later *head)
{
	head->next = head->prev = head;
}

static inline void later_append(struct catalog_later *head, struct catalog_later *later)
{
	ASSERT(!later->next);
	*later = (struct catalog_later){.next = head, .prev = head->prev, .run = later->run};
	later->prev->next = later;
	head->prev = later;
}

static inline void later_remove(struct catalog_later *later)
{
	if (!later->next)
		return;
	later->next->prev = later->prev;
	later->prev->next = later->next;
	later->next = later->prev = NULL;
}

/* The first of the list, out of it; NULL: the list is empty. */
static inline struct catalog_later *later_pop(struct catalog_later *head)
{
	struct catalog_later *first = head->next;
	if (first == head)
		return NULL;
	later_remove(first);
	return first;
}

static inline void later_move_all(struct catalog_later *from, struct catalog_later *to)
{
	struct catalog_later *later;
	while ((later = later_pop(from)))
		later_append(to, later);
}

/* Runs it on the catalog's thread, from the executor. */
void later_do(struct catalog *catalog, struct catalog_later *later,
	      void (*run)(struct catalog_later *later));

/* Around whatever completes on the executor: the catalog is freed by the last to leave after
 * catalog_close. Nothing of it may be touched after leaving. */
void catalog_enter(struct catalog *catalog);
void catalog_leave(struct catalog *catalog);

/* A read whose completion comes on the catalog's thread. */
struct catalog_ask {
	uint32_t magic;
	struct catalog *catalog;
	void (*done)(void *owner, int err);
	void *owner;
	struct store_read *read; /* requests and results */
	bool in_flight, dropped;
};

struct catalog_ask *ask_new(struct catalog *catalog, void (*done)(void *owner, int err),
			    void *owner);
/* Forgets the last requests and results and adds a request that goes on at `token`; NULL: begins.
 */
struct store_request *catalog_ask_again(struct catalog_ask *ask, enum store_op op,
					const struct store_token *token);
int ask_submit(struct catalog_ask *ask) MUST_CHECK;
/* Frees it, now or when the store has let go of it: `done` comes no more. NULL is allowed. */
void ask_release(struct catalog_ask *ask);

#endif
