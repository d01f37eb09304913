#include "api/metrics/export_encode.h"

#include "api/metrics/query_encode.h"
#include "wire/json.h"
#include "wire/line.h"
#include "wire/number.h"
#include "wire/sample_csv.h"

enum {
	EXPORT_PREFIX_MAX_BYTES = 64 << 10, /* names escaped in JSON may be six times as long */
	EXPORT_ARENA_MAX_BYTES = 64 << 10,
	EXPORT_SAMPLE_MAX_BYTES = 80, /* without the prefix */
	EXPORT_JSON_LINE_SAMPLES = 8192,
	EXPORT_TIMES_MAX_BYTES = (EXPORT_JSON_LINE_SAMPLES + 1) * (NUMBER_PRINT_MAX_BYTES + 1),
};

void export_encoder_init(struct export_encoder *encoder, const struct export_shape *shape,
			 struct buf *out)
{
	*encoder = (struct export_encoder){.shape = shape, .out = out};
	arena_init(&encoder->arena, EXPORT_ARENA_MAX_BYTES);
	buf_init(&encoder->prefix, EXPORT_PREFIX_MAX_BYTES);
	buf_init(&encoder->times, EXPORT_TIMES_MAX_BYTES);
}

void export_encoder_release(struct export_encoder *encoder)
{
	arena_release(&encoder->arena);
	buf_release(&encoder->prefix);
	buf_release(&encoder->times);
}

int export_encoder_series(struct export_encoder *encoder, struct slice metric,
			  struct slice tags_text)
{
	arena_reset(&encoder->arena);
	buf_clear(&encoder->prefix);
	return encoder->shape->series(encoder, metric, tags_text);
}

size_t export_encoder_points(struct export_encoder *encoder, const struct store_points *points,
			     size_t at, size_t max, size_t bytes_max)
{
	size_t end = max < points->count - at ? at + max : points->count, begin = at;
	while (at < end && export_encoder_bytes(encoder) < bytes_max) {
		size_t run = smaller_of(end - at, (size_t)EXPORT_RUN_SAMPLES);
		encoder->shape->run(encoder, points, at, run);
		at += run;
	}
	return at - begin;
}

void export_encoder_close(struct export_encoder *encoder)
{
	if (encoder->shape->close)
		encoder->shape->close(encoder);
}

