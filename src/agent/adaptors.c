/* The section `adaptors`: a mapping by name, each a mapping of what to follow and how. */
#include "agent/adaptors.h"

#include <stdio.h>

#include "agent/inlet.h"
#include "base/grow.h"
#include "conf/tree.h"
#include "model/stream.h"
#include "wire/number.h"

enum { ADAPTORS_KINDS_TEXT_BYTES = 200 };

const char *const adaptor_kind_words[ADAPTOR_KINDS + 1] = {
	[ADAPTOR_TAIL] = "tail",       [ADAPTOR_DIRECTORY] = "directory",
	[ADAPTOR_FILE] = "file",       [ADAPTOR_EXEC] = "exec",
	[ADAPTOR_UDP] = "udp",         [ADAPTOR_TCP] = "tcp",
	[ADAPTOR_SYSLOG] = "syslog",   [ADAPTOR_HTTP] = "http",
	[ADAPTOR_SYSTEM] = "system",   [ADAPTOR_HEARTBEAT] = "heartbeat",
	[ADAPTOR_JOURNAL] = "journal",
};

/* ---- The list -------------------------------------------------------------------------------- */

struct adaptors *adaptors_new(void)
{
	struct adaptors *adaptors = mem_zalloc(sizeof(*adaptors));
	arena_init(&adaptors->arena, ADAPTORS_MAX_BYTES);
	atomic_init(&adaptors->users, 1);
	return adaptors;
}

struct adaptors *adaptors_new_of(struct adaptors *base)
{
	struct adaptors *adaptors = adaptors_new();
	adaptors->base = base;
	atomic_fetch_add(&base->users, 1);
	return adaptors;
}

void adaptors_free(struct adaptors *adaptors)
{
	if (!adaptors || atomic_fetch_sub(&adaptors->users, 1) > 1)
		return;
	adaptors_free(adaptors->base);
	arena_release(&adaptors->arena);
	mem_free(adaptors);
}

int adaptors_full(struct errbuf *e)
{
	return errbuf_set(e, ERR_LIMIT, "adaptors take more than %d MiB of memory",
			  ADAPTORS_MAX_BYTES >> 20);
}

size_t adaptors_find_name(const struct adaptors *adaptors, struct slice name)
{
	size_t i = 0;
	while (i < adaptors->count && !slice_equal(adaptors->list[i].name, name))
		i++;
	return i;
}

static bool adaptors_are_same(const struct adaptor *a, const struct adaptor *b)
{
	bool many = a->kind == ADAPTOR_DIRECTORY;
	if (!slice_equal(a->path, b->path) || !slice_equal(a->datatype, b->datatype) ||
	    many != (b->kind == ADAPTOR_DIRECTORY))
		return false;
	if (adaptor_is_inlet(a->kind) || adaptor_is_inlet(b->kind))
		return a->kind == b->kind;
	return !many || (a->pattern == b->pattern && strcmp(a->glob, b->glob) == 0);
}

size_t adaptors_find_same(const struct adaptors *adaptors, const struct adaptor *adaptor)
{
	size_t i = 0;
	while (i < adaptors->count && !adaptors_are_same(&adaptors->list[i], adaptor))
		i++;
	return i;
}

static size_t adaptors_count_run(const struct adaptors *adaptors)
{
	size_t count = 0;
	for (size_t i = 0; i < adaptors->count; i++)
		count += adaptor_runs(adaptors->list[i].kind);
	return count;
}

int adaptors_add(struct adaptors *adaptors, const struct adaptor *adaptor, struct errbuf *e)
{
	if (adaptors->count >= ADAPTORS_MAX)
		return errbuf_set(e, ERR_LIMIT, "there are more than %d adaptors", ADAPTORS_MAX);
	if (adaptor_runs(adaptor->kind) && adaptors_count_run(adaptors) >= ADAPTORS_RUN_MAX)
		return errbuf_set(
			e, ERR_LIMIT,
			"there are more than %d adaptors exec, http, system, heartbeat and journal",
			ADAPTORS_RUN_MAX);
	if (!GROW_IN_ARENA(&adaptors->arena, adaptors->list, adaptors->capacity,
			   adaptors->count + 1))
		return adaptors_full(e);
	adaptors->list[adaptors->count++] = *adaptor;
	return 0;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

static bool adaptors_has(struct slice text, const char *part)
{
	return text.len && memmem(text.data, text.len, part, strlen(part));
}

int adaptors_take_path(struct adaptors *adaptors, struct slice text, struct slice *path,
		       struct errbuf *e)
{
	if (!text.len || text.data[0] != '/')
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is not an absolute path",
				  SHOWN_OF(text));
	if (text.len > STREAM_NAME_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID,
				  "the path has %zu bytes, which is longer than the maximum of %d",
				  text.len, STREAM_NAME_MAX_BYTES);
	if (adaptors_has(text, "//"))
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' has a //", SHOWN_OF(text));
	if (adaptors_has(text, "/../") || adaptors_has(text, "/./") ||
	    slice_ends_with(text, SLICE("/..")) || slice_ends_with(text, SLICE("/.")))
		return errbuf_set(e, ERR_INVALID,
				  "'" SHOWN "' has a part that is . or ..; write the path without",
				  SHOWN_OF(text));
	if (text.len > 1 && text.data[text.len - 1] == '/')
		text.len--;
	*path = arena_copy(&adaptors->arena, text);
	return path->data ? 0 : adaptors_full(e);
}

