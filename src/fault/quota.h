/* How much a tenant may send to all processes together: requests in a minute and in an hour, bytes
 * in a day. These spans are those of the wall clock in UTC: a minute begins when the seconds are 0.
 * A process whose clock is set to another span counts that span from zero.
 *
 * Each process judges by what it has taken itself and what it knows of the others. So a tenant can
 * exceed its limit by what all processes take of it during two exchanges
 * (fault_projects_exchange_quotas): one process writes in the first, another reads in the second.
 * At the end of a span it can exceed it for as long as their clocks differ.
 *
 * Pure, for any thread. Times are ms of the wall clock. */
#ifndef FAULT_QUOTA_H
#define FAULT_QUOTA_H

#include "base/buf.h"

enum fault_span { FAULT_MINUTE, FAULT_HOUR, FAULT_DAY, FAULT_SPANS };

/* 0: any number. Of a minute and an hour requests, of a day bytes. */
struct fault_quota_limits {
	uint64_t most[FAULT_SPANS];
};

/* What was taken in the spans that at_ms lies in. Zeros at first. */
struct fault_quota {
	int64_t at_ms;
	uint64_t used[FAULT_SPANS]; /* UINT64_MAX: that, or more */
};

/* Takes one request, and adds it to `own`, whose spans are those of now_ms then. 0; or the ms until
 * the end of the last span that is full, from 1 to a day, and nothing is taken: *full is that span
 * then. */
int64_t fault_quota_take(struct fault_quota *own, const struct fault_quota *others,
			 const struct fault_quota_limits *limits, int64_t now_ms,
			 enum fault_span *full) MUST_CHECK;
/* The same of the bytes that the request had, in whose day they are. What is more than the limit
 * counts against those that follow. */
int64_t fault_quota_take_bytes(struct fault_quota *own, const struct fault_quota *others,
			       const struct fault_quota_limits *limits, int64_t now_ms,
			       uint64_t bytes) MUST_CHECK;
/* Adds what was taken in those spans that are the sum's, too. */
void fault_quota_add(struct fault_quota *sum, const struct fault_quota *more);
/* When the longest span that is limited ends, of those that at_ms lies in. INT64_MIN: none is. */
int64_t fault_quota_end_ms(const struct fault_quota_limits *limits, int64_t at_ms);

/* A cell's value (doc/format-faults.md, **Quotas**). ERR_VERSION, ERR_DAMAGED. */
void fault_quota_encode(const struct fault_quota *quota, struct buf *out);
int fault_quota_decode(struct slice bytes, struct fault_quota *quota) MUST_CHECK;

#endif
