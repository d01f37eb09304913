#include "api/opentsdb/answer.h"

#include "wire/number.h"

enum { GROUP_MAX_BYTES = 256 << 10, SERIES_MAX_BYTES = 256 << 10 };

void opentsdb_answer_init(struct opentsdb_answer *answer, struct buf *out)
{
	*answer = (struct opentsdb_answer){.out = out};
	arena_init(&answer->group_arena, GROUP_MAX_BYTES);
	arena_init(&answer->series_arena, SERIES_MAX_BYTES);
}

void opentsdb_answer_release(struct opentsdb_answer *answer)
{
	arena_release(&answer->group_arena);
	arena_release(&answer->series_arena);
}

/* ---- Tags ---------------------------------------------------------------------------------- */

/* What the series of a group have in common. */
struct common {
	struct tag list[TAGS_MAX];
	bool differs[TAGS_MAX];
	size_t count;
};

static int opentsdb_answer_read_tags(const struct opentsdb_query *asked,
				     const struct catalog_series *series, struct arena *arena,
				     struct tags *tags)
{
	struct slice text = series->tags_text;
	if (asked->filters.names)
		text = device_names_tags(asked->filters.names, text, arena);
	return tags_decode(text, arena, tags) ? ERR_DAMAGED : 0;
}

static void take_first(struct common *common, struct tags tags)
{
	common->count = tags.count < TAGS_MAX ? tags.count : TAGS_MAX;
	for (size_t i = 0; i < common->count; i++) {
		common->list[i] = tags.list[i];
		common->differs[i] = false;
	}
}

static void opentsdb_answer_take_next(struct common *common, struct tags tags)
{
	size_t kept = 0;
	for (size_t i = 0; i < common->count; i++) {
		struct slice value = tags_find(tags, common->list[i].key);
		if (!value.data)
			continue;
		common->differs[kept] =
			common->differs[i] || !slice_equal(value, common->list[i].value);
		common->list[kept++] = common->list[i];
	}
	common->count = kept;
}

static int find_common(struct opentsdb_answer *answer, const struct opentsdb_query *asked,
		       const struct query *query, size_t group, struct common *common)
{
	const struct catalog_series *series;
	struct tags tags;
	size_t next = 0;
	bool first = true;
	arena_reset(&answer->group_arena);
	common->count = 0;
	while ((first || common->count) && (series = query_group_next(query, group, &next))) {
		struct arena *arena = first ? &answer->group_arena : &answer->series_arena;
		arena_reset(&answer->series_arena);
		if (opentsdb_answer_read_tags(asked, series, arena, &tags))
			return ERR_DAMAGED;
		if (first)
			take_first(common, tags);
		else
			opentsdb_answer_take_next(common, tags);
		first = false;
	}
	return 0;
}

static void opentsdb_answer_put_tags(struct buf *out, const struct common *common)
{
	bool next = false;
	buf_append_text(out, ",\"tags\":{");
	for (size_t i = 0; i < common->count; i++) {
		if (common->differs[i])
			continue;
		buf_append_text(out, next ? "," : "");
		json_append_string(out, common->list[i].key);
		buf_append_char(out, ':');
		json_append_string(out, common->list[i].value);
		next = true;
	}
	buf_append_char(out, '}');
}

static void put_keys(struct buf *out, const char *name, const struct common *common)
{
	bool next = false;
	buf_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < common->count; i++) {
		if (!common->differs[i])
			continue;
		buf_append_text(out, next ? "," : "");
		json_append_string(out, common->list[i].key);
		next = true;
	}
	buf_append_char(out, ']');
}

/* ---- Groups -------------------------------------------------------------------------------- */

/* As it was asked, with its place among the others. */
static void put_query(struct buf *out, const struct json *asked, size_t index)
{
	struct json_writer writer;
	buf_append_text(out, ",\"query\":");
	json_writer_init(&writer, out);
	json_write_object_begin(&writer);
	json_put_u64(&writer, "index", index);
	for (const struct json *member = asked->first; member; member = member->next) {
		if (slice_equal(member->key, SLICE("index")))
			continue;
		json_write_key_slice(&writer, member->key);
		json_write_tree(&writer, member);
	}
	json_write_object_end(&writer);
}

void opentsdb_answer_group(struct opentsdb_answer *answer, const struct opentsdb_query *asked,
			   size_t index)
{
	struct buf *out = answer->out;
	buf_append_text(out, answer->after_group ? ",{\"metric\":" : "{\"metric\":");
	json_append_string(out, asked->metric);
	if (answer->show_query)
		put_query(out, asked->asked, index);
	buf_append_text(out, answer->arrays ? ",\"dps\":[" : ",\"dps\":{");
	answer->in_points = false;
	answer->after_group = true;
}

static char *opentsdb_answer_put_value(char *to, struct value v)
{
	bool finite = v.type != VALUE_F64 || (v.bits >> 52 & 0x7ff) != 0x7ff;
	if (finite && v.type != VALUE_NONE)
		return to + number_print(to, v);
	memcpy(to, "null", 4);
	return to + 4;
}

void opentsdb_answer_points(struct opentsdb_answer *answer, const struct combine_point *points,
			    size_t count)
{
	struct buf *out = answer->out;
	char *start = buf_reserve(out, count * OPENTSDB_POINT_MAX_BYTES), *to = start;
	if (!start)
		return;
	for (size_t i = 0; i < count; i++) {
		int64_t time = answer->ms ? points[i].ts_ms : floor_div(points[i].ts_ms, 1000);
		if (answer->in_points)
			*to++ = ',';
		answer->in_points = true;
		*to++ = answer->arrays ? '[' : '"';
		to += number_print_i64(to, time);
		*to++ = answer->arrays ? ',' : '"';
		if (!answer->arrays)
			*to++ = ':';
		to = opentsdb_answer_put_value(to, points[i].value);
		if (answer->arrays)
			*to++ = ']';
	}
	ASSERT((size_t)(to - start) <= count * OPENTSDB_POINT_MAX_BYTES);
	out->len += (size_t)(to - start);
}

int opentsdb_answer_group_end(struct opentsdb_answer *answer, const struct opentsdb_query *asked,
			      const struct query *query, size_t group, bool cut)
{
	struct buf *out = answer->out;
	struct common common;
	int err = find_common(answer, asked, query, group, &common);
	if (err)
		return err;
	buf_append_char(out, answer->arrays ? ']' : '}');
	opentsdb_answer_put_tags(out, &common);
	put_keys(out, "aggregateTags", &common);
	put_keys(out, "aggregatedTags", &common);
	buf_append_text(out, cut ? ",\"truncated\":true}" : "}");
	return 0;
}
