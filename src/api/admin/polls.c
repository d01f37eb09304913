#include "api/admin/admin.h"

#include "api/call.h"
#include "base/cursor.h"
#include "base/stats.h"
#include "inventory/inventory.h"
#include "model/poll.h"
#include "persist/persist.h"
#include "queue/queue.h"
#include "wire/esmond_message.h"

enum {
	MESSAGES_MAX = 10000, /* of one request */
	ENCODED_MAX_BYTES = 128 << 20,
	JSON_ARENA_MAX_BYTES = 256 << 20,
};

/* Freed when the last put is done, whatever has become of the request. Its body has the frames, as
 * sent or made of JSON. */
struct polls {
	struct api_call call;
	const struct inventory *inventory;
	struct item {
		struct queue_put put;
		struct queue *queue;
	} * items;
	size_t count, waiting;
	int err; /* of the first put that failed */
};

static const struct api_call_kind polls_kind;

static struct polls *polls_of(struct api_call *call)
{
	ASSERT(call->kind == &polls_kind);
	return CONTAINER_OF(call, struct polls, call);
}

static void polls_release(struct api_call *call)
{
	struct polls *p = polls_of(call);
	inventory_release(p->inventory);
	mem_free(p->items);
}

static const struct api_call_kind polls_kind = {.arena_max_bytes = JSON_ARENA_MAX_BYTES,
						.release = polls_release};

/* A queue has room again when its persisters have worked: 503, where a store without room is 507. A
 * message that no queue takes is 413, as a body over the route's limits is. */
static void polls_answer(struct polls *p)
{
	struct api_call *call = &p->call;
	stat_add(p->err ? STAT_polls_refused : STAT_polls_taken, (int64_t)p->count);
	if (!p->err) {
		call->status = 204;
		call->content_type = NULL;
		api_call_end(call);
	} else if (p->err == ERR_LIMIT) {
		api_call_fail(call, 413, "a message is too long for its queue");
	} else {
		http_reply_header(call->request, "Retry-After", "5");
		api_call_fail(call, 503, "%s",
			      p->err == ERR_FULL
				      ? "a queue has no room for these polls, send them later"
				      : err_text(p->err));
	}
}

static void polls_put_done(struct queue_put *put, int err)
{
	struct polls *p = polls_of(api_call_from(put->owner));
	ASSERT(p->waiting > 0);
	if (err && !p->err)
		p->err = err;
	if (--p->waiting == 0 && api_call_settle(&p->call))
		polls_answer(p);
}

/* ---- What was sent --------------------------------------------------------------------------- */

static int refuse_count(struct errbuf *e)
{
	return errbuf_set(e, ERR_LIMIT,
			  "there are more than %d messages, which is what one request may have; "
			  "none of them was taken: send them in several requests",
			  MESSAGES_MAX);
}

/* Refuses here what the workers would refuse later, when no client hears of it. */
static int polls_check_time(const struct polls *p, const struct poll *poll, struct errbuf *e)
{
	int64_t latest_ms;
	int err = poll_latest_ms(poll, &latest_ms, e);
	return err ? err : persist_check_time(p->call.api->persist, latest_ms, e);
}

static int add_item(struct polls *p, struct slice message, struct errbuf *e)
{
	struct poll poll;
	if (p->count == MESSAGES_MAX)
		return refuse_count(e);
	int err = poll_open(message, &poll, e);
	if (!err)
		err = polls_check_time(p, &poll, e);
	if (err)
		return errbuf_prefix(e, ERR_INVALID, "message %zu", p->count + 1);
	const struct oidset *set = inventory_conf_oidset(p->call.api->inventory_conf, poll.oidset);
	if (!set)
		return errbuf_set(e, ERR_INVALID, "message %zu: there is no OIDSet " SHOWN,
				  p->count + 1, SHOWN_OF(poll.oidset));
	p->items = mem_resize_array(p->items, p->count + 1, sizeof(*p->items));
	p->items[p->count++] = (struct item){
		.put = {.key = poll.device, .bytes = message, .done = polls_put_done, .owner = p},
		.queue = p->call.api->queues[set->queue->place],
	};
	return 0;
}

static int read_frames(struct polls *p, struct errbuf *e)
{
	struct cursor c = cursor_of(p->call.body.data, p->call.body.len);
	int err = 0;
	while (cursor_left(&c) && !err) {
		uint32_t len = cursor_u32(&c);
		struct slice message = {(const char *)cursor_take(&c, len), len};
		if (c.bad)
			return errbuf_set(e, ERR_INVALID,
					  "message %zu is cut off: its length does not lie within "
					  "the body",
					  p->count + 1);
		err = add_item(p, message, e);
	}
	return err;
}

