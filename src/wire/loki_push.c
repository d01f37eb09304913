#include "wire/loki_push.h"

#include <stdlib.h>

#include "wire/calendar.h"
#include "wire/number.h"

enum { LOKI_NS_PER_S = 1000000000, LOKI_S_PER_DAY = 86400 };

/* ---- Events ---------------------------------------------------------------------------------- */

/* A reader that mends texts, but nothing else: true, where what it has read is not as it was sent.
 */
static bool loki_is_broken(const struct json_reader *reader, enum json_event event)
{
	return event == JSON_BAD || reader->mended == JSON_CUT || reader->mended == JSON_TOO_DEEP;
}

/* Reads to the end of a value that an event has begun. False: it is broken. */
static bool loki_pass(struct json_reader *reader, enum json_event event)
{
	unsigned depth = 0;
	for (;;) {
		if (loki_is_broken(reader, event))
			return false;
		depth += event == JSON_ARRAY_BEGIN || event == JSON_OBJECT_BEGIN;
		depth -= event == JSON_ARRAY_END || event == JSON_OBJECT_END;
		if (!depth && event != JSON_KEY)
			return true;
		event = json_next(reader);
	}
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static bool loki_is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (!i || c < '0' || c > '9'))
			return false;
	}
	return name.len && name.len <= LOKI_LABEL_NAME_MAX_BYTES;
}

static const char *loki_check_label(struct slice name, enum json_event event, struct slice value)
{
	if (!loki_is_name(name))
		return "the name of a label is none: it is 1 to 1024 of A-Z a-z 0-9 _, not "
		       "beginning with a digit";
	if (event != JSON_STRING)
		return "the value of a label is no text";
	if (value.len > LOKI_LABEL_VALUE_MAX_BYTES)
		return "the value of a label has more than 2048 bytes";
	return NULL;
}

static int loki_compare_labels(const void *a, const void *b)
{
	const struct loki_label *x = a, *y = b;
	return slice_compare(x->name, y->name);
}

static struct loki_label *loki_find_label(struct loki_labels *labels, struct slice name)
{
	for (size_t i = 0; i < labels->count; i++)
		if (slice_equal(labels->list[i].name, name))
			return &labels->list[i];
	return NULL;
}

/* An empty value takes back one that stands before it, as of any two the last counts. */
static const char *loki_add_label(struct loki_labels *labels, struct slice name, struct slice value)
{
	struct loki_label *label = loki_find_label(labels, name);
	if (!label && labels->count == LOKI_LABELS_MAX)
		return "it has more than 128 labels";
	if (!label)
		label = &labels->list[labels->count++];
	*label = (struct loki_label){name, value};
	return NULL;
}

static void loki_end_labels(struct loki_labels *labels)
{
	size_t kept = 0;
	for (size_t i = 0; i < labels->count; i++)
		if (labels->list[i].value.len)
			labels->list[kept++] = labels->list[i];
	labels->count = kept;
	if (kept > 1)
		qsort(labels->list, kept, sizeof(*labels->list), loki_compare_labels);
}

static const char *loki_check_metadata(struct slice name, enum json_event event, struct slice value)
{
	(void)value;
	return name.len && event == JSON_STRING ? NULL
						: "its metadata are no object of texts under names";
}

typedef const char *loki_check(struct slice name, enum json_event event, struct slice value);

/* The labels of an object that an event has begun, or should have. False: the JSON is broken, or
 * the arena is full. */
static bool loki_read_labels(struct json_reader *reader, enum json_event event, struct arena *arena,
			     struct loki_labels *labels, loki_check *check, const char **wrong)
{
	if (event != JSON_OBJECT_BEGIN) {
		*wrong = "its labels are no object";
		return loki_pass(reader, event);
	}
	struct loki_label list[LOKI_LABELS_MAX];
	*labels = (struct loki_labels){list, 0};
	while ((event = json_next(reader)) == JSON_KEY) {
		struct slice name = reader->text;
		if (loki_is_broken(reader, event))
			return false;
		event = json_next(reader);
		struct slice value = reader->text;
		const char *why = check(name, event, value);
		if (!loki_pass(reader, event))
			return false;
		why = why ? why : loki_add_label(labels, name, value);
		*wrong = *wrong ? *wrong : why;
	}
	if (loki_is_broken(reader, event))
		return false;
	loki_end_labels(labels);
	labels->list = arena_alloc(arena, labels->count * sizeof(*list) + 1);
	if (!labels->list) {
		reader->arena_full = true;
		return false;
	}
	memcpy(labels->list, list, labels->count * sizeof(*list));
	return true;
}

/* ---- The body -------------------------------------------------------------------------------- */

static bool loki_read_values(struct json_reader *reader, struct loki_stream *stream)
{
	enum json_event event = json_next(reader);
	size_t begin = reader->offset;
	if (event != JSON_ARRAY_BEGIN)
		stream->wrong = "its values are no array";
	if (!loki_pass(reader, event))
		return false;
	stream->values = json_text_from(reader, begin);
	return true;
}

