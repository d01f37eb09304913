/* Property test of streams. Up to four processes take chunks and seal them, on a store that is far
 * away, shared and not serial (contract/far.h); a seed decides who does what next, what fails, who
 * freezes, dies and is started again. Senders send their streams to one process or another: again,
 * in another order, in pieces that overlap, with holes; some begin anew at 0, with an incarnation
 * of their own. In calm worlds, where one process takes all and nothing of it lands when it is
 * dead, some senders know of no incarnations, as Chukwa's agents, and streams are deleted now and
 * then. What comes after a deletion is there; only a sender that knows of incarnations, and sends
 * again what was deleted, is told that it was there.
 *
 * Other senders append records, and send those again that were not acknowledged, some that were,
 * and both in one chunk. Which records were acknowledged is there, at the offsets that were said,
 * in the order of a submission. Where one process alone has the store, which is started again now
 * and then, each of their records is there once.
 *
 * What was acknowledged is there when all is at rest, in the incarnation that was said, with the
 * bytes that were sent; whoever reads meanwhile is given all that was acknowledged before, and
 * nothing else. When all is sealed no chunk waits.
 *
 * GRANARY_SEED repeats a seed, and tells what happens. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/random.h"
#include "contract/far.h"
#include "stepped.h"
#include "stream/chunk_reader.h"
#include "stream/collector.h"
#include "stream/retain.h"
#include "stream/seal.h"
#include "task_step.h"
#include "tools/long_run.h"

enum {
	STREAMS = 3,
	PROCESSES_MAX = 4,
	SENDERS = 4,
	CHUNKS = 4, /* of a submission, at most */
	STREAM_BYTES = 4000,
	CHUNK_MAX_BYTES = 400,
	RECORD_BYTES = 23, /* byte_of has a newline at the end of each of so many */
	RECORDS = 5,       /* of a chunk that is appended, at most */
	QUEUE_MAX = 40,    /* records that were not acknowledged */
	RECORDS_MAX = 1 << 16,
	ACKS_MAX = 20000,
	WORKS_MAX = 64, /* examiners and sealers at work */
	DELETIONS_MAX = 1000,
	LEASE_MS = 30000,
	SKEW_MS = 3000,
	WRITE_MAX_MS = 8000,
	LATE_MS = 180000,
	RESTS_MAX = 60000,
	STEPS = 2500,
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 30,
#else
	SEEDS = 300,
#endif
	SEEDS_LONG = 20000,
};

struct world;

struct process {
	struct world *world;
	struct store *store;
	struct stream_site site;
	struct task_queue queue;
	struct collector *collector;
	bool frozen, seals;
};

/* What was acknowledged. */
struct ack {
	unsigned stream;
	uint64_t incarnation, content, begin, end;
	uint64_t base;     /* the offset of the content's first byte */
	size_t asked_step; /* when it was sent */
	bool placed;       /* its sender said where it lies, and this: */
	bool knows;        /* he knows of incarnations */
};

struct deletion {
	unsigned stream;
	uint64_t incarnation;
	size_t ended_step; /* SIZE_MAX: it has not */
};

struct work {
	struct stepped stepped;
	struct process *process;
	struct stream_submission *submission; /* of an examiner */
	bool seals;
	struct deletion *deletion; /* NULL: it deletes nothing */
	struct ack ack;            /* that is read, or whose incarnation is sealed */
	struct stream_id id;
	int64_t until_ms;
	bool all;
	struct work *next;
};

/* Who sends the bytes of one stream; what they are is a function of `content` and the offset. */
struct sender {
	struct process *process; /* it waits for an answer; NULL: it does not */
	unsigned stream;
	bool knows; /* of incarnations */
	bool appends;
	uint64_t queue[QUEUE_MAX]; /* contents of records that were not acknowledged */
	size_t queued;
	uint64_t last; /* content that was acknowledged; 0: none */
	struct stream_append appended[CHUNKS];
	uint64_t hashes[CHUNKS][RECORDS]; /* as they were submitted */
	uint64_t records[CHUNKS][RECORDS];
	size_t record_counts[CHUNKS];
	struct arena arena;
	uint64_t content, incarnation;
	uint64_t next; /* offset of what was never sent */
	size_t asked_step;
	size_t count;
	struct stream_chunk chunks[CHUNKS];
	uint64_t contents[CHUNKS];
	struct buf frames;
	struct stream_submission submission;
};

struct world {
	struct random random;
	struct clock_virtual clock;
	struct far *far;
	int64_t last_stamp_us;
	bool trace, rests, calm, alone;
	size_t step;
	struct far_faults faults;
	struct process processes[PROCESSES_MAX];
	size_t process_count;
	struct work *works;
	size_t work_count;
	struct sender senders[SENDERS];
	uint64_t next_content;
	/* By content, of those that are appended. */
	struct record {
		unsigned stream; /* and 1; 0: it is not appended */
		bool acked;
		unsigned there; /* how often */
	} records[RECORDS_MAX];
	uint64_t appended, repeated;
	/* Who may seal a stream, until when. */
	struct process *owner[STREAMS];
	int64_t owned_until_ms[STREAMS];
	struct ack *acks;
	size_t ack_count;
	struct deletion deletions[DELETIONS_MAX];
	size_t deletion_count;
	uint64_t sealed, others, reads;
	char failure[400];
};

