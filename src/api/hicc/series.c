/* GET /hicc/v1/metrics/series/METRIC/SOURCE: a row as a series.
 *
 * A job reads the texts and the notes of the time. Then the numbers are asked for (numbers.h). */
#include <stdlib.h>

#include "api/hicc/asked.h"
#include "api/hicc/hicc.h"
#include "api/hicc/numbers.h"
#include "base/grow.h"
#include "base/stats.h"

enum {
	SERIES_TEXTS_MAX = 10000,
	SERIES_NOTES_MAX = 1000,
	SERIES_ARENA_MAX_BYTES = 64 << 20,
	SERIES_FLUSH_BYTES = 64 << 10,
	/* All notes stand in the answer at once. */
	SERIES_OUT_MAX_BYTES = 64 << 20,
	SERIES_CHUNK_POINTS = 1024,
	SERIES_TURN_POINTS = 8192, /* encoded before other work of the loop gets its turn */
	SERIES_ENOUGH = 1,         /* stops a walk, without an error */
};

struct hicc_cells {
	struct series_cell {
		struct row_cell cell; /* its text is in the call's arena */
		struct slice metric;  /* of a note */
	} * list;
	size_t count, room, max;
};

struct hicc_series_call {
	struct api_call call;
	struct hicc_asked asked;
	struct row row;
	struct hicc_cells texts, notes;
	struct hicc_cells *reading; /* the job's: of these two, and of which metric */
	struct slice reading_metric;
	struct hicc_numbers numbers;
	struct query *query;
	bool begun;  /* the answer is */
	size_t text; /* that is next in it */
};

static const struct api_call_kind hicc_series_kind;

static struct hicc_series_call *hicc_series_call_of(struct api_call *call)
{
	ASSERT(call->kind == &hicc_series_kind);
	return CONTAINER_OF(call, struct hicc_series_call, call);
}

/* ---- Texts and notes ------------------------------------------------------------------------- */

static int hicc_series_see(const struct row_cell *cell, void *owner)
{
	struct hicc_series_call *call = owner;
	struct hicc_cells *cells = call->reading;
	bool is_full = cells->count == cells->max;
	struct slice text = SLICE("");
	if (!is_full)
		text = arena_copy(&call->call.arena, cell->text);
	if (is_full || !text.data) {
		call->call.cut = cells == &call->texts ? "texts" : "notes";
		return SERIES_ENOUGH;
	}
	GROW(cells->list, cells->room, cells->count + 1);
	struct series_cell *kept = &cells->list[cells->count++];
	*kept = (struct series_cell){.cell = *cell, .metric = call->reading_metric};
	kept->cell.text = text;
	return 0;
}

static int hicc_series_read_cells(struct hicc_series_call *call, struct hicc_cells *cells,
				  enum row_family family, struct slice metric)
{
	const struct row_span span = {call->asked.start_ms, call->asked.end_ms, hicc_may_go_on};
	struct row row = call->row;
	row.metric = metric;
	call->reading = cells;
	call->reading_metric = metric;
	int err = row_each(call->call.api->rows, job_queue(call->call.job), &row, family, &span,
			   hicc_series_see, call, &call->call.error);
	return err == SERIES_ENOUGH ? 0 : err;
}

static int hicc_series_order(const void *a, const void *b)
{
	const struct row_cell *x = &((const struct series_cell *)a)->cell;
	const struct row_cell *y = &((const struct series_cell *)b)->cell;
	int order = (x->ts_ms > y->ts_ms) - (x->ts_ms < y->ts_ms);
	return order ? order : strcmp(x->id.text, y->id.text);
}

static void hicc_series_run(struct api_call *base)
{
	struct hicc_series_call *call = hicc_series_call_of(base);
	struct slice metric = call->row.metric;
	const char *dot = memchr(metric.data, '.', metric.len);
	int err = hicc_series_read_cells(call, &call->texts, ROW_TEXTS, metric);
	if (!err)
		err = hicc_series_read_cells(call, &call->notes, ROW_NOTES, metric);
	if (!err && dot && dot > metric.data)
		err = hicc_series_read_cells(
			call, &call->notes, ROW_NOTES,
			(struct slice){metric.data, (size_t)(dot - metric.data)});
	if (call->notes.count)
		qsort(call->notes.list, call->notes.count, sizeof(*call->notes.list),
		      hicc_series_order);
	base->err = err;
}

/* ---- Encoding -------------------------------------------------------------------------------- */

static void hicc_series_begin_answer(struct hicc_series_call *call)
{
	struct json_writer *json = &call->call.json;
	struct buf name;
	if (call->begun)
		return;
	call->begun = true;
	buf_init(&name, call->row.metric.len + call->row.source.len + 1);
	buf_append(&name, call->row.metric.data, call->row.metric.len);
	buf_append_char(&name, ':');
	buf_append(&name, call->row.source.data, call->row.source.len);
	json_write_object_begin(json);
	json_put_string(json, "name", buf_slice(&name));
	json_write_key(json, "data");
	json_write_array_begin(json);
	buf_release(&name);
}

/* Those whose time is before this one. */
static void hicc_series_put_texts(struct hicc_series_call *call, int64_t before_ms)
{
	struct json_writer *json = &call->call.json;
	for (; call->text < call->texts.count; call->text++) {
		const struct row_cell *cell = &call->texts.list[call->text].cell;
		if (cell->ts_ms >= before_ms)
			break;
		json_write_array_begin(json);
		json_write_i64(json, cell->ts_ms);
		json_write_string(json, cell->text);
		json_write_array_end(json);
	}
}

