/* Nodes of a tree: what they hold, and sentences about them. */
#include <stdio.h>

#include "base/buf.h"
#include "conf/option.h"
#include "conf/tree.h"

enum { PATH_MAX_BYTES = 200, SENTENCE_MAX_BYTES = 300, KEY_SHOWN_MAX_BYTES = 48 };

/* ---- Sentences ------------------------------------------------------------------------------ */

/* `oidsets.Fast.oids[2]`; of a path that is too long, the end. */
static void print_path(const struct conf_node *node, char *path, size_t path_bytes)
{
	const struct conf_node *chain[CONF_TREE_DEPTH_MAX + 1];
	size_t depth = 0, len = 0;
	for (; node && depth < ARRAY_LEN(chain); node = node->parent)
		chain[depth++] = node;
	path[0] = 0;
	while (depth-- > 0 && len + 1 < path_bytes) {
		const struct conf_node *at = chain[depth];
		int key_len =
			at->key.len < KEY_SHOWN_MAX_BYTES ? (int)at->key.len : KEY_SHOWN_MAX_BYTES;
		if (at->key.data)
			len += (size_t)snprintf(path + len, path_bytes - len, "%s%.*s",
						len ? "." : "", key_len, at->key.data);
		else if (at->parent)
			len += (size_t)snprintf(path + len, path_bytes - len, "[%zu]", at->index);
	}
}

int conf_node_refuse(const struct conf_node *node, struct errbuf *e, const char *fmt, ...)
{
	char path[PATH_MAX_BYTES], sentence[SENTENCE_MAX_BYTES];
	va_list arguments;
	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	print_path(node, path, sizeof(path));
	return errbuf_set(e, ERR_INVALID, "%s:%zu: %s%s%s", node->file, node->line, path,
			  path[0] ? ": " : "", sentence);
}

const char *conf_node_where(const struct conf_node *node, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s:%zu", node->file, node->line);
	return text;
}

const char *conf_nearest_word(struct slice text, const char *const *words)
{
	const char *best = NULL;
	size_t best_distance = 4; /* more than three slips is another word */
	for (; *words; words++) {
		size_t apart = conf_distance(text, slice_of(*words));
		/* A short word is not a slip of every other. */
		if (apart < best_distance && apart < text.len) {
			best_distance = apart;
			best = *words;
		}
	}
	return best;
}

/* `; did you mean Y?`, or `: one of a, b, c`. */
static void print_advice(struct slice text, const char *const *words, struct buf *out)
{
	const char *nearest = conf_nearest_word(text, words);
	if (nearest) {
		buf_printf(out, "; did you mean %s?", nearest);
	} else {
		buf_append_text(out, ", which is one of ");
		for (size_t i = 0; words[i]; i++)
			buf_printf(out, "%s%s", i ? ", " : "", words[i]);
	}
	if (buf_append_char(out, 0))
		out->data[out->len - 1] = 0; /* cut: a list that is longer than a sentence */
}

/* ---- What a node holds ---------------------------------------------------------------------- */

const struct conf_node *conf_node_member(const struct conf_node *map, const char *key)
{
	if (map->type != CONF_NODE_MAP)
		return NULL;
	for (const struct conf_node *n = map->first; n; n = n->next) {
		if (slice_equal(n->key, slice_of(key)))
			return n;
	}
	return NULL;
}

bool conf_node_is_null(const struct conf_node *node)
{
	return node->type == CONF_NODE_SCALAR && !node->quoted &&
	       (node->text.len == 0 || slice_equal(node->text, SLICE("~")) ||
		slice_equal(node->text, SLICE("null")));
}

static int conf_node_check_key(const struct conf_node *member, const char *const *keys,
			       struct errbuf *e)
{
	struct buf advice;
	for (size_t i = 0; keys[i]; i++) {
		if (slice_equal(member->key, slice_of(keys[i])))
			return 0;
	}
	buf_init(&advice, SENTENCE_MAX_BYTES);
	print_advice(member->key, keys, &advice);
	int err = conf_node_refuse(member, e, "is not a known key%s", advice.data);
	buf_release(&advice);
	return err;
}

int conf_node_check_map(const struct conf_node *node, const char *const *keys, struct errbuf *e)
{
	ASSERT(keys[0]);
	if (node->type != CONF_NODE_MAP)
		return conf_node_refuse(node, e, "takes a mapping of %s and others", keys[0]);
	for (const struct conf_node *n = node->first; n; n = n->next) {
		int err = conf_node_check_key(n, keys, e);
		if (err)
			return err;
	}
	return 0;
}

int conf_node_check_list(const struct conf_node *node, struct errbuf *e)
{
	return node->type == CONF_NODE_LIST ? 0 : conf_node_refuse(node, e, "takes a list");
}

int conf_node_text(const struct conf_node *node, size_t min_bytes, size_t max_bytes,
		   struct slice *text, struct errbuf *e)
{
	ASSERT(min_bytes <= max_bytes);
	if (node->type != CONF_NODE_SCALAR)
		return conf_node_refuse(node, e, "takes one value");
	if (min_bytes && conf_node_is_null(node))
		return conf_node_refuse(node, e, "has no value");
	if (node->text.len < min_bytes)
		return conf_node_refuse(node, e, "must not be empty");
	if (node->text.len > max_bytes)
		return conf_node_refuse(node, e, "%zu bytes are longer than the maximum of %zu",
					node->text.len, max_bytes);
	*text = node->text;
	return 0;
}

