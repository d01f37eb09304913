/* Property test of streams on a store that is far away, shared and not serial (contract/far.h). Two
 * or three processes, as `granary serve` has them: each takes chunks, owns streams by lease, seals,
 * removes, and makes samples. A seed decides who does what next, what fails, whose clock is off,
 * who freezes while he is at work, so that another takes over before he wakes, dies and is started
 * again, and which of the chunks and blocks that were removed come back.
 *
 * Senders send the lines of their streams to one process or another: again, in pieces that overlap,
 * with holes, two of them those of one incarnation. In some worlds streams are deleted, in others
 * what is old goes.
 *
 * Whoever reads or searches is given each byte and line that was acknowledged, right, once, in its
 * order; what somebody saw to be gone nobody sees any more. When all is at rest no chunk waits, and
 * in worlds where nothing is removed the samples are those of all lines.
 *
 * GRANARY_SEED repeats a seed, and tells what happens. */
#include <stdlib.h>

#include "base/log.h"
#include "stream_far.h"
#include "tools/long_run.h"

enum {
	STEPS = 4000,
	PHASE_STEPS = 400, /* with faults, or without */
	RESTS_MAX = 4000000,
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 8,
#else
	SEEDS = 40,
#endif
	SEEDS_LONG = 2000,
};

struct world_sums world_sums;

struct stream_id id_of(const struct world *w, unsigned stream, uint64_t incarnation)
{
	static const char *const names[STREAMS] = {"/a", "/b", "/c"};
	static const char *const sources[STREAMS] = {"h1", "h2", "h3"};
	return (struct stream_id){.tenant = SLICE("t"),
				  .names = {slice_of(w->same_source ? "h1" : sources[stream]),
					    SLICE("c"), SLICE("acc"), slice_of(names[stream])},
				  .incarnation = incarnation};
}

/* ---- Senders --------------------------------------------------------------------------------- */

/* Lines are up to three minutes late. */
static size_t make_content(struct world *w, unsigned stream)
{
	size_t at = w->content_count++;
	struct content *content = &w->contents[at];
	int64_t ms = now_ms(w);
	content->stream = stream;
	content->line_count = 1 + pick(w, LINES);
	for (size_t i = 0; i < content->line_count; i++) {
		struct far_line *line = &content->lines[i];
		ms += (int64_t)pick(w, 4000);
		*line = (struct far_line){.begin = content->len,
					  .ms = ms - (chance(w, 10) ? (int64_t)pick(w, 180000) : 0),
					  .bytes = (int64_t)pick(w, 1000),
					  .method = "GPD"[pick(w, 3)]};
		content->len += (size_t)snprintf(
			content->text + content->len, CONTENT_MAX_BYTES - content->len,
			"%lld.%03lld %c %lld\n", (long long)(line->ms / 1000),
			(long long)(line->ms % 1000), line->method, (long long)line->bytes);
		line->end = content->len;
	}
	return at;
}

static void sender_begin(struct sender *s)
{
	struct world *w = s->world;
	size_t other = w->content_count ? pick(w, w->content_count) : 0;
	s->next = 0;
	if (w->content_count && chance(w, 25) && w->contents[other].stream == s->stream)
		s->content = other; /* another sender's */
	else if (w->content_count < CONTENTS_MAX)
		s->content = make_content(w, s->stream);
}

static void sender_put_chunk(struct sender *s, size_t at, size_t begin, size_t len)
{
	struct world *w = s->world;
	struct content *content = &w->contents[s->content];
	struct stream_id id = id_of(w, content->stream, s->content + 1);
	struct chunk_fields fields = {.names = id.names,
				      .incarnation = id.incarnation,
				      .sequence_id = begin + len,
				      .lines = true,
				      .continues = begin && content->text[begin - 1] != '\n',
				      .goes_on = content->text[begin + len - 1] != '\n'};
	const struct chunk_data data = {.data = {content->text + begin, len}};
	size_t from = s->frames.len;
	const char *why;
	int err = chunk_frame_put(&fields, &data, chance(w, 50) ? 1 : 3, &s->frames);
	ASSERT(!err);
	struct slice rest = {s->frames.data + from, s->frames.len - from};
	s->chunks[at] = (struct stream_chunk){.id = id};
	enum chunk_found found = chunk_frame_next(&rest, &s->chunks[at].frame, &why);
	ASSERT(found == CHUNK_FOUND);
	for (size_t i = begin; i < begin + len; i++)
		if (!content->sent_ms[i])
			content->sent_ms[i] = now_ms(w);
	content->sent = larger_of(content->sent, begin + len);
}