static uint64_t pick(struct world *w, uint64_t bound)
{
	return random_below(&w->random, bound);
}

static bool chance(struct world *w, unsigned percent)
{
	return pick(w, 100) < percent;
}

static void trace(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void trace(struct world *w, const char *fmt, ...)
{
	va_list args;
	if (!w->trace)
		return;
	printf("%6zu  ", w->step);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static void differ(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void differ(struct world *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!w->failure[0])
		vsnprintf(w->failure, sizeof(w->failure), fmt, args);
	va_end(args);
	trace(w, "WRONG: %s", w->failure);
}

static struct stream_id id_of(unsigned stream, uint64_t incarnation)
{
	static const char *const names[STREAMS] = {"/a", "/b", "/c"};
	return (struct stream_id){
		.tenant = SLICE("t"),
		.names = {SLICE("h"), SLICE("c"), SLICE("d"), slice_of(names[stream])},
		.incarnation = incarnation};
}

static char byte_of(uint64_t content, uint64_t offset)
{
	uint64_t x = (content * 0x9e3779b97f4a7c15 + offset) * 0xd1b54a32d192ed03;
	x = (x ^ x >> 32) * 0xd1b54a32d192ed03; /* so that no two contents are alike for long */
	return offset % 23 == 22 ? '\n' : (char)('a' + (x >> 59));
}

/* ---- Works: examiners and sealers -------------------------------------------------------------
 */

static struct work *work_add(struct world *w, struct process *p)
{
	struct work *work = mem_zalloc(sizeof(*work));
	work->process = p;
	work->next = w->works;
	w->works = work;
	w->work_count++;
	return work;
}

static void work_examine(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	collector_examine_now(work->submission, queue);
}

static int process_examine(void *owner, struct stream_submission *submission)
{
	struct process *p = owner;
	struct world *w = p->world;
	if (w->work_count == WORKS_MAX)
		return ERR_BUSY;
	struct work *work = work_add(w, p);
	work->submission = submission;
	stepped_start(&work->stepped, work_examine, work);
	return 0;
}

static void work_seal(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct world *w = work->process->world;
	const struct stream_seal_rules rules = {.level = 1,
						.all = work->all,
						.open_before_ms = INT64_MAX,
						.until_ms = work->until_ms,
						.write_max_ms = WRITE_MAX_MS};
	struct stream_seal_result sealed;
	struct errbuf e = {""};
	int err = stream_seal(&work->process->site, queue, &work->id, &rules, &sealed, &e);
	w->sealed += sealed.data_bytes;
	trace(w, "process %zu seals %s@%llu: error %d %s, %llu bytes, %llu left",
	      (size_t)(work->process - w->processes), work->id.names.name.data,
	      (unsigned long long)work->id.incarnation, err, e.text,
	      (unsigned long long)sealed.data_bytes, (unsigned long long)sealed.left_data_bytes);
	if (err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT)
		differ(w, "sealing ends with error %d: %s", err, e.text);
}

static int check_ack(struct world *w, const struct ack *ack, struct task_queue *queue,
		     const struct stream_site *site, const struct stream_known *known,
		     struct errbuf *e);
static struct ack ack_left(struct world *w, const struct ack *ack,
			   const struct stream_known *known);

/* What was acknowledged before it began is there, whatever is at work. */
static void work_read(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct world *w = work->process->world;
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	int err = stream_known_read(&known, &work->process->site, queue, &work->id, 0, &e);
	const struct ack left = ack_left(w, &work->ack, &known);
	if (!err && left.begin < left.end && !offsets_cover(&known.held, left.begin, left.end))
		differ(w, "what was acknowledged is not held for who reads meanwhile");
	else if (!err && left.begin < left.end)
		err = check_ack(w, &left, queue, &work->process->site, &known, &e);
	if (err == ERR_DAMAGED && w->deletion_count) /* it may have gone meanwhile */
		err = 0;
	if (err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT)
		differ(w, "reading ends with error %d: %s", err, e.text);
	stream_known_release(&known);
}

static void process_read(struct world *w, struct process *p)
{
	if (p->frozen || w->work_count == WORKS_MAX || !w->ack_count)
		return;
	struct work *work = work_add(w, p);
	work->ack = w->acks[pick(w, w->ack_count)];
	work->id = id_of(work->ack.stream, work->ack.incarnation);
	stepped_start(&work->stepped, work_read, work);
}

static void process_seal(struct world *w, struct process *p, const struct ack *ack)
{
	if (p->seals || p->frozen || w->work_count == WORKS_MAX)
		return;
	struct work *work = work_add(w, p);
	work->seals = true;
	work->ack = *ack;
	work->id = id_of(ack->stream, ack->incarnation);
	work->until_ms = w->owned_until_ms[ack->stream];
	work->all = chance(w, 70) || w->rests;
	p->seals = true;
	stepped_start(&work->stepped, work_seal, work);
}

static void work_delete(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct process *p = work->process;
	struct world *w = p->world;
	struct errbuf e = {""};
	uint64_t bytes;
	int err = stream_delete(&p->site, queue, &work->id, false, &bytes, &e);
	collector_doubt(p->collector, &work->id);
	work->deletion->ended_step = w->step;
	trace(w, "%s@%llx is deleted: error %d %s, %llu bytes", work->id.names.name.data,
	      (unsigned long long)work->id.incarnation, err, e.text, (unsigned long long)bytes);
}

static void process_delete(struct world *w, struct process *p)
{
	if (w->work_count == WORKS_MAX || !w->ack_count || w->deletion_count == DELETIONS_MAX)
		return;
	/* Mostly one that is being sent. */
	size_t back = 1 + pick(w, chance(w, 70) && w->ack_count > 10 ? 10 : w->ack_count);
	if (!w->acks[w->ack_count - back].placed)
		return;
	struct work *work = work_add(w, p);
	work->ack = w->acks[w->ack_count - back];
	work->id = id_of(work->ack.stream, work->ack.incarnation);
	work->deletion = &w->deletions[w->deletion_count++];
	*work->deletion = (struct deletion){work->ack.stream, work->ack.incarnation, SIZE_MAX};
	stepped_start(&work->stepped, work_delete, work);
}

/* False: there is nothing to do. */
static bool works_step(struct world *w)
{
	size_t ready = 0;
	for (struct work *work = w->works; work; work = work->next)
		ready += !work->process->frozen && stepped_ready(&work->stepped);
	if (!ready)
		return false;
	size_t which = pick(w, ready);
	for (struct work **place = &w->works; *place; place = &(*place)->next) {
		struct work *work = *place;
		if (work->process->frozen || !stepped_ready(&work->stepped) || which--)
			continue;
		(void)stepped_step(&work->stepped);
		if (!stepped_over(&work->stepped))
			return true;
		if (work->seals)
			work->process->seals = false;
		*place = work->next;
		w->work_count--;
		stepped_release(&work->stepped);
		mem_free(work);
		return true;
	}
	return true;
}

/* ---- Senders --------------------------------------------------------------------------------- */

static void sender_begin_content(struct world *w, struct sender *s)
{
	s->content = ++w->next_content;
	s->incarnation = s->knows ? s->content : 0;
	s->next = 0;
}

static void sender_make_chunk(struct world *w, struct sender *s, size_t at)
{
	char data[CHUNK_MAX_BYTES];
	uint64_t begin = s->next;
	if (chance(w, 30) && s->next)
		begin = pick(w, s->next); /* again */
	else if (chance(w, 10))
		begin += pick(w, 200); /* a hole, perhaps filled later */
	uint64_t len = 1 + pick(w, chance(w, 50) ? CHUNK_MAX_BYTES : 30);
	for (uint64_t i = 0; i < len; i++)
		data[i] = byte_of(s->content, begin + i);
	struct stream_id id = id_of(s->stream, s->incarnation);
	struct chunk_fields fields = {.names = id.names,
				      .incarnation = s->incarnation,
				      .sequence_id = begin + len,
				      .lines = true};
	const struct chunk_data what = {.data = {data, len}};
	size_t from = s->frames.len;
	int err = chunk_frame_put(&fields, &what, chance(w, 50) ? 1 : 3, &s->frames);
	ASSERT(!err);
	const char *why;
	struct slice rest = {s->frames.data + from, s->frames.len - from};
	s->chunks[at] = (struct stream_chunk){.id = id};
	enum chunk_found found = chunk_frame_next(&rest, &s->chunks[at].frame, &why);
	ASSERT(found == CHUNK_FOUND);
	s->contents[at] = s->content;
	if (begin + len > s->next)
		s->next = begin + len;
}

/* ---- Senders that append ----------------------------------------------------------------------
 */

static uint64_t sender_new_record(struct world *w, struct sender *s)
{
	uint64_t content = ++w->next_content;
	ASSERT(content < RECORDS_MAX);
	/* A submission has several streams, so that a write has several rows, of which some may
	 * land much later. */
	w->records[content].stream = 1 + (chance(w, 30) ? (unsigned)pick(w, STREAMS) : s->stream);
	return content;
}

static bool sender_may_follow(const struct world *w, const struct sender *s, size_t at, size_t some,
			      uint64_t content)
{
	return !some || w->records[s->records[at][0]].stream == w->records[content].stream;
}

/* Which records of one stream go into a chunk: some again, then what waits, each once in the
 * submission. */
static void sender_choose_records(struct world *w, struct sender *s, size_t at, size_t *next)
{
	size_t count = 1 + pick(w, RECORDS), some = 0;
	if (!at && s->last && chance(w, 30))
		s->records[at][some++] = s->last;
	while (some < count && (*next < s->queued || s->queued < QUEUE_MAX)) {
		if (*next == s->queued)
			s->queue[s->queued++] = sender_new_record(w, s);
		if (!sender_may_follow(w, s, at, some, s->queue[*next]))
			break;
		s->records[at][some++] = s->queue[(*next)++];
	}
	s->record_counts[at] = some;
}

static void sender_make_appended(struct world *w, struct sender *s, size_t at)
{
	char data[RECORDS * RECORD_BYTES];
	uint32_t ends[RECORDS];
	struct stream_append *append = &s->appended[at];
	size_t count = s->record_counts[at];
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < RECORD_BYTES; j++)
			data[i * RECORD_BYTES + j] = byte_of(s->records[at][i], j);
		ends[i] = (uint32_t)((i + 1) * RECORD_BYTES);
		s->hashes[at][i] = collector_hash_record(
			s->process->collector,
			(struct slice){data + i * RECORD_BYTES, RECORD_BYTES});
	}
	struct stream_id id = id_of(w->records[s->records[at][0]].stream - 1, 0);
	struct chunk_fields fields = {.names = id.names};
	struct chunk_data what = {{data, count * RECORD_BYTES}, ends, count};
	if (chance(w, 70))
		chunk_note_lines(&fields, &what);
	*append = (struct stream_append){.count = count, .arena = &s->arena};
	append->hashes = arena_alloc(&s->arena, sizeof(s->hashes[at]));
	ASSERT(append->hashes);
	memcpy(append->hashes, s->hashes[at], sizeof(s->hashes[at]));
	int err = chunk_unplaced_make(&fields, &what, 1, &s->arena, &append->frame);
	ASSERT(!err);
	s->chunks[at] = (struct stream_chunk){.id = id, .append = append};
}

