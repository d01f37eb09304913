#include "api/admin/admin.h"

#include "api/call.h"
#include "api/json_reply.h"
#include "ingest/oops_amqp.h"
#include "inventory/inventory.h"
#include "queue/queue.h"
#include "queue/retry.h"

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

/* Fault reports that come by AMQP, in the same numbers: what is not here yet waits in the broker.
 */
static void queues_write_amqp(struct oops_amqp *amqp, struct json_writer *json)
{
	struct oops_amqp_state state;
	oops_amqp_look(amqp, &state);
	json_write_object_begin(json);
	json_put_string(json, "name", oops_amqp_name(amqp));
	json_put_u64(json, "added", state.received);
	json_put_u64(json, "done", state.acknowledged);
	json_put_u64(json, "pending", state.held);
	json_put_u64(json, "aside", state.aside);
	json_put_u64(json, "dropped", state.dropped);
	if (state.trouble.text[0])
		json_put_text(json, "trouble", state.trouble.text);
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
	if (api->amqp)
		queues_write_amqp(api->amqp, json);
	json_write_array_end(json);
	json_write_object_end(json);
	json_reply_send(&reply, http);
}

const struct http_handler queues_list = {.end = queues_list_end};

/* ---- What lies aside ------------------------------------------------------------------------- */

struct queues_asking {
	struct api_call call;
	struct store_read *read;
};

static const struct api_call_kind queues_aside_kind;

static struct queues_asking *queues_asking_of(struct api_call *call)
{
	ASSERT(call->kind == &queues_aside_kind);
	return CONTAINER_OF(call, struct queues_asking, call);
}

static void queues_aside_ended(struct api_call *call)
{
	store_read_free(queues_asking_of(call)->read);
}

static const struct api_call_kind queues_aside_kind = {.out_max_bytes = ASIDE_ANSWER_MAX_BYTES,
						       .ended = queues_aside_ended};

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
	struct json_writer *json = &aside->call.json;
	json_write_array_begin(json);
	for (size_t i = 0; i < scan->count; i++)
		queues_write_cell(&scan->cells[i], json);
	json_write_array_end(json);
	api_call_end(&aside->call);
}

static void queues_aside_read(struct store_read *read, int err)
{
	struct queues_asking *aside = queues_asking_of(api_call_from(read->owner));
	if (err)
		api_call_fail(&aside->call, http_status_of(err), "the store could not be read: %s",
			      store_read_sentence(read, err));
	else
		queues_aside_answer(aside);
}

/* What the request names: a queue of polls, or what comes by AMQP. */
struct queues_named {
	struct queue *queue; /* NULL: it is `amqp` */
	struct oops_amqp *amqp;
	struct slice name; /* lives as long as the server */
};

/* False after an answer that says that there is none. */
static bool queues_find(struct http_request *http, struct queues_named *named)
{
	const struct api *api = api_of(http);
	struct slice name = http_param(http, "queue");
	*named = (struct queues_named){.amqp = api->amqp};
	for (size_t i = 0; name.data && i < api->inventory_conf->queue_count; i++) {
		if (slice_equal(api->inventory_conf->queues[i]->name, name))
			named->queue = api->queues[i];
	}
	if (named->queue)
		named->name = queue_name(named->queue);
	else if (name.data && api->amqp && slice_equal(oops_amqp_name(api->amqp), name))
		named->name = oops_amqp_name(api->amqp);
	else
		http_reply_error(http, 404, "there is no queue " SHOWN ": name one with queue=",
				 SHOWN_OF(name));
	return named->name.data;
}

static void queues_aside_end(struct http_request *http)
{
	struct api *api = api_of(http);
	struct queues_named named;
	if (!queues_find(http, &named))
		return;
	struct queues_asking *aside = mem_zalloc(sizeof(*aside));
	api_call_init(&aside->call, http, &queues_aside_kind);
	aside->read = store_read_new(api->store, ASIDE_READ_MAX_BYTES);
	aside->read->executor = loop_executor(api->loop);
	aside->read->done = queues_aside_read;
	aside->read->owner = aside;
	aside->read->now_ms = clock_wall_ms(api->clock);
	struct store_request *request = store_read_add(aside->read, STORE_CELL_SCAN);
	queue_aside_scan(named.name, &request->cell_scan);
	int err = store_read_submit(aside->read);
	if (err)
		queues_aside_read(aside->read, err);
}

const struct http_handler queues_aside = API_CALL_HANDLER(queues_aside_end);

/* ---- Trying it again ------------------------------------------------------------------------- */

struct queues_retrying {
	struct api_call call;
	struct queues_named named;
	struct queue_retry_result result;
	struct errbuf error;
	int err;
};

static const struct api_call_kind queues_retry_kind;

static struct queues_retrying *queues_retrying_of(struct api_call *call)
{
	ASSERT(call->kind == &queues_retry_kind);
	return CONTAINER_OF(call, struct queues_retrying, call);
}

static void queues_retry_answer(struct queues_retrying *r)
{
	const struct {
		const char *key;
		uint64_t number;
	} numbers[] = {{"given", r->result.given}, {"kept", r->result.kept}};
	struct json_writer *json = &r->call.json;
	json_write_object_begin(json);
	json_put_string(json, "queue", r->named.name);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_u64(json, numbers[i].key, numbers[i].number);
	json_write_object_end(json);
	api_call_end(&r->call);
}

/* A queue has room again when its persisters have worked: 503, where a store without room is 507.
 */
static void queues_retry_fail(struct queues_retrying *r)
{
	if (r->err == ERR_EXISTS)
		api_call_fail(&r->call, 503, "%s", r->error.text);
	else
		api_call_fail(&r->call, r->err == ERR_FULL ? 503 : http_status_of(r->err),
			      "queue " SHOWN ": %s; %zu messages were given back, the others lie "
			      "aside as before",
			      SHOWN_OF(r->named.name), r->error.text, r->result.given);
}

static void queues_retry_run(struct api_call *call)
{
	struct queues_retrying *r = queues_retrying_of(call);
	if (r->named.queue)
		r->err = queue_retry(r->named.queue, job_queue(call->job), &r->result, &r->error);
	else
		r->err = oops_amqp_retry(r->named.amqp, call->job, &r->result, &r->error);
}

static void queues_retry_over(struct api_call *call)
{
	struct queues_retrying *r = queues_retrying_of(call);
	if (call->request && r->err)
		queues_retry_fail(r);
	else if (call->request)
		queues_retry_answer(r);
}

static const struct api_call_kind queues_retry_kind = {.out_max_bytes = LIST_MAX_BYTES,
						       .job_name = "retry",
						       .run = queues_retry_run,
						       .over = queues_retry_over};

static void queues_retry_end(struct http_request *http)
{
	struct queues_named named;
	if (!queues_find(http, &named))
		return;
	struct queues_retrying *r = mem_zalloc(sizeof(*r));
	api_call_init(&r->call, http, &queues_retry_kind);
	r->named = named;
	api_call_start_job(&r->call);
}

const struct http_handler queues_retry = API_CALL_HANDLER(queues_retry_end);
