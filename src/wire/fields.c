/* Readers, JSON, key=value, and numbers. */
#include "wire/fields.h"

#include <math.h>

#include "base/grow.h"
#include "wire/json.h"
#include "wire/number.h"

/* ---- Readers --------------------------------------------------------------------------------- */

void fields_reader_init(struct fields_reader *reader, const struct fields_format *format)
{
	*reader = (struct fields_reader){.format = format};
	arena_init_small(&reader->arena, FIELDS_MEMORY_MAX_BYTES);
	buf_init(&reader->column_text, FIELDS_STATE_MAX_BYTES);
	GROW(reader->list, reader->capacity, FIELDS_PATTERN_MAX);
	for (size_t i = 0; i < format->names.count; i++)
		reader->list[i] = (struct fields_field){.name = format->names.list[i]};
}

void fields_reader_release(struct fields_reader *reader)
{
	arena_release(&reader->arena);
	buf_release(&reader->column_text);
	mem_free(reader->list);
}

struct fields_field *fields_next(struct fields_reader *reader)
{
	if (reader->count == FIELDS_MAX) {
		reader->cut = true;
		return NULL;
	}
	GROW(reader->list, reader->capacity, reader->count + 1);
	struct fields_field *field = &reader->list[reader->count++];
	*field = (struct fields_field){.text = SLICE("")};
	return field;
}

struct slice fields_find(const struct fields_reader *reader, struct slice name)
{
	for (size_t i = reader->count; i-- > 0;)
		if (slice_equal(reader->list[i].name, name))
			return reader->list[i].text;
	return (struct slice){NULL, 0};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Where a value stands: keys, and the places of the arrays around it. */
struct fields_path {
	char keys[FIELDS_NAME_MAX_BYTES];
	size_t key_len; /* beyond the maximum: the path has no name */
	struct {
		size_t key_len; /* of what the array or object is in */
		bool is_array;
		uint32_t place; /* of the next element */
	} levels[JSON_DEPTH_MAX];
	size_t depth;
};

static void fields_path_enter(struct fields_path *path, bool is_array)
{
	ASSERT(path->depth < JSON_DEPTH_MAX);
	path->levels[path->depth].key_len = path->key_len;
	path->levels[path->depth].is_array = is_array;
	path->levels[path->depth++].place = 0;
}

static void fields_path_key(struct fields_path *path, struct slice key)
{
	size_t at = path->levels[path->depth - 1].key_len, dot = at > 0;
	path->key_len = at + dot + key.len;
	if (path->key_len > sizeof(path->keys))
		return;
	if (dot)
		path->keys[at] = '.';
	if (key.len)
		memcpy(path->keys + at + dot, key.data, key.len);
}

/* A value of the path has been read. */
static void fields_path_pass(struct fields_path *path)
{
	if (path->depth && path->levels[path->depth - 1].is_array)
		path->levels[path->depth - 1].place++;
}

/* Empty: it is too long. */
static struct slice fields_path_name(const struct fields_path *path, struct arena *arena)
{
	char name[FIELDS_NAME_MAX_BYTES + JSON_DEPTH_MAX * (NUMBER_PRINT_MAX_BYTES + 1)];
	size_t len = path->key_len;
	if (len > sizeof(path->keys))
		return SLICE("");
	memcpy(name, path->keys, len);
	for (size_t i = 0; i < path->depth; i++) {
		if (!path->levels[i].is_array)
			continue;
		name[len++] = '.';
		len += number_print_u64(name + len, path->levels[i].place);
	}
	return len > FIELDS_NAME_MAX_BYTES ? SLICE("")
					   : arena_copy(arena, (struct slice){name, len});
}

static void fields_add_at(struct fields_reader *reader, const struct fields_path *path,
			  struct slice text)
{
	struct slice name = fields_path_name(path, &reader->arena);
	struct fields_field *field = name.len ? fields_next(reader) : NULL;
	if (field)
		*field = (struct fields_field){name, text};
	else
		reader->cut = true;
}

/* False: the object is over. */
static bool fields_take_json(struct fields_reader *reader, struct fields_path *path,
			     const struct json_reader *json, enum json_event event)
{
	switch (event) {
	case JSON_KEY:
		fields_path_key(path, json->text);
		return true;
	case JSON_OBJECT_BEGIN:
	case JSON_ARRAY_BEGIN:
		fields_path_enter(path, event == JSON_ARRAY_BEGIN);
		return true;
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		path->key_len = path->levels[--path->depth].key_len;
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		fields_add_at(reader, path, event == JSON_TRUE ? SLICE("true") : SLICE("false"));
		break;
	case JSON_STRING:
	case JSON_NUMBER:
		fields_add_at(reader, path, json->text);
		break;
	default:
		break;
	}
	fields_path_pass(path);
	return path->depth > 0;
}

static enum fields_result fields_json_read(struct fields_reader *reader, struct slice line)
{
	struct json_reader json;
	struct fields_path path = {.key_len = 0};
	json_reader_init(&json, line, &reader->arena);
	enum json_event event = json_next(&json);
	if (event != JSON_OBJECT_BEGIN)
		return FIELDS_NOT;
	while (event != JSON_BAD && fields_take_json(reader, &path, &json, event))
		event = json_next(&json);
	return event != JSON_BAD && json_next(&json) == JSON_END ? FIELDS_READ : FIELDS_NOT;
}

/* ---- key=value ------------------------------------------------------------------------------- */

static const char *fields_pass_blanks(const char *at, const char *end)
{
	while (at < end && (unsigned char)*at <= ' ')
		at++;
	return at;
}

/* The text without its backslashes: \n, \t and \r are characters of their own, each other
 * character is itself. NULL data: no memory. */
static struct slice fields_unescape(struct arena *arena, struct slice text)
{
	if (!memchr(text.data, '\\', text.len))
		return text;
	char *to = arena_alloc(arena, text.len);
	size_t len = 0;
	if (!to)
		return (struct slice){NULL, 0};
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '\\' && i + 1 < text.len) {
			c = text.data[++i];
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
		}
		to[len++] = c;
	}
	return (struct slice){to, len};
}

