/* /v2/outlet/ and /v2/pdu/: outlets of power strips. A device is a strip if it polls an OIDSet of
 * the kind `outlets`.
 *
 *     /v2/outlet/                        all that match look-ups
 *     /v2/pdu/  /v2/pdu/NAME/            the strips
 *     /v2/pdu/NAME/outlet/  .../ID/      their outlets
 *     /v2/pdu/NAME/outlet/ID/load        what they draw: samples, their times put down to minutes
 */
#include "api/esmond/data.h"
#include "api/esmond/device.h"
#include "api/esmond/esmond.h"
#include "api/esmond/name.h"
#include "api/esmond/path.h"
#include "api/esmond/rows.h"

enum { URI_MAX_BYTES = 16 << 10, MINUTE_MS = 60000 };

#define LOAD_OID SLICE("outletLoadValue")

struct v2_outlet_call {
	struct v2_answer answer;
	struct v2_rows rows;
	struct v2_page page;
	uint64_t matched;
	bool one;
	const struct device *device; /* whose outlet's load is asked for */
	struct v2_data data;
	struct v2_data_params params;
};

static void v2_outlet_release(struct v2_answer *answer)
{
	struct v2_outlet_call *call = CONTAINER_OF(answer, struct v2_outlet_call, answer);
	v2_rows_release(&call->rows);
	v2_data_release(&call->data);
}

static struct v2_outlet_call *v2_outlet_call_new(struct http_request *request)
{
	struct v2_outlet_call *call = mem_zalloc(sizeof(*call));
	v2_answer_init(&call->answer, request, NULL, v2_outlet_release);
	call->rows.answer = &call->answer;
	call->rows.kind = OIDSET_OUTLETS;
	call->rows.fields = v2_outlet_fields;
	return call;
}

/* ---- Parts of answers ------------------------------------------------------------------------ */

static bool is_strip(const struct device *device)
{
	for (size_t i = 0; i < device->oidset_count; i++) {
		if (device->oidsets[i]->kind == OIDSET_OUTLETS)
			return true;
	}
	return false;
}

/* The OIDSet that samples the load of outlets, or NULL. */
static const struct oidset *find_load(const struct device *device, const struct oid_def **oid)
{
	for (size_t i = 0; i < device->oidset_count; i++) {
		const struct oidset *oidset = device->oidsets[i];
		for (size_t j = 0; j < oidset->oid_count; j++) {
			*oid = oidset->oids[j];
			if (slice_equal((*oid)->name, LOAD_OID) && oidset->path_tag_count == 1)
				return oidset;
		}
	}
	return NULL;
}

static const struct v2_device_kind strips = {"pdu", "outlet", is_strip};

/* `/v2/pdu/NAME/outlet/ID` */
static void outlet_uri(const struct device *device, struct slice id, struct buf *uri)
{
	v2_device_kind_uri(&strips, device->name, uri);
	buf_append_text(uri, "outlet/");
	v2_name_encode(id, uri);
}

static void put_load(struct v2_answer *answer, struct buf *uri)
{
	struct json_writer *json = &answer->call.json;
	buf_append_text(uri, "/load");
	json_write_object_begin(json);
	json_put_string(json, "name", SLICE("load"));
	json_put_bool(json, "leaf", true);
	v2_put_links(answer, buf_slice(uri));
	json_write_object_end(json);
}

static void put_outlet(struct v2_answer *answer, const struct device *device,
		       const struct inventory_row *row)
{
	struct json_writer *json = &answer->call.json;
	const struct oid_def *oid;
	struct buf uri;
	buf_init(&uri, URI_MAX_BYTES);
	json_write_object_begin(json);
	json_put_i64(json, "id", v2_id_of(device_stored_as(device), row->name, row->begin_ms));
	json_put_string(json, "pdu", device->name);
	v2_device_kind_uri(&strips, device->name, &uri);
	json_put_string(json, "pdu_uri", buf_slice(&uri));
	v2_put_attributes(answer, row);
	json_put_i64(json, "begin_time", v2_seconds(row->begin_ms));
	json_put_i64(json, "end_time", v2_seconds(row->end_ms));
	json_put_bool(json, "leaf", false);
	buf_clear(&uri);
	outlet_uri(device, row->name, &uri);
	v2_put_links(answer, buf_slice(&uri));
	json_write_key(json, "children");
	json_write_array_begin(json);
	if (find_load(device, &oid))
		put_load(answer, &uri);
	json_write_array_end(json);
	json_write_object_end(json);
	buf_release(&uri);
}

/* ---- Lists of outlets, and one --------------------------------------------------------------- */

static bool v2_outlet_take_row(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_outlet_call *call = CONTAINER_OF(rows, struct v2_outlet_call, rows);
	if (call->one) {
		call->matched++;
		put_outlet(&call->answer, row->device, row->row);
		return false;
	}
	if (v2_page_has(&call->page, call->matched++))
		put_outlet(&call->answer, row->device, row->row);
	return true;
}

static void v2_outlet_rows_ended(struct v2_rows *rows, int err)
{
	struct v2_outlet_call *call = CONTAINER_OF(rows, struct v2_outlet_call, rows);
	struct v2_answer *answer = &call->answer;
	if (err) {
		api_call_fail_with(&answer->call, err, rows->error.text);
		return;
	}
	if (call->one && !call->matched) {
		api_call_fail(&answer->call, 404, "the device has no outlet \"" SHOWN "\"",
			      SHOWN_OF(rows->name));
		return;
	}
	if (!call->one)
		v2_page_end(answer->call.request, &call->page, call->matched, &answer->call.json);
	api_call_end(&answer->call);
}

