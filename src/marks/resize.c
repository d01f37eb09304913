#include "marks/resize.h"

#include "base/exec.h"
#include "base/mem.h"
#include "marks/store.h"

struct resize {
	int64_t from_ms, to_ms, now_ms;
	struct task_queue *queue;
	struct marks *marks;
	/* All slots that had marks at first: marks that are made are not resized. */
	struct mark_slot *slots;
	size_t slot_count;
};

static int resize_list_slots(struct resize *r)
{
	struct marks_listing listing = {.marks = r->marks};
	int err = 0;
	while (!err && !listing.over) {
		err = marks_list(&listing, r->queue, r->now_ms);
		r->slots = mem_resize_array(r->slots, r->slot_count + listing.count + 1,
					    sizeof(*r->slots));
		if (listing.count)
			memcpy(r->slots + r->slot_count, listing.slots,
			       listing.count * sizeof(*r->slots));
		r->slot_count += listing.count;
	}
	marks_listing_release(&listing);
	return err;
}

/* Marks of one new slot for all that a part of an old one has. */
static int resize_mark_slot(struct resize *r, struct mark_slot slot, const struct mark *marks,
			    size_t count)
{
	struct mark_touch *touches = mem_alloc_array(count + 1, sizeof(*touches));
	for (size_t i = 0; i < count; i++)
		touches[i] = (struct mark_touch){.slot = slot,
						 .tenant = marks[i].tenant,
						 .series_set = marks[i].series_set,
						 .deleted = marks[i].deleted};
	mark_touches_sort(touches, count);
	int err = marks_mark_wait(r->marks, r->queue, r->now_ms, touches, count);
	mem_free(touches);
	return err;
}

/* New marks are durable before the old ones go; those that stand for a new slot as well stay. */
static int resize_part(struct resize *r, struct mark_slot old, struct marks_reading *reading)
{
	int64_t end_s = old.slot_s + r->from_ms / 1000;
	int64_t at_s = slot_begin_s(old.slot_s * 1000, r->to_ms);
	bool stays = at_s == old.slot_s;
	int err = 0;
	for (; at_s < end_s && !err; at_s += r->to_ms / 1000) {
		if (at_s != old.slot_s)
			err = resize_mark_slot(r, (struct mark_slot){at_s, old.partition},
					       reading->part, reading->count);
	}
	for (size_t i = 0; i < reading->count; i++)
		reading->part[i].finished = true;
	if (!err && !stays)
		err = marks_finish(reading, r->queue);
	return err;
}

static int resize_slot(struct resize *r, struct mark_slot old)
{
	struct marks_reading reading = {.marks = r->marks, .slots = &old, .slot_count = 1};
	int err = 0;
	while (!err && !reading.over) {
		err = marks_read(&reading, r->queue, r->now_ms);
		err = err ? err : resize_part(r, old, &reading);
	}
	marks_reading_release(&reading);
	return err;
}

/* Nobody works on marks meanwhile, so none of them comes too late. */
int marks_resize(struct store *store, struct task_queue *queue, struct clock *clock,
		 int64_t from_slot_ms, int64_t to_slot_ms, int64_t now_ms, struct slice writer)
{
	struct resize r = {
		.from_ms = from_slot_ms, .to_ms = to_slot_ms, .now_ms = now_ms, .queue = queue};
	r.marks = marks_store_open(&(struct marks_store_options){
		.store = store, .writer = writer, .clock = clock, .late_ms = INT64_MAX});
	int err = resize_list_slots(&r);
	for (size_t i = 0; i < r.slot_count && !err; i++)
		err = resize_slot(&r, r.slots[i]);
	marks_close(r.marks);
	mem_free(r.slots);
	return err;
}
