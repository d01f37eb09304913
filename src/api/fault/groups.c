/* Groups of fault reports: all of some days, one whole, and what people say of one. */
#include "api/fault/faults.h"

#include <stdlib.h>

#include "api/call.h"
#include "api/fault/notation.h"
#include "fault/fault.h"
#include "fault/group.h"
#include "fault/said.h"
#include "wire/timetext.h"

enum {
	GROUPS_ARENA_MAX_BYTES = 64 << 20,
	GROUPS_ANSWER_MAX_BYTES = 64 << 20,
	GROUPS_LIMIT_MAX = 1000,
	GROUPS_PRESET = 100,
	GROUPS_PRESET_DAYS = 14,
	GROUP_VALUES_MAX = 100, /* of a fact, in an answer */
	HOUR_MS = 3600000,
};

enum groups_sort { GROUPS_BY_LAST, GROUPS_BY_FIRST, GROUPS_BY_COUNT, GROUPS_BY_USERS };

/* What may be asked of all groups. */
struct groups_question {
	struct slice tenant, texts[FAULT_TALLY_FACTS];
	int64_t since_ms, until_ms;
	int status; /* -1: any */
	enum groups_sort sort;
	size_t limit;
};

/* What may be said of one. Texts that were not given have no data. */
struct groups_saying {
	struct slice tenant, in, within, assignee, tracker, bug;
	int status; /* -1: nothing is said of it */
	bool next;
	uint64_t until;
};

/* A group of the answer. */
struct groups_row {
	const struct fault_group_sum *sum;
	const struct fault_said *said; /* NULL: nothing was said */
	enum fault_status status;
	bool again;
};

struct groups_call {
	struct api_call call;
	struct groups_question question;
	struct groups_saying saying;
	bool says;
	struct slice tenant, group; /* in the call's arena; of one group */
	int64_t within_hours;
	const struct fault_group_history *history; /* while it is said */
	struct fault_groups groups;
	int err;
	struct errbuf error;
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

/* ---- What both have -------------------------------------------------------------------------- */

static void groups_put_date(struct json_writer *json, const char *key, int64_t date_us)
{
	json_put_i64(json, key, notation_ms(date_us));
}

static void groups_put_status(struct json_writer *json, const struct fault_said *said,
			      enum fault_status status, bool again)
{
	json_put_text(json, "status", fault_status_name(status));
	if (again)
		json_put_bool(json, "again", true);
	if (said && said->assignee.len)
		json_put_string(json, "assignee", said->assignee);
}

static void groups_put_users(struct json_writer *json, const struct fault_tally *tally)
{
	bool about;
	json_put_u64(json, "users",
		     fault_values_distinct(&tally->values[FAULT_TALLY_USER], &about));
	if (about)
		json_put_bool(json, "users_about", true);
}

static void groups_put_tally(struct json_writer *json, const struct fault_tally *tally)
{
	json_put_string(json, "title", tally->title);
	json_put_u64(json, "count", tally->count);
	groups_put_date(json, "first", tally->first.date_us);
	json_put_string(json, "first_id", tally->first.id);
	groups_put_date(json, "last", tally->last.date_us);
	json_put_string(json, "last_id", tally->last.id);
	groups_put_users(json, tally);
}

/* ---- All groups of some days ----------------------------------------------------------------- */

/* That of the newest report. */
static const struct fault_value *groups_newest(const struct fault_values *values)
{
	const struct fault_value *newest = NULL;
	for (size_t i = 0; i < values->count; i++)
		if (values->list[i].text.len &&
		    (!newest || values->list[i].last_us > newest->last_us))
			newest = &values->list[i];
	return newest;
}

static void groups_put_row(struct groups_call *call, const struct groups_row *row)
{
	struct json_writer *json = &call->call.json;
	const struct fault_value *release =
		groups_newest(&row->sum->tally->values[FAULT_TALLY_RELEASE]);
	json_write_object_begin(json);
	json_put_string(json, "group", row->sum->name);
	groups_put_status(json, row->said, row->status, row->again);
	groups_put_tally(json, row->sum->tally);
	if (release)
		json_put_string(json, "release", release->text);
	json_write_object_end(json);
}

/* The status follows from all reports of a group, not from those of the days that are asked. */
static int groups_judge(struct groups_call *call, struct fault_book *book, struct groups_row *row)
{
	struct fault_group_history history;
	if (!row->said || row->said->status == FAULT_OPEN)
		return 0;
	int err = api_call_check_time(&call->call, &call->error);
	if (err)
		return err;
	err = fault_book_read_group(book, job_queue(call->call.job), row->sum->name, &history,
				    &call->error);
	if (!err)
		row->status = fault_said_status(row->said, &history, &row->again);
	fault_group_history_release(&history);
	return err;
}

static bool groups_fits(const struct groups_question *q, const struct fault_tally *tally)
{
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++)
		if (q->texts[i].data && !fault_values_find(&tally->values[i], q->texts[i]))
			return false;
	return tally->first.date_us < notation_us(q->until_ms) &&
	       tally->last.date_us >= notation_us(q->since_ms);
}

