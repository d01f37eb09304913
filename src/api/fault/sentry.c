/* The doors of Sentry's clients. The key is looked for in the head, before the body is read. A few
 * clients have it in the envelope only; theirs is looked for when the body has come. What is sent
 * is then read, submitted and kept as any other report is (take.c). */
#include "api/fault/faults.h"

#include <inttypes.h>

#include "api/fault/take.h"
#include "base/stats.h"
#include "conf/conf.h"
#include "ingest/sentry.h"
#include "wire/number.h"
#include "wire/sentry_auth.h"

/* ---- Answers --------------------------------------------------------------------------------- */

/* What clients look for in a refusal. */
static void sentry_write_error(struct buf *out, UNUSED int status, struct slice message)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_string(&json, "detail", message);
	json_put_strings(&json, "causes", NULL, 0);
	json_write_object_end(&json);
}

static void sentry_answer_item(struct take_call *call)
{
	const struct oops_report *report = call->batch.reports;
	int status = report ? take_status(call, report) : 200;
	struct errbuf e;
	if (status >= 300) {
		take_sentence(call, report, status, &e);
		api_call_fail(&call->call, status, "%s", e.text);
		return;
	}
	json_write_object_begin(&call->call.json);
	if (call->id.len)
		json_put_string(&call->call.json, "id", call->id);
	json_write_object_end(&call->call.json);
	call->call.status = 200;
	api_call_end(&call->call);
}

static void sentry_answer(struct take_call *call)
{
	if (call->err)
		api_call_fail(&call->call, call->err == ERR_LIMIT ? 413 : http_status_of(call->err),
			      "%s", call->error.text);
	else
		sentry_answer_item(call);
}

static int sentry_read(struct take_call *call, bool is_envelope)
{
	const struct sentry_options options = {
		.report = call->options,
		.is_envelope = is_envelope,
		.slow_ms = call->call.api->conf->fault_slow_ms,
		.attachment_max_bytes = (size_t)call->call.api->conf->fault_attachment_max_bytes};
	return sentry_batch_read(&call->batch, buf_slice(&call->call.body), &options, &call->id,
				 &call->counts, &call->error);
}

static int sentry_read_at_envelope(struct take_call *call)
{
	return sentry_read(call, true);
}

static int sentry_read_at_store(struct take_call *call)
{
	return sentry_read(call, false);
}

static const struct take_door sentry_door_envelope = {.read = sentry_read_at_envelope,
						      .answer = sentry_answer};
static const struct take_door sentry_door_store = {.read = sentry_read_at_store,
						   .answer = sentry_answer};

/* ---- Who sends ------------------------------------------------------------------------------- */

/* /api/NUMBER/... */
static uint64_t sentry_project_of(const struct http_request *request)
{
	uint64_t number = 0;
	ASSERT(request->segment_count >= 3);
	struct slice digits = request->segments[1];
	int err = number_parse_u64(digits.data, digits.data + digits.len, &number);
	return err ? 0 : number;
}

static struct slice sentry_key_of_head(const struct http_request *request)
{
	struct slice key = sentry_auth_key(http_header(request, "X-Sentry-Auth"));
	if (!key.len)
		key = sentry_auth_key(http_header(request, "Authorization"));
	return key.len ? key : http_param(request, "sentry_key");
}

/* That of the envelope's `dsn`. Its texts are the body's or the arena's. */
static struct slice sentry_key_of_envelope(struct http_request *request, uint64_t number)
{
	struct sentry_envelope envelope;
	struct sentry_dsn dsn;
	struct slice text, none = {NULL, 0};
	struct slice body = request->body.len ? buf_slice(&request->body) : SLICE("");
	if (sentry_envelope_begin(&envelope, body, &request->arena, NULL) ||
	    json_get_text(envelope.headers, "dsn", &text, NULL) || !sentry_dsn_parse(text, &dsn) ||
	    dsn.project != number)
		return none;
	return dsn.key;
}

/* Says the same of a project that is not there: who has no key learns of none. */
static void sentry_refuse_key(struct http_request *request)
{
	stat_add(STAT_sentry_refused_key, 1);
	http_reply_error(request, 403,
			 "the request has no key of the project in its path: send one in "
			 "X-Sentry-Auth, in sentry_key or in the dsn of the envelope; granary "
			 "fault project list shows the projects and their keys");
}

static const struct {
	const char *what, *option;
} sentry_quotas[FAULT_SPANS] = {
	[FAULT_MINUTE] = {"requests in this minute", "fault.quota.minute"},
	[FAULT_HOUR] = {"requests in this hour", "fault.quota.hour"},
	[FAULT_DAY] = {"bytes on this day", "fault.quota.day_bytes"},
};

