#include "api/stream/post.h"

#include <inttypes.h>

#include "auth/auth.h"
#include "base/stats.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "stream/streams.h"

void streams_post_release(struct api_call *call)
{
	chunks_batch_release(&CONTAINER_OF(call, struct streams_post, call)->batch);
}

static struct streams_post *streams_post_of(struct api_call *call)
{
	ASSERT(call->kind->release == streams_post_release);
	return CONTAINER_OF(call, struct streams_post, call);
}

void streams_post_late(struct api_call *base)
{
	api_call_fail(base, 503,
		      "after %lld ms it is not known yet whether this is stored; sending it again "
		      "is harmless",
		      (long long)base->timeout_ms);
}

/* ---- What became of a chunk -------------------------------------------------------------------
 */

/* The option stands first: an agent may show the beginning of the sentence only. */

void streams_post_say_outcome(const struct streams_post *post, const struct stream_chunk *chunk,
			      struct buf *out)
{
	const struct stream_limits *limits = &streams_site(post->call.api->streams)->limits;
	switch (chunk->outcome) {
	case STREAM_OTHER:
		buf_printf(out,
			   "the stream has another byte at offset %" PRIu64
			   "; a stream that begins "
			   "anew is another incarnation",
			   chunk->other_at);
		return;
	case STREAM_MANY:
		buf_printf(out,
			   "stream.streams_max: the tenant has %" PRIu64
			   " streams, as many as it may have",
			   limits->streams_max);
		return;
	case STREAM_MANY_TENANTS:
		buf_append_text(out, "there are too many tenants");
		return;
	case STREAM_MANY_HOLES:
		buf_printf(out,
			   "stream.holes_max: the stream has %" PRIu64
			   " holes, as many as it may have",
			   limits->holes_max);
		return;
	case STREAM_MANY_NEW:
		buf_printf(out,
			   "stream.new_per_minute: too many streams of the tenant are new, more "
			   "than %" PRIu64 " in a minute",
			   limits->new_a_minute);
		return;
	case STREAM_TOO_FAST:
		buf_printf(out,
			   "stream.rate: the tenant sends more than %" PRIu64 " bytes a second",
			   limits->rate_bytes);
		return;
	case STREAM_TAIL_FULL:
		buf_printf(out,
			   "stream.waiting_max: %" PRIu64
			   " bytes of chunks wait to be put into blocks, as many as may",
			   limits->tail_max_bytes);
		return;
	case STREAM_UNREADABLE:
		buf_append_text(out, "it does not unpack to what it says of itself");
		return;
	case STREAM_FAILED:
		buf_printf(out, "it may not be stored: %s", err_text(chunk->err));
		return;
	case STREAM_WAITS:
	case STREAM_TAKEN:
	case STREAM_HELD:
		break;
	}
}

bool streams_post_is_full(const struct streams_post *post)
{
	for (size_t i = 0; i < post->batch.chunk_count; i++)
		if (post->batch.chunks[i].outcome == STREAM_FAILED &&
		    post->batch.chunks[i].err == ERR_FULL)
			return true;
	return false;
}

/* ---- Reading and submitting -------------------------------------------------------------------
 */

static void streams_post_over(struct streams_post *call)
{
	if (call->at_work)
		chunks_door_leave(call->call.api->chunks_door, &call->post);
	call->at_work = false;
	if (call->door->count)
		call->door->count(call);
	if (api_call_settle(&call->call))
		call->door->answer(call);
}

static void streams_post_on_submitted(struct stream_submission *submission)
{
	streams_post_over(streams_post_of(api_call_from(submission->owner)));
}

static void streams_post_refuse(struct streams_post *call, int err)
{
	stat_add(STAT_chunks_failed, (int64_t)call->batch.chunk_count);
	call->err = errbuf_set(&call->error, err,
			       "too many chunks are being stored: send these again later");
	streams_post_over(call);
}

static void streams_post_submit(struct streams_post *call)
{
	call->at_work = true;
	call->submission = (struct stream_submission){.chunks = call->batch.chunks,
						      .count = call->batch.chunk_count,
						      .done = streams_post_on_submitted,
						      .owner = call};
	int err = collector_submit(streams_collector(call->call.api->streams), &call->submission);
	if (err)
		streams_post_refuse(call, err);
}

static bool streams_post_is_gone(const struct chunks_post *post)
{
	const struct streams_post *call = CONTAINER_OF(post, struct streams_post, post);
	return !call->call.request;
}

static void streams_post_go(struct chunks_post *post, int err)
{
	struct streams_post *call = CONTAINER_OF(post, struct streams_post, post);
	ASSERT_IS(api_call, &call->call);
	if (!err)
		streams_post_submit(call);
	else
		streams_post_refuse(call, ERR_BUSY);
}

/* A chunk may name a tenant of its own, which the guard has not seen. */
static void streams_post_check_tenants(struct streams_post *call)
{
	for (size_t i = 0; i < call->batch.chunk_count && !call->err; i++)
		call->err = auth_check_tenant(call->call.api->auth, call->call.request,
					      call->batch.chunks[i].id.tenant, &call->error);
}

static void streams_post_enter(struct streams_post *call)
{
	if (call->call.request && !call->err)
		streams_post_check_tenants(call);
	if (!call->call.request || call->err || !call->batch.chunk_count) {
		streams_post_over(call);
		return;
	}
	call->post = (struct chunks_post){.go = streams_post_go, .is_gone = streams_post_is_gone};
	int err = chunks_door_enter(call->call.api->chunks_door, &call->post, call->call.body.len);
	if (!err)
		streams_post_submit(call);
	else if (err != ERR_RETRY)
		streams_post_refuse(call, err);
}

static void streams_post_on_read(struct task *task)
{
	struct streams_post *call = CONTAINER_OF(task, struct streams_post, task);
	ASSERT_IS(api_call, &call->call);
	streams_post_enter(call);
}

static void streams_post_read(struct streams_post *call)
{
	call->err = call->door->read(call);
}

/* On a worker. */
static void streams_post_run_read(struct task *task)
{
	struct streams_post *call = CONTAINER_OF(task, struct streams_post, task);
	struct executor *executor = loop_executor(call->call.api->loop);
	streams_post_read(call);
	task->run = streams_post_on_read;
	executor->post(executor, task);
}

void streams_post_begin(struct http_request *request, const struct api_call_kind *kind,
			const struct streams_post_door *door, struct slice tenant)
{
	const struct api *api = api_of(request);
	struct streams_post *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, kind);
	api_call_set_deadline(&call->call);
	chunks_batch_init(&call->batch);
	call->door = door;
	call->tenant = arena_copy(&call->call.arena, tenant);
	ASSERT(call->tenant.data); /* a part of a head */
	call->call.held++;
	if (door->is_quick && door->is_quick(buf_slice(&call->call.body))) {
		streams_post_read(call);
		streams_post_enter(call);
		return;
	}
	call->task.run = streams_post_run_read;
	if (!pool_submit(api->stream_pool, &call->task))
		return;
	call->err = errbuf_set(&call->error, ERR_BUSY,
			       "too many chunks wait to be read: send these again later");
	if (api_call_settle(&call->call))
		door->answer(call);
}
