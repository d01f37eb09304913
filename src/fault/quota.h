/* How much a tenant may send: requests in a minute and in an hour, bytes in a day. Each span begins
 * with the first request after the last span has ended. Every process counts for itself, from zero
 * when it starts. Pure. */
#ifndef FAULT_QUOTA_H
#define FAULT_QUOTA_H

#include "base/base.h"

enum fault_span { FAULT_MINUTE, FAULT_HOUR, FAULT_DAY, FAULT_SPANS };

/* 0: any number. Of a minute and an hour requests, of a day bytes. */
struct fault_quota_limits {
	uint64_t most[FAULT_SPANS];
};

/* Zeros at first. Times are monotonic. */
struct fault_quota {
	struct {
		int64_t until_ms; /* it ends then */
		uint64_t used;
	} spans[FAULT_SPANS];
};

/* Takes one request. 0; or the ms until one may be sent again, at least 1, and nothing is taken. */
int64_t fault_quota_take(struct fault_quota *quota, const struct fault_quota_limits *limits,
			 int64_t now_ms) MUST_CHECK;
/* What the request had: what is too much counts against those that follow. */
void fault_quota_add_bytes(struct fault_quota *quota, uint64_t bytes);

#endif
