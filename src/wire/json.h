/* JSON (RFC 8259): the one reader and the one writer of the project.
 *
 * The reader is strict: it takes what the standard takes and nothing else, and agrees with
 * Python's json module except where that one is laxer or richer:
 *  - NaN, Infinity and -Infinity are refused, unless `allow_nan` is set; the text must be UTF-8,
 *    without a byte order mark;
 *  - an escaped surrogate without its other half is refused, since no UTF-8 can hold it;
 *  - arrays and objects nest at most JSON_DEPTH_MAX deep;
 *  - a number has at most NUMBER_TEXT_MAX_BYTES;
 *  - integers beyond 64 bits become the nearest double.
 * With `lax` set it goes on at some of what it refuses, and says so (enum json_mended).
 *
 * Of equal keys of one object the last counts, as in Python: json_member gives that one, and who
 * reads events lets a later one replace an earlier.
 *
 * Two ways in, on the same scanner: events (json_next) and a tree (json_parse), both over one
 * complete text in memory. Events can be taken a few at a time, so a long text need not hold up a
 * loop.
 *
 * Bytes in, structs out: no I/O. Memory: only from the caller's arena. Threads: a reader belongs
 * to one. */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include "base/base.h"
#include "base/buf.h"
#include "model/value.h"

struct arena;

enum {
	JSON_DEPTH_MAX = 64,
	JSON_WRITE_DEPTH_MAX = 128, /* of the writer: our own code nests, not the input */
};

/* ---- Events ------------------------------------------------------------------------------- */

/* What a lax reader made of what is no JSON. */
enum json_mended {
	JSON_AS_IS,
	JSON_MENDED_WITHIN, /* of a tree: a value within is mended */
	JSON_NOT_UTF8,      /* U+FFFD stands in a text for what is not */
	JSON_TOO_DEEP,      /* null stands for an array or object */
	/* The text ends within it: a string has what is there, null stands for another value, an
	 * array or object ends. */
	JSON_CUT,
};

enum json_event {
	JSON_BAD, /* reader->reason says why, json_where where; it stays so */
	JSON_END, /* the one value was read and nothing but blanks followed */
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER, /* ->number; ->text is the literal */
	JSON_STRING, /* ->text */
	JSON_KEY,    /* ->text; its value comes next */
	JSON_ARRAY_BEGIN,
	JSON_ARRAY_END,
	JSON_OBJECT_BEGIN,
	JSON_OBJECT_END,
};

struct json_reader {
	/* of the last event */
	struct slice text; /* decoded; into the input where nothing was escaped, else the arena */
	struct value number;
	size_t offset;      /* of its first byte */
	const char *reason; /* constant; NULL while good */
	bool arena_full;    /* the reason is ours, not the sender's */

	/* To be set after init: NaN, Infinity and -Infinity are taken as numbers (->number is then
	 * not finite), for doors that refuse the one value and keep the rest of the text. */
	bool allow_nan;
	/* To be set after init: what `mended` can say is mended, for doors that keep what can be
	 * understood. Silently an escaped surrogate without its other half becomes U+FFFD, and a
	 * string may have control characters. */
	bool lax;
	enum json_mended mended; /* the last event */

	/* private */
	const char *start, *at, *end;
	struct arena *arena;
	unsigned depth;
	uint64_t objects; /* bit n: level n is an object */
	uint8_t expect;
};

/* `arena` takes decoded strings. `text` must outlive the reader and what it gave. */
void json_reader_init(struct json_reader *reader, struct slice text, struct arena *arena);

enum json_event json_next(struct json_reader *reader);

/* After an event that begins a value: reads to the end of that value (nothing to do for scalars).
 * After JSON_KEY: reads over the value of the key. False: bad. */
bool json_skip(struct json_reader *reader, enum json_event event) MUST_CHECK;

/* After JSON_ARRAY_BEGIN or JSON_OBJECT_BEGIN: if what begins here is byte for byte `same`, which
 * must be the whole text of an array or object that was read before, reads over it at the price of
 * comparing. */
bool json_skip_same(struct json_reader *reader, struct slice same) MUST_CHECK;

/* The input from `offset` up to where the reader stands: after a value was read or skipped and
 * `offset` was that of its beginning, the text of that value. */
struct slice json_text_from(const struct json_reader *reader, size_t offset);

/* Of the byte at `offset`, both from 1; the column counts characters. */
void json_where(struct slice text, size_t offset, size_t *line, size_t *column);

/* ERR_INVALID (ERR_LIMIT if the arena was full) with "line 3, column 14: <reason>". */
int json_error(const struct json_reader *reader, struct errbuf *e);

/* ---- Tree --------------------------------------------------------------------------------- */

enum json_type {
	JSON_T_NULL,
	JSON_T_BOOL,
	JSON_T_NUMBER,
	JSON_T_STRING,
	JSON_T_ARRAY,
	JSON_T_OBJECT
};

