#include "query/combine.h"

#include <math.h>

#include "query/private.h"

struct combine {
	struct combine_spec spec;
	int64_t cell_ms; /* points of such a span become one cell; 0: those of one time */
	int64_t step_ms; /* from one point to the next where no gap is */
	/* The point before, of this series. */
	bool has_before;
	struct combine_point before;
	size_t added_count;
	/* With agg: the times of the group, and where in them the series is. */
	struct timed_cell *cells, *spare;
	size_t cell_count, cell_cap, at;
	uint64_t series_count; /* of the group, that have points */
	bool counted;          /* this one is */
	size_t returned;       /* of `added` or of `cells` */
	bool ended, peeked, any;
	struct combine_point peek;
	int64_t next_ms; /* the next window */
	bool holds;      /* a point that others of its tick may follow */
	struct combine_point held;
	size_t held_count;
	struct query_cell held_cell;
	/* Without agg: what was added and not yet returned. Not cleared: that is 64 KB a query. */
	struct combine_point added[COMBINE_CHUNK_MAX];
};

struct combine *combine_new(const struct combine_spec *spec)
{
	struct combine *combine = mem_alloc(sizeof(*combine));
	memset(combine, 0, offsetof(struct combine, added));
	ASSERT(spec->fill == FILL_NONE || spec->window_ms > 0);
	combine->spec = *spec;
	combine->step_ms = spec->window_ms;
	/* Zeros are counted by window. */
	if (spec->agg && spec->window_ms < spec->tick_ms && spec->fill != FILL_ZERO)
		combine->cell_ms = combine->step_ms = spec->tick_ms;
	return combine;
}

void combine_free(struct combine *combine)
{
	if (!combine)
		return;
	mem_free(combine->cells);
	mem_free(combine->spare);
	mem_free(combine);
}

void combine_begin(struct combine *combine)
{
	combine->added_count = combine->cell_count = combine->returned = 0;
	combine->series_count = 0;
	combine->ended = combine->peeked = combine->any = combine->holds = false;
}

void combine_series(struct combine *combine)
{
	combine->has_before = combine->counted = false;
	combine->at = 0;
}

void combine_end(struct combine *combine)
{
	combine->ended = true;
}

/* ---- Rates --------------------------------------------------------------------------------- */

static __int128 combine_integer_of(struct value v)
{
	return v.type == VALUE_I64 ? (__int128)(int64_t)v.bits : (__int128)v.bits;
}

/* a - b, exactly where both are integers and the result is rounded once. */
static double minus(struct value a, struct value b)
{
	if (a.type == VALUE_F64 || b.type == VALUE_F64)
		return value_as_f64(a) - value_as_f64(b);
	return (double)(combine_integer_of(a) - combine_integer_of(b));
}

/* The growth of a counter that fell. */
static double growth_over_reset(const struct combine_spec *spec, struct value from, struct value to)
{
	if (spec->has_max && value_compare(from, spec->counter_max) <= 0)
		return minus(spec->counter_max, from) + value_as_f64(to);
	return value_as_f64(to);
}

/* False: this point has no rate. */
static bool combine_rate_of(struct combine *combine, struct combine_point *point)
{
	const struct combine_spec *spec = &combine->spec;
	struct combine_point from = combine->before;
	if (!isfinite(value_as_f64(point->value)))
		return false;
	combine->before = *point;
	if (!combine->has_before) {
		combine->has_before = true;
		return false;
	}
	double seconds = (double)(point->ts_ms - from.ts_ms) / 1e3;
	bool fell = spec->counter && value_compare(point->value, from.value) < 0;
	if (fell && spec->drop_resets)
		return false;
	double growth = fell ? growth_over_reset(spec, from.value, point->value)
			     : minus(point->value, from.value);
	double rate = growth / seconds;
	if (fell && spec->reset_value > 0 && rate > spec->reset_value)
		rate = 0;
	point->value = value_f64(rate);
	return true;
}

/* ---- Several series in one ----------------------------------------------------------------- */

static void combine_make_room(struct combine *combine, size_t most)
{
	if (combine->cell_cap >= most)
		return;
	combine->cell_cap = most + most / 2;
	combine->cells =
		mem_resize_array(combine->cells, combine->cell_cap, sizeof(struct timed_cell));
	combine->spare =
		mem_resize_array(combine->spare, combine->cell_cap, sizeof(struct timed_cell));
}

/* From `at` on, cells and points are put into one order. */
static void insert_rest(struct combine *combine, size_t first)
{
	size_t at = combine->at, i = first, out = at;
	combine_make_room(combine, combine->cell_count + combine->added_count - first);
	const struct timed_cell *old = combine->cells;
	struct timed_cell *to = combine->spare;
	memcpy(to, old, at * sizeof(*to));
	while (at < combine->cell_count || i < combine->added_count) {
		const struct combine_point *point = &combine->added[i];
		bool is_old = i == combine->added_count ||
			      (at < combine->cell_count && old[at].ts_ms <= point->ts_ms);
		if (is_old)
			to[out] = old[at++];
		else
			to[out] = (struct timed_cell){.ts_ms = point->ts_ms};
		for (; i < combine->added_count && combine->added[i].ts_ms == to[out].ts_ms; i++) {
			cell_add(&to[out].cell, combine->spec.agg, combine->added[i].value);
			combine->at = out;
		}
		out++;
	}
	combine->spare = combine->cells;
	combine->cells = to;
	combine->cell_count = out;
}

