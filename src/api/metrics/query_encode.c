#include "api/metrics/query_encode.h"

#include "api/metrics/answered_by.h"
#include "wire/json.h"
#include "wire/number.h"
#include "wire/timetext.h"

#define DAY_MS INT64_C(86400000)

enum {
	SERIES_MAX_BYTES = 256 << 10,
	/* At most about 200 and 400 KB of text: a line of CSV has all names of its series. */
	JSON_CHUNK_POINTS = 2048,
	CSV_CHUNK_POINTS = 128,
	KEYS_MAX_BYTES = 4 << 20,
	CSV_KEYS_MAX = 1000, /* columns; has_key is linear */
};

void encoder_init(struct encoder *encoder, const struct encoder_shape *shape,
		  const struct query *query, struct buf *out)
{
	*encoder =
		(struct encoder){.shape = shape, .query = query, .out = out, .day_ms = INT64_MIN};
	arena_init(&encoder->arena, SERIES_MAX_BYTES);
	arena_init(&encoder->key_arena, KEYS_MAX_BYTES);
}

void encoder_release(struct encoder *encoder)
{
	arena_release(&encoder->arena);
	arena_release(&encoder->key_arena);
}

static void begin_once(struct encoder *encoder)
{
	if (!encoder->began)
		encoder->shape->begin(encoder);
	encoder->began = true;
}

void encoder_chunk(struct encoder *encoder, const struct query_chunk *chunk)
{
	size_t count;
	const struct catalog_series *series = query_series(encoder->query, &count);
	ASSERT(chunk->series_index < count && chunk->count <= encoder->shape->chunk_points);
	begin_once(encoder);
	if (chunk->first) {
		struct catalog_series said = series[chunk->series_index];
		arena_reset(&encoder->arena);
		if (encoder->say_tags)
			said.tags_text = encoder->say_tags(encoder->say_owner, said.tags_text,
							   &encoder->arena);
		encoder->shape->series(encoder, &said);
	}
	encoder->shape->points(encoder, chunk);
}

void encoder_end(struct encoder *encoder)
{
	begin_once(encoder);
	encoder->shape->end(encoder);
}

/* ---- Times --------------------------------------------------------------------------------- */

/* The date, which most points share with the one before, is made once a day. */
static void set_day(struct encoder *encoder, int64_t day_ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	size_t len = time_print(text, day_ms);
	const char *t = memchr(text, 'T', len);
	encoder->day_len = (size_t)(t - text) + 1;
	ASSERT(encoder->day_len <= sizeof(encoder->day));
	memcpy(encoder->day, text, encoder->day_len);
	encoder->day_ms = day_ms;
}

static char *put_two(char *to, unsigned number)
{
	*to++ = (char)('0' + number / 10);
	*to++ = (char)('0' + number % 10);
	return to;
}

/* As time_print, at most TIME_PRINT_MAX_BYTES. */
static char *encoder_put_time(struct encoder *encoder, char *to, int64_t ts_ms)
{
	/* In one comparison: before this day, or not within it. */
	if ((uint64_t)ts_ms - (uint64_t)encoder->day_ms >= (uint64_t)DAY_MS)
		set_day(encoder, floor_to(ts_ms, DAY_MS));
	unsigned ms = (unsigned)(ts_ms - encoder->day_ms);
	unsigned seconds = ms / 1000;
	memcpy(to, encoder->day, encoder->day_len);
	to = put_two(to + encoder->day_len, seconds / 3600);
	*to++ = ':';
	to = put_two(to, seconds / 60 % 60);
	*to++ = ':';
	to = put_two(to, seconds % 60);
	if (ms % 1000) {
		*to++ = '.';
		*to++ = (char)('0' + ms % 1000 / 100);
		to = put_two(to, ms % 100);
	}
	*to++ = 'Z';
	return to;
}

static struct value value_at(const struct query_chunk *chunk, size_t i)
{
	return (struct value){chunk->bits[i], (enum value_type)chunk->types[i]};
}