struct json {
	enum json_type type;
	bool boolean;
	uint8_t mended; /* enum json_mended */
	struct value number;
	struct slice text;  /* string; of a number its literal */
	struct slice key;   /* if it is a member of an object */
	struct json *next;  /* in the same array or object */
	struct json *first; /* child of an array or object */
	size_t count;       /* of children */
	size_t offset;      /* in the text */
};

/* The whole text as a tree in `arena`. ERR_INVALID with line, column and reason; ERR_LIMIT when the
 * arena is full. */
int json_parse(struct slice text, struct arena *arena, struct json **root,
	       struct errbuf *e) MUST_CHECK;
/* The same with `allow_nan` and `lax`, for doors that keep what can be understood. A number that is
 * not finite, 1e999 too, is in the tree as a string, its literal: JSON could not be written of the
 * number. What is mended has that in `mended`, and what it lies in has JSON_MENDED_WITHIN; a key
 * that is not UTF-8 counts as its value. */
int json_parse_lax(struct slice text, struct arena *arena, struct json **root,
		   struct errbuf *e) MUST_CHECK;

/* The member with this key, of several the last; NULL if there is none or `object` is NULL or no
 * object. */
const struct json *json_member(const struct json *object, const char *key);

/* The value of a member, if it is of this type. ERR_NOT_FOUND: there is none; ERR_INVALID: it is of
 * another type, or a number that does not fit (an infinity is no f64, 1.5 no i64, 3.0 is one). Both
 * with a sentence that names the key; *out stays as it was. */
int json_get_text(const struct json *object, const char *key, struct slice *out,
		  struct errbuf *e) MUST_CHECK;
int json_get_bool(const struct json *object, const char *key, bool *out,
		  struct errbuf *e) MUST_CHECK;
int json_get_i64(const struct json *object, const char *key, int64_t *out,
		 struct errbuf *e) MUST_CHECK;
int json_get_f64(const struct json *object, const char *key, double *out,
		 struct errbuf *e) MUST_CHECK;
int json_get_array(const struct json *object, const char *key, const struct json **out,
		   struct errbuf *e) MUST_CHECK;
int json_get_object(const struct json *object, const char *key, const struct json **out,
		    struct errbuf *e) MUST_CHECK;
/* Whether the object has members of these names only, a list that ends with NULL. ERR_INVALID with
 * a sentence that names the first other one. */
int json_check_members(const struct json *object, const char *const *names,
		       struct errbuf *e) MUST_CHECK;

/* ---- Writer ------------------------------------------------------------------------------- */

/* Appends to a buf; when that is full it says so (buf->failed), so nothing here returns an error.
 * Commas come by themselves. Wrong nesting is a programming error and asserted. Text that is not
 * UTF-8 is written with U+FFFD for what is wrong, so the output always is. */
struct json_writer {
	struct buf *out;
	unsigned depth;
	bool comma; /* a value stands before the next one */
	bool keyed; /* a key stands before the next value */
	uint8_t object[JSON_WRITE_DEPTH_MAX / 8];
};

void json_writer_init(struct json_writer *writer, struct buf *out);

void json_write_object_begin(struct json_writer *writer);
void json_write_object_end(struct json_writer *writer);
void json_write_array_begin(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);
void json_write_key(struct json_writer *writer, const char *key);
void json_write_key_slice(struct json_writer *writer, struct slice key);
void json_write_string(struct json_writer *writer, struct slice text);
void json_write_text(struct json_writer *writer, const char *text);
void json_write_bool(struct json_writer *writer, bool boolean);
void json_write_null(struct json_writer *writer);
void json_write_i64(struct json_writer *writer, int64_t number);
void json_write_u64(struct json_writer *writer, uint64_t number);
/* NaN, infinities and VALUE_NONE are written as null. */
void json_write_f64(struct json_writer *writer, double number);
void json_write_number(struct json_writer *writer, struct value number);
/* A member: a key and its value. */
void json_put_string(struct json_writer *writer, const char *key, struct slice text);
void json_put_text(struct json_writer *writer, const char *key, const char *text);
void json_put_bool(struct json_writer *writer, const char *key, bool boolean);
void json_put_null(struct json_writer *writer, const char *key);
void json_put_i64(struct json_writer *writer, const char *key, int64_t number);
void json_put_u64(struct json_writer *writer, const char *key, uint64_t number);
void json_put_f64(struct json_writer *writer, const char *key, double number);
void json_put_number(struct json_writer *writer, const char *key, struct value number);
/* null unless it is `there`. */
void json_put_i64_or_null(struct json_writer *writer, const char *key, bool there, int64_t number);
/* An array of them. */
void json_put_strings(struct json_writer *writer, const char *key, const struct slice *texts,
		      size_t count);
/* One value that is JSON already. */
void json_write_raw(struct json_writer *writer, struct slice json);
/* A tree, doubled keys included. */
void json_write_tree(struct json_writer *writer, const struct json *tree);
/* The same, but a number stays as it was written: 5 is not 5.0, and one of 40 digits has 40 digits.
 */
void json_write_literally(struct json_writer *writer, const struct json *tree);

/* A quoted and escaped string by itself. */
void json_append_string(struct buf *out, struct slice text);

#endif
