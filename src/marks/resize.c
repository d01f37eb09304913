#include "marks/resize.h"

#include "base/exec.h"
#include "base/mem.h"
#include "marks/store.h"

struct resize {
	int64_t from_ms, to_ms, now_ms;
	struct task_queue queue;
	struct marks *marks;
	struct marks_listing *listing;
	struct marks_reading *reading;
	struct mark_slot
		*slots; /* all that had marks at first: those that are made are not resized */
	size_t slot_count;
};

static int resize_list_slots(struct resize *r)
{
	bool more = true;
	int err = marks_listing_begin(r->listing, &r->queue, r->now_ms);
	while (!err && more) {
		size_t count;
		const struct mark_slot *page = marks_listing_page(r->listing, &count, &more);
		r->slots = mem_resize_array(r->slots, r->slot_count + count + 1, sizeof(*page));
		if (count)
			memcpy(r->slots + r->slot_count, page, count * sizeof(*page));
		r->slot_count += count;
		if (more)
			err = marks_listing_next(r->listing, &r->queue, r->now_ms);
	}
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
	int err = marks_mark_wait(r->marks, &r->queue, r->now_ms, touches, count);
	mem_free(touches);
	return err;
}

/* New marks are durable before the old ones go; those that stand for a new slot as well stay. */
static int resize_part(struct resize *r, struct mark_slot old)
{
	size_t count;
	bool more;
	struct mark *marks = marks_reading_marks(r->reading, &count, &more);
	int64_t end_s = old.slot_s + r->from_ms / 1000;
	int64_t at_s = slot_begin_s(old.slot_s * 1000, r->to_ms);
	bool stays = at_s == old.slot_s;
	int err = 0;
	for (; at_s < end_s && !err; at_s += r->to_ms / 1000) {
		if (at_s != old.slot_s)
			err = resize_mark_slot(r, (struct mark_slot){at_s, old.partition}, marks,
					       count);
	}
	for (size_t i = 0; i < count; i++)
		marks[i].finished = true;
	if (!err && !stays)
		err = marks_reading_finish(r->reading, &r->queue);
	return err;
}

static int resize_slot(struct resize *r, struct mark_slot old)
{
	size_t count;
	bool more = true;
	int err = marks_reading_begin(r->reading, &r->queue, &old, 1, r->now_ms);
	while (!err && more) {
		err = resize_part(r, old);
		(void)marks_reading_marks(r->reading, &count, &more);
		if (!err && more)
			err = marks_reading_next(r->reading, &r->queue, r->now_ms);
	}
	return err;
}

int marks_resize(struct store *store, int64_t from_slot_ms, int64_t to_slot_ms, int64_t now_ms,
		 struct slice writer)
{
	struct resize r = {.from_ms = from_slot_ms, .to_ms = to_slot_ms, .now_ms = now_ms};
	r.marks = marks_store_open(&(struct marks_store_options){.store = store, .writer = writer});
	task_queue_init(&r.queue);
	r.listing = marks_listing_new(r.marks);
	r.reading = marks_reading_new(r.marks);
	int err = resize_list_slots(&r);
	for (size_t i = 0; i < r.slot_count && !err; i++)
		err = resize_slot(&r, r.slots[i]);
	marks_reading_free(r.reading);
	marks_listing_free(r.listing);
	marks_close(r.marks);
	mem_free(r.slots);
	task_queue_release(&r.queue);
	return err;
}
