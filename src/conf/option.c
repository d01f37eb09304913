/* The table of options, and how the text of a value becomes a field of struct conf and back. */
#include "conf/option.h"

#include "base/buf.h"
#include "conf/tree.h"
#include "model/series.h"

#define KIB    INT64_C(1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

enum { FIXED = false, RELOADS = true };
enum { CONF_ARENA_MAX_BYTES = 16 << 20, SUGGEST_MAX_BYTES = 64 };

const struct conf_option conf_options[CONF_OPTIONS] = {
#define OPTION(field, name, type, preset, min, max, reloads, choices, help)                        \
	{name, CONF_##type, preset, min, max, reloads, choices, help, offsetof(struct conf, field)},
#include "conf/options.def"
#undef OPTION
};

/* What they mean is for those to know who read them (inventory/, agent/, stream/). */
const struct conf_section_def conf_section_defs[CONF_SECTIONS] = {
	[CONF_SECTION_OIDS] =
		{"oids",
		 "What can be polled besides the OIDs that are shipped, by name: oid and type; a "
		 "name that is shipped takes its place.",
		 "{hrProcessorLoad: {oid: 1.3.6.1.2.1.25.3.3.1.2, type: Integer32}}"},
	[CONF_SECTION_OIDSETS] =
		{"oidsets",
		 "Sets of OIDs that are polled together, by name, besides those that are shipped "
		 "(granary oidset list); a name that is shipped takes its place.",
		 "{Load: {frequency: 60s, correlator: Index, oids: [hrProcessorLoad]}}"},
	[CONF_SECTION_PERSIST_QUEUE] =
		{"persist_queue",
		 "Which queue takes which OIDSets, by the name of the queue: its persister, "
		 "workers and oidsets; '*' is every OIDSet of that kind that no other queue names. "
		 "Without it there is one queue for each kind.",
		 "{fast: {persister: counters, workers: 4, oidsets: [\"*\"]}, ...}"},
	[CONF_SECTION_ADAPTORS] =
		{"adaptors",
		 "What granary agent follows, by name: the path of a file (tail), a directory, or "
		 "a file that is sent once (file), and its datatype.",
		 "{messages: {tail: /var/log/messages, datatype: syslog}, ...}", .reloads = true},
	[CONF_SECTION_DATATYPES] =
		{"datatypes",
		 "How lines of streams are read, by their datatype: as a datatype that is shipped "
		 "(access, df, iostat, sar, top, vmstat, SystemMetrics), or by pattern, columns or "
		 "format; and whether a line is a sample or an event.",
		 "{access: access, ...}", .reloads = true},
};

int conf_section_find(struct slice name)
{
	for (int id = 0; id < CONF_SECTIONS; id++) {
		if (slice_equal(name, slice_of(conf_section_defs[id].name)))
			return id;
	}
	return -1;
}

struct conf_unit {
	const char *suffix;
	int64_t factor;
};

/* Largest first, as values are printed with the largest unit that fits exactly. */
static const struct conf_unit size_units[] = {
	{"T", 1024 * GIB}, {"G", GIB}, {"M", MIB}, {"K", KIB}, {"", 1},
};
static const struct conf_unit duration_units[] = {
	{"d", DAY}, {"h", HOUR}, {"m", MINUTE}, {"s", SECOND}, {"ms", 1}, {"w", 7 * DAY},
};
static const struct conf_unit plain_units[] = {{"", 1}};

static const struct type {
	const char *name;
	const struct conf_unit *units; /* NULL: not a number */
	size_t unit_count;
	const char *syntax;
} types[] = {
	[CONF_BOOL] = {"bool", NULL, 0, "true or false"},
	[CONF_INT] = {"number", plain_units, ARRAY_LEN(plain_units), "a number"},
	[CONF_SIZE] = {"size", size_units, ARRAY_LEN(size_units),
		       "a size in bytes such as 4096, 64K, 256M or 1G"},
	[CONF_DURATION] = {"duration", duration_units, ARRAY_LEN(duration_units),
			   "a duration such as 500ms, 10s, 5m, 2h or 7d"},
	[CONF_TEXT] = {"text", NULL, 0, "a text"},
	[CONF_TAG] = {"tag", NULL, 0, "the name of a tag"},
	[CONF_CHOICE] = {"choice", NULL, 0, "one of a few words"},
	[CONF_ADDRESS] = {"address", NULL, 0, "ADDRESS:PORT such as 127.0.0.1:8470 or [::1]:8470"},
	[CONF_LIST] = {"list", NULL, 0, "texts, separated by commas"},
};
_Static_assert(ARRAY_LEN(types) == CONF_LIST + 1, "each type has its row");

static const struct conf_option *conf_option_of(enum conf_id id)
{
	ASSERT((unsigned)id < CONF_OPTIONS);
	return &conf_options[id];
}

const char *conf_type_name(enum conf_type type)
{
	ASSERT((unsigned)type < ARRAY_LEN(types));
	return types[type].name;
}

const char *conf_type_syntax(enum conf_type type)
{
	ASSERT((unsigned)type < ARRAY_LEN(types));
	return types[type].syntax;
}

int conf_find(struct slice name)
{
	for (int id = 0; id < CONF_OPTIONS; id++) {
		if (slice_equal(name, slice_of(conf_options[id].name)))
			return id;
	}
	return -1;
}

const char *conf_in_section(struct slice name)
{
	for (int id = 0; id < CONF_OPTIONS; id++) {
		struct slice known = slice_of(conf_options[id].name);
		if (name.len && known.len > name.len && known.data[name.len] == '.' &&
		    memcmp(known.data, name.data, name.len) == 0)
			return conf_options[id].name;
	}
	return NULL;
}

/* Levenshtein 1966, one row at a time. */
size_t conf_distance(struct slice a, struct slice b)
{
	size_t row[SUGGEST_MAX_BYTES + 1];
	if (a.len > SUGGEST_MAX_BYTES || b.len > SUGGEST_MAX_BYTES)
		return SIZE_MAX;
	for (size_t j = 0; j <= b.len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			size_t change = diagonal + (a.data[i - 1] != b.data[j - 1]);
			size_t shift = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
			diagonal = row[j];
			row[j] = change < shift ? change : shift;
		}
	}
	return row[b.len];
}

