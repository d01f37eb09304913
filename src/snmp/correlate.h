/* From what a walk of an OIDSet gave to the poll that is stored: every row gets the path that its
 * correlator makes of its index (doc/polling.md has the table).
 *
 *  - Rows come in the order of their indices, so that polls of an unchanged device have the same
 *    names, byte for byte. The row without a path holds the scalars.
 *  - Each value has the time of its own reply: a row of counters whose values came in several
 *    replies is several rows with the same path, each with some of the values.
 *  - No two things share a path. Rows that would are told apart by their indices: `name#index`,
 *    each of them, for as long as there are several.
 *  - What has no name at all, though its table has a row for it, is called `#index`.
 *
 * Versioned rows (interfaces, SAPs, LSPs, outlets) have their dotted index as path, and SAPs and
 * LSPs after it what the index says in words. */
#ifndef SNMP_CORRELATE_H
#define SNMP_CORRELATE_H

#include "base/base.h"
#include "model/poll.h"
#include "snmp/correlate_names.h"
#include "snmp/correlate_set.h"

/* The names of the interfaces, for correlators that need them. */
struct correlate_naming {
	const struct if_names *before; /* read before the values; NULL: they were not */
	const struct if_names *after;  /* hold after the values; may be the same */
	/* The device vouches that `after` held while the values were read, too. */
	bool steady;
};

/* One message of the poll. 0, or an error that ends it. */
typedef int correlate_emit_fn(void *owner, struct slice message);

struct correlate_output {
	struct poll_builder *builder; /* scratch */
	/* Whose columns the builder has from before; NULL: nobody's. */
	const struct correlate_plan *built;
	struct buf *message; /* scratch, of POLL_BYTES_MAX */
	/* For what is not needed when it has returned: the caller empties it. NULL: the set's own,
	 * which is colder, if there are many. */
	struct arena *scratch;
	correlate_emit_fn *emit;
	void *owner;
	size_t rows, values; /* given, for counters */
};

/* `naming` may be NULL for correlators that need none. The set's notes say what was left out. */
int correlate(struct correlate_set *set, struct slice device, const struct correlate_naming *naming,
	      struct correlate_output *output, struct errbuf *e) MUST_CHECK;

/* ---- For correlate_path.c ------------------------------------------------------------------- */

struct correlate_path {
	size_t count;
	struct slice parts[POLL_PARTS_MAX];
};

/* The path of a row. ERR_NOT_FOUND: it is not stored (noted, where it is not on purpose);
 * ERR_LIMIT: the set's arena is full. */
int correlate_path(struct correlate_set *set, const struct correlate_naming *naming, size_t row,
		   struct correlate_path *path) MUST_CHECK;
/* Appends `#` and the dotted index to the last part, or makes them the path. */
int correlate_path_by_index(struct correlate_set *set, size_t row,
			    struct correlate_path *path) MUST_CHECK;

#endif
