#include "fault/quota.h"

static const int64_t quota_span_ms[FAULT_SPANS] = {
	[FAULT_MINUTE] = 60000, [FAULT_HOUR] = 3600000, [FAULT_DAY] = 86400000};

/* The longest of those that are full. */
static int64_t quota_wait_ms(const struct fault_quota *quota,
			     const struct fault_quota_limits *limits, int64_t now_ms)
{
	int64_t wait_ms = 0;
	for (int s = 0; s < FAULT_SPANS; s++) {
		if (limits->most[s] && quota->spans[s].used >= limits->most[s])
			wait_ms = larger_of(wait_ms, quota->spans[s].until_ms - now_ms);
	}
	return wait_ms;
}

int64_t fault_quota_take(struct fault_quota *quota, const struct fault_quota_limits *limits,
			 int64_t now_ms)
{
	for (int s = 0; s < FAULT_SPANS; s++) {
		if (now_ms < quota->spans[s].until_ms)
			continue;
		quota->spans[s].until_ms = now_ms + quota_span_ms[s];
		quota->spans[s].used = 0;
	}
	int64_t wait_ms = quota_wait_ms(quota, limits, now_ms);
	if (wait_ms)
		return wait_ms;
	quota->spans[FAULT_MINUTE].used++;
	quota->spans[FAULT_HOUR].used++;
	return 0;
}

void fault_quota_add_bytes(struct fault_quota *quota, uint64_t bytes)
{
	if (__builtin_add_overflow(quota->spans[FAULT_DAY].used, bytes,
				   &quota->spans[FAULT_DAY].used))
		quota->spans[FAULT_DAY].used = UINT64_MAX;
}
