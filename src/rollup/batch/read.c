/* From marks to rows: the series are opened, their samples read in slices, and the rows of every
 * granularity computed, each from the finer one. */
#include "rollup/batch/private.h"

#include "model/series.h"

/* ---- Opening --------------------------------------------------------------------------------- */

/* One that is none would have the store refuse all of the batch. */
static bool batch_is_series(struct slice tenant, struct slice metric, struct tags tags)
{
	bool is = tenant_valid(tenant) && metric.len && metric.len <= METRIC_MAX_BYTES;
	for (size_t i = 0; i < tags.count && is; i++) {
		const struct tag *tag = &tags.list[i];
		is = tag->key.len && tag->key.len <= TAG_KEY_MAX_BYTES && tag->value.len &&
		     tag->value.len <= TAG_VALUE_MAX_BYTES;
	}
	return is;
}

static void batch_set_retention(struct rollup_batch *b, struct member *m)
{
	const struct retention_rules *rules = b->rules;
	m->fit = retention_find(rules, &b->memo, m->mark->tenant, m->metric);
	for (size_t g = 0; g < b->site->granularities.count; g++) {
		int64_t preset_ms = b->site->granularities.list[g].retention_ms;
		m->keep_ms[g] = retention_keep_ms(rules, m->fit.granularities[g], preset_ms);
		m->retention[g] = (uint8_t)retention_class_for(m->keep_ms[g]);
		b->classes[g] |= 1u << m->retention[g];
	}
	m->has_raw = batch_has_raw(b, m);
}

/* A mark whose text is no series' is of nothing: it is over. */
static int batch_add_open(struct rollup_batch *b, struct member *m)
{
	struct tags tags;
	int err = series_set_decode(m->mark->series_set, &b->arena, &m->metric, &tags);
	if (!err && !batch_is_series(m->mark->tenant, m->metric, tags))
		err = ERR_INVALID;
	if (err) {
		m->mark->finished = err == ERR_INVALID;
		return err == ERR_INVALID ? 0 : err;
	}
	struct store_request *request = store_read_add(b->read, STORE_SERIES_OPEN);
	if (!request)
		return ERR_LIMIT;
	request->series_open = (struct store_series_open){.tenant = m->mark->tenant,
							  .tags = tags,
							  .metrics = &m->metric,
							  .count = 1,
							  .find_only = true};
	m->counter = rollup_is_counter(b->site->counter_suffixes, b->site->counter_suffix_count,
				       m->metric);
	batch_set_retention(b, m);
	return 0;
}

/* The requests stand in the order of the members that have one. */
static void batch_take_handles(struct rollup_batch *b)
{
	const struct store_request *request = b->read->requests;
	for (size_t i = 0; i < b->count; i++) {
		if (b->members[i].mark->finished)
			continue;
		b->members[i].handle = request->series_open.handles[0];
		request = request->next;
	}
}

