#include "stream/retain.h"

#include "base/log.h"
#include "base/stats.h"
#include "store/wait.h"
#include "stream/heads.h"

enum {
	RETAIN_WRITE_MAX_BYTES = 1 << 20,
	RETAIN_ENOUGH = 1, /* stops a scan, without an error */
	RETAIN_EMPTY_MS = 86400000,
};

struct retain {
	const struct stream_site *site;
	struct task_queue *queue;
	const struct stream_id *id;
	const struct stream_retain_rules *rules;
	struct errbuf *e;
	int64_t stamp_us; /* taken before anything is read */
	struct stream_known known;
	struct store_write *write;
	uint64_t from;      /* the new offset */
	struct offsets old; /* what is in blocks that are too old */
};

static int retain_submit(struct retain *r)
{
	if (clock_wall_ms(r->site->clock) + r->rules->write_max_ms >= r->rules->until_ms)
		return ERR_CANCELLED;
	int err = store_write_wait_known(r->write, r->queue);
	store_write_reset(r->write);
	return err ? errbuf_set(r->e, err, "%s", err_text(err)) : 0;
}

/* ---- Removing -------------------------------------------------------------------------------- */

/* Removes what ends in a part, at the offset or before it. */
static int retain_remove_part(struct retain *r, uint64_t part, uint64_t offset)
{
	static const struct store_parts begin;
	struct stream_parts key, blocks, heads, first;
	chunk_sink_key(&key, r->id, part);
	chunk_bound(&blocks, offset);
	int err = store_log_remove(r->write, TABLE_CHUNK_SINK, &key.parts, &begin, &blocks.parts);
	for (int kind = CHUNK_HEAD_RECEIVED; kind < CHUNK_HEAD_KINDS && !err; kind++) {
		chunk_head_bound(&heads, (enum chunk_head_kind)kind, offset);
		chunk_head_bound(&first, (enum chunk_head_kind)kind, 0);
		err = store_log_remove(r->write, TABLE_CHUNK_HEADS, &key.parts, &first.parts,
				       &heads.parts);
	}
	ASSERT(!err); /* the first of a write */
	return retain_submit(r);
}

static int retain_remove(struct retain *r)
{
	const struct offsets *going = &r->known.kept.going;
	int err = 0;
	for (size_t i = 0; i < going->count; i++)
		for (uint64_t part = going->list[i].begin >> CHUNK_SINK_PART_BITS;
		     part <= going->list[i].end >> CHUNK_SINK_PART_BITS && !err; part++)
			err = retain_remove_part(r, part, r->known.kept.from);
	return err;
}

/* ---- Raising --------------------------------------------------------------------------------- */

static int retain_see_head(const struct chunk_place *place, struct slice value, void *owner)
{
	struct retain *r = owner;
	struct chunk_received received;
	int err = chunk_received_decode(value, &received);
	if (err)
		return errbuf_set(r->e, err, "the head of a block cannot be read");
	if (received.last_ms >= r->rules->before_ms)
		return RETAIN_ENOUGH;
	offsets_add(&r->old, place->sequence_id - place->length, place->sequence_id);
	return 0;
}

/* To the end of the last block that is too old and before which nothing else is held. Between two
 * such blocks a hole may have been filled: by a chunk that waits, or by a block that goes on behind
 * the second one, which an owner has written who knew less. */
static void retain_raise(struct retain *r)
{
	struct offsets kept = {.list = NULL};
	offsets_subtract(&r->known.held, &r->old, &kept);
	for (size_t i = 0; i < r->old.count; i++)
		if (!kept.count || r->old.list[i].end <= kept.list[0].begin)
			r->from = larger_of(r->from, r->old.list[i].end);
	offsets_release(&kept);
}

/* Through the heads of blocks, from the first that is kept on. */
static int retain_look(struct retain *r)
{
	r->from = r->known.kept_from;
	if (r->rules->before_ms == INT64_MIN)
		return 0;
	int err = chunk_heads_each(r->site, r->queue, r->id, CHUNK_HEAD_RECEIVED, &r->known.sealed,
				   retain_see_head, r, r->e);
	if (err && err != RETAIN_ENOUGH)
		return err;
	retain_raise(r);
	return 0;
}

