/* Who a sample belongs to: tenant, metric and tags; and the text form of the last two, the
 * series-set of document C: `metric,k=v,k=v` with keys in byte order. A `,` `=` or `\` inside a
 * name is written with a `\` before it, so ordinary names look as in the document. */
#ifndef MODEL_SERIES_H
#define MODEL_SERIES_H

#include "base/base.h"

struct arena;
struct buf;

/* Limits that hold on every store. The catalog's configured limits lie at or below them. */
enum {
	TENANT_MAX_BYTES = 64,
	METRIC_MAX_BYTES = 256,
	TAGS_MAX = 64,
	TAG_KEY_MAX_BYTES = 256,
	TAG_VALUE_MAX_BYTES = 1024,
	TAGS_TEXT_MAX_BYTES = 3000, /* the escaped text of all tags of one series */
};

struct tag {
	struct slice key, value;
};

/* Keys strictly ascending by bytes; neither key nor value empty. */
struct tags {
	const struct tag *list;
	size_t count;
};

struct series {
	struct slice tenant, metric;
	struct tags tags;
};

/* 1-64 of A-Za-z0-9_.- */
bool tenant_valid(struct slice tenant);

/* Sorts in place; ERR_INVALID with a sentence for an empty or doubled key, an empty value, a
 * control character, invalid UTF-8 or a name over its limit. */
int tags_sort_and_check(struct tag *list, size_t count, struct errbuf *e) MUST_CHECK;
/* The same, and after an error *fault is which of the sorted list it was, or `count` if it was all
 * of them together. Equal keys stay in their order. */
int tags_sort_and_find_fault(struct tag *list, size_t count, size_t *fault,
			     struct errbuf *e) MUST_CHECK;
int metric_check(struct slice metric, struct errbuf *e) MUST_CHECK;

/* `k=v,k=v`, escaped; without tags nothing. ERR_LIMIT beyond the buffer's maximum. */
int tags_encode(struct tags tags, struct buf *out);
/* `metric,k=v,...`; `metric` alone without tags. */
int series_set_encode(struct slice metric, struct tags tags, struct buf *out);

/* A series-set's text in two parts: series of the same tags can share theirs. */
struct series_set {
	struct slice metric; /* escaped */
	struct slice tags;   /* nothing, or a comma and after it what tags_encode writes */
};

/* Of any text: up to the first comma that has no backslash before it, and the rest. */
struct series_set series_set_split(struct slice text);
bool series_set_equal(struct series_set a, struct series_set b);
/* The text. ERR_LIMIT beyond the buffer's maximum. */
int series_set_append(struct series_set set, struct buf *out);

/* The inverse; slices point into `arena`. ERR_INVALID for text that no encoder wrote. */
int tags_decode(struct slice text, struct arena *arena, struct tags *tags) MUST_CHECK;
int series_set_decode(struct series_set set, struct arena *arena, struct slice *metric,
		      struct tags *tags) MUST_CHECK;

/* The value of a key, or a NULL slice. */
struct slice tags_find(struct tags tags, struct slice key);

#endif
