#include "ingest/oops_amqp.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stats.h"
#include "broker/broker.h"
#include "ingest/oops.h"
#include "loop/job.h"
#include "queue/aside.h"
#include "store/wait.h"

enum {
	BODY_MAX_BYTES = OOPS_UNPACKED_MAX_BYTES, /* as of HTTP */
	LISTEN_MS = 5000,                         /* for a message, while nothing is held */
	REST_FIRST_MS = 100,
	REST_MAX_MS = 5000,
	WRITE_MAX_BYTES = 2 * ASIDE_BYTES_MAX,
	READ_MAX_BYTES = 4 * ASIDE_BYTES_MAX,
	LINES_A_MINUTE = 6,
};

enum oops_amqp_stage {
	OOPS_AMQP_READ, /* it is to be submitted */
	OOPS_AMQP_ODD,  /* it is to be set aside */
	OOPS_AMQP_DONE, /* it is durable, here or there */
};

/* One that is not acknowledged. */
struct oops_amqp_message {
	uint64_t tag, whole_bytes;
	struct slice kept; /* the first ASIDE_BYTES_MAX of it */
	enum oops_amqp_stage stage;
	struct errbuf why; /* it is odd */
	struct oops_batch batch;
	struct fault_submission submission;
};

struct oops_amqp {
	struct oops_amqp_options options;
	const struct fault_site *site;
	char name[OOPS_AMQP_NAME_MAX_BYTES];
	struct broker *broker;
	struct job *job; /* NULL: it is over, or has not begun */

	/* The job's. */
	struct oops_amqp_message *held[OOPS_AMQP_PREFETCH_MAX]; /* by tag */
	size_t count;
	struct random random;
	struct log_rate lines, aside_lines;

	pthread_mutex_t lock; /* guards the next */
	struct queue_aside aside;
	struct oops_amqp_state state;
};

struct slice oops_amqp_name(const struct oops_amqp *amqp)
{
	return slice_of(amqp->name);
}

static int64_t oops_amqp_now_ms(void)
{
	return clock_mono_ms(clock_real());
}

/* ---- How it goes ----------------------------------------------------------------------------- */

void oops_amqp_look(struct oops_amqp *amqp, struct oops_amqp_state *state)
{
	pthread_mutex_lock(&amqp->lock);
	*state = amqp->state;
	pthread_mutex_unlock(&amqp->lock);
}

static void oops_amqp_show(struct oops_amqp *amqp, uint64_t received, uint64_t acknowledged)
{
	stat_add(STAT_amqp_received, (int64_t)received);
	stat_add(STAT_amqp_acknowledged, (int64_t)acknowledged);
	stat_set(STAT_amqp_held, (int64_t)amqp->count);
	pthread_mutex_lock(&amqp->lock);
	amqp->state.received += received;
	amqp->state.acknowledged += acknowledged;
	amqp->state.held = amqp->count;
	amqp->state.aside = amqp->aside.count;
	amqp->state.dropped = amqp->aside.dropped;
	pthread_mutex_unlock(&amqp->lock);
}

/* The log says when it begins, and when it is another one. */
static void oops_amqp_set_trouble(struct oops_amqp *amqp, const struct errbuf *trouble)
{
	const struct oops_amqp_options *o = &amqp->options;
	struct oops_amqp_state before;
	oops_amqp_look(amqp, &before);
	if (strcmp(before.trouble.text, trouble->text) == 0)
		return;
	pthread_mutex_lock(&amqp->lock);
	amqp->state.trouble = *trouble;
	pthread_mutex_unlock(&amqp->lock);
	if (trouble->text[0])
		log_rated(&amqp->lines, oops_amqp_now_ms(), LOG_WARN,
			  "fault reports by AMQP: none are taken from the queue %s of %s:%d: %s; "
			  "they stay in the queue, and the server tries again",
			  o->queue, o->broker.host, o->broker.port, trouble->text);
	else
		log_rated(&amqp->lines, oops_amqp_now_ms(), LOG_INFO,
			  "fault reports by AMQP: they are taken from the queue %s of %s:%d",
			  o->queue, o->broker.host, o->broker.port);
}

static void oops_amqp_end_trouble(struct oops_amqp *amqp)
{
	const struct errbuf none = {""};
	oops_amqp_set_trouble(amqp, &none);
}

/* ---- Messages that are held ------------------------------------------------------------------ */

