/* Reports by the time of receipt, newest first, as JSON or CSV. */
#include "api/fault/faults.h"

#include "api/call.h"
#include "api/fault/notation.h"
#include "api/fault/reports.h"
#include "conf/conf.h"
#include "fault/fault.h"

enum {
	REPORTS_PRESET = 100,
	REPORTS_LIMIT_MAX = 1000,
	REPORTS_ANSWER_MAX_BYTES = 64 << 20,
	REPORTS_ARENA_MAX_BYTES = (256 << 10) + 2 * FAULT_MERGES_MEMORY_BYTES,
	REPORTS_TEXT_MAX_BYTES = 8 << 10, /* of a parameter */
};

struct reports_question {
	struct slice tenant, token, q;
	struct slice texts[FAULT_TEXTS];
	int64_t since_ms, until_ms;
	size_t limit;
	int csv; /* its place in reports_formats */
};

struct reports_call {
	struct api_call call;
	struct reports_question question; /* its texts are in the call's arena */
	struct fault_list_filter filter;
	size_t count;
	struct fault_merges merges; /* in the call's arena, as is the search */
	struct words_query search;
	bool more, late; /* late: the time was over */
	/* Behind which the same question goes on: the last one that was given, or how far it was
	 * looked. */
	struct fault_order last, reached;
};

static const struct api_call_kind reports_kind;

