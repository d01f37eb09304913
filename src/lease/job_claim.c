#include "lease/job_claim.h"

#include <pthread.h>

#include "lease/cell.h"
#include "store/wait.h"

enum {
	JOB_CLAIM_WRITE_MAX_BYTES = 64 << 10,
	JOB_CLAIM_READ_MAX_BYTES = 64 << 10,
};

static const struct store_parts job_row = {{SLICE("job")}};

static const struct {
	const char *name, *what;
} job_claim_kinds[JOB_CLAIM_COUNT] = {
	[JOB_CLAIM_DELETION] = {"deletion", "another deletion"},
	[JOB_CLAIM_REBUILD] = {"rebuild", "a rebuild of marks"},
	[JOB_CLAIM_APPLY] = {"retention", "applying retention to what is stored"},
	[JOB_CLAIM_RESTORE] = {"restore", "making lost marks again"},
};

struct job_claims {
	struct lease_session *session;

	pthread_mutex_t lock; /* guards the next */
	bool taken[JOB_CLAIM_COUNT];
	uint64_t versions[JOB_CLAIM_COUNT]; /* of the cell, by whoever has taken it */
};

struct job_claims *job_claims_new(struct lease_session *session)
{
	struct job_claims *c = mem_zalloc(sizeof(*c));
	c->session = session;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void job_claims_free(struct job_claims *c)
{
	pthread_mutex_destroy(&c->lock);
	mem_free(c);
}

static struct store_parts job_claim_column(enum job_claim_kind kind)
{
	return (struct store_parts){{slice_of(job_claim_kinds[kind].name)}};
}

/* ---- In this process ------------------------------------------------------------------------- */

static int job_claim_take_here(struct job_claims *c, enum job_claim_kind kind, struct errbuf *e)
{
	pthread_mutex_lock(&c->lock);
	bool taken = c->taken[kind];
	if (!taken)
		c->taken[kind] = true;
	pthread_mutex_unlock(&c->lock);
	return taken ? errbuf_set(e, ERR_BUSY, "%s is at work, in this process",
				  job_claim_kinds[kind].what)
		     : 0;
}

static void job_claim_give_here(struct job_claims *c, enum job_claim_kind kind)
{
	pthread_mutex_lock(&c->lock);
	ASSERT(c->taken[kind]);
	c->taken[kind] = false;
	c->versions[kind] = 0;
	pthread_mutex_unlock(&c->lock);
}

/* ---- In the store ---------------------------------------------------------------------------- */

static int job_claim_refuse(enum job_claim_kind kind, struct slice holder,
			    const struct session_seen *seen, struct errbuf *e)
{
	struct slice address = seen ? seen->cell.address : (struct slice){NULL, 0};
	return errbuf_set(e, ERR_BUSY, "%s is at work, in the process " SHOWN "%s%.*s",
			  job_claim_kinds[kind].what, SHOWN_OF(holder), address.len ? " at " : "",
			  (int)address.len, address.len ? address.data : "");
}

/* *version: what the claim is to be taken by. ERR_BUSY: its holder is alive. */
static int job_claim_look(struct job_claims *c, struct task_queue *queue, enum job_claim_kind kind,
			  struct store_read *read, uint64_t *version, struct errbuf *e)
{
	const struct lease_session_options *own = lease_session_options_of(c->session);
	struct sessions all = {0};
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_LEASES, .key = job_row, .column = job_claim_column(kind)};
	read->now_ms = clock_wall_ms(own->clock);
	int err = store_read_wait(read, queue);
	err = err ? err : sessions_look(&all, c->session, queue);
	if (err)
		errbuf_set(e, err, "whether %s is at work cannot be read: %s",
			   job_claim_kinds[kind].what, err_text(err));
	if (!err && request->cell_get.found) {
		struct slice holder = request->cell_get.cell.value;
		const struct session_seen *seen = sessions_find(&all, holder);
		*version = request->cell_get.cell.version;
		if (!lease_session_is_holder(holder))
			log_warn("the claim \"%s\" (table leases, kind job) cannot be read: it "
				 "names no process; it is taken over",
				 job_claim_kinds[kind].name);
		if (seen && seen->alive && !slice_equal(holder, own->holder))
			err = job_claim_refuse(kind, holder, seen, e);
	}
	sessions_release(&all);
	return err;
}