static int retain_note(struct retain *r, const struct stream_kept *kept)
{
	struct stream_parts key, column;
	struct buf value;
	buf_init(&value, RETAIN_WRITE_MAX_BYTES);
	stream_kept_encode(kept, &value);
	streams_key(&key, r->id->tenant);
	streams_column(&column, r->id, STREAM_KEPT);
	int err = store_cell_put(r->write, TABLE_STREAMS, &key.parts, &column.parts,
				 buf_slice(&value), r->stamp_us, 0);
	ASSERT(!err && !value.failed); /* of holes there are some thousands at most */
	buf_release(&value);
	return retain_submit(r);
}

/* ---- Forgetting ------------------------------------------------------------------------------ */

/* Adds the deletion of notes of deletions. */
static void retain_add_forgotten_notes(struct store_write *write, const struct stream_id *id,
				       const struct stream_known *known, int64_t stamp_us)
{
	struct stream_parts key, column;
	int err = 0;
	streams_key(&key, id->tenant);
	for (size_t i = 0; i < known->deleted_count && !err; i++) {
		streams_deleted_column(&column, id, known->deleted[i]);
		err = store_cell_delete(write, TABLE_STREAMS, &key.parts, &column.parts, stamp_us);
	}
	ASSERT(!err); /* some cells */
}

/* Notes that a greater one has made idle. A failure is none: readers take the greatest. */
static void retain_forget_notes(const struct stream_site *site, struct task_queue *queue,
				const struct stream_id *id, const struct stream_known *known)
{
	struct store_write *write = store_write_new(site->store, RETAIN_WRITE_MAX_BYTES);
	retain_add_forgotten_notes(write, id, known, store_stamp(site->store));
	int err = store_write_wait_known(write, queue);
	if (err)
		log_debug("notes of deletions stay that count no more: %s", err_text(err));
	store_write_free(write);
}

/* A collector may have begun to write to it before this pass, and its write may land behind what
 * the pass has read, or behind this deletion (collector.c). So the note that the stream is there
 * goes under a stamp in the middle of the time for which it was empty: one that was put before is
 * gone, and one that is put now stays, however far two clocks are apart. */
static int retain_forget(struct retain *r)
{
	struct stream_parts key, column;
	int err = 0;
	streams_key(&key, r->id->tenant);
	for (int property = 0; property < STREAM_PROPERTIES && !err; property++) {
		int64_t stamp_us = r->stamp_us;
		if (property == STREAM_MADE)
			stamp_us -= RETAIN_EMPTY_MS / 2 * INT64_C(1000);
		streams_column(&column, r->id, (enum stream_property)property);
		err = store_cell_delete(r->write, TABLE_STREAMS, &key.parts, &column.parts,
					stamp_us);
	}
	retain_add_forgotten_notes(r->write, r->id, &r->known, r->stamp_us);
	ASSERT(!err); /* some cells */
	return retain_submit(r);
}

/* Blocks below the new offset; what is noted of them later begins there. */
static void retain_list_going(const struct retain *r, struct offsets *going)
{
	const struct offsets *noted = &r->known.noted;
	for (size_t i = 0; i < noted->count && noted->list[i].begin < r->from; i++)
		offsets_add(going, noted->list[i].begin,
			    noted->list[i].end < r->from ? noted->list[i].end : r->from);
}

/* Nothing is left, nor about to go, and that for long. */
static bool retain_is_over(const struct retain *r, const struct stream_kept *kept)
{
	return kept->empty_ms && !kept->going.count && !r->known.kept.going.count &&
	       !r->known.tail_data_bytes &&
	       clock_age_ms(r->site->clock) - kept->empty_ms >= RETAIN_EMPTY_MS;
}

/* Deleted bytes may have been received at any time. */
static int64_t retain_before_ms(const struct retain *r)
{
	return r->known.deleted_to > r->known.kept.from ? clock_wall_ms(r->site->clock)
							: r->rules->before_ms;
}

static void retain_count(const struct offsets *going)
{
	for (size_t i = 0; i < going->count; i++)
		stat_add(STAT_chunks_removed_bytes,
			 (int64_t)(going->list[i].end - going->list[i].begin));
}

