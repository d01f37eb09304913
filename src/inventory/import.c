/* Lists of devices as people keep them: CSV or YAML. Every sentence has file and line. */
#include <strings.h>

#include "inventory/private.h"
#include "wire/timetext.h"

enum { COLUMNS_MAX = 16, IMPORT_DEVICES_MAX = INVENTORY_DEVICES_MAX };

/* In both formats. */
static const char *const keys[] = {"name",  "address", "credentials", "oidsets", "active",
				   "begin", "end",     "poller",      NULL};
static const char *const server_keys[] = {"name",  "address", "credentials", "oidsets",   "active",
					  "begin", "end",     "poller",      "stored_as", NULL};

struct import {
	const char *file;
	struct arena *arena;
	struct errbuf *e;
	struct device_spec *specs;
	size_t count;
	bool of_server; /* a document of document.c, which says what people do not */
};

static int refuse(const struct import *in, size_t line, const char *what, const char *why)
{
	return errbuf_set(in->e, ERR_INVALID, "%s:%zu: %s%s%s", in->file, line, what,
			  *what ? ": " : "", why);
}

static int too_large(const struct import *in)
{
	return errbuf_set(in->e, ERR_LIMIT, "%s: too large", in->file);
}

static int is_boolean(struct slice text, bool *value)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		*value = slice_equal(text, slice_of(yes[i]));
		if (*value || slice_equal(text, slice_of(no[i])))
			return 0;
	}
	return ERR_INVALID;
}

/* Names with blanks between them. */
static int split_names(const struct import *in, struct slice text, struct device_spec *spec)
{
	struct slice *names = arena_alloc(in->arena, (text.len / 2 + 1) * sizeof(*names));
	if (!names)
		return too_large(in);
	spec->oidsets = names;
	spec->oidset_count = 0;
	while (text.len) {
		const char *blank = memchr(text.data, ' ', text.len);
		size_t len = blank ? (size_t)(blank - text.data) : text.len;
		if (len)
			names[spec->oidset_count++] = (struct slice){text.data, len};
		len += blank != NULL;
		text = (struct slice){text.data + len, text.len - len};
	}
	return 0;
}

/* One member as a text; empty ones are as if they were not given. */
static int import_take(const struct import *in, struct device_spec *spec, size_t line,
		       const char *key, struct slice text)
{
	struct errbuf why;
	int err = 0;
	if (!text.len)
		return 0;
	if (strcmp(key, "name") == 0)
		spec->name = text;
	else if (strcmp(key, "address") == 0)
		spec->address = text;
	else if (strcmp(key, "credentials") == 0)
		spec->credentials = text;
	else if (strcmp(key, "poller") == 0)
		spec->poller = text;
	else if (strcmp(key, "stored_as") == 0)
		spec->stored_as = text;
	else if (strcmp(key, "oidsets") == 0)
		return split_names(in, text, spec);
	else if (strcmp(key, "active") == 0)
		return is_boolean(text, &spec->active)
			       ? refuse(in, line, key, "takes true or false")
			       : 0;
	else if (strcmp(key, "begin") == 0)
		err = time_parse_absolute(text, &spec->begin_ms, &why);
	else {
		ASSERT(strcmp(key, "end") == 0); /* keys and server_keys have no other */
		err = time_parse_absolute(text, &spec->end_ms, &why);
	}
	return err ? refuse(in, line, key, why.text) : 0;
}

static struct device_spec *add_spec(struct import *in, size_t line)
{
	struct device_spec *spec = &in->specs[in->count++];
	*spec = device_spec_preset();
	spec->name = SLICE("");
	spec->file = in->file;
	spec->line = line;
	return spec;
}

static int import_check(const struct import *in, const struct device_spec *spec)
{
	struct slice host;
	uint16_t port;
	if (!spec->name.len)
		return refuse(in, spec->line, "", "a device needs a name");
	return device_spec_check(spec, NULL, &host, &port, in->e);
}

/* ---- YAML -------------------------------------------------------------------------------------
 */

static int take_list(struct import *in, struct device_spec *spec, const struct conf_node *list)
{
	struct slice *names = arena_alloc(in->arena, (list->count + 1) * sizeof(*names));
	if (!names)
		return too_large(in);
	spec->oidsets = names;
	for (const struct conf_node *n = list->first; n; n = n->next) {
		int err = conf_node_text(n, 1, INVENTORY_NAME_MAX_BYTES,
					 &names[spec->oidset_count++], in->e);
		if (err)
			return err;
	}
	return 0;
}

static int take_node(struct import *in, const struct conf_node *node)
{
	int err = conf_node_check_map(node, in->of_server ? server_keys : keys, in->e);
	if (err)
		return err;
	struct device_spec *spec = add_spec(in, node->first ? node->first->line : node->line);
	for (const struct conf_node *n = node->first; n && !err; n = n->next) {
		struct slice text;
		if (n->type == CONF_NODE_LIST && slice_equal(n->key, SLICE("oidsets"))) {
			err = take_list(in, spec, n);
			continue;
		}
		err = conf_node_text(n, 0, DEVICE_MAX_BYTES, &text, in->e);
		err = err ? err : import_take(in, spec, n->line, n->key.data, text);
	}
	return err ? err : import_check(in, spec);
}

static int take_nodes(struct import *in, const struct conf_node *list)
{
	int err = conf_node_check_list(list, in->e);
	if (err)
		return err;
	in->specs = arena_alloc(in->arena, (list->count + 1) * sizeof(*in->specs));
	if (!in->specs || list->count > IMPORT_DEVICES_MAX)
		return too_large(in);
	for (const struct conf_node *n = list->first; n && !err; n = n->next)
		err = take_node(in, n);
	return err;
}