static void oops_amqp_release_message(struct oops_amqp_message *message)
{
	oops_batch_release(&message->batch);
	mem_free((char *)(uintptr_t)message->kept.data);
	mem_free(message);
}

/* Those of the front. */
static void oops_amqp_release(struct oops_amqp *amqp, size_t count)
{
	for (size_t i = 0; i < count; i++)
		oops_amqp_release_message(amqp->held[i]);
	amqp->count -= count;
	memmove(amqp->held, amqp->held + count, amqp->count * sizeof(struct oops_amqp_message *));
}

static void oops_amqp_read(const struct oops_amqp *amqp, struct oops_amqp_message *message,
			   struct slice body)
{
	const struct oops_options options = {
		.report = {.digest_key = amqp->site->digest_key,
			   .masks = &amqp->site->masks,
			   .body_max_bytes = amqp->options.report_max_bytes}};
	int err;
	if (message->whole_bytes > body.len)
		err = errbuf_set(&message->why, ERR_LIMIT,
				 "it has %llu bytes, and a message may have %d",
				 (unsigned long long)message->whole_bytes, BODY_MAX_BYTES);
	else
		err = oops_batch_read(&message->batch, body, (struct slice){NULL, 0}, &options,
				      &message->why);
	message->stage = err ? OOPS_AMQP_ODD : OOPS_AMQP_READ;
}

static void oops_amqp_hold(struct oops_amqp *amqp, const struct broker_message *from)
{
	struct oops_amqp_message *message = mem_zalloc(sizeof(*message));
	struct slice kept = from->body;
	if (kept.len > ASIDE_BYTES_MAX)
		kept.len = ASIDE_BYTES_MAX;
	message->tag = from->tag;
	message->whole_bytes = from->whole_bytes;
	message->kept = (struct slice){mem_copy_text(kept), kept.len};
	oops_batch_init(&message->batch);
	oops_amqp_read(amqp, message, from->body);
	stat_add(STAT_fault_failed, message->stage == OOPS_AMQP_ODD);
	amqp->held[amqp->count++] = message;
	oops_amqp_show(amqp, 1, 0);
}

/* Waits up to wait_ms for a message, and takes with it what is there. */
static int oops_amqp_gather(struct oops_amqp *amqp, int64_t wait_ms, struct errbuf *e)
{
	struct broker_message message;
	int err = 0;
	while (!err && !job_is_stopping(amqp->job)) {
		err = broker_next(amqp->broker, wait_ms, &message, e);
		if (!err && amqp->count == amqp->options.prefetch)
			err = errbuf_set(e, ERR_RETRY, "it sends more messages than it was told");
		if (!err)
			oops_amqp_hold(amqp, &message);
		wait_ms = 0;
	}
	return err == ERR_TIMEOUT ? 0 : err;
}

/* ---- Submitting ------------------------------------------------------------------------------ */

/* Messages that are submitted together, for a job that waits for them. The loop's meanwhile. */
struct oops_amqp_group {
	struct oops_amqp *amqp;
	struct executor *executor; /* the job's */
	struct oops_amqp_message *const *messages;
	size_t count;
	size_t under_way;
	struct task back; /* posted to the job when none is under way */
	struct task_answer answer;
};

static void oops_amqp_on_back(struct task *task)
{
	CONTAINER_OF(task, struct oops_amqp_group, back)->answer.there = true;
}

static void oops_amqp_end_one(struct oops_amqp_group *group)
{
	if (--group->under_way == 0)
		group->executor->post(group->executor, &group->back);
}

static void oops_amqp_on_submitted(struct fault_submission *submission)
{
	oops_amqp_end_one(submission->owner);
}

/* On the loop. */
static void oops_amqp_submit(void *owner)
{
	struct oops_amqp_group *group = owner;
	const struct oops_amqp_options *options = &group->amqp->options;
	group->under_way = 1; /* this call */
	for (size_t i = 0; i < group->count; i++) {
		struct oops_amqp_message *message = group->messages[i];
		if (message->stage != OOPS_AMQP_READ)
			continue;
		message->submission = (struct fault_submission){
			.tenant = options->tenant,
			.items = message->batch.items,
			.count = message->batch.item_count,
			.done = oops_amqp_on_submitted,
			.owner = group,
		};
		group->under_way++;
		int err =
			fault_intake_submit(fault_intake_of(options->fault), &message->submission);
		if (!err)
			continue;
		message->batch.items->outcome = FAULT_FAILED;
		message->batch.items->err = err;
		oops_amqp_end_one(group);
	}
	oops_amqp_end_one(group);
}