static void begin_rows(struct v2_outlet_call *call)
{
	static const struct param params[] = {{V2_PARAM_BEGIN}, {V2_PARAM_END}, {NULL}};
	struct v2_answer *answer = &call->answer;
	struct v2_life life;
	struct errbuf e;
	if (v2_params_lookups(answer->call.request, params, v2_outlet_fields, &answer->call.arena,
			      &call->rows.lookups, &e) ||
	    v2_params_life(answer->call.request, answer->now_ms, &life, &e) ||
	    v2_page_read(answer->call.request, &call->page, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
		return;
	}
	if (!call->one)
		v2_page_begin(&answer->call.json);
	call->rows.begin_ms = life.begin_ms;
	call->rows.end_ms = life.end_ms;
	call->rows.take = v2_outlet_take_row;
	call->rows.ended = v2_outlet_rows_ended;
	v2_rows_start(&call->rows);
}

static void outlet_end(struct http_request *request)
{
	if (v2_part_count(request) == 1 && slice_equal(v2_part(request, 0), SLICE("outlet")))
		begin_rows(v2_outlet_call_new(request));
	else
		v2_no_such_path(request);
}

const struct http_handler v2_outlet = V2_HANDLER(outlet_end);

/* ---- Load ------------------------------------------------------------------------------------ */

static bool load_found(struct v2_data *data)
{
	struct v2_outlet_call *call = CONTAINER_OF(data, struct v2_outlet_call, data);
	struct json_writer *json = &call->answer.call.json;
	if (!data->fetch.found) {
		api_call_fail(&call->answer.call, 400,
			      "nothing is known of the load of this outlet");
		return false;
	}
	struct buf uri;
	buf_init(&uri, URI_MAX_BYTES);
	outlet_uri(call->device, call->data.fetch.target.path[0], &uri);
	buf_append_text(&uri, "/load");
	data->points.snap_ms = MINUTE_MS;
	json_write_object_begin(json);
	v2_put_address(&call->answer, buf_slice(&uri));
	buf_release(&uri);
	v2_put_question(json, &call->params, MINUTE_MS);
	json_write_key(json, "data");
	return true;
}

static void begin_load(struct v2_outlet_call *call, const struct device *device, struct slice id)
{
	static const struct param params[] = {
		{V2_PARAM_BEGIN}, {V2_PARAM_END}, {V2_PARAM_CF}, {NULL}};
	struct v2_answer *answer = &call->answer;
	struct v2_target *target = &call->data.fetch.target;
	struct v2_plan plan;
	struct errbuf e;
	call->device = device;
	target->device = device_stored_as(device);
	target->oidset = find_load(device, &target->oid);
	target->path[0] = id;
	target->path_count = 1;
	if (!slice_equal(v2_part(answer->call.request, 4), SLICE("load"))) {
		api_call_fail(&answer->call, 400, "outlets have a load, and no \"" SHOWN "\"",
			      SHOWN_OF(v2_part(answer->call.request, 4)));
		return;
	}
	if (!target->oidset || v2_params_check(answer->call.request, params, &e)) {
		api_call_fail(&answer->call, 400, "%s",
			      target->oidset ? e.text : "the device polls no load of outlets");
		return;
	}
	int err = v2_params_data(answer->call.request, 1000, answer->now_ms, &call->params, &e);
	if (!err && call->params.has_cf && call->params.cf != CF_RAW)
		err = errbuf_set(&e, ERR_INVALID, "a load has cf=raw alone");
	call->params.cf = CF_RAW;
	if (!err)
		err = v2_plan_make(answer, target, &call->params, &plan, &e);
	if (err) {
		v2_answer_query_error(answer, e.text);
		return;
	}
	call->data.found = load_found;
	call->data.ended = v2_data_end_answer;
	v2_data_start(&call->data, answer, &plan, &call->params);
}

/* ---- Dispatch -------------------------------------------------------------------------------- */

/* An unknown strip or outlet is 404 where it is listed, and 400 where its data is asked for. */
static void below_strip(struct http_request *request, size_t parts)
{
	struct v2_outlet_call *call = v2_outlet_call_new(request);
	struct v2_answer *answer = &call->answer;
	struct slice name = v2_part(request, 1), id = {NULL, 0};
	const struct device *device = v2_find_device(answer->inventory, name, &answer->call.arena);
	if (!device || !is_strip(device)) {
		api_call_fail(&answer->call, parts == 5 ? 400 : 404,
			      "there is no power strip \"" SHOWN "\"", SHOWN_OF(name));
		return;
	}
	if (parts > 3 && v2_name_decode(v2_part(request, 3), &answer->call.arena, &id))
		id = v2_part(request, 3);
	call->rows.device = device;
	call->rows.name = id;
	call->one = parts > 3;
	if (parts == 5)
		begin_load(call, device, id);
	else
		begin_rows(call);
}

static void pdu_end(struct http_request *request)
{
	size_t parts = v2_part_count(request);
	if (!slice_equal(v2_part(request, 0), SLICE("pdu")) || parts > 5 ||
	    (parts > 2 && !slice_equal(v2_part(request, 2), SLICE("outlet"))))
		v2_no_such_path(request);
	else if (parts == 1)
		v2_device_list(request, &strips);
	else if (parts == 2)
		v2_device_get(request, &strips);
	else
		below_strip(request, parts);
}

const struct http_handler v2_pdu = V2_HANDLER(pdu_end);
