#include "api/admin/admin.h"

#include "api/admin/inventory_json.h"
#include "api/admin/pollers.h"
#include "api/call.h"
#include "api/json_reply.h"
#include "api/params.h"
#include "auth/caller.h"
#include "inventory/inventory.h"
#include "loop/job.h"
#include "snmp/poller.h"

enum {
	CALL_MAX_BYTES = 256 << 20, /* what a list of devices becomes */
	ANSWER_MAX_BYTES = 128 << 20,
	CHANGED_MAX_BYTES = 64 << 10, /* what is said of a change */
	NAME_SEGMENT = 2,             /* of /api/devices/NAME */
};

/* Polled where nobody says what: interfaces with their counters, and what they are. */
static const struct slice oidsets_preset[] = {SLICE("IfXTable"), SLICE("IfRefPoll")};

/* A change at work. It outlives its request when the client goes away. */
struct inventory_call {
	struct api_call call;
	struct inventory_change change;
	struct slice stored_as; /* with_data: what the device's data are stored under */
	bool with_data,
		absent; /* the device is not in the inventory, but perhaps its data is there */
	/* The wipe of these. */
	struct job *wipe;
	uint64_t series;
	struct errbuf error;
	int err;
};

/* ---- Reading ----------------------------------------------------------------------------------
 */

static void devices_end(struct http_request *request)
{
	struct api *api = api_of(request);
	struct json_reply reply;
	if (!params_none(request))
		return;
	const struct inventory *inventory = inventory_keeper_take(api->inventory);
	int64_t now_ms = clock_wall_ms(api->clock);
	bool whole = caller_may(request->caller, ROLE_ADMIN);
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	json_write_array_begin(json);
	for (size_t i = 0; i < inventory->device_count; i++)
		device_json(inventory->devices[i], whole,
			    pollers_heard_ms(api->pollers, inventory->devices[i]->poller), now_ms,
			    json);
	json_write_array_end(json);
	inventory_release(inventory);
	json_reply_send(&reply, request);
}

/* The last part of the path; false: there are more or fewer, and 404 was said. */
static bool inventory_http_read_name(struct http_request *request, struct slice *name)
{
	if (request->segment_count == NAME_SEGMENT + 1 && request->segments[NAME_SEGMENT].len) {
		*name = request->segments[NAME_SEGMENT];
		return true;
	}
	http_reply_error(request, 404, "there is nothing at this path");
	return false;
}

static void inventory_http_device_end(struct http_request *request)
{
	struct api *api = api_of(request);
	struct json_reply reply;
	struct slice name;
	if (!params_none(request) || !inventory_http_read_name(request, &name))
		return;
	const struct inventory *inventory = inventory_keeper_take(api->inventory);
	const struct device *device = inventory_device(inventory, name);
	if (device) {
		struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
		device_json(device, caller_may(request->caller, ROLE_ADMIN),
			    pollers_heard_ms(api->pollers, device->poller),
			    clock_wall_ms(api->clock), json);
		json_reply_send(&reply, request);
	} else {
		http_reply_error(request, 404, "device " SHOWN ": does not exist", SHOWN_OF(name));
	}
	inventory_release(inventory);
}

static void oidsets_end(struct http_request *request)
{
	const struct inventory_conf *conf = api_of(request)->inventory_conf;
	struct json_reply reply;
	if (!params_none(request))
		return;
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	json_write_array_begin(json);
	for (size_t i = 0; i < conf->oidset_count; i++)
		oidset_json(conf->oidsets[i], json);
	json_write_array_end(json);
	json_reply_send(&reply, request);
}

static void inventory_http_oidset_end(struct http_request *request)
{
	const struct inventory_conf *conf = api_of(request)->inventory_conf;
	struct json_reply reply;
	struct slice name;
	if (!params_none(request) || !inventory_http_read_name(request, &name))
		return;
	const struct oidset *set = inventory_conf_oidset(conf, name);
	if (!set) {
		http_reply_error(request, 404, "'" SHOWN "' is not an OIDSet", SHOWN_OF(name));
		return;
	}
	struct json_writer *json = json_reply_begin(&reply, ANSWER_MAX_BYTES);
	oidset_json(set, json);
	json_reply_send(&reply, request);
}

