/* From events to a tree. Memory is the arena's; nothing recurses. */
#include "conf/tree_build.h"

#include <stdlib.h>

#include "base/buf.h"

static int conf_tree_refuse(const struct tree_builder *b, size_t line, const char *why)
{
	return errbuf_set(b->e, ERR_INVALID, "%s:%zu: %s", b->file, line, why);
}

static int conf_tree_too_large(const struct tree_builder *b)
{
	return errbuf_set(b->e, ERR_LIMIT, "%s: too large", b->file);
}

static size_t conf_tree_line_of(const yaml_event_t *event)
{
	return event->start_mark.line + 1;
}

static bool in_map(const struct tree_builder *b)
{
	return b->depth > 0 && b->open[b->depth - 1]->type == CONF_NODE_MAP;
}

static bool has_control(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
			return true;
	}
	return false;
}

static int copy_scalar(struct tree_builder *b, const yaml_event_t *event, struct slice *copy)
{
	struct slice text = {(const char *)event->data.scalar.value, event->data.scalar.length};
	if (has_control(text))
		return conf_tree_refuse(b, conf_tree_line_of(event),
					"a text holds a control character");
	*copy = arena_copy(b->arena, text);
	return copy->data ? 0 : conf_tree_too_large(b);
}

static int conf_tree_take_key(struct tree_builder *b, const yaml_event_t *event)
{
	b->key_line = conf_tree_line_of(event);
	return copy_scalar(b, event, &b->key);
}

/* A node behind the last one of what is open. */
static int conf_tree_add_node(struct tree_builder *b, const yaml_event_t *event,
			      enum conf_node_type type, struct conf_node **added)
{
	struct conf_node *node = arena_zalloc(b->arena, sizeof(*node));
	if (!node)
		return conf_tree_too_large(b);
	bool keyed = b->key.data != NULL;
	*node = (struct conf_node){.type = type,
				   .key = b->key,
				   .file = b->file,
				   .line = keyed ? b->key_line : conf_tree_line_of(event)};
	b->key = (struct slice){NULL, 0};
	*added = node;
	if (b->depth == 0) {
		b->root = node;
		return 0;
	}
	struct conf_node *parent = b->open[b->depth - 1], *last = b->last[b->depth - 1];
	ASSERT(keyed == (parent->type == CONF_NODE_MAP) && !last == !parent->count);
	node->parent = parent;
	node->index = parent->count++;
	if (last)
		last->next = node;
	else
		parent->first = node;
	b->last[b->depth - 1] = node;
	return 0;
}

static int conf_tree_on_scalar(struct tree_builder *b, const yaml_event_t *event)
{
	if (event->data.scalar.anchor)
		return conf_tree_refuse(b, conf_tree_line_of(event), "anchors are not supported");
	if (event->data.scalar.tag)
		return conf_tree_refuse(b, conf_tree_line_of(event), "tags are not supported");
	if (in_map(b) && !b->key.data)
		return conf_tree_take_key(b, event);
	struct conf_node *node = NULL;
	int err = conf_tree_add_node(b, event, CONF_NODE_SCALAR, &node);
	if (err)
		return err;
	node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return copy_scalar(b, event, &node->text);
}

static int conf_tree_on_begin(struct tree_builder *b, const yaml_event_t *event,
			      enum conf_node_type type, const void *anchor, const void *tag)
{
	struct conf_node *node = NULL;
	if (anchor)
		return conf_tree_refuse(b, conf_tree_line_of(event), "anchors are not supported");
	if (tag)
		return conf_tree_refuse(b, conf_tree_line_of(event), "tags are not supported");
	if (in_map(b) && !b->key.data)
		return conf_tree_refuse(b, conf_tree_line_of(event), "a key must be a text");
	if (b->depth == CONF_TREE_DEPTH_MAX)
		return conf_tree_refuse(b, conf_tree_line_of(event), "nested too deeply");
	int err = conf_tree_add_node(b, event, type, &node);
	if (err)
		return err;
	b->open[b->depth] = node;
	b->last[b->depth] = NULL;
	b->depth++;
	return 0;
}

