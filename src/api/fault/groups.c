/* Groups of fault reports: all that have reports on some days. */
#include "api/fault/faults.h"

#include <stdlib.h>

#include "api/call.h"
#include "api/fault/group_json.h"
#include "api/fault/notation.h"
#include "fault/fault.h"

enum {
	GROUPS_ARENA_MAX_BYTES = 64 << 20,
	GROUPS_ANSWER_MAX_BYTES = 64 << 20,
	GROUPS_LIMIT_MAX = 1000,
	GROUPS_PRESET = 100,
	GROUPS_PRESET_DAYS = 14,
	GROUPS_HOUR_MS = 3600000,
};

enum groups_sort { GROUPS_BY_LAST, GROUPS_BY_FIRST, GROUPS_BY_COUNT, GROUPS_BY_USERS };

/* What may be asked. */
struct groups_question {
	struct slice tenant, texts[FAULT_TALLY_FACTS];
	int64_t since_ms, until_ms;
	int status; /* -1: any */
	enum groups_sort sort;
	size_t limit;
};

/* A group of the answer. */
struct groups_row {
	const struct fault_group_sum *sum;
	struct slice assignee; /* len 0: nobody's */
	enum fault_status status;
	bool again;
};

struct groups_call {
	struct api_call call;
	struct groups_question question; /* texts in the call's arena */
	struct fault_merges merges;      /* likewise */
	struct fault_groups groups;
};

static const struct api_call_kind groups_kind;

static struct groups_call *groups_call_of(struct api_call *call)
{
	ASSERT(call->kind == &groups_kind);
	return CONTAINER_OF(call, struct groups_call, call);
}

static void groups_release(struct api_call *call)
{
	fault_groups_release(&groups_call_of(call)->groups);
}

static void groups_put_row(struct groups_call *call, const struct groups_row *row)
{
	struct json_writer *json = &call->call.json;
	const struct fault_value *release = fault_tally_latest_release(row->sum->tally);
	json_write_object_begin(json);
	json_put_string(json, "group", row->sum->name);
	group_json_status(json, row->assignee, row->status, row->again);
	group_json_tally(json, row->sum->tally);
	if (release)
		json_put_string(json, "release", release->text);
	json_write_object_end(json);
}

/* The status follows from all reports of a group, not from those of the days that are asked. */
static int groups_judge(struct groups_call *call, struct fault_book *book,
			const struct fault_said_list *list, struct groups_row *row)
{
	const struct fault_group_question question = {row->sum->name, FAULT_SAID_FACTS,
						      call->call.deadline_us, &call->merges};
	struct fault_said said;
	int err = fault_said_judge(list, book, job_queue(call->call.job), &question, &said,
				   &row->status, &row->again, &call->call.error);
	row->assignee = said.assignee;
	return err;
}

static bool groups_fits(const struct groups_question *q, const struct fault_tally *tally)
{
	for (enum fault_tally_fact i = 0; i < FAULT_TALLY_FACTS; i++)
		if (q->texts[i].data && !fault_tally_find(tally, i, q->texts[i]))
			return false;
	return tally->first.date_us < notation_us(q->until_ms) &&
	       tally->last.date_us >= notation_us(q->since_ms);
}

static uint64_t groups_users(const struct groups_row *row)
{
	bool about;
	return fault_tally_distinct(row->sum->tally, FAULT_TALLY_USER, &about);
}

static int groups_compare_names(const struct groups_row *a, const struct groups_row *b)
{
	return slice_compare(a->sum->name, b->sum->name);
}

#define GROUPS_COMPARE(name_, value_)                                                              \
	static int name_(const void *one, const void *other)                                       \
	{                                                                                          \
		const struct groups_row *a = one, *b = other;                                      \
		if (value_(a) != value_(b))                                                        \
			return value_(a) > value_(b) ? -1 : 1;                                     \
		return groups_compare_names(a, b);                                                 \
	}
#define GROUPS_LAST(row_)  ((row_)->sum->tally->last.date_us)
#define GROUPS_FIRST(row_) ((row_)->sum->tally->first.date_us)
#define GROUPS_COUNT(row_) ((row_)->sum->tally->count)
GROUPS_COMPARE(groups_compare_last, GROUPS_LAST)
GROUPS_COMPARE(groups_compare_first, GROUPS_FIRST)
GROUPS_COMPARE(groups_compare_count, GROUPS_COUNT)
GROUPS_COMPARE(groups_compare_users, groups_users)

