/* Shapes: a measurement and the names of its fields in the order in which lines bring them, with
 * the metrics that follow from them. Kept once, however many keys have it; whoever remembers a
 * shape holds a reference, and the last one frees it.
 *
 * Private to ingest/; the loop's thread. */
#ifndef INGEST_FIELD_NAMES_H
#define INGEST_FIELD_NAMES_H

#include "base/base.h"
#include "base/hash.h"
#include "wire/line.h"

struct field_names {
	struct hash128 key;       /* of the raw measurement and names */
	struct slice measurement; /* raw */
	struct line_names names;
	const struct slice *metrics; /* names.count of them */
	bool repeats;                /* a name stands twice: two of the metrics are one */
	size_t bytes;
	unsigned refs, cached; /* all references; those of the cache */
	struct field_sets *field_sets;
	struct field_names *next; /* in its bucket */
};

struct field_sets;

struct field_sets *field_sets_new(uint64_t seed);
void field_sets_free(struct field_sets *field_sets);

/* The shape of a line, with a reference for the caller (field_names_release). Makes one if there is
 * none. NULL: the metric of *field may not be stored, e says why. count: 1 to LINE_FIELDS_MAX. */
struct field_names *field_names_get(struct field_sets *field_sets, struct slice measurement,
				    const struct slice *names, size_t count, size_t *field,
				    struct errbuf *e) MUST_CHECK;
void field_names_hold(struct field_names *fields);
void field_names_release(struct field_names *fields);

/* The same for the cache; they return the bytes that the cache holds more, or less, by it: those of
 * the shape when it is the cache's first or last reference. */
size_t field_names_ref(struct field_names *fields);
size_t field_names_unref(struct field_names *fields);

size_t field_sets_count(const struct field_sets *field_sets);

#endif
