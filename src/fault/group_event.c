/* Traces that are structured, as Sentry has them, and statements of time-outs. */
#include <math.h>

#include "fault/group_private.h"
#include "fault/timeline.h"

enum { EVENT_FRAMES_MAX = 2000 }; /* of a trace: the newest */

static struct slice grouping_event_text(const struct json *object, const char *name)
{
	const struct json *value = json_member(object, name);
	return value && value->type == JSON_T_STRING ? grouping_trim(value->text) : SLICE("");
}

/* A list, or an object with the list as `values`. */
static const struct json *grouping_event_values(const struct json *value)
{
	if (value && value->type == JSON_T_OBJECT)
		value = json_member(value, "values");
	return value && value->type == JSON_T_ARRAY ? value : NULL;
}

/* Go's client tells the application's frames by the folder that Go lies in. A program that was
 * built with -trimpath does not know it, and has no whole paths: there the client calls all
 * foreign. */
static bool grouping_event_is_trimmed(const struct grouping_frame *frame)
{
	return grouping_is_of_go(frame) && frame->file.data[0] != '/' &&
	       !memchr(frame->file.data, ':', frame->file.len);
}

static void grouping_event_add_frame(struct grouping_making *making, const struct json *item)
{
	const struct json *in_app = json_member(item, "in_app");
	struct grouping_frame frame = {grouping_event_text(item, "module"),
				       grouping_event_text(item, "filename"),
				       grouping_event_text(item, "function"), -1};
	if (!frame.file.len)
		frame.file = grouping_event_text(item, "abs_path");
	if (!frame.module.len && !frame.file.len)
		frame.file = grouping_event_text(item, "package");
	if (in_app && in_app->type == JSON_T_BOOL && !grouping_event_is_trimmed(&frame))
		frame.application = in_app->boolean;
	grouping_add_frame(making, &frame);
}

static void grouping_event_add_stack(struct grouping_making *making, const struct json *stack)
{
	const struct json *frames = json_member(stack, "frames");
	size_t place = 0;
	if (!frames || frames->type != JSON_T_ARRAY)
		return;
	grouping_begin_trace(making);
	for (const struct json *item = frames->first; item; item = item->next, place++)
		if (frames->count - place <= EVENT_FRAMES_MAX)
			grouping_event_add_frame(making, item);
}

static bool grouping_event_is_true(const struct json *object, const char *name)
{
	const struct json *value = json_member(object, name);
	return value && value->type == JSON_T_BOOL && value->boolean;
}

static bool grouping_event_is_group(const struct json *item)
{
	return grouping_event_is_true(json_member(item, "mechanism"), "is_exception_group");
}

/* A wrapper around one exception says nothing of its own; around several it does. Go's client calls
 * each error of a chain a group. */
static bool grouping_event_is_wrapper(const struct json *exceptions, const struct json *item)
{
	const struct json *first = exceptions->first;
	return exceptions->count == 2 && grouping_event_is_group(item) &&
	       !grouping_event_is_group(item == first ? first->next : first);
}

static void grouping_event_add_exception(struct grouping_making *making, const struct json *item)
{
	bool synthetic = grouping_event_is_true(json_member(item, "mechanism"), "synthetic");
	grouping_add_exception(making, synthetic ? SLICE("") : grouping_event_text(item, "type"),
			       grouping_event_text(item, "value"));
	grouping_event_add_stack(making, json_member(item, "stacktrace"));
}

void grouping_add_events(struct grouping_making *making, const struct json *report)
{
	const struct json *exceptions = grouping_event_values(json_member(report, "exceptions"));
	size_t count = 0;
	if (!exceptions)
		exceptions = grouping_event_values(json_member(report, "exception"));
	for (const struct json *item = exceptions ? exceptions->first : NULL;
	     item && count < GROUP_EXCEPTIONS_MAX; item = item->next, count++)
		if (!grouping_event_is_wrapper(exceptions, item))
			grouping_event_add_exception(making, item);
	if (!making->frames)
		grouping_event_add_stack(making, json_member(report, "stacktrace"));
}

/* ---- Statements of time-outs ----------------------------------------------------------------- */

static bool grouping_event_has_word(struct slice text, const char *small)
{
	size_t len = strlen(small);
	for (size_t at = 0; at + len <= text.len && at < GROUP_LOOK_MAX_BYTES; at++) {
		size_t same = 0;
		while (same < len && (text.data[at + same] | 0x20) == small[same])
			same++;
		if (same == len)
			return true;
	}
	return false;
}

bool fault_group_is_timeout(struct slice type, struct slice message)
{
	static const char *const types[] = {"timeout", "timedout", "querycancel", "requestexpired"};
	static const char *const messages[] = {"statement timeout", "canceling statement",
					       "lock wait timeout", "execution time exceeded"};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (grouping_event_has_word(type, types[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (grouping_event_has_word(message, messages[i]))
			return true;
	return false;
}

static bool grouping_event_is_sql(struct slice text)
{
	static const struct slice verbs[] = {SLICE("SELECT "),      SLICE("INSERT INTO "),
					     SLICE("UPDATE "),      SLICE("DELETE FROM "),
					     SLICE("WITH "),        SLICE("select "),
					     SLICE("insert into "), SLICE("update "),
					     SLICE("delete from "), SLICE("with ")};
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (grouping_begins(text, verbs[i]))
			return true;
	return false;
}

/* As the libraries write it: the message is the statement, or names it at its end. */
static struct slice grouping_event_statement_in(struct slice value)
{
	static const struct slice before[] = {SLICE("[SQL: "),        SLICE("Statement: '"),
					      SLICE("Statement: \""), SLICE("STATEMENT: "),
					      SLICE("Statement: "),   SLICE("Query: ")};
	static const struct slice behind[] = {SLICE("\n[parameters: "), SLICE("\nParameters: ")};
	value = grouping_trim(value);
	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		size_t at = grouping_find(value, 0, before[i]);
		if (at < value.len) {
			value = grouping_part(value, at + before[i].len, value.len);
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
		const char *at =
			value.len ? memmem(value.data, value.len, behind[i].data, behind[i].len)
				  : NULL;
		if (at)
			value = grouping_part(value, 0, (size_t)(at - value.data));
	}
	while (value.len && memchr("]'\"; \n", value.data[value.len - 1], 6))
		value.len--;
	value = grouping_trim(value);
	return grouping_event_is_sql(value) ? value : SLICE("");
}

/* The statement of the timeline that took longest; of equal ones the first. */
static struct slice grouping_event_longest(const struct json *timeline)
{
	struct slice longest = SLICE("");
	double longest_ms = -1;
	if (!timeline || timeline->type != JSON_T_ARRAY)
		return longest;
	for (const struct json *item = timeline->first; item; item = item->next) {
		struct fault_step step;
		if (!fault_step_read(item, &step) || !step.database || !step.detail.len ||
		    !(step.length_ms > longest_ms))
			continue;
		longest_ms = step.length_ms;
		longest = step.detail;
	}
	return longest;
}

struct slice grouping_statement_of(const struct json *report, struct slice type, struct slice value,
				   bool has_frames)
{
	if (!fault_group_is_timeout(type, value))
		return SLICE("");
	struct slice statement = grouping_event_statement_in(value);
	if (!statement.len && !has_frames)
		statement = grouping_event_longest(json_member(report, "timeline"));
	return statement;
}
