#include "wire/sample_csv.h"

#include "base/mem.h"
#include "wire/sample_value.h"

static int sample_csv_bad(const char **reason, const char *why)
{
	*reason = why;
	return ERR_INVALID;
}

/* Takes the last field, which is not quoted, and its comma off the line. */
static struct slice sample_csv_last(struct slice *line)
{
	const char *comma = memrchr(line->data, ',', line->len);
	if (!comma)
		return (struct slice){line->data, 0};
	struct slice field = {comma + 1, (size_t)(line->data + line->len - comma - 1)};
	line->len = (size_t)(comma - line->data);
	return field;
}

static bool sample_csv_value(struct slice type, struct slice text, struct value *value)
{
	const char *end = text.data + text.len;
	double number;
	int64_t whole;
	uint64_t natural;
	if (slice_equal(type, SLICE("f64")) && sample_value(text, &number))
		*value = value_f64(number);
	else if (slice_equal(type, SLICE("i64")) && !number_parse_i64(text.data, end, &whole))
		*value = value_i64(whole);
	else if (slice_equal(type, SLICE("u64")) && !number_parse_u64(text.data, end, &natural))
		*value = value_u64(natural);
	else
		return false;
	return true;
}

int sample_csv_split(struct slice line, struct slice *names, int64_t *ts_ms, struct value *value,
		     const char **reason)
{
	struct slice text = sample_csv_last(&line), type = sample_csv_last(&line);
	struct slice time = sample_csv_last(&line);
	if (!line.len)
		return sample_csv_bad(reason, "the line is not " SAMPLE_CSV_TITLE);
	if (number_parse_i64(time.data, time.data + time.len, ts_ms))
		return sample_csv_bad(reason, "time_ms is not a whole number");
	if (!sample_csv_value(type, text, value))
		return sample_csv_bad(reason, "the value is not one of type f64, i64 or u64");
	*names = line;
	return 0;
}

/* The field at *at, up to a comma or the end, unquoted at *to, which moves behind it. */
static bool sample_csv_field(const char **at, const char *end, char **to, struct slice *field)
{
	const char *p = *at, *begin = *to;
	bool quoted = p < end && *p == '"';
	for (p += quoted; p < end; p++) {
		if (!quoted && *p == ',')
			break;
		if (quoted && *p == '"' && (p + 1 == end || p[1] != '"'))
			break;
		p += quoted && *p == '"';
		*(*to)++ = *p;
	}
	if (quoted && p++ == end)
		return false;
	*field = (struct slice){begin, (size_t)(*to - begin)};
	*at = p;
	return p == end || *p == ',';
}

int sample_csv_names(struct slice names, struct arena *arena, struct slice *metric,
		     struct tags *tags, const char **reason)
{
	const char *at = names.data, *end = names.data + names.len;
	char *to = arena_alloc(arena, names.len);
	struct slice text;
	if (!to)
		return sample_csv_bad(reason, "the names take too much room");
	if (!sample_csv_field(&at, end, &to, metric) || at++ == end ||
	    !sample_csv_field(&at, end, &to, &text) || at != end)
		return sample_csv_bad(reason, "metric and tags are not two fields of CSV");
	if (tags_decode(text, arena, tags))
		return sample_csv_bad(reason, "the tags are not k=v,k=v in the order of keys");
	return metric->len ? 0 : sample_csv_bad(reason, "the metric is missing");
}
