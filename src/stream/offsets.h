/* Ranges of offsets, as which bytes of a stream are held. Sorted; none meets or touches another.
 *
 * Pure; one thread at a time. Zeroed: empty. */
#ifndef STREAM_OFFSETS_H
#define STREAM_OFFSETS_H

#include "base/base.h"

struct offset_range {
	uint64_t begin, end; /* begin < end */
};

struct offsets {
	struct offset_range *list;
	size_t count, room;
};

void offsets_release(struct offsets *offsets);
/* The ranges of `from` become those of `to`, and `from` is empty. */
void offsets_move(struct offsets *to, struct offsets *from);

/* begin < end */
void offsets_add(struct offsets *offsets, uint64_t begin, uint64_t end);
/* What is below an offset goes. */
void offsets_cut(struct offsets *offsets, uint64_t below);
/* What is in between goes. begin < end */
void offsets_remove(struct offsets *offsets, uint64_t begin, uint64_t end);
/* Adds to `left` what is in `all` and not in `without`. It is neither of these. */
void offsets_subtract(const struct offsets *all, const struct offsets *without,
		      struct offsets *left);
/* Whether all of it is there; whether any of it is. */
bool offsets_cover(const struct offsets *offsets, uint64_t begin, uint64_t end);
bool offsets_meet(const struct offsets *offsets, uint64_t begin, uint64_t end);
/* How many there would be once it is added. */
size_t offsets_count_with(const struct offsets *offsets, uint64_t begin, uint64_t end);
/* The range that has the byte at an offset; {0, 0}: none. */
struct offset_range offsets_at(const struct offsets *offsets, uint64_t offset);

#endif
