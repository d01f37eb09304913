/* What is remembered of the places of a poll. What a row has in common is kept by row, until it
 * shows that it has not: series that were opened at different times may have handles far apart, and
 * a device that stops giving one column of several leaves its newest value behind. Then that layout
 * keeps it by place. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/stats.h"
#include "persist/layouts.h"

enum { PLACE_BYTES = 8 + 1 + 1, OFFSET_BITS = 8, TEXT_SLOTS_MIN = 8 };

struct text_slot {
	uint64_t place; /* and 1; 0: empty */
	struct newest_text newest;
};

static size_t place_count(const struct layout *layout)
{
	return layout->row_count * layout->column_count;
}

static void account(size_t bytes, int sign)
{
	stat_add(STAT_persist_memory_bytes, sign * (int64_t)bytes);
}

static size_t row_bytes(const struct layout *layout)
{
	return layout->row_count * (sizeof(*layout->rows) + sizeof(*layout->refused));
}

void layout_make_places(struct layout *layout)
{
	size_t places = place_count(layout);
	layout->rows = mem_alloc_array(layout->row_count, sizeof(*layout->rows));
	layout->refused = mem_zalloc(layout->row_count * sizeof(*layout->refused));
	layout->bits = mem_alloc_array(places, PLACE_BYTES);
	layout->types = (uint8_t *)(layout->bits + places);
	layout->offsets = layout->types + places;
	memset(layout->types, VALUE_NONE, places);
	memset(layout->offsets, PLACE_CLOSED, places);
	for (size_t r = 0; r < layout->row_count; r++)
		layout->rows[r] = (struct layout_row){0, 0, UINT64_MAX, INT64_MIN};
	account(row_bytes(layout) + places * PLACE_BYTES, 1);
}

void layout_free_places(struct layout *layout)
{
	size_t places = place_count(layout);
	size_t wide = (layout->handles ? sizeof(*layout->handles) : 0) +
		      (layout->ts_ms ? sizeof(*layout->ts_ms) : 0);
	account(row_bytes(layout) + places * (PLACE_BYTES + wide) +
			layout->text_room * sizeof(*layout->texts),
		-1);
	mem_free(layout->texts);
	mem_free(layout->rows);
	mem_free(layout->refused);
	mem_free(layout->bits);
	mem_free(layout->handles);
	mem_free(layout->ts_ms);
}

/* ---- Handles --------------------------------------------------------------------------------- */

static void widen_handles(struct layout *layout)
{
	uint64_t *handles = mem_alloc_array(place_count(layout), sizeof(*handles));
	for (size_t r = 0; r < layout->row_count; r++)
		for (size_t c = 0; c < layout->column_count; c++)
			handles[r * layout->column_count + c] = layout_handle(layout, r, c);
	layout->handles = handles;
	account(place_count(layout) * sizeof(*handles), 1);
}

void layout_open(struct layout *layout, size_t row, size_t column, uint64_t handle)
{
	struct layout_row *r = &layout->rows[layout_root(layout, row)];
	size_t place = layout_place(layout, row, column);
	uint64_t base = handle >> OFFSET_BITS << OFFSET_BITS;
	if (!handle)
		return;
	if (r->handles_base == UINT64_MAX)
		r->handles_base = base;
	if (!layout->handles && (base != r->handles_base || handle - base == PLACE_CLOSED))
		widen_handles(layout);
	if (layout->handles)
		layout->handles[place] = handle;
	layout->offsets[place] = layout->handles ? 0 : (uint8_t)(handle - base);
}

/* ---- Newest values --------------------------------------------------------------------------- */

/* Whether a column beside these has a newest value. */
static bool has_others(const struct layout *layout, size_t row, const uint16_t *columns,
		       size_t count)
{
	const uint8_t *types = layout->types + row * layout->column_count;
	size_t others = 0;
	for (size_t c = 0; c < layout->column_count; c++)
		others += types[c] != VALUE_NONE;
	for (size_t i = 0; i < count; i++)
		others -= types[columns[i]] != VALUE_NONE;
	return others > 0;
}

static void widen_times(struct layout *layout)
{
	int64_t *ts_ms = mem_alloc_array(place_count(layout), sizeof(*ts_ms));
	for (size_t r = 0; r < layout->row_count; r++)
		for (size_t c = 0; c < layout->column_count; c++)
			ts_ms[r * layout->column_count + c] = layout->rows[r].ts_ms;
	layout->ts_ms = ts_ms;
	account(place_count(layout) * sizeof(*ts_ms), 1);
}

void layout_keep(struct layout *layout, size_t row, int64_t ts_ms, const uint16_t *columns,
		 size_t count, const struct value *values)
{
	size_t root = layout_root(layout, row), first = root * layout->column_count;
	struct layout_row *r = &layout->rows[root];
	if (!layout->ts_ms && r->ts_ms != ts_ms && has_others(layout, root, columns, count))
		widen_times(layout);
	r->ts_ms = ts_ms;
	uint64_t *bits = layout->bits + first;
	uint8_t *types = layout->types + first;
	int64_t *times = layout->ts_ms ? layout->ts_ms + first : NULL;
	for (size_t i = 0; i < count; i++) {
		bits[columns[i]] = values[i].bits;
		types[columns[i]] = (uint8_t)values[i].type;
	}
	for (size_t i = 0; times && i < count; i++)
		times[columns[i]] = ts_ms;
}

/* ---- Newest texts ---------------------------------------------------------------------------- */

/* The slot of a place, or the empty one that it would have; there is always one. */
static struct text_slot *find_text(const struct layout *layout, uint64_t place)
{
	size_t mask = layout->text_room - 1;
	size_t at = hash64(&place, sizeof(place), 0) & mask;
	while (layout->texts[at].place && layout->texts[at].place != place)
		at = (at + 1) & mask;
	return &layout->texts[at];
}

static void grow_texts(struct layout *layout)
{
	struct text_slot *old = layout->texts;
	size_t old_room = layout->text_room;
	layout->text_room = old_room ? 2 * old_room : TEXT_SLOTS_MIN;
	layout->texts = mem_zalloc(layout->text_room * sizeof(*layout->texts));
	for (size_t i = 0; i < old_room; i++) {
		if (old[i].place)
			*find_text(layout, old[i].place) = old[i];
	}
	mem_free(old);
	account((layout->text_room - old_room) * sizeof(*old), 1);
}

bool layout_newest_text(const struct layout *layout, size_t row, size_t column,
			struct newest_text *newest)
{
	if (!layout->text_count)
		return false;
	const struct text_slot *slot = find_text(layout, layout_place(layout, row, column) + 1);
	*newest = slot->newest;
	return slot->place != 0;
}

void layout_keep_text(struct layout *layout, size_t row, size_t column, struct newest_text newest)
{
	uint64_t place = layout_place(layout, row, column) + 1;
	if (2 * layout->text_count >= layout->text_room)
		grow_texts(layout);
	struct text_slot *slot = find_text(layout, place);
	layout->text_count += !slot->place;
	*slot = (struct text_slot){place, newest};
}
