/* The section `datatypes`: a mapping by name, each a mapping of how lines are read and what becomes
 * of them, or the name of a datatype that is shipped. */
#include "stream/datatypes.h"

#include "base/grow.h"
#include "base/hash.h"
#include "conf/tree.h"
#include "model/series.h"
#include "model/stream.h"

/* Grows where the same rule gives other numbers than before. */
enum { DATATYPES_VERSION = 1 };

/* The rules that are shipped. Requests that are none, and have no method, are read by the last two
 * patterns of access. */
#define ACCESS "<ip> <ident> <user> [<time>] "
static const char datatypes_shipped[] =
	"access:\n"
	"  pattern:\n"
	"  - '" ACCESS
	"\"<method> <path> <protocol>\" <status> <bytes> \"<referer>\" \"<agent>\"'\n"
	"  - '" ACCESS "\"<method> <path> <protocol>\" <status> <bytes>'\n"
	"  - '" ACCESS "\"<request>\" <status> <bytes> \"<referer>\" \"<agent>\"'\n"
	"  - '" ACCESS "\"<request>\" <status> <bytes>'\n"
	"  events: {tags: [method, status], values: [bytes]}\n"
	"  units: {bytes: bytes}\n"
	"df:\n"
	"  columns: {header: [Filesystem], names: [Mounted on]}\n"
	"  samples: {tags: {filesystem: Filesystem, mount: Mounted on}, values: '*'}\n"
	"  units: {1K-blocks: KiB, 1024-blocks: KiB, Size: KiB, Used: KiB, Available: KiB,\n"
	"          Avail: KiB, Capacity: percent, Use%: percent}\n"
	"iostat:\n"
	"  columns: {}\n"
	"  samples: {tags: {device: Device}, values: '*'}\n"
	"sar:\n"
	"  columns: {skip: ['Average:']}\n"
	"  samples:\n"
	"    tags: {cpu: CPU, device: DEV, interface: IFACE, interrupt: INTR, tty: TTY,\n"
	"           filesystem: FILESYSTEM}\n"
	"    values: '*'\n"
	"top:\n"
	"  columns: {header: [PID]}\n"
	"  events: {tags: {user: USER, command: COMMAND}, values: ['%CPU', '%MEM', RES]}\n"
	"  units: {'%CPU': percent, '%MEM': percent, RES: KiB}\n"
	"vmstat:\n"
	"  columns: {header: [r], skip: [procs, --procs--]}\n"
	"  samples: {values: '*'}\n"
	"SystemMetrics:\n"
	"  format: SystemMetrics\n"
	"  samples: {values: '*', except: [timestamp]}\n"
	/* Ten and more of each processor. */
	"  series_max: 10000\n"
	"HostMetrics:\n"
	"  format: json\n"
	"  prefix: SystemMetrics\n"
	"  samples: {tags: [core, interface, mount, disk, process], values: '*'}\n"
	"  series_max: 10000\n";
#undef ACCESS

/* ---- The list -------------------------------------------------------------------------------- */

struct datatypes *datatypes_share(struct datatypes *datatypes)
{
	if (datatypes)
		atomic_fetch_add(&datatypes->shares, 1);
	return datatypes;
}

void datatypes_free(struct datatypes *datatypes)
{
	if (!datatypes || atomic_fetch_sub(&datatypes->shares, 1) > 1)
		return;
	arena_release(&datatypes->arena);
	mem_free(datatypes);
}

static struct datatype *datatypes_get(const struct datatypes *datatypes, struct slice name)
{
	for (size_t i = 0; i < datatypes->count; i++)
		if (slice_equal(datatypes->list[i].name, name))
			return &datatypes->list[i];
	return NULL;
}

const struct datatype *datatypes_find(const struct datatypes *datatypes, struct slice name)
{
	const struct datatype *found = datatypes ? datatypes_get(datatypes, name) : NULL;
	return found && found->kind != DATATYPE_UNREAD ? found : NULL;
}

/* ---- Reading a rule -------------------------------------------------------------------------- */

