/* Shapes: a measurement and the names of its fields in the order in which lines bring them, with
 * the metrics that follow from them. Kept once, however many keys have it; whoever remembers a
 * shape holds a reference, and the last one frees it.
 *
 * Private to ingest/; the loop's thread. */
#ifndef INGEST_SHAPE_H
#define INGEST_SHAPE_H

#include "base/base.h"
#include "base/hash.h"
#include "wire/line.h"

struct shape {
	struct hash128 key;       /* of the raw measurement and names */
	struct slice measurement; /* raw */
	struct line_names names;
	const struct slice *metrics; /* names.count of them */
	bool repeats;                /* a name stands twice: two of the metrics are one */
	size_t bytes;
	unsigned refs, cached; /* all references; those of the cache */
	struct shapes *shapes;
	struct shape *next; /* in its bucket */
};

struct shapes;

struct shapes *shapes_new(uint64_t seed);
void shapes_free(struct shapes *shapes);

/* The shape of a line, with a reference for the caller (shape_release). Makes one if there is none.
 * NULL: the metric of *field may not be stored, e says why. count: 1 to LINE_FIELDS_MAX. */
struct shape *shapes_get(struct shapes *shapes, struct slice measurement, const struct slice *names,
			 size_t count, size_t *field, struct errbuf *e) MUST_CHECK;
void shape_hold(struct shape *shape);
void shape_release(struct shape *shape);

/* The same for the cache; they return the bytes that the cache holds more, or less, by it: those of
 * the shape when it is the cache's first or last reference. */
size_t shape_ref(struct shape *shape);
size_t shape_unref(struct shape *shape);

size_t shapes_count(const struct shapes *shapes);

#endif
