#include "api/esmond/points.h"

#include "wire/number.h"

#define NO_TIME INT64_MIN

struct v2_grid v2_grid_of(const struct v2_range *range, int64_t step_ms)
{
	ASSERT(step_ms > 0);
	struct v2_grid grid = {.step_ms = step_ms};
	grid.first_ms = -floor_to(-range->begin * range->unit_ms, step_ms);
	grid.last_ms = floor_to(range->end * range->unit_ms, step_ms);
	if (grid.first_ms <= grid.last_ms)
		grid.count = (uint64_t)(grid.last_ms - grid.first_ms) / (uint64_t)step_ms + 1;
	return grid;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static struct value exact(const struct counter_row *row)
{
	return row->covered_ms ? value_f64((double)row->val / ((double)row->covered_ms / 1000.0))
			       : (struct value){0, VALUE_NONE};
}

/* Document E divides by whole seconds; sums of bytes are exact in doubles up to 2^53. A period that
 * a delta spans, without a sample in it, has growth and a count of none, by which nothing can be
 * divided. */
static struct value average(int64_t base_ms, const struct counter_row *row)
{
	double base_s = (double)base_ms / 1000.0;
	if (!row->count)
		return exact(row);
	return value_f64((double)row->val / (row->level ? (double)row->count * base_s : base_s));
}

static struct value extreme(double number, int64_t at_ms, const struct counter_row *row,
			    int64_t *m_ts_ms)
{
	if (!row->has_rate)
		return (struct value){0, VALUE_NONE};
	*m_ts_ms = at_ms;
	return value_f64(number);
}

struct value v2_value_of(enum v2_cf cf, int64_t base_ms, const struct counter_row *row,
			 int64_t *m_ts_ms)
{
	struct value none = {0, VALUE_NONE};
	*m_ts_ms = NO_TIME;
	if (!row->count && !(row->level && row->covered_ms))
		return none;
	switch (cf) {
	case CF_AVERAGE:
		return average(base_ms, row);
	case CF_EXACT:
		return exact(row);
	case CF_MIN:
		return extreme(row->min, row->min_ts_ms, row, m_ts_ms);
	case CF_MAX:
		return extreme(row->max, row->max_ts_ms, row, m_ts_ms);
	default:
		ASSERT(cf == CF_RAW || cf == CF_DELTA);
		return value_u64(row->val);
	}
}

/* ---- Text ------------------------------------------------------------------------------------ */

static char *v2_points_copy(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	return to + len;
}

#define PUT(to, literal) v2_points_copy(to, literal, sizeof(literal) - 1)

static bool v2_points_is_finite(struct value v)
{
	return v.type != VALUE_F64 || (v.bits >> 52 & 0x7ff) != 0x7ff;
}

static char *v2_points_put_point(struct v2_points *points, char *to, int64_t ts_ms,
				 struct value value, int64_t m_ts_ms)
{
	if (points->any)
		*to++ = ',';
	points->any = true;
	to = PUT(to, "{\"ts\":");
	to += number_print_i64(to, floor_div(ts_ms, points->unit_ms));
	to = PUT(to, ",\"val\":");
	if (value.type == VALUE_NONE || !v2_points_is_finite(value))
		to = PUT(to, "null");
	else
		to += number_print(to, value);
	if (m_ts_ms != NO_TIME) {
		to = PUT(to, ",\"m_ts\":");
		to += number_print_i64(to, floor_div(m_ts_ms, points->unit_ms));
	}
	*to++ = '}';
	return to;
}

/* ---- Steps of calc --------------------------------------------------------------------------- */

static bool is_better(enum v2_calc_func calc, struct value value, struct value than)
{
	int order = value_compare(value, than);
	return calc == CALC_MIN ? order < 0 : order > 0;
}

static void add_to_step(struct v2_points *points, struct value value, int64_t m_ts_ms)
{
	if (value.type == VALUE_NONE) {
		points->step_nulls++;
		return;
	}
	if (!points->step_values || is_better(points->calc, value, points->step_best)) {
		points->step_best = value;
		points->step_m_ts_ms = m_ts_ms;
	}
	points->step_values++;
	points->step_sum += value_as_f64(value);
}

static char *put_step(struct v2_points *points, char *to, int64_t ts_ms)
{
	struct value value = {0, VALUE_NONE};
	int64_t m_ts_ms = NO_TIME;
	uint64_t divisor = points->step_values + (points->nulls_are_zero ? points->step_nulls : 0);
	if (points->step_values && points->calc == CALC_AVERAGE) {
		value = value_f64(points->step_sum / (double)divisor);
	} else if (points->step_values) {
		value = points->step_best;
		m_ts_ms = points->step_m_ts_ms;
	}
	points->step_values = points->step_nulls = 0;
	points->step_sum = 0;
	return v2_points_put_point(points, to, ts_ms, value, m_ts_ms);
}

/* ---- Slot by slot ---------------------------------------------------------------------------- */

void v2_points_init(struct v2_points *points, const struct v2_data_params *params, int64_t base_ms,
		    int64_t row_ms)
{
	ASSERT(base_ms > 0 && row_ms > 0);
	*points = (struct v2_points){
		.cf = params->cf,
		.base_ms = base_ms,
		.row_ms = row_ms,
		.unit_ms = params->range.unit_ms,
		.grid = v2_grid_of(&params->range, params->calc ? params->calc_ms : row_ms),
		.calc = params->calc,
		.nulls_are_zero = params->nulls_are_zero,
	};
	points->next_ms = points->grid.first_ms;
	ASSERT(points->grid.step_ms % row_ms == 0);
}

int64_t v2_points_from_ms(const struct v2_points *points)
{
	return points->grid.first_ms;
}

int64_t v2_points_to_ms(const struct v2_points *points)
{
	if (!points->grid.count)
		return points->grid.first_ms;
	return points->grid.last_ms + points->grid.step_ms;
}

static char *v2_points_put_slot(struct v2_points *points, char *to, const struct counter_row *row)
{
	struct value value = {0, VALUE_NONE};
	int64_t m_ts_ms = NO_TIME, slot_ms = points->next_ms;
	if (row)
		value = v2_value_of(points->cf, points->base_ms, row, &m_ts_ms);
	points->next_ms += points->row_ms;
	if (points->calc == CALC_NONE)
		return v2_points_put_point(points, to, slot_ms, value, m_ts_ms);
	add_to_step(points, value, m_ts_ms);
	int64_t step_ms = floor_to(slot_ms, points->grid.step_ms);
	return points->next_ms - step_ms == points->grid.step_ms ? put_step(points, to, step_ms)
								 : to;
}

bool v2_points_put(struct v2_points *points, const struct counter_row *rows, size_t count,
		   size_t *used, int64_t until_ms, size_t max, struct buf *out)
{
	ASSERT(*used <= count);
	if (until_ms > v2_points_to_ms(points))
		until_ms = v2_points_to_ms(points);
	char *start = buf_reserve(out, max * V2_POINT_MAX_BYTES), *to = start;
	if (!start)
		return true; /* out->failed tells */
	for (size_t i = 0; i < max && points->next_ms < until_ms; i++) {
		while (*used < count && rows[*used].start_ms < points->next_ms)
			++*used;
		bool there = *used < count && rows[*used].start_ms == points->next_ms;
		to = v2_points_put_slot(points, to, there ? &rows[*used] : NULL);
	}
	ASSERT((size_t)(to - start) <= max * V2_POINT_MAX_BYTES);
	out->len += (size_t)(to - start);
	return points->next_ms >= until_ms;
}

static int64_t snapped(const struct v2_points *points, int64_t ts_ms)
{
	return points->snap_ms ? floor_to(ts_ms, points->snap_ms) : ts_ms;
}

static void put_json(struct v2_points *points, int64_t ts_ms, struct slice json, struct buf *out)
{
	buf_append_text(out, points->any ? ",{\"ts\":" : "{\"ts\":");
	points->any = true;
	buf_printf(out, "%lld,\"val\":", (long long)floor_div(ts_ms, points->unit_ms));
	buf_append(out, json.data, json.len);
	buf_append_char(out, '}');
}

static size_t numbers_at(const struct v2_sample *samples, size_t count)
{
	size_t n = 0;
	while (n < count && !samples[n].json.data)
		n++;
	return n;
}

static void v2_points_put_numbers(struct v2_points *points, const struct v2_sample *samples,
				  size_t count, struct buf *out)
{
	char *start = buf_reserve(out, count * V2_POINT_MAX_BYTES), *to = start;
	if (!start)
		return; /* out->failed tells */
	for (size_t i = 0; i < count; i++)
		to = v2_points_put_point(points, to, snapped(points, samples[i].ts_ms),
					 samples[i].value, NO_TIME);
	ASSERT((size_t)(to - start) <= count * V2_POINT_MAX_BYTES);
	out->len += (size_t)(to - start);
}

void v2_points_put_raw(struct v2_points *points, const struct v2_sample *samples, size_t count,
		       struct buf *out)
{
	for (size_t i = 0; i < count;) {
		size_t numbers = numbers_at(samples + i, count - i);
		if (numbers)
			v2_points_put_numbers(points, samples + i, numbers, out);
		i += numbers;
		if (i < count)
			put_json(points, snapped(points, samples[i].ts_ms), samples[i].json, out);
		i++;
	}
}
