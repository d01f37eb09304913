/* Options from the command line and from a file.
 *
 * The file is YAML, read as a stream of events: mappings nest names, scalars and sequences of
 * scalars are values; what stands behind the name of a section becomes a tree. Anchors, aliases and
 * second documents are refused, so that nothing can be larger than its text. */
#include "conf/tree_build.h"

#include "conf/option.h"

#include "base/buf.h"

enum { NAME_MAX_BYTES = 200, LIST_MAX_BYTES = 16 << 10 };

struct conf_file_reader {
	struct conf *conf;
	const char *file;
	struct errbuf *e;
	yaml_parser_t parser;
	/* The name so far: `store.` inside the mapping of store. */
	char name[NAME_MAX_BYTES];
	size_t name_len;
	size_t level_starts[CONF_LEVELS_MAX]; /* name_len before each open mapping's own name */
	size_t levels;
	bool has_key;     /* a key was read, its value comes next */
	size_t key_line;  /* of that key */
	size_t key_start; /* name_len before it */
	struct buf list;  /* of a sequence: its items, joined by commas */
	size_t item_lines[CONF_LIST_MAX];
	size_t items;
	bool in_list;
	int section; /* that `tree` is of, or -1 */
	struct tree_builder tree;
	size_t documents;
};

static size_t conf_read_line_of(const yaml_event_t *event)
{
	return event->start_mark.line + 1;
}

static int conf_read_refuse(struct conf_file_reader *r, size_t line, const char *why)
{
	return errbuf_set(r->e, ERR_INVALID, "%s:%zu: %s", r->file, line, why);
}

static struct slice conf_read_name_of(const struct conf_file_reader *r)
{
	return (struct slice){r->name, r->name_len};
}

static int unknown_option(struct errbuf *e, const char *before, struct slice name)
{
	const char *member = conf_in_section(name);
	if (member)
		return errbuf_set(e, ERR_INVALID,
				  "%s%.*s is a section: it takes no value but a mapping of options "
				  "such as %s",
				  before, (int)name.len, name.data, member);
	const char *nearest = conf_nearest(name);
	return errbuf_set(e, ERR_INVALID, "%s%.*s is not an option%s%s%s", before, (int)name.len,
			  name.data, nearest ? "; did you mean " : "", nearest ? nearest : "",
			  nearest ? "?" : "");
}

static void print_place(const struct conf_file_reader *r, char *before)
{
	snprintf(before, NAME_MAX_BYTES, "%.150s:%zu: ", r->file, r->key_line);
}

static int unknown_key(struct conf_file_reader *r)
{
	char before[NAME_MAX_BYTES];
	print_place(r, before);
	return unknown_option(r->e, before, conf_read_name_of(r));
}

/* A value for the key just read. */
static int conf_read_take_value(struct conf_file_reader *r, struct slice value)
{
	ASSERT(r->has_key && r->key_start <= r->name_len);
	int id = conf_find(conf_read_name_of(r));
	char before[NAME_MAX_BYTES];
	print_place(r, before);
	if (id < 0)
		return unknown_key(r);
	struct conf_origin *origin = &r->conf->origins[id];
	if (origin->line)
		return errbuf_set(r->e, ERR_INVALID, "%s%s is given twice, first in line %zu",
				  before, conf_options[id].name, origin->line);
	int err = conf_set(r->conf, id, value, (struct conf_origin){r->file, r->key_line}, r->e);
	if (err)
		return errbuf_prefix(r->e, err, "%s%s", before, conf_options[id].name);
	r->has_key = false;
	r->name_len = r->key_start;
	return 0;
}

static int conf_read_take_key(struct conf_file_reader *r, const yaml_event_t *event)
{
	size_t len = event->data.scalar.length;
	bool dot = r->name_len > 0;
	if (len == 0 || r->name_len + dot + len > sizeof(r->name))
		return conf_read_refuse(r, conf_read_line_of(event), "a key is empty or too long");
	r->key_start = r->name_len;
	if (dot)
		r->name[r->name_len++] = '.';
	memcpy(r->name + r->name_len, event->data.scalar.value, len);
	r->name_len += len;
	ASSERT(r->name_len <= sizeof(r->name));
	r->key_line = conf_read_line_of(event);
	r->has_key = true;
	return 0;
}

