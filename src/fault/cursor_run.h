/* Private to cursor.c: a sealed run that a cursor is in, and which of its reports a search finds.
 */
#ifndef FAULT_CURSOR_RUN_H
#define FAULT_CURSOR_RUN_H

#include "fault/book_private.h"
#include "fault/sealed.h"

struct cursor_run;

/* search: NULL, or what is searched for: *none says that the run has nothing of it, and then it has
 * no segment. To be freed, also after an error. */
int cursor_run_open(const struct fault_sealed_site *from, struct fault_place place,
		    const struct fault_run_cell *cell, const struct fault_search *search,
		    struct cursor_run **to, bool *none, struct errbuf *e) MUST_CHECK;
void cursor_run_free(struct cursor_run *run);
const struct fault_segment *cursor_run_segment(const struct cursor_run *run);
/* Whether the report at a place of the segment is one that the search finds, of those that fit
 * otherwise. With the first of a block all of the block are looked at. */
int cursor_run_fits(const struct fault_sealed_site *from, struct cursor_run *run,
		    const struct fault_cursor_filter *filter, size_t place, bool *fits,
		    struct errbuf *e) MUST_CHECK;

#endif
