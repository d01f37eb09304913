/* Reading from the naive engine: what it holds, and how a read is submitted. */
#include "naive_read.h"

/* ---- Stats --------------------------------------------------------------------------------- */

static uint64_t row_values(const struct naive_row *row)
{
	uint64_t values = 0;
	for (size_t i = 0; i < row->count; i++) {
		for (size_t f = 0; f < TABLE_FIELDS_MAX; f++)
			values += row->points[i].values[f].type != VALUE_NONE;
	}
	return values;
}

static void count_samples(const struct naive *naive, struct store_table_stats *tables)
{
	for (size_t s = 0; s < naive->series_count; s++) {
		for (size_t r = 0; r < naive->series[s].row_count; r++) {
			const struct naive_row *row = &naive->series[s].rows[r];
			tables[row->table].rows += row->count > 0;
			tables[row->table].samples += row_values(row);
		}
	}
}

static void count_cells(const struct budget *budget, struct store_table_stats *tables)
{
	for (size_t t = 0; t < TABLE_COUNT; t++) {
		const struct naive_table *table = &budget->naive->tables[t];
		for (size_t r = 0; r < table->count; r++) {
			uint64_t cells = 0;
			for (size_t c = 0; c < table->rows[r].count; c++)
				cells += naive_cell_visible(&table->rows[r].cells[c],
							    budget->read->now_ms);
			tables[t].rows += cells > 0;
			tables[t].samples += cells;
		}
	}
}

static int run_stats(struct budget *budget, struct store_request *request)
{
	count_samples(budget->naive, request->stats->tables);
	count_cells(budget, request->stats->tables);
	for (size_t i = 0; i < budget->naive->series_count; i++)
		request->stats->series += budget->naive->series[i].alive;
	return 0;
}

/* ---- Submission ---------------------------------------------------------------------------- */

static bool is_damaged(const struct naive *naive, const uint64_t *handles, size_t count)
{
	for (size_t i = 0; naive->damaged && i < count; i++) {
		if (handles[i] == naive->damaged)
			return true;
	}
	return false;
}

static bool reads_damaged(const struct naive *naive, const struct store_request *request)
{
	if (request->op == STORE_RANGE)
		return is_damaged(naive, request->range.handles, request->range.handle_count);
	if (request->op == STORE_SHARES)
		return is_damaged(naive, request->shares.handles, request->shares.handle_count);
	if (request->op == STORE_AGGREGATE)
		return is_damaged(naive, request->aggregate.handles,
				  request->aggregate.handle_count);
	return false;
}

static int run_request(struct budget *budget, struct store_request *request)
{
	if (reads_damaged(budget->naive, request))
		return ERR_DAMAGED;
	switch (request->op) {
	case STORE_RANGE:
		return naive_range(budget, request, &request->range, &request->range.points);
	case STORE_LAST_BEFORE:
		return naive_last_before(budget, request);
	case STORE_AGGREGATE:
		return naive_aggregate(budget, request);
	case STORE_CELL_GET:
		return naive_cell_get(budget, request);
	case STORE_CELL_SCAN:
		return naive_cell_scan(budget, request);
	case STORE_ENUMERATE:
		return naive_enumerate(budget, request);
	case STORE_SERIES_OPEN:
		return naive_series_open(budget, request);
	case STORE_SERIES_LIST:
		return naive_series_list(budget, request);
	case STORE_SERIES_NEWS:
		return naive_series_news(budget, request);
	case STORE_SERIES_DESCRIBE:
		return naive_series_describe(budget, request);
	case STORE_SHARES:
		return naive_shares(budget, request);
	case STORE_PERIODS:
		return naive_periods(budget, &request->periods);
	case STORE_STATS:
		return run_stats(budget, request);
	case STORE_VERIFY:
		request->verify.checked += naive_all_rows(budget->naive);
		request->verify.sentence_count = 0;
		return 0;
	}
	return ERR_INVALID;
}

/* Why the batch ends before it began, or 0. */
static int ended(const struct naive *naive, const struct store_read *read)
{
	if (read->cancelled)
		return ERR_CANCELLED;
	if (read->deadline_us && naive->clock->mono_us(naive->clock) >= read->deadline_us)
		return ERR_TIMEOUT;
	return 0;
}

int naive_read_request(struct naive *naive, struct store_read *read, struct store_request *request,
		       size_t *points)
{
	struct budget budget = {naive, read, *points};
	int end = ended(naive, read);
	request->err = end ? end : run_request(&budget, request);
	request->more |= end == ERR_TIMEOUT;
	*points = budget.points;
	return request->err;
}

static void run_requests(struct naive *naive, struct store_read *read)
{
	size_t points = read->points_max ? read->points_max : NAIVE_POINTS_PRESET;
	for (struct store_request *r = read->requests; r; r = r->next) {
		int err = naive_read_request(naive, read, r, &points);
		if (!read->err)
			read->err = err;
	}
}

static void run_read_done(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	store_read_end(read);
}

int naive_read_submit(struct store_read *read)
{
	struct naive *naive = naive_of(read->store);
	pthread_mutex_lock(&naive->lock);
	naive->endless_reads += read->deadline_us == 0 && read->requests->op <= STORE_CELL_SCAN;
	int refused = naive->refuse_reads ? naive->refuse_reads_err : 0;
	if (refused)
		naive->refuse_reads--;
	else
		run_requests(naive, read);
	pthread_mutex_unlock(&naive->lock);
	if (refused)
		return refused;
	read->task.run = run_read_done;
	read->executor->post(read->executor, &read->task);
	return 0;
}
