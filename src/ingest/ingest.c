#include "ingest/raw_retention.h"

#include "base/random.h"
#include "base/stats.h"
#include "http/http.h"
#include "ingest/marks.h"
#include "marks/marks.h"

enum {
	DEFAULT_IN_FLIGHT_BYTES = 128 << 20,
	DEFAULT_WRITE_BYTES = 1 << 20,
	DEFAULT_CACHE_BYTES = 256 << 20,
	DEFAULT_AHEAD_MS = 86400000,
	DEFAULT_WAIT_MS = 5000,
	BEGUN_WAITS_LONGER = 4, /* than what has cost nothing yet */
	SUBMITTED_BEFORE = 4,   /* this part of the time after which it could not be */
	/* One append may need so much beyond the size at which a write is submitted. */
	WRITE_SPARE_BYTES = 256 << 10,
};

/* ---- The server's part ---------------------------------------------------------------------- */

static void ingest_fill_in(struct ingest_options *options)
{
	if (!options->tenant_tag.data)
		options->tenant_tag = SLICE("tenant");
	options->tenant_tag =
		(struct slice){mem_copy_text(options->tenant_tag), options->tenant_tag.len};
	if (!options->retention.rules)
		options->retention.rules = &retention_for_ever;
	if (!options->ahead_ms)
		options->ahead_ms = DEFAULT_AHEAD_MS;
	if (options->ahead_ms < 0)
		options->ahead_ms = 0;
	if (!options->in_flight_max_bytes)
		options->in_flight_max_bytes = DEFAULT_IN_FLIGHT_BYTES;
	if (!options->write_bytes)
		options->write_bytes = DEFAULT_WRITE_BYTES;
	if (!options->cache_max_bytes)
		options->cache_max_bytes = DEFAULT_CACHE_BYTES;
	if (!options->wait_max_ms)
		options->wait_max_ms = DEFAULT_WAIT_MS;
}

static bool ingest_may_run(const struct backpressure_sender *sender);
static void ingest_resume(struct backpressure_sender *sender);

static void ingest_begin_backpressure(struct ingest *ingest)
{
	ingest->backpressure =
		(struct backpressure){.bytes_max = ingest->options.in_flight_max_bytes,
				      .wait_max_ms = ingest->options.wait_max_ms,
				      .clock = ingest->options.clock,
				      .may_run = ingest_may_run,
				      .resume = ingest_resume};
	backpressure_init(&ingest->backpressure);
}

struct ingest *ingest_new(const struct ingest_options *options)
{
	struct ingest *ingest = mem_zalloc(sizeof(*ingest));
	ingest->options = *options;
	ingest_fill_in(&ingest->options);
	raw_retention_init(ingest);
	ingest->seed = options->seed ? options->seed : random_system_seed();
	ingest->generation = store_series_generation(options->store);
	ingest->cache = cache_new(ingest->options.cache_max_bytes);
	ingest->field_sets = field_sets_new(ingest->seed);
	ingest_begin_backpressure(ingest);
	if (options->partitions)
		recent_touches_init(&ingest->touches, options->rollup_slot_ms,
				    options->rollup_quiet_ms);
	return ingest;
}

void ingest_set_retention(struct ingest *ingest, const struct ingest_retention *retention)
{
	for (struct request *q = ingest->requests; q; q = q->next)
		resolving_keep_targets(q);
	ingest->options.retention = *retention;
	raw_retention_init(ingest);
	cache_clear(ingest->cache);
	for (struct request *q = ingest->requests; q; q = q->next) {
		raw_retention_begin(q);
		resolving_match_again(q);
	}
}

bool ingest_idle(const struct ingest *ingest)
{
	return !ingest->requests;
}

void ingest_free(struct ingest *ingest)
{
	ASSERT(ingest_idle(ingest));
	while (ingest->spare_count)
		store_write_free(ingest->spare[--ingest->spare_count]);
	if (ingest->line)
		line_scratch_free(ingest->line);
	hash_set_release(&ingest->told_texts);
	mem_free((char *)ingest->options.tenant_tag.data);
	cache_free(ingest->cache);
	raw_retention_release(ingest);
	recent_touches_release(&ingest->touches);
	field_sets_free(ingest->field_sets);
	mem_free(ingest);
}

/* ---- Pending writes ------------------------------------------------------------------------- */

static struct store_write *ingest_acquire_write(struct ingest *ingest)
{
	if (ingest->spare_count)
		return ingest->spare[--ingest->spare_count];
	return store_write_new(ingest->options.store,
			       ingest->options.write_bytes + WRITE_SPARE_BYTES);
}

