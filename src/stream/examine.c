/* What the collector has to wait for: what is known of streams, and the bytes that new ones are
 * compared with. */
#include "stream/collector_private.h"

#include "store/wait.h"
#include "stream/known.h"

enum { EXAMINE_ENDS_MAX_BYTES = 1 << 20 /* of the ends of records of one chunk */ };

struct examine {
	const struct stream_site *site;
	struct task_queue *queue;
	int64_t now_ms;
	struct errbuf e;

	/* What is read at present. */
	struct collector_stream *stream;
	struct collector_incarnation *place;
	uint64_t newest_here; /* of the incarnations that the collector made; 0: none */
	int64_t newest_ms;
	uint64_t counted;

	struct stream_chunk *chunk;
	struct buf new_bytes, held_bytes;
	struct arena arena;
	struct chunk_data new_data;
	bool unreadable; /* what is held cannot be compared: it counts as not held */
};

/* ---- What is known of a stream ----------------------------------------------------------------
 */

static int examine_see_name(const struct store_cell *cell, void *owner)
{
	struct examine *x = owner;
	enum stream_property property;
	struct stream_made made;
	if (!streams_read_property(cell, &property) || property != STREAM_MADE)
		return 0;
	int err = stream_made_decode(cell, &made);
	if (err || !made.here || !stream_names_equal(&made.id.names, &x->stream->names) ||
	    (x->newest_here && made.made_ms <= x->newest_ms))
		return err;
	x->newest_here = made.id.incarnation;
	x->newest_ms = made.made_ms;
	return 0;
}

/* Which incarnation the chunks of a sender go to that knows of none. */
static int examine_read_present(struct examine *x)
{
	struct stream_parts key, from, to;
	streams_key(&key, x->stream->tenant->tenant);
	streams_names_bound(&from, &x->stream->names, false);
	streams_names_bound(&to, &x->stream->names, true);
	const struct store_cell_scan scan = {
		.table = TABLE_STREAMS, .key = key.parts, .from = from.parts, .to = to.parts};
	x->newest_here = 0;
	int err = store_cells_wait(x->site->store, x->queue, x->now_ms, &scan, examine_see_name, x,
				   &x->e);
	if (err)
		return err;
	if (x->newest_here)
		x->stream->present = collector_find_incarnation(x->stream, x->newest_here);
	x->stream->present_read = true;
	return 0;
}

static int examine_read_place(struct examine *x)
{
	struct stream_known known = {.made = false};
	const struct stream_id id = collector_id_of(x->stream, x->place);
	int err = stream_known_read(&known, x->site, x->queue, &id, 0, &x->e);
	if (!err) {
		x->place->made = known.made;
		x->place->here = known.here;
		x->place->read = true;
		offsets_move(&x->place->held, &known.held);
	}
	stream_known_release(&known);
	return err;
}

static int examine_count_stream(const struct store_cell *cell, void *owner)
{
	struct examine *x = owner;
	enum stream_property property;
	x->counted += streams_read_property(cell, &property) && property == STREAM_MADE;
	return 0;
}

