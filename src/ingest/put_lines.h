/* OpenTSDB's telnet commands: `put` lines into an ingest_request, the others answered.
 *
 * Private to ingest/, tests and fuzzing; the loop's thread. */
#ifndef INGEST_PUT_LINES_H
#define INGEST_PUT_LINES_H

#include "base/buf.h"
#include "ingest/ingest.h"

struct put_lines {
	struct ingest_request *r;
	struct slice tenant; /* NULL data: by each line's tags */
	size_t line_max_bytes;
	uint64_t line; /* number of the line that comes next */
};

/* Whole lines, each with its \n. Gives how many bytes were taken: all, or those before the first
 * line that is neither blank nor a put. */
size_t put_lines_feed(struct put_lines *lines, struct slice bytes);

/* The first line, if it is neither blank nor a put. */
bool put_lines_command(struct slice bytes, struct slice *command);

/* Tells the sender about the refusals of a request. */
void put_lines_refusals(const struct ingest_request *r, struct buf *out);
/* The answer to any other command; *over: the sender wishes to end. `now_s` is for `stats`. */
void put_lines_answer(struct slice command, int64_t now_s, struct buf *out, bool *over);

#endif
