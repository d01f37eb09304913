#include "cmd/remote_handover.h"

#include <pthread.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "http/client.h"
#include "loop/thread.h"
#include "queue/queue.h"

enum {
	WRITE_MAX_BYTES = 48 << 20,
	ARENA_MAX_BYTES = 4 << 20, /* of reasons */
	/* A batch of the queue, or one message that is longer. */
	FRAMES_MAX_BYTES = 32 << 20,
	ANSWER_MAX_BYTES = 64 << 10,
	REST_MS = 200, /* before what failed here is tried again */
	LINES_A_MINUTE = 3,
	REFUSALS_A_MINUTE = 60,
};

/*        taken            all sent           durable
 *  TAKES -----> SENDS ----------------> WRITES ------> TAKES
 *               ^   | not now            ^   | busy
 *               |   v                    |   v
 *           RESTS_TO_SEND            RESTS_TO_WRITE
 */
enum remote_handover_state { TAKES, RESTS_TO_TAKE, SENDS, RESTS_TO_SEND, WRITES, RESTS_TO_WRITE };

enum remote_handover_verdict { TAKEN, REFUSED, LATER };

struct remote_handover {
	struct remote_handover_options options;
	struct loop_thread *thread;
	struct loop *loop;
	struct loop_timer *rest;
	struct http_client *http;
	struct queue_worker *taker;
	enum remote_handover_state state;
	bool stopping;
	int64_t rest_ms; /* the next rest; 0: all is well */
	struct log_rate lines, refusals;
	struct task begin, hurry, stop, stopped_task;
	atomic_bool hurrying;
	void (*stopped)(void *owner);
	void *owner;

	pthread_mutex_t lock; /* guards problem */
	struct errbuf problem;

	/* Of what was taken. */
	struct queue_batch *taken;
	size_t done;  /* messages that the server has, or that are refused */
	size_t width; /* how many are sent at once */
	struct refused {
		const struct queue_message *message;
		const char *reason;
	} * refused;
	size_t refused_count;
	struct arena arena;
	struct buf frames, answer;
	struct store_write *write;
};

static void remote_handover_rest(struct remote_handover *h, enum remote_handover_state state,
				 int64_t ms)
{
	h->state = state;
	loop_timer_start(h->rest, (uint64_t)ms, 0);
}

static void remote_handover_set_problem(struct remote_handover *h, const char *text)
{
	pthread_mutex_lock(&h->lock);
	snprintf(h->problem.text, sizeof(h->problem.text), "%s", text);
	pthread_mutex_unlock(&h->lock);
}

void remote_handover_problem(struct remote_handover *h, struct errbuf *problem)
{
	pthread_mutex_lock(&h->lock);
	*problem = h->problem;
	pthread_mutex_unlock(&h->lock);
}

static void remote_handover_take(struct remote_handover *h)
{
	h->state = TAKES;
	queue_receive(h->taker);
}

