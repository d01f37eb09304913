/* Patterns: compiled into steps, each a field and the literal that ends it. */
#include "base/grow.h"
#include "wire/fields.h"

enum { FIELDS_PASSED = -1 };

struct fields_step {
	int field;            /* its place; FIELDS_PASSED: <_> */
	struct slice literal; /* behind it; empty: it goes to the end of the line */
	size_t quote_at;      /* of the first " in the literal; its length: there is none */
	bool in_quotes;       /* the field is */
};

struct fields_pattern {
	struct slice lead; /* in front of the first field */
	const struct fields_step *steps;
	size_t count;
};

/* ---- Compiling ------------------------------------------------------------------------------- */

struct fields_compiler {
	struct arena *arena;
	struct errbuf *e;
	struct slice names[FIELDS_PATTERN_MAX]; /* of the format */
	size_t name_count;
	struct fields_step steps[FIELDS_PATTERN_MAX];
	size_t step_count;
	bool in_quotes;
};

static bool fields_is_name_byte(char c, bool first)
{
	char lower = ascii_lower(c);
	return (lower >= 'a' && lower <= 'z') || c == '_' || c == '@' ||
	       (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

/* The name of the field that begins at `text`; empty: none does. */
static struct slice fields_name_at(struct slice text)
{
	size_t end = 1;
	if (!text.len || text.data[0] != '<')
		return SLICE("");
	while (end < text.len && fields_is_name_byte(text.data[end], end == 1))
		end++;
	bool closed = end < text.len && text.data[end] == '>';
	return closed ? (struct slice){text.data + 1, end - 1} : SLICE("");
}

static size_t fields_literal_len(struct slice text)
{
	size_t len = 0;
	while (len < text.len &&
	       !fields_name_at((struct slice){text.data + len, text.len - len}).len)
		len++;
	return len;
}

static int fields_take_name(struct fields_compiler *c, struct slice name, int *field)
{
	size_t place = 0;
	*field = FIELDS_PASSED;
	if (slice_equal(name, SLICE("_")))
		return 0;
	if (name.len > FIELDS_NAME_MAX_BYTES)
		return errbuf_set(c->e, ERR_INVALID,
				  "the name <" SHOWN "> is longer than the maximum of %d bytes",
				  SHOWN_OF(name), FIELDS_NAME_MAX_BYTES);
	while (place < c->name_count && !slice_equal(c->names[place], name))
		place++;
	for (size_t i = 0; i < c->step_count; i++)
		if (c->steps[i].field == (int)place)
			return errbuf_set(c->e, ERR_INVALID, "two fields are called <" SHOWN ">",
					  SHOWN_OF(name));
	if (place == FIELDS_PATTERN_MAX)
		return errbuf_set(c->e, ERR_INVALID, "there are more than %d fields",
				  FIELDS_PATTERN_MAX);
	if (place == c->name_count)
		c->names[c->name_count++] = name;
	*field = (int)place;
	return 0;
}

/* Counts the quotes of a literal. */
static size_t fields_pass_quotes(struct fields_compiler *c, struct slice literal)
{
	size_t first = literal.len;
	for (size_t i = 0; i < literal.len; i++) {
		if (literal.data[i] != '"')
			continue;
		c->in_quotes = !c->in_quotes;
		first = first < i ? first : i;
	}
	return first;
}

static int fields_take_step(struct fields_compiler *c, struct slice *rest)
{
	struct slice name = fields_name_at(*rest);
	*rest = (struct slice){name.data + name.len + 1, rest->len - name.len - 2};
	if (c->step_count == FIELDS_PATTERN_MAX)
		return errbuf_set(c->e, ERR_INVALID, "there are more than %d fields",
				  FIELDS_PATTERN_MAX);
	struct fields_step step = {
		.literal = {rest->data, fields_literal_len(*rest)},
		.in_quotes = c->in_quotes,
	};
	int err = fields_take_name(c, name, &step.field);
	if (err)
		return err;
	if (!step.literal.len && rest->len)
		return errbuf_set(c->e, ERR_INVALID,
				  "behind the field <" SHOWN "> the next one begins at once: a "
				  "text between them says where the first one ends",
				  SHOWN_OF(name));
	step.quote_at = fields_pass_quotes(c, step.literal);
	*rest = (struct slice){rest->data + step.literal.len, rest->len - step.literal.len};
	c->steps[c->step_count++] = step;
	return 0;
}

static int fields_compile(struct fields_compiler *c, struct slice rest, struct slice *lead)
{
	int err = 0;
	*lead = (struct slice){rest.data, fields_literal_len(rest)};
	fields_pass_quotes(c, *lead);
	rest = (struct slice){rest.data + lead->len, rest.len - lead->len};
	if (!rest.len)
		return errbuf_set(c->e, ERR_INVALID, "there is no field, as <status>");
	while (!err && rest.len)
		err = fields_take_step(c, &rest);
	if (!err && c->in_quotes)
		return errbuf_set(c->e, ERR_INVALID,
				  "a quotation mark is opened that no other one closes");
	return err;
}

static int fields_keep(const struct fields_compiler *c, struct fields_format *format,
		       struct slice lead)
{
	size_t count = format->pattern_count;
	struct fields_pattern *patterns = arena_alloc(c->arena, (count + 1) * sizeof(*patterns));
	struct fields_step *steps = arena_alloc(c->arena, c->step_count * sizeof(*steps));
	struct slice *names = arena_alloc(c->arena, (c->name_count + 1) * sizeof(*names));
	if (!patterns || !steps || !names)
		return ERR_LIMIT;
	if (count)
		memcpy(patterns, format->patterns, count * sizeof(*patterns));
	memcpy(steps, c->steps, c->step_count * sizeof(*steps));
	memcpy(names, c->names, c->name_count * sizeof(*names));
	patterns[count] = (struct fields_pattern){lead, steps, c->step_count};
	format->patterns = patterns;
	format->pattern_count = count + 1;
	format->names = (struct fields_words){names, c->name_count};
	return 0;
}

int fields_format_add(struct fields_format *format, struct slice pattern, struct arena *arena,
		      struct errbuf *e)
{
	struct fields_compiler c = {.arena = arena, .e = e, .name_count = format->names.count};
	struct slice lead;
	if (pattern.len > FIELDS_PATTERN_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID,
				  "the pattern has %zu bytes, which is longer than the maximum of "
				  "%d",
				  pattern.len, FIELDS_PATTERN_MAX_BYTES);
	if (format->pattern_count == FIELDS_PATTERNS_MAX)
		return errbuf_set(e, ERR_INVALID, "there are more than %d patterns",
				  FIELDS_PATTERNS_MAX);
	if (c.name_count)
		memcpy(c.names, format->names.list, c.name_count * sizeof(*c.names));
	pattern = arena_copy(arena, pattern);
	if (!pattern.data)
		return ERR_LIMIT;
	int err = fields_compile(&c, pattern, &lead);
	return err ? err : fields_keep(&c, format, lead);
}

size_t fields_format_find(const struct fields_format *format, struct slice name)
{
	size_t place = 0;
	while (place < format->names.count && !slice_equal(format->names.list[place], name))
		place++;
	return place;
}

static bool fields_is_beside(char c)
{
	return fields_is_name_byte(c, false) ? !strchr("@.-", c) : (uint8_t)c > 0x7f;
}

bool fields_format_is_apart(const struct fields_format *format, size_t place)
{
	for (size_t i = 0; i < format->pattern_count; i++) {
		struct slice before = format->patterns[i].lead;
		for (size_t k = 0; k < format->patterns[i].count; k++) {
			const struct fields_step *step = &format->patterns[i].steps[k];
			struct slice behind = step->literal;
			if (step->field == (int)place &&
			    ((before.len && fields_is_beside(before.data[before.len - 1])) ||
			     (behind.len && fields_is_beside(behind.data[0]))))
				return false;
			before = behind;
		}
	}
	return true;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Literals are short and their first bytes rare, so that memmem() would cost more. */
static const char *fields_seek(const char *at, const char *end, struct slice literal)
{
	size_t left = (size_t)(end - at);
	while (left >= literal.len) {
		at = memchr(at, literal.data[0], left - literal.len + 1);
		if (!at)
			return NULL;
		if (literal.len == 1 || memcmp(at, literal.data, literal.len) == 0)
			return at;
		at++;
		left = (size_t)(end - at);
	}
	return NULL;
}

/* The next " that is behind no backslash which is not behind one itself. */
static const char *fields_quote_end(const char *begin, const char *end)
{
	const char *at = begin;
	while ((at = memchr(at, '"', (size_t)(end - at)))) {
		const char *slash = at;
		while (slash > begin && slash[-1] == '\\')
			slash--;
		if ((at - slash) % 2 == 0)
			break;
		at++;
	}
	return at;
}

/* *quote is where the quotes end that the step is in, NULL: that is not known yet. */
static const char *fields_step_end(const struct fields_step *step, const char *at, const char *end,
				   const char **quote)
{
	if (!step->literal.len)
		return end;
	if (!step->in_quotes)
		return fields_seek(at, end, step->literal);
	if (!*quote)
		*quote = fields_quote_end(at, end);
	if (!*quote)
		return NULL;
	if (step->quote_at == step->literal.len)
		return fields_seek(at, *quote, step->literal);
	if ((size_t)(*quote - at) < step->quote_at)
		return NULL;
	const char *stop = *quote - step->quote_at;
	*quote = NULL;
	return slice_starts_with((struct slice){stop, (size_t)(end - stop)}, step->literal) ? stop
											    : NULL;
}

static bool fields_pattern_fits(const struct fields_pattern *pattern, struct slice line,
				struct fields_field *list)
{
	if (!slice_starts_with(line, pattern->lead))
		return false;
	const char *end = line.data + line.len, *at = line.data + pattern->lead.len, *quote = NULL;
	for (size_t i = 0; i < pattern->count; i++) {
		const struct fields_step *step = &pattern->steps[i];
		const char *stop = fields_step_end(step, at, end, &quote);
		if (!stop)
			return false;
		if (step->field != FIELDS_PASSED)
			list[step->field].text = (struct slice){at, (size_t)(stop - at)};
		at = stop + step->literal.len;
	}
	return true;
}

bool fields_pattern_read(struct fields_reader *reader, struct slice line)
{
	const struct fields_format *format = reader->format;
	reader->count = format->names.count;
	for (size_t i = 0; i < format->pattern_count; i++) {
		/* One pattern sets them all. */
		for (size_t k = 0; format->pattern_count > 1 && k < reader->count; k++)
			reader->list[k].text = (struct slice){NULL, 0};
		if (fields_pattern_fits(&format->patterns[i], line, reader->list))
			return true;
	}
	return false;
}