/* Returns when all of them are done, one way or another. */
static void oops_amqp_submit_and_wait(struct oops_amqp *amqp, struct job *job,
				      struct oops_amqp_message *const *messages, size_t count)
{
	struct oops_amqp_group group = {.amqp = amqp,
					.executor = &job_queue(job)->executor,
					.messages = messages,
					.count = count,
					.back = {.run = oops_amqp_on_back}};
	job_call(job, amqp->options.executor, oops_amqp_submit, &group);
	(void)task_queue_wait_for(job_queue(job), &group.answer);
}

/* What is the report's fault, so that it will not be otherwise later. A damaged store is not: if it
 * were, its damage would push what lies aside out of there. */
static bool oops_amqp_is_final(int err)
{
	return err == ERR_INVALID || err == ERR_LIMIT;
}

/* What became of a report. An error: the store did not take it, and may do so later. */
static int oops_amqp_judge(struct oops_amqp_message *message)
{
	const struct fault_item *item = message->batch.items;
	if (item->outcome == FAULT_CONFLICT) {
		errbuf_set(&message->why, 0,
			   "there is another report with the id " SHOWN "; it stays",
			   SHOWN_OF(item->id));
		message->stage = OOPS_AMQP_ODD;
	} else if (item->outcome == FAULT_FAILED && oops_amqp_is_final(item->err)) {
		errbuf_set(&message->why, 0, "the report cannot be stored: %s",
			   err_text(item->err));
		message->stage = OOPS_AMQP_ODD;
	} else if (item->outcome == FAULT_FAILED) {
		return item->err;
	} else {
		message->stage = OOPS_AMQP_DONE;
	}
	return 0;
}

static int oops_amqp_set_aside(struct oops_amqp *amqp, struct oops_amqp_message *message)
{
	const struct queue_aside_message aside = {
		.at_ms = clock_wall_ms(amqp->site->clock),
		.reason = slice_of(message->why.text),
		.bytes = message->kept,
		.whole_bytes = message->whole_bytes,
	};
	struct store_write *write = store_write_new(amqp->options.store, WRITE_MAX_BYTES);
	pthread_mutex_lock(&amqp->lock);
	uint64_t sequence = amqp->aside.next;
	int err = queue_aside_add(&amqp->aside, &aside, write);
	bool added = !err;
	pthread_mutex_unlock(&amqp->lock);
	err = err ? err : store_write_wait_known(write, job_queue(amqp->job));
	store_write_free(write);
	if (err && added) {
		pthread_mutex_lock(&amqp->lock);
		queue_aside_take_back(&amqp->aside, sequence);
		pthread_mutex_unlock(&amqp->lock);
	}
	if (err)
		return err;
	message->stage = OOPS_AMQP_DONE;
	stat_add(STAT_amqp_aside, 1);
	log_rated(&amqp->aside_lines, oops_amqp_now_ms(), LOG_WARN,
		  "fault reports by AMQP: a message of the queue %s is set aside: %s; granary "
		  "queue --aside %s shows it",
		  amqp->options.queue, message->why.text, amqp->name);
	return 0;
}

/* Makes all that is held durable. The first error of the store; what it took all the same is done.
 */
static int oops_amqp_store(struct oops_amqp *amqp)
{
	int err = 0;
	oops_amqp_submit_and_wait(amqp, amqp->job, amqp->held, amqp->count);
	for (size_t i = 0; i < amqp->count; i++) {
		struct oops_amqp_message *message = amqp->held[i];
		int failed = 0;
		if (message->stage == OOPS_AMQP_READ)
			failed = oops_amqp_judge(message);
		if (message->stage == OOPS_AMQP_ODD)
			failed = oops_amqp_set_aside(amqp, message);
		err = err ? err : failed;
	}
	return err;
}

/* Those of the front that are done; what is done behind one that is not waits for it. */
static int oops_amqp_acknowledge(struct oops_amqp *amqp, struct errbuf *e)
{
	size_t done = 0;
	while (done < amqp->count && amqp->held[done]->stage == OOPS_AMQP_DONE)
		done++;
	if (!done)
		return 0;
	int err = broker_acknowledge(amqp->broker, amqp->held[done - 1]->tag, e);
	if (err)
		return err;
	oops_amqp_release(amqp, done);
	oops_amqp_show(amqp, 0, done);
	return 0;
}