/* The text behind the =, and where it ends; NULL: it does not. */
static const char *fields_logfmt_text(struct fields_reader *reader, const char *at, const char *end,
				      struct slice *text)
{
	const char *begin = at;
	if (at == end || *at != '"') {
		while (at < end && (unsigned char)*at > ' ')
			at++;
		*text = (struct slice){begin, (size_t)(at - begin)};
		return at;
	}
	for (at = ++begin; at < end && *at != '"'; at++)
		at += *at == '\\';
	if (at >= end)
		return NULL;
	*text = fields_unescape(&reader->arena, (struct slice){begin, (size_t)(at - begin)});
	return text->data ? at + 1 : NULL;
}

static const char *fields_take_pair(struct fields_reader *reader, const char *at, const char *end,
				    size_t *pairs)
{
	const char *begin = at;
	struct slice text = SLICE("");
	while (at < end && (unsigned char)*at > ' ' && *at != '=')
		at++;
	struct slice name = {begin, (size_t)(at - begin)};
	if (at < end && *at == '=') {
		at = fields_logfmt_text(reader, at + 1, end, &text);
		if (!at || !name.len)
			return NULL;
		++*pairs;
	}
	struct fields_field *field = name.len <= FIELDS_NAME_MAX_BYTES ? fields_next(reader) : NULL;
	if (field)
		*field = (struct fields_field){name, text};
	else
		reader->cut = true;
	return at;
}

static enum fields_result fields_logfmt_read(struct fields_reader *reader, struct slice line)
{
	const char *at = line.data, *end = at + line.len;
	size_t pairs = 0;
	while ((at = fields_pass_blanks(at, end)) < end) {
		at = fields_take_pair(reader, at, end, &pairs);
		if (!at)
			return FIELDS_NOT;
	}
	return pairs ? FIELDS_READ : FIELDS_NOT;
}

/* ---- A line ---------------------------------------------------------------------------------- */

static bool fields_is_empty(struct slice line)
{
	size_t at = 0;
	while (at < line.len && (unsigned char)line.data[at] <= ' ')
		at++;
	return at == line.len;
}

