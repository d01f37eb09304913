#include "wire/line.h"

#include "base/buf.h"
#include "wire/number.h"

static line_scan_fn *scan = line_scan_plain;

void line_use_avx2(bool use)
{
	scan = use && line_has_avx2() ? line_scan_avx2 : line_scan_plain;
}

__attribute__((constructor)) static void line_choose(void)
{
	line_use_avx2(true);
}

int line_precision_parse(struct slice text, enum line_precision *precision)
{
	static const struct {
		struct slice text;
		enum line_precision precision;
	} known[] = {
		{{"", 0}, LINE_NS},
		{{"ns", 2}, LINE_NS},
		{{"n", 1}, LINE_NS},
		{{"us", 2}, LINE_US},
		{{"u", 1}, LINE_US},
		{{"ms", 2}, LINE_MS},
		{{"s", 1}, LINE_S},
		{{"m", 1}, LINE_M},
		{{"h", 1}, LINE_H},
		/* The sign for micro, and the Greek letter that many keyboards give for it. */
		{{"\u00b5", 2}, LINE_US},
		{{"\u00b5s", 3}, LINE_US},
		{{"\u03bc", 2}, LINE_US},
		{{"\u03bcs", 3}, LINE_US},
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (slice_equal(text, known[i].text)) {
			*precision = known[i].precision;
			return 0;
		}
	}
	return ERR_INVALID;
}

void line_reader_init(struct line_reader *reader, const char *bytes, size_t len, uint64_t line,
		      enum line_precision precision)
{
	ASSERT(len == 0 || bytes[len - 1] == '\n');
	*reader = (struct line_reader){.at = bytes,
				       .end = bytes + len,
				       .start = bytes,
				       .line = line,
				       .next_line = line,
				       .line_max_bytes = LINE_MAX_BYTES,
				       .precision = precision};
}

/* ---- Bad lines ------------------------------------------------------------------------------ */

struct line_bad line_place(const struct line_reader *reader, const char *at)
{
	struct line_bad place = {.line = reader->line};
	const char *begin = reader->start, *newline;
	while ((newline = memchr(begin, '\n', (size_t)(at - begin)))) {
		place.line++;
		begin = newline + 1;
	}
	place.column = (uint32_t)(at - begin) + 1;
	return place;
}

static enum line_result bad_at(struct line_reader *reader, const char *at, bool too_long,
			       const char *reason)
{
	reader->bad = line_place(reader, at);
	reader->bad.too_long = too_long;
	reader->bad.reason = reason;
	const char *newline = memchr(at, '\n', (size_t)(reader->end - at));
	reader->at = newline + 1;
	reader->next_line = reader->bad.line + 1;
	return LINE_BAD;
}

static enum line_result line_bad(struct line_reader *reader, const char *at, const char *reason)
{
	return bad_at(reader, at, false, reason);
}

static enum line_result bad_length(struct line_reader *reader)
{
	return bad_at(reader, reader->start, true,
		      reader->line_max_bytes == LINE_MAX_BYTES
			      ? "the line is longer than 65536 bytes"
			      : "the line is longer than the configured maximum");
}

static void line_stop(struct line_reader *reader, bool too_long, const char *reason)
{
	reader->bad = line_place(reader, reader->text_at);
	reader->bad.too_long = too_long;
	reader->bad.reason = reason;
	const char *newline = memchr(reader->start, '\n', (size_t)(reader->end - reader->start));
	reader->at = newline + 1;
	reader->next_line = reader->line + 1;
}

void line_skip(struct line_reader *reader)
{
	line_stop(reader, false, "a text that begins here is not closed");
}

static bool too_long(const struct line_reader *reader, const char *at)
{
	return (size_t)(at - reader->start) > reader->line_max_bytes;
}

/* ---- Step one ------------------------------------------------------------------------------- */

static inline const char *line_skip_blanks(const char *p)
{
	while (*p == ' ')
		p++;
	return p;
}