static void sentry_refuse_quota(struct http_request *request, uint64_t number, enum fault_span full,
				int64_t wait_ms)
{
	char seconds[32], rate_limits[64];
	long long wait_s = (long long)((wait_ms + 999) / 1000);
	snprintf(seconds, sizeof(seconds), "%lld", wait_s);
	/* No categories: all of them. */
	snprintf(rate_limits, sizeof(rate_limits), "%lld::organization", wait_s);
	stat_add(STAT_sentry_refused_quota, 1);
	http_reply_header(request, "Retry-After", seconds);
	http_reply_header(request, "X-Sentry-Rate-Limits", rate_limits);
	http_reply_error(request, 429,
			 "the tenant of project %" PRIu64
			 " has sent as many %s as it may (%s): send again in %lld s",
			 number, sentry_quotas[full].what, sentry_quotas[full].option, wait_s);
}

/* False: 429 has been answered. */
static bool sentry_take_request(struct http_request *request, uint64_t number)
{
	enum fault_span full;
	int64_t wait_ms =
		fault_projects_take_quota(fault_projects_of(api_of(request)->fault), number, &full);
	if (wait_ms)
		sentry_refuse_quota(request, number, full, wait_ms);
	return !wait_ms;
}

/* The same when the body is there: others may have come beside it. Of a body in chunks nobody has
 * counted the bytes that were sent. */
static bool sentry_take_bytes(struct http_request *request, uint64_t number)
{
	uint64_t bytes = request->content_length < 0 ? request->body_bytes
						     : (uint64_t)request->content_length;
	int64_t wait_ms =
		fault_projects_take_bytes(fault_projects_of(api_of(request)->fault), number, bytes);
	if (wait_ms)
		sentry_refuse_quota(request, number, FAULT_DAY, wait_ms);
	return !wait_ms;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* A request with a key in its head is counted here. One whose key stands in the envelope is counted
 * by sentry_end, after the key was compared: a request without a key uses up no quota. It is also
 * refused there, whether the project is there or not. */
static void sentry_begin(struct http_request *request)
{
	struct fault_projects *projects = fault_projects_of(api_of(request)->fault);
	uint64_t number = sentry_project_of(request);
	struct slice key = sentry_key_of_head(request);
	struct fault_project project;
	if (!key.len)
		return;
	if (fault_projects_find(projects, number, &project) && fault_project_has_key(&project, key))
		(void)sentry_take_request(request, number);
	else
		sentry_refuse_key(request);
}

static void sentry_end(struct http_request *request, const struct take_door *door)
{
	struct fault_projects *projects = fault_projects_of(api_of(request)->fault);
	uint64_t number = sentry_project_of(request);
	struct slice key = sentry_key_of_head(request);
	struct fault_project project;
	bool is_counted = key.len > 0; /* by sentry_begin */
	if (!key.len && door == &sentry_door_envelope)
		key = sentry_key_of_envelope(request, number);
	bool found = fault_projects_find(projects, number, &project);
	if (!found || !fault_project_has_key(&project, key)) {
		sentry_refuse_key(request);
		return;
	}
	if (!is_counted && !sentry_take_request(request, number))
		return;
	if (!sentry_take_bytes(request, number))
		return;
	const struct take_order order = {.door = door, .tenant = slice_of(project.tenant)};
	take_begin(request, &order);
}

static void sentry_envelope_end(struct http_request *request)
{
	sentry_end(request, &sentry_door_envelope);
}

static void sentry_store_end(struct http_request *request)
{
	sentry_end(request, &sentry_door_store);
}

#define SENTRY_HANDLER(end_)                                                                       \
	{                                                                                          \
		.begin = sentry_begin, .end = (end_), .drained = api_call_drained,                 \
		.abort = api_call_aborted, .error = sentry_write_error                             \
	}

const struct http_handler sentry_envelope = SENTRY_HANDLER(sentry_envelope_end);
const struct http_handler sentry_store = SENTRY_HANDLER(sentry_store_end);

/* What else clients say here is passed over. */
const struct param sentry_params[] = {
	{"sentry_key", PARAM_OTHER, 0, .help = "A key of the project."},
	{"sentry_version", PARAM_OTHER, 0},
	{"sentry_client", PARAM_OTHER, 0},
	{"sentry_secret", PARAM_OTHER, 0},
	{"sentry_timestamp", PARAM_OTHER, 0},
	{NULL}};