static enum fields_result fields_read_kind(struct fields_reader *reader, struct slice line)
{
	enum fields_result result;
	switch (reader->format->kind) {
	case FIELDS_PATTERN:
		return fields_pattern_read(reader, line) ? FIELDS_READ : FIELDS_NOT;
	case FIELDS_JSON:
		return fields_json_read(reader, line);
	case FIELDS_SYSTEM_METRICS:
		result = fields_json_read(reader, line);
		fields_make_totals(reader);
		return result;
	case FIELDS_LOGFMT:
		return fields_logfmt_read(reader, line);
	default:
		return fields_columns_read(reader, line);
	}
}

enum fields_result fields_read(struct fields_reader *reader, struct slice line)
{
	bool remembers = reader->format->kind == FIELDS_COLUMNS;
	line.len -= slice_ends_with(line, SLICE("\r"));
	reader->count = 0;
	reader->cut = false;
	arena_reset(&reader->arena);
	if (fields_is_empty(line) && !remembers)
		return FIELDS_NONE;
	enum fields_result result = fields_read_kind(reader, line);
	if (result != FIELDS_READ)
		reader->count = 0;
	return result;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static int fields_plain_number(struct slice text, struct value *out)
{
	const char *end = text.data + text.len;
	char copy[NUMBER_PRINT_MAX_BYTES];
	int64_t i;
	uint64_t u;
	double d;
	if (!number_parse_i64(text.data, end, &i)) {
		*out = value_i64(i);
		return 0;
	}
	if (!number_parse_u64(text.data, end, &u)) {
		*out = value_u64(u);
		return 0;
	}
	const char *comma = memchr(text.data, ',', text.len);
	if (comma && text.len <= sizeof(copy) && !memchr(text.data, '.', text.len)) {
		memcpy(copy, text.data, text.len);
		copy[comma - text.data] = '.';
		text.data = copy;
		end = copy + text.len;
	}
	int err = number_parse_f64(text.data, end, &d);
	if (!err)
		*out = value_f64(d);
	return err;
}

/* Takes the unit of a number of bytes away; what the rest is to be multiplied by. */
static uint64_t fields_take_unit(struct slice *text, uint64_t scale)
{
	static const char letters[] = "kmgtpe";
	size_t len = text->len;
	bool bytes = len && ascii_lower(text->data[len - 1]) == 'b';
	len -= bytes;
	bool binary = len && text->data[len - 1] == 'i';
	len -= binary;
	const char *letter = len ? strchr(letters, ascii_lower(text->data[len - 1])) : NULL;
	if (!letter || !*letter) {
		text->len -= bytes && !binary;
		return bytes && !binary ? 1 : scale;
	}
	text->len = len - 1;
	scale = 1;
	for (const char *p = letters; p <= letter; p++)
		scale *= bytes && !binary ? 1000 : 1024;
	return scale;
}

static int fields_scale(uint64_t scale, struct value *value)
{
	int64_t product;
	uint64_t large;
	if (value->type == VALUE_I64 &&
	    !__builtin_mul_overflow((int64_t)value->bits, scale, &product))
		*value = value_i64(product);
	else if (value->type != VALUE_F64 &&
		 (value->type == VALUE_U64 || (int64_t)value->bits > 0) &&
		 !__builtin_mul_overflow(value->bits, scale, &large))
		*value = value_u64(large);
	else
		*value = value_f64(value_as_f64(*value) * (double)scale);
	return value->type == VALUE_F64 && isinf(value_as_f64(*value)) ? ERR_LIMIT : 0;
}

int fields_number(struct slice text, uint64_t scale, struct value *out)
{
	if (!text.len)
		return ERR_INVALID;
	int err = fields_plain_number(text, out);
	if (err != ERR_INVALID || text.data[text.len - 1] != '%') {
		if (!scale || (err && err != ERR_INVALID))
			return err;
		if (err)
			scale = fields_take_unit(&text, scale);
		err = err ? fields_plain_number(text, out) : 0;
		return err ? err : fields_scale(scale, out);
	}
	text.len--;
	return fields_plain_number(text, out);
}