const struct http_handler devices_handler = {.end = devices_end};
const struct http_handler device_handler = {.end = inventory_http_device_end};
const struct http_handler oidsets_handler = {.end = oidsets_end};
const struct http_handler oidset_handler = {.end = inventory_http_oidset_end};

/* ---- Changing ---------------------------------------------------------------------------------
 */

static const struct api_call_kind inventory_kind = {.arena_max_bytes = CALL_MAX_BYTES,
						    .out_max_bytes = CHANGED_MAX_BYTES};

static struct inventory_call *inventory_call_from(void *owner)
{
	struct api_call *call = api_call_from(owner);
	ASSERT(call->kind == &inventory_kind);
	return CONTAINER_OF(call, struct inventory_call, call);
}

static struct inventory_call *inventory_call_new(struct http_request *request)
{
	struct inventory_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &inventory_kind);
	call->call.held = 1; /* until the change is made or refused */
	http_request_note(request, buf_slice(&call->call.body));
	return call;
}

/* {"error":{"code":409,"message":"...","item":2}}: item counts from 0 in the list that was sent. */
static void inventory_fail(struct inventory_call *call, int err, const char *why, size_t item)
{
	struct json_writer *json = &call->call.json;
	if (!api_call_settle(&call->call))
		return;
	call->call.status = http_status_of(err);
	json_write_object_begin(json);
	json_write_key(json, "error");
	json_write_object_begin(json);
	json_put_i64(json, "code", call->call.status);
	json_put_text(json, "message", why);
	if (item != SIZE_MAX)
		json_put_u64(json, "item", item);
	json_write_object_end(json);
	json_write_object_end(json);
	api_call_end(&call->call);
}

/* {"done":"added","devices":3} */
static void inventory_http_succeed(struct inventory_call *call, int status, const char *done,
				   size_t devices)
{
	struct json_writer *json = &call->call.json;
	if (!api_call_settle(&call->call))
		return;
	call->call.status = status;
	json_write_object_begin(json);
	json_put_text(json, "done", done);
	json_put_u64(json, "devices", devices);
	if (call->with_data)
		json_put_u64(json, "series", call->series);
	json_write_object_end(json);
	api_call_end(&call->call);
}

/* Carried through, also when the client has gone or the server stops. */
static void inventory_wipe_run(struct job *job, void *owner)
{
	struct inventory_call *call = inventory_call_from(owner);
	const struct device_wipe_options options = {.store = call->call.api->store,
						    .clock = call->call.api->clock,
						    .queue = job_queue(job),
						    .device = call->stored_as};
	call->err = device_wipe(&options, &call->series, &call->error);
}

static void inventory_wipe_over(void *owner)
{
	struct inventory_call *call = inventory_call_from(owner);
	job_free(call->wipe);
	if (call->err)
		inventory_fail(call, call->err, call->error.text, SIZE_MAX);
	else if (call->absent && !call->series)
		inventory_fail(call, ERR_NOT_FOUND, call->change.error.text, SIZE_MAX);
	else
		inventory_http_succeed(call, 200, "removed, with data", !call->absent);
}

/* Whether what would be deleted is of a device that is there: one that had that name before. */
static bool is_of_another(struct inventory_call *call)
{
	const struct inventory *inventory = inventory_keeper_take(call->call.api->inventory);
	const struct device *device = inventory_device_stored(inventory, call->stored_as);
	struct errbuf e;
	if (device)
		errbuf_set(&e, ERR_EXISTS,
			   "device " SHOWN ": does not exist; what is stored under that name is of "
			   "device " SHOWN ", which had it before",
			   SHOWN_OF(call->change.specs[0].name), SHOWN_OF(device->name));
	inventory_release(inventory);
	if (device)
		inventory_fail(call, ERR_EXISTS, e.text, SIZE_MAX);
	return device != NULL;
}

static void begin_wipe(struct inventory_call *call)
{
	if (is_of_another(call))
		return;
	if (job_start("wipe", inventory_wipe_run, inventory_wipe_over, call,
		      loop_executor(call->call.api->loop), &call->wipe))
		inventory_fail(call, ERR_BUSY, "too many jobs are at work; try again later",
			       SIZE_MAX);
}

