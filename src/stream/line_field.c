#include "stream/line_field.h"

#include "words/words.h"

/* ---- Parsing --------------------------------------------------------------------------------- */

static bool line_field_is_name(char c, bool first)
{
	char lower = ascii_lower(c);
	return (lower >= 'a' && lower <= 'z') || c == '_' || c == '@' || (uint8_t)c > 0x7f ||
	       (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

/* `a->b`, `a==b`, `a=>b` and `a=` are texts. */
bool line_field_take(struct slice *rest, struct line_field *field)
{
	struct slice left = *rest;
	size_t len = 0;
	while (len < left.len && line_field_is_name(left.data[len], len == 0))
		len++;
	struct slice name = {left.data, len};
	left = (struct slice){left.data + len, left.len - len};
	if (!len || name.data[len - 1] == '-' || !datatype_take_relation(&left, &field->relation) ||
	    !left.len || (uint8_t)*left.data <= ' ' || strchr("=<>", *left.data))
		return false;
	field->name = name;
	*rest = left;
	return true;
}

static bool line_field_is_word(char c)
{
	char lower = ascii_lower(c);
	return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether a word begins behind this character also where JSON has it as \n or \u003c. */
static bool line_field_is_apart(char c)
{
	return c >= ' ' && c < 0x7f && !line_field_is_word(c) && !strchr("<>&'=+", c);
}

/* The longest word of a text that stands in a line as it stands here. */
static struct slice line_field_word(struct slice text, bool open_left, bool open_right)
{
	struct slice longest = SLICE("");
	size_t end;
	for (size_t at = 0; at < text.len; at = end + (end == at)) {
		end = at;
		while (end < text.len && line_field_is_word(text.data[end]))
			end++;
		bool begins = at ? line_field_is_apart(text.data[at - 1]) : !open_left;
		bool ends = end < text.len ? (uint8_t)text.data[end] < 0x80 : !open_right;
		if (begins && ends && end - at > longest.len)
			longest = (struct slice){text.data + at, end - at};
	}
	return longest;
}

/* Only of whole numbers: 0.5 may be written 0.50. */
static struct slice line_field_digits(struct slice text)
{
	size_t sign = *text.data == '-';
	for (size_t at = sign; at < text.len; at++)
		if (text.data[at] < '0' || text.data[at] > '9')
			return SLICE("");
	return (struct slice){text.data + sign, text.len - sign};
}

int line_field_set_text(struct line_field *field, struct slice text, bool open_left,
			bool open_right, struct arena *arena, struct errbuf *e)
{
	bool whole = !open_left && !open_right;
	struct slice word = SLICE("");
	field->number.type = VALUE_NONE;
	if (whole && fields_number(text, 0, &field->number))
		field->number.type = VALUE_NONE;
	bool is_number = field->number.type != VALUE_NONE;
	if (!is_number && field->relation > DATATYPE_NOT_EQUAL)
		return errbuf_set(e, ERR_INVALID,
				  "the search has \"" SHOWN
				  "\", which is no number to compare the field " SHOWN
				  " with; a text stands in quotation marks",
				  SHOWN_OF(text), SHOWN_OF(field->name));
	if (field->relation == DATATYPE_EQUAL)
		word = is_number ? line_field_digits(text)
				 : line_field_word(text, open_left, open_right);
	int err = lines_literal_init(&field->text, text, open_left, open_right, arena);
	return err ? err : lines_literal_init(&field->word, word, false, false, arena);
}

/* ---- By rules -------------------------------------------------------------------------------- */

enum line_field_how line_field_how(const struct line_field *field, const struct datatype *rule)
{
	bool known = rule && rule->format.kind != FIELDS_COLUMNS;
	if (known && rule->format.kind == FIELDS_PATTERN)
		known = fields_format_find(&rule->format, field->name) < rule->format.names.count;
	if (known)
		return LINE_FIELD_READ;
	return field->plain.text.len ? LINE_FIELD_PLAIN : LINE_FIELD_NONE;
}

/* Totals of SystemMetrics stand in no line. */
const struct lines_literal *line_field_needed(const struct line_field *field,
					      const struct datatype *rule)
{
	const struct fields_format *format = &rule->format;
	bool stands = format->kind != FIELDS_SYSTEM_METRICS;
	if (format->kind == FIELDS_PATTERN)
		stands = fields_format_is_apart(format, fields_format_find(format, field->name));
	return stands && field->word.text.len ? &field->word : NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool line_field_is_text(const struct lines_literal *wanted, struct slice text,
			       struct buf *room)
{
	if (wanted->open_left && wanted->open_right)
		return !wanted->text.len || lines_literal_is_in(wanted, text, room);
	if (!wanted->ascii) {
		buf_clear(room);
		words_fold(text, room);
		if (room->failed)
			return false;
		text = buf_slice(room);
	}
	if (text.len < wanted->text.len)
		return false;
	size_t more = text.len - wanted->text.len;
	if (more && !wanted->open_left && !wanted->open_right)
		return false;
	return slice_equal_lower(
		(struct slice){text.data + (wanted->open_left ? more : 0), wanted->text.len},
		wanted->text);
}

bool line_field_fits(const struct line_field *field, struct slice text, struct buf *room)
{
	struct value number;
	ASSERT(!field->is_regex);
	if (!text.data)
		return false;
	if (field->number.type != VALUE_NONE && !fields_number(text, 0, &number))
		return datatype_relation_holds(field->relation,
					       value_compare(number, field->number));
	return field->relation <= DATATYPE_NOT_EQUAL &&
	       line_field_is_text(&field->text, text, room) == (field->relation == DATATYPE_EQUAL);
}
