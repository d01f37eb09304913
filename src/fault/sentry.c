#include "fault/sentry.h"

#include <math.h>

#include "fault/attributes.h"
#include "wire/number.h"
#include "wire/timetext.h"

struct sentry_making {
	struct arena *arena;
	struct json *object;
	struct json **tail;
	bool full;
};

/* ---- Members --------------------------------------------------------------------------------- */

/* As Raven called them. */
static const struct sentry_old {
	const char *name, *old;
} sentry_old_names[] = {
	{"exception", "sentry.interfaces.Exception"},
	{"logentry", "sentry.interfaces.Message"},
	{"request", "sentry.interfaces.Http"},
	{"user", "sentry.interfaces.User"},
	{"breadcrumbs", "sentry.interfaces.Breadcrumbs"},
};

static bool sentry_is_nothing(const struct json *value)
{
	return !value || value->type == JSON_T_NULL;
}

static const struct json *sentry_member(const struct json *event, const char *name)
{
	const struct json *found = json_member(event, name);
	for (size_t i = 0; sentry_is_nothing(found) && i < ARRAY_LEN(sentry_old_names); i++) {
		if (strcmp(sentry_old_names[i].name, name) == 0)
			found = json_member(event, sentry_old_names[i].old);
	}
	return found;
}

/* The list that is meant: {"values": [...]}, or a list; NULL: neither. */
static const struct json *sentry_list(const struct json *value)
{
	const struct json *values = json_member(value, "values");
	if (values)
		value = values;
	return value && value->type == JSON_T_ARRAY ? value : NULL;
}

static const struct json *sentry_last(const struct json *list)
{
	const struct json *last = NULL;
	for (const struct json *item = list->first; item; item = item->next) {
		if (item->type == JSON_T_OBJECT)
			last = item;
	}
	return last;
}

/* ---- Places of the table --------------------------------------------------------------------- */

enum { SENTRY_NAME_MAX_BYTES = 32 };

/* The part of a place up to `.` or `|`, which is left in front of what follows. */
static const char *sentry_take_step(const char *place, char name[SENTRY_NAME_MAX_BYTES])
{
	size_t len = strcspn(place, ".|");
	ASSERT(len && len < SENTRY_NAME_MAX_BYTES); /* attributes.c */
	memcpy(name, place, len);
	name[len] = 0;
	return place + len;
}

/* A scalar that is neither nothing nor an empty text; NULL: at this place is none. */
static const struct json *sentry_at_place(const struct json *event, const char *place)
{
	char name[SENTRY_NAME_MAX_BYTES];
	place = sentry_take_step(place, name);
	const struct json *at = sentry_member(event, name);
	while (*place == '.') {
		const struct json *list = sentry_list(at);
		place = sentry_take_step(place + 1, name);
		at = json_member(list ? sentry_last(list) : at, name);
	}
	bool is_scalar =
		!sentry_is_nothing(at) && at->type != JSON_T_ARRAY && at->type != JSON_T_OBJECT;
	return is_scalar && (at->type != JSON_T_STRING || at->text.len) ? at : NULL;
}

