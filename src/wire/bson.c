/* The reader of BSON. Documents that are open stand in an array, so nothing recurses. The cursor
 * ends where the innermost of them ends: no length can reach beyond it. A fault is sticky. */
#include "wire/bson.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/json_make.h"
#include "wire/timetext.h"

enum bson_type {
	BSON_DOUBLE = 0x01,
	BSON_STRING = 0x02,
	BSON_DOCUMENT = 0x03,
	BSON_ARRAY = 0x04,
	BSON_BINARY = 0x05,
	BSON_UNDEFINED = 0x06,
	BSON_OBJECT_ID = 0x07,
	BSON_BOOLEAN = 0x08,
	BSON_DATETIME = 0x09,
	BSON_NULL = 0x0a,
	BSON_REGEX = 0x0b,
	BSON_DB_POINTER = 0x0c,
	BSON_CODE = 0x0d,
	BSON_SYMBOL = 0x0e,
	BSON_CODE_WITH_SCOPE = 0x0f,
	BSON_INT32 = 0x10,
	BSON_TIMESTAMP = 0x11,
	BSON_INT64 = 0x12,
	BSON_DECIMAL128 = 0x13,
	BSON_MAX_KEY = 0x7f,
	BSON_MIN_KEY = 0xff,
};

enum bson_subtype { BSON_BINARY_OLD = 2, BSON_UUID_OLD = 3, BSON_UUID = 4 };

enum {
	BSON_OBJECT_ID_BYTES = 12,
	BSON_UUID_BYTES = 16,
	BSON_UUID_TEXT_BYTES = 36,
	/* Its length, the shortest string and the shortest document. */
	BSON_CODE_WITH_SCOPE_MIN_BYTES = 4 + 5 + BSON_DOCUMENT_MIN_BYTES,
	BSON_DECIMAL_PRINT_MAX_BYTES = 64,
};

/* What is open: a document, an array, or what holds code and its scope. */
struct bson_level {
	const uint8_t *end; /* its zero byte; code, and what is cut, have none */
	enum bson_type type;
	bool cut;
};

struct bson_reader {
	struct cursor c;
	const uint8_t *start;
	struct slice key; /* of the element that is read */
	struct json_maker maker;
	struct bson_level levels[JSON_DEPTH_MAX];
	unsigned level;
	const uint8_t *at;       /* of the element, or of what is wrong */
	const char *reason;      /* constant; NULL while good */
	bool cut;                /* there are fewer bytes than the document says */
	enum json_mended mended; /* the element */
};

/* The first fault counts. */
static void bson_fail(struct bson_reader *r, const uint8_t *at, const char *reason)
{
	if (!r->reason) {
		r->reason = reason;
		r->at = at;
	}
	r->c.bad = true;
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static struct slice bson_utf8(struct bson_reader *r, struct slice text)
{
	struct slice good = json_make_utf8(&r->maker, text);
	if (good.data != text.data)
		r->mended = JSON_NOT_UTF8;
	return good;
}

static struct slice bson_bytes(struct bson_reader *r, size_t len)
{
	const uint8_t *p = cursor_take(&r->c, len);
	return (struct slice){(const char *)p, p ? len : 0};
}

/* Text up to a zero byte: cstring ::= (byte*) "\x00" */
static struct slice bson_cstring(struct bson_reader *r, const char *reason)
{
	const uint8_t *begin = r->c.at;
	const uint8_t *zero = r->c.bad ? NULL : memchr(begin, 0, cursor_left(&r->c));
	if (!zero) {
		bson_fail(r, begin, reason);
		return (struct slice){NULL, 0};
	}
	r->c.at = zero + 1;
	return bson_utf8(r, (struct slice){(const char *)begin, (size_t)(zero - begin)});
}

/* string ::= int32 (byte*) "\x00": "The int32 is the number of bytes in the (byte*) plus one for
 * the trailing null byte." */
static struct slice bson_string(struct bson_reader *r)
{
	const uint8_t *begin = r->c.at;
	uint32_t len = cursor_u32(&r->c);
	if (!r->c.bad && len == 0)
		bson_fail(r, begin, "a string without room for its zero byte");
	struct slice text = bson_bytes(r, len);
	if (r->c.bad) {
		bson_fail(r, begin, "a string that is longer than its document");
		return text;
	}
	if (text.data[--text.len]) {
		bson_fail(r, begin, "a string that does not end with a zero byte");
		return text;
	}
	return bson_utf8(r, text);
}

static char *bson_put_hex(char *to, const char *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < len; i++) {
		*to++ = digits[(uint8_t)bytes[i] >> 4];
		*to++ = digits[(uint8_t)bytes[i] & 15];
	}
	return to;
}