static void sender_note_acked(struct world *w, struct sender *s, uint64_t content)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->queued; i++)
		if (s->queue[i] != content)
			s->queue[kept++] = s->queue[i];
	s->queued = kept;
	s->last = content;
	w->records[content].acked = true;
}

/* Which of the records lies at which offset. */
static void sender_ack_record(struct world *w, struct sender *s, size_t at, size_t record)
{
	const struct stream_chunk *chunk = &s->chunks[at];
	const struct stream_append *append = chunk->append;
	uint64_t base = chunk_begin(&chunk->frame.fields);
	size_t place = 0;
	while (place < append->count && append->hashes[place] != s->hashes[at][record])
		place++;
	if (place == append->count || w->ack_count == ACKS_MAX)
		return;
	base += place * RECORD_BYTES;
	w->acks[w->ack_count++] = (struct ack){w->records[s->records[at][record]].stream - 1,
					       chunk->incarnation,
					       s->records[at][record],
					       base,
					       base + RECORD_BYTES,
					       base};
}

static void sender_on_appended(struct stream_submission *submission)
{
	struct sender *s = submission->owner;
	struct world *w = s->process->world;
	uint64_t incarnation = 0, end = 0; /* of the last chunk */
	for (size_t i = 0; i < s->count; i++) {
		const struct stream_chunk *chunk = &s->chunks[i];
		const struct stream_append *append = chunk->append;
		trace(w,
		      "sender %zu: %zu records appended to %s@%llx, to %llu, %zu repeated: "
		      "outcome %d, error %d",
		      (size_t)(s - w->senders), append->count, chunk->id.names.name.data,
		      (unsigned long long)chunk->incarnation,
		      (unsigned long long)chunk->frame.fields.sequence_id, append->repeated,
		      chunk->outcome, chunk->err);
		if (chunk->outcome != STREAM_TAKEN && chunk->outcome != STREAM_HELD)
			continue;
		if (append->count + append->repeated != s->record_counts[i])
			differ(w, "of the records of a chunk some are not accounted for");
		if (chunk->outcome == STREAM_TAKEN && incarnation == chunk->incarnation &&
		    chunk_begin(&chunk->frame.fields) < end)
			differ(w, "chunks of a submission are out of order");
		if (chunk->outcome == STREAM_TAKEN) {
			incarnation = chunk->incarnation;
			end = chunk->frame.fields.sequence_id;
			w->appended += append->count;
		}
		w->repeated += append->repeated;
		for (size_t j = 0; j < s->record_counts[i]; j++) {
			sender_note_acked(w, s, s->records[i][j]);
			if (chunk->outcome == STREAM_TAKEN)
				sender_ack_record(w, s, i, j);
		}
	}
	s->process = NULL;
}

