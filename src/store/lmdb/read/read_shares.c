/* How much of which series lies in which retention class: series of one group are looked up
 * together, segment by segment; of blocks the headers tell, heads are counted. */
#include "store/lmdb/read/read.h"

enum { SLICE_HANDLES = 4096 };

static void shares_add(struct store_share *share, uint64_t samples, uint64_t bytes,
		       int64_t oldest_ms)
{
	if (!samples)
		return;
	if (!share->samples || oldest_ms < share->oldest_ms)
		share->oldest_ms = oldest_ms;
	share->samples += samples;
	share->bytes += bytes;
}

static void shares_add_head(const struct samples *head, struct store_share *share)
{
	uint64_t samples = 0;
	for (unsigned f = 0; f < head->fields; f++) {
		for (size_t i = 0; i < head->count; i++)
			samples += head->types[f][i] != VALUE_NONE;
	}
	if (samples)
		shares_add(share, samples,
			   head->count * sizeof(int64_t) + samples * sizeof(uint64_t),
			   head->ts_ms[0]);
}

static int add_block(const struct lookup *lookup, const struct block *block, int64_t from_ms,
		     struct store_share *share)
{
	const struct target *t = &lookup->target;
	uint64_t samples = 0, bytes = block->times.len + block->body.len;
	int64_t first_ms = block->meta.first_ts_ms;
	for (unsigned f = 0; f < t->fields; f++) {
		struct block_summary summary;
		int err = block_read_summary(block, t->first_column - block->meta.first_column + f,
					     &summary);
		if (err)
			return err;
		samples += summary.count;
	}
	shares_add(share, samples, bytes * t->fields / block->meta.columns,
		   first_ms > from_ms ? first_ms : from_ms);
	return 0;
}

/* One segment of one class. */
static int add_segment(struct reading *r, struct store_shares *in, const struct segment_id *segment,
		       struct lookup *lookups, size_t count)
{
	enum retention_class retention = segment->sheet.retention;
	int64_t from_ms = reading_visible_from(r, retention, INT64_MIN);
	int err = reading_lookup(r, segment, lookups, count, from_ms);
	for (size_t i = 0; i < count && !err; i++) {
		const struct lookup *lookup = &lookups[i];
		struct store_share *share =
			&in->list[lookup->index * RETENTION_CLASSES + (size_t)retention];
		shares_add_head(&lookup->head, share);
		for (size_t b = 0; b < lookup->refs.count && !err; b++)
			err = add_block(lookup, &lookup->refs.list[b].block, from_ms, share);
	}
	return err;
}

/* The handles from `at` on that lie in one group become lookups; how many handles that took. */
static size_t shares_begin_group(struct reading *r, const struct store_shares *in, size_t at,
				 size_t *lookups)
{
	unsigned fields = (unsigned)schema[in->table].field_count;
	size_t taken = 0;
	*lookups = 0;
	for (; at + taken < in->handle_count && *lookups < LOOKUPS_MAX; taken++) {
		uint64_t handle = in->handles[at + taken];
		if (taken && !reading_same_group(r, in->handles[at], handle))
			break;
		struct target t = {.handle = handle,
				   .first_column = handle_column(handle) * fields,
				   .fields = fields,
				   .start_ms = INT64_MIN,
				   .end_ms = INT64_MAX};
		struct lookup *lookup = &r->scratch->lookups[*lookups];
		if (!lookup_begin(r, lookup, &t))
			continue;
		lookup->index = at + taken;
		++*lookups;
	}
	return taken;
}

static int shares_add_group(struct reading *r, struct store_shares *in, size_t segment_count,
			    size_t lookups)
{
	int err = 0;
	for (size_t s = 0; s < segment_count && lookups && !err; s++)
		err = add_segment(r, in, &r->segments[s], r->scratch->lookups, lookups);
	return err;
}

/* Token: the handle that comes next, u64. */
int reading_shares(struct reading *r, struct store_request *request)
{
	struct store_shares *in = &request->shares;
	size_t segment_count, count = 0;
	uint64_t next = 0;
	if (request->token.len == sizeof(next))
		memcpy(&next, request->token.bytes, sizeof(next));
	in->list = arena_zalloc(&r->read->arena,
				(in->handle_count * RETENTION_CLASSES + 1) * sizeof(*in->list));
	if (!in->list)
		return ERR_LIMIT;
	request->more = false;
	int err = reading_list_segments(r, in->table, in->period_ms, INT64_MIN, INT64_MAX,
					&segment_count);
	while (next < in->handle_count && !err) {
		if (count >= SLICE_HANDLES || (count && count >= r->budget / RETENTION_CLASSES)) {
			request->more = true;
			break;
		}
		size_t lookups, taken = shares_begin_group(r, in, next, &lookups);
		err = reading_check_time(r);
		if (!err)
			err = shares_add_group(r, in, segment_count, lookups);
		count += taken;
		next += taken;
	}
	in->next_handle = next;
	request->token.len = sizeof(next);
	memcpy(request->token.bytes, &next, sizeof(next));
	return err;
}
