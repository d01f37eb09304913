/* A submission, in rounds:
 *
 *     choose --some need the examiner--> examine --+--> decide --> write --durable--> choose
 *        +--none does---------------------------->-+                                    |
 *                                                              nothing is left: end <---+ */
#include "stream/collector_private.h"

#include "base/stats.h"
#include "store/store.h"

enum {
	COLLECTOR_CHUNKS_MAX = 50000,    /* of all submissions */
	COLLECTOR_BYTES_MAX = 256 << 20, /* of their frames */
	COLLECTOR_WRITE_MAX_BYTES = STORE_BATCH_MAX_BYTES,
	RATE_BURST_S = 10,
	NEW_BURST_S = 60,
	EXAMINER_QUEUE_MAX = 4096,
	COLLECTOR_SURE_MS = 6 * 3600000, /* so long a stream is there that was */
	ROUND_CHUNKS_MAX = 1000,
	ROUND_RECORDS_MAX = 1 << 16, /* that are appended; a chunk may go beyond it */
};

struct collector *collector_new(const struct collector_options *options)
{
	struct collector *collector = mem_zalloc(sizeof(*collector));
	collector->options = *options;
	collector->site = options->site;
	collector->waiting_end = &collector->waiting;
	random_init(&collector->random, options->seed);
	collector->lines.lines_max = 3;
	collector->seed = random_next(&collector->random);
	collector->appended_seed = random_next(&collector->random);
	if (!options->examine)
		collector->examiner = pool_new(1, EXAMINER_QUEUE_MAX, "chunks");
	return collector;
}

bool collector_is_idle(const struct collector *collector)
{
	return !collector->active && !collector->waiting;
}

void collector_free(struct collector *collector)
{
	ASSERT(collector_is_idle(collector));
	if (collector->examiner)
		pool_close(collector->examiner);
	collector_forget_all(collector);
	mem_free(collector);
}

void collector_stop(struct collector *collector)
{
	atomic_store(&collector->stops, true);
}

uint64_t collector_hash_record(const struct collector *collector, struct slice record)
{
	return hash64(record.data, record.len, collector->seed);
}

void collector_adjust_tail(struct collector *collector, int64_t bytes)
{
	atomic_fetch_add(&collector->tail_bytes, bytes);
	stat_add(STAT_chunks_tail_bytes, bytes);
}

void collector_doubt(struct collector *collector, const struct stream_id *id)
{
	struct collector_stream *stream = collector_known_stream(collector, id);
	if (!stream)
		return;
	stream->doubted = true; /* until the submission that has it ends */
	if (!stream->busy)
		collector_settle(collector, stream);
}

uint64_t collector_tail_bytes(const struct collector *collector)
{
	int64_t bytes = atomic_load(&collector->tail_bytes);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* ---- The end of a submission ----------------------------------------------------------------- */

static void collector_advance(struct stream_submission *s);

static void collector_count_outcome(const struct stream_chunk *chunk)
{
	switch (chunk->outcome) {
	case STREAM_TAKEN:
		stat_add(STAT_chunks_taken, 1);
		stat_add(STAT_chunks_taken_bytes, chunk->frame.fields.data_bytes);
		return;
	case STREAM_HELD:
		stat_add(STAT_chunks_repeated, 1);
		return;
	case STREAM_OTHER:
		stat_add(STAT_chunks_other, 1);
		return;
	case STREAM_FAILED:
		stat_add(STAT_chunks_failed, 1);
		return;
	case STREAM_WAITS:
	case STREAM_MANY:
	case STREAM_MANY_NEW:
	case STREAM_MANY_HOLES:
	case STREAM_MANY_TENANTS:
	case STREAM_TOO_FAST:
	case STREAM_TAIL_FULL:
	case STREAM_UNREADABLE:
		break;
	}
	stat_add(STAT_chunks_refused, 1);
}

/* No submission that was begun, or that waits before it, has a stream of it. */
static bool collector_may_begin(const struct stream_submission *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream &&
		    (s->chunks[i].stream->busy || s->chunks[i].stream->waiting))
			return false;
	return true;
}

