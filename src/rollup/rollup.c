#include "rollup/rollup.h"

#include "base/log.h"
#include "base/mem.h"
#include "lease/lease.h"
#include "loop/job.h"
#include "rollup/backfill.h"
#include "rollup/remark_after_loss.h"

enum {
	TICK_MS = 1000,
	TICKS_OF_QUIET = 8, /* at least: what waits for a moment may not wait for much longer */
	LINES_A_MINUTE = 3,
};

struct rollup {
	const struct rollup_site *site;
	struct job *job; /* NULL: it is over */

	/* The job's. */
	struct rollup_job *pass; /* NULL: this process has no partitions */
	struct leases *leases;
	struct remark_after_loss *remark;
	struct partitions held;
	int64_t until_ms; /* of the leases; 0: none are held */
	struct log_rate lines;

	pthread_mutex_t lock; /* guards the next */
	struct rollup_state seen;
};

static int64_t rollup_wall_ms(const struct rollup *r)
{
	return clock_wall_ms(r->site->clock);
}

struct rollup_state rollup_state(struct rollup *r)
{
	pthread_mutex_lock(&r->lock);
	struct rollup_state seen = r->seen;
	pthread_mutex_unlock(&r->lock);
	return seen;
}

/* Shows which leases are held, and whether a pass begins. */
static void rollup_show_leases(struct rollup *r, int err, bool begins)
{
	pthread_mutex_lock(&r->lock);
	r->seen.running = begins;
	r->seen.held = r->held;
	r->seen.err = err;
	pthread_mutex_unlock(&r->lock);
}

