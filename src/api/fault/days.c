/* A day's reports: its summary, of the whole day or of a part of it, `day_oops`, and the daily
 * report (daily.c). */
#include "api/fault/faults.h"

#include <stdio.h>

#include "api/call.h"
#include "api/fault/daily.h"
#include "api/fault/notation.h"
#include "fault/fault.h"

enum {
	DAYS_LIMIT_MAX = FAULT_LIST_MAX,
	DAYS_ANSWER_MAX_BYTES = 32 << 20,
	DAYS_ARENA_MAX_BYTES = 64 << 10,
	DAY_MINUTES = 24 * 60,
};
#define MINUTE_US INT64_C(60000000)

struct days_question {
	struct slice tenant, from, to, token;
	size_t limit; /* 0: it was not given */
	int format;   /* its place in daily_formats; -1: it was not given */
};

struct days_call {
	struct api_call call;
	struct slice tenant; /* in the call's arena */
	int64_t day;
	bool recounts;
	/* What it is about is a list of reports: of a part of a day, or to be shown. */
	enum { DAYS_SUMMARY, DAYS_PART, DAYS_OOPS, DAYS_REPORT } what;
	enum daily_format format; /* of the daily report */
	int64_t from_minute, to_minute;
	struct fault_list_filter filter;
	size_t limit, count;
	bool more;
	struct fault_order last; /* that was given */
	struct fault_day *part;  /* counted here */
};

static const struct api_call_kind days_kind;

static struct days_call *days_call_of(struct api_call *call)
{
	ASSERT(call->kind == &days_kind);
	return CONTAINER_OF(call, struct days_call, call);
}

/* ---- The summary ----------------------------------------------------------------------------- */

static void days_put_day(struct days_call *call)
{
	char text[FAULT_DAY_TEXT_BYTES + 1];
	fault_day_text(call->day, text);
	json_put_text(&call->call.json, "day", text);
}

static void days_put_top(struct json_writer *json, const char *key, const struct fault_list *list,
			 bool is_time)
{
	json_write_key(json, key);
	json_write_array_begin(json);
	for (size_t i = 0; i < list->count; i++) {
		json_write_array_begin(json);
		if (is_time)
			notation_write_ms(json, (int64_t)list->list[i].value);
		else
			json_write_u64(json, list->list[i].value);
		json_write_string(json, list->list[i].id);
		json_write_array_end(json);
	}
	json_write_array_end(json);
}

static void days_put_volumes(struct days_call *call, const struct fault_day_view *view)
{
	struct json_writer *json = &call->call.json;
	const struct fault_list *largest = &view->largest;
	size_t shown = largest->count < call->limit ? largest->count : call->limit;
	call->more = shown < view->names;
	json_write_key(json, "volume");
	json_write_object_begin(json);
	for (size_t i = 0; i < shown; i++) {
		json_write_key_slice(json, largest->list[i].id);
		json_write_u64(json, largest->list[i].value);
	}
	json_write_object_end(json);
}

static void days_put_view(struct days_call *call, const struct fault_day_view *view)
{
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	days_put_day(call);
	json_put_bool(json, "closed", view->closed);
	json_put_u64(json, "total", view->total);
	json_write_key(json, "hours");
	json_write_array_begin(json);
	for (size_t i = 0; i < FAULT_HOURS; i++)
		json_write_u64(json, view->hours[i]);
	json_write_array_end(json);
	days_put_top(json, "duration", &view->longest, true);
	days_put_top(json, "statement count", &view->most, false);
	days_put_volumes(call, view);
	json_put_u64(json, "rest", view->rest);
	if (view->groups_rest)
		json_put_u64(json, "groups_rest", view->groups_rest);
	json_write_object_end(json);
}

static int days_recount(struct days_call *call, struct fault_book *book)
{
	int err = fault_wait_for_owner(book, call->call.job, &call->call.error);
	err = err ? err : fault_book_recount(book, call->day, &call->call.error);
	return err == ERR_INVALID ? ERR_RETRY : err;
}

/* One that is counted anew is counted for this answer, if the owner has not done it meanwhile. */
static int days_run_summary(struct days_call *call, struct fault_book *book)
{
	struct task_queue *queue = job_queue(call->call.job);
	struct fault_day_view *view;
	int err = call->recounts ? days_recount(call, book) : 0;
	err = err ? err : fault_book_read_day(book, queue, call->day, &view, &call->call.error);
	if (err)
		return err;
	days_put_view(call, view);
	fault_day_view_free(view);
	return 0;
}

/* ---- A part of a day ------------------------------------------------------------------------- */

static bool days_count(void *owner, const struct fault_listed *report)
{
	struct days_call *call = owner;
	const struct fault_arrival arrival = {
		.date_us = report->order.date_us, .id = report->id, .facts = report->facts};
	fault_day_add(call->part, &arrival);
	return true;
}

