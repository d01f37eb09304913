#include "snmp/poller_schedule.h"

#include "base/grow.h"
#include "base/hash.h"
#include "base/mem.h"

void schedule_init(struct schedule *schedule)
{
	*schedule = (struct schedule){0};
}

void schedule_release(struct schedule *schedule)
{
	mem_free(schedule->heap);
	*schedule = (struct schedule){0};
}

int64_t schedule_phase(struct slice device, struct slice oidset, int64_t interval_ms)
{
	uint64_t hash = hash64(device.data, device.len, 0);
	hash = hash64(oidset.data, oidset.len, hash);
	int64_t phase_ms = (int64_t)(hash % (uint64_t)interval_ms);
	int64_t step_ms = interval_ms / SCHEDULE_STEPS_MIN;
	step_ms = step_ms < SCHEDULE_STEP_MAX_MS ? step_ms : SCHEDULE_STEP_MAX_MS;
	return step_ms ? phase_ms - phase_ms % step_ms : phase_ms;
}

int64_t schedule_slot_after(const struct schedule_entry *entry, int64_t now_ms)
{
	return floor_to(now_ms - entry->phase_ms, entry->interval_ms) + entry->phase_ms +
	       entry->interval_ms;
}

/* ---- The heap -------------------------------------------------------------------------------- */

static void put_at(struct schedule *schedule, size_t place, struct schedule_entry *entry)
{
	schedule->heap[place] = (struct schedule_place){entry->due_ms, entry};
	entry->place = place;
}

static void move_to(struct schedule *schedule, size_t place, size_t from)
{
	schedule->heap[place] = schedule->heap[from];
	schedule->heap[place].entry->place = place;
}

static void move_up(struct schedule *schedule, struct schedule_entry *entry)
{
	size_t at = entry->place;
	while (at > 0 && schedule->heap[(at - 1) / 2].due_ms > entry->due_ms) {
		move_to(schedule, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
	put_at(schedule, at, entry);
}

static void move_down(struct schedule *schedule, struct schedule_entry *entry)
{
	size_t at = entry->place;
	for (;;) {
		size_t child = at * 2 + 1;
		if (child >= schedule->count)
			break;
		if (child + 1 < schedule->count &&
		    schedule->heap[child + 1].due_ms < schedule->heap[child].due_ms)
			child++;
		if (schedule->heap[child].due_ms >= entry->due_ms)
			break;
		move_to(schedule, at, child);
		at = child;
	}
	put_at(schedule, at, entry);
}

/* ---- Entries --------------------------------------------------------------------------------- */

void schedule_add(struct schedule *schedule, struct schedule_entry *entry, int64_t now_ms)
{
	ASSERT(entry->interval_ms > 0 && entry->phase_ms >= 0 &&
	       entry->phase_ms < entry->interval_ms);
	GROW(schedule->heap, schedule->cap, schedule->count + 1);
	entry->due_ms = schedule_slot_after(entry, now_ms);
	put_at(schedule, schedule->count++, entry);
	move_up(schedule, entry);
}

void schedule_remove(struct schedule *schedule, struct schedule_entry *entry)
{
	ASSERT(entry->place < schedule->count && schedule->heap[entry->place].entry == entry);
	struct schedule_entry *last = schedule->heap[--schedule->count].entry;
	if (last == entry)
		return;
	put_at(schedule, entry->place, last);
	move_up(schedule, last);
	move_down(schedule, last);
}

void schedule_hurry(struct schedule *schedule, struct schedule_entry *entry, int64_t now_ms)
{
	if (entry->due_ms <= now_ms)
		return;
	entry->due_ms = now_ms;
	move_up(schedule, entry);
}

struct schedule_entry *schedule_next_due(struct schedule *schedule, int64_t now_ms, int64_t *missed)
{
	*missed = 0;
	if (schedule_next_ms(schedule) > now_ms)
		return NULL;
	struct schedule_entry *entry = schedule->heap[0].entry;
	*missed = (now_ms - entry->due_ms) / entry->interval_ms;
	entry->due_ms = schedule_slot_after(entry, now_ms);
	move_down(schedule, entry);
	return entry;
}

int64_t schedule_next_ms(const struct schedule *schedule)
{
	return schedule->count ? schedule->heap[0].due_ms : INT64_MAX;
}

void schedule_restart(struct schedule *schedule, int64_t now_ms)
{
	for (size_t i = 0; i < schedule->count; i++) {
		struct schedule_place *place = &schedule->heap[i];
		place->due_ms = place->entry->due_ms = schedule_slot_after(place->entry, now_ms);
	}
	for (size_t i = schedule->count; i-- > 0;)
		move_down(schedule, schedule->heap[i].entry);
}
