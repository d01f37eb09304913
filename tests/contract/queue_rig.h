/* One suite for every driver of the queue (src/queue/queue.h). A runner says how its queue is
 * opened; the cases know nothing else about it.
 *
 * Messages are polls of one value: their device is the key, the value a number. What is taken is
 * stored as a sample at the number's own second, so that a case can look up what was stored. All
 * runs on one thread but where a case says otherwise: executors are pumped by hand. */
#ifndef TESTS_CONTRACT_QUEUE_RIG_H
#define TESTS_CONTRACT_QUEUE_RIG_H

#include "base/mem.h"
#include "engines.h"
#include "model/poll.h"
#include "queue/queue.h"
#include "queue/retry.h"
#include "stepped.h"

struct queue_limits {
	uint64_t messages_max; /* 0: the driver's own */
	unsigned workers;
	size_t take_messages_max;
};

struct queue_driver {
	const char *name;
	void *context;
	/* What lies there stays. */
	struct queue *(*open)(void *context, struct store *store,
			      const struct queue_limits *limits);
	/* Before each case: nothing lies there any more. */
	void (*clear)(void *context);
	size_t message_max_bytes; /* more is refused with ERR_LIMIT */
	/* After a restart, what was stored may be given again. */
	bool gives_again;
};

enum { RIG_WORKERS_MAX = 4 };

struct rig_worker {
	struct task_queue tasks;
	struct queue_worker *worker;
	struct queue_batch *batch; /* the one that was given, until it is finished */
	bool taken;                /* since the last take */
	int err;
};

struct queue_rig {
	const struct queue_driver *driver;
	struct rig rig;
	struct queue *queue;
	struct queue_limits limits;
	struct poll_builder builder;
	struct buf bytes;
	struct arena arena;
	struct rig_worker workers[RIG_WORKERS_MAX];
	uint64_t handle; /* of the series that the samples go to */
};

void queue_rig_open(struct queue_rig *q, const struct queue_driver *driver,
		    const struct contract_engine *engine, const struct queue_limits *limits);
void queue_rig_close(struct queue_rig *q);
/* Closes the queue and opens it again, and the store under it; workers are free before and after.
 */
void queue_rig_reopen(struct queue_rig *q);

/* The message of a number; valid until the next. */
struct slice queue_rig_message(struct queue_rig *q, const char *key, uint64_t number);
/* The number in a message; ASSERTs that it is one of these. */
uint64_t queue_rig_number(const struct queue_message *message);

/* Waits until it is durable; or the error at once. */
int queue_rig_put(struct queue_rig *q, const char *key, uint64_t number);
int queue_rig_put_bytes(struct queue_rig *q, const char *key, struct slice bytes);

struct queue_rig_retry {
	struct queue_retry_result result;
	struct errbuf error;
	/* Of one that goes on step by step. */
	struct stepped work;
	struct queue *queue;
	int err;
};

/* Gives back what lies aside; what ended it. */
int queue_rig_retry(struct queue_rig *q, struct queue_rig_retry *retry);
/* Likewise: up to where it waits for its first read, from one answer to the next, and to its end.
 */
void queue_rig_retry_begin(struct queue_rig *q, struct queue_rig_retry *retry);
void queue_rig_retry_step(struct queue_rig_retry *retry);
int queue_rig_retry_wait(struct queue_rig_retry *retry);

/* A worker of this index, in the place of the one before, which is returned. */
struct queue_worker *queue_rig_worker(struct queue_rig *q, unsigned index);
void queue_rig_free_worker(struct queue_rig *q, unsigned index);
void queue_rig_ask(struct queue_rig *q, unsigned index);
/* Pumps until what was asked for has come: a batch, or the error. */
int queue_rig_wait(struct queue_rig *q, unsigned index);
/* Stores what the batch holds, acknowledged in the same write, and finishes it; the write's error.
 */
int queue_rig_store(struct queue_rig *q, unsigned index);
/* The same in steps: the write, to be submitted and waited for, which frees it. */
struct store_write *queue_rig_write_of(struct queue_rig *q, struct queue_batch *batch);
int queue_rig_write_wait(struct queue_rig *q, struct store_write *write);
/* Finishes it unstored. */
void queue_rig_fail(struct queue_rig *q, unsigned index);
/* Takes and stores until `count` messages were stored; their numbers in order of delivery. */
void queue_rig_drain(struct queue_rig *q, unsigned index, size_t count, uint64_t *numbers);

struct queue_stats queue_rig_stats(struct queue_rig *q);
/* How many samples are stored. */
size_t queue_rig_samples(struct queue_rig *q);

/* Runs all cases of queue_suite.c, or those named; how many failed. */
int queue_contract_run(const struct queue_driver *driver, const struct contract_engine *engine,
		       int argc, char **argv);

#endif