static void collector_mark(struct stream_submission *s, bool busy)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream)
			s->chunks[i].stream->busy = busy;
}

/* An incarnation that only this process has, from this start on. */
static void collector_name_appended(const struct collector *collector,
				    struct collector_stream *stream)
{
	if (!stream->appended)
		stream->appended =
			hash64(&stream->hash, sizeof(stream->hash), collector->appended_seed) | 1;
}

/* Which incarnations others have made for senders that know of none is looked for each time. */
static void collector_doubt_shared(struct stream_submission *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct collector_stream *stream = s->chunks[i].stream;
		if (stream && s->chunks[i].append)
			collector_name_appended(s->collector, stream);
		if (!stream || s->chunks[i].append || s->chunks[i].id.incarnation)
			continue;
		stream->doubted = true;
		collector_settle(s->collector, stream);
	}
}

static void collector_activate(struct collector *collector, struct stream_submission *s)
{
	collector_mark(s, true);
	if (store_is_shared(collector->site->store))
		collector_doubt_shared(s);
	s->next = collector->active;
	collector->active = s;
	collector_advance(s);
}

static void collector_count_waiting(struct stream_submission *s, int by)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream)
			s->chunks[i].stream->waiting += (unsigned)by;
}

/* Those that wait and may begin. They are taken off the list, and their streams are theirs; whoever
 * waits behind one that may not begin for a stream of it stays, too. */
static struct stream_submission *collector_take_ready(struct collector *collector)
{
	struct stream_submission *ready = NULL, **ready_end = &ready;
	struct stream_submission **place = &collector->waiting;
	for (struct stream_submission *s = *place; s; s = s->next)
		collector_count_waiting(s, -1);
	while (*place) {
		struct stream_submission *s = *place;
		if (!collector_may_begin(s)) {
			collector_count_waiting(s, 1);
			place = &s->next;
			continue;
		}
		*place = s->next;
		s->next = NULL;
		*ready_end = s;
		ready_end = &s->next;
		collector_mark(s, true);
	}
	collector->waiting_end = place;
	return ready;
}

/* One that begins may end at once, and so let others begin: they do when this one has begun. */
static void collector_begin_waiting(struct collector *collector)
{
	collector->begins_again = true;
	if (collector->begins)
		return;
	collector->begins = true;
	while (collector->begins_again) {
		collector->begins_again = false;
		struct stream_submission *ready = collector_take_ready(collector);
		while (ready) {
			struct stream_submission *next = ready->next;
			collector_activate(collector, ready);
			ready = next;
		}
	}
	collector->begins = false;
}

/* Of a stream that is doubted nobody knows what is held around a chunk; around one that has gone
 * nothing is. */
static void collector_say_held(struct stream_chunk *chunk)
{
	const struct chunk_fields *fields = &chunk->frame.fields;
	chunk->incarnation = chunk->place->incarnation;
	if (!fields->sequence_id) /* records that were held, nobody asks where */
		return;
	chunk->held = offsets_at(&chunk->place->held, fields->sequence_id - 1);
	if (chunk->stream->doubted || chunk->held.begin == chunk->held.end)
		chunk->held = (struct offset_range){chunk_begin(fields), fields->sequence_id};
}

static void collector_end(struct stream_submission *s)
{
	struct collector *collector = s->collector;
	struct stream_submission **place = &collector->active;
	while (*place != s)
		place = &(*place)->next;
	*place = s->next;
	collector_mark(s, false);
	store_write_free(s->write);
	s->write = NULL;
	for (size_t i = 0; i < s->count; i++) {
		collector_count_outcome(&s->chunks[i]);
		if (s->chunks[i].place)
			collector_say_held(&s->chunks[i]);
	}
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream)
			collector_settle(collector, s->chunks[i].stream);
	collector->chunks -= s->count;
	collector->bytes -= s->bytes;
	s->done(s);
	collector_forget_some(collector);
	collector_forget_records(collector);
	collector_begin_waiting(collector);
}

