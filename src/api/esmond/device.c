/* /v2/device/: the list, one device, and replacing what it polls. What lies below a device is in
 * interface.c and endpoint.c. Power strips (/v2/pdu/) are listed and shown here, too. */
#include "api/esmond/device.h"

#include "api/esmond/answer.h"
#include "api/esmond/esmond.h"
#include "api/esmond/name.h"
#include "api/esmond/params.h"
#include "api/esmond/path.h"

enum { DEVICES_A_TURN = 200, URI_MAX_BYTES = 4096 };

/* One request at work. */
struct v2_device_call {
	struct v2_answer answer;
	/* list */
	const struct v2_device_kind *kind;
	struct v2_life life;
	struct v2_lookups lookups;
	struct v2_page page;
	size_t next; /* device */
	uint64_t listed;
	/* PUT */
	struct inventory_change change;
	struct device_spec spec;
};

static struct v2_device_call *v2_device_call_new(struct http_request *request,
						 void (*advance)(struct api_call *))
{
	struct v2_device_call *call = mem_zalloc(sizeof(*call));
	v2_answer_init(&call->answer, request, advance, NULL);
	return call;
}

/* ---- One device ------------------------------------------------------------------------------ */

static bool is_any(UNUSED const struct device *device)
{
	return true;
}

static const struct v2_device_kind devices = {"device", "interface", is_any};

void v2_device_kind_uri(const struct v2_device_kind *kind, struct slice device, struct buf *out)
{
	buf_printf(out, "/v2/%s/", kind->noun);
	v2_name_encode(device, out);
	buf_append_char(out, '/');
}

static void put_child(struct v2_answer *answer, const char *name, struct buf *uri)
{
	buf_printf(uri, "%s/", name);
	json_write_object_begin(&answer->call.json);
	json_put_bool(&answer->call.json, "leaf", false);
	json_put_string(&answer->call.json, "name", slice_of(name));
	json_put_string(&answer->call.json, "uri", buf_slice(uri));
	json_write_object_end(&answer->call.json);
}

static void put_oidsets(struct json_writer *json, const struct device *device)
{
	json_write_key(json, "oidsets");
	json_write_array_begin(json);
	for (size_t i = 0; i < device->oidset_count; i++)
		json_write_string(json, device->oidsets[i]->name);
	json_write_array_end(json);
}

static void v2_device_put_device(struct v2_answer *answer, const struct v2_device_kind *kind,
				 const struct device *device)
{
	struct json_writer *json = &answer->call.json;
	struct buf uri;
	buf_init(&uri, URI_MAX_BYTES);
	v2_device_kind_uri(kind, device->name, &uri);
	json_write_object_begin(json);
	json_put_i64(json, "id", v2_id_of(device_stored_as(device), SLICE(""), 0));
	json_put_string(json, "name", device->name);
	json_put_bool(json, "active", device->active);
	json_put_i64(json, "begin_time", v2_seconds(device->begin_ms));
	json_put_i64(json, "end_time", v2_seconds(device->end_ms));
	put_oidsets(json, device);
	json_put_bool(json, "leaf", false);
	v2_put_links(answer, buf_slice(&uri));
	json_write_key(json, "children");
	json_write_array_begin(json);
	put_child(answer, kind->child, &uri);
	json_write_array_end(json);
	json_write_object_end(json);
	buf_release(&uri);
}

/* ---- The list -------------------------------------------------------------------------------- */

static bool is_listed(struct v2_device_call *call, const struct device *device, uint64_t *work)
{
	bool lived = call->life.given ? v2_life_has(&call->life, device->begin_ms, device->end_ms)
				      : device_is_active(device, call->answer.now_ms);
	return lived && call->kind->is(device) &&
	       v2_lookups_match(&call->lookups, &device->name, work);
}

static void list_on(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_device_call *call = CONTAINER_OF(answer, struct v2_device_call, answer);
	const struct inventory *inventory = answer->inventory;
	uint64_t work = 0;
	if (!api_call_room(&answer->call))
		return;
	if (!call->next)
		json_write_array_begin(&answer->call.json);
	for (size_t i = 0;
	     i < DEVICES_A_TURN && work < V2_TURN_WORK && call->next < inventory->device_count;
	     i++) {
		const struct device *device = inventory->devices[call->next++];
		if (is_listed(call, device, &work) && v2_page_has(&call->page, call->listed++))
			v2_device_put_device(answer, call->kind, device);
	}
	if (call->next < inventory->device_count) {
		api_call_later(&answer->call);
		return;
	}
	json_write_array_end(&answer->call.json);
	api_call_end(&answer->call);
}

