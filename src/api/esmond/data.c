#include "api/esmond/data.h"

#include <stdio.h>

#include "conf/conf.h"

enum { SLOTS_A_TURN = 4096, PERIODS_TEXT_BYTES = 200 };

#define POINTS_MAX UINT64_C(10000000)

/* ---- Plans ----------------------------------------------------------------------------------- */

static bool is_stored(const struct oidset *oidset, int64_t period_ms)
{
	if (period_ms == oidset->frequency_ms)
		return true;
	for (size_t i = 0; i < oidset->aggregate_count && i < COUNTER_PERIODS_MAX; i++) {
		if (oidset->aggregates_ms[i] == period_ms)
			return true;
	}
	return false;
}

/* `30, 3600, 86400` */
static void list_periods(const struct oidset *oidset, char *to)
{
	int n = snprintf(to, PERIODS_TEXT_BYTES, "%lld",
			 (long long)v2_seconds(oidset->frequency_ms));
	for (size_t i = 0; i < oidset->aggregate_count && n < PERIODS_TEXT_BYTES; i++)
		n += snprintf(to + n, (size_t)(PERIODS_TEXT_BYTES - n), ", %lld",
			      (long long)v2_seconds(oidset->aggregates_ms[i]));
}

static int check_period(const struct v2_target *target, int64_t period_ms, struct errbuf *e)
{
	char periods[PERIODS_TEXT_BYTES];
	if (is_stored(target->oidset, period_ms))
		return 0;
	list_periods(target->oidset, periods);
	return errbuf_set(e, ERR_INVALID, "agg %lld is not stored: " SHOWN " has %s",
			  (long long)v2_seconds(period_ms), SHOWN_OF(target->oidset->name),
			  periods);
}

static int check_cf(const struct v2_target *target, const struct v2_data_params *params,
		    const struct v2_plan *plan, struct errbuf *e)
{
	bool is_base = plan->period_ms == target->oidset->frequency_ms;
	if (!plan->raw && !target->oid->aggregate)
		return errbuf_set(e, ERR_INVALID, SHOWN " has no rates: ask for cf=raw",
				  SHOWN_OF(target->oid->name));
	if (is_base && (params->cf == CF_MIN || params->cf == CF_MAX))
		return errbuf_set(e, ERR_INVALID, "cf %s is of aggregates: give an agg above %lld",
				  v2_cf_text(params->cf), (long long)v2_seconds(plan->period_ms));
	if (plan->raw && params->calc)
		return errbuf_set(e, ERR_INVALID, "calc is of rates, not of cf raw");
	if (params->calc && params->calc_ms % plan->period_ms)
		return errbuf_set(e, ERR_INVALID, "calc %lld is no multiple of %lld",
				  (long long)v2_seconds(params->calc_ms),
				  (long long)v2_seconds(plan->period_ms));
	return 0;
}

int v2_plan_make(const struct v2_answer *answer, const struct v2_target *target,
		 const struct v2_data_params *params, struct v2_plan *plan, struct errbuf *e)
{
	const struct conf *conf = answer->call.api->conf;
	uint64_t points_max = conf ? (uint64_t)conf->query_points_max : POINTS_MAX;
	plan->period_ms = params->has_agg ? params->agg_ms : target->oidset->frequency_ms;
	plan->raw = params->cf == CF_RAW && plan->period_ms == target->oidset->frequency_ms;
	int err = check_period(target, plan->period_ms, e);
	if (!err)
		err = check_cf(target, params, plan, e);
	if (err)
		return err;
	struct v2_grid grid = v2_grid_of(&params->range, plan->period_ms);
	if (plan->raw || grid.count <= points_max)
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "that are %llu points, and one answer has at most %llu "
			  "(query.points_max): ask for less time or a longer agg",
			  (unsigned long long)grid.count, (unsigned long long)points_max);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void v2_data_step(struct v2_data *data);

static struct v2_data *data_of(struct v2_answer *answer)
{
	ASSERT(answer->data);
	return answer->data;
}

static void v2_data_advance(struct api_call *base)
{
	struct v2_answer *answer = v2_answer_of(base);
	v2_data_step(data_of(answer));
}

static void v2_data_end(struct v2_data *data, int err)
{
	struct v2_answer *answer = data->fetch.answer;
	if (!err && data->began)
		buf_append_char(&answer->call.out, ']');
	answer->data = NULL;
	data->ended(data, err);
}

/* The array is put in by hand, since the points are: the writer only learns that a value stands
 * there. */
static void begin_array(struct v2_data *data)
{
	json_write_raw(&data->fetch.answer->call.json, SLICE("["));
	data->began = true;
}