struct datatypes_reader {
	struct datatypes *made;
	const struct conf_node *shipped;
	const char *words[16]; /* names of what is shipped; ended by NULL */
	struct errbuf *e;
	/* They are given to the rule in hand, one after the other. */
	struct datatype_tag *tags;
	struct datatype_value *values, *texts;
};

/* A rule: what is said of it, and what is shipped where nothing is. */
struct datatypes_nodes {
	const struct conf_node *own, *base; /* base may be NULL */
};

static const char *const datatypes_keys[] = {"as",      "format",     "pattern",   "columns",
					     "samples", "events",     "where",     "units",
					     "prefix",  "series_max", "texts_max", NULL};
static const char *const datatypes_formats[] = {"json", "logfmt", "SystemMetrics", NULL};
static const enum fields_kind datatypes_kinds[] = {FIELDS_JSON, FIELDS_LOGFMT,
						   FIELDS_SYSTEM_METRICS};

static int datatypes_full(struct datatypes_reader *r)
{
	return errbuf_set(r->e, ERR_LIMIT, "datatypes take more than %d MiB of memory",
			  DATATYPES_MAX_BYTES >> 20);
}

/* The sentence of another function, with the place. */
static int datatypes_refuse(struct datatypes_reader *r, const struct conf_node *node, int err,
			    const struct errbuf *why)
{
	return err == ERR_LIMIT ? datatypes_full(r) : conf_node_refuse(node, r->e, "%s", why->text);
}

/* The member of one of the keys, of the rule itself before that of what is shipped. Two of the keys
 * do not go together. */
static int datatypes_member(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
			    const char *const *keys, const struct conf_node **member)
{
	*member = NULL;
	for (size_t i = 0; keys[i]; i++) {
		const struct conf_node *found = conf_node_member(nodes->own, keys[i]);
		if (found && *member)
			return conf_node_refuse(found, r->e, "does not go with %s",
						(*member)->key.data);
		*member = found ? found : *member;
	}
	for (size_t i = 0; keys[i] && nodes->base && !*member; i++)
		*member = conf_node_member(nodes->base, keys[i]);
	return 0;
}

static const struct conf_node *datatypes_only(const struct datatypes_nodes *nodes, const char *key)
{
	const struct conf_node *found = conf_node_member(nodes->own, key);
	return found || !nodes->base ? found : conf_node_member(nodes->base, key);
}

static bool datatypes_is_key(const struct conf_node *node, const char *key)
{
	return slice_equal(node->key, slice_of(key));
}

/* A list of words, or one of them alone. */
static int datatypes_words(struct datatypes_reader *r, const struct conf_node *node,
			   struct fields_words *words)
{
	const struct conf_node *n = node;
	if (!node)
		return 0;
	if (node->type == CONF_NODE_LIST)
		n = node->first;
	else if (node->type == CONF_NODE_MAP)
		return conf_node_refuse(node, r->e, "takes a list of words");
	size_t count = n == node ? 1 : node->count;
	if (count > DATATYPE_WORDS_MAX)
		return conf_node_refuse(node, r->e, "has more than %d words", DATATYPE_WORDS_MAX);
	struct slice *list = arena_alloc(&r->made->arena, count * sizeof(*list));
	if (!list)
		return datatypes_full(r);
	for (size_t i = 0; i < count; i++, n = n->next) {
		int err = conf_node_text(n, 1, FIELDS_NAME_MAX_BYTES, &list[i], r->e);
		if (err)
			return err;
	}
	*words = (struct fields_words){list, count};
	return 0;
}

/* ---- How lines are read ---------------------------------------------------------------------- */

static int datatypes_add_pattern(struct datatypes_reader *r, const struct conf_node *node,
				 struct fields_format *format)
{
	struct errbuf why = {""};
	struct slice text;
	int err = conf_node_text(node, 1, FIELDS_PATTERN_MAX_BYTES, &text, r->e);
	if (err)
		return err;
	err = fields_format_add(format, text, &r->made->arena, &why);
	return err ? datatypes_refuse(r, node, err, &why) : 0;
}