/* ---- The job --------------------------------------------------------------------------------- */

/* Longer each time, and not the same in each process. */
static int64_t oops_amqp_next_rest(struct oops_amqp *amqp, int64_t rest_ms)
{
	double factor = 1.5 + random_unit(&amqp->random);
	return smaller_of((int64_t)((double)rest_ms * factor), REST_MAX_MS);
}

static void oops_amqp_say_not_stored(struct oops_amqp *amqp, int err)
{
	struct errbuf trouble;
	errbuf_set(&trouble, 0, "the store takes no reports: %s", err_text(err));
	stat_add(STAT_amqp_retries, 1);
	if (!job_is_stopping(amqp->job))
		oops_amqp_set_trouble(amqp, &trouble);
}

/* While the connection lasts. */
static int oops_amqp_consume(struct oops_amqp *amqp, struct errbuf *e)
{
	int64_t rest_ms = REST_FIRST_MS;
	int err = 0;
	while (!err && !job_is_stopping(amqp->job)) {
		/* What is held now the store did not take. */
		err = oops_amqp_gather(amqp, amqp->count ? rest_ms : LISTEN_MS, e);
		if (err || !amqp->count)
			continue;
		int failed = oops_amqp_store(amqp);
		err = oops_amqp_acknowledge(amqp, e);
		rest_ms = failed ? oops_amqp_next_rest(amqp, rest_ms) : REST_FIRST_MS;
		if (failed)
			oops_amqp_say_not_stored(amqp, failed);
		else
			oops_amqp_end_trouble(amqp);
	}
	return err;
}

/* One connection, from its beginning to its end. False: it did not last. */
static bool oops_amqp_connect(struct oops_amqp *amqp)
{
	int64_t begun_ms = oops_amqp_now_ms();
	struct errbuf e = {""};
	int err = broker_open(amqp->broker, &e);
	if (!err)
		err = broker_consume(amqp->broker, amqp->options.queue,
				     (uint16_t)amqp->options.prefetch, &e);
	if (!err) {
		stat_add(STAT_amqp_connections, 1);
		stat_set(STAT_amqp_connected, 1);
		oops_amqp_end_trouble(amqp);
		(void)oops_amqp_consume(amqp, &e);
	}
	stat_set(STAT_amqp_connected, 0);
	broker_close(amqp->broker);
	oops_amqp_release(amqp, amqp->count);
	oops_amqp_show(amqp, 0, 0);
	if (!job_is_stopping(amqp->job))
		oops_amqp_set_trouble(amqp, &e);
	return oops_amqp_now_ms() - begun_ms > REST_MAX_MS;
}

static void oops_amqp_run(struct job *job, void *owner)
{
	struct oops_amqp *amqp = owner;
	int64_t rest_ms = REST_FIRST_MS;
	do
		rest_ms = oops_amqp_connect(amqp) ? REST_FIRST_MS
						  : oops_amqp_next_rest(amqp, rest_ms);
	while (!job_sleep(job, rest_ms));
}

static void oops_amqp_on_over(void *owner)
{
	struct oops_amqp *amqp = owner;
	job_free(amqp->job);
	amqp->job = NULL;
}

/* ---- What lies aside, once more -------------------------------------------------------------- */

/* Takes it away from there. Carried out also when this is to end. */
static int oops_amqp_remove_aside(struct oops_amqp *amqp, uint64_t sequence)
{
	struct task_queue tasks;
	task_queue_init(&tasks);
	struct store_write *write = store_write_new(amqp->options.store, WRITE_MAX_BYTES);
	int err = queue_aside_remove(&amqp->aside, sequence, write);
	err = err ? err : store_write_wait(write, &tasks);
	store_write_free(write);
	task_queue_release(&tasks);
	if (err)
		return err;
	pthread_mutex_lock(&amqp->lock);
	queue_aside_removed(&amqp->aside, sequence);
	amqp->state.aside = amqp->aside.count;
	pthread_mutex_unlock(&amqp->lock);
	return 0;
}