static void inventory_http_changed(struct inventory_change *change, int err)
{
	static const char *const words[] = {[INVENTORY_ADD] = "added",
					    [INVENTORY_CHANGE] = "changed",
					    [INVENTORY_RENAME] = "renamed",
					    [INVENTORY_REMOVE] = "removed"};
	struct inventory_call *call = inventory_call_from(change->owner);
	/* What a device had stored under another name, or before it was removed. */
	call->absent = err == ERR_NOT_FOUND && call->with_data;
	if (call->with_data && (!err || call->absent)) {
		begin_wipe(call);
	} else if (err) {
		inventory_fail(call, err, change->error.text,
			       change->fault < change->count ? change->fault : SIZE_MAX);
	} else {
		inventory_http_succeed(call, change->op == INVENTORY_ADD ? 201 : 200,
				       words[change->op], change->count);
	}
}

static void inventory_http_submit(struct inventory_call *call)
{
	call->change.done = inventory_http_changed;
	call->change.owner = call;
	int err = inventory_keeper_change(call->call.api->inventory, &call->change);
	if (err)
		inventory_fail(call, err, "too many changes wait; try again later", SIZE_MAX);
}

static int read_spec(struct inventory_call *call, const struct json *object,
		     struct device_spec *spec, struct errbuf *e)
{
	*spec = device_spec_preset();
	spec->name = SLICE("");
	spec->oidsets = oidsets_preset;
	spec->oidset_count = ARRAY_LEN(oidsets_preset);
	return device_spec_from_json(object, &call->call.arena, spec, e);
}

/* An object, or an array of them. */
static int read_specs(struct inventory_call *call, const struct json *root, size_t *item,
		      struct errbuf *e)
{
	bool many = root->type == JSON_T_ARRAY;
	size_t count = many ? root->count : 1;
	const struct json *object = many ? root->first : root;
	struct device_spec *specs = arena_alloc(&call->call.arena, (count + 1) * sizeof(*specs));
	if (!specs || count > INVENTORY_DEVICES_MAX)
		return errbuf_set(e, ERR_LIMIT, "the list is too long");
	call->change.specs = specs;
	for (*item = 0; *item < count; ++*item, object = object->next) {
		int err = read_spec(call, object, &specs[*item], e);
		if (err)
			return err;
	}
	call->change.count = count;
	return 0;
}

static void inventory_http_add_end(struct http_request *request)
{
	struct inventory_call *call;
	struct json *root;
	struct errbuf e;
	size_t item = SIZE_MAX;
	if (!params_none(request))
		return;
	call = inventory_call_new(request);
	call->change.op = INVENTORY_ADD;
	int err = json_parse(buf_slice(&call->call.body), &call->call.arena, &root, &e);
	err = err ? err : read_specs(call, root, &item, &e);
	if (err)
		inventory_fail(call, err, e.text, item);
	else
		inventory_http_submit(call);
}

/* The device as it is, with what the body says over it. */
static int read_change(struct inventory_call *call, struct slice name, const struct json *root,
		       struct device_spec *spec, struct errbuf *e)
{
	const struct inventory *inventory = inventory_keeper_take(call->call.api->inventory);
	const struct device *device = inventory_device(inventory, name);
	int err = 0;
	if (!device)
		err = errbuf_set(e, ERR_NOT_FOUND, "device " SHOWN ": does not exist",
				 SHOWN_OF(name));
	if (!err) {
		struct device_spec is = device_spec_of(device, &call->call.arena);
		struct slice *names =
			arena_alloc(&call->call.arena, (is.oidset_count + 1) * sizeof(*names));
		*spec = is;
		spec->name = arena_copy(&call->call.arena, is.name);
		spec->credentials = arena_copy(&call->call.arena, is.credentials);
		spec->poller = arena_copy(&call->call.arena, is.poller);
		for (size_t i = 0; names && i < is.oidset_count; i++)
			names[i] = arena_copy(&call->call.arena, is.oidsets[i]);
		spec->oidsets = names;
		err = device_spec_from_json(root, &call->call.arena, spec, e);
	}
	inventory_release(inventory);
	return err;
}

