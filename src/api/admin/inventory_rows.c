/* GET /api/interfaces: rows of one device, or of all of them, one after the other. */
#include "api/admin/inventory.h"
#include "api/admin/inventory_json.h"
#include "api/metrics/query_params.h"
#include "api/routes.h"

enum {
	ROWS_MAX_BYTES = 64 << 20, /* of one device */
	ANSWER_MAX_BYTES = 128 << 20,
	ROWS_PRESET = 10000,
	ROWS_MAX = 1000000,
};

struct rows_call {
	struct http_request *request;
	struct api *api;
	const struct inventory *inventory;
	size_t at; /* which device */
	bool one;  /* only `device` */
	struct slice device;
	size_t limit, count;
	struct arena arena;
	struct inventory_rows_read read;
	struct buf body;
	struct json_writer writer;
};

static void rows_free(struct rows_call *call)
{
	inventory_rows_read_cancel(&call->read);
	inventory_release(call->inventory);
	arena_release(&call->arena);
	buf_release(&call->body);
	mem_free(call);
}

static void rows_fail(struct rows_call *call, int status, const char *why)
{
	http_reply_error(call->request, status, "%s", why);
	rows_free(call);
}

static void finish(struct rows_call *call, bool cut)
{
	json_write_array_end(&call->writer);
	if (call->body.failed) {
		rows_fail(call, 422, "the answer is too long; ask for one device");
		return;
	}
	if (cut)
		http_reply_header(call->request, "X-Granary-Cut", "limit");
	http_reply(call->request, 200, "application/json", buf_slice(&call->body));
	rows_free(call);
}

static void next_device(struct rows_call *call);

static void rows_done(struct inventory_rows_read *read, int err)
{
	struct rows_call *call = read->owner;
	if (err) {
		rows_fail(call, http_status_of(err), read->error.text);
		return;
	}
	for (size_t i = 0; i < read->count; i++)
		interface_json(call->device, &read->rows[i], &call->writer);
	call->count += read->count;
	if (read->more)
		finish(call, true);
	else
		next_device(call);
}

static bool take_device(struct rows_call *call)
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

static void next_device(struct rows_call *call)
{
	bool left = take_device(call);
	if (!left || call->count == call->limit) {
		finish(call, left);
		return;
	}
	arena_reset(&call->arena);
	call->read.limit = call->limit - call->count;
	if (inventory_rows_read_start(&call->read))
		rows_fail(call, 503, "the store is busy; try again later");
}

static int read_kind(struct http_request *request, enum oidset_kind *kind, struct errbuf *e)
{
	struct slice text = http_param(request, "kind");
	*kind = OIDSET_INTERFACES;
	for (int k = OIDSET_INTERFACES; k < OIDSET_KINDS && text.data; k++) {
		if (slice_equal(text, slice_of(oidset_kind_text((enum oidset_kind)k)))) {
			*kind = (enum oidset_kind)k;
			return 0;
		}
	}
	return text.data ? errbuf_set(e, ERR_INVALID, "kind is interfaces, saps, lsps or outlets")
			 : 0;
}

/* Without a time what there is now: the rows that are open. */
static int read_params(struct rows_call *call, struct errbuf *e)
{
	static const char *const names[] = {"device", "kind", "begin", "end", "limit", NULL};
	struct http_request *request = call->request;
	int64_t now_ms = clock_wall_ms(call->api->clock);
	struct slice device = http_param(request, "device");
	call->one = device.data != NULL;
	call->device = device;
	call->read.begin_ms = INVENTORY_FOREVER_MS;
	call->read.end_ms = INVENTORY_FOREVER_MS;
	int err = params_check(request, names, e);
	err = err ? err : params_limit(request, ROWS_PRESET, ROWS_MAX, &call->limit, e);
	err = err ? err : read_kind(request, &call->read.kind, e);
	err = err ? err : params_time(request, "begin", now_ms, &call->read.begin_ms, e);
	err = err ? err : params_time(request, "end", now_ms, &call->read.end_ms, e);
	if (!err && call->one && !inventory_device(call->inventory, device) && !device.len)
		return errbuf_set(e, ERR_INVALID, "device is empty");
	return err;
}

static void interfaces_end(struct http_request *request)
{
	struct api *api = api_of(request);
	struct rows_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e;
	call->request = request;
	call->api = api;
	call->inventory = inventory_keeper_take(api->inventory);
	request->owner = call;
	arena_init(&call->arena, ROWS_MAX_BYTES);
	buf_init(&call->body, ANSWER_MAX_BYTES);
	json_writer_init(&call->writer, &call->body);
	call->read.store = api->store;
	call->read.executor = loop_executor(api->loop);
	call->read.clock = api->clock;
	call->read.arena = &call->arena;
	call->read.done = rows_done;
	call->read.owner = call;
	if (read_params(call, &e)) {
		rows_fail(call, 400, e.text);
		return;
	}
	json_write_array_begin(&call->writer);
	next_device(call);
}

static void interfaces_aborted(struct http_request *request, UNUSED int err)
{
	if (request->owner)
		rows_free(request->owner);
}

const struct http_handler interfaces_handler = {.end = interfaces_end, .abort = interfaces_aborted};
