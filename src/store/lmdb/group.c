#include "store/lmdb/group.h"

#include "base/cursor.h"
#include "base/grow.h"
#include "base/stats.h"

/* A block of fewer rows than this is not begun in the last bytes of an extent. */
enum { ROWS_LEAST = 32 };

/* Memory of strips that are kept for the next group: more is freed. */
enum { STRIPS_KEPT_BYTES = 4 << 20 };

enum { CACHE_LINE_BYTES = 64, FETCH_BYTES = 24 * CACHE_LINE_BYTES };

/* table u8 | class u8 | period u64 | segment i64 | shape u32 | group u32 || first ts i64 | flush
 * u32 | part u16; big endian, signed numbers with their top bit flipped. */
void group_prefix(const struct group_id *id, uint8_t to[GROUP_PREFIX_BYTES])
{
	to[0] = (uint8_t)id->segment.sheet.table;
	to[1] = (uint8_t)id->segment.sheet.retention;
	be64_put(to + 2, (uint64_t)id->segment.sheet.period_ms);
	be64_put(to + 10, ordered_i64(id->segment.segment));
	be32_put(to + 18, id->shape);
	be32_put(to + 22, id->group);
}

int group_parse_key(struct slice key, struct group_id *id, int64_t *first_ts_ms, uint32_t *flush)
{
	if (key.len != EXTENT_KEY_BYTES)
		return ERR_DAMAGED;
	const uint8_t *p = (const uint8_t *)key.data;
	if (p[0] >= TABLE_COUNT || p[1] >= RETENTION_CLASSES || schema[p[0]].kind != TABLE_SAMPLES)
		return ERR_DAMAGED;
	*id = (struct group_id){
		.segment = {{(enum table)p[0], (enum retention_class)p[1],
			     (int64_t)be64_get(p + 2)},
			    unordered_i64(be64_get(p + 10))},
		.shape = be32_get(p + 18),
		.group = be32_get(p + 22),
	};
	*first_ts_ms = unordered_i64(be64_get(p + 26));
	*flush = be32_get(p + 34);
	return 0;
}

static int seek_group(MDB_cursor *cursor, const struct group_id *id,
		      uint8_t prefix[GROUP_PREFIX_BYTES], struct slice *key, struct slice *value)
{
	group_prefix(id, prefix);
	*key = (struct slice){(const char *)prefix, GROUP_PREFIX_BYTES};
	return env_seek(cursor, key, value);
}

static bool group_in_group(struct slice key, const uint8_t prefix[GROUP_PREFIX_BYTES])
{
	return key.len >= GROUP_PREFIX_BYTES && memcmp(key.data, prefix, GROUP_PREFIX_BYTES) == 0;
}

static int open_extent(struct extent *extent, struct slice key, struct slice value)
{
	int err = extent_open(extent, key, value);
	if (err)
		stat_add(STAT_store_damaged, 1);
	return err;
}

void block_refs_add(struct block_refs *refs, const struct block *block)
{
	GROW(refs->list, refs->cap, refs->count + 1);
	size_t at = refs->count++;
	/* Mostly they come in order of time. */
	for (; at > 0 && refs->list[at - 1].block.meta.first_ts_ms > block->meta.first_ts_ms; at--)
		refs->list[at] = refs->list[at - 1];
	refs->list[at].block = *block;
}

void block_refs_release(struct block_refs *refs)
{
	mem_free(refs->list);
	*refs = (struct block_refs){0};
}

