#include "wire/hadoop_conf.h"

#include <strings.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "wire/number.h"

struct hadoop_reader {
	const char *p, *end;
	unsigned line; /* of p; where something is wrong, the line that the error names */
	struct arena *arena;
	struct buf text; /* of the element that is read */
	struct errbuf *e;
};

/* ---- Bytes ----------------------------------------------------------------------------------- */

static bool hadoop_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct slice hadoop_left(const struct hadoop_reader *r)
{
	return (struct slice){r->p, (size_t)(r->end - r->p)};
}

static bool hadoop_at(const struct hadoop_reader *r, struct slice what)
{
	return slice_starts_with(hadoop_left(r), what);
}

static void hadoop_advance(struct hadoop_reader *r, const char *to)
{
	while (r->p < to)
		r->line += *r->p++ == '\n';
}

/* XML 1.0, 2.2, but for DEL. */
static bool hadoop_is_character(uint32_t code)
{
	return code == '\t' || code == '\n' || code == '\r' ||
	       (code >= ' ' && code < 0xd800 && code != 0x7f) ||
	       (code >= 0xe000 && code <= 0x10ffff && code != 0xfffe && code != 0xffff);
}

static int hadoop_check_bytes(struct hadoop_reader *r)
{
	struct hadoop_reader at = *r;
	while (at.p < at.end) {
		const uint8_t *p = (const uint8_t *)at.p;
		size_t n = utf8_length(p, (size_t)(at.end - at.p));
		uint32_t code = n > 1 ? utf8_code(p, n) : *p;
		r->line = at.line;
		if (!n)
			return errbuf_set(r->e, ERR_INVALID, "the byte 0x%02x is not UTF-8 there",
					  *p);
		if (!hadoop_is_character(code))
			return errbuf_set(r->e, ERR_INVALID, "the character U+%04X is not allowed",
					  code);
		hadoop_advance(&at, at.p + n);
	}
	r->line = 1;
	return 0;
}

static struct slice hadoop_trim(struct slice text)
{
	while (text.len && hadoop_is_blank(*text.data))
		text = (struct slice){text.data + 1, text.len - 1};
	while (text.len && hadoop_is_blank(text.data[text.len - 1]))
		text.len--;
	return text;
}

/* ---- What is passed over --------------------------------------------------------------------- */

/* Takes `begin`, which is there, and all up to the end of `close`. */
static int hadoop_take_past(struct hadoop_reader *r, const char *what, struct slice begin,
			    struct slice close, struct slice *inside)
{
	const char *from = r->p + begin.len;
	const char *found = memmem(from, (size_t)(r->end - from), close.data, close.len);
	if (!found)
		return errbuf_set(r->e, ERR_INVALID, "the %s that begins here has no %s", what,
				  close.data);
	*inside = (struct slice){from, (size_t)(found - from)};
	hadoop_advance(r, found + close.len);
	return 0;
}

/* The declaration may name an encoding: encoding="UTF-8". */
static int hadoop_check_encoding(struct hadoop_reader *r, struct slice declaration)
{
	static const struct slice word = SLICE("encoding");
	const char *at = memmem(declaration.data, declaration.len, word.data, word.len);
	if (!at)
		return 0;
	at += word.len;
	struct slice rest =
		hadoop_trim((struct slice){at, (size_t)(declaration.data + declaration.len - at)});
	if (rest.len && *rest.data == '=')
		rest = hadoop_trim((struct slice){rest.data + 1, rest.len - 1});
	bool quoted = rest.len && (*rest.data == '"' || *rest.data == '\'');
	const char *close = quoted ? memchr(rest.data + 1, *rest.data, rest.len - 1) : NULL;
	if (!close)
		return errbuf_set(r->e, ERR_INVALID, "its encoding is not in quotes");
	struct slice name = {rest.data + 1, (size_t)(close - rest.data - 1)};
	if ((name.len == 5 && strncasecmp(name.data, "utf-8", 5) == 0) ||
	    (name.len == 8 && strncasecmp(name.data, "us-ascii", 8) == 0))
		return 0;
	return errbuf_set(r->e, ERR_INVALID, "its encoding is " SHOWN ", and only UTF-8 is read",
			  SHOWN_OF(name));
}