/* Most series have the times of those before them. */
static int put_together(struct combine *combine, size_t *work)
{
	size_t i = 0;
	for (; i < combine->added_count; i++) {
		const struct combine_point *point = &combine->added[i];
		while (combine->at < combine->cell_count &&
		       combine->cells[combine->at].ts_ms < point->ts_ms)
			combine->at++;
		if (combine->at == combine->cell_count ||
		    combine->cells[combine->at].ts_ms != point->ts_ms)
			break;
		cell_add(&combine->cells[combine->at].cell, combine->spec.agg, point->value);
	}
	if (i < combine->added_count) {
		insert_rest(combine, i);
		*work += combine->cell_count;
	}
	combine->added_count = 0;
	return combine->cell_count > COMBINE_TIMES_MAX ? ERR_LIMIT : 0;
}

int combine_add(struct combine *combine, const struct query_chunk *chunk, size_t *work)
{
	ASSERT(chunk->count <= COMBINE_CHUNK_MAX);
	combine->added_count = 0;
	if (!combine->spec.agg)
		combine->returned = 0;
	for (size_t i = 0; i < chunk->count; i++) {
		struct combine_point point = {
			chunk->ts_ms[i], {chunk->bits[i], (enum value_type)chunk->types[i]}, false};
		if (combine->spec.rate && !combine_rate_of(combine, &point))
			continue;
		if (combine->cell_ms)
			point.ts_ms = floor_to(point.ts_ms, combine->cell_ms);
		combine->added[combine->added_count++] = point;
	}
	*work += chunk->count;
	if (combine->added_count && !combine->counted) {
		combine->counted = true;
		combine->series_count++;
	}
	return combine->spec.agg ? put_together(combine, work) : 0;
}

/* ---- What is returned ---------------------------------------------------------------------- */

/* Each of these gives the next point of its step, or false: there is none now. */
static bool next_plain(struct combine *combine, struct combine_point *point)
{
	enum query_agg agg = combine->spec.agg;
	if (!agg) {
		if (combine->returned == combine->added_count)
			return false;
		*point = combine->added[combine->returned++];
		return true;
	}
	while (combine->ended && combine->returned < combine->cell_count) {
		struct timed_cell *cell = &combine->cells[combine->returned++];
		if (combine->spec.fill == FILL_ZERO && agg != AGG_COUNT)
			cell_add_zeros(&cell->cell, agg, combine->series_count - cell->cell.count);
		*point = (struct combine_point){cell->ts_ms, cell_value(&cell->cell, agg), false};
		if (point->value.type != VALUE_NONE)
			return true;
	}
	return false;
}

static void fill_one(struct combine *combine, struct combine_point *point)
{
	*point = (struct combine_point){.ts_ms = combine->next_ms, .fills = true};
	if (combine->spec.fill == FILL_ZERO)
		point->value = value_i64(0);
	combine->next_ms += combine->step_ms;
}

/* The step in which the window begins that this time lies in. */
static int64_t step_of_window(const struct combine *combine, int64_t ts_ms)
{
	return floor_to(floor_to(ts_ms, combine->spec.window_ms), combine->step_ms);
}

static bool next_filled(struct combine *combine, struct combine_point *point)
{
	const struct combine_spec *spec = &combine->spec;
	if (!spec->fill)
		return next_plain(combine, point);
	if (!combine->peeked)
		combine->peeked = next_plain(combine, &combine->peek);
	if (!combine->any && combine->peeked)
		combine->next_ms = step_of_window(combine, spec->start_ms);
	combine->any = combine->any || combine->peeked;
	if (combine->peeked && combine->peek.ts_ms <= combine->next_ms) {
		*point = combine->peek;
		combine->peeked = false;
		combine->next_ms = point->ts_ms + combine->step_ms;
		return true;
	}
	if (!combine->peeked && !(combine->any && combine->ended &&
				  combine->next_ms <= step_of_window(combine, spec->end_ms - 1)))
		return false;
	fill_one(combine, point);
	return true;
}

static void combine_hold(struct combine *combine, const struct combine_point *point)
{
	enum query_agg same = combine->spec.same;
	if (combine->holds && !same && point->fills && !combine->held.fills)
		return;
	if (!combine->holds || combine->held.value.type == VALUE_NONE || !same) {
		combine->held = *point;
		combine->held.ts_ms = floor_to(point->ts_ms, combine->spec.tick_ms);
		combine->held_count = 1;
	} else if (point->value.type != VALUE_NONE) {
		if (combine->held_count++ == 1) {
			combine->held_cell = (struct query_cell){0};
			cell_add(&combine->held_cell, same, combine->held.value);
		}
		cell_add(&combine->held_cell, same, point->value);
	}
	combine->holds = true;
}

static void let_go(struct combine *combine, struct combine_point *point)
{
	*point = combine->held;
	if (combine->held_count > 1)
		point->value = cell_value(&combine->held_cell, combine->spec.same);
	combine->holds = false;
}

static bool next_ticked(struct combine *combine, struct combine_point *point)
{
	struct combine_point next;
	while (next_filled(combine, &next)) {
		int64_t ts_ms = floor_to(next.ts_ms, combine->spec.tick_ms);
		bool other = combine->holds && combine->held.ts_ms != ts_ms;
		if (other)
			let_go(combine, point);
		combine_hold(combine, &next);
		if (other)
			return true;
	}
	if (!combine->ended || !combine->holds)
		return false;
	let_go(combine, point);
	return true;
}

size_t combine_next(struct combine *combine, struct combine_point *points, size_t max)
{
	bool ticked = combine->spec.tick_ms > 0;
	size_t count = 0;
	while (count < max && (ticked ? next_ticked(combine, &points[count])
				      : next_filled(combine, &points[count])))
		count++;
	return count;
}