static void ingest_release_write(struct ingest *ingest, struct store_write *write)
{
	if (ingest->spare_count == INGEST_SPARE_WRITES) {
		store_write_free(write);
		return;
	}
	store_write_reset(write);
	ingest->spare[ingest->spare_count++] = write;
}

static void pending_write_end(struct pending_write *pending, int err)
{
	resolving_finish_all(pending->resolvings, err);
	mem_free(pending->touches);
	ingest_release_write(pending->request->r.ingest, pending->write);
	mem_free(pending);
}

static void ingest_drop_pending(struct request *q)
{
	struct pending_write *pending = q->filling;
	q->filling = NULL;
	if (pending)
		pending_write_end(pending, ERR_CANCELLED);
}

static void pending_write_over(struct pending_write *pending, int err)
{
	struct request *q = pending->request;
	struct store_write *write = pending->write;
	q->pending_count--;
	q->pending_bytes -= pending->bytes;
	/* ERR_LIMIT: a set of aggregators is full; the samples are there all the same. */
	if (err && err != ERR_LIMIT) {
		request_fail(q, err, write->error.text);
	} else {
		stat_add(STAT_ingest_samples, (int64_t)write->samples);
		stat_add(STAT_ingest_late, (int64_t)pending->late);
	}
	/* Names may lie in writes before this one, and those end first. */
	pending_write_end(pending, err ? err : q->r.err);
	request_account(q);
	request_progress(q);
}

/* A roll-up may have judged the marks of these samples quiet by now, and removed them. */
static bool ingest_judged_too_long_ago(const struct ingest *ingest,
				       const struct pending_write *pending)
{
	const struct ingest_options *options = &ingest->options;
	int64_t max_ms =
		recent_touches_write_max_ms(options->rollup_quiet_ms, options->rollup_skew_max_ms);
	return options->partitions && clock_wall_ms(options->clock) - pending->judged_ms >= max_ms;
}

#define TOO_LONG_AGO "its samples have waited too long to be written"
#define TOO_LATE     "its samples were written too late for their roll-ups; send them again"

static void ingest_write_all_marked(struct request *q);
static int ingest_submit_pending(struct request *q, struct pending_write *pending);

/* Sends a write whose outcome is not known again: the same samples with the same stamp, so
 * whichever of both lands last changes nothing. A sender's repetition has another stamp, maybe a
 * lower one if another process takes it, and then what lands late would win over it, unseen by
 * roll-ups. The write is sent again only while its marks are sure to stand. After that the sender
 * has to repeat it, and the repetition makes new marks. */
static bool ingest_sends_again(struct request *q, struct pending_write *pending, int err)
{
	const struct ingest *ingest = q->r.ingest;
	return err == ERR_UNKNOWN && ingest->options.partitions &&
	       !(pending->write->store->engine->can & STORE_SERIAL_WRITES) &&
	       !ingest_judged_too_long_ago(ingest, pending) && !ingest_submit_pending(q, pending);
}

/* A request with writes in `waiting` is not freed by pending_write_over(). */
static void ingest_on_written(struct store_write *write, int err)
{
	struct pending_write *pending = write->owner;
	struct request *q = pending->request;
	bool others = q->waiting;
	q->marks_under_way -= pending->marks;
	if (ingest_sends_again(q, pending, err))
		return;
	if ((!err || err == ERR_LIMIT) && !(write->store->engine->can & STORE_SERIAL_WRITES) &&
	    ingest_judged_too_long_ago(q->r.ingest, pending))
		err = errbuf_set(&write->error, ERR_UNKNOWN, TOO_LATE);
	pending_write_over(pending, err);
	if (others)
		ingest_write_all_marked(q);
}

struct pending_write *request_pending(struct request *q)
{
	if (q->filling)
		return q->filling;
	struct pending_write *pending = mem_zalloc(sizeof(*pending));
	pending->request = q;
	pending->judged_ms = q->judged_ms;
	pending->leans = q->leans;
	pending->write = ingest_acquire_write(q->r.ingest);
	pending->write->executor = q->r.ingest->options.executor;
	pending->write->done = ingest_on_written;
	pending->write->owner = pending;
	pending->write->stamp_us = q->r.door.stamp_us;
	q->filling = pending;
	return pending;
}

static bool ingest_must_wait(const struct request *q, const struct pending_write *pending)
{
	return pending->leans && q->marks_under_way;
}

static int ingest_submit_pending(struct request *q, struct pending_write *pending)
{
	int err = store_write_submit(pending->write);
	q->marks_under_way += !err && pending->marks;
	return err;
}