static void remote_handover_give_back(struct remote_handover *h, bool stored)
{
	queue_finish(h->taken, stored);
	h->taken = NULL;
	arena_reset(&h->arena);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static bool remote_handover_take_answer(void *owner, UNUSED long status, struct slice piece)
{
	struct remote_handover *h = owner;
	buf_append(&h->answer, piece.data, piece.len); /* what does not fit is not needed */
	return true;
}

/* Each message behind its length. */
static void remote_handover_make_frames(struct remote_handover *h)
{
	buf_clear(&h->frames);
	for (size_t i = h->done; i < h->done + h->width; i++) {
		struct slice bytes = h->taken->messages[i].bytes;
		uint32_t len = (uint32_t)bytes.len; /* least byte first on all that we run on */
		buf_append(&h->frames, &len, sizeof(len));
		buf_append(&h->frames, bytes.data, bytes.len);
	}
}

static enum remote_handover_verdict remote_handover_verdict_of(const struct remote_handover *h,
							       const struct http_call *call,
							       struct errbuf *why)
{
	char sentence[256];
	if (call->status == 204)
		return TAKEN;
	http_client_sentence(buf_slice(&h->answer), sentence, sizeof(sentence));
	if (call->status == 400 || call->status == 413 || call->status == 422) {
		errbuf_set(why, ERR_INVALID, "%s", sentence);
		return REFUSED;
	}
	errbuf_set(why, ERR_BUSY, "%s: status %ld: %s", h->options.server, call->status, sentence);
	return LATER;
}

static enum remote_handover_verdict
remote_handover_post(struct remote_handover *h, int64_t *retry_after_ms, struct errbuf *why)
{
	struct http_call call = {
		.path = "/api/polls",
		.headers = {"Content-Type: application/octet-stream"},
		.take = remote_handover_take_answer,
		.owner = h,
	};
	remote_handover_make_frames(h);
	buf_clear(&h->answer);
	call.body = buf_slice(&h->frames);
	int err = h->frames.failed
			  ? errbuf_set(why, ERR_LIMIT, "it is longer than a request may be")
			  : http_client_call(h->http, &call, why);
	if (err == ERR_LIMIT)
		return REFUSED;
	*retry_after_ms = err ? 0 : call.retry_after_ms;
	return err ? LATER : remote_handover_verdict_of(h, &call, why);
}

static void remote_handover_all_is_well(struct remote_handover *h)
{
	if (h->rest_ms) {
		log_info("%s takes polls again", h->options.server);
		remote_handover_set_problem(h, "");
	}
	h->rest_ms = 0;
}

static void remote_handover_wait_for_server(struct remote_handover *h, int64_t retry_after_ms,
					    const char *why)
{
	int64_t ms = h->rest_ms ? 2 * h->rest_ms : HANDOVER_REST_MIN_MS;
	stat_add(STAT_handover_failures, 1);
	remote_handover_set_problem(h, why);
	log_rated(&h->lines, clock_mono_ms(h->options.clock), LOG_WARN,
		  "polls wait in the spool: %s", why);
	ms = ms > retry_after_ms ? ms : retry_after_ms;
	h->rest_ms = ms < HANDOVER_REST_MAX_MS ? ms : HANDOVER_REST_MAX_MS;
	remote_handover_rest(h, RESTS_TO_SEND, h->rest_ms);
}

static void remote_handover_move_on(struct remote_handover *h, size_t width)
{
	size_t left = h->taken->count - h->done;
	h->width = width < left ? width : left;
}

static void remote_handover_took(struct remote_handover *h)
{
	stat_add(STAT_handover_taken, (int64_t)h->width);
	h->done += h->width;
	remote_handover_move_on(h, 2 * h->width);
}

/* One of those sent is wrong: the fewer the next time, until it is found. */
static void remote_handover_refuse(struct remote_handover *h, const char *why)
{
	if (h->width > 1) {
		remote_handover_move_on(h, h->width / 2);
		return;
	}
	const struct queue_message *message = &h->taken->messages[h->done];
	const char *reason = arena_printf(&h->arena, "%s", why);
	stat_add(STAT_handover_refused, 1);
	log_rated(&h->refusals, clock_mono_ms(h->options.clock), LOG_WARN,
		  "a poll of " SHOWN " is set aside: %s", SHOWN_OF(message->key), why);
	h->refused[h->refused_count++] =
		(struct refused){message, reason ? reason : "the server refuses it"};
	h->done++;
	remote_handover_move_on(h, 1);
}

static void remote_handover_write_end(struct remote_handover *h);

/* Until all has been sent, or it has to wait. */
static void remote_handover_send_all(struct remote_handover *h)
{
	h->state = SENDS;
	while (h->done < h->taken->count) {
		struct errbuf why = {""};
		int64_t retry_after_ms = 0;
		enum remote_handover_verdict verdict =
			remote_handover_post(h, &retry_after_ms, &why);
		if (atomic_load(h->options.cancelled)) {
			remote_handover_give_back(h, false);
			remote_handover_take(h); /* which is cancelled, or soon will be */
			return;
		}
		if (verdict == LATER) {
			remote_handover_wait_for_server(h, retry_after_ms, why.text);
			return;
		}
		remote_handover_all_is_well(h);
		if (verdict == TAKEN)
			remote_handover_took(h);
		else
			remote_handover_refuse(h, why.text);
	}
	remote_handover_write_end(h);
}

/* ---- What is sent leaves the spool ----------------------------------------------------------- */

static void remote_handover_written(struct store_write *write, int err)
{
	struct remote_handover *h = write->owner;
	remote_handover_give_back(h, !err);
	if (err)
		remote_handover_rest(h, RESTS_TO_TAKE, REST_MS);
	else
		remote_handover_take(h);
}

static void remote_handover_submit(struct remote_handover *h)
{
	int err = queue_submit(h->taken, h->write);
	if (!err)
		h->state = WRITES;
	else if (h->stopping)
		remote_handover_written(h->write, err);
	else
		remote_handover_rest(h, RESTS_TO_WRITE, REST_MS);
}

static void remote_handover_write_end(struct remote_handover *h)
{
	int err = 0;
	store_write_reset(h->write);
	for (size_t i = 0; i < h->refused_count && !err; i++)
		err = queue_put_aside(h->taken, h->refused[i].message, h->refused[i].reason,
				      h->write);
	err = err ? err : queue_acknowledge(h->taken, h->write);
	ASSERT(!err); /* a batch is bounded, and so is what is kept of a message */
	remote_handover_submit(h);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static void remote_handover_end(struct remote_handover *h)
{
	loop_timer_close(h->rest);
	queue_worker_free(h->taker);
	store_write_free(h->write);
	http_client_free(h->http);
	arena_release(&h->arena);
	buf_release(&h->frames);
	buf_release(&h->answer);
	h->options.executor->post(h->options.executor, &h->stopped_task);
}

static void remote_handover_on_taken(struct queue_worker *taker, struct queue_batch *taken, int err)
{
	struct remote_handover *h = queue_worker_owner(taker);
	if (err == ERR_CANCELLED) {
		remote_handover_end(h);
		return;
	}
	if (err) {
		remote_handover_rest(h, RESTS_TO_TAKE, REST_MS);
		return;
	}
	h->taken = taken;
	h->refused = arena_alloc(&h->arena, taken->count * sizeof(*h->refused));
	ASSERT(h->refused); /* a batch is bounded by its queue */
	h->refused_count = h->done = 0;
	h->width = taken->count;
	remote_handover_send_all(h);
}

static void remote_handover_on_rest(void *owner)
{
	struct remote_handover *h = owner;
	if (h->state == RESTS_TO_WRITE)
		remote_handover_submit(h);
	else if (h->state == RESTS_TO_SEND)
		remote_handover_send_all(h);
	else
		remote_handover_take(h);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void remote_handover_run_begin(struct task *task)
{
	struct remote_handover *h = CONTAINER_OF(task, struct remote_handover, begin);
	const struct http_client_options http = {
		.server = h->options.server,
		.token = h->options.token,
		.ca = h->options.ca,
		.timeout_ms = HANDOVER_TIMEOUT_MS,
		.cancelled = h->options.cancelled,
	};
	const struct queue_worker_options taker = {
		.executor = loop_executor(h->loop),
		.received = remote_handover_on_taken,
		.owner = h,
	};
	h->http = http_client_new(&http);
	h->rest = loop_timer_new(h->loop, remote_handover_on_rest, h);
	h->write = store_write_new(h->options.store, WRITE_MAX_BYTES);
	h->write->executor = taker.executor;
	h->write->done = remote_handover_written;
	h->write->owner = h;
	h->taker = queue_worker_new(h->options.spool, &taker);
	remote_handover_take(h);
}

static void remote_handover_run_hurry(struct task *task)
{
	struct remote_handover *h = CONTAINER_OF(task, struct remote_handover, hurry);
	atomic_store(&h->hurrying, false);
	if (h->state == RESTS_TO_SEND && !h->stopping)
		loop_timer_start(h->rest, 0, 0);
}

void remote_handover_hurry(struct remote_handover *h)
{
	struct executor *executor = loop_executor(h->loop);
	if (!atomic_exchange(&h->hurrying, true))
		executor->post(executor, &h->hurry);
}

/* Back on the owner's thread. */
static void remote_handover_run_stopped(struct task *task)
{
	struct remote_handover *h = CONTAINER_OF(task, struct remote_handover, stopped_task);
	void (*stopped)(void *owner) = h->stopped;
	void *owner = h->owner;
	loop_thread_free(h->thread);
	pthread_mutex_destroy(&h->lock);
	mem_free(h);
	stopped(owner);
}

static void remote_handover_run_stop(struct task *task)
{
	struct remote_handover *h = CONTAINER_OF(task, struct remote_handover, stop);
	h->stopping = true;
	queue_worker_cancel(h->taker);
	if (h->state == RESTS_TO_SEND) {
		loop_timer_stop(h->rest);
		remote_handover_give_back(h, false);
		remote_handover_take(h);
	} else if (h->state == RESTS_TO_TAKE || h->state == RESTS_TO_WRITE) {
		loop_timer_start(h->rest, 0, 0);
	}
}

struct remote_handover *remote_handover_new(const struct remote_handover_options *options)
{
	struct remote_handover *h = mem_zalloc(sizeof(*h));
	h->options = *options;
	h->lines.lines_max = LINES_A_MINUTE;
	h->refusals.lines_max = REFUSALS_A_MINUTE;
	h->begin.run = remote_handover_run_begin;
	h->hurry.run = remote_handover_run_hurry;
	h->stop.run = remote_handover_run_stop;
	h->stopped_task.run = remote_handover_run_stopped;
	pthread_mutex_init(&h->lock, NULL);
	arena_init(&h->arena, ARENA_MAX_BYTES);
	buf_init(&h->frames, FRAMES_MAX_BYTES);
	buf_init(&h->answer, ANSWER_MAX_BYTES);
	h->thread = loop_thread_new("handover");
	h->loop = loop_thread_loop(h->thread);
	struct executor *executor = loop_executor(h->loop);
	executor->post(executor, &h->begin);
	return h;
}

void remote_handover_stop(struct remote_handover *h, void (*stopped)(void *owner), void *owner)
{
	h->stopped = stopped;
	h->owner = owner;
	struct executor *executor = loop_executor(h->loop);
	executor->post(executor, &h->stop);
}