int adaptors_check_names(const struct adaptor *adaptor, struct errbuf *e)
{
	/* Source and cluster are options of their own. An inlet is reported by its own name, which
	 * has the same rules. */
	bool is_inlet = adaptor_is_inlet(adaptor->kind);
	const struct stream_names names = {SLICE("source"), SLICE("cluster"), adaptor->datatype,
					   is_inlet ? adaptor->name : adaptor->path};
	char name[INLET_STREAM_NAME_MAX_BYTES];
	int err = stream_names_check(&names, e);
	if (!err && is_inlet)
		err = spool_check_names(adaptor->datatype, inlet_stream_name(adaptor, name), e);
	return err;
}

/* Where the brackets that begin at `at` end; 0: they do not. */
static size_t adaptors_brackets_end(struct slice glob, size_t at)
{
	size_t end = at + 1;
	if (end < glob.len && (glob.data[end] == '!' || glob.data[end] == '^'))
		end++;
	end++; /* a ] that stands first is one of the characters */
	while (end < glob.len && glob.data[end] != ']')
		end++;
	bool over = end < glob.len && !memchr(glob.data + at, '/', end - at);
	return over ? end : 0;
}

/* Why fnmatch() would take it for something else than it seems; NULL: it does not. */
static const char *adaptors_glob_fault(struct slice glob)
{
	for (size_t i = 0; i < glob.len; i++) {
		if (glob.data[i] == '\\') {
			if (++i == glob.len)
				return "ends with a \\, behind which a character is missing";
		} else if (glob.data[i] == '[') {
			i = adaptors_brackets_end(glob, i);
			if (!i)
				return "has a [ that no ] ends";
		}
	}
	return NULL;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static const char *const adaptors_keys[] = {
	"tail",   "directory", "file",    "exec",     "udp",     "tcp",       "syslog",    "http",
	"system", "heartbeat", "journal", "datatype", "files",   "regex",     "records",   "begins",
	"wait",   "from",      "first",   "every",    "timeout", "datatypes", "transport", NULL};

/* Which keys go only with adaptors of some kinds. */
static const struct adaptors_key {
	const char *word;
	bool kinds[ADAPTOR_KINDS];
} adaptors_fits[] = {
	{"files", {[ADAPTOR_DIRECTORY] = true}},
	{"regex", {[ADAPTOR_DIRECTORY] = true}},
	{"records", {[ADAPTOR_TAIL] = true, [ADAPTOR_DIRECTORY] = true, [ADAPTOR_EXEC] = true}},
	{"begins", {[ADAPTOR_TAIL] = true, [ADAPTOR_DIRECTORY] = true}},
	{"wait", {[ADAPTOR_TAIL] = true, [ADAPTOR_DIRECTORY] = true}},
	{"from", {[ADAPTOR_TAIL] = true, [ADAPTOR_DIRECTORY] = true, [ADAPTOR_JOURNAL] = true}},
	{"first", {[ADAPTOR_TAIL] = true}},
	{"every",
	 {[ADAPTOR_EXEC] = true,
	  [ADAPTOR_HTTP] = true,
	  [ADAPTOR_SYSTEM] = true,
	  [ADAPTOR_HEARTBEAT] = true}},
	{"timeout", {[ADAPTOR_EXEC] = true, [ADAPTOR_HTTP] = true, [ADAPTOR_HEARTBEAT] = true}},
	{"datatypes", {[ADAPTOR_SYSLOG] = true}},
	{"transport", {[ADAPTOR_SYSLOG] = true}},
};

static int adaptors_check_fits(struct adaptors_reader *r, const struct conf_node *node,
			       enum adaptor_kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(adaptors_fits); i++) {
		const struct conf_node *member = conf_node_member(node, adaptors_fits[i].word);
		if (member && !adaptors_fits[i].kinds[kind])
			return conf_node_refuse(member, r->e, "does not go with %s",
						adaptor_kind_words[kind]);
	}
	return 0;
}

