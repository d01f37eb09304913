/* Fields of lines of logs: a format says how a line is read, and a reader gives the fields of one
 * line after the other (doc/demux.md).
 *
 *   pattern   literals with fields between them: <ip> - - [<time>] "<method> <path> <_>" <status>
 *   json      one object; members of objects within it have names that are joined by dots, and
 *             places in arrays stand behind the name: {"cpu":[{"user":1}]} has cpu.user.0
 *   SystemMetrics   what Chukwa's agents send of their hosts: JSON, with totals (fields_system.c)
 *   logfmt    key=value, with blanks between and texts in quotes
 *   columns   a line of names, and below it lines of words: df, iostat, sar, top, vmstat
 *
 * Only columns have something to remember from line to line: the names. A reader's state can be
 * written and given to another reader, which goes on as the first would have.
 *
 * Bytes in, struct out. A format is immutable, and lives as long as its arena; a reader belongs to
 * one thread. */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include "base/buf.h"
#include "base/mem.h"
#include "model/value.h"

enum {
	FIELDS_PATTERN_MAX_BYTES = 4096,
	FIELDS_PATTERNS_MAX = 8,     /* of one format */
	FIELDS_PATTERN_MAX = 64,     /* fields of all patterns of a format */
	FIELDS_NAME_MAX_BYTES = 200, /* of one field */
	FIELDS_MAX = 4096,           /* of one line */
	FIELDS_COLUMNS_MAX = 256,    /* names in a line of names */
	FIELDS_STATE_MAX_BYTES = 4096,
	FIELDS_MEMORY_MAX_BYTES = 4 << 20, /* of one line: names and texts that are made */
};

enum fields_kind {
	FIELDS_PATTERN,
	FIELDS_JSON,
	FIELDS_SYSTEM_METRICS,
	FIELDS_LOGFMT,
	FIELDS_COLUMNS,
};

/* Lists of words of columns. */
struct fields_words {
	const struct slice *list;
	size_t count;
};

struct fields_columns {
	/* A line that begins with one of these has the names. None: the first line behind an empty
	 * one, or at the beginning, of which no word begins with a digit. */
	struct fields_words headers;
	struct fields_words names; /* those of several words, a blank between: `Mounted on` */
	struct fields_words skips; /* lines that begin with these have no fields */
};

struct fields_pattern;

struct fields_format {
	enum fields_kind kind;
	const struct fields_pattern *patterns; /* the first that fits a line counts */
	size_t pattern_count;
	struct fields_words names; /* of the fields of patterns, each once */
	struct fields_columns columns;
};

struct fields_field {
	struct slice name;
	struct slice text; /* NULL data: the pattern that fits has no such field */
};

enum fields_result {
	FIELDS_READ,
	FIELDS_NONE, /* there is nothing in the line to be read: a line of names, an empty one */
	FIELDS_NOT,  /* it is no line of the format */
};

struct fields_reader {
	const struct fields_format *format;
	/* Fields of the last line that was read, until the next one. In those of a pattern, field i
	 * is that of names.list[i]. */
	struct fields_field *list;
	size_t count;
	bool cut; /* fields of the last line were left out: too many, or their names too long */
	/* Private. */
	size_t capacity;
	struct arena arena;
	struct slice columns[FIELDS_COLUMNS_MAX]; /* in column_text */
	size_t column_count;                      /* 0: lines are not of columns now */
	bool labelled; /* the first name was `avg-cpu:`, and lines below may lack it */
	bool within;   /* names were found since the last empty line */
	struct buf column_text;
};

/* Adds a pattern to a format, {.kind = FIELDS_PATTERN} at first. Texts are copied. ERR_INVALID with
 * a sentence, ERR_LIMIT: the arena is full.
 *
 * A field ends where the text behind it begins, the last one at the end of the line; what stands
 * behind a literal at the end of a pattern is not looked at. <_> is passed over. A < that begins no
 * <name> is a literal. A field that stands in double quotes holds none itself, unless behind a
 * backslash, which stays in its text: the request `-` is none of "<method> <path> <_>". */
int fields_format_add(struct fields_format *format, struct slice pattern, struct arena *arena,
		      struct errbuf *e) MUST_CHECK;

/* Which field of the patterns has the name; the count of names: none. */
size_t fields_format_find(const struct fields_format *format, struct slice name);
/* Whether no letter, digit or _ of the patterns stands beside a field, so that words of its text
 * are words of the line: of <ms>ms it is not. */
bool fields_format_is_apart(const struct fields_format *format, size_t place);

void fields_reader_init(struct fields_reader *reader, const struct fields_format *format);
void fields_reader_release(struct fields_reader *reader);

/* The line is without its newline; a carriage return at its end is left out. Texts that are read
 * lie in the line and the reader. */
enum fields_result fields_read(struct fields_reader *reader, struct slice line);

/* The last field with the name; NULL data: there is none. */
struct slice fields_find(const struct fields_reader *reader, struct slice name);

/* At most FIELDS_STATE_MAX_BYTES; nothing where there is nothing to remember. */
void fields_state_put(const struct fields_reader *reader, struct buf *out);
/* ERR_DAMAGED: no reader of this format has written it; the reader is as at the beginning. */
int fields_state_take(struct fields_reader *reader, struct slice state) MUST_CHECK;

/* The number that a text is: an integer of 64 bits where it is one, else a double. A
 * comma may be the point, and a % may stand behind. With a scale (of at least 1) the number is one
 * of bytes: K, M, G, T, P and E (either case, alone or as KiB) stand for powers of 1,024, kB and MB
 * for powers of 1,000, and a number without them is multiplied by the scale. ERR_INVALID: it is
 * none; ERR_LIMIT: no double is as large. */
int fields_number(struct slice text, uint64_t scale, struct value *out) MUST_CHECK;

/* ---- Private to fields*.c -------------------------------------------------------------------- */

bool fields_pattern_read(struct fields_reader *reader, struct slice line);
/* Makes the totals of SystemMetrics of the fields that were read. */
void fields_make_totals(struct fields_reader *reader);
enum fields_result fields_columns_read(struct fields_reader *reader, struct slice line);
/* Room for one more, cleared; NULL and cut: the line has too many. */
struct fields_field *fields_next(struct fields_reader *reader);

#endif