static int take_item(struct conf_file_reader *r, const yaml_event_t *event)
{
	struct slice item = {(const char *)event->data.scalar.value, event->data.scalar.length};
	if (item.len == 0 || memchr(item.data, ',', item.len))
		return conf_read_refuse(r, conf_read_line_of(event),
					"an item of a list is empty or holds a comma");
	if (r->items == CONF_LIST_MAX)
		return errbuf_set(r->e, ERR_INVALID, "%s:%zu: more than %d items", r->file,
				  conf_read_line_of(event), CONF_LIST_MAX);
	if (r->items)
		buf_append_char(&r->list, ',');
	r->item_lines[r->items++] = conf_read_line_of(event);
	if (buf_append(&r->list, item.data, item.len))
		return conf_read_refuse(r, conf_read_line_of(event), "the list is too long");
	return 0;
}

static int conf_read_on_scalar(struct conf_file_reader *r, const yaml_event_t *event)
{
	if (event->data.scalar.anchor)
		return conf_read_refuse(r, conf_read_line_of(event), "anchors are not supported");
	if (r->in_list)
		return take_item(r, event);
	if (r->levels == 0)
		return conf_read_refuse(r, conf_read_line_of(event), "expected `name: value`");
	if (!r->has_key)
		return conf_read_take_key(r, event);
	struct slice value = {(const char *)event->data.scalar.value, event->data.scalar.length};
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (plain &&
	    (value.len == 0 || slice_equal(value, SLICE("~")) ||
	     slice_equal(value, SLICE("null"))) &&
	    !conf_in_section(conf_read_name_of(r)))
		return errbuf_set(r->e, ERR_INVALID, "%s:%zu: %.*s has no value", r->file,
				  r->key_line, (int)r->name_len, r->name);
	return conf_read_take_value(r, value);
}

static int on_mapping_start(struct conf_file_reader *r, const yaml_event_t *event)
{
	if (event->data.mapping_start.anchor)
		return conf_read_refuse(r, conf_read_line_of(event), "anchors are not supported");
	if (r->in_list || (r->levels > 0 && !r->has_key))
		return conf_read_refuse(r, conf_read_line_of(event), "a mapping cannot stand here");
	if (r->levels == CONF_LEVELS_MAX)
		return conf_read_refuse(r, conf_read_line_of(event), "nested too deeply");
	if (r->levels > 0 && conf_find(conf_read_name_of(r)) >= 0)
		return errbuf_set(r->e, ERR_INVALID, "%s:%zu: %.*s takes a value, not a mapping",
				  r->file, r->key_line, (int)r->name_len, r->name);
	r->level_starts[r->levels] = r->levels > 0 ? r->key_start : 0;
	r->levels++;
	r->has_key = false;
	return 0;
}

static int on_mapping_end(struct conf_file_reader *r)
{
	ASSERT(r->levels > 0 && !r->in_list);
	/* Of a name that does not exist only an empty one comes to its end: what is misspelt must
	 * not pass for nothing. */
	if (r->levels > 1 && !conf_in_section(conf_read_name_of(r)))
		return unknown_key(r);
	r->name_len = r->level_starts[--r->levels];
	return 0;
}

static int on_sequence_start(struct conf_file_reader *r, const yaml_event_t *event)
{
	if (event->data.sequence_start.anchor)
		return conf_read_refuse(r, conf_read_line_of(event), "anchors are not supported");
	int id = r->has_key && !r->in_list ? conf_find(conf_read_name_of(r)) : -1;
	if (id >= 0 && conf_options[id].type != CONF_LIST)
		return errbuf_set(r->e, ERR_INVALID, "%s:%zu: %s takes one value, not a list",
				  r->file, r->key_line, conf_options[id].name);
	if (r->in_list || !r->has_key)
		return conf_read_refuse(r, conf_read_line_of(event), "a list cannot stand here");
	r->in_list = true;
	r->items = 0;
	buf_clear(&r->list);
	return 0;
}