/* Bytes of the sections that two names share, with the dot behind them. */
static size_t shared_sections(struct slice a, struct slice b)
{
	size_t shared = 0;
	for (size_t i = 0; i < a.len && i < b.len && a.data[i] == b.data[i]; i++) {
		if (a.data[i] == '.')
			shared = i + 1;
	}
	return shared;
}

/* How many slips make the one of the other. SIZE_MAX where it is another word: of more than three,
 * or of half of its letters; the section that both are in makes no names alike. */
static size_t slips(struct slice name, const char *known)
{
	size_t shared = shared_sections(name, slice_of(known));
	struct slice given = {name.data + shared, name.len - shared};
	size_t apart = conf_distance(given, slice_of(known + shared));
	return apart <= 3 && apart * 2 < given.len ? apart : SIZE_MAX;
}

static void keep_nearer(struct slice name, const char *known, const char **best, size_t *least)
{
	size_t apart = slips(name, known);
	if (apart < *least) {
		*least = apart;
		*best = known;
	}
}

const char *conf_nearest(struct slice name)
{
	const char *best = NULL;
	size_t least = SIZE_MAX;
	for (int id = 0; id < CONF_OPTIONS; id++)
		keep_nearer(name, conf_options[id].name, &best, &least);
	for (int id = 0; id < CONF_SECTIONS; id++)
		keep_nearer(name, conf_section_defs[id].name, &best, &least);
	return best;
}

/* ---- Text to value ------------------------------------------------------------------------- */

static void *conf_field_of(struct conf *conf, const struct conf_option *option)
{
	return (char *)conf + option->offset;
}

static const void *field_of_const(const struct conf *conf, const struct conf_option *option)
{
	return (const char *)conf + option->offset;
}

/* Decimal digits, then a unit. False for what is not a number of this type, or too large for 64
 * bits. */
