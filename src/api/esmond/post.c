/* POST /v2/timeseries/RawData/...: samples of one counter, [{"ts":milliseconds,"val":number}, ...].
 *
 * They go the way of every counter's values: each becomes a poll of one value in the queue of its
 * OIDSet, under the device's key, so that its order is tested against what the poller sends, and
 * rates are made of it. 201 when all of them are durable in the queue; to send one again does no
 * harm. Rates themselves are not taken: they are made of samples alone. */
#include "api/esmond/esmond.h"
#include "api/esmond/key.h"
#include "model/poll.h"
#include "persist/persist.h"
#include "queue/queue.h"

enum { SAMPLES_MAX = 10000, MESSAGE_MAX_BYTES = 64 << 10 };

struct sample {
	int64_t ts_ms;
	struct value value;
	struct queue_put put;
};

struct v2_post_call {
	struct v2_answer answer;
	struct v2_key key;
	struct queue *queue;
	struct sample *samples;
	size_t count, waiting;
	int err; /* of the first that failed */
	struct poll_builder builder;
	struct buf message;
};

static void v2_post_release(struct v2_answer *answer)
{
	struct v2_post_call *call = CONTAINER_OF(answer, struct v2_post_call, answer);
	poll_builder_release(&call->builder);
	buf_release(&call->message);
}

/* ---- Putting --------------------------------------------------------------------------------- */

/* A queue has room again when its persisters have worked: 503, where a store without room is 507.
 */
static void v2_post_finish(struct v2_post_call *call)
{
	struct v2_answer *answer = &call->answer;
	if (call->err == ERR_FULL || call->err == ERR_BUSY) {
		api_call_fail(&answer->call, 503, "the queue has no room for these samples now");
		return;
	}
	if (call->err) {
		api_call_fail_with(&answer->call, call->err, "");
		return;
	}
	answer->call.status = 201;
	json_write_text(&answer->call.json, "");
	api_call_end(&answer->call);
}

static void v2_post_put_done(struct queue_put *put, int err)
{
	struct v2_answer *answer = v2_answer_of(api_call_from(put->owner));
	struct v2_post_call *call = CONTAINER_OF(answer, struct v2_post_call, answer);
	if (err && !call->err)
		call->err = err;
	call->waiting--;
	if (api_call_settle(&answer->call) && !call->waiting)
		v2_post_finish(call);
}

/* One sample as the message of a poll. */
static int v2_post_encode(struct v2_post_call *call, const struct sample *sample, struct errbuf *e)
{
	const struct v2_target *target = &call->key.target;
	struct poll_builder *builder = &call->builder;
	int err = poll_begin(builder, target->device, target->oidset->name, sample->ts_ms, e);
	if (!err)
		err = poll_add_column(builder, target->oid->name, e);
	if (!err)
		err = poll_add_row(builder, target->path, target->path_count, sample->ts_ms, e);
	if (err)
		return err;
	poll_set(builder, 0, 0, sample->value);
	buf_clear(&call->message);
	return poll_encode(builder, 0, true, &call->message, e);
}

static int put_sample(struct v2_post_call *call, struct sample *sample)
{
	int err = v2_post_encode(call, sample, NULL);
	if (err)
		return err;
	sample->put = (struct queue_put){
		.key = call->key.target.device,
		.bytes = buf_slice(&call->message),
		.executor = loop_executor(call->answer.call.api->loop),
		.done = v2_post_put_done,
		.owner = call,
	};
	return queue_put(call->queue, &sample->put);
}

/* What a queue takes is waited for, whatever becomes of the rest. */
static void v2_post_put_all(struct v2_post_call *call)
{
	for (size_t i = 0; i < call->count && !call->err; i++) {
		call->err = put_sample(call, &call->samples[i]);
		call->waiting += !call->err;
		call->answer.call.held += !call->err;
	}
	if (!call->waiting)
		v2_post_finish(call);
}

/* ---- The body -------------------------------------------------------------------------------- */