static int on_sequence_end(struct conf_file_reader *r)
{
	ASSERT(r->in_list && r->items <= CONF_LIST_MAX);
	r->in_list = false;
	int id = conf_find(conf_read_name_of(r)),
	    err = conf_read_take_value(r, buf_slice(&r->list));
	return err ? err : conf_keep_lines(r->conf, id, r->item_lines, r->e);
}

/* ---- Sections ------------------------------------------------------------------------------- */

/* The key just read, at the top, names a section. */
static int section_begin(struct conf_file_reader *r, int section)
{
	ASSERT(r->section < 0 && r->levels == 1 && r->has_key);
	const struct conf_node *before = r->conf->sections[section];
	if (before)
		return errbuf_set(r->e, ERR_INVALID, "%s:%zu: %s is given twice, first in line %zu",
				  r->file, r->key_line, conf_section_defs[section].name,
				  before->line);
	struct slice key = arena_copy(&r->conf->arena, conf_read_name_of(r));
	if (!key.data)
		return errbuf_set(r->e, ERR_LIMIT, "%s: too large", r->file);
	r->section = section;
	r->tree = (struct tree_builder){.arena = &r->conf->arena,
					.file = r->file,
					.e = r->e,
					.key = key,
					.key_line = r->key_line};
	return 0;
}

/* Of a section whose entries are all commented out nothing is left. */
static int section_end(struct conf_file_reader *r)
{
	ASSERT(r->section >= 0 && tree_builder_done(&r->tree));
	const struct conf_node *root = r->tree.root;
	if (root->type != CONF_NODE_MAP && !conf_node_is_null(root))
		return conf_node_refuse(root, r->e, "takes a mapping: a name, and what it is");
	if (root->type == CONF_NODE_MAP)
		r->conf->sections[r->section] = root;
	r->section = -1;
	r->has_key = false;
	r->name_len = r->key_start;
	return 0;
}

static int on_section_event(struct conf_file_reader *r, const yaml_event_t *event)
{
	int err = tree_builder_feed(&r->tree, event);
	return err || !tree_builder_done(&r->tree) ? err : section_end(r);
}

static int on_event(struct conf_file_reader *r, const yaml_event_t *event)
{
	if (r->section < 0 && r->has_key && r->levels == 1 && !r->in_list) {
		int section = conf_section_find(conf_read_name_of(r));
		int err = section >= 0 ? section_begin(r, section) : 0;
		if (err)
			return err;
	}
	if (r->section >= 0)
		return on_section_event(r, event);
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return conf_read_on_scalar(r, event);
	case YAML_MAPPING_START_EVENT:
		return on_mapping_start(r, event);
	case YAML_MAPPING_END_EVENT:
		return on_mapping_end(r);
	case YAML_SEQUENCE_START_EVENT:
		return on_sequence_start(r, event);
	case YAML_SEQUENCE_END_EVENT:
		return on_sequence_end(r);
	case YAML_ALIAS_EVENT:
		return conf_read_refuse(r, conf_read_line_of(event), "aliases are not supported");
	case YAML_DOCUMENT_START_EVENT:
		return r->documents++ == 0 ? 0
					   : conf_read_refuse(r, conf_read_line_of(event),
							      "a second document begins");
	default:
		return 0;
	}
}

static int read_events(struct conf_file_reader *r)
{
	for (;;) {
		yaml_event_t event;
		if (!yaml_parser_parse(&r->parser, &event))
			return errbuf_set(r->e, ERR_INVALID, "%s:%zu: %s", r->file,
					  r->parser.problem_mark.line + 1,
					  r->parser.problem ? r->parser.problem : "not YAML");
		bool end = event.type == YAML_STREAM_END_EVENT;
		int err = on_event(r, &event);
		yaml_event_delete(&event);
		if (err || end)
			return err;
	}
}

