/* What the collector has to wait for: what is known of streams, and the bytes that new ones are
 * compared with. */
#include "stream/collector_private.h"

#include "store/wait.h"
#include "stream/chunk_reader.h"

enum {
	EXAMINE_ENDS_MAX_BYTES = 1 << 20,    /* of the ends of records of one chunk */
	EXAMINE_RECORDS_MAX_BYTES = 4 << 20, /* at the end of a stream, whose records are read */
	EXAMINE_COUNTED_MS = 60000, /* so long a tenant that has too many streams is not counted */
};

struct examine {
	struct collector *collector;
	const struct stream_site *site;
	struct task_queue *queue;
	int64_t now_ms;
	struct errbuf e;

	/* What is read at present. */
	struct collector_stream *stream;
	struct collector_incarnation *place;
	/* Of the incarnations that the collector made the newest, and the one before; 0: none. */
	struct examine_here {
		uint64_t incarnation;
		int64_t made_ms;
	} newest, second;
	struct examine_here appended; /* the newest of those that are appended to */
	uint64_t counted;

	struct stream_chunk *chunk;
	struct buf new_bytes;
	struct chunk_data new_data;
	struct chunk_reader reader;          /* of `reads` */
	struct collector_incarnation *reads; /* NULL: of nothing */
	struct stream_id reader_id;
	struct offsets same; /* of the chunk, what is there with the same bytes */
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
	if (err || !stream_names_equal(&made.id.names, &x->stream->names))
		return err;
	const struct examine_here here = {made.id.incarnation, made.made_ms};
	if (made.appended && (!x->appended.incarnation || here.made_ms > x->appended.made_ms))
		x->appended = here;
	if (!made.here)
		return 0;
	if (!x->newest.incarnation || here.made_ms > x->newest.made_ms) {
		x->second = x->newest;
		x->newest = here;
	} else if (!x->second.incarnation || here.made_ms > x->second.made_ms) {
		x->second = here;
	}
	return 0;
}

/* Which incarnation the chunks of a sender go to that knows of none, and which one is appended to.
 */
static int examine_read_present(struct examine *x)
{
	struct stream_parts key, from, to;
	streams_key(&key, x->stream->tenant->tenant);
	streams_names_bound(&from, &x->stream->names, false);
	streams_names_bound(&to, &x->stream->names, true);
	const struct store_cell_scan scan = {
		.table = TABLE_STREAMS, .key = key.parts, .from = from.parts, .to = to.parts};
	x->newest = x->second = x->appended = (struct examine_here){0, 0};
	int err = store_cells_wait(x->site->store, x->queue, x->now_ms, &scan, examine_see_name, x,
				   &x->e);
	if (err)
		return err;
	if (x->newest.incarnation)
		x->stream->present = collector_find_incarnation(x->stream, x->newest.incarnation);
	if (x->second.incarnation)
		x->stream->previous = collector_find_incarnation(x->stream, x->second.incarnation);
	if (!x->stream->appended && !store_is_shared(x->site->store))
		x->stream->appended = x->appended.incarnation;
	x->stream->made_ms =
		x->newest.made_ms > x->appended.made_ms ? x->newest.made_ms : x->appended.made_ms;
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
		x->place->sure_ms = clock_mono_ms(x->site->clock);
		x->place->here = known.here;
		x->place->appended = known.appended;
		x->place->made_ms = known.made_ms;
		x->place->read = true;
		x->place->kept_from = known.kept_from;
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
	if (err)
		return err;
	atomic_store(&tenant->stored, (int64_t)x->counted);
	atomic_store(&tenant->counted_ms, clock_mono_ms(x->site->clock));
	return 0;
}

/* Before a stream becomes one more of its tenant, or is refused: some may have been forgotten since
 * they were counted, by whichever process owns them. */