/* Another name in the body is a wish to be renamed, and has nothing beside it. */
static int begin_change(struct inventory_call *call, struct slice name, struct errbuf *e)
{
	struct device_spec *spec = arena_zalloc(&call->call.arena, sizeof(*spec));
	struct json *root;
	int err = json_parse(buf_slice(&call->call.body), &call->call.arena, &root, e);
	err = err ? err : read_change(call, name, root, spec, e);
	if (err)
		return err;
	bool renamed = !slice_equal(spec->name, name);
	if (renamed && root->count > 1)
		return errbuf_set(e, ERR_INVALID,
				  "a device is renamed by itself: send nothing beside the name");
	call->change.op = renamed ? INVENTORY_RENAME : INVENTORY_CHANGE;
	call->change.to = spec->name;
	spec->name = arena_copy(&call->call.arena, name);
	call->change.specs = spec;
	call->change.count = 1;
	return 0;
}

static void change_end(struct http_request *request)
{
	struct slice name;
	struct errbuf e;
	if (!params_none(request) || !inventory_http_read_name(request, &name))
		return;
	struct inventory_call *call = inventory_call_new(request);
	int err = begin_change(call, name, &e);
	if (err)
		inventory_fail(call, err, e.text, SIZE_MAX);
	else
		inventory_http_submit(call);
}

const struct param device_remove_params[] = {
	{"withData", PARAM_FLAG, 0, .help = "Also removes what is stored of it."}, {NULL}};

static void remove_end(struct http_request *request)
{
	struct errbuf e = {""};
	struct slice name;
	bool with_data = false;
	if (params_read_route(request, 0, &with_data, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	if (!inventory_http_read_name(request, &name))
		return;
	struct inventory_call *call = inventory_call_new(request);
	struct device_spec *spec = arena_zalloc(&call->call.arena, sizeof(*spec));
	spec->name = arena_copy(&call->call.arena, name);
	call->with_data = with_data;
	const struct inventory *inventory = inventory_keeper_take(call->call.api->inventory);
	call->stored_as = arena_copy(&call->call.arena, inventory_stored_as(inventory, name));
	inventory_release(inventory);
	call->change.op = INVENTORY_REMOVE;
	call->change.specs = spec;
	call->change.count = 1;
	inventory_http_submit(call);
}

/* Why the device cannot be polled from here, as 404 or 409; false: none of it. */
static bool refuse_poll(struct http_request *request, const struct device *device,
			struct slice name)
{
	int64_t now_ms = clock_wall_ms(api_of(request)->clock);
	if (!device)
		http_reply_error(request, 404, "device " SHOWN ": does not exist", SHOWN_OF(name));
	else if (device->poller.len)
		http_reply_error(request, 409,
				 "device " SHOWN ": is polled by " SHOWN
				 ", which only asks what to poll and is not told when",
				 SHOWN_OF(name), SHOWN_OF(device->poller));
	else if (!device_is_active(device, now_ms))
		http_reply_error(request, 409, "device " SHOWN ": is not active", SHOWN_OF(name));
	else
		return false;
	return true;
}

const struct param device_poll_params[] = {{"device", PARAM_TEXT, 0, .help = "Its name."}, {NULL}};

static void poll_end(struct http_request *request)
{
	struct api *api = api_of(request);
	struct slice name = {NULL, 0};
	struct errbuf e = {""};
	if (params_read_route(request, 0, &name, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	const struct inventory *inventory = inventory_keeper_take(api->inventory);
	const struct device *device = inventory_device(inventory, name);
	if (!refuse_poll(request, device, name)) {
		poller_poll_now(api->poller, device->name);
		http_reply(request, 202, NULL, (struct slice){NULL, 0});
	}
	inventory_release(inventory);
}

const struct http_handler device_poll_handler = {.end = poll_end};
const struct http_handler device_add_handler = API_CALL_HANDLER(inventory_http_add_end);
const struct http_handler device_change_handler = API_CALL_HANDLER(change_end);
const struct http_handler device_remove_handler = API_CALL_HANDLER(remove_end);
