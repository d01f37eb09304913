/* What all of streams works on. Filled in by whoever starts it; read only after that. */
#ifndef STREAM_SITE_H
#define STREAM_SITE_H

#include "base/clock.h"
#include "store/store.h"

struct stream_limits {
	uint64_t streams_max;    /* incarnations of streams that a tenant may have */
	uint64_t new_a_minute;   /* of these */
	uint64_t rate_bytes;     /* of a tenant in a second, as they were sent; 0: any number */
	uint64_t tail_max_bytes; /* of chunks that are not in blocks yet, as stored */
	uint64_t holes_max;      /* of an incarnation */
};

struct stream_site {
	struct store *store;
	struct clock *clock;
	struct stream_limits limits;
};

#endif
