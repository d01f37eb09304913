#include "ingest/put_feed.h"

#include <math.h>
#include <strings.h>

#include "ingest/private.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum { ARENA_RESET_BYTES = 64 << 10, COLUMN_MAX = INT32_MAX };

/* A point as far as it has been read. Each field begins as missing. */
struct put_feed_point {
	struct slice metric;
	int64_t ts_ms;
	struct value value;
	const struct put_tags *tags; /* of the feed */
	bool seen[PUT_FIELDS];
	struct put_fault faults[PUT_FIELDS];
};

static struct ingest_place put_feed_place(const struct put_feed *feed)
{
	return (struct ingest_place){.index = feed->index};
}

/* ---- Groups --------------------------------------------------------------------------------- */

static void put_feed_flush(struct put_feed *feed)
{
	struct put_group *group = &feed->group;
	struct put_tags *tags = (struct put_tags *)group->tags;
	if (!group->count)
		return;
	ingest_points(feed->r, &(struct ingest_points){.tenant = tags->tenant,
						       .tags = tags->list,
						       .tag_count = tags->count,
						       .metrics = group->metrics,
						       .values = group->values,
						       .count = group->count,
						       .ts_ms = group->ts_ms,
						       .place = {.index = group->first},
						       .one_by_one = true});
	group->count = 0;
	group->tags = NULL;
}

static bool put_feed_in_group(const struct put_group *group, struct slice metric)
{
	for (size_t i = 0; i < group->count; i++) {
		if (slice_equal(group->metrics[i], metric))
			return true;
	}
	return false;
}

static bool put_feed_joins(const struct put_group *group, const struct put_feed_point *point)
{
	return group->count && group->tags == point->tags && group->ts_ms == point->ts_ms &&
	       group->count < INGEST_POINTS_MAX && !put_feed_in_group(group, point->metric);
}

static void put_feed_add(struct put_feed *feed, const struct put_feed_point *point)
{
	struct put_group *group = &feed->group;
	if (!put_feed_joins(group, point)) {
		put_feed_flush(feed);
		group->tags = point->tags;
		group->ts_ms = point->ts_ms;
		group->first = feed->index;
	}
	group->metrics[group->count] = point->metric;
	group->values[group->count++] = point->value;
}

static void put_feed_refuse(struct put_feed *feed, const struct put_fault *fault)
{
	/* A gap: the indexes of a group follow each other. */
	put_feed_flush(feed);
	ingest_refuse(feed->r, put_feed_place(feed), fault->reason, (struct slice){NULL, 0}, "%s",
		      fault->sentence);
}

/* ---- Fields --------------------------------------------------------------------------------- */

static void put_feed_set_fault(struct put_feed_point *point, enum put_field field,
			       enum ingest_reason reason, const char *sentence)
{
	point->faults[field] = (struct put_fault){reason, sentence};
}

static void put_feed_parse_metric(struct put_feed *feed, struct put_feed_point *point,
				  enum json_event event)
{
	struct errbuf *e = &feed->sentences[PUT_METRIC];
	point->metric = feed->reader.text;
	if (event != JSON_STRING)
		put_feed_set_fault(point, PUT_METRIC, INGEST_SYNTAX, "\"metric\" is not a text");
	else if (metric_check(point->metric, e))
		put_feed_set_fault(point, PUT_METRIC, INGEST_NAME, e->text);
	else
		put_feed_set_fault(point, PUT_METRIC, INGEST_NAME, NULL);
}

static void put_feed_parse_time(struct put_feed *feed, struct put_feed_point *point,
				enum json_event event)
{
	struct errbuf *e = &feed->sentences[PUT_TIME];
	int err = errbuf_set(e, ERR_INVALID, "\"timestamp\" is neither a number nor a text");
	if (event == JSON_NUMBER)
		err = time_parse_epoch(feed->reader.text, &point->ts_ms, e);
	else if (event == JSON_STRING)
		err = time_parse_absolute(feed->reader.text, &point->ts_ms, e);
	put_feed_set_fault(point, PUT_TIME, INGEST_TIME, err ? e->text : NULL);
}

static bool put_feed_means_not_finite(struct slice text)
{
	static const char *const words[] = {"nan", "inf", "infinity"};
	if (text.len && (*text.data == '-' || *text.data == '+')) {
		text.data++;
		text.len--;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (text.len == strlen(words[i]) && strncasecmp(text.data, words[i], text.len) == 0)
			return true;
	}
	return false;
}

