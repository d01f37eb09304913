#include "fault/quota.h"

#include "base/put.h"

enum { QUOTA_VERSION = 1 };

static const int64_t quota_span_ms[FAULT_SPANS] = {
	[FAULT_MINUTE] = 60000, [FAULT_HOUR] = 3600000, [FAULT_DAY] = 86400000};

static bool quota_is_of(const struct fault_quota *quota, enum fault_span span, int64_t now_ms)
{
	int64_t span_ms = quota_span_ms[span];
	return floor_div(quota->at_ms, span_ms) == floor_div(now_ms, span_ms);
}

static uint64_t quota_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int64_t quota_span_end_ms(enum fault_span span, int64_t at_ms)
{
	return floor_to(at_ms, quota_span_ms[span]) + quota_span_ms[span];
}

/* `own` is of the spans of now_ms then. */
static struct fault_quota quota_all(struct fault_quota *own, const struct fault_quota *others,
				    int64_t now_ms)
{
	struct fault_quota all = {.at_ms = now_ms};
	fault_quota_add(&all, own);
	*own = all;
	fault_quota_add(&all, others);
	return all;
}

int64_t fault_quota_take(struct fault_quota *own, const struct fault_quota *others,
			 const struct fault_quota_limits *limits, int64_t now_ms,
			 enum fault_span *full)
{
	int64_t wait_ms = 0;
	struct fault_quota all = quota_all(own, others, now_ms);
	for (int s = 0; s < FAULT_SPANS; s++) {
		int64_t span_wait_ms = quota_span_end_ms(s, now_ms) - now_ms;
		if (limits->most[s] && all.used[s] >= limits->most[s] && span_wait_ms >= wait_ms) {
			wait_ms = span_wait_ms;
			*full = s;
		}
	}
	if (wait_ms)
		return wait_ms;
	own->used[FAULT_MINUTE] = quota_sum(own->used[FAULT_MINUTE], 1);
	own->used[FAULT_HOUR] = quota_sum(own->used[FAULT_HOUR], 1);
	return 0;
}

int64_t fault_quota_take_bytes(struct fault_quota *own, const struct fault_quota *others,
			       const struct fault_quota_limits *limits, int64_t now_ms,
			       uint64_t bytes)
{
	struct fault_quota all = quota_all(own, others, now_ms);
	if (limits->most[FAULT_DAY] && all.used[FAULT_DAY] >= limits->most[FAULT_DAY])
		return quota_span_end_ms(FAULT_DAY, now_ms) - now_ms;
	own->used[FAULT_DAY] = quota_sum(own->used[FAULT_DAY], bytes);
	return 0;
}

void fault_quota_add(struct fault_quota *sum, const struct fault_quota *more)
{
	for (int s = 0; s < FAULT_SPANS; s++) {
		if (quota_is_of(more, s, sum->at_ms))
			sum->used[s] = quota_sum(sum->used[s], more->used[s]);
	}
}

int64_t fault_quota_end_ms(const struct fault_quota_limits *limits, int64_t at_ms)
{
	int64_t end_ms = INT64_MIN;
	for (int s = 0; s < FAULT_SPANS; s++) {
		if (limits->most[s])
			end_ms = larger_of(end_ms, quota_span_end_ms(s, at_ms));
	}
	return end_ms;
}

void fault_quota_encode(const struct fault_quota *quota, struct buf *out)
{
	buf_append_char(out, QUOTA_VERSION);
	buf_append(out, &quota->at_ms, 8);
	for (int s = 0; s < FAULT_SPANS; s++)
		buf_put_varint(out, quota->used[s]);
}

int fault_quota_decode(struct slice bytes, struct fault_quota *quota)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	if (!c.bad && version != QUOTA_VERSION)
		return ERR_VERSION;
	quota->at_ms = (int64_t)cursor_u64(&c);
	for (int s = 0; s < FAULT_SPANS; s++)
		quota->used[s] = cursor_varint(&c);
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}
