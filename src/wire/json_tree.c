/* JSON as a tree, made from the reader's events without recursion. */
#include <math.h>

#include "wire/json.h"
#include "wire/json_make.h"
#include "wire/number.h"

struct builder {
	struct json_reader reader;
	struct json_maker maker;
	struct slice key; /* of the value that comes next */
	enum json_mended mended_key;
};

static enum json_type event_type(enum json_event event)
{
	switch (event) {
	case JSON_TRUE:
	case JSON_FALSE:
		return JSON_T_BOOL;
	case JSON_NUMBER:
		return JSON_T_NUMBER;
	case JSON_STRING:
		return JSON_T_STRING;
	case JSON_ARRAY_BEGIN:
		return JSON_T_ARRAY;
	case JSON_OBJECT_BEGIN:
		return JSON_T_OBJECT;
	default:
		return JSON_T_NULL;
	}
}

static int json_add_node(struct builder *b, enum json_event event)
{
	if (b->reader.lax && event == JSON_NUMBER && !isfinite(value_as_f64(b->reader.number)))
		event = JSON_STRING;
	struct json *node = json_make(&b->maker, event_type(event), b->key);
	if (!node)
		return ERR_LIMIT;
	node->boolean = event == JSON_TRUE;
	node->offset = b->reader.offset;
	b->key = (struct slice){NULL, 0};
	if (b->reader.mended || b->mended_key)
		json_make_mended(&b->maker, node,
				 b->reader.mended ? b->reader.mended : b->mended_key);
	b->mended_key = JSON_AS_IS;
	if (event == JSON_NUMBER || event == JSON_STRING)
		node->text = b->reader.text;
	if (event == JSON_NUMBER)
		node->number = b->reader.number;
	return 0;
}

static int json_parse_tree(struct slice text, bool lax, struct arena *arena, struct json **root,
			   struct errbuf *e)
{
	struct builder b = {.mended_key = JSON_AS_IS};
	json_maker_init(&b.maker, arena, root);
	json_reader_init(&b.reader, text, arena);
	b.reader.allow_nan = lax;
	b.reader.lax = lax;
	for (;;) {
		enum json_event event = json_next(&b.reader);
		int err = 0;
		switch (event) {
		case JSON_BAD:
			return json_error(&b.reader, e);
		case JSON_END:
			return 0;
		case JSON_KEY:
			b.key = b.reader.text;
			b.mended_key = b.reader.mended;
			break;
		case JSON_ARRAY_END:
		case JSON_OBJECT_END:
			if (b.reader.mended)
				json_make_cut(&b.maker);
			json_make_end(&b.maker);
			break;
		default:
			err = json_add_node(&b, event);
		}
		if (err)
			return errbuf_set(e, err, "more values than memory is allowed for");
	}
}

int json_parse(struct slice text, struct arena *arena, struct json **root, struct errbuf *e)
{
	return json_parse_tree(text, false, arena, root, e);
}

int json_parse_lax(struct slice text, struct arena *arena, struct json **root, struct errbuf *e)
{
	return json_parse_tree(text, true, arena, root, e);
}

/* ---- Getters -------------------------------------------------------------------------------- */

const struct json *json_member(const struct json *object, const char *key)
{
	const struct json *found = NULL;
	if (!object || object->type != JSON_T_OBJECT)
		return NULL;
	struct slice wanted = slice_of(key);
	for (const struct json *member = object->first; member; member = member->next) {
		if (slice_equal(member->key, wanted))
			found = member;
	}
	return found;
}

int json_check_members(const struct json *object, const char *const *names, struct errbuf *e)
{
	for (const struct json *member = object->first; member; member = member->next) {
		size_t i = 0;
		while (names[i] && !slice_equal(member->key, slice_of(names[i])))
			i++;
		if (!names[i])
			return errbuf_set(e, ERR_INVALID, "unknown member \"" SHOWN "\"",
					  SHOWN_OF(member->key));
	}
	return 0;
}

static int json_wrong(const char *key, const char *wanted, struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID, "\"%s\" is not %s", key, wanted);
}

static int json_tree_find(const struct json *object, const char *key, enum json_type type,
			  const char *wanted, const struct json **found, struct errbuf *e)
{
	const struct json *member = json_member(object, key);
	if (!member)
		return errbuf_set(e, ERR_NOT_FOUND, "\"%s\" is missing", key);
	if (member->type != type)
		return json_wrong(key, wanted, e);
	*found = member;
	return 0;
}

int json_get_text(const struct json *object, const char *key, struct slice *out, struct errbuf *e)
{
	const struct json *member = NULL;
	int err = json_tree_find(object, key, JSON_T_STRING, "a text", &member, e);
	if (!err)
		*out = member->text;
	return err;
}

