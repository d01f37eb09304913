/* Sealing: what a head holds goes into extents, so that its memory and its part of the journal
 * become free. A head is sealed when it
 *
 *   - is full (seal_if_full asks for it; a queue of groups, since heads of one group are sealed
 *     together),
 *   - belongs to a closed segment and has been quiet (seal_scan asks for it),
 *   - is among the oldest while journal or heads have grown too large or old, or room is short
 *     (seal_oldest).
 *
 * If nothing of its band lies on disk in that span of time, its blocks go into new extents of the
 * group; else the whole group is read, merged and written again. Either way the head stays visible
 * until the transaction is committed, and goes then (seal_committed); until then it is `taken`. */
#include "base/fault.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/upkeep/upkeep.h"

enum {
	SEAL_ROWS_LEAST = 64, /* a smaller head is not sealed unless it must be */
	SCAN_INTERVAL_US = 5000000,
	CUT_PARTS = 16,
};

static struct group_id group_of_head(struct engine *engine, const struct head *head)
{
	struct segment_id segment = head_segment(head);
	return engine_group_of(engine, &segment, head->shape, head->ordinal, NULL);
}

static void queue_add(struct engine *engine, const struct head *head, bool all)
{
	struct seal_queue *queue = &engine->seals;
	if (queue->first + queue->count == queue->cap && queue->first > queue->count) {
		memmove(queue->list, queue->list + queue->first,
			queue->count * sizeof(*queue->list));
		queue->first = 0;
	}
	GROW(queue->list, queue->cap, queue->first + queue->count + 1);
	queue->list[queue->first + queue->count++] =
		(struct seal_request){group_of_head(engine, head), all};
}

void seal_begun(struct engine *engine, struct head *head)
{
	struct group_id id = group_of_head(engine, head);
	head->blocks_end_ms = unsettled_end_ms(&engine->unsettled, &id);
}

void seal_if_full(struct engine *engine, struct head *head)
{
	if (!head_is_full(head) || head->queued)
		return;
	head->queued = true;
	queue_add(engine, head, false);
}

static void seal_mark_head(struct engine *engine, struct head *head)
{
	GROW(engine->sealed, engine->sealed_cap, engine->sealed_count + 1);
	head->taken = true;
	engine->sealed[engine->sealed_count++] = head;
}

void seal_mark_heads(struct engine *engine, const struct sealing *sealing, bool rewritten)
{
	for (size_t i = 0; i < sealing->count; i++)
		seal_mark_head(engine, sealing->heads[i]);
	stat_add(STAT_store_seals, (int64_t)sealing->count);
	stat_add(STAT_store_seal_rewrites, rewritten);
}

void seal_collect(struct engine *engine, const struct group_id *id, bool all,
		  struct sealing *sealing)
{
	uint32_t bands = group_bands(registry_columns(&engine->registry, id->shape));
	*sealing = (struct sealing){.count = 0};
	for (uint32_t i = 0; i < bands; i++) {
		struct head *head =
			heads_find(&engine->heads, &id->segment, id->shape, id->group * bands + i);
		if (!head || (!all && head->rows < SEAL_ROWS_LEAST) || head->taken)
			continue;
		sealing->ordinal_in_group[sealing->count] = i;
		sealing->heads[sealing->count++] = head;
	}
}

static int64_t seal_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void seal_widen(struct band_span *span, int64_t min_ts_ms, int64_t max_ts_ms)
{
	if (min_ts_ms < span->min_ts_ms)
		span->min_ts_ms = min_ts_ms;
	if (max_ts_ms > span->max_ts_ms)
		span->max_ts_ms = max_ts_ms;
}

/* Of what is sealed, by band. */
static void get_spans(const struct sealing *sealing, struct band_span spans[GROUP_BANDS_MAX])
{
	for (size_t i = 0; i < GROUP_BANDS_MAX; i++)
		spans[i] = (struct band_span){
			.min_ts_ms = INT64_MAX, .max_ts_ms = INT64_MIN, .end_ms = INT64_MIN};
	for (size_t i = 0; i < sealing->count; i++)
		seal_widen(&spans[sealing->ordinal_in_group[i]], head_min_ts_ms(sealing->heads[i]),
			   sealing->heads[i]->max_ts_ms);
	for (size_t i = 0; i < sealing->run_count; i++)
		seal_widen(&spans[sealing->runs[i].ordinal_in_group], sealing->runs[i].min_ts_ms,
			   sealing->runs[i].max_ts_ms);
}

