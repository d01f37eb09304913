#include "ingest/sentry_counts.h"

#include "fault/sentry.h"

struct sentry_counting {
	struct minute_counts *counts;
	struct arena *arena;
	struct minute_count one; /* metric, tags and time of what is counted */
};

/* ---- Members --------------------------------------------------------------------------------- */

static struct slice sentry_counts_text(const struct json *object, const char *name)
{
	const struct json *value = json_member(object, name);
	return value && value->type == JSON_T_STRING ? value->text : SLICE("");
}

static uint64_t sentry_counts_number(const struct json *object, const char *name)
{
	int64_t number = 0;
	if (json_get_i64(object, name, &number, NULL) || number < 0)
		return 0;
	return (uint64_t)number;
}

static int64_t sentry_counts_ms(const struct json *object, const char *name)
{
	enum { YEAR_2286_S = 10000000 }; /* in thousands of seconds */
	double ms = fault_sentry_time_ms(json_member(object, name));
	return ms >= 0 && ms < YEAR_2286_S * 1e6 ? (int64_t)ms : MINUTE_UNKNOWN;
}

static void sentry_counts_tag(struct sentry_counting *c, struct slice key, struct slice value)
{
	if (value.len)
		c->one.tags[c->one.tag_count++] = (struct tag){key, value};
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void sentry_counts_sessions(struct sentry_counting *c, const struct json *item,
				   struct slice status, uint64_t count)
{
	const struct json *attributes = json_member(item, "attrs");
	c->one.metric = SLICE("faults_sessions");
	c->one.tag_count = 0;
	sentry_counts_tag(c, SLICE("environment"), sentry_counts_text(attributes, "environment"));
	sentry_counts_tag(c, SLICE("release"), sentry_counts_text(attributes, "release"));
	sentry_counts_tag(c, SLICE("status"), status);
	c->one.count = count;
	minute_counts_add(c->counts, &c->one, c->arena);
}

/* `init` says that the session begins. Each other status than `ok` ends it. */
static void sentry_counts_session(struct sentry_counting *c, const struct json *item)
{
	struct slice status = sentry_counts_text(item, "status");
	bool begins = false;
	c->one.ms = sentry_counts_ms(item, "started");
	if (!json_get_bool(item, "init", &begins, NULL) && begins)
		sentry_counts_sessions(c, item, SLICE("ok"), 1);
	if (slice_equal(status, SLICE("exited")) && sentry_counts_number(item, "errors"))
		sentry_counts_sessions(c, item, SLICE("errored"), 1);
	else if (slice_equal(status, SLICE("exited")) || slice_equal(status, SLICE("crashed")) ||
		 slice_equal(status, SLICE("abnormal")))
		sentry_counts_sessions(c, item, status, 1);
}

/* Each element has the sessions of one minute, which have begun and ended. */
static void sentry_counts_aggregate(struct sentry_counting *c, const struct json *item,
				    const struct json *element)
{
	static const struct slice statuses[] = {SLICE("exited"), SLICE("errored"), SLICE("crashed"),
						SLICE("abnormal")};
	uint64_t all = 0;
	c->one.ms = sentry_counts_ms(element, "started");
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		uint64_t count = sentry_counts_number(element, statuses[i].data);
		all += count <= MINUTE_COUNT_MAX ? count : 0;
		sentry_counts_sessions(c, item, statuses[i], count);
	}
	sentry_counts_sessions(c, item, SLICE("ok"), all);
}

static void sentry_counts_aggregates(struct sentry_counting *c, const struct json *item)
{
	const struct json *list = json_member(item, "aggregates");
	if (!list || list->type != JSON_T_ARRAY)
		return;
	for (const struct json *element = list->first; element; element = element->next)
		sentry_counts_aggregate(c, item, element);
}

/* ---- What clients threw away ----------------------------------------------------------------- */

static void sentry_counts_report(struct sentry_counting *c, const struct json *item)
{
	const struct json *list = json_member(item, "discarded_events");
	if (!list || list->type != JSON_T_ARRAY)
		return;
	c->one.metric = SLICE("faults_discarded");
	c->one.ms = sentry_counts_ms(item, "timestamp");
	for (const struct json *element = list->first; element; element = element->next) {
		c->one.tag_count = 0;
		sentry_counts_tag(c, SLICE("category"), sentry_counts_text(element, "category"));
		sentry_counts_tag(c, SLICE("reason"), sentry_counts_text(element, "reason"));
		c->one.count = sentry_counts_number(element, "quantity");
		minute_counts_add(c->counts, &c->one, c->arena);
	}
}

/* ---- By type --------------------------------------------------------------------------------- */

static const struct sentry_counts_type {
	struct slice name;
	void (*read)(struct sentry_counting *c, const struct json *item);
} sentry_counts_types[] = {{SLICE("session"), sentry_counts_session},
			   {SLICE("sessions"), sentry_counts_aggregates},
			   {SLICE("client_report"), sentry_counts_report}};

static const struct sentry_counts_type *sentry_counts_find(struct slice type)
{
	for (size_t i = 0; i < ARRAY_LEN(sentry_counts_types); i++)
		if (slice_equal(sentry_counts_types[i].name, type))
			return &sentry_counts_types[i];
	return NULL;
}

bool sentry_counts_has(struct slice type)
{
	return sentry_counts_find(type) != NULL;
}

void sentry_counts_read(struct slice type, const struct json *item, struct minute_counts *counts,
			struct arena *arena)
{
	const struct sentry_counts_type *row = sentry_counts_find(type);
	struct sentry_counting c = {.counts = counts, .arena = arena};
	if (row && item->type == JSON_T_OBJECT)
		row->read(&c, item);
}
