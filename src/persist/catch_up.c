#include "persist/catch_up.h"

#include "base/log.h"
#include "base/stats.h"
#include "loop/job.h"
#include "persist/private.h"
#include "persist/recompute.h"
#include "store/wait.h"

enum { TURNS = 2 }; /* of derive_every_ms, until everything that is polled is known */

struct catch_up {
	struct persist *persist;
	struct job *job; /* NULL: it has ended */
	void (*stopped)(void *owner);
	void *owner;
};

static void catch_up_derive(struct catch_up *c, struct slice device, const struct oidset *oidset)
{
	const struct recompute_options options = {
		.persist = c->persist,
		.device = device,
		.oidset = oidset,
		.only_derive = true,
	};
	struct errbuf e;
	struct recompute *recompute = recompute_new(&options);
	int err = recompute_run(recompute, c->job, &e);
	recompute_free(recompute);
	stat_add(STAT_persist_rates_made, !err);
	if (!err || err == ERR_NOT_FOUND || err == ERR_CANCELLED)
		return;
	log_warn("rates of " SHOWN ", OIDSet " SHOWN ", could not be made: %s", SHOWN_OF(device),
		 SHOWN_OF(oidset->name), e.text);
	stat_add(STAT_persist_rates_failed, 1);
}

static int catch_up_look(const struct store_row *row, void *owner)
{
	struct catch_up *c = owner;
	struct slice device = row->key.part[0], name = row->key.part[1];
	const struct oidset *set = inventory_conf_oidset_stored(c->persist->options.conf, name);
	if (set && set->kind == OIDSET_COUNTERS &&
	    !claims_seen(&c->persist->claims, claims_source(device, name)))
		catch_up_derive(c, device, set->stored_as);
	return job_is_stopping(c->job) ? ERR_CANCELLED : 0;
}

static void catch_up_run(struct job *job, void *owner)
{
	struct catch_up *c = owner;
	const struct persist_options *o = &c->persist->options;
	struct errbuf e = {""};
	int err = job_sleep(job, TURNS * o->derive_every_ms);
	while (!err) {
		err = store_rows_wait(o->store, job_queue(job), clock_age_ms(o->clock),
				      TABLE_RATE_CHECKPOINTS, catch_up_look, c, &e);
		if (err != ERR_BUSY)
			break;
		err = job_sleep(job, o->derive_every_ms);
	}
	if (err && err != ERR_CANCELLED)
		log_warn("the search for devices that are polled no more failed: %s; their newest "
			 "rates may be "
			 "missing until the next start",
			 e.text);
}

static void catch_up_over(void *owner)
{
	struct catch_up *c = owner;
	job_free(c->job);
	c->job = NULL;
	if (c->stopped)
		c->stopped(c->owner);
}

struct catch_up *catch_up_new(struct persist *persist)
{
	struct catch_up *c = mem_zalloc(sizeof(*c));
	c->persist = persist;
	int err = job_start("catch_up", catch_up_run, catch_up_over, c,
			    loop_executor(persist->options.loop), &c->job);
	if (err)
		log_warn("what is polled no more is not looked through: %s", err_text(err));
	return c;
}

void catch_up_stop(struct catch_up *c, void (*stopped)(void *owner), void *owner)
{
	c->stopped = stopped;
	c->owner = owner;
	if (c->job)
		job_stop(c->job);
	else
		stopped(owner);
}

void catch_up_free(struct catch_up *c)
{
	mem_free(c);
}