static bool examine_must_count(const struct collector *collector, const struct stream_chunk *chunk,
			       const struct collector_incarnation *place)
{
	const struct collector_tenant *tenant = chunk->stream->tenant;
	int64_t counted_ms = atomic_load(&tenant->counted_ms);
	int64_t streams_max = (int64_t)collector->site->limits.streams_max;
	if (place && place->made)
		return false;
	return !counted_ms ||
	       (atomic_load(&tenant->stored) >= streams_max &&
		clock_mono_ms(collector->site->clock) - counted_ms >= EXAMINE_COUNTED_MS);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static uint64_t examine_first_difference(const char *a, const char *b, uint64_t len)
{
	uint64_t at = 0;
	while (at < len && a[at] == b[at])
		at++;
	return at;
}

/* What is held lies within the chunk. ERR_EXISTS: it has other bytes. */
static int examine_compare(struct examine *x, uint64_t begin, struct slice held)
{
	const char *sent = x->new_data.data.data + (begin - chunk_begin(&x->chunk->frame.fields));
	if (memcmp(held.data, sent, held.len) == 0) {
		offsets_add(&x->same, begin, begin + held.len);
		return 0;
	}
	x->chunk->other_at = begin + examine_first_difference(held.data, sent, held.len);
	return ERR_EXISTS;
}

/* One reader for all chunks of an incarnation that follow each other: often they lie side by side.
 */
static struct chunk_reader *examine_reader(struct examine *x)
{
	static const struct offsets none;
	if (x->reads == x->place)
		return &x->reader;
	if (x->reads)
		chunk_reader_release(&x->reader);
	x->reads = x->place;
	x->reader_id = collector_id_of(x->stream, x->place);
	chunk_reader_init(&x->reader, x->site, x->queue, &x->reader_id, &none, &x->place->held, 0,
			  0, &x->e);
	return &x->reader;
}

/* A chunk that cannot be unpacked counts as not there: what comes again takes its place (seal.h).
 * Nothing takes the place of a block. */
static int examine_compare_all(struct examine *x)
{
	struct chunk_reader *reader = examine_reader(x);
	struct stream_piece piece;
	int err;
	reader->at = chunk_begin(&x->chunk->frame.fields);
	reader->end = x->chunk->frame.fields.sequence_id;
	do {
		err = chunk_reader_next_readable(reader, &piece);
		if (!err && piece.data.len)
			err = examine_compare(x, piece.begin, piece.data);
	} while (!err && piece.data.len);
	return err;
}

/* Bytes that have gone cannot be compared. A sender that says its incarnation has sent the same
 * bytes again. Another sender has most likely begun with another file. If it has not, some bytes
 * are stored twice, which does less harm than a loss. */
static bool examine_begins_anew(const struct examine *x)
{
	return !x->chunk->id.incarnation &&
	       chunk_begin(&x->chunk->frame.fields) < x->place->kept_from;
}

/* A chunk that overlaps what is held in x->place, or was once. It is held if all of its bytes were
 * compared, or have gone. */
static int examine_overlap(struct examine *x, enum stream_outcome *outcome)
{
	const struct chunk_fields *fields = &x->chunk->frame.fields;
	struct arena arena;
	if (examine_begins_anew(x)) {
		*outcome = STREAM_OTHER;
		return 0;
	}
	arena_init(&arena, EXAMINE_ENDS_MAX_BYTES);
	offsets_release(&x->same);
	int err = chunk_frame_unpack(&x->chunk->frame, &x->new_bytes, &arena, &x->new_data);
	*outcome = err ? STREAM_UNREADABLE : STREAM_WAITS;
	if (chunk_begin(fields) < x->place->kept_from)
		offsets_add(&x->same, chunk_begin(fields), x->place->kept_from);
	if (!err)
		err = examine_compare_all(x);
	if (!err && offsets_cover(&x->same, chunk_begin(fields), fields->sequence_id)) {
		*outcome = STREAM_HELD;
		/* Another process may have taken some of it. */
		offsets_add(&x->place->held, chunk_begin(fields), fields->sequence_id);
		offsets_cut(&x->place->held, x->place->kept_from);
	}
	if (err == ERR_EXISTS)
		*outcome = STREAM_OTHER;
	arena_release(&arena);
	return *outcome == STREAM_WAITS ? err : 0;
}

/* ---- A round --------------------------------------------------------------------------------- */

static bool examine_meets(const struct stream_chunk *chunk,
			  const struct collector_incarnation *place)
{
	return chunk_begin(&chunk->frame.fields) < place->kept_from ||
	       offsets_meet(&place->held, chunk_begin(&chunk->frame.fields),
			    chunk->frame.fields.sequence_id);
}

/* It neither overlaps nor touches what is held. A sender that knows of no incarnations, and was not
 * answered, may have sent it again though its stream has begun anew meanwhile. */
static bool examine_is_apart(const struct stream_chunk *chunk,
			     const struct collector_incarnation *place)
{
	return offsets_count_with(&place->held, chunk_begin(&chunk->frame.fields),
				  chunk->frame.fields.sequence_id) > place->held.count;
}

static const struct collector_incarnation *examine_place_of(const struct stream_chunk *chunk)
{
	const struct collector_incarnation *place = chunk->stream->incarnations;
	if (!chunk->id.incarnation)
		return chunk->stream->present;
	while (place && place->incarnation != chunk->id.incarnation)
		place = place->next;
	return place;
}

static bool examine_has_repeated(const struct stream_append *append,
				 const struct collector_incarnation *place)
{
	for (size_t i = 0; i < append->count; i++)
		if (recent_has(&place->recent, append->hashes[i]))
			return true;
	return false;
}

static bool examine_must_append(const struct collector *collector, const struct stream_chunk *chunk)
{
	const struct collector_stream *stream = chunk->stream;
	const struct collector_incarnation *place = collector_appended(stream);
	if (stream->appended ? !place || !place->read : !stream->present_read)
		return true;
	if (examine_must_count(collector, chunk, place))
		return true;
	return place && examine_has_repeated(chunk->append, place);
}

bool collector_must_examine(const struct collector *collector, const struct stream_chunk *chunk)
{
	if (chunk->append)
		return examine_must_append(collector, chunk);
	const struct collector_stream *stream = chunk->stream;
	const struct collector_incarnation *place = examine_place_of(chunk);
	if (chunk->id.incarnation ? !place : !stream->present_read)
		return true;
	if (place && !place->read)
		return true;
	if (examine_must_count(collector, chunk, place))
		return true;
	if (!place)
		return false;
	return examine_meets(chunk, place) ||
	       (!chunk->id.incarnation && stream->previous && examine_is_apart(chunk, place));
}

/* Whether it is held in the incarnation before. */
static int examine_previous(struct examine *x)
{
	enum stream_outcome outcome = STREAM_WAITS;
	x->place = x->stream->previous;
	int err = x->place->read ? 0 : examine_read_place(x);
	if (!err && examine_meets(x->chunk, x->place))
		err = examine_overlap(x, &outcome);
	if (outcome == STREAM_HELD) {
		x->chunk->outcome = STREAM_HELD;
		x->chunk->place = x->place;
	}
	return err;
}

/* ---- Appending ------------------------------------------------------------------------------- */

static void examine_see_records(struct examine *x, const struct stream_piece *piece)
{
	size_t at = 0, end;
	bool whole = !piece->continues;
	for (size_t i = 0; at < piece->data.len; i++, at = end) {
		const char *from = piece->data.data + at;
		const char *newline = memchr(from, '\n', piece->data.len - at);
		if (piece->fields.lines ? !newline : i >= piece->end_count)
			return;
		end = piece->fields.lines ? (size_t)(newline + 1 - piece->data.data)
					  : piece->ends[i];
		if (whole)
			collector_remember(x->collector, x->place,
					   collector_hash_record(x->collector,
								 (struct slice){from, end - at}));
		whole = true;
	}
}

/* Remembers the records at the end of what is held. A record that cannot be read is not known when
 * it comes again. */
static int examine_read_records(struct examine *x)
{
	static const struct offsets none;
	const struct offsets *held = &x->place->held;
	uint64_t end = held->count ? held->list[held->count - 1].end : 0;
	uint64_t from = end > EXAMINE_RECORDS_MAX_BYTES ? end - EXAMINE_RECORDS_MAX_BYTES : 0;
	const struct stream_id id = collector_id_of(x->stream, x->place);
	struct chunk_reader reader;
	struct stream_piece piece;
	int err;
	chunk_reader_init(&reader, x->site, x->queue, &id, &none, held, from, end, &x->e);
	do {
		err = chunk_reader_next_readable(&reader, &piece);
		if (!err && piece.data.len)
			examine_see_records(x, &piece);
	} while (!err && piece.data.len);
	chunk_reader_release(&reader);
	if (err != ERR_DAMAGED && err != ERR_VERSION)
		return err;
	x->e.text[0] = 0;
	return 0;
}

/* Packs the records that are not held. */
static int examine_repack(const struct stream_append *append, const bool *held,
			  const struct chunk_data *data, struct chunk_unplaced *made)
{
	struct chunk_fields fields = append->frame.fields;
	struct chunk_data kept = {.ends = NULL};
	struct buf bytes;
	uint32_t *ends = mem_alloc_array(append->count, sizeof(*ends));
	buf_init(&bytes, CHUNK_DATA_MAX_BYTES);
	for (size_t i = 0; i < append->count; i++) {
		uint32_t from = i ? data->ends[i - 1] : 0;
		if (held[i])
			continue;
		buf_append(&bytes, data->data.data + from, data->ends[i] - from);
		ends[kept.end_count++] = (uint32_t)bytes.len;
	}
	kept.data = buf_slice(&bytes);
	kept.ends = ends;
	chunk_note_lines(&fields, &kept);
	int err = chunk_unplaced_make(&fields, &kept, CHUNK_LEVEL_PRESET, append->arena, made);
	buf_release(&bytes);
	mem_free(ends);
	return err;
}

/* The ends of all records, where they are lines, too. False: there are others than their hashes. */
static bool examine_find_ends(const struct stream_append *append, struct arena *arena,
			      struct chunk_data *data)
{
	if (!append->frame.fields.lines)
		return data->end_count == append->count;
	uint32_t *ends = arena_alloc(arena, append->count * sizeof(*ends) + 1);
	const char *at = data->data.data, *end = at + data->data.len;
	for (; ends && data->end_count < append->count; data->end_count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline)
			return false;
		at = newline + 1;
		ends[data->end_count] = (uint32_t)(at - data->data.data);
	}
	data->ends = ends;
	return ends && at == end;
}

