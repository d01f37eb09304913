#include "rollup/pending.h"

#include "rollup/partition.h"

/* LISTS the rows, page by page ----> READS the slots, some partitions at a time, part by part */
struct found {
	struct rollup_pending_slot slot;
	struct rollup_partitions in;
};

struct rollup_pending {
	struct rollup_pending_options options;
	struct task begin;
	struct rollup_listing *listing;
	struct rollup_reading *reading;
	struct found *found; /* ascending by time */
	size_t count;
	bool cut, cancelled;
	size_t at;          /* of found: that is read */
	uint32_t partition; /* of it, the first that is not */
	uint64_t marks;     /* that were read */
	struct rollup_pending_slot *slots;
};

static void run_begin(struct task *task);
static void on_listed(void *owner, int err);
static void on_read(void *owner, int err);

struct rollup_pending *rollup_pending_start(const struct rollup_pending_options *options)
{
	struct rollup_pending *p = mem_zalloc(sizeof(*p));
	ASSERT(options->slots_max >= 1 && options->slots_max <= ROLLUP_PENDING_SLOTS_MAX);
	p->options = *options;
	p->found = mem_alloc_array(options->slots_max, sizeof(*p->found));
	p->slots = mem_alloc_array(options->slots_max, sizeof(*p->slots));
	p->listing = rollup_listing_new(options->track, options->executor, on_listed, p);
	p->reading = rollup_reading_new(options->track, options->executor, on_read, p);
	p->begin.run = run_begin;
	options->executor->post(options->executor, &p->begin);
	return p;
}

void rollup_pending_free(struct rollup_pending *p)
{
	rollup_listing_free(p->listing);
	rollup_reading_free(p->reading);
	mem_free(p->found);
	mem_free(p->slots);
	mem_free(p);
}

void rollup_pending_cancel(struct rollup_pending *p)
{
	p->cancelled = true;
}

const struct rollup_pending_slot *rollup_pending_slots(const struct rollup_pending *p,
						       size_t *count, bool *cut)
{
	*count = p->count;
	*cut = p->cut;
	return p->slots;
}

static void end(struct rollup_pending *p, int err)
{
	for (size_t i = 0; i < p->count; i++)
		p->slots[i] = p->found[i].slot;
	p->options.done(p->options.owner, err);
}

/* ---- Which slots there are ------------------------------------------------------------------- */

/* Where the slot stands or would. */
static size_t place_of(const struct rollup_pending *p, int64_t slot_s)
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
static struct found *enter(struct rollup_pending *p, size_t at, int64_t slot_s)
{
	if (p->count == p->options.slots_max) {
		p->cut = true;
		p->count -= at < p->count;
	}
	if (at == p->options.slots_max)
		return NULL;
	memmove(&p->found[at + 1], &p->found[at], (p->count - at) * sizeof(*p->found));
	p->found[at] = (struct found){.slot.slot_s = slot_s};
	p->count++;
	return &p->found[at];
}

static void take_row(struct rollup_pending *p, const struct rollup_slot *row)
{
	size_t at = place_of(p, row->slot_s);
	bool there = at < p->count && p->found[at].slot.slot_s == row->slot_s;
	struct found *found = there ? &p->found[at] : enter(p, at, row->slot_s);
	/* A row may be given twice. */
	if (!found || row->partition >= ROLLUP_PARTITIONS_MAX ||
	    rollup_partitions_has(&found->in, row->partition))
		return;
	rollup_partitions_add(&found->in, row->partition);
	found->slot.partitions++;
}

/* ---- What they hold -------------------------------------------------------------------------- */

/* The next partitions of the slot at hand, as many as one reading takes. */
static size_t take_partitions(struct rollup_pending *p, struct rollup_slot *to)
{
	const struct found *found = &p->found[p->at];
	size_t n = 0;
	for (; p->partition < ROLLUP_PARTITIONS_MAX && n < ROLLUP_READING_MAX; p->partition++) {
		if (rollup_partitions_has(&found->in, p->partition))
			to[n++] = (struct rollup_slot){found->slot.slot_s, p->partition};
	}
	return n;
}

static size_t find_next(struct rollup_pending *p, struct rollup_slot *to)
{
	for (; p->at < p->count; p->at++, p->partition = 0) {
		size_t n = take_partitions(p, to);
		if (n)
			return n;
		p->found[p->at].slot.counted = true;
	}
	return 0;
}

static void read_next(struct rollup_pending *p)
{
	struct rollup_slot slots[ROLLUP_READING_MAX];
	size_t n = find_next(p, slots);
	int err = p->cancelled ? ERR_CANCELLED : 0;
	if (err || !n || p->marks >= p->options.marks_max) {
		end(p, err);
		return;
	}
	err = rollup_reading_begin(p->reading, slots, n, clock_wall_ms(p->options.clock));
	if (err)
		end(p, err);
}

static void take_mark(struct rollup_pending *p, struct rollup_pending_slot *slot,
		      const struct rollup_mark *mark, int64_t now_ms)
{
	int64_t at_ms = rollup_ready_ms(slot->slot_s, mark->touched_ms, p->options.slot_ms,
					p->options.quiet_ms, now_ms);
	slot->series++;
	if (at_ms <= now_ms && (!slot->ready++ || at_ms < slot->since_ms))
		slot->since_ms = at_ms;
	if (at_ms > slot->ready_ms)
		slot->ready_ms = at_ms;
}

static void on_read(void *owner, int err)
{
	struct rollup_pending *p = owner;
	int64_t now_ms = clock_wall_ms(p->options.clock);
	size_t count = 0;
	bool more = false;
	if (!err && p->cancelled)
		err = ERR_CANCELLED;
	if (err) {
		end(p, err);
		return;
	}
	const struct rollup_mark *marks = rollup_reading_marks(p->reading, &count, &more);
	for (size_t i = 0; i < count; i++)
		take_mark(p, &p->found[p->at].slot, &marks[i], now_ms);
	p->found[p->at].slot.unread += rollup_reading_unread(p->reading);
	p->marks += count;
	if (!more) {
		read_next(p);
	} else if (p->marks >= p->options.marks_max) {
		end(p, 0);
	} else {
		err = rollup_reading_next(p->reading, now_ms);
		if (err)
			end(p, err);
	}
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void on_listed(void *owner, int err)
{
	struct rollup_pending *p = owner;
	size_t count = 0;
	bool more = false;
	if (!err && p->cancelled)
		err = ERR_CANCELLED;
	if (err) {
		end(p, err);
		return;
	}
	const struct rollup_slot *rows = rollup_listing_page(p->listing, &count, &more);
	for (size_t i = 0; i < count; i++)
		take_row(p, &rows[i]);
	if (!more) {
		read_next(p);
		return;
	}
	err = rollup_listing_next(p->listing, clock_wall_ms(p->options.clock));
	if (err)
		end(p, err);
}

static void run_begin(struct task *task)
{
	struct rollup_pending *p = CONTAINER_OF(task, struct rollup_pending, begin);
	int err = rollup_listing_begin(p->listing, clock_wall_ms(p->options.clock));
	if (err)
		end(p, err);
}