/* Most often all that is sealed is newer than what is there, and known to be. */
static bool seal_is_newer(const struct band_span spans[GROUP_BANDS_MAX], int64_t end_ms)
{
	for (size_t i = 0; i < GROUP_BANDS_MAX; i++) {
		if (spans[i].min_ts_ms <= end_ms)
			return false;
	}
	return true;
}

/* Whether a band has blocks on disk in its span of time; and where all blocks of the group end. */
static int must_rewrite(struct engine *engine, MDB_txn *txn, const struct group_id *id,
			struct band_span spans[GROUP_BANDS_MAX], bool *rewrite, int64_t *end_ms)
{
	*rewrite = false;
	*end_ms = unsettled_end_ms(&engine->unsettled, id);
	if (*end_ms != INT64_MAX && seal_is_newer(spans, *end_ms))
		return 0;
	int err = group_spans(txn, engine->env.dbi[DB_EXTENTS], id, spans);
	*end_ms = err ? INT64_MAX : INT64_MIN;
	for (size_t i = 0; i < GROUP_BANDS_MAX; i++) {
		*rewrite = *rewrite || spans[i].overlaps;
		*end_ms = seal_later(*end_ms, spans[i].end_ms);
	}
	return err;
}

static void seal_add_run(struct engine *engine, const struct record_run *run, uint64_t sequence)
{
	const struct group_id *id = &run->id;
	enum table table = id->segment.sheet.table;
	unsigned columns = registry_columns(&engine->registry, id->shape) *
			   (unsigned)schema[table].field_count;
	struct record_rows rows = {run->at, run->bytes, run->rows, sequence};
	strips_add_rows(&engine->strips, table, columns, &rows, run->ordinal_in_group);
}

int seal_write(struct engine *engine, MDB_txn *txn, const struct group_id *id,
	       const struct sealing *sealing, bool rewrite, uint32_t flush, uint64_t *bytes,
	       bool *changed)
{
	struct strips *strips = &engine->strips;
	MDB_dbi extents = engine->env.dbi[DB_EXTENTS];
	int err = rewrite ? strips_load(strips, txn, extents, id) : 0;
	for (size_t i = 0; i < sealing->count && !err; i++)
		strips_add_head(strips, sealing->heads[i], sealing->ordinal_in_group[i]);
	for (size_t i = 0; i < sealing->run_count && !err; i++)
		seal_add_run(engine, &sealing->runs[i], sealing->sequence);
	if (!err && rewrite)
		err = group_clear(txn, extents, id, changed);
	if (!err) {
		*changed = true;
		err = group_store(txn, extents, id, strips, flush, bytes);
	}
	strips_reset(strips);
	return err;
}

int seal_put(struct engine *engine, MDB_txn *txn, const struct group_id *id,
	     const struct sealing *sealing, uint64_t *bytes)
{
	struct band_span spans[GROUP_BANDS_MAX];
	bool rewrite = false, changed = false;
	int64_t end_ms = INT64_MAX;
	int err = fault("store.seal");
	get_spans(sealing, spans);
	if (!err)
		err = must_rewrite(engine, txn, id, spans, &rewrite, &end_ms);
	if (!err)
		err = seal_write(engine, txn, id, sealing, rewrite, engine->next_flush++, bytes,
				 &changed);
	if (err == ERR_DAMAGED && !changed) {
		/* What cannot be read cannot be merged: it stays as it is, reads of it fail, and
		 * what is new goes beside it. */
		log_warn("store %s: table %s has a damaged group; new data is kept beside it",
			 engine->options.path, schema[id->segment.sheet.table].name);
		rewrite = false;
		err = seal_write(engine, txn, id, sealing, false, engine->next_flush++, bytes,
				 &changed);
	}
	if (err)
		return err;
	seal_mark_heads(engine, sealing, rewrite);
	for (size_t i = 0; i < GROUP_BANDS_MAX; i++)
		end_ms = seal_later(end_ms, spans[i].max_ts_ms);
	unsettled_add_known(&engine->unsettled, id, engine_now_us(engine), end_ms);
	return 0;
}

static int seal_group(struct engine *engine, MDB_txn *txn, const struct seal_request *request,
		      struct slice_budget *budget)
{
	struct sealing sealing;
	seal_collect(engine, &request->id, request->all, &sealing);
	if (sealing.count == 0)
		return 0;
	return seal_put(engine, txn, &request->id, &sealing, &budget->bytes);
}

int seal_requested(struct engine *engine, MDB_txn *txn, struct slice_budget *budget)
{
	struct seal_queue *queue = &engine->seals;
	while (queue->count && !budget_spent(budget)) {
		struct seal_request request = queue->list[queue->first];
		int err = seal_group(engine, txn, &request, budget);
		if (err)
			return err; /* it stays asked for */
		queue->first++;
		queue->count--;
	}
	if (!queue->count)
		queue->first = 0;
	return 0;
}

