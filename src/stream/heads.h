/* Reading what is known of blocks without reading them. For threads that may wait. */
#ifndef STREAM_HEADS_H
#define STREAM_HEADS_H

#include "stream/known.h"

/* Gives the heads of one kind to `each`, in the order of the ends of their blocks: of the blocks of
 * a stream that end in the ranges of `sealed`. Between these ranges others may be given, too. Stops
 * at the first error of `each`. ERR_DAMAGED; or the store's error, with a sentence. */
int chunk_heads_each(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, enum chunk_head_kind kind,
		     const struct offsets *sealed,
		     int (*each)(const struct chunk_place *place, struct slice value, void *owner),
		     void *owner, struct errbuf *e) MUST_CHECK;
/* The same of the blocks that end at an offset, which is not 0. There is one, or none; two owners
 * that did not know of each other may have made two. */
int chunk_heads_at(const struct stream_site *site, struct task_queue *queue,
		   const struct stream_id *id, enum chunk_head_kind kind, uint64_t end,
		   int (*each)(const struct chunk_place *place, struct slice value, void *owner),
		   void *owner, struct errbuf *e) MUST_CHECK;

/* What goes to the line at an offset from those before it, where they are in a block that ends
 * there; nothing where there is no such block, or one of which nothing is known, also because its
 * head cannot be read. Errors as above. */
int chunk_carry_read(const struct stream_site *site, struct task_queue *queue,
		     const struct stream_id *id, const struct offsets *sealed, uint64_t offset,
		     struct line_carry *carry, struct errbuf *e) MUST_CHECK;

#endif
