/* Rows and series of the naive engine: enumerated, opened, listed, described. */
#include "naive_read.h"

/* ---- Rows and series ----------------------------------------------------------------------- */

struct row_token {
	size_t series, row;
};

static bool row_visible(const struct budget *budget, const struct naive_row *row)
{
	for (size_t i = 0; i < row->count; i++) {
		for (size_t f = 0; f < TABLE_FIELDS_MAX; f++) {
			if (naive_sample_visible(budget->naive, &row->points[i], f,
						 query_now(budget)))
				return true;
		}
	}
	return false;
}

size_t naive_all_rows(const struct naive *naive)
{
	size_t count = 0;
	for (size_t i = 0; i < naive->series_count; i++)
		count += naive->series[i].row_count;
	return count;
}

static int enumerate_samples(struct budget *budget, struct store_request *request)
{
	struct store_enumerate *e = &request->enumerate;
	struct naive *naive = budget->naive;
	struct row_token at;
	token_get(request, &at, sizeof(at));
	size_t room = slice_room(budget, e->limit, naive_all_rows(naive));
	e->rows = alloc_some(budget->read, &room, sizeof(*e->rows));
	if (!e->rows)
		return ERR_LIMIT;
	for (; at.series < naive->series_count; at.series++, at.row = 0) {
		const struct naive_series *series = &naive->series[at.series];
		for (; at.row < series->row_count; at.row++) {
			const struct naive_row *row = &series->rows[at.row];
			if (row->table != e->table || !row_visible(budget, row))
				continue;
			if (e->count == room) {
				token_set(request, &at, sizeof(at));
				return room || budget->points == 0 ? 0 : ERR_LIMIT;
			}
			e->rows[e->count++] = (struct store_row){
				.handle = naive_handle(naive, at.series),
				.period_ms = row->period_ms,
			};
			budget->points--;
		}
	}
	return 0;
}

int naive_periods(struct budget *budget, struct store_periods *out)
{
	const struct naive *naive = budget->naive;
	out->count = 0;
	out->periods_ms =
		alloc_array(budget->read, naive_all_rows(naive) + 1, sizeof(*out->periods_ms));
	if (!out->periods_ms)
		return ERR_LIMIT;
	for (size_t s = 0; s < naive->series_count; s++) {
		for (size_t r = 0; r < naive->series[s].row_count; r++) {
			const struct naive_row *row = &naive->series[s].rows[r];
			size_t at = 0;
			if (row->table != out->table || !row->count)
				continue;
			while (at < out->count && out->periods_ms[at] < row->period_ms)
				at++;
			if (at < out->count && out->periods_ms[at] == row->period_ms)
				continue;
			memmove(&out->periods_ms[at + 1], &out->periods_ms[at],
				(out->count++ - at) * sizeof(*out->periods_ms));
			out->periods_ms[at] = row->period_ms;
		}
	}
	return 0;
}

static bool has_visible_cell(const struct budget *budget, const struct naive_cells *row)
{
	for (size_t i = 0; i < row->count; i++) {
		if (naive_cell_visible(&row->cells[i], query_now(budget)))
			return true;
	}
	return false;
}

/* A row of series_sets is given with the first living series that has it. */
static bool first_of_metric(const struct naive *naive, size_t index)
{
	const struct naive_series *series = &naive->series[index];
	if (!series->alive || series->tags_text.len == 0)
		return false;
	for (size_t i = 0; i < index; i++) {
		const struct naive_series *other = &naive->series[i];
		if (other->alive && other->tags_text.len &&
		    slice_equal(other->tenant, series->tenant) &&
		    slice_equal(other->metric, series->metric))
			return false;
	}
	return true;
}

/* The key of the row with that number, or of none: false. */
static bool numbered_row(const struct budget *budget, enum table table, size_t index,
			 struct store_parts *key, struct slice *encoded)
{
	const struct naive *naive = budget->naive;
	if (table == TABLE_SERIES_SETS) {
		*key = (struct store_parts){
			{naive->series[index].tenant, naive->series[index].metric}};
		return first_of_metric(naive, index);
	}
	*encoded = naive->tables[table].rows[index].key;
	return has_visible_cell(budget, &naive->tables[table].rows[index]);
}