static struct reports_call *reports_call_of(struct api_call *call)
{
	ASSERT(call->kind == &reports_kind);
	return CONTAINER_OF(call, struct reports_call, call);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void reports_put_json(struct json_writer *json, const struct fault_listed *report)
{
	const struct fault_facts *facts = &report->facts;
	json_write_object_begin(json);
	json_put_string(json, "id", report->id);
	json_put_i64(json, "date", notation_ms(report->order.date_us));
	for (enum fault_text i = 0; i < FAULT_TEXTS_LISTED; i++)
		if (facts->texts[i].len)
			json_put_string(json, fault_text_name(i), facts->texts[i]);
	if (facts->duration_us >= 0) {
		json_write_key(json, "duration");
		notation_write_ms(json, facts->duration_us);
	}
	if (facts->statements >= 0)
		json_put_i64(json, "statements", facts->statements);
	if (facts->attachments)
		json_put_i64(json, "attachments", facts->attachments);
	json_write_object_end(json);
}

/* ---- CSV (RFC 4180) -------------------------------------------------------------------------- */

static void reports_put_field(struct buf *out, struct slice text)
{
	bool plain = true;
	for (size_t i = 0; i < text.len; i++)
		plain = plain && !strchr(",\"\n\r", text.data[i]);
	if (plain) {
		buf_append(out, text.data, text.len);
		return;
	}
	buf_append_char(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			buf_append_char(out, '"');
		buf_append_char(out, text.data[i]);
	}
	buf_append_char(out, '"');
}

static void reports_put_titles(struct buf *out)
{
	buf_append_text(out, "id,date,duration,statements");
	for (enum fault_text i = 0; i < FAULT_TEXTS_LISTED; i++)
		buf_printf(out, ",%s", fault_text_name(i));
	buf_append_char(out, '\n');
}

static void reports_put_csv(struct buf *out, const struct fault_listed *report)
{
	const struct fault_facts *facts = &report->facts;
	char ms[NOTATION_MS_BYTES];
	reports_put_field(out, report->id);
	buf_printf(out, ",%lld,", (long long)notation_ms(report->order.date_us));
	if (facts->duration_us >= 0)
		buf_append(out, ms, notation_print_ms(ms, facts->duration_us));
	buf_append_char(out, ',');
	if (facts->statements >= 0)
		buf_printf(out, "%lld", (long long)facts->statements);
	for (enum fault_text i = 0; i < FAULT_TEXTS_LISTED; i++) {
		buf_append_char(out, ',');
		reports_put_field(out, facts->texts[i]);
	}
	buf_append_char(out, '\n');
}

/* ---- On the job's thread --------------------------------------------------------------------- */

static bool reports_each(void *owner, const struct fault_listed *report)
{
	struct reports_call *call = owner;
	call->more = call->count == call->question.limit;
	if (call->more)
		return false;
	if (call->question.csv)
		reports_put_csv(&call->call.out, report);
	else
		reports_put_json(&call->call.json, report);
	call->last = report->order;
	call->count++;
	return true;
}

static void reports_begin(struct reports_call *call)
{
	struct json_writer *json = &call->call.json;
	if (call->question.csv) {
		reports_put_titles(&call->call.out);
		return;
	}
	json_write_object_begin(json);
	json_write_key(json, "reports");
	json_write_array_begin(json);
}

static void reports_finish(struct reports_call *call)
{
	struct json_writer *json = &call->call.json;
	char token[NOTATION_TOKEN_BYTES];
	if (call->question.csv)
		return;
	json_write_array_end(json);
	if (call->late)
		json_put_i64(json, "reached",
			     notation_ms(call->last.date_us + 999)); /* not before */
	if (call->more) {
		notation_put_token(&call->last, token);
		json_put_text(json, "token", token);
	}
	json_write_object_end(json);
}

/* What could be looked at in time is an answer, as long as that was something. */
static int reports_look_at_time(struct reports_call *call, int err)
{
	call->late =
		err == ERR_TIMEOUT && fault_order_compare(&call->reached, &call->filter.after) != 0;
	if (!call->late)
		return err;
	call->call.cut = "time";
	call->last = call->reached;
	call->more = true;
	return 0;
}

/* The search for a group finds all that the same group stands for. */
static int reports_widen_search(struct reports_call *call)
{
	for (size_t i = 0; i < call->search.count; i++) {
		struct words_term *term = &call->search.terms[i];
		struct slice root = fault_merges_root(&call->merges, term->value), *others;
		if (!slice_equal(term->key, slice_of(fault_text_name(FAULT_GROUP))))
			continue;
		others = arena_alloc(&call->call.arena,
				     fault_merges_room(&call->merges) * sizeof(*others));
		if (!others)
			return errbuf_set(&call->call.error, ERR_LIMIT, "the search is too long");
		term->others = others;
		term->other_count = fault_merges_tree(&call->merges, root, others);
	}
	return 0;
}

static int reports_list(struct reports_call *call, struct fault_book *book)
{
	struct task_queue *queue = job_queue(call->call.job);
	int err = fault_merges_read(fault_site_of(call->call.api->fault), queue,
				    call->question.tenant, &call->call.arena, &call->merges,
				    &call->call.error);
	err = err ? err : reports_widen_search(call);
	call->filter.merges = &call->merges;
	return err ? err
		   : fault_book_list(book, queue, &call->filter, reports_each, call, &call->reached,
				     &call->call.error);
}

static void reports_run(struct api_call *base)
{
	struct reports_call *call = reports_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->question.tenant);
	reports_begin(call);
	call->reached = call->filter.after;
	int err = reports_list(call, book);
	fault_book_return(base->api->fault, book);
	call->call.err = reports_look_at_time(call, err);
	reports_finish(call);
}

/* ---- The call -------------------------------------------------------------------------------- */

static void reports_over(struct api_call *base)
{
	struct reports_call *call = reports_call_of(base);
	char token[NOTATION_TOKEN_BYTES];
	if (!base->request)
		return;
	if (call->call.err) {
		api_call_fail_with(base, call->call.err, call->call.error.text);
		return;
	}
	if (call->more) {
		notation_put_token(&call->last, token);
		http_reply_header(base->request, "X-Granary-Token", token);
	}
	api_call_end(base);
}

static const struct api_call_kind reports_kind = {.arena_max_bytes = REPORTS_ARENA_MAX_BYTES,
						  .out_max_bytes = REPORTS_ANSWER_MAX_BYTES,
						  .job_name = "reports",
						  .run = reports_run,
						  .over = reports_over};

static const char *const reports_formats[] = {"json", "csv", NULL};

