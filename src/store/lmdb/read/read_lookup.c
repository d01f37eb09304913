/* Looking up: which segments, heads and blocks hold what is asked.
 *
 * Series of one group lie in the same extents, so they are looked up together: their heads are
 * copied under one lock, then each extent of the group is opened, checked and gone through once. */
#include "base/stats.h"
#include "store/lmdb/read/read.h"

enum {
	SNAPSHOT_MAX_US = 50000,
	SEGMENTS_FIRST = 256,
};

void scratch_free(struct scratch *scratch)
{
	if (!scratch)
		return;
	for (size_t i = 0; i <= LOOKUPS_MAX; i++) {
		struct lookup *lookup = i < LOOKUPS_MAX ? &scratch->lookups[i] : &scratch->one;
		samples_release(&lookup->head);
		block_refs_release(&lookup->refs);
	}
	samples_release(&scratch->blocks);
	samples_release(&scratch->range);
	mem_free(scratch->segments);
	scratch_free_windows(scratch);
	mem_free(scratch);
}

/* ---- Segments -------------------------------------------------------------------------------- */

static int by_segment(const void *a, const void *b)
{
	const struct segment_id *x = a, *y = b;
	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return (int)x->sheet.retention - (int)y->sheet.retention;
}

int reading_list_segments(struct reading *r, enum table table, int64_t period_ms, int64_t start_ms,
			  int64_t end_ms, size_t *count)
{
	struct scratch *s = r->scratch;
	for (size_t cap = SEGMENTS_FIRST;; cap = *count) {
		if (s->segments_cap < cap) {
			s->segments = mem_resize_array(s->segments, cap, sizeof(*s->segments));
			s->segments_cap = cap;
		}
		*count = heads_segments(&r->engine->heads, table, period_ms, start_ms, end_ms,
					s->segments, s->segments_cap);
		if (*count > SEGMENTS_MAX)
			return ERR_LIMIT;
		if (*count <= s->segments_cap)
			break;
	}
	r->segments = s->segments;
	qsort(r->segments, *count, sizeof(*r->segments), by_segment);
	return 0;
}

size_t reading_same_segment(const struct segment_id *list, size_t at, size_t count)
{
	size_t n = 1;
	while (at + n < count && list[at + n].segment == list[at].segment)
		n++;
	return n;
}

int64_t reading_visible_from(struct reading *r, enum retention_class retention, int64_t start_ms)
{
	int64_t lifetime_ms = retention_class_ms(retention), from;
	if (lifetime_ms == 0 || __builtin_sub_overflow(r->read->now_ms, lifetime_ms, &from))
		return start_ms;
	return from > start_ms ? from : start_ms;
}

/* ---- Looks ----------------------------------------------------------------------------------- */

bool lookup_begin(struct reading *r, struct lookup *lookup, const struct target *target)
{
	uint32_t shape = handle_shape(target->handle);
	unsigned columns = registry_columns(&r->engine->registry, shape);
	if (handle_column(target->handle) >= columns)
		return false;
	lookup->target = *target;
	lookup->ordinal = handle_ordinal(target->handle) % group_bands(columns);
	return true;
}

bool reading_same_group(struct reading *r, uint64_t handle, uint64_t other)
{
	uint32_t shape = handle_shape(handle);
	unsigned columns = registry_columns(&r->engine->registry, shape);
	if (handle_shape(other) != shape || columns == 0)
		return false;
	uint32_t bands = group_bands(columns);
	return handle_ordinal(handle) / bands == handle_ordinal(other) / bands;
}

bool reading_is_old(const struct reading *r)
{
	return engine_now_us(r->engine) - r->opened_us > SNAPSHOT_MAX_US;
}

static void lookup_clear(struct lookup *lookup)
{
	samples_reuse(&lookup->head, lookup->target.fields);
	lookup->refs.count = 0;
}

/* The heads' parts, and a snapshot that is no older, unless blocks are not needed: none of them is
 * so new. Looks of one band stand side by side. */
static int copy_heads(struct reading *r, const struct segment_id *segment, struct lookup *lookups,
		      size_t count, int64_t start_ms, bool *blocks)
{
	struct heads *heads = &r->engine->heads;
	const struct head *head = NULL;
	*blocks = false;
	pthread_rwlock_rdlock(&heads->lock);
	for (size_t i = 0; i < count; i++) {
		uint64_t handle = lookups[i].target.handle;
		if (i == 0 ||
		    handle_ordinal(handle) != handle_ordinal(lookups[i - 1].target.handle))
			head = heads_find(heads, segment, handle_shape(handle),
					  handle_ordinal(handle));
		if (head)
			head_copy(head, lookups[i].target.first_column, start_ms,
				  lookups[i].target.end_ms, &lookups[i].head);
		*blocks = *blocks || !head || head->blocks_end_ms >= start_ms;
	}
	bool stale = heads->epoch != r->reader->epoch;
	pthread_rwlock_unlock(&heads->lock);
	if (!*blocks)
		return 0;
	return stale || reading_is_old(r) ? reading_renew(r) : 0;
}

struct block_search {
	struct lookup *lookups;
	size_t count;
	int64_t start_ms;
	uint64_t bands; /* bit: some lookup is of this ordinal */
};

static int see_block(const struct block *block, void *context)
{
	const struct block_search *search = context;
	const struct block_meta *meta = &block->meta;
	if (meta->ordinal >= GROUP_BANDS_MAX)
		return ERR_DAMAGED;
	if (!(search->bands >> meta->ordinal & 1) || meta->last_ts_ms < search->start_ms ||
	    meta->first_ts_ms >= search->lookups[0].target.end_ms)
		return 0;
	for (size_t i = 0; i < search->count; i++) {
		struct lookup *lookup = &search->lookups[i];
		unsigned column = lookup->target.first_column;
		if (lookup->ordinal == meta->ordinal && column >= meta->first_column &&
		    column < (unsigned)meta->first_column + meta->columns)
			block_refs_add(&lookup->refs, block);
	}
	return 0;
}

int reading_lookup(struct reading *r, const struct segment_id *segment, struct lookup *lookups,
		   size_t count, int64_t start_ms)
{
	struct block_search search = {lookups, count, start_ms, 0};
	uint64_t extents = 0;
	bool blocks;
	for (size_t i = 0; i < count; i++) {
		lookup_clear(&lookups[i]);
		search.bands |= UINT64_C(1) << lookups[i].ordinal;
	}
	int err = copy_heads(r, segment, lookups, count, start_ms, &blocks);
	if (err)
		return err;
	uint64_t handle = lookups[0].target.handle;
	struct group_id id = engine_group_of(r->engine, segment, handle_shape(handle),
					     handle_ordinal(handle), NULL);
	r->looked = true;
	r->group = id;
	r->handle = handle;
	for (size_t i = 0; i < count; i++)
		samples_sort(&lookups[i].head);
	if (!blocks)
		return 0;
	err = group_each(r->extents, &id, see_block, &search, &extents);
	r->read->work.extents += extents;
	return err;
}

bool lookup_blocks_disjoint(const struct lookup *lookup)
{
	const struct block_refs *refs = &lookup->refs;
	for (size_t i = 1; i < refs->count; i++) {
		if (refs->list[i].block.meta.first_ts_ms <= refs->list[i - 1].block.meta.last_ts_ms)
			return false;
	}
	return true;
}