/* `tail, directory, file and exec` */
static const char *adaptors_kinds_text(char text[ADAPTORS_KINDS_TEXT_BYTES])
{
	size_t len = 0;
	for (int i = 0; i < ADAPTOR_KINDS; i++)
		len += (size_t)snprintf(text + len, ADAPTORS_KINDS_TEXT_BYTES - len, "%s%s",
					!i                       ? ""
					: i == ADAPTOR_KINDS - 1 ? " and "
								 : ", ",
					adaptor_kind_words[i]);
	return text;
}

/* Takes the key that says what is followed: it is there once. */
static int adaptors_read_kind(struct adaptors_reader *r, const struct conf_node *node,
			      struct adaptor *adaptor, const struct conf_node **place)
{
	char kinds[ADAPTORS_KINDS_TEXT_BYTES];
	*place = NULL;
	for (int i = 0; i < ADAPTOR_KINDS; i++) {
		const struct conf_node *member = conf_node_member(node, adaptor_kind_words[i]);
		if (member && *place)
			return conf_node_refuse(member, r->e,
						"does not go with %s: an adaptor has one of %s",
						(*place)->key.data, adaptors_kinds_text(kinds));
		if (member) {
			*place = member;
			adaptor->kind = (enum adaptor_kind)i;
		}
	}
	if (!*place)
		return conf_node_refuse(node, r->e, "needs one of %s", adaptors_kinds_text(kinds));
	return adaptors_check_fits(r, node, adaptor->kind);
}

/* A path with wildcards is that of many files, below the directory in front of the first one. */
static int adaptors_split_glob(struct adaptors_reader *r, const struct conf_node *place,
			       struct adaptor *adaptor)
{
	struct slice glob = adaptor->path;
	size_t fixed = strcspn(glob.data, "*?[");
	if (fixed == glob.len)
		return 0;
	const char *fault = memchr(glob.data, '\\', glob.len)
				    ? "has a \\: where there are wildcards, it is of no use"
				    : adaptors_glob_fault(glob);
	if (fault)
		return conf_node_refuse(place, r->e, "'" SHOWN "' %s", SHOWN_OF(glob), fault);
	while (glob.data[fixed - 1] != '/')
		fixed--;
	adaptor->kind = ADAPTOR_DIRECTORY;
	adaptor->pattern = ADAPTOR_GLOB;
	adaptor->glob = glob.data;
	adaptor->path =
		arena_copy(&r->made->arena, (struct slice){glob.data, fixed > 1 ? fixed - 1 : 1});
	return adaptor->path.data ? 0 : adaptors_full(r->e);
}

static int adaptors_read_place(struct adaptors_reader *r, const struct conf_node *place,
			       struct adaptor *adaptor)
{
	struct errbuf why = {""};
	struct slice text;
	int err = conf_node_text(place, 1, STREAM_NAME_MAX_BYTES, &text, r->e);
	if (err)
		return err;
	err = adaptors_take_path(r->made, text, &adaptor->path, &why);
	if (err)
		return conf_node_refuse(place, r->e, "%s", why.text);
	if (adaptor->path.len == 1)
		return conf_node_refuse(place, r->e,
					"'/' is everything: name a file or directory "
					"below it");
	return adaptor->kind == ADAPTOR_TAIL ? adaptors_split_glob(r, place, adaptor) : 0;
}

static int adaptors_read_regex(struct adaptors_reader *r, const struct conf_node *node,
			       struct slice *text, struct regex *regex)
{
	struct errbuf why = {""};
	int err = conf_node_text(node, 1, REGEX_MAX_BYTES, text, r->e);
	if (err)
		return err;
	err = regex_compile(*text, false, &r->made->arena, regex, &why);
	return err ? conf_node_refuse(node, r->e, "%s", why.text) : 0;
}