static int job_claim_put_once(struct job_claims *c, struct store_write *write,
			      struct task_queue *queue, enum job_claim_kind kind, uint64_t version,
			      struct store_write_cond **outcome)
{
	const struct store_parts column = job_claim_column(kind);
	store_write_reset(write);
	int err = store_cell_put_if(write, TABLE_LEASES, &job_row, &column, version,
				    lease_session_options_of(c->session)->holder, 0, outcome);
	/* A claim whose outcome is not known could be there for as long as this process lives. */
	return err ? err : store_write_wait_known(write, queue);
}

/* Once more if its holder gave the claim back meanwhile. */
static int job_claim_put(struct job_claims *c, struct task_queue *queue, enum job_claim_kind kind,
			 uint64_t version, struct errbuf *e)
{
	const struct lease_session_options *own = lease_session_options_of(c->session);
	struct store_write *write = store_write_new(own->store, JOB_CLAIM_WRITE_MAX_BYTES);
	struct store_write_cond *outcome = NULL;
	int err = job_claim_put_once(c, write, queue, kind, version, &outcome);
	if (!err && !outcome->applied && !outcome->version)
		err = job_claim_put_once(c, write, queue, kind, 0, &outcome);
	if (err)
		errbuf_set(e, err, "the right to this job cannot be claimed: %s", err_text(err));
	else if (!outcome->applied && !slice_equal(outcome->value, own->holder))
		err = job_claim_refuse(kind, outcome->value, NULL, e);
	if (!err)
		c->versions[kind] = outcome->version;
	store_write_free(write);
	return err;
}

static int job_claim_take_shared(struct job_claims *c, struct task_queue *queue,
				 enum job_claim_kind kind, struct errbuf *e)
{
	struct session_hold hold;
	uint64_t version = 0;
	struct store_read *read = store_read_new(lease_session_options_of(c->session)->store,
						 JOB_CLAIM_READ_MAX_BYTES);
	int err = lease_session_renew(c->session, queue, &hold);
	if (err)
		errbuf_set(e, err, "the session of this process cannot be renewed: %s",
			   err_text(err));
	err = err ? err : job_claim_look(c, queue, kind, read, &version, e);
	err = err ? err : job_claim_put(c, queue, kind, version, e);
	store_read_free(read);
	return err;
}

int job_claims_take(struct job_claims *c, struct task_queue *queue, enum job_claim_kind kind,
		    struct errbuf *e)
{
	int err = job_claim_take_here(c, kind, e);
	if (err || !store_is_shared(lease_session_options_of(c->session)->store))
		return err;
	err = job_claim_take_shared(c, queue, kind, e);
	if (err)
		job_claim_give_here(c, kind);
	return err;
}

static int job_claim_delete(struct job_claims *c, enum job_claim_kind kind)
{
	const struct store_parts column = job_claim_column(kind);
	const struct lease_session_options *own = lease_session_options_of(c->session);
	struct store_write *write = store_write_new(own->store, JOB_CLAIM_WRITE_MAX_BYTES);
	struct task_queue queue;
	task_queue_init(&queue);
	int err =
		lease_cell_remove(write, &queue, &job_row, &column, c->versions[kind], own->holder);
	task_queue_release(&queue);
	store_write_free(write);
	return err;
}

void job_claims_give(struct job_claims *c, enum job_claim_kind kind)
{
	int err = c->versions[kind] ? job_claim_delete(c, kind) : 0;
	if (err)
		log_warn("the claim \"%s\" of this process (table leases, kind job) cannot be "
			 "removed: %s; it holds until the session of this process ends",
			 job_claim_kinds[kind].name, err_text(err));
	job_claim_give_here(c, kind);
}
