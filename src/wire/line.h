/* Influx line protocol: bytes in, numbers and names out.
 *
 *     measurement[,tag=value...] field=value[,field=value...] [timestamp]
 *
 * A reader goes over a buffer of whole lines in two steps per line: line_next() finds the key (the
 * raw bytes of measurement and tags), line_fields() reads the rest. Between the two the caller may
 * look the key up and say which field names it expects: then names are compared, not parsed. The
 * key itself is taken apart by line_tags(), which only an unknown key needs.
 *
 * What is taken:
 *  - A backslash before a comma, a blank or a `=` takes away its meaning, in measurement, tag key,
 *    tag value and field key. Before anything else, also another backslash, it is an ordinary byte.
 *    Quotes are ordinary there.
 *  - Field values: `12i` (i64), `12u` (u64), `1.5` `-2` `+1e3` `.5` `1.` (f64), t T true True TRUE
 *    f F false False FALSE (f64 1 and 0), and "text", in which \" and \\ are escapes and a newline
 *    is a byte like others. A + may stand before any number. Text is no number, and NaN, infinities
 *    (also what passes every double) and integers outside of their type are none that can be kept:
 *    such fields have VALUE_NONE and stand in `faults`.
 *  - The time is an integer in the unit given to the reader, cut to ms towards the past.
 *  - Lines end with \n or \r\n; blank lines, blanks before a line, several blanks between its parts
 *    and lines that begin with # are skipped over.
 * A line that is none of this is bad: its place and a constant reason are told, and reading goes on
 * after the next newline, whatever quotes the line may have opened.
 *
 * No state but the reader, no allocation, any thread. The search for separators uses AVX2 where the
 * machine has it (chosen at start), with a plain twin of identical results. */
#ifndef WIRE_LINE_H
#define WIRE_LINE_H

#include "base/base.h"
#include "model/series.h"
#include "model/value.h"

struct buf;

enum {
	/* Readable bytes that must follow what a reader is given, of any content: numbers and
	 * separators are read in blocks. */
	LINE_PADDING_BYTES = 64,
	LINE_MAX_BYTES = 64 << 10, /* of one line, its newline included */
	LINE_FIELDS_MAX = 512,
	LINE_TAGS_MAX = TAGS_MAX + 1, /* one may name the tenant */
	LINE_NUMBER_MAX_BYTES = 512,  /* of one number */
};

enum line_precision {
	LINE_NS, /* the default */
	LINE_US,
	LINE_MS,
	LINE_S,
	LINE_M,
	LINE_H,
};

/* `ns` `n` `us` `u` `µs` `µ` `ms` `s` `m` `h`; empty is ns. ERR_INVALID for others. */
int line_precision_parse(struct slice text, enum line_precision *precision) MUST_CHECK;

struct line_bad {
	uint64_t line;   /* from 1 */
	uint32_t column; /* from 1, in bytes */
	bool too_long;   /* a limit rather than the grammar */
	const char *reason;
};

struct line_reader {
	const char *at, *end;
	const char *start; /* of the present line, blanks before it included */
	uint64_t line;     /* its number, from 1 */
	enum line_precision precision;
	size_t line_max_bytes; /* LINE_MAX_BYTES; may be set lower after init */
	struct line_bad bad;
	/* private */
	uint64_t next_line;  /* number of the line after the present one, as far as it was read */
	const char *text_at; /* where the text or bad value begins that ended a line */
};

enum line_result {
	LINE_OK,
	LINE_DONE, /* nothing is left */
	LINE_CUT,  /* a text is not closed before the end: more must follow reader->start */
	LINE_BAD,  /* reader->bad says why; the reader stands on the next line */
};

/* `len` bytes of whole lines: the last byte is \n (or there is none), and LINE_PADDING_BYTES after
 * it can be read. The first line has the number `line`. */
void line_reader_init(struct line_reader *reader, const char *bytes, size_t len, uint64_t line,
		      enum line_precision precision);

/* Step one. LINE_OK: *key is `measurement,tags`, raw, not yet looked into. Never LINE_CUT. */
enum line_result line_next(struct line_reader *reader, struct slice *key);

/* Looks ahead, without a word on what is wrong: the key of the line that begins at *at, if that is
 * an ordinary line, and where the next one should begin. False at the end. A guess, for fetching
 * what the line will need: a text with a newline in it, for one, leads it astray. */