/* ---- Binary --------------------------------------------------------------------------------- */

/* RFC 4122, 3: 8-4-4-4-12 digits. */
static struct slice bson_uuid(struct bson_reader *r, struct slice bytes)
{
	static const uint8_t groups[] = {4, 2, 2, 2, 6};
	char *text = json_make_room(&r->maker, BSON_UUID_TEXT_BYTES), *to = text;
	for (size_t i = 0; text && i < ARRAY_LEN(groups); i++) {
		if (i)
			*to++ = '-';
		to = bson_put_hex(to, bytes.data, groups[i]);
		bytes.data += groups[i];
	}
	return (struct slice){text, (size_t)(to - text)};
}

/* RFC 4648, 4. */
static struct slice bson_base64(struct bson_reader *r, struct slice bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = json_make_room(&r->maker, (bytes.len + 2) / 3 * 4), *to = text;
	for (size_t i = 0; text && i < bytes.len; i += 3) {
		size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
		uint8_t three[3] = {0};
		memcpy(three, bytes.data + i, n);
		*to++ = digits[three[0] >> 2];
		*to++ = digits[(three[0] & 3) << 4 | three[1] >> 4];
		*to++ = n > 1 ? digits[(three[1] & 15) << 2 | three[2] >> 6] : '=';
		*to++ = n > 2 ? digits[three[2] & 63] : '=';
	}
	return (struct slice){text, (size_t)(to - text)};
}

/* binary ::= int32 subtype (byte*); the old subtype has a second int32 length within its bytes. */
static void bson_add_binary(struct bson_reader *r)
{
	const uint8_t *begin = r->c.at;
	uint32_t len = cursor_u32(&r->c), inner;
	uint8_t subtype = cursor_u8(&r->c);
	struct slice bytes = bson_bytes(r, len), text;
	if (r->c.bad) {
		bson_fail(r, begin, "binary data that is longer than its document");
		return;
	}
	if (subtype == BSON_BINARY_OLD && len >= sizeof(inner)) {
		memcpy(&inner, bytes.data, sizeof(inner));
		if (inner == len - sizeof(inner))
			bytes = (struct slice){bytes.data + sizeof(inner), inner};
	}
	bool uuid = subtype == BSON_UUID_OLD || subtype == BSON_UUID;
	if (uuid && len == BSON_UUID_BYTES)
		text = bson_uuid(r, bytes);
	else
		text = utf8_is_valid(bytes) ? bytes : bson_base64(r, bytes);
	json_make_text(&r->maker, r->key, text);
}

/* ---- decimal128 ----------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 bson_wide;

/* IEEE 754-2008, 3.5.2, in binary encoding: the sign, then an exponent of 14 bits and an integer of
 * 113; two ones after the sign mean another layout, whose integers all pass 34 digits and count as
 * 0, or no number at all. */
static void bson_split_decimal(uint64_t high, uint64_t low, int *exponent, bson_wide *integer)
{
	enum { BIAS = 6176 };
	bson_wide max = 1;
	for (int i = 0; i < 34; i++)
		max *= 10;
	bool other = (high >> 61 & 3) == 3;
	*exponent = (int)(high >> (other ? 47 : 49) & 0x3fff) - BIAS;
	*integer = (bson_wide)(high & 0x1ffffffffffff) << 64 | low;
	if (other || *integer >= max)
		*integer = 0;
}

