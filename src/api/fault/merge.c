/* Merging a group of fault reports into another one, and splitting it off again (fault/merges.h).
 */
#include "api/fault/faults.h"

#include "api/call.h"
#include "api/fault/group_json.h"
#include "fault/fault.h"
#include "fault/groups.h"

enum {
	MERGE_ARENA_MAX_BYTES = 32 << 20,
	MERGE_ANSWER_MAX_BYTES = 64 << 10,
	MERGE_FACTS = 1 << FAULT_TALLY_USER,
};

struct merge_question {
	struct slice tenant, into;
	bool dry_run;
};

struct merge_call {
	struct api_call call;
	struct slice tenant; /* in the call's arena */
	struct fault_merge_change change;
	bool dry_run;
};

static const struct api_call_kind merge_kind;

static struct merge_call *merge_call_of(struct api_call *call)
{
	ASSERT(call->kind == &merge_kind);
	return CONTAINER_OF(call, struct merge_call, call);
}

/* ---- On the job's thread --------------------------------------------------------------------- */

static int merge_read_group(struct merge_call *call, struct fault_book *book, struct slice group,
			    const struct fault_merges *merges, struct fault_group_history *history)
{
	const struct fault_group_question question = {group, MERGE_FACTS, call->call.deadline_us,
						      merges};
	return fault_book_read_group(book, job_queue(call->call.job), &question, history,
				     &call->call.error);
}

/* Whether there are reports by this name: of the group, or of others that it is shown with. */
static int merge_check_group(struct merge_call *call, struct fault_book *book, struct slice group,
			     const struct fault_merges *merges)
{
	struct fault_group_history history;
	int err = merge_read_group(call, book, fault_merges_root(merges, group), merges, &history);
	if (!err && !history.tally.count)
		err = errbuf_set(&call->call.error, ERR_NOT_FOUND, "there is no group " SHOWN,
				 SHOWN_OF(group));
	fault_group_history_release(&history);
	return err;
}

/* What a group adds up to. */
static int merge_put_group(struct merge_call *call, struct fault_book *book, const char *key,
			   struct slice group, const struct fault_merges *merges)
{
	struct json_writer *json = &call->call.json;
	struct fault_group_history history;
	int err = merge_read_group(call, book, group, merges, &history);
	json_write_key(json, key);
	json_write_object_begin(json);
	json_put_string(json, "group", group);
	if (!err && history.tally.count)
		group_json_tally(json, &history.tally);
	json_put_u64(json, "days", history.count);
	json_write_object_end(json);
	fault_group_history_release(&history);
	return err;
}

/* The group by itself is what moves; the other one is shown as it becomes by that. */
static int merge_put(struct merge_call *call, struct fault_book *book,
		     const struct fault_merges *before, const struct fault_merges *after)
{
	struct slice group = call->change.group;
	bool joins = call->change.into.len;
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_put_bool(json, "dry_run", call->dry_run);
	int err = merge_put_group(call, book, "moves", group, joins ? before : after);
	err = err ? err
		  : merge_put_group(call, book, "becomes",
				    fault_merges_root(joins ? after : before, group), after);
	json_write_object_end(json);
	return err;
}

/* All that is answered is read before the change is stored: it cannot fail after that. */
static int merge_run_change(struct merge_call *call, struct fault_book *book)
{
	const struct fault_site *site = fault_site_of(call->call.api->fault);
	struct task_queue *queue = job_queue(call->call.job);
	struct arena *arena = &call->call.arena;
	struct errbuf *e = &call->call.error;
	struct fault_merges before, after;
	int err = fault_merges_read(site, queue, call->tenant, arena, &before, e);
	/* What is merged is known, also when all its reports have gone since. */
	if (!err && !fault_merges_find(&before, call->change.group))
		err = merge_check_group(call, book, call->change.group, &before);
	if (!err && call->change.into.len)
		err = merge_check_group(call, book, call->change.into, &before);
	after = before;
	err = err ? err : fault_merges_change(&after, &call->change, arena, e);
	err = err ? err : merge_put(call, book, &before, &after);
	if (err || call->dry_run)
		return err;
	return fault_merges_write(site, queue, call->tenant, &call->change, arena, &after, e);
}

static void merge_run(struct api_call *base)
{
	struct merge_call *call = merge_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->tenant);
	base->err = merge_run_change(call, book);
	fault_book_return(base->api->fault, book);
}

static const struct api_call_kind merge_kind = {.arena_max_bytes = MERGE_ARENA_MAX_BYTES,
						.out_max_bytes = MERGE_ANSWER_MAX_BYTES,
						.job_name = "merge",
						.run = merge_run};

/* ---- What is asked --------------------------------------------------------------------------- */

#define MERGE_FIELD(field_) offsetof(struct merge_question, field_)

const struct param faults_merge_params[] = {
	{"tenant", PARAM_TENANT, MERGE_FIELD(tenant), .help = "Whose group."},
	{"into", PARAM_TEXT, MERGE_FIELD(into),
	 .help = "Of merge: the group that stands for both."},
	{"dryRun", PARAM_FLAG, MERGE_FIELD(dry_run), .help = "Only says what would become of it."},
	{NULL}};

/* /oops/groups/GROUP/merge, /oops/groups/GROUP/split. */
static int merge_read_path(const struct http_request *request, struct merge_call *call, bool *joins,
			   struct errbuf *e)
{
	const struct slice *segments = request->segments;
	struct slice name = request->segment_count == 4 ? segments[2] : SLICE("");
	*joins = name.len && slice_equal(segments[3], SLICE("merge"));
	if (!name.len || name.len > FAULT_LABEL_MAX_BYTES ||
	    (!*joins && !slice_equal(segments[3], SLICE("split"))))
		return errbuf_set(e, ERR_NOT_FOUND, "there is nothing at %.*s",
				  slice_shown_len(request->path), request->path.data);
	call->change.group = arena_copy(&call->call.arena, name);
	ASSERT(call->change.group.data); /* a part of a head */
	return 0;
}

static int merge_read(const struct http_request *request, struct merge_call *call, struct errbuf *e)
{
	struct merge_question q = {.into = SLICE("")};
	struct arena *arena = &call->call.arena;
	bool joins;
	int err = merge_read_path(request, call, &joins, e);
	err = err ? err : params_read_route(request, 0, &q, e);
	if (!err && joins != (q.into.len > 0))
		err = errbuf_set(e, ERR_INVALID,
				 joins ? "into is missing: the group to merge it into"
				       : "into goes with merge");
	err = err ? err : params_keep(arena, &q.into, "into", FAULT_LABEL_MAX_BYTES, e);
	err = err ? err : params_keep(arena, &q.tenant, "tenant", TENANT_MAX_BYTES, e);
	call->tenant = q.tenant;
	call->change.into = q.into;
	call->dry_run = q.dry_run;
	return err;
}

static void merge_end(struct http_request *request)
{
	struct merge_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &merge_kind);
	api_call_set_deadline(&call->call);
	int err = merge_read(request, call, &e);
	call->call.carried_through = !call->dry_run;
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

const struct http_handler faults_merge = API_CALL_HANDLER(merge_end);