static uint64_t groups_users(const struct groups_row *row)
{
	bool about;
	return fault_values_distinct(&row->sum->tally->values[FAULT_TALLY_USER], &about);
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

/* Those that are asked for, in the order that is asked for. */
static int groups_choose(struct groups_call *call, struct fault_book *book,
			 const struct fault_said_list *said, struct groups_row *rows, size_t *count)
{
	static int (*const compares[])(const void *,
				       const void *) = {groups_compare_last, groups_compare_first,
							groups_compare_count, groups_compare_users};
	const struct groups_question *q = &call->question;
	int err = 0;
	*count = 0;
	for (size_t at = 0; at < call->groups.table.slot_count && !err; at++) {
		const struct fault_group_sum *sum = fault_groups_at(&call->groups, at);
		if (!sum || !groups_fits(q, sum->tally))
			continue;
		struct groups_row row = {.sum = sum, .said = fault_said_find(said, sum->name)};
		err = groups_judge(call, book, &row);
		if (!err && (q->status < 0 || (int)row.status == q->status))
			rows[(*count)++] = row;
	}
	if (*count)
		qsort(rows, *count, sizeof(*rows), compares[q->sort]);
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

/* Whose values are shown, or looked for. */
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
	};
	struct fault_said_list said;
	size_t count;
	int err = fault_said_read_all(fault_site_of(call->call.api->fault), queue, q->tenant,
				      &call->call.arena, &said, &call->error);
	err = err ? err : fault_book_read_groups(book, queue, &groups, &call->groups, &call->error);
	if (err)
		return err;
	struct groups_row *rows = mem_alloc_array(call->groups.table.count + 1, sizeof(*rows));
	err = groups_choose(call, book, &said, rows, &count);
	if (!err)
		groups_put_list(call, rows, count);
	mem_free(rows);
	return err;
}

/* ---- One group, whole ------------------------------------------------------------------------ */

static void groups_put_values(struct json_writer *json, const struct fault_values *values)
{
	const struct fault_value *largest[FAULT_VALUES_MAX];
	bool about;
	size_t count = fault_values_largest(values, largest);
	uint64_t distinct = fault_values_distinct(values, &about), shown = 0;
	json_write_object_begin(json);
	json_put_u64(json, "distinct", distinct);
	if (about)
		json_put_bool(json, "about", true);
	json_write_key(json, "values");
	json_write_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		if (i >= GROUP_VALUES_MAX) {
			shown += largest[i]->count;
			continue;
		}
		json_write_object_begin(json);
		json_put_string(json, "value", largest[i]->text);
		json_put_u64(json, "count", largest[i]->count);
		groups_put_date(json, "first", largest[i]->first_us);
		groups_put_date(json, "last", largest[i]->last_us);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_put_u64(json, "rest", values->rest + shown);
	json_write_object_end(json);
}

