/* `GET /api/export`: the samples of tagged metrics as they are stored (data_raw), by series-set in
 * the order of metric and tags, then by time. Shapes in export_encode.h.
 *
 * An answer is a page: it leaves whole, and the header X-Granary-Next is the token by which the
 * next one goes on; the last page has none. A token names the place in the order, `NEXT_MS
 * SERIES-SET;`, so it is good for ever, whatever has happened to the server or the series
 * meanwhile. The blanks and the `;` keep what carries headers from cutting a name at its end.
 *
 * A page ends when it has `limit` samples, PAGE_BYTES of text, or SERIES_MAX series have been
 * looked at, so it may be empty. These depend on nothing but what is stored: the same data has the
 * same bytes.
 *
 * What a page sees: each series as of a moment within the page. What is written or deleted behind
 * the place where an export is does not come into it any more; what lies before it does. So an
 * export has all that was there when it began and stayed.
 *
 * The series are found on the loop's thread, metric after metric. Then a job reads them, one slice
 * after the other, with one read under way at a time, and rests before each while reads of queries
 * run. PAGES_MAX pages are at work at once, others are told to come again. */
#include <inttypes.h>

#include "api/call.h"
#include "api/metrics/export_encode.h"
#include "api/metrics/metrics.h"
#include "base/stats.h"
#include "retention/retention.h"
#include "rollup/site.h"
#include "store/wait.h"
#include "wire/number.h"

enum {
	PAGE_BYTES = 8 << 20,
	PAGES_MAX = 2,
	SERIES_MAX = 4096,
	METRICS_AT_ONCE = 512,
	EXPORT_ARENA_BYTES = 128 << 20, /* names of the series of a page */
	EXPORT_READ_BYTES = 32 << 20,
	EXPORT_READ_SERIES = 256,
	EXPORT_READ_POINTS = 32768,
	EXPORT_LIMIT_MAX = 1000000,
	EXPORT_PIECE_BYTES = 128 << 10,
	REST_MS = 1,
	RESTS_MAX = 50, /* before a slice: queries that never end do not end an export */
	EXPORT_TOKEN_MAX_BYTES = 24 + 2 * METRIC_MAX_BYTES + TAGS_TEXT_MAX_BYTES,
};

/* Tags in front of which all others stand: U+10FFFF is no character. */
#define LAST_TAGS SLICE("\xf4\x8f\xbf\xbf=\xf4\x8f\xbf\xbf")

enum export_format { EXPORT_LINES, EXPORT_JSON, EXPORT_CSV };

struct export_asked {
	struct slice tenant, metric, token;
	int64_t start_ms, end_ms;
	uint64_t limit;
	enum export_format format;
	struct catalog_selector *selectors;
	size_t selector_count;
};

/* Where a page begins: a series, or where it would stand, and a time of it. */
struct export_place {
	struct slice metric, tags_text; /* data NULL: at the beginning of all */
	int64_t from_ms;
};

struct export_series {
	struct slice metric;
	int64_t from_ms; /* what is older is not shown: retention, or what was asked */
	struct catalog_series found;
};

struct export_page {
	struct api_call call;
	struct export_asked asked;
	struct export_place place;
	int64_t now_ms; /* wall clock */
	enum { FINDS_NOTHING, FINDS_METRICS, FINDS_SERIES } finds;
	struct catalog_list list;
	size_t metric; /* of the list, whose series are found next */
	struct catalog_find find;
	struct export_series *series; /* SERIES_MAX */
	size_t series_count;
	bool more; /* behind these series */

	/* The job's. */
	struct export_encoder encoder;
	uint64_t samples, left_out;
	struct slice next; /* NULL data: this is the last page */
	size_t sent;
};

static const struct api_call_kind export_page_kind;

static struct export_page *export_page_of(struct api_call *call)
{
	ASSERT(call->kind == &export_page_kind);
	return CONTAINER_OF(call, struct export_page, call);
}

static void export_page_ended(struct api_call *base)
{
	struct export_page *page = export_page_of(base);
	if (page->finds == FINDS_METRICS)
		catalog_list_cancel(&page->list);
	else if (page->finds == FINDS_SERIES)
		catalog_find_cancel(&page->find);
	page->finds = FINDS_NOTHING;
}

