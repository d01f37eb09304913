#include "fault/tables.h"

#include "base/put.h"

enum { WRITER_VERSION = 1 };

static const struct slice tables_date = SLICE("date");
/* The least text above `date`. */
static const struct slice tables_after_date = SLICE("date\0");

/* It lies before `date`, too. */
static const struct slice tables_bug = SLICE(FAULT_BUG_PREFIX);

static struct slice tables_number(uint8_t to[8], uint64_t number)
{
	be64_put(to, number);
	return (struct slice){(char *)to, 8};
}

void fault_writers_key(struct fault_parts *to, struct slice tenant)
{
	to->parts = (struct store_parts){{tenant}};
}

void fault_writers_column(struct fault_parts *to, uint64_t writer)
{
	to->parts = (struct store_parts){{tables_number(to->numbers[0], writer)}};
}

void fault_arrivals_key(struct fault_parts *to, struct slice tenant, struct fault_place place)
{
	to->parts = (struct store_parts){
		{tenant, tables_number(to->numbers[0], place.writer),
		 tables_number(to->numbers[1], place.sequence >> FAULT_RUN_BITS)}};
}

void fault_arrivals_column(struct fault_parts *to, uint64_t sequence)
{
	to->parts = (struct store_parts){{tables_number(to->numbers[0], sequence)}};
}

void fault_attachments_column(struct fault_parts *to, uint64_t sequence,
			      enum fault_attachment_part part, uint64_t number)
{
	to->parts = (struct store_parts){{tables_number(to->numbers[0], sequence),
					  tables_number(to->numbers[1], part),
					  tables_number(to->numbers[2], number)}};
}

void fault_segments_column(struct fault_parts *to, uint64_t name, enum fault_segment_part part,
			   uint64_t number)
{
	to->parts = (struct store_parts){{tables_number(to->numbers[0], name),
					  tables_number(to->numbers[1], part),
					  tables_number(to->numbers[2], number)}};
}

void fault_runs_key(struct fault_parts *to, struct slice tenant)
{
	to->parts = (struct store_parts){{tenant}};
}

void fault_runs_column(struct fault_parts *to, struct fault_place place)
{
	to->parts = (struct store_parts){
		{tables_number(to->numbers[0], place.writer),
		 tables_number(to->numbers[1], place.sequence >> FAULT_RUN_BITS)}};
}

void fault_oops_key(struct fault_parts *to, struct slice tenant, struct slice id)
{
	fault_oops_shard_key(to, tenant, hash64(id.data, id.len, 0) & (FAULT_OOPS_SHARDS - 1));
}

void fault_oops_shard_key(struct fault_parts *to, struct slice tenant, uint64_t shard)
{
	to->parts = (struct store_parts){{tenant, tables_number(to->numbers[0], shard)}};
}

void fault_oops_column(struct fault_parts *to, struct slice id, struct fault_place place)
{
	be64_put(to->place, place.writer);
	be64_put(to->place + 8, place.sequence);
	to->parts = (struct store_parts){{id, tables_date, {(char *)to->place, sizeof(to->place)}}};
}

void fault_oops_bound(struct fault_parts *to, struct slice id, bool after)
{
	to->parts = (struct store_parts){{id, after ? tables_after_date : tables_date}};
}

void fault_oops_bug_column(struct fault_parts *to, struct slice id, struct slice tracker)
{
	ASSERT(tracker.len && tracker.len <= FAULT_BUG_TRACKER_MAX_BYTES);
	memcpy(to->attribute, tables_bug.data, tables_bug.len);
	memcpy(to->attribute + tables_bug.len, tracker.data, tracker.len);
	to->parts = (struct store_parts){
		{id, {to->attribute, tables_bug.len + tracker.len}, SLICE("")}};
}

void fault_oops_begin(struct fault_parts *to, struct slice id)
{
	to->parts = (struct store_parts){{id, tables_bug}};
}

void fault_books_key(struct fault_parts *to, struct slice tenant)
{
	to->parts = (struct store_parts){{tenant}};
}

void fault_books_column(struct fault_parts *to, uint64_t tenure)
{
	to->parts = (struct store_parts){{tables_number(to->numbers[0], tenure)}};
}

