#include "persist/worker.h"

#include <stdatomic.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/stats.h"
#include "loop/thread.h"
#include "queue/queue.h"

enum {
	WRITE_MAX_BYTES = 48 << 20,
	ARENA_MAX_BYTES = POLL_ARENA_MAX_BYTES + (64 << 20),
	TICK_MS = 1000,
	STOPPING_TICK_MS = 20,
	REST_MS = 200, /* before what failed is tried again */
	/* Between two takes, so that polls which come one by one are written together: each write
	 * costs as much as the values of some polls. One that comes after a while is taken at once,
	 * and so is what waits while there is plenty. */
	GATHER_MS = 200,
	PLENTY = 64,
	/* So many wait behind others, as after a start: their write does not lie to share a commit.
	 */
	MANY = 256,
	RETRY_LINES_A_MINUTE = 3,
	ASIDE_LINES_A_MINUTE = 3,
};

/*        taken               filled              durable
 *  TAKES -------> FILLS ---------------> WRITES ----------> FILLS what is left, or TAKES
 *                 ^   | error            ^    | busy
 *                 |   v                  |    v
 *             RESTS_TO_FILL          RESTS_TO_WRITE
 *
 * Between two takes that gave little it rests, too (RESTS_TO_TAKE).
 *
 * What has failed while it was written is given back to the queue, which gives it again.
 */
enum worker_state { TAKES, RESTS_TO_TAKE, FILLS, RESTS_TO_FILL, WRITES, RESTS_TO_WRITE, ENDED };

/* A message that is no poll of its OIDSet. */
struct worker_odd {
	const struct queue_message *message;
	const char *reason;
};

struct worker {
	struct worker_options options;
	struct loop_thread *thread;
	struct loop *loop;
	struct loop_timer *ticks, *rest;
	struct queue_worker *taker;
	struct persister *persister;
	enum worker_state state;
	bool stopping;
	_Atomic int64_t moved_ms;
	struct task begin, stop;
	struct log_rate retry_lines, aside_lines;
	struct executor *stopped_executor;
	struct task *stopped;

	/* Of what was taken; the arrays lie in `arena`. */
	struct queue_batch *taken;
	int64_t taken_ms; /* monotonic */
	struct arena arena;
	struct persist_item *items;
	const struct queue_message **item_messages;
	size_t item_count, items_done;
	struct worker_odd *odd;
	size_t odd_count, odd_done;
	size_t parked_count;
	struct persist_batch batch; /* the items from items_done on */
	bool filled;                /* by the persister, which wants to know what becomes of it */
	bool last;                  /* the present write ends what was taken */
};

static int64_t worker_mono_ms(const struct worker *w)
{
	return clock_mono_ms(w->options.base.clock);
}

int64_t worker_moved_ms(const struct worker *worker)
{
	return atomic_load(&worker->moved_ms);
}

static void worker_rest_for(struct worker *w, enum worker_state state, int64_t ms)
{
	w->state = state;
	loop_timer_start(w->rest, (uint64_t)ms, 0);
}

static void worker_rest(struct worker *w, enum worker_state state)
{
	worker_rest_for(w, state, REST_MS);
}