static inline bool ends_line(const char *p)
{
	return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

/* The first byte of a line that is neither blank nor a comment, or NULL at the end. */
static const char *next_start(struct line_reader *reader)
{
	for (;;) {
		reader->line = reader->next_line;
		reader->start = reader->at;
		if (reader->at == reader->end)
			return NULL;
		const char *p = line_skip_blanks(reader->at);
		if (!ends_line(p) && *p != '#')
			return p;
		reader->at = (const char *)memchr(p, '\n', (size_t)(reader->end - p)) + 1;
		reader->next_line++;
	}
}

/* The end of the key at p: its blank, or the newline of a line without fields. */
static const char *key_end(const char *p, const char *end)
{
	for (;;) {
		p = scan(p, end, LINE_SET_KEY);
		if (LIKELY(*p == ' ' || *p == '\n'))
			return p;
		p += p[1] == ' ' ? 2 : 1;
	}
}

static enum line_result line_parse_key(struct line_reader *reader, const char *begin, const char *p,
				       struct slice *key)
{
	if (UNLIKELY(*p == '\n'))
		return line_bad(reader, p - (p[-1] == '\r'), "a blank and fields are missing");
	*key = (struct slice){begin, (size_t)(p - begin)};
	p = line_skip_blanks(p);
	if (UNLIKELY(ends_line(p)))
		return line_bad(reader, p, "fields are missing");
	if (UNLIKELY(too_long(reader, p)))
		return bad_length(reader);
	reader->at = p;
	return LINE_OK;
}

enum line_result line_next(struct line_reader *reader, struct slice *key)
{
	const char *p = next_start(reader);
	return p ? line_parse_key(reader, p, key_end(p, reader->end), key) : LINE_DONE;
}

bool line_peek(const char **at, const char *end, struct slice *key)
{
	if (*at >= end)
		return false;
	const char *stop = key_end(*at, end);
	*key = (struct slice){*at, (size_t)(stop - *at)};
	const char *newline = memchr(stop, '\n', (size_t)(end - stop));
	*at = newline ? newline + 1 : end;
	return true;
}

enum line_result line_next_peeked(struct line_reader *reader, struct slice peeked,
				  struct slice *key)
{
	const char *p = next_start(reader);
	if (!p)
		return LINE_DONE;
	bool right = p == peeked.data;
	return line_parse_key(reader, p, right ? p + peeked.len : key_end(p, reader->end), key);
}

/* ---- Numbers -------------------------------------------------------------------------------- */

static inline uint64_t load_word(const char *p)
{
	uint64_t word;
	memcpy(&word, p, sizeof(word));
	return word;
}

/* Eight bytes less '0': digits become 0 to 9, everything else more. */
static inline uint64_t less_zero(uint64_t word)
{
	return word ^ UINT64_C(0x3030303030303030);
}

/* How many digits stand in front; the mask keeps a byte's sum from reaching its neighbour. */
static inline unsigned leading_digits(uint64_t less)
{
	uint64_t other =
		(((less & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7676767676767676)) | less) &
		UINT64_C(0x8080808080808080);
	return other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
}

/* The number of the first `count` digits, 1 to 8: they are moved up so that zeros stand in front,
 * then added in pairs, fours and eights (Lemire, "Quickly parsing eight digits", 2018). */
static inline uint64_t digits_number(uint64_t less, unsigned count)
{
	less <<= 64 - 8 * count;
	less = less * 10 + (less >> 8);
	return ((less & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
		((less >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
	       32;
}

/* All digits at p, as many as there are; *overflow: they pass 64 bits. */
static const char *read_digits(const char *p, uint64_t *number, bool *overflow)
{
	static const uint64_t powers[9] = {1,      10,      100,      1000,     10000,
					   100000, 1000000, 10000000, 100000000};
	*number = 0;
	*overflow = false;
	for (;;) {
		uint64_t less = less_zero(load_word(p));
		unsigned count = leading_digits(less);
		if (count) {
			*overflow |= __builtin_mul_overflow(*number, powers[count], number);
			*overflow |=
				__builtin_add_overflow(*number, digits_number(less, count), number);
		}
		p += count;
		if (count < 8)
			return p;
	}
}

/* ---- Values --------------------------------------------------------------------------------- */

/* Gives the byte after the value, or NULL with the reason and the place in the reader. */
static const char *no_value(struct line_reader *reader, const char *at, const char *reason)
{
	reader->text_at = at;
	reader->bad.reason = reason;
	reader->bad.too_long = false;
	return NULL;
}

static void add_fault(struct line_fields *fields, const char *at, enum line_fault_kind kind)
{
	fields->values[fields->count] = (struct value){0, VALUE_NONE};
	fields->faults[fields->fault_count++] = (struct line_fault){
		.field = (uint16_t)fields->count, .kind = (uint8_t)kind, .at = at};
}

/* The text goes to the next quote that no backslash stands before; NULL and no reason: not here. */
static const char *line_read_text(struct line_reader *reader, const char *quote,
				  struct line_fields *fields)
{
	const char *limit = reader->end;
	if (limit - reader->start > LINE_MAX_BYTES)
		limit = reader->start + LINE_MAX_BYTES;
	reader->text_at = quote;
	reader->bad.reason = NULL;
	const char *p = quote + 1;
	for (;;) {
		p = scan(p, limit, LINE_SET_TEXT);
		if (p >= limit)
			return NULL;
		if (*p == '"')
			break;
		p += p[1] == '"' || p[1] == '\\' ? 2 : 1;
	}
	for (const char *q = quote; (q = memchr(q, '\n', (size_t)(p - q))); q++)
		reader->next_line++;
	add_fault(fields, quote, LINE_FAULT_TEXT);
	return p + 1;
}

static bool line_starts_with(const char *p, struct slice word, bool any_case)
{
	for (size_t i = 0; i < word.len; i++) {
		char c = p[i];
		if (any_case && c >= 'A' && c <= 'Z')
			c = (char)(c | 0x20);
		if (c != word.data[i])
			return false;
	}
	return true;
}

/* The byte after the longest of the words that stands at p, or NULL. Longer ones come first. */
static const char *line_read_word(const char *p, const struct slice *words, size_t count,
				  bool any_case)
{
	for (size_t i = 0; i < count; i++) {
		if (line_starts_with(p, words[i], any_case))
			return p + words[i].len;
	}
	return NULL;
}

static const char *read_boolean(const char *p, struct line_fields *fields)
{
	static const struct slice yes[] = {
		{"true", 4}, {"True", 4}, {"TRUE", 4}, {"t", 1}, {"T", 1}};
	static const struct slice no[] = {
		{"false", 5}, {"False", 5}, {"FALSE", 5}, {"f", 1}, {"F", 1}};
	const char *after = line_read_word(p, yes, ARRAY_LEN(yes), false);
	bool is = after;
	if (!after)
		after = line_read_word(p, no, ARRAY_LEN(no), false);
	fields->values[fields->count] = value_f64(is ? 1.0 : 0.0);
	return after;
}

static const char *read_not_finite(const char *p, struct line_fields *fields)
{
	static const struct slice words[] = {{"infinity", 8}, {"inf", 3}, {"nan", 3}};
	const char *digits = p + (*p == '-' || *p == '+');
	const char *after = line_read_word(digits, words, ARRAY_LEN(words), true);
	if (after)
		add_fault(fields, p, LINE_FAULT_NOT_FINITE);
	return after;
}

/* The suffix at `after` stands for the type. What the type does not hold costs its own field only:
 * where it ends is beyond doubt. */
static const char *read_integer(const char *p, const char *after, uint64_t magnitude, bool overflow,
				struct line_fields *fields)
{
	bool negative = *p == '-', is_unsigned = *after == 'u';
	bool fits =
		is_unsigned ? !negative || !magnitude : magnitude <= (uint64_t)INT64_MAX + negative;
	if (overflow || !fits)
		add_fault(fields, p, LINE_FAULT_OUT_OF_RANGE);
	else if (is_unsigned)
		fields->values[fields->count] = value_u64(magnitude);
	else
		fields->values[fields->count] =
			value_i64((int64_t)(negative ? -magnitude : magnitude));
	return after + 1;
}

static bool in_decimal(char c)
{
	return number_is_digit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

/* Any decimal, correctly rounded. */
static const char *line_read_decimal(struct line_reader *reader, const char *p,
				     struct line_fields *fields)
{
	const char *after = p;
	while (in_decimal(*after))
		after++;
	if (after - p > LINE_NUMBER_MAX_BYTES) {
		no_value(reader, p, "the number is longer than 512 bytes");
		reader->bad.too_long = true;
		return NULL;
	}
	double number;
	int err = number_parse_f64(p, after, &number);
	if (err == ERR_LIMIT)
		add_fault(fields, p, LINE_FAULT_NOT_FINITE);
	else if (err)
		return no_value(reader, p, "this is not a number");
	else
		fields->values[fields->count] = value_f64(number);
	return after;
}

/* `digits.digits` whose digits and power of ten both are doubles: one division rounds it correctly
 * (Clinger, "How to read floating point numbers accurately", 1990). NULL: it is none of these. */
static const char *read_short_decimal(const char *p, bool negative, uint64_t whole,
				      struct line_fields *fields)
{
	static const double powers[8] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
	static const uint32_t factors[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
	uint64_t less = less_zero(load_word(p));
	unsigned count = leading_digits(less);
	if (count - 1 >= 7 || in_decimal(p[count]) || whole > 400000000)
		return NULL;
	double number = (double)(whole * factors[count] + digits_number(less, count));
	number /= powers[count];
	fields->values[fields->count] = value_f64(negative ? -number : number);
	return p + count;
}

static const char *line_read_number(struct line_reader *reader, const char *p,
				    struct line_fields *fields)
{
	bool negative = *p == '-', overflow;
	uint64_t whole;
	const char *digits = p + (negative || *p == '+');
	const char *after = read_digits(digits, &whole, &overflow);
	if (after == digits || after - p > LINE_NUMBER_MAX_BYTES)
		return line_read_decimal(reader, p, fields);
	if (*after == 'i' || *after == 'u')
		return read_integer(p, after, whole, overflow, fields);
	const char *end = NULL;
	if (*after == '.' && !overflow)
		end = read_short_decimal(after + 1, negative, whole, fields);
	return end ? end : line_read_decimal(reader, p, fields);
}

static const char *read_any_value(struct line_reader *reader, const char *p,
				  struct line_fields *fields)
{
	if (*p == '"')
		return line_read_text(reader, p, fields);
	const char *after = NULL;
	if (number_is_digit(*p) || *p == '-' || *p == '+' || *p == '.') {
		after = *p == '.' || number_is_digit(*p) ? NULL : read_not_finite(p, fields);
		return after ? after : line_read_number(reader, p, fields);
	}
	if (*p == 'n' || *p == 'N' || *p == 'i' || *p == 'I')
		after = read_not_finite(p, fields);
	else
		after = read_boolean(p, fields);
	return after ? after : no_value(reader, p, "this is not a value");
}

/* Most values are a few digits, mostly with an `i`: those without a call. */
static inline const char *line_read_value(struct line_reader *reader, const char *p,
					  struct line_fields *fields)
{
	uint64_t less = less_zero(load_word(p));
	unsigned count = leading_digits(less);
	if (LIKELY(count - 1 < 7)) {
		uint64_t number = digits_number(less, count);
		if (LIKELY(p[count] == 'i')) {
			fields->values[fields->count] = value_i64((int64_t)number);
			return p + count + 1;
		}
		if (p[count] == ',' || p[count] == ' ' || p[count] == '\n') {
			fields->values[fields->count] = value_f64((double)number);
			return p + count;
		}
	}
	return read_any_value(reader, p, fields);
}

/* ---- Step two ------------------------------------------------------------------------------- */

static enum line_result value_result(struct line_reader *reader)
{
	if (reader->bad.reason)
		return bad_at(reader, reader->text_at, reader->bad.too_long, reader->bad.reason);
	if (reader->end - reader->start <= LINE_MAX_BYTES)
		return LINE_CUT;
	line_stop(reader, true, "the text that begins here makes the line longer than 65536 bytes");
	return LINE_BAD;
}

static inline bool name_stands(const char *p, const uint64_t *words, size_t len)
{
	while (len > 8) {
		if (load_word(p) != *words)
			return false;
		p += 8;
		words++;
		len -= 8;
	}
	uint64_t unwanted = len == 8 ? 0 : UINT64_MAX << (8 * len);
	return ((load_word(p) ^ *words) & ~unwanted) == 0;
}

/* Reads fields as long as they are the expected ones; *at is left at the first byte after the last
 * value, or of the name that is another. LINE_DONE: after a value that no comma follows. */
static enum line_result read_expected(struct line_reader *reader, const char **at,
				      const struct line_names *expected, struct line_fields *fields)
{
	const char *p = *at;
	const uint64_t *words = expected->words;
	while (fields->count < expected->count) {
		size_t len = expected->lengths[fields->count];
		*at = p;
		if (!name_stands(p, words, len))
			return LINE_OK;
		words += (len + 7) / 8;
		p = line_read_value(reader, p + len, fields);
		if (UNLIKELY(!p))
			return value_result(reader);
		fields->count++;
		if (*p != ',') {
			*at = p;
			return LINE_DONE;
		}
		p++;
	}
	*at = p;
	return LINE_OK;
}

/* The fields so far were the expected ones; now their names are wanted after all. */
static void line_fill_names(const struct line_names *expected, struct line_fields *fields)
{
	const uint64_t *words = expected->words;
	for (size_t i = 0; i < fields->count; i++) {
		size_t len = expected->lengths[i];
		fields->names[i] = (struct slice){(const char *)words, len - 1};
		words += (len + 7) / 8;
	}
}

static enum line_result no_equals(struct line_reader *reader, const char *begin, const char *p)
{
	if (*p == '\n' && p > begin && p[-1] == '\r')
		p--;
	return line_bad(reader, p, p == begin ? "a field is missing" : "a field has no value");
}

static enum line_result line_read_name(struct line_reader *reader, const char **at,
				       struct slice *name)
{
	const char *begin = *at, *p = begin;
	for (;;) {
		p = scan(p, reader->end, LINE_SET_NAME);
		if (*p == '=')
			break;
		if (*p != '\\')
			return no_equals(reader, begin, p);
		p += p[1] == ',' || p[1] == '=' || p[1] == ' ' ? 2 : 1;
	}
	if (p == begin)
		return line_bad(reader, p, "a field has no name");
	*name = (struct slice){begin, (size_t)(p - begin)};
	*at = p + 1;
	return LINE_OK;
}

static enum line_result read_fields(struct line_reader *reader, const char **at,
				    struct line_fields *fields)
{
	const char *p = *at;
	for (;;) {
		if (fields->count == LINE_FIELDS_MAX)
			return bad_at(reader, p, true, "the line has more than 512 fields");
		enum line_result result = line_read_name(reader, &p, &fields->names[fields->count]);
		if (result != LINE_OK)
			return result;
		p = line_read_value(reader, p, fields);
		if (!p)
			return value_result(reader);
		fields->count++;
		if (*p != ',')
			break;
		p++;
	}
	*at = p;
	return LINE_OK;
}

/* To ms, towards the past. */
static bool scale_time(int64_t time, enum line_precision precision, int64_t *ts_ms)
{
	switch (precision) {
	case LINE_NS:
		*ts_ms = floor_div(time, 1000000);
		return true;
	case LINE_US:
		*ts_ms = floor_div(time, 1000);
		return true;
	case LINE_MS:
		*ts_ms = time;
		return true;
	case LINE_S:
		return !__builtin_mul_overflow(time, INT64_C(1000), ts_ms);
	case LINE_M:
		return !__builtin_mul_overflow(time, INT64_C(60000), ts_ms);
	case LINE_H:
		return !__builtin_mul_overflow(time, INT64_C(3600000), ts_ms);
	}
	return false;
}

static enum line_result line_read_time(struct line_reader *reader, const char **at,
				       struct line_fields *fields)
{
	const char *begin = *at;
	bool negative = *begin == '-', overflow;
	uint64_t magnitude;
	const char *p = read_digits(begin + negative, &magnitude, &overflow);
	if (UNLIKELY(p == begin + negative))
		return line_bad(reader, begin, "the time is not an integer");
	int64_t time = (int64_t)(negative ? -magnitude : magnitude);
	if (UNLIKELY(overflow || magnitude > (uint64_t)INT64_MAX + negative ||
		     !scale_time(time, reader->precision, &fields->ts_ms)))
		return line_bad(reader, begin, "the time does not fit 64 bits");
	fields->has_time = true;
	fields->time_at = begin;
	*at = p;
	return LINE_OK;
}

/* From the byte after the last value to the newline. */
static enum line_result read_end(struct line_reader *reader, const char *p,
				 struct line_fields *fields)
{
	const char *blank = p;
	p = line_skip_blanks(p);
	if (p > blank && !ends_line(p)) {
		enum line_result result = line_read_time(reader, &p, fields);
		if (UNLIKELY(result != LINE_OK))
			return result;
		p = line_skip_blanks(p);
	}
	if (UNLIKELY(!ends_line(p)))
		return line_bad(reader, p,
				fields->has_time ? "something follows the time"
						 : "something follows the value");
	p += *p == '\r' ? 2 : 1;
	if (UNLIKELY(too_long(reader, p)))
		return bad_length(reader);
	reader->at = p;
	reader->next_line++;
	return LINE_OK;
}

enum line_result line_fields(struct line_reader *reader, const struct line_names *expected,
			     struct line_fields *fields)
{
	const char *p = reader->at;
	fields->count = 0;
	fields->fault_count = 0;
	fields->expected = false;
	fields->has_time = false;
	if (expected) {
		enum line_result result = read_expected(reader, &p, expected, fields);
		if (result == LINE_DONE && LIKELY(fields->count == expected->count)) {
			fields->expected = true;
			return read_end(reader, p, fields);
		}
		if (result == LINE_CUT || result == LINE_BAD)
			return result;
		line_fill_names(expected, fields);
		if (result == LINE_DONE)
			return read_end(reader, p, fields);
	}
	enum line_result result = read_fields(reader, &p, fields);
	return result == LINE_OK ? read_end(reader, p, fields) : result;
}

/* ---- The key -------------------------------------------------------------------------------- */

static bool escapes(char c)
{
	return c == ',' || c == '=' || c == ' ';
}

size_t line_unescape(struct slice raw, char *to)
{
	size_t n = 0;
	for (size_t i = 0; i < raw.len; i++) {
		if (raw.data[i] == '\\' && i + 1 < raw.len && escapes(raw.data[i + 1]))
			i++;
		to[n++] = raw.data[i];
	}
	return n;
}

struct key_cursor {
	const char *at, *end;
	char *scratch;
};

/* The name up to an unescaped comma, or `=` if `stop_at_equals`, or the end. */
static struct slice key_name(struct key_cursor *c, bool stop_at_equals)
{
	const char *begin = c->at, *p = begin;
	bool escaped = false;
	for (; p < c->end && *p != ',' && !(stop_at_equals && *p == '='); p++) {
		if (*p == '\\' && p + 1 < c->end && escapes(p[1])) {
			escaped = true;
			p++;
		}
	}
	c->at = p;
	struct slice name = {begin, (size_t)(p - begin)};
	if (!escaped)
		return name;
	size_t len = line_unescape(name, c->scratch);
	name = (struct slice){c->scratch, len};
	c->scratch += len;
	return name;
}

/* Whether `raw` unescaped is `name`. */
static bool means(struct slice raw, struct slice name)
{
	size_t n = 0;
	for (size_t i = 0; i < raw.len; i++, n++) {
		if (raw.data[i] == '\\' && i + 1 < raw.len && escapes(raw.data[i + 1]))
			i++;
		if (n == name.len || raw.data[i] != name.data[n])
			return false;
	}
	return n == name.len;
}

/* The byte after the raw name at p: a comma, with `stop_at_equals` also a `=`, or the end. */
static const char *line_name_end(const char *p, const char *end, bool stop_at_equals)
{
	for (; p < end && *p != ',' && !(stop_at_equals && *p == '='); p++) {
		if (*p == '\\' && p + 1 < end && escapes(p[1]))
			p++;
	}
	return p;
}

const char *line_tag_place(struct slice key, struct slice name, size_t nth)
{
	const char *end = key.data + key.len, *p = line_name_end(key.data, end, false);
	while (p < end) {
		const char *begin = p + 1;
		p = line_name_end(begin, end, true);
		if (means((struct slice){begin, (size_t)(p - begin)}, name) && !nth--)
			return begin;
		p = line_name_end(p, end, false);
	}
	return end;
}

/* The cursor stands on the comma before the tag. */
static const char *line_read_tag(struct key_cursor *c, struct tag *tag)
{
	c->at++;
	tag->key = key_name(c, true);
	if (tag->key.len == 0)
		return "a tag has no name";
	if (c->at == c->end || *c->at != '=')
		return "a tag has no value";
	c->at++;
	tag->value = key_name(c, true);
	if (tag->value.len == 0)
		return "a tag has no value";
	if (c->at < c->end && *c->at == '=')
		return "a = in the value of a tag has no backslash";
	return NULL;
}

enum line_result line_tags(struct slice key, char *scratch, struct slice *measurement,
			   struct tag *tags, size_t *count, const char **at, const char **reason)
{
	struct key_cursor c = {key.data, key.data + key.len, scratch};
	*measurement = key_name(&c, false);
	*reason = measurement->len ? NULL : "the measurement is missing";
	*count = 0;
	while (!*reason && c.at < c.end) {
		if (*count == LINE_TAGS_MAX)
			*reason = "there are more than 64 tags";
		else
			*reason = line_read_tag(&c, &tags[(*count)++]);
	}
	*at = c.at;
	return *reason ? LINE_BAD : LINE_OK;
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* A newline would end the line within the name, and no door takes other control characters. */
static const char *line_name_fault(struct slice name)
{
	if (!name.len)
		return "a name or the value of a tag is empty";
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7f)
			return "a name or the value of a tag holds a control character";
	return name.data[name.len - 1] == '\\'
		       ? "line protocol has no form for a name that ends in a backslash"
		       : NULL;
}

const char *line_key_fault(struct slice measurement, struct tags tags)
{
	const char *fault = line_name_fault(measurement);
	if (!fault && measurement.data[0] == '#')
		fault = "line protocol has no form for a metric that begins with #";
	for (size_t i = 0; i < tags.count && !fault; i++) {
		fault = line_name_fault(tags.list[i].key);
		fault = fault ? fault : line_name_fault(tags.list[i].value);
	}
	return fault;
}

/* A `=` within a measurement means nothing, so it is left as it is, as InfluxDB's own tools do,
 * unless a backslash stands before it. */
static void line_append_name(struct slice name, bool is_measurement, struct buf *out)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool plain = c == '=' && is_measurement && (!i || name.data[i - 1] != '\\');
		if (escapes(c) && !plain)
			buf_append_char(out, '\\');
		buf_append_char(out, c);
	}
}

int line_append_key(struct slice measurement, struct tags tags, struct buf *out)
{
	if (line_key_fault(measurement, tags))
		return ERR_INVALID;
	line_append_name(measurement, true, out);
	for (size_t i = 0; i < tags.count; i++) {
		buf_append_char(out, ',');
		line_append_name(tags.list[i].key, false, out);
		buf_append_char(out, '=');
		line_append_name(tags.list[i].value, false, out);
	}
	return out->failed ? ERR_LIMIT : 0;
}

size_t line_print_value(char *to, struct value value)
{
	size_t len = number_print(to, value);
	if (value.type == VALUE_I64)
		to[len++] = 'i';
	else if (value.type == VALUE_U64)
		to[len++] = 'u';
	return len;
}