/* Esmond's pollers call devices as people do; ours say what they are stored under. */
static void call_as_stored(const struct polls *p, struct poll_builder *builder)
{
	struct slice name = buf_slice(&builder->device);
	const struct device *device = inventory_device(p->inventory, name);
	if (!device || !device->stored_as.len)
		return;
	buf_clear(&builder->device);
	buf_append(&builder->device, device->stored_as.data, device->stored_as.len);
}

/* Appends the poll that one of esmond's messages is, as a frame. */
static int convert_one(struct polls *p, struct slice json, struct poll_builder *builder,
		       struct buf *frames, struct errbuf *e)
{
	uint8_t head[4];
	size_t at = frames->len;
	int err = esmond_message_read(json, &p->call.arena, builder, e);
	if (!err)
		call_as_stored(p, builder);
	if (!err)
		err = buf_append(frames, (const char *)head, sizeof(head));
	if (!err)
		err = poll_encode(builder, 0, true, frames, e);
	if (err)
		return err;
	uint32_t len = (uint32_t)(frames->len - at - sizeof(head));
	memcpy(frames->data + at, &len, sizeof(len)); /* least byte first on all that we run on */
	return 0;
}

static int convert_each(struct polls *p, struct json_reader *reader, struct poll_builder *builder,
			struct buf *frames, struct errbuf *e)
{
	enum json_event event = json_next(reader);
	bool array = event == JSON_ARRAY_BEGIN;
	int err = 0;
	if (array)
		event = json_next(reader);
	for (size_t number = 1; !err && event == JSON_OBJECT_BEGIN; number++) {
		size_t offset = reader->offset;
		if (number > MESSAGES_MAX)
			return refuse_count(e);
		if (!json_skip(reader, event))
			break;
		err = convert_one(p, json_text_from(reader, offset), builder, frames, e);
		if (err)
			return e->text[0] ? errbuf_prefix(e, err, "message %zu", number) : err;
		event = json_next(reader);
	}
	if (array && event == JSON_ARRAY_END)
		event = json_next(reader);
	if (event == JSON_BAD)
		return json_error(reader, e);
	if (event != JSON_END)
		return errbuf_set(e, ERR_INVALID,
				  "a message is a JSON object, and several of them "
				  "are an array");
	return 0;
}

static int read_json(struct polls *p, struct errbuf *e)
{
	struct json_reader reader;
	struct poll_builder builder;
	struct buf frames;
	buf_init(&frames, ENCODED_MAX_BYTES);
	poll_builder_init(&builder);
	json_reader_init(&reader, buf_slice(&p->call.body), &p->call.arena);
	int err = convert_each(p, &reader, &builder, &frames, e);
	poll_builder_release(&builder);
	buf_release(&p->call.body);
	p->call.body = frames;
	return err ? err : read_frames(p, e);
}

static bool is_json(const struct http_request *http)
{
	struct slice type = http_header(http, "Content-Type");
	struct slice json = SLICE("application/json");
	return type.len >= json.len && memcmp(type.data, json.data, json.len) == 0;
}

/* ---- Putting --------------------------------------------------------------------------------- */

/* What a queue takes is waited for, whatever becomes of the rest. */
static void polls_put_all(struct polls *p)
{
	p->waiting = 1; /* this loop */
	p->call.held = 1;
	for (size_t i = 0; i < p->count && !p->err; i++) {
		struct item *item = &p->items[i];
		item->put.executor = loop_executor(p->call.api->loop);
		int err = queue_put(item->queue, &item->put);
		if (err)
			p->err = err;
		else
			p->waiting++;
	}
	if (--p->waiting == 0 && api_call_settle(&p->call))
		polls_answer(p);
}

static void polls_end(struct http_request *request)
{
	struct errbuf e = {""};
	struct polls *p = mem_zalloc(sizeof(*p));
	api_call_init(&p->call, request, &polls_kind);
	p->inventory = inventory_keeper_take(p->call.api->inventory);
	int err = is_json(request) ? read_json(p, &e) : read_frames(p, &e);
	if (!err) {
		polls_put_all(p);
		return;
	}
	stat_add(STAT_polls_refused, 1);
	if (!e.text[0])
		errbuf_set(
			&e, err,
			"these polls take more memory than one request may have (%d MB); none of "
			"them was taken: send them in several requests",
			ENCODED_MAX_BYTES >> 20);
	api_call_fail(&p->call, err == ERR_LIMIT ? 413 : 400, "%s", e.text);
}

const struct http_handler polls_handler = API_CALL_HANDLER(polls_end);
