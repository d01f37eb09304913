#include "rollup/job.h"

#include "base/stats.h"
#include "loop/job.h"
#include "marks/watermark_cells.h"
#include "rollup/slot_worker.h"

/* Slots that are worked on at once: while one writes, others read. */
enum { WORKERS = 3 };

/* A slot worker, as its thread knows it. */
struct pass_worker {
	struct rollup_job *job;
	struct slot_worker *worker;
};

struct rollup_job {
	const struct rollup_site *site;
	rollup_run_all *run_all;
	struct pass_worker workers[WORKERS];
	int64_t seen_ms;      /* asof_ms of the last pass that saw all that there is; 0: of none */
	int64_t cut_since_ms; /* passes since then were incomplete; 0: the last pass was complete */

	/* The pass. */
	struct task_queue *queue;
	struct partitions own;
	int64_t asof_ms, until_ms;
	uint64_t losses;        /* of marks, when it began */
	pthread_mutex_t lock;   /* guards the rest, while slot workers run */
	struct mark_slot *page; /* those of the page that are to be worked on, by slot */
	size_t page_count, page_at;
	bool partial; /* there are slots that this pass does not look at */
	bool cut;     /* it does not see all that there is */
	struct rollup_pass pass;
};

struct rollup_job *rollup_job_new(const struct rollup_site *site, rollup_run_all *run_all)
{
	struct rollup_job *job = mem_zalloc(sizeof(*job));
	ASSERT(site->granularities.count);
	job->site = site;
	job->run_all = run_all ? run_all : jobs_run_all;
	pthread_mutex_init(&job->lock, NULL);
	for (size_t i = 0; i < WORKERS; i++)
		job->workers[i] = (struct pass_worker){job, slot_worker_new(site)};
	return job;
}

void rollup_job_free(struct rollup_job *job)
{
	for (size_t i = 0; i < WORKERS; i++)
		slot_worker_free(job->workers[i].worker);
	pthread_mutex_destroy(&job->lock);
	mem_free(job->page);
	mem_free(job);
}

/* ---- What a pass has seen -------------------------------------------------------------------- */

static void pass_keep_error(struct rollup_job *job, int err)
{
	if (!job->pass.err)
		job->pass.err = err;
}

/* For slots before it late points come, whatever series they are of, and nobody reads their raw
 * data any more. */
static int64_t pass_closed_before_s(const struct rollup_job *job)
{
	const struct rollup_site *site = job->site;
	if (!rollup_site_rules(site)->late.after_ms)
		return 0;
	return rollup_site_open_from_ms(site, rollup_site_longest_ms(site)) / 1000;
}

/* Slot 0 stands for any slot. */
static void pass_keep_oldest(struct rollup_job *job, int64_t slot_s)
{
	if (slot_s < job->pass.oldest_slot_s)
		job->pass.oldest_slot_s = slot_s;
	if (slot_s < job->pass.oldest_open_slot_s &&
	    (!slot_s || slot_s >= pass_closed_before_s(job)))
		job->pass.oldest_open_slot_s = slot_s;
}

/* The slots that were not looked at may be any: the oldest is assumed. */
static void pass_leave_rest(struct rollup_job *job)
{
	pass_keep_oldest(job, 0);
	job->cut = job->partial = true;
}

static void pass_keep_next(struct rollup_job *job, int64_t ready_ms)
{
	if (ready_ms < job->pass.next_ready_ms)
		job->pass.next_ready_ms = ready_ms;
}

static void pass_keep_ready(struct rollup_job *job, int64_t since_ms)
{
	if (since_ms < job->pass.ready_since_ms)
		job->pass.ready_since_ms = since_ms;
}

/* Marks that a pass does not see are taken to have been ready when it began. */
static void pass_keep_cut(struct rollup_job *job)
{
	if (!job->cut)
		job->cut_since_ms = 0;
	else if (!job->cut_since_ms)
		job->cut_since_ms = job->asof_ms;
	if (job->cut)
		pass_keep_ready(job, job->cut_since_ms);
}

/* Marks that became ready meanwhile wait for the next pass. */
static int64_t pass_behind_ms(const struct rollup_pass *pass, int64_t now_ms)
{
	int64_t since_ms = pass->next_ready_ms;
	if (pass->ready_since_ms < since_ms)
		since_ms = pass->ready_since_ms;
	return since_ms < now_ms ? now_ms - since_ms : 0;
}

