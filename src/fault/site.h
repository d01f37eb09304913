/* What all of faults works on. Filled in by whoever starts it; read only after that. */
#ifndef FAULT_SITE_H
#define FAULT_SITE_H

#include "base/clock.h"
#include "fault/day.h"
#include "fault/mask.h"
#include "store/store.h"

struct fault_site {
	struct store *store;
	struct clock *clock;
	struct slice holder; /* of this process' session */
	int64_t started_us;  /* a stamp that was taken before this process wrote anything */
	uint64_t digest_key;
	struct fault_masks masks;
	struct fault_day_limits limits;
	/* By how much clocks of processes may differ, and how long a write may take: what is
	 * acknowledged later has failed. */
	int64_t skew_max_ms, write_max_ms;
	/* Of a tenant's messages so many are told in an hour, 0: all; and how long each is kept. */
	uint64_t messages_max;
	int64_t messages_keep_ms;
	/* 0: the preset; less is for tests. */
	size_t slice_arrivals; /* of one read of a writer */
	size_t write_bytes;    /* of one write of the book */
};

#endif
