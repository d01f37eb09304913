/* The route by which chunks of streams come in. Frames are looked at on the loop; what is of
 * version 1 is packed by a worker. */
#include "api/stream/post.h"
#include "api/stream/streams.h"

#include <inttypes.h>

#include "base/stats.h"

enum { STREAMS_TAKE_ANSWER_MAX_BYTES = 16 << 20 };

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

/* Of the chunks of an item the one that is worst. */
static const struct stream_chunk *streams_take_worst(const struct streams_post *call,
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

static enum streams_take_word streams_take_put_item(struct streams_post *call,
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
		streams_post_say_outcome(call, chunk, out);
	else if (chunk)
		buf_printf(out, "\nheld: %" PRIu64 " to %" PRIu64 " of %016" PRIx64,
			   chunk->held.begin, chunk->held.end, chunk->incarnation);
	buf_append_char(out, '\n');
	return word;
}

static int streams_take_status_of(const struct streams_post *call, enum streams_take_word worst)
{
	if (worst == STREAMS_TAKE_LATER && streams_post_is_full(call))
		return 507;
	return streams_take_verdicts[worst].status;
}

static void streams_take_answer(struct streams_post *call)
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

/* ---- The route ------------------------------------------------------------------------------- */

static const struct api_call_kind streams_take_kind = {
	.arena_max_bytes = STREAMS_POST_ARENA_MAX_BYTES,
	.out_max_bytes = STREAMS_TAKE_ANSWER_MAX_BYTES,
	.release = streams_post_release,
	.late = streams_post_late};

static int streams_take_read(struct streams_post *call)
{
	return chunks_batch_read(&call->batch, buf_slice(&call->call.body), call->tenant,
				 &call->error);
}

static const struct streams_post_door streams_take_door = {
	.read = streams_take_read, .is_quick = chunks_are_frames, .answer = streams_take_answer};

const struct param streams_take_params[] = {
	{"tenant", PARAM_TENANT, 0,
	 .help = "Whose streams they are, of chunks that do not say it."},
	{NULL}};

static void streams_take_end(struct http_request *request)
{
	struct slice tenant;
	struct errbuf e = {""};
	if (params_read_route(request, 0, &tenant, &e))
		http_reply_error(request, 400, "%s", e.text);
	else
		streams_post_begin(request, &streams_take_kind, &streams_take_door, tenant);
}

const struct http_handler streams_take = API_CALL_HANDLER(streams_take_end);
