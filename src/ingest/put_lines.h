/* OpenTSDB's telnet commands: `put` lines into an ingest_request, the others answered. They are a
 * row of listener_protocol.h, which says what each function is to do.
 *
 * Private to ingest/; the loop's thread. */
#ifndef INGEST_PUT_LINES_H
#define INGEST_PUT_LINES_H

#include "ingest/listener_protocol.h"

/* Takes all, or what comes before the first line that is neither blank nor a put. */
void put_lines_feed(struct listener_lines *lines);
/* The first line, if it is neither blank nor a put. */
bool put_lines_command(struct slice bytes, struct slice *command);
void put_lines_refusals(const struct ingest_request *r, struct buf *out);
/* `now_s` is for `stats`. */
void put_lines_answer(struct slice command, int64_t now_s, struct buf *out, bool *over);

#endif
