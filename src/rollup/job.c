#include "rollup/job.h"

#include "base/stats.h"
#include "rollup/behind.h"
#include "rollup/lane.h"

/* Slots that are worked on at once: while one writes, others read. */
enum { LANES = 3 };

struct rollup_job {
	struct rollup_job_options options;
	struct rollup_partitions own;
	int64_t asof_ms;
	int64_t seen_ms; /* asof_ms of the last pass that saw all that there is; 0: of none */
	struct rollup_listing *listing;
	struct rollup_slot *page; /* those of the page that are to be worked on, by slot */
	size_t page_count, page_at;
	bool listing_now, last_page, running, stopping;
	struct rollup_lane *lanes[LANES];
	int64_t at_work[LANES]; /* their slots */
	bool busy[LANES];
	size_t busy_count;
	struct task next_step;
	bool step_posted;
	bool partial;         /* there are slots that this pass does not look at */
	bool cut;             /* it does not see all that there is */
	int64_t cut_since_ms; /* nor did those since then; 0: the last did */
	struct rollup_pass pass, over;
	uint64_t losses; /* of marks, when it began */
};

static void on_listed(void *owner, int err);
static void on_lane(struct rollup_lane *lane, int err);
static void run_step(struct task *task);

struct rollup_job *rollup_job_new(const struct rollup_job_options *options)
{
	struct rollup_job *job = mem_zalloc(sizeof(*job));
	job->options = *options;
	job->next_step.run = run_step;
	job->over = (struct rollup_pass){.oldest_slot_s = INT64_MAX,
					 .oldest_open_slot_s = INT64_MAX,
					 .next_ready_ms = INT64_MAX,
					 .ready_since_ms = INT64_MAX};
	job->listing = rollup_listing_new(options->track, options->executor, on_listed, job);
	for (size_t i = 0; i < LANES; i++)
		job->lanes[i] = rollup_lane_new(options, on_lane, job);
	return job;
}

void rollup_job_free(struct rollup_job *job)
{
	ASSERT(!job->running);
	rollup_listing_free(job->listing);
	for (size_t i = 0; i < LANES; i++)
		rollup_lane_free(job->lanes[i]);
	mem_free(job->page);
	mem_free(job);
}

bool rollup_job_running(const struct rollup_job *job)
{
	return job->running;
}

void rollup_job_stop(struct rollup_job *job)
{
	job->stopping = true;
}

struct rollup_pass rollup_job_pass(const struct rollup_job *job)
{
	return job->over;
}

/* ---- What a pass has seen -------------------------------------------------------------------- */

static void keep_error(struct rollup_job *job, int err)
{
	if (!job->pass.err)
		job->pass.err = err;
}

/* For slots before it late points come, whatever series they are of, and nobody reads their raw
 * data any more. */
static int64_t closed_before_s(const struct rollup_job *job)
{
	const struct rollup_job_options *options = &job->options;
	int64_t now_ms = clock_age_ms(options->clock);
	int64_t raw_ms = retention_longest_whole_ms(options->retention_rules,
						    options->raw_retention_ms, now_ms);
	if (!options->late.after_ms)
		return 0;
	return rollup_open_from_ms(now_ms, raw_ms, options->grains->slot_ms, options->quiet_ms) /
	       1000;
}

/* 0 stands for any slot. */
static bool is_closed(const struct rollup_job *job, int64_t slot_s)
{
	return slot_s && slot_s < closed_before_s(job);
}

static void keep_oldest(struct rollup_job *job, int64_t slot_s)
{
	if (slot_s < job->pass.oldest_slot_s)
		job->pass.oldest_slot_s = slot_s;
	if (slot_s < job->pass.oldest_open_slot_s && !is_closed(job, slot_s))
		job->pass.oldest_open_slot_s = slot_s;
}

/* What there is behind the page is not known: it may be anything. */
static void end_listing(struct rollup_job *job, int err)
{
	keep_error(job, err);
	keep_oldest(job, 0);
	job->cut = job->partial = true;
	job->last_page = true;
}

static void keep_next(struct rollup_job *job, int64_t ready_ms)
{
	if (ready_ms < job->pass.next_ready_ms)
		job->pass.next_ready_ms = ready_ms;
}

