#include "api/admin/queues.h"

#include "api/job_call.h"
#include "api/json_reply.h"
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

static void queues_write(const struct queue_def *def, struct queue *queue, struct json_writer *json)
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

static void queues_list_end(struct http_request *http)
{
	const struct api *api = api_of(http);
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, LIST_MAX_BYTES);
	json_write_object_begin(json);
	json_write_key(json, "queues");
	json_write_array_begin(json);
	for (size_t i = 0; i < api->inventory_conf->queue_count; i++)
		queues_write(api->inventory_conf->queues[i], api->queues[i], json);
	json_write_array_end(json);
	json_write_object_end(json);
	json_reply_send(&reply, http);
}

const struct http_handler queues_list = {.end = queues_list_end};

/* ---- What lies aside ------------------------------------------------------------------------- */

/* request->owner. */
struct queues_asking {
	struct http_request *http;
	struct store_read *read;
};

static void queues_aside_free(struct queues_asking *aside)
{
	store_read_free(aside->read);
	mem_free(aside);
}

static void queues_write_message(const struct queue_aside_message *message,
				 struct json_writer *json)
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

static void queues_write_cell(const struct store_cell *cell, struct json_writer *json)
{
	struct queue_aside_message message;
	if (queue_aside_decode(cell, &message) == 0)
		queues_write_message(&message, json);
}

static void queues_aside_answer(struct queues_asking *aside)
{
	const struct store_cell_scan *scan = &aside->read->requests->cell_scan;
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, ASIDE_ANSWER_MAX_BYTES);
	json_write_array_begin(json);
	for (size_t i = 0; i < scan->count; i++)
		queues_write_cell(&scan->cells[i], json);
	json_write_array_end(json);
	json_reply_send(&reply, aside->http);
}

static void queues_aside_read(struct store_read *read, int err)
{
	struct queues_asking *aside = read->owner;
	if (err)
		http_reply_error(aside->http, err == ERR_BUSY ? 503 : 500,
				 "the store could not be read: %s", store_read_sentence(read, err));
	else
		queues_aside_answer(aside);
	queues_aside_free(aside);
}

/* The queue that the request names; NULL after an answer that says so. */
static struct queue *queues_find(struct http_request *http)
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

static void queues_aside_end(struct http_request *http)
{
	struct api *api = api_of(http);
	const struct queue *queue = queues_find(http);
	if (!queue)
		return;
	struct queues_asking *aside = mem_zalloc(sizeof(*aside));
	aside->http = http;
	aside->read = store_read_new(api->store, ASIDE_READ_MAX_BYTES);
	aside->read->executor = loop_executor(api->loop);
	aside->read->done = queues_aside_read;
	aside->read->owner = aside;
	aside->read->now_ms = clock_wall_ms(api->clock);
	http->owner = aside;
	struct store_request *request = store_read_add(aside->read, STORE_CELL_SCAN);
	queue_aside_scan(slice_of(queue->name), &request->cell_scan);
	int err = store_read_submit(aside->read);
	if (err)
		queues_aside_read(aside->read, err);
}

static void queues_aside_abort(struct http_request *http, UNUSED int err)
{
	if (http->owner)
		queues_aside_free(http->owner);
}

const struct http_handler queues_aside = {.end = queues_aside_end, .abort = queues_aside_abort};

/* ---- Trying it again ------------------------------------------------------------------------- */

struct queues_retrying {
	struct job_call call; /* first */
	struct queue *queue;
	struct queue_retry_result result;
	struct errbuf error;
	int err;
};

static void queues_retry_answer(const struct queues_retrying *r)
{
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {{"given", r->result.given}, {"kept", r->result.kept}};
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, LIST_MAX_BYTES);
	json_write_object_begin(json);
	json_put_string(json, "queue", queue_name(r->queue));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_write_object_end(json);
	json_reply_send(&reply, r->call.request);
}

static void queues_retry_fail(const struct queues_retrying *r)
{
	bool later = r->err == ERR_BUSY || r->err == ERR_FULL || r->err == ERR_TIMEOUT;
	if (r->err == ERR_EXISTS)
		http_reply_error(r->call.request, 503, "%s", r->error.text);
	else
		http_reply_error(r->call.request, later ? 503 : 500,
				 "queue " SHOWN ": %s; %zu messages were given back, the others "
				 "lie aside as before",
				 SHOWN_OF(queue_name(r->queue)), r->error.text, r->result.given);
}

static void queues_retry_run(struct job_call *call)
{
	struct queues_retrying *r = (struct queues_retrying *)call;
	r->err = queue_retry(r->queue, job_queue(call->job), &r->result, &r->error);
}

static void queues_retry_over(struct job_call *call)
{
	struct queues_retrying *r = (struct queues_retrying *)call;
	if (call->request && r->err)
		queues_retry_fail(r);
	else if (call->request)
		queues_retry_answer(r);
	mem_free(r);
}

static void queues_retry_end(struct http_request *http)
{
	struct queue *queue = queues_find(http);
	if (!queue)
		return;
	struct queues_retrying *r = mem_zalloc(sizeof(*r));
	r->call.run = queues_retry_run;
	r->call.over = queues_retry_over;
	r->queue = queue;
	job_call_start(&r->call, "retry", http);
}

const struct http_handler queues_retry = {.end = queues_retry_end, .abort = job_call_abort};