static int days_run_part(struct days_call *call, struct fault_book *book)
{
	const struct fault_site *site = fault_site_of(call->call.api->fault);
	call->part = fault_day_new(call->day, &site->limits);
	struct fault_order reached;
	int err = fault_book_list(book, job_queue(call->call.job), &call->filter, days_count, call,
				  &reached, &call->call.error);
	if (err)
		return err;
	struct fault_day_view *view = fault_day_view_new(call->part);
	days_put_view(call, view);
	fault_day_view_free(view);
	return 0;
}

/* ---- day_oops -------------------------------------------------------------------------------- */

static bool days_put_oops(void *owner, const struct fault_listed *report)
{
	struct days_call *call = owner;
	struct json_writer *json = &call->call.json;
	char uuid[FAULT_UUID_TEXT_BYTES + 1];
	call->more = call->count == call->limit;
	if (call->more)
		return false;
	fault_time_uuid(&report->order, uuid);
	json_write_array_begin(json);
	json_write_text(json, uuid);
	json_write_string(json, report->id);
	json_write_array_end(json);
	call->last = report->order;
	call->count++;
	return true;
}

static int days_run_oops(struct days_call *call, struct fault_book *book)
{
	struct json_writer *json = &call->call.json;
	char token[NOTATION_TOKEN_BYTES];
	struct fault_order reached;
	json_write_object_begin(json);
	days_put_day(call);
	json_write_key(json, "oops");
	json_write_array_begin(json);
	int err = fault_book_list(book, job_queue(call->call.job), &call->filter, days_put_oops,
				  call, &reached, &call->call.error);
	json_write_array_end(json);
	if (call->more) {
		notation_put_token(&call->last, token);
		json_put_text(json, "token", token);
	}
	json_write_object_end(json);
	return err;
}

/* ---- The call -------------------------------------------------------------------------------- */

static void days_run(struct api_call *base)
{
	struct days_call *call = days_call_of(base);
	if (call->what == DAYS_REPORT) {
		base->err = daily_run(base, call->tenant, call->day, call->format);
		return;
	}
	struct fault_book *book = fault_book_borrow(base->api->fault, call->tenant);
	if (call->what == DAYS_SUMMARY)
		call->call.err = days_run_summary(call, book);
	else if (call->what == DAYS_PART)
		call->call.err = days_run_part(call, book);
	else
		call->call.err = days_run_oops(call, book);
	fault_book_return(base->api->fault, book);
	base->cut = call->more && call->what != DAYS_OOPS ? "limit" : NULL;
}

static void days_over(struct api_call *base)
{
	const struct days_call *call = days_call_of(base);
	if (!base->request)
		return;
	if (base->err) {
		api_call_fail_with(base, base->err, base->error.text);
		return;
	}
	if (call->what == DAYS_REPORT)
		daily_set_headers(base, call->format);
	api_call_end(base);
}

static void days_release(struct api_call *base)
{
	fault_day_free(days_call_of(base)->part);
}

static const struct api_call_kind days_kind = {.arena_max_bytes = DAYS_ARENA_MAX_BYTES,
					       .out_max_bytes = DAYS_ANSWER_MAX_BYTES,
					       .release = days_release,
					       .job_name = "day",
					       .run = days_run,
					       .over = days_over};

/* ---- What is asked --------------------------------------------------------------------------- */

#define DAYS_FIELD(field_) offsetof(struct days_question, field_)
#define DAYS_TENANT        "tenant", PARAM_TENANT, DAYS_FIELD(tenant), .help = "Whose reports."
#define DAYS_LIMIT                                                                                 \
	"limit", PARAM_NUMBER, DAYS_FIELD(limit), 1, DAYS_LIMIT_MAX,                               \
		.help = "At most so many volumes, or reports; 1000 where it is left out."

const struct param faults_day_params[] = {
	{DAYS_TENANT},
	{"from", PARAM_TEXT, DAYS_FIELD(from),
	 .help = "Only what was received from this minute on, as 14:30; counted for the answer."},
	{"to", PARAM_TEXT, DAYS_FIELD(to), .help = "And before this one; up to 24:00."},
	{DAYS_LIMIT},
	{"token", PARAM_TEXT, DAYS_FIELD(token),
	 .help = "Goes on with the reports behind the answer that gave it."},
	{"format", PARAM_WORD, DAYS_FIELD(format), .words = daily_formats,
	 .help = "The shape of the daily report; json where it is left out."},
	{NULL}};
const struct param faults_recount_params[] = {{DAYS_TENANT}, {DAYS_LIMIT}, {NULL}};

