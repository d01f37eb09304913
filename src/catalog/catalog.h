/* The catalog: which series exist, found by their names.
 *
 * The store holds the registry (store_series), metric_names and metric_info; the catalog adds what
 * is asked of them on the way in and out:
 *
 *  - opening: the handles of many groups of metrics in one asynchronous call, with the limits that
 *    keep an accident (a process id as a tag) from filling memory;
 *  - finding: the series of a metric that match tags, by an index in memory that is built at first
 *    use from the registry and kept up by every opening of this process, or, where other
 *    processes share the store, by its news;
 *  - listing: tenants, metric names, tag keys, tag values;
 *  - describing: kind, unit, description, home table, base frequency, aggregators, first and last
 *    seen;
 *  - sweeping: a series whose longest retention has passed leaves.
 *
 * Invariants. A registration whose catalog_open was done before a find begins, in whichever
 * process, is seen by it: an index is entered in the table before its first listing is submitted,
 * openings hand their new series to every index in the table, and the store lists every series
 * whose opening has completed. Where the store is shared the find asks for its news first. A limit
 * never hides what exists: over a limit groups are still resolved, only not registered.
 *
 * Threads. catalog_open_*, catalog_info_put and catalog_say may be called on any thread. Everything
 * else, and every callback except an opening's, belongs to the thread of the executor given to
 * catalog_new. Shared between threads, under one lock that is never held over a call to the store:
 * the tenants' counts and budgets, the cache of stored metric names, the list of new series of each
 * index. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "model/series.h"
#include "store/store.h"

struct catalog;

struct catalog_options {
	size_t tags_max;        /* of one series */
	size_t name_max_bytes;  /* metric and tag key */
	size_t value_max_bytes; /* tag value */
	/* 0 = no limit. Processes that share a store count for themselves: what the others register
	 * meanwhile may come on top. */
	uint64_t series_per_tenant_max;
	/* The limit of one tenant; a burst may use that of a whole minute; 0 = no limit. */
	uint64_t new_series_per_minute_max;
	size_t index_max_bytes;       /* all indexes together; beyond it the least used go */
	int64_t longest_retention_ms; /* of all tables; 0 = for ever, and no series leaves */
};

/* The model's limits, 10 million series a tenant, 6 million new ones a minute, 512 MB, for ever. */
struct catalog_options catalog_options_default(void);

struct catalog *catalog_new(struct store *store, struct clock *clock, struct executor *executor,
			    const struct catalog_options *options);

/* Ends what runs (indexes being built, a sweep), frees the catalog and calls `closed`. Finds,
 * lists and descriptions under way still call their `done`, mostly with ERR_CANCELLED. No opening
 * may be in flight, and no thread may begin one. */
typedef void catalog_closed(void *owner);
void catalog_close(struct catalog *catalog, catalog_closed *closed, void *owner);

struct catalog_ask;

/* Something to do later on the catalog's thread; can be taken back. The catalog's own. */
struct catalog_later {
	struct catalog_later *next, *prev; /* in a ring with its list's head; NULL: in no list */
	void (*run)(struct catalog_later *later);
};

/* ---- Opening ------------------------------------------------------------------------------- */

/* The metrics of one line: they share tenant and tags. Everything pointed to is the caller's and
 * stays until catalog_open_finish. */
struct catalog_group {
	struct slice tenant;         /* tenant_valid */
	struct tags tags;            /* as tags_sort_and_check leaves them */
	const struct slice *metrics; /* metric_check'ed, no two alike */
	size_t count;                /* 1 to STORE_GROUP_MAX */
	uint64_t *handles;           /* result, by metric; 0 where it has none */
	int err;                     /* result: 0 if every handle is there */
	const char *sentence; /* result: for a person; NULL if err is 0. Lives until finish */
};

struct catalog_open;
/* On the opening's executor, never from within catalog_open_start. Each group has its result. */
typedef void catalog_open_done(struct catalog_open *open);

/* Embedded in its owner; the first part is filled in by the caller, the rest zero. */
struct catalog_open {
	struct catalog *catalog;
	struct executor *executor;
	catalog_open_done *done;
	void *owner;
	struct catalog_group *groups;
	size_t count;
	bool find_only; /* register nothing: what does not exist has handle 0, err ERR_NOT_FOUND */

	size_t created; /* result: new series, all groups */

	/* the catalog's */
	uint32_t magic;
	struct catalog_round *round;
	struct task task;
	struct catalog_open *next;
};

