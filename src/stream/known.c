#include "stream/known.h"

#include "base/grow.h"
#include "store/wait.h"

struct known_reading {
	struct stream_known *known;
	const struct stream_id *id;
	size_t waiting_max;
	struct errbuf *e;
	bool peeks; /* frames of chunks are not looked at */
};

static int known_see_made(struct known_reading *r, const struct store_cell *cell)
{
	struct stream_made made;
	int err = stream_made_decode(cell, &made);
	if (err)
		return errbuf_set(r->e, err, "the cell of a stream cannot be read");
	if (!stream_names_equal(&made.id.names, &r->id->names))
		return errbuf_set(r->e, ERR_DAMAGED,
				  "another stream whose names begin in the same way has its place");
	r->known->made = true;
	r->known->here = made.here;
	r->known->appended = made.appended;
	r->known->made_ms = made.made_ms;
	return 0;
}

static int known_see_deleted(struct stream_known *known, const struct store_cell *cell)
{
	uint64_t offset;
	int err = stream_deleted_decode(cell->value, &offset);
	if (err)
		return err;
	if (offset > known->deleted_to)
		known->deleted_to = offset;
	if (known->deleted_count < STREAM_NOTES_MAX)
		known->deleted[known->deleted_count++] = offset;
	return 0;
}

static int known_see_property(const struct store_cell *cell, void *owner)
{
	struct known_reading *r = owner;
	enum stream_property property;
	int err = 0;
	if (!streams_read_property(cell, &property))
		return 0;
	switch (property) {
	case STREAM_MADE:
		return known_see_made(r, cell);
	case STREAM_SEALED:
		err = stream_sealed_decode(cell->value, &r->known->sealed);
		break;
	case STREAM_KEPT:
		err = stream_kept_decode(cell->value, &r->known->kept);
		break;
	case STREAM_DELETED:
		err = known_see_deleted(r->known, cell);
		break;
	case STREAM_PROPERTIES:
		break;
	}
	return err ? errbuf_set(r->e, err, "which bytes are in blocks, or kept, cannot be read")
		   : 0;
}

static int known_see_chunk(const struct store_cell *cell, void *owner)
{
	struct known_reading *r = owner;
	struct stream_known *known = r->known;
	struct chunk_place place;
	int64_t received_ms;
	size_t frame_bytes;
	struct chunk_frame frame;
	int err = chunk_column_read(cell, &place);
	err = err ? err : chunk_cell_peek(cell, &received_ms, &frame_bytes);
	if (!err && !r->peeks)
		err = chunk_cell_decode(cell, &received_ms, &frame);
	if (err)
		return errbuf_set(r->e, err, "a chunk that waits cannot be read");
	offsets_add(&known->held, place.sequence_id - place.length, place.sequence_id);
	known->tail_data_bytes += place.length;
	known->tail_stored_bytes += frame_bytes;
	if (!known->oldest_ms || received_ms < known->oldest_ms)
		known->oldest_ms = received_ms;
	if (known->waiting_count == r->waiting_max)
		return 0;
	GROW(known->waiting, known->waiting_room, known->waiting_count + 1);
	known->waiting[known->waiting_count++] = (struct stream_waiting){place, frame_bytes};
	return 0;
}

static int known_read_properties(struct known_reading *r, const struct stream_site *site,
				 struct task_queue *queue)
{
	struct stream_parts key, from, to;
	streams_key(&key, r->id->tenant);
	streams_bound(&from, r->id, false);
	streams_bound(&to, r->id, true);
	const struct store_cell_scan scan = {
		.table = TABLE_STREAMS, .key = key.parts, .from = from.parts, .to = to.parts};
	return store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan,
				known_see_property, r, r->e);
}

static int known_end(struct stream_known *known, int err)
{
	known->kept_from = larger_of(known->kept.from, known->deleted_to);
	for (size_t i = 0; i < known->sealed.count && !err; i++)
		offsets_add(&known->held, known->sealed.list[i].begin, known->sealed.list[i].end);
	offsets_cut(&known->sealed, known->kept.from);
	for (size_t i = 0; i < known->sealed.count && !err; i++)
		offsets_add(&known->noted, known->sealed.list[i].begin, known->sealed.list[i].end);
	offsets_cut(&known->sealed, known->kept_from);
	offsets_cut(&known->held, known->kept_from);
	return err;
}

/* Chunks first: what goes from them into blocks meanwhile is then in both, and never in neither. */
static int known_read(struct known_reading *r, const struct stream_site *site,
		      struct task_queue *queue)
{
	struct stream_parts key;
	stream_known_release(r->known);
	chunk_tail_key(&key, r->id);
	int err = store_row_wait(site->store, queue, clock_wall_ms(site->clock), TABLE_CHUNK_TAIL,
				 &key.parts, known_see_chunk, r, r->e);
	err = err ? err : known_read_properties(r, site, queue);
	return known_end(r->known, err);
}

int stream_known_read(struct stream_known *known, const struct stream_site *site,
		      struct task_queue *queue, const struct stream_id *id, size_t waiting_max,
		      struct errbuf *e)
{
	return known_read(&(struct known_reading){known, id, waiting_max, e, false}, site, queue);
}

int stream_known_list(struct stream_known *known, const struct stream_site *site,
		      struct task_queue *queue, const struct stream_id *id, struct errbuf *e)
{
	return known_read(&(struct known_reading){known, id, 0, e, true}, site, queue);
}

int stream_known_read_blocks(struct stream_known *known, const struct stream_site *site,
			     struct task_queue *queue, const struct stream_id *id, struct errbuf *e)
{
	struct known_reading r = {known, id, 0, e, false};
	stream_known_release(known);
	return known_end(known, known_read_properties(&r, site, queue));
}

void stream_known_release(struct stream_known *known)
{
	offsets_release(&known->sealed);
	offsets_release(&known->held);
	offsets_release(&known->noted);
	offsets_release(&known->kept.going);
	mem_free(known->waiting);
	*known = (struct stream_known){.made = false};
}

/* ---- All of a tenant ------------------------------------------------------------------------- */

struct known_each {
	int (*each)(const struct stream_made *made, void *owner);
	void *owner;
	struct slice tenant;
	struct errbuf *e;
};

static int known_see_stream(const struct store_cell *cell, void *owner)
{
	struct known_each *walk = owner;
	enum stream_property property;
	struct stream_made made;
	if (!streams_read_property(cell, &property) || property != STREAM_MADE)
		return 0;
	int err = stream_made_decode(cell, &made);
	if (err)
		return errbuf_set(walk->e, err, "the cell of a stream cannot be read");
	made.id.tenant = walk->tenant;
	return walk->each(&made, walk->owner);
}

int stream_each(const struct stream_site *site, struct task_queue *queue, struct slice tenant,
		const struct stream_id *after,
		int (*each)(const struct stream_made *made, void *owner), void *owner,
		struct errbuf *e)
{
	struct known_each walk = {each, owner, tenant, e};
	struct stream_parts key, from;
	streams_key(&key, tenant);
	struct store_cell_scan scan = {.table = TABLE_STREAMS, .key = key.parts};
	if (after) {
		streams_bound(&from, after, true);
		scan.from = from.parts;
	}
	return store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan,
				known_see_stream, &walk, e);
}