static int datatypes_read_patterns(struct datatypes_reader *r, const struct conf_node *node,
				   struct fields_format *format)
{
	int err = 0;
	format->kind = FIELDS_PATTERN;
	if (node->type != CONF_NODE_LIST)
		return datatypes_add_pattern(r, node, format);
	if (!node->count)
		return conf_node_refuse(node, r->e, "needs a pattern");
	for (const struct conf_node *n = node->first; n && !err; n = n->next)
		err = datatypes_add_pattern(r, n, format);
	return err;
}

static int datatypes_read_columns(struct datatypes_reader *r, const struct conf_node *node,
				  struct fields_format *format)
{
	/* A mapping may be empty: then a line of names is found by itself. */
	static const char *const keys[] = {"header", "names", "skip", NULL};
	struct fields_columns *columns = &format->columns;
	format->kind = FIELDS_COLUMNS;
	int err = conf_node_check_map(node, keys, r->e);
	err = err ? err : datatypes_words(r, conf_node_member(node, "header"), &columns->headers);
	err = err ? err : datatypes_words(r, conf_node_member(node, "names"), &columns->names);
	return err ? err : datatypes_words(r, conf_node_member(node, "skip"), &columns->skips);
}

static int datatypes_read_format(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
				 struct fields_format *format)
{
	static const char *const keys[] = {"pattern", "columns", "format", NULL};
	const struct conf_node *node;
	size_t index = 0;
	int err = datatypes_member(r, nodes, keys, &node);
	if (err)
		return err;
	if (!node)
		return conf_node_refuse(nodes->own, r->e,
					"needs one of pattern, columns, format and as");
	if (datatypes_is_key(node, "pattern"))
		return datatypes_read_patterns(r, node, format);
	if (datatypes_is_key(node, "columns"))
		return datatypes_read_columns(r, node, format);
	err = conf_node_choice(node, "a format", datatypes_formats, &index, r->e);
	format->kind = datatypes_kinds[index];
	return err;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static int datatypes_find_field(struct datatypes_reader *r, const struct conf_node *node,
				const struct datatype *rule, struct slice name,
				struct datatype_field *field)
{
	*field = (struct datatype_field){name, SIZE_MAX};
	if (rule->format.kind != FIELDS_PATTERN)
		return 0;
	field->place = fields_format_find(&rule->format, name);
	return field->place < rule->format.names.count
		       ? 0
		       : conf_node_refuse(node, r->e, "the pattern has no field <" SHOWN ">",
					  SHOWN_OF(name));
}

static int datatypes_check_fields(struct datatypes_reader *r, const struct conf_node *node,
				  size_t max)
{
	if (node->type == CONF_NODE_SCALAR)
		return conf_node_refuse(node, r->e,
					"takes a list of fields, or a mapping of names to fields");
	return node->count > max ? conf_node_refuse(node, r->e, "has more than %zu fields", max)
				 : 0;
}

/* Calls `take` for each member of a list of fields, or of a mapping of names to fields. */
static int
datatypes_each(struct datatypes_reader *r, const struct conf_node *node, struct datatype *rule,
	       int (*take)(struct datatypes_reader *r, const struct conf_node *node,
			   struct datatype *rule, struct slice name, struct datatype_field field))
{
	for (const struct conf_node *n = node->first; n; n = n->next) {
		struct datatype_field field;
		struct slice text;
		int err = conf_node_text(n, 1, FIELDS_NAME_MAX_BYTES, &text, r->e);
		err = err ? err : datatypes_find_field(r, n, rule, text, &field);
		err = err ? err : take(r, n, rule, n->key.data ? n->key : text, field);
		if (err)
			return err;
	}
	return 0;
}

static int datatypes_take_tag(struct datatypes_reader *r, const struct conf_node *node,
			      struct datatype *rule, struct slice name, struct datatype_field field)
{
	static const struct {
		const char *key, *whose;
	} taken[] = {{"host", "the stream"},
		     {"cluster", "the stream"},
		     {"name", "the stream"},
		     {"rest", "the labels of which there are too many"}};
	if (!name.len || name.len > TAG_KEY_MAX_BYTES)
		return conf_node_refuse(node, r->e, "the key of a tag has 1 to %d bytes",
					TAG_KEY_MAX_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (slice_equal(name, slice_of(taken[i].key)))
			return conf_node_refuse(node, r->e,
						"the tag %s is that of %s; {KEY: " SHOWN
						"} gives this one another key",
						taken[i].key, taken[i].whose, SHOWN_OF(field.name));
	for (size_t i = 0; i < rule->tag_count; i++)
		if (slice_equal(r->tags[i].key, name))
			return conf_node_refuse(node, r->e, "two tags have the key " SHOWN,
						SHOWN_OF(name));
	r->tags[rule->tag_count++] = (struct datatype_tag){name, field};
	return 0;
}

static int datatypes_metric(struct datatypes_reader *r, const struct conf_node *node,
			    const struct datatype *rule, struct slice name, const char *end,
			    struct slice *metric)
{
	struct errbuf why = {""};
	const char *text = arena_printf(&r->made->arena, "%.*s%.*s%s", (int)rule->prefix.len,
					rule->prefix.data, (int)name.len, name.data, end);
	if (!text)
		return datatypes_full(r);
	*metric = slice_of(text);
	int err = metric_check(*metric, &why);
	return err ? datatypes_refuse(r, node, err, &why) : 0;
}

static int datatypes_check_metric(struct datatypes_reader *r, const struct conf_node *node,
				  const struct datatype_value *list, size_t count,
				  struct slice metric, struct slice name)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal(list[i].metric, metric))
			return conf_node_refuse(node, r->e, "two values are called " SHOWN,
						SHOWN_OF(name));
	return 0;
}