bool line_peek(const char **at, const char *end, struct slice *key);
/* line_next with what line_peek gave: where that was right, its key need not be found again. */
enum line_result line_next_peeked(struct line_reader *reader, struct slice peeked,
				  struct slice *key);

/* The field names of a line that came before, in the order in which they stood: each raw with its
 * `=`, padded with zeros to whole words. */
struct line_names {
	size_t count;
	const uint64_t *words;   /* of all names, one after the other */
	const uint16_t *lengths; /* in bytes, with the `=` */
};

enum line_fault_kind { LINE_FAULT_TEXT, LINE_FAULT_NOT_FINITE, LINE_FAULT_OUT_OF_RANGE };

struct line_fault {
	uint16_t field;
	uint8_t kind;
	const char *at; /* where the value begins */
};

/* What step two fills. About 25 KB: one per thread, not one per line. */
struct line_fields {
	size_t count;
	bool expected; /* the names are just those expected; `names` is not set */
	bool has_time;
	int64_t ts_ms;
	const char *time_at; /* where the time begins, if there is one */
	size_t fault_count;
	struct value values[LINE_FIELDS_MAX];
	struct slice names[LINE_FIELDS_MAX]; /* raw, without the `=`; may repeat */
	struct line_fault faults[LINE_FIELDS_MAX];
};

/* Step two, after LINE_OK. `expected` may be NULL. Never LINE_DONE. After LINE_CUT the reader is of
 * no use: begin again at its `start` when more has come, or call line_skip. */
enum line_result line_fields(struct line_reader *reader, const struct line_names *expected,
			     struct line_fields *fields);

/* After LINE_CUT, when no more will come or the line is too long already: makes it a bad line. The
 * reader goes on after the first newline of the line. */
void line_skip(struct line_reader *reader);

/* The place of `at`, which lies in the present line, as line and column. */
struct line_bad line_place(const struct line_reader *reader, const char *at);

/* `key` as line_next gave it, taken apart: slices of `key` or of `scratch` (unescaped names), which
 * has room for key.len bytes. At most LINE_TAGS_MAX tags, in the order sent, unchecked but for what
 * the grammar says: nothing empty. LINE_OK or LINE_BAD, where only *at and *reason are told. */
enum line_result line_tags(struct slice key, char *scratch, struct slice *measurement,
			   struct tag *tags, size_t *count, const char **at, const char **reason);

/* Where in such a key the tag begins that is called `name` (unescaped), or, of several, the one
 * that `nth` (from 0) others of that name stand before; the end of the key if there is none. */
const char *line_tag_place(struct slice key, struct slice name, size_t nth);

/* The length of `raw` unescaped, written to `to` (at most raw.len bytes). */
size_t line_unescape(struct slice raw, char *to);

/* ---- Writing -------------------------------------------------------------------------------- */

/* Appends `measurement,tag=value...`, escaped so that line_next and line_tags give these names
 * back. ERR_INVALID, and nothing is appended: line_key_fault says why. ERR_LIMIT beyond the
 * buffer's maximum. */
int line_append_key(struct slice measurement, struct tags tags, struct buf *out) MUST_CHECK;
/* Why lines have no form for these names, or NULL: one is empty, holds a control character (a
 * newline among them) or ends in a backslash, or the measurement begins with #. */
const char *line_key_fault(struct slice measurement, struct tags tags) MUST_CHECK;
/* A field's value with the suffix of its type, at most NUMBER_PRINT_MAX_BYTES + 1; gives how many
 * bytes. NaN and infinities are written as number_print does, and refused by readers. */
size_t line_print_value(char *to, struct value value);

/* ---- The search, for tests ------------------------------------------------------------------ */

enum line_set {
	LINE_SET_KEY,  /* blank, backslash, newline */
	LINE_SET_NAME, /* comma, `=`, blank, backslash, newline */
	LINE_SET_TEXT, /* quote, backslash */
};

/* The first byte of the set in [p, end), or end; may read up to LINE_PADDING_BYTES after it. */
typedef const char *line_scan_fn(const char *p, const char *end, enum line_set set);

line_scan_fn line_scan_plain;
line_scan_fn line_scan_avx2; /* only where line_has_avx2() */
bool line_has_avx2(void);
/* What readers use from now on: for tests; not while another thread reads. */
void line_use_avx2(bool use);

#endif