static int oops_amqp_retry_one(struct oops_amqp *amqp, struct job *job,
			       const struct queue_aside_message *from,
			       struct queue_retry_result *result)
{
	struct oops_amqp_message message = {.whole_bytes = from->whole_bytes}, *one = &message;
	int err = 0;
	if (from->bytes.len != from->whole_bytes) {
		result->kept++; /* not all of it was kept */
		return 0;
	}
	oops_batch_init(&message.batch);
	oops_amqp_read(amqp, &message, from->bytes);
	oops_amqp_submit_and_wait(amqp, job, &one, 1);
	if (message.stage == OOPS_AMQP_READ)
		err = oops_amqp_judge(&message);
	bool taken = message.stage == OOPS_AMQP_DONE;
	oops_batch_release(&message.batch);
	if (taken)
		err = oops_amqp_remove_aside(amqp, from->sequence);
	result->given += taken && !err;
	result->kept += message.stage == OOPS_AMQP_ODD;
	return err;
}

/* The oldest from `from` on; none: there is no other below `until`. */
static int oops_amqp_read_aside(struct oops_amqp *amqp, struct job *job, struct store_read *read,
				uint64_t from, uint64_t until, struct store_cell_scan **scan)
{
	store_read_reset(read);
	read->now_ms = clock_wall_ms(amqp->site->clock);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty read */
	*scan = &request->cell_scan;
	int err = queue_aside_scan_from(&amqp->aside, from, until, &read->arena, *scan);
	(*scan)->limit = 1;
	return err ? err : store_read_wait(read, job_queue(job));
}

int oops_amqp_retry(struct oops_amqp *amqp, struct job *job, struct queue_retry_result *result,
		    struct errbuf *e)
{
	struct store_read *read = store_read_new(amqp->options.store, READ_MAX_BYTES);
	struct store_cell_scan *scan;
	pthread_mutex_lock(&amqp->lock);
	uint64_t next = amqp->aside.first, until = amqp->aside.next;
	pthread_mutex_unlock(&amqp->lock);
	*result = (struct queue_retry_result){0};
	int err = 0;
	while (!err && next < until && !job_is_stopping(job)) {
		struct queue_aside_message message;
		err = oops_amqp_read_aside(amqp, job, read, next, until, &scan);
		if (err || !scan->count)
			break;
		bool damaged = queue_aside_decode(scan->cells, &message) != 0;
		next = message.sequence + 1;
		result->kept += damaged;
		if (!damaged)
			err = oops_amqp_retry_one(amqp, job, &message, result);
	}
	store_read_free(read);
	return err ? errbuf_set(e, err, "%s", err_text(err)) : 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int oops_amqp_new(const struct oops_amqp_options *options, struct oops_amqp **to, struct errbuf *e)
{
	struct oops_amqp *amqp = mem_zalloc(sizeof(*amqp));
	ASSERT(options->prefetch && options->prefetch <= OOPS_AMQP_PREFETCH_MAX);
	amqp->options = *options;
	amqp->site = fault_site_of(options->fault);
	snprintf(amqp->name, sizeof(amqp->name), "amqp/%s", options->queue);
	amqp->broker = broker_new(&amqp->options.broker, BODY_MAX_BYTES);
	amqp->lines = amqp->aside_lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	snprintf(amqp->state.trouble.text, sizeof(amqp->state.trouble.text),
		 "the server has not connected yet");
	random_init(&amqp->random, random_system_seed());
	pthread_mutex_init(&amqp->lock, NULL);
	int err = queue_aside_open(&amqp->aside, oops_amqp_name(amqp), options->store,
				   amqp->site->clock, e);
	*to = amqp;
	if (err) {
		oops_amqp_free(amqp);
		*to = NULL;
		return errbuf_prefix(e, err, "messages of %s that were set aside", amqp->name);
	}
	oops_amqp_show(amqp, 0, 0);
	return 0;
}

void oops_amqp_start(struct oops_amqp *amqp)
{
	int err = job_start("amqp", oops_amqp_run, oops_amqp_on_over, amqp, amqp->options.executor,
			    &amqp->job);
	ASSERT(!err); /* one of the first */
}

void oops_amqp_stop(struct oops_amqp *amqp)
{
	if (!amqp || !amqp->job)
		return;
	job_stop(amqp->job);
	broker_interrupt(amqp->broker);
}

bool oops_amqp_is_over(const struct oops_amqp *amqp)
{
	return !amqp || !amqp->job;
}

void oops_amqp_free(struct oops_amqp *amqp)
{
	if (!amqp)
		return;
	ASSERT(oops_amqp_is_over(amqp));
	broker_free(amqp->broker);
	pthread_mutex_destroy(&amqp->lock);
	mem_free(amqp);
}
