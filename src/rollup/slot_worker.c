#include "rollup/slot_worker.h"

#include "base/fault.h"
#include "base/hash_set.h"
#include "base/log.h"
#include "base/stats.h"
#include "rollup/batch/batch.h"
#include "marks/watermark.h"

enum { DAMAGED_LINES_A_MINUTE = 3, TOLD_MAX = 1000 };

struct slot_worker {
	struct rollup_job_options options;
	int64_t slot_s;
	int64_t asof_ms, seen_ms;
	struct marks_reading *reading;
	struct rollup_batch *batch;
	struct rollup_batch_mark *ready; /* of the part */
	size_t ready_count;
	struct log_rate lines; /* of marks that cannot be read */
	struct hash_set told;  /* of these */
	struct retention_memo memo;
	struct slot_worker_result result;
};

struct slot_worker *slot_worker_new(const struct rollup_job_options *options)
{
	struct slot_worker *lane = mem_zalloc(sizeof(*lane));
	lane->options = *options;
	lane->lines = (struct log_rate){.lines_max = DAMAGED_LINES_A_MINUTE};
	lane->reading = marks_reading_new(options->track);
	lane->batch = rollup_batch_new(options);
	return lane;
}

void slot_worker_free(struct slot_worker *lane)
{
	marks_reading_free(lane->reading);
	rollup_batch_free(lane->batch);
	retention_memo_release(&lane->memo);
	hash_set_release(&lane->told);
	mem_free(lane->ready);
	mem_free(lane);
}

/* ---- Which are ready ------------------------------------------------------------------------- */

static int64_t ready_ms(const struct slot_worker *lane, const struct mark *mark)
{
	return slot_ready_ms(lane->slot_s, mark->touched_ms, lane->options.granularities->slot_ms,
			     lane->options.quiet_ms, clock_wall_ms(lane->options.clock));
}

static int compare_ready(const void *a, const void *b)
{
	const struct mark *x = ((const struct rollup_batch_mark *)a)->mark;
	const struct mark *y = ((const struct rollup_batch_mark *)b)->mark;
	int order = slice_compare(x->tenant, y->tenant);
	if (!order)
		order = slice_compare(x->series_set.tags, y->series_set.tags);
	return order ? order : slice_compare(x->series_set.metric, y->series_set.metric);
}

/* Some of its raw data may be gone: whatever were made of the rest would be less than there is. */
static bool expired_after(const struct slot_worker *lane, int64_t retention_ms)
{
	return retention_ms &&
	       lane->slot_s * 1000 < clock_age_ms(lane->options.clock) - retention_ms;
}

/* For how long raw data of the mark's series counts as kept. */
static int64_t whole_ms(struct slot_worker *lane, const struct mark *mark)
{
	const struct retention_rules *rules = lane->options.retention_rules;
	struct retention_fit fit =
		retention_find_encoded(rules, &lane->memo, mark->tenant, mark->series_set.metric);
	return retention_whole_ms(rules, fit.raw, lane->options.raw_retention_ms,
				  clock_age_ms(lane->options.clock));
}

/* The same of the series that keeps it for the shortest time. */
static int64_t shortest_whole_ms(const struct slot_worker *lane)
{
	return retention_shortest_whole_ms(lane->options.retention_rules,
					   lane->options.raw_retention_ms,
					   clock_age_ms(lane->options.clock));
}

static void count_expired(struct slot_worker *lane, uint64_t count)
{
	lane->result.expired += count;
	stat_add(STAT_rollup_expired, (int64_t)count);
}

/* Of a slot that is old enough for some series. */
static void drop_expired(struct slot_worker *lane, struct mark *marks, size_t count)
{
	size_t dropped = 0;
	for (size_t i = 0; i < count; i++) {
		/* Nothing can be made of it any more. */
		marks[i].finished = expired_after(lane, whole_ms(lane, &marks[i]));
		dropped += marks[i].finished;
	}
	count_expired(lane, dropped);
}

static void keep_next(struct slot_worker *lane, int64_t ready_ms)
{
	if (ready_ms < lane->result.next_ready_ms)
		lane->result.next_ready_ms = ready_ms;
}

static struct rollup_batch_mark *enter(struct slot_worker *lane, struct mark *mark,
				       int64_t ready_ms)
{
	struct rollup_batch_mark *entered = &lane->ready[lane->ready_count++];
	*entered = (struct rollup_batch_mark){.mark = mark};
	if (ready_ms < lane->result.ready_since_ms)
		lane->result.ready_since_ms = ready_ms;
	return entered;
}

/* Raw data of it there was, and nobody has read it: what has touched it since the slot closed are
 * late points. */
static bool has_lost(struct slot_worker *lane, const struct mark *mark)
{
	int64_t raw_ms = whole_ms(lane, mark), quiet_ms = lane->options.quiet_ms;
	return expired_after(lane, raw_ms) && !mark->deleted &&
	       mark->first_ms <= slot_settled_ms(lane->slot_s, raw_ms, quiet_ms) - quiet_ms;
}

/* Late points touch the mark still, and may for as long as they like: raw data is read when all of
 * it is there, once, and the mark stays. A touch that was left out since would be missed if it
 * went. */