static void sender_append(struct world *w, struct sender *s)
{
	struct process *p = &w->processes[pick(w, w->process_count)];
	size_t next = 0;
	arena_reset(&s->arena);
	if (chance(w, 20))
		s->queued = 0; /* it dies, and another one has other records */
	s->process = p;
	s->count = 0;
	for (size_t i = 0, count = 1 + pick(w, CHUNKS); i < count; i++) {
		sender_choose_records(w, s, i, &next);
		if (!s->record_counts[i])
			break;
		sender_make_appended(w, s, i);
		s->count++;
	}
	s->submission = (struct stream_submission){
		.chunks = s->chunks, .count = s->count, .done = sender_on_appended, .owner = s};
	if (collector_submit(p->collector, &s->submission))
		s->process = NULL;
}

/* Whatever has gone: at one offset of an incarnation no two bytes were acknowledged. */
static void check_same(struct world *w, const struct ack *ack)
{
	for (size_t i = 0; i < w->ack_count; i++) {
		const struct ack *other = &w->acks[i];
		if (other->stream != ack->stream || other->incarnation != ack->incarnation ||
		    other->content == ack->content)
			continue;
		for (uint64_t at = larger_of(ack->begin, other->begin);
		     at < ack->end && at < other->end; at++)
			if (byte_of(ack->content, at) != byte_of(other->content, at))
				differ(w, "other bytes are said to be in the same incarnation");
	}
}

