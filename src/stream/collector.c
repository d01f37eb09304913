/* A submission, in rounds:
 *
 *     choose --some need the examiner--> examine --+--> decide --> write --durable--> choose
 *        +--none does---------------------------->-+                                    |
 *                                                              nothing is left: end <---+ */
#include "stream/collector_private.h"

#include "base/log.h"
#include "base/stats.h"
#include "store/store.h"

enum {
	COLLECTOR_CHUNKS_MAX = 50000, /* of all submissions */
	COLLECTOR_WRITE_MAX_BYTES = STORE_BATCH_MAX_BYTES,
	RATE_BURST_S = 10,
	NEW_BURST_S = 60,
	EXAMINER_QUEUE_MAX = 4096,
};

struct collector *collector_new(const struct collector_options *options)
{
	struct collector *collector = mem_zalloc(sizeof(*collector));
	collector->options = *options;
	collector->site = options->site;
	collector->waiting_end = &collector->waiting;
	random_init(&collector->random, options->seed);
	collector->seed = random_next(&collector->random);
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

void collector_adjust_tail(struct collector *collector, int64_t bytes)
{
	atomic_fetch_add(&collector->tail_bytes, bytes);
	stat_add(STAT_chunks_tail_bytes, bytes);
}

void collector_doubt(struct collector *collector, const struct stream_id *id)
{
	struct collector_stream *stream = collector_find_stream(collector, id);
	if (!stream)
		return;
	stream->doubted = true; /* until the submission that has it ends */
	if (!stream->busy)
		collector_settle(stream);
}

uint64_t collector_tail_bytes(const struct collector *collector)
{
	int64_t bytes = atomic_load(&collector->tail_bytes);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* ---- The end of a submission ----------------------------------------------------------------- */

static void collector_next_round(struct stream_submission *s);

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
		break;
	}
	stat_add(STAT_chunks_refused, 1);
}

static bool collector_may_begin(const struct stream_submission *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream && s->chunks[i].stream->busy)
			return false;
	return true;
}

/* Whether one that waits before it has a stream of it, too: then they stay in their order. */
static bool collector_is_first(const struct collector *collector, const struct stream_submission *s)
{
	for (const struct stream_submission *w = collector->waiting; w && w != s; w = w->next)
		for (size_t i = 0; i < w->count; i++)
			for (size_t j = 0; j < s->count; j++)
				if (w->chunks[i].stream &&
				    w->chunks[i].stream == s->chunks[j].stream)
					return false;
	return true;
}

static void collector_mark(struct stream_submission *s, bool busy)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream)
			s->chunks[i].stream->busy = busy;
}

/* Which incarnations others have made for senders that know of none is looked for each time. */
static void collector_doubt_shared(struct stream_submission *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct collector_stream *stream = s->chunks[i].stream;
		if (!stream || s->chunks[i].id.incarnation)
			continue;
		stream->doubted = true;
		collector_settle(stream);
	}
}

static void collector_activate(struct collector *collector, struct stream_submission *s)
{
	collector_mark(s, true);
	if (store_is_shared(collector->site->store))
		collector_doubt_shared(s);
	s->next = collector->active;
	collector->active = s;
	collector_next_round(s);
}

static void collector_begin_waiting(struct collector *collector)
{
	struct stream_submission **place = &collector->waiting;
	while (*place) {
		struct stream_submission *s = *place;
		if (!collector_may_begin(s) || !collector_is_first(collector, s)) {
			place = &s->next;
			continue;
		}
		*place = s->next;
		if (collector->waiting_end == &s->next)
			collector->waiting_end = place;
		for (size_t i = 0; i < s->count; i++)
			if (s->chunks[i].stream)
				s->chunks[i].stream->waiting--;
		collector_activate(collector, s);
		place = &collector->waiting; /* it may have ended at once, and others with it */
	}
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
		struct stream_chunk *chunk = &s->chunks[i];
		collector_count_outcome(chunk);
		if (!chunk->place)
			continue;
		chunk->incarnation = chunk->place->incarnation;
		chunk->held = offsets_at(&chunk->place->held, chunk->frame.fields.sequence_id - 1);
	}
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream)
			collector_settle(s->chunks[i].stream);
	collector->chunks -= s->count;
	s->done(s);
	collector_forget_some(collector);
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
		atomic_store(&chunk->stream->tenant->stored, -1); /* some of it may be new */
	}
	collector_end(s);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void collector_note_written(struct stream_submission *s)
{
	const struct collector_options *options = &s->collector->options;
	for (size_t i = 0; i < s->count; i++) {
		struct stream_chunk *chunk = &s->chunks[i];
		const struct chunk_fields *fields = &chunk->frame.fields;
		if (!chunk->asked || chunk->outcome != STREAM_WAITS)
			continue;
		chunk->place->made = true;
		offsets_add(&chunk->place->held, chunk_begin(fields), fields->sequence_id);
		chunk->outcome = STREAM_TAKEN;
		collector_adjust_tail(s->collector, (int64_t)chunk->frame.bytes.len);
		const struct stream_id id = collector_id_of(chunk->stream, chunk->place);
		if (options->written)
			options->written(options->owner, &id, fields->data_bytes,
					 chunk->frame.bytes.len);
	}
}

