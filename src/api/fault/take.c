/* The routes by which fault reports come in. The body is read by a worker (ingest/oops.h), and what
 * it makes of it is submitted on the loop. A client that goes while the body is read has sent
 * nothing; once it is submitted the submission is carried through, and the call, to which
 * everything belongs, stays until then. */
#include "api/fault/faults.h"

#include "api/fault/notation.h"
#include "api/fault/take.h"
#include "base/stats.h"
#include "conf/conf.h"

enum { TAKE_ANSWER_MAX_BYTES = 64 << 20, TAKE_ARENA_MAX_BYTES = 64 << 10 };

static const struct api_call_kind take_kind;

static struct take_call *take_call_of(struct api_call *call)
{
	ASSERT(call->kind == &take_kind);
	return CONTAINER_OF(call, struct take_call, call);
}

static void take_release(struct api_call *call)
{
	oops_batch_release(&take_call_of(call)->batch);
}

/* ---- What became of a report ----------------------------------------------------------------- */

static const struct fault_item *take_item_of(const struct take_call *call,
					     const struct oops_report *report)
{
	return report->err ? NULL : &call->batch.items[report->item];
}

int take_status(const struct take_call *call, const struct oops_report *report)
{
	const struct fault_item *item = take_item_of(call, report);
	if (!item)
		return report->err == ERR_LIMIT ? 413 : http_status_of(report->err);
	switch (item->outcome) {
	case FAULT_TAKEN:
		return 201;
	case FAULT_REPEATED:
		return 200;
	case FAULT_CONFLICT:
		return 409;
	case FAULT_ERASED:
		return 410;
	case FAULT_FAILED:
		break;
	}
	return http_status_of(item->err);
}

static const char *take_result(int status)
{
	switch (status) {
	case 201:
		return "taken";
	case 200:
		return "repeated";
	case 409:
		return "conflict";
	case 410:
		return "removed";
	default:
		return "failed";
	}
}