/* Also where the examiner has said something of it before he failed. */
static bool collector_is_undecided(const struct stream_chunk *chunk)
{
	return chunk->outcome == STREAM_WAITS ||
	       (!chunk->place && (chunk->outcome == STREAM_HELD || chunk->outcome == STREAM_OTHER));
}

/* Of the chunks that are not decided yet. What is known of their streams may be wrong. */
static void collector_fail(struct stream_submission *s, int err)
{
	for (size_t i = 0; i < s->count; i++) {
		struct stream_chunk *chunk = &s->chunks[i];
		if (!collector_is_undecided(chunk))
			continue;
		chunk->outcome = STREAM_FAILED;
		chunk->err = err;
		chunk->place = NULL;
		if (!chunk->stream)
			continue;
		chunk->stream->doubted = true;
		atomic_store(&chunk->stream->tenant->counted_ms, 0); /* some of it may be new */
	}
	collector_end(s);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool collector_is_to_be_written(const struct stream_chunk *chunk)
{
	return chunk->asked && chunk->outcome == STREAM_WAITS;
}

static void collector_remember_records(struct collector *collector,
				       const struct stream_chunk *chunk)
{
	for (size_t i = 0; chunk->append && i < chunk->append->count; i++)
		collector_remember(collector, chunk->place, chunk->append->hashes[i]);
}

static void collector_note_written(struct stream_submission *s)
{
	const struct collector_options *options = &s->collector->options;
	for (size_t i = s->begin; i < s->end; i++) {
		struct stream_chunk *chunk = &s->chunks[i];
		if (!collector_is_to_be_written(chunk))
			continue;
		if (chunk->place->put)
			chunk->place->sure_ms = clock_mono_ms(s->collector->site->clock);
		chunk->place->made = true;
		chunk->place->empty = false;
		chunk->place->put = false;
		chunk->outcome = STREAM_TAKEN;
		collector_remember_records(s->collector, chunk);
		collector_adjust_tail(s->collector, (int64_t)chunk->frame.bytes.len);
		const struct stream_id id = collector_id_of(chunk->stream, chunk->place);
		if (options->written)
			options->written(options->owner, &id, &chunk->frame, s->received_ms);
	}
}

/* The records of a write with an unknown outcome may be there, or may land at any time: nothing
 * else is put at their offsets. The seed changes, too, so that a stream that is forgotten does not
 * find such an incarnation again. */
static void collector_leave_appended(struct stream_submission *s)
{
	struct collector *collector = s->collector;
	for (size_t i = s->begin; i < s->end; i++) {
		struct stream_chunk *chunk = &s->chunks[i];
		if (!chunk->append || !collector_is_to_be_written(chunk))
			continue;
		chunk->stream->appended = random_next(&collector->random) | 1;
		collector->appended_seed = random_next(&collector->random);
	}
}

static void collector_on_written(struct store_write *write, int err)
{
	struct stream_submission *s = write->owner;
	if (err && err != ERR_FULL)
		collector_leave_appended(s);
	if (err) {
		collector_fail(s, err);
		return;
	}
	collector_note_written(s);
	collector_advance(s);
}

static int collector_put_made(struct stream_submission *s, const struct stream_chunk *chunk,
			      int64_t stamp_us)
{
	struct stream_parts key, column;
	struct buf value;
	const struct stream_made made = {
		.id = collector_id_of(chunk->stream, chunk->place),
		.made_ms = chunk->place->made_ms,
		.here = chunk->place->here,
		.appended = chunk->place->appended,
	};
	buf_init(&value, STREAM_ADDRESS_MAX_BYTES);
	stream_made_encode(&made, &value);
	ASSERT(!value.failed);
	streams_key(&key, made.id.tenant);
	streams_column(&column, &made.id, STREAM_MADE);
	int err = store_cell_put(s->write, TABLE_STREAMS, &key.parts, &column.parts,
				 buf_slice(&value), stamp_us, 0);
	buf_release(&value);
	return err;
}

static int collector_put_chunk(struct stream_submission *s, const struct stream_chunk *chunk,
			       struct buf *value)
{
	struct stream_parts key, column;
	const struct stream_id id = collector_id_of(chunk->stream, chunk->place);
	const struct chunk_place place = chunk_place_of(&chunk->frame);
	chunk_tail_key(&key, &id);
	chunk_column(&column, &place);
	int err = chunk_cell_encode(s->received_ms, chunk->frame.bytes, value);
	return err ? err
		   : store_log_put(s->write, TABLE_CHUNK_TAIL, &key.parts, &column.parts,
				   buf_slice(value));
}

/* The owner may be another process, which does not say what it forgets; it forgets what has been
 * empty for a day, by stamps that are half a day old (retain.c). */
static bool collector_is_surely_made(const struct collector *collector,
				     const struct collector_incarnation *place)
{
	int64_t now_ms = clock_mono_ms(collector->site->clock);
	return place->made && !place->empty && now_ms - place->sure_ms < COLLECTOR_SURE_MS;
}

/* New streams first: a row of chunks is never there without its stream. One of which nothing was
 * held may just be forgotten by its owner: it is made again, under a stamp that is above the one of
 * the deletion. */
static int collector_put_streams(struct stream_submission *s)
{
	int64_t stamp_us = store_stamp(s->collector->site->store);
	int err = 0;
	for (size_t i = s->begin; i < s->end && !err; i++) {
		const struct stream_chunk *chunk = &s->chunks[i];
		if (!collector_is_to_be_written(chunk) || chunk->place->put ||
		    collector_is_surely_made(s->collector, chunk->place))
			continue;
		err = collector_put_made(s, chunk, stamp_us);
		chunk->place->put = true;
	}
	return err;
}

static int collector_fill_write(struct stream_submission *s, bool *any)
{
	struct buf value;
	int err = collector_put_streams(s);
	*any = false;
	store_write_next_stage(s->write);
	buf_init(&value, TABLE_SHARED_VALUE_MAX_BYTES);
	for (size_t i = s->begin; i < s->end && !err; i++) {
		if (!collector_is_to_be_written(&s->chunks[i]))
			continue;
		err = collector_put_chunk(s, &s->chunks[i], &value);
		*any = true;
	}
	buf_release(&value);
	return err;
}

/* False: nothing of the round is to be written. Else it is under way, or the submission has failed.
 */
static bool collector_write(struct stream_submission *s)
{
	bool any;
	if (s->write)
		store_write_reset(s->write);
	else
		s->write = store_write_new(s->collector->site->store, COLLECTOR_WRITE_MAX_BYTES);
	int err = collector_fill_write(s, &any);
	if (!err && !any)
		return false;
	s->write->executor = s->collector->options.executor;
	s->write->done = collector_on_written;
	s->write->owner = s;
	err = err ? err : store_write_submit(s->write);
	if (err)
		collector_fail(s, err);
	return true;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* An incarnation that the collector makes, for a sender that knows of none. */
static void collector_begin_incarnation(struct collector *collector, struct stream_chunk *chunk)
{
	struct collector_stream *stream = chunk->stream;
	chunk->place = collector_find_incarnation(stream, random_next(&collector->random) | 1);
	chunk->place->read = true;
	chunk->place->here = true;
	stream->previous = stream->present;
	stream->present = chunk->place;
	stream->present_read = true;
}

static enum stream_outcome collector_judge_new(struct collector *collector,
					       const struct stream_chunk *chunk)
{
	const struct stream_limits *limits = &collector->site->limits;
	struct collector_tenant *tenant = chunk->stream->tenant;
	int64_t now_ms = clock_mono_ms(collector->site->clock);
	if (atomic_load(&tenant->stored) >= (int64_t)limits->streams_max)
		return STREAM_MANY;
	if (!collector_rate_take(&tenant->fresh, 1, (double)limits->new_a_minute / 60, NEW_BURST_S,
				 now_ms))
		return STREAM_MANY_NEW;
	atomic_fetch_add(&tenant->stored, 1);
	return STREAM_WAITS;
}

/* Of two that the collector makes the later one has the greater time, whatever the clock does. */
static void collector_note_begun(struct collector *collector, const struct stream_chunk *chunk)
{
	int64_t now_ms = chunk->stream->made_ms + 1;
	int64_t wall_ms = clock_wall_ms(collector->site->clock);
	chunk->place->begun = true;
	chunk->place->made_ms = wall_ms > now_ms ? wall_ms : now_ms;
	chunk->stream->made_ms = chunk->place->made_ms;
}

static bool collector_makes_hole(const struct collector *collector,
				 const struct stream_chunk *chunk)
{
	const struct chunk_fields *fields = &chunk->frame.fields;
	const struct offsets *held = &chunk->place->held;
	size_t count = offsets_count_with(held, chunk_begin(fields), fields->sequence_id);
	return count > held->count && count > collector->site->limits.holes_max + 1;
}

/* The chunk is to be written. Nobody but this submission sees that it counts as held already; if
 * the write fails the stream is read anew. */
static void collector_place_chunk(struct collector *collector, struct stream_chunk *chunk,
				  bool anew)
{
	const struct chunk_fields *fields = &chunk->frame.fields;
	if (anew || !chunk->place)
		collector_begin_incarnation(collector, chunk);
	if (!chunk->place->made && !chunk->place->begun)
		collector_note_begun(collector, chunk);
	chunk->place->empty = chunk->place->empty || !chunk->place->held.count;
	offsets_add(&chunk->place->held, chunk_begin(fields), fields->sequence_id);
	offsets_cut(&chunk->place->held, chunk->place->kept_from);
}

/* The offset behind all that is held, or was. */
static uint64_t collector_end_of(const struct collector_incarnation *place)
{
	uint64_t end = place->held.count ? place->held.list[place->held.count - 1].end : 0;
	return end > place->kept_from ? end : place->kept_from;
}

/* The incarnation that the next bytes of a stream go to. It is a new one where there was none, and
 * where a sender of chunks has put the end of the old one so far that nothing can follow. */
static struct collector_incarnation *collector_choose_appended(struct collector *collector,
							       struct collector_stream *stream)
{
	struct collector_incarnation *place = collector_appended(stream);
	if (place && collector_end_of(place) < STREAM_OFFSET_MAX - CHUNK_DATA_MAX_BYTES)
		return place;
	stream->appended = random_next(&collector->random) | 1;
	place = collector_find_incarnation(stream, stream->appended);
	place->read = true;
	return place;
}

static void collector_place_appended(struct collector *collector, struct stream_chunk *chunk)
{
	uint64_t begin = collector_end_of(chunk->place);
	chunk_unplaced_place(&chunk->append->frame, begin + chunk->append->frame.fields.data_bytes,
			     &chunk->frame);
	chunk->place->appended = true;
	if (!chunk->place->made && !chunk->place->begun)
		collector_note_begun(collector, chunk);
	chunk->place->empty = chunk->place->empty || !chunk->place->held.count;
	offsets_add(&chunk->place->held, begin, chunk->frame.fields.sequence_id);
}

static void collector_decide_appended(struct collector *collector, struct stream_chunk *chunk)
{
	if (chunk->outcome != STREAM_WAITS) {
		chunk->place = collector_appended(chunk->stream);
		return;
	}
	struct collector_incarnation *place = collector_choose_appended(collector, chunk->stream);
	if (!place->made && !place->begun)
		chunk->outcome = collector_judge_new(collector, chunk);
	if (chunk->outcome != STREAM_WAITS)
		return;
	chunk->place = place;
	collector_place_appended(collector, chunk);
}

/* What becomes of a chunk of this round, as far as the examiner has not said so. True: its stream
 * has begun anew, and what the examiner said of chunks behind it does not hold. */
static bool collector_decide(struct collector *collector, struct stream_chunk *chunk)
{
	struct collector_stream *stream = chunk->stream;
	bool anew = chunk->outcome == STREAM_OTHER && !chunk->id.incarnation;
	if (chunk->place) /* the examiner has found it in another incarnation */
		return false;
	chunk->place = chunk->id.incarnation
			       ? collector_find_incarnation(stream, chunk->id.incarnation)
			       : stream->present;
	if (chunk->outcome != STREAM_WAITS && !anew)
		return false;
	bool fresh = anew || !chunk->place || (!chunk->place->made && !chunk->place->begun);
	chunk->outcome = STREAM_WAITS;
	if (fresh)
		chunk->outcome = collector_judge_new(collector, chunk);
	else if (collector_makes_hole(collector, chunk))
		chunk->outcome = STREAM_MANY_HOLES;
	if (chunk->outcome != STREAM_WAITS) {
		chunk->place = NULL;
		return anew;
	}
	if (anew)
		stat_add(STAT_chunks_other, 1);
	collector_place_chunk(collector, chunk, anew);
	return anew;
}

static void collector_decide_round(struct stream_submission *s)
{
	for (size_t i = s->begin; i < s->end; i++) {
		if (s->chunks[i].asked && s->chunks[i].append) {
			collector_decide_appended(s->collector, &s->chunks[i]);
			continue;
		}
		if (!s->chunks[i].asked || !collector_decide(s->collector, &s->chunks[i]))
			continue;
		for (size_t j = i + 1; j < s->end; j++) {
			struct stream_chunk *behind = &s->chunks[j];
			if (!behind->asked || behind->stream != s->chunks[i].stream ||
			    behind->append || behind->id.incarnation)
				continue;
			behind->asked = false;
			behind->outcome = STREAM_WAITS;
			behind->place = NULL;
		}
	}
}

/* False: nothing is under way, and the next round may begin. */
static bool collector_act(struct stream_submission *s)
{
	collector_decide_round(s);
	return collector_write(s);
}

static void collector_on_examined(struct task *task)
{
	struct stream_submission *s = CONTAINER_OF(task, struct stream_submission, task);
	if (s->err)
		collector_fail(s, s->err);
	else if (!collector_act(s))
		collector_advance(s);
}

void collector_examine_now(struct stream_submission *s, struct task_queue *queue)
{
	struct executor *executor = s->collector->options.executor;
	s->err = collector_examine(s, queue);
	s->task.run = collector_on_examined;
	executor->post(executor, &s->task);
}

/* On the examiner. */
static void collector_run_examine(struct task *task)
{
	struct task_queue queue;
	task_queue_init(&queue);
	collector_examine_now(CONTAINER_OF(task, struct stream_submission, task), &queue);
	task_queue_release(&queue);
}

/* An error: nobody will. */
static int collector_ask_examiner(struct stream_submission *s)
{
	struct collector *collector = s->collector;
	if (collector->options.examine)
		return collector->options.examine(collector->options.owner, s);
	s->task.run = collector_run_examine;
	return pool_submit(collector->examiner, &s->task);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* The next chunks, in their order, of which no two of a stream overlap. They are not too many for a
 * turn of the loop. False: there are none. */
static bool collector_choose_round(struct stream_submission *s)
{
	size_t records = 0;
	for (size_t i = s->begin; i < s->end; i++)
		if (s->chunks[i].stream)
			s->chunks[i].stream->round.count = 0;
	while (s->begin < s->count && s->chunks[s->begin].outcome != STREAM_WAITS)
		s->begin++;
	for (s->end = s->begin; s->end < s->count && s->end - s->begin < ROUND_CHUNKS_MAX &&
				records < ROUND_RECORDS_MAX;
	     s->end++) {
		struct stream_chunk *chunk = &s->chunks[s->end];
		const struct chunk_fields *fields = &chunk->frame.fields;
		chunk->asked = chunk->outcome == STREAM_WAITS;
		if (chunk->append)
			records += chunk->append->count;
		if (!chunk->asked || chunk->append) /* what is appended never overlaps */
			continue;
		if (offsets_meet(&chunk->stream->round, chunk_begin(fields), fields->sequence_id))
			break;
		offsets_add(&chunk->stream->round, chunk_begin(fields), fields->sequence_id);
	}
	return s->begin < s->count;
}

static bool collector_round_needs_examiner(const struct stream_submission *s)
{
	for (size_t i = s->begin; i < s->end; i++)
		if (s->chunks[i].asked && collector_must_examine(s->collector, &s->chunks[i]))
			return true;
	return false;
}

/* Round after round, until one has to wait. */
static void collector_advance(struct stream_submission *s)
{
	while (collector_choose_round(s)) {
		if (!collector_round_needs_examiner(s)) {
			if (collector_act(s))
				return;
			continue;
		}
		if (collector_ask_examiner(s))
			collector_fail(s, ERR_BUSY);
		return;
	}
	collector_end(s);
}

/* ---- Submitting ------------------------------------------------------------------------------ */

/* The bytes of the frame as it is stored; about so many while its place is not known. */
static size_t collector_frame_bytes(const struct stream_chunk *chunk)
{
	const struct chunk_unplaced *unplaced = chunk->append ? &chunk->append->frame : NULL;
	return unplaced ? unplaced->room_bytes + unplaced->packed.len : chunk->frame.bytes.len;
}

static void collector_admit(struct collector *collector, struct stream_chunk *chunk)
{
	const struct stream_limits *limits = &collector->site->limits;
	int64_t now_ms = clock_mono_ms(collector->site->clock);
	if (chunk->append)
		chunk->frame = chunk_unplaced_frame(&chunk->append->frame);
	if (collector_tail_bytes(collector) >= limits->tail_max_bytes) {
		chunk->outcome = STREAM_TAIL_FULL;
		return;
	}
	chunk->stream = collector_find_stream(collector, &chunk->id);
	if (chunk->stream)
		chunk->stream
			->waiting++; /* so that it is not forgotten while others are looked for */
	if (!chunk->stream)
		chunk->outcome = STREAM_MANY_TENANTS;
	else if (limits->rate_bytes &&
		 !collector_rate_take(&chunk->stream->tenant->bytes,
				      (double)collector_frame_bytes(chunk),
				      (double)limits->rate_bytes, RATE_BURST_S, now_ms))
		chunk->outcome = STREAM_TOO_FAST;
}

static size_t collector_bytes_of(const struct stream_submission *s)
{
	size_t bytes = 0;
	for (size_t i = 0; i < s->count; i++)
		bytes += collector_frame_bytes(&s->chunks[i]);
	return bytes;
}

int collector_submit(struct collector *collector, struct stream_submission *s)
{
	size_t bytes = collector_bytes_of(s);
	if (s->count > STREAM_CHUNKS_MAX)
		return ERR_LIMIT;
	if (collector->chunks && (collector->chunks + s->count > COLLECTOR_CHUNKS_MAX ||
				  collector->bytes + bytes > COLLECTOR_BYTES_MAX))
		return ERR_BUSY;
	*s = (struct stream_submission){.chunks = s->chunks,
					.count = s->count,
					.done = s->done,
					.owner = s->owner,
					.collector = collector,
					.bytes = bytes,
					.received_ms = clock_wall_ms(collector->site->clock)};
	collector->chunks += s->count;
	collector->bytes += bytes;
	for (size_t i = 0; i < s->count; i++) {
		struct stream_chunk *chunk = &s->chunks[i];
		chunk->outcome = STREAM_WAITS;
		chunk->stream = NULL;
		chunk->place = NULL;
		chunk->asked = false;
		collector_admit(collector, chunk);
	}
	collector_count_waiting(s, -1);
	if (collector_may_begin(s)) {
		collector_activate(collector, s);
		return 0;
	}
	collector_count_waiting(s, 1);
	*collector->waiting_end = s;
	collector->waiting_end = &s->next;
	return 0;
}