#define REPORTS_FIELD(field_) offsetof(struct reports_question, field_)
#define REPORTS_TEXT(text_)   PARAM_TEXT, REPORTS_FIELD(texts) + (text_) * sizeof(struct slice)

const struct param faults_list_params[] = {
	{"tenant", PARAM_TENANT, REPORTS_FIELD(tenant), .help = "Whose reports."},
	{"context", REPORTS_TEXT(FAULT_CONTEXT), .help = "Only of this context."},
	{"exception", REPORTS_TEXT(FAULT_EXCEPTION), .help = "Only of this exception."},
	{"host", REPORTS_TEXT(FAULT_HOST), .help = "Only of this machine."},
	{"release", REPORTS_TEXT(FAULT_RELEASE), .help = "Only of this release."},
	{"environment", REPORTS_TEXT(FAULT_ENVIRONMENT), .help = "Only of this environment."},
	{"level", REPORTS_TEXT(FAULT_LEVEL), .help = "Only of this level."},
	{"user", REPORTS_TEXT(FAULT_USER), .help = "Only of this user."},
	{"group", REPORTS_TEXT(FAULT_GROUP), .help = "Only of this group."},
	{"q", PARAM_TEXT, REPORTS_FIELD(q),
	 .help = "Only with these words: word \"some words\" -word host:db1 -host:db1."},
	{"since", PARAM_TIME, REPORTS_FIELD(since_ms), .help = "Received then or later."},
	{"until", PARAM_TIME, REPORTS_FIELD(until_ms), .help = "Received before then."},
	{"limit", PARAM_NUMBER, REPORTS_FIELD(limit), 1, REPORTS_LIMIT_MAX,
	 .help = "At most so many reports; 100 where it is left out."},
	{"token", PARAM_TEXT, REPORTS_FIELD(token),
	 .help = "Goes on behind the answer that gave it, newest first."},
	{"format", PARAM_WORD, REPORTS_FIELD(csv), .words = reports_formats,
	 .help = "The shape of the answer; json where it is left out."},
	{NULL}};

static int reports_read(const struct http_request *request, struct reports_call *call,
			struct errbuf *e)
{
	struct reports_question *q = &call->question;
	struct fault_list_filter *filter = &call->filter;
	*q = (struct reports_question){
		.since_ms = INT64_MIN, .until_ms = INT64_MAX, .limit = REPORTS_PRESET};
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), q, e);
	filter->after.date_us = INT64_MAX;
	filter->deadline_us = call->call.deadline_us;
	if (!err && q->token.data)
		err = notation_token(q->token, &filter->after, e);
	if (!err && q->since_ms > q->until_ms)
		err = errbuf_set(e, ERR_INVALID, "since lies after until");
	filter->from_us = notation_us(q->since_ms);
	filter->to_us = notation_us(q->until_ms);
	return err;
}

/* The job reads them when the request may be gone. */
static int reports_keep_texts(struct reports_call *call, struct errbuf *e)
{
	struct arena *arena = &call->call.arena;
	struct reports_question *q = &call->question;
	int err = params_keep(arena, &q->tenant, "tenant", TENANT_MAX_BYTES, e);
	for (enum fault_text i = 0; i < FAULT_TEXTS && !err; i++) {
		err = notation_keep_fact(arena, i, &q->texts[i], e);
		call->filter.texts[i] = q->texts[i];
	}
	err = err ? err : params_keep(arena, &q->q, "q", REPORTS_TEXT_MAX_BYTES, e);
	if (err || !q->q.data)
		return err;
	call->filter.search = &call->search;
	return words_query_parse(q->q, arena, &call->search, e);
}

static void reports_end(struct http_request *request)
{
	struct reports_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &reports_kind);
	api_call_set_deadline(&call->call);
	int err = reports_read(request, call, &e);
	err = err ? err : reports_keep_texts(call, &e);
	if (err) {
		api_call_fail(&call->call, 400, "%s", e.text);
		return;
	}
	if (call->question.csv)
		call->call.content_type = "text/csv";
	api_call_start_job(&call->call);
}

const struct http_handler faults_list = API_CALL_HANDLER(reports_end);