static void sender_on_done(struct stream_submission *submission)
{
	struct sender *s = submission->owner;
	struct world *w = s->process->world;
	for (size_t i = 0; i < s->count; i++) {
		const struct stream_chunk *chunk = &s->chunks[i];
		const struct chunk_fields *f = &chunk->frame.fields;
		uint64_t begin = chunk_begin(f), end = f->sequence_id;
		trace(w, "sender %zu: %s@%llu %llu to %llu: outcome %d, error %d, of %llx",
		      (size_t)(s - w->senders), f->names.name.data,
		      (unsigned long long)chunk->id.incarnation, (unsigned long long)begin,
		      (unsigned long long)end, chunk->outcome, chunk->err,
		      (unsigned long long)chunk->incarnation);
		if (chunk->outcome == STREAM_OTHER && s->knows)
			differ(w, "the bytes of an incarnation, sent again, are said to be others");
		if (chunk->outcome != STREAM_TAKEN && chunk->outcome != STREAM_HELD)
			continue;
		bool gone = s->knows && w->deletion_count; /* some of it may have */
		if ((chunk->held.begin > begin && !gone) || chunk->held.end < end)
			differ(w, "what was taken is not held");
		const struct ack ack = {s->stream, chunk->incarnation, s->contents[i], begin,   end,
					0,         s->asked_step,      true,           s->knows};
		check_same(w, &ack);
		if (w->ack_count < ACKS_MAX)
			w->acks[w->ack_count++] = ack;
	}
	s->process = NULL;
}

static void sender_send(struct world *w, struct sender *s)
{
	if (s->process)
		return;
	if (s->appends) {
		sender_append(w, s);
		return;
	}
	if (s->next > STREAM_BYTES || chance(w, 3))
		sender_begin_content(w, s);
	struct process *p = &w->processes[pick(w, w->process_count)];
	s->frames.len = 0;
	s->count = 1 + pick(w, CHUNKS);
	char *room =
		buf_reserve(&s->frames, CHUNKS * 4096); /* so that frames stay where they are */
	ASSERT(room);
	for (size_t i = 0; i < s->count; i++) {
		if (i && chance(w, 5))
			sender_begin_content(w, s);
		sender_make_chunk(w, s, i);
	}
	s->submission = (struct stream_submission){
		.chunks = s->chunks, .count = s->count, .done = sender_on_done, .owner = s};
	s->process = p;
	s->asked_step = w->step;
	if (collector_submit(p->collector, &s->submission))
		s->process = NULL;
}

/* ---- What is right --------------------------------------------------------------------------- */

static void check_piece(struct world *w, const struct ack *ack, const struct stream_piece *piece)
{
	const struct stream_id id = id_of(ack->stream, ack->incarnation);
	for (size_t i = 0; i < piece->data.len; i++)
		if (piece->data.data[i] != byte_of(ack->content, piece->begin + i - ack->base))
			differ(w, "of %s@%llx the byte at %llu is another one", id.names.name.data,
			       (unsigned long long)id.incarnation,
			       (unsigned long long)(piece->begin + i));
}

/* 0, or why it could not be read. */
static int check_ack(struct world *w, const struct ack *ack, struct task_queue *queue,
		     const struct stream_site *site, const struct stream_known *known,
		     struct errbuf *e)
{
	const struct stream_id id = id_of(ack->stream, ack->incarnation);
	struct chunk_reader reader;
	struct stream_piece piece;
	uint64_t at = ack->begin;
	int err;
	chunk_reader_init(&reader, site, queue, &id, &known->sealed, &known->held, ack->begin,
			  ack->end, e);
	do {
		err = chunk_reader_next(&reader, &piece);
		if (err || piece.begin != at || !piece.data.len)
			break;
		check_piece(w, ack, &piece);
		at += piece.data.len;
	} while (!w->failure[0]);
	if (!err && at < ack->end && !w->failure[0])
		differ(w, "of %s@%llx the bytes from %llu to %llu are not there",
		       id.names.name.data, (unsigned long long)id.incarnation,
		       (unsigned long long)at, (unsigned long long)ack->end);
	w->reads++;
	chunk_reader_release(&reader);
	return err;
}