static void groups_put_days(struct json_writer *json, const struct fault_group_history *history)
{
	json_write_key(json, "days");
	json_write_array_begin(json);
	for (size_t i = 0; i < history->count; i++) {
		char day[FAULT_DAY_TEXT_BYTES + 1];
		fault_day_text(history->days[i].day, day);
		json_write_array_begin(json);
		json_write_text(json, day);
		json_write_u64(json, history->days[i].count);
		json_write_array_end(json);
	}
	json_write_array_end(json);
	json_write_key(json, "hours");
	json_write_array_begin(json);
	for (size_t h = 0; h < FAULT_TALLY_HOURS; h++)
		json_write_u64(json, history->tally.hours[h]);
	json_write_array_end(json);
}

static void groups_put_said(struct json_writer *json, const struct fault_said *said)
{
	if (said->status == FAULT_RESOLVED || said->status == FAULT_MUTED) {
		json_write_key(json, "said");
		json_write_object_begin(json);
		json_put_text(json, "status", fault_status_name(said->status));
		groups_put_date(json, "date", said->said_us);
		if (said->resolved == FAULT_RESOLVED_IN)
			json_put_string(json, "in", said->release);
		else if (said->resolved == FAULT_RESOLVED_AFTER)
			json_put_string(json, "after", said->release);
		if (said->until)
			json_put_u64(json, "until", said->until);
		if (said->hours)
			json_put_u64(json, "within_hours", said->hours);
		json_write_object_end(json);
	}
	json_write_key(json, "bugs");
	json_write_object_begin(json);
	for (size_t i = 0; i < said->bug_count; i++) {
		json_write_key_slice(json, said->bugs[i].tracker);
		json_write_string(json, said->bugs[i].bug);
	}
	json_write_object_end(json);
}

static void groups_put_group(struct groups_call *call, const struct fault_group_history *history,
			     const struct fault_said *said)
{
	struct json_writer *json = &call->call.json;
	bool again;
	enum fault_status status = fault_said_status(said, history, &again);
	json_write_object_begin(json);
	json_put_string(json, "group", call->group);
	groups_put_status(json, said, status, again);
	groups_put_tally(json, &history->tally);
	groups_put_said(json, said);
	json_write_key(json, "facts");
	json_write_object_begin(json);
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++) {
		json_write_key(json, fault_tally_fact_name((enum fault_tally_fact)i));
		groups_put_values(json, &history->tally.values[i]);
	}
	json_write_object_end(json);
	groups_put_days(json, history);
	json_write_object_end(json);
}

/* ---- What is said of one --------------------------------------------------------------------- */

static int groups_say_bug(const struct groups_saying *saying, struct fault_said *said,
			  struct errbuf *e)
{
	size_t at = 0;
	while (at < said->bug_count && !slice_equal(said->bugs[at].tracker, saying->tracker))
		at++;
	if (!saying->bug.len) {
		if (at < said->bug_count)
			said->bugs[at] = said->bugs[--said->bug_count];
		return 0;
	}
	if (at == FAULT_SAID_BUGS_MAX)
		return errbuf_set(e, ERR_INVALID, "a group has bugs of %d trackers at most",
				  FAULT_SAID_BUGS_MAX);
	said->bugs[at] = (struct fault_bug){saying->tracker, saying->bug};
	said->bug_count = larger_of(said->bug_count, at + 1);
	return 0;
}

static void groups_say_status(const struct groups_call *call, struct fault_said *said)
{
	const struct groups_saying *saying = &call->saying;
	const struct fault_values *releases = &call->history->tally.values[FAULT_TALLY_RELEASE];
	const struct fault_value *newest = groups_newest(releases);
	struct clock *clock = call->call.api->clock;
	said->status = (enum fault_status)saying->status;
	said->said_us = clock->wall_us(clock);
	said->resolved = saying->next      ? FAULT_RESOLVED_AFTER
			 : saying->in.data ? FAULT_RESOLVED_IN
					   : FAULT_RESOLVED_NOW;
	said->release = saying->next      ? (newest ? newest->text : SLICE(""))
			: saying->in.data ? saying->in
					  : SLICE("");
	said->until = saying->until;
	said->hours = (uint64_t)call->within_hours;
	fault_said_count_before(said, call->history, said->said_us);
}

