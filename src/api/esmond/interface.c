/* /v2/interface/, /v2/device/NAME/interface/ and /v2/device/NAME/interface/IF/. */
#include "api/esmond/device.h"
#include "api/esmond/rows.h"

#include "api/esmond/esmond.h"
#include "api/esmond/name.h"
#include "api/esmond/path.h"

enum { URI_MAX_BYTES = 16 << 10 };

/* One request at work: a list, or one interface. */
struct v2_interface_call {
	struct v2_answer answer;
	struct v2_rows rows;
	struct v2_page page;
	uint64_t matched;
	/* one */
	struct slice asked;
	struct v2_row found; /* row NULL: none yet; names stay, there is one device */
	struct inventory_row found_row;
};

static void v2_interface_release(struct v2_answer *answer)
{
	struct v2_interface_call *call = CONTAINER_OF(answer, struct v2_interface_call, answer);
	v2_rows_release(&call->rows);
}

static struct v2_interface_call *v2_interface_call_new(struct http_request *request)
{
	struct v2_interface_call *call = mem_zalloc(sizeof(*call));
	v2_answer_init(&call->answer, request, NULL, v2_interface_release);
	call->rows.answer = &call->answer;
	call->rows.kind = OIDSET_INTERFACES;
	call->rows.fields = v2_interface_fields;
	return call;
}

/* ---- One interface --------------------------------------------------------------------------- */

static void put_endpoints(struct v2_answer *answer, const struct device *device,
			  struct slice interface)
{
	struct json_writer *json = &answer->call.json;
	struct v2_endpoint endpoint;
	size_t at = 0;
	json_write_key(json, "children");
	json_write_array_begin(json);
	while (v2_next_endpoint(device, &at, &endpoint)) {
		struct buf uri;
		buf_init(&uri, URI_MAX_BYTES);
		v2_interface_uri(device->name, interface, &uri);
		buf_append_char(&uri, '/');
		buf_append(&uri, endpoint.oid->endpoint_alias.data,
			   endpoint.oid->endpoint_alias.len);
		json_write_object_begin(json);
		json_put_string(json, "name", endpoint.oid->endpoint_alias);
		json_put_bool(json, "leaf", true);
		v2_put_links(answer, buf_slice(&uri));
		json_write_object_end(json);
		buf_release(&uri);
	}
	json_write_array_end(json);
}

