#include "rollup/follower.h"

#include "base/mem.h"
#include "loop/job.h"
#include "rollup/backfill.h"
#include "rollup/site.h"

enum { FOLLOW_EVERY_MS = 30000 };

struct rollup_follower {
	struct rollup_site *site;
	struct job *job; /* NULL: it is over */
	void (*others)(void *owner);
	void *owner;
};

/* A look that fails is one of many. Each site of a shared store has its backfill. */
static void rollup_follower_run(struct job *job, void *owner)
{
	const struct rollup_follower *f = owner;
	do
		backfill_look(f->site->backfill, job_queue(job));
	while (!atomic_load(&f->site->settings.are_others) && !job_sleep(job, FOLLOW_EVERY_MS));
}

static void rollup_follower_over(void *owner)
{
	struct rollup_follower *f = owner;
	job_free(f->job);
	f->job = NULL;
	if (atomic_load(&f->site->settings.are_others))
		f->others(f->owner);
}

struct rollup_follower *rollup_follower_new(struct rollup_site *site, struct executor *executor,
					    void (*others)(void *owner), void *owner)
{
	if (!store_is_shared(site->store))
		return NULL;
	struct rollup_follower *f = mem_zalloc(sizeof(*f));
	f->site = site;
	f->others = others;
	f->owner = owner;
	int err = job_start("follow", rollup_follower_run, rollup_follower_over, f, executor,
			    &f->job);
	ASSERT(!err); /* one of the first */
	return f;
}

void rollup_follower_stop(struct rollup_follower *f)
{
	if (f && f->job)
		job_stop(f->job);
}

bool rollup_follower_is_over(const struct rollup_follower *f)
{
	return !f || !f->job;
}

void rollup_follower_free(struct rollup_follower *f)
{
	if (!f)
		return;
	ASSERT(!f->job);
	mem_free(f);
}