static void rollup_say(struct rollup *r, const char *what, const char *why)
{
	log_rated(&r->lines, clock_mono_ms(r->site->clock), LOG_WARN,
		  "roll-ups: %s: %s; the server tries again", what, why);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

/* This process does not know what others roll up. */
static int64_t rollup_pass_before_ms(const struct rollup *r, const struct rollup_pass *pass,
				     int64_t asof_ms)
{
	int64_t slot_ms = r->site->granularities.slot_ms;
	int64_t present_ms = asof_ms / slot_ms * slot_ms;
	if (r->held.count < r->site->partitions || marks_state(r->site->marks).incomplete)
		return 0;
	if (pass->oldest_open_slot_s >= present_ms / 1000)
		return present_ms;
	return pass->oldest_open_slot_s * 1000;
}

/* Errors of the store have a text; Redis has its own. */
static void rollup_explain(const struct rollup *r, int err, char why[MARKS_WHY_BYTES])
{
	struct marks_state marks = marks_state(r->site->marks);
	bool of_redis = err == ERR_RETRY && !marks_in_writes(r->site->marks);
	const char *words =
		marks.why[0] ? marks.why : "it was emptied, or answers what it should not";
	snprintf(why, MARKS_WHY_BYTES, "%s%s", of_redis ? "Redis: " : "",
		 of_redis ? words : err_text(err));
}

static void rollup_show_pass(struct rollup *r, const struct rollup_pass *pass, const char *why)
{
	int64_t now_ms = rollup_wall_ms(r);
	pthread_mutex_lock(&r->lock);
	r->seen.pass = *pass;
	r->seen.pass_ms = now_ms;
	snprintf(r->seen.why, sizeof(r->seen.why), "%s", why);
	r->seen.running = false;
	pthread_mutex_unlock(&r->lock);
}

/* Returns when the next one is due. */
static int64_t rollup_run_pass(struct rollup *r, struct job *job, int64_t asof_ms)
{
	char why[MARKS_WHY_BYTES];
	backfill_begin_pass(r->site->backfill);
	struct rollup_pass pass = rollup_job_run(r->pass, job_queue(job), &r->held, asof_ms,
						 r->until_ms - r->site->lease_ms / 4);
	int64_t now_ms = rollup_wall_ms(r), next_ms = now_ms + r->site->every_ms;
	rollup_explain(r, pass.err, why);
	rollup_show_pass(r, &pass, why);
	backfill_end_pass(r->site->backfill, job_queue(job),
			  rollup_pass_before_ms(r, &pass, asof_ms));
	if (pass.err && !job_is_stopping(job))
		rollup_say(r, "a pass over the marks broke off", why);
	if (pass.err)
		return now_ms + TICK_MS;
	return pass.next_ready_ms < next_ms ? pass.next_ready_ms : next_ms;
}

/* Takes the leases, and does a pass over what they are of. Returns when to do so again. Where
 * another process has changed the shared settings this one is about to end: it begins nothing more,
 * and gives the leases back when the job ends. */
static int64_t rollup_take_and_run(struct rollup *r, struct job *job)
{
	int64_t asof_ms = rollup_wall_ms(r);
	if (atomic_load(&r->site->settings.are_others)) {
		r->held = (struct partitions){0};
		r->until_ms = 0;
		rollup_show_leases(r, ERR_INVALID, false);
		return asof_ms + r->site->every_ms;
	}
	int err = leases_take(r->leases, job_queue(job), &r->site->own, &r->held, &r->until_ms);
	if (err && !job_is_stopping(job))
		rollup_say(r, "the leases could not be taken", err_text(err));
	rollup_show_leases(r, err, !err && r->held.count);
	if (err)
		r->until_ms = 0;
	if (err || !r->held.count)
		return rollup_wall_ms(r) + (err ? TICK_MS : r->site->every_ms);
	remark_after_loss_look(r->remark, asof_ms);
	return rollup_run_pass(r, job, asof_ms);
}

/* Rests until then, or until the leases have to be renewed, before others believe that they are
 * free. A clock that was set back must not put that off for long. ERR_CANCELLED: it is to end. */
static int rollup_rest_until(const struct rollup *r, struct job *job, int64_t next_ms)
{
	const struct rollup_site *site = r->site;
	int64_t renew_ms = r->until_ms - site->lease_ms / 4, now_ms = rollup_wall_ms(r);
	int64_t tick_ms = site->quiet_ms / TICKS_OF_QUIET + 1;
	if (r->until_ms && renew_ms < next_ms)
		next_ms = renew_ms;
	if (tick_ms > TICK_MS)
		tick_ms = TICK_MS;
	int err = job_is_stopping(job) ? ERR_CANCELLED : 0;
	for (; !err && now_ms < next_ms && next_ms <= now_ms + site->every_ms;
	     now_ms = rollup_wall_ms(r))
		err = job_sleep(job, next_ms - now_ms < tick_ms ? next_ms - now_ms : tick_ms);
	return err;
}

/* Also when the job is to end. */
static void rollup_give_leases(struct rollup *r)
{
	struct task_queue queue;
	task_queue_init(&queue);
	int err = leases_give(r->leases, &queue);
	if (err)
		log_warn("roll-ups: cannot give back the leases of %zu partitions, which end with "
			 "the session: %s",
			 r->held.count, err_text(err));
	task_queue_release(&queue);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void rollup_run(struct job *job, void *owner)
{
	struct rollup *r = owner;
	int64_t next_ms = 0;
	r->pass = r->site->own.count ? rollup_job_new(r->site, NULL) : NULL;
	r->leases = leases_new(&(struct leases_options){
		.session = r->site->session,
		.kind = "rollup",
		.share = r->site->share,
	});
	r->remark = remark_after_loss_new(r->site, &job_queue(job)->executor);
	while (!rollup_rest_until(r, job, next_ms))
		next_ms = rollup_take_and_run(r, job);
	remark_after_loss_stop(r->remark);
	while (!remark_after_loss_rests(r->remark))
		task_queue_wait(job_queue(job));
	rollup_give_leases(r);
	if (r->pass)
		rollup_job_free(r->pass);
	leases_free(r->leases);
	remark_after_loss_free(r->remark);
}

static void rollup_over(void *owner)
{
	struct rollup *r = owner;
	job_free(r->job);
	r->job = NULL;
}

bool rollup_is_wanted(const struct rollup_site *site)
{
	return site->own.count || store_is_shared(site->store);
}

struct rollup *rollup_new(const struct rollup_site *site, struct executor *executor)
{
	struct rollup *r = mem_zalloc(sizeof(*r));
	ASSERT(rollup_is_wanted(site));
	r->site = site;
	r->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	pthread_mutex_init(&r->lock, NULL);
	int err = job_start("rollup", rollup_run, rollup_over, r, executor, &r->job);
	ASSERT(!err); /* one of the first */
	return r;
}

void rollup_stop(struct rollup *r)
{
	if (r->job)
		job_stop(r->job);
}

bool rollup_is_over(const struct rollup *r)
{
	return !r->job;
}

void rollup_free(struct rollup *r)
{
	ASSERT(!r->job);
	pthread_mutex_destroy(&r->lock);
	mem_free(r);
}
