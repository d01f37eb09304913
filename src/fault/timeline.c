#include "fault/timeline.h"

#include <math.h>

#include "wire/number.h"

/* ---- Values --------------------------------------------------------------------------------- */

/* A number, or a text that is one; NaN: neither. */
static double timeline_number(const struct json *value)
{
	double number;
	if (!value)
		return NAN;
	if (value->type == JSON_T_NUMBER)
		return value_as_f64(value->number);
	if (value->type != JSON_T_STRING ||
	    number_parse_f64(value->text.data, value->text.data + value->text.len, &number))
		return NAN;
	return number;
}

static bool timeline_is_nothing(const struct json *value)
{
	return !value || value->type == JSON_T_NULL;
}

/* False: it is there and no text. */
static bool timeline_text(const struct json *value, struct slice *text)
{
	*text = (struct slice){"", 0};
	if (timeline_is_nothing(value))
		return true;
	if (value->type != JSON_T_STRING)
		return false;
	*text = value->text;
	return true;
}

/* ---- Whether it is a statement of a database ------------------------------------------------ */

static bool timeline_begins(struct slice text, const char *small)
{
	size_t len = strlen(small);
	if (text.len < len)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text.data[i];
		if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != small[i])
			return false;
	}
	return true;
}

/* Launchpad has `SQL-main` and, in old reports, the database's name alone; Sentry has `db`,
 * `db.sql.query` and `query`. */
static bool timeline_is_of_database(struct slice category)
{
	return timeline_begins(category, "sql") || timeline_begins(category, "db.") ||
	       (category.len == 2 && timeline_begins(category, "db")) ||
	       (category.len == 5 && timeline_begins(category, "query"));
}

/* In capitals, as programs write it: "select a page" and "DELETE /pages/1" are none. */
static bool timeline_is_sql(struct slice detail)
{
	static const struct slice verbs[] = {{"SELECT ", 7},
					     {"INSERT INTO ", 12},
					     {"UPDATE ", 7},
					     {"DELETE FROM ", 12},
					     {"WITH ", 5}};
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (detail.len >= verbs[i].len &&
		    memcmp(detail.data, verbs[i].data, verbs[i].len) == 0)
			return true;
	}
	return false;
}

/* ---- The two shapes ------------------------------------------------------------------------- */

static const struct json *timeline_either(const struct json *item, const char *name,
					  const char *other)
{
	const struct json *found = json_member(item, name);
	return found ? found : json_member(item, other);
}

static bool timeline_read_object(const struct json *item, struct fault_step *step)
{
	const struct json *start = json_member(item, "start"),
			  *length = json_member(item, "length"),
			  *database = json_member(item, "database"),
			  *statement = timeline_either(item, "statement", "statment");
	if (!start && !length && !database && !statement)
		return false;
	step->start_ms = timeline_number(start);
	step->length_ms = timeline_number(length);
	step->database = !timeline_is_nothing(database) || !timeline_is_nothing(statement);
	return timeline_text(database, &step->category) && timeline_text(statement, &step->detail);
}

/* The next item, if there was one before. */
static const struct json *timeline_next(const struct json *item)
{
	return item ? item->next : NULL;
}

/* A detail that is no text is left out: old reports have tuples there. */
static bool timeline_read_array(const struct json *item, struct fault_step *step)
{
	const struct json *start = item->first, *stop = timeline_next(start),
			  *category = timeline_next(stop), *detail = timeline_next(category);
	step->start_ms = timeline_number(start);
	step->length_ms = timeline_number(stop) - step->start_ms;
	if (isnan(step->start_ms) || !timeline_text(category, &step->category))
		return false;
	if (!timeline_text(detail, &step->detail))
		step->detail = (struct slice){"", 0};
	step->database = timeline_is_of_database(step->category) || timeline_is_sql(step->detail);
	return true;
}

bool fault_step_read(const struct json *item, struct fault_step *step)
{
	*step = (struct fault_step){NAN, NAN, {"", 0}, {"", 0}, false};
	if (item->type == JSON_T_OBJECT)
		return timeline_read_object(item, step);
	return item->type == JSON_T_ARRAY && timeline_read_array(item, step);
}

int64_t fault_timeline_statements(const struct json *timeline, size_t *bad)
{
	struct fault_step step;
	int64_t read = 0, statements = 0;
	*bad = 0;
	if (!timeline || timeline->type != JSON_T_ARRAY)
		return -1;
	for (const struct json *item = timeline->first; item; item = item->next) {
		if (!fault_step_read(item, &step)) {
			++*bad;
			continue;
		}
		read++;
		statements += step.database;
	}
	return read ? statements : -1;
}