static void export_page_release(struct api_call *base)
{
	export_encoder_release(&export_page_of(base)->encoder);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static int export_token_bad(struct slice token, struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID,
			  "token \"" SHOWN "\" is none that X-Granary-Next of an export had",
			  SHOWN_OF(token));
}

static int export_read_token(struct export_page *page, struct errbuf *e)
{
	struct slice token = page->asked.token;
	struct export_place *place = &page->place;
	struct tags tags;
	place->from_ms = page->asked.start_ms;
	if (!token.data)
		return 0;
	if (!token.len || token.len > EXPORT_TOKEN_MAX_BYTES)
		return export_token_bad(token, e);
	token = arena_copy(&page->call.arena, token); /* of a few bytes, the first of the arena */
	const char *blank = memchr(token.data, ' ', token.len);
	if (!blank || token.data[token.len - 1] != ';' ||
	    number_parse_i64(token.data, blank, &place->from_ms))
		return export_token_bad(token, e);
	struct slice text = {blank + 1, (size_t)(token.data + token.len - 1 - (blank + 1))};
	struct series_set set = series_set_split(text);
	if (series_set_decode(set, &page->call.arena, &place->metric, &tags))
		return export_token_bad(token, e);
	place->tags_text =
		set.tags.len ? (struct slice){set.tags.data + 1, set.tags.len - 1} : SLICE("");
	place->from_ms = larger_of(place->from_ms, page->asked.start_ms);
	return 0;
}

/* The page after this one begins with that series, at that time. */
static int export_set_next(struct export_page *page, const struct export_series *series,
			   int64_t from_ms)
{
	struct buf token;
	buf_init(&token, EXPORT_TOKEN_MAX_BYTES);
	buf_printf(&token, "%" PRId64 " ", from_ms);
	int err = series_set_encode(series->metric, (struct tags){NULL, 0}, &token);
	if (series->found.tags_text.len)
		buf_append_char(&token, ',');
	buf_append(&token, series->found.tags_text.data, series->found.tags_text.len);
	buf_append_char(&token, ';');
	page->next = arena_copy(&page->call.arena, buf_slice(&token));
	err = err || token.failed || !page->next.data ? ERR_LIMIT : 0;
	buf_release(&token);
	return err;
}

/* ---- Reading, on the job's thread --------------------------------------------------------------
 */

static int export_rest(struct job *job)
{
	int err = 0;
	for (int i = 0; !err && i < RESTS_MAX && stat_get(STAT_query_reads_running) > 0; i++)
		err = job_sleep(job, REST_MS);
	return err;
}

static bool export_is_full(const struct export_page *page)
{
	return page->samples >= page->asked.limit ||
	       export_encoder_bytes(&page->encoder) >= PAGE_BYTES;
}

/* Encodes the points of the series `at`. A series whose names the shape has no form for is left out
 * and counted. *open: the series that was encoded last. */
static int export_take_points(struct export_page *page, size_t at, size_t *open,
			      const struct store_points *points)
{
	const struct export_series *series = &page->series[at];
	struct export_encoder *encoder = &page->encoder;
	if (!points->count)
		return 0;
	int err = 0;
	if (*open != at) {
		export_encoder_close(encoder);
		*open = at;
		err = export_encoder_series(encoder, series->metric, series->found.tags_text);
		if (err == ERR_INVALID) {
			page->left_out++;
			*open = SERIES_MAX;
			return 0;
		}
	}
	size_t given = err ? 0
			   : export_encoder_points(encoder, points, 0,
						   page->asked.limit - page->samples, PAGE_BYTES);
	page->samples += given;
	if (!err && export_is_full(page))
		err = export_set_next(page, series, points->ts_ms[given - 1] + 1);
	return err;
}