/* Takes the records that are held out of a chunk. Where there is no memory left for that, the chunk
 * stays as it is, and some records are stored twice. */
static int examine_drop_repeated(struct examine *x, const bool *held, size_t repeated)
{
	struct stream_append *append = x->chunk->append;
	const struct chunk_frame frame = chunk_unplaced_frame(&append->frame);
	struct chunk_unplaced made;
	struct arena arena;
	size_t kept = 0;
	arena_init(&arena, EXAMINE_ENDS_MAX_BYTES);
	int err = chunk_frame_unpack(&frame, &x->new_bytes, &arena, &x->new_data);
	if (!err && !examine_find_ends(append, &arena, &x->new_data))
		err = ERR_DAMAGED;
	err = err ? err : examine_repack(append, held, &x->new_data, &made);
	arena_release(&arena);
	if (err)
		return err == ERR_LIMIT ? 0 : err;
	append->frame = made;
	for (size_t i = 0; i < append->count; i++)
		if (!held[i])
			append->hashes[kept++] = append->hashes[i];
	append->count = kept;
	append->repeated += repeated;
	return 0;
}

static int examine_look_for_repeated(struct examine *x)
{
	struct stream_append *append = x->chunk->append;
	size_t repeated = 0;
	int err = 0;
	bool *held = mem_zalloc(append->count + 1);
	for (size_t i = 0; i < append->count; i++) {
		held[i] = recent_has(&x->place->recent, append->hashes[i]);
		repeated += held[i];
	}
	if (repeated == append->count) {
		x->chunk->outcome = STREAM_HELD;
		append->repeated += append->count;
		append->count = 0;
	} else if (repeated) {
		err = examine_drop_repeated(x, held, repeated);
	}
	mem_free(held);
	return err;
}