static int datatypes_take_value(struct datatypes_reader *r, const struct conf_node *node,
				struct datatype *rule, struct slice name,
				struct datatype_field field)
{
	struct datatype_value value = {.field = field};
	for (size_t i = 0; i < rule->unit_count; i++)
		if (slice_equal(rule->units[i].field, field.name))
			value.unit = rule->units[i];
	int err = datatypes_metric(r, node, rule, name, "", &value.metric);
	if (rule->kind == DATATYPE_EVENTS) {
		err = err ? err : datatypes_metric(r, node, rule, name, ".sum", &value.sum);
		err = err ? err : datatypes_metric(r, node, rule, name, ".min", &value.min);
		err = err ? err : datatypes_metric(r, node, rule, name, ".max", &value.max);
	}
	err = err ? err
		  : datatypes_check_metric(r, node, r->values, rule->value_count, value.metric,
					   name);
	if (!err)
		r->values[rule->value_count++] = value;
	return err;
}

static int datatypes_take_text(struct datatypes_reader *r, const struct conf_node *node,
			       struct datatype *rule, struct slice name,
			       struct datatype_field field)
{
	struct datatype_value text = {.field = field};
	for (size_t i = 0; i < rule->unit_count; i++)
		if (slice_equal(rule->units[i].field, field.name))
			text.unit = rule->units[i];
	int err = datatypes_metric(r, node, rule, name, "", &text.metric);
	err = err ? err
		  : datatypes_check_metric(r, node, r->values, rule->value_count, text.metric,
					   name);
	err = err ? err
		  : datatypes_check_metric(r, node, r->texts, rule->text_count, text.metric, name);
	if (!err)
		r->texts[rule->text_count++] = text;
	return err;
}

/* ---- What becomes of them -------------------------------------------------------------------- */

static int datatypes_read_values(struct datatypes_reader *r, const struct conf_node *node,
				 struct datatype *rule)
{
	if (!node)
		return 0;
	if (node->type == CONF_NODE_SCALAR && slice_equal(node->text, SLICE("*"))) {
		rule->all_values = true;
		return rule->kind == DATATYPE_SAMPLES
			       ? 0
			       : conf_node_refuse(node, r->e, "goes only with samples");
	}
	int err = datatypes_check_fields(r, node, DATATYPE_VALUES_MAX);
	if (err)
		return err;
	rule->values = r->values = arena_alloc(&r->made->arena, node->count * sizeof(*r->values));
	return r->values ? datatypes_each(r, node, rule, datatypes_take_value) : datatypes_full(r);
}

