/* The daily report: JSON of it, and the form that is asked for. */
#include "api/fault/daily.h"

#include "api/fault/group_json.h"
#include "api/fault/notation.h"
#include "fault/daily.h"

const char *const daily_formats[] = {
	[DAILY_JSON] = "json", [DAILY_TEXT] = "text", [DAILY_HTML] = "html", NULL};

/* ---- Pages ----------------------------------------------------------------------------------- */

static void daily_put_statement(struct json_writer *json, const char *key,
				const struct fault_statement *statement)
{
	if (!statement->count)
		return;
	json_write_key(json, key);
	json_write_object_begin(json);
	json_put_string(json, "statement", statement->text);
	json_put_u64(json, "count", statement->count);
	json_write_key(json, "duration");
	notation_write_ms(json, (int64_t)statement->total_us);
	json_write_object_end(json);
}

static void daily_put_tops(struct json_writer *json, enum fault_daily_section section,
			   const struct fault_daily_tops *tops)
{
	json_write_key(json, "pages");
	json_write_array_begin(json);
	for (size_t i = 0; i < tops->count; i++) {
		const struct fault_daily_top *top = &tops->list[i];
		json_write_object_begin(json);
		json_put_string(json, "context", top->context);
		json_put_string(json, "id", top->id);
		if (section == FAULT_DAILY_DURATIONS) {
			json_write_key(json, "duration");
			notation_write_ms(json, (int64_t)top->value);
		} else {
			json_put_u64(json, "statements", top->value);
			daily_put_statement(json, "repeated", &top->repeated);
		}
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_put_u64(json, "listed", tops->listed);
	json_put_u64(json, "looked_at", tops->looked_at);
	json_put_u64(json, "unread", tops->unread);
}

static void daily_put_timeouts(struct json_writer *json,
			       const struct fault_daily_timeout_pages *timeouts)
{
	json_write_key(json, "pages");
	json_write_array_begin(json);
	for (size_t i = 0; i < timeouts->count; i++) {
		json_write_object_begin(json);
		json_put_string(json, "context", timeouts->list[i].context);
		json_put_u64(json, "hard", timeouts->list[i].hard);
		json_put_u64(json, "soft", timeouts->list[i].soft);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_put_u64(json, "total", timeouts->unique);
	json_put_u64(json, "hard_rest", timeouts->hard_rest);
	json_put_u64(json, "soft_rest", timeouts->soft_rest);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void daily_put_contexts(struct json_writer *json, const struct fault_daily_group *group)
{
	struct fault_daily_contexts contexts;
	fault_daily_contexts(group, FAULT_DAILY_CONTEXTS_MAX, &contexts);
	json_write_key(json, "contexts");
	json_write_array_begin(json);
	for (size_t i = 0; i < contexts.count; i++) {
		json_write_array_begin(json);
		json_write_string(json, contexts.list[i].context);
		json_write_u64(json, contexts.list[i].count);
		json_write_array_end(json);
	}
	json_write_array_end(json);
	json_put_u64(json, "contexts_rest", contexts.rest);
}

static void daily_put_group(struct json_writer *json, const struct fault_daily_group *group)
{
	const struct fault_said *said = group->said;
	json_write_object_begin(json);
	json_put_string(json, "group", group->name);
	group_json_status(json, said ? said->assignee : SLICE(""), group->status, group->again);
	group_json_reports(json, group->tally);
	json_put_string(json, "exception", group->exception);
	json_put_bool(json, "new", group->is_new);
	json_put_u64(json, "before", group->before);
	if (said && said->bug_count)
		group_json_bugs(json, said);
	daily_put_statement(json, "statement", &group->statement);
	daily_put_contexts(json, group);
	json_write_object_end(json);
}

static void daily_put_groups(struct json_writer *json, const struct fault_daily_groups *groups)
{
	json_write_key(json, "groups");
	json_write_array_begin(json);
	for (size_t i = 0; i < groups->count; i++)
		daily_put_group(json, groups->list[i]);
	json_write_array_end(json);
	json_put_u64(json, "total", groups->unique);
	json_put_u64(json, "reports", groups->reports);
	json_put_u64(json, "rest", groups->reports - groups->shown);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void daily_put_section(struct json_writer *json, const struct fault_daily *daily,
			      enum fault_daily_section section)
{
	json_write_object_begin(json);
	json_put_text(json, "section", fault_daily_name(section));
	json_put_text(json, "title", fault_daily_title(section));
	if (section == FAULT_DAILY_DURATIONS || section == FAULT_DAILY_STATEMENTS)
		daily_put_tops(json, section,
			       section == FAULT_DAILY_DURATIONS ? &daily->longest : &daily->most);
	else if (section == FAULT_DAILY_TIMEOUT_PAGES)
		daily_put_timeouts(json, &daily->timeouts);
	else
		daily_put_groups(json, &daily->groups[section]);
	json_write_object_end(json);
}

static void daily_put_json(struct json_writer *json, const struct fault_daily *daily)
{
	char day[FAULT_DAY_TEXT_BYTES + 1];
	fault_day_text(daily->day, day);
	json_write_object_begin(json);
	json_put_text(json, "day", day);
	json_put_string(json, "tenant", daily->tenant);
	json_put_bool(json, "closed", daily->closed);
	json_put_u64(json, "total", daily->total);
	json_put_u64(json, "before", daily->before);
	json_put_u64(json, "groups", daily->group_count);
	json_put_u64(json, "rest", daily->rest);
	if (daily->group_count) {
		group_json_date(json, "first", daily->first_us);
		group_json_date(json, "last", daily->last_us);
	}
	json_write_key(json, "sections");
	json_write_array_begin(json);
	for (enum fault_daily_section i = 0; i < FAULT_DAILY_SECTIONS; i++)
		daily_put_section(json, daily, i);
	json_write_array_end(json);
	json_write_object_end(json);
}

int daily_run(struct api_call *call, struct slice tenant, int64_t day, enum daily_format format)
{
	const struct fault_daily_question question = {tenant, day, call->deadline_us};
	struct fault_daily daily;
	int err = fault_daily_read(call->api->fault, job_queue(call->job), &question, &daily,
				   &call->error);
	if (!err && format == DAILY_TEXT)
		fault_daily_put_text(&daily, &call->out);
	else if (!err && format == DAILY_HTML)
		fault_daily_put_html(&daily, &call->out);
	else if (!err)
		daily_put_json(&call->json, &daily);
	if (daily.sums.left_out)
		call->cut = "limit";
	fault_daily_release(&daily);
	return err;
}

void daily_set_headers(struct api_call *call, enum daily_format format)
{
	if (format == DAILY_TEXT)
		call->content_type = "text/plain; charset=utf-8";
	if (format != DAILY_HTML)
		return;
	/* Nothing on the page runs, and nothing comes from elsewhere. */
	http_reply_header(call->request, "Content-Security-Policy",
			  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
			  "form-action 'none'; base-uri 'none'");
	http_reply_header(call->request, "Referrer-Policy", "no-referrer");
	call->content_type = "text/html; charset=utf-8";
}