static struct value export_value(const struct store_points *points, size_t i)
{
	return (struct value){points->bits[0][i], (enum value_type)points->types[0][i]};
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int export_lines_series(struct export_encoder *encoder, struct slice metric,
			       struct slice tags_text)
{
	struct tags tags;
	if (tags_decode(tags_text, &encoder->arena, &tags))
		return ERR_DAMAGED;
	int err = line_append_key(metric, tags, &encoder->prefix);
	buf_append_text(&encoder->prefix, " value=");
	return err;
}

static void export_lines_run(struct export_encoder *encoder, const struct store_points *points,
			     size_t at, size_t count)
{
	struct slice prefix = buf_slice(&encoder->prefix);
	char *start = buf_reserve(encoder->out, count * (prefix.len + EXPORT_SAMPLE_MAX_BYTES));
	char *to = start;
	for (size_t i = at; start && i < at + count; i++) {
		memcpy(to, prefix.data, prefix.len);
		to += prefix.len;
		to += line_print_value(to, export_value(points, i));
		*to++ = ' ';
		to += number_print_i64(to, points->ts_ms[i]);
		*to++ = '\n';
	}
	encoder->out->len += (size_t)(to - start);
}

const struct export_shape export_lines = {.content_type = "text/plain",
					  .title = "# granary precision=ms\n",
					  .series = export_lines_series,
					  .run = export_lines_run};

/* ---- CSV ------------------------------------------------------------------------------------- */

static int export_csv_series(struct export_encoder *encoder, struct slice metric,
			     struct slice tags_text)
{
	encoder_put_field(&encoder->prefix, metric);
	buf_append_char(&encoder->prefix, ',');
	encoder_put_field(&encoder->prefix, tags_text);
	return buf_append_char(&encoder->prefix, ',');
}

static void export_csv_run(struct export_encoder *encoder, const struct store_points *points,
			   size_t at, size_t count)
{
	static const char *const types[] = {[VALUE_NONE] = ",nil,",
					    [VALUE_F64] = ",f64,",
					    [VALUE_I64] = ",i64,",
					    [VALUE_U64] = ",u64,"};
	struct slice prefix = buf_slice(&encoder->prefix);
	char *start = buf_reserve(encoder->out, count * (prefix.len + EXPORT_SAMPLE_MAX_BYTES));
	char *to = start;
	for (size_t i = at; start && i < at + count; i++) {
		struct value value = export_value(points, i);
		memcpy(to, prefix.data, prefix.len);
		to += prefix.len;
		to += number_print_i64(to, points->ts_ms[i]);
		memcpy(to, types[value.type], 5);
		to += 5;
		to += number_print(to, value);
		*to++ = '\n';
	}
	encoder->out->len += (size_t)(to - start);
}

const struct export_shape export_csv = {.content_type = "text/csv",
					.title = SAMPLE_CSV_TITLE "\n",
					.series = export_csv_series,
					.run = export_csv_run};

/* ---- JSON ------------------------------------------------------------------------------------ */

static int export_json_series(struct export_encoder *encoder, struct slice metric,
			      struct slice tags_text)
{
	struct buf *prefix = &encoder->prefix;
	struct tags tags;
	if (tags_decode(tags_text, &encoder->arena, &tags))
		return ERR_DAMAGED;
	if (tags_find(tags, SLICE("__name__")).data)
		return ERR_INVALID;
	buf_append_text(prefix, "{\"metric\":{\"__name__\":");
	json_append_string(prefix, metric);
	for (size_t i = 0; i < tags.count; i++) {
		buf_append_char(prefix, ',');
		json_append_string(prefix, tags.list[i].key);
		buf_append_char(prefix, ':');
		json_append_string(prefix, tags.list[i].value);
	}
	return buf_append_text(prefix, "},\"values\":[");
}

/* As VictoriaMetrics does it. */
static size_t export_json_special(char *to, double number)
{
	const char *text = isnan(number) ? "null" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
	size_t len = strlen(text);
	memcpy(to, text, len);
	return len;
}

static size_t export_json_value(char *to, struct value value)
{
	bool special = value.type == VALUE_F64 && !isfinite(value_as_f64(value));
	return special ? export_json_special(to, value_as_f64(value)) : number_print(to, value);
}

static void export_json_close(struct export_encoder *encoder)
{
	if (!encoder->line_samples)
		return;
	buf_append_text(encoder->out, "],\"timestamps\":[");
	buf_append(encoder->out, encoder->times.data, encoder->times.len);
	buf_append_text(encoder->out, "]}\n");
	buf_clear(&encoder->times);
	encoder->line_samples = 0;
}

static void export_json_sample(struct export_encoder *encoder, int64_t ts_ms, struct value value)
{
	char *to = buf_reserve(encoder->out, EXPORT_SAMPLE_MAX_BYTES);
	char *time = buf_reserve(&encoder->times, EXPORT_SAMPLE_MAX_BYTES);
	if (!to || !time)
		return;
	char *value_at = to, *time_at = time;
	if (encoder->line_samples++)
		*value_at++ = *time_at++ = ',';
	value_at += export_json_value(value_at, value);
	time_at += number_print_i64(time_at, ts_ms);
	encoder->out->len += (size_t)(value_at - to);
	encoder->times.len += (size_t)(time_at - time);
}

static void export_json_run(struct export_encoder *encoder, const struct store_points *points,
			    size_t at, size_t count)
{
	for (size_t i = at; i < at + count; i++) {
		if (encoder->line_samples == EXPORT_JSON_LINE_SAMPLES)
			export_json_close(encoder);
		if (!encoder->line_samples)
			buf_append(encoder->out, encoder->prefix.data, encoder->prefix.len);
		export_json_sample(encoder, points->ts_ms[i], export_value(points, i));
	}
}

const struct export_shape export_json = {.content_type = "application/x-ndjson",
					 .series = export_json_series,
					 .run = export_json_run,
					 .close = export_json_close};
