/* The cell that remembers how long raw samples were kept, as numbers in decimal with blanks between
 * them; lengthened.h says which. */
#ifndef RETENTION_LENGTHENED_CELL_H
#define RETENTION_LENGTHENED_CELL_H

#include "retention/retention.h"
#include "wire/number.h"

enum {
	LENGTHENED_CELL_HEAD = 5, /* numbers before those of rules */
	LENGTHENED_CELL_NUMBERS_MAX = LENGTHENED_CELL_HEAD + 2 * RETENTION_RULES_MAX,
	LENGTHENED_CELL_MAX_BYTES = LENGTHENED_CELL_NUMBERS_MAX * (NUMBER_PRINT_MAX_BYTES + 1),
};

struct lengthened_cell {
	int64_t preset_ms;
	int64_t until_ms, kept_ms;
	bool preset;    /* it was raised */
	uint64_t rules; /* likewise, bit by place in: */
	size_t count;
	struct {
		uint64_t hash;
		int64_t ms;
	} list[RETENTION_RULES_MAX];
};

/* ERR_DAMAGED: it is none. */
int lengthened_cell_decode(struct slice text, struct lengthened_cell *kept) MUST_CHECK;
struct slice lengthened_cell_encode(const struct lengthened_cell *kept,
				    char to[LENGTHENED_CELL_MAX_BYTES]);

#endif
