/* The writer of JSON. */
#include "base/utf8.h"
#include "base/visible.h"
#include "wire/json.h"
#include "wire/number.h"
#include "wire/plain.h"

/* ---- Strings -------------------------------------------------------------------------------- */

static void append_escape(struct buf *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[] = "btn?fr"; /* from 0x08 on; 0x0b has none */
	char text[6] = {'\\', (char)c};
	if (c >= 0x20) {
		buf_append(out, text, 2);
	} else if (c >= 0x08 && c <= 0x0d && c != 0x0b) {
		text[1] = letters[c - 0x08];
		buf_append(out, text, 2);
	} else {
		memcpy(text, "\\u00", 4);
		text[4] = hex[c >> 4];
		text[5] = hex[c & 15];
		buf_append(out, text, 6);
	}
}

/* Of more than one byte. What a terminal would obey, or what turns text around, is for a reader of
 * JSON the same character, and a person sees it in an answer and in the sentence of an error. */
static void append_character(struct buf *out, const char *p, size_t len)
{
	uint32_t code = utf8_code((const uint8_t *)p, len);
	if (visible_is_command(code))
		buf_printf(out, "\\u%04x", (unsigned)code);
	else
		buf_append(out, p, len);
}

/* ASCII from 0x20 on: DEL is a control character, which JSON does not mind. */
static void append_plain(struct buf *out, const char *p, const char *end)
{
	const char *del;
	while (p < end && (del = memchr(p, 0x7f, (size_t)(end - p)))) {
		buf_append(out, p, (size_t)(del - p));
		buf_append_text(out, "\\u007f");
		p = del + 1;
	}
	buf_append(out, p, (size_t)(end - p));
}

static void json_write_escaped(struct buf *out, const char *p, const char *end)
{
	while (p < end) {
		const char *stop = plain_end(p, end);
		append_plain(out, p, stop);
		if (stop == end)
			return;
		size_t len = utf8_length((const uint8_t *)stop, (size_t)(end - stop));
		p = stop + (len ? len : 1);
		if (len == 0)
			buf_append_text(out, "\xef\xbf\xbd"); /* U+FFFD */
		else if (len == 1)
			append_escape(out, (unsigned char)*stop);
		else
			append_character(out, stop, len);
	}
}

/* Of some bytes, which all stand for themselves. */
static bool json_is_plain(struct slice text)
{
	return text.len && plain_end(text.data, text.data + text.len) == text.data + text.len &&
	       !memchr(text.data, 0x7f, text.len);
}

void json_append_string(struct buf *out, struct slice text)
{
	char *to = json_is_plain(text) ? buf_reserve(out, text.len + 2) : NULL;
	if (to) { /* most are so */
		*to = '"';
		memcpy(to + 1, text.data, text.len);
		to[text.len + 1] = '"';
		out->len += text.len + 2;
		return;
	}
	buf_append_char(out, '"');
	if (text.len)
		json_write_escaped(out, text.data, text.data + text.len);
	buf_append_char(out, '"');
}

/* ---- Structure ------------------------------------------------------------------------------ */

void json_writer_init(struct json_writer *w, struct buf *out)
{
	*w = (struct json_writer){.out = out};
}

static bool level_is_object(const struct json_writer *w)
{
	unsigned level = w->depth - 1;
	return w->depth && (w->object[level / 8] >> (level % 8) & 1);
}

/* Before each value: the comma between elements; in an object the key has seen to it. */
static void begin_value(struct json_writer *w)
{
	ASSERT(w->keyed == level_is_object(w));
	if (w->comma && !w->keyed)
		buf_append_char(w->out, ',');
	w->keyed = false;
	w->comma = true;
}

static void json_write_begin_level(struct json_writer *w, bool object)
{
	ASSERT(w->depth < JSON_WRITE_DEPTH_MAX);
	begin_value(w);
	uint8_t bit = (uint8_t)(1u << (w->depth % 8));
	uint8_t *byte = &w->object[w->depth / 8];
	*byte = object ? *byte | bit : *byte & (uint8_t)~bit;
	w->depth++;
	w->comma = false;
	buf_append_char(w->out, object ? '{' : '[');
}