static bool conf_parse_with_units(const struct type *type, struct slice text, int64_t *number)
{
	size_t at = 0;
	int64_t digits = 0;
	for (; at < text.len && text.data[at] >= '0' && text.data[at] <= '9'; at++) {
		if (__builtin_mul_overflow(digits, 10, &digits) ||
		    __builtin_add_overflow(digits, text.data[at] - '0', &digits))
			return false;
	}
	if (at == 0)
		return false;
	struct slice suffix = {text.data + at, text.len - at};
	if (digits == 0 && suffix.len == 0) {
		*number = 0; /* nothing is nothing in every unit */
		return true;
	}
	for (size_t i = 0; i < type->unit_count; i++) {
		if (slice_equal(suffix, slice_of(type->units[i].suffix)))
			return !__builtin_mul_overflow(digits, type->units[i].factor, number);
	}
	return false;
}

bool conf_parse_number(enum conf_type type, struct slice text, int64_t *number)
{
	ASSERT((unsigned)type < ARRAY_LEN(types) && types[type].units);
	return conf_parse_with_units(&types[type], text, number);
}

static int range_error(const struct conf_option *option, struct slice value, const char *which,
		       int64_t bound, struct errbuf *e)
{
	struct buf text;
	buf_init(&text, 64);
	conf_print_number(option->type, bound, &text);
	errbuf_set(e, ERR_INVALID, "%.*s is %s %.*s", (int)value.len, value.data, which,
		   (int)text.len, text.data);
	buf_release(&text);
	return ERR_INVALID;
}

static int set_number(const struct conf_option *option, int64_t *field, struct slice value,
		      struct errbuf *e)
{
	const struct type *type = &types[option->type];
	int64_t number;
	if (!conf_parse_with_units(type, value, &number))
		return errbuf_set(e, ERR_INVALID, "\"%.*s\" is not %s", (int)value.len, value.data,
				  type->syntax);
	if (number < option->min)
		return range_error(option, value, "below the minimum of", option->min, e);
	if (number > option->max)
		return range_error(option, value, "above the maximum of", option->max, e);
	*field = number;
	return 0;
}

bool conf_parse_bool(struct slice text, bool *value)
{
	static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no",
									       "off"};
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		bool is = slice_equal(text, slice_of(yes[i]));
		if (is || slice_equal(text, slice_of(no[i]))) {
			*value = is;
			return true;
		}
	}
	return false;
}

static int set_bool(bool *field, struct slice value, struct errbuf *e)
{
	if (conf_parse_bool(value, field))
		return 0;
	return errbuf_set(e, ERR_INVALID, "\"%.*s\" is not true or false", (int)value.len,
			  value.data);
}

static int check_text(const struct conf_option *option, struct slice value, struct errbuf *e)
{
	if ((int64_t)value.len < option->min)
		return errbuf_set(e, ERR_INVALID, "must not be empty");
	if ((int64_t)value.len > option->max)
		return errbuf_set(e, ERR_INVALID, "%zu bytes are longer than the maximum of %lld",
				  value.len, (long long)option->max);
	for (size_t i = 0; i < value.len; i++) {
		if ((unsigned char)value.data[i] < 0x20 || value.data[i] == 0x7f)
			return errbuf_set(e, ERR_INVALID, "holds a control character");
	}
	return 0;
}

/* What the rules for names allow, less what would need a backslash in front of it in one of the
 * doors: that is more likely a slip, such as two names in one text. */
static int conf_check_tag(const struct conf_option *option, struct slice value, struct errbuf *e)
{
	struct tag tag = {value, SLICE("v")};
	int err = check_text(option, value, e);
	if (err || !value.len)
		return err;
	for (size_t i = 0; i < value.len; i++) {
		if (memchr(",= \"\\", value.data[i], 5))
			return errbuf_set(e, ERR_INVALID,
					  "'%.*s' is not the name of one tag: it holds '%c'",
					  (int)value.len, value.data, value.data[i]);
	}
	return tags_sort_and_check(&tag, 1, e);
}

