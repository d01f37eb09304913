#include "wire/vm_line.h"

#include "base/mem.h"
#include "wire/sample_value.h"

static int vm_line_bad(struct vm_line *line, const char *reason)
{
	line->reason = reason;
	return ERR_INVALID;
}

static int vm_line_not_read(struct vm_line *line, const struct json_reader *reader,
			    const char *reason)
{
	return vm_line_bad(line, reader->reason ? reader->reason : reason);
}

/* {"__name__":"cpu","host":"a"} */
static int vm_line_names(struct vm_line *line, struct json_reader *reader, struct arena *arena)
{
	struct tag *tags = arena_alloc(arena, TAGS_MAX * sizeof(*tags));
	size_t count = 0;
	if (!tags)
		return vm_line_bad(line, "the names take too much room");
	if (json_next(reader) != JSON_OBJECT_BEGIN)
		return vm_line_not_read(line, reader, "metric is not an object");
	size_t offset = reader->offset;
	while (json_next(reader) == JSON_KEY) {
		struct slice key = reader->text;
		if (json_next(reader) != JSON_STRING)
			return vm_line_not_read(line, reader, "a label of metric is not a text");
		if (slice_equal(key, SLICE("__name__")))
			line->metric = reader->text;
		else if (count == TAGS_MAX)
			return vm_line_bad(line, "there are more than 64 labels");
		else
			tags[count++] = (struct tag){key, reader->text};
	}
	line->tags = (struct tags){tags, count};
	line->names = json_text_from(reader, offset);
	return 0;
}

/* An array, which is read when its samples are asked for. */
static int vm_line_array(struct vm_line *line, struct json_reader *reader,
			 struct json_reader *array, struct arena *arena)
{
	enum json_event event = json_next(reader);
	size_t offset = reader->offset;
	if (event != JSON_ARRAY_BEGIN || !json_skip(reader, event))
		return vm_line_not_read(line, reader, "values or timestamps are not an array");
	json_reader_init(array, json_text_from(reader, offset), arena);
	return json_next(array) == JSON_ARRAY_BEGIN ? 0 : ERR_INVALID;
}

static int vm_line_member(struct vm_line *line, struct json_reader *reader, struct arena *arena)
{
	if (slice_equal(reader->text, SLICE("metric")))
		return vm_line_names(line, reader, arena);
	if (slice_equal(reader->text, SLICE("values")))
		return vm_line_array(line, reader, &line->values, arena);
	if (slice_equal(reader->text, SLICE("timestamps")))
		return vm_line_array(line, reader, &line->times, arena);
	return json_skip(reader, JSON_KEY) ? 0 : vm_line_not_read(line, reader, "a bad member");
}

int vm_line_read(struct vm_line *line, struct slice text, struct arena *arena)
{
	struct json_reader reader;
	enum json_event event;
	*line = (struct vm_line){.reason = NULL};
	json_reader_init(&reader, text, arena);
	if (json_next(&reader) != JSON_OBJECT_BEGIN)
		return vm_line_not_read(line, &reader, "the line is not an object");
	while ((event = json_next(&reader)) == JSON_KEY) {
		int err = vm_line_member(line, &reader, arena);
		if (err)
			return err;
	}
	if (event != JSON_OBJECT_END || json_next(&reader) != JSON_END)
		return vm_line_not_read(line, &reader, "the line is not an object");
	if (!line->metric.len)
		return vm_line_bad(line, "metric has no __name__");
	if (!line->values.start || !line->times.start)
		return vm_line_bad(line, "values or timestamps are missing");
	return 0;
}

/* A literal without a point is a double, too, and may have fewer digits than its exact value. */
static bool vm_line_value(const struct json_reader *reader, enum json_event event,
			  struct value *value)
{
	struct slice text = reader->text;
	double number = NAN;
	bool is = event == JSON_NULL;
	if (event == JSON_STRING)
		is = sample_value(text, &number);
	else if (event == JSON_NUMBER)
		is = number_parse_f64(text.data, text.data + text.len, &number) != ERR_INVALID;
	*value = value_f64(number);
	return is;
}

int vm_line_next(struct vm_line *line, int64_t *ts_ms, struct value *value)
{
	enum json_event of_value = json_next(&line->values), of_time = json_next(&line->times);
	struct slice time = line->times.text;
	if (of_value == JSON_ARRAY_END && of_time == JSON_ARRAY_END)
		return ERR_NOT_FOUND;
	if (of_value == JSON_ARRAY_END || of_time == JSON_ARRAY_END)
		return vm_line_bad(line, "values and timestamps are not equally many");
	if (!vm_line_value(&line->values, of_value, value))
		return vm_line_bad(line, "a value is not a number");
	if (of_time != JSON_NUMBER || number_parse_i64(time.data, time.data + time.len, ts_ms))
		return vm_line_bad(line, "a timestamp is not a whole number of ms");
	return 0;
}