static size_t bson_print_integer(char *to, bson_wide integer)
{
	char reversed[40];
	size_t len = 0;
	do {
		reversed[len++] = (char)('0' + (int)(integer % 10));
		integer /= 10;
	} while (integer);
	for (size_t i = 0; i < len; i++)
		to[i] = reversed[len - 1 - i];
	return len;
}

/* The specification of decimal128, "To String Representation": without an exponent if it is at most
 * 0 and the first digit stands at most six places after the point. */
static int bson_print_decimal(char *to, size_t size, uint64_t high, uint64_t low)
{
	const char *sign = high >> 63 ? "-" : "";
	if ((high >> 58 & 0x1f) == 0x1f)
		return snprintf(to, size, "NaN");
	if ((high >> 58 & 0x1f) == 0x1e)
		return snprintf(to, size, "%sInfinity", sign);
	int exponent;
	bson_wide integer;
	char digits[40];
	bson_split_decimal(high, low, &exponent, &integer);
	int len = (int)bson_print_integer(digits, integer);
	int first = exponent + len - 1; /* the power of ten of the first digit */
	if (exponent > 0 || first < -6)
		return snprintf(to, size, "%s%.1s%s%.*sE%+d", sign, digits, len > 1 ? "." : "",
				len - 1, digits + 1, first);
	if (exponent == 0)
		return snprintf(to, size, "%s%.*s", sign, len, digits);
	int whole = len + exponent; /* how many digits stand before the point */
	if (whole > 0)
		return snprintf(to, size, "%s%.*s.%.*s", sign, whole, digits, len - whole,
				digits + whole);
	return snprintf(to, size, "%s0.%.*s%.*s", sign, -whole, "000000", len, digits);
}

static void bson_add_decimal(struct bson_reader *r)
{
	uint64_t low = cursor_u64(&r->c), high = cursor_u64(&r->c);
	char *text = json_make_room(&r->maker, BSON_DECIMAL_PRINT_MAX_BYTES);
	if (!text)
		return;
	int len = bson_print_decimal(text, BSON_DECIMAL_PRINT_MAX_BYTES, high, low);
	json_make_text(&r->maker, r->key, (struct slice){text, (size_t)len});
}

/* ---- Other scalars -------------------------------------------------------------------------- */

static void bson_add_double(struct bson_reader *r)
{
	struct value number = {cursor_u64(&r->c), VALUE_F64};
	json_make_number(&r->maker, r->key, number);
}

static void bson_add_datetime(struct bson_reader *r)
{
	int64_t ms = (int64_t)cursor_u64(&r->c);
	char *text = json_make_room(&r->maker, TIME_PRINT_MAX_BYTES);
	if (text)
		json_make_text(&r->maker, r->key, (struct slice){text, time_print(text, ms)});
}

static void bson_add_object_id(struct bson_reader *r)
{
	struct slice id = bson_bytes(r, BSON_OBJECT_ID_BYTES);
	char *text = json_make_room(&r->maker, 2 * BSON_OBJECT_ID_BYTES);
	if (!text)
		return;
	bson_put_hex(text, id.data, id.len);
	json_make_text(&r->maker, r->key, (struct slice){text, 2 * id.len});
}

/* regex ::= cstring cstring */
static void bson_add_regex(struct bson_reader *r)
{
	static const char reason[] = "a regular expression without its end";
	struct slice pattern = bson_cstring(r, reason), options = bson_cstring(r, reason);
	size_t len = pattern.len + options.len + 2;
	char *text = json_make_room(&r->maker, len);
	if (!text || r->c.bad)
		return;
	text[0] = '/';
	memcpy(text + 1, pattern.data, pattern.len);
	text[1 + pattern.len] = '/';
	memcpy(text + 2 + pattern.len, options.data, options.len);
	json_make_text(&r->maker, r->key, (struct slice){text, len});
}