static int hadoop_take_instruction(struct hadoop_reader *r)
{
	struct slice inside = {NULL, 0};
	unsigned line = r->line;
	int err = hadoop_take_past(r, "processing instruction", SLICE("<?"), SLICE("?>"), &inside);
	if (err || !slice_starts_with(inside, SLICE("xml")) ||
	    (inside.len > 3 && !hadoop_is_blank(inside.data[3])))
		return err;
	err = hadoop_check_encoding(r, inside);
	if (err)
		r->line = line;
	return err;
}

/* Takes a comment or a processing instruction, if one is there. What else begins with <! is
 * refused: a DOCTYPE can have files read, and texts grow without end. */
static int hadoop_take_aside(struct hadoop_reader *r, bool *taken)
{
	struct slice inside;
	*taken = true;
	if (hadoop_at(r, SLICE("<!--")))
		return hadoop_take_past(r, "comment", SLICE("<!--"), SLICE("-->"), &inside);
	if (hadoop_at(r, SLICE("<?")))
		return hadoop_take_instruction(r);
	*taken = false;
	if (hadoop_at(r, SLICE("<!DOCTYPE")))
		return errbuf_set(r->e, ERR_INVALID, "a DOCTYPE is not read: take it out");
	if (hadoop_at(r, SLICE("<![CDATA[")))
		return errbuf_set(r->e, ERR_INVALID,
				  "CDATA is not read: write &lt; for < and &amp; for &");
	if (hadoop_at(r, SLICE("<!")))
		return errbuf_set(r->e, ERR_INVALID, "<! begins nothing that is read");
	return 0;
}

static int hadoop_pass_over(struct hadoop_reader *r)
{
	bool taken = true;
	int err = 0;
	while (taken && !err) {
		while (r->p < r->end && hadoop_is_blank(*r->p))
			hadoop_advance(r, r->p + 1);
		err = hadoop_take_aside(r, &taken);
	}
	return err;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

struct hadoop_tag {
	struct slice name;
	bool ends;  /* </name> */
	bool empty; /* <name/> */
	unsigned line;
};

static bool hadoop_is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || number_is_digit(c) || c == '-' ||
	       c == '_' || c == '.' || c == ':';
}