/* The rows of the pass are durable. */
static void pass_tell(struct rollup_job *job, int64_t now_ms, bool saw_all)
{
	const struct rollup_site *site = job->site;
	const struct watermark_rolled rolled = {
		.writer = slice_of(site->name),
		.partitions = &job->own,
		.asof_ms = job->asof_ms,
		.before_s = watermark_end_own(site->watermark),
	};
	int err = watermark_cells_exchange(site->watermark, site->store, job->queue,
					   saw_all ? &rolled : NULL, site->partitions, now_ms);
	if (err)
		pass_keep_error(job, err);
}

/* This process does not know what others roll up, and the pass may have missed marks that were lost
 * meanwhile. */
static void pass_end_watermark(struct rollup_job *job, int64_t now_ms)
{
	struct watermark *watermark = job->site->watermark;
	struct marks_state marks = marks_state(job->site->marks);
	bool owns_all = job->own.count >= job->site->partitions;
	bool saw_all = !job->partial && !marks.incomplete && marks.losses == job->losses;
	if (!watermark)
		return;
	if (store_is_shared(job->site->store)) {
		pass_tell(job, now_ms, saw_all);
		return;
	}
	watermark_end(watermark, now_ms, owns_all && saw_all);
	if (!owns_all)
		watermark_forget(watermark);
}