static int examine_count_streams(struct examine *x)
{
	struct stream_parts key;
	struct collector_tenant *tenant = x->stream->tenant;
	streams_key(&key, tenant->tenant);
	x->counted = 0;
	int err = store_row_wait(x->site->store, x->queue, x->now_ms, TABLE_STREAMS, &key.parts,
				 examine_count_stream, x, &x->e);
	if (!err)
		atomic_store(&tenant->stored, (int64_t)x->counted);
	return err;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static uint64_t examine_first_difference(const char *a, const char *b, uint64_t len)
{
	uint64_t at = 0;
	while (at < len && a[at] == b[at])
		at++;
	return at;
}

/* ERR_EXISTS: it has other bytes. */
static int examine_compare(struct examine *x, uint64_t held_begin, struct slice held)
{
	uint64_t begin = chunk_begin(&x->chunk->frame.fields);
	uint64_t from = held_begin > begin ? held_begin : begin;
	uint64_t held_end = held_begin + held.len, end = begin + x->new_data.data.len;
	uint64_t len = (held_end < end ? held_end : end) - from;
	const char *a = held.data + (from - held_begin),
		   *b = x->new_data.data.data + (from - begin);
	if (memcmp(a, b, (size_t)len) == 0)
		return 0;
	x->chunk->other_at = from + examine_first_difference(a, b, len);
	return ERR_EXISTS;
}

static int examine_see_held(const struct store_cell *cell, void *owner)
{
	struct examine *x = owner;
	const struct chunk_fields *new = &x->chunk->frame.fields;
	struct chunk_place place;
	struct chunk_frame frame;
	struct chunk_data data;
	int64_t received_ms;
	int err = chunk_column_read(cell, &place);
	if (err || place.sequence_id - place.length >= new->sequence_id ||
	    place.sequence_id <= chunk_begin(new))
		return err;
	arena_reset(&x->arena);
	if (chunk_cell_decode(cell, &received_ms, &frame) ||
	    chunk_frame_unpack(&frame, &x->held_bytes, &x->arena, &data)) {
		x->unreadable = true;
		return 0;
	}
	return examine_compare(x, place.sequence_id - place.length, data.data);
}

/* Of a row, the chunks that may have bytes of the new one. */
static int examine_compare_row(struct examine *x, enum table table, const struct stream_parts *key)
{
	struct stream_parts from, to;
	const struct chunk_fields *new = &x->chunk->frame.fields;
	chunk_bound(&from, chunk_begin(new));
	chunk_bound(&to, new->sequence_id + CHUNK_DATA_MAX_BYTES);
	const struct store_cell_scan scan = {
		.table = table, .key = key->parts, .from = from.parts, .to = to.parts};
	return store_cells_wait(x->site->store, x->queue, x->now_ms, &scan, examine_see_held, x,
				&x->e);
}

static int examine_compare_all(struct examine *x)
{
	const struct chunk_fields *new = &x->chunk->frame.fields;
	const struct stream_id id = collector_id_of(x->stream, x->place);
	struct stream_parts key;
	chunk_tail_key(&key, &id);
	int err = examine_compare_row(x, TABLE_CHUNK_TAIL, &key);
	uint64_t last = (new->sequence_id + CHUNK_DATA_MAX_BYTES) >> CHUNK_SINK_PART_BITS;
	for (uint64_t part = chunk_begin(new) >> CHUNK_SINK_PART_BITS; part <= last && !err;
	     part++) {
		chunk_sink_key(&key, &id, part);
		err = examine_compare_row(x, TABLE_CHUNK_SINK, &key);
	}
	return err;
}

/* A chunk that overlaps what is held. Its own bytes may not be what it says. */
static int examine_overlap(struct examine *x)
{
	struct stream_chunk *chunk = x->chunk;
	struct arena arena;
	x->unreadable = false;
	arena_init(&arena, EXAMINE_ENDS_MAX_BYTES);
	int err = chunk_frame_unpack(&chunk->frame, &x->new_bytes, &arena, &x->new_data);
	if (err) {
		chunk->outcome = STREAM_FAILED;
		chunk->err = err;
	} else {
		err = examine_compare_all(x);
		if (err == ERR_EXISTS)
			chunk->outcome = STREAM_OTHER;
		else if (!err && !x->unreadable &&
			 offsets_cover(&x->place->held, chunk_begin(&chunk->frame.fields),
				       chunk->frame.fields.sequence_id))
			chunk->outcome = STREAM_HELD;
	}
	arena_release(&arena);
	return chunk->outcome == STREAM_WAITS ? err : 0;
}

/* ---- A round --------------------------------------------------------------------------------- */

static bool examine_meets(const struct stream_chunk *chunk,
			  const struct collector_incarnation *place)
{
	return offsets_meet(&place->held, chunk_begin(&chunk->frame.fields),
			    chunk->frame.fields.sequence_id);
}

bool collector_must_examine(const struct stream_chunk *chunk)
{
	const struct collector_stream *stream = chunk->stream;
	const struct collector_incarnation *place = stream->present;
	if (!chunk->id.incarnation && !stream->present_read)
		return true;
	if (chunk->id.incarnation)
		for (place = stream->incarnations;
		     place && place->incarnation != chunk->id.incarnation;)
			place = place->next;
	if (chunk->id.incarnation && (!place || !place->read))
		return true;
	if (!place || !place->made)
		return atomic_load(&stream->tenant->stored) < 0;
	return !place->read || examine_meets(chunk, place);
}

static int examine_chunk(struct examine *x, struct stream_chunk *chunk)
{
	int err = 0;
	x->chunk = chunk;
	x->stream = chunk->stream;
	if (!chunk->id.incarnation && !x->stream->present_read)
		err = examine_read_present(x);
	if (err)
		return err;
	x->place = chunk->id.incarnation
			   ? collector_find_incarnation(x->stream, chunk->id.incarnation)
			   : x->stream->present;
	if (x->place && !x->place->read)
		err = examine_read_place(x);
	if (!err && (!x->place || !x->place->made) && atomic_load(&x->stream->tenant->stored) < 0)
		err = examine_count_streams(x);
	if (!err && x->place && examine_meets(chunk, x->place))
		err = examine_overlap(x);
	return err;
}

int collector_examine(struct stream_submission *submission, struct task_queue *queue)
{
	const struct stream_site *site = submission->collector->site;
	struct examine x = {.site = site, .queue = queue, .now_ms = clock_wall_ms(site->clock)};
	int err = 0;
	arena_init(&x.arena, EXAMINE_ENDS_MAX_BYTES);
	buf_init(&x.new_bytes, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	buf_init(&x.held_bytes, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	for (size_t i = 0; i < submission->count && !err; i++)
		if (submission->chunks[i].asked)
			err = examine_chunk(&x, &submission->chunks[i]);
	buf_release(&x.new_bytes);
	buf_release(&x.held_bytes);
	arena_release(&x.arena);
	return err;
}