/* Takes the tag that begins here, for which `within` names what is open. */
static int hadoop_take_tag(struct hadoop_reader *r, const char *within, struct hadoop_tag *tag)
{
	const char *p = r->p;
	*tag = (struct hadoop_tag){.line = r->line};
	if (p == r->end)
		return errbuf_set(r->e, ERR_INVALID, "the file ends %s", within);
	if (*p != '<')
		return errbuf_set(r->e, ERR_INVALID, "a text stands %s, where a tag has to be",
				  within);
	p++;
	tag->ends = p < r->end && *p == '/';
	p += tag->ends;
	tag->name.data = p;
	while (p < r->end && hadoop_is_name_char(*p))
		p++;
	tag->name.len = (size_t)(p - tag->name.data);
	if (!tag->name.len)
		return errbuf_set(r->e, ERR_INVALID, "< begins no tag: in a text it is &lt;");
	while (p < r->end && hadoop_is_blank(*p))
		p++;
	tag->empty = !tag->ends && p < r->end && *p == '/';
	p += tag->empty;
	if (p == r->end)
		return errbuf_set(r->e, ERR_INVALID, "the file ends within the tag " SHOWN,
				  SHOWN_OF(tag->name));
	if (*p != '>')
		return errbuf_set(r->e, ERR_INVALID,
				  "the tag " SHOWN " has more than its name; attributes are not "
				  "read",
				  SHOWN_OF(tag->name));
	hadoop_advance(r, p + 1);
	return 0;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* #60 or #x3c, without the & and the ; around it. */
static bool hadoop_number_reference(struct slice inside, uint32_t *code)
{
	unsigned base = inside.len > 1 && inside.data[1] == 'x' ? 16 : 10;
	size_t at = base == 16 ? 2 : 1;
	*code = 0;
	if (at >= inside.len)
		return false;
	for (; at < inside.len; at++) {
		int digit = number_hex_digit(inside.data[at]);
		if (digit < 0 || (unsigned)digit >= base)
			return false;
		*code = *code * base + (unsigned)digit;
		if (*code > 0x10ffff)
			return false;
	}
	return hadoop_is_character(*code);
}

enum { HADOOP_REFERENCE_MAX_BYTES = 32 };

/* XML 1.0, 4.6. */
static int hadoop_take_reference(struct hadoop_reader *r)
{
	static const struct {
		struct slice name;
		char is;
	} named[] = {{SLICE("amp"), '&'},
		     {SLICE("lt"), '<'},
		     {SLICE("gt"), '>'},
		     {SLICE("quot"), '"'},
		     {SLICE("apos"), '\''}};
	struct slice inside = hadoop_left(r);
	size_t most =
		inside.len < HADOOP_REFERENCE_MAX_BYTES ? inside.len : HADOOP_REFERENCE_MAX_BYTES;
	const char *close = memchr(inside.data, ';', most);
	char bytes[4];
	uint32_t code;
	if (!close)
		return errbuf_set(r->e, ERR_INVALID,
				  "& begins no reference: in a text it is &amp;");
	inside = (struct slice){inside.data + 1, (size_t)(close - inside.data - 1)};
	r->p = close + 1; /* no reference that is good has the end of a line in it */
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (slice_equal(inside, named[i].name)) {
			buf_append_char(&r->text, named[i].is);
			return 0;
		}
	if (!slice_starts_with(inside, SLICE("#")))
		return errbuf_set(r->e, ERR_INVALID,
				  "&" SHOWN "; is not known: amp, lt, gt, quot and apos are",
				  SHOWN_OF(inside));
	if (!hadoop_number_reference(inside, &code))
		return errbuf_set(r->e, ERR_INVALID, "&" SHOWN "; is no character",
				  SHOWN_OF(inside));
	buf_append(&r->text, bytes, utf8_put(bytes, code));
	return 0;
}

/* XML 1.0, 2.11: an end of a line is one \n, however it is written. */
static void hadoop_take_line_end(struct hadoop_reader *r)
{
	bool two = r->p + 1 < r->end && r->p[1] == '\n';
	hadoop_advance(r, r->p + 1 + two);
	buf_append_char(&r->text, '\n');
}

static void hadoop_take_plain(struct hadoop_reader *r)
{
	const char *p = r->p;
	while (p < r->end && *p != '<' && *p != '&' && *p != '\r')
		p++;
	buf_append(&r->text, r->p, (size_t)(p - r->p));
	hadoop_advance(r, p);
}

/* Up to the tag behind the text of an element whose tag was taken. */
static int hadoop_take_pieces(struct hadoop_reader *r)
{
	bool taken = false;
	int err = 0;
	buf_clear(&r->text);
	while (!err && r->p < r->end) {
		if (*r->p == '&') {
			err = hadoop_take_reference(r);
		} else if (*r->p == '\r') {
			hadoop_take_line_end(r);
		} else if (*r->p != '<') {
			hadoop_take_plain(r);
		} else {
			err = hadoop_take_aside(r, &taken);
			if (!taken)
				break;
		}
	}
	return err;
}

/* The text of an element whose tag was taken, in the arena, and the tag that ends it. */
static int hadoop_take_text(struct hadoop_reader *r, const struct hadoop_tag *tag, size_t max_bytes,
			    struct slice *text)
{
	struct hadoop_tag end;
	*text = SLICE("");
	if (tag->empty)
		return 0;
	int err = hadoop_take_pieces(r);
	if (!err)
		err = hadoop_take_tag(r, "within a text", &end);
	if (err)
		return err;
	if (!end.ends || !slice_equal(end.name, tag->name)) {
		r->line = end.line;
		return errbuf_set(r->e, ERR_INVALID,
				  "the tag %s" SHOWN " stands in the text of " SHOWN ", of line %u",
				  end.ends ? "/" : "", SHOWN_OF(end.name), SHOWN_OF(tag->name),
				  tag->line);
	}
	struct slice trimmed = hadoop_trim(buf_slice(&r->text));
	if (r->text.failed || trimmed.len > max_bytes) {
		r->line = tag->line;
		return errbuf_set(r->e, ERR_INVALID,
				  "the text of " SHOWN " has more than %zu bytes",
				  SHOWN_OF(tag->name), max_bytes);
	}
	*text = arena_copy(r->arena, trimmed);
	return text->data ? 0 : errbuf_set(r->e, ERR_LIMIT, "its texts take too much memory");
}

/* ---- Properties ------------------------------------------------------------------------------ */

enum hadoop_part {
	HADOOP_NAME,
	HADOOP_VALUE,
	HADOOP_DESCRIPTION,
	HADOOP_FINAL,
	HADOOP_PARTS,
};

static const struct slice hadoop_parts[HADOOP_PARTS] = {
	[HADOOP_NAME] = SLICE("name"),
	[HADOOP_VALUE] = SLICE("value"),
	[HADOOP_DESCRIPTION] = SLICE("description"),
	[HADOOP_FINAL] = SLICE("final"),
};

static int hadoop_take_part(struct hadoop_reader *r, const struct hadoop_tag *tag,
			    struct slice texts[HADOOP_PARTS])
{
	enum hadoop_part part = 0;
	while (part < HADOOP_PARTS && !slice_equal(tag->name, hadoop_parts[part]))
		part++;
	if (part == HADOOP_PARTS || tag->ends) {
		r->line = tag->line;
		return errbuf_set(r->e, ERR_INVALID,
				  "the tag %s" SHOWN " stands in a property, which has name, "
				  "value, description and final",
				  tag->ends ? "/" : "", SHOWN_OF(tag->name));
	}
	if (texts[part].data) {
		r->line = tag->line;
		return errbuf_set(r->e, ERR_INVALID, "the property has a second %s",
				  hadoop_parts[part].data);
	}
	return hadoop_take_text(r, tag,
				part == HADOOP_NAME ? HADOOP_NAME_MAX_BYTES : HADOOP_TEXT_MAX_BYTES,
				&texts[part]);
}

/* What the parts of a property say; r->line is that of its tag. */
static int hadoop_make_property(struct hadoop_reader *r, const struct slice texts[HADOOP_PARTS],
				struct hadoop_property *property)
{
	struct slice final = texts[HADOOP_FINAL];
	property->name = texts[HADOOP_NAME];
	property->value = texts[HADOOP_VALUE];
	property->line = r->line;
	property->final = slice_equal(final, SLICE("true"));
	if (!property->name.len)
		return errbuf_set(r->e, ERR_INVALID, "the property has no name");
	if (!property->value.data)
		return errbuf_set(r->e, ERR_INVALID, "the property " SHOWN " has no value",
				  SHOWN_OF(property->name));
	if (final.data && !property->final && !slice_equal(final, SLICE("false")))
		return errbuf_set(r->e, ERR_INVALID,
				  "final of the property " SHOWN " is " SHOWN
				  ", and has to be true or false",
				  SHOWN_OF(property->name), SHOWN_OF(final));
	return 0;
}

static int hadoop_take_property(struct hadoop_reader *r, const struct hadoop_tag *tag,
				struct hadoop_property *property)
{
	struct slice texts[HADOOP_PARTS] = {{NULL, 0}};
	struct hadoop_tag inner;
	int err = 0;
	while (!err && !tag->empty) {
		err = hadoop_pass_over(r);
		if (!err)
			err = hadoop_take_tag(r, "within a property", &inner);
		if (!err && inner.ends && slice_equal(inner.name, tag->name))
			break;
		if (!err)
			err = hadoop_take_part(r, &inner, texts);
	}
	if (err)
		return err;
	unsigned line = r->line;
	r->line = tag->line;
	err = hadoop_make_property(r, texts, property);
	if (!err)
		r->line = line;
	return err;
}

/* ---- The file -------------------------------------------------------------------------------- */

static int hadoop_take_properties(struct hadoop_reader *r, struct hadoop_conf *conf)
{
	const struct hadoop_property **last = &conf->first;
	struct hadoop_tag tag;
	for (;;) {
		int err = hadoop_pass_over(r);
		if (!err)
			err = hadoop_take_tag(r, "within the configuration", &tag);
		if (err)
			return err;
		if (tag.ends && slice_equal(tag.name, SLICE("configuration")))
			return 0;
		if (tag.ends || !slice_equal(tag.name, SLICE("property"))) {
			r->line = tag.line;
			return errbuf_set(r->e, ERR_INVALID,
					  "the tag %s" SHOWN " stands in the configuration, which "
					  "has properties",
					  tag.ends ? "/" : "", SHOWN_OF(tag.name));
		}
		if (conf->count == HADOOP_PROPERTIES_MAX)
			return errbuf_set(r->e, ERR_INVALID, "there are more than %d properties",
					  HADOOP_PROPERTIES_MAX);
		struct hadoop_property *property = arena_zalloc(r->arena, sizeof(*property));
		if (!property)
			return errbuf_set(r->e, ERR_LIMIT, "its properties take too much memory");
		err = hadoop_take_property(r, &tag, property);
		if (err)
			return err;
		*last = property;
		last = &property->next;
		conf->count++;
	}
}

static int hadoop_read(struct hadoop_reader *r, struct hadoop_conf *conf)
{
	struct hadoop_tag tag;
	int err = hadoop_check_bytes(r);
	if (err)
		return err;
	if (hadoop_at(r, SLICE("\xef\xbb\xbf"))) /* some editors begin UTF-8 so */
		r->p += 3;
	err = hadoop_pass_over(r);
	if (!err)
		err = hadoop_take_tag(r, "without a configuration", &tag);
	if (err)
		return err;
	if (tag.ends || !slice_equal(tag.name, SLICE("configuration"))) {
		r->line = tag.line;
		return errbuf_set(r->e, ERR_INVALID,
				  "the file begins with the tag %s" SHOWN ", not configuration",
				  tag.ends ? "/" : "", SHOWN_OF(tag.name));
	}
	if (!tag.empty)
		err = hadoop_take_properties(r, conf);
	if (!err)
		err = hadoop_pass_over(r);
	if (!err && r->p < r->end)
		err = errbuf_set(r->e, ERR_INVALID, "something stands behind the configuration");
	return err;
}

int hadoop_conf_parse(struct slice text, struct arena *arena, struct hadoop_conf *conf,
		      struct errbuf *e)
{
	struct hadoop_reader r = {.line = 1, .arena = arena, .e = e};
	*conf = (struct hadoop_conf){.first = NULL};
	if (text.len > HADOOP_CONF_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "it has %zu bytes, and %d are allowed", text.len,
				  HADOOP_CONF_MAX_BYTES);
	r.p = text.len ? text.data : "";
	r.end = r.p + text.len;
	buf_init(&r.text, HADOOP_TEXT_MAX_BYTES);
	int err = hadoop_read(&r, conf);
	buf_release(&r.text);
	return err ? errbuf_prefix(e, err, "line %u", r.line) : 0;
}

const struct hadoop_property *hadoop_conf_find(const struct hadoop_conf *conf, struct slice name)
{
	const struct hadoop_property *found = NULL;
	for (const struct hadoop_property *p = conf->first; p; p = p->next) {
		if (!slice_equal(p->name, name))
			continue;
		found = p;
		if (p->final)
			break;
	}
	return found;
}
