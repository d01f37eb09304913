/* Versioned rows: how they lie in the store, and what a poll changes.
 *
 * A row of a device is a cell of table `versioned_rows`, key (kind, device), column (end, name,
 * begin): all that lived at some time t or later lie together behind the end t, those that are open
 * at the very end. To close a row is to put the cell again under its end and to delete it where it
 * was, in one write. That is atomic, as both are of one key, up to STORE_ROW_WHOLE_BYTES; a longer
 * write comes in this order.
 *
 * The value are the attributes. A device may give a name that is longer than a column can be: then
 * the column has its beginning and a hash of it all, and the value has the name behind the
 * attributes and a zero byte, which JSON never holds. */
#include <stdio.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "inventory/private.h"

struct store_parts row_key(enum oidset_kind kind, struct slice device)
{
	return (struct store_parts){.part = {slice_of(oidset_kind_text(kind)), device}};
}

struct store_parts walk_key(enum oidset_kind kind, struct slice device)
{
	static const char *const words[OIDSET_KINDS] = {
		[OIDSET_COUNTERS] = "counters walk", [OIDSET_INTERFACES] = "interfaces walk",
		[OIDSET_SAPS] = "saps walk",         [OIDSET_LSPS] = "lsps walk",
		[OIDSET_OUTLETS] = "outlets walk",
	};
	ASSERT((unsigned)kind < OIDSET_KINDS);
	return (struct store_parts){.part = {slice_of(words[kind]), device}};
}

struct store_parts walk_column(void)
{
	static const char zero[8];
	return (struct store_parts){.part = {{zero, 8}, SLICE(""), {zero, 8}}};
}

/* How many of the bytes that are kept are whole characters. */
static size_t whole_characters(struct slice name)
{
	size_t kept = ROW_NAME_KEPT_BYTES;
	while (kept > ROW_NAME_KEPT_BYTES - 4 && ((uint8_t)name.data[kept] & 0xc0) == 0x80)
		kept--;
	return kept;
}

/* Names that begin alike are told apart by the hash. Older versions cut within a character. */
static struct slice cut_name(struct slice name, bool whole, char cut[ROW_NAME_CUT_BYTES + 1])
{
	ASSERT(name.len > ROW_NAME_KEPT_BYTES); /* or it would have had room */
	struct hash128 hash = hash128(name.data, name.len, 0);
	size_t kept = whole ? whole_characters(name) : ROW_NAME_KEPT_BYTES;
	memcpy(cut, name.data, kept);
	snprintf(cut + kept, ROW_NAME_CUT_BYTES + 1 - kept, "~%016llx%016llx",
		 (unsigned long long)hash.high, (unsigned long long)hash.low);
	return (struct slice){cut, strlen(cut + kept) + kept};
}

static void make_column(struct slice name, int64_t begin_ms, int64_t end_ms, bool whole,
			struct row_column *column)
{
	be64_put(column->end, ordered_i64(end_ms));
	be64_put(column->begin, ordered_i64(begin_ms));
	column->parts = (struct store_parts){
		.part = {{(const char *)column->end, 8}, name, {(const char *)column->begin, 8}}};
	column->is_cut = store_parts_bytes(&column->parts, 3) > STORE_COLUMN_MAX_BYTES;
	if (column->is_cut) {
		column->parts.part[1] = cut_name(name, whole, column->cut);
		ASSERT(store_parts_bytes(&column->parts, 3) <= STORE_COLUMN_MAX_BYTES);
	}
}

void row_column(struct slice name, int64_t begin_ms, int64_t end_ms, struct row_column *column)
{
	make_column(name, begin_ms, end_ms, true, column);
}

bool row_column_of_before(struct slice name, int64_t begin_ms, int64_t end_ms,
			  struct row_column *column)
{
	make_column(name, begin_ms, end_ms, false, column);
	return column->is_cut && whole_characters(name) != ROW_NAME_KEPT_BYTES;
}

int row_cell_value(const struct row_column *column, const struct inventory_row *row,
		   struct buf *scratch, struct slice *value)
{
	*value = row->attributes;
	if (!column->is_cut)
		return 0;
	buf_clear(scratch);
	buf_append(scratch, row->attributes.data, row->attributes.len);
	buf_append_char(scratch, 0);
	buf_append(scratch, row->name.data, row->name.len);
	*value = buf_slice(scratch);
	return scratch->failed ? ERR_LIMIT : 0;
}

bool row_of_cell(const struct store_cell *cell, struct inventory_row *row)
{
	const struct slice *part = cell->column.part;
	if (part[0].len != 8 || part[2].len != 8)
		return false;
	row->name = part[1];
	row->end_ms = unordered_i64(be64_get((const uint8_t *)part[0].data));
	row->begin_ms = unordered_i64(be64_get((const uint8_t *)part[2].data));
	row->attributes = cell->value;
	const char *zero = cell->value.len ? memchr(cell->value.data, 0, cell->value.len) : NULL;
	if (zero) {
		row->attributes.len = (size_t)(zero - cell->value.data);
		row->name = (struct slice){zero + 1, cell->value.len - row->attributes.len - 1};
	}
	return true;
}

/* What becomes of an open row that the poll does not have, or has with these attributes. */
static size_t change_one(const struct inventory_row *old, const struct inventory_row *new,
			 bool complete, int64_t ts_ms, struct inventory_row_change *change)
{
	bool newer = old && old->begin_ms > ts_ms;
	bool equal = old && new &&slice_equal(old->attributes, new->attributes);
	if (newer || equal || (!new && !complete))
		return 0;
	*change = (struct inventory_row_change){old, new};
	return 1;
}

size_t inventory_rows_diff(const struct inventory_row *open, size_t open_count,
			   const struct inventory_row *polled, size_t polled_count, bool complete,
			   int64_t ts_ms, struct inventory_row_change *changes)
{
	size_t o = 0, p = 0, count = 0;
	complete = complete && polled_count > 0;
	while (o < open_count || p < polled_count) {
		int order = o == open_count     ? 1
			    : p == polled_count ? -1
						: slice_compare(open[o].name, polled[p].name);
		const struct inventory_row *old = order <= 0 ? &open[o++] : NULL;
		const struct inventory_row *new = order >= 0 ? &polled[p++] : NULL;
		count += change_one(old, new, complete, ts_ms, &changes[count]);
	}
	ASSERT(count <= open_count + polled_count);
	return count;
}