static const struct json *sentry_at_places(const struct json *event, const char *places)
{
	const struct json *found = sentry_at_place(event, places);
	while (!found && (places = strchr(places, '|'))) {
		places++;
		found = sentry_at_place(event, places);
	}
	return found;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* Behind the last child; NULL: the arena is full. */
static struct json *sentry_append(struct sentry_making *making, struct json *parent,
				  struct json ***tail, const struct json *value)
{
	struct json *node = arena_alloc(making->arena, sizeof(*node));
	making->full |= !node;
	if (!node)
		return NULL;
	*node = *value;
	node->next = NULL;
	**tail = node;
	*tail = &node->next;
	parent->count++;
	return node;
}

static struct json *sentry_add(struct sentry_making *making, const char *name, struct json value)
{
	value.key = slice_of(name);
	return sentry_append(making, making->object, &making->tail, &value);
}

static void sentry_add_places(struct sentry_making *making, const struct json *event)
{
	for (size_t i = 0; i < fault_attribute_count; i++) {
		const struct fault_attribute *row = &fault_attributes[i];
		const struct json *found =
			row->sentry ? sentry_at_places(event, row->sentry) : NULL;
		if (found)
			sentry_add(making, row->name, *found);
	}
}

/* ---- Times ----------------------------------------------------------------------------------- */

double fault_sentry_time_ms(const struct json *value)
{
	char zoned[TIME_TEXT_MAX_BYTES];
	int64_t ms;
	double seconds;
	if (sentry_is_nothing(value))
		return NAN;
	if (value->type == JSON_T_NUMBER)
		return value_as_f64(value->number) * 1e3;
	if (value->type != JSON_T_STRING || !value->text.len)
		return NAN;
	struct slice text = value->text;
	if (!number_parse_f64(text.data, text.data + text.len, &seconds))
		return seconds * 1e3;
	if (!time_parse_iso(text, &ms, NULL))
		return (double)ms;
	if (text.len + 1 > sizeof(zoned))
		return NAN;
	memcpy(zoned, text.data, text.len);
	zoned[text.len] = 'Z';
	return time_parse_iso((struct slice){zoned, text.len + 1}, &ms, NULL) ? NAN : (double)ms;
}

double fault_sentry_duration_ms(const struct json *event)
{
	return fault_sentry_time_ms(json_member(event, "timestamp")) -
	       fault_sentry_time_ms(json_member(event, "start_timestamp"));
}

/* ---- The timeline ---------------------------------------------------------------------------- */

/* To the microsecond, which is what clients have. */
static struct json sentry_number(double ms)
{
	double rounded = round(ms * 1e3) / 1e3;
	bool whole = rounded == floor(rounded) && fabs(rounded) < 1e15;
	return (struct json){.type = JSON_T_NUMBER,
			     .number = whole ? value_i64((int64_t)rounded) : value_f64(rounded)};
}

static struct json sentry_text(const struct json *value)
{
	bool is_text = value && value->type == JSON_T_STRING;
	return (struct json){.type = JSON_T_STRING, .text = is_text ? value->text : SLICE("")};
}

struct sentry_step {
	double start_ms, stop_ms;
	const struct json *category, *detail;
};

static void sentry_add_step(struct sentry_making *making, struct json *timeline,
			    struct json ***tail, const struct sentry_step *step)
{
	struct json row = {.type = JSON_T_ARRAY};
	struct json *node = sentry_append(making, timeline, tail, &row);
	const struct json values[] = {sentry_number(step->start_ms), sentry_number(step->stop_ms),
				      sentry_text(step->category), sentry_text(step->detail)};
	if (!node)
		return;
	struct json **end = &node->first;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		sentry_append(making, node, &end, &values[i]);
}

static const struct json *sentry_either(const struct json *object, const char *name,
					const char *other)
{
	const struct json *found = json_member(object, name);
	return sentry_is_nothing(found) ? json_member(object, other) : found;
}

/* A breadcrumb without a time is at that of the one before. */
static bool sentry_read_crumb(const struct json *crumb, double *zero_ms, struct sentry_step *step)
{
	double ms = fault_sentry_time_ms(json_member(crumb, "timestamp"));
	if (crumb->type != JSON_T_OBJECT)
		return false;
	if (isnan(*zero_ms))
		*zero_ms = ms;
	if (isfinite(ms - *zero_ms))
		step->start_ms = ms - *zero_ms;
	step->stop_ms = step->start_ms;
	step->category = sentry_either(crumb, "category", "type");
	step->detail = json_member(crumb, "message");
	return true;
}

static bool sentry_read_span(const struct json *span, double *zero_ms, struct sentry_step *step)
{
	double start_ms = fault_sentry_time_ms(json_member(span, "start_timestamp")) - *zero_ms;
	double stop_ms = fault_sentry_time_ms(json_member(span, "timestamp")) - *zero_ms;
	if (span->type != JSON_T_OBJECT || !isfinite(start_ms))
		return false;
	step->start_ms = start_ms;
	step->stop_ms = isfinite(stop_ms) ? stop_ms : start_ms;
	step->category = json_member(span, "op");
	step->detail = sentry_either(span, "description", "name");
	return true;
}

static void sentry_add_timeline(struct sentry_making *making, const struct json *event)
{
	const struct json *spans = sentry_list(json_member(event, "spans"));
	const struct json *items = spans ? spans : sentry_list(sentry_member(event, "breadcrumbs"));
	double zero_ms = spans ? fault_sentry_time_ms(json_member(event, "start_timestamp")) : NAN;
	struct sentry_step step = {0};
	if (!items || !items->first)
		return;
	struct json *timeline = sentry_add(making, "timeline", (struct json){.type = JSON_T_ARRAY});
	if (!timeline)
		return;
	struct json **tail = &timeline->first;
	for (const struct json *item = items->first; item; item = item->next) {
		if (spans ? sentry_read_span(item, &zero_ms, &step)
			  : sentry_read_crumb(item, &zero_ms, &step))
			sentry_add_step(making, timeline, &tail, &step);
	}
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void sentry_add_transaction(struct sentry_making *making, const struct json *event)
{
	const struct json *type = json_member(event, "type");
	double ms = fault_sentry_duration_ms(event);
	if (!type || type->type != JSON_T_STRING || !slice_equal(type->text, SLICE("transaction")))
		return;
	if (!json_member(making->object, "exception"))
		sentry_add(making, "exception",
			   (struct json){.type = JSON_T_STRING, .text = SLICE(FAULT_SENTRY_SLOW)});
	if (isfinite(ms))
		sentry_add(making, "duration", sentry_number(ms));
}

struct json *fault_sentry_attributes(const struct json *event, struct arena *arena)
{
	struct sentry_making making = {.arena = arena};
	making.object = arena_zalloc(arena, sizeof(*making.object));
	if (!making.object)
		return NULL;
	making.object->type = JSON_T_OBJECT;
	making.tail = &making.object->first;
	sentry_add_places(&making, event);
	sentry_add_timeline(&making, event);
	sentry_add_transaction(&making, event);
	return making.full ? NULL : making.object;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* The exception of a report of O is a text. */
static bool sentry_is_exception(const struct json *value)
{
	return value->type == JSON_T_ARRAY || value->type == JSON_T_OBJECT ||
	       value->type == JSON_T_STRING;
}

static bool sentry_is_list(const struct json *value)
{
	return value->type == JSON_T_ARRAY || value->type == JSON_T_OBJECT;
}

/* PHP writes an object without members as []. */
static bool sentry_is_object(const struct json *value)
{
	return value->type == JSON_T_OBJECT || (value->type == JSON_T_ARRAY && !value->first);
}

static bool sentry_is_time(const struct json *value)
{
	return isfinite(fault_sentry_time_ms(value));
}

const char *fault_sentry_misshape(const struct json *event, size_t *at)
{
	static const struct {
		const char *name;
		bool (*fits)(const struct json *value);
		const char *sentence;
	} shapes[] = {
		{"exception", sentry_is_exception,
		 "exceptions: it is no list, and is kept as it is"},
		{"tags", sentry_is_list, "tags: it is no list, and is kept as it is"},
		{"breadcrumbs", sentry_is_list, "breadcrumbs: it is no list, and is kept as it is"},
		{"spans", sentry_is_list, "spans: it is no list, and is kept as it is"},
		{"request", sentry_is_object, "request: it is no object, and is kept as it is"},
		{"user", sentry_is_object, "user: it is no object, and is kept as it is"},
		{"timestamp", sentry_is_time, "timestamp: it is no time, and is kept as it is"},
		{"start_timestamp", sentry_is_time,
		 "start_timestamp: it is no time, and is kept as it is"},
	};
	while (*at < ARRAY_LEN(shapes)) {
		size_t i = (*at)++;
		const struct json *value = sentry_member(event, shapes[i].name);
		if (!sentry_is_nothing(value) && !shapes[i].fits(value))
			return shapes[i].sentence;
	}
	return NULL;
}

struct slice fault_sentry_name(struct slice name)
{
	return slice_equal(name, SLICE("exception")) ? SLICE("exceptions") : name;
}