static int keep_text(struct conf *conf, struct slice value, const char **field, struct errbuf *e)
{
	struct slice copy = arena_copy(&conf->arena, value);
	if (!copy.data)
		return errbuf_set(e, ERR_LIMIT, "the configuration is too large");
	*field = copy.data;
	return 0;
}

/* The next blank- or comma-separated piece of `rest`. */
static struct slice take_until(struct slice *rest, char separator)
{
	const char *at = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
	struct slice piece = {rest->data, at ? (size_t)(at - rest->data) : rest->len};
	size_t used = piece.len + (at != NULL);
	rest->data += used;
	rest->len -= used;
	return piece;
}

static int set_choice(struct conf *conf, const struct conf_option *option, const char **field,
		      struct slice value, struct errbuf *e)
{
	struct slice rest = slice_of(option->choices);
	while (rest.len) {
		if (slice_equal(take_until(&rest, ' '), value))
			return keep_text(conf, value, field, e);
	}
	return errbuf_set(e, ERR_INVALID, "\"%.*s\" is not one of: %s", (int)value.len, value.data,
			  option->choices);
}

/* host:port, the port in 0..65535. A v6 address needs its brackets, or its last group would be
 * taken for a port. */
static bool address_valid(struct slice value)
{
	const char *colon = value.len ? memrchr(value.data, ':', value.len) : NULL;
	if (!colon || colon == value.data || value.len > 255)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] <= ' ' || value.data[i] > '~')
			return false;
	}
	struct slice host = {value.data, (size_t)(colon - value.data)};
	struct slice port = {colon + 1, value.len - host.len - 1};
	int64_t number;
	if (port.len > 5 || !conf_parse_with_units(&types[CONF_INT], port, &number) ||
	    number > 65535)
		return false;
	bool bracketed = host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']';
	bool odd = memchr(host.data, ':', host.len) || memchr(host.data, '[', host.len);
	return bracketed || !odd;
}

/* One that is off by default is turned off again by an empty text. */
static int set_address(struct conf *conf, const struct conf_option *option, const char **field,
		       struct slice value, struct errbuf *e)
{
	bool off = !value.len && !*option->preset;
	if (!off && !address_valid(value))
		return errbuf_set(e, ERR_INVALID, "\"%.*s\" is not %s", (int)value.len, value.data,
				  types[CONF_ADDRESS].syntax);
	return keep_text(conf, value, field, e);
}

static struct slice conf_trim(struct slice text)
{
	while (text.len && text.data[0] == ' ') {
		text.data++;
		text.len--;
	}
	while (text.len && text.data[text.len - 1] == ' ')
		text.len--;
	return text;
}

static int set_list(struct conf *conf, const struct conf_option *option, struct conf_list *field,
		    struct slice value, struct errbuf *e)
{
	const char *items[CONF_LIST_MAX];
	size_t count = 0;
	struct slice rest = conf_trim(value);
	while (rest.len) {
		struct slice item = conf_trim(take_until(&rest, ','));
		if (item.len == 0)
			return errbuf_set(e, ERR_INVALID, "holds an empty item");
		if (count == CONF_LIST_MAX)
			return errbuf_set(e, ERR_INVALID, "more than %d items", CONF_LIST_MAX);
		int err = check_text(option, item, e);
		err = err ? err : keep_text(conf, item, &items[count++], e);
		if (err)
			return err;
	}
	const char **copy = arena_alloc(&conf->arena, (count + 1) * sizeof(*copy));
	if (!copy)
		return errbuf_set(e, ERR_LIMIT, "the configuration is too large");
	memcpy(copy, items, count * sizeof(*copy));
	*field = (struct conf_list){copy, count, NULL};
	return 0;
}

int conf_keep_lines(struct conf *conf, enum conf_id id, const size_t *lines, struct errbuf *e)
{
	ASSERT(conf_option_of(id)->type == CONF_LIST);
	struct conf_list *list = conf_field_of(conf, &conf_options[id]);
	ASSERT(list->count <= CONF_LIST_MAX);
	size_t *copy = arena_alloc(&conf->arena, (list->count + 1) * sizeof(*copy));
	if (!copy)
		return errbuf_set(e, ERR_LIMIT, "the configuration is too large");
	memcpy(copy, lines, list->count * sizeof(*copy));
	list->lines = copy;
	return 0;
}