/* Of the piece that is there; false: not all of it was written. */
static bool v2_data_put_piece(struct v2_data *data)
{
	struct v2_fetch *fetch = &data->fetch;
	struct buf *out = &fetch->answer->call.out;
	if (!fetch->raw) {
		int64_t until_ms = fetch->more ? fetch->until_ms : INT64_MAX;
		return v2_points_put(&data->points, fetch->rows, fetch->count, &data->used,
				     until_ms, SLOTS_A_TURN, out);
	}
	ASSERT(data->used <= fetch->count);
	size_t count = fetch->count - data->used;
	if (count > SLOTS_A_TURN)
		count = SLOTS_A_TURN;
	v2_points_put_raw(&data->points, fetch->samples + data->used, count, out);
	data->used += count;
	return data->used == fetch->count;
}

static void v2_data_step(struct v2_data *data)
{
	struct v2_answer *answer = data->fetch.answer;
	if (data->waiting || !api_call_room(&answer->call))
		return;
	if (!v2_data_put_piece(data)) {
		api_call_later(&answer->call);
	} else if (data->fetch.more) {
		data->waiting = true;
		data->used = 0;
		v2_fetch_next(&data->fetch);
	} else {
		v2_data_end(data, 0);
	}
}

/* The first piece, or the next, or an error. */
static void take_piece(struct v2_data *data)
{
	struct v2_fetch *fetch = &data->fetch;
	if (fetch->err) {
		v2_data_end(data, fetch->err);
		return;
	}
	if (!data->began) {
		if (data->found && !data->found(data))
			return;
		begin_array(data);
	}
	api_call_go_on(&fetch->answer->call);
}

static void v2_data_got(struct v2_fetch *fetch)
{
	struct v2_data *data = CONTAINER_OF(fetch, struct v2_data, fetch);
	ASSERT(data->waiting);
	data->waiting = false;
	if (!data->on_hold)
		take_piece(data);
}

void v2_data_go_on(struct v2_data *data)
{
	struct v2_answer *answer = data->fetch.answer;
	ASSERT(data->on_hold && !data->began);
	data->on_hold = false;
	answer->data = data;
	answer->call.advance = v2_data_advance;
	if (!data->waiting)
		take_piece(data);
}

void v2_data_start(struct v2_data *data, struct v2_answer *answer, const struct v2_plan *plan,
		   const struct v2_data_params *params)
{
	struct v2_fetch *fetch = &data->fetch;
	ASSERT(data->ended);
	v2_points_init(&data->points, params, fetch->target.oidset->frequency_ms, plan->period_ms);
	data->used = 0;
	data->began = false;
	data->waiting = true;
	fetch->answer = answer;
	fetch->raw = plan->raw;
	fetch->period_ms = plan->period_ms;
	fetch->from_ms = v2_points_from_ms(&data->points);
	fetch->to_ms = v2_points_to_ms(&data->points);
	if (plan->raw) {
		fetch->from_ms = v2_range_begin_ms(&params->range);
		fetch->to_ms = v2_range_end_ms(&params->range) + 1;
	}
	fetch->got = v2_data_got;
	if (!data->on_hold) {
		answer->data = data;
		answer->call.advance = v2_data_advance;
	}
	v2_fetch_start(fetch);
}

void v2_data_release(struct v2_data *data)
{
	v2_fetch_release(&data->fetch);
}

void v2_data_end_answer(struct v2_data *data, int err)
{
	struct v2_answer *answer = data->fetch.answer;
	if (err) {
		api_call_fail_with(&answer->call, err, data->fetch.error.text);
		return;
	}
	json_write_object_end(&answer->call.json);
	api_call_end(&answer->call);
}

void v2_put_question(struct json_writer *json, const struct v2_data_params *params, int64_t agg_ms)
{
	char text[32];
	json_put_i64(json, "begin_time", params->range.begin);
	json_put_i64(json, "end_time", params->range.end);
	if (params->calc) {
		snprintf(text, sizeof(text), "%lld", (long long)v2_seconds(params->calc_ms));
		json_put_string(json, "calc", slice_of(text));
		json_put_string(json, "calc_func", slice_of(v2_calc_text(params->calc)));
		return;
	}
	snprintf(text, sizeof(text), "%lld", (long long)floor_div(agg_ms, params->range.unit_ms));
	if (agg_ms)
		json_put_string(json, "agg", slice_of(text));
	else
		json_put_null(json, "agg");
	json_put_string(json, "cf", slice_of(v2_cf_text(params->cf)));
}