/* ---- What was read -------------------------------------------------------------------------- */

static void put_explain(struct encoder *encoder)
{
	const struct query *query = encoder->query;
	const struct store_read_work *work = &query->work;
	size_t rows;
	(void)query_series(query, &rows);
	buf_printf(encoder->out, "{\"series\":%zu,\"rows\":%zu,\"points\":%llu,\"reads\":%zu,",
		   query->series_read, rows, (unsigned long long)query->points, query->reads);
	buf_printf(encoder->out,
		   "\"extents\":%llu,\"blocksDecoded\":%llu,\"blocksSummarised\":%llu,"
		   "\"blocksSkipped\":%llu,\"samplesDecoded\":%llu,\"samplesEstimated\":%llu,",
		   (unsigned long long)work->extents, (unsigned long long)work->blocks_decoded,
		   (unsigned long long)work->blocks_summarised,
		   (unsigned long long)work->blocks_skipped, (unsigned long long)work->rows_decoded,
		   (unsigned long long)query->estimate);
	granularity_explain(encoder->out, query, encoder->granularities);
	buf_printf(encoder->out,
		   "\"catalogMs\":%.3f,\"storeMs\":%.3f,\"readersMs\":%.3f,\"encodingMs\":%.3f}",
		   (double)query->find_us / 1e3, (double)query->store_us / 1e3,
		   (double)work->took_us / 1e3, (double)encoder->encode_us / 1e3);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_begin(struct encoder *encoder)
{
	if (encoder->explain)
		buf_append_text(encoder->out, "{\"result\":");
	buf_append_char(encoder->out, '[');
}

static void encoder_close_series(struct encoder *encoder)
{
	if (!encoder->in_series)
		return;
	buf_append_text(encoder->out, encoder->query->cut && encoder->query->ended
					      ? "},\"truncated\":true}"
					      : "}}");
	encoder->in_series = false;
}

/* Whether no character of the text means anything to JSON, or is escaped in it. */
static bool encoder_is_plain(struct slice text)
{
	bool plain = true;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		plain &= c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
	}
	return plain;
}

/* `k=v,k=v` as `"k":"v","k":"v"`; every byte becomes three at most. False, with nothing put: it is
 * not of that form. */
static bool put_plain_tags(struct buf *out, struct slice text)
{
	char *start = buf_reserve(out, 3 * text.len + 2), *to = start;
	bool in_value = false;
	if (!start)
		return true; /* out->failed tells */
	*to++ = '"';
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c != '=' && c != ',') {
			*to++ = c;
			continue;
		}
		if ((c == ',') != in_value)
			return false;
		in_value = !in_value;
		*to++ = '"';
		*to++ = c == '=' ? ':' : ',';
		*to++ = '"';
	}
	*to++ = '"';
	ASSERT((size_t)(to - start) <= 3 * text.len + 2);
	if (in_value)
		out->len += (size_t)(to - start);
	return in_value;
}

static void encoder_put_tags(struct encoder *encoder, struct slice tags_text)
{
	struct buf *out = encoder->out;
	struct tags tags;
	if (tags_text.len && encoder_is_plain(tags_text) && put_plain_tags(out, tags_text))
		return;
	/* The text comes from the registry, and the arena has room for the longest: a failure means
	 * that something is damaged, and an answer that does not say so would be wrong. */
	if (tags_decode(tags_text, &encoder->arena, &tags)) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < tags.count; i++) {
		if (i)
			buf_append_char(out, ',');
		json_append_string(out, tags.list[i].key);
		buf_append_char(out, ':');
		json_append_string(out, tags.list[i].value);
	}
}

