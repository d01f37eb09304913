#include "marks/recent.h"

#include "base/mem.h"
#include "wire/timetext.h"

enum {
	LATE_ENTRIES = 1 << 14,
	LEFT_OUT_PART = 5, /* of the quiet time a touch may be left out */
	NO_NUMBER = 1,     /* nobody is given it: the first span is 1 */
};

#define OPEN_BIT (UINT32_C(1) << 31) /* of the number of a slot that has not ended */

/* A touch of a slot that had ended. */
struct recent_late {
	uint64_t series;
	int64_t slot_s, touched_ms;
};

static int64_t recent_span_ms(const struct recent_touches *touches)
{
	return touches->quiet_ms / LEFT_OUT_PART;
}

static struct recent_late *recent_late_of(const struct recent_touches *touches, uint64_t series,
					  int64_t slot_s)
{
	uint64_t mixed = (series ^ (uint64_t)slot_s) * UINT64_C(0x9e3779b97f4a7c15);
	return &touches->late[mixed >> 50 & (LATE_ENTRIES - 1)];
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static uint64_t recent_slot_index(const struct recent_touches *touches, int64_t slot_s)
{
	return (uint64_t)slot_s / (uint64_t)(touches->slot_ms / 1000);
}

/* Of a slot that has not ended. Not NO_NUMBER; another one for each slot of some decades at least,
 * and after all was forgotten. */
static uint32_t recent_number_of(const struct recent_touches *touches, int64_t slot_s)
{
	uint64_t slot = recent_slot_index(touches, slot_s);
	return (uint32_t)(slot + touches->set_back * UINT64_C(0x9e3779b9)) | OPEN_BIT;
}

/* Of one that has ended, in this span. One that shares its place with an earlier one of the span
 * has none, nor have those of spans that cannot be counted any more. */
static uint32_t recent_span_number_of(const struct recent_touches *touches, int64_t slot_s)
{
	uint32_t place = recent_slot_index(touches, slot_s) % RECENT_SPAN_SLOTS;
	int64_t *owner = &touches->span_slots[place];
	if (!*owner)
		*owner = slot_s + 1;
	if (*owner != slot_s + 1 || touches->span >= OPEN_BIT / RECENT_SPAN_SLOTS)
		return NO_NUMBER;
	return touches->span * RECENT_SPAN_SLOTS + place;
}

/* ---- The clock ------------------------------------------------------------------------------- */

static void recent_begin_span(struct recent_touches *touches, int64_t now_ms)
{
	touches->span += touches->span < OPEN_BIT / RECENT_SPAN_SLOTS;
	touches->span_from_ms = now_ms;
	touches->span_to_ms = now_ms + recent_span_ms(touches);
	touches->number_to_ms = touches->to_ms = 0;
	memset(touches->span_slots, 0, RECENT_SPAN_SLOTS * sizeof(*touches->span_slots));
}

void recent_touches_init(struct recent_touches *touches, int64_t slot_ms, int64_t quiet_ms)
{
	*touches = (struct recent_touches){.slot_ms = slot_ms, .quiet_ms = quiet_ms};
	touches->late = mem_zalloc(LATE_ENTRIES * sizeof(*touches->late));
	touches->span_slots = mem_alloc_array(RECENT_SPAN_SLOTS, sizeof(*touches->span_slots));
	recent_begin_span(touches, 0);
}

void recent_touches_release(struct recent_touches *touches)
{
	mem_free(touches->late);
	mem_free(touches->span_slots);
	touches->late = NULL;
	touches->span_slots = NULL;
}

void recent_touches_forget(struct recent_touches *touches)
{
	touches->set_back++;
	memset(touches->late, 0, LATE_ENTRIES * sizeof(*touches->late));
	recent_begin_span(touches, touches->newest_ms);
}

void recent_touches_at(struct recent_touches *touches, int64_t now_ms)
{
	bool is_set_back = touches->newest_ms - now_ms > recent_span_ms(touches);
	if (is_set_back || now_ms > touches->newest_ms)
		touches->newest_ms = now_ms;
	if (is_set_back)
		recent_touches_forget(touches);
	else if (now_ms >= touches->span_to_ms)
		recent_begin_span(touches, now_ms);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void recent_look_at(struct recent_touches *touches, int64_t ts_ms, int64_t now_ms)
{
	int64_t from_ms = ts_ms / touches->slot_ms * touches->slot_ms;
	if (from_ms == touches->from_ms && now_ms < touches->number_to_ms)
		return;
	touches->from_ms = from_ms;
	touches->to_ms = from_ms + touches->slot_ms;
	bool ended = now_ms >= touches->to_ms;
	touches->number_to_ms = ended ? touches->span_to_ms : touches->to_ms;
	touches->number = ended ? recent_span_number_of(touches, from_ms / 1000)
				: recent_number_of(touches, from_ms / 1000);
}

bool recent_touches_has(struct recent_touches *touches, uint64_t series, uint32_t known,
			int64_t ts_ms, int64_t now_ms)
{
	recent_look_at(touches, ts_ms, now_ms);
	if (known == touches->number)
		return true;
	if (now_ms < touches->to_ms)
		return false;
	const struct recent_late *late = recent_late_of(touches, series, touches->from_ms / 1000);
	int64_t since_ms = now_ms - late->touched_ms;
	return late->series == series && late->slot_s == touches->from_ms / 1000 && since_ms >= 0 &&
	       since_ms <= recent_span_ms(touches);
}

/* ---- Remembering ----------------------------------------------------------------------------- */

/* One of the present is worth more: all that comes is of it. */
static uint32_t recent_number_of_ended(const struct recent_touches *touches, uint32_t known,
				       int64_t slot_s, int64_t touched_ms)
{
	int64_t present_s = touches->newest_ms / touches->slot_ms * touches->slot_ms / 1000;
	if (known == recent_number_of(touches, present_s) || touched_ms < touches->span_from_ms)
		return known;
	uint32_t number = recent_span_number_of(touches, slot_s);
	return number == NO_NUMBER ? known : number;
}

uint32_t recent_touches_remember(struct recent_touches *touches, uint64_t series, uint32_t known,
				 int64_t slot_s, int64_t touched_ms)
{
	/* One from before the clock was set back says nothing. */
	if (touched_ms > touches->newest_ms)
		return known;
	if (touched_ms < slot_s * 1000 + touches->slot_ms)
		return recent_number_of(touches, slot_s);
	*recent_late_of(touches, series, slot_s) = (struct recent_late){series, slot_s, touched_ms};
	return recent_number_of_ended(touches, known, slot_s, touched_ms);
}

int64_t recent_touches_write_max_ms(int64_t quiet_ms, int64_t skew_max_ms)
{
	return quiet_ms - quiet_ms / LEFT_OUT_PART - skew_max_ms;
}

int quiet_time_check(int64_t quiet_ms, int64_t write_max_ms, int64_t skew_max_ms, struct errbuf *e)
{
	int64_t least_ms = (write_max_ms + skew_max_ms) * LEFT_OUT_PART / (LEFT_OUT_PART - 1);
	if (quiet_ms >= least_ms)
		return 0;
	char quiet[DURATION_PRINT_MAX_BYTES], write[DURATION_PRINT_MAX_BYTES];
	char skew[DURATION_PRINT_MAX_BYTES], least[DURATION_PRINT_MAX_BYTES];
	return errbuf_set(e, ERR_INVALID,
			  "a quiet time of %s is too short: a write may take %s and clocks may "
			  "differ by %s, so %s is the least",
			  duration_print(quiet, quiet_ms), duration_print(write, write_max_ms),
			  duration_print(skew, skew_max_ms),
			  duration_print(least, (least_ms + 999) / 1000 * 1000));
}