static bool journal_too_old(struct engine *engine, int64_t now_ms)
{
	if (engine->journal_count == 0)
		return false;
	return engine->journal[engine->journal_first].written_ms <
	       now_ms - engine->options.journal_max_age_ms;
}

static bool under_pressure(struct engine *engine)
{
	/* Without room: extents take far less of it than the journal. */
	return engine->full || engine->journal_bytes > engine->options.journal_max_bytes ||
	       engine->heads.bytes > engine->options.head_max_bytes ||
	       journal_too_old(engine, clock_wall_ms(engine->options.clock));
}

/* How far the journal must be cut: a sixteenth of it when it is too long or old, or all. More at
 * once would seal heads that may still grow, and leave as much memory idle until others have grown.
 */
static uint64_t pressure_sequence(struct engine *engine)
{
	if (settles_all(engine) || engine->full)
		return engine->next_sequence;
	size_t at = engine->journal_first + engine->journal_count / CUT_PARTS;
	if (engine->journal_count < CUT_PARTS)
		return engine->next_sequence;
	return engine->journal[at % engine->journal_cap].first_sequence;
}

/* How many heads there are for what the journal has grown by, so that all are sealed, one after the
 * other, each time that it has grown by all it may: heads that began together, as those of devices
 * that are polled together do, would else all become full together, and need twice the memory.
 * While half of the journal is free there is no hurry. */
static size_t heads_in_pace(struct engine *engine)
{
	uint64_t most = engine->options.journal_max_bytes, grown = engine->journal_grown;
	if (engine->journal_bytes < most / 2) {
		engine->journal_grown = 0;
		return 0;
	}
	size_t count = (size_t)((double)engine->heads.count * (double)grown / (double)most);
	if (count)
		engine->journal_grown = 0;
	return count;
}

int seal_oldest(struct engine *engine, MDB_txn *txn, struct slice_budget *budget)
{
	bool pressed = settles_all(engine) || under_pressure(engine);
	uint64_t target = pressed ? pressure_sequence(engine) : 0;
	size_t before = engine->sealed_count, pace = heads_in_pace(engine);
	struct head *head = engine->heads.oldest;
	while (head && !budget_spent(budget) &&
	       (head->first_sequence < target || engine->sealed_count - before < pace)) {
		if (!head->taken) {
			struct seal_request request = {group_of_head(engine, head), true};
			int err = seal_group(engine, txn, &request, budget);
			if (err)
				return err;
		}
		head = head->newer;
	}
	return 0;
}

/* There may be very many heads, nearly all of segments that are still open: they are only walked
 * when one may be of another. */
void seal_scan(struct engine *engine)
{
	int64_t now = engine_now_us(engine), now_ms = clock_wall_ms(engine->options.clock);
	if (now < engine->scan_due_us && !engine->settle_wanted)
		return;
	engine->scan_due_us = now + SCAN_INTERVAL_US;
	if (engine->heads.least_end_ms > now_ms - SEGMENT_LATE_MS)
		return;
	int64_t quiet_since = quiet_since_us(engine, now), least_end_ms = INT64_MAX;
	for (struct head *head = engine->heads.oldest; head; head = head->newer) {
		struct segment_id id = head_segment(head);
		if (head->queued)
			continue;
		if (head_touched_us(head) > quiet_since || !segment_closed(&id, now_ms)) {
			int64_t end_ms = segment_end_ms(&id);
			least_end_ms = end_ms < least_end_ms ? end_ms : least_end_ms;
			continue;
		}
		head->queued = true;
		queue_add(engine, head, true);
	}
	engine->heads.least_end_ms = least_end_ms;
}

void seal_committed(struct engine *engine)
{
	if (!engine->sealed_count && !engine->has_runs)
		return;
	pthread_rwlock_wrlock(&engine->heads.lock);
	engine->heads.epoch += engine->has_runs;
	for (size_t i = 0; i < engine->sealed_count; i++)
		heads_remove(&engine->heads, engine->sealed[i]);
	pthread_rwlock_unlock(&engine->heads.lock);
	engine->sealed_count = 0;
	engine->has_runs = false;
}

void seal_aborted(struct engine *engine)
{
	engine->has_runs = false;
	for (size_t i = 0; i < engine->sealed_count; i++) {
		engine->sealed[i]->taken = false;
		queue_add(engine, engine->sealed[i], true);
	}
	engine->sealed_count = 0;
}
