/* The route by which chunks of streams come in. Frames are looked at on the loop; what is of
 * version 1 is packed by a worker. Once chunks are submitted, the submission is carried through,
 * and the call, to which everything belongs, stays until then. */
#include "api/stream/streams.h"

#include <inttypes.h>

#include "api/call.h"
#include "base/stats.h"
#include "ingest/chunks.h"
#include "ingest/chunks_door.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "stream/streams.h"

enum { STREAMS_TAKE_ANSWER_MAX_BYTES = 16 << 20, STREAMS_TAKE_ARENA_MAX_BYTES = 4 << 10 };

struct streams_take_call {
	struct api_call call;
	struct slice tenant; /* in the call's arena */
	struct chunks_batch batch;
	struct stream_submission submission;
	struct chunks_post post;
	bool at_work; /* it has gone through the door, and not left */
	struct task task;
	int err; /* of the whole body */
	struct errbuf error;
};

static const struct api_call_kind streams_take_kind;

static struct streams_take_call *streams_take_call_of(struct api_call *call)
{
	ASSERT(call->kind == &streams_take_kind);
	return CONTAINER_OF(call, struct streams_take_call, call);
}

static void streams_take_release(struct api_call *call)
{
	chunks_batch_release(&streams_take_call_of(call)->batch);
}

/* ---- What became of a chunk -------------------------------------------------------------------
 */

enum streams_take_word {
	STREAMS_TAKE_OK,
	STREAMS_TAKE_DAMAGED,
	STREAMS_TAKE_REFUSED,
	STREAMS_TAKE_OTHER,
	STREAMS_TAKE_LATER
};

/* The worst of an answer has the highest. */
static const struct streams_take_verdict {
	const char *word;
	int status;
} streams_take_verdicts[] = {
	[STREAMS_TAKE_OK] = {"ok", 200},           [STREAMS_TAKE_DAMAGED] = {"damaged", 400},
	[STREAMS_TAKE_REFUSED] = {"refused", 400}, [STREAMS_TAKE_OTHER] = {"other", 409},
	[STREAMS_TAKE_LATER] = {"later", 503},
};

static enum streams_take_word streams_take_judge_outcome(const struct stream_chunk *chunk)
{
	switch (chunk->outcome) {
	case STREAM_TAKEN:
	case STREAM_HELD:
		return STREAMS_TAKE_OK;
	case STREAM_OTHER:
		return STREAMS_TAKE_OTHER;
	case STREAM_MANY:
	case STREAM_MANY_TENANTS:
	case STREAM_MANY_HOLES:
		return STREAMS_TAKE_REFUSED;
	case STREAM_UNREADABLE:
		return STREAMS_TAKE_REFUSED;
	case STREAM_FAILED:
	case STREAM_WAITS:
	case STREAM_MANY_NEW:
	case STREAM_TOO_FAST:
	case STREAM_TAIL_FULL:
		break;
	}
	return STREAMS_TAKE_LATER;
}