static int ingest_write_marked(struct request *q, struct pending_write *pending)
{
	struct store_write *write = pending->write;
	if (q->r.err)
		return ERR_CANCELLED;
	if (pending->mark_err)
		return errbuf_set(&write->error, pending->mark_err,
				  "its samples could not be marked for their roll-ups: %s",
				  err_text(pending->mark_err));
	if (ingest_judged_too_long_ago(q->r.ingest, pending))
		return errbuf_set(&write->error, ERR_BUSY, TOO_LONG_AGO);
	return ingest_submit_pending(q, pending);
}

/* Writes go to the store in the order in which they were submitted. The request may be freed with
 * the last of them. */
static void ingest_write_all_marked(struct request *q)
{
	struct pending_write *pending = q->waiting;
	while (pending && pending->marked && !ingest_must_wait(q, pending)) {
		struct pending_write *next = pending->next;
		q->waiting = next;
		if (!next)
			q->waiting_last = &q->waiting;
		int err = ingest_write_marked(q, pending);
		if (err)
			pending_write_over(pending, err);
		pending = next;
	}
}

static void ingest_on_marked(void *owner, int err)
{
	struct pending_write *pending = owner;
	pending->marked = true;
	pending->mark_err = err;
	ingest_write_all_marked(pending->request);
}

/* A write goes to the store when its marks are durable, and those of earlier writes too. */
static int ingest_mark_then_write(struct request *q, struct pending_write *pending)
{
	bool waits = ingest_marks_wait(pending);
	if (!waits && !q->waiting && !ingest_must_wait(q, pending))
		return ingest_submit_pending(q, pending);
	int err = waits ? ingest_marks_begin(pending, ingest_on_marked) : 0;
	if (err)
		return err;
	pending->marked = !waits;
	*q->waiting_last = pending;
	q->waiting_last = &pending->next;
	return 0;
}

void request_submit(struct request *q)
{
	struct pending_write *pending = q->filling;
	if (!pending)
		return;
	if (UNLIKELY(ingest_judged_too_long_ago(q->r.ingest, pending))) {
		request_fail(q, ERR_BUSY, TOO_LONG_AGO);
		return;
	}
	pending->bytes = pending->write->arena.used_bytes;
	int err = ingest_mark_then_write(q, pending);
	if (err) {
		request_fail(q, err, pending->write->error.text);
		return;
	}
	q->filling = NULL;
	if (q->r.door.stamp_us) /* of two values of one sample the later wins */
		q->r.door.stamp_us += (int64_t)pending->write->samples;
	q->pending_count++;
	q->pending_bytes += pending->bytes;
}

/* ---- Appending ------------------------------------------------------------------------------ */

/* A sample lies in one of the two tables, never in both. */
struct store_target request_target(const struct request *q, uint8_t level, int64_t ts_ms)
{
	const struct ingest *ingest = q->r.ingest;
	if (UNLIKELY(ts_ms < q->level_open_ms[level]))
		return (struct store_target){TABLE_DATA_LATE, ingest->late_retention};
	return (struct store_target){TABLE_DATA_RAW, ingest->level_classes[level]};
}

static int ingest_append(struct request *q, const struct store_target *target, int64_t ts_ms,
			 const uint64_t *handles, const struct value *values, size_t count)
{
	struct pending_write *pending = request_pending(q);
	int err = store_append(pending->write, target, ts_ms, handles, count, values);
	pending->late += err || target->table != TABLE_DATA_LATE ? 0 : count;
	return err;
}

void request_append_to(struct request *q, const struct store_target *target, int64_t ts_ms,
		       const uint64_t *handles, const struct value *values, size_t count)
{
	if (UNLIKELY(q->r.err || !count))
		return;
	int err = ingest_append(q, target, ts_ms, handles, values, count);
	if (UNLIKELY(err == ERR_LIMIT)) {
		request_submit(q);
		if (q->r.err)
			return;
		err = ingest_append(q, target, ts_ms, handles, values, count);
	}
	if (UNLIKELY(err)) {
		request_fail(q, err, q->filling->write->error.text);
		return;
	}
	q->r.accepted += count;
	if (q->filling->write->arena.used_bytes >= q->r.ingest->options.write_bytes)
		request_submit(q);
}

/* ---- Requests ------------------------------------------------------------------------------- */

static void ingest_link_request(struct ingest *ingest, struct request *q)
{
	q->next = ingest->requests;
	q->link = &ingest->requests;
	if (q->next)
		q->next->link = &q->next;
	ingest->requests = q;
}

static void ingest_on_nothing_to_do(struct task *task)
{
	struct request *q = CONTAINER_OF(task, struct request, task);
	q->in_task = false;
	request_progress(q);
}