static void keep_ready(struct rollup_job *job, int64_t since_ms)
{
	if (since_ms < job->pass.ready_since_ms)
		job->pass.ready_since_ms = since_ms;
}

/* What a pass does not see was ready when it began, for all that is known. */
static void keep_cut(struct rollup_job *job)
{
	if (!job->cut)
		job->cut_since_ms = 0;
	else if (!job->cut_since_ms)
		job->cut_since_ms = job->asof_ms;
	if (job->cut)
		keep_ready(job, job->cut_since_ms);
}

/* What became ready meanwhile waits for the next pass. */
static int64_t behind_ms(const struct rollup_pass *pass, int64_t now_ms)
{
	int64_t since_ms = pass->next_ready_ms;
	if (pass->ready_since_ms < since_ms)
		since_ms = pass->ready_since_ms;
	return since_ms < now_ms ? now_ms - since_ms : 0;
}

static void begin_behind(struct rollup_job *job)
{
	job->losses = rollup_track_losses(job->options.track);
	if (job->options.behind)
		rollup_behind_begin(job->options.behind, job->asof_ms, closed_before_s(job));
}

/* What was lost meanwhile may be what it should have found. */
static bool saw_all(const struct rollup_job *job)
{
	struct rollup_track_state track = rollup_track_state(job->options.track);
	return !job->partial && !track.incomplete && track.losses == job->losses;
}

/* What others roll up is not known here. */
static void end_behind(struct rollup_job *job, int64_t now_ms)
{
	struct rollup_behind *behind = job->options.behind;
	bool owns_all = job->own.count >= job->options.partitions;
	if (!behind)
		return;
	rollup_behind_end(behind, now_ms, owns_all && saw_all(job));
	if (!owns_all)
		rollup_behind_forget(behind);
}

