#include "persist/catch_up.h"

#include "base/log.h"
#include "base/stats.h"
#include "loop/job.h"
#include "persist/private.h"
#include "persist/recompute.h"
#include "store/wait.h"

enum {
	SLICE_MAX_BYTES = 16 << 20,
	SLICE_ROWS_MAX = 10000,
	TURNS = 2, /* of derive_every_ms, until everything that is polled is known */
};

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
	log_warn("rates of " SHOWN ", OIDSet " SHOWN ": %s", SHOWN_OF(device),
		 SHOWN_OF(oidset->name), e.text);
	stat_add(STAT_persist_rates_failed, 1);
}

static void catch_up_look(struct catch_up *c, const struct store_row *row)
{
	struct slice device = row->key.part[0], name = row->key.part[1];
	const struct oidset *set = inventory_conf_oidset_stored(c->persist->options.conf, name);
	if (set && set->kind == OIDSET_COUNTERS &&
	    !claims_seen(&c->persist->claims, claims_source(device, name)))
		catch_up_derive(c, device, set->stored_as);
}

/* Through all checkpoints. */
static int catch_up_walk(struct catch_up *c, struct store_read *read)
{
	struct store_request *request = store_read_add(read, STORE_ENUMERATE);
	ASSERT(request); /* the first of an empty read */
	request->enumerate.table = TABLE_RATE_CHECKPOINTS;
	request->enumerate.limit = SLICE_ROWS_MAX;
	read->now_ms = clock_age_ms(c->persist->options.clock);
	int err = 0;
	for (bool more = true; more && !err; more = request->more) {
		err = store_read_wait(read, job_queue(c->job));
		for (size_t i = 0; !err && i < request->enumerate.count; i++)
			catch_up_look(c, &request->enumerate.rows[i]);
	}
	return err;
}

static void catch_up_run(struct job *job, void *owner)
{
	struct catch_up *c = owner;
	int64_t every_ms = c->persist->options.derive_every_ms;
	struct store_read *read = store_read_new(c->persist->options.store, SLICE_MAX_BYTES);
	int err = job_sleep(job, TURNS * every_ms);
	err = err ? err : catch_up_walk(c, read);
	while (err == ERR_BUSY && job_sleep(job, every_ms) == 0) {
		store_read_reset(read);
		err = catch_up_walk(c, read);
	}
	if (err && err != ERR_CANCELLED)
		log_warn("what is polled no more was not looked through: %s",
			 store_read_sentence(read, err));
	store_read_free(read);
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
