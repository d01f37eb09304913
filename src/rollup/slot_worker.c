#include "rollup/slot_worker.h"

#include "base/fault.h"
#include "base/hash_set.h"
#include "base/log.h"
#include "base/stats.h"
#include "marks/watermark.h"
#include "rollup/batch/batch.h"
#include "wire/timetext.h"

enum { DAMAGED_LINES_A_MINUTE = 3, TOLD_MAX = 1000 };

struct slot_worker {
	const struct rollup_site *site;
	int64_t slot_s;
	int64_t asof_ms, seen_ms, until_ms;
	struct rollup_batch *batch;
	struct rollup_batch_mark *ready; /* of the part */
	size_t ready_count;
	struct log_rate lines; /* of marks that cannot be read */
	struct hash_set told;  /* of these */
	struct retention_memo memo;
	struct slot_worker_result result;
};

struct slot_worker *slot_worker_new(const struct rollup_site *site)
{
	struct slot_worker *worker = mem_zalloc(sizeof(*worker));
	worker->site = site;
	worker->lines = (struct log_rate){.lines_max = DAMAGED_LINES_A_MINUTE};
	worker->batch = rollup_batch_new(site);
	return worker;
}

void slot_worker_free(struct slot_worker *worker)
{
	rollup_batch_free(worker->batch);
	retention_memo_release(&worker->memo);
	hash_set_release(&worker->told);
	mem_free(worker->ready);
	mem_free(worker);
}

/* ---- Which are ready ------------------------------------------------------------------------- */

static int worker_compare_ready(const void *a, const void *b)
{
	const struct mark *x = ((const struct rollup_batch_mark *)a)->mark;
	const struct mark *y = ((const struct rollup_batch_mark *)b)->mark;
	int order = slice_compare(x->tenant, y->tenant);
	if (!order)
		order = slice_compare(x->series_set.tags, y->series_set.tags);
	return order ? order : slice_compare(x->series_set.metric, y->series_set.metric);
}

/* Some of its raw data may be gone: whatever were made of the rest would be less than there is. */
static bool worker_expired_after(const struct slot_worker *worker, int64_t retention_ms)
{
	return retention_ms &&
	       worker->slot_s * 1000 < clock_age_ms(worker->site->clock) - retention_ms;
}

/* For how long raw data of the mark's series counts as kept. */
static int64_t worker_whole_ms(struct slot_worker *worker, const struct mark *mark)
{
	const struct retention_rules *rules = rollup_site_rules(worker->site);
	struct retention_fit fit =
		retention_find_encoded(rules, &worker->memo, mark->tenant, mark->series_set.metric);
	return rollup_site_whole_ms(worker->site, rules, fit);
}

static void worker_count_expired(struct slot_worker *worker, uint64_t count)
{
	worker->result.expired += count;
	stat_add(STAT_rollup_expired, (int64_t)count);
}

/* Drops marks of a slot that is so old that raw samples of some series have expired. */
static void worker_drop_expired(struct slot_worker *worker, struct mark *marks, size_t count)
{
	size_t dropped = 0;
	for (size_t i = 0; i < count; i++) {
		/* Nothing can be made of it any more. */
		marks[i].finished =
			worker_expired_after(worker, worker_whole_ms(worker, &marks[i]));
		dropped += marks[i].finished;
	}
	worker_count_expired(worker, dropped);
}

static void worker_keep_next(struct slot_worker *worker, int64_t ready_ms)
{
	if (ready_ms < worker->result.next_ready_ms)
		worker->result.next_ready_ms = ready_ms;
}

static struct rollup_batch_mark *worker_enter(struct slot_worker *worker, struct mark *mark,
					      int64_t ready_ms)
{
	struct rollup_batch_mark *entered = &worker->ready[worker->ready_count++];
	*entered = (struct rollup_batch_mark){.mark = mark};
	if (ready_ms < worker->result.ready_since_ms)
		worker->result.ready_since_ms = ready_ms;
	return entered;
}

/* Raw data of it there was, and nobody has read it: what has touched it since the slot closed are
 * late points. */
static bool worker_has_lost(struct slot_worker *worker, const struct mark *mark)
{
	int64_t raw_ms = worker_whole_ms(worker, mark), quiet_ms = worker->site->quiet_ms;
	return worker_expired_after(worker, raw_ms) && !mark->deleted &&
	       mark->first_ms <= slot_settled_ms(worker->slot_s, raw_ms, quiet_ms) - quiet_ms;
}

/* Late points touch the mark still, and may for as long as they like: raw data is read when all of
 * it is there, once, and the mark stays. A touch that was left out since would be missed if it
 * went. */
static void worker_choose_closed(struct slot_worker *worker, struct mark *mark)
{
	int64_t raw_ms = worker_whole_ms(worker, mark);
	int64_t settled_ms = slot_settled_ms(worker->slot_s, raw_ms, worker->site->quiet_ms);
	if (worker_expired_after(worker, raw_ms)) {
		worker_count_expired(worker, worker_has_lost(worker, mark));
	} else if (settled_ms > worker->asof_ms) {
		worker_keep_next(worker, settled_ms);
		mark->unseen = settled_ms - worker->site->quiet_ms < worker->asof_ms;
	} else if (settled_ms > worker->seen_ms) {
		worker_enter(worker, mark, settled_ms)->stays = true;
	}
}

