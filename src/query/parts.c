/* What a part of a stage has: its series, and what the store is asked of them. */
#include "query/private.h"

void job_set_series(struct query_job *job, size_t at, size_t count)
{
	const struct query_run *run = job->run;
	ASSERT(count <= PART_SERIES);
	job->count = count;
	for (size_t i = 0; i < count; i++) {
		job->series[i] = run->stage.series[at + i];
		job->handles[i] = run->find.series[job->series[i]].handle;
	}
}

/* Where what answers a part of the time lies. */
static struct query_home parts_home_of(const struct query_run *run, int granularity)
{
	if (granularity < 0)
		return run->home;
	return (struct query_home){TABLE_DATA_DOWNSAMPLED,
				   run->engine->options.granularities->list[granularity].width_ms};
}

/* Buckets begin with whole seconds, and a row of late points counts as if it began with its bucket.
 */
static int64_t edge_of(int granularity, int64_t ms)
{
	return granularity < 0 ? ms : floor_to(ms + 999, 1000);
}

struct store_request *job_ask_windows(struct query_job *job, int granularity,
				      enum rollup_field field, int64_t start_ms, int64_t end_ms,
				      int64_t window_ms)
{
	struct query_home home = parts_home_of(job->run, granularity);
	struct store_request *request = store_read_add(job->read, STORE_AGGREGATE);
	request->aggregate = (struct store_aggregate){
		.table = home.table,
		.period_ms = home.period_ms,
		.handles = job->handles,
		.handle_count = job->count,
		.field = granularity < 0 ? 0 : field,
		.start_ms = edge_of(granularity, start_ms),
		.end_ms = edge_of(granularity, end_ms),
		.window_ms = window_ms,
	};
	return request;
}

void job_ask_points(struct query_job *job, int granularity, unsigned fields, int64_t start_ms,
		    int64_t end_ms)
{
	struct query_home home = parts_home_of(job->run, granularity);
	job->main = store_read_add(job->read, STORE_RANGE);
	job->main->token = job->token;
	job->main->range = (struct store_range){
		.table = home.table,
		.period_ms = home.period_ms,
		.handles = job->handles,
		.handle_count = job->count,
		.start_ms = edge_of(granularity, start_ms),
		.end_ms = edge_of(granularity, end_ms),
		.fields = granularity < 0 ? 0 : fields,
	};
}

/* As many series as a reader looks through in some ms, as far as is known. */
static size_t affordable_series(const struct query_run *run)
{
	if (run->parts_rows <= run->parts_series)
		return PART_SERIES;
	double each = (double)run->parts_rows / (double)run->parts_series;
	double count = PART_ROWS / each;
	return count < 1 ? 1 : count < PART_SERIES ? (size_t)count : PART_SERIES;
}

size_t run_part_series(const struct query_run *run, size_t windows)
{
	const struct query_stage *stage = &run->stage;
	size_t left = stage->series_count - stage->series_next;
	size_t parallel = run->engine->options.parallel_max;
	size_t share = (stage->series_count + parallel - 1) / parallel;
	size_t fit = PART_WINDOWS / (windows ? windows : 1), count = affordable_series(run);
	if (share < PART_SERIES_LEAST)
		share = PART_SERIES_LEAST;
	count = count < share ? count : share;
	count = count < fit ? count : fit;
	count = count ? count : 1;
	return count < left ? count : left;
}

static int parts_by_handle(const void *a, const void *b, void *series)
{
	uint64_t x = ((const struct catalog_series *)series)[*(const uint32_t *)a].handle;
	uint64_t y = ((const struct catalog_series *)series)[*(const uint32_t *)b].handle;
	return (x > y) - (x < y);
}

/* Neighbours by handle lie together in the store. */
void run_order_series(struct query_run *run)
{
	struct query_stage *stage = &run->stage;
	size_t first = stage->row, count = stage->row_count;
	if (run->rows) {
		first = run->row_first[stage->row];
		count = run->row_first[stage->row + stage->row_count] - first;
	}
	for (size_t i = 0; i < count; i++)
		run->order[i] = run->rows ? run->row_series[first + i] : (uint32_t)(first + i);
	qsort_r(run->order, count, sizeof(*run->order), parts_by_handle, run->find.series);
	stage->series = run->order;
	stage->series_count = count;
}

struct query_chunk run_chunk(const struct query_run *run, size_t row, size_t count)
{
	return (struct query_chunk){.series_index = row,
				    .count = count,
				    .ts_ms = run->ts_ms,
				    .bits = run->bits,
				    .types = run->types};
}

void *job_clear_array(void *array, size_t *room, size_t count, size_t size_bytes)
{
	if (count > *room) {
		mem_free(array);
		array = mem_alloc_array(count, size_bytes);
		*room = count;
	}
	if (count)
		memset(array, 0, count * size_bytes);
	return array;
}
