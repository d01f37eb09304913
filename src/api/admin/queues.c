#include "api/admin/queues.h"

#include "api/json_reply.h"
#include "api/routes.h"
#include "inventory/inventory.h"
#include "queue/queue.h"
#include "queue/retry.h"
#include "wire/json.h"

enum {
	LIST_MAX_BYTES = 4 << 20,
	ASIDE_READ_MAX_BYTES = 32 << 20,
	ASIDE_ANSWER_MAX_BYTES = 256 << 20
};

/* ---- What waits ------------------------------------------------------------------------------ */

static void write_queue(const struct queue_def *def, struct queue *queue, struct json_writer *json)
{
	struct queue_stats stats;
	queue_stats(queue, &stats);
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {
		{"workers", def->workers},
		{"added", stats.added},
		{"done", stats.done},
		{"pending", stats.pending},
		{"pendingBytes", stats.pending_bytes},
		{"refused", stats.refused},
		{"redelivered", stats.redelivered},
		{"missing", stats.missing},
		{"restarts", stats.restarts},
		{"aside", stats.aside},
		{"dropped", stats.aside_dropped},
		{"parked", stats.parked},
		{"parkedBytes", stats.parked_bytes},
		{"unparked", stats.unparked},
	};
	json_write_object_begin(json);
	json_put_string(json, "name", def->name);
	json_put_text(json, "persister", oidset_kind_text(def->persister));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_write_object_end(json);
}

static void list_end(struct http_request *http)
{
	const struct api *api = api_of(http);
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, LIST_MAX_BYTES);
	json_write_object_begin(json);
	json_write_key(json, "queues");
	json_write_array_begin(json);
	for (size_t i = 0; i < api->inventory_conf->queue_count; i++)
		write_queue(api->inventory_conf->queues[i], api->queues[i], json);
	json_write_array_end(json);
	json_write_object_end(json);
	json_reply_send(&reply, http);
}

const struct http_handler queues_list = {.end = list_end};

/* ---- What lies aside ------------------------------------------------------------------------- */

/* request->owner. */
struct aside {
	struct http_request *http;
	struct store_read *read;
};

static void aside_free(struct aside *aside)
{
	store_read_free(aside->read);
	mem_free(aside);
}

static void write_message(const struct queue_aside_message *message, struct json_writer *json)
{
	json_write_object_begin(json);
	json_put_u64(json, "sequence", message->sequence);
	json_put_i64(json, "at", message->at_ms);
	json_put_string(json, "device", message->key);
	json_put_string(json, "reason", message->reason);
	json_put_u64(json, "bytes", message->whole_bytes);
	json_write_key(json, "text"); /* what is not UTF-8 in it is shown as such */
	json_write_string(json, message->bytes);
	json_write_object_end(json);
}

static void write_cell(const struct store_cell *cell, struct json_writer *json)
{
	struct queue_aside_message message;
	if (queue_aside_decode(cell, &message) == 0)
		write_message(&message, json);
}

static void aside_answer(struct aside *aside)
{
	const struct store_cell_scan *scan = &aside->read->requests->cell_scan;
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, ASIDE_ANSWER_MAX_BYTES);
	json_write_array_begin(json);
	for (size_t i = 0; i < scan->count; i++)
		write_cell(&scan->cells[i], json);
	json_write_array_end(json);
	json_reply_send(&reply, aside->http);
}

static void aside_read(struct store_read *read, int err)
{
	struct aside *aside = read->owner;
	if (err)
		http_reply_error(aside->http, err == ERR_BUSY ? 503 : 500,
				 "the store could not be read: %s", store_read_sentence(read, err));
	else
		aside_answer(aside);
	aside_free(aside);
}

/* The queue that the request names; NULL after an answer that says so. */
static struct queue *find_queue(struct http_request *http)
{
	const struct api *api = api_of(http);
	struct slice name = http_param(http, "queue");
	for (size_t i = 0; name.data && i < api->inventory_conf->queue_count; i++) {
		if (slice_equal(api->inventory_conf->queues[i]->name, name))
			return api->queues[i];
	}
	http_reply_error(http, 404,
			 "there is no queue " SHOWN ": name one with queue=", SHOWN_OF(name));
	return NULL;
}

static void aside_end(struct http_request *http)
{
	struct api *api = api_of(http);
	const struct queue *queue = find_queue(http);
	if (!queue)
		return;
	struct aside *aside = mem_zalloc(sizeof(*aside));
	aside->http = http;
	aside->read = store_read_new(api->store, ASIDE_READ_MAX_BYTES);
	aside->read->executor = loop_executor(api->loop);
	aside->read->done = aside_read;
	aside->read->owner = aside;
	aside->read->now_ms = clock_wall_ms(api->clock);
	http->owner = aside;
	struct store_request *request = store_read_add(aside->read, STORE_CELL_SCAN);
	queue_aside_scan(slice_of(queue->name), &request->cell_scan);
	int err = store_read_submit(aside->read);
	if (err)
		aside_read(aside->read, err);
}

static void aside_abort(struct http_request *http, UNUSED int err)
{
	if (http->owner)
		aside_free(http->owner);
}

const struct http_handler queues_aside = {.end = aside_end, .abort = aside_abort};

/* ---- Trying it again ------------------------------------------------------------------------- */

/* request->owner; it lives until the retry is done. */
struct retry {
	struct http_request *http; /* NULL: the client has gone */
	struct api *api;
	struct queue_retry retry;
};

static void retry_answer(const struct retry *r)
{
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {{"given", r->retry.given}, {"kept", r->retry.kept}};
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, LIST_MAX_BYTES);
	json_write_object_begin(json);
	json_put_string(json, "queue", queue_name(r->retry.queue));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_write_object_end(json);
	json_reply_send(&reply, r->http);
}

static void retry_failed(const struct retry *r, int err)
{
	bool later = err == ERR_BUSY || err == ERR_FULL || err == ERR_TIMEOUT;
	http_reply_error(r->http, later ? 503 : 500,
			 "queue " SHOWN ": %s; %zu messages were given back, the others lie aside "
			 "as before",
			 SHOWN_OF(queue_name(r->retry.queue)), r->retry.error.text, r->retry.given);
}

static void retry_done(struct queue_retry *retry, int err)
{
	struct retry *r = retry->owner;
	if (r->http && err)
		retry_failed(r, err);
	else if (r->http)
		retry_answer(r);
	r->api->queue_retries--;
	mem_free(r);
}

static void retry_end(struct http_request *http)
{
	struct api *api = api_of(http);
	struct queue *queue = find_queue(http);
	if (!queue)
		return;
	struct retry *r = mem_zalloc(sizeof(*r));
	r->http = http;
	r->api = api;
	r->retry.queue = queue;
	r->retry.executor = loop_executor(api->loop);
	r->retry.done = retry_done;
	r->retry.owner = r;
	http->owner = r;
	api->queue_retries++;
	if (queue_retry_start(&r->retry) == 0)
		return;
	api->queue_retries--;
	mem_free(r);
	http->owner = NULL;
	http_reply_error(http, 503, "what lies aside there is being tried again already");
}

static void retry_abort(struct http_request *http, UNUSED int err)
{
	struct retry *r = http->owner;
	if (!r)
		return;
	r->http = NULL;
	r->retry.cancelled = true;
}

const struct http_handler queues_retry = {.end = retry_end, .abort = retry_abort};