int batch_open_series(struct rollup_batch *b)
{
	int err = 0;
	store_read_reset(b->read);
	arena_reset(&b->arena);
	memset(b->classes, 0, sizeof(b->classes));
	for (size_t i = 0; i < b->count && !err; i++)
		err = batch_add_open(b, &b->members[i]);
	if (err || !b->read->requests)
		return err;
	err = batch_read(b);
	if (!err)
		batch_take_handles(b);
	return err;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* What is read of members from..to: of gauges, whose handles are handles[0], summaries by window;
 * of counters, whose are handles[1], samples. NULL: nothing is left of these. */
struct batch_data {
	struct store_request *gauges, *counters;
	size_t gauge_at; /* of the gauges, those that have their rows */
};

static enum table batch_table_of(const struct rollup_batch *b)
{
	return b->phase == BATCH_RAW ? TABLE_DATA_RAW : TABLE_DATA_LATE;
}

/* From `token` on, the beginning or where the last slice ended. */
static int batch_add_gauges(struct rollup_batch *b, const struct store_token *token,
			    struct store_request **request)
{
	int64_t start_ms = b->slot_s * 1000;
	*request = store_read_add(b->read, STORE_AGGREGATE);
	if (!*request)
		return ERR_LIMIT;
	(*request)->token = *token;
	(*request)->aggregate =
		(struct store_aggregate){.table = batch_table_of(b),
					 .handles = b->handles[0],
					 .handle_count = b->place_count[0],
					 .start_ms = start_ms,
					 .end_ms = start_ms + b->site->granularities.slot_ms,
					 .window_ms = b->site->granularities.list[0].width_ms};
	return 0;
}

static int batch_add_counters(struct rollup_batch *b, const struct store_token *token,
			      struct store_request **request)
{
	int64_t start_ms = b->slot_s * 1000;
	*request = store_read_add(b->read, STORE_RANGE);
	if (!*request)
		return ERR_LIMIT;
	(*request)->token = *token;
	(*request)->range =
		(struct store_range){.table = batch_table_of(b),
				     .handles = b->handles[1],
				     .handle_count = b->place_count[1],
				     .start_ms = start_ms,
				     .end_ms = start_ms + b->site->granularities.slot_ms};
	return 0;
}

/* The next slice of both; its memory is that of the last one. */
static int batch_read_slice(struct rollup_batch *b, struct batch_data *data)
{
	struct store_token tokens[2] = {{0}};
	struct store_request *gauges = data->gauges, *counters = data->counters;
	int err = 0;
	if (gauges)
		tokens[0] = gauges->token;
	if (counters)
		tokens[1] = counters->token;
	store_read_reset(b->read);
	if (gauges)
		err = batch_add_gauges(b, &tokens[0], &data->gauges);
	if (counters && !err)
		err = batch_add_counters(b, &tokens[1], &data->counters);
	return err ? err : batch_read(b);
}

static void batch_choose_handles(struct rollup_batch *b)
{
	b->place_count[0] = b->place_count[1] = 0;
	for (size_t i = b->from; i < b->to; i++) {
		const struct member *m = &b->members[i];
		if (!batch_reads(b, m))
			continue;
		size_t at = b->place_count[m->counter]++;
		b->handles[m->counter][at] = m->handle;
		b->places[m->counter][at] = (uint16_t)i;
	}
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* Where the row belongs that is being read. */
static struct value *batch_row_to_make(struct rollup_batch *b, size_t row, size_t member)
{
	b->members[member].late |= b->phase == BATCH_LATE;
	return batch_row_in(b, b->phase == BATCH_RAW ? b->values : b->late, row, member);
}

/* The windows of one series, first of the finest granularity, then of the next: as a gauge has them
 * or as a counter has them; the other is NULL. */
struct batch_windows {
	struct store_summary *gauge;
	struct rollup_growth *counter;
};

/* `ratio` windows become the one at `to`; false: there is nothing in them. */
static bool batch_join_summaries(struct store_summary *windows, size_t to, size_t ratio)
{
	struct store_summary sum = windows[to * ratio];
	for (size_t i = 1; i < ratio; i++)
		rollup_summary_add(&sum, &windows[to * ratio + i]);
	windows[to] = sum;
	return sum.count > 0;
}

static bool batch_join_growths(struct rollup_growth *windows, size_t to, size_t ratio)
{
	struct rollup_growth sum = windows[to * ratio];
	for (size_t i = 1; i < ratio; i++)
		rollup_growth_add(&sum, &windows[to * ratio + i]);
	windows[to] = sum;
	return sum.count > 0;
}

/* All rows of one series, each granularity from the finer one. */
static void batch_make_rows(struct rollup_batch *b, size_t member, struct batch_windows of)
{
	const struct granularities *granularities = &b->site->granularities;
	size_t row = 0;
	for (size_t g = 0; g < granularities->count; g++) {
		size_t count = batch_windows(granularities, g);
		size_t ratio = (g ? batch_windows(granularities, g - 1) : count) / count;
		for (size_t w = 0; w < count; w++, row++) {
			if (of.gauge && batch_join_summaries(of.gauge, w, ratio))
				rollup_gauge_row(&of.gauge[w], batch_row_to_make(b, row, member));
			if (of.counter && batch_join_growths(of.counter, w, ratio))
				rollup_counter_row(&of.counter[w],
						   batch_row_to_make(b, row, member));
		}
	}
}

static void batch_take_gauges(struct rollup_batch *b, struct batch_data *data)
{
	const struct store_aggregate *answer = &data->gauges->aggregate;
	for (; data->gauge_at < answer->next_handle; data->gauge_at++) {
		store_windows_spread(&answer->windows[data->gauge_at], b->windows, b->coarse);
		batch_make_rows(b, b->places[0][data->gauge_at],
				(struct batch_windows){.gauge = b->coarse});
	}
	if (!data->gauges->more)
		data->gauges = NULL;
}

static void batch_take_counters(struct rollup_batch *b, struct batch_data *data)
{
	const struct store_range *answer = &data->counters->range;
	for (size_t i = 0; i < answer->handle_count; i++) {
		const struct store_points *points = &answer->points[i];
		for (size_t p = 0; p < points->count; p++) {
			size_t window = (size_t)((points->ts_ms[p] - answer->start_ms) /
						 b->site->granularities.list[0].width_ms);
			struct value value = {points->bits[0][p],
					      (enum value_type)points->types[0][p]};
			if (value.type != VALUE_NONE)
				rollup_growth_sample(&b->growths[i * b->windows + window], value);
		}
	}
	if (!data->counters->more)
		data->counters = NULL;
}

int batch_read_data(struct rollup_batch *b)
{
	struct store_request first = {.token = {0}}; /* the beginning */
	struct batch_data data = {0};
	batch_choose_handles(b);
	memset(b->growths, 0, b->place_count[1] * b->windows * sizeof(*b->growths));
	data.gauges = b->place_count[0] ? &first : NULL;
	data.counters = b->place_count[1] ? &first : NULL;
	while (data.gauges || data.counters) {
		int err = batch_read_slice(b, &data);
		if (err)
			return err;
		if (data.gauges)
			batch_take_gauges(b, &data);
		if (data.counters)
			batch_take_counters(b, &data);
	}
	for (size_t i = 0; i < b->place_count[1]; i++)
		batch_make_rows(b, b->places[1][i],
				(struct batch_windows){.counter = &b->growths[i * b->windows]});
	return 0;
}
