#include "rollup/rollup.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/thread.h"
#include "rollup/behind.h"
#include "rollup/leases.h"
#include "rollup/restore.h"

enum {
	TICK_MS = 1000,
	TICKS_OF_QUIET = 8, /* at least: what waits for a moment may not wait for much longer */
	LINES_A_MINUTE = 3,
};

/*  RESTS --time--> TAKES leases --> WORKS, a pass --> RESTS
 *                                     | its leases end
 *                                     +--> stops the pass
 *  any of these, to stop: --> GIVES the leases --> ENDED */
enum state { RESTS, TAKES, WORKS, GIVES, ENDED };

struct rollup {
	struct rollup_options options;
	struct loop_thread *thread;
	struct loop *loop;
	struct loop_timer *ticks;
	struct rollup_job *job;
	struct rollup_leases *leases;
	struct rollup_restore *restore;
	enum state state;
	bool stopping;
	int64_t next_ms; /* of a pass, wall clock */
	int64_t asof_ms, until_ms;
	struct rollup_partitions held;
	struct log_rate lines;
	struct task begin, stop;
	struct executor *stopped_executor;
	struct task *stopped;
	pthread_mutex_t lock; /* guards the next */
	struct rollup_state seen;
	struct rollup_progress progress;
};

static int64_t wall_ms(const struct rollup *r)
{
	return clock_wall_ms(r->options.clock);
}

int64_t rollup_before_ms(struct rollup *r, struct slice tenant, struct slice metric)
{
	struct buf encoded;
	if (rollup_track_state(r->options.track).incomplete)
		return 0;
	buf_init(&encoded, 2 * METRIC_MAX_BYTES);
	int err = series_set_encode(metric, (struct tags){NULL, 0}, &encoded);
	int64_t before_ms =
		err ? 0 : rollup_behind_before_ms(r->options.behind, tenant, buf_slice(&encoded));
	buf_release(&encoded);
	return before_ms;
}

struct rollup_state rollup_state(struct rollup *r)
{
	pthread_mutex_lock(&r->lock);
	struct rollup_state seen = r->seen;
	pthread_mutex_unlock(&r->lock);
	return seen;
}

struct rollup_progress rollup_progress(struct rollup *r)
{
	pthread_mutex_lock(&r->lock);
	struct rollup_progress progress = r->progress;
	pthread_mutex_unlock(&r->lock);
	return progress;
}

static void show(struct rollup *r, int err)
{
	pthread_mutex_lock(&r->lock);
	r->seen.running = r->state == WORKS;
	r->progress.begun += r->state == WORKS;
	r->seen.held = r->held;
	r->seen.err = err;
	pthread_mutex_unlock(&r->lock);
}

