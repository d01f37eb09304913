/* One group of fault reports, whole, and what people say of it. */
#include "api/fault/faults.h"

#include "api/call.h"
#include "api/fault/group_json.h"
#include "api/fault/notation.h"
#include "fault/fault.h"
#include "fault/tags.h"
#include "wire/timetext.h"

enum {
	GROUP_ARENA_MAX_BYTES = 64 << 20,
	GROUP_ANSWER_MAX_BYTES = 64 << 20,
	GROUP_VALUES_MAX = 100, /* of a fact */
	GROUP_HOUR_MS = 3600000,
};

/* What may be said. Texts that were not given have no data. */
struct group_saying {
	struct slice tenant, in, within, assignee, tracker, bug;
	int status; /* -1: nothing is said of it */
	bool next;
	uint64_t until;
};

struct group_call {
	struct api_call call;
	struct group_saying saying;
	bool says;
	struct slice tenant, asked; /* in the call's arena */
	struct slice group;         /* that stands for the one that was asked for */
	struct fault_merges merges; /* in the call's arena, too */
	int64_t within_hours;
	const struct fault_group_history *history; /* while it is said */
};

static const struct api_call_kind group_kind;

static struct group_call *group_call_of(struct api_call *call)
{
	ASSERT(call->kind == &group_kind);
	return CONTAINER_OF(call, struct group_call, call);
}

/* ---- One group, whole ------------------------------------------------------------------------ */

static void group_put_value(struct json_writer *json, enum fault_tally_fact fact, struct slice text)
{
	struct slice name, value;
	if (fact == FAULT_TALLY_TAG && fault_tag_split(text, &name, &value)) {
		json_put_string(json, "key", name);
		text = value;
	}
	json_put_string(json, "value", text);
}

static void group_put_values(struct json_writer *json, const struct fault_tally *tally,
			     enum fault_tally_fact fact)
{
	const struct fault_value *largest[FAULT_VALUES_MAX];
	bool about;
	size_t count = fault_tally_largest(tally, fact, largest);
	uint64_t distinct = fault_tally_distinct(tally, fact, &about), left_out = 0;
	json_write_object_begin(json);
	json_put_u64(json, "distinct", distinct);
	if (about)
		json_put_bool(json, "about", true);
	json_write_key(json, "values");
	json_write_array_begin(json);
	for (size_t i = 0; i < count; i++) {
		if (i >= GROUP_VALUES_MAX) {
			left_out += largest[i]->count;
			continue;
		}
		json_write_object_begin(json);
		group_put_value(json, fact, largest[i]->text);
		json_put_u64(json, "count", largest[i]->count);
		group_json_date(json, "first", largest[i]->first_us);
		group_json_date(json, "last", largest[i]->last_us);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_put_u64(json, "rest", tally->values[fact].rest.count + left_out);
	json_write_object_end(json);
}

static void group_put_days(struct json_writer *json, const struct fault_group_history *history)
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
	for (size_t h = 0; h < FAULT_HOURS; h++)
		json_write_u64(json, history->tally.hours[h]);
	json_write_array_end(json);
}

static void group_put_said(struct json_writer *json, const struct fault_said *said)
{
	if (said->status == FAULT_RESOLVED || said->status == FAULT_MUTED) {
		json_write_key(json, "said");
		json_write_object_begin(json);
		json_put_text(json, "status", fault_statuses[said->status]);
		group_json_date(json, "date", said->said_us);
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
	group_json_bugs(json, said);
}

/* The name that was asked for, where another group answers for it; and the groups that this one
 * stands for. */
static void group_put_merged(struct group_call *call)
{
	struct json_writer *json = &call->call.json;
	if (!slice_equal(call->asked, call->group))
		json_put_string(json, "asked", call->asked);
	json_write_key(json, "merged");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->merges.count; i++)
		if (slice_equal(call->merges.list[i].root, call->group))
			json_write_string(json, call->merges.list[i].group);
	json_write_array_end(json);
}