static int retain_settle(struct retain *r, struct stream_kept *kept,
			 struct stream_retained *retained)
{
	const struct stream_kept *noted = &r->known.kept;
	retain_list_going(r, &kept->going);
	offsets_cut(&r->known.held, r->from);
	if (!r->known.held.count)
		kept->empty_ms = noted->empty_ms ? noted->empty_ms : clock_age_ms(r->site->clock);
	retained->raised = kept->from > noted->from;
	if (retained->raised)
		kept->before_ms = larger_of(kept->before_ms, retain_before_ms(r));
	retained->waits = retained->raised && r->known.tail_data_bytes;
	/* With as many notes there may be more: a later pass forgets the stream. */
	bool is_over = retain_is_over(r, kept);
	retained->forgotten = is_over && r->known.deleted_count < STREAM_NOTES_MAX;
	if (retained->forgotten)
		return retain_forget(r);
	if (is_over)
		retain_forget_notes(r->site, r->queue, r->id, &r->known);
	bool same = !retained->raised && kept->empty_ms == noted->empty_ms && !noted->going.count;
	int err = same ? 0 : retain_note(r, kept);
	if (!err && retained->raised)
		retain_count(&kept->going);
	return err;
}

static int retain_pass(struct retain *r, struct stream_retained *retained)
{
	int err = stream_known_read(&r->known, r->site, r->queue, r->id, 0, r->e);
	err = err ? err : retain_remove(r);
	err = err ? err : retain_look(r);
	if (err)
		return err;
	struct stream_kept kept = {.from = r->from, .before_ms = r->known.kept.before_ms};
	err = retain_settle(r, &kept, retained);
	offsets_release(&kept.going);
	return err;
}

int stream_retain(const struct stream_site *site, struct task_queue *queue,
		  const struct stream_id *id, const struct stream_retain_rules *rules,
		  struct stream_retained *retained, struct errbuf *e)
{
	struct retain r = {.site = site,
			   .queue = queue,
			   .id = id,
			   .rules = rules,
			   .e = e,
			   .stamp_us = store_stamp(site->store)};
	*retained = (struct stream_retained){.raised = false};
	r.write = store_write_new(site->store, RETAIN_WRITE_MAX_BYTES);
	int err = retain_pass(&r, retained);
	store_write_free(r.write);
	offsets_release(&r.old);
	stream_known_release(&r.known);
	return err;
}

/* ---- Deleting -------------------------------------------------------------------------------- */

static uint64_t retain_bytes(const struct offsets *held)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < held->count; i++)
		bytes += held->list[i].end - held->list[i].begin;
	return bytes;
}

/* A process may stand for long between reading and writing, and know of no later deletion. So its
 * note does not take the place of another one. Lesser ones go when the new one is durable. */
static int retain_note_deleted(const struct stream_site *site, struct task_queue *queue,
			       const struct stream_id *id, uint64_t offset,
			       const struct stream_known *known, struct errbuf *e)
{
	struct store_write *write = store_write_new(site->store, RETAIN_WRITE_MAX_BYTES);
	struct stream_parts key, column;
	struct buf value;
	buf_init(&value, 100);
	stream_deleted_encode(offset, &value);
	streams_key(&key, id->tenant);
	streams_deleted_column(&column, id, offset);
	int err = store_cell_put(write, TABLE_STREAMS, &key.parts, &column.parts, buf_slice(&value),
				 store_stamp(site->store), 0);
	ASSERT(!err); /* some bytes */
	err = store_write_wait_known(write, queue);
	buf_release(&value);
	store_write_free(write);
	if (!err && known->deleted_count)
		retain_forget_notes(site, queue, id, known);
	return err ? errbuf_set(e, err, "it is not known whether this is stored: %s", err_text(err))
		   : 0;
}

int stream_delete(const struct stream_site *site, struct task_queue *queue,
		  const struct stream_id *id, bool dry_run, uint64_t *bytes, struct errbuf *e)
{
	struct stream_known known = {.made = false};
	int err = stream_known_read(&known, site, queue, id, 0, e);
	if (!err && !known.made)
		err = errbuf_set(e, ERR_NOT_FOUND, "there is no such stream");
	*bytes = retain_bytes(&known.held);
	if (!err && !dry_run && known.held.count)
		err = retain_note_deleted(site, queue, id,
					  known.held.list[known.held.count - 1].end, &known, e);
	stream_known_release(&known);
	return err;
}
