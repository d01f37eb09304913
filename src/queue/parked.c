#include "queue/parked.h"

#include "base/hash.h"
#include "base/stats.h"

enum { FULL_LINES_A_MINUTE = 1 };

void queue_parked_init(struct queue_parked *parked)
{
	*parked = (struct queue_parked){.lines = {.lines_max = FULL_LINES_A_MINUTE}};
}

void queue_parked_release(struct queue_parked *parked)
{
	stat_add(STAT_queue_parked, -(int64_t)parked->messages);
	hash_set_release(&parked->reasons);
}

void queue_parked_add(struct queue_parked *parked, uint64_t bytes)
{
	parked->messages++;
	parked->bytes += bytes;
	stat_add(STAT_queue_parked, 1);
}

bool queue_parked_is_news(struct queue_parked *parked, const char *reason)
{
	struct hash128 hash = hash128(reason, strlen(reason), 0);
	return parked->reasons.table.count < PARKED_REASONS_MAX &&
	       hash_set_add(&parked->reasons, hash, PARKED_REASONS_MAX);
}

bool queue_parked_refused(struct queue_parked *parked, int64_t now_ms)
{
	uint64_t left_out;
	parked->refused++;
	stat_add(STAT_queue_unparked, 1);
	return log_rate_take(&parked->lines, now_ms, &left_out);
}