static void choose_closed(struct slot_worker *lane, struct mark *mark)
{
	int64_t raw_ms = whole_ms(lane, mark);
	int64_t settled_ms = slot_settled_ms(lane->slot_s, raw_ms, lane->options.quiet_ms);
	if (expired_after(lane, raw_ms)) {
		count_expired(lane, has_lost(lane, mark));
	} else if (settled_ms > lane->asof_ms) {
		keep_next(lane, settled_ms);
		mark->unseen = settled_ms - lane->options.quiet_ms < lane->asof_ms;
	} else if (settled_ms > lane->seen_ms) {
		enter(lane, mark, settled_ms)->stays = true;
	}
}

/* `old`: the slot has closed for some series. */
static void choose_ready(struct slot_worker *lane, struct mark *marks, size_t count, bool old)
{
	for (size_t i = 0; i < count; i++) {
		int64_t at_ms = ready_ms(lane, &marks[i]);
		if (marks[i].finished)
			continue;
		if (at_ms <= lane->asof_ms) {
			struct rollup_batch_mark *entered = enter(lane, &marks[i], at_ms);
			entered->lost = old && has_lost(lane, &marks[i]);
			continue;
		}
		marks[i].waits = true;
		lane->result.waiting++;
		keep_next(lane, at_ms);
		if (old)
			choose_closed(lane, &marks[i]);
	}
	qsort(lane->ready, lane->ready_count, sizeof(*lane->ready), compare_ready);
}

/* The marks of the part: which are ready, and which wait. */
static void choose_marks(struct slot_worker *lane, struct mark *marks, size_t count)
{
	int64_t shortest_ms = shortest_whole_ms(lane), quiet_ms = lane->options.quiet_ms;
	lane->ready = mem_resize_array(lane->ready, count + 1, sizeof(*lane->ready));
	lane->ready_count = 0;
	lane->result.series += count;
	if (!rollup_batch_has_late(&lane->options, lane->slot_s) &&
	    expired_after(lane, shortest_ms))
		drop_expired(lane, marks, count);
	choose_ready(lane, marks, count,
		     slot_settled_ms(lane->slot_s, shortest_ms, quiet_ms) - quiet_ms <=
			     clock_age_ms(lane->options.clock));
	if (lane->options.behind)
		watermark_found(lane->options.behind, lane->slot_s, marks, count);
}

/* ---- Rolling up ------------------------------------------------------------------------------ */

static void count_batch(struct slot_worker *lane, size_t count,
			const struct rollup_batch_result *result)
{
	uint64_t rolled_up = count - result->failed - result->expired;
	lane->result.failed += result->failed;
	lane->result.rolled_up += rolled_up;
	lane->result.rows += result->rows;
	stat_add(STAT_rollup_series, (int64_t)rolled_up);
	count_expired(lane, result->expired + result->halved);
	stat_add(STAT_rollup_rows, (int64_t)result->rows);
}

/* What is ready of the part, a batch after the other. */
static int roll_up_ready(struct slot_worker *lane, struct task_queue *queue)
{
	size_t max = rollup_batch_max(lane->options.granularities);
	for (size_t at = 0, count; at < lane->ready_count; at += count) {
		struct rollup_batch_result result;
		count = lane->ready_count - at < max ? lane->ready_count - at : max;
		int err = rollup_batch_run(lane->batch, queue, lane->slot_s, &lane->ready[at],
					   count, &result);
		err = err ? err : fault("rollup_finish");
		if (err)
			return err;
		count_batch(lane, count, &result);
	}
	return 0;
}

/* They hold up nobody. What they stand for is not done; `granary rollup rebuild` marks it anew.
 * Each is told once. */
static void count_unread(struct slot_worker *lane)
{
	size_t unread = marks_reading_unread(lane->reading);
	const char *name = marks_reading_unread_name(lane->reading);
	lane->result.unread += unread;
	if (!unread || !hash_set_add(&lane->told, hash128(name, strlen(name), unread), TOLD_MAX))
		return;
	log_rated(&lane->lines, clock_mono_ms(lane->options.clock), LOG_WARN,
		  "roll-ups: marks of the slot at %lld cannot be read and are left as they are: "
		  "%s, and %zu others",
		  (long long)lane->slot_s, name, unread - 1);
}

int slot_worker_run(struct slot_worker *lane, struct task_queue *queue,
		    const struct mark_slot *slots, size_t count, int64_t asof_ms, int64_t seen_ms,
		    struct slot_worker_result *result)
{
	struct clock *clock = lane->options.clock;
	lane->asof_ms = asof_ms;
	lane->seen_ms = seen_ms;
	lane->slot_s = slots[0].slot_s;
	lane->result = (struct slot_worker_result){.next_ready_ms = INT64_MAX,
						   .ready_since_ms = INT64_MAX};
	int err = marks_reading_begin(lane->reading, queue, slots, count, clock_wall_ms(clock));
	for (bool more = true; more && !err;) {
		size_t n;
		struct mark *marks = marks_reading_marks(lane->reading, &n, &more);
		count_unread(lane);
		choose_marks(lane, marks, n);
		err = roll_up_ready(lane, queue);
		if (!err)
			err = marks_reading_finish(lane->reading, queue);
		if (!err && more)
			err = marks_reading_next(lane->reading, queue, clock_wall_ms(clock));
	}
	*result = lane->result;
	return err;
}
