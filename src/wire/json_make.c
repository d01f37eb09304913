#include "wire/json_make.h"

#include <math.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/number.h"

void json_maker_init(struct json_maker *m, struct arena *arena, struct json **root)
{
	*root = NULL;
	m->arena = arena;
	m->full = false;
	m->level = 0;
	m->parent[0] = NULL;
	m->tail[0] = root;
}

struct json *json_make(struct json_maker *m, enum json_type type, struct slice key)
{
	struct json *node = m->full ? NULL : arena_zalloc(m->arena, sizeof(*node));
	if (!node) {
		m->full = true;
		return NULL;
	}
	node->type = type;
	node->key = key;
	*m->tail[m->level] = node;
	m->tail[m->level] = &node->next;
	if (m->parent[m->level])
		m->parent[m->level]->count++;
	if (type == JSON_T_ARRAY || type == JSON_T_OBJECT) {
		ASSERT(m->level < JSON_DEPTH_MAX);
		m->level++;
		m->parent[m->level] = node;
		m->tail[m->level] = &node->first;
	}
	return node;
}

void json_make_end(struct json_maker *m)
{
	if (m->full)
		return;
	ASSERT(m->level);
	m->level--;
}

void json_make_mended(struct json_maker *m, struct json *node, enum json_mended how)
{
	for (unsigned level = 1; level <= m->level; level++)
		if (!m->parent[level]->mended)
			m->parent[level]->mended = JSON_MENDED_WITHIN;
	node->mended = (uint8_t)how;
}

void json_make_cut(struct json_maker *m)
{
	m->parent[m->level]->mended = JSON_CUT;
}

void json_make_undo(struct json_maker *m, struct json **made)
{
	*made = NULL;
	m->tail[m->level] = made;
	m->parent[m->level]->count--;
}

void json_make_null(struct json_maker *m, struct slice key)
{
	json_make(m, JSON_T_NULL, key);
}

void json_make_bool(struct json_maker *m, struct slice key, bool boolean)
{
	struct json *node = json_make(m, JSON_T_BOOL, key);
	if (node)
		node->boolean = boolean;
}

void json_make_text(struct json_maker *m, struct slice key, struct slice text)
{
	struct json *node = json_make(m, JSON_T_STRING, key);
	if (node)
		node->text = text;
}

static struct slice json_make_nan(double number)
{
	if (isnan(number))
		return SLICE("NaN");
	return number < 0 ? SLICE("-Infinity") : SLICE("Infinity");
}

void json_make_number(struct json_maker *m, struct slice key, struct value number)
{
	double as_double = value_as_f64(number);
	if (!isfinite(as_double)) {
		json_make_text(m, key, json_make_nan(as_double));
		return;
	}
	struct json *node = json_make(m, JSON_T_NUMBER, key);
	char *literal = json_make_room(m, NUMBER_PRINT_MAX_BYTES);
	if (!node || !literal)
		return;
	node->number = number;
	node->text = (struct slice){literal, number_print(literal, number)};
}

char *json_make_room(struct json_maker *m, size_t bytes)
{
	char *room = m->full ? NULL : arena_alloc(m->arena, bytes);
	if (!room)
		m->full = true;
	return room;
}

struct slice json_make_utf8(struct json_maker *m, struct slice text)
{
	if (utf8_is_valid(text))
		return text;
	/* No overflow: the text is in memory, and memory is not a third of what size_t can say. */
	char *copy = json_make_room(m, text.len * UTF8_REPAIRED_BYTES_MAX);
	if (!copy)
		return (struct slice){NULL, 0};
	return (struct slice){copy, utf8_repair(copy, text)};
}