/* A plain list: all of it, where no page is asked for. */
static int v2_device_read_list(struct v2_device_call *call, const struct http_request *request,
			       struct errbuf *e)
{
	static const struct param params[] = {{V2_PARAM_BEGIN}, {V2_PARAM_END}, {NULL}};
	static const char *const fields[] = {"name", NULL};
	struct v2_answer *answer = &call->answer;
	int err =
		v2_params_lookups(request, params, fields, &answer->call.arena, &call->lookups, e);
	if (!err)
		err = v2_params_life(request, answer->now_ms, &call->life, e);
	if (!err)
		err = v2_page_read(request, &call->page, e);
	if (!http_param(request, "limit").data)
		call->page.limit = 0;
	return err;
}

void v2_device_list(struct http_request *request, const struct v2_device_kind *kind)
{
	struct v2_device_call *call = v2_device_call_new(request, list_on);
	call->kind = kind;
	struct errbuf e;
	int err = v2_device_read_list(call, request, &e);
	if (err)
		api_call_fail(&call->answer.call, 400, "%s", e.text);
	else
		list_on(&call->answer.call);
}

/* ---- Dispatch -------------------------------------------------------------------------------- */

/* One of the kind that lived at that time, or NULL. */
static const struct device *find_living(struct v2_answer *answer, const struct v2_device_kind *kind,
					const struct v2_life *life)
{
	const struct device *device = v2_find_device(
		answer->inventory, v2_part(answer->call.request, 1), &answer->call.arena);
	return device && kind->is(device) && v2_life_has(life, device->begin_ms, device->end_ms)
		       ? device
		       : NULL;
}