/* Those that are asked for, in the order that is asked for. Where any status will do, only those
 * that are shown are judged. */
static int groups_choose(struct groups_call *call, struct fault_book *book,
			 const struct fault_said_list *said, struct groups_row *rows, size_t *count)
{
	static int (*const compares[])(const void *, const void *) = {
		[GROUPS_BY_LAST] = groups_compare_last,
		[GROUPS_BY_FIRST] = groups_compare_first,
		[GROUPS_BY_COUNT] = groups_compare_count,
		[GROUPS_BY_USERS] = groups_compare_users,
	};
	const struct groups_question *q = &call->question;
	int err = 0;
	*count = 0;
	for (size_t at = 0; at < call->groups.table.slot_count && !err; at++) {
		const struct fault_group_sum *sum = fault_groups_at(&call->groups, at);
		if (!sum || !groups_fits(q, sum->tally))
			continue;
		struct groups_row row = {.sum = sum};
		err = q->status < 0 ? 0 : groups_judge(call, book, said, &row);
		if (!err && (q->status < 0 || (int)row.status == q->status))
			rows[(*count)++] = row;
	}
	if (*count)
		qsort(rows, *count, sizeof(*rows), compares[q->sort]);
	for (size_t i = 0; i < *count && i < q->limit && q->status < 0 && !err; i++)
		err = groups_judge(call, book, said, &rows[i]);
	return err;
}

static void groups_put_list(struct groups_call *call, const struct groups_row *rows, size_t count)
{
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_write_key(json, "groups");
	json_write_array_begin(json);
	for (size_t i = 0; i < count && i < call->question.limit; i++)
		groups_put_row(call, &rows[i]);
	json_write_array_end(json);
	json_put_u64(json, "total", count);
	json_write_object_end(json);
	call->call.cut = count > call->question.limit || call->groups.left_out ? "limit" : NULL;
}

/* The facts whose values the answer shows, or the question names. */
static unsigned groups_facts(const struct groups_question *q)
{
	unsigned facts = 1u << FAULT_TALLY_USER | 1u << FAULT_TALLY_RELEASE;
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++)
		facts |= (unsigned)(q->texts[i].data != NULL) << i;
	return facts;
}

static int groups_run_list(struct groups_call *call, struct fault_book *book)
{
	struct task_queue *queue = job_queue(call->call.job);
	const struct groups_question *q = &call->question;
	const struct fault_groups_question groups = {
		.first_day = fault_day_of(notation_us(q->since_ms)),
		.last_day = fault_day_of(notation_us(q->until_ms) - 1),
		.facts = groups_facts(q),
		.deadline_us = call->call.deadline_us,
		.merges = &call->merges,
	};
	const struct fault_site *site = fault_site_of(call->call.api->fault);
	struct fault_said_list said;
	size_t count;
	int err = fault_said_read_all(site, queue, q->tenant, &call->call.arena, &said,
				      &call->call.error);
	err = err ? err
		  : fault_merges_read(site, queue, q->tenant, &call->call.arena, &call->merges,
				      &call->call.error);
	err = err ? err
		  : fault_book_read_groups(book, queue, &groups, &call->groups, &call->call.error);
	if (err)
		return err;
	struct groups_row *rows = mem_alloc_array(call->groups.table.count + 1, sizeof(*rows));
	err = groups_choose(call, book, &said, rows, &count);
	if (!err)
		groups_put_list(call, rows, count);
	mem_free(rows);
	return err;
}

/* ---- The call -------------------------------------------------------------------------------- */

static void groups_run(struct api_call *base)
{
	struct groups_call *call = groups_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->question.tenant);
	call->call.err = groups_run_list(call, book);
	fault_book_return(base->api->fault, book);
}

static const struct api_call_kind groups_kind = {.arena_max_bytes = GROUPS_ARENA_MAX_BYTES,
						 .out_max_bytes = GROUPS_ANSWER_MAX_BYTES,
						 .release = groups_release,
						 .job_name = "groups",
						 .run = groups_run};

/* ---- What is asked --------------------------------------------------------------------------- */