/* DBPointer ::= string (byte*12) */
static void bson_add_db_pointer(struct bson_reader *r)
{
	struct slice collection = bson_string(r), id = bson_bytes(r, BSON_OBJECT_ID_BYTES);
	char *text = json_make_room(&r->maker, collection.len + 1 + 2 * BSON_OBJECT_ID_BYTES);
	if (!text || r->c.bad)
		return;
	memcpy(text, collection.data, collection.len);
	text[collection.len] = ':';
	char *end = bson_put_hex(text + collection.len + 1, id.data, id.len);
	json_make_text(&r->maker, r->key, (struct slice){text, (size_t)(end - text)});
}

/* ---- Structure ------------------------------------------------------------------------------ */

/* False: one more level is allowed. Else null is made in its place, and the cursor moves behind it.
 */
static bool bson_pass_deep(struct bson_reader *r, const uint8_t *behind)
{
	if (r->level < JSON_DEPTH_MAX)
		return false;
	json_make_null(&r->maker, r->key);
	r->mended = JSON_TOO_DEEP;
	r->c.at = behind;
	return true;
}

static void bson_open_level(struct bson_reader *r, enum bson_type type, const uint8_t *end,
			    bool cut)
{
	json_make(&r->maker, type == BSON_ARRAY ? JSON_T_ARRAY : JSON_T_OBJECT, r->key);
	r->levels[r->level++] = (struct bson_level){end, type, cut};
	r->c.end = end;
}

/* document ::= int32 e_list "\x00": "The int32 is the total number of bytes comprising the
 * document." */
static void bson_open(struct bson_reader *r, enum bson_type type)
{
	const uint8_t *begin = r->c.at;
	uint32_t len = cursor_u32(&r->c);
	bool fits = !r->c.bad && len >= BSON_DOCUMENT_MIN_BYTES;
	bool cut = fits && len - 4 > cursor_left(&r->c) && (r->cut || !r->level);
	r->cut |= cut;
	if (cut && !bson_pass_deep(r, r->c.end))
		bson_open_level(r, type, r->c.end, true);
	if (cut)
		return;
	if (!fits || len - 4 > cursor_left(&r->c))
		bson_fail(r, begin, "a document whose length does not fit");
	else if (begin[len - 1])
		bson_fail(r, begin, "a document that does not end with a zero byte");
	else if (!bson_pass_deep(r, begin + len))
		bson_open_level(r, type, begin + len - 1, false);
}

/* code_w_s ::= int32 string document: "The int32 is the length in bytes of the entire code_w_s
 * value." */
static void bson_open_code_with_scope(struct bson_reader *r)
{
	const uint8_t *begin = r->c.at;
	uint32_t len = cursor_u32(&r->c);
	if (r->c.bad || len < BSON_CODE_WITH_SCOPE_MIN_BYTES || len - 4 > cursor_left(&r->c)) {
		bson_fail(r, begin, "code with scope whose length does not fit");
		return;
	}
	if (bson_pass_deep(r, begin + len))
		return;
	bson_open_level(r, BSON_CODE_WITH_SCOPE, begin + len, false);
	json_make_text(&r->maker, SLICE("code"), bson_string(r));
	r->key = SLICE("scope");
	bson_open(r, BSON_DOCUMENT);
}

/* The cursor is at the end of what was opened last. */
static void bson_close(struct bson_reader *r)
{
	const struct bson_level *level = &r->levels[--r->level];
	if (level->cut)
		json_make_cut(&r->maker);
	else if (level->type != BSON_CODE_WITH_SCOPE)
		r->c.at++;
	json_make_end(&r->maker);
	if (!r->level)
		return;
	const struct bson_level *outer = &r->levels[r->level - 1];
	r->c.end = outer->end;
	if (outer->type == BSON_CODE_WITH_SCOPE && r->c.at != outer->end)
		bson_fail(r, r->c.at, "more bytes after the scope of code");
}