/* Reads the pattern of an adaptor that follows a directory. */
static int adaptors_read_pattern(struct adaptors_reader *r, const struct conf_node *node,
				 struct adaptor *adaptor)
{
	const struct conf_node *files = conf_node_member(node, "files");
	const struct conf_node *regex = conf_node_member(node, "regex");
	struct slice text = SLICE("*");
	int err = 0;
	if (files && regex)
		return conf_node_refuse(regex, r->e, "does not go with files");
	if (regex) {
		err = adaptors_read_regex(r, regex, &text, &adaptor->regex);
		adaptor->pattern = ADAPTOR_REGEX;
	} else {
		if (files)
			err = conf_node_text(files, 1, STREAM_NAME_MAX_BYTES, &text, r->e);
		adaptor->pattern = ADAPTOR_NAMES;
	}
	if (err)
		return err;
	adaptor->glob = text.data;
	if (!files)
		return 0;
	if (memchr(text.data, '/', text.len))
		return conf_node_refuse(files, r->e,
					"'" SHOWN "' has a /: it is a pattern of names; tail takes "
					"one of paths",
					SHOWN_OF(text));
	const char *fault = adaptors_glob_fault(text);
	return fault ? conf_node_refuse(files, r->e, "'" SHOWN "' %s", SHOWN_OF(text), fault) : 0;
}

int adaptors_read_datatype(struct adaptors_reader *r, const struct conf_node *node,
			   struct adaptor *adaptor)
{
	const struct conf_node *member = conf_node_member(node, "datatype");
	struct errbuf why = {""};
	if (!member)
		return conf_node_refuse(node, r->e, "needs a datatype");
	int err = conf_node_text(member, 1, STREAM_DATATYPE_MAX_BYTES, &adaptor->datatype, r->e);
	if (err)
		return err;
	err = adaptors_check_names(adaptor, &why);
	return err ? conf_node_refuse(member, r->e, "%s", why.text) : 0;
}

static int adaptors_read_records(struct adaptors_reader *r, const struct conf_node *node,
				 struct records_rule *records)
{
	const struct conf_node *member = conf_node_member(node, "records");
	const struct conf_node *begins = conf_node_member(node, "begins");
	size_t index = RECORDS_LINES;
	struct slice text;
	int err =
		member ? conf_node_choice(member, "a kind of records", records_words, &index, r->e)
		       : 0;
	if (err)
		return err;
	records->kind = (enum records_kind)index;
	if (records->kind == RECORDS_BEGINNING && !begins)
		return conf_node_refuse(member, r->e,
					"beginning needs begins, the pattern of a record's first "
					"line");
	if (records->kind != RECORDS_BEGINNING && begins)
		return conf_node_refuse(begins, r->e, "goes only with records: beginning");
	return begins ? adaptors_read_regex(r, begins, &text, &records->begins) : 0;
}

static int adaptors_read_wait(struct adaptors_reader *r, const struct conf_node *node,
			      struct followed_rule *rule)
{
	const struct conf_node *member = conf_node_member(node, "wait");
	rule->rest_ms = ADAPTOR_WAIT_MS;
	if (!member)
		return 0;
	if (rule->records.kind == RECORDS_RAW)
		return conf_node_refuse(member, r->e,
					"does not go with records: raw, which are always whole");
	return conf_node_duration(member, 1, ADAPTOR_WAIT_MAX_MS, &rule->rest_ms, r->e);
}

static int adaptors_read_offset(struct adaptors_reader *r, const struct conf_node *node,
				uint64_t *offset)
{
	int64_t number;
	int err = conf_node_int(node, 0, STREAM_OFFSET_MAX, &number, r->e);
	if (!err)
		*offset = (uint64_t)number;
	return err;
}

static int adaptors_read_from(struct adaptors_reader *r, const struct conf_node *member,
			      struct adaptor *adaptor)
{
	struct followed_rule *rule = &adaptor->rule;
	struct slice text;
	int err = conf_node_text(member, 1, STREAM_NAME_MAX_BYTES, &text, r->e);
	if (err || slice_equal(text, SLICE("begin")))
		return err;
	rule->from_end = slice_equal(text, SLICE("end"));
	if (rule->from_end)
		return 0;
	if (!number_is_digit(text.data[0]))
		return conf_node_refuse(member, r->e, "'" SHOWN "' is not begin, end or an offset",
					SHOWN_OF(text));
	if (adaptor->kind == ADAPTOR_DIRECTORY)
		return conf_node_refuse(member, r->e,
					"an offset needs one file, and these are "
					"many");
	err = adaptors_read_offset(r, member, &rule->from);
	if (!err && rule->from < rule->first)
		return conf_node_refuse(member, r->e,
					"%llu is in front of the first byte of the file, which is "
					"at %llu",
					(unsigned long long)rule->from,
					(unsigned long long)rule->first);
	return err;
}