int conf_set(struct conf *conf, enum conf_id id, struct slice value, struct conf_origin origin,
	     struct errbuf *e)
{
	const struct conf_option *option = conf_option_of(id);
	void *field = conf_field_of(conf, option);
	int err = 0;
	ASSERT(origin.file || !origin.line);
	switch (option->type) {
	case CONF_BOOL:
		err = set_bool(field, value, e);
		break;
	case CONF_INT:
	case CONF_SIZE:
	case CONF_DURATION:
		err = set_number(option, field, value, e);
		break;
	case CONF_TEXT:
		err = check_text(option, value, e);
		err = err ? err : keep_text(conf, value, field, e);
		break;
	case CONF_TAG:
		err = conf_check_tag(option, value, e);
		err = err ? err : keep_text(conf, value, field, e);
		break;
	case CONF_CHOICE:
		err = set_choice(conf, option, field, value, e);
		break;
	case CONF_ADDRESS:
		err = set_address(conf, option, field, value, e);
		break;
	case CONF_LIST:
		err = set_list(conf, option, field, value, e);
		break;
	}
	if (err == 0)
		conf->origins[id] = origin;
	return err;
}

struct conf *conf_new(void)
{
	struct conf *conf = mem_zalloc(sizeof(*conf));
	arena_init(&conf->arena, CONF_ARENA_MAX_BYTES);
	for (int id = 0; id < CONF_OPTIONS; id++) {
		struct slice preset = slice_of(conf_options[id].preset);
		ASSERT(conf_options[id].min <= conf_options[id].max);
		ASSERT(conf_set(conf, id, preset, (struct conf_origin){NULL, 0}, NULL) == 0);
	}
	return conf;
}

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	arena_release(&conf->arena);
	mem_free(conf);
}

/* ---- Value to text ------------------------------------------------------------------------- */

void conf_print_number(enum conf_type type, int64_t number, struct buf *out)
{
	ASSERT((unsigned)type < ARRAY_LEN(types) && types[type].units);
	const struct type *of = &types[type];
	for (size_t i = 0; i < of->unit_count; i++) {
		const struct conf_unit *unit = &of->units[i];
		if (number != 0 && number % unit->factor == 0) {
			buf_printf(out, "%lld%s", (long long)(number / unit->factor), unit->suffix);
			return;
		}
	}
	buf_printf(out, "%lld", (long long)number);
}

static void conf_print_list(const struct conf_list *list, struct buf *out)
{
	for (size_t i = 0; i < list->count; i++)
		buf_printf(out, "%s%s", i ? "," : "", list->items[i]);
}

void conf_print_value(const struct conf *conf, enum conf_id id, struct buf *out)
{
	const struct conf_option *option = conf_option_of(id);
	const void *field = field_of_const(conf, option);
	switch (option->type) {
	case CONF_BOOL:
		buf_append_text(out, *(const bool *)field ? "true" : "false");
		break;
	case CONF_INT:
	case CONF_SIZE:
	case CONF_DURATION:
		conf_print_number(option->type, *(const int64_t *)field, out);
		break;
	case CONF_TEXT:
	case CONF_TAG:
	case CONF_CHOICE:
	case CONF_ADDRESS:
		buf_append_text(out, *(const char *const *)field);
		break;
	case CONF_LIST:
		conf_print_list(field, out);
		break;
	}
}

static const char *print_where(const struct conf_origin *origin, size_t line, enum conf_id id,
			       char *text, size_t text_bytes)
{
	const char *name = conf_option_of(id)->name;
	ASSERT(origin->file || !line);
	if (line)
		snprintf(text, text_bytes, "%s:%zu: %s", origin->file, line, name);
	else
		snprintf(text, text_bytes, "%s%s", origin->file ? "--" : "", name);
	return text;
}