int conf_read_yaml(struct conf *conf, const char *name, struct slice text, struct errbuf *e)
{
	struct slice file = arena_copy(&conf->arena, slice_of(name));
	if (!file.data)
		return errbuf_set(e, ERR_LIMIT, "the configuration is too large");
	struct conf_file_reader r = {.conf = conf, .file = file.data, .e = e, .section = -1};
	if (!yaml_parser_initialize(&r.parser))
		return errbuf_set(e, ERR_LIMIT, "%s: no memory for the YAML parser", name);
	buf_init(&r.list, LIST_MAX_BYTES);
	/* An empty file has no bytes to point to, which libyaml asserts. */
	const char *bytes = text.len ? text.data : "";
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, text.len);
	int err = read_events(&r);
	yaml_parser_delete(&r.parser);
	buf_release(&r.list);
	return err;
}

static int conf_read_file(struct conf *conf, struct files *files, const char *path,
			  struct errbuf *e)
{
	struct buf text;
	buf_init(&text, CONF_FILE_MAX_BYTES);
	int err = files->read(files, path, CONF_FILE_MAX_BYTES, &text);
	if (err == ERR_LIMIT)
		errbuf_set(e, err, "%s: longer than %d bytes", path, CONF_FILE_MAX_BYTES);
	else if (err)
		errbuf_set(e, err, "%s: %s", path, err_text(err));
	else
		err = conf_read_yaml(conf, path, buf_slice(&text), e);
	buf_release(&text);
	return err;
}

/* One `--name value` or `--name=value` at argv[*at]; *at moves behind it. */
static int split_argument(int argc, char *const *argv, int *at, struct slice *name,
			  struct slice *value, struct errbuf *e)
{
	const char *argument = argv[(*at)++];
	if (strncmp(argument, "--", 2) != 0 || argument[2] == 0)
		return errbuf_set(e, ERR_INVALID, "\"%.100s\" is not an option: they begin with --",
				  argument);
	const char *equals = strchr(argument, '=');
	*name = (struct slice){argument + 2,
			       equals ? (size_t)(equals - argument - 2) : strlen(argument + 2)};
	if (equals) {
		*value = slice_of(equals + 1);
		return 0;
	}
	if (*at == argc)
		return errbuf_set(e, ERR_INVALID, "%.100s needs a value", argument);
	*value = slice_of(argv[(*at)++]);
	return 0;
}

static int take_argument(struct conf *conf, struct slice name, struct slice value, struct errbuf *e)
{
	int id = conf_find(name);
	if (id < 0 && conf_section_find(name) >= 0)
		return errbuf_set(e, ERR_INVALID,
				  "--%.*s is a section of the file that --config names, not an "
				  "option",
				  (int)name.len, name.data);
	if (id < 0 && conf_in_section(name))
		return errbuf_set(e, ERR_INVALID,
				  "--%.*s is a section: give its options, as in --%s",
				  (int)name.len, name.data, conf_in_section(name));
	if (id < 0)
		return unknown_option(e, "--", name);
	int err = conf_set(conf, id, value, (struct conf_origin){"command line", 0}, e);
	return err ? errbuf_prefix(e, err, "--%s", conf_options[id].name) : 0;
}

int conf_read(struct conf *conf, struct files *files, int argc, char *const *argv, struct errbuf *e)
{
	ASSERT(argc >= 0);
	/* The file first, wherever it is named, so that arguments win. */
	for (int pass = 0; pass < 2; pass++) {
		for (int at = 0; at < argc;) {
			struct slice name = {NULL, 0}, value = {NULL, 0};
			int err = split_argument(argc, argv, &at, &name, &value, e);
			bool is_file = !err && slice_equal(name, SLICE("config"));
			if (!err && is_file && pass == 0)
				err = conf_read_file(conf, files, value.data, e);
			else if (!err && !is_file && pass == 1)
				err = take_argument(conf, name, value, e);
			if (err)
				return err;
		}
	}
	return 0;
}
