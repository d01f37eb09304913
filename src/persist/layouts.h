/* Private: what a worker remembers of the devices whose counters it keeps.
 *
 * Messages of one OIDSet may have all its OIDs, or one each as esmond's: those without a common OID
 * have layouts beside each other. No series is in two of one part, so that its newest value stands
 * in one place.
 *
 * A layout belongs to one part of the polls of one OIDSet at one device. Its places are those of
 * the poll's values, so that nothing is looked up by name while the names stay as they are. */
#ifndef PERSIST_LAYOUTS_H
#define PERSIST_LAYOUTS_H

#include "inventory/inventory.h"
#include "model/poll.h"

/* What a column's values are made. */
enum column_use {
	COLUMN_COUNTER, /* whole numbers that count up: u64 */
	COLUMN_GAUGE,   /* any number */
	COLUMN_TEXT,    /* only texts, which are kept beside the numbers */
	COLUMN_UNKNOWN, /* neither the OIDSet nor its companions have that OID, or it is there twice
			 */
};

struct place {
	uint64_t handle; /* 0: not opened */
	int64_t ts_ms;   /* of the newest value that was accepted; INT64_MIN: none is known */
	struct value value;
};

/* A device and the name that its series of an OIDSet are stored under: what rates are made of at
 * once. Lives as long as any of its layouts. */
struct source {
	struct source *next;           /* in its bucket */
	struct source *before, *after; /* in the ring of all */
	uint64_t hash;
	struct slice device;         /* a copy */
	const struct oidset *oidset; /* under whose name they are stored */
	struct layout *layouts;
	int64_t due_ms; /* monotonic: when its next rates are made */
	/* Of the values accepted since then; INT64_MIN: none. Those in a write that is not yet
	 * durable are apart. */
	int64_t newest_ms, writing_ms;
};

struct layout {
	struct layout *next;          /* in its bucket */
	struct layout *older, *newer; /* by use */
	struct source *source;
	struct layout *sibling; /* of the same source */
	uint64_t hash, turn;
	struct slice device, names; /* copies */
	const struct oidset *oidset;
	uint32_t part;
	size_t row_count, column_count;
	enum column_use *columns;
	const struct oid_def **oids; /* by column; NULL: COLUMN_UNKNOWN */
	struct place *places;        /* [row * column_count + column] */
	uint64_t *row_ids;           /* rate_row_id; 0: the row has no series */
	bool *refused;               /* by row: the catalog did not take it */
	int64_t ask_again_ms;        /* when refused rows are asked for again; 0: none is */
};

struct layouts {
	struct layout **buckets; /* by hash; their count is a power of two */
	size_t bucket_count, count;
	size_t places, places_max;
	uint64_t turn;
	struct layout ring; /* its `older` is the one used last */
	struct source **source_buckets;
	size_t source_bucket_count, source_count;
	struct source sources; /* ring: of its neighbours only */
};

void layouts_init(struct layouts *layouts, size_t places_max);
void layouts_release(struct layouts *layouts);

/* What is used from now on stays at least until the next turn. */
void layouts_turn(struct layouts *layouts);
/* The layout of polls with these very names, now the one used last; NULL: none. */
struct layout *layouts_find(struct layouts *layouts, const struct poll *poll);
/* Whether a layout was used in this turn that layouts_add would put another in the place of. */
bool layouts_occupied(const struct layouts *layouts, const struct poll *poll,
		      const struct oidset *oidset, const struct poll_names *names);
/* A new one, its places empty, in place of those that it has OIDs in common with. The least used
 * ones of earlier turns go while there are more places than places_max. */
struct layout *layouts_add(struct layouts *layouts, const struct poll *poll,
			   const struct oidset *oidset, const struct poll_names *names);
void layouts_remove(struct layouts *layouts, struct layout *layout);
/* NULL: it has no layout. */
struct source *layouts_source(const struct layouts *layouts, struct slice device,
			      struct slice set_name);
void layouts_clear(struct layouts *layouts);

#endif