static void json_series(struct encoder *encoder, const struct catalog_series *series)
{
	struct buf *out = encoder->out;
	const struct query_spec *spec = &encoder->query->spec;
	bool next = encoder->in_series;
	encoder_close_series(encoder);
	buf_append_text(out, next ? ",{\"tenant\":" : "{\"tenant\":");
	json_append_string(out, spec->tenant);
	buf_append_text(out, ",\"metricName\":");
	json_append_string(out, spec->metric);
	buf_append_text(out, ",\"tags\":{");
	encoder_put_tags(encoder, series->tags_text);
	buf_append_text(out, "},\"values\":{");
	encoder->in_series = true;
	encoder->in_values = false;
}

static bool encoder_is_finite(struct value v)
{
	return v.type != VALUE_NONE && (v.type != VALUE_F64 || (v.bits >> 52 & 0x7ff) != 0x7ff);
}

static char *put_json_value(char *to, struct value v)
{
	if (encoder_is_finite(v))
		return to + number_print(to, v);
	memcpy(to, "null", 4);
	return to + 4;
}

static void json_points(struct encoder *encoder, const struct query_chunk *chunk)
{
	struct buf *out = encoder->out;
	char *start = buf_reserve(out, chunk->count * ENCODE_POINT_MAX_BYTES);
	char *to = start;
	if (!start)
		return;
	for (size_t i = 0; i < chunk->count; i++) {
		if (encoder->in_values)
			*to++ = ',';
		encoder->in_values = true;
		*to++ = '"';
		to = encoder_put_time(encoder, to, chunk->ts_ms[i]);
		*to++ = '"';
		*to++ = ':';
		to = put_json_value(to, value_at(chunk, i));
	}
	ASSERT((size_t)(to - start) <= chunk->count * ENCODE_POINT_MAX_BYTES);
	out->len += (size_t)(to - start);
}

static void json_end(struct encoder *encoder)
{
	encoder_close_series(encoder);
	buf_append_text(encoder->out, "]");
	if (!encoder->explain)
		return;
	buf_append_text(encoder->out, ",\"explain\":");
	put_explain(encoder);
	buf_append_char(encoder->out, '}');
}

const struct encoder_shape encoder_json = {"application/json", JSON_CHUNK_POINTS, json_begin,
					   json_series,        json_points,       json_end};

/* ---- CSV ----------------------------------------------------------------------------------- */

void encoder_put_field(struct buf *out, struct slice text)
{
	if (!memchr(text.data, ',', text.len) && !memchr(text.data, '"', text.len)) {
		buf_append(out, text.data, text.len);
		return;
	}
	buf_append_char(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			buf_append_char(out, '"');
		buf_append_char(out, text.data[i]);
	}
	buf_append_char(out, '"');
}