void fault_summaries_key(struct fault_parts *to, struct slice tenant, int64_t day,
			 enum fault_row row)
{
	fault_day_row_text(day, row, to->text);
	to->parts = (struct store_parts){{tenant, slice_of(to->text)}};
}

void fault_groups_key(struct fault_parts *to, struct slice tenant, struct slice group)
{
	to->parts = (struct store_parts){{tenant, group}};
}

void fault_groups_column(struct fault_parts *to, int64_t day)
{
	fault_day_text(day, to->text);
	to->parts = (struct store_parts){{slice_of(to->text)}};
}

void fault_causes_column(struct fault_parts *to, int64_t day, struct slice group)
{
	fault_day_text(day, to->text);
	to->parts = (struct store_parts){{slice_of(to->text), group}};
}

void fault_erased_column(struct fault_parts *to, struct fault_place place)
{
	to->parts = (struct store_parts){{tables_number(to->numbers[0], place.writer),
					  tables_number(to->numbers[1], place.sequence)}};
}

uint64_t fault_part_number(struct slice part)
{
	return part.len == 8 ? be64_get((const uint8_t *)part.data) : 0;
}

/* ---- Values ---------------------------------------------------------------------------------- */

void fault_writer_cell_encode(const struct fault_writer_cell *cell, struct buf *out)
{
	buf_append_char(out, WRITER_VERSION);
	buf_append_char(out, (char)cell->state);
	buf_put_varint(out, cell->next);
	buf_append(out, &cell->began_us, 8);
	buf_append(out, &cell->last_us, 8);
	buf_put_text(out, cell->holder);
}

int fault_writer_cell_decode(struct slice bytes, struct fault_writer_cell *cell)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	if (!c.bad && version != WRITER_VERSION)
		return ERR_VERSION;
	uint8_t state = cursor_u8(&c);
	cell->next = cursor_varint(&c);
	cell->began_us = (int64_t)cursor_u64(&c);
	cell->last_us = (int64_t)cursor_u64(&c);
	cell->holder = cursor_text(&c, STORE_COLUMN_MAX_BYTES);
	cell->state = (enum fault_writer_state)state;
	return c.bad || state > FAULT_WRITER_CLOSED ? ERR_DAMAGED : 0;
}

const struct fault_listing fault_erased_listing = {.order = {.date_us = INT64_MIN}};

void fault_listing_encode(const struct fault_listing *listing, uint8_t to[FAULT_LISTING_BYTES])
{
	memcpy(to, &listing->order.date_us, 8);
	memcpy(to + 8, &listing->digest, 16);
}

bool fault_listing_decode(const struct store_cell *cell, struct fault_listing *listing)
{
	struct slice place = cell->column.part[2];
	if (place.len != 16 || cell->value.len != FAULT_LISTING_BYTES)
		return false;
	listing->order.place.writer = be64_get((const uint8_t *)place.data);
	listing->order.place.sequence = be64_get((const uint8_t *)place.data + 8);
	memcpy(&listing->order.date_us, cell->value.data, 8);
	memcpy(&listing->digest, cell->value.data + 8, 16);
	return true;
}

bool fault_oops_bug_decode(const struct store_cell *cell, struct fault_oops_bug *bug)
{
	struct slice attribute = cell->column.part[1];
	if (attribute.len <= tables_bug.len ||
	    attribute.len > tables_bug.len + FAULT_BUG_TRACKER_MAX_BYTES ||
	    memcmp(attribute.data, tables_bug.data, tables_bug.len) != 0)
		return false;
	bug->tracker =
		(struct slice){attribute.data + tables_bug.len, attribute.len - tables_bug.len};
	bug->bug = cell->value;
	bug->stamp_us = cell->stamp_us;
	return true;
}

int fault_oops_bug_keep(struct fault_oops_bug *bug, struct arena *arena)
{
	bug->tracker = arena_copy(arena, bug->tracker);
	bug->bug = arena_copy(arena, bug->bug);
	return bug->tracker.data && bug->bug.data ? 0 : ERR_LIMIT;
}