static void hicc_series_put_chunk(struct hicc_series_call *call, const struct query_chunk *chunk)
{
	struct json_writer *json = &call->call.json;
	for (size_t i = 0; i < chunk->count; i++) {
		hicc_series_put_texts(call, larger_of(chunk->ts_ms[i], call->asked.start_ms));
		hicc_numbers_put(json, chunk, i, call->asked.start_ms);
	}
}

static void hicc_series_end_answer(struct hicc_series_call *call)
{
	struct json_writer *json = &call->call.json;
	hicc_series_begin_answer(call);
	hicc_series_put_texts(call, INT64_MAX);
	json_write_array_end(json);
	if (call->notes.count) {
		json_write_key(json, "notes");
		json_write_array_begin(json);
		for (size_t i = 0; i < call->notes.count; i++)
			hicc_put_note(json, call->notes.list[i].metric, &call->notes.list[i].cell);
		json_write_array_end(json);
	}
	json_write_object_end(json);
	stat_add(STAT_query_points, (int64_t)call->query->points);
	if (call->query->cut)
		call->call.cut = call->query->cut_why;
	api_call_end(&call->call);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void hicc_series_fail(struct hicc_series_call *call, int err)
{
	struct errbuf e = call->query->error; /* it goes with the call */
	stat_add(STAT_queries_refused, 1);
	api_call_fail_with(&call->call, err, e.text);
}

static void hicc_series_ready(void *owner)
{
	struct hicc_series_call *call = hicc_series_call_of(api_call_from(owner));
	api_call_go_on(&call->call);
}

/* Or the call is over. */
static void hicc_series_ask(struct hicc_series_call *call)
{
	query_free(call->query);
	call->query = query_new(call->call.api->queries, hicc_series_ready, call);
	call->query->spec = hicc_numbers_spec(&call->numbers, call->row.tenant,
					      call->asked.start_ms, call->asked.end_ms);
	stat_add(STAT_queries, 1);
	int err = query_start(call->query);
	if (err)
		hicc_series_fail(call, err);
}

/* Takes and encodes until there is nothing, the client is full, or others want their turn. */
static void hicc_series_advance(struct api_call *base)
{
	struct hicc_series_call *call = hicc_series_call_of(base);
	struct query_chunk chunk;
	size_t turn = 0;
	if (!api_call_room(base))
		return;
	while (query_next(call->query, SERIES_CHUNK_POINTS, &chunk)) {
		hicc_series_begin_answer(call);
		hicc_series_put_chunk(call, &chunk);
		if (!api_call_room(base))
			return;
		turn += chunk.count;
		if (turn >= SERIES_TURN_POINTS) {
			api_call_later(base);
			return;
		}
	}
	if (!call->query->ended)
		return;
	if (call->query->err)
		hicc_series_fail(call, call->query->err);
	else if (hicc_numbers_go_on(&call->numbers, call->query))
		hicc_series_ask(call);
	else
		hicc_series_end_answer(call);
}

static void hicc_series_over(struct api_call *base)
{
	struct hicc_series_call *call = hicc_series_call_of(base);
	if (!base->request)
		return;
	if (base->err)
		api_call_fail_with(base, base->err, base->error.text);
	else
		hicc_series_ask(call);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void hicc_series_ended(struct api_call *base)
{
	struct hicc_series_call *call = hicc_series_call_of(base);
	query_free(call->query);
	call->query = NULL;
}

static void hicc_series_release(struct api_call *base)
{
	struct hicc_series_call *call = hicc_series_call_of(base);
	mem_free(call->texts.list);
	mem_free(call->notes.list);
	hicc_numbers_release(&call->numbers);
}

/* The engine looks after a query's time. */
static const struct api_call_kind hicc_series_kind = {.arena_max_bytes = SERIES_ARENA_MAX_BYTES,
						      .out_max_bytes = SERIES_OUT_MAX_BYTES,
						      .flush_bytes = SERIES_FLUSH_BYTES,
						      .ended = hicc_series_ended,
						      .release = hicc_series_release,
						      .job_name = "series",
						      .run = hicc_series_run,
						      .over = hicc_series_over};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param hicc_series_params[] = {HICC_TENANT, HICC_START, HICC_END, {NULL}};

static int hicc_series_read(const struct http_request *request, struct hicc_series_call *call,
			    struct errbuf *e)
{
	int err = hicc_read(request, &call->call, &call->asked, e);
	err = err ? err : hicc_read_row(request, &call->call, &call->asked, 2, &call->row, e);
	return err ? err
		   : hicc_numbers_begin(&call->numbers, call->row.metric, call->row.source, e);
}

static void hicc_series_end(struct http_request *request)
{
	struct hicc_series_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &hicc_series_kind);
	api_call_set_deadline(&call->call);
	call->call.advance = hicc_series_advance;
	call->texts.max = SERIES_TEXTS_MAX;
	call->notes.max = SERIES_NOTES_MAX;
	hicc_numbers_init(&call->numbers);
	int err = hicc_series_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else if (!api_call_answers_head(&call->call))
		api_call_start_job(&call->call);
}

const struct http_handler hicc_series = API_CALL_HANDLER(hicc_series_end);