static void put_feed_parse_quoted_value(struct put_feed *feed, struct put_feed_point *point)
{
	struct slice text = feed->reader.text;
	int err = number_parse_json(text, &point->value);
	if (!err)
		put_feed_set_fault(point, PUT_VALUE, INGEST_NOT_NUMBER, NULL);
	else if ((err == ERR_LIMIT && text.len <= NUMBER_TEXT_MAX_BYTES) ||
		 put_feed_means_not_finite(text))
		put_feed_set_fault(point, PUT_VALUE, INGEST_NOT_FINITE,
				   "the value is not a finite number");
	else
		put_feed_set_fault(point, PUT_VALUE, INGEST_NOT_NUMBER,
				   "the value is a text, not a number");
}

static void put_feed_parse_value(struct put_feed *feed, struct put_feed_point *point,
				 enum json_event event)
{
	point->value = feed->reader.number;
	if (event == JSON_STRING)
		put_feed_parse_quoted_value(feed, point);
	else if (event != JSON_NUMBER)
		put_feed_set_fault(point, PUT_VALUE, INGEST_NOT_NUMBER,
				   "the value is not a number");
	else if (point->value.type == VALUE_F64 && !isfinite(value_as_f64(point->value)))
		put_feed_set_fault(point, PUT_VALUE, INGEST_NOT_FINITE,
				   "the value is not a finite number");
	else
		put_feed_set_fault(point, PUT_VALUE, INGEST_NOT_NUMBER, NULL);
}

/* ---- Tags ----------------------------------------------------------------------------------- */

static void put_feed_bad_tag(struct put_tags *tags, struct slice key, const char *how)
{
	errbuf_set(&tags->sentence, ERR_INVALID, "tag \"" SHOWN "\" %s", SHOWN_OF(key), how);
	tags->fault = (struct put_fault){INGEST_NAME, tags->sentence.text};
}

static void put_feed_add_tag(struct put_tags *tags, struct tag tag)
{
	for (size_t i = 0; i < tags->count; i++) {
		if (slice_equal(tags->list[i].key, tag.key)) {
			put_feed_bad_tag(tags, tag.key, "stands twice");
			return;
		}
	}
	if (tags->count == ARRAY_LEN(tags->list)) {
		tags->fault = (struct put_fault){INGEST_NAME, "there are more than 64 tags"};
		return;
	}
	tags->list[tags->count++] = tag;
}

/* After JSON_KEY. False: no JSON. */
static bool put_feed_parse_tag(struct put_feed *feed, struct put_tags *tags)
{
	struct json_reader *reader = &feed->reader;
	struct tag tag = {.key = reader->text};
	enum json_event event = json_next(reader);
	switch (event) {
	case JSON_STRING:
	case JSON_NUMBER:
		tag.value = reader->text;
		break;
	case JSON_TRUE:
		tag.value = SLICE("true");
		break;
	case JSON_FALSE:
		tag.value = SLICE("false");
		break;
	case JSON_NULL:
		put_feed_bad_tag(tags, tag.key, "has no value");
		return true;
	default:
		put_feed_bad_tag(tags, tag.key, "is not a text");
		return json_skip(reader, event);
	}
	put_feed_add_tag(tags, tag);
	return true;
}

static void put_feed_check_tags(struct put_feed *feed, struct put_tags *tags)
{
	struct errbuf *e = &tags->sentence;
	if (tags->fault.sentence)
		return;
	if (ingest_tenant(feed->r->ingest, feed->tenant, tags->list, &tags->count, &tags->tenant,
			  e) ||
	    tags_sort_and_check(tags->list, tags->count, e))
		tags->fault = (struct put_fault){INGEST_NAME, e->text};
}

static void put_feed_clear_tags(struct put_tags *tags)
{
	tags->count = 0;
	tags->fault = (struct put_fault){INGEST_NAME, NULL};
}

/* After JSON_OBJECT_BEGIN, of an object that is not written like the one before. Its tags are not
 * read into those that the group still needs. */
