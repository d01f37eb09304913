/* POST /v2/bulk/interface/ and /v2/bulk/timeseries/: many counters in one answer, one after the
 * other. What is wrong with one item is said in its place; the others are answered. */
#include "api/esmond/data.h"
#include "api/esmond/esmond.h"
#include "api/esmond/key.h"
#include "api/esmond/path.h"
#include "api/esmond/rows.h"
#include "conf/conf.h"

enum { ITEMS_PRESET = 10000, ENDPOINTS_MAX = 64 };

/* One request at work. An item is an interface and an endpoint, or a path. */
struct v2_bulk_call {
	struct v2_answer answer;
	struct v2_rows rows;
	struct v2_data data;
	struct v2_data_params params;
	bool is_timeseries;
	enum v2_type type;
	const struct json *list, *item; /* interfaces or paths */
	size_t endpoint_count, endpoint;
	struct slice endpoints[ENDPOINTS_MAX];
	struct slice interface; /* of the item, as it is stored */
	bool in_inventory, is_hidden;
};

static void next_item(struct api_call *base);

static void v2_bulk_release(struct v2_answer *answer)
{
	struct v2_bulk_call *call = CONTAINER_OF(answer, struct v2_bulk_call, answer);
	v2_rows_release(&call->rows);
	v2_data_release(&call->data);
}

/* ---- Items ----------------------------------------------------------------------------------- */

static void v2_bulk_put_member(struct json_writer *json, const char *key, const struct json *member)
{
	json_write_key(json, key);
	if (member)
		json_write_tree(json, member);
	else
		json_write_null(json);
}

/* Numbers with their digits as they were sent. */
static void put_echo(struct json_writer *json, const struct json *item)
{
	if (item->type == JSON_T_NUMBER)
		json_write_raw(json, item->text);
	else
		json_write_tree(json, item);
}

static void v2_bulk_put_parts(struct json_writer *json, const struct json *item)
{
	if (item->type != JSON_T_ARRAY) {
		put_echo(json, item);
		return;
	}
	json_write_array_begin(json);
	for (const struct json *part = item->first; part; part = part->next)
		put_echo(json, part);
	json_write_array_end(json);
}

static void v2_bulk_put_path(struct v2_bulk_call *call)
{
	struct json_writer *json = &call->answer.call.json;
	json_write_object_begin(json);
	json_write_key(json, "path");
	if (call->is_timeseries) {
		v2_bulk_put_parts(json, call->item);
		return;
	}
	json_write_object_begin(json);
	v2_bulk_put_member(json, "dev", json_member(call->item, "device"));
	v2_bulk_put_member(json, "iface", json_member(call->item, "iface"));
	json_put_string(json, "endpoint", call->endpoints[call->endpoint]);
	json_write_object_end(json);
}

/* Goes on to the item behind this one, when others had their turn. */
static void v2_bulk_pass(struct v2_bulk_call *call)
{
	if (call->is_timeseries || ++call->endpoint == call->endpoint_count) {
		call->item = call->item->next;
		call->endpoint = 0;
	}
	call->answer.call.advance = next_item;
	api_call_later(&call->answer.call);
}

static void v2_bulk_put_error(struct v2_bulk_call *call, const char *sentence)
{
	v2_bulk_put_path(call);
	json_put_string(&call->answer.call.json, "error", slice_of(sentence));
	json_write_object_end(&call->answer.call.json);
	v2_bulk_pass(call);
}

static bool v2_bulk_found(struct v2_data *data)
{
	struct v2_bulk_call *call = CONTAINER_OF(data, struct v2_bulk_call, data);
	if (!data->fetch.found && (call->is_timeseries || !call->in_inventory)) {
		call->answer.data = NULL;
		v2_bulk_put_error(call, call->is_timeseries ? "no corresponding keys"
							    : "the device has no such interface");
		return false;
	}
	v2_bulk_put_path(call);
	json_write_key(&call->answer.call.json, "data");
	return true;
}

static void v2_bulk_ended(struct v2_data *data, int err)
{
	struct v2_bulk_call *call = CONTAINER_OF(data, struct v2_bulk_call, data);
	if (err && !data->began) {
		struct errbuf e = data->fetch.error;
		v2_bulk_put_error(call, e.text[0] ? e.text : err_text(err));
	} else if (err) {
		api_call_fail_with(&call->answer.call, err, data->fetch.error.text);
	} else {
		json_write_object_end(&call->answer.call.json);
		v2_bulk_pass(call);
	}
}