static bool loki_read_stream(struct json_reader *reader, enum json_event event, struct arena *arena,
			     struct loki_stream *stream)
{
	bool good = true, labelled = false;
	if (event != JSON_OBJECT_BEGIN) {
		stream->wrong = "it is no object";
		return loki_pass(reader, event);
	}
	while (good && (event = json_next(reader)) == JSON_KEY) {
		if (slice_equal(reader->text, SLICE("stream"))) {
			labelled = true;
			good = loki_read_labels(reader, json_next(reader), arena, &stream->labels,
						loki_check_label, &stream->wrong);
		} else if (slice_equal(reader->text, SLICE("values"))) {
			good = loki_read_values(reader, stream);
		} else {
			good = loki_pass(reader, event);
		}
	}
	if (!stream->wrong && (!labelled || !stream->labels.count))
		stream->wrong = "it has no label; a stream has at least one";
	if (!stream->wrong && !stream->values.len)
		stream->wrong = "it has no values";
	return good && !loki_is_broken(reader, event);
}

static int loki_broken(const struct json_reader *reader, struct errbuf *e)
{
	if (reader->arena_full)
		return errbuf_set(e, ERR_LIMIT, "the body takes more memory than reading has");
	if (!reader->reason)
		return errbuf_set(e, ERR_INVALID, "the body is cut off, or nests too deep");
	return json_error(reader, e);
}

struct loki_list {
	struct loki_stream *list;
	size_t count, room;
};

static struct loki_stream *loki_add_stream(struct loki_list *to, struct arena *arena)
{
	if (to->count == to->room) {
		size_t room = to->room ? 2 * to->room : 16;
		struct loki_stream *list = arena_alloc(arena, room * sizeof(*list));
		if (!list)
			return NULL;
		if (to->count)
			memcpy(list, to->list, to->count * sizeof(*list));
		to->list = list;
		to->room = room;
	}
	struct loki_stream *stream = &to->list[to->count++];
	*stream = (struct loki_stream){.wrong = NULL};
	return stream;
}

static int loki_read_streams(struct json_reader *reader, struct arena *arena, struct loki_list *to,
			     struct errbuf *e)
{
	enum json_event event = json_next(reader);
	if (loki_is_broken(reader, event))
		return loki_broken(reader, e);
	if (event != JSON_ARRAY_BEGIN)
		return errbuf_set(e, ERR_INVALID, "\"streams\" is no array");
	while ((event = json_next(reader)) != JSON_ARRAY_END && event != JSON_BAD) {
		if (to->count == LOKI_STREAMS_MAX)
			return errbuf_set(e, ERR_LIMIT,
					  "there are more than %d streams; none of them was taken: "
					  "send them in several requests",
					  LOKI_STREAMS_MAX);
		struct loki_stream *stream = loki_add_stream(to, arena);
		if (!stream)
			reader->arena_full = true;
		if (!stream || !loki_read_stream(reader, event, arena, stream))
			return loki_broken(reader, e);
	}
	return loki_is_broken(reader, event) ? loki_broken(reader, e) : 0;
}

int loki_push_read(struct slice body, struct arena *arena, struct loki_push *push, struct errbuf *e)
{
	struct json_reader reader;
	struct loki_list streams = {.list = NULL};
	bool found = false;
	json_reader_init(&reader, body, arena);
	reader.lax = true;
	enum json_event event = json_next(&reader);
	if (loki_is_broken(&reader, event))
		return loki_broken(&reader, e);
	if (event != JSON_OBJECT_BEGIN)
		return errbuf_set(e, ERR_INVALID, "the body is no object with \"streams\"");
	while ((event = json_next(&reader)) == JSON_KEY) {
		bool is_streams = slice_equal(reader.text, SLICE("streams"));
		int err = 0;
		if (!is_streams)
			err = loki_pass(&reader, event) ? 0 : loki_broken(&reader, e);
		else if (found)
			err = errbuf_set(e, ERR_INVALID, "the body has \"streams\" twice");
		else
			err = loki_read_streams(&reader, arena, &streams, e);
		if (err)
			return err;
		found = found || is_streams;
	}
	if (loki_is_broken(&reader, event))
		return loki_broken(&reader, e);
	event = json_next(&reader);
	if (loki_is_broken(&reader, event))
		return loki_broken(&reader, e);
	if (!found)
		return errbuf_set(e, ERR_INVALID, "the body is no object with \"streams\"");
	*push = (struct loki_push){streams.list, streams.count};
	return 0;
}

/* ---- Entries --------------------------------------------------------------------------------- */

