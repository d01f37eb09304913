#include "rollup/touches.h"

#include "base/mem.h"

enum {
	LATE_ENTRIES = 1 << 14,
	LEFT_OUT_PART = 5, /* of the quiet time a touch may be left out */
};

/* Of a slot that had ended. */
struct rollup_late {
	uint64_t series;
	int64_t slot_s, touched_ms;
};

void rollup_touches_init(struct rollup_touches *touches, int64_t slot_ms, int64_t quiet_ms)
{
	*touches = (struct rollup_touches){.slot_ms = slot_ms, .quiet_ms = quiet_ms};
	touches->late = mem_zalloc(LATE_ENTRIES * sizeof(*touches->late));
}

void rollup_touches_release(struct rollup_touches *touches)
{
	mem_free(touches->late);
	touches->late = NULL;
}

static struct rollup_late *late_of(const struct rollup_touches *touches, uint64_t series,
				   int64_t slot_s)
{
	uint64_t mixed = (series ^ (uint64_t)slot_s) * UINT64_C(0x9e3779b97f4a7c15);
	return &touches->late[mixed >> 50 & (LATE_ENTRIES - 1)];
}

/* Never 0; another one for each slot of some decades at least, and after the clock was set back. */
static uint32_t number_of(const struct rollup_touches *touches, int64_t slot_s)
{
	uint64_t slot = (uint64_t)slot_s / (uint64_t)(touches->slot_ms / 1000);
	return (uint32_t)(slot + touches->set_back * UINT64_C(0x9e3779b9)) | UINT32_C(1) << 31;
}

void rollup_touches_at(struct rollup_touches *touches, int64_t now_ms)
{
	if (now_ms >= touches->newest_ms) {
		touches->newest_ms = now_ms;
	} else if (touches->newest_ms - now_ms > touches->quiet_ms / LEFT_OUT_PART) {
		touches->newest_ms = now_ms;
		touches->set_back++;
		touches->to_ms = 0;
		memset(touches->late, 0, LATE_ENTRIES * sizeof(*touches->late));
	}
}

static void look_at(struct rollup_touches *touches, int64_t ts_ms)
{
	int64_t from_ms = ts_ms / touches->slot_ms * touches->slot_ms;
	if (from_ms == touches->from_ms && touches->to_ms)
		return;
	touches->from_ms = from_ms;
	touches->to_ms = from_ms + touches->slot_ms;
	touches->number = number_of(touches, from_ms / 1000);
}

bool rollup_touched(struct rollup_touches *touches, uint64_t series, uint32_t known, int64_t ts_ms,
		    int64_t now_ms)
{
	look_at(touches, ts_ms);
	if (now_ms < touches->to_ms)
		return known == touches->number;
	const struct rollup_late *late = late_of(touches, series, touches->from_ms / 1000);
	int64_t since_ms = now_ms - late->touched_ms;
	return late->series == series && late->slot_s == touches->from_ms / 1000 && since_ms >= 0 &&
	       since_ms <= touches->quiet_ms / LEFT_OUT_PART;
}

uint32_t rollup_touches_remember(struct rollup_touches *touches, uint64_t series, uint32_t known,
				 int64_t slot_s, int64_t touched_ms)
{
	/* One from before the clock was set back says nothing. */
	if (touched_ms > touches->newest_ms)
		return known;
	if (touched_ms < slot_s * 1000 + touches->slot_ms)
		return number_of(touches, slot_s);
	*late_of(touches, series, slot_s) = (struct rollup_late){series, slot_s, touched_ms};
	return known;
}

int64_t rollup_write_max_ms(int64_t quiet_ms, int64_t skew_max_ms)
{
	return quiet_ms - quiet_ms / LEFT_OUT_PART - skew_max_ms;
}

int rollup_quiet_check(int64_t quiet_ms, int64_t write_max_ms, int64_t skew_max_ms,
		       struct errbuf *e)
{
	int64_t least_ms = (write_max_ms + skew_max_ms) * LEFT_OUT_PART / (LEFT_OUT_PART - 1);
	if (quiet_ms >= least_ms)
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "%lld ms are too short: a write may take %lld ms and clocks may differ "
			  "by %lld ms, so %lld ms are the least",
			  (long long)quiet_ms, (long long)write_max_ms, (long long)skew_max_ms,
			  (long long)least_ms);
}