static int datatypes_read_tags(struct datatypes_reader *r, const struct conf_node *node,
			       struct datatype *rule)
{
	int err = node ? datatypes_check_fields(r, node, DATATYPE_TAGS_MAX) : 0;
	if (err || !node)
		return err;
	rule->tags = r->tags = arena_alloc(&r->made->arena, node->count * sizeof(*r->tags));
	return r->tags ? datatypes_each(r, node, rule, datatypes_take_tag) : datatypes_full(r);
}

static int datatypes_read_texts(struct datatypes_reader *r, const struct conf_node *node,
				struct datatype *rule)
{
	if (!node)
		return 0;
	if (rule->kind != DATATYPE_SAMPLES)
		return conf_node_refuse(node, r->e, "goes only with samples");
	int err = datatypes_check_fields(r, node, DATATYPE_TEXTS_MAX);
	if (err)
		return err;
	rule->texts = r->texts = arena_alloc(&r->made->arena, node->count * sizeof(*r->texts));
	return r->texts ? datatypes_each(r, node, rule, datatypes_take_text) : datatypes_full(r);
}

static int datatypes_read_excepted(struct datatypes_reader *r, const struct conf_node *node,
				   struct datatype *rule)
{
	if (node && !rule->all_values)
		return conf_node_refuse(node, r->e, "goes only with values: '*'");
	return datatypes_words(r, node, &rule->excepted);
}

static int datatypes_read_becomes(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
				  struct datatype *rule)
{
	static const char *const kinds[] = {"samples", "events", NULL};
	static const char *const keys[] = {"values", "tags", "except", "texts", NULL};
	const struct conf_node *node;
	int err = datatypes_member(r, nodes, kinds, &node);
	if (err)
		return err;
	if (!node)
		return conf_node_refuse(nodes->own, r->e, "needs samples or events");
	rule->kind = datatypes_is_key(node, "events") ? DATATYPE_EVENTS : DATATYPE_SAMPLES;
	err = conf_node_check_map(node, keys, r->e);
	err = err ? err : datatypes_read_tags(r, conf_node_member(node, "tags"), rule);
	err = err ? err : datatypes_read_values(r, conf_node_member(node, "values"), rule);
	err = err ? err : datatypes_read_texts(r, conf_node_member(node, "texts"), rule);
	err = err ? err : datatypes_read_excepted(r, conf_node_member(node, "except"), rule);
	if (!err && rule->kind == DATATYPE_SAMPLES && !rule->value_count && !rule->all_values &&
	    !rule->text_count)
		return conf_node_refuse(node, r->e, "needs values or texts");
	return err || rule->kind == DATATYPE_SAMPLES
		       ? err
		       : datatypes_metric(r, node, rule, SLICE("count"), "", &rule->count);
}

/* ---- Units, prefix, conditions --------------------------------------------------------------- */

static void datatypes_scale(struct datatype_unit *unit)
{
	static const struct {
		struct slice word;
		uint64_t scale;
	} scales[] = {
		{SLICE("bytes"), 1},
		{SLICE("KiB"), UINT64_C(1) << 10},
		{SLICE("MiB"), UINT64_C(1) << 20},
		{SLICE("GiB"), UINT64_C(1) << 30},
		{SLICE("TiB"), UINT64_C(1) << 40},
		{SLICE("kB"), 1000},
		{SLICE("MB"), 1000 * 1000},
		{SLICE("GB"), 1000 * 1000 * 1000},
		{SLICE("TB"), UINT64_C(1000) * 1000 * 1000 * 1000},
	};
	for (size_t i = 0; i < ARRAY_LEN(scales); i++) {
		if (!slice_equal(unit->unit, scales[i].word))
			continue;
		unit->scale = scales[i].scale;
		unit->unit = scales[0].word;
		return;
	}
}

static int datatypes_read_units(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
				struct datatype *rule)
{
	const struct conf_node *node = datatypes_only(nodes, "units");
	if (!node)
		return 0;
	if (node->type != CONF_NODE_MAP)
		return conf_node_refuse(node, r->e, "takes a mapping of fields to units");
	if (node->count > DATATYPE_VALUES_MAX)
		return conf_node_refuse(node, r->e, "has more than %d fields", DATATYPE_VALUES_MAX);
	struct datatype_unit *units = arena_alloc(&r->made->arena, node->count * sizeof(*units));
	if (!units)
		return datatypes_full(r);
	rule->units = units;
	for (const struct conf_node *n = node->first; n; n = n->next) {
		struct datatype_unit *unit = &units[rule->unit_count++];
		*unit = (struct datatype_unit){.field = n->key};
		int err = conf_node_text(n, 1, DATATYPE_UNIT_MAX_BYTES, &unit->unit, r->e);
		if (err)
			return err;
		datatypes_scale(unit);
	}
	return 0;
}

