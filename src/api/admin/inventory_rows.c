/* GET /api/interfaces: rows of one device, or of all of them, one after the other. */
#include "api/admin/admin.h"
#include "api/admin/inventory_json.h"
#include "api/call.h"
#include "api/params.h"

enum {
	ROWS_MAX_BYTES = 64 << 20, /* of one device */
	ANSWER_MAX_BYTES = 128 << 20,
	ROWS_PRESET = 10000,
	ROWS_MAX = 1000000,
};

struct rows_call {
	struct api_call call;
	const struct inventory *inventory;
	size_t at; /* which device */
	bool one;  /* only `device` */
	struct slice device;
	int kind; /* in rows_kinds */
	size_t limit, count;
	struct inventory_rows_read read;
};

static const struct api_call_kind rows_kind;

static struct rows_call *rows_call_of(struct api_call *call)
{
	ASSERT(call->kind == &rows_kind);
	return CONTAINER_OF(call, struct rows_call, call);
}

static void rows_ended(struct api_call *base)
{
	inventory_rows_read_cancel(&rows_call_of(base)->read);
}

static void rows_release(struct api_call *base)
{
	struct rows_call *call = rows_call_of(base);
	inventory_release(call->inventory);
}

static const struct api_call_kind rows_kind = {.arena_max_bytes = ROWS_MAX_BYTES,
					       .out_max_bytes = ANSWER_MAX_BYTES,
					       .ended = rows_ended,
					       .release = rows_release};

static void rows_finish(struct rows_call *call, bool cut)
{
	json_write_array_end(&call->call.json);
	call->call.cut = cut ? "limit" : NULL;
	if (call->call.out.failed)
		api_call_fail(&call->call, 422, "the answer is too long; ask for one device");
	else
		api_call_end(&call->call);
}

static void rows_next_device(struct rows_call *call);

static void rows_done(struct inventory_rows_read *read, int err)
{
	struct rows_call *call = rows_call_of(api_call_from(read->owner));
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", read->error.text);
		return;
	}
	for (size_t i = 0; i < read->count; i++)
		interface_json(call->device, &read->rows[i], &call->call.json);
	call->count += read->count;
	ASSERT(call->count <= call->limit);
	if (read->more)
		rows_finish(call, true);
	else
		rows_next_device(call);
}

static bool rows_take_device(struct rows_call *call)
{
	if (call->one) {
		call->read.device = inventory_stored_as(call->inventory, call->device);
		return call->at++ == 0;
	}
	if (call->at == call->inventory->device_count)
		return false;
	const struct device *device = call->inventory->devices[call->at++];
	call->device = device->name;
	call->read.device = device_stored_as(device);
	return true;
}

static void rows_next_device(struct rows_call *call)
{
	bool left = rows_take_device(call);
	if (!left || call->count == call->limit) {
		rows_finish(call, left);
		return;
	}
	arena_reset(&call->call.arena);
	call->read.limit = call->limit - call->count;
	if (inventory_rows_read_start(&call->read))
		api_call_fail(&call->call, 503, "the store is busy; try again later");
}

static const char *const rows_kinds[] = {"interfaces", "saps", "lsps", "outlets", NULL};

const struct param interfaces_params[] = {
	{"device", PARAM_TEXT, offsetof(struct rows_call, device), .help = "Only of this device."},
	{"kind", PARAM_WORD, offsetof(struct rows_call, kind), .words = rows_kinds,
	 .help = "What is listed; interfaces where it is left out."},
	{"begin", PARAM_TIME, offsetof(struct rows_call, read.begin_ms),
	 .help = "What there was at some time from then on."},
	{"end", PARAM_TIME, offsetof(struct rows_call, read.end_ms),
	 .help = "What there was at some time up to then."},
	{"limit", PARAM_NUMBER, offsetof(struct rows_call, limit), 1, ROWS_MAX,
	 .help = "At most so many rows; 10000 where it is left out."},
	{NULL}};

/* Without a time what there is now: the rows that are open. */
static int rows_read_params(struct rows_call *call, struct errbuf *e)
{
	call->limit = ROWS_PRESET;
	call->read.begin_ms = INVENTORY_FOREVER_MS;
	call->read.end_ms = INVENTORY_FOREVER_MS;
	int err = params_read_route(call->call.request, clock_wall_ms(call->call.api->clock), call,
				    e);
	call->read.kind = (enum oidset_kind)(OIDSET_INTERFACES + call->kind);
	call->one = call->device.data != NULL;
	if (!err && call->one && !inventory_device(call->inventory, call->device) &&
	    !call->device.len)
		return errbuf_set(e, ERR_INVALID, "device is empty");
	return err;
}

static void interfaces_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct rows_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	api_call_init(&call->call, request, &rows_kind);
	call->inventory = inventory_keeper_take(api->inventory);
	call->read.store = api->store;
	call->read.executor = loop_executor(api->loop);
	call->read.clock = api->clock;
	call->read.arena = &call->call.arena;
	call->read.done = rows_done;
	call->read.owner = call;
	if (rows_read_params(call, &e)) {
		api_call_fail(&call->call, 400, "%s", e.text);
		return;
	}
	json_write_array_begin(&call->call.json);
	rows_next_device(call);
}

const struct http_handler interfaces_handler = API_CALL_HANDLER(interfaces_end);