static int adaptors_read_begin(struct adaptors_reader *r, const struct conf_node *node,
			       struct adaptor *adaptor)
{
	const struct conf_node *from = conf_node_member(node, "from");
	const struct conf_node *first = conf_node_member(node, "first");
	if (first && adaptor->kind == ADAPTOR_DIRECTORY)
		return conf_node_refuse(first, r->e, "needs one file, and these are many");
	int err = first ? adaptors_read_offset(r, first, &adaptor->rule.first) : 0;
	return !err && from ? adaptors_read_from(r, from, adaptor) : err;
}

static int adaptors_read_rule(struct adaptors_reader *r, const struct conf_node *node,
			      struct adaptor *adaptor)
{
	struct followed_rule *rule = &adaptor->rule;
	rule->whole = adaptor->kind == ADAPTOR_FILE;
	rule->passes = adaptor->kind == ADAPTOR_DIRECTORY;
	int err = adaptors_read_records(r, node, &rule->records);
	err = err ? err : adaptors_read_wait(r, node, rule);
	return err ? err : adaptors_read_begin(r, node, adaptor);
}

static int adaptors_read_file(struct adaptors_reader *r, const struct conf_node *node,
			      const struct conf_node *place, struct adaptor *adaptor)
{
	int err = adaptors_read_place(r, place, adaptor);
	if (!err && adaptor->kind == ADAPTOR_DIRECTORY && !adaptor->glob)
		err = adaptors_read_pattern(r, node, adaptor);
	err = err ? err : adaptors_read_datatype(r, node, adaptor);
	return err ? err : adaptors_read_rule(r, node, adaptor);
}

/* ---- The section ----------------------------------------------------------------------------- */

/* Each member of the section was an adaptor. */
static const struct conf_node *adaptors_node_of(const struct adaptors_reader *r, size_t place)
{
	const struct conf_node *node = r->section->first;
	while (place--)
		node = node->next;
	return node;
}

static int adaptors_check_once(struct adaptors_reader *r, const struct conf_node *place,
			       const struct adaptor *adaptor)
{
	char where[300];
	size_t same = adaptors_find_same(r->made, adaptor);
	if (same == r->made->count)
		return 0;
	return conf_node_refuse(place, r->e,
				"the adaptor " SHOWN " follows the same with the same datatype, "
				"in %s",
				SHOWN_OF(r->made->list[same].name),
				conf_node_where(adaptors_node_of(r, same), where, sizeof(where)));
}

static int adaptors_read_one(struct adaptors_reader *r, const struct conf_node *node)
{
	struct adaptor adaptor = {.name = node->key};
	const struct conf_node *place;
	if (!node->key.len || node->key.len > ADAPTOR_NAME_MAX_BYTES)
		return conf_node_refuse(node, r->e, "a name has 1 to %d bytes",
					ADAPTOR_NAME_MAX_BYTES);
	int err = conf_node_check_map(node, adaptors_keys, r->e);
	err = err ? err : adaptors_read_kind(r, node, &adaptor, &place);
	if (!err)
		err = adaptor_is_inlet(adaptor.kind) ? adaptors_read_inlet(r, node, place, &adaptor)
						     : adaptors_read_file(r, node, place, &adaptor);
	err = err ? err : adaptors_check_once(r, place, &adaptor);
	return err ? err : adaptors_add(r->made, &adaptor, r->e);
}

static int adaptors_read_all(struct adaptors_reader *r, const struct conf_node *section)
{
	if (!section)
		return 0;
	/* Texts of adaptors lie in the section's nodes. */
	r->section = conf_node_copy(section, &r->made->arena);
	if (!r->section)
		return adaptors_full(r->e);
	if (r->section->type != CONF_NODE_MAP)
		return conf_node_refuse(r->section, r->e, "takes a mapping of adaptors by name");
	int err = 0;
	for (const struct conf_node *n = r->section->first; n && !err; n = n->next)
		err = adaptors_read_one(r, n);
	return err;
}

int adaptors_read(const struct conf_node *section, struct adaptors **adaptors, struct errbuf *e)
{
	struct adaptors_reader r = {.made = adaptors_new(), .e = e};
	int err = adaptors_read_all(&r, section);
	if (err)
		adaptors_free(r.made);
	*adaptors = err ? NULL : r.made;
	return err;
}