/* Some series, slice after slice, until all of them are given or the page is full. */
static int export_read_some(struct export_page *page, struct store_read *read, size_t begin,
			    size_t count, int64_t from_ms)
{
	struct job *job = page->call.job;
	uint64_t handles[EXPORT_READ_SERIES];
	struct store_token token = {.len = 0};
	size_t open = SERIES_MAX;
	bool more = true;
	int err = 0;
	for (size_t i = 0; i < count; i++)
		handles[i] = page->series[begin + i].found.handle;
	while (!err && more && !page->next.data) {
		store_read_reset(read);
		struct store_request *request = store_read_add(read, STORE_RANGE);
		request->token = token;
		request->range = (struct store_range){.table = TABLE_DATA_RAW,
						      .handles = handles,
						      .handle_count = count,
						      .start_ms = from_ms,
						      .end_ms = page->asked.end_ms};
		err = export_rest(job);
		err = err ? err : store_read_wait(read, job_queue(job));
		if (err && err != ERR_CANCELLED)
			errbuf_set(&page->call.error, err, "%s", store_read_sentence(read, err));
		for (size_t i = 0; !err && i < count && !page->next.data; i++)
			err = export_take_points(page, begin + i, &open, &request->range.points[i]);
		token = request->token;
		more = request->more;
	}
	export_encoder_close(&page->encoder);
	return err;
}

/* All series that were found are done with. Where there were none, so many metrics have no series
 * with such tags. */
static int export_set_behind(struct export_page *page)
{
	size_t count = page->series_count;
	struct export_series last = {.metric = page->list.names[page->metric - 1],
				     .found = {.tags_text = LAST_TAGS}};
	if (count && page->series[count - 1].metric.data == last.metric.data)
		last = page->series[count - 1];
	return export_set_next(page, &last, INT64_MAX);
}

/* The series at which the page begins may begin later than the others. */
static int export_read_all(struct export_page *page, struct store_read *read)
{
	const struct export_asked *asked = &page->asked;
	int err = 0;
	for (size_t at = 0, count; !err && at < page->series_count && !page->next.data;
	     at += count) {
		const struct export_series *first = &page->series[at];
		bool is_place = at == 0 && page->place.metric.data &&
				slice_equal(first->metric, page->place.metric) &&
				slice_equal(first->found.tags_text, page->place.tags_text);
		int64_t from_ms = first->from_ms;
		if (is_place)
			from_ms = larger_of(from_ms, page->place.from_ms);
		count = 1;
		while (!is_place && at + count < page->series_count && count < EXPORT_READ_SERIES &&
		       first[count].from_ms == from_ms)
			count++;
		if (from_ms < asked->end_ms)
			err = export_read_some(page, read, at, count, from_ms);
	}
	return !err && page->more && !page->next.data ? export_set_behind(page) : err;
}

static void export_page_run(struct api_call *base)
{
	struct export_page *page = export_page_of(base);
	static const struct export_shape *const shapes[] = {[EXPORT_LINES] = &export_lines,
							    [EXPORT_JSON] = &export_json,
							    [EXPORT_CSV] = &export_csv};
	const struct export_shape *shape = shapes[page->asked.format];
	struct store_read *read = store_read_new(base->api->store, EXPORT_READ_BYTES);
	read->now_ms = page->now_ms;
	read->points_max = EXPORT_READ_POINTS;
	export_encoder_init(&page->encoder, shape, &base->out);
	(void)!buf_reserve(&base->out, PAGE_BYTES);
	base->content_type = shape->content_type;
	if (shape->title && !page->asked.token.data)
		buf_append_text(&base->out, shape->title);
	base->err = export_read_all(page, read);
	store_read_free(read);
}

/* The memory of a page's text, kept for the next page: the kernel takes as long to give new memory
 * of some megabytes as a page takes to be written. The loop's thread's. */
static struct buf export_spare;

static void export_take_memory(struct export_page *page)
{
	buf_release(&page->call.out);
	page->call.out = export_spare;
	export_spare = (struct buf){0};
	page->call.out.max = export_page_kind.out_max_bytes;
}

static void export_keep_memory(struct export_page *page)
{
	if (!page->next.data || export_spare.data)
		return;
	export_spare = page->call.out;
	buf_init(&page->call.out, export_page_kind.out_max_bytes);
}

/* As fast as the client reads: what the kernel does not take at once is copied, so it is little. */
static void export_send(struct api_call *base)
{
	struct export_page *page = export_page_of(base);
	int err = 0;
	while (!err && page->sent < base->out.len) {
		size_t len = smaller_of(base->out.len - page->sent, (size_t)EXPORT_PIECE_BYTES);
		struct slice piece = {base->out.data + page->sent, len};
		err = http_stream_write(base->request, piece);
		if (err != ERR_LIMIT)
			page->sent += len;
	}
	if (err == ERR_BUSY)
		return; /* this comes again when the client has read */
	if (err) {
		api_call_fail_with(base, err, "the page could not be sent");
		return;
	}
	buf_clear(&base->out);
	export_keep_memory(page);
	api_call_end(base);
}