/* An incarnation that cannot be read has no known end: the next bytes go to another one. */
static int examine_read_appended(struct examine *x)
{
	int err = examine_read_place(x);
	if (err == ERR_DAMAGED || err == ERR_VERSION) {
		log_rated(&x->collector->lines, clock_mono_ms(x->site->clock), LOG_ERROR,
			  "streams: of `" SHOWN "` of " SHOWN
			  " the incarnation %016llx is not appended to any more, since what is "
			  "stored of it cannot be read: %s; the stream goes on in another one",
			  SHOWN_OF(x->stream->names.name), SHOWN_OF(x->stream->names.source),
			  (unsigned long long)x->place->incarnation,
			  x->e.text[0] ? x->e.text : err_text(err));
		x->e.text[0] = 0;
		x->stream->appended = 0;
		x->place = NULL;
		return 0;
	}
	err = err ? err : examine_read_records(x);
	x->place->read = !err;
	return err;
}

static int examine_append(struct examine *x)
{
	int err = 0;
	if (!x->stream->appended && !x->stream->present_read)
		err = examine_read_present(x);
	if (err)
		return err;
	x->place = x->stream->appended ? collector_find_incarnation(x->stream, x->stream->appended)
				       : NULL;
	if (x->place && !x->place->read)
		err = examine_read_appended(x);
	if (!err && examine_must_count(x->collector, x->chunk, x->place))
		err = examine_count_streams(x);
	return err || !x->place ? err : examine_look_for_repeated(x);
}