/* ERR_BUSY when the store takes no more reads now: `done` is not called, finish must not be. Groups
 * fail one by one: ERR_LIMIT (a configured limit was reached; next to it perhaps also because
 * another opening is just registering the same series), ERR_BUSY, or the store's error. */
int catalog_open_start(struct catalog_open *open) MUST_CHECK;

/* After done, on any one thread: adds to `write` the rows of metric_names that are not known to be
 * stored yet. To be called before the first sample of these handles is appended to the same write
 * (or to an earlier one). ERR_LIMIT: the write is full. */
int catalog_open_add_names(struct catalog_open *open, struct store_write *write) MUST_CHECK;

/* Once after done, when the write that took the names is over: `write_err` 0 lets the catalog
 * remember that they are stored. Without such a write, pass ERR_CANCELLED. */
void catalog_open_finish(struct catalog_open *open, int write_err);

/* ---- Finding ------------------------------------------------------------------------------- */

enum {
	CATALOG_SELECTORS_MAX = 64,     /* of one find */
	CATALOG_ALTERNATIVES_MAX = 256, /* values of one selector */
};

/* One value of a tag: its pieces with any run of characters (even none) between each two. A single
 * piece is the value exactly; `h-*` has the pieces `h-` and ``. */
struct catalog_pattern {
	const struct slice *pieces;
	size_t piece_count;
};

/* The tag `key` exists and has one of these values. */
struct catalog_selector {
	struct slice key;
	const struct catalog_pattern *values;
	size_t value_count;
};

/* Reads `host=h-1`, `host=h-1|h-2`, `host=h-*`, and lists of them: after a comma, text with a `=`
 * is the next tag, text without one another value of the tag before it (`host=h-1,h-2,os=linux`).
 * A backslash takes away the meaning of the `,` `=` `|` `*` or backslash after it. Appends to
 * list[*count] (at most CATALOG_SELECTORS_MAX in all). ERR_INVALID with a sentence. */
int catalog_selectors_parse(struct slice text, struct arena *arena, struct catalog_selector *list,
			    size_t *count, struct errbuf *e) MUST_CHECK;

/* Whether a series with these tags is found by them; for who reads the registry by himself. */
bool catalog_selectors_match(const struct catalog_selector *list, size_t count, struct tags tags);

struct catalog_series {
	uint64_t handle;
	struct slice tags_text; /* as tags_encode writes them */
};

struct tag_search;
struct catalog_find;
/* `err` 0; ERR_LIMIT: more than series_max match; or the store's error. */
typedef void catalog_find_done(struct catalog_find *find, int err);

/* Embedded in its owner, as above. */
struct catalog_find {
	struct catalog *catalog;
	struct slice tenant, metric;
	struct catalog_selector *selectors; /* all must hold; none: every series of the metric */
	size_t selector_count;
	size_t series_max;
	const char *series_option; /* that sets it, for the sentence; NULL: none does */
	/* Not NULL: only series whose tags text is `from` or follows it, and of these the first
	 * series_max; that there are more is no error then. */
	struct slice from;
	catalog_find_done *done;
	void *owner;
	struct arena *arena; /* the caller's, for the result */

	struct catalog_series *series; /* result, by tags text ascending */
	size_t count;
	size_t metric_series; /* result: that the metric has, whichever match; 0: it does not exist
			       */
	struct errbuf error;

	/* the catalog's */
	struct catalog_later later;
	struct catalog_list *list; /* whose find this is, or NULL */
	struct tag_search *search; /* once the index is there; between two steps `later` waits */
	bool waited;
};

/* `done` is never called from within. A metric that does not exist has no series and no error. */
void catalog_find_start(struct catalog_find *find);
/* The find is dropped: `done` will not be called. Before `done` only. */
void catalog_find_cancel(struct catalog_find *find);

/* ---- Listing ------------------------------------------------------------------------------- */

enum catalog_listing {
	CATALOG_TENANTS,
	CATALOG_METRIC_NAMES, /* of a tenant */
	CATALOG_TAG_KEYS,     /* of a tenant and a metric */
	CATALOG_TAG_VALUES,   /* of a tenant, a metric and a tag key */
};

struct catalog_list;
typedef void catalog_list_done(struct catalog_list *list, int err);

struct catalog_list {
	struct catalog *catalog;
	enum catalog_listing what;
	struct slice tenant, metric, tag_key;
	struct slice prefix; /* only names that begin so; empty: all */
	struct slice from;   /* of metrics: only this name and those after it; NULL data: all */
	size_t limit;
	catalog_list_done *done;
	void *owner;
	struct arena *arena; /* the caller's, for the result */