static void end_level(struct json_writer *w, bool object)
{
	ASSERT(w->depth && level_is_object(w) == object && !w->keyed);
	w->depth--;
	w->comma = true;
	buf_append_char(w->out, object ? '}' : ']');
}

void json_write_object_begin(struct json_writer *w)
{
	json_write_begin_level(w, true);
}

void json_write_object_end(struct json_writer *w)
{
	end_level(w, true);
}

void json_write_array_begin(struct json_writer *w)
{
	json_write_begin_level(w, false);
}

void json_write_array_end(struct json_writer *w)
{
	end_level(w, false);
}

void json_write_key_slice(struct json_writer *w, struct slice key)
{
	ASSERT(level_is_object(w) && !w->keyed);
	if (w->comma)
		buf_append_char(w->out, ',');
	json_append_string(w->out, key);
	buf_append_char(w->out, ':');
	w->keyed = true;
}

void json_write_key(struct json_writer *w, const char *key)
{
	json_write_key_slice(w, slice_of(key));
}

/* ---- Scalars -------------------------------------------------------------------------------- */

void json_write_raw(struct json_writer *w, struct slice json)
{
	begin_value(w);
	buf_append(w->out, json.data, json.len);
}

void json_write_string(struct json_writer *w, struct slice text)
{
	begin_value(w);
	json_append_string(w->out, text);
}

void json_write_text(struct json_writer *w, const char *text)
{
	json_write_string(w, slice_of(text));
}

void json_write_bool(struct json_writer *w, bool boolean)
{
	json_write_raw(w, boolean ? SLICE("true") : SLICE("false"));
}

void json_write_null(struct json_writer *w)
{
	json_write_raw(w, SLICE("null"));
}

static bool has_no_form(struct value number)
{
	if (number.type != VALUE_F64)
		return number.type == VALUE_NONE;
	return !__builtin_isfinite(value_as_f64(number));
}

void json_write_number(struct json_writer *w, struct value number)
{
	if (has_no_form(number)) {
		json_write_null(w);
		return;
	}
	begin_value(w);
	number_append(w->out, number);
}

void json_write_i64(struct json_writer *w, int64_t number)
{
	json_write_number(w, value_i64(number));
}

void json_write_u64(struct json_writer *w, uint64_t number)
{
	json_write_number(w, value_u64(number));
}

void json_write_f64(struct json_writer *w, double number)
{
	json_write_number(w, value_f64(number));
}

void json_put_string(struct json_writer *w, const char *key, struct slice text)
{
	json_write_key(w, key);
	json_write_string(w, text);
}

void json_put_text(struct json_writer *w, const char *key, const char *text)
{
	json_write_key(w, key);
	json_write_text(w, text);
}

void json_put_bool(struct json_writer *w, const char *key, bool boolean)
{
	json_write_key(w, key);
	json_write_bool(w, boolean);
}

void json_put_null(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_null(w);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t number)
{
	json_write_key(w, key);
	json_write_i64(w, number);
}

void json_put_u64(struct json_writer *w, const char *key, uint64_t number)
{
	json_write_key(w, key);
	json_write_u64(w, number);
}

void json_put_f64(struct json_writer *w, const char *key, double number)
{
	json_write_key(w, key);
	json_write_f64(w, number);
}

void json_put_number(struct json_writer *w, const char *key, struct value number)
{
	json_write_key(w, key);
	json_write_number(w, number);
}

void json_put_i64_or_null(struct json_writer *w, const char *key, bool there, int64_t number)
{
	if (there)
		json_put_i64(w, key, number);
	else
		json_put_null(w, key);
}

void json_put_strings(struct json_writer *w, const char *key, const struct slice *texts,
		      size_t count)
{
	json_write_key(w, key);
	json_write_array_begin(w);
	for (size_t i = 0; i < count; i++)
		json_write_string(w, texts[i]);
	json_write_array_end(w);
}