/* Whole numbers are those of counters, as which JSON's reader does not know them. */
static struct value whole(struct value number)
{
	double d = value_as_f64(number);
	if (number.type != VALUE_F64)
		return number;
	if (d >= 0 && d < 0x1p64 && d == (double)(uint64_t)d)
		return value_u64((uint64_t)d);
	if (d < 0 && d >= -0x1p63 && d == (double)(int64_t)d)
		return value_i64((int64_t)d);
	return number;
}

static int read_sample(const struct v2_post_call *call, const struct json *item,
		       struct sample *sample, struct errbuf *e)
{
	const struct json *ts = json_member(item, "ts"), *val = json_member(item, "val");
	if (!ts || ts->type != JSON_T_NUMBER || !val || val->type != JSON_T_NUMBER ||
	    v2_time_of(value_as_f64(ts->number), 1, &sample->ts_ms))
		return errbuf_set(e, ERR_INVALID,
				  "a sample is {\"ts\":milliseconds,\"val\":number}");
	sample->value = whole(val->number);
	return persist_check_time(call->answer.call.api->persist, sample->ts_ms, e);
}

static int v2_post_read_samples(struct v2_post_call *call, const struct json *list,
				struct errbuf *e)
{
	size_t bytes = (list->count + 1) * sizeof(*call->samples);
	if (list->type != JSON_T_ARRAY || list->count > SAMPLES_MAX)
		return errbuf_set(e, ERR_INVALID, "the body is no array of at most %d samples",
				  SAMPLES_MAX);
	call->samples = arena_alloc(&call->answer.call.arena, bytes);
	if (!call->samples)
		return errbuf_set(e, ERR_LIMIT, "the body is too large");
	for (const struct json *item = list->first; item; item = item->next) {
		int err = read_sample(call, item, &call->samples[call->count++], e);
		if (err)
			return errbuf_prefix(e, err, "sample %zu", call->count);
	}
	/* The names are the same in each: the first says whether they can be sent. */
	return call->count ? v2_post_encode(call, &call->samples[0], e) : 0;
}

static int v2_post_read_body(struct v2_post_call *call, struct errbuf *e)
{
	struct json *body;
	int err = v2_params_check(call->answer.call.request, NULL, e);
	if (!err)
		err = v2_read_json(&call->answer, &body, e);
	return err ? err : v2_post_read_samples(call, body, e);
}

/* ---- Where it goes --------------------------------------------------------------------------- */

static int find_queue(struct v2_post_call *call, struct errbuf *e)
{
	const struct api *api = call->answer.call.api;
	const struct oidset *oidset = call->key.target.oidset;
	if (api->queues)
		call->queue = api->queues[oidset->queue->place];
	return call->queue ? 0
			   : errbuf_set(e, ERR_BUSY, "the queue of " SHOWN " is not open",
					SHOWN_OF(oidset->name));
}

static int v2_post_read_key(struct v2_post_call *call, struct errbuf *e)
{
	struct v2_key *key = &call->key;
	int err = v2_key_of_path(&call->answer, key, e);
	if (err)
		return err;
	if (key->type != TYPE_RAW_DATA)
		return errbuf_set(e, ERR_INVALID,
				  "only RawData is taken: rates are made of samples");
	if (key->freq_ms != key->target.oidset->frequency_ms)
		return errbuf_set(e, ERR_INVALID, "%lld is not the base frequency of " SHOWN,
				  (long long)key->freq_ms, SHOWN_OF(key->target.oidset->name));
	return find_queue(call, e);
}

static void post_end(struct http_request *request)
{
	struct errbuf e = {""};
	if (v2_part_count(request) < V2_KEY_PATH_PARTS_MIN) {
		v2_no_such_path(request);
		return;
	}
	struct v2_post_call *call = mem_zalloc(sizeof(*call));
	v2_answer_init(&call->answer, request, NULL, v2_post_release);
	poll_builder_init(&call->builder);
	buf_init(&call->message, MESSAGE_MAX_BYTES);
	int err = v2_post_read_key(call, &e);
	if (!err)
		err = v2_post_read_body(call, &e);
	if (err)
		api_call_fail_with(&call->answer.call, err, e.text);
	else
		v2_post_put_all(call);
}

const struct http_handler v2_timeseries_post = V2_HANDLER(post_end);
