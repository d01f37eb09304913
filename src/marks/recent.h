/* Recent touches: what a process remembers of its own touches, so that it has to make few.
 *
 * A slot that has not ended needs one touch: whoever rolls up waits for the slot's end and for the
 * quiet time after it. In a slot that has ended a touch may be left out for a fifth of the quiet
 * time after the last touch. A sample whose touch was left out is handed to the store within the
 * rest of the quiet time, less the difference of clocks (recent_touches_write_max_ms), or not at
 * all. So it is handed over before anybody believes the series to be quiet, and whoever reads raw
 * samples has first had a write of its own made durable after it.
 *
 * A touch is remembered when it is durable, not before. The caller keeps it as a number by series:
 * in a slot that has not ended, the number of the slot; in a slot that has ended, the number of the
 * slot in this span. A span is such a fifth of the quiet time. A caller who writes to several slots
 * at once has one number for all of them, so touches of slots that have ended stand in a table of a
 * fixed size as well, which forgets. When the clock is set back by more than a span, all touches
 * are forgotten.
 *
 * One thread. */
#ifndef MARKS_RECENT_H
#define MARKS_RECENT_H

#include "base/base.h"

enum { RECENT_SPAN_SLOTS = 1 << 11 };

struct recent_touches {
	int64_t slot_ms, quiet_ms;
	int64_t newest_ms; /* that the clock has shown */
	uint32_t set_back; /* how often the clock was */
	uint32_t span;     /* how many have begun */
	int64_t span_from_ms, span_to_ms;
	int64_t *span_slots;    /* by a slot's place in the span: begin of the slot in s, and 1 */
	int64_t from_ms, to_ms; /* the slot of the last look, */
	int64_t number_to_ms;   /* its number, and until when it has that */
	uint32_t number;
	struct recent_late *late;
};

void recent_touches_init(struct recent_touches *touches, int64_t slot_ms, int64_t quiet_ms);
void recent_touches_release(struct recent_touches *touches);

/* Forgets all touches: they were lost. */
void recent_touches_forget(struct recent_touches *touches);

/* Tells what the clock shows. To be called before the functions below whenever time has passed. */
void recent_touches_at(struct recent_touches *touches, int64_t now_ms);

/* Whether the series needs no touch for a sample at ts_ms: `known` is what recent_touches_remember
 * gave for it last, 0 nothing; `series` is a hash of all that it stands for. */
bool recent_touches_has(struct recent_touches *touches, uint64_t series, uint32_t known,
			int64_t ts_ms, int64_t now_ms);
/* The same for the slot of the last look: mostly it is that one. */
static inline bool recent_touches_has_again(const struct recent_touches *touches, uint32_t known,
					    int64_t ts_ms, int64_t now_ms)
{
	return LIKELY(ts_ms >= touches->from_ms && ts_ms < touches->to_ms &&
		      now_ms < touches->number_to_ms && known == touches->number);
}

/* A touch that is durable, made at touched_ms. Returns what the caller keeps for the series from
 * now on instead of `known`; that itself if it says more. */
uint32_t recent_touches_remember(struct recent_touches *touches, uint64_t series, uint32_t known,
				 int64_t slot_s, int64_t touched_ms);

/* How much less than this has to pass between a look and the moment at which a sample whose touch
 * was left out is handed to the store: what is handed over later may be read too late. */
int64_t recent_touches_write_max_ms(int64_t quiet_ms, int64_t skew_max_ms);

/* ERR_INVALID with a sentence if the quiet time is too short for writes that take write_max_ms on
 * machines whose clocks differ by skew_max_ms. */
int quiet_time_check(int64_t quiet_ms, int64_t write_max_ms, int64_t skew_max_ms,
		     struct errbuf *e) MUST_CHECK;

#endif