/* The part of it that no deletion has taken. All of it is there if it was sent after the last
 * deletion, but for bytes that a sender has sent again who knows of incarnations. */
static struct ack ack_left(struct world *w, const struct ack *ack, const struct stream_known *known)
{
	struct ack left = *ack;
	bool deleted = false, last = false;
	for (size_t i = 0; i < w->deletion_count; i++) {
		const struct deletion *deletion = &w->deletions[i];
		if (deletion->stream != ack->stream || deletion->incarnation != ack->incarnation)
			continue;
		deleted = true;
		last = last || deletion->ended_step >= ack->asked_step;
	}
	if (deleted && (last || ack->knows))
		left.begin = larger_of(left.begin, known->kept_from);
	return left;
}

static void check_acks(struct world *w, bool sealed)
{
	const struct stream_site site = {.store = far_landed(w->far), .clock = &w->clock.clock};
	struct task_queue queue;
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	task_queue_init(&queue);
	for (size_t i = 0; i < w->ack_count && !w->failure[0]; i++) {
		const struct stream_id id = id_of(w->acks[i].stream, w->acks[i].incarnation);
		int err = stream_known_read(&known, &site, &queue, &id, 0, &e);
		const struct ack left = ack_left(w, &w->acks[i], &known), *ack = &left;
		if (err || !known.made)
			differ(w, "what is known cannot be read: error %d, %s", err, e.text);
		else if (ack->begin >= ack->end)
			continue;
		else if (!offsets_cover(&known.held, ack->begin, ack->end))
			differ(w, "of %s@%llx %llu to %llu is not held", id.names.name.data,
			       (unsigned long long)id.incarnation, (unsigned long long)ack->begin,
			       (unsigned long long)ack->end);
		else if (sealed && known.tail_data_bytes)
			differ(w, "chunks wait though all is sealed");
		else if (check_ack(w, ack, &queue, &site, &known, &e))
			differ(w, "it cannot be read: %s", e.text);
	}
	stream_known_release(&known);
	task_queue_release(&queue);
}

/* ---- Records that were appended ----------------------------------------------------------------
 */

struct record_count {
	struct world *w;
	unsigned stream;
	struct task_queue *queue;
};

static void count_record(struct world *w, unsigned stream, const char *data)
{
	for (uint64_t content = 1; content <= w->next_content; content++) {
		if (w->records[content].stream != stream + 1)
			continue;
		size_t at = 0;
		while (at < RECORD_BYTES && data[at] == byte_of(content, at))
			at++;
		if (at == RECORD_BYTES) {
			w->records[content].there++;
			return;
		}
	}
	differ(w, "what was appended has bytes that nobody has sent");
}

static int count_stream(const struct stream_made *made, void *owner)
{
	struct record_count *r = owner;
	struct world *w = r->w;
	const struct stream_site site = {.store = far_landed(w->far), .clock = &w->clock.clock};
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	struct chunk_reader reader;
	struct stream_piece piece;
	struct buf bytes;
	const struct stream_id id = id_of(r->stream, made->id.incarnation);
	if (!made->appended || !slice_equal(made->id.names.name, id.names.name))
		return 0;
	buf_init(&bytes, 1 << 24);
	int err = stream_known_read(&known, &site, r->queue, &id, 0, &e);
	chunk_reader_init(&reader, &site, r->queue, &id, &known.sealed, &known.held, 0, UINT64_MAX,
			  &e);
	while (!err && !(err = chunk_reader_next(&reader, &piece)) && piece.data.len)
		buf_append(&bytes, piece.data.data, piece.data.len);
	if (err || bytes.len % RECORD_BYTES)
		differ(w, "what was appended cannot be read as records: %s", e.text);
	for (size_t at = 0; at < bytes.len && !w->failure[0]; at += RECORD_BYTES)
		count_record(w, r->stream, bytes.data + at);
	chunk_reader_release(&reader);
	stream_known_release(&known);
	buf_release(&bytes);
	return 0;
}

static void check_records(struct world *w)
{
	const struct stream_site site = {.store = far_landed(w->far), .clock = &w->clock.clock};
	struct task_queue queue;
	struct errbuf e = {""};
	task_queue_init(&queue);
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		struct record_count count = {w, stream, &queue};
		if (stream_each(&site, &queue, SLICE("t"), NULL, count_stream, &count, &e))
			differ(w, "streams cannot be listed: %s", e.text);
	}
	for (uint64_t content = 1; content <= w->next_content; content++) {
		const struct record *record = &w->records[content];
		if (record->acked && !record->there)
			differ(w, "record %llu was acknowledged and is not there",
			       (unsigned long long)content);
		if (w->alone && record->there > 1)
			differ(w, "record %llu is there %u times", (unsigned long long)content,
			       record->there);
	}
	task_queue_release(&queue);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void process_open(struct world *w, struct process *p)
{
	*p = (struct process){.world = w};
	p->store = far_open(w->far, &w->clock.clock, w->last_stamp_us);
	p->site = (struct stream_site){.store = p->store,
				       .clock = &w->clock.clock,
				       .limits = {.streams_max = 1000000,
						  .new_a_minute = 1000000000,
						  .tail_max_bytes = UINT64_MAX,
						  .holes_max = 1000}};
	task_queue_init(&p->queue);
	const struct collector_options options = {.site = &p->site,
						  .executor = &p->queue.executor,
						  .seed = random_next(&w->random),
						  .examine = process_examine,
						  .owner = p};
	p->collector = collector_new(&options);
}

