/* A reader:
 *
 *     rests --a chunk in its ring--> works --task comes back--> tells --all is taken--> rests
 *                                      ^--the chunk is not at its end, or another is in the ring-+
 *
 * Its owner takes lines while it tells. */
#include "stream/tail_private.h"

#include "base/stats.h"

enum {
	TAIL_WORKERS = 2,
	TAIL_WAITING_MAX = 4096, /* readers whose chunks wait for a worker */
};

/* ---- Chunks ---------------------------------------------------------------------------------- */

static struct tail_chunk *tail_chunk_new(struct stream_tail *tail, const struct stream_id *id,
					 const struct chunk_frame *frame, int64_t received_ms)
{
	struct tail_chunk *chunk = mem_zalloc(sizeof(*chunk));
	struct buf address;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&id->names, id->incarnation, &address);
	ASSERT(!address.failed); /* the names were checked */
	chunk->address = mem_copy_slice(buf_slice(&address));
	chunk->hash = hash128(address.data, address.len, tail->seed);
	chunk->frame = mem_copy_slice(frame->bytes);
	chunk->data_bytes = frame->fields.data_bytes;
	chunk->received_ms = received_ms;
	buf_release(&address);
	chunk->bytes = sizeof(*chunk) + chunk->address.len + chunk->frame.len;
	tail->held_bytes += chunk->bytes;
	return chunk;
}

static void tail_chunk_let_go(struct stream_tail *tail, struct tail_chunk *chunk)
{
	ASSERT(chunk->refs);
	if (--chunk->refs)
		return;
	tail->held_bytes -= chunk->bytes;
	mem_free_slice(chunk->address);
	mem_free_slice(chunk->frame);
	mem_free(chunk);
}

/* ---- Rings ----------------------------------------------------------------------------------- */

static struct tail_chunk *tail_ring_take(struct tail_reader *reader)
{
	struct tail_chunk *chunk = reader->ring[reader->ring_first];
	ASSERT(reader->ring_count);
	reader->ring_first = (reader->ring_first + 1) % STREAM_TAIL_RING_CHUNKS;
	reader->ring_count--;
	reader->ring_bytes -= chunk->bytes;
	return chunk;
}

static void tail_reader_miss(struct tail_reader *reader, uint64_t bytes)
{
	reader->missed_bytes += bytes;
	stat_add(STAT_stream_missed_bytes, (int64_t)bytes);
}

static void tail_ring_drop_oldest(struct tail_reader *reader)
{
	struct tail_chunk *chunk = tail_ring_take(reader);
	tail_reader_miss(reader, chunk->data_bytes);
	tail_chunk_let_go(reader->tail, chunk);
}

static void tail_ring_put(struct tail_reader *reader, struct tail_chunk *chunk)
{
	while (reader->ring_count && (reader->ring_count == STREAM_TAIL_RING_CHUNKS ||
				      reader->ring_bytes + chunk->bytes > STREAM_TAIL_RING_BYTES))
		tail_ring_drop_oldest(reader);
	reader->ring[(reader->ring_first + reader->ring_count++) % STREAM_TAIL_RING_CHUNKS] = chunk;
	reader->ring_bytes += chunk->bytes;
	chunk->refs++;
}

/* The slowest readers lose first. */
static void tail_bound(struct stream_tail *tail)
{
	while (tail->held_bytes > STREAM_TAIL_ALL_BYTES) {
		struct tail_reader *fullest = NULL;
		for (struct tail_reader *reader = tail->readers; reader; reader = reader->next)
			if (reader->ring_count &&
			    (!fullest || reader->ring_bytes > fullest->ring_bytes))
				fullest = reader;
		if (!fullest)
			return;
		tail_ring_drop_oldest(fullest);
	}
}

/* ---- Work ------------------------------------------------------------------------------------ */

static void tail_reader_free(struct tail_reader *reader);

static void tail_reader_on_worked(struct task *task)
{
	struct tail_reader *reader = CONTAINER_OF(task, struct tail_reader, task);
	ASSERT(reader->working);
	reader->working = false;
	if (!reader->open) {
		tail_reader_free(reader);
		return;
	}
	tail_reader_miss(reader, reader->work.missed_bytes);
	reader->work.missed_bytes = 0;
	reader->taken = 0;
	reader->rules.ready(reader->rules.owner);
}

/* On a worker. */
static void tail_reader_run(struct task *task)
{
	struct tail_reader *reader = CONTAINER_OF(task, struct tail_reader, task);
	struct executor *executor = reader->tail->executor;
	tail_work_run(&reader->work);
	reader->task.run = tail_reader_on_worked;
	executor->post(executor, &reader->task);
}

static void tail_reader_end_chunk(struct tail_reader *reader)
{
	struct tail_work *work = &reader->work;
	tail_work_clear(work);
	if (!work->chunk || !work->done)
		return;
	tail_chunk_let_go(reader->tail, work->chunk);
	work->chunk = NULL;
}

/* Has a worker find lines in the chunk that is not at its end, or in the next one. If no worker
 * takes it, the next tick tries again. */
static void tail_reader_work(struct tail_reader *reader)
{
	struct tail_work *work = &reader->work;
	if (!work->chunk && !reader->ring_count)
		return;
	if (!work->chunk) {
		work->chunk = tail_ring_take(reader);
		work->begun = work->done = false;
	}
	reader->task.run = tail_reader_run;
	reader->working = pool_submit(reader->tail->pool, &reader->task) == 0;
}

