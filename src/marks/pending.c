#include "marks/pending.h"

#include "lease/partition.h"

struct pending_found {
	struct marks_pending_slot slot;
	struct partitions in;
};

struct pending_looking {
	const struct marks_pending_options *options;
	struct pending_found *found; /* ascending by time */
	size_t count;
	bool cut;
	uint64_t marks; /* that were read */
};

/* ---- Which slots there are ------------------------------------------------------------------- */

/* The place of the slot in the list, or where it would be. */
static size_t pending_place(const struct pending_looking *p, int64_t slot_s)
{
	size_t low = 0, high = p->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->found[middle].slot.slot_s < slot_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Room for a slot; the newest has to go where there is none. NULL: the newest is this one. One that
 * went cannot come back, since there are as many older ones. */
static struct pending_found *pending_enter(struct pending_looking *p, size_t at, int64_t slot_s)
{
	if (p->count == p->options->slots_max) {
		p->cut = true;
		p->count -= at < p->count;
	}
	if (at == p->options->slots_max)
		return NULL;
	memmove(&p->found[at + 1], &p->found[at], (p->count - at) * sizeof(*p->found));
	p->found[at] = (struct pending_found){.slot.slot_s = slot_s};
	p->count++;
	return &p->found[at];
}

static void pending_take_row(struct pending_looking *p, const struct mark_slot *row)
{
	size_t at = pending_place(p, row->slot_s);
	bool there = at < p->count && p->found[at].slot.slot_s == row->slot_s;
	struct pending_found *found = there ? &p->found[at] : pending_enter(p, at, row->slot_s);
	/* A row may be given twice. */
	if (!found || row->partition >= PARTITIONS_MAX ||
	    partitions_has(&found->in, row->partition))
		return;
	partitions_add(&found->in, row->partition);
	found->slot.partitions++;
}

static int pending_list_slots(struct pending_looking *p)
{
	const struct marks_pending_options *o = p->options;
	struct marks_listing listing = {.marks = o->marks};
	int err = 0;
	while (!err && !listing.over) {
		err = marks_list(&listing, o->queue, clock_wall_ms(o->clock));
		for (size_t i = 0; i < listing.count; i++)
			pending_take_row(p, &listing.slots[i]);
	}
	marks_listing_release(&listing);
	return err;
}

/* ---- What they hold -------------------------------------------------------------------------- */

static void pending_take_mark(const struct pending_looking *p, struct marks_pending_slot *slot,
			      const struct mark *mark, int64_t now_ms)
{
	int64_t at_ms = slot_ready_ms(slot->slot_s, mark->touched_ms, p->options->slot_ms,
				      p->options->quiet_ms, now_ms);
	slot->series++;
	if (at_ms <= now_ms && (!slot->ready++ || at_ms < slot->since_ms))
		slot->since_ms = at_ms;
	if (at_ms > slot->ready_ms)
		slot->ready_ms = at_ms;
}

static bool pending_is_enough(const struct pending_looking *p)
{
	return p->marks >= p->options->marks_max;
}

/* Marks of a slot in some partitions, part by part, until it is enough. */
static int pending_read(struct pending_looking *p, struct marks_pending_slot *slot,
			const struct mark_slot *in, size_t in_count)
{
	const struct marks_pending_options *o = p->options;
	struct marks_reading reading = {.marks = o->marks, .slots = in, .slot_count = in_count};
	int err = 0;
	while (!err && !reading.over && !pending_is_enough(p)) {
		err = marks_read(&reading, o->queue, clock_wall_ms(o->clock));
		int64_t now_ms = clock_wall_ms(o->clock);
		for (size_t i = 0; i < reading.count; i++)
			pending_take_mark(p, slot, &reading.part[i], now_ms);
		slot->unread += reading.unread;
		p->marks += reading.count;
	}
	slot->counted = !err && reading.over;
	marks_reading_release(&reading);
	return err;
}

/* The slot is counted if all of its partitions are read. */
static int pending_read_slot(struct pending_looking *p, struct pending_found *found)
{
	struct mark_slot in[MARKS_READING_MAX];
	uint32_t partition = 0;
	found->slot.counted = true;
	for (;;) {
		size_t n = 0;
		for (; partition < PARTITIONS_MAX && n < MARKS_READING_MAX; partition++) {
			if (partitions_has(&found->in, partition))
				in[n++] = (struct mark_slot){found->slot.slot_s, partition};
		}
		if (!n)
			return 0;
		found->slot.counted = false;
		if (pending_is_enough(p))
			return 0;
		int err = pending_read(p, &found->slot, in, n);
		if (err || !found->slot.counted)
			return err;
	}
}

int marks_pending_list(const struct marks_pending_options *options, struct marks_pending *pending)
{
	struct pending_looking p = {.options = options};
	ASSERT(options->slots_max >= 1 && options->slots_max <= MARKS_PENDING_SLOTS_MAX);
	p.found = mem_alloc_array(options->slots_max, sizeof(*p.found));
	int err = pending_list_slots(&p);
	for (size_t i = 0; i < p.count && !err && !pending_is_enough(&p); i++)
		err = pending_read_slot(&p, &p.found[i]);
	*pending = (struct marks_pending){
		.slots = mem_alloc_array(p.count + 1, sizeof(*pending->slots)),
		.count = p.count,
		.cut = p.cut};
	for (size_t i = 0; i < p.count; i++)
		pending->slots[i] = p.found[i].slot;
	mem_free(p.found);
	return err;
}

void marks_pending_release(struct marks_pending *pending)
{
	mem_free(pending->slots);
}