int json_get_bool(const struct json *object, const char *key, bool *out, struct errbuf *e)
{
	const struct json *member = NULL;
	int err = json_tree_find(object, key, JSON_T_BOOL, "true or false", &member, e);
	if (!err)
		*out = member->boolean;
	return err;
}

int json_get_i64(const struct json *object, const char *key, int64_t *out, struct errbuf *e)
{
	const struct json *member = NULL;
	int err = json_tree_find(object, key, JSON_T_NUMBER, "a whole number", &member, e);
	if (err)
		return err;
	if (member->number.type == VALUE_I64) {
		*out = (int64_t)member->number.bits;
		return 0;
	}
	double number = value_as_f64(member->number);
	bool fits = member->number.type == VALUE_F64 && number >= -0x1p63 && number < 0x1p63 &&
		    floor(number) == number;
	if (!fits)
		return json_wrong(key, "a whole number of 64 bits", e);
	*out = (int64_t)number;
	return 0;
}

int json_get_f64(const struct json *object, const char *key, double *out, struct errbuf *e)
{
	const struct json *member = NULL;
	int err = json_tree_find(object, key, JSON_T_NUMBER, "a number", &member, e);
	if (err)
		return err;
	double number = value_as_f64(member->number);
	if (!isfinite(number))
		return json_wrong(key, "a number that a double can hold", e);
	*out = number;
	return 0;
}

int json_get_array(const struct json *object, const char *key, const struct json **out,
		   struct errbuf *e)
{
	return json_tree_find(object, key, JSON_T_ARRAY, "an array", out, e);
}

int json_get_object(const struct json *object, const char *key, const struct json **out,
		    struct errbuf *e)
{
	return json_tree_find(object, key, JSON_T_OBJECT, "an object", out, e);
}

/* ---- Writing -------------------------------------------------------------------------------- */

static void write_scalar(struct json_writer *w, const struct json *node)
{
	switch (node->type) {
	case JSON_T_BOOL:
		json_write_bool(w, node->boolean);
		break;
	case JSON_T_NUMBER:
		json_write_number(w, node->number);
		break;
	case JSON_T_STRING:
		json_write_string(w, node->text);
		break;
	default:
		json_write_null(w);
	}
}

static void end_node(struct json_writer *w, const struct json *node)
{
	if (node->type == JSON_T_OBJECT)
		json_write_object_end(w);
	else
		json_write_array_end(w);
}

/* Begins an array or object and gives its first child, else NULL. */
static const struct json *begin_node(struct json_writer *w, const struct json *node)
{
	if (node->type != JSON_T_OBJECT && node->type != JSON_T_ARRAY) {
		write_scalar(w, node);
		return NULL;
	}
	if (node->type == JSON_T_OBJECT)
		json_write_object_begin(w);
	else
		json_write_array_begin(w);
	if (!node->first)
		end_node(w, node);
	return node->first;
}

void json_write_tree(struct json_writer *w, const struct json *tree)
{
	const struct json *parent[JSON_DEPTH_MAX + 1];
	unsigned level = 0;
	const struct json *node = tree;
	for (;;) {
		if (level && parent[level]->type == JSON_T_OBJECT)
			json_write_key_slice(w, node->key);
		const struct json *child = begin_node(w, node);
		if (child) {
			parent[++level] = node;
			node = child;
			continue;
		}
		while (level && !node->next) {
			node = parent[level--];
			end_node(w, node);
		}
		if (!level)
			return;
		node = node->next;
	}
}

/* A literal ends with a digit; NaN and Infinity, which some readers give, do not. */
static void json_write_literal(struct json_writer *writer, const struct json *node)
{
	if (node->text.len && number_is_digit(node->text.data[node->text.len - 1]))
		json_write_raw(writer, node->text);
	else
		json_write_number(writer, node->number);
}

void json_write_literally(struct json_writer *writer, const struct json *tree)
{
	switch (tree->type) {
	case JSON_T_NUMBER:
		json_write_literal(writer, tree);
		break;
	case JSON_T_ARRAY:
		json_write_array_begin(writer);
		for (const struct json *item = tree->first; item; item = item->next)
			json_write_literally(writer, item);
		json_write_array_end(writer);
		break;
	case JSON_T_OBJECT:
		json_write_object_begin(writer);
		for (const struct json *member = tree->first; member; member = member->next) {
			json_write_key_slice(writer, member->key);
			json_write_literally(writer, member);
		}
		json_write_object_end(writer);
		break;
	case JSON_T_NULL:
	case JSON_T_BOOL:
	case JSON_T_STRING:
		json_write_tree(writer, tree);
		break;
	}
}