static void end_pass(struct rollup_job *job)
{
	int64_t now_ms = clock_wall_ms(job->options.clock);
	keep_cut(job);
	if (!job->cut && !job->pass.err)
		job->seen_ms = job->asof_ms;
	job->running = false;
	job->over = job->pass;
	end_behind(job, now_ms);
	stat_add(STAT_rollup_passes, 1);
	stat_set(STAT_rollup_waiting, (int64_t)job->over.waiting);
	stat_set(STAT_rollup_unread, (int64_t)job->over.unread);
	stat_set(STAT_rollup_behind_seconds, behind_ms(&job->over, now_ms) / 1000);
	job->options.done(job->options.owner);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static int by_slot(const void *a, const void *b)
{
	return rollup_slot_compare(a, b);
}

/* What is not over yet need not be read. */
static bool has_ended(struct rollup_job *job, const struct rollup_slot *slot)
{
	int64_t ready_ms =
		slot->slot_s * 1000 + job->options.grains->slot_ms + job->options.quiet_ms;
	if (ready_ms <= job->asof_ms)
		return true;
	keep_oldest(job, slot->slot_s);
	keep_next(job, ready_ms);
	return false;
}

/* There may be marks from when there were more partitions. */
static bool is_own(const struct rollup_job *job, uint32_t partition)
{
	uint32_t count = job->options.partitions;
	if (count && partition >= count)
		partition %= count;
	return partition < ROLLUP_PARTITIONS_MAX && rollup_partitions_has(&job->own, partition);
}

static void take_page(struct rollup_job *job)
{
	size_t count;
	bool more;
	const struct rollup_slot *slots = rollup_listing_page(job->listing, &count, &more);
	job->page = mem_resize_array(job->page, count + 1, sizeof(*job->page));
	job->page_count = job->page_at = 0;
	job->last_page = !more;
	for (size_t i = 0; i < count; i++) {
		if (!is_own(job, slots[i].partition))
			continue;
		job->pass.slots++;
		if (has_ended(job, &slots[i]))
			job->page[job->page_count++] = slots[i];
	}
	qsort(job->page, job->page_count, sizeof(*job->page), by_slot);
}

/* Of the page, from page_at on: as many partitions of one slot as a lane takes. */
static size_t count_of_one_slot(const struct rollup_job *job)
{
	size_t left = job->page_count - job->page_at, count = 1;
	const struct rollup_slot *slots = &job->page[job->page_at];
	while (count < left && count < ROLLUP_READING_MAX && slots[count].slot_s == slots->slot_s)
		count++;
	return count;
}

static void start_lanes(struct rollup_job *job)
{
	for (size_t i = 0; i < LANES && job->page_at < job->page_count; i++) {
		if (job->busy[i])
			continue;
		job->busy[i] = true;
		job->busy_count++;
		const struct rollup_slot *slots = &job->page[job->page_at];
		size_t count = count_of_one_slot(job);
		job->page_at += count;
		job->at_work[i] = slots->slot_s;
		rollup_lane_start(job->lanes[i], slots, count, job->asof_ms, job->seen_ms);
	}
}

static void post_step(struct rollup_job *job)
{
	if (!job->step_posted)
		job->options.executor->post(job->options.executor, &job->next_step);
	job->step_posted = true;
}

static void on_lane(struct rollup_lane *lane, int err)
{
	struct rollup_job *job = rollup_lane_owner(lane);
	struct rollup_lane_result result = rollup_lane_result(lane);
	size_t i = 0;
	while (job->lanes[i] != lane)
		i++;
	job->busy[i] = false;
	job->busy_count--;
	job->pass.series += result.series;
	job->pass.waiting += result.waiting;
	job->pass.rolled_up += result.rolled_up;
	job->pass.expired += result.expired;
	job->pass.failed += result.failed;
	job->pass.unread += result.unread;
	job->pass.rows += result.rows;
	keep_next(job, result.next_ready_ms);
	if (err)
		keep_error(job, err);
	if (err && job->options.behind)
		rollup_behind_found_any(job->options.behind, job->at_work[i]);
	job->cut |= err != 0;
	if (err || result.failed)
		keep_ready(job, result.ready_since_ms);
	if (err || result.waiting)
		keep_oldest(job, job->at_work[i]);
	else if (result.failed && job->at_work[i] < job->pass.oldest_slot_s)
		job->pass.oldest_slot_s = job->at_work[i];
	post_step(job);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void list_next(struct rollup_job *job, bool first)
{
	int64_t now_ms = clock_wall_ms(job->options.clock);
	int err = first ? rollup_listing_begin(job->listing, now_ms)
			: rollup_listing_next(job->listing, now_ms);
	job->listing_now = !err;
	if (err)
		end_listing(job, err);
}

/* What was not looked at may be anything, too. */
static void leave_rest(struct rollup_job *job)
{
	if (job->page_at < job->page_count || !job->last_page) {
		keep_oldest(job, 0);
		job->cut = job->partial = true;
	}
	job->page_at = job->page_count;
	job->last_page = true;
}

static void step(struct rollup_job *job)
{
	if (!job->running || job->listing_now)
		return;
	if (job->stopping)
		leave_rest(job);
	start_lanes(job);
	if (job->busy_count || job->page_at < job->page_count)
		return;
	if (!job->last_page)
		list_next(job, false);
	if (!job->listing_now && job->last_page)
		end_pass(job);
}

static void run_step(struct task *task)
{
	struct rollup_job *job = CONTAINER_OF(task, struct rollup_job, next_step);
	job->step_posted = false;
	step(job);
}

static void on_listed(void *owner, int err)
{
	struct rollup_job *job = owner;
	job->listing_now = false;
	if (err)
		end_listing(job, err);
	else
		take_page(job);
	step(job);
}

void rollup_job_start(struct rollup_job *job, const struct rollup_partitions *own, int64_t asof_ms)
{
	ASSERT(!job->running);
	/* Of what others had nothing is known; nor of what comes after the clock was set back. */
	if (memcmp(&job->own, own, sizeof(*own)) != 0 || asof_ms < job->seen_ms)
		job->seen_ms = 0;
	job->own = *own;
	job->asof_ms = asof_ms;
	job->running = true;
	job->stopping = false;
	job->page_count = job->page_at = 0;
	job->last_page = job->cut = job->partial = false;
	job->pass = (struct rollup_pass){.oldest_slot_s = INT64_MAX,
					 .oldest_open_slot_s = INT64_MAX,
					 .next_ready_ms = INT64_MAX,
					 .ready_since_ms = INT64_MAX};
	begin_behind(job);
	list_next(job, true);
	if (!job->listing_now)
		post_step(job);
}
