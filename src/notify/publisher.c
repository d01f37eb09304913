#include "notify/publisher.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/job.h"

enum { PUBLISHER_IDLE_MS = 3000 }; /* less than a heartbeat: none is sent meanwhile */

struct publisher {
	struct job *job; /* NULL: it is over */
	struct broker *broker;
	/* The job's. */
	bool connected, used;
	int64_t failed_ms; /* when it could not connect; monotonic */
	struct errbuf failed_why;
};

static int64_t publisher_now_ms(void)
{
	return clock_mono_ms(clock_real());
}

static void publisher_disconnect(struct publisher *publisher)
{
	broker_close(publisher->broker);
	publisher->connected = false;
}

static int publisher_connect(struct publisher *publisher, const struct publication *publication,
			     struct errbuf *e)
{
	if (job_is_stopping(publisher->job))
		return errbuf_set(e, ERR_CANCELLED, "the server stops");
	if (publisher->connected)
		return 0;
	if (publication->begun_ms <= publisher->failed_ms) {
		*e = publisher->failed_why;
		return ERR_RETRY;
	}
	int err = broker_open(publisher->broker, e);
	err = err ? err : broker_ask_confirms(publisher->broker, e);
	publisher->connected = !err;
	if (err) {
		publisher->failed_ms = publisher_now_ms();
		publisher->failed_why = *e;
	}
	return err;
}

static void publisher_run_one(struct task *task)
{
	struct publication *publication = CONTAINER_OF(task, struct publication, task);
	struct publisher *publisher = publication->publisher;
	int err = publisher_connect(publisher, publication, &publication->why);
	if (!err)
		err = broker_publish(publisher->broker, &publication->content, &publication->why);
	if (err)
		publisher_disconnect(publisher);
	publisher->used = true;
	publication->taken = !err;
	publication->done(publication);
}

/* Sleeping runs what is to be published. */
static void publisher_run(struct job *job, void *owner)
{
	struct publisher *publisher = owner;
	while (!job_sleep(job, PUBLISHER_IDLE_MS)) {
		if (!publisher->used)
			publisher_disconnect(publisher);
		publisher->used = false;
	}
	task_queue_run(job_queue(job));
	publisher_disconnect(publisher);
}

void publisher_publish(struct publication *publication)
{
	struct executor *executor = &job_queue(publication->publisher->job)->executor;
	publication->begun_ms = publisher_now_ms();
	publication->task.run = publisher_run_one;
	executor->post(executor, &publication->task);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void publisher_on_over(void *owner)
{
	struct publisher *publisher = owner;
	job_free(publisher->job);
	publisher->job = NULL;
}

int publisher_start(const struct amqp_address *address, struct executor *executor,
		    struct publisher **to)
{
	struct publisher *publisher = mem_zalloc(sizeof(*publisher));
	publisher->broker = broker_new(address, 0);
	publisher->failed_ms = INT64_MIN;
	int err = job_start("publisher", publisher_run, publisher_on_over, publisher, executor,
			    &publisher->job);
	*to = err ? NULL : publisher;
	if (err)
		publisher_free(publisher);
	return err;
}

void publisher_stop(struct publisher *publisher)
{
	job_stop(publisher->job);
	broker_interrupt(publisher->broker);
}

bool publisher_is_over(const struct publisher *publisher)
{
	return !publisher->job;
}

void publisher_free(struct publisher *publisher)
{
	ASSERT(publisher_is_over(publisher));
	broker_free(publisher->broker);
	mem_free(publisher);
}
