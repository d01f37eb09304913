/* A derived cell that says of which checkpoint of a tenure it is, and holds the value before it, so
 * that a checkpoint that never became whole is as if it had not been (doc/format-faults.md, **The
 * book**). Pure. */
#ifndef FAULT_VERSIONED_H
#define FAULT_VERSIONED_H

#include "base/buf.h"

struct fault_version {
	uint64_t tenure, checkpoint;
};

static inline bool fault_version_equal(struct fault_version a, struct fault_version b)
{
	return a.tenure == b.tenure && a.checkpoint == b.checkpoint;
}

/* A value of len 0 is none. */
struct fault_versioned {
	struct fault_version version;
	struct slice value;
	bool has_before;
	struct fault_version before_version;
	struct slice before;
};

void fault_versioned_encode(const struct fault_versioned *cell, struct buf *out);
/* Points into the bytes, or where they are packed into `unpacked`. ERR_DAMAGED, ERR_VERSION. */
int fault_versioned_decode(struct slice bytes, struct buf *unpacked,
			   struct fault_versioned *cell) MUST_CHECK;
enum { FAULT_VERSIONED_MAX_BYTES = 3 << 20 }; /* unpacked: two values and more */

/* Which checkpoints are whole: of each tenure the last one, by tenure ascending. */
struct fault_tenures {
	struct fault_version *list;
	size_t count, room;
};
void fault_tenures_release(struct fault_tenures *tenures);
void fault_tenures_put(struct fault_tenures *tenures, struct fault_version last);
bool fault_tenures_have(const struct fault_tenures *tenures, struct fault_version version);

/* The value that holds by those that are whole, and its version. ERR_RETRY: the cell is of a later
 * tenure, or of so late a checkpoint, that the tenures have to be read again. A cell of which no
 * value is of a checkpoint that is whole has none. */
int fault_versioned_choose(const struct fault_versioned *cell, const struct fault_tenures *tenures,
			   struct slice *value, struct fault_version *version) MUST_CHECK;

#endif
