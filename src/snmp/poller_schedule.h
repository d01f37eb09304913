/* When what is polled. Each entry has a place of its own within its interval, by a stable hash:
 * polls are spread evenly, and neither a restart nor other entries move it. Slots are multiples of
 * the interval since 1970 plus that place, so they follow the wall clock.
 *
 * A binary heap by the next slot; no clock of its own; one thread. */
#ifndef SNMP_POLLER_SCHEDULE_H
#define SNMP_POLLER_SCHEDULE_H

#include "base/base.h"

enum {
	/* Places lie that far apart, so that requests are sent and replies read several at a time.
	 */
	SCHEDULE_STEP_MAX_MS = 200,
	SCHEDULE_STEPS_MIN = 10, /* of an interval */
};

/* Embedded in what is polled. */
struct schedule_entry {
	int64_t interval_ms, phase_ms; /* 0 <= phase < interval */
	int64_t due_ms;                /* the next slot */
	size_t place;                  /* in the heap; private */
};

/* The time stands here, too: entries are far apart in memory. */
struct schedule_place {
	int64_t due_ms;
	struct schedule_entry *entry;
};

struct schedule {
	struct schedule_place *heap;
	size_t count, cap;
};

void schedule_init(struct schedule *schedule);
void schedule_release(struct schedule *schedule); /* the entries are their owners' */

/* Where in the interval this device's OIDSet has its place. */
int64_t schedule_phase(struct slice device, struct slice oidset, int64_t interval_ms);
/* The first slot after `now_ms`. */
int64_t schedule_slot_after(const struct schedule_entry *entry, int64_t now_ms);

/* With interval and phase set; its first turn is the next slot. */
void schedule_add(struct schedule *schedule, struct schedule_entry *entry, int64_t now_ms);
void schedule_remove(struct schedule *schedule, struct schedule_entry *entry);

/* It is due now, and then in its next slot. */
void schedule_hurry(struct schedule *schedule, struct schedule_entry *entry, int64_t now_ms);

/* The entry that is due longest, moved on to its next slot; NULL: none is. `*missed`: slots that
 * have passed without a turn; where there are some, the clock jumped or the process stood still,
 * and it is better to wait for the next slot than to poll everything at once. */
struct schedule_entry *schedule_next_due(struct schedule *schedule, int64_t now_ms,
					 int64_t *missed);
/* When the next one is due; INT64_MAX: never. */
int64_t schedule_next_ms(const struct schedule *schedule);
/* The wall clock was set back: slots are found again. */
void schedule_restart(struct schedule *schedule, int64_t now_ms);

#endif
