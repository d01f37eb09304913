/* Collection by hand (fault/collect.h): a plan, and, unless it is only to be shown, what carries it
 * out. */
#include "api/fault/faults.h"

#include "api/call.h"
#include "fault/fault.h"

enum {
	GC_ARENA_MAX_BYTES = 64 << 10,
	GC_ANSWER_MAX_BYTES = 64 << 10,
	GC_NEWEST_MAX = 1000,
};

struct gc_question {
	struct slice tenant;
	bool dry_run;
	int64_t before_ms; /* INT64_MIN: it was not given */
	uint64_t bytes, newest;
};

struct gc_call {
	struct api_call call;
	struct slice tenant; /* in the call's arena */
	bool dry_run;
	struct fault_collect_rules rules;
};

static const struct api_call_kind gc_kind;

static struct gc_call *gc_call_of(struct api_call *call)
{
	ASSERT(call->kind == &gc_kind);
	return CONTAINER_OF(call, struct gc_call, call);
}

static void gc_put(struct gc_call *call, const struct fault_plan *plan)
{
	struct json_writer *json = &call->call.json;
	struct fault_plan_view view = fault_plan_view(plan);
	json_write_object_begin(json);
	json_put_bool(json, "dry_run", call->dry_run);
	json_put_u64(json, "reports", view.reports);
	json_put_u64(json, "bytes", view.bytes);
	json_put_u64(json, "runs", view.runs);
	json_put_u64(json, "all_reports", view.all_reports);
	json_put_u64(json, "all_bytes", view.sealed_bytes);
	json_write_object_end(json);
}

static int gc_hand_over(struct gc_call *call, struct fault_book *book, struct fault_plan **plan)
{
	int err = fault_book_collect(book, *plan, &call->call.error);
	if (!err)
		*plan = NULL;
	return err == ERR_INVALID ? ERR_RETRY : err;
}

static void gc_run(struct api_call *base)
{
	struct gc_call *call = gc_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->tenant);
	struct fault_plan *plan = NULL;
	base->err = call->dry_run ? 0 : fault_wait_for_owner(book, base->job, &base->error);
	if (!base->err)
		base->err = fault_plan_new(book, job_queue(base->job), &call->rules,
					   base->deadline_us, &plan, &base->error);
	if (!base->err) {
		gc_put(call, plan);
		if (!call->dry_run && fault_plan_view(plan).runs)
			base->err = gc_hand_over(call, book, &plan);
	}
	fault_plan_free(plan);
	fault_book_return(base->api->fault, book);
}

static const struct api_call_kind gc_kind = {.arena_max_bytes = GC_ARENA_MAX_BYTES,
					     .out_max_bytes = GC_ANSWER_MAX_BYTES,
					     .job_name = "gc",
					     .run = gc_run};

#define GC_FIELD(field_) offsetof(struct gc_question, field_)

const struct param faults_gc_params[] = {
	{"tenant", PARAM_TENANT, GC_FIELD(tenant), .help = "Whose reports."},
	{"dryRun", PARAM_FLAG, GC_FIELD(dry_run), .help = "Only says how many would go."},
	{"before", PARAM_TIME, GC_FIELD(before_ms),
	 .help = "Those that were received before; fault.keep where it is left out."},
	{"bytes", PARAM_NUMBER, GC_FIELD(bytes), 1, INT64_MAX,
	 .help = "Those of the fullest groups, until all take no more; fault.keep_bytes where it "
		 "is left out."},
	{"newest", PARAM_NUMBER, GC_FIELD(newest), 1, GC_NEWEST_MAX,
	 .help = "So many of each group stay; fault.keep_newest where it is left out."},
	{NULL}};

static int gc_read(const struct http_request *request, struct gc_call *call, struct errbuf *e)
{
	struct gc_question q = {.before_ms = INT64_MIN};
	int64_t now_ms = clock_wall_ms(call->call.api->clock);
	int err = params_read_route(request, now_ms, &q, e);
	if (err)
		return err;
	call->rules = *fault_collect_rules_of(call->call.api->fault);
	call->rules.counts = true;
	if (q.before_ms != INT64_MIN || q.bytes) {
		call->rules.keep_us = 0;
		call->rules.bytes_max = q.bytes;
	}
	if (q.before_ms != INT64_MIN && (q.before_ms < 0 || q.before_ms > now_ms))
		return errbuf_set(e, ERR_INVALID, "before is not between 1970 and now");
	if (q.before_ms != INT64_MIN)
		call->rules.keep_us = larger_of(now_ms - q.before_ms, 1) * 1000;
	if (q.newest)
		call->rules.newest = q.newest;
	if (!call->rules.keep_us && !call->rules.bytes_max)
		return errbuf_set(e, ERR_INVALID,
				  "nothing says which reports are to go: before or bytes, or the "
				  "options fault.keep and fault.keep_bytes");
	call->dry_run = q.dry_run;
	call->tenant = arena_copy(&call->call.arena, q.tenant);
	ASSERT(call->tenant.data); /* at most TENANT_MAX_BYTES */
	return 0;
}

static void gc_end(struct http_request *request)
{
	struct gc_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &gc_kind);
	api_call_set_deadline(&call->call);
	int err = gc_read(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

const struct http_handler faults_gc = API_CALL_HANDLER(gc_end);
