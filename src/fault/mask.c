/* The walk over a tree: which values stand under a name of a secret, and which texts have one in
 * them. Names are judged by mask_name.c, texts by mask_text.c. */
#include "fault/mask.h"

#include "fault/mask_text.h"
#include "wire/number.h"

enum { MASK_PAIR_NAME_MAX_BYTES = 100 };

static const struct slice mask_hidden = {"<hidden>", 8};

struct mask_walk {
	struct mask_words words;
	struct arena *arena;
	size_t count;
};

static void mask_hide(struct mask_walk *walk, struct json *node)
{
	node->type = JSON_T_STRING;
	node->text = mask_hidden;
	walk->count++;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

static size_t mask_copy(char *to, size_t at, struct slice piece)
{
	if (to && piece.len)
		memcpy(to + at, piece.data, piece.len);
	return at + piece.len;
}

/* Writes the text with its secrets hidden at `to`, unless that is NULL; how long it is. */
static size_t mask_spans(struct mask_walk *walk, struct slice text, char *to, size_t *spans)
{
	struct mask_span span;
	size_t from = 0, len = 0;
	for (*spans = 0; mask_text_next(&walk->words, text, from, &span); ++*spans) {
		len = mask_copy(to, len, (struct slice){text.data + from, span.begin - from});
		len = mask_copy(to, len, mask_hidden);
		from = span.end;
	}
	return mask_copy(to, len, (struct slice){text.data + from, text.len - from});
}

/* Most texts have no secret, and the first look is the last one. */
static void mask_text(struct mask_walk *walk, struct slice *text)
{
	size_t spans = 0;
	if (!text->len)
		return;
	size_t len = mask_spans(walk, *text, NULL, &spans);
	if (!spans)
		return;
	char *copy = arena_alloc(walk->arena, len);
	if (copy)
		mask_spans(walk, *text, copy, &spans);
	*text = copy ? (struct slice){copy, len} : mask_hidden;
	walk->count += spans;
}

/* A card's number is one, too. */
static void mask_number(struct mask_walk *walk, struct json *node)
{
	char digits[NUMBER_PRINT_MAX_BYTES];
	struct mask_span span;
	struct slice text = node->text;
	if (!text.len)
		text = (struct slice){digits, number_print(digits, node->number)};
	if (text.len >= sizeof("4222222222222") - 1 && mask_text_next(&walk->words, text, 0, &span))
		mask_hide(walk, node);
}

/* ---- The tree ------------------------------------------------------------------------------- */

static bool mask_is_secret(struct mask_walk *walk, const struct json *name)
{
	return name->type == JSON_T_STRING && name->text.len &&
	       name->text.len <= MASK_PAIR_NAME_MAX_BYTES &&
	       !memchr(name->text.data, ' ', name->text.len) &&
	       mask_name_is_secret(&walk->words, name->text);
}

/* The value of ["HTTP_COOKIE", "..."], which is an item of a list: by itself it may be a list of
 * two names. */
static const struct json *mask_pair_value(struct mask_walk *walk, const struct json *node)
{
	const struct json *name = node->first;
	if (node->type != JSON_T_ARRAY || !name || !name->next || name->next->next)
		return NULL;
	return mask_is_secret(walk, name) ? name->next : NULL;
}

/* {"name": "Cookie", "value": "..."}: the value is a secret. */
static bool mask_names_secret(struct mask_walk *walk, const struct json *object)
{
	for (const struct json *member = object->first; member; member = member->next) {
		if ((slice_equal(member->key, SLICE("name")) ||
		     slice_equal(member->key, SLICE("key"))) &&
		    mask_is_secret(walk, member))
			return true;
	}
	return false;
}

static void mask_node(struct mask_walk *walk, struct json *node, bool secret, unsigned depth);

static void mask_object(struct mask_walk *walk, struct json *node, bool secret, unsigned depth)
{
	bool named = mask_names_secret(walk, node);
	for (struct json *member = node->first; member; member = member->next) {
		bool hidden = secret || mask_name_is_secret(&walk->words, member->key) ||
			      (named && slice_equal(member->key, SLICE("value")));
		mask_text(walk, &member->key);
		mask_node(walk, member, hidden, depth + 1);
	}
}

/* --password, -token: the next item of a command line is its value. */
static bool mask_is_flag(struct mask_walk *walk, const struct json *item)
{
	return item->type == JSON_T_STRING && item->text.len && item->text.data[0] == '-' &&
	       !memchr(item->text.data, '=', item->text.len) && mask_is_secret(walk, item);
}

static void mask_array(struct mask_walk *walk, struct json *node, bool secret, unsigned depth)
{
	bool flagged = false;
	for (struct json *item = node->first; item; item = item->next) {
		const struct json *value = mask_pair_value(walk, item);
		if (!value) {
			bool is_value = flagged && item->type == JSON_T_STRING && item->text.len &&
					item->text.data[0] != '-';
			flagged = mask_is_flag(walk, item);
			mask_node(walk, item, secret || is_value, depth + 1);
			continue;
		}
		mask_node(walk, item->first, secret, depth + 2);
		mask_node(walk, item->first->next, true, depth + 2);
	}
}

static void mask_node(struct mask_walk *walk, struct json *node, bool secret, unsigned depth)
{
	if (depth > JSON_WRITE_DEPTH_MAX) {
		mask_hide(walk, node);
		return;
	}
	switch (node->type) {
	case JSON_T_NULL:
	case JSON_T_BOOL:
		break;
	case JSON_T_NUMBER:
		if (secret)
			mask_hide(walk, node);
		else
			mask_number(walk, node);
		break;
	case JSON_T_STRING:
		if (!secret)
			mask_text(walk, &node->text);
		else if (node->text.len && !slice_equal(node->text, mask_hidden))
			mask_hide(walk, node);
		break;
	case JSON_T_ARRAY:
		mask_array(walk, node, secret, depth);
		break;
	case JSON_T_OBJECT:
		mask_object(walk, node, secret, depth);
		break;
	}
}

size_t fault_mask_tree(const struct fault_masks *masks, struct json *tree, struct arena *arena)
{
	struct mask_walk walk = {.arena = arena};
	mask_words_init(&walk.words, masks);
	mask_node(&walk, tree, false, 0);
	return walk.count;
}