static void pass_end(struct rollup_job *job)
{
	int64_t now_ms = clock_wall_ms(job->site->clock);
	pass_keep_cut(job);
	if (!job->cut && !job->pass.err)
		job->seen_ms = job->asof_ms;
	pass_end_watermark(job, now_ms);
	stat_add(STAT_rollup_passes, 1);
	stat_set(STAT_rollup_waiting, (int64_t)job->pass.waiting);
	stat_set(STAT_rollup_unread, (int64_t)job->pass.unread);
	stat_set(STAT_rollup_behind_seconds, pass_behind_ms(&job->pass, now_ms) / 1000);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static int pass_by_slot(const void *a, const void *b)
{
	return mark_slot_compare(a, b);
}

/* Marks of a slot that is not over need not be read. */
static bool pass_has_ended(struct rollup_job *job, const struct mark_slot *slot)
{
	int64_t ready_ms =
		slot->slot_s * 1000 + job->site->granularities.slot_ms + job->site->quiet_ms;
	if (ready_ms <= job->asof_ms)
		return true;
	pass_keep_oldest(job, slot->slot_s);
	pass_keep_next(job, ready_ms);
	return false;
}

/* Marks may be from a time with more partitions. */
static bool pass_is_own(const struct rollup_job *job, uint32_t partition)
{
	uint32_t count = job->site->partitions;
	if (count && partition >= count)
		partition %= count;
	return partition < PARTITIONS_MAX && partitions_has(&job->own, partition);
}

/* The slots of the page that are to be worked on. */
static void pass_choose_page(struct rollup_job *job, const struct mark_slot *slots, size_t count)
{
	job->page = mem_resize_array(job->page, count + 1, sizeof(*job->page));
	job->page_count = job->page_at = 0;
	for (size_t i = 0; i < count; i++) {
		if (!pass_is_own(job, slots[i].partition))
			continue;
		job->pass.slots++;
		if (pass_has_ended(job, &slots[i]))
			job->page[job->page_count++] = slots[i];
	}
	qsort(job->page, job->page_count, sizeof(*job->page), pass_by_slot);
}

/* The slots of the page from page_at on that are one slot in several partitions, as many as a slot
 * worker takes. */
static size_t pass_count_of_one_slot(const struct rollup_job *job)
{
	size_t left = job->page_count - job->page_at, count = 1;
	const struct mark_slot *slots = &job->page[job->page_at];
	while (count < left && count < MARKS_READING_MAX && slots[count].slot_s == slots->slot_s)
		count++;
	return count;
}

static bool pass_must_end(const struct rollup_job *job)
{
	return task_queue_is_stopped(job->queue) ||
	       clock_wall_ms(job->site->clock) >= job->until_ms;
}

/* The next slot of the page, in *count partitions; 0: there is none, or none is to be begun. */
static const struct mark_slot *pass_next_slot(struct rollup_job *job, size_t *count)
{
	pthread_mutex_lock(&job->lock);
	const struct mark_slot *slots = &job->page[job->page_at];
	*count = job->page_at < job->page_count && !pass_must_end(job) ? pass_count_of_one_slot(job)
								       : 0;
	job->page_at += *count;
	pthread_mutex_unlock(&job->lock);
	return slots;
}

static void pass_take_result(struct rollup_job *job, int64_t slot_s, int err,
			     const struct slot_worker_result *result)
{
	pthread_mutex_lock(&job->lock);
	job->pass.series += result->series;
	job->pass.waiting += result->waiting;
	job->pass.rolled_up += result->rolled_up;
	job->pass.expired += result->expired;
	job->pass.failed += result->failed;
	job->pass.unread += result->unread;
	job->pass.rows += result->rows;
	pass_keep_next(job, result->next_ready_ms);
	if (err)
		pass_keep_error(job, err);
	if ((err || result->cut) && job->site->watermark)
		watermark_found_any(job->site->watermark, slot_s);
	job->cut |= err != 0;
	if (result->cut)
		pass_leave_rest(job);
	if (err || result->failed)
		pass_keep_ready(job, result->ready_since_ms);
	if (err || result->waiting)
		pass_keep_oldest(job, slot_s);
	else if (result->failed && slot_s < job->pass.oldest_slot_s)
		job->pass.oldest_slot_s = slot_s;
	pthread_mutex_unlock(&job->lock);
}

/* A slot worker: the next slot of the page, and the next. */
static void pass_run_worker(struct task_queue *queue, void *owner)
{
	const struct pass_worker *w = owner;
	struct rollup_job *job = w->job;
	size_t count;
	const struct mark_slot *slots = pass_next_slot(job, &count);
	while (count) {
		struct slot_worker_result result;
		int err = slot_worker_run(w->worker, queue, slots, count, job->asof_ms,
					  job->seen_ms, job->until_ms, &result);
		pass_take_result(job, slots->slot_s, err, &result);
		slots = pass_next_slot(job, &count);
	}
}

/* As many slot workers as have a slot to begin with. */
static void pass_work_on_page(struct rollup_job *job)
{
	void *owners[WORKERS];
	size_t workers = 0;
	for (size_t i = 0; i < job->page_count && workers < WORKERS; i++) {
		if (!i || job->page[i].slot_s != job->page[i - 1].slot_s) {
			owners[workers] = &job->workers[workers];
			workers++;
		}
	}
	if (workers)
		job->run_all("rollup-slots", pass_run_worker, owners, workers);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

static void pass_begin(struct rollup_job *job, struct task_queue *queue,
		       const struct partitions *own, int64_t asof_ms, int64_t until_ms)
{
	/* Nothing is known of partitions that others had, nor of marks after the clock was set
	 * back.
	 */
	if (memcmp(&job->own, own, sizeof(*own)) != 0 || asof_ms < job->seen_ms)
		job->seen_ms = 0;
	job->queue = queue;
	job->own = *own;
	job->asof_ms = asof_ms;
	job->until_ms = until_ms;
	job->cut = job->partial = false;
	job->pass = (struct rollup_pass){.oldest_slot_s = INT64_MAX,
					 .oldest_open_slot_s = INT64_MAX,
					 .next_ready_ms = INT64_MAX,
					 .ready_since_ms = INT64_MAX};
	job->losses = marks_losses(job->site->marks);
	if (job->site->watermark)
		watermark_begin(job->site->watermark, asof_ms, pass_closed_before_s(job));
}

struct rollup_pass rollup_job_run(struct rollup_job *job, struct task_queue *queue,
				  const struct partitions *own, int64_t asof_ms, int64_t until_ms)
{
	struct clock *clock = job->site->clock;
	pass_begin(job, queue, own, asof_ms, until_ms);
	struct marks_listing listing = {.marks = job->site->marks, .own = &job->own};
	bool ends = false;
	int err = 0;
	while (!err && !ends && !listing.over) {
		err = marks_list(&listing, queue, clock_wall_ms(clock));
		pass_choose_page(job, listing.slots, listing.count);
		pass_work_on_page(job);
		ends = job->page_at < job->page_count || (!listing.over && pass_must_end(job));
		if (ends)
			pass_leave_rest(job);
	}
	marks_listing_release(&listing);
	if (err) {
		pass_keep_error(job, err);
		pass_leave_rest(job);
	}
	pass_end(job);
	return job->pass;
}