static size_t line_end_of(const struct content *content, size_t offset)
{
	size_t i = 0;
	while (content->lines[i].end < offset)
		i++;
	return content->lines[i].end;
}

static void sender_make_chunk(struct sender *s, size_t at)
{
	struct world *w = s->world;
	size_t content_len = w->contents[s->content].len, begin = s->next;
	if (!s->all && chance(w, 30) && s->next)
		begin = pick(w, s->next); /* again */
	else if (!s->all && chance(w, 10))
		begin += pick(w, 100); /* a hole, perhaps filled later */
	begin = smaller_of(begin, content_len - 1);
	size_t len = 1 + pick(w, chance(w, 70) ? CHUNK_MAX_BYTES : 30);
	len = smaller_of(len, content_len - begin);
	if (chance(w, 40)) /* where a line does */
		len = line_end_of(&w->contents[s->content], begin + len) - begin;
	sender_put_chunk(s, at, begin, len);
	s->next = larger_of(s->next, begin + len);
}

static void content_note_acked(struct world *w, size_t at, uint64_t begin, uint64_t end)
{
	struct content *content = &w->contents[at];
	offsets_add(&content->acked, begin, end);
	for (uint64_t offset = begin; offset < end; offset++)
		if (!content->acked_ms[offset])
			content->acked_ms[offset] = now_ms(w);
}

static void sender_on_done(struct stream_submission *submission)
{
	struct sender *s = submission->owner;
	struct world *w = s->world;
	for (size_t i = 0; i < s->count; i++) {
		const struct stream_chunk *chunk = &s->chunks[i];
		const struct chunk_fields *f = &chunk->frame.fields;
		size_t at = chunk->id.incarnation - 1;
		uint64_t begin = chunk_begin(f);
		bool acked = chunk->outcome == STREAM_TAKEN || chunk->outcome == STREAM_HELD;
		trace(w, "content %zu from %llu to %llu: outcome %d, error %d", at,
		      (unsigned long long)begin, (unsigned long long)f->sequence_id, chunk->outcome,
		      chunk->err);
		if (chunk->outcome == STREAM_OTHER)
			differ(w,
			       "of content %zu the bytes from %llu to %llu are said to be others",
			       at, (unsigned long long)begin, (unsigned long long)f->sequence_id);
		if (acked)
			content_note_acked(w, at, begin, f->sequence_id);
		else if (s->all)
			s->next = smaller_of(s->next, (size_t)begin);
		w->acks += acked;
	}
	s->waits = false;
}