/* Polls wait meanwhile, and whoever looks for the reason finds it. */
static void worker_retry(struct worker *w, enum worker_state state, int err)
{
	stat_add(STAT_persist_retries, 1);
	log_rated(&w->retry_lines, worker_mono_ms(w), LOG_WARN,
		  "queue " SHOWN ": polls cannot be stored now: %s; they wait and are tried again",
		  SHOWN_OF(w->options.def->name), err_text(err));
	worker_rest(w, state);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static void worker_take(struct worker *w)
{
	w->state = TAKES;
	queue_receive(w->taker);
}

static void worker_take_next(struct worker *w, size_t taken_before)
{
	int64_t since_ms = worker_mono_ms(w) - w->taken_ms;
	if (w->stopping || taken_before >= PLENTY || since_ms >= GATHER_MS)
		worker_take(w);
	else
		worker_rest_for(w, RESTS_TO_TAKE, GATHER_MS - since_ms);
}

static void worker_give_back(struct worker *w, bool stored)
{
	queue_finish(w->taken, stored);
	w->taken = NULL;
	arena_reset(&w->arena);
	arena_reset(&w->batch.arena);
}

static void worker_add_odd(struct worker *w, const struct queue_message *message,
			   const char *reason)
{
	/* The batch's arena, where the reason may lie, is reset before all of this is written. */
	const char *copy = arena_printf(&w->arena, "%s", reason);
	w->odd[w->odd_count++] = (struct worker_odd){message, copy ? copy : "it is damaged"};
	log_rated(&w->aside_lines, worker_mono_ms(w), LOG_WARN,
		  "queue " SHOWN ": a message of " SHOWN " is set aside: %s",
		  SHOWN_OF(w->options.def->name), SHOWN_OF(message->key), reason);
}

/* Of a poll, by the configuration. ERR_NOT_FOUND with a sentence. */
static int worker_find_oidset(const struct worker *w, struct persist_item *item, struct errbuf *e)
{
	const struct queue_def *def = w->options.def;
	item->oidset = inventory_conf_oidset(w->options.conf, item->poll.oidset);
	if (!item->oidset)
		return errbuf_set(e, ERR_NOT_FOUND, "there is no OIDSet " SHOWN,
				  SHOWN_OF(item->poll.oidset));
	if (item->oidset->kind != def->persister)
		return errbuf_set(e, ERR_NOT_FOUND,
				  "OIDSet " SHOWN " is for persisters of %s, those of queue " SHOWN
				  " are for %s",
				  SHOWN_OF(item->oidset->name),
				  oidset_kind_text(item->oidset->kind), SHOWN_OF(def->name),
				  oidset_kind_text(def->persister));
	return 0;
}

static bool worker_is_poll(const struct queue_message *message, struct poll *poll, struct errbuf *e)
{
	if (message->malformed) {
		errbuf_set(e, ERR_INVALID, "%s", message->malformed);
		return false;
	}
	return poll_open(message->bytes, poll, e) == 0;
}

/* What is a poll, but of no OIDSet of this configuration, is kept for another one: parked, so that
 * it stands before what comes later, or aside, where there is no parking or no room. */
static bool worker_read_message(struct worker *w, const struct queue_message *message,
				struct persist_item *item)
{
	struct errbuf e = {""};
	*item = (struct persist_item){0};
	if (!worker_is_poll(message, &item->poll, &e)) {
		worker_add_odd(w, message, e.text[0] ? e.text : "it is damaged");
		return false;
	}
	if (worker_find_oidset(w, item, &e) == 0)
		return true;
	if (queue_park(w->taken, message, e.text) == 0)
		w->parked_count++;
	else
		worker_add_odd(w, message, e.text);
	return false;
}

static void worker_read_messages(struct worker *w)
{
	size_t count = w->taken->count;
	w->items = arena_alloc(&w->arena, count * sizeof(*w->items));
	w->item_messages = arena_alloc(&w->arena, count * sizeof(*w->item_messages));
	w->odd = arena_alloc(&w->arena, count * sizeof(*w->odd));
	ASSERT(w->items && w->item_messages && w->odd); /* a batch is bounded by its queue */
	w->item_count = w->items_done = w->odd_count = w->odd_done = w->parked_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct queue_message *message = &w->taken->messages[i];
		if (worker_read_message(w, message, &w->items[w->item_count]))
			w->item_messages[w->item_count++] = message;
	}
}

static void worker_fill(struct worker *w);
static void worker_fill_some(struct worker *w, size_t count);
static void worker_end(struct worker *w);