static void v2_bulk_fetch(struct v2_bulk_call *call, const struct v2_plan *plan,
			  const struct v2_data_params *params)
{
	v2_data_release(&call->data);
	call->data.found = v2_bulk_found;
	call->data.ended = v2_bulk_ended;
	v2_data_start(&call->data, &call->answer, plan, params);
}

/* ---- Interfaces ------------------------------------------------------------------------------ */

static bool v2_bulk_take_row(struct v2_rows *rows, const struct v2_row *row)
{
	struct v2_bulk_call *call = CONTAINER_OF(rows, struct v2_bulk_call, rows);
	if (!call->in_inventory || slice_equal(row->row->name, rows->name)) {
		call->interface = row->row->name;
		call->in_inventory = true;
		call->is_hidden = row->hidden;
	}
	return true;
}

static void fetch_endpoint(struct v2_bulk_call *call)
{
	struct v2_target *target = &call->data.fetch.target;
	struct slice alias = call->endpoints[call->endpoint];
	struct v2_endpoint endpoint;
	struct v2_plan plan;
	struct errbuf e;
	if (!v2_find_endpoint(call->rows.device, alias, SLICE(""), &endpoint)) {
		v2_bulk_put_error(call, "no OIDSet of the device has such an endpoint");
		return;
	}
	*target = (struct v2_target){
		.device = device_stored_as(call->rows.device),
		.oidset = endpoint.oidset,
		.oid = endpoint.oid,
		.path = {call->interface},
		.path_count = 1,
	};
	if (v2_plan_make(&call->answer, target, &call->params, &plan, &e))
		v2_bulk_put_error(call, e.text);
	else
		v2_bulk_fetch(call, &plan, &call->params);
}

static void v2_bulk_rows_ended(struct v2_rows *rows, int err)
{
	struct v2_bulk_call *call = CONTAINER_OF(rows, struct v2_bulk_call, rows);
	/* Nothing is known of the interface then: the next endpoint has it looked for again. */
	if (err)
		rows->device = NULL;
	if (err)
		v2_bulk_put_error(call, rows->error.text[0] ? rows->error.text : err_text(err));
	else if (call->is_hidden)
		v2_bulk_put_error(call, "the device has no such interface");
	else
		fetch_endpoint(call);
}