void take_sentence(const struct take_call *call, const struct oops_report *report, int status,
		   struct errbuf *e)
{
	const struct fault_item *item = take_item_of(call, report);
	if (!item)
		errbuf_set(e, 0, "%s", report->sentence);
	else if (status == 409)
		errbuf_set(e, 0,
			   "there is another report with the id " SHOWN
			   "; it stays, and this one was not taken",
			   SHOWN_OF(report->id));
	else if (status == 410)
		errbuf_set(e, 0,
			   "report " SHOWN
			   " was removed with all reports of its user, and is not taken again",
			   SHOWN_OF(report->id));
	else if (status == 503)
		errbuf_set(e, 0, "the report may not be stored: %s; sending it again is harmless",
			   err_text(item->err));
	else
		errbuf_set(e, 0, "the report was not stored: %s", err_text(item->err));
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void take_put_refused(struct json_writer *json, const struct oops_report *report)
{
	if (!report->refused_count)
		return;
	json_put_strings(json, "refused", report->refused, report->refused_shown);
	if (report->refused_count > report->refused_shown)
		json_put_u64(json, "omitted", report->refused_count - report->refused_shown);
}

static void take_put_error(struct json_writer *json, int status, const char *sentence)
{
	struct buf object;
	buf_init(&object, 8 * sizeof(struct errbuf));
	http_error_json(&object, status, slice_of(sentence));
	json_write_key(json, "error");
	json_write_raw(json, buf_slice(&object));
	buf_release(&object);
}

static void take_put_place(struct take_call *call, const struct oops_report *report, int status)
{
	struct json_writer *json = &call->call.json;
	const struct fault_item *item = take_item_of(call, report);
	if (report->id.len)
		json_put_string(json, "id", report->id);
	if (item && (status < 300 || status == 409))
		json_put_i64(json, "date", notation_ms(item->date_us));
}

static void take_answer_one(struct take_call *call)
{
	const struct oops_report *report = call->batch.reports;
	struct json_writer *json = &call->call.json;
	int status = take_status(call, report);
	struct errbuf e;
	http_reply_header(call->call.request, "X-Oops-Id", report->id.data);
	json_write_object_begin(json);
	if (status >= 300) {
		take_sentence(call, report, status, &e);
		take_put_error(json, status, e.text);
	}
	take_put_place(call, report, status);
	if (status < 300) {
		json_put_text(json, "result", take_result(status));
		take_put_refused(json, report);
	}
	json_write_object_end(json);
	call->call.status = status;
	api_call_end(&call->call);
}

/* ---- Answers to arrays ----------------------------------------------------------------------- */

struct take_counts {
	uint64_t taken, repeated, conflicts, failed; /* conflicts are failures, too */
	int store_status;                            /* the worst of the store's; 0: none */
	size_t first;                                /* that failed */
};

static struct take_counts take_count(const struct take_call *call)
{
	struct take_counts counts = {0};
	for (size_t i = 0; i < call->batch.count; i++) {
		int status = take_status(call, &call->batch.reports[i]);
		counts.taken += status == 201;
		counts.repeated += status == 200;
		counts.conflicts += status == 409 || status == 410;
		if (status >= 500 && status > counts.store_status)
			counts.store_status = status;
		if (status >= 300 && !counts.failed++)
			counts.first = i;
	}
	return counts;
}

static int take_status_of_all(const struct take_counts *counts)
{
	if (!counts->failed)
		return 200;
	if (counts->store_status)
		return counts->store_status;
	return counts->failed == counts->conflicts ? 409 : 400;
}

static void take_put_error_of_all(struct take_call *call, const struct take_counts *counts,
				  int status)
{
	const struct oops_report *first = &call->batch.reports[counts->first];
	struct errbuf e;
	take_sentence(call, first, take_status(call, first), &e);
	errbuf_prefix(&e, 0, "%llu of %zu reports were not taken; report %zu",
		      (unsigned long long)counts->failed, call->batch.count, counts->first);
	take_put_error(&call->call.json, status, e.text);
}

static void take_put_result(struct take_call *call, const struct oops_report *report)
{
	struct json_writer *json = &call->call.json;
	int status = take_status(call, report);
	struct errbuf e;
	json_write_object_begin(json);
	take_put_place(call, report, status);
	json_put_text(json, "result", take_result(status));
	if (status >= 300) {
		take_sentence(call, report, status, &e);
		json_put_text(json, "error", e.text);
	} else {
		take_put_refused(json, report);
	}
	json_write_object_end(json);
}

static void take_answer_array(struct take_call *call)
{
	const struct take_counts counts = take_count(call);
	struct json_writer *json = &call->call.json;
	call->call.status = take_status_of_all(&counts);
	json_write_object_begin(json);
	if (counts.failed)
		take_put_error_of_all(call, &counts, call->call.status);
	json_write_key(json, "results");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->batch.count; i++)
		take_put_result(call, &call->batch.reports[i]);
	json_write_array_end(json);
	json_put_u64(json, "taken", counts.taken);
	json_put_u64(json, "repeated", counts.repeated);
	json_put_u64(json, "failed", counts.failed);
	json_write_object_end(json);
	api_call_end(&call->call);
}

static void take_answer(struct take_call *call)
{
	if (call->err)
		api_call_fail(&call->call, call->err == ERR_LIMIT ? 413 : http_status_of(call->err),
			      "%s", call->error.text);
	else if (call->batch.is_array)
		take_answer_array(call);
	else
		take_answer_one(call);
}

/* The submission goes on. */
static void take_late(struct api_call *base)
{
	api_call_fail(base, 503,
		      "after %lld ms it is not known yet whether this is stored; sending it again "
		      "is harmless",
		      (long long)base->timeout_ms);
}

static const struct api_call_kind take_kind = {.arena_max_bytes = TAKE_ARENA_MAX_BYTES,
					       .out_max_bytes = TAKE_ANSWER_MAX_BYTES,
					       .release = take_release,
					       .late = take_late};

/* ---- Reading and submitting ------------------------------------------------------------------ */

static void take_on_submitted(struct fault_submission *submission)
{
	struct take_call *call = take_call_of(api_call_from(submission->owner));
	if (api_call_settle(&call->call))
		call->door->answer(call);
}

