/* Removal of all reports of a user (fault/erase.h). */
#include "api/fault/faults.h"

#include "api/call.h"
#include "api/fault/notation.h"
#include "fault/erase.h"
#include "fault/fault.h"

enum {
	ERASE_ARENA_MAX_BYTES = 64 << 10,
	ERASE_ANSWER_MAX_BYTES = 64 << 10,
	ERASE_LOOK_MS = 50,
};

struct erase_question {
	struct slice tenant, user;
	bool dry_run;
};

struct erase_call {
	struct api_call call;
	struct slice tenant, user; /* in the call's arena */
	bool dry_run;
};

static const struct api_call_kind erase_kind;

static struct erase_call *erase_call_of(struct api_call *call)
{
	ASSERT(call->kind == &erase_kind);
	return CONTAINER_OF(call, struct erase_call, call);
}

static void erase_put(struct erase_call *call, struct fault_erasure_view view)
{
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_put_bool(json, "dry_run", call->dry_run);
	json_put_u64(json, "reports", view.reports);
	json_put_u64(json, "days", view.days);
	json_put_bool(json, "more", view.more);
	json_write_object_end(json);
}

static int erase_wait(struct erase_call *call, struct fault_book *book, uint64_t ticket)
{
	struct api_call *base = &call->call;
	struct clock *clock = base->api->clock;
	enum fault_erasure_state state = fault_book_erasure_state(book, ticket);
	for (; state == FAULT_ERASURE_WORKS; state = fault_book_erasure_state(book, ticket)) {
		if (clock->mono_us(clock) >= base->deadline_us)
			return errbuf_set(&base->error, ERR_RETRY,
					  "the removal goes on, and takes longer than "
					  "query.timeout; ask again to learn that it is done");
		if (job_sleep(base->job, ERASE_LOOK_MS))
			return ERR_CANCELLED;
	}
	return state == FAULT_ERASURE_DONE
		       ? 0
		       : errbuf_set(&base->error, ERR_RETRY,
				    "another process has begun to count the reports of the tenant; "
				    "some reports may still be there, so ask again");
}

static int erase_carry_out(struct erase_call *call, struct fault_book *book)
{
	struct api_call *base = &call->call;
	struct fault_erasure *erasure = NULL;
	uint64_t ticket;
	int err = fault_erasure_new(book, job_queue(base->job), call->user, &erasure, &base->error);
	if (err)
		return err;
	struct fault_erasure_view view = fault_erasure_view(erasure);
	erase_put(call, view);
	if (!call->dry_run)
		err = fault_book_erase(book, erasure, &ticket, &base->error);
	if (err || call->dry_run)
		fault_erasure_free(erasure);
	if (err == ERR_INVALID)
		return ERR_RETRY; /* it was the owner just before */
	return err || call->dry_run ? err : erase_wait(call, book, ticket);
}

static void erase_run(struct api_call *base)
{
	struct erase_call *call = erase_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->tenant);
	base->err = call->dry_run ? 0 : fault_wait_for_owner(book, base->job, &base->error);
	base->err = base->err ? base->err : erase_carry_out(call, book);
	fault_book_return(base->api->fault, book);
}

static const struct api_call_kind erase_kind = {.arena_max_bytes = ERASE_ARENA_MAX_BYTES,
						.out_max_bytes = ERASE_ANSWER_MAX_BYTES,
						.job_name = "erase",
						.run = erase_run};

#define ERASE_FIELD(field_) offsetof(struct erase_question, field_)

const struct param faults_erase_params[] = {
	{"tenant", PARAM_TENANT, ERASE_FIELD(tenant), .help = "Whose reports."},
	{"user", PARAM_TEXT, ERASE_FIELD(user), .missing = "",
	 .help = "The user, as lists of reports show them."},
	{"dryRun", PARAM_FLAG, ERASE_FIELD(dry_run), .help = "Only says how many would go."},
	{NULL}};

static int erase_read(const struct http_request *request, struct erase_call *call, struct errbuf *e)
{
	struct erase_question q = {.dry_run = false};
	int err = params_read_route(request, clock_wall_ms(call->call.api->clock), &q, e);
	if (!err && !q.user.len)
		err = errbuf_set(e, ERR_INVALID, "user is empty: reports without one stay");
	call->user = q.user;
	err = err ? err : notation_keep_fact(&call->call.arena, FAULT_USER, &call->user, e);
	if (err)
		return err;
	call->dry_run = q.dry_run;
	call->tenant = arena_copy(&call->call.arena, q.tenant);
	ASSERT(call->tenant.data); /* at most TENANT_MAX_BYTES */
	return 0;
}

static void erase_end(struct http_request *request)
{
	struct erase_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &erase_kind);
	api_call_set_deadline(&call->call);
	int err = erase_read(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

const struct http_handler faults_erase = API_CALL_HANDLER(erase_end);