/* `old`: the slot has closed for some series. */
static void worker_choose_ready(struct slot_worker *worker, struct mark *marks, size_t count,
				bool old)
{
	const struct rollup_site *site = worker->site;
	for (size_t i = 0; i < count; i++) {
		int64_t at_ms = slot_ready_ms(worker->slot_s, marks[i].touched_ms,
					      site->granularities.slot_ms, site->quiet_ms,
					      clock_wall_ms(site->clock));
		if (marks[i].finished)
			continue;
		if (at_ms <= worker->asof_ms) {
			struct rollup_batch_mark *entered = worker_enter(worker, &marks[i], at_ms);
			entered->lost = old && worker_has_lost(worker, &marks[i]);
			continue;
		}
		marks[i].waits = true;
		worker->result.waiting++;
		worker_keep_next(worker, at_ms);
		if (old)
			worker_choose_closed(worker, &marks[i]);
	}
	qsort(worker->ready, worker->ready_count, sizeof(*worker->ready), worker_compare_ready);
}

/* The marks of the part: which are ready, and which wait. */
static void worker_choose_marks(struct slot_worker *worker, struct mark *marks, size_t count)
{
	int64_t shortest_ms = rollup_site_shortest_ms(worker->site),
		quiet_ms = worker->site->quiet_ms;
	worker->ready = mem_resize_array(worker->ready, count + 1, sizeof(*worker->ready));
	worker->ready_count = 0;
	worker->result.series += count;
	if (!rollup_batch_has_late(worker->site, worker->slot_s) &&
	    worker_expired_after(worker, shortest_ms))
		worker_drop_expired(worker, marks, count);
	worker_choose_ready(worker, marks, count,
			    slot_settled_ms(worker->slot_s, shortest_ms, quiet_ms) - quiet_ms <=
				    clock_age_ms(worker->site->clock));
	if (worker->site->watermark)
		watermark_found(worker->site->watermark, worker->slot_s, marks, count);
}

/* ---- Rolling up ------------------------------------------------------------------------------ */

static void worker_count_batch(struct slot_worker *worker, size_t count,
			       const struct rollup_batch_result *result)
{
	uint64_t rolled_up = count - result->failed - result->expired;
	worker->result.failed += result->failed;
	worker->result.rolled_up += rolled_up;
	worker->result.rows += result->rows;
	stat_add(STAT_rollup_series, (int64_t)rolled_up);
	worker_count_expired(worker, result->expired + result->halved);
	stat_add(STAT_rollup_rows, (int64_t)result->rows);
}

/* Whoever follows stamps his rows above the end of our session, so ours lie within. Where nobody
 * else uses the store nobody follows, and stamps may be ahead of a clock that was set back. */
static bool worker_may_begin(const struct slot_worker *worker, int64_t *stamp_us)
{
	struct store *store = worker->site->store;
	int64_t now_ms = clock_wall_ms(worker->site->clock);
	*stamp_us = store_stamp(store);
	if (store_is_shared(store) && *stamp_us / 1000 > now_ms)
		now_ms = *stamp_us / 1000;
	return now_ms < worker->until_ms;
}

/* The marks of the part that are ready, a batch after the other. */
static int worker_roll_up_ready(struct slot_worker *worker, struct task_queue *queue)
{
	size_t max = rollup_batch_max(&worker->site->granularities);
	for (size_t at = 0, count; at < worker->ready_count; at += count) {
		struct rollup_batch_result result;
		int64_t stamp_us;
		worker->result.cut = !worker_may_begin(worker, &stamp_us);
		if (worker->result.cut)
			return 0;
		count = worker->ready_count - at < max ? worker->ready_count - at : max;
		int err = rollup_batch_run(worker->batch, queue, worker->slot_s, stamp_us,
					   &worker->ready[at], count, &result);
		err = err ? err : fault("rollup_finish");
		if (err)
			return err;
		worker_count_batch(worker, count, &result);
	}
	return 0;
}

/* Unread marks hold up no others. Their series are not rolled up; `granary rollup rebuild` marks
 * them again. Each is logged once. */
static void worker_count_unread(struct slot_worker *worker, size_t unread, const char *name)
{
	worker->result.unread += unread;
	if (!unread || !hash_set_add(&worker->told, hash128(name, strlen(name), unread), TOLD_MAX))
		return;
	char slot[TIME_PRINT_MAX_BYTES];
	log_rated(
		&worker->lines, clock_mono_ms(worker->site->clock), LOG_WARN,
		"roll-ups: cannot read %zu marks of the slot at %.*s and leave them; the first is "
		"%s; `granary rollup rebuild` marks their series again",
		unread, (int)time_print(slot, worker->slot_s * 1000), slot, name);
}

int slot_worker_run(struct slot_worker *worker, struct task_queue *queue,
		    const struct mark_slot *slots, size_t count, int64_t asof_ms, int64_t seen_ms,
		    int64_t until_ms, struct slot_worker_result *result)
{
	struct clock *clock = worker->site->clock;
	worker->asof_ms = asof_ms;
	worker->seen_ms = seen_ms;
	worker->until_ms = until_ms;
	worker->slot_s = slots[0].slot_s;
	worker->result = (struct slot_worker_result){.next_ready_ms = INT64_MAX,
						     .ready_since_ms = INT64_MAX};
	struct marks_reading reading = {.marks = worker->site->marks,
					.slots = slots,
					.slot_count = count,
					.settled_ms = asof_ms - worker->site->quiet_ms};
	int err = 0;
	while (!err && !reading.over && !worker->result.cut) {
		err = marks_read(&reading, queue, clock_wall_ms(clock));
		worker_count_unread(worker, reading.unread, reading.unread_name);
		worker_choose_marks(worker, reading.part, reading.count);
		err = err ? err : worker_roll_up_ready(worker, queue);
		err = err ? err : marks_finish(&reading, queue);
	}
	marks_reading_release(&reading);
	*result = worker->result;
	return err;
}