static void export_page_over(struct api_call *base)
{
	struct export_page *page = export_page_of(base);
	char left_out[24];
	if (!base->request)
		return;
	if (base->err) {
		api_call_fail_with(base, base->err, base->error.text);
		return;
	}
	stat_add(STAT_export_samples, (int64_t)page->samples);
	if (page->next.data)
		http_reply_header(base->request, "X-Granary-Next", page->next.data);
	snprintf(left_out, sizeof(left_out), "%" PRIu64, page->left_out);
	if (page->left_out)
		http_reply_header(base->request, "X-Granary-Left-Out", left_out);
	base->advance = export_send;
	base->streaming = true;
	http_stream_begin(base->request, base->status, base->content_type);
	export_send(base);
}

static const struct api_call_kind export_page_kind = {
	.arena_max_bytes = EXPORT_ARENA_BYTES,
	.out_max_bytes = PAGE_BYTES + EXPORT_RUN_MAX_BYTES + (1 << 20),
	.ended = export_page_ended,
	.release = export_page_release,
	.job_name = "export",
	.run = export_page_run,
	.over = export_page_over};

/* ---- Finding, on the loop's thread -------------------------------------------------------------
 */

static void export_find_next(struct export_page *page);

static void export_fail(struct export_page *page, int err, const struct errbuf *error)
{
	struct errbuf e = *error; /* it may be the page's */
	api_call_fail_with(&page->call, err, e.text);
}

/* Queries show nothing older, so nor do exports. */
static int64_t export_kept_from(const struct export_page *page, struct slice metric)
{
	const struct api *api = page->call.api;
	const struct retention_rules *rules =
		api->site ? rollup_site_rules(api->site) : &retention_for_ever;
	struct retention_fit fit = retention_match(rules, page->asked.tenant, metric);
	int64_t keep_ms = rules->levels_ms[retention_level(rules, fit.raw)];
	int64_t from_ms = keep_ms ? page->now_ms - keep_ms : STORE_TS_MIN;
	return larger_of(from_ms, page->asked.start_ms);
}

static void export_found(struct catalog_find *find, int err)
{
	struct export_page *page = export_page_of(api_call_from(find->owner));
	page->finds = FINDS_NOTHING;
	if (err) {
		export_fail(page, err, &find->error);
		return;
	}
	int64_t from_ms = export_kept_from(page, find->metric);
	for (size_t i = 0; i < find->count; i++)
		page->series[page->series_count++] =
			(struct export_series){find->metric, from_ms, find->series[i]};
	export_find_next(page);
}

/* Finds the series of a metric. The metric at which the page begins has series before it: these
 * are left out. */
static void export_find(struct export_page *page, struct slice metric)
{
	bool is_place = page->place.metric.data && slice_equal(metric, page->place.metric);
	page->finds = FINDS_SERIES;
	page->find = (struct catalog_find){
		.catalog = page->call.api->catalog,
		.tenant = page->asked.tenant,
		.metric = metric,
		.selectors = page->asked.selectors,
		.selector_count = page->asked.selector_count,
		.series_max = SERIES_MAX - page->series_count,
		.from = is_place ? page->place.tags_text : SLICE(""),
		.done = export_found,
		.owner = page,
		.arena = &page->call.arena,
	};
	catalog_find_start(&page->find);
}

static void export_find_next(struct export_page *page)
{
	bool full = page->series_count == SERIES_MAX;
	if (page->metric < page->list.count && !full) {
		export_find(page, page->list.names[page->metric++]);
		return;
	}
	page->more = full || page->list.cut;
	api_call_start_job(&page->call);
}

static void export_listed(struct catalog_list *list, int err)
{
	struct export_page *page = export_page_of(api_call_from(list->owner));
	page->finds = FINDS_NOTHING;
	if (err)
		export_fail(page, err, &list->error);
	else
		export_find_next(page);
}