static int groups_change(void *owner, struct fault_said *said, struct errbuf *e)
{
	const struct groups_call *call = owner;
	const struct groups_saying *saying = &call->saying;
	if (saying->status >= 0)
		groups_say_status(call, said);
	if (saying->assignee.data)
		said->assignee = saying->assignee;
	return saying->tracker.data ? groups_say_bug(saying, said, e) : 0;
}

static int groups_run_group(struct groups_call *call, struct fault_book *book)
{
	const struct fault_site *site = fault_site_of(call->call.api->fault);
	struct task_queue *queue = job_queue(call->call.job);
	struct fault_group_history history;
	struct fault_said said;
	int err = fault_book_read_group(book, queue, call->group, &history, &call->error);
	if (!err && !history.tally.count)
		err = errbuf_set(&call->error, ERR_NOT_FOUND, "there is no group " SHOWN,
				 SHOWN_OF(call->group));
	call->history = &history;
	if (!err && call->says)
		err = fault_said_write(site, queue, call->tenant, call->group, groups_change, call,
				       &call->call.arena, &said, &call->error);
	else if (!err)
		err = fault_said_read(site, queue, call->tenant, call->group, &call->call.arena,
				      &said, &call->error);
	if (!err)
		groups_put_group(call, &history, &said);
	call->history = NULL;
	fault_group_history_release(&history);
	return err;
}

/* ---- The call -------------------------------------------------------------------------------- */

static void groups_run(struct api_call *base)
{
	struct groups_call *call = groups_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->tenant);
	call->err = call->group.len ? groups_run_group(call, book) : groups_run_list(call, book);
	fault_book_return(base->api->fault, book);
}

static void groups_over(struct api_call *base)
{
	struct groups_call *call = groups_call_of(base);
	if (!base->request)
		return;
	if (call->err)
		api_call_fail_with(base, call->err, call->error.text);
	else
		api_call_end(base);
}

static const struct api_call_kind groups_kind = {.arena_max_bytes = GROUPS_ARENA_MAX_BYTES,
						 .out_max_bytes = GROUPS_ANSWER_MAX_BYTES,
						 .release = groups_release,
						 .job_name = "groups",
						 .run = groups_run,
						 .over = groups_over};

/* ---- What is asked --------------------------------------------------------------------------- */

static const char *const groups_statuses[] = {"open", "resolved", "muted", NULL};
static const char *const groups_sorts[] = {"last", "first", "count", "users", NULL};

#define GROUPS_FIELD(field_) offsetof(struct groups_question, field_)
#define GROUPS_TEXT(fact_)   PARAM_TEXT, GROUPS_FIELD(texts) + (fact_) * sizeof(struct slice)

