/* /v2/timeseries/TYPE/NS/DEV/OIDSET/OID/PATH../FREQ_MS: one row key's data, in milliseconds. The
 * path may have any depth that the OIDSet's rows have: none for sysUpTime. What is asked need not
 * be in the inventory any more: what is stored under a name that no device has is found by it. */
#include "api/esmond/data.h"
#include "api/esmond/esmond.h"
#include "api/esmond/key.h"

struct v2_timeseries_call {
	struct v2_answer answer;
	struct v2_data data;
	struct v2_data_params params;
	struct v2_plan plan;
};

static void v2_timeseries_release(struct v2_answer *answer)
{
	struct v2_timeseries_call *call = CONTAINER_OF(answer, struct v2_timeseries_call, answer);
	v2_data_release(&call->data);
}

static bool v2_timeseries_found(struct v2_data *data)
{
	struct v2_timeseries_call *call = CONTAINER_OF(data, struct v2_timeseries_call, data);
	struct v2_answer *answer = &call->answer;
	struct json_writer *json = &answer->call.json;
	if (!data->fetch.found) {
		v2_answer_query_error(answer, "no corresponding keys");
		return false;
	}
	json_write_object_begin(json);
	struct slice path = v2_path_of(answer->call.request);
	while (path.data[path.len - 1] == '/')
		path.len--;
	v2_put_address(answer, path);
	v2_put_question(json, &call->params, call->plan.period_ms);
	json_write_key(json, "data");
	return true;
}

const struct param v2_timeseries_params[] = {
	{V2_PARAM_BEGIN},     {V2_PARAM_END},   {V2_PARAM_CF}, {V2_PARAM_CALC},
	{V2_PARAM_CALC_FUNC}, {V2_PARAM_NULLS}, {NULL}};

static void v2_timeseries_end(struct http_request *request)
{
	struct v2_timeseries_call *call;
	struct v2_key key;
	struct errbuf e;
	if (!slice_equal(v2_part(request, 0), SLICE("timeseries")) ||
	    v2_part_count(request) < V2_KEY_PATH_PARTS_MIN) {
		v2_no_such_path(request);
		return;
	}
	call = mem_zalloc(sizeof(*call));
	struct v2_answer *answer = &call->answer;
	v2_answer_init(answer, request, NULL, v2_timeseries_release);
	if (v2_params_check(request, request->route->params, &e) ||
	    v2_key_of_path(answer, &key, &e)) {
		api_call_fail(&answer->call, 400, "%s", e.text);
		return;
	}
	call->data.fetch.target = key.target;
	call->data.found = v2_timeseries_found;
	call->data.ended = v2_data_end_answer;
	if (v2_params_data(request, 1, answer->now_ms, &call->params, &e) ||
	    v2_key_plan(answer, &key, &call->params, &call->plan, &e))
		v2_answer_query_error(answer, e.text);
	else
		v2_data_start(&call->data, answer, &call->plan, &call->params);
}

const struct http_handler v2_timeseries = V2_HANDLER(v2_timeseries_end);