	struct slice *names; /* result, ascending by bytes */
	size_t count;
	bool cut; /* there are more than `limit` */
	struct errbuf error;

	/* the catalog's */
	uint32_t magic;
	struct catalog_find find;
	struct catalog_later later;
	struct catalog_ask *ask;
	struct slice after_prefix;
	struct buf gathered; /* struct slice of each name so far */
	size_t checked;      /* of them, those that are known to have series */
	struct slice next;   /* where the next scan begins; NULL data: at the prefix */
	bool checking, at_end;
};

void catalog_list_start(struct catalog_list *list);
void catalog_list_cancel(struct catalog_list *list);

/* ---- Describing ---------------------------------------------------------------------------- */

enum catalog_kind { KIND_UNKNOWN, KIND_GAUGE, KIND_COUNTER, KIND_RATE };

/* "unknown", "gauge", "counter", "rate" */
const char *catalog_kind_text(enum catalog_kind kind);

/* The properties that writers set of a metric (table metric_info). */
struct catalog_info {
	enum catalog_kind kind;
	struct slice unit; /* as people write it: "bytes", "%"; empty: unknown, at most 64 bytes */
	enum table home;   /* where its samples are */
	int64_t base_frequency_ms; /* 0: irregular or unknown */
};

/* Adds the cells that say so to `write`. ERR_LIMIT: the write is full; ERR_INVALID: the unit. */
int catalog_info_put(struct store *store, struct store_write *write, struct slice tenant,
		     struct slice metric, const struct catalog_info *info) MUST_CHECK;

/* The properties that people set of a metric (table metric_info, too). Their kind and unit go
 * before those of writers, which stay beside them. */
enum catalog_saying { SAYING_KIND, SAYING_UNIT, SAYING_DESCRIPTION, CATALOG_SAYINGS };

/* "kind", "unit", "description" */
const char *catalog_saying_name(enum catalog_saying saying);

/* Adds the cell that says so to `write`; an empty text takes back what was said before. ERR_INVALID
 * with a sentence: there is no such kind, or the text is too long or has control characters.
 * ERR_LIMIT: the write is full. */
int catalog_say(struct store *store, struct store_write *write, struct slice tenant,
		struct slice metric, enum catalog_saying saying, struct slice text,
		struct errbuf *e) MUST_CHECK;

struct catalog_entry {
	struct catalog_series series;
	/* When it was registered, or its oldest sample that is kept, if that is older;
	 * STORE_TS_MIN: it is not there any more. */
	int64_t first_seen_ms;
	int64_t last_seen_ms; /* newest sample over the sample tables; STORE_TS_MIN: none */
};

struct catalog_describe;
typedef void catalog_describe_done(struct catalog_describe *describe, int err);

/* The info of a metric and when its series were first and last seen. */
struct catalog_describe {
	struct catalog *catalog;
	struct slice tenant, metric;
	const struct catalog_series *series; /* of this metric */
	size_t count;                        /* 0: only what there is of the metric itself */
	catalog_describe_done *done;
	void *owner;
	struct arena *arena; /* the caller's, for the result */

	struct catalog_info info;      /* result; home TABLE_DATA_RAW where nothing was said */
	struct slice description;      /* result; empty: nobody gave one */
	struct slice *aggregators;     /* result, ascending: "raw", and those of its roll-ups */
	size_t aggregator_count;       /* result */
	bool exists;                   /* result: the metric has series */
	struct catalog_entry *entries; /* result, `count` of them */
	struct errbuf error;

	/* the catalog's */
	uint32_t magic;
	struct catalog_later later;
	struct catalog_ask *ask;
	size_t described, batch;
};

void catalog_describe_start(struct catalog_describe *describe);
void catalog_describe_cancel(struct catalog_describe *describe);

/* ---- Upkeep -------------------------------------------------------------------------------- */

/* Looks through the registry in small slices for series without data and forgets those first seen
 * longer than the longest retention ago. Nothing happens where retention is for ever, or while the
 * last sweep still runs. To be called by a timer, about once an hour. */
void catalog_sweep(struct catalog *catalog);
/* For sweeps that begin from now on. */
void catalog_set_longest_retention(struct catalog *catalog, int64_t retention_ms);

/* Series of this metric were forgotten by others: what is known of them is out of date. */
void catalog_forgotten(struct catalog *catalog, struct slice tenant, struct slice metric);

/* For /metrics and tests. */
struct catalog_usage {
	size_t index_count, index_bytes;
	uint64_t indexed_series;
};
struct catalog_usage catalog_usage(const struct catalog *catalog);
bool catalog_sweeping(const struct catalog *catalog);

#endif
