#include "rollup/remark_after_loss.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/job.h"
#include "rollup/remark.h"

enum { LINES_A_MINUTE = 3 };

struct rollup_restore {
	struct rollup_restore_options options;
	struct job *job; /* NULL: none runs */
	uint64_t losses; /* that it makes good */
	struct rollup_rebuild_options rebuild;
	struct rollup_rebuild_result result;
	int err;
	bool stopping;
	struct log_rate lines;
};

struct rollup_restore *rollup_restore_new(const struct rollup_restore_options *options)
{
	struct rollup_restore *r = mem_zalloc(sizeof(*r));
	r->options = *options;
	r->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	return r;
}

void rollup_restore_free(struct rollup_restore *r)
{
	ASSERT(!r->job);
	mem_free(r);
}

static void say_failed(struct rollup_restore *r, int err)
{
	log_rated(&r->lines, clock_mono_ms(r->options.clock), LOG_WARN,
		  "roll-ups: marks that were lost could not be made again: %s; making them begins "
		  "again from the start",
		  err_text(err));
}

static void restore_run(struct job *job, void *owner)
{
	struct rollup_restore *r = owner;
	r->rebuild.queue = job_queue(job);
	r->err = rollup_rebuild(&r->rebuild, &r->result);
}

static void restore_done(void *owner)
{
	struct rollup_restore *r = owner;
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
	rollup_track_restored(r->options.track, r->losses);
}

void rollup_restore_look(struct rollup_restore *r, int64_t asof_ms)
{
	const struct rollup_restore_options *options = &r->options;
	struct rollup_track_state state = rollup_track_state(options->track);
	int64_t now_ms = clock_wall_ms(options->clock), slot_ms = options->slot_ms;
	int64_t age_ms = clock_age_ms(options->clock);
	int64_t longest_ms = retention_longest_whole_ms(options->retention_rules,
							options->raw_retention_ms, age_ms);
	if (r->job || r->stopping || !state.incomplete || state.degraded ||
	    asof_ms < state.lost_ms + options->quiet_ms)
		return;
	r->losses = state.losses;
	r->rebuild = (struct rollup_rebuild_options){
		.store = options->store,
		.track = options->track,
		.clock = options->clock,
		.slot_ms = slot_ms,
		.partitions = options->partitions,
		.from_ms = rollup_open_from_ms(age_ms, longest_ms, slot_ms, options->quiet_ms),
		.to_ms = (now_ms + options->ahead_ms) / slot_ms * slot_ms + slot_ms,
		.quiet_ms = options->quiet_ms,
		.raw_retention_ms = options->raw_retention_ms,
		.retention_rules = options->retention_rules,
	};
	int err = job_start("remark", restore_run, restore_done, r, options->executor, &r->job);
	if (err)
		say_failed(r, err);
}

void rollup_restore_stop(struct rollup_restore *r)
{
	r->stopping = true;
	if (r->job)
		job_stop(r->job);
}

bool rollup_restore_rests(const struct rollup_restore *r)
{
	return !r->job;
}