static int examine_chunk(struct examine *x, struct stream_chunk *chunk)
{
	int err = 0;
	x->chunk = chunk;
	x->stream = chunk->stream;
	if (chunk->append)
		return examine_append(x);
	if (!chunk->id.incarnation && !x->stream->present_read)
		err = examine_read_present(x);
	if (err)
		return err;
	x->place = chunk->id.incarnation
			   ? collector_find_incarnation(x->stream, chunk->id.incarnation)
			   : x->stream->present;
	if (x->place && !x->place->read)
		err = examine_read_place(x);
	if (!err && examine_must_count(x->collector, chunk, x->place))
		err = examine_count_streams(x);
	if (err || !x->place)
		return err;
	bool apart = examine_is_apart(chunk, x->place);
	if (examine_meets(chunk, x->place))
		err = examine_overlap(x, &chunk->outcome);
	if (!err && !chunk->id.incarnation && x->stream->previous &&
	    (apart || chunk->outcome == STREAM_OTHER))
		err = examine_previous(x);
	return err;
}

/* What is stored of this stream cannot be read: that is said of its chunks alone. */
static void examine_fail_chunk(struct examine *x, struct collector *collector, int err)
{
	log_rated(&collector->lines, clock_mono_ms(x->site->clock), LOG_ERROR,
		  "streams: a chunk of `" SHOWN "` of " SHOWN
		  " is not taken, since what is stored of the stream cannot be read: %s",
		  SHOWN_OF(x->stream->names.name), SHOWN_OF(x->stream->names.source),
		  x->e.text[0] ? x->e.text : err_text(err));
	x->chunk->outcome = STREAM_FAILED;
	x->chunk->err = err;
	x->stream->doubted = true; /* another process may have removed what is missing */
	x->e.text[0] = 0;
}

int collector_examine(struct stream_submission *submission, struct task_queue *queue)
{
	struct collector *collector = submission->collector;
	const struct stream_site *site = collector->site;
	struct examine x = {.collector = collector,
			    .site = site,
			    .queue = queue,
			    .now_ms = clock_wall_ms(site->clock)};
	int err = 0;
	buf_init(&x.new_bytes, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	for (size_t i = submission->begin; i < submission->end && !err; i++) {
		if (!submission->chunks[i].asked)
			continue;
		if (atomic_load(&collector->stops)) {
			err = ERR_CANCELLED;
			break;
		}
		err = examine_chunk(&x, &submission->chunks[i]);
		if (err == ERR_DAMAGED || err == ERR_VERSION) {
			examine_fail_chunk(&x, collector, err);
			err = 0;
		}
	}
	offsets_release(&x.same);
	if (x.reads)
		chunk_reader_release(&x.reader);
	buf_release(&x.new_bytes);
	return err;
}