const char *conf_where(const struct conf *conf, enum conf_id id, char *text, size_t text_bytes)
{
	const struct conf_origin *origin = &conf->origins[id];
	return print_where(origin, origin->line, id, text, text_bytes);
}

const char *conf_where_item(const struct conf *conf, enum conf_id id, size_t item, char *text,
			    size_t text_bytes)
{
	ASSERT(conf_option_of(id)->type == CONF_LIST);
	const struct conf_list *list = field_of_const(conf, &conf_options[id]);
	const struct conf_origin *origin = &conf->origins[id];
	bool has_line = list->lines && item < list->count;
	return print_where(origin, has_line ? list->lines[item] : origin->line, id, text,
			   text_bytes);
}

int conf_refuse(const struct conf *conf, enum conf_id id, struct errbuf *e)
{
	char where[512];
	return errbuf_prefix(e, ERR_INVALID, "%s", conf_where(conf, id, where, sizeof(where)));
}

int conf_refuse_item(const struct conf *conf, enum conf_id id, size_t item, struct errbuf *e)
{
	char where[512];
	return errbuf_prefix(e, ERR_INVALID, "%s",
			     conf_where_item(conf, id, item, where, sizeof(where)));
}

/* As its text would be written. */
static void print_section(const struct conf *conf, int id, struct buf *out)
{
	buf_clear(out);
	if (conf->sections[id])
		conf_node_dump(conf->sections[id], 0, out);
}

static void conf_add_name(const char *name, struct buf *out)
{
	buf_printf(out, "%s%s", out->len ? " " : "", name);
}

static const size_t conf_field_bytes[] = {
	[CONF_BOOL] = sizeof(CONF_FIELD_BOOL),     [CONF_INT] = sizeof(CONF_FIELD_INT),
	[CONF_SIZE] = sizeof(CONF_FIELD_SIZE),     [CONF_DURATION] = sizeof(CONF_FIELD_DURATION),
	[CONF_TEXT] = sizeof(CONF_FIELD_TEXT),     [CONF_TAG] = sizeof(CONF_FIELD_TAG),
	[CONF_CHOICE] = sizeof(CONF_FIELD_CHOICE), [CONF_ADDRESS] = sizeof(CONF_FIELD_ADDRESS),
	[CONF_LIST] = sizeof(CONF_FIELD_LIST),
};

void conf_take_over(struct conf *conf, const struct conf *from)
{
	for (int id = 0; id < CONF_OPTIONS; id++) {
		const struct conf_option *option = &conf_options[id];
		if (!option->reloads)
			continue;
		memcpy((char *)conf + option->offset, (const char *)from + option->offset,
		       conf_field_bytes[option->type]);
		conf->origins[id] = from->origins[id];
	}
}

bool conf_differs(const struct conf *before, const struct conf *after, enum conf_id id)
{
	struct buf old, new;
	buf_init(&old, 4 * CONF_FILE_MAX_BYTES);
	buf_init(&new, 4 * CONF_FILE_MAX_BYTES);
	conf_print_value(before, (int)id, &old);
	conf_print_value(after, (int)id, &new);
	bool differs = !slice_equal(buf_slice(&old), buf_slice(&new));
	buf_release(&old);
	buf_release(&new);
	return differs;
}

void conf_fixed_changes(const struct conf *before, const struct conf *after, struct buf *out)
{
	struct buf old, new;
	for (int id = 0; id < CONF_OPTIONS; id++) {
		if (!conf_options[id].reloads && conf_differs(before, after, (enum conf_id)id))
			conf_add_name(conf_options[id].name, out);
	}
	buf_init(&old, 4 * CONF_FILE_MAX_BYTES);
	buf_init(&new, 4 * CONF_FILE_MAX_BYTES);
	for (int id = 0; id < CONF_SECTIONS; id++) {
		print_section(before, id, &old);
		print_section(after, id, &new);
		if (!conf_section_defs[id].reloads &&
		    !slice_equal(buf_slice(&old), buf_slice(&new)))
			conf_add_name(conf_section_defs[id].name, out);
	}
	buf_release(&old);
	buf_release(&new);
}
