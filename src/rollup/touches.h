/* What a process remembers of its own touches, so that few have to be made.
 *
 * Of a slot that has not ended one touch is enough: whoever rolls up waits until it has ended and
 * for the quiet time after that. Of one that has ended a touch may be left out for a fifth of the
 * quiet time after the last one. A sample whose touch was left out is handed to the store within
 * the rest of it, less what clocks may differ (rollup_write_max_ms), or not at all, so before
 * anybody believes the series to be quiet; and who reads raw data has first had a write of its own
 * made durable behind it.
 *
 * A touch is remembered when it is durable, not before. The first kind stands where the caller
 * keeps it (a number by series), the second kind in a table of a fixed size that forgets. When the
 * clock is set back by more than that fifth, all is forgotten: slots that had ended begin anew.
 *
 * One thread. */
#ifndef ROLLUP_TOUCHES_H
#define ROLLUP_TOUCHES_H

#include "base/base.h"

struct rollup_touches {
	int64_t slot_ms, quiet_ms;
	int64_t newest_ms;      /* that the clock has shown */
	uint32_t set_back;      /* how often the clock was */
	int64_t from_ms, to_ms; /* the slot of the last look, and its number */
	uint32_t number;
	struct rollup_late *late;
};

void rollup_touches_init(struct rollup_touches *touches, int64_t slot_ms, int64_t quiet_ms);
void rollup_touches_release(struct rollup_touches *touches);

/* What the clock shows; before what is below, whenever it may have moved on. */
void rollup_touches_at(struct rollup_touches *touches, int64_t now_ms);

/* Whether the series needs no touch for a sample at ts_ms: `known` is what rollup_touches_remember
 * gave for it last, 0 nothing; `series` is a hash of all that it stands for. */
bool rollup_touched(struct rollup_touches *touches, uint64_t series, uint32_t known, int64_t ts_ms,
		    int64_t now_ms);
/* The same for the slot of the last look, if it has not ended: mostly it is that one. */
static inline bool rollup_touched_again(const struct rollup_touches *touches, uint32_t known,
					int64_t ts_ms, int64_t now_ms)
{
	return LIKELY(ts_ms >= touches->from_ms && ts_ms < touches->to_ms &&
		      now_ms < touches->to_ms && known == touches->number);
}

/* A touch that is durable, made at touched_ms. Returns what the caller keeps for the series from
 * now on: `known` where the slot had ended by then. */
uint32_t rollup_touches_remember(struct rollup_touches *touches, uint64_t series, uint32_t known,
				 int64_t slot_s, int64_t touched_ms);

/* How much less than this has to pass between a look and the moment at which a sample whose touch
 * was left out is handed to the store: what is handed over later may be read too late. */
int64_t rollup_write_max_ms(int64_t quiet_ms, int64_t skew_max_ms);

/* ERR_INVALID with a sentence if the quiet time is too short for writes that take write_max_ms on
 * machines whose clocks differ by skew_max_ms. */
int rollup_quiet_check(int64_t quiet_ms, int64_t write_max_ms, int64_t skew_max_ms,
		       struct errbuf *e) MUST_CHECK;

#endif