struct ingest_request *ingest_request_new(struct ingest *ingest, const struct ingest_door *door)
{
	struct request *q = mem_zalloc(sizeof(*q));
	q->r.ingest = ingest;
	q->r.door = *door;
	q->task.run = ingest_on_nothing_to_do;
	q->waiting_last = &q->waiting;
	arena_init(&q->r.arena, INGEST_ARENA_MAX_BYTES);
	ingest_link_request(ingest, q);
	ingest_piece_begin(&q->r);
	return &q->r;
}

static void ingest_unpause(struct request *q)
{
	backpressure_unpause(&q->r.ingest->backpressure, &q->sender);
}

static void ingest_destroy(struct request *q)
{
	ASSERT(!q->pending_count && !q->opening && !q->in_task);
	ingest_drop_pending(q);
	resolving_drop_gathering(q);
	ingest_unpause(q);
	request_account(q);
	ASSERT(q->sender.bytes == 0);
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
	arena_release(&q->r.arena);
	mem_free(q);
}

void ingest_request_free(struct ingest_request *r)
{
	struct request *q = request_of(r);
	ASSERT(q->ended);
	ingest_destroy(q);
}

void ingest_request_abandon(struct ingest_request *r)
{
	struct request *q = request_of(r);
	q->abandoned = true;
	ingest_drop_pending(q);
	resolving_drop_gathering(q);
	ingest_unpause(q);
	request_account(q);
	if (!q->pending_count && !q->opening && !q->in_task)
		ingest_destroy(q);
}

/* A handle that died in the meantime is a matter of trying again: by then the cache has forgotten
 * it. */
void request_fail(struct request *q, int err, const char *sentence)
{
	if (err == ERR_NOT_FOUND) {
		err = ERR_RETRY;
		cache_clear(q->r.ingest->cache);
	}
	if (!q->r.err) {
		q->r.err = err;
		errbuf_set(&q->r.error, err, "%s", *sentence ? sentence : err_text(err));
		stat_add(STAT_ingest_failed, 1);
	}
	ingest_drop_pending(q);
	resolving_drop_gathering(q);
}

/* ---- Pieces --------------------------------------------------------------------------------- */

/* Series whose marks were lost have to be marked again when more of their samples come. */
static void ingest_forget_lost_marks(struct ingest *ingest, int64_t now_ms)
{
	uint64_t losses = marks_losses(ingest->options.marks);
	recent_touches_at(&ingest->touches, now_ms);
	if (losses != ingest->losses)
		recent_touches_forget(&ingest->touches);
	ingest->losses = losses;
}

void ingest_piece_begin(struct ingest_request *r)
{
	struct request *q = request_of(r);
	struct ingest *ingest = r->ingest;
	r->now_ms = q->judged_ms = clock_wall_ms(ingest->options.clock);
	if (ingest->options.partitions)
		ingest_forget_lost_marks(ingest, r->now_ms);
	q->newest_ms = r->now_ms + ingest->options.ahead_ms;
	q->age_ms = clock_age_ms(ingest->options.clock);
	raw_retention_begin(q);
	uint64_t generation = store_series_generation(ingest->options.store);
	if (generation == ingest->generation)
		return;
	ingest->generation = generation;
	cache_clear(ingest->cache);
}

void ingest_piece_end(struct ingest_request *r)
{
	struct request *q = request_of(r);
	resolving_piece_end(q);
	request_account(q);
	if (r->ingest->backpressure.bytes > 2 * r->ingest->options.in_flight_max_bytes && !r->err) {
		request_fail(q, ERR_BUSY,
			     "too many samples wait to be written (ingest.in_flight_max)");
		request_account(q);
	}
}

void ingest_request_end(struct ingest_request *r)
{
	struct request *q = request_of(r);
	ASSERT(!q->ended);
	resolving_start(q);
	ingest_piece_end(r);
	q->ended = true;
	if (!resolving_pending(q))
		request_submit(q);
	ingest_unpause(q);
	if (q->pending_count || resolving_pending(q))
		return;
	q->in_task = true;
	r->ingest->options.executor->post(r->ingest->options.executor, &q->task);
}

/* ---- Back-pressure -------------------------------------------------------------------------- */

void request_account(struct request *q)
{
	size_t bytes = q->pending_bytes + resolving_bytes(q);
	if (q->filling)
		bytes += q->filling->write->arena.used_bytes;
	backpressure_account(&q->r.ingest->backpressure, &q->sender, bytes);
}

static bool ingest_may_run(const struct backpressure_sender *sender)
{
	const struct request *q = CONTAINER_OF(sender, struct request, sender);
	return q->r.err ||
	       (backpressure_has_room(&q->r.ingest->backpressure, sender) && !resolving_crowded(q));
}