static bool process_has_work(const struct world *w, const struct process *p)
{
	for (const struct work *work = w->works; work; work = work->next)
		if (work->process == p)
			return true;
	return false;
}

/* Until nothing of it is at work any more: each of its waits ends with an error. */
static void process_close(struct world *w, struct process *p)
{
	if (far_last_stamp_us(p->store) > w->last_stamp_us)
		w->last_stamp_us = far_last_stamp_us(p->store);
	p->frozen = false;
	far_freeze(p->store, false);
	far_kill(p->store);
	for (int i = 0; !collector_is_idle(p->collector) || process_has_work(w, p); i++) {
		ASSERT(i < RESTS_MAX);
		while (task_step(&p->queue))
			;
		(void)works_step(w);
		(void)far_step(w->far);
	}
	collector_free(p->collector);
	task_queue_release(&p->queue);
	store_close(p->store);
}

static void process_restart(struct world *w, struct process *p)
{
	trace(w, "process %zu dies", (size_t)(p - w->processes));
	process_close(w, p);
	process_open(w, p);
}

static void process_freeze(struct world *w, struct process *p, bool frozen)
{
	trace(w, "process %zu %s", (size_t)(p - w->processes), frozen ? "freezes" : "goes on");
	p->frozen = frozen;
	far_freeze(p->store, frozen);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static int64_t now_ms(struct world *w)
{
	return clock_wall_ms(&w->clock.clock);
}

/* Somebody owns a stream; another one only when his time is over. */
static void seal_some(struct world *w)
{
	unsigned stream = (unsigned)pick(w, STREAMS);
	struct process *p = &w->processes[pick(w, w->process_count)];
	if (now_ms(w) > w->owned_until_ms[stream] + SKEW_MS)
		w->owner[stream] = p;
	if (w->owner[stream] != p || p->frozen)
		return;
	w->owned_until_ms[stream] = now_ms(w) + LEASE_MS;
	for (size_t tries = 0; tries < 20 && w->ack_count; tries++) {
		/* Mostly one that is being sent. */
		size_t back = 1 + pick(w, chance(w, 70) && w->ack_count > 10 ? 10 : w->ack_count);
		const struct ack *ack = &w->acks[w->ack_count - back];
		if (ack->stream != stream)
			continue;
		process_seal(w, p, ack);
		return;
	}
}

/* Who seals a stream freezes, and when his time is over another one seals it. */
static void take_over(struct world *w)
{
	struct process *other = &w->processes[pick(w, w->process_count)];
	for (struct work *work = w->works; work; work = work->next) {
		unsigned stream = work->ack.stream;
		if (!work->seals || work->process == other || other->frozen)
			continue;
		process_freeze(w, work->process, true);
		clock_virtual_advance(&w->clock, (2 * LEASE_MS + SKEW_MS) * INT64_C(1000));
		w->owner[stream] = other;
		w->owned_until_ms[stream] = now_ms(w) + LEASE_MS;
		process_seal(w, other, &work->ack);
		return;
	}
}

/* Nobody fails any more, and all that was begun ends. */
static void come_to_rest(struct world *w)
{
	static const struct far_faults none;
	far_set_faults(w->far, &none);
	for (size_t i = 0; i < w->process_count; i++)
		process_freeze(w, &w->processes[i], false);
	bool any = true;
	for (int i = 0; any; i++) {
		if (i == RESTS_MAX) {
			differ(w, "it does not come to rest");
			return;
		}
		any = false;
		for (size_t p = 0; p < w->process_count; p++)
			any |= task_step(&w->processes[p].queue);
		any |= works_step(w);
		any |= far_step(w->far);
	}
	clock_virtual_advance(&w->clock, LATE_MS * INT64_C(1000));
	while (far_step(w->far))
		;
}

static void run_step(struct world *w)
{
	unsigned kind = (unsigned)pick(w, 1000);
	struct process *p = &w->processes[pick(w, w->process_count)];
	if (kind < 300) {
		if (!p->frozen)
			(void)task_step(&p->queue);
	} else if (kind < 550) {
		(void)works_step(w);
	} else if (kind < 800) {
		for (uint64_t n = pick(w, 20); n; n--)
			(void)far_step(w->far);
	} else if (kind < 880) {
		struct sender *s = &w->senders[pick(w, SENDERS)];
		sender_send(w, s);
	} else if (kind < 920) {
		seal_some(w);
	} else if (kind < 940) {
		process_read(w, p);
	} else if (kind < 980) {
		clock_virtual_advance(&w->clock, (int64_t)pick(w, 3000) * 1000);
	} else if (kind < 990) {
		clock_virtual_advance(&w->clock, (int64_t)pick(w, 2 * LEASE_MS) * 1000);
	} else if (w->alone && kind < 992) {
		come_to_rest(w);
		process_restart(w, p);
		far_set_faults(w->far, &w->faults);
	} else if (w->calm) {
		if (kind < 995)
			process_delete(w, p);
	} else if (kind < 994) {
		take_over(w);
	} else if (kind < 998) {
		process_freeze(w, p, !p->frozen);
	} else {
		process_restart(w, p);
	}
}

/* Each incarnation by somebody, twice: what a pass leaves, the next one finds. */
static void seal_all(struct world *w)
{
	w->rests = true;
	for (size_t i = 0; i < 2 * w->ack_count && !w->failure[0]; i++) {
		const struct ack *ack = &w->acks[i % w->ack_count];
		w->owned_until_ms[ack->stream] = now_ms(w) + LEASE_MS;
		process_seal(w, &w->processes[0], ack);
		come_to_rest(w);
	}
}

static void world_open(struct world *w, uint64_t seed)
{
	random_init(&w->random, seed);
	clock_virtual_init(&w->clock, INT64_C(1700000000000000));
	w->calm = chance(w, 30);
	const struct far_faults faults = {.unknown = (unsigned)pick(w, 60),
					  .failed = (unsigned)pick(w, 30),
					  .refused = (unsigned)pick(w, 30),
					  .cut = (unsigned)pick(w, 500),
					  .full = (unsigned)pick(w, 5)};
	const struct far_faults calm = {.failed = faults.failed, .cut = faults.cut};
	w->faults = w->calm ? calm : faults;
	w->alone = w->calm && chance(w, 50);
	w->far = far_new(&w->clock.clock, random_next(&w->random), &w->faults);
	if (w->alone)
		far_set_alone(w->far);
	w->process_count = w->calm ? 1 : 1 + pick(w, PROCESSES_MAX);
	for (size_t i = 0; i < w->process_count; i++)
		process_open(w, &w->processes[i]);
	for (size_t i = 0; i < SENDERS; i++) {
		struct sender *s = &w->senders[i];
		s->stream = (unsigned)(i % STREAMS);
		/* One that knows of none has its stream for itself. */
		s->knows = !w->calm || i >= STREAMS || i == 0;
		s->appends = s->knows ? chance(w, 30) : w->alone;
		arena_init(&s->arena, 1 << 20);
		buf_init(&s->frames, 1 << 20);
		sender_begin_content(w, s);
	}
	w->acks = mem_alloc_array(ACKS_MAX, sizeof(*w->acks));
}

static void world_close(struct world *w)
{
	for (size_t i = 0; i < w->process_count; i++)
		process_close(w, &w->processes[i]);
	for (size_t i = 0; i < SENDERS; i++) {
		buf_release(&w->senders[i].frames);
		arena_release(&w->senders[i].arena);
	}
	far_free(w->far);
	mem_free(w->acks);
}

static bool run_seed(uint64_t seed, bool tells, struct world *w)
{
	*w = (struct world){.trace = tells};
	world_open(w, seed);
	for (w->step = 0; w->step < STEPS && !w->failure[0]; w->step++) {
		run_step(w);
		if (w->step % 500 == 499) {
			come_to_rest(w);
			check_acks(w, false);
			far_set_faults(w->far, &w->faults);
		}
	}
	if (!w->failure[0])
		come_to_rest(w);
	if (!w->failure[0] && chance(w, 20))
		seal_all(w);
	if (!w->failure[0])
		check_acks(w, w->rests);
	if (!w->failure[0])
		check_records(w);
	world_close(w);
	if (w->failure[0])
		printf("GRANARY_SEED=%llu, step %zu: %s\n", (unsigned long long)seed, w->step,
		       w->failure);
	return !w->failure[0];
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? SEEDS_LONG : SEEDS, wrong = 0;
	uint64_t acks = 0, sealed = 0, reads = 0, appended = 0, repeated = 0;
	const char *seed = getenv("GRANARY_SEED");
	static struct world world;
	log_set_level(LOG_ERROR);
	if (seed)
		first = last = strtoull(seed, NULL, 10);
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0 &&
	    sscanf(argv[2], "%llu..%llu", &first, &last) == 1)
		last = first;
	for (unsigned long long at = first; at <= last && wrong < 5; at++) {
		wrong += !run_seed(at, seed != NULL, &world);
		acks += world.ack_count;
		sealed += world.sealed;
		reads += world.reads;
		appended += world.appended;
		repeated += world.repeated;
	}
	printf("streams: seeds %llu..%llu, %llu chunks acknowledged, %llu bytes sealed, %llu "
	       "reads, %llu records appended, %llu known again: %llu are wrong\n",
	       first, last, (unsigned long long)acks, (unsigned long long)sealed,
	       (unsigned long long)reads, (unsigned long long)appended,
	       (unsigned long long)repeated, wrong);
	return wrong != 0;
}
