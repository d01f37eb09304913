/* The answer of a walk: a table of values by row (the index) and column, each with the time of its
 * reply.
 *
 * Agents send the rows of all columns side by side and in order, so a value is expected in the row
 * after the column's last one, and a new row after all others: nothing is looked up. A value
 * that comes otherwise is found by a hash of its index.
 *
 * Nothing that a device sends can make it grow without bound: rows, cells and bytes of texts have
 * their maxima, and what does not fit or does not make sense is left out, counted, and the first
 * of it described. One thread; reused from walk to walk. */
#ifndef SNMP_CORRELATE_SET_H
#define SNMP_CORRELATE_SET_H

#include "base/base.h"
#include "base/mem.h"
#include "model/poll.h"
#include "model/value.h"
#include "snmp/client.h"
#include "snmp/correlate_plan.h"
#include "wire/snmp.h"

enum {
	CORRELATE_ARENA_MAX_BYTES = 64 << 20, /* indices and texts of one walk */
	CORRELATE_REPLIES_MAX = 65535,
};

/* Why something that a device sent is not stored. */
enum correlate_trouble {
	TROUBLE_TYPE,    /* a value of a type that the OID cannot have */
	TROUBLE_DOUBLED, /* a second value for the same OID and index */
	TROUBLE_INDEX,   /* an index that does not fit its table */
	TROUBLE_LIMIT,   /* too many rows, too long a text */
	TROUBLE_UNNAMED, /* no name for a row */
	TROUBLE_RENAMED, /* the row had another name before or after */
	TROUBLE_SHARED,  /* stored, but under `name#index`: several rows have the name */
	TROUBLES
};

struct correlate_notes {
	uint32_t counts[TROUBLES];
	struct errbuf first; /* a sentence about the first one; empty: none */
};

enum cell_type {
	CELL_NONE = VALUE_NONE,
	CELL_F64 = VALUE_F64,
	CELL_I64 = VALUE_I64,
	CELL_U64 = VALUE_U64,
	CELL_TEXT,
};

struct correlate_cell {
	uint64_t bits; /* of a text its address */
	uint16_t len;  /* of a text */
	uint16_t reply;
	uint8_t type; /* enum cell_type */
};

struct correlate_set {
	const struct correlate_plan *plan;
	int64_t begun_ms; /* wall clock */
	struct arena arena;
	struct slice *indices;        /* by row */
	struct correlate_cell *cells; /* [row * plan->count + column] */
	size_t row_count, row_cap, cell_cap;
	bool sorted;                              /* rows are in the order of their indices */
	size_t last_row;                          /* of the value added last; SIZE_MAX: none */
	uint32_t next_row[CORRELATE_COLUMNS_MAX]; /* where a column's next value is expected */
	int64_t *reply_ms;
	size_t reply_count, reply_cap;
	uint32_t *slots; /* rows by hash, plus 1; made when first needed */
	size_t slot_count;
	struct correlate_notes notes;
	size_t name_near; /* of correlate_path: after the name that it found last */
	bool may_share;   /* correlate_path's: two of the paths that it made may be the same */
};

void correlate_set_init(struct correlate_set *set);
void correlate_set_release(struct correlate_set *set);

/* Empties it; `plan` is kept by reference. */
void correlate_set_begin(struct correlate_set *set, const struct correlate_plan *plan,
			 int64_t now_ms);
/* Values that are added next came at that time (wall clock). */
void correlate_set_reply(struct correlate_set *set, int64_t ts_ms);
/* `index`: what follows the column's OID. Values that say that there is none are passed over. */
void correlate_set_add(struct correlate_set *set, size_t column, struct slice index,
		       const struct snmp_value *value);
/* The same where the index is that of the value added last. */
void correlate_set_add_beside(struct correlate_set *set, size_t column, struct slice index,
			      const struct snmp_value *value);

/* A reply's cells will be added: what of the set that touches first is fetched. */
static inline void correlate_set_foresee(const struct correlate_set *set)
{
	__builtin_prefetch(set, 1);
	__builtin_prefetch(set->next_row, 1);
	__builtin_prefetch(&set->reply_ms, 1);
}

/* A reply's time and all its cells. */
void correlate_set_add_cells(struct correlate_set *set, const struct snmp_reply *reply);

/* The row with that index, or SIZE_MAX. */
size_t correlate_set_find(struct correlate_set *set, struct slice index);

static inline const struct correlate_cell *correlate_cell(const struct correlate_set *set,
							  size_t row, size_t column)
{
	return &set->cells[row * set->plan->count + column];
}

static inline int64_t correlate_cell_ms(const struct correlate_set *set,
					const struct correlate_cell *cell)
{
	return set->reply_ms[cell->reply];
}

static inline struct slice correlate_cell_text(const struct correlate_cell *cell)
{
	struct slice none = {NULL, 0};
	const char *text = (const char *)(uintptr_t)cell->bits;
	return cell->type == CELL_TEXT ? (struct slice){text, cell->len} : none;
}

/* The only value of a scalar: that of the first row that has one. NULL: none. */
const struct correlate_cell *correlate_set_scalar(const struct correlate_set *set, size_t column);

/* Row numbers in the order of their indices, in the arena; NULL: it is full. */
const uint32_t *correlate_set_order(const struct correlate_set *set,
				    struct arena *arena) MUST_CHECK;

/* Counts one of them; the sentence is kept if it is the first. */
void correlate_note(struct correlate_notes *notes, enum correlate_trouble trouble, const char *fmt,
		    ...) PRINTF_LIKE(3, 4);
/* `1.3`, for a sentence; a long one is cut and ends in `...`. */
const char *correlate_index_shown(struct slice index, char text[64]);

#endif