static void export_list(struct export_page *page)
{
	page->list = (struct catalog_list){
		.catalog = page->call.api->catalog,
		.what = CATALOG_METRIC_NAMES,
		.tenant = page->asked.tenant,
		.from = page->place.metric,
		.limit = METRICS_AT_ONCE,
		.done = export_listed,
		.owner = page,
		.arena = &page->call.arena,
	};
	page->finds = FINDS_METRICS;
	catalog_list_start(&page->list);
}

/* ---- What is asked --------------------------------------------------------------------------- */

static const char *const export_formats[] = {
	[EXPORT_LINES] = "lines", [EXPORT_JSON] = "json", [EXPORT_CSV] = "csv", NULL};

#define EXPORT_ASKED(field_) offsetof(struct export_asked, field_)

const struct param export_params[] = {
	{"tenant", PARAM_TENANT, EXPORT_ASKED(tenant), .help = "Whose samples."},
	{"metricName", PARAM_METRIC, EXPORT_ASKED(metric),
	 .help = "Of which metric; of all where it is left out."},
	{"tag", .repeated = true, .help = "Only series with such a tag, host=web-*."},
	{"start", PARAM_TIME, EXPORT_ASKED(start_ms),
	 .help = "Samples from then on; from the first where it is left out."},
	{"end", PARAM_TIME, EXPORT_ASKED(end_ms),
	 .help = "Samples before then; up to the last where it is left out."},
	{"format", PARAM_WORD, EXPORT_ASKED(format), .words = export_formats,
	 .help = "The shape; lines where it is left out."},
	{"limit", PARAM_NUMBER, EXPORT_ASKED(limit), 1, EXPORT_LIMIT_MAX,
	 .help = "At most so many samples of a page; it has about 8 MB of text at most."},
	{"token", PARAM_TEXT, EXPORT_ASKED(token),
	 .help = "Goes on where a page ended: X-Granary-Next of its answer."},
	{NULL}};

static int export_read_asked(struct export_page *page, const struct http_request *request,
			     struct errbuf *e)
{
	struct export_asked *asked = &page->asked;
	struct arena *arena = &page->call.arena;
	*asked = (struct export_asked){
		.start_ms = STORE_TS_MIN, .end_ms = INT64_MAX, .limit = EXPORT_LIMIT_MAX};
	page->now_ms = clock_wall_ms(page->call.api->clock);
	int err = params_read_route(request, page->now_ms, asked, e);
	err = err ? err : params_keep(arena, &asked->tenant, "tenant", TENANT_MAX_BYTES, e);
	err = err ? err : params_keep(arena, &asked->metric, "metricName", METRIC_MAX_BYTES, e);
	err = err ? err
		  : params_selectors(request, arena, &asked->selectors, &asked->selector_count, e);
	if (!err && asked->start_ms > asked->end_ms)
		err = errbuf_set(e, ERR_INVALID, "start lies behind end");
	return err ? err : export_read_token(page, e);
}

static size_t export_pages(const struct api *api)
{
	size_t count = 0;
	for (const struct api_call *call = api->calls; call; call = call->next)
		count += call->kind == &export_page_kind;
	return count;
}

static void export_begin(struct export_page *page)
{
	struct slice *metric = &page->asked.metric;
	export_take_memory(page);
	page->series = arena_alloc(&page->call.arena, SERIES_MAX * sizeof(*page->series));
	ASSERT(page->series);
	if (!metric->data) {
		export_list(page);
		return;
	}
	page->list.names = metric;
	page->list.count = 1;
	export_find_next(page);
}

static void export_request_end(struct http_request *request)
{
	struct export_page *page = mem_zalloc(sizeof(*page));
	struct errbuf e;
	api_call_init(&page->call, request, &export_page_kind);
	int err = export_read_asked(page, request, &e);
	if (err)
		export_fail(page, err, &e);
	else if (export_pages(api_of(request)) > PAGES_MAX)
		api_call_fail(&page->call, 503,
			      "%d pages of exports are being made, which is the most; ask again",
			      PAGES_MAX);
	else if (!api_call_answers_head(&page->call))
		export_begin(page);
}

const struct http_handler export_handler = API_CALL_HANDLER(export_request_end);
