/* Reading what is known of blocks without reading them. For threads that may wait. */
#ifndef STREAM_HEADS_H
#define STREAM_HEADS_H

#include "stream/known.h"

/* Gives the heads of one kind to `each`, of the blocks of a stream that end behind `from` and not
 * behind `to`, in the order of their ends. Stops at the first error of `each`. ERR_DAMAGED; or the
 * store's error, with a sentence. */
int chunk_heads_each(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, enum chunk_head_kind kind, uint64_t from,
		     uint64_t to,
		     int (*each)(const struct chunk_place *place, struct slice value, void *owner),
		     void *owner, struct errbuf *e) MUST_CHECK;

/* What goes to the line at an offset from those before it, where they are in a block that ends
 * there; nothing where there is no such block, or one of which nothing is known. */
int chunk_carry_read(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, const struct offsets *sealed, uint64_t offset,
		     struct line_carry *carry, struct errbuf *e) MUST_CHECK;

#endif
