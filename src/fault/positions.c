/* Which arrivals the book has, and which of several of one id is the report. Pure. */
#include "base/grow.h"
#include "fault/book_private.h"

void book_positions_clear(struct book_positions *positions)
{
	for (size_t i = 0; i < positions->writer_count; i++) {
		mem_free(positions->writers[i].holes);
		mem_free(positions->writers[i].holder);
	}
	for (size_t i = 0; i < positions->unlisted_count; i++)
		mem_free(positions->unlisted[i].id);
	positions->writer_count = positions->unlisted_count = 0;
}

void book_positions_release(struct book_positions *positions)
{
	book_positions_clear(positions);
	mem_free(positions->writers);
	mem_free(positions->unlisted);
	*positions = (struct book_positions){NULL};
}

void book_positions_copy(struct book_positions *to, const struct book_positions *from)
{
	*to = (struct book_positions){NULL};
	GROW(to->writers, to->writer_room, from->writer_count);
	for (size_t i = 0; i < from->writer_count; i++) {
		const struct book_writer *writer = &from->writers[i];
		struct book_writer *copy = &to->writers[to->writer_count++];
		*copy = *writer;
		copy->holder = writer->holder ? mem_copy_text(slice_of(writer->holder)) : NULL;
		copy->holes = NULL;
		copy->hole_room = 0;
		GROW(copy->holes, copy->hole_room, writer->hole_count);
		for (size_t h = 0; h < writer->hole_count; h++)
			copy->holes[h] = writer->holes[h];
	}
	GROW(to->unlisted, to->unlisted_room, from->unlisted_count);
	for (size_t i = 0; i < from->unlisted_count; i++) {
		struct book_unlisted *copy = &to->unlisted[to->unlisted_count++];
		*copy = from->unlisted[i];
		copy->id = mem_copy_text((struct slice){copy->id, copy->id_len});
	}
}

bool book_writer_is_over(const struct book_writer *writer)
{
	return writer->ended && writer->next >= writer->end && !writer->hole_count;
}

uint64_t book_whole_runs(const struct book_writer *writer)
{
	if (book_writer_is_over(writer))
		return (writer->end + FAULT_RUN_REPORTS - 1) >> FAULT_RUN_BITS;
	uint64_t whole = writer->hole_count ? writer->holes[0] : writer->next;
	return whole >> FAULT_RUN_BITS;
}

/* The place of a writer, or where it would be. */
static size_t book_writer_place(const struct book_positions *positions, uint64_t writer)
{
	size_t low = 0, high = positions->writer_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (positions->writers[middle].writer < writer)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct book_writer *book_find_writer(const struct book_positions *positions, uint64_t writer)
{
	size_t at = book_writer_place(positions, writer);
	bool there = at < positions->writer_count && positions->writers[at].writer == writer;
	return there ? &positions->writers[at] : NULL;
}

struct book_writer *book_add_writer(struct book_positions *positions, uint64_t writer)
{
	size_t at = book_writer_place(positions, writer);
	GROW(positions->writers, positions->writer_room, positions->writer_count + 1);
	struct book_writer *added = &positions->writers[at];
	memmove(added + 1, added, (positions->writer_count - at) * sizeof(*added));
	positions->writer_count++;
	*added = (struct book_writer){.writer = writer, .last_us = INT64_MIN};
	return added;
}

static bool book_is_hole(const struct book_writer *writer, uint64_t sequence)
{
	for (size_t i = 0; i < writer->hole_count; i++)
		if (writer->holes[i] == sequence)
			return true;
	return false;
}

bool book_has(const struct book_positions *positions, struct fault_place place)
{
	const struct book_writer *writer = book_find_writer(positions, place.writer);
	if (fault_place_equal(place, fault_erased_listing.order.place))
		return true;
	return writer && place.sequence < writer->next && !book_is_hole(writer, place.sequence);
}

/* The lesser of the two, of which *first may be none yet. */
static void book_note_first(const struct fault_order *order, struct fault_order *first, bool *any)
{
	if (!*any || fault_order_compare(order, first) < 0)
		*first = *order;
	*any = true;
}

bool book_first_other(const struct book_positions *positions, const struct fault_order *order,
		      struct slice id, const struct book_listings *listings,
		      struct fault_order *first)
{
	bool any = false;
	for (size_t i = 0; i < listings->count; i++) {
		const struct fault_order *other = &listings->list[i].order;
		if (!fault_place_equal(other->place, order->place) &&
		    book_has(positions, other->place))
			book_note_first(other, first, &any);
	}
	for (size_t i = 0; i < positions->unlisted_count; i++) {
		const struct book_unlisted *other = &positions->unlisted[i];
		if (!fault_place_equal(other->order.place, order->place) &&
		    slice_equal((struct slice){other->id, other->id_len}, id))
			book_note_first(&other->order, first, &any);
	}
	return any;
}

bool book_is_first(const struct book_positions *positions, const struct fault_order *order,
		   struct slice id, const struct book_listings *listings, struct fault_order *first)
{
	*first = *order;
	return !book_first_other(positions, order, id, listings, first) ||
	       fault_order_compare(order, first) < 0;
}