static void v2_bulk_begin_interface(struct v2_bulk_call *call)
{
	struct v2_answer *answer = &call->answer;
	struct slice device, interface;
	struct errbuf e;
	call->rows.device = NULL;
	if (json_get_text(call->item, "device", &device, &e) ||
	    json_get_text(call->item, "iface", &interface, &e)) {
		v2_bulk_put_error(call, e.text);
		return;
	}
	v2_rows_release(&call->rows);
	call->rows = (struct v2_rows){
		.answer = answer,
		.kind = OIDSET_INTERFACES,
		.fields = v2_interface_fields,
		.device = v2_find_device(answer->inventory, device, &answer->call.arena),
		.name = interface,
		.with_hidden = true,
		.begin_ms = v2_range_begin_ms(&call->params.range),
		.end_ms = v2_range_end_ms(&call->params.range),
		.take = v2_bulk_take_row,
		.ended = v2_bulk_rows_ended,
	};
	call->in_inventory = call->is_hidden = false;
	call->interface = interface;
	if (call->rows.device)
		v2_rows_start(&call->rows);
	else
		v2_bulk_put_error(call, "there is no such device");
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static int v2_bulk_read_path(struct v2_bulk_call *call, struct v2_key *key, struct errbuf *e)
{
	struct slice parts[HTTP_SEGMENTS_MAX];
	size_t count = 0;
	if (call->item->type != JSON_T_ARRAY || call->item->count > HTTP_SEGMENTS_MAX)
		return errbuf_set(e, ERR_INVALID, "a path is an array of its parts");
	for (const struct json *part = call->item->first; part; part = part->next) {
		if (part->type != JSON_T_STRING && part->type != JSON_T_NUMBER)
			return errbuf_set(e, ERR_INVALID, "a path is an array of its parts");
		parts[count++] = part->text;
	}
	return v2_key_read(call->answer.inventory, parts, count, &call->answer.call.arena, key, e);
}

static void begin_path(struct v2_bulk_call *call)
{
	struct v2_data_params params = call->params;
	struct v2_key key = {.type = call->type};
	struct v2_plan plan;
	struct errbuf e;
	if (v2_bulk_read_path(call, &key, &e) ||
	    v2_key_plan(&call->answer, &key, &params, &plan, &e)) {
		v2_bulk_put_error(call, e.text);
		return;
	}
	call->data.fetch.target = key.target;
	v2_bulk_fetch(call, &plan, &params);
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Each once, where it follows itself: clients send them so. */
static void put_device_names(struct v2_bulk_call *call)
{
	const struct json *before = NULL;
	for (const struct json *item = call->list->first; item; item = item->next) {
		const struct json *name = json_member(item, "device");
		if (!name || (before && slice_equal(name->text, before->text)))
			continue;
		json_write_tree(&call->answer.call.json, name);
		before = name;
	}
}

static void put_tail(struct v2_bulk_call *call)
{
	struct v2_answer *answer = &call->answer;
	struct json_writer *json = &answer->call.json;
	int64_t agg_ms = 0;
	json_write_array_end(json);
	if (!call->is_timeseries) {
		json_put_strings(json, "iface_dataset", call->endpoints, call->endpoint_count);
		json_write_key(json, "device_names");
		json_write_array_begin(json);
		put_device_names(call);
		json_write_array_end(json);
		agg_ms = call->params.agg_ms;
	}
	v2_put_question(json, &call->params, agg_ms);
	v2_put_address(answer, call->is_timeseries ? SLICE("/v2/bulk/timeseries/")
						   : SLICE("/v2/bulk/interface/"));
	json_write_object_end(json);
}

static void next_item(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	struct v2_bulk_call *call = CONTAINER_OF(answer, struct v2_bulk_call, answer);
	if (!api_call_room(&answer->call))
		return;
	if (!call->item) {
		put_tail(call);
		api_call_end(&answer->call);
	} else if (call->is_timeseries) {
		begin_path(call);
	} else if (call->endpoint && call->rows.device) {
		v2_bulk_rows_ended(&call->rows,
				   0); /* the interface was found for the endpoint before */
	} else {
		v2_bulk_begin_interface(call);
	}
}

/* ---- The question ---------------------------------------------------------------------------- */

/* A number, or a text as of a parameter. */
static int v2_bulk_read_time(const struct json *body, const char *key, int64_t unit_ms,
			     int64_t now_ms, int64_t *time, bool *given, struct errbuf *e)
{
	const struct json *member = json_member(body, key);
	int err = ERR_INVALID;
	*given = member && member->type != JSON_T_NULL;
	if (!*given)
		return 0;
	if (member->type == JSON_T_NUMBER)
		err = v2_time_of(value_as_f64(member->number), unit_ms, time);
	else if (member->type == JSON_T_STRING)
		err = v2_time_parse(member->text, unit_ms, now_ms, time);
	return err ? v2_time_refuse(e, key, member->text, unit_ms) : 0;
}

static int v2_bulk_read_range(struct v2_bulk_call *call, const struct json *body, struct errbuf *e)
{
	struct v2_range *range = &call->params.range;
	range->unit_ms = call->is_timeseries ? 1 : 1000;
	int64_t now_ms = call->answer.now_ms;
	int err = v2_bulk_read_time(body, "begin", range->unit_ms, now_ms, &range->begin,
				    &range->has_begin, e);
	if (!err)
		err = v2_bulk_read_time(body, "end", range->unit_ms, now_ms, &range->end,
					&range->has_end, e);
	return err ? err : v2_range_settle(range, now_ms, e);
}

/* `agg` in seconds, a number or a text that is one, and `cf`. */
static int read_agg_and_cf(struct v2_bulk_call *call, const struct json *body, struct errbuf *e)
{
	struct v2_data_params *params = &call->params;
	const struct json *agg = json_member(body, "agg"), *cf = json_member(body, "cf");
	if (agg && agg->type != JSON_T_NULL) {
		params->has_agg = true;
		if ((agg->type != JSON_T_NUMBER && agg->type != JSON_T_STRING) ||
		    v2_period_parse(agg->text, &params->agg_ms))
			return errbuf_set(e, ERR_INVALID, "agg is not a number of seconds");
	}
	if (cf && cf->type != JSON_T_NULL) {
		params->has_cf = true;
		if (cf->type != JSON_T_STRING || v2_cf_parse(cf->text, &params->cf))
			return errbuf_set(e, ERR_INVALID,
					  "cf is none of average, exact, min, max, raw, delta");
	}
	return 0;
}

static int read_endpoints(struct v2_bulk_call *call, const struct json *body, struct errbuf *e)
{
	const struct json *endpoint = json_member(body, "endpoint");
	const struct json *first = endpoint;
	if (!endpoint)
		return errbuf_set(e, ERR_INVALID, "endpoint is missing");
	if (endpoint->type == JSON_T_ARRAY)
		first = endpoint->first;
	for (const struct json *item = first; item; item = item->next) {
		if (item->type != JSON_T_STRING || call->endpoint_count == ENDPOINTS_MAX)
			return errbuf_set(e, ERR_INVALID, "endpoint is a list of at most %d names",
					  ENDPOINTS_MAX);
		call->endpoints[call->endpoint_count++] = item->text;
		if (item == endpoint)
			break;
	}
	return call->endpoint_count ? 0 : errbuf_set(e, ERR_INVALID, "endpoint is empty");
}

static int v2_bulk_read_list(struct v2_bulk_call *call, const struct json *body, const char *key,
			     struct errbuf *e)
{
	const struct conf *conf = call->answer.call.api->conf;
	uint64_t items_max = conf ? (uint64_t)conf->query_series_max : ITEMS_PRESET;
	int err = json_get_array(body, key, &call->list, e);
	if (err)
		return errbuf_set(e, ERR_INVALID, "%s is not a list", key);
	uint64_t items = call->list->count * (call->endpoint_count ? call->endpoint_count : 1);
	if (items > items_max)
		return errbuf_set(e, ERR_INVALID,
				  "that are %llu series, and one request has at most %llu "
				  "(query.series_max)",
				  (unsigned long long)items, (unsigned long long)items_max);
	call->item = call->list->first;
	return 0;
}

static int read_interfaces(struct v2_bulk_call *call, const struct json *body, struct errbuf *e)
{
	static const char *const names[] = {"interfaces", "endpoint", "cf", "begin",
					    "end",        "agg",      NULL};
	int err = json_check_members(body, names, e);
	if (!err)
		err = read_endpoints(call, body, e);
	return err ? err : v2_bulk_read_list(call, body, "interfaces", e);
}

static int read_paths(struct v2_bulk_call *call, const struct json *body, struct errbuf *e)
{
	static const char *const names[] = {"type", "paths", "cf", "begin", "end", NULL};
	struct slice type;
	int err = json_check_members(body, names, e);
	if (!err && json_get_text(body, "type", &type, e))
		err = errbuf_set(e, ERR_INVALID, "type is missing, or no text");
	if (!err)
		err = v2_key_type(type, &call->type, e);
	/* What the answer says of itself. */
	if (!err && call->type == TYPE_RAW_DATA)
		call->params.cf = CF_RAW;
	return err ? err : v2_bulk_read_list(call, body, "paths", e);
}

static int v2_bulk_read_body(struct v2_bulk_call *call, struct json **body, struct errbuf *e)
{
	int err = v2_params_check(call->answer.call.request, NULL, e);
	if (!err)
		err = v2_read_json(&call->answer, body, e);
	if (!err && (*body)->type != JSON_T_OBJECT)
		err = errbuf_set(e, ERR_INVALID, "the body is no object");
	if (!err)
		err = call->is_timeseries ? read_paths(call, *body, e)
					  : read_interfaces(call, *body, e);
	return err;
}

static void v2_bulk_begin(struct http_request *request, bool is_timeseries)
{
	struct v2_bulk_call *call = mem_zalloc(sizeof(*call));
	struct v2_answer *answer = &call->answer;
	struct json *body;
	struct errbuf e;
	v2_answer_init(answer, request, next_item, v2_bulk_release);
	call->is_timeseries = is_timeseries;
	answer->call.status = 201;
	int err = v2_bulk_read_body(call, &body, &e);
	if (err) {
		api_call_fail_with(&answer->call, err, e.text);
	} else if (v2_bulk_read_range(call, body, &e) || read_agg_and_cf(call, body, &e)) {
		v2_answer_query_error(answer, e.text);
	} else {
		json_write_object_begin(&answer->call.json);
		json_write_key(&answer->call.json, "data");
		json_write_array_begin(&answer->call.json);
		next_item(&answer->call);
	}
}

static void v2_bulk_interface_end(struct http_request *request)
{
	v2_bulk_begin(request, false);
}

static void v2_bulk_timeseries_end(struct http_request *request)
{
	v2_bulk_begin(request, true);
}

const struct http_handler v2_bulk_interface = V2_HANDLER(v2_bulk_interface_end);
const struct http_handler v2_bulk_timeseries = V2_HANDLER(v2_bulk_timeseries_end);