static int encoder_by_bytes(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static bool encoder_has_key(const struct encoder *encoder, struct slice key)
{
	for (size_t i = 0; i < encoder->key_count; i++) {
		if (slice_equal(encoder->keys[i], key))
			return true;
	}
	return false;
}

/* Appends a key to the (unsorted) keys; there is room for TAGS_MAX times as many as series. */
static bool add_keys(struct encoder *encoder, struct slice tags_text, size_t *room)
{
	struct tags tags;
	arena_reset(&encoder->arena);
	if (tags_decode(tags_text, &encoder->arena, &tags))
		return false;
	for (size_t i = 0; i < tags.count; i++) {
		if (encoder_has_key(encoder, tags.list[i].key))
			continue;
		if (encoder->key_count == *room) {
			*room = *room ? *room * 2 : TAGS_MAX;
			struct slice *more =
				arena_alloc(&encoder->key_arena, *room * sizeof(*more));
			if (!more)
				return false;
			if (encoder->key_count)
				memcpy(more, encoder->keys, encoder->key_count * sizeof(*more));
			encoder->keys = more;
		}
		struct slice copy = arena_copy(&encoder->key_arena, tags.list[i].key);
		if (!copy.data || encoder->key_count == CSV_KEYS_MAX)
			return false;
		encoder->keys[encoder->key_count++] = copy;
	}
	return true;
}

/* No two columns have one title: a tag that is called as another column gets `tag.` before its
 * name, and so does a tag whose name begins with that. */
static void csv_put_title(struct buf *out, struct slice key)
{
	static const char *const others[] = {"time", "tenant", "metric", "value"};
	const struct slice tag = SLICE("tag.");
	struct buf title;
	bool is_taken = slice_starts_with(key, tag);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		is_taken = is_taken || slice_equal(key, slice_of(others[i]));
	buf_init(&title, tag.len + SERIES_MAX_BYTES);
	buf_append(&title, tag.data, is_taken ? tag.len : 0);
	buf_append(&title, key.data, key.len);
	encoder_put_field(out, buf_slice(&title));
	buf_release(&title);
}

static void csv_begin(struct encoder *encoder)
{
	struct buf *out = encoder->out;
	size_t count, room = 0;
	const struct catalog_series *series = query_series(encoder->query, &count);
	for (size_t i = 0; i < count; i++) {
		if (!add_keys(encoder, series[i].tags_text, &room)) {
			out->failed = true;
			return;
		}
	}
	if (encoder->key_count > 1)
		qsort(encoder->keys, encoder->key_count, sizeof(*encoder->keys), encoder_by_bytes);
	buf_append_text(out, "time,tenant,metric,");
	for (size_t i = 0; i < encoder->key_count; i++) {
		csv_put_title(out, encoder->keys[i]);
		buf_append_char(out, ',');
	}
	buf_append_text(out, "value\n");
}

/* What stands between time and value in each line of this series. */
static void csv_series(struct encoder *encoder, const struct catalog_series *series)
{
	const struct query_spec *spec = &encoder->query->spec;
	struct tags tags;
	struct buf middle;
	buf_init(&middle, SERIES_MAX_BYTES);
	if (tags_decode(series->tags_text, &encoder->arena, &tags))
		encoder->out->failed = true;
	buf_append_char(&middle, ',');
	encoder_put_field(&middle, spec->tenant);
	buf_append_char(&middle, ',');
	encoder_put_field(&middle, spec->metric);
	buf_append_char(&middle, ',');
	for (size_t i = 0; i < encoder->key_count && !encoder->out->failed; i++) {
		struct slice value = tags_find(tags, encoder->keys[i]);
		if (value.data)
			encoder_put_field(&middle, value);
		buf_append_char(&middle, ',');
	}
	encoder->middle = arena_copy(&encoder->arena, buf_slice(&middle));
	if (middle.failed || !encoder->middle.data)
		encoder->out->failed = true;
	buf_release(&middle);
}

static void csv_points(struct encoder *encoder, const struct query_chunk *chunk)
{
	struct buf *out = encoder->out;
	struct slice middle = encoder->middle;
	char *start = buf_reserve(out, chunk->count * (ENCODE_POINT_MAX_BYTES + middle.len));
	char *to = start;
	if (!start || out->failed)
		return;
	for (size_t i = 0; i < chunk->count; i++) {
		to = encoder_put_time(encoder, to, chunk->ts_ms[i]);
		memcpy(to, middle.data, middle.len);
		to += middle.len;
		if (chunk->types[i] != VALUE_NONE)
			to += number_print(to, value_at(chunk, i));
		*to++ = '\n';
	}
	ASSERT((size_t)(to - start) <= chunk->count * (ENCODE_POINT_MAX_BYTES + middle.len));
	out->len += (size_t)(to - start);
}

static void csv_end(struct encoder *encoder)
{
	if (encoder->query->cut)
		buf_printf(encoder->out, "# truncated: more was found than %llu points (%s)\n",
			   (unsigned long long)encoder->query->points, encoder->query->cut_why);
	if (!encoder->explain)
		return;
	buf_append_text(encoder->out, "# explain: ");
	put_explain(encoder);
	buf_append_char(encoder->out, '\n');
}

const struct encoder_shape encoder_csv = {"text/csv", CSV_CHUNK_POINTS, csv_begin,
					  csv_series, csv_points,       csv_end};
