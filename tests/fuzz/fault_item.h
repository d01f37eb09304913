/* What every report that a door gives for submitting has to be. */
#ifndef FUZZ_FAULT_ITEM_H
#define FUZZ_FAULT_ITEM_H

#include "ingest/oops.h"

enum { BODY_MAX_BYTES = 1 << 20 };

static inline void check_item(const struct fault_item *item)
{
	struct buf body;
	const struct fault_arrival arrival = {.dictionary = item->dictionary,
					      .body_bytes = item->body_bytes,
					      .packed = item->packed};
	buf_init(&body, BODY_MAX_BYTES);
	ASSERT(fault_id_valid(item->id));
	ASSERT(fault_body_unpack(&arrival, &body) == 0);
	ASSERT(body.len == item->body_bytes && body.len >= 2 && body.data[0] == '{');
	buf_release(&body);
}

#endif
