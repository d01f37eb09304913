/* /v2/device/NAME/interface/IF/ALIAS: the data of one counter of one interface.
 *
 * Two things are read side by side: the data, and the rows of the device's interfaces, to see
 * whether that one is hidden. Which series there are decides whether the interface exists: one
 * without a row in the inventory (nobody polls that) has data all the same. */
#include "api/esmond/data.h"
#include "api/esmond/device.h"
#include "api/esmond/name.h"
#include "api/esmond/path.h"
#include "api/esmond/rows.h"

enum { ALIAS_MAX_BYTES = 1024, URI_MAX_BYTES = 16 << 10 };

struct v2_endpoint_call {
	struct v2_answer answer;
	struct v2_rows rows;
	struct v2_data data;
	struct v2_data_params params;
	struct v2_plan plan;
	const struct device *device;
	struct slice alias, asked, row_name;
	bool in_inventory, is_hidden;
};

static void v2_endpoint_release(struct v2_answer *answer)
{
	struct v2_endpoint_call *call = CONTAINER_OF(answer, struct v2_endpoint_call, answer);
	v2_rows_release(&call->rows);
	v2_data_release(&call->data);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void no_interface(struct v2_endpoint_call *call)
{
	api_call_fail(&call->answer.call, 400, "the device has no interface \"" SHOWN "\"",
		      SHOWN_OF(call->asked));
}

static void v2_endpoint_put_head(struct v2_endpoint_call *call)
{
	struct v2_answer *answer = &call->answer;
	struct json_writer *json = &answer->call.json;
	struct slice name = call->in_inventory ? call->row_name : call->data.fetch.target.path[0];
	struct buf uri;
	buf_init(&uri, URI_MAX_BYTES);
	v2_interface_uri(call->device->name, name, &uri);
	buf_append_char(&uri, '/');
	buf_append(&uri, call->alias.data, call->alias.len);
	json_write_object_begin(json);
	v2_put_address(answer, buf_slice(&uri));
	buf_release(&uri);
	v2_put_question(json, &call->params, call->plan.period_ms);
	json_write_key(json, "data");
}

static bool v2_endpoint_found(struct v2_data *data)
{
	struct v2_endpoint_call *call = CONTAINER_OF(data, struct v2_endpoint_call, data);
	if (!data->fetch.found && !call->in_inventory) {
		no_interface(call);
		return false;
	}
	v2_endpoint_put_head(call);
	return true;
}

/* ---- The interface --------------------------------------------------------------------------- */

/* The name that is exactly so, or one that it stands for (`xe-0_2_0`). */
static bool v2_endpoint_take_row(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_endpoint_call *call = CONTAINER_OF(rows, struct v2_endpoint_call, rows);
	bool exact = slice_equal(row->row->name, call->asked);
	if (exact || !call->in_inventory) {
		call->in_inventory = true;
		call->row_name = row->row->name;
		call->is_hidden = row->hidden;
	}
	return true;
}

static void v2_endpoint_rows_ended(struct v2_rows *rows, int err)
{
	struct v2_endpoint_call *call = CONTAINER_OF(rows, struct v2_endpoint_call, rows);
	if (err) {
		api_call_fail_with(&call->answer.call, err, rows->error.text);
	} else if (call->is_hidden) {
		no_interface(call);
	} else {
		v2_data_go_on(&call->data);
	}
}

static void v2_endpoint_start(struct v2_endpoint_call *call)
{
	struct v2_answer *answer = &call->answer;
	call->data.found = v2_endpoint_found;
	call->data.ended = v2_data_end_answer;
	call->data.on_hold = true;
	call->data.fetch.target.path[0] = call->asked;
	v2_data_start(&call->data, answer, &call->plan, &call->params);
	call->rows.answer = answer;
	call->rows.kind = OIDSET_INTERFACES;
	call->rows.fields = v2_interface_fields;
	call->rows.device = call->device;
	call->rows.name = call->asked;
	call->rows.with_hidden = true;
	call->rows.begin_ms = v2_range_begin_ms(&call->params.range);
	call->rows.end_ms = v2_range_end_ms(&call->params.range);
	call->rows.take = v2_endpoint_take_row;
	call->rows.ended = v2_endpoint_rows_ended;
	v2_rows_start(&call->rows);
}

/* ---- The question ---------------------------------------------------------------------------- */

/* `error/in` from the parts of the path behind the interface. */
static struct slice v2_endpoint_alias_of(struct v2_answer *answer, size_t parts)
{
	struct slice alias;
	struct buf text;
	buf_init(&text, ALIAS_MAX_BYTES);
	for (size_t i = 4; i < parts; i++) {
		struct slice part = v2_part(answer->call.request, i);
		if (i > 4)
			buf_append_char(&text, '/');
		buf_append(&text, part.data, part.len);
	}
	alias = arena_copy(&answer->call.arena, buf_slice(&text));
	buf_release(&text);
	return alias.data ? alias : SLICE("");
}

static int find_target(struct v2_endpoint_call *call, const struct device *device, size_t parts,
		       struct errbuf *e)
{
	struct v2_answer *answer = &call->answer;
	struct v2_target *target = &call->data.fetch.target;
	call->device = device;
	call->alias = v2_endpoint_alias_of(answer, parts);
	struct slice oidset = http_param(answer->call.request, "oidset");
	struct v2_endpoint endpoint;
	if (!v2_find_endpoint(device, call->alias, oidset, &endpoint))
		return errbuf_set(e, ERR_NOT_FOUND,
				  "no OIDSet of the device has an endpoint \"" SHOWN "\"",
				  SHOWN_OF(call->alias));
	*target = (struct v2_target){
		.device = device_stored_as(device),
		.oidset = endpoint.oidset,
		.oid = endpoint.oid,
		.path_count = 1,
	};
	return 0;
}

const struct param v2_endpoint_params[] = {{V2_PARAM_BEGIN},
					   {V2_PARAM_END},
					   {V2_PARAM_AGG},
					   {V2_PARAM_CF},
					   {V2_PARAM_CALC},
					   {V2_PARAM_CALC_FUNC},
					   {V2_PARAM_NULLS},
					   {"oidset", .help = "Of this OIDSet; else of the first."},
					   {NULL}};

void v2_endpoint_begin(struct http_request *request, size_t parts)
{
	struct v2_endpoint_call *call = mem_zalloc(sizeof(*call));
	struct v2_answer *answer = &call->answer;
	struct slice name = v2_part(request, 1);
	struct errbuf e;
	v2_answer_init(answer, request, NULL, v2_endpoint_release);
	const struct device *device = v2_find_device(answer->inventory, name, &answer->call.arena);
	if (!device) {
		v2_no_device(answer, 400, name);
		return;
	}
	if (v2_params_check(request, v2_endpoint_params, &e) ||
	    find_target(call, device, parts, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
		return;
	}
	if (v2_params_data(request, 1000, answer->now_ms, &call->params, &e) ||
	    v2_plan_make(answer, &call->data.fetch.target, &call->params, &call->plan, &e)) {
		v2_answer_query_error(answer, e.text);
		return;
	}
	if (v2_name_decode(v2_part(request, 3), &answer->call.arena, &call->asked))
		call->asked = v2_part(request, 3);
	v2_endpoint_start(call);
}
