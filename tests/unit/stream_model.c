/* Property test of streams. Up to four processes take chunks and seal them, on a store that is far
 * away, shared and not serial (contract/far.h); a seed decides who does what next, what fails, who
 * freezes, dies and is started again. Senders send their streams to one process or another: again,
 * in another order, in pieces that overlap, with holes; some begin anew at 0, with an incarnation
 * of their own. In calm worlds, where one process takes all and nothing of it lands when it is
 * dead, some senders know of no incarnations, as Chukwa's agents.
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
	ACKS_MAX = 20000,
	WORKS_MAX = 64, /* examiners and sealers at work */
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
};

struct work {
	struct stepped stepped;
	struct process *process;
	struct stream_submission *submission; /* of an examiner */
	bool seals;
	struct ack ack; /* that is read, or whose incarnation is sealed */
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
	uint64_t content, incarnation;
	uint64_t next; /* offset of what was never sent */
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
	bool trace, rests, calm;
	size_t step;
	struct process processes[PROCESSES_MAX];
	size_t process_count;
	struct work *works;
	size_t work_count;
	struct sender senders[SENDERS];
	uint64_t next_content;
	/* Who may seal a stream, until when. */
	struct process *owner[STREAMS];
	int64_t owned_until_ms[STREAMS];
	struct ack *acks;
	size_t ack_count;
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

/* What was acknowledged before it began is there, whatever is at work. */
static void work_read(struct task_queue *queue, void *owner)
{
	struct work *work = owner;
	struct world *w = work->process->world;
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	int err = stream_known_read(&known, &work->process->site, queue, &work->id, 0, &e);
	if (!err && !offsets_cover(&known.held, work->ack.begin, work->ack.end))
		differ(w, "what was acknowledged is not held for who reads meanwhile");
	else if (!err)
		err = check_ack(w, &work->ack, queue, &work->process->site, &known, &e);
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
		if (chunk->held.begin > begin || chunk->held.end < end)
			differ(w, "what was taken is not held");
		if (w->ack_count < ACKS_MAX)
			w->acks[w->ack_count++] = (struct ack){s->stream, chunk->incarnation,
							       s->contents[i], begin, end};
	}
	s->process = NULL;
}

static void sender_send(struct world *w, struct sender *s)
{
	if (s->process)
		return;
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
	if (collector_submit(p->collector, &s->submission))
		s->process = NULL;
}

/* ---- What is right --------------------------------------------------------------------------- */

static void check_piece(struct world *w, const struct ack *ack, const struct stream_piece *piece)
{
	const struct stream_id id = id_of(ack->stream, ack->incarnation);
	for (size_t i = 0; i < piece->data.len; i++)
		if (piece->data.data[i] != byte_of(ack->content, piece->begin + i))
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

static void check_acks(struct world *w, bool sealed)
{
	const struct stream_site site = {.store = far_landed(w->far), .clock = &w->clock.clock};
	struct task_queue queue;
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	task_queue_init(&queue);
	for (size_t i = 0; i < w->ack_count && !w->failure[0]; i++) {
		const struct ack *ack = &w->acks[i];
		const struct stream_id id = id_of(ack->stream, ack->incarnation);
		int err = stream_known_read(&known, &site, &queue, &id, 0, &e);
		if (err || !known.made)
			differ(w, "what is known cannot be read: error %d, %s", err, e.text);
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
	} else if (w->calm) {
		return;
	} else if (kind < 994) {
		take_over(w);
	} else if (kind < 998) {
		process_freeze(w, p, !p->frozen);
	} else {
		process_restart(w, p);
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
	w->far = far_new(&w->clock.clock, random_next(&w->random), w->calm ? &calm : &faults);
	w->process_count = w->calm ? 1 : 1 + pick(w, PROCESSES_MAX);
	for (size_t i = 0; i < w->process_count; i++)
		process_open(w, &w->processes[i]);
	for (size_t i = 0; i < SENDERS; i++) {
		struct sender *s = &w->senders[i];
		s->stream = (unsigned)(i % STREAMS);
		/* One that knows of none has its stream for itself. */
		s->knows = !w->calm || i >= STREAMS || i == 0;
		buf_init(&s->frames, 1 << 20);
		sender_begin_content(w, s);
	}
	w->acks = mem_alloc_array(ACKS_MAX, sizeof(*w->acks));
}

static void world_close(struct world *w)
{
	for (size_t i = 0; i < w->process_count; i++)
		process_close(w, &w->processes[i]);
	for (size_t i = 0; i < SENDERS; i++)
		buf_release(&w->senders[i].frames);
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
		}
	}
	if (!w->failure[0])
		come_to_rest(w);
	if (!w->failure[0] && chance(w, 20))
		seal_all(w);
	if (!w->failure[0])
		check_acks(w, w->rests);
	world_close(w);
	if (w->failure[0])
		printf("GRANARY_SEED=%llu, step %zu: %s\n", (unsigned long long)seed, w->step,
		       w->failure);
	return !w->failure[0];
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? SEEDS_LONG : SEEDS, wrong = 0;
	uint64_t acks = 0, sealed = 0, reads = 0;
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
	}
	printf("streams: seeds %llu..%llu, %llu chunks acknowledged, %llu bytes sealed, %llu "
	       "reads: "
	       "%llu are wrong\n",
	       first, last, (unsigned long long)acks, (unsigned long long)sealed,
	       (unsigned long long)reads, wrong);
	return wrong != 0;
}
