#include "api/fault/group_json.h"

#include "api/fault/notation.h"

void group_json_date(struct json_writer *json, const char *key, int64_t date_us)
{
	json_put_i64(json, key, notation_ms(date_us));
}

void group_json_status(struct json_writer *json, struct slice assignee, enum fault_status status,
		       bool again)
{
	json_put_text(json, "status", fault_statuses[status]);
	if (again)
		json_put_bool(json, "again", true);
	if (assignee.len)
		json_put_string(json, "assignee", assignee);
}

static void group_json_users(struct json_writer *json, const struct fault_tally *tally)
{
	bool about;
	json_put_u64(json, "users", fault_tally_distinct(tally, FAULT_TALLY_USER, &about));
	if (about)
		json_put_bool(json, "users_about", true);
}

void group_json_bugs(struct json_writer *json, const struct fault_said *said)
{
	json_write_key(json, "bugs");
	json_write_object_begin(json);
	for (size_t i = 0; i < said->bug_count; i++) {
		json_write_key_slice(json, said->bugs[i].tracker);
		json_write_string(json, said->bugs[i].bug);
	}
	json_write_object_end(json);
}

void group_json_reports(struct json_writer *json, const struct fault_tally *tally)
{
	json_put_string(json, "title", tally->title);
	json_put_u64(json, "count", tally->count);
	group_json_date(json, "first", tally->first.date_us);
	json_put_string(json, "first_id", tally->first.id);
	group_json_date(json, "last", tally->last.date_us);
	json_put_string(json, "last_id", tally->last.id);
}

void group_json_tally(struct json_writer *json, const struct fault_tally *tally)
{
	group_json_reports(json, tally);
	group_json_users(json, tally);
}