static bool put_feed_read_tags(struct put_feed *feed)
{
	struct json_reader *reader = &feed->reader;
	size_t offset = reader->offset;
	struct put_tags *tags = &feed->tags[feed->group.tags == &feed->tags[0]];
	feed->known = NULL;
	put_feed_clear_tags(tags);
	enum json_event event;
	while ((event = json_next(reader)) == JSON_KEY) {
		if (!put_feed_parse_tag(feed, tags))
			return false;
	}
	if (event != JSON_OBJECT_END)
		return false;
	tags->text = json_text_from(reader, offset);
	put_feed_check_tags(feed, tags);
	feed->known = tags;
	return true;
}

/* ---- Points --------------------------------------------------------------------------------- */

static enum put_field put_feed_field_of(struct slice key)
{
	static const char *const names[PUT_FIELDS] = {
		[PUT_METRIC] = "metric",
		[PUT_TIME] = "timestamp",
		[PUT_VALUE] = "value",
		[PUT_TAGS] = "tags",
	};
	size_t field = 0;
	while (field < PUT_FIELDS && !slice_equal(key, slice_of(names[field])))
		field++;
	return (enum put_field)field;
}

static void put_feed_set_twice(struct put_feed_point *point, enum put_field field)
{
	static const char *const sentences[PUT_FIELDS] = {
		[PUT_METRIC] = "\"metric\" stands twice",
		[PUT_TIME] = "\"timestamp\" stands twice",
		[PUT_VALUE] = "\"value\" stands twice",
		[PUT_TAGS] = "\"tags\" stands twice",
	};
	put_feed_set_fault(point, field, INGEST_SYNTAX, sentences[field]);
}

/* After JSON_KEY. False: no JSON. */
static bool put_feed_parse_member(struct put_feed *feed, struct put_feed_point *point)
{
	struct json_reader *reader = &feed->reader;
	enum put_field field = put_feed_field_of(reader->text);
	enum json_event event = json_next(reader);
	if (field == PUT_FIELDS)
		return json_skip(reader, event);
	if (UNLIKELY(point->seen[field])) {
		put_feed_set_twice(point, field);
		return json_skip(reader, event);
	}
	point->seen[field] = true;
	if (field == PUT_TAGS && event == JSON_OBJECT_BEGIN) {
		bool same = feed->known && json_skip_same(reader, feed->known->text);
		if (!same && !put_feed_read_tags(feed))
			return false;
		point->tags = feed->known;
		return true;
	}
	if (field == PUT_METRIC)
		put_feed_parse_metric(feed, point, event);
	else if (field == PUT_TIME)
		put_feed_parse_time(feed, point, event);
	else if (field == PUT_VALUE)
		put_feed_parse_value(feed, point, event);
	else
		put_feed_set_fault(point, PUT_TAGS, INGEST_SYNTAX, "\"tags\" is not an object");
	return json_skip(reader, event);
}

static bool put_feed_in_time(const struct put_feed *feed, int64_t ts_ms)
{
	const struct request *q = request_of(feed->r);
	return ts_ms >= q->oldest_ms && ts_ms <= q->newest_ms;
}

static void put_feed_finish_point(struct put_feed *feed, struct put_feed_point *point)
{
	for (size_t i = 0; i < PUT_FIELDS; i++) {
		if (point->faults[i].sentence) {
			put_feed_refuse(feed, &point->faults[i]);
			return;
		}
	}
	if (!point->seen[PUT_TAGS])
		point->tags = &feed->untagged;
	if (point->tags->fault.sentence) {
		put_feed_refuse(feed, &point->tags->fault);
		return;
	}
	if (!put_feed_in_time(feed, point->ts_ms))
		put_feed_flush(feed);
	if (request_time(request_of(feed->r), point->ts_ms, put_feed_place(feed),
			 (struct slice){NULL, 0}))
		put_feed_add(feed, point);
}

/* After JSON_OBJECT_BEGIN. False: no JSON. */
static bool put_feed_parse_point(struct put_feed *feed)
{
	struct put_feed_point point = {
		.faults = {[PUT_METRIC] = {INGEST_SYNTAX, "\"metric\" is missing"},
			   [PUT_TIME] = {INGEST_TIME, "\"timestamp\" is missing"},
			   [PUT_VALUE] = {INGEST_NOT_NUMBER, "\"value\" is missing"}}};
	enum json_event event;
	while ((event = json_next(&feed->reader)) == JSON_KEY) {
		if (!put_feed_parse_member(feed, &point))
			return false;
	}
	if (event != JSON_OBJECT_END)
		return false;
	put_feed_finish_point(feed, &point);
	return true;
}

