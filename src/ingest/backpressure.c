#include "ingest/backpressure.h"

#include "base/stats.h"

/* A resumed sender is expected to bring so much, which is not counted yet. */
enum { RESUMED_BYTES = 256 << 10 };

void backpressure_init(struct backpressure *b)
{
	b->paused_last = &b->paused;
}

void backpressure_account(struct backpressure *b, struct backpressure_sender *sender, size_t bytes)
{
	b->bytes += bytes - sender->bytes;
	stat_add(STAT_ingest_in_flight_bytes, (int64_t)bytes - (int64_t)sender->bytes);
	sender->bytes = bytes;
}

bool backpressure_has_room(const struct backpressure *b, const struct backpressure_sender *sender)
{
	return b->bytes <= b->bytes_max && sender->bytes <= b->bytes_max / 4;
}

void backpressure_pause(struct backpressure *b, struct backpressure_sender *sender)
{
	ASSERT(!sender->is_paused);
	sender->is_paused = true;
	sender->paused_ms = clock_mono_ms(b->clock);
	*b->paused_last = sender;
	b->paused_last = &sender->next;
	stat_add(STAT_ingest_paused, 1);
}

void backpressure_unpause(struct backpressure *b, struct backpressure_sender *sender)
{
	struct backpressure_sender **at = &b->paused;
	if (!sender->is_paused)
		return;
	while (*at != sender)
		at = &(*at)->next;
	*at = sender->next;
	if (b->paused_last == &sender->next)
		b->paused_last = at;
	sender->next = NULL;
	sender->is_paused = false;
	stat_add(STAT_ingest_paused, -1);
}

void backpressure_resume(struct backpressure *b)
{
	struct backpressure_sender *sender = b->paused;
	size_t expected_bytes = b->bytes;
	while (sender && expected_bytes <= b->bytes_max) {
		if (!b->may_run(sender)) {
			sender = sender->next;
			continue;
		}
		backpressure_unpause(b, sender);
		expected_bytes += RESUMED_BYTES;
		b->resume(sender);
		sender = b->paused; /* resume may have changed the list */
	}
}

int64_t backpressure_waited_ms(const struct backpressure *b,
			       const struct backpressure_sender *sender)
{
	return clock_mono_ms(b->clock) - sender->paused_ms;
}

bool backpressure_turns_away(const struct backpressure *b)
{
	return b->paused && backpressure_waited_ms(b, b->paused) >= b->wait_max_ms / 2;
}