static void take_submit(struct take_call *call)
{
	call->submission = (struct fault_submission){
		.tenant = call->tenant,
		.items = call->batch.items,
		.count = call->batch.item_count,
		.done = take_on_submitted,
		.owner = call,
	};
	int err = fault_intake_submit(fault_intake_of(call->call.api->fault), &call->submission);
	if (!err)
		return;
	stat_add(STAT_fault_failed, (int64_t)call->batch.item_count);
	call->err = errbuf_set(&call->error, err,
			       "too many reports are being stored: send these again later");
	take_on_submitted(&call->submission);
}

static size_t take_bad(const struct take_call *call)
{
	return call->err ? 1 : call->batch.count - call->batch.item_count;
}

static void take_on_read(struct task *task)
{
	struct take_call *call = CONTAINER_OF(task, struct take_call, task);
	ASSERT_IS(api_call, &call->call);
	buf_release(&call->call.body);
	stat_add(STAT_fault_failed, (int64_t)take_bad(call));
	if (!call->err && call->counts.count)
		minute_sums_add(call->call.api->sums, call->tenant, &call->counts);
	call->submission.owner = call;
	if (call->call.request && !call->err && call->batch.item_count)
		take_submit(call);
	else
		take_on_submitted(&call->submission);
}

/* On a worker. */
static void take_read(struct task *task)
{
	struct take_call *call = CONTAINER_OF(task, struct take_call, task);
	struct executor *executor = loop_executor(call->call.api->loop);
	call->err = call->door->read(call);
	task->run = take_on_read;
	executor->post(executor, task);
}

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param faults_take_params[] = {
	{"tenant", PARAM_TENANT, 0, .help = "Whose reports they are."}, {NULL}};

static int take_read_oops(struct take_call *call)
{
	const struct oops_options options = {.report = call->options,
					     .takes_array = !call->id.data};
	return oops_batch_read(&call->batch, buf_slice(&call->call.body), call->id, &options,
			       &call->error);
}

static const struct take_door take_door_oops = {.read = take_read_oops, .answer = take_answer};

void take_begin(struct http_request *request, const struct take_order *order)
{
	const struct api *api = api_of(request);
	const struct fault_site *site = fault_site_of(api->fault);
	struct slice id = order->id;
	struct take_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &take_kind);
	api_call_set_deadline(&call->call);
	oops_batch_init(&call->batch);
	call->door = order->door;
	call->tenant = arena_copy(&call->call.arena, order->tenant);
	call->id = id.data ? arena_copy(&call->call.arena, id) : id;
	ASSERT(call->tenant.data && !call->id.data == !id.data); /* parts of a head */
	call->options = (struct fault_report_options){
		.digest_key = site->digest_key,
		.masks = &site->masks,
		.body_max_bytes = (size_t)api->conf->fault_report_max_bytes,
	};
	call->task.run = take_read;
	call->call.held++;
	if (!pool_submit(api->fault_pool, &call->task))
		return;
	stat_add(STAT_fault_failed, 1);
	call->err = errbuf_set(&call->error, ERR_BUSY,
			       "too many reports wait to be read: send this again later");
	if (api_call_settle(&call->call))
		call->door->answer(call);
}

static void take_begin_oops(struct http_request *request, struct slice id)
{
	struct take_order order = {.door = &take_door_oops, .id = id};
	struct errbuf e = {""};
	if (params_read_route(request, 0, &order.tenant, &e))
		http_reply_error(request, 400, "%s", e.text);
	else
		take_begin(request, &order);
}

static void take_post_end(struct http_request *request)
{
	take_begin_oops(request, (struct slice){NULL, 0});
}

static void take_put_end(struct http_request *request)
{
	struct slice id = notation_id(request);
	if (fault_id_valid(id))
		take_begin_oops(request, id);
	else
		http_reply_error(request, 400,
				 "\"" SHOWN "\" cannot be the id of a report: 1 to %d bytes of "
				 "UTF-8 without /, blanks and control characters",
				 SHOWN_OF(id), FAULT_ID_MAX_BYTES);
}

const struct http_handler faults_post = API_CALL_HANDLER(take_post_end);
const struct http_handler faults_put = API_CALL_HANDLER(take_put_end);