static void sender_send(struct sender *s, struct process *p)
{
	struct world *w = s->world;
	if (s->waits || p->frozen)
		return;
	if (!s->all && (s->next >= w->contents[s->content].len || chance(w, 4)))
		sender_begin(s);
	buf_clear(&s->frames);
	s->count = 1 + pick(w, CHUNKS);
	char *room = buf_reserve(&s->frames, CHUNKS * 4096); /* so that frames stay there */
	ASSERT(room);
	for (size_t i = 0; i < s->count; i++) {
		sender_make_chunk(s, i);
		if (s->next >= w->contents[s->content].len)
			s->count = i + 1;
	}
	s->submission = (struct stream_submission){
		.chunks = s->chunks, .count = s->count, .done = sender_on_done, .owner = s};
	s->waits = true;
	if (collector_submit(streams_collector(p->streams), &s->submission))
		s->waits = false;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void advance(struct world *w, int64_t ms)
{
	if (now_ms(w) - w->begun_ms < TIME_MAX_MS)
		clock_virtual_advance(&w->clock, ms * 1000);
}

static void begin_work(struct world *w, struct process *p,
		       void (*run)(struct task_queue *queue, void *owner))
{
	if (p->frozen || !w->content_count)
		return;
	struct work *work = process_begin(p, run);
	if (!work)
		return;
	/* Mostly one that is being sent. */
	size_t back = pick(w, w->content_count > 4 && chance(w, 70) ? 4 : w->content_count);
	work->content = w->content_count - 1 - back;
	work->stream = pick(w, STREAMS);
	work->slow = chance(w, 50);
	work_note(work);
}

/* Who is at work freezes, and when his time is over others go on for a while. */
static void take_over(struct world *w, struct process *p)
{
	if (p->frozen || !process_is_at_work(p))
		return;
	process_freeze(p, true);
	advance(w, LEASE_MS + 2 * SKEW_MS);
}

/* It has made samples, whose series it looks for before it writes them. */
static bool ingest_is_opening(const struct process *p)
{
	return !ingest_idle(p->ingest) && !far_has_writes(p->store);
}

static void restart(struct world *w, struct process *p)
{
	trace(w, "%s dies", p->name);
	size_t place = p->place;
	process_close(p);
	process_open(w, p, place);
}

static bool step_anybody(struct world *w)
{
	size_t from = pick(w, w->process_count);
	for (size_t i = 0; i < w->process_count; i++) {
		struct process *p = &w->processes[(from + i) % w->process_count];
		if (!p->frozen && process_step(p))
			return true;
	}
	return false;
}

/* Nobody fails any more, for so long that all that waits is done. */
static void come_to_rest(struct world *w, int64_t ms)
{
	static const struct far_faults none;
	int64_t until_ms = now_ms(w) + ms;
	w->rests = true;
	far_set_faults(w->far, &none);
	for (size_t i = 0; i < w->process_count; i++)
		process_freeze(&w->processes[i], false);
	for (int i = 0; now_ms(w) < until_ms && !w->failure[0]; i++) {
		ASSERT(i < RESTS_MAX);
		bool any = step_anybody(w);
		any |= far_step(w->far);
		if (any)
			continue;
		check_gone_is_old(w);
		clock_virtual_advance(&w->clock, EVERY_MS * INT64_C(1000));
	}
}

static void run_step(struct world *w)
{
	unsigned kind = (unsigned)pick(w, 1000);
	struct process *p = &w->processes[pick(w, w->process_count)];
	if (kind < 400) {
		for (uint64_t n = 1 + pick(w, 8); n && !p->frozen && process_step(p); n--)
			if (!w->calm && ingest_is_opening(p) && chance(w, 20))
				take_over(w, p);
	} else if (kind < 750) {
		for (uint64_t n = pick(w, 20); n; n--)
			(void)far_step(w->far);
	} else if (kind < 800) {
		sender_send(&w->senders[pick(w, SENDERS)], p);
	} else if (kind < 840) {
		begin_work(w, p, chance(w, 60) ? work_read : work_search);
	} else if (kind < 960) {
		advance(w, (int64_t)pick(w, 3000));
	} else if (kind < 966) {
		advance(w, w->calm ? 0 : (int64_t)pick(w, LEASE_MS));
	} else if (kind < 970) {
		if (w->removes == REMOVES_DELETED)
			begin_work(w, p, work_delete);
	} else if (p->frozen) {
		if (w->calm || chance(w, 30))
			process_freeze(p, false);
	} else if (w->calm) {
		return;
	} else if (kind < 980) {
		take_over(w, p);
	} else if (kind < 984) {
		process_freeze(p, true);
	} else if (kind < 987) {
		restart(w, p);
	} else if (kind < 992 && w->removed_come_back) {
		static const enum table logs[] = {TABLE_CHUNK_TAIL, TABLE_CHUNK_SINK,
						  TABLE_CHUNK_HEADS};
		far_bring_back(w->far, logs[pick(w, ARRAY_LEN(logs))]);
	}
}

/* All that anybody began to send is sent to its end. */
static void send_all(struct world *w)
{
	struct sender *s = &w->senders[0];
	for (size_t i = 0; i < w->content_count && !w->failure[0]; i++) {
		struct content *content = &w->contents[i];
		for (int tries = 0;
		     content->sent && !offsets_cover(&content->acked, 0, content->len); tries++) {
			ASSERT(tries < 1000);
			if (w->failure[0])
				return;
			s->content = i;
			s->next = 0;
			s->all = true;
			while (s->next < content->len && !w->failure[0]) {
				sender_send(s, &w->processes[pick(w, w->process_count)]);
				come_to_rest(w, EVERY_MS);
			}
		}
	}
}

static void world_open(struct world *w, uint64_t seed)
{
	random_init(&w->random, seed);
	clock_virtual_init(&w->clock, INT64_C(1700000000000000));
	w->begun_ms = now_ms(w);
	w->removes = chance(w, 60)   ? REMOVES_NOTHING
		     : chance(w, 50) ? REMOVES_DELETED
				     : REMOVES_OLD;
	w->same_source = chance(w, 50);
	w->faults = (struct far_faults){.unknown = (unsigned)pick(w, 60),
					.failed = (unsigned)pick(w, 20),
					.refused = (unsigned)pick(w, 20),
					.cut = (unsigned)pick(w, 500),
					.full = (unsigned)pick(w, 5)};
	w->far = far_new(&w->clock.clock, random_next(&w->random), &w->faults);
	w->process_count = 2 + pick(w, PROCESSES_MAX - 1);
	w->one_owns_none = chance(w, 30);
	w->removed_come_back = chance(w, 50);
	for (size_t i = 0; i < w->process_count; i++)
		process_open(w, &w->processes[i], i);
	for (size_t i = 0; i < SENDERS; i++) {
		struct sender *s = &w->senders[i];
		s->world = w;
		s->stream = (unsigned)(i % STREAMS);
		buf_init(&s->frames, 1 << 20);
		sender_begin(s);
	}
}

static void world_close(struct world *w)
{
	for (size_t i = 0; i < w->process_count; i++)
		process_close(&w->processes[i]);
	for (size_t i = 0; i < SENDERS; i++)
		buf_release(&w->senders[i].frames);
	for (size_t i = 0; i < w->content_count; i++)
		offsets_release(&w->contents[i].acked);
	far_free(w->far);
}

static void run_world(struct world *w)
{
	static const struct far_faults none;
	for (w->step = 0; w->step < STEPS && !w->failure[0]; w->step++) {
		if (w->step % PHASE_STEPS == 0) {
			w->calm = chance(w, 50);
			far_set_faults(w->far, w->calm ? &none : &w->faults);
		}
		run_step(w);
		check_gone_is_old(w);
	}
	/* What died lands, or never will. */
	come_to_rest(w, LATE_MS + QUIET_MS);
	/* Holes are filled when what is beside them is about to go. */
	if (w->removes == REMOVES_OLD)
		come_to_rest(w, (int64_t)pick(w, KEEP_MS));
	send_all(w);
	come_to_rest(w, QUIET_MS);
	if (!w->failure[0])
		check_landed(w);
	if (!w->failure[0] && w->removes == REMOVES_NOTHING)
		check_samples(w);
	if (!w->failure[0] && w->removes == REMOVES_OLD) {
		come_to_rest(w, KEEP_MS + QUIET_MS);
		check_gone(w);
	}
}

bool run_seed(uint64_t seed, bool tells, char *how, size_t how_bytes)
{
	static struct world world;
	struct world *w = &world;
	memset(w, 0, sizeof(*w));
	w->trace = tells;
	world_open(w, seed);
	run_world(w);
	snprintf(how, how_bytes, "step %zu: %s", w->step, w->failure);
	bool right = !w->failure[0];
	world_close(w);
	world_sums.acks += w->acks;
	world_sums.reads += w->reads;
	world_sums.lines += w->lines_seen;
	world_sums.points += w->points;
	return right;
}

#ifndef STREAM_FAR_PLANTED
int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? SEEDS_LONG : SEEDS, wrong = 0;
	const char *seed = getenv("GRANARY_SEED");
	char how[1024];
	log_set_level(seed ? LOG_WARN : LOG_ERROR);
	if (seed)
		first = last = strtoull(seed, NULL, 10);
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0 &&
	    sscanf(argv[2], "%llu..%llu", &first, &last) == 1)
		last = first;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned long long at = first; at <= last && wrong < 5; at++) {
		if (run_seed(at, seed != NULL, how, sizeof(how)))
			continue;
		wrong++;
		printf("GRANARY_SEED=%llu, %s\n", at, how);
	}
	printf("streams on a far store: seeds %llu..%llu, %llu chunks acknowledged, %llu reads, "
	       "%llu "
	       "lines found, %llu samples compared: %llu are wrong\n",
	       first, last, (unsigned long long)world_sums.acks,
	       (unsigned long long)world_sums.reads, (unsigned long long)world_sums.lines,
	       (unsigned long long)world_sums.points, wrong);
	return wrong != 0;
}
#endif
