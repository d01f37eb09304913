#include "rollup/remark_after_loss.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/job.h"
#include "rollup/remark.h"

enum { LINES_A_MINUTE = 3 };

struct remark_after_loss {
	struct remark_after_loss_options options;
	struct job *job; /* NULL: none runs */
	uint64_t losses; /* that it makes good */
	struct remark_options rebuild;
	struct remark_result result;
	int err;
	bool stopping;
	struct log_rate lines;
};

struct remark_after_loss *remark_after_loss_new(const struct remark_after_loss_options *options)
{
	struct remark_after_loss *r = mem_zalloc(sizeof(*r));
	r->options = *options;
	r->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	return r;
}

void remark_after_loss_free(struct remark_after_loss *r)
{
	ASSERT(!r->job);
	mem_free(r);
}

static void say_failed(struct remark_after_loss *r, int err)
{
	log_rated(&r->lines, clock_mono_ms(r->options.clock), LOG_WARN,
		  "roll-ups: marks that were lost could not be made again: %s; making them begins "
		  "again from the start",
		  err_text(err));
}

static void restore_run(struct job *job, void *owner)
{
	struct remark_after_loss *r = owner;
	r->rebuild.queue = job_queue(job);
	r->err = remark(&r->rebuild, &r->result);
}

static void restore_done(void *owner)
{
	struct remark_after_loss *r = owner;
	job_free(r->job);
	r->job = NULL;
	if (r->stopping)
		return;
	if (r->err) {
		say_failed(r, r->err);
		return;
	}
	log_info("roll-ups: marks that were lost are made anew: %llu of %llu series in %llu slots",
		 (unsigned long long)r->result.marks, (unsigned long long)r->result.marked,
		 (unsigned long long)r->result.slots);
	marks_restored(r->options.track, r->losses);
}

void remark_after_loss_look(struct remark_after_loss *r, int64_t asof_ms)
{
	const struct remark_after_loss_options *options = &r->options;
	struct marks_state state = marks_state(options->track);
	int64_t now_ms = clock_wall_ms(options->clock), slot_ms = options->slot_ms;
	int64_t age_ms = clock_age_ms(options->clock);
	int64_t longest_ms = retention_longest_whole_ms(options->retention_rules,
							options->raw_retention_ms, age_ms);
	if (r->job || r->stopping || !state.incomplete || state.degraded ||
	    asof_ms < state.lost_ms + options->quiet_ms)
		return;
	r->losses = state.losses;
	r->rebuild = (struct remark_options){
		.store = options->store,
		.track = options->track,
		.clock = options->clock,
		.slot_ms = slot_ms,
		.partitions = options->partitions,
		.from_ms = slot_open_from_ms(age_ms, longest_ms, slot_ms, options->quiet_ms),
		.to_ms = (now_ms + options->ahead_ms) / slot_ms * slot_ms + slot_ms,
		.quiet_ms = options->quiet_ms,
		.raw_retention_ms = options->raw_retention_ms,
		.retention_rules = options->retention_rules,
	};
	int err = job_start("remark", restore_run, restore_done, r, options->executor, &r->job);
	if (err)
		say_failed(r, err);
}

void remark_after_loss_stop(struct remark_after_loss *r)
{
	r->stopping = true;
	if (r->job)
		job_stop(r->job);
}

bool remark_after_loss_rests(const struct remark_after_loss *r)
{
	return !r->job;
}