void loki_entries_begin(struct loki_entries *entries, const struct loki_stream *stream,
			struct arena *arena)
{
	json_reader_init(&entries->reader, stream->values, arena);
	entries->reader.lax = true;
	entries->arena = arena;
	enum json_event event = json_next(&entries->reader);
	ASSERT(event == JSON_ARRAY_BEGIN); /* it was read before */
}

static void loki_read_time(struct loki_entry *entry, enum json_event event, struct slice text)
{
	int64_t ns;
	if (event == JSON_STRING && text.len && text.data[0] != '-' &&
	    !number_parse_i64(text.data, text.data + text.len, &ns)) {
		entry->time_ns = ns;
		return;
	}
	entry->wrong = "its time is no text with a number of ns since 1970";
	entry->shown = event == JSON_STRING || event == JSON_NUMBER ? text : SLICE("");
}

/* One element of an entry; `at` counts them from 0. */
static bool loki_read_element(struct loki_entries *entries, struct loki_entry *entry,
			      enum json_event event, size_t at)
{
	struct json_reader *reader = &entries->reader;
	const char *wrong = NULL;
	bool good = true;
	if (at == 2) {
		good = loki_read_labels(reader, event, entries->arena, &entry->metadata,
					loki_check_metadata, &wrong);
		if (wrong && event != JSON_OBJECT_BEGIN)
			wrong = "its metadata are no object of texts under names";
		entry->wrong = entry->wrong ? entry->wrong : wrong;
		return good;
	}
	if (at == 0)
		loki_read_time(entry, event, reader->text);
	else if (at == 1 && event == JSON_STRING)
		entry->line = reader->text;
	else if (!entry->wrong)
		entry->wrong = at == 1 ? "its line is no text" : "it has more than three elements";
	return loki_pass(reader, event);
}

static bool loki_read_entry(struct loki_entries *entries, struct loki_entry *entry,
			    enum json_event event)
{
	struct json_reader *reader = &entries->reader;
	size_t count = 0;
	if (event != JSON_ARRAY_BEGIN) {
		entry->wrong = "it is no array of a time and a line";
		return loki_pass(reader, event);
	}
	while ((event = json_next(reader)) != JSON_ARRAY_END) {
		if (event == JSON_BAD || !loki_read_element(entries, entry, event, count++))
			return false;
	}
	if (count < 2 && !entry->wrong)
		entry->wrong = "it is no array of a time and a line";
	if (entry->line.len > LOKI_LINE_MAX_BYTES && !entry->wrong)
		entry->wrong = "its line has more than 262144 bytes";
	return true;
}

int loki_entries_next(struct loki_entries *entries, struct loki_entry *entry)
{
	*entry = (struct loki_entry){.wrong = NULL};
	enum json_event event = json_next(&entries->reader);
	if (event == JSON_ARRAY_END)
		return ERR_NOT_FOUND;
	if (event != JSON_BAD && loki_read_entry(entries, entry, event))
		return 0;
	ASSERT(entries->reader.arena_full); /* it was read before */
	return ERR_LIMIT;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* As a text of Go is written, as far as it matters here. */
static void loki_value_put(struct slice value, struct buf *out)
{
	buf_append_char(out, '"');
	for (size_t i = 0; i < value.len; i++) {
		char c = value.data[i];
		if (c == '"' || c == '\\' || c == '\n')
			buf_append_char(out, '\\');
		buf_append_char(out, c == '\n' ? 'n' : c);
	}
	buf_append_char(out, '"');
}

static void loki_name_put(struct slice name, struct buf *out)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '_';
		buf_append_char(out, good ? c : '_');
	}
}

static void loki_time_put(int64_t ns, struct buf *out)
{
	int64_t s = ns / LOKI_NS_PER_S, of_day = s % LOKI_S_PER_DAY;
	struct date date = date_of_days(s / LOKI_S_PER_DAY);
	buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ", (int)date.year, date.month, date.day,
		   (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60),
		   (int)(ns % LOKI_NS_PER_S));
}

void loki_record_put(const struct loki_entry *entry, struct buf *out)
{
	loki_time_put(entry->time_ns, out);
	buf_append_char(out, ' ');
	buf_append(out, entry->line.data, entry->line.len);
	for (size_t i = 0; i < entry->metadata.count; i++) {
		buf_append_char(out, ' ');
		loki_name_put(entry->metadata.list[i].name, out);
		buf_append_char(out, '=');
		loki_value_put(entry->metadata.list[i].value, out);
	}
	buf_append_char(out, '\n');
}

void loki_labels_put(const struct loki_labels *labels, const bool *skip, struct buf *out)
{
	char before = '{';
	for (size_t i = 0; i < labels->count; i++) {
		if (skip && skip[i])
			continue;
		buf_append_char(out, before);
		buf_append(out, labels->list[i].name.data, labels->list[i].name.len);
		buf_append_char(out, '=');
		loki_value_put(labels->list[i].value, out);
		before = ',';
	}
	if (before == ',')
		buf_append_char(out, '}');
}
