/* The text of an import: which format it has, and bodies for /write made of it, in order, some
 * megabytes each. Line protocol goes as it is; of other formats each sample becomes a line.
 *
 * One thread. */
#ifndef CMD_IMPORT_TEXT_H
#define CMD_IMPORT_TEXT_H

#include "base/mem.h"
#include "cmd/import_source.h"
#include "wire/line.h"
#include "wire/vm_line.h"

enum import_format { IMPORT_LINES, IMPORT_JSON, IMPORT_PROMETHEUS, IMPORT_CSV, IMPORT_FORMATS };

extern const char *const import_format_names[IMPORT_FORMATS + 1];

enum {
	IMPORT_BODY_BYTES = 8 << 20,      /* of one request, about */
	IMPORT_LINE_MAX_BYTES = 64 << 20, /* of a line of JSON */
	IMPORT_SHOWN_BYTES = 200,         /* of a line that cannot be read */
};

/* Line `body_line` of a body, and those after it up to the next place, are of line `line` of the
 * text. */
struct import_place {
	uint64_t body_line, line;
};

/* A body, and where the text is when all of it has been taken. */
struct import_batch {
	struct buf body;
	struct buf refused; /* what could not be read, as it goes to the file of rejected lines */
	struct import_place *places;
	size_t place_count, place_room;
	bool side_by_side;      /* of line protocol: one place, of the first line */
	uint64_t lines;         /* of the body */
	uint64_t refused_lines; /* of the text */
	uint64_t nans;          /* values that were left out */
	uint64_t offset, line;  /* of the text: the next import goes on there */
};

struct import_text {
	struct import_source *source;
	enum import_format format;
	uint64_t offset, line; /* of the first byte of `text`; its line's number, from 1 */
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

/* By its first lines: the format, and what a comment says of the precision (empty: nothing).
 * ERR_INVALID with a sentence: it is none of ours. Nothing is consumed. */
int import_text_guess(struct import_text *text, struct slice *precision,
		      struct errbuf *e) MUST_CHECK;
/* Passes over the bytes up to an offset, at which that line begins. */
int import_text_skip(struct import_text *text, uint64_t offset, uint64_t line,
		     struct errbuf *e) MUST_CHECK;

void import_batch_init(struct import_batch *batch);
void import_batch_release(struct import_batch *batch);
/* The next body; an empty one where nothing is left. An error of the source, with its sentence. */
int import_text_batch(struct import_text *text, struct import_batch *batch,
		      struct errbuf *e) MUST_CHECK;
/* Which line of the text a line of the body is of, both from 1. */
uint64_t import_batch_line(const struct import_batch *batch, uint64_t body_line);

#endif