static int datatypes_read_prefix(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
				 struct datatype *rule)
{
	const struct conf_node *node = datatypes_only(nodes, "prefix");
	struct slice text = rule->name;
	int err = node ? conf_node_text(node, 0, METRIC_MAX_BYTES, &text, r->e) : 0;
	if (err || !text.len)
		return err;
	const char *prefix = arena_printf(&r->made->arena, "%.*s.", (int)text.len, text.data);
	if (!prefix)
		return datatypes_full(r);
	rule->prefix = slice_of(prefix);
	return 0;
}

static int datatypes_read_conditions(struct datatypes_reader *r,
				     const struct datatypes_nodes *nodes, struct datatype *rule)
{
	const struct conf_node *node = datatypes_only(nodes, "where"), *n = node;
	struct fields_words words = {0};
	int err = datatypes_words(r, node, &words);
	if (err || !node)
		return err;
	if (words.count > DATATYPE_CONDITIONS_MAX)
		return conf_node_refuse(node, r->e, "has more than %d conditions",
					DATATYPE_CONDITIONS_MAX);
	struct datatype_condition *conditions =
		arena_alloc(&r->made->arena, words.count * sizeof(*conditions));
	if (!conditions)
		return datatypes_full(r);
	n = node->type == CONF_NODE_LIST ? node->first : node;
	for (size_t i = 0; i < words.count; i++, n = n->next) {
		struct errbuf why = {""};
		err = datatype_condition_parse(rule, words.list[i], &r->made->arena, &conditions[i],
					       &why);
		if (err)
			return datatypes_refuse(r, n, err, &why);
	}
	rule->conditions = conditions;
	rule->condition_count = words.count;
	return 0;
}

static int datatypes_read_max(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
			      const char *key, int64_t most, size_t preset, size_t *max)
{
	const struct conf_node *node = datatypes_only(nodes, key);
	int64_t number = (int64_t)preset;
	int err = node ? conf_node_int(node, 1, most, &number, r->e) : 0;
	*max = (size_t)number;
	return err;
}

/* ---- A rule ---------------------------------------------------------------------------------- */

/* The hash is of both nodes as a tree is written again: comments and indentation do not count. */
static void datatypes_hash(const struct datatypes_nodes *nodes, struct datatype *rule)
{
	struct buf text;
	buf_init(&text, DATATYPES_MAX_BYTES);
	conf_node_dump(nodes->own, 0, &text);
	if (nodes->base)
		conf_node_dump(nodes->base, 0, &text);
	rule->hash = hash64(text.data, text.len, DATATYPES_VERSION);
	buf_release(&text);
}

/* The rule that is shipped under the name that `node` has. */
static int datatypes_read_base(struct datatypes_reader *r, const struct conf_node *node,
			       const struct conf_node **base)
{
	size_t index;
	int err = conf_node_choice(node, "a datatype that is shipped", r->words, &index, r->e);
	if (!err)
		*base = conf_node_member(r->shipped, r->words[index]);
	return err;
}

static int datatypes_read_rule(struct datatypes_reader *r, const struct datatypes_nodes *nodes,
			       struct datatype *rule)
{
	int err = datatypes_read_format(r, nodes, &rule->format);
	err = err ? err : datatypes_read_prefix(r, nodes, rule);
	err = err ? err : datatypes_read_units(r, nodes, rule);
	err = err ? err : datatypes_read_becomes(r, nodes, rule);
	err = err ? err : datatypes_read_conditions(r, nodes, rule);
	err = err ? err
		  : datatypes_read_max(r, nodes, "series_max", DATATYPE_SERIES_MAX, DATATYPE_SERIES,
				       &rule->series_max);
	return err ? err
		   : datatypes_read_max(r, nodes, "texts_max", DATATYPE_MINUTE_TEXTS_MAX,
					DATATYPE_MINUTE_TEXTS, &rule->texts_max);
}