static int parse_yaml(struct import *in, struct slice text)
{
	static const char *const top[] = {"devices", NULL};
	const struct conf_node *root;
	int err = conf_tree_parse(in->file, text, in->arena, &root, in->e);
	err = err ? err : conf_node_check_map(root, top, in->e);
	const struct conf_node *list = err ? NULL : conf_node_member(root, "devices");
	if (!err && !list)
		return errbuf_set(in->e, ERR_INVALID, "%s: has no list `devices`", in->file);
	return err ? err : take_nodes(in, list);
}

/* ---- CSV (RFC 4180), a line a record ----------------------------------------------------------
 */

/* The next field of a line; *quoted holds the text without its quotes, in the arena. */
static int next_field(const struct import *in, struct slice *line, size_t number,
		      struct slice *field, bool *last)
{
	size_t at = 0;
	if (!line->len || line->data[0] != '"') {
		while (at < line->len && line->data[at] != ',')
			at++;
		*field = (struct slice){line->data, at};
	} else {
		char *text = arena_alloc(in->arena, line->len);
		size_t len = 0;
		if (!text)
			return too_large(in);
		for (at = 1; at < line->len; at++) {
			if (line->data[at] == '"' &&
			    (at + 1 == line->len || line->data[at + 1] != '"'))
				break;
			text[len++] = line->data[at];
			at += line->data[at] == '"';
		}
		if (at++ >= line->len || (at < line->len && line->data[at] != ','))
			return refuse(in, number, "",
				      "a quote is not closed, or text stands "
				      "behind one");
		*field = (struct slice){text, len};
	}
	*last = at >= line->len;
	at += !*last;
	*line = (struct slice){line->data + at, line->len - at};
	return 0;
}

static struct slice import_trim(struct slice text)
{
	while (text.len && text.data[0] == ' ')
		text = (struct slice){text.data + 1, text.len - 1};
	while (text.len && text.data[text.len - 1] == ' ')
		text.len--;
	return text;
}

struct import_head {
	const char *columns[COLUMNS_MAX];
	size_t count;
};

static int read_head(const struct import *in, struct slice line, struct import_head *head)
{
	struct slice field;
	char why[200];
	for (bool last = false; !last; head->count++) {
		size_t k = 0;
		int err = next_field(in, &line, 1, &field, &last);
		if (err)
			return err;
		field = import_trim(field);
		while (keys[k] && !slice_equal(field, slice_of(keys[k])))
			k++;
		snprintf(why, sizeof(why),
			 "'" SHOWN "' is not a column: they are name, address, "
			 "credentials, oidsets, active, begin, end, poller",
			 SHOWN_OF(field));
		if (!keys[k] || head->count == COLUMNS_MAX)
			return refuse(in, 1, "", why);
		for (size_t i = 0; i < head->count; i++) {
			if (head->columns[i] == keys[k])
				return refuse(in, 1, keys[k], "stands twice");
		}
		head->columns[head->count] = keys[k];
	}
	return 0;
}

static int take_record(struct import *in, const struct import_head *head, struct slice line,
		       size_t number)
{
	struct device_spec *spec = add_spec(in, number);
	bool last = false;
	size_t column = 0;
	for (; !last; column++) {
		struct slice field;
		int err = next_field(in, &line, number, &field, &last);
		if (!err && column == head->count)
			return refuse(in, number, "", "has more fields than the first line");
		err = err ? err
			  : import_take(in, spec, number, head->columns[column],
					import_trim(field));
		if (err)
			return err;
	}
	if (column < head->count)
		return refuse(in, number, "", "has fewer fields than the first line");
	return import_check(in, spec);
}

static size_t count_lines(struct slice text)
{
	size_t count = 1;
	for (size_t i = 0; i < text.len; i++)
		count += text.data[i] == '\n';
	return count;
}

static int parse_csv(struct import *in, struct slice text)
{
	struct import_head head = {.count = 0};
	struct slice line = SLICE("");
	size_t lines = count_lines(text);
	in->specs = arena_alloc(in->arena, lines * sizeof(*in->specs));
	if (!in->specs || lines > IMPORT_DEVICES_MAX + 1)
		return too_large(in);
	(void)slice_take_text_line(&text, &line);
	int err = read_head(in, line, &head);
	for (size_t number = 2; !err && slice_take_text_line(&text, &line); number++) {
		if (import_trim(line).len)
			err = take_record(in, &head, line, number);
	}
	return err;
}

int device_list_read(const struct conf_node *list, struct arena *arena, struct device_spec **specs,
		     size_t *count, struct errbuf *e)
{
	struct import in = {.file = list->file, .arena = arena, .e = e, .of_server = true};
	int err = take_nodes(&in, list);
	*specs = in.specs;
	*count = in.count;
	return err;
}

int device_list_parse(const char *file, struct slice text, struct arena *arena,
		      struct device_spec **specs, size_t *count, struct errbuf *e)
{
	struct import in = {.file = file, .arena = arena, .e = e};
	size_t len = strlen(file);
	bool csv = len >= 4 && strcasecmp(file + len - 4, ".csv") == 0;
	if (!text.data)
		text = SLICE("");
	/* What spreadsheets put before UTF-8. */
	if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
		text = (struct slice){text.data + 3, text.len - 3};
	int err = csv ? parse_csv(&in, text) : parse_yaml(&in, text);
	*specs = in.specs;
	*count = in.count;
	return err;
}