static void streams_take_say_outcome(const struct streams_take_call *call,
				     const struct stream_chunk *chunk, struct buf *out)
{
	const struct stream_limits *limits = &streams_site(call->call.api->streams)->limits;
	switch (chunk->outcome) {
	case STREAM_OTHER:
		buf_printf(out,
			   "at offset %" PRIu64 " the stream has another byte; what begins anew is "
			   "another incarnation",
			   chunk->other_at);
		return;
	case STREAM_MANY:
		buf_printf(out,
			   "the tenant has %" PRIu64 " streams already, as many as it may have "
			   "(stream.streams_max)",
			   limits->streams_max);
		return;
	case STREAM_MANY_TENANTS:
		buf_append_text(out, "there are too many tenants");
		return;
	case STREAM_MANY_HOLES:
		buf_printf(out,
			   "the stream has %" PRIu64 " holes already, as many as it may have "
			   "(stream.holes_max)",
			   limits->holes_max);
		return;
	case STREAM_MANY_NEW:
		buf_printf(out,
			   "too many streams of the tenant are new: %" PRIu64 " in a minute may be "
			   "(stream.new_per_minute)",
			   limits->new_a_minute);
		return;
	case STREAM_TOO_FAST:
		buf_printf(out,
			   "the tenant sends more than %" PRIu64 " bytes a second (stream.rate)",
			   limits->rate_bytes);
		return;
	case STREAM_TAIL_FULL:
		buf_printf(out,
			   "%" PRIu64 " bytes of chunks wait to be put into blocks, as many as may "
			   "(stream.waiting_max)",
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

/* Of the chunks of an item the one that is worst. */
static const struct stream_chunk *streams_take_worst(const struct streams_take_call *call,
						     const struct chunks_item *item)
{
	const struct stream_chunk *worst = NULL;
	for (size_t i = 0; i < item->count; i++) {
		const struct stream_chunk *chunk = &call->batch.chunks[item->first + i];
		if (!worst ||
		    streams_take_judge_outcome(chunk) >= streams_take_judge_outcome(worst))
			worst = chunk;
	}
	return worst;
}

static enum streams_take_word streams_take_put_item(struct streams_take_call *call,
						    const struct chunks_item *item)
{
	struct buf *out = &call->call.out;
	const struct stream_chunk *chunk = item->sentence ? NULL : streams_take_worst(call, item);
	enum streams_take_word word = item->damaged    ? STREAMS_TAKE_DAMAGED
				      : item->sentence ? STREAMS_TAKE_REFUSED
				      : chunk          ? streams_take_judge_outcome(chunk)
						       : STREAMS_TAKE_OK;
	buf_printf(out, "%s: %" PRIu64 " bytes", streams_take_verdicts[word].word,
		   item->data_bytes);
	if (!item->damaged)
		buf_printf(out, " ending at offset %lld", (long long)item->sequence_id - 1);
	if (word != STREAMS_TAKE_OK)
		buf_append_text(out, ": ");
	if (item->sentence)
		buf_append_text(out, item->sentence);
	else if (word != STREAMS_TAKE_OK)
		streams_take_say_outcome(call, chunk, out);
	else if (chunk)
		buf_printf(out, "\nheld: %" PRIu64 " to %" PRIu64 " of %016" PRIx64,
			   chunk->held.begin, chunk->held.end, chunk->incarnation);
	buf_append_char(out, '\n');
	return word;
}

static int streams_take_status_of(const struct streams_take_call *call,
				  enum streams_take_word worst)
{
	for (size_t i = 0; i < call->batch.chunk_count && worst == STREAMS_TAKE_LATER; i++)
		if (call->batch.chunks[i].outcome == STREAM_FAILED &&
		    call->batch.chunks[i].err == ERR_FULL)
			return 507;
	return streams_take_verdicts[worst].status;
}

static void streams_take_answer(struct streams_take_call *call)
{
	enum streams_take_word worst = STREAMS_TAKE_OK;
	if (call->err) {
		stat_add(STAT_chunks_damaged, call->err == ERR_INVALID);
		api_call_fail(&call->call, call->err == ERR_LIMIT ? 413 : http_status_of(call->err),
			      "%s", call->error.text);
		return;
	}
	for (size_t i = 0; i < call->batch.item_count; i++) {
		enum streams_take_word word = streams_take_put_item(call, &call->batch.items[i]);
		worst = word > worst ? word : worst;
	}
	call->call.status = streams_take_status_of(call, worst);
	call->call.content_type = "text/plain";
	api_call_end(&call->call);
}

static void streams_take_late(struct api_call *base)
{
	api_call_fail(base, 503,
		      "after %lld ms it is not known yet whether this is stored; sending it again "
		      "is harmless",
		      (long long)base->timeout_ms);
}

static const struct api_call_kind streams_take_kind = {
	.arena_max_bytes = STREAMS_TAKE_ARENA_MAX_BYTES,
	.out_max_bytes = STREAMS_TAKE_ANSWER_MAX_BYTES,
	.release = streams_take_release,
	.late = streams_take_late};

/* ---- Reading and submitting -------------------------------------------------------------------
 */

static void streams_take_over(struct streams_take_call *call)
{
	if (call->at_work)
		chunks_door_leave(call->call.api->chunks_door, &call->post);
	call->at_work = false;
	if (api_call_settle(&call->call))
		streams_take_answer(call);
}

static void streams_take_on_submitted(struct stream_submission *submission)
{
	streams_take_over(streams_take_call_of(api_call_from(submission->owner)));
}

static void streams_take_refuse(struct streams_take_call *call, int err)
{
	stat_add(STAT_chunks_failed, (int64_t)call->batch.chunk_count);
	call->err = errbuf_set(&call->error, err,
			       "too many chunks are being stored: send these again later");
	streams_take_over(call);
}

static void streams_take_submit(struct streams_take_call *call)
{
	call->at_work = true;
	call->submission = (struct stream_submission){.chunks = call->batch.chunks,
						      .count = call->batch.chunk_count,
						      .done = streams_take_on_submitted,
						      .owner = call};
	int err = collector_submit(streams_collector(call->call.api->streams), &call->submission);
	if (err)
		streams_take_refuse(call, err);
}

static bool streams_take_is_gone(const struct chunks_post *post)
{
	const struct streams_take_call *call = CONTAINER_OF(post, struct streams_take_call, post);
	return !call->call.request;
}

static void streams_take_go(struct chunks_post *post, int err)
{
	struct streams_take_call *call = CONTAINER_OF(post, struct streams_take_call, post);
	ASSERT_IS(api_call, &call->call);
	if (!err)
		streams_take_submit(call);
	else
		streams_take_refuse(call, ERR_BUSY);
}

static void streams_take_enter(struct streams_take_call *call)
{
	if (!call->call.request || call->err || !call->batch.chunk_count) {
		streams_take_over(call);
		return;
	}
	call->post = (struct chunks_post){.go = streams_take_go, .is_gone = streams_take_is_gone};
	int err = chunks_door_enter(call->call.api->chunks_door, &call->post, call->call.body.len);
	if (!err)
		streams_take_submit(call);
	else if (err != ERR_RETRY)
		streams_take_refuse(call, err);
}

static void streams_take_on_read(struct task *task)
{
	struct streams_take_call *call = CONTAINER_OF(task, struct streams_take_call, task);
	ASSERT_IS(api_call, &call->call);
	streams_take_enter(call);
}

static void streams_take_read(struct streams_take_call *call)
{
	call->err = chunks_batch_read(&call->batch, buf_slice(&call->call.body), call->tenant,
				      &call->error);
}

/* On a worker. */
static void streams_take_run_read(struct task *task)
{
	struct streams_take_call *call = CONTAINER_OF(task, struct streams_take_call, task);
	struct executor *executor = loop_executor(call->call.api->loop);
	streams_take_read(call);
	task->run = streams_take_on_read;
	executor->post(executor, task);
}

const struct param streams_take_params[] = {
	{"tenant", PARAM_TENANT, 0,
	 .help = "Whose streams they are, of chunks that do not say it."},
	{NULL}};

static void streams_take_begin(struct http_request *request, struct slice tenant)
{
	const struct api *api = api_of(request);
	struct streams_take_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &streams_take_kind);
	api_call_set_deadline(&call->call);
	chunks_batch_init(&call->batch);
	call->tenant = arena_copy(&call->call.arena, tenant);
	ASSERT(call->tenant.data); /* a part of a head */
	call->call.held++;
	if (chunks_are_frames(buf_slice(&call->call.body))) {
		streams_take_read(call);
		streams_take_enter(call);
		return;
	}
	call->task.run = streams_take_run_read;
	if (!pool_submit(api->stream_pool, &call->task))
		return;
	call->err = errbuf_set(&call->error, ERR_BUSY,
			       "too many chunks wait to be read: send these again later");
	if (api_call_settle(&call->call))
		streams_take_answer(call);
}

static void streams_take_end(struct http_request *request)
{
	struct slice tenant;
	struct errbuf e = {""};
	if (params_read_route(request, 0, &tenant, &e))
		http_reply_error(request, 400, "%s", e.text);
	else
		streams_take_begin(request, tenant);
}

const struct http_handler streams_take = API_CALL_HANDLER(streams_take_end);