static int by_key(const void *left, const void *right)
{
	const struct conf_node *a = *(const struct conf_node *const *)left;
	const struct conf_node *b = *(const struct conf_node *const *)right;
	int order = slice_compare(a->key, b->key);
	return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* The first key, in the order of the file, that stands before already. */
static int check_doubled(struct tree_builder *b, const struct conf_node *map)
{
	const struct conf_node **sorted = mem_alloc_array(map->count + 1, sizeof(*sorted));
	const struct conf_node *first = NULL, *second = NULL;
	size_t count = 0;
	for (const struct conf_node *n = map->first; n; n = n->next)
		sorted[count++] = n;
	ASSERT(count == map->count);
	qsort(sorted, count, sizeof(*sorted), by_key);
	for (size_t i = 1; i < count; i++) {
		bool equal = slice_equal(sorted[i - 1]->key, sorted[i]->key);
		if (equal && (!second || sorted[i]->index < second->index)) {
			first = sorted[i - 1];
			second = sorted[i];
		}
	}
	mem_free(sorted);
	if (!second)
		return 0;
	return conf_node_refuse(second, b->e, "is given twice, first in line %zu", first->line);
}

static int conf_tree_on_end(struct tree_builder *b)
{
	ASSERT(b->depth > 0 && !b->key.data);
	const struct conf_node *node = b->open[--b->depth];
	return node->type == CONF_NODE_MAP ? check_doubled(b, node) : 0;
}

int tree_builder_feed(struct tree_builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return conf_tree_on_scalar(b, event);
	case YAML_MAPPING_START_EVENT:
		return conf_tree_on_begin(b, event, CONF_NODE_MAP, event->data.mapping_start.anchor,
					  event->data.mapping_start.tag);
	case YAML_SEQUENCE_START_EVENT:
		return conf_tree_on_begin(b, event, CONF_NODE_LIST,
					  event->data.sequence_start.anchor,
					  event->data.sequence_start.tag);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return conf_tree_on_end(b);
	case YAML_ALIAS_EVENT:
		return conf_tree_refuse(b, conf_tree_line_of(event), "aliases are not supported");
	case YAML_DOCUMENT_START_EVENT:
		return b->root ? conf_tree_refuse(b, conf_tree_line_of(event),
						  "a second document begins")
			       : 0;
	default:
		return 0;
	}
}

static int feed_all(struct tree_builder *b, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return errbuf_set(b->e, ERR_INVALID, "%s:%zu: %s", b->file,
					  parser->problem_mark.line + 1,
					  parser->problem ? parser->problem : "not YAML");
		bool end = event.type == YAML_STREAM_END_EVENT;
		int err = tree_builder_feed(b, &event);
		yaml_event_delete(&event);
		if (err || end)
			return err;
	}
}

static int empty_map(struct tree_builder *b)
{
	b->root = arena_zalloc(b->arena, sizeof(*b->root));
	if (!b->root)
		return conf_tree_too_large(b);
	*b->root = (struct conf_node){.type = CONF_NODE_MAP, .file = b->file, .line = 1};
	return 0;
}

int conf_tree_parse(const char *name, struct slice text, struct arena *arena,
		    const struct conf_node **root, struct errbuf *e)
{
	struct tree_builder b = {.arena = arena, .e = e};
	yaml_parser_t parser;
	b.file = arena_copy(arena, slice_of(name)).data;
	if (!b.file || !yaml_parser_initialize(&parser))
		return errbuf_set(e, ERR_LIMIT, "%s: no memory to read it", name);
	/* An empty file has no bytes to point to, which libyaml asserts. */
	const char *bytes = text.len ? text.data : "";
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, text.len);
	int err = feed_all(&b, &parser);
	yaml_parser_delete(&parser);
	if (!err && !b.root)
		err = empty_map(&b);
	ASSERT(err || tree_builder_done(&b));
	*root = b.root;
	return err;
}

int conf_tree_read(struct files *files, const char *path, size_t max_bytes, struct arena *arena,
		   const struct conf_node **root, struct errbuf *e)
{
	struct buf text;
	buf_init(&text, max_bytes);
	int err = files->read(files, path, max_bytes, &text);
	if (err == ERR_LIMIT)
		errbuf_set(e, err, "%s: longer than %zu bytes", path, max_bytes);
	else if (err)
		errbuf_set(e, err, "%s: %s", path, err_text(err));
	else
		err = conf_tree_parse(path, buf_slice(&text), arena, root, e);
	buf_release(&text);
	return err;
}
