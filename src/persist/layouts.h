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

/* The newest value that was accepted of a place. */
struct newest {
	int64_t ts_ms; /* INT64_MIN: none is known */
	struct value value;
};

/* The same of a text, which lies beside the numbers and has an order of its own. */
struct newest_text {
	int64_t ts_ms; /* INT64_MIN: none is stored */
	uint64_t hash; /* of its JSON */
};

struct layout_row {
	uint64_t id;           /* rate_row_id; 0: the row has no series */
	uint64_t path;         /* a hash */
	uint64_t handles_base; /* of a row with no series UINT64_MAX */
	int64_t ts_ms;
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
	struct slice device; /* a copy */
	const struct oidset *oidset;
	uint32_t part;
	size_t row_count, column_count;
	enum column_use *columns;
	const struct oid_def **oids; /* by column; NULL: COLUMN_UNKNOWN */
	uint64_t *most;              /* likewise, the greatest number that it takes as it is */
	struct layout_row *rows;
	/* By place, [row * column_count + column]: looked at with the functions of layout.c. There
	 * are millions of them, so what the places of a row nearly always have in common is kept
	 * once: the time of their newest values, and all of their handles but the lowest byte. */
	uint64_t *bits;    /* of newest values; owns what types and offsets point to */
	uint8_t *types;    /* VALUE_NONE: no newest value is known */
	uint8_t *offsets;  /* from handles_base; PLACE_CLOSED: not opened */
	uint64_t *handles; /* NULL, or instead of offsets */
	int64_t *ts_ms;    /* NULL, or instead of the rows' */
	/* Of the places that had a text since this process began, few or none: an open hash table.
	 */
	struct text_slot *texts;
	size_t text_count, text_room; /* the room is a power of two, or 0 */
	bool *refused;                /* by row: the catalog did not take it */
	int64_t ask_again_ms;         /* when refused rows are asked for again; 0: none is */
	/* By row, the first one of its path, whose places all of them have; NULL: no path stands
	 * twice. */
	size_t *roots;
};

enum { PLACE_CLOSED = UINT8_MAX };

struct layouts {
	struct layout **buckets; /* by hash; their count is a power of two */
	size_t bucket_count, count;
	size_t places, places_max;
	uint64_t turn;
	struct layout ring; /* its `older` is the one used last */
	struct source **source_buckets;
	size_t source_bucket_count, source_count;
	struct source sources; /* ring: of its neighbours only */
	/* Whoever passes over the ring now and then: the next one. &sources: that pass is over. */
	struct source *pass;
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

/* ---- Places (layout.c) ----------------------------------------------------------------------- */

/* Memory for the places of so many rows and columns, all without a series. */
void layout_make_places(struct layout *layout);
void layout_free_places(struct layout *layout);

/* The row that has the places of this one. */
static inline size_t layout_root(const struct layout *layout, size_t row)
{
	return LIKELY(!layout->roots) ? row : layout->roots[row];
}

static inline size_t layout_place(const struct layout *layout, size_t row, size_t column)
{
	return layout_root(layout, row) * layout->column_count + column;
}

static inline bool layout_is_open(const struct layout *layout, size_t row, size_t column)
{
	return layout->offsets[layout_place(layout, row, column)] != PLACE_CLOSED;
}

/* 0: not opened. */
static inline uint64_t layout_handle(const struct layout *layout, size_t row, size_t column)
{
	size_t place = layout_place(layout, row, column);
	if (layout->offsets[place] == PLACE_CLOSED)
		return 0;
	return layout->handles ? layout->handles[place]
			       : layout->rows[layout_root(layout, row)].handles_base +
					 layout->offsets[place];
}

void layout_open(struct layout *layout, size_t row, size_t column, uint64_t handle);

static inline struct newest layout_newest(const struct layout *layout, size_t row, size_t column)
{
	size_t place = layout_place(layout, row, column);
	enum value_type type = (enum value_type)layout->types[place];
	if (type == VALUE_NONE)
		return (struct newest){.ts_ms = INT64_MIN};
	int64_t ts_ms =
		layout->ts_ms ? layout->ts_ms[place] : layout->rows[layout_root(layout, row)].ts_ms;
	return (struct newest){ts_ms, {layout->bits[place], type}};
}

/* False: nobody has looked what is stored of it. */
bool layout_newest_text(const struct layout *layout, size_t row, size_t column,
			struct newest_text *newest);
void layout_keep_text(struct layout *layout, size_t row, size_t column, struct newest_text newest);

/* Newest values, of one time, of so many columns of a row, ascending. */
void layout_keep(struct layout *layout, size_t row, int64_t ts_ms, const uint16_t *columns,
		 size_t count, const struct value *values);

#endif