static void say(struct rollup *r, const char *what, const char *why)
{
	log_rated(&r->lines, clock_mono_ms(r->options.clock), LOG_WARN,
		  "roll-ups: %s: %s; tried again", what, why);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void end_all(struct rollup *r)
{
	rollup_job_free(r->job);
	rollup_leases_free(r->leases);
	rollup_restore_free(r->restore);
	r->stopped_executor->post(r->stopped_executor, r->stopped);
}

static void on_restore_stopped(void *owner)
{
	end_all(owner);
}

static void end(struct rollup *r)
{
	r->state = ENDED;
	loop_timer_close(r->ticks);
	if (rollup_restore_stop(r->restore))
		end_all(r);
}

static void give_leases(struct rollup *r)
{
	r->state = GIVES;
	if (rollup_leases_give(r->leases))
		end(r);
}

static void rest(struct rollup *r, int64_t next_ms)
{
	int64_t renew_ms = r->until_ms - r->options.lease_ms / 4;
	r->state = RESTS;
	r->next_ms = next_ms;
	/* Before others believe that it is dead. */
	if (renew_ms > wall_ms(r) && renew_ms < next_ms)
		r->next_ms = renew_ms;
	if (r->stopping)
		give_leases(r);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

/* What others roll up is not known here. */
static int64_t before_ms(const struct rollup *r, const struct rollup_pass *pass)
{
	int64_t slot_ms = r->options.grains.slot_ms;
	int64_t present_ms = r->asof_ms / slot_ms * slot_ms;
	if (r->held.count < r->options.partitions ||
	    rollup_track_state(r->options.track).incomplete)
		return 0;
	if (pass->oldest_open_slot_s >= present_ms / 1000)
		return present_ms;
	return pass->oldest_open_slot_s * 1000;
}

/* What the store says has a text; Redis has its own. */
static void explain(const struct rollup *r, int err, char why[ROLLUP_TRACK_WHY_BYTES])
{
	struct rollup_track_state track = rollup_track_state(r->options.track);
	bool of_redis = err == ERR_RETRY && !rollup_track_in_writes(r->options.track);
	const char *words =
		track.why[0] ? track.why : "it was emptied, or answers what it should not";
	snprintf(why, ROLLUP_TRACK_WHY_BYTES, "%s%s", of_redis ? "Redis: " : "",
		 of_redis ? words : err_text(err));
}

static void on_pass(void *owner)
{
	struct rollup *r = owner;
	struct rollup_pass pass = rollup_job_pass(r->job);
	int64_t now_ms = wall_ms(r), next_ms = now_ms + r->options.every_ms;
	if (pass.next_ready_ms < next_ms)
		next_ms = pass.next_ready_ms;
	char why[ROLLUP_TRACK_WHY_BYTES];
	explain(r, pass.err, why);
	if (pass.err) {
		say(r, "a pass over the marks broke off", why);
		next_ms = now_ms + TICK_MS;
	}
	rest(r, next_ms);
	pthread_mutex_lock(&r->lock);
	r->seen.pass = pass;
	r->seen.pass_ms = now_ms;
	memcpy(r->seen.why, why, sizeof(why));
	r->seen.running = false;
	r->progress.over = r->progress.begun;
	r->progress.before_ms = before_ms(r, &pass);
	pthread_mutex_unlock(&r->lock);
}

static void on_leases(void *owner, int err, const struct rollup_partitions *held, int64_t until_ms)
{
	struct rollup *r = owner;
	if (r->state == GIVES) {
		end(r);
		return;
	}
	if (err)
		say(r, "the leases could not be taken", err_text(err));
	r->held = err ? (struct rollup_partitions){0} : *held;
	r->until_ms = until_ms;
	if (err || !r->held.count || r->stopping) {
		rest(r, wall_ms(r) + (err ? TICK_MS : r->options.every_ms));
		show(r, err);
		return;
	}
	r->state = WORKS;
	show(r, 0);
	rollup_restore_look(r->restore, r->asof_ms);
	rollup_job_start(r->job, held, r->asof_ms);
}

static void take_leases(struct rollup *r)
{
	r->state = TAKES;
	r->asof_ms = wall_ms(r);
	int err = rollup_leases_take(r->leases, &r->options.own);
	if (!err)
		return;
	say(r, "the leases could not be taken", err_text(err));
	rest(r, wall_ms(r) + TICK_MS);
}

static void on_tick(void *owner)
{
	struct rollup *r = owner;
	int64_t now_ms = wall_ms(r);
	/* A clock that was set back must not put off the next pass for long. */
	bool due = now_ms >= r->next_ms || r->next_ms > now_ms + r->options.every_ms;
	if (r->state == RESTS && due)
		take_leases(r);
	else if (r->state == WORKS && now_ms > r->until_ms - r->options.lease_ms / 4)
		rollup_job_stop(r->job);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static struct rollup_restore *new_restore(struct rollup *r)
{
	const struct rollup_options *options = &r->options;
	return rollup_restore_new(&(struct rollup_restore_options){
		.store = options->store,
		.track = options->track,
		.clock = options->clock,
		.executor = loop_executor(r->loop),
		.slot_ms = options->grains.slot_ms,
		.quiet_ms = options->quiet_ms,
		.raw_retention_ms = options->raw_retention_ms,
		.retention_rules = options->retention_rules,
		.ahead_ms = options->ahead_ms,
		.partitions = options->partitions,
		.stopped = on_restore_stopped,
		.owner = r,
	});
}

static int64_t tick_ms(const struct rollup *r)
{
	int64_t ms = r->options.quiet_ms / TICKS_OF_QUIET + 1;
	return ms < TICK_MS ? ms : TICK_MS;
}

static void run_begin(struct task *task)
{
	struct rollup *r = CONTAINER_OF(task, struct rollup, begin);
	const struct rollup_job_options job = {
		.store = r->options.store,
		.track = r->options.track,
		.clock = r->options.clock,
		.executor = loop_executor(r->loop),
		.grains = &r->options.grains,
		.partitions = r->options.partitions,
		.raw_retention_ms = r->options.raw_retention_ms,
		.retention_rules = r->options.retention_rules,
		.late = r->options.late,
		.behind = r->options.behind,
		.quiet_ms = r->options.quiet_ms,
		.skew_max_ms = r->options.skew_max_ms,
		.counter_suffixes = r->options.counter_suffixes,
		.counter_suffix_count = r->options.counter_suffix_count,
		.done = on_pass,
		.owner = r,
	};
	const struct rollup_leases_options leases = {
		.store = r->options.store,
		.clock = r->options.clock,
		.executor = loop_executor(r->loop),
		.holder = r->options.name,
		.lease_ms = r->options.lease_ms,
		.share = r->options.share,
		.done = on_leases,
		.owner = r,
	};
	r->job = rollup_job_new(&job);
	r->leases = rollup_leases_new(&leases);
	r->restore = new_restore(r);
	r->ticks = loop_timer_new(r->loop, on_tick, r);
	loop_timer_start(r->ticks, 0, tick_ms(r));
}

static void run_stop(struct task *task)
{
	struct rollup *r = CONTAINER_OF(task, struct rollup, stop);
	r->stopping = true;
	if (r->state == WORKS)
		rollup_job_stop(r->job);
	else if (r->state == RESTS)
		give_leases(r);
}

struct rollup *rollup_new(const struct rollup_options *options)
{
	struct rollup *r = mem_zalloc(sizeof(*r));
	ASSERT(options->grains.count && options->own.count);
	r->options = *options;
	r->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	pthread_mutex_init(&r->lock, NULL);
	r->begin.run = run_begin;
	r->stop.run = run_stop;
	r->thread = loop_thread_new("rollup");
	r->loop = loop_thread_loop(r->thread);
	loop_set_kind(r->loop, LOOP_ROLLUP);
	struct executor *executor = loop_executor(r->loop);
	executor->post(executor, &r->begin);
	return r;
}

void rollup_stop(struct rollup *r, struct executor *executor, struct task *stopped)
{
	r->stopped_executor = executor;
	r->stopped = stopped;
	executor = loop_executor(r->loop);
	executor->post(executor, &r->stop);
}

void rollup_free(struct rollup *r)
{
	loop_thread_free(r->thread);
	pthread_mutex_destroy(&r->lock);
	mem_free(r);
}