static int datatypes_add(struct datatypes_reader *r, const struct datatype *rule)
{
	struct datatypes *made = r->made;
	if (made->count == DATATYPES_MAX)
		return errbuf_set(r->e, ERR_LIMIT, "there are more than %d datatypes",
				  DATATYPES_MAX);
	if (!GROW_IN_ARENA(&made->arena, made->list, made->capacity, made->count + 1))
		return datatypes_full(r);
	made->list[made->count++] = *rule;
	return 0;
}

static int datatypes_check_name(struct datatypes_reader *r, const struct conf_node *node)
{
	const struct stream_names names = {SLICE("source"), SLICE("cluster"), node->key,
					   SLICE("name")};
	struct errbuf why = {""};
	int err = stream_names_check(&names, &why);
	return err ? datatypes_refuse(r, node, err, &why) : 0;
}

/* `access: access`, `access: none`, or a mapping. */
static int datatypes_read_one(struct datatypes_reader *r, const struct conf_node *node)
{
	struct datatype rule = {.name = node->key};
	struct datatypes_nodes nodes = {node, NULL};
	const struct conf_node *as = node;
	int err = datatypes_check_name(r, node);
	if (!err && node->type != CONF_NODE_SCALAR) {
		err = conf_node_check_map(node, datatypes_keys, r->e);
		as = err ? NULL : conf_node_member(node, "as");
	}
	bool none = as == node && slice_equal(node->text, SLICE("none"));
	if (!err && as && !none)
		err = datatypes_read_base(r, as, &nodes.base);
	if (!err && !none)
		err = datatypes_read_rule(r, &nodes, &rule);
	if (err)
		return err;
	datatypes_hash(&nodes, &rule);
	return datatypes_add(r, &rule);
}

/* ---- The section ----------------------------------------------------------------------------- */

static int datatypes_read_shipped(struct datatypes_reader *r)
{
	size_t count = 0;
	int err = conf_tree_parse("the datatypes that are shipped", slice_of(datatypes_shipped),
				  &r->made->arena, &r->shipped, r->e);
	if (err)
		return err;
	ASSERT(r->shipped->count < ARRAY_LEN(r->words));
	for (const struct conf_node *n = r->shipped->first; n; n = n->next)
		r->words[count++] = n->key.data;
	return 0;
}

static int datatypes_read_section(struct datatypes_reader *r, const struct conf_node *section)
{
	int err = 0;
	if (!section)
		return 0;
	/* Texts of rules lie in the section's nodes. */
	section = conf_node_copy(section, &r->made->arena);
	if (!section)
		return datatypes_full(r);
	if (section->type != CONF_NODE_MAP)
		return conf_node_refuse(section, r->e, "takes a mapping of datatypes by name");
	for (const struct conf_node *n = section->first; n && !err; n = n->next)
		err = datatypes_read_one(r, n);
	return err;
}

/* These rules are there without a configuration: of metrics of hosts, which agents of Chukwa send,
 * and ours; and of access logs, which `agent.local_logs` follows. */
static int datatypes_add_preset(struct datatypes_reader *r)
{
	static const char *const names[] = {"SystemMetrics", "HostMetrics", "access"};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(names) && !err; i++)
		if (!datatypes_get(r->made, slice_of(names[i])))
			err = datatypes_read_one(r, conf_node_member(r->shipped, names[i]));
	return err;
}

int datatypes_read(const struct conf_node *section, struct datatypes **datatypes, struct errbuf *e)
{
	struct datatypes_reader r = {.made = mem_zalloc(sizeof(*r.made)), .e = e};
	arena_init(&r.made->arena, DATATYPES_MAX_BYTES);
	r.made->shares = 1;
	int err = datatypes_read_shipped(&r);
	err = err ? err : datatypes_read_section(&r, section);
	err = err ? err : datatypes_add_preset(&r);
	if (err)
		datatypes_free(r.made);
	*datatypes = err ? NULL : r.made;
	return err;
}