/* ---- The body ------------------------------------------------------------------------------- */

void put_feed_init(struct put_feed *feed, struct ingest_request *r, struct slice tenant,
		   struct slice body)
{
	feed->r = r;
	feed->tenant = tenant;
	feed->index = 0;
	feed->begun = feed->array = feed->over = feed->keep_offsets = false;
	feed->known = NULL;
	put_feed_clear_tags(&feed->untagged);
	put_feed_check_tags(feed, &feed->untagged);
	feed->group.count = 0;
	feed->group.tags = NULL;
	arena_init(&feed->arena, PUT_TEXT_MAX_BYTES);
	buf_init(&feed->offsets, PUT_OFFSETS_MAX_BYTES);
	json_reader_init(&feed->reader, body, &feed->arena);
	feed->reader.allow_nan = true;
}

void put_feed_release(struct put_feed *feed)
{
	arena_release(&feed->arena);
	buf_release(&feed->offsets);
}

bool put_feed_offset(const struct put_feed *feed, uint64_t index, size_t *offset)
{
	if (index >= feed->offsets.len / sizeof(*offset))
		return false;
	memcpy(offset, feed->offsets.data + index * sizeof(*offset), sizeof(*offset));
	return true;
}

/* Text that is no JSON ends the reading. */
static bool put_feed_bad(struct put_feed *feed)
{
	struct json_reader *reader = &feed->reader;
	struct errbuf e;
	size_t line, column;
	put_feed_flush(feed);
	json_error(reader, &e);
	json_where((struct slice){reader->start, (size_t)(reader->end - reader->start)},
		   reader->offset, &line, &column);
	ingest_refuse(feed->r,
		      (struct ingest_place){feed->index,
					    (uint32_t)(column < COLUMN_MAX ? column : COLUMN_MAX)},
		      reader->arena_full ? INGEST_TOO_LONG : INGEST_SYNTAX, (struct slice){NULL, 0},
		      "%s; what follows was not read", e.text);
	feed->index++;
	return false;
}

/* Texts with escapes live in the arena, as long as a group or the known tags may point there. */
static void put_feed_trim_arena(struct put_feed *feed)
{
	if (LIKELY(feed->arena.used_bytes < ARENA_RESET_BYTES))
		return;
	put_feed_flush(feed);
	feed->known = NULL;
	arena_reset(&feed->arena);
}

/* After the event that begins it. */
static bool put_feed_parse_element(struct put_feed *feed, enum json_event event)
{
	static const struct put_fault fault = {INGEST_SYNTAX, "a point is an object"};
	put_feed_trim_arena(feed);
	if (event == JSON_BAD)
		return put_feed_bad(feed);
	if (feed->keep_offsets && !feed->offsets.failed)
		buf_append(&feed->offsets, &feed->reader.offset, sizeof(feed->reader.offset));
	bool object = event == JSON_OBJECT_BEGIN;
	if (object ? !put_feed_parse_point(feed) : !json_skip(&feed->reader, event))
		return put_feed_bad(feed);
	if (!object)
		put_feed_refuse(feed, &fault);
	feed->index++;
	return true;
}

/* After the last value: nothing may follow. */
static bool put_feed_finish(struct put_feed *feed)
{
	return json_next(&feed->reader) == JSON_END ? false : put_feed_bad(feed);
}

/* One point or the brackets around them. False: the body is over. */
static bool put_feed_step(struct put_feed *feed)
{
	enum json_event event = json_next(&feed->reader);
	if (!feed->begun) {
		feed->begun = true;
		feed->array = event == JSON_ARRAY_BEGIN;
		if (feed->array)
			return true;
		return put_feed_parse_element(feed, event) && put_feed_finish(feed);
	}
	if (event == JSON_ARRAY_END)
		return put_feed_finish(feed);
	return put_feed_parse_element(feed, event);
}

bool put_feed_slice(struct put_feed *feed)
{
	const char *begin = feed->reader.at;
	ingest_piece_begin(feed->r);
	while (!feed->over && !feed->r->err && feed->reader.at - begin < PUT_SLICE_BYTES)
		feed->over = !put_feed_step(feed);
	if (feed->over)
		put_feed_flush(feed);
	ingest_piece_end(feed->r);
	return !feed->over && !feed->r->err;
}
