/* What answers about all groups and about one group have in common: members of an object. */
#ifndef API_FAULT_GROUP_JSON_H
#define API_FAULT_GROUP_JSON_H

#include "fault/said.h"
#include "wire/json.h"

/* In ms since the epoch. */
void group_json_date(struct json_writer *json, const char *key, int64_t date_us);
/* `again`: reports have opened the group again. An empty assignee is left out. */
void group_json_status(struct json_writer *json, struct slice assignee, enum fault_status status,
		       bool again);
/* An object: of each tracker the bug. */
void group_json_bugs(struct json_writer *json, const struct fault_said *said);
/* Title, count, first and last report. */
void group_json_reports(struct json_writer *json, const struct fault_tally *tally);
/* The same, and the number of users. */
void group_json_tally(struct json_writer *json, const struct fault_tally *tally);

#endif