const struct param faults_groups_params[] = {
	{"tenant", PARAM_TENANT, GROUPS_FIELD(tenant), .help = "Whose groups."},
	{"since", PARAM_TIME, GROUPS_FIELD(since_ms),
	 .help = "Days from this time's on; two weeks where it is left out."},
	{"until", PARAM_TIME, GROUPS_FIELD(until_ms), .help = "Days up to this time's."},
	{"status", PARAM_WORD, GROUPS_FIELD(status), .words = groups_statuses,
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

#define SAYING_FIELD(field_) offsetof(struct groups_saying, field_)

const struct param faults_group_params[] = {
	{"tenant", PARAM_TENANT, SAYING_FIELD(tenant), .help = "Whose group."}, {NULL}};

const struct param faults_say_params[] = {
	{"tenant", PARAM_TENANT, SAYING_FIELD(tenant), .help = "Whose group."},
	{"status", PARAM_WORD, SAYING_FIELD(status), .words = groups_statuses,
	 .help = "What it is from now on."},
	{"in", PARAM_TEXT, SAYING_FIELD(in),
	 .help = "Of resolved: the release with the mend. Reports of it, and of later ones, open "
		 "the group again."},
	{"next", PARAM_FLAG, SAYING_FIELD(next),
	 .help = "Of resolved: the release after the newest that the group has."},
	{"until", PARAM_NUMBER, SAYING_FIELD(until), 1, UINT32_MAX,
	 .help = "Of muted: it is open again after so many further reports."},
	{"within", PARAM_TEXT, SAYING_FIELD(within),
	 .help = "Of until: within so many whole hours, as 24h."},
	{"assignee", PARAM_TEXT, SAYING_FIELD(assignee), .help = "Whose it is; empty: nobody's."},
	{"tracker", PARAM_TEXT, SAYING_FIELD(tracker), .help = "Of bug: which tracker has it."},
	{"bug", PARAM_TEXT, SAYING_FIELD(bug), .help = "Which bug it is; empty: none."},
	{NULL}};

static int groups_keep(struct arena *arena, struct slice *text, const char *name, size_t max_bytes,
		       struct errbuf *e)
{
	if (!text->data)
		return 0;
	if (text->len > max_bytes)
		return errbuf_set(e, ERR_INVALID, "%s has %zu bytes; at most %zu are taken", name,
				  text->len, max_bytes);
	*text = arena_copy(arena, *text);
	return text->data ? 0 : errbuf_set(e, ERR_INVALID, "the parameters are too long");
}

static int groups_read_list(const struct http_request *request, struct groups_call *call,
			    struct errbuf *e)
{
	struct groups_question *q = &call->question;
	struct arena *arena = &call->call.arena;
	int64_t now_ms = clock_wall_ms(call->call.api->clock);
	*q = (struct groups_question){.since_ms = now_ms - (GROUPS_PRESET_DAYS - 1) * 24 * HOUR_MS,
				      .until_ms = INT64_MIN,
				      .status = -1,
				      .limit = GROUPS_PRESET};
	int err = params_read_route(request, now_ms, q, e);
	/* What is received while it is asked counts. */
	q->until_ms =
		q->until_ms == INT64_MIN ? larger_of(now_ms, q->since_ms) + HOUR_MS : q->until_ms;
	if (!err && q->since_ms >= q->until_ms)
		err = errbuf_set(e, ERR_INVALID, "since does not lie before until");
	if (!err &&
	    (q->since_ms < 0 || q->until_ms / (24 * HOUR_MS) - q->since_ms / (24 * HOUR_MS) >=
					FAULT_GROUPS_DAYS_MAX - 1))
		err = errbuf_set(e, ERR_INVALID,
				 "groups of %d days at most are put together: since lies too far "
				 "before until",
				 FAULT_GROUPS_DAYS_MAX - 1);
	for (size_t i = 0; i < FAULT_TALLY_FACTS && !err; i++)
		err = groups_keep(arena, &q->texts[i],
				  fault_tally_fact_name((enum fault_tally_fact)i),
				  FAULT_CONTEXT_MAX_BYTES, e);
	return err ? err : groups_keep(arena, &q->tenant, "tenant", TENANT_MAX_BYTES, e);
}

static int groups_read_within(struct groups_call *call, struct errbuf *e)
{
	int64_t ms = 0;
	if (!call->saying.within.data)
		return 0;
	int err = duration_parse(call->saying.within, &ms, e);
	call->within_hours = ms / HOUR_MS;
	if (err || (ms % HOUR_MS == 0 && ms > 0 && call->within_hours <= FAULT_SAID_HOURS_MAX))
		return err;
	return errbuf_set(e, ERR_INVALID, "within is %.*s; it is whole hours, up to 31 days",
			  slice_shown_len(call->saying.within), call->saying.within.data);
}

/* What does not go together is refused. */
static int groups_check_saying(const struct groups_saying *s, struct errbuf *e)
{
	if ((s->in.data || s->next) && s->status != FAULT_RESOLVED)
		return errbuf_set(e, ERR_INVALID, "in and next go with status=resolved");
	if (s->in.data && s->next)
		return errbuf_set(e, ERR_INVALID, "in and next do not go together");
	if (s->in.data && !s->in.len)
		return errbuf_set(e, ERR_INVALID, "in is empty; it is the name of a release");
	if (s->until && s->status != FAULT_MUTED)
		return errbuf_set(e, ERR_INVALID, "until goes with status=muted");
	if (s->within.data && !s->until)
		return errbuf_set(e, ERR_INVALID, "within goes with until");
	if (!s->tracker.data != !s->bug.data || (s->tracker.data && !s->tracker.len))
		return errbuf_set(e, ERR_INVALID, "tracker and bug go together");
	if (s->status < 0 && !s->assignee.data && !s->tracker.data)
		return errbuf_set(e, ERR_INVALID,
				  "nothing is said: status, assignee, or tracker and bug");
	return 0;
}

static int groups_read_one(const struct http_request *request, struct groups_call *call,
			   struct errbuf *e)
{
	struct groups_saying *s = &call->saying;
	struct arena *arena = &call->call.arena;
	struct {
		struct slice *text;
		const char *name;
	} const texts[] = {{&s->in, "in"},
			   {&s->assignee, "assignee"},
			   {&s->tracker, "tracker"},
			   {&s->bug, "bug"}};
	s->status = -1;
	int err = params_read_route(request, 0, s, e);
	if (!err && call->says)
		err = groups_check_saying(s, e);
	err = err ? err : groups_read_within(call, e);
	for (size_t i = 0; i < ARRAY_LEN(texts) && !err; i++)
		err = groups_keep(arena, texts[i].text, texts[i].name, FAULT_SAID_TEXT_MAX_BYTES,
				  e);
	call->tenant = s->tenant;
	return err ? err : groups_keep(arena, &call->tenant, "tenant", TENANT_MAX_BYTES, e);
}

/* /oops/groups/GROUP; a name that no group can have is that of none. */
static int groups_read_name(const struct http_request *request, struct groups_call *call,
			    struct errbuf *e)
{
	size_t count = request->segment_count;
	if (count && !request->segments[count - 1].len)
		count--;
	struct slice name = count == 3 ? request->segments[2] : SLICE("");
	if (!name.len || name.len > FAULT_LABEL_MAX_BYTES)
		return errbuf_set(e, ERR_NOT_FOUND, "there is nothing at %.*s",
				  slice_shown_len(request->path), request->path.data);
	call->group = arena_copy(&call->call.arena, name);
	ASSERT(call->group.data); /* a part of a head */
	return 0;
}

static void groups_begin(struct http_request *request, bool one, bool says)
{
	struct groups_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &groups_kind);
	api_call_set_deadline(&call->call);
	call->call.carried_through = says;
	call->says = says;
	int err = one ? groups_read_name(request, call, &e) : 0;
	err = err   ? err
	      : one ? groups_read_one(request, call, &e)
		    : groups_read_list(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	if (!one)
		call->tenant = call->question.tenant;
	call->err = ERR_CANCELLED; /* until it has run */
	api_call_start_job(&call->call);
}

static void groups_list_end(struct http_request *request)
{
	groups_begin(request, false, false);
}

static void groups_show_end(struct http_request *request)
{
	groups_begin(request, true, false);
}

static void groups_say_end(struct http_request *request)
{
	groups_begin(request, true, true);
}

const struct http_handler faults_groups = API_CALL_HANDLER(groups_list_end);
const struct http_handler faults_group = API_CALL_HANDLER(groups_show_end);
const struct http_handler faults_say = API_CALL_HANDLER(groups_say_end);