static void group_put_group(struct group_call *call, const struct fault_group_history *history,
			    const struct fault_said *said)
{
	struct json_writer *json = &call->call.json;
	bool again;
	enum fault_status status = fault_said_status(said, history, &again);
	json_write_object_begin(json);
	json_put_string(json, "group", call->group);
	group_put_merged(call);
	group_json_status(json, said->assignee, status, again);
	group_json_tally(json, &history->tally);
	group_put_said(json, said);
	json_write_key(json, "facts");
	json_write_object_begin(json);
	for (enum fault_tally_fact i = 0; i < FAULT_TALLY_FACTS; i++) {
		json_write_key(json, fault_text_name(fault_tally_fact_text(i)));
		group_put_values(json, &history->tally, i);
	}
	json_write_object_end(json);
	group_put_days(json, history);
	json_write_object_end(json);
}

/* ---- What is said of one --------------------------------------------------------------------- */

static int group_say_bug(const struct group_saying *saying, struct fault_said *said,
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

static void group_say_status(const struct group_call *call, struct fault_said *said)
{
	const struct group_saying *saying = &call->saying;
	const struct fault_value *latest = fault_tally_latest_release(&call->history->tally);
	struct clock *clock = call->call.api->clock;
	said->status = (enum fault_status)saying->status;
	said->said_us = clock->wall_us(clock);
	said->resolved = saying->next      ? FAULT_RESOLVED_AFTER
			 : saying->in.data ? FAULT_RESOLVED_IN
					   : FAULT_RESOLVED_NOW;
	said->release = saying->next      ? (latest ? latest->text : SLICE(""))
			: saying->in.data ? saying->in
					  : SLICE("");
	said->until = saying->until;
	said->hours = (uint64_t)call->within_hours;
	fault_said_count_before(said, call->history, said->said_us);
}

static int group_change(void *owner, struct fault_said *said, struct errbuf *e)
{
	const struct group_call *call = owner;
	const struct group_saying *saying = &call->saying;
	if (saying->status >= 0)
		group_say_status(call, said);
	if (saying->assignee.data)
		said->assignee = saying->assignee;
	return saying->tracker.data ? group_say_bug(saying, said, e) : 0;
}

static int group_run_group(struct group_call *call, struct fault_book *book)
{
	const struct fault_site *site = fault_site_of(call->call.api->fault);
	struct task_queue *queue = job_queue(call->call.job);
	struct fault_group_history history;
	struct fault_said said;
	int err = fault_merges_read(site, queue, call->tenant, &call->call.arena, &call->merges,
				    &call->call.error);
	if (err)
		return err;
	call->group = fault_merges_root(&call->merges, call->asked);
	const struct fault_group_question question = {call->group, FAULT_TALLY_ALL,
						      call->call.deadline_us, &call->merges};
	err = fault_book_read_group(book, queue, &question, &history, &call->call.error);
	if (!err && !history.tally.count)
		err = errbuf_set(&call->call.error, ERR_NOT_FOUND, "there is no group " SHOWN,
				 SHOWN_OF(call->group));
	call->history = &history;
	if (!err && call->says)
		err = fault_said_write(site, queue, call->tenant, call->group, group_change, call,
				       &call->call.arena, &said, &call->call.error);
	else if (!err)
		err = fault_said_read(site, queue, call->tenant, call->group, &call->call.arena,
				      &said, &call->call.error);
	if (!err)
		group_put_group(call, &history, &said);
	call->history = NULL;
	fault_group_history_release(&history);
	return err;
}

/* ---- The call -------------------------------------------------------------------------------- */

static void group_run(struct api_call *base)
{
	struct group_call *call = group_call_of(base);
	struct fault_book *book = fault_book_borrow(base->api->fault, call->tenant);
	call->call.err = group_run_group(call, book);
	fault_book_return(base->api->fault, book);
}

static const struct api_call_kind group_kind = {.arena_max_bytes = GROUP_ARENA_MAX_BYTES,
						.out_max_bytes = GROUP_ANSWER_MAX_BYTES,
						.job_name = "group",
						.run = group_run};

/* ---- What is asked --------------------------------------------------------------------------- */

#define SAYING_FIELD(field_) offsetof(struct group_saying, field_)

const struct param faults_group_params[] = {
	{"tenant", PARAM_TENANT, SAYING_FIELD(tenant), .help = "Whose group."}, {NULL}};

const struct param faults_say_params[] = {
	{"tenant", PARAM_TENANT, SAYING_FIELD(tenant), .help = "Whose group."},
	{"status", PARAM_WORD, SAYING_FIELD(status), .words = fault_statuses,
	 .help = "What it is from now on."},
	{"in", PARAM_TEXT, SAYING_FIELD(in),
	 .help = "Of resolved: the release with the mend. Reports of it, and of later ones, open "
		 "the group again."},
	{"next", PARAM_FLAG, SAYING_FIELD(next),
	 .help = "Of resolved: a release after the latest that the group has."},
	{"until", PARAM_NUMBER, SAYING_FIELD(until), 1, UINT32_MAX,
	 .help = "Of muted: it is open again after so many further reports."},
	{"within", PARAM_TEXT, SAYING_FIELD(within),
	 .help = "Of until: within so many whole hours, as 24h."},
	{"assignee", PARAM_TEXT, SAYING_FIELD(assignee), .help = "Whose it is; empty: nobody's."},
	{"tracker", PARAM_TEXT, SAYING_FIELD(tracker), .help = "Of bug: which tracker has it."},
	{"bug", PARAM_TEXT, SAYING_FIELD(bug), .help = "Which bug it is; empty: none."},
	{NULL}};

static int group_read_within(struct group_call *call, struct errbuf *e)
{
	int64_t ms = 0;
	if (!call->saying.within.data)
		return 0;
	int err = duration_parse(call->saying.within, &ms, e);
	call->within_hours = ms / GROUP_HOUR_MS;
	if (err ||
	    (ms % GROUP_HOUR_MS == 0 && ms > 0 && call->within_hours <= FAULT_SAID_HOURS_MAX))
		return err;
	return errbuf_set(e, ERR_INVALID, "within is %.*s; it is whole hours, up to 31 days",
			  slice_shown_len(call->saying.within), call->saying.within.data);
}

/* What does not go together is refused. */
static int group_check_saying(const struct group_saying *s, struct errbuf *e)
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
		return errbuf_set(e, ERR_INVALID, "within needs until");
	if (!s->tracker.data != !s->bug.data || (s->tracker.data && !s->tracker.len))
		return errbuf_set(e, ERR_INVALID, "tracker and bug go together");
	if (s->status < 0 && !s->assignee.data && !s->tracker.data)
		return errbuf_set(e, ERR_INVALID,
				  "nothing is said: status, assignee, or tracker and bug");
	return 0;
}