static void worker_taken(struct queue_worker *taker, struct queue_batch *taken, int err)
{
	struct worker *w = queue_worker_owner(taker);
	if (err == ERR_CANCELLED) {
		worker_end(w);
	} else if (err) {
		worker_rest(w, RESTS_TO_TAKE);
	} else {
		w->taken = taken;
		w->taken_ms = worker_mono_ms(w);
		w->batch.write->can_wait = taken->count < MANY;
		worker_read_messages(w);
		worker_fill(w);
	}
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* After an error what is written may be there or not: the queue gives it again, and what is there
 * is known by its order then. */
static void worker_written(struct store_write *write, int err)
{
	struct worker *w = write->owner;
	if (w->filled)
		w->persister->ops->stored(w->persister, &w->batch, err);
	if (err) {
		w->filled = false;
		worker_give_back(w, false);
		worker_retry(w, RESTS_TO_TAKE, err);
		return;
	}
	w->items_done += w->filled ? w->batch.filled : 0;
	w->filled = false;
	if (!w->last) {
		worker_fill(w);
		return;
	}
	stat_add(STAT_persist_polls, (int64_t)(w->taken->count - w->odd_count - w->parked_count));
	stat_add(STAT_persist_aside, (int64_t)w->odd_count);
	size_t count = w->taken->count;
	worker_give_back(w, true);
	worker_take_next(w, count);
}

/* The same write again and again while the store has no room for it, so that nothing that was found
 * out about its values has to be found out again. */
static void worker_submit(struct worker *w)
{
	int err = queue_submit(w->taken, w->batch.write);
	if (!err) {
		w->state = WRITES;
	} else if (err == ERR_CANCELLED || w->stopping) {
		worker_written(w->batch.write, err);
	} else {
		worker_retry(w, RESTS_TO_WRITE, err);
	}
}

/* Adds what ends that which was taken: messages put aside, then that all is done. As far as there
 * is room: w->last says whether that was all. */
static void worker_add_end(struct worker *w)
{
	int err = 0;
	while (w->odd_done < w->odd_count && !err) {
		const struct worker_odd *odd = &w->odd[w->odd_done];
		err = queue_put_aside(w->taken, odd->message, odd->reason, w->batch.write);
		w->odd_done += !err;
	}
	w->last = !err && queue_acknowledge(w->taken, w->batch.write) == 0;
}

/* The end has a write of its own, where nothing is left to fill. */
static void worker_write_end(struct worker *w)
{
	store_write_reset(w->batch.write);
	w->batch.filled = 0;
	worker_add_end(w);
	worker_submit(w);
}

/* ---- Filling --------------------------------------------------------------------------------- */

static void worker_filled(struct persist_batch *batch, int err)
{
	struct worker *w = batch->owner;
	if (err == ERR_LIMIT && batch->count > 1) {
		/* There is room for one, if there is for any. */
		worker_fill_some(w, 1);
		return;
	}
	if (err == ERR_LIMIT) {
		/* All of a poll or nothing. */
		store_write_reset(batch->write);
		batch->items[0].aside = "it is larger than what can be kept of one poll";
		batch->filled = 1;
	} else if (err) {
		worker_retry(w, RESTS_TO_FILL, err);
		return;
	}
	w->filled = true;
	for (size_t i = 0; i < batch->filled; i++) {
		if (batch->items[i].aside)
			worker_add_odd(w, w->item_messages[w->items_done + i],
				       batch->items[i].aside);
	}
	w->last = false;
	if (w->items_done + batch->filled == w->item_count)
		worker_add_end(w);
	worker_submit(w);
}

static void worker_fill_some(struct worker *w, size_t count)
{
	w->state = FILLS;
	store_write_reset(w->batch.write);
	arena_reset(&w->batch.arena);
	w->batch.items = w->items + w->items_done;
	w->batch.count = count;
	w->batch.filled = 0;
	w->persister->ops->store(w->persister, &w->batch);
}

/* The persister has what is left of the items, until there is none. */
static void worker_fill(struct worker *w)
{
	if (w->items_done == w->item_count)
		worker_write_end(w);
	else
		worker_fill_some(w, w->item_count - w->items_done);
}

static void worker_rested(void *owner)
{
	struct worker *w = owner;
	if (w->state == RESTS_TO_WRITE) {
		worker_submit(w);
	} else if (w->stopping && w->state == RESTS_TO_FILL) {
		worker_give_back(w, false);
		worker_take(w); /* which is cancelled */
	} else if (w->state == RESTS_TO_FILL) {
		worker_fill(w);
	} else {
		worker_take(w);
	}
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* As a worker that waits for something that never comes. */
static NORETURN void worker_hang(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
}

static void worker_tick(void *owner)
{
	struct worker *w = owner;
	if (fault("persist_hang"))
		worker_hang();
	atomic_store(&w->moved_ms, worker_mono_ms(w));
	if (w->state == ENDED)
		worker_end(w);
	else if (!w->stopping)
		w->persister->ops->tick(w->persister);
}

/* Nothing is taken any more; what the persister began by itself is waited for, looking now and
 * then. */
static void worker_end(struct worker *w)
{
	w->state = ENDED;
	w->persister->ops->stop(w->persister);
	if (!w->persister->ops->idle(w->persister)) {
		loop_timer_start(w->ticks, STOPPING_TICK_MS, 0);
		return;
	}
	loop_timer_close(w->ticks);
	loop_timer_close(w->rest);
	queue_worker_free(w->taker);
	w->persister->ops->free(w->persister);
	store_write_free(w->batch.write);
	arena_release(&w->arena);
	arena_release(&w->batch.arena);
	if (w->stopped)
		w->stopped_executor->post(w->stopped_executor, w->stopped);
}

/* One that was replaced ends by itself, whenever it moves again. */
static void worker_begin(struct task *task)
{
	struct worker *w = CONTAINER_OF(task, struct worker, begin);
	struct executor *executor = loop_executor(w->loop);
	const struct queue_worker_options taker = {
		.index = w->options.index,
		.executor = executor,
		.received = worker_taken,
		.owner = w,
	};
	w->options.base.executor = executor;
	w->options.base.worker = w;
	w->persister = persisters[w->options.def->persister]->make(&w->options.base);
	arena_init(&w->arena, ARENA_MAX_BYTES);
	arena_init(&w->batch.arena, ARENA_MAX_BYTES);
	w->batch.done = worker_filled;
	w->batch.owner = w;
	w->batch.write = store_write_new(w->options.base.store, WRITE_MAX_BYTES);
	w->batch.write->executor = executor;
	w->batch.write->done = worker_written;
	w->batch.write->owner = w;
	w->ticks = loop_timer_new(w->loop, worker_tick, w);
	w->rest = loop_timer_new(w->loop, worker_rested, w);
	loop_timer_start(w->ticks, TICK_MS, TICK_MS);
	w->taker = queue_worker_new(w->options.queue, &taker);
	worker_take(w);
}

struct worker *worker_new(const struct worker_options *options)
{
	struct worker *w = mem_zalloc(sizeof(*w));
	char name[32];
	w->options = *options;
	w->begin.run = worker_begin;
	w->retry_lines.lines_max = RETRY_LINES_A_MINUTE;
	w->aside_lines.lines_max = ASIDE_LINES_A_MINUTE;
	atomic_store(&w->moved_ms, worker_mono_ms(w));
	snprintf(name, sizeof(name), "%.10s-%u", options->def->name.data, options->index % 1000);
	w->thread = loop_thread_new(name);
	w->loop = loop_thread_loop(w->thread);
	loop_set_kind(w->loop, LOOP_PERSIST);
	struct executor *executor = loop_executor(w->loop);
	executor->post(executor, &w->begin);
	return w;
}

static void worker_run_stop(struct task *task)
{
	struct worker *w = CONTAINER_OF(task, struct worker, stop);
	w->stopping = true;
	queue_worker_cancel(w->taker);
	if (w->state == RESTS_TO_TAKE)
		loop_timer_start(w->rest, 0, 0);
}

void worker_stop(struct worker *worker, struct executor *executor, struct task *stopped)
{
	worker->stopped_executor = executor;
	worker->stopped = stopped;
	worker->stop.run = worker_run_stop;
	struct executor *own = loop_executor(worker->loop);
	own->post(own, &worker->stop);
}

void worker_free(struct worker *worker)
{
	loop_thread_free(worker->thread);
	mem_free(worker);
}

void worker_abandon(struct worker *worker)
{
	loop_thread_abandon(worker->thread);
}