static void v2_interface_put_interface(struct v2_answer *answer, const struct device *device,
				       const struct inventory_row *row)
{
	struct json_writer *json = &answer->call.json;
	struct buf uri;
	buf_init(&uri, URI_MAX_BYTES);
	json_write_object_begin(json);
	json_put_i64(json, "id", v2_id_of(device_stored_as(device), row->name, row->begin_ms));
	json_put_string(json, "device", device->name);
	v2_device_uri(device->name, &uri);
	json_put_string(json, "device_uri", buf_slice(&uri));
	v2_put_attributes(answer, row);
	json_put_i64(json, "begin_time", v2_seconds(row->begin_ms));
	json_put_i64(json, "end_time", v2_seconds(row->end_ms));
	json_put_bool(json, "leaf", false);
	buf_clear(&uri);
	v2_interface_uri(device->name, row->name, &uri);
	v2_put_links(answer, buf_slice(&uri));
	put_endpoints(answer, device, row->name);
	json_write_object_end(json);
	buf_release(&uri);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static bool list_one(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_interface_call *call = CONTAINER_OF(rows, struct v2_interface_call, rows);
	if (v2_page_has(&call->page, call->matched++))
		v2_interface_put_interface(&call->answer, row->device, row->row);
	return true;
}

static void list_ended(struct v2_rows *rows, int err)
{
	struct v2_interface_call *call = CONTAINER_OF(rows, struct v2_interface_call, rows);
	struct v2_answer *answer = &call->answer;
	if (err) {
		api_call_fail_with(&answer->call, err, rows->error.text);
		return;
	}
	v2_page_end(answer->call.request, &call->page, call->matched, &answer->call.json);
	api_call_end(&answer->call);
}

static int v2_interface_read_list(struct v2_interface_call *call,
				  const struct http_request *request, struct errbuf *e)
{
	static const struct param params[] = {{V2_PARAM_BEGIN}, {V2_PARAM_END}, {NULL}};
	struct v2_answer *answer = &call->answer;
	struct v2_life life;
	int err = v2_params_lookups(request, params, v2_interface_fields, &answer->call.arena,
				    &call->rows.lookups, e);
	if (!err)
		err = v2_params_life(request, answer->now_ms, &life, e);
	if (!err)
		err = v2_page_read(request, &call->page, e);
	if (err)
		return err;
	call->rows.begin_ms = life.begin_ms;
	call->rows.end_ms = life.end_ms;
	return 0;
}

static void v2_interface_begin_list(struct v2_interface_call *call)
{
	struct errbuf e;
	int err = v2_interface_read_list(call, call->answer.call.request, &e);
	if (err) {
		api_call_fail(&call->answer.call, 400, "%s", e.text);
		return;
	}
	v2_page_begin(&call->answer.call.json);
	call->rows.take = list_one;
	call->rows.ended = list_ended;
	v2_rows_start(&call->rows);
}

static void v2_interface_end(struct http_request *request)
{
	if (v2_part_count(request) == 1 && slice_equal(v2_part(request, 0), SLICE("interface")))
		v2_interface_begin_list(v2_interface_call_new(request));
	else
		v2_no_such_path(request);
}

const struct http_handler v2_interface = V2_HANDLER(v2_interface_end);

/* ---- One by name ----------------------------------------------------------------------------- */

static bool v2_interface_is_newer(const struct inventory_row *row, const struct inventory_row *than)
{
	return row->end_ms != than->end_ms ? row->end_ms > than->end_ms
					   : row->begin_ms > than->begin_ms;
}

/* Of several versions the one that ends last; a name that is exactly as asked before one that
 * only resembles it (`xe-0_2_0`). */
static bool find_one(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_interface_call *call = CONTAINER_OF(rows, struct v2_interface_call, rows);
	bool exact = slice_equal(row->row->name, rows->name);
	if (call->found.row) {
		bool was_exact = slice_equal(call->found_row.name, rows->name);
		if (exact < was_exact ||
		    (exact == was_exact && !v2_interface_is_newer(row->row, &call->found_row)))
			return true;
	}
	call->found = *row;
	call->found_row = *row->row;
	return true;
}

static void find_ended(struct v2_rows *rows, int err)
{
	struct v2_interface_call *call = CONTAINER_OF(rows, struct v2_interface_call, rows);
	struct v2_answer *answer = &call->answer;
	if (err) {
		api_call_fail_with(&answer->call, err, rows->error.text);
	} else if (!call->found.row) {
		api_call_fail(&answer->call, 404, "the device has no interface \"" SHOWN "\"",
			      SHOWN_OF(call->asked));
	} else {
		v2_interface_put_interface(answer, call->found.device, &call->found_row);
		api_call_end(&answer->call);
	}
}

static void begin_one(struct v2_interface_call *call, struct slice name)
{
	static const struct param params[] = {{V2_PARAM_BEGIN}, {V2_PARAM_END}, {NULL}};
	struct v2_answer *answer = &call->answer;
	struct v2_life life;
	struct errbuf e;
	if (v2_params_check(answer->call.request, params, &e) ||
	    v2_params_life(answer->call.request, answer->now_ms, &life, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
		return;
	}
	call->asked = name;
	if (v2_name_decode(name, &answer->call.arena, &call->rows.name))
		call->rows.name = name;
	call->rows.begin_ms = life.begin_ms;
	call->rows.end_ms = life.end_ms;
	call->rows.take = find_one;
	call->rows.ended = find_ended;
	v2_rows_start(&call->rows);
}

void v2_below_device(struct http_request *request, size_t parts)
{
	struct v2_interface_call *call;
	if (parts > 4) {
		v2_endpoint_begin(request, parts);
		return;
	}
	call = v2_interface_call_new(request);
	struct v2_answer *answer = &call->answer;
	struct slice name = v2_part(request, 1);
	call->rows.device = v2_find_device(answer->inventory, name, &answer->call.arena);
	if (!call->rows.device)
		v2_no_device(answer, 404, name);
	else if (parts == 3)
		v2_interface_begin_list(call);
	else
		begin_one(call, v2_part(request, 3));
}