static void collector_on_written(struct store_write *write, int err)
{
	struct stream_submission *s = write->owner;
	if (err) {
		collector_fail(s, err);
		return;
	}
	collector_note_written(s);
	collector_next_round(s);
}

static int collector_put_made(struct stream_submission *s, const struct stream_chunk *chunk,
			      int64_t stamp_us)
{
	struct stream_parts key, column;
	struct buf value;
	const struct stream_made made = {
		.id = collector_id_of(chunk->stream, chunk->place),
		.made_ms = s->received_ms,
		.here = chunk->place->here,
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
	chunk_tail_key(&key, &id);
	const struct chunk_place place = chunk_place_of(&chunk->frame);
	chunk_column(&column, &place);
	int err = chunk_cell_encode(s->received_ms, chunk->frame.bytes, value);
	return err ? err
		   : store_log_put(s->write, TABLE_CHUNK_TAIL, &key.parts, &column.parts,
				   buf_slice(value));
}

static bool collector_is_to_be_written(const struct stream_chunk *chunk)
{
	return chunk->asked && chunk->outcome == STREAM_WAITS;
}

/* New streams first: a row of chunks is never there without its stream. */
static int collector_fill_write(struct stream_submission *s, bool *any)
{
	int64_t stamp_us = store_stamp(s->collector->site->store);
	int err = 0;
	struct buf value;
	*any = false;
	for (size_t i = 0; i < s->count && !err; i++)
		if (collector_is_to_be_written(&s->chunks[i]) && !s->chunks[i].place->made)
			err = collector_put_made(s, &s->chunks[i], stamp_us);
	store_write_next_stage(s->write);
	buf_init(&value, TABLE_SHARED_VALUE_MAX_BYTES);
	for (size_t i = 0; i < s->count && !err; i++) {
		if (!collector_is_to_be_written(&s->chunks[i]))
			continue;
		err = collector_put_chunk(s, &s->chunks[i], &value);
		*any = true;
	}
	buf_release(&value);
	return err;
}

static void collector_write(struct stream_submission *s)
{
	bool any;
	if (s->write)
		store_write_reset(s->write);
	else
		s->write = store_write_new(s->collector->site->store, COLLECTOR_WRITE_MAX_BYTES);
	int err = collector_fill_write(s, &any);
	if (!err && !any) {
		collector_next_round(s);
		return;
	}
	s->write->executor = s->collector->options.executor;
	s->write->done = collector_on_written;
	s->write->owner = s;
	err = err ? err : store_write_submit(s->write);
	if (err)
		collector_fail(s, err);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* An incarnation that the collector makes, for a sender that knows of none. */
static void collector_begin_incarnation(struct collector *collector, struct stream_chunk *chunk)
{
	struct collector_stream *stream = chunk->stream;
	chunk->place = collector_find_incarnation(stream, random_next(&collector->random) | 1);
	chunk->place->read = true;
	chunk->place->here = true;
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

static bool collector_makes_hole(const struct collector *collector,
				 const struct stream_chunk *chunk)
{
	const struct chunk_fields *fields = &chunk->frame.fields;
	const struct offsets *held = &chunk->place->held;
	size_t count = offsets_count_with(held, chunk_begin(fields), fields->sequence_id);
	return count > held->count && count > collector->site->limits.holes_max + 1;
}

/* What becomes of a chunk of this round, as far as the examiner has not said so. True: its stream
 * has begun anew, and what the examiner said of chunks behind it does not hold. */
static bool collector_decide(struct collector *collector, struct stream_chunk *chunk)
{
	struct collector_stream *stream = chunk->stream;
	bool anew = chunk->outcome == STREAM_OTHER && !chunk->id.incarnation;
	chunk->place = chunk->id.incarnation
			       ? collector_find_incarnation(stream, chunk->id.incarnation)
			       : stream->present;
	if (chunk->outcome != STREAM_WAITS && !anew)
		return false;
	bool fresh = anew || !chunk->place || !chunk->place->made;
	chunk->outcome = STREAM_WAITS;
	if (fresh)
		chunk->outcome = collector_judge_new(collector, chunk);
	else if (collector_makes_hole(collector, chunk))
		chunk->outcome = STREAM_MANY_HOLES;
	if (chunk->outcome != STREAM_WAITS) {
		chunk->place = fresh ? NULL : chunk->place;
		return anew;
	}
	if (anew)
		stat_add(STAT_chunks_other, 1);
	if (anew || !chunk->place)
		collector_begin_incarnation(collector, chunk);
	return anew;
}

static void collector_decide_round(struct stream_submission *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!s->chunks[i].asked || !collector_decide(s->collector, &s->chunks[i]))
			continue;
		for (size_t j = i + 1; j < s->count; j++) {
			struct stream_chunk *behind = &s->chunks[j];
			if (!behind->asked || behind->stream != s->chunks[i].stream ||
			    behind->id.incarnation)
				continue;
			behind->asked = false;
			behind->outcome = STREAM_WAITS;
		}
	}
}

static void collector_on_examined(struct task *task)
{
	struct stream_submission *s = CONTAINER_OF(task, struct stream_submission, task);
	if (s->err) {
		collector_fail(s, s->err);
		return;
	}
	collector_decide_round(s);
	collector_write(s);
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

static bool collector_overlap(const struct stream_chunk *a, const struct stream_chunk *b)
{
	const struct chunk_fields *f = &a->frame.fields, *g = &b->frame.fields;
	return a->stream == b->stream && a->id.incarnation == b->id.incarnation &&
	       chunk_begin(f) < g->sequence_id && chunk_begin(g) < f->sequence_id;
}

/* The next chunks, in their order, of which no two overlap. */
static bool collector_choose_round(struct stream_submission *s)
{
	size_t first = 0;
	while (first < s->count && s->chunks[first].outcome != STREAM_WAITS)
		first++;
	for (size_t i = 0; i < s->count; i++)
		s->chunks[i].asked = false;
	for (size_t i = first; i < s->count; i++) {
		if (s->chunks[i].outcome != STREAM_WAITS)
			continue;
		for (size_t j = first; j < i; j++)
			if (s->chunks[j].asked && collector_overlap(&s->chunks[j], &s->chunks[i]))
				return true;
		s->chunks[i].asked = true;
	}
	return first < s->count;
}

static void collector_next_round(struct stream_submission *s)
{
	bool examine = false;
	if (!collector_choose_round(s)) {
		collector_end(s);
		return;
	}
	for (size_t i = 0; i < s->count && !examine; i++)
		examine = s->chunks[i].asked && collector_must_examine(&s->chunks[i]);
	s->err = 0;
	if (!examine)
		collector_on_examined(&s->task);
	else if (collector_ask_examiner(s))
		collector_fail(s, ERR_BUSY);
}

/* ---- Submitting ------------------------------------------------------------------------------ */

static void collector_admit(struct collector *collector, struct stream_chunk *chunk)
{
	const struct stream_limits *limits = &collector->site->limits;
	int64_t now_ms = clock_mono_ms(collector->site->clock);
	if (collector_tail_bytes(collector) >= limits->tail_max_bytes) {
		chunk->outcome = STREAM_TAIL_FULL;
		return;
	}
	chunk->stream = collector_find_stream(collector, &chunk->id);
	if (!chunk->stream)
		chunk->outcome = STREAM_MANY_TENANTS;
	else if (limits->rate_bytes &&
		 !collector_rate_take(&chunk->stream->tenant->bytes, (double)chunk->frame.bytes.len,
				      (double)limits->rate_bytes, RATE_BURST_S, now_ms))
		chunk->outcome = STREAM_TOO_FAST;
}

int collector_submit(struct collector *collector, struct stream_submission *s)
{
	if (s->count > STREAM_CHUNKS_MAX)
		return ERR_LIMIT;
	if (collector->chunks && collector->chunks + s->count > COLLECTOR_CHUNKS_MAX)
		return ERR_BUSY;
	s->collector = collector;
	s->write = NULL;
	s->next = NULL;
	s->received_ms = clock_wall_ms(collector->site->clock);
	collector->chunks += s->count;
	for (size_t i = 0; i < s->count; i++) {
		struct stream_chunk *chunk = &s->chunks[i];
		chunk->outcome = STREAM_WAITS;
		chunk->stream = NULL;
		chunk->place = NULL;
		chunk->asked = false;
		collector_admit(collector, chunk);
	}
	if (collector_may_begin(s) && collector_is_first(collector, s)) {
		collector_activate(collector, s);
		return 0;
	}
	for (size_t i = 0; i < s->count; i++)
		if (s->chunks[i].stream)
			s->chunks[i].stream->waiting++;
	*collector->waiting_end = s;
	collector->waiting_end = &s->next;
	return 0;
}
