#include "rollup/remark_after_loss.h"

#include "base/log.h"
#include "base/mem.h"
#include "lease/job_claim.h"
#include "loop/job.h"
#include "rollup/remark.h"

enum { LINES_A_MINUTE = 3 };

struct remark_after_loss {
	const struct rollup_site *site;
	struct executor *executor;
	struct job *job; /* NULL: none runs */
	uint64_t losses; /* that it makes good */
	struct remark_options remark;
	struct remark_result result;
	int err;
	struct errbuf refusal; /* somebody else makes them */
	bool stopping;
	struct log_rate lines;
};

struct remark_after_loss *remark_after_loss_new(const struct rollup_site *site,
						struct executor *executor)
{
	struct remark_after_loss *r = mem_zalloc(sizeof(*r));
	r->site = site;
	r->executor = executor;
	r->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	return r;
}

void remark_after_loss_free(struct remark_after_loss *r)
{
	ASSERT(!r->job);
	mem_free(r);
}

static void remark_after_loss_warn(struct remark_after_loss *r, const char *why)
{
	log_rated(&r->lines, clock_mono_ms(r->site->clock), LOG_WARN,
		  "roll-ups: marks that were lost could not be made again: %s; making them begins "
		  "again from the start",
		  why);
}

static void remark_after_loss_run(struct job *job, void *owner)
{
	struct remark_after_loss *r = owner;
	r->remark.queue = job_queue(job);
	r->refusal.text[0] = 0;
	r->err = job_claims_take(r->site->claims, job_queue(job), JOB_CLAIM_RESTORE, &r->refusal);
	if (r->err)
		return;
	r->err = remark(&r->remark, &r->result);
	job_claims_give(r->site->claims, JOB_CLAIM_RESTORE);
}

static void remark_after_loss_over(void *owner)
{
	struct remark_after_loss *r = owner;
	job_free(r->job);
	r->job = NULL;
	if (r->stopping)
		return;
	if (r->err) {
		remark_after_loss_warn(r, r->refusal.text[0] ? r->refusal.text : err_text(r->err));
		return;
	}
	log_info(
		"roll-ups: marks that were lost have been made again: %llu marks of %llu series in "
		"%llu slots",
		(unsigned long long)r->result.marks, (unsigned long long)r->result.marked,
		(unsigned long long)r->result.slots);
	marks_restored(r->site->marks, r->losses);
}

void remark_after_loss_look(struct remark_after_loss *r, int64_t asof_ms)
{
	const struct rollup_site *site = r->site;
	struct marks_state state = marks_state(site->marks);
	int64_t now_ms = clock_wall_ms(site->clock), slot_ms = site->granularities.slot_ms;
	if (r->job || r->stopping || !state.incomplete || state.degraded ||
	    asof_ms < state.lost_ms + site->quiet_ms)
		return;
	r->losses = state.losses;
	r->remark = (struct remark_options){
		.site = site,
		.from_ms = rollup_site_open_from_ms(site, rollup_site_longest_ms(site)),
		.to_ms = (now_ms + site->ahead_ms) / slot_ms * slot_ms + slot_ms,
	};
	int err = job_start("remark", remark_after_loss_run, remark_after_loss_over, r, r->executor,
			    &r->job);
	if (err)
		remark_after_loss_warn(r, err_text(err));
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
