/* The text of an import: which format it has, and bodies for /write made of it, in order, some
 * megabytes each. Line protocol goes as it is; of other formats each sample becomes a line.
 *
 * What is refused is written in the format of the text, so that it can be imported again.
 *
 * One thread. */
#ifndef CMD_IMPORT_TEXT_H
#define CMD_IMPORT_TEXT_H

#include "base/mem.h"
#include "cmd/import_source.h"
#include "wire/line.h"
#include "wire/vm_line.h"

enum import_format { IMPORT_LINES, IMPORT_JSON, IMPORT_PROMETHEUS, IMPORT_CSV, IMPORT_FORMATS };

/* What they are called in a sentence, and by --format. */
extern const char *const import_format_names[IMPORT_FORMATS + 1];
extern const char *const import_format_words[IMPORT_FORMATS];

enum {
	IMPORT_BODY_BYTES = 8 << 20,      /* of one request, about */
	IMPORT_LINE_MAX_BYTES = 64 << 20, /* of a line of JSON */
	IMPORT_HASHED_BYTES = 4096,
	IMPORT_SHOWN_BYTES = 200, /* of a line that is longer than that */
};

/* Comments at the head of a file, which say what no line need say. */
#define IMPORT_PRECISION_MARK "# granary precision="
#define IMPORT_FORMAT_MARK    "# granary format="

/* Line `body_line` of a body, and those after it up to the next place, are of line `line` of the
 * text. */
struct import_place {
	uint64_t body_line, line;
	size_t source, source_len; /* in import_batch.source */
};

/* A body, and where the text is when all of it has been taken. */
struct import_batch {
	enum import_format format;
	struct buf body;
	struct buf refused; /* what could not be read, as it goes to the file of rejected lines */
	/* Line protocol has one place, that of the first line, since the body is the text. */
	struct import_place *places;
	size_t place_count, place_room;
	/* What the lines of the body are of: whole lines of the text; of JSON the names only. */
	struct buf source;
	uint64_t lines;         /* of the body */
	uint64_t refused_lines; /* of the text */
	uint64_t nans;          /* values that were left out */
	uint64_t offset, line;  /* of the text: the next import goes on there */
	uint64_t hash;          /* of all the text before */
};

/* In pieces: each whole block has the hash of those before it as its seed. */
struct import_hash {
	uint64_t before;
	size_t len;
	char block[IMPORT_HASHED_BYTES];
};

struct import_text {
	struct import_source *source;
	enum import_format format;
	uint64_t offset, line;   /* of the first byte of `text`; its line's number, from 1 */
	struct import_hash hash; /* of all before `offset` */
	struct buf text;
	size_t taken; /* bytes of `text` in front of `offset`: they stay while `vm` points there */
	/* A line that is being made into samples. */
	bool open;
	struct vm_line vm;
	struct arena arena; /* of the line; of others, of names that stay the same */
	struct slice names; /* of the line before, in the arena */
	struct buf key;     /* what its samples begin with */
};

void import_text_init(struct import_text *text, struct import_source *source);
void import_text_release(struct import_text *text);

/* By its first lines: the format, and what a comment says of the precision (empty: nothing), with
 * its line. ERR_INVALID with a sentence: it is none of ours. Nothing is consumed. */
int import_text_guess(struct import_text *text, struct slice *precision, uint64_t *precision_line,
		      struct errbuf *e) MUST_CHECK;
/* Passes over the bytes up to an offset, at which that line begins. ERR_INVALID: there are fewer,
 * or others than those of this hash. */
int import_text_skip(struct import_text *text, uint64_t offset, uint64_t line, uint64_t hash,
		     struct errbuf *e) MUST_CHECK;

void import_batch_init(struct import_batch *batch);
void import_batch_release(struct import_batch *batch);
/* The next body; an empty one where nothing is left. An error of the source, with its sentence. */
int import_text_batch(struct import_text *text, struct import_batch *batch,
		      struct errbuf *e) MUST_CHECK;

/* Adds why a line of the body was refused, as a comment with the number of its line of the text.
 * `name` is that of the file; column 0: none is known. */
void import_batch_say(struct import_batch *batch, const char *name, uint64_t body_line,
		      uint64_t column, struct slice reason);
/* Adds what line `body_line` of the body, which is `line` with its end, was made of: the line of
 * the text; of JSON, where a line may hold many samples, a line with this one. */
void import_batch_refuse(struct import_batch *batch, uint64_t body_line, struct slice line);

/* ---- Lines of a body ------------------------------------------------------------------------- */

/* One after the other, as the server reads them: a text within quotes may have ends of lines of its
 * own. Comments and blank lines are passed over. */
struct import_lines {
	struct line_reader reader;
	struct line_fields *fields;
	struct slice text;             /* of the present line, with its end */
	uint64_t first_line, end_line; /* the numbers that it has: [first_line, end_line) */
};

/* LINE_PADDING_BYTES after the body can be read; its first line has the number `line`. */
void import_lines_init(struct import_lines *lines, struct slice body, uint64_t line,
		       enum line_precision precision);
void import_lines_release(struct import_lines *lines);
bool import_lines_next(struct import_lines *lines);

/* How many bytes of a body are its first half, in whole lines; 0: it has one line, or none. */
size_t import_lines_half(struct slice body, enum line_precision precision);
uint64_t import_count_lines(struct slice text);

#endif