bool stream_tail_next(struct tail_reader *reader, struct stream_news *news)
{
	struct tail_work *work = &reader->work;
	*news = (struct stream_news){.line = NULL};
	if (reader->working)
		return false;
	if (reader->taken < work->count) {
		news->line = &work->lines[reader->taken++];
		return true;
	}
	tail_reader_end_chunk(reader);
	reader->taken = 0;
	news->without_rule = work->without_rule;
	work->without_rule.streams = 0;
	if (news->without_rule.streams)
		return true;
	if (reader->missed_bytes && !work->chunk) {
		news->missed_bytes = reader->missed_bytes;
		reader->missed_bytes = 0;
		return true;
	}
	tail_reader_work(reader);
	return false;
}

/* ---- Readers --------------------------------------------------------------------------------- */

static bool tail_reader_asks_for(const struct tail_reader *reader, const struct stream_id *id)
{
	const struct stream_tail_rules *rules = &reader->rules;
	return reader->open && slice_equal(rules->tenant, id->tenant) &&
	       stream_names_fit(&rules->names, &id->names) &&
	       (!rules->incarnation || rules->incarnation == id->incarnation);
}

/* It has told all, so that its owner does not ask for more. */
static bool tail_reader_rests(const struct tail_reader *reader)
{
	return !reader->working && !reader->work.chunk && !reader->missed_bytes &&
	       !reader->work.without_rule.streams;
}

void stream_tail_written(struct stream_tail *tail, const struct stream_id *id,
			 const struct chunk_frame *frame, int64_t received_ms)
{
	struct tail_chunk *chunk = NULL;
	if (!tail->reader_count)
		return;
	for (struct tail_reader *reader = tail->readers; reader; reader = reader->next) {
		if (!tail_reader_asks_for(reader, id))
			continue;
		if (!chunk)
			chunk = tail_chunk_new(tail, id, frame, received_ms);
		tail_ring_put(reader, chunk);
		if (tail_reader_rests(reader))
			tail_reader_work(reader);
	}
	if (chunk)
		tail_bound(tail);
}

static int tail_reader_keep(struct arena *arena, struct slice *text, struct errbuf *e)
{
	if (!text->data)
		return 0;
	struct slice kept = arena_copy(arena, *text);
	if (!kept.data)
		return errbuf_set(e, ERR_INVALID, "what is asked for is too long");
	*text = kept;
	return 0;
}

static int tail_reader_keep_rules(struct tail_reader *reader, struct errbuf *e)
{
	struct stream_tail_rules *rules = &reader->rules;
	struct arena *arena = &reader->arena;
	struct slice *texts[] = {&rules->tenant,        &rules->names.source,
				 &rules->names.cluster, &rules->names.datatype,
				 &rules->names.name,    &rules->q,
				 &rules->content};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(texts) && !err; i++)
		err = tail_reader_keep(arena, texts[i], e);
	err = err ? err : line_query_parse(rules->q, arena, &reader->work.query, e);
	reader->work.query.datatypes = datatypes_share(rules->datatypes);
	if (!err && rules->content.data)
		err = line_query_add_regex(&reader->work.query, rules->content, arena, e);
	return err;
}

int stream_tail_open(struct stream_tail *tail, const struct stream_tail_rules *rules,
		     struct tail_reader **opened, struct errbuf *e)
{
	struct tail_reader *reader = mem_zalloc(sizeof(*reader));
	reader->tail = tail;
	reader->rules = *rules;
	reader->open = true;
	arena_init(&reader->arena, TAIL_ARENA_MAX_BYTES);
	tail_work_init(&reader->work);
	reader->next = tail->readers;
	reader->place = &tail->readers;
	if (reader->next)
		reader->next->place = &reader->next;
	tail->readers = reader;
	tail->reader_count++;
	stat_add(STAT_stream_readers, 1);
	*opened = reader;
	int err = tail_reader_keep_rules(reader, e);
	if (err)
		stream_tail_close(opened);
	return err;
}

static void tail_reader_free(struct tail_reader *reader)
{
	*reader->place = reader->next;
	if (reader->next)
		reader->next->place = reader->place;
	if (reader->work.chunk)
		tail_chunk_let_go(reader->tail, reader->work.chunk);
	tail_work_release(&reader->work);
	arena_release(&reader->arena);
	mem_free(reader);
}

void stream_tail_close(struct tail_reader **closed)
{
	struct tail_reader *reader = *closed;
	*closed = NULL;
	if (!reader)
		return;
	reader->open = false;
	atomic_store(&reader->work.cancelled, true);
	reader->tail->reader_count--;
	stat_add(STAT_stream_readers, -1);
	while (reader->ring_count)
		tail_chunk_let_go(reader->tail, tail_ring_take(reader));
	if (!reader->working)
		tail_reader_free(reader);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void stream_tail_tick(struct stream_tail *tail)
{
	struct tail_reader *next;
	for (struct tail_reader *reader = tail->readers; reader; reader = next) {
		next = reader->next;
		if (reader->open)
			reader->rules.ready(reader->rules.owner);
	}
}

struct stream_tail *stream_tail_new(struct executor *executor, uint64_t seed)
{
	struct stream_tail *tail = mem_zalloc(sizeof(*tail));
	tail->executor = executor;
	tail->seed = seed;
	tail->pool = pool_new(TAIL_WORKERS, TAIL_WAITING_MAX, "tail");
	return tail;
}

bool stream_tail_is_over(const struct stream_tail *tail)
{
	return !tail->readers;
}

void stream_tail_free(struct stream_tail *tail)
{
	ASSERT(stream_tail_is_over(tail) && !tail->held_bytes);
	pool_close(tail->pool);
	mem_free(tail);
}