int conf_node_bool(const struct conf_node *node, bool *out, struct errbuf *e)
{
	if (node->type == CONF_NODE_SCALAR && conf_parse_bool(node->text, out))
		return 0;
	return conf_node_refuse(node, e, "takes true or false");
}

static int conf_node_number(const struct conf_node *node, enum conf_type type, int64_t min,
			    int64_t max, int64_t *out, struct errbuf *e)
{
	struct buf bounds;
	ASSERT(min <= max);
	if (node->type != CONF_NODE_SCALAR || !conf_parse_number(type, node->text, out))
		return conf_node_refuse(node, e, "'" SHOWN "' is not %s", SHOWN_OF(node->text),
					conf_type_syntax(type));
	if (*out >= min && *out <= max)
		return 0;
	buf_init(&bounds, SENTENCE_MAX_BYTES);
	conf_print_number(type, min, &bounds);
	buf_append_text(&bounds, " to ");
	conf_print_number(type, max, &bounds);
	int err = conf_node_refuse(node, e, "'" SHOWN "' is not in the range of %.*s",
				   SHOWN_OF(node->text), (int)bounds.len, bounds.data);
	buf_release(&bounds);
	return err;
}

int conf_node_int(const struct conf_node *node, int64_t min, int64_t max, int64_t *out,
		  struct errbuf *e)
{
	return conf_node_number(node, CONF_INT, min, max, out, e);
}

int conf_node_duration(const struct conf_node *node, int64_t min_ms, int64_t max_ms,
		       int64_t *out_ms, struct errbuf *e)
{
	return conf_node_number(node, CONF_DURATION, min_ms, max_ms, out_ms, e);
}

int conf_node_choice(const struct conf_node *node, const char *what, const char *const *words,
		     size_t *index, struct errbuf *e)
{
	struct buf advice;
	ASSERT(words[0]);
	if (node->type != CONF_NODE_SCALAR)
		return conf_node_refuse(node, e, "takes the name of %s", what);
	for (size_t i = 0; words[i]; i++) {
		if (slice_equal(node->text, slice_of(words[i]))) {
			*index = i;
			return 0;
		}
	}
	buf_init(&advice, SENTENCE_MAX_BYTES);
	print_advice(node->text, words, &advice);
	int err = conf_node_refuse(node, e, "'" SHOWN "' is not %s%s", SHOWN_OF(node->text), what,
				   advice.data);
	buf_release(&advice);
	return err;
}

/* ---- Copies --------------------------------------------------------------------------------- */

static bool copy_text(struct slice *text, struct arena *arena)
{
	if (!text->data)
		return true;
	*text = arena_copy(arena, *text);
	return text->data != NULL;
}

/* As deep as a tree may be. */
static struct conf_node *copy_node(const struct conf_node *node, const struct conf_node *parent,
				   const char *file, struct arena *arena)
{
	struct conf_node *copy = arena_alloc(arena, sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *node;
	copy->file = file;
	copy->parent = parent;
	copy->next = NULL;
	if (!copy_text(&copy->key, arena) || !copy_text(&copy->text, arena))
		return NULL;
	const struct conf_node **at = &copy->first;
	for (const struct conf_node *n = node->first; n; n = n->next) {
		struct conf_node *child = copy_node(n, copy, file, arena);
		if (!child)
			return NULL;
		*at = child;
		at = &child->next;
	}
	return copy;
}

const struct conf_node *conf_node_copy(const struct conf_node *root, struct arena *arena)
{
	/* All nodes of a tree are of one file. */
	const char *file = arena_copy(arena, slice_of(root->file)).data;
	return file ? copy_node(root, NULL, file, arena) : NULL;
}

/* ---- As text -------------------------------------------------------------------------------- */

static void dump_scalar(const struct conf_node *node, struct buf *out)
{
	conf_print_scalar(node->text, node->quoted, out);
	buf_append_char(out, '\n');
}

/* What stands before the value: `key:` or `-`. */
static void dump_lead(const struct conf_node *node, int indent, struct buf *out)
{
	buf_printf(out, "%*s", indent, "");
	if (node->key.data) {
		conf_print_scalar(node->key, false, out);
		buf_append_char(out, ':');
	} else {
		buf_append_char(out, '-');
	}
}

void conf_node_dump(const struct conf_node *node, int indent, struct buf *out)
{
	ASSERT(indent >= 0 && (node->type != CONF_NODE_SCALAR || !node->first));
	if (node->parent || node->key.data)
		dump_lead(node, indent, out);
	if (node->type == CONF_NODE_SCALAR) {
		buf_append_char(out, ' ');
		dump_scalar(node, out);
		return;
	}
	if (node->count == 0) {
		buf_append_text(out, node->type == CONF_NODE_MAP ? " {}\n" : " []\n");
		return;
	}
	buf_append_char(out, '\n');
	/* As deep as a tree may be. */
	for (const struct conf_node *n = node->first; n; n = n->next)
		conf_node_dump(n, indent + 2, out);
}