void v2_device_get(struct http_request *request, const struct v2_device_kind *kind)
{
	static const struct param params[] = {{V2_PARAM_BEGIN}, {V2_PARAM_END}, {NULL}};
	struct v2_device_call *call = v2_device_call_new(request, NULL);
	struct v2_answer *answer = &call->answer;
	const struct device *device;
	struct v2_life life;
	struct errbuf e;
	if (v2_params_check(request, params, &e) ||
	    v2_params_life(request, answer->now_ms, &life, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
	} else if (!(device = find_living(answer, kind, &life))) {
		v2_no_device(answer, 404, v2_part(request, 1));
	} else {
		v2_device_put_device(answer, kind, device);
		api_call_end(&answer->call);
	}
}

static void v2_device_end(struct http_request *request)
{
	size_t parts = v2_part_count(request);
	if (!slice_equal(v2_part(request, 0), SLICE("device")) ||
	    (parts > 2 && !slice_equal(v2_part(request, 2), SLICE("interface"))))
		v2_no_such_path(request);
	else if (parts == 1)
		v2_device_list(request, &devices);
	else if (parts == 2)
		v2_device_get(request, &devices);
	else
		v2_below_device(request, parts);
}

const struct http_handler v2_device = V2_HANDLER(v2_device_end);

/* ---- PUT ------------------------------------------------------------------------------------- */

static void v2_device_changed(struct inventory_change *change, int err)
{
	struct v2_answer *answer = v2_answer_of(api_call_from(change->owner));
	struct v2_device_call *call = CONTAINER_OF(answer, struct v2_device_call, answer);
	const struct device *device;
	if (!api_call_settle(&answer->call))
		return;
	/* The name that was changed lies in the picture that it was made from. */
	const struct inventory *before = answer->inventory;
	answer->inventory = inventory_keeper_take(answer->call.api->inventory);
	device = inventory_device(answer->inventory, call->spec.name);
	inventory_release(before);
	if (err == ERR_INVALID || err == ERR_NOT_FOUND || err == ERR_EXISTS || !device) {
		api_call_fail(&answer->call, 400, "%s", change->error.text);
	} else if (err) {
		api_call_fail_with(&answer->call, err, change->error.text);
	} else {
		v2_device_put_device(answer, &devices, device);
		api_call_end(&answer->call);
	}
}

static int read_oidsets(const struct json *body, struct v2_device_call *call, struct errbuf *e)
{
	const struct json *list, *item;
	size_t count = 0;
	int err = json_get_array(body, "oidsets", &list, e);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	if (list->count > DEVICE_OIDSETS_MAX)
		return errbuf_set(e, ERR_INVALID, "a device has at most %d oidsets",
				  DEVICE_OIDSETS_MAX);
	struct slice *names =
		arena_alloc(&call->answer.call.arena, (list->count + 1) * sizeof(*names));
	if (!names)
		return errbuf_set(e, ERR_LIMIT, "the body is too large");
	for (item = list->first; item; item = item->next) {
		if (item->type != JSON_T_STRING)
			return errbuf_set(e, ERR_INVALID, "oidsets is a list of names");
		names[count++] = item->text;
	}
	call->spec.oidsets = names;
	call->spec.oidset_count = count;
	return 0;
}

/* Clients send back what they were given. What would change something that is not changed here is
 * refused rather than passed over. */
static int v2_device_check_member(const struct json *member, const struct device *device,
				  struct errbuf *e)
{
	static const char *const passed[] = {"id",   "url",      "uri",     "resource_uri",
					     "leaf", "children", "oidsets", "active"};
	int64_t seconds;
	if (slice_equal(member->key, SLICE("name"))) {
		if (member->type == JSON_T_STRING && slice_equal(member->text, device->name))
			return 0;
	} else if (slice_equal(member->key, SLICE("begin_time")) ||
		   slice_equal(member->key, SLICE("end_time"))) {
		bool is_begin = slice_equal(member->key, SLICE("begin_time"));
		seconds = v2_seconds(is_begin ? device->begin_ms : device->end_ms);
		if (member->type == JSON_T_NUMBER &&
		    value_equal(member->number, value_i64(seconds)))
			return 0;
	} else {
		for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
			if (slice_equal(member->key, slice_of(passed[i])))
				return 0;
		}
	}
	return errbuf_set(e, ERR_INVALID,
			  "\"" SHOWN "\" is not changed here: only oidsets and active are",
			  SHOWN_OF(member->key));
}

static int read_put(struct v2_device_call *call, const struct http_request *request,
		    const struct device *device, struct errbuf *e)
{
	struct json *body;
	int err = v2_check_json(request, e);
	if (!err)
		err = json_parse(buf_slice(&call->answer.call.body), &call->answer.call.arena,
				 &body, e);
	if (err)
		return err;
	if (body->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "the body is no object");
	for (const struct json *member = body->first; member; member = member->next) {
		err = v2_device_check_member(member, device, e);
		if (err)
			return err;
	}
	call->spec = device_spec_of(device, &call->answer.call.arena);
	err = json_get_bool(body, "active", &call->spec.active, e);
	return err && err != ERR_NOT_FOUND ? err : read_oidsets(body, call, e);
}

static void put_end(struct http_request *request)
{
	struct v2_device_call *call;
	struct errbuf e;
	if (v2_part_count(request) != 2 || !slice_equal(v2_part(request, 0), SLICE("device"))) {
		v2_no_such_path(request);
		return;
	}
	call = v2_device_call_new(request, NULL);
	struct v2_answer *answer = &call->answer;
	struct v2_life now = {.begin_ms = answer->now_ms, .end_ms = answer->now_ms};
	const struct device *device = find_living(answer, &devices, &now);
	if (!device) {
		v2_no_device(answer, 404, v2_part(request, 1));
		return;
	}
	int err = read_put(call, request, device, &e);
	if (err) {
		api_call_fail_with(&answer->call, err, e.text);
		return;
	}
	call->change = (struct inventory_change){
		.op = INVENTORY_CHANGE,
		.specs = &call->spec,
		.count = 1,
		.done = v2_device_changed,
		.owner = call,
	};
	err = inventory_keeper_change(answer->call.api->inventory, &call->change);
	if (err)
		api_call_fail_with(&answer->call, err, "");
	else
		answer->call.held++;
}

const struct http_handler v2_device_put = V2_HANDLER(put_end);
