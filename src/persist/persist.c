#include "persist/persist.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "persist/catch_up.h"
#include "persist/private.h"
#include "queue/queue.h"
#include "wire/timetext.h"

enum {
	LOOK_INTERVAL_MS = 1000,
	STOOD_MS = 2 * LOOK_INTERVAL_MS, /* without a look: the process itself stood still */
	/* What comes before the newest is refused, so a poll of tomorrow would be the last until
	 * then. */
	AHEAD_MAX_MS = 600000,
};

const struct persister_ops *const persisters[OIDSET_KINDS] = {
	[OIDSET_COUNTERS] = &persister_of_counters, [OIDSET_INTERFACES] = &persister_of_rows,
	[OIDSET_SAPS] = &persister_of_rows,         [OIDSET_LSPS] = &persister_of_rows,
	[OIDSET_OUTLETS] = &persister_of_rows,
};

/* The workers of counters share what may be remembered; the others remember none. */
static size_t persist_counters_of_worker(const struct persist_options *o)
{
	size_t workers = 0;
	for (size_t i = 0; i < o->conf->queue_count; i++)
		if (o->conf->queues[i]->persister == OIDSET_COUNTERS)
			workers += o->conf->queues[i]->workers;
	return workers ? o->counters_max / workers : o->counters_max;
}

static void persist_fill_post(struct post *post)
{
	struct persist *p = post->persist;
	const struct persist_options *o = &p->options;
	const struct worker_options options = {
		.base =
			{
				.store = o->store,
				.catalog = o->catalog,
				.clock = o->clock,
				.retention_ms = &p->retention_ms,
				.future_max_ms = o->future_max_ms,
				.derive_every_ms = o->derive_every_ms,
				.counters_max = persist_counters_of_worker(o),
				.claims = &p->claims,
			},
		.conf = o->conf,
		.def = post->def,
		.queue = post->queue,
		.index = post->index,
	};
	post->worker = worker_new(&options);
	post->began_ms = worker_moved_ms(post->worker);
}

/* What the old one holds is never freed: if it moves again it may still look at it. */
static void persist_replace_worker(struct post *post)
{
	log_error("worker %u of queue " SHOWN " has not moved for %lld s: another takes its place",
		  post->index, SHOWN_OF(post->def->name),
		  (long long)(post->persist->options.hang_timeout_ms / 1000));
	stat_add(STAT_persist_replaced, 1);
	worker_abandon(post->worker);
	claims_drop(&post->persist->claims, post->worker);
	persist_fill_post(post);
}

static void persist_look(void *owner)
{
	struct persist *p = owner;
	int64_t now_ms = clock_mono_ms(p->options.clock);
	/* A process that was frozen hangs in no worker. */
	if (now_ms - p->looked_ms > STOOD_MS)
		p->awake_ms = now_ms;
	p->looked_ms = now_ms;
	for (size_t i = 0; i < p->post_count; i++) {
		struct post *post = &p->posts[i];
		int64_t moved_ms = worker_moved_ms(post->worker);
		if (moved_ms > post->began_ms)
			post->moved_ms = moved_ms;
		if (now_ms - larger_of(moved_ms, p->awake_ms) > p->options.hang_timeout_ms)
			persist_replace_worker(post);
	}
	for (size_t i = 0; i < p->options.conf->queue_count; i++)
		queue_tick(p->options.queues[i]);
}

void persist_set_retention(struct persist *persist, int64_t retention_ms)
{
	atomic_store(&persist->retention_ms, retention_ms);
}

struct persist *persist_new(const struct persist_options *options)
{
	struct persist *p = mem_zalloc(sizeof(*p));
	p->options = *options;
	if (p->options.future_max_ms > AHEAD_MAX_MS)
		p->options.future_max_ms = AHEAD_MAX_MS;
	atomic_init(&p->retention_ms, options->retention_ms);
	claims_init(&p->claims);
	for (size_t q = 0; q < options->conf->queue_count; q++)
		p->post_count += options->conf->queues[q]->workers;
	p->posts = mem_zalloc(p->post_count * sizeof(*p->posts));
	struct post *post = p->posts;
	for (size_t q = 0; q < options->conf->queue_count; q++) {
		const struct queue_def *def = options->conf->queues[q];
		for (unsigned i = 0; i < def->workers; i++, post++) {
			*post = (struct post){p, NULL, {NULL}, def, options->queues[q], i};
			persist_fill_post(post);
			post->moved_ms = post->began_ms;
		}
	}
	p->catch_up = catch_up_new(p);
	p->looked_ms = clock_mono_ms(options->clock);
	p->looks = loop_timer_new(options->loop, persist_look, p);
	loop_timer_start(p->looks, LOOK_INTERVAL_MS, LOOK_INTERVAL_MS);
	return p;
}

int64_t persist_moved_ms(const struct persist *persist)
{
	int64_t moved_ms = INT64_MAX;
	for (size_t i = 0; i < persist->post_count; i++)
		moved_ms = smaller_of(moved_ms, persist->posts[i].moved_ms);
	return moved_ms;
}

static void persist_post_stopped(struct task *task)
{
	struct post *post = CONTAINER_OF(task, struct post, stopped);
	struct persist *p = post->persist;
	worker_free(post->worker);
	if (++p->stopped_count == p->post_count)
		p->stopped(p->owner);
}

static void persist_stop_workers(void *owner)
{
	struct persist *p = owner;
	for (size_t i = 0; i < p->post_count; i++) {
		p->posts[i].stopped.run = persist_post_stopped;
		worker_stop(p->posts[i].worker, loop_executor(p->options.loop),
			    &p->posts[i].stopped);
	}
	if (!p->post_count)
		p->stopped(p->owner);
}

void persist_stop(struct persist *persist, void (*stopped)(void *owner), void *owner)
{
	persist->stopped = stopped;
	persist->owner = owner;
	loop_timer_close(persist->looks);
	catch_up_stop(persist->catch_up, persist_stop_workers, persist);
}

void persist_free(struct persist *persist)
{
	if (!persist)
		return;
	catch_up_free(persist->catch_up);
	claims_release(&persist->claims);
	mem_free(persist->posts);
	mem_free(persist);
}

int persist_check_time(const struct persist *persist, int64_t ts_ms, struct errbuf *e)
{
	const struct persist_options *o = &persist->options;
	char time[TIME_PRINT_MAX_BYTES];
	if (persist_is_time(ts_ms, clock_wall_ms(o->clock), o->future_max_ms))
		return 0;
	int len = (int)time_print(time, ts_ms);
	if (ts_ms <= 0)
		return errbuf_set(e, ERR_INVALID, "the time %.*s is not after 1970 began", len,
				  time);
	return errbuf_set(e, ERR_INVALID,
			  "the time %.*s is more than %lld s ahead of this server's clock: it "
			  "would keep out all that comes until then; set the sender's clock",
			  len, time, (long long)(o->future_max_ms / 1000));
}