/* Copies the key of a row, which came as parts or encoded. */
static bool copy_key(struct store_read *read, enum table table, struct store_parts key,
		     struct slice encoded, struct store_parts *to)
{
	if (encoded.data) {
		struct slice copy = arena_copy(&read->arena, encoded);
		return copy.data &&
		       store_parts_decode(copy, schema[table].key_count, &read->arena, to) == 0;
	}
	for (size_t i = 0; i < schema[table].key_count; i++) {
		to->part[i] = arena_copy(&read->arena, key.part[i]);
		if (!to->part[i].data)
			return false;
	}
	return true;
}

static int enumerate_cells(struct budget *budget, struct store_request *request)
{
	struct store_enumerate *e = &request->enumerate;
	size_t at, count = e->table == TABLE_SERIES_SETS ? budget->naive->series_count
							 : budget->naive->tables[e->table].count;
	token_get(request, &at, sizeof(at));
	size_t room = slice_room(budget, e->limit, count);
	e->rows = alloc_some(budget->read, &room, sizeof(*e->rows));
	if (!e->rows)
		return ERR_LIMIT;
	for (; at < count; at++) {
		struct store_parts key;
		struct slice encoded = {0};
		if (!numbered_row(budget, e->table, at, &key, &encoded))
			continue;
		if (e->count == room ||
		    !copy_key(budget->read, e->table, key, encoded, &e->rows[e->count].key)) {
			token_set(request, &at, sizeof(at));
			return e->count || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		e->count++;
		budget->points--;
	}
	return 0;
}

int naive_enumerate(struct budget *budget, struct store_request *request)
{
	request->enumerate.count = 0;
	if (schema[request->enumerate.table].kind == TABLE_SAMPLES)
		return enumerate_samples(budget, request);
	return enumerate_cells(budget, request);
}

static uint64_t find_series(const struct naive *naive, struct slice tenant, struct slice metric,
			    struct slice tags_text, bool alive)
{
	for (size_t i = 0; i < naive->series_count; i++) {
		const struct naive_series *series = &naive->series[i];
		if (series->alive == alive && slice_equal(series->tags_text, tags_text) &&
		    slice_equal(series->metric, metric) && slice_equal(series->tenant, tenant))
			return naive_handle(naive, i);
	}
	return 0;
}

static uint64_t register_series(struct naive *naive, struct slice tenant, struct slice metric,
				struct slice tags_text)
{
	uint64_t forgotten =
		naive->handles_revive ? find_series(naive, tenant, metric, tags_text, false) : 0;
	if (forgotten) {
		naive_register(naive, naive_series_of(naive, forgotten));
		return forgotten;
	}
	size_t index = naive->series_count++;
	naive->series =
		mem_resize_array(naive->series, naive->series_count, sizeof(*naive->series));
	naive->series[index] = (struct naive_series){
		.tenant = naive_copy(tenant),
		.metric = naive_copy(metric),
		.tags_text = naive_copy(tags_text),
		.first_seen_ms = clock_wall_ms(naive->clock),
	};
	naive_register(naive, &naive->series[index]);
	return naive_handle(naive, index);
}

int naive_series_open(struct budget *budget, struct store_request *request)
{
	struct store_series_open *open = &request->series_open;
	struct buf text;
	open->created = 0;
	open->handles = alloc_array(budget->read, open->count, sizeof(*open->handles));
	if (!open->handles)
		return ERR_LIMIT;
	buf_init(&text, 2 * TAGS_TEXT_MAX_BYTES);
	ASSERT(tags_encode(open->tags, &text) == 0);
	for (size_t i = 0; i < open->count; i++) {
		open->handles[i] = find_series(budget->naive, open->tenant, open->metrics[i],
					       buf_slice(&text), true);
		if (open->handles[i] || open->find_only)
			continue;
		open->handles[i] = register_series(budget->naive, open->tenant, open->metrics[i],
						   buf_slice(&text));
		open->created++;
	}
	buf_release(&text);
	return 0;
}

static bool copy_series(struct budget *budget, size_t index, struct store_series *to)
{
	const struct naive_series *series = &budget->naive->series[index];
	struct arena *arena = &budget->read->arena;
	*to = (struct store_series){
		.tenant = arena_copy(arena, series->tenant),
		.metric = arena_copy(arena, series->metric),
		.tags_text = arena_copy(arena, series->tags_text),
		.first_seen_ms = series->first_seen_ms,
	};
	if (!to->tenant.data || !to->metric.data || !to->tags_text.data)
		return false;
	to->handle = naive_handle(budget->naive, index);
	return true;
}

static bool series_wanted(const struct store_series_list *list, const struct naive_series *series)
{
	return series->alive &&
	       (list->tenant.len == 0 || slice_equal(list->tenant, series->tenant)) &&
	       (list->metric.len == 0 || slice_equal(list->metric, series->metric));
}

int naive_series_list(struct budget *budget, struct store_request *request)
{
	struct store_series_list *list = &request->series_list;
	size_t at, count = budget->naive->series_count;
	token_get(request, &at, sizeof(at));
	size_t room = slice_room(budget, list->limit, count);
	list->count = 0;
	list->series = alloc_some(budget->read, &room, sizeof(*list->series));
	if (!list->series)
		return ERR_LIMIT;
	for (; at < count; at++) {
		if (!series_wanted(list, &budget->naive->series[at]))
			continue;
		if (list->count == room || !copy_series(budget, at, &list->series[list->count])) {
			token_set(request, &at, sizeof(at));
			return list->count || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		list->count++;
		budget->points--;
	}
	return 0;
}

/* The index of the first series of that tenant and metric whose number is above `after`;
 * series_count: there is none. */
static size_t next_registered(const struct naive *naive, const struct store_series_news *news,
			      uint64_t after)
{
	size_t next = naive->series_count;
	for (size_t i = 0; i < naive->series_count; i++) {
		const struct naive_series *series = &naive->series[i];
		if (series->alive && series->registration > after &&
		    slice_equal(series->tenant, news->tenant) &&
		    slice_equal(series->metric, news->metric) &&
		    (next == naive->series_count ||
		     series->registration < naive->series[next].registration))
			next = i;
	}
	return next;
}

/* Whether the news of some series that was registered after number `after` have gone. */
static bool some_news_are_gone(const struct naive *naive, const struct store_series_news *news,
			       uint64_t after)
{
	int64_t kept_ms = clock_wall_ms(naive->clock) - STORE_NEWS_MS;
	for (size_t i = 0; i < naive->series_count; i++) {
		const struct naive_series *series = &naive->series[i];
		if (series->registration > after &&
		    (series->registered_ms < kept_ms || series->registration <= naive->news_gone) &&
		    slice_equal(series->tenant, news->tenant) &&
		    slice_equal(series->metric, news->metric))
			return true;
	}
	return false;
}

int naive_series_news(struct budget *budget, struct store_request *request)
{
	struct store_series_news *news = &request->series_news;
	const struct naive *naive = budget->naive;
	uint64_t at;
	size_t next, room = slice_room(budget, news->limit, naive->series_count);
	token_get(request, &at, sizeof(at));
	at = at ? at : news->since;
	at = at ? at : naive->registrations;
	news->count = 0;
	if (some_news_are_gone(naive, news, at)) {
		if (!naive->news_gone_untold)
			return ERR_NOT_FOUND;
		at = naive->registrations;
	}
	news->series = alloc_some(budget->read, &room, sizeof(*news->series));
	if (!news->series)
		return ERR_LIMIT;
	while ((next = next_registered(naive, news, at)) < naive->series_count) {
		if (news->count == room || !copy_series(budget, next, &news->series[news->count])) {
			token_set(request, &at, sizeof(at));
			return news->count || budget->points == 0 ? 0 : ERR_LIMIT;
		}
		at = naive->series[next].registration;
		news->count++;
		budget->points--;
	}
	news->next_since = naive->registrations;
	return 0;
}

int naive_series_describe(struct budget *budget, struct store_request *request)
{
	struct store_series_describe *describe = &request->series_describe;
	describe->series = alloc_array(budget->read, describe->count, sizeof(*describe->series));
	if (!describe->series)
		return ERR_LIMIT;
	for (size_t i = 0; i < describe->count; i++) {
		struct naive_series *series = naive_series_of(budget->naive, describe->handles[i]);
		if (series && !copy_series(budget, (size_t)(series - budget->naive->series),
					   &describe->series[i]))
			return ERR_LIMIT;
	}
	return 0;
}