static const char *const groups_sorts[] = {[GROUPS_BY_LAST] = "last",
					   [GROUPS_BY_FIRST] = "first",
					   [GROUPS_BY_COUNT] = "count",
					   [GROUPS_BY_USERS] = "users",
					   NULL};

#define GROUPS_FIELD(field_) offsetof(struct groups_question, field_)
#define GROUPS_TEXT(fact_)   PARAM_TEXT, GROUPS_FIELD(texts) + (fact_) * sizeof(struct slice)

const struct param faults_groups_params[] = {
	{"tenant", PARAM_TENANT, GROUPS_FIELD(tenant), .help = "Whose groups."},
	{"since", PARAM_TIME, GROUPS_FIELD(since_ms),
	 .help = "Days from this time's on; two weeks where it is left out."},
	{"until", PARAM_TIME, GROUPS_FIELD(until_ms), .help = "Days up to this time's."},
	{"status", PARAM_WORD, GROUPS_FIELD(status), .words = fault_statuses,
	 .help = "Only those of this status."},
	{"context", GROUPS_TEXT(FAULT_TALLY_CONTEXT), .help = "Only with reports of this context."},
	{"exception", GROUPS_TEXT(FAULT_TALLY_EXCEPTION),
	 .help = "Only with reports of this exception."},
	{"host", GROUPS_TEXT(FAULT_TALLY_HOST), .help = "Only with reports of this machine."},
	{"release", GROUPS_TEXT(FAULT_TALLY_RELEASE), .help = "Only with reports of this release."},
	{"environment", GROUPS_TEXT(FAULT_TALLY_ENVIRONMENT),
	 .help = "Only with reports of this environment."},
	{"level", GROUPS_TEXT(FAULT_TALLY_LEVEL), .help = "Only with reports of this level."},
	{"user", GROUPS_TEXT(FAULT_TALLY_USER), .help = "Only with reports of this user."},
	{"sort", PARAM_WORD, GROUPS_FIELD(sort), .words = groups_sorts,
	 .help = "What stands first: the newest report, the newest group, most reports, most "
		 "users; last where it is left out."},
	{"limit", PARAM_NUMBER, GROUPS_FIELD(limit), 1, GROUPS_LIMIT_MAX,
	 .help = "At most so many groups; 100 where it is left out."},
	{NULL}};

static int groups_read_list(const struct http_request *request, struct groups_call *call,
			    struct errbuf *e)
{
	struct groups_question *q = &call->question;
	struct arena *arena = &call->call.arena;
	int64_t now_ms = clock_wall_ms(call->call.api->clock);
	*q = (struct groups_question){.since_ms = now_ms -
						  (GROUPS_PRESET_DAYS - 1) * 24 * GROUPS_HOUR_MS,
				      .until_ms = INT64_MIN,
				      .status = -1,
				      .limit = GROUPS_PRESET};
	int err = params_read_route(request, now_ms, q, e);
	/* What is received while it is asked counts. */
	q->until_ms = q->until_ms == INT64_MIN ? larger_of(now_ms, q->since_ms) + GROUPS_HOUR_MS
					       : q->until_ms;
	if (!err && q->since_ms >= q->until_ms)
		err = errbuf_set(e, ERR_INVALID, "since does not lie before until");
	if (!err && (q->since_ms < 0 ||
		     q->until_ms / (24 * GROUPS_HOUR_MS) - q->since_ms / (24 * GROUPS_HOUR_MS) >=
			     FAULT_GROUPS_DAYS_MAX - 1))
		err = errbuf_set(e, ERR_INVALID,
				 "groups of %d days at most are put together: since lies too far "
				 "before until",
				 FAULT_GROUPS_DAYS_MAX - 1);
	for (size_t i = 0; i < FAULT_TALLY_FACTS && !err; i++)
		err = notation_keep_fact(arena, fault_tally_fact_text((enum fault_tally_fact)i),
					 &q->texts[i], e);
	return err ? err : params_keep(arena, &q->tenant, "tenant", TENANT_MAX_BYTES, e);
}

static void groups_end(struct http_request *request)
{
	struct groups_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &groups_kind);
	api_call_set_deadline(&call->call);
	int err = groups_read_list(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

const struct http_handler faults_groups = API_CALL_HANDLER(groups_end);
