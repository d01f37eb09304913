/* The series of one metric by their tags, in memory. Pure: no store, no threads, no I/O.
 *
 * Series have dense ids in the order of arrival. Each distinct pair of key and value is kept once,
 * as its escaped text, with the ids that have it: one id in place, a few as an ascending list,
 * many as a compressed bitmap (CRoaring). A series is its handle and the numbers of its pairs,
 * from which its tags text is put together again.
 *
 * Nothing is ever removed: when a series is forgotten, the index is thrown away and built again. */
#ifndef CATALOG_TAG_INDEX_H
#define CATALOG_TAG_INDEX_H

#include "catalog/catalog.h"

struct tag_index;

struct tag_index *tag_index_new(void);
/* One more owner; with the last the index is freed. */
struct tag_index *tag_index_acquire(struct tag_index *index);
void tag_index_release(struct tag_index *index);

/* `tags_text` as tags_encode writes it. A handle that is there already is passed over.
 * ERR_DAMAGED: the text is not of that form. ERR_LIMIT: 2^32 pairs or bytes. */
int tag_index_add(struct tag_index *index, uint64_t handle, struct slice tags_text) MUST_CHECK;

/* Compacts the bitmaps; worth it after many additions. */
void tag_index_optimize(struct tag_index *index);

size_t tag_index_series(const struct tag_index *index);
/* Memory held: after tag_index_optimize to a few percent, later at least that. */
size_t tag_index_bytes(const struct tag_index *index);

/* A search, in steps of about a millisecond, between which other work is done: patterns may be
 * many, and values millions. Series that are added meanwhile may be found or not. Owns the index,
 * too.
 *
 * A find puts the series that match all selectors into find->series (in its arena), sorted by tags
 * text. A find->list puts keys, or the values of list->tag_key, that begin with list->prefix,
 * unescaped, in the list's arena, in no order, appended to list->gathered as struct slice. */
struct tag_search;
struct tag_search *tag_search_new(struct tag_index *index, struct catalog_find *find);
/* True: it is over. *err with a sentence: ERR_LIMIT: more than find->series_max, or the arena is
 * full. */
bool tag_search_step(struct tag_search *search, int *err);
void tag_search_free(struct tag_search *search); /* NULL is allowed */

#endif
