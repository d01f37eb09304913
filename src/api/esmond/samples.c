#include "api/esmond/samples.h"

#include "base/cursor.h"
#include "store/store.h"

static struct store_parts one_part(struct slice part)
{
	return (struct store_parts){.part = {part}};
}

static struct store_request *v2_samples_add(struct store_read *read, enum store_op op)
{
	struct store_request *request = store_read_add(read, op);
	ASSERT(request); /* one of three, in an empty read */
	return request;
}

static void ask_numbers(struct v2_samples *samples, struct store_read *read)
{
	samples->numbers = v2_samples_add(read, STORE_RANGE);
	samples->numbers->range = (struct store_range){
		.table = TABLE_RAW_DATA,
		.period_ms = samples->period_ms,
		.handles = &samples->handle,
		.handle_count = 1,
		.start_ms = samples->at_ms,
		.end_ms = samples->to_ms,
		.limit = SAMPLES_NUMBERS_MAX,
	};
}

static struct slice v2_samples_column_of(int64_t ts_ms, uint8_t *bytes)
{
	be64_put(bytes, (uint64_t)ts_ms);
	return (struct slice){(const char *)bytes, 8};
}

/* Polls are not older than 1970, and what would be stands behind all others as a column. */
static void ask_texts(struct v2_samples *samples, struct store_read *read)
{
	int64_t from_ms = samples->at_ms < 0 ? 0 : samples->at_ms;
	samples->texts = v2_samples_add(read, STORE_CELL_SCAN);
	samples->texts->cell_scan = (struct store_cell_scan){
		.table = TABLE_RAW_TEXT,
		.key = one_part(samples->row_key),
		.from = one_part(v2_samples_column_of(from_ms, samples->from)),
		.to = one_part(v2_samples_column_of(samples->to_ms, samples->to)),
		.limit = SAMPLES_TEXTS_MAX,
	};
}

/* Whether there is such a row at all, where no handle says so. */
static void ask_first_text(struct v2_samples *samples, struct store_read *read)
{
	samples->first_text = v2_samples_add(read, STORE_CELL_SCAN);
	samples->first_text->cell_scan = (struct store_cell_scan){
		.table = TABLE_RAW_TEXT, .key = one_part(samples->row_key), .limit = 1};
}

bool v2_samples_ask(struct v2_samples *samples, struct store_read *read)
{
	ASSERT(samples->at_ms < samples->to_ms && !read->requests);
	samples->numbers = samples->texts = samples->first_text = NULL;
	read->points_max = SAMPLES_NUMBERS_MAX + SAMPLES_TEXTS_MAX + 1;
	if (samples->handle)
		ask_numbers(samples, read);
	else if (samples->row_key.len && !samples->any_text)
		ask_first_text(samples, read);
	if (samples->row_key.len && samples->to_ms > 0)
		ask_texts(samples, read);
	return samples->numbers || samples->texts || samples->first_text;
}

/* ---- Both as one ----------------------------------------------------------------------------- */

static int64_t v2_samples_time_of(const struct store_cell *cell)
{
	return (int64_t)be64_get((const uint8_t *)cell->column.part[0].data);
}

/* Up to where a list of times is known to be whole. */
static int64_t whole_until(const struct v2_samples *samples, const struct store_request *request,
			   size_t count, size_t limit, int64_t last_ms)
{
	return request->more || count == limit ? last_ms + 1 : samples->to_ms;
}

static struct v2_sample *v2_samples_append(struct v2_samples *samples, int64_t ts_ms)
{
	ASSERT(samples->count < samples->room);
	struct v2_sample *sample = &samples->list[samples->count++];
	*sample = (struct v2_sample){.ts_ms = ts_ms};
	return sample;
}

static void v2_samples_merge(struct v2_samples *samples, const struct store_points *points,
			     const struct store_cell_scan *scan, int64_t until_ms)
{
	size_t n = 0, t = 0;
	while (n < points->count || t < scan->count) {
		int64_t number_ms = n < points->count ? points->ts_ms[n] : INT64_MAX;
		int64_t text_ms = t < scan->count ? v2_samples_time_of(&scan->cells[t]) : INT64_MAX;
		if ((number_ms < text_ms ? number_ms : text_ms) >= until_ms)
			return;
		if (number_ms <= text_ms) {
			v2_samples_append(samples, number_ms)->value = (struct value){
				points->bits[0][n], (enum value_type)points->types[0][n]};
			n++;
		} else {
			v2_samples_append(samples, text_ms)->json = scan->cells[t++].value;
		}
	}
}

static bool is_stuck(const struct store_request *request, size_t count)
{
	return request && request->more && !count;
}

int v2_samples_take(struct v2_samples *samples)
{
	static const struct store_points no_points;
	static const struct store_cell_scan no_cells;
	const struct store_request *numbers = samples->numbers, *texts = samples->texts;
	const struct store_points *points = numbers ? &numbers->range.points[0] : &no_points;
	const struct store_cell_scan *scan = texts ? &texts->cell_scan : &no_cells;
	int64_t until_ms = samples->to_ms;
	if (is_stuck(numbers, points->count) || is_stuck(texts, scan->count))
		return ERR_LIMIT;
	if (points->count)
		until_ms = whole_until(samples, numbers, points->count, SAMPLES_NUMBERS_MAX,
				       points->ts_ms[points->count - 1]);
	if (scan->count) {
		int64_t texts_ms = whole_until(samples, texts, scan->count, SAMPLES_TEXTS_MAX,
					       v2_samples_time_of(&scan->cells[scan->count - 1]));
		until_ms = texts_ms < until_ms ? texts_ms : until_ms;
	}
	if (points->count + scan->count > samples->room) {
		samples->room = points->count + scan->count;
		samples->list =
			mem_resize_array(samples->list, samples->room, sizeof(*samples->list));
	}
	samples->count = 0;
	v2_samples_merge(samples, points, scan, until_ms);
	samples->any_text |=
		scan->count || (samples->first_text && samples->first_text->cell_scan.count);
	samples->at_ms = until_ms;
	samples->more = until_ms < samples->to_ms;
	return 0;
}

void v2_samples_release(struct v2_samples *samples)
{
	mem_free(samples->list);
	samples->list = NULL;
	samples->room = 0;
}