/* HH:MM. */
static int days_read_minute(const char *name, struct slice text, int64_t *minute, struct errbuf *e)
{
	if (!text.data)
		return 0;
	bool good = text.len == 5 && text.data[2] == ':';
	for (size_t i = 0; good && i < 5; i++)
		good = i == 2 || (text.data[i] >= '0' && text.data[i] <= '9');
	if (good) {
		int64_t hours = (text.data[0] - '0') * 10 + text.data[1] - '0';
		int64_t minutes = (text.data[3] - '0') * 10 + text.data[4] - '0';
		*minute = hours * 60 + minutes;
		good = minutes < 60 && *minute <= DAY_MINUTES;
	}
	return good ? 0
		    : errbuf_set(e, ERR_INVALID, "%s \"" SHOWN "\" is no time of day, as 14:30",
				 name, SHOWN_OF(text));
}

static int days_read_part(const struct days_question *q, struct days_call *call, struct errbuf *e)
{
	int64_t begin_us = call->day * FAULT_DAY_US;
	call->to_minute = DAY_MINUTES;
	int err = days_read_minute("from", q->from, &call->from_minute, e);
	err = err ? err : days_read_minute("to", q->to, &call->to_minute, e);
	if (!err && call->from_minute >= call->to_minute)
		err = errbuf_set(e, ERR_INVALID, "from is not before to");
	call->filter.from_us = begin_us + call->from_minute * MINUTE_US;
	call->filter.to_us = begin_us + call->to_minute * MINUTE_US;
	call->filter.after.date_us = INT64_MAX;
	call->filter.deadline_us = call->call.deadline_us;
	return err;
}

/* The part behind the day is `oops` or `report`, or of what is posted `recount`; or there is none.
 */
static int days_read_path(const struct http_request *request, struct days_call *call,
			  struct errbuf *e)
{
	size_t count = request->segment_count;
	if (count && !request->segments[count - 1].len)
		count--;
	struct slice verb = count == 4 ? request->segments[3] : SLICE("");
	bool known = call->recounts ? slice_equal(verb, SLICE("recount"))
				    : count == 3 || slice_equal(verb, SLICE("oops")) ||
					      slice_equal(verb, SLICE("report"));
	if (count < 3 || count > 4 || !known)
		return errbuf_set(e, ERR_NOT_FOUND, "there is nothing at %.*s",
				  slice_shown_len(request->path), request->path.data);
	if (verb.len && !call->recounts)
		call->what = slice_equal(verb, SLICE("oops")) ? DAYS_OOPS : DAYS_REPORT;
	return notation_day(request->segments[2], clock_wall_ms(call->call.api->clock), &call->day,
			    e);
}

/* The daily report is of a whole day. */
static int days_read_report(const struct days_question *q, struct days_call *call, struct errbuf *e)
{
	if (call->what != DAYS_REPORT && q->format >= 0)
		return errbuf_set(e, ERR_INVALID, "format is of /oops/days/DAY/report");
	if (call->what == DAYS_REPORT && (q->from.data || q->to.data || q->limit))
		return errbuf_set(e, ERR_INVALID,
				  "the report of a day takes no from, to and limit");
	call->format = q->format >= 0 ? (enum daily_format)q->format : DAILY_JSON;
	return 0;
}

static int days_read(const struct http_request *request, struct days_call *call, struct errbuf *e)
{
	struct days_question q = {.format = -1};
	int err = days_read_path(request, call, e);
	err = err ? err : params_read_route(request, 0, &q, e);
	err = err ? err : days_read_part(&q, call, e);
	err = err ? err : days_read_report(&q, call, e);
	if (err)
		return err;
	if (q.token.data && call->what != DAYS_OOPS)
		return errbuf_set(e, ERR_INVALID, "token is of /oops/days/DAY/oops");
	if (q.token.data)
		err = notation_token(q.token, &call->filter.after, e);
	if (call->what == DAYS_SUMMARY && (q.from.data || q.to.data))
		call->what = DAYS_PART;
	call->limit = q.limit ? q.limit : DAYS_LIMIT_MAX;
	call->tenant = arena_copy(&call->call.arena, q.tenant);
	ASSERT(call->tenant.data); /* at most TENANT_MAX_BYTES */
	return err;
}

static void days_begin(struct http_request *request, bool recounts)
{
	struct days_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &days_kind);
	api_call_set_deadline(&call->call);
	call->recounts = recounts;
	int err = days_read(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

static void days_show_end(struct http_request *request)
{
	days_begin(request, false);
}

static void days_recount_end(struct http_request *request)
{
	days_begin(request, true);
}

const struct http_handler faults_day = API_CALL_HANDLER(days_show_end);
const struct http_handler faults_recount = API_CALL_HANDLER(days_recount_end);