int group_find(MDB_cursor *cursor, const struct group_id *id, uint32_t ordinal_in_group,
	       unsigned column, int64_t start_ms, int64_t end_ms, struct block_refs *refs)
{
	uint8_t prefix[GROUP_PREFIX_BYTES];
	struct slice key, value;
	int err = seek_group(cursor, id, prefix, &key, &value);
	while (!err && group_in_group(key, prefix)) {
		struct extent extent;
		struct block block;
		err = open_extent(&extent, key, value);
		if (err)
			return err;
		refs->extents++;
		while (extent_next(&extent, &block)) {
			const struct block_meta *meta = &block.meta;
			if (meta->ordinal == ordinal_in_group && column >= meta->first_column &&
			    column < (unsigned)meta->first_column + meta->columns &&
			    meta->first_ts_ms < end_ms && meta->last_ts_ms >= start_ms)
				block_refs_add(refs, &block);
		}
		err = env_next(cursor, &key, &value);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Leaves those of the last `rows`, from `at` on, that have a value and lie in
 * start <= time < end. */
static void group_filter_samples(struct samples *samples, size_t at, size_t rows, int64_t start_ms,
				 int64_t end_ms)
{
	size_t kept = at;
	for (size_t i = at; i < at + rows; i++) {
		bool any = false;
		for (unsigned f = 0; f < samples->fields; f++)
			any = any || samples->types[f][i] != VALUE_NONE;
		if (!any || samples->ts_ms[i] < start_ms || samples->ts_ms[i] >= end_ms)
			continue;
		if (kept != i) {
			samples->ts_ms[kept] = samples->ts_ms[i];
			for (unsigned f = 0; f < samples->fields; f++) {
				samples->bits[f][kept] = samples->bits[f][i];
				samples->types[f][kept] = samples->types[f][i];
			}
		}
		kept++;
	}
	samples->count = kept;
}

int block_append(const struct block *block, unsigned first, int64_t start_ms, int64_t end_ms,
		 struct samples *samples)
{
	size_t rows = block->meta.rows, at = samples->count;
	if (first + samples->fields > block->meta.columns)
		return ERR_DAMAGED;
	samples_reserve(samples, rows);
	int err = block_decode_times(block, samples->ts_ms + at);
	for (unsigned f = 0; f < samples->fields && !err; f++)
		err = block_decode_column(block, first + f, samples->bits[f] + at,
					  samples->types[f] + at);
	if (err) {
		stat_add(STAT_store_damaged, 1);
		return err;
	}
	if (block->meta.first_ts_ms >= start_ms && block->meta.last_ts_ms < end_ms &&
	    samples_is_full(samples, at, rows))
		samples->count = at + rows;
	else
		group_filter_samples(samples, at, rows, start_ms, end_ms);
	if (block->meta.sequence > samples->sequence)
		samples->sequence = block->meta.sequence;
	return 0;
}

/* ---- Strips ---------------------------------------------------------------------------------- */

static void strips_grow(struct strips *strips)
{
	size_t cap = strips->cap ? strips->cap * 2 : 8;
	strips->list = mem_resize_array(strips->list, cap, sizeof(*strips->list));
	memset(strips->list + strips->cap, 0, (cap - strips->cap) * sizeof(*strips->list));
	strips->cap = cap;
}

struct strip *strips_get(struct strips *strips, uint32_t ordinal_in_group, unsigned first_column,
			 unsigned columns)
{
	for (size_t i = strips->count; i-- > 0;) {
		struct strip *strip = &strips->list[i];
		if (strip->ordinal_in_group == ordinal_in_group &&
		    strip->first_column == first_column)
			return strip;
	}
	if (strips->count == strips->cap)
		strips_grow(strips);
	struct strip *strip = &strips->list[strips->count++];
	strip->ordinal_in_group = ordinal_in_group;
	strip->first_column = first_column;
	samples_reuse(&strip->samples, columns);
	return strip;
}

void strips_reset(struct strips *strips)
{
	size_t bytes = 0;
	for (size_t i = 0; i < strips->cap; i++)
		bytes += samples_bytes(&strips->list[i].samples);
	strips->count = 0;
	if (bytes > STRIPS_KEPT_BYTES)
		strips_release(strips);
}

void strips_release(struct strips *strips)
{
	for (size_t i = 0; i < strips->cap; i++)
		samples_release(&strips->list[i].samples);
	mem_free(strips->list);
	*strips = (struct strips){0};
}

/* The strips of a band: each but the last is of more than half the columns of a block. */
enum { STRIPS_MAX = SHAPE_COLUMNS_MAX * TABLE_FIELDS_MAX / (BLOCK_COLUMNS_MAX / 2) };

/* The samples of each strip of a band; returns how many strips. */
static unsigned band_samples(struct strips *strips, uint32_t ordinal_in_group, unsigned width,
			     unsigned columns, struct samples *each[STRIPS_MAX])
{
	size_t at[STRIPS_MAX];
	unsigned count = 0;
	for (unsigned first = 0; first < columns; first += width) {
		unsigned n = columns - first < width ? columns - first : width;
		struct strip *strip = strips_get(strips, ordinal_in_group, first, n);
		at[count++] = (size_t)(strip - strips->list);
	}
	/* The list may have moved while it grew. */
	for (unsigned s = 0; s < count; s++)
		each[s] = &strips->list[at[s]].samples;
	return count;
}

void strips_add_head(struct strips *strips, const struct head *head, uint32_t ordinal_in_group)
{
	unsigned width = strip_columns((enum table)head->table);
	struct samples *each[STRIPS_MAX];
	unsigned count = band_samples(strips, ordinal_in_group, width, head->columns, each);
	head_copy_strips(head, width, each, count);
}

void strips_add_rows(struct strips *strips, enum table table, unsigned columns,
		     const struct record_rows *rows, uint32_t ordinal_in_group)
{
	unsigned width = strip_columns(table);
	struct samples *each[STRIPS_MAX];
	unsigned count = band_samples(strips, ordinal_in_group, width, columns, each);
	rows_copy_strips(rows, width, each, count);
}

static int by_sequence(const void *a, const void *b)
{
	const struct block_meta *x = &((const struct block_ref *)a)->block.meta;
	const struct block_meta *y = &((const struct block_ref *)b)->block.meta;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return (x->first_ts_ms > y->first_ts_ms) - (x->first_ts_ms < y->first_ts_ms);
}

void block_refs_by_sequence(struct block_refs *refs)
{
	if (refs->count)
		qsort(refs->list, refs->count, sizeof(*refs->list), by_sequence);
}

/* What a checksum begins with, which is the first to touch the extent: by the time it comes there,
 * the bytes have. What follows the processor sees for itself. */
static void group_fetch(struct slice value)
{
	for (size_t at = 0; at < FETCH_BYTES && at < value.len; at += CACHE_LINE_BYTES)
		__builtin_prefetch(value.data + at);
}

int group_each(MDB_cursor *cursor, const struct group_id *id,
	       int (*see)(const struct block *block, void *context), void *context,
	       uint64_t *extents)
{
	uint8_t prefix[GROUP_PREFIX_BYTES];
	struct slice key, value, next_key, next_value;
	int err = seek_group(cursor, id, prefix, &key, &value);
	while (!err && group_in_group(key, prefix)) {
		struct extent extent;
		struct block block;
		int next = env_next(cursor, &next_key, &next_value);
		if (!next)
			group_fetch(next_value);
		err = open_extent(&extent, key, value);
		*extents += !err;
		while (!err && extent_next(&extent, &block))
			err = see(&block, context);
		err = err ? err : next;
		key = next_key;
		value = next_value;
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int each_block(MDB_txn *txn, MDB_dbi extents, const struct group_id *id,
		      int (*see)(const struct block *block, void *context), void *context)
{
	MDB_cursor *cursor;
	uint64_t opened = 0;
	int err = env_error(mdb_cursor_open(txn, extents, &cursor));
	if (err)
		return err;
	err = group_each(cursor, id, see, context, &opened);
	mdb_cursor_close(cursor);
	return err;
}

static int see_ref(const struct block *block, void *refs)
{
	block_refs_add(refs, block);
	return 0;
}

int strips_load(struct strips *strips, MDB_txn *txn, MDB_dbi extents, const struct group_id *id)
{
	struct block_refs refs = {0};
	int err = each_block(txn, extents, id, see_ref, &refs);
	block_refs_by_sequence(&refs);
	for (size_t i = 0; i < refs.count && !err; i++) {
		const struct block *block = &refs.list[i].block;
		struct strip *strip = strips_get(strips, block->meta.ordinal,
						 block->meta.first_column, block->meta.columns);
		err = block->meta.columns == strip->samples.fields
			      ? block_append(block, 0, INT64_MIN, INT64_MAX, &strip->samples)
			      : ERR_DAMAGED;
	}
	block_refs_release(&refs);
	return err;
}

static int see_span(const struct block *block, void *context)
{
	const struct block_meta *meta = &block->meta;
	if (meta->ordinal >= GROUP_BANDS_MAX)
		return ERR_DAMAGED;
	struct band_span *span = (struct band_span *)context + meta->ordinal;
	if (meta->first_ts_ms <= span->max_ts_ms && meta->last_ts_ms >= span->min_ts_ms)
		span->overlaps = true;
	if (meta->sequence > span->highest)
		span->highest = meta->sequence;
	if (meta->last_ts_ms > span->end_ms)
		span->end_ms = meta->last_ts_ms;
	return 0;
}

int group_spans(MDB_txn *txn, MDB_dbi extents, const struct group_id *id,
		struct band_span spans[GROUP_BANDS_MAX])
{
	return each_block(txn, extents, id, see_span, spans);
}

/* Whether all extents of the group may be freed. */
static int group_check(MDB_cursor *cursor, const struct group_id *id)
{
	uint8_t prefix[GROUP_PREFIX_BYTES];
	struct slice key, value;
	int err = seek_group(cursor, id, prefix, &key, &value);
	while (!err && group_in_group(key, prefix)) {
		if (!env_may_free(mdb_cursor_txn(cursor), key, value))
			return ERR_DAMAGED;
		err = env_next(cursor, &key, &value);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int group_delete(MDB_cursor *cursor, const struct group_id *id, bool *changed)
{
	uint8_t prefix[GROUP_PREFIX_BYTES];
	struct slice key, value;
	int err = seek_group(cursor, id, prefix, &key, &value);
	while (!err && group_in_group(key, prefix)) {
		*changed = true;
		err = env_error(mdb_cursor_del(cursor, 0));
		/* After a deletion the cursor stands before what followed. */
		if (!err)
			err = seek_group(cursor, id, prefix, &key, &value);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

int group_clear(MDB_txn *txn, MDB_dbi extents, const struct group_id *id, bool *changed)
{
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, extents, &cursor));
	if (err)
		return err;
	err = group_check(cursor, id);
	if (!err)
		err = group_delete(cursor, id, changed);
	mdb_cursor_close(cursor);
	return err;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct group_writer {
	MDB_txn *txn;
	MDB_dbi extents;
	uint8_t key[EXTENT_KEY_BYTES];
	uint32_t flush;
	uint16_t part;
	int64_t first_ts_ms; /* of the extent being built; INT64_MAX: it is empty */
	uint64_t *bytes;
	struct extent_builder builder;
};

static int finish_extent(struct group_writer *w)
{
	if (w->first_ts_ms == INT64_MAX)
		return 0;
	uint8_t value[EXTENT_MAX_BYTES];
	be64_put(w->key + GROUP_PREFIX_BYTES, ordered_i64(w->first_ts_ms));
	be32_put(w->key + GROUP_PREFIX_BYTES + 8, w->flush);
	w->key[GROUP_PREFIX_BYTES + 12] = (uint8_t)(w->part >> 8);
	w->key[GROUP_PREFIX_BYTES + 13] = (uint8_t)w->part;
	struct slice key = {(const char *)w->key, EXTENT_KEY_BYTES};
	size_t len = extent_finish(&w->builder, key, value);
	w->part++;
	w->first_ts_ms = INT64_MAX;
	*w->bytes += len;
	return env_put(w->txn, w->extents, key, (struct slice){(const char *)value, len});
}

/* How far the rows from `at` on all have the type of the first. */
static size_t same_type_until(const uint8_t *types, size_t at, size_t count)
{
	size_t end = at + 1;
	/* Nearly always all have: each is the same as the one before it. */
	if (!memcmp(types + at, types + end, count - end))
		return count;
	while (end < count && types[end] == types[at])
		end++;
	return end;
}

/* The rows from `at` on, of every field. `until` keeps how far each field's type reaches, so that
 * cutting a strip into many blocks looks at each type once. */
static void columns_from(const struct samples *samples, size_t at, uint32_t count,
			 size_t until[BLOCK_COLUMNS_MAX], struct block_column *columns)
{
	for (unsigned f = 0; f < samples->fields; f++) {
		const uint8_t *types = samples->types[f];
		if (until[f] <= at)
			until[f] = same_type_until(types, at, samples->count);
		columns[f].bits = samples->bits[f] + at;
		columns[f].type = (enum value_type)types[at];
		columns[f].types = until[f] < at + count ? types + at : NULL;
	}
}

static int store_strip(struct group_writer *w, const struct strip *strip)
{
	const struct samples *samples = &strip->samples;
	struct block_meta meta = {.ordinal = strip->ordinal_in_group,
				  .first_column = (uint16_t)strip->first_column,
				  .columns = (uint16_t)samples->fields,
				  .sequence = samples->sequence};
	size_t at = 0, until[BLOCK_COLUMNS_MAX] = {0};
	while (at < samples->count) {
		struct block_column columns[BLOCK_COLUMNS_MAX];
		size_t left = samples->count - at;
		uint32_t count = left > BLOCK_ROWS_MAX ? BLOCK_ROWS_MAX : (uint32_t)left;
		columns_from(samples, at, count, until, columns);
		struct block_rows rows = {count, samples->fields, samples->ts_ms + at, columns};
		uint32_t taken = extent_add(&w->builder, &meta, &rows, ROWS_LEAST);
		if (taken == 0) {
			/* An empty extent takes at least one row of any data. */
			ASSERT(w->first_ts_ms != INT64_MAX || count > 0);
			bool was_empty = w->first_ts_ms == INT64_MAX;
			int err = finish_extent(w);
			if (err)
				return err;
			if (was_empty)
				taken = extent_add(&w->builder, &meta, &rows, 1);
			if (was_empty && taken == 0)
				return ERR_LIMIT;
		}
		if (taken && samples->ts_ms[at] < w->first_ts_ms)
			w->first_ts_ms = samples->ts_ms[at];
		at += taken;
	}
	return 0;
}

static int strip_order(const void *a, const void *b)
{
	const struct strip *x = a, *y = b;
	if (x->ordinal_in_group != y->ordinal_in_group)
		return x->ordinal_in_group < y->ordinal_in_group ? -1 : 1;
	return (x->first_column > y->first_column) - (x->first_column < y->first_column);
}

int group_store(MDB_txn *txn, MDB_dbi extents, const struct group_id *id, struct strips *strips,
		uint32_t flush, uint64_t *bytes)
{
	struct group_writer *w = mem_alloc(sizeof(*w));
	w->txn = txn;
	w->extents = extents;
	w->flush = flush;
	w->part = 0;
	w->first_ts_ms = INT64_MAX;
	w->bytes = bytes;
	group_prefix(id, w->key);
	extent_builder_init(&w->builder);
	w->builder.dense = flush == 0;
	int err = 0;
	if (strips->count)
		qsort(strips->list, strips->count, sizeof(*strips->list), strip_order);
	for (size_t i = 0; i < strips->count && !err; i++) {
		samples_sort(&strips->list[i].samples);
		err = store_strip(w, &strips->list[i]);
	}
	if (!err)
		err = finish_extent(w);
	mem_free(w);
	return err;
}