static void ingest_resume(struct backpressure_sender *sender)
{
	struct request *q = CONTAINER_OF(sender, struct request, sender);
	q->r.door.resume(&q->r);
}

/* Samples that requests have gathered count, but only submitted ones ever end. */
static void ingest_submit_all(struct ingest *ingest)
{
	for (struct request *q = ingest->requests; q; q = q->next) {
		resolving_settle(q);
		request_submit(q);
		request_account(q);
	}
}

bool ingest_request_must_pause(struct ingest_request *r)
{
	struct request *q = request_of(r);
	request_account(q);
	if (q->sender.is_paused || ingest_may_run(&q->sender))
		return q->sender.is_paused;
	ingest_submit_all(r->ingest);
	if (ingest_may_run(&q->sender))
		return false;
	backpressure_pause(&r->ingest->backpressure, &q->sender);
	return true;
}

#define OVERLOADED                                                                                 \
	"the server takes no more for now: too much waits to be written "                          \
	"(ingest.in_flight_max, ingest.wait_max)"

static bool ingest_is_overdue(const struct request *q)
{
	int64_t max_ms = q->r.ingest->options.wait_max_ms;
	if (q->sender.bytes || q->r.accepted)
		max_ms *= BEGUN_WAITS_LONGER;
	return !q->r.door.patient &&
	       backpressure_waited_ms(&q->r.ingest->backpressure, &q->sender) >= max_ms;
}

/* A request that is failed may go, and others with it, so each search begins at the front. */
static struct request *ingest_find_overdue(const struct ingest *ingest)
{
	struct backpressure_sender *sender = ingest->backpressure.paused;
	while (sender && !ingest_is_overdue(CONTAINER_OF(sender, struct request, sender)))
		sender = sender->next;
	return sender ? CONTAINER_OF(sender, struct request, sender) : NULL;
}

/* Somebody who sends little at a time must not be told at the end that it was too long ago. */
static void ingest_submit_old(struct ingest *ingest)
{
	const struct ingest_options *options = &ingest->options;
	int64_t max_ms =
		recent_touches_write_max_ms(options->rollup_quiet_ms, options->rollup_skew_max_ms);
	int64_t now_ms = clock_wall_ms(options->clock);
	for (struct request *q = ingest->requests; q; q = q->next) {
		resolving_settle(q);
		if (q->filling && now_ms - q->filling->judged_ms >= max_ms / SUBMITTED_BEFORE)
			request_submit(q);
		request_account(q);
	}
}

void ingest_tick(struct ingest *ingest)
{
	struct request *q;
	if (ingest->options.partitions)
		ingest_submit_old(ingest);
	while ((q = ingest_find_overdue(ingest))) {
		stat_add(STAT_ingest_overload_waited, 1);
		request_fail(q, ERR_BUSY, OVERLOADED);
		request_account(q);
		ingest_unpause(q);
		q->r.door.resume(&q->r);
	}
	backpressure_resume(&ingest->backpressure);
}

bool ingest_turns_away(const struct ingest *ingest, const char **sentence)
{
	if (!backpressure_turns_away(&ingest->backpressure))
		return false;
	stat_add(STAT_ingest_overload_at_once, 1);
	*sentence = OVERLOADED;
	return true;
}

/* ---- The end of things ---------------------------------------------------------------------- */

static void ingest_sort_errors(struct ingest_request *r)
{
	for (size_t i = 1; i < r->error_count; i++) {
		struct ingest_error moved = r->errors[i];
		size_t j = i;
		for (; j > 0; j--) {
			const struct ingest_place *a = &moved.place, *b = &r->errors[j - 1].place;
			if (a->index > b->index || (a->index == b->index && a->column >= b->column))
				break;
			r->errors[j] = r->errors[j - 1];
		}
		r->errors[j] = moved;
	}
}

void request_progress(struct request *q)
{
	struct ingest *ingest = q->r.ingest;
	if (!q->pending_count && !resolving_pending(q) && !q->in_task) {
		if (q->abandoned) {
			ingest_destroy(q);
		} else if (q->ended) {
			ingest_sort_errors(&q->r);
			q->r.door.done(&q->r);
		}
	}
	backpressure_resume(&ingest->backpressure);
}

/* Mistakes of a sender are refused sample by sample: an error of the request is the server's. */
int ingest_status(const struct ingest_request *r)
{
	if (!r->err)
		return r->refused ? 400 : 204;
	int status = http_status_of(r->err);
	return status < 500 ? 500 : status;
}