static void bson_add_value(struct bson_reader *r, enum bson_type type)
{
	struct json_maker *m = &r->maker;
	switch (type) {
	case BSON_DOUBLE:
		bson_add_double(r);
		return;
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
		json_make_text(m, r->key, bson_string(r));
		return;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
		bson_open(r, type);
		return;
	case BSON_BINARY:
		bson_add_binary(r);
		return;
	case BSON_UNDEFINED:
	case BSON_NULL:
		json_make_null(m, r->key);
		return;
	case BSON_OBJECT_ID:
		bson_add_object_id(r);
		return;
	case BSON_BOOLEAN:
		json_make_bool(m, r->key, cursor_u8(&r->c) != 0);
		return;
	case BSON_DATETIME:
		bson_add_datetime(r);
		return;
	case BSON_REGEX:
		bson_add_regex(r);
		return;
	case BSON_DB_POINTER:
		bson_add_db_pointer(r);
		return;
	case BSON_CODE_WITH_SCOPE:
		bson_open_code_with_scope(r);
		return;
	case BSON_INT32:
		json_make_number(m, r->key, value_i64((int32_t)cursor_u32(&r->c)));
		return;
	case BSON_TIMESTAMP:
		json_make_number(m, r->key, value_u64(cursor_u64(&r->c)));
		return;
	case BSON_INT64:
		json_make_number(m, r->key, value_i64((int64_t)cursor_u64(&r->c)));
		return;
	case BSON_DECIMAL128:
		bson_add_decimal(r);
		return;
	case BSON_MAX_KEY:
		json_make_text(m, r->key, SLICE("MaxKey"));
		return;
	case BSON_MIN_KEY:
		json_make_text(m, r->key, SLICE("MinKey"));
		return;
	}
	bson_fail(r, r->at, "an element of an unknown type");
}

static void bson_add_element(struct bson_reader *r)
{
	r->at = r->c.at;
	r->mended = JSON_AS_IS;
	enum bson_type type = cursor_u8(&r->c);
	r->key = bson_cstring(r, "a key without its end");
	if (r->levels[r->level - 1].type == BSON_ARRAY)
		r->key = (struct slice){NULL, 0};
	if (r->c.bad)
		return;
	unsigned level = r->level;
	struct json **made = r->maker.tail[r->maker.level];
	bson_add_value(r, type);
	if (*made)
		(*made)->offset = (size_t)(r->at - r->start);
	if (*made && r->mended)
		json_make_mended(&r->maker, *made, r->mended);
	if (r->c.bad)
		bson_fail(r, r->at, "a value that is longer than its document");
	if (r->c.bad && *made && r->level == level)
		json_make_undo(&r->maker, made);
}

/* Ends all levels that are open in a document that is cut. False: it is not cut, or the cut is
 * before its first element. */
static bool bson_end_cut(struct bson_reader *r, const struct json *root)
{
	if (!r->cut || r->maker.full || !root || !root->first)
		return false;
	for (; r->level; r->level--) {
		json_make_cut(&r->maker);
		json_make_end(&r->maker);
	}
	return true;
}

int bson_parse(struct slice bytes, struct arena *arena, struct json **root, struct errbuf *e)
{
	struct bson_reader r = {.c = cursor_of(bytes.data, bytes.len)};
	r.start = r.at = r.c.at;
	json_maker_init(&r.maker, arena, root);
	bson_open(&r, BSON_DOCUMENT);
	while (r.level && !r.c.bad && !r.maker.full) {
		if (r.c.at < r.c.end)
			bson_add_element(&r);
		else
			bson_close(&r);
	}
	if (r.maker.full)
		return errbuf_set(e, ERR_LIMIT,
				  "BSON, byte %zu: more values than memory is allowed for",
				  (size_t)(r.at - r.start));
	if (r.cut && !(*root)->first) {
		r.reason = NULL;
		bson_fail(&r, r.start, "a document whose length does not fit");
	}
	if (r.c.bad && !bson_end_cut(&r, *root))
		return errbuf_set(e, ERR_INVALID, "BSON, byte %zu: %s", (size_t)(r.at - r.start),
				  r.reason);
	return 0;
}