static int group_read_one(const struct http_request *request, struct group_call *call,
			  struct errbuf *e)
{
	struct group_saying *s = &call->saying;
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
		err = group_check_saying(s, e);
	err = err ? err : group_read_within(call, e);
	for (size_t i = 0; i < ARRAY_LEN(texts) && !err; i++) {
		err = params_keep(arena, texts[i].text, texts[i].name, FAULT_SAID_TEXT_MAX_BYTES,
				  e);
		err = err ? err : notation_check_said(*texts[i].text, texts[i].name, e);
	}
	call->tenant = s->tenant;
	return err ? err : params_keep(arena, &call->tenant, "tenant", TENANT_MAX_BYTES, e);
}

/* /oops/groups/GROUP. */
static int group_read_name(const struct http_request *request, struct group_call *call,
			   struct errbuf *e)
{
	size_t count = request->segment_count;
	if (count && !request->segments[count - 1].len)
		count--;
	struct slice name = count == 3 ? request->segments[2] : SLICE("");
	if (!name.len || name.len > FAULT_LABEL_MAX_BYTES)
		return errbuf_set(e, ERR_NOT_FOUND, "there is nothing at %.*s",
				  slice_shown_len(request->path), request->path.data);
	call->asked = arena_copy(&call->call.arena, name);
	ASSERT(call->asked.data); /* a part of a head */
	return 0;
}

static void group_begin(struct http_request *request, bool says)
{
	struct group_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &group_kind);
	api_call_set_deadline(&call->call);
	call->call.carried_through = says;
	call->says = says;
	int err = group_read_name(request, call, &e);
	err = err ? err : group_read_one(request, call, &e);
	if (err) {
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
		return;
	}
	api_call_start_job(&call->call);
}

static void group_show_end(struct http_request *request)
{
	group_begin(request, false);
}

static void group_say_end(struct http_request *request)
{
	group_begin(request, true);
}

const struct http_handler faults_group = API_CALL_HANDLER(group_show_end);
const struct http_handler faults_say = API_CALL_HANDLER(group_say_end);
